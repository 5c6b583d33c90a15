/* Softmax, cross entropy and layer normalisation against double arithmetic,
 * and the values that public bug reports ask for. */
#include "runtime/op/loss.h"
#include "tests/unit/runtime/cpu/kern_test.h"

static void setup(void)
{
    ctx_open(2);
}

TestSuite(softmax, .init = setup, .fini = ctx_close);

static tl_attrs attrs(int axis)
{
    tl_attrs at;

    tl_attrs_init(&at);
    at.axis = (int8_t)axis;
    return at;
}

static void drop(tl_tensor **t, int n)
{
    for (int i = 0; i < n; i++) {
        tl_tensor_unref(t[i]);
    }
}

/* Softmax of a 3-axis tensor along `axis` in double. */
static void check_softmax(tl_dtype dtype, const int64_t *size, int axis,
                          double tolerance)
{
    tl_tensor *x = random_tensor(dtype, 3, size, 11), *y, *z;
    tl_attrs at = attrs(axis);
    int64_t n = size[axis], inner = 1;

    for (int d = axis + 1; d < 3; d++) {
        inner *= size[d];
    }
    cr_assert_eq(RUN(softmax, &x, 1, &at, &y), TL_OK);
    cr_assert_eq(RUN(log_softmax, &x, 1, &at, &z), TL_OK);
    for (int64_t line = 0; line < x->numel / n; line++) {
        int64_t base = line / inner * n * inner + line % inner;
        double sum = 0;

        for (int64_t i = 0; i < n; i++) {
            sum += exp(tl_tensor_get_f(x, base + i * inner));
        }
        for (int64_t i = 0; i < n; i++) {
            double want = exp(tl_tensor_get_f(x, base + i * inner)) / sum;

            cr_assert(fabs(tl_tensor_get_f(y, base + i * inner) - want) <=
                      tolerance * want);
            cr_assert(fabs(tl_tensor_get_f(z, base + i * inner) - log(want)) <=
                      tolerance * 8);
        }
    }
    tl_tensor_unref(x);
    tl_tensor_unref(y);
    tl_tensor_unref(z);
}

Test(softmax, every_axis_and_dtype)
{
    for (int axis = 0; axis < 3; axis++) {
        check_softmax(TL_f32, (int64_t[]){5, 37, 9}, axis, 1e-6);
        check_softmax(TL_f64, (int64_t[]){5, 37, 9}, axis, 1e-14);
        check_softmax(TL_f16, (int64_t[]){5, 7, 40}, axis, 1e-3);
    }
    check_softmax(TL_f32, (int64_t[]){2, 1, 3000}, 2, 1e-6);
    check_softmax(TL_f32, (int64_t[]){1, 700, 50}, 1, 1e-6);
}

/* Large logits do not overflow; f16 rows of 4096 zeros sum to 1. */
Test(softmax, extremes)
{
    tl_tensor *x = tensor_f(TL_f32, SIZES(3), (double[]){1e30, 1e30, -1e30});
    tl_tensor *h = new_tensor(TL_f16, SIZES(4096)), *y;
    tl_attrs at = attrs(0);

    cr_assert_eq(RUN(softmax, &x, 1, &at, &y), TL_OK);
    expect_f(y, (double[]){.5, .5, 0}, 0);
    tl_tensor_unref(y);
    for (int i = 0; i < 4096; i++) {
        tl_tensor_set_f(h, i, 0);
    }
    cr_assert_eq(RUN(softmax, &h, 1, &at, &y), TL_OK);
    cr_expect_eq(tl_tensor_get_f(y, 77), 1.0 / 4096);
    drop((tl_tensor *[]){x, h, y}, 3);
}

/* dx = y (g - sum(g y)) and g - exp(y) sum(g), by differences of the loss
 * sum(g f(x)). */
Test(softmax, gradients_match_differences)
{
    tl_tensor *x = random_tensor(TL_f64, SIZES(3, 5), 1);
    tl_tensor *g = random_tensor(TL_f64, SIZES(3, 5), 2);
    tl_attrs at = attrs(1);

    for (int logs = 0; logs < 2; logs++) {
        tl_op op = logs ? TL_OP_log_softmax : TL_OP_softmax;
        tl_kernel_fn *fn = logs ? tl_cpu_log_softmax : tl_cpu_softmax;
        tl_tensor *y, *dx, *pair[2];

        cr_assert_eq(run_op(op, fn, &x, 1, &at, &y), TL_OK);
        pair[0] = y;
        pair[1] = g;
        cr_assert_eq(logs ? RUN(log_softmax_grad, pair, 2, &at, &dx)
                          : RUN(softmax_grad, pair, 2, &at, &dx), TL_OK);
        for (int64_t i = 0; i < x->numel; i++) {
            double at_x = tl_tensor_get_f(x, i), loss[2] = {0, 0};

            for (int side = 0; side < 2; side++) {
                tl_tensor *moved;

                tl_tensor_set_f(x, i, at_x + (side ? 1e-6 : -1e-6));
                cr_assert_eq(run_op(op, fn, &x, 1, &at, &moved), TL_OK);
                for (int64_t j = 0; j < x->numel; j++) {
                    loss[side] += tl_tensor_get_f(g, j) *
                                  tl_tensor_get_f(moved, j);
                }
                tl_tensor_unref(moved);
            }
            tl_tensor_set_f(x, i, at_x);
            cr_expect(fabs((loss[1] - loss[0]) / 2e-6 -
                           tl_tensor_get_f(dx, i)) < 1e-8);
        }
        tl_tensor_unref(y);
        tl_tensor_unref(dx);
    }
    drop((tl_tensor *[]){x, g}, 2);
}

/* ---- cross entropy ----------------------------------------------------- */

static tl_attrs loss_attrs(tl_loss_reduce how, int64_t ignore,
                           double smoothing)
{
    tl_attrs at = attrs(0);

    at.i[0] = ignore;
    at.i[1] = how;
    at.f[0] = smoothing;
    return at;
}

/* The loss in double, by the definition. */
static double plain_loss(const tl_tensor *x, const tl_tensor *y,
                         const tl_tensor *w, const tl_attrs *at)
{
    int64_t n = x->size[x->rank - 1];
    double cost = 0, weight = 0;

    for (int64_t i = 0; i < y->numel; i++) {
        int64_t t = tl_tensor_get_i(y, i);
        double sum = 0;

        if (t == at->i[0]) {
            continue;
        }
        for (int64_t k = 0; k < n; k++) {
            sum += exp(tl_tensor_get_f(x, i * n + k));
        }
        for (int64_t k = 0; k < n; k++) {
            double wk = w ? tl_tensor_get_f(w, k) : 1;
            double q = at->f[0] / (double)n * wk +
                       (k == t ? (1 - at->f[0]) * wk : 0);

            cost += q * (log(sum) - tl_tensor_get_f(x, i * n + k));
        }
        weight += w ? tl_tensor_get_f(w, t) : 1;
    }
    return at->i[1] == TL_LOSS_MEAN ? cost / weight : cost;
}

Test(softmax, cross_entropy_and_its_gradient)
{
    tl_tensor *x = random_tensor(TL_f64, SIZES(4, 7), 3);
    tl_tensor *y = tensor_i(TL_i64, SIZES(4), (int64_t[]){6, -100, 0, 2});
    tl_tensor *w = random_tensor(TL_f64, SIZES(7), 4);

    for (int64_t i = 0; i < 7; i++) {
        tl_tensor_set_f(w, i, 1.5 + tl_tensor_get_f(w, i));
    }
    for (int form = 0; form < 8; form++) {
        tl_attrs at = loss_attrs(form & 1 ? TL_LOSS_MEAN : TL_LOSS_SUM, -100,
                                 form & 2 ? 0.1 : 0);
        tl_tensor *in[] = {x, y, w}, *out[2], *one, *dx;
        tl_tensor *back[5];
        int nin = form & 4 ? 3 : 2;

        cr_assert_eq(RUN(cross_entropy, in, nin, &at, out), TL_OK);
        expect_f(out[0], (double[]){plain_loss(x, y, nin > 2 ? w : NULL, &at)},
                 1e-13);
        one = tensor_f(TL_f64, 0, NULL, (double[]){2});
        memcpy(back, (tl_tensor *[]){one, x, y, out[1], w}, sizeof(back));
        cr_assert_eq(RUN(cross_entropy_grad, back, nin + 2, &at, &dx), TL_OK);
        for (int64_t i = 0; i < x->numel; i++) {
            double at_x = tl_tensor_get_f(x, i), up, down;

            tl_tensor_set_f(x, i, at_x + 1e-6);
            up = plain_loss(x, y, nin > 2 ? w : NULL, &at);
            tl_tensor_set_f(x, i, at_x - 1e-6);
            down = plain_loss(x, y, nin > 2 ? w : NULL, &at);
            tl_tensor_set_f(x, i, at_x);
            cr_expect(fabs((up - down) / 1e-6 - tl_tensor_get_f(dx, i)) < 1e-8,
                      "form %d, element %d", form, (int)i);
        }
        drop((tl_tensor *[]){out[0], out[1], one, dx}, 4);
    }
    drop((tl_tensor *[]){x, y, w}, 3);
}

/* pytorch#46849 and its kind: no row counts, so nothing moves. */
Test(softmax, cross_entropy_of_ignored_rows)
{
    tl_tensor *x = tensor_f(TL_f32, SIZES(2, 2), (double[]){0, 0, 5, 1});
    tl_tensor *y = tensor_i(TL_i64, SIZES(2), (int64_t[]){-100, -100});
    tl_tensor *in[] = {x, y}, *out[2], *dx, *back[4];
    tl_attrs at = loss_attrs(TL_LOSS_MEAN, -100, 0);
    tl_tensor *g = tensor_f(TL_f32, 0, NULL, (double[]){1});

    cr_assert_eq(RUN(cross_entropy, in, 2, &at, out), TL_OK);
    expect_f(out[0], (double[]){NAN}, 0);
    memcpy(back, (tl_tensor *[]){g, x, y, out[1]}, sizeof(back));
    cr_assert_eq(RUN(cross_entropy_grad, back, 4, &at, &dx), TL_OK);
    expect_f(dx, (double[]){0, 0, 0, 0}, 0);
    drop((tl_tensor *[]){out[0], out[1], dx}, 3);

    tl_tensor_set_i(y, 0, 1); /* half ignored: .693147, [[.5, -.5], 0] */
    cr_assert_eq(RUN(cross_entropy, in, 2, &at, out), TL_OK);
    expect_f(out[0], (double[]){0.69314718}, 1e-7);
    back[3] = out[1];
    cr_assert_eq(RUN(cross_entropy_grad, back, 4, &at, &dx), TL_OK);
    expect_f(dx, (double[]){.5, -.5, 0, 0}, 1e-7);
    drop((tl_tensor *[]){out[0], out[1], dx}, 3);

    at.i[1] = TL_LOSS_NONE;
    cr_assert_eq(RUN(cross_entropy, in, 2, &at, out), TL_OK);
    expect_f(out[0], (double[]){0.69314718, 0}, 1e-7);
    drop((tl_tensor *[]){out[0], out[1], x, y, g}, 5);
}

Test(softmax, cross_entropy_names_a_target_outside_the_classes)
{
    tl_tensor *in[] = {random_tensor(TL_f32, SIZES(2, 3), 5),
                       tensor_i(TL_i64, SIZES(2), (int64_t[]){-4, 0})}, *y[2];
    tl_attrs at = loss_attrs(TL_LOSS_MEAN, -100, 0);

    cr_expect_neq(RUN(cross_entropy, in, 2, &at, y), TL_OK);
    cr_expect_eq(ctx_diag.last->code, TL_E0407);
    cr_expect_str_eq(ctx_diag.last->message,
                     "target -4 at row 0, valid 0..2 or ignore_index -100");
    drop(in, 2);
}

Test(softmax, cross_entropy_needs_targets_of_its_rows)
{
    tl_tensor *in[] = {new_tensor(TL_f32, SIZES(2, 3)),
                       new_tensor(TL_i64, SIZES(3))}, *y[2];
    tl_attrs at = loss_attrs(TL_LOSS_MEAN, -100, 0);

    cr_expect_neq(RUN(cross_entropy, in, 2, &at, y), TL_OK);
    cr_expect_eq(ctx_diag.last->code, TL_E0326);
    drop(in, 2);
}

/* ---- layer normalisation ----------------------------------------------- */

static tl_attrs norm_attrs(int axes, double eps)
{
    tl_attrs at = attrs(0);

    at.i[0] = axes;
    at.f[0] = eps;
    return at;
}

/* ORT#28463, pytorch#51102: large means keep their digits. */
Test(softmax, layer_norm_of_large_numbers)
{
    tl_tensor *x = tensor_f(TL_f32, SIZES(4),
                            (double[]){40000, 40001, 40002, 40003});
    tl_tensor *same = new_tensor(TL_f32, SIZES(256)), *out[3];
    tl_attrs at = norm_attrs(1, 1e-5);

    cr_assert_eq(RUN(layer_norm, &x, 1, &at, out), TL_OK);
    expect_f(out[0], (double[]){-1.341635, -.447212, .447212, 1.341635},
             2e-6);
    drop(out, 3);
    for (int i = 0; i < 256; i++) {
        tl_tensor_set_f(same, i, 1234);
    }
    cr_assert_eq(RUN(layer_norm, &same, 1, &at, out), TL_OK);
    expect_f(out[0], (double[256]){0}, 0);
    drop(out, 3);
    drop((tl_tensor *[]){x, same}, 2);
}

static double plain_norm_loss(const tl_tensor *x, const tl_tensor *w,
                              const tl_tensor *b, const tl_tensor *g,
                              int64_t n, double eps)
{
    double loss = 0;

    for (int64_t r = 0; r < x->numel / n; r++) {
        double mean = 0, var = 0;

        for (int64_t i = 0; i < n; i++) {
            mean += tl_tensor_get_f(x, r * n + i) / (double)n;
        }
        for (int64_t i = 0; i < n; i++) {
            double d = tl_tensor_get_f(x, r * n + i) - mean;

            var += d * d / (double)n;
        }
        for (int64_t i = 0; i < n; i++) {
            double y = (tl_tensor_get_f(x, r * n + i) - mean) / sqrt(var + eps);

            loss += tl_tensor_get_f(g, r * n + i) *
                    (y * tl_tensor_get_f(w, i) + tl_tensor_get_f(b, i));
        }
    }
    return loss;
}

Test(softmax, layer_norm_and_its_gradient_over_two_axes)
{
    enum { N = 300 }; /* more than a leaf */
    tl_tensor *x = random_tensor(TL_f64, SIZES(2, 3, 100), 6);
    tl_tensor *w = random_tensor(TL_f64, SIZES(3, 100), 7);
    tl_tensor *b = random_tensor(TL_f64, SIZES(3, 100), 8);
    tl_tensor *g = random_tensor(TL_f64, SIZES(2, 3, 100), 9);
    tl_tensor *in[] = {x, w, b}, *out[3], *back[5], *dx;
    tl_attrs at = norm_attrs(2, 1e-5);
    double loss = 0;

    cr_assert_eq(RUN(layer_norm, in, 3, &at, out), TL_OK);
    for (int64_t i = 0; i < x->numel; i++) {
        loss += tl_tensor_get_f(out[0], i) * tl_tensor_get_f(g, i);
    }
    cr_expect(fabs(loss - plain_norm_loss(x, w, b, g, N, 1e-5)) < 1e-11);
    memcpy(back, (tl_tensor *[]){g, x, out[1], out[2], w}, sizeof(back));
    cr_assert_eq(RUN(layer_norm_grad, back, 5, &at, &dx), TL_OK);
    for (int64_t i = 0; i < x->numel; i += 17) {
        double at_x = tl_tensor_get_f(x, i), up, down;

        tl_tensor_set_f(x, i, at_x + 1e-5);
        up = plain_norm_loss(x, w, b, g, N, 1e-5);
        tl_tensor_set_f(x, i, at_x - 1e-5);
        down = plain_norm_loss(x, w, b, g, N, 1e-5);
        tl_tensor_set_f(x, i, at_x);
        cr_expect(fabs((up - down) / 2e-5 - tl_tensor_get_f(dx, i)) < 1e-7);
    }
    drop(out, 3);
    drop((tl_tensor *[]){x, w, b, g, dx}, 5);
}
