/* resize.c - the kernels of interpolation: taps, planes, tasks.  Attributes
 * are those of op/resize.h.
 *
 * Coordinates are PyTorch's, in its precision: an element o of the result lies
 * at (o + 0.5) / scale - 0.5 of the input, or at o (in - 1) / (out - 1) where
 * corners meet; nearest takes floor(o / scale).  They are computed in float
 * but for linear and cubic of f64.  The cubic kernel is that of Keys,
 * "Cubic convolution interpolation" (1981), eq. 15 with a = -0.75. */
#include "runtime/op/resize.h"

#include <math.h>

#include "runtime/cpu/plain.h"
#include "runtime/cpu/resize.h"

typedef struct resize_job {
    tl_resize r;
    const tl_resize_loops *loops;
    bool wide;
    int64_t width, planes, per_task;
    const char *x;
    char *y;
    char *scratch; /* a row of each worker */
} resize_job;

static const tl_resize_loops *loops_for(bool wide)
{
#if defined(__x86_64__)
    if (tl_cpu_has_avx2()) {
        return wide ? &tl_resize_f64_avx2 : &tl_resize_f32_avx2;
    }
#endif
    return wide ? &tl_resize_f64 : &tl_resize_f32;
}

/* ---- taps ---------------------------------------------------------------- */

static double rounded(bool wide, double v)
{
    return wide ? v : (double)(float)v;
}

/* Elements of the input per element of the result. */
static double step_of(const tl_resize_axis *a, const tl_attrs *at, int axis,
                      bool wide)
{
    if (at->flag) {
        return a->out > 1
                   ? rounded(wide, (double)(a->in - 1)) / (double)(a->out - 1)
                   : 0;
    }
    return at->f[axis] > 0 ? 1 / at->f[axis] : (double)a->in / (double)a->out;
}

static int64_t clamp(int64_t i, int64_t n)
{
    return i < 0 ? 0 : i < n ? i : n - 1;
}

static void set_weight(const tl_resize_axis *a, bool wide, int t, int64_t o,
                       double w)
{
    if (wide) {
        ((double *)a->weight[t])[o] = w;
    } else {
        ((float *)a->weight[t])[o] = (float)w;
    }
}

static void nearest_taps(tl_resize_axis *a, const tl_attrs *at, int axis,
                         bool wide)
{
    bool exact = at->i[1] == TL_RESIZE_NEAREST_EXACT;
    float step = (float)step_of(a, at, axis, false);

    for (int64_t o = 0; o < a->out; o++) {
        float x = exact ? ((float)o + 0.5F) * step : (float)o * step;

        a->from[0][o] =
            x < (float)a->in ? clamp((int64_t)floorf(x), a->in) : a->in - 1;
        set_weight(a, wide, 0, o, 1);
    }
}

/* Place of element o in the input. */
static double source(const tl_attrs *at, double step, int64_t o, bool wide)
{
    return at->flag
               ? rounded(wide, step * (double)o)
               : rounded(wide, rounded(wide, step * ((double)o + 0.5)) - 0.5);
}

static void linear_taps(tl_resize_axis *a, const tl_attrs *at, int axis,
                        bool wide)
{
    double step = rounded(wide, step_of(a, at, axis, wide));

    for (int64_t o = 0; o < a->out; o++) {
        double x = source(at, step, o, wide), part;

        x = x > 0 ? x : 0;
        a->from[0][o] =
            x < (double)a->in ? clamp((int64_t)x, a->in) : a->in - 1;
        a->from[1][o] = clamp(a->from[0][o] + 1, a->in);
        part = rounded(wide, x - (double)a->from[0][o]);
        part = part < 1 ? part : 1;
        set_weight(a, wide, 0, o, rounded(wide, 1 - part));
        set_weight(a, wide, 1, o, part);
    }
}

/* Weights of the four neighbours, t past the second one. */
static void cubic_weights(double t, double *w)
{
    const double a = -0.75;
    double u = t + 1, v = 1 - t, z = 2 - t;

    w[0] = ((a * u - 5 * a) * u + 8 * a) * u - 4 * a;
    w[1] = ((a + 2) * t - (a + 3)) * t * t + 1;
    w[2] = ((a + 2) * v - (a + 3)) * v * v + 1;
    w[3] = ((a * z - 5 * a) * z + 8 * a) * z - 4 * a;
}

static void cubic_taps(tl_resize_axis *a, const tl_attrs *at, int axis,
                       bool wide)
{
    double step = rounded(wide, step_of(a, at, axis, wide)), w[4];

    for (int64_t o = 0; o < a->out; o++) {
        double x = source(at, step, o, wide), whole = floor(x);
        double last = (double)a->in + 2;
        int64_t i;

        whole = whole > last ? last : whole;
        i = (int64_t)whole;
        cubic_weights(x - whole > 1 ? 1 : x - whole, w);
        for (int t = 0; t < 4; t++) {
            a->from[t][o] = clamp(i - 1 + t, a->in);
            set_weight(a, wide, t, o, w[t]);
        }
    }
}

static tl_status set_axis(resize_job *job, tl_plain *own, int k, int64_t in,
                          int64_t out, const tl_attrs *at, int axis)
{
    tl_resize_axis *a = &job->r.axis[k];
    bool real = axis >= 0; /* else a missing one, of size 1 */
    char *weights;
    void *from, *w;

    *a = (tl_resize_axis){.in = in, .out = out, .taps = 1};
    if (real && at->i[1] >= TL_RESIZE_LINEAR) {
        a->taps = at->i[1] == TL_RESIZE_LINEAR ? 2 : 4;
    }
    TL_TRY(tl_plain_scratch(own, out * a->taps, sizeof(int64_t), &from));
    TL_TRY(tl_plain_scratch(own, out * a->taps, (size_t)job->width, &w));
    weights = w;
    for (int t = 0; t < a->taps; t++) {
        a->from[t] = (int64_t *)from + t * out;
        a->weight[t] = weights + t * out * job->width;
    }
    if (!real) {
        a->from[0][0] = 0;
        set_weight(a, job->wide, 0, 0, 1);
    } else if (a->taps == 1) {
        nearest_taps(a, at, axis, job->wide);
    } else if (a->taps == 2) {
        linear_taps(a, at, axis, job->wide);
    } else {
        cubic_taps(a, at, axis, job->wide);
    }
    return TL_OK;
}

/* ---- planes -------------------------------------------------------------- */

static int64_t in_volume(const resize_job *job)
{
    const tl_resize_axis *a = job->r.axis;

    return a[0].in * a[1].in * a[2].in;
}

static int64_t out_volume(const resize_job *job)
{
    const tl_resize_axis *a = job->r.axis;

    return a[0].out * a[1].out * a[2].out;
}

static void forward_task(void *arg, int64_t task, int worker)
{
    const resize_job *job = arg;
    int64_t i = task * job->per_task, end = i + job->per_task;

    for (end = end < job->planes ? end : job->planes; i < end; i++) {
        job->loops->forward(&job->r, job->x + i * in_volume(job) * job->width,
                            job->y + i * out_volume(job) * job->width,
                            job->scratch +
                                worker * job->r.axis[2].in * job->width);
    }
}

static void backward_task(void *arg, int64_t task, int worker)
{
    const resize_job *job = arg;
    int64_t i = task * job->per_task, end = i + job->per_task;

    for (end = end < job->planes ? end : job->planes; i < end; i++) {
        job->loops->backward(
            &job->r, job->x + i * out_volume(job) * job->width,
            job->y + i * in_volume(job) * job->width,
            job->scratch + worker * job->r.axis[2].in * job->width);
    }
}

static tl_status prepare(resize_job *job, tl_plain *own, const tl_tensor *x,
                         const tl_tensor *y, const tl_attrs *at)
{
    int n = tl_resize_axes(at), first = x->rank - n;
    int64_t cost;
    void *scratch;

    for (int k = 0; k < 3; k++) {
        int axis = k - (3 - n);

        TL_TRY(axis < 0 ? set_axis(job, own, k, 1, 1, at, axis)
                        : set_axis(job, own, k, x->size[first + axis],
                                   y->size[first + axis], at, axis));
    }
    job->planes = 1;
    for (int i = 0; i < first; i++) {
        job->planes *= x->size[i];
    }
    TL_TRY(tl_plain_scratch(
        own, job->r.axis[2].in * tl_threads_count(own->k->threads),
        (size_t)job->width, &scratch));
    job->scratch = scratch;
    cost = out_volume(job) + in_volume(job);
    job->per_task = tl_cpu_rows_a_task(cost);
    return TL_OK;
}

/* in[0] -> out[0]; x and y are the tensors in these roles. */
static tl_status resize(tl_kernel_ctx *k, const tl_tensor *x,
                        const tl_tensor *y, const tl_tensor *in,
                        tl_tensor *out, const tl_attrs *at, tl_task_fn *task)
{
    bool wide = out->dtype == TL_f64;
    resize_job job = {
        .loops = loops_for(wide), .wide = wide, .width = wide ? 8 : 4};
    const void *from;
    void *to;
    tl_plain own;
    tl_status st = TL_OK;

    if (out->numel == 0) {
        return TL_OK;
    }
    tl_plain_open(&own, k);
    TL_GOTO(st, prepare(&job, &own, x, y, at));
    TL_GOTO(st, tl_plain_in(&own, in, &from));
    TL_GOTO(st, tl_plain_out(&own, out, &to));
    job.x = from;
    job.y = to;
    tl_cpu_run(k, tl_ceil_div(job.planes, job.per_task), task, &job);
    tl_plain_round(&own, out, to);
out:
    tl_plain_close(&own);
    return st;
}

tl_status tl_cpu_resize(tl_kernel_ctx *k, tl_op op, tl_tensor *const *in,
                        int nin, tl_tensor *const *out, int nout,
                        const tl_attrs *at)
{
    (void)op;
    (void)nin;
    (void)nout;
    return resize(k, in[0], out[0], in[0], out[0], at, forward_task);
}

tl_status tl_cpu_resize_grad(tl_kernel_ctx *k, tl_op op, tl_tensor *const *in,
                             int nin, tl_tensor *const *out, int nout,
                             const tl_attrs *at)
{
    (void)op;
    (void)nin;
    (void)nout;
    return resize(k, out[0], in[0], in[0], out[0], at, backward_task);
}
