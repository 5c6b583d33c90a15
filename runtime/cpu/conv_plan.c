/* conv_plan.c - plans of convolutions by oneDNN, and the table of them.
 *
 * A primitive remembers the number of threads of its creation, and backward
 * weights hang or leave results unwritten with another one: every one is
 * created, and runs, at one thread (research/contract.md 6). */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "runtime/cpu/conv_plan.h"

#ifdef TL_HAVE_ONEDNN_CONV
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "runtime/base/mem.h"

enum {
    PLANS = 192,       /* kept at most */
    LANES = 16,        /* channels of a block, at most */
    TASKS = 8,         /* parts that a convolution should have */
    LEAST_CHANNELS = 32, /* of a part */
    SUMS = 4           /* of backward weights */
};

static const double PART_FLOPS = 16e6; /* about 200 us of a core */
static const int64_t PART_BYTES = 16 << 20; /* of blocked images */

/* What device.h keeps without knowing it. */
struct tl_conv_cache {
    pthread_mutex_t lock;
    dnnl_engine_t engine;
    tl_conv_plan *plan[PLANS];
    uint64_t hash[PLANS];
    int n, next; /* the next to be replaced */
};

/* ---- parts -------------------------------------------------------------- */

/* The largest divisor of n that is at most `limit`. */
static int64_t divisor(int64_t n, int64_t limit)
{
    for (int64_t d = limit < n ? limit : n; d > 1; d--) {
        if (n % d == 0) {
            return d;
        }
    }
    return 1;
}

static double image_flops(const tl_conv_geo *g)
{
    return 2.0 * (double)(g->groups * g->o * g->c) *
           (double)tl_conv_volume(g->k) * (double)tl_conv_volume(g->out);
}

/* Equal ranges of whole blocks of channels: at most `limit` of them. */
static int64_t channel_cuts(const tl_conv_geo *g, int64_t channels,
                            int64_t limit)
{
    int64_t n = g->groups == 1 ? limit : 1;

    while (n > 1 && (channels % (n * LANES) != 0 ||
                     channels / n < LEAST_CHANNELS)) {
        n--;
    }
    return n;
}

static void cut_images(tl_conv_plan *p)
{
    const tl_conv_geo *g = &p->geo;
    double wanted = PART_FLOPS / image_flops(g);
    int64_t most = g->batch / TASKS > 1 ? g->batch / TASKS : 1;

    p->images = divisor(g->batch, wanted < (double)most ? (int64_t)wanted
                                                        : most);
    p->parts = g->batch / p->images;
    if (p->parts < TASKS && image_flops(g) > 2 * PART_FLOPS) {
        p->cuts = channel_cuts(g, p->kind == TL_CONV_DATA ? g->c : g->o,
                               TASKS / p->parts);
    }
}

static void cut_weights(tl_conv_plan *p)
{
    const tl_conv_geo *g = &p->geo;
    int64_t each = 4 * (g->groups * g->c * tl_conv_volume(g->in) +
                        g->groups * g->o * tl_conv_volume(g->out));
    int64_t of_sum;

    p->sums = divisor(g->batch, SUMS);
    p->cuts = channel_cuts(g, g->o, SUMS / p->sums);
    of_sum = g->batch / p->sums;
    p->images = divisor(of_sum, each < PART_BYTES ? PART_BYTES / each : 1);
    p->parts = g->batch / p->images;
}

static void cut(tl_conv_plan *p)
{
    p->cuts = p->sums = 1;
    if (p->kind == TL_CONV_WEIGHT) {
        cut_weights(p);
    } else {
        cut_images(p);
    }
}

/* ---- descriptions for the library --------------------------------------- */

/* A plain tensor with axes n, c (or o, c with groups in front) and those of
 * space. */
typedef struct sizes {
    int rank;
    dnnl_dims_t size, stride;
} sizes;

static void push(sizes *s, int64_t size)
{
    s->size[s->rank++] = size;
}

static void push_space(sizes *s, const tl_conv_geo *g, const int64_t *size)
{
    for (int i = 3 - g->axes; i < 3; i++) {
        push(s, size[i]);
    }
}

/* Row-major strides; `outer` elements between images or outputs. */
static void set_strides(sizes *s, int outer_axis, int64_t outer)
{
    int64_t stride = 1;

    for (int i = s->rank - 1; i >= 0; i--) {
        if (i == outer_axis) {
            stride = outer;
        }
        s->stride[i] = stride;
        stride *= s->size[i];
    }
}

/* x and y of a part; all channels of the tensor are `channels`. */
static void image_sizes(const tl_conv_plan *p, bool of_x, sizes *s)
{
    const tl_conv_geo *g = &p->geo;
    const int64_t *space = of_x ? g->in : g->out;
    int64_t channels = g->groups * (of_x ? g->c : g->o);
    bool is_cut = of_x == (p->kind == TL_CONV_DATA);

    s->rank = 0;
    push(s, p->images);
    push(s, is_cut ? channels / p->cuts : channels);
    push_space(s, g, space);
    set_strides(s, 0, channels * tl_conv_volume(space));
}

static void weight_sizes(const tl_conv_plan *p, sizes *s)
{
    const tl_conv_geo *g = &p->geo;
    int64_t taps = tl_conv_volume(g->k);
    bool cut_c = p->kind == TL_CONV_DATA;

    s->rank = 0;
    if (g->groups > 1) {
        push(s, g->groups);
    }
    push(s, cut_c ? g->o : g->o / p->cuts);
    push(s, cut_c ? g->c / p->cuts : g->c);
    push_space(s, g, g->k);
    set_strides(s, g->groups > 1, g->c * taps);
}

static void set_steps(tl_conv_plan *p)
{
    const tl_conv_geo *g = &p->geo;
    size_t taps = (size_t)tl_conv_volume(g->k), width = sizeof(float);
    size_t in = (size_t)tl_conv_volume(g->in) * width;
    size_t out = (size_t)tl_conv_volume(g->out) * width;
    size_t c = (size_t)(g->c / p->cuts), o = (size_t)(g->o / p->cuts);
    size_t all = (size_t)(p->images * g->groups);
    tl_conv_operand *x = &p->of[TL_CONV_X], *w = &p->of[TL_CONV_W];
    tl_conv_operand *y = &p->of[TL_CONV_Y];

    x->by_image = all * (size_t)g->c * in;
    y->by_image = all * (size_t)g->o * out;
    if (p->kind == TL_CONV_DATA) {
        x->by_cut = c * in;
        w->by_cut = c * taps * width;
    } else {
        y->by_cut = o * out;
        w->by_cut = o * (size_t)g->c * taps * width;
    }
}

/* Two descriptions of each operand: strided, and as the library likes. */
static dnnl_status_t describe(tl_conv_plan *p)
{
    for (int i = 0; i < TL_CONV_ROLES; i++) {
        tl_conv_operand *o = &p->of[i];
        dnnl_status_t st;
        sizes s;

        if (i == TL_CONV_W) {
            weight_sizes(p, &s);
        } else {
            image_sizes(p, i == TL_CONV_X, &s);
        }
        st = dnnl_memory_desc_init_by_strides(&o->plain, s.rank, s.size,
                                              dnnl_f32, s.stride);
        if (st == dnnl_success) {
            st = dnnl_memory_desc_init_by_tag(&o->blocked, s.rank, s.size,
                                              dnnl_f32, dnnl_format_tag_any);
        }
        if (st != dnnl_success) {
            return st;
        }
    }
    return dnnl_success;
}

typedef struct window {
    dnnl_dims_t stride, dilation, before, after;
} window;

/* The padding behind is what the last window needs. */
static void set_window(const tl_conv_geo *g, window *w)
{
    for (int i = 3 - g->axes, to = 0; i < 3; i++, to++) {
        int64_t after = (g->out[i] - 1) * g->stride[i] +
                        g->dilation[i] * (g->k[i] - 1) + 1 - g->in[i] -
                        g->before[i];

        w->stride[to] = g->stride[i];
        w->dilation[to] = g->dilation[i] - 1;
        w->before[to] = g->before[i];
        w->after[to] = after > 0 ? after : 0;
    }
}

static dnnl_status_t forward_desc(const tl_conv_plan *p,
                                  dnnl_prop_kind_t prop,
                                  dnnl_convolution_desc_t *d)
{
    const tl_conv_operand *o = p->of;
    window w;

    set_window(&p->geo, &w);
    return dnnl_dilated_convolution_forward_desc_init(
        d, prop, dnnl_convolution_direct, &o[TL_CONV_X].blocked,
        &o[TL_CONV_W].blocked, NULL, &o[TL_CONV_Y].blocked, w.stride,
        w.dilation, w.before, w.after);
}

static dnnl_status_t backward_desc(const tl_conv_plan *p,
                                   dnnl_convolution_desc_t *d)
{
    const dnnl_memory_desc_t *x = &p->of[TL_CONV_X].blocked;
    const dnnl_memory_desc_t *f = &p->of[TL_CONV_W].blocked;
    const dnnl_memory_desc_t *y = &p->of[TL_CONV_Y].blocked;
    window w;

    set_window(&p->geo, &w);
    return p->kind == TL_CONV_DATA
               ? dnnl_dilated_convolution_backward_data_desc_init(
                     d, dnnl_convolution_direct, x, f, y, w.stride,
                     w.dilation, w.before, w.after)
               : dnnl_dilated_convolution_backward_weights_desc_init(
                     d, dnnl_convolution_direct, x, f, NULL, y, w.stride,
                     w.dilation, w.before, w.after);
}

/* ---- primitives --------------------------------------------------------- */

/* Is it one of the library's kernels for blocked layouts?  The others are
 * plain loops, products over patches as we have them, and kernels for channels
 * last, whose reorders cost more than they save. */
static bool is_blocked(const_dnnl_primitive_desc_t pd)
{
    const char *name = NULL;

    return dnnl_primitive_desc_query(pd, dnnl_query_impl_info_str, 0,
                                     (void *)&name) == dnnl_success &&
           strncmp(name, "jit", 3) == 0;
}

/* The library's first implementation that `is_blocked`. */
static dnnl_status_t choose(const tl_conv_plan *p,
                            const dnnl_convolution_desc_t *d,
                            dnnl_primitive_attr_t attr,
                            dnnl_primitive_desc_t hint,
                            dnnl_primitive_desc_t *pd)
{
    dnnl_primitive_desc_iterator_t it;
    dnnl_status_t st;

    *pd = NULL;
    st = dnnl_primitive_desc_iterator_create(&it, d, attr, p->engine, hint);
    if (st != dnnl_success) {
        return st;
    }
    while (st == dnnl_success) {
        *pd = dnnl_primitive_desc_iterator_fetch(it);
        if (!*pd) {
            st = dnnl_out_of_memory;
            break;
        }
        if (is_blocked(*pd)) {
            break;
        }
        (void)dnnl_primitive_desc_destroy(*pd);
        *pd = NULL;
        st = dnnl_primitive_desc_iterator_next(it);
    }
    (void)dnnl_primitive_desc_iterator_destroy(it);
    return st == dnnl_iterator_ends ? dnnl_unimplemented : st;
}

static dnnl_status_t convolution(const tl_conv_plan *p,
                                 dnnl_primitive_attr_t attr,
                                 dnnl_primitive_desc_t *pd)
{
    bool forward = p->kind == TL_CONV_FORWARD;
    dnnl_primitive_desc_t hint;
    dnnl_convolution_desc_t d;
    dnnl_status_t st = forward_desc(p, forward ? dnnl_forward_inference
                                               : dnnl_forward_training, &d);

    if (st == dnnl_success) {
        st = choose(p, &d, attr, NULL, pd);
    }
    if (forward || st != dnnl_success) {
        return st;
    }
    hint = *pd;
    st = backward_desc(p, &d);
    if (st == dnnl_success) {
        st = choose(p, &d, attr, hint, pd);
    }
    (void)dnnl_primitive_desc_destroy(hint);
    return st;
}

/* The layouts that the primitive wants. */
static void read_layouts(tl_conv_plan *p, dnnl_primitive_desc_t pd)
{
    static const dnnl_query_t query[][TL_CONV_ROLES] = {
        [TL_CONV_FORWARD] = {dnnl_query_src_md, dnnl_query_weights_md,
                             dnnl_query_dst_md},
        [TL_CONV_DATA] = {dnnl_query_diff_src_md, dnnl_query_weights_md,
                          dnnl_query_diff_dst_md},
        [TL_CONV_WEIGHT] = {dnnl_query_src_md, dnnl_query_diff_weights_md,
                            dnnl_query_diff_dst_md},
    };

    for (int i = 0; i < TL_CONV_ROLES; i++) {
        tl_conv_operand *o = &p->of[i];

        o->blocked = *dnnl_primitive_desc_query_md(pd, query[p->kind][i], 0);
        o->bytes = (dnnl_memory_desc_get_size(&o->blocked) + 63) / 64 * 64;
    }
    p->scratch = dnnl_memory_desc_get_size(
        dnnl_primitive_desc_query_md(pd, dnnl_query_scratchpad_md, 0));
    p->scratch = (p->scratch + 63) / 64 * 64;
}

static dnnl_status_t make_reorder(tl_conv_plan *p, tl_conv_operand *o,
                                  bool result, dnnl_primitive_attr_t attr)
{
    const dnnl_memory_desc_t *from = result ? &o->blocked : &o->plain;
    const dnnl_memory_desc_t *to = result ? &o->plain : &o->blocked;
    dnnl_primitive_desc_t pd;
    dnnl_status_t st;

    if (dnnl_memory_desc_equal(from, to)) {
        return dnnl_success;
    }
    st = dnnl_reorder_primitive_desc_create(&pd, from, p->engine, to,
                                            p->engine, attr);
    if (st == dnnl_success) {
        st = dnnl_primitive_create(&o->reorder, pd);
        (void)dnnl_primitive_desc_destroy(pd);
    }
    return st;
}

static dnnl_status_t make_primitives(tl_conv_plan *p,
                                     dnnl_primitive_attr_t attr)
{
    dnnl_primitive_desc_t pd = NULL;
    dnnl_status_t st = describe(p);

    if (st == dnnl_success) {
        st = convolution(p, attr, &pd);
    }
    if (st != dnnl_success) {
        return st;
    }
    read_layouts(p, pd);
    st = dnnl_primitive_create(&p->conv, pd);
    (void)dnnl_primitive_desc_destroy(pd);
    for (int i = 0; i < TL_CONV_ROLES && st == dnnl_success; i++) {
        st = make_reorder(p, &p->of[i], i == (int)tl_conv_result(p->kind),
                          attr);
    }
    return st;
}

static void destroy(tl_conv_plan *p)
{
    (void)dnnl_primitive_destroy(p->conv);
    for (int i = 0; i < TL_CONV_ROLES; i++) {
        (void)dnnl_primitive_destroy(p->of[i].reorder);
    }
    tl_free(p);
}

static tl_status make_plan(tl_kernel_ctx *k, dnnl_engine_t engine,
                           const tl_conv *c, tl_conv_plan **out)
{
    tl_conv_plan *p = tl_calloc(1, sizeof(*p));
    dnnl_primitive_attr_t attr;
    dnnl_status_t st;

    if (!p) {
        return tl_fail_memory(k->diag, "a convolution", sizeof(*p));
    }
    p->kind = c->kind;
    p->geo = c->geo;
    p->engine = engine;
    cut(p);
    set_steps(p);
    tl_onednn_one_thread_now();
    st = dnnl_primitive_attr_create(&attr);
    if (st == dnnl_success) {
        st = dnnl_primitive_attr_set_scratchpad_mode(
            attr, dnnl_scratchpad_mode_user);
        if (st == dnnl_success) {
            st = make_primitives(p, attr);
        }
        (void)dnnl_primitive_attr_destroy(attr);
    }
    if (st == dnnl_out_of_memory) {
        destroy(p);
        return tl_fail_memory(k->diag, "a convolution", 0);
    }
    p->usable = st == dnnl_success;
    *out = p;
    return TL_OK;
}

/* ---- the table ---------------------------------------------------------- */

static uint64_t hash_of(const tl_conv *c)
{
    const tl_conv_geo *g = &c->geo;
    const int64_t v[] = {(int64_t)c->kind, g->axes, g->batch, g->groups, g->c,
                         g->o};
    uint64_t h = 0xcbf29ce484222325u;

    for (size_t i = 0; i < sizeof(v) / sizeof(v[0]); i++) {
        h = (h ^ (uint64_t)v[i]) * 0x100000001b3u;
    }
    for (int i = 0; i < 3; i++) {
        h = (h ^ (uint64_t)g->in[i]) * 0x100000001b3u;
        h = (h ^ (uint64_t)g->out[i]) * 0x100000001b3u;
        h = (h ^ (uint64_t)g->k[i]) * 0x100000001b3u;
    }
    return h;
}

static bool same_geo(const tl_conv_geo *a, const tl_conv_geo *b)
{
    return a->axes == b->axes && a->batch == b->batch &&
           a->groups == b->groups && a->c == b->c && a->o == b->o &&
           memcmp(a->in, b->in, sizeof(a->in)) == 0 &&
           memcmp(a->out, b->out, sizeof(a->out)) == 0 &&
           memcmp(a->k, b->k, sizeof(a->k)) == 0 &&
           memcmp(a->stride, b->stride, sizeof(a->stride)) == 0 &&
           memcmp(a->before, b->before, sizeof(a->before)) == 0 &&
           memcmp(a->dilation, b->dilation, sizeof(a->dilation)) == 0;
}

static tl_conv_plan *find(struct tl_conv_cache *cache, const tl_conv *c,
                          uint64_t hash)
{
    for (int i = 0; i < cache->n; i++) {
        tl_conv_plan *p = cache->plan[i];

        if (cache->hash[i] == hash && p->kind == c->kind &&
            same_geo(&p->geo, &c->geo)) {
            return p;
        }
    }
    return NULL;
}

/* The plan is used by the table too. */
static void keep(struct tl_conv_cache *cache, tl_conv_plan *p, uint64_t hash)
{
    int at = cache->n < PLANS ? cache->n++ : cache->next;
    tl_conv_plan *old = cache->plan[at];

    cache->plan[at] = p;
    cache->hash[at] = hash;
    cache->next = (at + 1) % PLANS;
    p->users = 1;
    if (old && --old->users == 0) {
        destroy(old);
    }
}

void tl_conv_cache_free(struct tl_conv_cache *cache)
{
    if (!cache) {
        return;
    }
    for (int i = 0; i < cache->n; i++) {
        destroy(cache->plan[i]);
    }
    if (cache->engine) {
        (void)dnnl_engine_destroy(cache->engine);
    }
    (void)pthread_mutex_destroy(&cache->lock);
    tl_free(cache);
}

/* The device's table, made when it is first asked for; NULL: no memory. */
static struct tl_conv_cache *cache_of(tl_device *device)
{
    struct tl_conv_cache *cache = atomic_load(&device->convs), *none = NULL;

    if (cache) {
        return cache;
    }
    cache = tl_calloc(1, sizeof(*cache));
    if (!cache || pthread_mutex_init(&cache->lock, NULL) != 0) {
        tl_free(cache);
        return NULL;
    }
    if (!atomic_compare_exchange_strong(&device->convs, &none, cache)) {
        tl_conv_cache_free(cache); // another thread was faster
        cache = none;
    }
    return cache;
}

tl_status tl_conv_plan_get(tl_kernel_ctx *k, const tl_conv *c,
                           tl_conv_plan **out)
{
    struct tl_conv_cache *cache = cache_of(k->device);
    uint64_t hash = hash_of(c);
    tl_status st = TL_OK;

    if (!cache) {
        return tl_fail_memory(k->diag, "a table of convolutions",
                              sizeof(*cache));
    }
    (void)pthread_mutex_lock(&cache->lock);
    *out = find(cache, c, hash);
    if (!*out) {
        if (!cache->engine &&
            dnnl_engine_create(&cache->engine, dnnl_cpu, 0) != dnnl_success) {
            cache->engine = NULL;
            st = tl_fail_memory(k->diag, "an engine of oneDNN", 0);
        } else {
            st = make_plan(k, cache->engine, c, out);
        }
        if (st == TL_OK) {
            keep(cache, *out, hash);
        }
    }
    if (st == TL_OK) {
        (*out)->users++;
    }
    (void)pthread_mutex_unlock(&cache->lock);
    return st;
}

void tl_conv_plan_put(tl_kernel_ctx *k, tl_conv_plan *p)
{
    struct tl_conv_cache *cache = k->device->convs;

    (void)pthread_mutex_lock(&cache->lock);
    if (--p->users == 0) {
        destroy(p);
    }
    (void)pthread_mutex_unlock(&cache->lock);
}
#endif
