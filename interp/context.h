/* context.h - what `with` enters: no_grad, mode(...), autocast(...), ...
 *
 * A context is a value; entering it changes the state of the evaluator until
 * the block ends, however it ends. */
#ifndef TL_INTERP_CONTEXT_H
#define TL_INTERP_CONTEXT_H

#include "interp/eval.h"

typedef enum tl_context_kind {
    TL_CONTEXT_MODE,       /* value: modules; eval: eval or train */
    TL_CONTEXT_AUTOCAST,   /* dtype; on: it lowers */
    TL_CONTEXT_DEVICE,     /* value: the name */
    TL_CONTEXT_CHECKPOINT, /* runs as it is: memory is not saved yet */
    TL_CONTEXT_PROFILE
} tl_context_kind;

struct tl_context {
    tl_obj obj;
    tl_context_kind kind;
    bool eval, on;
    tl_dtype dtype;
    tl_value value;
};

/* Rows of builtin_grad.def make contexts by this. Takes `value`. */
TL_MUST_USE tl_status tl_context_new_take(tl_eval *ev, tl_context_kind kind,
                                          tl_value value, tl_value *out);

#endif
