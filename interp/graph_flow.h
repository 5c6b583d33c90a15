/* graph_flow.h - branches and loops that the run decides, in the graph
 * domain. */
#ifndef TL_INTERP_GRAPH_FLOW_H
#define TL_INTERP_GRAPH_FLOW_H

#include "interp/graph_ways.h"

/* domain.h: branch, choose. */
TL_MUST_USE tl_status tl_graph_branch(tl_eval *ev, tl_value cond,
                                      const tl_ast_if *node, uint32_t arm,
                                      tl_flow *flow);
TL_MUST_USE tl_status tl_graph_choose(tl_eval *ev, tl_value cond,
                                      const tl_ast *then,
                                      const tl_ast *other, tl_value *out);

/* An `if` on a symbol, from arm `number` on, as a branch of the run; *joined is
 * false, and nothing has happened, where its value has to be read: arms that
 * leave, raise, or end in different types, or an arm not taken in which
 * something is decided. */
TL_MUST_USE tl_status tl_graph_branch_symbol(tl_eval *ev, tl_value cond,
                                             const tl_ast_if *node,
                                             uint32_t number, bool *joined);

/* domain.h: fold_loop, loop (graph_loop.c). */
bool tl_graph_fold_loop(tl_eval *ev, tl_value iterable);
TL_MUST_USE tl_status tl_graph_loop(tl_eval *ev, const tl_ast *node,
                                    tl_value iterable, tl_flow *flow);

/* A condition as a host bool of the graph. */
TL_MUST_USE tl_status tl_flow_condition(tl_eval *ev, tl_value cond,
                                        tl_gval *out);

#endif
