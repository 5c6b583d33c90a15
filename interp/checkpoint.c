/* checkpoint.c - what is saved under which name. */
#include "interp/checkpoint.h"

#include <stdlib.h>
#include <string.h>

#include "interp/dict.h"
#include "runtime/base/mem.h"
#include "runtime/base/vec.h"
#include "runtime/io/csv.h"
#include "runtime/tensor/print.h"

void tl_saved_fini(tl_saved_list *list)
{
    for (size_t i = 0; i < list->len; i++) {
        tl_free(list->items[i].name);
    }
    tl_free(list->items);
    *list = (tl_saved_list){0};
}

/* prefix.path.rest, whatever of these is not empty. */
static char *join(const char *prefix, const char *path, const char *rest)
{
    const char *parts[3] = {prefix, path, rest};
    tl_buf buf;
    char *s = NULL;

    tl_buf_init(&buf);
    for (int i = 0; i < 3; i++) {
        if (parts[i][0] != '\0') {
            tl_buf_puts(&buf, buf.len > 0 ? "." : "");
            tl_buf_puts(&buf, parts[i]);
        }
    }
    if (!buf.failed) {
        s = tl_strndup(tl_buf_str(&buf), buf.len);
    }
    tl_buf_fini(&buf);
    return s;
}

static tl_status add(tl_eval *ev, tl_saved_list *list, tl_saved item)
{
    if (!item.name) {
        return tl_fail_memory(ev->diag, "a name", 64);
    }
    if (TL_VEC_PUSH(list, item, ev->diag) != TL_OK) {
        tl_free(item.name);
        return TL_ERR_MEMORY;
    }
    return TL_OK;
}

static tl_status add_tree(tl_eval *ev, tl_saved_list *list,
                          const tl_tree *tree, const char *prefix)
{
    for (size_t i = 0; i < tree->shape->len; i++) {
        tl_saved item = {.name =
                             join(prefix, tree->shape->paths[i]->data, ""),
                         .item = -1,
                         .first = list->len,
                         .value = tree->items[i]};

        TL_TRY(add(ev, list, item));
    }
    return TL_OK;
}

/* A cell under one of its paths; `first` is where its first name stands, or
 * the present end of the list. */
static tl_status add_cell(tl_eval *ev, tl_saved_list *list, tl_cell *cell,
                          const char *prefix, const char *path, size_t first)
{
    const tl_tree *tree;

    if (cell->hold != TL_HOLD_TREE) {
        return add(ev, list,
                   (tl_saved){.name = join(prefix, path, ""),
                              .cell = cell,
                              .item = -1,
                              .first = first,
                              .value = tl_empty()});
    }
    if (cell->value.tag != TL_V_TREE) {
        return tl_fail(ev->diag, TL_E0202, "cell `%s` has no value yet",
                       path);
    }
    tree = cell->value.tree;
    for (size_t i = 0; i < tree->shape->len; i++) {
        TL_TRY(add(ev, list,
                   (tl_saved){.name = join(prefix, path,
                                           tree->shape->paths[i]->data),
                              .cell = cell,
                              .item = (int64_t)i,
                              .first = first + i,
                              .value = tl_empty()}));
    }
    return TL_OK;
}

static tl_status add_cells(tl_eval *ev, tl_saved_list *list, tl_value root,
                           const char *prefix)
{
    tl_path_list paths;
    size_t *start;
    tl_status st = TL_OK;

    TL_TRY(tl_paths(ev, root, TL_CELLS_ALL | TL_PATHS_ALIASES, &paths));
    start = tl_malloc((paths.len + 1) * sizeof(*start));
    if (!start) {
        st = tl_fail_memory(ev->diag, "names", paths.len * sizeof(*start));
    }
    for (size_t i = 0; i < paths.len && st == TL_OK; i++) {
        const tl_path_item *item = &paths.items[i];

        start[i] = item->first == i ? list->len : start[item->first];
        st = add_cell(ev, list, item->cell, prefix, item->path->data,
                      start[i]);
    }
    tl_free(start);
    tl_path_list_fini(&paths);
    return st;
}

static bool is_tensor_dict(tl_value v)
{
    for (size_t i = 0; v.tag == TL_V_DICT && i < v.dict->len; i++) {
        const tl_dict_entry *e = &v.dict->entries[i];

        if (e->key.tag != TL_V_EMPTY) {
            return tl_is_tensor(e->value) || tl_is_number(e->value);
        }
    }
    return false;
}

static tl_status add_dict(tl_eval *ev, tl_saved_list *list, const tl_dict *d,
                          const char *prefix)
{
    for (size_t i = 0; i < d->len; i++) {
        const tl_dict_entry *e = &d->entries[i];
        tl_saved item = {.item = -1, .first = list->len, .value = e->value};

        if (e->key.tag == TL_V_EMPTY) {
            continue;
        }
        if (e->key.tag != TL_V_STR || !tl_is_tensor(e->value)) {
            return tl_fail(ev->diag, TL_E0210,
                           "a file holds tensors under names, got %s: %s",
                           tl_value_type_str(e->key).s,
                           tl_value_type_str(e->value).s);
        }
        item.name = join(prefix, e->key.str->data, "");
        TL_TRY(add(ev, list, item));
    }
    return TL_OK;
}

tl_status tl_saved_collect(tl_eval *ev, tl_value root, const char *prefix,
                           tl_saved_list *list)
{
    size_t before = list->len;

    if (root.tag == TL_V_TREE) {
        return add_tree(ev, list, root.tree, prefix);
    }
    if (is_tensor_dict(root)) {
        return add_dict(ev, list, root.dict, prefix);
    }
    if (tl_is_tensor(root)) {
        tl_fail(ev->diag, TL_E0210,
                "a file holds tensors under names, got %s",
                tl_value_type_str(root).s);
        tl_diag_help(ev->diag, "save(path, {\"x\": x})");
        return TL_ERR_PROGRAM;
    }
    TL_TRY(add_cells(ev, list, root, prefix));
    if (list->len == before && root.tag != TL_V_MODULE) {
        return tl_fail(ev->diag, TL_E0210,
                       "there is no cell and no tensor to save in a %s",
                       tl_value_type_str(root).s);
    }
    return TL_OK;
}

bool tl_saved_type(const tl_saved *saved, tl_ttype *out)
{
    const tl_cell *cell = saved->cell;
    tl_value v = saved->value;

    if (cell && saved->item >= 0) {
        v = cell->value.tree->items[saved->item];
    }
    if (v.tag == TL_V_TENSOR) {
        tl_tensor_shown_type(v.tensor, out);
        return true;
    }
    if (!cell || !cell->has_type) {
        return false;
    }
    out->dtype = cell->dtype;
    out->shape.rank = cell->rank;
    for (int i = 0; i < cell->rank; i++) {
        out->shape.dim[i] = tl_dim_num(cell->size[i]); /* -1: may change */
    }
    return true;
}

/* ---- host cells -------------------------------------------------------- */

void tl_host_print(tl_value v, tl_buf *out)
{
    switch (v.tag) {
    case TL_V_BOOL:
        tl_buf_puts(out, v.b ? "true" : "false");
        break;
    case TL_V_INT:
        tl_buf_printf(out, "%lld", (long long)v.i);
        break;
    default:
        tl_print_f64(v.f, out);
        break;
    }
}

static bool parse_int(const char *text, int64_t *out)
{
    int64_t n = 0;
    bool minus = *text == '-';

    text += minus;
    if (*text == '\0') {
        return false;
    }
    for (; *text; text++) { /* downwards: INT64_MIN has no positive twin */
        if (*text < '0' || *text > '9' || __builtin_mul_overflow(n, 10, &n) ||
            __builtin_sub_overflow(n, *text - '0', &n)) {
            return false;
        }
    }
    return minus ? (*out = n, true) : !__builtin_sub_overflow(0, n, out);
}

bool tl_host_parse(const tl_cell *cell, const char *text, tl_value *out)
{
    int64_t i;
    double f;

    switch (cell->hold) {
    case TL_HOLD_INT:
        if (!parse_int(text, &i)) {
            return false;
        }
        *out = tl_int_value(i);
        return true;
    case TL_HOLD_BOOL:
        *out = tl_bool_value(strcmp(text, "true") == 0);
        return out->b || strcmp(text, "false") == 0;
    default:
        if (!tl_parse_number(text, strlen(text), &f)) {
            return false;
        }
        *out = tl_float_value(f);
        return true;
    }
}
