/* domain.h - what a tensor is while the evaluator walks.
 *
 *   concrete  data: operations run at once through apply
 *   shape     dtype and shape only: nothing is computed, wrong shapes are
 *             found before the first kernel of a call
 *   graph     a node of a graph: operations are recorded (the compiler)
 *
 * The evaluator asks the domain wherever the three differ; everything else is
 * shared, so a program cannot mean one thing here and another there.  A
 * domain is a table of functions and its state in ev->domain_state. */
#ifndef TL_INTERP_DOMAIN_H
#define TL_INTERP_DOMAIN_H

#include "interp/eval.h"

/* Effects that a domain may refuse, postpone or skip. */
typedef enum tl_host_effect {
    TL_HOST_PRINT, /* print, warnings of the program */
    TL_HOST_IO,  /* files, time, environment */
    TL_HOST_RAISE  /* raise, a failed assert */
} tl_host_effect;

struct tl_domain {
    const char *name;
    bool has_data; /* TENSOR values may be read and written in place */

    /* Run or record `op`; eats `in` (TENSOR or NODE values), gives op->nout
     * values. */
    tl_status (*apply)(tl_eval *ev, tl_op op, tl_value *in, int nin,
                       const tl_attrs *at, tl_value *out);

    /* A host value out of a tensor of one element; may be UNKNOWN. */
    tl_status (*read)(tl_eval *ev, tl_value t, tl_value *out);

    /* An `if` whose condition is not known: evaluate both arms and join what
     * they assign.  `else_arm` may be NULL. */
    tl_status (*branch)(tl_eval *ev, tl_value cond, const tl_ast *node,
                        const tl_ast *then_arm, const tl_ast *else_arm,
                        tl_flow *flow);

    /* A loop whose number of turns is not known, or too long to unroll:
     * evaluate the body to a fixed point.  For a `for`, `item` is the value
     * of the loop variable in every turn. */
    tl_status (*loop)(tl_eval *ev, const tl_ast *node, tl_value item,
                      tl_flow *flow);

    /* `try`: in a domain without data either part may run. */
    tl_status (*try_catch)(tl_eval *ev, const tl_ast *node, tl_flow *flow);

    /* May the effect be performed now?  *perform false: skip it, the result
     * is UNKNOWN; a failure refuses the program. */
    tl_status (*effect)(tl_eval *ev, tl_host_effect what, bool *perform);

    /* Current value of a cell as this domain sees it (a new reference), and
     * a write to it (takes `v`). */
    tl_status (*cell_get)(tl_eval *ev, tl_cell *cell, tl_value *out);
    tl_status (*cell_set)(tl_eval *ev, tl_cell *cell, tl_value v);

    /* Enter and leave a grad block; leave gives one gradient for each target
     * (grad.h). */
    tl_status (*grad_enter)(tl_eval *ev, tl_gradblk *block);
    tl_status (*grad_leave)(tl_eval *ev, tl_gradblk *block, tl_value loss,
                            tl_value *grads);
};

extern const tl_domain tl_domain_concrete;
extern const tl_domain tl_domain_shape;

/* Run the shape pass for a call of `fn` with the values in `slots` if its
 * signature is new (LANGUAGE.md 3.5); reports what is found.  Called by the
 * concrete domain before each call of a program function. */
TL_MUST_USE tl_status tl_shape_check_call(tl_eval *ev, const tl_fn *fn,
                                          tl_module *self, tl_args *args);

/* The shape pass over a unit's top-level statements, before they run. */
TL_MUST_USE tl_status tl_shape_check_unit(tl_eval *ev, tl_namespace *ns,
                                          const tl_ast *block);

#endif
