/* linalg.c - dense linear algebra over the last two axes: shape rules and
 * gradients.  All axes before them are batch.
 *
 *   cholesky(a[n, n]) -> l, lower triangular, a = l l'; reads a's lower half
 *   solve(a[n, n], b[n, k]) -> x, a x = b; i[0] = 1: a' x = b
 *   tri_solve(a[n, n], b[n, k]) -> x, the same where a is lower (flag: upper)
 *                                 triangular; the other half is not read
 *   qr(a[m, n]) -> q[m, k], r[k, n], k = min(m, n), a = q r
 *
 * Gradients are those of PyTorch: Murray, "Differentiation of the Cholesky
 * decomposition" (2016), eq. 10; Giles, "Collected matrix derivative results"
 * (2008), 2.3.1; Walter, Lehmann, "Algorithmic differentiation of linear
 * algebra functions" (2018), QR.  They are made of operations that have
 * gradients themselves. */
#include "runtime/op/emit.h"
#include "runtime/op/rules.h"

/* ---- shapes -------------------------------------------------------------- */

static tl_dim last(const tl_ttype *t, int i)
{
    return t->shape.dim[t->shape.rank - i];
}

static tl_status check_matrix(tl_infer *cx, tl_op op, const tl_ttype *a)
{
    return a->shape.rank >= 2
               ? TL_OK
               : tl_fail(cx->diag, TL_E0304, "`%s` takes matrices, got %s",
                         tl_op_get(op)->name, tl_ttype_str(a).s);
}

static tl_status check_square(tl_infer *cx, tl_op op, const tl_ttype *a)
{
    tl_status st;

    TL_TRY(check_matrix(cx, op, a));
    st = tl_infer_equal(cx, last(a, 1), last(a, 2));
    if (st != TL_ERR_PROGRAM) {
        return st;
    }
    st = tl_fail(cx->diag, TL_E0301, "`%s` takes square matrices, got %s",
                 tl_op_get(op)->name, tl_ttype_str(a).s);
    tl_infer_example(cx, last(a, 2), last(a, 1));
    return st;
}

tl_status tl_infer_cholesky(tl_infer *cx, tl_op op, const tl_ttype *in,
                            int nin, const tl_attrs *at, tl_ttype *out)
{
    (void)nin;
    (void)at;
    TL_TRY(check_square(cx, op, &in[0]));
    out->shape = in[0].shape;
    return tl_op_compute_dtype(op, in[0].dtype, &out->dtype, cx->diag);
}

/* a[.., n, n] with b[.., n, k] */
tl_status tl_infer_solve(tl_infer *cx, tl_op op, const tl_ttype *in, int nin,
                         const tl_attrs *at, tl_ttype *out)
{
    tl_status st = TL_ERR_PROGRAM;
    tl_ttype res = in[1];

    (void)nin;
    (void)at;
    TL_TRY(check_square(cx, op, &in[0]));
    if (in[0].shape.rank == in[1].shape.rank) {
        st = tl_infer_equal(cx, last(&in[0], 1), last(&in[1], 2));
    }
    for (int i = 0; st == TL_OK && i < in[0].shape.rank - 2; i++) {
        st = tl_infer_equal(cx, in[0].shape.dim[i], in[1].shape.dim[i]);
    }
    if (st != TL_OK) {
        return st != TL_ERR_PROGRAM
                   ? st
                   : tl_fail(cx->diag, TL_E0301,
                             "`%s` of %s needs as many "
                             "rows on the right as it has, got %s",
                             tl_op_get(op)->name, tl_ttype_str(&in[0]).s,
                             tl_ttype_str(&in[1]).s);
    }
    TL_TRY(tl_op_compute_dtype(op, tl_dtype_join(in[0].dtype, in[1].dtype),
                               &res.dtype, cx->diag));
    *out = res;
    return TL_OK;
}

/* The smaller of two sizes; of names that nobody can compare a new one. */
static tl_status smaller(tl_infer *cx, tl_dim a, tl_dim b, tl_dim *out)
{
    tl_status st;

    if (cx->dims && !cx->guard_le &&
        !(tl_dim_is_num(a) && tl_dim_is_num(b))) {
        if (tl_dim_le(cx->dims, a, b) == TL_PROVED) {
            *out = a;
            return TL_OK;
        }
        if (tl_dim_le(cx->dims, b, a) == TL_PROVED) {
            *out = b;
            return TL_OK;
        }
        return tl_dim_fresh(cx->dims, "qr", out, cx->diag);
    }
    st = tl_infer_le(cx, a, b);
    *out = st == TL_OK ? a : b;
    return st == TL_ERR_PROGRAM ? tl_infer_le(cx, b, a) : st;
}

tl_status tl_infer_qr(tl_infer *cx, tl_op op, const tl_ttype *in, int nin,
                      const tl_attrs *at, tl_ttype *out)
{
    int rank = in[0].shape.rank;
    tl_dim k;

    (void)nin;
    (void)at;
    TL_TRY(check_matrix(cx, op, &in[0]));
    TL_TRY(smaller(cx, last(&in[0], 2), last(&in[0], 1), &k));
    out[0].shape = out[1].shape = in[0].shape;
    out[0].shape.dim[rank - 1] = k;
    out[1].shape.dim[rank - 2] = k;
    TL_TRY(tl_op_compute_dtype(op, in[0].dtype, &out[0].dtype, cx->diag));
    out[1].dtype = out[0].dtype;
    return TL_OK;
}

/* ---- steps --------------------------------------------------------------- */

static tl_status emit_product(tl_emit *e, tl_node a, bool at, tl_node b,
                              bool bt, tl_node *out)
{
    if (at) {
        TL_TRY(tl_emit_transpose(e, a, &a));
    }
    if (bt) {
        TL_TRY(tl_emit_transpose(e, b, &b));
    }
    return tl_emit2(e, TL_OP_matmul, a, b, NULL, out);
}

/* The lower (upper) half with `k` diagonals more. */
static tl_status emit_half(tl_emit *e, tl_node x, bool upper, int64_t k,
                           tl_node *out)
{
    tl_attrs at;

    tl_attrs_init(&at);
    at.i[0] = k;
    return tl_emit1(e, upper ? TL_OP_triu : TL_OP_tril, x, &at, out);
}

static tl_status emit_tri_solve(tl_emit *e, tl_node a, tl_node b, bool upper,
                                bool transposed, tl_node *out)
{
    tl_attrs at;

    tl_attrs_init(&at);
    at.flag = upper;
    at.i[0] = transposed;
    return tl_emit2(e, TL_OP_tri_solve, a, b, &at, out);
}

static tl_status emit_scaled(tl_emit *e, tl_node x, double by, tl_node *out)
{
    tl_node c;

    TL_TRY(tl_emit_const(e, by, e->type(e, x)->dtype, &c));
    return tl_emit2(e, TL_OP_mul, x, c, NULL, out);
}

/* ---- gradients ----------------------------------------------------------- */

/* sym(l^-T phi(l' g) l^-1): phi is the lower half, half of the diagonal. */
tl_status tl_grad_cholesky(tl_emit *e, const tl_grad_in *gi, tl_node *dx)
{
    tl_node l = gi->out[0], p, half, below, y;

    TL_TRY(emit_product(e, l, true, gi->g[0], false, &p));
    TL_TRY(emit_half(e, p, false, 0, &half));
    TL_TRY(emit_half(e, p, false, -1, &below));
    TL_TRY(tl_emit2(e, TL_OP_add, half, below, NULL, &p));
    TL_TRY(emit_scaled(e, p, 0.5, &p));
    TL_TRY(emit_tri_solve(e, l, p, false, true, &p));
    TL_TRY(tl_emit_transpose(e, p, &p));
    TL_TRY(emit_tri_solve(e, l, p, false, true, &p));
    TL_TRY(tl_emit_transpose(e, p, &y));
    TL_TRY(tl_emit2(e, TL_OP_add, p, y, NULL, &p));
    return emit_scaled(e, p, 0.5, &dx[0]);
}

/* gb = a^-T g, ga = -gb x'; of the transposed system ga = -x gb'. */
static tl_status grad_solve(tl_emit *e, const tl_grad_in *gi, tl_node *ga,
                            tl_node *gb)
{
    bool transposed = gi->at->i[0] != 0;
    tl_attrs at;
    tl_node x = gi->out[0];

    tl_attrs_copy(&at, gi->at);
    at.i[0] = !transposed;
    TL_TRY(tl_emit2(e, gi->op, gi->in[0], gi->g[0], &at, gb));
    if (!gi->want[0]) {
        return TL_OK;
    }
    TL_TRY(transposed ? emit_product(e, x, false, *gb, true, ga)
                      : emit_product(e, *gb, false, x, true, ga));
    return tl_emit1(e, TL_OP_neg, *ga, NULL, ga);
}

tl_status tl_grad_solve(tl_emit *e, const tl_grad_in *gi, tl_node *dx)
{
    tl_node ga = NULL, gb = NULL;

    TL_TRY(grad_solve(e, gi, &ga, &gb));
    dx[0] = ga;
    dx[1] = gi->want[1] ? gb : NULL;
    return TL_OK;
}

tl_status tl_grad_tri_solve(tl_emit *e, const tl_grad_in *gi, tl_node *dx)
{
    tl_node ga = NULL, gb = NULL;

    TL_TRY(grad_solve(e, gi, &ga, &gb));
    if (ga) {
        TL_TRY(emit_half(e, ga, gi->at->flag, 0, &dx[0]));
    }
    dx[1] = gi->want[1] ? gb : NULL;
    return TL_OK;
}

/* (gq + q copyltu(m)) r^-T with m = r gr' - gq' q, for square r; copyltu
 * mirrors the lower half.  gq or gr may be NULL, not both. */
static tl_status grad_tall(tl_emit *e, tl_node q, tl_node r, tl_node gq,
                           tl_node gr, tl_node *out)
{
    tl_node m = NULL, n, low, below;

    if (gr) {
        TL_TRY(emit_product(e, r, false, gr, true, &m));
    }
    if (gq) {
        TL_TRY(emit_product(e, gq, true, q, false, &n));
        TL_TRY(m ? tl_emit2(e, TL_OP_sub, m, n, NULL, &m)
                 : tl_emit1(e, TL_OP_neg, n, NULL, &m));
    }
    TL_TRY(emit_half(e, m, false, 0, &low));
    TL_TRY(emit_half(e, m, false, -1, &below));
    TL_TRY(tl_emit_transpose(e, below, &below));
    TL_TRY(tl_emit2(e, TL_OP_add, low, below, NULL, &m));
    TL_TRY(emit_product(e, q, false, m, false, &m));
    if (gq) {
        TL_TRY(tl_emit2(e, TL_OP_add, gq, m, NULL, &m));
    }
    TL_TRY(tl_emit_transpose(e, m, &m));
    TL_TRY(emit_tri_solve(e, r, m, true, false, &m));
    return tl_emit_transpose(e, m, out);
}

/* For wide a = [x y]: x = q u, and y = q v, so y gets q gv, and q of x also
 * what comes through v = q' y. */
static tl_status grad_wide(tl_emit *e, const tl_grad_in *gi, tl_dim m,
                           tl_dim rest, tl_node *out)
{
    int axis = e->type(e, gi->in[0])->shape.rank - 1;
    tl_node q = gi->out[0], gq = gi->g[0], gu = NULL, gv, u, y, parts[2];
    tl_attrs at;

    TL_TRY(tl_emit_slice_axis(e, gi->out[1], axis, tl_dim_num(0), m, &u));
    TL_TRY(tl_emit_slice_axis(e, gi->out[1], axis, m, rest, &y));
    TL_TRY(emit_product(e, q, false, y, false, &y));
    if (gi->g[1]) {
        TL_TRY(tl_emit_slice_axis(e, gi->g[1], axis, tl_dim_num(0), m, &gu));
        TL_TRY(tl_emit_slice_axis(e, gi->g[1], axis, m, rest, &gv));
        TL_TRY(emit_product(e, y, false, gv, true, &parts[0]));
        TL_TRY(gq ? tl_emit2(e, TL_OP_add, gq, parts[0], NULL, &gq) : TL_OK);
        gq = gq ? gq : parts[0];
        TL_TRY(emit_product(e, q, false, gv, false, &parts[1]));
    } else {
        TL_TRY(tl_emit_zeros(e, e->type(e, y)->dtype, &e->type(e, y)->shape,
                             &parts[1]));
    }
    TL_TRY(grad_tall(e, q, u, gq, gu, &parts[0]));
    tl_attrs_init(&at);
    at.axis = (int8_t)axis;
    return e->apply(e, TL_OP_cat, parts, 2, &at, out);
}

tl_status tl_grad_qr(tl_emit *e, const tl_grad_in *gi, tl_node *dx)
{
    tl_ttype a = *e->type(e, gi->in[0]);
    tl_dim m = last(&a, 2), n = last(&a, 1), rest;
    tl_dim k = last(e->type(e, gi->out[0]), 1);

    if (!gi->g[0] && !gi->g[1]) {
        return TL_OK;
    }
    if (tl_dim_same(k, n)) {
        return grad_tall(e, gi->out[0], gi->out[1], gi->g[0], gi->g[1],
                         &dx[0]);
    }
    TL_TRY(tl_dim_sub(e->infer->dims, n, m, &rest, e->infer->diag));
    return grad_wide(e, gi, m, rest, &dx[0]);
}
