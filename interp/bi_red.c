/* bi_red.c - reductions and scans of tensors; lists go to the host half. */
#include "interp/bi_host.h"
#include "interp/bi_tensor.h"
#include "interp/builtin_fns.h"

int tl_value_rank(tl_value t)
{
    return t.tag == TL_V_TENSOR ? t.tensor->rank : t.node->type.shape.rank;
}

tl_status tl_arg_axis(tl_eval *ev, tl_value axis, tl_value of, int *out)
{
    return tl_axis_normalise(axis.i, tl_value_rank(of), out, ev->diag);
}

tl_status tl_arg_axes(tl_eval *ev, tl_value axes, tl_value of, uint16_t *out)
{
    int rank = tl_value_rank(of), a;

    *out = 0;
    if (axes.tag == TL_V_NONE) {
        *out = (uint16_t)((1u << rank) - 1);
        return TL_OK;
    }
    if (axes.tag == TL_V_INT) {
        TL_TRY(tl_axis_normalise(axes.i, rank, &a, ev->diag));
        *out = (uint16_t)(1u << a);
        return TL_OK;
    }
    for (size_t i = 0; i < axes.seq->len; i++) {
        TL_TRY(tl_axis_normalise(axes.seq->items[i].i, rank, &a, ev->diag));
        if (*out & (1u << a)) {
            return tl_fail(ev->diag, TL_E0309, "axis %d is given twice", a);
        }
        *out |= (uint16_t)(1u << a);
    }
    return TL_OK;
}

/* The host reduction of an operation, or -1. */
static int host_red(tl_op op)
{
    switch (op) {
    case TL_OP_sum:
        return TL_HOST_SUM;
    case TL_OP_prod:
        return TL_HOST_PROD;
    case TL_OP_mean:
        return TL_HOST_MEAN;
    case TL_OP_max:
        return TL_HOST_MAX;
    case TL_OP_min:
        return TL_HOST_MIN;
    case TL_OP_any:
        return TL_HOST_ANY;
    case TL_OP_all:
        return TL_HOST_ALL;
    default:
        return -1;
    }
}

/* Reduce tensor `x` (eaten) by a row's `axis` and `keep`. */
static tl_status reduce_take(tl_eval *ev, tl_op op, tl_value x,
                             tl_value axis, bool keep, double correction,
                             tl_value *out)
{
    tl_attrs at;

    tl_attrs_init(&at);
    at.keep = keep;
    at.flag = axis.tag == TL_V_NONE;
    at.f[0] = correction;
    tl_status st = tl_arg_axes(ev, axis, x, &at.axes);

    if (st != TL_OK) {
        tl_unref(x);
        return st;
    }
    return tl_eval_op(ev, op, &x, 1, &at, out);
}

tl_status tl_bi_red(tl_eval *ev, const tl_builtin *self, tl_value *args,
                    tl_value *out)
{
    tl_value x = args[0];
    int host = host_red(self->op);
    bool mine = false;

    if (!tl_is_tensor(x) && host >= 0 && args[1].tag == TL_V_NONE) {
        TL_TRY(tl_host_reduce(ev, (tl_host_red)host, x, &mine, out));
        if (mine) {
            return TL_OK;
        }
    }
    TL_TRY(tl_arg_tensor(ev, args, 0, &x));
    if (x.tag == TL_V_UNKNOWN) {
        *out = x;
        return TL_OK;
    }
    return reduce_take(ev, self->op, x, args[1], args[2].b, 0, out);
}

/* max(x, axis=), max(a, b, ...), max(list) */
tl_status tl_bi_extremum(tl_eval *ev, const tl_builtin *self, tl_value *args,
                         tl_value *out)
{
    const tl_seq *xs = args[0].seq;
    bool mine = false;
    tl_value one;

    if (xs->len != 1) {
        TL_TRY(tl_host_extremum(ev, self->op == TL_OP_max, xs->items,
                                xs->len, &mine, out));
        if (mine) {
            return TL_OK;
        }
        tl_status st = tl_fail(ev->diag, TL_E0210,
                               "`%s` of several values takes host numbers",
                               self->name);

        tl_diag_help(ev->diag, "`%simum(a, b)` is elementwise", self->name);
        return st;
    }
    tl_value single[3] = {tl_ref(xs->items[0]), args[1], args[2]};

    one = single[0];
    tl_status st = tl_bi_red(ev, self, single, out);

    (void)one;
    tl_unref(single[0]);
    return st;
}

/* var, std: f[0] is the correction */
tl_status tl_bi_spread(tl_eval *ev, const tl_builtin *self, tl_value *args,
                       tl_value *out)
{
    tl_value x = tl_empty();
    double correction = args[4].b ? tl_number_f(args[3]) : 0;

    TL_TRY(tl_arg_tensor(ev, args, 0, &x));
    return reduce_take(ev, self->op, x, args[1], args[2].b, correction, out);
}

tl_status tl_bi_scan(tl_eval *ev, const tl_builtin *self, tl_value *args,
                     tl_value *out)
{
    tl_value x = args[0];
    tl_attrs at;
    int axis;

    tl_attrs_init(&at);
    TL_TRY(tl_arg_axis(ev, args[1], x, &axis));
    at.axis = (int8_t)axis;
    x = tl_arg_take(args, 0);
    return tl_eval_op(ev, self->op, &x, 1, &at, out);
}
