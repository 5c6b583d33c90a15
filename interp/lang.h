/* lang.h - the front end as the evaluator includes it. */
#ifndef TL_INTERP_LANG_H
#define TL_INTERP_LANG_H

/* TEMPORARY(rename in lang): both layers called these tl_op, tl_node. */
#define tl_op tl_oper
#define tl_node tl_ast
#define TL_OP_COUNT TL_OPER_COUNT
#include "lang/ast.h"
#include "lang/parse.h"
#include "lang/scope.h"
#undef tl_op
#undef tl_node
#undef TL_OP_COUNT

#endif
