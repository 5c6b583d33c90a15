/* bi_pick.c - picking by index, and order. */
#include "interp/bi_tensor.h"
#include "interp/builtin_fns.h"

/* Attributes with the axis args[i] of args[0]. */
static tl_status axis_attrs(tl_eval *ev, const tl_value *args, int i,
                            tl_attrs *at)
{
    int axis;

    tl_attrs_init(at);
    TL_TRY(tl_arg_axis(ev, args[i], args[0], &axis));
    at->axis = (int8_t)axis;
    return TL_OK;
}

tl_status tl_bi_gather(tl_eval *ev, const tl_builtin *self, tl_value *args,
                       tl_value *out)
{
    tl_attrs at;

    (void)self;
    TL_TRY(axis_attrs(ev, args, 2, &at));
    tl_value in[2] = {tl_arg_take(args, 0), tl_arg_take(args, 1)};

    return tl_eval_op(ev, TL_OP_gather, in, 2, &at, out);
}

tl_status tl_bi_scatter_add(tl_eval *ev, const tl_builtin *self,
                            tl_value *args, tl_value *out)
{
    tl_attrs at;

    (void)self;
    TL_TRY(axis_attrs(ev, args, 3, &at));
    tl_value in[3] = {tl_arg_take(args, 0), tl_arg_take(args, 1),
                      tl_arg_take(args, 2)};

    return tl_eval_op(ev, TL_OP_scatter_add, in, 3, &at, out);
}

tl_status tl_bi_nonzero(tl_eval *ev, const tl_builtin *self, tl_value *args,
                        tl_value *out)
{
    tl_value x = tl_arg_take(args, 0);
    tl_attrs at;

    (void)self;
    tl_attrs_init(&at);
    if (args[1].tag == TL_V_INT) {
        if (args[1].i < 0) {
            tl_unref(x);
            return tl_fail(ev->diag, TL_E0306, "size must be >= 0, got %lld",
                           (long long)args[1].i);
        }
        at.ndims = 1;
        at.dims[0] = tl_dim_num(args[1].i);
    }
    return tl_eval_op(ev, TL_OP_nonzero, &x, 1, &at, out);
}

/* One of the two results of an operation. */
static tl_status one_of(tl_eval *ev, tl_op op, tl_value x, const tl_attrs *at,
                        int which, tl_value *out)
{
    tl_value res[2] = {tl_empty(), tl_empty()};

    TL_TRY(tl_eval_op(ev, op, &x, 1, at, res));
    *out = res[which];
    tl_unref(res[1 - which]);
    return TL_OK;
}

tl_status tl_bi_sort(tl_eval *ev, const tl_builtin *self, tl_value *args,
                     tl_value *out)
{
    tl_attrs at;

    (void)self;
    TL_TRY(axis_attrs(ev, args, 1, &at));
    at.flag = args[2].b;
    return one_of(ev, TL_OP_sort, tl_arg_take(args, 0), &at, 0, out);
}

tl_status tl_bi_argsort(tl_eval *ev, const tl_builtin *self, tl_value *args,
                        tl_value *out)
{
    tl_attrs at;

    (void)self;
    TL_TRY(axis_attrs(ev, args, 1, &at));
    at.flag = args[2].b;
    return one_of(ev, TL_OP_sort, tl_arg_take(args, 0), &at, 1, out);
}

tl_status tl_bi_topk(tl_eval *ev, const tl_builtin *self, tl_value *args,
                     tl_value *out)
{
    tl_value res[2];
    tl_attrs at;

    (void)self;
    TL_TRY(axis_attrs(ev, args, 2, &at));
    at.flag = !args[3].b;
    at.ndims = 1;
    at.dims[0] = tl_dim_num(args[1].i);
    tl_value x = tl_arg_take(args, 0);

    TL_TRY(tl_eval_op(ev, TL_OP_topk, &x, 1, &at, res));
    return tl_seq_new_take(out, TL_V_TUPLE, res, 2, ev->diag);
}

tl_status tl_bi_embedding(tl_eval *ev, const tl_builtin *self,
                          tl_value *args, tl_value *out)
{
    tl_value in[2] = {tl_arg_take(args, 1), tl_arg_take(args, 0)};
    tl_attrs at;

    (void)self;
    tl_attrs_init(&at);
    at.i[0] = args[2].tag == TL_V_INT ? args[2].i : -1;
    return tl_eval_op(ev, TL_OP_embedding, in, 2, &at, out);
}

tl_status tl_bi_one_hot(tl_eval *ev, const tl_builtin *self, tl_value *args,
                        tl_value *out)
{
    tl_value y = tl_arg_take(args, 0);
    tl_attrs at;

    (void)self;
    if (args[1].i < 1) {
        tl_unref(y);
        return tl_fail(ev->diag, TL_E0306,
                       "the number of classes must be >= 1, got %lld",
                       (long long)args[1].i);
    }
    tl_attrs_init(&at);
    at.ndims = 1;
    at.dims[0] = tl_dim_num(args[1].i);
    return tl_eval_op(ev, TL_OP_one_hot, &y, 1, &at, out);
}

tl_status tl_bi_tri(tl_eval *ev, const tl_builtin *self, tl_value *args,
                    tl_value *out)
{
    tl_value x = tl_arg_take(args, 0);
    tl_attrs at;

    tl_attrs_init(&at);
    at.i[0] = args[1].i;
    return tl_eval_op(ev, self->op, &x, 1, &at, out);
}
