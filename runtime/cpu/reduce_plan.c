/* reduce_plan.c - axes of reductions, and the tree over their leaves. */
#include "runtime/cpu/reduce.h"

#include <string.h>

#include "runtime/cpu/kern.h"

enum {
    MIN_GROUP = 8, /* results side by side that are worth rows */
    SHORT = 32,    /* elements below which a result alone is too costly */
    LEVELS = 42    /* of the tree: 2^48 elements are 2^40 leaves */
};

/* ---- axes -------------------------------------------------------------- */

/* Those of `axes` (bits), outermost first, merged. */
static void collect(tl_axes *a, const tl_tensor *x, uint32_t axes)
{
    a->rank = 0;
    a->count = 1;
    for (int i = 0; i < x->rank; i++) {
        int last = a->rank - 1;

        if ((axes >> i & 1) == 0) {
            continue;
        }
        a->count *= x->size[i];
        if (x->size[i] == 1) {
            continue;
        }
        if (last >= 0 && a->stride[last] == x->size[i] * x->stride[i]) {
            a->size[last] *= x->size[i];
            a->stride[last] = x->stride[i];
            continue;
        }
        a->size[a->rank] = x->size[i];
        a->stride[a->rank] = x->stride[i];
        a->rank++;
    }
    if (a->rank == 0) {
        a->size[0] = 1;
        a->stride[0] = 1;
        a->rank = 1;
    }
}

static int64_t magnitude(int64_t x)
{
    return x < 0 ? -x : x;
}

/* Results side by side (p->w > 1), or each along its elements? */
static void set_groups(tl_reduce_plan *p)
{
    int64_t inner = p->stay.size[p->stay.rank - 1];
    int64_t stay = magnitude(p->stay.stride[p->stay.rank - 1]);
    int64_t step = magnitude(p->reduced.stride[p->reduced.rank - 1]);
    bool over =
        inner >= MIN_GROUP && (stay < step || p->reduced.count <= SHORT);

    if (p->feed != NULL) {
        /* what is computed comes in runs: of neighbouring results, or of
         * elements, of which a window holds those of a short group */
        over = (stay == 1 && inner > 1) ||
               (over && p->reduced.rank == 1 && step == 1 &&
                stay == p->reduced.count);
    }
    p->w = over ? TL_FOLD_BYTES / p->width : 1;
    if (over && p->feed != NULL && stay > 1) {
        p->w = TL_READ_BYTES / (SHORT * p->width); /* a group in a window */
    }
    p->row = over ? inner : 1;
    p->groups = tl_ceil_div(p->row, p->w);
}

void tl_reduce_plan_init(tl_reduce_plan *p, const tl_tensor *x,
                         const tl_tile *feed, uint16_t axes, tl_dtype acc)
{
    tl_dtype from = feed == NULL ? x->dtype : acc;

    collect(&p->stay, x, ~(uint32_t)axes);
    collect(&p->reduced, x, axes);
    p->feed = feed;
    p->reader = NULL;
    p->cost = feed == NULL ? 1 : 1 + (int64_t)feed->ns;
    p->data = x->storage == NULL ? NULL : tl_tensor_data(x);
    p->from_width = (int)tl_dtype_size(from);
    p->acc = acc;
    p->width = (int)tl_dtype_size(acc);
    p->stage = tl_stage(from, acc);
    p->converts = from != acc;
    set_groups(p);
}

static int64_t offset_at(const tl_axes *a, int64_t index)
{
    int64_t offset = 0;

    if (a->rank == 1) {
        return index * a->stride[0];
    }
    for (int i = a->rank - 1; i >= 0; i--) {
        offset += index % a->size[i] * a->stride[i];
        index /= a->size[i];
    }
    return offset;
}

int64_t tl_reduce_group(const tl_reduce_plan *p, int64_t group, int64_t *at,
                        int64_t *offset)
{
    int64_t first = group % p->groups * p->w;

    *at = group / p->groups * p->row + first;
    *offset = offset_at(&p->stay, *at);
    return p->row - first < p->w ? p->row - first : p->w;
}

/* ---- elements ---------------------------------------------------------- */

void tl_reduce_reader_open(tl_reduce_reader *r, tl_reduce_plan *own)
{
    r->lo = r->hi = r->ahead = 0;
    tl_tile_open(&r->runner, own->feed, own->feed->space.longest, NULL);
    r->runner.window = r->window;
    own->reader = r;
}

/* The n elements from place `at` of a program's space on.  Those that the
 * window has are kept: each is computed once while reading goes forward. */
static const char *computed(const tl_reduce_plan *p, int64_t at, int64_t n)
{
    tl_reduce_reader *r = p->reader;
    int64_t from = at >= r->lo && at < r->hi ? r->hi : at;
    int to = p->feed->feed_to;

    if (at < r->lo || at + n > r->hi) {
        int64_t end = at + TL_READ_AHEAD / p->width;

        if (from > at && to < 0) {
            memmove(r->window, r->window + (at - r->lo) * p->width,
                    (size_t)((from - at) * p->width));
        }
        end = end < r->ahead ? end : r->ahead;
        r->lo = r->runner.window_at = at;
        r->hi = end > at + n ? end : at + n;
        tl_tile_range(&r->runner, from, r->hi);
    }
    return to < 0 ? r->window + (at - r->lo) * p->width
                  : p->feed->data[to] + at * p->width;
}

/* The n elements from `at` on, which follow each other, in place. */
static const char *elements(const tl_reduce_plan *p, int64_t at, int64_t n)
{
    return p->feed != NULL ? computed(p, at, n)
                           : p->data + at * p->from_width;
}

const void *tl_reduce_along(const tl_reduce_plan *p, int64_t offset,
                            int64_t lo, int64_t n, void *tile)
{
    const tl_axes *a = &p->reduced;
    int last = a->rank - 1;
    int64_t at = lo % a->size[last], done = 0;

    if (!p->converts && a->stride[last] == 1 && at + n <= a->size[last]) {
        return elements(p, offset + offset_at(a, lo), n);
    }
    while (done < n) {
        int64_t room = a->size[last] - at, m = n - done;
        int64_t from = offset + offset_at(a, lo + done);

        m = m < room ? m : room;
        p->stage(m, elements(p, from, m), a->stride[last],
                 (char *)tile + done * p->width);
        done += m;
        at = 0;
    }
    return tile;
}

const void *tl_reduce_over(const tl_reduce_plan *p, int64_t offset, int64_t w,
                           int64_t lo, void *tile)
{
    int64_t from = offset + offset_at(&p->reduced, lo);
    int64_t stride = p->stay.stride[p->stay.rank - 1];
    const char *x;

    if (!p->converts && stride == 1) {
        return elements(p, from, w);
    }
    if (p->feed != NULL) { /* all elements of the group, once */
        x = computed(p, offset, (w - 1) * stride + p->reduced.count) +
            lo * p->width;
    } else {
        x = p->data + from * p->from_width;
    }
    p->stage(w, x, stride, tile);
    return tile;
}

/* ---- leaves ------------------------------------------------------------ */

typedef struct folding {
    const tl_reduce_plan *p;
    const tl_fold *fold;
    tl_fold_map_fn *map;
    int64_t offset, w;
    const void *params;
} folding;

static void leaf_along(const folding *f, int64_t lo, int64_t n, void *to)
{
    double tile[TL_LEAF];
    const void *x = tl_reduce_along(f->p, f->offset, lo, n, tile);

    if (f->map != NULL) {
        f->map(n, x, f->params, 0, tile);
        x = tile;
    }
    f->fold->leaf(x, n, to);
}

static void quad_along(const folding *f, int64_t lo, void *to)
{
    double tile[TL_QUAD];
    const void *x = tl_reduce_along(f->p, f->offset, lo, TL_QUAD, tile);

    if (f->map != NULL) {
        f->map(TL_QUAD, x, f->params, 0, tile);
        x = tile;
    }
    f->fold->quad(x, to);
}

/* Leaf of w results, over their rows. */
static __attribute__((noinline)) void leaf_over(const folding *f, int64_t lo,
                                                int64_t n, void *to)
{
    char lanes[TL_LANES][TL_FOLD_BYTES] __attribute__((aligned(64)));
    char tile[TL_FOLD_BYTES] __attribute__((aligned(64)));
    int64_t bytes = f->w * f->p->width;

    f->fold->clear(lanes, f->w);
    for (int64_t i = 0; i < n; i++) {
        const void *x = tl_reduce_over(f->p, f->offset, f->w, lo + i, tile);

        if (f->map != NULL) {
            f->map(f->w, x, f->params, 1, tile);
            x = tile;
        }
        f->fold->row((char *)lanes + i % TL_LANES * bytes, x, f->w);
    }
    f->fold->join(lanes, f->w, to);
}

static void leaf(const folding *f, int64_t lo, int64_t n, void *to)
{
    if (f->p->w > 1) {
        leaf_over(f, lo, n, to);
    } else {
        leaf_along(f, lo, n, to);
    }
}

/* ---- the tree ---------------------------------------------------------- */

/* Left sides that wait for their right ones, a row of results each. */
typedef struct waiting {
    char *rows;
    size_t step; /* bytes from one to the next */
} waiting;

static void fold_leaves(const folding *f, int64_t lo, int64_t hi,
                        waiting left, void *to)
{
    int64_t w = f->w, quads = w == 1 ? (hi - lo) / TL_QUAD * 4 : 0, n;
    size_t bytes = (size_t)(w * f->p->width);
    size_t depth = 0;

    for (int64_t i = 0; lo < hi; i += n / TL_LEAF, lo += n) {
        /* complete subtrees of one size join */
        int64_t k = i < quads ? i / 4 : i;

        n = i < quads ? TL_QUAD : hi - lo < TL_LEAF ? hi - lo : TL_LEAF;
        if (i < quads) {
            quad_along(f, lo, to);
        } else {
            leaf(f, lo, n, to);
        }
        for (; (k & 1) != 0; k >>= 1) {
            f->fold->merge(left.rows + --depth * left.step, to, w);
        }
        if (lo + n < hi) {
            memcpy(left.rows + depth++ * left.step, to, bytes);
        }
    }
    while (depth > 0) { /* the rest from the right */
        f->fold->merge(left.rows + --depth * left.step, to, w);
    }
}

/* Of neighbours.  A frame of this size is touched page by page, which costs
 * more than a row of one result. */
static __attribute__((noinline)) void fold_wide(const folding *f, int64_t lo,
                                                int64_t hi, void *to)
{
    char left[LEVELS][TL_FOLD_BYTES];

    fold_leaves(f, lo, hi, (waiting){left[0], sizeof(left[0])}, to);
}

/* The fold of nothing. */
static __attribute__((noinline)) void identity(const folding *f, void *to)
{
    char lanes[TL_LANES][TL_FOLD_BYTES];

    f->fold->clear(lanes, f->w);
    memcpy(to, lanes, (size_t)(f->w * f->p->width));
}

void tl_reduce_fold(const tl_reduce_plan *p, tl_fold_kind kind,
                    tl_fold_map map, int64_t offset, int64_t w, int64_t lo,
                    int64_t hi, const void *params, void *to)
{
    int64_t left[LEVELS]; /* of one result */
    folding f = {.p = p, .offset = offset, .w = w, .params = params};

    f.fold = tl_fold_best(p->acc, kind);
    f.map = tl_fold_map_best(p->acc, map);
    if (lo >= hi) {
        identity(&f, to);
    } else if (hi - lo <= TL_LEAF) {
        leaf(&f, lo, hi - lo, to);
    } else if (w == 1) {
        fold_leaves(&f, lo, hi, (waiting){(char *)left, sizeof(left[0])}, to);
    } else {
        fold_wide(&f, lo, hi, to);
    }
}

/* ---- statistics -------------------------------------------------------- */

/* (count, mean, M2) of two sets into that of the right one: Chan, Golub,
 * LeVeque, "Updating formulae and a pairwise algorithm for computing sample
 * variances" (1979), eq. 1.5. */
#define CHAN(suffix, type)                                                   \
    static void chan_##suffix(const tl_moments *left, tl_moments *right,     \
                              int64_t w)                                     \
    {                                                                        \
        double na = (double)left->count, nb = (double)right->count;          \
        const type share = (type)(nb / (na + nb));                           \
        const type cross = (type)(na * nb / (na + nb));                      \
        const type *ma = left->mean, *sa = left->m2;                         \
        type *mb = right->mean, *sb = right->m2;                             \
                                                                             \
        for (int64_t c = 0; c < w; c++) {                                    \
            type d = mb[c] - ma[c];                                          \
                                                                             \
            mb[c] = ma[c] + d * share;                                       \
            sb[c] = sa[c] + sb[c] + d * d * cross;                           \
        }                                                                    \
    }                                                                        \
                                                                             \
    static void add_share_##suffix(int64_t n, const void *sum, void *mean,   \
                                   int64_t w)                                \
    {                                                                        \
        const type *s = sum;                                                 \
        type *m = mean;                                                      \
                                                                             \
        for (int64_t c = 0; c < w; c++) {                                    \
            m[c] = m[c] + s[c] / (type)n;                                    \
        }                                                                    \
    }
CHAN(f32, float)
CHAN(f64, double)

void tl_moments_merge(tl_dtype acc, const tl_moments *left, tl_moments *right,
                      int64_t w)
{
    if (acc == TL_f32) {
        chan_f32(left, right, w);
    } else {
        chan_f64(left, right, w);
    }
    right->count += left->count;
}

/* Element `lo` of each of the w results. */
static void first_elements(const folding *f, int64_t lo, void *to)
{
    const tl_reduce_plan *p = f->p;
    const void *x = p->w > 1 ? tl_reduce_over(p, f->offset, f->w, lo, to)
                             : tl_reduce_along(p, f->offset, lo, 1, to);

    if (x != to) {
        memcpy(to, x, (size_t)(f->w * p->width));
    }
}

/* Room of the moments of w results: left sides, and two rows. */
typedef struct moments_room {
    waiting mean, m2;
    char *first, *sum;
} moments_room;

/* Mean and M2 of a leaf in two passes.  Deviations from the first element are
 * summed, so that equal elements have exactly their mean and M2 = 0. */
static void leaf_moments(folding *f, int64_t lo, int64_t n,
                         const moments_room *room, tl_moments *to)
{
    tl_dtype acc = f->p->acc;

    first_elements(f, lo, room->first);
    f->params = room->first;
    f->map = tl_fold_map_best(acc, TL_FOLD_MINUS);
    leaf(f, lo, n, room->sum);
    memcpy(to->mean, room->first, (size_t)(f->w * f->p->width));
    if (acc == TL_f32) {
        add_share_f32(n, room->sum, to->mean, f->w);
    } else {
        add_share_f64(n, room->sum, to->mean, f->w);
    }
    f->params = to->mean;
    f->map = tl_fold_map_best(acc, TL_FOLD_MINUS_SQUARE);
    leaf(f, lo, n, to->m2);
    to->count = n;
}

static void moments_of_leaves(folding *f, int64_t lo, int64_t hi,
                              const moments_room *room, tl_moments *to)
{
    tl_moments left[LEVELS];
    size_t bytes = (size_t)(f->w * f->p->width), depth = 0;

    for (int64_t i = 0; lo < hi; i++, lo += TL_LEAF) {
        leaf_moments(f, lo, hi - lo < TL_LEAF ? hi - lo : TL_LEAF, room, to);
        for (int64_t k = i; (k & 1) != 0; k >>= 1) {
            tl_moments_merge(f->p->acc, &left[--depth], to, f->w);
        }
        if (lo + TL_LEAF < hi) {
            char *mean = room->mean.rows + depth * room->mean.step;
            char *m2 = room->m2.rows + depth * room->m2.step;

            memcpy(mean, to->mean, bytes);
            memcpy(m2, to->m2, bytes);
            left[depth++] = (tl_moments){to->count, mean, m2};
        }
    }
    while (depth > 0) {
        tl_moments_merge(f->p->acc, &left[--depth], to, f->w);
    }
}

static __attribute__((noinline)) void moments_wide(folding *f, int64_t lo,
                                                   int64_t hi, tl_moments *to)
{
    char mean[LEVELS][TL_FOLD_BYTES], m2[LEVELS][TL_FOLD_BYTES];
    char first[TL_FOLD_BYTES], sum[TL_FOLD_BYTES];
    moments_room room = {
        {mean[0], sizeof(mean[0])}, {m2[0], sizeof(m2[0])}, first, sum};

    moments_of_leaves(f, lo, hi, &room, to);
}

void tl_reduce_moments(const tl_reduce_plan *p, int64_t offset, int64_t w,
                       int64_t lo, int64_t hi, tl_moments *to)
{
    double mean[LEVELS], m2[LEVELS], pair[2]; /* of one result */
    moments_room room = {{(char *)mean, sizeof(mean[0])},
                         {(char *)m2, sizeof(m2[0])},
                         (char *)&pair[0],
                         (char *)&pair[1]};
    folding f = {.p = p, .offset = offset, .w = w};

    f.fold = tl_fold_best(p->acc, TL_FOLD_SUM);
    to->count = 0;
    if (w == 1) {
        moments_of_leaves(&f, lo, hi, &room, to);
    } else {
        moments_wide(&f, lo, hi, to);
    }
}
