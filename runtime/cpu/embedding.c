/* embedding.c - rows of a table by id, and the sum of rows by id.
 *
 * The sum first brings the places of each id together (a stable counting
 * sort), so that tasks own rows of the table and add in order of place:
 * deterministic, without atomics. */
#include <string.h>

#include "runtime/cpu/indices.h"

typedef struct rows_job {
    const int64_t *id;
    int64_t n, per_task;
    int64_t width, row_bytes; /* of an element, of a row */
    const tl_tensor *table;
    const char *from;
    char *to;
    int64_t padding; /* reads as 0, or -1 */
} rows_job;

static void copy_row(const rows_job *job, int64_t i)
{
    const tl_tensor *t = job->table;
    char *to = job->to + i * job->row_bytes;
    const char *from = job->from + job->id[i] * t->stride[0] * job->width;

    if (job->id[i] == job->padding) {
        memset(to, 0, (size_t)job->row_bytes);
    } else if (t->stride[1] == 1) {
        memcpy(to, from, (size_t)job->row_bytes);
    } else {
        for (int64_t j = 0; j < t->size[1]; j++) {
            memcpy(to + j * job->width, from + j * t->stride[1] * job->width,
                   (size_t)job->width);
        }
    }
}

static void rows_task(void *arg, int64_t task, int worker)
{
    const rows_job *job = arg;
    int64_t i = task * job->per_task, end = i + job->per_task;

    (void)worker;
    for (end = end < job->n ? end : job->n; i < end; i++) {
        copy_row(job, i);
    }
}

tl_status tl_cpu_embedding(tl_kernel_ctx *k, tl_op op, tl_tensor *const *in,
                           int nin, tl_tensor *const *out, int nout,
                           const tl_attrs *at)
{
    tl_index_rule rule = {in[0]->size[0], false, TL_E0406, "id"};
    rows_job job = {.table = in[0], .n = in[1]->numel,
                    .width = (int64_t)tl_dtype_size(in[0]->dtype),
                    .padding = at->flag ? at->i[0] : -1};
    tl_storage *numbers;

    (void)op;
    (void)nin;
    (void)nout;
    TL_TRY(tl_cpu_indices(k, in[1], &rule, &numbers));
    if (out[0]->numel > 0) {
        job.id = tl_storage_data(numbers);
        job.row_bytes = in[0]->size[1] * job.width;
        job.from = tl_tensor_data(in[0]);
        job.to = tl_tensor_data(out[0]);
        job.per_task = tl_cpu_rows_a_task(in[0]->size[1]);
        tl_cpu_run(k, tl_ceil_div(job.n, job.per_task), rows_task, &job);
    }
    tl_storage_unref(numbers);
    return TL_OK;
}

/* ---- the gradient ------------------------------------------------------ */

typedef struct sum_job {
    const int64_t *start; /* of each id in `place`, and the end */
    const int64_t *place; /* rows of g by id, in order */
    const char *g;        /* row-major rows of `columns` */
    char *to;
    tl_dtype dtype;
    int64_t rows, columns, padding, per_task;
} sum_job;

#define DEFINE_SUM(name, type)                                               \
    static void sum_##name(const sum_job *job, int64_t row, type *to)        \
    {                                                                        \
        const type *g = (const type *)job->g;                                \
                                                                             \
        for (int64_t j = 0; j < job->columns; j++) {                         \
            to[j] = 0;                                                       \
        }                                                                    \
        if (row == job->padding) {                                           \
            return;                                                          \
        }                                                                    \
        for (int64_t p = job->start[row]; p < job->start[row + 1]; p++) {    \
            const type *from = g + job->place[p] * job->columns;             \
                                                                             \
            for (int64_t j = 0; j < job->columns; j++) {                     \
                to[j] += from[j];                                            \
            }                                                                \
        }                                                                    \
    }
DEFINE_SUM(f32, float)
DEFINE_SUM(f64, double)

static void sum_task(void *arg, int64_t task, int worker)
{
    const sum_job *job = arg;
    int64_t row = task * job->per_task, end = row + job->per_task;

    (void)worker;
    for (end = end < job->rows ? end : job->rows; row < end; row++) {
        if (job->dtype == TL_f64) {
            sum_f64(job, row, (double *)job->to + row * job->columns);
        } else {
            sum_f32(job, row, (float *)job->to + row * job->columns);
        }
    }
}

/* Places by id, stable: start[] has rows + 1 entries. */
static void sort_places(const int64_t *id, int64_t n, int64_t rows,
                        int64_t *start, int64_t *place)
{
    memset(start, 0, (size_t)(rows + 1) * sizeof(*start));
    for (int64_t i = 0; i < n; i++) {
        start[id[i] + 1]++;
    }
    for (int64_t r = 0; r < rows; r++) {
        start[r + 1] += start[r];
    }
    for (int64_t i = 0; i < n; i++) {
        place[start[id[i]]++] = i;
    }
    for (int64_t r = rows; r > 0; r--) { // each start has moved to its end
        start[r] = start[r - 1];
    }
    start[0] = 0;
}

/* g as row-major rows of its arithmetic dtype; *copy owns them if it must. */
static tl_status gradient_rows(tl_kernel_ctx *k, const tl_tensor *g,
                               const char **rows, tl_storage **copy)
{
    tl_dtype dtype = tl_dtype_arith(g->dtype);
    tl_layout l;

    *rows = tl_tensor_data(g);
    if (dtype == g->dtype && tl_tensor_contiguous(g)) {
        return TL_OK;
    }
    TL_TRY(tl_cpu_scratch(k, g->numel, tl_dtype_size(dtype), copy));
    *rows = tl_storage_data(*copy);
    if (dtype != g->dtype) {
        return tl_cpu_widen(k, g, tl_storage_data(*copy));
    }
    tl_layout_row_major(&l, g->rank, g->size);
    tl_cpu_copy_elements(k, (int)tl_dtype_size(dtype), g->rank, g->size,
                         tl_storage_data(*copy), l.stride, tl_tensor_data(g),
                         g->stride);
    return TL_OK;
}

static tl_status sum_rows(tl_kernel_ctx *k, const tl_tensor *g,
                          const int64_t *id, int64_t n, tl_tensor *y,
                          sum_job *job)
{
    tl_storage *starts = NULL, *places = NULL, *copy = NULL, *wide = NULL;
    tl_status st;

    TL_GOTO(st, tl_cpu_scratch(k, job->rows + 1, sizeof(int64_t), &starts));
    TL_GOTO(st, tl_cpu_scratch(k, n, sizeof(int64_t), &places));
    if (g->numel > 0) {
        TL_GOTO(st, gradient_rows(k, g, &job->g, &copy));
    }
    if (job->dtype != y->dtype) {
        TL_GOTO(st, tl_cpu_scratch(k, y->numel, sizeof(float), &wide));
    }
    sort_places(id, n, job->rows, tl_storage_data(starts),
                tl_storage_data(places));
    job->start = tl_storage_data(starts);
    job->place = tl_storage_data(places);
    job->to = wide ? tl_storage_data(wide) : tl_tensor_data(y);
    tl_cpu_run(k, tl_ceil_div(job->rows, job->per_task), sum_task, job);
    if (wide) {
        tl_cpu_narrow(k, tl_storage_data(wide), y);
    }
out:
    tl_storage_unref(starts);
    tl_storage_unref(places);
    tl_storage_unref(copy);
    tl_storage_unref(wide);
    return st;
}

tl_status tl_cpu_embedding_grad(tl_kernel_ctx *k, tl_op op,
                                tl_tensor *const *in, int nin,
                                tl_tensor *const *out, int nout,
                                const tl_attrs *at)
{
    tl_tensor *y = out[0];
    tl_index_rule rule = {y->size[0], false, TL_E0406, "id"};
    sum_job job = {.rows = y->size[0], .columns = y->size[1],
                   .padding = at->i[0], .dtype = tl_dtype_arith(y->dtype)};
    tl_storage *numbers;
    tl_status st = TL_OK;

    (void)op;
    (void)nin;
    (void)nout;
    TL_TRY(tl_cpu_indices(k, in[1], &rule, &numbers));
    job.per_task = tl_cpu_rows_a_task(job.columns);
    if (y->numel > 0) {
        st = sum_rows(k, in[0], tl_storage_data(numbers), in[1]->numel, y,
                      &job);
    }
    tl_storage_unref(numbers);
    return st;
}
