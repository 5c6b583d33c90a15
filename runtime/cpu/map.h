/* map.h - the loops of elementwise rows, made from ops.def for each dtype.
 *
 * A loop works on contiguous rows of its compute type.  in[0 .. 2] are the
 * inputs, in[3] the result y and in[4] the upstream gradient g; those that a
 * formula does not mention may point to anything readable.  `to` may be equal
 * to any of them.  p is f[] of the attributes. */
#ifndef TL_CPU_MAP_H
#define TL_CPU_MAP_H

#include "runtime/cpu/isa.h"
#include "runtime/op/op.h"

enum {
    TL_MAP_Y = 3,
    TL_MAP_G = 4,
    TL_MAP_OPERANDS = 5
};

typedef void tl_map_loop(int64_t n, const void *const *in, void *to,
                         const double *p);

/* NULL: the row does not compute in this dtype, or has no such gradient. */
typedef struct tl_map_loops {
    tl_map_loop *value[TL_OP_COUNT];
    tl_map_loop *grad[TL_OP_COUNT][3];
} tl_map_loops;

/* Loops for the compute dtype (bool as u8; f16 and bf16 have none); f32 has
 * three builds. */
#define TL_MAP_TABLES(X) X(u8) X(i8) X(i16) X(i32) X(i64) X(f64)

#define TL_DECLARE(name)                                                     \
    extern const tl_map_loops tl_map_##name, tl_map_##name##_avx2;
TL_MAP_TABLES(TL_DECLARE)
#undef TL_DECLARE
extern const tl_map_loops tl_map_f32, tl_map_f32_avx2, tl_map_f32_avx512;

/* gelu and its gradient where both are wanted of one x: what is dear in them
 * is made once.  core: of floats x (in[0]), doubles; value: of x and the core
 * (in[1]); grad: of these and g (in[4]).  The bits are those of the rows. */
typedef struct tl_map_gelu_loops {
    tl_map_loop *core, *value, *grad;
} tl_map_gelu_loops;
extern const tl_map_gelu_loops tl_map_gelu, tl_map_gelu_avx2,
    tl_map_gelu_avx512;

/* Loops that compute elements of `dtype`: those of u8 for bool, of f32 for
 * f16 and bf16. */
const tl_map_loops *tl_map_loops_get(tl_dtype dtype);
const tl_map_loops *tl_map_loops_get_avx2(tl_dtype dtype);

#endif
