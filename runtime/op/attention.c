/* attention.c - scaled dot-product attention: shape rule, gradient, parts.
 *
 * Vaswani and others, "Attention is all you need" (2017), eq. 1.  One kernel
 * forward and one backward, which recomputes the probabilities from `lse`
 * (Dao and others, "FlashAttention", 2022): nothing of size T x S is kept.
 * Operands and attributes: attention.h. */
#include "runtime/op/attention.h"

#include <float.h>
#include <math.h>

#include "runtime/op/emit.h"
#include "runtime/op/rules.h"

/* ---- shapes ------------------------------------------------------------- */

/* Axis `back` from the right, 1 the last. */
static tl_dim axis_of(const tl_ttype *t, int back)
{
    return t->shape.dim[t->shape.rank - back];
}

/* TL_OK, or TL_ERR_PROGRAM with the message that `what` of two operands must
 * be one. */
static tl_status same_size(tl_infer *cx, const tl_ttype *a, int a_back,
                           const tl_ttype *b, int b_back, const char *what,
                           const char *names)
{
    tl_dim x = axis_of(a, a_back), y = axis_of(b, b_back);
    tl_status st = tl_infer_equal(cx, x, y);

    if (st == TL_ERR_PROGRAM) {
        st = tl_fail(cx->diag, TL_E0327, "`sdpa` needs %s of one %s: %s is "
                     "not %s (%s and %s)", names, what, tl_dim_str(x).s,
                     tl_dim_str(y).s, tl_ttype_str(a).s, tl_ttype_str(b).s);
        tl_infer_example(cx, x, y);
    }
    return st;
}

/* How many query heads share a key head: 1 where the numbers are equal,
 * TL_ERR_PROGRAM without a message if it is no whole number. */
static tl_status heads_a_key(tl_infer *cx, tl_dim heads, tl_dim key_heads,
                             tl_dim *out)
{
    tl_status st = tl_infer_equal(cx, heads, key_heads);
    tl_dim ratio, product;

    *out = tl_dim_num(1);
    if (st != TL_ERR_PROGRAM) {
        return st;
    }
    if (tl_dim_is_num(key_heads) && tl_dim_value(key_heads) == 0) {
        return TL_ERR_PROGRAM;
    }
    TL_TRY(tl_dim_div(cx->dims, heads, key_heads, &ratio, cx->diag));
    TL_TRY(tl_dim_mul(cx->dims, ratio, key_heads, &product, cx->diag));
    *out = ratio;
    return tl_infer_equal(cx, heads, product);
}

static tl_status check_heads(tl_infer *cx, const tl_ttype *in)
{
    tl_dim heads = axis_of(&in[0], 3), keys = axis_of(&in[1], 3), ratio;
    tl_status st = heads_a_key(cx, heads, keys, &ratio);

    if (st != TL_ERR_PROGRAM) {
        return st;
    }
    st = tl_fail(cx->diag, TL_E0327, "`sdpa` needs as many query heads as key "
                 "heads, or a multiple: %s and %s (%s and %s)",
                 tl_dim_str(heads).s, tl_dim_str(keys).s,
                 tl_ttype_str(&in[0]).s, tl_ttype_str(&in[1]).s);
    if (!tl_dim_is_num(heads) || !tl_dim_is_num(keys)) {
        tl_diag_help(cx->diag, "where %s %% %s == 0", tl_dim_str(heads).s,
                     tl_dim_str(keys).s);
    }
    return st;
}

static tl_status check_operands(tl_infer *cx, const tl_ttype *in)
{
    const tl_ttype *q = &in[0], *k = &in[1], *v = &in[2];
    int rank = q->shape.rank;

    if (rank < 2 || k->shape.rank != rank || v->shape.rank != rank) {
        return tl_fail(cx->diag, TL_E0304, "`sdpa` needs queries, keys and "
                       "values of one rank, [..., heads, length, size], got "
                       "%s, %s and %s", tl_ttype_str(q).s, tl_ttype_str(k).s,
                       tl_ttype_str(v).s);
    }
    TL_TRY(same_size(cx, q, 1, k, 1, "size", "queries and keys"));
    TL_TRY(same_size(cx, k, 2, v, 2, "length", "keys and values"));
    for (int back = rank; back > 2; back--) {
        if (back == 3 && rank > 3) {
            TL_TRY(check_heads(cx, in));
            TL_TRY(same_size(cx, k, 3, v, 3, "number of heads",
                             "keys and values"));
            continue;
        }
        TL_TRY(same_size(cx, q, back, k, back, "leading size",
                         "queries and keys"));
        TL_TRY(same_size(cx, k, back, v, back, "leading size",
                         "keys and values"));
    }
    return TL_OK;
}

/* The shape of the scores, [.., H, T, S]. */
static tl_shape scores_of(const tl_ttype *q, const tl_ttype *k)
{
    tl_shape s = q->shape;

    s.dim[s.rank - 1] = axis_of(k, 2);
    return s;
}

static tl_status fail_mask(tl_infer *cx, const tl_shape *scores,
                           const tl_ttype *mask, tl_dim a, tl_dim b)
{
    tl_status st = tl_fail(cx->diag, TL_E0327, "the mask of `sdpa` broadcasts "
                           "to the scores %s, got %s",
                           tl_shape_str(scores).s, tl_ttype_str(mask).s);

    tl_infer_example(cx, a, b);
    return st;
}

static tl_status check_mask(tl_infer *cx, const tl_ttype *in)
{
    const tl_ttype *mask = &in[3];
    tl_shape scores = scores_of(&in[0], &in[1]);

    if (mask->dtype != TL_bool && !tl_dtype_is_float(mask->dtype)) {
        return tl_fail(cx->diag, TL_E0308, "the mask of `sdpa` is bool (true: "
                       "may be seen) or floats that are added, got %s",
                       tl_ttype_str(mask).s);
    }
    for (int i = 1; i <= mask->shape.rank; i++) {
        tl_dim m = axis_of(mask, i), s;
        tl_status st;

        if (i > scores.rank) {
            return fail_mask(cx, &scores, mask, m, m);
        }
        s = scores.dim[scores.rank - i];
        st = tl_dim_is_one(m) ? TL_OK : tl_infer_equal(cx, m, s);
        TL_TRY(st == TL_ERR_PROGRAM ? fail_mask(cx, &scores, mask, m, s)
                                    : st);
    }
    return TL_OK;
}

static tl_dtype joined(const tl_ttype *in)
{
    return tl_dtype_join(tl_dtype_join(in[0].dtype, in[1].dtype),
                         in[2].dtype);
}

tl_status tl_infer_sdpa(tl_infer *cx, tl_op op, const tl_ttype *in, int nin,
                        const tl_attrs *at, tl_ttype *out)
{
    tl_dtype dtype;
    tl_ttype y = in[0];

    (void)at;
    TL_TRY(check_operands(cx, in));
    TL_TRY(nin > 3 ? check_mask(cx, in) : TL_OK);
    TL_TRY(tl_op_compute_dtype(op, joined(in), &dtype, cx->diag));
    y.dtype = dtype;
    y.shape.dim[y.shape.rank - 1] = axis_of(&in[2], 1);
    out[0] = y;
    y.shape.rank--;
    out[1] = (tl_ttype){tl_dtype_arith(dtype), y.shape};
    return TL_OK;
}

/* ---- gradient ----------------------------------------------------------- */

static tl_status mask_gradient(tl_emit *e, const tl_grad_in *gi,
                               const tl_node *in, tl_node *dx)
{
    tl_ttype mask = *e->type(e, gi->in[3]);

    TL_TRY(e->apply(e, TL_OP_sdpa_mask_grad, in, 7, gi->at, dx));
    TL_TRY(tl_emit_sum_to(e, *dx, &mask.shape, dx));
    return tl_emit_cast(e, *dx, mask.dtype, dx);
}

tl_status tl_grad_sdpa(tl_emit *e, const tl_grad_in *gi, tl_node *dx)
{
    tl_node in[7] = {gi->g[0],   gi->in[0],  gi->in[1], gi->in[2],
                     gi->out[0], gi->out[1], NULL};
    tl_node res[3];

    if (!gi->g[0]) {
        return TL_OK;
    }
    if (gi->nin > 3) {
        in[TL_SDPA_MASK] = gi->in[3];
    }
    if (gi->nin > 3 && gi->want[3]) {
        TL_TRY(mask_gradient(e, gi, in, &dx[3]));
    }
    if (!gi->want[0] && !gi->want[1] && !gi->want[2]) {
        return TL_OK;
    }
    TL_TRY(e->apply(e, TL_OP_sdpa_grad, in, gi->nin + 3, gi->at, res));
    for (int i = 0; i < 3; i++) {
        dx[i] = gi->want[i] ? res[i] : NULL;
    }
    return TL_OK;
}

tl_status tl_infer_sdpa_grad(tl_infer *cx, tl_op op, const tl_ttype *in,
                             int nin, const tl_attrs *at, tl_ttype *out)
{
    (void)cx;
    (void)op;
    (void)nin;
    (void)at;
    out[0] = in[TL_SDPA_Q];
    out[1] = in[TL_SDPA_K];
    out[2] = in[TL_SDPA_V];
    return TL_OK;
}

/* The gradient of an added mask, before it is summed to the mask's shape. */
tl_status tl_infer_sdpa_mask_grad(tl_infer *cx, tl_op op, const tl_ttype *in,
                                  int nin, const tl_attrs *at, tl_ttype *out)
{
    (void)cx;
    (void)op;
    (void)nin;
    (void)at;
    *out = (tl_ttype){tl_dtype_arith(in[TL_SDPA_Q].dtype),
                      scores_of(&in[TL_SDPA_Q], &in[TL_SDPA_K])};
    return TL_OK;
}

/* ---- parts -------------------------------------------------------------- */

typedef struct parts {
    tl_emit *e;
    tl_dtype dtype;   /* of the arithmetic */
    tl_node q, k, v;  /* k and v with the heads of q */
    tl_node seen;     /* bool, broadcasts to the scores; NULL: everything */
    tl_node bias;     /* an added mask, or NULL */
    tl_node scores;
    int rank;
} parts;

static uint16_t bit(int axis)
{
    return (uint16_t)(1u << axis);
}

/* [.., G, S, E] -> [.., G * ratio, S, E], each head repeated. */
static tl_status repeat_heads(parts *p, tl_dim ratio, tl_node *x)
{
    tl_shape want = p->e->type(p->e, *x)->shape, wide = want;
    int head = p->rank - 3;

    for (int i = p->rank; i > head + 1; i--) {
        wide.dim[i] = wide.dim[i - 1];
    }
    wide.rank++;
    wide.dim[head + 1] = ratio;
    TL_TRY(tl_dim_mul(p->e->infer->dims, want.dim[head], ratio,
                      &want.dim[head], p->e->infer->diag));
    TL_TRY(tl_emit_unsqueeze(p->e, *x, bit(head + 1), x));
    TL_TRY(tl_emit_shaped(p->e, TL_OP_expand, *x, &wide, x));
    return tl_emit_shaped(p->e, TL_OP_reshape, *x, &want, x);
}

static tl_status spread_heads(parts *p)
{
    tl_ttype q = *p->e->type(p->e, p->q), k = *p->e->type(p->e, p->k);
    tl_dim ratio;

    if (p->rank < 4) {
        return TL_OK;
    }
    TL_TRY(heads_a_key(p->e->infer, axis_of(&q, 3), axis_of(&k, 3), &ratio));
    if (tl_dim_is_one(ratio)) {
        return TL_OK;
    }
    TL_TRY(repeat_heads(p, ratio, &p->k));
    return repeat_heads(p, ratio, &p->v);
}

/* n, n - 1, .. 1, along `axis` of a tensor of full rank. */
static tl_status countdown(parts *p, tl_dim n, int axis, tl_node *out)
{
    tl_shape shape = {.rank = 1, .dim = {n}};
    tl_node one;
    tl_attrs at;

    TL_TRY(tl_emit_const(p->e, 1, TL_i64, &one));
    TL_TRY(tl_emit_shaped(p->e, TL_OP_expand, one, &shape, &one));
    tl_attrs_init(&at);
    at.flag = true;
    TL_TRY(tl_emit1(p->e, TL_OP_cumsum, one, &at, &one));
    return tl_emit_unsqueeze(p->e, one, (uint16_t)((bit(p->rank) - 1) &
                                                   ~bit(axis)), out);
}

/* Query t sees key s where T - t <= S - s. */
static tl_status see_causal(parts *p)
{
    tl_ttype q = *p->e->type(p->e, p->q), k = *p->e->type(p->e, p->k);
    tl_node row, column;

    TL_TRY(countdown(p, axis_of(&q, 2), p->rank - 2, &column));
    TL_TRY(countdown(p, axis_of(&k, 2), p->rank - 1, &row));
    return tl_emit2(p->e, TL_OP_le, column, row, NULL, &p->seen);
}

static tl_status see_masked(parts *p, tl_node mask)
{
    tl_ttype type = *p->e->type(p->e, mask);
    tl_node low;

    TL_TRY(tl_emit_unsqueeze(p->e, mask, bit(p->rank - type.shape.rank) - 1,
                             &mask));
    if (type.dtype != TL_bool) {
        TL_TRY(tl_emit_cast(p->e, mask, p->dtype, &mask));
        p->bias = mask;
        TL_TRY(tl_emit_const(p->e, -INFINITY, p->dtype, &low));
        TL_TRY(tl_emit2(p->e, TL_OP_ne, mask, low, NULL, &mask));
    }
    return p->seen ? tl_emit2(p->e, TL_OP_and, p->seen, mask, NULL, &p->seen)
                   : (p->seen = mask, TL_OK);
}

/* Keys and values that no query sees become 0, so that 0 times what is not
 * finite in them does not arise.  Where only some queries see such a key, the
 * others get nan from it here, unlike in the kernels. */
static tl_status hide_unseen(parts *p)
{
    tl_node any, zero;

    TL_TRY(tl_emit_reduce(p->e, TL_OP_any, p->seen, bit(p->rank - 2), false,
                          &any));
    TL_TRY(tl_emit_unsqueeze(p->e, any, bit(p->rank - 1), &any));
    TL_TRY(tl_emit_const(p->e, 0, p->dtype, &zero));
    TL_TRY(tl_emit3(p->e, TL_OP_where, any, p->k, zero, &p->k));
    return tl_emit3(p->e, TL_OP_where, any, p->v, zero, &p->v);
}

double tl_sdpa_scale(const tl_attrs *at, int64_t size)
{
    return at->keep ? at->f[0] : size > 0 ? 1 / sqrt((double)size) : 1;
}

/* 1 / sqrt(E), or what the program says. */
static tl_status scale_of(parts *p, const tl_attrs *at, double *out)
{
    tl_ttype q = *p->e->type(p->e, p->q);
    tl_dim size = axis_of(&q, 1);
    tl_infer *cx = p->e->infer;

    if (at->keep) {
        *out = at->f[0];
        return TL_OK;
    }
    if (!tl_dim_is_num(size) && cx->pin) {
        TL_TRY(cx->pin(cx->guard_arg, size, &size));
    }
    if (!tl_dim_is_num(size)) {
        return tl_fail(cx->diag, TL_E0511, "`sdpa` of %s is not taken apart "
                       "before the size of a head is known",
                       tl_ttype_str(&q).s);
    }
    *out = tl_sdpa_scale(at, tl_dim_value(size));
    return TL_OK;
}

static tl_status emit_scores(parts *p, const tl_attrs *at)
{
    tl_node t, c;
    double scale;

    TL_TRY(scale_of(p, at, &scale));
    TL_TRY(tl_emit_transpose(p->e, p->k, &t));
    TL_TRY(tl_emit2(p->e, TL_OP_matmul, p->q, t, NULL, &p->scores));
    TL_TRY(tl_emit_const(p->e, scale, p->dtype, &c));
    TL_TRY(tl_emit2(p->e, TL_OP_mul, p->scores, c, NULL, &p->scores));
    return p->bias ? tl_emit2(p->e, TL_OP_add, p->scores, p->bias, NULL,
                              &p->scores)
                   : TL_OK;
}

/* Probabilities: softmax with a number far below for what is not seen, which
 * a row that sees nothing has gradients for, then 0 there. */
static tl_status emit_weights(parts *p, tl_node *w, tl_node *lse)
{
    double lowest = p->dtype == TL_f64 ? -DBL_MAX : (double)-FLT_MAX;
    tl_node x = p->scores, low, none = x, zero;
    tl_attrs at;

    if (p->seen) {
        TL_TRY(tl_emit_const(p->e, lowest, p->dtype, &low));
        TL_TRY(tl_emit3(p->e, TL_OP_where, p->seen, x, low, &x));
        TL_TRY(tl_emit_const(p->e, -INFINITY, p->dtype, &low));
        TL_TRY(tl_emit3(p->e, TL_OP_where, p->seen, p->scores, low, &none));
    }
    TL_TRY(tl_emit_reduce(p->e, TL_OP_logsumexp, none, bit(p->rank - 1),
                          false, lse));
    tl_attrs_init(&at);
    at.axis = (int8_t)(p->rank - 1);
    TL_TRY(tl_emit1(p->e, TL_OP_softmax, x, &at, w));
    if (p->seen) {
        TL_TRY(tl_emit_const(p->e, 0, p->dtype, &zero));
        TL_TRY(tl_emit3(p->e, TL_OP_where, p->seen, *w, zero, w));
    }
    return TL_OK;
}

/* The same draw as the kernel's: element [.., t, s] of the weights. */
static tl_status emit_dropout(parts *p, const tl_attrs *at, tl_node *w)
{
    tl_attrs drop;

    if (at->f[1] == 0) {
        return TL_OK;
    }
    tl_attrs_init(&drop);
    for (int i = 0; i < 3; i++) {
        drop.i[i] = at->i[i];
    }
    drop.f[0] = at->f[1];
    return tl_emit1(p->e, TL_OP_dropout, *w, &drop, w);
}

tl_status tl_decompose_sdpa(tl_emit *e, const tl_node *in, int nin,
                            const tl_attrs *at, tl_node *out)
{
    tl_ttype types[3];
    parts p = {.e = e};
    tl_node w;

    for (int i = 0; i < 3; i++) {
        types[i] = *e->type(e, in[i]);
    }
    p.rank = types[0].shape.rank;
    TL_TRY(tl_op_compute_dtype(TL_OP_sdpa, joined(types), &types[0].dtype,
                               e->infer->diag));
    p.dtype = tl_dtype_arith(types[0].dtype);
    TL_TRY(tl_emit_cast(e, in[0], p.dtype, &p.q));
    TL_TRY(tl_emit_cast(e, in[1], p.dtype, &p.k));
    TL_TRY(tl_emit_cast(e, in[2], p.dtype, &p.v));
    TL_TRY(spread_heads(&p));
    TL_TRY(at->flag ? see_causal(&p) : TL_OK);
    if (nin > 3) {
        TL_TRY(see_masked(&p, in[3]));
        TL_TRY(hide_unseen(&p));
    }
    TL_TRY(emit_scores(&p, at));
    TL_TRY(emit_weights(&p, &w, &out[1]));
    TL_TRY(emit_dropout(&p, at, &w));
    TL_TRY(tl_emit2(e, TL_OP_matmul, w, p.v, NULL, &out[0]));
    return tl_emit_cast(e, out[0], types[0].dtype, &out[0]);
}
