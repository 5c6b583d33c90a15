/* sort.c - sort, topk and unique.
 *
 * Elements become unsigned keys that compare as the elements do (NaN above
 * all, -0 equal to 0), each with its place, and are merged bottom-up, which
 * is stable.  Lines along the axis are tasks. */
#include <string.h>

#include "runtime/cpu/kern.h"

typedef struct item {
    uint64_t key;
    int64_t place;
} item;

/* ---- keys -------------------------------------------------------------- */

static uint64_t float_key(double x)
{
    uint64_t bits;

    if (x != x) {
        return UINT64_MAX;
    }
    x = x == 0 ? 0 : x; // -0 as 0
    memcpy(&bits, &x, sizeof(bits));
    return bits >> 63 ? ~bits : bits | (uint64_t)1 << 63;
}

static uint64_t key_of(const void *data, tl_dtype dtype, int64_t at)
{
    if (dtype == TL_f64) {
        return float_key(((const double *)data)[at]);
    }
    if (tl_dtype_is_float(dtype)) {
        return float_key((double)tl_cpu_load_f32(data, dtype, at));
    }
    return (uint64_t)tl_cpu_load_int(data, dtype, at) ^ (uint64_t)1 << 63;
}

/* ---- merging ----------------------------------------------------------- */

/* Runs of this length are sorted by insertion first. */
enum { RUN = 16 };

static void insertion(item *a, int64_t n)
{
    for (int64_t i = 1; i < n; i++) {
        item x = a[i];
        int64_t j = i;

        while (j > 0 && a[j - 1].key > x.key) {
            a[j] = a[j - 1];
            j--;
        }
        a[j] = x;
    }
}

static void merge(const item *a, int64_t na, const item *b, int64_t nb,
                  item *to)
{
    while (na > 0 && nb > 0) {
        bool left = a->key <= b->key; // of equals the left one: stable

        *to++ = left ? *a : *b;
        a += left;
        na -= left;
        b += !left;
        nb -= !left;
    }
    memcpy(to, na > 0 ? a : b, (size_t)(na + nb) * sizeof(*to));
}

/* Sort a[0 .. n); `spare` has as much room.  The sorted items are returned:
 * `a` or `spare`. */
static item *sort_items(item *a, item *spare, int64_t n)
{
    for (int64_t i = 0; i < n; i += RUN) {
        insertion(a + i, n - i < RUN ? n - i : RUN);
    }
    for (int64_t run = RUN; run < n; run *= 2) {
        item *other = spare;

        for (int64_t i = 0; i < n; i += 2 * run) {
            int64_t na = n - i < run ? n - i : run;
            int64_t nb = n - i - na < run ? n - i - na : run;

            merge(a + i, na, a + i + na, nb, spare + i);
        }
        spare = a;
        a = other;
    }
    return a;
}

/* ---- lines ------------------------------------------------------------- */

typedef struct sort_job {
    const tl_tensor *x;
    const char *data;
    char *values;
    int64_t *places;
    int axis;
    bool down;
    int64_t n, kept;           /* of a line, and of its result */
    int64_t lines, inner;      /* in all, and behind the axis */
    int64_t per_task;
    item *scratch; /* 2 n for each worker */
} sort_job;

static int64_t line_start(const sort_job *job, int64_t line)
{
    int64_t offset = 0;

    for (int d = job->x->rank - 1; d >= 0; d--) {
        if (d != job->axis) {
            offset += line % job->x->size[d] * job->x->stride[d];
            line /= job->x->size[d];
        }
    }
    return offset;
}

static void sort_line(const sort_job *job, int64_t line, item *items)
{
    int64_t start = line_start(job, line);
    int64_t step = job->x->stride[job->axis];
    size_t width = tl_dtype_size(job->x->dtype);
    int64_t to = line / job->inner * job->kept * job->inner + line % job->inner;

    for (int64_t i = 0; i < job->n; i++) {
        uint64_t key = key_of(job->data, job->x->dtype, start + i * step);

        items[i] = (item){job->down ? ~key : key, i};
    }
    items = sort_items(items, items + job->n, job->n);
    for (int64_t i = 0; i < job->kept; i++, to += job->inner) {
        memcpy(job->values + (size_t)to * width,
               job->data +
                   (start + items[i].place * step) * (int64_t)width,
               width);
        job->places[to] = items[i].place;
    }
}

static void sort_task(void *arg, int64_t task, int worker)
{
    const sort_job *job = arg;
    int64_t line = task * job->per_task, end = line + job->per_task;

    for (end = end < job->lines ? end : job->lines; line < end; line++) {
        sort_line(job, line, job->scratch + worker * 2 * job->n);
    }
}

static tl_status sort_lines(tl_kernel_ctx *k, const tl_tensor *x,
                            tl_tensor *const *out, int axis, bool down)
{
    sort_job job = {.x = x, .axis = axis, .down = down, .n = x->size[axis],
                    .kept = out[0]->size[axis], .inner = 1};
    tl_storage *scratch;

    if (out[0]->numel == 0) {
        return TL_OK;
    }
    for (int d = axis + 1; d < x->rank; d++) {
        job.inner *= x->size[d];
    }
    job.lines = x->numel / job.n;
    job.per_task = tl_cpu_rows_a_task(16 * job.n);
    TL_TRY(tl_cpu_scratch(k, 2 * job.n * tl_threads_count(k->threads),
                          sizeof(item), &scratch));
    job.scratch = tl_storage_data(scratch);
    job.data = tl_tensor_data(x);
    job.values = tl_tensor_data(out[0]);
    job.places = tl_tensor_data(out[1]);
    tl_cpu_run(k, tl_ceil_div(job.lines, job.per_task), sort_task, &job);
    tl_storage_unref(scratch);
    return TL_OK;
}

tl_status tl_cpu_sort(tl_kernel_ctx *k, tl_op op, tl_tensor *const *in,
                      int nin, tl_tensor *const *out, int nout,
                      const tl_attrs *at)
{
    (void)op;
    (void)nin;
    (void)nout;
    return sort_lines(k, in[0], out, at->axis, at->flag);
}

tl_status tl_cpu_topk(tl_kernel_ctx *k, tl_op op, tl_tensor *const *in,
                      int nin, tl_tensor *const *out, int nout,
                      const tl_attrs *at)
{
    (void)op;
    (void)nin;
    (void)nout;
    return sort_lines(k, in[0], out, at->axis, !at->flag);
}

/* ---- unique ------------------------------------------------------------ */

tl_status tl_cpu_unique(tl_kernel_ctx *k, tl_op op, tl_tensor *const *in,
                        int nin, tl_tensor *const *out, int nout,
                        const tl_attrs *at)
{
    tl_tensor flat = *in[0]; // the elements as one row-major line
    size_t width = tl_dtype_size(flat.dtype);
    tl_storage *copy = NULL, *scratch = NULL;
    item *items;
    tl_layout l;
    int64_t n = flat.numel, distinct = 0;
    char *data = NULL;
    tl_status st;

    (void)op;
    (void)nin;
    (void)nout;
    (void)at;
    TL_GOTO(st, tl_cpu_scratch(k, n, width, &copy));
    TL_GOTO(st, tl_cpu_scratch(k, 2 * n, sizeof(item), &scratch));
    items = tl_storage_data(scratch);
    if (n > 0) {
        data = tl_storage_data(copy);
        tl_layout_row_major(&l, flat.rank, flat.size);
        tl_cpu_copy_elements(k, (int)width, flat.rank, flat.size, data,
                             l.stride, tl_tensor_data(in[0]), flat.stride);
        for (int64_t i = 0; i < n; i++) {
            items[i] = (item){key_of(data, flat.dtype, i), i};
        }
        items = sort_items(items, items + n, n);
    }
    for (int64_t i = 0; i < n; i++) { // keep the first of each
        if (i == 0 || items[i].key != items[distinct - 1].key) {
            items[distinct++] = items[i];
        }
    }
    TL_GOTO(st, tl_tensor_realize(out[0], k->pool, &distinct, k->diag));
    for (int64_t i = 0; i < distinct; i++) {
        memcpy((char *)tl_tensor_data(out[0]) + (size_t)i * width,
               data + (size_t)items[i].place * width, width);
    }
out:
    tl_storage_unref(copy);
    tl_storage_unref(scratch);
    return st;
}
