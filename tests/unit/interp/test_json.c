/* test_json.c - JSON text to values and back. */
#include "interp/json.h"

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "interp/format.h"

static tl_diag diag;
static tl_buf text;

static void setup(void)
{
    tl_diag_init(&diag, NULL);
    tl_buf_init(&text);
}

static void teardown(void)
{
    tl_buf_fini(&text);
    cr_assert_eq(tl_obj_live(), 0);
    tl_diag_fini(&diag);
}

TestSuite(test_json, .init = setup, .fini = teardown);

/* The repr of what the text means. */
static void reads(const char *json, const char *want)
{
    tl_value v;

    cr_assert_eq(tl_json_to_value(json, strlen(json), &v, &diag), TL_OK, "%s",
                 json);
    tl_buf_clear(&text);
    cr_assert_eq(tl_format_repr(v, &text, &diag), TL_OK);
    cr_expect_str_eq(tl_buf_str(&text), want);
    tl_unref(v);
}

static void refuses(const char *json, const char *message)
{
    tl_value v;

    cr_expect_neq(tl_json_to_value(json, strlen(json), &v, &diag), TL_OK,
                  "%s", json);
    cr_assert_not_null(diag.last);
    cr_expect_eq(diag.last->code, TL_E0220);
    cr_expect_str_eq(diag.last->message, message);
    tl_diag_clear(&diag);
}

Test(test_json, values)
{
    reads(" null ", "none");
    reads("[true, false]", "[true, false]");
    reads("{\"a\": {\"b\": []}, \"c\": [{}]}",
          "{\"a\": {\"b\": []}, \"c\": [{}]}");
    reads("\t{ \"k\" :\r\n1 }", "{\"k\": 1}");
}

Test(test_json, numbers)
{
    reads("[0, -0, 12, -7]", "[0, 0, 12, -7]");
    reads("[9223372036854775807, -9223372036854775808]",
          "[9223372036854775807, -9223372036854775808]");
    reads("9223372036854775808", "9.223372036854776e+18");
    reads("[1.5, 1e3, -2.5E-3, 0.0]", "[1.5, 1000.0, -0.0025, 0.0]");
}

Test(test_json, strings)
{
    reads("\"a\\n\\t\\\"\\\\\\/\"", "\"a\\n\\t\\\"\\\\/\"");
    reads("\"\\u00e9\\u65e5\\ud83d\\ude00\"",
          "\"\xc3\xa9\xe6\x97\xa5\xf0\x9f\x98\x80\"");
    reads("\"\xc3\xa9\"", "\"\xc3\xa9\"");
}

Test(test_json, what_is_not_json)
{
    refuses("", "JSON, line 1, column 1: a value expected");
    refuses("[1,]", "JSON, line 1, column 4: a value expected");
    refuses("[1\n 2]", "JSON, line 2, column 2: `,` or `]` expected");
    refuses("{a: 1}", "JSON, line 1, column 2: a key in quotes expected");
    refuses("{\"a\" 1}", "JSON, line 1, column 6: `:` expected");
    refuses("1 2", "JSON, line 1, column 3: text behind the value");
    refuses("NaN", "JSON, line 1, column 1: a value expected");
    refuses("01", "JSON, line 1, column 1: a value expected");
    refuses("1.", "JSON, line 1, column 1: a value expected");
    refuses("-", "JSON, line 1, column 1: a value expected");
    refuses("\"a", "JSON, line 1, column 3: the string never ends");
    refuses("\"\\x\"", "JSON, line 1, column 4: unknown escape");
    refuses("\"\n\"",
            "JSON, line 1, column 2: control character in a string");
    refuses("\"\\ud800\"",
            "JSON, line 1, column 8: half of a surrogate pair");
    refuses("\"\\udc00\"",
            "JSON, line 1, column 8: half of a surrogate pair");
    refuses("\"\\u00g0\"",
            "JSON, line 1, column 7: four hex digits expected after \\u");
    refuses("\"\xff\"", "JSON, line 1, column 2: invalid UTF-8 in a string");
    refuses("{\"a\": 1, \"a\": 2}",
            "JSON, line 1, column 13: the key before here was there already");
}

Test(test_json, deep_text_fails_politely)
{
    char deep[3001];
    tl_value v;

    memset(deep, '[', 3000);
    deep[3000] = '\0';
    cr_expect_neq(tl_json_to_value(deep, 3000, &v, &diag), TL_OK);
    cr_expect_eq(diag.last->code, TL_E0224);
}

/* Writing what was read gives this text. */
static void rewrites(const char *json, int64_t indent, const char *want)
{
    tl_value v;

    cr_assert_eq(tl_json_to_value(json, strlen(json), &v, &diag), TL_OK);
    tl_buf_clear(&text);
    cr_assert_eq(tl_json_from_value(v, indent, &text, &diag), TL_OK);
    cr_expect_str_eq(tl_buf_str(&text), want);
    tl_unref(v);
}

Test(test_json, written_on_one_line)
{
    rewrites("{\"a\":[1,2.5,null],\"b\":{}}", -1,
             "{\"a\": [1, 2.5, null], \"b\": {}}");
    rewrites("\"\\u0001\\n\xc3\xa9\"", -1, "\"\\u0001\\n\xc3\xa9\"");
}

Test(test_json, written_with_indent)
{
    rewrites("{\"a\":[1,2],\"b\":[]}", 2,
             "{\n  \"a\": [\n    1,\n    2\n  ],\n  \"b\": []\n}");
}

Test(test_json, nan_has_no_form)
{
    cr_expect_neq(tl_json_from_value(tl_float_value(NAN), -1, &text, &diag),
                  TL_OK);
    cr_expect_str_eq(diag.last->message, "nan has no JSON form");
}
