/* path.c - walks over the cells and modules below a value.
 *
 * A path is field names, list positions and dict keys joined by dots, in the
 * order of definition.  References go from modules to cells and children and
 * never back, so a walk ends; a module that is met again is entered again
 * only for its other paths (TL_PATHS_ALIASES). */
#include "interp/module.h"

#include <string.h>

#include "interp/dict.h"
#include "interp/domain.h"
#include "interp/free.h"
#include "runtime/base/mem.h"
#include "runtime/base/vec.h"

#define MAX_DEPTH 1000

typedef struct walk {
    tl_eval *ev;
    unsigned kinds;
    tl_path_list *list; /* NULL: modules are wanted, not cells */
    tl_map seen;        /* cell -> index + 1; module -> itself */
    tl_buf path;
    int depth;
    struct {
        tl_module **items;
        size_t len, cap;
    } modules;
} walk;

static tl_status walk_value(walk *w, tl_value v);

/* ---- names ------------------------------------------------------------- */

static size_t enter(walk *w, const char *name, size_t len)
{
    size_t mark = w->path.len;

    if (mark > 0) {
        tl_buf_putc(&w->path, '.');
    }
    tl_buf_add(&w->path, name, len);
    return mark;
}

static size_t enter_number(walk *w, int64_t i)
{
    size_t mark = w->path.len;

    tl_buf_printf(&w->path, mark > 0 ? ".%lld" : "%lld", (long long)i);
    return mark;
}

static void leave(walk *w, size_t mark)
{
    if (!w->path.failed) {
        w->path.len = mark;
    }
}

static const char *type_name(const tl_ast *type)
{
    if (type && type->kind == TL_AST_TYPE_OPT) {
        type = TL_AST(type_opt, type)->type;
    }
    if (!type || type->kind != TL_AST_TYPE_NAME) {
        return "";
    }
    type = TL_AST(type_name, type)->name;
    return type->kind == TL_AST_NAME ? TL_AST(name, type)->name->text : "";
}

bool tl_field_is_referred(const tl_fielddef *field)
{
    return field->class_ == TL_FIELD_HEADER &&
           strcmp(type_name(field->type), "cells") == 0;
}

bool tl_field_is_starred(const tl_fielddef *field)
{
    return field->class_ == TL_FIELD_HEADER && field->decl &&
           field->decl->kind == TL_AST_PARAM &&
           TL_AST(param, field->decl)->star != 0;
}

/* ---- the walk ---------------------------------------------------------- */

static tl_status found_cell(walk *w, tl_cell *cell)
{
    tl_path_item item = {.cell = cell, .first = w->list ? w->list->len : 0};
    size_t seen;
    tl_value path;

    if (!w->list || !(w->kinds >> cell->kind & 1)) {
        return TL_OK;
    }
    seen = (size_t)(uintptr_t)tl_map_get(&w->seen, cell, NULL);
    if (seen) {
        item.first = seen - 1;
    } else if (!tl_map_set(&w->seen, cell,
                           (void *)(uintptr_t)(w->list->len + 1))) {
        return tl_fail_memory(w->ev->diag, "paths", sizeof(item));
    }
    if (w->path.len == 0 && !w->path.failed && cell->name) {
        /* the root is a cell */
        path = tl_ref((tl_value){.tag = TL_V_STR, .str = cell->name});
    } else {
        TL_TRY(tl_str_from_buf(&path, &w->path, w->ev->diag));
    }
    item.path = path.str;
    if (TL_VEC_PUSH(w->list, item, w->ev->diag) != TL_OK) {
        tl_unref(path);
        return TL_ERR_MEMORY;
    }
    return TL_OK;
}

static tl_status walk_module(walk *w, tl_module *m)
{
    const tl_moddef *def = tl_module_def(m);

    if (tl_map_get(&w->seen, m, NULL)) {
        if (!(w->kinds & TL_PATHS_ALIASES)) {
            return TL_OK;
        }
    } else {
        if (!tl_map_set(&w->seen, m, m)) {
            return tl_fail_memory(w->ev->diag, "paths", sizeof(m));
        }
        if (!w->list) {
            TL_TRY(TL_VEC_PUSH(&w->modules, m, w->ev->diag));
        }
    }
    for (uint32_t i = 0; i < def->nfields; i++) {
        const tl_fielddef *f = &def->fields[i];
        size_t mark = w->path.len;

        if (tl_field_is_referred(f) && !(w->kinds & TL_PATHS_REFERRED)) {
            continue;
        }
        if (TL_FIELD_IS_CELL(f->class_)) {
            if (m->fields[i].tag == TL_V_CELL) {
                enter(w, f->name->text, f->name->len);
                TL_TRY(found_cell(w, m->fields[i].cell));
            }
        } else if (m->fields[i].tag != TL_V_CELL) {
            /* a cell in a constant is a reference to somebody else's */
            if (!tl_field_is_starred(f)) {
                enter(w, f->name->text, f->name->len);
            }
            TL_TRY(walk_value(w, m->fields[i]));
        }
        leave(w, mark);
    }
    return TL_OK;
}

static bool may_hold_modules(tl_value v)
{
    switch (v.tag) {
    case TL_V_MODULE:
    case TL_V_LIST:
    case TL_V_TUPLE:
    case TL_V_DICT:
    case TL_V_CELL:
    case TL_V_SELECT:
        return true;
    default:
        return false;
    }
}

static tl_status walk_seq(walk *w, const tl_seq *seq)
{
    for (size_t i = 0; i < seq->len; i++) {
        size_t mark;

        if (!may_hold_modules(seq->items[i])) {
            continue;
        }
        mark = enter_number(w, (int64_t)i);
        TL_TRY(walk_value(w, seq->items[i]));
        leave(w, mark);
    }
    return TL_OK;
}

/* A dot or a control character would make paths ambiguous or unreadable. */
static bool good_key(const tl_str *s)
{
    for (size_t i = 0; i < s->len; i++) {
        unsigned char c = (unsigned char)s->data[i];

        if (c == '.' || c < ' ' || c == 0x7f) {
            return false;
        }
    }
    return s->len > 0;
}

static tl_status enter_key(walk *w, const tl_dict_entry *e, size_t *mark)
{
    if (e->key.tag == TL_V_INT) {
        *mark = enter_number(w, e->key.i);
        return TL_OK;
    }
    if (e->key.tag != TL_V_STR) {
        return tl_fail(w->ev->diag, TL_E0210,
                       "a dict of modules needs str or int keys, got %s",
                       tl_value_type_str(e->key).s);
    }
    if (!good_key(e->key.str)) {
        tl_buf text = {0};

        tl_buf_put_escaped(&text, e->key.str->data, e->key.str->len);
        tl_fail(w->ev->diag, TL_E0210,
                "\"%s\" cannot be part of a path: a key of a dict of modules "
                "has no dot and is not empty",
                tl_buf_str(&text));
        tl_buf_fini(&text);
        return TL_ERR_PROGRAM;
    }
    *mark = enter(w, e->key.str->data, e->key.str->len);
    return TL_OK;
}

/* Does a list or dict hold a module or cell at any depth?  Keys of plain
 * dicts are nobody's business. */
static bool holds_modules(tl_value v, int depth)
{
    if (v.tag == TL_V_LIST || v.tag == TL_V_TUPLE) {
        for (size_t i = 0; i < v.seq->len; i++) {
            if (depth < MAX_DEPTH &&
                holds_modules(v.seq->items[i], depth + 1)) {
                return true;
            }
        }
        return false;
    }
    if (v.tag == TL_V_DICT) {
        for (size_t i = 0; i < v.dict->len; i++) {
            const tl_dict_entry *e = &v.dict->entries[i];

            if (depth < MAX_DEPTH && e->key.tag != TL_V_EMPTY &&
                holds_modules(e->value, depth + 1)) {
                return true;
            }
        }
        return false;
    }
    return may_hold_modules(v);
}

static tl_status walk_dict(walk *w, const tl_dict *d)
{
    for (size_t i = 0; i < d->len; i++) {
        const tl_dict_entry *e = &d->entries[i];
        size_t mark = 0;

        if (e->key.tag == TL_V_EMPTY || !holds_modules(e->value, 0)) {
            continue;
        }
        TL_TRY(enter_key(w, e, &mark));
        TL_TRY(walk_value(w, e->value));
        leave(w, mark);
    }
    return TL_OK;
}

static tl_status walk_value(walk *w, tl_value v)
{
    tl_status st;

    if (w->depth >= MAX_DEPTH) {
        return tl_fail(w->ev->diag, TL_E0224,
                       "modules are nested deeper than %d", MAX_DEPTH);
    }
    w->depth++;
    switch (v.tag) {
    case TL_V_MODULE:
        st = walk_module(w, v.module);
        break;
    case TL_V_LIST:
    case TL_V_TUPLE:
        st = walk_seq(w, v.seq);
        break;
    case TL_V_DICT:
        st = walk_dict(w, v.dict);
        break;
    case TL_V_CELL:
        st = found_cell(w, v.cell);
        break;
    default:
        st = TL_OK;
        break;
    }
    w->depth--;
    return st;
}

/* ---- selections -------------------------------------------------------- */

void tl_select_free(tl_obj *obj)
{
    tl_select *s = (tl_select *)obj;

    tl_unref(s->root);
    tl_unref((tl_value){.tag = TL_V_STR, .str = s->glob});
}

bool tl_glob_match(const char *glob, const char *path)
{
    const char *star = NULL, *resume = NULL;
    const char *g = glob, *p = path;

    if (strncmp(glob, "*.", 2) == 0 && tl_glob_match(glob + 2, path)) {
        return true;
    }
    while (*p) {
        if (*g == '*') {
            star = g++;
            resume = p;
        } else if (*g == *p) {
            g++;
            p++;
        } else if (star) { /* let the last star take one more */
            g = star + 1;
            p = ++resume;
        } else {
            return false;
        }
    }
    while (*g == '*') {
        g++;
    }
    return *g == '\0';
}

/* Keep the items from `from` on whose path fits. */
static void keep_matching(tl_path_list *list, size_t from, const char *glob)
{
    size_t len = from;

    for (size_t i = from; i < list->len; i++) {
        tl_path_item item = list->items[i];

        if (!tl_glob_match(glob, item.path->data)) {
            tl_unref((tl_value){.tag = TL_V_STR, .str = item.path});
            continue;
        }
        list->items[len++] = item;
    }
    list->len = len;
}

/* Set `first` anew, after items have gone. */
static tl_status find_first(walk *w)
{
    tl_map_fini(&w->seen);
    tl_map_init(&w->seen);
    for (size_t i = 0; i < w->list->len; i++) {
        tl_path_item *item = &w->list->items[i];
        size_t seen =
            (size_t)(uintptr_t)tl_map_get(&w->seen, item->cell, NULL);

        item->first = seen ? seen - 1 : i;
        if (!seen &&
            !tl_map_set(&w->seen, item->cell, (void *)(uintptr_t)(i + 1))) {
            return tl_fail_memory(w->ev->diag, "paths", sizeof(*item));
        }
    }
    return TL_OK;
}

static tl_status walk_root(walk *w, tl_value root)
{
    if (root.tag == TL_V_SELECT) {
        TL_TRY(walk_root(w, root.select->root));
        keep_matching(w->list, 0, root.select->glob->data);
        return find_first(w);
    }
    if (!may_hold_modules(root)) {
        return tl_fail(w->ev->diag, TL_E0210,
                       "expected a module, a cell or a selection, got %s",
                       tl_value_type_str(root).s);
    }
    return walk_value(w, root);
}

tl_status tl_paths(tl_eval *ev, tl_value root, unsigned kinds,
                   tl_path_list *out)
{
    tl_path_list list = {0};
    walk w = {.ev = ev, .kinds = kinds, .list = &list};
    tl_status st;

    tl_map_init(&w.seen);
    tl_buf_init(&w.path);
    st = walk_root(&w, root);
    tl_buf_fini(&w.path);
    tl_map_fini(&w.seen);
    if (st != TL_OK) {
        tl_path_list_fini(&list);
        return st;
    }
    *out = list;
    return TL_OK;
}

void tl_path_list_fini(tl_path_list *list)
{
    for (size_t i = 0; i < list->len; i++) {
        tl_unref((tl_value){.tag = TL_V_STR, .str = list->items[i].path});
    }
    tl_free(list->items);
    *list = (tl_path_list){0};
}

/* ---- modules ----------------------------------------------------------- */

tl_status tl_modules_below(tl_eval *ev, tl_value root, tl_module ***out,
                           size_t *n)
{
    walk w = {.ev = ev};
    tl_status st = TL_OK;

    tl_map_init(&w.seen);
    tl_buf_init(&w.path);
    if (root.tag != TL_V_SELECT && root.tag != TL_V_CELL) {
        st = walk_root(&w, root);
    }
    tl_buf_fini(&w.path);
    tl_map_fini(&w.seen);
    if (st != TL_OK) {
        tl_free(w.modules.items);
        return st;
    }
    *out = w.modules.items;
    *n = w.modules.len;
    return TL_OK;
}

bool tl_training_now(tl_eval *ev)
{
    for (const tl_frame *f = ev->frame; f; f = f->caller) {
        if (f->self) {
            bool training = f->self->forced ? f->self->forced == 2
                                            : f->self->training > 0;

            if (ev->domain->saw_mode) {
                ev->domain->saw_mode(ev, f->self);
            }
            return training;
        }
    }
    return ev->grads != NULL || ev->in_grad;
}
