/* resize.h - attributes of `resize`, which samples signals and images anew.
 *
 * The last i[0] axes of x are resized; dims holds their new sizes, then, for
 * the gradient, the sizes of x.  i[1] is a tl_resize_mode, `flag`: the corners
 * of both grids meet; f[a]: the factor of axis a that the program gave, 0 where
 * it gave sizes. */
#ifndef TL_OP_RESIZE_H
#define TL_OP_RESIZE_H

#include "runtime/op/shape.h"

enum {
    TL_RESIZE_AXES = 3
}; /* at most */

typedef enum tl_resize_mode {
    TL_RESIZE_NEAREST,       /* floor(i / scale), as OpenCV */
    TL_RESIZE_NEAREST_EXACT, /* floor((i + 0.5) / scale) */
    TL_RESIZE_LINEAR,
    TL_RESIZE_CUBIC
} tl_resize_mode;

static inline int tl_resize_axes(const tl_attrs *at)
{
    return (int)at->i[0];
}

#endif
