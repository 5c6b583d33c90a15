/* emit.h - building operations through the domain that is running.
 *
 * What runtime/op composes through a tl_emit (patterns, decompositions) runs
 * at once on data, is typed in the shape pass, and is recorded by a graph:
 * nodes are values of the evaluator, each operation is a tl_eval_op. */
#ifndef TL_INTERP_EMIT_H
#define TL_INTERP_EMIT_H

#include "interp/eval.h"

typedef struct tl_emitted tl_emitted;

typedef struct tl_eval_emit {
    tl_emit emit;
    tl_eval *ev;
    tl_emitted *last; /* what was made, newest first */
    tl_ttype types[4]; /* what `type` gave last, in turn */
    unsigned ntypes;
} tl_eval_emit;

void tl_eval_emit_init(tl_eval_emit *e, tl_eval *ev);
void tl_eval_emit_fini(tl_eval_emit *e);

/* A node for a tensor value; takes `v`, on failure too. */
TL_MUST_USE tl_status tl_eval_emit_node_take(tl_eval_emit *e, tl_value v,
                                             tl_node *out);

/* The value of a node, a new reference. */
tl_value tl_eval_emit_value(tl_node node);

#endif
