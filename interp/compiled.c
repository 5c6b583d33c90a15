/* compiled.c - calls of compiled functions. */
#include <string.h>

#include "interp/verify.h"
#include "runtime/base/mem.h"
#include "runtime/base/vec.h"

/* ---- what is known of functions ----------------------------------------- */

static tl_status compiler_of(tl_eval *ev, tl_compiler **out)
{
    if (ev->compiler == NULL) {
        ev->compiler = tl_calloc(1, sizeof(*ev->compiler));
        if (ev->compiler == NULL) {
            return tl_fail_memory(ev->diag, "the compiler",
                                  sizeof(*ev->compiler));
        }
        tl_map_init(&ev->compiler->by_fn);
    }
    *out = ev->compiler;
    return TL_OK;
}

static void compiled_free(tl_compiled *f)
{
    while (f->entries != NULL) {
        tl_entry *next = f->entries->next;

        tl_entry_unref(f->entries);
        f->entries = next;
    }
    tl_buf_fini(&f->log);
    tl_free(f->why);
    tl_free(f);
}

static tl_status compiled_of(tl_eval *ev, const tl_funcdef *fn,
                             tl_compiled **out)
{
    tl_compiler *c;
    tl_compiled *f;

    TL_TRY(compiler_of(ev, &c));
    f = tl_map_get(&c->by_fn, fn, NULL);
    if (f == NULL) {
        f = tl_calloc(1, sizeof(*f));
        if (f == NULL || !tl_map_set(&c->by_fn, fn, f)) {
            tl_free(f);
            return tl_fail_memory(ev->diag, "the compiler", sizeof(*f));
        }
        f->fn = fn;
        tl_buf_init(&f->log);
        *(c->last != NULL ? &c->last->next : &c->first) = f;
        c->last = f;
    }
    *out = f;
    return TL_OK;
}

void tl_compiler_clear(tl_compiler *c)
{
    if (c == NULL) {
        return;
    }
    while (c->first != NULL) {
        tl_compiled *next = c->first->next;

        compiled_free(c->first);
        c->first = next;
    }
    c->last = NULL;
    tl_map_fini(&c->by_fn);
    tl_map_init(&c->by_fn);
}

void tl_compiler_free(tl_compiler *c)
{
    if (c != NULL) {
        tl_compiler_clear(c);
        tl_map_fini(&c->by_fn);
        tl_free(c);
    }
}

tl_compile_stats tl_compiler_stats(const tl_eval *ev)
{
    return ev->compiler != NULL ? ev->compiler->stats
                                : (tl_compile_stats){0};
}

/* ---- entries ------------------------------------------------------------ */

/* The k-th guard at this place; NULL: there are fewer. */
static const tl_gguard *guard_at(const tl_entry *e, tl_span span, size_t k)
{
    const tl_graph *g = tl_program_graph(e->program);

    for (size_t i = 0; i < g->guards.len; i++) {
        const tl_gguard *guard = &g->guards.items[i];

        if (guard->span.file == span.file &&
            guard->span.start == span.start && guard->span.end == span.end &&
            k-- == 0) {
            return guard;
        }
    }
    return NULL;
}

/* How many values do programs expect of the k-th number read there? */
static size_t count_values(const tl_compiled *f, tl_span span, size_t k)
{
    int64_t seen[TL_MAX_ENTRIES + 1];
    size_t n = 0;

    for (const tl_entry *e = f->entries; e != NULL; e = e->next) {
        const tl_gguard *guard = guard_at(e, span, k);
        tl_value v = guard != NULL
                         ? tl_guard_value(tl_program_graph(e->program), guard)
                         : tl_empty();
        int64_t bits = v.tag == TL_V_BOOL ? v.b : v.i;
        size_t i = 0;

        while (i < n && seen[i] != bits) {
            i++;
        }
        if (v.tag != TL_V_EMPTY && i == n && n <= TL_MAX_ENTRIES) {
            seen[n++] = bits;
        }
    }
    return n;
}

/* W0603 where numbers are read that have had too many values. */
static void warn_of_values(tl_eval *ev, const tl_compiled *f)
{
    const tl_graph *g = tl_program_graph(f->entries->program);

    if (f->programs <= TL_MANY_VALUES || ev->compile == TL_COMPILE_EVERY) {
        return;
    }
    for (size_t i = 0; i < g->guards.len; i++) {
        tl_span span = g->guards.items[i].span;
        size_t k = 0;

        for (size_t j = 0; j < i; j++) {
            tl_span other = g->guards.items[j].span;

            k += other.file == span.file && other.start == span.start &&
                 other.end == span.end;
        }
        if (span.file != 0 && count_values(f, span, k) > TL_MANY_VALUES) {
            tl_warn(ev->diag, TL_W0603, span,
                    "more than %d values of a number are read here: `%s` "
                    "becomes a program for each", TL_MANY_VALUES,
                    tl_code_title_of(f->fn));
            tl_diag_help(ev->diag, "keep it a symbol (arithmetic, "
                                   "comparisons, sizes), or pass a tensor");
        }
    }
}

/* Put a new entry in front; the oldest of too many goes. */
static void keep_entry(tl_eval *ev, tl_compiled *f, tl_entry *e)
{
    tl_entry **at = &e->next;
    size_t n = 1;

    e->next = f->entries;
    f->entries = e;
    if (e->number == 0) { /* a new program */
        e->number = ++f->programs;
        ev->compiler->stats.programs++;
    }
    while (*at != NULL && n < TL_MAX_ENTRIES) {
        at = &(*at)->next;
        n++;
    }
    if (*at != NULL && !(*at)->running) {
        tl_entry_unref(*at); /* the list ends here: it was the last */
        *at = NULL;
    }
    warn_of_values(ev, f);
}

/* The text of why a new program is needed; NULL without memory. */
static char *cause_of(tl_eval *ev, tl_compiled *f, const tl_ccall *call)
{
    tl_entry *near = f->entries;
    size_t most = 0;
    tl_buf text;
    char *out;

    tl_buf_init(&text);
    for (tl_entry *e = near; e != NULL; e = e->next) {
        size_t n = e->running ? 0 : tl_entry_nearness(ev, e, call);

        near = n > most ? e : near;
        most = n > most ? n : most;
    }
    if (near == NULL) {
        tl_buf_puts(&text, "the first call");
    } else if (!near->running) {
        tl_entry_cause(ev, near, call, &text);
    }
    out = tl_strndup(tl_buf_str(&text), text.len);
    tl_buf_fini(&text);
    return out;
}

static tl_entry *find_entry(tl_eval *ev, tl_compiled *f, const tl_ccall *call)
{
    for (tl_entry *e = f->entries; e != NULL; e = e->next) {
        if (!e->running && tl_entry_matches(ev, e, call) &&
            tl_entry_fits(ev, e)) {
            return e;
        }
    }
    return NULL;
}

/* ---- refusals ----------------------------------------------------------- */

void tl_compiled_note(tl_eval *ev, tl_compiled *f)
{
    const tl_diag_item *why = ev->diag->last;

    tl_free(f->why);
    f->why = why != NULL ? tl_strndup(why->message, strlen(why->message))
                         : NULL;
    f->why_at = why != NULL && why->span.end > 0 ? why->span
                                                 : f->fn->node->span;
}

/* It runs interpreted from now on, with one warning. */
static void interpret_from_now_on(tl_eval *ev, tl_compiled *f)
{
    f->refused = true;
    if (ev->compile != TL_COMPILE_EVERY) {
        tl_warn(ev->diag, TL_W0601, f->why_at, "`%s` runs interpreted: %s",
                tl_code_title_of(f->fn),
                f->why != NULL ? f->why : "it cannot be compiled");
    }
}

void tl_compiled_refuse(tl_eval *ev, const tl_funcdef *fn)
{
    tl_diag_item *why = ev->diag->last;
    const char *text =
        tl_arena_printf(&ev->diag->arena, "`%s` is @compile, but %s",
                        tl_code_title_of(fn), why->message);

    if (text != NULL) {
        why->message = text;
    }
    tl_diag_note(ev->diag, "nothing was compiled");
}

/* The newest diagnostic says why a trace was refused: it becomes an error of
 * the function, or a warning. */
static tl_status refused(tl_eval *ev, tl_compiled *f, tl_status st)
{
    const tl_diag_item *why = ev->diag->last;

    if (why == NULL || why->code != TL_E0602) {
        return st;
    }
    tl_compiled_note(ev, f);
    if (ev->suppress_errors || f->fn->marks.fallback ||
        ev->compile == TL_COMPILE_EVERY) {
        (void)tl_diag_pop(ev->diag);
        interpret_from_now_on(ev, f);
        return TL_OK;
    }
    tl_compiled_refuse(ev, f->fn);
    return st;
}

static tl_compiled *find_compiled(const tl_eval *ev, const tl_ccall *call)
{
    return ev->compiler != NULL
               ? tl_map_get(&ev->compiler->by_fn, call->fn, NULL)
               : NULL;
}

void tl_compiled_pause(tl_eval *ev, const tl_ccall *call, bool on)
{
    tl_compiled *f = find_compiled(ev, call);

    if (f != NULL) {
        f->refused = on;
    }
}

void tl_compiled_doubt(tl_eval *ev, const tl_ccall *call)
{
    tl_compiled *f = find_compiled(ev, call);

    if (f != NULL) {
        interpret_from_now_on(ev, f);
    }
}

/* ---- calls -------------------------------------------------------------- */

/* The entry for a call, its inputs collected; NULL: it is interpreted.  E0602
 * is the newest diagnostic where it is refused. */
static tl_status entry_for(tl_eval *ev, tl_compiled *f, const tl_ccall *call,
                           tl_entry **out, tl_ran *ran)
{
    char *cause;
    tl_status st;

    *out = find_entry(ev, f, call);
    if (*out != NULL) {
        return TL_OK;
    }
    *out = tl_entry_share(ev, f, call);
    if (*out != NULL) {
        tl_buf_printf(&f->log, "  program %zu again: other modules of the "
                               "same structure\n", (*out)->number);
        keep_entry(ev, f, *out);
        return TL_OK;
    }
    tl_cells_used(ev); /* programs keep tensors */
    f->traces++;
    ev->compiler->stats.traces++;
    tl_free(f->why);
    f->why = NULL;
    cause = cause_of(ev, f, call);
    st = tl_entry_trace(ev, f, call, out);
    if (st != TL_OK || *out == NULL) {
        *ran = st == TL_OK && f->why != NULL ? TL_RAN_DOUBTFUL : TL_RAN_NOT;
        tl_free(cause);
        return st;
    }
    (*out)->cause = cause;
    keep_entry(ev, f, *out);
    if (!tl_entry_matches(ev, *out, call) || !tl_entry_fits(ev, *out)) {
        static const char why[] = "its program does not fit the call that it "
                                  "was made for";

        f->why = tl_strndup(why, sizeof(why) - 1);
        f->why_at = f->fn->node->span;
        *ran = TL_RAN_DOUBTFUL;
        *out = NULL;
    }
    return TL_OK;
}

/* A program that fails has changed nothing: the interpreter runs the call
 * instead and reports the same error with its frames. */
static tl_status failed_run(tl_eval *ev, tl_compiled *f, tl_status st,
                            tl_ran *ran)
{
    if (!tl_status_catchable(st)) {
        return st;
    }
    tl_compiled_note(ev, f);
    (void)tl_diag_pop(ev->diag);
    *ran = st == TL_ERR_MEMORY ? TL_RAN_NOT : TL_RAN_DOUBTFUL;
    return TL_OK;
}

/* Calls that the interpreter has to run: tapes outside see what they do, and
 * initialisers draw from counters of their own. */
static bool must_interpret(const tl_eval *ev, const tl_compiled *f)
{
    return (ev->rt->tape != NULL && ev->rt->no_grad == 0 &&
            !tl_is_taped(ev)) ||
           ev->rule != NULL || ev->constructing > 0 ||
           ev->init_key.on || f->refused;
}

tl_status tl_compiled_call(tl_eval *ev, const tl_ccall *call, tl_value *out,
                           tl_ran *ran)
{
    bool succeeded = false;
    tl_compiled *f;
    tl_entry *e;
    tl_status st;

    *ran = TL_RAN_NOT;
    TL_TRY(compiled_of(ev, call->fn, &f));
    if (must_interpret(ev, f)) {
        f->interpreted++;
        return TL_OK;
    }
    st = entry_for(ev, f, call, &e, ran);
    if (st != TL_OK || e == NULL) {
        f->interpreted++;
        return st != TL_OK ? refused(ev, f, st) : TL_OK;
    }
    if (ev->explain && !e->told) {
        TL_TRY(tl_entry_tell(ev, f, e));
    }
    f->runs++;
    ev->compiler->stats.runs++;
    if (ev->verify) {
        return tl_verify_call(ev, f, call, e, out, ran);
    }
    *ran = TL_RAN;
    st = tl_entry_run(ev, e, out, &succeeded);

    return st == TL_OK || succeeded ? st : failed_run(ev, f, st, ran);
}

tl_status tl_compiled_explain(tl_eval *ev, const tl_ccall *call, tl_buf *out)
{
    tl_ran ran = TL_RAN_NOT;
    tl_compiled *f;
    tl_entry *e = NULL;
    tl_status st = TL_OK;

    TL_TRY(compiled_of(ev, call->fn, &f));
    if (!f->refused) {
        st = entry_for(ev, f, call, &e, &ran);
    }
    if (st != TL_OK && (ev->diag->last == NULL ||
                        ev->diag->last->code != TL_E0602)) {
        return st;
    }
    if (st != TL_OK) {
        tl_compiled_note(ev, f);
        (void)tl_diag_pop(ev->diag);
    }
    if (e == NULL) {
        tl_explain_refusal(ev, f, out);
        return TL_OK;
    }
    tl_effect_arg arg = {ev, e};
    tl_run run = tl_entry_inputs(e, &arg);

    st = tl_program_explain(e->program, ev->rt, &run, out);

    tl_entry_release(e);
    return st;
}
