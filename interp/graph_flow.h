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

/* The same of `a if c else b`, where both are tensors or floats: other values
 * may have to be read. */
TL_MUST_USE tl_status tl_graph_choose_symbol(tl_eval *ev, tl_value cond,
                                             const tl_ast_cond *node,
                                             tl_value *out, bool *joined);

/* `a and b` and `a or b`, where `a` is a symbol; *done false: it has to be
 * read. */
TL_MUST_USE tl_status tl_graph_logic(tl_eval *ev, const tl_ast_logic *n,
                                     tl_value a, tl_value *out, bool *done);

/* Both of two bools, or one of them, as a symbol. */
TL_MUST_USE tl_status tl_graph_both(tl_eval *ev, tl_oper op, tl_value a,
                                    tl_value b, tl_value *out);

/* The opposite of a symbol that is a bool. */
TL_MUST_USE tl_status tl_graph_not(tl_eval *ev, tl_value a, tl_value *out);

/* May it be evaluated where the program may not reach it? */
bool tl_graph_is_harmless(const tl_ast *e);

/* domain.h: fold_loop, loop (graph_loop.c). */
bool tl_graph_fold_loop(tl_eval *ev, tl_value iterable);
TL_MUST_USE tl_status tl_graph_loop(tl_eval *ev, const tl_ast *node,
                                    tl_value iterable, tl_flow *flow);

/* A condition as a host bool of the graph. */
TL_MUST_USE tl_status tl_flow_condition(tl_eval *ev, tl_value cond,
                                        tl_gval *out);

#endif
