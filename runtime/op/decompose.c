/* decompose.c - regions taken apart into elementary operations. */
#include "runtime/op/decompose.h"

#include "runtime/base/check.h"
#include "runtime/op/attention.h"
#include "runtime/op/emit.h"
#include "runtime/op/loss.h"
#include "runtime/op/rules.h"

bool tl_op_decomposes(tl_op op)
{
    return op == TL_OP_cross_entropy || op == TL_OP_layer_norm ||
           op == TL_OP_rms_norm || op == TL_OP_batch_norm ||
           op == TL_OP_group_norm || op == TL_OP_sdpa;
}

/* What only the parts of a region can differentiate twice. */
tl_status tl_grad_of_region_grad(tl_emit *e, const tl_grad_in *gi,
                                 tl_node *dx)
{
    (void)dx;
    return tl_fail(e->infer->diag, TL_E0511,
                   "`%s` has no gradient: its region must be taken apart",
                   tl_op_get(gi->op)->name);
}

static tl_status emit_scaled(tl_emit *e, tl_node x, double factor,
                             tl_dtype dtype, tl_node *out)
{
    tl_node c;

    TL_TRY(tl_emit_const(e, factor, dtype, &c));
    return tl_emit2(e, TL_OP_mul, c, x, NULL, out);
}

/* ---- cross_entropy ------------------------------------------------------ */

typedef struct loss {
    tl_emit *e;
    tl_node x, w; /* in the dtype of the arithmetic; w may be NULL */
    tl_node ignored, class;
    tl_dtype dtype;
    tl_dim classes;
    int rank; /* of x */
    double smoothing;
} loss;

/* The mask of ignored rows, and targets with 0 in their place. */
static tl_status loss_targets(loss *l, tl_node y, int64_t ignore)
{
    tl_node number, zero;

    TL_TRY(tl_emit_cast(l->e, y, TL_i64, &y));
    TL_TRY(tl_emit_const(l->e, (double)ignore, TL_i64, &number));
    TL_TRY(tl_emit2(l->e, TL_OP_eq, y, number, NULL, &l->ignored));
    TL_TRY(tl_emit_const(l->e, 0, TL_i64, &zero));
    return tl_emit3(l->e, TL_OP_where, l->ignored, zero, y, &l->class);
}

/* x[.., class] */
static tl_status pick_class(loss *l, tl_node x, tl_node *out)
{
    uint16_t last = (uint16_t)(1u << (l->rank - 1));
    tl_node index;
    tl_attrs at;

    tl_attrs_init(&at);
    at.axis = (int8_t)(l->rank - 1);
    TL_TRY(tl_emit_unsqueeze(l->e, l->class, last, &index));
    TL_TRY(tl_emit2(l->e, TL_OP_gather, x, index, &at, out));
    return tl_emit_squeeze(l->e, *out, last, out);
}

/* Weight of each row's class; NULL: 1. */
static tl_status pick_weight(loss *l, tl_node *out)
{
    tl_attrs at;

    *out = NULL;
    if (!l->w) {
        return TL_OK;
    }
    tl_attrs_init(&at);
    at.axes = 1;
    return tl_emit2(l->e, TL_OP_index, l->w, l->class, &at, out);
}

/* sum over k of w_k (lse - x_k) */
static tl_status emit_spread(loss *l, tl_node lse, tl_node *out)
{
    uint16_t last = (uint16_t)(1u << (l->rank - 1));
    tl_node d;

    TL_TRY(tl_emit_unsqueeze(l->e, lse, last, &d));
    TL_TRY(tl_emit2(l->e, TL_OP_sub, d, l->x, NULL, &d));
    if (l->w) {
        TL_TRY(tl_emit2(l->e, TL_OP_mul, l->w, d, NULL, &d));
    }
    return tl_emit_reduce(l->e, TL_OP_sum, d, last, false, out);
}

/* The cost of each row, 0 for ignored ones. */
static tl_status row_costs(loss *l, tl_node lse, tl_node weight, tl_node *out)
{
    tl_node cost, zero, spread;

    TL_TRY(pick_class(l, l->x, &cost));
    TL_TRY(tl_emit2(l->e, TL_OP_sub, lse, cost, NULL, &cost));
    if (weight) {
        TL_TRY(tl_emit2(l->e, TL_OP_mul, weight, cost, NULL, &cost));
    }
    if (l->smoothing != 0) {
        if (!tl_dim_is_num(l->classes)) {
            return tl_fail(l->e->infer->diag, TL_E0511,
                           "label smoothing over %s classes is not taken "
                           "apart before the number is known",
                           tl_dim_str(l->classes).s);
        }
        TL_TRY(emit_spread(l, lse, &spread));
        TL_TRY(emit_scaled(l->e, spread,
                           l->smoothing / (double)tl_dim_value(l->classes),
                           l->dtype, &spread));
        TL_TRY(emit_scaled(l->e, cost, 1 - l->smoothing, l->dtype, &cost));
        TL_TRY(tl_emit2(l->e, TL_OP_add, cost, spread, NULL, &cost));
    }
    TL_TRY(tl_emit_const(l->e, 0, l->dtype, &zero));
    return tl_emit3(l->e, TL_OP_where, l->ignored, zero, cost, out);
}

/* Sum of all elements. */
static tl_status emit_total(loss *l, tl_node x, tl_node *out)
{
    uint16_t axes = (uint16_t)((1u << (l->rank - 1)) - 1);

    return tl_emit_reduce(l->e, TL_OP_sum, x, axes, false, out);
}

static tl_status mean_of(loss *l, tl_node cost, tl_node weight, tl_node *out)
{
    tl_node one, zero, sum;

    TL_TRY(tl_emit_const(l->e, 1, l->dtype, &one));
    TL_TRY(tl_emit_const(l->e, 0, l->dtype, &zero));
    TL_TRY(tl_emit3(l->e, TL_OP_where, l->ignored, zero,
                    weight ? weight : one, &weight));
    TL_TRY(emit_total(l, weight, &weight));
    TL_TRY(emit_total(l, cost, &sum));
    return tl_emit2(l->e, TL_OP_div, sum, weight, NULL, out);
}

static tl_status decompose_cross_entropy(tl_emit *e, const tl_node *in,
                                         int nin, const tl_attrs *at,
                                         tl_node *out)
{
    tl_ttype x = *e->type(e, in[0]);
    loss l = {.e = e, .rank = x.shape.rank, .smoothing = at->f[0],
              .classes = x.shape.dim[x.shape.rank - 1]};
    uint16_t last = (uint16_t)(1u << (l.rank - 1));
    tl_node weight, cost;

    l.dtype = tl_dtype_arith(tl_dtype_is_float(x.dtype) ? x.dtype : TL_f32);
    TL_TRY(tl_emit_cast(e, in[0], l.dtype, &l.x));
    if (nin > 2) {
        TL_TRY(tl_emit_cast(e, in[2], l.dtype, &l.w));
    }
    TL_TRY(loss_targets(&l, in[1], at->i[0]));
    if (at->flag) {
        x.shape.rank--;
        TL_TRY(tl_emit_zeros(e, l.dtype, &x.shape, &out[1]));
    } else {
        TL_TRY(tl_emit_reduce(e, TL_OP_logsumexp, l.x, last, false,
                              &out[1]));
    }
    TL_TRY(pick_weight(&l, &weight));
    TL_TRY(row_costs(&l, out[1], weight, &cost));
    if (at->i[1] == TL_LOSS_MEAN) {
        TL_TRY(mean_of(&l, cost, weight, &cost));
    } else if (at->i[1] == TL_LOSS_SUM) {
        TL_TRY(emit_total(&l, cost, &cost));
    }
    return tl_emit_cast(e, cost,
                        tl_dtype_is_float(x.dtype) ? x.dtype : TL_f32,
                        &out[0]);
}

tl_status tl_op_decompose(tl_emit *e, tl_op op, const tl_node *in, int nin,
                          const tl_attrs *at, tl_node *out)
{
    TL_CHECK(tl_op_decomposes(op));
    switch (op) {
    case TL_OP_layer_norm:
        return tl_decompose_layer_norm(e, in, nin, at, out);
    case TL_OP_rms_norm:
        return tl_decompose_rms_norm(e, in, nin, at, out);
    case TL_OP_batch_norm:
        return tl_decompose_batch_norm(e, in, nin, at, out);
    case TL_OP_group_norm:
        return tl_decompose_group_norm(e, in, nin, at, out);
    case TL_OP_sdpa:
        return tl_decompose_sdpa(e, in, nin, at, out);
    default:
        return decompose_cross_entropy(e, in, nin, at, out);
    }
}
