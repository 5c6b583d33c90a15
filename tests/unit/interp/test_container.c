/* test_container.c - indices, slices, joins and membership. */
#include "interp/container.h"

#include <criterion/criterion.h>
#include <string.h>

#include "interp/bi_text.h"
#include "interp/format.h"
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

TestSuite(test_container, .init = setup, .fini = teardown);

static tl_value str(const char *s)
{
    tl_value v;

    cr_assert_eq(tl_str_new(&v, s, strlen(s), &diag), TL_OK);
    return v;
}

/* [0, 1, ..., n - 1] */
static tl_value count_to(tl_tag tag, int n)
{
    tl_value v;

    cr_assert_eq(tl_seq_alloc(&v, tag, (size_t)n, &diag), TL_OK);
    for (int i = 0; i < n; i++) {
        v.seq->items[i] = tl_int_value(i);
    }
    return v;
}

/* Check the repr of `v`, which is released. */
static void shows(tl_value v, const char *want)
{
    tl_buf text;

    tl_buf_init(&text);
    cr_assert_eq(tl_format_repr(v, &text, &diag), TL_OK);
    cr_expect_str_eq(tl_buf_str(&text), want);
    tl_buf_fini(&text);
    tl_unref(v);
}

static tl_value at(tl_value v, int64_t i)
{
    tl_value out;

    cr_assert_eq(tl_container_index(v, tl_int_value(i), &out, &diag), TL_OK);
    return out;
}

/* ---- slices ------------------------------------------------------------ */

#define N INT64_MIN /* left out */

/* Positions that range(n)[start:stop:step] has in Python. */
static const struct slice_case {
    int n;
    int64_t start, stop, step;
    const char *want;
} slice_cases[] = {
    {5, 2, -1, 100, "2"}, {0, -9, 1, N, ""},   {1, N, -1, -3, ""},
    {1, -2, 9, N, "0"},   {5, 1, N, 2, "13"},  {5, 2, 0, -2, "2"},
    {1, N, 0, -100, ""},  {5, -9, 0, 1, ""},   {0, N, 1, 2, ""},
    {1, 0, 3, -1, ""},    {1, 9, 1, 1, ""},    {8, 1, -3, 3, "14"},
    {0, -1, -3, 1, ""},   {1, 2, N, -1, "0"},  {5, 4, 5, N, "4"},
    {5, 7, -1, N, ""},    {5, -1, 3, -3, "4"}, {8, -1, 0, -3, "741"},
    {5, 0, N, 3, "03"},   {0, -1, -3, N, ""},  {5, -2, -1, -2, ""},
    {5, N, -9, N, ""},    {8, 0, 5, 2, "024"}, {0, 1, -9, -1, ""},
    {5, -1, 9, 3, "4"},   {5, N, 5, -1, ""},   {5, N, -3, N, "01"},
    {1, -1, 9, -100, ""}, {5, 0, -1, 3, "03"}, {8, 9, N, 3, ""},
    {8, -1, 3, 1, ""},    {0, 7, 0, 3, ""},    {5, 0, N, N, "01234"},
    {5, 9, -3, N, ""},    {1, 4, -1, 3, ""},   {5, 7, -3, 1, ""},
};

static tl_value part(int64_t i)
{
    return i == N ? tl_none() : tl_int_value(i);
}

/* The digits of v[start:stop:step], v being 0, 1, ... in some container. */
static void check_slice(tl_value v, const struct slice_case *c)
{
    tl_value got;
    size_t n = strlen(c->want);

    cr_assert_eq(tl_container_slice(v, part(c->start), part(c->stop),
                                    part(c->step), &got, &diag),
                 TL_OK);
    cr_assert_eq(got.tag, v.tag);
    cr_expect_eq(tl_container_len(got), (int64_t)n);
    for (size_t i = 0; i < n && tl_container_len(got) == (int64_t)n; i++) {
        tl_value item = at(got, (int64_t)i);
        char digit =
            item.tag == TL_V_STR ? item.str->data[0] : (char)('0' + item.i);

        cr_expect_eq(digit, c->want[i], "[%lld:%lld:%lld] of %d",
                     (long long)c->start, (long long)c->stop,
                     (long long)c->step, c->n);
        tl_unref(item);
    }
    tl_unref(got);
    tl_unref(v);
}

Test(test_container, slices_as_in_python)
{
    for (size_t i = 0; i < sizeof(slice_cases) / sizeof(*slice_cases); i++) {
        const struct slice_case *c = &slice_cases[i];
        char digits[] = "01234567";
        tl_value range;

        digits[c->n] = '\0';
        cr_assert_eq(tl_range_new(&range, 0, c->n, 1, &diag), TL_OK);
        check_slice(count_to(TL_V_LIST, c->n), c);
        check_slice(count_to(TL_V_TUPLE, c->n), c);
        check_slice(str(digits), c);
        check_slice(range, c);
    }
}

Test(test_container, slices_of_wide_characters)
{
    tl_value s = str("a\xc3\xa9\xe6\x97\xa5z"), out;

    cr_assert_eq(tl_container_slice(s, tl_int_value(1), tl_int_value(3),
                                    tl_none(), &out, &diag),
                 TL_OK);
    shows(out, "\"\xc3\xa9\xe6\x97\xa5\"");
    cr_assert_eq(tl_container_slice(s, tl_none(), tl_none(), tl_int_value(-1),
                                    &out, &diag),
                 TL_OK);
    shows(out, "\"z\xe6\x97\xa5\xc3\xa9"
               "a\"");
    shows(at(s, -2), "\"\xe6\x97\xa5\"");
    tl_unref(s);
}

Test(test_container, slice_step_zero_is_refused)
{
    tl_value list = count_to(TL_V_LIST, 3), out;

    cr_expect_eq(tl_container_slice(list, tl_none(), tl_none(),
                                    tl_int_value(0), &out, &diag),
                 TL_ERR_PROGRAM);
    cr_expect_eq(diag.last->code, TL_E0416);
    tl_unref(list);
}

Test(test_container, extreme_steps_do_not_overflow)
{
    tl_value list = count_to(TL_V_LIST, 3), out;

    cr_assert_eq(tl_container_slice(list, tl_none(), tl_none(),
                                    tl_int_value(INT64_MAX), &out, &diag),
                 TL_OK);
    shows(out, "[0]");
    cr_assert_eq(tl_container_slice(list, tl_none(), tl_none(),
                                    tl_int_value(INT64_MIN), &out, &diag),
                 TL_OK);
    shows(out, "[2]");
    tl_unref(list);
}

/* ---- indices ----------------------------------------------------------- */

static void refuses_index(tl_value v, tl_value i, tl_code code,
                          const char *message)
{
    tl_value out;

    cr_expect_neq(tl_container_index(v, i, &out, &diag), TL_OK);
    cr_expect_eq(diag.last->code, code);
    cr_expect_str_eq(diag.last->message, message);
    tl_unref(v);
}

Test(test_container, index_outside)
{
    refuses_index(count_to(TL_V_LIST, 3), tl_int_value(3), TL_E0218,
                  "index 3 is outside a list of 3");
    refuses_index(count_to(TL_V_TUPLE, 3), tl_int_value(-4), TL_E0218,
                  "index -4 is outside a tuple of 3");
    refuses_index(str(""), tl_int_value(0), TL_E0218,
                  "index 0 of an empty str");
    refuses_index(count_to(TL_V_LIST, 3), tl_float_value(1), TL_E0210,
                  "an index must be an int, got float");
}

Test(test_container, items_of_a_range)
{
    tl_value r;

    cr_assert_eq(tl_range_new(&r, 10, 0, -3, &diag), TL_OK);
    cr_expect_eq(at(r, 0).i, 10);
    cr_expect_eq(at(r, -1).i, 1);
    tl_unref(r);
}

Test(test_container, missing_key_names_the_nearest)
{
    tl_value d, key = str("wieght"), out;

    cr_assert_eq(tl_dict_new(&d, &diag), TL_OK);
    cr_assert_eq(tl_dict_set_take(d.dict, str("weight"), tl_none(), &diag),
                 TL_OK);
    cr_expect_eq(tl_dict_index(d, key, &out, &diag), TL_ERR_PROGRAM);
    cr_expect_str_eq(diag.last->message, "no key \"wieght\" in a dict of 1");
    cr_expect_str_eq(diag.last->help, "\"weight\"");
    tl_unref(key);
    tl_unref(d);
}

/* ---- writing ----------------------------------------------------------- */

Test(test_container, write_in_place_when_unshared)
{
    tl_value list = count_to(TL_V_LIST, 3);
    const tl_seq *before = list.seq;

    cr_assert_eq(
        tl_container_put_take(list, tl_int_value(-1), str("x"), &list, &diag),
        TL_OK);
    cr_expect_eq(list.seq, before);
    shows(list, "[0, 1, \"x\"]");
}

Test(test_container, write_copies_when_shared)
{
    tl_value list = count_to(TL_V_LIST, 3), out;

    cr_assert_eq(tl_container_put_take(tl_ref(list), tl_int_value(0),
                                       str("x"), &out, &diag),
                 TL_OK);
    shows(out, "[\"x\", 1, 2]");
    shows(list, "[0, 1, 2]");
}

Test(test_container, tuples_cannot_be_written)
{
    tl_value out;

    cr_expect_eq(tl_container_put_take(count_to(TL_V_TUPLE, 2),
                                       tl_int_value(0), str("x"), &out,
                                       &diag),
                 TL_ERR_PROGRAM);
    cr_expect_str_eq(diag.last->message,
                     "the items of tuple cannot be written");
}

/* ---- joins ------------------------------------------------------------- */

Test(test_container, concatenation)
{
    tl_value out;

    cr_assert_eq(tl_concat_take(count_to(TL_V_LIST, 2),
                                count_to(TL_V_LIST, 1), &out, &diag),
                 TL_OK);
    shows(out, "[0, 1, 0]");
    cr_assert_eq(tl_concat_take(str("a"), str("\xc3\xa9"), &out, &diag),
                 TL_OK);
    cr_expect_not(out.str->ascii);
    shows(out, "\"a\xc3\xa9\"");
}

Test(test_container, a_list_can_be_added_to_itself)
{
    tl_value list = count_to(TL_V_LIST, 2), out;

    cr_assert_eq(tl_concat_take(list, tl_ref(list), &out, &diag), TL_OK);
    shows(out, "[0, 1, 0, 1]");
}

Test(test_container, repetition)
{
    tl_value out;

    cr_assert_eq(tl_repeat_take(count_to(TL_V_TUPLE, 2), 2, &out, &diag),
                 TL_OK);
    shows(out, "(0, 1, 0, 1)");
    cr_assert_eq(tl_repeat_take(str("ab"), -1, &out, &diag), TL_OK);
    shows(out, "\"\"");
    cr_assert_eq(tl_repeat_take(str(""), INT64_MAX, &out, &diag), TL_OK);
    shows(out, "\"\"");
    cr_expect_eq(tl_repeat_take(str("ab"), INT64_MAX, &out, &diag),
                 TL_ERR_PROGRAM);
    cr_expect_eq(diag.last->code, TL_E0307);
}

/* ---- membership -------------------------------------------------------- */

/* Both are released. */
static bool has(tl_value v, tl_value item)
{
    bool yes = false;

    cr_assert_eq(tl_contains(v, item, &yes, &diag), TL_OK);
    tl_unref(v);
    tl_unref(item);
    return yes;
}

static tl_value range(int64_t start, int64_t stop, int64_t step)
{
    tl_value r;

    cr_assert_eq(tl_range_new(&r, start, stop, step, &diag), TL_OK);
    return r;
}

Test(test_container, membership)
{
    cr_expect(has(str("hello"), str("ell")));
    cr_expect(has(str("hello"), str("")));
    cr_expect_not(has(str("hello"), str("elo")));
    cr_expect(has(count_to(TL_V_LIST, 3), tl_float_value(2.0)));
    cr_expect_not(has(count_to(TL_V_LIST, 3), tl_int_value(3)));
}

Test(test_container, membership_of_ranges)
{
    cr_expect(has(range(0, 10, 3), tl_int_value(9)));
    cr_expect_not(has(range(0, 10, 3), tl_int_value(10)));
    cr_expect(has(range(10, 0, -3), tl_int_value(1)));
    cr_expect_not(has(range(10, 0, -3), tl_int_value(0)));
    cr_expect(has(range(0, 10, 3), tl_float_value(3.0)));
    cr_expect_not(has(range(0, 10, 3), tl_float_value(3.5)));
    cr_expect(has(range(INT64_MIN, INT64_MAX, INT64_MAX),
                  tl_int_value(INT64_MAX - 1)));
}

Test(test_container, no_membership_in_an_int)
{
    bool yes;

    cr_expect_eq(tl_contains(tl_int_value(1), tl_int_value(1), &yes, &diag),
                 TL_ERR_PROGRAM);
    cr_expect_eq(diag.last->code, TL_E0207);
}

Test(test_container, what_is_not_known_is_found_inside)
{
    tl_value list = count_to(TL_V_LIST, 1), outer = count_to(TL_V_TUPLE, 1);

    cr_expect(tl_value_known(list));
    list.seq->items[0] = tl_unknown();
    outer.seq->items[0] = list;
    cr_expect_not(tl_value_known(outer));
    tl_unref(outer);
}
