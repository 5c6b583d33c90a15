/* lines.h - kernels that work on whole lines along one axis.
 *
 * Operands and results are [outer, n, inner] of one shape.  The function gets
 * one line at a time as contiguous rows of the type of the arithmetic (float
 * or double); the driver brings them together and rounds results once. */
#ifndef TL_CPU_LINES_H
#define TL_CPU_LINES_H

#include "runtime/cpu/kern.h"

enum { TL_LINE_OPERANDS = 3 };

/* in[i], out[i]: rows of n elements; `line` counts lines in row-major order
 * of [outer, inner].  A result row may be written before an operand row is
 * read to the end only if they are different rows. */
typedef void tl_line_fn(void *arg, int64_t line, int64_t n,
                        const void *const *in, void *const *out);

typedef struct tl_lines {
    tl_line_fn *f32, *f64;
    void *arg;
    int nin, nout;
    tl_tensor *const *in;
    tl_tensor *const *out; /* row-major */
    int axis;              /* of in[0] */
    int trailing;          /* > 0: the last so many axes are one line */
} tl_lines;

TL_MUST_USE tl_status tl_cpu_run_lines(tl_kernel_ctx *k, const tl_lines *l);

#endif
