/* pool.c - storages: free lists by size class, the owner's without a lock.
 *
 * Blocks of up to 4 KiB are carved from slabs, large blocks of 64 KiB that
 * stay with their class.  Three places hold free small blocks: the owner's
 * lists, used by the owner alone; the shared lists, under the lock; and the
 * part of a slab not yet carved.  Batches move between the first two, so that
 * what one thread frees another can have.
 *
 * Counters exist twice, for the owner (written without the lock, by it alone)
 * and for everyone else (written under the lock).  A storage that one thread
 * made and another freed shows in both; their sums, in modular arithmetic,
 * are right. */
#include "runtime/mem/pool.h"

#include <sched.h>

#include "runtime/base/asan.h"
#include "runtime/base/machine.h"
#include "runtime/base/mem.h"
#include "runtime/base/size.h"
#include "runtime/mem/large.h"

enum {
    SMALL_MAX = 4096, /* bytes of data */
    CLASSES = 20,
    SLAB = 64 << 10,
    BATCH = 32,      /* blocks moved to the owner at once */
    MOST_LOCAL = 128, /* blocks of a class that the owner keeps */
    REPORTED = 3      /* largest live storages named when memory runs out */
};

/* In sanitized builds every block ends with poisoned bytes. */
#ifdef TL_ASAN
enum { REDZONE = 64 };
#else
enum { REDZONE = 0 };
#endif

/* Bytes of data of each class. */
static const uint16_t class_bytes[CLASSES] = {
    64,  128, 192, 256,  320,  384,  448,  512,  640,  768,
    896, 1024, 1280, 1536, 1792, 2048, 2560, 3072, 3584, 4096,
};

typedef struct counters {
    _Atomic size_t live;
    _Atomic int64_t storages;
} counters;

struct tl_pool {
    /* written by the owner */
    const char *_Atomic owner; /* its thread_mark */
    tl_storage *local[CLASSES];
    uint32_t nlocal[CLASSES];
    counters own;

    /* written rarely */
    uint8_t class_of[SMALL_MAX / 64 + 1]; /* by bytes in units of 64 */
    size_t limit;
    _Atomic size_t peak;

    /* under the lock, apart from the above to not share a cache line */
    char padding[64];
    _Atomic uint32_t lock;
    counters others;
    tl_storage *shared[CLASSES];
    char *carve[CLASSES], *carve_end[CLASSES];
    tl_large large;
};

/* Its address tells threads apart. */
static _Thread_local char thread_mark
    __attribute__((tls_model("initial-exec")));

static bool is_owner(const tl_pool *pool)
{
    return atomic_load_explicit(&pool->owner, memory_order_relaxed) ==
           &thread_mark;
}

static void lock_pool(tl_pool *pool)
{
    int spins = 0;

    while (atomic_exchange_explicit(&pool->lock, 1, memory_order_acquire)) {
        while (atomic_load_explicit(&pool->lock, memory_order_relaxed)) {
            if (++spins % 64 == 0) {
                sched_yield();
            }
        }
    }
}

static void unlock_pool(tl_pool *pool)
{
    atomic_store_explicit(&pool->lock, 0, memory_order_release);
}

/* ---- accounting ---------------------------------------------------------- */

static size_t live_bytes(const tl_pool *pool)
{
    return atomic_load_explicit(&pool->own.live, memory_order_relaxed) +
           atomic_load_explicit(&pool->others.live, memory_order_relaxed);
}

/* Add to counters that only this thread writes now. */
static void count(counters *c, size_t bytes, int64_t storages)
{
    atomic_store_explicit(
        &c->live,
        atomic_load_explicit(&c->live, memory_order_relaxed) + bytes,
        memory_order_relaxed);
    atomic_store_explicit(
        &c->storages,
        atomic_load_explicit(&c->storages, memory_order_relaxed) + storages,
        memory_order_relaxed);
}

/* Would `bytes` more exceed the limit?  If not, note the peak. */
static bool fits(tl_pool *pool, size_t bytes)
{
    size_t live = live_bytes(pool);

    if (live > pool->limit || bytes > pool->limit - live) {
        return false;
    }
    live += bytes;
    if (live > atomic_load_explicit(&pool->peak, memory_order_relaxed)) {
        atomic_store_explicit(&pool->peak, live, memory_order_relaxed);
    }
    return true;
}

/* ---- the pool ------------------------------------------------------------ */

tl_status tl_pool_new(tl_pool **out, size_t limit, tl_diag *diag)
{
    tl_pool *pool = tl_calloc(1, sizeof(*pool));
    uint8_t class = 0;

    if (!pool) {
        return tl_fail_memory(diag, "memory pool", sizeof(*pool));
    }
    for (size_t units = 0; units <= SMALL_MAX / 64; units++) {
        if (units * 64 > class_bytes[class]) {
            class++;
        }
        pool->class_of[units] = class;
    }
    pool->limit = limit ? limit : SIZE_MAX;
    tl_large_init(&pool->large, tl_machine_memory());
    tl_pool_adopt(pool);
    *out = pool;
    return TL_OK;
}

int64_t tl_pool_free(tl_pool *pool)
{
    tl_pool_stats stats;

    if (!pool) {
        return 0;
    }
    tl_pool_get_stats(pool, &stats);
    tl_large_fini(&pool->large);
    tl_free(pool);
    return stats.storages;
}

void tl_pool_adopt(tl_pool *pool)
{
    atomic_store_explicit(&pool->owner, &thread_mark, memory_order_relaxed);
}

void tl_pool_get_stats(const tl_pool *pool, tl_pool_stats *out)
{
    tl_pool *p = (tl_pool *)(uintptr_t)pool;

    lock_pool(p);
    out->live = live_bytes(pool);
    out->peak = atomic_load_explicit(&pool->peak, memory_order_relaxed);
    out->cached = pool->large.free_bytes;
    out->mapped = pool->large.mapped;
    out->limit = pool->limit;
    out->machine = pool->large.cap;
    out->storages =
        atomic_load_explicit(&pool->own.storages, memory_order_relaxed) +
        atomic_load_explicit(&pool->others.storages, memory_order_relaxed);
    unlock_pool(p);
}

void tl_pool_reset_peak(tl_pool *pool)
{
    atomic_store_explicit(&pool->peak, live_bytes(pool),
                          memory_order_relaxed);
}

size_t tl_pool_trim(tl_pool *pool)
{
    size_t bytes;

    lock_pool(pool);
    bytes = tl_large_trim(&pool->large);
    unlock_pool(pool);
    return bytes;
}

/* ---- small blocks -------------------------------------------------------- */

/* A block from the shared list or fresh from a slab; NULL without memory.
 * Needs the lock. */
static tl_storage *take_shared(tl_pool *pool, unsigned class)
{
    size_t stride = TL_STORAGE_HEADER + class_bytes[class];
    tl_storage *s = pool->shared[class], *slab;

    if (s) {
        pool->shared[class] = s->next_free;
        return s;
    }
    if ((size_t)(pool->carve_end[class] - pool->carve[class]) < stride) {
        slab = tl_large_alloc(&pool->large, SLAB);
        if (!slab) {
            return NULL;
        }
        atomic_init(&slab->refs, 0);
        pool->carve[class] = (char *)slab + TL_STORAGE_HEADER;
        pool->carve_end[class] = (char *)slab + slab->span;
        TL_UNPOISON(pool->carve[class], slab->span - TL_STORAGE_HEADER);
    }
    s = (tl_storage *)(void *)pool->carve[class];
    pool->carve[class] += stride;
    s->size_class = (uint16_t)class;
    s->data = (char *)s + TL_STORAGE_HEADER;
    s->pool = pool;
    s->release = NULL;
    atomic_init(&s->refs, 0);
    TL_POISON(s->data, class_bytes[class]);
    return s;
}

/* The owner's list is empty: bring a batch, and return one block more. */
__attribute__((noinline)) static tl_storage *refill(tl_pool *pool,
                                                    unsigned class)
{
    tl_storage *s, *extra;

    lock_pool(pool);
    s = take_shared(pool, class);
    for (int i = 0; s && i < BATCH; i++) {
        extra = take_shared(pool, class);
        if (!extra) {
            break;
        }
        extra->next_free = pool->local[class];
        pool->local[class] = extra;
        pool->nlocal[class]++;
    }
    unlock_pool(pool);
    return s;
}

/* Move half of a full owner's list to the shared one. */
__attribute__((noinline)) static void flush(tl_pool *pool, unsigned class)
{
    lock_pool(pool);
    for (int i = 0; i < MOST_LOCAL / 2; i++) {
        tl_storage *s = pool->local[class];

        pool->local[class] = s->next_free;
        s->next_free = pool->shared[class];
        pool->shared[class] = s;
    }
    pool->nlocal[class] -= MOST_LOCAL / 2;
    unlock_pool(pool);
}

/* Make a block live.  For large ones under the lock, as a report of memory
 * running out walks them. */
static void start_life(tl_storage *s, size_t bytes)
{
    s->bytes = bytes;
    atomic_store_explicit(&s->origin, 0, memory_order_relaxed);
    atomic_store_explicit(&s->refs, 1, memory_order_relaxed);
    TL_UNPOISON(s->data, bytes);
}

static tl_storage *new_small(tl_pool *pool, size_t bytes)
{
    unsigned class = pool->class_of[(bytes + REDZONE + 63) / 64];
    tl_storage *s;

    if (is_owner(pool)) {
        s = pool->local[class];
        if (__builtin_expect(s != NULL, 1)) {
            pool->local[class] = s->next_free;
            pool->nlocal[class]--;
        } else {
            s = refill(pool, class);
        }
        if (s) {
            count(&pool->own, bytes, 1);
            start_life(s, bytes);
        }
        return s;
    }
    lock_pool(pool);
    s = take_shared(pool, class);
    if (s) {
        count(&pool->others, bytes, 1);
        start_life(s, bytes);
    }
    unlock_pool(pool);
    return s;
}

static tl_storage *new_large(tl_pool *pool, size_t bytes)
{
    tl_storage *s = NULL;
    size_t span;

    if (!tl_add_size(&span, bytes, TL_STORAGE_HEADER + REDZONE)) {
        return NULL;
    }
    lock_pool(pool);
    s = tl_large_alloc(&pool->large, span);
    if (s) {
        s->data = (char *)s + TL_STORAGE_HEADER;
        s->pool = pool;
        s->release = NULL;
        TL_POISON(s->data, s->span - TL_STORAGE_HEADER);
        count(&pool->others, bytes, 1);
        start_life(s, bytes);
    }
    unlock_pool(pool);
    return s;
}

/* ---- out of memory ------------------------------------------------------- */

typedef struct live_block {
    size_t bytes;
    uint64_t origin;
} live_block;

/* The largest live storages, largest first; returns how many. */
static int find_largest(tl_pool *pool, live_block found[REPORTED])
{
    const tl_storage *s = NULL;
    int n = 0;

    lock_pool(pool);
    while ((s = tl_large_next_live(&pool->large, s))) {
        int i;

        if (atomic_load_explicit(&s->refs, memory_order_relaxed) == 0 ||
            (n == REPORTED && s->bytes <= found[n - 1].bytes)) {
            continue; /* a slab, or a smaller one */
        }
        n += n < REPORTED;
        for (i = n - 1; i > 0 && found[i - 1].bytes < s->bytes; i--) {
            found[i] = found[i - 1];
        }
        found[i] = (live_block){
            s->bytes,
            atomic_load_explicit(&s->origin, memory_order_relaxed)};
    }
    unlock_pool(pool);
    return n;
}

/* Name the request, what is live, what bounds it, and the largest. */
__attribute__((noinline)) static tl_status
report(tl_pool *pool, size_t bytes, tl_diag *diag)
{
    size_t live = live_bytes(pool);
    bool limited = pool->limit < pool->large.cap;
    live_block largest[REPORTED];
    tl_status st;
    int n;

    st = tl_fail(diag, TL_E0607,
                 "out of memory: %s wanted, %s live, %s is %s",
                 tl_bytes_str(bytes).s, tl_bytes_str(live).s,
                 limited ? "the memory limit" : "the machine's memory",
                 tl_bytes_str(limited ? pool->limit : pool->large.cap).s);
    tl_diag_note_memory(diag, bytes);
    n = find_largest(pool, largest);
    for (int i = 0; i < n; i++) {
        uint64_t origin = largest[i].origin;
        tl_span span = {(uint32_t)(origin >> 32), (uint32_t)origin,
                        (uint32_t)origin + 1};

        if (span.file != 0) {
            tl_diag_label_add(diag, span, "%s live, made here",
                              tl_bytes_str(largest[i].bytes).s);
        } else {
            tl_diag_note(diag, "live: a tensor of %s",
                         tl_bytes_str(largest[i].bytes).s);
        }
    }
    return st;
}

/* ---- storages ------------------------------------------------------------ */

tl_status tl_storage_new(tl_storage **out, tl_pool *pool, size_t bytes,
                         tl_diag *diag)
{
    tl_storage *s = NULL;

    if (!tl_mem_must_fail(bytes) && fits(pool, bytes)) {
        s = bytes <= SMALL_MAX - REDZONE ? new_small(pool, bytes)
                                         : new_large(pool, bytes);
    }
    if (__builtin_expect(!s, 0)) {
        return report(pool, bytes, diag);
    }
    *out = s;
    return TL_OK;
}

/* Drop the bytes of a foreign memory, and the header. */
static void release_wrapped(tl_storage *s)
{
    tl_pool *pool = s->pool;

    s->release(s);
    tl_free(s);
    lock_pool(pool);
    count(&pool->others, 0, -1);
    unlock_pool(pool);
}

__attribute__((noinline)) static void release_shared(tl_pool *pool,
                                                     tl_storage *s)
{
    if (s->size_class == TL_STORAGE_WRAPPED) {
        release_wrapped(s);
        return;
    }
    lock_pool(pool);
    count(&pool->others, -s->bytes, -1);
    if (s->size_class == TL_STORAGE_LARGE) {
        tl_large_free(&pool->large, s);
    } else {
        s->next_free = pool->shared[s->size_class];
        pool->shared[s->size_class] = s;
    }
    unlock_pool(pool);
}

void tl_storage_release(tl_storage *s)
{
    tl_pool *pool = s->pool;
    unsigned class = s->size_class;

    atomic_store_explicit(&s->refs, 0, memory_order_relaxed);
    if (class >= CLASSES || !is_owner(pool)) {
        if (class < CLASSES) {
            TL_POISON(s->data, class_bytes[class]);
        }
        release_shared(pool, s);
        return;
    }
    TL_POISON(s->data, class_bytes[class]);
    count(&pool->own, -s->bytes, -1);
    s->next_free = pool->local[class];
    pool->local[class] = s;
    if (__builtin_expect(++pool->nlocal[class] > MOST_LOCAL, 0)) {
        flush(pool, class);
    }
}

tl_status tl_storage_wrap(tl_storage **out, tl_pool *pool, void *data,
                          size_t bytes, void (*release)(tl_storage *storage),
                          void *owner, tl_diag *diag)
{
    tl_storage *s = tl_calloc(1, sizeof(*s));

    if (!s) {
        return tl_fail_memory(diag, "storage", sizeof(*s));
    }
    s->size_class = TL_STORAGE_WRAPPED;
    s->bytes = bytes;
    s->data = data;
    s->pool = pool;
    s->release = release;
    s->owner = owner;
    atomic_init(&s->refs, 1);
    lock_pool(pool);
    count(&pool->others, 0, 1);
    unlock_pool(pool);
    *out = s;
    return TL_OK;
}
