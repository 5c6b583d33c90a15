/* lines.c - kernels that work on whole lines along one axis. */
#include "runtime/cpu/lines.h"

#include <string.h>

enum { GROUP = 16 }; /* neighbouring lines that are brought together */

typedef struct lines_job {
    const tl_lines *l;
    bool wide; /* double */
    int64_t outer, n, inner, groups, per_task;
    const char *in[TL_LINE_OPERANDS];
    char *out[TL_LINE_OPERANDS];
    tl_dtype in_dtype[TL_LINE_OPERANDS], out_dtype[TL_LINE_OPERANDS];
    char *scratch;
    int64_t scratch_bytes; /* of a worker */
} lines_job;

static double load(const char *data, tl_dtype dtype, int64_t at)
{
    return dtype == TL_f64 ? ((const double *)data)[at]
                           : (double)tl_cpu_load_f32(data, dtype, at);
}

/* Are the rows of an operand used where they lie? */
static bool direct(const lines_job *job, tl_dtype dtype)
{
    return job->inner == 1 && dtype == (job->wide ? TL_f64 : TL_f32);
}

/* Lines [0, count) from `base` on into rows of n. */
static void gather_rows(const lines_job *job, const char *data,
                        tl_dtype dtype, int64_t base, int64_t count,
                        char *rows)
{
    int width = job->wide ? 8 : 4;

    if (dtype == (job->wide ? TL_f64 : TL_f32)) {
        tl_cpu_turn(width, count, job->n, rows, job->n, data + base * width,
                    job->inner);
        return;
    }
    for (int64_t j = 0; j < job->n; j++) {
        int64_t at = base + j * job->inner;

        for (int64_t c = 0; c < count; c++) {
            if (job->wide) {
                ((double *)rows)[c * job->n + j] = load(data, dtype, at + c);
            } else {
                ((float *)rows)[c * job->n + j] =
                    tl_cpu_load_f32(data, dtype, at + c);
            }
        }
    }
}

static void scatter_rows(const lines_job *job, char *data, tl_dtype dtype,
                         int64_t base, int64_t count, const char *rows)
{
    int width = job->wide ? 8 : 4;

    if (dtype == (job->wide ? TL_f64 : TL_f32)) {
        tl_cpu_turn(width, job->n, count, data + base * width, job->inner,
                    rows, job->n);
        return;
    }
    for (int64_t j = 0; j < job->n; j++) {
        int64_t at = base + j * job->inner;

        for (int64_t c = 0; c < count; c++) {
            if (dtype == TL_f64) {
                ((double *)data)[at + c] =
                    ((const double *)rows)[c * job->n + j];
            } else {
                tl_cpu_store_f32(data, dtype, at + c,
                                 ((const float *)rows)[c * job->n + j]);
            }
        }
    }
}

/* A group of lines of one outer index: gather, compute, scatter. */
static void run_group(const lines_job *job, int64_t o, int64_t i,
                      char *scratch)
{
    const tl_lines *l = job->l;
    int64_t count = job->inner - i < GROUP ? job->inner - i : GROUP;
    int64_t base = o * job->n * job->inner + i;
    int64_t width = job->wide ? 8 : 4, row = job->n * width;
    char *in[TL_LINE_OPERANDS], *out[TL_LINE_OPERANDS];
    tl_line_fn *fn = job->wide ? l->f64 : l->f32;

    for (int a = 0; a < l->nin; a++, scratch += GROUP * row) {
        in[a] = scratch;
        if (direct(job, job->in_dtype[a])) {
            in[a] = (char *)(uintptr_t)job->in[a] + base * width;
        } else {
            gather_rows(job, job->in[a], job->in_dtype[a], base, count,
                        scratch);
        }
    }
    for (int r = 0; r < l->nout; r++, scratch += GROUP * row) {
        out[r] = direct(job, job->out_dtype[r]) ? job->out[r] + base * width
                                                : scratch;
    }
    for (int64_t c = 0; c < count; c++) {
        const void *from[TL_LINE_OPERANDS] = {NULL};
        void *to[TL_LINE_OPERANDS] = {NULL};

        for (int a = 0; a < l->nin; a++) {
            from[a] = in[a] + c * row;
        }
        for (int r = 0; r < l->nout; r++) {
            to[r] = out[r] + c * row;
        }
        fn(l->arg, o * job->inner + i + c, job->n, from, to);
    }
    for (int r = 0; r < l->nout; r++) {
        if (!direct(job, job->out_dtype[r])) {
            scatter_rows(job, job->out[r], job->out_dtype[r], base, count,
                         out[r]);
        }
    }
}

static void group_task(void *arg, int64_t task, int worker)
{
    const lines_job *job = arg;
    int64_t g = task * job->per_task, end = g + job->per_task;
    char *scratch = job->scratch + worker * job->scratch_bytes;

    end = end < job->outer * job->groups ? end : job->outer * job->groups;
    for (; g < end; g++) {
        run_group(job, g / job->groups, g % job->groups * GROUP, scratch);
    }
}

/* The operand row-major; *copy owns what had to be made. */
static tl_status set_operand(tl_kernel_ctx *k, const tl_tensor *t,
                             const char **data, tl_storage **copy)
{
    size_t width = tl_dtype_size(t->dtype);
    tl_layout to;

    *data = tl_tensor_data(t);
    if (tl_tensor_contiguous(t)) {
        return TL_OK;
    }
    TL_TRY(tl_cpu_scratch(k, t->numel, width, copy));
    tl_layout_row_major(&to, t->rank, t->size);
    tl_cpu_copy_elements(k, (int)width, t->rank, t->size,
                         tl_storage_data(*copy), to.stride, *data, t->stride);
    *data = tl_storage_data(*copy);
    return TL_OK;
}

static void set_sizes(lines_job *job, const tl_tensor *t)
{
    const tl_lines *l = job->l;
    int first = l->trailing ? t->rank - l->trailing : l->axis;
    int end = l->trailing ? t->rank : l->axis + 1;

    job->outer = job->n = job->inner = 1;
    for (int i = 0; i < t->rank; i++) {
        int64_t *part = i < first ? &job->outer
                                  : i < end ? &job->n : &job->inner;

        *part *= t->size[i];
    }
    job->groups = tl_ceil_div(job->inner, GROUP);
    job->per_task = tl_cpu_rows_a_task(
        4 * job->n * (job->inner < GROUP ? job->inner : GROUP));
}

tl_status tl_cpu_run_lines(tl_kernel_ctx *k, const tl_lines *l)
{
    lines_job job = {.l = l, .wide = l->in[0]->dtype == TL_f64};
    tl_storage *copy[TL_LINE_OPERANDS] = {NULL}, *scratch = NULL;
    int64_t workers = tl_threads_count(k->threads);
    tl_status st = TL_OK;

    if (l->in[0]->numel == 0) {
        return TL_OK;
    }
    set_sizes(&job, l->in[0]);
    for (int a = 0; a < l->nin; a++) {
        job.in_dtype[a] = l->in[a]->dtype;
        TL_GOTO(st, set_operand(k, l->in[a], &job.in[a], &copy[a]));
    }
    for (int r = 0; r < l->nout; r++) {
        job.out_dtype[r] = l->out[r]->dtype;
        job.out[r] = tl_tensor_data(l->out[r]);
    }
    job.scratch_bytes = (l->nin + l->nout) * GROUP * job.n * 8;
    if (job.inner == 1 && tl_dtype_arith(job.in_dtype[0]) == job.in_dtype[0]) {
        job.scratch_bytes = 0; // every row is used where it lies
    }
    TL_GOTO(st, tl_cpu_scratch(k, workers, (size_t)job.scratch_bytes,
                               &scratch));
    job.scratch = tl_storage_data(scratch);
    tl_cpu_run(k, tl_ceil_div(job.outer * job.groups, job.per_task),
               group_task, &job);
out:
    for (int a = 0; a < l->nin; a++) {
        tl_storage_unref(copy[a]);
    }
    tl_storage_unref(scratch);
    return st;
}
