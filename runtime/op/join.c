/* join.c - copy, cat, slice_put, tril and triu: moving elements by position.
 *
 *   copy       a row-major copy
 *   cat        the inputs one after the other along attrs.axis
 *   slice_put  input 0 with the elements of a slice (attrs as in view.h)
 *              replaced by input 1, which broadcasts
 *   tril, triu the elements on and below (above) diagonal i[0], else 0 */
#include "runtime/op/emit.h"
#include "runtime/op/rules.h"
#include "runtime/op/view.h"

tl_status tl_grad_copy(tl_emit *e, const tl_grad_in *gi, tl_node *dx)
{
    (void)e;
    dx[0] = gi->g[0];
    return TL_OK;
}

/* ---- cat --------------------------------------------------------------- */

/* Add input `i` to the joined type. */
static tl_status join_part(tl_infer *cx, const tl_ttype *in, int i, int axis,
                           tl_ttype *res)
{
    const tl_ttype *part = &in[i];

    if (part->shape.rank != in[0].shape.rank) {
        return tl_fail(cx->diag, TL_E0311,
                       "input %d is %s, which has not as many axes as %s", i,
                       tl_ttype_str(part).s, tl_ttype_str(&in[0]).s);
    }
    for (int k = 0; k < part->shape.rank; k++) {
        tl_dim have = part->shape.dim[k], want = in[0].shape.dim[k];
        tl_status st = k == axis ? TL_OK : tl_infer_equal(cx, have, want);

        if (st == TL_ERR_PROGRAM) {
            st = tl_fail(cx->diag, TL_E0325,
                         "dimension %d: %s against %s in input %d", k,
                         tl_dim_str(want).s, tl_dim_str(have).s, i);
            tl_infer_example(cx, want, have);
        }
        TL_TRY(st);
    }
    res->dtype = tl_dtype_join(res->dtype, part->dtype);
    return tl_dim_add(cx->dims, res->shape.dim[axis], part->shape.dim[axis],
                      &res->shape.dim[axis], cx->diag);
}

tl_status tl_infer_cat(tl_infer *cx, tl_op op, const tl_ttype *in, int nin,
                       const tl_attrs *at, tl_ttype *out)
{
    tl_ttype res;

    (void)op;
    if (nin == 0) {
        return tl_fail(cx->diag, TL_E0311, "nothing to join");
    }
    res = in[0];
    if (at->axis < 0 || at->axis >= res.shape.rank) {
        return tl_fail(cx->diag, TL_E0309, "cat of %s along axis %d",
                       tl_ttype_str(&res).s, at->axis);
    }
    for (int i = 1; i < nin; i++) {
        TL_TRY(join_part(cx, in, i, at->axis, &res));
    }
    *out = res;
    return TL_OK;
}

tl_status tl_grad_cat(tl_emit *e, const tl_grad_in *gi, tl_node *dx)
{
    tl_dim start = tl_dim_num(0);
    int axis = gi->at->axis;

    for (int i = 0; i < gi->nin; i++) {
        const tl_ttype *type = e->type(e, gi->in[i]);
        tl_dim size = type->shape.dim[axis];
        tl_dtype dtype = type->dtype;

        if (gi->want[i]) {
            TL_TRY(tl_emit_slice_axis(e, gi->g[0], axis, start, size,
                                      &dx[i]));
            TL_TRY(tl_emit_cast(e, dx[i], dtype, &dx[i]));
        }
        TL_TRY(tl_dim_add(e->infer->dims, start, size, &start,
                          e->infer->diag));
    }
    return TL_OK;
}

/* ---- slice_put --------------------------------------------------------- */

tl_status tl_infer_slice_put(tl_infer *cx, tl_op op, const tl_ttype *in,
                             int nin, const tl_attrs *at, tl_ttype *out)
{
    tl_ttype region;
    tl_shape both;

    TL_TRY(tl_infer_slice(cx, op, in, nin, at, &region));
    if (in[1].dtype != in[0].dtype) {
        return tl_fail(cx->diag, TL_E0308, "cannot put %s elements into %s",
                       tl_dtype_name(in[1].dtype), tl_ttype_str(&in[0]).s);
    }
    TL_TRY(tl_shape_broadcast(cx, &both, &region.shape, &in[1].shape));
    if (!tl_shape_same(&both, &region.shape)) {
        return tl_fail(cx->diag, TL_E0313, "%s does not fit the elements %s",
                       tl_ttype_str(&in[1]).s, tl_ttype_str(&region).s);
    }
    *out = in[0];
    return TL_OK;
}

tl_status tl_grad_slice_put(tl_emit *e, const tl_grad_in *gi, tl_node *dx)
{
    tl_shape shape = e->type(e, gi->in[1])->shape;
    tl_dtype dtype = e->type(e, gi->g[0])->dtype;
    tl_node part, zero;

    if (gi->want[1]) {
        TL_TRY(tl_emit1(e, TL_OP_slice, gi->g[0], gi->at, &part));
        TL_TRY(tl_emit_sum_to(e, part, &shape, &dx[1]));
    }
    if (gi->want[0]) {
        TL_TRY(tl_emit_const(e, 0, dtype, &zero));
        TL_TRY(tl_emit2(e, TL_OP_slice_put, gi->g[0], zero, gi->at, &dx[0]));
    }
    return TL_OK;
}

/* ---- tril and triu ----------------------------------------------------- */

tl_status tl_infer_tri(tl_infer *cx, tl_op op, const tl_ttype *in, int nin,
                       const tl_attrs *at, tl_ttype *out)
{
    (void)nin;
    (void)at;
    if (in->shape.rank < 2) {
        return tl_fail(cx->diag, TL_E0304,
                       "`%s` needs 2 axes or more, got %s",
                       tl_op_get(op)->name, tl_ttype_str(in).s);
    }
    *out = *in;
    return TL_OK;
}

tl_status tl_grad_tri(tl_emit *e, const tl_grad_in *gi, tl_node *dx)
{
    return tl_emit1(e, gi->op, gi->g[0], gi->at, &dx[0]);
}
