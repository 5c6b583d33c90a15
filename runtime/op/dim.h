/* dim.h - the size of an axis: a number, or an integer polynomial.
 *
 * A tl_dim is one word.  A plain number costs nothing else; a polynomial is a
 * pointer to an interned normal form in a tl_dims context.  Atoms are names,
 * values and `p // q`, `p % q` that do not divide out; equal polynomials are
 * equal words (LANGUAGE.md 3.1), so tl_dim compares by ==  for PROVED.
 *
 * Shape rules are written with these and serve the interpreter (numbers), the
 * checker and the compiler (symbols) alike.  With numbers the context is not
 * touched and may be NULL. */
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
 * E0401 when b is 0.  `//` first takes out what divides exactly. */
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

/* Append the text of `d`: `2*B + n//2`, `768`, `_`. */
void tl_dim_print(tl_dim d, tl_buf *out);

#endif
