/* gemm.h - one block of a matrix product: what the backends implement.
 *
 * A block is computed by one thread in one call over all of K, without bias:
 * research/contract.md has the rule and why.  C = A B, row-major, with leading
 * dimensions in elements; `ta`: A is stored as [k][m], `tb`: B as [n][k]. */
#ifndef TL_CPU_GEMM_H
#define TL_CPU_GEMM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/op/dtype.h"

typedef struct tl_gemm {
    bool ta, tb;
    int64_t m, n, k;
    const void *a, *b;
    void *c;
    int64_t lda, ldb, ldc;
    void *scratch; /* of this thread: what `scratch` of the backend says */
} tl_gemm;

/* False: the library ran out of memory. */
typedef bool tl_gemm_fn(const tl_gemm *g);

typedef struct tl_gemm_backend {
    const char *name;
    tl_gemm_fn *run;       /* f32 */
    size_t scratch;        /* bytes a thread needs */
    int64_t rows, columns; /* largest block: m0 x n0 of the rule */
} tl_gemm_backend;

/* The plain loops, for every dtype but f16 and bf16: the oracle.  Sums run
 * over k in order, without fused multiply-add; integers wrap; the elements of
 * C are of dtype `c` (i32 for i8). */
void tl_gemm_plain(tl_dtype dtype, const tl_gemm *g);

#ifdef TL_HAVE_AVX2_KERNELS
/* 6 x 16 blocks of fused multiply-add: each element is the chain of its fma
 * over k in order, whatever the block, so its bits depend on A and B alone. */
bool tl_gemm_own_f32(const tl_gemm *g);
bool tl_gemm_own_f64(const tl_gemm *g);
size_t tl_gemm_own_scratch(void);
#endif

#ifdef HAVE_ONEDNN
bool tl_gemm_onednn(const tl_gemm *g);
#endif

/* The cut of a product into blocks (contract.md, section 2). */
typedef struct tl_blocks {
    int64_t rows, columns; /* of a block */
    int64_t tm, tn;        /* their number */
} tl_blocks;

tl_blocks tl_gemm_blocks(const tl_gemm_backend *backend, int64_t m, int64_t n,
                         int64_t k, int64_t threads);

/* The backend of f32 products on this machine; chosen once. */
const tl_gemm_backend *tl_gemm_default(void);

/* The backend of products of `dtype`, f32 or f64; NULL: tl_gemm_plain. */
const tl_gemm_backend *tl_gemm_backend_of(tl_dtype dtype);

/* A backend by name ("onednn", "own", "plain"), or NULL: for tests and for
 * the autotuner. */
const tl_gemm_backend *tl_gemm_find(const char *name);

#endif
