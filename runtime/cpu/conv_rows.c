/* conv_rows.c - the loops of our own convolutions over rows of elements;
 * compiled twice (isa.h). */
#include <string.h>

#include "runtime/cpu/conv.h"
#include "runtime/cpu/isa.h"

/* Sums of products have so many lanes, whatever the instruction set. */
enum { LANES = 16 };

/* Windows [*lo, *hi) of n along one axis whose tap lies within the input. */
static void inside(int64_t n, int64_t in, int64_t stride, int64_t first,
                   int64_t *lo, int64_t *hi)
{
    int64_t from = first < 0 ? (-first + stride - 1) / stride : 0;
    int64_t to = first < in ? (in - 1 - first) / stride + 1 : 0;

    *hi = to < n ? to : n;
    *hi = *hi < 0 ? 0 : *hi;
    *lo = from < *hi ? from : *hi;
}

/* One tap of a kernel over a row of windows. */
typedef struct tap {
    int64_t kd, kh, kw;
} tap;

/* First input element of a tap on axis i, for window `at`. */
static int64_t place(const tl_conv_geo *g, int i, int64_t at, int64_t k)
{
    return at * g->stride[i] - g->before[i] + k * g->dilation[i];
}

/* Offset of the input row under a tap for window row (od, oh); -1: padding. */
static int64_t input_row(const tl_conv_geo *g, tap t, int64_t od, int64_t oh)
{
    int64_t d = place(g, 0, od, t.kd), h = place(g, 1, oh, t.kh);

    return d < 0 || d >= g->in[0] || h < 0 || h >= g->in[1]
               ? -1
               : (d * g->in[1] + h) * g->in[2];
}

#define REAL float
#define NAME(fn) fn##_f32
#define TABLE TL_ISA(tl_conv_rows_f32)
#include "runtime/cpu/conv_rows.h"

#define REAL double
#define NAME(fn) fn##_f64
#define TABLE TL_ISA(tl_conv_rows_f64)
#include "runtime/cpu/conv_rows.h"
