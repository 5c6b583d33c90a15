/* scope_target.c - what assignments, loops and comprehensions write.
 *
 * A function writes its own variables, the top level its globals, a
 * constructor its fields.  Everything else is an error that names the form to
 * use: cells are written by `self.f = v`, captured and global names are not
 * rebound from inside a function. */
#include "lang/scope_impl.h"

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
                .field_class = (uint8_t)s->func->module->fields[i].class_,
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
        tl_diag_help(r->diag,
                     "copy it first, `y = %s`, and return the new "
                     "value",
                     name->name->text);
    }
}

void tl_scope_target(tl_resolver *r, tl_scope *s, tl_ast *node, bool plain)
{
    const tl_kids *items = NULL;

    switch (node->kind) {
    case TL_AST_NAME:
        if (!plain || !shadows_cell(r, s, TL_AST(name, node))) {
            bind_name(s, TL_AST(name, node));
        }
        break;
    case TL_AST_STAR:
        tl_scope_target(r, s, TL_AST(star, node)->value, plain);
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
        tl_scope_target(r, s, items->items[i], plain);
    }
}

void tl_scope_aug(tl_resolver *r, tl_scope *s, tl_ast_aug *aug)
{
    tl_ast_name *name = TL_AST(name, aug->target);
    const tl_var *var;

    tl_scope_walk(r, s, aug->value);
    if (aug->target->kind != TL_AST_NAME) {
        tl_scope_target(r, s, aug->target, true);
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

void tl_scope_push_targets(tl_resolver *r, tl_scope *s, tl_ast *node)
{
    const tl_kids *items = NULL;
    tl_ast_name *name = TL_AST(name, node);

    if (node->kind == TL_AST_NAME) {
        tl_var var = {.name = name->name, .at = node->span};

        var.slot = tl_scope_slot(r, s, name->name);
        name->ref = (tl_ref_info){.kind = TL_REF_LOCAL, .index = var.slot};
        tl_scope_push(r, s, &var);
    } else if (node->kind == TL_AST_STAR) {
        tl_scope_push_targets(r, s, TL_AST(star, node)->value);
    } else if (node->kind == TL_AST_TUPLE) {
        items = &TL_AST(tuple, node)->items;
    }
    for (uint32_t i = 0; items && i < items->len; i++) {
        tl_scope_push_targets(r, s, items->items[i]);
    }
}

void tl_scope_push_loop(tl_resolver *r, tl_scope *s, const tl_ast *node)
{
    const tl_ast_name *name = TL_AST(name, node);

    if (node->kind == TL_AST_NAME) {
        tl_scope_push(r, s,
                      &(tl_var){.name = name->name,
                                .slot = name->ref.index,
                                .binds = TL_BIND_LOOP,
                                .at = node->span});
    } else if (node->kind == TL_AST_STAR) {
        tl_scope_push_loop(r, s, TL_AST(star, node)->value);
    } else if (node->kind == TL_AST_TUPLE) {
        const tl_kids *items = &TL_AST(tuple, node)->items;

        for (uint32_t i = 0; i < items->len; i++) {
            tl_scope_push_loop(r, s, items->items[i]);
        }
    }
}
