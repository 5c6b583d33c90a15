/* device.h - a device: where kernels live.
 *
 * One table of kernels a device, indexed by operation; apply looks kernels up
 * here and nothing else does.
 *
 * Inputs come as they are (any strides; a kernel that needs row-major ones
 * says so in its row or copies).  MAP, CMP and RED kernels get inputs of the
 * row's compute dtype, of the shapes that the program gave: broadcasting is
 * theirs.  All results are allocated before the call (row major, right dtype
 * and shape).  A result of a MAP kernel may share its storage with one input
 * of equal dtype, shape and row-major layout (in place), and so may result k
 * of a KERN row with the k-th input of its set `in_place`; that input is then
 * overwritten only after everything that depends on data has been checked.
 * Other kernels are never called so.
 *
 * *Results whose size depends on data* (nonzero, unique, x[mask]): the shape
 * rule answers the size TL_SIZE_BY_DATA where only the data tell it (numbers
 * only; a fresh atom with symbols).  Such a result comes to the kernel as a
 * stub of the right dtype and rank, and the kernel gives it sizes and storage
 * by tl_tensor_realize(out[i], k->pool, size, k->diag). */
#ifndef TL_TENSOR_DEVICE_H
#define TL_TENSOR_DEVICE_H

#include "runtime/base/threads.h"
#include "runtime/mem/pool.h"
#include "runtime/op/op.h"
#include "runtime/tensor/tensor.h"

typedef struct tl_device tl_device;

/* Answer of a shape rule, as a number: the kernel will find the size. */
#define TL_SIZE_BY_DATA ((int64_t)-1)

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
 * broadcastable to the shape of `dx`, which is the broadcast shape.  `dx` may
 * share the storage of `g`. */
typedef tl_status tl_map_grad_fn(tl_kernel_ctx *k, tl_op op, int which,
                                 tl_tensor *const *in, int nin, tl_tensor *y,
                                 tl_tensor *g, tl_tensor *dx,
                                 const tl_attrs *at);

struct tl_device {
    const char *name; /* "cpu", "cuda:0" */
    tl_kernel_fn *kernel[TL_OP_COUNT];
    tl_map_grad_fn *map_grad;
    struct tl_conv_cache *_Atomic convs; /* the CPU's: runtime/cpu/conv.h */
};

#endif
