/* live_walk.c - reads, writes, branches and loops, from the end of a function
 * to its beginning.  live.c says what the sets mean. */
#include "lang/live_impl.h"

tl_live_word *tl_live_set(tl_live *l, const tl_live_word *from)
{
    tl_live_word *set = tl_arena_array(&l->arena, l->nwords, sizeof(*set));

    if (!set) {
        l->failed = true;
        return NULL;
    }
    if (from) {
        memcpy(set, from, l->nwords * sizeof(*set));
    }
    return set;
}

/* ---- reads and writes ---------------------------------------------------- */

static void read_slot(tl_live *l, tl_ref_info *ref)
{
    if (ref->kind != TL_REF_LOCAL) {
        return;
    }
    if (l->marking && !l->in_type) {
        ref->last = !tl_live_has(l->now, ref->index) &&
                    !tl_live_has(l->pinned, ref->index);
    }
    tl_live_put(l->now, ref->index);
}

static void write_slot(tl_live *l, const tl_ref_info *ref)
{
    if (ref->kind != TL_REF_LOCAL) {
        return;
    }
    if (l->written) {
        tl_live_put(l->written, ref->index);
    }
    if (!tl_live_has(l->pinned, ref->index)) {
        tl_live_drop(l->now, ref->index);
    }
}

/* ---- where ways come together -------------------------------------------- */

/* What is written from here on is of an `if` or a loop; NULL without memory. */
static tl_live_word *enter_ways(tl_live *l)
{
    tl_live_word *around = l->written;

    l->written = tl_live_set(l, NULL);
    return around;
}

/* The slots that are in both sets, in the arena of the tree. */
static tl_slots both(tl_live *l, const tl_live_word *a, const tl_live_word *b)
{
    uint32_t n = 0, *items;

    for (uint32_t i = 0; i < l->nwords * TL_LIVE_BITS; i++) {
        n += tl_live_has(a, i) && tl_live_has(b, i);
    }
    if (n == 0) {
        return (tl_slots){NULL, 0};
    }
    items = tl_arena_array(l->kept, n, sizeof(*items));
    if (!items) {
        l->failed = true;
        return (tl_slots){NULL, 0};
    }
    n = 0;
    for (uint32_t i = 0; i < l->nwords * TL_LIVE_BITS; i++) {
        if (tl_live_has(a, i) && tl_live_has(b, i)) {
            items[n++] = i;
        }
    }
    return (tl_slots){items, n};
}

/* The `if` or loop has been walked, `live` where its ways come together. */
static void leave_ways(tl_live *l, tl_live_word *around,
                       const tl_live_word *live, tl_slots *joins)
{
    if (l->written && l->marking && joins) {
        *joins = both(l, l->written, live);
    }
    if (l->written && around) {
        tl_live_join(l, around, l->written);
    }
    l->written = around;
}

static void visit_list(tl_live *l, const tl_kids *list)
{
    for (uint32_t i = list->len; i > 0; i--) {
        tl_live_visit(l, list->items[i - 1]);
    }
}

/* x[i][j] = v, x.f[i] += v: the subscripts are evaluated from the root on, then
 * the root is read for the write, which a path of indices alone ends by
 * binding it. */
static void path_target(tl_live *l, tl_ast *node)
{
    tl_ast *root = node;
    bool binds = true;

    while (root->kind == TL_AST_INDEX || root->kind == TL_AST_ATTR) {
        binds = binds && root->kind == TL_AST_INDEX;
        root = root->kind == TL_AST_INDEX ? TL_AST(index, root)->object
                                          : TL_AST(attr, root)->object;
    }
    if (binds && root->kind == TL_AST_NAME) {
        write_slot(l, &TL_AST(name, root)->ref);
    }
    tl_live_visit(l, root);
    while (node != root) {
        if (node->kind == TL_AST_INDEX) {
            visit_list(l, &TL_AST(index, node)->items);
        }
        node = node->kind == TL_AST_INDEX ? TL_AST(index, node)->object
                                          : TL_AST(attr, node)->object;
    }
}

static void target(tl_live *l, tl_ast *node)
{
    const tl_kids *items = NULL;

    switch (node->kind) {
    case TL_AST_NAME:
        write_slot(l, &TL_AST(name, node)->ref);
        break;
    case TL_AST_STAR:
        target(l, TL_AST(star, node)->value);
        break;
    case TL_AST_TUPLE:
        items = &TL_AST(tuple, node)->items;
        break;
    case TL_AST_LIST:
        items = &TL_AST(list, node)->items;
        break;
    default:
        path_target(l, node);
        break;
    }
    for (uint32_t i = items ? items->len : 0; i > 0; i--) {
        target(l, items->items[i - 1]);
    }
}

static void visit_type(tl_live *l, tl_ast *type)
{
    bool outer = l->in_type;

    l->in_type = true;
    tl_live_visit(l, type);
    l->in_type = outer;
}

/* ---- loops --------------------------------------------------------------- */

/* Loop `node`, whose body and head are processed by `body`.  Before: the set
 * behind the loop; after: the set at its head. */
typedef void loop_body(tl_live *l, tl_ast *node, const tl_live_word *behind);

static void visit_loop(tl_live *l, tl_ast *node, loop_body *body,
                       tl_slots *joins)
{
    tl_live_word *around = enter_ways(l);
    const tl_live_word *at_break = l->at_break, *at_continue = l->at_continue;
    tl_live_word *behind = tl_live_set(l, l->now),
                 *head = tl_live_set(l, NULL);
    const tl_live_word *gen = tl_map_get(&l->loops, node, NULL);

    if (!behind || !head) {
        return;
    }
    if (l->marking && gen) {
        tl_live_copy(l, head, behind);
        tl_live_join(l, head, gen);
        l->at_break = behind;
        l->at_continue = head;
        tl_live_copy(l, l->now, head);
        body(l, node, behind);
    } else {
        /* what is outside counts for nothing here */
        l->at_break = l->at_continue = head;
        memset(l->now, 0, l->nwords * sizeof(*l->now));
        body(l, node, head);
        gen = tl_live_set(l, l->now);
        if (!gen || !tl_map_set(&l->loops, node, (void *)gen)) {
            l->failed = true;
        }
    }
    leave_ways(l, around, head, joins);
    tl_live_join(l, l->now, behind);
    l->at_break = at_break;
    l->at_continue = at_continue;
}

static void for_body(tl_live *l, tl_ast *node, const tl_live_word *behind)
{
    (void)behind;
    tl_live_visit(l, TL_AST(for, node)->body);
    target(l, TL_AST(for, node)->target);
}

static void while_body(tl_live *l, tl_ast *node, const tl_live_word *behind)
{
    tl_live_visit(l, TL_AST(while, node)->body);
    tl_live_join(l, l->now, behind);
    tl_live_visit(l, TL_AST(while, node)->cond);
}

static const tl_kids *clauses_of(const tl_ast *node)
{
    return node->kind == TL_AST_LIST_COMP ? &TL_AST(list_comp, node)->clauses
                                          : &TL_AST(dict_comp, node)->clauses;
}

static void keep_target(tl_live *l, const tl_ast *node)
{
    const tl_kids *items = NULL;

    if (node->kind == TL_AST_NAME) {
        tl_live_put(l->now, TL_AST(name, node)->ref.index);
    } else if (node->kind == TL_AST_STAR) {
        keep_target(l, TL_AST(star, node)->value);
    } else if (node->kind == TL_AST_TUPLE) {
        items = &TL_AST(tuple, node)->items;
    }
    for (uint32_t i = 0; items && i < items->len; i++) {
        keep_target(l, items->items[i]);
    }
}

/* Variables of all `for` clauses but the last are read again and again. */
static void keep_outer_targets(tl_live *l, const tl_kids *clauses)
{
    bool last = true;

    for (uint32_t i = clauses->len; i > 0; i--) {
        const tl_ast *clause = clauses->items[i - 1];

        if (clause->kind == TL_AST_COMP_FOR && !last) {
            keep_target(l, TL_AST(comp_for, clause)->target);
        }
        last = last && clause->kind != TL_AST_COMP_FOR;
    }
}

/* A comprehension, taken as one loop; its first iterable is outside. */
static void comp_body(tl_live *l, tl_ast *node, const tl_live_word *behind)
{
    const tl_kids *clauses = clauses_of(node);

    (void)behind;
    keep_outer_targets(l, clauses);
    if (node->kind == TL_AST_LIST_COMP) {
        tl_live_visit(l, TL_AST(list_comp, node)->value);
    } else {
        tl_live_visit(l, TL_AST(dict_comp, node)->value);
        tl_live_visit(l, TL_AST(dict_comp, node)->key);
    }
    for (uint32_t i = clauses->len; i > 0; i--) {
        tl_ast *clause = clauses->items[i - 1];

        if (clause->kind == TL_AST_COMP_IF) {
            tl_live_visit(l, TL_AST(comp_if, clause)->cond);
            continue;
        }
        target(l, TL_AST(comp_for, clause)->target);
        if (i > 1) {
            tl_live_visit(l, TL_AST(comp_for, clause)->iter);
        }
    }
}

/* ---- branches ------------------------------------------------------------ */

static void visit_if(tl_live *l, tl_ast_if *node)
{
    tl_live_word *behind = tl_live_set(l, l->now);
    tl_live_word *around = enter_ways(l);

    if (!behind) {
        return;
    }
    if (node->other) {
        tl_live_visit(l, node->other);
    }
    for (uint32_t i = node->arms.len; i > 0; i--) {
        tl_ast_arm *arm = TL_AST(arm, node->arms.items[i - 1]);
        tl_live_word *otherwise = tl_live_set(l, l->now);

        if (!otherwise) {
            return;
        }
        tl_live_copy(l, l->now, behind);
        tl_live_visit(l, arm->body);
        tl_live_join(l, l->now, otherwise);
        tl_live_visit(l, arm->cond);
    }
    leave_ways(l, around, behind, &node->joins);
}

static void visit_cond(tl_live *l, tl_ast_cond *node)
{
    tl_live_word *behind = tl_live_set(l, l->now), *otherwise;

    tl_live_visit(l, node->other);
    otherwise = tl_live_set(l, l->now);
    if (!behind || !otherwise) {
        return;
    }
    tl_live_copy(l, l->now, behind);
    tl_live_visit(l, node->then);
    tl_live_join(l, l->now, otherwise);
    tl_live_visit(l, node->cond);
}

static void visit_try(tl_live *l, tl_ast_try *node)
{
    tl_live_word *behind = tl_live_set(l, l->now);
    tl_live_word *outer = l->pinned, *handler,
                 *pinned = tl_live_set(l, outer);

    tl_live_visit(l, node->handler);
    write_slot(l, &TL_AST(name, node->target)->ref);
    handler = tl_live_set(l, l->now);
    if (!behind || !pinned || !handler) {
        return;
    }
    tl_live_join(l, pinned, handler);
    l->pinned = pinned;
    tl_live_copy(l, l->now, behind);
    tl_live_visit(l, node->body);
    l->pinned = outer;
    tl_live_join(l, l->now, handler);
}

static void jump(tl_live *l, const tl_live_word *to)
{
    tl_live_copy(l, l->now, to);
}

/* ---- nodes --------------------------------------------------------------- */

static void visit_captures(tl_live *l, const tl_funcdef *func)
{
    for (uint32_t i = 0; func && i < func->ncaptures; i++) {
        const tl_ref_info *outer = &func->captures[i].outer;

        if (outer->kind == TL_REF_LOCAL) {
            tl_live_put(l->now, outer->index);
        }
    }
}

/* Methods are made together with their module. */
static void visit_module(tl_live *l, const tl_ast_module *node)
{
    write_slot(l, &node->target);
    visit_captures(l, node->func);
}

static void visit_aug(tl_live *l, tl_ast_aug *aug)
{
    tl_ast_name *name = TL_AST(name, aug->target);

    if (aug->target->kind == TL_AST_NAME) {
        write_slot(l, &name->ref);
        read_slot(l, &name->ref);
    } else {
        target(l, aug->target);
    }
    tl_live_visit(l, aug->value);
}

static void visit_assign(tl_live *l, tl_ast_assign *assign)
{
    for (uint32_t i = assign->targets.len; i > 0; i--) {
        target(l, assign->targets.items[i - 1]);
    }
    tl_live_visit(l, assign->value);
}

static void visit_grad(tl_live *l, tl_ast_grad *grad)
{
    tl_live_visit(l, grad->loss);
    tl_live_visit(l, grad->body);
    visit_list(l, &grad->targets);
    if (grad->scaler) {
        tl_live_visit(l, grad->scaler);
    }
}

typedef struct kids {
    tl_ast **items;
    uint32_t len;
} kids;

static bool count_kid(void *arg, tl_ast *child)
{
    (void)child;
    ++*(uint32_t *)arg;
    return true;
}

static bool keep_kid(void *arg, tl_ast *child)
{
    kids *k = arg;

    k->items[k->len++] = child;
    return true;
}

/* Children in reverse order of their fields. */
static void visit_children(tl_live *l, tl_ast *node)
{
    kids k = {0};
    uint32_t n = 0;

    tl_ast_children(node, count_kid, &n);
    if (n == 0) {
        return;
    }
    k.items = tl_arena_array(&l->arena, n, sizeof(*k.items));
    if (!k.items) {
        l->failed = true;
        return;
    }
    tl_ast_children(node, keep_kid, &k);
    for (uint32_t i = k.len; i > 0; i--) {
        tl_live_visit(l, k.items[i - 1]);
    }
}

/* The evaluator looks at the receiver of `x.m(...)` before it runs it. */
static void keep_receiver(const tl_ast_expr_stmt *stmt)
{
    tl_ast *object;

    if (!stmt->unused) {
        return;
    }
    object = TL_AST(attr, TL_AST(call, stmt->value)->callee)->object;
    if (object->kind == TL_AST_NAME) {
        TL_AST(name, object)->ref.last = false;
    }
}

static void visit_stmt(tl_live *l, tl_ast *node)
{
    switch (node->kind) {
    case TL_AST_RETURN:
        jump(l, l->at_exit);
        l->may_return = l->may_return || l->written;
        visit_children(l, node);
        break;
    case TL_AST_RAISE:
        memset(l->now, 0, l->nwords * sizeof(*l->now));
        visit_children(l, node);
        break;
    case TL_AST_BREAK:
        jump(l, l->at_break);
        break;
    case TL_AST_CONTINUE:
        jump(l, l->at_continue);
        break;
    case TL_AST_IF:
        visit_if(l, TL_AST(if, node));
        break;
    case TL_AST_FOR:
        visit_loop(l, node, for_body, &TL_AST(for, node)->joins);
        tl_live_visit(l, TL_AST(for, node)->iter);
        break;
    case TL_AST_WHILE:
        visit_loop(l, node, while_body, &TL_AST(while, node)->joins);
        break;
    case TL_AST_TRY:
        visit_try(l, TL_AST(try, node));
        break;
    case TL_AST_EXPR_STMT:
        tl_live_visit(l, TL_AST(expr_stmt, node)->value);
        keep_receiver(TL_AST(expr_stmt, node));
        break;
    case TL_AST_WITH_ITEM:
        if (TL_AST(with_item, node)->target) {
            target(l, TL_AST(with_item, node)->target);
        }
        tl_live_visit(l, TL_AST(with_item, node)->value);
        break;
    case TL_AST_ASSIGN:
        visit_assign(l, TL_AST(assign, node));
        break;
    case TL_AST_AUG:
        visit_aug(l, TL_AST(aug, node));
        break;
    case TL_AST_DECL:
        target(l, TL_AST(decl, node)->target);
        visit_type(l, TL_AST(decl, node)->type);
        if (TL_AST(decl, node)->value) {
            tl_live_visit(l, TL_AST(decl, node)->value);
        }
        break;
    case TL_AST_CELL:
        visit_type(l, TL_AST(cell, node)->type);
        if (TL_AST(cell, node)->value) {
            tl_live_visit(l, TL_AST(cell, node)->value);
        }
        break;
    default:
        visit_children(l, node);
        break;
    }
}

void tl_live_visit(tl_live *l, tl_ast *node)
{
    if (l->failed) {
        return;
    }
    switch (node->kind) {
    case TL_AST_NAME:
        read_slot(l, &TL_AST(name, node)->ref);
        break;
    case TL_AST_DIM_PACK:
        tl_live_put(l->now, TL_AST(dim_pack, node)->ref.index);
        break;
    case TL_AST_LIST_COMP:
    case TL_AST_DICT_COMP:
        visit_loop(l, node, comp_body, NULL);
        tl_live_visit(l, TL_AST(comp_for, clauses_of(node)->items[0])->iter);
        break;
    case TL_AST_COND:
        visit_cond(l, TL_AST(cond, node));
        break;
    case TL_AST_AS:
        visit_type(l, TL_AST(as, node)->type);
        tl_live_visit(l, TL_AST(as, node)->value);
        break;
    case TL_AST_GRAD:
        visit_grad(l, TL_AST(grad, node));
        break;
    case TL_AST_LAMBDA:
        visit_captures(l, TL_AST(lambda, node)->func);
        break;
    case TL_AST_FN:
        write_slot(l, &TL_AST(fn, node)->target);
        visit_captures(l, TL_AST(fn, node)->func);
        break;
    case TL_AST_MODULE:
        visit_module(l, TL_AST(module, node));
        break;
    case TL_AST_RECORD:
        write_slot(l, &TL_AST(record, node)->target);
        visit_captures(l, TL_AST(record, node)->func);
        break;
    case TL_AST_TEST:
        break;
    default:
        visit_stmt(l, node);
        break;
    }
}
