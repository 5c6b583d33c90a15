/* renew.h - where ways come together, values are new to differentiation.
 *
 * Behind an `if`, at the beginning of a turn and behind a loop, a variable that
 * the code has assigned holds one value for all ways that lead there: the
 * gradients of what reads it from there on add up by themselves, whichever way
 * was taken, and then reach the value that the way has given.  So the order of
 * the sums does not depend on the run, and a compiled program, which knows all
 * ways and not the one, has it too.  The same holds for the value of
 * `a if c else b`, and for the result of a function that returns inside of an
 * `if` or a loop. */
#ifndef TL_INTERP_RENEW_H
#define TL_INTERP_RENEW_H

#include "interp/eval_impl.h"

/* Does an open grad block record? */
bool tl_renews(const tl_eval *ev);

/* *v, if it is a tensor that an open grad block sees or a tuple of such,
 * becomes one of the same elements that is new to these blocks. */
TL_MUST_USE tl_status tl_renew_value(tl_eval *ev, tl_value *v);

/* The same for these slots of the running frame. */
TL_MUST_USE tl_status tl_renew_slots(tl_eval *ev, const tl_slots *set);

static inline tl_status tl_renew(tl_eval *ev, const tl_slots *set)
{
    return set->len > 0 && tl_renews(ev) ? tl_renew_slots(ev, set) : TL_OK;
}

#endif
