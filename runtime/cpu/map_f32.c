/* map_f32.c - elementwise rows in float: f32, and f16 and bf16 by tiles. */
#include "runtime/cpu/map.h"

#include "runtime/cpu/scalar.h"

#define ROW_FN(fn) tl_##fn##_f32
#define ROW_GRADIENTS
#define ROW_FLOAT(...) __VA_ARGS__
#define ROW_NUM(...) __VA_ARGS__
#define ROW_ANY(...) __VA_ARGS__
#define ROW_BOOL(...)

#define ROW_TYPE float
#define ROW_NAME f32
#define ROW_P(v) ((float)(v))

/* ---- rows with a quick loop ---------------------------------------------- */

#define ROW_QUICK(row, n, in) quick_##row(n, in)

static bool quick_sin(int64_t n, const void *const *in)
{
    const float *x = in[0];
    int large = 0;

    for (int64_t i = 0; i < n; i++) {
        large |= !(tl_abs_f32(x[i]) < TL_SMALL_ANGLE);
    }
    return large == 0;
}

static bool quick_mod(int64_t n, const void *const *in)
{
    const float *a = in[0], *b = in[1];
    int far = 0;

    for (int64_t i = 0; i < n; i++) {
        far |= !tl_fmod_is_near_f32(a[i], b[i]);
    }
    return far == 0;
}

#define QUICK_sin , 1
#define QUICK_cos , 1
#define QUICK_tan , 1
#define QUICK_mod , 1
#define QUICK_floordiv , 1
#define quick_cos quick_sin
#define quick_tan quick_sin
#define quick_floordiv quick_mod
#define tl_sin_f32(x) tl_sin_of_f32(x, quick)
#define tl_cos_f32(x) tl_cos_of_f32(x, quick)
#define tl_tan_f32(x) tl_tan_of_f32(x, quick)
#define tl_mod_f32(a, b) tl_mod_of_f32(a, b, quick)
#define tl_floordiv_f32(a, b) tl_floordiv_of_f32(a, b, quick)

#include "runtime/cpu/map_rows.h"

/* ---- gelu and its gradient from one core --------------------------------- */

static void gelu_core(int64_t n, const void *const *in, void *to,
                      const double *p)
{
    const float *x = in[0];
    double *res = to;

    (void)p;
    TL_INDEPENDENT
    for (int64_t i = 0; i < n; i++) {
        res[i] = tl_normcdf_core(x[i]);
    }
}

static void gelu_value(int64_t n, const void *const *in, void *to,
                       const double *p)
{
    const float *x = in[0];
    const double *core = in[1];
    float *res = to;

    (void)p;
    TL_INDEPENDENT
    for (int64_t i = 0; i < n; i++) {
        res[i] = tl_gelu_of_core_f32(x[i], core[i]);
    }
}

/* As the row's formula in ops.def. */
static void gelu_grad(int64_t n, const void *const *in, void *to,
                      const double *p)
{
    const float *from = in[0], *up = in[TL_MAP_G];
    const double *core = in[1];
    float *res = to;

    (void)p;
    TL_INDEPENDENT
    for (int64_t i = 0; i < n; i++) {
        float x = from[i];
        float normal = 0.3989422804014327f * tl_exp_f32(-0.5f * (x * x));

        res[i] = tl_zmul_f32(up[i], tl_normcdf_of_core_f32(x, core[i]) +
                                        x * normal);
    }
}

const tl_map_gelu_loops TL_ISA(tl_map_gelu) = {gelu_core, gelu_value,
                                               gelu_grad};
