/* facts.h - what running a graph needs to know of it, found once.
 *
 * A value *dies* at the last node of its own region that uses it, be it
 * inside one of that node's regions; values that a region or the graph
 * returns do not die.  A value that nothing uses dies at its own node. */
#ifndef TL_COMPILER_FACTS_H
#define TL_COMPILER_FACTS_H

#include "compiler/graph.h"

typedef struct tl_gfacts {
    uint32_t *region; /* by value: the region that it belongs to */
    uint32_t *last;   /* by value: the node at which it dies; TL_GLAST_NEVER */
    uint32_t *dead;   /* values that die, by node: dead[dies[n]] up to */
    uint32_t *dies;   /* dead[dies[n + 1]] */
    uint8_t *captured; /* by value: is it used inside an inner region? */
    uint32_t *atom;   /* by value: 1 + its atom, of host ints; 0: none */
    uint32_t max_in;  /* most operands and results of a node */
    uint32_t max_out;
} tl_gfacts;

#define TL_GLAST_NEVER UINT32_MAX

TL_MUST_USE tl_status tl_gfacts_init(tl_gfacts *f, const tl_graph *g,
                                     tl_diag *diag);
void tl_gfacts_fini(tl_gfacts *f); /* one that is all 0 is allowed */

/* The node of region `region` that is `node` or has it inside. */
uint32_t tl_gnode_within(const tl_graph *g, uint32_t node, uint32_t region);

/* Is the node an operation of this row? */
static inline bool tl_gnode_is(const tl_gnode *n, tl_op op)
{
    return n->kind == TL_G_OP && n->op == op;
}

/* Attributes of a node as its kernel takes them, with sizes under the atoms
 * of `env` and host scalars of `env`.  NULL is for a node without. */
TL_MUST_USE tl_status tl_gnode_attrs(const tl_graph *g, const tl_gnode *n,
                                     const tl_genv *env, tl_attrs *storage,
                                     const tl_attrs **out, tl_diag *diag);

/* Only the host scalars of the run: into attributes made before. */
void tl_gnode_attrs_bind(const tl_graph *g, const tl_gnode *n,
                         const tl_genv *env, tl_attrs *at);

/* Sizes of a tensor value under these atoms. */
TL_MUST_USE tl_status tl_gvalue_sizes(const tl_graph *g, tl_gval v,
                                      const int64_t *atoms, int64_t *size,
                                      tl_diag *diag);

#endif
