/* grad.h - `grad` blocks, targets and functional derivatives in the
 * evaluator.
 *
 * A block has targets; each is an expression that was resolved to something
 * that can be watched: cells (by module, list, cell, select) or a variable.
 * Reading a target cell inside gives its leaf on this block's tape; for a
 * variable the slot itself holds the leaf while the block runs. */
#ifndef TL_INTERP_GRAD_H
#define TL_INTERP_GRAD_H

#include "compiler/build.h"
#include "interp/tree.h"

typedef enum tl_target_kind {
    TL_TARGET_CELLS,   /* a tree: module, list or dict of modules, select */
    TL_TARGET_CELL,    /* one cell: its gradient is a tensor */
    TL_TARGET_VARIABLE /* a float tensor variable */
} tl_target_kind;

typedef struct tl_target {
    tl_target_kind kind;
    tl_tree_shape *shape; /* CELLS, CELL: paths and cells */
    tl_value leaf;        /* VARIABLE: the leaf tensor */
    tl_module **modules;  /* in training mode while the block is open */
    size_t nmodules;
    tl_span span;
    const char *text; /* as written, for messages */
} tl_target;

/* The leaf of a watched cell on this block. */
typedef struct tl_leaf {
    tl_cell *cell;
    tl_value leaf; /* EMPTY until the cell is read */
} tl_leaf;

struct tl_gradblk {
    tl_gradblk *outer;
    tl_tape *tape;   /* concrete domain */
    tl_gblock graph; /* graph domain */
    tl_target *targets;
    size_t ntargets;
    tl_leaf *leaves; /* of all target cells */
    size_t nleaves;
    tl_map by_cell;  /* tl_cell * -> tl_leaf * */
    tl_value scaler; /* or NONE */
    tl_span span;
};

/* Number of gradients of a block: leaves of all targets. */
size_t tl_grad_count(const tl_gradblk *block);

/* Blocks of the domains that have tapes (domain.h). */
TL_MUST_USE tl_status tl_grad_enter_taped(tl_eval *ev, tl_gradblk *b);
TL_MUST_USE tl_status tl_grad_leave_taped(tl_eval *ev, tl_gradblk *b,
                                          tl_value loss, tl_value *grads,
                                          tl_value *finite);
void tl_grad_abandon_taped(tl_eval *ev, tl_gradblk *b);

/* Zeros of the type of a cell; initialises nothing. */
TL_MUST_USE tl_status tl_eval_cell_zeros(tl_eval *ev, const tl_cell *cell,
                                         tl_value *out);

/* Run `g = grad loss wrt targets [with scaler]: block`. */
TL_MUST_USE tl_status tl_eval_grad(tl_eval *ev, const tl_ast *node,
                                   tl_value *out, tl_flow *flow);

/* The value of a cell as the open blocks see it: leaves applied from the
 * outermost block that watches it to the innermost (domains with tapes). */
TL_MUST_USE tl_status tl_grad_cell_leaf(tl_eval *ev, tl_cell *cell,
                                        tl_value *out);

/* Run the body of a function with a backward clause in the running frame. */
TL_MUST_USE tl_status tl_call_custom(tl_eval *ev, const tl_funcdef *fn,
                                     tl_value *out);

#endif
