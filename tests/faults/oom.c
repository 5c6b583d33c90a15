/* oom.c - every allocation of a few scripts fails once.
 *
 *     tests/faults/oom [--again] [--every=K] SCRIPTS_FOLDER [SCRIPT ...]
 *
 * A script runs once.  Just before each of its allocations the process is
 * copied twice: in one copy this allocation fails, in the other it and all
 * that follow; each copy then runs to its end and is examined.  Thus a run
 * costs what comes behind the failure, not what comes before it.  README.md
 * has what must hold.
 *
 * With --again each run begins anew instead: for scripts that change files,
 * which copies would share, and to count coverage.  With --every=K only each
 * K-th allocation fails.  Prints "stage, cases, failures" and "N passed, N
 * failed". */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "interp/session.h"
#include "runtime/base/machine.h"
#include "runtime/base/mem.h"
#include "runtime/io/file.h"

enum {
    SECONDS = 60 /* of a copy */
};

static int cases, failures;
static bool again;
static uint64_t every = 1;

/* What runs, for the copies: they are made where nothing can be passed on. */
static struct {
    const char *script;
    uint64_t first;  /* attempts before it */
    uint64_t failed; /* number of the allocation that failed, 0: none */
    int running, most;
} now;

static void complain(uint64_t n, const char *what)
{
    fprintf(stderr, "%s, allocation %llu: %s\n", now.script,
            (unsigned long long)n, what);
    failures++;
}

static tl_status swallow(void *arg, const char *s, size_t len)
{
    (void)arg;
    (void)s;
    (void)len;
    return TL_OK;
}

/* ---- one run ----------------------------------------------------------- */

/* A session must answer after any failure. */
static bool alive(tl_session *s)
{
    tl_namespace *ns = NULL;
    tl_value v = tl_none();
    bool incomplete;

    return tl_namespace_new(&ns, &s->ev, "main", "<repl>") == TL_OK &&
           tl_eval_text(&s->ev, ns, "<repl>", "1 + 1", 5, &v, &incomplete) ==
               TL_OK &&
           v.tag == TL_V_INT && v.i == 2;
}

/* Is there an E0607?  Warnings may follow it. */
static bool reported(const tl_diag *diag)
{
    const tl_diag_item *item = diag->first;

    while (item != NULL && item->code != TL_E0607) {
        item = item->next;
    }
    return item != NULL;
}

/* What a run whose n-th allocation failed (0: none did) ended in. */
static void examine(tl_session *s, tl_status st, uint64_t n)
{
    if (st != TL_OK &&
        (n == 0 || st != TL_ERR_MEMORY || !reported(&s->diag))) {
        tl_buf text;

        tl_buf_init(&text);
        tl_buf_printf(&text, "status %d: ", (int)st);
        tl_diag_print(&s->diag, TL_DIAG_HUMAN, false, &text);
        complain(n, tl_buf_str(&text));
        tl_buf_fini(&text);
    }
    if (st == TL_OK && s->diag.nerrors != 0) {
        complain(n, "an error is reported that there was not");
    }
    tl_diag_clear(&s->diag);
    if (!alive(s)) {
        complain(n, "the session is dead");
    }
}

/* Run the text in a new session; `arm` starts what fails.  What is alive
 * before has to be all that is alive afterwards. */
static void run_text(const tl_bytes *text, void (*arm)(uint64_t), uint64_t n)
{
    int64_t blocks = tl_mem_live_blocks();
    int64_t objects = tl_obj_live() + tl_tensor_live();
    tl_session *s = tl_calloc(1, sizeof(*s));

    tl_session_init(s);
    s->options.threads = 1;
    if (tl_session_start(s) != TL_OK) {
        complain(n, "set-up failed");
        exit(1);
    }
    s->ev.write = swallow;
    now.first = tl_mem_attempts();
    now.failed = 0;
    arm(n);
    tl_status st = tl_session_run(s, now.script, text->data, text->size);

    if (again && tl_mem_attempts() - now.first >= n) {
        now.failed = n;
    }
    tl_mem_fail_by(NULL);
    examine(s, st, now.failed);
    tl_session_fini(s);
    tl_free(s);
    if (tl_obj_live() + tl_tensor_live() != objects) {
        complain(now.failed, "objects are left");
    }
    if (tl_mem_live_blocks() != blocks) {
        complain(now.failed, "blocks are left");
    }
}

/* ---- copies of the process --------------------------------------------- */

/* Wait for a copy to end, and count it. */
static void collect(void)
{
    int status;
    pid_t pid;

    do {
        pid = waitpid(-1, &status, 0);
    } while (pid < 0 && errno == EINTR);
    now.running--;
    cases++;
    if (pid < 0 || !WIFEXITED(status)) {
        fprintf(stderr, "%s: a run ended by signal %d\n", now.script,
                pid < 0 ? 0 : WTERMSIG(status));
        failures++;
    } else if (WEXITSTATUS(status) != 0) {
        failures++;
    }
}

/* Copy the process; true in the copy. */
static bool copied(void)
{
    pid_t pid;

    while (now.running >= now.most) {
        collect();
    }
    pid = fork();
    if (pid == 0) {
        failures = 0;
        alarm(SECONDS);
        return true;
    }
    if (pid < 0) {
        complain(0, "the process cannot be copied");
        return false;
    }
    now.running++;
    return false;
}

/* Before an allocation: the copies fail it. */
static bool fail_in_copies(uint64_t attempt, size_t bytes)
{
    uint64_t n = attempt - now.first;

    (void)bytes;
    if ((n - 1) % every != 0) {
        return false;
    }
    for (int sticky = 0; sticky < 2; sticky++) {
        if (copied()) {
            tl_mem_fail_by(NULL);
            tl_mem_fail_at(sticky, true);
            now.failed = n;
            return true;
        }
    }
    return false;
}

static void arm_none(uint64_t n)
{
    (void)n;
}

static void arm_copies(uint64_t n)
{
    (void)n;
    tl_mem_fail_by(fail_in_copies);
}

/* The first run is for what stays with the process, such as the kernels that
 * oneDNN generates: each copy would make them for itself. */
static void run_copies(const tl_bytes *text)
{
    run_text(text, arm_none, 0);
    run_text(text, arm_copies, 0);
    if (now.failed != 0) { /* this is a copy */
        _exit(failures != 0);
    }
    if (tl_mem_attempts() == now.first) {
        complain(0, "the script does not allocate");
    }
    while (now.running > 0) {
        collect();
    }
}

/* ---- runs from the start ----------------------------------------------- */

static void arm_once(uint64_t n)
{
    tl_mem_fail_at(n, false);
}

static void arm_sticky(uint64_t n)
{
    tl_mem_fail_at(n, true);
}

static void run_again(const tl_bytes *text)
{
    for (int sticky = 0; sticky < 2; sticky++) {
        uint64_t n = 1;

        do {
            run_text(text, sticky ? arm_sticky : arm_once, n);
            cases++;
            n += every;
        } while (now.failed != 0);
    }
}

static void run_script(const char *folder, const char *name)
{
    tl_bytes text = {0};
    tl_diag diag;
    char path[512];

    now.script = name;
    snprintf(path, sizeof(path), "%s/%s.tl", folder, name);
    tl_diag_init(&diag, NULL);
    if (tl_file_read(path, 0, &text, &diag) != TL_OK) {
        complain(0, "cannot be read");
    } else if (again) {
        run_again(&text);
    } else {
        run_copies(&text);
    }
    tl_bytes_fini(&text);
    tl_diag_fini(&diag);
}

typedef struct job {
    int argc;
    char **argv;
} job;

static void *run(void *arg)
{
    static const char *const all[] = {"values", "train", "modules",
                                      "compiled"};
    job *j = arg;

    for (int i = 1; i < j->argc; i++) {
        run_script(j->argv[0], j->argv[i]);
    }
    for (size_t i = 0; j->argc == 1 && i < sizeof(all) / sizeof(*all); i++) {
        run_script(j->argv[0], all[i]);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    job j = {argc - 1, argv + 1};
    pthread_attr_t attr;
    pthread_t thread;

    for (; j.argc > 0 && strncmp(j.argv[0], "--", 2) == 0; j.argc--) {
        if (strcmp(j.argv[0], "--again") == 0) {
            again = true;
        } else if (strncmp(j.argv[0], "--every=", 8) == 0) {
            every = strtoull(j.argv[0] + 8, NULL, 10);
        }
        j.argv++;
    }
    if (j.argc < 1 || every == 0) {
        fprintf(stderr,
                "usage: oom [--again] [--every=K] FOLDER [SCRIPT ...]\n");
        return 2;
    }
    now.most = tl_machine_cpus();
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, (size_t)256 << 20);
    pthread_create(&thread, &attr, run, &j);
    pthread_join(thread, NULL);
    unlink("oom-test.safetensors");
    printf("stage faults/oom, cases %d, failures %d\n", cases, failures);
    printf("%d passed, %d failed\n", cases - failures, failures);
    return failures != 0;
}
