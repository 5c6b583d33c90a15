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

/* The inputs without axes get one.  On failure they are released. */
static tl_status give_axis(tl_eval *ev, tl_value *in, int nin)
{
    tl_status st = TL_OK;

    for (int i = 0; i < nin && st == TL_OK; i++) {
        if (tl_value_rank(in[i]) == 0) {
            tl_value v = in[i];

            in[i] = tl_empty();
            st = tl_do_unsqueeze(ev, v, 0, &in[i]);
        }
    }
    if (st != TL_OK) {
        tl_unref_all(in, (size_t)nin);
    }
    return st;
}

tl_status tl_op_along(tl_eval *ev, tl_op op, tl_value *in, int nin,
                      tl_value axis, tl_attrs *at, tl_value *out)
{
    int rank = tl_value_rank(in[0]), a = 0;
    bool lower = rank == 0 && (op != TL_OP_gather ||
                               tl_value_rank(in[1]) == 0);
    int nout = tl_op_get(op)->nout;
    tl_status st = tl_axis_normalise(axis.i, rank == 0 ? 1 : rank, &a,
                                     ev->diag);

    at->axis = (int8_t)a;
    if (st != TL_OK) {
        tl_unref_all(in, (size_t)nin);
        return st;
    }
    if (rank == 0) {
        TL_TRY(give_axis(ev, in, nin));
    }
    TL_TRY(tl_eval_op(ev, op, in, nin, at, out));
    for (int i = 0; lower && i < nout; i++) {
        tl_value v = out[i];

        out[i] = tl_empty();
        st = tl_do_reshape(ev, v, 0, NULL, &out[i]);
        if (st != TL_OK) {
            tl_unref_all(out, (size_t)nout);
            return st;
        }
    }
    return TL_OK;
}

tl_status tl_arg_axes(tl_eval *ev, tl_value axes, tl_value of, uint16_t *out)
{
    int rank = tl_value_rank(of), a;
    unsigned set = 0, all = (1u << rank) - 1;

    if (axes.tag == TL_V_NONE) {
        *out = (uint16_t)all;
        return TL_OK;
    }
    size_t n = axes.tag == TL_V_INT ? 1 : axes.seq->len;
    const tl_value *at = axes.tag == TL_V_INT ? &axes : axes.seq->items;

    for (size_t i = 0; i < n; i++) {
        TL_TRY(tl_axis_normalise(at[i].i, rank == 0 ? 1 : rank, &a,
                                 ev->diag));
        if (set & (1u << a)) {
            return tl_fail(ev->diag, TL_E0309, "axis %d is given twice", a);
        }
        set |= 1u << a;
    }
    *out = (uint16_t)(set & all);
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
    tl_value x = tl_arg_take(args, 0);
    tl_attrs at;

    tl_attrs_init(&at);
    return tl_op_along(ev, self->op, &x, 1, args[1], &at, out);
}
