/* eval_stmt.c - statements and control flow. */
#include "interp/builtin.h"
#include "interp/domain.h"
#include "interp/eval_impl.h"
#include "interp/format.h"
#include "interp/late.h"
#include "interp/graph_flow.h"
#include "interp/renew.h"
#include "lang/habits.h"
#include "runtime/base/mem.h"

tl_status tl_eval_tick(tl_eval *ev, tl_span span)
{
    tl_status st = tl_rt_tick(ev->rt);

    if (st != TL_OK) {
        tl_diag_at(ev->diag, span);
    }
    return st;
}

tl_status tl_eval_rhs(tl_eval *ev, const tl_ast *e, tl_value *out,
                      tl_flow *flow)
{
    if (e->kind == TL_AST_GRAD) {
        return tl_eval_grad(ev, e, out, flow);
    }
    return tl_eval_expr(ev, e, out);
}

static tl_status stmt_assign(tl_eval *ev, const tl_ast_assign *n,
                             tl_flow *flow)
{
    tl_value v = tl_empty();

    TL_TRY(tl_eval_rhs(ev, n->value, &v, flow));
    if (*flow != TL_FLOW_NEXT) {
        tl_unref(v);
        return TL_OK;
    }
    for (uint32_t i = 0; i < n->targets.len; i++) {
        bool last = i + 1 == n->targets.len;
        tl_status st = tl_eval_assign_take(ev, n->targets.items[i],
                                           last ? v : tl_ref(v));

        if (st != TL_OK) {
            if (!last) {
                tl_unref(v);
            }
            return st;
        }
    }
    return TL_OK;
}

/* x: T = v, inside functions and at top level. */
static tl_status stmt_decl(tl_eval *ev, const tl_ast_decl *n)
{
    tl_value v = tl_empty();
    tl_flow flow = TL_FLOW_NEXT;

    if (n->value == NULL) {
        return TL_OK;
    }
    TL_TRY(tl_eval_rhs(ev, n->value, &v, &flow));
    tl_status st = tl_check_type(ev, n->type, &v, "the value",
                                 n->target->span);

    if (st != TL_OK) {
        tl_unref(v);
        return st;
    }
    return tl_eval_assign_take(ev, n->target, v);
}

static tl_status stmt_return(tl_eval *ev, const tl_ast_return *n,
                             tl_flow *flow)
{
    tl_value v = tl_none();

    if (n->value != NULL) {
        TL_TRY(tl_eval_rhs(ev, n->value, &v, flow));
    }
    if (*flow == TL_FLOW_NEXT) {
        tl_unref(ev->ret);
        ev->ret = v;
        *flow = TL_FLOW_RETURN;
    } else {
        tl_unref(v);
    }
    return TL_OK;
}

/* The names of value-returning methods tell what the reader expected. */
static bool loses_value(tl_value receiver)
{
    return receiver.tag == TL_V_STR || receiver.tag == TL_V_LIST ||
           receiver.tag == TL_V_DICT || receiver.tag == TL_V_TUPLE ||
           tl_is_tensor(receiver);
}

/* x.m(...) as a statement: refuse it when x is a plain value. */
static tl_status check_unused(tl_eval *ev, const tl_ast_expr_stmt *n)
{
    const tl_ast_call *call = TL_AST(call, n->value);
    const tl_ast_attr *attr = TL_AST(attr, call->callee);
    tl_value v = tl_empty();

    if (attr->object->kind != TL_AST_NAME ||
        TL_AST(name, attr->object)->ref.last) {
        return TL_OK;
    }
    TL_TRY(tl_eval_expr(ev, attr->object, &v));
    bool lost = loses_value(v);
    tl_tag tag = v.tag;

    tl_unref(v);
    if (!lost) {
        return TL_OK;
    }
    if (tl_builtin_method(ev, tag, attr->name) == NULL) {
        return TL_OK; /* E0211 says it better */
    }
    const char *x = TL_AST(name, attr->object)->name->text;
    tl_status st = tl_fail_at(ev->diag, TL_E0223, n->base.span,
                              "`%s.%s(...)` returns a new value, which "
                              "nothing keeps",
                              x, attr->name->text);
    const char *help = tl_habit_method(attr->name->text);

    if (help != NULL && tag != TL_V_TENSOR) {
        tl_diag_help(ev->diag, "values do not change in place; write `%s`",
                     help);
    } else {
        tl_diag_help(ev->diag, "write `%s = %s.%s(...)`", x, x,
                     attr->name->text);
    }
    return st;
}

static tl_status stmt_expr(tl_eval *ev, const tl_ast_expr_stmt *n,
                           tl_flow *flow)
{
    tl_value v = tl_empty();

    if (n->unused) {
        TL_TRY(check_unused(ev, n));
    }
    TL_TRY(tl_eval_rhs(ev, n->value, &v, flow));
    tl_unref(v);
    return TL_OK;
}

/* The truth of a condition's value, dropped on failure; *known false: the
 * domain must decide. */
static tl_status truth_of(tl_eval *ev, const tl_ast *cond, tl_value *value,
                          bool *known, bool *yes)
{
    tl_status st = tl_eval_truth(ev, *value, known, yes);

    if (st != TL_OK) {
        tl_diag_at(ev->diag, cond->span);
        tl_drop(value);
    }
    return st;
}

static tl_status eval_arms(tl_eval *ev, const tl_ast_if *n, uint32_t arm,
                           tl_flow *flow)
{
    for (; arm < n->arms.len; arm++) {
        const tl_ast_arm *a = TL_AST(arm, n->arms.items[arm]);
        tl_value c = tl_empty();
        bool known = true, yes = false;

        TL_TRY(tl_eval_expr(ev, a->cond, &c));
        if (tl_is_sym(c) && !tl_sym_is_late(ev, c)) {
            bool joined = false;
            tl_status st = tl_graph_branch_symbol(ev, c, n, arm, &joined);

            if (st != TL_OK || joined) {
                tl_unref(c);
                return st;
            }
        }
        TL_TRY(truth_of(ev, a->cond, &c, &known, &yes));
        if (!known) {
            tl_status st = ev->domain->branch(ev, c, n, arm, flow);

            tl_unref(c);
            return st;
        }
        tl_unref(c);
        if (yes) {
            return tl_eval_block(ev, a->body, flow);
        }
    }
    return n->other != NULL ? tl_eval_block(ev, n->other, flow) : TL_OK;
}

tl_status tl_eval_if_from(tl_eval *ev, const tl_ast_if *n, uint32_t arm,
                          tl_flow *flow)
{
    return eval_arms(ev, n, arm, flow);
}

/* Does the flow of a body end its loop?  Turns break and continue into the
 * flow after the loop. */
static bool loop_ends(tl_flow *flow)
{
    if (*flow == TL_FLOW_CONTINUE) {
        *flow = TL_FLOW_NEXT;
    }
    if (*flow == TL_FLOW_BREAK) {
        *flow = TL_FLOW_NEXT;
        return true;
    }
    return *flow != TL_FLOW_NEXT;
}

static tl_status stmt_while(tl_eval *ev, const tl_ast_while *n, tl_flow *flow)
{
    for (;;) {
        tl_value c = tl_empty();
        bool known, yes;

        TL_TRY(tl_eval_tick(ev, n->base.span));
        if (!ev->domain->has_data) {
            return ev->domain->loop(ev, &n->base, tl_unknown(), flow);
        }
        TL_TRY(tl_renew(ev, &n->joins));
        TL_TRY(tl_eval_expr(ev, n->cond, &c));
        TL_TRY(truth_of(ev, n->cond, &c, &known, &yes));
        tl_unref(c);
        if (!yes) {
            return TL_OK;
        }
        TL_TRY(tl_eval_block(ev, n->body, flow));
        if (loop_ends(flow)) {
            return TL_OK;
        }
    }
}

static tl_status stmt_for(tl_eval *ev, const tl_ast_for *n, tl_flow *flow)
{
    tl_value it = tl_empty();
    tl_iter iter = {0};
    bool more = true;

    TL_TRY(tl_eval_expr(ev, n->iter, &it));
    if (!ev->domain->has_data && ev->domain->fold_loop(ev, it)) {
        tl_status st = ev->domain->loop(ev, &n->base, it, flow);

        tl_unref(it);
        return st;
    }
    tl_status st = tl_iter_init_take(ev, it, &iter);

    if (st != TL_OK) {
        tl_diag_at(ev->diag, n->iter->span);
    }
    while (st == TL_OK) {
        tl_value v = tl_empty();

        st = tl_iter_next(ev, &iter, &more, &v);
        if (st != TL_OK || !more) {
            break;
        }
        st = tl_eval_assign_take(ev, n->target, v);
        if (st == TL_OK) {
            st = tl_renew(ev, &n->joins);
        }
        if (st == TL_OK) {
            st = tl_eval_block(ev, n->body, flow);
        }
        if (st == TL_OK && loop_ends(flow)) {
            break;
        }
    }
    tl_iter_fini(&iter);
    return st;
}

/* with a, b: body - contexts are entered one by one and left in reverse. */
static tl_status with_items(tl_eval *ev, const tl_ast_with *n, uint32_t i,
                            tl_flow *flow)
{
    tl_value ctx = tl_empty(), state = tl_empty();

    if (i == n->items.len) {
        return tl_eval_block(ev, n->body, flow);
    }
    const tl_ast_with_item *item = TL_AST(with_item, n->items.items[i]);

    TL_TRY(tl_eval_expr(ev, item->value, &ctx));
    tl_status st = tl_context_enter(ev, ctx, &state);

    if (st != TL_OK) {
        tl_diag_at(ev->diag, item->value->span);
        tl_unref(ctx);
        return st;
    }
    if (item->target != NULL) {
        st = tl_eval_assign_take(ev, item->target, tl_ref(ctx));
    }
    if (st == TL_OK) {
        st = with_items(ev, n, i + 1, flow);
    }
    tl_context_leave(ev, ctx, state);
    tl_unref(ctx);
    return st;
}

bool tl_status_catchable(tl_status st)
{
    return st != TL_OK && st != TL_ERR_STOPPED && st != TL_ERR_INTERNAL;
}

static tl_status stmt_try(tl_eval *ev, const tl_ast_try *n, tl_flow *flow)
{
    tl_value e = tl_empty();
    tl_gradblk *grads = ev->grads;

    if (!ev->domain->has_data) {
        return ev->domain->try_catch(ev, &n->base, flow);
    }
    tl_status st = tl_eval_block(ev, n->body, flow);

    if (st == TL_OK || !tl_status_catchable(st)) {
        return st;
    }
    TL_CHECK(ev->grads == grads);
    *flow = TL_FLOW_NEXT;
    TL_TRY(tl_error_take(ev, &e));
    TL_TRY(tl_eval_assign_take(ev, n->target, e));
    return tl_eval_block(ev, n->handler, flow);
}

/* ---- assert and raise -------------------------------------------------- */

/* Text of an assert's message or a raised value; a caught error that is
 * raised again keeps its code. */
static tl_status message_text(tl_eval *ev, const tl_ast *e, tl_buf *buf,
                              bool *known, tl_code *code)
{
    tl_value v = tl_empty();

    TL_TRY(tl_eval_expr(ev, e, &v));
    tl_status st = TL_OK;

    *known = tl_text_known(v);
    if (v.tag == TL_V_ERROR) {
        tl_buf_puts(buf, v.error->message->data);
        *code = v.error->code;
    } else if (*known) {
        st = tl_format_str(v, buf, ev->diag);
    }
    tl_unref(v);
    return st;
}

/* The two sides of a comparison that is asserted, kept to be shown. */
typedef struct sides {
    const tl_ast *node[2];
    tl_value value[2];
} sides;

/* a == b: evaluate it, keeping both sides. */
static tl_status eval_sides(tl_eval *ev, const tl_ast_compare *c, sides *s,
                            tl_value *out)
{
    for (int i = 0; i < 2; i++) {
        s->node[i] = c->operands.items[i];
        TL_TRY(tl_eval_expr(ev, s->node[i], &s->value[i]));
    }
    return tl_eval_binary_nodes(ev, c->ops[0], s->node[0],
                                tl_ref(s->value[0]), s->node[1],
                                tl_ref(s->value[1]), c->base.span, out);
}

static bool is_literal(const tl_ast *e)
{
    switch (e->kind) {
    case TL_AST_INT:
    case TL_AST_FLOAT:
    case TL_AST_STR:
    case TL_AST_BOOL:
    case TL_AST_NONE:
        return true;
    default:
        return false;
    }
}

/* A failed comparison shows both sides, apart from what the source shows. */
static tl_status show_sides(tl_eval *ev, const sides *s)
{
    tl_status st = TL_OK;

    for (int i = 0; i < 2 && st == TL_OK; i++) {
        tl_buf buf;

        if (s->node[i] == NULL || is_literal(s->node[i])) {
            continue;
        }
        tl_buf_init(&buf);
        st = tl_format_repr(s->value[i], &buf, ev->diag);
        if (st == TL_OK) {
            tl_diag_label_add(ev->diag, s->node[i]->span, "%s",
                              tl_buf_str(&buf));
        }
        tl_buf_fini(&buf);
    }
    return st;
}

static tl_status failed_assert(tl_eval *ev, const tl_ast_assert *n,
                               const sides *s)
{
    tl_buf buf;
    bool known = true, perform = true;
    tl_status st = TL_OK;

    TL_TRY(ev->domain->effect(ev, TL_HOST_RAISE, &perform));
    (void)perform; /* a domain that does not raise has failed by now */
    tl_buf_init(&buf);
    if (n->message != NULL) {
        tl_code code;

        st = message_text(ev, n->message, &buf, &known, &code);
    }
    if (st == TL_OK) {
        st = tl_fail_at(ev->diag, TL_E0222, n->cond->span,
                        n->message != NULL ? "assertion failed: %s"
                                           : "assertion failed%s",
                        tl_buf_str(&buf));
        tl_status shown = show_sides(ev, s);

        if (shown != TL_OK) {
            st = shown;
        }
    }
    tl_buf_fini(&buf);
    return st;
}

static tl_status stmt_assert(tl_eval *ev, const tl_ast_assert *n)
{
    sides s = {.value = {tl_empty(), tl_empty()}};
    tl_value c = tl_empty();
    bool known = false, yes = false, recorded = false;
    tl_status st;

    if (n->cond->kind == TL_AST_COMPARE &&
        TL_AST(compare, n->cond)->operands.len == 2) {
        st = eval_sides(ev, TL_AST(compare, n->cond), &s, &c);
    } else {
        st = tl_eval_expr(ev, n->cond, &c);
    }
    if (st == TL_OK && tl_is_tracing(ev)) {
        ev->rt->span = n->cond->span;
        st = tl_trace_assert(ev, c, &recorded);
    }
    if (st == TL_OK && !recorded) {
        st = tl_eval_truth(ev, c, &known, &yes);
    }
    if (st != TL_OK) {
        tl_diag_at(ev->diag, n->cond->span);
    } else if (known && !yes) {
        st = failed_assert(ev, n, &s);
    }
    tl_unref(c);
    tl_unref(s.value[0]);
    tl_unref(s.value[1]);
    return st;
}

static tl_status stmt_raise(tl_eval *ev, const tl_ast_raise *n)
{
    tl_buf buf;
    bool known = true, perform = true;

    tl_buf_init(&buf);
    tl_code code = TL_E0221;
    tl_status st = message_text(ev, n->value, &buf, &known, &code);

    if (st == TL_OK) {
        st = ev->domain->effect(ev, TL_HOST_RAISE, &perform);
    }
    if (st == TL_OK) {
        st = tl_fail_at(ev->diag, code, n->base.span, "%s",
                        tl_buf_str(&buf));
    }
    tl_buf_fini(&buf);
    return st;
}

/* A definition inside a function: the value is made where it stands. */
static tl_status stmt_definition(tl_eval *ev, const tl_ast *s)
{
    tl_value v = tl_empty();
    const tl_ref_info *target;

    if (s->kind == TL_AST_FN) {
        target = &TL_AST(fn, s)->target;
        TL_TRY(tl_make_fn(ev, TL_AST(fn, s)->func, &v));
    } else {
        bool module = s->kind == TL_AST_MODULE;

        target = module ? &TL_AST(module, s)->target
                        : &TL_AST(record, s)->target;
        TL_TRY(tl_make_class(ev, module ? TL_AST(module, s)->func
                                        : TL_AST(record, s)->func,
                             &v));
    }
    return tl_bind_ref_take(ev, target, s->span, v);
}

/* Behind an `if` or a loop. */
static tl_status behind(tl_eval *ev, tl_status st, const tl_flow *flow,
                        const tl_slots *joins)
{
    return st == TL_OK && *flow == TL_FLOW_NEXT ? tl_renew(ev, joins) : st;
}

/* dispatch over the kinds of statements */
tl_status tl_eval_stmt(tl_eval *ev, const tl_ast *s, tl_flow *flow)
{
    TL_TRY(tl_eval_tick(ev, s->span));
    switch ((tl_ast_kind)s->kind) {
    case TL_AST_ASSIGN:
        return stmt_assign(ev, TL_AST(assign, s), flow);
    case TL_AST_AUG:
        return tl_eval_aug(ev, TL_AST(aug, s), flow);
    case TL_AST_DECL:
        return stmt_decl(ev, TL_AST(decl, s));
    case TL_AST_EXPR_STMT:
        return stmt_expr(ev, TL_AST(expr_stmt, s), flow);
    case TL_AST_RETURN:
        return stmt_return(ev, TL_AST(return, s), flow);
    case TL_AST_BREAK:
        *flow = TL_FLOW_BREAK;
        return TL_OK;
    case TL_AST_CONTINUE:
        *flow = TL_FLOW_CONTINUE;
        return TL_OK;
    case TL_AST_PASS:
        return TL_OK;
    case TL_AST_ASSERT:
        return stmt_assert(ev, TL_AST(assert, s));
    case TL_AST_RAISE:
        return stmt_raise(ev, TL_AST(raise, s));
    case TL_AST_IMPORT:
        return tl_eval_import(ev, TL_AST(import, s));
    case TL_AST_FROM:
        return tl_eval_from(ev, TL_AST(from, s));
    case TL_AST_BLOCK:
        return tl_eval_block(ev, s, flow);
    case TL_AST_IF:
        return behind(ev, eval_arms(ev, TL_AST(if, s), 0, flow), flow,
                      &TL_AST(if, s)->joins);
    case TL_AST_WHILE:
        return behind(ev, stmt_while(ev, TL_AST(while, s), flow), flow,
                      &TL_AST(while, s)->joins);
    case TL_AST_FOR:
        return behind(ev, stmt_for(ev, TL_AST(for, s), flow), flow,
                      &TL_AST(for, s)->joins);
    case TL_AST_WITH:
        return with_items(ev, TL_AST(with, s), 0, flow);
    case TL_AST_TRY:
        return stmt_try(ev, TL_AST(try, s), flow);
    case TL_AST_FN:
    case TL_AST_MODULE:
    case TL_AST_RECORD:
        return stmt_definition(ev, s);
    case TL_AST_TEST: /* collected by the unit, run by `tlang test` */
        return TL_OK;
    default:
        return tl_fail_at(ev->diag, TL_E0100, s->span,
                          "this is not a statement");
    }
}

tl_status tl_eval_block(tl_eval *ev, const tl_ast *block, tl_flow *flow)
{
    const tl_kids *stmts = &TL_AST(block, block)->stmts;

    if (block->kind != TL_AST_BLOCK) {
        return tl_eval_stmt(ev, block, flow);
    }
    for (uint32_t i = 0; i < stmts->len; i++) {
        TL_TRY(tl_eval_stmt(ev, stmts->items[i], flow));
        if (*flow != TL_FLOW_NEXT) {
            return TL_OK;
        }
    }
    return TL_OK;
}
