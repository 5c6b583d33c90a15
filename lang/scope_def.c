/* scope_def.c - functions, lambdas, modules, records, tests: a scope each.
 *
 * Order in a frame: self (methods and constructors), parameters, dimension
 * names of the signature, then what the body binds.  A module's names are
 * fields; its constructor's frame holds parameters and comprehension
 * variables only. */
#include <string.h>

#include "lang/scope_impl.h"

#include "runtime/base/vec.h"

/* ---- dimension names of a signature -------------------------------------- */

typedef struct dims {
    tl_resolver *r;
    tl_scope *s;
    uint32_t *items; /* room for all names of the signature */
    uint32_t len, cap;
} dims;

/* A header parameter or field of the module is no name to bind. */
static bool is_field(const tl_scope *s, const tl_sym *name)
{
    return s->func->kind == TL_FUNC_METHOD &&
           tl_moddef_find(s->func->module, name) >= 0;
}

static void add_dim(dims *d, const tl_sym *name, tl_span at)
{
    tl_ref_info ref;

    if (tl_scope_find(d->s, name) || is_field(d->s, name)) {
        return; /* seen, or a parameter */
    }
    ref = tl_scope_dim(d->r, d->s, name, at);
    if (d->len == d->cap) {
        uint32_t cap = d->cap ? 2 * d->cap : 4;
        uint32_t *items =
            tl_arena_array(&d->r->unit->arena, cap, sizeof(*items));

        if (!items) {
            tl_scope_keep(d->r, tl_fail_memory(d->r->diag, "a signature",
                                               cap * sizeof(*items)));
            return;
        }
        if (d->len) {
            memcpy(items, d->items, d->len * sizeof(*items));
        }
        d->items = items;
        d->cap = cap;
    }
    d->items[d->len++] = ref.index;
}

static bool visit_type(void *arg, tl_ast *node);

static void visit_dim(dims *d, tl_ast *node)
{
    if (node->kind == TL_AST_NAME && tl_scope_is_upper(TL_AST(name, node)->name)) {
        add_dim(d, TL_AST(name, node)->name, node->span);
    } else if (node->kind == TL_AST_DIM_PACK) {
        add_dim(d, TL_AST(dim_pack, node)->name, node->span);
    } else if (node->kind == TL_AST_BINARY) {
        visit_dim(d, TL_AST(binary, node)->left);
        visit_dim(d, TL_AST(binary, node)->right);
    }
}

static bool visit_type(void *arg, tl_ast *node)
{
    if (node->kind == TL_AST_TYPE_TENSOR) {
        const tl_kids *list = &TL_AST(type_tensor, node)->dims;

        for (uint32_t i = 0; i < list->len; i++) {
            visit_dim(arg, list->items[i]);
        }
        return true;
    }
    if (node->kind == TL_AST_TYPE_FN) {
        return true; /* a signature of its own */
    }
    return tl_ast_children(node, visit_type, arg);
}

/* The names that a call binds, from the types of parameters and result. */
static void declare_dims(tl_resolver *r, tl_scope *s)
{
    tl_funcdef *func = s->func;
    dims d = {.r = r, .s = s};

    for (uint32_t i = 0; i < func->params.len; i++) {
        tl_ast *type = TL_AST(param, func->params.items[i])->type;

        if (type) {
            (void)visit_type(&d, type);
        }
    }
    if (func->ret) {
        (void)visit_type(&d, (tl_ast *)func->ret);
    }
    func->dims = d.items;
    func->ndims = d.len;
}

/* ---- parameters ---------------------------------------------------------- */

static void reject_self(tl_resolver *r, const tl_ast_param *param)
{
    tl_scope_error(r, TL_E0117, param->name_at,
                   "`self` is not a parameter in tlang");
    tl_diag_help(r->diag, "leave it out: methods see `self`, and the fields "
                          "without it");
}

static unsigned binds_of_type(const tl_ast *type)
{
    const tl_ast *name =
        type && type->kind == TL_AST_TYPE_NAME
            ? TL_AST(type_name, type)->name
            : NULL;
    const char *text = name && name->kind == TL_AST_NAME
                           ? TL_AST(name, name)->name->text
                           : "";

    return strcmp(text, "list") == 0   ? TL_BIND_LIST
           : strcmp(text, "dict") == 0 ? TL_BIND_DICT
           : strcmp(text, "str") == 0  ? TL_BIND_STR
                                       : TL_BIND_OTHER;
}

static void declare_params(tl_resolver *r, tl_scope *s)
{
    tl_funcdef *func = s->func;

    for (uint32_t i = 0; i < func->params.len; i++) {
        tl_ast_param *param = TL_AST(param, func->params.items[i]);
        const tl_var *had = tl_scope_find(s, param->name);

        if (param->name == r->self) {
            reject_self(r, param);
            continue;
        }
        if (had) {
            tl_scope_error(r, TL_E0216, param->name_at,
                           "`%s` is declared twice", param->name->text);
            tl_diag_label_add(r->diag, had->at, "first here");
            continue;
        }
        had = tl_scope_bind(r, s, param->name, param->name_at,
                            binds_of_type(param->type));
        if (had) {
            param->ref = (tl_ref_info){.kind = TL_REF_LOCAL,
                                       .index = had->slot};
        }
    }
}

/* Types, defaults, result and conditions, in the function's own scope. */
static void walk_signature(tl_resolver *r, tl_scope *s)
{
    const tl_funcdef *func = s->func;

    for (uint32_t i = 0; i < func->params.len; i++) {
        const tl_ast_param *param = TL_AST(param, func->params.items[i]);

        if (param->value) {
            tl_scope_walk(r, s, param->value);
        }
        if (param->type) {
            tl_scope_walk(r, s, param->type);
        }
    }
    if (func->ret) {
        tl_scope_walk(r, s, (tl_ast *)func->ret);
    }
    tl_scope_walk_list(r, s, &func->where);
}

/* ---- functions ----------------------------------------------------------- */

static const tl_text *docstring(const tl_ast *body)
{
    const tl_ast *first, *value;

    if (!body || body->kind != TL_AST_BLOCK ||
        TL_AST(block, body)->stmts.len == 0) {
        return NULL;
    }
    first = TL_AST(block, body)->stmts.items[0];
    if (first->kind != TL_AST_EXPR_STMT) {
        return NULL;
    }
    value = TL_AST(expr_stmt, first)->value;
    return value->kind == TL_AST_STR ? &TL_AST(str, value)->text : NULL;
}

/* Where a definition in `s` is stored. */
static tl_ref_info stored_in(const tl_scope *s, const tl_sym *name)
{
    const tl_var *var;
    int64_t field;

    if (s->func->kind == TL_FUNC_MODULE) {
        field = tl_moddef_find(s->func->module, name);
        return (tl_ref_info){.kind = TL_REF_FIELD,
                             .field_class = TL_FIELD_METHOD,
                             .index = field < 0 ? 0 : (uint32_t)field,
                             .self = TL_SELF_SLOT};
    }
    var = tl_scope_find(s, name);
    return (tl_ref_info){.kind = s->func->kind == TL_FUNC_UNIT ? TL_REF_GLOBAL
                                                               : TL_REF_LOCAL,
                         .index = var ? var->slot : 0};
}

/* Declares everything, then walks everything. */
static void function(tl_resolver *r, tl_scope *s, tl_ast *body,
                     tl_ast *backward)
{
    tl_funcdef *func = s->func;

    func->body = body;
    func->backward = backward;
    func->doc = docstring(body);
    if (func->kind == TL_FUNC_METHOD) {
        (void)tl_scope_bind(r, s, r->self, func->node->span, TL_BIND_OTHER);
    }
    declare_params(r, s);
    declare_dims(r, s);
    if (body) {
        tl_scope_collect(r, s, body);
    }
    if (backward) {
        tl_scope_collect(r, s, backward);
    }
    walk_signature(r, s);
    if (body) {
        tl_scope_walk(r, s, body);
    }
    if (backward) {
        /* its names are bound by the call of the clause */
        tl_scope_walk(r, s, backward);
    }
}

static void define_fn(tl_resolver *r, tl_scope *outer, tl_ast_fn *fn)
{
    bool method = outer->func->kind == TL_FUNC_MODULE;
    tl_scope *s =
        tl_scope_open(r, outer, method ? TL_FUNC_METHOD : TL_FUNC_FN,
                      &fn->base, fn->name);

    if (!s) {
        return;
    }
    fn->target = stored_in(outer, fn->name);
    fn->func = s->func;
    s->func->module = outer->func->module;
    s->func->params = fn->params;
    s->func->ret = fn->ret;
    s->func->where = fn->where;
    s->func->expr_body = fn->body->kind != TL_AST_BLOCK;
    function(r, s, fn->body, fn->backward);
    tl_marks_decode(r, &fn->decorators, s, s->func,
                    outer->func->kind == TL_FUNC_UNIT);
    if (s->func->marks.main) {
        r->unit->main = fn;
    }
    tl_scope_close(r, s);
}

static void define_lambda(tl_resolver *r, tl_scope *outer,
                          tl_ast_lambda *lambda)
{
    tl_scope *s =
        tl_scope_open(r, outer, TL_FUNC_LAMBDA, &lambda->base, NULL);

    if (!s) {
        return;
    }
    lambda->func = s->func;
    s->func->module = outer->func->module;
    s->func->params = lambda->params;
    s->func->expr_body = true;
    function(r, s, lambda->body, NULL);
    tl_scope_close(r, s);
}

static void define_record(tl_resolver *r, tl_scope *outer,
                          tl_ast_record *record)
{
    tl_scope *s;

    if (outer->func->kind == TL_FUNC_MODULE) {
        tl_scope_error(r, TL_E0116, record->base.span,
                       "a `record` cannot stand in a module");
        return;
    }
    s = tl_scope_open(r, outer, TL_FUNC_RECORD, &record->base, record->name);
    if (!s) {
        return;
    }
    record->target = stored_in(outer, record->name);
    record->func = s->func;
    s->func->params = record->fields;
    function(r, s, NULL, NULL);
    s->func->doc = record->doc.s ? &record->doc : NULL;
    tl_marks_decode(r, &record->decorators, s, NULL, false);
    tl_scope_close(r, s);
}

static void define_test(tl_resolver *r, tl_scope *outer, tl_ast_test *test)
{
    tl_scope *unit = outer, *s;

    if (outer->func->kind != TL_FUNC_UNIT &&
        outer->func->kind != TL_FUNC_MODULE) {
        tl_scope_error(r, TL_E0116, test->base.span,
                       "a `test` stands at the top level or in a module");
        return;
    }
    while (unit->outer) {
        unit = unit->outer;
    }
    s = tl_scope_open(r, unit, TL_FUNC_TEST, &test->base, NULL);
    if (!s) {
        return;
    }
    test->func = s->func;
    function(r, s, test->body, NULL);
    tl_scope_keep(r, TL_VEC_PUSH(&r->tests, &test->base, r->diag));
    tl_scope_close(r, s);
}

/* ---- modules ------------------------------------------------------------- */

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
    if (field) {
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
    const tl_ast *value = stmt->kind == TL_AST_ASSIGN
                              ? TL_AST(assign, stmt)->value
                          : stmt->kind == TL_AST_AUG
                              ? TL_AST(aug, stmt)->value
                          : stmt->kind == TL_AST_EXPR_STMT
                              ? TL_AST(expr_stmt, stmt)->value
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
    tl_scope_error(r, TL_E0116,
                   (tl_span){stmt->span.file, stmt->span.start,
                             stmt->span.start + 1},
                   "%s cannot stand in the body of a module",
                   statement_word(stmt));
    if (stmt->kind == TL_AST_IF) {
        tl_diag_help(r->diag, "a field may be chosen: `f = a if c else b`");
    } else if (stmt->kind == TL_AST_FOR) {
        tl_diag_help(r->diag, "a list of layers: `f = [... for _ in range(n)]`");
    }
    return false;
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
}

static void walk_members(tl_resolver *r, tl_scope *s, const tl_kids *stmts)
{
    s->made = tl_arena_array(&r->scratch, s->func->module->nfields + 1,
                             sizeof(*s->made));
    if (!s->made) {
        tl_scope_keep(r, tl_fail_memory(r->diag, "a module",
                                        s->func->module->nfields));
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

static void define_module(tl_resolver *r, tl_scope *outer,
                          tl_ast_module *node)
{
    tl_moddef *module = TL_ARENA_NEW(&r->unit->arena, tl_moddef);
    tl_scope *s =
        tl_scope_open(r, outer, TL_FUNC_MODULE, &node->base, node->name);
    const tl_kids *stmts = &TL_AST(block, node->body)->stmts;
    fields f = {.r = r, .module = module};

    if (!s || !module) {
        tl_scope_keep(r, TL_ERR_MEMORY);
        return;
    }
    module->name = node->name;
    node->target = stored_in(outer, node->name);
    node->module = module;
    node->func = s->func;
    s->func->module = module;
    s->func->params = node->params;
    s->func->body = node->body;
    s->func->doc = docstring(node->body);
    collect_fields(&f, &node->params, stmts);
    (void)tl_scope_bind(r, s, r->self, node->name_at, TL_BIND_OTHER);
    declare_params(r, s);
    declare_dims(r, s);
    walk_signature(r, s);
    walk_members(r, s, stmts);
    tl_marks_decode(r, &node->decorators, s, NULL, false);
    tl_scope_close(r, s);
}

void tl_scope_def(tl_resolver *r, tl_scope *s, tl_ast *node)
{
    switch (node->kind) {
    case TL_AST_FN:
        define_fn(r, s, TL_AST(fn, node));
        break;
    case TL_AST_LAMBDA:
        define_lambda(r, s, TL_AST(lambda, node));
        break;
    case TL_AST_MODULE:
        define_module(r, s, TL_AST(module, node));
        break;
    case TL_AST_RECORD:
        define_record(r, s, TL_AST(record, node));
        break;
    default:
        define_test(r, s, TL_AST(test, node));
        break;
    }
}
