/* pool.c - pooling: shape rules and gradients.
 *
 *   max_pool(x) -> y, the place of each element of y among the pooled axes of
 *                  x (i64, row-major; -1 where a window has padding only)
 *   avg_pool(x) -> y
 *
 * max_pool keeps the dtype of x, as max does; of integers avg_pool gives f32,
 * as mean does.
 *
 * Both gradients are linear in g, so every order exists: back from
 * max_pool_grad one gathers, back from avg_pool_grad one averages. */
#include "runtime/op/pool.h"

#include "runtime/op/emit.h"
#include "runtime/op/rules.h"

void tl_pool_attrs(tl_attrs *at, int n)
{
    tl_attrs_init(at);
    at->i[0] = n;
    at->i[2] = 1;
    at->ndims = (uint16_t)(TL_POOL_PARTS * n);
    for (int i = 0; i < TL_POOL_PARTS * n; i++) {
        at->dims[i] = tl_dim_num(1);
    }
    for (int i = 0; i < n; i++) {
        tl_pool_dims(at, TL_POOL_PAD)[i] = tl_dim_num(0);
    }
}

/* ---- sizes --------------------------------------------------------------- */

/* (in + more) // stride + 1 windows; a window of `span` must fit in `in` and
 * `room`. */
static tl_status count_windows(tl_infer *cx, tl_op op, const tl_attrs *at,
                               int i, tl_dim in, int64_t more, int64_t room,
                               tl_dim *out)
{
    int64_t span = tl_pool_window(at, i);
    int64_t stride = tl_pool_num(at, TL_POOL_STRIDE, i);
    int64_t pad = tl_pool_num(at, TL_POOL_PAD, i);
    tl_dim padded;
    tl_status st;

    TL_TRY(tl_dim_add(cx->dims, in, tl_dim_num(room), &padded, cx->diag));
    st = tl_infer_may_le(cx, tl_dim_num(span), padded);
    if (st == TL_ERR_PROGRAM) {
        return tl_fail(cx->diag, TL_E0412,
                       "`%s`: a window spans %lld elements, pooled axis %d "
                       "has %s and padding %lld on each side",
                       tl_op_get(op)->name, (long long)span, i,
                       tl_dim_str(in).s, (long long)pad);
    }
    TL_TRY(st);
    TL_TRY(tl_dim_add(cx->dims, in, tl_dim_num(more), &padded, cx->diag));
    TL_TRY(
        tl_dim_div(cx->dims, padded, tl_dim_num(stride), &padded, cx->diag));
    return tl_dim_add(cx->dims, padded, tl_dim_num(1), out, cx->diag);
}

/* Windows along pooled axis i.  In ceil mode a last window may hang over, but
 * must start within the input or the padding before it: of the two bounds
 * that this gives, stride, padding and window tell which is smaller. */
static tl_status out_size(tl_infer *cx, tl_op op, const tl_attrs *at, int i,
                          tl_dim in, tl_dim *out)
{
    int64_t span, stride, pad;

    if (at->flag) {
        *out = tl_pool_get(at, TL_POOL_SIZE, i);
        return TL_OK;
    }
    span = tl_pool_window(at, i);
    stride = tl_pool_num(at, TL_POOL_STRIDE, i);
    pad = tl_pool_num(at, TL_POOL_PAD, i);
    if (at->i[1] == 0) {
        return count_windows(cx, op, at, i, in, 2 * pad - span, 2 * pad, out);
    }
    return count_windows(cx, op, at, i, in,
                         stride + pad <= span ? 2 * pad - span + stride - 1
                                              : pad - 1,
                         2 * pad + stride - 1, out);
}

/* Adaptive windows and those over nothing: there is something to pool. */
static tl_status check_some(tl_infer *cx, tl_op op, const tl_ttype *x,
                            const tl_attrs *at)
{
    int first = x->shape.rank - tl_pool_axes(at);

    for (int i = 0; i < tl_pool_axes(at); i++) {
        tl_status st =
            tl_infer_may_le(cx, tl_dim_num(1), x->shape.dim[first + i]);

        if (st == TL_ERR_PROGRAM) {
            return tl_fail(cx->diag, TL_E0412,
                           "`%s` has nothing to pool in "
                           "%s",
                           tl_op_get(op)->name, tl_ttype_str(x).s);
        }
        TL_TRY(st);
    }
    return TL_OK;
}

static tl_status infer_pool(tl_infer *cx, tl_op op, const tl_ttype *x,
                            const tl_attrs *at, tl_ttype *out)
{
    int n = tl_pool_axes(at), first = x->shape.rank - n;
    tl_ttype res = *x;

    if (first < 0) {
        return tl_fail(cx->diag, TL_E0304,
                       "`%s` over %d axes needs as many, "
                       "got %s",
                       tl_op_get(op)->name, n, tl_ttype_str(x).s);
    }
    TL_TRY(tl_op_compute_dtype(op, x->dtype, &res.dtype, cx->diag));
    TL_TRY(check_some(cx, op, x, at));
    for (int i = 0; i < n; i++) {
        TL_TRY(out_size(cx, op, at, i, x->shape.dim[first + i],
                        &res.shape.dim[first + i]));
    }
    *out = res;
    return TL_OK;
}

tl_status tl_infer_max_pool(tl_infer *cx, tl_op op, const tl_ttype *in,
                            int nin, const tl_attrs *at, tl_ttype *out)
{
    (void)nin;
    TL_TRY(infer_pool(cx, op, &in[0], at, &out[0]));
    out[1] = (tl_ttype){TL_i64, out[0].shape};
    return TL_OK;
}

tl_status tl_infer_avg_pool(tl_infer *cx, tl_op op, const tl_ttype *in,
                            int nin, const tl_attrs *at, tl_ttype *out)
{
    (void)nin;
    return infer_pool(cx, op, &in[0], at, out);
}

/* g, for max_pool_grad also the places; the sizes of x are attributes. */
tl_status tl_infer_pool_grad(tl_infer *cx, tl_op op, const tl_ttype *in,
                             int nin, const tl_attrs *at, tl_ttype *out)
{
    int n = tl_pool_axes(at);
    tl_ttype res = in[0];

    (void)cx;
    (void)op;
    (void)nin;
    for (int i = 0; i < n; i++) {
        res.shape.dim[res.shape.rank - n + i] =
            tl_pool_get(at, TL_POOL_IN, i);
    }
    *out = res;
    return TL_OK;
}

/* ---- gradients ----------------------------------------------------------- */

/* The attributes with the sizes of x. */
static void sized(tl_emit *e, const tl_attrs *at, tl_node x, tl_attrs *out)
{
    const tl_shape *s = &e->type(e, x)->shape;
    int n = tl_pool_axes(at);

    tl_attrs_copy(out, at);
    for (int i = 0; i < n; i++) {
        tl_pool_dims(out, TL_POOL_IN)[i] = s->dim[s->rank - n + i];
    }
}

tl_status tl_grad_max_pool(tl_emit *e, const tl_grad_in *gi, tl_node *dx)
{
    tl_node in[2] = {gi->g[0], gi->out[1]};
    tl_attrs at;

    if (!gi->g[0]) {
        return TL_OK;
    }
    sized(e, gi->at, gi->in[0], &at);
    return e->apply(e, TL_OP_max_pool_grad, in, 2, &at, &dx[0]);
}

/* `x` with its last n axes as one. */
static tl_status flatten(tl_emit *e, tl_node x, int n, tl_node *out)
{
    tl_shape s = e->type(e, x)->shape, last = {.rank = n};

    for (int i = 0; i < n; i++) {
        last.dim[i] = s.dim[s.rank - n + i];
    }
    s.rank -= n - 1;
    TL_TRY(tl_shape_numel_dim(e->infer, &last, &s.dim[s.rank - 1]));
    return tl_emit_shaped(e, TL_OP_reshape, x, &s, out);
}

/* 0 where a place is -1: windows of padding alone, which only dilation makes.
 * *place becomes an index in any case. */
static tl_status mask_places(tl_emit *e, tl_node *place, tl_node *mask)
{
    tl_node zero;

    TL_TRY(tl_emit_const(e, 0, TL_i64, &zero));
    TL_TRY(tl_emit2(e, TL_OP_ge, *place, zero, NULL, mask));
    return tl_emit2(e, TL_OP_maximum, *place, zero, NULL, place);
}

static bool may_be_empty(const tl_attrs *at)
{
    bool may = false;

    for (int i = 0; i < tl_pool_axes(at) && !at->flag; i++) {
        may |= tl_pool_num(at, TL_POOL_DILATION, i) > 1;
    }
    return may;
}

/* From where each element of g went: u at the places. */
tl_status tl_grad_max_pool_grad(tl_emit *e, const tl_grad_in *gi, tl_node *dx)
{
    tl_shape shape = e->type(e, gi->in[0])->shape;
    tl_dtype dtype = e->type(e, gi->in[0])->dtype;
    int n = tl_pool_axes(gi->at);
    tl_node in[3] = {NULL, gi->in[1], NULL}, mask = NULL;
    tl_attrs at;

    if (!gi->want[0]) {
        return TL_OK;
    }
    if (may_be_empty(gi->at)) {
        TL_TRY(mask_places(e, &in[1], &mask));
    }
    TL_TRY(flatten(e, gi->g[0], n, &in[0]));
    TL_TRY(flatten(e, in[1], n, &in[1]));
    tl_attrs_init(&at);
    at.axis = (int8_t)(shape.rank - n);
    TL_TRY(e->apply(e, TL_OP_gather, in, 2, &at, &in[0]));
    TL_TRY(tl_emit_shaped(e, TL_OP_reshape, in[0], &shape, &dx[0]));
    if (mask) {
        TL_TRY(tl_emit_const(e, 0, dtype, &in[2]));
        return tl_emit3(e, TL_OP_where, mask, dx[0], in[2], &dx[0]);
    }
    return TL_OK;
}

tl_status tl_grad_avg_pool(tl_emit *e, const tl_grad_in *gi, tl_node *dx)
{
    tl_attrs at;

    sized(e, gi->at, gi->in[0], &at);
    return tl_emit1(e, TL_OP_avg_pool_grad, gi->g[0], &at, &dx[0]);
}

tl_status tl_grad_avg_pool_grad(tl_emit *e, const tl_grad_in *gi, tl_node *dx)
{
    return tl_emit1(e, TL_OP_avg_pool, gi->g[0], gi->at, &dx[0]);
}
