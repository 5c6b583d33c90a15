/* graph_state.c - states of the graph domain: taking them, and joins. */
#include "interp/autocast.h"
#include "interp/graph_state.h"

#include <string.h>

#include "interp/dict.h"
#include "runtime/base/mem.h"
#include "runtime/base/vec.h"

enum { MAX_SETTLED = 8 }; /* depth of containers in which ints are looked for */

/* ---- taking and putting back -------------------------------------------- */

tl_status tl_gstate_take(tl_eval *ev, tl_gstate *out)
{
    tl_trace *tr = tl_trace_of(ev);
    size_t n = ev->frame->fn != NULL ? ev->frame->fn->nslots : 0;

    *out = (tl_gstate){.draws = ev->rt->draws, .base = tr->b.draws,
                       .first_draw = tr->b.first_draw};
    out->slots = tl_calloc(n + 1, sizeof(*out->slots));
    out->cells = tl_calloc(tr->cells.len + 1, sizeof(*out->cells));
    out->written = tl_calloc(tr->cells.len + 1, sizeof(*out->written));
    if (!out->slots || !out->cells || !out->written) {
        tl_gstate_fini(out);
        return tl_fail_memory(ev->diag, "a branch", n * sizeof(tl_value));
    }
    for (; out->nslots < n; out->nslots++) {
        out->slots[out->nslots] = tl_ref(ev->frame->slots[out->nslots]);
    }
    for (; out->ncells < tr->cells.len; out->ncells++) {
        const tl_tcell *c = &tr->cells.items[out->ncells];

        out->cells[out->ncells] = tl_ref(c->value);
        out->written[out->ncells] = c->written;
    }
    return TL_OK;
}

void tl_gstate_fini(tl_gstate *s)
{
    if (s->slots != NULL) {
        tl_unref_all(s->slots, s->nslots);
    }
    if (s->cells != NULL) {
        tl_unref_all(s->cells, s->ncells);
    }
    tl_free(s->slots);
    tl_free(s->cells);
    tl_free(s->written);
    memset(s, 0, sizeof(*s));
}

static void set(tl_value *to, tl_value v)
{
    tl_value old = *to;

    *to = tl_ref(v);
    tl_unref(old);
}

void tl_gstate_restore(tl_eval *ev, const tl_gstate *s)
{
    tl_trace *tr = tl_trace_of(ev);

    for (size_t i = 0; i < s->nslots; i++) {
        set(&ev->frame->slots[i], s->slots[i]);
    }
    for (size_t i = 0; i < tr->cells.len; i++) {
        tl_tcell *c = &tr->cells.items[i];

        set(&c->value, i < s->ncells ? s->cells[i] : c->before);
        c->written = i < s->ncells && s->written[i];
    }
    ev->rt->draws = s->draws;
    tr->b.draws = s->base;
    tr->b.first_draw = s->first_draw;
}

/* ---- leaving a region --------------------------------------------------- */

bool tl_gvalue_same(tl_value a, tl_value b)
{
    if (a.tag != b.tag) {
        return false;
    }
    switch (a.tag) {
    case TL_V_NONE:
    case TL_V_EMPTY:
    case TL_V_ELLIPSIS:
        return true;
    case TL_V_UNKNOWN:
        return a.i == b.i; /* see graph_grow.h */
    case TL_V_BOOL:
        return a.b == b.b;
    case TL_V_NODE:
        return a.node->id == b.node->id;
    case TL_V_SYM:
        return a.sym == b.sym ||
               (a.sym->hint.tag == b.sym->hint.tag &&
                (a.sym->hint.tag == TL_V_INT
                     ? tl_dim_same(a.sym->dim, b.sym->dim)
                     : a.sym->id == b.sym->id));
    case TL_V_STR:
        return a.str == b.str || (a.str->len == b.str->len &&
                                  memcmp(a.str->data, b.str->data,
                                         a.str->len) == 0);
    default:
        return a.i == b.i; /* the same bits or object */
    }
}

/* An int that is a symbol gets a value of the region that is open. */
static tl_status settle_int(tl_eval *ev, tl_value *v)
{
    tl_value s = *v, made;
    uint32_t host;

    if (s.tag != TL_V_SYM || s.sym->hint.tag != TL_V_INT) {
        return TL_OK;
    }
    TL_TRY(tl_sym_host(ev, s, false, &host));
    TL_TRY(tl_sym_with_host(ev, s, host, &made));
    *v = made;
    tl_unref(s);
    return TL_OK;
}

/* Is there an int that is a symbol? */
static bool has_int(tl_value v, int depth)
{
    if (v.tag == TL_V_SYM) {
        return v.sym->hint.tag == TL_V_INT;
    }
    if (depth == 0 || (v.tag != TL_V_LIST && v.tag != TL_V_TUPLE)) {
        return false;
    }
    for (size_t i = 0; i < v.seq->len; i++) {
        if (has_int(v.seq->items[i], depth - 1)) {
            return true;
        }
    }
    return false;
}

tl_status tl_gstate_settle_value(tl_eval *ev, tl_value *v)
{
    tl_value made;

    if (!has_int(*v, MAX_SETTLED)) {
        return TL_OK;
    }
    if (v->tag == TL_V_SYM) {
        return settle_int(ev, v);
    }
    TL_TRY(tl_seq_alloc(&made, v->tag, v->seq->len, ev->diag));
    for (size_t i = 0; i < v->seq->len; i++) {
        made.seq->items[i] = tl_ref(v->seq->items[i]);
        tl_status st = tl_gstate_settle_value(ev, &made.seq->items[i]);

        if (st != TL_OK) {
            tl_unref(made);
            return st;
        }
    }
    tl_unref(*v);
    *v = made;
    return TL_OK;
}

tl_value tl_gstate_cell(tl_eval *ev, const tl_gstate *s, size_t i)
{
    return i < s->ncells ? s->cells[i]
                         : tl_trace_of(ev)->cells.items[i].before;
}

tl_status tl_gstate_placeholder(tl_eval *ev, tl_value v, tl_value *out)
{
    tl_ttype type;
    tl_status st = TL_OK;

    if (tl_is_tensor(v)) {
        TL_TRY(tl_eval_type(ev, v, &type));
        return tl_zeros(ev, &type, out);
    }
    if (v.tag == TL_V_SYM) {
        *out = v.sym->hint;
        return TL_OK;
    }
    if (v.tag == TL_V_TREE) {
        return tl_tree_zeros(ev, v, out);
    }
    if (v.tag != TL_V_LIST && v.tag != TL_V_TUPLE) {
        *out = tl_ref(v);
        return TL_OK;
    }
    TL_TRY(tl_check_stack(ev, ev->rt->span));
    TL_TRY(tl_seq_alloc(out, v.tag, v.seq->len, ev->diag));
    for (size_t i = 0; i < v.seq->len && st == TL_OK; i++) {
        st = tl_gstate_placeholder(ev, v.seq->items[i], &out->seq->items[i]);
    }
    if (st != TL_OK) {
        tl_drop(out);
    }
    return st;
}

static tl_status fake_value(tl_eval *ev, tl_value v, tl_value before,
                            tl_value *out)
{
    if (tl_gvalue_same(v, before)) {
        *out = tl_ref(before);
        return TL_OK;
    }
    return tl_gstate_placeholder(ev, v, out);
}

tl_status tl_gstate_copy(tl_eval *ev, const tl_gstate *s,
                         const tl_gstate *slots, tl_gstate *out)
{
    *out = (tl_gstate){.draws = s->draws, .base = s->base,
                       .first_draw = s->first_draw};
    out->slots = tl_calloc(slots->nslots + 1, sizeof(*out->slots));
    out->cells = tl_calloc(s->ncells + 1, sizeof(*out->cells));
    out->written = tl_calloc(s->ncells + 1, sizeof(*out->written));
    if (!out->slots || !out->cells || !out->written) {
        tl_gstate_fini(out);
        return tl_fail_memory(ev->diag, "a branch",
                              s->ncells * sizeof(tl_value));
    }
    for (; out->nslots < slots->nslots; out->nslots++) {
        out->slots[out->nslots] = tl_ref(slots->slots[out->nslots]);
    }
    for (; out->ncells < s->ncells; out->ncells++) {
        out->cells[out->ncells] = tl_ref(s->cells[out->ncells]);
        out->written[out->ncells] = s->written[out->ncells];
    }
    return TL_OK;
}

tl_status tl_gstate_fake(tl_eval *ev, const tl_gstate *s,
                         const tl_gstate *before, bool slots, tl_gstate *out)
{
    size_t cells = tl_trace_of(ev)->cells.len;
    tl_status st = TL_OK;

    *out = (tl_gstate){.draws = before->draws, .base = before->base,
                       .first_draw = before->first_draw};
    out->slots = tl_calloc(s->nslots + 1, sizeof(*out->slots));
    out->cells = tl_calloc(cells + 1, sizeof(*out->cells));
    out->written = tl_calloc(cells + 1, sizeof(*out->written));
    if (!out->slots || !out->cells || !out->written) {
        st = tl_fail_memory(ev->diag, "a branch",
                            s->nslots * sizeof(tl_value));
    }
    for (size_t i = 0; i < s->nslots && st == TL_OK; i++) {
        if (slots) {
            st = fake_value(ev, s->slots[i], before->slots[i],
                            &out->slots[i]);
        } else {
            out->slots[i] = tl_ref(s->slots[i]);
        }
        out->nslots++;
    }
    for (size_t i = 0; i < cells && st == TL_OK; i++) {
        st = fake_value(ev, tl_gstate_cell(ev, s, i),
                        tl_gstate_cell(ev, before, i), &out->cells[i]);
        out->ncells++;
    }
    if (st != TL_OK) {
        tl_gstate_fini(out);
    }
    return st;
}

tl_status tl_gstate_settle(tl_eval *ev, const tl_gstate *before)
{
    tl_trace *tr = tl_trace_of(ev);

    for (size_t i = 0; i < before->nslots; i++) {
        if (!tl_gvalue_same(ev->frame->slots[i], before->slots[i])) {
            TL_TRY(tl_gstate_settle_value(ev, &ev->frame->slots[i]));
        }
    }
    for (size_t i = 0; i < tr->cells.len; i++) {
        TL_TRY(tl_gstate_settle_value(ev, &tr->cells.items[i].value));
    }
    return ev->rt->draws == before->draws ? TL_OK : tl_trace_counter(ev);
}

/* ---- joins -------------------------------------------------------------- */

void tl_gpairs_fini(tl_gpairs *p)
{
    tl_free(p->a.items);
    tl_free(p->b.items);
    memset(p, 0, sizeof(*p));
}

const char *tl_slot_name(const tl_eval *ev, size_t i)
{
    const tl_funcdef *fn = ev->frame->fn;

    return fn->slot_names[i] != NULL ? fn->slot_names[i]->text : "a value";
}

static tl_status add_pair(tl_eval *ev, tl_gpairs *p, tl_gval a, tl_gval b)
{
    TL_TRY(TL_VEC_PUSH(&p->a, a, ev->diag));
    return TL_VEC_PUSH(&p->b, b, ev->diag);
}

static tl_status differ(tl_eval *ev, tl_value a, tl_value b, const char *what)
{
    if (strcmp(tl_value_type_str(a).s, tl_value_type_str(b).s) == 0) {
        return tl_trace_refuse(ev, "`%s` is not the same %s on both ways",
                               what, tl_value_type_str(a).s);
    }
    return tl_trace_refuse(ev, "`%s` is %s on one way and %s on the other",
                           what, tl_value_type_str(a).s,
                           tl_value_type_str(b).s);
}

/* The interpreter rounds as the way taken stores: no program can do both. */
static tl_status stored_differ(tl_eval *ev, tl_value a, tl_value b,
                               const char *what)
{
    tl_status st = tl_trace_refuse(
        ev, "`%s` is stored as %s on one way and as %s on the other", what,
        tl_dtype_name(tl_stored_dtype(ev, a)),
        tl_dtype_name(tl_stored_dtype(ev, b)));

    tl_diag_help(ev->diag, "`f32(x)` on both ways; or `with autocast(none):` "
                           "around it");
    return st;
}

static tl_status pair_tensors(tl_eval *ev, tl_gpairs *p, tl_value a,
                              tl_value b, const char *what)
{
    tl_ttype x, y;
    tl_gval va, vb;
    bool same;

    TL_TRY(tl_eval_type(ev, a, &x));
    TL_TRY(tl_eval_type(ev, b, &y));
    same = x.dtype == y.dtype && x.shape.rank == y.shape.rank;
    for (int i = 0; same && i < x.shape.rank; i++) {
        tl_infer *cx = tl_eval_infer(ev);

        same = tl_infer_yes(cx, tl_infer_equal(cx, x.shape.dim[i],
                                               y.shape.dim[i]));
    }
    if (!same) {
        return differ(ev, a, b, what);
    }
    if (tl_stored_dtype(ev, a) != tl_stored_dtype(ev, b)) {
        return stored_differ(ev, a, b, what);
    }
    TL_TRY(tl_trace_value(ev, a, &va));
    TL_TRY(tl_trace_value(ev, b, &vb));
    return add_pair(ev, p, va, vb);
}

static bool is_seq(tl_value v)
{
    return v.tag == TL_V_LIST || v.tag == TL_V_TUPLE;
}

static bool same_trees(tl_value a, tl_value b)
{
    return tl_tree_shape_same(a.tree->shape, b.tree->shape) &&
           tl_gvalue_same(a.tree->finite, b.tree->finite) &&
           tl_gvalue_same(a.tree->scaler, b.tree->scaler);
}

tl_status tl_gjoin_collect(tl_eval *ev, tl_gpairs *p, tl_value a, tl_value b,
                           const char *what)
{
    tl_gval x, y;

    if (tl_gvalue_same(a, b)) {
        return TL_OK;
    }
    TL_TRY(tl_check_stack(ev, ev->rt->span));
    if (tl_is_tensor(a) && tl_is_tensor(b)) {
        return pair_tensors(ev, p, a, b, what);
    }
    if (tl_is_any_number(a) && tl_is_any_number(b) &&
        tl_number_tag(a) == tl_number_tag(b)) {
        TL_TRY(tl_sym_host(ev, a, false, &x));
        TL_TRY(tl_sym_host(ev, b, false, &y));
        return add_pair(ev, p, x, y);
    }
    if (is_seq(a) && a.tag == b.tag && a.seq->len == b.seq->len) {
        for (size_t i = 0; i < a.seq->len; i++) {
            TL_TRY(tl_gjoin_collect(ev, p, a.seq->items[i], b.seq->items[i],
                                    what));
        }
        return TL_OK;
    }
    if (a.tag == TL_V_TREE && b.tag == TL_V_TREE && same_trees(a, b)) {
        for (size_t i = 0; i < a.tree->shape->len; i++) {
            TL_TRY(tl_gjoin_collect(ev, p, a.tree->items[i],
                                    b.tree->items[i], what));
        }
        return TL_OK;
    }
    return differ(ev, a, b, what);
}

static tl_status build_seq(tl_eval *ev, tl_value a, tl_value b,
                           const tl_gval *results, size_t *at, tl_value *out)
{
    tl_value made;

    TL_TRY(tl_seq_alloc(&made, a.tag, a.seq->len, ev->diag));
    for (size_t i = 0; i < a.seq->len; i++) {
        tl_status st = tl_gjoin_build(ev, a.seq->items[i], b.seq->items[i],
                                      results, at, &made.seq->items[i]);

        if (st != TL_OK) {
            tl_unref(made);
            return st;
        }
    }
    *out = made;
    return TL_OK;
}

static tl_status build_tree(tl_eval *ev, tl_value a, tl_value b,
                            const tl_gval *results, size_t *at, tl_value *out)
{
    size_t n = a.tree->shape->len;
    tl_value *items = tl_calloc(n + 1, sizeof(*items));
    tl_status st = TL_OK;

    if (items == NULL) {
        return tl_fail_memory(ev->diag, "a tree", n * sizeof(*items));
    }
    for (size_t i = 0; i < n && st == TL_OK; i++) {
        st = tl_gjoin_build(ev, a.tree->items[i], b.tree->items[i], results,
                            at, &items[i]);
    }
    if (st == TL_OK) {
        st = tl_tree_new_take(out, a.tree->shape, items, ev->diag);
    } else {
        tl_unref_all(items, n);
    }
    tl_free(items);
    if (st == TL_OK) {
        out->tree->finite = tl_ref(a.tree->finite);
        out->tree->scaler = tl_ref(a.tree->scaler);
    }
    return st;
}

tl_status tl_gjoin_build(tl_eval *ev, tl_value a, tl_value b,
                         const tl_gval *results, size_t *at, tl_value *out)
{
    if (tl_gvalue_same(a, b)) {
        if (a.tag == TL_V_SYM && a.sym->hint.tag == TL_V_INT) {
            return tl_dim_value_of(ev, a.sym->dim, out); /* not the arm's */
        }
        *out = tl_ref(a);
        return TL_OK;
    }
    if (tl_is_tensor(a)) {
        return tl_trace_node(ev, results[(*at)++], out);
    }
    if (tl_is_any_number(a)) {
        tl_value hint = a.tag == TL_V_SYM ? a.sym->hint : a;

        return tl_sym_new(ev, results[(*at)++], hint, out);
    }
    return a.tag == TL_V_TREE ? build_tree(ev, a, b, results, at, out)
                              : build_seq(ev, a, b, results, at, out);
}
