/* compile_grad.c - compiled functions that an interpreted grad block sees.
 *
 * The call is one custom entry of the tape.  Its gradient is a program of its
 * own, from a second trace of the same call: the function anew, then its
 * reverse pass from the gradients of the results.  So nothing but the inputs
 * is kept until the backward pass. */
#include <string.h>

#include "interp/compiled_impl.h"
#include "runtime/base/mem.h"
#include "runtime/base/vec.h"
#include "runtime/tape/tape.h"

bool tl_is_taped(const tl_eval *ev)
{
    const tl_tape *tape = ev->rt->tape;

    return tape != NULL && ev->rt->no_grad == 0 && tape->outer == NULL;
}

/* ---- the trace ---------------------------------------------------------- */

tl_status tl_trace_leaf(tl_eval *ev, tl_gval *v)
{
    tl_trace *tr = tl_trace_of(ev);
    tl_gval leaf = 0;

    if (tr->block == NULL) {
        return TL_OK;
    }
    if (tl_dtype_is_float(tl_gbuild_type(&tr->b, *v)->dtype)) {
        TL_TRY(tl_gblock_leaf(&tr->b, tr->block, *v, &leaf));
        *v = leaf;
    }
    while (tr->leaves.len + 1 < tr->inputs.len) { /* numbers, pins */
        TL_TRY(TL_VEC_PUSH(&tr->leaves, 0, ev->diag));
    }
    return TL_VEC_PUSH(&tr->leaves, leaf, ev->diag);
}

/* An input for the gradient of each output that depends on a leaf. */
static tl_status add_upstream(tl_eval *ev, tl_trace *tr, tl_entry_grad *g,
                              tl_gval *grad)
{
    tl_graph *graph = tr->b.g;

    for (size_t k = 0; k < g->noutputs; k++) {
        tl_gval v = graph->outputs.items[k], up;
        tl_input input = {.kind = TL_IN_UPSTREAM, .index = (uint32_t)k};
        const tl_ttype *type = tl_gbuild_type(&tr->b, v);

        if (type == NULL || !tl_dtype_is_float(type->dtype) ||
            (tr->b.values.items[v].seen & tr->block->bit) == 0) {
            continue;
        }
        g->upstream[k] = (uint32_t)graph->inputs.len;
        TL_TRY(tl_gbuild_input(&tr->b, type, &up));
        TL_TRY(TL_VEC_PUSH(&tr->inputs, input, ev->diag));
        if (grad[v] == 0) { /* an output may stand for two results */
            grad[v] = up;
        } else {
            tl_gval terms[2] = {grad[v], up};

            TL_TRY(tl_gbuild_apply(&tr->b, TL_OP_add, terms, 2, NULL,
                                   &grad[v]));
        }
    }
    return TL_OK;
}

/* Gradients of the leaves become the graph's outputs. */
static tl_status take_gradients(tl_eval *ev, tl_trace *tr, tl_entry_grad *g,
                                const tl_gval *grad)
{
    tr->b.g->outputs.len = 0;
    for (size_t i = 0; i < tr->leaves.len && i < g->ninputs; i++) {
        tl_gval leaf = tr->leaves.items[i];

        if (leaf != 0 && grad[leaf] != 0) {
            TL_TRY(TL_VEC_PUSH(&tr->b.g->outputs, grad[leaf], ev->diag));
            g->of_input[i] = (uint32_t)tr->b.g->outputs.len;
        }
    }
    return TL_OK;
}

static tl_status reverse(tl_eval *ev, tl_trace *tr, tl_entry_grad *g)
{
    size_t len = tr->b.values.len;
    tl_gval *grad = tl_calloc(len + 1, sizeof(*grad));
    tl_status st;

    if (grad == NULL) {
        return tl_fail_memory(ev->diag, "a gradient", len * sizeof(*grad));
    }
    tl_gblock_close(&tr->b, tr->block);
    TL_GOTO(st, add_upstream(ev, tr, g, grad));
    TL_GOTO(st, tl_gblock_reverse(&tr->b, tr->block, grad, len));
    st = take_gradients(ev, tr, g, grad);
out:
    tl_free(grad);
    return st;
}

/* tl_trace_end: the trace becomes the gradient's program. */
static tl_status finish(tl_eval *ev, tl_trace *tr, const tl_ccall *call,
                        tl_value result, tl_entry *e, void *arg)
{
    const tl_program_options options = {0};
    tl_entry_grad *g = arg;
    tl_graph *graph;

    (void)call;
    TL_TRY(tl_trace_outputs(ev, tr, result, e));
    if (tr->inputs.len != g->ninputs ||
        tr->b.g->outputs.len != g->noutputs) {
        tr->gave_up = true; /* not the same trace: it is interpreted */
        return TL_OK;
    }
    TL_TRY(reverse(ev, tr, g));
    TL_TRY(tl_graph_settle(tr->b.g, ev->diag));
    graph = tr->b.g;
    tr->b.g = NULL;
    return tl_program_new(&g->program, graph, &options, ev->diag);
}

tl_entry_grad *tl_entry_grad_ref(tl_entry_grad *g)
{
    if (g != NULL) {
        g->refs++;
    }
    return g;
}

void tl_entry_grad_free(tl_entry_grad *g)
{
    if (g != NULL && --g->refs <= 0) {
        tl_program_free(g->program);
        tl_free(g->upstream);
        tl_free(g->of_input);
        tl_free(g);
    }
}

static tl_entry_grad *new_grad(const tl_entry *e)
{
    tl_entry_grad *g = tl_calloc(1, sizeof(*g));

    if (g == NULL) {
        return NULL;
    }
    g->refs = 1;
    g->ninputs = e->inputs.len;
    g->noutputs = e->nresults;
    g->upstream = tl_calloc(g->noutputs + 1, sizeof(*g->upstream));
    g->of_input = tl_calloc(g->ninputs + 1, sizeof(*g->of_input));
    if (g->upstream == NULL || g->of_input == NULL) {
        tl_entry_grad_free(g);
        return NULL;
    }
    return g;
}

tl_status tl_entry_trace_grad(tl_eval *ev, tl_compiled *f,
                              const tl_ccall *call, const tl_entry *e,
                              tl_entry_grad **out)
{
    tl_entry_grad *g = new_grad(e);
    tl_entry *scratch = tl_calloc(1, sizeof(*scratch));
    bool done = false;
    tl_gblock block;
    tl_status st;

    *out = NULL;
    if (g == NULL || scratch == NULL) {
        tl_entry_grad_free(g);
        tl_free(scratch);
        return tl_fail_memory(ev->diag, "a gradient", sizeof(*g));
    }
    scratch->refs = 1;
    st = tl_trace_call(ev, f, call, &block, scratch, finish, g, &done);
    tl_entry_unref(scratch);
    if (st != TL_OK || !done) {
        tl_entry_grad_free(g);
        return st;
    }
    *out = g;
    return TL_OK;
}

/* ---- runs --------------------------------------------------------------- */

struct tl_kept_run {
    tl_rt *rt;
    tl_entry *entry;
    tl_tensor **in; /* by input; counted */
    tl_gscalar *scalars;
    tl_tensor **types; /* stubs of the float results, in the entry's order */
    uint32_t *input_of, *output_of; /* by input and result of the entry of the
                                       tape */
    int nin, nout;
};

typedef tl_kept_run kept;

static void kept_free(void *data)
{
    kept *k = data;

    for (size_t i = 0; i < k->entry->inputs.len && k->in != NULL; i++) {
        tl_tensor_unref(k->in[i]);
    }
    for (int i = 0; i < k->nout; i++) {
        tl_tensor_unref(k->types[i]);
    }
    tl_entry_unref(k->entry);
    tl_free(k->in);
    tl_free(k->scalars);
    tl_free(k->types);
    tl_free(k->input_of);
    tl_free(k->output_of);
    tl_free(k);
}

static tl_status no_effect(void *arg, uint32_t key, uint32_t n,
                           tl_tensor *const *tensors,
                           const tl_gscalar *scalars)
{
    (void)arg; /* the first run has had it */
    (void)key;
    (void)n;
    (void)tensors;
    (void)scalars;
    return TL_OK;
}

/* Zeros for a result that nothing flows to. */
static tl_status zeros_like(tl_rt *rt, const tl_tensor *t, tl_tensor **out)
{
    TL_TRY(tl_tensor_new(out, rt->pool, t->dtype, t->rank, t->size,
                         rt->diag));
    memset(tl_tensor_data(*out), 0,
           (size_t)t->numel * tl_dtype_size(t->dtype));
    return TL_OK;
}

/* Inputs of the gradient's program: those of the run, then g. */
static tl_status gradient_inputs(const kept *k, tl_tensor *const *g,
                                 tl_tensor **in, tl_gscalar *scalars)
{
    const tl_entry_grad *eg = k->entry->grad;

    for (size_t i = 0; i < eg->ninputs; i++) {
        in[i] = k->in[i] != NULL ? tl_tensor_ref(k->in[i]) : NULL;
        scalars[i] = k->scalars[i];
    }
    for (int i = 0; i < k->nout; i++) {
        uint32_t up = eg->upstream[k->output_of[i]];
        tl_tensor *row_major;

        if (up == 0) {
            continue;
        }
        if (g[i] == NULL) {
            TL_TRY(zeros_like(k->rt, k->types[i], &in[up]));
            continue;
        }
        TL_TRY(tl_contiguous(k->rt, g[i], &row_major));
        in[up] = row_major;
    }
    return TL_OK;
}

/* tl_custom_grad_fn */
static tl_status gradient(void *data, tl_tensor *const *g, int nout,
                          tl_tensor **dx, int nin, tl_diag *diag)
{
    kept *k = data;
    const tl_entry_grad *eg = k->entry->grad;
    const tl_graph *graph = tl_program_graph(eg->program);
    size_t n = graph->inputs.len, m = graph->outputs.len;
    tl_tensor **in = tl_calloc(n + m + 2, sizeof(*in)), **out = NULL;
    tl_gscalar *scalars = tl_calloc(n + m + 2, sizeof(*scalars));
    tl_run run = {.tensors = in, .scalars = scalars, .effect = no_effect};
    tl_status st;

    (void)nout;
    if (in == NULL || scalars == NULL) {
        st = tl_fail_memory(diag, "a gradient", (n + m) * sizeof(*in));
        goto out;
    }
    run.out_tensors = out = in + n + 1;
    run.out_scalars = scalars + n + 1;
    TL_GOTO(st, gradient_inputs(k, g, in, scalars));
    TL_GOTO(st, tl_program_run(eg->program, k->rt, &run));
    for (int i = 0; i < nin; i++) {
        uint32_t at = eg->of_input[k->input_of[i]];

        dx[i] = at != 0 ? tl_tensor_ref(out[at - 1]) : NULL;
    }
out:
    for (size_t i = 0; in != NULL && i < n + m + 2; i++) {
        tl_tensor_unref(in[i]);
    }
    tl_free(in);
    tl_free(scalars);
    return st;
}

/* ---- recording ---------------------------------------------------------- */

/* The tensor of input `i` as the tape knows it: of a watched cell its leaf. */
static tl_status taped_input(tl_eval *ev, const tl_entry *e, size_t i,
                             tl_tensor **out)
{
    const tl_input *in = &e->inputs.items[i];
    tl_tensor *t = NULL;
    tl_value v;

    if (in->kind == TL_IN_LEAF) {
        t = e->leaves[in->index].tensor;
    } else if (in->kind == TL_IN_CELL) {
        tl_cell *cell = e->cells[in->index].cell;

        t = e->leaves[e->cells[in->index].leaf + in->leaf].tensor;
        if (t != NULL && cell->watchers > 0 &&
            cell->value.tag == TL_V_TENSOR) {
            TL_TRY(tl_cell_read(ev, cell, &v));
            *out = v.tensor;
            return TL_OK;
        }
    }
    *out = t != NULL && tl_dtype_is_float(t->dtype) ? tl_tensor_ref(t) : NULL;
    return TL_OK;
}

static tl_status keep_run(tl_eval *ev, tl_entry *e, kept **out)
{
    size_t nin = e->inputs.len + 1, nout = e->nresults + 1;
    kept *k = tl_calloc(1, sizeof(*k));

    if (k == NULL) {
        return tl_fail_memory(ev->diag, "a compiled call", sizeof(*k));
    }
    k->rt = ev->rt;
    k->entry = e;
    e->refs++;
    k->in = tl_calloc(nin, sizeof(*k->in));
    k->scalars = tl_calloc(nin, sizeof(*k->scalars));
    k->types = tl_calloc(nout, sizeof(*k->types));
    k->input_of = tl_calloc(nin, sizeof(*k->input_of));
    k->output_of = tl_calloc(nout, sizeof(*k->output_of));
    if (!k->in || !k->scalars || !k->types || !k->input_of ||
        !k->output_of) {
        kept_free(k);
        return tl_fail_memory(ev->diag, "a compiled call",
                              nin * sizeof(*k->in));
    }
    for (size_t i = 0; i + 1 < nin; i++) {
        k->in[i] = e->tensors[i] != NULL ? tl_tensor_ref(e->tensors[i])
                                         : NULL;
        k->scalars[i] = e->scalars[i];
    }
    *out = k;
    return TL_OK;
}

/* Results that are inputs get headers of their own: the entry defines them. */
static tl_status own_header(tl_eval *ev, tl_entry *e, size_t i)
{
    tl_tensor *t;

    for (size_t k = 0; k < e->inputs.len; k++) {
        if (e->tensors[k] == e->results[i]) {
            TL_TRY(tl_tensor_alias(&t, e->results[i], ev->diag));
            tl_tensor_unref(e->results[i]);
            e->results[i] = t;
            return TL_OK;
        }
    }
    return TL_OK;
}

static tl_status collect_outputs(tl_eval *ev, tl_entry *e, kept *k,
                                 tl_tensor **out)
{
    for (size_t i = 0; i < e->nresults; i++) {
        if (e->results[i] == NULL || e->grad->upstream[i] == 0) {
            continue;
        }
        TL_TRY(own_header(ev, e, i));
        TL_TRY(tl_tensor_stub(&k->types[k->nout], e->results[i], ev->diag));
        k->output_of[k->nout] = (uint32_t)i;
        out[k->nout++] = e->results[i];
    }
    return TL_OK;
}

tl_status tl_entry_record(tl_eval *ev, tl_entry *e)
{
    size_t n = e->inputs.len + 1, m = e->nresults + 1;
    tl_tensor **in = tl_calloc(n + m, sizeof(*in)), **out;
    kept *k = NULL;
    tl_status st;

    if (in == NULL) {
        return tl_fail_memory(ev->diag, "a compiled call",
                              (n + m) * sizeof(*in));
    }
    out = in + n;
    TL_GOTO(st, keep_run(ev, e, &k));
    for (size_t i = 0; i < e->inputs.len; i++) {
        TL_GOTO(st, taped_input(ev, e, i, &in[k->nin]));
        if (in[k->nin] != NULL && e->grad->of_input[i] != 0) {
            k->input_of[k->nin++] = (uint32_t)i;
        } else {
            tl_tensor_unref(in[k->nin]);
            in[k->nin] = NULL;
        }
    }
    TL_GOTO(st, collect_outputs(ev, e, k, out));
    {
        int nin = k->nin, nout = k->nout;
        kept *data = k;

        k = NULL; /* taken */
        st = tl_tape_record_custom(ev->rt->tape, in, nin, out, nout, gradient,
                                   data, kept_free, ev->rt->span, ev->diag);
    }
out:
    if (k != NULL) {
        kept_free(k);
    }
    for (size_t i = 0; i < n; i++) {
        tl_tensor_unref(in[i]);
    }
    tl_free(in);
    return st;
}

/* ---- for --verify ------------------------------------------------------- */

tl_status tl_kept_new(tl_eval *ev, tl_entry *e, tl_kept_run **out)
{
    kept *k;

    TL_TRY(keep_run(ev, e, &k));
    for (size_t i = 0; i < e->inputs.len; i++) {
        if (e->grad->of_input[i] != 0) {
            k->input_of[k->nin++] = (uint32_t)i;
        }
    }
    for (size_t i = 0; i < e->nresults; i++) {
        if (e->grad->upstream[i] != 0) {
            k->output_of[k->nout++] = (uint32_t)i;
        }
    }
    *out = k;
    return TL_OK;
}

void tl_kept_free(tl_kept_run *k)
{
    if (k != NULL) {
        kept_free(k);
    }
}

int tl_kept_inputs(const tl_kept_run *k)
{
    return k->nin;
}

tl_status tl_kept_input(tl_eval *ev, const tl_kept_run *k, int i,
                        tl_tensor **out)
{
    return taped_input(ev, k->entry, k->input_of[i], out);
}

const char *tl_kept_cell(const tl_kept_run *k, int i)
{
    const tl_input *in = &k->entry->inputs.items[k->input_of[i]];
    const tl_cell *cell =
        in->kind == TL_IN_CELL ? k->entry->cells[in->index].cell : NULL;

    return cell != NULL && cell->name != NULL ? cell->name->data : NULL;
}

int tl_kept_outputs(const tl_kept_run *k)
{
    return k->nout;
}

int tl_kept_output(const tl_kept_run *k, uint32_t output)
{
    for (int i = 0; i < k->nout; i++) {
        if (k->output_of[i] == output) {
            return i;
        }
    }
    return -1;
}

tl_status tl_kept_type(tl_kept_run *k, int i, const tl_tensor *t,
                       tl_diag *diag)
{
    return tl_tensor_stub(&k->types[i], t, diag);
}

tl_status tl_kept_gradient(tl_kept_run *k, tl_tensor *const *g, int nout,
                           tl_tensor **dx, int nin, tl_diag *diag)
{
    return gradient(k, g, nout, dx, nin, diag);
}
