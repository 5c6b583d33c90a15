/* walk_impl.h - what walk.c and walk_region.c share. */
#ifndef TL_COMPILER_WALK_IMPL_H
#define TL_COMPILER_WALK_IMPL_H

#include "compiler/walk.h"

/* Run the nodes of `region` in first .. last-1, releasing what dies. */
TL_MUST_USE tl_status tl_walk_nodes(tl_walk *w, uint32_t region,
                                    uint32_t first, uint32_t last);

TL_MUST_USE tl_status tl_walk_if(tl_walk *w, const tl_gnode *n);
TL_MUST_USE tl_status tl_walk_loop(tl_walk *w, const tl_gnode *n);

/* Make `t` (a reference, or NULL) the tensor that is `v`; a host scalar. */
void tl_walk_set(tl_walk *w, tl_gval v, tl_tensor *t);
void tl_walk_set_scalar(tl_walk *w, tl_gval v, tl_gscalar s);

/* The value `to` is the value `from`. */
void tl_walk_copy(tl_walk *w, tl_gval from, tl_gval to);

#endif
