/* shape_domain.c - tensors as dtype and shape. */
#include "interp/shape_impl.h"

#include "runtime/base/mem.h"
#include "runtime/base/vec.h"

static tl_infer *shape_infer(tl_eval *ev)
{
    return &tl_shape_state_of(ev)->infer;
}

static tl_status infer_nodes(tl_eval *ev, tl_op op, const tl_ttype *types,
                             int nin, const tl_attrs *at, tl_value *out)
{
    tl_ttype res[TL_MAX_OUTPUTS];
    int nout = tl_op_get(op)->nout;

    TL_TRY(tl_op_infer(shape_infer(ev), op, types, nin, at, res));
    for (int i = 0; i < nout; i++) {
        tl_status st = tl_dnode_new(&out[i], &res[i], 0, ev->diag);

        if (st != TL_OK) {
            tl_unref_all(out, (size_t)i);
            return st;
        }
    }
    return TL_OK;
}

static tl_status shape_apply(tl_eval *ev, tl_op op, tl_value *in, int nin,
                             const tl_attrs *at, tl_value *out)
{
    tl_ttype few[TL_MAX_INPUTS], *types = few;
    tl_status st = TL_OK;
    tl_attrs none;

    if (++tl_shape_state_of(ev)->ops > TL_SHAPE_MAX_OPS) {
        tl_unref_all(in, (size_t)nin);
        return tl_shape_give_up(ev);
    }
    if (nin > TL_MAX_INPUTS) {
        types = tl_calloc((size_t)nin, sizeof(*types));
        if (types == NULL) {
            tl_unref_all(in, (size_t)nin);
            return tl_fail_memory(ev->diag, "the shape pass",
                                  (size_t)nin * sizeof(*types));
        }
    }
    for (int i = 0; i < nin && st == TL_OK; i++) {
        st = tl_eval_type(ev, in[i], &types[i]);
    }
    if (at == NULL) {
        tl_attrs_init(&none);
        at = &none;
    }
    tl_unref_all(in, (size_t)nin); /* `out` may be `in` */
    if (st == TL_OK) {
        st = infer_nodes(ev, op, types, nin, at, out);
    }
    if (types != few) {
        tl_free(types);
    }
    return st;
}

static tl_status shape_read(tl_eval *ev, tl_value t, tl_value *out)
{
    (void)ev;
    (void)t;
    *out = tl_unknown();
    return TL_OK;
}

static tl_status shape_effect(tl_eval *ev, tl_host_effect what, bool *perform)
{
    *perform = false;
    return what == TL_HOST_RAISE ? tl_shape_give_up(ev) : TL_OK;
}

/* ---- cells ------------------------------------------------------------- */

static tl_value *find_overlay(tl_eval *ev, const tl_cell *cell)
{
    tl_overlay *o = &tl_shape_state_of(ev)->cells;

    for (size_t i = o->len; i-- > 0;) {
        if (o->items[i].cell == cell) {
            return &o->items[i].value;
        }
    }
    return NULL;
}

static tl_status declared_node(tl_eval *ev, const tl_cell *cell,
                               tl_value *out)
{
    tl_ttype type = {.dtype = cell->dtype};

    type.shape.rank = cell->rank;
    for (int i = 0; i < cell->rank; i++) {
        if (cell->size[i] >= 0) {
            type.shape.dim[i] = tl_dim_num(cell->size[i]);
        } else {
            TL_TRY(tl_dim_fresh(tl_shape_state_of(ev)->dims, "a cell",
                                &type.shape.dim[i], ev->diag));
        }
    }
    return tl_dnode_new(out, &type, 0, ev->diag);
}

static tl_status shape_cell_get(tl_eval *ev, tl_cell *cell, tl_value *out)
{
    const tl_value *v = find_overlay(ev, cell);

    if (v != NULL) {
        *out = tl_ref(*v);
    } else if (cell->value.tag != TL_V_EMPTY) {
        tl_cells_used(ev);
        *out = tl_ref(cell->value);
    } else if (cell->hold == TL_HOLD_TENSOR && cell->has_type) {
        return declared_node(ev, cell, out);
    } else if (tl_is_tensor(cell->init)) {
        *out = tl_ref(cell->init);
    } else {
        *out = tl_unknown();
    }
    return TL_OK;
}

static tl_status shape_cell_set(tl_eval *ev, tl_cell *cell, tl_value v)
{
    tl_overlay *o = &tl_shape_state_of(ev)->cells;
    tl_value *old = find_overlay(ev, cell);
    tl_overlay_item item = {.cell = cell, .value = v};

    if (old != NULL) {
        tl_drop(old);
        *old = v;
        return TL_OK;
    }
    tl_status st = TL_VEC_PUSH(o, item, ev->diag);

    if (st != TL_OK) {
        tl_unref(v);
        return st;
    }
    cell->obj.refs++;
    return TL_OK;
}

/* ---- grad blocks ------------------------------------------------------- */

static tl_status shape_grad_enter(tl_eval *ev, tl_gradblk *block)
{
    (void)ev;
    (void)block;
    return TL_OK;
}

static void shape_grad_abandon(tl_eval *ev, tl_gradblk *block)
{
    (void)ev;
    (void)block;
}

/* A gradient has the type of what it belongs to. */
static tl_status gradient_node(tl_eval *ev, tl_value of, tl_value *out)
{
    tl_ttype type;

    if (!tl_is_tensor(of)) {
        *out = tl_unknown();
        return TL_OK;
    }
    TL_TRY(tl_eval_type(ev, of, &type));
    return tl_dnode_new(out, &type, 0, ev->diag);
}

static tl_status shape_grad_leave(tl_eval *ev, tl_gradblk *b, tl_value loss,
                                  tl_value *grads, tl_value *finite)
{
    tl_ttype flag = {.dtype = TL_bool};
    size_t at = 0;

    (void)loss;
    for (size_t i = 0; i < b->ntargets; i++) {
        const tl_target *t = &b->targets[i];

        if (t->kind == TL_TARGET_VARIABLE) {
            TL_TRY(gradient_node(ev, t->leaf, &grads[at++]));
            continue;
        }
        for (size_t k = 0; k < t->shape->len; k++) {
            tl_value v = tl_empty();

            TL_TRY(shape_cell_get(ev, t->shape->cells[k], &v));
            tl_status st = gradient_node(ev, v, &grads[at++]);

            tl_unref(v);
            TL_TRY(st);
        }
    }
    if (b->scaler.tag == TL_V_MODULE) {
        return tl_dnode_new(finite, &flag, 0, ev->diag);
    }
    return TL_OK;
}

const tl_domain tl_domain_shape = {
    .name = "shape",
    .has_data = false,
    .infer = shape_infer,
    .apply = shape_apply,
    .read = shape_read,
    .branch = tl_shape_branch,
    .choose = tl_shape_choose,
    .join = tl_shape_join,
    .fold_loop = tl_shape_fold_loop,
    .loop = tl_shape_loop,
    .try_catch = tl_shape_try,
    .effect = shape_effect,
    .cell_get = shape_cell_get,
    .cell_set = shape_cell_set,
    .grad_enter = shape_grad_enter,
    .grad_leave = shape_grad_leave,
    .grad_abandon = shape_grad_abandon,
};
