/* test_pool.c - storages and the pool, from one thread and from several. */
#include <criterion/criterion.h>

#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <sys/resource.h>

#include "runtime/base/asan.h"
#include "runtime/base/mem.h"
#include "runtime/mem/pool.h"

static tl_diag diag;
static tl_pool *pool;

static void setup(void)
{
    tl_diag_init(&diag, NULL);
    cr_assert_eq(tl_pool_new(&pool, 0, &diag), TL_OK);
}

/* Every test ends without storages. */
static void release(void)
{
    cr_assert_eq(tl_pool_free(pool), 0);
    tl_diag_fini(&diag);
}

TestSuite(pool, .init = setup, .fini = release);

static tl_storage *new_storage(size_t bytes)
{
    tl_storage *s = NULL;

    cr_assert_eq(tl_storage_new(&s, pool, bytes, &diag), TL_OK);
    return s;
}

static tl_pool_stats stats(void)
{
    tl_pool_stats st;

    tl_pool_get_stats(pool, &st);
    return st;
}

/* A storage of which every byte holds its mark. */
static tl_storage *new_filled(size_t bytes, int mark)
{
    tl_storage *s = new_storage(bytes);

    memset(s->data, mark, bytes);
    return s;
}

static bool holds(const tl_storage *s, int mark)
{
    const unsigned char *p = s->data;

    for (size_t i = 0; i < s->bytes; i++) {
        if (p[i] != (unsigned char)mark) {
            return false;
        }
    }
    return true;
}

Test(pool, nothing_is_mapped_before_the_first_storage)
{
    cr_assert_eq(stats().mapped, 0);
    tl_storage_unref(new_storage(1));
    cr_assert_gt(stats().mapped, 0);
}

Test(pool, data_of_every_size_is_aligned_and_writable)
{
    for (size_t bytes = 0; bytes < 9000; bytes += bytes < 200 ? 1 : 61) {
        tl_storage *s = new_filled(bytes, 7);

        cr_assert_eq((uintptr_t)tl_storage_data(s) % 64, 0, "%zu", bytes);
        cr_assert_eq(tl_storage_bytes(s), bytes);
        cr_assert(tl_storage_unshared(s));
        tl_storage_unref(s);
    }
}

Test(pool, references_are_counted)
{
    tl_storage *s = new_storage(100);

    cr_expect_eq(tl_storage_ref(s), s);
    cr_expect_not(tl_storage_unshared(s));
    tl_storage_unref(s);
    cr_expect(tl_storage_unshared(s));
    cr_expect_eq(stats().storages, 1);
    tl_storage_unref(s);
    cr_expect_eq(stats().storages, 0);
    tl_storage_unref(NULL);
}

Test(pool, same_size_comes_back)
{
    static const size_t sizes[] = {0,    1,     64,      65,       4096,
                                   4097, 10000, 1 << 20, 70 << 20, 123456789};

    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
        tl_storage *other, *s = new_storage(sizes[i]);

        other = new_storage(sizes[i]);
        tl_storage_unref(s);
        cr_expect_eq(new_storage(sizes[i]), s, "%zu bytes", sizes[i]);
        tl_storage_unref(s);
        tl_storage_unref(other);
    }
}

Test(pool, accounting_is_in_bytes_asked_for)
{
    tl_storage *a = new_storage(100), *b = new_storage(1000000);

    cr_expect_eq(stats().live, 1000100);
    cr_expect_eq(stats().storages, 2);
    tl_storage_unref(b);
    cr_expect_eq(stats().live, 100);
    cr_expect_eq(stats().peak, 1000100);
    cr_expect_geq(stats().cached, 1000000);
    tl_pool_reset_peak(pool);
    cr_expect_eq(stats().peak, 100);
    tl_storage_unref(a);
    cr_expect_eq(stats().live, 0);
}

Test(pool, second_use_of_large_memory_faults_no_pages)
{
    struct rusage before, after;
    size_t bytes = 32 << 20;

    tl_storage_unref(new_filled(bytes, 1));
    getrusage(RUSAGE_SELF, &before);
    for (int i = 0; i < 5; i++) {
        tl_storage_unref(new_filled(bytes, i));
    }
    getrusage(RUSAGE_SELF, &after);
#ifndef __SANITIZE_ADDRESS__ /* its shadow faults */
    cr_assert_lt(after.ru_minflt - before.ru_minflt, 10);
#endif
}

Test(pool, freed_neighbours_become_one_block)
{
    tl_storage *s[8], *big;

    for (int i = 0; i < 8; i++) {
        s[i] = new_storage(1 << 20);
    }
    for (int i = 0; i < 8; i += 2) { /* holes, then the walls between */
        tl_storage_unref(s[i]);
    }
    for (int i = 1; i < 8; i += 2) {
        tl_storage_unref(s[i]);
    }
    big = new_storage(8 << 20);
    cr_expect_eq(big, s[0]);
    tl_storage_unref(big);
}

Test(pool, trim_returns_pages_and_memory_stays_usable)
{
    tl_storage *keep = new_filled(1 << 20, 1);
    tl_storage *hole = new_filled(8 << 20, 2);
    tl_storage *wall = new_filled(1 << 20, 3);

    tl_storage_unref(hole);
    cr_expect_geq(tl_pool_trim(pool), (8 << 20) - 8192);
    cr_expect_eq(stats().cached, 0);
    cr_expect_eq(tl_pool_trim(pool), 0);
    hole = new_storage(8 << 20);
    cr_expect_eq(((char *)hole->data)[4 << 20], 0, "a fresh page");
    memset(hole->data, 4, hole->bytes);
    cr_expect(holds(keep, 1));
    cr_expect(holds(wall, 3));
    tl_storage_unref(keep);
    tl_storage_unref(wall);
    cr_expect(holds(hole, 4));
    tl_storage_unref(hole);
}

#ifdef __SANITIZE_ADDRESS__
Test(pool, sanitizer_sees_freed_blocks_and_their_ends)
{
    static const size_t sizes[] = {1, 64, 100, 4000, 5000, 1 << 20};

    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
        tl_storage *s = new_storage(sizes[i]);
        char *p = s->data;

        cr_expect_not(__asan_address_is_poisoned(p + sizes[i] - 1));
        cr_expect(__asan_address_is_poisoned(p + sizes[i]));
        tl_storage_unref(s);
        cr_expect(__asan_address_is_poisoned(p));
        cr_expect(__asan_address_is_poisoned(p + sizes[i] - 1));
    }
}
#endif

/* ---- limits and failures ------------------------------------------------- */

Test(pool, limit_is_kept_and_named)
{
    tl_storage *a = NULL, *b = NULL;
    tl_pool *small;

    cr_assert_eq(tl_pool_new(&small, 10 << 20, &diag), TL_OK);
    cr_assert_eq(tl_storage_new(&a, small, 6 << 20, &diag), TL_OK);
    cr_assert_eq(tl_storage_new(&b, small, (4 << 20) + 1, &diag),
                 TL_ERR_MEMORY);
    cr_expect_null(b);
    cr_expect_eq(diag.last->code, TL_E0607);
    cr_expect_str_eq(diag.last->message,
                     "out of memory: 4.0 MiB wanted, 6.0 MiB live, the "
                     "memory limit is 10.0 MiB");
    cr_assert_eq(diag.last->nnotes, 1);
    cr_expect_str_eq(diag.last->notes[0], "live: a tensor of 6.0 MiB");
    cr_assert_eq(tl_storage_new(&b, small, 4 << 20, &diag), TL_OK);
    tl_storage_unref(a);
    tl_storage_unref(b);
    cr_expect_eq(tl_pool_free(small), 0);
}

Test(pool, impossible_sizes_fail_politely)
{
    static const size_t sizes[] = {SIZE_MAX, SIZE_MAX - 64, PTRDIFF_MAX,
                                   (size_t)1 << 47, (size_t)1 << 62};

    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
        tl_storage *s = NULL;

        cr_expect_eq(tl_storage_new(&s, pool, sizes[i], &diag),
                     TL_ERR_MEMORY);
        cr_expect_null(s);
    }
    cr_expect_eq(stats().live, 0);
    tl_storage_unref(new_storage(100));
}

Test(pool, report_names_the_three_largest_with_their_places)
{
    static const size_t sizes[] = {1 << 20, 5 << 20, 2 << 20, 4 << 20,
                                   3 << 20};
    tl_storage *s[5], *none = NULL;

    for (int i = 0; i < 5; i++) {
        s[i] = new_storage(sizes[i]);
    }
    tl_storage_set_origin(s[3], (tl_span){7, 33, 40});
    cr_assert_eq(tl_storage_new(&none, pool, SIZE_MAX / 2, &diag),
                 TL_ERR_MEMORY);
    cr_assert_eq(diag.last->nnotes, 2);
    cr_expect_str_eq(diag.last->notes[0], "live: a tensor of 5.0 MiB");
    cr_expect_str_eq(diag.last->notes[1], "live: a tensor of 3.0 MiB");
    cr_assert_eq(diag.last->nlabels, 1);
    cr_expect_eq(diag.last->labels[0].span.file, 7);
    cr_expect_eq(diag.last->labels[0].span.start, 33);
    cr_expect_str_eq(diag.last->labels[0].text, "4.0 MiB live, made here");
    for (int i = 0; i < 5; i++) {
        tl_storage_unref(s[i]);
    }
}

Test(pool, every_allocation_can_be_made_to_fail)
{
    static const size_t sizes[] = {8, 4000, 1 << 20};

    for (size_t i = 0; i < 3; i++) {
        tl_storage *s = NULL;

        tl_mem_fail_at(1, false);
        cr_expect_eq(tl_storage_new(&s, pool, sizes[i], &diag),
                     TL_ERR_MEMORY);
        cr_expect_null(s);
        cr_expect_eq(tl_mem_failed_size(), sizes[i]);
        tl_storage_unref(new_storage(sizes[i]));
    }
    cr_expect_eq(stats().storages, 0);
}

Test(pool, new_pool_reports_missing_memory)
{
    tl_pool *none = NULL;

    tl_mem_fail_at(1, false);
    cr_expect_eq(tl_pool_new(&none, 0, &diag), TL_ERR_MEMORY);
    cr_expect_null(none);
    cr_expect_eq(tl_pool_free(NULL), 0);
}

Test(pool, free_counts_what_leaked)
{
    tl_pool *leaky;
    tl_storage *s;

    cr_assert_eq(tl_pool_new(&leaky, 0, &diag), TL_OK);
    cr_assert_eq(tl_storage_new(&s, leaky, 10, &diag), TL_OK);
    cr_assert_eq(tl_storage_new(&s, leaky, 1 << 20, &diag), TL_OK);
    cr_expect_eq(tl_pool_free(leaky), 2);
}

static int released;

static void note_release(tl_storage *s)
{
    released += *(int *)s->owner;
}

Test(pool, wrapped_memory_goes_back_to_its_owner_once)
{
    static int one = 1, bytes[4];
    tl_storage *s;

    cr_assert_eq(tl_storage_wrap(&s, pool, bytes, sizeof(bytes), note_release,
                                 &one, &diag),
                 TL_OK);
    cr_expect_eq(tl_storage_data(s), (void *)bytes);
    tl_storage_set_origin(s, (tl_span){1, 2, 3});
    cr_expect_eq(stats().storages, 1);
    cr_expect_eq(stats().live, 0);
    tl_storage_unref(tl_storage_ref(s));
    cr_expect_eq(released, 0);
    tl_storage_unref(s);
    cr_expect_eq(released, 1);
    cr_expect_eq(stats().storages, 0);
}

/* ---- against a model ----------------------------------------------------- */

enum {
    SLOTS = 200
};

static uint32_t next_random(uint32_t *state)
{
    *state = *state * 1664525 + 1013904223;
    return *state >> 8;
}

/* Sizes of all kinds, small ones most often. */
static size_t random_size(uint32_t *state)
{
    uint32_t r = next_random(state);

    return next_random(state) % ((size_t)16 << (r % 16));
}

Test(pool, random_storages_keep_their_bytes)
{
    tl_storage *slot[SLOTS] = {0};
    size_t live = 0;
    uint32_t state = 99; /* the seed */

    for (int step = 0; step < 30000; step++) {
        size_t i = next_random(&state) % SLOTS;

        if (slot[i]) {
            cr_assert(holds(slot[i], (int)i), "step %d", step);
            live -= slot[i]->bytes;
            tl_storage_unref(slot[i]);
            slot[i] = NULL;
        } else {
            slot[i] = new_filled(random_size(&state), (int)i);
            live += slot[i]->bytes;
        }
        if (step % 5000 == 4999) {
            tl_pool_trim(pool);
        }
        cr_assert_eq(stats().live, live);
    }
    for (size_t i = 0; i < SLOTS; i++) {
        tl_storage_unref(slot[i]);
    }
    cr_assert_eq(stats().live, 0);
}

Test(pool, many_small_storages_at_once)
{
    static tl_storage *s[20000];

    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 20000; i++) {
            s[i] = new_filled((size_t)i % 300, i);
        }
        for (int i = 0; i < 20000; i++) {
            cr_assert(holds(s[i], i));
            tl_storage_unref(s[i]);
        }
    }
}

/* ---- threads ------------------------------------------------------------- */

/* Allocate and free, half of it storages that the main thread made. */
typedef struct visitor {
    tl_storage *gifts[SLOTS];
    tl_storage *made[SLOTS];
    uint32_t seed;
    bool failed;
} visitor;

static void *visit(void *arg)
{
    visitor *v = arg;
    tl_diag d;

    tl_diag_init(&d, NULL);
    for (int step = 0; step < 20000; step++) {
        size_t i = next_random(&v->seed) % SLOTS;

        if (v->gifts[i]) {
            tl_storage_unref(v->gifts[i]);
            v->gifts[i] = NULL;
        }
        if (v->made[i]) {
            v->failed |= *(unsigned char *)v->made[i]->data != i % 256;
            tl_storage_unref(v->made[i]);
        }
        v->failed |= tl_storage_new(&v->made[i], pool,
                                    1 + random_size(&v->seed), &d) != TL_OK;
        *(unsigned char *)v->made[i]->data = (unsigned char)i;
    }
    tl_diag_fini(&d);
    return NULL;
}

Test(pool, threads_allocate_and_free_together)
{
    static visitor v[3];
    pthread_t thread[3];

    for (uint32_t t = 0; t < 3; t++) {
        v[t].seed = t + 1;
        for (int i = 0; i < SLOTS; i++) {
            v[t].gifts[i] = new_filled((size_t)i * 40, i);
        }
    }
    for (int t = 0; t < 3; t++) {
        cr_assert_eq(pthread_create(&thread[t], NULL, visit, &v[t]), 0);
    }
    for (int i = 0; i < 50000; i++) {
        tl_storage_unref(new_filled((size_t)i % 6000, 1));
    }
    for (int t = 0; t < 3; t++) {
        pthread_join(thread[t], NULL);
        cr_assert_not(v[t].failed);
        for (int i = 0; i < SLOTS; i++) {
            tl_storage_unref(v[t].made[i]);
            tl_storage_unref(v[t].gifts[i]);
        }
    }
    cr_assert_eq(stats().live, 0);
    cr_assert_eq(stats().storages, 0);
}

static void *make_batch(void *arg)
{
    tl_storage **s = arg;
    tl_diag d;

    tl_diag_init(&d, NULL);
    for (int i = 0; i < 1000; i++) {
        if (tl_storage_new(&s[i], pool, 64, &d) != TL_OK) {
            s[i] = NULL;
        }
    }
    tl_diag_fini(&d);
    return NULL;
}

Test(pool, blocks_freed_by_the_owner_reach_other_threads_again)
{
    static tl_storage *s[1000];
    size_t mapped_top = 0;
    tl_storage *probe;

    for (int round = 0; round < 30; round++) {
        pthread_t thread;

        cr_assert_eq(pthread_create(&thread, NULL, make_batch, s), 0);
        pthread_join(thread, NULL);
        for (int i = 0; i < 1000; i++) {
            cr_assert_not_null(s[i]);
            tl_storage_unref(s[i]);
        }
        /* large blocks come from the top: it must not run away */
        probe = new_storage(1 << 20);
        if (round == 2) {
            mapped_top = (size_t)(uintptr_t)probe;
        } else if (round > 2) {
            cr_assert_eq((size_t)(uintptr_t)probe, mapped_top);
        }
        tl_storage_unref(probe);
    }
}

static void *adopt_and_use(void *arg)
{
    tl_pool_adopt(pool);
    for (int i = 0; i < 1000; i++) {
        tl_storage_unref(new_filled((size_t)i, 3));
    }
    return arg;
}

Test(pool, another_thread_can_become_the_owner)
{
    tl_storage *s = new_filled(100, 5);
    pthread_t thread;

    cr_assert_eq(pthread_create(&thread, NULL, adopt_and_use, NULL), 0);
    pthread_join(thread, NULL);
    tl_pool_adopt(pool);
    cr_assert(holds(s, 5));
    tl_storage_unref(s);
    cr_assert_eq(stats().live, 0);
}
