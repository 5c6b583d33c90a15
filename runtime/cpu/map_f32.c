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
#include "runtime/cpu/map_rows.h"
