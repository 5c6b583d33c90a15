/* backward.h - gradients from a tape.
 *
 * Gradients add up in reverse program order, the operands of one operation
 * from last to first, starting from the first term itself (LANGUAGE.md 9l).
 * The pass runs through apply, so that tapes around this one record it; where
 * nothing outside watches, MAP rows use the device's fused gradient. */
#ifndef TL_AUTOGRAD_BACKWARD_H
#define TL_AUTOGRAD_BACKWARD_H

#include "runtime/apply.h"

/* Tapes that are open at a time.  Each operation is recorded on all of them,
 * so what recurs through gradients has to end long before its calls do. */
#define TL_MAX_TAPES 64

/* Open a tape and make it the innermost.  Inside `no_grad` it records, and
 * the tapes around it still don't.  The caller frees it by tl_tape_free.
 * E0215, E0607. */
TL_MUST_USE tl_status tl_grad_open(tl_rt *rt, tl_tape **out);

/* Close the innermost tape `tape`: nothing is recorded on it any more.
 * no_grad is again what it was when the tape was opened. */
void tl_grad_close(tl_rt *rt, tl_tape *tape);

/* A leaf of the open tape `tape` that has the value of `t`: a new header
 * whose uses on this tape are differentiated; on the other open tapes the
 * leaf is the identity of `t`. */
TL_MUST_USE tl_status tl_grad_leaf(tl_rt *rt, tl_tape *tape, tl_tensor *t,
                                   tl_tensor **out);

/* d loss / d leaf for each leaf, as new references; a leaf that the loss does
 * not reach gives exact zeros and reached[i] = false.  `seed_grad` is the
 * upstream gradient of `loss` and has its type (E0312), or NULL: 1, and the
 * loss must be a f32[] or f64[] scalar (E0501).  The tape must be closed; its
 * entries are consumed as the pass goes, so that saved values are released
 * early.  A gradient may be a view.  Borrows loss, seed_grad and leaves. */
TL_MUST_USE tl_status tl_grad_backward(tl_rt *rt, tl_tape *tape,
                                       tl_tensor *loss, tl_tensor *seed_grad,
                                       tl_tensor *const *leaves, int n,
                                       tl_tensor **grads, bool *reached);

#endif
