/* arena.h - a region of memory freed as a whole.
 *
 * AST, types and diagnostics live in the arena of their unit; nobody frees a
 * node, and nothing in an arena points to a shorter-lived one.  Every
 * allocation can fail (NULL).  Not thread-safe: one owner. */
#ifndef TL_BASE_ARENA_H
#define TL_BASE_ARENA_H

#include <stdarg.h>
#include <stddef.h>

typedef struct tl_arena_chunk tl_arena_chunk;

typedef struct tl_arena {
    tl_arena_chunk *chunks; /* newest first */
    char *next, *end;       /* free part of the newest chunk */
    size_t bytes;           /* handed out so far, for reports */
} tl_arena;

/* An empty arena; allocates nothing. */
void tl_arena_init(tl_arena *arena);

/* Free everything; the arena may be used again. */
void tl_arena_fini(tl_arena *arena);

/* `size` zeroed bytes, 16-byte aligned; NULL when out of memory. */
void *tl_arena_alloc(tl_arena *arena, size_t size);

/* Array of `count` zeroed elements; NULL also when the product overflows. */
void *tl_arena_array(tl_arena *arena, size_t count, size_t size);

/* Copy of `len` bytes with a NUL behind; NULL when out of memory. */
char *tl_arena_strndup(tl_arena *arena, const char *s, size_t len);

/* printf into the arena; NULL when out of memory. */
char *tl_arena_printf(tl_arena *arena, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

char *tl_arena_vprintf(tl_arena *arena, const char *fmt, va_list ap)
    __attribute__((format(printf, 2, 0)));

#define TL_ARENA_NEW(arena, type) ((type *)tl_arena_alloc(arena, sizeof(type)))

#endif
