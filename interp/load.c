/* load.c - strict loading: every cell from the file, every tensor of the file
 * to a cell, or nothing at all.
 *
 * Keys of the file are renamed, then matched with the paths of the cells.
 * Values are read, converted and checked before the first cell is written. */
#include "interp/checkpoint.h"

#include <stdlib.h>
#include <string.h>

#include "interp/dict.h"
#include "interp/domain.h"
#include "runtime/base/mem.h"
#include "runtime/base/vec.h"
#include "runtime/io/file.h"

typedef struct loader {
    tl_eval *ev;
    const char *path;
    tl_value root;
    const tl_load_options *options;
    tl_safetensors *file;
    tl_file_key *keys;
    size_t nkeys;
    tl_intern names; /* of keys */
    tl_map by_name;  /* symbol -> tl_file_key */
    tl_saved_list saved;
    tl_match *matches; /* one for each of saved; only where first == itself */
    tl_load_count count;
    tl_writes *writes;
} loader;

/* ---- values to write --------------------------------------------------- */

void tl_writes_fini(tl_writes *writes)
{
    for (size_t i = 0; i < writes->len; i++) {
        tl_unref(writes->items[i].value);
        tl_unref((tl_value){.tag = TL_V_CELL, .cell = writes->items[i].cell});
    }
    tl_free(writes->items);
    *writes = (tl_writes){0};
}

/* Takes `v`. */
static tl_status add_write_take(tl_eval *ev, tl_writes *writes, tl_cell *cell,
                                tl_value v)
{
    struct tl_write w = {.cell = cell, .value = v};

    if (TL_VEC_PUSH(writes, w, ev->diag) != TL_OK) {
        tl_unref(v);
        return TL_ERR_MEMORY;
    }
    tl_ref((tl_value){.tag = TL_V_CELL, .cell = cell});
    return TL_OK;
}

tl_status tl_writes_commit(tl_eval *ev, tl_writes *writes)
{
    for (size_t i = 0; i < writes->len; i++) {
        TL_TRY(
            tl_cell_fit(ev, writes->items[i].cell, &writes->items[i].value));
    }
    for (size_t i = 0; i < writes->len; i++) {
        tl_value v = writes->items[i].value;

        writes->items[i].value = tl_none();
        TL_TRY(ev->domain->cell_set(ev, writes->items[i].cell, v));
    }
    return TL_OK;
}

/* ---- keys -------------------------------------------------------------- */

static tl_status check_patterns(tl_eval *ev, const char *what, tl_value list)
{
    for (size_t i = 0; list.tag != TL_V_EMPTY && i < list.seq->len; i++) {
        if (list.seq->items[i].tag != TL_V_STR) {
            return tl_fail(ev->diag, TL_E0210,
                           "%s takes a list of patterns, got %s in it", what,
                           tl_value_type_str(list.seq->items[i]).s);
        }
    }
    return TL_OK;
}

static tl_status check_rename(tl_eval *ev, tl_value rename)
{
    for (size_t i = 0; rename.tag == TL_V_DICT && i < rename.dict->len; i++) {
        const tl_dict_entry *e = &rename.dict->entries[i];

        if (e->key.tag == TL_V_EMPTY) {
            continue;
        }
        if (e->key.tag != TL_V_STR || e->value.tag != TL_V_STR ||
            e->key.str->len == 0) {
            return tl_fail(ev->diag, TL_E0210,
                           "rename maps parts of names to texts, got %s: %s",
                           tl_value_type_str(e->key).s,
                           tl_value_type_str(e->value).s);
        }
    }
    return TL_OK;
}

/* Every `from` in `s` replaced by `to`; eats `s`. */
static char *replace_all(char *s, const char *from, const char *to)
{
    size_t len = strlen(from);
    const char *at = s, *hit = strstr(s, from);
    tl_buf buf;

    if (!hit) {
        return s;
    }
    tl_buf_init(&buf);
    for (; hit; hit = strstr(at, from)) {
        tl_buf_add(&buf, at, (size_t)(hit - at));
        tl_buf_puts(&buf, to);
        at = hit + len;
    }
    tl_buf_puts(&buf, at);
    tl_free(s);
    s = buf.failed ? NULL : tl_strndup(tl_buf_str(&buf), buf.len);
    tl_buf_fini(&buf);
    return s;
}

static char *renamed(const char *name, tl_value rename)
{
    char *s = tl_strndup(name, strlen(name));

    for (size_t i = 0; s && rename.tag == TL_V_DICT && i < rename.dict->len;
         i++) {
        const tl_dict_entry *e = &rename.dict->entries[i];

        if (e->key.tag == TL_V_STR) {
            s = replace_all(s, e->key.str->data, e->value.str->data);
        }
    }
    return s;
}

static bool matches_any(tl_value patterns, const char *name)
{
    for (size_t i = 0; patterns.tag != TL_V_EMPTY && i < patterns.seq->len;
         i++) {
        if (tl_glob_match(patterns.seq->items[i].str->data, name)) {
            return true;
        }
    }
    return false;
}

static tl_status index_key(loader *l, tl_file_key *key)
{
    const tl_sym *sym = tl_intern_get(&l->names, key->key, strlen(key->key));
    bool there = false;
    tl_buf text;

    if (!sym) {
        return tl_fail_memory(l->ev->diag, "names", strlen(key->key));
    }
    (void)tl_map_get(&l->by_name, sym, &there);
    if (there) {
        tl_buf_init(&text);
        tl_buf_put_escaped(&text, key->key, strlen(key->key));
        tl_fail(l->ev->diag, TL_E0703,
                "rename makes two tensors of the file `%s`",
                tl_buf_str(&text));
        tl_buf_fini(&text);
        return TL_ERR_FILE;
    }
    if (!tl_map_set(&l->by_name, sym, key)) {
        return tl_fail_memory(l->ev->diag, "names", sizeof(*key));
    }
    return TL_OK;
}

static tl_status read_keys(loader *l)
{
    size_t n;
    const tl_st_entry *entries = tl_safetensors_entries(l->file, &n);

    l->keys = tl_calloc(n ? n : 1, sizeof(*l->keys));
    if (!l->keys) {
        return tl_fail_memory(l->ev->diag, "names", n * sizeof(*l->keys));
    }
    for (size_t i = 0; i < n; i++) {
        tl_file_key *key = &l->keys[i];

        key->entry = &entries[i];
        key->key = renamed(entries[i].name, l->options->rename);
        if (!key->key) {
            return tl_fail_memory(l->ev->diag, "a name", 64);
        }
        l->nkeys++;
        key->ignored = matches_any(l->options->ignore, key->key);
        if (!key->ignored) {
            TL_TRY(index_key(l, key));
        }
    }
    return TL_OK;
}

/* ---- matching ---------------------------------------------------------- */

static const char *metadata(const loader *l, const char *key)
{
    size_t n;
    const tl_st_pair *pairs = tl_safetensors_metadata(l->file, &n);

    for (size_t i = 0; i < n; i++) {
        if (strcmp(pairs[i].key, key) == 0) {
            return pairs[i].value;
        }
    }
    return NULL;
}

static tl_file_key *find_key(const loader *l, const char *name)
{
    const tl_sym *sym = tl_intern_find(&l->names, name, strlen(name));

    return sym ? tl_map_get(&l->by_name, sym, NULL) : NULL;
}

static bool is_host(const tl_saved *s)
{
    return s->cell->hold >= TL_HOLD_INT;
}

/* Sizes agree, `_` with anything; the dtype may be another float. */
static bool fits(const tl_ttype *type, const tl_st_entry *e, bool transpose)
{
    int rank = type->shape.rank;

    if (e->rank != rank || !e->loadable ||
        (e->dtype != type->dtype &&
         !(tl_dtype_is_float(e->dtype) && tl_dtype_is_float(type->dtype)))) {
        return false;
    }
    for (int i = 0; i < rank; i++) {
        int k = transpose && i >= rank - 2 ? 2 * rank - 3 - i : i;
        int64_t want = tl_dim_value(type->shape.dim[i]);

        if (want >= 0 && want != e->size[k]) {
            return false;
        }
    }
    return true;
}

/* Give each cell its key: the first of its paths that the file has. */
static tl_status match_cells(loader *l)
{
    tl_saved_list *saved = &l->saved;

    l->matches = tl_calloc(saved->len ? saved->len : 1, sizeof(*l->matches));
    if (!l->matches) {
        return tl_fail_memory(l->ev->diag, "names",
                              saved->len * sizeof(*l->matches));
    }
    for (size_t i = 0; i < saved->len; i++) {
        tl_match *m = &l->matches[saved->items[i].first];
        tl_file_key *key = find_key(l, saved->items[i].name);

        l->matches[i].saved = &saved->items[i];
        if (key) {
            key->used = true;
            l->count.loaded++;
            m->key = m->key ? m->key : key;
        }
    }
    for (size_t i = 0; i < saved->len; i++) { /* shared in the file only */
        tl_match *m = &l->matches[saved->items[i].first];
        const char *stored =
            m->key ? NULL : metadata(l, saved->items[i].name);

        if (stored && !is_host(&saved->items[i])) {
            m->key = find_key(l, stored);
        }
    }
    return TL_OK;
}

/* Is a cell without key excused? */
static bool excused(const loader *l, size_t i)
{
    const tl_saved *s = &l->saved.items[i];

    for (size_t k = 0; k < l->saved.len; k++) {
        if (l->saved.items[k].first == i &&
            matches_any(l->options->ignore, l->saved.items[k].name)) {
            return true;
        }
    }
    if (!is_host(s)) {
        return false;
    }
    /* other writers know no host cells */
    return metadata(l, s->name) || !metadata(l, TL_CK_VERSION_KEY);
}

/* Does the match have a fault? */
static bool judge(const loader *l, size_t i)
{
    tl_match *m = &l->matches[i];
    tl_ttype type;

    if (m->saved->first != i) {
        return false;
    }
    if (!m->key) {
        return !excused(l, i);
    }
    m->transpose = matches_any(l->options->transpose, m->key->key) &&
                   m->key->entry->rank >= 2;
    if (tl_saved_type(m->saved, &type)) {
        m->wrong_type = !fits(&type, m->key->entry, m->transpose);
    } else {
        m->wrong_type = !m->key->entry->loadable;
    }
    return m->wrong_type;
}

static tl_status check_matches(loader *l)
{
    tl_match *faults = tl_calloc(l->saved.len + 1, sizeof(*faults));
    size_t n = 0, unexpected = 0;
    tl_status st = TL_OK;

    if (!faults) {
        return tl_fail_memory(l->ev->diag, "names",
                              l->saved.len * sizeof(*faults));
    }
    for (size_t i = 0; i < l->saved.len; i++) {
        if (judge(l, i)) {
            faults[n++] = l->matches[i];
        }
    }
    for (size_t i = 0; i < l->nkeys; i++) {
        unexpected += !l->keys[i].used && !l->keys[i].ignored;
        l->count.ignored += l->keys[i].ignored;
    }
    if (n + unexpected > 0) {
        st = tl_load_misfit(l->ev, l->path, l->root, faults, n, l->keys,
                            l->nkeys, l->count.loaded);
    }
    tl_free(faults);
    return st;
}

/* ---- reading ----------------------------------------------------------- */

static tl_status transpose_take(tl_eval *ev, tl_value v, tl_value *out)
{
    int rank = v.tensor->rank;
    tl_attrs at;
    tl_value t;

    tl_attrs_init(&at);
    at.ndims = (uint16_t)rank;
    for (int i = 0; i < rank; i++) {
        at.dims[i] = tl_dim_num(i >= rank - 2 ? 2 * rank - 3 - i : i);
    }
    TL_TRY(tl_eval_op(ev, TL_OP_permute, &v, 1, &at, &t));
    return tl_eval_op(ev, TL_OP_copy, &t, 1, NULL, out);
}

static tl_status read_value(loader *l, const tl_match *m, tl_value *out)
{
    tl_ttype type;
    tl_tensor *t;
    tl_attrs at;
    tl_value v, w;

    TL_TRY(tl_safetensors_read(m->key->entry, l->ev->rt->pool, &t,
                               l->ev->diag));
    v = tl_tensor_value_take(t);
    if (m->transpose) {
        w = v;
        TL_TRY(transpose_take(l->ev, w, &v));
    }
    if (tl_saved_type(m->saved, &type) && type.dtype != v.tensor->dtype) {
        tl_attrs_init(&at);
        at.dtype = (uint8_t)type.dtype;
        w = v;
        TL_TRY(tl_eval_op(l->ev, TL_OP_cast, &w, 1, &at, &v));
    }
    *out = v;
    return TL_OK;
}

/* A tree of the old values, to be filled in. */
static tl_status old_tree(tl_eval *ev, const tl_tree *tree, tl_value *out)
{
    size_t n = tree->shape->len;
    tl_value *items = tl_calloc(n ? n : 1, sizeof(*items));
    tl_status st;

    if (!items) {
        return tl_fail_memory(ev->diag, "a tree", n * sizeof(*items));
    }
    for (size_t i = 0; i < n; i++) {
        items[i] = tl_ref(tree->items[i]);
    }
    st = tl_tree_new_take(out, tree->shape, items, ev->diag);
    tl_free(items);
    return st;
}

/* Value `item` of the tree in a cell: the write of the whole tree is the last
 * one if an earlier value began it.  Takes `v`. */
static tl_status write_item_take(loader *l, const tl_saved *s, tl_value v)
{
    tl_writes *w = l->writes;
    tl_value tree = tl_empty(), old;
    tl_status st = TL_OK;

    for (size_t i = w->len; i-- > 0 && tree.tag == TL_V_EMPTY;) {
        if (w->items[i].cell == s->cell) {
            tree = w->items[i].value;
        }
    }
    if (tree.tag == TL_V_EMPTY) {
        tl_cells_used(l->ev);
        st = old_tree(l->ev, s->cell->value.tree, &tree);
        if (st == TL_OK) {
            st = add_write_take(l->ev, w, s->cell, tree);
        }
    }
    if (st != TL_OK) {
        tl_unref(v);
        return st;
    }
    old = tree.tree->items[s->item];
    tree.tree->items[s->item] = v;
    tl_unref(old);
    return TL_OK;
}

static tl_status read_host(loader *l, const tl_saved *s)
{
    const char *text = metadata(l, s->name);
    tl_buf shown;
    tl_value v;

    if (!text) {
        return TL_OK;
    }
    if (tl_host_parse(s->cell, text, &v)) {
        return add_write_take(l->ev, l->writes, s->cell, v);
    }
    tl_buf_init(&shown);
    tl_buf_put_escaped(&shown, text, strlen(text));
    tl_fail(l->ev->diag, TL_E0713, "%s: \"%s\" is no value of `%s`",
            tl_path_str(l->path).s, tl_buf_str(&shown), s->name);
    tl_buf_fini(&shown);
    return TL_ERR_FILE;
}

static tl_status read_all(loader *l)
{
    for (size_t i = 0; i < l->saved.len; i++) {
        const tl_match *m = &l->matches[i];
        tl_value v;

        if (m->saved->first != i) {
            continue;
        }
        if (is_host(m->saved)) {
            TL_TRY(read_host(l, m->saved));
        } else if (m->key) {
            TL_TRY(read_value(l, m, &v));
            if (m->saved->item >= 0) {
                TL_TRY(write_item_take(l, m->saved, v));
            } else {
                TL_TRY(add_write_take(l->ev, l->writes, m->saved->cell, v));
            }
        }
    }
    return TL_OK;
}

/* ---- files ------------------------------------------------------------- */

static tl_status check_version(loader *l)
{
    const char *text = metadata(l, TL_CK_VERSION_KEY);
    long version = text ? strtol(text, NULL, 10) : TL_CK_VERSION;

    if (version > TL_CK_VERSION) {
        return tl_fail(l->ev->diag, TL_E0710,
                       "%s has format %ld, this build reads up to %d",
                       tl_path_str(l->path).s, version, TL_CK_VERSION);
    }
    return TL_OK;
}

static tl_status check_hash(loader *l)
{
    uint64_t sum = 0, hash = 0;
    size_t n;
    const tl_st_pair *pairs = tl_safetensors_metadata(l->file, &n);

    if (!l->options->hash) {
        return TL_OK;
    }
    for (size_t i = 0; i < n; i++) {
        sum += tl_hash_bytes(
            pairs[i].value, strlen(pairs[i].value),
            tl_hash_bytes(pairs[i].key, strlen(pairs[i].key), 1));
    }
    for (size_t i = 0; i < l->nkeys; i++) {
        tl_tensor *t;
        tl_status st;

        TL_TRY(tl_safetensors_read(l->keys[i].entry, l->ev->rt->pool,
                                   &t, l->ev->diag));
        st =
            tl_checkpoint_hash(l->keys[i].entry->name, t, &hash, l->ev->diag);
        tl_tensor_unref(t);
        TL_TRY(st);
        sum += hash;
    }
    if (sum != *l->options->hash) {
        return tl_fail(l->ev->diag, TL_E0705,
                       "%s is damaged: its contents hash to %016llx, "
                       "expected %016llx",
                       tl_path_str(l->path).s, (unsigned long long)sum,
                       (unsigned long long)*l->options->hash);
    }
    return TL_OK;
}

/* Files of Python's pickle are never read: they can run code. */
static tl_status open_file(tl_eval *ev, const char *path,
                           tl_safetensors **out)
{
    static const char *const pickles[] = {".pt", ".pth", ".bin", ".ckpt",
                                          ".pkl"};
    size_t len = strlen(path);

    for (size_t i = 0; i < sizeof(pickles) / sizeof(*pickles); i++) {
        size_t n = strlen(pickles[i]);

        if (len > n && strcmp(path + len - n, pickles[i]) == 0) {
            tl_fail(ev->diag, TL_E0701,
                    "%s: files of Python's pickle are not read, since they "
                    "can run code",
                    tl_path_str(path).s);
            tl_diag_help(ev->diag, "in Python: safetensors.torch.save_file("
                                   "torch.load(path, weights_only=True), "
                                   "\"x.safetensors\")");
            return TL_ERR_FILE;
        }
    }
    return tl_safetensors_open(out, path, ev->diag);
}

static tl_status prepare(loader *l)
{
    TL_TRY(check_rename(l->ev, l->options->rename));
    TL_TRY(check_patterns(l->ev, "transpose", l->options->transpose));
    TL_TRY(check_patterns(l->ev, "ignore", l->options->ignore));
    TL_TRY(open_file(l->ev, l->path, &l->file));
    TL_TRY(check_version(l));
    TL_TRY(read_keys(l));
    TL_TRY(check_hash(l));
    TL_TRY(tl_saved_collect(l->ev, l->root, "", &l->saved));
    TL_TRY(match_cells(l));
    TL_TRY(check_matches(l));
    return read_all(l);
}

tl_status tl_load_prepare(tl_eval *ev, const char *path, tl_value root,
                          const tl_load_options *options, tl_writes *writes,
                          tl_load_count *count)
{
    loader l = {.ev = ev,
                .path = path,
                .root = root,
                .options = options,
                .writes = writes};
    tl_status st;

    tl_intern_init(&l.names);
    tl_map_init(&l.by_name);
    st = prepare(&l);
    for (size_t i = 0; i < l.nkeys; i++) {
        tl_free(l.keys[i].key);
    }
    tl_free(l.keys);
    tl_free(l.matches);
    tl_saved_fini(&l.saved);
    tl_map_fini(&l.by_name);
    tl_intern_fini(&l.names);
    tl_safetensors_close(l.file);
    if (st == TL_OK && count) {
        *count = l.count;
    }
    return st;
}

tl_status tl_load_dict(tl_eval *ev, const char *path, tl_value *out)
{
    tl_safetensors *file;
    const tl_st_entry *entries;
    tl_value dict, key;
    tl_status st;
    size_t n;

    TL_TRY(open_file(ev, path, &file));
    st = tl_dict_new(&dict, ev->diag);
    if (st != TL_OK) {
        tl_safetensors_close(file);
        return st;
    }
    entries = tl_safetensors_entries(file, &n);
    for (size_t i = 0; i < n && st == TL_OK; i++) {
        tl_tensor *t;

        st = tl_safetensors_read(&entries[i], ev->rt->pool, &t,
                                 ev->diag);
        if (st != TL_OK) {
            break;
        }
        st = tl_str_new(&key, entries[i].name, strlen(entries[i].name),
                        ev->diag);
        if (st != TL_OK) {
            tl_tensor_unref(t);
            break;
        }
        st = tl_dict_set_take(dict.dict, key, tl_tensor_value_take(t),
                              ev->diag);
    }
    tl_safetensors_close(file);
    if (st != TL_OK) {
        tl_unref(dict);
        return st;
    }
    *out = dict;
    return TL_OK;
}
