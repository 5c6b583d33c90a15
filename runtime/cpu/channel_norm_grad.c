/* channel_norm_grad.c - gradients of batch norm and group norm: dx, dweight,
 * dbias; operands are those of op/channels.c, rows those of channel_norm.c. */
#include "runtime/cpu/channel_norm.h"

#include <string.h>

#include "runtime/cpu/scalar.h"

static double weight(const tl_channels *job, int64_t c)
{
    return job->w ? tl_row_get(job->w, job->wide, c) : 1;
}

/* Sums of rows [task * per_task, ...), batch norm. */
static void long_sums(void *arg, int64_t task, int worker)
{
    const tl_channels *job = arg;
    int64_t r = task * job->per_task, end = r + job->per_task;

    (void)worker;
    for (end = end < job->n * job->c ? end : job->n * job->c; r < end; r++) {
        tl_row_stats s = tl_channel_stats_of(job, r / job->c, r % job->c);
        int64_t from = r * job->s * job->width;

        job->math->affine_sums(job->s, job->g + from, job->x + from, &s,
                               job->sums + 2 * r);
    }
}

/* dx of the same rows. */
static void long_backward(void *arg, int64_t task, int worker)
{
    const tl_channels *job = arg;
    int64_t r = task * job->per_task, end = r + job->per_task;

    (void)worker;
    for (end = end < job->n * job->c ? end : job->n * job->c; r < end; r++) {
        tl_row_stats s = tl_channel_stats_of(job, r / job->c, r % job->c);
        int64_t from = r * job->s * job->width;

        s.ga = tl_channel_at(job, job->ga, r % job->c);
        s.gb = tl_channel_at(job, job->gb, r % job->c);
        job->math->affine_grad(job->s, job->g + from, job->x + from, &s,
                               job->y + from);
    }
}

/* Both for one group of one sample. */
static void group_backward(const tl_channels *job, int64_t n, int64_t group)
{
    int64_t per = job->c / job->groups, first = group * per;
    double *sums = job->sums + 2 * (n * job->c + first), a = 0, b = 0;
    double numbers[2] = {0}; /* ga, gb in the type of the arithmetic */

    for (int64_t i = 0; i < per; i++) {
        tl_row_stats s = tl_channel_stats_of(job, n, first + i);
        int64_t from = (n * job->c + first + i) * job->s * job->width;

        job->math->affine_sums(job->s, job->g + from, job->x + from, &s,
                               sums + 2 * i);
        a += tl_zmul_f64(sums[2 * i], weight(job, first + i));
        b += tl_zmul_f64(sums[2 * i + 1], weight(job, first + i));
    }
    tl_row_set(&numbers[0], job->wide, 0, a / (double)(per * job->s));
    tl_row_set(&numbers[1], job->wide, 0, b / (double)(per * job->s));
    for (int64_t i = 0; i < per; i++) {
        tl_row_stats s = tl_channel_stats_of(job, n, first + i);
        int64_t from = (n * job->c + first + i) * job->s * job->width;

        s.ga = &numbers[0];
        s.gb = &numbers[1];
        job->math->affine_grad(job->s, job->g + from, job->x + from, &s,
                               job->y + from);
    }
}

static void group_task(void *arg, int64_t task, int worker)
{
    const tl_channels *job = arg;
    int64_t r = task * job->per_task, end = r + job->per_task;
    int64_t all = job->n * job->groups;

    (void)worker;
    for (end = end < all ? end : all; r < end; r++) {
        group_backward(job, r / job->groups, r % job->groups);
    }
}

/* Sums of a slab of samples, element by element; dx of groups as well. */
static void slab_task(void *arg, int64_t task, int worker)
{
    const tl_channels *job = arg;
    int64_t row = job->c * job->s, part = row / job->groups;
    int64_t n = task * job->slab, end = n + job->slab;
    double *sums = job->sums + 2 * row * task;

    (void)worker;
    memset(sums, 0, (size_t)(2 * row) * sizeof *sums);
    for (end = end < job->n ? end : job->n; n < end; n++) {
        for (int64_t g = 0; g < job->groups; g++) {
            int64_t i = n * job->groups + g;
            int64_t from = (n * row + g * part) * job->width;
            tl_row_stats s =
                job->batch ? tl_channel_vectors(job)
                           : tl_channel_stats_of(job, n, g * part / job->s);

            job->math->affine_add(part, job->g + from, job->x + from, &s,
                                  sums + 2 * g * part);
            if (!job->batch) {
                job->math->normalise_grad(
                    part, job->g + from, job->x + from,
                    tl_row_get(job->mean, job->wide, i),
                    tl_row_get(job->rstd, job->wide, i),
                    tl_channel_at(job, job->vec[2], g * part), job->y + from);
            }
        }
    }
}

/* dx of samples, batch norm. */
static void short_backward(void *arg, int64_t task, int worker)
{
    const tl_channels *job = arg;
    int64_t row = job->c * job->s;
    int64_t n = task * job->per_task, end = n + job->per_task;
    tl_row_stats s = tl_channel_vectors(job);

    (void)worker;
    for (end = end < job->n ? end : job->n; n < end; n++) {
        int64_t from = n * row * job->width;

        job->math->affine_grad(row, job->g + from, job->x + from, &s,
                               job->y + from);
    }
}

/* Sum number `which` (0: of g, 1: of g x^) of channel c over all rows. */
static double channel_sum(const tl_channels *job, int64_t c, int which)
{
    int64_t row = job->c * job->s, part = row / job->groups;
    double sum = 0;

    if (job->s >= TL_CHANNEL_LONG) {
        for (int64_t n = 0; n < job->n; n++) {
            sum += job->sums[2 * (n * job->c + c) + which];
        }
        return sum;
    }
    for (int64_t t = 0; t < tl_ceil_div(job->n, job->slab); t++) {
        for (int64_t i = c * job->s; i < (c + 1) * job->s; i++) {
            sum += job->sums[2 * row * t + 2 * (i - i % part) + i % part +
                             which * part];
        }
    }
    return sum;
}

/* dweight and dbias; for batch norm what dx needs of them. */
static void set_sums(const tl_channels *job, tl_tensor *dw, tl_tensor *db)
{
    for (int64_t c = 0; c < job->c; c++) {
        double b = channel_sum(job, c, 0), w = channel_sum(job, c, 1);
        double count = (double)(job->n * job->s);

        tl_tensor_set_f(db, c, b);
        tl_tensor_set_f(dw, c, w);
        if (job->batch) {
            tl_row_set(job->ga, job->wide, c,
                       tl_zmul_f64(b / count, weight(job, c)));
            tl_row_set(job->gb, job->wide, c,
                       tl_zmul_f64(w / count, weight(job, c)));
        }
    }
}

static tl_status run_long(tl_channels *job, tl_tensor *const *out)
{
    int64_t rows = job->n * job->c, all = job->n * job->groups;
    void *sums;

    TL_TRY(tl_plain_scratch(&job->own, 2 * rows, sizeof(double), &sums));
    job->sums = sums;
    job->per_task = tl_cpu_rows_a_task(2 * job->s);
    if (job->batch) {
        tl_cpu_run(job->k, tl_ceil_div(rows, job->per_task), long_sums, job);
        set_sums(job, out[1], out[2]);
        tl_cpu_run(job->k, tl_ceil_div(rows, job->per_task), long_backward,
                   job);
        return TL_OK;
    }
    job->per_task = tl_cpu_rows_a_task(4 * job->s * job->c / job->groups);
    tl_cpu_run(job->k, tl_ceil_div(all, job->per_task), group_task, job);
    set_sums(job, out[1], out[2]);
    return TL_OK;
}

static tl_status run_short(tl_channels *job, tl_tensor *const *out)
{
    int64_t slabs = tl_ceil_div(job->n, job->slab), row = job->c * job->s;
    void *sums;

    TL_TRY(
        tl_plain_scratch(&job->own, 2 * row * slabs, sizeof(double), &sums));
    job->sums = sums;
    if (job->batch) {
        TL_TRY(tl_channel_spread(job, job->mean, 0));
        TL_TRY(tl_channel_spread(job, job->rstd, 1));
    }
    TL_TRY(tl_channel_spread(job, job->w, 2));
    if (job->n * row < TL_CPU_GRAIN) { /* not worth a fork */
        for (int64_t t = 0; t < slabs; t++) {
            slab_task(job, t, 0);
        }
    } else {
        tl_cpu_run(job->k, slabs, slab_task, job);
    }
    set_sums(job, out[1], out[2]);
    if (job->batch) {
        TL_TRY(tl_channel_spread(job, job->ga, 4));
        TL_TRY(tl_channel_spread(job, job->gb, 5));
        job->per_task = tl_cpu_rows_a_task(row);
        tl_cpu_run(job->k, tl_ceil_div(job->n, job->per_task), short_backward,
                   job);
    }
    return TL_OK;
}

static tl_status nothing_back(tl_tensor *const *out)
{
    for (int r = 1; r < 3; r++) {
        for (int64_t c = 0; c < out[r]->numel; c++) {
            tl_tensor_set_f(out[r], c, 0);
        }
    }
    return TL_OK;
}

static tl_status backward(tl_kernel_ctx *k, bool batch, tl_tensor *const *in,
                          int nin, tl_tensor *const *out,
                          const tl_attrs *attrs)
{
    tl_channels job;
    void *memory;
    tl_status st = TL_OK;

    if (in[1]->numel == 0) {
        return nothing_back(out);
    }
    tl_channel_open(&job, k, in[1], batch, attrs);
    TL_GOTO(st, tl_channel_numbers(&job, in[0], &job.g));
    TL_GOTO(st, tl_channel_numbers(&job, in[1], &job.x));
    TL_GOTO(st, tl_channel_numbers(&job, in[2], &job.mean));
    TL_GOTO(st, tl_channel_numbers(&job, in[3], &job.rstd));
    if (nin > 4) {
        TL_GOTO(st, tl_channel_numbers(&job, in[4], &job.w));
    }
    TL_GOTO(st, tl_channel_result(&job, out[0]));
    if (batch) {
        TL_GOTO(st, tl_plain_scratch(&job.own, 2 * job.c, (size_t)job.width,
                                     &memory));
        job.ga = memory;
        job.gb = job.ga + job.c * job.width;
    }
    TL_GOTO(st, job.s >= TL_CHANNEL_LONG ? run_long(&job, out)
                                         : run_short(&job, out));
    tl_plain_round(&job.own, out[0], job.y);
out:
    tl_plain_close(&job.own);
    return st;
}

tl_status tl_cpu_batch_norm_grad(tl_kernel_ctx *k, tl_op op,
                                 tl_tensor *const *in, int nin,
                                 tl_tensor *const *out, int nout,
                                 const tl_attrs *at)
{
    (void)op;
    (void)nout;
    return backward(k, true, in, nin, out, at);
}

tl_status tl_cpu_group_norm_grad(tl_kernel_ctx *k, tl_op op,
                                 tl_tensor *const *in, int nin,
                                 tl_tensor *const *out, int nout,
                                 const tl_attrs *at)
{
    (void)op;
    (void)nout;
    return backward(k, false, in, nin, out, at);
}
