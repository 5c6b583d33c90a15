/* rules.h - the functions that rows of ops.def name, declared from the rows.
 *
 * For op.c, which puts them into the table, and for the files that define
 * them. */
#ifndef TL_OP_RULES_H
#define TL_OP_RULES_H

#include "runtime/op/op.h"

#define RED(name, grad, ...) tl_grad_fn grad;
#define VIEW(name, infer, grad, ...)                                         \
    tl_infer_fn infer;                                                       \
    tl_grad_fn grad;
#define KERN(name, nin, nout, infer, grad, ...)                              \
    tl_infer_fn infer;                                                       \
    tl_grad_fn grad;
#include "runtime/op/ops.def"

#endif
