/* dim_code.h - sizes as plain numbers, without the context of their atoms.
 *
 * A size is written as words in postfix.  Atoms are known by numbers that
 * the writer chooses.  Equal sizes (equal words of one tl_dims) give equal
 * code. */
#ifndef TL_OP_DIM_CODE_H
#define TL_OP_DIM_CODE_H

#include "runtime/op/dim.h"

enum {
    TL_DC_NUM,  /* followed by the number */
    TL_DC_ATOM, /* followed by the atom's number */
    TL_DC_ADD,
    TL_DC_MUL,
    TL_DC_FLOORDIV
};

enum {
    TL_DC_MAX_DEPTH = 136,  /* of the stack of an evaluation */
    TL_DC_MAX_WORDS = 4096 /* of one size */
};

/* The code of `d`; E0307 if it is too long.  `number(arg, atom, &n)` gives the
 * number of a named or fresh atom; its failure is passed on.  *code is for
 * tl_free. */
TL_MUST_USE tl_status tl_dim_encode(
    tl_dim d, tl_status (*number)(void *arg, tl_dim atom, int64_t *n),
    void *arg, int64_t **code, size_t *len, tl_diag *diag);

/* Its value, atoms[n] being that of atom n.  E0307 on overflow, E0401 by
 * zero, E0699 for what is no code. */
TL_MUST_USE tl_status tl_dim_code_eval(const int64_t *code, size_t len,
                                       const int64_t *atoms, size_t natoms,
                                       int64_t *out, tl_diag *diag);

/* Is it code that eval takes, with atoms below `natoms`?  One expression
 * within the limits above. */
bool tl_dim_code_valid(const int64_t *code, size_t len, size_t natoms);

/* The size that valid code stands for, atoms[n] being atom n; the inverse of
 * tl_dim_encode for code that it has made.  E0307, E0401. */
TL_MUST_USE tl_status tl_dim_decode(tl_dims *dims, const int64_t *code,
                                    size_t len, const tl_dim *atoms,
                                    tl_dim *out, tl_diag *diag);

/* Append the text of valid code: "2*s0 + 1"; atoms are s0, s1, ... */
void tl_dim_code_print(const int64_t *code, size_t len, tl_buf *out);

/* Words that grow. */
typedef struct tl_dim_words {
    int64_t *items; /* for tl_free */
    size_t len, cap;
} tl_dim_words;

/* Append the code of the text at *text, which ends before `end`, and leave
 * *text behind it; what print has written gives the same code.  False: it is
 * no size, or memory ran out, which is reported to `diag`. */
bool tl_dim_code_parse(const char **text, const char *end, tl_dim_words *out,
                       tl_diag *diag);

#endif
