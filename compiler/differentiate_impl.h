/* differentiate_impl.h - copies of regions: private to differentiate_region.c
 * and differentiate_copy.c. */
#ifndef TL_COMPILER_DIFFERENTIATE_IMPL_H
#define TL_COMPILER_DIFFERENTIATE_IMPL_H

#include "compiler/build.h"

/* A copy of a region's nodes into the region that is open. */
typedef struct tl_gcopying {
    tl_gbuild *b;
    tl_gval *map;  /* by value: its copy; 0: itself */
    size_t len;
    uint64_t bit;  /* of the block: what it does not see stays unseen */
    tl_dim from[64], to[64]; /* atoms of parameters */
    int natoms;
} tl_gcopying;

/* A copy of nothing yet, for a block's gradient. */
TL_MUST_USE tl_status tl_gcopy_init(tl_gcopying *c, tl_gbuild *b,
                                    uint64_t bit);

/* What stands for value `v` of the original in the copy. */
tl_gval tl_gcopy_of(const tl_gcopying *c, tl_gval v);

/* The atom of host int `v` of the original, if it has one, becomes `to`. */
TL_MUST_USE tl_status tl_gcopy_atom(tl_gcopying *c, tl_gval v, tl_dim to);

/* `copy` is that of host int `v`, which sizes of the original may contain. */
TL_MUST_USE tl_status tl_gcopy_int(tl_gcopying *c, tl_gval v, tl_gval copy);

/* The nodes of a region, those of regions in it too. */
TL_MUST_USE tl_status tl_gcopy_region(tl_gcopying *c, uint32_t region);

#endif
