/* test_bi_math.c - functions of host numbers. */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "interp/bi_host.h"

static tl_diag diag;
static tl_eval ev;

static void setup(void)
{
    tl_diag_init(&diag, NULL);
    memset(&ev, 0, sizeof(ev));
    ev.diag = &diag;
}

static void teardown(void)
{
    tl_diag_fini(&diag);
}

TestSuite(test_bi_math, .init = setup, .fini = teardown);

static tl_value map1(tl_op op, tl_value x)
{
    tl_value out;
    bool mine;

    cr_assert_eq(tl_host_map1(&ev, op, x, &mine, &out), TL_OK);
    cr_assert(mine);
    return out;
}

static void is_int(tl_value v, int64_t want)
{
    cr_expect_eq(v.tag, TL_V_INT);
    cr_expect_eq(v.i, want);
}

static void is_float(tl_value v, double want)
{
    cr_expect_eq(v.tag, TL_V_FLOAT);
    cr_expect(v.f == want && signbit(v.f) == signbit(want),
              "%.17g is not %.17g", v.f, want);
}

static tl_value rounded(tl_value x, int64_t digits)
{
    tl_value out;
    bool mine;

    cr_assert_eq(tl_host_round(&ev, x, digits, &mine, &out), TL_OK);
    cr_assert(mine);
    return out;
}

Test(test_bi_math, rounding_gives_ints)
{
    is_int(map1(TL_OP_floor, tl_float_value(-1.5)), -2);
    is_int(map1(TL_OP_ceil, tl_float_value(-1.5)), -1);
    is_int(map1(TL_OP_round, tl_float_value(2.5)), 2);
    is_int(map1(TL_OP_round, tl_float_value(3.5)), 4);
    is_int(map1(TL_OP_floor, tl_int_value(7)), 7);
}

Test(test_bi_math, abs_sign_relu_keep_the_type)
{
    is_int(map1(TL_OP_abs, tl_int_value(-3)), 3);
    is_float(map1(TL_OP_abs, tl_float_value(-3)), 3);
    is_int(map1(TL_OP_sign, tl_int_value(-3)), -1);
    is_float(map1(TL_OP_sign, tl_float_value(0.5)), 1);
    is_int(map1(TL_OP_relu, tl_int_value(-3)), 0);
}

Test(test_bi_math, others_give_floats)
{
    is_float(map1(TL_OP_sqrt, tl_int_value(9)), 3);
    is_float(map1(TL_OP_exp, tl_bool_value(false)), 1);
    is_float(map1(TL_OP_sigmoid, tl_float_value(0)), 0.5);
    is_float(map1(TL_OP_sigmoid, tl_float_value(-1000)), 0);
}

static void refuses(tl_op op, tl_value x, tl_code code)
{
    tl_value out;
    bool mine;

    cr_expect_eq(tl_host_map1(&ev, op, x, &mine, &out), TL_ERR_PROGRAM);
    cr_expect_eq(diag.last->code, code);
}

Test(test_bi_math, outside_the_domain_is_an_error)
{
    refuses(TL_OP_sqrt, tl_int_value(-1), TL_E0416);
    refuses(TL_OP_log, tl_float_value(0), TL_E0416);
    refuses(TL_OP_exp, tl_float_value(1000), TL_E0416);
    refuses(TL_OP_floor, tl_float_value(1e300), TL_E0404);
    refuses(TL_OP_round, tl_float_value(NAN), TL_E0404);
    refuses(TL_OP_abs, tl_int_value(INT64_MIN), TL_E0404);
}

Test(test_bi_math, infinity_in_gives_infinity_out)
{
    is_float(map1(TL_OP_exp, tl_float_value(INFINITY)), INFINITY);
}

Test(test_bi_math, not_for_strings)
{
    tl_value s, out;
    bool mine = true;

    cr_assert_eq(tl_str_new(&s, "a", 1, &diag), TL_OK);
    cr_assert_eq(tl_host_map1(&ev, TL_OP_abs, s, &mine, &out), TL_OK);
    cr_expect_not(mine);
    tl_unref(s);
}

/* What Python's round gives. */
Test(test_bi_math, round_to_digits)
{
    is_float(rounded(tl_float_value(2.675), 2), 2.67);
    is_float(rounded(tl_float_value(0.125), 2), 0.12);
    is_float(rounded(tl_float_value(1.005), 2), 1.0);
    is_float(rounded(tl_float_value(1234.5), -2), 1200);
    is_float(rounded(tl_float_value(50), -2), 0);
    is_float(rounded(tl_float_value(51), -2), 100);
    is_float(rounded(tl_float_value(-51), -2), -100);
    is_float(rounded(tl_float_value(5), -3), 0);
    is_int(rounded(tl_int_value(1250), -2), 1200);
    is_int(rounded(tl_int_value(1350), -2), 1400);
    is_int(rounded(tl_int_value(-1250), -2), -1200);
    is_int(rounded(tl_int_value(15), 3), 15);
    is_int(rounded(tl_int_value(15), -30), 0);
}

Test(test_bi_math, extremum_of_numbers)
{
    tl_value xs[3] = {tl_int_value(3), tl_float_value(3.5), tl_int_value(2)};
    tl_value out;
    bool mine;

    cr_assert_eq(tl_host_extremum(&ev, true, xs, 3, &mine, &out), TL_OK);
    is_float(out, 3.5);
    cr_assert_eq(tl_host_extremum(&ev, false, xs, 3, &mine, &out), TL_OK);
    is_int(out, 2);
    xs[1] = tl_unknown();
    cr_assert_eq(tl_host_extremum(&ev, false, xs, 3, &mine, &out), TL_OK);
    cr_expect_eq(out.tag, TL_V_UNKNOWN);
}

Test(test_bi_math, clamp_takes_open_bounds)
{
    tl_value out;
    bool mine;

    cr_assert_eq(tl_host_clamp(&ev, tl_int_value(7), tl_none(),
                               tl_int_value(5), &mine, &out),
                 TL_OK);
    is_int(out, 5);
    cr_assert_eq(tl_host_clamp(&ev, tl_float_value(-1), tl_int_value(0),
                               tl_none(), &mine, &out),
                 TL_OK);
    is_int(out, 0);
}
