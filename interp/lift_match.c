/* lift_match.c - does a value look as one that was lifted did? */
#include <string.h>

#include "interp/dict.h"
#include "interp/format.h"
#include "interp/record.h"
#include "interp/trace.h"

typedef struct matcher {
    const tl_steps *steps;
    size_t at;
    tl_leaf_value *leaves;
    size_t n;
    bool note; /* remember where it fails: the value looked at last, and its
                  step */
    tl_value seen;
    size_t seen_at;
} matcher;

static const tl_shape_of *next(matcher *m)
{
    return &m->steps->items[m->at++];
}

static bool matches(matcher *m, tl_value v);

static bool match_tensor(matcher *m, tl_value v)
{
    const tl_shape_of *s = next(m);
    const tl_tensor *t = v.tensor;

    if (v.tag != TL_V_TENSOR || s->tag != TL_V_TENSOR ||
        s->dtype != t->dtype || s->rank != t->rank) {
        return false;
    }
    for (int i = 0; i < t->rank; i++) {
        const tl_shape_of *size = next(m);

        if (size->n == 1 ? t->size[i] < 2
                         : size->bits != (uint64_t)t->size[i]) {
            return false;
        }
    }
    if (s->bits != (tl_layout_class(t) |
                    tl_lift_flags(t, (s->bits & TL_LIFT_OF_CELL) != 0))) {
        return false;
    }
    m->leaves[m->n++].tensor = v.tensor;
    return true;
}

/* A number that may be any, of its type. */
static bool match_number(matcher *m, tl_value v)
{
    tl_gscalar *to = &m->leaves[m->n].scalar;

    if (next(m)->dtype != v.tag ||
        (v.tag == TL_V_INT && (v.i >= TL_SYM_MAX || v.i <= -TL_SYM_MAX))) {
        return false;
    }
    if (v.tag == TL_V_INT) {
        to->i = v.i;
    } else {
        to->f = v.f;
    }
    m->n++;
    return true;
}

static bool match_items(matcher *m, const tl_value *items, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (!matches(m, items[i])) {
            return false;
        }
    }
    return true;
}

static bool same_key(tl_value a, tl_value b)
{
    bool same = false;
    tl_diag none;
    tl_status st;

    if (a.tag != b.tag) {
        return false;
    }
    if (a.tag == TL_V_STR) {
        return a.str == b.str || (a.str->len == b.str->len &&
                                  memcmp(a.str->data, b.str->data,
                                         a.str->len) == 0);
    }
    tl_diag_init(&none, NULL);
    st = tl_value_equal(a, b, &same, &none);
    tl_diag_fini(&none);
    return st == TL_OK && same;
}

static bool match_dict(matcher *m, tl_value v)
{
    size_t at = 0;

    if (next(m)->n != v.dict->live) {
        return false;
    }
    for (tl_dict_entry *e; (e = tl_dict_next(v.dict, &at)) != NULL;) {
        const tl_shape_of *s = next(m);

        if (s->bits != e->hash || !same_key(s->keep, e->key) ||
            !matches(m, e->value)) {
            return false;
        }
    }
    return true;
}

static bool match_tree(matcher *m, const tl_tree *t)
{
    const tl_shape_of *s = next(m);

    if (s->tree != t->shape && !tl_tree_shape_same(s->tree, t->shape)) {
        return false;
    }
    for (size_t i = 0; i < t->shape->len; i++) {
        if (!matches(m, t->items[i])) {
            return false;
        }
    }
    return matches(m, t->finite) && matches(m, t->scaler);
}

static bool match_fn(matcher *m, const tl_fn *fn)
{
    const tl_shape_of *s = next(m);

    return s->n == fn->ncaptures &&
           s->bits == (uint64_t)(uintptr_t)fn->code &&
           next(m)->bits == (fn->self ? fn->self->serial + 1 : 0) &&
           match_items(m, fn->captures, fn->ncaptures);
}

static bool match_method(matcher *m, const tl_method *method)
{
    const void *what = method->code ? (const void *)method->code
                                    : (const void *)method->builtin;

    return next(m)->bits == (uint64_t)(uintptr_t)what &&
           matches(m, method->self);
}

static bool match_record(matcher *m, const tl_record *r)
{
    size_t n = r->cls->code->params.len;
    const tl_shape_of *s = next(m);

    return s->n == n && s->bits == (uint64_t)(uintptr_t)r->cls->code &&
           match_items(m, r->fields, n);
}

static bool match_range(matcher *m, const tl_range *r)
{
    return next(m)->bits == (uint64_t)r->start &&
           next(m)->bits == (uint64_t)r->stop &&
           next(m)->bits == (uint64_t)r->step;
}

static bool matches(matcher *m, tl_value v)
{
    const tl_shape_of *s = &m->steps->items[m->at];

    if (m->note) {
        m->seen = v;
        m->seen_at = m->at;
    }
    if (s->tag == TL_V_SYM) {
        return match_number(m, v);
    }
    if (s->tag != v.tag) {
        return false;
    }
    switch (v.tag) {
    case TL_V_TENSOR:
        return match_tensor(m, v);
    case TL_V_LIST:
    case TL_V_TUPLE:
        return next(m)->n == v.seq->len &&
               match_items(m, v.seq->items, v.seq->len);
    case TL_V_DICT:
        return match_dict(m, v);
    case TL_V_FN:
        return match_fn(m, v.fn);
    case TL_V_METHOD:
        return match_method(m, v.method);
    case TL_V_RECORD:
        return match_record(m, v.record);
    case TL_V_TREE:
        return match_tree(m, v.tree);
    case TL_V_RANGE:
        return match_range(m, v.range);
    case TL_V_STR:
        return same_key(next(m)->keep, v);
    case TL_V_BOOL:
        return next(m)->bits == v.b;
    case TL_V_INT:
    case TL_V_FLOAT:
    case TL_V_BUILTIN:
        return next(m)->bits == (uint64_t)v.i;
    case TL_V_DTYPE:
        return next(m)->bits == (uint64_t)v.dtype;
    case TL_V_MODULE:
        return next(m)->bits == v.module->serial;
    case TL_V_CLASS:
        return next(m)->bits == (uint64_t)(uintptr_t)v.cls->code;
    case TL_V_CELL:
    case TL_V_SELECT:
    case TL_V_CONTEXT:
    case TL_V_NAMESPACE:
        return next(m)->bits == (uint64_t)(uintptr_t)v.obj;
    case TL_V_EMPTY:
    case TL_V_NONE:
    case TL_V_ELLIPSIS:
        (void)next(m);
        return true;
    default:
        return false;
    }
}

bool tl_lift_matches(const tl_steps *steps, size_t *at, tl_value v,
                     tl_leaf_value *leaves, size_t *n)
{
    matcher m = {.steps = steps, .at = *at, .leaves = leaves, .n = *n};
    bool ok = matches(&m, v);

    *at = m.at;
    *n = m.n;
    return ok;
}

/* ---- what differs ------------------------------------------------------- */

/* The tensor type that the steps from `at` on describe. */
static void put_tensor(const tl_steps *steps, size_t at, tl_buf *out)
{
    const tl_shape_of *s = &steps->items[at];

    bool lowered = (s->bits & TL_LIFT_LOWERED) != 0;

    tl_buf_printf(out, "%s[",
                  tl_dtype_name(lowered ? TL_f32 : (tl_dtype)s->dtype));
    for (size_t i = 0; i < s->rank; i++) {
        const tl_shape_of *size = &steps->items[at + 1 + i];

        tl_buf_puts(out, i > 0 ? ", " : "");
        if (size->n == 1) {
            tl_buf_putc(out, 'n');
        } else {
            tl_buf_printf(out, "%lld", (long long)size->bits);
        }
    }
    tl_buf_putc(out, ']');
    if (lowered) {
        tl_buf_printf(out, " stored as %s", tl_dtype_name((tl_dtype)s->dtype));
    }
}

static void put_value(tl_value v, tl_buf *out)
{
    tl_diag none;

    tl_diag_init(&none, NULL);
    if (tl_format_repr(v, out, &none) != TL_OK) {
        tl_buf_puts(out, "something else");
    }
    tl_diag_fini(&none);
}

/* What a step describes. */
static void put_step(const tl_steps *steps, size_t at, tl_buf *out)
{
    const tl_shape_of *s = &steps->items[at];
    tl_value v = {.tag = (tl_tag)s->tag, .i = (int64_t)s->bits};

    switch (v.tag) {
    case TL_V_TENSOR:
        put_tensor(steps, at, out);
        return;
    case TL_V_SYM:
        tl_buf_printf(out, "any %s",
                      s->dtype == TL_V_INT ? "int" : "float");
        return;
    case TL_V_BOOL:
        v = tl_bool_value(s->bits != 0);
        break;
    case TL_V_DTYPE:
        v = tl_dtype_value((tl_dtype)s->bits);
        break;
    case TL_V_STR:
        v = s->keep;
        break;
    case TL_V_NONE:
    case TL_V_INT:
    case TL_V_FLOAT:
    case TL_V_BUILTIN:
        break;
    case TL_V_LIST:
    case TL_V_TUPLE:
    case TL_V_DICT:
        tl_buf_printf(out, "one of %u items", s->n);
        return;
    case TL_V_FN:
    case TL_V_METHOD:
        tl_buf_puts(out, "another function");
        return;
    case TL_V_MODULE:
        tl_buf_puts(out, "another module");
        return;
    default:
        tl_buf_puts(out, "something else");
        return;
    }
    put_value(v, out);
}

static bool is_plain(tl_value v)
{
    switch (v.tag) {
    case TL_V_NONE:
    case TL_V_BOOL:
    case TL_V_INT:
    case TL_V_FLOAT:
    case TL_V_DTYPE:
    case TL_V_STR:
    case TL_V_BUILTIN:
        return true;
    default:
        return false;
    }
}

void tl_lift_mismatch(const tl_steps *steps, size_t first, tl_value v,
                      tl_leaf_value *leaves, tl_buf *out)
{
    matcher m = {.steps = steps, .at = first, .leaves = leaves, .note = true,
                 .seen = v, .seen_at = first};
    size_t before = out->len;

    if (matches(&m, v)) {
        tl_buf_puts(out, "the same");
        return;
    }
    if (is_plain(m.seen)) {
        put_value(m.seen, out);
    } else {
        tl_buf_puts(out, tl_value_type_str(m.seen).s);
        if (m.seen.tag == TL_V_LIST || m.seen.tag == TL_V_TUPLE) {
            tl_buf_printf(out, " of %zu", m.seen.seq->len);
        } else if (m.seen.tag == TL_V_DICT) {
            tl_buf_printf(out, " of %zu", m.seen.dict->live);
        }
    }
    size_t middle = out->len;

    tl_buf_puts(out, ", was ");
    put_step(steps, m.seen_at, out);
    if (m.seen.tag == TL_V_TENSOR && !out->failed &&
        middle - before == out->len - middle - 6 &&
        memcmp(out->data + before, out->data + middle + 6,
               middle - before) == 0) {
        tl_buf_puts(out, " that lies otherwise in memory");
    }
}
