/* scope.c - the two walks of the resolver over statements and expressions.
 *
 * The first (tl_scope_collect) enters what a function's own statements bind;
 * the second (tl_scope_walk) goes in order of evaluation, fills in the
 * tl_ref_infos and checks what may stand where.  Function-like nodes are
 * handed to scope_def.c. */
#include <string.h>

#include "lang/scope_impl.h"

#include "lang/habits.h"
#include "runtime/base/mem.h"
#include "runtime/op/dtype.h"

/* ---- first walk: names that are bound ------------------------------------ */

static unsigned binds_of(const tl_ast *value)
{
    switch (value ? value->kind : TL_AST_NONE) {
    case TL_AST_LIST:
    case TL_AST_LIST_COMP:
        return TL_BIND_LIST;
    case TL_AST_DICT:
    case TL_AST_DICT_COMP:
        return TL_BIND_DICT;
    case TL_AST_STR:
    case TL_AST_FSTRING:
        return TL_BIND_STR;
    default:
        return TL_BIND_OTHER;
    }
}

static void collect_target(tl_resolver *r, tl_scope *s, const tl_ast *node,
                           unsigned binds)
{
    const tl_kids *items;

    switch (node->kind) {
    case TL_AST_NAME:
        (void)tl_scope_bind(r, s, TL_AST(name, node)->name, node->span,
                            binds);
        return;
    case TL_AST_STAR:
        collect_target(r, s, TL_AST(star, node)->value, TL_BIND_OTHER);
        return;
    case TL_AST_TUPLE:
        items = &TL_AST(tuple, node)->items;
        break;
    case TL_AST_LIST:
        items = &TL_AST(list, node)->items;
        break;
    default:
        return; /* a path binds nothing */
    }
    for (uint32_t i = 0; i < items->len; i++) {
        collect_target(r, s, items->items[i], TL_BIND_OTHER);
    }
}

static void collect_def(tl_resolver *r, tl_scope *s, const tl_sym *name,
                        tl_span at)
{
    const tl_var *had = tl_scope_find(s, name);

    if (had && (had->binds & TL_BIND_DEF)) {
        tl_warn(r->diag, TL_W0230, at, "`%s` is defined twice", name->text);
        tl_diag_label_add(r->diag, had->at, "the first one is lost");
    }
    (void)tl_scope_bind(r, s, name, at, TL_BIND_DEF);
}

static void collect_import(tl_resolver *r, tl_scope *s, const tl_ast *node)
{
    const tl_kids *names = node->kind == TL_AST_IMPORT
                               ? &TL_AST(import, node)->names
                               : &TL_AST(from, node)->names;

    for (uint32_t i = 0; i < names->len; i++) {
        const tl_ast *item = names->items[i];
        const tl_sym *name, *alias;

        if (item->kind == TL_AST_IMPORT_NAME) {
            name = TL_AST(import_name, item)->path.names[0];
            alias = TL_AST(import_name, item)->alias;
        } else {
            name = TL_AST(from_name, item)->name;
            alias = TL_AST(from_name, item)->alias;
        }
        (void)tl_scope_bind(r, s, alias ? alias : name, item->span,
                            TL_BIND_OTHER);
    }
}

typedef struct collector {
    tl_resolver *r;
    tl_scope *s;
} collector;

static bool collect_child(void *arg, tl_ast *child)
{
    collector *c = arg;

    tl_scope_collect(c->r, c->s, child);
    return true;
}

static void collect_assign(tl_resolver *r, tl_scope *s,
                           const tl_ast_assign *assign)
{
    for (uint32_t i = 0; i < assign->targets.len; i++) {
        collect_target(r, s, assign->targets.items[i],
                       binds_of(assign->value));
    }
    if (assign->value->kind == TL_AST_GRAD) {
        tl_scope_collect(r, s, TL_AST(grad, assign->value)->body);
    }
}

void tl_scope_collect(tl_resolver *r, tl_scope *s, const tl_ast *node)
{
    collector c = {r, s};

    switch (node->kind) {
    case TL_AST_ASSIGN:
        collect_assign(r, s, TL_AST(assign, node));
        return;
    case TL_AST_AUG:
        collect_target(r, s, TL_AST(aug, node)->target, TL_BIND_AUG);
        if (TL_AST(aug, node)->value->kind == TL_AST_GRAD) {
            tl_scope_collect(r, s, TL_AST(aug, node)->value);
        }
        return;
    case TL_AST_DECL:
        collect_target(r, s, TL_AST(decl, node)->target,
                       binds_of(TL_AST(decl, node)->value));
        return;
    case TL_AST_FN:
        collect_def(r, s, TL_AST(fn, node)->name, TL_AST(fn, node)->name_at);
        return;
    case TL_AST_MODULE:
        collect_def(r, s, TL_AST(module, node)->name,
                    TL_AST(module, node)->name_at);
        return;
    case TL_AST_RECORD:
        collect_def(r, s, TL_AST(record, node)->name,
                    TL_AST(record, node)->name_at);
        return;
    case TL_AST_IMPORT:
    case TL_AST_FROM:
        collect_import(r, s, node);
        return;
    case TL_AST_FOR:
        collect_target(r, s, TL_AST(for, node)->target, TL_BIND_OTHER);
        tl_scope_collect(r, s, TL_AST(for, node)->body);
        return;
    case TL_AST_WITH_ITEM:
        if (TL_AST(with_item, node)->target) {
            collect_target(r, s, TL_AST(with_item, node)->target,
                           TL_BIND_OTHER);
        }
        return;
    case TL_AST_TRY:
        collect_target(r, s, TL_AST(try, node)->target, TL_BIND_OTHER);
        break;
    case TL_AST_BACKWARD:
        for (uint32_t i = 0; i < TL_AST(backward, node)->names.len; i++) {
            collect_target(r, s, TL_AST(backward, node)->names.items[i],
                           TL_BIND_OTHER);
        }
        break;
    case TL_AST_BLOCK:
    case TL_AST_IF:
    case TL_AST_ARM:
    case TL_AST_WHILE:
    case TL_AST_WITH:
    case TL_AST_GRAD:
    case TL_AST_RETURN:
    case TL_AST_EXPR_STMT:
        break; /* a grad block may be below */
    default:
        return;
    }
    (void)tl_ast_children(node, collect_child, &c);
}

/* ---- names --------------------------------------------------------------- */

/* Types that are no values: known even if the evaluator has no such name. */
static bool is_type_name(const tl_sym *name)
{
    static const char *const names[] = {"int",  "float", "bool",   "str",
                                        "list", "dict",  "grads",  "cells",
                                        "tree", "tensor", "real"};
    tl_dtype dtype;

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strcmp(names[i], name->text) == 0) {
            return true;
        }
    }
    return tl_dtype_find(name->text, name->len, &dtype);
}

static void read_name(tl_resolver *r, tl_scope *s, tl_ast_name *name)
{
    name->ref = tl_scope_look(r, s, name->name);
    if (name->ref.kind == TL_REF_NONE) {
        tl_scope_undefined(r, s, name->name, name->base.span);
    }
    if (name->name == r->breakpoint &&
        name->ref.kind == TL_REF_BUILTIN) {
        s->func->has_breakpoint = true;
    }
}

/* A dimension name that nothing around knows is a new local. */
static tl_ref_info read_dim(tl_resolver *r, tl_scope *s, const tl_sym *name,
                            tl_span at)
{
    tl_ref_info ref = tl_scope_look(r, s, name);

    if (ref.kind == TL_REF_NONE || ref.kind == TL_REF_BUILTIN) {
        ref = tl_scope_dim(r, s, name, at);
    }
    return ref;
}

static void walk_dim(tl_resolver *r, tl_scope *s, tl_ast *dim)
{
    tl_ast_name *name = TL_AST(name, dim);

    if (dim->kind == TL_AST_NAME && tl_scope_is_upper(name->name)) {
        name->dim = true;
        name->ref = read_dim(r, s, name->name, dim->span);
    } else if (dim->kind == TL_AST_DIM_PACK) {
        TL_AST(dim_pack, dim)->ref =
            read_dim(r, s, TL_AST(dim_pack, dim)->name, dim->span);
    } else if (dim->kind == TL_AST_BINARY) {
        walk_dim(r, s, TL_AST(binary, dim)->left);
        walk_dim(r, s, TL_AST(binary, dim)->right);
    } else {
        tl_scope_walk(r, s, dim);
    }
}

static void walk_type_name(tl_resolver *r, tl_scope *s,
                           tl_ast_type_name *type)
{
    tl_ast_name *name = TL_AST(name, type->name);

    if (type->name->kind == TL_AST_NAME && is_type_name(name->name)) {
        name->ref = (tl_ref_info){.kind = TL_REF_BUILTIN};
    } else {
        tl_scope_walk(r, s, type->name);
    }
    tl_scope_walk_list(r, s, &type->args);
}

/* ---- targets ------------------------------------------------------------- */

/* `f = v` in a method of a module with a cell f; true if reported. */
static bool shadows_cell(tl_resolver *r, const tl_scope *s,
                         const tl_ast_name *name)
{
    const tl_moddef *module = s->func->module;
    int64_t i = tl_moddef_find(module, name->name);

    if (i < 0 || s->func->kind != TL_FUNC_METHOD ||
        !TL_FIELD_IS_CELL(module->fields[i].class_)) {
        return false;
    }
    tl_scope_error(r, TL_E0114, name->base.span,
                   "`%s` is a cell of `%s`; a plain assignment makes a local "
                   "variable",
                   name->name->text, module->name->text);
    tl_diag_help(r->diag, "write `self.%s = ...`, or choose another name",
                 name->name->text);
    return true;
}

/* `x += 1` where x is bound in this function by nothing else. */
static void aug_unbound(tl_resolver *r, tl_scope *s, const tl_ast_name *name)
{
    tl_ref_info outside = tl_scope_look_outside(r, s, name->name);
    const char *text = name->name->text;

    switch (outside.kind) {
    case TL_REF_GLOBAL:
        tl_scope_error(r, TL_E0212, name->base.span,
                       "`%s` belongs to the top level: only statements there "
                       "rebind it",
                       text);
        tl_diag_help(r->diag, "return the new value, or keep it in a cell of "
                              "a module");
        break;
    case TL_REF_CAPTURE:
    case TL_REF_SELF_FN:
        tl_scope_error(r, TL_E0212, name->base.span,
                       "`%s` is captured by value: a nested function cannot "
                       "rebind it",
                       text);
        tl_diag_help(r->diag, "return the new value");
        break;
    default:
        tl_scope_undefined(r, s, name->name, name->base.span);
        break;
    }
}

/* The name that a function, constructor or top level binds here. */
static void bind_name(const tl_scope *s, tl_ast_name *name)
{
    const tl_var *var;
    int64_t i;

    if (s->func->kind == TL_FUNC_MODULE) {
        i = tl_moddef_find(s->func->module, name->name);
        if (i >= 0 && s->made) {
            s->made[i] = true;
            name->ref = (tl_ref_info){
                .kind = TL_REF_FIELD,
                .field_class = s->func->module->fields[i].class_,
                .index = (uint32_t)i,
                .self = TL_SELF_SLOT};
            return;
        }
    }
    var = tl_scope_find(s, name->name);
    if (var) {
        name->ref = (tl_ref_info){.kind = s->func->kind == TL_FUNC_UNIT
                                              ? TL_REF_GLOBAL
                                              : TL_REF_LOCAL,
                                  .index = var->slot};
    }
}

static const tl_ast *path_root(const tl_ast *node, bool *through_attr)
{
    for (;;) {
        if (node->kind == TL_AST_INDEX) {
            node = TL_AST(index, node)->object;
        } else if (node->kind == TL_AST_ATTR) {
            *through_attr = true;
            node = TL_AST(attr, node)->object;
        } else {
            return node;
        }
    }
}

/* `x[i] = v` rebinds x, so x must be a variable of this function. */
static void check_path(tl_resolver *r, const tl_scope *s, const tl_ast *path)
{
    bool through_attr = false;
    const tl_ast *root = path_root(path, &through_attr);
    const tl_ast_name *name = TL_AST(name, root);

    if (root->kind != TL_AST_NAME || through_attr) {
        return;
    }
    if (name->ref.kind == TL_REF_FIELD && s->func->kind != TL_FUNC_MODULE) {
        bool cell = TL_FIELD_IS_CELL((tl_field_class)name->ref.field_class);

        tl_scope_error(r, cell ? TL_E0114 : TL_E0212, root->span,
                       cell ? "`%s` is a cell of the module"
                            : "`%s` is a constant of the module",
                       name->name->text);
        tl_diag_help(r->diag,
                     cell ? "write `self.%s[...] = ...`"
                          : "declare it as a cell, `buffer %s: ...`",
                     name->name->text);
    } else if (name->ref.kind == TL_REF_BUILTIN ||
               name->ref.kind == TL_REF_CAPTURE ||
               name->ref.kind == TL_REF_SELF_FN ||
               (name->ref.kind == TL_REF_GLOBAL &&
                s->func->kind != TL_FUNC_UNIT)) {
        tl_scope_error(r, TL_E0212, root->span,
                       "`%s[...] = ...` rebinds `%s`, which is no variable "
                       "of this function",
                       name->name->text, name->name->text);
        tl_diag_help(r->diag, "copy it first, `y = %s`, and return the new "
                              "value",
                     name->name->text);
    }
}

/* A target; plain: of an assignment, which must not hide a cell. */
static void walk_target(tl_resolver *r, tl_scope *s, tl_ast *node, bool plain)
{
    const tl_kids *items = NULL;

    switch (node->kind) {
    case TL_AST_NAME:
        if (!plain || !shadows_cell(r, s, TL_AST(name, node))) {
            bind_name(s, TL_AST(name, node));
        }
        break;
    case TL_AST_STAR:
        walk_target(r, s, TL_AST(star, node)->value, plain);
        break;
    case TL_AST_TUPLE:
        items = &TL_AST(tuple, node)->items;
        break;
    case TL_AST_LIST:
        items = &TL_AST(list, node)->items;
        break;
    default:
        tl_scope_walk(r, s, node);
        check_path(r, s, node);
        break;
    }
    for (uint32_t i = 0; items && i < items->len; i++) {
        walk_target(r, s, items->items[i], plain);
    }
}

static void walk_aug(tl_resolver *r, tl_scope *s, tl_ast_aug *aug)
{
    tl_ast_name *name = TL_AST(name, aug->target);
    const tl_var *var;

    tl_scope_walk(r, s, aug->value);
    if (aug->target->kind != TL_AST_NAME) {
        walk_target(r, s, aug->target, true);
        return;
    }
    if (shadows_cell(r, s, name)) {
        return;
    }
    var = tl_scope_find(s, name->name);
    if (s->func->kind == TL_FUNC_UNIT && var && var->binds == TL_BIND_AUG &&
        var->slot >= r->unit->nglobals) {
        tl_scope_undefined(r, s, name->name, name->base.span);
    } else if (s->func->kind != TL_FUNC_UNIT &&
               s->func->kind != TL_FUNC_MODULE && var &&
               var->binds == TL_BIND_AUG) {
        aug_unbound(r, s, name);
    } else {
        bind_name(s, name);
        if (name->ref.kind == TL_REF_NONE) {
            tl_scope_undefined(r, s, name->name, name->base.span);
        }
    }
}

/* ---- comprehensions ------------------------------------------------------ */

static void push_targets(tl_resolver *r, tl_scope *s, tl_ast *node)
{
    const tl_kids *items = NULL;
    tl_ast_name *name = TL_AST(name, node);

    if (node->kind == TL_AST_NAME) {
        tl_var var = {.name = name->name, .at = node->span};

        var.slot = tl_scope_slot(r, s, name->name);
        name->ref = (tl_ref_info){.kind = TL_REF_LOCAL, .index = var.slot};
        tl_scope_push(r, s, &var);
    } else if (node->kind == TL_AST_STAR) {
        push_targets(r, s, TL_AST(star, node)->value);
    } else if (node->kind == TL_AST_TUPLE) {
        items = &TL_AST(tuple, node)->items;
    }
    for (uint32_t i = 0; items && i < items->len; i++) {
        push_targets(r, s, items->items[i]);
    }
}

static void walk_comprehension(tl_resolver *r, tl_scope *s,
                               const tl_kids *clauses, tl_ast *key,
                               tl_ast *value)
{
    size_t depth = s->inner.len;

    for (uint32_t i = 0; i < clauses->len; i++) {
        tl_ast *clause = clauses->items[i];

        if (clause->kind == TL_AST_COMP_FOR) {
            tl_scope_walk(r, s, TL_AST(comp_for, clause)->iter);
            push_targets(r, s, TL_AST(comp_for, clause)->target);
        } else {
            tl_scope_walk(r, s, clause);
        }
    }
    if (key) {
        tl_scope_walk(r, s, key);
    }
    tl_scope_walk(r, s, value);
    s->inner.len = depth;
}

/* ---- statements ---------------------------------------------------------- */

/* While a loop of the top level runs, nested functions capture its
 * variables. */
static void push_loop_targets(tl_resolver *r, tl_scope *s, const tl_ast *node)
{
    const tl_ast_name *name = TL_AST(name, node);

    if (node->kind == TL_AST_NAME) {
        tl_scope_push(r, s,
                      &(tl_var){.name = name->name,
                                .slot = name->ref.index,
                                .binds = TL_BIND_LOOP,
                                .at = node->span});
    } else if (node->kind == TL_AST_STAR) {
        push_loop_targets(r, s, TL_AST(star, node)->value);
    } else if (node->kind == TL_AST_TUPLE) {
        const tl_kids *items = &TL_AST(tuple, node)->items;

        for (uint32_t i = 0; i < items->len; i++) {
            push_loop_targets(r, s, items->items[i]);
        }
    }
}

static void walk_for(tl_resolver *r, tl_scope *s, tl_ast_for *loop)
{
    size_t depth = s->inner.len;

    tl_scope_walk(r, s, loop->iter);
    walk_target(r, s, loop->target, false);
    if (s->func->kind == TL_FUNC_UNIT) {
        push_loop_targets(r, s, loop->target);
    }
    s->loops++;
    tl_scope_walk(r, s, loop->body);
    s->loops--;
    s->inner.len = depth;
}

static void walk_grad(tl_resolver *r, tl_scope *s, tl_ast_grad *grad)
{
    uint32_t loops = s->loops, outer_loops = s->outer_loops;

    s->func->has_grad = true;
    if (grad->scaler) {
        tl_scope_walk(r, s, grad->scaler);
    }
    tl_scope_walk_list(r, s, &grad->targets);
    s->grads++;
    s->outer_loops += s->loops;
    s->loops = 0;
    tl_scope_walk(r, s, grad->body);
    s->grads--;
    s->loops = loops;
    s->outer_loops = outer_loops;
    tl_scope_walk(r, s, grad->loss);
}

static void check_return(tl_resolver *r, const tl_scope *s, tl_span at)
{
    switch (s->func->kind) {
    case TL_FUNC_UNIT:
    case TL_FUNC_TEST:
    case TL_FUNC_MODULE:
    case TL_FUNC_RECORD:
        tl_scope_error(r, TL_E0116, at,
                       "`return` stands outside a function");
        break;
    default:
        if (s->grads > 0) {
            tl_scope_error(r, TL_E0503, at,
                           "`return` cannot leave a `grad` block");
            tl_diag_help(r->diag, "names bound in the block stay visible: "
                                  "return behind it");
        }
        break;
    }
}

static void check_jump(tl_resolver *r, const tl_scope *s, const tl_ast *node)
{
    const char *word = node->kind == TL_AST_BREAK ? "break" : "continue";

    if (s->loops > 0) {
        return;
    }
    if (s->outer_loops > 0) {
        tl_scope_error(r, TL_E0503, node->span,
                       "`%s` cannot leave a `grad` block", word);
        tl_diag_help(r->diag, "put the condition behind the block");
    } else {
        tl_scope_error(r, TL_E0116, node->span,
                       "`%s` stands outside a loop: wanted a `for` or "
                       "`while` around it",
                       word);
    }
}

/* `xs.append(v)` where xs is known to be a list, dict or str. */
static void check_unused(tl_resolver *r, const tl_scope *s,
                         const tl_ast_expr_stmt *stmt)
{
    const tl_ast_attr *attr;
    const tl_ast_name *name;
    const tl_var *var;
    const char *help;
    unsigned literal = TL_BIND_LIST | TL_BIND_DICT | TL_BIND_STR;

    if (!stmt->unused) {
        return;
    }
    attr = TL_AST(attr, TL_AST(call, stmt->value)->callee);
    name = TL_AST(name, attr->object);
    if (attr->object->kind != TL_AST_NAME) {
        return;
    }
    var = tl_scope_find(s, name->name);
    if (!var || !(var->binds & literal) ||
        (var->binds & ~(literal | TL_BIND_AUG))) {
        return;
    }
    tl_scope_error(r, TL_E0223, stmt->base.span,
                   "`%s.%s(...)` returns a new value, which nothing keeps",
                   name->name->text, attr->name->text);
    help = tl_habit_method(attr->name->text);
    if (help) {
        tl_diag_help(r->diag, "values do not change in place; write `%s`",
                     help);
    } else {
        tl_diag_help(r->diag, "write `%s = %s.%s(...)`", name->name->text,
                     name->name->text, attr->name->text);
    }
}

static void check_attr(tl_resolver *r, const tl_ast_attr *attr)
{
    if (tl_habit_attr_always(attr->name->text)) {
        tl_scope_error(r, TL_E0117, attr->name_at,
                       "`.%s` is not a form of tlang", attr->name->text);
        tl_diag_help(r->diag, "%s", tl_habit_attr(attr->name->text));
    }
}

static tl_ref_info import_target(const tl_scope *s, const tl_sym *name)
{
    const tl_var *var = tl_scope_find(s, name);

    return (tl_ref_info){.kind = TL_REF_GLOBAL, .index = var ? var->slot : 0};
}

static void walk_import(tl_resolver *r, tl_scope *s, tl_ast *node)
{
    const tl_kids *names = node->kind == TL_AST_IMPORT
                               ? &TL_AST(import, node)->names
                               : &TL_AST(from, node)->names;

    if (s->func->kind != TL_FUNC_UNIT) {
        tl_scope_error(r, TL_E0116, node->span,
                       "`import` stands at the top level of a file only");
        return;
    }
    for (uint32_t i = 0; i < names->len; i++) {
        tl_ast_import_name *import = TL_AST(import_name, names->items[i]);
        tl_ast_from_name *from = TL_AST(from_name, names->items[i]);

        if (names->items[i]->kind == TL_AST_IMPORT_NAME) {
            import->target = import_target(
                s, import->alias ? import->alias : import->path.names[0]);
        } else {
            from->target =
                import_target(s, from->alias ? from->alias : from->name);
        }
    }
}

static void walk_decl(tl_resolver *r, tl_scope *s, tl_ast_decl *decl)
{
    if (decl->value) {
        tl_scope_walk(r, s, decl->value);
    } else if (s->func->kind != TL_FUNC_MODULE) {
        tl_scope_error(r, TL_E0100, decl->base.span,
                       "a variable is declared with its value, found none");
        tl_diag_help(r->diag, "write `%s: type = value`",
                     TL_AST(name, decl->target)->name->text);
    }
    tl_scope_walk(r, s, decl->type);
    walk_target(r, s, decl->target, true);
}

static void walk_assign(tl_resolver *r, tl_scope *s, tl_ast_assign *assign)
{
    tl_scope_walk(r, s, assign->value);
    for (uint32_t i = 0; i < assign->targets.len; i++) {
        walk_target(r, s, assign->targets.items[i], true);
    }
}

static void walk_cell(tl_resolver *r, tl_scope *s, tl_ast_cell *cell)
{
    if (s->func->kind != TL_FUNC_MODULE) {
        tl_scope_error(r, TL_E0116, cell->base.span,
                       "`%s` stands in the body of a module only",
                       cell->buffer ? "buffer" : "param");
        return;
    }
    if (cell->value) {
        tl_scope_walk(r, s, cell->value);
    }
    tl_scope_walk(r, s, cell->type);
    walk_target(r, s, cell->target, true);
}

static void walk_try(tl_resolver *r, tl_scope *s, tl_ast_try *node)
{
    s->func->has_try = true;
    tl_scope_walk(r, s, node->body);
    walk_target(r, s, node->target, false);
    tl_scope_walk(r, s, node->handler);
}

static void check_wide(tl_resolver *r, const tl_ast_int *node)
{
    if (node->wide) {
        tl_scope_error(r, TL_E0108, node->base.span,
                       "integer 9223372036854775808 does not fit 64 bits");
        tl_diag_help(r->diag, "write 1e20, with an exponent, for a float");
    }
}

/* ---- the second walk ----------------------------------------------------- */

static bool walk_child(void *arg, tl_ast *child)
{
    collector *c = arg;

    tl_scope_walk(c->r, c->s, child);
    return true;
}

static void walk_children(tl_resolver *r, tl_scope *s, tl_ast *node)
{
    collector c = {r, s};

    (void)tl_ast_children(node, walk_child, &c);
}

void tl_scope_walk_list(tl_resolver *r, tl_scope *s, const tl_kids *list)
{
    for (uint32_t i = 0; i < list->len; i++) {
        tl_scope_walk(r, s, list->items[i]);
    }
}

/* Expressions and types whose children are not simply walked in order. */
static void walk_expr(tl_resolver *r, tl_scope *s, tl_ast *node)
{
    switch (node->kind) {
    case TL_AST_NAME:
        read_name(r, s, TL_AST(name, node));
        break;
    case TL_AST_INT:
        check_wide(r, TL_AST(int, node));
        break;
    case TL_AST_LIST_COMP:
        walk_comprehension(r, s, &TL_AST(list_comp, node)->clauses, NULL,
                           TL_AST(list_comp, node)->value);
        break;
    case TL_AST_DICT_COMP:
        walk_comprehension(r, s, &TL_AST(dict_comp, node)->clauses,
                           TL_AST(dict_comp, node)->key,
                           TL_AST(dict_comp, node)->value);
        break;
    case TL_AST_ATTR:
        tl_scope_walk(r, s, TL_AST(attr, node)->object);
        check_attr(r, TL_AST(attr, node));
        break;
    case TL_AST_GRAD:
        walk_grad(r, s, TL_AST(grad, node));
        break;
    case TL_AST_TYPE_NAME:
        walk_type_name(r, s, TL_AST(type_name, node));
        break;
    case TL_AST_TYPE_TENSOR:
        for (uint32_t i = 0; i < TL_AST(type_tensor, node)->dims.len; i++) {
            walk_dim(r, s, TL_AST(type_tensor, node)->dims.items[i]);
        }
        break;
    default:
        walk_children(r, s, node);
        break;
    }
}

void tl_scope_walk(tl_resolver *r, tl_scope *s, tl_ast *node)
{
    switch (node->kind) {
    case TL_AST_FN:
    case TL_AST_LAMBDA:
    case TL_AST_MODULE:
    case TL_AST_RECORD:
    case TL_AST_TEST:
        tl_scope_def(r, s, node);
        break;
    case TL_AST_ASSIGN:
        walk_assign(r, s, TL_AST(assign, node));
        break;
    case TL_AST_AUG:
        walk_aug(r, s, TL_AST(aug, node));
        break;
    case TL_AST_DECL:
        walk_decl(r, s, TL_AST(decl, node));
        break;
    case TL_AST_CELL:
        walk_cell(r, s, TL_AST(cell, node));
        break;
    case TL_AST_EXPR_STMT:
        tl_scope_walk(r, s, TL_AST(expr_stmt, node)->value);
        check_unused(r, s, TL_AST(expr_stmt, node));
        break;
    case TL_AST_FOR:
        walk_for(r, s, TL_AST(for, node));
        break;
    case TL_AST_WHILE:
        tl_scope_walk(r, s, TL_AST(while, node)->cond);
        s->loops++;
        tl_scope_walk(r, s, TL_AST(while, node)->body);
        s->loops--;
        break;
    case TL_AST_WITH_ITEM:
        tl_scope_walk(r, s, TL_AST(with_item, node)->value);
        if (TL_AST(with_item, node)->target) {
            walk_target(r, s, TL_AST(with_item, node)->target, false);
        }
        break;
    case TL_AST_TRY:
        walk_try(r, s, TL_AST(try, node));
        break;
    case TL_AST_RETURN:
        check_return(r, s, node->span);
        walk_children(r, s, node);
        break;
    case TL_AST_BREAK:
    case TL_AST_CONTINUE:
        check_jump(r, s, node);
        break;
    case TL_AST_IMPORT:
    case TL_AST_FROM:
        walk_import(r, s, node);
        break;
    default:
        walk_expr(r, s, node);
        break;
    }
}

/* ---- the unit ------------------------------------------------------------ */

/* Forget the globals that this unit added. */
static void roll_back(tl_globals *globals, size_t len)
{
    while (globals->names.len > len) {
        globals->names.len--;
        (void)tl_map_remove(&globals->index,
                            globals->names.items[globals->names.len]);
    }
}

/* For effects.c: names of the top level that always mean one definition. */
static void keep_defs(tl_resolver *r, const tl_scope *s)
{
    for (size_t i = 0; i < s->vars.len; i++) {
        tl_var *var = s->vars.entries[i].value;

        if (var->binds == TL_BIND_DEF &&
            !tl_map_set(&r->defs, var->name, var)) {
            tl_scope_keep(r, tl_fail_memory(r->diag, "the resolver",
                                            tl_mem_failed_size()));
        }
    }
}

static void resolve_unit(tl_resolver *r)
{
    tl_ast_unit *root = r->unit->root;
    tl_scope *s =
        tl_scope_open(r, NULL, TL_FUNC_UNIT, &root->base, NULL);

    if (!s) {
        return;
    }
    s->func->body = root->body;
    root->func = s->func;
    tl_scope_collect(r, s, root->body);
    if (r->status == TL_OK) {
        tl_scope_walk(r, s, root->body);
    }
    keep_defs(r, s);
    tl_scope_close(r, s);
}

static tl_status finish_unit(tl_resolver *r)
{
    tl_unit *unit = r->unit;

    for (size_t i = 0; i < r->funcs.len; i++) {
        TL_TRY(tl_live_mark(r->funcs.items[i], &unit->arena, r->diag));
    }
    TL_TRY(tl_effects_infer(r));
    unit->nglobals = r->globals->names.len;
    if (r->tests.len > 0) {
        size_t bytes = r->tests.len * sizeof(*unit->tests);

        unit->tests = tl_arena_alloc(&unit->arena, bytes);
        if (!unit->tests) {
            return tl_fail_memory(r->diag, "the tests", bytes);
        }
        memcpy(unit->tests, r->tests.items, bytes);
        unit->ntests = (uint32_t)r->tests.len;
    }
    return TL_OK;
}

static bool start_resolver(tl_resolver *r)
{
    tl_arena_init(&r->scratch);
    tl_map_init(&r->reported);
    tl_map_init(&r->defs);
    r->self = tl_intern_get(r->lang->names, "self", 4);
    r->breakpoint = tl_intern_get(r->lang->names, "breakpoint", 10);
    return r->self && r->breakpoint;
}

tl_status tl_resolve(tl_unit *unit, tl_lang *lang, tl_globals *globals,
                     const tl_builtins *builtins, tl_diag *diag)
{
    tl_resolver r = {.unit = unit,
                     .lang = lang,
                     .globals = globals,
                     .builtins = builtins,
                     .diag = diag};
    size_t before = globals->names.len;

    unit->nglobals = before;
    if (start_resolver(&r)) {
        resolve_unit(&r);
    } else {
        r.status = tl_fail_memory(diag, "a name", tl_mem_failed_size());
    }
    if (r.status == TL_OK) {
        r.status = finish_unit(&r);
    }
    if (r.status != TL_OK) {
        roll_back(globals, before);
        r.status = r.status == TL_ERR_MEMORY ? r.status : TL_ERR_REJECTED;
    }
    tl_arena_fini(&r.scratch);
    tl_map_fini(&r.reported);
    tl_map_fini(&r.defs);
    tl_free(r.funcs.items);
    tl_free(r.tests.items);
    return r.status;
}
