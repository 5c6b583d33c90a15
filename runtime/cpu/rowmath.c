/* rowmath.c - arithmetic on one contiguous row; compiled three
 * times (isa.h). */
#include "runtime/cpu/rowmath.h"

#include <math.h>
#include <string.h>

#include "runtime/cpu/fold.h"
#include "runtime/cpu/scalar.h"

enum {
    TREE_LEVELS = 42, /* 2^48 elements are 2^40 leaves */
    LEAVES = 8        /* whose moments are computed side by side */
};

#if defined(TL_CPU_AVX512)
#define VECTOR 64
#elif defined(TL_CPU_AVX2)
#define VECTOR 32
#else
#define VECTOR 16
#endif

#define REAL float
#define NAME(fn) fn##_f32
#define FN(fn) tl_##fn##_f32
#define DTYPE TL_f32
#define ROWMATH_TABLE TL_ISA(tl_rowmath_f32)
#include "runtime/cpu/rowmath_rows.h"

#define REAL double
#define NAME(fn) fn##_f64
#define FN(fn) tl_##fn##_f64
#define DTYPE TL_f64
#define ROWMATH_TABLE TL_ISA(tl_rowmath_f64)
#include "runtime/cpu/rowmath_rows.h"
