/* source.c - source texts and the positions of bytes in them. */
#include <string.h>

#include "runtime/base/diag.h"
#include "runtime/base/mem.h"
#include "runtime/base/size.h"
#include "runtime/base/utf8.h"

void tl_sources_init(tl_sources *sources)
{
    *sources = (tl_sources){0};
}

static void free_source(tl_source *source)
{
    tl_free(source->name);
    tl_free(source->text);
    tl_free(source->lines);
}

void tl_sources_fini(tl_sources *sources)
{
    for (size_t i = 0; i < sources->len; i++) {
        free_source(&sources->items[i]);
    }
    tl_free(sources->items);
    tl_sources_init(sources);
}

static size_t count_lines(const char *text, size_t len)
{
    size_t n = 1;

    for (size_t i = 0; i < len; i++) {
        n += text[i] == '\n';
    }
    return n;
}

static bool find_lines(tl_source *source)
{
    size_t bytes, n = 0;

    source->nlines = count_lines(source->text, source->len);
    if (!tl_mul_size(&bytes, source->nlines, sizeof(*source->lines))) {
        return false;
    }
    source->lines = tl_malloc(bytes);
    if (!source->lines) {
        return false;
    }
    source->lines[n++] = 0;
    for (size_t i = 0; i < source->len; i++) {
        if (source->text[i] == '\n') {
            source->lines[n++] = (uint32_t)(i + 1);
        }
    }
    return true;
}

static bool reserve(tl_sources *sources)
{
    size_t cap = sources->cap ? sources->cap * 2 : 8;
    tl_source *items;

    if (sources->len < sources->cap) {
        return true;
    }
    items = tl_realloc(sources->items, cap * sizeof(*items));
    if (!items) {
        return false;
    }
    sources->items = items;
    sources->cap = cap;
    return true;
}

uint32_t tl_sources_add(tl_sources *sources, const char *name,
                        const char *text, size_t len)
{
    tl_source source = {0};

    if (len >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0) {
        text += 3;
        len -= 3;
    }
    if (len >= UINT32_MAX || sources->len >= UINT32_MAX - 1 ||
        !reserve(sources)) {
        return 0;
    }
    source.len = len;
    source.name = tl_strndup(name, strlen(name));
    source.text = tl_strndup(text, len);
    if (!source.name || !source.text || !find_lines(&source)) {
        free_source(&source);
        return 0;
    }
    sources->items[sources->len++] = source;
    return (uint32_t)sources->len;
}

const tl_source *tl_sources_get(const tl_sources *sources, uint32_t file)
{
    if (!sources || file == 0 || file > sources->len) {
        return NULL;
    }
    return &sources->items[file - 1];
}

/* Index of the line that holds `offset`: the last that starts at or before
 * it. */
static size_t find_line(const tl_source *source, uint32_t offset)
{
    size_t lo = 0, hi = source->nlines;

    while (hi - lo > 1) {
        size_t mid = lo + (hi - lo) / 2;

        if (source->lines[mid] <= offset) {
            lo = mid;
        } else {
            hi = mid;
        }
    }
    return lo;
}

void tl_source_position(const tl_source *source, uint32_t offset, int *line,
                        int *column)
{
    size_t end = offset < source->len ? offset : source->len;
    size_t at = find_line(source, (uint32_t)end);
    uint32_t cp;

    *line = (int)at + 1;
    *column = 1;
    for (size_t i = source->lines[at]; i < end; ++*column) {
        size_t n = tl_utf8_decode(source->text + i, source->len - i, &cp);

        i += n ? n : 1;
    }
}
