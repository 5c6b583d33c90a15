/* channel_norm.c - batch norm and group norm, forward and backward.
 * Inputs and attributes are those of op/channels.c.
 *
 * x is [N, C, S].  Statistics have the bits of the rows `mean` and `var`.
 * Where S is TL_CHANNEL_LONG or more, a row is the S elements of one channel
 * of one sample, with numbers for its statistics and weights; else it is a
 * whole sample (or one of its groups), with vectors of them.
 *
 * Sums of gradients: each row along the tree, the rows of a channel in order
 * of samples in double; of short rows, element by element within each of at
 * most TL_CHANNEL_SLABS parts of the samples, in double. */
#include "runtime/cpu/channel_norm.h"

#include <math.h>
#include <string.h>

/* ---- operands ------------------------------------------------------------ */

void tl_channel_open(tl_channels *job, tl_kernel_ctx *k, const tl_tensor *x,
                     bool batch, const tl_attrs *at)
{
    *job = (tl_channels){.k = k,
                         .math = tl_rowmath_get(x->dtype),
                         .wide = x->dtype == TL_f64,
                         .batch = batch,
                         .n = x->size[0],
                         .c = x->size[1]};
    job->width = job->wide ? 8 : 4;
    job->s = 1;
    for (int i = 2; i < x->rank; i++) {
        job->s *= x->size[i];
    }
    job->groups = batch ? 1 : at->i[0] != 0 ? at->i[0] : job->c;
    job->slab = tl_ceil_div(job->n, TL_CHANNEL_SLABS);
    tl_plain_open(&job->own, k);
}

tl_status tl_channel_numbers(tl_channels *job, const tl_tensor *t,
                             const char **out)
{
    const void *data;

    TL_TRY(tl_plain_in(&job->own, t, &data));
    *out = data;
    return TL_OK;
}

tl_status tl_channel_result(tl_channels *job, const tl_tensor *t)
{
    void *data;

    TL_TRY(tl_plain_out(&job->own, t, &data));
    job->y = data;
    return TL_OK;
}

/* v[i / S] for all i, as a vector along a sample. */
tl_status tl_channel_spread(tl_channels *job, const char *v, int which)
{
    int64_t n = job->c * job->s;
    void *memory;
    char *to;

    job->vec[which] = v;
    if (!v || job->s == 1) {
        return TL_OK;
    }
    TL_TRY(tl_plain_scratch(&job->own, n, (size_t)job->width, &memory));
    to = memory;
    for (int64_t i = 0; i < n; i++) {
        memcpy(to + i * job->width, v + i / job->s * job->width,
               (size_t)job->width);
    }
    job->vec[which] = to;
    return TL_OK;
}

/* ---- forward ------------------------------------------------------------- */

/* Rows of `count` numbers, each of one group of a sample. */
static void group_statistics(void *arg, int64_t task, int worker)
{
    const tl_channels *job = arg;
    int64_t all = job->n * job->groups, count = job->c / job->groups * job->s;
    int64_t r = task * job->per_task, end = r + job->per_task;

    (void)worker;
    for (end = end < all ? end : all; r < end; r++) {
        double mean, m2;

        job->math->mean_m2(count, job->x + r * count * job->width, &mean,
                           &m2);
        tl_row_set(job->to_mean, job->wide, r, mean);
        tl_row_set(job->to_m2, job->wide, r, m2);
    }
}

/* The numbers of a channel, brought together: so the tree is that of the
 * reduction over the other axes. */
static void batch_statistics(void *arg, int64_t task, int worker)
{
    const tl_channels *job = arg;
    int64_t count = job->n * job->s, step = job->s * job->width;
    int64_t c = task * job->per_task, end = c + job->per_task;
    char *row = job->rows + worker * count * job->width;

    for (end = end < job->c ? end : job->c; c < end; c++) {
        double mean, m2;

        for (int64_t n = 0; n < job->n; n++) {
            memcpy(row + n * step, job->x + (n * job->c + c) * step,
                   (size_t)step);
        }
        job->math->mean_m2(count, row, &mean, &m2);
        tl_row_set(job->to_mean, job->wide, c, mean);
        tl_row_set(job->to_m2, job->wide, c, m2);
    }
}

/* The same by the rows `mean` and `var`, which go over memory as it lies. */
static tl_status reduce_statistics(tl_channels *job, const tl_tensor *x,
                                   int64_t count, tl_tensor *mean,
                                   tl_tensor *m2)
{
    int64_t dims[6] = {job->n, job->c, job->s};
    tl_tensor view = *x, *in = &view;
    tl_attrs a;

    tl_row_major(3, dims, dims + 3);
    view.rank = 3;
    view.size = dims;
    view.stride = dims + 3;
    view.flags = TL_TENSOR_CONTIGUOUS;
    if (job->own.n > 0) { /* x was copied */
        view.storage = job->own.own[0];
        view.offset = 0;
        view.dtype = job->wide ? TL_f64 : TL_f32;
    }
    tl_attrs_init(&a);
    a.axes = 5;
    TL_TRY(job->k->device->kernel[TL_OP_mean](job->k, TL_OP_mean, &in, 1,
                                              &mean, 1, &a));
    a.f[0] = (double)(count - 1); // M2 / (count - that) is M2
    return job->k->device->kernel[TL_OP_var](job->k, TL_OP_var, &in, 1, &m2,
                                             1, &a);
}

/* Mean and M2 of what belongs together, into `mean` and `m2`. */
static tl_status statistics(tl_channels *job, const tl_tensor *x,
                            int64_t count, tl_tensor *mean, tl_tensor *m2)
{
    int64_t rows = mean->numel;
    void *memory;

    if (job->batch && (job->s == 1 || job->s >= TL_CHANNEL_MEMORY)) {
        return reduce_statistics(job, x, count, mean, m2);
    }
    if (job->batch) {
        TL_TRY(tl_plain_scratch(&job->own,
                                count * tl_threads_count(job->k->threads),
                                (size_t)job->width, &memory));
        job->rows = memory;
    }
    job->to_mean = tl_tensor_data(mean);
    job->to_m2 = tl_tensor_data(m2);
    job->per_task = tl_cpu_rows_a_task(2 * count);
    tl_cpu_run(job->k, tl_ceil_div(rows, job->per_task),
               job->batch ? batch_statistics : group_statistics, job);
    return TL_OK;
}

/* 1 / sqrt(M2 / count + eps) in place of M2; the variance to `var`. */
static void set_rstd(const tl_channels *job, tl_tensor *rstd, tl_tensor *var,
                     int64_t count, double eps)
{
    void *to = tl_tensor_data(rstd);

    for (int64_t i = 0; i < rstd->numel; i++) {
        double m2 = tl_row_get(to, job->wide, i);

        if (var) {
            tl_row_set(tl_tensor_data(var), job->wide, i,
                       m2 / (double)(count - 1));
        }
        if (job->wide) {
            tl_row_set(to, job->wide, i, 1 / sqrt(m2 / (double)count + eps));
        } else {
            float v = (float)(m2 / (double)count) + (float)eps;

            tl_row_set(to, job->wide, i, (double)(1 / sqrtf(v)));
        }
    }
}

/* Rows [task * per_task, ...) of all N * C. */
static void long_forward(void *arg, int64_t task, int worker)
{
    const tl_channels *job = arg;
    int64_t r = task * job->per_task, end = r + job->per_task;

    (void)worker;
    for (end = end < job->n * job->c ? end : job->n * job->c; r < end; r++) {
        tl_row_stats s = tl_channel_stats_of(job, r / job->c, r % job->c);
        int64_t from = r * job->s * job->width;

        job->math->affine(job->s, job->x + from, &s, job->y + from);
    }
}

/* Samples [task * per_task, ...). */
static void short_forward(void *arg, int64_t task, int worker)
{
    const tl_channels *job = arg;
    int64_t row = job->c * job->s, part = row / job->groups;
    int64_t n = task * job->per_task, end = n + job->per_task;
    tl_row_stats s = tl_channel_vectors(job);

    (void)worker;
    for (end = end < job->n ? end : job->n; n < end; n++) {
        int64_t from = n * row * job->width;

        if (job->batch) {
            job->math->affine(row, job->x + from, &s, job->y + from);
            continue;
        }
        for (int64_t g = 0; g < job->groups; g++) {
            int64_t i = n * job->groups + g, f = from + g * part * job->width;

            job->math->normalise(
                part, job->x + f, tl_row_get(job->mean, job->wide, i),
                tl_row_get(job->rstd, job->wide, i),
                tl_channel_at(job, job->vec[2], g * part),
                tl_channel_at(job, job->vec[3], g * part), job->y + f);
        }
    }
}

static tl_status run_forward(tl_channels *job)
{
    if (job->s >= TL_CHANNEL_LONG) {
        job->per_task = tl_cpu_rows_a_task(job->s);
        tl_cpu_run(job->k, tl_ceil_div(job->n * job->c, job->per_task),
                   long_forward, job);
        return TL_OK;
    }
    if (job->batch) {
        TL_TRY(tl_channel_spread(job, job->mean, 0));
        TL_TRY(tl_channel_spread(job, job->rstd, 1));
    }
    TL_TRY(tl_channel_spread(job, job->w, 2));
    TL_TRY(tl_channel_spread(job, job->b, 3));
    job->per_task = tl_cpu_rows_a_task(job->c * job->s);
    tl_cpu_run(job->k, tl_ceil_div(job->n, job->per_task), short_forward,
               job);
    return TL_OK;
}

/* Nothing has no statistics. */
static tl_status of_nothing(tl_tensor *const *out, int nout)
{
    for (int r = 1; r < nout; r++) {
        for (int64_t i = 0; i < out[r]->numel; i++) {
            tl_tensor_set_f(out[r], i, (double)NAN);
        }
    }
    return TL_OK;
}

static tl_status forward(tl_kernel_ctx *k, bool batch, tl_tensor *const *in,
                         int nin, tl_tensor *const *out, int nout,
                         const tl_attrs *attrs)
{
    tl_channels job;
    int64_t count;
    tl_status st = TL_OK;

    if (in[0]->numel == 0) {
        return of_nothing(out, nout);
    }
    tl_channel_open(&job, k, in[0], batch, attrs);
    count = in[0]->numel / out[1]->numel;
    TL_GOTO(st, tl_channel_numbers(&job, in[0], &job.x));
    TL_GOTO(st, statistics(&job, in[0], count, out[1], out[2]));
    set_rstd(&job, out[2], batch ? out[3] : NULL, count, attrs->f[0]);
    job.mean = tl_tensor_data(out[1]);
    job.rstd = tl_tensor_data(out[2]);
    if (nin == 3 || (nin == 2 && !attrs->flag)) {
        TL_GOTO(st, tl_channel_numbers(&job, in[1], &job.w));
    }
    if (nin == 3 || (nin == 2 && attrs->flag)) {
        TL_GOTO(st, tl_channel_numbers(&job, in[nin - 1], &job.b));
    }
    TL_GOTO(st, tl_channel_result(&job, out[0]));
    TL_GOTO(st, run_forward(&job));
    tl_plain_round(&job.own, out[0], job.y);
out:
    tl_plain_close(&job.own);
    return st;
}

tl_status tl_cpu_batch_norm(tl_kernel_ctx *k, tl_op op, tl_tensor *const *in,
                            int nin, tl_tensor *const *out, int nout,
                            const tl_attrs *at)
{
    (void)op;
    return forward(k, true, in, nin, out, nout, at);
}

tl_status tl_cpu_group_norm(tl_kernel_ctx *k, tl_op op, tl_tensor *const *in,
                            int nin, tl_tensor *const *out, int nout,
                            const tl_attrs *at)
{
    (void)op;
    return forward(k, false, in, nin, out, nout, at);
}
