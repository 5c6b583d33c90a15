/* gemm_onednn.c - f32 blocks by oneDNN's dnnl_sgemm, single-threaded.
 *
 * The library's OpenMP team is set to one thread once for each of our
 * threads: a plain thread that calls it otherwise starts a team of its own.
 * The setting is a call into the OpenMP run-time that oneDNN has brought
 * along, hence the weak symbol: builds of oneDNN without OpenMP have none. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "runtime/cpu/gemm.h"

#ifdef HAVE_ONEDNN
#include "runtime/cpu/onednn.h"

#pragma GCC diagnostic ignored "-Wredundant-decls"
extern void omp_set_num_threads(int n) __attribute__((weak));

void tl_onednn_one_thread_now(void)
{
    if (omp_set_num_threads) {
        omp_set_num_threads(1);
    }
}

void tl_onednn_one_thread(void)
{
    static _Thread_local bool done;

    if (!done) {
        tl_onednn_one_thread_now();
    }
    done = true;
}

bool tl_gemm_onednn(const tl_gemm *g)
{
    tl_onednn_one_thread();
    return dnnl_sgemm(g->ta ? 'T' : 'N', g->tb ? 'T' : 'N', g->m, g->n, g->k,
                      1.0f, g->a, g->lda, g->b, g->ldb, 0.0f, g->c,
                      g->ldc) == dnnl_success;
}
#endif
