/* fuzz_eval.c - libFuzzer target: any bytes as a program, and as entries of a
 * prompt.
 *
 * Each input runs twice in one session, as a file with its tests and then as
 * an entry of the REPL, with limits of steps, memory and stack; effects on
 * the host (files, time, environment) are refused.  Besides not crashing, it
 * checks that a failure was reported, that the session is usable afterwards,
 * and that no object, tensor or block is left.  The first byte chooses
 * whether an allocation fails, and which.
 *
 *     tests/fuzz/run eval 600 */
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "interp/domain.h"
#include "interp/eval.h"
#include "interp/session.h"
#include "runtime/base/check.h"
#include "runtime/base/mem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static tl_status refuse(tl_eval *ev, tl_host_effect what, bool *perform)
{
    *perform = what != TL_HOST_IO;
    return *perform ? TL_OK
                    : tl_fail(ev->diag, TL_E0701, "no effects on the host");
}

static tl_status swallow(void *arg, const char *s, size_t len)
{
    (void)arg;
    (void)s;
    (void)len;
    return TL_OK;
}

/* A failure says why; success reports no error. */
static void check_reported(tl_session *s, tl_status st)
{
    tl_buf buf;

    TL_CHECK(st == TL_OK || s->diag.nerrors > 0);
    tl_buf_init(&buf);
    tl_diag_print(&s->diag, TL_DIAG_HUMAN, true, &buf);
    tl_diag_print(&s->diag, TL_DIAG_JSON, false, &buf);
    tl_buf_fini(&buf);
    tl_diag_clear(&s->diag);
}

static void run_text(tl_session *s, const char *text, size_t size)
{
    s->ev.steps = 2000;
    check_reported(s, tl_session_run(s, "fuzz.tl", text, size));
    tl_namespace *ns = s->ev.main_ns;

    for (size_t u = 0; ns != NULL && u < ns->nunits; u++) {
        for (uint32_t i = 0; i < ns->units[u]->ntests; i++) {
            s->ev.steps = 1000;
            check_reported(s, tl_eval_test(&s->ev, ns, ns->units[u]->tests[i]));
        }
    }
}

static void run_entry(tl_session *s, const char *text, size_t size)
{
    tl_namespace *ns = NULL;
    tl_value v = tl_none();
    bool incomplete = false;

    if (tl_namespace_new(&ns, &s->ev, "main", "<repl>") != TL_OK) {
        return;
    }
    s->ev.steps = 2000;
    check_reported(s, tl_eval_text(&s->ev, ns, "<repl>", text, size, &v,
                                   &incomplete));
    tl_unref(v);
    v = tl_none();
    tl_mem_fail_at(0, false);
    s->ev.steps = 2000;
    tl_status st = tl_eval_text(&s->ev, ns, "<repl>", "1 + 1", 5, &v,
                                &incomplete);

    TL_CHECK(st == TL_OK && v.tag == TL_V_INT && v.i == 2);
}

static void *job(void *arg)
{
    const uint8_t *data = ((void **)arg)[0];
    size_t size = *(size_t *)((void **)arg)[1];
    tl_session *s = tl_calloc(1, sizeof(*s));
    tl_domain domain = tl_domain_concrete;
    const char *text = (const char *)data + 1;

    tl_session_init(s);
    s->options.threads = 1;
    s->options.memory_limit = 32 << 20;
    TL_CHECK(tl_session_start(s) == TL_OK);
    domain.effect = refuse;
    s->ev.domain = &domain;
    s->ev.write = swallow;
    tl_mem_fail_at(data[0] < 128 ? 0 : (uint64_t)(data[0] - 127) * 37,
                   (data[0] & 1) != 0);
    run_text(s, text, size - 1);
    run_entry(s, text, size - 1);
    tl_mem_fail_at(0, false);
    tl_session_fini(s);
    tl_free(s);
    return NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    void *arg[2] = {(void *)(uintptr_t)data, &size};
    pthread_attr_t attr;
    pthread_t thread;

    if (size == 0) {
        return 0;
    }
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, (size_t)256 << 20);
    TL_CHECK(pthread_create(&thread, &attr, job, arg) == 0);
    pthread_join(thread, NULL);
    pthread_attr_destroy(&attr);
    TL_CHECK(tl_obj_live() == 0);
    TL_CHECK(tl_tensor_live() == 0);
    return 0;
}
