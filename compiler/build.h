/* build.h - making a graph, operation by operation.
 *
 * The builder does for values of a graph what tl_apply does for tensors: the
 * shape rule, casts, regions taken apart under two tapes; and it keeps what
 * tapes keep: which open grad blocks see a value.  So a graph is the list of
 * kernel calls that the interpreter would make.
 *
 * A value's sizes are tl_dims of the builder's context.  Attributes come as
 * tl_attrs; a float attribute that is a host scalar of the run is a NaN that
 * carries its number (tl_gbuild_attr): rules copy it without looking. */
#ifndef TL_COMPILER_BUILD_H
#define TL_COMPILER_BUILD_H

#include "compiler/graph.h"
#include "runtime/base/arena.h"
#include "runtime/base/map.h"

typedef struct tl_gbuild tl_gbuild;

/* Gradients of a custom entry (a `backward` clause): g[nout] (0: zero) ->
 * dx[nin] (0: zero). */
typedef tl_status tl_gcustom_fn(void *data, tl_gbuild *b, const tl_gval *g,
                                uint32_t nout, tl_gval *dx, uint32_t nin);

/* The data for a copy of the entry, in which map(ctx, v) stands for v. */
typedef tl_gval tl_gmap_fn(const void *ctx, tl_gval v);
typedef tl_status tl_gcustom_copy_fn(void *data, tl_gmap_fn *map,
                                     const void *ctx, void **out);

/* What a custom entry does. */
typedef struct tl_gcustom_ops {
    tl_gcustom_fn *gradient;
    tl_gcustom_copy_fn *copy;
    void (*free_data)(void *data);
} tl_gcustom_ops;

typedef struct tl_gcustom {
    uint32_t node; /* the ALIAS nodes node .. node + nout - 1 are its results */
    uint32_t nin, nout;
    const tl_gval *in; /* of the arena */
    const tl_gcustom_ops *ops;
    void *data;
} tl_gcustom;

/* What the builder knows of a value beyond its type in the graph. */
typedef struct tl_bvalue {
    const tl_ttype *type; /* of tensors; lives as long as the builder */
    uint64_t seen;        /* open blocks whose targets it depends on, as bits */
    bool late;            /* a host scalar that only the run knows: it comes
                             from a tensor or differs from turn to turn */
    bool leaf;            /* of a grad block: an alias that is no operation */
    bool lowered;         /* shown to the program as f32 (runtime/amp) */
    bool weight;          /* what a parameter holds, or a view of that */
} tl_bvalue;

struct tl_gbuild {
    tl_graph *g;
    tl_diag *diag;
    tl_dims *dims;
    tl_infer infer; /* with symbols; comparisons it cannot settle are guards */
    tl_emit emit;   /* for rules; nodes are TL_GNODE(value) */
    tl_arena arena;
    TL_GARRAY(tl_bvalue) values; /* by value number */
    TL_GARRAY(const tl_attrs *) attrs; /* by node: as they came; NULL: none,
                                          or nobody asks for them */
    TL_GARRAY(tl_dim) atoms;     /* by number of the graph's atom */
    TL_GARRAY(int64_t) hints;    /* their values in the traced call */
    TL_GARRAY(tl_dim) late;      /* atoms that only the run knows */
    TL_GARRAY(tl_gcustom) customs;
    tl_map sizes;   /* polynomial -> number of its size */
    tl_map numbers; /* polynomial that is an atom -> its number + 1 */
    const tl_ttype *recent[16];
    unsigned nrecent;
    tl_span span;   /* what the evaluator runs now */
    uint32_t owner; /* region that is open; 0: none */
    int sealed;     /* > 0: what is walked does not run in the traced call, so
                       nothing may be assumed of its values: a guard is
                       refused */
    int no_grad;
    uint64_t visible; /* blocks that record */
    uint64_t open;    /* blocks that are open */
    uint64_t innermost; /* of the visible ones; 0: none */
    bool taped;         /* a block around the graph, which is none of its own,
                           records too */
    tl_gval seed;     /* host ints: the seed, and the counter of draws: the */
    tl_gval draws;    /* draw `first_draw` of the trace has its value */
    uint64_t trace_seed, first_draw;
};

/* The stream of a draw whose seed and counter are values of the graph: its key
 * holds their numbers.  So a rule that draws again, in another place, draws
 * the same. */
#define TL_GBUILD_STREAM UINT32_MAX

#define TL_GNODE(v) ((tl_node)(uintptr_t)(v))
#define TL_GVAL(node) ((tl_gval)(uintptr_t)(node))

TL_MUST_USE tl_status tl_gbuild_init(tl_gbuild *b, tl_diag *diag);
void tl_gbuild_fini(tl_gbuild *b); /* frees the graph if it is still here */

/* ---- values ------------------------------------------------------------- */

/* The next input: a tensor of this type, or a host scalar. */
TL_MUST_USE tl_status tl_gbuild_input(tl_gbuild *b, const tl_ttype *type,
                                      tl_gval *out);
TL_MUST_USE tl_status tl_gbuild_host_input(tl_gbuild *b, tl_gclass cls,
                                           tl_gval *out);

/* A tensor whose row-major elements are known. */
TL_MUST_USE tl_status tl_gbuild_const(tl_gbuild *b, const tl_ttype *type,
                                      const void *bytes, size_t len,
                                      tl_gval *out);

/* Another value to differentiation, with the same elements. */
TL_MUST_USE tl_status tl_gbuild_alias(tl_gbuild *b, tl_gval v, tl_gval *out);

/* A host constant. */
TL_MUST_USE tl_status tl_gbuild_num(tl_gbuild *b, tl_gclass cls,
                                    tl_gscalar value, tl_gval *out);

/* A size as a host int. */
TL_MUST_USE tl_status tl_gbuild_size(tl_gbuild *b, tl_dim d, tl_gval *out);

/* Host arithmetic; the class of the result is `cls`. */
TL_MUST_USE tl_status tl_gbuild_host(tl_gbuild *b, tl_ghost op, tl_gclass cls,
                                     const tl_gval *in, int nin,
                                     tl_gval *out);

/* A host scalar as a tensor of rank 0. */
TL_MUST_USE tl_status tl_gbuild_scalar(tl_gbuild *b, tl_gval v,
                                       tl_dtype dtype, tl_gval *out);

/* The element of a tensor as a host scalar of this class. */
TL_MUST_USE tl_status tl_gbuild_item(tl_gbuild *b, tl_gval v, tl_gclass cls,
                                     tl_gval *out);

/* The atom of a size or host int, whose value in the traced call is `hint`;
 * `least` as in tl_dim_atom. */
TL_MUST_USE tl_status tl_gbuild_atom(tl_gbuild *b, tl_gatom atom,
                                     int64_t least, int64_t hint,
                                     tl_dim *out);

/* The value of a size in the traced call.  E0307, E0401. */
TL_MUST_USE tl_status tl_gbuild_hint(tl_gbuild *b, tl_dim d, int64_t *out);

/* The graph holds for calls in which `v`, made of inputs alone, has this
 * value. */
TL_MUST_USE tl_status tl_gbuild_guard(tl_gbuild *b, tl_gval v,
                                      tl_gscalar expected);

/* Does the size contain what only the run knows?  Then nothing may be decided
 * by it; what is assumed of it the run checks. */
/* What holds the gradient of v in the block with this bit: a leaf of another
 * block is, for this one, the value that it stands for, with one place in the
 * order of gradients. */
tl_gval tl_gbuild_behind_leaf(const tl_gbuild *b, tl_gval v, uint64_t bit);

bool tl_gbuild_is_late(const tl_gbuild *b, tl_dim d);

/* A size that a shape may have: sizes of 0 and 1 are read (and then plain
 * numbers), of others the graph knows that they are at least 2. */
TL_MUST_USE tl_status tl_gbuild_extent(tl_gbuild *b, tl_dim d, tl_dim *out);

/* The type of a tensor value. */
static inline const tl_ttype *tl_gbuild_type(const tl_gbuild *b, tl_gval v)
{
    return b->values.items[v].type;
}

/* A float attribute that is the host scalar `v`; the number of such a value,
 * or 0 for a plain float. */
double tl_gbuild_attr(tl_gval v);
tl_gval tl_gbuild_attr_value(double f);

/* A type as the graph has it. */
TL_MUST_USE tl_status tl_gbuild_value(tl_gbuild *b, const tl_ttype *type,
                                      tl_gvalue *out);

/* The size with this number in the graph. */
TL_MUST_USE tl_status tl_gbuild_dim(tl_gbuild *b, tl_dim d, uint32_t *out);

/* Say what new values, which no function here has made, are: parameters and
 * results of regions.  type NULL: a host scalar. */
TL_MUST_USE tl_status tl_gbuild_note(tl_gbuild *b, tl_gval v,
                                     const tl_ttype *type, uint64_t seen);

/* ---- operations --------------------------------------------------------- */

/* Add `op` as tl_apply runs it; out[] gets the row's results. */
TL_MUST_USE tl_status tl_gbuild_apply(tl_gbuild *b, tl_op op,
                                      const tl_gval *in, int nin,
                                      const tl_attrs *at, tl_gval *out);

/* Open a region with parameters of these types (NULL: a host scalar of class
 * cls[i]); *first is the first of them.  Nodes that follow stand in it. */
TL_MUST_USE tl_status tl_gbuild_region_open(tl_gbuild *b,
                                            const tl_ttype *const *types,
                                            const tl_gclass *cls, uint32_t n,
                                            uint32_t *region, tl_gval *first);

/* Close it: nodes that follow stand in the region `around`.  Results are set
 * later. */
TL_MUST_USE tl_status tl_gbuild_region_close(tl_gbuild *b, uint32_t region,
                                             uint32_t around);

/* The results of a closed region. */
TL_MUST_USE tl_status tl_gbuild_region_results(tl_gbuild *b, uint32_t region,
                                               const tl_gval *v, uint32_t n);

/* Does a loop that is made now keep what each turn starts from, all that is
 * carried, for its gradient? */
static inline bool tl_gbuild_keeps_turns(const tl_gbuild *b)
{
    return b->visible != 0 && b->no_grad == 0;
}

/* An IF or LOOP node to add. */
typedef struct tl_gflow {
    tl_gkind kind;
    uint32_t region, nregions; /* that it owns */
    const tl_gval *in;
    uint32_t nin;
    const tl_gval *like; /* its results have the types of these */
    uint32_t n;
    const tl_gval *stacked; /* LOOP: tensors of the body that are stacked: what
                               is kept for its gradient, then others */
    uint32_t nstacked;
    const tl_dim *turns; /* length of the stacks; NULL: the node's own count */
} tl_gflow;

/* Add the node; out[] gets a loop's count of turns, then n results, then the
 * stacks. */
TL_MUST_USE tl_status tl_gbuild_flow(tl_gbuild *b, const tl_gflow *f,
                                     tl_gval *out);

/* An effect: operands are the condition (0: a host call), what is shown, and
 * values of cells written so far. */
TL_MUST_USE tl_status tl_gbuild_effect(tl_gbuild *b, tl_gval condition,
                                       const tl_gval *shown, uint32_t nshown,
                                       const tl_gval *cells, uint32_t ncells,
                                       uint32_t key);

/* Results of a function with its own gradient: aliases of `v`, which are
 * results of a custom entry on every block that sees an input.  Takes
 * `data`. */
TL_MUST_USE tl_status tl_gbuild_custom(tl_gbuild *b, const tl_gval *in,
                                       uint32_t nin, const tl_gval *v,
                                       uint32_t nout,
                                       const tl_gcustom_ops *ops, void *data,
                                       tl_gval *out);

/* ---- grad blocks (differentiate.c) -------------------------------------- */

/* An open grad block. */
typedef struct tl_gblock {
    uint64_t bit;
    uint32_t first_node;  /* nodes and values from here on are inside */
    tl_gval first_value;
    uint64_t below_visible; /* what closing restores */
    uint64_t below_innermost;
    int below_no_grad;
    bool below_taped;
    uint32_t owner; /* region in which it stands */
} tl_gblock;

/* As tl_grad_open.  E0602 with more than 60 blocks open. */
TL_MUST_USE tl_status tl_gblock_open(tl_gbuild *b, tl_gblock *block);
void tl_gblock_close(tl_gbuild *b, const tl_gblock *block);

/* A leaf of the block that has the value of `v`. */
TL_MUST_USE tl_status tl_gblock_leaf(tl_gbuild *b, const tl_gblock *block,
                                     tl_gval v, tl_gval *out);

/* d loss / d leaf for each leaf, as tl_grad_backward; seed 0: ones.  The
 * block is closed.  Afterwards no value is seen by it. */
TL_MUST_USE tl_status tl_gblock_backward(tl_gbuild *b, const tl_gblock *block,
                                         tl_gval loss, tl_gval seed,
                                         const tl_gval *leaves, uint32_t n,
                                         tl_gval *grads, bool *reached);

/* Gradients of the results of an IF or LOOP node (differentiate_region.c):
 * g[k] is that of result k or 0; grad[v] of values that its regions read is
 * continued.  `bit` is the block's. */
TL_MUST_USE tl_status tl_gregion_gradient(tl_gbuild *b, uint32_t node,
                                          uint64_t bit, const tl_gval *g,
                                          tl_gval *grad, size_t ngrad);

/* A reverse pass over a closed block with several seeds: grad[] (by value
 * number, of ngrad values) holds them and is continued. */
TL_MUST_USE tl_status tl_gblock_reverse(tl_gbuild *b, const tl_gblock *block,
                                        tl_gval *grad, size_t ngrad);

/* Keep the attributes that the next node was given. */
TL_MUST_USE tl_status tl_gbuild_keep_attrs(tl_gbuild *b, const tl_attrs *at);

/* Forget the block on all values. */
void tl_gblock_forget(tl_gbuild *b, const tl_gblock *block);

#endif
