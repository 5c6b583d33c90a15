/* sort, topk, unique: order, stability, NaN, axes. */
#include "tests/unit/runtime/cpu/kern_test.h"

static void setup(void)
{
    ctx_open(2);
}

TestSuite(sort, .init = setup, .fini = ctx_close);

static tl_attrs attrs(int axis, bool flag)
{
    tl_attrs at;

    tl_attrs_init(&at);
    at.axis = (int8_t)axis;
    at.flag = flag;
    return at;
}

static void drop(tl_tensor **t, int n)
{
    for (int i = 0; i < n; i++) {
        tl_tensor_unref(t[i]);
    }
}

Test(sort, stable_with_nan_last_and_signed_zeros_equal)
{
    tl_tensor *x = tensor_f(TL_f32, SIZES(7),
                            (double[]){0.0, 3, NAN, -0.0, -INFINITY, 3, -1});
    tl_tensor *out[2];
    tl_attrs at = attrs(0, false);

    cr_assert_eq(RUN(sort, &x, 1, &at, out), TL_OK);
    expect_i(out[1], (int64_t[]){4, 6, 0, 3, 1, 5, 2});
    cr_expect(isnan(tl_tensor_get_f(out[0], 6)));
    drop(out, 2);
    at.flag = true;
    cr_assert_eq(RUN(sort, &x, 1, &at, out), TL_OK);
    expect_i(out[1], (int64_t[]){2, 1, 5, 0, 3, 6, 4});
    drop(out, 2);
    tl_tensor_unref(x);
}

Test(sort, long_lines_along_each_axis)
{
    for (int axis = 0; axis < 2; axis++) {
        tl_tensor *x = random_tensor(TL_i16, SIZES(300, 70), 3), *out[2];
        tl_attrs at = attrs(axis, false);
        int64_t n = x->size[axis], step = axis ? 1 : 70, bad = 0;

        cr_assert_eq(RUN(sort, &x, 1, &at, out), TL_OK);
        for (int64_t line = 0; line < x->size[1 - axis]; line++) {
            int64_t base = axis ? line * 70 : line;

            for (int64_t i = 0; i < n; i++) {
                int64_t e = base + i * step;
                int64_t from = tl_tensor_get_i(out[1], e);
                int64_t value = tl_tensor_get_i(out[0], e);

                bad += value != tl_tensor_get_i(x, base + from * step);
                if (i > 0) {
                    int64_t before = tl_tensor_get_i(out[0], e - step);

                    bad += before > value ||
                           (before == value &&
                            tl_tensor_get_i(out[1], e - step) > from);
                }
            }
        }
        cr_expect_eq(bad, 0);
        drop(out, 2);
        tl_tensor_unref(x);
    }
}

/* More than are merged: by digits, of keys with many equals and of both
 * signs. */
Test(sort, many_items_stay_stable)
{
    tl_tensor *x = random_tensor(TL_f32, SIZES(9001), 3), *out[2];
    tl_attrs at = attrs(0, false);
    int64_t bad = 0;

    for (int64_t i = 0; i < 9001; i++) {
        tl_tensor_set_f(x, i, (double)(i * 7919 % 1013 - 500) * 0.37);
    }
    for (int down = 0; down < 2; down++) {
        at.flag = down != 0;
        cr_assert_eq(RUN(sort, &x, 1, &at, out), TL_OK);
        for (int64_t i = 1; i < 9001; i++) {
            double a = tl_tensor_get_f(out[0], i - 1);
            double b = tl_tensor_get_f(out[0], i);
            int64_t from = tl_tensor_get_i(out[1], i);

            bad += down != 0 ? a < b : a > b;
            bad += a == b && tl_tensor_get_i(out[1], i - 1) >= from;
            bad += tl_tensor_get_f(x, from) != b;
        }
        drop(out, 2);
    }
    cr_expect_eq(bad, 0);
    tl_tensor_unref(x);
}

/* Few of many, kept one by one: the first of a sorted line, places as well. */
Test(sort, topk_of_few_is_the_start_of_sort)
{
    tl_tensor *x = random_tensor(TL_f32, SIZES(3001), 3), *out[2], *few[2];
    tl_attrs at = attrs(0, true);
    int64_t bad = 0;

    for (int64_t i = 0; i < 3001; i++) {
        tl_tensor_set_f(x, i, (double)(i * 7919 % 401 - 200));
    }
    cr_assert_eq(RUN(sort, &x, 1, &at, out), TL_OK);
    at.flag = false;
    at.ndims = 1;
    at.dims[0] = tl_dim_num(20);
    cr_assert_eq(RUN(topk, &x, 1, &at, few), TL_OK);
    for (int64_t i = 0; i < 20; i++) {
        bad += tl_tensor_get_f(few[0], i) != tl_tensor_get_f(out[0], i);
        bad += tl_tensor_get_i(few[1], i) != tl_tensor_get_i(out[1], i);
    }
    cr_expect_eq(bad, 0);
    drop(out, 2);
    drop(few, 2);
    tl_tensor_unref(x);
}

Test(sort, topk_takes_the_largest_first)
{
    tl_tensor *x = tensor_i(TL_i64, SIZES(2, 4),
                            (int64_t[]){5, 1, 5, 9, -4, -2, -8, -2});
    tl_tensor *out[2];
    tl_attrs at = attrs(1, false);

    at.ndims = 1;
    at.dims[0] = tl_dim_num(2);
    cr_assert_eq(RUN(topk, &x, 1, &at, out), TL_OK);
    expect_i(out[0], (int64_t[]){9, 5, -2, -2});
    expect_i(out[1], (int64_t[]){3, 0, 1, 3});
    drop(out, 2);
    at.dims[0] = tl_dim_num(5);
    cr_expect_neq(RUN(topk, &x, 1, &at, out), TL_OK);
    cr_expect_eq(ctx_diag.last->code, TL_E0415);
    cr_expect_str_eq(ctx_diag.last->message, "k 5, dimension 4");
    tl_tensor_unref(x);
}

/* The values, where each element is among them, and how many there are. */
Test(sort, unique_is_sorted)
{
    tl_tensor *x = tensor_f(TL_f16, SIZES(2, 4),
                            (double[]){3, -0.0, 1, NAN, 3, 0, NAN, -5});
    tl_tensor *out[3];
    tl_attrs at;

    tl_attrs_init(&at);
    cr_assert_eq(RUN(unique, &x, 1, &at, out), TL_OK);
    cr_expect_eq(out[0]->numel, 5);
    expect_f(out[0], (double[]){-5, 0, 1, 3, NAN}, 0);
    expect_i(out[1], (int64_t[]){3, 1, 2, 4, 3, 1, 4, 0});
    expect_i(out[2], (int64_t[]){1, 2, 1, 2, 2});
    drop(out, 3);
    tl_tensor_unref(x);
    x = new_tensor(TL_f32, SIZES(0));
    cr_assert_eq(RUN(unique, &x, 1, &at, out), TL_OK);
    cr_expect_eq(out[0]->numel, 0);
    drop(out, 3);
    tl_tensor_unref(x);
}
