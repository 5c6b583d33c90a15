/* graph_flow.c - branches of the graph domain.
 *
 * Both arms of a condition that the run decides are walked into regions from
 * the same state; what they leave differently becomes a result of the IF node
 * that owns them.  An arm that raises becomes an assertion.  An arm that
 * returns leaves an *exit*: the rest of the function is walked as if it had
 * not, and result and cells are chosen at the function's end. */
#include "interp/graph_flow.h"

#include <string.h>

#include "runtime/base/mem.h"
#include "runtime/base/vec.h"

static tl_gbuild *builder(tl_eval *ev)
{
    return &tl_trace_of(ev)->b;
}

/* A condition that is NaN is an error (E0209), which the interpreter reports:
 * the program only has to fail. */
static tl_status check_not_nan(tl_eval *ev, tl_value cond)
{
    tl_value v = tl_ref(cond);
    tl_gval number;

    TL_TRY(tl_eval_op(ev, TL_OP_isnan, &v, 1, NULL, &v));
    TL_TRY(tl_eval_op(ev, TL_OP_not, &v, 1, NULL, &v));
    tl_status st = tl_gbuild_item(builder(ev), v.node->id, TL_GC_BOOL,
                                  &number);

    tl_unref(v);
    return st == TL_OK ? tl_trace_holds(ev, number) : st;
}

tl_status tl_flow_condition(tl_eval *ev, tl_value cond, tl_gval *out)
{
    tl_value is = tl_ref(cond);
    tl_status st = TL_OK;

    if (cond.tag != TL_V_NODE && cond.tag != TL_V_SYM) {
        tl_unref(is);
        return tl_trace_refuse(ev, "the condition is not known");
    }
    if (tl_is_float_tensor(cond)) {
        st = check_not_nan(ev, cond);
        if (st != TL_OK) {
            tl_unref(is);
            return st;
        }
    }
    if (cond.tag == TL_V_NODE ? cond.node->type.dtype != TL_bool
                              : tl_number_tag(cond) != TL_V_BOOL) {
        st = tl_eval_binary_take(ev, TL_OP_NE, is, tl_int_value(0), &is);
    }
    if (st != TL_OK) {
        return st;
    }
    st = is.tag == TL_V_NODE
             ? tl_gbuild_item(builder(ev), is.node->id, TL_GC_BOOL, out)
             : tl_sym_host(ev, is, false, out);
    tl_unref(is);
    return st;
}

static bool is_turn_end(tl_flow flow)
{
    return flow == TL_FLOW_BREAK || flow == TL_FLOW_CONTINUE;
}

/* ---- arms --------------------------------------------------------------- */

/* How an arm ended. */
typedef struct ending {
    uint32_t region;
    tl_flow flow;
    tl_value value; /* returned, or of an expression */
    tl_gstate state;
    bool dead; /* it raises */
} ending;

static void ending_fini(ending *e)
{
    tl_unref(e->value);
    tl_gstate_fini(&e->state);
}

/* What is walked in an arm: statements of an `if`, or an expression. */
typedef struct arm {
    const tl_ast_if *node;
    uint32_t number;
    bool rest; /* the arms after `number` */
    const tl_ast *expr;
} arm;

static tl_status walk(tl_eval *ev, const arm *a, ending *e)
{
    if (a->expr != NULL) {
        return tl_eval_expr(ev, a->expr, &e->value);
    }
    if (a->rest) {
        return tl_eval_if_from(ev, a->node, a->number + 1, &e->flow);
    }
    return tl_eval_block(
        ev, TL_AST(arm, a->node->arms.items[a->number])->body, &e->flow);
}

/* Leave the region: keep the state, put back the one before. */
static tl_status arm_ends(tl_eval *ev, const tl_gstate *before,
                          uint32_t around, ending *e)
{
    tl_status st = TL_OK;

    if (e->flow == TL_FLOW_RETURN) {
        e->value = ev->ret;
        ev->ret = tl_empty();
    }
    if (!e->dead) {
        st = tl_gstate_settle(ev, before);
    }
    if (st == TL_OK) {
        st = tl_gstate_settle_value(ev, &e->value);
    }
    if (st == TL_OK) {
        st = tl_gstate_take(ev, &e->state);
    }
    tl_status closed = tl_gbuild_region_close(builder(ev), e->region, around);

    tl_gstate_restore(ev, before);
    return st != TL_OK ? st : closed;
}

static tl_status run_arm(tl_eval *ev, const arm *a, const tl_gstate *before,
                         ending *e)
{
    tl_trace *tr = tl_trace_of(ev);
    uint32_t around = tr->b.owner;
    size_t exits = tr->exits.len;
    tl_gval first;

    TL_TRY(tl_gbuild_region_open(&tr->b, NULL, NULL, 0, &e->region, &first));
    tl_status st = walk(ev, a, e);

    if (st != TL_OK && tr->raised) {
        tr->raised = false;
        (void)tl_diag_pop(ev->diag);
        e->dead = true;
        st = TL_OK;
    }
    if (st == TL_OK && tr->exits.len > exits) {
        st = tl_trace_refuse(ev, "it returns from inside of two branches");
    }
    if (st == TL_OK && is_turn_end(e->flow) &&
        (tr->turn == 0 || tr->turn != around ||
         tr->turn_frame != ev->frame)) {
        st = tl_trace_refuse(ev, "a branch leaves a loop");
    }
    tl_status ended = arm_ends(ev, before, around, e);

    return st != TL_OK ? st : ended;
}

/* ---- joining ------------------------------------------------------------ */

/* Two endings while they are joined. */
typedef struct joining {
    tl_eval *ev;
    tl_gval cond;
    ending *a, *b;
    const tl_gstate *before;
    tl_gpairs pairs;
    tl_gval *results;
    size_t at;
} joining;

/* Collect the pairs of two states: cells, counter and, if wanted, slots. */
static tl_status collect_states(joining *j, const tl_gstate *a,
                                const tl_gstate *b, bool slots)
{
    tl_eval *ev = j->ev;
    size_t cells = tl_trace_of(ev)->cells.len;

    for (size_t i = 0; slots && i < a->nslots; i++) {
        if (a->slots[i].tag != TL_V_EMPTY && b->slots[i].tag != TL_V_EMPTY) {
            TL_TRY(tl_gjoin_collect(ev, &j->pairs, a->slots[i], b->slots[i],
                                    tl_slot_name(ev, i)));
        }
    }
    for (size_t i = 0; i < cells; i++) {
        TL_TRY(tl_gjoin_collect(ev, &j->pairs, tl_gstate_cell(ev, a, i),
                                tl_gstate_cell(ev, b, i), "a cell"));
    }
    if (a->base == b->base) {
        return TL_OK;
    }
    TL_TRY(TL_VEC_PUSH(&j->pairs.a, a->base, ev->diag));
    return TL_VEC_PUSH(&j->pairs.b, b->base, ev->diag);
}

/* The same walk: *out becomes the joined state. */
static tl_status build_states(joining *j, const tl_gstate *a,
                              const tl_gstate *b, bool slots)
{
    tl_eval *ev = j->ev;
    tl_trace *tr = tl_trace_of(ev);

    for (size_t i = 0; slots && i < a->nslots; i++) {
        tl_value v = tl_unknown();

        if (a->slots[i].tag != TL_V_EMPTY && b->slots[i].tag != TL_V_EMPTY) {
            TL_TRY(tl_gjoin_build(ev, a->slots[i], b->slots[i], j->results,
                                  &j->at, &v));
        } else if (a->slots[i].tag == b->slots[i].tag) {
            v = tl_empty();
        } /* else it is set on one way only: who reads it is refused */
        tl_unref(ev->frame->slots[i]);
        ev->frame->slots[i] = v;
    }
    for (size_t i = 0; i < tr->cells.len; i++) {
        tl_value v;

        TL_TRY(tl_gjoin_build(ev, tl_gstate_cell(ev, a, i),
                              tl_gstate_cell(ev, b, i), j->results, &j->at,
                              &v));
        tl_unref(tr->cells.items[i].value);
        tr->cells.items[i].value = v;
        tr->cells.items[i].written =
            tl_gstate_wrote(a, i) || tl_gstate_wrote(b, i);
    }
    tr->b.draws = a->base;
    if (a->base != b->base) {
        tr->b.draws = j->results[j->at++];
        tr->b.first_draw = ev->rt->draws;
    }
    return TL_OK;
}

/* The IF node that owns the arms, its results being the pairs. */
static tl_status make_node(joining *j)
{
    tl_gbuild *g = builder(j->ev);
    uint32_t n = (uint32_t)j->pairs.a.len;

    j->results = tl_calloc(n + 1, sizeof(*j->results));
    if (j->results == NULL) {
        return tl_fail_memory(j->ev->diag, "a branch",
                              n * sizeof(*j->results));
    }
    TL_TRY(tl_gbuild_region_results(g, j->a->region, j->pairs.a.items, n));
    TL_TRY(tl_gbuild_region_results(g, j->b->region, j->pairs.b.items, n));
    return tl_gbuild_flow(g,
                          &(tl_gflow){.kind = TL_G_IF,
                                      .region = j->a->region,
                                      .nregions = 2, .in = &j->cond,
                                      .nin = 1, .like = j->pairs.a.items,
                                      .n = n},
                          j->results);
}

static void joining_fini(joining *j)
{
    tl_gpairs_fini(&j->pairs);
    tl_free(j->results);
}

/* Both arms go on, or both return. */
static tl_status join_both(joining *j, tl_value *value)
{
    bool slots = j->a->flow != TL_FLOW_RETURN;

    TL_TRY(collect_states(j, &j->a->state, &j->b->state, slots));
    if (value != NULL) {
        TL_TRY(tl_gjoin_collect(j->ev, &j->pairs, j->a->value, j->b->value,
                                "the value"));
    }
    TL_TRY(make_node(j));
    TL_TRY(build_states(j, &j->a->state, &j->b->state, slots));
    return value == NULL ? TL_OK
                         : tl_gjoin_build(j->ev, j->a->value, j->b->value,
                                          j->results, &j->at, value);
}

/* The state of a region as it is seen outside, and something of the same types
 * for the other one. */
static tl_status collect_one(joining *j, bool of_a, const tl_gstate *s,
                             const tl_gstate *other, bool slots)
{
    return of_a ? collect_states(j, s, other, slots)
                : collect_states(j, other, s, slots);
}

static tl_status build_one(joining *j, bool of_a, const tl_gstate *s,
                           const tl_gstate *other, bool slots)
{
    return of_a ? build_states(j, s, other, slots)
                : build_states(j, other, s, slots);
}

/* An exit: the arm `x` has returned, under the condition that it ran. */
static tl_status add_exit(joining *j, const ending *x, const tl_gstate *fake,
                          tl_value placeholder, tl_gexit *e)
{
    bool of_a = x == j->a;
    tl_eval *ev = j->ev;
    tl_gval cond = j->cond;

    TL_TRY(build_one(j, of_a, &x->state, fake, is_turn_end(x->flow)));
    TL_TRY(tl_gjoin_build(ev, of_a ? x->value : placeholder,
                          of_a ? placeholder : x->value, j->results, &j->at,
                          &e->value));
    if (!of_a) {
        TL_TRY(tl_gbuild_host(builder(ev), TL_H_not, TL_GC_BOOL, &cond, 1,
                              &cond));
    }
    e->cond = cond;
    e->flow = x->flow;
    e->frame = ev->frame;
    return tl_gstate_take(ev, &e->state);
}

/* One arm goes on; the other one raises or returns. */
static tl_status join_one(joining *j, ending *live, ending *x)
{
    tl_eval *ev = j->ev;
    tl_trace *tr = tl_trace_of(ev);
    tl_gstate fake_live = {0}, fake_x = {0};
    tl_value place = tl_empty();
    tl_gexit e = {.cond = 0};
    tl_gval cond = j->cond;
    bool live_a = live == j->a;
    tl_status st;

    TL_GOTO(st, tl_gstate_fake(ev, &live->state, j->before, &fake_live));
    TL_GOTO(st, collect_one(j, live_a, &live->state, &fake_live, true));
    if (!x->dead) {
        TL_GOTO(st, tl_gstate_fake(ev, &x->state, j->before, &fake_x));
        TL_GOTO(st, tl_gstate_placeholder(ev, x->value, &place));
        TL_GOTO(st, collect_one(j, !live_a, &x->state, &fake_x,
                                is_turn_end(x->flow)));
        TL_GOTO(st, tl_gjoin_collect(ev, &j->pairs, live_a ? place : x->value,
                                     live_a ? x->value : place,
                                     "the result"));
    }
    TL_GOTO(st, make_node(j));
    TL_GOTO(st, build_one(j, live_a, &live->state, &fake_live, true));
    if (x->dead) {
        if (!live_a) { /* the first arm raises: its condition must not hold */
            TL_GOTO(st, tl_gbuild_host(&tr->b, TL_H_not, TL_GC_BOOL, &cond, 1,
                                       &cond));
        }
        st = tl_trace_holds(ev, cond);
    } else {
        tl_gstate now = {0};

        TL_GOTO(st, tl_gstate_take(ev, &now));
        st = add_exit(j, x, &fake_x, place, &e);
        tl_gstate_restore(ev, &now);
        tl_gstate_fini(&now);
        if (st == TL_OK) {
            st = TL_VEC_PUSH(&tr->exits, e, ev->diag);
        }
        if (st == TL_OK) {
            e = (tl_gexit){.cond = 0};
            if (x->flow == TL_FLOW_RETURN) { /* for tl_graph_exits */
                tl_unref(ev->frame->partial);
                ev->frame->partial = tl_bool_value(true);
            }
        }
    }
out:
    tl_gexit_fini(&e);
    tl_unref(place);
    tl_gstate_fini(&fake_live);
    tl_gstate_fini(&fake_x);
    return st;
}

/* Nothing of the arms is used, but regions have owners: what failed may be
 * walked in another way. */
static tl_status own_unused(joining *j)
{
    tl_gbuild *g = builder(j->ev);
    uint32_t around = g->owner;
    tl_gval none;

    if (j->results != NULL || j->a->region == 0) {
        return TL_OK;
    }
    if (j->b->region == 0) {
        TL_TRY(tl_gbuild_region_open(g, NULL, NULL, 0, &j->b->region, &none));
        TL_TRY(tl_gbuild_region_close(g, j->b->region, around));
    }
    return tl_gbuild_flow(g,
                          &(tl_gflow){.kind = TL_G_IF,
                                      .region = j->a->region,
                                      .nregions = 2, .in = &j->cond,
                                      .nin = 1},
                          &none);
}

/* The whole branch.  *value (may be NULL) is that of an expression. */
static tl_status branch(tl_eval *ev, tl_value cond, const arm *one,
                        const arm *two, tl_flow *flow, tl_value *value)
{
    tl_gstate before;
    ending a = {.flow = TL_FLOW_NEXT}, b = {.flow = TL_FLOW_NEXT};
    joining j = {.ev = ev, .a = &a, .b = &b, .before = &before};
    tl_status st;

    TL_TRY(tl_flow_condition(ev, cond, &j.cond));
    TL_TRY(tl_trace_counter(ev)); /* both arms start from here */
    TL_TRY(tl_gstate_take(ev, &before));
    TL_GOTO(st, run_arm(ev, one, &before, &a));
    TL_GOTO(st, run_arm(ev, two, &before, &b));
    bool out_a = a.dead || a.flow != TL_FLOW_NEXT;
    bool out_b = b.dead || b.flow != TL_FLOW_NEXT;

    if (a.dead && b.dead) {
        tl_trace_of(ev)->raised = tl_trace_of(ev)->b.owner != 0;
        tl_trace_of(ev)->gave_up = !tl_trace_of(ev)->raised;
        st = tl_fail(ev->diag, TL_E0602, "it raises an error");
    } else if (a.flow == TL_FLOW_RETURN && b.flow == TL_FLOW_RETURN) {
        *flow = TL_FLOW_RETURN;
        st = join_both(&j, &ev->ret);
    } else if (!a.dead && a.flow == b.flow && is_turn_end(a.flow)) {
        *flow = a.flow;
        st = join_both(&j, NULL);
    } else if (out_a && out_b) { /* one raises, the other one returns */
        st = tl_trace_refuse(ev, "both ways leave, but not in the same way");
    } else if (out_a || out_b) {
        st = join_one(&j, out_a ? &b : &a, out_a ? &a : &b);
        if (st == TL_OK && value != NULL) {
            st = tl_trace_refuse(ev, "one way of the expression raises");
        }
    } else {
        st = join_both(&j, value);
    }
out:
    if (st != TL_OK && own_unused(&j) != TL_OK) {
        (void)tl_diag_pop(ev->diag);
        tl_trace_of(ev)->gave_up = true;
    }
    joining_fini(&j);
    ending_fini(&a);
    ending_fini(&b);
    tl_gstate_fini(&before);
    return st;
}

tl_status tl_graph_branch(tl_eval *ev, tl_value cond, const tl_ast_if *node,
                          uint32_t number, tl_flow *flow)
{
    arm one = {.node = node, .number = number};
    arm two = {.node = node, .number = number, .rest = true};
    tl_status st = branch(ev, cond, &one, &two, flow, NULL);

    if (st != TL_OK) {
        tl_diag_at(ev->diag,
                   TL_AST(arm, node->arms.items[number])->cond->span);
    }
    return st;
}

tl_status tl_graph_choose(tl_eval *ev, tl_value cond, const tl_ast *then,
                          const tl_ast *other, tl_value *out)
{
    arm one = {.expr = then}, two = {.expr = other};
    tl_flow flow = TL_FLOW_NEXT;
    tl_status st = branch(ev, cond, &one, &two, &flow, out);

    if (st != TL_OK) {
        tl_diag_at(ev->diag, then->span);
    }
    return st;
}

/* ---- exits -------------------------------------------------------------- */

void tl_gexit_fini(tl_gexit *e)
{
    tl_unref(e->value);
    tl_gstate_fini(&e->state);
}

/* *r (NULL: the slots) and the running cells, or those of the exit if its
 * condition holds. */
static tl_status choose_exit(tl_eval *ev, tl_gexit *e, tl_value *r)
{
    tl_gbuild *g = builder(ev);
    uint32_t around = g->owner;
    ending a = {.flow = e->flow, .value = tl_ref(e->value)};
    ending b = {.flow = e->flow};
    joining j = {.ev = ev, .cond = e->cond, .a = &a, .b = &b};
    tl_value joined = tl_empty();
    tl_gval first;
    tl_status st;

    a.state = e->state;
    e->state = (tl_gstate){0};
    b.value = r != NULL ? tl_ref(*r) : tl_empty();
    TL_GOTO(st, tl_trace_counter(ev));
    TL_GOTO(st, tl_gstate_take(ev, &b.state));
    TL_GOTO(st, tl_gbuild_region_open(g, NULL, NULL, 0, &a.region, &first));
    TL_GOTO(st, tl_gbuild_region_close(g, a.region, around));
    TL_GOTO(st, tl_gbuild_region_open(g, NULL, NULL, 0, &b.region, &first));
    TL_GOTO(st, tl_gbuild_region_close(g, b.region, around));
    TL_GOTO(st, join_both(&j, r != NULL ? &joined : NULL));
    if (r != NULL) {
        tl_unref(*r);
        *r = joined;
    }
out:
    joining_fini(&j);
    ending_fini(&a);
    ending_fini(&b);
    return st;
}

tl_status tl_graph_exits(tl_eval *ev, tl_value *r)
{
    tl_trace *tr = tl_trace_of(ev);
    tl_status st = TL_OK;

    while (tr->exits.len > 0 && st == TL_OK &&
           tr->exits.items[tr->exits.len - 1].frame == ev->frame) {
        tl_gexit e = tr->exits.items[--tr->exits.len];

        st = choose_exit(ev, &e, r);
        tl_gexit_fini(&e);
    }
    return st;
}

/* broke = cond ? (does this exit end the loop?) : broke */
static tl_status fold_break(tl_eval *ev, const tl_gexit *e, tl_gval *broke)
{
    tl_gbuild *g = builder(ev);
    tl_gscalar ends = {.i = 0}, no = {.i = 0};
    tl_gval in[3] = {e->cond, 0, *broke};

    ends.b = e->flow == TL_FLOW_BREAK;
    TL_TRY(tl_gbuild_num(g, TL_GC_BOOL, ends, &in[1]));
    if (in[2] == 0) {
        TL_TRY(tl_gbuild_num(g, TL_GC_BOOL, no, &in[2]));
    }
    return tl_gbuild_host(g, TL_H_choose, TL_GC_BOOL, in, 3, broke);
}

tl_status tl_graph_turn_ends(tl_eval *ev, size_t from, tl_gval *broke)
{
    tl_trace *tr = tl_trace_of(ev);
    bool any = false;
    tl_status st = TL_OK;

    *broke = 0;
    for (size_t i = from; i < tr->exits.len; i++) {
        any = any || tr->exits.items[i].flow == TL_FLOW_BREAK;
    }
    while (tr->exits.len > from && st == TL_OK) {
        tl_gexit e = tr->exits.items[--tr->exits.len];

        if (e.flow == TL_FLOW_RETURN) {
            st = tl_trace_refuse(ev, "it returns from inside of a loop");
        }
        if (st == TL_OK && any) {
            st = fold_break(ev, &e, broke);
        }
        if (st == TL_OK) {
            st = choose_exit(ev, &e, NULL);
        }
        tl_gexit_fini(&e);
    }
    return st;
}
