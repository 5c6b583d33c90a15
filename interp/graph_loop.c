/* graph_loop.c - loops of the graph domain.
 *
 * A loop that the run counts becomes a region.  What a turn changes is carried
 * from turn to turn; what that is shows when a turn is walked, so the body is
 * walked until it changes nothing but what is carried.  A body that was walked
 * in vain belongs to a loop of no turns, which the passes drop.
 *
 * A short loop of known length is walked turn by turn. */
#include <string.h>

#include "interp/autocast.h"
#include "interp/graph_flow.h"
#include "interp/graph_grow.h"
#include "interp/renew.h"
#include "runtime/base/mem.h"
#include "runtime/base/vec.h"

enum {
    REGION_TURNS = 64, /* ranges from this length on become regions */
    MAX_WALKS = 6      /* of a body until what is carried is known */
};

static tl_gbuild *builder(tl_eval *ev)
{
    return &tl_trace_of(ev)->b;
}

/* ---- the values of the graph in a value --------------------------------- */

typedef TL_GARRAY(tl_gval) vals;

static tl_status flatten(tl_eval *ev, tl_value v, vals *out)
{
    tl_gval x;

    TL_TRY(tl_check_stack(ev, ev->rt->span));
    if (tl_is_tensor(v)) {
        TL_TRY(tl_trace_value(ev, v, &x));
        return TL_VEC_PUSH(out, x, ev->diag);
    }
    if (tl_is_any_number(v)) {
        TL_TRY(tl_sym_host(ev, v, false, &x));
        return TL_VEC_PUSH(out, x, ev->diag);
    }
    if (v.tag == TL_V_LIST || v.tag == TL_V_TUPLE) {
        for (size_t i = 0; i < v.seq->len; i++) {
            TL_TRY(flatten(ev, v.seq->items[i], out));
        }
    } else if (v.tag == TL_V_TREE) {
        for (size_t i = 0; i < v.tree->shape->len; i++) {
            TL_TRY(flatten(ev, v.tree->items[i], out));
        }
    }
    return TL_OK;
}

/* `v` with x[*at ...] in place of what flatten finds. */
static tl_status rebuild(tl_eval *ev, tl_value v, const tl_gval *x,
                         size_t *at, tl_value *out)
{
    tl_status st = TL_OK;

    if (tl_is_tensor(v)) {
        return tl_trace_node(ev, x[(*at)++], out);
    }
    if (tl_is_any_number(v)) {
        return tl_sym_new(ev, x[(*at)++],
                          v.tag == TL_V_SYM ? v.sym->hint : v, out);
    }
    if (v.tag == TL_V_LIST || v.tag == TL_V_TUPLE) {
        TL_TRY(tl_seq_alloc(out, v.tag, v.seq->len, ev->diag));
        for (size_t i = 0; i < v.seq->len && st == TL_OK; i++) {
            st = rebuild(ev, v.seq->items[i], x, at, &out->seq->items[i]);
        }
    } else if (v.tag == TL_V_TREE) {
        TL_TRY(tl_tree_zeros(ev, v, out)); /* of the same structure */
        for (size_t i = 0; i < v.tree->shape->len && st == TL_OK; i++) {
            tl_drop(&out->tree->items[i]);
            st = rebuild(ev, v.tree->items[i], x, at, &out->tree->items[i]);
        }
    } else {
        *out = tl_ref(v);
    }
    if (st != TL_OK) {
        tl_drop(out);
    }
    return st;
}

/* Do two values flatten to the same types, in the same structure? */
static bool same_kind(tl_eval *ev, tl_value a, tl_value b)
{
    tl_ttype x, y;

    if (tl_is_tensor(a) && tl_is_tensor(b)) {
        bool same = tl_eval_type(ev, a, &x) == TL_OK &&
                    tl_eval_type(ev, b, &y) == TL_OK &&
                    x.dtype == y.dtype && x.shape.rank == y.shape.rank &&
                    tl_stored_dtype(ev, a) == tl_stored_dtype(ev, b);

        for (int i = 0; same && i < x.shape.rank; i++) {
            tl_infer *cx = tl_eval_infer(ev);

            same = tl_infer_yes(cx, tl_infer_equal(cx, x.shape.dim[i],
                                                   y.shape.dim[i]));
        }
        return same;
    }
    if (tl_is_any_number(a) && tl_is_any_number(b)) {
        return tl_number_tag(a) == tl_number_tag(b);
    }
    if (a.tag != b.tag) {
        return false;
    }
    if (a.tag == TL_V_LIST || a.tag == TL_V_TUPLE) {
        if (a.seq->len != b.seq->len) {
            return false;
        }
        for (size_t i = 0; i < a.seq->len; i++) {
            if (!same_kind(ev, a.seq->items[i], b.seq->items[i])) {
                return false;
            }
        }
        return true;
    }
    if (a.tag == TL_V_TREE) {
        return tl_tree_shape_same(a.tree->shape, b.tree->shape);
    }
    return tl_gvalue_same(a, b);
}

/* ---- what is carried ---------------------------------------------------- */

typedef struct loop {
    tl_eval *ev;
    const tl_ast *node;
    tl_value range; /* of a `for`: RANGE, or a symbol of one */
    tl_gstate before;
    bool *slot, *cell; /* which are carried */
    bool *grown; /* slots: lists that the turn makes longer (graph_grow.h) */
    size_t ngrown;
    size_t ncells;     /* room in `cell` */
    bool draws;
    bool breaks; /* a turn may end the loop: whether it goes on is carried */
    bool returns; /* a turn may return: whether it has, and what, is carried */
    tl_value returned; /* something of the type of what */
    bool endless; /* the condition of a `while` holds for certain */
    /* Of the walk that runs: */
    uint32_t around, test, body;
    bool has_test, has_body;
    vals init, params, results, stacked;
    bool may_break, may_return; /* the turn */
    bool breaks_out; /* ... by a break */
    tl_gval goes_on; /* what the turn makes of the carried flags */
    tl_gval has_returned;
    tl_value value;       /* returned by the turn */
    tl_gstate start, end; /* of a turn */
} loop;

static tl_status init_loop(loop *l)
{
    TL_TRY(tl_trace_counter(l->ev));
    TL_TRY(tl_gstate_take(l->ev, &l->before));
    l->ncells = l->before.ncells + 4096; /* cells met in the body */
    l->slot = tl_calloc(l->before.nslots + 1, sizeof(*l->slot));
    l->cell = tl_calloc(l->ncells, sizeof(*l->cell));
    l->grown = tl_calloc(l->before.nslots + 1, sizeof(*l->grown));
    if (l->slot == NULL || l->cell == NULL || l->grown == NULL) {
        return tl_fail_memory(l->ev->diag, "a loop", l->ncells);
    }
    return TL_OK;
}

static void walk_fini(loop *l)
{
    tl_gstate_fini(&l->start);
    tl_gstate_fini(&l->end);
    tl_drop(&l->value);
    l->init.len = l->params.len = l->results.len = l->stacked.len = 0;
    l->has_test = l->has_body = false;
}

static void loop_fini(loop *l)
{
    walk_fini(l);
    tl_gstate_fini(&l->before);
    tl_unref(l->returned);
    tl_free(l->slot);
    tl_free(l->cell);
    tl_free(l->grown);
    tl_free(l->init.items);
    tl_free(l->params.items);
    tl_free(l->results.items);
    tl_free(l->stacked.items);
}

/* fn for each carried value of a state, in a fixed order. */
typedef tl_status each_fn(loop *l, tl_value v, void *arg);

static tl_status each_carried(loop *l, const tl_gstate *s, each_fn *fn,
                              void *arg)
{
    size_t cells = tl_trace_of(l->ev)->cells.len;

    for (size_t i = 0; i < s->nslots; i++) {
        if (l->slot[i]) {
            TL_TRY(fn(l, s->slots[i], arg));
        }
    }
    for (size_t i = 0; i < cells && i < l->ncells; i++) {
        if (l->cell[i]) {
            TL_TRY(fn(l, tl_gstate_cell(l->ev, s, i), arg));
        }
    }
    return TL_OK;
}

static tl_status add_flat(loop *l, tl_value v, void *arg)
{
    return flatten(l->ev, v, arg);
}

static tl_status collect(loop *l, const tl_gstate *s, vals *out)
{
    TL_TRY(each_carried(l, s, add_flat, out));
    return l->draws ? TL_VEC_PUSH(out, s->base, l->ev->diag) : TL_OK;
}

/* The flags of a loop that may end early, and what it returns: their values
 * before it, where nothing has ended it. */
static tl_status first_flags(loop *l, vals *out)
{
    tl_eval *ev = l->ev;
    tl_value place;
    tl_gval v;
    tl_status st;

    if (l->returns) {
        TL_TRY(tl_gstate_placeholder(ev, l->returned, &place));
        st = flatten(ev, place, out);
        tl_unref(place);
        TL_TRY(st);
        TL_TRY(tl_ways_known(ev, false, &v));
        TL_TRY(TL_VEC_PUSH(out, v, ev->diag));
    }
    if (l->breaks) {
        TL_TRY(tl_ways_known(ev, true, &v));
        TL_TRY(TL_VEC_PUSH(out, v, ev->diag));
    }
    return TL_OK;
}

/* What a turn makes of them. */
static tl_status next_flags(loop *l, vals *out)
{
    tl_eval *ev = l->ev;

    if (l->returns) {
        TL_TRY(flatten(ev, l->value, out));
        TL_TRY(TL_VEC_PUSH(out, l->has_returned, ev->diag));
    }
    return l->breaks ? TL_VEC_PUSH(out, l->goes_on, ev->diag) : TL_OK;
}

/* The running state: carried values become x[0 ...], in their order. */
static tl_status place(loop *l, const tl_gval *x)
{
    tl_eval *ev = l->ev;
    tl_trace *tr = tl_trace_of(ev);
    size_t at = 0;
    tl_value v;

    for (size_t i = 0; i < l->before.nslots; i++) {
        if (l->slot[i]) {
            TL_TRY(rebuild(ev, l->before.slots[i], x, &at, &v));
            tl_unref(ev->frame->slots[i]);
            ev->frame->slots[i] = v;
        }
    }
    for (size_t i = 0; i < tr->cells.len && i < l->ncells; i++) {
        if (l->cell[i]) {
            TL_TRY(rebuild(ev, tl_gstate_cell(ev, &l->before, i), x, &at,
                           &v));
            tl_unref(tr->cells.items[i].value);
            tr->cells.items[i].value = v;
            tr->cells.items[i].written = true;
        }
    }
    if (l->draws) {
        tr->b.draws = x[at++];
        tr->b.first_draw = ev->rt->draws;
    }
    if (l->returns) { /* what an earlier turn has returned: none has */
        tl_drop(&l->value);
        TL_TRY(rebuild(ev, l->returned, x, &at, &l->value));
        l->has_returned = x[at];
    }
    return TL_OK;
}

/* ---- one walk of the body ----------------------------------------------- */

/* A region with parameters like the initial values, after an index. */
static tl_status open_region(loop *l, bool index, uint32_t *region,
                             tl_gval *first)
{
    tl_gbuild *b = builder(l->ev);
    uint32_t n = (uint32_t)l->init.len + index;
    const tl_ttype **types = tl_calloc(n + 1, sizeof(*types));
    tl_gclass *cls = tl_calloc(n + 1, sizeof(*cls));
    tl_status st;

    if (types == NULL || cls == NULL) {
        st = tl_fail_memory(l->ev->diag, "a loop", n * sizeof(*types));
    } else {
        cls[0] = TL_GC_INT;
        for (uint32_t i = index; i < n; i++) {
            tl_gval v = l->init.items[i - index];

            types[i] = tl_gbuild_type(b, v);
            cls[i] = (tl_gclass)b->g->values.items[v].cls;
        }
        st = tl_gbuild_region_open(b, types, cls, n, region, first);
    }
    tl_free(types);
    tl_free(cls);
    return st;
}

static tl_status place_params(loop *l, tl_gval first)
{
    tl_status st = TL_OK;

    tl_bvalue *values = builder(l->ev)->values.items;

    l->params.len = 0;
    for (size_t i = 0; i < l->init.len && st == TL_OK; i++) {
        tl_gval v = first + (tl_gval)i;

        values[v].lowered = values[l->init.items[i]].lowered;
        values[v].weight = values[l->init.items[i]].weight;
        st = TL_VEC_PUSH(&l->params, v, l->ev->diag);
    }
    return st == TL_OK ? place(l, l->params.items) : st;
}

/* The condition of a `while` as a host bool. */
static tl_status while_test(loop *l, tl_gval *cond)
{
    tl_eval *ev = l->ev;
    const tl_ast_while *n = TL_AST(while, l->node);
    tl_value c = tl_empty();
    tl_gscalar yes = {.i = 0};
    bool known, is;
    tl_status st;

    TL_GOTO(st, tl_eval_expr(ev, n->cond, &c));
    if (c.tag == TL_V_NODE || tl_is_sym(c)) {
        st = tl_flow_condition(ev, c, cond);
    } else {
        TL_GOTO(st, tl_eval_truth(ev, c, &known, &is));
        yes.b = is;
        l->endless = known && is;
        st = tl_gbuild_num(builder(ev), TL_GC_BOOL, yes, cond);
    }
out:
    tl_unref(c);
    if (st != TL_OK) {
        tl_diag_at(ev->diag, n->cond->span);
    }
    return st;
}

/* Is there another turn, in a region of its own. */
static tl_status walk_test(loop *l)
{
    tl_eval *ev = l->ev;
    tl_gval first, cond = 0, in[2];
    tl_status st;

    TL_TRY(open_region(l, false, &l->test, &first));
    l->has_test = true;
    TL_GOTO(st, place_params(l, first));
    in[0] = l->breaks ? l->params.items[l->params.len - 1] : 0;
    cond = in[0];
    if (l->node->kind == TL_AST_WHILE) {
        TL_GOTO(st, while_test(l, &cond));
        if (l->breaks) {
            in[1] = cond;
            st = tl_gbuild_host(builder(ev), TL_H_and, TL_GC_BOOL, in, 2,
                                &cond);
        }
    }
out:;
    tl_status closed = tl_gbuild_region_close(builder(ev), l->test,
                                              l->around);

    tl_gstate_restore(ev, &l->before);
    st = st != TL_OK ? st : closed;
    return st != TL_OK ? st
                       : tl_gbuild_region_results(builder(ev), l->test, &cond,
                                                  1);
}

/* Item of the turn whose number is the parameter `k`. */
static tl_status item_of(loop *l, tl_gval k, tl_value *out)
{
    tl_eval *ev = l->ev;
    tl_gbuild *b = builder(ev);
    const tl_range *r = tl_is_sym(l->range) ? l->range.sym->hint.range
                                            : l->range.range;
    tl_dim start = tl_is_sym(l->range) ? l->range.sym->dim
                                       : tl_dim_num(r->start);
    tl_dim stop = tl_is_sym(l->range) ? l->range.sym->stop
                                      : tl_dim_num(r->stop);
    tl_value number;
    tl_dim d, last;

    TL_TRY(tl_sym_new(ev, k, tl_int_value(0), &number));
    d = number.sym->dim;
    tl_unref(number);
    TL_TRY(tl_dims_fact_le(b->dims, tl_dim_num(0), d, ev->diag));
    if (r->step == 1) {
        TL_TRY(tl_dim_sub(b->dims, stop, start, &last, ev->diag));
        TL_TRY(tl_dim_sub(b->dims, last, tl_dim_num(1), &last, ev->diag));
        TL_TRY(tl_dims_fact_le(b->dims, d, last, ev->diag));
    }
    TL_TRY(tl_dim_mul(b->dims, d, tl_dim_num(r->step), &d, ev->diag));
    TL_TRY(tl_dim_add(b->dims, d, start, &d, ev->diag));
    return tl_dim_value_of(ev, d, out);
}

/* A turn that returns ends the loop; cells are as it left them, slots as a
 * turn leaves them that does not return. */
static tl_status end_by_return(loop *l, tl_gends *e)
{
    tl_eval *ev = l->ev;
    tl_gway *r = &e->way[TL_FLOW_RETURN], *next = &e->way[TL_FLOW_NEXT];
    const tl_gstate *slots = next->is ? &next->state : &l->start;
    tl_gstate state;

    TL_TRY(tl_gstate_copy(ev, &r->state, slots, &state));
    tl_gstate_fini(&r->state);
    r->state = state;
    tl_unref(next->value);
    next->value = tl_ref(l->value); /* of the parameters */
    if (r->taken == 0) {
        TL_TRY(tl_ways_known(ev, true, &r->taken));
    }
    l->has_returned = r->taken;
    if (!next->is) {
        tl_unref(next->value);
        *next = *r;
        memset(r, 0, sizeof(*r));
    }
    return tl_ways_merge(ev, e, TL_FLOW_RETURN, TL_FLOW_NEXT);
}

/* How the turn ends: *e, with one way left. */
static tl_status turn_ends(loop *l, tl_gends *e)
{
    tl_eval *ev = l->ev;
    tl_gway *next = &e->way[TL_FLOW_NEXT];

    l->may_return = e->way[TL_FLOW_RETURN].is;
    l->breaks_out = e->way[TL_FLOW_BREAK].is;
    l->may_break = l->breaks_out || l->may_return;
    TL_TRY(tl_ways_merge(ev, e, TL_FLOW_CONTINUE, TL_FLOW_NEXT));
    l->goes_on = next->taken;
    if (!next->is || next->taken == 0) {
        TL_TRY(tl_ways_known(ev, next->is, &l->goes_on));
    }
    TL_TRY(tl_ways_merge(ev, e, TL_FLOW_BREAK, TL_FLOW_NEXT));
    if (l->may_return && !l->returns) {
        tl_unref(l->returned);
        l->returned = tl_ref(e->way[TL_FLOW_RETURN].value);
        l->value = tl_ref(l->returned);
    }
    if (l->returns && !l->may_return) {
        return tl_trace_refuse(ev, "what a turn returns is not found");
    }
    if (l->may_return) {
        TL_TRY(end_by_return(l, e));
        tl_drop(&l->value);
        l->value = tl_ref(next->value);
    }
    if (!next->is) {
        return tl_trace_refuse(ev, "every turn raises an error");
    }
    tl_gstate_restore(ev, &next->state);
    return TL_OK;
}

static tl_status start_turn(loop *l, tl_gval index, const tl_ast **body)
{
    tl_eval *ev = l->ev;
    tl_value item;

    TL_TRY(place_params(l, index + 1));
    TL_TRY(tl_gstate_take(ev, &l->start));
    if (l->node->kind != TL_AST_FOR) {
        *body = TL_AST(while, l->node)->body;
        return tl_renew(ev, &TL_AST(while, l->node)->joins);
    }
    *body = TL_AST(for, l->node)->body;
    TL_TRY(item_of(l, index, &item));
    TL_TRY(tl_eval_assign_take(ev, TL_AST(for, l->node)->target, item));
    return tl_renew(ev, &TL_AST(for, l->node)->joins);
}

static tl_status run_turn(loop *l, tl_gval index)
{
    tl_eval *ev = l->ev;
    size_t exits = tl_trace_of(ev)->exits.len;
    tl_flow flow = TL_FLOW_NEXT;
    const tl_ast *body;
    tl_gends e = {0};
    tl_status st;

    TL_TRY(start_turn(l, index, &body));
    st = tl_eval_block(ev, body, &flow);
    TL_TRY(tl_ways_close(ev, st, flow, NULL, &l->start, exits, false, &e));
    st = turn_ends(l, &e);
    tl_gends_fini(&e);
    return st == TL_OK ? tl_gstate_settle(ev, &l->start) : st;
}

/* For the gradient the loop keeps what each turn starts from. */
static tl_status stack_params(loop *l)
{
    tl_gbuild *b = builder(l->ev);

    if (!tl_gbuild_keeps_turns(b)) {
        return TL_OK;
    }
    for (size_t i = 0; i < l->params.len; i++) {
        tl_gval v = l->params.items[i];
        uint8_t cls = b->g->values.items[v].cls;

        if (cls != TL_GC_TENSOR) {
            TL_TRY(tl_gbuild_scalar(b, v,
                                    cls == TL_GC_INT     ? TL_i64
                                    : cls == TL_GC_FLOAT ? TL_f64
                                                         : TL_bool,
                                    &v));
        }
        TL_TRY(TL_VEC_PUSH(&l->stacked, v, l->ev->diag));
    }
    return TL_OK;
}

/* Lists that this turn has made longer: the loop stacks what they gained,
 * after what it keeps for the gradient. */
static tl_status stack_items(loop *l)
{
    bool counted = l->node->kind == TL_AST_FOR && !l->breaks && !l->may_break;
    tl_gval item;

    l->ngrown = 0;
    for (size_t i = 0; i < l->start.nslots; i++) {
        tl_value a = l->start.slots[i], b = l->end.slots[i];

        l->grown[i] = counted && !l->slot[i] && !tl_gvalue_same(a, b) &&
                      tl_grow_by_one(l->ev, a, b, &item) &&
                      tl_grow_allowed(l->ev, l->node, (uint32_t)i);
        if (l->grown[i]) {
            l->ngrown++;
            TL_TRY(TL_VEC_PUSH(&l->stacked, item, l->ev->diag));
        }
    }
    return TL_OK;
}

static tl_status walk_body(loop *l)
{
    tl_eval *ev = l->ev;
    tl_gval first;
    tl_status st;

    TL_TRY(open_region(l, true, &l->body, &first));
    l->has_body = true;
    st = run_turn(l, first);
    if (st == TL_OK) {
        st = stack_params(l);
    }
    if (st == TL_OK) {
        st = tl_gstate_take(ev, &l->end);
    }
    if (st == TL_OK) {
        st = stack_items(l);
    }
    tl_status closed = tl_gbuild_region_close(builder(ev), l->body,
                                              l->around);

    tl_gstate_restore(ev, &l->before);
    return st != TL_OK ? st : closed;
}

/* What the walk has changed is carried in the next one; *more: there was
 * something new. */
static void find_changes(loop *l, bool *more)
{
    size_t cells = tl_trace_of(l->ev)->cells.len;

    *more = false;
    for (size_t i = 0; i < l->start.nslots; i++) {
        if (!l->slot[i] && !l->grown[i] &&
            l->start.slots[i].tag != TL_V_EMPTY &&
            !tl_gvalue_same(l->start.slots[i], l->end.slots[i])) {
            l->slot[i] = *more = true;
        }
    }
    for (size_t i = 0; i < cells && i < l->ncells; i++) {
        if (!l->cell[i] &&
            !tl_gvalue_same(tl_gstate_cell(l->ev, &l->start, i),
                            tl_gstate_cell(l->ev, &l->end, i))) {
            l->cell[i] = *more = true;
        }
    }
    if (!l->draws && (l->end.draws != l->start.draws ||
                      l->end.base != l->start.base)) {
        l->draws = *more = true;
    }
    if ((!l->breaks && l->may_break) || (!l->returns && l->may_return)) {
        l->breaks = *more = true;
        l->returns = l->may_return;
    }
}

static tl_status changes_type(loop *l, const char *what, tl_value a,
                              tl_value b)
{
    tl_eval *ev = l->ev;

    if (tl_is_tensor(a) && tl_is_tensor(b) &&
        tl_stored_dtype(ev, a) != tl_stored_dtype(ev, b) &&
        (tl_is_lowered(ev, a) || tl_is_lowered(ev, b))) {
        tl_status st = tl_trace_refuse(
            ev, "`%s` is stored as %s before and as %s after a turn", what,
            tl_dtype_name(tl_stored_dtype(ev, a)),
            tl_dtype_name(tl_stored_dtype(ev, b)));

        tl_diag_help(ev->diag, "`x = f32(...)` at the end of the turn");
        return st;
    }
    return tl_trace_refuse(ev, "`%s` is %s before and %s after a turn", what,
                           tl_value_type_str(a).s, tl_value_type_str(b).s);
}

/* Carried values keep their types. */
static tl_status check_types(loop *l)
{
    tl_eval *ev = l->ev;
    size_t cells = tl_trace_of(ev)->cells.len;

    for (size_t i = 0; i < l->start.nslots; i++) {
        if (l->slot[i] &&
            !same_kind(ev, l->start.slots[i], l->end.slots[i])) {
            return changes_type(l, tl_slot_name(ev, i), l->start.slots[i],
                                l->end.slots[i]);
        }
    }
    for (size_t i = 0; i < cells && i < l->ncells; i++) {
        tl_value a = tl_gstate_cell(ev, &l->start, i);
        tl_value b = tl_gstate_cell(ev, &l->end, i);

        if (l->cell[i] && !same_kind(ev, a, b)) {
            return changes_type(l, "a cell", a, b);
        }
    }
    if (l->returns && !same_kind(ev, l->returned, l->value)) {
        return changes_type(l, "the result", l->returned, l->value);
    }
    return cells <= l->ncells ? TL_OK
                              : tl_trace_refuse(ev, "too many cells");
}

/* ---- the node ----------------------------------------------------------- */

/* The LOOP node of the regions.  `turns` 0: no bound; `length` (may be NULL)
 * of what is stacked; the values of `results` are followed by those. */
static tl_status own(loop *l, tl_gval turns, const tl_dim *length,
                     const tl_gval *results, tl_gval *out)
{
    tl_gbuild *b = builder(l->ev);
    uint32_t n = (uint32_t)l->init.len;
    tl_gval *in = tl_calloc(n + 1, sizeof(*in));
    tl_status st;

    if (in == NULL) {
        return tl_fail_memory(l->ev->diag, "a loop", n * sizeof(*in));
    }
    in[0] = turns;
    for (uint32_t i = 0; i < n; i++) {
        in[i + 1] = l->init.items[i];
    }
    st = tl_gbuild_region_results(b, l->body, results,
                                  n + (uint32_t)l->stacked.len);
    if (st == TL_OK) {
        tl_gflow f = {.kind = TL_G_LOOP,
                      .region = l->has_test ? l->test : l->body,
                      .nregions = l->has_test ? 2 : 1, .in = in,
                      .nin = n + 1, .like = l->init.items, .n = n,
                      .stacked = l->stacked.items,
                      .nstacked = (uint32_t)l->stacked.len, .turns = length};

        st = tl_gbuild_flow(b, &f, out);
    }
    tl_free(in);
    return st;
}

/* Regions of a walk in vain belong to a loop of no turns. */
static tl_status own_unused(loop *l)
{
    tl_gbuild *b = builder(l->ev);
    tl_gscalar zero = {.i = 0}, no = {.i = 0};
    tl_gval turns, cond, first, *out;
    tl_status st;

    if (!l->has_test && !l->has_body) {
        return TL_OK;
    }
    if (!l->has_body) {
        TL_TRY(open_region(l, true, &l->body, &first));
        TL_TRY(tl_gbuild_region_close(b, l->body, l->around));
        l->has_body = true;
        l->params.len = 0;
        for (size_t i = 0; i < l->init.len; i++) {
            TL_TRY(TL_VEC_PUSH(&l->params, first + 1 + (tl_gval)i,
                               l->ev->diag));
        }
    }
    if (l->has_test) {
        TL_TRY(tl_gbuild_num(b, TL_GC_BOOL, no, &cond));
        TL_TRY(tl_gbuild_region_results(b, l->test, &cond, 1));
    }
    TL_TRY(tl_gbuild_num(b, TL_GC_INT, zero, &turns));
    l->stacked.len = 0;
    out = tl_calloc(l->init.len + 1, sizeof(*out));
    if (out == NULL) {
        return tl_fail_memory(l->ev->diag, "a loop", l->init.len);
    }
    st = own(l, turns, NULL, l->init.items, out);
    tl_free(out);
    return st;
}

static tl_status count_turns(loop *l, tl_gval *out, tl_dim *length)
{
    tl_gbuild *b = builder(l->ev);
    tl_gscalar n = {.i = 0};
    tl_gval in[2];
    tl_dim d;

    *out = 0;
    if (l->node->kind == TL_AST_WHILE) {
        return TL_OK;
    }
    if (!tl_is_sym(l->range)) {
        n.i = tl_range_len(l->range.range);
        *length = tl_dim_num(n.i);
        return tl_gbuild_num(b, TL_GC_INT, n, out);
    }
    int64_t step = l->range.sym->hint.range->step;

    TL_TRY(tl_dim_sub(b->dims, l->range.sym->stop, l->range.sym->dim, &d,
                      l->ev->diag));
    TL_TRY(tl_dim_add(b->dims, d, tl_dim_num(step > 0 ? step - 1 : step + 1),
                      &d, l->ev->diag));
    TL_TRY(tl_dim_div(b->dims, d, tl_dim_num(step), &d, l->ev->diag));
    *length = d;
    TL_TRY(tl_gbuild_size(b, d, &in[0]));
    TL_TRY(tl_gbuild_num(b, TL_GC_INT, n, &in[1]));
    return tl_gbuild_host(b, TL_H_max_i, TL_GC_INT, in, 2, out);
}

/* The lists that have grown; stacks[0 ...] are of their items. */
static tl_status place_grown(loop *l, const tl_gval *stacks, tl_dim length)
{
    size_t at = 0;

    for (size_t i = 0; i < l->before.nslots; i++) {
        tl_value *slot = &l->ev->frame->slots[i], list;

        if (l->grown[i]) {
            TL_TRY(tl_grow_made(l->ev, l->before.slots[i], stacks[at++],
                                length, &list));
            tl_unref(*slot);
            *slot = list;
        }
    }
    return TL_OK;
}

/* The state after the loop; what only a turn has set is not known. */
static tl_status leave(loop *l, const tl_gval *results, tl_dim length)
{
    size_t kept = l->stacked.len - l->ngrown;

    TL_TRY(place(l, results));
    TL_TRY(place_grown(l, results + l->init.len + kept, length));
    for (size_t i = 0; i < l->before.nslots; i++) {
        tl_value *slot = &l->ev->frame->slots[i];

        if (slot->tag == TL_V_EMPTY && l->end.slots[i].tag != TL_V_EMPTY) {
            *slot = tl_unknown();
        }
    }
    return TL_OK;
}

static tl_status finish(loop *l)
{
    tl_gval turns, *out;
    tl_dim length = tl_dim_num(0);
    tl_status st;

    TL_TRY(check_types(l));
    TL_TRY(collect(l, &l->end, &l->results));
    TL_TRY(next_flags(l, &l->results));
    for (size_t i = 0; i < l->stacked.len; i++) {
        TL_TRY(TL_VEC_PUSH(&l->results, l->stacked.items[i], l->ev->diag));
    }
    TL_TRY(count_turns(l, &turns, &length));
    out = tl_calloc(l->results.len + 1, sizeof(*out));
    if (out == NULL) {
        return tl_fail_memory(l->ev->diag, "a loop", l->init.len);
    }
    st = own(l, turns, turns != 0 && !l->breaks ? &length : NULL,
             l->results.items, out);
    l->has_body = l->has_test = false; /* they have an owner */
    if (st == TL_OK) {
        st = leave(l, out + 1, length);
    }
    tl_free(out);
    return st;
}

/* Walk until nothing new is carried. */
static tl_status walk_until_known(loop *l)
{
    bool more = true;

    for (int i = 0; i < MAX_WALKS; i++) {
        TL_TRY(collect(l, &l->before, &l->init));
        TL_TRY(first_flags(l, &l->init));
        if (l->node->kind == TL_AST_WHILE || l->breaks) {
            TL_TRY(walk_test(l));
        }
        TL_TRY(walk_body(l));
        find_changes(l, &more);
        if (!more) {
            return finish(l);
        }
        TL_TRY(own_unused(l));
        walk_fini(l);
    }
    return tl_trace_refuse(l->ev, "what a turn changes is not found");
}

/* After the loop: if a turn has returned, what follows does not run. */
static tl_status follow_return(loop *l, tl_flow *flow)
{
    tl_eval *ev = l->ev;
    tl_gends e = {0};
    tl_gway *next = &e.way[TL_FLOW_NEXT], *r = &e.way[TL_FLOW_RETURN];
    tl_status st = tl_gstate_take(ev, &next->state);

    if (st == TL_OK) {
        st = tl_gstate_take(ev, &r->state);
    }
    if (st == TL_OK) {
        st = tl_gbuild_host(builder(ev), TL_H_not, TL_GC_BOOL,
                            &l->has_returned, 1, &next->taken);
    }
    if (st != TL_OK) {
        tl_gends_fini(&e);
        return st;
    }
    next->is = !l->endless || l->breaks_out;
    r->is = true;
    r->taken = next->is ? l->has_returned : 0;
    r->value = tl_ref(l->value);
    return tl_ways_follow(ev, &e, flow, NULL);
}

static tl_status region_loop(tl_eval *ev, const tl_ast *node, tl_value range,
                             tl_flow *flow)
{
    loop l = {.ev = ev, .node = node, .range = range,
              .around = builder(ev)->owner};
    tl_status st = init_loop(&l);

    if (st == TL_OK) {
        st = walk_until_known(&l);
    }
    if (st != TL_OK) {
        tl_diag_at(ev->diag, node->span);
        if (l.before.slots != NULL) {
            tl_gstate_restore(ev, &l.before);
        }
        if (own_unused(&l) != TL_OK) {
            (void)tl_diag_pop(ev->diag);
            tl_trace_of(ev)->gave_up = true;
        }
    } else if (l.returns) {
        st = follow_return(&l, flow);
    }
    loop_fini(&l);
    return st;
}

/* ---- turn by turn ------------------------------------------------------- */

/* One turn.  *flow is NEXT, or the loop ends: for certain, or in the open
 * region in which the walk goes on. */
static tl_status walk_turn(tl_eval *ev, const tl_ast_for *n, tl_value item,
                           tl_flow *flow)
{
    size_t exits = tl_trace_of(ev)->exits.len;
    tl_gstate before;
    tl_gends e = {0};
    tl_status st = tl_eval_assign_take(ev, n->target, item);

    TL_TRY(st);
    TL_TRY(tl_eval_tick(ev, n->base.span));
    TL_TRY(tl_renew(ev, &n->joins));
    TL_TRY(tl_gstate_take(ev, &before));
    st = tl_eval_block(ev, n->body, flow);
    if (tl_ways_have(ev, exits, TL_FLOW_CONTINUE)) {
        st = tl_ways_close(ev, st, *flow, NULL, &before, exits, false, &e);
        if (st == TL_OK) {
            st = tl_ways_merge(ev, &e, TL_FLOW_CONTINUE, TL_FLOW_NEXT);
        }
        if (st == TL_OK) {
            st = tl_ways_follow(ev, &e, flow, NULL);
        }
        tl_gends_fini(&e);
    }
    tl_gstate_fini(&before);
    *flow = *flow == TL_FLOW_CONTINUE ? TL_FLOW_NEXT : *flow;
    return st;
}

static tl_status walk_items(tl_eval *ev, const tl_ast_for *n, tl_value it,
                            tl_flow *flow)
{
    tl_iter iter;
    bool more = true;
    tl_status st = tl_iter_init_take(ev, tl_ref(it), &iter);

    if (st != TL_OK) {
        tl_diag_at(ev->diag, n->iter->span);
    }
    while (st == TL_OK && *flow == TL_FLOW_NEXT) {
        tl_value v = tl_empty();

        st = tl_iter_next(ev, &iter, &more, &v);
        if (st != TL_OK || !more) {
            break;
        }
        st = walk_turn(ev, n, v, flow);
    }
    tl_iter_fini(&iter);
    return st;
}

static tl_status walk_turns(tl_eval *ev, const tl_ast_for *n, tl_value it,
                            tl_flow *flow)
{
    size_t exits = tl_trace_of(ev)->exits.len;
    tl_gstate before;
    tl_gends e = {0};
    tl_status st;

    TL_TRY(tl_gstate_take(ev, &before));
    st = walk_items(ev, n, it, flow);
    if (tl_ways_have(ev, exits, TL_FLOW_BREAK)) {
        st = tl_ways_close(ev, st, *flow, NULL, &before, exits, false, &e);
        if (st == TL_OK) {
            st = tl_ways_merge(ev, &e, TL_FLOW_BREAK, TL_FLOW_NEXT);
        }
        if (st == TL_OK) {
            st = tl_ways_follow(ev, &e, flow, NULL);
        }
        tl_gends_fini(&e);
    }
    *flow = *flow == TL_FLOW_BREAK ? TL_FLOW_NEXT : *flow;
    tl_gstate_fini(&before);
    return st;
}

/* A turn of a `while` whose condition holds for certain.  *region: the run may
 * end it, so the rest of the loop is a region. */
static tl_status walk_known_turn(tl_eval *ev, const tl_ast_while *n,
                                 tl_flow *flow, bool *region)
{
    tl_trace *tr = tl_trace_of(ev);
    size_t exits = tr->exits.len;
    tl_gstate before;
    tl_status st;

    TL_TRY(tl_gstate_take(ev, &before));
    st = tl_eval_block(ev, n->body, flow);
    if ((st == TL_OK || st == TL_ERR_REJECTED) && !tr->gave_up &&
        (st != TL_OK || tr->exits.len > exits)) {
        if (st != TL_OK) {
            (void)tl_diag_pop(ev->diag);
        }
        tl_drop(&ev->ret);
        tr->raised = false;
        tl_ways_drop(ev, exits);
        tl_gstate_restore(ev, &before);
        *flow = TL_FLOW_NEXT;
        *region = true;
        st = TL_OK;
    }
    tl_gstate_fini(&before);
    return st;
}

/* A `while`: turn by turn as long as the condition is known. */
static tl_status walk_while(tl_eval *ev, const tl_ast_while *n, tl_flow *flow)
{
    for (;;) {
        tl_value c = tl_empty();
        bool known = false, yes = false;

        TL_TRY(tl_eval_tick(ev, n->base.span));
        TL_TRY(tl_eval_expr(ev, n->cond, &c));
        bool decided = c.tag != TL_V_NODE && !tl_is_sym(c);
        tl_status st = decided ? tl_eval_truth(ev, c, &known, &yes) : TL_OK;

        tl_unref(c);
        if (st != TL_OK) {
            tl_diag_at(ev->diag, n->cond->span);
            return st;
        }
        if (!known) {
            return region_loop(ev, &n->base, tl_empty(), flow);
        }
        if (!yes) {
            return TL_OK;
        }
        bool region = false;

        TL_TRY(tl_renew(ev, &n->joins));
        TL_TRY(walk_known_turn(ev, n, flow, &region));
        if (region) {
            return region_loop(ev, &n->base, tl_empty(), flow);
        }
        if (*flow == TL_FLOW_CONTINUE) {
            *flow = TL_FLOW_NEXT;
        }
        if (*flow != TL_FLOW_NEXT) {
            *flow = *flow == TL_FLOW_BREAK ? TL_FLOW_NEXT : *flow;
            return TL_OK;
        }
    }
}

/* ---- domain.h ----------------------------------------------------------- */

bool tl_graph_fold_loop(tl_eval *ev, tl_value it)
{
    (void)ev;
    (void)it;
    return true;
}

/* A range that is counted at the run, or is long. */
static bool wants_region(tl_value it)
{
    return (it.tag == TL_V_SYM && it.sym->hint.tag == TL_V_RANGE &&
            tl_range_len(it.sym->hint.range) > 1) ||
           (it.tag == TL_V_RANGE && tl_range_len(it.range) >= REGION_TURNS);
}

/* Turn by turn; a range of which too many turns may end the loop is a
 * region. */
static tl_status unroll(tl_eval *ev, const tl_ast *node, tl_value range,
                        tl_flow *flow)
{
    tl_trace *tr = tl_trace_of(ev);
    size_t exits = tr->exits.len;
    tl_gstate before;
    tl_status st;

    TL_TRY(tl_gstate_take(ev, &before));
    tr->too_deep = false;
    st = walk_turns(ev, TL_AST(for, node), range, flow);
    if (st == TL_ERR_REJECTED && tr->too_deep && !tr->gave_up &&
        range.tag == TL_V_RANGE) {
        tr->too_deep = false;
        (void)tl_diag_pop(ev->diag);
        tl_ways_drop(ev, exits);
        tl_gstate_restore(ev, &before);
        *flow = TL_FLOW_NEXT;
        st = region_loop(ev, node, range, flow);
    }
    tl_gstate_fini(&before);
    return st;
}

tl_status tl_graph_loop(tl_eval *ev, const tl_ast *node, tl_value it,
                        tl_flow *flow)
{
    tl_value range = tl_ref(it);
    tl_status st;

    if (node->kind == TL_AST_WHILE) {
        return walk_while(ev, TL_AST(while, node), flow);
    }
    if (it.tag == TL_V_UNKNOWN) {
        st = tl_trace_refuse(ev, "the number of turns is not known");
        tl_diag_at(ev->diag, node->span);
        return st;
    }
    bool region = wants_region(it);

    st = region ? region_loop(ev, node, it, flow) : TL_OK;
    if (region && st == TL_ERR_REJECTED && !tl_trace_of(ev)->gave_up) {
        tl_trace_of(ev)->raised = false;
        (void)tl_diag_pop(ev->diag); /* its values decide something */
        region = false;
        st = TL_OK;
    }
    if (st == TL_OK && !region) {
        st = tl_sym_read(ev, &range);
        if (st == TL_OK) {
            st = unroll(ev, node, range, flow);
        }
    }
    tl_unref(range);
    return st;
}
