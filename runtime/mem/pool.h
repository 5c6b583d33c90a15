/* pool.h - the caching pool of a CPU's tensor memory.
 *
 * Memory is mapped once, faulted in by its first use and kept: what is freed
 * is handed out again, warm.  Small storages come from free lists of their
 * size class, large ones from a two-level segregated fit with coalescing
 * (large.h).  README.md has the measurements.
 *
 * A pool has an owner, the thread that created it, whose small storages need
 * no lock; every other thread may allocate and free as well.  Nothing is
 * mapped before the first allocation. */
#ifndef TL_MEM_POOL_H
#define TL_MEM_POOL_H

#include <stddef.h>
#include <stdint.h>

#include "runtime/base/diag.h"
#include "runtime/mem/storage.h"

/* Bytes are those asked for, without headers and rounding, except `cached`
 * and `mapped`. */
typedef struct tl_pool_stats {
    size_t live;      /* in storages alive */
    size_t peak;      /* largest `live` since the start or the reset */
    size_t cached;    /* free, but kept in physical memory (at most) */
    size_t mapped;    /* address space */
    size_t limit;     /* SIZE_MAX: none */
    size_t machine;   /* what the process may have in all */
    int64_t storages; /* alive, wrapped ones included */
} tl_pool_stats;

/* A pool; `limit` bounds the bytes of its live storages (0: no bound but the
 * memory of the machine or its control group). */
TL_MUST_USE tl_status tl_pool_new(tl_pool **out, size_t limit, tl_diag *diag);

/* Unmap everything.  Returns the number of storages still alive, which is 0
 * unless somebody leaked: they must not be touched any more.  NULL is
 * allowed. */
int64_t tl_pool_free(tl_pool *pool);

/* Make the calling thread the owner.  The old owner must not use the pool
 * meanwhile, and must have been joined or otherwise be synchronised with. */
void tl_pool_adopt(tl_pool *pool);

/* A consistent picture if no other thread allocates meanwhile. */
void tl_pool_get_stats(const tl_pool *pool, tl_pool_stats *out);

/* Start `peak` again from what is live now. */
void tl_pool_reset_peak(tl_pool *pool);

/* Give the physical memory of large free blocks back to the system; returns
 * its bytes.  The next use of that memory faults it in again. */
size_t tl_pool_trim(tl_pool *pool);

#endif
