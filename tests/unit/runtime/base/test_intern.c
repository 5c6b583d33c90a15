/* test_intern.c - one address for each name. */
#include <criterion/criterion.h>

#include <stdio.h>
#include <string.h>

#include "runtime/base/intern.h"
#include "runtime/base/mem.h"

Test(intern, equal_bytes_have_one_address)
{
    tl_intern t;
    const tl_sym *a;

    tl_intern_init(&t);
    a = tl_intern_get(&t, "weight", 6);
    cr_assert_eq(a, tl_intern_get(&t, "weights", 6));
    cr_assert_neq(a, tl_intern_get(&t, "weights", 7));
    cr_assert_str_eq(a->text, "weight");
    cr_assert_eq(a->len, 6);
    tl_intern_fini(&t);
}

Test(intern, zero_bytes_and_the_empty_name_are_names)
{
    tl_intern t;

    tl_intern_init(&t);
    cr_assert_eq(tl_intern_get(&t, "", 0), tl_intern_get(&t, "x", 0));
    cr_assert_neq(tl_intern_get(&t, "a\0b", 3), tl_intern_get(&t, "a\0c", 3));
    tl_intern_fini(&t);
}

Test(intern, addresses_survive_growth)
{
    const tl_sym *syms[5000];
    char name[16];
    tl_intern t;

    tl_intern_init(&t);
    for (int i = 0; i < 5000; i++) {
        int n = snprintf(name, sizeof(name), "n%d", i);

        syms[i] = tl_intern_get(&t, name, (size_t)n);
        cr_assert_not_null(syms[i]);
    }
    cr_assert_eq(t.count, 5000);
    for (int i = 0; i < 5000; i++) {
        int n = snprintf(name, sizeof(name), "n%d", i);

        cr_assert_eq(tl_intern_find(&t, name, (size_t)n), syms[i]);
        cr_assert_str_eq(syms[i]->text, name);
    }
    tl_intern_fini(&t);
}

Test(intern, find_does_not_add)
{
    tl_intern t;

    tl_intern_init(&t);
    cr_assert_null(tl_intern_find(&t, "a", 1));
    cr_assert_not_null(tl_intern_get(&t, "b", 1));
    cr_assert_null(tl_intern_find(&t, "a", 1));
    cr_assert_eq(t.count, 1);
    tl_intern_fini(&t);
}

Test(intern, every_failing_allocation_is_survived)
{
    int64_t before = tl_mem_live_blocks();
    char name[16];

    for (uint64_t n = 1; n < 12; n++) {
        tl_intern t;
        int got = 0;

        tl_intern_init(&t);
        tl_mem_fail_at(n, true);
        for (int i = 0; i < 500; i++) {
            int len = snprintf(name, sizeof(name), "n%d", i);

            got += tl_intern_get(&t, name, (size_t)len) != NULL;
        }
        tl_mem_fail_at(0, false);
        cr_assert_eq(t.count, (size_t)got);
        cr_assert_not_null(tl_intern_get(&t, "late", 4));
        tl_intern_fini(&t);
        cr_assert_eq(tl_mem_live_blocks(), before);
    }
}
