/* live.c - last reads: backward liveness of a function's slots.
 *
 * Sets of slots are bit sets.  A statement is processed from its end to its
 * beginning: `live` is what may still be read behind this point.  A read of a
 * slot that is not live is a last read.
 *
 * Loops.  With E the set behind a loop and G the slots that its body reads
 * before writing them, the set at the head is E + G (a loop may run no
 * times, so writes in the body take nothing away).  The first pass, with
 * everything outside empty, finds G of every loop; the second marks.  So each
 * node is visited twice, however deep loops are nested.
 *
 * Exceptions.  Any expression of a `try` body may jump to the handler: what
 * the handler needs is `pinned` during the body, that is, live whatever is
 * written.  Slots that must never be marked are pinned from the start. */
#include <string.h>

#include "lang/scope_impl.h"

#include "runtime/base/mem.h"

typedef uint64_t word;
enum { BITS = 64 };

typedef struct live {
    tl_arena arena;
    size_t nwords;
    word *now;    /* live here */
    word *pinned; /* live everywhere in the enclosing try bodies */
    const word *at_exit;
    const word *at_break, *at_continue;
    bool marking; /* second pass */
    bool in_type; /* reads are not marked */
    tl_map loops; /* tl_ast -> word *: G */
    bool failed;
} live;

/* ---- sets ---------------------------------------------------------------- */

static word *new_set(live *l, const word *from)
{
    word *set = tl_arena_array(&l->arena, l->nwords, sizeof(*set));

    if (!set) {
        l->failed = true;
        return NULL;
    }
    if (from) {
        memcpy(set, from, l->nwords * sizeof(*set));
    }
    return set;
}

static bool has(const word *set, uint32_t i)
{
    return set[i / BITS] >> (i % BITS) & 1;
}

static void put(word *set, uint32_t i)
{
    set[i / BITS] |= (word)1 << (i % BITS);
}

static void drop(word *set, uint32_t i)
{
    set[i / BITS] &= ~((word)1 << (i % BITS));
}

static void join(const live *l, word *into, const word *from)
{
    for (size_t i = 0; i < l->nwords; i++) {
        into[i] |= from[i];
    }
}

static void copy(const live *l, word *to, const word *from)
{
    memcpy(to, from, l->nwords * sizeof(*to));
}

/* ---- reads and writes ---------------------------------------------------- */

static void visit(live *l, tl_ast *node);

static void read_slot(live *l, tl_ref_info *ref)
{
    if (ref->kind != TL_REF_LOCAL) {
        return;
    }
    if (l->marking && !l->in_type) {
        ref->last = !has(l->now, ref->index) && !has(l->pinned, ref->index);
    }
    put(l->now, ref->index);
}

static void write_slot(live *l, const tl_ref_info *ref)
{
    if (ref->kind == TL_REF_LOCAL && !has(l->pinned, ref->index)) {
        drop(l->now, ref->index);
    }
}

static void visit_list(live *l, const tl_kids *list)
{
    for (uint32_t i = list->len; i > 0; i--) {
        visit(l, list->items[i - 1]);
    }
}

/* The variable that x[i][j] = v rebinds, or NULL. */
static tl_ast_name *index_root(tl_ast *node)
{
    while (node->kind == TL_AST_INDEX) {
        node = TL_AST(index, node)->object;
    }
    return node->kind == TL_AST_NAME ? TL_AST(name, node) : NULL;
}

static void target(live *l, tl_ast *node)
{
    const tl_kids *items = NULL;
    tl_ast_name *root;

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
    default: /* a path: its names are read, then its root written */
        root = index_root(node);
        if (root) {
            write_slot(l, &root->ref);
        }
        visit(l, node);
        break;
    }
    for (uint32_t i = items ? items->len : 0; i > 0; i--) {
        target(l, items->items[i - 1]);
    }
}

static void visit_type(live *l, tl_ast *type)
{
    bool outer = l->in_type;

    l->in_type = true;
    visit(l, type);
    l->in_type = outer;
}

/* ---- loops --------------------------------------------------------------- */

/* Loop `node`, whose body and head are processed by `body`.  Before: the set
 * behind the loop; after: the set at its head. */
typedef void loop_body(live *l, tl_ast *node, const word *behind);

static void visit_loop(live *l, tl_ast *node, loop_body *body)
{
    const word *at_break = l->at_break, *at_continue = l->at_continue;
    word *behind = new_set(l, l->now), *head = new_set(l, NULL);
    const word *gen = tl_map_get(&l->loops, node, NULL);

    if (!behind || !head) {
        return;
    }
    if (l->marking && gen) {
        copy(l, head, behind);
        join(l, head, gen);
        l->at_break = behind;
        l->at_continue = head;
        copy(l, l->now, head);
        body(l, node, behind);
    } else {
        /* what is outside counts for nothing here */
        l->at_break = l->at_continue = head;
        memset(l->now, 0, l->nwords * sizeof(*l->now));
        body(l, node, head);
        gen = new_set(l, l->now);
        if (!gen || !tl_map_set(&l->loops, node, (void *)gen)) {
            l->failed = true;
        }
    }
    join(l, l->now, behind);
    l->at_break = at_break;
    l->at_continue = at_continue;
}

static void for_body(live *l, tl_ast *node, const word *behind)
{
    (void)behind;
    visit(l, TL_AST(for, node)->body);
    target(l, TL_AST(for, node)->target);
}

static void while_body(live *l, tl_ast *node, const word *behind)
{
    visit(l, TL_AST(while, node)->body);
    join(l, l->now, behind);
    visit(l, TL_AST(while, node)->cond);
}

static const tl_kids *clauses_of(const tl_ast *node)
{
    return node->kind == TL_AST_LIST_COMP ? &TL_AST(list_comp, node)->clauses
                                          : &TL_AST(dict_comp, node)->clauses;
}

static void keep_target(live *l, const tl_ast *node)
{
    const tl_kids *items = NULL;

    if (node->kind == TL_AST_NAME) {
        put(l->now, TL_AST(name, node)->ref.index);
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
static void keep_outer_targets(live *l, const tl_kids *clauses)
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
static void comp_body(live *l, tl_ast *node, const word *behind)
{
    const tl_kids *clauses = clauses_of(node);

    (void)behind;
    keep_outer_targets(l, clauses);
    if (node->kind == TL_AST_LIST_COMP) {
        visit(l, TL_AST(list_comp, node)->value);
    } else {
        visit(l, TL_AST(dict_comp, node)->value);
        visit(l, TL_AST(dict_comp, node)->key);
    }
    for (uint32_t i = clauses->len; i > 0; i--) {
        tl_ast *clause = clauses->items[i - 1];

        if (clause->kind == TL_AST_COMP_IF) {
            visit(l, TL_AST(comp_if, clause)->cond);
            continue;
        }
        target(l, TL_AST(comp_for, clause)->target);
        if (i > 1) {
            visit(l, TL_AST(comp_for, clause)->iter);
        }
    }
}

/* ---- branches ------------------------------------------------------------ */

static void visit_if(live *l, tl_ast_if *node)
{
    word *behind = new_set(l, l->now);

    if (!behind) {
        return;
    }
    if (node->other) {
        visit(l, node->other);
    }
    for (uint32_t i = node->arms.len; i > 0; i--) {
        tl_ast_arm *arm = TL_AST(arm, node->arms.items[i - 1]);
        word *otherwise = new_set(l, l->now);

        if (!otherwise) {
            return;
        }
        copy(l, l->now, behind);
        visit(l, arm->body);
        join(l, l->now, otherwise);
        visit(l, arm->cond);
    }
}

static void visit_cond(live *l, tl_ast_cond *node)
{
    word *behind = new_set(l, l->now), *otherwise;

    visit(l, node->other);
    otherwise = new_set(l, l->now);
    if (!behind || !otherwise) {
        return;
    }
    copy(l, l->now, behind);
    visit(l, node->then);
    join(l, l->now, otherwise);
    visit(l, node->cond);
}

static void visit_try(live *l, tl_ast_try *node)
{
    word *behind = new_set(l, l->now);
    word *outer = l->pinned, *handler, *pinned = new_set(l, outer);

    visit(l, node->handler);
    write_slot(l, &TL_AST(name, node->target)->ref);
    handler = new_set(l, l->now);
    if (!behind || !pinned || !handler) {
        return;
    }
    join(l, pinned, handler);
    l->pinned = pinned;
    copy(l, l->now, behind);
    visit(l, node->body);
    l->pinned = outer;
    join(l, l->now, handler);
}

static void jump(live *l, const word *to)
{
    copy(l, l->now, to);
}

/* ---- nodes --------------------------------------------------------------- */

static void visit_captures(live *l, const tl_funcdef *func)
{
    for (uint32_t i = 0; func && i < func->ncaptures; i++) {
        const tl_ref_info *outer = &func->captures[i].outer;

        if (outer->kind == TL_REF_LOCAL) {
            put(l->now, outer->index);
        }
    }
}

/* Methods are made together with their module. */
static void visit_module(live *l, const tl_ast_module *node)
{
    write_slot(l, &node->target);
    visit_captures(l, node->func);
}

static void visit_aug(live *l, tl_ast_aug *aug)
{
    tl_ast_name *name = TL_AST(name, aug->target);

    if (aug->target->kind == TL_AST_NAME) {
        write_slot(l, &name->ref);
        read_slot(l, &name->ref);
    } else {
        target(l, aug->target);
    }
    visit(l, aug->value);
}

static void visit_assign(live *l, tl_ast_assign *assign)
{
    for (uint32_t i = assign->targets.len; i > 0; i--) {
        target(l, assign->targets.items[i - 1]);
    }
    visit(l, assign->value);
}

static void visit_grad(live *l, tl_ast_grad *grad)
{
    visit(l, grad->loss);
    visit(l, grad->body);
    visit_list(l, &grad->targets);
    if (grad->scaler) {
        visit(l, grad->scaler);
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
static void visit_children(live *l, tl_ast *node)
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
        visit(l, k.items[i - 1]);
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

static void visit_stmt(live *l, tl_ast *node)
{
    switch (node->kind) {
    case TL_AST_RETURN:
        jump(l, l->at_exit);
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
        visit_loop(l, node, for_body);
        visit(l, TL_AST(for, node)->iter);
        break;
    case TL_AST_WHILE:
        visit_loop(l, node, while_body);
        break;
    case TL_AST_TRY:
        visit_try(l, TL_AST(try, node));
        break;
    case TL_AST_EXPR_STMT:
        visit(l, TL_AST(expr_stmt, node)->value);
        keep_receiver(TL_AST(expr_stmt, node));
        break;
    case TL_AST_WITH_ITEM:
        if (TL_AST(with_item, node)->target) {
            target(l, TL_AST(with_item, node)->target);
        }
        visit(l, TL_AST(with_item, node)->value);
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
            visit(l, TL_AST(decl, node)->value);
        }
        break;
    case TL_AST_CELL:
        visit_type(l, TL_AST(cell, node)->type);
        if (TL_AST(cell, node)->value) {
            visit(l, TL_AST(cell, node)->value);
        }
        break;
    default:
        visit_children(l, node);
        break;
    }
}

static void visit(live *l, tl_ast *node)
{
    if (l->failed) {
        return;
    }
    switch (node->kind) {
    case TL_AST_NAME:
        read_slot(l, &TL_AST(name, node)->ref);
        break;
    case TL_AST_DIM_PACK:
        put(l->now, TL_AST(dim_pack, node)->ref.index);
        break;
    case TL_AST_LIST_COMP:
    case TL_AST_DICT_COMP:
        visit_loop(l, node, comp_body);
        visit(l, TL_AST(comp_for, clauses_of(node)->items[0])->iter);
        break;
    case TL_AST_COND:
        visit_cond(l, TL_AST(cond, node));
        break;
    case TL_AST_AS:
        visit_type(l, TL_AST(as, node)->type);
        visit(l, TL_AST(as, node)->value);
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

/* ---- one function -------------------------------------------------------- */

static bool pin_names(void *arg, tl_ast *node)
{
    live *l = arg;

    if (node->kind == TL_AST_NAME &&
        TL_AST(name, node)->ref.kind == TL_REF_LOCAL) {
        put(l->pinned, TL_AST(name, node)->ref.index);
    } else if (node->kind == TL_AST_DIM_PACK) {
        put(l->pinned, TL_AST(dim_pack, node)->ref.index);
    }
    return tl_ast_children(node, pin_names, l);
}

/* Names of grad targets, here but not in nested functions. */
static bool pin_grad_targets(void *arg, tl_ast *node)
{
    live *l = arg;

    switch (node->kind) {
    case TL_AST_FN:
    case TL_AST_LAMBDA:
    case TL_AST_MODULE:
    case TL_AST_RECORD:
    case TL_AST_TEST:
        return true;
    case TL_AST_GRAD:
        for (uint32_t i = 0; i < TL_AST(grad, node)->targets.len; i++) {
            pin_names(l, TL_AST(grad, node)->targets.items[i]);
        }
        break;
    default:
        break;
    }
    return tl_ast_children(node, pin_grad_targets, l);
}

static void pin_always(live *l, const tl_funcdef *func)
{
    if (func->kind == TL_FUNC_METHOD || func->kind == TL_FUNC_MODULE) {
        put(l->pinned, 0);
    }
    for (uint32_t i = 0;
         func->kind == TL_FUNC_MODULE && i < func->params.len; i++) {
        put(l->pinned, TL_AST(param, func->params.items[i])->ref.index);
    }
    for (uint32_t i = 0; i < func->ndims; i++) {
        put(l->pinned, func->dims[i]);
    }
    if (func->ret) {
        pin_names(l, (tl_ast *)func->ret);
    }
    if (func->has_grad) {
        pin_grad_targets(l, (tl_ast *)func->body);
    }
}

static tl_status keep_saved(tl_funcdef *func, const word *set,
                            tl_arena *arena, tl_diag *diag)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < func->nslots; i++) {
        n += has(set, i);
    }
    if (n == 0) {
        return TL_OK;
    }
    func->saved = tl_arena_array(arena, n, sizeof(*func->saved));
    if (!func->saved) {
        return tl_fail_memory(diag, "a function", n * sizeof(*func->saved));
    }
    for (uint32_t i = 0; i < func->nslots; i++) {
        if (has(set, i)) {
            func->saved[func->nsaved++] = i;
        }
    }
    return TL_OK;
}

/* Both passes over `body`, behind which `behind` is live; afterwards `now` is
 * what is live before it. */
static void two_passes(live *l, tl_ast *body, const word *behind)
{
    for (int pass = 0; pass < 2; pass++) {
        l->marking = pass == 1;
        l->at_exit = behind;
        copy(l, l->now, behind);
        visit(l, body);
    }
}

/* The clause `backward dy:`; stores what it needs of the forward part. */
static tl_status backward(live *l, tl_funcdef *func, word *saved,
                          tl_arena *arena, tl_diag *diag)
{
    tl_ast_backward *clause = TL_AST(backward, func->backward);
    word *none = new_set(l, NULL);

    if (!none) {
        return tl_fail_memory(diag, "a function", l->nwords * sizeof(word));
    }
    two_passes(l, clause->body, none);
    copy(l, saved, l->now);
    for (uint32_t i = 0; i < clause->names.len; i++) {
        drop(saved, TL_AST(name, clause->names.items[i])->ref.index);
    }
    TL_TRY(keep_saved(func, saved, arena, diag));
    join(l, l->pinned, saved); /* the clause may run again: mark no more */
    two_passes(l, clause->body, none);
    return TL_OK;
}

static tl_status mark(live *l, tl_funcdef *func, tl_arena *arena,
                      tl_diag *diag)
{
    word *behind;

    l->nwords = (func->nslots + BITS - 1) / BITS;
    l->now = new_set(l, NULL);
    l->pinned = new_set(l, NULL);
    behind = new_set(l, NULL);
    if (l->failed) {
        return tl_fail_memory(diag, "a function", l->nwords * sizeof(word));
    }
    l->at_break = l->at_continue = behind;
    pin_always(l, func);
    if (func->backward) {
        TL_TRY(backward(l, func, behind, arena, diag));
    }
    if (!func->has_breakpoint) {
        two_passes(l, (tl_ast *)func->body, behind);
    }
    return l->failed ? tl_fail_memory(diag, "a function",
                                      tl_mem_failed_size())
                     : TL_OK;
}

tl_status tl_live_mark(tl_funcdef *func, tl_arena *arena, tl_diag *diag)
{
    live l = {.failed = false};
    tl_status status;

    if (func->nslots == 0 || !func->body) {
        return TL_OK;
    }
    tl_arena_init(&l.arena);
    tl_map_init(&l.loops);
    status = mark(&l, func, arena, diag);
    tl_map_fini(&l.loops);
    tl_arena_fini(&l.arena);
    return status;
}
