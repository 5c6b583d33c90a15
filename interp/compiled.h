/* compiled.h - functions marked `@compile`: their programs, and calls.
 *
 * A function has an *entry* for each way in which it was called: what its
 * roots were like, and the program that was traced for them.  A call looks
 * for an entry that matches; if there is none the function is traced, in the
 * graph domain, and the program made and kept. */
#ifndef TL_INTERP_COMPILED_H
#define TL_INTERP_COMPILED_H

#include "compiler/program.h"
#include "interp/module.h"

typedef struct tl_compiler tl_compiler; /* ev->compiler; NULL until used */

void tl_compiler_free(tl_compiler *c); /* NULL is allowed */

/* Forget every program: the code that they belong to goes away. */
void tl_compiler_clear(tl_compiler *c);

/* Run a call of `fn` compiled.  *done is false, and nothing has happened, if
 * it is to be interpreted: an open tape sees it, or what runs will report an
 * error.  E0602 where it cannot be compiled. */
TL_MUST_USE tl_status tl_compiled_call(tl_eval *ev, const tl_funcdef *fn,
                                       tl_namespace *ns, tl_fn *closure,
                                       tl_module *self, tl_args *args,
                                       tl_value *out, bool *done);

/* What happened so far, for tests and --explain. */
typedef struct tl_compile_stats {
    size_t traces;   /* functions traced, successfully or not */
    size_t programs; /* kept */
    size_t runs;     /* calls of programs */
} tl_compile_stats;

tl_compile_stats tl_compiler_stats(const tl_eval *ev);

#endif
