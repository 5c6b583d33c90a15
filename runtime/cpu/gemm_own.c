/* gemm_own.c - blocks of a product with AVX2 and FMA: 6 x 16 floats or 6 x 8
 * doubles in registers, operands packed into panels (Goto, van de Geijn,
 * "Anatomy of high-performance matrix multiplication", 2008).
 *
 * Each element of C is one chain of fused multiply-adds over k in order:
 * between panels of k it rests in C, which keeps all its bits.  So results do
 * not depend on blocks, panels or threads, and the paths for few rows, which
 * do not pack, give the same. */
#ifdef TL_CPU_AVX2
#include <immintrin.h>
#include <string.h>

#define TL_HAVE_AVX2_KERNELS 1
#include "runtime/cpu/gemm.h"

enum {
    MR = 6,
    KC = 256,
    MC = 96, /* a multiple of MR: panels of A stay in L2 */
    FEW_ROWS = 12, /* up to here B is not packed */
    DEEP = 4
};

size_t tl_gemm_own_scratch(void)
{
    return 1 << 20;
}

/* Panels of MR rows of A: [k][MR], rows past the end 0. */
#define DEFINE_PACK_A(name, type)                                            \
    static void pack_a_##name(const tl_gemm *g, int64_t i0, int64_t in,      \
                              int64_t k0, int64_t kn, type *to)              \
    {                                                                        \
        const type *a = g->a;                                                \
        int64_t row = g->ta ? 1 : g->lda, col = g->ta ? g->lda : 1;          \
                                                                             \
        for (int64_t i = 0; i < in; i += MR) {                               \
            int64_t rows = in - i < MR ? in - i : MR;                        \
            const type *from = a + (i0 + i) * row + k0 * col;                \
                                                                             \
            for (int64_t p = 0; p < kn; p++, to += MR) {                     \
                for (int64_t r = 0; r < MR; r++) {                           \
                    to[r] = r < rows ? from[r * row + p * col] : 0;          \
                }                                                            \
            }                                                                \
        }                                                                    \
    }

/* Panels of `nr` columns of B: [k][nr], columns past the end 0. */
#define DEFINE_PACK_B(name, type, nr)                                        \
    static void pack_b_##name(const tl_gemm *g, int64_t k0, int64_t kn,      \
                              int64_t j0, int64_t jn, type *to)              \
    {                                                                        \
        const type *b = g->b;                                                \
        int64_t row = g->tb ? 1 : g->ldb, col = g->tb ? g->ldb : 1;          \
                                                                             \
        for (int64_t j = 0; j < jn; j += nr, to += kn * nr) {                \
            int64_t cols = jn - j < nr ? jn - j : nr;                        \
            const type *from = b + k0 * row + (j0 + j) * col;                \
                                                                             \
            if (cols < nr) {                                                 \
                memset(to, 0, (size_t)(kn * nr) * sizeof(*to));              \
            }                                                                \
            if (g->tb) {                                                     \
                for (int64_t c = 0; c < cols; c++) {                         \
                    for (int64_t p = 0; p < kn; p++) {                       \
                        to[p * nr + c] = from[p + c * col];                  \
                    }                                                        \
                }                                                            \
            } else {                                                         \
                for (int64_t p = 0; p < kn; p++) {                           \
                    memcpy(to + p * nr, from + p * row,                      \
                           (size_t)cols * sizeof(*to));                      \
                }                                                            \
            }                                                                \
        }                                                                    \
    }

#define ROW_LOAD(r) c##r##0 = LOADU(c + r * ldc),                            \
                    c##r##1 = LOADU(c + r * ldc + W)
#define ROW_FMA(r)                                                           \
    x = BROADCAST(a + r);                                                    \
    c##r##0 = FMADD(x, b0, c##r##0);                                         \
    c##r##1 = FMADD(x, b1, c##r##1)
#define ROW_STORE(r) STOREU(c + r * ldc, c##r##0);                           \
                     STOREU(c + r * ldc + W, c##r##1)

/* C += A B for one MR x 2W block of packed panels. */
#define DEFINE_MICRO(name, type, vector)                                     \
    static void micro_##name(int64_t kn, const type *a, const type *b,       \
                             type *c, int64_t ldc)                           \
    {                                                                        \
        vector ROW_LOAD(0), ROW_LOAD(1), ROW_LOAD(2), ROW_LOAD(3),           \
            ROW_LOAD(4), ROW_LOAD(5);                                        \
                                                                             \
        for (int64_t p = 0; p < kn; p++, a += MR, b += 2 * W) {              \
            vector b0 = LOAD(b), b1 = LOAD(b + W), x;                        \
                                                                             \
            ROW_FMA(0);                                                      \
            ROW_FMA(1);                                                      \
            ROW_FMA(2);                                                      \
            ROW_FMA(3);                                                      \
            ROW_FMA(4);                                                      \
            ROW_FMA(5);                                                      \
        }                                                                    \
        ROW_STORE(0);                                                        \
        ROW_STORE(1);                                                        \
        ROW_STORE(2);                                                        \
        ROW_STORE(3);                                                        \
        ROW_STORE(4);                                                        \
        ROW_STORE(5);                                                        \
    }

/* A block that C cuts off is computed in a whole one beside it. */
#define DEFINE_EDGE(name, type)                                              \
    static void edge_##name(int64_t kn, const type *a, const type *b,        \
                            type *c, int64_t ldc, int64_t rows,              \
                            int64_t cols)                                    \
    {                                                                        \
        type part[MR * 2 * W] = {0};                                         \
                                                                             \
        for (int64_t i = 0; i < rows; i++) {                                 \
            memcpy(part + i * 2 * W, c + i * ldc,                            \
                   (size_t)cols * sizeof(*c));                               \
        }                                                                    \
        micro_##name(kn, a, b, part, 2 * W);                                 \
        for (int64_t i = 0; i < rows; i++) {                                 \
            memcpy(c + i * ldc, part + i * 2 * W,                            \
                   (size_t)cols * sizeof(*c));                               \
        }                                                                    \
    }

/* One panel of k, packed B of jn columns at bp: all rows of C. */
#define DEFINE_ROWS(name, type)                                              \
    static void rows_##name(const tl_gemm *g, int64_t k0, int64_t kn,        \
                            int64_t j0, int64_t jn, type *ap,                \
                            const type *bp)                                  \
    {                                                                        \
        for (int64_t i0 = 0; i0 < g->m; i0 += MC) {                          \
            int64_t in = g->m - i0 < MC ? g->m - i0 : MC;                    \
            type *c = (type *)g->c + i0 * g->ldc + j0;                       \
                                                                             \
            pack_a_##name(g, i0, in, k0, kn, ap);                            \
            for (int64_t j = 0; j < jn; j += 2 * W) {                        \
                int64_t cols = jn - j < 2 * W ? jn - j : 2 * W;              \
                                                                             \
                for (int64_t i = 0; i < in; i += MR) {                       \
                    int64_t rows = in - i < MR ? in - i : MR;                \
                    const type *a = ap + i * kn, *b = bp + j * kn;           \
                                                                             \
                    if (rows == MR && cols == 2 * W) {                       \
                        micro_##name(kn, a, b, c + i * g->ldc + j, g->ldc);  \
                    } else {                                                 \
                        edge_##name(kn, a, b, c + i * g->ldc + j, g->ldc,    \
                                    rows, cols);                             \
                    }                                                        \
                }                                                            \
            }                                                                \
        }                                                                    \
    }

#define DEFINE_PACKED(name, type)                                            \
    static void packed_##name(const tl_gemm *g)                              \
    {                                                                        \
        type *bp = g->scratch, *ap = bp + (int64_t)KC * NC_##name;           \
                                                                             \
        for (int64_t i = 0; i < g->m; i++) {                                 \
            memset((type *)g->c + i * g->ldc, 0,                             \
                   (size_t)g->n * sizeof(type));                             \
        }                                                                    \
        for (int64_t j = 0; j < g->n; j += NC_##name) {                      \
            int64_t jn = g->n - j < NC_##name ? g->n - j : NC_##name;        \
                                                                             \
            for (int64_t k = 0; k < g->k; k += KC) {                         \
                int64_t kn = g->k - k < KC ? g->k - k : KC;                  \
                                                                             \
                pack_b_##name(g, k, kn, j, jn, bp);                          \
                rows_##name(g, k, kn, j, jn, ap, bp);                        \
            }                                                                \
        }                                                                    \
    }

/* ---- doubles ----------------------------------------------------------- */

#define LOAD _mm256_load_pd
#define LOADU _mm256_loadu_pd
#define STOREU _mm256_storeu_pd
#define FMADD _mm256_fmadd_pd
#define BROADCAST _mm256_broadcast_sd
#define W 4
enum { NC_f64 = 256 };
DEFINE_PACK_A(f64, double)
DEFINE_PACK_B(f64, double, 2 * W)
DEFINE_MICRO(f64, double, __m256d)
DEFINE_EDGE(f64, double)
DEFINE_ROWS(f64, double)
DEFINE_PACKED(f64, double)
#undef LOAD
#undef LOADU
#undef STOREU
#undef FMADD
#undef BROADCAST
#undef W

bool tl_gemm_own_f64(const tl_gemm *g)
{
    packed_f64(g);
    return true;
}

/* ---- floats ------------------------------------------------------------ */

#define LOAD _mm256_load_ps
#define LOADU _mm256_loadu_ps
#define STOREU _mm256_storeu_ps
#define FMADD _mm256_fmadd_ps
#define BROADCAST _mm256_broadcast_ss
#define W 8
enum { NC_f32 = 512 };
DEFINE_PACK_A(f32, float)
DEFINE_PACK_B(f32, float, 2 * W)
DEFINE_MICRO(f32, float, __m256)
DEFINE_EDGE(f32, float)
DEFINE_ROWS(f32, float)
DEFINE_PACKED(f32, float)

/* ---- few rows: B is read once, where it lies --------------------------- */

static float element_a(const tl_gemm *g, int64_t i, int64_t p)
{
    const float *a = g->a;

    return g->ta ? a[p * g->lda + i] : a[i * g->lda + p];
}

/* Columns [j, j + n) of row i, continued from k = `from` and `sum`. */
static void chain(const tl_gemm *g, int64_t i, int64_t j, int64_t n,
                  int64_t from, float *sum)
{
    const float *b = g->b;

    for (int64_t p = from; p < g->k; p++) {
        float x = element_a(g, i, p);

        for (int64_t c = 0; c < n; c++) {
            float y = g->tb ? b[(j + c) * g->ldb + p] : b[p * g->ldb + j + c];

            sum[c] = __builtin_fmaf(x, y, sum[c]);
        }
    }
}

static void tail_columns(const tl_gemm *g, int64_t j)
{
    for (int64_t i = 0; i < g->m; i++) {
        float sum[2 * W] = {0};

        chain(g, i, j, g->n - j, 0, sum);
        memcpy((float *)g->c + i * g->ldc + j, sum,
               (size_t)(g->n - j) * sizeof(float));
    }
}

/* C += A B for `DEEP` rows of B from k = p on, 2 W columns at j: B is read as
 * it lies in memory, C rests in cache. */
static void deep_rows(const tl_gemm *g, int64_t p, int64_t j)
{
    const float *b = (const float *)g->b + p * g->ldb + j;
    __m256 y[DEEP][2];

    for (int d = 0; d < DEEP; d++) {
        y[d][0] = LOADU(b + d * g->ldb);
        y[d][1] = LOADU(b + d * g->ldb + W);
    }
    for (int64_t r = 0; r < g->m; r++) {
        float *c = (float *)g->c + r * g->ldc + j;
        __m256 c0 = LOADU(c), c1 = LOADU(c + W);

        for (int d = 0; d < DEEP; d++) {
            __m256 x = _mm256_set1_ps(element_a(g, r, p + d));

            c0 = FMADD(x, y[d][0], c0);
            c1 = FMADD(x, y[d][1], c1);
        }
        STOREU(c, c0);
        STOREU(c + W, c1);
    }
}

static void few_rows_n(const tl_gemm *g)
{
    int64_t whole = g->n - g->n % (2 * W), p = 0;

    for (int64_t r = 0; r < g->m; r++) {
        memset((float *)g->c + r * g->ldc, 0, (size_t)whole * sizeof(float));
    }
    for (; p + DEEP <= g->k; p += DEEP) {
        for (int64_t j = 0; j < whole; j += 2 * W) {
            deep_rows(g, p, j);
        }
    }
    for (int64_t r = 0; r < g->m && p < g->k; r++) {
        float *c = (float *)g->c + r * g->ldc;

        for (int64_t j = 0; j < whole; j += 2 * W) {
            chain(g, r, j, 2 * W, p, c + j);
        }
    }
    if (whole < g->n) {
        tail_columns(g, whole);
    }
}

/* 8 x 8 floats: rows of memory to columns. */
static void transpose(const float *from, int64_t ld, __m256 to[8])
{
    __m256 r[8], t[8];

    for (int i = 0; i < 8; i++) {
        r[i] = LOADU(from + i * ld);
    }
    for (int i = 0; i < 8; i += 2) {
        t[i] = _mm256_unpacklo_ps(r[i], r[i + 1]);
        t[i + 1] = _mm256_unpackhi_ps(r[i], r[i + 1]);
    }
    for (int i = 0; i < 8; i += 4) {
        r[i] = _mm256_shuffle_ps(t[i], t[i + 2], 0x44);
        r[i + 1] = _mm256_shuffle_ps(t[i], t[i + 2], 0xee);
        r[i + 2] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0x44);
        r[i + 3] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0xee);
    }
    for (int i = 0; i < 4; i++) {
        to[i] = _mm256_permute2f128_ps(r[i], r[i + 4], 0x20);
        to[i + 4] = _mm256_permute2f128_ps(r[i], r[i + 4], 0x31);
    }
}

/* 16 columns at j of B stored as [n][k]. */
static void strip_t(const tl_gemm *g, int64_t j)
{
    const float *b = (const float *)g->b + j * g->ldb;
    __m256 sum[FEW_ROWS][2], y[2][8];
    int64_t p = 0;

    for (int64_t r = 0; r < g->m; r++) {
        sum[r][0] = sum[r][1] = _mm256_setzero_ps();
    }
    for (; p + W <= g->k; p += W) {
        transpose(b + p, g->ldb, y[0]);
        transpose(b + p + W * g->ldb, g->ldb, y[1]);
        for (int64_t r = 0; r < g->m; r++) {
            for (int i = 0; i < W; i++) {
                __m256 x = _mm256_set1_ps(element_a(g, r, p + i));

                sum[r][0] = FMADD(x, y[0][i], sum[r][0]);
                sum[r][1] = FMADD(x, y[1][i], sum[r][1]);
            }
        }
    }
    for (int64_t r = 0; r < g->m; r++) {
        float *c = (float *)g->c + r * g->ldc + j;
        float part[2 * W];

        STOREU(part, sum[r][0]);
        STOREU(part + W, sum[r][1]);
        chain(g, r, j, 2 * W, p, part);
        memcpy(c, part, sizeof(part));
    }
}

static void few_rows_t(const tl_gemm *g)
{
    int64_t j = 0;

    for (; j + 2 * W <= g->n; j += 2 * W) {
        strip_t(g, j);
    }
    if (j < g->n) {
        tail_columns(g, j);
    }
}

bool tl_gemm_own_f32(const tl_gemm *g)
{
    if (g->m > FEW_ROWS) {
        packed_f32(g);
    } else if (g->tb) {
        few_rows_t(g);
    } else {
        few_rows_n(g);
    }
    return true;
}
#else
/* No empty translation unit. */
extern int tl_gemm_own_needs_avx2;
#endif
