/* plan_region.h - what a plan must know of a branch or loop that it runs as
 * one step. */
#ifndef TL_COMPILER_PLAN_REGION_H
#define TL_COMPILER_PLAN_REGION_H

#include "compiler/plan_impl.h"

/* Is every tensor that the node gives row-major whatever happens in it?  A
 * plan has one layout for each value; where that of a result depends on the
 * run, only the walk has the interpreter's. */
TL_MUST_USE tl_status tl_region_is_row_major(const tl_plan *pl, uint32_t node,
                                             bool *out, tl_diag *diag);

/* The tensors from outside that its regions use; *out is for tl_free. */
TL_MUST_USE tl_status tl_region_captured(const tl_program *p, uint32_t node,
                                         tl_gval **out, uint32_t *n,
                                         tl_diag *diag);

/* Run it by the walk; results go into the headers of the step. */
TL_MUST_USE tl_status tl_region_walk(tl_plan *pl, const tl_pstep *s,
                                     tl_rt *rt, const tl_run *run);

/* The plans of a node's regions, and room for their runs. */
struct tl_pregions {
    tl_arena memory;
    tl_plan *plan[2];
    tl_pscope scope[2];
    tl_tensor **in[2];
    uint32_t count;      /* of regions */
    uint32_t ncaptured;
    size_t arena;        /* bytes that the larger plan needs */
    tl_tensor **out, **state, **slot;
    tl_gscalar *out_scalars, *state_scalars;
};

/* Plan the regions of step `s`, whose node's operands are followed by what is
 * captured.  s->regions stays NULL where that cannot be. */
TL_MUST_USE tl_status tl_region_plan(tl_plan *pl, tl_pstep *s,
                                     const tl_gval *captured, uint32_t count,
                                     tl_rt *rt);
void tl_region_free(tl_pregions *r); /* NULL is allowed */

/* Run the step. */
TL_MUST_USE tl_status tl_region_run(tl_plan *pl, const tl_pstep *s,
                                    tl_rt *rt, const tl_run *run);

#endif
