/* compiled_match.c - does a call fit an entry, and if not, why? */
#include "interp/autocast.h"
#include "interp/compiled_impl.h"

/* ---- does an entry fit? ------------------------------------------------- */

tl_value tl_root_value(const tl_root *r, const tl_ccall *call)
{
    const tl_args *args = call->args;

    switch (r->kind) {
    case TL_ROOT_ARG:
        return r->index < args->npos ? args->pos[r->index]
                                     : args->kw[r->index - args->npos];
    case TL_ROOT_SELF:
        return (tl_value){.tag = TL_V_MODULE, .module = call->self};
    case TL_ROOT_CLOSURE:
        return (tl_value){.tag = TL_V_FN, .fn = call->closure};
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

/* What the call stands in. */
static bool same_state(const tl_eval *ev, const tl_entry *e)
{
    return e->no_grad == (ev->rt->no_grad > 0) &&
           e->f32_as_f64 == ev->f32_as_f64 &&
           e->in_grad == (ev->grads != NULL) &&
           e->taped == tl_is_taped(ev) && e->autocast == tl_autocast_key(ev);
}

bool tl_entry_same_call(const tl_eval *ev, const tl_entry *e,
                        const tl_ccall *call)
{
    return same_call(e, call->args) && same_state(ev, e);
}

static bool same_mode(const tl_tmode *m)
{
    return m->module->forced == m->forced &&
           (m->module->training > 0) == m->training;
}

/* The value of a cell, initialised if need be; EMPTY: it cannot be. */
static tl_value value_of_cell(tl_eval *ev, tl_cell *cell)
{
    tl_value stored;

    if (cell->value.tag == TL_V_EMPTY) {
        if (tl_cell_value(ev, cell, &stored) != TL_OK) {
            (void)tl_diag_pop(ev->diag);
            return tl_empty();
        }
        tl_unref(stored);
    }
    return cell->value;
}

/* The cell holds what its program takes; its tensors go to `leaves`. */
static bool match_cell(tl_eval *ev, tl_entry *e, tl_ecell *c)
{
    size_t at = c->first, n = c->leaf;
    tl_value v;

    if (!c->read) {
        return true;
    }
    v = value_of_cell(ev, c->cell);
    if (v.tag == TL_V_TENSOR && c->last.tag == TL_V_TENSOR &&
        v.tensor == c->last.tensor && c->version == c->cell->version) {
        e->leaves[n].tensor = v.tensor;
        return true;
    }
    if (!tl_lift_matches(&e->steps, &at, v, e->leaves, &n)) {
        return false;
    }
    c->last = v;
    c->version = c->cell->version;
    return true;
}

static bool match_cells(tl_eval *ev, tl_entry *e)
{
    tl_holds *h = &e->holds;

    h->now = h->on && tl_entry_holds(ev, e);
    for (size_t i = 0; i < (h->now ? h->nloose_cells : e->ncells); i++) {
        if (!match_cell(ev, e, &e->cells[h->now ? h->loose_cells[i] : i])) {
            return false;
        }
    }
    return true;
}

bool tl_entry_matches(tl_eval *ev, tl_entry *e, const tl_ccall *call)
{
    size_t n = 0;

    e->holds.now = false;
    if (!same_call(e, call->args) || !same_state(ev, e)) {
        return false;
    }
    for (size_t i = 0; i < e->roots.len; i++) {
        const tl_root *r = &e->roots.items[i];
        size_t at = r->first;

        if (!tl_lift_matches(&e->steps, &at, tl_root_value(r, call), e->leaves,
                             &n)) {
            return false;
        }
    }
    for (size_t i = 0; i < e->modes.len; i++) {
        if (!same_mode(&e->modes.items[i])) {
            return false;
        }
    }
    return match_cells(ev, e);
}

/* ---- why not ------------------------------------------------------------ */

size_t tl_entry_nearness(tl_eval *ev, tl_entry *e, const tl_ccall *call)
{
    size_t near = 0;

    if (!same_call(e, call->args)) {
        return 0;
    }
    for (size_t i = 0; i < e->roots.len; i++) {
        const tl_root *r = &e->roots.items[i];
        size_t at = r->first, n = 0;

        near += tl_lift_matches(&e->steps, &at, tl_root_value(r, call),
                                e->leaves, &n);
    }
    return 1 + same_state(ev, e) + near;
}

static void put_arg_name(const tl_entry *e, const tl_funcdef *fn,
                         uint32_t index, tl_buf *out)
{
    if (index >= e->npos) {
        tl_buf_printf(out, "`%s`", e->names[index - e->npos]->text);
    } else if (index < fn->params.len) {
        tl_buf_printf(out, "`%s`",
                      TL_AST(param, fn->params.items[index])->name->text);
    } else {
        tl_buf_printf(out, "argument %u", index + 1);
    }
}

static void put_root_name(const tl_entry *e, const tl_root *r, tl_buf *out)
{
    const tl_globals *names = r->ns != NULL ? r->ns->names : NULL;

    switch (r->kind) {
    case TL_ROOT_ARG:
        put_arg_name(e, e->fn, r->index, out);
        break;
    case TL_ROOT_SELF:
        tl_buf_puts(out, "its module");
        break;
    case TL_ROOT_CLOSURE:
        tl_buf_puts(out, "what it has captured");
        break;
    case TL_ROOT_GLOBAL:
        if (names != NULL && r->index < names->names.len) {
            tl_buf_printf(out, "global `%s`",
                          names->names.items[r->index]->text);
        } else {
            tl_buf_puts(out, "a global");
        }
        break;
    }
}

/* By which root the call differs; false: by none. */
static bool root_cause(tl_entry *e, const tl_ccall *call, tl_buf *out)
{
    size_t n = 0;

    for (size_t i = 0; i < e->roots.len; i++) {
        const tl_root *r = &e->roots.items[i];
        tl_value v = tl_root_value(r, call);
        size_t at = r->first;

        if (!tl_lift_matches(&e->steps, &at, v, e->leaves, &n)) {
            put_root_name(e, r, out);
            tl_buf_puts(out, ": ");
            tl_lift_mismatch(&e->steps, r->first, v, e->leaves, out);
            return true;
        }
    }
    return false;
}

static bool cell_cause(tl_eval *ev, tl_entry *e, tl_buf *out)
{
    for (size_t i = 0; i < e->ncells; i++) {
        tl_ecell *c = &e->cells[i];

        if (!match_cell(ev, e, c)) {
            tl_buf_printf(out, "cell `%s`: ",
                          c->cell->name != NULL ? c->cell->name->data : "");
            tl_lift_mismatch(&e->steps, c->first, value_of_cell(ev, c->cell),
                             e->leaves, out);
            return true;
        }
    }
    return false;
}

/* Is the host value a constant? */
static bool is_constant(const tl_graph *g, tl_gval v, int64_t *out)
{
    const tl_gnode *n = tl_gnode_of(g, v);

    switch ((tl_gkind)n->kind) {
    case TL_G_NUM:
        *out = g->attrs.items[n->attrs].i[0];
        return true;
    case TL_G_SIZE:
        return tl_graph_size_is_num(
            g, g->sizes.items[g->attrs.items[n->attrs].dims], out);
    default:
        return false;
    }
}

tl_value tl_guard_value(const tl_graph *g, const tl_gguard *guard)
{
    const tl_gnode *n;
    int64_t i;

    if (guard->value == 0) {
        return tl_empty();
    }
    n = tl_gnode_of(g, guard->value);
    if (n->kind == TL_G_HOST && n->op == TL_H_eq_i && guard->expected.b &&
        (is_constant(g, tl_goperand(g, n, 0), &i) ||
         is_constant(g, tl_goperand(g, n, 1), &i))) {
        return tl_int_value(i);
    }
    switch ((tl_gclass)g->values.items[guard->value].cls) {
    case TL_GC_INT:
        return tl_scalar_value(guard->expected, TL_V_INT);
    case TL_GC_FLOAT:
        return tl_scalar_value(guard->expected, TL_V_FLOAT);
    default:
        return tl_scalar_value(guard->expected, TL_V_BOOL);
    }
}

/* A number that was read differs. */
static void guard_cause(tl_eval *ev, tl_entry *e, tl_buf *out)
{
    const tl_graph *g = tl_program_graph(e->program);
    tl_effect_arg arg = {ev, e};
    const tl_gguard *guard = NULL;
    const tl_source *source;
    int line, column;

    if (tl_entry_gather(ev, e) == TL_OK) {
        tl_run run = tl_entry_inputs(e, &arg);

        guard = tl_program_misfit(e->program, &run);
    } else {
        (void)tl_diag_pop(ev->diag);
    }
    tl_entry_release(e);
    source = guard ? tl_sources_get(ev->lang->sources, guard->span.file)
                   : NULL;
    if (source == NULL) {
        tl_buf_puts(out, "a number that it has read");
        return;
    }
    tl_source_position(source, guard->span.start, &line, &column);
    tl_value v = tl_guard_value(g, guard);

    tl_buf_printf(out, "what is read at %s:%d:%d is not ", source->name,
                  line, column);
    if (v.tag == TL_V_INT) {
        tl_buf_printf(out, "%lld", (long long)v.i);
    } else if (v.tag == TL_V_FLOAT) {
        tl_buf_printf(out, "%g", v.f);
    } else {
        tl_buf_puts(out, v.b ? "true" : "false");
    }
}

void tl_entry_cause(tl_eval *ev, tl_entry *e, const tl_ccall *call,
                    tl_buf *out)
{
    if (!same_call(e, call->args)) {
        tl_buf_puts(out, "other arguments are given");
    } else if (!same_state(ev, e)) {
        tl_buf_puts(out, e->in_grad != (ev->grads != NULL)
                             ? ev->grads != NULL ? "inside of a grad block"
                                                 : "outside of grad blocks"
                         : e->f32_as_f64 == ev->f32_as_f64
                             ? ev->rt->no_grad > 0 ? "inside no_grad"
                                                   : "outside of no_grad"
                             : "gradcheck");
    } else if (!root_cause(e, call, out)) {
        for (size_t i = 0; i < e->modes.len; i++) {
            if (!same_mode(&e->modes.items[i])) {
                tl_buf_puts(out, "the mode of a module");
                return;
            }
        }
        if (!cell_cause(ev, e, out)) {
            guard_cause(ev, e, out);
        }
    }
}
