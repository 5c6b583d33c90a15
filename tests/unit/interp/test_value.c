/* test_value.c - making, comparing, hashing and freeing values. */
#include "interp/value.h"

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "interp/dict.h"
#include "runtime/base/mem.h"

static tl_diag diag;

static void setup(void)
{
    tl_diag_init(&diag, NULL);
}

static void teardown(void)
{
    cr_assert_eq(tl_obj_live(), 0);
    tl_diag_fini(&diag);
}

TestSuite(test_value, .init = setup, .fini = teardown);

static tl_value str(const char *s)
{
    tl_value v;

    cr_assert_eq(tl_str_new(&v, s, strlen(s), &diag), TL_OK);
    return v;
}

static tl_value seq(tl_tag tag, tl_value a, tl_value b)
{
    tl_value items[2] = {a, b}, v;

    cr_assert_eq(tl_seq_new_take(&v, tag, items, 2, &diag), TL_OK);
    return v;
}

/* [[[...]]], `depth` lists deep. */
static tl_value nest(int depth)
{
    tl_value v = tl_int_value(1);

    for (int i = 0; i < depth; i++) {
        cr_assert_eq(tl_seq_new_take(&v, TL_V_LIST, &v, 1, &diag), TL_OK);
    }
    return v;
}

static bool same(tl_value a, tl_value b)
{
    bool eq = false;

    cr_assert_eq(tl_value_equal(a, b, &eq, &diag), TL_OK);
    return eq;
}

static int order(tl_value a, tl_value b)
{
    int c = 99;

    cr_assert_eq(tl_value_compare(a, b, &c, &diag), TL_OK);
    return c;
}

static uint64_t hash(tl_value v)
{
    uint64_t h;

    cr_assert_eq(tl_value_hash(v, &h, &diag), TL_OK);
    return h;
}

Test(test_value, str_knows_whether_it_is_ascii)
{
    tl_value a = str("abc"), b = str("na\xc3\xafve");

    cr_expect(a.str->ascii);
    cr_expect_not(b.str->ascii);
    cr_expect_eq(b.str->len, 6);
    cr_expect_eq(b.str->data[6], '\0');
    tl_unref(a);
    tl_unref(b);
}

Test(test_value, list_keeps_items_while_it_grows)
{
    tl_value list = nest(1);

    for (int i = 2; i <= 1000; i++) {
        cr_assert_eq(tl_list_push_take(list.seq, tl_int_value(i), &diag),
                     TL_OK);
    }
    cr_assert_eq(list.seq->len, 1000);
    for (int i = 0; i < 1000; i++) {
        cr_assert_eq(list.seq->items[i].i, i + 1);
    }
    tl_unref(list);
}

Test(test_value, failed_push_releases_the_item)
{
    tl_value list = nest(1), item = str("x");

    tl_mem_fail_at(1, false);
    cr_expect_eq(tl_list_push_take(list.seq, item, &diag), TL_ERR_MEMORY);
    tl_mem_fail_at(0, false);
    cr_expect_eq(list.seq->len, 1);
    tl_unref(list);
}

Test(test_value, failed_sequence_releases_its_items)
{
    tl_value items[1] = {str("x")}, v;

    tl_mem_fail_at(1, false);
    cr_expect_eq(tl_seq_new_take(&v, TL_V_LIST, items, 1, &diag),
                 TL_ERR_MEMORY);
    tl_mem_fail_at(0, false);
}

Test(test_value, range_length_has_no_overflow)
{
    static const struct {
        int64_t start, stop, step, want;
    } cases[] = {
        {0, 10, 1, 10},
        {0, 10, 3, 4},
        {10, 0, -3, 4},
        {0, 0, 1, 0},
        {5, 0, 1, 0},
        {INT64_MIN, INT64_MAX, 1, INT64_MAX},
        {INT64_MIN, INT64_MAX, INT64_MAX, 3},
        {INT64_MAX, INT64_MIN, INT64_MIN, 2},
        {0, 1, INT64_MAX, 1},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        tl_range r = {.start = cases[i].start,
                      .stop = cases[i].stop,
                      .step = cases[i].step};

        cr_expect_eq(tl_range_len(&r), cases[i].want, "case %zu", i);
    }
}

Test(test_value, range_step_zero_is_refused)
{
    tl_value v;

    cr_expect_eq(tl_range_new(&v, 0, 1, 0, &diag), TL_ERR_PROGRAM);
    cr_expect_eq(diag.last->code, TL_E0416);
}

Test(test_value, int_and_float_compare_exactly)
{
    int64_t big = ((int64_t)1 << 53) + 1;

    cr_expect_not(same(tl_int_value(big), tl_float_value(0x1p53)));
    cr_expect_eq(order(tl_int_value(big), tl_float_value(0x1p53)), 1);
    cr_expect_eq(order(tl_float_value(0x1p53), tl_int_value(big)), -1);
    cr_expect_eq(order(tl_int_value(INT64_MAX), tl_float_value(0x1p63)), -1);
    cr_expect_eq(order(tl_int_value(INT64_MIN), tl_float_value(-0x1p63)), 0);
    cr_expect_eq(order(tl_int_value(-1), tl_float_value(-1.5)), 1);
    cr_expect_eq(order(tl_int_value(2), tl_float_value(2.5)), -1);
    cr_expect_eq(order(tl_int_value(2), tl_float_value(-INFINITY)), 1);
    cr_expect(same(tl_float_value(0.0), tl_float_value(-0.0)));
}

Test(test_value, nan_is_unordered)
{
    tl_value nan = tl_float_value(NAN);

    cr_expect_not(same(nan, nan));
    cr_expect_eq(order(nan, tl_int_value(1)), TL_UNORDERED);
    cr_expect_eq(order(tl_int_value(1), nan), TL_UNORDERED);
    cr_expect_eq(order(nan, nan), TL_UNORDERED);
}

Test(test_value, strings_compare_by_code_point)
{
    tl_value a = str("ab"), b = str("abc"), c = str("\xc3\xa9");

    cr_expect_eq(order(a, b), -1);
    cr_expect_eq(order(c, b), 1);
    cr_expect_eq(order(b, b), 0);
    tl_unref(a);
    tl_unref(b);
    tl_unref(c);
}

Test(test_value, sequences_compare_item_by_item)
{
    tl_value a = seq(TL_V_TUPLE, tl_int_value(1), str("a"));
    tl_value b = seq(TL_V_TUPLE, tl_float_value(1), str("b"));
    tl_value c = seq(TL_V_LIST, tl_int_value(1), str("a"));

    cr_expect_eq(order(a, b), -1);
    cr_expect_not(same(a, b));
    cr_expect_not(same(a, c), "a list is no tuple");
    tl_unref(a);
    tl_unref(b);
    tl_unref(c);
}

Test(test_value, no_order_between_str_and_int)
{
    tl_value a = str("a");
    int c;

    cr_expect_eq(tl_value_compare(a, tl_int_value(1), &c, &diag),
                 TL_ERR_PROGRAM);
    cr_expect_eq(diag.last->code, TL_E0207);
    cr_expect_str_eq(diag.last->message, "no order between str and int");
    tl_unref(a);
}

Test(test_value, equal_numbers_hash_equal)
{
    cr_expect_eq(hash(tl_int_value(1)), hash(tl_float_value(1.0)));
    cr_expect_eq(hash(tl_int_value(1)), hash(tl_bool_value(true)));
    cr_expect_eq(hash(tl_float_value(-0.0)), hash(tl_int_value(0)));
    cr_expect_neq(hash(tl_float_value(1.5)), hash(tl_int_value(1)));
}

Test(test_value, equal_tuples_hash_equal)
{
    tl_value a = seq(TL_V_TUPLE, tl_int_value(1), str("a"));
    tl_value b = seq(TL_V_TUPLE, tl_float_value(1), str("a"));
    tl_value c = seq(TL_V_TUPLE, str("a"), tl_int_value(1));

    cr_expect_eq(hash(a), hash(b));
    cr_expect_neq(hash(a), hash(c));
    tl_unref(a);
    tl_unref(b);
    tl_unref(c);
}

Test(test_value, list_is_no_key)
{
    tl_value list = nest(1);
    uint64_t h;

    cr_expect_eq(tl_value_hash(list, &h, &diag), TL_ERR_PROGRAM);
    cr_expect_str_eq(diag.last->message, "list cannot be a dict key");
    tl_unref(list);
}

Test(test_value, dicts_are_equal_in_any_order)
{
    tl_value a, b;

    cr_assert_eq(tl_dict_new(&a, &diag), TL_OK);
    cr_assert_eq(tl_dict_new(&b, &diag), TL_OK);
    for (int i = 0; i < 20; i++) {
        cr_assert_eq(tl_dict_set_take(a.dict, tl_int_value(i),
                                      tl_int_value(i * i), &diag),
                     TL_OK);
        cr_assert_eq(tl_dict_set_take(b.dict, tl_int_value(19 - i),
                                      tl_int_value((19 - i) * (19 - i)),
                                      &diag),
                     TL_OK);
    }
    cr_expect(same(a, b));
    cr_assert_eq(tl_dict_set_take(b.dict, tl_int_value(3), tl_none(), &diag),
                 TL_OK);
    cr_expect_not(same(a, b));
    tl_unref(a);
    tl_unref(b);
}

Test(test_value, empty_ranges_are_equal)
{
    tl_value a, b, c;

    cr_assert_eq(tl_range_new(&a, 0, 0, 1, &diag), TL_OK);
    cr_assert_eq(tl_range_new(&b, 7, 3, 2, &diag), TL_OK);
    cr_assert_eq(tl_range_new(&c, 0, 2, 1, &diag), TL_OK);
    cr_expect(same(a, b));
    cr_expect_not(same(a, c));
    tl_unref(a);
    tl_unref(b);
    tl_unref(c);
}

Test(test_value, deep_lists_are_freed_without_a_deep_stack)
{
    tl_value v = nest(1000000);

    cr_assert_eq(tl_obj_live(), 1000000);
    tl_unref(v);
}

Test(test_value, comparing_deep_lists_fails_politely)
{
    tl_value a = nest(2000), b = nest(2000);
    bool eq;

    cr_expect_neq(tl_value_equal(a, b, &eq, &diag), TL_OK);
    cr_expect_eq(diag.last->code, TL_E0224);
    tl_unref(a);
    tl_unref(b);
}

Test(test_value, type_names)
{
    tl_value s = str("a"), list = nest(1);

    cr_expect_str_eq(tl_value_type_str(tl_int_value(1)).s, "int");
    cr_expect_str_eq(tl_value_type_str(tl_none()).s, "none");
    cr_expect_str_eq(tl_value_type_str(s).s, "str");
    cr_expect_str_eq(tl_value_type_str(list).s, "list");
    tl_unref(s);
    tl_unref(list);
}
