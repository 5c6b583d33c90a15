/* resize.h - interpolation on the CPU: the taps of each axis, and loops over
 * one plane.  Missing axes have size 1 in front. */
#ifndef TL_CPU_RESIZE_H
#define TL_CPU_RESIZE_H

#include <stdbool.h>
#include <stdint.h>

/* Element o of an axis is the sum of weight[t][o] * x[from[t][o]]. */
typedef struct tl_resize_axis {
    int64_t in, out;
    int taps; /* 1, 2 or 4 */
    int64_t *from[4];
    void *weight[4]; /* of the type of the numbers */
} tl_resize_axis;

typedef struct tl_resize {
    tl_resize_axis axis[3];
} tl_resize;

/* `row`: scratch of axis[2].in numbers.  Compiled twice (resize_rows.c). */
typedef struct tl_resize_loops {
    void (*forward)(const tl_resize *r, const void *x, void *y, void *row);
    void (*backward)(const tl_resize *r, const void *g, void *dx, void *row);
} tl_resize_loops;

extern const tl_resize_loops tl_resize_f32, tl_resize_f64;
#if defined(__x86_64__)
extern const tl_resize_loops tl_resize_f32_avx2, tl_resize_f64_avx2;
#endif

#endif
