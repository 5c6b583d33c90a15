/* literal.c - numbers, strings and names of the source, decoded.
 *
 * Each function reports what is wrong with its own bytes and returns
 * something usable all the same, so that the parser sees no second error. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lang/habits.h"
#include "lang/parse_state.h"

#include "lang/parser.h"
#include "runtime/base/utf8.h"

/* ---- bytes --------------------------------------------------------------- */

static bool byte_allowed(const char *s, size_t i, size_t len)
{
    unsigned char c = (unsigned char)s[i];

    if (c == '\r') {
        return i + 1 < len && s[i + 1] == '\n';
    }
    return (c >= 0x20 && c != 0x7f) || c == '\n' || c == '\t';
}

tl_status tl_literal_check_bytes(tl_parser *ps)
{
    const char *s = ps->source->text;
    size_t len = ps->source->len;

    for (size_t i = 0; i < len;) {
        uint32_t cp, at = (uint32_t)i;
        size_t n = tl_utf8_decode(s + i, len - i, &cp);
        tl_span span = {ps->unit->file, at, at + 1};

        if (n == 0) {
            return tl_fail_at(ps->diag, TL_E0106, span,
                              "bad UTF-8 byte 0x%02X at offset %u",
                              (unsigned)(unsigned char)s[i], at);
        }
        if (n == 1 && !byte_allowed(s, i, len)) {
            return tl_fail_at(ps->diag, TL_E0105, span,
                              "byte 0x%02X at offset %u is not allowed",
                              (unsigned)(unsigned char)s[i], at);
        }
        i += n;
    }
    return TL_OK;
}

/* ---- numbers ------------------------------------------------------------- */

static bool is_digit(char c, int base)
{
    if (base == 16) {
        return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') ||
               (c >= 'A' && c <= 'F');
    }
    return c >= '0' && c < '0' + base;
}

/* 16, 8, 2 after 0x, 0o, 0b; else 10. */
static int number_base(const char *s, size_t len)
{
    if (len < 2 || s[0] != '0') {
        return 10;
    }
    switch (s[1] | 0x20) {
    case 'x':
        return 16;
    case 'o':
        return 8;
    case 'b':
        return 2;
    default:
        return 10;
    }
}

size_t tl_literal_extent(const char *s, size_t len)
{
    size_t i = 0;

    if (number_base(s, len) == 10) {
        return len;
    }
    while (i < len && s[i] != '+' && s[i] != '-') {
        i++; /* `0xe+1` is a sum */
    }
    return i;
}

/* Offset behind the digits at `i`; `_` stands between two digits. */
static size_t digits(const char *s, size_t i, size_t len, int base)
{
    while (i < len) {
        bool separator = s[i] == '_' && i > 0 && is_digit(s[i - 1], base) &&
                         i + 1 < len && is_digit(s[i + 1], base);

        if (!separator && !is_digit(s[i], base)) {
            break;
        }
        i++;
    }
    return i;
}

/* Offset of the first byte that does not belong to the number, len if all
 * do; *is_float says which kind it is. */
static size_t number_check(const char *s, size_t len, bool *is_float)
{
    int base = number_base(s, len);
    size_t i = base == 10 ? 0 : 2;
    size_t start = i;

    *is_float = false;
    i = digits(s, i, len, base);
    if (base != 10) {
        return i == start ? (len > 2 ? 2 : 1) : i;
    }
    if (i < len && s[i] == '.') {
        *is_float = true;
        i = digits(s, i + 1, len, 10);
    }
    if (i < len && (s[i] | 0x20) == 'e') {
        size_t exponent = i + 1;

        *is_float = true;
        exponent += exponent < len && (s[exponent] == '+' ||
                                       s[exponent] == '-');
        i = digits(s, exponent, len, 10);
        if (i == exponent) {
            return exponent < len ? exponent : len - 1;
        }
    }
    return i;
}

static unsigned digit_value(char c)
{
    return (unsigned)(c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10);
}

/* Value of the digits; false if it needs more than 64 bits. */
static bool int_value(const char *s, size_t len, int base, uint64_t *out)
{
    uint64_t value = 0;

    for (size_t i = base == 10 ? 0 : 2; i < len; i++) {
        if (s[i] != '_' &&
            (__builtin_mul_overflow(value, (uint64_t)base, &value) ||
             __builtin_add_overflow(value, digit_value(s[i]), &value))) {
            return false;
        }
    }
    *out = value;
    return true;
}

static int int_token(tl_parser *ps, const char *s, size_t len, tl_token *out)
{
    uint64_t value = 0;

    if (!int_value(s, len, number_base(s, len), &value) ||
        value > (uint64_t)INT64_MAX + 1) {
        tl_parse_error(ps, TL_E0108, out->span,
                       "integer %.*s does not fit 64 bits",
                       len > 40 ? 40 : (int)len, s);
        tl_parse_help(ps, "the largest is 9223372036854775807; write 1e20, "
                          "with an exponent, for a float");
        value = 0;
    }
    /* 2^63 is legal behind a minus; build.c sees to it. */
    out->i = value > INT64_MAX ? INT64_MIN : (int64_t)value;
    return T_INT;
}

static int float_token(tl_parser *ps, const char *s, size_t len,
                       tl_token *out)
{
    char *copy = tl_arena_alloc(&ps->scratch, len + 1);
    size_t n = 0;

    if (!copy) {
        tl_parse_oom(ps, len + 1);
        return T_FLOAT;
    }
    for (size_t i = 0; i < len; i++) {
        if (s[i] != '_') {
            copy[n++] = s[i];
        }
    }
    out->f = strtod(copy, NULL); /* the locale is never set: "." it is */
    return T_FLOAT;
}

/* What the kind of number that `s` begins like consists of. */
static const char *number_help(const char *s, size_t len)
{
    char base = len > 1 && s[0] == '0' ? (char)(s[1] | 0x20) : '0';

    return base == 'b'   ? "a binary number has digits 0 and 1: `0b101`"
           : base == 'o' ? "an octal number has digits 0 to 7: `0o17`"
           : base == 'x' ? "a hexadecimal number has digits 0 to f: `0xff`"
                         : "numbers are written `1_000`, `1.5`, `1e-5`, "
                           "`0xff`; a name starts with a letter";
}

int tl_literal_number(tl_parser *ps, const char *s, size_t len, tl_token *out)
{
    bool is_float;
    size_t bad = number_check(s, len, &is_float);

    if (bad < len) {
        uint32_t at = out->span.start + (uint32_t)bad;

        tl_parse_error(ps, TL_E0109, (tl_span){out->span.file, at, at + 1},
                       "malformed number `%.*s`", len > 40 ? 40 : (int)len,
                       s);
        if (s[len - 1] == '.' || (is_float && s[bad] == '.')) {
            tl_parse_help(ps, "a number has one point");
        } else {
            tl_parse_help(ps, "%s", number_help(s, len));
        }
        return is_float ? T_FLOAT : T_INT;
    }
    if (len > 1 && !is_float && s[0] == '0' && is_digit(s[1], 10) &&
        strspn(s, "0_") < len) {
        tl_parse_error(ps, TL_E0109, out->span,
                       "malformed number `%.*s`: it starts with 0",
                       len > 40 ? 40 : (int)len, s);
        tl_parse_help(ps, "octal numbers are written 0o17");
        return T_INT;
    }
    return is_float ? float_token(ps, s, len, out)
                    : int_token(ps, s, len, out);
}

/* ---- strings ------------------------------------------------------------- */

/* Value of up to `max` hexadecimal digits; *n is how many there were. */
static uint32_t hex(const char *s, size_t len, size_t max, size_t *n)
{
    uint32_t value = 0;
    size_t i = 0;

    for (; i < len && i < max && is_digit(s[i], 16); i++) {
        value = value * 16 + digit_value(s[i]);
    }
    *n = i;
    return value;
}

/* \u{1F600} or \u00e9, from behind the `u`; bytes read, 0 if malformed. */
static size_t unicode_escape(const char *s, size_t len, uint32_t *cp)
{
    size_t n;

    if (len > 0 && s[0] == '{') {
        *cp = hex(s + 1, len - 1, 6, &n);
        return n > 0 && n + 1 < len && s[n + 1] == '}' ? n + 2 : 0;
    }
    *cp = hex(s, len, 4, &n);
    return n == 4 ? 4 : 0;
}

static void bad_escape(tl_parser *ps, uint32_t offset, const char *s,
                       size_t len)
{
    uint32_t cp;
    size_t n = tl_utf8_decode(s + 1, len - 1, &cp);

    tl_parse_error(ps, TL_E0115,
                   (tl_span){ps->unit->file, offset,
                             offset + 1 + (uint32_t)n},
                   "unknown escape `\\%.*s`", (int)n, s + 1);
    tl_parse_help(ps, "valid are \\n \\t \\r \\0 \\\\ \\\" \\' \\xNN \\uNNNN "
                      "\\u{...}; a backslash is `\\\\`");
}

/* \xNN and \u: bytes read behind the letter, 0 if malformed. */
static size_t number_escape(const char *s, size_t len, char *out, size_t *n)
{
    uint32_t cp = 0;
    size_t used;

    if (s[0] == 'x') {
        cp = hex(s + 1, len - 1, 2, &used);
        used = used == 2 ? 2 : 0;
    } else {
        used = unicode_escape(s + 1, len - 1, &cp);
    }
    *n = used ? tl_utf8_encode(cp, out) : 0;
    return *n ? used : 0;
}

/* Decode the escape at s[0] == '\\' into `out`; returns the bytes read. */
static size_t escape(tl_parser *ps, const char *s, size_t len,
                     uint32_t offset, char *out, size_t *n)
{
    static const char from[] = "ntr\\\"'0", to[] = "\n\t\r\\\"'\0";
    const char *found = len > 1 ? memchr(from, s[1], sizeof(from) - 1) : NULL;
    size_t used;

    *n = 1;
    if (found) {
        *out = to[found - from];
        return 2;
    }
    if (s[1] == '\n' || (len > 2 && s[1] == '\r' && s[2] == '\n')) {
        *n = 0; /* the line goes on */
        return s[1] == '\n' ? 2 : 3;
    }
    if (s[1] == 'x' || s[1] == 'u') {
        used = number_escape(s + 1, len - 1, out, n);
        if (used) {
            return used + 2;
        }
    }
    bad_escape(ps, offset, s, len);
    *n = 0;
    return 2;
}

void tl_literal_string(tl_parser *ps, const char *s, size_t len,
                       uint32_t offset, bool fstring, tl_token *out)
{
    char *text = tl_arena_alloc(&ps->unit->arena, len + 1);
    size_t n = 0;

    out->text = (tl_text){"", 0};
    if (!text) {
        tl_parse_oom(ps, len + 1);
        return;
    }
    for (size_t i = 0; i < len;) {
        if (s[i] == '\\' && i + 1 < len) {
            size_t made;

            i += escape(ps, s + i, len - i, offset + (uint32_t)i, text + n,
                        &made);
            n += made;
        } else if (s[i] == '\r') {
            i++; /* CRLF counts as \n */
        } else {
            text[n++] = s[i];
            i += fstring && (s[i] == '{' || s[i] == '}') ? 2 : 1;
        }
    }
    out->text = (tl_text){text, n};
}

/* ---- names --------------------------------------------------------------- */

/* Greek letters may stand in names: formulas are full of them. */
static bool is_greek(uint32_t cp)
{
    return (cp >= 0x391 && cp <= 0x3a9 && cp != 0x3a2) ||
           (cp >= 0x3b1 && cp <= 0x3c9) || cp == 0x3d1 || cp == 0x3d5 ||
           cp == 0x3d6 || cp == 0x3f5;
}

static void bad_character(tl_parser *ps, const char *s, size_t n, uint32_t cp,
                          tl_span at)
{
    const char *ascii = tl_habit_lookalike(cp);

    tl_parse_error(ps, TL_E0113, at, "`%.*s` (U+%04X) is not allowed in a "
                   "name", (int)n, s, (unsigned)cp);
    if (ascii && strlen(ascii) == 1) {
        tl_parse_help(ps, "contains U+%04X, which looks like U+%04X (`%s`)",
                      (unsigned)cp, (unsigned)(unsigned char)ascii[0], ascii);
    } else if (ascii) {
        tl_parse_help(ps, "write `%s`", ascii);
    } else {
        tl_parse_help(ps, "names are made of letters a-z and A-Z, digits, "
                          "`_` and Greek letters");
    }
}

/* Copy the name, bad characters replaced by what they look like. */
static size_t clean_name(tl_parser *ps, const char *s, size_t len, tl_span at,
                         char *out)
{
    bool reported = false;
    size_t n = 0;

    for (size_t i = 0; i < len;) {
        uint32_t cp;
        size_t bytes = tl_utf8_decode(s + i, len - i, &cp);
        const char *copy = s + i;
        size_t ncopy = bytes;

        if (cp >= 0x80 && !is_greek(cp)) {
            uint32_t from = at.start + (uint32_t)i;
            const char *ascii = tl_habit_lookalike(cp);

            if (!reported) {
                bad_character(ps, s + i, bytes, cp,
                              (tl_span){at.file, from,
                                        from + (uint32_t)bytes});
            }
            reported = true;
            copy = ascii && strlen(ascii) == 1 ? ascii : "_";
            ncopy = 1;
            ps->quiet_line |= !ascii || strlen(ascii) != 1;
        }
        memcpy(out + n, copy, ncopy);
        n += ncopy;
        i += bytes;
    }
    return n;
}

static bool is_ascii(const char *s, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if ((unsigned char)s[i] >= 0x80) {
            return false;
        }
    }
    return true;
}

const tl_sym *tl_literal_name(tl_parser *ps, const char *s, size_t len,
                              tl_span at)
{
    static const tl_sym unnamed = {.len = 1, .text = "_"};
    const tl_sym *sym;

    if (!is_ascii(s, len)) {
        char *copy = tl_arena_alloc(&ps->scratch, len + 1);

        if (!copy) {
            tl_parse_oom(ps, len + 1);
            return &unnamed;
        }
        len = clean_name(ps, s, len, at, copy);
        s = copy;
    }
    sym = tl_intern_get(ps->lang->names, s, len);
    if (!sym) {
        tl_parse_oom(ps, len);
        return &unnamed;
    }
    return sym;
}
