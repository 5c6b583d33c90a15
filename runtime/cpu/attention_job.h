/* attention_job.h - what the kernels of attention share: operands, a worker's
 * room, products, and the tiles of a head.
 *
 * Products are calls of the backend of matrix products in the calling thread,
 * at most 128 wide.  A call multiplies what is not seen by 0, which gives nan
 * where that is not finite.  So a task whose results are not finite runs once
 * more with `careful` products: these multiply without the elements that are
 * not finite and then add them where the factor is not 0. */
#ifndef TL_CPU_ATTENTION_JOB_H
#define TL_CPU_ATTENTION_JOB_H

#include <stdatomic.h>

#include "runtime/cpu/attention.h"
#include "runtime/cpu/gemm.h"
#include "runtime/cpu/kern.h"
#include "runtime/op/attention.h"

/* Matrices [n][width] with any leading axes. */
typedef struct tl_attn_stack {
    const char *data;
    int lead;
    int64_t size[TL_MAX_RANK], stride[TL_MAX_RANK];
    int64_t ld;
    tl_storage *copy; /* owned; NULL: the tensor's own elements */
} tl_attn_stack;

typedef struct tl_attn {
    tl_kernel_ctx *k;
    const tl_attn_math *math;
    const tl_gemm_backend *backend; /* NULL: plain */
    tl_dtype dtype;
    int64_t width;          /* bytes of an element */
    int64_t keys_of, heads; /* key heads in all; query heads of each */
    int64_t T, S, E, D;
    double scale;
    bool causal;
    double p;
    tl_rng_lane lane;

    tl_attn_stack q, key, v, g, y;
    const void *lse; /* row-major; of forward the result */
    tl_storage *lse_copy;

    const tl_tensor *mask; /* or NULL */
    const char *mask_data;
    tl_storage *mask_copy;
    int mask_rank; /* of the scores */
    int64_t scores[TL_MAX_RANK], mask_stride[TL_MAX_RANK];

    void *out[3];        /* results, row-major */
    tl_storage *wide[3]; /* those that are rounded at the end */
    tl_storage *delta, *part, *room;
    int64_t ranges, range; /* of keys; keys of one */
    tl_task_fn *unit;      /* what tl_attn_run runs, and how often */
    int64_t units, units_a_task;
    size_t room_each; /* bytes of a worker */
    _Atomic bool failed;
} tl_attn;

typedef struct tl_attn_worker {
    tl_attn *a;
    bool careful;
    char *scores, *grad;      /* [ROWS][COLS] */
    char *part;               /* a product */
    char *sum;                /* [ROWS][D] */
    char *max, *total, *keep; /* [ROWS] */
    char *cleaned;            /* an operand of a careful product */
    void *gemm;
} tl_attn_worker;

/* The scores of some queries and keys of one query head. */
typedef struct tl_attn_place {
    int64_t head, t, s, rows, cols;
    int64_t q, key, v, g; /* where the head's matrices start */
} tl_attn_place;

/* Counted in integers: what has no elements may lie at NULL. */
static inline char *tl_attn_at(const tl_attn *a, const void *base,
                               int64_t elements)
{
    return (char *)((uintptr_t)base + (uintptr_t)(elements * a->width));
}

static inline int64_t tl_attn_least(int64_t x, int64_t y)
{
    return x < y ? x : y;
}

static inline int64_t tl_attn_most(int64_t x, int64_t y)
{
    return x > y ? x : y;
}

/* How many keys query t sees. */
static inline int64_t tl_attn_seen(const tl_attn *a, int64_t t)
{
    return a->causal
               ? tl_attn_least(tl_attn_most(t + a->S - a->T + 1, 0), a->S)
               : a->S;
}

/* Row-major elements of `t` in `dtype`, the type of the arithmetic. */
TL_MUST_USE tl_status tl_attn_copy(tl_kernel_ctx *k, const tl_tensor *t,
                                   tl_dtype dtype, tl_storage **out);

/* The matrices of `t` as they lie, or a copy. */
TL_MUST_USE tl_status tl_attn_set_stack(tl_kernel_ctx *k, const tl_tensor *t,
                                        tl_dtype dtype, tl_attn_stack *s);

/* Place of matrix `index`, counted in row-major order of the leading axes. */
int64_t tl_attn_stack_at(const tl_attn_stack *s, int64_t index);

/* Sizes and operands, from q, k, v and the mask (or NULL), into zeroed
 * memory; E0413 for dropout outside 0..1. */
TL_MUST_USE tl_status tl_attn_init(tl_attn *a, tl_kernel_ctx *k,
                                   tl_tensor *const *qkv,
                                   const tl_tensor *mask,
                                   const tl_attrs *attrs);
void tl_attn_fini(tl_attn *a);

/* Where result i goes: its tensor, or room for it in a wider type, which
 * tl_attn_round rounds at the end. */
TL_MUST_USE tl_status tl_attn_set_result(tl_attn *a, int i,
                                         const tl_tensor *t);
void tl_attn_round(tl_attn *a, int i, tl_tensor *t);

/* Room of all workers; that of one. */
TL_MUST_USE tl_status tl_attn_make_room(tl_attn *a);
tl_attn_worker tl_attn_worker_of(tl_attn *a, int number);

/* fn(a, unit, worker) for each of `units` that cost about `cost` nanoseconds
 * each, several a task where they are small. */
void tl_attn_run(tl_attn *a, int64_t units, int64_t cost, tl_task_fn *fn);

/* Cost of `rows` x `cols` scores, forward. */
int64_t tl_attn_cost(const tl_attn *a, int64_t rows, int64_t cols);

/* Did a library run out of memory in a task?  E0607. */
TL_MUST_USE tl_status tl_attn_ran(const tl_attn *a);

void tl_attn_set(const tl_attn *a, void *base, int64_t at, double value);

/* C = A B; `careful`: as the file's head says, if the task is. */
void tl_attn_product(tl_attn_worker *w, tl_gemm g, bool careful);

/* Query head `head`, counted over all; its tile of scores as softmax takes
 * it; scores = q k' of a tile. */
tl_attn_place tl_attn_place_of(const tl_attn *a, int64_t head);
tl_attn_tile tl_attn_tile_of(const tl_attn *a, const tl_attn_place *p);
void tl_attn_scores(tl_attn_worker *w, const tl_attn_place *p);

#endif
