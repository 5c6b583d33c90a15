/* oom.c - every allocation of a few scripts fails once.
 *
 *     tests/faults/oom SCRIPTS_FOLDER [SCRIPT ...]
 *
 * For N = 1, 2, ... the N-th allocation after set-up fails, alone and with
 * all that follow, until a run meets no failure.  README.md has what must
 * hold.  Prints "stage, cases, failures" and "N passed, N failed". */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "interp/session.h"
#include "runtime/base/mem.h"
#include "runtime/io/file.h"

static int cases, failures;

static void complain(const char *script, uint64_t n, const char *what)
{
    fprintf(stderr, "%s, allocation %llu: %s\n", script,
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

/* One run with the n-th allocation failing; true if none failed. */
static bool run_once(const char *script, const tl_bytes *text, uint64_t n,
                     bool sticky)
{
    tl_session *s = tl_calloc(1, sizeof(*s));
    int64_t objects = tl_obj_live() + tl_tensor_live(); /* of earlier leaks */

    tl_session_init(s);
    s->options.threads = 1;
    if (tl_session_start(s) != TL_OK) {
        complain(script, n, "set-up failed");
        return true;
    }
    s->ev.write = swallow;
    uint64_t before = tl_mem_attempts();

    tl_mem_fail_at(n, sticky);
    tl_status st = tl_session_run(s, script, text->data, text->size);
    bool met = tl_mem_attempts() - before >= n;

    tl_mem_fail_at(0, false);
    cases++;
    if (st != TL_OK && (st != TL_ERR_MEMORY || !reported(&s->diag))) {
        tl_buf text_of;

        tl_buf_init(&text_of);
        tl_buf_printf(&text_of, "status %d: ", (int)st);
        tl_diag_print(&s->diag, TL_DIAG_HUMAN, false, &text_of);
        complain(script, n, tl_buf_str(&text_of));
        tl_buf_fini(&text_of);
    }
    if (st == TL_OK && !met && n == 1) {
        complain(script, n, "the script does not allocate");
    }
    if (st == TL_OK && s->diag.nerrors != 0) {
        complain(script, n, "an error is reported that there was not");
    }
    tl_diag_clear(&s->diag);
    if (!alive(s)) {
        complain(script, n, "the session is dead");
    }
    tl_session_fini(s);
    tl_free(s);
    if (tl_obj_live() + tl_tensor_live() != objects) {
        complain(script, n, "objects are left");
    }
    return !met;
}

static void run_script(const char *folder, const char *name)
{
    tl_bytes text = {0};
    tl_diag diag;
    char path[512];

    snprintf(path, sizeof(path), "%s/%s.tl", folder, name);
    tl_diag_init(&diag, NULL);
    if (tl_file_read(path, 0, &text, &diag) != TL_OK) {
        complain(name, 0, "cannot be read");
        return;
    }
    int64_t blocks = tl_mem_live_blocks();

    for (int sticky = 0; sticky < 2; sticky++) {
        for (uint64_t n = 1;; n++) {
            if (run_once(name, &text, n, sticky != 0)) {
                break;
            }
            if (tl_mem_live_blocks() != blocks) {
                complain(name, n, "blocks are left");
                blocks = tl_mem_live_blocks();
            }
        }
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
    static const char *const all[] = {"values", "train", "save", "modules",
                                       "compiled"};
    job *j = arg;

    for (int i = 2; i < j->argc; i++) {
        run_script(j->argv[1], j->argv[i]);
    }
    for (size_t i = 0; j->argc == 2 && i < sizeof(all) / sizeof(*all); i++) {
        run_script(j->argv[1], all[i]);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    job j = {argc, argv};
    pthread_attr_t attr;
    pthread_t thread;

    if (argc < 2) {
        fprintf(stderr, "usage: oom SCRIPTS_FOLDER [SCRIPT ...]\n");
        return 2;
    }
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, (size_t)256 << 20);
    pthread_create(&thread, &attr, run, &j);
    pthread_join(thread, NULL);
    unlink("oom-test.safetensors");
    printf("stage faults/oom, cases %d, failures %d\n", cases, failures);
    printf("%d passed, %d failed\n", cases - failures, failures);
    return failures != 0;
}
