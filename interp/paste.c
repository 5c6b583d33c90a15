/* paste.c - taking prompts, outputs and common indentation off a text. */
#include "interp/paste.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

typedef enum mark { MARK_NONE, MARK_FIRST, MARK_MORE } mark;

/* Text without control characters. */
static void add_plain(const char *text, size_t len, tl_buf *out)
{
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)text[i];

        if (c == '\r') {
            if (i + 1 == len || text[i + 1] != '\n') {
                tl_buf_putc(out, '\n');
            }
        } else if (c == '\t') {
            tl_buf_puts(out, "    ");
        } else if (c == '\n' || (c >= ' ' && c != 0x7f)) {
            tl_buf_putc(out, (char)c);
        }
    }
}

static size_t spaces(const char *s, size_t n)
{
    size_t i = 0;

    while (i < n && s[i] == ' ') {
        i++;
    }
    return i;
}

/* `In [12]:`, or its continuation `   ...:`; the length, or 0. */
static size_t ipython_mark(const char *s, size_t n, mark *which)
{
    size_t i = 4;

    if (n > 5 && memcmp(s, "In [", 4) == 0) {
        while (i < n && isdigit((unsigned char)s[i])) {
            i++;
        }
        *which = MARK_FIRST;
        return i + 1 < n && s[i] == ']' && s[i + 1] == ':' ? i + 2 : 0;
    }
    i = spaces(s, n);
    *which = MARK_MORE;
    return i > 0 && n - i >= 4 && memcmp(s + i, "...:", 4) == 0 ? i + 4 : 0;
}

/* The prompt that a line starts with; *len with the space behind it. */
static mark find_mark(const char *s, size_t n, size_t *len)
{
    static const struct {
        const char *text;
        mark which;
    } marks[] = {{"tl>", MARK_FIRST},
                 {"debug>", MARK_FIRST},
                 {">>>", MARK_FIRST},
                 {"..>", MARK_MORE},
                 {"...", MARK_MORE}};
    mark which = MARK_NONE;

    *len = ipython_mark(s, n, &which);
    for (size_t i = 0; *len == 0 && i < sizeof(marks) / sizeof(*marks); i++) {
        size_t m = strlen(marks[i].text);

        if (n >= m && memcmp(s, marks[i].text, m) == 0 &&
            (n == m || s[m] == ' ')) {
            *len = m;
            which = marks[i].which;
        }
    }
    if (*len == 0) {
        return MARK_NONE;
    }
    *len += *len < n && s[*len] == ' ';
    return which;
}

/* What is found out before lines are taken over. */
typedef struct layout {
    size_t indent;     /* that all lines share */
    size_t first;      /* line of the first prompt; SIZE_MAX: there is none */
    size_t first_text; /* the first line that is not blank */
} layout;

static size_t line_length(const char *s, size_t n)
{
    const char *end = memchr(s, '\n', n);

    return end != NULL ? (size_t)(end - s) : n;
}

static size_t common_indent(const char *s, size_t n)
{
    size_t least = SIZE_MAX;

    for (size_t i = 0; i < n;) {
        size_t len = line_length(s + i, n - i);
        size_t in = spaces(s + i, len);

        if (in < len && in < least) {
            least = in;
        }
        i += len + 1;
    }
    return least == SIZE_MAX ? 0 : least;
}

static layout look(const char *s, size_t n)
{
    layout l = {common_indent(s, n), SIZE_MAX, SIZE_MAX};
    size_t number = 0;

    for (size_t i = 0; i < n && l.first == SIZE_MAX; number++) {
        size_t len = line_length(s + i, n - i), mark_len;
        size_t in = len < l.indent ? len : l.indent;

        if (l.first_text == SIZE_MAX && spaces(s + i, len) < len) {
            l.first_text = number;
        }
        if (find_mark(s + i + in, len - in, &mark_len) == MARK_FIRST) {
            l.first = number;
        }
        i += len + 1;
    }
    return l;
}

void tl_paste_clean(const char *text, size_t len, tl_buf *out)
{
    tl_buf plain;
    size_t number = 0, start = out->len;

    tl_buf_init(&plain);
    add_plain(text, len, &plain);
    const char *s = tl_buf_str(&plain);
    layout l = look(s, plain.len);

    for (size_t i = 0; i < plain.len; number++) {
        size_t n = line_length(s + i, plain.len - i), skip = 0;
        size_t in = n < l.indent ? n : l.indent;
        bool kept = l.first == SIZE_MAX ||
                    find_mark(s + i + in, n - in, &skip) != MARK_NONE ||
                    (number == l.first_text && l.first == number + 1);

        if (kept && (out->len > start || in + skip < n)) {
            tl_buf_add(out, s + i + in + skip, n - in - skip);
            tl_buf_putc(out, '\n');
        }
        i += n + 1;
    }
    while (out->len > start && strchr("\n ", out->data[out->len - 1])) {
        out->data[--out->len] = '\0';
    }
    out->failed = out->failed || plain.failed;
    tl_buf_fini(&plain);
}
