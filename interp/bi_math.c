/* bi_math.c - functions of host numbers: see bi_host.h.
 *
 * Computed in double.  Where a tensor would get nan or inf, a host number
 * gives an error, as 1.0 / 0 does. */
#include "interp/bi_host.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "runtime/base/size.h"

static tl_status outside(tl_eval *ev, tl_op op, double x)
{
    return tl_fail(ev->diag, TL_E0416, "%s(%g) is not defined",
                   tl_op_get(op)->name, x);
}

/* ---- to int ------------------------------------------------------------ */

static tl_status whole(tl_eval *ev, double x, tl_value *out)
{
    if (!(x >= -0x1p63 && x < 0x1p63)) {
        return tl_fail(ev->diag, TL_E0404, "%g has no int of 64 bits", x);
    }
    *out = tl_int_value((int64_t)x);
    return TL_OK;
}

static tl_status rounding(tl_eval *ev, tl_op op, tl_value x, tl_value *out)
{
    if (x.tag != TL_V_FLOAT) {
        *out = tl_int_value(x.tag == TL_V_INT ? x.i : x.b);
        return TL_OK;
    }
    return whole(ev,
                 op == TL_OP_floor  ? floor(x.f)
                 : op == TL_OP_ceil ? ceil(x.f)
                                    : nearbyint(x.f),
                 out);
}

/* ---- kept types: abs, sign, relu --------------------------------------- */

static tl_status keeping_int(tl_eval *ev, tl_op op, int64_t i, tl_value *out)
{
    if (op == TL_OP_sign) {
        i = (i > 0) - (i < 0);
    } else if (op == TL_OP_relu) {
        i = i > 0 ? i : 0;
    } else if (i < 0 && !tl_sub_i64(&i, 0, i)) {
        return tl_fail(ev->diag, TL_E0404, "abs(%lld) overflows",
                       (long long)i);
    }
    *out = tl_int_value(i);
    return TL_OK;
}

static double keeping_float(tl_op op, double x)
{
    if (op == TL_OP_abs) {
        return fabs(x);
    }
    if (op == TL_OP_sign) {
        return x != x ? x : (double)((x > 0) - (x < 0));
    }
    return x > 0 || x != x ? x : 0.0;
}

/* ---- to float ---------------------------------------------------------- */

/* false: not a function of this list. */
static bool real_function(tl_op op, double x, double *out)
{
    switch ((int)op) {
    case TL_OP_exp:
        *out = exp(x);
        return true;
    case TL_OP_exp2:
        *out = exp2(x);
        return true;
    case TL_OP_expm1:
        *out = expm1(x);
        return true;
    case TL_OP_log:
        *out = log(x);
        return true;
    case TL_OP_log2:
        *out = log2(x);
        return true;
    case TL_OP_log1p:
        *out = log1p(x);
        return true;
    case TL_OP_sqrt:
        *out = sqrt(x);
        return true;
    case TL_OP_rsqrt:
        *out = 1.0 / sqrt(x);
        return true;
    case TL_OP_sin:
        *out = sin(x);
        return true;
    case TL_OP_cos:
        *out = cos(x);
        return true;
    case TL_OP_tan:
        *out = tan(x);
        return true;
    case TL_OP_tanh:
        *out = tanh(x);
        return true;
    case TL_OP_sigmoid:
        *out = x >= 0 ? 1 / (1 + exp(-x)) : exp(x) / (1 + exp(x));
        return true;
    case TL_OP_erf:
        *out = erf(x);
        return true;
    default:
        return false;
    }
}

tl_status tl_host_map1(tl_eval *ev, tl_op op, tl_value x, bool *mine,
                       tl_value *out)
{
    double f;

    *mine = true;
    if (x.tag == TL_V_UNKNOWN) {
        *out = x;
        return TL_OK;
    }
    *mine = tl_is_number(x);
    if (!*mine) {
        return TL_OK;
    }
    switch ((int)op) {
    case TL_OP_floor:
    case TL_OP_ceil:
    case TL_OP_round:
        return rounding(ev, op, x, out);
    case TL_OP_isnan:
        *out = tl_bool_value(isnan(tl_number_f(x)));
        return TL_OK;
    case TL_OP_isfinite:
        *out = tl_bool_value(isfinite(tl_number_f(x)));
        return TL_OK;
    case TL_OP_abs:
    case TL_OP_sign:
    case TL_OP_relu:
        if (x.tag != TL_V_FLOAT) {
            return keeping_int(ev, op, x.tag == TL_V_INT ? x.i : x.b, out);
        }
        *out = tl_float_value(keeping_float(op, x.f));
        return TL_OK;
    default:
        break;
    }
    *mine = real_function(op, tl_number_f(x), &f);
    if (*mine && !isfinite(f) && isfinite(tl_number_f(x))) {
        return outside(ev, op, tl_number_f(x));
    }
    if (*mine) {
        *out = tl_float_value(f);
    }
    return TL_OK;
}

/* ---- two numbers ------------------------------------------------------- */

tl_status tl_host_map2(tl_eval *ev, tl_op op, tl_value a, tl_value b,
                       bool *mine, tl_value *out)
{
    bool known = tl_is_number(a) && tl_is_number(b);
    bool host = (tl_is_number(a) || a.tag == TL_V_UNKNOWN) &&
                (tl_is_number(b) || b.tag == TL_V_UNKNOWN);
    tl_value both[2] = {a, b};

    *mine = host &&
            (op == TL_OP_maximum || op == TL_OP_minimum || op == TL_OP_pow);
    if (!*mine) {
        return TL_OK;
    }
    if (!known) {
        *out = tl_unknown();
        return TL_OK;
    }
    if (op == TL_OP_pow) {
        return tl_eval_binary_take(ev, TL_OP_POW, a, b, out);
    }
    return tl_host_extremum(ev, op == TL_OP_maximum, both, 2, mine, out);
}

/* ---- round, clamp ------------------------------------------------------ */

/* Half to even in decimal, by the digits that the float has: through its
 * correctly rounded decimal text, as Python does. */
static double round_decimal(double x, int64_t digits)
{
    char text[700];

    if (!isfinite(x) || digits > 323) {
        return x;
    }
    if (digits < -308) {
        return copysign(0.0, x);
    }
    if (digits >= 0) {
        snprintf(text, sizeof(text), "%.*f", (int)digits, x);
    } else {
        int exponent = x == 0 ? 0 : (int)floor(log10(fabs(x)));

        if (exponent + 1 < -digits) {
            return copysign(0.0, x);
        }
        if (exponent + 1 == -digits) { /* 0 or one unit of that place */
            double unit = pow(10, (double)-digits);

            return copysign(fabs(x) > unit / 2 ? unit : 0.0, x);
        }
        snprintf(text, sizeof(text), "%.*e", exponent + (int)digits, x);
    }
    return strtod(text, NULL);
}

/* An int rounded to a multiple of 10^-digits. */
static tl_status round_int(tl_eval *ev, int64_t i, int64_t digits,
                           tl_value *out)
{
    int64_t unit = 1, rest;
    bool up;

    for (; digits < 0 && unit <= INT64_MAX / 10; digits++) {
        unit *= 10;
    }
    if (digits < 0) { /* coarser than any int */
        *out = tl_int_value(0);
        return TL_OK;
    }
    rest = tl_floor_mod(i, unit);
    up = unit > 1 && (rest > unit / 2 ||
                      (rest == unit / 2 && tl_floor_div(i, unit) % 2 != 0));
    if (up ? !tl_add_i64(&i, i, unit - rest) : !tl_sub_i64(&i, i, rest)) {
        return tl_fail(ev->diag, TL_E0404, "round overflows");
    }
    *out = tl_int_value(i);
    return TL_OK;
}

tl_status tl_host_round(tl_eval *ev, tl_value x, int64_t digits, bool *mine,
                        tl_value *out)
{
    *mine = tl_is_number(x);
    if (!*mine) {
        return TL_OK;
    }
    if (x.tag != TL_V_FLOAT) {
        return round_int(ev, x.tag == TL_V_INT ? x.i : x.b, digits, out);
    }
    *out = tl_float_value(round_decimal(x.f, digits));
    return TL_OK;
}

static tl_status apply_bound(tl_eval *ev, tl_value bound, bool lower,
                             tl_value *x)
{
    int c;

    if (bound.tag == TL_V_NONE) {
        return TL_OK;
    }
    TL_TRY(tl_value_compare(*x, bound, &c, ev->diag));
    if (lower ? c < 0 : c == 1) {
        *x = bound; /* numbers: nothing to count */
    }
    return TL_OK;
}

tl_status tl_host_clamp(tl_eval *ev, tl_value x, tl_value lo, tl_value hi,
                        bool *mine, tl_value *out)
{
    *mine = tl_is_number(x) && (tl_is_number(lo) || lo.tag == TL_V_NONE) &&
            (tl_is_number(hi) || hi.tag == TL_V_NONE);
    if (!*mine) {
        return TL_OK;
    }
    TL_TRY(apply_bound(ev, lo, true, &x));
    TL_TRY(apply_bound(ev, hi, false, &x));
    *out = x;
    return TL_OK;
}
