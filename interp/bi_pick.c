/* bi_pick.c - picking by index, and order. */
#include "interp/bi_tensor.h"
#include "interp/builtin_fns.h"

tl_status tl_bi_gather(tl_eval *ev, const tl_builtin *self, tl_value *args,
                       tl_value *out)
{
    tl_value in[2] = {tl_arg_take(args, 0), tl_arg_take(args, 1)};
    tl_attrs at;

    (void)self;
    tl_attrs_init(&at);
    return tl_op_along(ev, TL_OP_gather, in, 2, args[2], &at, out);
}

tl_status tl_bi_scatter_add(tl_eval *ev, const tl_builtin *self,
                            tl_value *args, tl_value *out)
{
    tl_value in[3] = {tl_arg_take(args, 0), tl_arg_take(args, 1),
                      tl_arg_take(args, 2)};
    tl_attrs at;

    (void)self;
    tl_attrs_init(&at);
    return tl_op_along(ev, TL_OP_scatter_add, in, 3, args[3], &at, out);
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

/* One of the two results of sorting along an axis. */
static tl_status sorted_one(tl_eval *ev, tl_value *args, int which,
                            tl_value *out)
{
    tl_value res[2] = {tl_empty(), tl_empty()}, x = tl_arg_take(args, 0);
    tl_attrs at;

    tl_attrs_init(&at);
    at.flag = args[2].b;
    TL_TRY(tl_op_along(ev, TL_OP_sort, &x, 1, args[1], &at, res));
    *out = res[which];
    tl_unref(res[1 - which]);
    return TL_OK;
}

tl_status tl_bi_sort(tl_eval *ev, const tl_builtin *self, tl_value *args,
                     tl_value *out)
{
    (void)self;
    return sorted_one(ev, args, 0, out);
}

tl_status tl_bi_argsort(tl_eval *ev, const tl_builtin *self, tl_value *args,
                        tl_value *out)
{
    (void)self;
    return sorted_one(ev, args, 1, out);
}

tl_status tl_bi_topk(tl_eval *ev, const tl_builtin *self, tl_value *args,
                     tl_value *out)
{
    tl_value res[2] = {tl_empty(), tl_empty()}, x = tl_arg_take(args, 0);
    tl_attrs at;

    (void)self;
    tl_attrs_init(&at);
    at.flag = !args[3].b;
    at.ndims = 1;
    at.dims[0] = tl_dim_num(args[1].i);
    TL_TRY(tl_op_along(ev, TL_OP_topk, &x, 1, args[2], &at, res));
    return tl_seq_new_take(out, TL_V_TUPLE, res, 2, ev->diag);
}

/* Axis `axis` of `v` (eaten) to the front, or the first one back to it. */
static tl_status move_axis(tl_eval *ev, tl_value v, int axis, bool back,
                           tl_value *out)
{
    int rank = tl_value_rank(v);
    tl_attrs at;

    if (axis == 0) {
        *out = v;
        return TL_OK;
    }
    tl_attrs_init(&at);
    at.ndims = (uint16_t)rank;
    for (int i = 0; i < rank; i++) {
        int turned = (i + (back ? 1 : axis)) % (axis + 1);

        at.dims[i] = tl_dim_num(i <= axis ? turned : i);
    }
    return tl_eval_op(ev, TL_OP_permute, &v, 1, &at, out);
}

/* unique of elements; with an axis, of the parts along it. */
static tl_status distinct(tl_eval *ev, tl_value x, tl_value axis,
                          tl_value *res)
{
    tl_status st = TL_OK;
    tl_attrs at;
    int a = 0;

    tl_attrs_init(&at);
    at.flag = axis.tag == TL_V_INT;
    if (at.flag) {
        st = tl_arg_axis(ev, axis, x, &a);
        if (st != TL_OK) {
            tl_unref(x);
            return st;
        }
        TL_TRY(move_axis(ev, x, a, false, &x));
    }
    TL_TRY(tl_eval_op(ev, TL_OP_unique, &x, 1, &at, res));
    tl_value values = res[0];

    res[0] = tl_empty();
    st = move_axis(ev, values, a, true, &res[0]);
    if (st != TL_OK) {
        tl_unref_all(res, 3);
    }
    return st;
}

tl_status tl_bi_unique(tl_eval *ev, const tl_builtin *self, tl_value *args,
                       tl_value *out)
{
    tl_value res[3] = {tl_empty(), tl_empty(), tl_empty()};
    bool wanted[3] = {true, args[1].b, args[2].b};
    size_t n = 0;

    (void)self;
    TL_TRY(distinct(ev, tl_arg_take(args, 0), args[3], res));
    for (int i = 0; i < 3; i++) {
        if (wanted[i]) {
            res[n++] = res[i];
        } else {
            tl_unref(res[i]);
        }
    }
    if (n == 1) {
        *out = res[0];
        return TL_OK;
    }
    return tl_seq_new_take(out, TL_V_TUPLE, res, n, ev->diag);
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
