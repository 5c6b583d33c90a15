/* fold.c - see fold.h.  Compiled three times. */
#include "runtime/cpu/fold.h"

#include <math.h>
#include <string.h>

#include "runtime/cpu/scalar.h"

#ifdef TL_CPU_AVX2
#include <immintrin.h>
#endif

#define SUM(a, b) ((a) + (b))
#define PROD(a, b) ((a) * (b))
#define MAX(a, b) ((a) >= (b) ? (a) : (b) > (a) ? (b) : (a) + (b))
#define MIN(a, b) ((a) <= (b) ? (a) : (b) < (a) ? (b) : (a) + (b))

/* The same where neither is NaN, without branches. */
#define QUIET_MAX(a, b) ((b) > (a) ? (b) : (a))
#define QUIET_MIN(a, b) ((b) < (a) ? (b) : (a))

/* Sixteen lanes and as many elements at a time; returns how many were taken.
 * lane[j] = JOIN(lane[j], x[j]), written out for lanes in registers. */
#define LANES(name, type, JOIN)                                              \
    static inline int64_t name##_lanes(type *lane, const type *x, int64_t n) \
    {                                                                        \
        int64_t i = 0;                                                       \
                                                                             \
        for (; i + TL_LANES <= n; i += TL_LANES) {                           \
            for (int j = 0; j < TL_LANES; j++) {                             \
                lane[j] = JOIN(lane[j], x[i + j]);                           \
            }                                                                \
        }                                                                    \
        return i;                                                            \
    }

/* The same for MAX and MIN, of which gcc makes branches: with vectors, and
 * without (0.1 and 1.9 ns an element of random floats, AMD EPYC).  `BETTER`
 * is MAX's >= or MIN's <=. */
#if defined(TL_CPU_AVX512)
#define VECTOR 64
#elif defined(TL_CPU_AVX2)
#define VECTOR 32
#else
#define VECTOR 16
#endif
#define VECTORS(name, type, bits)                                            \
    typedef type name##_vec                                                  \
        __attribute__((vector_size(VECTOR), aligned(sizeof(type)),           \
                       may_alias));                                          \
    typedef bits name##_bits                                                 \
        __attribute__((vector_size(VECTOR), aligned(sizeof(type)),           \
                       may_alias));

#define BEST_LANES(name, type, BETTER)                                       \
    static inline int64_t name##_lanes(type *lane, const type *x, int64_t n) \
    {                                                                        \
        enum { PART = VECTOR / sizeof(type), PARTS = TL_LANES / PART };      \
        name##_vec a[PARTS], b;                                              \
        int64_t i = 0;                                                       \
                                                                             \
        memcpy(a, lane, sizeof a);                                           \
        for (; i + TL_LANES <= n; i += TL_LANES) {                           \
            _Pragma("GCC unroll 8") for (int j = 0; j < PARTS; j++)          \
            {                                                                \
                name##_bits left, right;                                     \
                                                                             \
                b = *(const name##_vec *)(x + i + j * PART);                 \
                left = a[j] BETTER b;                                        \
                right = (b BETTER a[j]) & ~left;                             \
                a[j] = (name##_vec)((left & (name##_bits)a[j]) |             \
                                    (right & (name##_bits)b) |               \
                                    (~(left | right) &                       \
                                     (name##_bits)(a[j] + b)));              \
            }                                                                \
        }                                                                    \
        memcpy(lane, a, sizeof a);                                           \
        return i;                                                            \
    }

/* lane[0] = all of them; unrolled, so that they stay in registers. */
#define JOIN_LANES(lane, JOIN)                                               \
    _Pragma("GCC unroll 8") for (int half = TL_LANES / 2; half > 0;          \
                                 half /= 2)                                  \
    {                                                                        \
        _Pragma("GCC unroll 8") for (int j = 0; j < half; j++)               \
        {                                                                    \
            (lane)[j] = JOIN((lane)[j], (lane)[j + half]);                   \
        }                                                                    \
    }

/* The same as a loop, where JOIN would become branches. */
#define LOOP_LANES(lane, JOIN)                                               \
    for (int half = TL_LANES / 2; half > 0; half /= 2) {                     \
        for (int j = 0; j < half; j++) {                                     \
            (lane)[j] = JOIN((lane)[j], (lane)[j + half]);                   \
        }                                                                    \
    }

#define LEAF(name, leaf, type, identity, JOIN, ALL)                          \
    static void name##_##leaf(const void *from, int64_t n, void *to)           \
    {                                                                        \
        const type *x = from;                                                \
        type lane[TL_LANES];                                                 \
        int64_t i;                                                           \
                                                                             \
        for (int j = 0; j < TL_LANES; j++) {                                 \
            lane[j] = (identity);                                            \
        }                                                                    \
        i = name##_lanes(lane, x, n);                                        \
        for (int j = 0; i + j < n; j++) {                                    \
            lane[j] = JOIN(lane[j], x[i + j]);                               \
        }                                                                    \
        ALL(lane, JOIN)                                                      \
        *(type *)to = lane[0];                                               \
    }

/* The fold, of its leaf and quad. */
#define FOLD(name, type, identity, JOIN)                                     \
    static void name##_clear(void *to, int64_t w)                            \
    {                                                                        \
        type *lane = to;                                                     \
                                                                             \
        for (int64_t c = 0; c < TL_LANES * w; c++) {                         \
            lane[c] = (identity);                                            \
        }                                                                    \
    }                                                                        \
                                                                             \
    static void name##_row(void *to, const void *from, int64_t w)            \
    {                                                                        \
        type *restrict lane = to;                                            \
        const type *restrict x = from;                                       \
                                                                             \
        for (int64_t c = 0; c < w; c++) {                                    \
            lane[c] = JOIN(lane[c], x[c]);                                   \
        }                                                                    \
    }                                                                        \
                                                                             \
    static void name##_join(void *lanes, int64_t w, void *to)                \
    {                                                                        \
        type *lane = lanes;                                                  \
                                                                             \
        for (int64_t half = TL_LANES / 2; half > 0; half /= 2) {             \
            name##_row(lane, lane + half * w, half * w);                     \
        }                                                                    \
        memcpy(to, lane, (size_t)w * sizeof(type));                          \
    }                                                                        \
                                                                             \
    static void name##_merge(const void *from, void *to, int64_t w)          \
    {                                                                        \
        const type *restrict left = from;                                    \
        type *restrict right = to;                                           \
                                                                             \
        for (int64_t c = 0; c < w; c++) {                                    \
            right[c] = JOIN(left[c], right[c]);                              \
        }                                                                    \
    }                                                                        \
                                                                             \
    static const tl_fold name = {name##_leaf, name##_quad, name##_clear,     \
                                 name##_row,  name##_join, name##_merge};

/* Four leaves one after the other, joined as the tree does. */
#define LEAVES(name, leaves, type, JOIN)                                     \
    static void name##_##leaves(const void *from, void *to)                  \
    {                                                                        \
        const type *x = from;                                                \
        type leaf[4];                                                        \
                                                                             \
        for (int k = 0; k < 4; k++) {                                        \
            name##_leaf(x + k * TL_LEAF, TL_LEAF, &leaf[k]);                 \
        }                                                                    \
        leaf[0] = JOIN(leaf[0], leaf[1]);                                    \
        leaf[2] = JOIN(leaf[2], leaf[3]);                                    \
        *(type *)to = JOIN(leaf[0], leaf[2]);                                \
    }

/* Four leaves, as many of them side by side as have room in registers, so
 * that lanes do not wait for each other (98 and 40 us for a million floats).
 * STEP joins vectors and QUIET numbers, but not what ODD is true of: that goes
 * the other way. */
#define QUAD(name, type, identity, JOIN, QUIET, STEP, ODD)                   \
    LEAVES(name, slow, type, JOIN)                                           \
                                                                             \
    static void name##_quad(const void *from, void *to)                      \
    {                                                                        \
        enum { PART = VECTOR / sizeof(type), PARTS = TL_LANES / PART };      \
        enum { SIDE = PARTS <= 2 ? 4 : PARTS <= 4 ? 2 : 1 };                 \
        type lane[4][TL_LANES];                                              \
        name##_bits odd = {0};                                               \
        int any = 0;                                                         \
                                                                             \
        for (int k = 0; k < 4; k += SIDE) {                                  \
            const type *x = (const type *)from + k * TL_LEAF;                \
            name##_vec a[SIDE][PARTS];                                       \
                                                                             \
            for (int j = 0; j < SIDE * PARTS; j++) {                         \
                a[j / PARTS][j % PARTS] = (name##_vec){0} + (identity);      \
            }                                                                \
            for (int i = 0; i < TL_LEAF; i += TL_LANES) {                    \
                _Pragma("GCC unroll 8") for (int j = 0; j < SIDE * PARTS;    \
                                             j++)                            \
                {                                                            \
                    name##_vec *v = &a[j / PARTS][j % PARTS];                \
                    name##_vec b =                                           \
                        *(const name##_vec *)(x + j / PARTS * TL_LEAF + i +  \
                                              j % PARTS * PART);             \
                                                                             \
                    *v = STEP(*v, b);                                        \
                    odd |= ODD(b);                                           \
                }                                                            \
            }                                                                \
            memcpy(lane[k], a, sizeof(a));                                   \
        }                                                                    \
        for (size_t j = 0; j < VECTOR / sizeof(type); j++) {                 \
            any |= odd[j] != 0;                                              \
        }                                                                    \
        if (any) {                                                           \
            name##_slow(from, to);                                           \
            return;                                                          \
        }                                                                    \
        for (int k = 0; k < 4; k++) {                                        \
            JOIN_LANES(lane[k], QUIET)                                       \
        }                                                                    \
        lane[0][0] = QUIET(lane[0][0], lane[1][0]);                          \
        lane[2][0] = QUIET(lane[2][0], lane[3][0]);                          \
        *(type *)to = QUIET(lane[0][0], lane[2][0]);                         \
    }


/* The larger of each pair, a of equals: b > a ? b : a; unless one is NaN. */
#ifdef TL_CPU_AVX512
#define LARGER_f32(a, b) _mm512_max_ps((__m512)(b), (__m512)(a))
#define SMALLER_f32(a, b) _mm512_min_ps((__m512)(b), (__m512)(a))
#define LARGER_f64(a, b) _mm512_max_pd((__m512d)(b), (__m512d)(a))
#define SMALLER_f64(a, b) _mm512_min_pd((__m512d)(b), (__m512d)(a))
#elif defined(TL_CPU_AVX2)
#define LARGER_f32(a, b) __builtin_ia32_maxps256(b, a)
#define SMALLER_f32(a, b) __builtin_ia32_minps256(b, a)
#define LARGER_f64(a, b) __builtin_ia32_maxpd256(b, a)
#define SMALLER_f64(a, b) __builtin_ia32_minpd256(b, a)
#endif
#ifdef TL_CPU_AVX2
#define IS_NAN(b) ((b) != (b))
#define BEST_QUAD QUAD
#define BEST_LEAF(name, type, identity, JOIN, QUIET, STEP)                   \
    LEAF(name, leaf_of_any, type, identity, JOIN, LOOP_LANES)                \
                                                                             \
    static void name##_leaf(const void *from, int64_t n, void *to)           \
    {                                                                        \
        enum { PART = VECTOR / sizeof(type), PARTS = TL_LANES / PART };      \
        const type *x = from;                                                \
        type lane[TL_LANES];                                                 \
        name##_vec a[PARTS];                                                 \
        name##_bits odd = {0};                                               \
        int64_t i = 0;                                                       \
        int any = 0;                                                         \
                                                                             \
        for (int j = 0; j < PARTS; j++) {                                    \
            a[j] = (name##_vec){0} + (identity);                             \
        }                                                                    \
        for (; i + TL_LANES <= n; i += TL_LANES) {                           \
            _Pragma("GCC unroll 8") for (int j = 0; j < PARTS; j++)          \
            {                                                                \
                name##_vec b = *(const name##_vec *)(x + i + j * PART);      \
                                                                             \
                a[j] = STEP(a[j], b);                                        \
                odd |= IS_NAN(b);                                            \
            }                                                                \
        }                                                                    \
        memcpy(lane, a, sizeof a);                                           \
        for (int j = 0; i + j < n; j++) {                                    \
            any |= x[i + j] != x[i + j];                                     \
            lane[j] = QUIET(lane[j], x[i + j]);                              \
        }                                                                    \
        for (size_t j = 0; j < VECTOR / sizeof(type); j++) {                 \
            any |= odd[j] != 0;                                              \
        }                                                                    \
        if (any) {                                                           \
            name##_leaf_of_any(from, n, to);                                 \
            return;                                                          \
        }                                                                    \
        JOIN_LANES(lane, QUIET)                                              \
        *(type *)to = lane[0];                                               \
    }
#else
#define BEST_LEAF(name, type, identity, JOIN, QUIET, STEP)                   \
    LEAF(name, leaf, type, identity, JOIN, LOOP_LANES)
#define BEST_QUAD(name, type, identity, JOIN, QUIET, STEP, ODD)              \
    LEAVES(name, quad, type, JOIN)
#endif
#define IS_FINE(b) ((b) < (b)) /* never true */

#define FLOATS(suffix, type, bits)                                           \
    VECTORS(sum_##suffix, type, bits)                                        \
    VECTORS(prod_##suffix, type, bits)                                       \
    VECTORS(max_##suffix, type, bits)                                        \
    VECTORS(min_##suffix, type, bits)                                        \
    LANES(sum_##suffix, type, SUM)                                           \
    LANES(prod_##suffix, type, PROD)                                         \
    BEST_LANES(max_##suffix, type, >=)                                       \
    BEST_LANES(min_##suffix, type, <=)                                       \
    LEAF(sum_##suffix, leaf, type, 0, SUM, JOIN_LANES)                       \
    LEAF(prod_##suffix, leaf, type, 1, PROD, JOIN_LANES)                     \
    BEST_LEAF(max_##suffix, type, -(type)INFINITY, MAX, QUIET_MAX,           \
              LARGER_##suffix)                                               \
    BEST_LEAF(min_##suffix, type, (type)INFINITY, MIN, QUIET_MIN,            \
              SMALLER_##suffix)                                              \
    QUAD(sum_##suffix, type, 0, SUM, SUM, SUM, IS_FINE)                      \
    QUAD(prod_##suffix, type, 1, PROD, PROD, PROD, IS_FINE)                  \
    BEST_QUAD(max_##suffix, type, -(type)INFINITY, MAX, QUIET_MAX,           \
              LARGER_##suffix, IS_NAN)                                       \
    BEST_QUAD(min_##suffix, type, (type)INFINITY, MIN, QUIET_MIN,            \
              SMALLER_##suffix, IS_NAN)                                      \
    FOLD(sum_##suffix, type, 0, SUM)                                         \
    FOLD(prod_##suffix, type, 1, PROD)                                       \
    FOLD(max_##suffix, type, -(type)INFINITY, MAX)                           \
    FOLD(min_##suffix, type, (type)INFINITY, MIN)

#define INTS(name, identity, JOIN)                                           \
    LANES(name, int64_t, JOIN)                                               \
    LEAF(name, leaf, int64_t, identity, JOIN, LOOP_LANES)                    \
    LEAVES(name, quad, int64_t, JOIN)                                        \
    FOLD(name, int64_t, identity, JOIN)

FLOATS(f32, float, int32_t)
FLOATS(f64, double, int64_t)
INTS(sum_i64, 0, SUM)
INTS(prod_i64, 1, PROD)
INTS(max_i64, INT64_MIN, MAX)
INTS(min_i64, INT64_MAX, MIN)

const tl_fold *tl_fold_get(tl_dtype acc, tl_fold_kind kind)
{
    static const tl_fold *const f32[] = {&sum_f32, &prod_f32, &max_f32,
                                         &min_f32};
    static const tl_fold *const f64[] = {&sum_f64, &prod_f64, &max_f64,
                                         &min_f64};
    static const tl_fold *const i64[] = {&sum_i64, &prod_i64, &max_i64,
                                         &min_i64};

    return acc == TL_f32 ? f32[kind] : acc == TL_f64 ? f64[kind] : i64[kind];
}

/* ---- maps -------------------------------------------------------------- */

#define MAP(name, type, expr)                                                \
    static void name(int64_t n, const void *from, const void *params,        \
                     int64_t step, void *to)                                 \
    {                                                                        \
        const type *x = from, *s = params;                                   \
        type *y = to;                                                        \
                                                                             \
        TL_INDEPENDENT                                                       \
        for (int64_t i = 0; i < n; i++) {                                    \
            const type v = x[i];                                             \
                                                                             \
            y[i] = (expr);                                                   \
        }                                                                    \
        (void)s;                                                             \
        (void)step;                                                          \
    }

/* The same with p = s[i * step]. */
#define MAP_WITH(name, type, expr)                                           \
    static void name(int64_t n, const void *from, const void *params,        \
                     int64_t step, void *to)                                 \
    {                                                                        \
        const type *x = from, *s = params;                                   \
        type *y = to;                                                        \
                                                                             \
        if (step == 0) {                                                     \
            const type p = *s;                                               \
                                                                             \
            TL_INDEPENDENT                                                   \
            for (int64_t i = 0; i < n; i++) {                                \
                const type v = x[i];                                         \
                                                                             \
                y[i] = (expr);                                               \
            }                                                                \
            return;                                                          \
        }                                                                    \
        TL_INDEPENDENT                                                       \
        for (int64_t i = 0; i < n; i++) {                                    \
            const type v = x[i], p = s[i];                                   \
                                                                             \
            y[i] = (expr);                                                   \
        }                                                                    \
    }

#define MAPS(suffix, type, EXP)                                              \
    MAP(nonzero_##suffix, type, v != 0)                                      \
    MAP(square_##suffix, type, v *v)                                         \
    MAP(abs_##suffix, type, tl_abs_##suffix(v))                              \
    MAP_WITH(scaled_##suffix, type, (v * p) * (v * p))                       \
    MAP_WITH(minus_##suffix, type, v - p)                                    \
    MAP_WITH(minus_square_##suffix, type, (v - p) * (v - p))                 \
    MAP_WITH(exp_minus_##suffix, type, EXP(p - p == 0 ? v - p : v))

MAPS(f32, float, tl_exp_f32)
MAPS(f64, double, tl_exp_f64)
MAP(nonzero_i64, int64_t, v != 0)

tl_fold_map_fn *tl_fold_map_get(tl_dtype acc, tl_fold_map map)
{
    static tl_fold_map_fn *const f32[] = {
        NULL,       nonzero_f32, square_f32,       abs_f32,
        scaled_f32, minus_f32,   minus_square_f32, exp_minus_f32};
    static tl_fold_map_fn *const f64[] = {
        NULL,       nonzero_f64, square_f64,       abs_f64,
        scaled_f64, minus_f64,   minus_square_f64, exp_minus_f64};

    return acc == TL_f32            ? f32[map]
           : acc == TL_f64          ? f64[map]
           : map == TL_FOLD_NONZERO ? nonzero_i64
                                    : NULL;
}
