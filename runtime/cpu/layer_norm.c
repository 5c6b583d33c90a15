/* layer_norm.c - layer normalisation, forward and backward, row by row.
 * Inputs and attributes are those of op/norm.c. */
#include "runtime/base/check.h"
#include "runtime/cpu/rowmath.h"

typedef struct norm_job {
    const tl_rowmath *math;
    bool wide;
    double eps;
    const void *w, *b; /* rows of the type of the arithmetic, or NULL */
    tl_storage *copy[2];
    void *mean, *rstd; /* of each row, in that type */
} norm_job;

static void forward_row(void *arg, int64_t line, int64_t n,
                        const void *const *in, void *const *out)
{
    norm_job *job = arg;
    double mean, rstd;

    job->math->moments(n, in[0], job->eps, &mean, &rstd);
    tl_row_set(job->mean, job->wide, line, mean);
    tl_row_set(job->rstd, job->wide, line, rstd);
    job->math->normalise(n, in[0], mean, rstd, job->w, job->b, out[0]);
}

static void backward_row(void *arg, int64_t line, int64_t n,
                         const void *const *in, void *const *out)
{
    norm_job *job = arg;

    job->math->normalise_grad(
        n, in[0], in[1], tl_row_get(job->mean, job->wide, line),
        tl_row_get(job->rstd, job->wide, line), job->w, out[0]);
}

/* A weight as one row in the type of the arithmetic; job->copy[which] owns
 * what had to be made. */
static tl_status weight_row(tl_kernel_ctx *k, norm_job *job,
                            const tl_tensor *t, int which, const void **row)
{
    tl_dtype dtype = job->wide ? TL_f64 : TL_f32;

    *row = tl_tensor_data(t);
    if (t->dtype == dtype && tl_tensor_contiguous(t)) {
        return TL_OK;
    }
    TL_TRY(
        tl_cpu_scratch(k, t->numel, tl_dtype_size(dtype), &job->copy[which]));
    *row = tl_storage_data(job->copy[which]);
    for (int64_t i = 0; i < t->numel; i++) {
        tl_row_set(tl_storage_data(job->copy[which]), job->wide, i,
                   tl_tensor_get_f(t, i));
    }
    return TL_OK;
}

static void release(norm_job *job)
{
    tl_storage_unref(job->copy[0]);
    tl_storage_unref(job->copy[1]);
}

tl_status tl_cpu_layer_norm(tl_kernel_ctx *k, tl_op op, tl_tensor *const *in,
                            int nin, tl_tensor *const *out, int nout,
                            const tl_attrs *at)
{
    norm_job job = {.wide = in[0]->dtype == TL_f64,
                    .eps = at->f[0],
                    .math = tl_rowmath_get(in[0]->dtype)};
    tl_lines l = {.f32 = forward_row,
                  .f64 = forward_row,
                  .arg = &job,
                  .nin = 1,
                  .nout = 1,
                  .in = in,
                  .out = out,
                  .trailing = (int)at->i[0]};
    tl_status st = TL_OK;

    (void)op;
    (void)nout;
    if (in[0]->numel == 0) {
        return TL_OK;
    }
    job.mean = tl_tensor_data(out[1]);
    job.rstd = tl_tensor_data(out[2]);
    if (nin == 3 || (nin == 2 && !at->flag)) {
        TL_GOTO(st, weight_row(k, &job, in[1], 0, &job.w));
    }
    if (nin == 3 || (nin == 2 && at->flag)) {
        TL_GOTO(st, weight_row(k, &job, in[nin - 1], 1, &job.b));
    }
    st = tl_cpu_run_lines(k, &l);
out:
    release(&job);
    return st;
}

/* g, x, mean, rstd, weight? */
tl_status tl_cpu_layer_norm_grad(tl_kernel_ctx *k, tl_op op,
                                 tl_tensor *const *in, int nin,
                                 tl_tensor *const *out, int nout,
                                 const tl_attrs *at)
{
    norm_job job = {.wide = in[1]->dtype == TL_f64,
                    .math = tl_rowmath_get(in[1]->dtype)};
    tl_lines l = {.f32 = backward_row,
                  .f64 = backward_row,
                  .arg = &job,
                  .nin = 2,
                  .nout = nout,
                  .in = in,
                  .out = out,
                  .trailing = (int)at->i[0]};
    tl_status st = TL_OK;

    (void)op;
    if (in[1]->numel == 0) {
        return TL_OK;
    }
    job.mean = tl_tensor_data(in[2]); // both are saved results: row-major
    job.rstd = tl_tensor_data(in[3]);
    TL_CHECK(tl_tensor_contiguous(in[2]) && tl_tensor_contiguous(in[3]));
    if (nin > 4) {
        TL_GOTO(st, weight_row(k, &job, in[4], 0, &job.w));
    }
    st = tl_cpu_run_lines(k, &l);
out:
    release(&job);
    return st;
}
