/* formula.h - the formulas of ops.def as trees: parse, evaluate,
 * differentiate, emit as operations, print.
 *
 * Grammar: numbers, names (x; a, b, c; y; g; attributes p0..p5; inf, nan),
 * calls M(fn)(args) or fn(args), constants K(0.5), unary minus, + - * /, one
 * comparison, ?:, and parentheses.  fn is a MAP row of ops.def.  The kernels
 * are compiled from the same text. */
#ifndef TL_OP_FORMULA_H
#define TL_OP_FORMULA_H

#include "runtime/base/arena.h"
#include "runtime/op/op.h"

typedef struct tl_formula tl_formula; /* a node of an expression graph */

/* Parse `text` into the arena; equal subexpressions are one node.  Nothing is
 * simplified, so the tree has the bits of the text.  E0699 names the place of
 * a mistake, E0607. */
TL_MUST_USE tl_status tl_formula_parse(tl_arena *arena, const char *text,
                                       const tl_formula **out, tl_diag *diag);

/* Values of the names while a formula is evaluated in double. */
typedef struct tl_formula_env {
    double in[3]; /* x or a, b, c */
    double y, g;
    double p[6]; /* attributes f[] */
} tl_formula_env;

/* The value in double arithmetic: the reference of tests and of folding. */
double tl_formula_eval(const tl_formula *f, const tl_formula_env *env);

/* d f / d (input `which`), simplified.  Where y occurs it stands for `value`
 * (the row's value formula), which may be NULL if it does not.  Function
 * calls are differentiated by the gradient formulas of their rows.  For tests
 * (against a row's gradient) and for the compiler. */
TL_MUST_USE tl_status tl_formula_diff(tl_arena *arena, const tl_formula *f,
                                      const tl_formula *value, int which,
                                      const tl_formula **out, tl_diag *diag);

/* Build the formula from elementary operations through an emitter; nodes of
 * names that do not occur may be NULL. */
typedef struct tl_formula_nodes {
    tl_node in[3];
    tl_node y, g;
    const double *p; /* NULL: no attribute occurs */
    tl_dtype dtype;  /* of the constants */
} tl_formula_nodes;

TL_MUST_USE tl_status tl_formula_emit(tl_emit *e, const tl_formula *f,
                                      const tl_formula_nodes *names,
                                      tl_node *out);

/* Does the name occur?  'x'/'a' = input 0, 'b' = 1, 'c' = 2, 'y', 'g'. */
bool tl_formula_uses(const tl_formula *f, char name);

/* Is it the constant 0? */
bool tl_formula_is_zero(const tl_formula *f);

/* Append the text, with the fewest parentheses: `g * (1 - y * y)`. */
void tl_formula_print(const tl_formula *f, tl_buf *out);

#endif
