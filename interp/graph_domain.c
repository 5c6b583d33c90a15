/* graph_domain.c - tensors as values of a graph: operations are recorded. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "interp/graph_flow.h"
#include "runtime/base/mem.h"
#include "runtime/base/vec.h"

enum {
    CONST_NUMEL = 64,    /* tensors up to this size become constants */
    MAX_NODES = 400000   /* of a graph: a loop unrolled beyond reason */
};

tl_status tl_trace_refuse(tl_eval *ev, const char *fmt, ...)
{
    char text[200];
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    return tl_fail(ev->diag, TL_E0602, "%s", text);
}

/* ---- values ------------------------------------------------------------- */

tl_status tl_trace_node(tl_eval *ev, tl_gval v, tl_value *out)
{
    const tl_bvalue *note = &tl_trace_of(ev)->b.values.items[v];

    TL_TRY(tl_dnode_new(out, note->type, v, ev->diag));
    if (note->lowered) {
        out->node->type.dtype = TL_f32;
    }
    return TL_OK;
}

/* A small tensor, whose elements are known, as a constant of the graph. */
static tl_status constant(tl_eval *ev, const tl_tensor *t, tl_gval *out)
{
    uint8_t bytes[CONST_NUMEL * 8];
    tl_ttype type;

    tl_tensor_type(t, &type);
    tl_tensor_read(t, bytes);
    return tl_gbuild_const(&tl_trace_of(ev)->b, &type, bytes,
                           (size_t)t->numel * tl_dtype_size(t->dtype), out);
}

/* A larger one is an input that is the same in every call. */
static tl_status pin(tl_eval *ev, tl_value v, tl_gval *out)
{
    tl_trace *tr = tl_trace_of(ev);
    tl_input input = {.kind = TL_IN_PIN, .index = (uint32_t)tr->pins.len};
    tl_tensor *base;
    tl_ttype type;
    tl_status st;

    TL_TRY(tl_contiguous(ev->rt, v.tensor, &base));
    tl_tensor_type(base, &type);
    st = TL_VEC_PUSH(&tr->pins, tl_tensor_value_take(base), ev->diag);
    if (st != TL_OK) {
        tl_tensor_unref(base);
        return st;
    }
    TL_TRY(tl_gbuild_input(&tr->b, &type, out));
    return TL_VEC_PUSH(&tr->inputs, input, ev->diag);
}

static void note_flags(tl_trace *tr, tl_gval v, const tl_tensor *t)
{
    tr->b.values.items[v].lowered = tl_tensor_lowered(t);
    tr->b.values.items[v].weight = (t->flags & TL_TENSOR_WEIGHT) != 0;
}

tl_status tl_trace_value(tl_eval *ev, tl_value v, tl_gval *out)
{
    tl_trace *tr = tl_trace_of(ev);
    uintptr_t known;

    if (v.tag == TL_V_NODE) {
        *out = v.node->id;
        return TL_OK;
    }
    if (v.tag != TL_V_TENSOR) {
        return tl_trace_refuse(ev, "%s is no tensor here",
                               tl_value_type_str(v).s);
    }
    if (v.tensor->numel <= CONST_NUMEL) {
        TL_TRY(constant(ev, v.tensor, out));
        note_flags(tr, *out, v.tensor);
        return TL_OK;
    }
    known = (uintptr_t)tl_map_get(&tr->by_tensor, v.tensor, NULL);
    if (known != 0) {
        *out = (tl_gval)known;
        return TL_OK;
    }
    TL_TRY(TL_VEC_PUSH(&tr->kept, v, ev->diag));
    tl_ref(v);
    TL_TRY(pin(ev, v, out));
    note_flags(tr, *out, v.tensor);
    return tl_map_set(&tr->by_tensor, v.tensor, (void *)(uintptr_t)*out)
               ? TL_OK
               : tl_fail_memory(ev->diag, "a trace", sizeof(v));
}

tl_status tl_trace_counter(tl_eval *ev)
{
    tl_gbuild *b = &tl_trace_of(ev)->b;
    tl_gscalar by = {.i = (int64_t)(ev->rt->draws - b->first_draw)};
    tl_gval in[2] = {b->draws, 0};

    if (by.i == 0) {
        return TL_OK;
    }
    TL_TRY(tl_gbuild_num(b, TL_GC_INT, by, &in[1]));
    TL_TRY(tl_gbuild_host(b, TL_H_add_i, TL_GC_INT, in, 2, &b->draws));
    b->first_draw = ev->rt->draws;
    return TL_OK;
}

/* ---- operations --------------------------------------------------------- */

static tl_infer *graph_infer(tl_eval *ev)
{
    return &tl_trace_of(ev)->b.infer;
}

/* Where the builder is what the evaluator is. */
static void sync(tl_eval *ev)
{
    tl_trace *tr = tl_trace_of(ev);

    tr->b.span = ev->rt->span;
    tr->b.no_grad = ev->rt->no_grad;
}

static tl_status apply(tl_eval *ev, tl_op op, const tl_value *in, int nin,
                       const tl_attrs *at, tl_value *out)
{
    tl_trace *tr = tl_trace_of(ev);
    tl_gval few[TL_MAX_INPUTS], *v = few, res[TL_MAX_OUTPUTS];
    int nout = tl_op_get(op)->nout;
    tl_status st = TL_OK;

    if (tr->b.g->nodes.len > MAX_NODES) {
        return tl_trace_refuse(ev, "more than %d operations: a loop is "
                               "unrolled too far", MAX_NODES);
    }
    if (nin > TL_MAX_INPUTS) {
        v = tl_calloc((size_t)nin, sizeof(*v));
        if (v == NULL) {
            return tl_fail_memory(ev->diag, "operands",
                                  (size_t)nin * sizeof(*v));
        }
    }
    for (int i = 0; i < nin && st == TL_OK; i++) {
        st = tl_trace_value(ev, in[i], &v[i]);
    }
    sync(ev);
    if (st == TL_OK) {
        st = tl_gbuild_apply(&tr->b, op, v, nin, at, res);
    }
    for (int k = 0; k < nout && st == TL_OK; k++) {
        st = tl_trace_node(ev, res[k], &out[k]);
        if (st != TL_OK) {
            tl_unref_all(out, (size_t)k);
        }
    }
    if (v != few) {
        tl_free(v);
    }
    return st;
}

/* Sizes of results are known before a run: refuse what has others. */
static tl_status check_sizes(tl_eval *ev, tl_op op, const tl_attrs *at)
{
    if (op != TL_OP_unique &&
        (op != TL_OP_nonzero || (at != NULL && at->ndims > 0))) {
        return TL_OK;
    }
    tl_status st = tl_trace_refuse(ev, "the size of what this gives depends "
                                       "on data");

    if (op == TL_OP_unique) {
        tl_diag_help(ev->diag, "call `unique` outside of the compiled "
                               "function");
    } else {
        tl_diag_help(ev->diag, "`where(mask, x, 0)` keeps the size; "
                               "`nonzero(mask, size=n)` has a fixed one");
    }
    return st;
}

static tl_status graph_apply(tl_eval *ev, tl_op op, tl_value *in, int nin,
                             const tl_attrs *at, tl_value *out)
{
    tl_value made[TL_MAX_OUTPUTS];
    tl_status st = check_sizes(ev, op, at);

    if (st == TL_OK) {
        st = apply(ev, op, in, nin, at, made);
    }

    tl_unref_all(in, (size_t)nin); /* `out` may be `in` */
    for (int i = 0; i < nin; i++) {
        in[i] = tl_empty();
    }
    for (int k = 0; k < tl_op_get(op)->nout && st == TL_OK; k++) {
        out[k] = made[k];
    }
    return st;
}

static tl_status graph_read(tl_eval *ev, tl_value t, tl_value *out)
{
    (void)t;
    (void)out;
    tl_status st = tl_trace_refuse(ev, "the host reads a tensor here");

    tl_diag_help(ev->diag, "keep it a tensor, or read it outside of the "
                           "compiled function");
    return st;
}

static tl_status graph_effect(tl_eval *ev, tl_host_effect what, bool *perform)
{
    *perform = false;
    switch (what) {
    case TL_HOST_PRINT: /* it is recorded: tl_trace_print */
        *perform = true;
        return TL_OK;
    case TL_HOST_IO:
        tl_trace_refuse(ev, "it reads or writes files, or asks for the "
                            "time");
        tl_diag_help(ev->diag, "return what is to be written and do it "
                               "outside, or use `print`");
        return TL_ERR_REJECTED;
    case TL_HOST_RAISE: /* so would the run: it will say it */
        break;
    }
    tl_trace_of(ev)->raised = tl_trace_of(ev)->b.owner != 0;
    tl_trace_of(ev)->gave_up = !tl_trace_of(ev)->raised;
    return tl_fail(ev->diag, TL_E0602, "it raises an error");
}

/* Was the module in training mode when the trace began?  Blocks of the trace
 * have counted too. */
static bool was_training(const tl_eval *ev, const tl_module *module)
{
    int training = module->training;

    for (const tl_gradblk *b = ev->grads; b != NULL; b = b->outer) {
        for (size_t i = 0; i < b->ntargets; i++) {
            for (size_t k = 0; k < b->targets[i].nmodules; k++) {
                training -= b->targets[i].modules[k] == module;
            }
        }
    }
    return training > 0;
}

static void graph_saw_mode(tl_eval *ev, tl_module *module)
{
    tl_trace *tr = tl_trace_of(ev);
    tl_tmode mode = {module, was_training(ev, module), module->forced};

    if (module->serial > tr->serial) {
        return; /* made by the trace: it is gone with it */
    }
    for (size_t i = 0; i < tr->modes.len; i++) {
        if (tr->modes.items[i].module == module) {
            return;
        }
    }
    if (TL_VEC_PUSH(&tr->modes, mode, ev->diag) != TL_OK) {
        (void)tl_diag_pop(ev->diag);
        tr->gave_up = true; /* the run will be interpreted */
    }
}

tl_status tl_trace_bound(tl_eval *ev, const tl_funcdef *fn)
{
    tl_trace *tr = tl_trace_of(ev);
    tl_frame *f = ev->frame;

    if (fn != tr->fn || tr->is_bound) {
        return TL_OK; /* marks of what it calls mean nothing */
    }
    tr->is_bound = true;
    tr->bound = tr->b.g->guards.len;
    if (fn->marks.nstatic == 0) {
        return TL_OK;
    }
    for (uint32_t i = 0; i < fn->nslots; i++) {
        bool named = false;

        for (uint32_t k = 0; k < fn->marks.nstatic && !named; k++) {
            named = fn->slot_names[i] == fn->marks.static_[k];
        }
        if (named) {
            TL_TRY(tl_sym_read_deep(ev, &f->slots[i]));
        }
    }
    return TL_OK;
}

/* ---- what is outside ---------------------------------------------------- */

static tl_status add_root(tl_eval *ev, tl_root_kind kind, tl_namespace *ns,
                          uint32_t index, tl_value v, tl_value *out)
{
    tl_trace *tr = tl_trace_of(ev);
    tl_root root = {.kind = kind, .index = index, .ns = ns,
                    .first = tr->steps.len};
    tl_status st;

    tr->prior = tl_prior_root(tr->earlier, kind, index, ns);
    tr->symbols = kind == TL_ROOT_ARG && tl_is_number(v);
    TL_TRY(tl_lift(ev, v, -1, &root.lifted));
    root.len = tr->steps.len - root.first;
    st = TL_VEC_PUSH(&tr->roots, root, ev->diag);
    if (st != TL_OK) {
        tl_unref(root.lifted);
        return st;
    }
    *out = tl_ref(root.lifted);
    return TL_OK;
}

tl_status tl_trace_root(tl_eval *ev, tl_root_kind kind, uint32_t index,
                        tl_value v, tl_value *out)
{
    return add_root(ev, kind, NULL, index, v, out);
}

static tl_status graph_global(tl_eval *ev, tl_namespace *ns, uint32_t index,
                              tl_value *out)
{
    tl_trace *tr = tl_trace_of(ev);
    tl_value *slot = &ns->slots[index];
    uintptr_t n = (uintptr_t)tl_map_get(&tr->by_slot, slot, NULL);

    if (n != 0) {
        *out = tl_ref(tr->roots.items[n - 1].lifted);
        return TL_OK;
    }
    TL_TRY(add_root(ev, TL_ROOT_GLOBAL, ns, index, *slot, out));
    if (!tl_map_set(&tr->by_slot, slot,
                    (void *)(uintptr_t)tr->roots.len)) {
        tl_unref(*out);
        *out = tl_empty();
        return tl_fail_memory(ev->diag, "a trace", sizeof(*slot));
    }
    return TL_OK;
}

/* ---- cells -------------------------------------------------------------- */

static tl_status find_cell(tl_eval *ev, tl_cell *cell, uint32_t *out)
{
    tl_trace *tr = tl_trace_of(ev);
    uintptr_t n = (uintptr_t)tl_map_get(&tr->by_cell, cell, NULL);
    tl_tcell item = {.cell = cell};

    if (n != 0) {
        *out = (uint32_t)n - 1;
        return TL_OK;
    }
    if (cell->serial > tr->serial) { /* each call would have its own */
        return tl_trace_refuse(ev, "a module is made inside the function");
    }
    *out = (uint32_t)tr->cells.len;
    TL_TRY(TL_VEC_PUSH(&tr->cells, item, ev->diag));
    cell->obj.refs++;
    return tl_map_set(&tr->by_cell, cell, (void *)(uintptr_t)tr->cells.len)
               ? TL_OK
               : tl_fail_memory(ev->diag, "a trace", sizeof(item));
}

/* What the cell holds when the program starts, lifted. */
static tl_status first_read(tl_eval *ev, uint32_t index)
{
    tl_trace *tr = tl_trace_of(ev);
    tl_cell *cell = tr->cells.items[index].cell;
    size_t first = tr->steps.len;
    tl_value stored, v = tl_empty();
    tl_status st;

    TL_TRY(tl_cell_value(ev, cell, &stored));
    tr->prior = tl_prior_cell(tr->earlier, cell);
    tr->symbols = true;
    st = tl_lift(ev, stored, index, &v);
    tl_unref(stored);
    TL_TRY(st);
    tl_tcell *c = &tr->cells.items[index]; /* the array may have moved */

    c->first = first;
    c->len = tr->steps.len - first;
    c->value = v;
    c->before = tl_ref(v);
    c->read = true;
    return TL_OK;
}

/* What a parameter holds is marked, for autocast. */
static void mark_weight(tl_eval *ev, const tl_cell *cell, tl_value v)
{
    if (cell->kind == TL_CELL_PARAM && v.tag == TL_V_NODE) {
        tl_trace_of(ev)->b.values.items[v.node->id].weight = true;
    }
}

static tl_status graph_cell_plain(tl_eval *ev, tl_cell *cell, tl_value *out)
{
    tl_trace *tr = tl_trace_of(ev);
    uint32_t index;

    TL_TRY(find_cell(ev, cell, &index));
    if (tr->cells.items[index].value.tag == TL_V_EMPTY) {
        TL_TRY(first_read(ev, index));
    }
    *out = tl_ref(tr->cells.items[index].value);
    mark_weight(ev, cell, *out);
    return TL_OK;
}

static tl_status graph_cell_get(tl_eval *ev, tl_cell *cell, tl_value *out)
{
    if (cell->watchers == 0) {
        return graph_cell_plain(ev, cell, out);
    }
    TL_TRY(tl_grad_cell_leaf(ev, cell, out));
    mark_weight(ev, cell, *out);
    return TL_OK;
}

static tl_status graph_cell_set(tl_eval *ev, tl_cell *cell, tl_value v)
{
    uint32_t index;
    tl_status st = find_cell(ev, cell, &index);

    if (st != TL_OK) {
        tl_unref(v);
        return st;
    }
    tl_tcell *c = &tl_trace_of(ev)->cells.items[index];

    tl_unref(c->value);
    c->value = v;
    c->written = true;
    mark_weight(ev, cell, v);
    return TL_OK;
}

/* ---- tapes -------------------------------------------------------------- */

static tl_status graph_tape_open(tl_eval *ev, tl_gradblk *block)
{
    sync(ev);
    TL_TRY(tl_gblock_open(&tl_trace_of(ev)->b, &block->graph));
    ev->rt->no_grad = 0;
    return TL_OK;
}

static void graph_tape_close(tl_eval *ev, tl_gradblk *block)
{
    tl_gbuild *b = &tl_trace_of(ev)->b;

    if (block->graph.bit != 0) {
        tl_gblock_close(b, &block->graph);
        ev->rt->no_grad = b->no_grad;
    }
}

static tl_status graph_leaf(tl_eval *ev, tl_gradblk *block, tl_value v,
                            tl_value *out)
{
    tl_gval value, leaf;

    sync(ev);
    TL_TRY(tl_trace_value(ev, v, &value));
    TL_TRY(tl_gblock_leaf(&tl_trace_of(ev)->b, &block->graph, value, &leaf));
    return tl_trace_node(ev, leaf, out);
}

static tl_status graph_stop(tl_eval *ev, tl_value v, tl_value *out)
{
    tl_gbuild *b = &tl_trace_of(ev)->b;
    tl_gval value;

    sync(ev);
    TL_TRY(tl_trace_value(ev, v, &value));
    b->no_grad++;
    tl_status st = tl_gbuild_alias(b, value, &value);

    b->no_grad--;
    return st != TL_OK ? st : tl_trace_node(ev, value, out);
}

static tl_status graph_backward(tl_eval *ev, tl_gradblk *block, tl_value loss,
                                tl_value seed, const tl_value *leaves,
                                size_t n, tl_value *grads, bool *reached)
{
    tl_gbuild *b = &tl_trace_of(ev)->b;
    tl_gval *v = tl_calloc(2 * n + 1, sizeof(*v)), *g, from = 0, y;
    tl_span span = ev->rt->span;
    tl_status st;

    if (v == NULL) {
        return tl_fail_memory(ev->diag, "gradients", 2 * n * sizeof(*v));
    }
    g = v + n;
    sync(ev);
    TL_GOTO(st, tl_trace_value(ev, loss, &y));
    if (tl_is_tensor(seed)) {
        TL_GOTO(st, tl_trace_value(ev, seed, &from));
    }
    for (size_t i = 0; i < n; i++) {
        TL_GOTO(st, tl_trace_value(ev, leaves[i], &v[i]));
    }
    TL_GOTO(st, tl_gblock_backward(b, &block->graph, y, from, v, (uint32_t)n,
                                   g, reached));
    for (size_t i = 0; i < n && st == TL_OK; i++) {
        st = tl_trace_node(ev, g[i], &grads[i]);
        for (size_t k = 0; st != TL_OK && k < i; k++) {
            tl_drop(&grads[k]);
        }
    }
out:
    ev->rt->span = span;
    tl_free(v);
    return st;
}

/* ---- control flow ------------------------------------------------------- */

static tl_status graph_join(tl_eval *ev, tl_value *v, tl_value other)
{
    (void)other; /* of a function some of whose branches have returned */
    return tl_graph_exits(ev, TL_OK, v);
}

static tl_status graph_try(tl_eval *ev, const tl_ast *node, tl_flow *flow)
{
    (void)flow;
    tl_trace_refuse(ev, "`try` cannot be compiled");
    tl_diag_at(ev->diag, node->span);
    tl_diag_help(ev->diag, "put the `try` around the call of the compiled "
                           "function");
    return TL_ERR_REJECTED;
}

const tl_domain tl_domain_graph = {
    .name = "graph",
    .has_data = false,
    .infer = graph_infer,
    .apply = graph_apply,
    .read = graph_read,
    .branch = tl_graph_branch,
    .choose = tl_graph_choose,
    .join = graph_join,
    .fold_loop = tl_graph_fold_loop,
    .loop = tl_graph_loop,
    .try_catch = graph_try,
    .effect = graph_effect,
    .cell_get = graph_cell_get,
    .cell_set = graph_cell_set,
    .global = graph_global,
    .saw_mode = graph_saw_mode,
    .tape_open = graph_tape_open,
    .tape_close = graph_tape_close,
    .leaf = graph_leaf,
    .backward = graph_backward,
    .stop = graph_stop,
    .cell_plain = graph_cell_plain,
    .grad_enter = tl_grad_enter_taped,
    .grad_leave = tl_grad_leave_taped,
    .grad_abandon = tl_grad_abandon_taped,
};
