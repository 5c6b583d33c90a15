/* walk.h - running a graph node by node through tl_apply: the oracle of every
 * plan, and what runs where a plan cannot.
 *
 * A value is released at its last use, so that operations write in place as
 * they do in the interpreter.  Inputs are borrowed from the caller and never
 * written.  The walk records on no tape. */
#ifndef TL_COMPILER_WALK_H
#define TL_COMPILER_WALK_H

#include "compiler/facts.h"
#include "compiler/program.h"

typedef struct tl_walk {
    const tl_graph *g;
    const tl_gfacts *facts;
    tl_rt *rt;
    tl_effect_fn *effect;
    void *arg;
    tl_genv *env;         /* host scalars and atoms; written */
    tl_tensor **value;    /* by value, references; NULL where unknown */
    tl_tensor *const *consts; /* by node, of CONST nodes */
    tl_tensor **in, **out;    /* room for a node's operands and results */
    tl_tensor **shown;        /* the same for effects */
    tl_gscalar *scalars;
    bool lent; /* tensors are a plan's: an effect gets copies */
} tl_walk;

/* Room for walks of a graph: value[] (all NULL), in[] and the like. */
TL_MUST_USE tl_status tl_walk_init(tl_walk *w, const tl_graph *g,
                                   const tl_gfacts *facts, tl_diag *diag);
void tl_walk_fini(tl_walk *w);

/* Run the whole graph.  Host inputs stand in env, with the atoms that they
 * and the sizes of tensor inputs are.  Outputs are written on success. */
TL_MUST_USE tl_status tl_walk_run(tl_walk *w, const tl_run *run);

/* Run one node whose operands stand in value[] and env; its results do
 * afterwards.  Releases nothing that `facts` says dies here. */
TL_MUST_USE tl_status tl_walk_node(tl_walk *w, uint32_t node);

/* Drop every value. */
void tl_walk_clear(tl_walk *w);

/* Call the effect of an ASSERT or HOSTCALL node, the tensors that it shows
 * being in[] of the walk by operand. */
TL_MUST_USE tl_status tl_walk_effect(tl_walk *w, const tl_gnode *n);

/* A host scalar as a tensor of rank 0 (SCALAR), and back (ITEM). */
TL_MUST_USE tl_status tl_walk_scalar(tl_rt *rt, tl_gclass cls, tl_gscalar s,
                                     tl_dtype dtype, tl_tensor **out);
TL_MUST_USE tl_status tl_walk_item(tl_rt *rt, const tl_tensor *t,
                                   tl_gclass cls, tl_gscalar *out);

#endif
