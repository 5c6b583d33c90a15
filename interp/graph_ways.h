/* graph_ways.h - the ways in which code ends, where the run decides, in the
 * graph domain.
 *
 * Code that a condition may leave - a return, break or continue in an arm -
 * opens a region for what follows: it runs only if the code has not left.  The
 * region is closed where the ways come together: at the end of the arm, the
 * turn, the loop or the function in which they stand.  There one state is made
 * of each way that is still open, and a flag that says whether it is taken. */
#ifndef TL_INTERP_GRAPH_WAYS_H
#define TL_INTERP_GRAPH_WAYS_H

#include "interp/graph_state.h"

/* Code that began in the state `before`, with exits[from] the next one, has
 * given `st` and `flow`; *value (may be NULL) is that of an expression, which
 * is taken.  Its exits are closed, and *out tells how it ends.  A raise counts
 * as an end where `may_raise`, or where there is an exit.  After a failure its
 * exits are dropped. */
TL_MUST_USE tl_status tl_ways_close(tl_eval *ev, tl_status st, tl_flow flow,
                                    tl_value *value, const tl_gstate *before,
                                    size_t from, bool may_raise,
                                    tl_gends *out);

/* An arm, as ways are joined. */
typedef struct tl_garm {
    uint32_t region; /* closed */
    bool outside;    /* its ways are values of the region around */
    tl_gends ends;
} tl_garm;

/* *out is how an IF ends whose arms are a, where `cond` is true, and b; both
 * began in the state `before`.  Where one raises it is asserted that the other
 * one is taken.  The IF is added to the region that is open. */
TL_MUST_USE tl_status tl_ways_join(tl_eval *ev, tl_gval cond,
                                   const tl_gstate *before, tl_garm *a,
                                   tl_garm *b, tl_gends *out);

/* Way `from`, if it is there, goes on as way `to`. */
TL_MUST_USE tl_status tl_ways_merge(tl_eval *ev, tl_gends *e, tl_flow from,
                                    tl_flow to);

/* Walk on in one of the ways: *flow and the running state become those of it,
 * *value (may be NULL) its value.  If there are others an exit is opened for
 * them.  Takes *e. */
TL_MUST_USE tl_status tl_ways_follow(tl_eval *ev, tl_gends *e, tl_flow *flow,
                                     tl_value *value);

/* Has any of the exits from exits[from] on this way? */
bool tl_ways_have(tl_eval *ev, size_t from, tl_flow flow);

/* Is NEXT the only way, for certain? */
bool tl_ways_is_next(const tl_gends *e);

/* Push an exit, taken, whose region is open: what follows stands in it. */
TL_MUST_USE tl_status tl_ways_leave(tl_eval *ev, tl_gexit *exit);

/* Exits from exits[from] on are closed; what stands in their regions never
 * runs. */
void tl_ways_drop(tl_eval *ev, size_t from);

/* What stands in the closed region never runs.  On failure the trace is given
 * up. */
void tl_ways_kill(tl_eval *ev, uint32_t region);

/* A host bool that is known. */
TL_MUST_USE tl_status tl_ways_known(tl_eval *ev, bool is, tl_gval *out);

/* At the end of a function whose walk gave `st`: *r becomes what it or an exit
 * has returned. */
TL_MUST_USE tl_status tl_graph_exits(tl_eval *ev, tl_status st, tl_value *r);

#endif
