/* complete_scan.c - where in a text a cursor is: in code, a string or a
 * comment; in which call; behind which names.  The text need not parse. */
#include <ctype.h>
#include <string.h>

#include "interp/complete.h"

enum { MOST_OPEN = 256 }; /* brackets; deeper ones are not told apart */

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_' || (c & 0x80) != 0;
}

/* A string that starts at `i`: the index behind it, or `n` + 1 if the text
 * ends inside; *inner is where its characters begin. */
static size_t skip_string(const char *s, size_t i, size_t n, size_t *inner)
{
    char quote = s[i];
    size_t width = i + 2 < n && s[i + 1] == quote && s[i + 2] == quote ? 3 : 1;

    i += width;
    *inner = i;
    for (; i < n; i++) {
        if (s[i] == '\\') {
            i++;
        } else if (s[i] == quote &&
                   (width == 1 || (i + 2 < n && s[i + 1] == quote &&
                                   s[i + 2] == quote))) {
            return i + width;
        } else if (s[i] == '\n' && width == 1) {
            return i; /* never closed: the line is lost, the rest is not */
        }
    }
    return n + 1;
}

/* Is `s[i]`, the quote of a string, behind the f of an f-string? */
static bool is_format(const char *s, size_t i)
{
    return i > 0 && (s[i - 1] == 'f' || s[i - 1] == 'F') &&
           (i < 2 || !is_word(s[i - 2]));
}

/* The `{` of the field that the cursor is in, or SIZE_MAX. */
static size_t open_field(const char *s, size_t from, size_t n)
{
    size_t at = SIZE_MAX;

    for (size_t i = from; i < n; i++) {
        if (s[i] == '{' && i + 1 < n && s[i + 1] == '{') {
            i++;
        } else if (s[i] == '{') {
            at = i;
        } else if (s[i] == '}') {
            at = SIZE_MAX;
        }
    }
    return at;
}

static size_t skip_blanks(const char *s, size_t i, size_t n)
{
    while (i < n && (s[i] == ' ' || s[i] == '\t')) {
        i++;
    }
    return i;
}

size_t tl_place_path(const char *text, size_t end)
{
    size_t i = end;

    for (;;) {
        size_t was = i;

        if (i > 0 && text[i - 1] == ']') { /* [12] */
            size_t j = i - 1;

            while (j > 0 && isdigit((unsigned char)text[j - 1])) {
                j--;
            }
            if (j + 1 < i && j > 0 && text[j - 1] == '[') {
                i = j - 1;
                continue;
            }
        }
        while (i > 0 && is_word(text[i - 1])) {
            i--;
        }
        if (i == was || i == 0 || text[i - 1] != '.') {
            return i;
        }
        i--;
    }
}

/* Brackets that are open, innermost last. */
typedef struct brackets {
    size_t at[MOST_OPEN];
    size_t n;
} brackets;

static void code_char(const char *s, size_t i, size_t n, brackets *b,
                      tl_place *p)
{
    if (strchr("([{", s[i]) != NULL) {
        if (b->n < MOST_OPEN) {
            b->at[b->n] = i;
        }
        b->n++;
    } else if (strchr(")]}", s[i]) != NULL && b->n > 0) {
        b->n--;
    } else if (s[i] == '\n' && b->n == 0) {
        p->statement = skip_blanks(s, i + 1, n);
    }
}

/* Word, path and call in code. */
static void finish_code(const char *s, size_t cursor, const brackets *b,
                        tl_place *p)
{
    p->start = cursor;
    while (p->start > 0 && is_word(s[p->start - 1])) {
        p->start--;
    }
    p->dotted = p->start > 0 && s[p->start - 1] == '.' &&
                !(p->start > 1 && s[p->start - 2] == '.');
    p->path = p->dotted ? tl_place_path(s, p->start - 1) : p->start;
    if (b->n > 0 && b->n <= MOST_OPEN) {
        size_t at = b->at[b->n - 1];

        if (s[at] == '(' && at > 0 && is_word(s[at - 1])) {
            p->call = at;
        }
    }
}

tl_place tl_place_find(const char *s, size_t n)
{
    tl_place p = {.kind = TL_PLACE_CODE, .call = SIZE_MAX};
    brackets b;
    size_t i = 0;

    b.n = 0;
    p.statement = skip_blanks(s, 0, n);
    while (i < n) {
        size_t inner = 0, end;

        if (s[i] == '#') {
            while (i < n && s[i] != '\n') {
                i++;
            }
            if (i == n) {
                p.kind = TL_PLACE_COMMENT;
                return p;
            }
            continue;
        }
        if (s[i] != '"' && s[i] != '\'') {
            code_char(s, i, n, &b, &p);
            i++;
            continue;
        }
        end = skip_string(s, i, n, &inner);
        if (end <= n) {
            i = end;
            continue;
        }
        size_t field = is_format(s, i) ? open_field(s, inner, n) : SIZE_MAX;

        if (field != SIZE_MAX) { /* code again */
            i = field + 1;
            b.n = 0;
            continue;
        }
        p.kind = TL_PLACE_STRING;
        p.start = inner;
        return p;
    }
    finish_code(s, n, &b, &p);
    return p;
}
