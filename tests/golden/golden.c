/* golden.c - run golden tests: find them, schedule them, report.
 *
 *     golden --tlang PROGRAM [options] FOLDER_OR_FILE...
 *
 * Ends with "N passed, N failed" alone on a line; exit code 0 when all
 * passed, 1 when a test failed or too few ran, 2 for a usage error. */
#define _GNU_SOURCE
#include "tests/golden/golden.h"

#include <dirent.h>
#include <errno.h>
#include <ftw.h>
#include <getopt.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MAX_JOBS 64

static const char usage[] =
    "usage: golden --tlang PROGRAM [options] FOLDER_OR_FILE...\n"
    "  --tlang PROGRAM  what to test\n"
    "  --jobs N         runs at a time (2)\n"
    "  --timeout S      seconds a test may take (10)\n"
    "  --min N          fail if fewer tests ran\n"
    "  --match TEXT     only tests whose path contains TEXT\n"
    "  --repl           feed the programs to `tlang repl`\n"
    "  --json           add --message-format=json\n"
    "  --compile WORD   TLANG_COMPILE=WORD, unless the test sets it\n"
    "  --valgrind       run under valgrind\n"
    "  --update         rewrite the expectations\n"
    "  --verbose        name each test and its seconds\n";

typedef struct suite {
    test_case **items;
    size_t len, cap;
} suite;

typedef struct tally {
    size_t passed, failed, updated;
} tally;

static void suite_add(suite *s, test_case *c)
{
    if (s->len == s->cap) {
        s->cap = 2 * s->cap + 64;
        s->items = realloc(s->items, s->cap * sizeof *s->items);
        if (!s->items) {
            fputs("golden: out of memory\n", stderr);
            exit(2);
        }
    }
    s->items[s->len++] = c;
}

/* Can the test be run in this form at all? */
static bool fits_form(const options *o, const test_case *c)
{
    bool plain = c->args.len == 0 && !c->input;

    switch (o->form) {
    case FORM_REPL:
        return c->error.len && plain && !c->no_repl;
    case FORM_JSON:
        return c->error.len && !c->no_json;
    case FORM_FILE:
        break;
    }
    return true;
}

/* Is the syntax tree beside it (NAME.ast), for a unit test to compare? */
static bool has_tree(const char *path)
{
    char *tree = format("%.*s.ast", (int)strlen(path) - 3, path);
    bool found = access(tree, F_OK) == 0;

    free(tree);
    return found;
}

static void add_file(suite *s, const options *o, const char *path,
                     const char *name)
{
    size_t len = strlen(path);

    if (len < 3 || strcmp(path + len - 3, ".tl") ||
        (o->pattern && !strstr(path, o->pattern))) {
        return;
    }
    test_case *c = case_read(path, name);
    if (!c) {
        fputs("golden: out of memory\n", stderr);
        exit(2);
    }
    bool is_other = c->helper || (!c->has_expectation && has_tree(path));
    if (is_other || (!c->fault && !fits_form(o, c))) {
        case_free(c);
    } else {
        suite_add(s, c);
    }
}

static bool add_path(suite *s, const options *o, const char *path,
                     const char *name)
{
    struct stat st;
    if (stat(path, &st) != 0) {
        fprintf(stderr, "golden: %s: %s\n", path, strerror(errno));
        return false;
    }
    if (!S_ISDIR(st.st_mode)) {
        add_file(s, o, path, name);
        return true;
    }
    struct dirent **entries;
    int n = scandir(path, &entries, NULL, alphasort);
    bool ok = n >= 0;
    for (int i = 0; i < n; i++) {
        const char *entry = entries[i]->d_name;
        if (entry[0] != '.') {
            char *below = format("%s/%s", path, entry);
            char *label =
                *name ? format("%s/%s", name, entry) : format("%s", entry);
            ok = add_path(s, o, below, label) && ok;
            free(below);
            free(label);
        }
        free(entries[i]);
    }
    if (n >= 0) {
        free(entries);
    }
    return ok;
}

static void report(const options *o, const run *r, tally *t)
{
    text why = {0};

    compare_run(o, r, &why);
    if (o->update && why.len && update_case(r)) {
        printf("updated %s\n", r->test->name);
        t->updated++;
        t->passed++;
    } else if (why.len) {
        printf("FAIL %s (%s)\n%s", r->test->name, r->test->path, why.s);
        t->failed++;
    } else {
        t->passed++;
        if (o->verbose) {
            printf("ok %6.2f s  %s\n", r->seconds, r->test->name);
        }
    }
    fflush(stdout);
    text_free(&why);
}

/* Wait until a child ends or a deadline passes; kill what is late. */
static void wait_some(run **running, int n)
{
    double first = running[0]->deadline, now = now_seconds();

    for (int i = 0; i < n; i++) {
        if (running[i]->deadline < now && !running[i]->timed_out) {
            running[i]->timed_out = true;
            kill(-running[i]->pid, SIGKILL);
        }
        if (running[i]->deadline < first) {
            first = running[i]->deadline;
        }
    }
    double left = first - now;
    left = left < 0.01 ? 0.01 : left > 1 ? 1 : left;
    struct timespec wait = {.tv_sec = (time_t)left,
                            .tv_nsec = (long)(1e9 * (left - (int)left))};
    sigset_t child;
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    sigtimedwait(&child, NULL, &wait);
}

/* Take the runs that have ended off the list. */
static void reap(const options *o, run **running, int *n, tally *t)
{
    for (int i = 0; i < *n;) {
        int status;
        if (waitpid(running[i]->pid, &status, WNOHANG) != running[i]->pid) {
            i++;
            continue;
        }
        run_finish(running[i], status);
        report(o, running[i], t);
        run_free(running[i]);
        running[i] = running[--*n];
    }
}

static void fail_case(const test_case *c, const char *why, tally *t)
{
    printf("FAIL %s (%s)\n  %s\n", c->name, c->path, why);
    t->failed++;
}

static tally run_suite(const options *o, const suite *s)
{
    run *running[MAX_JOBS];
    tally t = {0};
    int n = 0;

    for (size_t next = 0; next < s->len || n > 0;) {
        while (n < o->jobs && next < s->len) {
            test_case *c = s->items[next++];
            // An update gives a test its first expectations.
            if (c->fault && !(o->update && !c->has_expectation)) {
                fail_case(c, c->fault, &t);
                continue;
            }
            running[n] = run_start(o, c, next);
            if (running[n]) {
                n++;
            } else {
                fail_case(c, "cannot be started", &t);
            }
        }
        if (n > 0) {
            wait_some(running, n);
            reap(o, running, &n, &t);
        }
    }
    return t;
}

static int number(const char *s, int max)
{
    char *end;
    long n = strtol(s, &end, 10);

    if (end == s || *end || n < 1 || n > max) {
        fprintf(stderr, "golden: %s is not a number from 1 to %d\n", s, max);
        exit(2);
    }
    return (int)n;
}

/* dispatch */
static void read_options(options *o, int argc, char **argv)
{
    static const struct option longs[] = {
        {"tlang", required_argument, NULL, 't'},
        {"jobs", required_argument, NULL, 'j'},
        {"timeout", required_argument, NULL, 's'},
        {"min", required_argument, NULL, 'm'},
        {"match", required_argument, NULL, 'k'},
        {"repl", no_argument, NULL, 'r'},
        {"json", no_argument, NULL, 'J'},
        {"compile", required_argument, NULL, 'c'},
        {"valgrind", no_argument, NULL, 'V'},
        {"update", no_argument, NULL, 'u'},
        {"verbose", no_argument, NULL, 'v'},
        {NULL, 0, NULL, 0},
    };
    int c;

    while ((c = getopt_long(argc, argv, "", longs, NULL)) != -1) {
        switch (c) {
        case 't':
            o->tlang = realpath(optarg, NULL);
            if (!o->tlang) {
                fprintf(stderr, "golden: %s: %s\n", optarg, strerror(errno));
                exit(2);
            }
            break;
        case 'j':
            o->jobs = number(optarg, MAX_JOBS);
            break;
        case 's':
            o->timeout = number(optarg, 86400);
            break;
        case 'm':
            o->min = number(optarg, INT_MAX);
            break;
        case 'k':
            o->pattern = optarg;
            break;
        case 'r':
            o->form = FORM_REPL;
            break;
        case 'J':
            o->form = FORM_JSON;
            break;
        case 'c':
            o->compile = optarg;
            break;
        case 'V':
            o->valgrind = true;
            break;
        case 'u':
            o->update = true;
            break;
        case 'v':
            o->verbose = true;
            break;
        default:
            fputs(usage, stderr);
            exit(2);
        }
    }
    if (!o->tlang || optind == argc ||
        (o->update && (o->form != FORM_FILE || o->valgrind))) {
        fputs(usage, stderr);
        exit(2);
    }
}

static int remove_entry(const char *path, const struct stat *st, int type,
                        struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

static bool collect(suite *s, const options *o, char **paths, int n)
{
    bool ok = true;

    for (int i = 0; i < n; i++) {
        char *path = realpath(paths[i], NULL);
        struct stat st;
        if (!path || stat(path, &st) != 0) {
            fprintf(stderr, "golden: %s: %s\n", paths[i], strerror(errno));
            ok = false;
        } else {
            const char *slash = strrchr(path, '/');
            ok = add_path(s, o, path, S_ISDIR(st.st_mode) ? "" : slash + 1) &&
                 ok;
        }
        free(path);
    }
    return ok;
}

int main(int argc, char **argv)
{
    options o = {.jobs = 2, .timeout = 10};
    read_options(&o, argc, argv);

    suite s = {0};
    if (!collect(&s, &o, argv + optind, argc - optind)) {
        return 2;
    }
    const char *tmp = getenv("TMPDIR");
    o.scratch = format("%s/golden.XXXXXX", tmp && *tmp ? tmp : "/tmp");
    if (!mkdtemp(o.scratch)) {
        fprintf(stderr, "golden: %s: %s\n", o.scratch, strerror(errno));
        return 2;
    }
    sigset_t child;
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    sigprocmask(SIG_BLOCK, &child, NULL);

    tally t = run_suite(&o, &s);
    nftw(o.scratch, remove_entry, 16, FTW_DEPTH | FTW_PHYS);

    size_t ran = t.passed + t.failed;
    bool few = ran < (size_t)o.min;
    if (few) {
        printf("only %zu tests, %d wanted\n", ran, o.min);
    }
    printf("%zu passed, %zu failed\n", t.passed, t.failed);
    for (size_t i = 0; i < s.len; i++) {
        case_free(s.items[i]);
    }
    free(s.items);
    free(o.tlang);
    free(o.scratch);
    return t.failed || few;
}
