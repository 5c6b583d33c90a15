/* map_int.c - elementwise rows in integers: they wrap (-fwrapv, see
 * configure.ac).  bool is computed by the loops of u8. */
#include "runtime/cpu/map.h"

#include "runtime/cpu/scalar.h"

#pragma GCC diagnostic ignored "-Wtype-limits" /* x < 0 of u8 */

/* The nearest value in lo .. hi; NaN gives 0. */
static inline int64_t saturated(double v, int64_t lo, int64_t hi)
{
    return v != v            ? 0
           : v <= (double)lo ? lo
           : v >= (double)hi ? hi
                             : (int64_t)v;
}

#define ROW_FN(fn) tl_##fn##_i
#define ROW_FLOAT(...)
#define ROW_NUM(...) __VA_ARGS__
#define ROW_ANY(...) __VA_ARGS__

#define ROW_BOOL(...) __VA_ARGS__
#define ROW_TYPE uint8_t
#define ROW_NAME u8
#define ROW_P(v) ((uint8_t)saturated(v, 0, UINT8_MAX))
#include "runtime/cpu/map_rows.h"

#undef ROW_BOOL
#define ROW_BOOL(...)
#define ROW_TYPE int8_t
#define ROW_NAME i8
#define ROW_P(v) ((int8_t)saturated(v, INT8_MIN, INT8_MAX))
#include "runtime/cpu/map_rows.h"

#define ROW_TYPE int16_t
#define ROW_NAME i16
#define ROW_P(v) ((int16_t)saturated(v, INT16_MIN, INT16_MAX))
#include "runtime/cpu/map_rows.h"

#define ROW_TYPE int32_t
#define ROW_NAME i32
#define ROW_P(v) ((int32_t)saturated(v, INT32_MIN, INT32_MAX))
#include "runtime/cpu/map_rows.h"

#define ROW_TYPE int64_t
#define ROW_NAME i64
#define ROW_P(v) saturated(v, INT64_MIN, INT64_MAX)
#include "runtime/cpu/map_rows.h"
