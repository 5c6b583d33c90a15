/* pass_impl.h - the functions that rows of pass.def name.  Each sets
 * *changes to what it did. */
#ifndef TL_COMPILER_PASS_IMPL_H
#define TL_COMPILER_PASS_IMPL_H

#include "compiler/pass.h"
#include "compiler/rewrite.h"

#define PASS(name, doc) tl_pass_fn tl_pass_##name;
#include "compiler/pass.def"

/* Views of views, and views that change nothing (pass_view.c): the node is an
 * operation of class VIEW; dense[v]: is the value known to be row-major? */
TL_MUST_USE tl_status tl_pass_view(tl_rewrite *rw, uint32_t node,
                                   const uint8_t *dense, tl_diag *diag);

#endif
