/* nonzero.c - the places of what is not 0, and one_hot. */
#include <string.h>

#include "runtime/cpu/indices.h"

/* Bits that make an element differ from 0: not the sign of a float. */
static uint64_t value_bits(tl_dtype dtype)
{
    switch (dtype) {
    case TL_f64:
        return INT64_MAX;
    case TL_f32:
        return INT32_MAX;
    case TL_f16:
    case TL_bf16:
        return INT16_MAX;
    default:
        return UINT64_MAX;
    }
}

static uint64_t load_bits(const void *data, size_t width, int64_t at)
{
    switch (width) {
    case 1:
        return ((const uint8_t *)data)[at];
    case 2:
        return ((const uint16_t *)data)[at];
    case 4:
        return ((const uint32_t *)data)[at];
    default:
        return ((const uint64_t *)data)[at];
    }
}

/* A pass over the elements in chunks of TL_CPU_GRAIN. */
typedef struct scan {
    const void *data; /* row-major */
    size_t width;
    uint64_t mask;
    const tl_tensor *x;
    int64_t *start; /* of each chunk: its hits, then the row they start at,
                       and behind the last the number of all */
    int64_t *rows;  /* of the result */
    int64_t limit;  /* number of rows of the result */
} scan;

static void count_task(void *arg, int64_t task, int worker)
{
    const scan *s = arg;
    int64_t i = task * TL_CPU_GRAIN, end = i + TL_CPU_GRAIN, hits = 0;

    (void)worker;
    for (end = end < s->x->numel ? end : s->x->numel; i < end; i++) {
        hits += (load_bits(s->data, s->width, i) & s->mask) != 0;
    }
    s->start[task] = hits;
}

static void fill_task(void *arg, int64_t task, int worker)
{
    const scan *s = arg;
    const tl_tensor *x = s->x;
    int64_t i = task * TL_CPU_GRAIN, end = i + TL_CPU_GRAIN;
    int64_t row = s->start[task], last = s->start[task + 1];

    (void)worker;
    last = last < s->limit ? last : s->limit;
    end = end < x->numel ? end : x->numel;
    if (x->rank == 1) { /* a place that is no hit is written over */
        for (; row < last; i++) {
            s->rows[row] = i;
            row += (load_bits(s->data, s->width, i) & s->mask) != 0;
        }
        return;
    }
    for (; i < end && row < last; i++) {
        int64_t rest = i;

        if ((load_bits(s->data, s->width, i) & s->mask) == 0) {
            continue;
        }
        for (int d = x->rank - 1; d >= 0; d--) {
            s->rows[row * x->rank + d] = rest % x->size[d];
            rest /= x->size[d];
        }
        row++;
    }
}

/* Hits of each chunk to the row where it starts; their number, which stands
 * behind the last as well. */
static int64_t accumulate(int64_t *start, int64_t n)
{
    int64_t sum = 0;

    for (int64_t i = 0; i < n; i++) {
        int64_t hits = start[i];

        start[i] = sum;
        sum += hits;
    }
    start[n] = sum;
    return sum;
}

/* The number of rows is known (`fixed`), or the hits are. */
static tl_status make_rows(tl_kernel_ctx *k, scan *s, tl_tensor *y,
                           int64_t hits, bool fixed)
{
    if (!fixed) {
        int64_t size[2] = {hits, s->x->rank};

        TL_TRY(tl_tensor_realize(y, k->pool, size, k->diag));
    }
    s->limit = y->size[0];
    if (y->numel == 0) {
        s->limit = 0;
        return TL_OK;
    }
    s->rows = tl_tensor_data(y);
    if (hits < s->limit) {
        memset(s->rows + hits * s->x->rank, 0xff, /* -1: no element */
               (size_t)((s->limit - hits) * s->x->rank) * sizeof(*s->rows));
    }
    return TL_OK;
}

tl_status tl_cpu_nonzero(tl_kernel_ctx *k, tl_op op, tl_tensor *const *in,
                         int nin, tl_tensor *const *out, int nout,
                         const tl_attrs *at)
{
    tl_tensor *x = in[0];
    int64_t chunks = tl_ceil_div(x->numel, TL_CPU_GRAIN);
    scan s = {.x = x, .width = tl_dtype_size(x->dtype),
              .mask = value_bits(x->dtype)};
    tl_storage *copy = NULL, *starts = NULL;
    tl_layout l;
    tl_status st;

    (void)op;
    (void)nin;
    (void)nout;
    TL_GOTO(st, tl_cpu_scratch(k, chunks + 1, sizeof(int64_t), &starts));
    s.start = tl_storage_data(starts);
    s.data = x->numel ? tl_tensor_data(x) : NULL;
    if (!tl_tensor_contiguous(x) && x->numel > 0) {
        TL_GOTO(st, tl_cpu_scratch(k, x->numel, s.width, &copy));
        tl_layout_row_major(&l, x->rank, x->size);
        tl_cpu_copy_elements(k, (int)s.width, x->rank, x->size,
                             tl_storage_data(copy), l.stride, s.data,
                             x->stride);
        s.data = tl_storage_data(copy);
    }
    tl_cpu_run(k, chunks, count_task, &s);
    TL_GOTO(st, make_rows(k, &s, out[0], accumulate(s.start, chunks),
                          at && at->ndims == 1));
    if (s.limit > 0) {
        tl_cpu_run(k, chunks, fill_task, &s);
    }
out:
    tl_storage_unref(copy);
    tl_storage_unref(starts);
    return st;
}

tl_status tl_cpu_one_hot(tl_kernel_ctx *k, tl_op op, tl_tensor *const *in,
                         int nin, tl_tensor *const *out, int nout,
                         const tl_attrs *at)
{
    int64_t n = tl_dim_value(at->dims[0]);
    tl_index_rule rule = {n, false, TL_E0405, "class"};
    tl_storage *numbers;
    const int64_t *class;

    (void)op;
    (void)nin;
    (void)nout;
    TL_TRY(tl_cpu_indices(k, in[0], &rule, &numbers));
    class = tl_storage_data(numbers);
    if (out[0]->numel > 0) {
        int64_t *y = tl_tensor_data(out[0]);

        memset(y, 0, (size_t)out[0]->numel * sizeof(*y));
        for (int64_t i = 0; i < in[0]->numel; i++) {
            y[i * n + class[i]] = 1;
        }
    }
    tl_storage_unref(numbers);
    return TL_OK;
}
