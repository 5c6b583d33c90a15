/* graph_check_impl.h - what graph_check.c and graph_types.c share. */
#ifndef TL_COMPILER_GRAPH_CHECK_IMPL_H
#define TL_COMPILER_GRAPH_CHECK_IMPL_H

#include "compiler/graph_impl.h"

typedef struct tl_gcheck {
    const tl_graph *g;
    uint32_t *region; /* by value: the region that it belongs to */
    uint8_t *visible; /* by value */
    tl_dims *dims;    /* sizes with the facts that guards state */
    tl_dim *dim;      /* by number of the size */
    tl_dim *atoms;
    uint32_t node; /* that is looked at */
    tl_diag *diag;
    tl_diag quiet; /* of rules that may fail for want of facts */
} tl_gcheck;

/* Report that the node breaks an invariant. */
#define TL_GBAD(c, ...) tl_graph_bad(c, __VA_ARGS__)

tl_status tl_graph_bad(tl_gcheck *c, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* Do operands, attributes and results of the node agree as its kind asks?
 * All numbers are in range. */
TL_MUST_USE tl_status tl_graph_check_types(tl_gcheck *c, const tl_gnode *n);

#endif
