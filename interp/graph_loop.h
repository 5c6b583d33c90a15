/* graph_loop.h - loops of the graph domain: private to graph_loop.c,
 * graph_carry.c, graph_body.c and graph_turns.c. */
#ifndef TL_INTERP_GRAPH_LOOP_H
#define TL_INTERP_GRAPH_LOOP_H

#include "interp/graph_flow.h"

typedef TL_GARRAY(tl_gval) tl_gvals;

typedef struct tl_gloop {
    tl_eval *ev;
    const tl_ast *node;
    tl_value range; /* of a `for`: RANGE, or a symbol of one */
    tl_gstate before;
    bool *slot, *cell; /* which are carried */
    bool *grown; /* slots: lists that the turn makes longer (graph_grow.h) */
    size_t ngrown;
    size_t ncells;     /* room in `cell` */
    bool draws;
    bool breaks; /* a turn may end the loop: whether it goes on is carried */
    bool returns; /* a turn may return: whether it has, and what, is carried */
    tl_value returned; /* something of the type of what */
    bool endless; /* the condition of a `while` holds for certain */
    /* Of the walk that runs: */
    uint32_t around, test, body;
    bool has_test, has_body;
    tl_gvals init, params, results, stacked;
    bool may_break, may_return; /* the turn */
    bool breaks_out; /* ... by a break */
    tl_gval goes_on; /* what the turn makes of the carried flags */
    tl_gval has_returned;
    tl_value value;       /* returned by the turn */
    tl_gstate start, end; /* of a turn */
} tl_gloop;

/* ---- what is carried (graph_carry.c) ------------------------------------ */

/* Before the walks; tl_gloop_walk_fini after each, tl_gloop_fini at last. */
TL_MUST_USE tl_status tl_gloop_init(tl_gloop *l);
void tl_gloop_walk_fini(tl_gloop *l);
void tl_gloop_fini(tl_gloop *l);

/* The carried values of a state, in a fixed order. */
TL_MUST_USE tl_status tl_gloop_collect(tl_gloop *l, const tl_gstate *s,
                                       tl_gvals *out);

/* The flags of a loop that may end early, and what it returns: their values
 * before it, where nothing has ended it. */
TL_MUST_USE tl_status tl_gloop_first_flags(tl_gloop *l, tl_gvals *out);

/* What a turn makes of them. */
TL_MUST_USE tl_status tl_gloop_next_flags(tl_gloop *l, tl_gvals *out);

/* The running state: carried values become x[0 ...], in their order. */
TL_MUST_USE tl_status tl_gloop_place(tl_gloop *l, const tl_gval *x);

/* Could one stand for the other from turn to turn? */
bool tl_gloop_same_kind(tl_eval *ev, tl_value a, tl_value b);

/* ---- one walk of the body (graph_body.c) --------------------------------- */

/* A region with parameters like the initial values, after an index. */
TL_MUST_USE tl_status tl_gloop_open_region(tl_gloop *l, bool index,
                                           uint32_t *region, tl_gval *first);

/* Is there another turn, in a region of its own. */
TL_MUST_USE tl_status tl_gloop_walk_test(tl_gloop *l);

/* The body, once, in a region of its own. */
TL_MUST_USE tl_status tl_gloop_walk_body(tl_gloop *l);

/* What the walk has changed is carried in the next one; *more: there was
 * something new. */
void tl_gloop_find_changes(tl_gloop *l, bool *more);

/* Carried values keep their types. */
TL_MUST_USE tl_status tl_gloop_check_types(tl_gloop *l);

/* ---- the loop itself ----------------------------------------------------- */

/* The loop as a region of the graph; *flow is what follows it. */
TL_MUST_USE tl_status tl_gloop_region(tl_eval *ev, const tl_ast *node,
                                      tl_value range, tl_flow *flow);

/* A `for`, turn by turn over `it`; *flow is what follows it. */
TL_MUST_USE tl_status tl_gloop_turns(tl_eval *ev, const tl_ast_for *n,
                                     tl_value it, tl_flow *flow);

/* A `while`: turn by turn as long as the condition is known. */
TL_MUST_USE tl_status tl_gloop_while(tl_eval *ev, const tl_ast_while *n,
                                     tl_flow *flow);

#endif
