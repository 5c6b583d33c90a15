/* channels.c - normalisation of images and signals, channels on axis 1.
 *
 *   batch_norm(x, weight?, bias?) -> y, mean, rstd, var
 *   group_norm(x, weight?, bias?) -> y, mean, rstd
 *
 * x is [N, C, ..], weight and bias are [C]; f[0] is eps, attrs.flag: a second
 * input alone is the bias.  batch_norm normalises each channel over all other
 * axes; its statistics are [C], `var` is divided by n - 1 (for running
 * statistics), y by the biased one.  group_norm normalises each of i[0] groups
 * of neighbouring channels of each sample (0: each channel alone, instance
 * norm); its statistics are [N, groups].
 *
 * Ioffe, Szegedy, "Batch normalization" (2015), algorithm 1; Wu, He, "Group
 * normalization" (2018), eq. 1-2.  Statistics are those of the rows `mean` and
 * `var`, in f32 or f64. */
#include "runtime/op/channels.h"

#include "runtime/op/emit.h"
#include "runtime/op/rules.h"

/* Is in[i] one number a channel? */
static tl_status check_affine(tl_infer *cx, tl_op op, const tl_ttype *in,
                              int i)
{
    tl_status st =
        in[i].shape.rank == 1
            ? tl_infer_equal(cx, in[0].shape.dim[1], in[i].shape.dim[0])
            : TL_ERR_PROGRAM;

    return st != TL_ERR_PROGRAM
               ? st
               : tl_fail(cx->diag, TL_E0301,
                         "`%s` of %s has a weight and a bias for each of its "
                         "%s channels (axis 1), got %s",
                         tl_op_get(op)->name, tl_ttype_str(&in[0]).s,
                         tl_dim_str(in[0].shape.dim[1]).s,
                         tl_ttype_str(&in[i]).s);
}

/* The type of y. */
static tl_status infer_result(tl_infer *cx, tl_op op, const tl_ttype *in,
                              int nin, tl_ttype *out)
{
    tl_dtype dtype = in[0].dtype;

    if (in[0].shape.rank < 2) {
        return tl_fail(cx->diag, TL_E0304,
                       "`%s` takes [N, C, ..], with "
                       "channels on axis 1, got %s",
                       tl_op_get(op)->name, tl_ttype_str(&in[0]).s);
    }
    for (int i = 1; i < nin; i++) {
        TL_TRY(check_affine(cx, op, in, i));
        dtype = tl_dtype_join(dtype, in[i].dtype);
    }
    TL_TRY(tl_op_compute_dtype(op, dtype, &dtype, cx->diag));
    *out = (tl_ttype){dtype, in[0].shape};
    return TL_OK;
}

/* At least two values, those of `row`, for each variance? */
static tl_status check_count(tl_infer *cx, const char *what,
                             const tl_ttype *x, const tl_shape *row,
                             const char *help)
{
    tl_dim n;
    tl_status st;

    TL_TRY(tl_shape_numel_dim(cx, row, &n));
    st = tl_infer_le(cx, tl_dim_num(2), n);
    if (st != TL_ERR_PROGRAM) {
        return st;
    }
    (void)tl_fail(cx->diag, TL_E0419,
                  "%s takes the variance of %s %s a "
                  "channel; got %s",
                  what, tl_dim_str(n).s,
                  tl_dim_is_one(n) ? "value" : "values", tl_ttype_str(x).s);
    if (help) {
        tl_diag_help(cx->diag, "%s", help);
    }
    return TL_ERR_PROGRAM;
}

tl_status tl_infer_batch_norm(tl_infer *cx, tl_op op, const tl_ttype *in,
                              int nin, const tl_attrs *at, tl_ttype *out)
{
    tl_shape row;

    (void)at;
    TL_TRY(infer_result(cx, op, in, nin, out));
    row = in[0].shape;
    row.dim[1] = tl_dim_num(1);
    TL_TRY(check_count(cx, "batch norm", &in[0], &row,
                       "with mode(\"eval\", bn), or a larger batch"));
    for (int i = 1; i < 4; i++) {
        out[i].dtype = tl_dtype_arith(out[0].dtype);
        out[i].shape.rank = 1;
        out[i].shape.dim[0] = in[0].shape.dim[1];
    }
    return TL_OK;
}

tl_status tl_group_rows(tl_infer *cx, const tl_shape *x, int64_t groups,
                        tl_shape *out)
{
    tl_dim g = groups != 0 ? tl_dim_num(groups) : x->dim[1], n;
    tl_shape rest = *x;

    rest.dim[0] = tl_dim_num(1);
    TL_TRY(tl_dim_div(cx->dims, x->dim[1], g, &rest.dim[1], cx->diag));
    if (groups == 0) {
        rest.dim[1] = tl_dim_num(1);
    }
    TL_TRY(tl_shape_numel_dim(cx, &rest, &n));
    out->rank = 3;
    out->dim[0] = x->dim[0];
    out->dim[1] = g;
    out->dim[2] = n;
    return TL_OK;
}

/* Do the groups divide the channels? */
static tl_status check_groups(tl_infer *cx, const tl_ttype *x, int64_t groups)
{
    tl_dim rest;
    tl_status st;

    if (groups < 0) {
        return tl_fail(cx->diag, TL_E0411,
                       "the number of groups must be at "
                       "least 1, got %lld",
                       (long long)groups);
    }
    if (groups == 0) {
        return TL_OK;
    }
    TL_TRY(tl_dim_mod(cx->dims, x->shape.dim[1], tl_dim_num(groups), &rest,
                      cx->diag));
    st = tl_infer_equal(cx, rest, tl_dim_num(0));
    return st != TL_ERR_PROGRAM
               ? st
               : tl_fail(cx->diag, TL_E0411,
                         "%s channels of %s are not divided by %lld groups",
                         tl_dim_str(x->shape.dim[1]).s, tl_ttype_str(x).s,
                         (long long)groups);
}

tl_status tl_infer_group_norm(tl_infer *cx, tl_op op, const tl_ttype *in,
                              int nin, const tl_attrs *at, tl_ttype *out)
{
    tl_shape rows = {.rank = 2};

    TL_TRY(infer_result(cx, op, in, nin, out));
    TL_TRY(check_groups(cx, &in[0], at->i[0]));
    if (at->i[0] == 0) {
        tl_shape row = in[0].shape;

        row.dim[0] = row.dim[1] = tl_dim_num(1);
        TL_TRY(check_count(cx, "instance norm", &in[0], &row, NULL));
    }
    rows.dim[0] = in[0].shape.dim[0];
    rows.dim[1] = at->i[0] != 0 ? tl_dim_num(at->i[0]) : in[0].shape.dim[1];
    out[1] = out[2] = (tl_ttype){tl_dtype_arith(out[0].dtype), rows};
    return TL_OK;
}

/* g, x, mean, rstd, weight? -> dx, dweight, dbias */
tl_status tl_infer_channel_norm_grad(tl_infer *cx, tl_op op,
                                     const tl_ttype *in, int nin,
                                     const tl_attrs *at, tl_ttype *out)
{
    (void)cx;
    (void)op;
    (void)nin;
    (void)at;
    out[0] = in[1];
    out[1].dtype = in[1].dtype;
    out[1].shape.rank = 1;
    out[1].shape.dim[0] = in[1].shape.dim[1];
    out[2] = out[1];
    return TL_OK;
}

/* The gradients through y. */
static tl_status grad_of_y(tl_emit *e, const tl_grad_in *gi, tl_op grad,
                           tl_node *dx)
{
    int weight = gi->nin == 3 || (gi->nin == 2 && !gi->at->flag) ? 1 : 0;
    int bias = gi->nin == 3 ? 2 : gi->nin == 2 && gi->at->flag ? 1 : 0;
    tl_node in[5] = {gi->g[0], gi->in[0], gi->out[1], gi->out[2],
                     weight ? gi->in[weight] : NULL};
    tl_node res[3];

    TL_TRY(e->apply(e, grad, in, weight ? 5 : 4, gi->at, res));
    if (gi->want[0]) {
        dx[0] = res[0];
    }
    if (weight && gi->want[weight]) {
        dx[weight] = res[1];
    }
    if (bias && gi->want[bias]) {
        dx[bias] = res[2];
    }
    return TL_OK;
}

tl_status tl_grad_group_norm(tl_emit *e, const tl_grad_in *gi, tl_node *dx)
{
    return gi->g[0] ? grad_of_y(e, gi, TL_OP_group_norm_grad, dx) : TL_OK;
}

/* What comes back through a statistic of the row `stat`, added to *dx. */
static tl_status grad_of_stat(tl_emit *e, const tl_grad_in *gi, tl_op stat,
                              int which, tl_node *dx)
{
    tl_ttype type = *e->type(e, gi->in[0]);
    tl_grad_in red = {
        .op = stat, .in = gi->in, .nin = 1, .nout = 1, .want = gi->want};
    tl_attrs at;
    tl_node g, x, d = NULL;

    if (!gi->g[which] || !gi->want[0]) {
        return TL_OK;
    }
    tl_attrs_init(&at);
    at.axes = (uint16_t)(((1u << type.shape.rank) - 1) & ~2u);
    at.f[0] = 1;
    TL_TRY(tl_emit_cast(e, gi->in[0], tl_dtype_arith(type.dtype), &x));
    g = gi->g[which];
    red.at = &at;
    red.in = &x;
    red.g = &g;
    red.out = &gi->out[which];
    TL_TRY(tl_op_gradient(e, &red, &d));
    TL_TRY(tl_emit_cast(e, d, type.dtype, &d));
    if (*dx) {
        return tl_emit2(e, TL_OP_add, *dx, d, NULL, dx);
    }
    *dx = d;
    return TL_OK;
}

tl_status tl_grad_batch_norm(tl_emit *e, const tl_grad_in *gi, tl_node *dx)
{
    if (gi->g[0]) {
        TL_TRY(grad_of_y(e, gi, TL_OP_batch_norm_grad, dx));
    }
    TL_TRY(grad_of_stat(e, gi, TL_OP_mean, 1, &dx[0]));
    return grad_of_stat(e, gi, TL_OP_var, 3, &dx[0]);
}
