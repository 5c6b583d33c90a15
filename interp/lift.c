/* lift.c - values on their way into a graph and out of it. */
#include <string.h>

#include "interp/context.h"
#include "interp/dict.h"
#include "interp/late.h"
#include "interp/record.h"
#include "interp/trace.h"
#include "interp/tree.h"
#include "runtime/base/mem.h"
#include "runtime/base/vec.h"
#include "runtime/op/view.h"

/* ---- layouts ------------------------------------------------------------ */

#define LAYOUT_COPY 1u

/* Tensors go in as they lie: a plan belongs to their strides, and a row-major
 * copy would have other bits where products look at the order of axes. */
uint64_t tl_layout_class(const tl_tensor *t)
{
    (void)t;
    return 0;
}

tl_status tl_layout_base(tl_rt *rt, tl_tensor *t, uint64_t layout,
                         tl_tensor **out)
{
    int64_t size[TL_MAX_RANK], stride[TL_MAX_RANK];

    if (layout == 0) {
        *out = tl_tensor_ref(t);
        return TL_OK;
    }
    if (layout == LAYOUT_COPY) {
        return tl_contiguous(rt, t, out);
    }
    for (int i = 0; i < t->rank; i++) {
        size[i] = t->size[layout >> (4 * i) & 15];
    }
    tl_row_major(t->rank, size, stride);
    return tl_tensor_view(out, t, t->rank, size, stride, t->offset, rt->diag);
}

/* ---- lifting ------------------------------------------------------------ */

static tl_status add_step(tl_eval *ev, tl_shape_of step)
{
    tl_trace *t = tl_trace_of(ev);
    tl_status st;

    t->prior.at++;
    tl_ref(step.keep);
    if (step.tree != NULL) {
        (void)tl_tree_shape_ref(step.tree);
    }
    st = TL_VEC_PUSH(&t->steps, step, ev->diag);
    if (st != TL_OK) {
        tl_unref(step.keep);
        tl_tree_shape_unref(step.tree);
    }
    return st;
}

void tl_steps_fini(tl_steps *steps)
{
    for (size_t i = 0; i < steps->len; i++) {
        tl_unref(steps->items[i].keep);
        tl_tree_shape_unref(steps->items[i].tree);
    }
    tl_free(steps->items);
    memset(steps, 0, sizeof(*steps));
}

static tl_status step_bits(tl_eval *ev, tl_tag tag, uint32_t n, uint64_t bits)
{
    return add_step(ev, (tl_shape_of){.tag = (uint8_t)tag, .n = n,
                                      .bits = bits});
}

/* The step that an earlier trace had here; NULL if it was something else. */
static const tl_shape_of *prior_step(tl_trace *t, tl_tag tag)
{
    const tl_prior *p = &t->prior;
    const tl_shape_of *s = p->steps != NULL && p->at < p->end
                               ? &p->steps->items[p->at]
                               : NULL;

    if (s != NULL && s->tag != tag && s->tag != TL_V_SYM) {
        t->prior.steps = NULL;
        s = NULL;
    }
    return s;
}

/* A size is what it was when the program was made, unless an earlier program
 * had another one. */
static bool size_varies(tl_trace *t, int64_t size)
{
    const tl_shape_of *s = prior_step(t, TL_V_INT);

    if (t->made_up) {
        return tl_is_made_up_size(size);
    }
    return s != NULL && size >= 2 &&
           (s->n == 1 || s->bits != (uint64_t)size);
}

/* A host number as a symbol: arguments and cells at once, others when they
 * have changed. */
static bool number_varies(tl_trace *t, tl_value v, bool always)
{
    const tl_shape_of *s = prior_step(t, v.tag);

    if (v.tag == TL_V_INT && (v.i >= TL_SYM_MAX || v.i <= -TL_SYM_MAX)) {
        return false;
    }
    return always || (s != NULL && (s->tag == TL_V_SYM ||
                                    s->bits != (uint64_t)v.i));
}

static tl_status lift_number(tl_eval *ev, tl_value v, int64_t cell,
                             tl_value *out)
{
    tl_trace *tr = tl_trace_of(ev);
    tl_input input = {.kind = cell < 0 ? TL_IN_LEAF : TL_IN_CELL,
                      .index = cell < 0 ? tr->nleaves : (uint32_t)cell};
    tl_gval id;

    TL_TRY(add_step(ev, (tl_shape_of){.tag = TL_V_SYM,
                                      .dtype = (uint8_t)v.tag}));
    TL_TRY(tl_gbuild_host_input(&tr->b,
                                v.tag == TL_V_INT ? TL_GC_INT : TL_GC_FLOAT,
                                &id));
    TL_TRY(TL_VEC_PUSH(&tr->inputs, input, ev->diag));
    tr->nleaves += cell < 0;
    return tl_sym_new(ev, id, v, out);
}

/* The graph's view of an input that lies in permuted order. */
static tl_status permuted(tl_eval *ev, const tl_tensor *t, uint64_t layout,
                          tl_gval *v)
{
    tl_gbuild *b = &tl_trace_of(ev)->b;
    uint32_t owner = b->owner;
    tl_attrs at;

    tl_attrs_init(&at);
    at.ndims = (uint16_t)t->rank;
    for (int i = 0; i < t->rank; i++) {
        at.dims[layout >> (4 * i) & 15] = tl_dim_num(i);
    }
    b->owner = 0; /* it is kept, and may be read elsewhere later */
    tl_status st = tl_gbuild_apply(b, TL_OP_permute, v, 1, &at, v);

    b->owner = owner;
    return st;
}

/* The type of the next input of the graph, a tensor like `t` whose axes that
 * vary have atoms for sizes. */
static tl_status input_type(tl_eval *ev, const tl_tensor *t, uint64_t layout,
                            const bool *varies, tl_ttype *out)
{
    tl_gbuild *b = &tl_trace_of(ev)->b;

    *out = (tl_ttype){.dtype = t->dtype};
    out->shape.rank = t->rank;
    for (int i = 0; i < t->rank; i++) {
        int axis = layout > LAYOUT_COPY ? (int)(layout >> (4 * i) & 15) : i;
        tl_gatom atom = {.kind = TL_GA_SIZE,
                         .index = (uint32_t)b->g->inputs.len,
                         .axis = (uint32_t)i};

        out->shape.dim[i] = tl_dim_num(t->size[axis]);
        if (varies[axis]) {
            TL_TRY(tl_gbuild_atom(b, atom, 2, t->size[axis],
                                  &out->shape.dim[i]));
        }
    }
    return TL_OK;
}

static tl_status lift_tensor(tl_eval *ev, tl_tensor *t, int64_t cell,
                             uint32_t leaf, tl_value *out)
{
    tl_trace *tr = tl_trace_of(ev);
    tl_input input = {.kind = cell < 0 ? TL_IN_LEAF : TL_IN_CELL,
                      .index = cell < 0 ? tr->nleaves : (uint32_t)cell,
                      .leaf = leaf, .layout = tl_layout_class(t)};
    bool varies[TL_MAX_RANK];
    tl_ttype type;
    tl_gval v;

    (void)prior_step(tr, TL_V_TENSOR);
    TL_TRY(add_step(ev, (tl_shape_of){.tag = TL_V_TENSOR,
                                      .dtype = (uint8_t)t->dtype,
                                      .rank = (uint16_t)t->rank,
                                      .bits = input.layout |
                                              tl_lift_flags(t, cell >= 0)}));
    for (int i = 0; i < t->rank; i++) {
        varies[i] = size_varies(tr, t->size[i]);
        TL_TRY(step_bits(ev, TL_V_INT, varies[i],
                         varies[i] ? 0 : (uint64_t)t->size[i]));
    }
    TL_TRY(input_type(ev, t, input.layout, varies, &type));
    TL_TRY(tl_gbuild_input(&tr->b, &type, &v));
    TL_TRY(TL_VEC_PUSH(&tr->inputs, input, ev->diag));
    tr->nleaves += cell < 0;
    if (input.layout > LAYOUT_COPY) {
        TL_TRY(permuted(ev, t, input.layout, &v));
    }
    TL_TRY(tl_trace_leaf(ev, &v));
    tr->b.values.items[v].lowered = tl_tensor_lowered(t);
    tr->b.values.items[v].weight = cell < 0 &&
                                   (t->flags & TL_TENSOR_WEIGHT) != 0;
    return tl_trace_node(ev, v, out);
}

/* Lift `n` items into a new array; *changed: one became another value. */
static tl_status lift_items(tl_eval *ev, const tl_value *items, size_t n,
                            int64_t cell, tl_value **out, bool *changed)
{
    tl_value *made = tl_calloc(n > 0 ? n : 1, sizeof(*made));
    tl_status st = TL_OK;

    if (made == NULL) {
        return tl_fail_memory(ev->diag, "values", n * sizeof(*made));
    }
    for (size_t i = 0; i < n && st == TL_OK; i++) {
        st = tl_lift(ev, items[i], cell, &made[i]);
        *changed = *changed || made[i].tag != items[i].tag ||
                   (tl_is_obj(made[i]) && made[i].obj != items[i].obj);
    }
    if (st != TL_OK) {
        tl_unref_all(made, n);
        tl_free(made);
        return st;
    }
    *out = made;
    return TL_OK;
}

static tl_status lift_seq(tl_eval *ev, tl_value v, int64_t cell,
                          tl_value *out)
{
    bool changed = false;
    tl_value *items;

    TL_TRY(step_bits(ev, v.tag, (uint32_t)v.seq->len, 0));
    TL_TRY(lift_items(ev, v.seq->items, v.seq->len, cell, &items, &changed));
    if (!changed) {
        tl_unref_all(items, v.seq->len);
        tl_free(items);
        *out = tl_ref(v);
        return TL_OK;
    }
    tl_status st = tl_seq_new_take(out, v.tag, items, v.seq->len, ev->diag);

    tl_free(items);
    return st;
}

static tl_status lift_dict(tl_eval *ev, tl_value v, int64_t cell,
                           tl_value *out)
{
    tl_value made;
    size_t at = 0;

    TL_TRY(step_bits(ev, v.tag, (uint32_t)v.dict->live, 0));
    TL_TRY(tl_dict_new(&made, ev->diag));
    for (tl_dict_entry *e; (e = tl_dict_next(v.dict, &at)) != NULL;) {
        tl_value item = tl_empty();
        tl_status st = add_step(ev, (tl_shape_of){.tag = TL_V_DICT,
                                                  .bits = e->hash,
                                                  .keep = e->key});

        if (st == TL_OK) {
            st = tl_lift(ev, e->value, cell, &item);
        }
        if (st == TL_OK) {
            st = tl_dict_set_take(made.dict, tl_ref(e->key), item, ev->diag);
        }
        if (st != TL_OK) {
            tl_unref(made);
            return st;
        }
    }
    *out = made;
    return TL_OK;
}

static tl_status lift_fn(tl_eval *ev, tl_value v, int64_t cell, tl_value *out)
{
    const tl_fn *fn = v.fn;
    bool changed = false;
    tl_value *items;

    TL_TRY(step_bits(ev, v.tag, (uint32_t)fn->ncaptures,
                     (uint64_t)(uintptr_t)fn->code));
    TL_TRY(step_bits(ev, v.tag, 0, fn->self ? fn->self->serial + 1 : 0));
    TL_TRY(lift_items(ev, fn->captures, fn->ncaptures, cell, &items,
                      &changed));
    tl_fn *made = changed ? tl_obj_new(TL_V_FN,
                                       sizeof(*fn) + fn->ncaptures *
                                                         sizeof(tl_value),
                                       ev->diag)
                          : NULL;

    if (made == NULL) {
        tl_unref_all(items, fn->ncaptures);
        tl_free(items);
        *out = changed ? tl_empty() : tl_ref(v);
        return changed ? TL_ERR_MEMORY : TL_OK;
    }
    made->code = fn->code;
    made->ns = fn->ns;
    made->self = fn->self;
    if (fn->self != NULL) {
        fn->self->obj.refs++;
    }
    made->ncaptures = fn->ncaptures;
    memcpy(made->captures, items, fn->ncaptures * sizeof(*items));
    tl_free(items);
    *out = tl_obj_value_take(made);
    return TL_OK;
}

static tl_status lift_method(tl_eval *ev, tl_value v, int64_t cell,
                             tl_value *out)
{
    tl_value self = tl_empty();
    const void *what = v.method->code ? (const void *)v.method->code
                                      : (const void *)v.method->builtin;

    TL_TRY(step_bits(ev, v.tag, 0, (uint64_t)(uintptr_t)what));
    TL_TRY(tl_lift(ev, v.method->self, cell, &self));
    tl_method *made = tl_obj_new(TL_V_METHOD, sizeof(*made), ev->diag);

    if (made == NULL) {
        tl_unref(self);
        return TL_ERR_MEMORY;
    }
    made->self = self;
    made->code = v.method->code;
    made->builtin = v.method->builtin;
    made->ns = v.method->ns;
    *out = tl_obj_value_take(made);
    return TL_OK;
}

static tl_status lift_record(tl_eval *ev, tl_value v, int64_t cell,
                             tl_value *out)
{
    size_t n = v.record->cls->code->params.len;
    bool changed = false;
    tl_value *items;

    TL_TRY(step_bits(ev, v.tag, (uint32_t)n,
                     (uint64_t)(uintptr_t)v.record->cls->code));
    TL_TRY(lift_items(ev, v.record->fields, n, cell, &items, &changed));
    tl_record *made = tl_obj_new(TL_V_RECORD,
                                 sizeof(*made) + n * sizeof(*items),
                                 ev->diag);

    if (made == NULL) {
        tl_unref_all(items, n);
        tl_free(items);
        return TL_ERR_MEMORY;
    }
    made->cls = v.record->cls;
    made->cls->obj.refs++;
    memcpy(made->fields, items, n * sizeof(*items));
    tl_free(items);
    *out = tl_obj_value_take(made);
    return TL_OK;
}

static tl_status lift_tree(tl_eval *ev, tl_value v, int64_t cell,
                           tl_value *out)
{
    size_t n = v.tree->shape->len;
    tl_value *items = tl_calloc(n + 1, sizeof(*items)), flag = tl_empty();
    tl_value scaler = tl_empty();
    tl_status st;

    if (items == NULL) {
        return tl_fail_memory(ev->diag, "a tree", n * sizeof(*items));
    }
    TL_GOTO(st, add_step(ev, (tl_shape_of){.tag = TL_V_TREE,
                                           .n = (uint32_t)n,
                                           .tree = v.tree->shape}));
    for (size_t i = 0; i < n; i++) {
        if (v.tree->items[i].tag != TL_V_TENSOR) {
            st = tl_trace_refuse(ev, "a tree holds %s",
                                 tl_value_type_str(v.tree->items[i]).s);
            goto out;
        }
        TL_GOTO(st, lift_tensor(ev, v.tree->items[i].tensor, cell,
                                (uint32_t)i, &items[i]));
    }
    if (v.tree->finite.tag == TL_V_TENSOR) {
        TL_GOTO(st, lift_tensor(ev, v.tree->finite.tensor, cell, (uint32_t)n,
                                &flag));
    } else {
        TL_GOTO(st, step_bits(ev, TL_V_EMPTY, 0, 0));
    }
    TL_GOTO(st, tl_lift(ev, v.tree->scaler, cell, &scaler));
    st = tl_tree_new_take(out, v.tree->shape, items, ev->diag);
    memset(items, 0, n * sizeof(*items));
    if (st == TL_OK) {
        out->tree->finite = flag;
        out->tree->scaler = scaler;
        flag = tl_empty();
        scaler = tl_empty();
    }
out:
    tl_unref_all(items, n);
    tl_unref(flag);
    tl_unref(scaler);
    tl_free(items);
    return st;
}

/* A value without tensors or symbols stays what it is. */
static tl_status lift_plain(tl_eval *ev, tl_value v)
{
    (void)prior_step(tl_trace_of(ev), v.tag);
    switch (v.tag) {
    case TL_V_EMPTY:
    case TL_V_NONE:
    case TL_V_ELLIPSIS:
        return step_bits(ev, v.tag, 0, 0);
    case TL_V_BOOL:
        return step_bits(ev, v.tag, 0, v.b);
    case TL_V_INT:
    case TL_V_FLOAT:
    case TL_V_BUILTIN:
        return step_bits(ev, v.tag, 0, (uint64_t)v.i);
    case TL_V_DTYPE:
        return step_bits(ev, v.tag, 0, (uint64_t)v.dtype);
    case TL_V_STR:
        return add_step(ev, (tl_shape_of){.tag = TL_V_STR, .keep = v});
    case TL_V_RANGE:
        TL_TRY(step_bits(ev, v.tag, 0, (uint64_t)v.range->start));
        TL_TRY(step_bits(ev, v.tag, 0, (uint64_t)v.range->stop));
        return step_bits(ev, v.tag, 0, (uint64_t)v.range->step);
    case TL_V_MODULE:
        return step_bits(ev, v.tag, 0, v.module->serial);
    case TL_V_CLASS:
        return step_bits(ev, v.tag, 0, (uint64_t)(uintptr_t)v.cls->code);
    case TL_V_NAMESPACE:
        return step_bits(ev, v.tag, 0, (uint64_t)(uintptr_t)v.ns);
    case TL_V_CELL:
    case TL_V_SELECT: /* kept alive, so that no other takes the address */
    case TL_V_CONTEXT:
        return add_step(ev, (tl_shape_of){.tag = (uint8_t)v.tag, .keep = v,
                            .bits = (uint64_t)(uintptr_t)v.obj});
    default:
        return tl_trace_refuse(ev, "a value of type %s cannot be passed in",
                               tl_value_type_str(v).s);
    }
}

tl_status tl_lift(tl_eval *ev, tl_value v, int64_t cell, tl_value *out)
{
    TL_TRY(tl_check_stack(ev, ev->rt->span));
    switch (v.tag) {
    case TL_V_TENSOR:
        return lift_tensor(ev, v.tensor, cell, 0, out);
    case TL_V_LIST:
    case TL_V_TUPLE:
        return lift_seq(ev, v, cell, out);
    case TL_V_DICT:
        return lift_dict(ev, v, cell, out);
    case TL_V_FN:
        return lift_fn(ev, v, cell, out);
    case TL_V_METHOD:
        return lift_method(ev, v, cell, out);
    case TL_V_RECORD:
        return lift_record(ev, v, cell, out);
    case TL_V_TREE:
        return lift_tree(ev, v, cell, out);
    default:
        break;
    }
    if ((v.tag == TL_V_INT || v.tag == TL_V_FLOAT) &&
        number_varies(tl_trace_of(ev), v, tl_trace_of(ev)->symbols)) {
        return lift_number(ev, v, cell, out);
    }
    TL_TRY(lift_plain(ev, v));
    *out = tl_ref(v);
    return TL_OK;
}

/* ---- and back ----------------------------------------------------------- */

typedef struct back {
    tl_eval *ev;
    bool shown; /* late texts are allowed */
    tl_status (*result)(void *arg, tl_value node, tl_value *out);
    void *arg;
} back;

static tl_status lift_back(back *b, tl_value v, tl_value *out);

static tl_status back_seq(back *b, tl_value v, tl_value *out)
{
    tl_value made;

    TL_TRY(tl_seq_alloc(&made, v.tag, v.seq->len, b->ev->diag));
    for (size_t i = 0; i < v.seq->len; i++) {
        tl_status st = lift_back(b, v.seq->items[i], &made.seq->items[i]);

        if (st != TL_OK) {
            tl_unref(made);
            return st;
        }
    }
    *out = made;
    return TL_OK;
}

static tl_status back_dict(back *b, tl_value v, tl_value *out)
{
    tl_value made;
    size_t at = 0;

    TL_TRY(tl_dict_new(&made, b->ev->diag));
    for (tl_dict_entry *e; (e = tl_dict_next(v.dict, &at)) != NULL;) {
        tl_value item = tl_empty();
        tl_status st = lift_back(b, e->value, &item);

        if (st == TL_OK) {
            st = tl_dict_set_take(made.dict, tl_ref(e->key), item,
                                  b->ev->diag);
        }
        if (st != TL_OK) {
            tl_unref(made);
            return st;
        }
    }
    *out = made;
    return TL_OK;
}

static tl_status back_record(back *b, tl_value v, tl_value *out)
{
    size_t n = v.record->cls->code->params.len;
    tl_record *made = tl_obj_new(TL_V_RECORD,
                                 sizeof(*made) + n * sizeof(tl_value),
                                 b->ev->diag);

    if (made == NULL) {
        return TL_ERR_MEMORY;
    }
    made->cls = v.record->cls;
    made->cls->obj.refs++;
    *out = tl_obj_value_take(made);
    for (size_t i = 0; i < n; i++) {
        tl_status st = lift_back(b, v.record->fields[i], &made->fields[i]);

        if (st != TL_OK) {
            tl_drop(out);
            return st;
        }
    }
    return TL_OK;
}

static tl_status back_tree(back *b, tl_value v, tl_value *out)
{
    const tl_tree *t = v.tree;
    tl_value *items = tl_calloc(t->shape->len + 1, sizeof(*items));
    tl_status st = TL_OK;

    if (items == NULL) {
        return tl_fail_memory(b->ev->diag, "a tree",
                              t->shape->len * sizeof(*items));
    }
    for (size_t i = 0; i < t->shape->len && st == TL_OK; i++) {
        st = lift_back(b, t->items[i], &items[i]);
    }
    if (st == TL_OK) {
        st = tl_tree_new_take(out, t->shape, items, b->ev->diag);
    } else {
        tl_unref_all(items, t->shape->len);
    }
    tl_free(items);
    if (st != TL_OK) {
        return st;
    }
    st = lift_back(b, t->finite, &out->tree->finite);
    if (st == TL_OK) {
        st = lift_back(b, t->scaler, &out->tree->scaler);
    }
    if (st != TL_OK) {
        tl_drop(out);
    }
    return st;
}

static tl_status back_fn(back *b, tl_value v, tl_value *out)
{
    const tl_fn *fn = v.fn;
    tl_fn *made = tl_obj_new(TL_V_FN,
                             sizeof(*fn) + fn->ncaptures * sizeof(tl_value),
                             b->ev->diag);

    if (made == NULL) {
        return TL_ERR_MEMORY;
    }
    made->code = fn->code;
    made->ns = fn->ns;
    made->self = fn->self;
    if (fn->self != NULL) {
        fn->self->obj.refs++;
    }
    made->ncaptures = fn->ncaptures;
    *out = tl_obj_value_take(made);
    for (size_t i = 0; i < fn->ncaptures; i++) {
        tl_status st = lift_back(b, fn->captures[i], &made->captures[i]);

        if (st != TL_OK) {
            tl_drop(out);
            return st;
        }
    }
    return TL_OK;
}

/* A text that only the run knows is shown, or has to be known. */
static tl_status back_late(back *b, tl_value v, tl_value *out)
{
    tl_value pieces;

    if (!b->shown) {
        *out = tl_ref(v);
        tl_status st = tl_late_read(b->ev, out);

        if (st != TL_OK) {
            tl_drop(out);
        }
        return st;
    }
    TL_TRY(lift_back(b, v.late->pieces, &pieces));
    return tl_late_new_take(out, pieces, b->ev->diag);
}

static tl_status lift_back(back *b, tl_value v, tl_value *out)
{
    TL_TRY(tl_check_stack(b->ev, b->ev->rt->span));
    switch (v.tag) {
    case TL_V_NODE:
    case TL_V_SYM:
        return b->result(b->arg, v, out);
    case TL_V_LIST:
    case TL_V_TUPLE:
        return back_seq(b, v, out);
    case TL_V_DICT:
        return back_dict(b, v, out);
    case TL_V_RECORD:
        return back_record(b, v, out);
    case TL_V_TREE:
        return back_tree(b, v, out);
    case TL_V_LATE:
        return back_late(b, v, out);
    case TL_V_FN:
        if (v.fn->ncaptures > 0) {
            return back_fn(b, v, out);
        }
        break;
    case TL_V_UNKNOWN:
        return tl_trace_refuse(b->ev, "a result is not known before the run");
    default:
        break;
    }
    *out = tl_ref(v);
    return TL_OK;
}

tl_status tl_lift_back(tl_eval *ev, tl_value v,
                       tl_status (*result)(void *arg, tl_value node,
                                           tl_value *out),
                       void *arg, tl_value *out)
{
    back b = {.ev = ev, .result = result, .arg = arg};

    return lift_back(&b, v, out);
}

tl_status tl_lift_back_shown(tl_eval *ev, tl_value v,
                             tl_status (*result)(void *arg, tl_value node,
                                                 tl_value *out),
                             void *arg, tl_value *out)
{
    back b = {.ev = ev, .shown = true, .result = result, .arg = arg};

    return lift_back(&b, v, out);
}
