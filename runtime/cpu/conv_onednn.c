/* conv_onednn.c - convolutions by oneDNN: the tasks of a plan.
 *
 * A part's operands go into the library's layout in scratch of the task, while
 * they are in cache, and its result back; what several parts need (weights,
 * and the images where channels are cut) is laid out once, before. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "runtime/cpu/conv.h"

#ifdef HAVE_ONEDNN
#include "runtime/cpu/conv_plan.h"
#endif

#ifdef TL_HAVE_ONEDNN_CONV
#include <stdatomic.h>
#include <string.h>

typedef struct job {
    const tl_conv *c;
    const tl_conv_plan *p;
    char *data[TL_CONV_ROLES];   /* the tensors */
    char *scratch;
    bool shared[TL_CONV_ROLES];  /* laid out before, not by each task */
    /* Offsets in the scratch: of what is shared; of the sums of backward
     * weights, [sum][cut]; of the first worker's part. */
    size_t shared_at[TL_CONV_ROLES], sums_at, worker_at;
    size_t worker_bytes;
    size_t own[TL_CONV_ROLES]; /* offsets in a worker's part */
    _Atomic bool failed;
} job;

/* ---- calls of the library ----------------------------------------------- */

typedef struct argument {
    int which;
    const dnnl_memory_desc_t *as;
    void *data;
} argument;

/* One primitive on the calling thread. */
static bool execute(const job *j, dnnl_primitive_t primitive, int n,
                    const argument *args)
{
    dnnl_exec_arg_t list[4];
    dnnl_stream_t stream = NULL;
    int made = 0;
    dnnl_status_t st;

    tl_onednn_one_thread();
    st = dnnl_stream_create(&stream, j->p->engine,
                            dnnl_stream_default_flags);
    while (st == dnnl_success && made < n) {
        list[made].arg = args[made].which;
        st = dnnl_memory_create(&list[made].memory, args[made].as,
                                j->p->engine, args[made].data);
        made += st == dnnl_success;
    }
    if (st == dnnl_success) {
        st = dnnl_primitive_execute(primitive, stream, n, list);
    }
    while (made > 0) {
        (void)dnnl_memory_destroy(list[--made].memory);
    }
    (void)dnnl_stream_destroy(stream);
    return st == dnnl_success;
}

static void *worker_at(const job *j, int worker, size_t offset)
{
    return j->scratch + j->worker_at + (size_t)worker * j->worker_bytes +
           offset;
}

/* Between a tensor and the library's layout. */
static void lay_out(job *j, enum tl_conv_role role, void *from, void *to)
{
    const tl_conv_operand *o = &j->p->of[role];
    bool back = role == tl_conv_result(j->p->kind);
    argument args[] = {
        {DNNL_ARG_FROM, back ? &o->blocked : &o->plain, from},
        {DNNL_ARG_TO, back ? &o->plain : &o->blocked, to},
    };

    if (!execute(j, o->reorder, 2, args)) {
        atomic_store_explicit(&j->failed, true, memory_order_relaxed);
    }
}

static void convolve(job *j, int worker, void *const *data)
{
    static const int which[][TL_CONV_ROLES] = {
        [TL_CONV_FORWARD] = {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST},
        [TL_CONV_DATA] = {DNNL_ARG_DIFF_SRC, DNNL_ARG_WEIGHTS,
                          DNNL_ARG_DIFF_DST},
        [TL_CONV_WEIGHT] = {DNNL_ARG_SRC, DNNL_ARG_DIFF_WEIGHTS,
                            DNNL_ARG_DIFF_DST},
    };
    const tl_conv_plan *p = j->p;
    dnnl_memory_desc_t none;
    argument args[TL_CONV_ROLES + 1];

    for (int i = 0; i < TL_CONV_ROLES; i++) {
        args[i] = (argument){which[p->kind][i], &p->of[i].blocked, data[i]};
    }
    (void)dnnl_memory_desc_init_by_tag(
        &none, 1, (dnnl_dims_t){(int64_t)p->scratch}, dnnl_u8, dnnl_a);
    args[TL_CONV_ROLES] = (argument){DNNL_ARG_SCRATCHPAD, &none,
                                worker_at(j, worker, 0)};
    if (!execute(j, p->conv, TL_CONV_ROLES + (p->scratch > 0), args)) {
        atomic_store_explicit(&j->failed, true, memory_order_relaxed);
    }
}

/* ---- parts -------------------------------------------------------------- */

static char *in_tensor(const job *j, enum tl_conv_role role, int64_t image,
                       int64_t cut)
{
    const tl_conv_operand *o = &j->p->of[role];

    return j->data[role] + (size_t)image * o->by_image +
           (size_t)cut * o->by_cut;
}

static char *shared_part(const job *j, enum tl_conv_role role, int64_t part)
{
    return j->scratch + j->shared_at[role] +
           (size_t)part * j->p->of[role].bytes;
}

/* An operand of part (image, cut), in the library's layout. */
static void *operand(job *j, int worker, enum tl_conv_role role,
                     int64_t image, int64_t cut)
{
    const tl_conv_operand *o = &j->p->of[role];
    char *own;

    if (!o->reorder) {
        return in_tensor(j, role, image, cut);
    }
    if (j->shared[role]) {
        return shared_part(j, role, role == TL_CONV_W ? cut : image);
    }
    own = worker_at(j, worker, j->own[role]);
    lay_out(j, role, in_tensor(j, role, image, cut), own);
    return own;
}

static void part_task(void *arg, int64_t task, int worker)
{
    job *j = arg;
    enum tl_conv_role to = tl_conv_result(j->p->kind);
    int64_t image = task / j->p->cuts, cut = task % j->p->cuts;
    void *data[TL_CONV_ROLES];

    for (int i = 0; i < TL_CONV_ROLES; i++) {
        if (i != (int)to) {
            data[i] = operand(j, worker, (enum tl_conv_role)i, image, cut);
        }
    }
    data[to] = j->p->of[to].reorder ? worker_at(j, worker, j->own[to])
                                    : in_tensor(j, to, image, cut);
    convolve(j, worker, data);
    if (j->p->of[to].reorder) {
        lay_out(j, to, data[to], in_tensor(j, to, image, cut));
    }
}

/* ---- backward weights --------------------------------------------------- */

static char *sum_at(const job *j, int64_t sum, int64_t cut)
{
    return j->scratch + j->sums_at +
           (size_t)(sum * j->p->cuts + cut) * j->p->of[TL_CONV_W].bytes;
}

static void add(const job *j, const void *from, void *to)
{
    tl_conv_rows_of(TL_f32)->add(
        (int64_t)(dnnl_memory_desc_get_size(&j->p->of[TL_CONV_W].blocked) /
                  sizeof(float)),
        from, to);
}

/* The parts of one sum, in order. */
static void sum_task(void *arg, int64_t task, int worker)
{
    job *j = arg;
    int64_t sum = task / j->p->cuts, cut = task % j->p->cuts;
    int64_t each = j->p->parts / j->p->sums;
    void *data[TL_CONV_ROLES];

    for (int64_t i = 0; i < each; i++) {
        int64_t image = sum * each + i;

        data[TL_CONV_X] = operand(j, worker, TL_CONV_X, image, cut);
        data[TL_CONV_Y] = operand(j, worker, TL_CONV_Y, image, cut);
        data[TL_CONV_W] = i == 0 ? sum_at(j, sum, cut)
                                 : worker_at(j, worker, j->own[TL_CONV_W]);
        convolve(j, worker, data);
        if (i > 0) {
            add(j, data[TL_CONV_W], sum_at(j, sum, cut));
        }
    }
}

static void total_task(void *arg, int64_t cut, int worker)
{
    job *j = arg;
    char *to = in_tensor(j, TL_CONV_W, 0, cut);

    (void)worker;
    for (int64_t sum = 1; sum < j->p->sums; sum++) {
        add(j, sum_at(j, sum, cut), sum_at(j, 0, cut));
    }
    if (j->p->of[TL_CONV_W].reorder) {
        lay_out(j, TL_CONV_W, sum_at(j, 0, cut), to);
    } else {
        memcpy(to, sum_at(j, 0, cut),
               dnnl_memory_desc_get_size(&j->p->of[TL_CONV_W].blocked));
    }
}

/* ---- before and after --------------------------------------------------- */

static void share_task(void *arg, int64_t task, int worker)
{
    job *j = arg;

    (void)worker;
    for (int i = 0; i < TL_CONV_ROLES; i++) {
        int64_t n = i == TL_CONV_W ? j->p->cuts : j->p->parts;
        enum tl_conv_role role = (enum tl_conv_role)i;

        if (!j->shared[i]) {
            continue;
        }
        if (task < n) {
            lay_out(j, role,
                    in_tensor(j, role, i == TL_CONV_W ? 0 : task,
                              i == TL_CONV_W ? task : 0),
                    shared_part(j, role, task));
            return;
        }
        task -= n;
    }
}

/* Is this operand laid out before the tasks: do several read it? */
static bool is_shared(const tl_conv_plan *p, enum tl_conv_role role)
{
    if (role == tl_conv_result(p->kind) || !p->of[role].reorder) {
        return false;
    }
    return role == TL_CONV_W || (p->cuts > 1 && p->of[role].by_cut == 0);
}

/* Places in the scratch; its bytes. */
static size_t place(job *j, int64_t threads)
{
    const tl_conv_plan *p = j->p;
    size_t at = 0;

    j->worker_bytes = p->scratch;
    for (int i = 0; i < TL_CONV_ROLES; i++) {
        j->shared[i] = is_shared(p, (enum tl_conv_role)i);
        if (j->shared[i]) {
            j->shared_at[i] = at;
            at += (size_t)(i == TL_CONV_W ? p->cuts : p->parts) *
                  p->of[i].bytes;
        } else if (p->of[i].reorder ||
                   (p->kind == TL_CONV_WEIGHT && i == TL_CONV_W)) {
            j->own[i] = j->worker_bytes;
            j->worker_bytes += p->of[i].bytes;
        }
    }
    j->sums_at = at;
    if (p->kind == TL_CONV_WEIGHT) {
        at += (size_t)(p->sums * p->cuts) * p->of[TL_CONV_W].bytes;
    }
    j->worker_at = at;
    return at + (size_t)threads * j->worker_bytes;
}

static int64_t shared_tasks(const job *j)
{
    int64_t n = 0;

    for (int i = 0; i < TL_CONV_ROLES; i++) {
        if (j->shared[i]) {
            n += i == TL_CONV_W ? j->p->cuts : j->p->parts;
        }
    }
    return n;
}

static void run(tl_kernel_ctx *k, job *j)
{
    int64_t before = shared_tasks(j);

    if (before > 0) {
        tl_cpu_run(k, before, share_task, j);
    }
    if (j->p->kind == TL_CONV_WEIGHT) {
        tl_cpu_run(k, j->p->sums * j->p->cuts, sum_task, j);
        tl_cpu_run(k, j->p->cuts, total_task, j);
    } else {
        tl_cpu_run(k, j->p->parts * j->p->cuts, part_task, j);
    }
}

static tl_status run_plan(tl_kernel_ctx *k, const tl_conv *c,
                          const tl_conv_plan *p)
{
    int64_t threads = tl_threads_count(k->threads);
    job j = {.c = c, .p = p, .data = {c->x, c->w, c->y}};
    tl_storage *scratch = NULL;
    size_t bytes = place(&j, threads);

    if (bytes > 0) {
        TL_TRY(tl_cpu_scratch(k, (int64_t)bytes, 1, &scratch));
        j.scratch = tl_storage_data(scratch);
    }
    run(k, &j);
    tl_storage_unref(scratch);
    return j.failed ? tl_fail_memory(k->diag, "a convolution", 0) : TL_OK;
}
#endif

#ifdef HAVE_ONEDNN
tl_status tl_conv_onednn(tl_kernel_ctx *k, const tl_conv *c, bool *done)
{
#ifdef TL_HAVE_ONEDNN_CONV
    tl_conv_plan *p;
    tl_status st = TL_OK;

    TL_TRY(tl_conv_plan_get(k, c, &p));
    if (p->usable) {
        st = run_plan(k, c, p);
        *done = true;
    }
    tl_conv_plan_put(k, p);
    return st;
#else
    (void)k;
    (void)c;
    (void)done;
    return TL_OK;
#endif
}
#endif

#ifndef TL_HAVE_ONEDNN_CONV
void tl_conv_cache_free(struct tl_conv_cache *cache)
{
    (void)cache; // there are none
}
#endif
