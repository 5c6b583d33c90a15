/* tree.h - trees: values by path (params(net), a gradient, an optimiser's
 * moments).
 *
 * A tree is a structure, shared by all trees of the same cells, and one
 * tensor for each path of it.  Operations work leaf by leaf, in order, on
 * whatever tensors are in the running domain.
 *
 * A tree may carry a *finite flag*, a bool[] tensor: false means that its
 * values are not to be used.  Operations on several trees join flags; a write
 * to a cell (tl_cell_write_take, assign) keeps the old values where the flag
 * is false, and drops it.  The scaler of a scaled gradient travels along. */
#ifndef TL_INTERP_TREE_H
#define TL_INTERP_TREE_H

#include "interp/module.h"

/* Paths of a tree, shared by all trees of the same structure. */
typedef struct tl_tree_shape {
    int32_t refs;
    size_t len;
    tl_str **paths;  /* in the order of definition, distinct; counted */
    tl_cell **cells; /* counted; NULL entries for trees without cells */
} tl_tree_shape;

struct tl_tree {
    tl_obj obj;
    tl_tree_shape *shape;
    tl_value finite;  /* bool[] tensor (TENSOR, NODE), or EMPTY: finite */
    tl_value scaler;  /* MODULE, or EMPTY */
    tl_value items[]; /* shape->len tensors */
};

/* ---- structure --------------------------------------------------------- */

/* The trainable cells below `root`: module, list, tuple or dict of modules,
 * cell, select.  A cell alone has one path, its name.  E0210. */
TL_MUST_USE tl_status tl_tree_shape_of(tl_eval *ev, tl_value root,
                                       tl_tree_shape **out);
/* A structure of these paths, without cells; copies the strings. */
TL_MUST_USE tl_status tl_tree_shape_new(tl_tree_shape **out,
                                        tl_str *const *paths, size_t len,
                                        tl_diag *diag);
tl_tree_shape *tl_tree_shape_ref(tl_tree_shape *shape);
void tl_tree_shape_unref(tl_tree_shape *shape); /* NULL is allowed */
bool tl_tree_shape_same(const tl_tree_shape *a, const tl_tree_shape *b);

/* A tree of `shape` (referenced); takes the shape->len items, on failure
 * too. */
TL_MUST_USE tl_status tl_tree_new_take(tl_value *out, tl_tree_shape *shape,
                                       tl_value *items, tl_diag *diag);

/* ---- built from cells -------------------------------------------------- */

/* params(root): the values now. */
TL_MUST_USE tl_status tl_tree_params(tl_eval *ev, tl_value root,
                                     tl_value *out);
/* Zeros of this type. */
TL_MUST_USE tl_status tl_zeros(tl_eval *ev, const tl_ttype *type,
                               tl_value *out);
/* zeros_like(root): zeros of the cells' types, or of a tree's; initialises
 * nothing. */
TL_MUST_USE tl_status tl_tree_zeros(tl_eval *ev, tl_value root,
                                    tl_value *out);
/* assign(root, tree): write every cell, or none.  Where the tree's flag is
 * false nothing changes (W0517 if no scaler expects that).  Then the scaler
 * of a scaled tree gets the flag: scaler.update(finite).  E0512. */
TL_MUST_USE tl_status tl_tree_assign(tl_eval *ev, tl_value root,
                                     tl_value tree);

/* ---- operations -------------------------------------------------------- */

/* f(t, u...) for the tensors at each path: map(f, t, u...).  A tensor or
 * number among the later ones is passed to every call.  If f gives tuples of
 * n tensors, so is the result a tuple of n trees.  E0512. */
TL_MUST_USE tl_status tl_tree_map(tl_eval *ev, tl_value fn,
                                  const tl_value *trees, size_t n,
                                  tl_value *out);

/* Tree op tree (same structure, E0512), tree op number or scalar tensor in
 * either order; + - * / only (E0207).  A tree of one value takes its like:
 * the gradient of a single cell.  Eats both.  Dividing by the number 0
 * makes the flag false. */
TL_MUST_USE tl_status tl_tree_binary_take(tl_eval *ev, tl_oper op, tl_value a,
                                          tl_value b, tl_value *out);
/* -t, +t */
TL_MUST_USE tl_status tl_tree_unary_take(tl_eval *ev, tl_oper op, tl_value a,
                                         tl_value *out);

/* Euclidean norm over all leaves, a scalar tensor: squares are summed in f64,
 * in order; the result has the leaves' dtype, f32 at least. */
TL_MUST_USE tl_status tl_tree_norm(tl_eval *ev, const tl_tree *tree,
                                   tl_value *out);

/* clip_norm(t, max): t * min(1, max / (norm + 1e-6)), PyTorch's rule, for a
 * tree or the gradient of a single cell, a tensor.  A norm that is not finite:
 * the tree as it is if it has a flag, else E0509 with the first such path. */
TL_MUST_USE tl_status tl_tree_clip_norm(tl_eval *ev, tl_value tree,
                                        double max, tl_value *out);

/* Join the flag of `from` into that of `to` (a tree being built). */
TL_MUST_USE tl_status tl_tree_join_flag(tl_eval *ev, tl_tree *to,
                                        const tl_tree *from);

/* ---- access ------------------------------------------------------------ */

/* Is `name` a path of the tree, or the beginning of one? */
bool tl_tree_has(const tl_tree *tree, const char *name, size_t len);

/* g.fc1, g.blocks, g["fc1.weight"], g[0]: a leaf's tensor or the sub-tree.
 * E0211 with the nearest path. */
TL_MUST_USE tl_status tl_tree_get(tl_eval *ev, const tl_tree *tree,
                                  const char *name, size_t len,
                                  tl_value *out);
/* g[i] of an INT or STR value. */
TL_MUST_USE tl_status tl_tree_index(tl_eval *ev, const tl_tree *tree,
                                    tl_value index, tl_value *out);
/* A list of (path, tensor). */
TL_MUST_USE tl_status tl_tree_items(tl_eval *ev, const tl_tree *tree,
                                    tl_value *out);

#endif
