/* op.h - the operations: numbers, properties, shape rules, gradient rules.
 *
 * Everything here is computed from ops.def and from the one file that each
 * structured operation has in this folder.  A rule never touches data: shape
 * rules see types, gradient rules build other operations through a tl_emit,
 * which the interpreter (apply), the checker and the compiler implement. */
#ifndef TL_OP_OP_H
#define TL_OP_OP_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/base/rng.h"
#include "runtime/op/shape.h"

typedef enum tl_op {
#define TL_OP_ROW(name) TL_OP_##name,
#include "runtime/op/ops_each.h"
    TL_OP_COUNT
} tl_op;

typedef enum tl_op_class {
    TL_CLASS_MAP,  /* elementwise, broadcasting: value and gradients are
                      formulas */
    TL_CLASS_CMP,  /* elementwise to bool: no gradient */
    TL_CLASS_RED,  /* reduction over attrs.axes */
    TL_CLASS_VIEW, /* new strides on the same storage: no kernel */
    TL_CLASS_MAKE, /* creator: no tensor inputs */
    TL_CLASS_KERN  /* structured: own file, own kernel */
} tl_op_class;

/* What autocast does with it (column AMP). */
typedef enum tl_amp {
    TL_AMP_LOW,
    TL_AMP_F32,
    TL_AMP_WIDE
} tl_amp;

/* Which dtypes the operands may have; others are cast or refused. */
typedef enum tl_types {
    TL_TYPES_FLOAT, /* floats; ints and bool are computed as f32 */
    TL_TYPES_NUM,   /* floats and ints; bool counts as i64 */
    TL_TYPES_ANY,   /* every dtype as it is */
    TL_TYPES_BOOL   /* bool only */
} tl_types;

/* Where random test inputs come from (column domain). */
typedef enum tl_op_domain {
    TL_DOM_ANY,     /* -3 .. 3, away from kinks that the row names */
    TL_DOM_POS,     /* 0.1 .. 4 */
    TL_DOM_NONZERO, /* 0.3 <= |x| <= 3 */
    TL_DOM_UNIT,    /* -0.9 .. 0.9 */
    TL_DOM_PROB,    /* 0.05 .. 0.95 */
    TL_DOM_BIG      /* 1.1 .. 4 */
} tl_op_domain;

#define TL_MAX_INPUTS 8 /* of a row; variadic ones (cat) may have more */
#define TL_MAX_OUTPUTS 4

typedef struct tl_emit tl_emit;
typedef struct tl_grad_in tl_grad_in;
typedef void *tl_node; /* tl_tensor *, or a node of a graph */

/* Types of the results from types of the inputs and attributes.  Checks
 * ranks, sizes and dtypes and reports in the user's words. */
typedef tl_status tl_infer_fn(tl_infer *cx, tl_op op, const tl_ttype *in,
                              int nin, const tl_attrs *at, tl_ttype *out);

/* Gradients with respect to the wanted inputs; see tl_grad_in. */
typedef tl_status tl_grad_fn(tl_emit *e, const tl_grad_in *gi, tl_node *dx);

typedef struct tl_op_info {
    const char *name;
    tl_op_class cls;
    int nin;  /* number of tensor inputs; -1: variadic */
    int nout; /* number of results */
    tl_types types;
    tl_amp amp;
    tl_op_domain domain;
    bool differentiable;
    const char *value;   /* formula, or NULL */
    const char *grad[3]; /* formula for each input, or NULL */
    uint32_t saves_in;   /* inputs whose values the gradient reads */
    uint32_t saves_out;  /* results whose values the gradient reads */
    uint32_t join_in;    /* inputs of a KERN row that are joined and cast to
                            tl_op_compute_dtype of that before the kernel */
    uint32_t in_place;   /* inputs of a KERN row whose storage, when given
                            away, a result may take: the k-th of them result
                            k (of equal type; the input is row-major) */
    uint32_t bool_in;    /* inputs that must be bool and stay outside the join
                            of the others (the condition of where) */
    tl_infer_fn *infer;
    tl_grad_fn *grad_rule; /* structured and region operations */
    const char *doc;
} tl_op_info;

/* The row of `op`. */
const tl_op_info *tl_op_get(tl_op op);

/* The operation called `name`, or TL_OP_COUNT. */
tl_op tl_op_find(const char *name);

/* Apply the shape rule of `op`. */
TL_MUST_USE tl_status tl_op_infer(tl_infer *cx, tl_op op, const tl_ttype *in,
                                  int nin, const tl_attrs *at, tl_ttype *out);

/* The rules that rows share: the result has the type of the input; for rows
 * whose gradient is nowhere; for those along attrs.axis. */
tl_infer_fn tl_infer_same, tl_infer_scan;
tl_grad_fn tl_no_grad;

/* Is the gradient of a MAP row with respect to this input zero everywhere? */
bool tl_op_grad_is_zero(tl_op op, int which);

/* The key of a random operation stands in its attributes: seed in i[0], draw
 * in i[1], stream in the low half of i[2], sub in the high one. */
tl_rng_key tl_attrs_key(const tl_attrs *at);
void tl_attrs_set_key(tl_attrs *at, const tl_rng_key *key);

/* The dtype in which a MAP, CMP or RED row computes on inputs that join to
 * `joined`; E0317 if the row does not take it. */
TL_MUST_USE tl_status tl_op_compute_dtype(tl_op op, tl_dtype joined,
                                          tl_dtype *out, tl_diag *diag);

/* ---- building operations, without knowing who runs them ---------------- */

/* Implemented by apply (runs at once), by the shape domain (types only) and
 * by the graph (adds a node).  Nodes made through an emitter belong to it and
 * live until its owner releases them: rules never free. */
struct tl_emit {
    tl_status (*apply)(tl_emit *e, tl_op op, const tl_node *in, int nin,
                       const tl_attrs *at, tl_node *out);
    const tl_ttype *(*type)(tl_emit *e, tl_node node);
    tl_infer *infer; /* context of symbolic sizes, and the sink */
    void *impl;
};

/* What a gradient rule gets. */
struct tl_grad_in {
    tl_op op;
    const tl_attrs *at;
    const tl_node *in; /* values only where saves_in says so, else a node of
                           which only the type may be asked */
    int nin;
    const tl_node *out; /* the same with saves_out */
    int nout;
    const tl_node *g; /* upstream gradient of each result; NULL: zero */
    const bool *want; /* inputs whose gradient is wanted */
};

/* dx[i] for every wanted input, NULL for a zero gradient; each has the type
 * of the input (un-broadcasting is done here, once, for MAP rows).
 * For a MAP row this emits the parsed gradient formula as elementary
 * operations; autograd uses the fused kernel instead where nothing watches. */
TL_MUST_USE tl_status tl_op_gradient(tl_emit *e, const tl_grad_in *gi,
                                     tl_node *dx);

/* Shorthands for rules. */
TL_MUST_USE tl_status tl_emit1(tl_emit *e, tl_op op, tl_node a,
                               const tl_attrs *at, tl_node *out);
TL_MUST_USE tl_status tl_emit2(tl_emit *e, tl_op op, tl_node a, tl_node b,
                               const tl_attrs *at, tl_node *out);
/* A scalar constant of `dtype`. */
TL_MUST_USE tl_status tl_emit_const(tl_emit *e, double value, tl_dtype dtype,
                                    tl_node *out);
/* Sum `g` down to `shape`, from which it was broadcast. */
TL_MUST_USE tl_status tl_emit_sum_to(tl_emit *e, tl_node g,
                                     const tl_shape *shape, tl_node *out);

#endif
