/* scope_module.c - the fields of a module, and its constructor.
 *
 * Names of the body are fields, in the order of the text; the constructor
 * sees those that have been set so far, methods see all.  A header parameter
 * is a field, until a field of the body takes its name. */
#include <string.h>

#include "lang/scope_impl.h"

typedef struct fields {
    tl_resolver *r;
    tl_moddef *module;
    uint32_t cap;
    uint32_t nheader;
} fields;

static tl_fielddef *new_field(fields *f, const tl_sym *name)
{
    tl_moddef *m = f->module;

    if (m->nfields == f->cap) {
        uint32_t cap = f->cap ? 2 * f->cap : 8;
        tl_fielddef *items =
            tl_arena_array(&f->r->unit->arena, cap, sizeof(*items));

        if (!items) {
            tl_scope_keep(f->r, tl_fail_memory(f->r->diag, "a module",
                                               cap * sizeof(*items)));
            return NULL;
        }
        if (m->nfields) {
            memcpy(items, m->fields, m->nfields * sizeof(*items));
        }
        m->fields = items;
        f->cap = cap;
    }
    m->fields[m->nfields].name = name;
    return &m->fields[m->nfields++];
}

/* A field of the body; it may take the name of a header parameter once. */
static void add_field(fields *f, const tl_sym *name, tl_field_class class_,
                      const tl_ast *decl, const tl_ast *type)
{
    int64_t i = tl_moddef_find(f->module, name);
    tl_fielddef *field = i >= 0 ? &f->module->fields[i] : NULL;
    bool again = class_ == TL_FIELD_CONSTANT && field &&
                 field->class_ == TL_FIELD_CONSTANT;

    if (field && field->class_ != TL_FIELD_HEADER && !again) {
        tl_scope_error(f->r, TL_E0216, decl->span, "`%s` is declared twice",
                       name->text);
        tl_diag_label_add(f->r->diag, field->decl->span, "first here");
        return;
    }
    field = field ? field : new_field(f, name);
    if (field && !again) {
        field->class_ = class_;
        field->decl = decl;
        field->type = type ? type : field->type;
    }
}

/* int, float, bool, tree, grads[M], each perhaps with `?`: saved, and
 * rebound by `self.f = v`. */
static bool is_host_type(const tl_ast *type)
{
    static const char *const host[] = {"int", "float", "bool", "tree",
                                       "grads"};
    const tl_ast *name;

    if (type->kind == TL_AST_TYPE_OPT) {
        type = TL_AST(type_opt, type)->type;
    }
    if (type->kind != TL_AST_TYPE_NAME) {
        return false;
    }
    name = TL_AST(type_name, type)->name;
    for (size_t i = 0; i < sizeof(host) / sizeof(host[0]); i++) {
        if (name->kind == TL_AST_NAME &&
            strcmp(TL_AST(name, name)->name->text, host[i]) == 0) {
            return true;
        }
    }
    return false;
}

static void add_targets(fields *f, const tl_ast *node)
{
    const tl_kids *items = NULL;

    switch (node->kind) {
    case TL_AST_NAME:
        add_field(f, TL_AST(name, node)->name, TL_FIELD_CONSTANT, node, NULL);
        break;
    case TL_AST_STAR:
        add_targets(f, TL_AST(star, node)->value);
        break;
    case TL_AST_TUPLE:
        items = &TL_AST(tuple, node)->items;
        break;
    case TL_AST_LIST:
        items = &TL_AST(list, node)->items;
        break;
    default:
        break;
    }
    for (uint32_t i = 0; items && i < items->len; i++) {
        add_targets(f, items->items[i]);
    }
}

static void add_decl(fields *f, const tl_ast_decl *decl)
{
    add_field(f, TL_AST(name, decl->target)->name,
              is_host_type(decl->type) ? TL_FIELD_HOST : TL_FIELD_CONSTANT,
              &decl->base, decl->type);
}

static const char *statement_word(const tl_ast *stmt)
{
    switch (stmt->kind) {
    case TL_AST_IF:
        return "`if`";
    case TL_AST_FOR:
        return "`for`";
    case TL_AST_WHILE:
        return "`while`";
    case TL_AST_WITH:
        return "`with`";
    case TL_AST_TRY:
        return "`try`";
    case TL_AST_MODULE:
        return "`module`";
    default:
        return "`grad`";
    }
}

static bool has_grad_value(const tl_ast *stmt)
{
    const tl_ast *value =
        stmt->kind == TL_AST_ASSIGN      ? TL_AST(assign, stmt)->value
        : stmt->kind == TL_AST_AUG       ? TL_AST(aug, stmt)->value
        : stmt->kind == TL_AST_EXPR_STMT ? TL_AST(expr_stmt, stmt)->value
                                         : NULL;

    return value && value->kind == TL_AST_GRAD;
}

/* A module's body is declarations; what runs belongs in a method. */
static bool allowed_member(tl_resolver *r, const tl_ast *stmt)
{
    switch (stmt->kind) {
    case TL_AST_IF:
    case TL_AST_FOR:
    case TL_AST_WHILE:
    case TL_AST_WITH:
    case TL_AST_TRY:
    case TL_AST_MODULE:
        break;
    default:
        if (!has_grad_value(stmt)) {
            return true;
        }
        break;
    }
    tl_scope_error(
        r, TL_E0116,
        (tl_span){stmt->span.file, stmt->span.start, stmt->span.start + 1},
        "%s cannot stand in the body of a module", statement_word(stmt));
    if (stmt->kind == TL_AST_IF) {
        tl_diag_help(r->diag, "a field may be chosen: `f = a if c else b`");
    } else if (stmt->kind == TL_AST_FOR) {
        tl_diag_help(r->diag,
                     "a list of layers: `f = [... for _ in range(n)]`");
    }
    return false;
}

/* Fields stand in the order of their declarations: paths, and the order in
 * which parameters are saved, follow it (a header parameter whose name a field
 * takes stands where the field is). */
static void sort_fields(tl_moddef *m)
{
    for (uint32_t i = 1; i < m->nfields; i++) {
        tl_fielddef field = m->fields[i];
        uint32_t k = i;

        for (; k > 0 &&
               m->fields[k - 1].decl->span.start > field.decl->span.start;
             k--) {
            m->fields[k] = m->fields[k - 1];
        }
        m->fields[k] = field;
    }
}

static void collect_fields(fields *f, const tl_kids *params,
                           const tl_kids *stmts)
{
    for (uint32_t i = 0; i < params->len; i++) {
        const tl_ast_param *param = TL_AST(param, params->items[i]);
        tl_fielddef *field = tl_moddef_find(f->module, param->name) < 0
                                 ? new_field(f, param->name)
                                 : NULL;

        if (field) {
            *field = (tl_fielddef){.name = param->name,
                                   .class_ = TL_FIELD_HEADER,
                                   .header = true,
                                   .decl = &param->base,
                                   .type = param->type};
        }
    }
    for (uint32_t i = 0; i < stmts->len; i++) {
        const tl_ast *stmt = stmts->items[i];
        const tl_ast_cell *cell = TL_AST(cell, stmt);

        if (stmt->kind == TL_AST_CELL) {
            add_field(f, TL_AST(name, cell->target)->name,
                      cell->buffer ? TL_FIELD_BUFFER : TL_FIELD_PARAM, stmt,
                      cell->type);
        } else if (stmt->kind == TL_AST_DECL) {
            add_decl(f, TL_AST(decl, stmt));
        } else if (stmt->kind == TL_AST_FN) {
            add_field(f, TL_AST(fn, stmt)->name, TL_FIELD_METHOD, stmt, NULL);
        } else if (stmt->kind == TL_AST_ASSIGN) {
            const tl_kids *targets = &TL_AST(assign, stmt)->targets;

            for (uint32_t j = 0; j < targets->len; j++) {
                add_targets(f, targets->items[j]);
            }
        }
    }
    sort_fields(f->module);
}

static void walk_members(tl_resolver *r, tl_scope *s, const tl_kids *stmts)
{
    s->made = tl_arena_array(&r->scratch, s->func->module->nfields + 1,
                             sizeof(*s->made));
    if (!s->made) {
        tl_scope_keep(
            r, tl_fail_memory(r->diag, "a module", s->func->module->nfields));
        return;
    }
    for (uint32_t i = 0; i < stmts->len; i++) {
        tl_ast *stmt = stmts->items[i];

        if (stmt->kind == TL_AST_FN) { /* can be called by the constructor */
            int64_t field =
                tl_moddef_find(s->func->module, TL_AST(fn, stmt)->name);

            if (field >= 0) {
                s->made[field] = true;
            }
        }
    }
    for (uint32_t i = 0; i < stmts->len; i++) {
        if (allowed_member(r, stmts->items[i])) {
            tl_scope_walk(r, s, stmts->items[i]);
        }
    }
}

void tl_scope_module(tl_resolver *r, tl_scope *outer, tl_ast_module *node)
{
    tl_moddef *module = TL_ARENA_NEW(&r->unit->arena, tl_moddef);
    tl_scope *s =
        tl_scope_open(r, outer, TL_FUNC_MODULE, &node->base, node->name);
    const tl_kids *stmts = &TL_AST(block, node->body)->stmts;
    fields f = {.r = r, .module = module};

    if (!s) {
        return; /* reported */
    }
    if (!module) {
        tl_scope_keep(r, tl_fail_memory(r->diag, "a module",
                                        sizeof(*module)));
        tl_scope_close(r, s);
        return;
    }
    module->name = node->name;
    node->target = tl_scope_stored(outer, node->name);
    node->module = module;
    node->func = s->func;
    s->func->module = module;
    s->func->params = node->params;
    s->func->body = node->body;
    s->func->doc = tl_scope_doc(node->body);
    collect_fields(&f, &node->params, stmts);
    tl_scope_bind(r, s, r->self, node->name_at, TL_BIND_OTHER);
    tl_scope_params(r, s);
    tl_scope_dims(r, s);
    tl_scope_signature(r, s);
    walk_members(r, s, stmts);
    tl_marks_decode(r, &node->decorators, s, NULL, false);
    tl_scope_close(r, s);
}
