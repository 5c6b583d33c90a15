/* dim.h - the size of an axis: a number, or an integer polynomial.
 *
 * A tl_dim is one word.  A plain number costs nothing else; a polynomial is a
 * pointer to an interned normal form in a tl_dims context.  Atoms are names,
 * values and `p // q` that do not divide out (`p % q` is p - q * (p // q));
 * equal polynomials are equal words (LANGUAGE.md 3.1).  Facts do not change a
 * word: tl_dim_eq applies them.
 *
 * Shape rules are written with these and serve the interpreter (numbers), the
 * checker and the compiler (symbols) alike.  With numbers the context is not
 * touched and may be NULL.  A context belongs to one thread. */
#ifndef TL_OP_DIM_H
#define TL_OP_DIM_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/base/arena.h"
#include "runtime/base/buf.h"
#include "runtime/base/diag.h"

typedef struct tl_dim {
    uintptr_t word; /* odd: a number; even: const tl_poly * */
} tl_dim;

typedef struct tl_dims tl_dims; /* atoms, normal forms and facts */

static inline tl_dim tl_dim_num(int64_t n) /* |n| < 2^62 */
{
    return (tl_dim){((uintptr_t)n << 1) | 1};
}

static inline bool tl_dim_is_num(tl_dim d)
{
    return (d.word & 1) != 0;
}

static inline int64_t tl_dim_value(tl_dim d) /* of a number */
{
    return (int64_t)(intptr_t)d.word >> 1;
}

static inline bool tl_dim_same(tl_dim a, tl_dim b)
{
    return a.word == b.word;
}

TL_MUST_USE tl_status tl_dims_new(tl_dims **out, tl_diag *diag);
void tl_dims_free(tl_dims *dims);

/* A named atom, rigid or flexible, known to be >= `least` (usually 0).
 * The same name asked for again gives the same atom. */
TL_MUST_USE tl_status tl_dim_atom(tl_dims *dims, const char *name,
                                  int64_t least, tl_dim *out, tl_diag *diag);

/* An atom equal to nothing else: `_`, a size that depends on data. */
TL_MUST_USE tl_status tl_dim_fresh(tl_dims *dims, const char *why,
                                   tl_dim *out, tl_diag *diag);

/* a + b, a - b, a * b, floor a / b, a - b * (a // b).  E0307 on overflow,
 * E0401 when b is 0.  `//` first takes out what divides exactly.  `out` is
 * never read and may be the address of an operand's copy. */
TL_MUST_USE tl_status tl_dim_add(tl_dims *dims, tl_dim a, tl_dim b,
                                 tl_dim *out, tl_diag *diag);
TL_MUST_USE tl_status tl_dim_sub(tl_dims *dims, tl_dim a, tl_dim b,
                                 tl_dim *out, tl_diag *diag);
TL_MUST_USE tl_status tl_dim_mul(tl_dims *dims, tl_dim a, tl_dim b,
                                 tl_dim *out, tl_diag *diag);
TL_MUST_USE tl_status tl_dim_div(tl_dims *dims, tl_dim a, tl_dim b,
                                 tl_dim *out, tl_diag *diag);
TL_MUST_USE tl_status tl_dim_mod(tl_dims *dims, tl_dim a, tl_dim b,
                                 tl_dim *out, tl_diag *diag);

/* Facts: a == 0 modulo b (`where d % h == 0`), a == b, a <= b. */
TL_MUST_USE tl_status tl_dims_fact_divides(tl_dims *dims, tl_dim a, tl_dim b,
                                           tl_diag *diag);
TL_MUST_USE tl_status tl_dims_fact_equal(tl_dims *dims, tl_dim a, tl_dim b,
                                         tl_diag *diag);
TL_MUST_USE tl_status tl_dims_fact_le(tl_dims *dims, tl_dim a, tl_dim b,
                                      tl_diag *diag);

typedef enum tl_proof {
    TL_PROVED, /* equal normal forms */
    TL_REFUTED, /* an assignment that satisfies every fact makes it false */
    TL_UNKNOWN  /* check when the numbers are there */
} tl_proof;

/* Is a == b, is a <= b?  Numbers always decide. */
tl_proof tl_dim_eq(tl_dims *dims, tl_dim a, tl_dim b);
tl_proof tl_dim_le(tl_dims *dims, tl_dim a, tl_dim b);

/* Facts of a branch: those added after a mark are dropped by its release.
 * Marks nest. */
size_t tl_dims_mark(const tl_dims *dims);
void tl_dims_release(tl_dims *dims, size_t mark);

/* Append "H = 5: 3 and 2", the assignment for which a differs from b; false,
 * and nothing appended, when eq is not TL_REFUTED or there are no names. */
bool tl_dim_example(tl_dims *dims, tl_dim a, tl_dim b, tl_buf *out);

/* `d` with each atom from[i] replaced by to[i], all at once: the sizes of a
 * signature at a call, or a symbolic size once its names have values. */
TL_MUST_USE tl_status tl_dim_replace(tl_dims *dims, tl_dim d,
                                     const tl_dim *from, const tl_dim *to,
                                     int n, tl_dim *out, tl_diag *diag);

/* Is it a single atom (named or fresh)?  Does it contain one that is fresh,
 * or the atom `atom`, at any depth? */
bool tl_dim_is_atom(tl_dim d);
bool tl_dim_has_fresh(tl_dim d);
bool tl_dim_has(tl_dim d, tl_dim atom);

/* Append the text of `d`: `2*B + n//2`, `768`, `_`. */
void tl_dim_print(tl_dim d, tl_buf *out);

#endif
