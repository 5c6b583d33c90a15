/* shape.h - the shape pass: a program is walked without data before it runs.
 *
 * Before a unit's top level runs, and before each call with a signature that
 * was not seen, the same code is evaluated in the shape domain: tensors have
 * dtype and shape only, nothing is computed, no cell changes, no effect
 * happens (LANGUAGE.md 3.5).  What is found is certain: errors in code that
 * may not run (an arm under an unknown condition, a `try`, a later turn of a
 * loop) are left to the run.  A signature is the code, dtypes and shapes of
 * tensors, bools, strings, and the types of the rest. */
#ifndef TL_INTERP_SHAPE_H
#define TL_INTERP_SHAPE_H

#include "interp/eval.h"

TL_MUST_USE tl_status tl_shape_cache_init(tl_eval *ev);
void tl_shape_cache_clear(tl_eval *ev);
void tl_shape_cache_fini(tl_eval *ev);

/* Check a call of `fn` if its signature is new.  Arguments are borrowed. */
TL_MUST_USE tl_status tl_shape_check_call(tl_eval *ev, const tl_funcdef *fn,
                                          tl_namespace *ns, tl_fn *closure,
                                          tl_module *self,
                                          const tl_args *args);

/* Check the top-level statements of a unit, in the running frame, before
 * they run; with @main, the call of it as well.  What is found has status
 * TL_ERR_REJECTED. */
TL_MUST_USE tl_status tl_shape_check_unit(tl_eval *ev, tl_namespace *ns,
                                          const tl_unit *unit);

/* What an expression would give in the running frame: a NODE for a tensor,
 * UNKNOWN for what only a run can tell.  What is found is reported as above. */
TL_MUST_USE tl_status tl_shape_expr(tl_eval *ev, const tl_ast *expr,
                                  tl_value *out);

#endif
