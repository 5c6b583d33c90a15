/* linalg.c - the kernels of cholesky, solve, tri_solve and qr: operands, a
 * task for some matrices each, refusals.  Attributes are those of op/linalg.c.
 *
 * A factorisation overwrites a copy.  Of matrices that are refused, the first
 * one reports. */
#include "config.h"

#include "runtime/cpu/linalg.h"

#include <stdio.h>
#include <string.h>

#include "runtime/cpu/plain.h"

typedef struct linalg_job {
    const tl_linalg *loops, *factors;
    int64_t width, batch, per_task;
    int64_t m, n, k; /* a[m, n]; right sides, or min(m, n) */
    const tl_attrs *at;
    char *a, *x; /* x: right sides, then the result; or q */
    char *r;
    char *work; /* of each worker, work_size bytes */
    int64_t work_size;
    int64_t *refused; /* of each matrix: 0, or what was wrong */
} linalg_job;

static const tl_linalg *loops_for(bool wide)
{
#if defined(__x86_64__)
    if (tl_cpu_has_avx2()) {
        return wide ? &tl_linalg_f64_avx2 : &tl_linalg_f32_avx2;
    }
#endif
    return wide ? &tl_linalg_f64 : &tl_linalg_f32;
}

/* What factorises: LAPACK, up to the sizes of its ints. */
static const tl_linalg *factors_for(bool wide, int64_t m, int64_t n)
{
#ifdef HAVE_LAPACK
    if (m <= INT32_MAX && n <= INT32_MAX) {
        return wide ? &tl_lapack_f64 : &tl_lapack_f32;
    }
#endif
    (void)m;
    (void)n;
    return loops_for(wide);
}

static void set_sizes(linalg_job *job, const tl_tensor *a, int64_t cost)
{
    job->m = a->size[a->rank - 2];
    job->n = a->size[a->rank - 1];
    job->batch = a->numel / (job->m * job->n);
    job->width = a->dtype == TL_f64 ? 8 : 4;
    job->loops = loops_for(a->dtype == TL_f64);
    job->factors = factors_for(a->dtype == TL_f64, job->m, job->n);
    job->per_task = tl_cpu_rows_a_task(cost);
}

/* n³ or more than is worth a task. */
static int64_t cost_of(const tl_tensor *a)
{
    int64_t n = a->size[a->rank - 1];

    return n < 256 ? n * n * n : TL_CPU_GRAIN;
}

/* Matrix i of `count` numbers each. */
static void *matrix(const linalg_job *job, char *of, int64_t i, int64_t count)
{
    return of + i * count * job->width;
}

typedef void one_fn(const linalg_job *job, int64_t i, void *work);

typedef struct each {
    const linalg_job *job;
    one_fn *fn;
} each;

static void task(void *arg, int64_t t, int worker)
{
    const each *e = arg;
    int64_t i = t * e->job->per_task, end = i + e->job->per_task;

    for (end = end < e->job->batch ? end : e->job->batch; i < end; i++) {
        e->fn(e->job, i, e->job->work + worker * e->job->work_size);
    }
}

/* fn for each matrix, with `work` numbers of 8 bytes. */
static tl_status run(linalg_job *job, tl_plain *own, one_fn *fn, int64_t work)
{
    each e = {job, fn};
    void *scratch;

    job->work_size = 8 * work;
    TL_TRY(tl_plain_scratch(own, work * tl_threads_count(own->k->threads), 8,
                            &scratch));
    job->work = scratch;
    TL_TRY(tl_plain_scratch(own, job->batch, sizeof(int64_t), &scratch));
    job->refused = scratch;
    memset(scratch, 0, (size_t)job->batch * sizeof(int64_t));
    tl_cpu_run(own->k, tl_ceil_div(job->batch, job->per_task), task, &e);
    return TL_OK;
}

/* Text for the first matrix that was refused. */
static tl_status check(const linalg_job *job, tl_diag *diag, const char *name,
                       const char *before, const char *after)
{
    for (int64_t i = 0; i < job->batch; i++) {
        char which[48] = "";

        if (job->refused[i] == 0) {
            continue;
        }
        if (job->batch > 1) {
            snprintf(which, sizeof which, " of matrix %lld", (long long)i);
        }
        return tl_fail(diag, TL_E0421, "`%s`: %s %lld%s %s", name, before,
                       (long long)job->refused[i], which, after);
    }
    return TL_OK;
}

static void cholesky_one(const linalg_job *job, int64_t i, void *work)
{
    (void)work;
    job->refused[i] = job->factors->cholesky(
        job->n, matrix(job, job->x, i, job->n * job->n));
}

tl_status tl_cpu_cholesky(tl_kernel_ctx *k, tl_op op, tl_tensor *const *in,
                          int nin, tl_tensor *const *out, int nout,
                          const tl_attrs *at)
{
    linalg_job job = {.at = at};
    tl_plain own;
    void *a;
    tl_status st = TL_OK;

    (void)op;
    (void)nin;
    (void)nout;
    if (in[0]->numel == 0) {
        return TL_OK;
    }
    tl_plain_open(&own, k);
    set_sizes(&job, in[0], cost_of(in[0]));
    TL_GOTO(st, tl_plain_copy(&own, in[0], &a));
    job.x = a;
    TL_GOTO(st, run(&job, &own, cholesky_one, 1));
    TL_GOTO(st, check(&job, k->diag, "cholesky", "leading minor",
                      "is not positive"));
    tl_plain_put(&own, out[0], a);
out:
    tl_plain_close(&own);
    return st;
}

/* ---- systems ------------------------------------------------------------- */

/* `a` transposed, in place. */
static void transpose(const linalg_job *job, void *a)
{
    int64_t n = job->n;
    char *p = a, t[8];
    size_t w = (size_t)job->width;

    for (int64_t i = 0; i < n; i++) {
        for (int64_t j = 0; j < i; j++) {
            char *u = p + (i * n + j) * job->width;
            char *v = p + (j * n + i) * job->width;

            memcpy(t, u, w);
            memcpy(u, v, w);
            memcpy(v, t, w);
        }
    }
}

static void solve_one(const linalg_job *job, int64_t i, void *work)
{
    void *a = matrix(job, job->a, i, job->n * job->n);

    if (job->at->i[0]) {
        transpose(job, a);
    }
    job->refused[i] = job->factors->solve(
        job->n, job->k, a, matrix(job, job->x, i, job->n * job->k), work);
}

static void tri_solve_one(const linalg_job *job, int64_t i, void *work)
{
    (void)work;
    job->loops->tri_solve(job->n, job->k,
                          matrix(job, job->a, i, job->n * job->n),
                          job->at->flag, job->at->i[0] != 0,
                          matrix(job, job->x, i, job->n * job->k));
}

static tl_status systems(tl_kernel_ctx *k, tl_tensor *const *in,
                         tl_tensor *out, const tl_attrs *at, one_fn *fn)
{
    linalg_job job = {.at = at};
    tl_plain own;
    void *a, *x;
    tl_status st = TL_OK;

    if (in[0]->numel == 0 || out->numel == 0) {
        return TL_OK;
    }
    tl_plain_open(&own, k);
    set_sizes(&job, in[0], cost_of(in[0]));
    job.k = in[1]->size[in[1]->rank - 1];
    TL_GOTO(st, tl_plain_copy(&own, in[0], &a));
    TL_GOTO(st, tl_plain_copy(&own, in[1], &x));
    job.a = a;
    job.x = x;
    TL_GOTO(st, run(&job, &own, fn, tl_linalg_work(job.n, job.n, job.k)));
    TL_GOTO(st, check(&job, k->diag, "solve", "the matrix is singular: pivot",
                      "is 0"));
    tl_plain_put(&own, out, x);
out:
    tl_plain_close(&own);
    return st;
}

tl_status tl_cpu_solve(tl_kernel_ctx *k, tl_op op, tl_tensor *const *in,
                       int nin, tl_tensor *const *out, int nout,
                       const tl_attrs *at)
{
    (void)op;
    (void)nin;
    (void)nout;
    return systems(k, in, out[0], at, solve_one);
}

tl_status tl_cpu_tri_solve(tl_kernel_ctx *k, tl_op op, tl_tensor *const *in,
                           int nin, tl_tensor *const *out, int nout,
                           const tl_attrs *at)
{
    (void)op;
    (void)nin;
    (void)nout;
    return systems(k, in, out[0], at, tri_solve_one);
}

/* ---- QR ------------------------------------------------------------------ */

static void qr_one(const linalg_job *job, int64_t i, void *work)
{
    job->factors->qr(job->m, job->n, matrix(job, job->a, i, job->m * job->n),
                     matrix(job, job->x, i, job->m * job->k),
                     matrix(job, job->r, i, job->k * job->n), work);
}

tl_status tl_cpu_qr(tl_kernel_ctx *k, tl_op op, tl_tensor *const *in, int nin,
                    tl_tensor *const *out, int nout, const tl_attrs *at)
{
    linalg_job job = {.at = at};
    tl_plain own;
    void *a, *q, *r;
    tl_status st = TL_OK;

    (void)op;
    (void)nin;
    (void)nout;
    if (in[0]->numel == 0) {
        return TL_OK;
    }
    tl_plain_open(&own, k);
    set_sizes(&job, in[0], cost_of(in[0]));
    job.k = job.m < job.n ? job.m : job.n;
    TL_GOTO(st, tl_plain_copy(&own, in[0], &a));
    TL_GOTO(st, tl_plain_out(&own, out[0], &q));
    TL_GOTO(st, tl_plain_out(&own, out[1], &r));
    job.a = a;
    job.x = q;
    job.r = r;
    TL_GOTO(st, run(&job, &own, qr_one, tl_linalg_work(job.m, job.n, job.k)));
    tl_plain_round(&own, out[0], q);
    tl_plain_round(&own, out[1], r);
out:
    tl_plain_close(&own);
    return st;
}
