/* intern.h - one address for each distinct string, so that names compare by
 * pointer.  Strings live as long as the table.  One table a context. */
#ifndef TL_BASE_INTERN_H
#define TL_BASE_INTERN_H

#include <stddef.h>
#include <stdint.h>

#include "runtime/base/arena.h"

/* An interned string: NUL-terminated, with its length and hash. */
typedef struct tl_sym {
    uint64_t hash;
    size_t len;
    char text[];
} tl_sym;

typedef struct tl_intern {
    tl_arena arena;
    const tl_sym **slots; /* open addressing; size is a power of two */
    size_t count, cap;
} tl_intern;

void tl_intern_init(tl_intern *table);
void tl_intern_fini(tl_intern *table);

/* The symbol with these bytes; NULL when out of memory. */
const tl_sym *tl_intern_get(tl_intern *table, const char *s, size_t len);

/* The symbol if it was interned before, else NULL. */
const tl_sym *tl_intern_find(const tl_intern *table, const char *s,
                             size_t len);

#endif
