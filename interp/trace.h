/* trace.h - evaluating a function in the graph domain.
 *
 * A trace walks a function once, with its arguments *lifted*: tensors are
 * inputs of a graph, everything else is what it is.  What the function looks
 * at from outside is lifted when it is first read: arguments, captured
 * values, globals.  A *root* remembers where a value came from and what it
 * was like; later calls match the roots and collect the inputs from them, so
 * a program never sees a stale value (LANGUAGE.md 8). */
#ifndef TL_INTERP_TRACE_H
#define TL_INTERP_TRACE_H

#include "compiler/build.h"
#include "compiler/program.h"
#include "interp/domain.h"
#include "interp/eval_impl.h"
#include "interp/sym.h"
#include "interp/tree.h"

/* One step of what a lifted value is like, in the order of the walk. */
typedef struct tl_shape_of {
    uint8_t tag;   /* tl_tag; SYM: a number that may be any, of tag `dtype`;
                      INT with n = 1: a size that may be any of at least 2 */
    uint8_t dtype; /* of tensors */
    uint16_t rank;
    uint32_t n;    /* length of containers; of tensors: first input's number */
    uint64_t bits; /* of scalars; address of code; serial of modules */
    tl_value keep; /* what is compared by content: text, keys */
    tl_tree_shape *tree; /* of trees; counted */
} tl_shape_of;

typedef enum tl_root_kind {
    TL_ROOT_ARG,    /* argument `index` of the call, keywords last */
    TL_ROOT_SELF,   /* the module of a method */
    TL_ROOT_CLOSURE,
    TL_ROOT_GLOBAL  /* slot `index` of `ns` */
} tl_root_kind;

typedef struct tl_root {
    tl_root_kind kind;
    uint32_t index;
    tl_namespace *ns;
    size_t first, len; /* its steps */
    tl_value lifted;   /* during the trace */
} tl_root;

/* Where an input of the graph comes from. */
typedef enum tl_input_kind {
    TL_IN_LEAF, /* leaf `index` of the roots, in their order */
    TL_IN_CELL, /* cell `index`, leaf `leaf` of what it holds */
    TL_IN_PIN,  /* tensor `index` that cannot change */
    TL_IN_SEED,
    TL_IN_DRAWS,
    TL_IN_UPSTREAM /* gradient of output `index` (compile_grad.c) */
} tl_input_kind;

typedef struct tl_input {
    tl_input_kind kind;
    uint32_t index, leaf;
    uint64_t layout; /* how the tensor lies: see tl_layout_class */
} tl_input;

/* How the elements of a tensor lie, as far as results depend on it: 0
 * row-major; 1 in no order that matters, the program gets a row-major copy;
 * else row-major under a permutation of the axes (four bits an axis), the
 * program gets the permuted view of a row-major tensor. */
uint64_t tl_layout_class(const tl_tensor *t);

/* Bits beside it in the step of a tensor: it is lowered; it is what a
 * parameter holds; the cell decides that, not the tensor. */
#define TL_LIFT_LOWERED (UINT64_C(1) << 63)
#define TL_LIFT_WEIGHT (UINT64_C(1) << 62)
#define TL_LIFT_OF_CELL (UINT64_C(1) << 61)

static inline uint64_t tl_lift_flags(const tl_tensor *t, bool of_cell)
{
    return (tl_tensor_lowered(t) ? TL_LIFT_LOWERED : 0) |
           (of_cell                               ? TL_LIFT_OF_CELL
            : (t->flags & TL_TENSOR_WEIGHT) != 0 ? TL_LIFT_WEIGHT
                                                  : 0);
}

/* The tensor that a program gets for `t` of class `layout`; a new
 * reference. */
TL_MUST_USE tl_status tl_layout_base(tl_rt *rt, tl_tensor *t, uint64_t layout,
                                     tl_tensor **out);

/* A cell that the function reads or writes. */
typedef struct tl_tcell {
    tl_cell *cell;   /* counted during the trace; then alive as long as the
                        roots match */
    tl_value value;  /* as the trace sees it: NODEs; EMPTY: not read yet */
    tl_value before; /* what was stored when it was first read, lifted */
    size_t first, len; /* steps of what it held */
    bool read, written;
} tl_tcell;

/* The mode in which a module was when the function was called. */
typedef struct tl_tmode {
    tl_module *module; /* alive as long as the roots match */
    bool training;     /* by a grad block around the call */
    int8_t forced;
} tl_tmode;

typedef TL_GARRAY(tl_shape_of) tl_steps;

/* What a call passes in for one leaf: a tensor, borrowed, or a number. */
typedef struct tl_leaf_value {
    tl_tensor *tensor;
    tl_gscalar scalar;
} tl_leaf_value;

/* Steps of an earlier trace for the same value: what has changed since
 * becomes a symbol. */
typedef struct tl_prior {
    const tl_steps *steps; /* NULL: none */
    size_t at, end;
} tl_prior;

/* What a branch or a turn of a loop may change (graph_state.h). */
typedef struct tl_gstate {
    tl_value *slots, *cells;
    bool *written; /* by cell */
    size_t nslots, ncells;
    uint64_t draws, first_draw; /* of the evaluator; of the builder */
    tl_gval base;               /* value of the builder's counter */
} tl_gstate;

/* One way in which a piece of code may end. */
typedef struct tl_gway {
    bool is;
    tl_gval taken;   /* host bool: it has ended so; 0: if it has ended */
    tl_value value;  /* of a return, or of an expression */
    tl_gstate state; /* at that moment */
} tl_gway;

#define TL_GWAYS 4 /* NEXT, BREAK, CONTINUE, RETURN of tl_flow */

/* How a piece of code ends: one of its ways is taken.  None: it raises. */
typedef struct tl_gends {
    tl_gway way[TL_GWAYS];
} tl_gends;

void tl_gends_fini(tl_gends *e);

/* A condition of the run under which code has left: what follows stands in a
 * region that is open until the ways come together (graph_ways.h). */
typedef struct tl_gexit {
    const tl_frame *frame;
    tl_gval cond;    /* host bool; `left` is where it is true, or `region` if
                        there is no `left` */
    uint32_t left;   /* closed region that leaves; 0: its ways are values of
                        the region around */
    uint32_t region; /* that is open */
    uint32_t around;
    tl_gends ends;   /* of what has left */
    tl_gstate before; /* when the region was opened */
} tl_gexit;

void tl_gexit_fini(tl_gexit *e);

/* A list that a loop region has made longer (graph_grow.h). */
typedef struct tl_tgrown {
    tl_value start; /* the list before it */
    tl_value stack; /* NODE: what the turns have appended */
    tl_dim length;  /* how many turns there are */
} tl_tgrown;

typedef struct tl_trace {
    tl_gbuild b;
    tl_steps steps;
    uint32_t nleaves; /* of roots */
    tl_gval draws_in; /* the counter of draws at the call */
    TL_GARRAY(tl_root) roots;
    TL_GARRAY(tl_input) inputs;
    TL_GARRAY(tl_tcell) cells;
    TL_GARRAY(tl_value) pins; /* TENSOR, counted */
    TL_GARRAY(tl_tmode) modes;
    TL_GARRAY(tl_value) effects; /* by key: what a print shows, as a TUPLE
                                    (values, sep, end, full) of which numbers
                                    of operands + 1 are nodes; NONE: an
                                    assert */
    tl_map by_slot;   /* &ns->slots[i] -> root number + 1 */
    tl_map by_cell;   /* tl_cell * -> number + 1 */
    tl_map by_tensor; /* tl_tensor * -> value number, of pins */
    TL_GARRAY(tl_value) kept; /* keys of by_tensor, counted: no other tensor
                                 takes their address */
    const tl_args *args; /* of the traced call */
    const tl_funcdef *fn; /* that is traced */
    uint64_t serial; /* modules and cells with a larger one are its own */
    bool is_bound; /* its arguments are */
    size_t bound;  /* guards that this has needed */
    bool made_up; /* sizes may be: see compile_load.c */
    const struct tl_entry *earlier; /* programs of the function */
    tl_prior prior;
    bool symbols; /* numbers that are lifted now are symbols at once */
    bool in_grad;   /* a grad block is open around the call */
    tl_gblock *block; /* open around the whole trace: its inputs are leaves; or
                         NULL */
    TL_GARRAY(tl_gval) leaves; /* by input: its leaf, or 0 */
    TL_GARRAY(tl_gexit) exits; /* of running frames, the innermost last */
    tl_map read_ifs; /* `if`s on symbols that are read: their arms do not
                        come together */
    TL_GARRAY(tl_tgrown) grown;
    bool too_deep; /* so many are open that the newest was refused */
    bool raised;  /* the failure on its way up is a raise in a region */
    bool gave_up; /* the run itself will say why: no E0602 */
} tl_trace;

static inline tl_trace *tl_trace_of(tl_eval *ev)
{
    return ev->domain_state;
}

/* ---- lifting (lift.c) --------------------------------------------------- */

/* *out becomes `v` with inputs in place of tensors; its steps are appended to
 * the trace's.  `cell` >= 0: leaves belong to that cell, else to the roots.
 * E0602 for what cannot be passed. */
TL_MUST_USE tl_status tl_lift(tl_eval *ev, tl_value v, int64_t cell,
                              tl_value *out);

void tl_steps_fini(tl_steps *steps);

/* Does `v` match the steps from *at on?  Its leaves are stored from leaves[*n]
 * on.  Nothing is reported. */
bool tl_lift_matches(const tl_steps *steps, size_t *at, tl_value v,
                     tl_leaf_value *leaves, size_t *n);

/* Append what is different in `v`, which does not match the steps from
 * `first` on: "f32[3], was f32[2]".  `leaves` is scratch. */
void tl_lift_mismatch(const tl_steps *steps, size_t first, tl_value v,
                      tl_leaf_value *leaves, tl_buf *out);

/* The steps that an earlier program of the function has for a root or a
 * cell. */
tl_prior tl_prior_root(const struct tl_entry *e, tl_root_kind kind,
                       uint32_t index, const tl_namespace *ns);
tl_prior tl_prior_cell(const struct tl_entry *e, const tl_cell *cell);

/* `v`, made by the trace, with result(arg, node) in place of its nodes and
 * symbols.  E0602
 * for an UNKNOWN: what the trace could not express. */
TL_MUST_USE tl_status tl_lift_back(
    tl_eval *ev, tl_value v,
    tl_status (*result)(void *arg, tl_value node, tl_value *out), void *arg,
    tl_value *out);

/* The same for what is shown: texts that are not known yet become known, or
 * stay pieces. */
TL_MUST_USE tl_status tl_lift_back_shown(
    tl_eval *ev, tl_value v,
    tl_status (*result)(void *arg, tl_value node, tl_value *out), void *arg,
    tl_value *out);

/* The leaf of the input that has just been made is `*v` from now on, if the
 * whole trace is differentiated. */
TL_MUST_USE tl_status tl_trace_leaf(tl_eval *ev, tl_gval *v);

/* ---- the trace ---------------------------------------------------------- */

/* What a root holds, lifted. */
TL_MUST_USE tl_status tl_trace_root(tl_eval *ev, tl_root_kind kind,
                                    uint32_t index, tl_value v,
                                    tl_value *out);

/* A tensor value as a value of the graph: itself, or a pin. */
TL_MUST_USE tl_status tl_trace_value(tl_eval *ev, tl_value v, tl_gval *out);

/* A value of the graph as a NODE. */
TL_MUST_USE tl_status tl_trace_node(tl_eval *ev, tl_gval v, tl_value *out);

/* The draws made since the builder's counter was set move it: from here on it
 * is a value of the region that is open. */
TL_MUST_USE tl_status tl_trace_counter(tl_eval *ev);

/* print(...) with the values of its parameters (graph_effect.c). */
TL_MUST_USE tl_status tl_trace_print(tl_eval *ev, const tl_value *args);

/* assert `cond`; *done is false where its truth is known, or cannot be
 * asked. */
TL_MUST_USE tl_status tl_trace_assert(tl_eval *ev, tl_value cond, bool *done);

/* An assertion on a host bool of the graph. */
TL_MUST_USE tl_status tl_trace_holds(tl_eval *ev, tl_gval condition);

/* The arguments of `fn` are bound in the running frame: read what
 * `@compile(static=[...])` names, if it is the function that is traced. */
TL_MUST_USE tl_status tl_trace_bound(tl_eval *ev, const tl_funcdef *fn);

/* Is it a size of made-up arguments (compile_load.c)? */
bool tl_is_made_up_size(int64_t size);

/* Refuse to compile: E0602 with this reason. */
tl_status tl_trace_refuse(tl_eval *ev, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

#endif
