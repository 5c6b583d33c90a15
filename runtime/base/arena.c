/* arena.c - bump allocation from chunks of growing size.
 *
 * Chunks come zeroed, and no part of one is handed out twice, so allocating
 * clears nothing.  A request too large for a regular chunk gets one of its
 * own, put behind the newest, whose free part stays in use. */
#include "runtime/base/arena.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "runtime/base/asan.h"
#include "runtime/base/mem.h"
#include "runtime/base/size.h"

enum {
    ALIGN = 16,
    FIRST_CHUNK = 4 << 10,
    LARGEST_CHUNK = 1 << 20
};

struct tl_arena_chunk {
    tl_arena_chunk *older;
    size_t size; /* bytes behind the header */
    _Alignas(ALIGN) char data[];
};

void tl_arena_init(tl_arena *arena)
{
    *arena = (tl_arena){0};
}

void tl_arena_fini(tl_arena *arena)
{
    tl_arena_chunk *c = arena->chunks;

    while (c) {
        tl_arena_chunk *older = c->older;

        TL_UNPOISON(c->data, c->size);
        tl_free(c);
        c = older;
    }
    tl_arena_init(arena);
}

static tl_arena_chunk *new_chunk(size_t size)
{
    tl_arena_chunk *c;
    size_t total;

    if (!tl_add_size(&total, size, sizeof(*c))) {
        return NULL;
    }
    c = tl_calloc(1, total);
    if (c) {
        c->size = size;
        TL_POISON(c->data, size);
    }
    return c;
}

/* A chunk for this request alone. */
static void *alloc_alone(tl_arena *arena, size_t size)
{
    tl_arena_chunk *c = new_chunk(size);

    if (!c) {
        return NULL;
    }
    if (arena->chunks) {
        c->older = arena->chunks->older;
        arena->chunks->older = c;
    } else {
        arena->chunks = c;
        arena->next = arena->end = c->data + size;
    }
    return c->data;
}

static void *alloc_in_new_chunk(tl_arena *arena, size_t size)
{
    size_t want = FIRST_CHUNK;
    tl_arena_chunk *c;

    while (want < arena->bytes && want < LARGEST_CHUNK) {
        want *= 2;
    }
    if (size > want / 4) {
        return alloc_alone(arena, size);
    }
    c = new_chunk(want);
    if (!c) {
        return NULL;
    }
    c->older = arena->chunks;
    arena->chunks = c;
    arena->next = c->data + size;
    arena->end = c->data + want;
    return c->data;
}

void *tl_arena_alloc(tl_arena *arena, size_t size)
{
    size_t rounded;
    void *res;

    if (!tl_add_size(&rounded, size ? size : 1, ALIGN - 1)) {
        return NULL;
    }
    rounded &= ~(size_t)(ALIGN - 1);
    if (rounded <= (size_t)(arena->end - arena->next)) {
        res = arena->next;
        arena->next += rounded;
    } else {
        res = alloc_in_new_chunk(arena, rounded);
    }
    if (res) {
        arena->bytes += rounded;
        TL_UNPOISON(res, size);
    }
    return res;
}

void *tl_arena_array(tl_arena *arena, size_t count, size_t size)
{
    size_t bytes;

    return tl_mul_size(&bytes, count, size) ? tl_arena_alloc(arena, bytes)
                                            : NULL;
}

char *tl_arena_strndup(tl_arena *arena, const char *s, size_t len)
{
    size_t size;
    char *res;

    if (!tl_add_size(&size, len, 1)) {
        return NULL;
    }
    res = tl_arena_alloc(arena, size);
    if (res && len > 0) {
        memcpy(res, s, len);
    }
    return res;
}

char *tl_arena_vprintf(tl_arena *arena, const char *fmt, va_list ap)
{
    va_list again;
    char *res = NULL;
    int len;

    va_copy(again, ap);
    len = vsnprintf(NULL, 0, fmt, ap);
    if (len >= 0) {
        res = tl_arena_alloc(arena, (size_t)len + 1);
    }
    if (res) {
        vsnprintf(res, (size_t)len + 1, fmt, again);
    }
    va_end(again);
    return res;
}

char *tl_arena_printf(tl_arena *arena, const char *fmt, ...)
{
    va_list ap;
    char *res;

    va_start(ap, fmt);
    res = tl_arena_vprintf(arena, fmt, ap);
    va_end(ap);
    return res;
}
