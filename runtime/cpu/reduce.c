/* reduce.c - the kernel of RED rows.
 *
 * A reduction is one or two passes over the input, each a fold by the tree of
 * README.md with a value for each result, and a last step on the values.
 * Tasks are groups of results; where there are few results, also complete
 * subtrees of their leaves, joined afterwards as the tree says. */
#include "runtime/cpu/reduce.h"

#include <math.h>
#include <string.h>

#include "runtime/base/check.h"
#include "runtime/cpu/elementwise.h"
#include "runtime/cpu/kern.h"
#include "runtime/cpu/scalar.h"

/* ---- a pass ------------------------------------------------------------ */

typedef struct pass {
    const tl_reduce_plan *p;
    tl_fold_kind kind;
    tl_fold_map map;
    const char *params; /* of all results, or NULL */
    bool moments;       /* mean and M2 instead of a fold */
    char *value[2];     /* of all results; [1]: M2 */
    char *part[2];      /* of all chunks: [chunks][results] */
    int64_t n;          /* elements of a result */
    int64_t results, groups, chunk, chunks;
    int64_t batch; /* groups of a task when there is one chunk */
} pass;

/* A part of a pass that is one task, reading by plan `p`. */
typedef void part_fn(const void *arg, const tl_reduce_plan *p, int64_t task);

/* With a reader of its own; it is large. */
static __attribute__((noinline)) void run_fed(const void *arg,
                                              const tl_reduce_plan *p,
                                              part_fn *part, int64_t task)
{
    tl_reduce_reader reader;
    tl_reduce_plan own = *p;

    tl_reduce_reader_open(&reader, &own);
    part(arg, &own, task);
}

static void run_part(const void *arg, const tl_reduce_plan *p, part_fn *part,
                     int64_t task)
{
    if (p->feed != NULL) {
        run_fed(arg, p, part, task);
    } else {
        part(arg, p, task);
    }
}

/* Let a reader compute ahead what the elements lo .. hi of `w` results need,
 * where they lie one behind the other. */
static void look_ahead(const tl_reduce_plan *p, int64_t offset, int64_t w,
                       int64_t hi)
{
    bool whole_rows = p->reduced.rank == 1 && p->reduced.stride[0] == w;

    if (p->w > 1) {
        p->reader->ahead = whole_rows ? offset + hi * w : 0;
    } else if (p->reduced.rank == 1 && offset + hi > p->reader->ahead) {
        p->reader->ahead = offset + hi;
    }
}

static void fold_range(const pass *s, const tl_reduce_plan *p, int64_t group,
                       int64_t lo, int64_t hi, char *const to[2],
                       int64_t base)
{
    int64_t at, offset;
    int64_t w = tl_reduce_group(p, group, &at, &offset);
    int64_t bytes = at * p->width;
    const char *params = s->params == NULL ? NULL : s->params + bytes;

    bytes += base * p->width;
    if (p->feed != NULL) {
        look_ahead(p, offset, w, hi);
    }
    if (s->moments) {
        tl_moments m = {0, to[0] + bytes, to[1] + bytes};

        tl_reduce_moments(p, offset, w, lo, hi, &m);
    } else {
        tl_reduce_fold(p, s->kind, s->map, offset, w, lo, hi, params,
                       to[0] + bytes);
    }
}

static void batch_part(const void *arg, const tl_reduce_plan *p, int64_t task)
{
    const pass *s = arg;
    int64_t group = task * s->batch, end = group + s->batch;

    end = end < s->groups ? end : s->groups;
    if (p->feed != NULL && p->w == 1 && p->reduced.rank == 1 &&
        p->stay.rank == 1 && p->stay.stride[0] == s->n) {
        p->reader->ahead = end * s->n; /* rows follow each other */
    }
    for (; group < end; group++) {
        fold_range(s, p, group, 0, s->n, s->value, 0);
    }
}

static void chunk_part(const void *arg, const tl_reduce_plan *p, int64_t task)
{
    const pass *s = arg;
    int64_t chunk = task % s->chunks, lo = chunk * s->chunk;
    int64_t hi = lo + s->chunk < s->n ? lo + s->chunk : s->n;

    fold_range(s, p, task / s->chunks, lo, hi, s->part, chunk * s->results);
}

static void batch_task(void *arg, int64_t task, int worker)
{
    (void)worker;
    run_part(arg, ((const pass *)arg)->p, batch_part, task);
}

static void chunk_task(void *arg, int64_t task, int worker)
{
    (void)worker;
    run_part(arg, ((const pass *)arg)->p, chunk_part, task);
}

/* Elements before chunk `chunk`. */
static int64_t before(const pass *s, int64_t chunk)
{
    return chunk * s->chunk < s->n ? chunk * s->chunk : s->n;
}

/* Join the parts of the chunks lo .. hi into the last of them.  The left side
 * of the tree is the largest power of two below the number of chunks; the
 * depth is its logarithm. */
static void join_parts(const pass *s, int64_t lo, int64_t hi)
{
    int64_t bytes = s->results * s->p->width, mid = 1, left, right;

    if (hi - lo == 1) {
        return;
    }
    while (2 * mid < hi - lo) {
        mid *= 2;
    }
    mid += lo;
    join_parts(s, lo, mid);
    join_parts(s, mid, hi);
    left = (mid - 1) * bytes;
    right = (hi - 1) * bytes;
    if (s->moments) {
        tl_moments a = {before(s, mid) - before(s, lo), s->part[0] + left,
                        s->part[1] + left};
        tl_moments b = {before(s, hi) - before(s, mid), s->part[0] + right,
                        s->part[1] + right};

        tl_moments_merge(s->p->acc, &a, &b, s->results);
    } else {
        tl_fold_best(s->p->acc, s->kind)
            ->merge(s->part[0] + left, s->part[0] + right, s->results);
    }
}

/* Few results of many elements: chunks of leaves, then the rest of the tree. */
static tl_status run_chunks(tl_kernel_ctx *k, pass *s)
{
    size_t bytes = (size_t)(s->results * s->p->width);
    size_t last = (size_t)(s->chunks - 1) * bytes;
    tl_storage *scratch = NULL;

    TL_TRY(
        tl_cpu_scratch(k, s->chunks * (s->moments ? 2 : 1), bytes, &scratch));
    s->part[0] = tl_storage_data(scratch);
    s->part[1] = s->part[0] + last + bytes;
    tl_threads_run(k->threads, s->groups * s->chunks, chunk_task, s);
    join_parts(s, 0, s->chunks);
    memcpy(s->value[0], s->part[0] + last, bytes);
    if (s->moments) {
        memcpy(s->value[1], s->part[1] + last, bytes);
    }
    tl_storage_unref(scratch);
    return TL_OK;
}

static tl_status run_pass(tl_kernel_ctx *k, const tl_reduce_plan *p, pass *s)
{
    int64_t width; /* of a group */

    s->p = p;
    s->n = p->reduced.count;
    s->results = p->stay.count;
    s->groups = s->results / p->row * p->groups;
    width = p->row < p->w ? p->row : p->w;
    s->chunk = TL_LEAF; /* whole leaves, a power of two of them */
    while (s->chunk * width * p->cost < 2 * TL_CPU_GRAIN) {
        s->chunk *= 2;
    }
    s->chunks = tl_ceil_div(s->n, s->chunk);
    if (s->chunks > 1 && s->groups < 4 * tl_threads_count(k->threads)) {
        return run_chunks(k, s);
    }
    s->batch = tl_cpu_rows_a_task(s->n * width * p->cost);
    tl_cpu_run(k, tl_ceil_div(s->groups, s->batch), batch_task, s);
    return TL_OK;
}

/* ---- the last step ----------------------------------------------------- */

typedef struct last_step {
    tl_op op;
    double n, correction;
} last_step;

/* v = what the values of the passes come to; m is the first pass of a
 * logsumexp.  Double precision where float would lose the count. */
#define LAST(suffix, type)                                                   \
    static void last_##suffix(const last_step *l, int64_t n, type *v,        \
                              const type *m)                                 \
    {                                                                        \
        for (int64_t i = 0; i < n; i++) {                                    \
            switch (l->op) {                                                 \
            case TL_OP_mean:                                                 \
                v[i] = (type)((double)v[i] / l->n);                          \
                break;                                                       \
            case TL_OP_var:                                                  \
                v[i] = (type)((double)v[i] / (l->n - l->correction));        \
                break;                                                       \
            case TL_OP_std:                                                  \
                v[i] = (type)sqrt((double)v[i] / (l->n - l->correction));    \
                break;                                                       \
            case TL_OP_norm:                                                 \
                v[i] = tl_sqrt_##suffix(v[i]);                               \
                break;                                                       \
            case TL_OP_logsumexp:                                            \
                v[i] = m[i] + tl_log_##suffix(v[i]);                         \
                break;                                                       \
            default:                                                         \
                return;                                                      \
            }                                                                \
        }                                                                    \
    }
LAST(f32, float)
LAST(f64, double)

/* Means of integers: exact sums, one rounding to double. */
static void mean_of_ints(const last_step *l, int64_t n, int64_t *v)
{
    for (int64_t i = 0; i < n; i++) {
        double mean = (double)v[i] / l->n;

        memcpy(&v[i], &mean, sizeof mean);
    }
}

/* Turn the values into the result; returns their dtype now. */
static tl_dtype finish(const last_step *l, const tl_reduce_plan *p, char *v,
                       const char *m)
{
    int64_t n = p->stay.count;

    switch (p->acc) {
    case TL_f32:
        last_f32(l, n, (float *)v, (const float *)m);
        return TL_f32;
    case TL_f64:
        last_f64(l, n, (double *)v, (const double *)m);
        return TL_f64;
    default:
        if (l->op != TL_OP_mean) {
            return TL_i64;
        }
        mean_of_ints(l, n, (int64_t *)v);
        return TL_f64;
    }
}

/* ---- argmax, argmin ---------------------------------------------------- */

typedef struct search {
    const tl_reduce_plan *p;
    const char *best; /* of all results */
    int64_t *to;
    int64_t n, groups, batch;
} search;

/* The first place of the best value (or of the first NaN, which is it).
 * Groups of 32 are looked through for a hit before the hit is looked for. */
#define SEARCH(suffix, type)                                                 \
    static int64_t first_##suffix(const void *row, int64_t n, type best)     \
    {                                                                        \
        const type *x = row;                                                 \
        int64_t i = 0;                                                       \
                                                                             \
        for (; i + 32 <= n; i += 32) {                                       \
            int hits = 0;                                                    \
                                                                             \
            for (int j = 0; j < 32; j++) {                                   \
                hits |= x[i + j] == best || x[i + j] != x[i + j];            \
            }                                                                \
            if (hits != 0) {                                                 \
                break;                                                       \
            }                                                                \
        }                                                                    \
        while (i < n && x[i] != best && x[i] == x[i]) {                      \
            i++;                                                             \
        }                                                                    \
        return i;                                                            \
    }                                                                        \
                                                                             \
    static void along_##suffix(const search *s, const tl_reduce_plan *p,     \
                               int64_t offset, int64_t at)                   \
    {                                                                        \
        double tile[TL_LEAF];                                                \
        type best = ((const type *)s->best)[at];                             \
        for (int64_t lo = 0; lo < s->n; lo += TL_LEAF) {                     \
            int64_t n = s->n - lo < TL_LEAF ? s->n - lo : TL_LEAF, i;        \
            i = first_##suffix(tl_reduce_along(p, offset, lo, n, tile), n,   \
                               best);                                        \
            if (i < n) {                                                     \
                s->to[at] = lo + i;                                          \
                return;                                                      \
            }                                                                \
        }                                                                    \
    }                                                                        \
    static void over_##suffix(const search *s, const tl_reduce_plan *p,      \
                              int64_t offset, int64_t at, int64_t w)         \
    {                                                                        \
        const type *best = (const type *)s->best + at;                       \
        double tile[TL_FOLD_BYTES / sizeof(double)];                         \
        int64_t *to = s->to + at;                                            \
        for (int64_t i = s->n - 1; i >= 0; i--) { /* the first stays */      \
            const type *x = tl_reduce_over(p, offset, w, i, tile);           \
            for (int64_t c = 0; c < w; c++) {                                \
                to[c] = x[c] == best[c] || x[c] != x[c] ? i : to[c];         \
            }                                                                \
        }                                                                    \
    }
SEARCH(f32, float)
SEARCH(f64, double)
SEARCH(i64, int64_t)

static void search_group(const search *s, const tl_reduce_plan *p,
                         int64_t group)
{
    int64_t at, offset;
    int64_t w = tl_reduce_group(p, group, &at, &offset);

    switch (p->acc) {
#define CASE(suffix)                                                         \
    case TL_##suffix:                                                        \
        if (p->w > 1) {                                                      \
            over_##suffix(s, p, offset, at, w);                              \
        } else {                                                             \
            along_##suffix(s, p, offset, at);                                \
        }                                                                    \
        break;
        CASE(f32)
        CASE(f64)
        CASE(i64)
    default:
        break;
    }
}

static void search_part(const void *arg, const tl_reduce_plan *p,
                        int64_t task)
{
    const search *s = arg;
    int64_t group = task * s->batch, end = group + s->batch;

    for (end = end < s->groups ? end : s->groups; group < end; group++) {
        search_group(s, p, group);
    }
}

static void search_task(void *arg, int64_t task, int worker)
{
    (void)worker;
    run_part(arg, ((const search *)arg)->p, search_part, task);
}

static void find_best(tl_kernel_ctx *k, const tl_reduce_plan *p,
                      const pass *values, int64_t *to)
{
    search s = {.p = p,
                .best = values->value[0],
                .to = to,
                .n = values->n,
                .groups = values->groups};

    s.batch = tl_cpu_rows_a_task(s.n * (p->row < p->w ? p->row : p->w) *
                                 p->cost);
    tl_cpu_run(k, tl_ceil_div(s.groups, s.batch), search_task, &s);
}

/* ---- the kernel -------------------------------------------------------- */

tl_dtype tl_reduce_acc(tl_op op, tl_dtype dtype)
{
    if (op == TL_OP_norm) {
        return TL_f64; /* squares of f32 neither overflow nor vanish */
    }
    return tl_dtype_is_float(dtype) ? tl_dtype_arith(dtype) : TL_i64;
}

static void first_pass(tl_op op, pass *s)
{
    static const struct {
        tl_op op;
        tl_fold_kind kind;
        tl_fold_map map;
    } folds[] = {
        {TL_OP_sum, TL_FOLD_SUM, TL_FOLD_X},
        {TL_OP_mean, TL_FOLD_SUM, TL_FOLD_X},
        {TL_OP_prod, TL_FOLD_PROD, TL_FOLD_X},
        {TL_OP_norm, TL_FOLD_SUM, TL_FOLD_SQUARE},
        {TL_OP_max, TL_FOLD_MAX, TL_FOLD_X},
        {TL_OP_argmax, TL_FOLD_MAX, TL_FOLD_X},
        {TL_OP_logsumexp, TL_FOLD_MAX, TL_FOLD_X},
        {TL_OP_min, TL_FOLD_MIN, TL_FOLD_X},
        {TL_OP_argmin, TL_FOLD_MIN, TL_FOLD_X},
        {TL_OP_any, TL_FOLD_MAX, TL_FOLD_NONZERO},
        {TL_OP_all, TL_FOLD_MIN, TL_FOLD_NONZERO},
    };

    s->moments = op == TL_OP_var || op == TL_OP_std;
    for (size_t i = 0; i < sizeof folds / sizeof *folds; i++) {
        if (folds[i].op == op) {
            s->kind = folds[i].kind;
            s->map = folds[i].map;
        }
    }
}

/* What reductions of nothing give, where it is not the fold's identity. */
static bool of_nothing(tl_kernel_ctx *k, tl_op op, double *value)
{
    switch (op) {
    case TL_OP_mean:
    case TL_OP_var:
    case TL_OP_std:
        tl_warn(k->diag, TL_W0403, (tl_span){0}, "%s of nothing is nan",
                tl_op_get(op)->name);
        *value = (double)NAN;
        return true;
    case TL_OP_logsumexp:
        *value = -(double)INFINITY;
        return true;
    case TL_OP_any:
    case TL_OP_all:
        *value = op == TL_OP_all;
        return true;
    default:
        return false;
    }
}

/* ---- norms of doubles ---------------------------------------------------- */

/* Could squares have overflowed or vanished? */
static bool is_suspect(const double *v, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        if (!(v[i] >= 0x1p-900 && v[i] <= 0x1p900)) {
            return true;
        }
    }
    return false;
}

/* The power of two that brings the largest element, m, near 1. */
static double scale_of(double m)
{
    if (m == 0 || !isfinite(m)) {
        return 1;
    }
    return ldexp(1, ilogb(m) < -1000 ? 1000 : -ilogb(m));
}

/* Sums of squares again, of elements scaled by the results' own powers of
 * two, and their roots: the bits of the plain way where that is safe. */
static tl_status scaled_norms(tl_kernel_ctx *k, const tl_reduce_plan *p,
                              double *v, double *scale)
{
    pass most = {
        .kind = TL_FOLD_MAX, .map = TL_FOLD_ABS, .value = {(char *)scale}};
    pass sum = {.kind = TL_FOLD_SUM,
                .map = TL_FOLD_SCALED,
                .params = (char *)scale,
                .value = {(char *)v}};

    TL_TRY(run_pass(k, p, &most));
    for (int64_t i = 0; i < p->stay.count; i++) {
        scale[i] = scale_of(scale[i]);
    }
    TL_TRY(run_pass(k, p, &sum));
    for (int64_t i = 0; i < p->stay.count; i++) {
        v[i] = sqrt(v[i]) / scale[i];
    }
    return TL_OK;
}

/* All passes and the last step; scratch holds two values a result. */
static tl_status reduce(tl_kernel_ctx *k, tl_op op, const tl_reduce_plan *p,
                        char *scratch, double correction, void *to,
                        tl_dtype to_dtype)
{
    int64_t bytes = p->stay.count * p->width;
    last_step l = {op, (double)p->reduced.count, correction};
    pass s = {.value = {scratch, scratch + bytes}};
    char *res = s.value[0];
    tl_dtype dtype;

    first_pass(op, &s);
    TL_TRY(run_pass(k, p, &s));
    if (op == TL_OP_argmax || op == TL_OP_argmin) {
        find_best(k, p, &s, to);
        return TL_OK;
    }
    if (s.moments) {
        res = s.value[1];
    } else if (op == TL_OP_logsumexp) {
        pass sum = {.kind = TL_FOLD_SUM,
                    .map = TL_FOLD_EXP_MINUS,
                    .params = s.value[0],
                    .value = {s.value[1]}};

        TL_TRY(run_pass(k, p, &sum));
        res = s.value[1];
    }
    if (op == TL_OP_norm && is_suspect((double *)res, p->stay.count)) {
        TL_TRY(scaled_norms(k, p, (double *)res, (double *)s.value[1]));
        l.op = TL_OP_sum; /* nothing is left to do */
    }
    dtype = finish(&l, p, res, s.value[0]);
    if (tl_stage(dtype, to_dtype) != NULL) {
        tl_stage(dtype, to_dtype)(p->stay.count, res, 1, to);
    }
    return TL_OK;
}

tl_status tl_reduce_fed(tl_kernel_ctx *k, tl_op op, tl_tensor *x,
                        const tl_tile *feed, tl_tensor *to,
                        const tl_attrs *at)
{
    char small[1024] __attribute__((aligned(64)));
    tl_storage *scratch = NULL;
    tl_reduce_plan p;
    double value;
    tl_status st;

    if (to->numel == 0) {
        return TL_OK;
    }
    if (x->numel == 0 && of_nothing(k, op, &value)) {
        for (int64_t i = 0; i < to->numel; i++) {
            tl_tensor_set_f(to, i, value);
        }
        return TL_OK;
    }
    tl_reduce_plan_init(&p, x, feed, at->axes, tl_reduce_acc(op, x->dtype));
    if (p.stay.count * p.width * 2 <= (int64_t)sizeof small) {
        return reduce(k, op, &p, small, at->f[0], tl_tensor_data(to),
                      to->dtype);
    }
    TL_TRY(tl_cpu_scratch(k, p.stay.count, (size_t)p.width * 2, &scratch));
    st = reduce(k, op, &p, tl_storage_data(scratch), at->f[0],
                tl_tensor_data(to), to->dtype);
    tl_storage_unref(scratch);
    return st;
}

void tl_reduce_rows(tl_op op, const tl_reduce_table *x, double correction,
                    void *to, tl_dtype to_dtype)
{
    char scratch[TL_REDUCE_ROWS * 2 * sizeof(double)]
        __attribute__((aligned(64)));
    int64_t dims[4] = {x->rows, x->n, x->n, 1};
    tl_tensor stub = {.dtype = x->dtype, .rank = 2, .size = dims,
                      .stride = dims + 2, .numel = x->rows * x->n};
    tl_kernel_ctx alone = {0}; /* one task, no scratch */
    tl_reduce_plan p;
    tl_status st;

    TL_CHECK(x->rows <= TL_REDUCE_ROWS && x->n > 0 && x->n <= TL_REDUCE_ROW);
    tl_reduce_plan_init(&p, &stub, NULL, 2, tl_reduce_acc(op, x->dtype));
    p.data = x->data;
    st = reduce(&alone, op, &p, scratch, correction, to, to_dtype);
    TL_CHECK(st == TL_OK);
}

tl_status tl_cpu_reduce(tl_kernel_ctx *k, tl_op op, tl_tensor *const *in,
                        int nin, tl_tensor *const *out, int nout,
                        const tl_attrs *at)
{
    (void)nin;
    (void)nout;
    return tl_reduce_fed(k, op, in[0], NULL, out[0], at);
}
