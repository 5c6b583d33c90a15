/* conv.h - convolutions on the CPU: what kernels and backends share.
 *
 * Every convolution is one over three spatial axes; missing ones have size 1
 * in front.  Operands are row-major:
 *   x [batch, groups * c, in...]    y [batch, groups * o, out...]
 *   w [groups * o, c, k...]
 * A backend computes one of the three from the two others. */
#ifndef TL_CPU_CONV_H
#define TL_CPU_CONV_H

#include <stdbool.h>

#include "runtime/cpu/kern.h"

typedef enum tl_conv_kind {
    TL_CONV_FORWARD, /* y from x and w */
    TL_CONV_DATA,    /* x from y and w: its gradient */
    TL_CONV_WEIGHT   /* w from x and y: its gradient */
} tl_conv_kind;

typedef struct tl_conv_geo {
    int axes; /* spatial axes of the program: 1 .. 3 */
    int64_t batch, groups, c, o; /* channels of one group */
    int64_t in[3], out[3], k[3], stride[3], before[3], dilation[3];
} tl_conv_geo;

/* From the tensors in their roles, whose shapes the rule has accepted. */
void tl_conv_geo_set(tl_conv_geo *g, const tl_tensor *x, const tl_tensor *w,
                     const tl_tensor *y, const tl_attrs *at);

static inline int64_t tl_conv_volume(const int64_t *size)
{
    return size[0] * size[1] * size[2];
}

/* One convolution of f32 or f64; the result is overwritten. */
typedef struct tl_conv {
    tl_conv_kind kind;
    tl_conv_geo geo;
    tl_dtype dtype;
    void *x, *w, *y;
} tl_conv;

/* ---- loops over rows of elements, compiled twice (conv_rows.c) ---------- */

/* A part of the patches of one image: channels [c0, c1) of the group whose
 * channel 0 is at `x`, windows [p0, p1) of tl_conv_volume(out).  A patch
 * matrix has a row for each (channel, tap) and a column for each window. */
typedef struct tl_conv_patch {
    const tl_conv_geo *geo;
    int64_t c0, c1, p0, p1;
} tl_conv_patch;

typedef struct tl_conv_rows {
    /* the patch matrix of x into `col`, row after row */
    void (*gather)(const tl_conv_patch *p, const void *x, void *col);
    /* x += the elements of `col` at their places, tap after tap */
    void (*scatter)(const tl_conv_patch *p, const void *col, void *x);
    /* one channel of x with one kernel: taps in order, without patches */
    void (*forward)(const tl_conv_geo *g, const void *x, const void *w,
                    void *y);
    void (*data)(const tl_conv_geo *g, const void *y, const void *w,
                 void *x);
    /* w += ... */
    void (*weight)(const tl_conv_geo *g, const void *x, const void *y,
                   void *w);
    void (*add)(int64_t n, const void *from, void *to);
} tl_conv_rows;

extern const tl_conv_rows tl_conv_rows_f32, tl_conv_rows_f64;
extern const tl_conv_rows tl_conv_rows_f32_avx2, tl_conv_rows_f64_avx2;

/* Those of f32 or f64, for this CPU. */
const tl_conv_rows *tl_conv_rows_of(tl_dtype dtype);

/* ---- backends ----------------------------------------------------------- */

/* Release what a device keeps of convolutions; NULL is allowed. */
void tl_conv_cache_free(struct tl_conv_cache *cache);

#ifdef HAVE_ONEDNN
/* By oneDNN, f32 only; *done stays false if it has nothing good for this
 * shape.  Bits depend on shape and operands alone. */
TL_MUST_USE tl_status tl_conv_onednn(tl_kernel_ctx *k, const tl_conv *c,
                                     bool *done);
#endif

/* Patches and our own matrix products; depthwise ones directly.  Bits depend
 * on nothing but the operands. */
TL_MUST_USE tl_status tl_conv_own(tl_kernel_ctx *k, const tl_conv *c);

#endif
