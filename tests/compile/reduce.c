/* reduce.c - smaller programs with the same fault.
 *
 * A program is lines.  Three kinds of steps are tried until none helps:
 * without a run of lines (longer runs first; a line goes with the block under
 * it), a part of a line replaced by a part of itself, a number by a smaller
 * one.  A step that breaks the program shows nothing and is undone, so no
 * step needs to know the language. */
#include "tests/compile/reduce.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/check.h"

enum { MAX_TRIES = 4000 };

typedef struct reducer {
    tl_buf *text;
    reduce_test *shows;
    void *arg;
    int tries;
} reducer;

/* The text with [from, to) replaced; kept if it still shows the fault. */
static bool replace(reducer *r, size_t from, size_t to, const char *with,
                    size_t len)
{
    tl_buf made;

    if (r->tries >= MAX_TRIES) {
        return false;
    }
    r->tries++;
    tl_buf_init(&made);
    tl_buf_add(&made, r->text->data, from);
    tl_buf_add(&made, with, len);
    tl_buf_add(&made, r->text->data + to, r->text->len - to);
    TL_CHECK(!made.failed);
    if (!r->shows(r->arg, tl_buf_str(&made), made.len)) {
        tl_buf_fini(&made);
        return false;
    }
    tl_buf_fini(r->text);
    *r->text = made;
    return true;
}

/* ---- lines --------------------------------------------------------------- */

static size_t line_end(const tl_buf *t, size_t at)
{
    while (at < t->len && t->data[at] != '\n') {
        at++;
    }
    return at < t->len ? at + 1 : at;
}

static size_t indent_of(const tl_buf *t, size_t at)
{
    size_t n = 0;

    while (at + n < t->len && t->data[at + n] == ' ') {
        n++;
    }
    return n;
}

/* The end of the line at `at` and of the block under it. */
static size_t block_end(const tl_buf *t, size_t at)
{
    size_t indent = indent_of(t, at), end = line_end(t, at);

    while (end < t->len && indent_of(t, end) > indent) {
        end = line_end(t, end);
    }
    return end;
}

static bool drop_lines(reducer *r, int run)
{
    bool any = false;

    for (size_t at = 0; at < r->text->len;) {
        size_t end = at;

        for (int i = 0; i < run && end < r->text->len; i++) {
            end = block_end(r->text, end);
        }
        if (replace(r, at, end, "", 0)) {
            any = true;
        } else {
            at = line_end(r->text, at);
        }
    }
    return any;
}

/* The head of a block goes, its lines stay. */
static bool flatten(reducer *r)
{
    bool any = false;

    for (size_t at = 0; at < r->text->len; at = line_end(r->text, at)) {
        size_t first = line_end(r->text, at), end = block_end(r->text, at);
        tl_buf body;

        if (end == first) {
            continue;
        }
        tl_buf_init(&body);
        for (size_t p = first; p < end; p = line_end(r->text, p)) {
            tl_buf_add(&body, r->text->data + p + 4,
                       line_end(r->text, p) - p - 4);
        }
        any |= replace(r, at, end, tl_buf_str(&body), body.len);
        tl_buf_fini(&body);
    }
    return any;
}

/* ---- parts of lines ------------------------------------------------------ */

static bool is_open(char c)
{
    return c == '(' || c == '[';
}

/* The bracket that closes the one at `at`, or the end of the line. */
static size_t closing(const tl_buf *t, size_t at)
{
    int depth = 0;

    for (; at < t->len && t->data[at] != '\n'; at++) {
        char c = t->data[at];

        depth += is_open(c) - (c == ')' || c == ']');
        if (depth == 0) {
            return at;
        }
    }
    return at;
}

static size_t word_start(const tl_buf *t, size_t at)
{
    while (at > 0 && (isalnum((unsigned char)t->data[at - 1]) ||
                      t->data[at - 1] == '_' || t->data[at - 1] == '.')) {
        at--;
    }
    return at;
}

/* f(a, b) and (a + b) become a, or b. */
static bool unwrap(reducer *r)
{
    bool any = false;

    for (size_t at = 0; at < r->text->len; at++) {
        size_t end, start, from;

        if (!is_open(r->text->data[at])) {
            continue;
        }
        end = closing(r->text, at);
        if (end >= r->text->len || r->text->data[end] == '\n') {
            continue;
        }
        start = word_start(r->text, at);
        from = at + 1;
        for (size_t p = at + 1; p <= end; p++) {
            char c = r->text->data[p];
            bool operator = c == ' ' && p > from && p + 2 < end &&
                            r->text->data[p + 2] == ' ';

            if (c == ',' || p == end || operator) {
                if (p > from && (from > at + 1 || p < end || start < at ||
                                 true)) {
                    char part[600];
                    size_t n = p - from;

                    if (n < sizeof(part)) {
                        memcpy(part, r->text->data + from, n);
                        if (replace(r, start, end + 1, part, n)) {
                            any = true;
                            break;
                        }
                    }
                }
                from = c == ',' ? p + 2 : p + 3;
                p = operator ? p + 2 : p;
            } else if (is_open(c)) {
                p = closing(r->text, p);
            }
        }
    }
    return any;
}

static bool shrink_numbers(reducer *r)
{
    bool any = false;

    for (size_t at = 1; at < r->text->len; at++) {
        size_t end = at;
        long value;
        char before = r->text->data[at - 1];

        if (!isdigit((unsigned char)r->text->data[at]) ||
            isalnum((unsigned char)before) || before == '.' ||
            before == '_') {
            continue;
        }
        value = strtol(r->text->data + at, NULL, 10);
        while (isdigit((unsigned char)r->text->data[end])) {
            end++;
        }
        for (long to = 0; to < value && to < 3; to++) {
            char digits[8];
            int n = snprintf(digits, sizeof(digits), "%ld", to);

            if (replace(r, at, end, digits, (size_t)n)) {
                any = true;
                break;
            }
        }
        at = end;
    }
    return any;
}

void reduce_program(tl_buf *text, reduce_test *shows, void *arg)
{
    reducer r = {.text = text, .shows = shows, .arg = arg};
    bool any = true;

    while (any && r.tries < MAX_TRIES) {
        any = false;
        for (int run = 16; run > 0; run /= 2) {
            any |= drop_lines(&r, run);
        }
        any |= flatten(&r);
        any |= unwrap(&r);
        any |= shrink_numbers(&r);
    }
}
