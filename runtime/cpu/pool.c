/* pool.c - the kernels of pooling: operands, planes, tasks.  Attributes are
 * those of op/pool.h. */
#include "runtime/op/pool.h"

#include "runtime/cpu/plain.h"
#include "runtime/cpu/pool.h"

typedef struct pool_job {
    tl_pool p;
    const tl_pool_loops *loops;
    int64_t width; /* bytes of a number */
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
    bool wide = out[0]->dtype == TL_f64;
    pool_job job = {.loops = loops_for(wide), .width = wide ? 8 : 4};
    const void *from, *places;
    void *to;
    tl_plain own;
    tl_status st = TL_OK;

    if (out[0]->numel == 0) {
        return TL_OK;
    }
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
    return pool(k, in[0], out[0], out[1], in, out, at, max_task);
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
