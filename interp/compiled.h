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

/* A call of code of the program. */
typedef struct tl_ccall {
    const tl_funcdef *fn;
    tl_namespace *ns;
    tl_fn *closure;  /* or NULL */
    tl_module *self; /* or NULL */
    tl_args *args;
} tl_ccall;

/* Do calls of this function run compiled? */
static inline bool tl_is_compiled(const tl_eval *ev, const tl_funcdef *fn,
                                  const tl_namespace *ns)
{
    return ev->compile == TL_COMPILE_MARKED
               ? fn->marks.compile
               : ev->compile == TL_COMPILE_EVERY && !ns->library &&
                     fn->body != NULL &&
                     (fn->kind == TL_FUNC_FN || fn->kind == TL_FUNC_METHOD ||
                      fn->kind == TL_FUNC_LAMBDA);
}

typedef enum tl_ran {
    TL_RAN_NOT,     /* nothing has happened: the interpreter has its turn */
    TL_RAN,         /* done */
    TL_RAN_DOUBTFUL /* as NOT, because of an error that the interpreter has
                       to meet too: else tl_compiled_doubt */
} tl_ran;

/* Run a call compiled.  E0602 where it cannot be compiled. */
TL_MUST_USE tl_status tl_compiled_call(tl_eval *ev, const tl_ccall *call,
                                       tl_value *out, tl_ran *ran);

/* While the interpreter runs a doubtful call, calls of the same function
 * inside of it are not tried: a recursion without end would be traced from
 * each of its depths. */
void tl_compiled_pause(tl_eval *ev, const tl_ccall *call, bool on);

/* The interpreter has run a doubtful call without an error: W0601, and the
 * function is interpreted from now on. */
void tl_compiled_doubt(tl_eval *ev, const tl_ccall *call);

/* Refuse at load what is sure to be refused: functions of the unit that are
 * marked and whose types are written (compile_load.c).  E0602. */
TL_MUST_USE tl_status tl_compile_check_unit(tl_eval *ev, tl_namespace *ns,
                                            const tl_unit *unit);

/* What happened so far, for tests and --explain. */
typedef struct tl_compile_stats {
    size_t traces;   /* functions traced, successfully or not */
    size_t programs; /* kept */
    size_t runs;     /* calls of programs */
} tl_compile_stats;

tl_compile_stats tl_compiler_stats(const tl_eval *ev);

/* ---- telling (compile_explain.c) ---------------------------------------- */

/* Append what was compiled, function by function: programs with their causes,
 * kernels, memory. */
void tl_compiler_explain(const tl_eval *ev, tl_buf *out);

/* Append the program that a call would run, made if need be; nothing runs. */
TL_MUST_USE tl_status tl_compiled_explain(tl_eval *ev, const tl_ccall *call,
                                          tl_buf *out);

#endif
