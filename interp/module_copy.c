/* module_copy.c - copy(net): new modules and cells of the same structure; and
 * assign(net, other), which moves the values of one to another.
 *
 * First everything owned is copied, each module and cell once, so that what
 * is shared inside stays shared.  Then what only refers to modules (cells[N]
 * fields, captured modules) is pointed at the copies where there are any: an
 * optimiser copied together with its net steps the copied net. */
#include "interp/module.h"

#include <string.h>

#include "interp/dict.h"
#include "interp/domain.h"
#include "runtime/base/mem.h"
#include "runtime/base/vec.h"

#define MAX_DEPTH 1000

typedef struct copier {
    tl_eval *ev;
    tl_map made; /* old module or cell -> new one */
    struct {
        tl_module **items;
        size_t len, cap;
    } modules; /* new ones */
    int depth;
} copier;

static tl_status copy_value(copier *c, tl_value v, tl_value *out);

static tl_status remember(copier *c, const void *from, void *to)
{
    return tl_map_set(&c->made, from, to)
               ? TL_OK
               : tl_fail_memory(c->ev->diag, "a copy", sizeof(to));
}

static tl_status copy_cell(copier *c, const tl_cell *cell, tl_value *out)
{
    tl_cell *copy;
    tl_value v;

    TL_TRY(tl_cell_new(&copy, (tl_cell_kind)cell->kind,
                       (tl_cell_hold)cell->hold, c->ev->diag));
    copy->serial = ++c->ev->next_serial;
    copy->has_type = cell->has_type;
    copy->keyed = cell->keyed;
    copy->dtype = cell->dtype;
    copy->rank = cell->rank;
    for (int i = 0; i < cell->rank; i++) {
        copy->size[i] = cell->size[i];
    }
    tl_cells_used(c->ev);
    copy->value = tl_ref(cell->value);
    copy->init = tl_ref(cell->init);
    copy->key = cell->key;
    copy->key_seed = cell->key_seed;
    if (cell->name) {
        v = tl_ref((tl_value){.tag = TL_V_STR, .str = cell->name});
        copy->name = v.str;
    }
    v = tl_obj_value_take(copy);
    if (remember(c, cell, copy) != TL_OK) {
        tl_unref(v);
        return TL_ERR_MEMORY;
    }
    *out = v;
    return TL_OK;
}

static tl_status copy_fields(copier *c, const tl_module *m, tl_module *to)
{
    const tl_moddef *def = tl_module_def(m);

    for (uint32_t i = 0; i < def->nfields; i++) {
        const tl_fielddef *f = &def->fields[i];

        /* a cell in a constant, and cells[N]: referred to, not owned */
        if (tl_field_is_referred(f) ||
            (m->fields[i].tag == TL_V_CELL && !TL_FIELD_IS_CELL(f->class_))) {
            to->fields[i] = tl_ref(m->fields[i]);
            continue;
        }
        TL_TRY(copy_value(c, m->fields[i], &to->fields[i]));
    }
    return TL_OK;
}

static tl_status copy_module(copier *c, const tl_module *m, tl_value *out)
{
    uint32_t n = tl_module_def(m)->nfields;
    tl_module *to = tl_obj_new(
        TL_V_MODULE, sizeof(*to) + n * sizeof(tl_value), c->ev->diag);
    tl_value v;
    tl_status st;

    if (!to) {
        return TL_ERR_MEMORY;
    }
    to->cls = tl_ref((tl_value){.tag = TL_V_CLASS, .cls = m->cls}).cls;
    to->forced = m->forced;
    to->ready = true;
    to->serial = ++c->ev->next_serial;
    for (uint32_t i = 0; i < n; i++) {
        to->fields[i] = tl_empty();
    }
    v = tl_obj_value_take(to);
    st = remember(c, m, to);
    if (st == TL_OK) {
        st = TL_VEC_PUSH(&c->modules, to, c->ev->diag);
    }
    if (st == TL_OK) {
        st = copy_fields(c, m, to);
    }
    if (st != TL_OK) {
        tl_unref(v);
        return st;
    }
    *out = v;
    return TL_OK;
}

static tl_status copy_seq(copier *c, const tl_seq *seq, tl_value *out)
{
    tl_value *items = tl_calloc(seq->len ? seq->len : 1, sizeof(*items));
    tl_status st = TL_OK;
    size_t n = 0;

    if (!items) {
        return tl_fail_memory(c->ev->diag, "a copy",
                              seq->len * sizeof(*items));
    }
    while (n < seq->len && st == TL_OK) {
        st = copy_value(c, seq->items[n], &items[n]);
        n += st == TL_OK;
    }
    if (st == TL_OK) {
        st =
            tl_seq_new_take(out, (tl_tag)seq->obj.tag, items, n, c->ev->diag);
    } else {
        tl_unref_all(items, n);
    }
    tl_free(items);
    return st;
}

static tl_status copy_dict(copier *c, const tl_dict *d, tl_value *out)
{
    tl_value copy;

    TL_TRY(tl_dict_new(&copy, c->ev->diag));
    for (size_t i = 0; i < d->len; i++) {
        const tl_dict_entry *e = &d->entries[i];
        tl_value v;
        tl_status st;

        if (e->key.tag == TL_V_EMPTY) {
            continue;
        }
        st = copy_value(c, e->value, &v);
        if (st == TL_OK) {
            st = tl_dict_set_take(copy.dict, tl_ref(e->key), v, c->ev->diag);
        }
        if (st != TL_OK) {
            tl_unref(copy);
            return st;
        }
    }
    *out = copy;
    return TL_OK;
}

/* Does a container hold a module?  Others are values: sharing them is a
 * copy. */
static bool holds_modules(tl_value v, int depth)
{
    if (v.tag == TL_V_MODULE || v.tag == TL_V_CELL) {
        return true;
    }
    if (depth >= MAX_DEPTH) {
        return false;
    }
    if (v.tag == TL_V_LIST || v.tag == TL_V_TUPLE) {
        for (size_t i = 0; i < v.seq->len; i++) {
            if (holds_modules(v.seq->items[i], depth + 1)) {
                return true;
            }
        }
    } else if (v.tag == TL_V_DICT) {
        for (size_t i = 0; i < v.dict->len; i++) {
            if (v.dict->entries[i].key.tag != TL_V_EMPTY &&
                holds_modules(v.dict->entries[i].value, depth + 1)) {
                return true;
            }
        }
    }
    return false;
}

static tl_status copy_value(copier *c, tl_value v, tl_value *out)
{
    tl_value made = v;
    tl_status st;

    if (v.tag == TL_V_MODULE || v.tag == TL_V_CELL) {
        made.obj = tl_map_get(&c->made, v.obj, NULL);
        if (made.obj) {
            *out = tl_ref(made);
            return TL_OK;
        }
    } else if (!holds_modules(v, 0)) {
        *out = tl_ref(v);
        return TL_OK;
    }
    if (c->depth >= MAX_DEPTH) {
        return tl_fail(c->ev->diag, TL_E0224,
                       "modules are nested deeper than %d", MAX_DEPTH);
    }
    c->depth++;
    switch (v.tag) {
    case TL_V_MODULE:
        st = copy_module(c, v.module, out);
        break;
    case TL_V_CELL:
        st = copy_cell(c, v.cell, out);
        break;
    case TL_V_DICT:
        st = copy_dict(c, v.dict, out);
        break;
    default:
        st = copy_seq(c, v.seq, out);
        break;
    }
    c->depth--;
    return st;
}

/* ---- references -------------------------------------------------------- */

/* The copy of what `v` refers to, or `v`; a new reference. */
static tl_status redirect(copier *c, tl_value v, tl_value *out)
{
    tl_value made = v, root;
    tl_select *s;

    switch (v.tag) {
    case TL_V_MODULE:
    case TL_V_CELL:
        made.obj = tl_map_get(&c->made, v.obj, NULL);
        *out = tl_ref(made.obj ? made : v);
        return TL_OK;
    case TL_V_SELECT:
        TL_TRY(redirect(c, v.select->root, &root));
        s = tl_obj_new(TL_V_SELECT, sizeof(*s), c->ev->diag);
        if (!s) {
            tl_unref(root);
            return TL_ERR_MEMORY;
        }
        s->root = root;
        s->glob =
            tl_ref((tl_value){.tag = TL_V_STR, .str = v.select->glob}).str;
        *out = tl_obj_value_take(s);
        return TL_OK;
    case TL_V_LIST:
    case TL_V_TUPLE:
    case TL_V_DICT:
        return copy_value(c, v, out); /* its modules have been copied */
    default:
        *out = tl_ref(v);
        return TL_OK;
    }
}

/* Is every module in this container among the copied ones? */
static bool all_made(const copier *c, tl_value v)
{
    bool found = true;

    if (v.tag == TL_V_MODULE || v.tag == TL_V_CELL) {
        return tl_map_get(&c->made, v.obj, NULL) != NULL;
    }
    if (v.tag == TL_V_LIST || v.tag == TL_V_TUPLE) {
        for (size_t i = 0; i < v.seq->len; i++) {
            found = found && all_made(c, v.seq->items[i]);
        }
    } else if (v.tag == TL_V_DICT) {
        for (size_t i = 0; i < v.dict->len; i++) {
            found = found && all_made(c, v.dict->entries[i].value);
        }
    }
    return found;
}

/* The copy of a captured value. */
static tl_status redirect_capture(copier *c, tl_value v, tl_value *out)
{
    const tl_module *of = v.tag == TL_V_MODULE ? v.module->view_of : NULL;
    tl_module *to = of ? tl_map_get(&c->made, of, NULL) : NULL;

    if (!to) {
        return all_made(c, v) ? redirect(c, v, out)
                              : (*out = tl_ref(v), TL_OK);
    }
    TL_TRY(copy_value(c, v, out)); /* a view of a copied instance */
    out->module->view_of = to;
    return TL_OK;
}

static tl_status redirect_fn(copier *c, const tl_fn *fn, tl_value *out)
{
    tl_fn *copy = tl_obj_new(
        TL_V_FN, sizeof(*fn) + fn->ncaptures * sizeof(tl_value), c->ev->diag);
    tl_module *self;

    if (!copy) {
        return TL_ERR_MEMORY;
    }
    copy->code = fn->code;
    copy->ns = fn->ns;
    self = fn->self ? tl_map_get(&c->made, fn->self, NULL) : NULL;
    copy->self = self ? self : fn->self;
    if (copy->self) {
        copy->self->obj.refs++;
    }
    *out = tl_obj_value_take(copy);
    for (size_t i = 0; i < fn->ncaptures; i++) {
        tl_value v;
        tl_status st = redirect_capture(c, fn->captures[i], &v);

        if (st != TL_OK) {
            tl_drop(out);
            return st;
        }
        copy->captures[copy->ncaptures++] = v;
    }
    return TL_OK;
}

static bool is_list(tl_value v)
{
    return v.tag == TL_V_LIST || v.tag == TL_V_TUPLE;
}

/* Is there a function in it? */
static bool holds_functions(tl_value v, int depth)
{
    if (v.tag == TL_V_FN) {
        return true;
    }
    for (size_t i = 0; is_list(v) && depth < MAX_DEPTH && i < v.seq->len;
         i++) {
        if (holds_functions(v.seq->items[i], depth + 1)) {
            return true;
        }
    }
    return false;
}

/* Functions, and lists of them; other values stay. */
static tl_status redirect_functions(copier *c, tl_value v, tl_value *out)
{
    tl_value list, item;
    tl_tag tag = v.tag;

    if (v.tag == TL_V_FN) {
        return redirect_fn(c, v.fn, out);
    }
    if (!holds_functions(v, 0)) {
        *out = tl_ref(v);
        return TL_OK;
    }
    TL_TRY(tl_seq_new_take(&list, TL_V_LIST, NULL, 0, c->ev->diag));
    for (size_t i = 0; i < v.seq->len; i++) {
        tl_status st = redirect_functions(c, v.seq->items[i], &item);

        if (st == TL_OK) {
            st = tl_list_push_take(list.seq, item, c->ev->diag);
        }
        if (st != TL_OK) {
            tl_unref(list);
            return st;
        }
    }
    list.obj->tag = (uint8_t)tag;
    list.tag = tag;
    *out = list;
    return TL_OK;
}

static tl_status redirect_field(copier *c, const tl_fielddef *f, tl_value *v)
{
    tl_value to;

    if (holds_functions(*v, 0)) {
        TL_TRY(redirect_functions(c, *v, &to));
    } else if (tl_field_is_referred(f) ||
               (v->tag == TL_V_CELL && !TL_FIELD_IS_CELL(f->class_))) {
        if (v->tag != TL_V_SELECT && !all_made(c, *v)) {
            return TL_OK;
        }
        TL_TRY(redirect(c, *v, &to));
    } else {
        return TL_OK;
    }
    tl_unref(*v);
    *v = to;
    return TL_OK;
}

static tl_status redirect_all(copier *c)
{
    size_t n = c->modules.len;

    for (size_t k = 0; k < n; k++) {
        tl_module *m = c->modules.items[k];
        const tl_moddef *def = tl_module_def(m);

        for (uint32_t i = 0; i < def->nfields; i++) {
            TL_TRY(redirect_field(c, &def->fields[i], &m->fields[i]));
        }
    }
    return TL_OK;
}

tl_status tl_module_copy(tl_eval *ev, tl_value root, tl_value *out)
{
    copier c = {.ev = ev};
    tl_value copy;
    tl_status st;

    if (root.tag == TL_V_UNKNOWN) {
        *out = root;
        return TL_OK;
    }
    if (!holds_modules(root, 0)) {
        tl_fail(ev->diag, TL_E0210, "copy() takes a module or a cell, got %s",
                tl_value_type_str(root).s);
        tl_diag_help(ev->diag, "values do not change: there is no need to "
                               "copy one");
        return TL_ERR_PROGRAM;
    }
    tl_map_init(&c.made);
    st = copy_value(&c, root, &copy);
    if (st == TL_OK) {
        st = redirect_all(&c);
        if (st != TL_OK) {
            tl_unref(copy);
        }
    }
    tl_map_fini(&c.made);
    tl_free(c.modules.items);
    if (st == TL_OK) {
        *out = copy;
    }
    return st;
}

/* ---- assign(net, other) ------------------------------------------------ */

/* The first path that one has and the other has not at its place. */
static tl_status check_paths(tl_eval *ev, const tl_path_list *to,
                             const tl_path_list *from)
{
    for (size_t i = 0; i < to->len && i < from->len; i++) {
        const char *a = to->items[i].path->data;
        const char *b = from->items[i].path->data;

        if (strcmp(a, b) != 0) {
            return tl_fail(ev->diag, TL_E0512,
                           "assign: one module has `%s` where the other has "
                           "`%s`", a, b);
        }
    }
    return to->len == from->len
               ? TL_OK
               : tl_fail(ev->diag, TL_E0512,
                         "assign: one module has %zu cells, the other %zu",
                         to->len, from->len);
}

/* All values first, checked, then all writes: every cell, or none. */
static tl_status move_values(tl_eval *ev, const tl_path_list *to,
                             const tl_path_list *from, tl_value *values)
{
    size_t n = 0;
    tl_status st = TL_OK;

    while (n < to->len && st == TL_OK) {
        st = tl_cell_read(ev, from->items[n].cell, &values[n]);
        if (st == TL_OK) {
            st = tl_cell_fit(ev, to->items[n].cell, &values[n]);
            n++; /* to be released */
        }
    }
    for (size_t i = 0; i < n && st == TL_OK; i++) {
        tl_value v = values[i];

        values[i] = tl_none();
        st = ev->domain->cell_set(ev, to->items[i].cell, v);
    }
    tl_unref_all(values, n);
    return st;
}

tl_status tl_module_assign(tl_eval *ev, tl_value to, tl_value from)
{
    tl_path_list a = {0}, b = {0};
    tl_value *values;
    tl_status st = tl_paths(ev, to, TL_CELLS_ALL, &a);

    if (st == TL_OK) {
        st = tl_paths(ev, from, TL_CELLS_ALL, &b);
    }
    if (st == TL_OK) {
        st = check_paths(ev, &a, &b);
    }
    if (st == TL_OK) {
        values = tl_calloc(a.len + 1, sizeof(*values));
        st = values ? move_values(ev, &a, &b, values)
                    : tl_fail_memory(ev->diag, "values",
                                     a.len * sizeof(*values));
        tl_free(values);
    }
    tl_path_list_fini(&a);
    tl_path_list_fini(&b);
    return st;
}
