/* rowmath.h - arithmetic on one contiguous row, in float and in double.
 *
 * Sums run along the tree of fold.h: leaves of 256, joined like the digits of
 * a binary counter (README.md), so they have the bits of the row `sum`.
 * Compiled three times (isa.h). */
#ifndef TL_CPU_ROWMATH_H
#define TL_CPU_ROWMATH_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/cpu/isa.h"
#include "runtime/cpu/lines.h"

/* Element i of a row of doubles (`wide`) or of floats. */
static inline double tl_row_get(const void *row, bool wide, int64_t i)
{
    return wide ? ((const double *)row)[i] : (double)((const float *)row)[i];
}

static inline void tl_row_set(void *row, bool wide, int64_t i, double value)
{
    if (wide) {
        ((double *)row)[i] = value;
    } else {
        ((float *)row)[i] = (float)value;
    }
}

/* What cross entropy needs of a row. */
typedef struct tl_row_loss {
    double smoothing, weight_sum; /* over all classes */
    const void *weight;           /* of each class, or NULL: 1 */
    int64_t target;
} tl_row_loss;

/* Statistics and weights of a row: one number for all of it (step 0) or one
 * for each element (step 1), of the type of the arithmetic. */
typedef struct tl_row_stats {
    const void *mean, *rstd; /* mean NULL: 0 */
    const void *w, *b;       /* NULL: 1, 0 */
    const void *ga, *gb;     /* of affine_grad */
    int64_t step;
} tl_row_stats;

typedef struct tl_rowmath {
    /* line functions (lines.h) */
    tl_line_fn *softmax, *log_softmax;     /* x -> y */
    tl_line_fn *softmax_grad, *log_softmax_grad; /* y, g -> dx */

    double (*sum)(int64_t n, const void *x);
    /* log(sum(exp(x))) */
    double (*logsumexp)(int64_t n, const void *x);
    /* cost of a row whose logsumexp is `lse` */
    double (*loss)(int64_t n, const void *x, double lse,
                   const tl_row_loss *r);
    /* dx = scale * (A softmax(x) - q), 0 where scale is 0 */
    void (*loss_grad)(int64_t n, const void *x, double lse,
                      const tl_row_loss *r, double scale, void *dx);
    /* mean and M2, the sum of (x - mean)², of the row, by (count, mean, M2) */
    void (*mean_m2)(int64_t n, const void *x, double *mean, double *m2);
    /* mean and 1 / sqrt(variance + eps) */
    void (*moments)(int64_t n, const void *x, double eps, double *mean,
                    double *rstd);
    /* y = (x - mean) * rstd * w + b; w, b may be NULL */
    void (*normalise)(int64_t n, const void *x, double mean, double rstd,
                      const void *w, const void *b, void *y);
    /* gradient of that with respect to x */
    void (*normalise_grad)(int64_t n, const void *g, const void *x,
                           double mean, double rstd, const void *w,
                           void *dx);
    /* 1 / sqrt(mean(x x) + eps); y = x rstd w; dx = rstd (h - x^ mean(h x^))
     * with h = g w, x^ = x rstd */
    double (*rms)(int64_t n, const void *x, double eps);
    void (*scale)(int64_t n, const void *x, double rstd, const void *w,
                  void *y);
    void (*scale_grad)(int64_t n, const void *g, const void *x, double rstd,
                       const void *w, void *dx);

    /* Rows whose statistics and weights are numbers (step 0), or vectors
     * along the row (step 1); see tl_row_stats. */
    /* y = (x - mean) * rstd * w + b */
    void (*affine)(int64_t n, const void *x, const tl_row_stats *s, void *y);
    /* its gradient: dx = (g w - ga - gb x^) rstd */
    void (*affine_grad)(int64_t n, const void *g, const void *x,
                        const tl_row_stats *s, void *dx);
    /* sums[0], sums[1]: of g and of g x^ over the row; step 0 */
    void (*affine_sums)(int64_t n, const void *g, const void *x,
                        const tl_row_stats *s, double *sums);
    /* g[i] and g[i] x^[i] added to sums[i] and sums[n + i] */
    void (*affine_add)(int64_t n, const void *g, const void *x,
                       const tl_row_stats *s, double *sums);
} tl_rowmath;

extern const tl_rowmath tl_rowmath_f32, tl_rowmath_f64;
extern const tl_rowmath tl_rowmath_f32_avx2, tl_rowmath_f64_avx2;
extern const tl_rowmath tl_rowmath_f32_avx512, tl_rowmath_f64_avx512;

/* For the type of the arithmetic of `dtype`, on this CPU. */
const tl_rowmath *tl_rowmath_get(tl_dtype dtype);

#endif
