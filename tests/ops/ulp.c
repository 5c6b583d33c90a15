/* ulp.c - errors of the float functions of scalar.h over all their inputs.
 *
 *   ulp                 every function, a sample of one input in 4099
 *   ulp NAME...         all 2^32 inputs of these
 *   of two floats (pow, logaddexp): 2^26 random pairs
 *
 * Prints the largest error in units in the last place against libm in double,
 * and where it is; fails if one is above 2.  Special values must agree: NaN
 * with NaN, infinities, zeros with their signs. */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/cpu/scalar.h"

static double ref_sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

static double ref_normcdf(double x)
{
    return tl_normcdf_f64(x);
}

static double ref_gelu_tanh(double x)
{
    double u2 = 1.5957691216057308 * (x + 0.044715 * x * x * x);

    return isinf(x) && x < 0 ? -0.0 : x * ref_sigmoid(u2);
}

static double ref_gelu(double x)
{
    return isinf(x) && x < 0 ? -0.0 : x * tl_normcdf_f64(x);
}

static double ref_silu(double x)
{
    return isinf(x) && x < 0 ? -0.0 : x * ref_sigmoid(x);
}

static double ref_rsqrt(double x)
{
    return 1 / sqrt(x);
}

static float reciprocal_root(float x)
{
    return 1 / tl_sqrt_f32(x);
}

/* Blocks of inputs keep the loops that gcc vectorises. */
enum {
    BLOCK = 1024
};

#define UNARY(X)                                                             \
    X(exp, tl_exp_f32, exp)                                                  \
    X(exp2, tl_exp2_f32, exp2)                                               \
    X(expm1, tl_expm1_f32, expm1)                                            \
    X(log, tl_log_f32, log)                                                  \
    X(log2, tl_log2_f32, log2)                                               \
    X(log1p, tl_log1p_f32, log1p)                                            \
    X(sin, tl_sin_f32, sin)                                                  \
    X(cos, tl_cos_f32, cos)                                                  \
    X(tan, tl_tan_f32, tan)                                                  \
    X(tanh, tl_tanh_f32, tanh)                                               \
    X(sigmoid, tl_sigmoid_f32, ref_sigmoid)                                  \
    X(erf, tl_erf_f32, erf)                                                  \
    X(erfc, tl_erfc_f32, erfc)                                               \
    X(normcdf, tl_normcdf_f32, ref_normcdf)                                  \
    X(gelu, tl_gelu_f32, ref_gelu)                                           \
    X(gelu_tanh, tl_gelu_tanh_f32, ref_gelu_tanh)                            \
    X(silu, tl_silu_f32, ref_silu)                                           \
    X(rsqrt, reciprocal_root, ref_rsqrt)                                     \
    X(floor, tl_floor_f32, floor)                                            \
    X(ceil, tl_ceil_f32, ceil)                                               \
    X(round, tl_round_f32, rint)

#define LOOP(name, fn, ref)                                                  \
    static void loop_##name(const float *x, float *y)                        \
    {                                                                        \
        for (int i = 0; i < BLOCK; i++) {                                    \
            y[i] = fn(x[i]);                                                 \
        }                                                                    \
    }
UNARY(LOOP)

static const struct {
    const char *name;
    void (*fn)(const float *, float *);
    double (*ref)(double);
} functions[] = {
#define ROW(name, fn, ref) {#name, loop_##name, ref},
    UNARY(ROW)};
enum {
    NFUNCTIONS = sizeof functions / sizeof *functions
};

/* |got - want| in ulps of the float nearest to `want`. */
static double error_in_ulps(float got, double want)
{
    float nearest = (float)want;
    int exponent;

    if (nearest != nearest || got != got) {
        return nearest != nearest && got != got ? 0 : (double)INFINITY;
    }
    if (got == 0 && want == 0) { /* zeros have signs */
        return signbit(got) == signbit(nearest) ? 0 : (double)INFINITY;
    }
    if (isinf(got) || isinf(nearest)) { /* the largest float is 1 ulp away */
        bool close = fabsf(got) >= 0x1.fffffcp127f &&
                     fabsf(nearest) >= 0x1.fffffcp127f &&
                     signbit(got) == signbit(nearest);

        return got == nearest ? 0 : close ? 1 : (double)INFINITY;
    }
    (void)frexp(want, &exponent);
    return fabs((double)got - want) /
           ldexp(1, exponent < -125 ? -149 : exponent - 24);
}

static double pow_error(float got, float a, float b)
{
    return error_in_ulps(got, pow((double)a, (double)b));
}

/* In ulps of the larger operand where that exceeds the result: the sum of
 * hi and log1p(...) may cancel. */
static double logaddexp_error(float got, float a, float b)
{
    double want = tl_logaddexp_f64((double)a, (double)b);
    double hi = (double)(a > b ? a : b), e = error_in_ulps(got, want);
    int at, from;

    if (isfinite(hi) && fabs(hi) > fabs(want) && want != 0 && isfinite(e)) {
        (void)frexp(want, &from);
        (void)frexp(hi, &at);
        e = ldexp(e, (from < -125 ? -125 : from) - (at < -125 ? -125 : at));
    }
    return e;
}

static const struct {
    const char *name;
    float (*fn)(float, float);
    double (*error)(float got, float a, float b);
} pairs[] = {
    {"pow", tl_pow_f32, pow_error},
    {"logaddexp", tl_logaddexp_f32, logaddexp_error},
};
enum {
    NPAIRS = sizeof pairs / sizeof *pairs
};

typedef struct worst {
    double error;
    float at;
} worst;

/* Look at a block of inputs. */
static void look(int which, const float *x, worst *w)
{
    float y[BLOCK];

    functions[which].fn(x, y);
    for (int i = 0; i < BLOCK; i++) {
        double e = error_in_ulps(y[i], functions[which].ref((double)x[i]));

        if (e > w->error) {
            *w = (worst){e, x[i]};
        }
    }
}

static bool check(int which, uint32_t step)
{
    float x[BLOCK] = {0,         -0.0f,      INFINITY,   -INFINITY,  NAN,
                      0x1p-149f, -0x1p-149f, 0x1p-126f,  1,          -1,
                      0.5,       -0.5,       0x1.8p127f, -0x1.8p127f};
    worst w = {0, 0};

    look(which, x, &w);
    for (uint64_t u = 0; u <= UINT32_MAX; u += (uint64_t)BLOCK * step) {
        for (int i = 0; i < BLOCK; i++) {
            x[i] = tl_from_bits_f32((uint32_t)(u + (uint64_t)i * step));
        }
        look(which, x, &w);
    }
    printf("%-10s %6.3f ulp at %.9g (%a)%s\n", functions[which].name, w.error,
           (double)w.at, (double)w.at, w.error <= 2 ? "" : "  TOO MUCH");
    fflush(stdout);
    return w.error <= 2;
}

static uint64_t state = 88172645463325252u;

static uint32_t random_word(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)(state >> 32);
}

static bool check_pairs(int which, int64_t n)
{
    float a = 0, b = 0, at[2] = {0, 0};
    static const float special[] = {0, -0.0f, 1,    -1,   INFINITY, -INFINITY,
                                    2, 3,     0.5f, -2.5, NAN,      1e-40f};
    enum {
        NSPECIAL = sizeof special / sizeof *special
    };
    double most = 0;

    for (int64_t i = 0; i < n; i++) {
        double e;

        if (i < NSPECIAL * NSPECIAL) {
            a = special[i / NSPECIAL];
            b = special[i % NSPECIAL];
        } else if (i % 2 == 0) { /* any bits */
            a = tl_from_bits_f32(random_word());
            b = tl_from_bits_f32(random_word());
        } else { /* moderate ones */
            a = (float)random_word() * 0x1p-28f;
            b = (float)(int32_t)random_word() * 0x1p-26f;
        }
        e = pairs[which].error(pairs[which].fn(a, b), a, b);
        if (e > most) {
            most = e;
            at[0] = a;
            at[1] = b;
        }
    }
    printf("%-10s %6.3f ulp at %.9g, %.9g%s\n", pairs[which].name, most,
           (double)at[0], (double)at[1], most <= 2 ? "" : "  TOO MUCH");
    return most <= 2;
}

static bool check_named(const char *name)
{
    for (int i = 0; i < NFUNCTIONS; i++) {
        if (strcmp(functions[i].name, name) == 0) {
            return check(i, 1);
        }
    }
    for (int i = 0; i < NPAIRS; i++) {
        if (strcmp(pairs[i].name, name) == 0) {
            return check_pairs(i, 1 << 26);
        }
    }
    fprintf(stderr, "ulp: no function %s\n", name);
    return false;
}

int main(int argc, char **argv)
{
    bool good = true;

    for (int i = 1; i < argc; i++) {
        good = check_named(argv[i]) && good;
    }
    for (int i = 0; i < NFUNCTIONS && argc == 1; i++) {
        good = check(i, 4099) && good;
    }
    for (int i = 0; i < NPAIRS && argc == 1; i++) {
        good = check_pairs(i, 1 << 20) && good;
    }
    return good ? EXIT_SUCCESS : EXIT_FAILURE;
}
