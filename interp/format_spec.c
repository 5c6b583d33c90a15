/* format_spec.c - Python's format mini-language, f"{v:>10.3f}".
 *
 *     [[fill]align][sign][#][0][width][, or _][.precision][type]
 *
 * A spec is parsed into a struct, the value is written without sign and
 * padding into parts (prefix, digits, rest), and the parts are grouped and
 * padded.  https://docs.python.org/3/library/string.html#formatspec */
#include "interp/format.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/utf8.h"
#include "runtime/tensor/print.h"

#define MAX_WIDTH 100000 /* of width and precision */

typedef struct spec {
    const char *text; /* the whole, for messages */
    size_t len;
    char fill[4];
    size_t fill_len;
    char align; /* < > = ^, or 0: by type */
    char sign;  /* + - space */
    bool alt;   /* # */
    bool zero;  /* 0 before the width */
    int64_t width;
    char group;        /* , _ or 0 */
    int64_t precision; /* -1: none */
    char type;         /* 0: none */
} spec;

/* A number in pieces: sign, prefix, digits before the point, the rest. */
typedef struct number {
    char sign;          /* or 0 */
    const char *prefix; /* "0x", or "" */
    const char *digits;
    size_t ndigits;
    const char *rest;
    size_t nrest;
    size_t group; /* size of a group of digits */
} number;

/* ---- parsing ----------------------------------------------------------- */

static tl_status bad_spec(const spec *s, tl_diag *diag, const char *what)
{
    int n = s->len > 40 ? 40 : (int)s->len;

    (void)tl_fail(diag, TL_E0220, "format \"%.*s\": %s", n, s->text, what);
    tl_diag_help(diag, "the form is [[fill]align][sign][#][0][width][,]"
                       "[.precision][type], as in `>10.3f`");
    return TL_ERR_PROGRAM;
}

static bool is_align(char c)
{
    return c == '<' || c == '>' || c == '=' || c == '^';
}

/* [[fill]align], where fill is any character. */
static size_t parse_align(spec *s)
{
    uint32_t cp;
    size_t n = s->len == 0 ? 0 : tl_utf8_decode(s->text, s->len, &cp);

    if (n > 0 && n < s->len && is_align(s->text[n])) {
        memcpy(s->fill, s->text, n);
        s->fill_len = n;
        s->align = s->text[n];
        return n + 1;
    }
    if (s->len > 0 && is_align(s->text[0])) {
        s->align = s->text[0];
        return 1;
    }
    return 0;
}

/* Digits from position *i on; -1 if they are too many. */
static int64_t parse_int(const spec *s, size_t *i)
{
    int64_t n = 0;

    while (*i < s->len && s->text[*i] >= '0' && s->text[*i] <= '9') {
        n = n * 10 + (s->text[*i] - '0');
        if (n > MAX_WIDTH) {
            return -1;
        }
        (*i)++;
    }
    return n;
}

static bool accept(const spec *s, size_t *i, const char *set)
{
    if (*i < s->len && s->text[*i] != '\0' &&
        strchr(set, s->text[*i]) != NULL) {
        (*i)++;
        return true;
    }
    return false;
}

static tl_status parse_precision(spec *s, size_t *i, tl_diag *diag)
{
    size_t start = *i;

    s->precision = parse_int(s, i);
    if (*i == start) {
        return bad_spec(s, diag, "digits expected after `.`");
    }
    if (s->precision < 0) {
        return bad_spec(s, diag, "the precision is over 100000");
    }
    return TL_OK;
}

static tl_status parse_type(spec *s, size_t i, tl_diag *diag)
{
    char what[64];

    if (accept(s, &i, "bcdeEfFgGnosxX%")) {
        s->type = s->text[i - 1];
    }
    if (i == s->len) {
        return TL_OK;
    }
    snprintf(what, sizeof(what), "`%c` is not understood at character %zu",
             (unsigned char)s->text[i] < 0x80 ? s->text[i] : '?', i + 1);
    return bad_spec(s, diag, what);
}

static tl_status parse(spec *s, tl_diag *diag)
{
    size_t i = parse_align(s);

    s->sign = accept(s, &i, "+- ") ? s->text[i - 1] : '-';
    s->alt = accept(s, &i, "#");
    s->zero = accept(s, &i, "0");
    s->width = parse_int(s, &i);
    if (s->width < 0) {
        return bad_spec(s, diag, "the width is over 100000");
    }
    s->group = accept(s, &i, ",_") ? s->text[i - 1] : 0;
    s->precision = -1;
    if (accept(s, &i, ".")) {
        TL_TRY(parse_precision(s, &i, diag));
    }
    if (s->fill_len == 0) {
        s->fill[0] = s->zero ? '0' : ' ';
        s->fill_len = 1;
    }
    return parse_type(s, i, diag);
}

/* ---- padding ----------------------------------------------------------- */

static int64_t count_chars(const char *s, size_t len)
{
    int64_t n = 0;

    for (size_t i = 0; i < len; i++) {
        n += ((unsigned char)s[i] & 0xc0) != 0x80;
    }
    return n;
}

static void put_fill(const spec *s, int64_t n, tl_buf *out)
{
    for (int64_t i = 0; i < n; i++) {
        tl_buf_add(out, s->fill, s->fill_len);
    }
}

static void put_padded(const spec *s, const char *text, size_t len,
                       char align, tl_buf *out)
{
    int64_t pad = s->width - count_chars(text, len), before = 0;

    if (pad < 0) {
        pad = 0;
    }
    if (align == '>') {
        before = pad;
    } else if (align == '^') {
        before = pad / 2;
    }
    put_fill(s, before, out);
    tl_buf_add(out, text, len);
    put_fill(s, pad - before, out);
}

/* Digits with a separator between groups, after `zeros` zeros. */
static void put_digits(const spec *s, const number *n, size_t zeros,
                       tl_buf *out)
{
    size_t total = zeros + n->ndigits;

    for (size_t i = 0; i < total; i++) {
        if (s->group != 0 && i > 0 && (total - i) % n->group == 0) {
            tl_buf_putc(out, s->group);
        }
        tl_buf_putc(out, i < zeros ? '0' : n->digits[i - zeros]);
    }
}

static size_t grouped_len(const spec *s, const number *n, size_t digits)
{
    if (s->group == 0 || digits == 0) {
        return digits;
    }
    return digits + (digits - 1) / n->group;
}

/* Zeros that fill the width between prefix and digits, groups counted. */
static size_t count_zeros(const spec *s, const number *n, size_t fixed)
{
    size_t zeros = 0;

    while ((int64_t)(fixed + grouped_len(s, n, n->ndigits + zeros)) <
           s->width) {
        zeros++;
    }
    return zeros;
}

static void put_number(const spec *s, const number *n, tl_buf *out)
{
    char align = s->align != 0 ? s->align : s->zero ? '=' : '>';
    bool zeros = align == '=' && s->fill_len == 1 && s->fill[0] == '0';
    size_t fixed = (n->sign != 0) + strlen(n->prefix) + n->nrest;
    tl_buf text;

    tl_buf_init(&text);
    if (n->sign != 0) {
        tl_buf_putc(&text, n->sign);
    }
    tl_buf_puts(&text, n->prefix);
    if (align == '=' && !zeros) { /* pad between sign and digits */
        put_fill(s,
                 s->width - (int64_t)(fixed + grouped_len(s, n, n->ndigits)),
                 &text);
    }
    put_digits(s, n, zeros ? count_zeros(s, n, fixed) : 0, &text);
    tl_buf_add(&text, n->rest, n->nrest);
    put_padded(s, tl_buf_str(&text), text.len, align, out);
    out->failed |= text.failed;
    tl_buf_fini(&text);
}

static char sign_of(const spec *s, bool negative)
{
    return negative ? '-' : s->sign == '-' ? 0 : s->sign;
}

/* ---- strings ----------------------------------------------------------- */

static tl_status wrong_type(const spec *s, tl_value v, tl_diag *diag)
{
    (void)tl_fail(diag, TL_E0220, "format type `%c` is not for %s", s->type,
                  tl_value_type_str(v).s);
    if (v.tag == TL_V_FLOAT) {
        tl_diag_help(diag, "`.0f`, or int(...)");
    } else {
        tl_diag_help(diag, "`s`, or no type at all");
    }
    return TL_ERR_PROGRAM;
}

static size_t first_chars(const char *text, size_t len, int64_t n)
{
    size_t i = 0;

    while (i < len && (n > 0 || ((unsigned char)text[i] & 0xc0) == 0x80)) {
        n -= ((unsigned char)text[i] & 0xc0) != 0x80;
        i++;
    }
    return i;
}

static tl_status format_text(spec *s, tl_value v, tl_buf *out, tl_diag *diag)
{
    tl_buf text;
    tl_status st = TL_OK;
    size_t len;

    if (s->type != 0 && s->type != 's') {
        return wrong_type(s, v, diag);
    }
    if (s->align == '=' || s->sign != '-' || s->alt || s->group != 0) {
        return bad_spec(s, diag, "`=`, signs, `#` and `,` are for numbers");
    }
    tl_buf_init(&text);
    TL_GOTO(st, tl_format_str(v, &text, diag));
    len = text.len;
    if (s->precision >= 0) {
        len = first_chars(tl_buf_str(&text), len, s->precision);
    }
    put_padded(s, tl_buf_str(&text), len, s->align == 0 ? '<' : s->align,
               out);
    out->failed |= text.failed;
out:
    tl_buf_fini(&text);
    return st;
}

/* ---- ints -------------------------------------------------------------- */

static unsigned base_of(char type)
{
    return type == 'b'                  ? 2
           : type == 'o'                ? 8
           : type == 'x' || type == 'X' ? 16
                                        : 10;
}

static const char *prefix_of(const spec *s)
{
    if (!s->alt) {
        return "";
    }
    switch (s->type) {
    case 'b':
        return "0b";
    case 'o':
        return "0o";
    case 'x':
        return "0x";
    case 'X':
        return "0X";
    default:
        return "";
    }
}

/* Digits of `u` into the end of buf[64]; returns where they start. */
static size_t write_digits(uint64_t u, unsigned base, bool upper,
                           char buf[64])
{
    const char *set = upper ? "0123456789ABCDEF" : "0123456789abcdef";
    size_t at = 64;

    do {
        buf[--at] = set[u % base];
        u /= base;
    } while (u != 0);
    return at;
}

static tl_status format_char(const spec *s, int64_t i, tl_buf *out,
                             tl_diag *diag)
{
    char text[4];
    size_t n = i < 0 || i > 0x10ffff ? 0 : tl_utf8_encode((uint32_t)i, text);

    if (n == 0) {
        return tl_fail(diag, TL_E0220, "%lld is not a character",
                       (long long)i);
    }
    put_padded(s, text, n, s->align == 0 || s->align == '=' ? '<' : s->align,
               out);
    return TL_OK;
}

static tl_status format_int(const spec *s, int64_t i, tl_buf *out,
                            tl_diag *diag)
{
    unsigned base = base_of(s->type);
    uint64_t u = i < 0 ? -(uint64_t)i : (uint64_t)i;
    char buf[64];
    number n = {.sign = sign_of(s, i < 0),
                .prefix = prefix_of(s),
                .rest = "",
                .group = base == 10 ? 3 : 4};
    size_t at = write_digits(u, base, s->type == 'X', buf);

    if (s->precision >= 0) {
        return bad_spec(s, diag,
                        "an int has no precision; `f` gives decimals");
    }
    if (s->type == 'c') {
        return format_char(s, i, out, diag);
    }
    if (s->group == ',' && base != 10) {
        return bad_spec(s, diag, "`,` is for decimal numbers; use `_`");
    }
    n.digits = buf + at;
    n.ndigits = 64 - at;
    put_number(s, &n, out);
    return TL_OK;
}

/* ---- floats ------------------------------------------------------------ */

/* "1.500e+07" to "1.5e+07". */
static void strip_zeros(tl_buf *out, size_t mantissa)
{
    char *text = out->data, *exponent = text + mantissa;
    size_t len = mantissa, tail = out->len - mantissa;

    if (memchr(text, '.', mantissa) == NULL) {
        return;
    }
    while (text[len - 1] == '0') {
        len--;
    }
    len -= text[len - 1] == '.';
    memmove(text + len, exponent, tail + 1);
    out->len = len + tail;
}

/* Python's default: shortest digits; with a precision `g` that keeps a digit
 * behind the point. */
static void write_default(const spec *s, double f, tl_buf *out)
{
    int precision = s->precision == 0 ? 1 : (int)s->precision;
    const char *exponent;
    long power;

    if (s->precision < 0) {
        tl_print_f64(f, out);
        return;
    }
    tl_buf_printf(out, "%.*e", precision - 1, f);
    exponent = strchr(tl_buf_str(out), 'e');
    if (exponent == NULL) { /* out of memory */
        return;
    }
    power = strtol(exponent + 1, NULL, 10);
    if (power < -4 || power >= precision - 1) {
        if (!s->alt) {
            strip_zeros(out, (size_t)(exponent - out->data));
        }
        return;
    }
    tl_buf_clear(out);
    tl_buf_printf(out, s->alt ? "%#.*g" : "%.*g", precision, f);
    if (strchr(tl_buf_str(out), '.') == NULL) {
        tl_buf_puts(out, ".0");
    }
}

/* The digits of a finite `f` >= 0. */
static void write_float(const spec *s, double f, tl_buf *out)
{
    char fmt[8] = "%#.*f";
    int precision = s->precision < 0 ? 6 : (int)s->precision;

    if (s->type == 0) {
        write_default(s, f, out);
        return;
    }
    fmt[4] = s->type == '%' ? 'f' : s->type == 'n' ? 'g' : s->type;
    if (!s->alt) {
        memmove(fmt + 1, fmt + 2, 4);
    }
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    tl_buf_printf(out, fmt, precision, f);
#pragma GCC diagnostic pop
    if (s->type == '%') {
        tl_buf_putc(out, '%');
    }
}

static void write_nonfinite(const spec *s, double f, tl_buf *out)
{
    bool upper = s->type == 'E' || s->type == 'F' || s->type == 'G';

    if (f != f) {
        tl_buf_puts(out, upper ? "NAN" : "nan");
    } else {
        tl_buf_puts(out, upper ? "INF" : "inf");
    }
    if (s->type == '%') {
        tl_buf_putc(out, '%');
    }
}

static tl_status format_float(const spec *s, double f, tl_buf *out)
{
    number n = {.prefix = "", .group = 3};
    spec plain = *s;
    tl_buf text;

    tl_buf_init(&text);
    n.sign = sign_of(s, signbit(f) && f == f);
    f = fabs(s->type == '%' ? f * 100 : f);
    if (isfinite(f)) {
        write_float(s, f, &text);
        n.digits = tl_buf_str(&text);
        n.ndigits = strspn(n.digits, "0123456789");
        n.rest = n.digits + n.ndigits;
    } else {
        write_nonfinite(s, f, &text);
        n.digits = n.rest = tl_buf_str(&text);
        plain.group = 0;
    }
    n.nrest = strlen(n.rest);
    put_number(&plain, &n, out);
    out->failed |= text.failed;
    tl_buf_fini(&text);
    return TL_OK;
}

/* ---- dispatch ---------------------------------------------------------- */

static tl_status format_number(spec *s, tl_value v, tl_buf *out,
                               tl_diag *diag)
{
    bool whole = s->type != 0 && strchr("bcdoxX", s->type) != NULL;
    bool real = s->type != 0 && strchr("eEfFgG%", s->type) != NULL;

    if (s->type == 's' || (v.tag == TL_V_FLOAT && whole)) {
        return wrong_type(s, v, diag);
    }
    if (v.tag == TL_V_FLOAT || real) {
        return format_float(s, tl_number_f(v), out);
    }
    return format_int(s, v.tag == TL_V_BOOL ? (int64_t)v.b : v.i, out, diag);
}

/* The number in a tensor of one element. */
static tl_value read_tensor(const tl_tensor *t)
{
    switch (tl_dtype_kind(t->dtype)) {
    case TL_KIND_BOOL:
        return tl_bool_value(tl_tensor_get_i(t, 0) != 0);
    case TL_KIND_INT:
        return tl_int_value(tl_tensor_get_i(t, 0));
    default:
        return tl_float_value(tl_tensor_get_f(t, 0));
    }
}

static tl_status format_host(spec *s, tl_value v, tl_buf *out, tl_diag *diag)
{
    bool text = v.tag == TL_V_BOOL && (s->type == 0 || s->type == 's');

    if (tl_is_number(v) && !text) {
        return format_number(s, v, out, diag);
    }
    return format_text(s, v, out, diag);
}

static tl_status format_tensor(spec *s, tl_value v, tl_buf *out,
                               tl_diag *diag)
{
    if (v.tensor->numel == 1 && v.tensor->storage != NULL) {
        return format_host(s, read_tensor(v.tensor), out, diag);
    }
    (void)tl_fail(diag, TL_E0220, "a format needs one element, got %s",
                  tl_value_type_str(v).s);
    tl_diag_help(diag, "format one element or a reduction, or leave the "
                       "format out");
    return TL_ERR_PROGRAM;
}

tl_status tl_format_spec(tl_value v, const char *text, size_t len,
                         tl_buf *out, tl_diag *diag)
{
    spec s = {.text = text, .len = len};

    if (len == 0) {
        return tl_format_str(v, out, diag);
    }
    TL_TRY(parse(&s, diag));
    return v.tag == TL_V_TENSOR ? format_tensor(&s, v, out, diag)
                                : format_host(&s, v, out, diag);
}
