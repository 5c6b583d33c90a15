/* rms_norm.c - RMS norm, forward and backward, row by row.  Inputs and
 * attributes are those of op/norm.c.
 *
 * dweight adds up element by element within each of at most SLABS parts of
 * the rows, in order and in double; so do the parts. */
#include <string.h>

#include "runtime/cpu/plain.h"
#include "runtime/cpu/rowmath.h"

enum {
    SLABS = 16
};

typedef struct rms_job {
    const tl_rowmath *math;
    bool wide;
    double eps;
    int64_t n, slab;
    void *w;      /* a row of the type of the arithmetic, or NULL */
    void *rstd;   /* of each row, in that type */
    double *sums; /* [slabs][2][n], the first half of each unused */
    tl_plain own;
    const char *g, *x; /* row-major, of the type of the arithmetic */
    int64_t rows;
} rms_job;

static void forward_row(void *arg, int64_t line, int64_t n,
                        const void *const *in, void *const *out)
{
    rms_job *job = arg;
    double rstd = job->math->rms(n, in[0], job->eps);

    tl_row_set(job->rstd, job->wide, line, rstd);
    job->math->scale(n, in[0], rstd, job->w, out[0]);
}

static void backward_row(void *arg, int64_t line, int64_t n,
                         const void *const *in, void *const *out)
{
    rms_job *job = arg;

    job->math->scale_grad(n, in[0], in[1],
                          tl_row_get(job->rstd, job->wide, line), job->w,
                          out[0]);
}

tl_status tl_cpu_rms_norm(tl_kernel_ctx *k, tl_op op, tl_tensor *const *in,
                          int nin, tl_tensor *const *out, int nout,
                          const tl_attrs *at)
{
    rms_job job = {.wide = in[0]->dtype == TL_f64,
                   .eps = at->f[0],
                   .math = tl_rowmath_get(in[0]->dtype),
                   .own = {.k = k}};
    tl_lines l = {.f32 = forward_row,
                  .f64 = forward_row,
                  .arg = &job,
                  .nin = 1,
                  .nout = 1,
                  .in = in,
                  .out = out,
                  .trailing = (int)at->i[0]};
    const void *w = NULL;
    tl_status st = TL_OK;

    (void)op;
    (void)nout;
    if (in[0]->numel == 0) {
        return TL_OK;
    }
    job.rstd = tl_tensor_data(out[1]);
    if (nin > 1) {
        TL_GOTO(st, tl_plain_in(&job.own, in[1], &w));
    }
    job.w = (void *)(uintptr_t)w;
    st = tl_cpu_run_lines(k, &l);
out:
    tl_plain_close(&job.own);
    return st;
}

/* Sums of g x^ over the rows of a slab. */
static void slab_task(void *arg, int64_t task, int worker)
{
    const rms_job *job = arg;
    int64_t r = task * job->slab, end = r + job->slab;
    int64_t row = job->n * (job->wide ? 8 : 4);
    double *sums = job->sums + 2 * job->n * task;

    (void)worker;
    memset(sums, 0, (size_t)(2 * job->n) * sizeof *sums);
    for (end = end < job->rows ? end : job->rows; r < end; r++) {
        tl_row_stats s = {.rstd = (const char *)job->rstd +
                                  r * (job->wide ? 8 : 4)};

        job->math->affine_add(job->n, job->g + r * row, job->x + r * row, &s,
                              sums);
    }
}

static tl_status weight_gradient(tl_kernel_ctx *k, rms_job *job,
                                 tl_tensor *dw)
{
    int64_t slabs;
    void *sums;

    job->slab = tl_ceil_div(job->rows, SLABS);
    slabs = tl_ceil_div(job->rows, job->slab);
    TL_TRY(tl_plain_scratch(&job->own, 2 * job->n * slabs, sizeof(double),
                            &sums));
    job->sums = sums;
    if (job->rows * job->n < TL_CPU_GRAIN) { /* not worth a fork */
        for (int64_t t = 0; t < slabs; t++) {
            slab_task(job, t, 0);
        }
    } else {
        tl_cpu_run(k, slabs, slab_task, job);
    }
    for (int64_t i = 0; i < job->n; i++) {
        double sum = 0;

        for (int64_t t = 0; t < slabs; t++) {
            sum += job->sums[2 * job->n * t + job->n + i];
        }
        tl_tensor_set_f(dw, i, sum);
    }
    return TL_OK;
}

/* g, x, rstd, weight? -> dx, dweight */
tl_status tl_cpu_rms_norm_grad(tl_kernel_ctx *k, tl_op op,
                               tl_tensor *const *in, int nin,
                               tl_tensor *const *out, int nout,
                               const tl_attrs *at)
{
    rms_job job = {.wide = in[1]->dtype == TL_f64,
                   .n = out[1]->numel,
                   .math = tl_rowmath_get(in[1]->dtype),
                   .own = {.k = k}};
    tl_lines l = {.f32 = backward_row,
                  .f64 = backward_row,
                  .arg = &job,
                  .nin = 2,
                  .nout = 1,
                  .in = in,
                  .out = out,
                  .trailing = (int)at->i[0]};
    const void *w = NULL, *rstd, *g, *x;
    tl_status st = TL_OK;

    (void)op;
    (void)nout;
    if (in[1]->numel == 0) {
        for (int64_t i = 0; i < job.n; i++) {
            tl_tensor_set_f(out[1], i, 0);
        }
        return TL_OK;
    }
    job.rows = in[1]->numel / job.n;
    TL_GOTO(st, tl_plain_in(&job.own, in[2], &rstd));
    job.rstd = (void *)(uintptr_t)rstd;
    if (nin > 3) {
        TL_GOTO(st, tl_plain_in(&job.own, in[3], &w));
    }
    job.w = (void *)(uintptr_t)w;
    TL_GOTO(st, tl_cpu_run_lines(k, &l));
    TL_GOTO(st, tl_plain_in(&job.own, in[0], &g));
    TL_GOTO(st, tl_plain_in(&job.own, in[1], &x));
    job.g = g;
    job.x = x;
    st = weight_gradient(k, &job, out[1]);
out:
    tl_plain_close(&job.own);
    return st;
}
