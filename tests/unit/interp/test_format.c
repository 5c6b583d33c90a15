/* test_format.c - text of values, and the format mini-language. */
#include "interp/format.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "interp/dict.h"

static tl_diag diag;
static tl_pool *pool;
static tl_buf text;

static void setup(void)
{
    tl_diag_init(&diag, NULL);
    cr_assert_eq(tl_pool_new(&pool, 0, &diag), TL_OK);
    tl_buf_init(&text);
}

static void teardown(void)
{
    tl_buf_fini(&text);
    cr_assert_eq(tl_obj_live(), 0);
    cr_assert_eq(tl_tensor_live(), 0);
    tl_tensor_trim();
    tl_pool_free(pool);
    tl_diag_fini(&diag);
}

TestSuite(test_format, .init = setup, .fini = teardown);

static tl_value str(const char *s)
{
    tl_value v;

    cr_assert_eq(tl_str_new(&v, s, strlen(s), &diag), TL_OK);
    return v;
}

static tl_value seq(tl_tag tag, size_t n, const tl_value *from)
{
    tl_value items[4], v;

    memcpy(items, from, n * sizeof(*items));
    cr_assert_eq(tl_seq_new_take(&v, tag, items, n, &diag), TL_OK);
    return v;
}

/* Check both texts of `v`, which is released. */
static void shows(tl_value v, const char *as_str, const char *as_repr)
{
    tl_buf_clear(&text);
    cr_assert_eq(tl_format_str(v, &text, &diag), TL_OK);
    cr_expect_str_eq(tl_buf_str(&text), as_str);
    tl_buf_clear(&text);
    cr_assert_eq(tl_format_repr(v, &text, &diag), TL_OK);
    cr_expect_str_eq(tl_buf_str(&text), as_repr);
    tl_unref(v);
}

static tl_status format(tl_value v, const char *spec)
{
    tl_buf_clear(&text);
    return tl_format_spec(v, spec, strlen(spec), &text, &diag);
}

/* ---- str and repr ------------------------------------------------------ */

Test(test_format, numbers_and_names)
{
    shows(tl_none(), "none", "none");
    shows(tl_bool_value(true), "true", "true");
    shows(tl_int_value(INT64_MIN), "-9223372036854775808",
          "-9223372036854775808");
    shows(tl_float_value(0.1), "0.1", "0.1");
    shows(tl_float_value(3), "3.0", "3.0");
    shows(tl_float_value(1e-5), "1e-05", "1e-05");
    shows(tl_float_value(-INFINITY), "-inf", "-inf");
    shows(tl_dtype_value(TL_f32), "f32", "f32");
}

Test(test_format, strings_are_bare_or_quoted)
{
    shows(str("a\"b\\c\n\x01\xc3\xa9"), "a\"b\\c\n\x01\xc3\xa9",
          "\"a\\\"b\\\\c\\n\\x01\xc3\xa9\"");
}

Test(test_format, sequences)
{
    tl_value two[2] = {tl_int_value(1), str("a")};
    tl_value one[1] = {tl_int_value(1)};

    shows(seq(TL_V_LIST, 2, two), "[1, \"a\"]", "[1, \"a\"]");
    shows(seq(TL_V_TUPLE, 1, one), "(1,)", "(1,)");
    shows(seq(TL_V_TUPLE, 0, one), "()", "()");
    shows(seq(TL_V_LIST, 0, one), "[]", "[]");
}

Test(test_format, dict_in_order)
{
    tl_value d;

    cr_assert_eq(tl_dict_new(&d, &diag), TL_OK);
    cr_assert_eq(tl_dict_set_take(d.dict, str("b"), tl_int_value(1), &diag),
                 TL_OK);
    cr_assert_eq(tl_dict_set_take(d.dict, tl_int_value(2), tl_none(), &diag),
                 TL_OK);
    shows(d, "{\"b\": 1, 2: none}", "{\"b\": 1, 2: none}");
}

Test(test_format, ranges)
{
    tl_value r;

    cr_assert_eq(tl_range_new(&r, 0, 3, 1, &diag), TL_OK);
    shows(r, "range(0, 3)", "range(0, 3)");
    cr_assert_eq(tl_range_new(&r, 5, 0, -2, &diag), TL_OK);
    shows(r, "range(5, 0, -2)", "range(5, 0, -2)");
}

Test(test_format, scalar_tensor_is_its_number)
{
    tl_tensor *t;

    cr_assert_eq(tl_tensor_scalar_f(&t, pool, TL_f32, 0.25, &diag), TL_OK);
    shows(tl_tensor_value_take(t), "0.25", "0.25");
}

Test(test_format, deep_value_fails_politely)
{
    tl_value v = tl_none();

    for (int i = 0; i < 1500; i++) {
        v = seq(TL_V_LIST, 1, &v);
    }
    cr_expect_neq(tl_format_str(v, &text, &diag), TL_OK);
    cr_expect_eq(diag.last->code, TL_E0224);
    tl_unref(v);
}

/* ---- the mini-language ------------------------------------------------- */

typedef struct float_case {
    double f;
    const char *spec, *want;
} float_case;

typedef struct int_case {
    int64_t i;
    const char *spec, *want;
} int_case;

typedef struct text_case {
    const char *s, *spec, *want;
} text_case;

/* What Python 3.11 prints. */
static const float_case float_cases[] = {
    {.f = 0.0, .spec = "", .want = "0.0"},
    {.f = 0.0, .spec = " .1f", .want = " 0.0"},
    {.f = 0.0, .spec = "g", .want = "0"},
    {.f = 0.0, .spec = ",.2f", .want = "0.00"},
    {.f = 0.0, .spec = ".17g", .want = "0"},
    {.f = -0.0, .spec = "10.3f", .want = "    -0.000"},
    {.f = -0.0, .spec = "=+9.1f", .want = "-     0.0"},
    {.f = -0.0, .spec = "e", .want = "-0.000000e+00"},
    {.f = -0.0, .spec = "015,.2f", .want = "-000,000,000.00"},
    {.f = -0.0, .spec = "012.3e", .want = "-000.000e+00"},
    {.f = 1.0, .spec = "^12.2e", .want = "  1.00e+00  "},
    {.f = 1.0, .spec = ".0f", .want = "1"},
    {.f = 1.0, .spec = "G", .want = "1"},
    {.f = 1.0, .spec = "10", .want = "       1.0"},
    {.f = 1.0, .spec = "n", .want = "1"},
    {.f = 1234567.891, .spec = "+.1f", .want = "+1234567.9"},
    {.f = 1234567.891, .spec = ".3g", .want = "1.23e+06"},
    {.f = 1234567.891, .spec = ".1%", .want = "123456789.1%"},
    {.f = 1234567.891, .spec = ".1", .want = "1e+06"},
    {.f = -1234.5, .spec = ".2f", .want = "-1234.50"},
    {.f = -1234.5, .spec = "08.2f", .want = "-1234.50"},
    {.f = -1234.5, .spec = "#g", .want = "-1234.50"},
    {.f = -1234.5, .spec = "_.1f", .want = "-1_234.5"},
    {.f = -1234.5, .spec = "F", .want = "-1234.500000"},
    {.f = 1.234e-05, .spec = "<10.1f", .want = "0.0       "},
    {.f = 1.234e-05, .spec = "*^11.3g", .want = "*1.23e-05**"},
    {.f = 1.234e-05, .spec = "E", .want = "1.234000E-05"},
    {.f = 1.234e-05, .spec = ".3", .want = "1.23e-05"},
    {.f = 1.234e-05, .spec = "+,.0f", .want = "+0"},
    {.f = 1e+22, .spec = ">+10.2f", .want = "+10000000000000000000000.00"},
    {.f = 1e+22, .spec = "#.0f", .want = "10000000000000000000000."},
    {.f = 1e+22, .spec = "%", .want = "999999999999999983222784.000000%"},
    {.f = 1e+22, .spec = "10.4", .want = "     1e+22"},
    {.f = 2.5, .spec = "", .want = "2.5"},
    {.f = 2.5, .spec = " .1f", .want = " 2.5"},
    {.f = 2.5, .spec = "g", .want = "2.5"},
    {.f = 2.5, .spec = ",.2f", .want = "2.50"},
    {.f = 2.5, .spec = ".17g", .want = "2.5"},
    {.f = INFINITY, .spec = "10.3f", .want = "       inf"},
    {.f = INFINITY, .spec = "=+9.1f", .want = "+     inf"},
    {.f = INFINITY, .spec = "e", .want = "inf"},
    {.f = INFINITY, .spec = "015,.2f", .want = "000000000000inf"},
    {.f = INFINITY, .spec = "012.3e", .want = "000000000inf"},
    {.f = -INFINITY, .spec = "^12.2e", .want = "    -inf    "},
    {.f = -INFINITY, .spec = ".0f", .want = "-inf"},
    {.f = -INFINITY, .spec = "G", .want = "-INF"},
    {.f = -INFINITY, .spec = "10", .want = "      -inf"},
    {.f = -INFINITY, .spec = "n", .want = "-inf"},
    {.f = NAN, .spec = "+.1f", .want = "+nan"},
    {.f = NAN, .spec = ".3g", .want = "nan"},
    {.f = NAN, .spec = ".1%", .want = "nan%"},
    {.f = NAN, .spec = ".1", .want = "nan"},
    {.f = 123.456, .spec = ".2f", .want = "123.46"},
    {.f = 123.456, .spec = "08.2f", .want = "00123.46"},
    {.f = 123.456, .spec = "#g", .want = "123.456"},
    {.f = 123.456, .spec = "_.1f", .want = "123.5"},
    {.f = 123.456, .spec = "F", .want = "123.456000"},
    {.f = 1e-07, .spec = "<10.1f", .want = "0.0       "},
    {.f = 1e-07, .spec = "*^11.3g", .want = "***1e-07***"},
    {.f = 1e-07, .spec = "E", .want = "1.000000E-07"},
    {.f = 1e-07, .spec = ".3", .want = "1e-07"},
    {.f = 1e-07, .spec = "+,.0f", .want = "+0"},
};

static const int_case int_cases[] = {
    {.i = 0, .spec = "05d", .want = "00000"},
    {.i = 0, .spec = "b", .want = "0"},
    {.i = 0, .spec = "_", .want = "0"},
    {.i = 65, .spec = "c", .want = "A"},
    {.i = 5, .spec = "5d", .want = "    5"},
    {.i = 5, .spec = "#x", .want = "0x5"},
    {.i = 5, .spec = "#010x", .want = "0x00000005"},
    {.i = 5, .spec = "e", .want = "5.000000e+00"},
    {.i = 5, .spec = "é^9", .want = "éééé5éééé"},
    {.i = -5, .spec = "+d", .want = "-5"},
    {.i = -5, .spec = "#b", .want = "-0b101"},
    {.i = -5, .spec = "_x", .want = "-5"},
    {.i = -5, .spec = "*>8", .want = "******-5"},
    {.i = 65, .spec = "^7d", .want = "  65   "},
    {.i = 65, .spec = "#X", .want = "0X41"},
    {.i = 65, .spec = ",", .want = "65"},
    {.i = 65, .spec = "%", .want = "6500.000000%"},
    {.i = 1234567, .spec = "d", .want = "1234567"},
    {.i = 1234567, .spec = "x", .want = "12d687"},
    {.i = 1234567, .spec = "#o", .want = "0o4553207"},
    {.i = 1234567, .spec = "012,", .want = "0,001,234,567"},
    {.i = 1234567, .spec = "é^9", .want = "é1234567é"},
    {.i = -1234567, .spec = "+d", .want = "-1234567"},
    {.i = -1234567, .spec = "#b", .want = "-0b100101101011010000111"},
    {.i = -1234567, .spec = "_x", .want = "-12_d687"},
    {.i = -1234567, .spec = "*>8", .want = "-1234567"},
    {.i = 9223372036854775807, .spec = "^7d", .want = "9223372036854775807"},
    {.i = 9223372036854775807, .spec = "#X", .want = "0X7FFFFFFFFFFFFFFF"},
    {.i = 9223372036854775807,
     .spec = ",",
     .want = "9,223,372,036,854,775,807"},
    {.i = 9223372036854775807,
     .spec = "%",
     .want = "922337203685477580800.000000%"},
    {.i = INT64_MIN, .spec = "5d", .want = "-9223372036854775808"},
    {.i = INT64_MIN, .spec = "#x", .want = "-0x8000000000000000"},
    {.i = INT64_MIN, .spec = "#010x", .want = "-0x8000000000000000"},
    {.i = INT64_MIN, .spec = "e", .want = "-9.223372e+18"},
};

static const text_case text_cases[] = {
    {.s = "", .spec = "", .want = ""},
    {.s = "", .spec = "5.1", .want = "     "},
    {.s = "ab", .spec = "10", .want = "ab        "},
    {.s = "ab", .spec = "é>6", .want = "ééééab"},
    {.s = "naïve", .spec = "^10", .want = "  naïve   "},
    {.s = "naïve", .spec = ".0", .want = ""},
    {.s = "日本語", .spec = ".2", .want = "日本"},
};

#define COUNT(a) (sizeof(a) / sizeof(*(a)))

static void formats(tl_value v, const char *spec, const char *want)
{
    cr_expect_eq(format(v, spec), TL_OK, "%s", spec);
    cr_expect_str_eq(tl_buf_str(&text), want, "spec %s: %s", spec,
                     tl_buf_str(&text));
}

Test(test_format, floats_as_in_python)
{
    for (size_t i = 0; i < COUNT(float_cases); i++) {
        formats(tl_float_value(float_cases[i].f), float_cases[i].spec,
                float_cases[i].want);
    }
}

Test(test_format, ints_as_in_python)
{
    for (size_t i = 0; i < COUNT(int_cases); i++) {
        formats(tl_int_value(int_cases[i].i), int_cases[i].spec,
                int_cases[i].want);
    }
}

Test(test_format, strings_as_in_python)
{
    for (size_t i = 0; i < COUNT(text_cases); i++) {
        tl_value v = str(text_cases[i].s);

        formats(v, text_cases[i].spec, text_cases[i].want);
        tl_unref(v);
    }
}

Test(test_format, bool_is_a_word_unless_a_number_is_asked_for)
{
    formats(tl_bool_value(true), ">6", "  true");
    formats(tl_bool_value(true), "d", "1");
    formats(tl_bool_value(false), ".1f", "0.0");
}

Test(test_format, other_values_are_aligned_as_text)
{
    tl_value one[1] = {tl_int_value(1)}, v = seq(TL_V_LIST, 1, one);

    formats(v, ">5", "  [1]");
    tl_unref(v);
    formats(tl_none(), "^6", " none ");
}

Test(test_format, tensor_of_one_element_is_its_number)
{
    int64_t size[2] = {1, 1};
    tl_tensor *t;
    tl_value v;

    cr_assert_eq(tl_tensor_new(&t, pool, TL_i64, 2, size, &diag), TL_OK);
    tl_tensor_set_i(t, 0, 7);
    v = tl_tensor_value_take(t);
    formats(v, "03d", "007");
    tl_unref(v);
}

Test(test_format, tensor_of_two_elements_has_no_format)
{
    int64_t size[1] = {2};
    tl_tensor *t;
    tl_value v;

    cr_assert_eq(tl_tensor_new(&t, pool, TL_f32, 1, size, &diag), TL_OK);
    v = tl_tensor_value_take(t);
    cr_expect_eq(format(v, ".2f"), TL_ERR_PROGRAM);
    cr_expect_str_eq(diag.last->message,
                     "a format needs one element, got f32[2]");
    tl_unref(v);
}

/* Formatting `v` fails with this message. */
static void refuses(tl_value v, const char *spec, const char *message)
{
    cr_expect_eq(format(v, spec), TL_ERR_PROGRAM, "%s", spec);
    cr_assert_not_null(diag.last);
    cr_expect_eq(diag.last->code, TL_E0220);
    cr_expect_str_eq(diag.last->message, message);
    tl_diag_clear(&diag);
}

Test(test_format, bad_specs_are_explained)
{
    tl_value s = str("a");

    refuses(tl_int_value(1), "5q",
            "format \"5q\": `q` is not understood at character 2");
    refuses(tl_int_value(1), ".", "format \".\": digits expected after `.`");
    refuses(tl_int_value(1), "999999999",
            "format \"999999999\": the width is over 100000");
    refuses(tl_int_value(1), ".2",
            "format \".2\": an int has no precision; `f` gives decimals");
    refuses(tl_float_value(1), "d", "format type `d` is not for float");
    refuses(s, "d", "format type `d` is not for str");
    refuses(s, "+", "format \"+\": `=`, signs, `#` and `,` are for numbers");
    refuses(tl_int_value(-1), "c", "-1 is not a character");
    tl_unref(s);
}
