/* softmax.c - softmax and log_softmax along attrs.axis.
 *
 * Regions: forward and gradient are one kernel each, which computes as the
 * elementary operations of tl_op_decompose do.  A row of -inf alone has no
 * softmax (nan); masks of attention are not this operation's business. */
#include "runtime/op/emit.h"
#include "runtime/op/rules.h"

static tl_status check_axis(tl_infer *cx, tl_op op, const tl_ttype *in,
                            int axis)
{
    if (axis < 0 || axis >= in->shape.rank) {
        return tl_fail(cx->diag, TL_E0309, "`%s` of %s along axis %d",
                       tl_op_get(op)->name, tl_ttype_str(in).s, axis);
    }
    return TL_OK;
}

tl_status tl_infer_softmax(tl_infer *cx, tl_op op, const tl_ttype *in,
                           int nin, const tl_attrs *at, tl_ttype *out)
{
    TL_TRY(check_axis(cx, op, in, at->axis));
    return tl_infer_same(cx, op, in, nin, at, out);
}

tl_status tl_grad_softmax(tl_emit *e, const tl_grad_in *gi, tl_node *dx)
{
    return tl_emit2(e, gi->op == TL_OP_softmax ? TL_OP_softmax_grad
                                               : TL_OP_log_softmax_grad,
                    gi->out[0], gi->g[0], gi->at, &dx[0]);
}

/* Of z = y (g - s), s = sum(g y), with respect to y and g:
 * u (g - s) - g sum(u y), and y (u - sum(u y)). */
tl_status tl_grad_softmax_grad(tl_emit *e, const tl_grad_in *gi, tl_node *dx)
{
    uint16_t axes = (uint16_t)(1u << gi->at->axis);
    tl_node y = gi->in[0], g = gi->in[1], u = gi->g[0], s, t, a, b;

    if (gi->want[1]) {
        TL_TRY(tl_emit2(e, TL_OP_softmax_grad, y, u, gi->at, &dx[1]));
    }
    if (!gi->want[0]) {
        return TL_OK;
    }
    TL_TRY(tl_emit2(e, TL_OP_mul, g, y, NULL, &s));
    TL_TRY(tl_emit_reduce(e, TL_OP_sum, s, axes, true, &s));
    TL_TRY(tl_emit2(e, TL_OP_sub, g, s, NULL, &a));
    TL_TRY(tl_emit2(e, TL_OP_mul, u, a, NULL, &a));
    TL_TRY(tl_emit2(e, TL_OP_mul, u, y, NULL, &t));
    TL_TRY(tl_emit_reduce(e, TL_OP_sum, t, axes, true, &t));
    TL_TRY(tl_emit2(e, TL_OP_mul, g, t, NULL, &b));
    return tl_emit2(e, TL_OP_sub, a, b, NULL, &dx[0]);
}

/* Of z = g - exp(y) s, s = sum(g): u - sum(u exp(y)), and -u exp(y) s. */
tl_status tl_grad_log_softmax_grad(tl_emit *e, const tl_grad_in *gi,
                                   tl_node *dx)
{
    uint16_t axes = (uint16_t)(1u << gi->at->axis);
    tl_node y = gi->in[0], g = gi->in[1], u = gi->g[0], p, s, t;

    TL_TRY(tl_emit1(e, TL_OP_exp, y, NULL, &p));
    TL_TRY(tl_emit2(e, TL_OP_mul, u, p, NULL, &t));
    if (gi->want[1]) {
        TL_TRY(tl_emit_reduce(e, TL_OP_sum, t, axes, true, &s));
        TL_TRY(tl_emit2(e, TL_OP_sub, u, s, NULL, &dx[1]));
    }
    if (gi->want[0]) {
        TL_TRY(tl_emit_reduce(e, TL_OP_sum, g, axes, true, &s));
        TL_TRY(tl_emit2(e, TL_OP_mul, t, s, NULL, &t));
        TL_TRY(tl_emit1(e, TL_OP_neg, t, NULL, &dx[0]));
    }
    return TL_OK;
}
