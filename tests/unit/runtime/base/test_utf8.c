/* test_utf8.c - strict decoding and columns. */
#include <criterion/criterion.h>

#include <string.h>

#include "runtime/base/utf8.h"

static size_t decode(const char *s, uint32_t *cp)
{
    return tl_utf8_decode(s, strlen(s), cp);
}

Test(utf8, every_code_point_survives_a_round_trip)
{
    char text[4];
    uint32_t back;

    for (uint32_t cp = 1; cp <= 0x10ffff; cp++) {
        size_t n = tl_utf8_encode(cp, text);

        if (cp >= 0xd800 && cp <= 0xdfff) {
            cr_assert_eq(n, 0);
            continue;
        }
        cr_assert(n >= 1 && n <= 4);
        cr_assert_eq(tl_utf8_decode(text, n, &back), n, "U+%04X", cp);
        cr_assert_eq(back, cp);
    }
    cr_assert_eq(tl_utf8_encode(0x110000, text), 0);
}

Test(utf8, malformed_sequences_are_refused)
{
    static const char *const bad[] = {
        "\x80",             "\xbf",         "\xc0\xaf",     "\xc1\xbf",
        "\xe0\x80\xaf",     "\xe0\x9f\xbf", "\xed\xa0\x80", "\xf0\x80\x80\x80",
        "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xff",
        "\xc3",             "\xe2\x82",     "\xf0\x9f\x98", "\xc3(",
    };
    uint32_t cp;

    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        cr_expect_eq(decode(bad[i], &cp), 0, "case %zu", i);
        cr_expect_eq(cp, (unsigned char)bad[i][0]);
    }
}

Test(utf8, length_bounds_the_reading)
{
    uint32_t cp;

    cr_assert_eq(tl_utf8_decode("\xe6\xbc\xa2", 2, &cp), 0);
    cr_assert_eq(tl_utf8_decode("\xe6\xbc\xa2", 3, &cp), 3);
    cr_assert_eq(cp, 0x6f22);
}

Test(utf8, widths)
{
    cr_expect_eq(tl_utf8_width('a'), 1);
    cr_expect_eq(tl_utf8_width(0xfc), 1);
    cr_expect_eq(tl_utf8_width(0x3b1), 1);
    cr_expect_eq(tl_utf8_width(0x301), 0);
    cr_expect_eq(tl_utf8_width(0x6f22), 2);
    cr_expect_eq(tl_utf8_width(0x1f600), 2);
}

Test(utf8, unsafe_characters)
{
    cr_expect(tl_utf8_is_unsafe(0x1b));
    cr_expect(tl_utf8_is_unsafe(0x7f));
    cr_expect(tl_utf8_is_unsafe(0x9b));
    cr_expect(tl_utf8_is_unsafe(0x202e));
    cr_expect_not(tl_utf8_is_unsafe(' '));
    cr_expect_not(tl_utf8_is_unsafe(0xa0));
}
