/* formula_impl.h - nodes of formulas, for the formula*.c files alone.
 *
 * Operators are the rows they stand for: + is TL_OP_add, ?: is TL_OP_where,
 * < is TL_OP_lt, unary minus is TL_OP_neg. */
#ifndef TL_OP_FORMULA_IMPL_H
#define TL_OP_FORMULA_IMPL_H

#include "runtime/op/formula.h"

typedef enum formula_kind {
    FORMULA_CONST, /* value */
    FORMULA_NAME,  /* name: 0, 1, 2 inputs; 'y', 'g'; '0'..'5' attributes */
    FORMULA_OP     /* op(arg[0 .. nargs)) */
} formula_kind;

struct tl_formula {
    formula_kind kind;
    tl_op op;
    int nargs;
    int name;
    double value;
    int id; /* 0, 1, ... in its builder; arguments before their users */
    const tl_formula *arg[3];
    const tl_formula *older; /* the node made before this one */
};

/* Makes nodes; equal ones once. */
typedef struct formula_builder {
    tl_arena *arena;
    tl_diag *diag;
    const tl_formula *newest;
    int count;
    bool simplify; /* x + 0, x * 1, ...: derivatives only */
    bool failed;   /* out of memory; makers then return NULL */
} formula_builder;

const tl_formula *tl_formula_const(formula_builder *b, double value);
const tl_formula *tl_formula_name(formula_builder *b, int name);
/* arg[i] NULL gives NULL, so calls can be nested and checked once. */
const tl_formula *tl_formula_op(formula_builder *b, tl_op op,
                                const tl_formula *a0, const tl_formula *a1,
                                const tl_formula *a2);

/* Parse with the nodes of `b`. */
tl_status tl_formula_parse_with(formula_builder *b, const char *text,
                                const tl_formula **out);

/* Is `op` a function or operator that formulas may use? */
bool tl_formula_evaluates(tl_op op);

#endif
