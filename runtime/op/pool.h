/* pool.h - attributes of pooling.
 *
 * The last `tl_pool_axes` axes of x are pooled; all before them are batch.
 * dims holds one number for each of these axes and part:
 *   SIZE, STRIDE, PAD, DILATION of a window; gradients: IN, the sizes of x.
 * With `flag` windows are adaptive: SIZE is the number of windows, number o of
 * n over an axis of size `in` is [o in / n, ceil((o + 1) in / n)).
 * i[1]: sizes round up (ceil mode); i[2]: averages count padding; i[3]: what
 * averages divide by, 0 for the number of elements. */
#ifndef TL_OP_POOL_H
#define TL_OP_POOL_H

#include "runtime/op/shape.h"

enum {
    TL_POOL_AXES = 3
}; /* at most */

typedef enum tl_pool_part {
    TL_POOL_SIZE,
    TL_POOL_STRIDE,
    TL_POOL_PAD,
    TL_POOL_DILATION,
    TL_POOL_IN,
    TL_POOL_PARTS
} tl_pool_part;

/* n axes with windows of one element. */
void tl_pool_attrs(tl_attrs *at, int n);

static inline int tl_pool_axes(const tl_attrs *at)
{
    return (int)at->i[0];
}

static inline tl_dim *tl_pool_dims(tl_attrs *at, tl_pool_part part)
{
    return at->dims + (int)part * tl_pool_axes(at);
}

static inline tl_dim tl_pool_get(const tl_attrs *at, tl_pool_part part, int i)
{
    return at->dims[(int)part * tl_pool_axes(at) + i];
}

/* The same of a part that is a number: all but IN and an adaptive SIZE. */
static inline int64_t tl_pool_num(const tl_attrs *at, tl_pool_part part,
                                  int i)
{
    return tl_dim_value(tl_pool_get(at, part, i));
}

/* Elements of axis i from the first of a window to its last. */
static inline int64_t tl_pool_window(const tl_attrs *at, int i)
{
    return (tl_pool_num(at, TL_POOL_SIZE, i) - 1) *
               tl_pool_num(at, TL_POOL_DILATION, i) +
           1;
}

#endif
