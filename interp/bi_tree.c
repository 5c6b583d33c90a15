/* bi_tree.c - built-in functions on cells and trees. */
#include <string.h>

#include "interp/bi_walk.h"
#include "interp/builtin_fns.h"
#include "interp/domain.h"
#include "interp/eval_impl.h"
#include "interp/tree.h"
#include "runtime/base/mem.h"

/* ---- cell(net.w) ------------------------------------------------------- */

static tl_status no_cell(tl_eval *ev, const tl_ast *e, tl_value v)
{
    tl_fail_at(ev->diag, TL_E0210, e->span, "this is no cell but %s",
               tl_value_type_str(v).s);
    tl_diag_help(ev->diag, "cell(net.fc.weight) names a `param` or `buffer`");
    return TL_ERR_PROGRAM;
}

/* The cell in a field of the module whose code runs, or EMPTY. */
static tl_value own_field(tl_eval *ev, const tl_ast_name *name)
{
    tl_module *self = tl_ref_self(ev, &name->ref);
    tl_value v = self ? self->fields[name->ref.index] : tl_empty();

    return v.tag == TL_V_CELL ? tl_ref(v) : tl_empty();
}

tl_status tl_eval_cell(tl_eval *ev, const tl_ast *e, tl_value *out)
{
    tl_value v = tl_empty();

    if (e->kind == TL_AST_NAME && TL_AST(name, e)->ref.kind == TL_REF_FIELD) {
        v = own_field(ev, TL_AST(name, e));
    } else if (e->kind == TL_AST_ATTR) {
        const tl_ast_attr *a = TL_AST(attr, e);
        tl_value object;
        tl_cell *cell;

        TL_TRY(tl_eval_expr(ev, a->object, &object));
        if (object.tag == TL_V_MODULE) {
            cell = tl_module_cell_of(object.module, a->name);
            if (cell) {
                v = tl_ref((tl_value){.tag = TL_V_CELL, .cell = cell});
            }
        }
        tl_unref(object);
    }
    if (v.tag == TL_V_EMPTY) {
        TL_TRY(tl_eval_expr(ev, e, &v));
    }
    if (v.tag != TL_V_CELL && v.tag != TL_V_UNKNOWN) {
        tl_status st = no_cell(ev, e, v);

        tl_unref(v);
        return st;
    }
    *out = v;
    return TL_OK;
}

/* Reached where the path could not be seen: a value that holds a cell. */
tl_status tl_bi_cell(tl_eval *ev, const tl_builtin *self, tl_value *args,
                     tl_value *out)
{
    (void)self;
    if (args[0].tag != TL_V_CELL) {
        tl_fail(ev->diag, TL_E0210, "`cell` takes a path, got the value %s",
                tl_value_type_str(args[0]).s);
        tl_diag_help(ev->diag, "write the path in the call: "
                               "cell(net.fc.weight)");
        return TL_ERR_PROGRAM;
    }
    *out = tl_ref(args[0]);
    return TL_OK;
}

tl_status tl_bi_select(tl_eval *ev, const tl_builtin *self, tl_value *args,
                       tl_value *out)
{
    tl_select *s = tl_obj_new(TL_V_SELECT, sizeof(*s), ev->diag);
    tl_path_list hits;
    tl_status st;
    size_t n;

    (void)self;
    if (!s) {
        return TL_ERR_MEMORY;
    }
    s->root = tl_ref(args[0]);
    s->glob = tl_ref(args[1]).str;
    *out = tl_obj_value_take(s);
    st = tl_paths(ev, *out, TL_CELLS_PARAM, &hits);
    if (st != TL_OK) {
        tl_drop(out);
        return st;
    }
    n = hits.len;
    tl_path_list_fini(&hits);
    if (n == 0) {
        tl_buf text = {0};

        tl_buf_put_escaped(&text, s->glob->data, s->glob->len);
        if (strcmp(s->glob->data, "*") == 0) {
            tl_fail(ev->diag, TL_E0506, "%s has no parameters",
                    tl_value_type_str(args[0]).s);
        } else {
            tl_fail(ev->diag, TL_E0506, "no `param` has a path like \"%s\"",
                    tl_buf_str(&text));
        }
        tl_buf_fini(&text);
        tl_drop(out);
        return TL_ERR_PROGRAM;
    }
    return TL_OK;
}

/* ---- trees ------------------------------------------------------------- */

tl_status tl_bi_params(tl_eval *ev, const tl_builtin *self, tl_value *args,
                       tl_value *out)
{
    (void)self;
    return tl_tree_params(ev, args[0], out);
}

tl_status tl_bi_assign(tl_eval *ev, const tl_builtin *self, tl_value *args,
                       tl_value *out)
{
    (void)self;
    TL_TRY(args[0].tag == TL_V_MODULE && args[1].tag == TL_V_MODULE
               ? tl_module_assign(ev, args[0], args[1])
               : tl_tree_assign(ev, args[0], args[1]));
    *out = tl_none();
    return TL_OK;
}

tl_status tl_bi_zeros_like(tl_eval *ev, const tl_builtin *self,
                           tl_value *args, tl_value *out)
{
    tl_ttype type;

    (void)self;
    if (!tl_is_tensor(args[0]) && !tl_is_number(args[0])) {
        return tl_tree_zeros(ev, args[0], out);
    }
    if (tl_is_number(args[0])) {
        tl_value v = args[0];

        args[0] = tl_empty();
        TL_TRY(tl_eval_as_tensor_take(ev, v, &args[0]));
    }
    TL_TRY(tl_eval_type(ev, args[0], &type));
    if (args[1].tag == TL_V_DTYPE) {
        type.dtype = args[1].dtype;
    }
    return tl_zeros(ev, &type, out);
}

/* ---- map --------------------------------------------------------------- */

/* The trees of map(f, t, u, ...), one after the other; borrowed. */
static tl_status map_trees(tl_eval *ev, tl_value *args, tl_value *out)
{
    const tl_seq *more = args[2].seq;
    size_t n = more->len + 1;
    tl_value *trees = tl_calloc(n, sizeof(*trees));
    tl_status st;

    if (!trees) {
        return tl_fail_memory(ev->diag, "map", n * sizeof(*trees));
    }
    trees[0] = args[1];
    for (size_t i = 1; i < n; i++) {
        trees[i] = more->items[i - 1];
    }
    st = tl_tree_map(ev, args[0], trees, n, out);
    tl_free(trees);
    return st;
}

/* f of the i-th items, up to the shortest list. */
static tl_status map_item(tl_eval *ev, tl_value fn, const tl_value *lists,
                          size_t n, size_t i, tl_value *few, tl_value *out)
{
    for (size_t k = 0; k < n; k++) {
        few[k] = lists[k].seq->items[i]; /* borrowed */
    }
    return tl_eval_call_values(ev, fn, few, n, out);
}

static tl_status map_lists(tl_eval *ev, tl_value fn, const tl_value *lists,
                           size_t n, tl_value *few, tl_value *out)
{
    size_t len = lists[0].seq->len;
    tl_value result, v;

    for (size_t k = 1; k < n; k++) {
        len = lists[k].seq->len < len ? lists[k].seq->len : len;
    }
    TL_TRY(tl_seq_new_take(&result, TL_V_LIST, NULL, 0, ev->diag));
    for (size_t i = 0; i < len; i++) {
        tl_status st = map_item(ev, fn, lists, n, i, few, &v);

        if (st == TL_OK) {
            st = tl_list_push_take(result.seq, v, ev->diag);
        }
        if (st != TL_OK) {
            tl_unref(result);
            return st;
        }
    }
    *out = result;
    return TL_OK;
}

/* map(f, xs, *more) */
tl_status tl_bi_map(tl_eval *ev, const tl_builtin *self, tl_value *args,
                    tl_value *out)
{
    const tl_seq *more = args[2].seq;
    size_t n = more->len + 1, made = 0;
    tl_value *lists;
    tl_status st = TL_OK;

    (void)self;
    if (n > TL_INLINE_ARGS) {
        return tl_fail(ev->diag, TL_E0203,
                       "map takes at most %d lists or trees, got %zu",
                       TL_INLINE_ARGS, n);
    }
    if (args[1].tag == TL_V_TREE) {
        return map_trees(ev, args, out);
    }
    for (size_t i = 0; i < n; i++) {
        if (!tl_walk_known(ev, i == 0 ? args[1] : more->items[i - 1])) {
            *out = tl_unknown();
            return TL_OK;
        }
    }
    lists = tl_calloc(2 * n, sizeof(*lists)); /* and room for one call */
    if (!lists) {
        return tl_fail_memory(ev->diag, "map", 2 * n * sizeof(*lists));
    }
    while (made < n && st == TL_OK) {
        st = tl_walk_list(ev, made == 0 ? args[1] : more->items[made - 1],
                          &lists[made]);
        made += st == TL_OK;
    }
    if (st == TL_OK) {
        st = map_lists(ev, args[0], lists, n, lists + n, out);
    }
    tl_unref_all(lists, made);
    tl_free(lists);
    return st;
}

tl_status tl_bi_copy(tl_eval *ev, const tl_builtin *self, tl_value *args,
                     tl_value *out)
{
    (void)self;
    return tl_module_copy(ev, args[0], out);
}

tl_status tl_bi_clip_norm(tl_eval *ev, const tl_builtin *self, tl_value *args,
                          tl_value *out)
{
    double max = tl_number_f(args[1]);

    (void)self;
    if (!(max >= 0)) {
        return tl_fail(ev->diag, TL_E0416,
                       "clip_norm: max must be at least 0, got %g", max);
    }
    return tl_tree_clip_norm(ev, args[0], max, out);
}

tl_status tl_bi_tree_norm(tl_eval *ev, const tl_builtin *self, tl_value *args,
                          tl_value *out)
{
    (void)self;
    return tl_tree_norm(ev, args[0].tree, out);
}

tl_status tl_bi_tree_items(tl_eval *ev, const tl_builtin *self,
                           tl_value *args, tl_value *out)
{
    (void)self;
    return tl_tree_items(ev, args[0].tree, out);
}

tl_status tl_bi_tree_finite(tl_eval *ev, const tl_builtin *self,
                            tl_value *args, tl_value *out)
{
    tl_attrs at;

    (void)self;
    if (args[0].tag == TL_V_TREE && args[0].tree->finite.tag != TL_V_EMPTY) {
        *out = tl_ref(args[0].tree->finite);
        return TL_OK;
    }
    tl_attrs_init(&at);
    at.dtype = TL_bool;
    at.i[0] = 1;
    return tl_eval_op(ev, TL_OP_full, NULL, 0, &at, out);
}
