/* call.h - frames, arguments, signatures.
 *
 * A call pushes a frame whose slots are EMPTY, binds the arguments to the
 * slots of the parameters, checks the annotations (which binds the dimension
 * names of the signature), runs the body and checks the result. */
#ifndef TL_INTERP_CALL_H
#define TL_INTERP_CALL_H

#include "interp/module.h"

/* Make `frame` the running one: fn->nslots EMPTY slots, ns's globals.  `self`
 * is borrowed for the life of the frame and put into slot 0 of methods and
 * constructors.  E0215 at the 1,000th call, E0607. */
TL_MUST_USE tl_status tl_frame_push(tl_eval *ev, tl_frame *frame,
                                    const tl_funcdef *fn, tl_namespace *ns,
                                    tl_fn *closure, tl_module *self,
                                    tl_span call);
void tl_frame_pop(tl_eval *ev, tl_frame *frame);

/* Bind `args` to the parameters of the running frame's function: values are
 * taken from `args`, defaults evaluated in the frame, annotations checked and
 * dimension names bound, `where` conditions checked.  E0203-E0205, E0210,
 * E0304, E0308, E0312. */
TL_MUST_USE tl_status tl_bind_args(tl_eval *ev, tl_args *args);

/* Does *v fit the annotation `type` in the running frame?  Converts what the
 * annotation allows (int to float, a number to a scalar tensor), binds
 * dimension names that are unset.  `what` names the value in messages: "`x`",
 * "the result of `f`".  NULL type: everything fits. */
TL_MUST_USE tl_status tl_check_type(tl_eval *ev, const tl_ast *type,
                                    tl_value *v, const char *what,
                                    tl_span span);

/* The same in two steps, so that names are bound across all parameters before
 * sizes that are computed from them are compared. */
enum tl_check_step { TL_CHECK_BIND = 1, TL_CHECK_SIZES = 2 };
TL_MUST_USE tl_status tl_check_type_step(tl_eval *ev, const tl_ast *type,
                                         tl_value *v, const char *what,
                                         tl_span span, unsigned steps);

/* Sizes of a tensor annotation as ints (-1: `_`, `...` is not allowed), for
 * the declared type of a cell: *dtype, *rank, size[].  *known is false when
 * the annotation has no brackets or a `...`. */
TL_MUST_USE tl_status tl_declared_sizes(tl_eval *ev, const tl_ast *type,
                                        bool *known, tl_dtype *dtype,
                                        int *rank, int64_t *size);

/* Call a function's code. `closure` may be NULL (methods). */
TL_MUST_USE tl_status tl_call_code(tl_eval *ev, const tl_funcdef *fn,
                                   tl_namespace *ns, tl_fn *closure,
                                   tl_module *self, tl_args *args,
                                   tl_value *out);

/* Make the function value of an FN or LAMBDA node in the running frame. */
TL_MUST_USE tl_status tl_make_fn(tl_eval *ev, const tl_funcdef *code,
                                 tl_value *out);

/* The `self` that a FIELD reference means in the running frame, borrowed. */
tl_module *tl_ref_self(tl_eval *ev, const tl_ref_info *ref);

/* Report E0215 if the C stack is nearly used up. */
TL_MUST_USE tl_status tl_check_stack(tl_eval *ev, tl_span span);

#endif
