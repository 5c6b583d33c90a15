/* tile.h - the tile machine: several elementwise rows in one pass over
 * memory, with the eager kernels' own inner loops.
 *
 * A tile program is a list of steps over one iteration space (the broadcast
 * shape of a group).  It runs tile by tile: each step's loop (map.h) reads
 * inputs or the results of earlier steps of the same tile, and writes a tile
 * buffer that stays in L1, or a result tensor.  Every step is the loop that
 * the eager kernel of its row runs, on the same numbers: the bits are those
 * of the rows run one after the other.  A result of a 16-bit dtype is rounded
 * where the eager kernel rounds it. */
#ifndef TL_CPU_TILE_H
#define TL_CPU_TILE_H

#include "runtime/op/op.h"
#include "runtime/tensor/device.h"

enum {
    TL_TILE_MAX_STEPS = 64,
    TL_TILE_MAX_OPERANDS = 32, /* inputs, and results */
    TL_TILE_MAX_TEMPS = 16     /* results of steps alive at one time: with
                                  more, pieces get too short to pay */
};

typedef struct tl_tile_step {
    uint16_t op;     /* MAP or CMP row, or TL_OP_cast; see also "rows" */
    int8_t which;    /* -1: its value; else its gradient by input `which`,
                        operands: the row's inputs, then y and g, where each
                        that the formula does not read may be -1 */
    uint8_t compute; /* tl_dtype in which the loop computes; casts: any */
    uint8_t dtype;   /* of the result as a tensor would have it */
    uint8_t nin;     /* operands, y and g included; they are converted to
                        `compute` as the kernel does */
    int16_t in[5];   /* >= 0: input tensor; < -1: result of step -2 - in;
                        -1: none */
    int16_t to;      /* >= 0: it is also result tensor `to`; -1: none */
    const double *p; /* attributes f[6], copied; NULL: none */
} tl_tile_step;

typedef struct tl_tile tl_tile; /* a checked program with its buffers laid
                                   out */

/* Which rows and dtypes it can run: those that have a loop. */
bool tl_tile_takes(tl_op op, int which, tl_dtype compute);

/* Make a program ready: `shape` of `rank` sizes is the iteration space; in[]
 * broadcast to it (any strides), to[] are row-major of that shape.  The
 * tensors are borrowed for the life of the program, which is replayed with
 * whatever their storage holds then.
 *
 * A result may share its storage with an input of equal dtype that is
 * row-major and of the space's shape, if it does so now; no other input may
 * then share it.  A step that no result needs is left out, but what its row
 * refuses is refused.  At most TL_TILE_MAX_STEPS and _OPERANDS.  E0607. */
TL_MUST_USE tl_status tl_tile_new(tl_tile **out, int rank,
                                  const int64_t *shape,
                                  const tl_tile_step *steps, int nsteps,
                                  tl_tensor *const *in, int nin,
                                  tl_tensor *const *to, int nto,
                                  tl_diag *diag);
void tl_tile_free(tl_tile *t); /* NULL is allowed */

/* Replay it, in tasks where the work is worth it; one thread at a time.
 * E0401, E0416, E0319 as the rows' kernels report them, of the first step that
 * fails, with the place in the row's own shape and before any result is
 * written.  In an empty space nothing runs and nothing is refused. */
TL_MUST_USE tl_status tl_tile_run(const tl_tile *t, tl_kernel_ctx *k);

/* ---- reductions ------------------------------------------------------------
 *
 * A RED row on the result of the program's last step, which is never in
 * memory as a whole: the tree of reduce.h reads it leaf by leaf, and a leaf
 * is computed when it is read.  The bits are those of the rows one by one. */

typedef struct tl_tile_reduce tl_tile_reduce;

/* `op` over at->axes of `shape`, which is the logical shape of what the last
 * step gives; `result` is the row's.  to[] are further results of steps, of
 * the shape of the space, as of tl_tile_new (a gradient and its sum over
 * rows in one pass); they may share storage with inputs only where each
 * element is read once: sum, prod, mean, max, min, any, all. */
TL_MUST_USE tl_status tl_tile_reduce_new(
    tl_tile_reduce **out, tl_op op, const tl_attrs *at, int rank,
    const int64_t *shape, const tl_tile_step *steps, int nsteps,
    tl_tensor *const *in, int nin, tl_tensor *const *to, int nto,
    tl_tensor *result, tl_diag *diag);
void tl_tile_reduce_free(tl_tile_reduce *t); /* NULL is allowed */

/* Replay it.  E0401 and the like as tl_tile_run; W0403; E0607, as the row
 * takes scratch from the pool. */
TL_MUST_USE tl_status tl_tile_reduce_run(const tl_tile_reduce *t,
                                         tl_kernel_ctx *k);

/* ---- rows ------------------------------------------------------------------
 *
 * Programs over whole rows, the last `trailing` axes of the space: between
 * elementwise steps they reduce rows and compute rows as a whole, all while a
 * row is in a cache.  A value has an element for each of the space, or one a
 * row; tensors of the latter kind have sizes 1 along the row.  A result of
 * such a value has as many elements as there are rows, in any shape, or the
 * space's shape, and is spread; so may one of numbers (operands of one
 * element) alone.
 *
 *   RED row: in[0] reduced over the row, to one element; p is f.
 *   softmax, log_softmax (x), softmax_grad, log_softmax_grad (y, g): along
 *     the row.
 *   layer_norm (x, weight, bias; -1 where absent; p[0] is eps) over all of
 *     the row.  Its mean and rstd are steps of their own with `which` 1 and 2
 *     and the first step as in[0].
 *   layer_norm_grad (g, x, mean, rstd, weight or -1).
 *   cross_entropy (logits, targets, weight or -1) and its gradient (g, logits,
 *     targets, lse, weight or -1), in one pass if both are there; p is
 *     smoothing, ignore_index, tl_loss_reduce, flag.  Targets and weight are
 *     inputs.  A loss that is not TL_LOSS_NONE is a result of one element and
 *     no operand; lse is a step with `which` 1.
 *
 * `dtype` is that of the result, `compute` is not read.  Steps that look at
 * their data (E0401 and the like) are not taken. */

/* Can `op` be such a step on rows of n elements? */
bool tl_tile_rows_takes(tl_op op, int64_t n);

/* As tl_tile_new; run and free it as its programs.  E0607 of a run too, where
 * rows are so long that they need scratch of the pool; E0407. */
TL_MUST_USE tl_status tl_tile_rows_new(
    tl_tile **out, int rank, const int64_t *shape, int trailing,
    const tl_tile_step *steps, int nsteps, tl_tensor *const *in, int nin,
    tl_tensor *const *to, int nto, tl_diag *diag);

#endif
