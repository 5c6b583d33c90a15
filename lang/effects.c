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

typedef struct effects {
    tl_resolver *r;
    tl_funcdef *func; /* being walked */
    struct {
        edge *items;
        size_t len, cap;
    } edges;
    tl_status status;
} effects;

static void add_edge(effects *e, const tl_funcdef *to)
{
    if (e->status == TL_OK && to != e->func) {
        e->status =
            TL_VEC_PUSH(&e->edges, ((edge){e->func, to}), e->r->diag);
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

/* The function stored under `ref` in the frame of `outer`, or among the
 * globals, or the methods of its module; NULL if that is not known. */
static const tl_funcdef *find_stored(const effects *e,
                                     const tl_funcdef *outer,
                                     const tl_ref_info *ref)
{
    const tl_funcdef *found = NULL;

    for (size_t i = 0; i < e->r->funcs.len; i++) {
        const tl_funcdef *f = e->r->funcs.items[i];
        const tl_ref_info *target = target_of(f->node);

        if (!target || target->kind != ref->kind ||
            target->index != ref->index) {
            continue;
        }
        if (ref->kind == TL_REF_GLOBAL
                ? tl_map_get(&e->r->defs, f->name, NULL) != NULL
            : ref->kind == TL_REF_FIELD ? f->module == outer->module
                                        : f->outer == outer) {
            found = f;
        }
    }
    return found;
}

static const tl_funcdef *callee(const effects *e, const tl_ref_info *ref)
{
    const tl_funcdef *func = e->func;

    while (ref->kind == TL_REF_CAPTURE && func->outer) {
        ref = &func->captures[ref->index].outer;
        func = func->outer;
    }
    if (ref->kind == TL_REF_SELF_FN) {
        return func;
    }
    if (ref->kind == TL_REF_FIELD && ref->field_class != TL_FIELD_METHOD) {
        return NULL;
    }
    return find_stored(e, func, ref);
}

static void add_name(effects *e, const tl_ast_name *name)
{
    const tl_builtins *b = e->r->builtins;
    const tl_funcdef *f;

    if (name->ref.kind == TL_REF_BUILTIN) {
        e->func->effects |= b->effects ? b->effects(b->arg, name->name) : 0;
        return;
    }
    f = callee(e, &name->ref);
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
        (name->ref.kind != TL_REF_BUILTIN && !callee(e, &name->ref))) {
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
    const tl_kids *items = target->kind == TL_AST_TUPLE
                               ? &TL_AST(tuple, target)->items
                           : target->kind == TL_AST_LIST
                               ? &TL_AST(list, target)->items
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
    tl_free(e.edges.items);
    return e.status;
}
