/* test_mem.c - allocation, accounting, and failing on purpose. */
#include <criterion/criterion.h>

#include <stdint.h>
#include <string.h>

#include "runtime/base/mem.h"

Test(mem, live_blocks_follow_allocations)
{
    int64_t before = tl_mem_live_blocks();
    void *a = tl_malloc(10), *b = tl_calloc(3, 5), *c = tl_strndup("abc", 2);

    cr_assert_eq(tl_mem_live_blocks(), before + 3);
    a = tl_realloc(a, 1000);
    cr_assert_eq(tl_mem_live_blocks(), before + 3);
    tl_free(a);
    tl_free(b);
    tl_free(c);
    tl_free(NULL);
    cr_assert_eq(tl_mem_live_blocks(), before);
}

Test(mem, size_zero_gives_unique_pointers)
{
    void *a = tl_malloc(0), *b = tl_malloc(0);

    cr_assert_not_null(a);
    cr_assert_not_null(b);
    cr_assert_neq(a, b);
    tl_free(a);
    tl_free(b);
}

Test(mem, calloc_zeroes_and_refuses_overflow)
{
    char *p = tl_calloc(7, 9);

    for (int i = 0; i < 63; i++) {
        cr_assert_eq(p[i], 0);
    }
    tl_free(p);
    cr_assert_null(tl_calloc(SIZE_MAX / 2, 4));
    cr_assert_null(tl_calloc((size_t)PTRDIFF_MAX, 3));
}

Test(mem, strndup_terminates)
{
    char *s = tl_strndup("hello", 3);

    cr_assert_str_eq(s, "hel");
    tl_free(s);
    s = tl_strndup(NULL, 0);
    cr_assert_str_eq(s, "");
    tl_free(s);
}

static bool fail_odd_sizes(uint64_t attempt, size_t bytes)
{
    (void)attempt;
    return bytes % 2 != 0;
}

Test(mem, decider_is_asked_at_each_attempt)
{
    void *even, *odd;

    tl_mem_fail_by(fail_odd_sizes);
    even = tl_malloc(8);
    odd = tl_malloc(7);
    tl_mem_fail_by(NULL);
    cr_assert_not_null(even);
    cr_assert_null(odd);
    cr_assert_eq(tl_mem_failed_size(), 7);
    odd = tl_malloc(7);
    cr_assert_not_null(odd);
    tl_free(even);
    tl_free(odd);
}

Test(mem, nth_attempt_fails_once)
{
    void *p[4];

    tl_mem_fail_at(3, false);
    for (int i = 0; i < 4; i++) {
        p[i] = tl_malloc(100 + (size_t)i);
    }
    cr_expect_not_null(p[0]);
    cr_expect_not_null(p[1]);
    cr_expect_null(p[2]);
    cr_expect_not_null(p[3]);
    cr_expect_eq(tl_mem_failed_size(), 102);
    for (int i = 0; i < 4; i++) {
        tl_free(p[i]);
    }
}

Test(mem, sticky_failure_stays_until_switched_off)
{
    void *p;

    tl_mem_fail_at(1, true);
    cr_expect_null(tl_malloc(1));
    cr_expect_null(tl_calloc(1, 1));
    cr_expect_null(tl_strndup("a", 1));
    cr_expect(tl_mem_must_fail(5));
    tl_mem_fail_at(0, false);
    p = tl_malloc(1);
    cr_expect_not_null(p);
    tl_free(p);
}

Test(mem, failed_realloc_keeps_the_block)
{
    char *p = tl_strndup("keep", 4);

    tl_mem_fail_at(1, false);
    cr_expect_null(tl_realloc(p, 1 << 20));
    cr_expect_str_eq(p, "keep");
    tl_free(p);
}

Test(mem, attempts_count_failures_too)
{
    uint64_t before = tl_mem_attempts();
    void *p = tl_malloc(1);

    tl_mem_fail_at(1, false);
    cr_expect_null(tl_malloc(1));
    cr_expect_eq(tl_mem_attempts(), before + 2);
    tl_free(p);
}

Test(mem, ceiling_refuses_and_recovers)
{
    size_t before = tl_mem_live_bytes();
    void *p, *q;

    tl_mem_set_limit(before + (4 << 20));
    p = tl_malloc(3 << 20);
    cr_assert_not_null(p);
    cr_expect_null(tl_malloc(2 << 20));
    cr_expect_eq(tl_mem_failed_size(), 2 << 20);
    cr_expect_null(tl_calloc(2, 1 << 20));
    cr_expect_null(tl_realloc(p, 5 << 20));
    cr_expect_not(tl_mem_take(2 << 20));
    tl_free(p);
    q = tl_malloc(2 << 20);
    cr_expect_not_null(q);
    tl_free(q);
    cr_expect_lt(tl_mem_live_bytes(), before + (1 << 20));
}

Test(mem, ceiling_counts_small_blocks)
{
    static void *p[100000];
    size_t n = 0;

    tl_mem_set_limit(tl_mem_live_bytes() + (1 << 20));
    while (n < 100000 && (p[n] = tl_malloc(100)) != NULL) {
        n++;
    }
    cr_expect_gt(n, 7000);
    cr_expect_lt(n, 11000);
    while (n > 0) {
        tl_free(p[--n]);
    }
    cr_expect_not_null(p[0] = tl_malloc(1 << 19));
    tl_free(p[0]);
}

Test(mem, live_bytes_follow_allocations)
{
    size_t before = tl_mem_live_bytes();
    void *p = tl_malloc(1000);

    cr_expect_geq(tl_mem_live_bytes(), before + 1000);
    p = tl_realloc(p, 5000);
    cr_expect_geq(tl_mem_live_bytes(), before + 5000);
    p = tl_realloc(p, 10);
    cr_expect_lt(tl_mem_live_bytes(), before + 5000);
    tl_free(p);
    cr_expect_eq(tl_mem_live_bytes(), before);
}

Test(mem, what_the_machine_has_not_is_refused)
{
    void *p;

    tl_mem_set_limit(SIZE_MAX / 4);
    p = tl_malloc((size_t)1 << 46);
    cr_expect_null(p);
    tl_free(p);
}
