/* attr.c - a.name of every type, records, and the objects of functions. */
#include <string.h>

#include "interp/bi_host.h"
#include "interp/builtin.h"
#include "interp/domain.h"
#include "interp/sym.h"
#include "interp/eval_impl.h"
#include "interp/free.h"
#include "interp/record.h"
#include "interp/tree.h"
#include "lang/habits.h"

const tl_funcdef *tl_class_method(const tl_class *cls, const tl_sym *name)
{
    const tl_moddef *m = cls->code->module;

    if (m == NULL || name == NULL) {
        return NULL;
    }
    for (uint32_t i = 0; i < m->nfields; i++) {
        if (m->fields[i].name == name) {
            return m->fields[i].class_ == TL_FIELD_METHOD
                       ? TL_AST(fn, m->fields[i].decl)->func
                       : NULL;
        }
    }
    return NULL;
}

/* ---- tensors ----------------------------------------------------------- */

static tl_status shape_tuple(tl_eval *ev, const tl_ttype *type, tl_value *out)
{
    tl_value items[TL_MAX_RANK];

    for (int i = 0; i < type->shape.rank; i++) {
        tl_dim d = type->shape.dim[i];

        tl_status st = tl_dim_value_of(ev, d, &items[i]);

        if (st != TL_OK) {
            tl_unref_all(items, (size_t)i);
            return st;
        }
    }
    return tl_seq_new_take(out, TL_V_TUPLE, items, (size_t)type->shape.rank,
                           ev->diag);
}

/* .T: the last two axes exchanged. */
static tl_status transpose(tl_eval *ev, tl_value v, const tl_ttype *type,
                           tl_value *out)
{
    int rank = type->shape.rank;
    tl_attrs at;

    if (rank < 2) {
        *out = tl_ref(v);
        return TL_OK;
    }
    tl_attrs_init(&at);
    at.ndims = (uint16_t)rank;
    for (int i = 0; i < rank; i++) {
        at.dims[i] = tl_dim_num(i);
    }
    at.dims[rank - 2] = tl_dim_num(rank - 1);
    at.dims[rank - 1] = tl_dim_num(rank - 2);
    v = tl_ref(v);
    return tl_eval_op(ev, TL_OP_permute, &v, 1, &at, out);
}

static const char *const tensor_attrs[] = {"shape", "size", "dtype", "T"};

/* shape, size, dtype, T.  *mine is false for other names. */
static tl_status tensor_attr(tl_eval *ev, tl_value v, const char *name,
                             bool *mine, tl_value *out)
{
    tl_ttype type;
    int64_t n = 1;

    *mine = true;
    TL_TRY(tl_eval_type(ev, v, &type));
    if (strcmp(name, "shape") == 0) {
        return shape_tuple(ev, &type, out);
    }
    if (strcmp(name, "dtype") == 0) {
        *out = tl_dtype_value(type.dtype);
        return TL_OK;
    }
    if (strcmp(name, "T") == 0) {
        return transpose(ev, v, &type, out);
    }
    if (strcmp(name, "size") == 0) {
        if (!tl_shape_is_concrete(&type.shape)) {
            *out = tl_unknown();
            return TL_OK;
        }
        TL_TRY(tl_shape_numel(&type.shape, &n, ev->diag));
        *out = tl_int_value(n);
        return TL_OK;
    }
    *mine = false;
    return TL_OK;
}

/* ---- namespaces, errors ------------------------------------------------ */

static tl_status namespace_attr(tl_eval *ev, tl_namespace *ns,
                                const tl_sym *name, tl_value *out)
{
    int64_t slot = tl_globals_find(ns->names, name);

    if (slot >= 0 && (size_t)slot < ns->nslots &&
        ns->slots[slot].tag != TL_V_EMPTY) {
        if (ev->domain->global != NULL) {
            return ev->domain->global(ev, ns, (uint32_t)slot, out);
        }
        *out = tl_ref(ns->slots[slot]);
        return TL_OK;
    }
    const char *names[256];
    size_t n = 0;

    for (size_t i = 0; i < ns->names->names.len && n < 256; i++) {
        names[n++] = ns->names->names.items[i]->text;
    }
    tl_status st = tl_fail(ev->diag, TL_E0211, "%s has no `%s`",
                           ns->name->data, name->text);
    const char *near = tl_nearest(name->text, names, n);

    if (near != NULL) {
        tl_diag_help(ev->diag, "%s", near);
    }
    return st;
}

static tl_status error_attr(tl_eval *ev, const tl_error *e,
                            const tl_sym *name, tl_value *out)
{
    if (strcmp(name->text, "msg") == 0) {
        e->message->obj.refs++;
        *out = tl_obj_value_take(e->message);
        return TL_OK;
    }
    if (strcmp(name->text, "text") == 0) {
        e->text->obj.refs++;
        *out = tl_obj_value_take(e->text);
        return TL_OK;
    }
    if (strcmp(name->text, "code") == 0) {
        const char *code = tl_code_name(e->code);

        return tl_str_new(out, code, strlen(code), ev->diag);
    }
    tl_status st = tl_fail(ev->diag, TL_E0211, "an error has no `%s`",
                           name->text);

    tl_diag_help(ev->diag, "e.msg, e.code, e.text");
    return st;
}

/* ---- bound methods of built-in types ----------------------------------- */

static tl_status bound_builtin(tl_eval *ev, tl_value v, const tl_builtin *b,
                               tl_value *out)
{
    tl_method *m = tl_obj_new(TL_V_METHOD, sizeof(*m), ev->diag);

    if (m == NULL) {
        return TL_ERR_MEMORY;
    }
    m->self = tl_ref(v);
    m->builtin = b;
    *out = tl_obj_value_take(m);
    return TL_OK;
}

static tl_status no_attr(tl_eval *ev, tl_value v, const tl_sym *name)
{
    size_t n = 0;
    const char *const *names = tl_builtin_names(ev, v.tag, &n);
    tl_status st = tl_fail(ev->diag, TL_E0211, "%s has no `%s`",
                           tl_value_type_str(v).s, name->text);

    const char *habit = tl_is_tensor(v) ? tl_habit_attr(name->text) : NULL;
    const char *near = tl_nearest(name->text, names, n);

    if (near == NULL && tl_is_tensor(v)) {
        near = tl_nearest(name->text, tensor_attrs,
                          sizeof(tensor_attrs) / sizeof(*tensor_attrs));
    }
    if (habit != NULL) {
        tl_diag_help(ev->diag, "%s", habit);
    } else if (near != NULL) {
        tl_diag_help(ev->diag, "%s", near);
    }
    return st;
}

tl_status tl_eval_attr(tl_eval *ev, tl_value v, const tl_sym *name,
                       tl_value *out)
{
    bool mine = false;

    switch (v.tag) {
    case TL_V_UNKNOWN:
        *out = v;
        return TL_OK;
    case TL_V_MODULE:
        return tl_module_get_attr(ev, v.module, name, out);
    case TL_V_RECORD:
        return tl_record_get_attr(ev, v.record, name, out);
    case TL_V_NAMESPACE:
        return namespace_attr(ev, v.ns, name, out);
    case TL_V_ERROR:
        return error_attr(ev, v.error, name, out);
    case TL_V_BUILTIN:
        return tl_builtin_attr(ev, v.builtin, name, out);
    case TL_V_TENSOR:
    case TL_V_NODE: {
        tl_status st = tensor_attr(ev, v, name->text, &mine, out);

        if (mine || st != TL_OK) {
            return st;
        }
        break;
    }
    case TL_V_TREE: /* a layer may be called `norm` */
        if (tl_tree_has(v.tree, name->text, name->len)) {
            return tl_tree_get(ev, v.tree, name->text, name->len, out);
        }
        break;
    default:
        break;
    }
    const tl_builtin *b = tl_builtin_method(ev, v.tag, name);

    if (b != NULL) {
        return bound_builtin(ev, v, b, out);
    }
    if (v.tag == TL_V_TREE) {
        return tl_tree_get(ev, v.tree, name->text, name->len, out);
    }
    return no_attr(ev, v, name);
}

/* ---- releasing what these objects hold --------------------------------- */

void tl_fn_free(tl_obj *obj)
{
    tl_fn *fn = (tl_fn *)obj;

    tl_unref_all(fn->captures, fn->ncaptures);
    if (fn->self != NULL) {
        tl_unref(tl_obj_value_take(fn->self));
    }
}

void tl_method_free(tl_obj *obj)
{
    tl_unref(((tl_method *)obj)->self);
}

void tl_class_free(tl_obj *obj)
{
    (void)obj; /* code and namespace outlive it */
}
