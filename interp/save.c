/* save.c - writing a file of cells, trees or tensors. */
#include "interp/checkpoint.h"

#include <stdio.h>
#include <string.h>

#include "interp/autocast.h"
#include "runtime/base/mem.h"
#include "runtime/base/vec.h"

/* What the writer gets, and what keeps it alive. */
typedef struct out_file {
    struct {
        tl_st_item *items;
        size_t len, cap;
    } tensors;
    struct {
        tl_value *items;
        size_t len, cap;
    } held;
    struct {
        tl_st_pair *items;
        size_t len, cap;
    } meta;
    struct {
        char **items;
        size_t len, cap;
    } texts;
    uint64_t hash;
} out_file;

static void out_fini(out_file *f)
{
    tl_unref_all(f->held.items, f->held.len);
    for (size_t i = 0; i < f->texts.len; i++) {
        tl_free(f->texts.items[i]);
    }
    tl_free(f->tensors.items);
    tl_free(f->held.items);
    tl_free(f->meta.items);
    tl_free(f->texts.items);
}

tl_status tl_checkpoint_hash(const char *name, const tl_tensor *t,
                             uint64_t *out, tl_diag *diag)
{
    size_t bytes = (size_t)t->numel * tl_dtype_size(t->dtype);
    uint64_t seed = tl_hash_bytes(name, strlen(name), (uint64_t)t->dtype);
    void *copy;

    if (bytes == 0) {
        *out = seed;
        return TL_OK;
    }
    if (tl_tensor_contiguous(t)) {
        *out = tl_hash_bytes(tl_tensor_data(t), bytes, seed);
        return TL_OK;
    }
    copy = tl_malloc(bytes);
    if (!copy) {
        return tl_fail_memory(diag, "a hash", bytes);
    }
    tl_tensor_read(t, copy);
    *out = tl_hash_bytes(copy, bytes, seed);
    tl_free(copy);
    return TL_OK;
}

/* Takes `v`, a tensor. */
static tl_status add_tensor_take(tl_eval *ev, out_file *f, const char *name,
                                 tl_value v)
{
    tl_st_item item = {.name = name};
    uint64_t hash = 0;
    tl_status st = tl_eval_widen(ev, &v);

    if (st == TL_OK) {
        item.tensor = v.tensor;
        st = TL_VEC_PUSH(&f->held, v, ev->diag);
    }
    if (st != TL_OK) {
        tl_unref(v);
        return st;
    }
    TL_TRY(tl_checkpoint_hash(name, v.tensor, &hash, ev->diag));
    f->hash += hash;
    return TL_VEC_PUSH(&f->tensors, item, ev->diag);
}

/* `value` is copied. */
static tl_status add_meta(tl_eval *ev, out_file *f, const char *key,
                          const char *value)
{
    char *copy = tl_strndup(value, strlen(value));
    tl_st_pair pair = {.key = key, .value = copy};

    if (!copy) {
        return tl_fail_memory(ev->diag, "metadata", strlen(value));
    }
    if (TL_VEC_PUSH(&f->texts, copy, ev->diag) != TL_OK) {
        tl_free(copy);
        return TL_ERR_MEMORY;
    }
    f->hash += tl_hash_bytes(value, strlen(value),
                             tl_hash_bytes(key, strlen(key), 1));
    return TL_VEC_PUSH(&f->meta, pair, ev->diag);
}

static tl_status add_host(tl_eval *ev, out_file *f, const tl_saved *s)
{
    tl_buf text;
    tl_value v;
    tl_status st;

    TL_TRY(tl_cell_value(ev, s->cell, &v));
    tl_buf_init(&text);
    tl_host_print(v, &text);
    st = text.failed ? tl_fail_memory(ev->diag, "metadata", text.len)
                     : add_meta(ev, f, s->name, tl_buf_str(&text));
    tl_buf_fini(&text);
    return st;
}

static tl_status add_saved(tl_eval *ev, out_file *f, const tl_saved_list *l,
                           size_t i)
{
    const tl_saved *s = &l->items[i];
    tl_value v;

    if (s->first != i) { /* another path of a shared cell */
        return add_meta(ev, f, s->name, l->items[s->first].name);
    }
    if (!s->cell) {
        return add_tensor_take(ev, f, s->name, tl_ref(s->value));
    }
    if (s->item >= 0) {
        tl_cells_used(ev);
        return add_tensor_take(ev, f, s->name,
                               tl_ref(s->cell->value.tree->items[s->item]));
    }
    if (s->cell->hold != TL_HOLD_TENSOR) {
        return add_host(ev, f, s);
    }
    TL_TRY(tl_cell_value(ev, s->cell, &v));
    return add_tensor_take(ev, f, s->name, v);
}

tl_status tl_checkpoint_write(tl_eval *ev, const char *path,
                              const tl_saved_list *list, uint64_t *hash)
{
    out_file f = {0};
    char version[16];
    tl_status st;

    snprintf(version, sizeof(version), "%d", TL_CK_VERSION);
    TL_GOTO(st, add_meta(ev, &f, TL_CK_VERSION_KEY, version));
    for (size_t i = 0; i < list->len; i++) {
        TL_GOTO(st, add_saved(ev, &f, list, i));
    }
    TL_GOTO(st, tl_safetensors_write(path, f.tensors.items, f.tensors.len,
                                     f.meta.items, f.meta.len, ev->diag));
    if (hash) {
        *hash = f.hash;
    }
out:
    out_fini(&f);
    return st;
}
