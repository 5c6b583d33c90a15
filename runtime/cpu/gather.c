/* gather.c - gather and scatter_add along one axis.
 *
 * The index moves an element along the axis only, so lines along it are
 * independent: tasks take sets of lines, and each line is walked in order,
 * which makes the sum of repeated indices the same for any number of
 * threads. */
#include <string.h>

#include "runtime/cpu/indices.h"

/* The index as [outer, n, inner], and what it addresses. */
typedef struct line_job {
    const int64_t *index; /* row-major */
    int rank, axis;
    int64_t size[TL_MAX_RANK]; /* of the index */
    int64_t outer, n, inner;
    char *to;               /* gather: row-major result; else the target */
    const char *from;       /* gather: x; else the source */
    int64_t x_stride[TL_MAX_RANK]; /* of x, or of the target */
    int64_t s_stride[TL_MAX_RANK]; /* of the source */
    tl_dtype dtype;
    int64_t lines; /* of a task: part of an outer's inner lines */
    int64_t parts;
} line_job;

static void set_lines(line_job *job, const tl_tensor *index, int axis)
{
    job->rank = index->rank;
    job->axis = axis;
    job->outer = job->inner = 1;
    for (int i = 0; i < index->rank; i++) {
        job->size[i] = index->size[i];
        if (i < axis) {
            job->outer *= index->size[i];
        } else if (i > axis) {
            job->inner *= index->size[i];
        }
    }
    job->n = index->size[axis];
    job->lines = tl_cpu_rows_a_task(job->n);
    job->lines = job->lines < job->inner ? job->lines : job->inner;
    job->parts = tl_ceil_div(job->inner, job->lines);
}

/* Offset, by `stride`, of the coordinates but the axis: `o` numbers those
 * before it, `i` those behind. */
static int64_t line_offset(const line_job *job, const int64_t *stride,
                           int64_t o, int64_t i)
{
    int64_t offset = 0;

    for (int d = job->rank - 1; d > job->axis; d--) {
        offset += i % job->size[d] * stride[d];
        i /= job->size[d];
    }
    for (int d = job->axis - 1; d >= 0; d--) {
        offset += o % job->size[d] * stride[d];
        o /= job->size[d];
    }
    return offset;
}

/* Neighbouring lines that are walked side by side, so that rows of memory
 * are read and written along. */
enum { SIDE_BY_SIDE = 64 };

/* Lines [i, i + count) of outer index o; x[c], s[c]: where they start in x (or
 * the target) and in the source. */
typedef struct bundle {
    int64_t o, i, count;
    int64_t x[SIDE_BY_SIDE], s[SIDE_BY_SIDE];
} bundle;

#define DEFINE_GATHER(bits)                                                  \
    static void gather_##bits(const line_job *job, const bundle *b)          \
    {                                                                        \
        int64_t start = b->o * job->n * job->inner + b->i;                   \
        const int64_t *index = job->index + start;                           \
        uint##bits##_t *to = (uint##bits##_t *)job->to + start;              \
        const uint##bits##_t *from = (const uint##bits##_t *)job->from;      \
        int64_t step = job->x_stride[job->axis];                             \
                                                                             \
        if (job->inner == 1) {                                               \
            from += b->x[0];                                                 \
            for (int64_t j = 0; j < job->n; j++) {                           \
                to[j] = from[index[j] * step];                               \
            }                                                                \
            return;                                                          \
        }                                                                    \
        for (int64_t j = 0; j < job->n; j++) {                               \
            for (int64_t c = 0; c < b->count; c++) {                         \
                to[c] = from[b->x[c] + index[c] * step];                     \
            }                                                                \
            to += job->inner;                                                \
            index += job->inner;                                             \
        }                                                                    \
    }
DEFINE_GATHER(8)
DEFINE_GATHER(16)
DEFINE_GATHER(32)
DEFINE_GATHER(64)

#define DEFINE_SCATTER(name, type, sum)                                      \
    static void scatter_##name(const line_job *job, const bundle *b)         \
    {                                                                        \
        const int64_t *index =                                               \
            job->index + b->o * job->n * job->inner + b->i;                  \
        type *to = (type *)job->to;                                          \
        const type *from = (const type *)job->from;                          \
        int64_t step = job->x_stride[job->axis];                             \
        int64_t s_step = job->s_stride[job->axis];                           \
                                                                             \
        if (job->inner == 1) {                                               \
            to += b->x[0];                                                   \
            from += b->s[0];                                                 \
            for (int64_t j = 0; j < job->n; j++) {                           \
                type *at = &to[index[j] * step];                             \
                                                                             \
                *at = (type)((sum)*at + (sum)from[j * s_step]);              \
            }                                                                \
            return;                                                          \
        }                                                                    \
        for (int64_t j = 0; j < job->n; j++, index += job->inner) {          \
            for (int64_t c = 0; c < b->count; c++) {                         \
                type *at = &to[b->x[c] + index[c] * step];                   \
                                                                             \
                *at = (type)((sum)*at + (sum)from[b->s[c] + j * s_step]);    \
            }                                                                \
        }                                                                    \
    }
DEFINE_SCATTER(f32, float, float)
DEFINE_SCATTER(f64, double, double)
DEFINE_SCATTER(i64, int64_t, uint64_t)
DEFINE_SCATTER(i32, int32_t, uint32_t)
DEFINE_SCATTER(i16, int16_t, uint32_t)
DEFINE_SCATTER(i8, int8_t, uint32_t)
DEFINE_SCATTER(u8, uint8_t, uint32_t)

typedef void line_fn(const line_job *job, const bundle *b);

static line_fn *gather_of(size_t width)
{
    return width == 1 ? gather_8 : width == 2 ? gather_16
                               : width == 4 ? gather_32 : gather_64;
}

static line_fn *scatter_of(tl_dtype dtype)
{
    static line_fn *const table[TL_DTYPE_COUNT] = {
        [TL_bool] = scatter_u8, [TL_u8] = scatter_u8, [TL_i8] = scatter_i8,
        [TL_i16] = scatter_i16, [TL_i32] = scatter_i32,
        [TL_i64] = scatter_i64, [TL_f32] = scatter_f32,
        [TL_f64] = scatter_f64};

    return table[dtype];
}

typedef struct lines {
    const line_job *job;
    line_fn *fn;
} lines;

static void lines_task(void *arg, int64_t task, int worker)
{
    const lines *l = arg;
    const line_job *job = l->job;
    bundle b = {.o = task / job->parts, .i = task % job->parts * job->lines};
    int64_t end = b.i + job->lines;

    (void)worker;
    for (end = end < job->inner ? end : job->inner; b.i < end;
         b.i += SIDE_BY_SIDE) {
        b.count = end - b.i < SIDE_BY_SIDE ? end - b.i : SIDE_BY_SIDE;
        for (int64_t c = 0; c < b.count; c++) {
            b.x[c] = line_offset(job, job->x_stride, b.o, b.i + c);
            b.s[c] = line_offset(job, job->s_stride, b.o, b.i + c);
        }
        l->fn(job, &b);
    }
}

static void run_lines(tl_kernel_ctx *k, const line_job *job, line_fn *fn)
{
    lines l = {job, fn};
    int64_t tasks = job->outer * job->parts;

    if (job->outer * job->n * job->inner < TL_CPU_GRAIN) {
        for (int64_t i = 0; i < tasks; i++) {
            lines_task(&l, i, 0);
        }
    } else {
        tl_cpu_run(k, tasks, lines_task, &l);
    }
}

tl_status tl_cpu_gather(tl_kernel_ctx *k, tl_op op, tl_tensor *const *in,
                        int nin, tl_tensor *const *out, int nout,
                        const tl_attrs *at)
{
    tl_index_rule rule = {in[0]->size[at->axis], false, TL_E0405, "index"};
    tl_storage *numbers;
    line_job job = {.dtype = in[0]->dtype};

    (void)op;
    (void)nin;
    (void)nout;
    TL_TRY(tl_cpu_indices(k, in[1], &rule, &numbers));
    if (out[0]->numel > 0) {
        set_lines(&job, in[1], at->axis);
        job.index = tl_storage_data(numbers);
        job.to = tl_tensor_data(out[0]);
        job.from = tl_tensor_data(in[0]);
        memcpy(job.x_stride, in[0]->stride,
               (size_t)job.rank * sizeof(*job.x_stride));
        run_lines(k, &job, gather_of(tl_dtype_size(job.dtype)));
    }
    tl_storage_unref(numbers);
    return TL_OK;
}

/* Elements of `from` added to those of `to`, laid out as y, in order. */
static void scatter(tl_kernel_ctx *k, const tl_tensor *index,
                    const int64_t *numbers, const tl_tensor *y, void *to,
                    const void *from, const int64_t *from_stride, int axis)
{
    line_job job = {.index = numbers, .to = to, .from = from,
                    .dtype = tl_dtype_arith(y->dtype)};

    set_lines(&job, index, axis);
    memcpy(job.x_stride, y->stride,
           (size_t)job.rank * sizeof(*job.x_stride));
    memcpy(job.s_stride, from_stride,
           (size_t)job.rank * sizeof(*job.s_stride));
    run_lines(k, &job, scatter_of(job.dtype));
}

/* 16-bit floats add up in f32 and round once. */
static tl_status scatter_wide(tl_kernel_ctx *k, const tl_tensor *index,
                              const int64_t *numbers, tl_tensor *y,
                              const tl_tensor *source, int axis)
{
    tl_storage *sums = NULL, *parts = NULL;
    tl_layout l;
    tl_status st;

    TL_GOTO(st, tl_cpu_scratch(k, y->numel, sizeof(float), &sums));
    TL_GOTO(st, tl_cpu_scratch(k, source->numel, sizeof(float), &parts));
    TL_GOTO(st, tl_cpu_widen(k, y, tl_storage_data(sums)));
    TL_GOTO(st, tl_cpu_widen(k, source, tl_storage_data(parts)));
    tl_layout_row_major(&l, source->rank, source->size);
    scatter(k, index, numbers, y, tl_storage_data(sums),
            tl_storage_data(parts), l.stride, axis);
    tl_cpu_narrow(k, tl_storage_data(sums), y);
out:
    tl_storage_unref(sums);
    tl_storage_unref(parts);
    return st;
}

tl_status tl_cpu_scatter_add(tl_kernel_ctx *k, tl_op op, tl_tensor *const *in,
                             int nin, tl_tensor *const *out, int nout,
                             const tl_attrs *at)
{
    tl_index_rule rule = {in[0]->size[at->axis], false, TL_E0405, "index"};
    tl_storage *numbers;
    tl_tensor *y = out[0];
    tl_status st = TL_OK;

    (void)op;
    (void)nin;
    (void)nout;
    TL_TRY(tl_cpu_indices(k, in[1], &rule, &numbers));
    tl_cpu_copy_tensor(k, y, in[0]);
    if (in[1]->numel > 0) {
        if (tl_dtype_arith(y->dtype) != y->dtype) {
            st = scatter_wide(k, in[1], tl_storage_data(numbers), y, in[2],
                              at->axis);
        } else {
            scatter(k, in[1], tl_storage_data(numbers), y, tl_tensor_data(y),
                    tl_tensor_data(in[2]), in[2]->stride, at->axis);
        }
    }
    tl_storage_unref(numbers);
    return st;
}
