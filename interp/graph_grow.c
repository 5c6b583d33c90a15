/* graph_grow.c - lists that a loop region makes longer. */
#include "interp/graph_grow.h"

#include <string.h>

#include "interp/autocast.h"
#include "interp/bi_tensor.h"
#include "interp/builtin_fns.h"
#include "interp/graph_state.h"
#include "runtime/base/vec.h"

/* ---- what the text says ------------------------------------------------- */

typedef struct scan {
    uint32_t slot;
    const tl_ast *loop;
    bool inside; /* of the loop */
} scan;

static bool is_slot(const scan *s, const tl_ast *n)
{
    return n->kind == TL_AST_NAME &&
           TL_AST(name, n)->ref.kind == TL_REF_LOCAL &&
           TL_AST(name, n)->ref.index == s->slot;
}

static bool visit(void *arg, tl_ast *n);

/* `[e]`: *item is e. */
static bool one_item(const tl_ast *n, tl_ast **item)
{
    const tl_kids *items = &TL_AST(list, n)->items;

    if (n->kind != TL_AST_LIST || items->len != 1 ||
        items->items[0]->kind == TL_AST_STAR) {
        return false;
    }
    *item = items->items[0];
    return true;
}

/* `outs + [e]` or `outs.append(e)` */
static bool appends(const scan *s, const tl_ast *n, tl_ast **item)
{
    if (n->kind == TL_AST_BINARY) {
        const tl_ast_binary *b = TL_AST(binary, n);

        return b->op == TL_OP_ADD && is_slot(s, b->left) &&
               one_item(b->right, item);
    }
    const tl_ast_call *c = TL_AST(call, n);

    if (n->kind != TL_AST_CALL || c->callee->kind != TL_AST_ATTR ||
        c->args.len != 1 || c->args.items[0]->kind == TL_AST_STAR ||
        c->args.items[0]->kind == TL_AST_KEYWORD ||
        c->args.items[0]->kind == TL_AST_DOUBLE_STAR) {
        return false;
    }
    const tl_ast_attr *a = TL_AST(attr, c->callee);

    *item = c->args.items[0];
    return is_slot(s, a->object) && strcmp(a->name->text, "append") == 0;
}

static bool visit_assign(scan *s, tl_ast_assign *n)
{
    tl_ast *item;

    if (n->targets.len != 1 || !is_slot(s, n->targets.items[0])) {
        return tl_ast_children(&n->base, visit, s);
    }
    if (s->inside) {
        return appends(s, n->value, &item) && visit(s, item);
    }
    return visit(s, n->value);
}

static bool visit_aug(scan *s, tl_ast_aug *n)
{
    tl_ast *item;

    if (!is_slot(s, n->target)) {
        return tl_ast_children(&n->base, visit, s);
    }
    return s->inside && n->op == TL_OP_ADD && one_item(n->value, &item) &&
           visit(s, item);
}

/* stack(outs, ...), cat(outs, ...), len(outs) behind the loop */
static bool visit_call(scan *s, tl_ast_call *n)
{
    static const char *const names[] = {"stack", "cat", "len"};
    const tl_ast_name *f = TL_AST(name, n->callee);
    bool known = false;

    if (s->inside || n->callee->kind != TL_AST_NAME || n->args.len == 0 ||
        f->ref.kind != TL_REF_BUILTIN || !is_slot(s, n->args.items[0])) {
        return tl_ast_children(&n->base, visit, s);
    }
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        known = known || strcmp(f->name->text, names[i]) == 0;
    }
    for (uint32_t i = 1; known && i < n->args.len; i++) {
        known = visit(s, n->args.items[i]);
    }
    return known;
}

static bool captures(const scan *s, const tl_funcdef *fn)
{
    for (uint32_t i = 0; fn != NULL && i < fn->ncaptures; i++) {
        if (fn->captures[i].outer.kind == TL_REF_LOCAL &&
            fn->captures[i].outer.index == s->slot) {
            return true;
        }
    }
    return false;
}

/* tl_ast_visit_fn: false where the list is used in another way. */
static bool visit(void *arg, tl_ast *n)
{
    scan *s = arg;
    bool inside = s->inside, fine;

    switch (n->kind) {
    case TL_AST_FN:
        return !captures(s, TL_AST(fn, n)->func);
    case TL_AST_LAMBDA:
        return !captures(s, TL_AST(lambda, n)->func);
    case TL_AST_MODULE:
    case TL_AST_RECORD:
        return false;
    case TL_AST_NAME:
        return !is_slot(s, n);
    case TL_AST_ASSIGN:
        return visit_assign(s, TL_AST(assign, n));
    case TL_AST_AUG:
        return visit_aug(s, TL_AST(aug, n));
    case TL_AST_CALL:
        return visit_call(s, TL_AST(call, n));
    default:
        s->inside = inside || n == s->loop;
        fine = tl_ast_children(n, visit, s);
        s->inside = inside;
        return fine;
    }
}

bool tl_grow_allowed(const tl_eval *ev, const tl_ast *loop, uint32_t slot)
{
    const tl_funcdef *fn = ev->frame->fn;
    scan s = {.slot = slot, .loop = loop};

    return fn != NULL && fn->body != NULL && fn->backward == NULL &&
           visit(&s, (tl_ast *)fn->body);
}

/* ---- one turn ----------------------------------------------------------- */

/* Can two tensors stand in one stack? */
static bool stackable(tl_eval *ev, tl_value a, tl_value b)
{
    tl_ttype x, y;
    bool same = tl_is_tensor(a) && tl_is_tensor(b) &&
                tl_eval_type(ev, a, &x) == TL_OK &&
                tl_eval_type(ev, b, &y) == TL_OK && x.dtype == y.dtype &&
                x.shape.rank == y.shape.rank;

    for (int i = 0; same && i < x.shape.rank; i++) {
        same = tl_dim_same(x.shape.dim[i], y.shape.dim[i]);
    }
    return same && tl_stored_dtype(ev, a) == tl_stored_dtype(ev, b);
}

bool tl_grow_by_one(tl_eval *ev, tl_value start, tl_value end, tl_gval *item)
{
    tl_gbuild *b = &tl_trace_of(ev)->b;
    size_t n = start.tag == TL_V_LIST ? start.seq->len : 0;

    if (start.tag != TL_V_LIST || end.tag != TL_V_LIST ||
        end.seq->len != n + 1 || end.seq->items[n].tag != TL_V_NODE) {
        return false;
    }
    tl_value v = end.seq->items[n];

    for (size_t i = 0; i < n; i++) {
        if (!tl_gvalue_same(start.seq->items[i], end.seq->items[i]) ||
            !stackable(ev, v, start.seq->items[i])) {
            return false;
        }
    }
    for (int i = 0; i < v.node->type.shape.rank; i++) {
        if (tl_gbuild_is_late(b, v.node->type.shape.dim[i])) {
            return false;
        }
    }
    *item = v.node->id;
    return v.node->type.shape.rank < TL_MAX_RANK;
}

/* ---- behind the loop ---------------------------------------------------- */

tl_status tl_grow_made(tl_eval *ev, tl_value start, tl_gval stack,
                       tl_dim length, tl_value *out)
{
    tl_trace *tr = tl_trace_of(ev);
    tl_tgrown g = {.length = length};
    bool holds = true;

    if (start.seq->len == 0 && tl_dim_is_num(length)) {
        holds = tl_dim_value(length) > 0;
    } else if (start.seq->len == 0) { /* of nothing there is no stack */
        TL_TRY(tr->b.infer.guard_le(&tr->b, tl_dim_num(1), length, &holds));
        holds = holds && !tl_gbuild_is_late(&tr->b, length);
    }
    if (!holds) {
        return tl_trace_refuse(ev, "it is not known that a list of tensors "
                                   "has items");
    }
    TL_TRY(tl_trace_node(ev, stack, &g.stack));
    g.start = tl_ref(start);
    tl_status st = TL_VEC_PUSH(&tr->grown, g, ev->diag);

    if (st != TL_OK) {
        tl_unref(g.start);
        tl_unref(g.stack);
        return st;
    }
    *out = tl_unknown();
    out->i = (int64_t)tr->grown.len;
    return TL_OK;
}

/* All items as one tensor, with a leading axis of them. */
static tl_status whole_stack(tl_eval *ev, const tl_tgrown *g, tl_value *out)
{
    size_t n = g->start.seq->len;
    tl_value list = tl_empty(), args[2] = {g->start, tl_int_value(0)};
    tl_value in[2];

    if (n == 0) {
        *out = tl_ref(g->stack);
        return TL_OK;
    }
    TL_TRY(tl_bi_stack(ev, NULL, args, &list));
    in[0] = list;
    in[1] = tl_ref(g->stack);
    return tl_do_cat(ev, in, 2, 0, out);
}

/* `v` with its first axis moved to `axis`, row-major. */
static tl_status first_to(tl_eval *ev, tl_value v, int axis, tl_value *out)
{
    int rank = tl_value_rank(v);
    tl_attrs at;

    tl_attrs_init(&at);
    at.ndims = (uint16_t)rank;
    for (int i = 0; i < rank; i++) {
        at.dims[i] = tl_dim_num(i < axis ? i + 1 : i == axis ? 0 : i);
    }
    TL_TRY(tl_eval_op(ev, TL_OP_permute, &v, 1, &at, &v));
    return tl_do_cat(ev, &v, 1, 0, out);
}

static tl_status grown_stack(tl_eval *ev, const tl_tgrown *g, tl_value axis,
                             tl_value *out)
{
    tl_value v;
    int to;

    TL_TRY(whole_stack(ev, g, &v));
    tl_status st = tl_axis_normalise(axis.i, tl_value_rank(v), &to, ev->diag);

    if (st != TL_OK) {
        tl_unref(v);
        return st;
    }
    if (to == 0) {
        *out = v;
        return TL_OK;
    }
    return first_to(ev, v, to, out);
}

/* The items end to end along `axis` of each. */
static tl_status grown_cat(tl_eval *ev, const tl_tgrown *g, tl_value axis,
                           tl_value *out)
{
    tl_dims *dims = tl_trace_of(ev)->b.dims;
    tl_value v;
    tl_ttype type;
    tl_attrs at;
    int to;

    TL_TRY(whole_stack(ev, g, &v));
    tl_status st = tl_axis_normalise(axis.i, tl_value_rank(v) - 1, &to,
                                     ev->diag);

    if (st != TL_OK) {
        tl_unref(v);
        return st;
    }
    if (to != 0) {
        TL_TRY(first_to(ev, v, to, &v));
    }
    TL_TRY(tl_eval_type(ev, v, &type));
    tl_attrs_init(&at);
    at.ndims = (uint16_t)(type.shape.rank - 1);
    for (int i = 0; i < at.ndims; i++) {
        at.dims[i] = type.shape.dim[i < to ? i : i + 1];
    }
    TL_TRY(tl_dim_mul(dims, type.shape.dim[to], type.shape.dim[to + 1],
                      &at.dims[to], ev->diag));
    return tl_eval_op(ev, TL_OP_reshape, &v, 1, &at, out);
}

static tl_status grown_len(tl_eval *ev, const tl_tgrown *g, tl_value *out)
{
    tl_dim n;

    TL_TRY(tl_dim_add(tl_trace_of(ev)->b.dims, g->length,
                      tl_dim_num((int64_t)g->start.seq->len), &n, ev->diag));
    return tl_dim_value_of(ev, n, out);
}

tl_status tl_grow_call(tl_eval *ev, const tl_builtin *b, const tl_value *vals,
                       tl_value *out, bool *done)
{
    tl_trace *tr = tl_trace_of(ev);

    *done = vals[0].tag == TL_V_UNKNOWN && vals[0].i > 0 &&
            (size_t)vals[0].i <= tr->grown.len;
    if (!*done) {
        return TL_OK;
    }
    const tl_tgrown g = tr->grown.items[vals[0].i - 1];

    if (b->fn == tl_bi_stack && vals[1].tag == TL_V_INT) {
        return grown_stack(ev, &g, vals[1], out);
    }
    if (b->fn == tl_bi_cat && vals[1].tag == TL_V_INT) {
        return grown_cat(ev, &g, vals[1], out);
    }
    if (b->fn == tl_bi_len) {
        return grown_len(ev, &g, out);
    }
    *done = false;
    return TL_OK;
}
