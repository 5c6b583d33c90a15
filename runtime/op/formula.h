/* formula.h - the formulas of ops.def as trees: parse, evaluate,
 * differentiate, emit as operations, print.
 *
 * Grammar: numbers, names (x; a, b, c; y; g; attributes p0..p5; inf, nan),
 * calls of one to three arguments, unary minus, + - * /, comparisons, ?:, and
 * parentheses.  M(fn) of the C text reads as fn.  In a gradient formula g * e
 * means zmul(g, e), g / e means zmul(g, 1 / e) (LANGUAGE.md 9a); the kernels
 * are compiled from the same text with the same meaning. */
#ifndef TL_OP_FORMULA_H
#define TL_OP_FORMULA_H

#include "runtime/base/arena.h"
#include "runtime/op/op.h"

typedef struct tl_formula tl_formula; /* a node of an expression tree */

/* Parse `text` into the arena. `gradient` switches the meaning of g * e. */
TL_MUST_USE tl_status tl_formula_parse(tl_arena *arena, const char *text,
                                       bool gradient, const tl_formula **out,
                                       tl_diag *diag);

/* Values of the names while a formula is evaluated in double. */
typedef struct tl_formula_env {
    double in[3]; /* x or a, b, c */
    double y, g;
    double p[6]; /* attributes f[] */
} tl_formula_env;

/* The value in double arithmetic: the reference of tests and of folding. */
double tl_formula_eval(const tl_formula *f, const tl_formula_env *env);

/* d f / d (input `which`), with y replaced by the value formula first when it
 * occurs.  For tests (against the row's gradient) and for the compiler. */
TL_MUST_USE tl_status tl_formula_diff(tl_arena *arena, const tl_formula *f,
                                      int which, const tl_formula **out,
                                      tl_diag *diag);

/* Build the formula from elementary operations through an emitter; nodes of
 * names that do not occur may be NULL. */
typedef struct tl_formula_nodes {
    tl_node in[3];
    tl_node y, g;
    const double *p;
    tl_dtype dtype; /* the row's compute dtype */
} tl_formula_nodes;

TL_MUST_USE tl_status tl_formula_emit(tl_emit *e, const tl_formula *f,
                                      const tl_formula_nodes *names,
                                      tl_node *out);

/* Does the name occur?  'x'/'a' = input 0, 'b' = 1, 'c' = 2, 'y', 'g'. */
bool tl_formula_uses(const tl_formula *f, char name);

void tl_formula_print(const tl_formula *f, tl_buf *out);

#endif
