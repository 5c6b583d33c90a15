/* rewrite.h - what passes share: renaming values, dropping what is
 * unreachable.
 *
 * A pass walks the nodes in order.  At each it first renames the operands
 * (tl_rewrite_node), then looks at what makes them, and may change the node
 * or say that its result is another value (tl_rewrite_value).  At the end
 * tl_rewrite_finish renames what is left.  The other value has the type of
 * the result and is made before it, in its region or around it, so it is
 * seen wherever the result is. */
#ifndef TL_COMPILER_REWRITE_H
#define TL_COMPILER_REWRITE_H

#include "compiler/graph.h"

typedef struct tl_rewrite {
    tl_graph *g;
    tl_gval *to; /* by value; 0: itself */
    size_t nvalues;
    size_t changes;
} tl_rewrite;

TL_MUST_USE tl_status tl_rewrite_init(tl_rewrite *rw, tl_graph *g,
                                      tl_diag *diag);
void tl_rewrite_fini(tl_rewrite *rw); /* one that is all 0 is allowed */

/* What stands for value `v`. */
static inline tl_gval tl_rewrite_get(const tl_rewrite *rw, tl_gval v)
{
    while (rw->to[v] != 0) {
        v = rw->to[v];
    }
    return v;
}

/* Let `to` stand for `from` from here on; counts a change. */
void tl_rewrite_value(tl_rewrite *rw, tl_gval from, tl_gval to);

/* Rename operands and bound attributes of a node. */
TL_MUST_USE tl_status tl_rewrite_node(tl_rewrite *rw, uint32_t node,
                                      tl_diag *diag);

/* Rename operands, results of regions, outputs, guards and atoms. */
void tl_rewrite_finish(tl_rewrite *rw);

/* ---- changing a node in place ------------------------------------------- */

/* Make it a host constant of its class. */
TL_MUST_USE tl_status tl_rewrite_to_num(tl_graph *g, uint32_t node,
                                        tl_gscalar value, tl_diag *diag);

/* Give it other operands, not more than it has. */
void tl_rewrite_operands(tl_graph *g, uint32_t node, const tl_gval *in,
                         uint32_t nin);

/* ---- asking ------------------------------------------------------------- */

/* Is it an operation of this row? */
static inline bool tl_rewrite_is(const tl_gnode *n, tl_op op)
{
    return n->kind == TL_G_OP && n->op == op;
}

/* Is `v` a host constant? */
bool tl_rewrite_num(const tl_graph *g, tl_gval v, tl_gscalar *out);

/* Is every element of the tensor `v` this number: a full, a host constant as
 * a tensor, one element of a constant, seen through views? */
bool tl_rewrite_uniform(const tl_graph *g, tl_gval v, double *out);

/* May running it fail for what its operands are (an index out of range, a
 * division by zero)?  Then it must run, as the interpreter runs it. */
bool tl_gnode_may_fail(const tl_graph *g, const tl_gnode *n);

/* ---- compaction --------------------------------------------------------- */

/* Drop all that no output, effect, guard, input or node that may fail needs:
 * nodes, values, sizes, attributes, constants.  Nodes of kind TL_G_NONE are
 * what a pass has dropped.  Numbers change; *dropped (may be NULL): how many
 * nodes. */
TL_MUST_USE tl_status tl_graph_compact(tl_graph *g, size_t *dropped,
                                       tl_diag *diag);

#endif
