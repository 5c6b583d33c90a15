/* verify.c - see verify.h. */
#include "interp/verify_impl.h"

#include <string.h>

#include "interp/dict.h"
#include "interp/format.h"
#include "interp/record.h"
#include "interp/tree.h"
#include "runtime/base/mem.h"
#include "runtime/base/vec.h"

/* ---- comparing ---------------------------------------------------------- */

static bool same_float(double a, double b)
{
    return memcmp(&a, &b, sizeof(a)) == 0 || (a != a && b != b);
}

static void put_value(tl_value v, tl_buf *out)
{
    tl_diag none;

    if (v.tag == TL_V_FLOAT) {
        tl_buf_printf(out, "%a", v.f);
        return;
    }
    tl_diag_init(&none, NULL);
    if (tl_format_repr(v, out, &none) != TL_OK) {
        tl_buf_puts(out, "?");
    }
    tl_diag_fini(&none);
}

/* ": mine, interpreted theirs" */
static bool differ(tl_value mine, tl_value theirs, tl_difference *out)
{
    tl_buf_puts(&out->text, ": ");
    put_value(mine, &out->text);
    tl_buf_puts(&out->text, ", interpreted ");
    put_value(theirs, &out->text);
    return true;
}

/* Append the index of element number `i`. */
static void put_index(const tl_tensor *t, int64_t i, tl_buf *out)
{
    int64_t index[TL_MAX_RANK];

    for (int k = t->rank - 1; k >= 0; k--) {
        index[k] = i % t->size[k];
        i /= t->size[k];
    }
    tl_buf_puts(out, " at [");
    for (int k = 0; k < t->rank; k++) {
        tl_buf_printf(out, k > 0 ? ", %lld" : "%lld", (long long)index[k]);
    }
    tl_buf_putc(out, ']');
}

static bool tensors_differ(const tl_tensor *a, const tl_tensor *b,
                           tl_difference *out)
{
    bool real = tl_dtype_is_float(a->dtype);

    if (a->dtype != b->dtype ||
        tl_tensor_lowered(a) != tl_tensor_lowered(b) || a->rank != b->rank ||
        memcmp(a->size, b->size, (size_t)a->rank * sizeof(*a->size)) != 0) {
        tl_value x = {.tag = TL_V_TENSOR, .tensor = (tl_tensor *)a};
        tl_value y = {.tag = TL_V_TENSOR, .tensor = (tl_tensor *)b};

        tl_buf_printf(&out->text, ": %s, interpreted %s",
                      tl_value_type_str(x).s, tl_value_type_str(y).s);
        return true;
    }
    for (int64_t i = 0; i < a->numel; i++) {
        tl_value x = real ? tl_float_value(tl_tensor_get_f(a, i))
                          : tl_int_value(tl_tensor_get_i(a, i));
        tl_value y = real ? tl_float_value(tl_tensor_get_f(b, i))
                          : tl_int_value(tl_tensor_get_i(b, i));

        if (real ? !same_float(x.f, y.f) : x.i != y.i) {
            put_index(a, i, &out->text);
            return differ(x, y, out);
        }
    }
    return false;
}

/* Text is what stands before the difference: it is cut back where there is
 * none. */
static void cut(tl_difference *d, size_t len)
{
    if (!d->text.failed && d->text.len > len) {
        d->text.len = len;
        d->text.data[len] = '\0';
    }
}

/* Items by number; `p` has patterns, or is NULL. */
static bool items_differ(const tl_value *p, const tl_value *a,
                         const tl_value *b, size_t n, tl_difference *out)
{
    for (size_t i = 0; i < n; i++) {
        size_t len = out->text.len;

        tl_buf_printf(&out->text, "[%zu]", i);
        if (tl_values_differ(p != NULL ? p[i] : tl_empty(), a[i], b[i],
                             out)) {
            return true;
        }
        cut(out, len);
    }
    return false;
}

static bool dicts_differ(tl_value pattern, const tl_dict *a, const tl_dict *b,
                         tl_difference *out)
{
    size_t i = 0, j = 0, k = 0;

    for (;;) {
        tl_dict_entry *x = tl_dict_next(a, &i), *y = tl_dict_next(b, &j);
        tl_dict_entry *p = pattern.tag == TL_V_DICT
                               ? tl_dict_next(pattern.dict, &k)
                               : NULL;
        size_t len = out->text.len;

        if (x == NULL || y == NULL) {
            tl_buf_puts(&out->text, x != y ? ": other keys" : "");
            return x != y;
        }
        tl_buf_putc(&out->text, '[');
        put_value(x->key, &out->text);
        tl_buf_putc(&out->text, ']');
        if (tl_values_differ(tl_empty(), x->key, y->key, out) ||
            tl_values_differ(p != NULL ? p->value : tl_empty(), x->value,
                             y->value, out)) {
            return true;
        }
        cut(out, len);
    }
}

static bool trees_differ(tl_value pattern, const tl_tree *a, const tl_tree *b,
                         tl_difference *out)
{
    const tl_tree *p = pattern.tag == TL_V_TREE ? pattern.tree : NULL;

    if (!tl_tree_shape_same(a->shape, b->shape)) {
        tl_buf_puts(&out->text, ": trees of other structure");
        return true;
    }
    for (size_t i = 0; i < a->shape->len; i++) {
        size_t len = out->text.len;

        tl_buf_printf(&out->text, ".%s", a->shape->paths[i]->data);
        if (tl_values_differ(p != NULL ? p->items[i] : tl_empty(),
                             a->items[i], b->items[i], out)) {
            return true;
        }
        cut(out, len);
    }
    return tl_values_differ(p != NULL ? p->finite : tl_empty(), a->finite,
                            b->finite, out);
}

/* Values without items. */
static bool plain_differ(tl_value a, tl_value b, tl_difference *out)
{
    bool same = false;
    tl_diag none;

    if (a.tag == TL_V_FLOAT) {
        return !same_float(a.f, b.f) && differ(a, b, out);
    }
    if (a.tag == TL_V_FN || a.tag == TL_V_METHOD) {
        return false; /* made anew in each engine */
    }
    tl_diag_init(&none, NULL);
    if (tl_value_equal(a, b, &same, &none) != TL_OK) {
        same = false;
    }
    tl_diag_fini(&none);
    return !same && differ(a, b, out);
}

bool tl_values_differ(tl_value pattern, tl_value mine, tl_value theirs,
                      tl_difference *out)
{
    const tl_value *p = NULL;

    if (pattern.tag == TL_V_NODE) {
        out->output = pattern.node->id;
    } else if (pattern.tag == TL_V_SYM) {
        out->output = pattern.sym->id;
    }
    if (mine.tag != theirs.tag) {
        return differ(mine, theirs, out);
    }
    switch (mine.tag) {
    case TL_V_TENSOR:
        return tensors_differ(mine.tensor, theirs.tensor, out);
    case TL_V_LIST:
    case TL_V_TUPLE:
        p = pattern.tag == mine.tag ? pattern.seq->items : NULL;
        return mine.seq->len != theirs.seq->len
                   ? differ(mine, theirs, out)
                   : items_differ(p, mine.seq->items, theirs.seq->items,
                                  mine.seq->len, out);
    case TL_V_RECORD:
        p = pattern.tag == mine.tag ? pattern.record->fields : NULL;
        return items_differ(p, mine.record->fields, theirs.record->fields,
                            tl_record_nfields(mine.record), out);
    case TL_V_DICT:
        return dicts_differ(pattern, mine.dict, theirs.dict, out);
    case TL_V_TREE:
        return trees_differ(pattern, mine.tree, theirs.tree, out);
    default:
        return plain_differ(mine, theirs, out);
    }
}

/* ---- state -------------------------------------------------------------- */

static tl_status add_cell(tl_verifier *v, tl_cell *cell, tl_value pattern)
{
    uintptr_t n = (uintptr_t)tl_map_get(&v->index, cell, NULL);
    tl_vcell c = {.cell = cell, .pattern = pattern};

    if (n != 0) {
        return TL_OK;
    }
    TL_TRY(TL_VEC_PUSH(&v->cells, c, v->ev->diag));
    cell->obj.refs++;
    return tl_map_set(&v->index, cell, (void *)(uintptr_t)v->cells.len)
               ? TL_OK
               : tl_fail_memory(v->ev->diag, "cells", sizeof(c));
}

/* Cells below a root, whether the program knows them or not. */
static tl_status add_below(tl_verifier *v, tl_value root)
{
    tl_path_list list = {0};
    tl_status st;

    if (root.tag != TL_V_MODULE) {
        return TL_OK;
    }
    st = tl_paths(v->ev, root,
                  TL_CELL_PARAM | TL_CELL_BUFFER | TL_CELL_HOST |
                      TL_PATHS_REFERRED,
                  &list);
    for (size_t i = 0; i < list.len && st == TL_OK; i++) {
        st = add_cell(v, list.items[i].cell, tl_empty());
    }
    tl_path_list_fini(&list);
    return st;
}

static tl_status collect_cells(tl_verifier *v)
{
    const tl_args *args = v->call->args;
    tl_value self = {.tag = TL_V_MODULE, .module = v->call->self};

    for (size_t i = 0; i < v->e->ncells; i++) {
        const tl_ecell *c = &v->e->cells[i];

        TL_TRY(add_cell(v, c->cell, c->written ? c->pattern : tl_empty()));
    }
    for (size_t i = 0; i < args->npos; i++) {
        TL_TRY(add_below(v, args->pos[i]));
    }
    for (size_t i = 0; i < args->nkw; i++) {
        TL_TRY(add_below(v, args->kw[i]));
    }
    return self.module != NULL ? add_below(v, self) : TL_OK;
}

/* Another tensor with the same elements, so that both engines may write in
 * place.  One that is not row-major is only referenced: its layout counts. */
static tl_status copy_tensor(tl_verifier *v, tl_tensor *t, tl_value *out)
{
    tl_tensor *made;

    if (!tl_tensor_contiguous(t)) {
        *out = tl_tensor_value_take(tl_tensor_ref(t));
        return TL_OK;
    }
    TL_TRY(tl_tensor_new(&made, v->ev->rt->pool, t->dtype, t->rank, t->size,
                         v->ev->diag));
    memcpy(tl_tensor_data(made), tl_tensor_data(t),
           (size_t)t->numel * tl_dtype_size(t->dtype));
    made->flags |= t->flags & TL_TENSOR_LOWERED;
    *out = tl_tensor_value_take(made);
    return TL_OK;
}

static tl_status copy_tree(tl_verifier *v, const tl_tree *t, tl_value *out)
{
    size_t n = t->shape->len;
    tl_value *items = tl_calloc(n + 1, sizeof(*items));
    tl_status st = TL_OK;

    if (items == NULL) {
        return tl_fail_memory(v->ev->diag, "a tree", n * sizeof(*items));
    }
    for (size_t i = 0; i < n && st == TL_OK; i++) {
        st = copy_tensor(v, t->items[i].tensor, &items[i]);
    }
    if (st == TL_OK) {
        st = tl_tree_new_take(out, t->shape, items, v->ev->diag);
    } else {
        tl_unref_all(items, n);
    }
    tl_free(items);
    if (st == TL_OK) {
        out->tree->finite = tl_ref(t->finite);
        out->tree->scaler = tl_ref(t->scaler);
    }
    return st;
}

static tl_status take_state(tl_verifier *v)
{
    tl_eval *ev = v->ev;

    tl_cells_used(ev);
    v->draws = ev->rt->draws;
    v->seed = ev->rt->seed;
    v->inits = ev->rt->inits;
    v->ordinal = ev->init_ordinal;
    for (size_t i = 0; i < v->cells.len; i++) {
        tl_vcell *c = &v->cells.items[i];
        tl_value now = c->cell->value;

        c->init = tl_ref(c->cell->init);
        if (now.tag == TL_V_TENSOR) {
            TL_TRY(copy_tensor(v, now.tensor, &c->before));
        } else if (now.tag == TL_V_TREE) {
            TL_TRY(copy_tree(v, now.tree, &c->before));
        } else {
            c->before = tl_ref(now);
        }
    }
    return TL_OK;
}

tl_status tl_verify_begin(tl_verifier *v)
{
    TL_TRY(collect_cells(v));
    return take_state(v);
}

void tl_verify_put_back(tl_verifier *v)
{
    tl_eval *ev = v->ev;

    for (size_t i = 0; i < v->cells.len; i++) {
        tl_vcell *c = &v->cells.items[i];

        c->theirs = tl_ref(c->cell->value);
        tl_cell_store_take(ev, c->cell, c->before);
        c->before = tl_empty();
        c->cell->init = c->init;
        c->init = tl_empty();
    }
    uint64_t draws = ev->rt->draws;

    ev->rt->draws = v->draws;
    ev->rt->seed = v->seed;
    ev->rt->inits = v->inits;
    ev->init_ordinal = v->ordinal;
    v->draws = draws; /* theirs, from now on */
}

void tl_verify_fini(tl_verifier *v)
{
    for (size_t i = 0; i < v->cells.len; i++) {
        tl_vcell *c = &v->cells.items[i];

        tl_unref(c->before);
        tl_unref(c->init);
        tl_unref(c->theirs);
        tl_unref(tl_obj_value_take(c->cell));
    }
    tl_free(v->cells.items);
    tl_map_fini(&v->index);
    tl_buf_fini(&v->text);
}

/* ---- both engines ------------------------------------------------------- */

static tl_status keep_text(void *arg, const char *s, size_t len)
{
    tl_buf_add(arg, s, len);
    return TL_OK;
}

tl_captured tl_verify_capture(tl_eval *ev, tl_buf *text)
{
    tl_captured c = {ev->write, ev->write_arg};

    ev->write = keep_text;
    ev->write_arg = text;
    return c;
}

void tl_verify_release(tl_eval *ev, tl_captured c)
{
    ev->write = c.write;
    ev->write_arg = c.arg;
}

tl_status tl_verify_interpret(tl_verifier *v, tl_value *out)
{
    tl_eval *ev = v->ev;
    const tl_args *from = v->call->args;
    size_t n = from->npos + from->nkw;
    tl_value *values = tl_calloc(n + 1, sizeof(*values));
    tl_args args = *from;
    tl_compile_what compile = ev->compile;

    if (values == NULL) {
        return tl_fail_memory(ev->diag, "arguments", n * sizeof(*values));
    }
    args.pos = values;
    args.kw = values + from->npos;
    for (size_t i = 0; i < n; i++) {
        values[i] = tl_ref(i < from->npos ? from->pos[i]
                                          : from->kw[i - from->npos]);
    }
    ev->compile = TL_COMPILE_OFF;
    tl_captured c = tl_verify_capture(ev, &v->text);
    tl_status st = tl_call_code(ev, v->call->fn, v->call->ns,
                                v->call->closure, v->call->self, &args, out);

    tl_verify_release(ev, c);
    ev->compile = compile;
    tl_unref_all(values, n);
    tl_free(values);
    return st;
}

/* The place of an output of the program. */
static tl_span place_of(const tl_entry *e, uint32_t output)
{
    const tl_graph *g = tl_program_graph(e->program);

    return output > 0 && output <= g->outputs.len
               ? tl_gnode_of(g, g->outputs.items[output - 1])->span
               : e->fn->node->span;
}

static tl_status report(tl_verifier *v, const char *what, tl_difference *d)
{
    tl_span span = place_of(v->e, d->output);

    if (span.end == 0) {
        span = v->e->fn->node->span;
    }
    tl_status st = tl_fail_at(v->ev->diag, TL_E0604, span,
                              "compiled, `%s` differs from the interpreter",
                              tl_code_title_of(v->e->fn));

    tl_diag_note(v->ev->diag, "%s%s", what, tl_buf_str(&d->text));
    return st;
}

tl_status tl_verify_compare(tl_verifier *v, tl_value mine, tl_value theirs,
                         const tl_buf *text)
{
    tl_eval *ev = v->ev;
    tl_difference first = {.output = 0}, d = {.output = 0};
    const char *what = NULL;
    tl_buf name;
    tl_status st = TL_OK;

    tl_buf_init(&name);
    tl_buf_init(&first.text);
    tl_buf_init(&d.text);
    if (tl_values_differ(v->e->result, mine, theirs, &first)) {
        what = "the result";
    }
    for (size_t i = 0; i < v->cells.len; i++) {
        const tl_vcell *c = &v->cells.items[i];
        tl_value now = c->cell->value;

        cut(&d, 0);
        d.output = 0;
        if (tl_values_differ(c->pattern, v->swapped ? c->theirs : now,
                             v->swapped ? now : c->theirs, &d) &&
            (what == NULL ||
             place_of(v->e, d.output).start <
                 place_of(v->e, first.output).start)) {
            tl_difference swap = first;

            first = d;
            d = swap;
            tl_buf_fini(&name);
            tl_buf_init(&name);
            tl_buf_printf(&name, "cell `%s`",
                          c->cell->name != NULL ? c->cell->name->data : "");
            what = tl_buf_str(&name);
        }
    }
    if (what == NULL && (text->len != v->text.len ||
                         memcmp(tl_buf_str(text), tl_buf_str(&v->text),
                                text->len) != 0)) {
        what = "what it prints";
    }
    if (what == NULL && ev->rt->draws != v->draws) {
        what = "the number of draws";
        tl_buf_printf(&first.text, ": counter %llu, interpreted %llu",
                      (unsigned long long)ev->rt->draws,
                      (unsigned long long)v->draws);
    }
    if (what != NULL) {
        st = report(v, what, &first);
    }
    tl_buf_fini(&name);
    tl_buf_fini(&first.text);
    tl_buf_fini(&d.text);
    return st;
}

tl_status tl_verify_failure(tl_verifier *v, bool mine, const char *message)
{
    tl_difference d = {.output = 0};
    tl_status st;

    tl_buf_init(&d.text);
    tl_buf_printf(&d.text, "%s fails: %s", mine ? "the program"
                                                : "only the interpreter",
                  message);
    st = report(v, "", &d);
    tl_buf_fini(&d.text);
    return st;
}

/* Run the program, and compare with what the interpreter has given. */
static tl_status run_program(tl_verifier *v, tl_status theirs_st,
                             const char *their_error, tl_value theirs,
                             tl_value *out, tl_ran *ran)
{
    tl_eval *ev = v->ev;
    tl_value mine = tl_empty();
    bool succeeded = false;
    tl_buf text;
    tl_status st;

    tl_buf_init(&text);
    tl_captured c = tl_verify_capture(ev, &text);

    st = tl_entry_run(ev, v->e, &mine, &succeeded);
    tl_verify_release(ev, c);
    if (st != TL_OK && !tl_status_catchable(st)) {
        goto out;
    }
    if (st != TL_OK && theirs_st != TL_OK) { /* the interpreter says it */
        (void)tl_diag_pop(ev->diag);
        *ran = TL_RAN_NOT;
        st = TL_OK;
        goto out;
    }
    if (st != TL_OK) {
        const tl_diag_item *why = tl_diag_pop(ev->diag);

        st = tl_verify_failure(v, true, why != NULL ? why->message : "");
        goto out;
    }
    st = theirs_st != TL_OK ? tl_verify_failure(v, false, their_error)
                            : tl_verify_compare(v, mine, theirs, &text);
    if (st == TL_OK && text.len > 0) {
        st = tl_eval_write(ev, tl_buf_str(&text), text.len);
    }
    if (st == TL_OK) {
        *out = mine;
        mine = tl_empty();
        *ran = TL_RAN;
    }
out:
    tl_unref(mine);
    tl_buf_fini(&text);
    return st;
}

tl_status tl_verify_call(tl_eval *ev, tl_compiled *f, const tl_ccall *call,
                         tl_entry *e, tl_value *out, tl_ran *ran)
{
    tl_verifier v = {.ev = ev, .call = call, .e = e};
    const char *error = "";
    tl_value theirs = tl_empty();
    tl_status st, ours;

    if (e->taped) {
        return tl_verify_taped(ev, f, call, e, out, ran);
    }
    tl_entry_release(e); /* what the interpreter writes is not shared */
    tl_map_init(&v.index);
    tl_buf_init(&v.text);
    TL_GOTO(st, tl_verify_begin(&v));
    e->running = true; /* it stays, whatever the interpreter compiles */
    st = tl_verify_interpret(&v, &theirs);
    e->running = false;
    tl_verify_put_back(&v);
    if (st != TL_OK && !tl_status_catchable(st)) {
        goto out;
    }
    ours = st;
    if (st != TL_OK) {
        const tl_diag_item *why = tl_diag_pop(ev->diag);

        error = why != NULL ? why->message : "";
    }
    *ran = TL_RAN_NOT;
    st = TL_OK;
    if (tl_entry_matches(ev, e, call) && tl_entry_fits(ev, e)) {
        f->verified++;
        st = run_program(&v, ours, error, theirs, out, ran);
    }
out:
    tl_unref(theirs);
    tl_verify_fini(&v);
    return st;
}
