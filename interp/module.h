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
    const tl_funcdef *code;    /* of a module's method, or NULL */
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

enum { /* sets of kinds, for tl_paths */
    TL_CELLS_PARAM = 1 << TL_CELL_PARAM,
    TL_CELLS_SAVED = 1 << TL_CELL_PARAM | 1 << TL_CELL_BUFFER,
    TL_CELLS_ALL = TL_CELLS_SAVED | 1 << TL_CELL_HOST,
    /* options of the walk */
    TL_PATHS_ALIASES = 8,  /* enter shared modules again: their other paths */
    TL_PATHS_REFERRED = 16 /* enter what `cells[N]` fields refer to */
};

/* What a cell holds. */
typedef enum tl_cell_hold {
    TL_HOLD_TENSOR,
    TL_HOLD_TREE, /* grads[M], tree */
    TL_HOLD_INT,  /* kind HOST from here on */
    TL_HOLD_FLOAT,
    TL_HOLD_BOOL
} tl_cell_hold;

/* The only thing that changes. */
struct tl_cell {
    tl_obj obj;
    uint8_t kind;  /* tl_cell_kind */
    uint8_t hold;  /* tl_cell_hold */
    bool has_type; /* TENSOR: dtype and declared sizes are known */
    bool keyed;    /* the key is set */
    tl_dtype dtype;
    int rank;
    int64_t size[TL_MAX_RANK]; /* declared sizes; -1: `_`, may change */
    tl_value value;            /* EMPTY until the initialiser has run */
    tl_value init; /* function (shape, dtype) -> tensor, or EMPTY */
    uint64_t key;  /* of the initialiser's draws: from ordinal and path */
    uint64_t key_seed;
    uint64_t version; /* stores so far: a new value may have an old address */
    int watchers; /* open grad blocks that have it as a target */
    uint64_t serial; /* distinct for every cell and module of a context */
    tl_str *name; /* path when made, for messages */
};

struct tl_module {
    tl_obj obj;
    tl_class *cls;
    int training;  /* open grad blocks that have it, or a holder, as target */
    int8_t forced; /* with mode(...): 0 none, 1 eval, 2 train */
    bool ready;    /* the constructor has returned */
    uint64_t serial;          /* as a cell's */
    const tl_module *view_of; /* of a view: the instance, to compare with */
    tl_value fields[]; /* cls->code->module->nfields; EMPTY for methods */
};

/* The cells below `root` whose path fits the pattern. */
struct tl_select {
    tl_obj obj;
    tl_value root; /* MODULE, list or dict of modules, SELECT */
    tl_str *glob;
};

/* ---- construction ------------------------------------------------------ */

/* A function made in the constructor of `m`: where it has captured `m` it gets
 * a view, a second instance with the fields set so far (all that the function
 * can name), so that no reference leads back.  *fn is released on failure. */
TL_MUST_USE tl_status tl_module_cut_captures(tl_eval *ev, tl_module *m,
                                             tl_value *fn);

/* Call a module definition: a new instance. `self` in the constructor's frame
 * is the unfinished instance; statements other than CELL and DECL are run by
 * the evaluator, whose assignments to FIELD names come back through
 * tl_module_init_field_take.  When the outermost constructor returns, the cells
 * below get their keys. */
TL_MUST_USE tl_status tl_module_construct(tl_eval *ev, tl_class *cls,
                                          tl_args *args, tl_value *out);

/* copy(net): new modules and cells, same structure and sharing inside.  Takes
 * MODULE, lists, tuples and dicts of modules, a CELL; what `cells[N]` fields
 * refer to is shared with the original, unless it is copied as well. */
TL_MUST_USE tl_status tl_module_copy(tl_eval *ev, tl_value root,
                                     tl_value *out);

/* assign(net, other): every cell of `to` gets the value of the cell of `from`
 * at the same path, buffers and host cells too, or none does.  E0512 for
 * another structure, E0304 and its like for a value that does not fit. */
TL_MUST_USE tl_status tl_module_assign(tl_eval *ev, tl_value to,
                                       tl_value from);

/* ---- attributes -------------------------------------------------------- */

/* Index of the field, or -1. */
int64_t tl_module_find(const tl_module *m, const tl_sym *name);

/* Name and number of the fields of an instance (methods included). */
static inline const tl_moddef *tl_module_def(const tl_module *m)
{
    return m->cls->code->module;
}

/* Is the field a header parameter annotated cells[N]; is it `*xs`, `**kw`? */
bool tl_field_is_referred(const tl_fielddef *field);
bool tl_field_is_starred(const tl_fielddef *field);

/* The value of field `index`, as `m.f` reads it: cells through
 * ev->domain->cell_get.  E0202 before the constructor has set it. */
TL_MUST_USE tl_status tl_module_get_field(tl_eval *ev, tl_module *m,
                                          uint32_t index, tl_value *out);

/* `f = v` in the constructor: sets a constant.  A field that is a cell is
 * written; E0212 once the constructor has returned.  Takes `v`. */
TL_MUST_USE tl_status tl_module_init_field_take(tl_eval *ev, tl_module *m,
                                                uint32_t index, tl_span span,
                                                tl_value v);

/* The value of `*xs` (TUPLE) or `**kw` (DICT) of the header, or NULL: what is
 * in them has the paths `0`, `name`, and is read as m[0], m.name. */
const tl_value *tl_module_starred(const tl_module *m, tl_tag tag);

/* m.name: a field's value, a child, or a METHOD; else what `**kw` has under
 * the name.  E0211 with the nearest name. */
TL_MUST_USE tl_status tl_module_get_attr(tl_eval *ev, tl_module *m,
                                         const tl_sym *name, tl_value *out);

/* m.name = v.  E0211, E0212, and those of tl_cell_write_take. */
TL_MUST_USE tl_status tl_module_set_attr_take(tl_eval *ev, tl_module *m,
                                              const tl_sym *name, tl_value v);

/* The cell m.name, borrowed, for `cell(m.w)` and targets; NULL: the name is
 * no cell of `m`. */
tl_cell *tl_module_cell_of(tl_module *m, const tl_sym *name);

/* The cell that an expression names (`net.fc.weight`, a field of `self`): the
 * path is walked, the cell is not read.  E0210 if it names none. */
TL_MUST_USE tl_status tl_eval_cell(tl_eval *ev, const tl_ast *e,
                                   tl_value *out);

/* Name of the definition. */
const char *tl_class_name(const tl_class *cls);

/* ---- cells ------------------------------------------------------------- */

/* A cell without value. */
TL_MUST_USE tl_status tl_cell_new(tl_cell **out, tl_cell_kind kind,
                                  tl_cell_hold hold, tl_diag *diag);

/* First value of a new cell: checked and stored in any domain; UNKNOWN leaves
 * it without one.  Takes `v`. */
TL_MUST_USE tl_status tl_cell_start_take(tl_eval *ev, tl_cell *cell,
                                         tl_value v);

/* The value of a cell as the domain sees it: ev->domain->cell_get. */
TL_MUST_USE tl_status tl_cell_read(tl_eval *ev, tl_cell *cell, tl_value *out);

/* Check `v` against the cell and convert it (an int for a float cell, a host
 * number for a scalar tensor; a flagged tree or tensor tree keeps the old
 * values where its flag is false), then ev->domain->cell_set.  Takes `v`.
 * E0210, E0304, E0308, E0312, E0512; E0505 for a param inside an open tape
 * on it. */
TL_MUST_USE tl_status tl_cell_write_take(tl_eval *ev, tl_cell *cell,
                                         tl_value v);

/* The checks and conversions of a write, without writing: *v stays the
 * caller's. */
TL_MUST_USE tl_status tl_cell_fit(tl_eval *ev, tl_cell *cell, tl_value *v);

/* For the domain with data: the stored value, initialised if need be (a new
 * reference; no leaves), and storing one that has been checked. */
TL_MUST_USE tl_status tl_cell_value(tl_eval *ev, tl_cell *cell,
                                    tl_value *out);
void tl_cell_store_take(tl_eval *ev, tl_cell *cell, tl_value v);

/* Whoever stores into a cell, or takes a reference to what one holds, says so:
 * as long as nobody has, compiled functions need not look whether the tensors
 * of their cells are what they were (compiled_hold.c). */
static inline void tl_cells_used(tl_eval *ev)
{
    ev->cell_uses++;
}

/* Run the initialiser if it has not run (concrete domain, nothing is
 * recorded).  E0202 before the outermost constructor has returned. */
TL_MUST_USE tl_status tl_cell_init(tl_eval *ev, tl_cell *cell);

/* Type of a TENSOR cell: of its value, or else declared.  E0202 if neither is
 * known. */
TL_MUST_USE tl_status tl_cell_type(tl_eval *ev, const tl_cell *cell,
                                   tl_ttype *out);

/* ---- keys of initialisers (init_key.c) --------------------------------- */

/* Give the cells below `root` that have no key the next ordinal and their
 * path (LANGUAGE.md 4). */
TL_MUST_USE tl_status tl_init_assign_keys(tl_eval *ev, tl_value root);

/* Key of the next draw: of the initialiser that runs, else of the stream
 * `draw`. */
tl_rng_key tl_eval_next_key(tl_eval *ev);

/* ---- paths (path.c) ---------------------------------------------------- */

/* What a path walk meets. */
typedef struct tl_path_item {
    tl_str *path;  /* owned by the list */
    tl_cell *cell; /* borrowed */
    size_t first;  /* index of the item with the same cell: itself, unless the
                     cell is shared and came earlier under another path */
} tl_path_item;

typedef struct tl_path_list {
    tl_path_item *items;
    size_t len, cap;
} tl_path_list;

/* All cells below `root` (module, list, tuple or dict of modules, cell,
 * select), in order; `kinds` is a set of kinds and options.  Fields annotated
 * cells[N] are referred to, not owned: passed over.  Items of `*xs` and
 * `**kw` have no name of the field in their path.  E0210 for a root that has
 * no cells by its type. */
TL_MUST_USE tl_status tl_paths(tl_eval *ev, tl_value root, unsigned kinds,
                               tl_path_list *out);
void tl_path_list_fini(tl_path_list *list);

/* Does `glob` match the path?  `*` crosses dots; "*.bias" matches "bias". */
bool tl_glob_match(const char *glob, const char *path);

/* The distinct modules at and below `root`, in order (cells and selections
 * have none): what is in training mode while `root` is a target, what
 * mode(...) sets.  *out is an array of borrowed pointers for tl_free; the
 * caller marks: ++training, --training; forced. */
TL_MUST_USE tl_status tl_modules_below(tl_eval *ev, tl_value root,
                                       tl_module ***out, size_t *n);

/* Is the code that runs now in training mode: the nearest frame with a
 * `self` decides; without one, whether any grad block is open. */
bool tl_training_now(tl_eval *ev);

#endif
