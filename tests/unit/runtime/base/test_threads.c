/* test_threads.c - the pool: every task once, whatever happens. */
#include <criterion/criterion.h>

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/base/mem.h"
#include "runtime/base/threads.h"

static tl_diag diag;

static tl_threads *new_pool(int count)
{
    tl_threads *pool = NULL;

    tl_diag_init(&diag, NULL);
    cr_assert_eq(tl_threads_new(&pool, count, &diag), TL_OK);
    return pool;
}

static void free_pool(tl_threads *pool)
{
    tl_threads_free(pool);
    tl_diag_fini(&diag);
}

/* What the tasks of a region note down. */
typedef struct tally {
    int64_t n;
    _Atomic int *runs; /* of each task */
    _Atomic int using[256]; /* tasks that run now, by worker */
    atomic_bool shared_index, out_of_range;
    int workers;
} tally;

static tally new_tally(int64_t n, int workers)
{
    return (tally){
        .n = n, .runs = calloc((size_t)n + 1, sizeof(int)), .workers = workers};
}

static void note_run(void *arg, int64_t task, int worker)
{
    tally *t = arg;

    if (task < 0 || task >= t->n) {
        atomic_store(&t->out_of_range, true);
        return;
    }
    if (worker < 0 || worker >= t->workers ||
        atomic_fetch_add(&t->using[worker], 1) != 0) {
        atomic_store(&t->shared_index, true);
    }
    atomic_fetch_add_explicit(&t->runs[task], 1, memory_order_relaxed);
    atomic_fetch_sub(&t->using[worker], 1);
}

static void expect_each_once(const tally *t, int times)
{
    cr_assert_not(t->shared_index);
    cr_assert_not(t->out_of_range);
    for (int64_t i = 0; i < t->n; i++) {
        cr_assert_eq(t->runs[i], times, "task %ld ran %d times", (long)i,
                     t->runs[i]);
    }
}

Test(threads, every_task_runs_once_over_many_regions)
{
    for (int count = 1; count <= 5; count++) {
        tl_threads *pool = new_pool(count);
        tally t = new_tally(37, count);

        for (int region = 0; region < 3000; region++) {
            tl_threads_run(pool, 1 + region % 37, note_run, &t);
        }
        cr_assert_not(t.shared_index);
        for (int i = 0; i < 37; i++) {
            int missed = 3000 / 37 * i + (3000 % 37 < i ? 3000 % 37 : i);

            cr_assert_eq(t.runs[i], 3000 - missed, "task %d", i);
        }
        free(t.runs);
        free_pool(pool);
    }
}

/* Plain memory: the end of a region publishes what its tasks wrote. */
static void add_one(void *arg, int64_t task, int worker)
{
    (void)worker;
    ((int *)arg)[task]++;
}

Test(threads, writes_of_tasks_are_seen_after_the_region)
{
    tl_threads *pool = new_pool(4);
    int cells[16] = {0};

    for (int region = 0; region < 5000; region++) {
        tl_threads_run(pool, 16, add_one, cells);
        for (int i = 0; i < 16; i++) {
            cr_assert_eq(cells[i], region + 1);
        }
    }
    free_pool(pool);
}

Test(threads, no_tasks_is_no_work)
{
    tl_threads *pool = new_pool(3);
    tally t = new_tally(1, 3);

    tl_threads_run(pool, 0, note_run, &t);
    cr_assert_eq(t.runs[0], 0);
    tl_threads_run(pool, 1, note_run, &t);
    cr_assert_eq(t.runs[0], 1);
    free(t.runs);
    free_pool(pool);
}

Test(threads, more_tasks_than_the_claim_word_counts)
{
    static const int64_t sizes[] = {65535, 65536, 65537, 131070, 131071,
                                    200001};
    tl_threads *pool = new_pool(3);

    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
        tally t = new_tally(sizes[i], 3);

        tl_threads_run(pool, sizes[i], note_run, &t);
        expect_each_once(&t, 1);
        free(t.runs);
    }
    free_pool(pool);
}

typedef struct nest {
    tl_threads *pool;
    tally inner;
    atomic_int begun; /* outer tasks */
    atomic_bool wrong_thread, wrong_worker;
} nest;

typedef struct inner_call {
    nest *n;
    pthread_t thread;
    int worker;
} inner_call;

static void inner_task(void *arg, int64_t task, int worker)
{
    inner_call *c = arg;

    if (!pthread_equal(c->thread, pthread_self())) {
        atomic_store(&c->n->wrong_thread, true);
    }
    if (c->worker != worker) {
        atomic_store(&c->n->wrong_worker, true);
    }
    atomic_fetch_add(&c->n->inner.runs[task], 1);
}

static void outer_task(void *arg, int64_t task, int worker)
{
    nest *n = arg;
    inner_call c = {n, pthread_self(), worker};

    (void)task;
    /* the first region goes on once a worker thread takes part in it */
    atomic_fetch_add(&n->begun, 1);
    for (int i = 0; i < 1000000 && atomic_load(&n->begun) < 2; i++) {
        sched_yield();
    }
    tl_threads_run(n->pool, 10, inner_task, &c);
}

Test(threads, nested_region_runs_on_its_own_thread)
{
    nest n = {.pool = new_pool(4), .inner = new_tally(10, 4)};

    for (int region = 0; region < 200; region++) {
        tl_threads_run(n.pool, 8, outer_task, &n);
    }
    expect_each_once(&n.inner, 200 * 8);
    cr_expect_not(n.wrong_thread);
    cr_expect_not(n.wrong_worker);
    free(n.inner.runs);
    free_pool(n.pool);
}

static void *run_regions(void *arg)
{
    tl_threads *pool = arg;
    tally t = new_tally(20, 4);

    for (int i = 0; i < 3000; i++) {
        tl_threads_run(pool, 20, note_run, &t);
    }
    expect_each_once(&t, 3000);
    free(t.runs);
    return NULL;
}

Test(threads, two_callers_share_a_pool)
{
    tl_threads *pool = new_pool(4);
    pthread_t other[2];

    for (int i = 0; i < 2; i++) {
        cr_assert_eq(pthread_create(&other[i], NULL, run_regions, pool), 0);
    }
    run_regions(pool);
    for (int i = 0; i < 2; i++) {
        pthread_join(other[i], NULL);
    }
    free_pool(pool);
}

static void pool_inside(void *arg, int64_t task, int worker)
{
    tl_threads **pools = arg;
    tally t = new_tally(9, 2);

    (void)worker;
    tl_threads_run(pools[task % 2], 9, note_run, &t);
    expect_each_once(&t, 1);
    free(t.runs);
}

Test(threads, tasks_may_use_another_pool)
{
    tl_threads *pool = new_pool(4);
    tl_threads *inner[2] = {new_pool(2), new_pool(2)};

    for (int i = 0; i < 100; i++) {
        tl_threads_run(pool, 6, pool_inside, inner);
    }
    tl_threads_free(inner[0]);
    tl_threads_free(inner[1]);
    free_pool(pool);
}

static void check_one_worker(void *arg, int64_t task, int worker)
{
    (void)task;
    *(int *)arg |= worker != 0;
}

Test(threads, without_worker_threads_the_caller_does_all)
{
    tl_threads *pool = new_pool(4);
    tally t = new_tally(100, 4);
    int others = 0;

    tl_mem_fail_at(1, true);
    tl_threads_run(pool, 100, note_run, &t);
    tl_threads_run(pool, 100, check_one_worker, &others);
    tl_mem_fail_at(0, false);
    expect_each_once(&t, 1);
    cr_expect_eq(others, 0);
    free(t.runs);
    free_pool(pool);
}

Test(threads, some_worker_threads_missing)
{
    tl_threads *pool = new_pool(6);
    tally t = new_tally(100, 6);

    tl_mem_fail_at(3, true); /* two workers start, the third does not */
    for (int i = 0; i < 500; i++) {
        tl_threads_run(pool, 100, note_run, &t);
    }
    tl_mem_fail_at(0, false);
    expect_each_once(&t, 500);
    free(t.runs);
    free_pool(pool);
}

Test(threads, new_reports_missing_memory)
{
    tl_threads *pool = NULL;

    tl_diag_init(&diag, NULL);
    tl_mem_fail_at(1, false);
    cr_expect_eq(tl_threads_new(&pool, 4, &diag), TL_ERR_MEMORY);
    cr_expect_null(pool);
    tl_threads_free(NULL);
    tl_diag_fini(&diag);
}

Test(threads, unused_pool_starts_no_thread_and_leaks_nothing)
{
    int64_t before = tl_mem_live_blocks();
    uint64_t attempts;
    tl_threads *pool = new_pool(200);

    attempts = tl_mem_attempts();
    cr_expect_eq(tl_threads_count(pool), 200);
    tl_threads_run(pool, 1, check_one_worker, &(int){0});
    cr_expect_eq(tl_mem_attempts(), attempts);
    free_pool(pool);
    cr_expect_eq(tl_mem_live_blocks(), before);
}

/* The child has no worker threads: it does all tasks itself, and ends. */
Test(threads, child_of_a_fork_works_alone)
{
    tl_threads *pool = new_pool(4);
    tally t = new_tally(200, 4);
    int status = -1;
    pid_t pid;

    tl_threads_run(pool, 200, note_run, &t);
    pid = fork();
    cr_assert(pid >= 0);
    if (pid == 0) {
        bool good = true;

        alarm(5); /* it must not hang */
        for (int i = 0; i < 20; i++) {
            tl_threads_run(pool, 200, note_run, &t);
        }
        for (int i = 0; i < 200; i++) {
            good = good && atomic_load(&t.runs[i]) == 21;
        }
        _exit(good ? 0 : 1);
    }
    cr_assert_eq(waitpid(pid, &status, 0), pid);
    cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%d", status);
    tl_threads_run(pool, 200, note_run, &t);
    expect_each_once(&t, 2);
    free(t.runs);
    free_pool(pool);
}

Test(threads, available_is_within_bounds)
{
    int n = tl_threads_available();

    cr_assert(n >= 1 && n <= 256, "%d", n);
}
