/* gen_impl.h - what the files of the generator share.
 *
 * The generator knows of every value in scope its type, its sizes in every
 * call (a size is a vector: one number for each call), and bounds of its
 * elements.  So what it writes is valid by construction: shapes fit in every
 * call, indices are in range, logarithms get positive numbers.
 *
 * A value's `text` is how it is written: a name, a path (`t[1]`, `d["a"]`), or
 * an expression that nothing has been assigned to yet; that one is used once,
 * so that expressions nest. */
#ifndef TESTS_COMPILE_GEN_IMPL_H
#define TESTS_COMPILE_GEN_IMPL_H

#include "runtime/base/buf.h"
#include "runtime/op/dtype.h"
#include "tests/compile/random.h"

enum {
    CALLS = 6,   /* at most, of the compiled function */
    RANK = 5,    /* at most, of a tensor */
    POOL = 160,  /* values in scope */
    TEXTS = 1 << 18
};

typedef struct dim {
    int n[CALLS];
} dim;

typedef enum kind {
    K_TENSOR,
    K_INT,   /* of the host; d[0] is its value in each call if `exact` */
    K_FLOAT,
    K_BOOL,
    K_FN1    /* a function of one float tensor that keeps its type */
} kind;

typedef struct val {
    const char *text;
    kind kind;
    tl_dtype dtype;
    int rank;
    dim d[RANK];
    double lo, hi; /* of elements, NaN apart */
    bool once;     /* an expression, not a name */
    bool exact;
    bool name;     /* a variable: may be rebound, may be a target */
    int scope;     /* the depth of the block that made it */
} val;

/* Classes of dtypes that an operand may have. */
enum { W_FLOAT = 1, W_INT = 2, W_BOOL = 4, W_NUM = 3, W_ANY = 7 };

/* The module that a program has: f32[..., d] -> f32[..., d]. */
typedef struct net {
    bool any;          /* there is one, called `net` */
    int d;
    bool seen, gain;   /* a buffer f32[d], a parameter f32[d] */
    bool k, count;     /* host cells: a float, an int */
    bool draws;        /* it has a dropout */
    int rows;          /* of its embedding; 0: none */
    const char *opt;   /* an optimiser's name, or NULL */
} net;

typedef struct gen {
    rng r;
    net net;
    tl_buf *out;   /* the text that lines go to */
    tl_buf top;    /* definitions before the function */
    tl_buf body;
    val pool[POOL];
    int n;
    int ncalls;
    int indent;
    int next;      /* number of the next name */
    int ops;       /* emitted in this function */
    int budget;    /* ops still wanted */
    int depth;     /* of blocks */
    int tapes;     /* open grad blocks */
    bool in_loop;
    bool pure;     /* no draws here */
    char texts[TEXTS];
    size_t used;
    bool full;     /* texts are used up: stop */
} gen;

typedef bool op_fn(gen *g);

typedef struct op_row {
    op_fn *fn;
    int weight;
} op_row;

/* ---- texts and lines (gen.c) */
const char *str(gen *g, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
void line(gen *g, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
const char *fresh(gen *g, const char *prefix);

/* ---- sizes (gen_value.c) */
dim dim_of(int n);
bool dim_same(const gen *g, dim a, dim b);
bool dim_is(const gen *g, dim d, int n);
bool dim_const(const gen *g, dim d);
int dim_min(const gen *g, dim d);
int dim_max(const gen *g, dim d);
dim dim_plus(dim d, int n);
dim dim_sum(dim a, dim b);
dim dim_times(dim a, dim b);
/* How a size is written: a number, or a host value; NULL: it cannot be. */
const char *dim_text(gen *g, dim d);
double numel_max(const gen *g, const val *v);
bool same_shape(const gen *g, const val *a, const val *b);
/* Sizes of an elementwise operation; false if it is refused in a call. */
bool broadcast(const gen *g, const val *a, const val *b, val *out);

/* ---- values (gen_value.c) */
int class_of(tl_dtype t);
/* A value in scope, the later ones more often; false: there is none.  An
 * expression is used up. */
bool pick(gen *g, int classes, int rmin, int rmax, val *out);
bool pick_kind(gen *g, kind k, val *out);
bool pick_int(gen *g, int lo, int hi, val *out); /* exact, within */
bool pick_name(gen *g, int classes, int rmin, val *out); /* a variable */
bool pick_like(gen *g, const val *a, int classes, val *out); /* same shape */
/* A new tensor of these sizes; false: they cannot be written. */
bool leaf(gen *g, tl_dtype dtype, int rank, const dim *d, val *out);
/* A float tensor operand: in scope, or made. */
val operand(gen *g, int classes, int rmin, int rmax);
const char *number(gen *g, double lo, double hi); /* a literal, or a param */

/* Add a value: an expression to be used, or a new variable. */
void put(gen *g, val v);
/* The same, always as a variable. */
val put_name(gen *g, val v);
void add(gen *g, val v); /* it has a name already */
void give_back(gen *g, const val *v); /* picked, but not used */
/* Before a variable gets another value: drop expressions that read it. */
void forget(gen *g, const char *name);
/* Around a block of statements; what was defined inside is gone after it,
 * unless `keep`. */
void enter(gen *g);
void leave(gen *g, bool keep);
val tensor_of(tl_dtype t, int rank, const dim *d, const char *text, double lo,
              double hi);

/* ---- families (gen_*.c): rows of operations, ended by a NULL function */
extern const op_row gen_elementwise[], gen_reduce[], gen_shape[],
    gen_index[], gen_matrix[], gen_host[], gen_flow[], gen_grads[],
    gen_modules[];

/* Operations with a kernel for their gradient, which two tapes do not run. */
extern const op_row gen_regions[];
op_fn gen_sdpa, gen_embedding, gen_conv;
/* cholesky, solve and qr of what is positive definite by construction. */
op_fn gen_linalg;

/* The definition of the module, if the program is to have one. */
void gen_net(gen *g);
/* Statements that make it and its optimiser. */
void gen_net_make(gen *g);
/* Statements between calls: what the cells hold, and changes from outside. */
void gen_net_show(gen *g);
void gen_net_change(gen *g);

/* A scalar made of a float tensor. */
const char *gen_scalar(gen *g, const val *v);

/* One operation of these rows; false: it found no operands. */
bool gen_one(gen *g, const op_row *rows);

/* `n` operations at this place. */
void gen_ops(gen *g, int n);

#endif
