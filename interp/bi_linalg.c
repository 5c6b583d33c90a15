/* bi_linalg.c - cholesky, solve, qr; sampling from logits. */
#include <math.h>

#include "interp/bi_tensor.h"
#include "interp/builtin_fns.h"
#include "interp/emit.h"
#include "runtime/op/emit.h"
#include "runtime/op/grad.h"

static tl_status emit_cholesky(tl_emit *e, tl_node a, bool upper,
                               tl_node *out)
{
    if (!upper || e->type(e, a)->shape.rank < 2) {
        return tl_emit1(e, TL_OP_cholesky, a, NULL, out);
    }
    TL_TRY(tl_emit_transpose(e, a, &a));
    TL_TRY(tl_emit1(e, TL_OP_cholesky, a, NULL, &a));
    return tl_emit_transpose(e, a, out);
}

/* cholesky(a, upper) */
tl_status tl_bi_cholesky(tl_eval *ev, const tl_builtin *self, tl_value *args,
                         tl_value *out)
{
    tl_eval_emit e;
    tl_node a;
    tl_status st = TL_OK;

    (void)self;
    tl_eval_emit_init(&e, ev);
    TL_GOTO(st, tl_eval_emit_node_take(&e, tl_arg_take(args, 0), &a));
    TL_GOTO(st, emit_cholesky(&e.emit, a, args[1].b, &a));
    *out = tl_eval_emit_value(a);
out:
    tl_eval_emit_fini(&e);
    return st;
}

tl_status tl_bi_qr(tl_eval *ev, const tl_builtin *self, tl_value *args,
                   tl_value *out)
{
    tl_value a = tl_arg_take(args, 0), res[2];

    (void)self;
    TL_TRY(tl_eval_op(ev, TL_OP_qr, &a, 1, NULL, res));
    return tl_seq_new_take(out, TL_V_TUPLE, res, 2, ev->diag);
}

/* ---- solve --------------------------------------------------------------- */

/* `x` with `batch` in front of its last two axes. */
static tl_status spread(tl_emit *e, tl_node x, const tl_shape *batch,
                        tl_node *out)
{
    tl_shape s = *batch, was = e->type(e, x)->shape;

    s.dim[s.rank] = was.dim[was.rank - 2];
    s.dim[s.rank + 1] = was.dim[was.rank - 1];
    s.rank += 2;
    return tl_emit_shaped(e, TL_OP_expand, x, &s, out);
}

/* Both with the same axes in front of the last two. */
static tl_status join_batches(tl_emit *e, tl_node *a, tl_node *b)
{
    tl_shape s = e->type(e, *a)->shape, t = e->type(e, *b)->shape, all;

    if (s.rank < 2 || t.rank < 2) {
        return TL_OK; /* the rule of solve refuses */
    }
    s.rank -= 2;
    t.rank -= 2;
    TL_TRY(tl_shape_broadcast(e->infer, &all, &s, &t));
    if (all.rank + 2 > TL_MAX_RANK) {
        return tl_fail(e->infer->diag, TL_E0316, "more than %d dimensions",
                       TL_MAX_RANK);
    }
    TL_TRY(spread(e, *a, &all, a));
    return spread(e, *b, &all, b);
}

static tl_status emit_solve(tl_emit *e, tl_node a, tl_node b, tl_node *out)
{
    int rank = e->type(e, b)->shape.rank;
    bool vectors = rank == 1 || rank == e->type(e, a)->shape.rank - 1;
    tl_dtype dtype =
        tl_dtype_join(e->type(e, a)->dtype, e->type(e, b)->dtype);
    tl_attrs at;

    if (vectors && rank < TL_MAX_RANK) {
        TL_TRY(tl_emit_unsqueeze(e, b, (uint16_t)(1u << rank), &b));
    }
    TL_TRY(tl_op_compute_dtype(TL_OP_solve, dtype, &dtype, e->infer->diag));
    TL_TRY(tl_emit_cast(e, a, dtype, &a));
    TL_TRY(tl_emit_cast(e, b, dtype, &b));
    TL_TRY(join_batches(e, &a, &b));
    tl_attrs_init(&at);
    TL_TRY(tl_emit2(e, TL_OP_solve, a, b, &at, out));
    rank = e->type(e, *out)->shape.rank;
    return vectors
               ? tl_emit_squeeze(e, *out, (uint16_t)(1u << (rank - 1)), out)
               : TL_OK;
}

/* solve(a, b) */
tl_status tl_bi_solve(tl_eval *ev, const tl_builtin *self, tl_value *args,
                      tl_value *out)
{
    tl_eval_emit e;
    tl_node a, b;
    tl_status st = TL_OK;

    (void)self;
    tl_eval_emit_init(&e, ev);
    TL_GOTO(st, tl_eval_emit_node_take(&e, tl_arg_take(args, 0), &a));
    TL_GOTO(st, tl_eval_emit_node_take(&e, tl_arg_take(args, 1), &b));
    TL_GOTO(st, emit_solve(&e.emit, a, b, &a));
    *out = tl_eval_emit_value(a);
out:
    tl_eval_emit_fini(&e);
    return st;
}

/* ---- sampling ------------------------------------------------------------ */

/* -inf where x is below its k-th largest along the last axis. */
static tl_status emit_top(tl_emit *e, tl_node x, int64_t k, tl_node *out)
{
    tl_ttype type = *e->type(e, x);
    int axis = type.shape.rank - 1;
    tl_node top[2], below, none;
    tl_attrs at;

    tl_attrs_init(&at);
    at.axis = (int8_t)axis;
    at.ndims = 1;
    at.dims[0] = tl_dim_num(k);
    TL_TRY(e->apply(e, TL_OP_topk, &x, 1, &at, top));
    TL_TRY(tl_emit_slice_axis(e, top[0], axis, tl_dim_num(k - 1),
                              tl_dim_num(1), &top[0]));
    TL_TRY(tl_emit2(e, TL_OP_lt, x, top[0], NULL, &below));
    TL_TRY(tl_emit_const(e, -HUGE_VAL, type.dtype, &none));
    return tl_emit3(e, TL_OP_where, below, none, x, out);
}

/* The size of the last axis of float logits, a number if it can be. */
static tl_status last_size(tl_eval *ev, const char *name, tl_value x,
                           tl_dim *out)
{
    tl_ttype type;

    TL_TRY(tl_eval_type(ev, x, &type));
    if (type.shape.rank < 1 || !tl_dtype_is_float(type.dtype)) {
        return tl_fail(ev->diag, type.shape.rank < 1 ? TL_E0304 : TL_E0308,
                       "`%s` takes float logits [.., classes], got %s", name,
                       tl_ttype_str(&type).s);
    }
    *out = type.shape.dim[type.shape.rank - 1];
    return tl_pin_size(ev, out);
}

/* keep_top(logits, k) */
tl_status tl_bi_keep_top(tl_eval *ev, const tl_builtin *self, tl_value *args,
                         tl_value *out)
{
    tl_eval_emit e;
    tl_node x;
    tl_dim n;
    tl_status st = TL_OK;

    TL_TRY(last_size(ev, self->name, args[0], &n));
    if (args[1].i < 1) {
        return tl_fail(ev->diag, TL_E0415,
                       "`keep_top` keeps at least 1, got "
                       "%lld",
                       (long long)args[1].i);
    }
    if (!tl_dim_is_num(n) || args[1].i >= tl_dim_value(n)) {
        *out = tl_arg_take(args, 0); /* the type is the same in any case */
        return TL_OK;
    }
    tl_eval_emit_init(&e, ev);
    TL_GOTO(st, tl_eval_emit_node_take(&e, tl_arg_take(args, 0), &x));
    TL_GOTO(st, emit_top(&e.emit, x, args[1].i, &x));
    *out = tl_eval_emit_value(x);
out:
    tl_eval_emit_fini(&e);
    return st;
}

/* sample(logits) */
tl_status tl_bi_sample(tl_eval *ev, const tl_builtin *self, tl_value *args,
                       tl_value *out)
{
    tl_value x;
    tl_attrs at;
    tl_dim n;
    int axis;

    TL_TRY(last_size(ev, self->name, args[0], &n));
    x = tl_arg_take(args, 0);
    axis = tl_value_rank(x) - 1;
    tl_attrs_init(&at);
    at.axis = (int8_t)axis;
    TL_TRY(tl_eval_op(ev, TL_OP_softmax, &x, 1, &at, &x));
    tl_attrs_init(&at);
    at.ndims = 1;
    at.dims[0] = tl_dim_num(1);
    tl_set_draw(ev, &at);
    TL_TRY(tl_eval_op(ev, TL_OP_multinomial, &x, 1, &at, &x));
    tl_attrs_init(&at);
    at.axes = (uint16_t)(1u << axis);
    return tl_eval_op(ev, TL_OP_squeeze, &x, 1, &at, out);
}
