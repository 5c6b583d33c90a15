/* decompose.h - regions taken apart into elementary operations.
 *
 * Under two or more tapes a region runs as its parts, which have derivatives
 * of every order (LANGUAGE.md 6); the compiler does the same where no
 * template claims a region.  The parts have the bits of the region's kernel
 * (9g); tests/unit/runtime/op/test_structured.c compares them.  Not so sdpa:
 * its kernel sums by tiles, so the two agree to rounding. */
#ifndef TL_OP_DECOMPOSE_H
#define TL_OP_DECOMPOSE_H

#include "runtime/op/op.h"

/* Is `op` a region whose gradient operation has no gradient itself? */
bool tl_op_decomposes(tl_op op);

/* Emit the parts of `op`; out[] has as many nodes as the row has results. */
TL_MUST_USE tl_status tl_op_decompose(tl_emit *e, tl_op op, const tl_node *in,
                                      int nin, const tl_attrs *at,
                                      tl_node *out);

/* The parts of one operation each (decompose_norm.c); use tl_op_decompose. */
typedef tl_status tl_decompose_fn(tl_emit *e, const tl_node *in, int nin,
                                  const tl_attrs *at, tl_node *out);
tl_decompose_fn tl_decompose_layer_norm, tl_decompose_rms_norm,
    tl_decompose_batch_norm, tl_decompose_group_norm;

#endif
