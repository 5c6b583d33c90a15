/* compiled.c - calls of compiled functions. */
#include <string.h>

#include "interp/compiled_impl.h"
#include "runtime/base/mem.h"

/* ---- does an entry fit? ------------------------------------------------- */

/* The value that a root has now, borrowed. */
static tl_value root_value(const tl_root *r, tl_fn *closure, tl_module *self,
                           const tl_args *args)
{
    switch (r->kind) {
    case TL_ROOT_ARG:
        return r->index < args->npos ? args->pos[r->index]
                                     : args->kw[r->index - args->npos];
    case TL_ROOT_SELF:
        return (tl_value){.tag = TL_V_MODULE, .module = self};
    case TL_ROOT_CLOSURE:
        return (tl_value){.tag = TL_V_FN, .fn = closure};
    case TL_ROOT_GLOBAL:
        return r->index < r->ns->nslots ? r->ns->slots[r->index]
                                        : tl_empty();
    }
    return tl_empty();
}

static bool same_call(const tl_entry *e, const tl_args *args)
{
    if (e->npos != args->npos || e->nkw != args->nkw) {
        return false;
    }
    for (size_t i = 0; i < e->nkw; i++) {
        if (e->names[i] != args->names[i]) {
            return false;
        }
    }
    return true;
}

static bool same_value(tl_value a, tl_value b)
{
    return a.tag == b.tag && a.i == b.i;
}

/* The cell holds what its program takes; its tensors go to `leaves`. */
static bool match_cell(tl_eval *ev, tl_entry *e, tl_ecell *c)
{
    size_t at = c->first, n = c->leaf;
    tl_value v = c->cell->value;

    if (!c->read) {
        return true;
    }
    if (v.tag == TL_V_EMPTY) {
        tl_value stored;

        if (tl_cell_value(ev, c->cell, &stored) != TL_OK) {
            (void)tl_diag_pop(ev->diag);
            return false;
        }
        tl_unref(stored);
        v = c->cell->value;
    }
    if (v.tag == TL_V_TENSOR && same_value(v, c->last)) {
        e->leaves[n].tensor = v.tensor;
        return true;
    }
    if (!tl_lift_matches(&e->steps, &at, v, e->leaves, &n)) {
        return false;
    }
    c->last = v;
    return true;
}

static bool matches(tl_eval *ev, tl_entry *e, tl_fn *closure,
                    tl_module *self, const tl_args *args)
{
    size_t n = 0;

    if (!same_call(e, args) || e->no_grad != (ev->rt->no_grad > 0)) {
        return false;
    }
    for (size_t i = 0; i < e->roots.len; i++) {
        const tl_root *r = &e->roots.items[i];
        size_t at = r->first;

        if (!tl_lift_matches(&e->steps, &at,
                             root_value(r, closure, self, args), e->leaves,
                             &n)) {
            return false;
        }
    }
    for (size_t i = 0; i < e->modes.len; i++) {
        if (e->modes.items[i].module->forced != e->modes.items[i].forced) {
            return false;
        }
    }
    for (size_t i = 0; i < e->ncells; i++) {
        if (!match_cell(ev, e, &e->cells[i])) {
            return false;
        }
    }
    return true;
}

/* ---- a run -------------------------------------------------------------- */

static tl_status gather_inputs(tl_eval *ev, tl_entry *e)
{
    for (size_t i = 0; i < e->inputs.len; i++) {
        const tl_input *in = &e->inputs.items[i];
        const tl_leaf_value *leaf = NULL;
        tl_tensor *t = NULL;

        switch (in->kind) {
        case TL_IN_SEED:
            e->scalars[i].i = (int64_t)ev->rt->seed;
            continue;
        case TL_IN_DRAWS:
            e->scalars[i].i = (int64_t)ev->rt->draws;
            continue;
        case TL_IN_PIN:
            t = e->pins[in->index].tensor;
            break;
        case TL_IN_LEAF:
            leaf = &e->leaves[in->index];
            break;
        case TL_IN_CELL:
            leaf = &e->leaves[e->cells[in->index].leaf + in->leaf];
            break;
        }
        if (leaf != NULL) {
            t = leaf->tensor;
            e->scalars[i] = leaf->scalar;
        }
        e->tensors[i] = t;
        if (in->layout != 0) {
            TL_TRY(tl_layout_base(ev->rt, t, in->layout, &e->owned[i]));
            e->tensors[i] = e->owned[i];
        }
    }
    return TL_OK;
}

static void release(tl_entry *e)
{
    for (size_t i = 0; i < e->inputs.len; i++) {
        tl_tensor_unref(e->owned[i]);
        e->owned[i] = NULL;
    }
    for (size_t i = 0; i < e->nresults; i++) {
        tl_tensor_unref(e->results[i]);
        e->results[i] = NULL;
    }
}

/* An output in place of a node of a pattern. */
static tl_status result_of(void *arg, tl_value node, tl_value *out)
{
    tl_entry *e = arg;

    if (node.tag == TL_V_SYM) {
        *out = tl_scalar_value(e->result_scalars[node.sym->id - 1],
                               node.sym->hint.tag);
        return TL_OK;
    }
    *out = tl_tensor_value_take(
        tl_tensor_ref(e->results[node.node->id - 1]));
    return TL_OK;
}

/* A tree whose tensors the program has updated in place is what it was. */
static bool is_unchanged(const tl_entry *e, tl_value pattern, tl_value now)
{
    if (now.tag != TL_V_TREE || pattern.tag != TL_V_TREE ||
        now.tree->shape != pattern.tree->shape ||
        now.tree->finite.tag != TL_V_EMPTY ||
        pattern.tree->finite.tag != TL_V_EMPTY) {
        return false;
    }
    for (size_t i = 0; i < now.tree->shape->len; i++) {
        tl_value p = pattern.tree->items[i];

        if (p.tag != TL_V_NODE ||
            now.tree->items[i].tensor != e->results[p.node->id - 1]) {
            return false;
        }
    }
    return true;
}

/* What the cell will hold: EMPTY if it has been written in place. */
static tl_status new_value(tl_eval *ev, tl_entry *e, tl_ecell *c)
{
    tl_value now = c->cell->value;

    if (c->pattern.tag == TL_V_NODE && now.tag == TL_V_TENSOR &&
        now.tensor == e->results[c->pattern.node->id - 1]) {
        return TL_OK;
    }
    return is_unchanged(e, c->pattern, now)
               ? TL_OK
               : tl_lift_back(ev, c->pattern, result_of, e, &c->next);
}

static tl_status store_cell(tl_eval *ev, tl_ecell *c)
{
    tl_value v = c->next;

    c->next = tl_empty();
    if (v.tag == TL_V_EMPTY) {
        return TL_OK;
    }
    if (c->cell->hold == TL_HOLD_TENSOR && !c->cell->has_type) {
        return tl_cell_write_take(ev, c->cell, v); /* adopts its type */
    }
    tl_cell_store_take(c->cell, v);
    return TL_OK;
}

static tl_run run_of(tl_entry *e, tl_effect_arg *arg)
{
    return (tl_run){.tensors = e->tensors, .scalars = e->scalars,
                    .donate = e->donate, .effect = tl_entry_effect,
                    .arg = arg, .out_tensors = e->results,
                    .out_scalars = e->result_scalars};
}

/* Collect the inputs of an entry that matches; do its guards hold? */
static bool fits(tl_eval *ev, tl_entry *e)
{
    tl_run run = run_of(e, NULL);
    tl_status st = gather_inputs(ev, e);

    if (st != TL_OK) {
        (void)tl_diag_pop(ev->diag);
    }
    if (st != TL_OK || !tl_program_fits(e->program, &run)) {
        release(e);
        return false;
    }
    return true;
}

/* What a run has computed takes effect: all new values are made before the
 * first cell is written. */
static tl_status commit(tl_eval *ev, tl_entry *e, tl_value *out)
{
    tl_value result = tl_empty();
    tl_status st = tl_lift_back(ev, e->result, result_of, e, &result);

    for (size_t i = 0; i < e->ncells && st == TL_OK; i++) {
        if (e->cells[i].written) {
            st = new_value(ev, e, &e->cells[i]);
        }
    }
    if (st != TL_OK) {
        for (size_t i = 0; i < e->ncells; i++) {
            tl_drop(&e->cells[i].next);
        }
        return st;
    }
    ev->rt->draws = e->draws_out > 0
                        ? (uint64_t)e->result_scalars[e->draws_out - 1].i
                        : ev->rt->draws + e->draws;
    for (size_t i = 0; i < e->ncells; i++) {
        tl_status stored = store_cell(ev, &e->cells[i]);

        st = st == TL_OK ? stored : st;
    }
    if (st == TL_OK && e->printed.len > 0) {
        st = tl_eval_write(ev, tl_buf_str(&e->printed), e->printed.len);
    }
    if (st != TL_OK) {
        tl_unref(result);
        return st;
    }
    *out = result;
    return TL_OK;
}

/* *ran: it has run, and changed what it changes. */
static tl_status run_entry(tl_eval *ev, tl_entry *e, tl_value *out, bool *ran)
{
    tl_effect_arg arg = {ev, e};
    tl_run run = run_of(e, &arg);
    tl_status st = tl_program_run(e->program, ev->rt, &run);

    *ran = st == TL_OK;
    if (st == TL_OK) {
        st = commit(ev, e, out);
    }
    tl_buf_fini(&e->printed);
    tl_buf_init(&e->printed);
    release(e);
    return st;
}

/* ---- calls -------------------------------------------------------------- */

static tl_status compiler_of(tl_eval *ev, tl_compiler **out)
{
    if (ev->compiler == NULL) {
        ev->compiler = tl_calloc(1, sizeof(*ev->compiler));
        if (ev->compiler == NULL) {
            return tl_fail_memory(ev->diag, "the compiler",
                                  sizeof(*ev->compiler));
        }
        tl_map_init(&ev->compiler->by_fn);
        tl_map_init(&ev->compiler->refused);
    }
    *out = ev->compiler;
    return TL_OK;
}

void tl_compiler_clear(tl_compiler *c)
{
    if (c == NULL) {
        return;
    }
    for (size_t i = 0; i < c->by_fn.len; i++) {
        tl_entry *e = c->by_fn.entries[i].key != NULL
                          ? c->by_fn.entries[i].value
                          : NULL;

        while (e != NULL) {
            tl_entry *next = e->next;

            tl_entry_free(e);
            e = next;
        }
    }
    tl_map_fini(&c->by_fn);
    tl_map_fini(&c->refused);
    tl_map_init(&c->by_fn);
    tl_map_init(&c->refused);
}

void tl_compiler_free(tl_compiler *c)
{
    if (c != NULL) {
        tl_compiler_clear(c);
        tl_map_fini(&c->by_fn);
        tl_map_fini(&c->refused);
        tl_free(c);
    }
}

tl_compile_stats tl_compiler_stats(const tl_eval *ev)
{
    return ev->compiler != NULL ? ev->compiler->stats
                                : (tl_compile_stats){0};
}

/* Put a new entry in front; the oldest of too many goes. */
static tl_status keep_entry(tl_eval *ev, tl_compiler *c, tl_entry *e)
{
    tl_entry **at = &e->next;
    size_t n = 1;

    e->next = tl_map_get(&c->by_fn, e->fn, NULL);
    if (!tl_map_set(&c->by_fn, e->fn, e)) {
        tl_entry_free(e);
        return tl_fail_memory(ev->diag, "a program", sizeof(*e));
    }
    c->stats.programs++;
    while (*at != NULL && n < TL_MAX_ENTRIES) {
        at = &(*at)->next;
        n++;
    }
    if (*at != NULL && !(*at)->running) {
        tl_entry_free(*at); /* the list ends here: it was the last */
        *at = NULL;
    }
    return TL_OK;
}

/* Refused: an error, or once a warning and interpreted from now on. */
static tl_status refused(tl_eval *ev, tl_compiler *c, const tl_funcdef *fn,
                         tl_status st)
{
    const tl_diag_item *why = ev->diag->last;

    if (why == NULL || why->code != TL_E0602 ||
        !(ev->suppress_errors || fn->marks.fallback)) {
        return st;
    }
    tl_span span = why->span.end > 0 ? why->span : fn->node->span;
    const char *text = why->message;

    (void)tl_diag_pop(ev->diag);
    tl_warn(ev->diag, TL_W0601, span, "`%s` runs interpreted: %s",
            fn->name != NULL ? fn->name->text : "fn", text);
    return tl_map_set(&c->refused, fn, (void *)fn)
               ? TL_OK
               : tl_fail_memory(ev->diag, "the compiler", sizeof(fn));
}

/* A program that fails has changed nothing: the interpreter runs the call
 * instead and reports the same error with its frames. */
static tl_status failed_run(tl_eval *ev, tl_status st, bool *done)
{
    if (!tl_status_catchable(st)) {
        return st;
    }
    (void)tl_diag_pop(ev->diag);
    *done = false;
    return TL_OK;
}

static tl_status run(tl_eval *ev, tl_compiler *c, tl_entry *e, tl_value *out,
                     bool *done)
{
    bool ran = false;

    c->stats.runs++;
    e->running = true;
    *done = true;
    tl_status st = run_entry(ev, e, out, &ran);

    e->running = false;
    return st == TL_OK || ran ? st : failed_run(ev, st, done);
}

tl_status tl_compiled_call(tl_eval *ev, const tl_funcdef *fn,
                           tl_namespace *ns, tl_fn *closure, tl_module *self,
                           tl_args *args, tl_value *out, bool *done)
{
    tl_compiler *c;
    tl_entry *e;

    *done = false;
    TL_TRY(compiler_of(ev, &c));
    if ((ev->rt->tape != NULL && ev->rt->no_grad == 0) || ev->grads != NULL ||
        tl_map_get(&c->refused, fn, NULL) != NULL) {
        return TL_OK;
    }
    for (e = tl_map_get(&c->by_fn, fn, NULL); e != NULL; e = e->next) {
        if (!e->running && matches(ev, e, closure, self, args) &&
            fits(ev, e)) {
            return run(ev, c, e, out, done);
        }
    }
    c->stats.traces++;
    tl_status st = tl_entry_trace(ev, fn, ns, closure, self, args,
                                  tl_map_get(&c->by_fn, fn, NULL), &e);

    if (st != TL_OK) {
        return refused(ev, c, fn, st);
    }
    if (e == NULL) {
        return TL_OK;
    }
    TL_TRY(keep_entry(ev, c, e));
    return matches(ev, e, closure, self, args) && fits(ev, e)
               ? run(ev, c, e, out, done)
               : TL_OK;
}
