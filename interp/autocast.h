/* autocast.h - operations where values may be lowered (runtime/amp).
 *
 * A lowered value is f32 to the program and stored as bf16 or f16.  Operations
 * on data and on a graph go through here, and nowhere else is anything
 * lowered, so both round at the same places.  Reverse passes, kernels and
 * programs see what is stored. */
#ifndef TL_INTERP_AUTOCAST_H
#define TL_INTERP_AUTOCAST_H

#include "interp/eval.h"

/* May values be lowered here? */
bool tl_may_be_lowered(const tl_eval *ev);

/* Is it a tensor that autocast has lowered? */
bool tl_is_lowered(tl_eval *ev, tl_value v);

/* The dtype in which a tensor is stored. */
tl_dtype tl_stored_dtype(tl_eval *ev, tl_value v);

/* Say whether the tensor `v`, whose header is not shared, is lowered. */
void tl_set_lowered(tl_eval *ev, tl_value v, bool lowered);

/* A lowered tensor becomes f32, a recorded cast; other values stay.  After a
 * failure *v is EMPTY. */
TL_MUST_USE tl_status tl_eval_widen(tl_eval *ev, tl_value *v);

/* The f32 tensor *v becomes `dtype`, lowered.  As above. */
TL_MUST_USE tl_status tl_eval_lower(tl_eval *ev, tl_value *v, tl_dtype dtype);

/* domain->apply by the policy.  Bit i of `numbers`: in[i] was a host number,
 * which decides nothing. */
TL_MUST_USE tl_status tl_autocast_apply(tl_eval *ev, tl_op op, tl_value *in,
                                        int nin, uint64_t numbers,
                                        const tl_attrs *at, tl_value *out);

/* What the contexts that are open make of operations, as a number: part of
 * the key of a compiled function. */
uint8_t tl_autocast_key(const tl_eval *ev);

/* autocast(bf16), autocast(f16), autocast(none): entered and left. */
void tl_autocast_enter(tl_eval *ev, bool on, tl_dtype low, tl_value *state);
void tl_autocast_leave(tl_eval *ev, tl_value state);

#endif
