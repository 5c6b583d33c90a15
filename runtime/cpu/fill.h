/* fill.h - results that are computed from the index alone: creators, draws. */
#ifndef TL_CPU_FILL_H
#define TL_CPU_FILL_H

#include "runtime/tensor/device.h"

enum {
    TL_FILL_TILE = 512
}; /* elements; a multiple of 32 */

/* Write the elements pos .. pos + n of a result into `tile`, which has the
 * dtype that the filler was started with; n <= TL_FILL_TILE, pos a multiple
 * of it. */
typedef void tl_fill_fn(const void *arg, int64_t pos, int64_t n, void *tile);

/* Fill `to`, row-major, from tiles of dtype `dtype` (i64, f64, f32 or that of
 * `to`), in tasks when `ns` nanoseconds an element are worth it. */
void tl_cpu_fill(tl_kernel_ctx *k, tl_tensor *to, tl_dtype dtype,
                 tl_fill_fn *fn, const void *arg, double ns);

#endif
