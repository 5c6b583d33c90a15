/* custom.c - functions with a `backward` clause.
 *
 * The body runs unseen by the innermost tape, which gets one custom entry in
 * its place: from the float tensor parameters to the results.  The tapes
 * around it see the body as ordinary code, since the clause reads its locals,
 * and the results by the rule again (LANGUAGE.md 6). */
#include "interp/autocast.h"
#include "interp/domain.h"
#include "interp/eval_impl.h"
#include "interp/trace.h"
#include "runtime/base/mem.h"

/* What a custom entry keeps: the call, and the slots that the clause reads. */
typedef struct rule {
    int refs;
    tl_eval *ev;
    const tl_funcdef *fn;
    tl_namespace *ns;
    tl_fn *closure;  /* counted */
    tl_module *self; /* counted */
    tl_value *saved; /* fn->nsaved values */
    tl_ttype outs[TL_MAX_OUTPUTS]; /* of the float results */
    tl_ttype ins[TL_INLINE_ARGS];  /* of the float tensor parameters */
    uint8_t outs_stored[TL_MAX_OUTPUTS]; /* the dtypes in which autocast */
    uint8_t ins_stored[TL_INLINE_ARGS];  /* has stored those */
    int nout, nin;
    tl_span span;
} rule;

static void rule_unref(void *data)
{
    rule *r = data;

    if (--r->refs > 0) {
        return;
    }
    if (r->saved != NULL) {
        tl_unref_all(r->saved, r->fn->nsaved);
    }
    tl_free(r->saved);
    if (r->closure != NULL) {
        tl_unref(tl_obj_value_take(r->closure));
    }
    if (r->self != NULL) {
        tl_unref(tl_obj_value_take(r->self));
    }
    tl_free(r);
}

/* ---- the clause -------------------------------------------------------- */

static tl_status wrong_gradient(tl_eval *ev, const tl_funcdef *fn, int got,
                                int want)
{
    tl_status st = tl_fail_at(ev->diag, TL_E0513, fn->backward->span,
                              "returned %d gradient%s, `%s` has %d float "
                              "tensor parameter%s",
                              got, got == 1 ? "" : "s",
                              fn->name != NULL ? fn->name->text : "fn", want,
                              want == 1 ? "" : "s");

    tl_diag_help(ev->diag, "one gradient for each float tensor parameter, in "
                           "their order");
    return st;
}

/* Run the clause in the running frame, whose slots are set; its result as an
 * array of `want` values. */
static tl_status run_clause(tl_eval *ev, const tl_funcdef *fn,
                            const tl_value *dys, int ndys, tl_value *out,
                            int want)
{
    const tl_ast_backward *b = TL_AST(backward, fn->backward);
    tl_flow flow = TL_FLOW_NEXT;

    if ((int)b->names.len != ndys) {
        return tl_fail_at(ev->diag, TL_E0513, fn->backward->span,
                          "%u upstream gradients are named, the function has "
                          "%d float results",
                          b->names.len, ndys);
    }
    for (int i = 0; i < ndys; i++) {
        TL_TRY(tl_eval_assign_take(ev, b->names.items[i], tl_ref(dys[i])));
    }
    TL_TRY(tl_eval_block(ev, b->body, &flow));
    tl_value r = flow == TL_FLOW_RETURN ? ev->ret : tl_none();

    ev->ret = tl_empty();
    bool tuple = r.tag == TL_V_TUPLE;
    int got = tuple ? (int)r.seq->len : 1;

    if (r.tag == TL_V_UNKNOWN) {
        for (int i = 0; i < want; i++) {
            out[i] = tl_unknown();
        }
        return TL_OK;
    }
    if (got != want) {
        tl_unref(r);
        return wrong_gradient(ev, fn, got, want);
    }
    for (int i = 0; i < want; i++) {
        out[i] = tl_ref(tuple ? r.seq->items[i] : r);
    }
    tl_unref(r);
    return TL_OK;
}

/* The gradient of parameter `i` must have its type. */
static tl_status check_gradient(tl_eval *ev, const tl_funcdef *fn, int i,
                                tl_value g, const tl_ttype *want)
{
    tl_ttype got;

    if (g.tag == TL_V_UNKNOWN) {
        return TL_OK;
    }
    if (tl_is_tensor(g)) {
        TL_TRY(tl_eval_type(ev, g, &got));
        bool same = got.dtype == want->dtype &&
                    got.shape.rank == want->shape.rank;

        for (int k = 0; same && k < got.shape.rank; k++) {
            tl_dim a = got.shape.dim[k], b = want->shape.dim[k];

            same = !tl_dim_is_num(a) || !tl_dim_is_num(b) ||
                   tl_dim_same(a, b);
        }
        if (same) {
            return TL_OK;
        }
    }
    return tl_fail_at(ev->diag, TL_E0513, fn->backward->span,
                      "gradient %d is %s, the parameter is %s", i + 1,
                      tl_value_type_str(g).s, tl_ttype_str(want).s);
}

/* Zeros for the upstream gradients that are EMPTY: nothing flows there. */
static tl_status fill_upstream(tl_eval *ev, const rule *r, tl_value *dys)
{
    for (int i = 0; i < r->nout; i++) {
        if (dys[i].tag == TL_V_EMPTY) {
            TL_TRY(tl_zeros(ev, &r->outs[i], &dys[i]));
        }
    }
    return TL_OK;
}

static tl_status check_gradients(tl_eval *ev, const rule *r,
                                 const tl_value *grads)
{
    for (int i = 0; i < r->nin; i++) {
        TL_TRY(check_gradient(ev, r->fn, i, grads[i], &r->ins[i]));
    }
    return TL_OK;
}

/* The gradient of a lowered parameter is stored as that is, that of another
 * one is not lowered. */
static tl_status store_gradients(tl_eval *ev, const rule *r, tl_value *grads)
{
    for (int i = 0; i < r->nin; i++) {
        tl_dtype want = (tl_dtype)r->ins_stored[i];

        if (!tl_is_tensor(grads[i]) ||
            tl_stored_dtype(ev, grads[i]) == want) {
            continue;
        }
        TL_TRY(tl_eval_widen(ev, &grads[i]));
        if (want != r->ins[i].dtype) {
            TL_TRY(tl_eval_lower(ev, &grads[i], want));
        }
    }
    return TL_OK;
}

/* The clause in a frame of the call, in f32; dys[] (taken) become grads[]. */
static tl_status run_rule(rule *r, tl_value *dys, tl_value *grads)
{
    tl_eval *ev = r->ev;
    const tl_funcdef *around = ev->rule;
    bool lowers = ev->rt->amp.on;
    tl_frame frame;
    tl_status st;

    for (int i = 0; i < TL_INLINE_ARGS; i++) {
        grads[i] = tl_empty();
    }
    TL_TRY(tl_frame_push(ev, &frame, r->fn, r->ns, r->closure, r->self,
                         r->span));
    for (uint32_t i = 0; i < r->fn->nsaved; i++) {
        tl_drop(&frame.slots[r->fn->saved[i]]);
        frame.slots[r->fn->saved[i]] = tl_ref(r->saved[i]);
    }
    ev->rule = r->fn;
    ev->no_check++;
    ev->rt->amp.on = false;
    st = fill_upstream(ev, r, dys);
    if (st == TL_OK) {
        st = run_clause(ev, r->fn, dys, r->nout, grads, r->nin);
    }
    if (st == TL_OK) {
        st = check_gradients(ev, r, grads);
    }
    if (st == TL_OK) {
        st = store_gradients(ev, r, grads);
    }
    ev->rt->amp.on = lowers;
    ev->no_check--;
    ev->rule = around;
    if (st != TL_OK) {
        tl_note_frame(ev, &frame);
        tl_unref_all(grads, (size_t)r->nin);
    }
    tl_frame_pop(ev, &frame);
    return st;
}

/* Called by the reverse pass on data. */
static tl_status rule_gradient(void *data, tl_tensor *const *g, int nout,
                               tl_tensor **dx, int nin, tl_diag *diag)
{
    rule *r = data;
    tl_value dys[TL_MAX_OUTPUTS], grads[TL_INLINE_ARGS];

    tl_status st = TL_OK;

    TL_CHECK(nout == r->nout && nin == r->nin);
    for (int i = 0; i < nout; i++) {
        tl_tensor *dy = NULL;

        dys[i] = tl_empty();
        if (g[i] != NULL && st == TL_OK) {
            st = tl_tensor_show(&dy, g[i], r->outs[i].dtype, diag);
            dys[i] = dy != NULL ? tl_tensor_value_take(dy) : tl_empty();
        }
    }
    if (st == TL_OK) {
        st = run_rule(r, dys, grads);
    }

    for (int i = 0; i < nin && st == TL_OK; i++) {
        dx[i] = grads[i].tensor; /* takes the reference */
    }
    tl_unref_all(dys, (size_t)nout);
    return st;
}

/* Called by the reverse pass on a graph. */
static tl_status rule_gradient_graph(void *data, tl_gbuild *b,
                                     const tl_gval *g, uint32_t nout,
                                     tl_gval *dx, uint32_t nin)
{
    rule *r = data;
    tl_value dys[TL_MAX_OUTPUTS] = {{0}}, grads[TL_INLINE_ARGS];
    tl_status st = TL_OK;

    for (uint32_t i = 0; i < nout && st == TL_OK; i++) {
        tl_gval dy = g[i];

        if (dy != 0 && r->outs_stored[i] != r->outs[i].dtype) {
            st = tl_gbuild_alias(b, dy, &dy);
            if (st == TL_OK) {
                b->values.items[dy].lowered = true;
            }
        }
        if (dy != 0 && st == TL_OK) {
            st = tl_trace_node(r->ev, dy, &dys[i]);
        }
    }
    if (st == TL_OK) {
        st = run_rule(r, dys, grads);
    }
    if (st == TL_OK) {
        for (uint32_t i = 0; i < nin && st == TL_OK; i++) {
            st = tl_trace_value(r->ev, grads[i], &dx[i]);
        }
        tl_unref_all(grads, nin);
    }
    tl_unref_all(dys, nout);
    return st;
}

/* What the clause reads, in a copy of the code; `v` is counted. */
static tl_status map_saved(tl_eval *ev, tl_value v, tl_gmap_fn *map,
                           const void *ctx, tl_value *out)
{
    tl_gval at;

    if (v.tag == TL_V_TUPLE || v.tag == TL_V_LIST) {
        tl_value *items = tl_calloc(v.seq->len + 1, sizeof(*items));
        size_t n = 0;
        tl_status st = items != NULL
                           ? TL_OK
                           : tl_fail_memory(ev->diag, "a backward rule",
                                            v.seq->len * sizeof(*items));

        while (st == TL_OK && n < v.seq->len) {
            st = map_saved(ev, v.seq->items[n], map, ctx, &items[n]);
            n += st == TL_OK;
        }
        if (st == TL_OK) {
            st = tl_seq_new_take(out, v.tag, items, n, ev->diag);
        } else if (items != NULL) {
            tl_unref_all(items, n);
        }
        tl_free(items);
        return st;
    }
    if (v.tag != TL_V_NODE) {
        *out = tl_ref(v);
        return TL_OK;
    }
    TL_TRY(tl_trace_value(ev, v, &at));
    return tl_trace_node(ev, map(ctx, at), out);
}

static tl_status rule_copy(void *data, tl_gmap_fn *map, const void *ctx,
                           void **out)
{
    const rule *from = data;
    rule *r = tl_calloc(1, sizeof(*r));
    uint32_t n = from->fn->nsaved;

    if (r == NULL) {
        return tl_fail_memory(from->ev->diag, "a backward rule", sizeof(*r));
    }
    *r = *from;
    r->refs = 1;
    if (r->closure != NULL) {
        r->closure->obj.refs++;
    }
    if (r->self != NULL) {
        r->self->obj.refs++;
    }
    r->saved = NULL;
    if (n > 0) {
        r->saved = tl_calloc(n, sizeof(*r->saved));
        if (r->saved == NULL) {
            rule_unref(r);
            return tl_fail_memory(from->ev->diag, "a backward rule",
                                  n * sizeof(*r->saved));
        }
    }
    for (uint32_t i = 0; i < n; i++) {
        tl_status st = map_saved(r->ev, from->saved[i], map, ctx,
                                 &r->saved[i]);

        if (st != TL_OK) {
            rule_unref(r);
            return st;
        }
    }
    *out = r;
    return TL_OK;
}

static const tl_gcustom_ops graph_ops = {rule_gradient_graph, rule_copy,
                                         rule_unref};

/* ---- the call ---------------------------------------------------------- */

/* The float tensors among the parameters, before the body rebinds any. */
static tl_status float_params(tl_eval *ev, const tl_funcdef *fn,
                              tl_value *out, int *n)
{
    *n = 0;
    for (uint32_t i = 0; i < fn->params.len; i++) {
        const tl_ast_param *p = TL_AST(param, fn->params.items[i]);
        tl_value v = ev->frame->slots[p->ref.index];

        if (!tl_is_float_tensor(v)) {
            continue;
        }
        if (*n == TL_INLINE_ARGS) {
            tl_unref_all(out, (size_t)*n);
            return tl_fail_at(ev->diag, TL_E0513, fn->backward->span,
                              "more than %d float tensor parameters",
                              TL_INLINE_ARGS);
        }
        out[(*n)++] = tl_ref(v);
    }
    return TL_OK;
}

/* A rule may not depend on tensors that are no parameters. */
static tl_status check_captures(tl_eval *ev, const tl_funcdef *fn)
{
    const tl_fn *c = ev->frame->closure;

    for (size_t i = 0; c != NULL && i < c->ncaptures; i++) {
        if (tl_is_float_tensor(c->captures[i])) {
            tl_status st = tl_fail_at(
                ev->diag, TL_E0515, fn->backward->span,
                "`%s` has its own backward, but captures the tensor `%s`",
                fn->name != NULL ? fn->name->text : "fn",
                fn->captures[i].name->text);

            tl_diag_help(ev->diag, "make it a parameter");
            return st;
        }
    }
    return TL_OK;
}

static tl_status make_rule(tl_eval *ev, const tl_funcdef *fn,
                           const tl_value *ins, int nin, rule **out)
{
    tl_frame *f = ev->frame;
    rule *r = tl_calloc(1, sizeof(*r));
    tl_status st = TL_OK;

    if (r == NULL) {
        return tl_fail_memory(ev->diag, "a backward rule", sizeof(*r));
    }
    *r = (rule){.refs = 1, .ev = ev, .fn = fn, .ns = f->ns,
                .closure = f->closure, .self = f->self, .span = f->call};
    if (r->closure != NULL) {
        r->closure->obj.refs++;
    }
    if (r->self != NULL) {
        r->self->obj.refs++;
    }
    if (fn->nsaved > 0) {
        r->saved = tl_calloc(fn->nsaved, sizeof(*r->saved));
        if (r->saved == NULL) {
            st = tl_fail_memory(ev->diag, "a backward rule",
                                fn->nsaved * sizeof(*r->saved));
        }
    }
    for (uint32_t i = 0; st == TL_OK && i < fn->nsaved; i++) {
        r->saved[i] = tl_ref(f->slots[fn->saved[i]]);
    }
    for (int i = 0; i < nin && st == TL_OK; i++) {
        st = tl_eval_type(ev, ins[i], &r->ins[i]);
        r->ins_stored[i] = (uint8_t)tl_stored_dtype(ev, ins[i]);
        r->nin += st == TL_OK;
    }
    if (st != TL_OK) {
        rule_unref(r);
        return st;
    }
    *out = r;
    return TL_OK;
}

/* The float results of the call, in order; E0513 if there are too many. */
static tl_status float_results(tl_eval *ev, rule *r, tl_value *items,
                               size_t n, tl_value **floats)
{
    for (size_t i = 0; i < n; i++) {
        if (!tl_is_float_tensor(items[i])) {
            continue;
        }
        if (r->nout == TL_MAX_OUTPUTS) {
            return tl_fail_at(ev->diag, TL_E0513, r->fn->backward->span,
                              "more than %d float results", TL_MAX_OUTPUTS);
        }
        TL_TRY(tl_eval_type(ev, items[i], &r->outs[r->nout]));
        r->outs_stored[r->nout] = (uint8_t)tl_stored_dtype(ev, items[i]);
        floats[r->nout++] = &items[i];
    }
    return TL_OK;
}

/* On data: results get headers of their own, which an entry on every open
 * tape defines. */
static tl_status record(tl_eval *ev, rule *r, const tl_value *ins,
                        tl_value **floats)
{
    tl_tensor *in[TL_INLINE_ARGS], *out[TL_MAX_OUTPUTS];

    for (int i = 0; i < r->nin; i++) {
        in[i] = ins[i].tensor;
    }
    for (int i = 0; i < r->nout; i++) {
        TL_TRY(tl_tensor_alias(&out[i], floats[i]->tensor, ev->diag));
        tl_drop(floats[i]);
        *floats[i] = tl_tensor_value_take(out[i]);
    }
    for (tl_tape *t = ev->rt->tape; t != NULL; t = t->outer) {
        r->refs++;
        TL_TRY(tl_tape_record_custom(t, in, r->nin, out, r->nout,
                                     rule_gradient, r, rule_unref, r->span,
                                     ev->diag));
    }
    return TL_OK;
}

/* On a graph. */
static tl_status record_graph(tl_eval *ev, rule *r, const tl_value *ins,
                              tl_value **floats)
{
    tl_gval in[TL_INLINE_ARGS], v[TL_MAX_OUTPUTS], out[TL_MAX_OUTPUTS];

    for (int i = 0; i < r->nin; i++) {
        TL_TRY(tl_trace_value(ev, ins[i], &in[i]));
    }
    for (int i = 0; i < r->nout; i++) {
        TL_TRY(tl_trace_value(ev, *floats[i], &v[i]));
    }
    r->refs++;
    TL_TRY(tl_gbuild_custom(&tl_trace_of(ev)->b, in, (uint32_t)r->nin, v,
                            (uint32_t)r->nout, &graph_ops, r, out));
    for (int i = 0; i < r->nout; i++) {
        tl_drop(floats[i]);
        TL_TRY(tl_trace_node(ev, out[i], floats[i]));
    }
    return TL_OK;
}

/* Record the call whose results are `v`; *out gets them. */
static tl_status record_call(tl_eval *ev, rule *r, const tl_value *ins,
                             tl_value v, tl_value *out)
{
    bool tuple = v.tag == TL_V_TUPLE;
    size_t n = tuple ? v.seq->len : 1;
    tl_value items[TL_INLINE_ARGS], *floats[TL_MAX_OUTPUTS];
    tl_status st;

    if (n > TL_INLINE_ARGS) {
        return tl_fail_at(ev->diag, TL_E0513, r->fn->backward->span,
                          "more than %d results", TL_INLINE_ARGS);
    }
    for (size_t i = 0; i < n; i++) {
        items[i] = tl_ref(tuple ? v.seq->items[i] : v);
    }
    st = float_results(ev, r, items, n, floats);
    if (st == TL_OK) {
        st = ev->domain->has_data ? record(ev, r, ins, floats)
                                  : record_graph(ev, r, ins, floats);
    }
    if (st != TL_OK) {
        tl_unref_all(items, n);
        return st;
    }
    if (!tuple) {
        *out = items[0];
        return TL_OK;
    }
    return tl_seq_new_take(out, TL_V_TUPLE, items, n, ev->diag);
}

/* The body, unseen by the innermost tape. */
static tl_status run_unseen(tl_eval *ev, const tl_funcdef *fn, tl_value *out)
{
    tl_status st;

    if (ev->domain->has_data) {
        tl_tape *inner = ev->rt->tape;

        ev->rt->tape = inner->outer;
        st = tl_run_function(ev, fn, out);
        ev->rt->tape = inner;
    } else {
        tl_gbuild *b = &tl_trace_of(ev)->b;
        uint64_t visible = b->visible;

        b->visible &= ~b->innermost;
        st = tl_run_function(ev, fn, out);
        b->visible = visible;
    }
    return st;
}

static tl_status call_recorded(tl_eval *ev, const tl_funcdef *fn,
                               const tl_value *ins, int nin, tl_value *out)
{
    tl_value v = tl_empty();
    rule *r = NULL;
    tl_status st = run_unseen(ev, fn, &v);

    if (st == TL_OK) {
        st = make_rule(ev, fn, ins, nin, &r);
    }
    if (st == TL_OK) {
        st = record_call(ev, r, ins, v, out);
    }
    if (r != NULL) {
        rule_unref(r);
    }
    tl_unref(v);
    return st;
}

/* Does an open tape record what runs now? */
static bool is_recorded(tl_eval *ev)
{
    if (ev->rt->no_grad > 0) {
        return false;
    }
    return ev->domain->has_data ? ev->rt->tape != NULL
                                : tl_trace_of(ev)->b.visible != 0;
}

/* The body where no block of the trace records: a block around the trace does
 * not see it either. */
static tl_status run_unrecorded(tl_eval *ev, const tl_funcdef *fn,
                                tl_value *out)
{
    if (ev->domain->has_data) {
        return tl_run_function(ev, fn, out);
    }
    tl_gbuild *b = &tl_trace_of(ev)->b;
    bool taped = b->taped;

    b->taped = taped && b->no_grad > 0;
    tl_status st = tl_run_function(ev, fn, out);

    b->taped = taped;
    return st;
}

/* Without data: the body, then the clause, to see that its types fit. */
static tl_status call_checked(tl_eval *ev, const tl_funcdef *fn,
                              const tl_value *ins, int nin, tl_value *out)
{
    tl_value dys[TL_MAX_OUTPUTS], grads[TL_INLINE_ARGS];
    int ndys = 0;

    TL_TRY(tl_run_function(ev, fn, out));
    bool tuple = out->tag == TL_V_TUPLE;
    size_t n = tuple ? out->seq->len : 1;

    for (size_t i = 0; i < n; i++) {
        tl_value v = tuple ? out->seq->items[i] : *out;

        if (v.tag == TL_V_UNKNOWN || ndys == TL_MAX_OUTPUTS) {
            return TL_OK;
        }
        if (tl_is_float_tensor(v)) {
            dys[ndys++] = v;
        }
    }
    tl_status st = run_clause(ev, fn, dys, ndys, grads, nin);
    int made = st == TL_OK ? nin : 0;

    for (int i = 0; i < nin && st == TL_OK; i++) {
        tl_ttype want;

        st = tl_eval_type(ev, ins[i], &want);
        if (st == TL_OK) {
            st = check_gradient(ev, fn, i, grads[i], &want);
        }
    }
    tl_unref_all(grads, (size_t)made);
    if (st != TL_OK) {
        tl_drop(out);
    }
    return st;
}

tl_status tl_call_custom(tl_eval *ev, const tl_funcdef *fn, tl_value *out)
{
    tl_value ins[TL_INLINE_ARGS];
    int nin = 0;

    TL_TRY(check_captures(ev, fn));
    TL_TRY(float_params(ev, fn, ins, &nin));
    const tl_funcdef *around = ev->rule;
    tl_status st;

    ev->rule = fn;
    if (ev->domain->backward == NULL) {
        st = call_checked(ev, fn, ins, nin, out);
    } else if (!is_recorded(ev)) {
        st = run_unrecorded(ev, fn, out);
    } else {
        st = call_recorded(ev, fn, ins, nin, out);
    }
    ev->rule = around;
    tl_unref_all(ins, (size_t)nin);
    return st;
}
