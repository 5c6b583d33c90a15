/* cell.c - cells: the only things that change.
 *
 * A cell keeps what it holds (a tensor of one dtype and rank, a tree of one
 * structure, or a host number) and its declared sizes.  Its first value may
 * come late, from an initialiser that draws from a key of the cell's own. */
#include "interp/tree.h"

#include <stdio.h>

#include "interp/autocast.h"
#include "interp/domain.h"
#include "interp/free.h"
#include "interp/sym.h"
#include "runtime/base/mem.h"

tl_status tl_cell_new(tl_cell **out, tl_cell_kind kind, tl_cell_hold hold,
                      tl_diag *diag)
{
    tl_cell *cell = tl_obj_new(TL_V_CELL, sizeof(*cell), diag);

    if (!cell) {
        return TL_ERR_MEMORY;
    }
    cell->kind = (uint8_t)kind;
    cell->hold = (uint8_t)hold;
    cell->value = tl_empty();
    cell->init = tl_empty();
    *out = cell;
    return TL_OK;
}

void tl_cell_free(tl_obj *obj)
{
    tl_cell *cell = (tl_cell *)obj;

    tl_drop(&cell->value);
    tl_drop(&cell->init);
    if (cell->name) {
        tl_unref((tl_value){.tag = TL_V_STR, .str = cell->name});
        cell->name = NULL;
    }
}

static const char *cell_name(const tl_cell *cell)
{
    return cell->name ? cell->name->data : "?";
}

/* Declared type as text, `_` for sizes that may change. */
static tl_shape_text declared_text(const tl_cell *cell)
{
    tl_buf buf;
    tl_shape_text text;

    tl_buf_init(&buf);
    tl_buf_puts(&buf, tl_dtype_name(cell->dtype));
    tl_buf_putc(&buf, '[');
    for (int i = 0; i < cell->rank; i++) {
        tl_buf_puts(&buf, i ? ", " : "");
        if (cell->size[i] < 0) {
            tl_buf_putc(&buf, '_');
        } else {
            tl_buf_printf(&buf, "%lld", (long long)cell->size[i]);
        }
    }
    tl_buf_putc(&buf, ']');
    snprintf(text.s, sizeof(text.s), "%s", tl_buf_str(&buf));
    tl_buf_fini(&buf);
    return text;
}

/* ---- does a value fit -------------------------------------------------- */

/* The rank and dtype of the first value stay. */
static void adopt_type(tl_cell *cell, const tl_ttype *type)
{
    cell->dtype = type->dtype;
    cell->rank = type->shape.rank;
    for (int i = 0; i < cell->rank; i++) {
        cell->size[i] = -1;
    }
    cell->has_type = true;
}

static tl_status fit_type(tl_eval *ev, const tl_cell *cell,
                          const tl_ttype *type)
{
    if (type->dtype != cell->dtype) {
        tl_fail(ev->diag, TL_E0308, "cell `%s` is %s, got %s",
                cell_name(cell), declared_text(cell).s, tl_ttype_str(type).s);
        tl_diag_help(ev->diag, "cast it: `%s(...)`",
                     tl_dtype_name(cell->dtype));
        return TL_ERR_PROGRAM;
    }
    if (type->shape.rank != cell->rank) {
        return tl_fail(ev->diag, TL_E0304, "cell `%s` is %s, got %s",
                       cell_name(cell), declared_text(cell).s,
                       tl_ttype_str(type).s);
    }
    for (int i = 0; i < cell->rank; i++) {
        tl_dim d = type->shape.dim[i];

        if (cell->size[i] >= 0 && tl_dim_is_num(d) &&
            tl_dim_value(d) != cell->size[i]) {
            return tl_fail(
                ev->diag, TL_E0312,
                "cell `%s` is %s, got %s: dimension %d is %lld, "
                "not %lld",
                cell_name(cell), declared_text(cell).s, tl_ttype_str(type).s,
                i, (long long)tl_dim_value(d), (long long)cell->size[i]);
        }
    }
    return TL_OK;
}

/* A host number becomes a scalar of the cell's dtype. */
static tl_status number_to_tensor(tl_eval *ev, const tl_cell *cell,
                                  tl_value *v)
{
    tl_attrs at;
    tl_value t, cast;

    if (cell->has_type && cell->rank != 0) {
        tl_fail(ev->diag, TL_E0210, "cell `%s` is %s, got the number %s",
                cell_name(cell), declared_text(cell).s,
                tl_value_type_str(*v).s);
        tl_diag_help(ev->diag, "`full(shape, value)`, or `init.zeros`");
        return TL_ERR_PROGRAM;
    }
    TL_TRY(tl_eval_as_tensor_take(ev, *v, &t));
    *v = tl_empty();
    if (!cell->has_type) {
        *v = t;
        return TL_OK;
    }
    tl_attrs_init(&at);
    at.dtype = (uint8_t)cell->dtype;
    TL_TRY(tl_eval_op(ev, TL_OP_cast, &t, 1, &at, &cast));
    *v = cast;
    return TL_OK;
}

static tl_status fit_tensor(tl_eval *ev, tl_cell *cell, tl_value *v)
{
    tl_ttype type;

    if (tl_is_any_number(*v)) {
        TL_TRY(number_to_tensor(ev, cell, v));
    }
    if (!tl_is_tensor(*v)) {
        return tl_fail(ev->diag, TL_E0210, "cell `%s` holds a tensor, got %s",
                       cell_name(cell), tl_value_type_str(*v).s);
    }
    TL_TRY(tl_eval_type(ev, *v, &type));
    if (!cell->has_type) {
        if (ev->domain->has_data) {
            adopt_type(cell, &type);
        }
    } else {
        TL_TRY(fit_type(ev, cell, &type));
    }
    return tl_eval_widen(ev, v); /* cells hold what they show */
}

static tl_status wrong_host(tl_eval *ev, const tl_cell *cell,
                            const char *wanted, tl_value v)
{
    tl_fail(ev->diag, TL_E0210, "cell `%s` holds %s, got %s", cell_name(cell),
            wanted, tl_value_type_str(v).s);
    if (tl_is_tensor(v)) {
        tl_diag_help(ev->diag, "`%s(...)` reads a tensor of one element",
                     cell->hold == TL_HOLD_INT    ? "int"
                     : cell->hold == TL_HOLD_BOOL ? "bool"
                                                  : "float");
    }
    return TL_ERR_PROGRAM;
}

static tl_status fit_host(tl_eval *ev, const tl_cell *cell, tl_value *v)
{
    switch (cell->hold) {
    case TL_HOLD_INT:
        return tl_number_tag(*v) == TL_V_INT ? TL_OK
                                  : wrong_host(ev, cell, "an int", *v);
    case TL_HOLD_BOOL:
        return tl_number_tag(*v) == TL_V_BOOL ? TL_OK
                                   : wrong_host(ev, cell, "a bool", *v);
    default:
        if (tl_is_sym(*v) && tl_number_tag(*v) != TL_V_BOOL) {
            tl_value old = *v;
            tl_status st = tl_sym_to_float(ev, old, v);

            if (st == TL_OK) {
                tl_unref(old);
            }
            return st;
        }
        if (v->tag != TL_V_INT && v->tag != TL_V_FLOAT) {
            return wrong_host(ev, cell, "a float", *v);
        }
        *v = tl_float_value(tl_number_f(*v));
        return TL_OK;
    }
}

/* Where `flag` is false the leaf that the cell has (as the domain sees it)
 * stays. */
static tl_status keep_unflagged(tl_eval *ev, tl_cell *cell, tl_value flag,
                                tl_tree *v)
{
    tl_value old;
    tl_status st;

    TL_TRY(ev->domain->cell_plain != NULL
               ? ev->domain->cell_plain(ev, cell, &old)
               : ev->domain->cell_get(ev, cell, &old));
    st = old.tag == TL_V_TREE && tl_tree_shape_same(old.tree->shape, v->shape)
             ? TL_OK
             : tl_fail(ev->diag, TL_E0512,
                       "cell `%s` holds a tree of another structure",
                       cell_name(cell));
    for (size_t i = 0; i < v->shape->len && st == TL_OK; i++) {
        tl_value in[3] = {tl_ref(flag), v->items[i],
                          tl_ref(old.tree->items[i])};

        v->items[i] = tl_empty();
        st = tl_eval_op(ev, TL_OP_where, in, 3, NULL, &v->items[i]);
    }
    tl_unref(old);
    return st;
}

/* A copy of `v` without flag and scaler. */
static tl_status plain_tree(tl_eval *ev, tl_value v, tl_value *out)
{
    tl_tree_shape *shape = v.tree->shape;
    tl_value *items;
    tl_status st;

    items = tl_calloc(shape->len ? shape->len : 1, sizeof(*items));
    if (!items) {
        return tl_fail_memory(ev->diag, "a tree",
                              shape->len * sizeof(*items));
    }
    for (size_t i = 0; i < shape->len; i++) {
        items[i] = tl_ref(v.tree->items[i]);
    }
    st = tl_tree_new_take(out, shape, items, ev->diag);
    tl_free(items);
    return st;
}

/* Lowered items of a tree become f32. */
static tl_status widen_tree(tl_eval *ev, tl_value *v)
{
    bool lowered = false;
    tl_value plain;

    for (size_t i = 0; i < v->tree->shape->len; i++) {
        lowered = lowered || tl_is_lowered(ev, v->tree->items[i]);
    }
    if (!lowered) {
        return TL_OK;
    }
    TL_TRY(plain_tree(ev, *v, &plain));
    plain.tree->finite = tl_ref(v->tree->finite);
    plain.tree->scaler = tl_ref(v->tree->scaler);
    tl_unref(*v);
    *v = plain;
    for (size_t i = 0; i < plain.tree->shape->len; i++) {
        TL_TRY(tl_eval_widen(ev, &plain.tree->items[i]));
    }
    return TL_OK;
}

static tl_status fit_tree(tl_eval *ev, tl_cell *cell, tl_value *v)
{
    const tl_tree *old =
        cell->value.tag == TL_V_TREE ? cell->value.tree : NULL;
    tl_value plain;
    tl_status st;

    if (v->tag != TL_V_TREE) {
        return tl_fail(ev->diag, TL_E0210, "cell `%s` holds a tree, got %s",
                       cell_name(cell), tl_value_type_str(*v).s);
    }
    if (old && !tl_tree_shape_same(old->shape, v->tree->shape)) {
        return tl_fail(ev->diag, TL_E0512,
                       "cell `%s` holds a tree of another structure",
                       cell_name(cell));
    }
    TL_TRY(widen_tree(ev, v));
    if (v->tree->finite.tag == TL_V_EMPTY &&
        v->tree->scaler.tag == TL_V_EMPTY) {
        return TL_OK;
    }
    TL_TRY(plain_tree(ev, *v, &plain));
    if (old && v->tree->finite.tag != TL_V_EMPTY) {
        st = keep_unflagged(ev, cell, v->tree->finite, plain.tree);
        if (st != TL_OK) {
            tl_unref(plain);
            return st;
        }
    }
    tl_unref(*v);
    *v = plain;
    return TL_OK;
}

/* Check and convert; *v stays the caller's on failure. */
static tl_status fit(tl_eval *ev, tl_cell *cell, tl_value *v)
{
    if (v->tag == TL_V_UNKNOWN && !ev->domain->has_data) {
        return TL_OK;
    }
    switch (cell->hold) {
    case TL_HOLD_TENSOR:
        return fit_tensor(ev, cell, v);
    case TL_HOLD_TREE:
        return fit_tree(ev, cell, v);
    default:
        return fit_host(ev, cell, v);
    }
}

/* ---- reading and writing ----------------------------------------------- */

/* A rule says nothing of cells: what they contribute would be lost. */
static tl_status read_in_rule(tl_eval *ev, const tl_cell *cell)
{
    const tl_sym *name = ev->rule->name;
    tl_status st = tl_fail(ev->diag, TL_E0515,
                           "`%s` has its own backward, but reads the cell "
                           "`%s`",
                           name != NULL ? name->text : "fn",
                           cell_name(cell));

    tl_diag_help(ev->diag, "make it a parameter");
    return st;
}

tl_status tl_cell_read(tl_eval *ev, tl_cell *cell, tl_value *out)
{
    if (ev->rule != NULL && cell->hold == TL_HOLD_TENSOR) {
        return read_in_rule(ev, cell);
    }
    return ev->domain->cell_get(ev, cell, out);
}

tl_status tl_cell_fit(tl_eval *ev, tl_cell *cell, tl_value *v)
{
    if (cell->kind == TL_CELL_PARAM && cell->watchers > 0) {
        tl_fail(ev->diag, TL_E0505,
                "`%s` is a target of an open `grad` block", cell_name(cell));
        tl_diag_help(ev->diag, "write it after the block, from its gradient");
        return TL_ERR_PROGRAM;
    }
    return fit(ev, cell, v);
}

tl_status tl_cell_write_take(tl_eval *ev, tl_cell *cell, tl_value v)
{
    tl_status st = tl_cell_fit(ev, cell, &v);

    if (st != TL_OK) {
        tl_unref(v);
        return st;
    }
    return ev->domain->cell_set(ev, cell, v);
}

tl_status tl_cell_start_take(tl_eval *ev, tl_cell *cell, tl_value v)
{
    tl_status st = fit(ev, cell, &v);

    if (st != TL_OK || v.tag == TL_V_UNKNOWN) {
        tl_unref(v);
        return st;
    }
    tl_cell_store_take(ev, cell, v);
    return TL_OK;
}

void tl_cell_store_take(tl_eval *ev, tl_cell *cell, tl_value v)
{
    tl_value old = cell->value, init = cell->init;

    if (cell->kind == TL_CELL_PARAM && v.tag == TL_V_TENSOR) {
        v.tensor->flags |= TL_TENSOR_WEIGHT;
    }
    cell->value = v;
    cell->version++;
    tl_cells_used(ev);
    cell->init = tl_empty();
    tl_unref(old);
    tl_unref(init);
}

tl_status tl_cell_value(tl_eval *ev, tl_cell *cell, tl_value *out)
{
    if (cell->value.tag == TL_V_EMPTY) {
        TL_TRY(tl_cell_init(ev, cell));
    }
    tl_cells_used(ev);
    *out = tl_ref(cell->value);
    return TL_OK;
}

tl_status tl_cell_type(tl_eval *ev, const tl_cell *cell, tl_ttype *out)
{
    if (tl_is_tensor(cell->value)) {
        return tl_eval_type(ev, cell->value, out);
    }
    if (!cell->has_type) {
        return tl_fail(ev->diag, TL_E0202, "cell `%s` has no value yet",
                       cell_name(cell));
    }
    out->dtype = cell->dtype;
    out->shape.rank = cell->rank;
    for (int i = 0; i < cell->rank; i++) {
        if (cell->size[i] < 0) {
            return tl_fail(ev->diag, TL_E0202,
                           "cell `%s` is %s and has no value yet",
                           cell_name(cell), declared_text(cell).s);
        }
        out->shape.dim[i] = tl_dim_num(cell->size[i]);
    }
    return TL_OK;
}

/* ---- initialisers ------------------------------------------------------ */

/* The arguments (shape, dtype) of an initialiser. */
static tl_status init_arguments(tl_eval *ev, const tl_cell *cell,
                                tl_value args[2])
{
    tl_value sizes[TL_MAX_RANK];

    for (int i = 0; i < cell->rank; i++) {
        if (cell->size[i] < 0) {
            tl_fail(ev->diag, TL_E0312,
                    "the initialiser of `%s` needs every size of %s",
                    cell_name(cell), declared_text(cell).s);
            tl_diag_help(ev->diag, "start it from a tensor");
            return TL_ERR_PROGRAM;
        }
        sizes[i] = tl_int_value(cell->size[i]);
    }
    TL_TRY(tl_seq_new_take(&args[0], TL_V_TUPLE, sizes, (size_t)cell->rank,
                           ev->diag));
    args[1] = tl_dtype_value(cell->dtype);
    return TL_OK;
}

/* What evaluation of an initialiser must not see or disturb. */
typedef struct saved {
    const tl_domain *domain;
    void *state;
    struct tl_init_key key;
    tl_gradblk *grads;
    int no_check;
    bool lowers;
} saved;

static saved init_enter(tl_eval *ev, const tl_cell *cell)
{
    saved s = {ev->domain, ev->domain_state, ev->init_key, ev->grads,
               ev->no_check, ev->rt->amp.on};

    if (!ev->domain->has_data) {
        ev->domain = &tl_domain_concrete;
        ev->domain_state = NULL;
    }
    ev->init_key = (struct tl_init_key){
        .on = true, .seed = cell->key_seed, .key = cell->key};
    ev->grads = NULL;
    ev->no_check++;
    ev->rt->no_grad++;
    ev->rt->amp.on = false;
    return s;
}

static void init_leave(tl_eval *ev, const saved *s)
{
    ev->rt->amp.on = s->lowers;
    ev->rt->no_grad--;
    ev->no_check = s->no_check;
    ev->grads = s->grads;
    ev->init_key = s->key;
    ev->domain = s->domain;
    ev->domain_state = s->state;
}

static tl_status run_init(tl_eval *ev, tl_cell *cell, tl_value *out)
{
    tl_value args[2] = {tl_empty(), tl_empty()};
    tl_status st;

    TL_TRY(init_arguments(ev, cell, args));
    st = tl_eval_call_values(ev, cell->init, args, 2, out);
    tl_unref_all(args, 2);
    if (st != TL_OK) {
        tl_diag_note(ev->diag, "in the initialiser of `%s`", cell_name(cell));
        return st;
    }
    st = fit(ev, cell, out);
    if (st != TL_OK) {
        tl_drop(out);
    }
    return st;
}

tl_status tl_cell_init(tl_eval *ev, tl_cell *cell)
{
    tl_value v = tl_empty();
    tl_status st;
    saved s;

    if (cell->value.tag != TL_V_EMPTY) {
        return TL_OK;
    }
    if (cell->init.tag == TL_V_EMPTY) {
        return tl_fail(ev->diag, TL_E0202, "cell `%s` has no value yet",
                       cell_name(cell));
    }
    if (!cell->keyed && ev->constructing > 0) {
        return tl_fail(ev->diag, TL_E0202,
                       "cell `%s` is read before the outermost constructor "
                       "has returned",
                       cell_name(cell));
    }
    if (!cell->keyed) {
        TL_TRY(tl_init_assign_keys(
            ev, (tl_value){.tag = TL_V_CELL, .cell = cell}));
    }
    s = init_enter(ev, cell);
    st = run_init(ev, cell, &v);
    init_leave(ev, &s);
    TL_TRY(st);
    tl_cell_store_take(ev, cell, v);
    return TL_OK;
}
