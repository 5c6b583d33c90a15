/* threads.c - short parallel regions on a futex.
 *
 * `claim` is the heart: epoch (32 bits), number of parts (16), next part (16).
 * The caller publishes a region by storing a new epoch there; whoever moves
 * `next` by compare-and-swap owns that part, and since the epoch is compared
 * as well, a late worker cannot take a part of a later region.  The fields fn,
 * arg, ntasks, group are written before the word is published and stay as
 * they are while a part is in hand, because the caller waits for it.
 *
 * A sleeper waits on the epoch half of the word.  `done` counts the parts that
 * workers finished; its top bit says that the caller sleeps on it.
 *
 * A part is `group` consecutive tasks: one, unless there are more than 65535.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include "runtime/base/threads.h"

#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "runtime/base/check.h"
#include "runtime/base/machine.h"
#include "runtime/base/mem.h"

enum {
    MOST_THREADS = TL_MOST_THREADS,
    MOST_PARTS = 65535,
    SPIN_MAX_NS = 58000, /* a futex wake-up and a little */
    SPIN_MIN_NS = 2000,
    SPIN_STEP = 16 /* pauses between looks at the clock */
};

#define CALLER_SLEEPS ((uint32_t)1 << 31)

typedef struct worker {
    tl_threads *pool;
    pthread_t thread;
    int index; /* from 1 */
} worker;

struct tl_threads {
    _Atomic uint64_t claim;
    char padding[56]; /* the word that everyone polls has its cache line */

    _Atomic uint32_t done;
    _Atomic uint32_t sleepers;
    atomic_bool busy; /* a region runs */
    atomic_bool stop;

    tl_task_fn *fn;
    void *arg;
    int64_t ntasks, group;

    int count;
    int started;      /* workers running; written while busy */
    bool cannot_start; /* a thread could not be created: stop trying */
    worker workers[];
};

/* The pool whose worker this thread is, and which. */
static _Thread_local const tl_threads *own_pool;
static _Thread_local int own_index;

int tl_threads_available(void)
{
    int n = tl_machine_cpus();

    return n < MOST_THREADS ? n : MOST_THREADS;
}

/* ---- waiting ------------------------------------------------------------- */

static void pause_cpu(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ __volatile__("yield");
#endif
}

static int64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void futex_wait(void *word, uint32_t value)
{
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
}

static void futex_wake(void *word, int n)
{
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, n, NULL, NULL, 0);
}

/* Address of the half of the claim word that holds the epoch. */
static uint32_t *epoch_word(tl_threads *pool)
{
    uint32_t *half = (uint32_t *)(void *)&pool->claim;

    return half + (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__);
}

static uint32_t epoch_now(tl_threads *pool)
{
    return (uint32_t)(atomic_load_explicit(&pool->claim,
                                           memory_order_relaxed) >>
                      32);
}

/* ---- parts --------------------------------------------------------------- */

/* Take the next part; false if none is left, and then *epoch is the one whose
 * parts are gone. */
static bool claim_part(tl_threads *pool, int64_t *part, uint32_t *epoch)
{
    uint64_t word = atomic_load_explicit(&pool->claim, memory_order_acquire);

    for (;;) {
        uint32_t next = word & 0xffff, count = (word >> 16) & 0xffff;

        if (next >= count) {
            *epoch = (uint32_t)(word >> 32);
            return false;
        }
        if (atomic_compare_exchange_weak_explicit(
                &pool->claim, &word, word + 1, memory_order_acquire,
                memory_order_acquire)) {
            *part = next;
            return true;
        }
    }
}

/* Run parts until none is left; returns how many. */
static uint32_t work(tl_threads *pool, int index, uint32_t *epoch)
{
    uint32_t n = 0;
    int64_t part;

    for (; claim_part(pool, &part, epoch); n++) {
        int64_t task = part * pool->group;
        int64_t left = pool->ntasks - task;
        int64_t end = task + (left < pool->group ? left : pool->group);

        for (; task < end; task++) {
            pool->fn(pool->arg, task, index);
        }
    }
    return n;
}

/* ---- workers ------------------------------------------------------------- */

/* Poll for a region after `epoch` until the time `end`. */
static bool spin_for_region(tl_threads *pool, uint32_t epoch, int64_t end)
{
    do {
        for (int i = 0; i < SPIN_STEP; i++) {
            if (epoch_now(pool) != epoch) {
                return true;
            }
            pause_cpu();
        }
    } while (now_ns() < end);
    return false;
}

/* Sleep until the epoch is another. */
static void sleep_until_region(tl_threads *pool, uint32_t epoch)
{
    /* Sequentially consistent with tl_threads_run: either it sees this
     * sleeper, or the sleeper sees its epoch. */
    atomic_fetch_add(&pool->sleepers, 1);
    while ((uint32_t)(atomic_load(&pool->claim) >> 32) == epoch) {
        futex_wait(epoch_word(pool), epoch);
    }
    atomic_fetch_sub(&pool->sleepers, 1);
}

static void tell_done(tl_threads *pool, uint32_t parts)
{
    uint32_t before = atomic_fetch_add_explicit(&pool->done, parts,
                                                memory_order_release);

    if (before & CALLER_SLEEPS) {
        futex_wake(&pool->done, 1);
    }
}

static int64_t clamp_budget(int64_t budget)
{
    budget = budget > SPIN_MAX_NS ? SPIN_MAX_NS : budget;
    return budget < SPIN_MIN_NS ? SPIN_MIN_NS : budget;
}

/* Wait for a region after `epoch`, first spinning if *hot.  Returns the new
 * budget of the spin: halved when the spin finds no region, but doubled when
 * the longest spin would have found it.  *hot is then whether the wait was
 * that short. */
static int64_t wait_for_region(tl_threads *pool, uint32_t epoch,
                               int64_t budget, bool *hot)
{
    int64_t start = now_ns();

    if (*hot && spin_for_region(pool, epoch, start + budget)) {
        return budget;
    }
    sleep_until_region(pool, epoch);
    if (now_ns() - start < SPIN_MAX_NS) {
        *hot = true;
        return clamp_budget(budget * 2);
    }
    budget = *hot ? clamp_budget(budget / 2) : budget;
    *hot = false;
    return budget;
}

/* Work and wait in turn.  A worker is hot, and spins, after it had work or
 * waited for less than the longest spin; the budget doubles when a hot worker
 * found a part and halves when all were taken.  A sleeper woken for nothing
 * after a long sleep goes back to sleep: where cores are short, spinning would
 * take them from those who work. */
static void *worker_main(void *arg)
{
    const worker *me = arg;
    tl_threads *pool = me->pool;
    int64_t budget = SPIN_MAX_NS;
    bool hot = false;
    uint32_t epoch, parts;

    own_pool = pool;
    own_index = me->index;
    while (!atomic_load_explicit(&pool->stop, memory_order_acquire)) {
        parts = work(pool, me->index, &epoch);
        if (parts > 0) {
            tell_done(pool, parts);
        }
        if (hot) {
            budget = clamp_budget(parts > 0 ? budget * 2 : budget / 2);
        }
        hot = hot || parts > 0;
        if (!atomic_load(&pool->stop)) {
            budget = wait_for_region(pool, epoch, budget, &hot);
        }
    }
    return NULL;
}

/* Start one more worker, deaf to signals, which are for the main thread. */
static bool start_worker(tl_threads *pool)
{
    worker *w = &pool->workers[pool->started];
    sigset_t all, old;
    int failed;

    if (tl_mem_must_fail(sizeof(*w))) { /* its stack is an allocation */
        return false;
    }
    w->pool = pool;
    w->index = pool->started + 1;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    failed = pthread_create(&w->thread, NULL, worker_main, w);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (failed) {
        return false;
    }
    pool->started++;
    return true;
}

static void start_workers(tl_threads *pool, int64_t wanted)
{
    while (pool->started < wanted && pool->started < pool->count - 1 &&
           !pool->cannot_start) {
        pool->cannot_start = !start_worker(pool);
    }
}

/* ---- the pool ------------------------------------------------------------ */

tl_status tl_threads_new(tl_threads **out, int count, tl_diag *diag)
{
    tl_threads *pool;
    size_t size;

    TL_CHECK(count >= 1 && count <= MOST_THREADS);
    size = sizeof(*pool) + (size_t)(count - 1) * sizeof(pool->workers[0]);
    pool = tl_calloc(1, size);
    if (!pool) {
        return tl_fail_memory(diag, "thread pool", size);
    }
    pool->count = count;
    *out = pool;
    return TL_OK;
}

/* Start a new epoch with `parts` parts. */
static void publish(tl_threads *pool, int64_t parts)
{
    uint64_t epoch = (uint32_t)(epoch_now(pool) + 1);

    atomic_store(&pool->claim, epoch << 32 | (uint64_t)parts << 16);
}

void tl_threads_free(tl_threads *pool)
{
    if (!pool) {
        return;
    }
    atomic_store(&pool->stop, true);
    publish(pool, 0);
    futex_wake(epoch_word(pool), MOST_THREADS);
    for (int i = 0; i < pool->started; i++) {
        pthread_join(pool->workers[i].thread, NULL);
    }
    tl_free(pool);
}

int tl_threads_count(const tl_threads *pool)
{
    return pool->count;
}

/* ---- regions ------------------------------------------------------------- */

/* Wake as many sleepers as there is work for beyond those that spin. */
static void wake_sleepers(tl_threads *pool, int64_t parts)
{
    int64_t sleepers = atomic_load(&pool->sleepers);
    int64_t spinning = pool->started - sleepers;
    int64_t wanted = parts - 1 - spinning;

    if (sleepers > 0 && wanted > 0) {
        futex_wake(epoch_word(pool),
                   (int)(wanted < sleepers ? wanted : sleepers));
    }
}

/* Wait until workers have finished `parts` parts: spin, then sleep. */
static void wait_done(tl_threads *pool, uint32_t parts)
{
    uint32_t seen;
    int64_t end = 0;

    for (;;) {
        for (int i = 0; i < SPIN_STEP; i++) {
            seen = atomic_load_explicit(&pool->done, memory_order_acquire);
            if ((seen & ~CALLER_SLEEPS) == parts) {
                return;
            }
            pause_cpu();
        }
        if (end == 0) {
            end = now_ns() + SPIN_MAX_NS;
        } else if (now_ns() >= end) {
            break;
        }
    }
    for (;;) {
        seen = atomic_fetch_or_explicit(&pool->done, CALLER_SLEEPS,
                                        memory_order_acquire) |
               CALLER_SLEEPS;
        if ((seen & ~CALLER_SLEEPS) == parts) {
            return;
        }
        futex_wait(&pool->done, seen);
    }
}

static void run_alone(const tl_threads *pool, int64_t ntasks, tl_task_fn *fn,
                      void *arg)
{
    int index = own_pool == pool ? own_index : 0;

    for (int64_t task = 0; task < ntasks; task++) {
        fn(arg, task, index);
    }
}

void tl_threads_run(tl_threads *pool, int64_t ntasks, tl_task_fn *fn,
                    void *arg)
{
    uint32_t mine, epoch;
    int64_t parts;

    if (ntasks <= 1 || pool->count == 1 ||
        atomic_exchange_explicit(&pool->busy, true, memory_order_acquire)) {
        run_alone(pool, ntasks, fn, arg);
        return;
    }
    pool->fn = fn;
    pool->arg = arg;
    pool->ntasks = ntasks;
    pool->group = (ntasks - 1) / MOST_PARTS + 1;
    parts = (ntasks - 1) / pool->group + 1;
    atomic_store_explicit(&pool->done, 0, memory_order_relaxed);
    start_workers(pool, parts - 1);
    publish(pool, parts);
    wake_sleepers(pool, parts);
    mine = work(pool, 0, &epoch);
    wait_done(pool, (uint32_t)parts - mine);
    atomic_store_explicit(&pool->busy, false, memory_order_release);
}
