/* scope_def.c - functions, lambdas, records, tests: a scope each.
 *
 * Order in a frame: self (methods and constructors), parameters, dimension
 * names of the signature, then what the body binds.  Modules are in
 * scope_module.c. */
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
    if (node->kind == TL_AST_NAME &&
        tl_scope_is_upper(TL_AST(name, node)->name)) {
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

void tl_scope_dims(tl_resolver *r, tl_scope *s)
{
    tl_funcdef *func = s->func;
    dims d = {.r = r, .s = s};

    for (uint32_t i = 0; i < func->params.len; i++) {
        tl_ast *type = TL_AST(param, func->params.items[i])->type;

        if (type) {
            visit_type(&d, type);
        }
    }
    if (func->ret) {
        visit_type(&d, (tl_ast *)func->ret);
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
    const tl_ast *name = type && type->kind == TL_AST_TYPE_NAME
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

void tl_scope_params(tl_resolver *r, tl_scope *s)
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
            param->ref =
                (tl_ref_info){.kind = TL_REF_LOCAL, .index = had->slot};
        }
    }
}

void tl_scope_signature(tl_resolver *r, tl_scope *s)
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

const tl_text *tl_scope_doc(const tl_ast *body)
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

tl_ref_info tl_scope_stored(const tl_scope *s, const tl_sym *name)
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
    func->doc = tl_scope_doc(body);
    if (func->kind == TL_FUNC_METHOD) {
        tl_scope_bind(r, s, r->self, func->node->span, TL_BIND_OTHER);
    }
    tl_scope_params(r, s);
    tl_scope_dims(r, s);
    if (body) {
        tl_scope_collect(r, s, body);
    }
    if (backward) {
        tl_scope_collect(r, s, backward);
    }
    tl_scope_signature(r, s);
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
    tl_scope *s = tl_scope_open(
        r, outer, method ? TL_FUNC_METHOD : TL_FUNC_FN, &fn->base, fn->name);

    if (!s) {
        return;
    }
    fn->target = tl_scope_stored(outer, fn->name);
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
    record->target = tl_scope_stored(outer, record->name);
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
        tl_scope_module(r, s, TL_AST(module, node));
        break;
    case TL_AST_RECORD:
        define_record(r, s, TL_AST(record, node));
        break;
    default:
        define_test(r, s, TL_AST(test, node));
        break;
    }
}
