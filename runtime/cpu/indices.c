/* indices.c - index tensors as checked numbers. */
#include "runtime/cpu/indices.h"

#include <stdatomic.h>

typedef struct index_job {
    const char *from; /* row-major */
    tl_dtype dtype;
    int64_t *to;
    int64_t n;
    const tl_index_rule *rule;
    _Atomic int64_t bad; /* first place that breaks the rule, or n */
} index_job;

static void note_bad(index_job *job, int64_t at)
{
    int64_t seen = atomic_load_explicit(&job->bad, memory_order_relaxed);

    while (at < seen && !atomic_compare_exchange_weak_explicit(
                            &job->bad, &seen, at, memory_order_relaxed,
                            memory_order_relaxed)) {
    }
}

/* The same of i64 without a branch; false: one of them is bad. */
static bool plain_indices(const index_job *job, int64_t i, int64_t end)
{
    const int64_t *from = (const int64_t *)job->from;
    uint64_t bound = (uint64_t)job->rule->bound, bad = 0;
    uint64_t wrap = job->rule->wrap ? bound : 0;

    for (; i < end; i++) {
        uint64_t x = (uint64_t)from[i];

        x += wrap & (uint64_t)(from[i] >> 63);
        bad |= (x >= bound);
        job->to[i] = (int64_t)x;
    }
    return bad == 0;
}

static void index_task(void *arg, int64_t task, int worker)
{
    index_job *job = arg;
    int64_t i = task * TL_CPU_GRAIN, end = i + TL_CPU_GRAIN;

    (void)worker;
    end = end < job->n ? end : job->n;
    if (job->dtype == TL_i64 && plain_indices(job, i, end)) {
        return;
    }
    for (; i < end; i++) {
        int64_t x = tl_cpu_load_int(job->from, job->dtype, i);

        if (x < 0 && job->rule->wrap) {
            x += job->rule->bound;
        }
        if (x < 0 || x >= job->rule->bound) {
            note_bad(job, i);
        }
        job->to[i] = x;
    }
}

static tl_status fail_index(tl_kernel_ctx *k, const tl_tensor *t,
                            const index_job *job)
{
    const tl_index_rule *rule = job->rule;
    int64_t value = tl_cpu_load_int(job->from, job->dtype, job->bad);

    if (rule->code == TL_E0406) {
        return tl_fail(k->diag, rule->code,
                       "id %lld at %s, table has %lld rows", (long long)value,
                       tl_cpu_place(t, job->bad).s, (long long)rule->bound);
    }
    return tl_fail(k->diag, rule->code, "%s %lld at %s, valid %lld..%lld",
                   rule->what, (long long)value, tl_cpu_place(t, job->bad).s,
                   (long long)(rule->wrap ? -rule->bound : 0),
                   (long long)rule->bound - 1);
}

/* The elements of `t` in row-major order; *copy owns them if it must. */
static tl_status row_major(tl_kernel_ctx *k, const tl_tensor *t,
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

tl_status tl_cpu_indices(tl_kernel_ctx *k, const tl_tensor *t,
                         const tl_index_rule *rule, tl_storage **out)
{
    index_job job = {.dtype = t->dtype, .n = t->numel, .rule = rule};
    tl_storage *copy = NULL, *numbers = NULL;
    tl_status st;

    TL_GOTO(st, tl_cpu_scratch(k, t->numel, sizeof(int64_t), &numbers));
    if (t->numel > 0) {
        TL_GOTO(st, row_major(k, t, &job.from, &copy));
        job.to = tl_storage_data(numbers);
        atomic_init(&job.bad, job.n);
        tl_cpu_run(k, tl_ceil_div(job.n, TL_CPU_GRAIN), index_task, &job);
        if (job.bad < job.n) {
            st = fail_index(k, t, &job);
            goto out;
        }
    }
    *out = numbers;
    numbers = NULL;
out:
    tl_storage_unref(copy);
    tl_storage_unref(numbers);
    return st;
}
