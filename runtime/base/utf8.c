/* utf8.c - strict UTF-8, without the locale of the C library. */
#include "runtime/base/utf8.h"

/* Length that a first byte announces, 0 if it is none. */
static size_t announced_length(unsigned char c)
{
    if (c < 0x80) {
        return 1;
    }
    if (c >= 0xc2 && c <= 0xdf) {
        return 2;
    }
    if (c >= 0xe0 && c <= 0xef) {
        return 3;
    }
    return c >= 0xf0 && c <= 0xf4 ? 4 : 0;
}

size_t tl_utf8_decode(const char *s, size_t len, uint32_t *cp)
{
    static const uint32_t smallest[5] = {0, 0, 0x80, 0x800, 0x10000};
    const unsigned char *p = (const unsigned char *)s;
    size_t n = announced_length(p[0]);
    uint32_t c = n > 1 ? p[0] & (0xffu >> (n + 1)) : p[0];

    *cp = p[0];
    if (n == 0 || n > len) {
        return 0;
    }
    for (size_t i = 1; i < n; i++) {
        if ((p[i] & 0xc0) != 0x80) {
            return 0;
        }
        c = (c << 6) | (p[i] & 0x3fu);
    }
    if (c < smallest[n] || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff)) {
        return 0;
    }
    *cp = c;
    return n;
}

size_t tl_utf8_encode(uint32_t cp, char out[4])
{
    static const unsigned char mark[5] = {0, 0, 0xc0, 0xe0, 0xf0};
    size_t n = cp < 0x80 ? 1 : cp < 0x800 ? 2 : cp < 0x10000 ? 3 : 4;

    if (cp > 0x10ffff || (cp >= 0xd800 && cp <= 0xdfff)) {
        return 0;
    }
    for (size_t i = n; i-- > 1; cp >>= 6) {
        out[i] = (char)(0x80 | (cp & 0x3f));
    }
    out[0] = (char)(mark[n] | cp);
    return n;
}

typedef struct range {
    uint32_t first, last;
} range;

static bool in_ranges(const range *ranges, size_t n, uint32_t cp)
{
    for (size_t i = 0; i < n; i++) {
        if (cp >= ranges[i].first && cp <= ranges[i].last) {
            return true;
        }
    }
    return false;
}

int tl_utf8_width(uint32_t cp)
{
    static const range zero[] = {
        {0x0300, 0x036f}, {0x0483, 0x0489}, {0x0591, 0x05bd},
        {0x064b, 0x065f}, {0x200b, 0x200f}, {0x2060, 0x2064},
        {0x20d0, 0x20ff}, {0xfe00, 0xfe0f}, {0xfe20, 0xfe2f},
        {0xfeff, 0xfeff}, {0xe0100, 0xe01ef},
    };
    static const range wide[] = {
        {0x1100, 0x115f},   {0x2e80, 0x303e},   {0x3041, 0x33ff},
        {0x3400, 0x4dbf},   {0x4e00, 0x9fff},   {0xa000, 0xa4cf},
        {0xac00, 0xd7a3},   {0xf900, 0xfaff},   {0xfe30, 0xfe6f},
        {0xff00, 0xff60},   {0xffe0, 0xffe6},   {0x1f300, 0x1f64f},
        {0x1f680, 0x1f6ff}, {0x1f900, 0x1f9ff}, {0x20000, 0x3fffd},
    };

    if (cp < 0x300) {
        return 1;
    }
    if (in_ranges(zero, sizeof(zero) / sizeof(*zero), cp)) {
        return 0;
    }
    return in_ranges(wide, sizeof(wide) / sizeof(*wide), cp) ? 2 : 1;
}

bool tl_utf8_is_unsafe(uint32_t cp)
{
    return cp < 0x20 || (cp >= 0x7f && cp < 0xa0) || cp == 0x061c ||
           cp == 0x200e || cp == 0x200f ||
           (cp >= 0x202a && cp <= 0x202e) || (cp >= 0x2066 && cp <= 0x2069);
}
