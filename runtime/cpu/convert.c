/* convert.c - 16-bit floats to and from rows of f32, for kernels that compute
 * in f32 and round once. */
#include "runtime/cpu/kern.h"

typedef struct convert_job {
    const uint16_t *from16;
    uint16_t *to16;
    const float *from;
    float *to;
    bool f16;
    int64_t n;
} convert_job;

static void widen_task(void *arg, int64_t task, int worker)
{
    const convert_job *j = arg;
    int64_t i = task * TL_CPU_GRAIN, end = i + TL_CPU_GRAIN;

    (void)worker;
    for (end = end < j->n ? end : j->n; i < end; i++) {
        j->to[i] = j->f16 ? tl_f16_to_f32(j->from16[i])
                          : tl_bf16_to_f32(j->from16[i]);
    }
}

static void narrow_task(void *arg, int64_t task, int worker)
{
    const convert_job *j = arg;
    int64_t i = task * TL_CPU_GRAIN, end = i + TL_CPU_GRAIN;

    (void)worker;
    for (end = end < j->n ? end : j->n; i < end; i++) {
        j->to16[i] = j->f16 ? tl_f32_to_f16(j->from[i])
                            : tl_f32_to_bf16(j->from[i]);
    }
}

tl_status tl_cpu_widen(tl_kernel_ctx *k, const tl_tensor *t, float *to)
{
    convert_job job = {.to = to, .f16 = t->dtype == TL_f16, .n = t->numel};
    tl_storage *words = NULL;
    tl_layout row_major;

    if (t->numel == 0) {
        return TL_OK;
    }
    job.from16 = tl_tensor_data(t);
    if (!tl_tensor_contiguous(t)) {
        TL_TRY(tl_cpu_scratch(k, t->numel, sizeof(uint16_t), &words));
        tl_layout_row_major(&row_major, t->rank, t->size);
        tl_cpu_copy_elements(k, sizeof(uint16_t), t->rank, t->size,
                             tl_storage_data(words), row_major.stride,
                             tl_tensor_data(t), t->stride);
        job.from16 = tl_storage_data(words);
    }
    tl_cpu_run(k, tl_ceil_div(t->numel, TL_CPU_GRAIN), widen_task, &job);
    tl_storage_unref(words);
    return TL_OK;
}

void tl_cpu_narrow(tl_kernel_ctx *k, const float *from, tl_tensor *t)
{
    convert_job job = {.from = from, .to16 = tl_tensor_data(t),
                       .f16 = t->dtype == TL_f16, .n = t->numel};

    tl_cpu_run(k, tl_ceil_div(t->numel, TL_CPU_GRAIN), narrow_task, &job);
}
