/* pool_rows.c - the loops of pooling over rows of windows; compiled twice
 * (isa.h).
 *
 * A row of windows takes one tap after the other, each over all windows that
 * have it in the input: that is a loop over elements `stride` apart.  Windows
 * that have not all the same taps (adaptive ones), and planes whose places do
 * not fit in 31 bits, are done one by one. */
#include <math.h>
#include <string.h>

#include "runtime/cpu/isa.h"
#include "runtime/cpu/pool.h"

/* Windows [*lo, *hi) along the last axis that have tap t in the input. */
static void inside(const tl_pool *p, int64_t t, int64_t *lo, int64_t *hi)
{
    int64_t first = t * p->dilation[2] - p->pad[2], s = p->stride[2];
    int64_t n = p->in[2];

    *lo = first < 0 ? (-first + s - 1) / s : 0;
    *hi = first < n ? (n - 1 - first) / s + 1 : 0;
    *hi = *hi < p->out[2] ? *hi : p->out[2];
    *lo = *lo < *hi ? *lo : *hi;
}

/* Rows of the input that a row of windows reads. */
typedef struct rows {
    tl_pool_span d, h;
} rows;

static rows rows_of(const tl_pool *p, int64_t row)
{
    return (rows){tl_pool_at(p, 0, row / p->out[1]),
                  tl_pool_at(p, 1, row % p->out[1])};
}

/* Place of the first element of the row that tap (td, th) reads. */
static int64_t row_start(const tl_pool *p, const rows *r, int64_t td,
                         int64_t th)
{
    int64_t d = r->d.first + td * p->dilation[0];
    int64_t h = r->h.first + th * p->dilation[1];

    return (d * p->in[1] + h) * p->in[2];
}

/* Taps [*lo, *hi) along the last axis that some window has in the input. */
static void some_inside(const tl_pool *p, int64_t *lo, int64_t *hi)
{
    *lo = tl_pool_at(p, 2, p->out[2] - 1).lo;
    *hi = tl_pool_at(p, 2, 0).hi;
}

/* What sums are divided by, for windows of a row, apart from row_count. */
static void divisors(const tl_pool *p, double *by)
{
    for (int64_t o = 0; o < p->out[2]; o++) {
        by[o] = p->divisor != 0 ? (double)p->divisor
                                : (double)tl_pool_at(p, 2, o).count;
    }
}

static double row_count(const tl_pool *p, const rows *r)
{
    return p->divisor != 0 ? 1 : (double)(r->d.count * r->h.count);
}

enum {
    SPAN = 256, /* neighbours that are summed in the type itself */
    LANES = 16
};

#ifdef TL_CPU_AVX2
#define VECTOR 32
#else
#define VECTOR 16
#endif

#define REAL float
#define NAME(fn) fn##_f32
#define TABLE TL_ISA(tl_pool_f32)
#include "runtime/cpu/pool_rows.h"

#define REAL double
#define NAME(fn) fn##_f64
#define TABLE TL_ISA(tl_pool_f64)
#include "runtime/cpu/pool_rows.h"
