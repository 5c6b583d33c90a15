/* large.h - blocks over 4 KiB: two-level segregated fit (Masmano, Ripoll,
 * Crespo, Real, "TLSF: a new dynamic memory allocator", ECRTS 2004).
 *
 * A region is one mapping with huge pages advised, [base, end); the blocks
 * lie between base and top without gaps, each with a tl_storage at its start.
 * No two free neighbours exist: freeing merges.  Memory above top was never
 * touched.  Requests are rounded up to their class, so every block of a class
 * fits, and the same size asked for again finds what was freed.
 *
 * Not thread-safe: the pool holds its lock. */
#ifndef TL_MEM_LARGE_H
#define TL_MEM_LARGE_H

#include "runtime/mem/storage.h"

enum {
    TL_LARGE_ROWS = 40, /* powers of two of 64-byte units, the first five
                           of which share row 0 */
    TL_LARGE_COLUMNS = 64,
    TL_LARGE_REGIONS = 16
};

typedef struct tl_region {
    char *mapping; /* what mmap gave: base is the next multiple of 2 MiB */
    size_t mapping_bytes;
    char *base, *top, *end;
    tl_storage *last; /* block that ends at top, or NULL */
} tl_region;

typedef struct tl_large {
    tl_region regions[TL_LARGE_REGIONS];
    int nregions;
    size_t mapped, cap; /* address space in use, and its bound */
    size_t free_bytes;  /* of free blocks, those that were trimmed not */
    uint64_t rows;      /* bit r: row r has a free block */
    uint64_t columns[TL_LARGE_ROWS];
    tl_storage *free[TL_LARGE_ROWS][TL_LARGE_COLUMNS];
} tl_large;

/* Nothing is mapped yet; `cap` bounds the address space. */
void tl_large_init(tl_large *large, size_t cap);
void tl_large_fini(tl_large *large);

/* A block of at least `span` bytes, header included; NULL if there is no
 * memory.  Sets span, before, size_class and state of the header alone. */
tl_storage *tl_large_alloc(tl_large *large, size_t span);

/* Free a block and merge it with its neighbours. */
void tl_large_free(tl_large *large, tl_storage *block);

/* Return pages of free blocks to the system; the bytes. */
size_t tl_large_trim(tl_large *large);

/* The next live block after `block` (NULL: the first), NULL at the end. */
const tl_storage *tl_large_next_live(const tl_large *large,
                                     const tl_storage *block);

#endif
