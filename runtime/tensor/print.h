/* print.h - text of tensors, as `print` and f-strings show them.
 *
 * Up to 100 elements in full; more: the corners with "...", then a line with
 * min, mean, max and the count of NaN.  A rank-0 tensor prints as the number
 * alone.  nan and infinities print as nan, inf, -inf; bool as true, false. */
#ifndef TL_TENSOR_PRINT_H
#define TL_TENSOR_PRINT_H

#include "runtime/base/buf.h"
#include "runtime/tensor/tensor.h"

/* The default text of a tensor; `full` shows every element. */
void tl_tensor_print(const tl_tensor *t, bool full, tl_buf *out);

/* A number as Python's repr prints it: the shortest digits that read back to
 * the same double ("0.1", "1e-05", "3.0"), or float32 for tl_print_f32. */
void tl_print_f64(double value, tl_buf *out);
void tl_print_f32(float value, tl_buf *out);

#endif
