/* eval.h - the evaluator: one walk over the AST for every domain.
 *
 * A tl_eval is the context of one thread: runtime, domain, frames, open grad
 * blocks.  What a tensor *is* belongs to the domain (domain.h); control flow,
 * names, calls, modules and containers are here and are the same for all.
 *
 * Conventions: tl_eval_expr gives a new reference; functions that eat their
 * operands end in _take.  Every failure has been reported in ev->diag, with
 * the place added by the innermost node that knows it. */
#ifndef TL_INTERP_EVAL_H
#define TL_INTERP_EVAL_H

#include "interp/value.h"
#include "interp/lang.h"
#include "runtime/apply.h"
#include "runtime/base/map.h"

#define TL_MAX_CALL_DEPTH 1000  /* calls of the program (E0215) */

typedef struct tl_eval tl_eval;
typedef struct tl_domain tl_domain;
typedef struct tl_frame tl_frame;
typedef struct tl_gradblk tl_gradblk;

/* The values of a file's top level; outlives single REPL entries. */
struct tl_namespace {
    tl_obj obj;
    tl_str *name;      /* "gpt2", for messages */
    tl_str *path;      /* the file, or "<stdin>", "stdlib/nn.tl" */
    tl_globals *names; /* name -> slot, from the resolver */
    tl_value *slots;
    size_t nslots;
    tl_unit **units; /* parsed texts: code of its functions */
    size_t nunits;
    bool loading;   /* its top level is running: an import now is a cycle */
    bool library;   /* a file of the library */
    tl_namespace *next; /* all of a context, which owns them */
};

/* One activation: of a function, method, constructor, test or top level. */
struct tl_frame {
    tl_frame *caller;
    const tl_funcdef *fn; /* what runs: its slots and names; NULL: top level */
    tl_value *slots;     /* fn->nslots values, EMPTY where not assigned */
    tl_fn *closure;      /* captured values, or NULL */
    tl_module *self;     /* the module in whose method we are, or NULL */
    int real;            /* dtype of `real` in this signature, or -1 */
    tl_namespace *ns;    /* whose globals */
    tl_span call;        /* where the caller called */
    tl_value partial;    /* shape domain: joined results of arms that have
                            returned; else EMPTY */
};

/* How a statement ended. */
typedef enum tl_flow {
    TL_FLOW_NEXT,
    TL_FLOW_BREAK,
    TL_FLOW_CONTINUE,
    TL_FLOW_RETURN, /* the value is in ev->ret */
    TL_FLOW_DEAD    /* no path reaches the next statement (shape domain) */
} tl_flow;

/* Options of a run that the language can see. */
typedef struct tl_eval_options {
    const char *program; /* argv[0] of messages */
    const char **main_args; /* "--epochs=3" ... for @main */
    int nmain_args;
    bool check_only; /* tlang check: nothing is executed */
    bool run_tests;  /* tlang test */
    const char *test_filter;
} tl_eval_options;

/* Which functions run compiled. */
typedef enum tl_compile_what {
    TL_COMPILE_MARKED, /* @compile */
    TL_COMPILE_OFF,
    TL_COMPILE_EVERY /* all of the program itself, for tests: as if marked
                        @compile(fallback=true), without warnings */
} tl_compile_what;

struct tl_eval {
    tl_rt *rt;
    tl_diag *diag; /* == rt->diag */
    tl_lang *lang; /* interned names and sources */
    const tl_domain *domain;
    void *domain_state;
    tl_frame *frame;
    tl_gradblk *grads; /* innermost open grad block */
    bool in_grad;      /* a trace: a block is open around the traced call */
    tl_value ret;      /* of a return on its way out */
    int call_depth;
    int constructing; /* depth of constructor calls */
    const tl_funcdef *rule; /* innermost function with a `backward` of its own
                             * that runs, or NULL */
    int no_check;     /* > 0: the shape pass is off (inside itself) */
    uint64_t init_ordinal; /* of the outermost constructor running */
    /* While an initialiser runs, draws come from the cell's own counter. */
    struct tl_init_key {
        bool on;
        uint64_t seed, key;
        uint32_t sub;
    } init_key;
    tl_compile_what compile; /* which functions run compiled */
    bool suppress_errors; /* what cannot be compiled runs interpreted */
    bool explain;         /* keep the plans of programs as text */
    bool dry_run;         /* programs are made, not run */
    bool verify;          /* both engines run, and are compared */
    struct tl_compiler *compiler; /* owned; NULL until used */
    bool f32_as_f64; /* gradcheck: f32 in signatures and cells reads as f64 */
    char *stack_limit; /* lowest address that evaluation may reach */
    uint64_t next_serial; /* the last one given, to modules and cells */
    uint64_t cell_uses; /* tl_cells_used() so far (module.h) */
    /* stack of slots, in chunks so that frames don't move */
    struct tl_slot_chunk *slots;
    /* imported files by path, and built-in tables */
    tl_map imports; /* tl_sym * -> tl_namespace * */
    struct tl_builtin_table *builtins;
    const struct tl_args *call_args; /* of the built-in that runs: what was
                                        written (save names its files so) */
    struct tl_sig_cache *checked; /* signatures that passed the shape pass */
    tl_namespace *main_ns;
    tl_namespace *all_ns; /* owned */
    const tl_eval_options *options;
    /* output of print; set by the REPL, tests and the notebook */
    tl_status (*write)(void *arg, const char *s, size_t len);
    void *write_arg;
    /* breakpoint(): opens a prompt in the frame; NULL: ignored with a note */
    tl_status (*on_breakpoint)(void *arg, tl_eval *ev);
    void *breakpoint_arg;
};

/* Set up a context on `rt`; `sources` holds the texts of diagnostics. */
TL_MUST_USE tl_status tl_eval_init(tl_eval *ev, tl_rt *rt, tl_lang *lang,
                                   const tl_eval_options *options);
void tl_eval_fini(tl_eval *ev);

/* Between programs, with nothing running: free the namespaces made since
 * `keep` was the newest (ev->all_ns; NULL: all of them) with their texts, and
 * forget what they imported and which signatures have been checked. */
void tl_eval_reset(tl_eval *ev, tl_namespace *keep);

/* ---- running units ----------------------------------------------------- */

/* Parse, resolve, check and run a text as top level of `ns`.  With
 * `echo`, the value of a last expression statement goes to *out (else NONE).
 * *incomplete (may be NULL) is set when the text needs more lines. */
TL_MUST_USE tl_status tl_eval_text(tl_eval *ev, tl_namespace *ns,
                                   const char *name, const char *text,
                                   size_t len, tl_value *out,
                                   bool *incomplete);

/* The shape pass over an expression alone: what its value would be, as
 * tl_shape_expr says.  E0720 for a text that is no expression. */
TL_MUST_USE tl_status tl_eval_shape_text(tl_eval *ev, tl_namespace *ns,
                                         const char *name, const char *text,
                                         size_t len, tl_value *out);

/* Run one `test "title":` block. */
TL_MUST_USE tl_status tl_eval_test(tl_eval *ev, tl_namespace *ns,
                                   const tl_ast *test);

/* Call the function marked @main with the options' main_args ("--n=3").
 * E0720 for a flag that it does not have or a value that does not fit. */
TL_MUST_USE tl_status tl_eval_main(tl_eval *ev, tl_namespace *ns,
                                   const tl_funcdef *main);

/* E0720 if the program's main_args do not fit its @main, or it has none. */
TL_MUST_USE tl_status tl_eval_check_flags(tl_eval *ev, const tl_unit *unit);

/* Import a file by the names between its dots; the namespace is borrowed.
 * NULL: the shape pass goes a way that a run may not take (a `try`), and the
 * file has not run yet. */
TL_MUST_USE tl_status tl_eval_import_path(tl_eval *ev, const char *dotted,
                                          tl_span span, tl_namespace **out);

/* The same for a file of the library, which must be there: whatever files of
 * its name lie beside the importer. */
TL_MUST_USE tl_status tl_eval_import_library(tl_eval *ev, const char *dotted,
                                             tl_namespace **out);

TL_MUST_USE tl_status tl_namespace_new(tl_namespace **out, tl_eval *ev,
                                       const char *name, const char *path);

/* Give it the name, and that a reference to the value; a NULL name and an
 * EMPTY value are let pass.  E0607. */
TL_MUST_USE tl_status tl_namespace_bind(tl_eval *ev, tl_namespace *ns,
                                        const tl_sym *name, tl_value v);

/* ---- expressions and statements ---------------------------------------- */

TL_MUST_USE tl_status tl_eval_expr(tl_eval *ev, const tl_ast *e,
                                   tl_value *out);
TL_MUST_USE tl_status tl_eval_block(tl_eval *ev, const tl_ast *block,
                                    tl_flow *flow);

/* Between statements and turns of loops: E0608 if the user interrupts or the
 * steps are used up; `span` is what runs. */
TL_MUST_USE tl_status tl_eval_tick(tl_eval *ev, tl_span span);

/* Assign to a target: name, tuple of targets, path, index.  Takes `v`. */
TL_MUST_USE tl_status tl_eval_assign_take(tl_eval *ev, const tl_ast *target,
                                          tl_value v);

/* Is the value true?  Host values as in Python; a tensor of one element is
 * read.  E0208, E0209.  In domains without data *known may be false. */
TL_MUST_USE tl_status tl_eval_truth(tl_eval *ev, tl_value v, bool *known,
                                    bool *out);

/* a.name */
TL_MUST_USE tl_status tl_eval_attr(tl_eval *ev, tl_value v, const tl_sym *name,
                                   tl_value *out);

/* Binary and unary operators on any values; eat their operands. */
TL_MUST_USE tl_status tl_eval_binary_take(tl_eval *ev, tl_oper op, tl_value a,
                                          tl_value b, tl_value *out);
TL_MUST_USE tl_status tl_eval_unary_take(tl_eval *ev, tl_oper op, tl_value a,
                                         tl_value *out);

/* v[i0, i1, ...] and its functional write (a new value). */
TL_MUST_USE tl_status tl_eval_index_take(tl_eval *ev, tl_value v,
                                         tl_value *subs, size_t n,
                                         tl_value *out);
TL_MUST_USE tl_status tl_eval_index_put_take(tl_eval *ev, tl_value v,
                                             tl_value *subs, size_t n,
                                             tl_value x, tl_value *out);

/* ---- calls ------------------------------------------------------------- */

/* Evaluated arguments of a call; the callee takes what it wants by setting
 * the value to EMPTY, the caller releases the rest. */
typedef struct tl_args {
    tl_value *pos;
    size_t npos;
    const tl_sym **names; /* of the keyword arguments */
    tl_value *kw;
    size_t nkw;
    tl_span span;           /* the call */
    const tl_ast *const *exprs;    /* what was written for pos, or NULL */
    const tl_ast *const *kw_exprs; /* and for kw */
} tl_args;

/* Call anything that can be called. */
TL_MUST_USE tl_status tl_eval_call(tl_eval *ev, tl_value callee,
                                   tl_args *args, tl_value *out);

/* Call with positional values only, from C (map(f, list), gradient(f)). */
TL_MUST_USE tl_status tl_eval_call_values(tl_eval *ev, tl_value callee,
                                          const tl_value *args, size_t n,
                                          tl_value *out);

/* ---- tensors, whatever they are in this domain ------------------------- */

/* Run an operation; eats `in`, whose values are EMPTY after a failure, so that
 * `in` may be `out` and belong to whoever cleans up.  Host numbers among the
 * inputs of MAP rows are weak (LANGUAGE.md 2). */
TL_MUST_USE tl_status tl_eval_op(tl_eval *ev, tl_op op, tl_value *in, int nin,
                                 const tl_attrs *at, tl_value *out);

/* Type of a tensor value as the program sees it. */
TL_MUST_USE tl_status tl_eval_type(tl_eval *ev, tl_value t, tl_ttype *out);

/* A value as a tensor: a tensor itself, a number as a scalar of its default
 * dtype (bool, i64, f32), a nested list by tensor()'s rule. Eats `v`. */
TL_MUST_USE tl_status tl_eval_as_tensor_take(tl_eval *ev, tl_value v,
                                             tl_value *out);

/* Read one element as a host value (int(t), float(t), bool(t)); UNKNOWN in
 * domains without data. */
TL_MUST_USE tl_status tl_eval_read(tl_eval *ev, tl_value t, tl_value *out);

/* Iterate: the i-th item of `it` (list, tuple, dict keys, str, range, tensor
 * along axis 0, module with size and at, or next, zip of these).  *more is
 * false at the end.  `state` is released by tl_iter_fini; after a failed
 * start it holds nothing. */
typedef struct tl_iter {
    int64_t i, n;
    tl_value source;
    int kind;
    struct tl_iter *sub; /* zip: n iterators */
} tl_iter;
TL_MUST_USE tl_status tl_iter_init_take(tl_eval *ev, tl_value it,
                                        tl_iter *state);
TL_MUST_USE tl_status tl_iter_next(tl_eval *ev, tl_iter *state, bool *more,
                                   tl_value *out);
void tl_iter_fini(tl_iter *state);
/* Does each turn ask `next` of a module: an UNKNOWN item may be the end. */
bool tl_iter_is_stream(const tl_iter *state);

/* Write to the program's standard output. */
TL_MUST_USE tl_status tl_eval_write(tl_eval *ev, const char *s, size_t len);

#endif
