/* test_large.c - the segregated fit: its invariants after every change. */
#include <criterion/criterion.h>

#include <stdint.h>
#include <sys/resource.h>

#include "runtime/base/mem.h"
#include "runtime/mem/large.h"

static tl_large *large;

static void start(size_t cap)
{
    large = tl_malloc(sizeof(*large));
    cr_assert_not_null(large);
    tl_large_init(large, cap);
}

static void release(void)
{
    tl_large_fini(large);
    tl_free(large);
}

TestSuite(large, .fini = release);

/* Allocate and mark live, as the pool does. */
static tl_storage *take(size_t span)
{
    tl_storage *b = tl_large_alloc(large, span);

    if (b) {
        cr_assert_geq(b->span, span);
        atomic_store(&b->refs, 1);
    }
    return b;
}

static void give(tl_storage *b)
{
    atomic_store(&b->refs, 0);
    tl_large_free(large, b);
}

/* Blocks fill each region without gaps, know their neighbours, and no two
 * free ones touch.  Returns the bytes of live blocks. */
static size_t check_regions(void)
{
    size_t live = 0, free_bytes = 0;

    for (int i = 0; i < large->nregions; i++) {
        const tl_region *r = &large->regions[i];
        const tl_storage *before = NULL;

        cr_assert_eq((uintptr_t)r->base % (2 << 20), 0);
        for (char *at = r->base; at < r->top;) {
            const tl_storage *b = (const tl_storage *)(void *)at;
            bool is_live = atomic_load(&b->refs) != 0;

            cr_assert_eq(b->before, before);
            cr_assert_eq(b->span % 64, 0);
            cr_assert_gt(b->span, 0);
            if (before && !is_live) {
                cr_assert_neq(atomic_load(&before->refs), 0, "two free");
            }
            live += is_live ? b->span : 0;
            free_bytes += is_live ? 0 : b->span;
            before = b;
            at += b->span;
            cr_assert_leq(at, r->top);
        }
        cr_assert_eq(r->last, before);
    }
    cr_assert_eq(large->free_bytes, free_bytes);
    return live;
}

Test(large, invariants_hold_over_random_changes)
{
    tl_storage *slot[64] = {0};
    uint32_t r = 7; /* the seed */

    start((size_t)1 << 30);
    for (int step = 0; step < 20000; step++) {
        size_t i, live = 0;

        r = r * 1664525 + 1013904223;
        i = (r >> 10) % 64;
        if (slot[i]) {
            give(slot[i]);
            slot[i] = NULL;
        } else {
            slot[i] = take(4200 + (size_t)(r >> 8) % (1u << (13 + r % 8)));
            cr_assert_not_null(slot[i]);
        }
        for (i = 0; i < 64; i++) {
            live += slot[i] ? slot[i]->span : 0;
        }
        cr_assert_eq(check_regions(), live);
    }
}

Test(large, rounding_wastes_at_most_a_sixtyfourth)
{
    start((size_t)1 << 33);
    for (size_t span = 4160; span < (size_t)1 << 31; span += span / 7) {
        tl_storage *b = take(span);

        cr_assert_leq(b->span, span + span / 64 + 64, "%zu", span);
        give(b);
    }
}

Test(large, cap_bounds_what_is_mapped)
{
    tl_storage *a, *b;

    start((size_t)8 << 20);
    a = take((size_t)5 << 20);
    cr_assert_not_null(a);
    cr_expect_null(take((size_t)5 << 20));
    b = take((size_t)2 << 20);
    cr_expect_not_null(b);
    cr_expect_null(take((size_t)9 << 20));
    give(a);
    cr_expect_eq(take((size_t)5 << 20), a);
    cr_expect_leq(large->mapped, (size_t)8 << 20);
}

Test(large, last_free_block_grows_into_fresh_memory)
{
    tl_storage *a;

    start((size_t)1 << 30);
    a = take((size_t)1 << 20);
    give(a);
    cr_expect_eq(take((size_t)64 << 20), a);
    check_regions();
}

Test(large, trimmed_blocks_do_not_count_as_cached)
{
    tl_storage *a, *wall;

    start((size_t)1 << 30);
    a = take((size_t)1 << 20);
    wall = take(8192);
    give(a);
    cr_expect_geq(large->free_bytes, 1 << 20);
    cr_expect_geq(tl_large_trim(large), (1 << 20) - 8192);
    cr_expect_eq(large->free_bytes, 0);
    cr_expect_eq(take((size_t)1 << 20), a);
    cr_expect_eq(large->free_bytes, 0);
    give(wall);
}

Test(large, scarce_address_space_gives_several_regions)
{
#ifndef __SANITIZE_ADDRESS__ /* its shadow needs address space */
    tl_storage *a[8];
    struct rlimit limit;
    int n = 0;

    start((size_t)1 << 40);
    getrlimit(RLIMIT_AS, &limit);
    limit.rlim_cur = (rlim_t)1 << 30;
    cr_assert_eq(setrlimit(RLIMIT_AS, &limit), 0);
    while (n < 8 && (a[n] = take((size_t)150 << 20))) {
        n++;
    }
    cr_expect_geq(n, 3);
    cr_expect_lt(n, 7);
    cr_expect_gt(large->nregions, 0);
    check_regions();
    while (n > 0) {
        give(a[--n]);
        check_regions();
    }
#else
    start(1 << 21);
#endif
}

Test(large, walk_meets_every_live_block)
{
    const tl_storage *b = NULL;
    tl_storage *s[10];
    int n = 0;

    start((size_t)1 << 30);
    cr_expect_null(tl_large_next_live(large, NULL));
    for (int i = 0; i < 10; i++) {
        s[i] = take(10000);
    }
    give(s[0]);
    give(s[4]);
    give(s[9]);
    while ((b = tl_large_next_live(large, b))) {
        n++;
        cr_expect_neq(atomic_load(&b->refs), 0);
    }
    cr_expect_eq(n, 7);
}
