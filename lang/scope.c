/* scope.c - the second walk of the resolver, and its entry.
 *
 * The first walk (scope_collect.c) has entered what a function's own
 * statements bind.  This one goes in order of evaluation, fills in the
 * tl_ref_infos and checks what may stand where.  Function-like nodes are
 * handed to scope_def.c, targets to scope_target.c. */
#include <string.h>

#include "lang/scope_impl.h"

#include "lang/habits.h"
#include "runtime/base/mem.h"
#include "runtime/op/dtype.h"

/* ---- names --------------------------------------------------------------- */

/* Types that are no values: known even if the evaluator has no such name. */
static bool is_type_name(const tl_sym *name)
{
    static const char *const names[] = {"int",  "float", "bool",   "str",
                                        "list", "dict",  "grads",  "cells",
                                        "tree", "tensor", "real", "tuple",
                                        "range", "dtype", "any",  "module"};
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

/* The N of cells[N] and grads[N] may stand for any module: a name that is not
 * defined is no error there. */
static bool is_type_variable(tl_resolver *r, tl_scope *s,
                             const tl_ast_type_name *type, tl_ast *arg)
{
    const tl_ast_name *name = TL_AST(name, type->name);

    if (arg->kind == TL_AST_TYPE_NAME &&
        TL_AST(type_name, arg)->args.len == 0) {
        arg = TL_AST(type_name, arg)->name;
    }
    if (arg->kind != TL_AST_NAME || type->name->kind != TL_AST_NAME ||
        (strcmp(name->name->text, "cells") != 0 &&
         strcmp(name->name->text, "grads") != 0)) {
        return false;
    }
    return tl_scope_look(r, s, TL_AST(name, arg)->name).kind == TL_REF_NONE;
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
    for (uint32_t i = 0; i < type->args.len; i++) {
        if (!is_type_variable(r, s, type, type->args.items[i])) {
            tl_scope_walk(r, s, type->args.items[i]);
        }
    }
}

/* ---- comprehensions ------------------------------------------------------ */

static void walk_comprehension(tl_resolver *r, tl_scope *s,
                               const tl_kids *clauses, tl_ast *key,
                               tl_ast *value)
{
    size_t depth = s->inner.len;

    for (uint32_t i = 0; i < clauses->len; i++) {
        tl_ast *clause = clauses->items[i];

        if (clause->kind == TL_AST_COMP_FOR) {
            tl_scope_walk(r, s, TL_AST(comp_for, clause)->iter);
            tl_scope_push_targets(r, s, TL_AST(comp_for, clause)->target);
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

static void walk_for(tl_resolver *r, tl_scope *s, tl_ast_for *loop)
{
    size_t depth = s->inner.len;

    tl_scope_walk(r, s, loop->iter);
    tl_scope_target(r, s, loop->target, false);
    if (s->func->kind == TL_FUNC_UNIT) {
        tl_scope_push_loop(r, s, loop->target);
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
    const tl_diag_item *last = r->diag->last;

    tl_scope_walk(r, s, grad->loss);
    if (r->diag->last != last && grad->loss->kind == TL_AST_NAME &&
        r->diag->last->help == NULL) {
        tl_diag_help(r->diag, "the block assigns the loss: `%s = ...`",
                     TL_AST(name, grad->loss)->name->text);
    }
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
            const tl_path *path = &import->path;

            import->target = import_target(
                s, import->alias ? import->alias
                                 : path->names[path->len - 1]);
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
    tl_scope_target(r, s, decl->target, true);
}

static void walk_assign(tl_resolver *r, tl_scope *s, tl_ast_assign *assign)
{
    tl_scope_walk(r, s, assign->value);
    for (uint32_t i = 0; i < assign->targets.len; i++) {
        tl_scope_target(r, s, assign->targets.items[i], true);
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
    tl_scope_target(r, s, cell->target, true);
}

static void walk_try(tl_resolver *r, tl_scope *s, tl_ast_try *node)
{
    s->func->has_try = true;
    tl_scope_walk(r, s, node->body);
    tl_scope_target(r, s, node->target, false);
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

typedef struct walker {
    tl_resolver *r;
    tl_scope *s;
} walker;

static bool walk_child(void *arg, tl_ast *child)
{
    walker *c = arg;

    tl_scope_walk(c->r, c->s, child);
    return true;
}

static void walk_children(tl_resolver *r, tl_scope *s, tl_ast *node)
{
    walker c = {r, s};

    tl_ast_children(node, walk_child, &c);
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
        tl_scope_aug(r, s, TL_AST(aug, node));
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
            tl_scope_target(r, s, TL_AST(with_item, node)->target, false);
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
        tl_map_remove(&globals->index,
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
