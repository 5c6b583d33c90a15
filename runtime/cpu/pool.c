/* pool.c - the kernels of pooling: operands, planes, tasks.  Attributes are
 * those of op/pool.h. */
#include "runtime/op/pool.h"

#include "runtime/cpu/plain.h"
#include "runtime/cpu/pool.h"

typedef struct pool_job {
    tl_pool p;
    const tl_pool_loops *loops;
    tl_dtype dtype; /* of x and y, where they are integers */
    int64_t width;  /* bytes of a number */
    int64_t planes, per_task;
    const char *x; /* or g */
    char *y;       /* or dx */
    int64_t *place;
    double *scratch; /* of each worker */
} pool_job;

static const tl_pool_loops *loops_for(bool wide)
{
#if defined(__x86_64__)
    if (tl_cpu_has_avx2()) {
        return wide ? &tl_pool_f64_avx2 : &tl_pool_f32_avx2;
    }
#endif
    return wide ? &tl_pool_f64 : &tl_pool_f32;
}

/* From the tensors in the roles of x and y. */
static void set_geometry(pool_job *job, const tl_tensor *x,
                         const tl_tensor *y, const tl_attrs *at)
{
    int n = tl_pool_axes(at), first = x->rank - n;
    tl_pool *p = &job->p;

    p->adaptive = at->flag;
    p->count_pad = at->i[2] != 0;
    p->divisor = at->i[3];
    for (int i = 0; i < 3; i++) {
        p->in[i] = p->out[i] = p->size[i] = p->stride[i] = 1;
        p->pad[i] = 0;
        p->dilation[i] = 1;
    }
    for (int i = 0; i < n; i++) {
        int k = 3 - n + i;

        p->in[k] = x->size[first + i];
        p->out[k] = y->size[first + i];
        if (!at->flag) {
            p->size[k] = tl_pool_num(at, TL_POOL_SIZE, i);
            p->stride[k] = tl_pool_num(at, TL_POOL_STRIDE, i);
            p->pad[k] = tl_pool_num(at, TL_POOL_PAD, i);
            p->dilation[k] = tl_pool_num(at, TL_POOL_DILATION, i);
        }
    }
    job->planes = 1;
    for (int i = 0; i < first; i++) {
        job->planes *= x->size[i];
    }
}

static tl_status set_spans(tl_pool *p, tl_plain *own)
{
    for (int i = 0; i < 3; i++) {
        void *spans;

        TL_TRY(
            tl_plain_scratch(own, p->out[i], sizeof(tl_pool_span), &spans));
        p->span[i] = spans;
        for (int64_t o = 0; o < p->out[i]; o++) {
            p->span[i][o] = tl_pool_find(p, i, o);
        }
    }
    return TL_OK;
}

/* Elements that the windows of a plane read. */
static int64_t cost_of(const tl_pool *p)
{
    int64_t volume = tl_pool_volume(p->in), cost = tl_pool_volume(p->out);

    for (int i = 0; i < 3; i++) {
        cost *= p->size[i] < p->in[i] ? p->size[i] : p->in[i];
        cost = cost < 2 * TL_CPU_GRAIN ? cost : 2 * TL_CPU_GRAIN;
    }
    return cost > volume ? cost : volume;
}

static tl_status run(pool_job *job, tl_plain *own, tl_task_fn *task)
{
    tl_kernel_ctx *k = own->k;
    void *scratch;

    TL_TRY(tl_plain_scratch(
        own, tl_pool_scratch(&job->p) * tl_threads_count(k->threads),
        sizeof(double), &scratch));
    job->scratch = scratch;
    job->per_task = tl_cpu_rows_a_task(cost_of(&job->p));
    tl_cpu_run(k, tl_ceil_div(job->planes, job->per_task), task, job);
    return TL_OK;
}

/* The planes of a task, one after the other, with places in x and y. */
#define EACH_PLANE(job, task, CALL)                                          \
    const int64_t in = tl_pool_volume((job)->p.in);                          \
    const int64_t out = tl_pool_volume((job)->p.out);                        \
    double *scratch = (job)->scratch + worker * tl_pool_scratch(&(job)->p);  \
    int64_t i = (task) * (job)->per_task, end = i + (job)->per_task;         \
                                                                             \
    for (end = end < (job)->planes ? end : (job)->planes; i < end; i++) {    \
        CALL;                                                                \
    }                                                                        \
    (void)scratch

static void max_task(void *arg, int64_t task, int worker)
{
    const pool_job *job = arg;

    EACH_PLANE(job, task,
               job->loops->max(&job->p, job->x + i * in * job->width,
                               job->y + i * out * job->width,
                               job->place + i * out, scratch));
}

/* The least number of an integer dtype: what windows of padding alone get. */
static int64_t least_int(tl_dtype dtype)
{
    bool unsign = dtype == TL_bool || dtype == TL_u8;

    return unsign ? 0 : INT64_MIN >> (64 - 8 * tl_dtype_size(dtype));
}

static void store_int(void *data, tl_dtype dtype, int64_t at, int64_t v)
{
    switch (tl_dtype_size(dtype)) {
    case 1:
        ((uint8_t *)data)[at] = (uint8_t)v;
        break;
    case 2:
        ((int16_t *)data)[at] = (int16_t)v;
        break;
    case 4:
        ((int32_t *)data)[at] = (int32_t)v;
        break;
    default:
        ((int64_t *)data)[at] = v;
    }
}

/* Window (d, h, w) of the plane at x: the first of equals. */
static int64_t max_int_window(const pool_job *job, const char *x,
                              const tl_pool_span *d, const tl_pool_span *h,
                              const tl_pool_span *w, int64_t *place)
{
    const tl_pool *p = &job->p;
    int64_t best = least_int(job->dtype);

    *place = -1;
    for (int64_t i = d->lo; i < d->hi; i++) {
        for (int64_t j = h->lo; j < h->hi; j++) {
            int64_t row = ((d->first + i * p->dilation[0]) * p->in[1] +
                           h->first + j * p->dilation[1]) *
                              p->in[2] +
                          w->first;

            for (int64_t k = w->lo; k < w->hi; k++) {
                int64_t at = row + k * p->dilation[2];
                int64_t v = tl_cpu_load_int(x, job->dtype, at);

                if (*place < 0 || v > best) {
                    best = v;
                    *place = at;
                }
            }
        }
    }
    return best;
}

static void max_int(const pool_job *job, const char *x, char *y,
                    int64_t *place)
{
    const tl_pool *p = &job->p;
    int64_t rows = p->out[1], width = p->out[2];

    for (int64_t i = 0; i < tl_pool_volume(p->out); i++) {
        const tl_pool_span *d = &p->span[0][i / width / rows];
        const tl_pool_span *h = &p->span[1][i / width % rows];
        const tl_pool_span *w = &p->span[2][i % width];

        store_int(y, job->dtype, i,
                  max_int_window(job, x, d, h, w, &place[i]));
    }
}

static void max_int_task(void *arg, int64_t task, int worker)
{
    const pool_job *job = arg;

    EACH_PLANE(job, task,
               max_int(job, job->x + i * in * job->width,
                       job->y + i * out * job->width, job->place + i * out));
}

static void avg_task(void *arg, int64_t task, int worker)
{
    const pool_job *job = arg;

    EACH_PLANE(job, task,
               job->loops->avg(&job->p, job->x + i * in * job->width,
                               job->y + i * out * job->width, scratch));
}

static void max_grad_task(void *arg, int64_t task, int worker)
{
    const pool_job *job = arg;

    EACH_PLANE(job, task,
               job->loops->max_grad(&job->p, job->x + i * out * job->width,
                                    job->place + i * out,
                                    job->y + i * in * job->width));
}

static void avg_grad_task(void *arg, int64_t task, int worker)
{
    const pool_job *job = arg;

    EACH_PLANE(job, task,
               job->loops->avg_grad(&job->p, job->x + i * out * job->width,
                                    job->y + i * in * job->width, scratch));
}

/* in[0] -> out[0] by `task`; x and y are the tensors in these roles. */
static tl_status pool(tl_kernel_ctx *k, const tl_tensor *x,
                      const tl_tensor *y, const tl_tensor *place,
                      tl_tensor *const *in, tl_tensor *const *out,
                      const tl_attrs *at, tl_task_fn *task)
{
    tl_dtype dtype = out[0]->dtype;
    bool wide = dtype == TL_f64;
    pool_job job = {.loops = loops_for(wide), .dtype = dtype};
    const void *from, *places;
    void *to;
    tl_plain own;
    tl_status st = TL_OK;

    if (out[0]->numel == 0) {
        return TL_OK;
    }
    job.width = tl_dtype_is_float(dtype) ? (wide ? 8 : 4)
                                         : (int64_t)tl_dtype_size(dtype);
    set_geometry(&job, x, y, at);
    tl_plain_open(&own, k);
    TL_GOTO(st, set_spans(&job.p, &own));
    TL_GOTO(st, tl_plain_in(&own, in[0], &from));
    TL_GOTO(st, tl_plain_out(&own, out[0], &to));
    if (place) {
        TL_GOTO(st, tl_plain_in(&own, place, &places));
        job.place = (int64_t *)(uintptr_t)places;
    }
    job.x = from;
    job.y = to;
    TL_GOTO(st, run(&job, &own, task));
    tl_plain_round(&own, out[0], to);
out:
    tl_plain_close(&own);
    return st;
}

tl_status tl_cpu_max_pool(tl_kernel_ctx *k, tl_op op, tl_tensor *const *in,
                          int nin, tl_tensor *const *out, int nout,
                          const tl_attrs *at)
{
    (void)op;
    (void)nin;
    (void)nout;
    return pool(k, in[0], out[0], out[1], in, out, at,
                tl_dtype_is_float(in[0]->dtype) ? max_task : max_int_task);
}

tl_status tl_cpu_avg_pool(tl_kernel_ctx *k, tl_op op, tl_tensor *const *in,
                          int nin, tl_tensor *const *out, int nout,
                          const tl_attrs *at)
{
    (void)op;
    (void)nin;
    (void)nout;
    return pool(k, in[0], out[0], NULL, in, out, at, avg_task);
}

/* g, places -> dx */
tl_status tl_cpu_max_pool_grad(tl_kernel_ctx *k, tl_op op,
                               tl_tensor *const *in, int nin,
                               tl_tensor *const *out, int nout,
                               const tl_attrs *at)
{
    (void)op;
    (void)nin;
    (void)nout;
    return pool(k, out[0], in[0], in[1], in, out, at, max_grad_task);
}

tl_status tl_cpu_avg_pool_grad(tl_kernel_ctx *k, tl_op op,
                               tl_tensor *const *in, int nin,
                               tl_tensor *const *out, int nout,
                               const tl_attrs *at)
{
    (void)op;
    (void)nin;
    (void)nout;
    return pool(k, out[0], in[0], NULL, in, out, at, avg_grad_task);
}
