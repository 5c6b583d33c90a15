/* fold.h - the loops of reductions: the leaf of the tree, in three dtypes.
 *
 * README.md defines the tree.  A leaf is 256 consecutive elements; element i
 * goes to lane i % 16; lanes join pairwise (j with j + 8, then 4, 2, 1).  A
 * leaf is folded along a row (one result), or over rows for `w` neighbouring
 * results at once; both give the same bits. */
#ifndef TL_CPU_FOLD_H
#define TL_CPU_FOLD_H

#include <stdint.h>

#include "runtime/cpu/isa.h"
#include "runtime/op/dtype.h"

enum {
    TL_LEAF = 256, /* elements */
    TL_LANES = 16,
    TL_QUAD = 4 * TL_LEAF, /* a complete subtree of four leaves */
    TL_FOLD_BYTES = 4096 /* of a row of neighbouring results */
};

typedef enum tl_fold_kind {
    TL_FOLD_SUM,
    TL_FOLD_PROD,
    TL_FOLD_MAX, /* NaN wins */
    TL_FOLD_MIN,
    TL_FOLD_KINDS
} tl_fold_kind;

/* What is folded, of element x and the result's parameter s. */
typedef enum tl_fold_map {
    TL_FOLD_X,
    TL_FOLD_NONZERO,      /* x != 0 */
    TL_FOLD_SQUARE,       /* x * x */
    TL_FOLD_ABS,          /* |x|, floats only */
    TL_FOLD_SCALED,       /* (x * s)^2 */
    TL_FOLD_MINUS,        /* x - s */
    TL_FOLD_MINUS_SQUARE, /* (x - s)^2 */
    TL_FOLD_EXP_MINUS     /* exp(x - s), where s is not finite exp(x) */
} tl_fold_map;

/* Arrays are of the accumulator's C type: float, double or int64_t. */
typedef struct tl_fold {
    /* *to = fold of x[0 .. n), n <= TL_LEAF */
    void (*leaf)(const void *x, int64_t n, void *to);
    /* *to = fold of x[0 .. TL_QUAD): four leaves, joined as the tree does */
    void (*quad)(const void *x, void *to);
    /* lanes[TL_LANES][w]: all the identity */
    void (*clear)(void *lanes, int64_t w);
    /* lane[c] and x[c], for c < w */
    void (*row)(void *lane, const void *x, int64_t w);
    /* to[c] = the lanes of c joined */
    void (*join)(void *lanes, int64_t w, void *to);
    /* right[c] = left[c] and right[c] */
    void (*merge)(const void *left, void *right, int64_t w);
} tl_fold;

/* to[i] = map(x[i], s[i * step]); step is 0 or 1; `to` may be x. */
typedef void tl_fold_map_fn(int64_t n, const void *x, const void *s,
                            int64_t step, void *to);

/* acc: TL_f32, TL_f64 or TL_i64. */
const tl_fold *tl_fold_get(tl_dtype acc, tl_fold_kind kind);
const tl_fold *tl_fold_get_avx2(tl_dtype acc, tl_fold_kind kind);
const tl_fold *tl_fold_get_avx512(tl_dtype acc, tl_fold_kind kind);

/* NULL for TL_FOLD_X. */
tl_fold_map_fn *tl_fold_map_get(tl_dtype acc, tl_fold_map map);
tl_fold_map_fn *tl_fold_map_get_avx2(tl_dtype acc, tl_fold_map map);
tl_fold_map_fn *tl_fold_map_get_avx512(tl_dtype acc, tl_fold_map map);

/* The same for this CPU, in code that is compiled twice. */
static inline const tl_fold *tl_fold_best(tl_dtype acc, tl_fold_kind kind)
{
#ifdef TL_CPU_AVX2
    if (tl_cpu_has_avx512()) {
        return tl_fold_get_avx512(acc, kind);
    }
#endif
    return tl_fold_get(acc, kind);
}

static inline tl_fold_map_fn *tl_fold_map_best(tl_dtype acc, tl_fold_map map)
{
#ifdef TL_CPU_AVX2
    if (tl_cpu_has_avx512()) {
        return tl_fold_map_get_avx512(acc, map);
    }
#endif
    return tl_fold_map_get(acc, map);
}

#endif
