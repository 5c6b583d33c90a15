/* bi_char.c - classes and cases of characters, from ranges. */
#include "interp/bi_char.h"

#include <stddef.h>

/* Lower-case letters lo .. hi, whose upper case is `delta` below; step 2:
 * every other one, upper and lower case alternate. */
static const struct cased {
    uint32_t lo, hi, step, delta;
} cased[] = {
    {'a', 'z', 1, 32},
    {0xe0, 0xf6, 1, 32},
    {0xf8, 0xfe, 1, 32},
    {0x101, 0x137, 2, 1},
    {0x13a, 0x148, 2, 1},
    {0x14b, 0x177, 2, 1},
    {0x17a, 0x17e, 2, 1},
    {0x3ac, 0x3ac, 1, 0x3ac - 0x386},
    {0x3ad, 0x3af, 1, 0x3ad - 0x388},
    {0x3b1, 0x3c1, 1, 32},
    {0x3c3, 0x3cb, 1, 32},
    {0x3cc, 0x3cc, 1, 0x3cc - 0x38c},
    {0x3cd, 0x3ce, 1, 0x3cd - 0x38e},
    {0x430, 0x44f, 1, 32},
    {0x450, 0x45f, 1, 80},
    {0x461, 0x481, 2, 1},
    {0x48b, 0x4bf, 2, 1},
};

#define NCASED (sizeof(cased) / sizeof(*cased))

uint32_t tl_char_upper(uint32_t c)
{
    if (c == 0xff) {
        return 0x178;
    }
    if (c == 0x3c2) { /* final sigma */
        return 0x3a3;
    }
    for (size_t i = 0; i < NCASED; i++) {
        if (c >= cased[i].lo && c <= cased[i].hi &&
            (c - cased[i].lo) % cased[i].step == 0) {
            return c - cased[i].delta;
        }
    }
    return c;
}

uint32_t tl_char_lower(uint32_t c)
{
    if (c == 0x178) {
        return 0xff;
    }
    for (size_t i = 0; i < NCASED; i++) {
        uint32_t lo = cased[i].lo - cased[i].delta;
        uint32_t hi = cased[i].hi - cased[i].delta;

        if (c >= lo && c <= hi && (c - lo) % cased[i].step == 0) {
            return c + cased[i].delta;
        }
    }
    return c;
}

bool tl_char_is_space(uint32_t c)
{
    return (c >= 0x09 && c <= 0x0d) || (c >= 0x1c && c <= 0x20) ||
           c == 0x85 || c == 0xa0 || c == 0x1680 ||
           (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 ||
           c == 0x202f || c == 0x205f || c == 0x3000;
}

bool tl_char_is_digit(uint32_t c)
{
    return c >= '0' && c <= '9';
}

bool tl_char_is_alpha(uint32_t c)
{
    if (c < 0x80) {
        return (c | 0x20) >= 'a' && (c | 0x20) <= 'z';
    }
    if (c < 0xc0) {
        return c == 0xaa || c == 0xb5 || c == 0xba;
    }
    return c != 0xd7 && c != 0xf7 &&        /* times, divided by */
           !(c >= 0x2000 && c <= 0x2bff) && /* punctuation, symbols */
           !(c >= 0x3000 && c <= 0x303f) &&
           !(c >= 0xe000 && c <= 0xf8ff) && /* private use */
           !(c >= 0xfe00 && c <= 0xfe6f) &&
           !(c >= 0xff00 && c <= 0xff20) && /* full-width signs, digits */
           !(c >= 0x1f000 && c <= 0x1faff); /* pictures */
}
