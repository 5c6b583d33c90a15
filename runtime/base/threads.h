/* threads.h - the thread pool: short parallel regions on a futex.
 *
 * A region is `ntasks` calls fn(arg, task, worker).  Tasks are claimed from
 * one atomic word (epoch, count, next); the calling thread works too and
 * waits only for tasks that others have claimed.  Workers spin after work
 * with a budget of at most about 60 microseconds that halves when a spin
 * finds nothing and doubles when it does, then sleep on a futex; the caller
 * wakes only sleepers.  See README.md here for the measurements behind it.
 *
 * One pool a runtime.  A region started from inside a task, or while another
 * thread's region runs, is executed by the caller alone. */
#ifndef TL_BASE_THREADS_H
#define TL_BASE_THREADS_H

#include <stdint.h>

#include "runtime/base/diag.h"

typedef struct tl_threads tl_threads;

/* `worker` is 0 .. tl_threads_count() - 1 and unique among the running tasks
 * of a region, so it may index scratch that belongs to the region. */
typedef void tl_task_fn(void *arg, int64_t task, int worker);

enum { TL_MOST_THREADS = 256 }; /* of one pool */

/* min(affinity, cgroup v2 cpu.max or v1 quota rounded up), at least 1. */
int tl_threads_available(void);

/* A pool in which `count` threads work, the caller included (1 .. 256).
 * Worker threads start at the first region that needs them; if one cannot be
 * started the pool goes on with fewer workers, and the same results. */
TL_MUST_USE tl_status tl_threads_new(tl_threads **out, int count,
                                     tl_diag *diag);

/* Stop and join the workers.  NULL is allowed. */
void tl_threads_free(tl_threads *pool);

/* The `count` of tl_threads_new. */
int tl_threads_count(const tl_threads *pool);

/* Run all tasks; returns when all are done.  ntasks may be 0. */
void tl_threads_run(tl_threads *pool, int64_t ntasks, tl_task_fn *fn,
                    void *arg);

#endif
