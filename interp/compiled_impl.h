/* compiled_impl.h - what the files of compiled functions share. */
#ifndef TL_INTERP_COMPILED_IMPL_H
#define TL_INTERP_COMPILED_IMPL_H

#include "interp/compiled.h"
#include "interp/trace.h"

#define TL_MAX_ENTRIES 16 /* of a function; the oldest makes room */
#define TL_MANY_VALUES 8  /* of a number at one place: more draw W0603 */

/* A cell as its program knows it. */
typedef struct tl_ecell {
    tl_cell *cell; /* alive as long as the roots match */
    size_t first, len; /* its steps */
    bool read, written;
    tl_value last;    /* what it held when it was last matched, uncounted: an
                         address to compare with, */
    uint64_t version; /* of the cell at that time */
    tl_value pattern; /* what is stored: nodes are numbers of outputs + 1 */
    tl_value next;    /* while a run takes effect: what will be stored */
    size_t leaf;      /* its first one in `leaves` */
    size_t nleaves;
    bool held;        /* compiled_hold.c */
    size_t plain;     /* its tensors that are inputs as they are */
} tl_ecell;

/* A tensor of a held cell. */
typedef struct tl_hold {
    const uint64_t *version; /* of its cell: every store makes another */
    uint64_t seen;
    tl_tensor *tensor;
    tl_storage *storage;
} tl_hold;

/* What is held from one call to the next (compiled_hold.c). */
typedef struct tl_holds {
    bool on;       /* it may be tried */
    bool never;    /* not worth it, or its plan cannot */
    bool now;      /* all is as it was: of the call that has matched last */
    uint64_t uses; /* ev->cell_uses when it was found to be */
    tl_hold *items; /* those that are written first */
    size_t len, nwritten;
    uint32_t *trees; /* held cells with trees */
    size_t ntrees;
    uint8_t *inputs; /* by input: is it held? */
    uint32_t *loose_inputs, *loose_cells; /* all others */
    size_t nloose_inputs, nloose_cells;
} tl_holds;

/* What the modules of an entry are like (compiled_share.c). */
typedef struct tl_sharing {
    bool ok; /* it is known */
    char *text;
    size_t len;
    uint64_t *serials; /* by number of a module */
    size_t nmodules;
    uint32_t *cells; /* by cell of the entry: its number */
    uint32_t *modes; /* by mode: the number of its module */
} tl_sharing;

/* The gradient of an entry: a program that computes the function anew and
 * backwards.  Its first inputs are those of the entry. */
typedef struct tl_entry_grad {
    int refs; /* entries that share it */
    tl_program *program;
    size_t ninputs, noutputs;
    uint32_t *upstream; /* by output of the entry: its gradient's input number
                           here, or 0 */
    uint32_t *of_input; /* by input of the entry: output number here + 1, or
                           0 */
} tl_entry_grad;

/* One way in which a function was called, and its program. */
typedef struct tl_entry {
    struct tl_entry *next;
    int refs; /* the list, and tapes that may still run its gradient */
    const tl_funcdef *fn;
    size_t npos, nkw;
    const tl_sym **names; /* of keyword arguments */
    bool no_grad, f32_as_f64;
    bool in_grad; /* a grad block is open around the call */
    bool taped;   /* a tape sees it: there is a gradient */
    uint8_t autocast; /* tl_autocast_key of the call */
    tl_entry_grad *grad; /* of calls that a tape sees; else NULL */
    tl_steps steps;
    TL_GARRAY(tl_root) roots;
    TL_GARRAY(tl_input) inputs;
    TL_GARRAY(tl_tmode) modes;
    tl_value *pins;
    size_t npins;
    tl_ecell *cells;
    size_t ncells;
    tl_program *program;
    tl_value result; /* pattern */
    uint64_t draws;  /* that a run takes, where it is the same in each */
    size_t draws_out; /* else: output that is the counter afterwards, + 1 */
    tl_value *effects; /* by key: patterns, as in tl_trace */
    size_t neffects;
    /* Scratch of a call: */
    tl_buf printed; /* written when the run has succeeded */
    tl_leaf_value *leaves; /* of roots, then of cells */
    size_t nleaves, nroot_leaves;
    tl_tensor **tensors; /* by input; borrowed or in `owned` */
    tl_tensor **owned;   /* by input; NULL where borrowed */
    tl_gscalar *scalars;
    uint8_t *donate;
    tl_tensor **results; /* by output; owned */
    tl_gscalar *result_scalars;
    size_t nresults;
    tl_holds holds;
    tl_sharing sharing;
    bool running;        /* a call inside the call is interpreted */
    char *cause;         /* why it was made; owned */
    size_t number;       /* of the function's programs, from 1 */
    bool told;           /* its plan stands in the log */
} tl_entry;

/* A host scalar of a program as a value. */
static inline tl_value tl_scalar_value(tl_gscalar s, tl_tag tag)
{
    return tag == TL_V_INT     ? tl_int_value(s.i)
           : tag == TL_V_FLOAT ? tl_float_value(s.f)
                               : tl_bool_value(s.b);
}

/* What the effects of a run get (graph_effect.c). */
typedef struct tl_effect_arg {
    tl_eval *ev;
    tl_entry *entry;
} tl_effect_arg;

tl_status tl_entry_effect(void *arg, uint32_t key, uint32_t n,
                          tl_tensor *const *tensors,
                          const tl_gscalar *scalars);

/* A function that was called compiled. */
typedef struct tl_compiled {
    const tl_funcdef *fn;
    struct tl_compiled *next; /* in the order of first calls */
    tl_entry *entries;        /* the newest first */
    bool refused;             /* it runs interpreted */
    char *why;                /* why the last trace has failed; owned */
    tl_span why_at;
    size_t guards; /* numbers that the last trace has read by then */
    bool made_up;  /* its arguments are: sizes that are not numbers of the
                      program are symbols (compile_load.c) */
    size_t traces, programs, runs, interpreted, verified;
    tl_buf log; /* --explain: its programs, as they were made */
} tl_compiled;

struct tl_compiler {
    tl_map by_fn; /* tl_funcdef * -> tl_compiled */
    tl_compiled *first, *last;
    tl_compile_stats stats;
};

/* The name of a function, for messages. */
static inline const char *tl_code_title_of(const tl_funcdef *fn)
{
    return fn->name != NULL ? fn->name->text : "fn";
}

/* The newest diagnostic, a refusal, becomes one of this function. */
void tl_compiled_refuse(tl_eval *ev, const tl_funcdef *fn);

/* Note why a function cannot be compiled; the newest diagnostic says it. */
void tl_compiled_note(tl_eval *ev, tl_compiled *f);

void tl_entry_unref(tl_entry *e); /* NULL is allowed */

/* Does exactly one tape record what runs now? */
bool tl_is_taped(const tl_eval *ev);

/* Trace a call; `end` makes of the trace what is wanted while the graph domain
 * still runs.  With a block, the trace's inputs are its leaves.  *done is
 * false when the call is to be interpreted. */
typedef tl_status tl_trace_end(tl_eval *ev, tl_trace *tr,
                               const tl_ccall *call, tl_value result,
                               tl_entry *e, void *arg);
TL_MUST_USE tl_status tl_trace_call(tl_eval *ev, tl_compiled *f,
                                    const tl_ccall *call, tl_gblock *block,
                                    tl_entry *e, tl_trace_end *end, void *arg,
                                    bool *done);

/* Result, cells and counter become outputs of the graph, and patterns of the
 * entry. */
TL_MUST_USE tl_status tl_trace_outputs(tl_eval *ev, tl_trace *tr,
                                       tl_value result, tl_entry *e);

/* The gradient of the entry, from a second trace of the same call.  *out is
 * NULL when there is none. */
TL_MUST_USE tl_status tl_entry_trace_grad(tl_eval *ev, tl_compiled *f,
                                          const tl_ccall *call,
                                          const tl_entry *e,
                                          tl_entry_grad **out);
tl_entry_grad *tl_entry_grad_ref(tl_entry_grad *g);
void tl_entry_grad_free(tl_entry_grad *g); /* NULL is allowed */

/* Arrays that calls use; the numbers of leaves and results are known. */
TL_MUST_USE tl_status tl_entry_make_scratch(tl_eval *ev, tl_entry *e);

/* ---- modules of the same structure (compiled_share.c) ------------------- */

/* Note what the modules of a new entry are like, if it can be told. */
void tl_entry_note_structure(tl_eval *ev, tl_entry *e, const tl_ccall *call);
void tl_entry_share_fini(tl_sharing *s);

/* An entry for this call made of one for modules of the same structure, its
 * inputs collected; NULL: there is none. */
tl_entry *tl_entry_share(tl_eval *ev, tl_compiled *f, const tl_ccall *call);

/* Record a run of the entry, whose inputs and outputs are still there, on the
 * tape. */
TL_MUST_USE tl_status tl_entry_record(tl_eval *ev, tl_entry *e);

/* What a tape keeps of a run.  For --verify one can be made of an entry whose
 * inputs are collected; its inputs are those that have gradients, its outputs
 * those that gradients flow into, by number. */
typedef struct tl_kept_run tl_kept_run;

TL_MUST_USE tl_status tl_kept_new(tl_eval *ev, tl_entry *e,
                                  tl_kept_run **out);
void tl_kept_free(tl_kept_run *run); /* NULL is allowed */
int tl_kept_inputs(const tl_kept_run *run);
int tl_kept_outputs(const tl_kept_run *run);

/* The tensor of an input as the tape knows it; *out may be NULL. */
TL_MUST_USE tl_status tl_kept_input(tl_eval *ev, const tl_kept_run *run,
                                    int i, tl_tensor **out);

/* The name of the cell that input `i` is; NULL: it is none. */
const char *tl_kept_cell(const tl_kept_run *run, int i);

/* Which output is the program's output `output`? -1: none. */
int tl_kept_output(const tl_kept_run *run, uint32_t output);

/* Output `i` has the type of `t`; before its gradient is asked for. */
TL_MUST_USE tl_status tl_kept_type(tl_kept_run *run, int i,
                                   const tl_tensor *t, tl_diag *diag);

/* tl_custom_grad_fn of a run: its gradient's program. */
TL_MUST_USE tl_status tl_kept_gradient(tl_kept_run *run, tl_tensor *const *g,
                                       int nout, tl_tensor **dx, int nin,
                                       tl_diag *diag);

/* Trace the call.  *out is NULL when the call is to be interpreted: f->why
 * says why, or is NULL where the function raises. */
TL_MUST_USE tl_status tl_entry_trace(tl_eval *ev, tl_compiled *f,
                                     const tl_ccall *call, tl_entry **out);

/* ---- telling (compile_explain.c) ---------------------------------------- */

/* Append why a function is not compiled, and where that is. */
void tl_explain_refusal(const tl_eval *ev, const tl_compiled *f, tl_buf *out);

/* Put an entry, its inputs collected, into the function's log.  After a
 * failure they are released. */
TL_MUST_USE tl_status tl_entry_tell(tl_eval *ev, tl_compiled *f, tl_entry *e);

/* ---- matching (compiled_match.c) ---------------------------------------- */

/* Does the call fit, all but the guards?  Its values go to e->leaves. */
bool tl_entry_matches(tl_eval *ev, tl_entry *e, const tl_ccall *call);

/* The value that a root has in this call, borrowed. */
tl_value tl_root_value(const tl_root *r, const tl_ccall *call);

/* Is it called in the same way, in the same state of the evaluator? */
bool tl_entry_same_call(const tl_eval *ev, const tl_entry *e,
                        const tl_ccall *call);

/* How much of the entry fits the call; the one nearest to it says best why
 * another program is needed. */
size_t tl_entry_nearness(tl_eval *ev, tl_entry *e, const tl_ccall *call);

/* Append by what the call differs from the entry. */
void tl_entry_cause(tl_eval *ev, tl_entry *e, const tl_ccall *call,
                    tl_buf *out);

/* The number that a guard wants: what it compares a number with, else what it
 * expects.  EMPTY of a guard that a pass has settled. */
tl_value tl_guard_value(const tl_graph *g, const tl_gguard *guard);

/* ---- holding (compiled_hold.c) ------------------------------------------ */

/* Is everything that is held as it was?  The roots match. */
bool tl_entry_holds(const tl_eval *ev, tl_entry *e);

/* After a run, its results still there, that has taken effect: what can be
 * held from now on? */
void tl_entry_hold(tl_entry *e, tl_run *run);
void tl_holds_fini(tl_holds *h);

/* A tree whose tensors the program has updated in place is what it was. */
bool tl_tree_is_unchanged(const tl_entry *e, tl_value pattern, tl_value now);

/* ---- runs (compiled_run.c) ---------------------------------------------- */

/* Collect the inputs of an entry that matches. */
TL_MUST_USE tl_status tl_entry_gather(tl_eval *ev, tl_entry *e);

/* The same; if its guards do not hold nothing is collected. */
bool tl_entry_fits(tl_eval *ev, tl_entry *e);

/* What the program gets; inputs have been collected. */
tl_run tl_entry_inputs(tl_entry *e, tl_effect_arg *arg);

/* Run it with these inputs, which are released.  *ran: it has succeeded, and
 * changed what it changes. */
TL_MUST_USE tl_status tl_entry_run(tl_eval *ev, tl_entry *e, tl_value *out,
                                   bool *ran);

/* Release inputs and outputs. */
void tl_entry_release(tl_entry *e);

#endif
