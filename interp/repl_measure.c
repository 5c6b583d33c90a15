/* repl_measure.c - commands of the prompt that measure: :time and :bench. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "interp/repl.h"

enum { MOST_RUNS = 2000, LEAST_RUNS = 5 };

#define BENCH_SECONDS 1.0

static double seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void put_time(tl_buf *out, double s)
{
    double scale = s >= 1 ? 1 : s >= 1e-3 ? 1e3 : s >= 1e-6 ? 1e6 : 1e9;
    const char *unit = s >= 1      ? "s"
                       : s >= 1e-3 ? "ms"
                       : s >= 1e-6 ? "\302\265s"
                                   : "ns";

    tl_buf_printf(out, "%.3g %s", s * scale, unit);
}

void tl_repl_time(tl_repl *r, const char *text)
{
    tl_pool_stats before, after;
    tl_buf out;

    tl_pool_get_stats(r->s->rt.pool, &before);
    tl_pool_reset_peak(r->s->rt.pool);
    double start = seconds();

    tl_repl_run(r, text, strlen(text));
    double took = seconds() - start;

    tl_pool_get_stats(r->s->rt.pool, &after);
    if (r->exit_code != 0) {
        return;
    }
    tl_buf_init(&out);
    put_time(&out, took);
    if (after.peak > before.live) {
        tl_buf_puts(&out, ", at most ");
        tl_repl_put_bytes(&out, after.peak - before.live);
        tl_buf_puts(&out, " more memory");
    }
    printf("%s\n", tl_buf_str(&out));
    tl_buf_fini(&out);
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* Times of calls into `times`; *n of them. */
static tl_status run_many(tl_repl *r, tl_value fn, double *times, int *n)
{
    double start = seconds(), now = start;

    for (*n = 0; *n < MOST_RUNS &&
                 (*n < LEAST_RUNS || now - start < BENCH_SECONDS);) {
        tl_value v = tl_none();
        double before = seconds();

        TL_TRY(tl_eval_call_values(&r->s->ev, fn, NULL, 0, &v));
        tl_unref(v);
        now = seconds();
        times[(*n)++] = now - before;
    }
    return TL_OK;
}

static void print_bench(double *times, int n)
{
    tl_buf out;

    qsort(times, (size_t)n, sizeof(*times), by_size);
    tl_buf_init(&out);
    put_time(&out, times[n / 2]);
    tl_buf_puts(&out, " median, ");
    put_time(&out, times[n / 10]);
    tl_buf_puts(&out, " to ");
    put_time(&out, times[n - 1 - n / 10]);
    tl_buf_printf(&out, " (p10 to p90) of %d runs", n);
    printf("%s\n", tl_buf_str(&out));
    tl_buf_fini(&out);
}

void tl_repl_bench(tl_repl *r, const char *expr)
{
    static double times[MOST_RUNS];
    tl_value fn = tl_none(), v = tl_none();
    tl_buf text;
    int n = 0;

    tl_buf_init(&text);
    tl_buf_printf(&text, "fn() => (%s)", expr);
    tl_status st = tl_eval_text(&r->s->ev, r->ns, "<bench>",
                                tl_buf_str(&text), text.len, &fn, NULL);

    if (st == TL_OK) { /* the first run compiles and warms up */
        st = tl_eval_call_values(&r->s->ev, fn, NULL, 0, &v);
    }
    tl_unref(v);
    if (st == TL_OK) {
        st = run_many(r, fn, times, &n);
    }
    if (st == TL_OK) {
        print_bench(times, n);
    }
    tl_unref(fn);
    tl_buf_fini(&text);
    tl_repl_report(r, st);
}
