/* norm.c - normalisation of rows: layer norm and RMS norm.
 *
 *   layer_norm(x, weight?, bias?) -> y, mean, rstd
 *   rms_norm(x, weight?) -> y, rstd
 *   i[0] trailing axes are normalised, f[0] is eps, attrs.flag: a second
 *   input alone is the bias.
 *
 * Ba, Kiros, Hinton, "Layer normalization" (2016), eq. 4: with x^ = (x - mean)
 * rstd, rstd = 1 / sqrt(var + eps), y = x^ w + b.  Statistics are those of
 * the rows `mean` and `var`, with correction 0, in f32 or f64.
 *
 * Zhang, Sennrich, "Root mean square layer normalization" (2019), eq. 4: with
 * rstd = 1 / sqrt(mean(x x) + eps), y = x rstd w. */
#include "runtime/op/emit.h"
#include "runtime/op/rules.h"

/* Which inputs are there. */
typedef struct parts {
    int weight, bias; /* -1: absent */
} parts;

static parts find_parts(const tl_attrs *at, int nin)
{
    parts p = {-1, -1};

    if (nin == 2) {
        *(at->flag ? &p.bias : &p.weight) = 1;
    } else if (nin == 3) {
        p = (parts){1, 2};
    }
    return p;
}

static tl_status check_affine(tl_infer *cx, tl_op op, const tl_ttype *in,
                              int i, int axes)
{
    const tl_shape *x = &in[0].shape, *w = &in[i].shape;
    bool same = w->rank == axes;

    for (int k = 0; same && k < axes; k++) {
        tl_status st = tl_infer_equal(cx, x->dim[x->rank - axes + k],
                                      w->dim[k]);

        same = st == TL_OK;
        TL_TRY(st == TL_ERR_PROGRAM ? TL_OK : st);
    }
    return same ? TL_OK
                : tl_fail(cx->diag, TL_E0301,
                          "%s over the last %d axes of %s has weights "
                          "of that shape, got %s", tl_op_get(op)->name, axes,
                          tl_ttype_str(&in[0]).s, tl_ttype_str(&in[i]).s);
}

/* The type of y, and of what there is one a row. */
static tl_status infer_rows(tl_infer *cx, tl_op op, const tl_ttype *in,
                            int nin, const tl_attrs *at, tl_ttype *y,
                            tl_ttype *stat)
{
    int axes = (int)at->i[0];
    tl_dtype dtype = in[0].dtype;
    tl_shape rows = in[0].shape;

    if (axes < 1 || axes > rows.rank) {
        return tl_fail(cx->diag, TL_E0309, "%s over the last %d axes of %s",
                       tl_op_get(op)->name, axes, tl_ttype_str(&in[0]).s);
    }
    for (int i = 1; i < nin; i++) {
        TL_TRY(check_affine(cx, op, in, i, axes));
        dtype = tl_dtype_join(dtype, in[i].dtype);
    }
    TL_TRY(tl_op_compute_dtype(op, dtype, &dtype, cx->diag));
    rows.rank -= axes;
    *y = (tl_ttype){dtype, in[0].shape};
    *stat = (tl_ttype){tl_dtype_arith(dtype), rows};
    return TL_OK;
}

tl_status tl_infer_layer_norm(tl_infer *cx, tl_op op, const tl_ttype *in,
                              int nin, const tl_attrs *at, tl_ttype *out)
{
    TL_TRY(infer_rows(cx, op, in, nin, at, &out[0], &out[1]));
    out[2] = out[1];
    return TL_OK;
}

/* mean or rstd with the normalised axes as size 1. */
static tl_status kept(tl_emit *e, tl_node stat, const tl_shape *x, int axes,
                      tl_node *out)
{
    tl_shape shape = *x;

    for (int i = 0; i < axes; i++) {
        shape.dim[x->rank - 1 - i] = tl_dim_num(1);
    }
    return tl_emit_shaped(e, TL_OP_reshape, stat, &shape, out);
}

/* Sum of g, or of g x^, over the rows. */
static tl_status affine_gradient(tl_emit *e, const tl_grad_in *gi,
                                 bool weight, int which, tl_node *dx)
{
    tl_ttype x = *e->type(e, gi->in[0]), w = *e->type(e, gi->in[which]);
    tl_dtype dtype = tl_dtype_arith(x.dtype);
    int axes = (int)gi->at->i[0];
    tl_node g, xhat, stat;

    TL_TRY(tl_emit_cast(e, gi->g[0], dtype, &g));
    if (weight) {
        TL_TRY(tl_emit_cast(e, gi->in[0], dtype, &xhat));
        TL_TRY(kept(e, gi->out[1], &x.shape, axes, &stat));
        TL_TRY(tl_emit2(e, TL_OP_sub, xhat, stat, NULL, &xhat));
        TL_TRY(kept(e, gi->out[2], &x.shape, axes, &stat));
        TL_TRY(tl_emit2(e, TL_OP_mul, xhat, stat, NULL, &xhat));
        TL_TRY(tl_emit2(e, TL_OP_zmul, g, xhat, NULL, &g));
    }
    TL_TRY(tl_emit_sum_to(e, g, &w.shape, &g));
    return tl_emit_cast(e, g, w.dtype, dx);
}

tl_status tl_grad_layer_norm(tl_emit *e, const tl_grad_in *gi, tl_node *dx)
{
    parts p = find_parts(gi->at, gi->nin);
    tl_node in[5] = {gi->g[0], gi->in[0], gi->out[1], gi->out[2],
                     p.weight > 0 ? gi->in[p.weight] : NULL};

    if (!gi->g[0]) {
        return TL_OK;
    }
    if (p.bias > 0 && gi->want[p.bias]) {
        TL_TRY(affine_gradient(e, gi, false, p.bias, &dx[p.bias]));
    }
    if (p.weight > 0 && gi->want[p.weight]) {
        TL_TRY(affine_gradient(e, gi, true, p.weight, &dx[p.weight]));
    }
    return gi->want[0] ? e->apply(e, TL_OP_layer_norm_grad, in,
                                  p.weight > 0 ? 5 : 4, gi->at, &dx[0])
                       : TL_OK;
}

tl_status tl_infer_layer_norm_grad(tl_infer *cx, tl_op op, const tl_ttype *in,
                                   int nin, const tl_attrs *at, tl_ttype *out)
{
    (void)cx;
    (void)op;
    (void)nin;
    (void)at;
    *out = in[1];
    return TL_OK;
}

/* ---- rms_norm ------------------------------------------------------------ */

tl_status tl_infer_rms_norm(tl_infer *cx, tl_op op, const tl_ttype *in,
                            int nin, const tl_attrs *at, tl_ttype *out)
{
    return infer_rows(cx, op, in, nin, at, &out[0], &out[1]);
}

/* g, x, rstd, weight? -> dx, dweight (of the shape of the rows) */
tl_status tl_infer_rms_norm_grad(tl_infer *cx, tl_op op, const tl_ttype *in,
                                 int nin, const tl_attrs *at, tl_ttype *out)
{
    int axes = (int)at->i[0];
    const tl_shape *x = &in[1].shape;

    (void)cx;
    (void)op;
    (void)nin;
    out[0] = in[1];
    out[1].dtype = in[1].dtype;
    out[1].shape.rank = axes;
    for (int i = 0; i < axes; i++) {
        out[1].shape.dim[i] = x->dim[x->rank - axes + i];
    }
    return TL_OK;
}

tl_status tl_grad_rms_norm(tl_emit *e, const tl_grad_in *gi, tl_node *dx)
{
    tl_node in[4] = {gi->g[0], gi->in[0], gi->out[1],
                     gi->nin > 1 ? gi->in[1] : NULL};
    tl_node res[2];

    if (!gi->g[0]) {
        return TL_OK;
    }
    TL_TRY(e->apply(e, TL_OP_rms_norm_grad, in, gi->nin > 1 ? 4 : 3, gi->at,
                    res));
    for (int i = 0; i < gi->nin; i++) {
        if (gi->want[i]) {
            dx[i] = res[i];
        }
    }
    return TL_OK;
}
