/* large.c - two-level segregated fit over huge-page mappings. */
#include "runtime/mem/large.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "runtime/base/asan.h"
#include "runtime/base/mem.h"
#include "runtime/base/size.h"

enum {
    UNIT_BITS = 6,   /* sizes are multiples of 64 */
    COLUMN_BITS = 6, /* 64 classes between powers of two: 1.6 % of rounding */
    MIN_SPLIT = 4096 /* smaller rests stay with the block */
};

#define HUGE_PAGE ((size_t)2 << 20)

enum block_state {
    BLOCK_LIVE,
    BLOCK_FREE,   /* in a list, its pages faulted in */
    BLOCK_TRIMMED /* in a list, its pages given back */
};

void tl_large_init(tl_large *large, size_t cap)
{
    memset(large, 0, sizeof(*large));
    large->cap = cap;
}

void tl_large_fini(tl_large *large)
{
    for (int i = 0; i < large->nregions; i++) {
        tl_region *r = &large->regions[i];

        TL_UNPOISON(r->base, (size_t)(r->top - r->base));
        tl_mem_give((size_t)(r->top - r->base));
        munmap(r->mapping, r->mapping_bytes);
    }
    large->nregions = 0;
}

/* ---- size classes -------------------------------------------------------- */

typedef struct place {
    unsigned row, column;
} place;

/* The class of a size: the largest one whose lower bound is not above it. */
static place class_of(size_t span)
{
    size_t units = span >> UNIT_BITS;
    unsigned log = 63u - (unsigned)__builtin_clzll(units | 1);

    if (log < COLUMN_BITS) {
        return (place){0, (unsigned)units};
    }
    return (place){log - COLUMN_BITS + 1,
                   (unsigned)(units >> (log - COLUMN_BITS)) &
                       (TL_LARGE_COLUMNS - 1)};
}

/* The lower bound of the first class that is not below `span`. */
static size_t round_to_class(size_t span)
{
    size_t units = (span + ((size_t)1 << UNIT_BITS) - 1) >> UNIT_BITS;
    unsigned log = 63u - (unsigned)__builtin_clzll(units | 1);

    if (log > COLUMN_BITS) {
        size_t step = (size_t)1 << (log - COLUMN_BITS);

        units = (units + step - 1) & ~(step - 1);
    }
    return units << UNIT_BITS;
}

static void list_add(tl_large *large, tl_storage *block)
{
    place p = class_of(block->span);
    tl_storage **head = &large->free[p.row][p.column];

    block->previous_free = NULL;
    block->next_free = *head;
    if (*head) {
        (*head)->previous_free = block;
    }
    *head = block;
    large->rows |= (uint64_t)1 << p.row;
    large->columns[p.row] |= (uint64_t)1 << p.column;
    if (block->state == BLOCK_FREE) {
        large->free_bytes += block->span;
    }
}

static void list_remove(tl_large *large, tl_storage *block)
{
    place p = class_of(block->span);

    if (block->previous_free) {
        block->previous_free->next_free = block->next_free;
    } else {
        large->free[p.row][p.column] = block->next_free;
    }
    if (block->next_free) {
        block->next_free->previous_free = block->previous_free;
    }
    if (!large->free[p.row][p.column]) {
        large->columns[p.row] &= ~((uint64_t)1 << p.column);
        if (large->columns[p.row] == 0) {
            large->rows &= ~((uint64_t)1 << p.row);
        }
    }
    if (block->state == BLOCK_FREE) {
        large->free_bytes -= block->span;
    }
}

/* A free block of the smallest class not below that of `span`, which is the
 * lower bound of its class. */
static tl_storage *find_free(const tl_large *large, size_t span)
{
    place p = class_of(span);
    uint64_t columns = large->columns[p.row] & (~(uint64_t)0 << p.column);

    if (columns == 0) {
        uint64_t rows = large->rows & (~(uint64_t)0 << (p.row + 1));

        if (rows == 0) {
            return NULL;
        }
        p.row = (unsigned)__builtin_ctzll(rows);
        columns = large->columns[p.row];
    }
    return large->free[p.row][__builtin_ctzll(columns)];
}

/* ---- neighbours ---------------------------------------------------------- */

static tl_region *region_of(tl_large *large, const tl_storage *block)
{
    for (int i = 0; i < large->nregions; i++) {
        tl_region *r = &large->regions[i];

        if ((const char *)block >= r->base && (const char *)block < r->end) {
            return r;
        }
    }
    TL_CHECK(!"block of another pool");
    return NULL;
}

/* The neighbour at the higher address, or NULL. */
static tl_storage *after(const tl_region *region, tl_storage *block)
{
    return block == region->last
               ? NULL
               : (tl_storage *)(void *)((char *)block + block->span);
}

/* `block` has a new size: tell the one behind it, or the region. */
static void link_after(tl_region *region, tl_storage *block, bool was_last)
{
    if (was_last) {
        region->last = block;
    } else {
        after(region, block)->before = block;
    }
}

/* ---- regions ------------------------------------------------------------- */

static char *map_pages(size_t bytes)
{
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    return p == MAP_FAILED ? NULL : p;
}

/* Ask for huge pages; that this may fail is fine.  The first 2 MiB of a pool
 * do without: a program that makes a few small tensors touches a few pages,
 * and does not wait for a huge one to be cleared. */
static void advise_huge_pages(const tl_large *large, const tl_region *r)
{
#ifdef MADV_HUGEPAGE
    char *from = large->nregions == 1 ? r->base + HUGE_PAGE : r->base;

    if (from < r->end) {
        madvise(from, (size_t)(r->end - from), MADV_HUGEPAGE);
    }
#else
    (void)large;
    (void)r;
#endif
}

/* Map a region of at least `need` bytes: as much as `cap` leaves, or, where
 * address space is scarce, a half of it, a quarter, ... */
static tl_region *add_region(tl_large *large, size_t need)
{
    size_t want = large->cap - large->mapped;
    size_t bytes;
    tl_region *r;

    need = (need + HUGE_PAGE - 1) & ~(HUGE_PAGE - 1);
    want &= ~(HUGE_PAGE - 1);
    if (need > want || large->nregions == TL_LARGE_REGIONS) {
        return NULL;
    }
    r = &large->regions[large->nregions];
    for (;;) {
        bytes = want + HUGE_PAGE;
        r->mapping = map_pages(bytes);
        if (r->mapping) {
            break;
        }
        if (want == need) {
            return NULL;
        }
        want = (want / 2) & ~(HUGE_PAGE - 1);
        want = want < need ? need : want;
    }
    r->mapping_bytes = bytes;
    r->base = (char *)(((uintptr_t)r->mapping + HUGE_PAGE - 1) &
                       ~(uintptr_t)(HUGE_PAGE - 1));
    r->top = r->base;
    r->end = r->base + want;
    r->last = NULL;
    large->nregions++;
    large->mapped += want;
    advise_huge_pages(large, r);
    return r;
}

/* A region with room for `span` above its top, where a free last block
 * counts as room. */
static tl_region *find_room(tl_large *large, size_t span)
{
    for (int i = 0; i < large->nregions; i++) {
        tl_region *r = &large->regions[i];
        size_t room = (size_t)(r->end - r->top);

        if (r->last && r->last->state != BLOCK_LIVE) {
            room += r->last->span;
        }
        if (room >= span) {
            return r;
        }
    }
    return add_region(large, span);
}

/* Extend the blocks of a region at its top.  What is below the top counts as
 * memory of the process, free blocks too: their pages stay. */
static tl_storage *alloc_at_top(tl_large *large, size_t span)
{
    tl_region *r = find_room(large, span);
    tl_storage *block;

    if (!r) {
        return NULL;
    }
    if (r->last && r->last->state != BLOCK_LIVE) {
        block = r->last;
    } else {
        block = (tl_storage *)(void *)r->top;
    }
    if (!tl_mem_take((size_t)((char *)block + span - r->top))) {
        return NULL;
    }
    if (block == r->last) {
        list_remove(large, block);
    } else {
        block->before = r->last;
    }
    block->span = span;
    block->state = BLOCK_LIVE;
    r->last = block;
    r->top = (char *)block + span;
    return block;
}

/* ---- blocks -------------------------------------------------------------- */

/* Cut what is behind `span` off a block and make it free. */
static void split(tl_large *large, tl_storage *block, size_t span,
                  uint16_t state)
{
    tl_region *r = region_of(large, block);
    tl_storage *rest = (tl_storage *)(void *)((char *)block + span);
    bool was_last = block == r->last;

    TL_UNPOISON(rest, TL_STORAGE_HEADER);
    rest->span = block->span - span;
    rest->before = block;
    rest->state = state;
    rest->size_class = TL_STORAGE_LARGE;
    atomic_init(&rest->refs, 0);
    block->span = span;
    link_after(r, rest, was_last);
    list_add(large, rest);
}

tl_storage *tl_large_alloc(tl_large *large, size_t span)
{
    tl_storage *block;
    uint16_t state;

    if (span > large->cap) {
        return NULL;
    }
    span = round_to_class(span);
    block = find_free(large, span);
    if (!block) {
        block = alloc_at_top(large, span);
    } else {
        state = block->state;
        list_remove(large, block);
        if (block->span - span >= MIN_SPLIT) {
            split(large, block, span, state);
        }
        block->state = BLOCK_LIVE;
    }
    if (block) {
        block->size_class = TL_STORAGE_LARGE;
    }
    return block;
}

void tl_large_free(tl_large *large, tl_storage *block)
{
    tl_region *r = region_of(large, block);
    tl_storage *low = block->before, *high = after(r, block);
    bool was_last = high == NULL;

    TL_POISON((char *)block + TL_STORAGE_HEADER,
              block->span - TL_STORAGE_HEADER);
    if (high && high->state != BLOCK_LIVE) {
        list_remove(large, high);
        was_last = high == r->last;
        block->span += high->span;
        TL_POISON(high, TL_STORAGE_HEADER);
    }
    if (low && low->state != BLOCK_LIVE) {
        list_remove(large, low);
        low->span += block->span;
        TL_POISON(block, TL_STORAGE_HEADER);
        block = low;
    }
    block->state = BLOCK_FREE;
    link_after(r, block, was_last);
    list_add(large, block);
}

/* Give back the whole pages inside a free block, behind its header. */
static size_t trim_block(tl_large *large, tl_storage *block)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    uintptr_t from = (uintptr_t)block + TL_STORAGE_HEADER;
    uintptr_t to = (uintptr_t)block + block->span;

    from = (from + page - 1) & ~(page - 1);
    to &= ~(page - 1);
    if (to <= from ||
        madvise((void *)from, to - from, MADV_DONTNEED) != 0) {
        return 0;
    }
    block->state = BLOCK_TRIMMED;
    large->free_bytes -= block->span;
    return to - from;
}

size_t tl_large_trim(tl_large *large)
{
    size_t bytes = 0;

    for (unsigned row = 0; row < TL_LARGE_ROWS; row++) {
        for (unsigned c = 0; c < TL_LARGE_COLUMNS; c++) {
            for (tl_storage *b = large->free[row][c]; b; b = b->next_free) {
                if (b->state == BLOCK_FREE) {
                    bytes += trim_block(large, b);
                }
            }
        }
    }
    return bytes;
}

const tl_storage *tl_large_next_live(const tl_large *large,
                                     const tl_storage *block)
{
    int i = 0;
    char *at;

    if (block) {
        while ((const char *)block < large->regions[i].base ||
               (const char *)block >= large->regions[i].end) {
            i++;
        }
        at = (char *)(uintptr_t)block + block->span;
    } else if (large->nregions > 0) {
        at = large->regions[0].base;
    } else {
        return NULL;
    }
    for (;;) {
        for (; at < large->regions[i].top; at += block->span) {
            block = (const tl_storage *)(void *)at;
            if (block->state == BLOCK_LIVE) {
                return block;
            }
        }
        if (++i == large->nregions) {
            return NULL;
        }
        at = large->regions[i].base;
    }
}
