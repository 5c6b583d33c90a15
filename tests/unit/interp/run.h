/* run.h - an evaluator for tests that run texts and look at the values. */
#ifndef TL_TESTS_INTERP_RUN_H
#define TL_TESTS_INTERP_RUN_H

#include <stdio.h>
#include <string.h>

#include "interp/eval.h"
#include "interp/tree.h"
#include "runtime/base/mem.h"

typedef struct run {
    tl_sources sources;
    tl_diag diag;
    tl_intern names;
    tl_lang lang;
    tl_rt rt;
    tl_eval ev;
    tl_eval_options options;
    tl_namespace *ns;
    tl_buf output; /* of print */
} run;

static inline tl_status run_write(void *arg, const char *s, size_t len)
{
    tl_buf_add(&((run *)arg)->output, s, len);
    return TL_OK;
}

static inline tl_status run_init(run *r)
{
    const tl_rt_options rt_options = {.threads = 1};
    tl_status st;

    memset(r, 0, sizeof(*r));
    tl_sources_init(&r->sources);
    tl_diag_init(&r->diag, &r->sources);
    tl_intern_init(&r->names);
    r->lang = (tl_lang){.names = &r->names, .sources = &r->sources};
    r->options.program = "test";
    st = tl_rt_init(&r->rt, &rt_options, &r->diag);
    if (st != TL_OK) {
        return st;
    }
    st = tl_eval_init(&r->ev, &r->rt, &r->lang, &r->options);
    if (st != TL_OK) {
        tl_rt_fini(&r->rt);
        return st;
    }
    r->ev.write = run_write;
    r->ev.write_arg = r;
    st = tl_namespace_new(&r->ns, &r->ev, "main", "<test>");
    if (st != TL_OK) {
        tl_eval_fini(&r->ev);
        tl_rt_fini(&r->rt);
        return st;
    }
    r->ev.main_ns = r->ns;
    return TL_OK;
}

/* After run_init has succeeded. */
static inline void run_fini(run *r)
{
    tl_eval_fini(&r->ev);
    tl_rt_fini(&r->rt);
}

/* Always. */
static inline void run_release(run *r)
{
    tl_buf_fini(&r->output);
    tl_diag_fini(&r->diag);
    tl_intern_fini(&r->names);
    tl_sources_fini(&r->sources);
}

/* Run top-level statements. */
static inline tl_status run_text(run *r, const char *text)
{
    tl_value v = tl_none();
    tl_status st =
        tl_eval_text(&r->ev, r->ns, "<test>", text, strlen(text), &v, NULL);

    if (st == TL_OK) {
        tl_unref(v);
    }
    return st;
}

/* The code of the newest error, or TL_CODE_NONE. */
static inline tl_code run_code(const run *r)
{
    return r->diag.last ? r->diag.last->code : TL_CODE_NONE;
}

/* A top-level variable, borrowed. */
static inline tl_value run_global(run *r, const char *name)
{
    const tl_sym *sym = tl_intern_find(&r->names, name, strlen(name));
    int64_t slot = sym ? tl_globals_find(r->ns->names, sym) : -1;

    return slot >= 0 && (size_t)slot < r->ns->nslots ? r->ns->slots[slot]
                                                     : tl_empty();
}

#endif
