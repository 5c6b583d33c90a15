/* module.h - functions, classes, module instances, cells, trees.
 *
 * A module definition (TL_V_CLASS) is a constructor; an instance holds one
 * value for each field of the definition, in the order of its field table:
 * header parameters, cells, constants, children.  Fields are fixed once the
 * constructor has returned; only cells change.
 *
 * Paths ("blocks.3.attn.qkv.weight") name the cells below an instance, in
 * the order of definition; a shared cell is met once, under its first path. */
#ifndef TL_INTERP_MODULE_H
#define TL_INTERP_MODULE_H

#include "interp/eval.h"

/* A function value: code and the values captured when it was made. */
struct tl_fn {
    tl_obj obj;
    const tl_funcdef *code;
    tl_namespace *ns; /* whose globals it sees; counted, except that a
                         namespace's own functions do not count it */
    tl_module *self;  /* module in whose method or header it was made, or
                         NULL; counted */
    size_t ncaptures;
    tl_value captures[];
};

/* A function or a built-in bound to its first argument. */
struct tl_method {
    tl_obj obj;
    tl_value self; /* MODULE for a function; any value for a built-in */
    const tl_funcdef *code;     /* of a module's method, or NULL */
    const tl_builtin *builtin; /* of a built-in type's method, or NULL */
    tl_namespace *ns;
};

/* A module or record definition. */
struct tl_class {
    tl_obj obj;
    const tl_funcdef *code;
    tl_namespace *ns;
};

struct tl_record {
    tl_obj obj;
    tl_class *cls;
    tl_value fields[]; /* cls->code->nfields */
};

typedef enum tl_cell_kind {
    TL_CELL_PARAM,
    TL_CELL_BUFFER, /* saved, not trained */
    TL_CELL_HOST    /* int, float, bool or tree: saved, a run-time scalar */
} tl_cell_kind;

/* The only thing that changes. */
struct tl_cell {
    tl_obj obj;
    tl_cell_kind kind;
    bool has_type;    /* dtype and declared sizes are known */
    tl_dtype dtype;
    int rank;
    int64_t size[TL_MAX_RANK]; /* declared sizes; -1: `_`, may change */
    tl_value value; /* EMPTY until the initialiser has run */
    tl_value init;  /* function (shape, dtype) -> tensor, or EMPTY */
    uint64_t key;   /* of the initialiser's draws: seed, ordinal, path */
    uint64_t key_seed;
    int watchers;   /* open grad blocks that have it as a target */
    tl_str *name;   /* path when made, for messages */
};

struct tl_module {
    tl_obj obj;
    tl_class *cls;
    int training;   /* open grad blocks that have it, or a holder, as target */
    int8_t forced;  /* with mode(...): 0 none, 1 eval, 2 train */
    bool ready;     /* the constructor has returned */
    uint64_t serial; /* distinct for every instance of a context */
    tl_value fields[]; /* cls->code->nfields */
};

struct tl_select {
    tl_obj obj;
    tl_value root; /* MODULE, list or dict of modules */
    tl_str *glob;
};

/* Paths of a tree, shared by all trees of the same structure. */
typedef struct tl_tree_shape {
    int32_t refs;
    size_t len;
    tl_str **paths; /* in the order of definition, distinct */
    tl_cell **cells; /* counted; NULL entries for trees without cells */
} tl_tree_shape;

/* Values by path: params(net), a gradient, an optimiser's state. */
struct tl_tree {
    tl_obj obj;
    tl_tree_shape *shape;
    tl_tensor *finite; /* bool[] flag of section 6, or NULL: finite */
    tl_value scaler;   /* MODULE, or NONE */
    tl_value items[];  /* shape->len tensors */
};

/* ---- cells ------------------------------------------------------------- */

/* What a path walk meets. */
typedef struct tl_path_item {
    tl_str *path; /* owned by the list */
    tl_cell *cell; /* borrowed */
    bool shared;  /* the same cell came earlier under another path */
} tl_path_item;

typedef struct tl_path_list {
    tl_path_item *items;
    size_t len, cap;
} tl_path_list;

/* All cells below `root` (module, list, tuple or dict of modules, cell,
 * select), in order; `kinds` is a set of 1 << tl_cell_kind.  Fields annotated
 * cells[N] are referred to, not owned: passed over. */
TL_MUST_USE tl_status tl_paths(tl_eval *ev, tl_value root, unsigned kinds,
                               tl_path_list *out);
void tl_path_list_fini(tl_path_list *list);

/* Does `glob` match the path?  `*` crosses dots; "*.bias" matches "bias". */
bool tl_glob_match(const char *glob, const char *path);

/* The value of a cell, initialising it at its first read (a new reference);
 * leaves of open grad blocks are applied (domain's cell_get). */
TL_MUST_USE tl_status tl_cell_read(tl_eval *ev, tl_cell *cell, tl_value *out);

/* Write: dtype, rank and declared sizes must hold; E0505 for a param inside
 * an open tape on it.  Takes `v`. */
TL_MUST_USE tl_status tl_cell_write_take(tl_eval *ev, tl_cell *cell,
                                         tl_value v);

/* Run the initialiser if it has not run (concrete value, no grad). */
TL_MUST_USE tl_status tl_cell_init(tl_eval *ev, tl_cell *cell);

/* Call a module definition: a new instance. */
TL_MUST_USE tl_status tl_module_construct(tl_eval *ev, tl_class *cls,
                                          tl_args *args, tl_value *out);

/* copy(net): new cells, same structure and sharing inside. */
TL_MUST_USE tl_status tl_module_copy(tl_eval *ev, tl_value root,
                                     tl_value *out);

/* Is the code that runs now in training mode: the nearest frame with a
 * `self` decides; without one, whether any grad block is open. */
bool tl_training_now(const tl_eval *ev);

/* Mark `root` and all modules below as target of one more (less) grad block;
 * force a mode (returns nothing to restore: the caller keeps a list). */
TL_MUST_USE tl_status tl_modules_below(tl_eval *ev, tl_value root,
                                       tl_module ***out, size_t *n);

/* ---- trees ------------------------------------------------------------- */

/* A tree of `shape` (referenced); takes the n items. */
TL_MUST_USE tl_status tl_tree_new_take(tl_value *out, tl_tree_shape *shape,
                                       tl_value *items, tl_diag *diag);
TL_MUST_USE tl_status tl_tree_shape_of(tl_eval *ev, tl_value root,
                                       tl_tree_shape **out);
void tl_tree_shape_unref(tl_tree_shape *shape);

/* g.fc1, g.blocks, g["fc1.weight"]: a leaf's tensor or the sub-tree. */
TL_MUST_USE tl_status tl_tree_get(tl_eval *ev, tl_tree *tree, const char *name,
                                  size_t len, tl_value *out);

/* Tree arithmetic: tree op tree (same structure, E0512), tree op number or
 * scalar tensor; finite flags join.  Eats both. */
TL_MUST_USE tl_status tl_tree_binary_take(tl_eval *ev, tl_oper op, tl_value a,
                                          tl_value b, tl_value *out);

#endif
