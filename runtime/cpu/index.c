/* index.c - x[i, j, ..] read and written; nonzero; one_hot.
 *
 * The index tensors, broadcast together, become one offset into x for each
 * picked place.  The other axes of x, the "rest", are walked for each place,
 * the last of them as the inner loop.  A write takes parts of the rest as
 * tasks and the places in order, so that the last of repeated indices wins,
 * or their sum has one order, for any number of threads. */
#include "runtime/cpu/indices.h"

#include <string.h>

typedef struct pick {
    int64_t places;      /* number of picked places */
    const int64_t *from; /* offset into x of each, in elements */
    tl_storage *offsets; /* owns it */
    int rest;            /* axes that are not indexed */
    int64_t size[TL_MAX_RANK];
    int64_t x[TL_MAX_RANK]; /* strides of x along the rest */
    int64_t v[TL_MAX_RANK]; /* of the result or of the values */
    int picked;             /* axes of the picked places */
    int64_t picked_size[TL_MAX_RANK];
    int64_t picked_v[TL_MAX_RANK];
    int64_t outer, inner, parts, per_part;
    char *to;
    const char *read;
    tl_dtype dtype;
    int width;
    bool add;
} pick;

/* ---- what is picked ---------------------------------------------------- */

static void broadcast_sizes(tl_tensor *const *index, int n, pick *p)
{
    p->picked = 0;
    for (int i = 0; i < n; i++) {
        p->picked = index[i]->rank > p->picked ? index[i]->rank : p->picked;
    }
    p->places = 1;
    for (int d = 0; d < p->picked; d++) {
        p->picked_size[d] = 1;
        for (int i = 0; i < n; i++) {
            int axis = d - (p->picked - index[i]->rank);

            if (axis >= 0 && index[i]->size[axis] != 1) {
                p->picked_size[d] = index[i]->size[axis];
            }
        }
        p->places *= p->picked_size[d];
    }
}

/* offsets[] += numbers (of the shape of `index`, broadcast) * stride. */
static void add_offsets(const pick *p, const tl_tensor *index,
                        const int64_t *numbers, int64_t stride,
                        int64_t *offsets)
{
    tl_layout l;
    int64_t step[TL_MAX_RANK];

    tl_layout_row_major(&l, index->rank, index->size);
    for (int d = 0; d < p->picked; d++) {
        int axis = d - (p->picked - index->rank);

        step[d] = axis < 0 || index->size[axis] == 1 ? 0 : l.stride[axis];
    }
    for (int64_t e = 0; e < p->places && p->picked == 1; e++) {
        offsets[e] += numbers[e * step[0]] * stride;
    }
    for (int64_t e = 0; e < p->places && p->picked != 1; e++) {
        int64_t rest = e, at = 0;

        for (int d = p->picked - 1; d >= 0; d--) {
            at += rest % p->picked_size[d] * step[d];
            rest /= p->picked_size[d];
        }
        offsets[e] += numbers[at] * stride;
    }
}

static tl_status find_places(tl_kernel_ctx *k, const tl_tensor *x,
                             tl_tensor *const *index, int n, uint16_t axes,
                             const int64_t *stride, pick *p)
{
    int64_t *offsets;
    int axis = -1;

    broadcast_sizes(index, n, p);
    TL_TRY(tl_cpu_scratch(k, p->places, sizeof(int64_t), &p->offsets));
    offsets = tl_storage_data(p->offsets);
    memset(offsets, 0, (size_t)p->places * sizeof(*offsets));
    p->from = offsets;
    for (int i = 0; i < n; i++) {
        tl_index_rule rule = {0, true, TL_E0405, "index"};
        tl_storage *numbers;

        do {
            axis++;
        } while (!(axes >> axis & 1));
        rule.bound = x->size[axis];
        TL_TRY(tl_cpu_indices(k, index[i], &rule, &numbers));
        if (p->places > 0) {
            add_offsets(p, index[i], tl_storage_data(numbers), stride[axis],
                        offsets);
        }
        tl_storage_unref(numbers);
    }
    return TL_OK;
}

/* Where the picked axes stand in the region: before how many of the rest. */
static int picked_position(uint16_t axes, bool front)
{
    unsigned set = axes;
    bool neighbours = (set & (set + (set & -set))) == 0;

    return front || !neighbours ? 0 : __builtin_ctz(set);
}

/* The rest of x, its strides, and those of the region `v`. */
static void set_rest(pick *p, const tl_tensor *x, const int64_t *x_stride,
                     const tl_attrs *at, const int64_t *v_stride)
{
    int position = picked_position(at->axes, at->flag), d = 0;

    for (int i = 0; i < x->rank; i++) {
        if (at->axes >> i & 1) {
            continue;
        }
        p->size[p->rest] = x->size[i];
        p->x[p->rest] = x_stride[i];
        p->v[p->rest] = v_stride[p->rest < position ? p->rest
                                                    : p->rest + p->picked];
        p->rest++;
    }
    for (; d < p->picked; d++) {
        p->picked_v[d] = v_stride[position + d];
    }
    p->outer = 1;
    for (int i = 0; i < p->rest - 1; i++) {
        p->outer *= p->size[i];
    }
    p->inner = p->rest ? p->size[p->rest - 1] : 1;
    p->per_part = p->inner;
    p->parts = 1;
}

static int64_t rest_offset(const pick *p, const int64_t *stride, int64_t o)
{
    int64_t offset = 0;

    for (int d = p->rest - 2; d >= 0; d--) {
        offset += o % p->size[d] * stride[d];
        o /= p->size[d];
    }
    return offset;
}

static int64_t place_offset(const pick *p, int64_t e)
{
    int64_t offset = 0;

    for (int d = p->picked - 1; d >= 0; d--) {
        offset += e % p->picked_size[d] * p->picked_v[d];
        e /= p->picked_size[d];
    }
    return offset;
}

/* ---- rows -------------------------------------------------------------- */

#define DEFINE_MOVE(bits)                                                    \
    static void move_##bits(int64_t n, void *to, int64_t to_step,            \
                            const void *from, int64_t step)                  \
    {                                                                        \
        uint##bits##_t *y = to;                                              \
        const uint##bits##_t *x = from;                                      \
                                                                             \
        if (to_step == 1 && step == 1) {                                     \
            memcpy(y, x, (size_t)n * sizeof(*y));                            \
            return;                                                          \
        }                                                                    \
        for (int64_t i = 0; i < n; i++) {                                    \
            y[i * to_step] = x[i * step];                                    \
        }                                                                    \
    }
DEFINE_MOVE(8)
DEFINE_MOVE(16)
DEFINE_MOVE(32)
DEFINE_MOVE(64)

#define DEFINE_ADD(name, type, sum)                                          \
    static void add_##name(int64_t n, void *to, int64_t to_step,             \
                           const void *from, int64_t step)                   \
    {                                                                        \
        type *y = to;                                                        \
        const type *x = from;                                                \
                                                                             \
        for (int64_t i = 0; i < n; i++) {                                    \
            y[i * to_step] =                                                 \
                (type)((sum)y[i * to_step] + (sum)x[i * step]);              \
        }                                                                    \
    }
DEFINE_ADD(f32, float, float)
DEFINE_ADD(f64, double, double)
DEFINE_ADD(i64, int64_t, uint64_t)
DEFINE_ADD(i32, int32_t, uint32_t)
DEFINE_ADD(i16, int16_t, uint32_t)
DEFINE_ADD(i8, int8_t, uint32_t)
DEFINE_ADD(u8, uint8_t, uint32_t)

typedef void row_fn(int64_t n, void *to, int64_t to_step, const void *from,
                    int64_t step);

static row_fn *row_of(const pick *p)
{
    static row_fn *const adders[TL_DTYPE_COUNT] = {
        [TL_bool] = add_u8, [TL_u8] = add_u8,   [TL_i8] = add_i8,
        [TL_i16] = add_i16, [TL_i32] = add_i32, [TL_i64] = add_i64,
        [TL_f32] = add_f32, [TL_f64] = add_f64};

    if (p->add) {
        return adders[p->dtype];
    }
    return p->width == 1 ? move_8 : p->width == 2 ? move_16
                                : p->width == 4 ? move_32 : move_64;
}

/* ---- index ------------------------------------------------------------- */

typedef struct pick_job {
    const pick *p;
    row_fn *row;
    int64_t per_task;
} pick_job;

#define TAKE_SINGLE(bits)                                                    \
    case bits / 8:                                                           \
        for (; e < end; e++) {                                               \
            ((uint##bits##_t *)to)[e * step] =                               \
                ((const uint##bits##_t *)from)[p->from[e]];                  \
        }                                                                    \
        break;

/* Single elements of the places e .. end - 1 of one axis. */
static void take_single(const pick *p, char *to, const char *from, int64_t e,
                        int64_t end)
{
    int64_t step = p->picked_v[0];

    switch (p->width) {
        TAKE_SINGLE(8)
        TAKE_SINGLE(16)
        TAKE_SINGLE(32)
        TAKE_SINGLE(64)
    default:
        break;
    }
}


/* Places of one outer combination, some in a task. */
static void take_task(void *arg, int64_t task, int worker)
{
    const pick_job *job = arg;
    const pick *p = job->p;
    int64_t chunks = tl_ceil_div(p->places, job->per_task);
    int64_t o = task / chunks, e = task % chunks * job->per_task;
    int64_t end = e + job->per_task < p->places ? e + job->per_task
                                                : p->places;
    int64_t x = rest_offset(p, p->x, o), v = rest_offset(p, p->v, o);
    int last = p->rest - 1;
    int64_t x_step = p->rest ? p->x[last] : 0,
            v_step = p->rest ? p->v[last] : 0;

    (void)worker;
    if (p->inner == 1 && p->picked == 1) {
        take_single(p, p->to + v * p->width, p->read + x * p->width, e, end);
        return;
    }
    for (; e < end; e++) {
        job->row(p->inner, p->to + (v + place_offset(p, e)) * p->width, v_step,
                 p->read + (x + p->from[e]) * p->width, x_step);
    }
}

tl_status tl_cpu_index(tl_kernel_ctx *k, tl_op op, tl_tensor *const *in,
                       int nin, tl_tensor *const *out, int nout,
                       const tl_attrs *at)
{
    pick p = {.dtype = in[0]->dtype};
    pick_job job = {.p = &p};
    tl_status st;

    (void)op;
    (void)nout;
    p.width = (int)tl_dtype_size(p.dtype);
    TL_GOTO(st, find_places(k, in[0], in + 1, nin - 1, at->axes,
                            in[0]->stride, &p));
    if (out[0]->numel > 0) {
        set_rest(&p, in[0], in[0]->stride, at, out[0]->stride);
        p.read = tl_tensor_data(in[0]);
        p.to = tl_tensor_data(out[0]);
        job.row = row_of(&p);
        job.per_task = tl_cpu_rows_a_task(p.inner);
        tl_cpu_run(k, p.outer * tl_ceil_div(p.places, job.per_task),
                   take_task, &job);
    }
out:
    tl_storage_unref(p.offsets);
    return st;
}

/* ---- index_put --------------------------------------------------------- */

/* All places in order for a part of the inner axis. */
static void put_task(void *arg, int64_t task, int worker)
{
    const pick_job *job = arg;
    const pick *p = job->p;
    int64_t o = task / p->parts, i = task % p->parts * p->per_part;
    int64_t n = p->inner - i < p->per_part ? p->inner - i : p->per_part;
    int last = p->rest - 1;
    int64_t x_step = p->rest ? p->x[last] : 0,
            v_step = p->rest ? p->v[last] : 0;
    int64_t x = rest_offset(p, p->x, o) + i * x_step;
    int64_t v = rest_offset(p, p->v, o) + i * v_step;

    (void)worker;
    for (int64_t e = 0; e < p->places; e++) {
        job->row(n, p->to + (x + p->from[e]) * p->width, x_step,
                 p->read + (v + place_offset(p, e)) * p->width, v_step);
    }
}

static void run_put(tl_kernel_ctx *k, pick *p)
{
    pick_job job = {.p = p, .row = row_of(p)};
    int64_t work = p->places * p->inner;

    if (work > 2 * TL_CPU_GRAIN && p->outer < 64) { // parts of inner rows
        p->per_part = tl_ceil_div(p->inner, tl_ceil_div(work, TL_CPU_GRAIN));
        p->per_part = p->per_part < 16 ? 16 : p->per_part;
        p->parts = tl_ceil_div(p->inner, p->per_part);
    }
    if (p->outer * work < TL_CPU_GRAIN) {
        for (int64_t i = 0; i < p->outer * p->parts; i++) {
            put_task(&job, i, 0);
        }
    } else {
        tl_cpu_run(k, p->outer * p->parts, put_task, &job);
    }
}

/* Strides of `v` broadcast to the region that is written. */
static void region_strides(const pick *p, const tl_tensor *x,
                           const tl_tensor *v, const tl_attrs *at,
                           int64_t *stride)
{
    int64_t size[TL_MAX_RANK];
    int n = 0, rest = 0, position = picked_position(at->axes, at->flag);

    for (int i = 0; i <= x->rank; i++) {
        if (rest == position && n == rest) {
            memcpy(size + n, p->picked_size,
                   (size_t)p->picked * sizeof(*size));
            n += p->picked;
        }
        if (i < x->rank && !(at->axes >> i & 1)) {
            size[n++] = x->size[i];
            rest++;
        }
    }
    tl_cpu_broadcast(v, n, size, stride);
}

/* 16-bit floats add up in f32 and round once. */
static tl_status put_wide(tl_kernel_ctx *k, pick *p, tl_tensor *y,
                          const tl_tensor *v, const tl_attrs *at)
{
    tl_storage *sums = NULL, *values = NULL;
    int64_t stride[TL_MAX_RANK];
    tl_layout l;
    tl_tensor wide = *v; // row-major strides
    tl_status st;

    tl_layout_row_major(&l, v->rank, v->size);
    wide.stride = l.stride;
    TL_GOTO(st, tl_cpu_scratch(k, y->numel, sizeof(float), &sums));
    TL_GOTO(st, tl_cpu_scratch(k, v->numel, sizeof(float), &values));
    TL_GOTO(st, tl_cpu_widen(k, y, tl_storage_data(sums)));
    TL_GOTO(st, tl_cpu_widen(k, v, tl_storage_data(values)));
    region_strides(p, y, &wide, at, stride);
    set_rest(p, y, y->stride, at, stride);
    p->dtype = TL_f32;
    p->width = sizeof(float);
    p->to = tl_storage_data(sums);
    p->read = tl_storage_data(values);
    run_put(k, p);
    tl_cpu_narrow(k, tl_storage_data(sums), y);
out:
    tl_storage_unref(sums);
    tl_storage_unref(values);
    return st;
}

tl_status tl_cpu_index_put(tl_kernel_ctx *k, tl_op op, tl_tensor *const *in,
                           int nin, tl_tensor *const *out, int nout,
                           const tl_attrs *at)
{
    pick p = {.dtype = in[0]->dtype, .add = at->i[0] != 0};
    tl_tensor *y = out[0], *v = in[1];
    int64_t stride[TL_MAX_RANK];
    tl_status st;

    (void)op;
    (void)nout;
    p.width = (int)tl_dtype_size(p.dtype);
    TL_GOTO(st, find_places(k, in[0], in + 2, nin - 2, at->axes, y->stride,
                            &p));
    tl_cpu_copy_tensor(k, y, in[0]);
    if (y->numel == 0 || p.places == 0) {
        goto out;
    }
    if (p.add && tl_dtype_arith(p.dtype) != p.dtype) {
        st = put_wide(k, &p, y, v, at);
        goto out;
    }
    region_strides(&p, y, v, at, stride);
    set_rest(&p, y, y->stride, at, stride);
    p.to = tl_tensor_data(y);
    p.read = tl_tensor_data(v);
    run_put(k, &p);
out:
    tl_storage_unref(p.offsets);
    return st;
}
