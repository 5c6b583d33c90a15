/* graph_loop.c - loops of the graph domain.
 *
 * A loop that the run counts becomes a region.  What a turn changes is carried
 * from turn to turn; what that is shows when a turn is walked, so the body is
 * walked until it changes nothing but what is carried.  A body that was walked
 * in vain belongs to a loop of no turns, which the passes drop.
 *
 * A short loop of known length is walked turn by turn (graph_turns.c). */
#include "interp/graph_grow.h"
#include "interp/graph_loop.h"
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

/* ---- the node ----------------------------------------------------------- */

/* The LOOP node of the regions.  `turns` 0: no bound; `length` (may be NULL)
 * of what is stacked; the values of `results` are followed by those. */
static tl_status own(tl_gloop *l, tl_gval turns, const tl_dim *length,
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
static tl_status own_unused(tl_gloop *l)
{
    tl_gbuild *b = builder(l->ev);
    tl_gscalar zero = {.i = 0}, no = {.i = 0};
    tl_gval turns, cond, first, *out;
    tl_status st;

    if (!l->has_test && !l->has_body) {
        return TL_OK;
    }
    if (!l->has_body) {
        TL_TRY(tl_gloop_open_region(l, true, &l->body, &first));
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

static tl_status count_turns(tl_gloop *l, tl_gval *out, tl_dim *length)
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
static tl_status place_grown(tl_gloop *l, const tl_gval *stacks, tl_dim length)
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
static tl_status leave(tl_gloop *l, const tl_gval *results, tl_dim length)
{
    size_t kept = l->stacked.len - l->ngrown;

    TL_TRY(tl_gloop_place(l, results));
    TL_TRY(place_grown(l, results + l->init.len + kept, length));
    for (size_t i = 0; i < l->before.nslots; i++) {
        tl_value *slot = &l->ev->frame->slots[i];

        if (slot->tag == TL_V_EMPTY && l->end.slots[i].tag != TL_V_EMPTY) {
            *slot = tl_unknown();
        }
    }
    return TL_OK;
}

static tl_status finish(tl_gloop *l)
{
    tl_gval turns, *out;
    tl_dim length = tl_dim_num(0);
    tl_status st;

    TL_TRY(tl_gloop_check_types(l));
    TL_TRY(tl_gloop_collect(l, &l->end, &l->results));
    TL_TRY(tl_gloop_next_flags(l, &l->results));
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
static tl_status walk_until_known(tl_gloop *l)
{
    bool more = true;

    for (int i = 0; i < MAX_WALKS; i++) {
        TL_TRY(tl_gloop_collect(l, &l->before, &l->init));
        TL_TRY(tl_gloop_first_flags(l, &l->init));
        if (l->node->kind == TL_AST_WHILE || l->breaks) {
            TL_TRY(tl_gloop_walk_test(l));
        }
        TL_TRY(tl_gloop_walk_body(l));
        tl_gloop_find_changes(l, &more);
        if (!more) {
            return finish(l);
        }
        TL_TRY(own_unused(l));
        tl_gloop_walk_fini(l);
    }
    return tl_trace_refuse(l->ev, "what a turn changes is not found");
}

/* After the loop: if a turn has returned, what follows does not run. */
static tl_status follow_return(tl_gloop *l, tl_flow *flow)
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

tl_status tl_gloop_region(tl_eval *ev, const tl_ast *node, tl_value range,
                          tl_flow *flow)
{
    tl_gloop l = {.ev = ev, .node = node, .range = range,
                  .around = builder(ev)->owner};
    tl_status st = tl_gloop_init(&l);

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
    tl_gloop_fini(&l);
    return st;
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
    st = tl_gloop_turns(ev, TL_AST(for, node), range, flow);
    if (st == TL_ERR_REJECTED && tr->too_deep && !tr->gave_up &&
        range.tag == TL_V_RANGE) {
        tr->too_deep = false;
        (void)tl_diag_pop(ev->diag);
        tl_ways_drop(ev, exits);
        tl_gstate_restore(ev, &before);
        *flow = TL_FLOW_NEXT;
        st = tl_gloop_region(ev, node, range, flow);
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
        return tl_gloop_while(ev, TL_AST(while, node), flow);
    }
    if (it.tag == TL_V_UNKNOWN) {
        st = tl_trace_refuse(ev, "the number of turns is not known");
        tl_diag_at(ev->diag, node->span);
        return st;
    }
    bool region = wants_region(it);

    st = region ? tl_gloop_region(ev, node, it, flow) : TL_OK;
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
