/* view.h - views: new sizes, strides and offset on the same storage.
 *
 * Attributes of the VIEW rows:
 *   reshape    dims: the new sizes; one of them may be -1
 *   permute    dims: for each axis of the result, the axis of the operand
 *   expand     dims: the new sizes, aligned from the right; -1 keeps a size
 *   squeeze    axes: axes of size 1 to remove
 *   unsqueeze  axes: axes of the result that are new
 *   slice      dims: start, size, step of every axis; step is not 0,
 *              0 <= start and start + (size - 1) * step within the axis */
#ifndef TL_OP_VIEW_H
#define TL_OP_VIEW_H

#include "runtime/op/op.h"

/* Where the elements of a tensor lie, in elements. */
typedef struct tl_layout {
    int rank;
    int64_t offset;
    int64_t size[TL_MAX_RANK];
    int64_t stride[TL_MAX_RANK];
} tl_layout;

/* Layout of a view of `in`, whose attributes the shape rule has accepted.
 * False, and `out` is not written: the strides do not allow the new shape,
 * and a row-major copy of `in` does (reshape only).  `out` may be `in`. */
bool tl_view_layout(tl_op op, const tl_attrs *at, const tl_layout *in,
                    tl_layout *out);

/* Row-major strides of `size`. */
void tl_layout_row_major(tl_layout *out, int rank, const int64_t *size);

/* Can elements laid out by `in` be addressed as `size` (of the same number of
 * elements)?  Then the strides; size-1 axes get those of row-major order. */
bool tl_layout_reshape(const tl_layout *in, int rank, const int64_t *size,
                       int64_t *stride);

/* One element of an index expression `x[start:stop:step]`; a missing bound is
 * `has_` false.  step is a number and not 0. */
typedef struct tl_axis_slice {
    bool has_start, has_stop;
    tl_dim start, stop;
    int64_t step;
} tl_axis_slice;

/* Start and size of a slice of an axis of size `n`, as Python has it: bounds
 * below 0 count from the end, and are clipped.  With symbols the size is
 * stop - start where facts give 0 <= start <= stop <= n, a fresh atom
 * elsewhere (LANGUAGE.md 3.1).  E0416 for step 0. */
TL_MUST_USE tl_status tl_slice_resolve(tl_infer *cx, tl_dim n,
                                       const tl_axis_slice *s, tl_dim *start,
                                       tl_dim *size);

/* Attributes of a slice that takes all of every axis of `shape`; the caller
 * overwrites dims[3 * axis ..] of some. */
void tl_attrs_slice_all(tl_attrs *at, const tl_shape *shape);

/* Attributes whose dims are the sizes of `shape`. */
void tl_attrs_sizes(tl_attrs *at, const tl_shape *shape);

#endif
