/* linalg_lapack.c - factorisations by LAPACK, where it is built in.
 *
 * LAPACK's matrices are column-major: a row-major one is its transpose there.
 * Triangular systems are our own in every build. */
#include "config.h"

#include "runtime/cpu/linalg.h"

#ifdef HAVE_LAPACK

#include <string.h>

/* Of both types: the routines that are called, as Fortran names them. */
#define ROUTINES(p, real)                                                    \
    void p##potrf_(const char *half, const int *n, real *a, const int *lda,  \
                   int *info);                                               \
    void p##getrf_(const int *m, const int *n, real *a, const int *lda,      \
                   int *pivots, int *info);                                  \
    void p##getrs_(const char *form, const int *n, const int *k,             \
                   const real *a, const int *lda, const int *pivots,         \
                   real *b, const int *ldb, int *info);                      \
    void p##geqrf_(const int *m, const int *n, real *a, const int *lda,      \
                   real *tau, real *work, const int *size, int *info);       \
    void p##orgqr_(const int *m, const int *n, const int *k, real *a,        \
                   const int *lda, const real *tau, real *work,              \
                   const int *size, int *info);
ROUTINES(s, float)
ROUTINES(d, double)

#define REAL float
#define NAME(fn) fn##_f32
#define FORTRAN(fn) s##fn##_
#define TABLE tl_lapack_f32
#include "runtime/cpu/linalg_lapack.h"

#define REAL double
#define NAME(fn) fn##_f64
#define FORTRAN(fn) d##fn##_
#define TABLE tl_lapack_f64
#include "runtime/cpu/linalg_lapack.h"

#endif
