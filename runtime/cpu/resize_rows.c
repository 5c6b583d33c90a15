/* resize_rows.c - the loops of interpolation; compiled twice (isa.h).
 *
 * A row of the result is a sum of rows of the input by the weights of the
 * outer axes, then of its elements by those of the last one. */
#include <string.h>

#include "runtime/cpu/isa.h"
#include "runtime/cpu/resize.h"

#define REAL float
#define NAME(fn) fn##_f32
#define TABLE TL_ISA(tl_resize_f32)
#include "runtime/cpu/resize_rows.h"

#define REAL double
#define NAME(fn) fn##_f64
#define TABLE TL_ISA(tl_resize_f64)
#include "runtime/cpu/resize_rows.h"
