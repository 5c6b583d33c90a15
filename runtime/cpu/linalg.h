/* linalg.h - dense linear algebra on the CPU: one matrix at a time, row-major.
 *
 * The loops are our own (linalg_rows.h, compiled twice), or LAPACK's where it
 * is built in (linalg_lapack.c); both have the same contract. */
#ifndef TL_CPU_LINALG_H
#define TL_CPU_LINALG_H

#include <stdbool.h>
#include <stdint.h>

typedef struct tl_linalg {
    /* `work` is scratch of tl_linalg_work numbers. */
    /* a = l l', in place; reads the lower half, zeroes the upper one.  0, or
     * the first leading minor, from 1, that is not positive. */
    int64_t (*cholesky)(int64_t n, void *a);
    /* x = a^-1 x for k columns; a is overwritten.  0, or the first pivot,
     * from 1, that is 0. */
    int64_t (*solve)(int64_t n, int64_t k, void *a, void *x, void *work);
    /* x = a^-1 x for triangular a, or its transpose */
    void (*tri_solve)(int64_t n, int64_t k, const void *a, bool upper,
                      bool transposed, void *x);
    /* a[m, n] = q[m, k] r[k, n], k = min(m, n); a is overwritten. */
    void (*qr)(int64_t m, int64_t n, void *a, void *q, void *r, void *work);
} tl_linalg;

/* Numbers of scratch, for a[m, n] and k right sides or min(m, n). */
static inline int64_t tl_linalg_work(int64_t m, int64_t n, int64_t k)
{
    return m * n + n * k + m + 2 * n + k;
}

extern const tl_linalg tl_linalg_f32, tl_linalg_f64;
#if defined(__x86_64__)
extern const tl_linalg tl_linalg_f32_avx2, tl_linalg_f64_avx2;
#endif
extern const tl_linalg tl_lapack_f32, tl_lapack_f64; /* HAVE_LAPACK only;
                                                        no tri_solve */

#endif
