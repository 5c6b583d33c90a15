/* map_job.h - elementwise work on tensors of any layout, in pieces.
 *
 * A job is a loop of map.h, its operands and a row-major result.  Axes that
 * continue each other in every operand are merged; the elements are taken in
 * pieces of at most a tile.  The loop gets a pointer into an operand where
 * its elements lie as those of the result do, else the piece is brought into
 * a tile first (stage.h): strided and broadcast operands, f16 and bf16,
 * conditions.  So each row needs one loop a dtype, and bits do not depend on
 * how elements are cut into pieces. */
#ifndef TL_CPU_MAP_JOB_H
#define TL_CPU_MAP_JOB_H

#include "runtime/cpu/map.h"
#include "runtime/cpu/stage.h"
#include "runtime/tensor/device.h"

typedef enum tl_map_layout {
    TL_LAYOUT_DIRECT,   /* as the result */
    TL_LAYOUT_SCALAR,   /* one element for all */
    TL_LAYOUT_PERIODIC, /* every row the same, and short */
    TL_LAYOUT_NESTED    /* strides */
} tl_map_layout;

typedef struct tl_map_operand {
    const char *data; /* NULL: not read */
    tl_map_layout layout;
    bool converts; /* its dtype is not the loop's */
    int width;     /* bytes of an element */
    tl_stage_fn *stage;
    int64_t stride[TL_MAX_RANK]; /* of the merged axes, in elements */
} tl_map_operand;

typedef struct tl_map_job {
    tl_map_loop *loop;
    const double *p;
    tl_map_operand in[TL_MAP_OPERANDS];
    char *to;
    int to_width;
    tl_stage_fn *unstage; /* NULL: the loop writes the result itself */
    int width;            /* of the compute type */
    bool nested;          /* some operand is */
    int64_t n, longest;   /* elements, and those of a piece */
    int64_t chunk;        /* those of a task */
    int64_t period;       /* pieces begin at multiples of it */
    int rank;             /* of the merged axes; at least 1 */
    int64_t size[TL_MAX_RANK];
} tl_map_job;

/* Set up a job: loop, operands (NULL and stubs are not read), the result.
 * `compute` is the dtype of the loop's rows. */
void tl_map_job_init(tl_map_job *j, tl_map_loop *loop,
                     tl_tensor *const in[TL_MAP_OPERANDS], tl_tensor *to,
                     tl_dtype compute, const tl_attrs *at);

/* Do it, in tasks when `ns` nanoseconds an element are worth it. */
void tl_map_job_run(tl_kernel_ctx *k, tl_map_job *j, double ns);

/* Index, in a tensor like `to`, of the first element of `t` (broadcast to it)
 * that is in lo <= v < above, or with `outside` of the first that is not; NaN
 * is outside.  -1: none.  Compared as doubles, to which ints round. */
int64_t tl_map_find(const tl_tensor *t, tl_tensor *to, double lo,
                    double above, bool outside);

#endif
