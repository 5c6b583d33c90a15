/* dim_impl.h - inside of dim.h, shared by the files dim*.c.
 *
 * A polynomial is an array of terms, each a coefficient (never 0) and a
 * monomial; a monomial is a sorted array of atoms, with repetition.  Atoms,
 * monomials and polynomials are interned: equal ones have one address. */
#ifndef TL_OP_DIM_IMPL_H
#define TL_OP_DIM_IMPL_H

#include "runtime/op/dim.h"

enum {
    TL_DIM_MAX_TERMS = 128,
    TL_DIM_MAX_DEGREE = 32,
    TL_DIM_MAX_DEPTH = 32 /* of nested divisions */
};

typedef enum tl_atom_kind {
    TL_ATOM_NAME,
    TL_ATOM_FRESH,
    TL_ATOM_DIV /* floor p / q */
} tl_atom_kind;

/* Every interned object starts with its hash. */
typedef struct tl_dim_object {
    uint64_t hash;
} tl_dim_object;

typedef struct tl_atom {
    tl_dim_object object;
    tl_atom_kind kind;
    uint32_t id;      /* order of creation */
    uint32_t depth;   /* of TL_ATOM_DIV: nested divisions, from 1 */
    int64_t least;    /* of names */
    const char *name; /* of names, or why it is fresh */
    tl_dim p, q;      /* of TL_ATOM_DIV */
    tl_dim self;      /* the atom as a size, once tl_dim_of has made it */
} tl_atom;

typedef struct tl_mono {
    tl_dim_object object;
    uint32_t degree;
    const tl_atom *atom[]; /* ascending by id */
} tl_mono;

typedef struct tl_term {
    int64_t coef;
    const tl_mono *mono; /* NULL: the constant term */
} tl_term;

typedef struct tl_poly {
    tl_dim_object object;
    uint32_t nterms;
    tl_term term[]; /* in the order of tl_mono_compare */
} tl_poly;

typedef struct tl_dim_set {
    const tl_dim_object **slots; /* open addressing, a power of two */
    size_t count, cap;
} tl_dim_set;

typedef enum tl_fact_kind {
    TL_FACT_DIVIDES,
    TL_FACT_EQUAL,
    TL_FACT_LE
} tl_fact_kind;

typedef struct tl_fact {
    tl_fact_kind kind;
    tl_dim a, b;
} tl_fact;

/* from -> to, where `from` is a monomial; degree 1 eliminates an atom. */
typedef struct tl_rule {
    const tl_mono *from;
    int64_t coef; /* of `from`, 1 unless it is the content of a number */
    tl_dim to;
} tl_rule;

struct tl_dims {
    tl_arena arena;
    tl_dim_set atoms, monos, polys;
    uint32_t natoms;
    int nested; /* calls of tl_dim_normal that are open */
    struct {
        tl_fact *items;
        size_t len, cap;
    } facts;
    struct {
        tl_rule *items;
        size_t len, cap;
    } rules;
    struct {
        const tl_atom **items; /* p // q drawn in place of p */
        size_t len, cap;
    } opened;
};

static inline const tl_poly *tl_dim_poly(tl_dim d)
{
    return (const tl_poly *)d.word;
}

/* A polynomial under construction. */
typedef struct tl_poly_work {
    int n;
    tl_term term[TL_DIM_MAX_TERMS];
} tl_poly_work;

/* Terms of a dim without copying: a number is its constant term. */
typedef struct tl_terms {
    const tl_term *term;
    int n;
    tl_term constant;
} tl_terms;

void tl_dim_terms(tl_dim d, tl_terms *out);

/* Total order: higher degree first, then atoms by creation, constant last. */
int tl_mono_compare(const tl_mono *a, const tl_mono *b);

TL_MUST_USE tl_status tl_mono_mul(tl_dims *dims, const tl_mono *a,
                                  const tl_mono *b, const tl_mono **out,
                                  tl_diag *diag);

/* a / b if b divides a: *ok. */
TL_MUST_USE tl_status tl_mono_div(tl_dims *dims, const tl_mono *a,
                                  const tl_mono *b, bool *ok,
                                  const tl_mono **out, tl_diag *diag);

/* work += coef * mono;  work += coef * mono * d. */
TL_MUST_USE tl_status tl_work_add(tl_poly_work *w, int64_t coef,
                                  const tl_mono *mono, tl_diag *diag);
TL_MUST_USE tl_status tl_work_add_dim(tl_dims *dims, tl_poly_work *w,
                                      int64_t coef, const tl_mono *mono,
                                      tl_dim d, tl_diag *diag);
TL_MUST_USE tl_status tl_work_finish(tl_dims *dims, tl_poly_work *w,
                                     tl_dim *out, tl_diag *diag);

/* The interned atom equal to `key`, whose name is copied if it is new. */
TL_MUST_USE tl_status tl_dim_get_atom(tl_dims *dims, tl_atom key,
                                      const tl_atom **out, tl_diag *diag);

/* The monomial of one atom, and an atom as a dim. */
TL_MUST_USE tl_status tl_mono_of(tl_dims *dims, const tl_atom *atom,
                                 const tl_mono **out, tl_diag *diag);
TL_MUST_USE tl_status tl_dim_of(tl_dims *dims, const tl_atom *atom,
                                tl_dim *out, tl_diag *diag);

/* The atom, if `d` is 1 * atom; else NULL. */
const tl_atom *tl_dim_as_atom(tl_dim d);

/* Can a tl_dim hold the number?  If not: E0307. */
static inline bool tl_dim_fits(int64_t n)
{
    return n < (int64_t)1 << 62 && n > -((int64_t)1 << 62);
}

tl_status tl_dim_overflow(tl_diag *diag);

/* Does `atom` occur in d; `deep`: inside of p // q too. */
bool tl_dim_mentions(tl_dim d, const tl_atom *atom, bool deep);

/* Is p // q a size of its own, from which p is computed? */
bool tl_dims_is_opened(const tl_dims *dims, const tl_atom *atom);

/* The rule that eliminates `atom`, or NULL. */
const tl_rule *tl_dims_rule_of_atom(const tl_dims *dims, const tl_atom *atom);

/* `d` with facts applied. */
TL_MUST_USE tl_status tl_dim_normal(tl_dims *dims, tl_dim d, tl_dim *out,
                                    tl_diag *diag);

#endif
