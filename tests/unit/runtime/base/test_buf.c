/* test_buf.c - the growable string and its escapes. */
#include <criterion/criterion.h>

#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>

#include "runtime/base/buf.h"
#include "runtime/base/mem.h"

static tl_buf buf;

static const char *escaped(const char *s, size_t len)
{
    tl_buf_clear(&buf);
    tl_buf_put_escaped(&buf, s, len);
    return tl_buf_str(&buf);
}

static const char *json(const char *s, size_t len)
{
    tl_buf_clear(&buf);
    tl_buf_put_json(&buf, s, len);
    return tl_buf_str(&buf);
}

static void release(void)
{
    tl_buf_fini(&buf);
}

TestSuite(buf, .fini = release);

Test(buf, empty_is_the_empty_string)
{
    cr_assert_str_eq(tl_buf_str(&buf), "");
    cr_assert_eq(buf.len, 0);
}

Test(buf, appends_and_terminates)
{
    tl_buf_puts(&buf, "ab");
    tl_buf_putc(&buf, 'c');
    tl_buf_add(&buf, "d\0e", 3);
    cr_assert_eq(buf.len, 6);
    cr_assert_eq(memcmp(buf.data, "abcd\0e", 7), 0);
}

Test(buf, printf_grows_as_needed)
{
    for (int i = 0; i < 2000; i++) {
        tl_buf_printf(&buf, "%d,", i);
    }
    tl_buf_printf(&buf, "%1000s", "x");
    cr_assert_eq(buf.len, 10 * 2 + 90 * 3 + 900 * 4 + 1000 * 5 + 1000);
    cr_assert_eq(strlen(buf.data), buf.len);
    cr_assert_not(buf.failed);
}

Test(buf, printf_of_exactly_the_room_left)
{
    tl_buf_printf(&buf, "%63s", "a");
    cr_assert_eq(buf.cap, 64);
    tl_buf_printf(&buf, "%64s", "b");
    cr_assert_eq(buf.len, 127);
    cr_assert_eq(buf.data[126], 'b');
}

#define SAME_AS_C(...)                                                        \
    do {                                                                     \
        char wanted[200];                                                    \
                                                                             \
        snprintf(wanted, sizeof(wanted), __VA_ARGS__);                       \
        tl_buf_clear(&buf);                                                  \
        tl_buf_puts(&buf, ">");                                              \
        tl_buf_printf(&buf, __VA_ARGS__);                                    \
        cr_assert_str_eq(tl_buf_str(&buf) + 1, wanted);                      \
        cr_assert_eq(buf.len, strlen(wanted) + 1);                           \
    } while (0)

Test(buf, printf_writes_what_c_does)
{
    SAME_AS_C("no conversion");
    SAME_AS_C("100%% of %s, %c", "it", 'x');
    SAME_AS_C("%d %d %d %u", 0, INT_MIN, INT_MAX, UINT_MAX);
    SAME_AS_C("%ld %ld %lu", LONG_MIN, LONG_MAX, ULONG_MAX);
    SAME_AS_C("%lld %lld %llu", LLONG_MIN, LLONG_MAX, ULLONG_MAX);
    SAME_AS_C("%zu %zd", SIZE_MAX, (ssize_t)-1);
    SAME_AS_C("%s%s", "", "");
    SAME_AS_C("%d, %5d, %-5d|%05d", 1, 2, 3, 4);
    SAME_AS_C("%s %.2s %*s %.*s", "ab", "cde", 4, "f", 1, "gh");
    SAME_AS_C("%u %g %.17g %x %lx", 7u, 0.5, 0.1, 255u, 255ul);
    SAME_AS_C("%hd %i %p", (short)3, 4, (void *)&buf);
}

Test(buf, printf_without_memory_writes_nothing)
{
    char longer[100];

    memset(longer, 'x', sizeof(longer) - 1);
    longer[sizeof(longer) - 1] = '\0';
    tl_buf_puts(&buf, "kept");
    tl_mem_fail_at(1, false);
    tl_buf_printf(&buf, "%d and %s", 1, longer);
    cr_assert(buf.failed);
    cr_assert_str_eq(tl_buf_str(&buf), "kept");
}

Test(buf, out_of_memory_sticks_until_cleared)
{
    tl_buf_puts(&buf, "kept");
    tl_mem_fail_at(1, false);
    tl_buf_printf(&buf, "%500d", 1);
    cr_assert(buf.failed);
    tl_buf_puts(&buf, "dropped");
    cr_assert_str_eq(tl_buf_str(&buf), "kept");
    tl_buf_clear(&buf);
    tl_buf_puts(&buf, "new");
    cr_assert_not(buf.failed);
    cr_assert_str_eq(tl_buf_str(&buf), "new");
}

Test(buf, controls_are_escaped)
{
    cr_expect_str_eq(escaped("a\x1b[31mb\n\t\x7f", 10),
                     "a\\x1b[31mb\\x0a\\x09\\x7f");
    cr_expect_str_eq(escaped("a\0b", 3), "a\\x00b");
}

Test(buf, c1_controls_and_bidi_are_escaped)
{
    cr_expect_str_eq(escaped("\xc2\x9b", 2), "\\xc2\\x9b");
    cr_expect_str_eq(escaped("\xe2\x80\xae", 3), "\\xe2\\x80\\xae");
    cr_expect_str_eq(escaped("\xe2\x81\xa6", 3), "\\xe2\\x81\\xa6");
}

Test(buf, utf8_passes_and_broken_utf8_is_escaped)
{
    cr_expect_str_eq(escaped("\xc3\xbc\xe6\xbc\xa2", 5),
                     "\xc3\xbc\xe6\xbc\xa2");
    cr_expect_str_eq(escaped("\xff\xc3", 2), "\\xff\\xc3");
    cr_expect_str_eq(escaped("\xc0\xaf", 2), "\\xc0\\xaf");
    cr_expect_str_eq(escaped("\xed\xa0\x80", 3), "\\xed\\xa0\\x80");
}

Test(buf, json_strings)
{
    cr_expect_str_eq(json("a\"b\\c", 5), "a\\\"b\\\\c");
    cr_expect_str_eq(json("\b\t\n\v\f\r\x01", 7),
                     "\\b\\t\\n\\u000b\\f\\r\\u0001");
    cr_expect_str_eq(json("\xc3\xbc\xff", 3), "\xc3\xbc\xef\xbf\xbd");
}
