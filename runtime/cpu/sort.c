/* sort.c - sort, topk and unique.
 *
 * Elements become unsigned keys that compare as the elements do (NaN above
 * all, -0 equal to 0), each with its place, and are merged bottom-up, or dealt
 * out digit by digit where they are many; both are stable.  Lines along the
 * axis are tasks. */
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

/* ---- by digits ----------------------------------------------------------- */

enum {
    DIGIT = 11, /* bits */
    VALUES = 1 << DIGIT,
    MANY = 4096 /* items from which digits are faster than merging */
};

/* Bits in which keys differ. */
static uint64_t differing(const item *a, int64_t n)
{
    uint64_t any = 0;

    for (int64_t i = 0; i < n; i++) {
        any |= a[i].key ^ a[0].key;
    }
    return any;
}

/* By the digit at bit `shift`, stably. */
static void deal(const item *a, int64_t n, int shift, item *to)
{
    int64_t at[VALUES] = {0}, sum = 0;

    for (int64_t i = 0; i < n; i++) {
        at[a[i].key >> shift & (VALUES - 1)]++;
    }
    for (int v = 0; v < VALUES; v++) {
        int64_t count = at[v];

        at[v] = sum;
        sum += count;
    }
    for (int64_t i = 0; i < n; i++) {
        to[at[a[i].key >> shift & (VALUES - 1)]++] = a[i];
    }
}

/* From the last digit to the first, without those that all have in common;
 * as sort_items. */
static item *sort_digits(item *a, item *spare, int64_t n)
{
    uint64_t any = differing(a, n);

    for (int shift = 0; shift < 64; shift += DIGIT) {
        uint64_t here = any >> shift;

        if (here == 0) {
            break;
        }
        /* a digit begins where keys differ */
        shift += __builtin_ctzll(here);
        deal(a, n, shift, spare);

        item *other = spare;

        spare = a;
        a = other;
    }
    return a;
}

/* Sort a[0 .. n); `spare` has as much room.  The sorted items are returned:
 * `a` or `spare`. */
static item *sort_items(item *a, item *spare, int64_t n)
{
    if (n >= MANY) {
        return sort_digits(a, spare, n);
    }
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

/* How many of x[0 .. n) in front are not above `least`, in whole sixteens;
 * NaN is above all. */
static int64_t not_above(const float *x, int64_t n, float least)
{
    int64_t i = 0;

    for (; i + 16 <= n; i += 16) {
        int above = 0;

        for (int j = 0; j < 16; j++) {
            above += !(x[i + j] <= least);
        }
        if (above > 0) {
            break;
        }
    }
    return i;
}

/* So few are kept in order one by one. */
enum { FEW = 32 };

/* x among a[0 .. count), behind its equals. */
static void keep_in_order(item *a, int64_t count, item x)
{
    for (; count > 0 && a[count - 1].key > x.key; count--) {
        a[count] = a[count - 1];
    }
    a[count] = x;
}

/* Of a line, the `kept` first in order at least.  When more than FEW are kept:
 * when a few times as many
 * have come together they are sorted, and from then on only what comes before
 * the last of the kept is looked at: an equal one behind it comes later. */
static item *order_line(const sort_job *job, int64_t start, item *items)
{
    int64_t step = job->x->stride[job->axis], count = 0;
    int64_t most = 4 * job->kept + 64 < job->n ? 4 * job->kept + 64 : job->n;
    item *spare = items + job->n;
    bool few = job->kept <= FEW && 8 * job->kept <= job->n;
    const item *last = NULL;
    const float *x = job->x->dtype == TL_f32 && step == 1 && job->down
                         ? (const float *)job->data + start
                         : NULL;

    for (int64_t i = 0, seen = 0; i < job->n; i++) {
        if (last != NULL && x != NULL && i >= seen) {
            i += not_above(x + i, job->n - i, x[last->place]);
            seen = i + 16;
            if (i == job->n) {
                break;
            }
        }
        uint64_t key = key_of(job->data, job->x->dtype, start + i * step);

        key = job->down ? ~key : key;
        if (last != NULL && key >= last->key) {
            continue;
        }
        if (few) {
            count -= last != NULL;
            keep_in_order(items, count++, (item){key, i});
            last = count == job->kept ? &items[count - 1] : NULL;
            continue;
        }
        items[count++] = (item){key, i};
        if (count == most && most < job->n) {
            const item *sorted = sort_items(items, spare, count);

            if (sorted != items) {
                memcpy(items, sorted, (size_t)job->kept * sizeof(*items));
            }
            count = job->kept;
            last = &items[count - 1];
        }
    }
    return few ? items : sort_items(items, spare, count);
}

static void sort_line(const sort_job *job, int64_t line, item *items)
{
    int64_t start = line_start(job, line);
    int64_t step = job->x->stride[job->axis];
    size_t width = tl_dtype_size(job->x->dtype);
    int64_t to = line / job->inner * job->kept * job->inner + line % job->inner;

    items = order_line(job, start, items);
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

/* Lines of `m` keys each. */
typedef struct table {
    const uint64_t *key;
    int64_t n, m;
} table;

/* Order the lines, stably, by their last key first; `items` has room for 2 n.
 * What is returned lies in it. */
static item *sort_table(const table *t, item *items)
{
    item *spare = items + t->n;

    for (int64_t i = 0; i < t->n; i++) {
        items[i] = (item){0, i};
    }
    for (int64_t j = t->m - 1; j >= 0 && t->n > 0; j--) {
        for (int64_t i = 0; i < t->n; i++) {
            items[i].key = t->key[items[i].place * t->m + j];
        }
        item *sorted = sort_items(items, spare, t->n);

        spare = sorted == items ? spare : items;
        items = sorted;
    }
    return items;
}

/* From the lines in order: the first of each that differs, in items[0 ..);
 * for each line which it is (where[]), for each how many (many[]).  Returns
 * how many differ. */
static int64_t tell_apart(const table *t, item *items, int64_t *where,
                          int64_t *many)
{
    size_t width = (size_t)t->m * sizeof(*t->key);
    int64_t distinct = 0;

    for (int64_t i = 0; i < t->n; i++) {
        item x = items[i];

        if (distinct == 0 ||
            (t->m == 1 && x.key != items[distinct - 1].key) ||
            (t->m > 1 &&
             memcmp(t->key + x.place * t->m,
                    t->key + items[distinct - 1].place * t->m, width) != 0)) {
            items[distinct] = x;
            many[distinct++] = 0;
        }
        where[x.place] = distinct - 1;
        many[distinct - 1]++;
    }
    return distinct;
}

typedef struct found {
    const item *first; /* a line of each */
    const int64_t *many;
    int64_t distinct;
    const char *data; /* lines of `width` bytes */
    size_t width;
} found;

static tl_status put_unique(tl_kernel_ctx *k, const tl_tensor *x,
                            tl_tensor *const *out, const found *f)
{
    int64_t size[TL_MAX_RANK];

    for (int i = 0; i < out[0]->rank; i++) {
        size[i] = i == 0 ? f->distinct : x->size[i];
    }
    TL_TRY(tl_tensor_realize(out[0], k->pool, size, k->diag));
    TL_TRY(tl_tensor_realize(out[2], k->pool, &f->distinct, k->diag));
    if (f->distinct > 0) {
        memcpy(tl_tensor_data(out[2]), f->many,
               (size_t)f->distinct * sizeof(*f->many));
    }
    for (int64_t i = 0; i < f->distinct && f->width > 0; i++) {
        memcpy((char *)tl_tensor_data(out[0]) + (size_t)i * f->width,
               f->data + (size_t)f->first[i].place * f->width, f->width);
    }
    return TL_OK;
}

/* The elements as one row-major piece, and their keys. */
static void lay_out(tl_kernel_ctx *k, const tl_tensor *x, char *data,
                    uint64_t *key)
{
    tl_layout l;

    tl_layout_row_major(&l, x->rank, x->size);
    tl_cpu_copy_elements(k, (int)tl_dtype_size(x->dtype), x->rank, x->size,
                         data, l.stride, tl_tensor_data(x), x->stride);
    for (int64_t i = 0; i < x->numel; i++) {
        key[i] = key_of(data, x->dtype, i);
    }
}

tl_status tl_cpu_unique(tl_kernel_ctx *k, tl_op op, tl_tensor *const *in,
                        int nin, tl_tensor *const *out, int nout,
                        const tl_attrs *at)
{
    const tl_tensor *x = in[0];
    size_t width = tl_dtype_size(x->dtype);
    tl_storage *copy = NULL, *keys = NULL, *scratch = NULL, *counts = NULL;
    table t = {NULL, x->numel, 1};
    item *items;
    found f;
    tl_status st;

    (void)op;
    (void)nin;
    (void)nout;
    if (at != NULL && at->flag) {
        t.n = x->size[0];
        t.m = 1;
        for (int i = 1; i < x->rank; i++) {
            t.m *= x->size[i];
        }
    }
    TL_GOTO(st, tl_cpu_scratch(k, x->numel, width, &copy));
    TL_GOTO(st, tl_cpu_scratch(k, x->numel, sizeof(*t.key), &keys));
    TL_GOTO(st, tl_cpu_scratch(k, 2 * t.n, sizeof(item), &scratch));
    TL_GOTO(st, tl_cpu_scratch(k, t.n, sizeof(int64_t), &counts));
    t.key = tl_storage_data(keys);
    if (x->numel > 0) {
        lay_out(k, x, tl_storage_data(copy), tl_storage_data(keys));
    }
    items = sort_table(&t, tl_storage_data(scratch));
    f = (found){.first = items,
                .many = tl_storage_data(counts),
                .data = tl_storage_data(copy),
                .width = width * (size_t)t.m};
    f.distinct = tell_apart(&t, items, tl_tensor_data(out[1]),
                            tl_storage_data(counts));
    st = put_unique(k, x, out, &f);
out:
    tl_storage_unref(copy);
    tl_storage_unref(keys);
    tl_storage_unref(scratch);
    tl_storage_unref(counts);
    return st;
}
