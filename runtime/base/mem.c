/* mem.c - malloc with accounting, a ceiling, and failure injection.
 *
 * The hot path costs two relaxed atomic additions; bytes are counted by each
 * thread for itself and added up now and then.  The N-th attempt fails when the
 * running number of attempts reaches `fail_at`; so switching on is one store,
 * and no attempt needs a lock. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "runtime/base/mem.h"

#include <malloc.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/machine.h"
#include "runtime/base/size.h"

enum {
    STEP = 64 << 10, /* bytes that a thread counts for itself */
    LOOK = 64 << 20  /* growth after which the machine is asked */
};

static _Atomic uint64_t attempts;
static _Atomic uint64_t fail_at; /* number of the failing attempt; 0: none */
static atomic_bool fail_sticky;
static _Atomic(tl_mem_decide *) fail_by;
static _Atomic int64_t live_blocks;
static _Atomic size_t failed_size;
static _Atomic int64_t limit = INT64_MAX;
static _Atomic int64_t live_bytes; /* but for what is unsettled */
static _Atomic int64_t looked_at;  /* live_bytes when the machine was asked */
static _Thread_local int64_t unsettled
    __attribute__((tls_model("initial-exec")));

#ifdef TL_FAULTS
/* TLANG_TEST_FAIL_ALLOC=N or N+; anything else is ignored. */
__attribute__((constructor)) static void read_environment(void)
{
    const char *s = getenv("TLANG_TEST_FAIL_ALLOC");
    char *end;
    unsigned long long n;

    if (!s || *s < '0' || *s > '9') {
        return;
    }
    n = strtoull(s, &end, 10);
    if (*end == '\0' || strcmp(end, "+") == 0) {
        tl_mem_fail_at(n, *end == '+');
    }
}
#endif

void tl_mem_fail_at(uint64_t n, bool sticky)
{
    uint64_t now = atomic_load_explicit(&attempts, memory_order_relaxed);

    atomic_store_explicit(&fail_sticky, sticky, memory_order_relaxed);
    atomic_store_explicit(&fail_at, n ? now + n : 0, memory_order_relaxed);
}

void tl_mem_fail_by(tl_mem_decide *decide)
{
    atomic_store_explicit(&fail_by, decide, memory_order_relaxed);
    tl_mem_fail_at(decide ? 1 : 0, true);
}

/* The attempt is one that may have to fail. */
__attribute__((noinline)) static bool fails(uint64_t n, uint64_t at,
                                            size_t size)
{
    tl_mem_decide *decide =
        atomic_load_explicit(&fail_by, memory_order_relaxed);

    if (decide ? !decide(n, size)
               : n > at &&
                     !atomic_load_explicit(&fail_sticky,
                                           memory_order_relaxed)) {
        return false;
    }
    atomic_store_explicit(&failed_size, size, memory_order_relaxed);
    return true;
}

bool tl_mem_must_fail(size_t size)
{
    uint64_t n =
        atomic_fetch_add_explicit(&attempts, 1, memory_order_relaxed) + 1;
    uint64_t at = atomic_load_explicit(&fail_at, memory_order_relaxed);

    return __builtin_expect(at != 0 && n >= at, 0) && fails(n, at, size);
}

uint64_t tl_mem_attempts(void)
{
    return atomic_load_explicit(&attempts, memory_order_relaxed);
}

int64_t tl_mem_live_blocks(void)
{
    return atomic_load_explicit(&live_blocks, memory_order_relaxed);
}

size_t tl_mem_failed_size(void)
{
    return atomic_load_explicit(&failed_size, memory_order_relaxed);
}

/* ---- bytes --------------------------------------------------------------- */

void tl_mem_set_limit(size_t bytes)
{
    atomic_store_explicit(&limit,
                          bytes < INT64_MAX ? (int64_t)bytes : INT64_MAX,
                          memory_order_relaxed);
}

size_t tl_mem_limit(void)
{
    int64_t most = atomic_load_explicit(&limit, memory_order_relaxed);

    return most == INT64_MAX ? SIZE_MAX : (size_t)most;
}

size_t tl_mem_live_bytes(void)
{
    int64_t bytes =
        atomic_load_explicit(&live_bytes, memory_order_relaxed) + unsettled;

    return bytes > 0 ? (size_t)bytes : 0;
}

/* Can the machine give `more` bytes beyond `total`?  It is asked when much
 * was taken since the last time, or much is wanted at once. */
static bool available(int64_t total, int64_t more)
{
    int64_t last = atomic_load_explicit(&looked_at, memory_order_relaxed);

    if (more < LOOK && total < last + LOOK) {
        return true;
    }
    if ((uint64_t)more >= tl_machine_available()) {
        return false;
    }
    atomic_store_explicit(&looked_at, total, memory_order_relaxed);
    return true;
}

/* Add what the thread counted so far, `sum` with the `bytes` that it wants. */
__attribute__((noinline)) static bool settle(int64_t sum, size_t bytes)
{
    int64_t most = atomic_load_explicit(&limit, memory_order_relaxed);
    int64_t total =
        atomic_fetch_add_explicit(&live_bytes, sum, memory_order_relaxed) +
        sum;

    if (most != INT64_MAX && bytes > 0 &&
        (total > most || !available(total, (int64_t)bytes))) {
        atomic_fetch_sub_explicit(&live_bytes, sum, memory_order_relaxed);
        return false;
    }
    unsettled = 0;
    return true;
}

bool tl_mem_take(size_t bytes)
{
    int64_t sum;

    if (bytes > PTRDIFF_MAX / 2) {
        return false;
    }
    sum = unsettled + (int64_t)bytes;
    if (sum >= STEP) {
        return settle(sum, bytes);
    }
    unsettled = sum;
    return true;
}

void tl_mem_give(size_t bytes)
{
    unsettled -= (int64_t)bytes;
    if (unsettled <= -STEP) {
        settle(unsettled, 0);
    }
}

/* ---- blocks -------------------------------------------------------------- */

static void *refused(size_t size)
{
    atomic_store_explicit(&failed_size, size, memory_order_relaxed);
    return NULL;
}

/* Account for a block that malloc gave, or did not give, for `size` bytes
 * that were taken. */
static void *counted(void *ptr, size_t size)
{
    if (!ptr) {
        tl_mem_give(size);
        return refused(size);
    }
    atomic_fetch_add_explicit(&live_blocks, 1, memory_order_relaxed);
    unsettled += (int64_t)(malloc_usable_size(ptr) - size);
    return ptr;
}

void *tl_malloc(size_t size)
{
    if (tl_mem_must_fail(size)) {
        return NULL;
    }
    if (!tl_mem_take(size)) {
        return refused(size);
    }
    return counted(malloc(size ? size : 1), size);
}

void *tl_calloc(size_t count, size_t size)
{
    size_t bytes;

    if (!tl_mul_size(&bytes, count, size)) {
        bytes = SIZE_MAX;
    }
    if (tl_mem_must_fail(bytes)) {
        return NULL;
    }
    if (!tl_mem_take(bytes)) {
        return refused(bytes);
    }
    return counted(calloc(1, bytes ? bytes : 1), bytes);
}

void *tl_realloc(void *ptr, size_t size)
{
    size_t before, more;
    void *res;

    if (!ptr) {
        return tl_malloc(size);
    }
    if (tl_mem_must_fail(size)) {
        return NULL;
    }
    before = malloc_usable_size(ptr);
    more = size > before ? size - before : 0;
    if (!tl_mem_take(more)) {
        return refused(size);
    }
    res = realloc(ptr, size ? size : 1);
    if (!res) {
        tl_mem_give(more);
        return refused(size);
    }
    unsettled += (int64_t)(malloc_usable_size(res) - before - more);
    return res;
}

char *tl_strndup(const char *s, size_t len)
{
    size_t size;
    char *res;

    if (!tl_add_size(&size, len, 1)) {
        return NULL;
    }
    res = tl_malloc(size);
    if (!res) {
        return NULL;
    }
    if (len > 0) {
        memcpy(res, s, len);
    }
    res[len] = '\0';
    return res;
}

void tl_free(void *ptr)
{
    if (ptr) {
        atomic_fetch_sub_explicit(&live_blocks, 1, memory_order_relaxed);
        tl_mem_give(malloc_usable_size(ptr));
        free(ptr);
    }
}
