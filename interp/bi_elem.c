/* bi_elem.c - elementwise built-ins; host numbers give host numbers. */
#include <math.h>

#include "interp/bi_host.h"
#include "interp/bi_tensor.h"
#include "interp/builtin_fns.h"
#include "interp/sym.h"

tl_status tl_arg_tensor(tl_eval *ev, tl_value *args, int i, tl_value *out)
{
    return tl_eval_as_tensor_take(ev, tl_arg_take(args, i), out);
}

tl_status tl_bi_op2(tl_eval *ev, const tl_builtin *self, tl_value *args,
                    tl_value *out)
{
    tl_value in[2] = {tl_arg_take(args, 0), tl_arg_take(args, 1)};

    return tl_eval_op(ev, self->op, in, 2, NULL, out);
}

tl_status tl_bi_map1(tl_eval *ev, const tl_builtin *self, tl_value *args,
                     tl_value *out)
{
    bool mine = false;
    tl_value x = tl_empty();

    if (tl_is_sym(args[0])) {
        TL_TRY(tl_sym_function(ev, self->op, args[0], &mine, out));
        if (mine) {
            return TL_OK;
        }
        TL_TRY(tl_sym_read(ev, &args[0]));
    }
    TL_TRY(tl_host_map1(ev, self->op, args[0], &mine, out));
    if (mine) {
        return TL_OK;
    }
    TL_TRY(tl_arg_tensor(ev, args, 0, &x));
    return tl_eval_op(ev, self->op, &x, 1, NULL, out);
}

tl_status tl_bi_round(tl_eval *ev, const tl_builtin *self, tl_value *args,
                      tl_value *out)
{
    bool mine = false;

    if (args[1].i != 0) {
        TL_TRY(tl_host_round(ev, args[0], args[1].i, &mine, out));
        if (mine) {
            return TL_OK;
        }
        return tl_fail(ev->diag, TL_E0210,
                       "digits are for host numbers, got %s",
                       tl_value_type_str(args[0]).s);
    }
    return tl_bi_map1(ev, self, args, out);
}

tl_status tl_bi_map2(tl_eval *ev, const tl_builtin *self, tl_value *args,
                     tl_value *out)
{
    bool mine = false;

    TL_TRY(tl_host_map2(ev, self->op, args[0], args[1], &mine, out));
    if (mine) {
        return TL_OK;
    }
    tl_value in[2] = {tl_arg_take(args, 0), tl_arg_take(args, 1)};

    for (int i = 0; i < 2; i++) { /* nested lists; numbers stay weak */
        if (in[i].tag == TL_V_LIST) {
            tl_status st = tl_eval_as_tensor_take(ev, in[i], &in[i]);

            if (st != TL_OK) {
                tl_unref(in[1 - i]);
                return st;
            }
        }
    }
    return tl_eval_op(ev, self->op, in, 2, NULL, out);
}

/* leaky_relu(x, slope), elu(x, alpha) */
tl_status tl_bi_slope(tl_eval *ev, const tl_builtin *self, tl_value *args,
                      tl_value *out)
{
    tl_value x = tl_arg_take(args, 0);
    tl_attrs at;

    tl_attrs_init(&at);
    at.f[0] = args[1].f;
    return tl_eval_op(ev, self->op, &x, 1, &at, out);
}

tl_status tl_bi_where(tl_eval *ev, const tl_builtin *self, tl_value *args,
                      tl_value *out)
{
    tl_value in[3];

    (void)self;
    if (args[1].tag == TL_V_NONE || args[2].tag == TL_V_NONE) {
        tl_status st = tl_fail(ev->diag, TL_E0204,
                               "`where` needs the values for both cases");

        tl_diag_help(ev->diag, "where(cond, a, b); nonzero(cond) gives the "
                               "indices");
        return st;
    }
    if (args[0].tag == TL_V_BOOL) { /* a host condition chooses */
        *out = tl_arg_take(args, args[0].b ? 1 : 2);
        return TL_OK;
    }
    TL_TRY(tl_arg_tensor(ev, args, 0, &in[0]));
    in[1] = tl_arg_take(args, 1);
    in[2] = tl_arg_take(args, 2);
    if (tl_is_number(in[1]) && tl_is_number(in[2])) {
        /* the condition does not count for the dtype */
        bool f = in[1].tag == TL_V_FLOAT || in[2].tag == TL_V_FLOAT;
        bool b = in[1].tag == TL_V_BOOL && in[2].tag == TL_V_BOOL;
        tl_dtype d = f ? TL_f32 : b ? TL_bool : TL_i64;

        for (int i = 1; i < 3; i++) {
            tl_status st = tl_eval_scalar(ev, in[i], d, &in[i]);

            if (st != TL_OK) {
                tl_unref_all(in, 3);
                return st;
            }
        }
    }
    return tl_eval_op(ev, TL_OP_where, in, 3, NULL, out);
}

/* A bound of clamp: a host number, else `missing`. */
static tl_status bound(tl_eval *ev, tl_value v, double missing, double *out)
{
    if (v.tag == TL_V_NONE) {
        *out = missing;
        return TL_OK;
    }
    if (!tl_is_number(v)) {
        return tl_fail(ev->diag, TL_E0210,
                       "the bounds of `clamp` are numbers, got %s",
                       tl_value_type_str(v).s);
    }
    *out = tl_number_f(v);
    return TL_OK;
}

/* A tensor of ints in f32, as arithmetic with a float makes it.  Eats x. */
static tl_status as_float(tl_eval *ev, tl_value x, tl_value *out)
{
    tl_ttype type;
    tl_attrs at;

    *out = x;
    if (x.tag == TL_V_UNKNOWN) {
        return TL_OK;
    }
    tl_status st = tl_eval_type(ev, x, &type);

    if (st != TL_OK) {
        tl_drop(out);
        return st;
    }
    if (tl_dtype_is_float(type.dtype)) {
        return TL_OK;
    }
    tl_attrs_init(&at);
    at.dtype = TL_f32;
    return tl_eval_op(ev, TL_OP_cast, out, 1, &at, out);
}

tl_status tl_bi_clamp(tl_eval *ev, const tl_builtin *self, tl_value *args,
                      tl_value *out)
{
    bool mine = false;
    tl_value x = tl_empty();
    tl_attrs at;

    if (args[1].tag == TL_V_NONE && args[2].tag == TL_V_NONE) {
        return tl_fail(ev->diag, TL_E0204, "`clamp` needs a bound: lo, hi or "
                                           "both");
    }
    TL_TRY(tl_host_clamp(ev, args[0], args[1], args[2], &mine, out));
    if (mine) {
        return TL_OK;
    }
    tl_attrs_init(&at);
    TL_TRY(bound(ev, args[1], -INFINITY, &at.f[0]));
    TL_TRY(bound(ev, args[2], INFINITY, &at.f[1]));
    TL_TRY(tl_arg_tensor(ev, args, 0, &x));
    if (args[1].tag == TL_V_FLOAT || args[2].tag == TL_V_FLOAT) {
        TL_TRY(as_float(ev, x, &x));
    }
    return tl_eval_op(ev, self->op, &x, 1, &at, out);
}
