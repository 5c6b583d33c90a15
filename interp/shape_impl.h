/* shape_impl.h - what the files of the shape domain share. */
#ifndef TL_INTERP_SHAPE_IMPL_H
#define TL_INTERP_SHAPE_IMPL_H

#include "interp/domain.h"
#include "interp/eval_impl.h"
#include "interp/shape.h"
#include "runtime/base/map.h"

#define TL_SHAPE_MAX_OPS 100000 /* operations of one pass; then it gives up */

/* A cell that was written during the pass. */
typedef struct tl_overlay_item {
    tl_cell *cell; /* counted */
    tl_value value;
} tl_overlay_item;

typedef struct tl_overlay {
    tl_overlay_item *items;
    size_t len, cap;
} tl_overlay;

/* ev->domain_state while a pass runs. */
typedef struct tl_shape_state {
    tl_dims *dims;
    tl_infer infer;
    tl_overlay cells;
    bool silent; /* the failure on its way up is no error of the program as
                    written: a raise, or the end of what can be known */
    size_t ops;  /* operations so far */
} tl_shape_state;

static inline tl_shape_state *tl_shape_state_of(tl_eval *ev)
{
    return ev->domain_state;
}

/* End the pass without a message; the status travels like a failure. */
TL_MUST_USE tl_status tl_shape_give_up(tl_eval *ev);

/* Everything that an arm or a turn of a loop may change: slots of the running
 * frame, globals at top level, cells written. */
typedef struct tl_snapshot {
    tl_value *slots, *globals;
    size_t nslots, nglobals;
    tl_overlay cells;
} tl_snapshot;

TL_MUST_USE tl_status tl_snapshot_take(tl_eval *ev, tl_snapshot *out);
void tl_snapshot_fini(tl_snapshot *s);
/* Put back what was taken. */
TL_MUST_USE tl_status tl_snapshot_restore(tl_eval *ev, const tl_snapshot *s);
/* The running state becomes what may be it or `s`; *changed (may be NULL)
 * tells whether it differed.  `widen`: what differs becomes UNKNOWN. */
TL_MUST_USE tl_status tl_snapshot_join(tl_eval *ev, const tl_snapshot *s,
                                       bool widen, bool *changed);

/* *v becomes what may be *v or `other` (borrowed). */
TL_MUST_USE tl_status tl_shape_join(tl_eval *ev, tl_value *v, tl_value other);

/* Run something that may not happen: its errors are dropped, and *dead says
 * that it failed.  Failures of tlang itself and of memory are passed on. */
typedef struct tl_maybe {
    bool muted, silent;
    size_t nerrors, nwarnings;
} tl_maybe;
void tl_maybe_begin(tl_eval *ev, tl_maybe *m);
TL_MUST_USE tl_status tl_maybe_end(tl_eval *ev, const tl_maybe *m,
                                   tl_status st, bool *dead);

/* Control flow on unknown conditions (shape_flow.c), see domain.h. */
TL_MUST_USE tl_status tl_shape_branch(tl_eval *ev, tl_value cond,
                                      const tl_ast_if *node, uint32_t arm,
                                      tl_flow *flow);
TL_MUST_USE tl_status tl_shape_choose(tl_eval *ev, tl_value cond,
                                      const tl_ast *then,
                                      const tl_ast *other, tl_value *out);
bool tl_shape_fold_loop(tl_eval *ev, tl_value iterable);
TL_MUST_USE tl_status tl_shape_loop(tl_eval *ev, const tl_ast *node,
                                    tl_value iterable, tl_flow *flow);
TL_MUST_USE tl_status tl_shape_try(tl_eval *ev, const tl_ast *node,
                                   tl_flow *flow);

#endif
