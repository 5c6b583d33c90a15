/* stage.h - elements of one dtype and any stride into a row of another dtype.
 *
 * Kernels compute on contiguous rows of their compute type, a tile at a time;
 * operands that are strided, broadcast or of another dtype are brought into a
 * tile first. */
#ifndef TL_CPU_STAGE_H
#define TL_CPU_STAGE_H

#include "runtime/cpu/isa.h"
#include "runtime/op/dtype.h"

enum {
    TL_TILE_BYTES = 4096
};

/* to[i] = from[i * stride], i < n; `to` is contiguous and apart from `from`,
 * or equal to it with stride 1 and elements not wider than those of `from`. */
typedef void tl_stage_fn(int64_t n, const void *from, int64_t stride,
                         void *to);

/* Conversion from `from` to `to`, NULL where there is none in one step: from
 * f16 and bf16 only to themselves, f32 and f64; to them only from those two.
 * Floats to ints truncate, saturate, and NaN gives 0; ints to ints wrap;
 * floats round to nearest even. */
tl_stage_fn *tl_stage(tl_dtype from, tl_dtype to);
tl_stage_fn *tl_stage_avx2(tl_dtype from, tl_dtype to);

#endif
