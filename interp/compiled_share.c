/* compiled_share.c - one program for modules of the same structure.
 *
 * An entry belongs to certain modules: its steps, modes and cells name them.
 * Its *structure* is what the modules below its roots are like, apart from
 * which they are and what their cells hold: code, constants, which module or
 * cell is met where.  Modules and cells are numbered as they are met, so that
 * sharing is part of it.  A call with other modules of the same structure gets
 * a copy of the entry that names those instead: nothing is traced or compiled
 * again (LANGUAGE.md 8). */
#include <string.h>

#include "interp/compiled_impl.h"
#include "interp/dict.h"
#include "interp/record.h"
#include "runtime/base/mem.h"
#include "runtime/base/vec.h"

enum {
    MAX_BYTES = 1 << 14, /* of a constant tensor: larger ones are not compared,
                            and their programs not shared */
    MAX_DEPTH = 200
};

/* ---- the structure ------------------------------------------------------ */

typedef struct walker {
    tl_buf text;
    tl_map known; /* module or cell -> number + 1 */
    TL_GARRAY(tl_module *) modules;
    TL_GARRAY(tl_cell *) cells;
    bool inside; /* of a module: what is constant there is constant for the
                    program, while what roots hold stands in the steps */
    bool ok;     /* false: it cannot be told, or there is no memory */
    int depth;
    tl_diag *diag;
} walker;

static void walker_init(walker *w, tl_diag *diag)
{
    *w = (walker){.ok = true, .diag = diag};
    tl_buf_init(&w->text);
    tl_map_init(&w->known);
}

static void walker_fini(walker *w)
{
    tl_buf_fini(&w->text);
    tl_map_fini(&w->known);
    tl_free(w->modules.items);
    tl_free(w->cells.items);
}

static void put(walker *w, const void *bytes, size_t n)
{
    tl_buf_add(&w->text, bytes, n);
}

static void put_number(walker *w, uint64_t n)
{
    put(w, &n, sizeof(n));
}

static void put_address(walker *w, const void *p)
{
    put_number(w, (uint64_t)(uintptr_t)p);
}

/* Was the object met before?  Else it gets the number n. */
static bool was_met(walker *w, const void *object, size_t n)
{
    uintptr_t number = (uintptr_t)tl_map_get(&w->known, object, NULL);

    put_number(w, number != 0 ? number : n + 1);
    if (number == 0 &&
        !tl_map_set(&w->known, object, (void *)(uintptr_t)(n + 1))) {
        w->ok = false;
    }
    return number != 0;
}

static void walk(walker *w, tl_value v);

static void walk_items(walker *w, const tl_value *items, size_t n)
{
    put_number(w, n);
    for (size_t i = 0; i < n && w->ok; i++) {
        walk(w, items[i]);
    }
}

static void walk_tensor(walker *w, const tl_tensor *t)
{
    size_t n = (size_t)t->numel * tl_dtype_size(t->dtype);
    void *bytes = w->inside && n <= MAX_BYTES ? tl_malloc(n + 1) : NULL;

    if (bytes == NULL) {
        w->ok = w->ok && !w->inside;
        return;
    }
    put_number(w, (uint64_t)t->dtype << 8 | (uint64_t)t->rank);
    put(w, t->size, (size_t)t->rank * sizeof(t->size[0]));
    tl_tensor_read(t, bytes);
    put(w, bytes, n);
    tl_free(bytes);
}

static void walk_module(walker *w, tl_module *m)
{
    bool inside = w->inside;

    if (was_met(w, m, w->modules.len)) {
        return;
    }
    if (TL_VEC_PUSH(&w->modules, m, w->diag) != TL_OK) {
        (void)tl_diag_pop(w->diag);
        w->ok = false;
        return;
    }
    put_address(w, m->cls->code);
    put_address(w, m->cls->ns);
    put_number(w, (uint64_t)m->ready << 1 | (m->view_of != NULL));
    w->inside = true;
    walk_items(w, m->fields, tl_module_def(m)->nfields);
    w->inside = inside;
}

static void walk_cell(walker *w, tl_cell *c)
{
    if (was_met(w, c, w->cells.len)) {
        return;
    }
    if (TL_VEC_PUSH(&w->cells, c, w->diag) != TL_OK) {
        (void)tl_diag_pop(w->diag);
        w->ok = false;
        return;
    }
    put_number(w, (uint64_t)c->kind | (uint64_t)c->hold << 8 |
                      (uint64_t)c->has_type << 16 |
                      (uint64_t)c->dtype << 24 | (uint64_t)c->rank << 32);
    put(w, c->size, (size_t)c->rank * sizeof(c->size[0]));
}

static void walk_fn(walker *w, const tl_fn *fn)
{
    put_address(w, fn->code);
    put_address(w, fn->ns);
    put_number(w, fn->self != NULL);
    if (fn->self != NULL) {
        walk_module(w, fn->self);
    }
    walk_items(w, fn->captures, fn->ncaptures);
}

static void walk_dict(walker *w, const tl_dict *d)
{
    size_t at = 0;

    put_number(w, d->live);
    for (tl_dict_entry *e; w->ok && (e = tl_dict_next(d, &at)) != NULL;) {
        bool inside = w->inside;

        w->inside = true;
        walk(w, e->key);
        w->inside = inside;
        walk(w, e->value);
    }
}

static void walk_text(walker *w, const tl_str *s)
{
    put_number(w, s->len);
    put(w, s->data, s->len);
}

/* What only steps know. */
static void walk_plain(walker *w, tl_value v)
{
    switch (v.tag) {
    case TL_V_BOOL:
        put_number(w, v.b);
        break;
    case TL_V_DTYPE:
        put_number(w, (uint64_t)v.dtype);
        break;
    case TL_V_STR:
        walk_text(w, v.str);
        break;
    case TL_V_RANGE:
        put_number(w, (uint64_t)v.range->start);
        put_number(w, (uint64_t)v.range->stop);
        put_number(w, (uint64_t)v.range->step);
        break;
    case TL_V_INT:
    case TL_V_FLOAT:
    case TL_V_BUILTIN:
        put_number(w, (uint64_t)v.i);
        break;
    case TL_V_EMPTY:
    case TL_V_NONE:
    case TL_V_ELLIPSIS:
        break;
    default:
        w->ok = false;
        break;
    }
}

/* dispatch over the kinds of values */
static void walk(walker *w, tl_value v)
{
    put_number(w, v.tag);
    if (++w->depth > MAX_DEPTH) {
        w->ok = false;
    }
    if (!w->ok) {
        return;
    }
    switch (v.tag) {
    case TL_V_TENSOR:
        walk_tensor(w, v.tensor);
        break;
    case TL_V_LIST:
    case TL_V_TUPLE:
        walk_items(w, v.seq->items, v.seq->len);
        break;
    case TL_V_DICT:
        walk_dict(w, v.dict);
        break;
    case TL_V_RECORD:
        put_address(w, v.record->cls->code);
        walk_items(w, v.record->fields, v.record->cls->code->params.len);
        break;
    case TL_V_MODULE:
        walk_module(w, v.module);
        break;
    case TL_V_CELL:
        w->ok = w->ok && w->inside; /* steps know others by address */
        walk_cell(w, v.cell);
        break;
    case TL_V_FN:
        walk_fn(w, v.fn);
        break;
    case TL_V_METHOD:
        put_address(w, v.method->code);
        put_address(w, v.method->builtin);
        walk(w, v.method->self);
        break;
    case TL_V_CLASS:
        put_address(w, v.cls->code);
        put_address(w, v.cls->ns);
        break;
    case TL_V_NAMESPACE:
        put_address(w, v.ns);
        break;
    case TL_V_TREE:
        w->ok = w->ok && !w->inside;
        walk(w, v.tree->scaler);
        break;
    default:
        if (w->inside) {
            walk_plain(w, v);
        } else if (v.tag == TL_V_SELECT || v.tag == TL_V_CONTEXT) {
            w->ok = false;
        }
        break;
    }
    w->depth--;
}

static void walk_roots(walker *w, const tl_entry *e, const tl_ccall *call)
{
    for (size_t i = 0; i < e->roots.len && w->ok; i++) {
        walk(w, tl_root_value(&e->roots.items[i], call));
    }
    w->ok = w->ok && !w->text.failed;
}

/* ---- what an entry notes ------------------------------------------------- */

/* Does a pattern name no module or cell? */
static bool is_plain(tl_value v, int depth);

static bool are_plain(const tl_value *items, size_t n, int depth)
{
    for (size_t i = 0; i < n; i++) {
        if (!is_plain(items[i], depth - 1)) {
            return false;
        }
    }
    return true;
}

static bool is_plain(tl_value v, int depth)
{
    size_t at = 0;

    if (depth == 0) {
        return false;
    }
    switch (v.tag) {
    case TL_V_LIST:
    case TL_V_TUPLE:
        return are_plain(v.seq->items, v.seq->len, depth);
    case TL_V_RECORD:
        return are_plain(v.record->fields,
                         tl_record_nfields(v.record), depth);
    case TL_V_DICT:
        for (tl_dict_entry *e; (e = tl_dict_next(v.dict, &at)) != NULL;) {
            if (!is_plain(e->value, depth - 1)) {
                return false;
            }
        }
        return true;
    case TL_V_TREE:
        return v.tree->scaler.tag == TL_V_EMPTY;
    case TL_V_FN:
    case TL_V_METHOD:
    case TL_V_MODULE:
    case TL_V_CELL:
    case TL_V_SELECT:
    case TL_V_CONTEXT:
        return false;
    default:
        return true;
    }
}

static bool patterns_are_plain(const tl_entry *e)
{
    bool plain = is_plain(e->result, MAX_DEPTH) &&
                 are_plain(e->effects, e->neffects, MAX_DEPTH);

    for (size_t i = 0; plain && i < e->ncells; i++) {
        plain = is_plain(e->cells[i].pattern, MAX_DEPTH);
    }
    return plain;
}

void tl_entry_share_fini(tl_sharing *s)
{
    tl_free(s->text);
    tl_free(s->serials);
    tl_free(s->cells);
    tl_free(s->modes);
    memset(s, 0, sizeof(*s));
}

/* The numbers of the entry's cells and of the modules of its modes. */
static bool number(const walker *w, const tl_entry *e, tl_sharing *s)
{
    for (size_t i = 0; i < w->modules.len; i++) {
        s->serials[i] = w->modules.items[i]->serial;
    }
    for (size_t i = 0; i < e->ncells; i++) {
        s->cells[i] = (uint32_t)(uintptr_t)tl_map_get(&w->known,
                                                      e->cells[i].cell, NULL);
        if (s->cells[i]-- == 0) {
            return false;
        }
    }
    for (size_t i = 0; i < e->modes.len; i++) {
        s->modes[i] = (uint32_t)(uintptr_t)tl_map_get(
            &w->known, e->modes.items[i].module, NULL);
        if (s->modes[i]-- == 0) {
            return false;
        }
    }
    return true;
}

void tl_entry_note_structure(tl_eval *ev, tl_entry *e, const tl_ccall *call)
{
    tl_sharing *s = &e->sharing;
    walker w;

    walker_init(&w, ev->diag);
    walk_roots(&w, e, call);
    if (w.ok && w.modules.len > 0 && patterns_are_plain(e)) {
        s->nmodules = w.modules.len;
        s->len = w.text.len;
        s->text = tl_malloc(s->len);
        s->serials = tl_calloc(s->nmodules, sizeof(*s->serials));
        s->cells = tl_calloc(e->ncells + 1, sizeof(*s->cells));
        s->modes = tl_calloc(e->modes.len + 1, sizeof(*s->modes));
        if (s->text && s->serials && s->cells && s->modes) {
            memcpy(s->text, w.text.data, s->len);
            s->ok = number(&w, e, s);
        }
    }
    if (!s->ok) {
        tl_entry_share_fini(s);
    }
    walker_fini(&w);
}

/* ---- a copy for other modules ------------------------------------------- */

/* The serial of the module that stands in the place of another one. */
static uint64_t other_serial(const tl_sharing *s, const walker *w,
                             uint64_t serial)
{
    for (size_t i = 0; i < s->nmodules; i++) {
        if (s->serials[i] == serial) {
            return w->modules.items[i]->serial;
        }
    }
    return 0; /* of none: it will not match */
}

static tl_status copy_steps(tl_eval *ev, const tl_entry *e, const walker *w,
                            tl_entry *c)
{
    bool self = false; /* the step after a function's tells its module */

    for (size_t i = 0; i < e->steps.len; i++) {
        tl_shape_of step = e->steps.items[i];

        if (step.tag == TL_V_MODULE) {
            step.bits = other_serial(&e->sharing, w, step.bits);
        } else if (self && step.bits != 0) {
            step.bits = other_serial(&e->sharing, w, step.bits - 1) + 1;
        }
        self = step.tag == TL_V_FN && !self;
        TL_TRY(TL_VEC_PUSH(&c->steps, step, ev->diag));
        tl_ref(step.keep);
        if (step.tree != NULL) {
            (void)tl_tree_shape_ref(step.tree);
        }
    }
    return TL_OK;
}

static tl_status copy_lists(tl_eval *ev, const tl_entry *e, const walker *w,
                            tl_entry *c)
{
    for (size_t i = 0; i < e->roots.len; i++) {
        TL_TRY(TL_VEC_PUSH(&c->roots, e->roots.items[i], ev->diag));
    }
    for (size_t i = 0; i < e->inputs.len; i++) {
        TL_TRY(TL_VEC_PUSH(&c->inputs, e->inputs.items[i], ev->diag));
    }
    for (size_t i = 0; i < e->modes.len; i++) {
        tl_tmode mode = e->modes.items[i];

        mode.module = w->modules.items[e->sharing.modes[i]];
        TL_TRY(TL_VEC_PUSH(&c->modes, mode, ev->diag));
    }
    return TL_OK;
}

static tl_status copy_cells(tl_eval *ev, const tl_entry *e, const walker *w,
                            tl_entry *c)
{
    c->cells = tl_calloc(e->ncells + 1, sizeof(*c->cells));
    c->effects = tl_calloc(e->neffects + 1, sizeof(*c->effects));
    c->pins = tl_calloc(e->npins + 1, sizeof(*c->pins));
    c->names = tl_calloc(e->nkw + 1, sizeof(*c->names));
    if (!c->cells || !c->effects || !c->pins || !c->names) {
        return tl_fail_memory(ev->diag, "cells of a program",
                              e->ncells * sizeof(*c->cells));
    }
    for (; c->ncells < e->ncells; c->ncells++) {
        const tl_ecell *from = &e->cells[c->ncells];

        c->cells[c->ncells] =
            (tl_ecell){.cell = w->cells.items[e->sharing.cells[c->ncells]],
                       .first = from->first, .len = from->len,
                       .read = from->read, .written = from->written,
                       .pattern = tl_ref(from->pattern), .leaf = from->leaf,
                       .nleaves = from->nleaves};
    }
    for (; c->neffects < e->neffects; c->neffects++) {
        c->effects[c->neffects] = tl_ref(e->effects[c->neffects]);
    }
    for (; c->npins < e->npins; c->npins++) {
        c->pins[c->npins] = tl_ref(e->pins[c->npins]);
    }
    memcpy((void *)c->names, (void *)e->names, e->nkw * sizeof(*c->names));
    return TL_OK;
}

/* The copy's own structure is the same, with its own serials. */
static tl_status copy_structure(tl_eval *ev, const tl_entry *e,
                                const walker *w, tl_entry *c)
{
    const tl_sharing *s = &e->sharing;
    tl_sharing *to = &c->sharing;

    to->text = tl_malloc(s->len);
    to->serials = tl_calloc(s->nmodules, sizeof(*to->serials));
    to->cells = tl_calloc(e->ncells + 1, sizeof(*to->cells));
    to->modes = tl_calloc(e->modes.len + 1, sizeof(*to->modes));
    if (!to->text || !to->serials || !to->cells || !to->modes) {
        return tl_fail_memory(ev->diag, "a program", s->len);
    }
    memcpy(to->text, s->text, s->len);
    memcpy(to->cells, s->cells, e->ncells * sizeof(*to->cells));
    memcpy(to->modes, s->modes, e->modes.len * sizeof(*to->modes));
    for (size_t i = 0; i < s->nmodules; i++) {
        to->serials[i] = w->modules.items[i]->serial;
    }
    to->len = s->len;
    to->nmodules = s->nmodules;
    to->ok = true;
    return TL_OK;
}

/* They run by turns: neither may count on what the program has bound. */
static void share_program(tl_entry *e, tl_entry *c)
{
    c->program = tl_program_ref(e->program);
    c->grad = tl_entry_grad_ref(e->grad);
    e->holds.on = c->holds.on = false;
    e->holds.never = c->holds.never = true;
}

static tl_status copy_entry(tl_eval *ev, tl_entry *e, const walker *w,
                            tl_entry *c)
{
    c->fn = e->fn;
    c->npos = e->npos;
    c->nkw = e->nkw;
    c->no_grad = e->no_grad;
    c->f32_as_f64 = e->f32_as_f64;
    c->in_grad = e->in_grad;
    c->taped = e->taped;
    c->autocast = e->autocast;
    c->result = tl_ref(e->result);
    c->draws = e->draws;
    c->draws_out = e->draws_out;
    c->number = e->number;
    c->nroot_leaves = e->nroot_leaves;
    c->nleaves = e->nleaves;
    c->nresults = e->nresults;
    c->told = true;
    share_program(e, c);
    TL_TRY(copy_steps(ev, e, w, c));
    TL_TRY(copy_lists(ev, e, w, c));
    TL_TRY(copy_cells(ev, e, w, c));
    TL_TRY(copy_structure(ev, e, w, c));
    return tl_entry_make_scratch(ev, c);
}

static bool same_structure(const tl_entry *e, const walker *w)
{
    return w->ok && w->text.len == e->sharing.len &&
           memcmp(w->text.data, e->sharing.text, w->text.len) == 0;
}

/* The copy of `e` for the call; NULL: it has another structure, or does not
 * fit for another reason. */
static tl_entry *try_share(tl_eval *ev, tl_entry *e, const tl_ccall *call)
{
    tl_entry *c = NULL;
    walker w;

    walker_init(&w, ev->diag);
    walk_roots(&w, e, call);
    if (same_structure(e, &w)) {
        c = tl_calloc(1, sizeof(*c));
    }
    if (c != NULL) {
        c->refs = 1;
        if (copy_entry(ev, e, &w, c) != TL_OK) {
            (void)tl_diag_pop(ev->diag);
            tl_entry_unref(c);
            c = NULL;
        }
    }
    if (c != NULL &&
        (!tl_entry_matches(ev, c, call) || !tl_entry_fits(ev, c))) {
        tl_entry_unref(c);
        c = NULL;
    }
    walker_fini(&w);
    return c;
}

tl_entry *tl_entry_share(tl_eval *ev, tl_compiled *f, const tl_ccall *call)
{
    for (tl_entry *e = f->entries; e != NULL; e = e->next) {
        bool may = e->sharing.ok && !e->running &&
                   tl_entry_same_call(ev, e, call);
        tl_entry *c = may ? try_share(ev, e, call) : NULL;

        if (c != NULL) {
            return c;
        }
    }
    return NULL;
}
