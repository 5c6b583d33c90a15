/* kern.h - what the kernels of structured operations share. */
#ifndef TL_CPU_KERN_H
#define TL_CPU_KERN_H

#include "runtime/op/view.h"
#include "runtime/tensor/device.h"

/* The kernel of every KERN row: tl_cpu_<name>. */
#define KERN(name, ...) tl_kernel_fn tl_cpu_##name;
#include "runtime/op/ops.def"

/* Elements that one task should have, so that it lasts 20 to 200 us, when an
 * element costs about a nanosecond. */
enum { TL_CPU_GRAIN = 1 << 15 };

/* fn(arg, task, worker) for every task; at once where there is but one. */
static inline void tl_cpu_run(tl_kernel_ctx *k, int64_t ntasks,
                              tl_task_fn *fn, void *arg)
{
    if (ntasks == 1) {
        fn(arg, 0, 0);
    } else {
        tl_threads_run(k->threads, ntasks, fn, arg);
    }
}

/* Rows that a task takes when each costs `cost` elements; at least 1. */
static inline int64_t tl_cpu_rows_a_task(int64_t cost)
{
    return cost >= TL_CPU_GRAIN ? 1 : TL_CPU_GRAIN / (cost > 0 ? cost : 1);
}

/* Has this CPU AVX2 and FMA? */
static inline bool tl_cpu_has_avx2(void)
{
#if defined(__x86_64__)
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#else
    return false;
#endif
}

static inline int64_t tl_ceil_div(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

/* Layout of a tensor with offset 0: relative to tl_tensor_data. */
void tl_cpu_layout(const tl_tensor *t, tl_layout *out);

/* Strides of `v` broadcast to `rank` axes of sizes `size`. */
void tl_cpu_broadcast(const tl_tensor *v, int rank, const int64_t *size,
                      int64_t *stride);

/* Copy elements of `width` (1, 2, 4, 8) bytes between two layouts of one
 * shape; strides in elements, of any sign, those of `to` without overlap. */
void tl_cpu_copy_elements(tl_kernel_ctx *k, int width, int rank,
                          const int64_t *size, void *to,
                          const int64_t *to_stride, const void *from,
                          const int64_t *from_stride);

/* Turn a matrix inside a task: to[i * to_row + j] = from[i + j * from_row] for
 * i < rows, j < cols; elements of `width` bytes. */
void tl_cpu_turn(int width, int64_t rows, int64_t cols, void *to,
                 int64_t to_row, const void *from, int64_t from_row);

/* Do two tensors start at the same address: is it done in place? */
static inline bool tl_cpu_same_data(const tl_tensor *a, const tl_tensor *b)
{
    return tl_tensor_data(a) == tl_tensor_data(b);
}

/* Make `to`, row-major, a copy of `from`; nothing if it is in place. */
void tl_cpu_copy_tensor(tl_kernel_ctx *k, tl_tensor *to,
                        const tl_tensor *from);

/* An element of an integer tensor at a place in elements. */
static inline int64_t tl_cpu_load_int(const void *data, tl_dtype dtype,
                                      int64_t at)
{
    switch (dtype) {
    case TL_i64:
        return ((const int64_t *)data)[at];
    case TL_i32:
        return ((const int32_t *)data)[at];
    case TL_i16:
        return ((const int16_t *)data)[at];
    case TL_i8:
        return ((const int8_t *)data)[at];
    default:
        return ((const uint8_t *)data)[at];
    }
}

/* Element i, in row-major order, of an integer tensor. */
static inline int64_t tl_cpu_get_int(const tl_tensor *t, int64_t i)
{
    return tl_tensor_contiguous(t)
               ? tl_cpu_load_int(tl_tensor_data(t), t->dtype, i)
               : tl_tensor_get_i(t, i);
}

/* An element of a float tensor as float; f64 loses precision. */
static inline float tl_cpu_load_f32(const void *data, tl_dtype dtype,
                                    int64_t at)
{
    switch (dtype) {
    case TL_f32:
        return ((const float *)data)[at];
    case TL_f16:
        return tl_f16_to_f32(((const uint16_t *)data)[at]);
    case TL_bf16:
        return tl_bf16_to_f32(((const uint16_t *)data)[at]);
    default:
        return (float)((const double *)data)[at];
    }
}

static inline void tl_cpu_store_f32(void *data, tl_dtype dtype, int64_t at,
                                    float value)
{
    switch (dtype) {
    case TL_f32:
        ((float *)data)[at] = value;
        break;
    case TL_f16:
        ((uint16_t *)data)[at] = tl_f32_to_f16(value);
        break;
    case TL_bf16:
        ((uint16_t *)data)[at] = tl_f32_to_bf16(value);
        break;
    default:
        ((double *)data)[at] = (double)value;
    }
}

/* Elements of an f16 or bf16 tensor as row-major floats, and floats rounded
 * into a row-major one. */
TL_MUST_USE tl_status tl_cpu_widen(tl_kernel_ctx *k, const tl_tensor *t,
                                   float *to);
void tl_cpu_narrow(tl_kernel_ctx *k, const float *from, tl_tensor *t);

/* Is each target a class of 0 .. n - 1, or `ignore`?  E0407. */
TL_MUST_USE tl_status tl_cpu_check_targets(const tl_tensor *targets,
                                           int64_t n, int64_t ignore,
                                           tl_diag *diag);

/* Row-major scratch of `count` elements of `width` bytes, 64-byte aligned. */
TL_MUST_USE tl_status tl_cpu_scratch(tl_kernel_ctx *k, int64_t count,
                                     size_t width, tl_storage **out);

/* Text of the indices of element `at` of a tensor, "[1, 7]". */
typedef struct tl_place_text {
    char s[96];
} tl_place_text;

tl_place_text tl_cpu_place(const tl_tensor *t, int64_t at);

#endif
