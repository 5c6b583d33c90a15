/* gemm_plain.c - matrix products in plain C: every dtype, every CPU, and the
 * oracle of the faster ones.
 *
 * Panels of B are copied so that the inner loop runs over neighbours, which
 * the compiler vectorises.  Each element of C is summed over k in order. */
#include <string.h>

#include "runtime/base/check.h"
#include "runtime/cpu/gemm.h"

enum {
    PANEL_K = 128,
    PANEL_N = 64 /* 64 KiB of doubles on the stack */
};

/* Signed integers wrap, so they are computed unsigned. */
#define DEFINE_GEMM(name, in_type, sum_type, out_type)                       \
    static void pack_##name(const tl_gemm *g, int64_t k0, int64_t kn,        \
                            int64_t j0, int64_t jn,                          \
                            sum_type panel[PANEL_K][PANEL_N])                \
    {                                                                        \
        const in_type *b = g->b;                                             \
                                                                             \
        for (int64_t p = 0; p < kn; p++) {                                   \
            for (int64_t j = 0; j < jn; j++) {                               \
                panel[p][j] = (sum_type)(                                    \
                    g->tb ? b[(j0 + j) * g->ldb + k0 + p]                    \
                          : b[(k0 + p) * g->ldb + j0 + j]);                  \
            }                                                                \
        }                                                                    \
    }                                                                        \
                                                                             \
    static void row_##name(const tl_gemm *g, int64_t i, int64_t k0,          \
                           int64_t kn, int64_t j0, int64_t jn,               \
                           sum_type panel[PANEL_K][PANEL_N])                 \
    {                                                                        \
        const in_type *a = g->a;                                             \
        out_type *c = (out_type *)g->c + i * g->ldc + j0;                    \
        sum_type sum[PANEL_N];                                               \
                                                                             \
        for (int64_t j = 0; j < jn; j++) {                                   \
            sum[j] = k0 ? (sum_type)c[j] : (sum_type)0;                      \
        }                                                                    \
        for (int64_t p = 0; p < kn; p++) {                                   \
            sum_type x = (sum_type)(g->ta ? a[(k0 + p) * g->lda + i]         \
                                          : a[i * g->lda + k0 + p]);         \
                                                                             \
            for (int64_t j = 0; j < jn; j++) {                               \
                sum[j] = (sum_type)(sum[j] + x * panel[p][j]);               \
            }                                                                \
        }                                                                    \
        for (int64_t j = 0; j < jn; j++) {                                   \
            c[j] = (out_type)sum[j];                                         \
        }                                                                    \
    }                                                                        \
                                                                             \
    static void gemm_##name(const tl_gemm *g)                                \
    {                                                                        \
        sum_type panel[PANEL_K][PANEL_N];                                    \
                                                                             \
        for (int64_t j = 0; j < g->n; j += PANEL_N) {                        \
            int64_t jn = g->n - j < PANEL_N ? g->n - j : PANEL_N;            \
                                                                             \
            for (int64_t k = 0; k < g->k; k += PANEL_K) {                    \
                int64_t kn = g->k - k < PANEL_K ? g->k - k : PANEL_K;        \
                                                                             \
                pack_##name(g, k, kn, j, jn, panel);                         \
                for (int64_t i = 0; i < g->m; i++) {                         \
                    row_##name(g, i, k, kn, j, jn, panel);                   \
                }                                                            \
            }                                                                \
        }                                                                    \
    }

DEFINE_GEMM(f32, float, float, float)
DEFINE_GEMM(f64, double, double, double)
DEFINE_GEMM(i64, int64_t, uint64_t, int64_t)
DEFINE_GEMM(i32, int32_t, uint32_t, int32_t)
DEFINE_GEMM(i16, int16_t, uint32_t, int16_t)
DEFINE_GEMM(i8, int8_t, uint32_t, int32_t)
DEFINE_GEMM(u8, uint8_t, uint32_t, uint8_t)

void tl_gemm_plain(tl_dtype dtype, const tl_gemm *g)
{
    switch (dtype) {
    case TL_f32:
        gemm_f32(g);
        break;
    case TL_f64:
        gemm_f64(g);
        break;
    case TL_i64:
        gemm_i64(g);
        break;
    case TL_i32:
        gemm_i32(g);
        break;
    case TL_i16:
        gemm_i16(g);
        break;
    case TL_i8:
        gemm_i8(g);
        break;
    case TL_u8:
        gemm_u8(g);
        break;
    default:
        TL_CHECK(!"a dtype with a plain product");
    }
}
