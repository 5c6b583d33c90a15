/* test_arena.c - bump allocation. */
#include <criterion/criterion.h>

#include <stdint.h>
#include <string.h>

#include "runtime/base/arena.h"
#include "runtime/base/mem.h"

static bool all_zero(const char *p, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (p[i] != 0) {
            return false;
        }
    }
    return true;
}

Test(arena, empty_arena_allocates_nothing)
{
    int64_t before = tl_mem_live_blocks();
    tl_arena a;

    tl_arena_init(&a);
    cr_assert_eq(tl_mem_live_blocks(), before);
    tl_arena_fini(&a);
}

Test(arena, blocks_are_aligned_zeroed_and_apart)
{
    tl_arena a;
    char *last = NULL;

    tl_arena_init(&a);
    for (size_t size = 0; size < 3000; size += 7) {
        char *p = tl_arena_alloc(&a, size);

        cr_assert_not_null(p);
        cr_assert_eq((uintptr_t)p % 16, 0);
        cr_assert(all_zero(p, size));
        cr_assert_neq(p, last);
        memset(p, 0xff, size);
        last = p;
    }
    tl_arena_fini(&a);
}

Test(arena, large_request_leaves_the_current_chunk_in_use)
{
    tl_arena a;
    char *p, *q, *big;

    tl_arena_init(&a);
    p = tl_arena_alloc(&a, 16);
    big = tl_arena_alloc(&a, 5 << 20);
    q = tl_arena_alloc(&a, 16);
    cr_assert_eq(q, p + 16);
    cr_assert(all_zero(big, 5 << 20));
    tl_arena_fini(&a);
}

Test(arena, large_request_first)
{
    tl_arena a;
    char *big, *p;

    tl_arena_init(&a);
    big = tl_arena_alloc(&a, 1 << 20);
    memset(big, 1, 1 << 20);
    p = tl_arena_alloc(&a, 100);
    cr_assert(all_zero(p, 100));
    cr_assert_eq(big[(1 << 20) - 1], 1);
    tl_arena_fini(&a);
}

Test(arena, fini_frees_all_and_allows_reuse)
{
    int64_t before = tl_mem_live_blocks();
    tl_arena a;

    tl_arena_init(&a);
    for (int i = 0; i < 1000; i++) {
        cr_assert_not_null(tl_arena_alloc(&a, 1000));
    }
    cr_assert_eq(a.bytes, 1000 * 1008);
    tl_arena_fini(&a);
    cr_assert_eq(tl_mem_live_blocks(), before);
    cr_assert_str_eq(tl_arena_strndup(&a, "again", 5), "again");
    tl_arena_fini(&a);
    cr_assert_eq(tl_mem_live_blocks(), before);
}

Test(arena, overflowing_sizes_are_refused)
{
    tl_arena a;

    tl_arena_init(&a);
    cr_assert_null(tl_arena_alloc(&a, SIZE_MAX));
    cr_assert_null(tl_arena_alloc(&a, PTRDIFF_MAX));
    cr_assert_null(tl_arena_array(&a, SIZE_MAX / 8, 16));
    cr_assert_null(tl_arena_strndup(&a, "x", SIZE_MAX));
    tl_arena_fini(&a);
}

Test(arena, printf_formats_any_length)
{
    tl_arena a;
    char *s;

    tl_arena_init(&a);
    cr_assert_str_eq(tl_arena_printf(&a, "%d-%s", 42, "x"), "42-x");
    s = tl_arena_printf(&a, "%5000d", 7);
    cr_assert_eq(strlen(s), 5000);
    cr_assert_eq(s[4999], '7');
    tl_arena_fini(&a);
}

Test(arena, out_of_memory_is_null_and_recovers)
{
    tl_arena a;

    tl_arena_init(&a);
    tl_mem_fail_at(1, true);
    cr_assert_null(tl_arena_alloc(&a, 8));
    cr_assert_null(tl_arena_alloc(&a, 1 << 20));
    cr_assert_null(tl_arena_printf(&a, "%s", "text"));
    tl_mem_fail_at(0, false);
    cr_assert_not_null(tl_arena_alloc(&a, 8));
    tl_arena_fini(&a);
}
