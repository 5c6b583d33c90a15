/* stage.c - conversions of rows, one loop a pair of dtypes. */
#include "runtime/cpu/stage.h"

#include <math.h>
#include <string.h>

#ifdef TL_CPU_AVX2
#include <immintrin.h>
#endif

/* y[i] = expr of v = x[i * stride] */
#define STAGE(name, from_type, to_type, expr)                                \
    static void name(int64_t n, const void *from, int64_t stride, void *to)  \
    {                                                                        \
        const from_type *x = from;                                           \
        to_type *y = to;                                                     \
                                                                             \
        if (stride == 1) {                                                   \
            TL_INDEPENDENT                                                   \
            for (int64_t i = 0; i < n; i++) {                                \
                const from_type v = x[i];                                    \
                                                                             \
                y[i] = (to_type)(expr);                                      \
            }                                                                \
        } else if (stride == 0 && n > 0) {                                   \
            const from_type v = *x;                                          \
            const to_type value = (to_type)(expr);                           \
                                                                             \
            for (int64_t i = 0; i < n; i++) {                                \
                y[i] = value;                                                \
            }                                                                \
        } else if (stride == -1 && sizeof(to_type) == sizeof(from_type)) {   \
            TL_INDEPENDENT                                                   \
            for (int64_t i = 0; i < n; i++) {                                \
                const from_type v = x[-i];                                   \
                                                                             \
                y[i] = (to_type)(expr);                                      \
            }                                                                \
        } else {                                                             \
            for (int64_t i = 0; i < n; i++) {                                \
                const from_type v = x[i * stride];                           \
                                                                             \
                y[i] = (to_type)(expr);                                      \
            }                                                                \
        }                                                                    \
    }

#define FROM_INT(name, type)                                                 \
    STAGE(name##_bool, type, uint8_t, v != 0)                                \
    STAGE(name##_u8, type, uint8_t, v)                                       \
    STAGE(name##_i8, type, int8_t, v)                                        \
    STAGE(name##_i16, type, int16_t, v)                                      \
    STAGE(name##_i32, type, int32_t, v)                                      \
    STAGE(name##_i64, type, int64_t, v)                                      \
    STAGE(name##_f32, type, float, v)                                        \
    STAGE(name##_f64, type, double, v)

/* Truncation saturates: lo and hi + 1 are exact in every float type. */
#define FROM_FLOAT(name, type)                                               \
    static inline int64_t name##_to_i64(type v)                              \
    {                                                                        \
        return v != v              ? 0                                       \
               : v < -(type)0x1p63 ? INT64_MIN                               \
               : v >= (type)0x1p63 ? INT64_MAX                               \
                                   : (int64_t)v;                             \
    }                                                                        \
    static inline int32_t name##_to_int(type v, int32_t lo, int32_t hi)      \
    {                                                                        \
        return v != v              ? 0                                       \
               : v < (type)lo      ? lo                                      \
               : v >= (type)hi + 1 ? hi                                      \
                                   : (int32_t)v;                             \
    }                                                                        \
    STAGE(name##_bool, type, uint8_t, v != 0)                                \
    STAGE(name##_u8, type, uint8_t, name##_to_int(v, 0, UINT8_MAX))          \
    STAGE(name##_i8, type, int8_t, name##_to_int(v, INT8_MIN, INT8_MAX))     \
    STAGE(name##_i16, type, int16_t, name##_to_int(v, INT16_MIN, INT16_MAX)) \
    STAGE(name##_i32, type, int32_t,                                         \
          name##_to_i64(v) < INT32_MIN   ? INT32_MIN                         \
          : name##_to_i64(v) > INT32_MAX ? INT32_MAX                         \
                                         : name##_to_i64(v))                 \
    STAGE(name##_i64, type, int64_t, name##_to_i64(v))                       \
    STAGE(name##_f32, type, float, v)                                        \
    STAGE(name##_f64, type, double, v)

FROM_INT(u8, uint8_t)
FROM_INT(i8, int8_t)
FROM_INT(i16, int16_t)
FROM_INT(i32, int32_t)
FROM_INT(i64, int64_t)
FROM_FLOAT(f32, float)
FROM_FLOAT(f64, double)

/* ---- 16-bit floats ----------------------------------------------------- */

/* Double to float, to odd: a later rounding to 16 bits is then the right one
 * (Boldo and Melquiond, "Emulation of FMA and correctly rounded sums",
 * 2008). */
static inline float to_odd(double d)
{
    float f = (float)d;
    uint32_t u;

    memcpy(&u, &f, sizeof u);
    if ((double)f != d && !isinf(f) && f == f && (u & 1) == 0) {
        u += fabs((double)f) > fabs(d) ? UINT32_MAX : 1;
        memcpy(&f, &u, sizeof f);
    }
    return f;
}

STAGE(half_copy, uint16_t, uint16_t, v)
STAGE(bf16_f32, uint16_t, float, tl_bf16_to_f32(v))
STAGE(bf16_f64, uint16_t, double, tl_bf16_to_f32(v))
STAGE(f16_f64, uint16_t, double, tl_f16_to_f32(v))
STAGE(f32_bf16, float, uint16_t, tl_f32_to_bf16(v))
STAGE(f64_bf16, double, uint16_t, tl_f32_to_bf16(to_odd(v)))
STAGE(f64_f16, double, uint16_t, tl_f32_to_f16(to_odd(v)))
STAGE(f16_f32_plain, uint16_t, float, tl_f16_to_f32(v))
STAGE(f32_f16_plain, float, uint16_t, tl_f32_to_f16(v))

#ifdef TL_CPU_AVX2
static void f16_f32(int64_t n, const void *from, int64_t stride, void *to)
{
    const uint16_t *x = from;
    float *y = to;
    int64_t i = 0;

    for (; stride == 1 && i + 8 <= n; i += 8) {
        __m128i h = _mm_loadu_si128((const __m128i *)(x + i));

        _mm256_storeu_ps(y + i, _mm256_cvtph_ps(h));
    }
    f16_f32_plain(n - i, x + i * stride, stride, y + i);
}

static void f32_f16(int64_t n, const void *from, int64_t stride, void *to)
{
    const float *x = from;
    uint16_t *y = to;
    int64_t i = 0;

    for (; stride == 1 && i + 8 <= n; i += 8) {
        __m256 v = _mm256_loadu_ps(x + i);

        _mm_storeu_si128((__m128i *)(y + i),
                         _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT));
    }
    f32_f16_plain(n - i, x + i * stride, stride, y + i);
}

/* Blocks of moderate numbers through double: in the sum with 1.5 * 2^52 the
 * low bits are the whole number. */
static void f32_i64_quick(int64_t n, const void *from, int64_t stride,
                          void *to)
{
    enum { BLOCK = 512 };

    for (int64_t at = 0, m; at < n; at += m) {
        const float *x = (const float *)from + at * stride;
        int64_t *y = (int64_t *)to + at;
        int large = stride != 1;

        m = n - at < BLOCK ? n - at : BLOCK;
        for (int64_t i = 0; i < m && stride == 1; i++) {
            large |= !(fabsf(x[i]) < 0x1p51f);
        }
        if (large) {
            f32_i64(m, x, stride, y);
            continue;
        }
        for (int64_t i = 0; i < m; i++) {
            double d = (double)__builtin_truncf(x[i]) + 0x1.8p52;
            int64_t bits;

            memcpy(&bits, &d, sizeof bits);
            y[i] = bits - 0x4338000000000000;
        }
    }
}
#else
#define f16_f32 f16_f32_plain
#define f32_f16 f32_f16_plain
#define f32_i64_quick f32_i64
#endif

#define ROW(name)                                                            \
    {                                                                        \
        [TL_bool] = name##_bool, [TL_u8] = name##_u8, [TL_i8] = name##_i8,   \
        [TL_i16] = name##_i16, [TL_i32] = name##_i32, [TL_i64] = name##_i64, \
        [TL_f32] = name##_f32, [TL_f64] = name##_f64                         \
    }

static tl_stage_fn *const table[TL_DTYPE_COUNT][TL_DTYPE_COUNT] = {
    [TL_bool] = ROW(u8),
    [TL_u8] = ROW(u8),
    [TL_i8] = ROW(i8),
    [TL_i16] = ROW(i16),
    [TL_i32] = ROW(i32),
    [TL_i64] = ROW(i64),
    [TL_bf16] =
        {[TL_bf16] = half_copy, [TL_f32] = bf16_f32, [TL_f64] = bf16_f64},
    [TL_f16] = {[TL_f16] = half_copy, [TL_f32] = f16_f32, [TL_f64] = f16_f64},
    [TL_f32] = {[TL_bool] = f32_bool,
                [TL_u8] = f32_u8,
                [TL_i8] = f32_i8,
                [TL_i16] = f32_i16,
                [TL_i32] = f32_i32,
                [TL_i64] = f32_i64_quick,
                [TL_bf16] = f32_bf16,
                [TL_f16] = f32_f16,
                [TL_f32] = f32_f32,
                [TL_f64] = f32_f64},
    [TL_f64] = {[TL_bool] = f64_bool,
                [TL_u8] = f64_u8,
                [TL_i8] = f64_i8,
                [TL_i16] = f64_i16,
                [TL_i32] = f64_i32,
                [TL_i64] = f64_i64,
                [TL_bf16] = f64_bf16,
                [TL_f16] = f64_f16,
                [TL_f32] = f64_f32,
                [TL_f64] = f64_f64},
};

tl_stage_fn *tl_stage(tl_dtype from, tl_dtype to)
{
    return table[from][to];
}
