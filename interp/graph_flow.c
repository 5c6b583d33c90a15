/* graph_flow.c - branches of the graph domain.
 *
 * Both arms of a condition that the run decides are walked into regions from
 * the same state; what they leave differently becomes a result of the IF node
 * that owns them.  An arm that raises becomes an assertion.  Where an arm
 * leaves - a return, break or continue - what follows the branch is walked
 * into a region, too (graph_ways.h). */
#include "interp/graph_flow.h"

#include <string.h>


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

/* ---- arms --------------------------------------------------------------- */

/* What is walked in an arm: statements of an `if`, an expression, or nothing:
 * its value is there. */
typedef struct arm {
    const tl_ast_if *node;
    uint32_t number;
    bool rest; /* the arms after `number` */
    const tl_ast *expr;
    const tl_value *value;
} arm;

static tl_status walk(tl_eval *ev, const arm *a, tl_flow *flow,
                      tl_value *value)
{
    if (a->value != NULL) {
        *value = tl_ref(*a->value);
        return TL_OK;
    }
    if (a->expr != NULL) {
        return tl_eval_expr(ev, a->expr, value);
    }
    if (a->rest) {
        return tl_eval_if_from(ev, a->node, a->number + 1, flow);
    }
    return tl_eval_block(
        ev, TL_AST(arm, a->node->arms.items[a->number])->body, flow);
}

/* Walk an arm in a region of its own.  stays (may be NULL): if all that it
 * does is to go on, the region stays open, *stays is set, and `out` is not. */
static tl_status run_arm(tl_eval *ev, const arm *a, const tl_gstate *before,
                         bool *stays, tl_garm *out)
{
    tl_trace *tr = tl_trace_of(ev);
    uint32_t around = tr->b.owner;
    size_t from = tr->exits.len;
    tl_flow flow = TL_FLOW_NEXT;
    tl_value value = tl_empty();
    tl_gval first;

    TL_TRY(tl_gbuild_region_open(&tr->b, NULL, NULL, 0, &out->region,
                                 &first));
    tl_status st = walk(ev, a, &flow, &value);

    if (stays != NULL && st == TL_OK && flow == TL_FLOW_NEXT &&
        tr->exits.len == from) {
        *stays = true;
        return TL_OK;
    }
    st = tl_ways_close(ev, st, flow, &value, before, from, true, &out->ends);
    tl_unref(value);
    tl_status closed = tl_gbuild_region_close(&tr->b, out->region, around);

    tl_gstate_restore(ev, before);
    return st != TL_OK ? st : closed;
}

/* ---- a branch ----------------------------------------------------------- */

typedef struct branching {
    tl_eval *ev;
    tl_gval cond;
    const arm *one, *two;
    uint32_t around;
    tl_gstate before;
    tl_garm a, b;
    tl_flow *flow;
    tl_value *value;
} branching;

static bool no_way(const tl_gends *e)
{
    return !e->way[TL_FLOW_NEXT].is && !e->way[TL_FLOW_BREAK].is &&
           !e->way[TL_FLOW_CONTINUE].is && !e->way[TL_FLOW_RETURN].is;
}

/* The first arm raises: its condition must not hold, and the second one is
 * what follows. */
static tl_status first_raises(branching *j)
{
    tl_eval *ev = j->ev;
    tl_gval none, not;

    TL_TRY(tl_gbuild_region_open(builder(ev), NULL, NULL, 0, &j->b.region,
                                 &none));
    TL_TRY(tl_gbuild_region_close(builder(ev), j->b.region, j->around));
    TL_TRY(tl_gbuild_flow(builder(ev),
                          &(tl_gflow){.kind = TL_G_IF, .region = j->a.region,
                                      .nregions = 2, .in = &j->cond,
                                      .nin = 1},
                          &none));
    j->a.region = j->b.region = 0;
    TL_TRY(tl_gbuild_host(builder(ev), TL_H_not, TL_GC_BOOL, &j->cond, 1,
                          &not));
    TL_TRY(tl_trace_holds(ev, not));
    return walk(ev, j->two, j->flow, j->value);
}

/* The first arm has left, the second one stays open for what follows. */
static tl_status stay(branching *j)
{
    tl_gexit x = {.cond = j->cond, .left = j->a.region,
                  .region = j->b.region, .around = j->around,
                  .ends = j->a.ends, .before = j->before};

    memset(&j->a, 0, sizeof(j->a));
    memset(&j->b, 0, sizeof(j->b));
    memset(&j->before, 0, sizeof(j->before));
    return tl_ways_leave(j->ev, &x);
}

static tl_status both_arms(branching *j)
{
    tl_eval *ev = j->ev;
    bool stays = false, leaves;
    tl_gends e = {0};

    TL_TRY(run_arm(ev, j->one, &j->before, NULL, &j->a));
    if (no_way(&j->a.ends)) {
        return first_raises(j);
    }
    leaves = !j->a.ends.way[TL_FLOW_NEXT].is && j->value == NULL;
    TL_TRY(run_arm(ev, j->two, &j->before, leaves ? &stays : NULL, &j->b));
    if (stays) {
        return stay(j);
    }
    TL_TRY(tl_ways_join(ev, j->cond, &j->before, &j->a, &j->b, &e));
    return tl_ways_follow(ev, &e, j->flow, j->value);
}

/* The whole branch.  *value (may be NULL) is that of an expression. */
static tl_status branch(tl_eval *ev, tl_value cond, const arm *one,
                        const arm *two, tl_flow *flow, tl_value *value)
{
    branching j = {.ev = ev, .one = one, .two = two,
                   .around = builder(ev)->owner, .flow = flow,
                   .value = value};
    tl_status st;

    TL_TRY(tl_flow_condition(ev, cond, &j.cond));
    TL_TRY(tl_trace_counter(ev)); /* both arms start from here */
    TL_TRY(tl_gstate_take(ev, &j.before));
    st = both_arms(&j);
    if (st != TL_OK) {
        tl_ways_kill(ev, j.b.region);
        tl_ways_kill(ev, j.a.region);
    }
    tl_gends_fini(&j.a.ends);
    tl_gends_fini(&j.b.ends);
    tl_gstate_fini(&j.before);
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

/* An arm of an `if` on a symbol. */
static tl_status symbol_arm(branching *j, const arm *a, bool taken,
                            tl_garm *out)
{
    tl_gbuild *b = builder(j->ev);

    b->sealed += !taken;
    tl_status st = run_arm(j->ev, a, &j->before, NULL, out);

    b->sealed -= !taken;
    if (st == TL_OK && !tl_ways_is_next(&out->ends)) {
        st = tl_trace_refuse(j->ev, "an arm leaves");
    }
    return st;
}

/* Values that nobody has to read later: tensors and floats. */
static bool is_plain(tl_value v)
{
    return tl_is_tensor(v) ||
           (tl_is_any_number(v) && tl_number_tag(v) == TL_V_FLOAT);
}

static tl_status symbol_arms(branching *j, bool taken)
{
    tl_flow flow = TL_FLOW_NEXT;
    tl_gends e = {0};

    TL_TRY(symbol_arm(j, j->one, taken, &j->a));
    TL_TRY(symbol_arm(j, j->two, !taken, &j->b));
    if (j->value != NULL &&
        (!is_plain(j->a.ends.way[TL_FLOW_NEXT].value) ||
         !is_plain(j->b.ends.way[TL_FLOW_NEXT].value))) {
        return tl_trace_refuse(j->ev, "a choice of what may be read");
    }
    TL_TRY(tl_ways_join(j->ev, j->cond, &j->before, &j->a, &j->b, &e));
    return tl_ways_follow(j->ev, &e, &flow, j->value);
}

/* Arms that could not be joined never run, and the `if` is read. */
static tl_status read_instead(branching *j, const void *node, tl_status st)
{
    tl_eval *ev = j->ev;
    tl_trace *tr = tl_trace_of(ev);

    if (!tl_status_catchable(st) || st == TL_ERR_MEMORY || tr->gave_up) {
        return st;
    }
    (void)tl_diag_pop(ev->diag);
    tl_ways_kill(ev, j->b.region);
    tl_ways_kill(ev, j->a.region);
    tl_drop(&ev->ret);
    tr->raised = false;
    tl_gstate_restore(ev, &j->before);
    return tl_map_set(&tr->read_ifs, node, tr)
               ? TL_OK
               : tl_fail_memory(ev->diag, "a trace", sizeof(node));
}

static tl_status join_symbol(tl_eval *ev, tl_value cond, const void *node,
                             const arm *one, const arm *two, tl_value *value,
                             bool *joined)
{
    branching j = {.ev = ev, .one = one, .two = two, .value = value,
                   .around = builder(ev)->owner};
    tl_value hint = cond.sym->hint;
    tl_status st;

    *joined = false;
    if ((hint.tag != TL_V_BOOL && hint.tag != TL_V_INT) ||
        tl_map_get(&tl_trace_of(ev)->read_ifs, node, NULL) != NULL) {
        return TL_OK;
    }
    TL_TRY(tl_flow_condition(ev, cond, &j.cond));
    TL_TRY(tl_trace_counter(ev));
    TL_TRY(tl_gstate_take(ev, &j.before));
    st = symbol_arms(&j, hint.tag == TL_V_BOOL ? hint.b : hint.i != 0);
    *joined = st == TL_OK;
    if (st != TL_OK) {
        st = read_instead(&j, node, st);
    }
    tl_gends_fini(&j.a.ends);
    tl_gends_fini(&j.b.ends);
    tl_gstate_fini(&j.before);
    return st;
}

tl_status tl_graph_branch_symbol(tl_eval *ev, tl_value cond,
                                 const tl_ast_if *node, uint32_t number,
                                 bool *joined)
{
    arm one = {.node = node, .number = number};
    arm two = {.node = node, .number = number, .rest = true};

    return join_symbol(ev, cond, node, &one, &two, NULL, joined);
}

tl_status tl_graph_choose_symbol(tl_eval *ev, tl_value cond,
                                 const tl_ast_cond *node, tl_value *out,
                                 bool *joined)
{
    arm one = {.expr = node->then}, two = {.expr = node->other};

    return join_symbol(ev, cond, node, &one, &two, out, joined);
}

/* ---- and, or ------------------------------------------------------------ */

/* May it be evaluated though the program would not: it neither fails nor has
 * an effect? */
static bool is_harmless(void *arg, tl_ast *e)
{
    switch (e->kind) {
    case TL_AST_NAME:
    case TL_AST_INT:
    case TL_AST_FLOAT:
    case TL_AST_BOOL:
        return true;
    case TL_AST_BINARY:
        if (TL_AST(binary, e)->op != TL_OP_ADD &&
            TL_AST(binary, e)->op != TL_OP_SUB &&
            TL_AST(binary, e)->op != TL_OP_MUL) {
            return false;
        }
        return tl_ast_children(e, is_harmless, arg);
    case TL_AST_COMPARE:
    case TL_AST_LOGIC:
    case TL_AST_UNARY:
        return tl_ast_children(e, is_harmless, arg);
    default:
        return false;
    }
}

bool tl_graph_is_harmless(const tl_ast *e)
{
    return is_harmless(NULL, (tl_ast *)e);
}

static bool truth_now(tl_value v)
{
    return v.tag == TL_V_SYM ? v.sym->hint.b : v.b;
}

tl_status tl_graph_both(tl_eval *ev, tl_oper op, tl_value a, tl_value b,
                        tl_value *out)
{
    bool or = op == TL_OP_OR;
    bool now = or ? truth_now(a) || truth_now(b)
                  : truth_now(a) && truth_now(b);
    tl_gval in[2], made;

    TL_TRY(tl_sym_host(ev, a, false, &in[0]));
    TL_TRY(tl_sym_host(ev, b, false, &in[1]));
    TL_TRY(tl_gbuild_host(builder(ev), or ? TL_H_or : TL_H_and, TL_GC_BOOL,
                          in, 2, &made));
    return tl_sym_new(ev, made, tl_bool_value(now), out);
}

tl_status tl_graph_not(tl_eval *ev, tl_value a, tl_value *out)
{
    tl_gval in, made;

    TL_TRY(tl_sym_host(ev, a, false, &in));
    TL_TRY(tl_gbuild_host(builder(ev), TL_H_not, TL_GC_BOOL, &in, 1, &made));
    return tl_sym_new(ev, made, tl_bool_value(!truth_now(a)), out);
}

static bool is_bool(tl_value v)
{
    return tl_is_any_number(v) && tl_number_tag(v) == TL_V_BOOL;
}

/* The right side of a logical symbol, which may not be reached in the traced
 * call; *done is false, and nothing has happened, where it is no bool, or
 * fails. */
static tl_status right_side(tl_eval *ev, bool reached, const tl_ast *right,
                            tl_value *out, bool *done)
{
    tl_gbuild *b = builder(ev);
    tl_gstate before;

    TL_TRY(tl_gstate_take(ev, &before));
    b->sealed += !reached;
    tl_status st = tl_eval_expr(ev, right, out);

    b->sealed -= !reached;
    *done = st == TL_OK && is_bool(*out);
    if (st == TL_OK && !*done) {
        tl_drop(out);
        tl_gstate_restore(ev, &before); /* last reads empty slots */
    }
    if (st != TL_OK && !reached && tl_status_catchable(st) &&
        st != TL_ERR_MEMORY && !tl_trace_of(ev)->gave_up) {
        (void)tl_diag_pop(ev->diag);
        tl_trace_of(ev)->raised = false;
        tl_gstate_restore(ev, &before);
        st = TL_OK;
    }
    tl_gstate_fini(&before);
    return st;
}

tl_status tl_graph_logic(tl_eval *ev, const tl_ast_logic *n, tl_value a,
                         tl_value *out, bool *done)
{
    arm right = {.expr = n->right}, left = {.value = &a};
    bool late = tl_sym_is_late(ev, a), or = n->op == TL_OP_OR;
    tl_value b = tl_empty();
    tl_flow flow = TL_FLOW_NEXT;
    tl_status st;

    *done = false;
    if (is_bool(a) && tl_graph_is_harmless(n->right)) {
        TL_TRY(right_side(ev, late || truth_now(a) != or, n->right, &b,
                          done));
        if (*done) {
            st = tl_graph_both(ev, n->op, a, b, out);
            tl_unref(b);
            return st;
        }
    }
    if (!late) {
        return TL_OK;
    }
    *done = true;
    st = branch(ev, a, or ? &left : &right, or ? &right : &left, &flow, out);
    if (st != TL_OK) {
        tl_diag_at(ev->diag, n->base.span);
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
