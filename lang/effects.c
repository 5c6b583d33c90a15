/* effects.c - what each function does besides computing its result.
 *
 * A walk over each body collects what it does itself and which functions of
 * the unit it names; naming counts as calling, so that functions passed to
 * others are covered.  Then effects flow along these edges until nothing
 * changes.  A call of anything else is UNKNOWN. */
#include <string.h>

#include "lang/scope_impl.h"

#include "runtime/base/mem.h"
#include "runtime/base/vec.h"

typedef struct edge {
    tl_funcdef *from;
    const tl_funcdef *to;
} edge;

/* Definitions with the same owner. */
typedef struct stored {
    const tl_funcdef *func;
    const struct stored *next;
} stored;

typedef struct effects {
    tl_resolver *r;
    tl_funcdef *func; /* being walked */
    struct {
        edge *items;
        size_t len, cap;
    } edges;
    tl_map stored; /* owner_of -> stored */
    tl_status status;
} effects;

static void add_edge(effects *e, const tl_funcdef *to)
{
    if (e->status == TL_OK && to != e->func) {
        e->status = TL_VEC_PUSH(&e->edges, ((edge){e->func, to}), e->r->diag);
    }
}

/* Where a function-like node is stored; NULL for what has no name. */
static const tl_ref_info *target_of(const tl_ast *node)
{
    switch (node->kind) {
    case TL_AST_FN:
        return &TL_AST(fn, node)->target;
    case TL_AST_MODULE:
        return &TL_AST(module, node)->target;
    case TL_AST_RECORD:
        return &TL_AST(record, node)->target;
    default:
        return NULL;
    }
}

/* What a definition belongs to: the function whose slot it fills, the module
 * whose method it is; at the top level its name. */
static const void *owner_of(const tl_funcdef *func)
{
    const tl_ref_info *target = target_of(func->node);

    if (!target) {
        return NULL;
    }
    return target->kind == TL_REF_GLOBAL  ? (const void *)func->name
           : target->kind == TL_REF_FIELD ? (const void *)func->module
                                          : (const void *)func->outer;
}

static void add_stored(effects *e, const tl_funcdef *func)
{
    const void *owner = owner_of(func);
    stored *item;

    if (!owner || e->status != TL_OK) {
        return;
    }
    item = TL_ARENA_NEW(&e->r->scratch, stored);
    if (!item) {
        e->status = tl_fail_memory(e->r->diag, "the resolver", sizeof(*item));
        return;
    }
    *item = (stored){func, tl_map_get(&e->stored, owner, NULL)};
    if (!tl_map_set(&e->stored, owner, item)) {
        e->status =
            tl_fail_memory(e->r->diag, "the resolver", tl_mem_failed_size());
    }
}

/* The definition stored under `ref` by `owner`, the newest first; NULL if
 * there is none. */
static const tl_funcdef *find_stored(const effects *e, const void *owner,
                                     const tl_ref_info *ref)
{
    const stored *item = tl_map_get(&e->stored, owner, NULL);

    for (; item; item = item->next) {
        if (target_of(item->func->node)->index == ref->index) {
            return item->func;
        }
    }
    return NULL;
}

/* The function that a name means, if that is known. */
static const tl_funcdef *callee(const effects *e, const tl_ast_name *name)
{
    const tl_funcdef *func = e->func;
    const tl_ref_info *ref = &name->ref;

    while (ref->kind == TL_REF_CAPTURE && func->outer) {
        ref = &func->captures[ref->index].outer;
        func = func->outer;
    }
    switch ((tl_ref_kind)ref->kind) {
    case TL_REF_SELF_FN:
        return func;
    case TL_REF_LOCAL:
        return find_stored(e, func, ref);
    case TL_REF_FIELD:
        return ref->field_class == TL_FIELD_METHOD
                   ? find_stored(e, func->module, ref)
                   : NULL;
    case TL_REF_GLOBAL:
        return tl_map_get(&e->r->defs, name->name, NULL)
                   ? find_stored(e, name->name, ref)
                   : NULL;
    default:
        return NULL;
    }
}

static void add_name(effects *e, const tl_ast_name *name)
{
    const tl_builtins *b = e->r->builtins;
    const tl_funcdef *f;

    if (name->ref.kind == TL_REF_BUILTIN) {
        e->func->effects |= b->effects ? b->effects(b->arg, name->name) : 0;
        return;
    }
    f = callee(e, name);
    if (f) {
        add_edge(e, f);
    }
}

/* The value in front of `(...)`, or behind `|>`. */
static void add_call(effects *e, const tl_ast *called)
{
    const tl_ast_name *name = TL_AST(name, called);

    if (called->kind == TL_AST_LAMBDA) {
        return; /* its own effects are joined where it stands */
    }
    if (called->kind != TL_AST_NAME ||
        (name->ref.kind != TL_REF_BUILTIN && !callee(e, name))) {
        e->func->effects |= TL_EFFECT_UNKNOWN;
    }
}

static bool writes_cell(const tl_ast *target)
{
    while (target->kind == TL_AST_INDEX) {
        target = TL_AST(index, target)->object;
    }
    return target->kind == TL_AST_ATTR;
}

static void add_target(effects *e, const tl_ast *target)
{
    const tl_kids *items =
        target->kind == TL_AST_TUPLE  ? &TL_AST(tuple, target)->items
        : target->kind == TL_AST_LIST ? &TL_AST(list, target)->items
                                      : NULL;

    for (uint32_t i = 0; items && i < items->len; i++) {
        add_target(e, items->items[i]);
    }
    if (writes_cell(target)) {
        e->func->effects |= TL_EFFECT_STATE;
    }
}

static bool visit(void *arg, tl_ast *node);

/* A nested function, where it is made. */
static bool visit_nested(effects *e, const tl_funcdef *func)
{
    if (func) {
        add_edge(e, func);
    }
    return e->status == TL_OK;
}

static bool visit(void *arg, tl_ast *node)
{
    effects *e = arg;

    switch (node->kind) {
    case TL_AST_FN:
        /* at the top level, and in a module, definitions run nothing */
        return e->func->kind == TL_FUNC_UNIT ||
               e->func->kind == TL_FUNC_MODULE ||
               visit_nested(e, TL_AST(fn, node)->func);
    case TL_AST_LAMBDA:
        return visit_nested(e, TL_AST(lambda, node)->func);
    case TL_AST_MODULE:
    case TL_AST_RECORD:
    case TL_AST_TEST:
        return true;
    case TL_AST_NAME:
        add_name(e, TL_AST(name, node));
        return e->status == TL_OK;
    case TL_AST_CALL:
        add_call(e, TL_AST(call, node)->callee);
        break;
    case TL_AST_PIPE:
        add_call(e, TL_AST(pipe, node)->right);
        break;
    case TL_AST_ASSIGN:
        for (uint32_t i = 0; i < TL_AST(assign, node)->targets.len; i++) {
            add_target(e, TL_AST(assign, node)->targets.items[i]);
        }
        break;
    case TL_AST_AUG:
        add_target(e, TL_AST(aug, node)->target);
        break;
    default:
        break;
    }
    return tl_ast_children(node, visit, e);
}

static void walk(effects *e, tl_funcdef *func)
{
    e->func = func;
    for (uint32_t i = 0; i < func->params.len; i++) {
        tl_ast *value = TL_AST(param, func->params.items[i])->value;

        if (value) {
            visit(e, value);
        }
    }
    if (func->body) {
        visit(e, (tl_ast *)func->body);
    }
    if (func->backward) {
        visit(e, TL_AST(backward, func->backward)->body);
    }
}

tl_status tl_effects_infer(tl_resolver *r)
{
    effects e = {.r = r};
    bool changed = true;

    tl_map_init(&e.stored);
    for (size_t i = 0; i < r->funcs.len; i++) {
        add_stored(&e, r->funcs.items[i]);
    }
    for (size_t i = 0; i < r->funcs.len && e.status == TL_OK; i++) {
        walk(&e, r->funcs.items[i]);
    }
    while (changed && e.status == TL_OK) {
        changed = false;
        for (size_t i = 0; i < e.edges.len; i++) {
            const edge *x = &e.edges.items[i];
            unsigned joined = x->from->effects | x->to->effects;

            changed |= joined != x->from->effects;
            x->from->effects = joined;
        }
    }
    tl_map_fini(&e.stored);
    tl_free(e.edges.items);
    return e.status;
}
