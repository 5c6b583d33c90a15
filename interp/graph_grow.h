/* graph_grow.h - lists that a loop region makes longer by one tensor a turn.
 *
 * `outs = outs + [h]` in a loop that the run counts: what the turns append is
 * stacked by the loop's node.  Behind the loop the list is UNKNOWN, with a
 * number in `i` by which `stack`, `cat` and `len` know it; that nothing else
 * looks at it, in the loop or elsewhere, the text of the function says. */
#ifndef TL_INTERP_GRAPH_GROW_H
#define TL_INTERP_GRAPH_GROW_H

#include "interp/builtin.h"
#include "interp/trace.h"

/* May the list in this slot of the running frame grow in the loop?  Then the
 * loop only appends to it, and the function only gives it to `stack`, `cat` and
 * `len`. */
bool tl_grow_allowed(const tl_eval *ev, const tl_ast *loop, uint32_t slot);

/* Is `end` the list `start` with one tensor more, of the same type in each
 * turn, that can be stacked with what is in it? */
bool tl_grow_by_one(tl_eval *ev, tl_value start, tl_value end, tl_gval *item);

/* The list `start` with the `length` items of `stack`, which are given for
 * certain if it is empty: else E0602. */
TL_MUST_USE tl_status tl_grow_made(tl_eval *ev, tl_value start, tl_gval stack,
                                   tl_dim length, tl_value *out);

/* A call of a built-in whose first value may be such a list: *done, if it was
 * one that the function knows. */
TL_MUST_USE tl_status tl_grow_call(tl_eval *ev, const tl_builtin *b,
                                   const tl_value *vals, tl_value *out,
                                   bool *done);

#endif
