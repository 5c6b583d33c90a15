/* map_job.h - elementwise work on tensors of any layout, in pieces.
 *
 * A job is a loop of map.h, its operands and a row-major result, of which it
 * takes piece after piece (map_space.h).  Strided and broadcast operands, f16
 * and bf16, conditions pass through a tile.  So each row needs one loop a
 * dtype, and bits do not depend on how elements are cut into pieces. */
#ifndef TL_CPU_MAP_JOB_H
#define TL_CPU_MAP_JOB_H

#include "runtime/cpu/map.h"
#include "runtime/cpu/map_space.h"
#include "runtime/tensor/device.h"

typedef struct tl_map_job {
    tl_map_loop *loop;
    const double *p;
    tl_map_operand in[TL_MAP_OPERANDS];
    char *to;
    int to_width;
    tl_stage_fn *unstage; /* NULL: the loop writes the result itself */
    int width;            /* of the compute type */
    tl_map_space space;
    int64_t chunk; /* elements of a task */
} tl_map_job;

/* Set up a job: loop, operands (NULL and stubs are not read), the result.
 * `compute` is the dtype of the loop's rows. */
void tl_map_job_init(tl_map_job *j, tl_map_loop *loop,
                     tl_tensor *const in[TL_MAP_OPERANDS], tl_tensor *to,
                     tl_dtype compute, const tl_attrs *at);

/* Let every piece pass through a tile. */
void tl_map_job_tile(tl_map_job *j);

/* Do it, in tasks when `ns` nanoseconds an element are worth it. */
void tl_map_job_run(tl_kernel_ctx *k, tl_map_job *j, double ns);

/* Index, in a tensor like `to`, of the first element of `t` (broadcast to it)
 * that is in lo <= v < above, or with `outside` of the first that is not; NaN
 * is outside.  -1: none.  Compared as doubles, to which ints round. */
int64_t tl_map_find(const tl_tensor *t, tl_tensor *to, double lo,
                    double above, bool outside);

#endif
