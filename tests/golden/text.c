/* text.c - growable text and lists of lines for the golden runner. */
#include "tests/golden/golden.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *grow(void *ptr, size_t size)
{
    void *res = realloc(ptr, size);

    if (!res) {
        fputs("golden: out of memory\n", stderr);
        exit(2);
    }
    return res;
}

void text_add(text *t, const char *s, size_t len)
{
    if (t->len + len + 1 > t->cap) {
        t->cap = 2 * (t->len + len + 1);
        t->s = grow(t->s, t->cap);
    }
    memcpy(t->s + t->len, s, len);
    t->len += len;
    t->s[t->len] = '\0';
}

__attribute__((format(printf, 2, 0))) static void text_vprintf(
    text *t, const char *fmt, va_list args)
{
    va_list again;
    va_copy(again, args);
    int len = vsnprintf(NULL, 0, fmt, again);
    va_end(again);

    if (t->len + (size_t)len + 1 > t->cap) {
        t->cap = 2 * (t->len + (size_t)len + 1);
        t->s = grow(t->s, t->cap);
    }
    vsnprintf(t->s + t->len, (size_t)len + 1, fmt, args);
    t->len += (size_t)len;
}

void text_printf(text *t, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    text_vprintf(t, fmt, args);
    va_end(args);
}

void text_free(text *t)
{
    free(t->s);
    *t = (text){0};
}

char *format(const char *fmt, ...)
{
    text t = {0};
    va_list args;
    va_start(args, fmt);
    text_vprintf(&t, fmt, args);
    va_end(args);
    return t.s;
}

void lines_add(lines *l, const char *s, size_t len)
{
    if (l->len == l->cap) {
        l->cap = 2 * l->cap + 8;
        l->items = grow(l->items, l->cap * sizeof *l->items);
    }
    char *copy = grow(NULL, len + 1);
    memcpy(copy, s, len);
    copy[len] = '\0';
    l->items[l->len++] = copy;
}

void lines_free(lines *l)
{
    for (size_t i = 0; i < l->len; i++) {
        free(l->items[i]);
    }
    free(l->items);
    *l = (lines){0};
}

lines lines_split(const char *s)
{
    lines res = {0};

    while (*s) {
        size_t len = strcspn(s, "\n");
        lines_add(&res, s, len);
        s += len + (s[len] == '\n');
    }
    return res;
}

lines lines_words(const char *s)
{
    lines res = {0};
    text word = {0};

    for (;;) {
        s += strspn(s, " \t");
        if (!*s) {
            break;
        }
        text_add(&word, "", 0);
        bool quoted = false;
        for (; *s && (quoted || !strchr(" \t", *s)); s++) {
            if (*s == '"') {
                quoted = !quoted;
            } else {
                text_add(&word, s, 1);
            }
        }
        lines_add(&res, word.s, word.len);
        text_free(&word);
    }
    return res;
}

char *read_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (!file) {
        return NULL;
    }
    text t = {0};
    text_add(&t, "", 0);
    char chunk[4096];
    size_t n;
    while ((n = fread(chunk, 1, sizeof chunk, file)) > 0) {
        const char *at = chunk, *end = chunk + n;
        while (at < end) {
            const char *nul = memchr(at, '\0', (size_t)(end - at));
            const char *stop = nul ? nul : end;
            text_add(&t, at, (size_t)(stop - at));
            if (nul) {
                text_add(&t, "^@", 2);
            }
            at = stop + (nul != NULL);
        }
    }
    fclose(file);
    return t.s;
}

bool write_file(const char *path, const char *s)
{
    FILE *file = fopen(path, "wb");
    if (!file) {
        return false;
    }
    bool ok = fputs(s, file) >= 0;
    return fclose(file) == 0 && ok;
}
