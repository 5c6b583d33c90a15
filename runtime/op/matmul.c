/* matmul.c - the matrix product: shape rule and gradient.
 *
 * [..., M, K] @ [..., K, N]: leading axes broadcast.  A vector on the left is
 * a row, on the right a column, and its axis leaves the result.  Where the
 * right operand is a matrix the leading axes of the left one merge with M, in
 * the kernel and in the gradient alike: one product, research/contract.md. */
#include "runtime/op/emit.h"
#include "runtime/op/rules.h"
#include "runtime/op/view.h"

static tl_dtype product_dtype(tl_dtype a, tl_dtype b)
{
    tl_dtype joined = tl_dtype_join(a, b);

    if (joined == TL_i8) {
        return TL_i32;
    }
    return joined == TL_bool ? TL_i64 : joined;
}

static tl_status fail_inner(tl_infer *cx, const tl_ttype *in, tl_dim a,
                            tl_dim b)
{
    tl_status st = tl_fail(cx->diag, TL_E0302,
                           "`@` needs equal inner dimensions: %s is not %s "
                           "(%s @ %s)",
                           tl_dim_str(a).s, tl_dim_str(b).s,
                           tl_ttype_str(&in[0]).s, tl_ttype_str(&in[1]).s);

    tl_infer_example(cx, a, b);
    return st;
}

/* Axes before the matrix. */
static tl_shape leading(const tl_shape *s)
{
    tl_shape out = {.rank = s->rank > 2 ? s->rank - 2 : 0};

    for (int i = 0; i < out.rank; i++) {
        out.dim[i] = s->dim[i];
    }
    return out;
}

tl_status tl_infer_matmul(tl_infer *cx, tl_op op, const tl_ttype *in, int nin,
                          const tl_attrs *at, tl_ttype *out)
{
    const tl_shape *a = &in[0].shape, *b = &in[1].shape;
    tl_shape la, lb;
    tl_ttype res = {.dtype = product_dtype(in[0].dtype, in[1].dtype)};
    tl_dim ka, kb;
    tl_status st;

    (void)op;
    (void)nin;
    (void)at;
    if (a->rank == 0 || b->rank == 0) {
        return tl_fail(cx->diag, TL_E0304,
                       "`@` needs vectors or matrices, got %s @ %s",
                       tl_ttype_str(&in[0]).s, tl_ttype_str(&in[1]).s);
    }
    ka = a->dim[a->rank - 1];
    kb = b->dim[b->rank > 1 ? b->rank - 2 : 0];
    st = tl_infer_equal(cx, ka, kb);
    if (st != TL_OK) {
        return st == TL_ERR_PROGRAM ? fail_inner(cx, in, ka, kb) : st;
    }
    la = leading(a);
    lb = leading(b);
    TL_TRY(la.rank == 0   ? (res.shape = lb, TL_OK)
           : lb.rank == 0 ? (res.shape = la, TL_OK)
                          : tl_shape_broadcast(cx, &res.shape, &la, &lb));
    if (a->rank > 1) {
        res.shape.dim[res.shape.rank++] = a->dim[a->rank - 2];
    }
    if (b->rank > 1) {
        res.shape.dim[res.shape.rank++] = b->dim[b->rank - 1];
    }
    *out = res;
    return TL_OK;
}

/* `x` with the axes before its last one merged: [-1, last]. */
static tl_status emit_merged(tl_emit *e, tl_node x, tl_node *out)
{
    tl_shape s = e->type(e, x)->shape, rows = s, want = {.rank = 2};

    rows.rank = s.rank - 1;
    TL_TRY(tl_shape_numel_dim(e->infer, &rows, &want.dim[0]));
    want.dim[1] = s.dim[s.rank - 1];
    return s.rank == 2 ? (*out = x, TL_OK)
                       : tl_emit_shaped(e, TL_OP_reshape, x, &want, out);
}

/* Operands and gradient as matrices: a vector gets the axis that it lacks. */
typedef struct product {
    tl_node a, b, g;
    bool a_vector, b_vector;
} product;

static tl_status as_matrices(tl_emit *e, const tl_grad_in *gi, product *p)
{
    int rank_a = e->type(e, gi->in[0])->shape.rank;
    int rank_b = e->type(e, gi->in[1])->shape.rank;
    int rank_g = e->type(e, gi->g[0])->shape.rank;

    p->a_vector = rank_a == 1;
    p->b_vector = rank_b == 1;
    p->a = gi->in[0];
    p->b = gi->in[1];
    p->g = gi->g[0];
    if (p->b_vector) {
        TL_TRY(tl_emit_unsqueeze(e, p->b, 2, &p->b));
        TL_TRY(tl_emit_unsqueeze(e, p->g, (uint16_t)(1u << rank_g), &p->g));
        rank_g++;
    }
    if (p->a_vector) {
        TL_TRY(tl_emit_unsqueeze(e, p->a, 1, &p->a));
        TL_TRY(tl_emit_unsqueeze(e, p->g, (uint16_t)(1u << (rank_g - 1)),
                                 &p->g));
    }
    return TL_OK;
}

/* Sum over leading axes that were broadcast, then drop a vector's axis. */
static tl_status finish(tl_emit *e, tl_node dx, tl_node as_matrix,
                        tl_node operand, tl_node *out)
{
    tl_shape matrix = e->type(e, as_matrix)->shape;
    tl_shape shape = e->type(e, operand)->shape;

    TL_TRY(tl_emit_sum_to(e, dx, &matrix, &dx));
    TL_TRY(tl_shape_same(&matrix, &shape)
               ? TL_OK
               : tl_emit_shaped(e, TL_OP_reshape, dx, &shape, &dx));
    return tl_emit_cast(e, dx, e->type(e, operand)->dtype, out);
}

tl_status tl_grad_matmul(tl_emit *e, const tl_grad_in *gi, tl_node *dx)
{
    product p;
    tl_node t, a, g, res;

    TL_TRY(as_matrices(e, gi, &p));
    if (gi->want[0]) {
        TL_TRY(tl_emit_transpose(e, p.b, &t));
        TL_TRY(tl_emit2(e, TL_OP_matmul, p.g, t, NULL, &res));
        TL_TRY(finish(e, res, p.a, gi->in[0], &dx[0]));
    }
    if (gi->want[1]) {
        a = p.a;
        g = p.g;
        if (e->type(e, p.b)->shape.rank == 2) {
            TL_TRY(emit_merged(e, a, &a));
            TL_TRY(emit_merged(e, g, &g));
        }
        TL_TRY(tl_emit_transpose(e, a, &t));
        TL_TRY(tl_emit2(e, TL_OP_matmul, t, g, NULL, &res));
        TL_TRY(finish(e, res, p.b, gi->in[1], &dx[1]));
    }
    return TL_OK;
}
