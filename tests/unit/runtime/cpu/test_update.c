/* Optimiser updates against hand-made numbers and PyTorch's rules. */
#include "tests/unit/runtime/cpu/kern_test.h"

static void setup(void)
{
    ctx_open(2);
}

TestSuite(update, .init = setup, .fini = ctx_close);

static tl_attrs attrs(double lr, double decay, double b1, double b2,
                      double eps)
{
    tl_attrs at;

    tl_attrs_init(&at);
    memcpy(at.f, (double[]){lr, decay, b1, b2, eps}, 5 * sizeof(double));
    return at;
}

static tl_tensor *scalar(tl_dtype dtype, double value)
{
    return tensor_f(dtype, SIZES(1), &value);
}

/* `steps` steps of Adam on one element; gradients g[i], state in f32. */
static double adam(tl_dtype dtype, bool decoupled, const tl_attrs *at,
                   double p0, const double *g, int steps)
{
    tl_tensor *p = scalar(dtype, p0), *m = scalar(TL_f32, 0);
    tl_tensor *v = scalar(TL_f32, 0), *grad = scalar(dtype, 0);
    tl_tensor *count = new_tensor(TL_i64, 0, NULL);
    double result;

    for (int i = 0; i < steps; i++) {
        tl_tensor *in[] = {p, grad, m, v, count}, *out[] = {p, m, v};

        tl_tensor_set_f(grad, 0, g[i]);
        tl_tensor_set_i(count, 0, i + 1);
        cr_assert_eq(decoupled ? tl_cpu_adamw_update(&ctx, TL_OP_adamw_update,
                                                     in, 5, out, 3, at)
                               : tl_cpu_adam_update(&ctx, TL_OP_adam_update,
                                                    in, 5, out, 3, at),
                     TL_OK);
    }
    result = tl_tensor_get_f(p, 0);
    tl_tensor_unref(p);
    tl_tensor_unref(m);
    tl_tensor_unref(v);
    tl_tensor_unref(grad);
    tl_tensor_unref(count);
    return result;
}

/* TF#9047 */
Test(update, adam_steps_by_the_learning_rate)
{
    tl_attrs at = attrs(.1, 0, .9, .999, 1e-8);

    cr_expect_float_eq(adam(TL_f32, false, &at, 1, (double[]){1, 1, 1}, 3), .7,
                       1e-6);
    cr_expect_float_eq(adam(TL_f32, false, &at, 1, (double[]){.5, 0}, 2),
                       .832994, 1e-6);
    cr_expect_eq(adam(TL_f32, false, &at, 1, (double[]){1e-30}, 1), 1);
}

/* optax#1754: eps and the division are computed in f32. */
Test(update, adam_keeps_an_f16_parameter_without_gradient)
{
    tl_attrs at = attrs(.1, 0, .9, .999, 1e-8);

    cr_expect_eq(adam(TL_f16, false, &at, 1, (double[]){0}, 1), 1);
    cr_expect_eq(adam(TL_bf16, true, &at, 1, (double[]){0}, 1), 1);
}

Test(update, decay_of_adam_and_adamw)
{
    tl_attrs at = attrs(.1, .1, .9, .999, 1e-8);

    cr_expect_float_eq(adam(TL_f32, true, &at, 1, (double[]){0, 0}, 2), .9801,
                       1e-6);
    cr_expect_float_eq(adam(TL_f32, false, &at, 1, (double[]){0}, 1), .9,
                       1e-6);
    cr_expect_float_eq(adam(TL_f32, false, &at, 1, (double[]){0, 0}, 2),
                       .800412, 1e-6);
}

Test(update, adam_counts_from_one)
{
    tl_tensor *in[5];
    tl_attrs at = attrs(.1, 0, .9, .999, 1e-8);

    for (int i = 0; i < 4; i++) {
        in[i] = scalar(TL_f32, 1);
    }
    in[4] = tensor_i(TL_i64, 0, NULL, (int64_t[]){0});
    cr_expect_neq(tl_cpu_adam_update(&ctx, TL_OP_adam_update, in, 5,
                                     (tl_tensor *[]){in[0], in[2], in[3]}, 3,
                                     &at), TL_OK);
    for (int i = 0; i < 5; i++) {
        tl_tensor_unref(in[i]);
    }
}

Test(update, sgd_and_momentum)
{
    tl_tensor *in[] = {tensor_f(TL_f32, SIZES(2), (double[]){1, 2}),
                       tensor_f(TL_f32, SIZES(2), (double[]){.5, -1}),
                       tensor_f(TL_f32, SIZES(2), (double[]){1, 1})};
    tl_attrs at = attrs(.1, .5, .9, 0, 0);
    tl_tensor *out[2];

    cr_assert_eq(RUN(sgd_update, in, 2, &at, out), TL_OK);
    expect_f(out[0], (double[]){.9, 2}, 1e-7); /* g + decay p = 1, 0 */
    tl_tensor_unref(out[0]);
    cr_assert_eq(RUN(momentum_update, in, 3, &at, out), TL_OK);
    expect_f(out[1], (double[]){1.9, .9}, 1e-6);
    expect_f(out[0], (double[]){.81, 1.91}, 1e-6);
    tl_tensor_unref(out[0]);
    tl_tensor_unref(out[1]);
    at.flag = true; /* Nesterov: d + mu v */
    cr_assert_eq(RUN(momentum_update, in, 3, &at, out), TL_OK);
    expect_f(out[0], (double[]){1 - .1 * (1 + .9 * 1.9), 2 - .1 * .9 * .9},
             1e-6);
    for (int i = 0; i < 3; i++) {
        tl_tensor_unref(in[i]);
    }
    tl_tensor_unref(out[0]);
    tl_tensor_unref(out[1]);
}

/* Twenty steps with changing gradients against the algorithms as they are
 * published, in double: Kingma, Ba (2015), algorithm 1; Loshchilov, Hutter
 * (2019), algorithm 2 with PyTorch's lr * decay; momentum as PyTorch has it. */
Test(update, twenty_steps_follow_the_published_algorithms)
{
    enum { STEPS = 20 };
    double g[STEPS];

    for (int i = 0; i < STEPS; i++) {
        g[i] = sin(3.7 * i + .5) + .3;
    }
    for (int decoupled = 0; decoupled < 2; decoupled++) {
        tl_attrs at = attrs(.01, .1, .9, .95, 1e-6);
        double p = .7, m = 0, v = 0;

        for (int t = 1; t <= STEPS; t++) {
            double d = g[t - 1] + (decoupled ? 0 : .1 * p);

            p -= decoupled ? .01 * .1 * p : 0;
            m = .9 * m + .1 * d;
            v = .95 * v + .05 * d * d;
            p -= .01 * (m / (1 - pow(.9, t))) /
                 (sqrt(v / (1 - pow(.95, t))) + 1e-6);
            cr_expect(fabs(adam(TL_f32, decoupled, &at, .7, g, t) - p) < 1e-6,
                      "step %d, decoupled %d", t, decoupled);
        }
    }
    for (int nesterov = 0; nesterov < 2; nesterov++) {
        tl_tensor *in[] = {scalar(TL_f64, .7), scalar(TL_f64, 0),
                           scalar(TL_f64, 0)};
        tl_tensor *out[] = {in[0], in[2]};
        tl_attrs at = attrs(.05, .01, .9, 0, 0);
        double p = .7, b = 0;

        at.flag = nesterov;
        for (int t = 0; t < STEPS; t++) {
            double d = g[t] + .01 * p;

            tl_tensor_set_f(in[1], 0, g[t]);
            cr_assert_eq(tl_cpu_momentum_update(&ctx, TL_OP_momentum_update,
                                                in, 3, out, 2, &at), TL_OK);
            b = .9 * b + d;
            p -= .05 * (nesterov ? d + .9 * b : b);
            cr_expect(fabs(tl_tensor_get_f(in[0], 0) - p) < 1e-14);
        }
        for (int i = 0; i < 3; i++) {
            tl_tensor_unref(in[i]);
        }
    }
}

/* A bf16 parameter that every step leaves where it was: one warning. */
Test(update, warns_when_rounding_loses_the_step)
{
    tl_tensor *in[] = {scalar(TL_bf16, 1), scalar(TL_bf16, 1)};
    tl_attrs at = attrs(1e-3, 0, 0, 0, 0);

    for (int i = 0; i < 3; i++) {
        cr_assert_eq(tl_cpu_sgd_update(&ctx, TL_OP_sgd_update, in, 2, in, 1,
                                       &at), TL_OK);
    }
    expect_f(in[0], (double[]){1}, 0);
    cr_expect_eq(ctx_diag.nwarnings, 1);
    cr_expect_eq(ctx_diag.last->code, TL_W0516);
    at.f[0] = .1;
    cr_assert_eq(tl_cpu_sgd_update(&ctx, TL_OP_sgd_update, in, 2, in, 1, &at),
                 TL_OK);
    cr_expect_float_eq(tl_tensor_get_f(in[0], 0), .9, 4e-3);
    tl_tensor_unref(in[0]);
    tl_tensor_unref(in[1]);
}

/* Many elements, in place and not, strided gradient, f64: one answer. */
Test(update, large_parameters_and_views)
{
    enum { ROWS = 300, COLS = 500 };
    tl_tensor *p = random_tensor(TL_f64, SIZES(ROWS, COLS), 1);
    tl_tensor *gt = random_tensor(TL_f64, SIZES(COLS, ROWS), 2);
    tl_tensor *g = swapped(gt), *in[] = {p, g}, *y;
    tl_attrs at = attrs(.25, 0, 0, 0, 0);
    int64_t bad = 0;

    cr_assert_eq(RUN(sgd_update, in, 2, &at, &y), TL_OK);
    for (int64_t i = 0; i < p->numel; i++) {
        bad += tl_tensor_get_f(y, i) !=
               tl_tensor_get_f(p, i) - .25 * tl_tensor_get_f(g, i);
    }
    cr_expect_eq(bad, 0);
    cr_assert_eq(tl_cpu_sgd_update(&ctx, TL_OP_sgd_update, in, 2, in, 1, &at),
                 TL_OK);
    cr_expect_eq(memcmp(tl_tensor_data(p), tl_tensor_data(y),
                        ROWS * COLS * sizeof(double)), 0);
    tl_tensor_unref(p);
    tl_tensor_unref(g);
    tl_tensor_unref(gt);
    tl_tensor_unref(y);
}
