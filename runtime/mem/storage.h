/* storage.h - counted bytes on a device, the only thing that threads share.
 *
 * A storage is a 64-byte header; in the pool of a CPU the bytes follow it,
 * 64-byte aligned.  The count is atomic.  Contents are not protected: who
 * writes holds the only reference (tl_storage_unshared). */
#ifndef TL_MEM_STORAGE_H
#define TL_MEM_STORAGE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/base/check.h"
#include "runtime/base/diag.h"

typedef struct tl_pool tl_pool;
typedef struct tl_storage tl_storage;

/* Everything but `bytes`, `data` and `pool` is private to runtime/mem. */
struct tl_storage {
    _Atomic uint32_t refs; /* 0: the block is free */
    uint16_t size_class;   /* of a small block, or TL_STORAGE_LARGE */
    uint16_t state;        /* of a large block (large.c) */
    size_t bytes;          /* asked for; valid part of `data` */
    void *data;
    tl_pool *pool; /* accounts for it */
    union {
        void (*release)(tl_storage *storage); /* NULL: return to the pool */
        tl_storage *previous_free;
    };
    union {
        tl_storage *next_free;
        _Atomic uint64_t origin; /* live: file << 32 | offset, or 0 */
        void *owner;     /* of wrapped storages: for `release` */
    };
    size_t span;        /* bytes of a large block, header included */
    tl_storage *before; /* its neighbour at the lower address, or NULL */
};

enum {
    TL_STORAGE_ALIGN = 64,
    TL_STORAGE_LARGE = 0xffff,   /* size_class of a large block */
    TL_STORAGE_WRAPPED = 0xfffe, /* data that the pool does not own */
    TL_STORAGE_HEADER = 64
};

_Static_assert(sizeof(struct tl_storage) <= TL_STORAGE_HEADER,
               "the header is one cache line");

/* A storage of `bytes` uninitialised bytes (0 is allowed) with one reference.
 * Any thread may call it; the pool's owner gets the fast path.
 * Fails with E0607, naming the request, what is live, and the limit. */
TL_MUST_USE tl_status tl_storage_new(tl_storage **out, tl_pool *pool,
                                     size_t bytes, tl_diag *diag);

/* A storage over memory of somebody else (a mapped file).  At the last
 * unreference `release(storage)` runs, with storage->owner == owner; it
 * releases the memory only, not the header.  Not counted against the limit.
 */
TL_MUST_USE tl_status tl_storage_wrap(tl_storage **out, tl_pool *pool,
                                      void *data, size_t bytes,
                                      void (*release)(tl_storage *storage),
                                      void *owner, tl_diag *diag);

/* For tl_storage_unref: give the block back. */
void tl_storage_release(tl_storage *storage);

/* Remember what part of the program made this storage, for reports of memory
 * running out.  Costs a store. */
static inline void tl_storage_set_origin(tl_storage *storage, tl_span span)
{
    if (storage->size_class != TL_STORAGE_WRAPPED) {
        atomic_store_explicit(&storage->origin,
                              (uint64_t)span.file << 32 | span.start,
                              memory_order_relaxed);
    }
}

static inline tl_storage *tl_storage_ref(tl_storage *storage)
{
    TL_ASSERT(atomic_load_explicit(&storage->refs, memory_order_relaxed) > 0);
    atomic_fetch_add_explicit(&storage->refs, 1, memory_order_relaxed);
    return storage;
}

/* True if the caller's reference is the only one. */
static inline bool tl_storage_unshared(const tl_storage *storage)
{
    return atomic_load_explicit(&storage->refs, memory_order_acquire) == 1;
}

/* Drop a reference; NULL is allowed.  Nobody can add one to a storage whose
 * only reference is the caller's, so that case needs no atomic operation. */
static inline void tl_storage_unref(tl_storage *storage)
{
    if (!storage) {
        return;
    }
    TL_ASSERT(atomic_load_explicit(&storage->refs, memory_order_relaxed) > 0);
    if (tl_storage_unshared(storage) ||
        atomic_fetch_sub_explicit(&storage->refs, 1, memory_order_acq_rel) ==
            1) {
        tl_storage_release(storage);
    }
}

static inline void *tl_storage_data(const tl_storage *storage)
{
    return storage->data;
}

static inline size_t tl_storage_bytes(const tl_storage *storage)
{
    return storage->bytes;
}

#endif
