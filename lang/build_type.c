/* build_type.c - types and the arithmetic of shapes.
 *
 * The grammar cannot tell `f32[B]` (dimensions) from `list[B]` (types): what
 * stands in brackets is parsed as types and arithmetic, and sorted here by
 * the name in front. */
#include "lang/build.h"

#include <string.h>

#include "runtime/op/dtype.h"

static bool is_name(const tl_ast *node, const char *text)
{
    return node->kind == TL_AST_NAME &&
           strcmp(TL_AST(name, node)->name->text, text) == 0;
}

/* A dtype, or `real`. */
static bool is_dtype(const tl_ast *node)
{
    const tl_sym *name;
    tl_dtype dtype;

    if (node->kind != TL_AST_NAME) {
        return false;
    }
    name = TL_AST(name, node)->name;
    return is_name(node, "real") ||
           tl_dtype_find(name->text, name->len, &dtype);
}

/* The dimension written as a type or as arithmetic. */
static tl_ast *as_dim(tl_parser *ps, tl_ast *node)
{
    const tl_ast_type_name *type = TL_AST(type_name, node);

    switch (node->kind) {
    case TL_AST_TYPE_NAME:
        if (type->args.len > 0 || type->name->kind == TL_AST_NONE) {
            break;
        }
        return is_name(type->name, "_") ? NEW(DIM_ANY, dim_any, node->span)
                                        : type->name;
    case TL_AST_INT:
    case TL_AST_UNARY:
    case TL_AST_BINARY:
    case TL_AST_NAME:
    case TL_AST_ATTR:
    case TL_AST_NONE: /* out of memory */
    case TL_AST_DIM_ANY:
    case TL_AST_DIM_REST:
    case TL_AST_DIM_PACK:
        return node;
    default:
        break;
    }
    tl_parse_error(ps, TL_E0100, node->span,
                   "a size is wanted in a shape, found a type");
    return node;
}

static tl_ast *as_type(tl_parser *ps, tl_ast *node)
{
    switch (node->kind) {
    case TL_AST_TYPE_NAME:
    case TL_AST_TYPE_TENSOR:
    case TL_AST_TYPE_TUPLE:
    case TL_AST_TYPE_FN:
    case TL_AST_TYPE_OPT:
    case TL_AST_NONE: /* out of memory */
        break;
    default:
        tl_parse_error(ps, TL_E0100, node->span,
                       "a type is wanted here, found a size");
        break;
    }
    return node;
}

static void check_dims(tl_parser *ps, const tl_kids *dims)
{
    bool pack = false;

    for (uint32_t i = 0; i < dims->len; i++) {
        const tl_ast *dim = dims->items[i] = as_dim(ps, dims->items[i]);

        if (dim->kind == TL_AST_DIM_REST || dim->kind == TL_AST_DIM_PACK) {
            if (pack) {
                tl_parse_error(ps, TL_E0100, dim->span,
                               "a shape holds one `...` or `*name`");
            }
            pack = true;
        } else if (dim->kind == TL_AST_UNARY) { /* a negative number */
            tl_parse_error(ps, TL_E0306, dim->span,
                           "a size must be at least 0");
        }
    }
}

/* `list[int]` has one argument, `dict[str, int]` two; false if reported. */
static bool check_arity(tl_parser *ps, tl_span at, const tl_ast *name,
                        const tl_kids *args)
{
    static const struct {
        const char *name;
        uint32_t min, max;
        const char *help;
    } rows[] = {
        {"list", 0, 1, "list[T]"},     {"dict", 0, 2, "dict[K, V]"},
        {"grads", 1, 1, "grads[M]"},   {"cells", 1, 1, "cells[N]"},
        {"str", 0, 0, "str"},          {"int", 0, 0, "i64[B, T]"},
        {"float", 0, 0, "f32[B, T]"},  {"tensor", 0, 0, "f32[...]"},
        {"Tensor", 0, 0, "f32[B, T]"},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (!is_name(name, rows[i].name)) {
            continue;
        }
        if (args->len < rows[i].min || args->len > rows[i].max ||
            (rows[i].max == 2 && args->len == 1)) {
            tl_parse_error(ps, TL_E0100, at, "`%s` takes %u type%s, found %u",
                           rows[i].name, (unsigned)rows[i].max,
                           rows[i].max == 1 ? "" : "s", (unsigned)args->len);
            tl_parse_help(ps, "write `%s`", rows[i].help);
            return false;
        }
        return true;
    }
    return true;
}

tl_ast *tl_build_type(tl_parser *ps, tl_span at, tl_ast *name, tl_kids args,
                      bool brackets)
{
    if (is_dtype(name) && (brackets || !is_name(name, "bool"))) {
        check_dims(ps, &args);
        return NEW(TYPE_TENSOR, type_tensor, at,
                   .dtype = TL_AST(name, name)->name, .dims = args,
                   .any = !brackets);
    }
    if (check_arity(ps, at, name, &args)) {
        for (uint32_t i = 0; i < args.len; i++) {
            args.items[i] = as_type(ps, args.items[i]);
        }
    }
    return NEW(TYPE_NAME, type_name, at, .name = name, .args = args);
}

tl_ast *tl_build_type_tuple(tl_parser *ps, tl_span at, tl_ast *first,
                            tl_kids rest)
{
    tl_kids items = tl_build_append(ps, (tl_kids){0}, first);

    for (uint32_t i = 0; i < rest.len; i++) {
        items = tl_build_append(ps, items, rest.items[i]);
    }
    return NEW(TYPE_TUPLE, type_tuple, at, .items = items);
}

static tl_ast *operand(tl_parser *ps, tl_ast *node)
{
    tl_ast *dim = as_dim(ps, node);

    if (dim->kind == TL_AST_DIM_ANY) {
        tl_parse_error(ps, TL_E0100, dim->span,
                       "`_` stands alone: nothing can be computed with it");
    }
    return dim;
}

tl_ast *tl_build_dim(tl_parser *ps, tl_span at, tl_oper op, tl_ast *left,
                     tl_ast *right)
{
    tl_ast *l = operand(ps, left), *r = operand(ps, right);

    return NEW(BINARY, binary, at, .op = op, .left = l, .right = r);
}
