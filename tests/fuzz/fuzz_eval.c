/* fuzz_eval.c - libFuzzer target: any bytes as a program, or as an entry of a
 * prompt.
 *
 * The first byte chooses how the rest runs: with bit 6 as an entry of the
 * REPL, else as a file with its tests; with bit 4 all functions run compiled
 * where they can be; with bit 7 a second time, in which an allocation fails
 * (bit 5: and all after it), which depends on all bytes and on how many there
 * were the first time.  Steps, memory and stack are limited; effects on the
 * host (files, time, environment) are refused.  Besides not crashing, it
 * checks that a failure was reported, that the evaluator is at rest
 * afterwards and usable, and that no object or tensor is left.
 *
 * One session with the library imported serves many inputs: between them the
 * evaluator is reset.  What built-ins keep from their first use on, such as
 * their parsed signatures, is told from a leak by running the input again.
 *
 *     tests/fuzz/run eval 600 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "interp/domain.h"
#include "interp/eval.h"
#include "interp/session.h"
#include "runtime/base/check.h"
#include "runtime/base/mem.h"

#define INPUTS_PER_SESSION 2000
#define STEPS 2000
#define TEST_STEPS 1000
#define MEMORY_LIMIT (8 << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef struct fuzz {
    tl_session *s; /* NULL: none yet */
    tl_domain domain;
    tl_namespace *library; /* the newest namespace that stays */
    int inputs;
    int64_t blocks;           /* alive before the session */
    int64_t objects, tensors; /* alive while nothing runs */
} fuzz;

static fuzz self;

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

static tl_status no_prompt(void *arg, tl_eval *ev)
{
    (void)arg;
    (void)ev;
    return TL_OK;
}

/* ---- the session ------------------------------------------------------- */

static void session_open(fuzz *f)
{
    static const char library[] = "import data, init, nn, optim\n";
    tl_session *s;

    f->blocks = tl_mem_live_blocks();
    s = tl_calloc(1, sizeof(*s));
    TL_CHECK(s != NULL);
    tl_session_init(s);
    s->options.threads = 1;
    s->options.memory_limit = MEMORY_LIMIT;
    TL_CHECK(tl_session_start(s) == TL_OK);
    TL_CHECK(tl_session_run(s, "library", library, strlen(library)) == TL_OK);
    f->domain = tl_domain_concrete;
    f->domain.effect = refuse;
    s->ev.domain = &f->domain;
    s->ev.write = swallow;
    s->ev.on_breakpoint = no_prompt;
    f->s = s;
    f->library = s->ev.all_ns;
    f->inputs = 0;
    f->objects = tl_obj_live();
    f->tensors = tl_tensor_live();
}

static void session_close(void)
{
    fuzz *f = &self;

    if (f->s != NULL) {
        tl_session_fini(f->s);
        tl_free(f->s);
        f->s = NULL;
        TL_CHECK(tl_obj_live() == 0);
        TL_CHECK(tl_tensor_live() == 0);
        TL_CHECK(tl_mem_live_blocks() == f->blocks);
    }
}

/* ---- one input --------------------------------------------------------- */

/* A failure says why; nothing else is said. */
static void check_reported(tl_session *s, tl_status st)
{
    tl_buf buf;

    TL_CHECK((st == TL_OK) == (s->diag.nerrors == 0));
    tl_buf_init(&buf);
    tl_diag_print(&s->diag, TL_DIAG_HUMAN, true, &buf);
    tl_diag_print(&s->diag, TL_DIAG_JSON, false, &buf);
    tl_buf_fini(&buf);
    tl_diag_clear(&s->diag);
}

/* Nothing runs any more, whatever went wrong. */
static void check_at_rest(const fuzz *f)
{
    const tl_eval *ev = &f->s->ev;

    TL_CHECK(ev->frame == NULL);
    TL_CHECK(ev->grads == NULL);
    TL_CHECK(ev->call_depth == 0);
    TL_CHECK(ev->constructing == 0);
    TL_CHECK(ev->no_check == 0);
    TL_CHECK(ev->domain == &f->domain);
    TL_CHECK(ev->rt->tape == NULL);
    TL_CHECK(ev->rt->no_grad == 0);
    TL_CHECK(!ev->f32_as_f64);
    TL_CHECK(!ev->diag->muted);
}

static void run_file(fuzz *f, const char *text, size_t size)
{
    tl_session *s = f->s;

    s->rt.steps = STEPS;
    check_reported(s, tl_session_run(s, "fuzz.tl", text, size));
    check_at_rest(f);
    tl_namespace *ns = s->ev.main_ns;

    for (size_t u = 0; ns != NULL && u < ns->nunits; u++) {
        for (uint32_t i = 0; i < ns->units[u]->ntests; i++) {
            s->rt.steps = TEST_STEPS;
            check_reported(s,
                           tl_eval_test(&s->ev, ns, ns->units[u]->tests[i]));
            check_at_rest(f);
        }
    }
}

static void run_entry(fuzz *f, const char *text, size_t size)
{
    tl_eval *ev = &f->s->ev;
    tl_namespace *ns = NULL;
    tl_value v = tl_none();
    bool incomplete = false;
    tl_status st = tl_namespace_new(&ns, ev, "main", "<repl>");

    if (st != TL_OK) {
        check_reported(f->s, st);
        return;
    }
    ev->rt->steps = STEPS;
    check_reported(f->s, tl_eval_text(ev, ns, "<repl>", text, size, &v,
                                      &incomplete));
    tl_unref(v);
    check_at_rest(f);
    tl_mem_fail_at(0, false);
    v = tl_none();
    ev->rt->steps = STEPS;
    st = tl_eval_text(ev, ns, "<repl>", "1 + 1", 5, &v, &incomplete);
    TL_CHECK(st == TL_OK && v.tag == TL_V_INT && v.i == 2);
}

/* Run the text; `fail_at` as for tl_mem_fail_at. */
static void run_once(fuzz *f, uint8_t how, const char *text, size_t size,
                     uint64_t fail_at)
{
    tl_eval *ev = &f->s->ev;

    tl_rt_seed(ev->rt, 0);
    ev->next_serial = 1;
    ev->compile = how & 0x10 ? TL_COMPILE_EVERY : TL_COMPILE_MARKED;
    tl_mem_fail_at(fail_at, (how & 0x20) != 0);
    if (how & 0x40) {
        run_entry(f, text, size);
    } else {
        run_file(f, text, size);
    }
    tl_mem_fail_at(0, false);
    tl_eval_reset(ev, f->library);
}

static void run_input(fuzz *f, uint8_t how, const char *text, size_t size)
{
    uint64_t before = tl_mem_attempts();

    run_once(f, how, text, size, 0);
    if (how & 0x80) {
        uint64_t n = tl_mem_attempts() - before;

        run_once(f, how, text, size, 1 + tl_hash_bytes(text, size, how) % n);
    }
}

static bool grew(const fuzz *f)
{
    return tl_obj_live() != f->objects || tl_tensor_live() != f->tensors;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz *f = &self;

    if (size == 0) {
        return 0;
    }
    if (f->s == NULL) {
        session_open(f);
        atexit(session_close);
    } else if (f->inputs++ == INPUTS_PER_SESSION) {
        session_close();
        session_open(f);
    }
    for (int turn = 0; turn == 0 || grew(f); turn++) {
        TL_CHECK(turn < 4); /* it leaks each time that it runs */
        f->objects = tl_obj_live();
        f->tensors = tl_tensor_live();
        run_input(f, data[0], (const char *)data + 1, size - 1);
    }
    return 0;
}
