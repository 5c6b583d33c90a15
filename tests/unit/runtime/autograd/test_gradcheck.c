/* test_gradcheck.c - gradcheck accepts right gradients and finds wrong ones.
 */
#include "tests/unit/runtime/helper.h"

#include "runtime/autograd/gradcheck.h"

TestSuite(gradcheck, .init = rt_setup, .fini = rt_teardown);

/* exp(sin(a) * b) / (1 + square(b)), broadcast */
static tl_status smooth(void *arg, tl_rt *r, tl_tensor *const *in, int n,
                        tl_tensor **out)
{
    (void)arg;
    (void)n;
    (void)r;
    *out = eat1(TL_OP_exp,
                eat2(TL_OP_mul, call1(TL_OP_sin, in[0], NULL),
                     tl_tensor_ref(in[1])), NULL);
    *out = eat2(TL_OP_div, *out,
                eat2(TL_OP_add, scalar(TL_f64, 1),
                     call1(TL_OP_square, in[1], NULL)));
    return TL_OK;
}

Test(gradcheck, right_gradients_pass)
{
    tl_tensor *in[2] = {make(TL_f64, 2, DIMS(2, 3),
                             VALUES(.1, .7, -2, 3, .5, -.3)),
                        vec(TL_f64, 3, VALUES(1, -.4, 2))};
    tl_gradcheck_options options = {.seed = 3};
    tl_gradcheck_result r;

    OK(tl_gradcheck(&rt, smooth, NULL, in, 2, &options, &r));
    cr_expect(r.ok, "excess %g", r.excess);
    cr_expect_lt(r.excess, 1e-2);
    cr_expect_eq(r.checked, 9);
    tl_tensor_unref(in[0]);
    tl_tensor_unref(in[1]);
}

Test(gradcheck, second_order_passes)
{
    tl_tensor *in[2] = {make(TL_f64, 2, DIMS(2, 3),
                             VALUES(.1, .7, -2, 3, .5, -.3)),
                        vec(TL_f64, 3, VALUES(1, -.4, 2))};
    tl_gradcheck_options options = {.seed = 3, .second = true};
    tl_gradcheck_result r;

    OK(tl_gradcheck(&rt, smooth, NULL, in, 2, &options, &r));
    cr_expect(r.ok, "excess %g: %g, %g", r.excess, r.analytic, r.numeric);
    cr_expect_eq(r.checked, 9);
    tl_tensor_unref(in[0]);
    tl_tensor_unref(in[1]);
}

/* x * stop(x): the tape sees half of the gradient. */
static tl_status half(void *arg, tl_rt *r, tl_tensor *const *in, int n,
                      tl_tensor **out)
{
    tl_tensor *s;

    (void)arg;
    (void)n;
    TL_TRY(tl_stop(r, in[0], &s));
    *out = eat2(TL_OP_mul, tl_tensor_ref(in[0]), s);
    return TL_OK;
}

Test(gradcheck, wrong_gradients_are_found_and_placed)
{
    tl_tensor *in = vec(TL_f64, 3, VALUES(0, 5, 0));
    tl_gradcheck_options options = {0};
    tl_gradcheck_result r;

    OK(tl_gradcheck(&rt, half, NULL, &in, 1, &options, &r));
    cr_expect_not(r.ok);
    cr_expect_eq(r.input, 0);
    cr_expect_eq(r.index, 1);
    cr_expect(fabs(r.numeric / r.analytic - 2) < 1e-6);
    tl_tensor_unref(in);
}

Test(gradcheck, integers_are_passed_on)
{
    tl_tensor *in[2] = {vec(TL_f64, 2, VALUES(1, 2)), vec(TL_i64, 2, NULL)};
    tl_gradcheck_options options = {0};
    tl_gradcheck_result r;

    OK(tl_gradcheck(&rt, smooth, NULL, in, 2, &options, &r));
    cr_expect(r.ok);
    cr_expect_eq(r.checked, 2);
    OK(tl_gradcheck(&rt, smooth, NULL, &in[1], 1, &options, &r));
    cr_expect_eq(r.checked, 0);
    tl_tensor_unref(in[0]);
    tl_tensor_unref(in[1]);
}

Test(gradcheck, max_elements_thins_out)
{
    tl_tensor *in[2] = {vec(TL_f64, 100, NULL), vec(TL_f64, 1, VALUES(.1))};
    tl_gradcheck_options options = {.max_elements = 10, .rtol = 1e-5};
    tl_gradcheck_result r;

    OK(tl_gradcheck(&rt, smooth, NULL, in, 2, &options, &r));
    cr_expect(r.ok, "excess %g at %d", r.excess, (int)r.index);
    cr_expect_eq(r.checked, 11);
    tl_tensor_unref(in[0]);
    tl_tensor_unref(in[1]);
}
