/* build_def.c - functions, modules, records and their parts. */
#include "lang/build.h"

#include <string.h>

static void check_star(tl_parser *ps, const tl_ast_param *param, int *seen)
{
    int star = (int)param->star;

    if (star != 0 && *seen >= star) {
        tl_parse_error(
            ps, TL_E0100, param->base.span,
            "`%s%s` stands behind `%s`: the order is `*xs`, `**kw`",
            star == 1 ? "*" : "**", param->name->text,
            *seen == 1 ? "*..." : "**...");
    } else if (star == 0 && *seen == 2) {
        tl_parse_error(ps, TL_E0100, param->base.span,
                       "nothing can stand behind `**`, found `%s`",
                       param->name->text);
    }
    *seen = star > *seen ? star : *seen;
}

/* Order of parameters; their names are compared in scope.c. */
static void check_params(tl_parser *ps, const tl_kids *params)
{
    bool has_default = false;
    int star = 0;

    for (uint32_t i = 0; i < params->len && !ps->stop; i++) {
        const tl_ast_param *param = TL_AST(param, params->items[i]);

        check_star(ps, param, &star);
        if (param->star != 0 || star != 0) {
            continue; /* behind `*xs` all go by keyword: any order will do */
        }
        if (!param->value && has_default) {
            tl_parse_error(ps, TL_E0100, param->base.span,
                           "`%s` has no default, but the parameter before it "
                           "has one",
                           param->name->text);
        }
        has_default |= param->value != NULL;
    }
}

tl_ast *tl_build_fn(tl_parser *ps, tl_span at, tl_fn_parts parts)
{
    tl_ast *last = parts.backward ? parts.backward : parts.body;

    check_params(ps, &parts.params);
    at.end = last->span.end;
    return NEW(FN, fn, at, .name = parts.name, .name_at = parts.name_at,
               .params = parts.params, .ret = parts.ret, .where = parts.where,
               .body = parts.body, .backward = parts.backward);
}

tl_ast *tl_build_param(tl_parser *ps, tl_span at, tl_span name_at, int star,
                       const tl_sym *name, tl_ast *type, tl_ast *value)
{
    return NEW(PARAM, param, at, .name = name, .star = star, .type = type,
               .value = value, .name_at = name_at);
}

tl_ast *tl_build_cell(tl_parser *ps, tl_span at, bool buffer,
                      const tl_sym *name, tl_span name_at, tl_ast *type,
                      tl_ast *value)
{
    at.end = value ? value->span.end : type->span.end;
    return NEW(CELL, cell, at, .buffer = buffer,
               .target = tl_build_name(ps, name_at, name), .type = type,
               .value = value);
}

tl_ast *tl_build_module(tl_parser *ps, tl_span at, const tl_sym *name,
                        tl_span name_at, tl_kids params, tl_ast *body)
{
    check_params(ps, &params);
    return NEW(MODULE, module, at, .name = name, .name_at = name_at,
               .params = params, .body = body);
}

static bool is_docstring(const tl_ast *stmt)
{
    return stmt->kind == TL_AST_EXPR_STMT &&
           TL_AST(expr_stmt, stmt)->value->kind == TL_AST_STR;
}

static tl_ast *field_of(tl_parser *ps, const tl_ast *stmt)
{
    const tl_ast_decl *decl = TL_AST(decl, stmt);

    if (stmt->kind != TL_AST_DECL || decl->target->kind != TL_AST_NAME) {
        tl_parse_error(ps, TL_E0100, stmt->span,
                       "a record holds fields `name: type` only");
        if (stmt->kind == TL_AST_FN) {
            tl_parse_help(ps, "methods belong to a `module`; or take the "
                              "record as a parameter");
        }
        return NULL;
    }
    return tl_build_param(ps, stmt->span, decl->target->span, 0,
                          TL_AST(name, decl->target)->name, decl->type,
                          decl->value);
}

tl_ast *tl_build_record(tl_parser *ps, tl_span at, const tl_sym *name,
                        tl_span name_at, tl_ast *body)
{
    const tl_kids *stmts;
    tl_kids fields = {0};
    tl_text doc = {0};

    if (body->kind != TL_AST_BLOCK) {
        return body; /* out of memory */
    }
    stmts = &TL_AST(block, body)->stmts;
    for (uint32_t i = 0; i < stmts->len; i++) {
        tl_ast *stmt = stmts->items[i];

        if (is_docstring(stmt)) {
            doc = TL_AST(str, TL_AST(expr_stmt, stmt)->value)->text;
        } else if (stmt->kind != TL_AST_PASS) {
            tl_ast *field = field_of(ps, stmt);

            fields = field ? tl_build_append(ps, fields, field) : fields;
        }
    }
    check_params(ps, &fields);
    return NEW(RECORD, record, at, .name = name, .name_at = name_at,
               .fields = fields, .doc = doc);
}

tl_ast *tl_build_decorator(tl_parser *ps, tl_span from, tl_span to,
                           const tl_sym *name, tl_kids args)
{
    from.end = to.end;
    return NEW(DECORATOR, decorator, from, .name = name, .args = args);
}

tl_ast *tl_build_decorated(tl_parser *ps, tl_span at, tl_kids decorators,
                           tl_ast *def)
{
    def->span.start = at.start;
    switch (def->kind) {
    case TL_AST_FN:
        TL_AST(fn, def)->decorators = decorators;
        break;
    case TL_AST_MODULE:
        TL_AST(module, def)->decorators = decorators;
        break;
    case TL_AST_RECORD:
        TL_AST(record, def)->decorators = decorators;
        break;
    default:
        break; /* out of memory */
    }
    /* A decorator is as deep as its arguments: a copy is not worth it. */
    for (uint32_t i = 0; i < decorators.len; i++) {
        if (decorators.items[i]->depth >= def->depth && !ps->stop) {
            def->depth = (uint16_t)(decorators.items[i]->depth + 1);
        }
    }
    if (def->depth > TL_AST_MAX_DEPTH) {
        tl_parse_stop(ps, TL_E0110, at, "nested deeper than 1,000");
    }
    return def;
}
