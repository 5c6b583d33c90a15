/* channels.h - normalisation by channels: what its files share. */
#ifndef TL_OP_CHANNELS_H
#define TL_OP_CHANNELS_H

#include "runtime/op/shape.h"

/* x[N, C, ..] as [N, G, C / G ..]: rows of what group_norm normalises.
 * groups 0: one for each channel. */
TL_MUST_USE tl_status tl_group_rows(tl_infer *cx, const tl_shape *x,
                                    int64_t groups, tl_shape *out);

#endif
