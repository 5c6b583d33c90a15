/* scalar.h - the elementary functions, once, for every kernel.
 *
 * tl_<fn>_f32 and tl_<fn>_f64 are what M(fn) of a formula (op/ops.def) means;
 * tl_<fn>_i serves all integer dtypes.  The float ones are straight-line code
 * without branches, calls or contraction, so that a compiler turns them into
 * vector code with the same bits for every instruction set.  Their errors,
 * over all 2^32 inputs, are in README.md; each is within 2 ulp.  Where float
 * arithmetic would not do, they work in double and round once.
 *
 * The double ones are libm's, or made of libm's. */
#ifndef TL_CPU_SCALAR_H
#define TL_CPU_SCALAR_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "runtime/base/size.h"
#include "runtime/cpu/scalar_table.h"

static inline uint32_t tl_bits_f32(float f)
{
    uint32_t u;

    memcpy(&u, &f, sizeof u);
    return u;
}

static inline float tl_from_bits_f32(uint32_t u)
{
    float f;

    memcpy(&f, &u, sizeof f);
    return f;
}

static inline uint64_t tl_bits_f64(double d)
{
    uint64_t u;

    memcpy(&u, &d, sizeof u);
    return u;
}

static inline double tl_from_bits_f64(uint64_t u)
{
    double d;

    memcpy(&d, &u, sizeof d);
    return d;
}

/* Adding and subtracting this rounds to a whole number, half to even, and
 * leaves the number in the low bits of the sum. */
#define TL_ROUND_F32 0x1.8p23f
#define TL_ROUND_F64 0x1.8p52

/* ---- arithmetic -------------------------------------------------------- */

static inline float tl_abs_f32(float x)
{
    return tl_from_bits_f32(tl_bits_f32(x) & 0x7fffffff);
}

static inline double tl_abs_f64(double x)
{
    return fabs(x);
}

/* a * b + c, rounded once.  Where the CPU has no such instruction: the sum in
 * double, to odd, then to float (Boldo and Melquiond, "Emulation of FMA and
 * correctly rounded sums", 2008). */
static inline float tl_fma_f32(float a, float b, float c)
{
#if defined(__FMA__) || defined(__FP_FAST_FMAF)
    return __builtin_fmaf(a, b, c);
#else
    double p = (double)a * (double)b, d = (double)c;
    double sum = p + d, back = sum - p;
    double rest = (p - (sum - back)) + (d - back);
    uint64_t u = tl_bits_f64(sum), away = (rest < 0) == (sum < 0);
    uint64_t odd = away != 0 ? u + 1 : u - 1;
    bool inexact = rest != 0 && rest - rest == 0 && (u & 1) == 0;

    return (float)tl_from_bits_f64(inexact ? odd : u);
#endif
}

/* |x| with the sign of s */
static inline float tl_sign_of_f32(float x, float s)
{
    return tl_from_bits_f32((tl_bits_f32(x) & 0x7fffffff) |
                            (tl_bits_f32(s) & 0x80000000));
}

/* a where x has the sign -, else b: bits, of which no compiler makes two
 * paths. */
static inline float tl_if_negative_f32(float x, float a, float b)
{
    uint32_t mask = (uint32_t)((int32_t)tl_bits_f32(x) >> 31);

    return tl_from_bits_f32((tl_bits_f32(a) & mask) |
                            (tl_bits_f32(b) & ~mask));
}

static inline double tl_sign_of_f64(double x, double s)
{
    return copysign(x, s);
}

static inline float tl_zmul_f32(float u, float v)
{
    return u == 0 ? 0 : u * v;
}

static inline double tl_zmul_f64(double u, double v)
{
    return u == 0 ? 0 : u * v;
}

static inline float tl_sqrt_f32(float x)
{
    return sqrtf(x);
}

static inline double tl_sqrt_f64(double x)
{
    return sqrt(x);
}

static inline float tl_round_f32(float x)
{
    float magnitude = tl_abs_f32(x);
    float r = (magnitude + 0x1p23f) - 0x1p23f;

    return tl_sign_of_f32(magnitude < 0x1p23f ? r : magnitude, x);
}

static inline float tl_floor_f32(float x)
{
    float r = tl_round_f32(x);

    return tl_sign_of_f32(r > x ? r - 1 : r, x);
}

static inline float tl_ceil_f32(float x)
{
    float r = tl_round_f32(x);

    return tl_sign_of_f32(r < x ? r + 1 : r, x);
}

static inline double tl_round_f64(double x)
{
    double magnitude = fabs(x);
    double r = (magnitude + 0x1p52) - 0x1p52;

    return copysign(magnitude < 0x1p52 ? r : magnitude, x);
}

static inline double tl_floor_f64(double x)
{
    double r = tl_round_f64(x);

    return copysign(r > x ? r - 1 : r, x);
}

static inline double tl_ceil_f64(double x)
{
    double r = tl_round_f64(x);

    return copysign(r < x ? r + 1 : r, x);
}

/* Remainder with the sign of b; fmod is exact. */
static inline double tl_mod_f64(double a, double b)
{
    double r = fmod(a, b);

    return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

/* fmodf where |a / b| < 2^28 and both are finite: the nearest multiple of b is
 * exact in double, and so is what it leaves. */
static inline float tl_fmod_near_f32(float a, float b)
{
    double d = (double)a, e = (double)b, q = d / e;
    double r = d - ((q + TL_ROUND_F64) - TL_ROUND_F64) * e;
    double m = tl_sign_of_f64(e, d);

    return (float)tl_sign_of_f64(r != 0 && (r < 0) != (a < 0) ? r + m : r, d);
}

/* Is tl_fmod_near_f32 for a and b? */
static inline bool tl_fmod_is_near_f32(float a, float b)
{
    float m = tl_abs_f32(b);

    return tl_abs_f32(a) < m * 0x1p28f && m < INFINITY;
}

static inline float tl_mod_of_f32(float a, float b, bool near)
{
    float r = near ? tl_fmod_near_f32(a, b) : fmodf(a, b);

    return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

static inline float tl_mod_f32(float a, float b)
{
    return tl_mod_of_f32(a, b, false);
}

/* Quotient rounded down, exactly: (a - mod) / b is whole but for rounding. */
static inline double tl_floordiv_f64(double a, double b)
{
    return b == 0 ? a / b : tl_round_f64((a - tl_mod_f64(a, b)) / b);
}

static inline float tl_floordiv_of_f32(float a, float b, bool near)
{
    return b == 0 ? a / b
                  : tl_round_f32((a - tl_mod_of_f32(a, b, near)) / b);
}

static inline float tl_floordiv_f32(float a, float b)
{
    return tl_floordiv_of_f32(a, b, false);
}

/* ---- integers: they wrap; divisors are not 0 --------------------------- */

static inline int64_t tl_abs_i(int64_t x)
{
    return x < 0 ? (int64_t) - (uint64_t)x : x;
}

static inline int64_t tl_floor_i(int64_t x)
{
    return x;
}

static inline int64_t tl_ceil_i(int64_t x)
{
    return x;
}

static inline int64_t tl_round_i(int64_t x)
{
    return x;
}

static inline int64_t tl_floordiv_i(int64_t a, int64_t b)
{
    return b == -1 ? (int64_t) - (uint64_t)a : tl_floor_div(a, b);
}

static inline int64_t tl_mod_i(int64_t a, int64_t b)
{
    return b == -1 ? 0 : tl_floor_mod(a, b);
}

/* By squaring; b >= 0. */
static inline int64_t tl_pow_i(int64_t a, int64_t b)
{
    uint64_t base = (uint64_t)a, res = 1;

    for (; b > 0; b >>= 1) {
        res *= (b & 1) != 0 ? base : 1;
        base *= base;
    }
    return (int64_t)res;
}

/* ---- exponential functions in float ------------------------------------ */

/* exp(r) - 1 for |r| <= ln 2 / 2 (Cephes, Moshier 1989, expf). */
static inline float tl_exp_core_f32(float r)
{
    float p = 1.9875691500e-4f;

    p = tl_fma_f32(p, r, 1.3981999507e-3f);
    p = tl_fma_f32(p, r, 8.3334519073e-3f);
    p = tl_fma_f32(p, r, 4.1665795894e-2f);
    p = tl_fma_f32(p, r, 1.6666665459e-1f);
    p = tl_fma_f32(p, r, 5.0000001201e-1f);
    return tl_fma_f32(p, r * r, r);
}

/* y * 2^k, |k| <= 252, in two steps so that neither overflows; k is in the low
 * bits of `rounded`, which is TL_ROUND_F32 + k. */
static inline float tl_scale_f32(float y, float rounded)
{
    int32_t k = (int32_t)(tl_bits_f32(rounded) - tl_bits_f32(TL_ROUND_F32));
    int32_t half = k >> 1;
    float s1 = tl_from_bits_f32((uint32_t)(half + 127) << 23);
    float s2 = tl_from_bits_f32((uint32_t)(k - half + 127) << 23);

    return y * s1 * s2;
}

static inline float tl_exp_f32(float x)
{
    float c = x > 89 ? 89 : (x < -105 ? -105 : x); /* NaN stays */
    float t = tl_fma_f32(c, 1.44269504088896341f, TL_ROUND_F32);
    float k = t - TL_ROUND_F32;
    float r = tl_fma_f32(k, 2.12194440e-4f, tl_fma_f32(k, -0.693359375f, c));

    return tl_scale_f32(1 + tl_exp_core_f32(r), t);
}

/* exp(-|x|) = (1 + the result) * *s * 2^-64: 2^k has one step, as k <= 0. */
static inline float tl_exp_minus_core_f32(float x, float *s)
{
    const float shift = TL_ROUND_F32 + 191; /* 127, and 64 against underflow */
    float m = tl_from_bits_f32(tl_bits_f32(x) | 0x80000000);
    float c = m < -130 ? -130 : m; /* NaN stays */
    float t = tl_fma_f32(c, 1.44269504088896341f, shift);
    float k = t - shift;
    float r = tl_fma_f32(k, 2.12194440e-4f, tl_fma_f32(k, -0.693359375f, c));

    *s = tl_from_bits_f32(tl_bits_f32(t) << 23);
    return tl_exp_core_f32(r);
}

/* A polynomial of the fraction (Remez fit, 2^-28). */
static inline float tl_exp2_f32(float x)
{
    float c = x > 129 ? 129 : (x < -151 ? -151 : x);
    float t = c + TL_ROUND_F32;
    float f = c - (t - TL_ROUND_F32), p = 1.5352504e-4f;

    p = p * f + 1.3398867e-3f;
    p = p * f + 9.6184412e-3f;
    p = p * f + 5.5503325e-2f;
    p = p * f + 2.4022648e-1f;
    p = p * f + 6.9314720e-1f;
    return tl_scale_f32(p * f + 1, t);
}

/* ---- logarithms in float ----------------------------------------------- */

/* x = m * 2^e with m - 1 = *f, sqrt(1/2) <= m < sqrt(2); x > 0, not infinite.
 * Subnormal numbers are scaled first. */
static inline float tl_split_f32(float x, float *f)
{
    float big = x < 0x1p-126f ? x * 0x1p23f : x;
    uint32_t u = tl_bits_f32(big) - 0x3f3504f3; /* sqrt(1/2) */
    float e = (float)((int32_t)u >> 23);

    *f = tl_from_bits_f32((u & 0x7fffff) + 0x3f3504f3) - 1;
    return x < 0x1p-126f ? e - 23 : e;
}

/* log(1 + f) - f + f * f / 2 (Cephes, logf). */
static inline float tl_log_core_f32(float f)
{
    float p = 7.0376836292e-2f;

    p = p * f - 1.1514610310e-1f;
    p = p * f + 1.1676998740e-1f;
    p = p * f - 1.2420140846e-1f;
    p = p * f + 1.4249322787e-1f;
    p = p * f - 1.6668057665e-1f;
    p = p * f + 2.0000714765e-1f;
    p = p * f - 2.4999993993e-1f;
    p = p * f + 3.3333331174e-1f;
    return p * f * (f * f);
}

/* `y`, but what a logarithm is at x = 0, below it, at infinity and NaN. */
static inline float tl_log_ends_f32(float y, float x)
{
    float special = x == 0 ? -INFINITY : (x < 0 ? NAN : x);

    return x > 0 && x < INFINITY ? y : special;
}

static inline float tl_log_f32(float x)
{
    float f, e = tl_split_f32(x, &f);
    float y = tl_log_core_f32(f) - e * 2.12194440e-4f;

    y = y - 0.5f * (f * f);
    return tl_log_ends_f32(f + y + e * 0.693359375f, x);
}

static inline float tl_log2_f32(float x)
{
    float f, e = tl_split_f32(x, &f);
    float y = tl_log_core_f32(f) - 0.5f * (f * f);
    float z = y * 0.44269504088896341f + f * 0.44269504088896341f;

    return tl_log_ends_f32(z + y + f + e, x);
}

/* ---- cores in double, for float results -------------------------------- */

/* 2^t - 1 = s * q + (s - 1), where *s = 2^round(t) and q is the result;
 * |t| < 1000.  Relative error of q 2^-37 (Chebyshev fit). */
static inline double tl_exp2m1_core(double t, double *s)
{
    double rounded = t + TL_ROUND_F64;
    double f = t - (rounded - TL_ROUND_F64);
    double p = 1.325522588388635e-06;

    *s = tl_from_bits_f64((tl_bits_f64(rounded) + 1023) << 52);
    p = p * f + 1.5303702451919612e-05;
    p = p * f + 0.00015403455848056116;
    p = p * f + 0.0013333478467158547;
    p = p * f + 0.009618129159408056;
    p = p * f + 0.05550410906331985;
    p = p * f + 0.24022650695812972;
    p = p * f + 0.6931471805568316;
    return p * f;
}

/* 2^t for |t| < 1000. */
static inline double tl_exp2_core(double t)
{
    double s, q = tl_exp2m1_core(t, &s);

    return s * q + s;
}

/* e^x, x clamped to what matters to a float; NaN stays. */
static inline double tl_exp_core(double x)
{
    double c = x > 200 ? 200 : (x < -200 ? -200 : x);

    return tl_exp2_core(c * 1.44269504088896340736);
}

/* log(x) for a normal x > 0: *e * ln 2 + the result.  Relative error of the
 * result 2^-45 (Chebyshev fit of atanh). */
static inline double tl_log_core(double x, double *e)
{
    const uint64_t root = 0x3fe6a09e667f3bcd; /* sqrt(1/2) */
    uint64_t u = tl_bits_f64(x) - root + ((uint64_t)1023 << 52);
    double f = tl_from_bits_f64((u & 0xfffffffffffff) + root) - 1;
    double s = f / (2 + f), z = s * s, p = 0.09804448887207574;

    *e = tl_from_bits_f64(0x4330000000000000 | u >> 52) - (0x1p52 + 1023);
    p = p * z + 0.11087095458738358;
    p = p * z + 0.14286083832047175;
    p = p * z + 0.19999997437944456;
    p = p * z + 0.33333333339818916;
    p = p * z + 0.9999999999999735;
    return 2 * s * p;
}

/* log(1 + z) for 0 <= z <= 1: 2 atanh(z / (2 + z)) (Remez fit, relative error
 * 2^-33). */
static inline double tl_log1p_core(double z)
{
    double s = z / (2 + z), u = s * s, p = 0.24413065999434698;

    p = p * u + 0.21393255429159278;
    p = p * u + 0.28620721122131542;
    p = p * u + 0.39998690969321765;
    p = p * u + 0.66666679305995232;
    p = p * u + 1.9999999998028611;
    return p * s;
}

/* erfc(x) for 0 <= x <= 10.6; relative error 2^-28.  exp(-x^2) / (1 + 2x)
 * times a polynomial in (x - 3) / (x + 3) (the form of Schonfelder, "Chebyshev
 * expansions for the error and related functions", 1978).  `square` is x^2. */
static inline double tl_erfc_core(double x, double square)
{
    double a = x + 3, b = 1 + 2 * x, r = 1 / (a * b);
    double t = (x - 3) * b * r, p = -0.0002676351787056426;

    p = p * t - 0.000774623839586842;
    p = p * t + 0.002006621830546645;
    p = p * t + 0.0025690454544136402;
    p = p * t - 0.023799484167751534;
    p = p * t + 0.06829445865001645;
    p = p * t - 0.1192708101861304;
    p = p * t + 0.12964661941494796;
    p = p * t - 0.04756239690631843;
    p = p * t - 0.13562114689707278;
    p = p * t + 1.2530080589976307;
    return tl_exp2_core(square * -1.44269504088896340736) * p * (a * r);
}

/* m * hi + m * lo quarter turns, m * hi exact: the whole ones in the low bits
 * of *quarters, the rest, |f| < 0.57, returned. */
static inline double tl_quarters(double m, double hi, double lo,
                                 uint64_t *quarters)
{
    double whole = m * hi, rounded = whole + TL_ROUND_F64;

    *quarters = tl_bits_f64(rounded);
    return (whole - (rounded - TL_ROUND_F64)) + m * lo;
}

/* Angle of |x| in quarter turns.  Angles that are not small take 2^e * 2/pi
 * from a table, which a compiler makes no vector code of; small ones, below
 * TL_SMALL_ANGLE, have the same bits either way. */
#define TL_SMALL_ANGLE 0x1p21f
#define TL_QUARTERS_HI 0x1.45f306dp-1 /* 2/pi */
#define TL_QUARTERS_LO 0x1.9391054a7f09dp-30

static inline double tl_angle_core(float x, bool small, uint64_t *quarters)
{
    uint32_t u = tl_bits_f32(x) & 0x7fffffff;
    int row = (int)(u >> 23);
    uint32_t mantissa = (u & 0x7fffff) | (row != 0 ? 0x800000u : 0);

    return small ? tl_quarters((double)tl_from_bits_f32(u), TL_QUARTERS_HI,
                               TL_QUARTERS_LO, quarters)
                 : tl_quarters((double)(int32_t)mantissa,
                               tl_quarter_turns_hi[row],
                               tl_quarter_turns_lo[row], quarters);
}

/* sin and cos of f quarter turns, |f| < 0.57. */
static inline double tl_sin_core(double f)
{
    double z = f * f, p = 0.0001576168345501264;

    p = p * z - 0.00468097407546868;
    p = p * z + 0.07969253818793436;
    p = p * z - 0.64596409402512;
    p = p * z + 1.570796326772872;
    return p * f;
}

static inline double tl_cos_core(double f)
{
    double z = f * f, p = 0.0008995115110573819;

    p = p * z - 0.020858029079771145;
    p = p * z + 0.25366889263464665;
    p = p * z - 1.233700525817081;
    return p * z + 0.9999999998461515;
}

/* ---- functions of one float -------------------------------------------- */

static inline float tl_expm1_f32(float x)
{
    double c = x > 89 ? 89 : (x < -40 ? -40 : x);
    double s, q = tl_exp2m1_core(c * 1.44269504088896340736, &s);

    return tl_sign_of_f32((float)(s * q + (s - 1)), x); /* -0 as well */
}

/* log(1 + x); 1 + x is exact enough in double where x is not tiny. */
static inline float tl_log1p_f32(float x)
{
    double u = 1 + (double)x, e, y = tl_log_core(u, &e);
    float res = (float)(e * 0.69314718055994530942 + y);
    float special = x == -1 ? -INFINITY : (x < -1 ? NAN : x);

    res = tl_abs_f32(x) < 0x1p-25f ? x : res;
    return x > -1 && x < INFINITY ? res : special;
}

/* `small`: |x| < TL_SMALL_ANGLE is known. */
static inline float tl_sin_of_f32(float x, bool small)
{
    uint64_t n;
    double f = tl_angle_core(x, small, &n);
    double y = (n & 1) != 0 ? tl_cos_core(f) : tl_sin_core(f);
    uint64_t sign = (n & 2) << 62 ^ (uint64_t)(tl_bits_f32(x) >> 31) << 63;

    return (float)tl_from_bits_f64(tl_bits_f64(y) ^ sign);
}

static inline float tl_cos_of_f32(float x, bool small)
{
    uint64_t n;
    double f = tl_angle_core(x, small, &n);
    double y = (n & 1) != 0 ? tl_sin_core(f) : tl_cos_core(f);

    return (float)tl_from_bits_f64(tl_bits_f64(y) ^ ((n + 1) & 2) << 62);
}

static inline float tl_tan_of_f32(float x, bool small)
{
    uint64_t n;
    double f = tl_angle_core(x, small, &n);
    double s = tl_sin_core(f), c = tl_cos_core(f);
    double y = ((n & 1) != 0 ? -c : s) / ((n & 1) != 0 ? s : c);

    return (float)tl_from_bits_f64(tl_bits_f64(y) ^
                                   (uint64_t)(tl_bits_f32(x) >> 31) << 63);
}

static inline float tl_sin_f32(float x)
{
    return tl_sin_of_f32(x, false);
}

static inline float tl_cos_f32(float x)
{
    return tl_cos_of_f32(x, false);
}

static inline float tl_tan_f32(float x)
{
    return tl_tan_of_f32(x, false);
}

/* Cephes, tanhf: a polynomial below 0.625, else by exp(2x). */
static inline float tl_tanh_f32(float x)
{
    float a = tl_abs_f32(x), z = a * a, p = -5.70498872745e-3f;
    float big = 1 - 2 / (tl_exp_f32(a + a) + 1);

    p = p * z + 2.06390887954e-2f;
    p = p * z - 5.37397155531e-2f;
    p = p * z + 1.33314422036e-1f;
    p = p * z - 3.33332819422e-1f;
    return tl_sign_of_f32(a < 0.625f ? p * z * a + a : big, x);
}

/* With t = exp(-|x|), 1 or t is divided by 1 + t; then what the sum has lost
 * is made good, by 1 - t / 2 instead of 1 / (1 + t). */
static inline float tl_sigmoid_f32(float x)
{
    float s, e = 1 + tl_exp_minus_core_f32(x, &s), t = e * s * 0x1p-64f;
    float sum = 1 + t, lost = t - (sum - 1);
    float y = tl_if_negative_f32(x, t, 1) / sum;

    return tl_fma_f32(-(y * lost), tl_fma_f32(t, -0.5f, 1), y);
}

static inline float tl_erfc_f32(float x)
{
    float a = tl_abs_f32(x);
    double m = a > 10.5f ? 10.5f : a;
    double y = tl_erfc_core(m, m * m);

    y = x < 0 ? 2 - y : y;
    return (float)(x != x ? (double)x : y);
}

static inline float tl_erf_f32(float x)
{
    float a = tl_abs_f32(x), m = a > 4 ? 4 : a, z = m * m;
    float p = 8.2674549e-5f, q = -1.1889238e-5f, r, s, big;

    p = tl_fma_f32(p, z, -8.1180819e-4f);
    p = tl_fma_f32(p, z, 5.1988315e-3f);
    p = tl_fma_f32(p, z, -2.6858498e-2f);
    p = tl_fma_f32(p, z, 1.1283679e-1f);
    p = tl_fma_f32(p, z, -3.7612633e-1f);
    p = tl_fma_f32(p, z, 1.2837917e-1f);
    q = tl_fma_f32(q, m, 3.2940965e-4f);
    q = tl_fma_f32(q, m, -3.6694087e-3f);
    q = tl_fma_f32(q, m, 2.3819270e-2f);
    q = tl_fma_f32(q, m, -1.0630355e-1f);
    q = tl_fma_f32(q, m, -6.3511083e-1f);
    q = tl_fma_f32(q, m, -1.2865850e-1f);
    r = tl_fma_f32(q, m, -m);
    big = 1 - (1 + tl_exp_minus_core_f32(r, &s)) * s * 0x1p-64f;
    return tl_sign_of_f32(m < 0.9375f ? tl_fma_f32(p, m, m) : big, x);
}

/* Distribution function of the standard normal, erfc(-x / sqrt 2) / 2, of a
 * number. */
static inline double tl_normcdf_core(float x)
{
    float a = tl_abs_f32(x);
    double m = a > 14.5f ? 14.5f : a;
    double y = 0.5 * tl_erfc_core(m * 0.70710678118654752440, m * m * 0.5);

    return x > 0 ? 1 - y : y;
}

/* The last steps of normcdf and gelu, from the core of x. */
static inline float tl_normcdf_of_core_f32(float x, double core)
{
    return (float)(x != x ? (double)x : core);
}

static inline float tl_gelu_of_core_f32(float x, double core)
{
    return (float)(x < -14.5f ? -0.0 : (double)x * core);
}

static inline float tl_normcdf_f32(float x)
{
    return tl_normcdf_of_core_f32(x, tl_normcdf_core(x));
}

/* x * sigmoid(x); 0 at -inf, where it tends to.  As sigmoid, times 2^64 where
 * that is small; what the quotient has lost is made good as well. */
static inline float tl_silu_f32(float x)
{
    float low = x < -200 ? -200 : x, m = low > 200 ? 200 : low;
    float s, e = 1 + tl_exp_minus_core_f32(x, &s), t = e * s * 0x1p-64f;
    float sum = 1 + t, lost = t - (sum - 1);
    float above = tl_if_negative_f32(x, e * s, 1), y = above / sum;
    float left = tl_fma_f32(-y, lost, tl_fma_f32(-y, sum, above));
    float rest = left * tl_fma_f32(t, -0.5f, 1);

    return tl_fma_f32(low, y, m * rest) *
           tl_if_negative_f32(x, 0x1p-64f, 1);
}

/* x times the distribution function; 0 at -inf, where it tends to. */
static inline float tl_gelu_f32(float x)
{
    return tl_gelu_of_core_f32(x, tl_normcdf_core(x));
}

/* x / (1 + exp(-2u)), u = sqrt(2/pi) (x + 0.044715 x^3): 0.5 x (1 + tanh u)
 * without its cancellation (Hendrycks and Gimpel, "GELUs", 2016). */
static inline float tl_gelu_tanh_f32(float x)
{
    double d = x;
    double u2 = d * (1.5957691216057308 + 0.07135481627260025 * (d * d));

    return (float)(x < -20 ? -0.0 : d / (1 + tl_exp_core(-u2)));
}

/* ---- functions of two floats ------------------------------------------- */

/* log(exp(a) + exp(b)) = hi + log1p(exp(lo - hi)) */
static inline float tl_logaddexp_f32(float a, float b)
{
    double hi = a >= b ? a : b, lo = a >= b ? b : a;
    double d = a == b ? 0 : lo - hi; /* equal infinities */
    double c = d < -200 ? -200 : d;
    double z = tl_exp2_core(c * 1.44269504088896340736);
    double y = tl_log1p_core(z);

    y = hi - hi == 0 ? hi + y : hi;
    return a != a || b != b ? a + b : (float)y;
}

/* Is y a whole number, an odd one? */
static inline int tl_is_whole_f32(float y)
{
    return tl_abs_f32(y) >= 0x1p23f || tl_round_f32(y) == y;
}

static inline int tl_is_odd_f32(float y)
{
    float half = y * 0.5f;

    return tl_is_whole_f32(y) && tl_abs_f32(y) < 0x1p24f &&
           tl_round_f32(half) != half;
}

/* a^b = 2^(b log2 a), with the special cases of C's pow. */
static inline float tl_pow_f32(float a, float b)
{
    float m = tl_abs_f32(a);
    double e, y = tl_log_core(m > 0 && m < INFINITY ? m : 1, &e);
    double t = (double)b * (e + y * 1.44269504088896340736);
    double p = tl_exp2_core(t > 400 ? 400 : (t < -400 ? -400 : t));
    int big = m < 1 ? b < 0 : b > 0; /* of 0 and infinity: which way */
    float res = (float)p;

    res = m == 0 || m == INFINITY ? (big ? INFINITY : 0) : res;
    res = a < 0 && !tl_is_whole_f32(b) && m < INFINITY ? NAN : res;
    res = tl_is_odd_f32(b) ? tl_sign_of_f32(res, a) : res;
    res = a != a || b != b ? a + b : res;
    return b == 0 || a == 1 || (m == 1 && tl_abs_f32(b) == INFINITY) ? 1
                                                                     : res;
}

/* ---- double ------------------------------------------------------------ */

#define TL_LIBM(fn)                                                          \
    static inline double tl_##fn##_f64(double x)                             \
    {                                                                        \
        return fn(x);                                                        \
    }
TL_LIBM(exp)
TL_LIBM(exp2)
TL_LIBM(expm1)
TL_LIBM(log)
TL_LIBM(log2)
TL_LIBM(log1p)
TL_LIBM(sin)
TL_LIBM(cos)
TL_LIBM(tan)
TL_LIBM(tanh)
TL_LIBM(erf)
TL_LIBM(erfc)
#undef TL_LIBM

static inline double tl_pow_f64(double a, double b)
{
    return pow(a, b);
}

static inline double tl_sigmoid_f64(double x)
{
    double z = exp(-fabs(x));

    return x < 0 ? z / (1 + z) : 1 / (1 + z);
}

/* erfc(-x / sqrt 2) / 2; the rounding error of the argument, which erfc
 * amplifies, is made good to first order. */
static inline double tl_normcdf_f64(double x)
{
    const double hi = 0.70710678118654757, lo = -4.8336466567264567e-17;
    double z = -x * hi, error = fma(-x, hi, -z) - x * lo;
    double y = erfc(z);

    if (z > 1 && z < 28) {
        y -= 1.1283791670955126 * exp(-z * z) * error;
    }
    return 0.5 * y;
}

static inline double tl_silu_f64(double x)
{
    return x < -800 ? -0.0 : x * tl_sigmoid_f64(x);
}

static inline double tl_gelu_f64(double x)
{
    return x < -40 ? -0.0 : x * tl_normcdf_f64(x);
}

static inline double tl_gelu_tanh_f64(double x)
{
    double u2 = x * (1.5957691216057308 + 0.07135481627260025 * (x * x));

    return x < -30 ? -0.0 : x * tl_sigmoid_f64(u2);
}

static inline double tl_logaddexp_f64(double a, double b)
{
    double hi = a >= b ? a : b, lo = a >= b ? b : a;

    if (a == b) {
        return a + 0.69314718055994530942;
    }
    return a != a ? a : hi + log1p(exp(lo - hi));
}

#endif
