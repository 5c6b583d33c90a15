/* loss.c - cross entropy of logits and class numbers, forward and backward
 * in one pass each.
 *
 *   cross_entropy(logits [.., C], targets int [..], weight [C]?) -> loss, lse
 *   i[0] ignore_index, i[1] tl_loss_reduce, f[0] label smoothing e,
 *   flag: the rows are log-probabilities already, lse is 0 and no function of
 *   them (nll).
 *
 * With q_k = (1 - e) w_y [k = y] + e / C w_k a row costs sum q_k (lse - x_k);
 * `mean` divides by the sum of w_y over the rows that count.  Ignored rows
 * cost 0 and have gradient exactly 0; the mean of none is nan.  `lse`, the
 * log of the sum of exp of each row, is kept for the gradient. */
#include "runtime/op/emit.h"
#include "runtime/op/loss.h"
#include "runtime/op/rules.h"

static const char *name_of(const tl_attrs *at)
{
    return at->flag ? "nll" : "cross_entropy";
}

static tl_status fail_target(tl_infer *cx, const tl_ttype *in,
                             const tl_attrs *at)
{
    tl_shape want = in[0].shape;

    want.rank--;
    return tl_fail(cx->diag, TL_E0326,
                   "%s of %s %s needs targets of shape %s, got %s",
                   name_of(at), at->flag ? "log-probabilities" : "logits",
                   tl_ttype_str(&in[0]).s, tl_shape_str(&want).s,
                   tl_ttype_str(&in[1]).s);
}

static tl_status check_targets(tl_infer *cx, const tl_ttype *in,
                               const tl_attrs *at)
{
    const tl_shape *x = &in[0].shape, *y = &in[1].shape;

    TL_TRY(tl_infer_index(cx, at->flag ? "the targets of `nll`"
                                       : "the targets of `cross_entropy`",
                          &in[1]));
    if (x->rank < 1 || y->rank != x->rank - 1) {
        return x->rank < 1 ? tl_fail(cx->diag, TL_E0304,
                                     "%s needs an axis of classes, got %s",
                                     name_of(at), tl_ttype_str(&in[0]).s)
                           : fail_target(cx, in, at);
    }
    for (int i = 0; i < y->rank; i++) {
        tl_status st = tl_infer_equal(cx, x->dim[i], y->dim[i]);

        if (st != TL_OK) {
            return st == TL_ERR_PROGRAM ? fail_target(cx, in, at) : st;
        }
    }
    return TL_OK;
}

static tl_status check_weight(tl_infer *cx, const tl_ttype *in,
                              const tl_attrs *at)
{
    tl_dim classes = in[0].shape.dim[in[0].shape.rank - 1];
    tl_status st = in[2].shape.rank == 1
                       ? tl_infer_equal(cx, classes, in[2].shape.dim[0])
                       : TL_ERR_PROGRAM;

    if (st == TL_ERR_PROGRAM) {
        st = tl_fail(cx->diag, TL_E0326,
                     "the weight of %s has one number a class: wanted [%s], "
                     "got %s", name_of(at), tl_dim_str(classes).s,
                     tl_ttype_str(&in[2]).s);
    }
    return st;
}

tl_status tl_infer_cross_entropy(tl_infer *cx, tl_op op, const tl_ttype *in,
                                 int nin, const tl_attrs *at, tl_ttype *out)
{
    tl_dtype dtype = nin > 2 ? tl_dtype_join(in[0].dtype, in[2].dtype)
                             : in[0].dtype;

    TL_TRY(check_targets(cx, in, at));
    TL_TRY(nin > 2 ? check_weight(cx, in, at) : TL_OK);
    TL_TRY(tl_op_compute_dtype(op, dtype, &dtype, cx->diag));
    out[0] = (tl_ttype){dtype, in[1].shape};
    out[1] = (tl_ttype){tl_dtype_arith(dtype), in[1].shape};
    if (at->i[1] != TL_LOSS_NONE) {
        out[0].shape.rank = 0;
    }
    return TL_OK;
}

tl_status tl_grad_cross_entropy(tl_emit *e, const tl_grad_in *gi, tl_node *dx)
{
    tl_node in[5] = {gi->g[0], gi->in[0], gi->in[1], gi->out[1], NULL};

    if (gi->nin > 2) {
        if (gi->want[2]) {
            return tl_fail(e->infer->diag, TL_E0511,
                           "the weight of `%s` has no gradient",
                           name_of(gi->at));
        }
        in[4] = gi->in[2];
    }
    if (!gi->g[0] || !gi->want[0]) {
        return TL_OK;
    }
    return e->apply(e, TL_OP_cross_entropy_grad, in, gi->nin + 2, gi->at,
                    &dx[0]);
}

tl_status tl_infer_cross_entropy_grad(tl_infer *cx, tl_op op,
                                      const tl_ttype *in, int nin,
                                      const tl_attrs *at, tl_ttype *out)
{
    (void)cx;
    (void)op;
    (void)nin;
    (void)at;
    *out = in[1];
    return TL_OK;
}
