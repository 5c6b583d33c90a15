/* device.h - a device: where kernels live.
 *
 * One table of kernels a device, indexed by operation; apply looks kernels up
 * here and nothing else does.  All results are allocated before the call (row
 * major, right dtype and shape).  A result may be one of the inputs when
 * apply gave it away: MAP kernels must allow out == in of equal dtype and
 * layout; other kernels are never called so. */
#ifndef TL_TENSOR_DEVICE_H
#define TL_TENSOR_DEVICE_H

#include "runtime/base/threads.h"
#include "runtime/mem/pool.h"
#include "runtime/op/op.h"
#include "runtime/tensor/tensor.h"

typedef struct tl_device tl_device;

/* What a kernel needs besides its operands. */
typedef struct tl_kernel_ctx {
    tl_device *device;
    tl_threads *threads;
    tl_pool *pool; /* scratch */
    tl_diag *diag;
    bool deterministic; /* blocks independent of the number of threads */
} tl_kernel_ctx;

/* Run `op`.  Reports what depends on data (an index out of range). */
typedef tl_status tl_kernel_fn(tl_kernel_ctx *k, tl_op op,
                               tl_tensor *const *in, int nin,
                               tl_tensor *const *out, int nout,
                               const tl_attrs *at);

/* Fused gradient of a MAP row with respect to input `which`: dx from the
 * upstream gradient g, the inputs and the result y (those that the formula
 * does not read may be stubs or NULL), all of the row's compute dtype and
 * broadcastable to the shape of `dx`, which is the broadcast shape. */
typedef tl_status tl_map_grad_fn(tl_kernel_ctx *k, tl_op op, int which,
                                 tl_tensor *const *in, int nin, tl_tensor *y,
                                 tl_tensor *g, tl_tensor *dx,
                                 const tl_attrs *at);

struct tl_device {
    const char *name; /* "cpu", "cuda:0" */
    tl_kernel_fn *kernel[TL_OP_COUNT];
    tl_map_grad_fn *map_grad;
};

#endif
