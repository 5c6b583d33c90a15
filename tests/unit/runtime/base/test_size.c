/* test_size.c - checked arithmetic and sizes as text. */
#include <criterion/criterion.h>

#include "runtime/base/size.h"

Test(size, product_overflow_is_found_and_leaves_out_alone)
{
    size_t out = 7;

    cr_expect_not(tl_mul_size(&out, SIZE_MAX / 2, 3));
    cr_expect_not(tl_mul_size(&out, (size_t)PTRDIFF_MAX, 2));
    cr_expect_eq(out, 7);
    cr_expect(tl_mul_size(&out, 6, 7));
    cr_expect_eq(out, 42);
}

Test(size, sum_overflow_is_found_and_leaves_out_alone)
{
    size_t out = 7;

    cr_expect_not(tl_add_size(&out, SIZE_MAX, 1));
    cr_expect_not(tl_add_size(&out, PTRDIFF_MAX, 1));
    cr_expect_eq(out, 7);
    cr_expect(tl_add_size(&out, PTRDIFF_MAX - 1, 1));
    cr_expect_eq(out, PTRDIFF_MAX);
}

Test(size, signed_overflow_is_found)
{
    int64_t out = 7;

    cr_expect_not(tl_add_i64(&out, INT64_MAX, 1));
    cr_expect_not(tl_sub_i64(&out, INT64_MIN, 1));
    cr_expect_not(tl_mul_i64(&out, INT64_MIN, -1));
    cr_expect_eq(out, 7);
    cr_expect(tl_sub_i64(&out, -5, INT64_MAX - 5));
    cr_expect_eq(out, INT64_MIN + 1);
}

Test(size, floor_division_rounds_down)
{
    cr_expect_eq(tl_floor_div(7, 2), 3);
    cr_expect_eq(tl_floor_div(-7, 2), -4);
    cr_expect_eq(tl_floor_div(7, -2), -4);
    cr_expect_eq(tl_floor_div(-8, 2), -4);
}

Test(size, floor_modulus_has_the_sign_of_the_divisor)
{
    for (int64_t a = -9; a <= 9; a++) {
        for (int64_t b = -4; b <= 4; b++) {
            int64_t m;

            if (b == 0) {
                continue;
            }
            m = tl_floor_mod(a, b);
            cr_expect_eq(tl_floor_div(a, b) * b + m, a);
            cr_expect(b > 0 ? m >= 0 && m < b : m <= 0 && m > b);
        }
    }
}

Test(size, bytes_as_text)
{
    cr_expect_str_eq(tl_bytes_str(0).s, "0 bytes");
    cr_expect_str_eq(tl_bytes_str(1023).s, "1023 bytes");
    cr_expect_str_eq(tl_bytes_str(1024).s, "1.0 KiB");
    cr_expect_str_eq(tl_bytes_str(1536).s, "1.5 KiB");
    cr_expect_str_eq(tl_bytes_str((size_t)100 << 20).s, "100 MiB");
    cr_expect_str_eq(tl_bytes_str((size_t)2 << 30).s, "2.0 GiB");
    cr_expect_str_eq(tl_bytes_str(((size_t)1 << 30) - 1).s, "1.0 GiB");
    cr_expect_str_eq(tl_bytes_str(SIZE_MAX).s, "16.0 EiB");
}
