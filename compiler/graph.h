/* graph.h - a traced function as data: single assignment in flat arrays.
 *
 * A graph holds no C pointers: nodes, values, operands, sizes and attributes
 * refer to each other by number, so a graph can be hashed, written, read back
 * and compared.  Number 0 means "none"; the first item of nodes, values,
 * regions, operands, sizes, dims, attrs, binds, consts and reports is unused.
 * Atoms, guards, inputs and outputs count from 0.
 *
 * Nodes stand in program order.  A node has operands and results; each result
 * is a *value* with a type.  The body of a branch or loop is a *region*: its
 * nodes stand, in order, before the node that owns it, and may use values of
 * the regions around it.  A region has parameters (values without a node) and
 * results.  While a graph is made, nodes of an outer region may be added while
 * an inner one is open; tl_graph_settle then moves them before it.
 *
 * Values are tensors, or host scalars (i64, f64, bool) that may differ from
 * call to call.  Sizes are expressions over *atoms*: sizes of inputs, host
 * ints, loop indices, counts of turns.  What the trace decided by looking at
 * the value of a host scalar stands in `guards`: for other values the graph
 * does not hold.
 *
 * Everything is pure but effects (kind.def), which keep their order.  Cells
 * are inputs, and outputs where they are written.  */
#ifndef TL_COMPILER_GRAPH_H
#define TL_COMPILER_GRAPH_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/base/diag.h"
#include "runtime/op/op.h"

typedef uint32_t tl_gval; /* a value */

typedef enum tl_gkind {
    TL_G_NONE,
#define KIND(name, text, doc) TL_G_##name,
#include "compiler/kind.def"
    TL_G_KIND_COUNT
} tl_gkind;

/* What a value is. */
typedef enum tl_gclass {
    TL_GC_TENSOR,
    TL_GC_INT,   /* host scalars */
    TL_GC_FLOAT,
    TL_GC_BOOL
} tl_gclass;

/* Arithmetic of host scalars (HOST nodes); Python's meaning, as
 * tl_eval_binary_take has it.  Ints: E0307 on overflow, E0401 by zero. */
typedef enum tl_ghost {
    TL_H_NONE,
#define HOST(name, nin, doc) TL_H_##name,
#include "compiler/host.def"
    TL_H_COUNT
} tl_ghost;

typedef union tl_gscalar {
    int64_t i;
    double f;
    bool b;
    uint64_t bits; /* for comparison: set the whole word to 0 first */
} tl_gscalar;

enum { /* tl_gnode.flags */
    TL_GF_EFFECT = 1,  /* assert, print: never moved, merged or dropped */
    TL_GF_RANDOM = 2,  /* a draw: seed and counter are bound in its
                          attributes (i[0], i[1]); pure all the same */
    TL_GF_LOCAL = 4    /* of passes: replaced, may be dropped */
};

typedef struct tl_gnode {
    uint8_t kind;    /* tl_gkind */
    uint8_t which;   /* MAPGRAD: the input differentiated by */
    uint8_t nout;
    uint8_t flags;
    uint16_t op;     /* tl_op; HOST: tl_ghost */
    uint16_t nregions;
    uint32_t nin;
    uint32_t in;     /* first operand, in `operands` */
    uint32_t out;    /* first result; the others follow it in `values` */
    uint32_t attrs;  /* in `attrs` */
    uint32_t region; /* first of its own, in `regions` */
    uint32_t owner;  /* region that it stands in; 0: the whole */
    uint32_t data;   /* by kind, see kind.def */
    tl_span span;    /* where the program says so */
} tl_gnode;

typedef struct tl_gvalue {
    uint32_t node;  /* that makes it; 0: a parameter of a region */
    uint32_t shape; /* first of `rank` numbers in `sizes` */
    uint8_t cls;    /* tl_gclass */
    uint8_t dtype;  /* of tensors */
    uint8_t rank;
    uint8_t result; /* which result of the node, or which parameter */
} tl_gvalue;

typedef struct tl_gregion {
    uint32_t node;         /* owner */
    uint32_t first, last;  /* nodes first .. last-1, inner regions included */
    uint32_t params;       /* first parameter value; they are consecutive */
    uint32_t nparams;
    uint32_t results;      /* first of its results, in `operands` */
    uint32_t nresults;
} tl_gregion;

/* A size: code in `code`, in postfix (dim_code.h).  Equal sizes have equal
 * numbers. */
typedef struct tl_gsize {
    uint32_t code, len;
} tl_gsize;

typedef enum tl_gatom_kind {
    TL_GA_SIZE,  /* size of axis `axis` of input number `index`, a tensor */
    TL_GA_INT,   /* the host int that is value `index` */
} tl_gatom_kind;

/* What an atom of a size stands for.  TL_GA_INT: of an input, of a loop's
 * index (a parameter), of a loop's count of turns. */
typedef struct tl_gatom {
    uint32_t kind, index, axis;
} tl_gatom;

/* Attributes of an operation (op/shape.h), without pointers. */
typedef struct tl_gattrs {
    uint8_t dtype;
    uint8_t keep, flag;
    int8_t axis;
    uint16_t axes;
    uint16_t ndims;
    int64_t i[4];
    double f[6];
    uint32_t dims;   /* first of `ndims` numbers in `sizes` */
    uint32_t nbinds; /* fields that are host scalars of the run */
    uint32_t binds;  /* first, in `binds` */
    uint32_t pad;
} tl_gattrs;

/* i[index] or f[index] of an attribute is the value of a host scalar. */
typedef struct tl_gbind {
    uint8_t field; /* 'i' or 'f' */
    uint8_t index;
    uint16_t pad;
    tl_gval value;
} tl_gbind;

typedef struct tl_gguard {
    tl_gval value;       /* a host scalar made of inputs alone */
    tl_gscalar expected; /* compared as bits */
    tl_span span;        /* what looked at it */
} tl_gguard;

/* Of effect number `data`: how many of the graph's outputs, which are cells
 * that had been written before it, must be stored although it fails.  They
 * are operands of the node, after those that it shows. */
typedef struct tl_greport {
    uint32_t nshown; /* operands that it shows, after the condition */
    uint32_t ncells; /* operands that follow: values of cells written */
    uint32_t key;    /* the caller's */
} tl_greport;

/* A tensor known when the graph was made (a folded value, a literal). */
typedef struct tl_gconst {
    uint32_t bytes, len; /* row-major, in `bytes` */
} tl_gconst;

/* Finds equal items of an array: open addressing, a hash and a number + 1 in
 * each slot.  A cache. */
typedef struct tl_gindex {
    uint64_t *slots;
    uint32_t cap, count;
} tl_gindex;

/* A run of numbers in `sizes` that is kept once. */
typedef struct tl_grun {
    uint32_t first, len;
} tl_grun;

#define TL_GARRAY(type)                                                      \
    struct {                                                                 \
        type *items;                                                         \
        size_t len, cap;                                                     \
    }

typedef struct tl_graph {
    TL_GARRAY(tl_gnode) nodes;
    TL_GARRAY(tl_gvalue) values;
    TL_GARRAY(tl_gregion) regions;
    TL_GARRAY(uint32_t) operands;
    TL_GARRAY(uint32_t) sizes; /* numbers of `dims` */
    TL_GARRAY(tl_gsize) dims;
    TL_GARRAY(int64_t) code;
    TL_GARRAY(tl_gatom) atoms; /* from 0: their numbers stand in codes */
    TL_GARRAY(tl_gattrs) attrs;
    TL_GARRAY(tl_gbind) binds;
    TL_GARRAY(tl_gguard) guards;
    TL_GARRAY(tl_gconst) consts;
    TL_GARRAY(uint8_t) bytes;
    TL_GARRAY(tl_gval) inputs;  /* results of INPUT nodes, in order: tensors
                                   and host scalars */
    TL_GARRAY(tl_gval) outputs;
    TL_GARRAY(tl_greport) reports; /* of asserts and host calls */

    /* for graph*.c alone, no part of what the graph is */
    TL_GARRAY(uint32_t) open; /* regions, the innermost last */
    TL_GARRAY(tl_grun) runs;
    tl_gindex size_index, run_index, atom_index, attrs_index, const_index;
} tl_graph;

TL_MUST_USE tl_status tl_graph_new(tl_graph **out, tl_diag *diag);
void tl_graph_free(tl_graph *g); /* NULL is allowed */

static inline const tl_gnode *tl_gnode_of(const tl_graph *g, tl_gval v)
{
    return &g->nodes.items[g->values.items[v].node];
}

/* The k-th operand of a node. */
static inline tl_gval tl_goperand(const tl_graph *g, const tl_gnode *n,
                                  uint32_t k)
{
    return g->operands.items[n->in + k];
}

const char *tl_gkind_name(tl_gkind kind);
const char *tl_ghost_name(tl_ghost op);
int tl_ghost_inputs(tl_ghost op);

/* ---- making ------------------------------------------------------------- */

/* A node to add; the graph copies what it points to, which does not lie in
 * the graph's own arrays.  attrs 0: none. */
typedef struct tl_gnew {
    tl_gkind kind;
    uint16_t op;
    uint8_t which, flags;
    const tl_gval *in;
    uint32_t nin;
    uint32_t nout;
    const tl_gvalue *out; /* types of the results: cls, dtype, rank, shape */
    uint32_t attrs, data;
    uint32_t region, nregions; /* the first of its regions; the others are
                                  the closed ones after it without a node */
    uint32_t owner;            /* 0, or a region that is open */
    tl_span span;
} tl_gnew;

/* Append a node; *first is its first result.  Regions of the node and inside
 * them may get other numbers: afterwards its own are consecutive.  E0699 for
 * an owner that is not open and for regions that are not there. */
TL_MUST_USE tl_status tl_graph_add(tl_graph *g, const tl_gnew *n,
                                   tl_gval *first, tl_diag *diag);

/* Open a region with parameters of these types (values first .. are
 * consecutive); nodes that follow belong to it until it is closed with its
 * results.  The node that owns it is added afterwards with owner = the region
 * around it; it sets regions' `node`.  Only the innermost open region can be
 * closed. */
TL_MUST_USE tl_status tl_graph_region_open(tl_graph *g,
                                           const tl_gvalue *params,
                                           uint32_t n, uint32_t *region,
                                           tl_diag *diag);
TL_MUST_USE tl_status tl_graph_region_close(tl_graph *g, uint32_t region,
                                            const tl_gval *results,
                                            uint32_t n, tl_diag *diag);

/* Sizes: the number of the size with this code; equal codes, equal numbers.
 * A plain number is TL_DC_NUM n. */
TL_MUST_USE tl_status tl_graph_size(tl_graph *g, const int64_t *code,
                                    size_t len, uint32_t *out, tl_diag *diag);
TL_MUST_USE tl_status tl_graph_size_num(tl_graph *g, int64_t n, uint32_t *out,
                                        tl_diag *diag);
/* `rank` sizes as a shape: first of them in `sizes`. */
TL_MUST_USE tl_status tl_graph_shape(tl_graph *g, const uint32_t *sizes,
                                     int rank, uint32_t *out, tl_diag *diag);
TL_MUST_USE tl_status tl_graph_atom(tl_graph *g, tl_gatom atom, uint32_t *out,
                                    tl_diag *diag);
/* Attributes; equal ones are kept once.  `dims` and `binds` of `at` are
 * ignored and made from the arrays; fields that are bound become 0. */
TL_MUST_USE tl_status tl_graph_attrs(tl_graph *g, const tl_gattrs *at,
                                     const uint32_t *dims,
                                     const tl_gbind *binds, uint32_t *out,
                                     tl_diag *diag);
/* A constant's bytes. */
TL_MUST_USE tl_status tl_graph_const(tl_graph *g, const void *bytes,
                                     size_t len, uint32_t *out,
                                     tl_diag *diag);
TL_MUST_USE tl_status tl_graph_guard(tl_graph *g, tl_gval value,
                                     tl_gscalar expected, tl_span span,
                                     tl_diag *diag);

/* Move nodes that stand inside a region which they do not belong to before
 * it, so that each region's nodes are its own and those of its inner regions.
 * Values keep their numbers, nodes do not.  Called when a graph is complete;
 * all that follows, checks and passes included, expects it. */
TL_MUST_USE tl_status tl_graph_settle(tl_graph *g, tl_diag *diag);

/* Give a region that has been closed its results, anew. */
TL_MUST_USE tl_status tl_graph_region_results(tl_graph *g, uint32_t region,
                                              const tl_gval *results,
                                              uint32_t n, tl_diag *diag);

/* ---- asking ------------------------------------------------------------- */

/* Is the size a plain number? */
bool tl_graph_size_is_num(const tl_graph *g, uint32_t size, int64_t *out);

/* Do two values have one type: class, dtype, sizes? */
bool tl_graph_same_type(const tl_graph *g, tl_gval a, tl_gval b);

/* Is every invariant kept: numbers in range, operands made before their use
 * and visible there, regions nested, types of results as the rows say?
 * E0699 names the first violation.  Run after every pass in tests. */
TL_MUST_USE tl_status tl_graph_check(const tl_graph *g, tl_diag *diag);

/* A hash of everything that decides what the graph computes; spans, numbering
 * and unused items do not.  Without memory the hash is 0, and graphs are not
 * equal. */
uint64_t tl_graph_hash(const tl_graph *g);
bool tl_graph_equal(const tl_graph *a, const tl_graph *b);

/* ---- text --------------------------------------------------------------- */

/* As text, one node a line, `%7: f32[s0, 64] = matmul %3 %5`. */
void tl_graph_print(const tl_graph *g, tl_buf *out);

/* Read what print wrote; E0699 with the line for anything else. */
TL_MUST_USE tl_status tl_graph_parse(tl_graph **out, const char *text,
                                     size_t len, tl_diag *diag);

/* ---- evaluation of sizes and host scalars ------------------------------- */

/* Values of host scalars by value number, as far as `known` says. */
typedef struct tl_genv {
    tl_gscalar *scalar; /* values.len of them */
    uint8_t *known;
    int64_t *atom;      /* atoms.len of them, filled in by the caller */
} tl_genv;

/* Value of a size under these atoms (atoms.len of them).  E0307, E0401. */
TL_MUST_USE tl_status tl_graph_size_eval(const tl_graph *g, uint32_t size,
                                         const int64_t *atoms, int64_t *out,
                                         tl_diag *diag);

/* Run one NUM, SIZE or HOST node whose operands are known; stores the result
 * in env.  E0307 (sizes), E0404, E0401, E0220, E0416 at the node's span, in the
 * interpreter's words. */
TL_MUST_USE tl_status tl_graph_host(const tl_graph *g, uint32_t node,
                                    tl_genv *env, tl_diag *diag);

#endif
