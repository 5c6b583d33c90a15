/* update.c - one step of an optimiser for one parameter.
 *
 *   sgd_update(p, g) -> p
 *   momentum_update(p, g, m) -> p, m               attrs.flag: Nesterov
 *   adam_update(p, g, m, v, count) -> p, m, v      decay joins the gradient
 *   adamw_update(p, g, m, v, count) -> p, m, v     decay shrinks p (Loshchilov,
 *                                                  Hutter, 2019, algorithm 2)
 *   f[0] lr, f[1] decay, f[2] momentum or beta1, f[3] beta2, f[4] eps
 *
 * PyTorch's rules, number for number: arithmetic in f32 (f64 for f64), one
 * rounding of p at the end, bias corrections in f64 from `count` (i64[], the
 * number of this step, from 1).  State may be wider than p.  Results take the
 * storage of p, m and v when these are given away. */
#include "runtime/op/rules.h"

static tl_status check_same_shape(tl_infer *cx, tl_op op, const tl_ttype *in,
                                  int n)
{
    for (int i = 1; i < n; i++) {
        bool same = in[i].shape.rank == in[0].shape.rank;

        for (int k = 0; same && k < in[0].shape.rank; k++) {
            tl_status st = tl_infer_equal(cx, in[0].shape.dim[k],
                                          in[i].shape.dim[k]);

            same = st == TL_OK;
            TL_TRY(st == TL_ERR_PROGRAM ? TL_OK : st);
        }
        if (!same || !tl_dtype_is_float(in[i].dtype)) {
            return tl_fail(cx->diag, TL_E0512,
                           "`%s` of a parameter %s got %s as operand %d",
                           tl_op_get(op)->name, tl_ttype_str(&in[0]).s,
                           tl_ttype_str(&in[i]).s, i);
        }
    }
    return tl_dtype_is_float(in[0].dtype)
               ? TL_OK
               : tl_fail(cx->diag, TL_E0322, "`%s` needs a float parameter, "
                         "got %s", tl_op_get(op)->name,
                         tl_ttype_str(&in[0]).s);
}

tl_status tl_infer_update(tl_infer *cx, tl_op op, const tl_ttype *in, int nin,
                          const tl_attrs *at, tl_ttype *out)
{
    int nout = tl_op_get(op)->nout;

    (void)at;
    TL_TRY(check_same_shape(cx, op, in, nin == 5 ? 4 : nin));
    if (nin == 5 && (in[4].dtype != TL_i64 || in[4].shape.rank != 0)) {
        return tl_fail(cx->diag, TL_E0308,
                       "`%s` takes the number of the step as i64[], got %s",
                       tl_op_get(op)->name, tl_ttype_str(&in[4]).s);
    }
    out[0] = in[0];
    for (int i = 1; i < nout; i++) {
        out[i] = in[1 + i];
    }
    return TL_OK;
}
