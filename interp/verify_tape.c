/* verify_tape.c - `--verify` of calls that a tape sees.
 *
 * The program runs first, on what is put back afterwards.  Then the
 * interpreter runs the call and the tape records it: its results stand.
 *
 * Gradients are compared when the tape is replayed.  A custom entry over the
 * results meets what flows into the call: the gradient's program runs with it.
 * A custom entry under each input meets what the interpreter's entries give
 * for it, and compares.  Both pass on what they get. */
#include "interp/verify_impl.h"

#include <string.h>

#include "interp/dict.h"
#include "interp/record.h"
#include "runtime/base/mem.h"
#include "runtime/tape/tape.h"

/* What the entries of a call share. */
typedef struct call_grads {
    int refs;
    tl_kept_run *run;
    tl_tensor **dx; /* by input that has a gradient; the program's */
    bool known;     /* dx is set */
    bool partial;   /* nothing has flowed into some of the results: signs of
                       zeros may differ */
    const tl_entry *entry; /* alive as long as `run` */
} call_grads;

/* An input that the tape watches. */
typedef struct probe {
    tl_tensor *t;      /* its header */
    tl_tensor *before; /* another one, with the node that it had */
} probe;

typedef struct taped {
    tl_verifier v;
    call_grads *grads;
    probe *probes;
    int n;
    tl_tensor **results, **under; /* by result of the kept run */
    bool plain; /* each input and each result is one header */
} taped;

/* ---- the entries -------------------------------------------------------- */

static void grads_unref(void *data)
{
    call_grads *g = data;

    if (g == NULL || --g->refs > 0) {
        return;
    }
    for (int i = 0; g->run != NULL && i < tl_kept_inputs(g->run); i++) {
        tl_tensor_unref(g->dx[i]);
    }
    tl_free(g->dx);
    tl_kept_free(g->run);
    tl_free(g);
}

/* tl_custom_grad_fn of the entry over the results. */
static tl_status meet_results(void *data, tl_tensor *const *g, int nout,
                              tl_tensor **dx, int nin, tl_diag *diag)
{
    call_grads *c = data;

    TL_TRY(tl_kept_gradient(c->run, g, nout, c->dx, tl_kept_inputs(c->run),
                            diag));
    c->known = true;
    for (int i = 0; i < nin; i++) {
        c->partial |= g[i] == NULL;
        dx[i] = g[i] != NULL ? tl_tensor_ref(g[i]) : NULL;
    }
    return TL_OK;
}

/* Of an entry under an input: its number among those with gradients. */
typedef struct under_input {
    call_grads *grads;
    int number;
} under_input;

static void under_free(void *data)
{
    grads_unref(((under_input *)data)->grads);
    tl_free(data);
}

static bool only_signs_of_zeros(const tl_tensor *a, const tl_tensor *b)
{
    for (int64_t i = 0; i < a->numel; i++) {
        double x = tl_tensor_get_f(a, i), y = tl_tensor_get_f(b, i);

        if (!(x == y || (x != x && y != y))) {
            return false;
        }
    }
    return true;
}

static tl_status compare_gradient(const call_grads *c, int number,
                                  const tl_tensor *mine,
                                  const tl_tensor *theirs, tl_diag *diag)
{
    tl_value a = {.tag = TL_V_TENSOR, .tensor = (tl_tensor *)mine};
    tl_value b = {.tag = TL_V_TENSOR, .tensor = (tl_tensor *)theirs};
    tl_difference d = {.output = 0};
    const char *name = tl_kept_cell(c->run, number);
    tl_status st = TL_OK;

    tl_buf_init(&d.text);
    if (tl_values_differ(tl_empty(), a, b, &d) &&
        !(c->partial && mine->numel == theirs->numel &&
          only_signs_of_zeros(mine, theirs))) {
        st = tl_fail_at(diag, TL_E0604, c->entry->fn->node->span,
                        "compiled, the gradient of `%s` differs from the "
                        "interpreter",
                        tl_code_title_of(c->entry->fn));
        tl_diag_note(diag, "%s%s%s%s", name != NULL ? "of cell `" : "of an ",
                     name != NULL ? name : "argument",
                     name != NULL ? "`" : "", tl_buf_str(&d.text));
    }
    tl_buf_fini(&d.text);
    return st;
}

/* tl_custom_grad_fn */
static tl_status meet_input(void *data, tl_tensor *const *g, int nout,
                            tl_tensor **dx, int nin, tl_diag *diag)
{
    const under_input *u = data;
    const tl_tensor *mine = u->grads->dx[u->number];

    (void)nout, (void)nin;
    if (u->grads->known && mine != NULL && g[0] != NULL) {
        TL_TRY(compare_gradient(u->grads, u->number, mine, g[0], diag));
    }
    dx[0] = g[0] != NULL ? tl_tensor_ref(g[0]) : NULL;
    return TL_OK;
}

/* ---- under the inputs --------------------------------------------------- */

static tl_status add_probe(taped *x, int number)
{
    tl_eval *ev = x->v.ev;
    probe *p = &x->probes[x->n];
    under_input *u;

    for (int i = 0; i < x->n; i++) {
        x->plain &= x->probes[i].t != p->t;
    }
    TL_TRY(tl_tensor_alias(&p->before, p->t, ev->diag));
    x->n++;
    TL_TRY(tl_tape_share(ev->rt->tape, p->before, p->t, ev->diag));
    u = tl_calloc(1, sizeof(*u));
    if (u == NULL) {
        return tl_fail_memory(ev->diag, "a gradient", sizeof(*u));
    }
    *u = (under_input){x->grads, number};
    x->grads->refs++;
    return tl_tape_record_custom(ev->rt->tape, &p->before, 1, &p->t, 1,
                                 meet_input, u, under_free, ev->rt->span,
                                 ev->diag);
}

/* From here on the inputs' headers are what the entries give. */
static tl_status enter(taped *x)
{
    tl_eval *ev = x->v.ev;
    int n = tl_kept_inputs(x->grads->run);

    x->probes = tl_calloc((size_t)n + 1, sizeof(*x->probes));
    if (x->probes == NULL) {
        return tl_fail_memory(ev->diag, "a gradient",
                              (size_t)n * sizeof(*x->probes));
    }
    for (int i = 0; i < n; i++) {
        tl_tensor *t;

        TL_TRY(tl_kept_input(ev, x->grads->run, i, &t));
        if (t != NULL && tl_tape_node(ev->rt->tape, t) != 0) {
            x->probes[x->n].t = t;
            TL_TRY(add_probe(x, i));
        } else {
            tl_tensor_unref(t);
        }
    }
    return TL_OK;
}

/* They get back the nodes that they had. */
static tl_status leave(taped *x)
{
    tl_eval *ev = x->v.ev;
    tl_status st = TL_OK;

    for (int i = x->n; i-- > 0;) {
        tl_status shared = tl_tape_share(ev->rt->tape, x->probes[i].t,
                                         x->probes[i].before, ev->diag);

        st = st == TL_OK ? shared : st;
    }
    return st;
}

/* ---- over the results --------------------------------------------------- */

static void find(taped *x, tl_value pattern, tl_value v);

static void find_items(taped *x, const tl_value *p, const tl_value *v,
                       size_t n)
{
    for (size_t i = 0; i < n; i++) {
        find(x, p[i], v[i]);
    }
}

static void find_dict(taped *x, const tl_dict *p, const tl_dict *v)
{
    size_t i = 0, k = 0;

    for (tl_dict_entry *a; (a = tl_dict_next(p, &i)) != NULL;) {
        tl_dict_entry *b = tl_dict_next(v, &k);

        if (b != NULL) {
            find(x, a->value, b->value);
        }
    }
}

/* The interpreter's tensors for the outputs of the program. */
static void find(taped *x, tl_value pattern, tl_value v)
{
    if (pattern.tag == TL_V_NODE) {
        int i = tl_kept_output(x->grads->run, pattern.node->id - 1);

        if (i >= 0 && v.tag == TL_V_TENSOR) {
            x->plain &= x->results[i] == NULL || x->results[i] == v.tensor;
            x->results[i] = v.tensor;
        }
        return;
    }
    if (pattern.tag != v.tag) {
        return;
    }
    switch (v.tag) {
    case TL_V_LIST:
    case TL_V_TUPLE:
        find_items(x, pattern.seq->items, v.seq->items, v.seq->len);
        break;
    case TL_V_RECORD:
        find_items(x, pattern.record->fields, v.record->fields,
                   tl_record_nfields(v.record));
        break;
    case TL_V_DICT:
        find_dict(x, pattern.dict, v.dict);
        break;
    case TL_V_TREE:
        find_items(x, pattern.tree->items, v.tree->items,
                   v.tree->shape->len);
        break;
    default:
        break;
    }
}

/* Is each result found, a header of its own, and no input's? */
static bool are_plain(const taped *x)
{
    int n = tl_kept_outputs(x->grads->run);

    for (int i = 0; i < n; i++) {
        if (x->results[i] == NULL) {
            return false;
        }
        for (int k = 0; k < i; k++) {
            if (x->results[k] == x->results[i]) {
                return false;
            }
        }
        for (int k = 0; k < x->n; k++) {
            if (x->probes[k].t == x->results[i]) {
                return false;
            }
        }
    }
    return x->plain && n > 0;
}

static tl_status cover(taped *x, tl_value theirs)
{
    tl_eval *ev = x->v.ev;
    int n = tl_kept_outputs(x->grads->run);

    x->results = tl_calloc(2 * (size_t)n + 2, sizeof(tl_tensor *));
    if (x->results == NULL) {
        return tl_fail_memory(ev->diag, "a gradient", (size_t)n * 16);
    }
    x->under = x->results + n + 1;
    find(x, x->v.e->result, theirs);
    for (size_t i = 0; i < x->v.cells.len; i++) {
        find(x, x->v.cells.items[i].pattern,
             x->v.cells.items[i].cell->value);
    }
    if (!are_plain(x)) {
        return TL_OK;
    }
    for (int i = 0; i < n; i++) {
        TL_TRY(tl_kept_type(x->grads->run, i, x->results[i], ev->diag));
        TL_TRY(tl_tensor_alias(&x->under[i], x->results[i], ev->diag));
        TL_TRY(tl_tape_share(ev->rt->tape, x->under[i], x->results[i],
                             ev->diag));
    }
    x->grads->refs++;
    return tl_tape_record_custom(ev->rt->tape, x->under, n, x->results, n,
                                 meet_results, x->grads, grads_unref,
                                 ev->rt->span, ev->diag);
}

/* ---- both engines ------------------------------------------------------- */

static void taped_fini(taped *x)
{
    int n = x->grads != NULL && x->grads->run != NULL
                ? tl_kept_outputs(x->grads->run)
                : 0;

    for (int i = 0; i < x->n; i++) {
        tl_tensor_unref(x->probes[i].before);
        tl_tensor_unref(x->probes[i].t);
    }
    for (int i = 0; x->under != NULL && i < n; i++) {
        tl_tensor_unref(x->under[i]);
    }
    tl_free(x->probes);
    tl_free(x->results);
    grads_unref(x->grads);
    tl_verify_fini(&x->v);
}

static tl_status new_grads(tl_eval *ev, tl_entry *e, call_grads **out)
{
    call_grads *g = tl_calloc(1, sizeof(*g));

    if (g == NULL) {
        return tl_fail_memory(ev->diag, "a gradient", sizeof(*g));
    }
    g->refs = 1;
    g->entry = e;
    *out = g;
    TL_TRY(tl_kept_new(ev, e, &g->run));
    g->dx = tl_calloc((size_t)tl_kept_inputs(g->run) + 1, sizeof(*g->dx));
    return g->dx != NULL ? TL_OK
                         : tl_fail_memory(ev->diag, "a gradient", 64);
}

/* The interpreter's run, which the tape records. */
static tl_status interpret_taped(taped *x, const char *why, tl_value mine,
                                 const tl_buf *text, tl_value *out)
{
    tl_verifier *v = &x->v;
    tl_status st = tl_verify_interpret(v, out);
    tl_status left = leave(x);

    if (st != TL_OK) {
        return why != NULL || !tl_status_catchable(st)
                   ? st
                   : tl_verify_failure(v, false, "it gives no result");
    }
    TL_TRY(left);
    TL_TRY(why != NULL ? tl_verify_failure(v, true, why)
                       : tl_verify_compare(v, mine, *out, text));
    TL_TRY(cover(x, *out));
    return v->text.len > 0 ? tl_eval_write(v->ev, tl_buf_str(&v->text),
                                           v->text.len)
                           : TL_OK;
}

tl_status tl_verify_taped(tl_eval *ev, tl_compiled *f, const tl_ccall *call,
                          tl_entry *e, tl_value *out, tl_ran *ran)
{
    taped x = {.v = {.ev = ev, .call = call, .e = e, .swapped = true},
               .plain = true};
    tl_value mine = tl_empty();
    const char *why = NULL;
    bool succeeded = false;
    tl_buf text;
    tl_status st;

    tl_map_init(&x.v.index);
    tl_buf_init(&x.v.text);
    tl_buf_init(&text);
    *out = tl_empty();
    *ran = TL_RAN;
    f->verified++;
    TL_GOTO(st, tl_verify_begin(&x.v));
    TL_GOTO(st, new_grads(ev, e, &x.grads));
    TL_GOTO(st, enter(&x));
    {
        tl_captured c = tl_verify_capture(ev, &text);

        e->refs++; /* it stays, whatever the interpreter does */
        st = tl_entry_run(ev, e, &mine, &succeeded);
        tl_verify_release(ev, c);
    }
    tl_verify_put_back(&x.v);
    if (st != TL_OK && tl_status_catchable(st)) {
        const tl_diag_item *item = tl_diag_pop(ev->diag);

        why = item != NULL ? item->message : "";
        st = TL_OK;
    }
    if (st == TL_OK) {
        st = interpret_taped(&x, why, mine, &text, out);
    }
    if (st != TL_OK) {
        tl_drop(out);
    }
    tl_entry_unref(e);
out:
    tl_unref(mine);
    tl_buf_fini(&text);
    taped_fini(&x);
    return st;
}
