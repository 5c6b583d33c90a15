/* plan_place.c - addresses in the arena.
 *
 * Buffers whose lives overlap must not overlap in memory: offline storage
 * allocation.  Several orders of placing are tried, each buffer going to the
 * smallest gap that takes it between those placed before whose lives overlap
 * (best fit).  Each is tried again with the block that came out highest placed
 * first, as long as plans are small enough for that.  The smallest arena wins,
 * and one that is hardly larger than the bytes live at one time ends the
 * search. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include <stdlib.h>
#include <string.h>

#include "compiler/plan_impl.h"
#include "runtime/base/mem.h"

enum {
    WORK = 500000, /* pairs of blocks looked at for each order */
    GOOD = 200     /* a part in so many above the bound is good enough */
};

typedef struct block {
    size_t bytes, at;
    uint32_t first, last;
    uint32_t buf;
} block;

/* Comparisons for the orders; ties by number, so that plans are the same
 * everywhere. */
static int by_number(const block *a, const block *b)
{
    return a->buf < b->buf ? -1 : a->buf > b->buf;
}

static int by_size(const void *pa, const void *pb)
{
    const block *a = pa, *b = pb;

    return a->bytes != b->bytes ? (a->bytes > b->bytes ? -1 : 1)
                                : by_number(a, b);
}

static int by_start(const void *pa, const void *pb)
{
    const block *a = pa, *b = pb;

    return a->first != b->first ? (a->first < b->first ? -1 : 1)
                                : by_size(pa, pb);
}

/* Those that live long lie at the bottom and break up nothing. */
static int by_life(const void *pa, const void *pb)
{
    const block *a = pa, *b = pb;
    uint32_t la = a->last - a->first, lb = b->last - b->first;

    return la != lb ? (la > lb ? -1 : 1) : by_size(pa, pb);
}

static int by_area(const void *pa, const void *pb)
{
    const block *a = pa, *b = pb;
    double wa = (double)a->bytes * (a->last - a->first + 1.0);
    double wb = (double)b->bytes * (b->last - b->first + 1.0);

    return wa != wb ? (wa > wb ? -1 : 1) : by_number(a, b);
}

static int by_address(const void *pa, const void *pb)
{
    const block *a = *(const block *const *)pa;
    const block *b = *(const block *const *)pb;

    return a->at != b->at ? (a->at < b->at ? -1 : 1) : by_number(a, b);
}

static bool overlap(const block *a, const block *b)
{
    return a->first <= b->last && b->first <= a->last;
}

/* The smallest gap for `b` below the top of its neighbours, else their top.
 * `near` has the n placed blocks whose lives overlap, by address. */
static size_t best_fit(const block *b, block *const *near, size_t n)
{
    size_t top = 0, best = SIZE_MAX, at = 0;

    for (size_t i = 0; i < n; i++) {
        if (near[i]->at > top) {
            size_t gap = near[i]->at - top;

            if (gap >= b->bytes && gap < best) {
                best = gap;
                at = top;
            }
        }
        if (near[i]->at + near[i]->bytes > top) {
            top = near[i]->at + near[i]->bytes;
        }
    }
    return best == SIZE_MAX ? top : at;
}

/* Place blocks in this order; the end of the highest. */
static size_t place(block *blocks, size_t n, block **placed, block **near)
{
    size_t end = 0;

    /* `placed` is kept by address, so `near` is too */
    for (size_t i = 0; i < n; i++) {
        block *b = &blocks[i];
        size_t count = 0, lo = 0, hi = i;

        for (size_t j = 0; j < i; j++) {
            if (overlap(placed[j], b)) {
                near[count++] = placed[j];
            }
        }
        b->at = best_fit(b, near, count);
        end = b->at + b->bytes > end ? b->at + b->bytes : end;
        while (lo < hi) {
            size_t mid = (lo + hi) / 2;

            if (by_address(&placed[mid], &b) < 0) {
                lo = mid + 1;
            } else {
                hi = mid;
            }
        }
        memmove(placed + lo + 1, placed + lo, (i - lo) * sizeof(*placed));
        placed[lo] = b;
    }
    return end;
}

static size_t collect(const tl_plan *pl, block *blocks)
{
    size_t n = 0;

    for (uint32_t b = 1; b < pl->bufs.len; b++) {
        const tl_pbuf *buf = &pl->bufs.items[b];

        if (buf->parent == b && buf->where == TL_PB_ARENA &&
            buf->bytes > 0) {
            blocks[n++] = (block){.bytes = buf->bytes,
                                  .first = buf->first,
                                  .last = buf->last,
                                  .buf = b};
        }
    }
    return n;
}

static void keep(tl_plan *pl, const block *blocks, size_t n, size_t end)
{
    for (size_t i = 0; i < n; i++) {
        pl->bufs.items[blocks[i].buf].at = blocks[i].at;
    }
    pl->arena = end;
}

/* Move the highest block to the front of the order: it has the first choice
 * next time. */
static void prefer_highest(block *blocks, size_t end)
{
    size_t i = 0;
    block high;

    while (blocks[i].at + blocks[i].bytes != end) {
        i++;
    }
    high = blocks[i];
    memmove(blocks + 1, blocks, i * sizeof(*blocks));
    blocks[0] = high;
}

/* Place in this order, then again and again with what came out on top placed
 * first, while that may pay. */
static void search(tl_plan *pl, block *blocks, size_t n, block **lists,
                   size_t room)
{
    size_t tries = n > 0 ? WORK / (n * n) + 1 : 1;

    size_t good = pl->lower_bound + pl->lower_bound / GOOD;

    for (size_t i = 0; i < tries && pl->arena > good; i++) {
        size_t end = place(blocks, n, lists, lists + room);

        if (end < pl->arena) {
            keep(pl, blocks, n, end);
        }
        if (n > 0) {
            prefer_highest(blocks, end);
        }
    }
}

tl_status tl_plan_place(tl_plan *pl, tl_rt *rt)
{
    static int (*const orders[])(const void *, const void *) = {
        by_size, by_area, by_life, by_start};
    size_t n, room = pl->bufs.len + 1;
    block *blocks = tl_calloc(room, sizeof(*blocks));
    block **lists = tl_calloc(room, 2 * sizeof(block *));

    if (!blocks || !lists) {
        tl_free(blocks);
        tl_free(lists);
        return tl_plan_no_memory(rt, room * sizeof(*blocks));
    }
    n = collect(pl, blocks);
    pl->arena = SIZE_MAX;
    for (size_t i = 0; i < sizeof(orders) / sizeof(orders[0]); i++) {
        qsort(blocks, n, sizeof(*blocks), orders[i]);
        search(pl, blocks, n, lists, room);
    }
    tl_free(blocks);
    tl_free(lists);
    return TL_OK;
}
