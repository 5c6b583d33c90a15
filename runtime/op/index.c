/* index.c - reading and writing by index tensors.
 *
 *   gather      y[i][j] = x[index[i][j]][j] for attrs.axis = 0, as PyTorch
 *   scatter_add x with source[i][j] added to [index[i][j]][j], in order
 *   index       x[i1, :, i2] as NumPy: inputs x, then one index tensor for
 *               each axis of attrs.axes, which broadcast together; their
 *               axes stand where the indexed ones stood if these are
 *               neighbours and not attrs.flag, else in front
 *   index_put   inputs x, v, then indices: x with v put there, in order
 *               (i[0] = 1: added); v broadcasts
 *   nonzero     one row of indices a hit; dims[0] fixes the number of rows
 *               (what is over is left out, what is missing is 0)
 *   embedding   rows of the table by id; i[0] is padding_idx (or -1), whose
 *               row gets no gradient; attrs.flag: it reads as 0
 *   embedding_grad  sum of the rows of g by id into a table of attrs.dims
 *   one_hot     i64, dims[0] classes */
#include "runtime/op/emit.h"
#include "runtime/op/rules.h"
#include "runtime/op/view.h"

/* ---- gather and scatter_add -------------------------------------------- */

/* An index of a tensor `x` along `axis`: as many axes, none longer. */
static tl_status check_index(tl_infer *cx, tl_op op, const tl_ttype *x,
                             const tl_ttype *index, int axis)
{
    const char *name = tl_op_get(op)->name;

    TL_TRY(tl_infer_index(cx, "an index", index));
    if (index->shape.rank != x->shape.rank) {
        return tl_fail(cx->diag, TL_E0304,
                       "`%s` of %s needs an index with %d axes, got %s", name,
                       tl_ttype_str(x).s, x->shape.rank,
                       tl_ttype_str(index).s);
    }
    if (axis < 0 || axis >= x->shape.rank) {
        return tl_fail(cx->diag, TL_E0309, "`%s` of %s along axis %d", name,
                       tl_ttype_str(x).s, axis);
    }
    for (int i = 0; i < x->shape.rank; i++) {
        bool fits = true;

        if (i != axis) {
            TL_TRY(tl_infer_answer(
                tl_infer_le(cx, index->shape.dim[i], x->shape.dim[i]),
                &fits));
        }
        if (!fits) {
            return tl_fail(cx->diag, TL_E0301,
                           "`%s`: dimension %d of the index is %s, of %s %s",
                           name, i, tl_dim_str(index->shape.dim[i]).s,
                           tl_ttype_str(x).s, tl_dim_str(x->shape.dim[i]).s);
        }
    }
    return TL_OK;
}

tl_status tl_infer_gather(tl_infer *cx, tl_op op, const tl_ttype *in, int nin,
                          const tl_attrs *at, tl_ttype *out)
{
    (void)nin;
    TL_TRY(check_index(cx, op, &in[0], &in[1], at->axis));
    *out = (tl_ttype){in[0].dtype, in[1].shape};
    return TL_OK;
}

tl_status tl_grad_gather(tl_emit *e, const tl_grad_in *gi, tl_node *dx)
{
    tl_shape shape = e->type(e, gi->in[0])->shape;
    tl_node in[3] = {NULL, gi->in[1], gi->g[0]};

    TL_TRY(tl_emit_zeros(e, e->type(e, gi->g[0])->dtype, &shape, &in[0]));
    return e->apply(e, TL_OP_scatter_add, in, 3, gi->at, &dx[0]);
}

tl_status tl_infer_scatter_add(tl_infer *cx, tl_op op, const tl_ttype *in,
                               int nin, const tl_attrs *at, tl_ttype *out)
{
    (void)nin;
    TL_TRY(check_index(cx, op, &in[0], &in[1], at->axis));
    if (in[2].dtype != in[0].dtype) {
        return tl_fail(cx->diag, TL_E0308, "cannot add %s elements to %s",
                       tl_dtype_name(in[2].dtype), tl_ttype_str(&in[0]).s);
    }
    for (int i = 0; i < in[1].shape.rank; i++) {
        tl_status st = in[2].shape.rank != in[1].shape.rank
                           ? TL_ERR_PROGRAM
                           : tl_infer_equal(cx, in[1].shape.dim[i],
                                            in[2].shape.dim[i]);

        if (st == TL_ERR_PROGRAM) {
            st = tl_fail(cx->diag, TL_E0301,
                         "`scatter_add` needs an index of the source's "
                         "shape, got %s for %s", tl_ttype_str(&in[1]).s,
                         tl_ttype_str(&in[2]).s);
        }
        TL_TRY(st);
    }
    *out = in[0];
    return TL_OK;
}

tl_status tl_grad_scatter_add(tl_emit *e, const tl_grad_in *gi, tl_node *dx)
{
    dx[0] = gi->g[0];
    return gi->want[2] ? tl_emit2(e, TL_OP_gather, gi->g[0], gi->in[1],
                                  gi->at, &dx[2])
                       : TL_OK;
}

/* ---- index and index_put ----------------------------------------------- */

/* Are the set bits of `axes` neighbours? */
static bool neighbours(unsigned axes)
{
    return (axes & (axes + (axes & -axes))) == 0;
}

/* `s` with axes of size 1 in front, up to `rank`. */
static tl_shape padded(const tl_shape *s, int rank)
{
    tl_shape out = {.rank = rank};

    for (int i = 0; i < rank; i++) {
        int from = i - (rank - s->rank);

        out.dim[i] = from < 0 ? tl_dim_num(1) : s->dim[from];
    }
    return out;
}

/* Index tensors broadcast as in NumPy: [N, 1] with [M] is a grid. */
static tl_status join_index(tl_infer *cx, tl_shape *picked,
                            const tl_shape *index)
{
    int rank = picked->rank > index->rank ? picked->rank : index->rank;
    tl_shape a = padded(picked, rank), b = padded(index, rank);

    return tl_shape_broadcast(cx, picked, &a, &b);
}

/* Shape of x[...] for the index tensors `index[0 .. n)`. */
static tl_status indexed_shape(tl_infer *cx, const tl_ttype *x,
                               const tl_ttype *index, int n,
                               const tl_attrs *at, tl_shape *out)
{
    bool front = at->flag || !neighbours(at->axes);
    tl_shape picked = {0}, res = {0};
    bool placed = false;

    if (at->axes >> x->shape.rank || __builtin_popcount(at->axes) != n) {
        return tl_fail(cx->diag, TL_E0304, "%d indices of %s", n,
                       tl_ttype_str(x).s);
    }
    for (int i = 0; i < n; i++) {
        TL_TRY(tl_infer_index(cx, "an index", &index[i]));
        TL_TRY(join_index(cx, &picked, &index[i].shape));
    }
    if (picked.rank + x->shape.rank - n > TL_MAX_RANK) {
        return tl_fail(cx->diag, TL_E0316, "an index expression of %s has "
                       "more than %d axes", tl_ttype_str(x).s, TL_MAX_RANK);
    }
    for (int i = front ? -1 : 0; i < x->shape.rank; i++) {
        bool here = i < 0 || (at->axes >> i & 1);

        for (int k = 0; here && !placed && k < picked.rank; k++) {
            res.dim[res.rank++] = picked.dim[k];
        }
        placed |= here;
        if (!here) {
            res.dim[res.rank++] = x->shape.dim[i];
        }
    }
    *out = res;
    return TL_OK;
}

tl_status tl_infer_take(tl_infer *cx, tl_op op, const tl_ttype *in, int nin,
                        const tl_attrs *at, tl_ttype *out)
{
    tl_shape shape;

    (void)op;
    TL_TRY(indexed_shape(cx, &in[0], in + 1, nin - 1, at, &shape));
    *out = (tl_ttype){in[0].dtype, shape};
    return TL_OK;
}

tl_status tl_infer_index_put(tl_infer *cx, tl_op op, const tl_ttype *in,
                             int nin, const tl_attrs *at, tl_ttype *out)
{
    tl_shape region, both;

    (void)op;
    TL_TRY(indexed_shape(cx, &in[0], in + 2, nin - 2, at, &region));
    if (in[1].dtype != in[0].dtype) {
        return tl_fail(cx->diag, TL_E0308, "cannot put %s elements into %s",
                       tl_dtype_name(in[1].dtype), tl_ttype_str(&in[0]).s);
    }
    TL_TRY(tl_shape_broadcast(cx, &both, &region, &in[1].shape));
    if (!tl_shape_same(&both, &region)) {
        return tl_fail(cx->diag, TL_E0313, "%s does not fit the elements %s",
                       tl_ttype_str(&in[1]).s, tl_shape_str(&region).s);
    }
    *out = in[0];
    return TL_OK;
}

/* index_put(x, v, indices of the rule's inputs from `first` on). */
static tl_status emit_put(tl_emit *e, const tl_grad_in *gi, int first,
                          tl_node x, tl_node v, bool add, tl_node *out)
{
    tl_node in[2 + TL_MAX_RANK] = {x, v};
    int n = gi->nin - first;
    tl_attrs at;

    tl_attrs_copy(&at, gi->at);
    at.i[0] = add;
    for (int i = 0; i < n; i++) {
        in[2 + i] = gi->in[first + i];
    }
    return e->apply(e, TL_OP_index_put, in, 2 + n, &at, out);
}

tl_status tl_grad_take(tl_emit *e, const tl_grad_in *gi, tl_node *dx)
{
    tl_shape shape = e->type(e, gi->in[0])->shape;
    tl_node zeros;

    TL_TRY(tl_emit_zeros(e, e->type(e, gi->g[0])->dtype, &shape, &zeros));
    return emit_put(e, gi, 1, zeros, gi->g[0], true, &dx[0]);
}

tl_status tl_grad_index_put(tl_emit *e, const tl_grad_in *gi, tl_node *dx)
{
    tl_shape shape = e->type(e, gi->in[1])->shape;
    tl_node in[1 + TL_MAX_RANK] = {gi->g[0]}, part, zero;

    if (gi->want[1]) {
        for (int i = 2; i < gi->nin; i++) {
            in[i - 1] = gi->in[i];
        }
        TL_TRY(e->apply(e, TL_OP_index, in, gi->nin - 1, gi->at, &part));
        TL_TRY(tl_emit_sum_to(e, part, &shape, &dx[1]));
    }
    if (!gi->want[0]) {
        return TL_OK;
    }
    dx[0] = gi->g[0];
    if (gi->at->i[0]) {
        return TL_OK;
    }
    TL_TRY(tl_emit_const(e, 0, e->type(e, gi->g[0])->dtype, &zero));
    return emit_put(e, gi, 2, gi->g[0], zero, false, &dx[0]);
}

/* ---- nonzero, one_hot -------------------------------------------------- */

tl_status tl_infer_nonzero(tl_infer *cx, tl_op op, const tl_ttype *in,
                           int nin, const tl_attrs *at, tl_ttype *out)
{
    tl_ttype res = {TL_i64, {.rank = 2}};

    (void)op;
    (void)nin;
    if (at && at->ndims == 1) {
        res.shape.dim[0] = at->dims[0];
        if (tl_dim_is_num(at->dims[0]) && tl_dim_value(at->dims[0]) < 0) {
            return tl_fail(cx->diag, TL_E0306,
                           "size must be at least 0, got %lld",
                           (long long)tl_dim_value(at->dims[0]));
        }
    } else {
        TL_TRY(tl_infer_by_data(cx, "nonzero", &res.shape.dim[0]));
    }
    res.shape.dim[1] = tl_dim_num(in->shape.rank);
    *out = res;
    return TL_OK;
}

tl_status tl_infer_one_hot(tl_infer *cx, tl_op op, const tl_ttype *in,
                           int nin, const tl_attrs *at, tl_ttype *out)
{
    tl_ttype res = {TL_i64, in->shape};

    (void)op;
    (void)nin;
    TL_TRY(tl_infer_index(cx, "the classes of `one_hot`", in));
    if (res.shape.rank == TL_MAX_RANK) {
        return tl_fail(cx->diag, TL_E0316, "one_hot of %s has more than %d "
                       "axes", tl_ttype_str(in).s, TL_MAX_RANK);
    }
    if (tl_dim_is_num(at->dims[0]) && tl_dim_value(at->dims[0]) < 0) {
        return tl_fail(cx->diag, TL_E0306, "size must be at least 0, got "
                       "%lld", (long long)tl_dim_value(at->dims[0]));
    }
    res.shape.dim[res.shape.rank++] = at->dims[0];
    *out = res;
    return TL_OK;
}

/* ---- embedding --------------------------------------------------------- */

tl_status tl_infer_embedding(tl_infer *cx, tl_op op, const tl_ttype *in,
                             int nin, const tl_attrs *at, tl_ttype *out)
{
    tl_ttype res = {in[0].dtype, in[1].shape};

    (void)op;
    (void)nin;
    (void)at;
    if (in[0].shape.rank != 2) {
        return tl_fail(cx->diag, TL_E0304,
                       "the table of `embedding` has 2 axes, got %s",
                       tl_ttype_str(&in[0]).s);
    }
    TL_TRY(tl_infer_index(cx, "the ids of `embedding`", &in[1]));
    if (res.shape.rank == TL_MAX_RANK) {
        return tl_fail(cx->diag, TL_E0316, "an embedding of %s has more than "
                       "%d axes", tl_ttype_str(&in[1]).s, TL_MAX_RANK);
    }
    res.shape.dim[res.shape.rank++] = in[0].shape.dim[1];
    *out = res;
    return TL_OK;
}

tl_status tl_infer_embedding_grad(tl_infer *cx, tl_op op, const tl_ttype *in,
                                  int nin, const tl_attrs *at, tl_ttype *out)
{
    (void)cx;
    (void)op;
    (void)nin;
    out->dtype = in[0].dtype;
    out->shape = (tl_shape){.rank = 2, .dim = {at->dims[0], at->dims[1]}};
    return TL_OK;
}

tl_status tl_grad_embedding(tl_emit *e, const tl_grad_in *gi, tl_node *dx)
{
    tl_shape shape = e->type(e, gi->in[0])->shape;
    tl_attrs at;

    tl_attrs_sizes(&at, &shape);
    at.i[0] = gi->at->i[0];
    return tl_emit2(e, TL_OP_embedding_grad, gi->g[0], gi->in[1], &at,
                    &dx[0]);
}

/* The rows of the table, where padding has none. */
tl_status tl_grad_embedding_grad(tl_emit *e, const tl_grad_in *gi,
                                 tl_node *dx)
{
    tl_attrs at;

    tl_attrs_init(&at);
    at.i[0] = gi->at->i[0];
    at.flag = true;
    return tl_emit2(e, TL_OP_embedding, gi->g[0], gi->in[1], &at, &dx[0]);
}
