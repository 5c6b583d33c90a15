/* custom.c - functions with a `backward` clause.
 *
 * The body runs unseen by the innermost tape, which gets one custom entry in
 * its place: from the float tensor parameters to the results.  The tapes
 * around it see the body as ordinary code, since the clause reads its locals,
 * and the results by the rule again (LANGUAGE.md 6). */
#include "interp/domain.h"
#include "interp/eval_impl.h"
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
    tl_tensor *outs[TL_MAX_OUTPUTS]; /* stubs: types of the results */
    tl_tensor *ins[TL_INLINE_ARGS];  /* stubs: types of the parameters */
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
    for (int i = 0; i < r->nout; i++) {
        tl_tensor_unref(r->outs[i]);
    }
    for (int i = 0; i < r->nin; i++) {
        tl_tensor_unref(r->ins[i]);
    }
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

/* Upstream gradients as values; zeros where nothing flows. */
static tl_status upstream(tl_eval *ev, const rule *r, tl_tensor *const *g,
                          tl_value *out)
{
    for (int i = 0; i < r->nout; i++) {
        tl_attrs at;

        if (g[i] != NULL) {
            out[i] = tl_tensor_value_take(tl_tensor_ref(g[i]));
            continue;
        }
        tl_attrs_init(&at);
        at.dtype = (uint8_t)r->outs[i]->dtype;
        at.ndims = (uint16_t)r->outs[i]->rank;
        for (int k = 0; k < r->outs[i]->rank; k++) {
            at.dims[k] = tl_dim_num(r->outs[i]->size[k]);
        }
        TL_TRY(tl_eval_op(ev, TL_OP_full, NULL, 0, &at, &out[i]));
    }
    return TL_OK;
}

/* Called by the reverse pass. */
static tl_status rule_gradient(void *data, tl_tensor *const *g, int nout,
                               tl_tensor **dx, int nin, tl_diag *diag)
{
    rule *r = data;
    tl_eval *ev = r->ev;
    tl_value dys[TL_MAX_OUTPUTS], grads[TL_INLINE_ARGS];
    tl_frame frame;
    tl_status st;

    (void)diag;
    TL_CHECK(nout == r->nout && nin == r->nin);
    for (int i = 0; i < TL_MAX_OUTPUTS; i++) {
        dys[i] = tl_empty();
    }
    for (int i = 0; i < TL_INLINE_ARGS; i++) {
        grads[i] = tl_empty();
    }
    TL_TRY(tl_frame_push(ev, &frame, r->fn, r->ns, r->closure, r->self,
                         r->span));
    for (uint32_t i = 0; i < r->fn->nsaved; i++) {
        tl_drop(&frame.slots[r->fn->saved[i]]);
        frame.slots[r->fn->saved[i]] = tl_ref(r->saved[i]);
    }
    const tl_funcdef *around = ev->rule;

    ev->rule = r->fn;
    ev->no_check++;
    st = upstream(ev, r, g, dys);
    if (st == TL_OK) {
        st = run_clause(ev, r->fn, dys, nout, grads, nin);
    }
    for (int i = 0; i < nin && st == TL_OK; i++) {
        tl_ttype want;

        tl_tensor_type(r->ins[i], &want);
        st = check_gradient(ev, r->fn, i, grads[i], &want);
    }
    ev->no_check--;
    ev->rule = around;
    if (st != TL_OK) {
        tl_note_frame(ev, &frame);
    }
    tl_frame_pop(ev, &frame);
    for (int i = 0; i < nin; i++) {
        if (st == TL_OK) {
            dx[i] = grads[i].tensor; /* takes the reference */
        } else {
            tl_unref(grads[i]);
        }
    }
    tl_unref_all(dys, (size_t)r->nout);
    return st;
}

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
        st = tl_tensor_stub(&r->ins[i], ins[i].tensor, ev->diag);
        r->nin += st == TL_OK;
    }
    if (st != TL_OK) {
        rule_unref(r);
        return st;
    }
    *out = r;
    return TL_OK;
}

/* Results get headers of their own, which the entries define. */
static tl_status alias_results(tl_eval *ev, tl_value v, rule *r,
                               tl_tensor **outs, tl_value *res)
{
    bool tuple = v.tag == TL_V_TUPLE;
    size_t n = tuple ? v.seq->len : 1;
    tl_value items[TL_INLINE_ARGS];

    if (n > TL_INLINE_ARGS) {
        return tl_fail_at(ev->diag, TL_E0513, r->fn->backward->span,
                          "more than %d results", TL_INLINE_ARGS);
    }
    for (size_t i = 0; i < n; i++) {
        tl_value item = tuple ? v.seq->items[i] : v;
        tl_status st = TL_OK;
        tl_tensor *t = NULL;

        items[i] = tl_ref(item);
        if (!tl_is_float_tensor(item)) {
            continue;
        }
        if (r->nout == TL_MAX_OUTPUTS) {
            st = tl_fail_at(ev->diag, TL_E0513, r->fn->backward->span,
                            "more than %d float results", TL_MAX_OUTPUTS);
        }
        if (st == TL_OK) {
            st = tl_tensor_alias(&t, item.tensor, ev->diag);
        }
        if (st == TL_OK) {
            tl_drop(&items[i]);
            items[i] = tl_tensor_value_take(t);
            outs[r->nout] = t;
            st = tl_tensor_stub(&r->outs[r->nout], t, ev->diag);
            r->nout += st == TL_OK;
        }
        if (st != TL_OK) {
            tl_unref_all(items, i + 1);
            return st;
        }
    }
    if (!tuple) {
        *res = items[0];
        return TL_OK;
    }
    return tl_seq_new_take(res, TL_V_TUPLE, items, n, ev->diag);
}

/* The same entry on every open tape. */
static tl_status record(tl_eval *ev, rule *r, const tl_value *ins,
                        tl_tensor *const *outs)
{
    tl_tensor *in[TL_INLINE_ARGS];

    for (int i = 0; i < r->nin; i++) {
        in[i] = ins[i].tensor;
    }
    for (tl_tape *t = ev->rt->tape; t != NULL; t = t->outer) {
        r->refs++;
        TL_TRY(tl_tape_record_custom(t, in, r->nin, outs, r->nout,
                                     rule_gradient, r, rule_unref, r->span,
                                     ev->diag));
    }
    return TL_OK;
}

static tl_status call_recorded(tl_eval *ev, const tl_funcdef *fn,
                               const tl_value *ins, int nin, tl_value *out)
{
    tl_tape *inner = ev->rt->tape;
    tl_value v = tl_empty();
    tl_tensor *outs[TL_MAX_OUTPUTS];
    rule *r = NULL;

    ev->rt->tape = inner->outer;
    tl_status st = tl_run_function(ev, fn, &v);

    ev->rt->tape = inner;
    if (st == TL_OK) {
        st = make_rule(ev, fn, ins, nin, &r);
    }
    if (st == TL_OK) {
        st = alias_results(ev, v, r, outs, out);
    }
    if (st == TL_OK) {
        st = record(ev, r, ins, outs);
        if (st != TL_OK) {
            tl_drop(out);
        }
    }
    if (r != NULL) {
        rule_unref(r);
    }
    tl_unref(v);
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

    for (int i = 0; i < nin && st == TL_OK; i++) {
        tl_ttype want;

        st = tl_eval_type(ev, ins[i], &want);
        if (st == TL_OK) {
            st = check_gradient(ev, fn, i, grads[i], &want);
        }
        if (i == nin - 1) {
            tl_unref_all(grads, (size_t)nin);
        }
    }
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
    if (!ev->domain->has_data) {
        st = call_checked(ev, fn, ins, nin, out);
    } else if (ev->rt->tape == NULL || ev->rt->no_grad > 0) {
        st = tl_run_function(ev, fn, out);
    } else {
        st = call_recorded(ev, fn, ins, nin, out);
    }
    ev->rule = around;
    tl_unref_all(ins, (size_t)nin);
    return st;
}
