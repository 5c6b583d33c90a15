/* test_dict.c - ordered dictionaries. */
#include "interp/dict.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "runtime/base/mem.h"

static tl_diag diag;
static tl_value d;

static void setup(void)
{
    tl_diag_init(&diag, NULL);
    cr_assert_eq(tl_dict_new(&d, &diag), TL_OK);
}

static void teardown(void)
{
    tl_unref(d);
    cr_assert_eq(tl_obj_live(), 0);
    tl_diag_fini(&diag);
}

TestSuite(test_dict, .init = setup, .fini = teardown);

static void set(tl_value key, int64_t value)
{
    cr_assert_eq(tl_dict_set_take(d.dict, key, tl_int_value(value), &diag),
                 TL_OK);
}

/* The int under `key`, or -1. */
static int64_t get(tl_value key)
{
    tl_value *v;

    cr_assert_eq(tl_dict_get(d.dict, key, &v, &diag), TL_OK);
    return v == NULL ? -1 : v->i;
}

static tl_value removed(tl_value key)
{
    tl_value v;

    cr_assert_eq(tl_dict_remove(d.dict, key, &v, &diag), TL_OK);
    return v;
}

Test(test_dict, thousands_of_keys_are_found)
{
    for (int i = 0; i < 5000; i++) {
        set(tl_int_value((int64_t)i << 20), i);
    }
    for (int i = 0; i < 5000; i++) {
        cr_assert_eq(get(tl_int_value((int64_t)i << 20)), i);
    }
    cr_expect_eq(get(tl_int_value(1)), -1);
    cr_expect_eq(d.dict->live, 5000);
}

Test(test_dict, one_key_in_three_types)
{
    set(tl_int_value(1), 10);
    set(tl_float_value(1.0), 20);
    set(tl_bool_value(true), 30);
    cr_expect_eq(d.dict->live, 1);
    cr_expect_eq(get(tl_int_value(1)), 30);
    cr_expect_eq(d.dict->entries[0].key.tag, TL_V_INT, "first key stays");
}

Test(test_dict, order_is_that_of_insertion)
{
    size_t i = 0;

    set(tl_int_value(3), 0);
    set(tl_int_value(1), 0);
    set(tl_int_value(2), 0);
    tl_unref(removed(tl_int_value(1)));
    set(tl_int_value(3), 5); /* keeps its place */
    set(tl_int_value(1), 0); /* comes last now */
    cr_expect_eq(tl_dict_next(d.dict, &i)->key.i, 3);
    cr_expect_eq(tl_dict_next(d.dict, &i)->key.i, 2);
    cr_expect_eq(tl_dict_next(d.dict, &i)->key.i, 1);
    cr_expect_null(tl_dict_next(d.dict, &i));
}

Test(test_dict, removing_tells_whether_it_was_there)
{
    set(tl_int_value(3), 7);
    cr_expect_eq(removed(tl_int_value(4)).tag, TL_V_EMPTY);
    cr_expect_eq(removed(tl_int_value(3)).i, 7);
    cr_expect_eq(removed(tl_int_value(3)).tag, TL_V_EMPTY);
    cr_expect_eq(d.dict->live, 0);
}

Test(test_dict, keys_behind_removed_ones_stay_reachable)
{
    for (int round = 0; round < 50; round++) {
        for (int i = 0; i < 100; i++) {
            set(tl_int_value(i), i + round);
        }
        for (int i = 0; i < 100; i += 2) {
            tl_unref(removed(tl_int_value(i)));
        }
        for (int i = 0; i < 100; i++) {
            cr_assert_eq(get(tl_int_value(i)), i % 2 == 0 ? -1 : i + round);
        }
    }
    cr_expect_leq(d.dict->cap, 256, "removed entries are reused");
}

Test(test_dict, string_keys_by_bytes)
{
    char key[16];

    for (int i = 0; i < 100; i++) {
        int n = snprintf(key, sizeof(key), "k%d", i);

        cr_assert_eq(tl_dict_set_str_take(d.dict, key, (size_t)n,
                                          tl_int_value(i), &diag),
                     TL_OK);
    }
    cr_expect_eq(tl_dict_get_str(d.dict, "k57", 3)->i, 57);
    cr_expect_null(tl_dict_get_str(d.dict, "k570", 4));
}

Test(test_dict, lookup_in_an_empty_dict)
{
    cr_expect_null(tl_dict_get_str(d.dict, "a", 1));
    cr_expect_eq(get(tl_int_value(1)), -1);
}

Test(test_dict, unhashable_key_is_refused_and_released)
{
    tl_value key, value;

    cr_assert_eq(tl_seq_alloc(&key, TL_V_LIST, 0, &diag), TL_OK);
    cr_assert_eq(tl_seq_alloc(&value, TL_V_LIST, 0, &diag), TL_OK);
    cr_expect_eq(tl_dict_set_take(d.dict, key, value, &diag), TL_ERR_PROGRAM);
    cr_expect_eq(diag.last->code, TL_E0210);
}

Test(test_dict, copy_is_independent)
{
    tl_value copy;

    set(tl_int_value(1), 1);
    set(tl_int_value(2), 2);
    tl_unref(removed(tl_int_value(1)));
    cr_assert_eq(tl_dict_unshare_take(&copy, tl_ref(d), &diag), TL_OK);
    cr_assert_neq(copy.dict, d.dict);
    cr_assert_eq(
        tl_dict_set_take(copy.dict, tl_int_value(2), tl_int_value(9), &diag),
        TL_OK);
    cr_expect_eq(get(tl_int_value(2)), 2);
    cr_expect_eq(copy.dict->live, 1);
    tl_unref(copy);
}

Test(test_dict, unshared_dict_is_not_copied)
{
    tl_dict *before = d.dict;

    cr_assert_eq(tl_dict_unshare_take(&d, d, &diag), TL_OK);
    cr_expect_eq(d.dict, before);
}

Test(test_dict, every_failing_allocation_leaves_it_whole)
{
    for (uint64_t n = 1; n < 6; n++) {
        for (int i = 0; i < 40; i++) {
            tl_mem_fail_at(n, false);
            if (tl_dict_set_str_take(d.dict, "key", 3, tl_int_value(i),
                                     &diag) == TL_OK) {
                tl_mem_fail_at(0, false);
                cr_assert_eq(tl_dict_get_str(d.dict, "key", 3)->i, i);
            }
            tl_mem_fail_at(0, false);
            set(tl_int_value((int64_t)n * 100 + i), i);
        }
    }
    for (int i = 0; i < 40; i++) {
        cr_assert_eq(get(tl_int_value(500 + i)), i);
    }
}
