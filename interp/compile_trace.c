/* compile_trace.c - from a call to an entry: the trace and what is kept. */
#include <string.h>

#include "interp/autocast.h"
#include "interp/compiled_impl.h"
#include "interp/context.h"
#include "interp/dict.h"
#include "interp/record.h"
#include "runtime/base/mem.h"
#include "runtime/base/vec.h"

/* ---- the state of the evaluator ----------------------------------------- */

/* What a trace must not disturb. */
typedef struct saved {
    const tl_domain *domain;
    void *state;
    uint64_t draws, inits, seed, ordinal;
    tl_gradblk *grads;
    tl_tape *tape;
    bool in_grad;
    tl_value ret;
    int no_grad;
    size_t nerrors;
} saved;

static void trace_fini(tl_trace *tr)
{
    for (size_t i = 0; i < tr->roots.len; i++) {
        tl_unref(tr->roots.items[i].lifted);
    }
    for (size_t i = 0; i < tr->cells.len; i++) {
        tl_unref(tr->cells.items[i].value);
        tl_unref(tr->cells.items[i].before);
        tl_unref(tl_obj_value_take(tr->cells.items[i].cell));
    }
    if (tr->pins.items != NULL) {
        tl_unref_all(tr->pins.items, tr->pins.len);
    }
    for (size_t i = 0; i < tr->grown.len; i++) {
        tl_unref(tr->grown.items[i].start);
        tl_unref(tr->grown.items[i].stack);
    }
    tl_free(tr->grown.items);
    tl_steps_fini(&tr->steps);
    tl_free(tr->roots.items);
    tl_free(tr->inputs.items);
    tl_free(tr->cells.items);
    if (tr->kept.items != NULL) {
        tl_unref_all(tr->kept.items, tr->kept.len);
    }
    tl_free(tr->kept.items);
    tl_free(tr->pins.items);
    tl_free(tr->modes.items);
    if (tr->effects.items != NULL) {
        tl_unref_all(tr->effects.items, tr->effects.len);
    }
    tl_free(tr->effects.items);
    for (size_t i = 0; i < tr->exits.len; i++) {
        tl_gexit_fini(&tr->exits.items[i]);
    }
    tl_free(tr->exits.items);
    tl_free(tr->leaves.items);
    tl_map_fini(&tr->by_slot);
    tl_map_fini(&tr->by_cell);
    tl_map_fini(&tr->by_tensor);
    tl_map_fini(&tr->read_ifs);
    tl_gbuild_fini(&tr->b);
}

static tl_status host_input(tl_eval *ev, tl_trace *tr, tl_input_kind kind,
                            tl_gval *out)
{
    tl_input input = {.kind = kind};

    TL_TRY(tl_gbuild_host_input(&tr->b, TL_GC_INT, out));
    return TL_VEC_PUSH(&tr->inputs, input, ev->diag);
}

static tl_status trace_init(tl_eval *ev, tl_trace *tr, saved *s)
{
    memset(tr, 0, sizeof(*tr));
    *s = (saved){.domain = ev->domain, .state = ev->domain_state,
                 .draws = ev->rt->draws, .inits = ev->rt->inits,
                 .seed = ev->rt->seed, .ordinal = ev->init_ordinal,
                 .grads = ev->grads, .tape = ev->rt->tape,
                 .in_grad = ev->in_grad, .ret = ev->ret,
                 .no_grad = ev->rt->no_grad, .nerrors = ev->diag->nerrors};
    tl_map_init(&tr->by_slot);
    tl_map_init(&tr->by_cell);
    tl_map_init(&tr->by_tensor);
    tl_map_init(&tr->read_ifs);
    TL_TRY(tl_gbuild_init(&tr->b, ev->diag));
    TL_TRY(host_input(ev, tr, TL_IN_SEED, &tr->b.seed));
    TL_TRY(host_input(ev, tr, TL_IN_DRAWS, &tr->b.draws));
    tr->draws_in = tr->b.draws;
    tr->b.trace_seed = ev->rt->seed;
    tr->b.first_draw = ev->rt->draws;
    return TL_OK;
}

static void enter(tl_eval *ev, tl_trace *tr)
{
    ev->ret = tl_empty();
    ev->domain = &tl_domain_graph;
    ev->domain_state = tr;
    ev->in_grad = ev->in_grad || ev->grads != NULL;
    ev->grads = NULL; /* those around the call see its results */
    ev->rt->tape = NULL;
    ev->no_check++;
}

static void leave(tl_eval *ev, const saved *s)
{
    tl_unref(ev->ret);
    ev->no_check--;
    ev->ret = s->ret;
    ev->domain = s->domain;
    ev->domain_state = s->state;
    ev->grads = s->grads;
    ev->in_grad = s->in_grad;
    ev->rt->tape = s->tape;
    ev->rt->draws = s->draws;
    ev->rt->inits = s->inits;
    ev->rt->seed = s->seed;
    ev->rt->no_grad = s->no_grad;
    ev->init_ordinal = s->ordinal;
}

/* ---- earlier programs ---------------------------------------------------- */

tl_prior tl_prior_root(const tl_entry *e, tl_root_kind kind, uint32_t index,
                       const tl_namespace *ns)
{
    for (; e != NULL; e = e->next) {
        for (size_t i = 0; i < e->roots.len; i++) {
            const tl_root *r = &e->roots.items[i];

            if (r->kind == kind && r->index == index && r->ns == ns) {
                return (tl_prior){&e->steps, r->first, r->first + r->len};
            }
        }
    }
    return (tl_prior){0};
}

tl_prior tl_prior_cell(const tl_entry *e, const tl_cell *cell)
{
    for (; e != NULL; e = e->next) {
        for (size_t i = 0; i < e->ncells; i++) {
            const tl_ecell *c = &e->cells[i];

            if (c->cell == cell && c->read) {
                return (tl_prior){&e->steps, c->first, c->first + c->len};
            }
        }
    }
    return (tl_prior){0};
}

/* ---- the walk ----------------------------------------------------------- */

static tl_status lift_args(tl_eval *ev, const tl_args *args, tl_value *v)
{
    for (size_t i = 0; i < args->npos; i++) {
        TL_TRY(tl_trace_root(ev, TL_ROOT_ARG, (uint32_t)i, args->pos[i],
                             &v[i]));
    }
    for (size_t i = 0; i < args->nkw; i++) {
        TL_TRY(tl_trace_root(ev, TL_ROOT_ARG, (uint32_t)(args->npos + i),
                             args->kw[i], &v[args->npos + i]));
    }
    return TL_OK;
}

/* Call the function with lifted arguments. */
static tl_status walk(tl_eval *ev, const tl_ccall *call, tl_value *out)
{
    const tl_args *args = call->args;
    tl_fn *closure = call->closure;
    tl_module *self = call->self;
    size_t n = args->npos + args->nkw;
    tl_value *v = tl_calloc(n + 1, sizeof(*v)), c = tl_empty(), s;
    tl_args again = *args;
    tl_status st;

    if (v == NULL) {
        return tl_fail_memory(ev->diag, "arguments", n * sizeof(*v));
    }
    TL_GOTO(st, lift_args(ev, args, v));
    if (closure != NULL) {
        TL_GOTO(st, tl_trace_root(ev, TL_ROOT_CLOSURE, 0,
                                  (tl_value){.tag = TL_V_FN, .fn = closure},
                                  &c));
    }
    if (self != NULL) {
        TL_GOTO(st, tl_trace_root(ev, TL_ROOT_SELF, 0,
                                  (tl_value){.tag = TL_V_MODULE,
                                             .module = self},
                                  &s));
        tl_unref(s);
    }
    again.pos = v;
    again.kw = v + args->npos;
    st = tl_call_code(ev, call->fn, call->ns, closure != NULL ? c.fn : NULL,
                      self, &again, out);
out:
    tl_unref_all(v, n);
    tl_unref(c);
    tl_free(v);
    return st;
}

/* ---- outputs ------------------------------------------------------------ */

typedef struct collector {
    tl_eval *ev;
    tl_trace *tr;
    tl_map index; /* value of the graph -> output number + 1 */
} collector;

/* A node becomes one that holds its output number + 1. */
static tl_status collect(void *arg, tl_value node, tl_value *out)
{
    collector *c = arg;
    tl_graph *g = c->tr->b.g;
    tl_gval v = 0;
    const void *key;
    uintptr_t n;

    if (node.tag == TL_V_NODE) {
        v = node.node->id;
    } else {
        TL_TRY(tl_sym_host(c->ev, node, false, &v));
    }
    key = (const void *)(uintptr_t)v;
    n = (uintptr_t)tl_map_get(&c->index, key, NULL);

    if (n == 0) {
        TL_TRY(TL_VEC_PUSH(&g->outputs, v, c->ev->diag));
        n = g->outputs.len;
        if (!tl_map_set(&c->index, key, (void *)n)) {
            return tl_fail_memory(c->ev->diag, "outputs", sizeof(n));
        }
    }
    if (node.tag == TL_V_SYM) {
        return tl_sym_output(c->ev, (uint32_t)n, node.sym->hint, out);
    }
    return tl_dnode_new(out, &node.node->type, (uint32_t)n, c->ev->diag);
}

static bool same_value(tl_value a, tl_value b)
{
    return a.tag == b.tag &&
           (a.tag == TL_V_NODE ? a.node->id == b.node->id
            : tl_is_obj(a) || a.tag == TL_V_TENSOR ? a.obj == b.obj
                                                   : a.i == b.i);
}

static tl_status entry_cells(tl_eval *ev, tl_trace *tr, collector *c,
                             tl_entry *e)
{
    e->cells = tl_calloc(tr->cells.len + 1, sizeof(*e->cells));
    if (e->cells == NULL) {
        return tl_fail_memory(ev->diag, "cells of a program",
                              tr->cells.len * sizeof(*e->cells));
    }
    for (size_t i = 0; i < tr->cells.len; i++) {
        tl_tcell *t = &tr->cells.items[i];
        tl_ecell *o = &e->cells[e->ncells++];

        *o = (tl_ecell){.cell = t->cell, .first = t->first, .len = t->len,
                        .read = t->read,
                        .written = t->written};
        if (t->read && t->written && same_value(t->value, t->before)) {
            o->written = false;
        }
        if (o->written) {
            TL_TRY(tl_lift_back(ev, t->value, collect, c, &o->pattern));
        }
    }
    return TL_OK;
}

/* Modules and cells made by the trace are gone with it. */
static tl_status check_result(tl_eval *ev, tl_value v, uint64_t serial);

static tl_status check_items(tl_eval *ev, const tl_value *items, size_t n,
                             uint64_t serial)
{
    for (size_t i = 0; i < n; i++) {
        TL_TRY(check_result(ev, items[i], serial));
    }
    return TL_OK;
}

static tl_status check_result(tl_eval *ev, tl_value v, uint64_t serial)
{
    const tl_module *m = v.tag == TL_V_MODULE ? v.module
                         : v.tag == TL_V_FN   ? v.fn->self
                                              : NULL;
    size_t at = 0;

    TL_TRY(tl_check_stack(ev, ev->rt->span));
    if (m != NULL && m->serial > serial) {
        return tl_trace_refuse(ev, "it returns a module that it made");
    }
    if (v.tag == TL_V_CELL && v.cell->serial > serial) {
        return tl_trace_refuse(ev, "it returns a cell that it made");
    }
    switch (v.tag) {
    case TL_V_SELECT:
        return check_result(ev, v.select->root, serial);
    case TL_V_CONTEXT:
        return check_result(ev, v.context->value, serial);
    case TL_V_LIST:
    case TL_V_TUPLE:
        return check_items(ev, v.seq->items, v.seq->len, serial);
    case TL_V_RECORD:
        return check_items(ev, v.record->fields, tl_record_nfields(v.record),
                           serial);
    case TL_V_FN:
        return check_items(ev, v.fn->captures, v.fn->ncaptures, serial);
    case TL_V_METHOD:
        return check_result(ev, v.method->self, serial);
    case TL_V_DICT:
        for (tl_dict_entry *e; (e = tl_dict_next(v.dict, &at)) != NULL;) {
            TL_TRY(check_result(ev, e->value, serial));
        }
        return TL_OK;
    default:
        return TL_OK;
    }
}

/* ---- the entry ---------------------------------------------------------- */

void tl_entry_unref(tl_entry *e)
{
    if (e == NULL || --e->refs > 0) {
        return;
    }
    tl_program_free(e->program);
    tl_entry_grad_free(e->grad);
    for (size_t i = 0; i < e->ncells; i++) {
        tl_unref(e->cells[i].pattern);
    }
    for (size_t i = 0; i < e->npins; i++) {
        tl_unref(e->pins[i]);
    }
    for (size_t i = 0; i < e->neffects; i++) {
        tl_unref(e->effects[i]);
    }
    tl_unref(e->result);
    tl_buf_fini(&e->printed);
    tl_free(e->effects);
    tl_steps_fini(&e->steps);
    tl_free(e->roots.items);
    tl_free(e->inputs.items);
    tl_free(e->modes.items);
    tl_free(e->pins);
    tl_free(e->cells);
    tl_free((void *)e->names);
    tl_free(e->cause);
    tl_free(e->leaves);
    tl_free(e->tensors);
    tl_free(e->owned);
    tl_free(e->scalars);
    tl_free(e->donate);
    tl_free(e->results);
    tl_free(e->result_scalars);
    tl_holds_fini(&e->holds);
    tl_entry_share_fini(&e->sharing);
    tl_free(e);
}

static tl_status copy_names(tl_eval *ev, const tl_args *args, tl_entry *e)
{
    e->npos = args->npos;
    e->nkw = args->nkw;
    e->names = tl_calloc(args->nkw + 1, sizeof(*e->names));
    if (e->names == NULL) {
        return tl_fail_memory(ev->diag, "names of arguments",
                              args->nkw * sizeof(*e->names));
    }
    for (size_t i = 0; i < args->nkw; i++) {
        e->names[i] = args->names[i];
    }
    return TL_OK;
}

/* Number of leaves among the steps from `first` on. */
static size_t count_leaves(const tl_steps *steps, size_t first, size_t len)
{
    size_t n = 0;

    for (size_t i = first; i < first + len; i++) {
        n += steps->items[i].tag == TL_V_TENSOR ||
             steps->items[i].tag == TL_V_SYM;
    }
    return n;
}

tl_status tl_entry_make_scratch(tl_eval *ev, tl_entry *e)
{
    size_t nin = e->inputs.len + 1;

    e->leaves = tl_calloc(e->nleaves + 1, sizeof(*e->leaves));
    e->tensors = tl_calloc(nin, sizeof(*e->tensors));
    e->owned = tl_calloc(nin, sizeof(*e->owned));
    e->scalars = tl_calloc(nin, sizeof(*e->scalars));
    e->donate = tl_calloc(nin, sizeof(*e->donate));
    e->results = tl_calloc(e->nresults + 1, sizeof(*e->results));
    e->result_scalars = tl_calloc(e->nresults + 1, sizeof(*e->scalars));
    if (!e->leaves || !e->tensors || !e->owned || !e->scalars ||
        !e->donate || !e->results || !e->result_scalars) {
        return tl_fail_memory(ev->diag, "a program", nin * sizeof(void *));
    }
    return TL_OK;
}

/* Where the tensors of cells lie among the leaves, and room for all. */
static tl_status make_scratch(tl_eval *ev, const tl_trace *tr, tl_entry *e)
{
    e->nroot_leaves = tr->nleaves;
    e->nleaves = tr->nleaves;
    for (size_t i = 0; i < e->ncells; i++) {
        const tl_tcell *c = &tr->cells.items[i];

        e->cells[i].leaf = e->nleaves;
        e->cells[i].nleaves =
            c->read ? count_leaves(&e->steps, c->first, c->len) : 0;
        e->nleaves += e->cells[i].nleaves;
    }
    e->nresults = tl_program_graph(e->program)->outputs.len;
    return tl_entry_make_scratch(ev, e);
}

#define MOVE(to, from)                                                       \
    do {                                                                     \
        (to).items = (from).items;                                           \
        (to).len = (from).len;                                               \
        (to).cap = (from).cap;                                               \
        (from).items = NULL;                                                 \
        (from).len = 0;                                                      \
        (from).cap = 0;                                                      \
    } while (0)

tl_status tl_trace_outputs(tl_eval *ev, tl_trace *tr, tl_value result,
                           tl_entry *e)
{
    collector c = {ev, tr, {0}};
    tl_status st;

    tl_map_init(&c.index);
    st = tl_lift_back(ev, result, collect, &c, &e->result);
    if (st == TL_OK) {
        st = entry_cells(ev, tr, &c, e);
    }
    tl_map_fini(&c.index);
    if (st == TL_OK && tr->b.draws != tr->draws_in) {
        st = tl_trace_counter(ev);
        if (st == TL_OK) {
            st = TL_VEC_PUSH(&tr->b.g->outputs, tr->b.draws, ev->diag);
            e->draws_out = tr->b.g->outputs.len;
        }
    }
    return st;
}

/* What the trace has found becomes the entry. */
static tl_status finish(tl_eval *ev, tl_trace *tr, const tl_ccall *call,
                        tl_value result, tl_entry *e, void *arg)
{
    const tl_program_options options = {0};
    tl_graph *g;

    (void)arg;
    TL_TRY(tl_trace_outputs(ev, tr, result, e));
    TL_TRY(copy_names(ev, call->args, e));
    MOVE(e->steps, tr->steps);
    MOVE(e->inputs, tr->inputs);
    MOVE(e->modes, tr->modes);
    for (size_t i = 0; i < tr->roots.len; i++) {
        tl_drop(&tr->roots.items[i].lifted);
    }
    MOVE(e->roots, tr->roots);
    e->pins = tr->pins.items;
    e->npins = tr->pins.len;
    tr->pins.items = NULL;
    tr->pins.len = 0;
    e->effects = tr->effects.items;
    e->neffects = tr->effects.len;
    tr->effects.items = NULL;
    tr->effects.len = 0;
    TL_TRY(tl_graph_settle(tr->b.g, ev->diag));
    g = tr->b.g;
    tr->b.g = NULL;
    TL_TRY(tl_program_new(&e->program, g, &options, ev->diag));
    TL_TRY(make_scratch(ev, tr, e));
    tl_entry_note_structure(ev, e, call);
    return TL_OK;
}

/* What becomes of a trace that failed. */
static tl_status outcome(tl_eval *ev, tl_compiled *f, const tl_trace *tr,
                         tl_status st)
{
    const tl_diag_item *last = ev->diag->last;

    if (!tl_status_catchable(st) || st == TL_ERR_MEMORY) {
        return st;
    }
    if (!tr->gave_up && last != NULL && last->code == TL_E0602) {
        return st;
    }
    if (!tr->gave_up) {
        tl_compiled_note(ev, f);
    }
    (void)tl_diag_pop(ev->diag); /* the run will say it, in its place */
    return TL_OK;
}

tl_status tl_trace_call(tl_eval *ev, tl_compiled *f, const tl_ccall *call,
                        tl_gblock *block, tl_entry *e, tl_trace_end *end,
                        void *arg, bool *done)
{
    tl_value result = tl_empty();
    uint64_t serial = ev->next_serial;
    tl_trace tr;
    saved s;
    tl_status st = trace_init(ev, &tr, &s);

    *done = false;
    tr.earlier = f->entries;
    tr.fn = call->fn;
    tr.serial = serial;
    tr.made_up = f->made_up;
    tr.b.taped = block == NULL && tl_is_taped(ev);
    if (st == TL_OK) {
        enter(ev, &tr);
        if (block != NULL) {
            st = tl_gblock_open(&tr.b, block);
            tr.block = block;
        }
        if (st == TL_OK) {
            st = walk(ev, call, &result);
        }
        e->draws = ev->rt->draws - s.draws;
        if (st == TL_OK) {
            st = check_result(ev, result, serial);
        }
        if (st == TL_OK && !tr.gave_up) { /* else its graph is not whole */
            st = end(ev, &tr, call, result, e, arg);
        }
        leave(ev, &s);
    }
    tl_unref(result);
    *done = st == TL_OK && !tr.gave_up;
    f->guards = tr.b.g != NULL ? tr.b.g->guards.len - tr.bound : 0;
    st = st == TL_OK ? st : outcome(ev, f, &tr, st);
    trace_fini(&tr);
    return st;
}

tl_status tl_entry_trace(tl_eval *ev, tl_compiled *f, const tl_ccall *call,
                         tl_entry **out)
{
    tl_entry *e = tl_calloc(1, sizeof(*e));
    bool done = false;
    tl_status st;

    *out = NULL;
    if (e == NULL) {
        return tl_fail_memory(ev->diag, "a program", sizeof(*e));
    }
    e->refs = 1;
    e->fn = call->fn;
    e->no_grad = ev->rt->no_grad > 0;
    e->f32_as_f64 = ev->f32_as_f64;
    e->in_grad = ev->grads != NULL;
    e->taped = tl_is_taped(ev);
    e->autocast = tl_autocast_key(ev);
    st = tl_trace_call(ev, f, call, NULL, e, finish, NULL, &done);
    if (st == TL_OK && done && e->taped) {
        st = tl_entry_trace_grad(ev, f, call, e, &e->grad);
        done = e->grad != NULL;
    }
    if (done && st == TL_OK) {
        *out = e;
    } else {
        tl_entry_unref(e);
    }
    return st;
}
