/* print.h - text of tensors, as `print` and f-strings show them.
 *
 * Nested brackets, columns aligned, lines of at most 80 characters, a blank
 * line between matrices, as NumPy and PyTorch do:
 *
 *     [[ 1.0000, -0.5000],
 *      [12.2500,     nan]]
 *
 * All numbers of a tensor have one format, chosen from those shown: whole
 * floats as 3.0; otherwise four decimals, with an exponent when the largest
 * absolute value is over 1e8, the smallest but zero under 1e-4, or one over
 * 1000 times the other (PyTorch's rule).
 * nan and infinities print as nan, inf, -inf; bool as true, false.
 *
 * Up to 100 elements are shown in full.  Of more, three (two, in rank 3 and 4)
 * at each end of an axis with "..." between, then a line
 *
 *     f32[32, 768]: min -3.1, mean 0.02, max 2.9, nan 0
 *
 * over the elements that are numbers (of bool: how many are true).  Of a rank
 * over four, the leading axes show their first element only.  A rank-0 tensor
 * prints as the number alone, with the shortest digits that read back; a
 * tensor without elements as [] and, if its rank is not 1, its type. */
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
