/* graph_body.c - one walk of the body of a loop that is a region: what a turn
 * carries, and what changes. */
#include <string.h>

#include "interp/autocast.h"
#include "interp/graph_grow.h"
#include "interp/graph_loop.h"
#include "interp/renew.h"
#include "runtime/base/mem.h"
#include "runtime/base/vec.h"

static tl_gbuild *builder(tl_eval *ev)
{
    return &tl_trace_of(ev)->b;
}

tl_status tl_gloop_open_region(tl_gloop *l, bool index, uint32_t *region,
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

static tl_status place_params(tl_gloop *l, tl_gval first)
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
    return st == TL_OK ? tl_gloop_place(l, l->params.items) : st;
}

/* The condition of a `while` as a host bool. */
static tl_status while_test(tl_gloop *l, tl_gval *cond)
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

tl_status tl_gloop_walk_test(tl_gloop *l)
{
    tl_eval *ev = l->ev;
    tl_gval first, cond = 0, in[2];
    tl_status st;

    TL_TRY(tl_gloop_open_region(l, false, &l->test, &first));
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
static tl_status item_of(tl_gloop *l, tl_gval k, tl_value *out)
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
static tl_status end_by_return(tl_gloop *l, tl_gends *e)
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
static tl_status turn_ends(tl_gloop *l, tl_gends *e)
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

static tl_status start_turn(tl_gloop *l, tl_gval index, const tl_ast **body)
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

static tl_status run_turn(tl_gloop *l, tl_gval index)
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
static tl_status stack_params(tl_gloop *l)
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
static tl_status stack_items(tl_gloop *l)
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

tl_status tl_gloop_walk_body(tl_gloop *l)
{
    tl_eval *ev = l->ev;
    tl_gval first;
    tl_status st;

    TL_TRY(tl_gloop_open_region(l, true, &l->body, &first));
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

void tl_gloop_find_changes(tl_gloop *l, bool *more)
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

static tl_status changes_type(tl_gloop *l, const char *what, tl_value a,
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

tl_status tl_gloop_check_types(tl_gloop *l)
{
    tl_eval *ev = l->ev;
    size_t cells = tl_trace_of(ev)->cells.len;

    for (size_t i = 0; i < l->start.nslots; i++) {
        if (l->slot[i] &&
            !tl_gloop_same_kind(ev, l->start.slots[i], l->end.slots[i])) {
            return changes_type(l, tl_slot_name(ev, i), l->start.slots[i],
                                l->end.slots[i]);
        }
    }
    for (size_t i = 0; i < cells && i < l->ncells; i++) {
        tl_value a = tl_gstate_cell(ev, &l->start, i);
        tl_value b = tl_gstate_cell(ev, &l->end, i);

        if (l->cell[i] && !tl_gloop_same_kind(ev, a, b)) {
            return changes_type(l, "a cell", a, b);
        }
    }
    if (l->returns && !tl_gloop_same_kind(ev, l->returned, l->value)) {
        return changes_type(l, "the result", l->returned, l->value);
    }
    return cells <= l->ncells ? TL_OK
                              : tl_trace_refuse(ev, "too many cells");
}
