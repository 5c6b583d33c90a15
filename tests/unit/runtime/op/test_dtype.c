/* Dtypes: names, joins, 16-bit floats. */
#include "runtime/op/dtype.h"

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

Test(dtype, names_are_found_again)
{
    tl_dtype found;

    for (int d = 0; d < TL_DTYPE_COUNT; d++) {
        const char *name = tl_dtype_name((tl_dtype)d);

        cr_expect(tl_dtype_find(name, strlen(name), &found));
        cr_expect_eq((int)found, d);
    }
    cr_expect_not(tl_dtype_find("f33", 3, &found));
    cr_expect_not(tl_dtype_find("f3", 2, &found));
    cr_expect(tl_dtype_find("f32[2]", 3, &found));
}

static void joins(tl_dtype a, tl_dtype b, tl_dtype want)
{
    cr_expect_eq(tl_dtype_join(a, b), want, "%s with %s", tl_dtype_name(a),
                 tl_dtype_name(b));
    cr_expect_eq(tl_dtype_join(b, a), want);
}

Test(dtype, joins_are_the_least_common_dtype)
{
    joins(TL_bool, TL_i8, TL_i8);
    joins(TL_u8, TL_i8, TL_i16);
    joins(TL_u8, TL_i32, TL_i32);
    joins(TL_i64, TL_f16, TL_f16);
    joins(TL_i64, TL_bf16, TL_bf16);
    joins(TL_f16, TL_bf16, TL_f32);
    joins(TL_f16, TL_f32, TL_f32);
    joins(TL_f32, TL_f64, TL_f64);
    for (int d = 0; d < TL_DTYPE_COUNT; d++) {
        joins((tl_dtype)d, (tl_dtype)d, (tl_dtype)d);
        joins((tl_dtype)d, TL_bool, (tl_dtype)d);
    }
}

Test(dtype, host_numbers_are_weak)
{
    cr_expect_eq(tl_dtype_join_weak(TL_f16, TL_KIND_FLOAT), TL_f16);
    cr_expect_eq(tl_dtype_join_weak(TL_i8, TL_KIND_INT), TL_i8);
    cr_expect_eq(tl_dtype_join_weak(TL_i64, TL_KIND_FLOAT), TL_f32);
    cr_expect_eq(tl_dtype_join_weak(TL_bool, TL_KIND_FLOAT), TL_f32);
    cr_expect_eq(tl_dtype_join_weak(TL_bool, TL_KIND_INT), TL_i64);
    cr_expect_eq(tl_dtype_join_weak(TL_f32, TL_KIND_BOOL), TL_f32);
}

Test(dtype, all_f16_survive_a_round_trip)
{
    for (uint32_t h = 0; h <= 0xffff; h++) {
        float f = tl_f16_to_f32((uint16_t)h);

        if (isnan(f)) {
            cr_assert(isnan(tl_f16_to_f32(tl_f32_to_f16(f))));
        } else {
            cr_assert_eq(tl_f32_to_f16(f), h);
        }
    }
}

Test(dtype, all_bf16_survive_a_round_trip)
{
    for (uint32_t h = 0; h <= 0xffff; h++) {
        float f = tl_bf16_to_f32((uint16_t)h);

        if (isnan(f)) {
            cr_assert(isnan(tl_bf16_to_f32(tl_f32_to_bf16(f))));
        } else {
            cr_assert_eq(tl_f32_to_bf16(f), h);
        }
    }
}

/* Between neighbours a < b every number goes to the nearer one, and the
 * middle to the even one. */
static void rounds(float a, float b, uint16_t (*to)(float), uint16_t low,
                   bool low_is_even)
{
    float middle = (float)(((double)a + (double)b) / 2);

    cr_assert_eq(to(nextafterf(middle, a)), low);
    cr_assert_eq(to(nextafterf(middle, b)), low + 1);
    cr_assert_eq(to(middle), low_is_even ? low : low + 1);
}

Test(dtype, rounding_is_to_nearest_even)
{
    for (uint16_t h = 0; h < 0x7bff; h++) {
        rounds(tl_f16_to_f32(h), tl_f16_to_f32((uint16_t)(h + 1)),
               tl_f32_to_f16, h, h % 2 == 0);
    }
    for (uint16_t h = 1; h < 0x7f7f; h++) {
        rounds(tl_bf16_to_f32(h), tl_bf16_to_f32((uint16_t)(h + 1)),
               tl_f32_to_bf16, h, h % 2 == 0);
    }
    cr_expect_eq(tl_f32_to_f16(65519.996f), 0x7bff);
    cr_expect_eq(tl_f32_to_f16(65520.0f), 0x7c00);
    cr_expect_eq(tl_f32_to_f16(-1e30f), 0xfc00);
    cr_expect_eq(tl_f32_to_bf16(3.4e38f), 0x7f80);
}
