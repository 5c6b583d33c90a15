/* emit.h - steps that rules of structured operations share. */
#ifndef TL_OP_EMIT_H
#define TL_OP_EMIT_H

#include "runtime/op/grad.h"
#include "runtime/op/op.h"

/* Zeros of this dtype and shape. */
TL_MUST_USE tl_status tl_emit_zeros(tl_emit *e, tl_dtype dtype,
                                    const tl_shape *shape, tl_node *out);

/* Swap the last two axes. */
TL_MUST_USE tl_status tl_emit_transpose(tl_emit *e, tl_node x, tl_node *out);

/* Axes of size 1 at the set `axes` of the result. */
TL_MUST_USE tl_status tl_emit_unsqueeze(tl_emit *e, tl_node x, uint16_t axes,
                                        tl_node *out);
TL_MUST_USE tl_status tl_emit_squeeze(tl_emit *e, tl_node x, uint16_t axes,
                                      tl_node *out);

/* x[.., start : start + size, ..] along one axis. */
TL_MUST_USE tl_status tl_emit_slice_axis(tl_emit *e, tl_node x, int axis,
                                         tl_dim start, tl_dim size,
                                         tl_node *out);

/* E0308 unless `type` is an integer tensor (an index, a target, an id). */
TL_MUST_USE tl_status tl_infer_index(tl_infer *cx, const char *what,
                                     const tl_ttype *type);

/* The size of a result that only data tell. */
TL_MUST_USE tl_status tl_infer_by_data(tl_infer *cx, const char *why,
                                       tl_dim *out);

#endif
