/* shape_flow.c - the shape pass where the way is not known: arms, loops, try.
 *
 * Both arms of an unknown condition are walked from the same state and joined;
 * errors in them are left to the run.  The first turn of a loop is walked as
 * it will be, so what is wrong there is reported; later turns generalise what
 * the first one changed, until nothing changes. */
#include "interp/container.h"
#include "interp/shape_impl.h"

#define MAX_TURNS 4  /* joins before what still changes becomes UNKNOWN */
#define UNROLL 64    /* longest list that is walked item by item */
#define UNROLL_RANGE 4

/* How an arm ended. */
typedef struct ending {
    bool dead;
    tl_flow flow;
    tl_value ret; /* with TL_FLOW_RETURN */
    tl_snapshot state;
} ending;

static void ending_fini(ending *e)
{
    tl_unref(e->ret);
    tl_snapshot_fini(&e->state);
}

/* After something ran as a `maybe`: keep how it ended. */
static tl_status ending_take(tl_eval *ev, const tl_maybe *m, tl_status st,
                             tl_flow flow, ending *e)
{
    *e = (ending){.flow = flow};
    TL_TRY(tl_maybe_end(ev, m, st, &e->dead));
    e->dead = e->dead || flow == TL_FLOW_DEAD;
    if (flow == TL_FLOW_RETURN && !e->dead) {
        e->ret = ev->ret;
        ev->ret = tl_empty();
    }
    return tl_snapshot_take(ev, &e->state);
}

static tl_status add_partial(tl_eval *ev, tl_value ret)
{
    tl_value *p = &ev->frame->partial;

    if (p->tag == TL_V_EMPTY) {
        *p = tl_ref(ret);
        return TL_OK;
    }
    return tl_shape_join(ev, p, ret);
}

/* The running state is that after `b`; combine it with how `a` ended. */
static tl_status combine(tl_eval *ev, ending *a, ending *b, tl_flow *flow)
{
    bool ra = a->flow == TL_FLOW_RETURN, rb = b->flow == TL_FLOW_RETURN;

    if (a->dead && b->dead) {
        return tl_shape_give_up(ev);
    }
    if (a->dead || b->dead) {
        ending *live = a->dead ? b : a;

        TL_TRY(tl_snapshot_restore(ev, &live->state));
        ev->ret = live->ret;
        live->ret = tl_empty();
        *flow = live->flow;
        return TL_OK;
    }
    if (ra && rb) {
        ev->ret = a->ret;
        a->ret = tl_empty();
        *flow = TL_FLOW_RETURN;
        return tl_shape_join(ev, &ev->ret, b->ret);
    }
    if (ra || rb) {
        ending *live = ra ? b : a;

        TL_TRY(add_partial(ev, ra ? a->ret : b->ret));
        TL_TRY(tl_snapshot_restore(ev, &live->state));
        *flow = live->flow == TL_FLOW_RETURN ? TL_FLOW_NEXT : live->flow;
        return TL_OK;
    }
    /* a break or continue on one path goes on with the joined state */
    *flow = a->flow == b->flow ? a->flow : TL_FLOW_NEXT;
    return tl_snapshot_join(ev, &a->state, false, NULL);
}

tl_status tl_shape_branch(tl_eval *ev, tl_value cond, const tl_ast_if *node,
                          uint32_t arm, tl_flow *flow)
{
    const tl_ast_arm *a = TL_AST(arm, node->arms.items[arm]);
    tl_snapshot before;
    ending one = {0}, two = {0};
    tl_maybe m;
    tl_flow f = TL_FLOW_NEXT;

    (void)cond;
    TL_TRY(tl_snapshot_take(ev, &before));
    tl_maybe_begin(ev, &m);
    tl_status st = tl_eval_block(ev, a->body, &f);

    st = ending_take(ev, &m, st, f, &one);
    if (st == TL_OK) {
        st = tl_snapshot_restore(ev, &before);
    }
    if (st == TL_OK) {
        f = TL_FLOW_NEXT;
        tl_maybe_begin(ev, &m);
        st = tl_eval_if_from(ev, node, arm + 1, &f);
        st = ending_take(ev, &m, st, f, &two);
    }
    if (st == TL_OK) {
        st = combine(ev, &one, &two, flow);
    }
    tl_snapshot_fini(&before);
    ending_fini(&one);
    ending_fini(&two);
    return st;
}

tl_status tl_shape_choose(tl_eval *ev, tl_value cond, const tl_ast *then,
                          const tl_ast *other, tl_value *out)
{
    tl_value a = tl_empty(), b = tl_empty();
    bool dead_a, dead_b;
    tl_snapshot before;
    tl_maybe m;

    (void)cond;
    TL_TRY(tl_snapshot_take(ev, &before));
    tl_maybe_begin(ev, &m);
    tl_status st = tl_maybe_end(ev, &m, tl_eval_expr(ev, then, &a), &dead_a);

    if (st == TL_OK) { /* reads that give values away: both arms may */
        st = tl_snapshot_restore(ev, &before);
    }
    if (st == TL_OK) {
        tl_maybe_begin(ev, &m);
        st = tl_maybe_end(ev, &m, tl_eval_expr(ev, other, &b), &dead_b);
    }
    if (st == TL_OK && dead_a && dead_b) {
        st = tl_shape_give_up(ev);
    } else if (st == TL_OK && !dead_a && !dead_b) {
        st = tl_shape_join(ev, &a, b);
    }
    tl_snapshot_fini(&before);
    if (st != TL_OK) {
        tl_unref(a);
        tl_unref(b);
        return st;
    }
    if (dead_a) {
        *out = b;
    } else {
        tl_unref(b);
        *out = a;
    }
    return TL_OK;
}

/* ---- loops ------------------------------------------------------------- */

bool tl_shape_fold_loop(tl_eval *ev, tl_value it)
{
    (void)ev;
    switch (it.tag) {
    case TL_V_RANGE:
        return tl_range_len(it.range) > UNROLL_RANGE;
    case TL_V_LIST:
    case TL_V_TUPLE:
    case TL_V_STR:
    case TL_V_DICT:
        return tl_container_len(it) > UNROLL;
    case TL_V_UNKNOWN:
    case TL_V_TENSOR:
    case TL_V_NODE:
    case TL_V_MODULE:
    case TL_V_ZIP:
        return true;
    default:
        return false; /* cannot be iterated: the evaluator says so */
    }
}

/* A number or text that differs from turn to turn. */
static void vary(tl_value *v)
{
    if (v->tag == TL_V_INT || v->tag == TL_V_STR) {
        tl_drop(v);
        *v = tl_unknown();
    }
}

/* The same for the items of a tuple, which the first turn sees too. */
static tl_status vary_items(tl_value *tuple, tl_diag *diag)
{
    tl_value copy, old = *tuple;

    TL_TRY(tl_seq_alloc(&copy, TL_V_TUPLE, old.seq->len, diag));
    for (size_t i = 0; i < old.seq->len; i++) {
        copy.seq->items[i] = tl_ref(old.seq->items[i]);
        vary(&copy.seq->items[i]);
    }
    *tuple = copy;
    tl_unref(old);
    return TL_OK;
}

/* The first item, and what every item is; *none: there is no turn. */
static tl_status loop_items(tl_eval *ev, tl_value it, tl_value *first,
                            tl_value *any, bool *none)
{
    tl_iter iter = {0};
    bool more = false;

    *none = false;
    *first = *any = tl_unknown();
    if (it.tag == TL_V_UNKNOWN) {
        return TL_OK;
    }
    tl_status st = tl_iter_init_take(ev, tl_ref(it), &iter);

    if (st == TL_OK) {
        st = tl_iter_next(ev, &iter, &more, first);
    }
    *none = st == TL_OK && !more;
    if (st == TL_OK && more) {
        *any = tl_ref(*first);
    }
    for (int i = 0; i < UNROLL && st == TL_OK && more &&
                    (it.tag == TL_V_LIST || it.tag == TL_V_TUPLE);
         i++) {
        tl_value v = tl_empty();

        st = tl_iter_next(ev, &iter, &more, &v);
        if (st == TL_OK && more) {
            st = tl_shape_join(ev, any, v);
        }
        tl_unref(v);
    }
    tl_iter_fini(&iter);
    vary(any); /* a range, a dict, a text: another one each turn */
    if (it.tag == TL_V_ZIP && any->tag == TL_V_TUPLE && st == TL_OK) {
        st = vary_items(any, ev->diag);
    }
    return st;
}

/* One turn; *done: the loop ends here for certain. */
static tl_status turn(tl_eval *ev, const tl_ast *node, tl_value item,
                      tl_flow *flow, bool *done)
{
    const tl_ast *body;

    *done = false;
    if (node->kind == TL_AST_FOR) {
        body = TL_AST(for, node)->body;
        TL_TRY(tl_eval_assign_take(ev, TL_AST(for, node)->target,
                                   tl_ref(item)));
    } else {
        tl_value c = tl_empty();
        bool known, yes;

        body = TL_AST(while, node)->body;
        TL_TRY(tl_eval_expr(ev, TL_AST(while, node)->cond, &c));
        tl_status st = tl_eval_truth(ev, c, &known, &yes);

        tl_unref(c);
        if (st != TL_OK) {
            tl_diag_at(ev->diag, TL_AST(while, node)->cond->span);
            return st;
        }
        if (known && !yes) {
            *done = true;
            return TL_OK;
        }
    }
    TL_TRY(tl_eval_block(ev, body, flow));
    *done = *flow != TL_FLOW_NEXT && *flow != TL_FLOW_CONTINUE;
    if (*flow == TL_FLOW_BREAK || *flow == TL_FLOW_CONTINUE) {
        *flow = TL_FLOW_NEXT;
    }
    return TL_OK;
}

/* Later turns, until the state before and after one are the same. */
static tl_status settle(tl_eval *ev, const tl_ast *node, tl_value any)
{
    bool changed = true, dead = false, done = false;
    tl_status st = TL_OK;

    for (int i = 0; i < MAX_TURNS && changed && st == TL_OK; i++) {
        tl_snapshot before;
        tl_flow flow = TL_FLOW_NEXT;
        tl_maybe m;

        TL_TRY(tl_snapshot_take(ev, &before));
        tl_maybe_begin(ev, &m);
        st = turn(ev, node, any, &flow, &done);
        st = tl_maybe_end(ev, &m, st, &dead);
        if (st == TL_OK && dead) {
            st = tl_snapshot_restore(ev, &before);
            changed = false;
        } else if (st == TL_OK) {
            if (flow == TL_FLOW_RETURN) {
                st = add_partial(ev, ev->ret);
                tl_drop(&ev->ret);
            }
            if (st == TL_OK) {
                st = tl_snapshot_join(ev, &before, i + 1 == MAX_TURNS,
                                      &changed);
            }
        }
        tl_snapshot_fini(&before);
    }
    return st;
}

tl_status tl_shape_loop(tl_eval *ev, const tl_ast *node, tl_value iterable,
                        tl_flow *flow)
{
    tl_value first = tl_empty(), any = tl_empty();
    tl_snapshot before = {0};
    bool none = false, done = false;
    tl_status st = TL_OK;

    if (node->kind == TL_AST_FOR) {
        st = loop_items(ev, iterable, &first, &any, &none);
        if (st != TL_OK) {
            tl_diag_at(ev->diag, TL_AST(for, node)->iter->span);
        }
    }
    if (st == TL_OK && !none) {
        st = tl_snapshot_take(ev, &before);
    }
    if (st == TL_OK && !none) {
        st = turn(ev, node, first, flow, &done);
    }
    if (st == TL_OK && !none && !done) {
        st = tl_snapshot_join(ev, &before, false, NULL);
        if (st == TL_OK) {
            st = settle(ev, node, any);
        }
    }
    tl_snapshot_fini(&before);
    tl_unref(first);
    tl_unref(any);
    return st;
}

/* ---- try --------------------------------------------------------------- */

tl_status tl_shape_try(tl_eval *ev, const tl_ast *node, tl_flow *flow)
{
    const tl_ast_try *n = TL_AST(try, node);
    tl_snapshot before;
    ending one = {0}, two = {0};
    tl_maybe m;
    tl_flow f = TL_FLOW_NEXT;

    TL_TRY(tl_snapshot_take(ev, &before));
    tl_maybe_begin(ev, &m);
    tl_status st = tl_eval_block(ev, n->body, &f);

    st = ending_take(ev, &m, st, f, &one);
    if (st == TL_OK) { /* it may fail anywhere: what it assigns is open */
        st = tl_snapshot_join(ev, &before, false, NULL);
    }
    if (st == TL_OK) {
        f = TL_FLOW_NEXT;
        tl_maybe_begin(ev, &m);
        st = tl_eval_assign_take(ev, n->target, tl_unknown());
        if (st == TL_OK) {
            st = tl_eval_block(ev, n->handler, &f);
        }
        st = ending_take(ev, &m, st, f, &two);
    }
    if (st == TL_OK) {
        st = combine(ev, &one, &two, flow);
    }
    tl_snapshot_fini(&before);
    ending_fini(&one);
    ending_fini(&two);
    return st;
}
