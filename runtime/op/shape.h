/* shape.h - shapes, tensor types, attributes of an operation, and the rules
 * that several operations share. */
#ifndef TL_OP_SHAPE_H
#define TL_OP_SHAPE_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/base/diag.h"
#include "runtime/op/dim.h"
#include "runtime/op/dtype.h"

#define TL_MAX_RANK 16

typedef struct tl_shape {
    int rank; /* 0 .. TL_MAX_RANK */
    tl_dim dim[TL_MAX_RANK];
} tl_shape;

/* What a shape rule knows of a tensor. */
typedef struct tl_ttype {
    tl_dtype dtype;
    tl_shape shape;
} tl_ttype;

/* What decides in a shape rule: numbers, or symbols with facts. */
typedef struct tl_infer {
    tl_dims *dims; /* NULL: numbers only */
    tl_diag *diag;
    /* With symbols whose values at this moment are known (a trace; NULL
     * elsewhere): an equality, or a <= b, that is not proved holds as long as
     * it held now, so it becomes a condition of what is traced.  TL_ERR_PROGRAM
     * without a message where it does not hold; *holds tells for `le`. */
    tl_status (*guard)(void *arg, tl_dim a, tl_dim b);
    tl_status (*guard_le)(void *arg, tl_dim a, tl_dim b, bool *holds);
    /* The value of `d`, which becomes a condition. */
    tl_status (*pin)(void *arg, tl_dim d, tl_dim *out);
    void *guard_arg;
} tl_infer;

/* Attributes of an operation, all plain data: part of keys and of tapes.
 * Which fields an operation reads is said by its row in ops.def.
 * Start from tl_attrs_init; only `dims[0 .. ndims)` are meaningful. */
typedef struct tl_attrs {
    uint8_t dtype; /* tl_dtype of casts and creators */
    bool keep;     /* reductions: keep the reduced axes as size 1 */
    bool flag;     /* meaning by operation */
    int8_t axis;   /* normalised: 0 .. rank-1 */
    uint16_t axes; /* set of axes as bits (reductions, squeeze, flip) */
    uint16_t ndims;
    int64_t i[4];
    double f[6];
    tl_dim dims[3 * TL_MAX_RANK]; /* sizes; slices: start, size, step an axis */
} tl_attrs;

void tl_attrs_init(tl_attrs *at);

/* Copy of the meaningful part, and equality of it, bit for bit. */
void tl_attrs_copy(tl_attrs *to, const tl_attrs *from);
bool tl_attrs_same(const tl_attrs *a, const tl_attrs *b);

/* Are two sizes equal in this context?  TL_OK when proved or numbers agree;
 * on a mismatch the status TL_ERR_PROGRAM *without* a message, which the rule
 * reports in its own words.  Unsettled comparisons become guards. */
TL_MUST_USE tl_status tl_infer_equal(tl_infer *cx, tl_dim a, tl_dim b);

/* Is a <= b?  The same way; what is neither proved nor refuted passes where
 * there are no guards. */
TL_MUST_USE tl_status tl_infer_le(tl_infer *cx, tl_dim a, tl_dim b);

/* The same, but names are refused only where no sizes could satisfy it: a
 * window of 3 on an axis H is no mistake, though H may be 2.  The numbers of
 * a call decide. */
TL_MUST_USE tl_status tl_infer_may_le(tl_infer *cx, tl_dim a, tl_dim b);

/* The answer of one of these as a bool.  What else has failed, such as an
 * allocation, has been reported and is returned. */
static inline tl_status tl_infer_answer(tl_status st, bool *holds)
{
    *holds = st == TL_OK;
    return st == TL_ERR_PROGRAM ? TL_OK : st;
}

/* The same where another way is left: what has failed counts as no. */
bool tl_infer_yes(tl_infer *cx, tl_status st);

/* Add the note "for example H = 5: 3 and 2" to the newest diagnostic, when a
 * and b are symbolic and differ for some sizes. */
void tl_infer_example(tl_infer *cx, tl_dim a, tl_dim b);

/* Is this size known to be one? */
bool tl_dim_is_one(tl_dim d);

/* Shape of an elementwise operation on `a` and `b` (LANGUAGE.md 5).
 * Dimensions match from the last; a missing or size-1 one stretches.  If both
 * operands would grow and their ranks differ it is an error (E0310).
 * `out` may be `a` or `b` and is written only on success.  E0301, E0310. */
TL_MUST_USE tl_status tl_shape_broadcast(tl_infer *cx, tl_shape *out,
                                         const tl_shape *a,
                                         const tl_shape *b);

/* Axis `axis` (may be negative) of a tensor of rank `rank`.  E0309. */
TL_MUST_USE tl_status tl_axis_normalise(int64_t axis, int rank, int *out,
                                        tl_diag *diag);

/* Shape after reducing the set `axes`. */
void tl_shape_reduce(tl_shape *out, const tl_shape *in, uint16_t axes,
                     bool keep);

/* Number of elements of a shape of numbers; E0307 over 2^48. */
TL_MUST_USE tl_status tl_shape_numel(const tl_shape *shape, int64_t *out,
                                     tl_diag *diag);

/* Number of elements as a dim. */
TL_MUST_USE tl_status tl_shape_numel_dim(tl_infer *cx, const tl_shape *shape,
                                         tl_dim *out);

bool tl_shape_is_concrete(const tl_shape *shape);
bool tl_shape_same(const tl_shape *a, const tl_shape *b);

/* Text of a shape, "[B, T, 768]", or of a type, "f32[2, 3]", for messages.
 * Long texts end in "..."; lives until the end of the full expression. */
typedef struct tl_shape_text {
    char s[160];
} tl_shape_text;

tl_shape_text tl_dim_str(tl_dim d);
tl_shape_text tl_shape_str(const tl_shape *shape);
tl_shape_text tl_ttype_str(const tl_ttype *type);
void tl_ttype_print(const tl_ttype *type, tl_buf *out);

#endif
