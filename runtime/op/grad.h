/* grad.h - shorthands for gradient rules, besides those of op.h. */
#ifndef TL_OP_GRAD_H
#define TL_OP_GRAD_H

#include "runtime/op/op.h"

/* op(a, b, c), for `where`. */
TL_MUST_USE tl_status tl_emit3(tl_emit *e, tl_op op, tl_node a, tl_node b,
                               tl_node c, tl_node *out);

/* `a` as `dtype`, itself if it is already. */
TL_MUST_USE tl_status tl_emit_cast(tl_emit *e, tl_node a, tl_dtype dtype,
                                   tl_node *out);

/* `a` through TL_OP_reshape or TL_OP_expand to `shape`; itself if it has it. */
TL_MUST_USE tl_status tl_emit_shaped(tl_emit *e, tl_op view, tl_node a,
                                     const tl_shape *shape, tl_node *out);

/* A reduction over `axes`; a sum over no axis is `a` itself. */
TL_MUST_USE tl_status tl_emit_reduce(tl_emit *e, tl_op op, tl_node a,
                                     uint16_t axes, bool keep, tl_node *out);

#endif
