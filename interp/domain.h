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

    /* The context of sizes. */
    tl_infer *(*infer)(tl_eval *ev);

    /* Run or record `op`; eats `in` (TENSOR or NODE values), gives op->nout
     * values.  `out` may be `in`. */
    tl_status (*apply)(tl_eval *ev, tl_op op, tl_value *in, int nin,
                       const tl_attrs *at, tl_value *out);

    /* A host value out of a tensor of one element; may be UNKNOWN. */
    tl_status (*read)(tl_eval *ev, tl_value t, tl_value *out);

    /* An `if` whose arm number `arm` has the unknown condition `cond` (those
     * before it are false): evaluate that arm and the rest, and join what
     * they assign. */
    tl_status (*branch)(tl_eval *ev, tl_value cond, const tl_ast_if *node,
                        uint32_t arm, tl_flow *flow);

    /* `a if cond else b` with a condition that is not known. */
    tl_status (*choose)(tl_eval *ev, tl_value cond, const tl_ast *then,
                        const tl_ast *other, tl_value *out);

    /* *v becomes what may be *v or `other` (borrowed). */
    tl_status (*join)(tl_eval *ev, tl_value *v, tl_value other);

    /* Should a loop over this value be evaluated by `loop` (below) rather
     * than turn by turn?  UNKNOWN always is. */
    bool (*fold_loop)(tl_eval *ev, tl_value iterable);

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

    /* What slot `index` of a namespace holds; NULL: read it. */
    tl_status (*global)(tl_eval *ev, tl_namespace *ns, uint32_t index,
                        tl_value *out);

    /* The forced mode of this module has been looked at, or will be changed;
     * NULL: nobody wants to know. */
    void (*saw_mode)(tl_eval *ev, tl_module *module);

    /* Tapes; NULL in a domain that has types only.  A leaf of an open block;
     * gradients of `loss` with upstream `seed` (EMPTY: 1) when the tape has
     * been closed; a value that every tape takes for a constant. */
    tl_status (*tape_open)(tl_eval *ev, tl_gradblk *block);
    void (*tape_close)(tl_eval *ev, tl_gradblk *block);
    tl_status (*leaf)(tl_eval *ev, tl_gradblk *block, tl_value v,
                      tl_value *out);
    tl_status (*backward)(tl_eval *ev, tl_gradblk *block, tl_value loss,
                          tl_value seed, const tl_value *leaves, size_t n,
                          tl_value *grads, bool *reached);
    tl_status (*stop)(tl_eval *ev, tl_value v, tl_value *out);

    /* The value of a cell without the leaves of open blocks. */
    tl_status (*cell_plain)(tl_eval *ev, tl_cell *cell, tl_value *out);

    /* Enter and leave a grad block; leave gives one gradient for each leaf of
     * each target, in order, and the finite flag of a scaled block.  abandon
     * ends an entered block that failed or was left. */
    tl_status (*grad_enter)(tl_eval *ev, tl_gradblk *block);
    tl_status (*grad_leave)(tl_eval *ev, tl_gradblk *block, tl_value loss,
                            tl_value *grads, tl_value *finite);
    void (*grad_abandon)(tl_eval *ev, tl_gradblk *block);
};

extern const tl_domain tl_domain_concrete;
extern const tl_domain tl_domain_shape;
extern const tl_domain tl_domain_graph;

/* Is a function being traced? */
static inline bool tl_is_tracing(const tl_eval *ev)
{
    return ev->domain == &tl_domain_graph;
}

#endif
