/* softmax.c - softmax, log_softmax and their gradients, line by line. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "runtime/cpu/rowmath.h"

const tl_rowmath *tl_rowmath_get(tl_dtype dtype)
{
#ifdef TL_HAVE_AVX2_KERNELS
    if (tl_cpu_has_avx2()) {
        return dtype == TL_f64 ? TL_BEST_AVX(tl_rowmath_f64)
                               : TL_BEST_AVX(tl_rowmath_f32);
    }
#endif
    return dtype == TL_f64 ? &tl_rowmath_f64 : &tl_rowmath_f32;
}

tl_status tl_cpu_softmax(tl_kernel_ctx *k, tl_op op, tl_tensor *const *in,
                         int nin, tl_tensor *const *out, int nout,
                         const tl_attrs *at)
{
    tl_lines l = {.f32 = tl_rowmath_get(TL_f32)->softmax,
                  .f64 = tl_rowmath_get(TL_f64)->softmax,
                  .nin = nin, .nout = nout, .in = in, .out = out,
                  .axis = at->axis};

    (void)op;
    return tl_cpu_run_lines(k, &l);
}

tl_status tl_cpu_log_softmax(tl_kernel_ctx *k, tl_op op, tl_tensor *const *in,
                             int nin, tl_tensor *const *out, int nout,
                             const tl_attrs *at)
{
    tl_lines l = {.f32 = tl_rowmath_get(TL_f32)->log_softmax,
                  .f64 = tl_rowmath_get(TL_f64)->log_softmax,
                  .nin = nin, .nout = nout, .in = in, .out = out,
                  .axis = at->axis};

    (void)op;
    return tl_cpu_run_lines(k, &l);
}

tl_status tl_cpu_softmax_grad(tl_kernel_ctx *k, tl_op op,
                              tl_tensor *const *in, int nin,
                              tl_tensor *const *out, int nout,
                              const tl_attrs *at)
{
    tl_lines l = {.f32 = tl_rowmath_get(TL_f32)->softmax_grad,
                  .f64 = tl_rowmath_get(TL_f64)->softmax_grad,
                  .nin = nin, .nout = nout, .in = in, .out = out,
                  .axis = at->axis};

    (void)op;
    return tl_cpu_run_lines(k, &l);
}

tl_status tl_cpu_log_softmax_grad(tl_kernel_ctx *k, tl_op op,
                                  tl_tensor *const *in, int nin,
                                  tl_tensor *const *out, int nout,
                                  const tl_attrs *at)
{
    tl_lines l = {.f32 = tl_rowmath_get(TL_f32)->log_softmax_grad,
                  .f64 = tl_rowmath_get(TL_f64)->log_softmax_grad,
                  .nin = nin, .nout = nout, .in = in, .out = out,
                  .axis = at->axis};

    (void)op;
    return tl_cpu_run_lines(k, &l);
}
