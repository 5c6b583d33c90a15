/* module.c - module instances: construction and attributes.
 *
 * An instance has one value for each entry of its definition's field table.
 * The constructor runs in a frame whose slot 0 is the unfinished instance;
 * from its return on only cells change, so references go down and never back.
 *
 * A function made in the constructor may capture the instance, which would be
 * a cycle once a field, a child or a cell keeps it.  It gets a view instead:
 * an instance with the fields set so far, sharing cells and children.  A
 * function that is itself a field is kept with a hole in place of the view;
 * reading the field gives a copy with the hole filled by the instance. */
#include "interp/module.h"

#include <stdio.h>
#include <string.h>

#include "interp/call.h"
#include "interp/dict.h"
#include "interp/domain.h"
#include "interp/free.h"
#include "lang/habits.h"
#include "runtime/base/mem.h"

/* ---- instances --------------------------------------------------------- */

static tl_status instance_new(tl_eval *ev, tl_class *cls, tl_module **out)
{
    uint32_t n = cls->code->module->nfields;
    tl_module *m =
        tl_obj_new(TL_V_MODULE, sizeof(*m) + n * sizeof(tl_value), ev->diag);

    if (!m) {
        return TL_ERR_MEMORY;
    }
    m->cls = tl_ref((tl_value){.tag = TL_V_CLASS, .cls = cls}).cls;
    m->serial = ++ev->next_serial;
    for (uint32_t i = 0; i < n; i++) {
        m->fields[i] = tl_empty();
    }
    *out = m;
    return TL_OK;
}

void tl_module_free(tl_obj *obj)
{
    tl_module *m = (tl_module *)obj;

    tl_unref_all(m->fields, tl_module_def(m)->nfields);
    tl_unref((tl_value){.tag = TL_V_CLASS, .cls = m->cls});
}

const char *tl_class_name(const tl_class *cls)
{
    return cls->code->name ? cls->code->name->text : "?";
}

/* ---- functions that captured the instance ------------------------------ */

static tl_value hole(void)
{
    return (tl_value){.tag = TL_V_BUILTIN, .builtin = NULL};
}

static bool is_hole(tl_value v)
{
    return v.tag == TL_V_BUILTIN && !v.builtin;
}

static bool is_view(tl_value v, const tl_module *m)
{
    return v.tag == TL_V_MODULE && v.module->view_of == m;
}

static bool captures_view(const tl_fn *fn, const tl_module *m)
{
    for (size_t i = 0; i < fn->ncaptures; i++) {
        if (is_view(fn->captures[i], m)) {
            return true;
        }
    }
    return false;
}

static bool has_hole(const tl_fn *fn)
{
    for (size_t i = 0; i < fn->ncaptures; i++) {
        if (is_hole(fn->captures[i])) {
            return true;
        }
    }
    return false;
}

/* A copy of `fn`: with holes in place of views of `m`, or filled by it. */
static tl_status fn_copy(tl_eval *ev, const tl_fn *fn, tl_module *m,
                         bool fill, tl_value *out)
{
    tl_value self = {.tag = TL_V_MODULE, .module = m};
    tl_fn *copy = tl_obj_new(
        TL_V_FN, sizeof(*fn) + fn->ncaptures * sizeof(tl_value), ev->diag);

    if (!copy) {
        return TL_ERR_MEMORY;
    }
    copy->code = fn->code;
    copy->ns = fn->ns;
    copy->ncaptures = fn->ncaptures;
    for (size_t i = 0; i < fn->ncaptures; i++) {
        tl_value c = fn->captures[i];

        if (fill) {
            copy->captures[i] = tl_ref(is_hole(c) ? self : c);
        } else {
            copy->captures[i] = is_view(c, m) ? hole() : tl_ref(c);
        }
    }
    if (fill) {
        copy->self = tl_ref(self).module;
    }
    *out = tl_obj_value_take(copy);
    return TL_OK;
}

/* What a field keeps of `v`, which is taken. */
static tl_status make_hole_take(tl_eval *ev, tl_module *m, tl_value v,
                                tl_value *out)
{
    tl_status st;

    if (v.tag != TL_V_FN || !captures_view(v.fn, m)) {
        *out = v;
        return TL_OK;
    }
    st = fn_copy(ev, v.fn, m, false, out);
    tl_unref(v);
    return st;
}

static tl_status view_new(tl_eval *ev, tl_module *m, tl_value *out)
{
    tl_module *view;

    TL_TRY(instance_new(ev, m->cls, &view));
    for (uint32_t i = 0; i < tl_module_def(m)->nfields; i++) {
        view->fields[i] = tl_ref(m->fields[i]);
    }
    view->ready = true;
    view->view_of = m;
    *out = tl_obj_value_take(view);
    return TL_OK;
}

tl_status tl_module_cut_captures(tl_eval *ev, tl_module *m, tl_value *fn)
{
    tl_value view = tl_empty();

    for (size_t i = 0; i < fn->fn->ncaptures; i++) {
        tl_value *c = &fn->fn->captures[i];

        if (c->tag != TL_V_MODULE || c->module != m) {
            continue;
        }
        if (view.tag == TL_V_EMPTY) {
            tl_status st = view_new(ev, m, &view);

            if (st != TL_OK) {
                tl_drop(fn);
                return st;
            }
        }
        tl_unref(*c);
        *c = tl_ref(view);
    }
    tl_unref(view);
    return TL_OK;
}

/* ---- construction ------------------------------------------------------ */

static const char *last_type_name(const tl_ast *type)
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

static tl_cell_hold hold_of(const tl_ast *type)
{
    const char *name = last_type_name(type);

    if (strcmp(name, "tree") == 0 || strcmp(name, "grads") == 0) {
        return TL_HOLD_TREE;
    }
    if (strcmp(name, "int") == 0) {
        return TL_HOLD_INT;
    }
    if (strcmp(name, "float") == 0) {
        return TL_HOLD_FLOAT;
    }
    return strcmp(name, "bool") == 0 ? TL_HOLD_BOOL : TL_HOLD_TENSOR;
}

static const tl_ast *unwrap_opt(const tl_ast *type)
{
    return type && type->kind == TL_AST_TYPE_OPT
               ? TL_AST(type_opt, type)->type
               : type;
}

/* Is `v` an initialiser, to be called with (shape, dtype)? */
static bool is_initialiser(tl_value v)
{
    return v.tag == TL_V_FN || v.tag == TL_V_METHOD ||
           v.tag == TL_V_BUILTIN || v.tag == TL_V_MODULE;
}

/* Dtype and sizes that the annotation declares. */
static tl_status declare(tl_eval *ev, tl_cell *cell, const tl_ast *type)
{
    bool known = false;

    type = unwrap_opt(type);
    if (cell->hold != TL_HOLD_TENSOR || !type) {
        return TL_OK;
    }
    TL_TRY(tl_declared_sizes(ev, type, &known, &cell->dtype, &cell->rank,
                             cell->size));
    cell->has_type = known;
    if (known && cell->kind == TL_CELL_PARAM &&
        !tl_dtype_is_float(cell->dtype)) {
        tl_fail_at(ev->diag, TL_E0322, type->span,
                   "`param %s` has dtype %s: only float tensors are trained",
                   cell->name->data, tl_dtype_name(cell->dtype));
        tl_diag_help(ev->diag, "`buffer %s` is saved and not trained",
                     cell->name->data);
        return TL_ERR_PROGRAM;
    }
    return TL_OK;
}

/* What the statement `param f: T = v`, `buffer ...` or `f: float = v` says. */
typedef struct cell_decl {
    const tl_ast_name *target;
    const tl_ast *type;
    const tl_ast *value;
    tl_cell_kind kind;
} cell_decl;

/* A cell that another module has: does it fit here? */
static tl_status check_shared(tl_eval *ev, const cell_decl *d,
                              const tl_cell *wanted, const tl_cell *cell)
{
    if (wanted->hold != cell->hold || wanted->kind != cell->kind) {
        return tl_fail_at(ev->diag, TL_E0210, d->value->span,
                          "`%s` cannot share `%s`: one is a tensor to train, "
                          "the other is not",
                          d->target->name->text,
                          cell->name ? cell->name->data : "?");
    }
    if (!wanted->has_type || !cell->has_type) {
        return TL_OK;
    }
    if (wanted->dtype != cell->dtype) {
        return tl_fail_at(ev->diag, TL_E0308, d->value->span,
                          "`%s` is %s, the shared cell `%s` is %s",
                          d->target->name->text, tl_dtype_name(wanted->dtype),
                          cell->name->data, tl_dtype_name(cell->dtype));
    }
    if (wanted->rank != cell->rank) {
        return tl_fail_at(ev->diag, TL_E0304, d->value->span,
                          "`%s` has rank %d, the shared cell `%s` has %d",
                          d->target->name->text, wanted->rank,
                          cell->name->data, cell->rank);
    }
    for (int i = 0; i < cell->rank; i++) {
        if (wanted->size[i] >= 0 && cell->size[i] >= 0 &&
            wanted->size[i] != cell->size[i]) {
            return tl_fail_at(ev->diag, TL_E0312, d->value->span,
                              "dimension %d of `%s` is %lld, of the shared "
                              "cell `%s` %lld",
                              i, d->target->name->text,
                              (long long)wanted->size[i], cell->name->data,
                              (long long)cell->size[i]);
        }
    }
    return TL_OK;
}

/* Give the new cell what the right side says; takes `v`. */
static tl_status start_cell_take(tl_eval *ev, const cell_decl *d,
                                 tl_cell *cell, tl_value v)
{
    char what[80];
    tl_status st;

    if (is_initialiser(v) && cell->hold == TL_HOLD_TENSOR) {
        st = declare(ev, cell, d->type);
        if (st == TL_OK && !cell->has_type) {
            st = tl_fail_at(ev->diag, TL_E0312, d->target->base.span,
                            "an initialiser needs the sizes of `%s`",
                            d->target->name->text);
            tl_diag_help(ev->diag, "declare them: `f32[n, m]`");
        }
        if (st != TL_OK) {
            tl_unref(v);
            return st;
        }
        cell->init = v;
        return TL_OK;
    }
    if (cell->hold == TL_HOLD_TENSOR && v.tag != TL_V_UNKNOWN) {
        /* binds the dimension names that the value decides */
        snprintf(what, sizeof(what), "`%s`", d->target->name->text);
        st = tl_check_type(ev, d->type, &v, what, d->value->span);
        if (st == TL_OK) {
            st = declare(ev, cell, d->type);
        }
        if (st != TL_OK) {
            tl_unref(v);
            return st;
        }
    }
    st = tl_cell_start_take(ev, cell, v);
    if (st != TL_OK) {
        tl_diag_at(ev->diag, d->value->span);
    }
    return st;
}

/* Make the cell of `d`, whose value is `v` (taken; EMPTY: none given). */
static tl_status make_cell_take(tl_eval *ev, const cell_decl *d, tl_value v,
                                tl_value *out)
{
    tl_cell_hold hold = hold_of(d->type);
    tl_cell_kind kind = hold >= TL_HOLD_INT ? TL_CELL_HOST : d->kind;
    tl_cell *cell = NULL;
    tl_value name;
    tl_status st;

    TL_GOTO(st, tl_cell_new(&cell, kind, hold, ev->diag));
    cell->serial = ++ev->next_serial;
    TL_GOTO(st, tl_str_new(&name, d->target->name->text, d->target->name->len,
                           ev->diag));
    cell->name = name.str;
    if (v.tag == TL_V_CELL) {
        TL_GOTO(st, declare(ev, cell, d->type));
        TL_GOTO(st, check_shared(ev, d, cell, v.cell));
        tl_unref(tl_obj_value_take(cell));
        *out = v;
        return TL_OK;
    }
    if (v.tag == TL_V_EMPTY) {
        TL_GOTO(st, declare(ev, cell, d->type));
    } else {
        tl_value given = v;

        v = tl_empty();
        TL_GOTO(st, start_cell_take(ev, d, cell, given));
    }
    *out = tl_obj_value_take(cell);
    return TL_OK;
out:
    tl_unref(v);
    if (cell) {
        tl_unref(tl_obj_value_take(cell));
    }
    return st;
}

static tl_status run_cell(tl_eval *ev, tl_module *m, const cell_decl *d)
{
    tl_value v = tl_empty(), field;

    if (d->value) {
        TL_TRY(tl_eval_expr(ev, d->value, &v));
    }
    if (v.tag == TL_V_NONE && d->type && d->type->kind == TL_AST_TYPE_OPT) {
        field = v; /* no cell: m.f is none */
    } else {
        TL_TRY(make_cell_take(ev, d, v, &field));
    }
    v = m->fields[d->target->ref.index];
    m->fields[d->target->ref.index] = field;
    tl_unref(v);
    return TL_OK;
}

/* `f: T = e` of any other type: a constant with a checked type. */
static tl_status run_constant(tl_eval *ev, tl_module *m, const cell_decl *d)
{
    tl_value v;
    tl_status st;
    char what[80];

    if (!d->value) {
        return TL_OK;
    }
    TL_TRY(tl_eval_expr(ev, d->value, &v));
    snprintf(what, sizeof(what), "`%s`", d->target->name->text);
    st = tl_check_type(ev, d->type, &v, what, d->value->span);
    if (st != TL_OK) {
        tl_unref(v);
        return st;
    }
    return tl_module_init_field_take(ev, m, d->target->ref.index,
                                     d->target->base.span, v);
}

/* Any other statement, as a block of its own. */
static tl_status run_other(tl_eval *ev, tl_ast *stmt)
{
    tl_ast_block block = {.base = {.kind = TL_AST_BLOCK,
                                   .depth = stmt->depth,
                                   .span = stmt->span},
                          .stmts = {.items = &stmt, .len = 1}};
    tl_flow flow = TL_FLOW_NEXT;

    return tl_eval_block(ev, &block.base, &flow);
}

static tl_status run_statement(tl_eval *ev, tl_module *m, tl_ast *stmt)
{
    const tl_moddef *def = tl_module_def(m);
    cell_decl d;

    switch (stmt->kind) {
    case TL_AST_CELL: {
        const tl_ast_cell *c = TL_AST(cell, stmt);

        d = (cell_decl){TL_AST(name, c->target), c->type, c->value,
                        c->buffer ? TL_CELL_BUFFER : TL_CELL_PARAM};
        return run_cell(ev, m, &d);
    }
    case TL_AST_DECL: {
        const tl_ast_decl *c = TL_AST(decl, stmt);

        d = (cell_decl){TL_AST(name, c->target), c->type, c->value,
                        TL_CELL_HOST};
        if (def->fields[d.target->ref.index].class_ == TL_FIELD_HOST) {
            return run_cell(ev, m, &d);
        }
        return run_constant(ev, m, &d);
    }
    case TL_AST_FN:
    case TL_AST_TEST:
        return TL_OK;
    default:
        return run_other(ev, stmt);
    }
}

/* Header parameters are the first fields, unless a field takes the name. */
static void store_header(tl_module *m, const tl_frame *frame)
{
    const tl_moddef *def = tl_module_def(m);

    for (uint32_t i = 0; i < def->nfields; i++) {
        const tl_fielddef *f = &def->fields[i];

        if (f->class_ == TL_FIELD_HEADER) {
            uint32_t slot = TL_AST(param, f->decl)->ref.index;

            m->fields[i] = tl_ref(frame->slots[slot]);
        }
    }
}

static tl_status run_body(tl_eval *ev, tl_module *m, const tl_funcdef *code)
{
    const tl_ast_block *body = TL_AST(block, code->body);

    for (uint32_t i = 0; body && i < body->stmts.len; i++) {
        tl_status st = run_statement(ev, m, body->stmts.items[i]);

        if (st != TL_OK) {
            tl_diag_at(ev->diag, body->stmts.items[i]->span);
            return st;
        }
    }
    return TL_OK;
}

static tl_status run_constructor(tl_eval *ev, tl_module *m, tl_args *args)
{
    const tl_funcdef *code = m->cls->code;
    tl_frame frame;
    tl_status st;

    TL_TRY(tl_frame_push(ev, &frame, code, m->cls->ns, NULL, m, args->span));
    st = tl_bind_args(ev, args);
    if (st == TL_OK) {
        store_header(m, &frame);
        st = run_body(ev, m, code);
    }
    if (st != TL_OK) {
        tl_diag_frame_add(ev->diag, tl_class_name(m->cls), args->span, "");
    }
    tl_frame_pop(ev, &frame);
    return st;
}

tl_status tl_module_construct(tl_eval *ev, tl_class *cls, tl_args *args,
                              tl_value *out)
{
    tl_module *m;
    tl_value v;
    tl_status st;

    TL_TRY(instance_new(ev, cls, &m));
    v = tl_obj_value_take(m);
    ev->constructing++;
    st = run_constructor(ev, m, args);
    ev->constructing--;
    m->ready = true;
    if (st == TL_OK && ev->constructing == 0 && ev->domain->has_data) {
        st = tl_init_assign_keys(ev, v);
    }
    if (st != TL_OK) {
        tl_unref(v);
        return st;
    }
    *out = v;
    return TL_OK;
}

/* ---- attributes -------------------------------------------------------- */

int64_t tl_module_find(const tl_module *m, const tl_sym *name)
{
    const tl_moddef *def = tl_module_def(m);

    for (uint32_t i = 0; i < def->nfields; i++) {
        if (def->fields[i].name == name) {
            return i;
        }
    }
    return -1;
}

static tl_status no_attribute(tl_eval *ev, const tl_module *m,
                              const tl_sym *name)
{
    const tl_moddef *def = tl_module_def(m);
    const char **names = tl_malloc((def->nfields + 1) * sizeof(*names));
    const char *near;

    if (!names) {
        return tl_fail_memory(ev->diag, "names",
                              def->nfields * sizeof(*names));
    }
    for (uint32_t i = 0; i < def->nfields; i++) {
        names[i] = def->fields[i].name->text;
    }
    near = tl_nearest(name->text, names, def->nfields);
    tl_free(names);
    tl_fail(ev->diag, TL_E0211, "%s has no `%s`", tl_class_name(m->cls),
            name->text);
    if (tl_habit_attr(name->text)) {
        tl_diag_help(ev->diag, "%s", tl_habit_attr(name->text));
    } else if (near) {
        tl_diag_help(ev->diag, "`%s`", near);
    }
    return TL_ERR_PROGRAM;
}

static tl_status bind_method(tl_eval *ev, tl_module *m,
                             const tl_fielddef *field, tl_value *out)
{
    tl_method *method = tl_obj_new(TL_V_METHOD, sizeof(*method), ev->diag);

    if (!method) {
        return TL_ERR_MEMORY;
    }
    method->self = tl_ref((tl_value){.tag = TL_V_MODULE, .module = m});
    method->code = TL_AST(fn, field->decl)->func;
    method->ns = m->cls->ns;
    *out = tl_obj_value_take(method);
    return TL_OK;
}

tl_status tl_module_get_field(tl_eval *ev, tl_module *m, uint32_t index,
                              tl_value *out)
{
    const tl_fielddef *f = &tl_module_def(m)->fields[index];
    tl_value v = m->fields[index];

    if (f->class_ == TL_FIELD_METHOD) {
        return bind_method(ev, m, f, out);
    }
    if (v.tag == TL_V_CELL && TL_FIELD_IS_CELL(f->class_)) {
        return tl_cell_read(ev, v.cell, out);
    }
    if (v.tag == TL_V_EMPTY) {
        return tl_fail(ev->diag, TL_E0202,
                       "field `%s` of %s is read before it is set",
                       f->name->text, tl_class_name(m->cls));
    }
    if (v.tag == TL_V_FN && has_hole(v.fn)) {
        return fn_copy(ev, v.fn, m, true, out);
    }
    *out = tl_ref(v);
    return TL_OK;
}

const tl_value *tl_module_starred(const tl_module *m, tl_tag tag)
{
    const tl_moddef *def = tl_module_def(m);

    for (uint32_t i = 0; i < def->nfields; i++) {
        if (m->fields[i].tag == tag && tl_field_is_starred(&def->fields[i])) {
            return &m->fields[i];
        }
    }
    return NULL;
}

/* What `**kw` of the header has under a name, or NULL. */
static const tl_value *keyword_child(const tl_module *m, const tl_sym *name)
{
    const tl_value *kw = tl_module_starred(m, TL_V_DICT);

    return kw != NULL ? tl_dict_get_str(kw->dict, name->text, name->len)
                      : NULL;
}

tl_status tl_module_get_attr(tl_eval *ev, tl_module *m, const tl_sym *name,
                             tl_value *out)
{
    int64_t i = tl_module_find(m, name);
    const tl_value *child = i < 0 ? keyword_child(m, name) : NULL;

    if (child != NULL) {
        *out = tl_ref(*child);
        return TL_OK;
    }
    if (i < 0) {
        return no_attribute(ev, m, name);
    }
    return tl_module_get_field(ev, m, (uint32_t)i, out);
}

tl_cell *tl_module_cell_of(tl_module *m, const tl_sym *name)
{
    int64_t i = tl_module_find(m, name);

    if (i < 0 || m->fields[i].tag != TL_V_CELL ||
        !TL_FIELD_IS_CELL(tl_module_def(m)->fields[i].class_)) {
        return NULL;
    }
    return m->fields[i].cell;
}

/* Why a field that is not a cell with a value cannot be written. */
static tl_status constant_field(tl_eval *ev, const tl_module *m,
                                const tl_fielddef *f, tl_span span)
{
    const char *name = f->name->text;

    switch (f->class_) {
    case TL_FIELD_METHOD:
        return tl_fail_at(ev->diag, TL_E0212, span, "`%s` is a method of %s",
                          name, tl_class_name(m->cls));
    case TL_FIELD_PARAM:
    case TL_FIELD_BUFFER:
    case TL_FIELD_HOST:
        return tl_fail_at(ev->diag, TL_E0212, span,
                          "`%s` of this %s is none: it has no cell", name,
                          tl_class_name(m->cls));
    default:
        tl_fail_at(ev->diag, TL_E0212, span,
                   "`%s` is a constant of %s: it is fixed once the "
                   "constructor has returned",
                   name, tl_class_name(m->cls));
        tl_diag_help(ev->diag,
                     "only cells change: `param`, `buffer`, or a field "
                     "annotated int, float, bool or tree");
        return TL_ERR_PROGRAM;
    }
}

static tl_status write_field_take(tl_eval *ev, tl_module *m, uint32_t index,
                                  tl_span span, tl_value v)
{
    const tl_fielddef *f = &tl_module_def(m)->fields[index];
    tl_status st;

    if (TL_FIELD_IS_CELL(f->class_) && m->fields[index].tag == TL_V_CELL) {
        return tl_cell_write_take(ev, m->fields[index].cell, v);
    }
    if (TL_FIELD_IS_CELL(f->class_) && m->fields[index].tag == TL_V_EMPTY) {
        st = tl_fail_at(ev->diag, TL_E0202, span,
                        "cell `%s` of %s is written before it is declared",
                        f->name->text, tl_class_name(m->cls));
    } else {
        st = constant_field(ev, m, f, span);
    }
    tl_unref(v);
    return st;
}

tl_status tl_module_init_field_take(tl_eval *ev, tl_module *m, uint32_t index,
                                    tl_span span, tl_value v)
{
    tl_value old;

    if (m->ready ||
        tl_module_def(m)->fields[index].class_ != TL_FIELD_CONSTANT) {
        return write_field_take(ev, m, index, span, v);
    }
    TL_TRY(make_hole_take(ev, m, v, &v));
    old = m->fields[index];
    m->fields[index] = v;
    tl_unref(old);
    return TL_OK;
}

tl_status tl_module_set_attr_take(tl_eval *ev, tl_module *m,
                                  const tl_sym *name, tl_value v)
{
    int64_t i = tl_module_find(m, name);
    tl_status st;

    if (i >= 0) {
        return write_field_take(ev, m, (uint32_t)i, (tl_span){0}, v);
    }
    st = no_attribute(ev, m, name);
    tl_unref(v);
    return st;
}
