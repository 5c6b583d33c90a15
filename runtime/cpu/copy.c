/* copy.c - moving elements between layouts: copy, cat, slice_put, tril, triu.
 *
 * A copy is a set of planes.  The inner axis of a plane is the densest of the
 * destination, the outer one the densest of the source; where both are the
 * same axis a plane is copied by rows, else (a transposition) by small tiles,
 * so that neither side touches a cache line twice. */
#include <stdio.h>
#include <string.h>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "runtime/base/check.h"
#include "runtime/base/size.h"
#include "runtime/cpu/kern.h"

enum { TILE = 16 };

/* ---- shared helpers ---------------------------------------------------- */

void tl_cpu_layout(const tl_tensor *t, tl_layout *out)
{
    out->rank = t->rank;
    out->offset = 0;
    memcpy(out->size, t->size, (size_t)t->rank * sizeof(*t->size));
    memcpy(out->stride, t->stride, (size_t)t->rank * sizeof(*t->stride));
}

void tl_cpu_broadcast(const tl_tensor *v, int rank, const int64_t *size,
                      int64_t *stride)
{
    int added = rank - v->rank;

    for (int i = 0; i < rank; i++) {
        bool stretched = i < added || (v->size[i - added] == 1 && size[i] != 1);

        stride[i] = stretched ? 0 : v->stride[i - added];
    }
}

tl_status tl_cpu_scratch(tl_kernel_ctx *k, int64_t count, size_t width,
                         tl_storage **out)
{
    size_t bytes;

    if (!tl_mul_size(&bytes, (size_t)count, width)) {
        return tl_fail(k->diag, TL_E0307, "scratch memory overflows");
    }
    return tl_storage_new(out, k->pool, bytes, k->diag);
}

tl_place_text tl_cpu_place(const tl_tensor *t, int64_t at)
{
    int64_t index[TL_MAX_RANK];
    tl_place_text text;
    size_t n = 1;

    for (int i = t->rank - 1; i >= 0; i--) {
        index[i] = at % t->size[i];
        at /= t->size[i];
    }
    memcpy(text.s, "[", 2);
    for (int i = 0; i < t->rank && n < sizeof(text.s) - 24; i++) {
        n += (size_t)snprintf(text.s + n, sizeof(text.s) - n, "%s%lld",
                              i ? ", " : "", (long long)index[i]);
    }
    memcpy(text.s + n, "]", 2);
    return text;
}

/* ---- one plane --------------------------------------------------------- */

/* n0 x n1 elements; strides in elements. */
typedef struct plane {
    char *to;
    const char *from;
    int64_t n0, n1, to0, to1, from0, from1;
} plane;

#if defined(__SSE2__)
/* A whole tile: rows of `from` become columns of `to`, 4 x 4 in registers. */
static inline bool turn_32(uint32_t *to, int64_t to_row, const uint32_t *from,
                           int64_t from_row)
{
    for (int64_t j = 0; j < TILE; j += 4) {
        for (int64_t i = 0; i < TILE; i += 4) {
            const float *x = (const float *)(from + i + j * from_row);
            float *y = (float *)(to + i * to_row + j);
            __m128 a = _mm_loadu_ps(x), b = _mm_loadu_ps(x + from_row);
            __m128 c = _mm_loadu_ps(x + 2 * from_row);
            __m128 d = _mm_loadu_ps(x + 3 * from_row);

            _MM_TRANSPOSE4_PS(a, b, c, d);
            _mm_storeu_ps(y, a);
            _mm_storeu_ps(y + to_row, b);
            _mm_storeu_ps(y + 2 * to_row, c);
            _mm_storeu_ps(y + 3 * to_row, d);
        }
    }
    return true;
}
#else
#define turn_32(to, to_row, from, from_row) false
#endif
#define turn_8(to, to_row, from, from_row) false
#define turn_16(to, to_row, from, from_row) false
#define turn_64(to, to_row, from, from_row) false

#define DEFINE_PLANE(bits)                                                   \
    static void copy_rows_##bits(const plane *p)                             \
    {                                                                        \
        for (int64_t i = 0; i < p->n0; i++) {                                \
            uint##bits##_t *to = (uint##bits##_t *)p->to + i * p->to0;       \
            const uint##bits##_t *from =                                     \
                (const uint##bits##_t *)p->from + i * p->from0;              \
                                                                             \
            if (p->to1 == 1 && p->from1 == 1) {                              \
                memcpy(to, from, (size_t)p->n1 * sizeof(*to));               \
            } else if (p->to1 == 1 && p->from1 == 0) {                       \
                for (int64_t j = 0; j < p->n1; j++) {                        \
                    to[j] = *from;                                           \
                }                                                            \
            } else {                                                         \
                for (int64_t j = 0; j < p->n1; j++) {                        \
                    to[j * p->to1] = from[j * p->from1];                     \
                }                                                            \
            }                                                                \
        }                                                                    \
    }                                                                        \
                                                                             \
    static void copy_tiles_##bits(const plane *p)                            \
    {                                                                        \
        uint##bits##_t *to = (uint##bits##_t *)p->to;                        \
        const uint##bits##_t *from = (const uint##bits##_t *)p->from;        \
                                                                             \
        for (int64_t i = 0; i < p->n0; i += TILE) {                          \
            int64_t i_end = i + TILE < p->n0 ? i + TILE : p->n0;             \
                                                                             \
            for (int64_t j = 0; j < p->n1; j += TILE) {                      \
                int64_t j_end = j + TILE < p->n1 ? j + TILE : p->n1;         \
                                                                             \
                if (p->to1 == 1 && p->from0 == 1 && i + TILE == i_end &&     \
                    j + TILE == j_end &&                                     \
                    turn_##bits(to + i * p->to0 + j, p->to0,                 \
                                from + i + j * p->from1, p->from1)) {        \
                    continue;                                                \
                }                                                            \
                for (int64_t y = i; y < i_end; y++) {                        \
                    for (int64_t x = j; x < j_end; x++) {                    \
                        to[y * p->to0 + x * p->to1] =                        \
                            from[y * p->from0 + x * p->from1];               \
                    }                                                        \
                }                                                            \
            }                                                                \
        }                                                                    \
    }                                                                        \
                                                                             \
    static void copy_plane_##bits(const plane *p, bool tiles)                \
    {                                                                        \
        if (tiles) {                                                         \
            copy_tiles_##bits(p);                                            \
        } else {                                                             \
            copy_rows_##bits(p);                                             \
        }                                                                    \
    }
DEFINE_PLANE(8)
DEFINE_PLANE(16)
DEFINE_PLANE(32)
DEFINE_PLANE(64)

static void copy_plane(int width, const plane *p, bool tiles)
{
    switch (width) {
    case 1:
        copy_plane_8(p, tiles);
        break;
    case 2:
        copy_plane_16(p, tiles);
        break;
    case 4:
        copy_plane_32(p, tiles);
        break;
    default:
        copy_plane_64(p, tiles);
        break;
    }
}

void tl_cpu_turn(int width, int64_t rows, int64_t cols, void *to,
                 int64_t to_row, const void *from, int64_t from_row)
{
    plane p = {.to = to, .from = from, .n0 = rows, .n1 = cols, .to0 = to_row,
               .to1 = 1, .from0 = 1, .from1 = from_row};

    copy_plane(width, &p, true);
}

/* ---- all planes -------------------------------------------------------- */

typedef struct axis {
    int64_t size, to, from;
} axis;

typedef struct copy_job {
    int width, rank; /* the last two axes are the plane */
    axis axes[TL_MAX_RANK + 2];
    char *to;
    const char *from;
    bool tiles;
    int64_t parts;     /* of axis rank - 2, in each plane */
    int64_t rows;      /* of a part */
} copy_job;

static int64_t magnitude(int64_t x)
{
    return x < 0 ? -x : x;
}

/* Axes by falling stride of the destination, without size-1 ones, neighbours
 * that continue each other merged. */
static void set_axes(copy_job *job, int rank, const int64_t *size,
                     const int64_t *to, const int64_t *from)
{
    axis *a = job->axes;
    int n = 0;

    for (int i = 0; i < rank; i++) {
        axis x = {size[i], to[i], from[i]};
        int at = n;

        if (x.size == 1) {
            continue;
        }
        while (at > 0 && magnitude(a[at - 1].to) < magnitude(x.to)) {
            a[at] = a[at - 1];
            at--;
        }
        a[at] = x;
        n++;
    }
    job->rank = 0;
    for (int i = 0; i < n; i++) {
        int last = job->rank - 1;

        if (last >= 0 && a[last].to == a[i].size * a[i].to &&
            a[last].from == a[i].size * a[i].from) {
            a[last] = (axis){a[last].size * a[i].size, a[i].to, a[i].from};
        } else {
            a[job->rank++] = a[i];
        }
    }
}

/* Make the last two axes the plane. */
static void choose_plane(copy_job *job)
{
    axis *a = job->axes;
    int dense = job->rank - 1;

    while (job->rank < 2) { // of fewer axes: rows of one plane
        memmove(a + 1, a, (size_t)job->rank * sizeof(*a));
        a[0] = (axis){1, 0, 0};
        job->rank++;
        dense = job->rank - 1;
    }
    for (int i = 0; i < job->rank - 1; i++) {
        if (a[i].from != 0 && a[i].size > 1 &&
            magnitude(a[i].from) < magnitude(a[dense].from)) {
            dense = i;
        }
    }
    job->tiles = dense != job->rank - 1;
    if (job->tiles && dense != job->rank - 2) {
        axis x = a[dense];

        a[dense] = a[job->rank - 2];
        a[job->rank - 2] = x;
    }
}

static void copy_task(void *arg, int64_t task, int worker)
{
    const copy_job *job = arg;
    const axis *a = &job->axes[job->rank - 2];
    int64_t part = task % job->parts, rest = task / job->parts;
    int64_t to = 0, from = 0, first = part * job->rows;
    plane p = {.n1 = a[1].size, .to0 = a[0].to, .to1 = a[1].to,
               .from0 = a[0].from, .from1 = a[1].from};

    (void)worker;
    for (int i = job->rank - 3; i >= 0; i--) {
        int64_t at = rest % job->axes[i].size;

        rest /= job->axes[i].size;
        to += at * job->axes[i].to;
        from += at * job->axes[i].from;
    }
    p.n0 = a[0].size - first < job->rows ? a[0].size - first : job->rows;
    p.to = job->to + (to + first * a[0].to) * job->width;
    p.from = job->from + (from + first * a[0].from) * job->width;
    copy_plane(job->width, &p, job->tiles);
}

/* One plane or a part of one is a task, unless planes are small: then the
 * caller walks through all of them. */
static void run_copy(tl_kernel_ctx *k, copy_job *job, int64_t planes)
{
    const axis *a = &job->axes[job->rank - 2];
    int64_t elements = a[0].size * a[1].size;

    job->rows = a[0].size;
    job->parts = 1;
    if (elements >= 2 * TL_CPU_GRAIN && a[0].size > 1) {
        job->rows = tl_cpu_rows_a_task(a[1].size);
        job->rows = tl_ceil_div(job->rows, TILE) * TILE;
        job->parts = tl_ceil_div(a[0].size, job->rows);
    }
    if (planes * elements < 2 * TL_CPU_GRAIN || elements < 256) {
        for (int64_t i = 0; i < planes * job->parts; i++) {
            copy_task(job, i, 0);
        }
    } else {
        tl_cpu_run(k, planes * job->parts, copy_task, job);
    }
}

/* One long row as a plane of parts; what is over is copied here. */
static void split_row(tl_kernel_ctx *k, copy_job *job)
{
    axis x = job->axes[0];
    int64_t parts = x.size / TL_CPU_GRAIN, done = parts * TL_CPU_GRAIN;
    int64_t rest = x.size - done;

    if (rest > 0) {
        tl_cpu_copy_elements(k, job->width, 1, &rest,
                             job->to + done * x.to * job->width, &x.to,
                             job->from + done * x.from * job->width,
                             &x.from);
    }
    job->axes[0] = (axis){parts, x.to * TL_CPU_GRAIN, x.from * TL_CPU_GRAIN};
    job->axes[1] = (axis){TL_CPU_GRAIN, x.to, x.from};
    job->rank = 2;
}

void tl_cpu_copy_elements(tl_kernel_ctx *k, int width, int rank,
                          const int64_t *size, void *to,
                          const int64_t *to_stride, const void *from,
                          const int64_t *from_stride)
{
    copy_job job = {.width = width, .to = to, .from = from};
    int64_t planes = 1;

    for (int i = 0; i < rank; i++) {
        if (size[i] == 0) {
            return;
        }
    }
    set_axes(&job, rank, size, to_stride, from_stride);
    if (job.rank == 1 && job.axes[0].size >= 2 * TL_CPU_GRAIN) {
        split_row(k, &job);
    }
    choose_plane(&job);
    for (int i = 0; i < job.rank - 2; i++) {
        planes *= job.axes[i].size;
    }
    run_copy(k, &job, planes);
}

void tl_cpu_copy_tensor(tl_kernel_ctx *k, tl_tensor *to,
                        const tl_tensor *from)
{
    if (to->numel > 0 && !tl_cpu_same_data(to, from)) {
        tl_cpu_copy_elements(k, (int)tl_dtype_size(to->dtype), to->rank,
                             to->size, tl_tensor_data(to), to->stride,
                             tl_tensor_data(from), from->stride);
    }
}

/* ---- kernels ----------------------------------------------------------- */

tl_status tl_cpu_copy(tl_kernel_ctx *k, tl_op op, tl_tensor *const *in,
                      int nin, tl_tensor *const *out, int nout,
                      const tl_attrs *at)
{
    (void)op;
    (void)nin;
    (void)nout;
    (void)at;
    tl_cpu_copy_tensor(k, out[0], in[0]);
    return TL_OK;
}

tl_status tl_cpu_cat(tl_kernel_ctx *k, tl_op op, tl_tensor *const *in,
                     int nin, tl_tensor *const *out, int nout,
                     const tl_attrs *at)
{
    tl_tensor *y = out[0];
    int width = (int)tl_dtype_size(y->dtype);
    int64_t start = 0;

    (void)op;
    (void)nout;
    for (int i = 0; i < nin; i++) {
        char *to = y->numel ? tl_tensor_data(y) : NULL;

        if (in[i]->numel > 0) {
            to += start * y->stride[at->axis] * width;
            tl_cpu_copy_elements(k, width, y->rank, in[i]->size, to,
                                 y->stride, tl_tensor_data(in[i]),
                                 in[i]->stride);
        }
        start += in[i]->size[at->axis];
    }
    return TL_OK;
}

tl_status tl_cpu_slice_put(tl_kernel_ctx *k, tl_op op, tl_tensor *const *in,
                           int nin, tl_tensor *const *out, int nout,
                           const tl_attrs *at)
{
    tl_tensor *y = out[0];
    int width = (int)tl_dtype_size(y->dtype);
    int64_t stride[TL_MAX_RANK];
    tl_layout whole, region;

    (void)op;
    (void)nin;
    (void)nout;
    if (y->numel == 0 || in[1]->numel == 0) {
        tl_cpu_copy_tensor(k, y, in[0]);
        return TL_OK;
    }
    tl_cpu_copy_tensor(k, y, in[0]);
    tl_cpu_layout(y, &whole);
    TL_CHECK(tl_view_layout(TL_OP_slice, at, &whole, &region));
    tl_cpu_broadcast(in[1], region.rank, region.size, stride);
    tl_cpu_copy_elements(k, width, region.rank, region.size,
                         (char *)tl_tensor_data(y) + region.offset * width,
                         region.stride, tl_tensor_data(in[1]), stride);
    return TL_OK;
}

/* ---- tril and triu ----------------------------------------------------- */

typedef struct tri_job {
    char *y;
    int width;
    bool lower;
    int64_t rows, cols, diagonal, per_task, total;
} tri_job;

static void tri_task(void *arg, int64_t task, int worker)
{
    const tri_job *t = arg;
    int64_t end = (task + 1) * t->per_task;

    (void)worker;
    end = end < t->total ? end : t->total;
    for (int64_t r = task * t->per_task; r < end; r++) {
        // kept: columns <= row + diagonal, or >= it
        int64_t edge = r % t->rows + t->diagonal + t->lower;
        char *row = t->y + r * t->cols * t->width;

        edge = edge < 0 ? 0 : edge > t->cols ? t->cols : edge;
        if (t->lower) {
            memset(row + edge * t->width, 0,
                   (size_t)((t->cols - edge) * t->width));
        } else {
            memset(row, 0, (size_t)(edge * t->width));
        }
    }
}

static tl_status tri(tl_kernel_ctx *k, tl_tensor *x, tl_tensor *y,
                     bool lower, int64_t diagonal)
{
    tri_job t = {.width = (int)tl_dtype_size(y->dtype),
                 .lower = lower,
                 .rows = y->size[y->rank - 2],
                 .cols = y->size[y->rank - 1]};
    int64_t far = t.rows + t.cols; // beyond every element

    if (y->numel == 0) {
        return TL_OK;
    }
    tl_cpu_copy_tensor(k, y, x);
    t.y = tl_tensor_data(y);
    t.diagonal = diagonal < -far ? -far : diagonal > far ? far : diagonal;
    t.total = y->numel / t.cols;
    t.per_task = tl_cpu_rows_a_task(t.cols);
    tl_cpu_run(k, tl_ceil_div(t.total, t.per_task), tri_task, &t);
    return TL_OK;
}

tl_status tl_cpu_tril(tl_kernel_ctx *k, tl_op op, tl_tensor *const *in,
                      int nin, tl_tensor *const *out, int nout,
                      const tl_attrs *at)
{
    (void)op;
    (void)nin;
    (void)nout;
    return tri(k, in[0], out[0], true, at->i[0]);
}

tl_status tl_cpu_triu(tl_kernel_ctx *k, tl_op op, tl_tensor *const *in,
                      int nin, tl_tensor *const *out, int nout,
                      const tl_attrs *at)
{
    (void)op;
    (void)nin;
    (void)nout;
    return tri(k, in[0], out[0], false, at->i[0]);
}
