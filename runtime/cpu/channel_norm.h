/* channel_norm.h - what the kernels of batch norm and group norm share: the
 * operands of a call, as numbers of the type of the arithmetic. */
#ifndef TL_CPU_CHANNEL_NORM_H
#define TL_CPU_CHANNEL_NORM_H

#include "runtime/cpu/plain.h"
#include "runtime/cpu/rowmath.h"

enum {
    TL_CHANNEL_LONG = 16, /* elements that are worth a call */
    TL_CHANNEL_SLABS = 16,
    TL_CHANNEL_MEMORY =
        512 /* elements that a reduction takes at full speed */
};

typedef struct tl_channels {
    tl_kernel_ctx *k;
    const tl_rowmath *math;
    bool wide;  /* double */
    bool batch; /* statistics of channels; else of groups of samples */
    int64_t n, c, s, groups;
    int64_t width; /* bytes of a number */
    const char *x, *g, *mean, *rstd;
    const char *w, *b;  /* [C] or NULL */
    const char *vec[6]; /* short rows: mean, rstd, w, b, ga, gb as vectors */
    char *y;            /* or dx */
    double *sums;       /* of rows: pairs (sum of g, of g x^); of slabs:
                            [slabs][2][C * S] */
    char *ga, *gb;      /* batch: [C] */
    void *to_mean, *to_m2; /* statistics on their way */
    char *rows;            /* a channel for each worker */
    int64_t per_task, slab;
    tl_plain own;
} tl_channels;

/* Sizes of x. */
void tl_channel_open(tl_channels *job, tl_kernel_ctx *k, const tl_tensor *x,
                     bool batch, const tl_attrs *at);

/* The elements of `t`, row-major. */
TL_MUST_USE tl_status tl_channel_numbers(tl_channels *job, const tl_tensor *t,
                                         const char **out);

/* Where the result is computed. */
TL_MUST_USE tl_status tl_channel_result(tl_channels *job, const tl_tensor *t);

/* vec[which][i] = v[i / S]: a vector along a sample. */
TL_MUST_USE tl_status tl_channel_spread(tl_channels *job, const char *v,
                                        int which);

static inline const char *tl_channel_at(const tl_channels *job, const char *v,
                                        int64_t i)
{
    return v ? v + i * job->width : NULL;
}

/* What channel c of sample n has (long rows). */
static inline tl_row_stats tl_channel_stats_of(const tl_channels *job,
                                               int64_t n, int64_t c)
{
    int64_t i = job->batch ? c : n * job->groups + c / (job->c / job->groups);

    return (tl_row_stats){.mean = tl_channel_at(job, job->mean, i),
                          .rstd = tl_channel_at(job, job->rstd, i),
                          .w = tl_channel_at(job, job->w, c),
                          .b = tl_channel_at(job, job->b, c)};
}

/* All of a sample, for batch norm (short rows). */
static inline tl_row_stats tl_channel_vectors(const tl_channels *job)
{
    return (tl_row_stats){job->vec[0],
                          job->vec[1],
                          job->vec[2],
                          job->vec[3],
                          job->vec[4],
                          job->vec[5],
                          1};
}

#endif
