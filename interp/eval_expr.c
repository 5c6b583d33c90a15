/* eval_expr.c - expressions.
 *
 * One function a group of node kinds; tl_eval_expr dispatches.  Operands are
 * evaluated in the order of ast.def, on which the last-read marks rely. */
#include <string.h>

#include "interp/builtin.h"
#include "interp/call.h"
#include "interp/container.h"
#include "interp/dict.h"
#include "interp/domain.h"
#include "interp/eval_impl.h"
#include "interp/format.h"
#include "interp/graph_flow.h"
#include "interp/renew.h"
#include "interp/trace.h"
#include "runtime/base/mem.h"

static tl_status unset(tl_eval *ev, const tl_ast_name *n)
{
    return tl_fail_at(ev->diag, TL_E0202, n->base.span,
                      "`%s` is used before it is assigned", n->name->text);
}

/* Read a slot; a last read gives the value away. */
static tl_status read_slot(tl_eval *ev, tl_value *slot, bool last,
                           const tl_ast_name *n, tl_value *out)
{
    if (slot->tag == TL_V_EMPTY) {
        return unset(ev, n);
    }
    if (last) {
        *out = *slot;
        *slot = tl_empty();
    } else {
        *out = tl_ref(*slot);
    }
    return TL_OK;
}

tl_module *tl_ref_self(tl_eval *ev, const tl_ref_info *ref)
{
    tl_frame *f = ev->frame;
    tl_value v = ref->self == TL_SELF_SLOT ? f->slots[0]
                                           : f->closure->captures[ref->self];

    return v.tag == TL_V_MODULE ? v.module : NULL;
}

static tl_status eval_field(tl_eval *ev, const tl_ast_name *n, tl_value *out)
{
    tl_module *self = tl_ref_self(ev, &n->ref);

    if (self == NULL) {
        return unset(ev, n);
    }
    return tl_module_get_field(ev, self, n->ref.index, out);
}

static tl_status eval_global(tl_eval *ev, const tl_ast_name *n, tl_value *out)
{
    tl_namespace *ns = ev->frame->ns;

    if (n->ref.index >= ns->nslots) {
        return unset(ev, n);
    }
    if (ev->domain->global != NULL) {
        TL_TRY(ev->domain->global(ev, ns, n->ref.index, out));
        return out->tag != TL_V_EMPTY ? TL_OK : unset(ev, n);
    }
    return read_slot(ev, &ns->slots[n->ref.index], false, n, out);
}

static tl_status eval_name(tl_eval *ev, const tl_ast_name *n, tl_value *out)
{
    tl_frame *f = ev->frame;

    switch ((tl_ref_kind)n->ref.kind) {
    case TL_REF_LOCAL:
        return read_slot(ev, &f->slots[n->ref.index], n->ref.last, n, out);
    case TL_REF_CAPTURE:
        return read_slot(ev, &f->closure->captures[n->ref.index], false, n,
                         out);
    case TL_REF_SELF_FN:
        *out = tl_ref((tl_value){.tag = TL_V_FN, .fn = f->closure});
        return TL_OK;
    case TL_REF_GLOBAL:
        return eval_global(ev, n, out);
    case TL_REF_FIELD:
        return eval_field(ev, n, out);
    case TL_REF_BUILTIN: {
        const tl_builtin *b = tl_builtin_find(ev, n->name);

        TL_CHECK(b != NULL);
        return tl_builtin_value(ev, b, out);
    }
    case TL_REF_NONE:
        break;
    }
    TL_CHECK(!"name not resolved");
    return TL_ERR_INTERNAL;
}

/* ---- displays ---------------------------------------------------------- */

/* Append the items of a starred value to `list`. */
static tl_status push_starred(tl_eval *ev, const tl_ast *e, tl_seq *list,
                              bool *unknown)
{
    tl_value it = tl_empty();
    tl_iter iter = {0};
    bool more;

    TL_TRY(tl_eval_expr(ev, e, &it));
    if (it.tag == TL_V_UNKNOWN) {
        *unknown = true;
        return TL_OK;
    }
    tl_status st = tl_iter_init_take(ev, it, &iter);

    while (st == TL_OK) {
        tl_value v = tl_empty();

        st = tl_iter_next(ev, &iter, &more, &v);
        if (st != TL_OK || !more) {
            break;
        }
        st = tl_list_push_take(list, v, ev->diag);
    }
    tl_iter_fini(&iter);
    if (st != TL_OK) {
        tl_diag_at(ev->diag, e->span);
    }
    return st;
}

static tl_status eval_display(tl_eval *ev, tl_tag tag,
                              const tl_kids *items, tl_value *out)
{
    tl_value list = tl_empty();
    bool unknown = false;
    tl_status st;

    TL_TRY(tl_seq_new_take(&list, tag, NULL, 0, ev->diag));
    for (uint32_t i = 0; i < items->len; i++) {
        const tl_ast *e = items->items[i];
        tl_value v = tl_empty();

        if (e->kind == TL_AST_STAR) {
            TL_GOTO(st, push_starred(ev, TL_AST(star, e)->value, list.seq,
                                     &unknown));
            continue;
        }
        TL_GOTO(st, tl_eval_expr(ev, e, &v));
        TL_GOTO(st, tl_list_push_take(list.seq, v, ev->diag));
    }
    if (unknown) {
        tl_drop(&list);
        list = tl_unknown();
    }
    *out = list;
    return TL_OK;
out:
    tl_unref(list);
    return st;
}

/* `**d` of a dict display: all pairs of d. */
static tl_status merge_dict(tl_eval *ev, const tl_ast *e, tl_dict *into)
{
    tl_value d = tl_empty();
    tl_status st = TL_OK;

    TL_TRY(tl_eval_expr(ev, e, &d));
    if (d.tag != TL_V_DICT) {
        st = d.tag == TL_V_UNKNOWN
                 ? TL_OK
                 : tl_fail_at(ev->diag, TL_E0210, e->span,
                              "`**` needs a dict, got %s",
                              tl_value_type_str(d).s);
        tl_unref(d);
        return st;
    }
    for (size_t i = 0; i < d.dict->len && st == TL_OK; i++) {
        const tl_dict_entry *p = &d.dict->entries[i];

        if (p->key.tag != TL_V_EMPTY) {
            st = tl_dict_set_take(into, tl_ref(p->key), tl_ref(p->value),
                                  ev->diag);
        }
    }
    tl_unref(d);
    return st;
}

static tl_status eval_dict(tl_eval *ev, const tl_ast_dict *n, tl_value *out)
{
    tl_value d = tl_empty(), k = tl_empty(), v = tl_empty();
    tl_status st;

    TL_TRY(tl_dict_new(&d, ev->diag));
    for (uint32_t i = 0; i < n->items.len; i++) {
        const tl_ast *e = n->items.items[i];

        if (e->kind == TL_AST_DOUBLE_STAR) {
            TL_GOTO(st, merge_dict(ev, TL_AST(double_star, e)->value,
                                   d.dict));
            continue;
        }
        TL_GOTO(st, tl_eval_expr(ev, TL_AST(pair, e)->key, &k));
        TL_GOTO(st, tl_eval_expr(ev, TL_AST(pair, e)->value, &v));
        TL_GOTO(st, tl_sym_read_deep(ev, &k));
        if (k.tag == TL_V_UNKNOWN) {
            tl_drop(&v);
            continue;
        }
        st = tl_dict_set_take(d.dict, k, v, ev->diag);
        k = v = tl_empty();
        if (st != TL_OK) {
            tl_diag_at(ev->diag, TL_AST(pair, e)->key->span);
            goto out;
        }
    }
    *out = d;
    return TL_OK;
out:
    tl_unref(k);
    tl_unref(v);
    tl_unref(d);
    return st;
}

/* ---- comprehensions ---------------------------------------------------- */

/* What a comprehension does with each turn: push a value or set a pair. */
typedef struct comp {
    const tl_kids *clauses;
    const tl_ast *key; /* NULL: a list */
    const tl_ast *value;
    tl_value into; /* UNKNOWN once the number of turns is not known */
} comp;

static tl_status comp_run(tl_eval *ev, comp *c, uint32_t clause);

static tl_status comp_emit(tl_eval *ev, comp *c)
{
    tl_value k = tl_empty(), v = tl_empty();

    if (c->key != NULL) {
        TL_TRY(tl_eval_expr(ev, c->key, &k));
    }
    tl_status st = tl_eval_expr(ev, c->value, &v);

    if (st != TL_OK || c->into.tag == TL_V_UNKNOWN) {
        tl_unref(k);
        tl_unref(v);
        return st;
    }
    return c->key != NULL ? tl_dict_set_take(c->into.dict, k, v, ev->diag)
                          : tl_list_push_take(c->into.seq, v, ev->diag);
}

static tl_status comp_for(tl_eval *ev, comp *c, const tl_ast_comp_for *f,
                          uint32_t clause)
{
    tl_value it = tl_empty();
    tl_iter iter = {0};
    bool more = true;

    TL_TRY(tl_eval_expr(ev, f->iter, &it));
    if (it.tag == TL_V_UNKNOWN) { /* one turn with an unknown item */
        tl_drop(&c->into);
        c->into = tl_unknown();
        TL_TRY(tl_eval_assign_take(ev, f->target, tl_unknown()));
        return comp_run(ev, c, clause + 1);
    }
    tl_status st = tl_iter_init_take(ev, it, &iter);

    if (st != TL_OK) {
        tl_diag_at(ev->diag, f->iter->span);
    }
    while (st == TL_OK && more) {
        tl_value v = tl_empty();

        st = tl_iter_next(ev, &iter, &more, &v);
        if (st != TL_OK || !more) {
            break;
        }
        if (v.tag == TL_V_UNKNOWN && tl_iter_is_stream(&iter)) {
            more = false; /* it may end here: one turn stands for all */
            tl_drop(&c->into);
            c->into = tl_unknown();
        }
        st = tl_eval_assign_take(ev, f->target, v);
        if (st == TL_OK) {
            st = tl_eval_tick(ev, f->base.span);
        }
        if (st == TL_OK) {
            st = comp_run(ev, c, clause + 1);
        }
    }
    tl_iter_fini(&iter);
    return st;
}

static tl_status comp_run(tl_eval *ev, comp *c, uint32_t clause)
{
    if (clause == c->clauses->len) {
        return comp_emit(ev, c);
    }
    const tl_ast *e = c->clauses->items[clause];

    if (e->kind == TL_AST_COMP_FOR) {
        return comp_for(ev, c, TL_AST(comp_for, e), clause);
    }
    tl_value v = tl_empty();
    bool known, yes;

    TL_TRY(tl_eval_expr(ev, TL_AST(comp_if, e)->cond, &v));
    tl_status st = tl_eval_truth(ev, v, &known, &yes);

    tl_unref(v);
    if (st != TL_OK) {
        tl_diag_at(ev->diag, e->span);
        return st;
    }
    if (!known) {
        tl_drop(&c->into);
        c->into = tl_unknown();
        yes = true;
    }
    return yes ? comp_run(ev, c, clause + 1) : TL_OK;
}

static tl_status eval_comp(tl_eval *ev, const tl_kids *clauses,
                           const tl_ast *key, const tl_ast *value,
                           tl_value *out)
{
    comp c = {.clauses = clauses, .key = key, .value = value};

    if (key != NULL) {
        TL_TRY(tl_dict_new(&c.into, ev->diag));
    } else {
        TL_TRY(tl_seq_new_take(&c.into, TL_V_LIST, NULL, 0, ev->diag));
    }
    tl_status st = comp_run(ev, &c, 0);

    if (st != TL_OK) {
        tl_unref(c.into);
        return st;
    }
    *out = c.into;
    return TL_OK;
}

/* ---- operators --------------------------------------------------------- */

static tl_status eval_unary(tl_eval *ev, const tl_ast_unary *n, tl_value *out)
{
    tl_value a = tl_empty();

    if (n->op == TL_OP_NEG && n->operand->kind == TL_AST_INT &&
        TL_AST(int, n->operand)->wide) {
        *out = tl_int_value(INT64_MIN);
        return TL_OK;
    }
    TL_TRY(tl_eval_expr(ev, n->operand, &a));
    ev->rt->span = n->base.span;
    tl_status st = tl_eval_unary_take(ev, n->op, a, out);

    if (st != TL_OK) {
        tl_diag_at(ev->diag, n->base.span);
    }
    return st;
}

/* The two operands of a failed operator get a label with their type. */
static void label_operands(tl_eval *ev, const tl_ast *left,
                           const tl_type_note *l, const tl_ast *right,
                           const tl_type_note *r)
{
    tl_diag_label_add(ev->diag, left->span, "%s", tl_type_note_str(l).s);
    tl_diag_label_add(ev->diag, right->span, "%s", tl_type_note_str(r).s);
}

static bool fits(const tl_type_note *n, int i, const tl_type_note *m, int k)
{
    return n->size[i] == m->size[k] || n->size[i] == 1 || m->size[k] == 1;
}

/* The text of an operand that a help may repeat: short, on one line. */
static bool operand_text(tl_eval *ev, const tl_ast *e, char *out, size_t cap)
{
    const tl_source *src = tl_sources_get(ev->lang->sources, e->span.file);
    size_t n = e->span.end - e->span.start;

    if (src == NULL || e->span.end > src->len || n >= cap ||
        memchr(src->text + e->span.start, '\n', n) != NULL ||
        (e->kind != TL_AST_NAME && e->kind != TL_AST_CALL &&
         e->kind != TL_AST_ATTR && e->kind != TL_AST_INDEX)) {
        return false;
    }
    memcpy(out, src->text + e->span.start, n);
    out[n] = '\0';
    return true;
}

/* Would a vector stretch over the last axis of the other, a matrix? */
static bool wants_axis(const tl_type_note *v, const tl_type_note *m)
{
    return v->rank == 1 && m->rank == 2 && v->size[0] >= 0 &&
           v->size[0] == m->size[0];
}

/* What may have been meant where two shapes do not fit. */
static void help_operands(tl_eval *ev, const tl_ast *left,
                          const tl_type_note *l, const tl_ast *right,
                          const tl_type_note *r)
{
    tl_code code = ev->diag->last != NULL ? ev->diag->last->code : TL_E0100;
    char text[48];

    if (code == TL_E0302 && l->rank >= 2 && l->rank <= 6 && r->rank == 2 &&
        fits(l, l->rank - 1, r, 1) &&
        operand_text(ev, right, text, sizeof(text))) {
        tl_diag_help(ev->diag, "transpose: `%s.T`", text);
    } else if (code != TL_E0301 && code != TL_E0310) {
        return;
    } else if (wants_axis(r, l) &&
               operand_text(ev, right, text, sizeof(text))) {
        tl_diag_help(ev->diag, "`%s[:, none]`", text);
    } else if (wants_axis(l, r) &&
               operand_text(ev, left, text, sizeof(text))) {
        tl_diag_help(ev->diag, "`%s[:, none]`", text);
    }
}

/* Place of an operator between two operands, for carets. */
static tl_span between(const tl_ast *left, const tl_ast *right)
{
    return (tl_span){left->span.file, left->span.end, right->span.start};
}

tl_status tl_eval_binary_nodes(tl_eval *ev, tl_oper op, const tl_ast *left,
                               tl_value a, const tl_ast *right, tl_value b,
                               tl_span span, tl_value *out)
{
    tl_type_note na, nb;

    tl_type_note_take(&na, a);
    tl_type_note_take(&nb, b);
    ev->rt->span = span;
    tl_status st = tl_eval_binary_take(ev, op, a, b, out);

    if (st != TL_OK) {
        tl_span at = tl_operator_span(ev, op, between(left, right));

        tl_diag_at(ev->diag, at);
        label_operands(ev, left, &na, right, &nb);
        help_operands(ev, left, &na, right, &nb);
    }
    return st;
}

static tl_status eval_binary(tl_eval *ev, const tl_ast_binary *n,
                             tl_value *out)
{
    tl_value a = tl_empty(), b = tl_empty();

    TL_TRY(tl_eval_expr(ev, n->left, &a));
    tl_status st = tl_eval_expr(ev, n->right, &b);

    if (st != TL_OK) {
        tl_unref(a);
        return st;
    }
    return tl_eval_binary_nodes(ev, n->op, n->left, a, n->right, b,
                                n->base.span, out);
}

static tl_status eval_logic(tl_eval *ev, const tl_ast_logic *n, tl_value *out)
{
    tl_value a = tl_empty(), b = tl_empty();
    bool known, yes;

    TL_TRY(tl_eval_expr(ev, n->left, &a));
    if (tl_is_sym(a)) {
        bool done = false;
        tl_status st = tl_graph_logic(ev, n, a, out, &done);

        if (st != TL_OK || done) {
            tl_unref(a);
            return st;
        }
    }
    if (!tl_is_tensor(a) && a.tag != TL_V_UNKNOWN) {
        tl_status st = tl_eval_truth(ev, a, &known, &yes);

        if (st != TL_OK) {
            tl_unref(a);
            return st;
        }
        if (yes == (n->op == TL_OP_OR)) {
            *out = a;
            return TL_OK;
        }
        tl_unref(a);
        return tl_eval_expr(ev, n->right, out);
    }
    tl_status st = tl_eval_expr(ev, n->right, &b);

    if (st != TL_OK) {
        tl_unref(a);
        return st;
    }
    return tl_eval_binary_nodes(ev, n->op, n->left, a, n->right, b,
                                n->base.span, out);
}

/* A comparison of a chain that is a symbol: may the operands from `next` on be
 * evaluated whether it holds or not? */
static bool joins_rest(const tl_ast_compare *n, uint32_t next, tl_value r)
{
    if (!tl_is_sym(r)) {
        return false;
    }
    for (uint32_t i = next; i < n->operands.len; i++) {
        if (!tl_graph_is_harmless(n->operands.items[i])) {
            return false;
        }
    }
    return true;
}

/* *r becomes true if both are. */
static tl_status both_compared(tl_eval *ev, tl_value so_far, tl_value *r)
{
    tl_value made;

    TL_TRY(tl_graph_both(ev, TL_OP_AND, so_far, *r, &made));
    tl_unref(*r);
    *r = made;
    return TL_OK;
}

/* a < b < c: host values only once it is a chain. */
static tl_status eval_compare(tl_eval *ev, const tl_ast_compare *n,
                              tl_value *out)
{
    tl_value a = tl_empty(), b = tl_empty(), r = tl_empty();
    tl_value so_far = tl_empty(); /* symbol: do those before hold? */
    bool known, yes;
    tl_status st;

    TL_TRY(tl_eval_expr(ev, n->operands.items[0], &a));
    for (uint32_t i = 0; i + 1 < n->operands.len; i++) {
        bool last = i + 2 == n->operands.len;

        TL_GOTO(st, tl_eval_expr(ev, n->operands.items[i + 1], &b));
        if (n->operands.len > 2 && (tl_is_tensor(a) || tl_is_tensor(b))) {
            st = tl_fail_at(ev->diag, TL_E0408, n->base.span,
                            "comparisons of tensors do not chain");
            tl_diag_help(ev->diag, "`(a < x) and (x < b)`");
            goto out;
        }
        tl_value keep = last ? tl_empty() : tl_ref(b);

        st = tl_eval_binary_nodes(ev, n->ops[i], n->operands.items[i], a,
                                  n->operands.items[i + 1], b, n->base.span,
                                  &r);
        a = keep;
        b = tl_empty();
        if (st == TL_OK && so_far.tag != TL_V_EMPTY) {
            st = both_compared(ev, so_far, &r);
        }
        if (st != TL_OK || last) {
            goto out;
        }
        tl_drop(&so_far);
        if (joins_rest(n, i + 2, r)) {
            so_far = r;
            r = tl_empty();
            continue;
        }
        TL_GOTO(st, tl_eval_truth(ev, r, &known, &yes));
        if (!known && tl_is_tracing(ev)) {
            st = tl_trace_refuse(ev, "a chain of comparisons depends on data");
            tl_diag_at(ev->diag, n->base.span);
            goto out;
        }
        if (known && !yes) {
            goto out;
        }
        tl_drop(&r);
    }
    st = TL_OK;
out:
    tl_unref(so_far);
    tl_unref(a);
    tl_unref(b);
    if (st == TL_OK) {
        *out = r;
    } else {
        tl_unref(r);
    }
    return st;
}

/* The value of a choice, dropped on failure. */
static tl_status renewed(tl_eval *ev, tl_value *v)
{
    tl_status st = tl_renew_value(ev, v);

    if (st != TL_OK) {
        tl_drop(v);
    }
    return st;
}

static tl_status eval_cond(tl_eval *ev, const tl_ast_cond *n, tl_value *out)
{
    tl_value c = tl_empty();
    bool known, yes;

    TL_TRY(tl_eval_expr(ev, n->cond, &c));
    if (tl_is_sym(c) && !tl_sym_is_late(ev, c)) {
        bool joined = false;
        tl_status joining = tl_graph_choose_symbol(ev, c, n, out, &joined);

        if (joining != TL_OK || joined) {
            tl_unref(c);
            return joining == TL_OK ? renewed(ev, out) : joining;
        }
    }
    tl_status st = tl_eval_truth(ev, c, &known, &yes);

    if (st == TL_OK && !known) {
        st = ev->domain->choose(ev, c, n->then, n->other, out);
        tl_unref(c);
        return st == TL_OK ? renewed(ev, out) : st;
    }
    tl_unref(c);
    if (st != TL_OK) {
        tl_diag_at(ev->diag, n->cond->span);
        return st;
    }
    st = tl_eval_expr(ev, yes ? n->then : n->other, out);
    return st == TL_OK ? renewed(ev, out) : st;
}

static tl_status eval_pipe(tl_eval *ev, const tl_ast_pipe *n, tl_value *out)
{
    tl_value a = tl_empty(), f = tl_empty();

    TL_TRY(tl_eval_expr(ev, n->left, &a));
    tl_status st = tl_eval_expr(ev, n->right, &f);

    if (st != TL_OK) {
        tl_unref(a);
        return st;
    }
    const tl_ast *expr = n->left;
    tl_args args = {.pos = &a, .npos = 1, .span = n->right->span,
                    .exprs = &expr};

    ev->rt->span = n->right->span;
    st = tl_eval_call(ev, f, &args, out);
    if (st != TL_OK) {
        tl_diag_at(ev->diag, n->right->span);
    }
    tl_unref(a);
    tl_unref(f);
    return st;
}

/* ---- attributes, indices ----------------------------------------------- */

static tl_status eval_attr_node(tl_eval *ev, const tl_ast_attr *n,
                                tl_value *out)
{
    tl_value v = tl_empty();

    TL_TRY(tl_eval_expr(ev, n->object, &v));
    tl_status st = tl_eval_attr(ev, v, n->name, out);

    if (st != TL_OK) {
        tl_diag_at(ev->diag, n->name_at);
    }
    tl_unref(v);
    return st;
}

static tl_status opt_expr(tl_eval *ev, const tl_ast *e, tl_value *out)
{
    if (e == NULL) {
        *out = tl_none();
        return TL_OK;
    }
    return tl_eval_expr(ev, e, out);
}

static tl_status eval_slice(tl_eval *ev, const tl_ast_slice *n, tl_value *out)
{
    tl_value p[3] = {tl_none(), tl_none(), tl_none()};
    tl_status st;

    TL_GOTO(st, opt_expr(ev, n->lo, &p[0]));
    TL_GOTO(st, opt_expr(ev, n->hi, &p[1]));
    TL_GOTO(st, opt_expr(ev, n->step, &p[2]));
    return tl_slice_new_take(out, p[0], p[1], p[2], ev->diag);
out:
    tl_unref_all(p, 3);
    return st;
}

tl_status tl_eval_subscripts(tl_eval *ev, const tl_ast_index *n,
                             tl_value *subs)
{
    for (uint32_t i = 0; i < n->items.len; i++) {
        tl_status st = tl_eval_expr(ev, n->items.items[i], &subs[i]);

        if (st != TL_OK) {
            tl_unref_all(subs, i);
            return st;
        }
    }
    return TL_OK;
}

static tl_status eval_index_node(tl_eval *ev, const tl_ast_index *n,
                                 tl_value *out)
{
    tl_value v = tl_empty(), subs[TL_MAX_SUBSCRIPTS];

    if (n->items.len > TL_MAX_SUBSCRIPTS) {
        return tl_fail_at(ev->diag, TL_E0304, n->base.span,
                          "more than %d indices", TL_MAX_SUBSCRIPTS);
    }
    TL_TRY(tl_eval_expr(ev, n->object, &v));
    tl_status st = tl_eval_subscripts(ev, n, subs);

    if (st != TL_OK) {
        tl_unref(v);
        return st;
    }
    ev->rt->span = n->base.span;
    st = tl_eval_index_take(ev, v, subs, n->items.len, out);
    if (st != TL_OK) {
        tl_diag_at(ev->diag, n->base.span);
    }
    return st;
}

static tl_status eval_as(tl_eval *ev, const tl_ast_as *n, tl_value *out)
{
    tl_value v = tl_empty();

    TL_TRY(tl_eval_expr(ev, n->value, &v));
    tl_status st = tl_check_type(ev, n->type, &v, "the value", n->base.span);

    if (st != TL_OK) {
        tl_unref(v);
        return st;
    }
    *out = v;
    return TL_OK;
}

/* A trace decides nothing by what it does not know: `st` with *out is what
 * one of the kinds gave that can be UNKNOWN though its parts are not. */
static tl_status known_in_trace(tl_eval *ev, const tl_ast *e, tl_status st,
                                tl_value *out)
{
    if (st == TL_OK && out->tag == TL_V_UNKNOWN && tl_is_tracing(ev)) {
        *out = tl_empty();
        st = tl_trace_refuse(ev, "what this gives depends on data");
        tl_diag_at(ev->diag, e->span);
    }
    return st;
}

/* dispatch over the kinds of expressions */
tl_status tl_eval_expr(tl_eval *ev, const tl_ast *e, tl_value *out)
{
    switch ((tl_ast_kind)e->kind) {
    case TL_AST_NAME:
        return eval_name(ev, TL_AST(name, e), out);
    case TL_AST_INT:
        *out = tl_int_value(TL_AST(int, e)->value);
        return TL_OK;
    case TL_AST_FLOAT:
        *out = tl_float_value(TL_AST(float, e)->value);
        return TL_OK;
    case TL_AST_STR:
        return tl_str_new(out, TL_AST(str, e)->text.s,
                          TL_AST(str, e)->text.len, ev->diag);
    case TL_AST_BOOL:
        *out = tl_bool_value(TL_AST(bool, e)->value);
        return TL_OK;
    case TL_AST_NONE:
        *out = tl_none();
        return TL_OK;
    case TL_AST_ELLIPSIS:
        *out = (tl_value){.tag = TL_V_ELLIPSIS};
        return TL_OK;
    case TL_AST_BINARY:
        return eval_binary(ev, TL_AST(binary, e), out);
    case TL_AST_CALL:
        return known_in_trace(
            ev, e, tl_eval_call_node(ev, TL_AST(call, e), out), out);
    case TL_AST_ATTR:
        return eval_attr_node(ev, TL_AST(attr, e), out);
    case TL_AST_INDEX:
        return known_in_trace(
            ev, e, eval_index_node(ev, TL_AST(index, e), out), out);
    case TL_AST_SLICE:
        return eval_slice(ev, TL_AST(slice, e), out);
    case TL_AST_UNARY:
        return eval_unary(ev, TL_AST(unary, e), out);
    case TL_AST_LOGIC:
        return known_in_trace(
            ev, e, eval_logic(ev, TL_AST(logic, e), out), out);
    case TL_AST_COMPARE:
        return known_in_trace(
            ev, e, eval_compare(ev, TL_AST(compare, e), out), out);
    case TL_AST_COND:
        return known_in_trace(
            ev, e, eval_cond(ev, TL_AST(cond, e), out), out);
    case TL_AST_PIPE:
        return eval_pipe(ev, TL_AST(pipe, e), out);
    case TL_AST_FSTRING:
        return tl_eval_fstring(ev, TL_AST(fstring, e), out);
    case TL_AST_TUPLE:
        return eval_display(ev, TL_V_TUPLE, &TL_AST(tuple, e)->items, out);
    case TL_AST_LIST:
        return eval_display(ev, TL_V_LIST, &TL_AST(list, e)->items, out);
    case TL_AST_DICT:
        return eval_dict(ev, TL_AST(dict, e), out);
    case TL_AST_LIST_COMP:
        return known_in_trace(
            ev, e,
            eval_comp(ev, &TL_AST(list_comp, e)->clauses, NULL,
                      TL_AST(list_comp, e)->value, out),
            out);
    case TL_AST_DICT_COMP:
        return eval_comp(ev, &TL_AST(dict_comp, e)->clauses,
                         TL_AST(dict_comp, e)->key,
                         TL_AST(dict_comp, e)->value, out);
    case TL_AST_AS:
        return eval_as(ev, TL_AST(as, e), out);
    case TL_AST_LAMBDA:
        return tl_make_fn(ev, TL_AST(lambda, e)->func, out);
    default:
        return tl_fail_at(ev->diag, TL_E0210, e->span,
                          "this form has no value here");
    }
}
