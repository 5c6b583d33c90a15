/* loss.c - cross entropy of logits and class numbers; op/loss.c says what is
 * computed.  A row's cost and weight go to scratch, from where they are
 * summed along the tree of reductions. */
#include "runtime/op/loss.h"

#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "runtime/cpu/rowmath.h"

typedef struct loss_job {
    const tl_rowmath *math;
    bool wide;
    const char *logits; /* rows of n, of the type of the arithmetic */
    int64_t rows, n, per_task;
    const tl_tensor *targets;
    const char *target; /* row-major */
    int64_t ignore;
    tl_row_loss row; /* but the target */
    void *cost, *row_weight, *lse;
    const void *g; /* of the rows, or the one of the whole */
    bool g_rows;
    bool plain;   /* the rows are log-probabilities: lse is 0 */
    double scale; /* 1 / sum of weights for the mean, else 1 */
    char *dx;
    tl_storage *copies[5];
    int ncopies;
} loss_job;

static int64_t target_of(const loss_job *job, int64_t i)
{
    return tl_cpu_load_int(job->target, job->targets->dtype, i);
}

/* ---- operands ---------------------------------------------------------- */

/* `t` row-major as `dtype` (its own, or the type of the arithmetic). */
static tl_status as_rows(tl_kernel_ctx *k, loss_job *job, const tl_tensor *t,
                         tl_dtype dtype, const char **data)
{
    tl_storage **copy = &job->copies[job->ncopies];
    tl_layout l;

    *data = t->numel ? tl_tensor_data(t) : NULL;
    if ((t->dtype == dtype && tl_tensor_contiguous(t)) || t->numel == 0) {
        return TL_OK;
    }
    TL_TRY(tl_cpu_scratch(k, t->numel, tl_dtype_size(dtype), copy));
    job->ncopies++;
    *data = tl_storage_data(*copy);
    if (t->dtype != dtype) {
        return tl_cpu_widen(k, t, tl_storage_data(*copy));
    }
    tl_layout_row_major(&l, t->rank, t->size);
    tl_cpu_copy_elements(k, (int)tl_dtype_size(dtype), t->rank, t->size,
                         tl_storage_data(*copy), l.stride, tl_tensor_data(t),
                         t->stride);
    return TL_OK;
}

tl_status tl_cpu_check_targets(const tl_tensor *targets, int64_t n,
                               int64_t ignore, tl_diag *diag)
{
    for (int64_t i = 0; i < targets->numel; i++) {
        int64_t y = tl_cpu_get_int(targets, i);

        if (y != ignore && (y < 0 || y >= n)) {
            return tl_fail(diag, TL_E0407,
                           "target %lld at row %lld, valid 0..%lld or "
                           "ignore_index %lld",
                           (long long)y, (long long)i, (long long)n - 1,
                           (long long)ignore);
        }
    }
    return TL_OK;
}

static tl_status open_job(tl_kernel_ctx *k, loss_job *job,
                          const tl_tensor *logits, const tl_tensor *targets,
                          const tl_tensor *weight, const tl_attrs *at)
{
    tl_dtype dtype = tl_dtype_arith(logits->dtype);
    const char *w = NULL;

    *job = (loss_job){.math = tl_rowmath_get(dtype),
                      .wide = dtype == TL_f64,
                      .targets = targets,
                      .rows = targets->numel,
                      .n = logits->size[logits->rank - 1],
                      .ignore = at->i[0],
                      .plain = at->flag,
                      .scale = 1};
    TL_TRY(as_rows(k, job, logits, dtype, &job->logits));
    TL_TRY(as_rows(k, job, targets, targets->dtype, &job->target));
    if (weight) {
        TL_TRY(as_rows(k, job, weight, dtype, &w));
    }
    job->row = (tl_row_loss){
        .smoothing = at->f[0], .weight = w, .weight_sum = (double)job->n};
    if (w) {
        job->row.weight_sum = job->math->sum(job->n, w);
    }
    job->per_task = tl_cpu_rows_a_task(4 * job->n);
    return tl_cpu_check_targets(targets, job->n, job->ignore, k->diag);
}

static void close_job(loss_job *job)
{
    for (int i = 0; i < job->ncopies; i++) {
        tl_storage_unref(job->copies[i]);
    }
}

static double weight_of(const loss_job *job, int64_t y)
{
    return job->row.weight ? tl_row_get(job->row.weight, job->wide, y) : 1;
}

static const void *logits_of(const loss_job *job, int64_t i)
{
    return job->logits + i * job->n * (job->wide ? 8 : 4);
}

/* ---- forward ----------------------------------------------------------- */

static void forward_task(void *arg, int64_t task, int worker)
{
    const loss_job *job = arg;
    int64_t i = task * job->per_task, end = i + job->per_task;

    (void)worker;
    for (end = end < job->rows ? end : job->rows; i < end; i++) {
        tl_row_loss row = job->row;
        double lse =
            job->plain ? 0 : job->math->logsumexp(job->n, logits_of(job, i));
        bool ignored;

        row.target = target_of(job, i);
        ignored = row.target == job->ignore;
        tl_row_set(job->lse, job->wide, i, lse);
        tl_row_set(
            job->cost, job->wide, i,
            ignored ? 0
                    : job->math->loss(job->n, logits_of(job, i), lse, &row));
        tl_row_set(job->row_weight, job->wide, i,
                   ignored ? 0 : weight_of(job, row.target));
    }
}

/* The loss of the rows' costs, in the type of the arithmetic. */
static double reduce(const loss_job *job, tl_loss_reduce how)
{
    double sum = job->math->sum(job->rows, job->cost);
    double weight = job->math->sum(job->rows, job->row_weight);

    if (how == TL_LOSS_SUM) {
        return sum;
    }
    return job->wide ? sum / weight : (double)((float)sum / (float)weight);
}

static void store_loss(const loss_job *job, tl_tensor *y, tl_loss_reduce how)
{
    int64_t n = how == TL_LOSS_NONE ? job->rows : 1;

    for (int64_t i = 0; i < n; i++) {
        tl_tensor_set_f(y, i,
                        how == TL_LOSS_NONE
                            ? tl_row_get(job->cost, job->wide, i)
                            : reduce(job, how));
    }
}

tl_status tl_cpu_cross_entropy(tl_kernel_ctx *k, tl_op op,
                               tl_tensor *const *in, int nin,
                               tl_tensor *const *out, int nout,
                               const tl_attrs *at)
{
    tl_storage *scratch = NULL;
    loss_job job;
    size_t width;
    tl_status st;

    (void)op;
    (void)nout;
    TL_GOTO(st, open_job(k, &job, in[0], in[1], nin > 2 ? in[2] : NULL, at));
    width = job.wide ? 8 : 4;
    TL_GOTO(st, tl_cpu_scratch(k, 2 * job.rows, width, &scratch));
    job.cost = tl_storage_data(scratch);
    job.row_weight = (char *)job.cost + (size_t)job.rows * width;
    job.lse = job.rows ? tl_tensor_data(out[1]) : NULL;
    tl_cpu_run(k, tl_ceil_div(job.rows, job.per_task), forward_task, &job);
    store_loss(&job, out[0], (tl_loss_reduce)at->i[1]);
out:
    close_job(&job);
    tl_storage_unref(scratch);
    return st;
}

/* ---- backward ---------------------------------------------------------- */

static void backward_task(void *arg, int64_t task, int worker)
{
    const loss_job *job = arg;
    int64_t i = task * job->per_task, end = i + job->per_task;
    size_t bytes = (size_t)job->n * (job->wide ? 8 : 4);

    (void)worker;
    for (end = end < job->rows ? end : job->rows; i < end; i++) {
        tl_row_loss row = job->row;
        double g = tl_row_get(job->g, job->wide, job->g_rows ? i : 0);
        char *dx = job->dx + (size_t)i * bytes;

        row.target = target_of(job, i);
        if (row.target == job->ignore) {
            memset(dx, 0, bytes);
        } else {
            // exp(x - inf) is 0: without lse there is no share of softmax
            double lse = job->plain ? (double)INFINITY
                                    : tl_row_get(job->lse, job->wide, i);

            job->math->loss_grad(job->n, logits_of(job, i), lse, &row,
                                 g * job->scale, dx);
        }
    }
}

/* Sum of the weights of the rows that count. */
static tl_status total_weight(tl_kernel_ctx *k, const loss_job *job,
                              double *out)
{
    tl_storage *scratch;

    TL_TRY(tl_cpu_scratch(k, job->rows, job->wide ? 8 : 4, &scratch));
    for (int64_t i = 0; i < job->rows; i++) {
        int64_t y = target_of(job, i);

        tl_row_set(tl_storage_data(scratch), job->wide, i,
                   y == job->ignore ? 0 : weight_of(job, y));
    }
    *out = job->math->sum(job->rows, tl_storage_data(scratch));
    tl_storage_unref(scratch);
    return TL_OK;
}

/* g, logits, targets, lse, weight? */
tl_status tl_cpu_cross_entropy_grad(tl_kernel_ctx *k, tl_op op,
                                    tl_tensor *const *in, int nin,
                                    tl_tensor *const *out, int nout,
                                    const tl_attrs *at)
{
    tl_tensor *y = out[0];
    tl_storage *wide = NULL;
    const char *lse, *g;
    double weight;
    loss_job job;
    tl_dtype dtype;
    tl_status st;

    (void)op;
    (void)nout;
    TL_GOTO(st, open_job(k, &job, in[1], in[2], nin > 4 ? in[4] : NULL, at));
    if (y->numel == 0) {
        goto out;
    }
    dtype = job.wide ? TL_f64 : TL_f32;
    TL_GOTO(st, as_rows(k, &job, in[3], dtype, &lse));
    job.lse = (void *)(uintptr_t)lse;
    if (at->i[1] == TL_LOSS_MEAN) {
        TL_GOTO(st, total_weight(k, &job, &weight));
        job.scale = 1 / weight;
    }
    TL_GOTO(st, as_rows(k, &job, in[0], dtype, &g));
    job.g = g;
    job.g_rows = at->i[1] == TL_LOSS_NONE;
    job.dx = tl_tensor_data(y);
    if (y->dtype != dtype) {
        TL_GOTO(st, tl_cpu_scratch(k, y->numel, sizeof(float), &wide));
        job.dx = tl_storage_data(wide);
    }
    tl_cpu_run(k, tl_ceil_div(job.rows, job.per_task), backward_task, &job);
    if (wide) {
        tl_cpu_narrow(k, tl_storage_data(wide), y);
    }
out:
    close_job(&job);
    tl_storage_unref(wide);
    return st;
}
