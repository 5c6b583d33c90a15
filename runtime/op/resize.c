/* resize.c - interpolation: shape and gradient rules.
 *
 * Each axis is a matrix with 1, 2 or 4 entries a row, so the gradient is
 * linear as well and every order exists. */
#include "runtime/op/resize.h"

#include "runtime/op/emit.h"
#include "runtime/op/rules.h"

tl_status tl_infer_resize(tl_infer *cx, tl_op op, const tl_ttype *in, int nin,
                          const tl_attrs *at, tl_ttype *out)
{
    int n = tl_resize_axes(at), first = in[0].shape.rank - n;
    tl_ttype res = in[0];

    (void)nin;
    if (first < 0) {
        return tl_fail(cx->diag, TL_E0304,
                       "`interpolate` over %d axes needs "
                       "as many, got %s",
                       n, tl_ttype_str(&in[0]).s);
    }
    TL_TRY(tl_op_compute_dtype(op, in[0].dtype, &res.dtype, cx->diag));
    for (int i = 0; i < n; i++) {
        tl_dim was = in[0].shape.dim[first + i];

        if ((tl_dim_is_num(was) && tl_dim_value(was) < 1) ||
            (tl_dim_is_num(at->dims[i]) && tl_dim_value(at->dims[i]) < 1)) {
            return tl_fail(cx->diag, TL_E0306,
                           "`interpolate` makes size %s "
                           "of %s on axis %d; both must be at least 1",
                           tl_dim_str(at->dims[i]).s, tl_dim_str(was).s,
                           first + i);
        }
        res.shape.dim[first + i] = at->dims[i];
    }
    *out = res;
    return TL_OK;
}

tl_status tl_infer_resize_grad(tl_infer *cx, tl_op op, const tl_ttype *in,
                               int nin, const tl_attrs *at, tl_ttype *out)
{
    int n = tl_resize_axes(at);

    (void)cx;
    (void)op;
    (void)nin;
    *out = in[0];
    for (int i = 0; i < n; i++) {
        out->shape.dim[out->shape.rank - n + i] = at->dims[n + i];
    }
    return TL_OK;
}

tl_status tl_grad_resize(tl_emit *e, const tl_grad_in *gi, tl_node *dx)
{
    const tl_shape *s = &e->type(e, gi->in[0])->shape;
    int n = tl_resize_axes(gi->at);
    tl_attrs at;

    tl_attrs_copy(&at, gi->at);
    at.ndims = (uint16_t)(2 * n);
    for (int i = 0; i < n; i++) {
        at.dims[n + i] = s->dim[s->rank - n + i];
    }
    return tl_emit1(e, TL_OP_resize_grad, gi->g[0], &at, &dx[0]);
}

tl_status tl_grad_resize_grad(tl_emit *e, const tl_grad_in *gi, tl_node *dx)
{
    return tl_emit1(e, TL_OP_resize, gi->g[0], gi->at, &dx[0]);
}
