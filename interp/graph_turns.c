/* graph_turns.c - loops that are walked turn by turn, as long as the run
 * decides nothing about them. */
#include "interp/graph_loop.h"
#include "interp/renew.h"

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

tl_status tl_gloop_turns(tl_eval *ev, const tl_ast_for *n, tl_value it,
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

tl_status tl_gloop_while(tl_eval *ev, const tl_ast_while *n, tl_flow *flow)
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
            return tl_gloop_region(ev, &n->base, tl_empty(), flow);
        }
        if (!yes) {
            return TL_OK;
        }
        bool region = false;

        TL_TRY(tl_renew(ev, &n->joins));
        TL_TRY(walk_known_turn(ev, n, flow, &region));
        if (region) {
            return tl_gloop_region(ev, &n->base, tl_empty(), flow);
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
