/* conv.h - attributes of the three convolution rows.
 *
 *   conv            x [N, C, in...], w [O, C / groups, k...] -> [N, O, out...]
 *   conv_transpose  g [N, O, out...], w                      -> [N, C, in...]
 *   conv_weight     x, g                                     -> as w
 *
 * The second is the gradient of the first with respect to x and the third
 * that with respect to w, so all three have the same attributes:
 *
 *   i[0]  groups
 *   dims  stride, padding before, padding after, dilation, each of n spatial
 *         axes (numbers); then n sizes: `in` of conv_transpose, k of
 *         conv_weight, which their operands do not tell; unread in conv
 *
 * out = (in + before + after - dilation (k - 1) - 1) // stride + 1.  Padding
 * after the end may be below 0: then the last elements are not read. */
#ifndef TL_OP_CONV_H
#define TL_OP_CONV_H

#include "runtime/op/shape.h"

enum {
    TL_CONV_AXES = 3 /* at most so many spatial axes */
};

/* Which block of attrs.dims. */
enum tl_conv_part {
    TL_CONV_STRIDE,
    TL_CONV_BEFORE,
    TL_CONV_AFTER,
    TL_CONV_DILATION,
    TL_CONV_SIZE,
    TL_CONV_PARTS
};

static inline int tl_conv_axes(const tl_attrs *at)
{
    return at->ndims / TL_CONV_PARTS;
}

static inline tl_dim *tl_conv_dims(tl_attrs *at, enum tl_conv_part part)
{
    return at->dims + (int)part * tl_conv_axes(at);
}

static inline int64_t tl_conv_get(const tl_attrs *at, enum tl_conv_part part,
                                  int axis)
{
    return tl_dim_value(at->dims[(int)part * tl_conv_axes(at) + axis]);
}

/* Attributes of a convolution over n axes: stride and dilation 1, no padding,
 * one group, sizes 0. */
void tl_conv_attrs(tl_attrs *at, int n);

/* Size of the input along spatial axis `i` of a transposed convolution whose
 * operand has `out` and its kernel k elements there:
 * (out - 1) stride - before - after + dilation (k - 1) + 1.  E0412 below 1. */
TL_MUST_USE tl_status tl_conv_in_size(tl_infer *cx, const tl_attrs *at, int i,
                                      tl_dim out, tl_dim k, tl_dim *in);

/* E0304 unless x has n + 2 axes and w as many. */
TL_MUST_USE tl_status tl_conv_check_ranks(tl_infer *cx, int n, bool transposed,
                                          const tl_ttype *x,
                                          const tl_ttype *w);

#endif
