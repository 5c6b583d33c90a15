/* plain.c - see plain.h. */
#include "runtime/cpu/plain.h"

#include <string.h>

#include "runtime/base/check.h"

static bool is_low(const tl_tensor *t)
{
    return t->dtype == TL_f16 || t->dtype == TL_bf16;
}

void tl_plain_close(tl_plain *p)
{
    for (int i = 0; i < p->n; i++) {
        tl_storage_unref(p->own[i]);
    }
    p->n = 0;
}

tl_status tl_plain_scratch(tl_plain *p, int64_t count, size_t width,
                           void **out)
{
    TL_CHECK(p->n < TL_PLAIN_MAX);
    TL_TRY(tl_cpu_scratch(p->k, count, width, &p->own[p->n]));
    *out = tl_storage_data(p->own[p->n++]);
    return TL_OK;
}

tl_status tl_plain_copy(tl_plain *p, const tl_tensor *t, void **out)
{
    size_t width = is_low(t) ? sizeof(float) : tl_dtype_size(t->dtype);
    tl_layout to;
    void *copy;

    TL_TRY(tl_plain_scratch(p, t->numel, width, &copy));
    if (is_low(t)) {
        TL_TRY(tl_cpu_widen(p->k, t, copy));
    } else {
        tl_layout_row_major(&to, t->rank, t->size);
        tl_cpu_copy_elements(p->k, (int)width, t->rank, t->size, copy,
                             to.stride, tl_tensor_data(t), t->stride);
    }
    *out = copy;
    return TL_OK;
}

tl_status tl_plain_in(tl_plain *p, const tl_tensor *t, const void **out)
{
    void *copy;

    if (tl_tensor_contiguous(t) && !is_low(t)) {
        *out = tl_tensor_data(t);
        return TL_OK;
    }
    TL_TRY(tl_plain_copy(p, t, &copy));
    *out = copy;
    return TL_OK;
}

tl_status tl_plain_out(tl_plain *p, const tl_tensor *t, void **out)
{
    if (is_low(t)) {
        return tl_plain_scratch(p, t->numel, sizeof(float), out);
    }
    *out = tl_tensor_data(t);
    return TL_OK;
}

void tl_plain_round(tl_plain *p, tl_tensor *t, const void *from)
{
    if (is_low(t)) {
        tl_cpu_narrow(p->k, from, t);
    }
}

void tl_plain_put(tl_plain *p, tl_tensor *t, const void *from)
{
    if (is_low(t)) {
        tl_cpu_narrow(p->k, from, t);
        return;
    }
    memcpy(tl_tensor_data(t), from,
           (size_t)t->numel * tl_dtype_size(t->dtype));
}
