/* build.h - constructors of syntax nodes, one call for each grammar action.
 *
 * All return a node, never NULL unless said so: when memory runs out they
 * stop the parse (parse_state.h) and return a harmless NONE.  Depth is
 * computed here, and E0110 reported when it passes TL_AST_MAX_DEPTH.
 * Private to lang/. */
#ifndef TL_LANG_BUILD_H
#define TL_LANG_BUILD_H

#include "lang/parse_state.h"

/* A node of KIND whose fields are given by name:
 * NEW(UNARY, unary, span, .op = TL_OP_NEG, .operand = x); the others are 0. */
#define NEW(KIND, type, at, ...)                                             \
    tl_build(ps, (const tl_ast *)&(tl_ast_##type){                          \
                     .base = {.kind = TL_AST_##KIND, .span = (at)},          \
                     __VA_ARGS__})

/* A copy in the arena of the node, whose kind says how long it is. */
tl_ast *tl_build(tl_parser *ps, const tl_ast *proto);

/* `list` with `node` behind; the list passed in must not be used again. */
tl_kids tl_build_append(tl_parser *ps, tl_kids list, tl_ast *node);
/* The same with a statement: NULL is left out, a BLOCK becomes its content. */
tl_kids tl_build_stmt(tl_parser *ps, tl_kids list, tl_ast *stmt);
tl_path tl_build_path(tl_parser *ps, tl_path path, const tl_sym *name);

/* ---- statements ---------------------------------------------------------- */

void tl_build_unit(tl_parser *ps, tl_kids stmts, tl_span at);
/* The span is that of the statements. */
tl_ast *tl_build_block(tl_parser *ps, tl_span at, tl_kids stmts);
/* A line that could not be parsed: NULL. */
tl_ast *tl_build_skipped(tl_parser *ps);
/* A block where none may begin: reports it, unless it hangs from a line that
 * was skipped. */
void tl_build_indent(tl_parser *ps, tl_span at);
tl_ast *tl_build_expr_stmt(tl_parser *ps, tl_span at, tl_ast *value);
/* `node`, after a check that it can be assigned to (E0114). */
tl_ast *tl_build_target(tl_parser *ps, tl_ast *node);
tl_ast *tl_build_assign(tl_parser *ps, tl_span at, tl_kids targets,
                         tl_ast *value);
tl_ast *tl_build_aug(tl_parser *ps, tl_span at, tl_oper op, tl_ast *target,
                      tl_ast *value);
tl_ast *tl_build_if(tl_parser *ps, tl_span at, tl_ast *cond, tl_ast *body,
                     tl_kids elifs, tl_ast *other);
/* An item of `with`. */
tl_ast *tl_build_context(tl_parser *ps, tl_span at, tl_ast *value);

/* ---- definitions --------------------------------------------------------- */

typedef struct tl_fn_parts {
    const tl_sym *name;
    tl_span name_at;
    tl_kids params;
    tl_ast *ret;
    tl_kids where;
    tl_ast *body, *backward;
} tl_fn_parts;

tl_ast *tl_build_fn(tl_parser *ps, tl_span at, tl_fn_parts parts);
tl_ast *tl_build_param(tl_parser *ps, tl_span at, tl_span name_at, int star,
                        const tl_sym *name, tl_ast *type, tl_ast *value);
tl_ast *tl_build_cell(tl_parser *ps, tl_span at, bool buffer,
                       const tl_sym *name, tl_span name_at, tl_ast *type,
                       tl_ast *value);
tl_ast *tl_build_module(tl_parser *ps, tl_span at, const tl_sym *name,
                         tl_span name_at, tl_kids params, tl_ast *body);
/* The statements of `body` become fields. */
tl_ast *tl_build_record(tl_parser *ps, tl_span at, const tl_sym *name,
                         tl_span name_at, tl_ast *body);
tl_ast *tl_build_decorator(tl_parser *ps, tl_span from, tl_span to,
                            const tl_sym *name, tl_kids args);
/* `def` with its decorators. */
tl_ast *tl_build_decorated(tl_parser *ps, tl_span at, tl_kids decorators,
                            tl_ast *def);

/* ---- expressions --------------------------------------------------------- */

tl_ast *tl_build_name(tl_parser *ps, tl_span at, const tl_sym *name);
/* A TUPLE, or the only item when no comma was written. */
tl_ast *tl_build_tuple_of(tl_parser *ps, tl_span at, tl_kids items,
                           bool comma);
/* `node` in parentheses. */
tl_ast *tl_build_paren(tl_parser *ps, tl_span at, tl_ast *node);
/* `left op right`; lengthens a chain. */
tl_ast *tl_build_compare(tl_parser *ps, tl_span at, tl_ast *left, tl_oper op,
                          tl_ast *right);
tl_ast *tl_build_negate(tl_parser *ps, tl_span at, tl_ast *operand);
/* Arguments of a call: checks their order and repeated keywords. */
tl_kids tl_build_args(tl_parser *ps, tl_kids args);
/* Forms of Python that are not in tlang: reported, then taken for lists. */
tl_ast *tl_build_generator(tl_parser *ps, tl_span at, tl_ast *value,
                            tl_kids clauses);
tl_ast *tl_build_set(tl_parser *ps, tl_span at, tl_ast *items);

/* ---- types (build_type.c) ------------------------------------------------ */

/* `name[args]`; brackets: they were written. */
tl_ast *tl_build_type(tl_parser *ps, tl_span at, tl_ast *name, tl_kids args,
                       bool brackets);
tl_ast *tl_build_type_tuple(tl_parser *ps, tl_span at, tl_ast *first,
                             tl_kids rest);
/* Arithmetic in a shape. */
tl_ast *tl_build_dim(tl_parser *ps, tl_span at, tl_oper op, tl_ast *left,
                      tl_ast *right);

#endif
