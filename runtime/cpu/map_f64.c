/* map_f64.c - elementwise rows in double. */
#include "runtime/cpu/map.h"

#include "runtime/cpu/scalar.h"

#define ROW_FN(fn) tl_##fn##_f64
#define ROW_GRADIENTS
#define ROW_FLOAT(...) __VA_ARGS__
#define ROW_NUM(...) __VA_ARGS__
#define ROW_ANY(...) __VA_ARGS__
#define ROW_BOOL(...)

#define ROW_TYPE double
#define ROW_NAME f64
#define ROW_P(v) (v)
#include "runtime/cpu/map_rows.h"
