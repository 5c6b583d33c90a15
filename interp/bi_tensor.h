/* bi_tensor.h - what the files of tensor built-ins share. */
#ifndef TL_INTERP_BI_TENSOR_H
#define TL_INTERP_BI_TENSOR_H

#include "interp/eval_impl.h"

/* Take an argument: its reference moves out of args[i]. */
static inline tl_value tl_arg_take(tl_value *args, int i)
{
    tl_value v = args[i];

    args[i] = tl_empty();
    return v;
}

/* args[i] as a tensor; takes it. */
TL_MUST_USE tl_status tl_arg_tensor(tl_eval *ev, tl_value *args, int i,
                                    tl_value *out);

/* An axis argument of a tensor value, normalised.  E0309. */
TL_MUST_USE tl_status tl_arg_axis(tl_eval *ev, tl_value axis, tl_value of,
                                  int *out);

/* Run a row that works along an axis, args `axis` of in[0], which it sets in
 * `at`.  Eats `in`.  A tensor without axes counts as one of one axis, 0 or -1,
 * and gives results without axes; as PyTorch has it.  E0309. */
TL_MUST_USE tl_status tl_op_along(tl_eval *ev, tl_op op, tl_value *in, int nin,
                                  tl_value axis, tl_attrs *at, tl_value *out);

/* Axes (INT, list or tuple of INT, NONE: all) of a tensor as a bit set; of one
 * without axes 0 and -1 are the empty set.  E0309, also for an axis given
 * twice. */
TL_MUST_USE tl_status tl_arg_axes(tl_eval *ev, tl_value axes, tl_value of,
                                  uint16_t *out);

/* Sizes from variadic arguments: ints, or one list, tuple or shape of them.
 * *unknown: one of them is UNKNOWN.  E0306 for less than `least`, E0316. */
TL_MUST_USE tl_status tl_arg_sizes(tl_eval *ev, tl_value sizes, int64_t least,
                                   tl_attrs *at, bool *unknown);

/* In a trace, a size that a built-in decides by becomes the number that it is
 * (and the program's key has it).  Elsewhere nothing happens. */
TL_MUST_USE tl_status tl_pin_size(tl_eval *ev, tl_dim *size);

/* Number `v` (bool, int or float) as the fill value of TL_OP_full in dtype
 * `d`.  E0319 for an integer that it cannot hold. */
TL_MUST_USE tl_status tl_fill_value(tl_eval *ev, tl_value v, tl_dtype d,
                                    tl_attrs *at);

/* The key of the next draw, into the attributes of a random operation. */
void tl_set_draw(tl_eval *ev, tl_attrs *at);

/* Number of axes of a tensor value. */
int tl_value_rank(tl_value t);

/* reshape, unsqueeze, one slice along an axis; eat `v`. */
TL_MUST_USE tl_status tl_do_reshape(tl_eval *ev, tl_value v, int rank,
                                    const tl_dim *dim, tl_value *out);
TL_MUST_USE tl_status tl_do_unsqueeze(tl_eval *ev, tl_value v, int axis,
                                      tl_value *out);
TL_MUST_USE tl_status tl_do_slice(tl_eval *ev, tl_value v, int axis,
                                  tl_dim start, tl_dim size, int64_t step,
                                  tl_value *out);

/* Join `n` tensors along `axis`; eats them. */
TL_MUST_USE tl_status tl_do_cat(tl_eval *ev, tl_value *in, size_t n, int axis,
                                tl_value *out);

#endif
