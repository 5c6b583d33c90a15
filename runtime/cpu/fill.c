/* fill.c - creators: full, arange, linspace, eye, and what draws use. */
#include "runtime/cpu/fill.h"

#include <string.h>

#include "runtime/cpu/elementwise.h"
#include "runtime/cpu/kern.h"
#include "runtime/cpu/stage.h"

enum {
    TASK_NS = 50000
};

typedef struct fill_job {
    tl_fill_fn *fn;
    const void *arg;
    tl_stage_fn *stage; /* NULL: tiles are written in place */
    char *to;
    int64_t n, chunk;
    int width;
} fill_job;

static void fill_task(void *arg, int64_t task, int worker)
{
    const fill_job *j = arg;
    int64_t pos = task * j->chunk, end = pos + j->chunk;
    double tile[TL_FILL_TILE];

    (void)worker;
    for (end = end < j->n ? end : j->n; pos < end; pos += TL_FILL_TILE) {
        int64_t n = end - pos < TL_FILL_TILE ? end - pos : TL_FILL_TILE;
        char *to = j->to + pos * j->width;

        if (j->stage == NULL) {
            j->fn(j->arg, pos, n, to);
        } else {
            j->fn(j->arg, pos, n, tile);
            j->stage(n, tile, 1, to);
        }
    }
}

void tl_cpu_fill(tl_kernel_ctx *k, tl_tensor *to, tl_dtype dtype,
                 tl_fill_fn *fn, const void *arg, double ns)
{
    fill_job j = {.fn = fn, .arg = arg, .n = to->numel};
    int64_t tiles = (int64_t)(TASK_NS / ns) / TL_FILL_TILE + 1;

    j.to = tl_tensor_data(to);
    j.width = (int)tl_dtype_size(to->dtype);
    j.stage = dtype == to->dtype ? NULL : tl_stage(dtype, to->dtype);
    j.chunk = tiles * TL_FILL_TILE;
    tl_cpu_run(k, tl_ceil_div(j.n, j.chunk), fill_task, &j);
}

/* ---- creators ---------------------------------------------------------- */

/* Tiles of ints for ints, of doubles for floats. */
static tl_dtype tile_dtype(const tl_tensor *to)
{
    return tl_dtype_is_float(to->dtype) ? TL_f64 : TL_i64;
}

/* A tile of one value. */
typedef struct pattern {
    char byte[TL_FILL_TILE * sizeof(int64_t)];
    size_t width;
    bool even; /* all bytes are the same */
} pattern;

/* The value at `from`, of dtype `dtype`, as one of `to`, for tiles of at most
 * n elements. */
static void set_pattern(pattern *p, tl_dtype dtype, const void *from,
                        tl_dtype to, int64_t n)
{
    size_t size, done;

    p->width = tl_dtype_size(to);
    p->even = true;
    tl_stage(dtype, to)(1, from, 1, p->byte);
    for (size_t i = 1; i < p->width; i++) {
        p->even = p->even && p->byte[i] == p->byte[0];
    }
    size = (size_t)(n < TL_FILL_TILE ? n : TL_FILL_TILE) * p->width;
    for (done = p->width; done < size; done *= 2) { /* what is there again */
        memcpy(p->byte + done, p->byte, done < size - done ? done
                                                           : size - done);
    }
}

/* One value again and again. */
static void fill_pattern(const void *arg, int64_t pos, int64_t n, void *tile)
{
    const pattern *p = arg;
    size_t size = (size_t)n * p->width;

    (void)pos;
    if (p->even) {
        memset(tile, p->byte[0], size);
    } else {
        memcpy(tile, p->byte, size);
    }
}

tl_status tl_cpu_full(tl_kernel_ctx *k, tl_op op, tl_tensor *const *in,
                      int nin, tl_tensor *const *out, int nout,
                      const tl_attrs *at)
{
    tl_dtype dtype = out[0]->dtype, from = tile_dtype(out[0]);
    const void *value = from == TL_i64 ? (const void *)&at->i[0] : &at->f[0];
    pattern p;

    (void)op;
    (void)in;
    (void)nin;
    (void)nout;
    set_pattern(&p, from, value, dtype, out[0]->numel);
    tl_cpu_fill(k, out[0], dtype, fill_pattern, &p, 0.01 * (double)p.width);
    return TL_OK;
}

/* Integers wrap, as all of them do. */
static void range_int(const void *arg, int64_t pos, int64_t n, void *tile)
{
    const tl_attrs *at = arg;
    int64_t *v = tile;

    for (int64_t i = 0; i < n; i++) {
        v[i] = (int64_t)((uint64_t)at->i[0] +
                         (uint64_t)(pos + i) * (uint64_t)at->i[1]);
    }
}

static void range_float(const void *arg, int64_t pos, int64_t n, void *tile)
{
    const tl_attrs *at = arg;
    double *v = tile;

    for (int64_t i = 0; i < n; i++) {
        v[i] = at->f[0] + (double)(pos + i) * at->f[1];
    }
}

tl_status tl_cpu_arange(tl_kernel_ctx *k, tl_op op, tl_tensor *const *in,
                        int nin, tl_tensor *const *out, int nout,
                        const tl_attrs *at)
{
    tl_dtype dtype = tile_dtype(out[0]);

    (void)op;
    (void)in;
    (void)nin;
    (void)nout;
    tl_cpu_fill(k, out[0], dtype, dtype == TL_i64 ? range_int : range_float,
                at, 1);
    return TL_OK;
}

typedef struct line {
    double from, to, step;
    int64_t last;
} line;

/* From both ends, so that both are exact and the middle is symmetric. */
static void fill_line(const void *arg, int64_t pos, int64_t n, void *tile)
{
    const line *l = arg;
    double *v = tile;

    for (int64_t i = 0; i < n; i++) {
        int64_t up = pos + i, down = l->last - up;

        v[i] = up <= down ? l->from + (double)up * l->step
                          : l->to - (double)down * l->step;
    }
}

tl_status tl_cpu_linspace(tl_kernel_ctx *k, tl_op op, tl_tensor *const *in,
                          int nin, tl_tensor *const *out, int nout,
                          const tl_attrs *at)
{
    line l = {.from = at->f[0], .to = at->f[1], .last = out[0]->numel - 1};

    (void)op;
    (void)in;
    (void)nin;
    (void)nout;
    l.step = l.last > 0 ? (l.to - l.from) / (double)l.last : 0;
    tl_cpu_fill(k, out[0], TL_f64, fill_line, &l, 1);
    return TL_OK;
}

tl_status tl_cpu_eye(tl_kernel_ctx *k, tl_op op, tl_tensor *const *in,
                     int nin, tl_tensor *const *out, int nout,
                     const tl_attrs *at)
{
    static const int64_t whole[] = {0, 1};
    static const double real[] = {0, 1};
    tl_dtype dtype = out[0]->dtype, from = tile_dtype(out[0]);
    const void *value[] = {&whole[0], &whole[1]};
    int64_t columns, ones;
    pattern zero, one;

    (void)op;
    (void)in;
    (void)nin;
    (void)nout;
    (void)at;
    if (out[0]->rank != 2) {
        return tl_fail(k->diag, TL_E0304, "`eye` makes a matrix, not rank %d",
                       (int)out[0]->rank);
    }
    columns = out[0]->size[1];
    ones = columns < out[0]->size[0] ? columns : out[0]->size[0];
    if (from != TL_i64) {
        value[0] = &real[0];
        value[1] = &real[1];
    }
    set_pattern(&zero, from, value[0], dtype, out[0]->numel);
    set_pattern(&one, from, value[1], dtype, 1);
    tl_cpu_fill(k, out[0], dtype, fill_pattern, &zero,
                0.01 * (double)zero.width);
    for (int64_t i = 0; i < ones; i++) {
        memcpy((char *)tl_tensor_data(out[0]) +
                   (size_t)(i * (columns + 1)) * one.width,
               one.byte, one.width);
    }
    return TL_OK;
}
