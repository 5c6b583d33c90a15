/* line_list.c - candidates of a completion, listed below the line. */
#include "interp/line.h"

#include <stdio.h>
#include <string.h>

enum {
    MOST_NOTED = 16, /* with signatures, one a line */
    MOST_LISTED = 120,
    GAP = 2
};

/* Columns of a terminal: code points, near enough for names. */
static int width(const char *s)
{
    int n = 0;

    for (; *s != '\0'; s++) {
        n += (*s & 0xc0) != 0x80;
    }
    return n;
}

/* What is shown of it: of a path its last part. */
static const char *shown(const char *text)
{
    const char *s = text, *next;

    while ((next = strchr(s, '/')) != NULL && next[1] != '\0') {
        s = next + 1;
    }
    return s;
}

static void list_noted(const tl_completion *c, int columns)
{
    for (size_t i = 0; i < c->len; i++) {
        const tl_candidate *k = &c->items[i];
        int room = columns - 2 - width(k->text);
        int note = k->note != NULL ? width(k->note) : 0;

        if (note > room && room > 6) {
            printf("  %s%.*s...\n", k->text, room - 4, k->note);
        } else {
            printf("  %s%s\n", k->text, k->note != NULL ? k->note : "");
        }
    }
}

static void list_columns(const tl_completion *c, size_t n, int columns)
{
    int widest = 1;

    for (size_t i = 0; i < n; i++) {
        int w = width(shown(c->items[i].text));

        widest = w > widest ? w : widest;
    }
    size_t across = (size_t)((columns - 2) / (widest + GAP));

    across = across < 1 ? 1 : across;
    size_t rows = (n + across - 1) / across;

    for (size_t r = 0; r < rows; r++) {
        printf("  ");
        for (size_t i = r; i < n; i += rows) {
            const char *s = shown(c->items[i].text);

            printf("%s%*s", s, i + rows < n ? widest + GAP - width(s) : 0,
                   "");
        }
        printf("\n");
    }
}

void tl_line_list(const tl_completion *c, int columns)
{
    bool noted = false;

    columns = columns < 20 ? 80 : columns;
    for (size_t i = 0; i < c->len; i++) {
        noted = noted || c->items[i].note != NULL;
    }
    if (noted && c->len <= MOST_NOTED) {
        list_noted(c, columns);
        return;
    }
    size_t n = c->len < MOST_LISTED ? c->len : MOST_LISTED;

    list_columns(c, n, columns);
    if (n < c->len) {
        printf("  ... and %zu more: type some letters\n", c->len - n);
    }
}
