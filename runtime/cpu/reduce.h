/* reduce.h - the axes of a reduction, and folding along its tree.
 *
 * A plan splits the axes into those that stay and those that are reduced,
 * each merged where neighbours continue each other.  The elements of one
 * result are numbered in row-major order of the reduced axes; README.md
 * defines the tree over them. */
#ifndef TL_CPU_REDUCE_H
#define TL_CPU_REDUCE_H

#include "runtime/cpu/fold.h"
#include "runtime/cpu/stage.h"
#include "runtime/cpu/tile_code.h"
#include "runtime/tensor/device.h"

enum {
    TL_READ_BYTES = 32768, /* what a reader holds */
    TL_READ_AHEAD = 16384  /* of which it looks ahead */
};

/* A task's view of elements that a tile program computes: those at lo .. hi
 * of its space, in the accumulator's type.  Reading others computes them, and
 * some more before `ahead` if they come next. */
typedef struct tl_reduce_reader {
    int64_t lo, hi, ahead;
    char window[TL_READ_BYTES] __attribute__((aligned(64)));
    tl_tile_runner runner;
} tl_reduce_reader;

typedef struct tl_axes {
    int rank;      /* at least 1 */
    int64_t count; /* product of sizes */
    int64_t size[TL_MAX_RANK], stride[TL_MAX_RANK];
} tl_axes;

typedef struct tl_reduce_plan {
    tl_axes stay, reduced;
    const char *data;
    const tl_tile *feed;      /* NULL: elements are data, else computed */
    tl_reduce_reader *reader; /* of the task, then */
    int64_t cost;             /* nanoseconds of an element, about */
    int from_width; /* bytes of an element of the input */
    tl_dtype acc;   /* dtype in which it is folded: f32, f64, i64 */
    int width;      /* bytes of it */
    tl_stage_fn *stage;
    bool converts;
    /* Results go in groups of `w` neighbours, over rows of them; w = 1: each
     * result by itself, along its elements. */
    int64_t w, groups; /* groups of one row of the innermost staying axis */
    int64_t row;       /* its size when w > 1, else 1 */
} tl_reduce_plan;

/* Count, mean and sum of squared deviations of w results. */
typedef struct tl_moments {
    int64_t count;
    void *mean, *m2; /* of the accumulator's type */
} tl_moments;

/* For a stub the plan has no data: `feed` computes it, or it is set later. */
void tl_reduce_plan_init(tl_reduce_plan *p, const tl_tensor *x,
                         const tl_tile *feed, uint16_t axes, tl_dtype acc);

/* Begin to read with `own`, a copy of the plan. */
void tl_reduce_reader_open(tl_reduce_reader *r, tl_reduce_plan *own);

/* The group's results are *at .. *at + w of all, in row-major order; w is
 * returned, and the offset of the first one's elements in the input. */
int64_t tl_reduce_group(const tl_reduce_plan *p, int64_t group, int64_t *at,
                        int64_t *offset);

/* Fold the elements [lo, hi) of w results whose first elements stand at
 * `offset`; lo is a multiple of TL_LEAF.  `params` are the results' own
 * (or NULL); the values go to `to`. */
void tl_reduce_fold(const tl_reduce_plan *p, tl_fold_kind kind,
                    tl_fold_map map, int64_t offset, int64_t w, int64_t lo,
                    int64_t hi, const void *params, void *to);

/* Their moments, in f32 or f64; of nothing count 0, and nothing is written. */
void tl_reduce_moments(const tl_reduce_plan *p, int64_t offset, int64_t w,
                       int64_t lo, int64_t hi, tl_moments *to);

/* Moments of two neighbouring ranges into those of the right one. */
void tl_moments_merge(tl_dtype acc, const tl_moments *left, tl_moments *right,
                      int64_t w);

/* The elements lo .. lo + n of a result by itself, or element `lo` of w
 * neighbours: as a row of the accumulator's type, in place or in `tile`. */
const void *tl_reduce_along(const tl_reduce_plan *p, int64_t offset,
                            int64_t lo, int64_t n, void *tile);
const void *tl_reduce_over(const tl_reduce_plan *p, int64_t offset, int64_t w,
                           int64_t lo, void *tile);

/* Dtype in which elements of `dtype` are folded. */
tl_dtype tl_reduce_acc(tl_op op, tl_dtype dtype);
tl_dtype tl_reduce_acc_avx2(tl_op op, tl_dtype dtype);

/* The kernel of RED row `op` on what `feed` computes, of the type of the stub
 * `x`; with NULL on the tensor `x`. */
typedef tl_status tl_reduce_fed_fn(tl_kernel_ctx *k, tl_op op, tl_tensor *x,
                                   const tl_tile *feed, tl_tensor *to,
                                   const tl_attrs *at);
tl_reduce_fed_fn tl_reduce_fed, tl_reduce_fed_avx2;

enum {
    TL_REDUCE_ROWS = 64,  /* rows that are reduced at once */
    TL_REDUCE_ROW = 65536 /* elements of one */
};

/* A few row-major rows. */
typedef struct tl_reduce_table {
    const void *data;
    tl_dtype dtype;
    int64_t rows, n; /* n > 0 */
} tl_reduce_table;

/* RED row `op` of each of them, as one of the kernel's tasks. */
typedef void tl_reduce_rows_fn(tl_op op, const tl_reduce_table *x,
                               double correction, void *to,
                               tl_dtype to_dtype);
tl_reduce_rows_fn tl_reduce_rows, tl_reduce_rows_avx2;

#endif
