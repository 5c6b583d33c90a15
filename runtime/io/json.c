/* json.c - a strict pull parser for the headers of untrusted files. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "runtime/io/json.h"

#include <string.h>

#include "runtime/base/utf8.h"

void tl_json_init(tl_json *j, char *text, size_t len)
{
    *j = (tl_json){.text = text, .len = len};
}

bool tl_json_fail(tl_json *j, const char *error)
{
    if (!j->error) {
        j->error = error;
    }
    return false;
}

static void skip_space(tl_json *j)
{
    while (j->at < j->len &&
           (j->text[j->at] == ' ' || j->text[j->at] == '\t' ||
            j->text[j->at] == '\n' || j->text[j->at] == '\r')) {
        j->at++;
    }
}

bool tl_json_accept(tl_json *j, char c)
{
    if (j->error) {
        return false;
    }
    skip_space(j);
    if (j->at < j->len && j->text[j->at] == c) {
        j->at++;
        return true;
    }
    return false;
}

bool tl_json_expect(tl_json *j, char c)
{
    if (tl_json_accept(j, c)) {
        return true;
    }
    switch (c) {
    case '{':
        return tl_json_fail(j, "`{` is missing");
    case '}':
        return tl_json_fail(j, "`,` or `}` is missing");
    case '[':
        return tl_json_fail(j, "`[` is missing");
    case ']':
        return tl_json_fail(j, "`,` or `]` is missing");
    case ':':
        return tl_json_fail(j, "`:` is missing");
    default:
        return tl_json_fail(j, "`,` is missing");
    }
}

/* Four hexadecimal digits at `at`; false if there are not. */
static bool hex4(const tl_json *j, size_t at, uint32_t *out)
{
    uint32_t v = 0;

    if (j->len - at < 4) {
        return false;
    }
    for (size_t i = at; i < at + 4; i++) {
        char c = j->text[i];

        if (c >= '0' && c <= '9') {
            v = v << 4 | (uint32_t)(c - '0');
        } else if ((c | 32) >= 'a' && (c | 32) <= 'f') {
            v = v << 4 | (uint32_t)((c | 32) - 'a' + 10);
        } else {
            return false;
        }
    }
    *out = v;
    return true;
}

/* The code point of \uXXXX (and its second half); `at` is behind the u. */
static bool unicode_escape(tl_json *j, uint32_t *cp)
{
    uint32_t low;

    if (!hex4(j, j->at, cp)) {
        return tl_json_fail(j, "\\u needs four hexadecimal digits");
    }
    j->at += 4;
    if (*cp >= 0xdc00 && *cp <= 0xdfff) {
        return tl_json_fail(j, "a lone surrogate in a string");
    }
    if (*cp >= 0xd800 && *cp <= 0xdbff) {
        if (j->len - j->at < 6 || j->text[j->at] != '\\' ||
            j->text[j->at + 1] != 'u' || !hex4(j, j->at + 2, &low) ||
            low < 0xdc00 || low > 0xdfff) {
            return tl_json_fail(j, "a lone surrogate in a string");
        }
        j->at += 6;
        *cp = 0x10000 + ((*cp - 0xd800) << 10) + (low - 0xdc00);
    }
    if (*cp == 0) {
        return tl_json_fail(j, "a NUL in a string");
    }
    return true;
}

/* Decode the escape at `at` (behind the backslash) to `to`; never longer
 * than its source. */
static bool escape(tl_json *j, char *to, size_t *n)
{
    static const char from[] = "\"\\/bfnrt", value[] = "\"\\/\b\f\n\r\t";
    uint32_t cp;
    char c;

    if (j->at >= j->len) {
        return tl_json_fail(j, "a string is not closed");
    }
    c = j->text[j->at];
    for (int i = 0; from[i]; i++) {
        if (c == from[i]) {
            *to = value[i];
            *n = 1;
            j->at++;
            return true;
        }
    }
    if (c != 'u') {
        return tl_json_fail(j, "an unknown escape in a string");
    }
    j->at++;
    if (!unicode_escape(j, &cp)) {
        return false;
    }
    *n = tl_utf8_encode(cp, to);
    return true;
}

bool tl_json_string(tl_json *j, tl_json_str *out)
{
    char *start, *to;

    if (!tl_json_accept(j, '"')) {
        return tl_json_fail(j, "a string is missing");
    }
    start = to = j->text + j->at;
    while (j->at < j->len) {
        unsigned char c = (unsigned char)j->text[j->at];
        uint32_t cp;
        size_t n = 0;

        if (c == '"') {
            j->at++;
            *to = '\0';
            *out = (tl_json_str){start, (size_t)(to - start)};
            return true;
        }
        if (c < 0x20) {
            return tl_json_fail(j, "a control character in a string");
        }
        if (c == '\\') {
            j->at++;
            if (!escape(j, to, &n)) {
                return false;
            }
            to += n;
            continue;
        }
        n = tl_utf8_decode(j->text + j->at, j->len - j->at, &cp);
        if (n == 0) {
            return tl_json_fail(j, "invalid UTF-8");
        }
        for (size_t i = 0; i < n; i++) {
            *to++ = j->text[j->at++];
        }
    }
    return tl_json_fail(j, "a string is not closed");
}

bool tl_json_uint(tl_json *j, uint64_t *out)
{
    uint64_t v = 0;
    size_t first;

    if (j->error) {
        return false;
    }
    skip_space(j);
    first = j->at;
    while (j->at < j->len && j->text[j->at] >= '0' && j->text[j->at] <= '9') {
        v = v * 10 + (uint64_t)(j->text[j->at] - '0');
        if (v > (uint64_t)1 << 53) {
            return tl_json_fail(j, "an integer over 2^53");
        }
        j->at++;
    }
    if (j->at == first) {
        return tl_json_fail(j, "an integer of digits alone is missing");
    }
    if (j->at - first > 1 && j->text[first] == '0') {
        return tl_json_fail(j, "an integer with a leading zero");
    }
    if (j->at < j->len && (j->text[j->at] == '.' || j->text[j->at] == 'e' ||
                           j->text[j->at] == 'E')) {
        return tl_json_fail(j, "a number that is not an integer");
    }
    *out = v;
    return true;
}

/* A number or a word: what they consist of. */
static bool skip_word(tl_json *j)
{
    size_t start = j->at;

    while (j->at < j->len && j->text[j->at] != '\0' &&
           strchr("+-.0123456789eEtrufalsn", j->text[j->at])) {
        j->at++;
    }
    return j->at > start || tl_json_fail(j, "a value is missing");
}

/* The items of a list, or of an object. */
static bool skip_items(tl_json *j, int depth, bool object)
{
    tl_json_str key;

    if (depth == 0) {
        return tl_json_fail(j, "nested too deeply");
    }
    if (tl_json_accept(j, object ? '}' : ']')) {
        return true;
    }
    do {
        if (object && (!tl_json_string(j, &key) || !tl_json_expect(j, ':'))) {
            return false;
        }
        if (!tl_json_skip(j, depth - 1)) {
            return false;
        }
    } while (tl_json_accept(j, ','));
    return tl_json_expect(j, object ? '}' : ']');
}

bool tl_json_skip(tl_json *j, int depth)
{
    tl_json_str s;

    if (tl_json_accept(j, '{')) {
        return skip_items(j, depth, true);
    }
    if (tl_json_accept(j, '[')) {
        return skip_items(j, depth, false);
    }
    if (j->error) {
        return false;
    }
    return j->at < j->len && j->text[j->at] == '"' ? tl_json_string(j, &s)
                                                   : skip_word(j);
}

bool tl_json_end(tl_json *j)
{
    if (j->error) {
        return false;
    }
    while (j->at < j->len) {
        if (j->text[j->at] != ' ') {
            return tl_json_fail(j, "something other than spaces behind the "
                                   "closing brace");
        }
        j->at++;
    }
    return true;
}
