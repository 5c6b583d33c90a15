/* Reductions and scans: the tree of runtime/cpu/README.md against a plain
 * version, in every layout; values; reductions of nothing. */
#include "tests/ops/rows.h"

TestSuite(reduce, .init = rt_setup, .fini = rt_teardown);

/* ---- the tree, written down once more ----------------------------------- */

static float plain_leaf(const float *x, int64_t n)
{
    float lane[16] = {0};

    for (int64_t i = 0; i < n; i++) {
        lane[i % 16] += x[i];
    }
    for (int half = 8; half > 0; half /= 2) {
        for (int j = 0; j < half; j++) {
            lane[j] += lane[j + half];
        }
    }
    return lane[0];
}

static float plain_sum(const float *x, int64_t n)
{
    int64_t left = 256;

    if (n <= 256) {
        return plain_leaf(x, n);
    }
    while (2 * left < n) {
        left *= 2;
    }
    return plain_sum(x, left) + plain_sum(x + left, n - left);
}

typedef struct moments {
    double n;
    float mean, m2;
} moments;

static moments plain_moments(const float *x, int64_t n)
{
    float part[256];
    int64_t left = 256;
    moments a, b;
    float d;

    if (n <= 256) {
        a.n = (double)n;
        for (int64_t i = 0; i < n; i++) {
            part[i] = x[i] - x[0];
        }
        a.mean = x[0] + plain_leaf(part, n) / (float)n;
        for (int64_t i = 0; i < n; i++) {
            part[i] = (x[i] - a.mean) * (x[i] - a.mean);
        }
        a.m2 = plain_leaf(part, n);
        return a;
    }
    while (2 * left < n) {
        left *= 2;
    }
    a = plain_moments(x, left);
    b = plain_moments(x + left, n - left);
    d = b.mean - a.mean;
    a.m2 = a.m2 + b.m2 + d * d * (float)(a.n * b.n / (a.n + b.n));
    a.mean = a.mean + d * (float)(b.n / (a.n + b.n));
    a.n += b.n;
    return a;
}

static const int64_t lengths[] = {1,   15,  16,  17,   255,  256,   257,
                                  511, 512, 513, 1000, 1281, 70000, 140001};
enum {
    NLENGTHS = sizeof lengths / sizeof *lengths
};

/* x[n] in one of `width` columns of [n, width], reduced over axis 0: the
 * elements of a result are neighbours, or rows apart. */
static void check_columns(const tl_tensor *x, int64_t width, tl_op op,
                          float want)
{
    int64_t n = x->numel;
    tl_tensor *wide = make(TL_f32, 2, DIMS(n, width), NULL), *y;
    tl_attrs at = usual_attrs(op);

    for (int64_t i = 0; i < n; i++) {
        for (int64_t c = 0; c < width; c++) {
            tl_tensor_set_f(wide, i * width + c, tl_tensor_get_f(x, i));
        }
    }
    at.axes = 1;
    y = run(op, &wide, 1, &at);
    for (int64_t c = 0; c < width; c++) {
        cr_assert_eq((float)tl_tensor_get_f(y, c), want,
                     "%s of %lld elements, column %lld of %lld",
                     tl_op_get(op)->name, (long long)n, (long long)c,
                     (long long)width);
    }
    tl_tensor_unref(y);
    tl_tensor_unref(wide);
}

static void check_tree(int64_t n)
{
    tl_tensor *x = points(TL_f32, 1, &n, TL_DOM_ANY, (uint64_t)n), *y;
    const float *v = tl_tensor_data(x);
    tl_attrs at = usual_attrs(TL_OP_sum), spread = usual_attrs(TL_OP_var);
    moments m = plain_moments(v, n);
    float variance = (float)((double)m.m2 / ((double)n - 1));

    at.axes = spread.axes = 1;
    y = run(TL_OP_sum, &x, 1, &at);
    cr_assert_eq((float)tl_tensor_get_f(y, 0), plain_sum(v, n),
                 "sum of %lld elements", (long long)n);
    tl_tensor_unref(y);
    if (n > 1) {
        y = run(TL_OP_var, &x, 1, &spread);
        cr_assert_eq((float)tl_tensor_get_f(y, 0), variance,
                     "variance of %lld elements", (long long)n);
        tl_tensor_unref(y);
    }
    for (int64_t width = 2; width <= 300 && n <= 1300; width += 149) {
        check_columns(x, width, TL_OP_sum, plain_sum(v, n));
        if (n > 1) {
            check_columns(x, width, TL_OP_var, variance);
        }
    }
    check_columns(x, 2, TL_OP_sum, plain_sum(v, n));
    tl_tensor_unref(x);
}

Test(reduce, sums_and_variances_follow_the_tree_in_rows_and_columns)
{
    for (int i = 0; i < NLENGTHS; i++) {
        check_tree(lengths[i]);
    }
}

/* Every reduction, every set of axes, every arrangement: the bits of the
 * row-major tensor. */
static void check_layouts(tl_op op, tl_dtype dtype, int rank,
                          const int64_t *size)
{
    tl_attrs at = usual_attrs(op);

    for (int axes = 0; axes < 1 << rank; axes++) {
        tl_tensor *x = points(dtype, rank, size, TL_DOM_ANY, 8), *y;

        at.axes = (uint16_t)axes;
        y = run(op, &x, 1, &at);
        for (int how = 1; how < ARRANGEMENTS; how++) {
            tl_tensor *other = arranged(
                points(dtype, rank, size, TL_DOM_ANY, 8), (arrangement)how);
            tl_tensor *z = run(op, &other, 1, &at);

            cr_assert(same_bits(y, z), "%s %s, axes %d, arrangement %d",
                      tl_op_get(op)->name, tl_dtype_name(dtype), axes, how);
            tl_tensor_unref(other);
            tl_tensor_unref(z);
        }
        tl_tensor_unref(x);
        tl_tensor_unref(y);
    }
}

Test(reduce, layouts_do_not_change_bits)
{
    static const tl_dtype dtypes[] = {TL_f32, TL_f64, TL_bf16, TL_i32,
                                      TL_bool};

    for (int op = TL_OP_sum; op <= TL_OP_all; op++) {
        for (int d = 0; d < 5; d++) {
            check_layouts((tl_op)op, dtypes[d], 3, DIMS(3, 40, 9));
        }
        check_layouts((tl_op)op, TL_f32, 2, DIMS(600, 11));
        check_layouts((tl_op)op, TL_f32, 2, DIMS(11, 600));
    }
}

/* ---- values ------------------------------------------------------------- */

static double whole(tl_op op, tl_dtype dtype, int64_t n, const double *v)
{
    tl_tensor *x = vec(dtype, n, v), *y;
    tl_attrs at = usual_attrs(op);
    double value;

    at.axes = 1;
    at.flag = true;
    y = run(op, &x, 1, &at);
    value = tl_tensor_get_f(y, 0);
    tl_tensor_unref(x);
    tl_tensor_unref(y);
    return value;
}

static double of_equal(tl_op op, tl_dtype dtype, int64_t n, double value)
{
    tl_tensor *x = make(dtype, 1, &n, NULL), *y;
    tl_attrs at = usual_attrs(op);

    for (int64_t i = 0; i < n; i++) {
        tl_tensor_set_f(x, i, value);
    }
    at.axes = 1;
    y = run(op, &x, 1, &at);
    value = tl_tensor_get_f(y, 0);
    tl_tensor_unref(x);
    tl_tensor_unref(y);
    return value;
}

Test(reduce, half_precision_accumulates_in_float)
{
    cr_expect_eq(of_equal(TL_OP_sum, TL_f16, 4096, 1), 4096);
    cr_expect_eq(of_equal(TL_OP_sum, TL_bf16, 512, 1), 512);
    cr_expect_eq(of_equal(TL_OP_mean, TL_f16, 70000, 1), 1);
}

Test(reduce, integers_widen_and_their_mean_is_exact)
{
    cr_expect_eq(whole(TL_OP_mean, TL_i32, 2, VALUES(2147483647, 2147483647)),
                 (double)2147483647.0f);
    cr_expect_eq(of_equal(TL_OP_sum, TL_i8, 1000, 100), 100000);
    cr_expect_eq(whole(TL_OP_prod, TL_u8, 3, VALUES(200, 200, 2)), 80000);
    cr_expect_eq(whole(TL_OP_sum, TL_bool, 4, VALUES(1, 1, 0, 1)), 3);
}

Test(reduce, variance_is_stable)
{
    cr_expect_eq(whole(TL_OP_var, TL_f32, 3, VALUES(1e8, 1e8 + 8, 1e8 + 16)),
                 64);
    cr_expect_eq(of_equal(TL_OP_std, TL_f32, 3, 1), 0);
    cr_expect_eq(of_equal(TL_OP_var, TL_f32, 100000, 0.1), 0);
    cr_expect(isnan(whole(TL_OP_var, TL_f32, 1, VALUES(3))));
}

Test(reduce, norms_neither_overflow_nor_vanish)
{
    cr_expect_float_eq(whole(TL_OP_norm, TL_f32, 2, VALUES(1e20, 1e20)) /
                           1e20,
                       1.41421356, 1e-7);
    cr_expect_float_eq(
        whole(TL_OP_norm, TL_f32, 2, VALUES(3e-30, 4e-30)) * 1e30, 5, 1e-6);
    cr_expect_eq(whole(TL_OP_norm, TL_f32, 2, VALUES(0, 0)), 0);
    cr_expect_float_eq(
        whole(TL_OP_norm, TL_f64, 2, VALUES(3e200, 4e200)) / 1e200, 5, 1e-15);
    cr_expect_float_eq(whole(TL_OP_norm, TL_f64, 2, VALUES(3e-200, 4e-200)) *
                           1e200,
                       5, 1e-15);
    cr_expect_eq(
        whole(TL_OP_norm, TL_f64, 2, VALUES(3 * 0x1p-1070, 0x1p-1068)),
        5 * 0x1p-1070);
    cr_expect_eq(whole(TL_OP_norm, TL_f64, 2, VALUES((double)INFINITY, 1)),
                 (double)INFINITY);
    cr_expect(isnan(whole(TL_OP_norm, TL_f64, 2, VALUES((double)NAN, 1))));
}

Test(reduce, logsumexp_at_its_ends)
{
    const double inf = (double)INFINITY;

    cr_expect_eq(whole(TL_OP_logsumexp, TL_f32, 2, VALUES(-inf, -inf)), -inf);
    cr_expect_eq(whole(TL_OP_logsumexp, TL_f32, 2, VALUES(-inf, 1)), 1);
    cr_expect_eq(whole(TL_OP_logsumexp, TL_f32, 2, VALUES(inf, 1)), inf);
    cr_expect_float_eq(whole(TL_OP_logsumexp, TL_f64, 2, VALUES(1000, 1000)),
                       1000.6931471805599, 1e-12);
    cr_expect(
        isnan(whole(TL_OP_logsumexp, TL_f32, 2, VALUES((double)NAN, -inf))));
}

Test(reduce, extrema_and_their_places)
{
    const double nan = (double)NAN;

    cr_expect_eq(whole(TL_OP_argmax, TL_f32, 4, VALUES(1, 3, 3, 2)), 1);
    cr_expect_eq(whole(TL_OP_argmin, TL_i16, 4, VALUES(5, 3, 3, 4)), 1);
    cr_expect(isnan(whole(TL_OP_max, TL_f32, 3, VALUES(1, nan, 3))));
    cr_expect_eq(whole(TL_OP_argmax, TL_f32, 3, VALUES(1, nan, 3)), 1);
    cr_expect_eq(whole(TL_OP_max, TL_i64, 2, VALUES(-5, -7)), -5);
    cr_expect_eq(whole(TL_OP_max, TL_f32, 1, VALUES(-(double)INFINITY)),
                 -(double)INFINITY);
    cr_expect_eq(whole(TL_OP_argmax, TL_f32, 2,
                       VALUES(-(double)INFINITY, -(double)INFINITY)),
                 0);
}

Test(reduce, any_and_all)
{
    cr_expect_eq(whole(TL_OP_any, TL_f32, 3, VALUES(0, 0.5, 0)), 1);
    cr_expect_eq(whole(TL_OP_any, TL_bool, 2, VALUES(0, 0)), 0);
    cr_expect_eq(whole(TL_OP_all, TL_i32, 3, VALUES(1, -1, 0)), 0);
    cr_expect_eq(whole(TL_OP_all, TL_bool, 2, VALUES(1, 1)), 1);
}

/* ---- of nothing --------------------------------------------------------- */

Test(reduce, of_nothing)
{
    cr_expect_eq(whole(TL_OP_sum, TL_f32, 0, NULL), 0);
    cr_expect_eq(whole(TL_OP_prod, TL_i32, 0, NULL), 1);
    cr_expect_eq(whole(TL_OP_norm, TL_f32, 0, NULL), 0);
    cr_expect_eq(whole(TL_OP_any, TL_bool, 0, NULL), 0);
    cr_expect_eq(whole(TL_OP_all, TL_f32, 0, NULL), 1);
    cr_expect_eq(whole(TL_OP_logsumexp, TL_f32, 0, NULL), -(double)INFINITY);
    cr_expect_eq(diag.nwarnings, 0);
    cr_expect(isnan(whole(TL_OP_mean, TL_f32, 0, NULL)));
    cr_expect_eq(diag.nwarnings, 1);
    cr_expect_eq(diag.last->code, TL_W0403);
    tl_diag_clear(&diag);
}

Test(reduce, extremum_of_nothing_is_an_error)
{
    tl_tensor *x = make(TL_f32, 2, DIMS(2, 0), NULL), *y;
    tl_attrs at = usual_attrs(TL_OP_max);

    at.axes = 2;
    cr_expect_neq(tl_apply_borrowed(&rt, TL_OP_max, &x, 1, &at, &y), TL_OK);
    cr_expect_eq(diag.last->code, TL_E0402);
    cr_expect_str_eq(said(), "`max` of nothing: f32[2, 0] has size 0 on "
                             "axis 1");
    tl_diag_clear(&diag);
    at.axes = 1; /* no results: nothing is missing */
    OK(tl_apply_borrowed(&rt, TL_OP_max, &x, 1, &at, &y));
    cr_expect_eq(y->numel, 0);
    tl_tensor_unref(x);
    tl_tensor_unref(y);
}

/* ---- scans -------------------------------------------------------------- */

static void scans_to(tl_op op, tl_dtype dtype, bool reverse, int64_t n,
                     const double *v, const double *want)
{
    tl_tensor *x = vec(dtype, n, v), *y;
    tl_attrs at;

    tl_attrs_init(&at);
    at.flag = reverse;
    at.f[0] = 9;
    y = run(op, &x, 1, &at);
    expect_values(y, want);
    tl_tensor_unref(x);
    tl_tensor_unref(y);
}

Test(reduce, scans_in_both_directions)
{
    for (int d = TL_i8; d < TL_DTYPE_COUNT; d++) {
        tl_dtype t = (tl_dtype)d;

        scans_to(TL_OP_cumsum, t, false, 4, VALUES(1, 2, 3, 4),
                 VALUES(1, 3, 6, 10));
        scans_to(TL_OP_cumsum, t, true, 4, VALUES(1, 2, 3, 4),
                 VALUES(10, 9, 7, 4));
        scans_to(TL_OP_cumprod, t, false, 4, VALUES(1, 2, 3, 4),
                 VALUES(1, 2, 6, 24));
        scans_to(TL_OP_cumprod, t, true, 4, VALUES(1, 2, 3, 4),
                 VALUES(24, 24, 12, 4));
        scans_to(TL_OP_shift, t, false, 3, VALUES(1, 2, 3), VALUES(9, 1, 2));
        scans_to(TL_OP_shift, t, true, 3, VALUES(1, 2, 3), VALUES(2, 3, 9));
    }
    scans_to(TL_OP_cumsum, TL_bool, false, 3, VALUES(1, 0, 1),
             VALUES(1, 1, 2));
    scans_to(TL_OP_cumsum, TL_f32, false, 0, NULL, NULL);
}

/* Long lines and blocks of lines, against running sums in double. */
static void check_cumsum(int64_t outer, int64_t n, int64_t inner, bool rev)
{
    tl_tensor *x = points(TL_f32, 3, DIMS(outer, n, inner), TL_DOM_ANY, 4);
    tl_tensor *y;
    tl_attrs at;

    tl_attrs_init(&at);
    at.axis = 1;
    at.flag = rev;
    y = run(TL_OP_cumsum, &x, 1, &at);
    for (int64_t o = 0; o < outer; o++) {
        for (int64_t c = 0; c < inner; c++) {
            double sum = 0;

            for (int64_t k = 0; k < n; k++) {
                int64_t i = (o * n + (rev ? n - 1 - k : k)) * inner + c;

                sum += tl_tensor_get_f(x, i);
                cr_assert_eq((float)sum, (float)tl_tensor_get_f(y, i));
            }
        }
    }
    tl_tensor_unref(x);
    tl_tensor_unref(y);
}

Test(reduce, long_scans)
{
    for (int rev = 0; rev < 2; rev++) {
        check_cumsum(2, 1300, 1, rev != 0);
        check_cumsum(3, 50, 100, rev != 0);
        check_cumsum(40, 1025, 1, rev != 0);
    }
}

Test(reduce, linear_recurrence)
{
    tl_tensor *in[2] = {vec(TL_f64, 3, VALUES(2, 3, 4)),
                        vec(TL_f64, 3, VALUES(1, 10, 100))};
    tl_attrs at;
    tl_tensor *y;

    tl_attrs_init(&at);
    y = run(TL_OP_linrec, in, 2, &at);
    expect_values(y, VALUES(1, 13, 152));
    tl_tensor_unref(y);
    at.flag = true;
    y = run(TL_OP_linrec, in, 2, &at);
    expect_values(y, VALUES(1231, 410, 100));
    tl_tensor_unref(y);
    tl_tensor_unref(in[0]);
    tl_tensor_unref(in[1]);
}
