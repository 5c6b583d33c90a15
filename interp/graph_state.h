/* graph_state.h - what a branch or a turn of a loop may change, in the graph
 * domain: slots of the running frame, cells, the counter of draws. */
#ifndef TL_INTERP_GRAPH_STATE_H
#define TL_INTERP_GRAPH_STATE_H

#include "interp/trace.h"

TL_MUST_USE tl_status tl_gstate_take(tl_eval *ev, tl_gstate *out);
void tl_gstate_fini(tl_gstate *s);

/* Put back what was taken; cells that have been met since are as they were
 * when the program started. */
void tl_gstate_restore(tl_eval *ev, const tl_gstate *s);

/* Cell `i` in a state that may not know it yet: as it was at the start. */
tl_value tl_gstate_cell(tl_eval *ev, const tl_gstate *s, size_t i);
static inline bool tl_gstate_wrote(const tl_gstate *s, size_t i)
{
    return i < s->ncells && s->written[i];
}

/* Something of the type of `v`, from outside of any open region: zeros. */
TL_MUST_USE tl_status tl_gstate_placeholder(tl_eval *ev, tl_value v,
                                            tl_value *out);

/* A state as `before` where `s` is, else of placeholders for what `s` has;
 * without `slots` those are as they are. */
TL_MUST_USE tl_status tl_gstate_fake(tl_eval *ev, const tl_gstate *s,
                                     const tl_gstate *before, bool slots,
                                     tl_gstate *out);

/* A copy, of which each value is counted; `slots` may be of another state. */
TL_MUST_USE tl_status tl_gstate_copy(tl_eval *ev, const tl_gstate *s,
                                     const tl_gstate *slots, tl_gstate *out);

/* Ints of the running state that are symbols become values of the region that
 * is open, so that they can leave it; the counter of draws too. */
TL_MUST_USE tl_status tl_gstate_settle(tl_eval *ev, const tl_gstate *before);

/* The same for one value. */
TL_MUST_USE tl_status tl_gstate_settle_value(tl_eval *ev, tl_value *v);

/* Are two values one and the same to a trace? */
bool tl_gvalue_same(tl_value a, tl_value b);

/* Pairs of values of the graph that a join chooses between. */
typedef struct tl_gpairs {
    TL_GARRAY(tl_gval) a, b;
} tl_gpairs;

void tl_gpairs_fini(tl_gpairs *p);

/* Collect the pairs by which `a` and `b` differ.  E0602, which names `what`,
 * if they are of different types or structure. */
TL_MUST_USE tl_status tl_gjoin_collect(tl_eval *ev, tl_gpairs *p, tl_value a,
                                       tl_value b, const char *what);

/* The same walk: *out is `a` with results[*at ...] in place of the pairs. */
TL_MUST_USE tl_status tl_gjoin_build(tl_eval *ev, tl_value a, tl_value b,
                                     const tl_gval *results, size_t *at,
                                     tl_value *out);

/* Name of slot `i` of the running frame, for messages. */
const char *tl_slot_name(const tl_eval *ev, size_t i);

#endif
