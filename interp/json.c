/* json.c - JSON text to values: a recursive descent parser. */
#include "interp/json.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "interp/dict.h"
#include "runtime/base/size.h"
#include "runtime/base/utf8.h"

#define MAX_DEPTH 1000
#define MAX_NUMBER 400 /* characters of a number */

typedef struct parser {
    const char *start, *at, *end;
    int depth;
    tl_diag *diag;
} parser;

static tl_status parse_value(parser *p, tl_value *out);

/* ---- characters -------------------------------------------------------- */

static tl_status malformed(const parser *p, const char *what)
{
    int line = 1, column = 1;

    for (const char *c = p->start; c < p->at; c++) {
        column++;
        if (*c == '\n') {
            line++;
            column = 1;
        }
    }
    return tl_fail(p->diag, TL_E0220, "JSON, line %d, column %d: %s", line,
                   column, what);
}

static void skip_blanks(parser *p)
{
    while (p->at < p->end && (*p->at == ' ' || *p->at == '\n' ||
                              *p->at == '\t' || *p->at == '\r')) {
        p->at++;
    }
}

static bool accept(parser *p, char c)
{
    skip_blanks(p);
    if (p->at < p->end && *p->at == c) {
        p->at++;
        return true;
    }
    return false;
}

static bool accept_word(parser *p, const char *word)
{
    size_t n = strlen(word);

    if ((size_t)(p->end - p->at) < n || memcmp(p->at, word, n) != 0) {
        return false;
    }
    p->at += n;
    return true;
}

/* ---- strings ----------------------------------------------------------- */

/* Four hex digits; -1: they are not. */
static long hex4(parser *p)
{
    long n = 0;

    if (p->end - p->at < 4) {
        return -1;
    }
    for (int i = 0; i < 4; i++) {
        char c = *p->at++;
        const char *digits = "0123456789abcdef";
        const char *hit = c == '\0' ? NULL : strchr(digits, c | 0x20);

        if (c >= '0' && c <= '9') {
            hit = digits + (c - '0');
        }
        if (hit == NULL || (hit - digits < 10 && (c < '0' || c > '9'))) {
            return -1;
        }
        n = n * 16 + (hit - digits);
    }
    return n;
}

/* \uXXXX, of which a high surrogate needs its low one. */
static tl_status parse_unicode(parser *p, tl_buf *text)
{
    long cp = hex4(p), low;
    char bytes[4];
    size_t n;

    if (cp < 0) {
        return malformed(p, "four hex digits expected after \\u");
    }
    if (cp >= 0xd800 && cp < 0xdc00) {
        low = accept_word(p, "\\u") ? hex4(p) : -1;
        if (low < 0xdc00 || low > 0xdfff) {
            return malformed(p, "half of a surrogate pair");
        }
        cp = 0x10000 + ((cp - 0xd800) << 10) + (low - 0xdc00);
    }
    n = tl_utf8_encode((uint32_t)cp, bytes);
    if (n == 0) {
        return malformed(p, "half of a surrogate pair");
    }
    tl_buf_add(text, bytes, n);
    return TL_OK;
}

static tl_status parse_escape(parser *p, tl_buf *text)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    const char *hit;
    char c = p->at < p->end ? *p->at++ : '\0';

    if (c == 'u') {
        return parse_unicode(p, text);
    }
    hit = c == '\0' ? NULL : strchr(from, c);
    if (hit == NULL) {
        return malformed(p, "unknown escape");
    }
    tl_buf_putc(text, to[hit - from]);
    return TL_OK;
}

/* Plain characters up to the next quote, escape or control character. */
static tl_status parse_plain(parser *p, tl_buf *text)
{
    const char *from = p->at;
    uint32_t cp;

    while (p->at < p->end && *p->at != '"' && *p->at != '\\') {
        size_t n = 1;

        if ((unsigned char)*p->at >= 0x80) {
            n = tl_utf8_decode(p->at, (size_t)(p->end - p->at), &cp);
        }
        if (n == 0 || (unsigned char)*p->at < 0x20) {
            return malformed(p, n == 0 ? "invalid UTF-8 in a string"
                                       : "control character in a string");
        }
        p->at += n;
    }
    tl_buf_add(text, from, (size_t)(p->at - from));
    return TL_OK;
}

/* Behind the opening quote. */
static tl_status parse_string_into(parser *p, tl_buf *text)
{
    for (;;) {
        TL_TRY(parse_plain(p, text));
        if (p->at == p->end) {
            return malformed(p, "the string never ends");
        }
        if (*p->at++ == '"') {
            return TL_OK;
        }
        TL_TRY(parse_escape(p, text));
    }
}

static tl_status parse_string(parser *p, tl_value *out)
{
    tl_status st;
    tl_buf text;

    tl_buf_init(&text);
    st = parse_string_into(p, &text);
    if (st == TL_OK) {
        st = tl_str_from_buf(out, &text, p->diag);
    }
    tl_buf_fini(&text);
    return st;
}

/* ---- numbers ----------------------------------------------------------- */

static size_t digits(const parser *p, size_t n)
{
    while (p->at + n < p->end && p->at[n] >= '0' && p->at[n] <= '9') {
        n++;
    }
    return n;
}

static bool has(const parser *p, size_t n, const char *set)
{
    return p->at + n < p->end && p->at[n] != '\0' &&
           strchr(set, p->at[n]) != NULL;
}

/* Length of the number at p->at, 0 if there is none. */
static size_t number_len(const parser *p, bool *whole)
{
    size_t n = has(p, 0, "-"), m = digits(p, n);

    *whole = true;
    if (m == n || (p->at[n] == '0' && m > n + 1)) {
        return 0;
    }
    if (has(p, m, ".")) {
        *whole = false;
        n = m + 1;
        m = digits(p, n);
        if (m == n) {
            return 0;
        }
    }
    if (has(p, m, "eE")) {
        *whole = false;
        n = m + 1 + has(p, m + 1, "+-");
        m = digits(p, n);
        if (m == n) {
            return 0;
        }
    }
    return m;
}

static bool to_int(const char *s, int64_t *out)
{
    bool negative = *s == '-';
    int64_t n = 0;

    for (s += negative; *s != '\0'; s++) {
        int digit = *s - '0';

        if (!tl_mul_i64(&n, n, 10) ||
            !tl_add_i64(&n, n, negative ? -digit : digit)) {
            return false;
        }
    }
    *out = n;
    return true;
}

static tl_status parse_number(parser *p, tl_value *out)
{
    char text[MAX_NUMBER + 1];
    int64_t i;
    bool whole;
    size_t n = number_len(p, &whole);

    if (n == 0) {
        return malformed(p, "a value expected");
    }
    if (n > MAX_NUMBER) {
        return malformed(p, "a number of over 400 characters");
    }
    memcpy(text, p->at, n);
    text[n] = '\0';
    p->at += n;
    *out = whole && to_int(text, &i) ? tl_int_value(i)
                                     : tl_float_value(strtod(text, NULL));
    return TL_OK;
}

/* ---- arrays, objects --------------------------------------------------- */

static tl_status parse_items(parser *p, tl_value list)
{
    if (accept(p, ']')) {
        return TL_OK;
    }
    for (;;) {
        tl_value item;

        TL_TRY(parse_value(p, &item));
        TL_TRY(tl_list_push_take(list.seq, item, p->diag));
        if (accept(p, ']')) {
            return TL_OK;
        }
        if (!accept(p, ',')) {
            return malformed(p, "`,` or `]` expected");
        }
    }
}

static tl_status parse_entry(parser *p, tl_value dict)
{
    tl_value key, value;
    tl_status st;

    if (!accept(p, '"')) {
        return malformed(p, "a key in quotes expected");
    }
    TL_TRY(parse_string(p, &key));
    if (tl_dict_get_str(dict.dict, key.str->data, key.str->len) != NULL) {
        tl_unref(key);
        return malformed(p, "the key before here was there already");
    }
    st = accept(p, ':') ? parse_value(p, &value)
                        : malformed(p, "`:` expected");
    if (st != TL_OK) {
        tl_unref(key);
        return st;
    }
    return tl_dict_set_take(dict.dict, key, value, p->diag);
}

static tl_status parse_entries(parser *p, tl_value dict)
{
    if (accept(p, '}')) {
        return TL_OK;
    }
    for (;;) {
        TL_TRY(parse_entry(p, dict));
        if (accept(p, '}')) {
            return TL_OK;
        }
        if (!accept(p, ',')) {
            return malformed(p, "`,` or `}` expected");
        }
    }
}

/* Behind the opening bracket. */
static tl_status parse_container(parser *p, bool object, tl_value *out)
{
    tl_value v;
    tl_status st;

    if (p->depth >= MAX_DEPTH) {
        return tl_fail(p->diag, TL_E0224, "JSON nested deeper than %d",
                       MAX_DEPTH);
    }
    TL_TRY(object ? tl_dict_new(&v, p->diag)
                  : tl_seq_alloc(&v, TL_V_LIST, 0, p->diag));
    p->depth++;
    st = object ? parse_entries(p, v) : parse_items(p, v);
    p->depth--;
    if (st != TL_OK) {
        tl_unref(v);
        return st;
    }
    *out = v;
    return TL_OK;
}

static tl_status parse_value(parser *p, tl_value *out)
{
    skip_blanks(p);
    if (accept(p, '{')) {
        return parse_container(p, true, out);
    }
    if (accept(p, '[')) {
        return parse_container(p, false, out);
    }
    if (accept(p, '"')) {
        return parse_string(p, out);
    }
    if (accept_word(p, "null")) {
        *out = tl_none();
    } else if (accept_word(p, "true")) {
        *out = tl_bool_value(true);
    } else if (accept_word(p, "false")) {
        *out = tl_bool_value(false);
    } else {
        return parse_number(p, out);
    }
    return TL_OK;
}

tl_status tl_json_to_value(const char *text, size_t len, tl_value *out,
                           tl_diag *diag)
{
    parser p = {.start = text, .at = text, .end = text + len, .diag = diag};
    tl_value v;

    TL_TRY(parse_value(&p, &v));
    skip_blanks(&p);
    if (p.at != p.end) {
        tl_unref(v);
        return malformed(&p, "text behind the value");
    }
    *out = v;
    return TL_OK;
}
