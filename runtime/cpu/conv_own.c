/* conv_own.c - convolutions as matrix products over patches ("im2col",
 * Chellapilla, Puri, Simard 2006), some windows at a time so that patches
 * stay in cache; one channel with one kernel without patches.
 *
 *   forward   y = w patches(x)         tasks: image, group, windows
 *   data      patches(x) += w' y       tasks: image, group, channels
 *   weight    w = sum of y patches(x)' tasks: group, channels, outputs
 *
 * Cuts that decide the order of a sum depend on the shape alone; products are
 * those of gemm_own.c, or the plain loops, whose bits do not depend on how
 * they are cut.  So neither do the bits of a convolution. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include <string.h>

#include "runtime/cpu/conv.h"
#include "runtime/cpu/gemm.h"

enum {
    PATCH_ELEMENTS = 1 << 17, /* of a patch matrix, about */
    LEAST_WINDOWS = 192,      /* fewer make packing too dear */
    MOST_WINDOWS = 1024,
    DIRECT_OUTPUTS = 2 /* outputs of one channel without patches, at most */
};

typedef struct job {
    const tl_conv *c;
    const tl_conv_geo *g;
    const tl_conv_rows *rows;
    tl_gemm_fn *gemm; /* NULL: the plain loops */
    size_t width, gemm_bytes;
    int64_t in, out, taps;        /* volumes */
    int64_t windows, channels, outputs; /* of a task or a step */
    int64_t twindows, tchannels, toutputs; /* their numbers */
    bool direct;    /* one channel, few outputs */
    bool pointwise; /* patches are the image itself */
    size_t patch, part; /* bytes of a worker's patches and partial result */
    char *scratch;
} job;

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t most(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* ---- the parts of a job ------------------------------------------------- */

static char *image(const job *j, const void *data, int64_t n, int64_t channel,
                   int64_t channels, int64_t volume)
{
    return (char *)(uintptr_t)data +
           (size_t)((n * channels + channel) * volume) * j->width;
}

static char *x_at(const job *j, int64_t n, int64_t group)
{
    return image(j, j->c->x, n, group * j->g->c, j->g->groups * j->g->c,
                 j->in);
}

static char *y_at(const job *j, int64_t n, int64_t group)
{
    return image(j, j->c->y, n, group * j->g->o, j->g->groups * j->g->o,
                 j->out);
}

static char *w_at(const job *j, int64_t group)
{
    return image(j, j->c->w, 0, group * j->g->o, 0, j->g->c * j->taps);
}

static char *worker_patch(const job *j, int worker)
{
    return j->scratch + (size_t)worker * (j->patch + j->part + j->gemm_bytes);
}

static void multiply(const job *j, int worker, tl_gemm *g)
{
    if (j->gemm) {
        g->scratch = worker_patch(j, worker) + j->patch + j->part;
        (void)j->gemm(g); // ours has no failures
    } else {
        tl_gemm_plain(j->c->dtype, g);
    }
}

/* ---- forward ------------------------------------------------------------ */

static void forward_task(void *arg, int64_t task, int worker)
{
    const job *j = arg;
    int64_t step = task % j->twindows, group = task / j->twindows;
    int64_t n = group / j->g->groups;
    tl_conv_patch p = {.geo = j->g, .c1 = j->g->c,
                       .p0 = step * j->windows};
    char *x, *col = worker_patch(j, worker);
    tl_gemm m = {.m = j->g->o, .k = j->g->c * j->taps,
                 .lda = j->g->c * j->taps, .ldc = j->out};

    group %= j->g->groups;
    p.p1 = least(p.p0 + j->windows, j->out);
    m.n = m.ldb = p.p1 - p.p0;
    x = x_at(j, n, group);
    m.a = w_at(j, group);
    m.c = y_at(j, n, group) + (size_t)p.p0 * j->width;
    if (j->pointwise) {
        m.b = x + (size_t)p.p0 * j->width;
        m.ldb = j->in;
    } else {
        j->rows->gather(&p, x, col);
        m.b = col;
    }
    multiply(j, worker, &m);
}

/* One channel and its outputs. */
static void direct_task(void *arg, int64_t task, int worker)
{
    const job *j = arg;
    int64_t n = task / j->g->groups, group = task % j->g->groups;
    char *x = x_at(j, n, group);

    (void)worker;
    if (j->c->kind == TL_CONV_DATA) {
        memset(x, 0, (size_t)j->in * j->width);
    }
    for (int64_t o = 0; o < j->g->o; o++) {
        char *y = y_at(j, n, group) + (size_t)(o * j->out) * j->width;
        char *w = w_at(j, group) + (size_t)(o * j->taps) * j->width;

        if (j->c->kind == TL_CONV_DATA) {
            j->rows->data(j->g, y, w, x);
        } else {
            j->rows->forward(j->g, x, w, y);
        }
    }
}

/* ---- backward data ------------------------------------------------------ */

/* Channels [c0, c1) of one image and group: product, then their places. */
static void data_step(const job *j, int worker, tl_conv_patch *p, char *x,
                      const char *y, const char *w)
{
    char *col = worker_patch(j, worker);
    tl_gemm m = {.ta = true, .m = (p->c1 - p->c0) * j->taps,
                 .n = p->p1 - p->p0, .k = j->g->o,
                 .lda = j->g->c * j->taps, .ldb = j->out};

    m.a = w + (size_t)(p->c0 * j->taps) * j->width;
    m.b = y + (size_t)p->p0 * j->width;
    if (j->pointwise) {
        m.c = x + (size_t)(p->c0 * j->in + p->p0) * j->width;
        m.ldc = j->in;
        multiply(j, worker, &m);
        return;
    }
    m.c = col;
    m.ldc = m.n;
    multiply(j, worker, &m);
    j->rows->scatter(p, col, x);
}

static void data_task(void *arg, int64_t task, int worker)
{
    const job *j = arg;
    int64_t cut = task % j->tchannels, group = task / j->tchannels;
    int64_t n = group / j->g->groups;
    tl_conv_patch p = {.geo = j->g, .c0 = cut * j->channels};
    char *x;

    group %= j->g->groups;
    p.c1 = least(p.c0 + j->channels, j->g->c);
    x = x_at(j, n, group);
    if (!j->pointwise) {
        memset(x + (size_t)(p.c0 * j->in) * j->width, 0,
               (size_t)((p.c1 - p.c0) * j->in) * j->width);
    }
    for (; p.p0 < j->out; p.p0 += j->windows) {
        p.p1 = least(p.p0 + j->windows, j->out);
        data_step(j, worker, &p, x, y_at(j, n, group), w_at(j, group));
    }
}

/* ---- backward weights --------------------------------------------------- */

/* Outputs [o0, o1) and the taps of the patch's channels: + one product. */
static void weight_step(const job *j, int worker, const tl_conv_patch *p,
                        int64_t o0, int64_t o1, const char *x, const char *y,
                        char *w)
{
    char *col = worker_patch(j, worker), *part = col + j->patch;
    int64_t ldw = j->g->c * j->taps;
    tl_gemm m = {.tb = true, .m = o1 - o0, .n = (p->c1 - p->c0) * j->taps,
                 .k = p->p1 - p->p0, .lda = j->out};

    m.a = y + (size_t)(o0 * j->out + p->p0) * j->width;
    m.b = col;
    m.ldb = m.k;
    if (j->pointwise) {
        m.b = x + (size_t)(p->c0 * j->in + p->p0) * j->width;
        m.ldb = j->in;
    } else {
        j->rows->gather(p, x, col);
    }
    m.c = part;
    m.ldc = m.n;
    multiply(j, worker, &m);
    for (int64_t o = o0; o < o1; o++) {
        j->rows->add(m.n, part + (size_t)((o - o0) * m.n) * j->width,
                     w + (size_t)(o * ldw + p->c0 * j->taps) * j->width);
    }
}

static void weight_task(void *arg, int64_t task, int worker)
{
    const job *j = arg;
    int64_t co = task % j->toutputs, cut = task / j->toutputs;
    int64_t group = cut / j->tchannels;
    int64_t o0 = co * j->outputs, o1 = least(o0 + j->outputs, j->g->o);
    tl_conv_patch p = {.geo = j->g};

    p.c0 = cut % j->tchannels * j->channels;
    p.c1 = least(p.c0 + j->channels, j->g->c);
    for (int64_t n = 0; n < j->g->batch; n++) {
        for (p.p0 = 0; p.p0 < j->out; p.p0 += j->windows) {
            p.p1 = least(p.p0 + j->windows, j->out);
            weight_step(j, worker, &p, o0, o1, x_at(j, n, group),
                        y_at(j, n, group), w_at(j, group));
        }
    }
}

static void direct_weight_task(void *arg, int64_t task, int worker)
{
    const job *j = arg;

    (void)worker;
    for (int64_t n = 0; n < j->g->batch; n++) {
        for (int64_t o = 0; o < j->g->o; o++) {
            j->rows->weight(
                j->g, x_at(j, n, task),
                y_at(j, n, task) + (size_t)(o * j->out) * j->width,
                w_at(j, task) + (size_t)(o * j->taps) * j->width);
        }
    }
}

/* ---- setting up --------------------------------------------------------- */

const tl_conv_rows *tl_conv_rows_of(tl_dtype dtype)
{
#ifdef TL_HAVE_AVX2_KERNELS
    if (tl_cpu_has_avx2()) {
        return dtype == TL_f64 ? &tl_conv_rows_f64_avx2
                               : &tl_conv_rows_f32_avx2;
    }
#endif
    return dtype == TL_f64 ? &tl_conv_rows_f64 : &tl_conv_rows_f32;
}

static void choose_gemm(job *j)
{
#ifdef TL_HAVE_AVX2_KERNELS
    if (tl_cpu_has_avx2()) {
        j->gemm = j->c->dtype == TL_f64 ? tl_gemm_own_f64 : tl_gemm_own_f32;
        j->gemm_bytes = tl_gemm_own_scratch();
    }
#else
    (void)j;
#endif
}

static bool is_pointwise(const tl_conv_geo *g)
{
    for (int i = 0; i < 3; i++) {
        if (g->k[i] != 1 || g->stride[i] != 1 || g->before[i] != 0 ||
            g->in[i] != g->out[i]) {
            return false;
        }
    }
    return true;
}

/* Windows of a step, channels and outputs of a task. */
static void cut(job *j, int64_t threads)
{
    const tl_conv_geo *g = j->g;
    int64_t patch = g->c * j->taps;

    j->channels = g->c;
    j->outputs = g->o;
    if (j->c->kind == TL_CONV_FORWARD) {
        j->windows = most(PATCH_ELEMENTS / most(patch, 1), LEAST_WINDOWS);
        j->windows = tl_ceil_div(least(j->windows, MOST_WINDOWS), 16) * 16;
    } else {
        j->windows = MOST_WINDOWS / 2;
    }
    j->windows = least(j->windows, j->out);
    if (j->c->kind != TL_CONV_FORWARD) {
        j->channels = most(PATCH_ELEMENTS / (j->taps * j->windows), 1);
        j->channels = least(j->channels, g->c);
    }
    if (j->c->kind == TL_CONV_WEIGHT) { // the order of sums stays
        int64_t tasks = g->groups * tl_ceil_div(g->c, j->channels);

        while (j->outputs > 6 && tasks * tl_ceil_div(g->o, j->outputs) <
                                     2 * threads) {
            j->outputs = tl_ceil_div(tl_ceil_div(j->outputs, 2), 6) * 6;
        }
    }
    j->twindows = tl_ceil_div(j->out, j->windows);
    j->tchannels = tl_ceil_div(g->c, j->channels);
    j->toutputs = tl_ceil_div(g->o, j->outputs);
}

static size_t round_up(int64_t elements, size_t width)
{
    return ((size_t)elements * width + 63) / 64 * 64;
}

static void init(job *j, const tl_conv *c, int64_t threads)
{
    *j = (job){.c = c, .g = &c->geo, .rows = tl_conv_rows_of(c->dtype),
               .width = tl_dtype_size(c->dtype),
               .in = tl_conv_volume(c->geo.in),
               .out = tl_conv_volume(c->geo.out),
               .taps = tl_conv_volume(c->geo.k)};
    j->direct = c->geo.c == 1 && c->geo.o <= DIRECT_OUTPUTS;
    if (j->direct) {
        return;
    }
    j->pointwise = is_pointwise(j->g);
    choose_gemm(j);
    cut(j, threads);
    if (!j->pointwise) {
        j->patch = round_up(j->channels * j->taps * j->windows, j->width);
    }
    if (c->kind == TL_CONV_WEIGHT) {
        j->part = round_up(j->outputs * j->channels * j->taps, j->width);
    }
}

static void run(tl_kernel_ctx *k, job *j)
{
    int64_t each = j->g->batch * j->g->groups;

    if (j->c->kind == TL_CONV_WEIGHT) {
        memset(j->c->w, 0, (size_t)(j->g->groups * j->g->o * j->g->c *
                                    j->taps) * j->width);
        if (j->direct) {
            tl_cpu_run(k, j->g->groups, direct_weight_task, j);
        } else {
            tl_cpu_run(k, j->g->groups * j->tchannels * j->toutputs,
                       weight_task, j);
        }
    } else if (j->direct) {
        tl_cpu_run(k, each, direct_task, j);
    } else if (j->c->kind == TL_CONV_DATA) {
        tl_cpu_run(k, each * j->tchannels, data_task, j);
    } else {
        tl_cpu_run(k, each * j->twindows, forward_task, j);
    }
}

tl_status tl_conv_own(tl_kernel_ctx *k, const tl_conv *c)
{
    int64_t threads = tl_threads_count(k->threads);
    tl_storage *scratch = NULL;
    size_t each;
    job j;

    init(&j, c, threads);
    each = j.direct ? 0 : j.patch + j.part + j.gemm_bytes;
    if (each > 0) {
        TL_TRY(tl_cpu_scratch(k, threads, each, &scratch));
        j.scratch = tl_storage_data(scratch);
    }
    run(k, &j);
    tl_storage_unref(scratch);
    return TL_OK;
}
