/* attention.h - arithmetic of attention on one tile of scores, in float and
 * in double.
 *
 * A tile has the scores of some queries against at most 128 keys, row-major.
 * Sums of a row run along the tree of fold.h; a row of 128 is one leaf.
 * Compiled twice (isa.h). */
#ifndef TL_CPU_ATTENTION_H
#define TL_CPU_ATTENTION_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/base/rng.h"
#include "runtime/cpu/isa.h"
#include "runtime/op/dtype.h"

enum {
    TL_ATTN_ROWS = 64, /* queries of a tile: 32 KiB of float scores */
    TL_ATTN_COLS = 128 /* keys; at most TL_LEAF */
};

/* What a tile is made with, besides its scores. */
typedef struct tl_attn_tile {
    int64_t rows, cols; /* scores[rows][cols] */
    int64_t seen;       /* keys that row 0 sees, each further row one more;
                           may be <= 0 or >= cols */
    double scale;
    /* The mask at the first score, or NULL; strides in elements.  `mask`:
     * bool, `bias`: of the type of the arithmetic, added. */
    const unsigned char *mask;
    const void *bias;
    int64_t mask_row, mask_col;
    /* Dropout: the draw, the number of the first score in it and how many
     * numbers a row has.  p is 0 where there is none. */
    double p;
    const tl_rng_lane *lane;
    uint64_t draw, draw_row;
} tl_attn_tile;

/* Pointers are to the type of the arithmetic. */
typedef struct tl_attn_math {
    /* Scores to exp(x - m), dropped out.  max[i] and sum[i] of the rows so
     * far go on (-inf and 0 at first); what was summed before is to be
     * multiplied by keep[i]. */
    void (*forward)(const tl_attn_tile *t, void *scores, void *max, void *sum,
                    void *keep);
    /* Scores to probabilities dropped out; gradients of these to gradients of
     * q k', by the rows' lse and delta; both 0 where nothing is seen.
     * `factor` multiplies the latter. */
    void (*backward)(const tl_attn_tile *t, const void *lse,
                     const void *delta, double factor, void *scores,
                     void *grad);
    /* to = to * keep[row] + part, [rows][cols]; keep NULL: 1 */
    void (*join)(int64_t rows, int64_t cols, void *to, int64_t ld,
                 const void *part, const void *keep);
    /* rows of `from` / sum, 0 where sum is; lse = max + log(sum).  False if
     * an element is not finite. */
    bool (*finish)(int64_t rows, int64_t cols, const void *from,
                   const void *max, const void *sum, void *to, void *lse);
    /* sum of a * b of each row of two matrices */
    void (*dots)(int64_t rows, int64_t cols, const void *a, int64_t lda,
                 const void *b, int64_t ldb, void *to);
    bool (*finite)(int64_t n, const void *x);
} tl_attn_math;

extern const tl_attn_math tl_attn_f32, tl_attn_f64;
extern const tl_attn_math tl_attn_f32_avx2, tl_attn_f64_avx2;
extern const tl_attn_math tl_attn_f32_avx512, tl_attn_f64_avx512;

#endif
