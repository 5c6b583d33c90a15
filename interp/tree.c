/* tree.c - trees: structure, access, and what is read from and written to
 * cells as a whole. */
#include "interp/tree.h"

#include <stdio.h>
#include <string.h>

#include "interp/domain.h"
#include "interp/free.h"
#include "interp/grad.h"
#include "runtime/base/mem.h"

static tl_value str_value(tl_str *s)
{
    return (tl_value){.tag = TL_V_STR, .str = s};
}

/* ---- structure --------------------------------------------------------- */

static tl_status shape_alloc(tl_tree_shape **out, size_t len, tl_diag *diag)
{
    tl_tree_shape *shape = tl_calloc(1, sizeof(*shape));

    if (shape) {
        shape->paths = tl_calloc(len ? len : 1, sizeof(*shape->paths));
        shape->cells = tl_calloc(len ? len : 1, sizeof(*shape->cells));
    }
    if (!shape || !shape->paths || !shape->cells) {
        if (shape) {
            tl_free(shape->paths);
            tl_free(shape->cells);
            tl_free(shape);
        }
        return tl_fail_memory(diag, "a tree", len * sizeof(void *));
    }
    shape->refs = 1;
    *out = shape;
    return TL_OK;
}

tl_tree_shape *tl_tree_shape_ref(tl_tree_shape *shape)
{
    shape->refs++;
    return shape;
}

void tl_tree_shape_unref(tl_tree_shape *shape)
{
    if (!shape || --shape->refs > 0) {
        return;
    }
    for (size_t i = 0; i < shape->len; i++) {
        tl_unref(str_value(shape->paths[i]));
        if (shape->cells[i]) {
            tl_unref((tl_value){.tag = TL_V_CELL, .cell = shape->cells[i]});
        }
    }
    tl_free(shape->paths);
    tl_free(shape->cells);
    tl_free(shape);
}

static void shape_add(tl_tree_shape *shape, tl_str *path, tl_cell *cell)
{
    shape->paths[shape->len] = tl_ref(str_value(path)).str;
    if (cell) {
        tl_ref((tl_value){.tag = TL_V_CELL, .cell = cell});
    }
    shape->cells[shape->len++] = cell;
}

tl_status tl_tree_shape_new(tl_tree_shape **out, tl_str *const *paths,
                            size_t len, tl_diag *diag)
{
    TL_TRY(shape_alloc(out, len, diag));
    for (size_t i = 0; i < len; i++) {
        shape_add(*out, paths[i], NULL);
    }
    return TL_OK;
}

tl_status tl_tree_shape_of(tl_eval *ev, tl_value root, tl_tree_shape **out)
{
    unsigned kinds = root.tag == TL_V_CELL ? TL_CELLS_SAVED : TL_CELLS_PARAM;
    tl_path_list list;
    tl_tree_shape *shape;
    tl_status st;

    TL_TRY(tl_paths(ev, root, kinds, &list));
    st = shape_alloc(&shape, list.len, ev->diag);
    if (st == TL_OK) {
        for (size_t i = 0; i < list.len; i++) {
            if (list.items[i].first == i) {
                shape_add(shape, list.items[i].path, list.items[i].cell);
            }
        }
        *out = shape;
    }
    tl_path_list_fini(&list);
    return st;
}

/* Number of the first path in which they differ; len when they agree. */
static size_t first_difference(const tl_tree_shape *a, const tl_tree_shape *b)
{
    size_t n = a->len < b->len ? a->len : b->len;

    for (size_t i = 0; i < n; i++) {
        if (a->paths[i] != b->paths[i] &&
            strcmp(a->paths[i]->data, b->paths[i]->data) != 0) {
            return i;
        }
    }
    return n;
}

bool tl_tree_shape_same(const tl_tree_shape *a, const tl_tree_shape *b)
{
    return a == b || (a->len == b->len && first_difference(a, b) == a->len);
}

/* ---- trees ------------------------------------------------------------- */

tl_status tl_tree_new_take(tl_value *out, tl_tree_shape *shape,
                           tl_value *items, tl_diag *diag)
{
    tl_tree *tree = tl_obj_new(
        TL_V_TREE, sizeof(*tree) + shape->len * sizeof(tl_value), diag);

    if (!tree) {
        tl_unref_all(items, shape->len);
        return TL_ERR_MEMORY;
    }
    tree->shape = tl_tree_shape_ref(shape);
    tree->finite = tl_empty();
    tree->scaler = tl_empty();
    for (size_t i = 0; i < shape->len; i++) {
        tree->items[i] = items[i];
    }
    *out = tl_obj_value_take(tree);
    return TL_OK;
}

void tl_tree_free(tl_obj *obj)
{
    tl_tree *tree = (tl_tree *)obj;

    tl_unref_all(tree->items, tree->shape->len);
    tl_unref(tree->finite);
    tl_unref(tree->scaler);
    tl_tree_shape_unref(tree->shape);
}

/* ---- built from cells -------------------------------------------------- */

/* A tree with one value for each cell of `shape`, which is released. */
typedef tl_status leaf_fn(tl_eval *ev, tl_cell *cell, tl_value *out);

static tl_status tree_of_cells(tl_eval *ev, tl_value root, leaf_fn *leaf,
                               tl_value *out)
{
    tl_tree_shape *shape;
    tl_value *items;
    tl_status st = TL_OK;
    size_t n = 0;

    TL_TRY(tl_tree_shape_of(ev, root, &shape));
    items = tl_calloc(shape->len ? shape->len : 1, sizeof(*items));
    if (!items) {
        st = tl_fail_memory(ev->diag, "a tree", shape->len * sizeof(*items));
        tl_tree_shape_unref(shape);
        return st;
    }
    while (n < shape->len && st == TL_OK) {
        st = leaf(ev, shape->cells[n], &items[n]);
        n += st == TL_OK;
    }
    if (st == TL_OK) {
        st = tl_tree_new_take(out, shape, items, ev->diag);
    } else {
        tl_unref_all(items, n);
    }
    tl_free(items);
    tl_tree_shape_unref(shape);
    return st;
}

tl_status tl_tree_params(tl_eval *ev, tl_value root, tl_value *out)
{
    return tree_of_cells(ev, root, tl_cell_read, out);
}

tl_status tl_zeros(tl_eval *ev, const tl_ttype *type, tl_value *out)
{
    tl_attrs at;

    tl_attrs_init(&at);
    at.dtype = (uint8_t)type->dtype;
    at.ndims = (uint16_t)type->shape.rank;
    for (int i = 0; i < type->shape.rank; i++) {
        at.dims[i] = type->shape.dim[i];
    }
    return tl_eval_op(ev, TL_OP_full, NULL, 0, &at, out);
}

/* In a domain without data the cell's value there has the type: its sizes may
 * be symbols. */
static tl_status zeros_of_cell(tl_eval *ev, tl_cell *cell, tl_value *out)
{
    tl_ttype type;
    tl_value v;
    tl_status st;

    if (ev->domain->has_data) {
        return tl_eval_cell_zeros(ev, cell, out);
    }
    TL_TRY(tl_cell_read(ev, cell, &v));
    if (v.tag == TL_V_UNKNOWN) {
        *out = v;
        return TL_OK;
    }
    st = tl_eval_type(ev, v, &type);
    tl_unref(v);
    TL_TRY(st);
    return tl_zeros(ev, &type, out);
}

static tl_status zeros_of_tree(tl_eval *ev, const tl_tree *tree,
                               tl_value *out)
{
    size_t len = tree->shape->len, n = 0;
    tl_value *items = tl_calloc(len ? len : 1, sizeof(*items));
    tl_status st = TL_OK;

    if (!items) {
        return tl_fail_memory(ev->diag, "a tree", len * sizeof(*items));
    }
    while (n < len && st == TL_OK) {
        tl_ttype type;

        if (tree->items[n].tag == TL_V_UNKNOWN) {
            items[n] = tree->items[n];
            n++;
            continue;
        }
        st = tl_eval_type(ev, tree->items[n], &type);
        if (st == TL_OK) {
            st = tl_zeros(ev, &type, &items[n]);
        }
        n += st == TL_OK;
    }
    if (st == TL_OK) {
        st = tl_tree_new_take(out, tree->shape, items, ev->diag);
    } else {
        tl_unref_all(items, n);
    }
    tl_free(items);
    return st;
}

tl_status tl_tree_zeros(tl_eval *ev, tl_value root, tl_value *out)
{
    if (root.tag == TL_V_TREE) {
        return zeros_of_tree(ev, root.tree, out);
    }
    return tree_of_cells(ev, root, zeros_of_cell, out);
}

/* ---- assign ------------------------------------------------------------ */

static tl_status wrong_structure(tl_eval *ev, const tl_tree_shape *cells,
                                 const tl_tree_shape *tree)
{
    size_t i = first_difference(cells, tree);

    if (i < cells->len && i < tree->len) {
        return tl_fail(ev->diag, TL_E0512,
                       "the tree has `%s` where the cells have `%s`",
                       tree->paths[i]->data, cells->paths[i]->data);
    }
    return tl_fail(ev->diag, TL_E0512,
                   "a tree of %zu values cannot be assigned to %zu cells",
                   tree->len, cells->len);
}

/* New value of a cell: the leaf, or what it was where the flag is false. */
static tl_status new_value(tl_eval *ev, tl_cell *cell, tl_value flag,
                           tl_value leaf, tl_value *out)
{
    tl_value in[3], v;

    if (flag.tag == TL_V_EMPTY) {
        v = tl_ref(leaf);
    } else {
        TL_TRY(tl_cell_read(ev, cell, &in[2]));
        in[0] = tl_ref(flag);
        in[1] = tl_ref(leaf);
        TL_TRY(tl_eval_op(ev, TL_OP_where, in, 3, NULL, &v));
    }
    if (tl_cell_fit(ev, cell, &v) != TL_OK) {
        tl_unref(v);
        return TL_ERR_PROGRAM;
    }
    *out = v;
    return TL_OK;
}

static tl_status assign_all(tl_eval *ev, const tl_tree_shape *cells,
                            const tl_tree *tree, tl_value flag)
{
    size_t len = cells->len, n = 0;
    tl_value *values = tl_calloc(len ? len : 1, sizeof(*values));
    tl_status st = TL_OK;

    if (!values) {
        return tl_fail_memory(ev->diag, "new values", len * sizeof(*values));
    }
    while (n < len && st == TL_OK) {
        st = new_value(ev, cells->cells[n], flag, tree->items[n], &values[n]);
        n += st == TL_OK;
    }
    if (st != TL_OK) { /* nothing was written */
        tl_unref_all(values, n);
    }
    for (size_t i = 0; i < n && st == TL_OK; i++) {
        st = ev->domain->cell_set(ev, cells->cells[i], values[i]);
        if (st != TL_OK) {
            tl_unref_all(values + i + 1, n - i - 1);
        }
    }
    tl_free(values);
    return st;
}

/* *skip: the flag is known to be false.  A true one needs no choice. */
static tl_status read_flag(tl_eval *ev, tl_value *flag, bool *skip)
{
    tl_value known;

    *skip = false;
    if (flag->tag == TL_V_EMPTY || !ev->domain->has_data) {
        return TL_OK;
    }
    TL_TRY(tl_eval_read(ev, *flag, &known));
    if (known.tag == TL_V_BOOL) {
        *skip = !known.b;
        *flag = tl_empty();
    }
    return TL_OK;
}

/* The values of a tree to the cells of `root`, unless its flag is false. */
static tl_status write_tree(tl_eval *ev, tl_value root, tl_value tree)
{
    tl_value flag = tree.tree->finite; /* borrowed */
    tl_tree_shape *cells;
    bool skip;
    tl_status st;

    TL_TRY(read_flag(ev, &flag, &skip));
    if (skip) {
        if (tree.tree->scaler.tag != TL_V_MODULE) { /* which lives on skips */
            tl_warn(ev->diag, TL_W0517, ev->rt->span,
                    "step skipped: the gradient is not finite");
        }
        return TL_OK;
    }
    TL_TRY(tl_tree_shape_of(ev, root, &cells));
    st = tl_tree_shape_same(cells, tree.tree->shape)
             ? assign_all(ev, cells, tree.tree, flag)
             : wrong_structure(ev, cells, tree.tree->shape);
    tl_tree_shape_unref(cells);
    return st;
}

/* scaler.update(finite) */
static tl_status move_scale(tl_eval *ev, const tl_tree *tree)
{
    const tl_sym *name = tl_intern_get(ev->lang->names, "update", 6);
    tl_value update = tl_empty(), result = tl_empty();
    tl_value finite = tl_ref(tree->finite);
    tl_status st;

    if (name == NULL) {
        tl_unref(finite);
        return tl_fail_memory(ev->diag, "a name", 6);
    }
    st = tl_eval_attr(ev, tree->scaler, name, &update);
    if (st == TL_OK) {
        st = tl_eval_call_values(ev, update, &finite, 1, &result);
    }
    tl_unref(update);
    tl_unref(result);
    tl_unref(finite);
    return st;
}

tl_status tl_tree_assign(tl_eval *ev, tl_value root, tl_value tree)
{
    if (root.tag == TL_V_CELL && tree.tag != TL_V_TREE) {
        return tl_cell_write_take(ev, root.cell, tl_ref(tree));
    }
    if (tree.tag != TL_V_TREE) {
        return tl_fail(ev->diag, TL_E0210, "assign() takes a tree, got %s",
                       tl_value_type_str(tree).s);
    }
    TL_TRY(write_tree(ev, root, tree));
    return tree.tree->scaler.tag == TL_V_MODULE &&
                   tree.tree->finite.tag != TL_V_EMPTY
               ? move_scale(ev, tree.tree)
               : TL_OK;
}

/* ---- access ------------------------------------------------------------ */

/* Does `path` lie below `name`? */
static bool is_below(const tl_str *path, const char *name, size_t len)
{
    return path->len > len + 1 && path->data[len] == '.' &&
           memcmp(path->data, name, len) == 0;
}

static tl_status no_path(tl_eval *ev, const tl_tree *tree, const char *name,
                         size_t len)
{
    size_t n = tree->shape->len;
    const char **names = tl_malloc((n + 1) * sizeof(*names));
    const char *near;
    tl_buf text;

    if (!names) {
        return tl_fail_memory(ev->diag, "names", n * sizeof(*names));
    }
    for (size_t i = 0; i < n; i++) {
        names[i] = tree->shape->paths[i]->data;
    }
    tl_buf_init(&text);
    tl_buf_put_escaped(&text, name, len);
    near = tl_nearest(tl_buf_str(&text), names, n);
    tl_fail(ev->diag, TL_E0211, "the tree has no `%s`", tl_buf_str(&text));
    if (near) {
        tl_diag_help(ev->diag, "`%s`", near);
    } else if (n > 0) {
        tl_diag_help(ev->diag, "its paths begin with `%s`", names[0]);
    }
    tl_buf_fini(&text);
    tl_free(names);
    return TL_ERR_PROGRAM;
}

/* The values below `name`, whose paths lose that part. */
static tl_status sub_tree(tl_eval *ev, const tl_tree *tree, size_t len,
                          size_t first, size_t n, tl_value *out)
{
    tl_tree_shape *shape;
    tl_status st = TL_OK;
    tl_value *items;

    TL_TRY(shape_alloc(&shape, n, ev->diag));
    items = tl_calloc(n, sizeof(*items));
    if (!items) {
        tl_tree_shape_unref(shape);
        return tl_fail_memory(ev->diag, "a tree", n * sizeof(*items));
    }
    for (size_t i = 0; i < n && st == TL_OK; i++) {
        const tl_str *path = tree->shape->paths[first + i];
        tl_value rest;

        st = tl_str_new(&rest, path->data + len + 1, path->len - len - 1,
                        ev->diag);
        if (st == TL_OK) {
            shape_add(shape, rest.str, tree->shape->cells[first + i]);
            items[i] = tl_ref(tree->items[first + i]);
            tl_unref(rest);
        }
    }
    if (st == TL_OK) {
        st = tl_tree_new_take(out, shape, items, ev->diag);
    } else {
        tl_unref_all(items, shape->len);
    }
    if (st == TL_OK) {
        out->tree->finite = tl_ref(tree->finite);
        out->tree->scaler = tl_ref(tree->scaler);
    }
    tl_free(items);
    tl_tree_shape_unref(shape);
    return st;
}

bool tl_tree_has(const tl_tree *tree, const char *name, size_t len)
{
    for (size_t i = 0; i < tree->shape->len; i++) {
        const tl_str *path = tree->shape->paths[i];

        if ((path->len == len && memcmp(path->data, name, len) == 0) ||
            is_below(path, name, len)) {
            return true;
        }
    }
    return false;
}

tl_status tl_tree_get(tl_eval *ev, const tl_tree *tree, const char *name,
                      size_t len, tl_value *out)
{
    const tl_tree_shape *shape = tree->shape;
    size_t first = 0, end;

    while (first < shape->len) {
        const tl_str *path = shape->paths[first];

        if (path->len == len && memcmp(path->data, name, len) == 0) {
            *out = tl_ref(tree->items[first]);
            return TL_OK;
        }
        if (is_below(path, name, len)) {
            break;
        }
        first++;
    }
    if (first == shape->len) {
        return no_path(ev, tree, name, len);
    }
    end = first; /* what lies below one name stands together */
    while (end < shape->len && is_below(shape->paths[end], name, len)) {
        end++;
    }
    return sub_tree(ev, tree, len, first, end - first, out);
}

tl_status tl_tree_index(tl_eval *ev, const tl_tree *tree, tl_value index,
                        tl_value *out)
{
    char text[24];
    int n;

    if (index.tag == TL_V_STR) {
        return tl_tree_get(ev, tree, index.str->data, index.str->len, out);
    }
    if (index.tag != TL_V_INT) {
        return tl_fail(ev->diag, TL_E0210,
                       "a tree is indexed by a path or a number, got %s",
                       tl_value_type_str(index).s);
    }
    n = snprintf(text, sizeof(text), "%lld", (long long)index.i);
    return tl_tree_get(ev, tree, text, (size_t)n, out);
}

tl_status tl_tree_items(tl_eval *ev, const tl_tree *tree, tl_value *out)
{
    tl_value list, pair[2], item;
    tl_status st;

    TL_TRY(tl_seq_new_take(&list, TL_V_LIST, NULL, 0, ev->diag));
    for (size_t i = 0; i < tree->shape->len; i++) {
        pair[0] = tl_ref(str_value(tree->shape->paths[i]));
        pair[1] = tl_ref(tree->items[i]);
        st = tl_seq_new_take(&item, TL_V_TUPLE, pair, 2, ev->diag);
        if (st == TL_OK) {
            st = tl_list_push_take(list.seq, item, ev->diag);
        }
        if (st != TL_OK) {
            tl_unref(list);
            return st;
        }
    }
    *out = list;
    return TL_OK;
}
