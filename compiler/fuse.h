/* fuse.h - which steps of a plan run as one tile program. */
#ifndef TL_COMPILER_FUSE_H
#define TL_COMPILER_FUSE_H

#include "compiler/plan_impl.h"

/* Make the tile program of a TILE step whose headers are bound. */
TL_MUST_USE tl_status tl_plan_tile(tl_plan *pl, tl_pstep *s, tl_rt *rt);

#endif
