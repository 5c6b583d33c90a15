/* bi_tree.c - built-in functions on cells and trees. */
#include "interp/builtin_fns.h"
#include "interp/call.h"
#include "interp/domain.h"
#include "interp/tree.h"

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

    if (e->kind == TL_AST_NAME &&
        TL_AST(name, e)->ref.kind == TL_REF_FIELD) {
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
        tl_fail(ev->diag, TL_E0506, "no `param` has a path like \"%s\"",
                tl_buf_str(&text));
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
    TL_TRY(tl_tree_assign(ev, args[0], args[1]));
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
    if (args[0].tree->finite.tag != TL_V_EMPTY) {
        *out = tl_ref(args[0].tree->finite);
        return TL_OK;
    }
    tl_attrs_init(&at);
    at.dtype = TL_bool;
    at.i[0] = 1;
    return tl_eval_op(ev, TL_OP_full, NULL, 0, &at, out);
}
