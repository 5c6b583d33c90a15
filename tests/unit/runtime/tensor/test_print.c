/* test_print.c - text of numbers and tensors. */
#include "runtime/tensor/print.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static tl_diag diag;
static tl_pool *pool;

static void setup(void)
{
    tl_diag_init(&diag, NULL);
    cr_assert_eq(tl_pool_new(&pool, 0, &diag), TL_OK);
}

static void teardown(void)
{
    cr_assert_eq(tl_tensor_live(), 0);
    tl_tensor_trim();
    tl_pool_free(pool);
    tl_diag_fini(&diag);
}

TestSuite(print, .init = setup, .fini = teardown);

/* Check the text of a tensor of these values. */
static void shows(tl_dtype dtype, int rank, const int64_t *size,
                  const double *v, const char *want)
{
    tl_tensor *t;
    tl_buf buf;

    tl_buf_init(&buf);
    cr_assert_eq(tl_tensor_new(&t, pool, dtype, rank, size, &diag), TL_OK);
    for (int64_t i = 0; i < t->numel; i++) {
        tl_tensor_set_f(t, i, v ? v[i] : (double)i);
    }
    tl_tensor_print(t, false, &buf);
    cr_expect_str_eq(tl_buf_str(&buf), want, "got\n%s\nwanted\n%s",
                     tl_buf_str(&buf), want);
    tl_buf_fini(&buf);
    tl_tensor_unref(t);
}

static void number(double v, const char *want)
{
    tl_buf buf;

    tl_buf_init(&buf);
    tl_print_f64(v, &buf);
    cr_expect_str_eq(tl_buf_str(&buf), want);
    tl_buf_fini(&buf);
}

Test(print, doubles_print_as_python_repr)
{
    number(0.1, "0.1");
    number(1.0, "1.0");
    number(-0.0, "-0.0");
    number(100.0, "100.0");
    number(1e-5, "1e-05");
    number(0.0001, "0.0001");
    number(1e15, "1000000000000000.0");
    number(1e16, "1e+16");
    number(1.5e300, "1.5e+300");
    number(123456.789, "123456.789");
    number(1.0 / 3, "0.3333333333333333");
    number(5e-324, "5e-324");
    number(1.7976931348623157e308, "1.7976931348623157e+308");
    number((double)NAN, "nan");
    number(-HUGE_VAL, "-inf");
}

Test(print, floats_print_their_own_shortest_digits)
{
    tl_buf buf;

    tl_buf_init(&buf);
    tl_print_f32(0.1f, &buf);
    tl_buf_putc(&buf, ' ');
    tl_print_f32(16777216.0f, &buf);
    tl_buf_putc(&buf, ' ');
    tl_print_f32(1.17549435e-38f, &buf);
    cr_expect_str_eq(tl_buf_str(&buf), "0.1 16777216.0 1.1754944e-38");
    tl_buf_fini(&buf);
}

/* Any double reads back from its text. */
Test(print, random_doubles_read_back)
{
    uint64_t x = 88172645463325252u; /* xorshift64 */
    tl_buf buf;

    tl_buf_init(&buf);
    for (int i = 0; i < 20000; i++) {
        double v;

        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        memcpy(&v, &x, sizeof(v));
        if (!isfinite(v)) {
            continue;
        }
        tl_buf_clear(&buf);
        tl_print_f64(v, &buf);
        cr_assert_eq(strtod(tl_buf_str(&buf), NULL), v, "%s",
                     tl_buf_str(&buf));
    }
    tl_buf_fini(&buf);
}

Test(print, scalars_are_numbers_alone)
{
    shows(TL_f32, 0, NULL, (double[]){0.1}, "0.1");
    shows(TL_f16, 0, NULL, (double[]){0.1}, "0.1");
    shows(TL_bf16, 0, NULL, (double[]){0.1}, "0.1");
    shows(TL_i64, 0, NULL, (double[]){7}, "7");
    shows(TL_bool, 0, NULL, (double[]){1}, "true");
    shows(TL_f64, 0, NULL, (double[]){-HUGE_VAL}, "-inf");
}

Test(print, columns_are_aligned)
{
    shows(TL_f32, 2, (int64_t[]){2, 2},
          (double[]){1, -0.5, 12.25, (double)NAN},
          "[[ 1.0000, -0.5000],\n [12.2500,     nan]]");
    shows(TL_i32, 1, (int64_t[]){3}, (double[]){1, -20, 300},
          "[  1, -20, 300]");
    shows(TL_bool, 1, (int64_t[]){2}, (double[]){1, 0}, "[ true, false]");
}

Test(print, whole_floats_have_one_decimal)
{
    shows(TL_f32, 1, (int64_t[]){3}, (double[]){1, 2, HUGE_VAL},
          "[1.0, 2.0, inf]");
    shows(TL_f32, 1, (int64_t[]){2}, (double[]){0, 0}, "[0.0, 0.0]");
}

Test(print, wide_ranges_have_exponents)
{
    shows(TL_f64, 1, (int64_t[]){2}, (double[]){0.001, 2.5},
          "[1.0000e-03, 2.5000e+00]");
    shows(TL_f64, 1, (int64_t[]){2}, (double[]){1e-6, 0},
          "[1.0000e-06, 0.0000e+00]");
}

Test(print, matrices_are_separated_by_a_blank_line)
{
    shows(TL_i64, 3, (int64_t[]){2, 1, 2}, NULL,
          "[[[0, 1]],\n\n [[2, 3]]]");
}

Test(print, long_rows_wrap)
{
    shows(TL_i64, 1, (int64_t[]){30}, NULL,
          "[ 0,  1,  2,  3,  4,  5,  6,  7,  8,  9, 10, 11, 12, 13, 14, 15, "
          "16, 17, 18, 19,\n 20, 21, 22, 23, 24, 25, 26, 27, 28, 29]");
}

Test(print, nothing_prints_as_brackets)
{
    shows(TL_f32, 1, (int64_t[]){0}, NULL, "[]");
    shows(TL_f32, 2, (int64_t[]){1000000, 0}, NULL, "[] f32[1000000, 0]");
}

Test(print, more_than_a_hundred_are_summarised)
{
    shows(TL_i64, 1, (int64_t[]){101}, NULL,
          "[  0,   1,   2, ...,  98,  99, 100]\n"
          "i64[101]: min 0, mean 50, max 100");
    shows(TL_f32, 2, (int64_t[]){20, 20}, NULL,
          "[[  0.0,   1.0,   2.0, ...,  17.0,  18.0,  19.0],\n"
          " [ 20.0,  21.0,  22.0, ...,  37.0,  38.0,  39.0],\n"
          " [ 40.0,  41.0,  42.0, ...,  57.0,  58.0,  59.0],\n"
          " ...,\n"
          " [340.0, 341.0, 342.0, ..., 357.0, 358.0, 359.0],\n"
          " [360.0, 361.0, 362.0, ..., 377.0, 378.0, 379.0],\n"
          " [380.0, 381.0, 382.0, ..., 397.0, 398.0, 399.0]]\n"
          "f32[20, 20]: min 0, mean 199.5, max 399, nan 0");
}

Test(print, nan_is_counted_and_left_out)
{
    double v[102];

    for (int i = 0; i < 102; i++) {
        v[i] = i < 2 ? (double)NAN : 1;
    }
    shows(TL_f32, 1, (int64_t[]){102}, v,
          "[nan, nan, 1.0, ..., 1.0, 1.0, 1.0]\n"
          "f32[102]: min 1, mean 1, max 1, nan 2");
}

Test(print, high_ranks_stay_short)
{
    int64_t size[16];
    tl_tensor *t;
    tl_buf buf;

    for (int i = 0; i < 16; i++) {
        size[i] = 2;
    }
    tl_buf_init(&buf);
    cr_assert_eq(tl_tensor_new(&t, pool, TL_u8, 16, size, &diag), TL_OK);
    memset(tl_tensor_data(t), 0, 65536);
    tl_tensor_print(t, false, &buf);
    cr_assert_lt(buf.len, 1000);
    tl_buf_clear(&buf);
    tl_tensor_print(t, true, &buf);
    cr_assert_gt(buf.len, 65536);
    tl_buf_fini(&buf);
    tl_tensor_unref(t);
}
