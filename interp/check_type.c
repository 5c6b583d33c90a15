/* check_type.c - does a value fit an annotation?
 *
 * A tensor annotation binds the upper-case names of a signature that are
 * still unset and compares everything else.  Reads of names never move a
 * value out of its slot here, whatever the last-read marks say: annotations
 * are looked at in two steps (call.h). */
#include <stdio.h>
#include <string.h>

#include "interp/builtin.h"
#include "interp/dict.h"
#include "interp/eval_impl.h"
#include "interp/tree.h"
#include "interp/sym.h"

/* What the walk carries. */
typedef struct check {
    tl_eval *ev;
    const char *what; /* the value's name in messages */
    tl_span span;     /* the value's place */
    const tl_ast *type; /* the outermost annotation */
    unsigned steps;
    tl_value *value; /* the outermost value */
} check;

/* The text of a node, as written. */
static tl_shape_text source_text(tl_eval *ev, tl_span span)
{
    tl_shape_text t = {""};
    const tl_source *src = tl_sources_get(ev->lang->sources, span.file);

    if (src != NULL && span.end <= src->len && span.start < span.end) {
        size_t n = span.end - span.start;

        if (n >= sizeof(t.s)) {
            n = sizeof(t.s) - 1;
        }
        memcpy(t.s, src->text + span.start, n);
        t.s[n] = '\0';
    }
    return t;
}

static tl_status mismatch(check *c, tl_code code, const char *why)
{
    tl_status st = tl_fail_at(c->ev->diag, code, c->span,
                              "%s is %s, wanted %s%s%s", c->what,
                              tl_value_type_str(*c->value).s,
                              source_text(c->ev, c->type->span).s,
                              why[0] != '\0' ? ": " : "", why);

    if (c->type->span.file != c->span.file ||
        c->type->span.start != c->span.start) {
        tl_diag_label_add(c->ev->diag, c->type->span, "declared here");
    }
    return st;
}

/* ---- sizes ------------------------------------------------------------- */

static tl_status peek(tl_eval *ev, const tl_ast *e, tl_value *out);

static tl_status peek_name(tl_eval *ev, const tl_ast_name *n, tl_value *out)
{
    if (n->ref.kind == TL_REF_LOCAL) { /* may be unset: EMPTY */
        *out = tl_ref(ev->frame->slots[n->ref.index]);
        return TL_OK;
    }
    return tl_eval_expr(ev, &n->base, out);
}

static tl_status peek_attr(tl_eval *ev, const tl_ast_attr *n, tl_value *out)
{
    tl_value obj = tl_empty();

    TL_TRY(peek(ev, n->object, &obj));
    tl_status st = TL_OK;

    if (obj.tag == TL_V_EMPTY || obj.tag == TL_V_UNKNOWN) {
        *out = tl_unknown();
    } else {
        st = tl_eval_attr(ev, obj, n->name, out);
    }
    if (st != TL_OK) {
        tl_diag_at(ev->diag, n->name_at);
    }
    tl_unref(obj);
    return st;
}

static tl_status peek_binary(tl_eval *ev, const tl_ast_binary *n,
                             tl_value *out)
{
    tl_value a = tl_empty(), b = tl_empty();

    TL_TRY(peek(ev, n->left, &a));
    tl_status st = peek(ev, n->right, &b);

    if (st != TL_OK) {
        tl_unref(a);
        return st;
    }
    if (a.tag == TL_V_EMPTY || b.tag == TL_V_EMPTY) {
        tl_unref(a);
        tl_unref(b);
        *out = tl_empty();
        return TL_OK;
    }
    return tl_eval_binary_nodes(ev, n->op, n->left, a, n->right, b,
                                n->base.span, out);
}

/* A value without moving anything out of a slot; EMPTY: a name is unset. */
static tl_status peek(tl_eval *ev, const tl_ast *e, tl_value *out)
{
    switch ((tl_ast_kind)e->kind) {
    case TL_AST_NAME:
        return peek_name(ev, TL_AST(name, e), out);
    case TL_AST_ATTR:
        return peek_attr(ev, TL_AST(attr, e), out);
    case TL_AST_BINARY:
        return peek_binary(ev, TL_AST(binary, e), out);
    default:
        return tl_eval_expr(ev, e, out);
    }
}

/* The slot of a dimension name that may still be unset, or NULL. */
static tl_value *dim_slot(tl_eval *ev, const tl_ast *e)
{
    if (e->kind != TL_AST_NAME || !TL_AST(name, e)->dim ||
        TL_AST(name, e)->ref.kind != TL_REF_LOCAL) {
        return NULL;
    }
    return &ev->frame->slots[TL_AST(name, e)->ref.index];
}

/* A size that is a symbol, or compared with one: equal now, and a condition of
 * what is traced. */
static tl_status check_symbol(check *c, const tl_ast *e, tl_value want,
                              tl_dim size, int axis)
{
    tl_infer *infer = tl_eval_infer(c->ev);
    char why[200];
    bool same;
    tl_dim d;

    TL_TRY(tl_value_dim(c->ev, want, &d));
    if (infer->guard == NULL) {
        return TL_OK;
    }
    TL_TRY(tl_infer_answer(tl_infer_equal(infer, d, size), &same));
    if (same) {
        return TL_OK;
    }
    snprintf(why, sizeof(why), "axis %d is not %s", axis,
             source_text(c->ev, e->span).s);
    return mismatch(c, TL_E0312, why);
}

static tl_status check_dim(check *c, const tl_ast *e, tl_dim size, int axis)
{
    tl_value *slot = dim_slot(c->ev, e), want = tl_empty();
    char why[200];

    if (e->kind == TL_AST_DIM_ANY) {
        return TL_OK;
    }
    if (slot != NULL && slot->tag == TL_V_EMPTY) {
        if (c->steps & TL_CHECK_BIND) {
            return tl_dim_value_of(c->ev, size, slot);
        }
        return TL_OK;
    }
    if (!(c->steps & TL_CHECK_SIZES)) {
        return TL_OK;
    }
    TL_TRY(peek(c->ev, e, &want));
    if (tl_number_tag(want) == TL_V_INT &&
        (tl_is_sym(want) || !tl_dim_is_num(size))) {
        tl_status st = check_symbol(c, e, want, size, axis);

        tl_unref(want);
        return st;
    }
    if (want.tag != TL_V_INT) {
        bool open = want.tag == TL_V_UNKNOWN || want.tag == TL_V_EMPTY;
        tl_status st = TL_OK;

        if (!open) {
            st = tl_fail_at(c->ev->diag, TL_E0210, e->span,
                            "a size must be an int, got %s",
                            tl_value_type_str(want).s);
        }
        tl_unref(want);
        return st;
    }
    if (!tl_dim_is_num(size) || tl_dim_value(size) == want.i) {
        return TL_OK;
    }
    tl_shape_text name = source_text(c->ev, e->span);

    snprintf(why, sizeof(why), "axis %d is %lld, %s%s%lld", axis,
             (long long)tl_dim_value(size), e->kind == TL_AST_INT ? "" : name.s,
             e->kind == TL_AST_INT ? "not " : " is ", (long long)want.i);
    return mismatch(c, TL_E0312, why);
}

/* Is the size `d` what a name of a pack was bound to? */
static bool same_size(tl_eval *ev, tl_value bound, tl_dim d)
{
    tl_infer *infer = tl_eval_infer(ev);
    tl_dim n;

    if (infer->guard == NULL) {
        return bound.tag != TL_V_INT || !tl_dim_is_num(d) ||
               bound.i == tl_dim_value(d);
    }
    return tl_number_tag(bound) != TL_V_INT ||
           (tl_value_dim(ev, bound, &n) == TL_OK &&
            tl_infer_yes(infer, tl_infer_equal(infer, n, d)));
}

/* `*S`: bind the pack to these sizes or compare. */
static tl_status check_pack(check *c, const tl_ast_dim_pack *p,
                            const tl_dim *dim, int n)
{
    tl_value *slot = &c->ev->frame->slots[p->ref.index];
    tl_value items[TL_MAX_RANK];

    if (p->ref.kind != TL_REF_LOCAL || slot->tag == TL_V_UNKNOWN) {
        return TL_OK;
    }
    if (slot->tag == TL_V_EMPTY) {
        for (int i = 0; i < n; i++) {
            tl_status st = tl_dim_value_of(c->ev, dim[i], &items[i]);

            if (st != TL_OK) {
                tl_unref_all(items, (size_t)i);
                return st;
            }
        }
        return tl_seq_new_take(slot, TL_V_TUPLE, items, (size_t)n,
                               c->ev->diag);
    }
    bool same = slot->tag == TL_V_TUPLE && slot->seq->len == (size_t)n;

    for (int i = 0; same && i < n; i++) {
        same = same_size(c->ev, slot->seq->items[i], dim[i]);
    }
    return same ? TL_OK : mismatch(c, TL_E0312, "the packs differ");
}

/* Index of `...` or `*S` among the dims, or -1. */
static int open_dim(const tl_kids *dims)
{
    for (uint32_t i = 0; i < dims->len; i++) {
        if (dims->items[i]->kind == TL_AST_DIM_REST ||
            dims->items[i]->kind == TL_AST_DIM_PACK) {
            return (int)i;
        }
    }
    return -1;
}

static tl_status check_dims(check *c, const tl_kids *dims,
                            const tl_shape *shape)
{
    int n = (int)dims->len, open = open_dim(dims);
    char why[80];

    if (open < 0 ? shape->rank != n : shape->rank < n - 1) {
        snprintf(why, sizeof(why), "%d axes, not %s%d", shape->rank,
                 open < 0 ? "" : "at least ", open < 0 ? n : n - 1);
        return mismatch(c, TL_E0304, why);
    }
    int head = open < 0 ? n : open, tail = open < 0 ? 0 : n - 1 - open;

    for (int i = 0; i < head; i++) {
        TL_TRY(check_dim(c, dims->items[i], shape->dim[i], i));
    }
    for (int i = 0; i < tail; i++) {
        int axis = shape->rank - tail + i;

        TL_TRY(check_dim(c, dims->items[n - tail + i], shape->dim[axis],
                         axis));
    }
    if (open >= 0 && dims->items[open]->kind == TL_AST_DIM_PACK) {
        return check_pack(c, TL_AST(dim_pack, dims->items[open]),
                          shape->dim + head, shape->rank - head - tail);
    }
    return TL_OK;
}

/* ---- tensors ----------------------------------------------------------- */

static bool dtype_fits(check *c, const tl_sym *name, tl_dtype got,
                       tl_dtype *want)
{
    tl_frame *f = c->ev->frame;

    if (strcmp(name->text, "real") == 0) {
        if (f->real < 0 && tl_dtype_is_float(got)) {
            f->real = (int)got;
        }
        *want = (tl_dtype)f->real;
        return f->real >= 0 && (tl_dtype)f->real == got;
    }
    if (!tl_dtype_find(name->text, name->len, want)) {
        return true; /* `tensor[...]`: any dtype */
    }
    if (*want == TL_f32 && c->ev->f32_as_f64) {
        *want = TL_f64;
    }
    return *want == got;
}

static tl_status check_tensor(check *c, const tl_ast_type_tensor *t,
                              tl_value *v)
{
    tl_ttype type;
    tl_dtype want = TL_f32;

    if (tl_is_any_number(*v) && !t->any && t->dims.len == 0 &&
        (tl_number_tag(*v) != TL_V_FLOAT ||
         strcmp(t->dtype->text, "real") == 0 ||
         t->dtype->text[0] == 'f' || t->dtype->text[0] == 'b')) {
        /* a host number is weak: it becomes a scalar of the dtype */
        tl_attrs at;

        tl_value number = *v, scalar;

        *v = tl_empty();
        TL_TRY(tl_eval_as_tensor_take(c->ev, number, &scalar));
        tl_attrs_init(&at);
        if (tl_dtype_find(t->dtype->text, t->dtype->len, &want)) {
            at.dtype = (uint8_t)want;
            return tl_eval_op(c->ev, TL_OP_cast, &scalar, 1, &at, v);
        }
        *v = scalar;
        return TL_OK;
    }
    if (!tl_is_tensor(*v)) {
        tl_status st = mismatch(c, TL_E0210, "");

        if (tl_is_number(*v)) {
            tl_diag_help(c->ev->diag, "`tensor(x)` makes a tensor");
        }
        return st;
    }
    TL_TRY(tl_eval_type(c->ev, *v, &type));
    if ((c->steps & TL_CHECK_BIND) &&
        !dtype_fits(c, t->dtype, type.dtype, &want)) {
        tl_status st = mismatch(c, TL_E0308, "");

        if (c->ev->frame->real < 0 && strcmp(t->dtype->text, "real") == 0) {
            want = TL_f32; /* any float would do */
        }
        tl_diag_help(c->ev->diag, "cast it: `%s(x)`", tl_dtype_name(want));
        return st;
    }
    return t->any ? TL_OK : check_dims(c, &t->dims, &type.shape);
}

/* ---- other types ------------------------------------------------------- */

static tl_status check_value(check *c, const tl_ast *type, tl_value *v);

typedef enum named {
    NAMED_OTHER,
    NAMED_INT,
    NAMED_FLOAT,
    NAMED_TENSOR,
    NAMED_LIST,
    NAMED_DICT,
    NAMED_FN,
    NAMED_CELLS,
    NAMED_GRADS,
    NAMED_ANY
} named;

static const struct {
    const char *name;
    named what;
    tl_tag tag;
} named_types[] = {
    {"int", NAMED_INT, TL_V_INT},        {"float", NAMED_FLOAT, TL_V_FLOAT},
    {"bool", NAMED_OTHER, TL_V_BOOL},    {"str", NAMED_OTHER, TL_V_STR},
    {"list", NAMED_LIST, TL_V_LIST},     {"dict", NAMED_DICT, TL_V_DICT},
    {"tuple", NAMED_OTHER, TL_V_TUPLE},  {"dtype", NAMED_OTHER, TL_V_DTYPE},
    {"range", NAMED_OTHER, TL_V_RANGE},  {"tensor", NAMED_TENSOR, TL_V_TENSOR},
    {"fn", NAMED_FN, TL_V_FN},           {"cells", NAMED_CELLS, TL_V_MODULE},
    {"grads", NAMED_GRADS, TL_V_TREE},   {"tree", NAMED_GRADS, TL_V_TREE},
    {"none", NAMED_OTHER, TL_V_NONE},    {"any", NAMED_ANY, TL_V_NONE},
    {"module", NAMED_OTHER, TL_V_MODULE},
};

static bool callable(tl_value v)
{
    return v.tag == TL_V_FN || v.tag == TL_V_METHOD || v.tag == TL_V_BUILTIN ||
           v.tag == TL_V_CLASS || v.tag == TL_V_MODULE || v.tag == TL_V_DTYPE;
}

static bool is_cells(tl_value v)
{
    return v.tag == TL_V_MODULE || v.tag == TL_V_CELL || v.tag == TL_V_SELECT ||
           v.tag == TL_V_LIST || v.tag == TL_V_TUPLE || v.tag == TL_V_DICT;
}

/* Part of a value that stays as it is: what it would convert to is not kept,
 * so an int in a list[float] counts as it is. */
static tl_status check_item(check *c, const tl_ast *type, tl_value item)
{
    tl_value v = tl_ref(item);
    tl_status st = check_value(c, type, &v);

    tl_unref(v);
    return st;
}

/* Items of a list against list[T], keys and values of a dict against
 * dict[K, V]. */
static tl_status check_items(check *c, const tl_kids *args, tl_value v)
{
    if (v.tag == TL_V_LIST && args->len == 1) {
        for (size_t i = 0; i < v.seq->len; i++) {
            TL_TRY(check_item(c, args->items[0], v.seq->items[i]));
        }
    }
    if (v.tag == TL_V_DICT && args->len == 2) {
        for (size_t i = 0; i < v.dict->len; i++) {
            const tl_dict_entry *entry = &v.dict->entries[i];

            if (entry->key.tag != TL_V_EMPTY) {
                TL_TRY(check_item(c, args->items[0], entry->key));
                TL_TRY(check_item(c, args->items[1], entry->value));
            }
        }
    }
    return TL_OK;
}

static tl_status check_basic(check *c, const tl_ast_type_name *t, size_t row,
                             tl_value *v)
{
    tl_tag tag = named_types[row].tag;
    bool ok = tl_number_tag(*v) == tag;
    tl_status st;

    switch (named_types[row].what) {
    case NAMED_FLOAT:
        if (v->tag == TL_V_INT) {
            *v = tl_float_value((double)v->i);
            return TL_OK;
        }
        if (tl_is_sym(*v) && tl_number_tag(*v) == TL_V_INT) {
            tl_value old = *v;

            *v = tl_empty();
            st = tl_sym_to_float(c->ev, old, v);
            tl_unref(old);
            return st;
        }
        break;
    case NAMED_TENSOR:
        ok = tl_is_tensor(*v);
        break;
    case NAMED_FN:
        ok = callable(*v);
        break;
    case NAMED_CELLS:
        ok = is_cells(*v);
        break;
    case NAMED_GRADS:
        ok = v->tag == TL_V_TREE || tl_is_tensor(*v);
        break;
    case NAMED_ANY:
        return TL_OK;
    case NAMED_LIST:
    case NAMED_DICT:
        return ok ? check_items(c, &t->args, *v) : mismatch(c, TL_E0210, "");
    default:
        break;
    }
    if (ok) {
        return TL_OK;
    }
    st = mismatch(c, TL_E0210, "");
    if (tl_is_tensor(*v) && (tag == TL_V_INT || tag == TL_V_FLOAT)) {
        tl_diag_help(c->ev->diag, "`%s(x)` reads a tensor of one element",
                     named_types[row].name);
    }
    return st;
}

/* A module or record by name. */
static tl_status check_class(check *c, const tl_ast_type_name *t, tl_value *v)
{
    tl_value cls = tl_empty();
    const tl_class *got = v->tag == TL_V_MODULE   ? v->module->cls
                          : v->tag == TL_V_RECORD ? v->record->cls
                                                  : NULL;

    TL_TRY(peek(c->ev, t->name, &cls));
    bool ok = cls.tag != TL_V_CLASS || (got != NULL &&
                                        got->code == cls.cls->code);

    tl_unref(cls);
    return ok ? TL_OK : mismatch(c, TL_E0210, "");
}

static tl_status check_named(check *c, const tl_ast_type_name *t, tl_value *v)
{
    if (t->name->kind == TL_AST_NAME) {
        const char *name = TL_AST(name, t->name)->name->text;

        for (size_t i = 0; i < sizeof(named_types) / sizeof(*named_types);
             i++) {
            if (strcmp(named_types[i].name, name) == 0) {
                return check_basic(c, t, i, v);
            }
        }
    }
    return check_class(c, t, v);
}

static tl_status check_tuple(check *c, const tl_ast_type_tuple *t, tl_value *v)
{
    if (v->tag != TL_V_TUPLE || v->seq->len != t->items.len) {
        return mismatch(c, TL_E0210, "");
    }
    for (uint32_t i = 0; i < t->items.len; i++) {
        TL_TRY(check_item(c, t->items.items[i], v->seq->items[i]));
    }
    return TL_OK;
}

static tl_status check_value(check *c, const tl_ast *type, tl_value *v)
{
    if (v->tag == TL_V_UNKNOWN) {
        return TL_OK;
    }
    switch ((tl_ast_kind)type->kind) {
    case TL_AST_TYPE_TENSOR:
        return check_tensor(c, TL_AST(type_tensor, type), v);
    case TL_AST_TYPE_NAME:
        return check_named(c, TL_AST(type_name, type), v);
    case TL_AST_TYPE_TUPLE:
        return check_tuple(c, TL_AST(type_tuple, type), v);
    case TL_AST_TYPE_FN:
        return callable(*v) ? TL_OK : mismatch(c, TL_E0210, "");
    case TL_AST_TYPE_OPT:
        return v->tag == TL_V_NONE
                   ? TL_OK
                   : check_value(c, TL_AST(type_opt, type)->type, v);
    default:
        return TL_OK;
    }
}

tl_status tl_check_type_step(tl_eval *ev, const tl_ast *type, tl_value *v,
                             const char *what, tl_span span, unsigned steps)
{
    check c = {.ev = ev, .what = what, .span = span, .type = type,
               .steps = steps, .value = v};

    return type == NULL ? TL_OK : check_value(&c, type, v);
}

tl_status tl_check_type(tl_eval *ev, const tl_ast *type, tl_value *v,
                        const char *what, tl_span span)
{
    return tl_check_type_step(ev, type, v, what, span,
                              TL_CHECK_BIND | TL_CHECK_SIZES);
}

tl_status tl_declared_sizes(tl_eval *ev, const tl_ast *type, bool *known,
                            tl_dtype *dtype, int *rank, int64_t *size)
{
    const tl_ast_type_tensor *t = TL_AST(type_tensor, type);

    *known = false;
    if (type->kind != TL_AST_TYPE_TENSOR || t->any || open_dim(&t->dims) >= 0 ||
        t->dims.len > TL_MAX_RANK ||
        !tl_dtype_find(t->dtype->text, t->dtype->len, dtype)) {
        return TL_OK;
    }
    for (uint32_t i = 0; i < t->dims.len; i++) {
        tl_value d = tl_empty();

        size[i] = -1;
        if (t->dims.items[i]->kind == TL_AST_DIM_ANY) {
            continue;
        }
        TL_TRY(peek(ev, t->dims.items[i], &d));
        if (d.tag == TL_V_INT) {
            if (d.i < 0) {
                return tl_fail_at(ev->diag, TL_E0306,
                                  t->dims.items[i]->span,
                                  "size must be >= 0, got %lld",
                                  (long long)d.i);
            }
            size[i] = d.i;
        } else if (d.tag != TL_V_UNKNOWN && d.tag != TL_V_EMPTY) {
            tl_status st = tl_fail_at(ev->diag, TL_E0210,
                                      t->dims.items[i]->span,
                                      "a size must be an int, got %s",
                                      tl_value_type_str(d).s);

            tl_unref(d);
            return st;
        }
    }
    if (ev->f32_as_f64 && *dtype == TL_f32) {
        *dtype = TL_f64;
    }
    *rank = (int)t->dims.len;
    *known = true;
    return TL_OK;
}
