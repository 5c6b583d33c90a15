/* run.c - sessions that run many programs. */
#include "tests/compile/run.h"

#include <string.h>

#include "runtime/base/check.h"
#include "runtime/base/mem.h"

#define PROGRAMS 500 /* of a session: texts of sources stay in it */
#define STEPS 200000
#define MEMORY ((int64_t)1 << 30)

static tl_status keep(void *arg, const char *text, size_t len)
{
    runner *r = arg;

    tl_buf_add(&r->out, text, len);
    return TL_OK;
}

static void open_session(runner *r)
{
    static const char library[] = "import amp, init, nn, optim\n";
    tl_session *s = tl_calloc(1, sizeof(*s));

    TL_CHECK(s != NULL);
    tl_session_init(s);
    s->options.threads = 1;
    s->options.memory_limit = MEMORY;
    TL_CHECK(tl_session_start(s) == TL_OK);
    TL_CHECK(tl_session_run(s, "library", library, strlen(library)) == TL_OK);
    s->ev.write = keep;
    s->ev.write_arg = r;
    r->library = s->ev.all_ns;
    r->s = s;
    r->programs = 0;
}

static void close_session(runner *r)
{
    if (r->s != NULL) {
        tl_session_fini(r->s);
        tl_free(r->s);
        r->s = NULL;
        TL_CHECK(tl_obj_live() == 0);
        TL_CHECK(tl_tensor_live() == 0);
    }
}

void runner_init(runner *r)
{
    memset(r, 0, sizeof(*r));
    tl_buf_init(&r->out);
    tl_buf_init(&r->errors);
}

void runner_fini(runner *r)
{
    close_session(r);
    tl_buf_fini(&r->out);
    tl_buf_fini(&r->errors);
}

void runner_run(runner *r, const char *text, size_t len, tl_compile_what how)
{
    if (r->s != NULL && r->programs == PROGRAMS) {
        close_session(r);
    }
    if (r->s == NULL) {
        open_session(r);
    }
    tl_session *s = r->s;
    tl_eval *ev = &s->ev;

    r->programs++;
    tl_buf_clear(&r->out);
    tl_buf_clear(&r->errors);
    tl_rt_seed(ev->rt, 0);
    ev->next_serial = 1;
    ev->rt->steps = STEPS;
    ev->compile = how;
    r->status = tl_session_run(s, "test.tl", text, len);
    r->refused = r->status != TL_OK && s->diag.last != NULL &&
                 s->diag.last->code == TL_E0602;
    r->stopped = r->status != TL_OK && s->diag.last != NULL &&
                 s->diag.last->code == TL_E0608;
    tl_diag_print(&s->diag, TL_DIAG_HUMAN, false, &r->errors);
    tl_diag_clear(&s->diag);
    if (r->after != NULL) {
        r->after(r->arg, ev);
    }
    tl_eval_reset(ev, r->library);
}
