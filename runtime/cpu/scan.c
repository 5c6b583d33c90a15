/* scan.c - cumsum, cumprod, linrec and shift along an axis.
 *
 * Elements are taken in order.  f16, bf16 and f32 accumulate in double and
 * round each result once; integers accumulate in i64 and wrap.  Lines are
 * independent; where the axis is not the innermost, a block of neighbouring
 * lines goes in step, so that memory is read in order. */
#include <string.h>

#include "runtime/base/check.h"
#include "runtime/cpu/elementwise.h"
#include "runtime/cpu/kern.h"
#include "runtime/cpu/stage.h"

enum {
    LINES = 64, /* that go in step */
    PART = 512  /* of a line that is alone */
};

typedef struct scan {
    tl_op op;
    bool reverse;
    tl_dtype acc;           /* f64 or i64 */
    const tl_tensor *a, *u; /* u: linrec */
    tl_tensor *to;
    int axis;
    int64_t n;      /* along the axis */
    int64_t inner;  /* elements of one step of the axis in `to` */
    int64_t blocks; /* of lines, in one step of what is outside */
    double fill;    /* shift */
} scan;

/* Offsets of `count` lines of `t` from line `first` of the inner axes on. */
static void line_offsets(const scan *s, const tl_tensor *t, int64_t outer,
                         int64_t first, int64_t count, int64_t *offset)
{
    int64_t base = 0;

    for (int i = s->axis - 1; i >= 0; i--) {
        base += outer % t->size[i] * t->stride[i];
        outer /= t->size[i];
    }
    for (int64_t k = 0; k < count; k++) {
        int64_t rest = first + k, at = base;

        for (int i = t->rank - 1; i > s->axis; i--) {
            at += rest % t->size[i] * t->stride[i];
            rest /= t->size[i];
        }
        offset[k] = at;
    }
}

/* Step i of the lines as accumulators. */
static void load(const scan *s, const tl_tensor *t, const int64_t *offset,
                 int64_t count, int64_t i, void *values)
{
    tl_stage_fn *stage = tl_stage(t->dtype, s->acc);
    const char *data = tl_tensor_data(t);
    int64_t width = (int64_t)tl_dtype_size(t->dtype);
    int64_t along = i * t->stride[s->axis];
    int64_t stride = count > 1 ? offset[1] - offset[0] : 0;
    bool even = true;

    for (int64_t k = 1; k < count; k++) {
        even = even && offset[k] - offset[k - 1] == stride;
    }
    if (even) {
        stage(count, data + (along + offset[0]) * width, stride, values);
        return;
    }
    for (int64_t k = 0; k < count; k++) {
        stage(1, data + (along + offset[k]) * width, 0,
              (char *)values + 8 * k);
    }
}

/* `count` accumulators to element `at` of the result on. */
static void store(const scan *s, int64_t at, int64_t count,
                  const void *values)
{
    char *to = (char *)tl_tensor_data(s->to) +
               at * (int64_t)tl_dtype_size(s->to->dtype);

    tl_stage(s->acc, s->to->dtype)(count, values, 1, to);
}

static void accumulate_i(const scan *s, int64_t count, const int64_t *a,
                         int64_t *acc)
{
    for (int64_t k = 0; k < count; k++) {
        uint64_t x = (uint64_t)a[k], y = (uint64_t)acc[k];

        acc[k] = (int64_t)(s->op == TL_OP_cumsum ? x + y : x * y);
    }
}

static void accumulate_f(const scan *s, int64_t count, const double *a,
                         const double *u, double *acc)
{
    for (int64_t k = 0; k < count; k++) {
        switch (s->op) {
        case TL_OP_cumsum:
            acc[k] += a[k];
            break;
        case TL_OP_cumprod:
            acc[k] *= a[k];
            break;
        default:
            acc[k] = u[k] + a[k] * acc[k];
        }
    }
}

/* One block of lines; linrec from the end reads a[i + 1]. */
static void scan_lines(const scan *s, int64_t outer, int64_t first,
                       int64_t count)
{
    union {
        double f[LINES];
        int64_t i[LINES];
    } a, u, acc;
    int64_t off_a[LINES], off_u[LINES];
    int64_t ahead = s->op == TL_OP_linrec && s->reverse ? 1 : 0;

    line_offsets(s, s->a, outer, first, count, off_a);
    line_offsets(s, s->u, outer, first, count, off_u);
    for (int64_t k = 0; k < count; k++) {
        if (s->acc == TL_i64) {
            acc.i[k] = s->op == TL_OP_cumprod;
        } else {
            acc.f[k] = s->op == TL_OP_cumprod ? 1 : 0;
        }
    }
    for (int64_t step = 0; step < s->n; step++) {
        int64_t i = s->reverse ? s->n - 1 - step : step;

        if (i + ahead < s->n) {
            load(s, s->a, off_a, count, i + ahead, &a);
        } else {
            memset(&a, 0, sizeof a);
        }
        if (s->acc == TL_i64) {
            accumulate_i(s, count, a.i, acc.i);
        } else {
            if (s->op == TL_OP_linrec) {
                load(s, s->u, off_u, count, i, &u);
            }
            accumulate_f(s, count, a.f, u.f, acc.f);
        }
        store(s, (outer * s->n + i) * s->inner + first, count, &acc);
    }
}

/* Elements lo .. lo + n of a single line. */
static void load_part(const scan *s, const tl_tensor *t, int64_t offset,
                      int64_t lo, int64_t n, void *values)
{
    const char *data = tl_tensor_data(t);
    int64_t stride = t->stride[s->axis];

    tl_stage(t->dtype, s->acc)(
        n, data + (offset + lo * stride) * (int64_t)tl_dtype_size(t->dtype),
        stride, values);
}

/* acc goes through v[0 .. n), step by step (from the end: step = -1), and
 * leaves its values there; u and v are the first of them. */
static void run_part(tl_op op, int64_t n, int64_t step, const double *u,
                     double *v, double *acc)
{
    double s = *acc;

    switch (op) {
    case TL_OP_cumsum:
        for (int64_t i = 0; i < n; i++, v += step) {
            *v = s += *v;
        }
        break;
    case TL_OP_cumprod:
        for (int64_t i = 0; i < n; i++, v += step) {
            *v = s *= *v;
        }
        break;
    default:
        for (int64_t i = 0; i < n; i++, v += step, u += step) {
            *v = s = *u + *v * s;
        }
    }
    *acc = s;
}

static void run_part_i(tl_op op, int64_t n, int64_t step, int64_t *v,
                       int64_t *acc)
{
    uint64_t s = (uint64_t)*acc;

    for (int64_t i = 0; i < n; i++, v += step) {
        s = op == TL_OP_cumsum ? s + (uint64_t)*v : s * (uint64_t)*v;
        *v = (int64_t)s;
    }
    *acc = (int64_t)s;
}

/* A single line, innermost: parts of it through tiles.  `a` has a place more
 * for a[i + 1]. */
static void scan_row(const scan *s, int64_t outer)
{
    union {
        double f[PART + 1];
        int64_t i[PART + 1];
    } a;
    union {
        double f;
        int64_t i;
    } acc;
    double u[PART];
    int64_t off_a, off_u, parts = tl_ceil_div(s->n, PART);
    int64_t ahead = s->op == TL_OP_linrec && s->reverse ? 1 : 0;

    line_offsets(s, s->a, outer, 0, 1, &off_a);
    line_offsets(s, s->u, outer, 0, 1, &off_u);
    if (s->acc == TL_i64) {
        acc.i = s->op == TL_OP_cumprod;
    } else {
        acc.f = s->op == TL_OP_cumprod ? 1 : 0;
    }
    for (int64_t part = 0; part < parts; part++) {
        int64_t lo = (s->reverse ? parts - 1 - part : part) * PART;
        int64_t n = s->n - lo < PART ? s->n - lo : PART;
        int64_t more = lo + n + ahead <= s->n ? ahead : 0;
        int64_t first = s->reverse ? n - 1 : 0, step = s->reverse ? -1 : 1;

        a.f[n] = 0;
        load_part(s, s->a, off_a, lo, n + more, &a);
        if (s->acc == TL_i64) {
            run_part_i(s->op, n, step, a.i + first, &acc.i);
        } else {
            if (s->op == TL_OP_linrec) {
                load_part(s, s->u, off_u, lo, n, u);
            }
            run_part(s->op, n, step, u + first, a.f + first + ahead, &acc.f);
        }
        store(s, outer * s->n + lo, n,
              s->acc == TL_i64 ? (void *)a.i : (void *)(a.f + ahead));
    }
}

static void shift_lines(const scan *s, int64_t outer, int64_t first,
                        int64_t count)
{
    union {
        double f[LINES];
        int64_t i[LINES];
    } a;
    int64_t offset[LINES];

    line_offsets(s, s->a, outer, first, count, offset);
    for (int64_t i = 0; i < s->n; i++) {
        int64_t from = s->reverse ? i + 1 : i - 1;

        if (from >= 0 && from < s->n) {
            load(s, s->a, offset, count, from, &a);
        } else {
            for (int64_t k = 0; k < count; k++) {
                if (s->acc == TL_i64) {
                    a.i[k] = (int64_t)s->fill;
                } else {
                    a.f[k] = s->fill;
                }
            }
        }
        store(s, (outer * s->n + i) * s->inner + first, count, &a);
    }
}

static void scan_task(void *arg, int64_t task, int worker)
{
    const scan *s = arg;
    int64_t outer = task / s->blocks, first = task % s->blocks * LINES;
    int64_t count = s->inner - first < LINES ? s->inner - first : LINES;

    (void)worker;
    if (s->op == TL_OP_shift) {
        shift_lines(s, outer, first, count);
    } else if (s->inner == 1) {
        scan_row(s, outer);
    } else {
        scan_lines(s, outer, first, count);
    }
}

static tl_status run_scan(tl_kernel_ctx *k, tl_op op, tl_tensor *const *in,
                          int nin, tl_tensor *to, const tl_attrs *at)
{
    scan s = {.op = op,
              .reverse = at->flag,
              .to = to,
              .axis = at->axis,
              .a = in[0],
              .u = in[nin - 1],
              .n = to->size[at->axis],
              .inner = 1,
              .fill = at->f[0]};
    int64_t ntasks;

    if (to->numel == 0) {
        return TL_OK;
    }
    s.acc = tl_dtype_is_float(in[0]->dtype) ? TL_f64 : TL_i64;
    for (int i = at->axis + 1; i < to->rank; i++) {
        s.inner *= to->size[i];
    }
    s.blocks = tl_ceil_div(s.inner, LINES);
    ntasks = to->numel / (s.n * s.inner) * s.blocks;
    if (to->numel < TL_CPU_GRAIN) {
        for (int64_t task = 0; task < ntasks; task++) {
            scan_task(&s, task, 0);
        }
        return TL_OK;
    }
    tl_cpu_run(k, ntasks, scan_task, &s);
    return TL_OK;
}

#define SCAN(name)                                                           \
    tl_status tl_cpu_##name(                                                 \
        tl_kernel_ctx *k, tl_op op, tl_tensor *const *in, int nin,           \
        tl_tensor *const *out, int nout, const tl_attrs *at)                 \
    {                                                                        \
        (void)nout;                                                          \
        return run_scan(k, op, in, nin, out[0], at);                         \
    }
SCAN(cumsum)
SCAN(cumprod)
SCAN(linrec)
SCAN(shift)
