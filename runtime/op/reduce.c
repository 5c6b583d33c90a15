/* reduce.c - rules of reductions, scans, casts and draws.
 *
 * Each rule builds elementary operations, so that it has derivatives itself.
 * "Kept" means with the reduced axes as size 1: such a tensor broadcasts
 * against the input.  f16 and bf16 are computed in f32 and rounded once. */
#include "runtime/op/grad.h"
#include "runtime/op/rules.h"

/* A reduction's operands, ready for a rule. */
typedef struct red {
    tl_emit *e;
    tl_shape shape; /* of x */
    uint16_t axes;
    tl_dtype dtype;  /* to compute in */
    tl_dtype xdtype; /* of x */
    tl_node x, y, g; /* y, g kept; x, y only if saved */
} red;

static tl_status kept(tl_emit *e, tl_node a, const tl_shape *x, uint16_t axes,
                      tl_dtype dtype, tl_node *out)
{
    tl_shape shape;

    tl_shape_reduce(&shape, x, axes, true);
    TL_TRY(tl_emit_shaped(e, TL_OP_reshape, a, &shape, &a));
    return tl_emit_cast(e, a, dtype, out);
}

static tl_status red_open(red *r, tl_emit *e, const tl_grad_in *gi)
{
    const tl_op_info *row = tl_op_get(gi->op);
    tl_ttype x = *e->type(e, gi->in[0]);

    *r = (red){.e = e, .shape = x.shape, .axes = gi->at->axes};
    r->xdtype = x.dtype;
    r->dtype = tl_dtype_arith(x.dtype);
    TL_TRY(kept(e, gi->g[0], &x.shape, r->axes, r->dtype, &r->g));
    if (row->saves_in != 0) {
        TL_TRY(tl_emit_cast(e, gi->in[0], r->dtype, &r->x));
    }
    if (row->saves_out != 0) {
        TL_TRY(kept(e, gi->out[0], &x.shape, r->axes, r->dtype, &r->y));
    }
    return TL_OK;
}

/* The gradient `d`, of the shape of x or kept, as the input's type. */
static tl_status red_close(const red *r, tl_node d, tl_node *dx)
{
    TL_TRY(tl_emit_cast(r->e, d, r->xdtype, &d));
    return tl_emit_shaped(r->e, TL_OP_expand, d, &r->shape, dx);
}

/* Nothing flows: no upstream gradient, not wanted, or x has none. */
static bool idle(tl_emit *e, const tl_grad_in *gi, int which)
{
    return gi->g[0] == NULL || !gi->want[which] ||
           !tl_dtype_is_float(e->type(e, gi->in[which])->dtype);
}

/* Number of elements that one result is made of, minus `less`; a node. */
static tl_status count(const red *r, double less, tl_node *out)
{
    double n = 1;
    bool known = true;
    tl_node ones, c;

    for (int i = 0; i < r->shape.rank; i++) {
        if ((r->axes >> i & 1) == 0) {
            continue;
        }
        known = known && tl_dim_is_num(r->shape.dim[i]);
        n *= known ? (double)tl_dim_value(r->shape.dim[i]) : 1;
    }
    if (known) {
        return tl_emit_const(r->e, n - less, r->dtype, out);
    }
    TL_TRY(tl_emit_const(r->e, 1, r->dtype, &ones));
    TL_TRY(tl_emit_shaped(r->e, TL_OP_expand, ones, &r->shape, &ones));
    TL_TRY(tl_emit_reduce(r->e, TL_OP_sum, ones, r->axes, true, &ones));
    TL_TRY(tl_emit_const(r->e, less, r->dtype, &c));
    return tl_emit2(r->e, TL_OP_sub, ones, c, NULL, out);
}

tl_status tl_grad_sum(tl_emit *e, const tl_grad_in *gi, tl_node *dx)
{
    red r;

    if (idle(e, gi, 0)) {
        return TL_OK;
    }
    TL_TRY(red_open(&r, e, gi));
    return red_close(&r, r.g, dx);
}

tl_status tl_grad_mean(tl_emit *e, const tl_grad_in *gi, tl_node *dx)
{
    red r;
    tl_node n, d;

    if (idle(e, gi, 0)) {
        return TL_OK;
    }
    TL_TRY(red_open(&r, e, gi));
    TL_TRY(count(&r, 0, &n));
    TL_TRY(tl_emit2(e, TL_OP_div, r.g, n, NULL, &d));
    return red_close(&r, d, dx);
}

/* x - mean(x) */
static tl_status centred(const red *r, tl_node *out)
{
    tl_node mean;

    TL_TRY(tl_emit_reduce(r->e, TL_OP_mean, r->x, r->axes, true, &mean));
    return tl_emit2(r->e, TL_OP_sub, r->x, mean, NULL, out);
}

/* zmul(g, d), but 0 where y == at: a kink. */
static tl_status except_at(const red *r, double at, tl_node d, tl_node *out)
{
    tl_node c, zero, hit;

    TL_TRY(tl_emit_const(r->e, at, r->dtype, &c));
    TL_TRY(tl_emit_const(r->e, 0, r->dtype, &zero));
    TL_TRY(tl_emit2(r->e, TL_OP_eq, r->y, c, NULL, &hit));
    TL_TRY(tl_emit3(r->e, TL_OP_where, hit, zero, d, &d));
    return tl_emit2(r->e, TL_OP_zmul, r->g, d, NULL, out);
}

/* 2 (x - mean) / (n - correction) */
tl_status tl_grad_var(tl_emit *e, const tl_grad_in *gi, tl_node *dx)
{
    red r;
    tl_node n, d;

    if (idle(e, gi, 0)) {
        return TL_OK;
    }
    TL_TRY(red_open(&r, e, gi));
    TL_TRY(count(&r, gi->at->f[0], &n));
    TL_TRY(centred(&r, &d));
    TL_TRY(tl_emit2(e, TL_OP_add, d, d, NULL, &d));
    TL_TRY(tl_emit2(e, TL_OP_div, d, n, NULL, &d));
    TL_TRY(tl_emit2(e, TL_OP_zmul, r.g, d, NULL, &d));
    return red_close(&r, d, dx);
}

/* (x - mean) / ((n - correction) y), 0 where y is 0 */
tl_status tl_grad_std(tl_emit *e, const tl_grad_in *gi, tl_node *dx)
{
    red r;
    tl_node n, d;

    if (idle(e, gi, 0)) {
        return TL_OK;
    }
    TL_TRY(red_open(&r, e, gi));
    TL_TRY(count(&r, gi->at->f[0], &n));
    TL_TRY(centred(&r, &d));
    TL_TRY(tl_emit2(e, TL_OP_mul, n, r.y, NULL, &n));
    TL_TRY(tl_emit2(e, TL_OP_div, d, n, NULL, &d));
    TL_TRY(except_at(&r, 0, d, &d));
    return red_close(&r, d, dx);
}

/* x / y, 0 where y is 0 */
tl_status tl_grad_norm(tl_emit *e, const tl_grad_in *gi, tl_node *dx)
{
    red r;
    tl_node d;

    if (idle(e, gi, 0)) {
        return TL_OK;
    }
    TL_TRY(red_open(&r, e, gi));
    TL_TRY(tl_emit2(e, TL_OP_div, r.x, r.y, NULL, &d));
    TL_TRY(except_at(&r, 0, d, &d));
    return red_close(&r, d, dx);
}

/* exp(x - y), 0 where y is -inf */
tl_status tl_grad_logsumexp(tl_emit *e, const tl_grad_in *gi, tl_node *dx)
{
    red r;
    tl_node d;

    if (idle(e, gi, 0)) {
        return TL_OK;
    }
    TL_TRY(red_open(&r, e, gi));
    TL_TRY(tl_emit2(e, TL_OP_sub, r.x, r.y, NULL, &d));
    TL_TRY(tl_emit1(e, TL_OP_exp, d, NULL, &d));
    TL_TRY(except_at(&r, -(double)__builtin_inf(), d, &d));
    return red_close(&r, d, dx);
}

/* ---- max and min ------------------------------------------------------- */

/* Whole: equal elements share.  g / count where x == y. */
static tl_status shared(const red *r, tl_node zero, tl_node *out)
{
    tl_emit *e = r->e;
    tl_node hit, n, d;

    TL_TRY(tl_emit2(e, TL_OP_eq, r->x, r->y, NULL, &hit));
    TL_TRY(tl_emit_reduce(e, TL_OP_sum, hit, r->axes, true, &n));
    TL_TRY(tl_emit_cast(e, n, r->dtype, &n));
    TL_TRY(tl_emit2(e, TL_OP_div, r->g, n, NULL, &d));
    return tl_emit3(e, TL_OP_where, hit, d, zero, out);
}

/* Number of each element among those of its result, row-major; its shape has
 * size 1 on the axes that stay. */
static tl_status positions(const red *r, tl_node *out)
{
    tl_shape shape = r->shape;
    tl_attrs at;

    for (int i = 0; i < shape.rank; i++) {
        if ((r->axes >> i & 1) == 0) {
            shape.dim[i] = tl_dim_num(1);
        }
    }
    tl_attrs_init(&at);
    at.dtype = TL_i64;
    at.i[1] = 1;
    at.ndims = 1;
    TL_TRY(tl_shape_numel_dim(r->e->infer, &shape, &at.dims[0]));
    TL_TRY(r->e->apply(r->e, TL_OP_arange, NULL, 0, &at, out));
    return tl_emit_shaped(r->e, TL_OP_reshape, *out, &shape, out);
}

/* With axes: the first of equals takes all. */
static tl_status to_first(const red *r, tl_op op, tl_node zero, tl_node *out)
{
    tl_op arg = op == TL_OP_max ? TL_OP_argmax : TL_OP_argmin;
    tl_emit *e = r->e;
    tl_node first, all, hit;

    TL_TRY(tl_emit_reduce(e, arg, r->x, r->axes, true, &first));
    TL_TRY(positions(r, &all));
    TL_TRY(tl_emit2(e, TL_OP_eq, all, first, NULL, &hit));
    return tl_emit3(e, TL_OP_where, hit, r->g, zero, out);
}

tl_status tl_grad_extremum(tl_emit *e, const tl_grad_in *gi, tl_node *dx)
{
    red r;
    tl_node zero, d;

    if (idle(e, gi, 0)) {
        return TL_OK;
    }
    TL_TRY(red_open(&r, e, gi));
    TL_TRY(tl_emit_const(e, 0, r.dtype, &zero));
    TL_TRY(gi->at->flag ? shared(&r, zero, &d)
                        : to_first(&r, gi->op, zero, &d));
    return red_close(&r, d, dx);
}

/* ---- products ---------------------------------------------------------- */

static void along(tl_attrs *at, int axis, bool reverse)
{
    tl_attrs_init(at);
    at->axis = (int8_t)axis;
    at->flag = reverse;
}

/* Product of what comes before (after: reverse) each element; 1 at the end. */
static tl_status product_before(tl_emit *e, tl_node x, int axis, bool reverse,
                                tl_node *out)
{
    tl_attrs at;

    along(&at, axis, reverse);
    TL_TRY(tl_emit1(e, TL_OP_cumprod, x, &at, out));
    at.f[0] = 1;
    return tl_emit1(e, TL_OP_shift, *out, &at, out);
}

/* g times the product of the others along the axes of `axes`, one after the
 * other: exact where elements are 0. */
static tl_status grad_of_others(const red *r, tl_node x, uint16_t axes,
                                tl_node *out)
{
    int axis = __builtin_ctz(axes);
    uint16_t rest = (uint16_t)(axes & (axes - 1));
    tl_emit *e = r->e;
    tl_node g = r->g, part, before, after;

    if (rest != 0) {
        TL_TRY(tl_emit_reduce(e, TL_OP_prod, x, (uint16_t)(1u << axis), true,
                              &part));
        TL_TRY(grad_of_others(r, part, rest, &g));
    }
    TL_TRY(product_before(e, x, axis, false, &before));
    TL_TRY(product_before(e, x, axis, true, &after));
    TL_TRY(tl_emit2(e, TL_OP_mul, before, after, NULL, &part));
    return tl_emit2(e, TL_OP_zmul, g, part, NULL, out);
}

tl_status tl_grad_prod(tl_emit *e, const tl_grad_in *gi, tl_node *dx)
{
    red r;
    tl_node d;

    if (idle(e, gi, 0)) {
        return TL_OK;
    }
    TL_TRY(red_open(&r, e, gi));
    if (r.axes == 0) {
        return red_close(&r, r.g, dx);
    }
    TL_TRY(grad_of_others(&r, r.x, r.axes, &d));
    return red_close(&r, d, dx);
}

/* ---- scans ------------------------------------------------------------- */

tl_status tl_grad_cumsum(tl_emit *e, const tl_grad_in *gi, tl_node *dx)
{
    tl_attrs at;

    if (idle(e, gi, 0)) {
        return TL_OK;
    }
    along(&at, gi->at->axis, !gi->at->flag);
    return tl_emit1(e, TL_OP_cumsum, gi->g[0], &at, dx);
}

/* d y[k] / d x[i] is what comes before i times what stands between i and k:
 * dx[i] = before[i] * s[i], s[i] = g[i] + x[i+1] * s[i+1] (flag: mirrored). */
tl_status tl_grad_cumprod(tl_emit *e, const tl_grad_in *gi, tl_node *dx)
{
    tl_node before, s, x = gi->in[0];
    tl_attrs at;

    if (idle(e, gi, 0)) {
        return TL_OK;
    }
    along(&at, gi->at->axis, gi->at->flag);
    at.f[0] = 1;
    TL_TRY(tl_emit1(e, TL_OP_shift, gi->out[0], &at, &before));
    along(&at, gi->at->axis, !gi->at->flag);
    if (gi->at->flag) { /* mirrored: x[i-1] where linrec reads a[i] */
        TL_TRY(tl_emit1(e, TL_OP_shift, x, &at, &x));
    }
    TL_TRY(tl_emit2(e, TL_OP_linrec, x, gi->g[0], &at, &s));
    return tl_emit2(e, TL_OP_mul, before, s, NULL, dx);
}

tl_status tl_infer_linrec(tl_infer *cx, tl_op op, const tl_ttype *in, int nin,
                          const tl_attrs *at, tl_ttype *out)
{
    TL_TRY(tl_infer_scan(cx, op, in, 1, at, out));
    if (nin != 2 || in[0].dtype != in[1].dtype ||
        !tl_dtype_is_float(in[0].dtype) ||
        !tl_shape_same(&in[0].shape, &in[1].shape)) {
        return tl_fail(cx->diag, TL_E0301,
                       "`linrec` needs two float tensors of one type, not %s "
                       "and %s",
                       tl_ttype_str(&in[0]).s, tl_ttype_str(&in[1]).s);
    }
    return TL_OK;
}

/* du is the recurrence in the other direction, r; with s the result and s'
 * its neighbour before: da = r * s' (flag: da[i] = r[i-1] * s[i]). */
tl_status tl_grad_linrec(tl_emit *e, const tl_grad_in *gi, tl_node *dx)
{
    tl_attrs at;
    tl_node r, s = gi->out[0], q;

    if (gi->g[0] == NULL) {
        return TL_OK;
    }
    along(&at, gi->at->axis, !gi->at->flag);
    TL_TRY(tl_emit2(e, TL_OP_linrec, gi->in[0], gi->g[0], &at, &r));
    dx[1] = gi->want[1] ? r : NULL;
    if (!gi->want[0]) {
        return TL_OK;
    }
    along(&at, gi->at->axis, false);
    q = gi->at->flag ? r : s;
    TL_TRY(tl_emit1(e, TL_OP_shift, q, &at, &q));
    return tl_emit2(e, TL_OP_mul, q, gi->at->flag ? s : r, NULL, &dx[0]);
}

tl_status tl_infer_shift(tl_infer *cx, tl_op op, const tl_ttype *in, int nin,
                         const tl_attrs *at, tl_ttype *out)
{
    TL_TRY(tl_infer_scan(cx, op, in, nin, at, out));
    out->dtype = in[0].dtype;
    return TL_OK;
}

tl_status tl_grad_shift(tl_emit *e, const tl_grad_in *gi, tl_node *dx)
{
    tl_attrs at;

    if (idle(e, gi, 0)) {
        return TL_OK;
    }
    along(&at, gi->at->axis, !gi->at->flag);
    return tl_emit1(e, TL_OP_shift, gi->g[0], &at, dx);
}

/* ---- casts, dropout ---------------------------------------------------- */

tl_status tl_infer_cast(tl_infer *cx, tl_op op, const tl_ttype *in, int nin,
                        const tl_attrs *at, tl_ttype *out)
{
    (void)cx;
    (void)op;
    (void)nin;
    out->dtype = (tl_dtype)at->dtype;
    out->shape = in[0].shape;
    return TL_OK;
}

tl_status tl_grad_cast(tl_emit *e, const tl_grad_in *gi, tl_node *dx)
{
    if (idle(e, gi, 0)) {
        return TL_OK;
    }
    return tl_emit_cast(e, gi->g[0], e->type(e, gi->in[0])->dtype, dx);
}

tl_status tl_infer_multinomial(tl_infer *cx, tl_op op, const tl_ttype *in,
                               int nin, const tl_attrs *at, tl_ttype *out)
{
    int rank = in[0].shape.rank;

    (void)op;
    (void)nin;
    if (rank == 0) {
        return tl_fail(
            cx->diag, TL_E0304,
            "`multinomial` needs an axis of weights, not a scalar");
    }
    if (at->ndims != 1 ||
        (tl_dim_is_num(at->dims[0]) && tl_dim_value(at->dims[0]) < 0)) {
        return tl_fail(cx->diag, TL_E0306,
                       "`multinomial` draws a number of classes >= 0");
    }
    if (!at->flag && tl_dim_le(cx->dims, at->dims[0],
                               in[0].shape.dim[rank - 1]) == TL_REFUTED) {
        return tl_fail(cx->diag, TL_E0415,
                       "`multinomial` draws %s of %s classes without "
                       "replacement",
                       tl_dim_str(at->dims[0]).s,
                       tl_dim_str(in[0].shape.dim[rank - 1]).s);
    }
    out->dtype = TL_i64;
    out->shape = in[0].shape;
    out->shape.dim[rank - 1] = at->dims[0];
    return TL_OK;
}

/* The mask is recomputed from the key. */
tl_status tl_grad_dropout(tl_emit *e, const tl_grad_in *gi, tl_node *dx)
{
    if (idle(e, gi, 0)) {
        return TL_OK;
    }
    return tl_emit1(e, TL_OP_dropout, gi->g[0], gi->at, dx);
}
