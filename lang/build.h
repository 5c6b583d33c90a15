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
    tl_build(ps, (const tl_node *)&(tl_ast_##type){                          \
                     .base = {.kind = TL_AST_##KIND, .span = (at)},          \
                     __VA_ARGS__})

/* A copy in the arena of the node, whose kind says how long it is. */
tl_node *tl_build(tl_parser *ps, const tl_node *proto);

/* `list` with `node` behind; the list passed in must not be used again. */
tl_list tl_build_append(tl_parser *ps, tl_list list, tl_node *node);
/* The same with a statement: NULL is left out, a BLOCK becomes its content. */
tl_list tl_build_stmt(tl_parser *ps, tl_list list, tl_node *stmt);
tl_path tl_build_path(tl_parser *ps, tl_path path, const tl_sym *name);

/* ---- statements ---------------------------------------------------------- */

void tl_build_unit(tl_parser *ps, tl_list stmts, tl_span at);
/* The span is that of the statements. */
tl_node *tl_build_block(tl_parser *ps, tl_span at, tl_list stmts);
/* A line that could not be parsed: NULL. */
tl_node *tl_build_skipped(tl_parser *ps);
/* A block where none may begin: reports it, unless it hangs from a line that
 * was skipped. */
void tl_build_indent(tl_parser *ps, tl_span at);
tl_node *tl_build_expr_stmt(tl_parser *ps, tl_span at, tl_node *value);
/* `node`, after a check that it can be assigned to (E0114). */
tl_node *tl_build_target(tl_parser *ps, tl_node *node);
tl_node *tl_build_assign(tl_parser *ps, tl_span at, tl_list targets,
                         tl_node *value);
tl_node *tl_build_aug(tl_parser *ps, tl_span at, tl_op op, tl_node *target,
                      tl_node *value);
tl_node *tl_build_if(tl_parser *ps, tl_span at, tl_node *cond, tl_node *body,
                     tl_list elifs, tl_node *other);
/* An item of `with`. */
tl_node *tl_build_context(tl_parser *ps, tl_span at, tl_node *value);

/* ---- definitions --------------------------------------------------------- */

typedef struct tl_fn_parts {
    const tl_sym *name;
    tl_span name_at;
    tl_list params;
    tl_node *ret;
    tl_list where;
    tl_node *body, *backward;
} tl_fn_parts;

tl_node *tl_build_fn(tl_parser *ps, tl_span at, tl_fn_parts parts);
tl_node *tl_build_param(tl_parser *ps, tl_span at, tl_span name_at, int star,
                        const tl_sym *name, tl_node *type, tl_node *value);
tl_node *tl_build_cell(tl_parser *ps, tl_span at, bool buffer,
                       const tl_sym *name, tl_span name_at, tl_node *type,
                       tl_node *value);
tl_node *tl_build_module(tl_parser *ps, tl_span at, const tl_sym *name,
                         tl_span name_at, tl_list params, tl_node *body);
/* The statements of `body` become fields. */
tl_node *tl_build_record(tl_parser *ps, tl_span at, const tl_sym *name,
                         tl_span name_at, tl_node *body);
tl_node *tl_build_decorator(tl_parser *ps, tl_span from, tl_span to,
                            const tl_sym *name, tl_list args);
/* `def` with its decorators. */
tl_node *tl_build_decorated(tl_parser *ps, tl_span at, tl_list decorators,
                            tl_node *def);

/* ---- expressions --------------------------------------------------------- */

tl_node *tl_build_name(tl_parser *ps, tl_span at, const tl_sym *name);
/* A TUPLE, or the only item when no comma was written. */
tl_node *tl_build_tuple_of(tl_parser *ps, tl_span at, tl_list items,
                           bool comma);
/* `node` in parentheses. */
tl_node *tl_build_paren(tl_parser *ps, tl_span at, tl_node *node);
/* `left op right`; lengthens a chain. */
tl_node *tl_build_compare(tl_parser *ps, tl_span at, tl_node *left, tl_op op,
                          tl_node *right);
tl_node *tl_build_negate(tl_parser *ps, tl_span at, tl_node *operand);
/* Arguments of a call: checks their order and repeated keywords. */
tl_list tl_build_args(tl_parser *ps, tl_list args);
/* Forms of Python that are not in tlang: reported, then taken for lists. */
tl_node *tl_build_generator(tl_parser *ps, tl_span at, tl_node *value,
                            tl_list clauses);
tl_node *tl_build_set(tl_parser *ps, tl_span at, tl_node *items);

/* ---- types (build_type.c) ------------------------------------------------ */

/* `name[args]`; brackets: they were written. */
tl_node *tl_build_type(tl_parser *ps, tl_span at, tl_node *name, tl_list args,
                       bool brackets);
tl_node *tl_build_type_tuple(tl_parser *ps, tl_span at, tl_node *first,
                             tl_list rest);
/* Arithmetic in a shape. */
tl_node *tl_build_dim(tl_parser *ps, tl_span at, tl_op op, tl_node *left,
                      tl_node *right);

#endif
