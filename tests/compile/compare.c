/* compare.c - random programs, compiled and interpreted, to the last bit.
 *
 *     compare [--programs=N] [--seed=N] [--from=N] [--jobs=N] [--verbose]
 *             [--no-limits] [--no-reduce] [--limit=SECONDS] [--show=N]
 *             [FILE ...]
 *
 * Each program runs with --compile=off and compiled, and must print the same
 * bytes, or fail with the same message.  A mismatch is reduced and printed.
 * A program that runs longer than the limit is a mismatch, too.
 * At the end the counts must be above their limits (count.h).  --show prints
 * program N and stops; files are compared in place of random programs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "interp/compiled.h"
#include "runtime/base/check.h"
#include "runtime/io/file.h"
#include "tests/compile/count.h"
#include "tests/compile/gen.h"
#include "tests/compile/reduce.h"
#include "tests/compile/run.h"

enum { MAX_SHOWN = 5, MAX_JOBS = 64 }; /* mismatches that are reduced */

typedef struct options {
    uint64_t seed, from, programs;
    uint64_t limit; /* seconds for one program */
    int jobs;
    bool verbose, no_limits, no_reduce;
} options;

typedef enum verdict { SAME, FAILED, REFUSED, DIFFERENT,
                       DIFFERENT_ERRORS } verdict;

typedef struct worker {
    const options *o;
    runner run;
    counts c;
    tl_compile_stats stats; /* of the session so far */
    bool counting;
    int shown;
    verdict wanted; /* by the reducer */
    tl_buf out, errors; /* of the interpreted run */
} worker;

/* ---- one program --------------------------------------------------------- */

static void after_run(void *arg, const tl_eval *ev)
{
    worker *w = arg;

    if (w->counting) {
        tl_compile_stats stats = tl_compiler_stats(ev);

        counts_add_session(&w->c, ev);
        if (stats.traces < w->stats.traces) { /* of a new session */
            w->stats = (tl_compile_stats){0};
        }
        w->c.traces += stats.traces - w->stats.traces;
        w->c.runs += stats.runs - w->stats.runs;
        w->stats = stats;
    }
}

static bool same(const tl_buf *a, const tl_buf *b)
{
    return a->len == b->len && memcmp(a->data, b->data, a->len) == 0;
}

/* Statements and turns of loops are limited (run.c); what hangs elsewhere is
 * ended by a signal, with its process. */
static verdict compare(worker *w, const char *text, size_t len)
{
    runner *r = &w->run;
    bool counting = w->counting;
    tl_status st;

    (void)alarm((unsigned)w->o->limit);
    w->counting = false;
    runner_run(r, text, len, TL_COMPILE_OFF);
    w->counting = counting;
    st = r->status;
    if (r->stopped) { /* a compiled loop counts turns only */
        return FAILED;
    }
    tl_buf_clear(&w->out);
    tl_buf_clear(&w->errors);
    tl_buf_add(&w->out, r->out.data, r->out.len);
    tl_buf_add(&w->errors, r->errors.data, r->errors.len);
    runner_run(r, text, len, TL_COMPILE_MARKED);
    if (r->refused) {
        return REFUSED;
    }
    if (st != r->status || !same(&w->out, &r->out) ||
        (st != TL_OK && !same(&w->errors, &r->errors))) {
        return st == TL_OK ? DIFFERENT : DIFFERENT_ERRORS;
    }
    return st == TL_OK ? SAME : FAILED;
}

static bool differs(void *arg, const char *text, size_t len)
{
    return compare(arg, text, len) == ((worker *)arg)->wanted;
}

/* ---- reports ------------------------------------------------------------- */

static size_t line_of(const char *s, size_t at)
{
    size_t n = 0;

    for (size_t i = 0; i < at; i++) {
        n += s[i] == '\n';
    }
    return n;
}

static void print_line(const char *name, const tl_buf *b, size_t n)
{
    const char *s = tl_buf_str(b);

    while (n > 0 && (s = strchr(s, '\n')) != NULL) {
        s++;
        n--;
    }
    printf("%s: %.*s\n", name, s == NULL ? 0 : (int)strcspn(s, "\n"),
           s == NULL ? "" : s);
}

/* The first line that differs, of both runs. */
static void print_difference(worker *w)
{
    const tl_buf *a = &w->out, *b = &w->run.out;
    size_t i = 0;

    while (i < a->len && i < b->len && a->data[i] == b->data[i]) {
        i++;
    }
    if (i < a->len || i < b->len) {
        size_t n = line_of(tl_buf_str(a), i);

        print_line("interpreted", a, n);
        print_line("compiled   ", b, n);
    }
    printf("%s%s", tl_buf_str(&w->errors), tl_buf_str(&w->run.errors));
}

static void report(worker *w, const char *name, tl_buf *text)
{
    w->counting = false;
    if (!w->o->no_reduce) {
        reduce_program(text, differs, w);
    }
    (void)compare(w, tl_buf_str(text), text->len);
    w->counting = true;
    printf("---- %s: interpreted and compiled differ\n%s", name,
           tl_buf_str(text));
    print_difference(w);
    fflush(stdout);
}

static void judge(worker *w, const char *name, tl_buf *text)
{
    verdict v = compare(w, tl_buf_str(text), text->len);

    w->c.programs++;
    w->c.valid += v == SAME || v == DIFFERENT;
    w->c.failed += v == DIFFERENT_ERRORS;
    w->c.refused += v == REFUSED;
    w->c.failed += v == FAILED;
    if ((v == FAILED || v == REFUSED) && w->o->verbose) {
        printf("---- %s: %s%s", name, v == FAILED ? "failed\n" : "refused\n",
               tl_buf_str(&w->run.errors));
    }
    if (v == DIFFERENT || v == DIFFERENT_ERRORS) {
        w->wanted = v;
        w->c.mismatches++;
        if (w->shown++ < MAX_SHOWN) {
            report(w, name, text);
        }
    }
}

/* ---- workers ------------------------------------------------------------- */

static void worker_init(worker *w, const options *o)
{
    memset(w, 0, sizeof(*w));
    w->o = o;
    w->counting = true;
    runner_init(&w->run);
    w->run.after = after_run;
    w->run.arg = w;
    tl_buf_init(&w->out);
    tl_buf_init(&w->errors);
}

static void worker_fini(worker *w)
{
    runner_fini(&w->run);
    tl_buf_fini(&w->out);
    tl_buf_fini(&w->errors);
}

/* Programs k, k + jobs, ...; *now is where it is, should it die. */
static void work(const options *o, int k, uint64_t *now, counts *out)
{
    worker w;

    worker_init(&w, o);
    for (uint64_t i = o->from + (uint64_t)k; i < o->from + o->programs;
         i += (uint64_t)o->jobs) {
        char name[64];
        tl_buf text;

        *now = i;
        snprintf(name, sizeof(name), "seed %llu, program %llu",
                 (unsigned long long)o->seed, (unsigned long long)i);
        tl_buf_init(&text);
        gen_program(o->seed, i, &text);
        TL_CHECK(!text.failed);
        judge(&w, name, &text);
        tl_buf_fini(&text);
    }
    *out = w.c;
    worker_fini(&w);
}

/* Results lie in memory that all share: a worker may die. */
typedef struct shared {
    uint64_t now[MAX_JOBS];
    counts c[MAX_JOBS];
} shared;

/* Does a process that runs the text die? */
static bool dies(void *arg, const char *text, size_t len)
{
    const options *o = arg;
    int status = 0;
    pid_t pid = fork();

    TL_CHECK(pid >= 0);
    if (pid == 0) {
        worker w;

        if (freopen("/dev/null", "w", stderr) == NULL) {
            _exit(0);
        }
        worker_init(&w, o);
        (void)compare(&w, text, len);
        _exit(0);
    }
    return waitpid(pid, &status, 0) < 0 || status != 0;
}

/* What hangs is not reduced: each try would take as long. */
static void report_death(const options *o, uint64_t number, bool hangs)
{
    tl_buf text;

    tl_buf_init(&text);
    gen_program(o->seed, number, &text);
    if (!o->no_reduce && !hangs) {
        reduce_program(&text, dies, (void *)o);
    }
    printf("---- seed %llu, program %llu: differs: ",
           (unsigned long long)o->seed, (unsigned long long)number);
    if (hangs) {
        printf("it ran longer than %llu s", (unsigned long long)o->limit);
    } else {
        printf("the process died");
    }
    printf("\n%s", tl_buf_str(&text));
    tl_buf_fini(&text);
}

static bool wait_for(const options *o, const shared *all, const pid_t *pids)
{
    bool ok = true;

    for (int k = 0; k < o->jobs; k++) {
        int status = 0;

        if (waitpid(pids[k], &status, 0) < 0 || status != 0) {
            report_death(o, all->now[k],
                         WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM);
            ok = false;
        }
    }
    return ok;
}

static int run_random(const options *o)
{
    shared *all = mmap(NULL, sizeof(*all), PROT_READ | PROT_WRITE,
                       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t pids[MAX_JOBS];
    counts total = {0};
    bool ok;

    TL_CHECK(all != MAP_FAILED);
    fflush(stdout);
    for (int k = 0; k < o->jobs; k++) {
        pids[k] = fork();
        TL_CHECK(pids[k] >= 0);
        if (pids[k] == 0) {
            work(o, k, &all->now[k], &all->c[k]);
            fflush(stdout);
            _exit(0);
        }
    }
    ok = wait_for(o, all, pids);
    for (int k = 0; k < o->jobs; k++) {
        counts_add(&total, &all->c[k]);
    }
    (void)munmap(all, sizeof(*all));
    counts_print(&total, o->verbose);
    ok &= total.mismatches == 0;
    if (!o->no_limits) {
        ok &= counts_suffice(&total);
    }
    return ok ? 0 : 1;
}

static int run_files(const options *o, char **files, int n)
{
    int bad = 0;
    worker w;

    worker_init(&w, o);
    for (int i = 0; i < n; i++) {
        tl_bytes bytes = {0};
        tl_diag diag;
        tl_buf text;

        tl_diag_init(&diag, NULL);
        TL_CHECK(tl_file_read(files[i], 0, &bytes, &diag) == TL_OK);
        tl_buf_init(&text);
        tl_buf_add(&text, bytes.data, bytes.size);
        judge(&w, files[i], &text);
        tl_buf_fini(&text);
        tl_bytes_fini(&bytes);
        tl_diag_fini(&diag);
    }
    bad = w.c.mismatches > 0;
    counts_print(&w.c, o->verbose);
    worker_fini(&w);
    return bad;
}

/* ---- the command line ---------------------------------------------------- */

static bool number_of(const char *arg, const char *name, uint64_t *out)
{
    size_t n = strlen(name);

    if (strncmp(arg, name, n) != 0) {
        return false;
    }
    *out = strtoull(arg + n, NULL, 10);
    return true;
}

static int show(const options *o, uint64_t number)
{
    tl_buf text;

    tl_buf_init(&text);
    gen_program(o->seed, number, &text);
    fputs(tl_buf_str(&text), stdout);
    tl_buf_fini(&text);
    return 0;
}

int main(int argc, char **argv)
{
    options o = {.seed = 1, .programs = 1000, .limit = 60, .jobs = 2};
    uint64_t n = 0, jobs = 2;
    bool shows = false;
    int i = 1;

    for (; i < argc && strncmp(argv[i], "--", 2) == 0; i++) {
        if (number_of(argv[i], "--show=", &n)) {
            shows = true;
        } else if (strcmp(argv[i], "--verbose") == 0) {
            o.verbose = true;
        } else if (strcmp(argv[i], "--no-limits") == 0) {
            o.no_limits = true;
        } else if (strcmp(argv[i], "--no-reduce") == 0) {
            o.no_reduce = true;
        } else if (!number_of(argv[i], "--seed=", &o.seed) &&
                   !number_of(argv[i], "--from=", &o.from) &&
                   !number_of(argv[i], "--programs=", &o.programs) &&
                   !number_of(argv[i], "--limit=", &o.limit) &&
                   !number_of(argv[i], "--jobs=", &jobs)) {
            fprintf(stderr, "compare: what is %s?\n", argv[i]);
            return 2;
        }
    }
    o.jobs = jobs < 1 ? 1 : jobs > MAX_JOBS ? MAX_JOBS : (int)jobs;
    if (shows) {
        return show(&o, n);
    }
    return i < argc ? run_files(&o, argv + i, argc - i) : run_random(&o);
}
