/* shape_join.c - states of the shape pass: snapshots, joins, uncertainty. */
#include "interp/shape_impl.h"

#include "interp/container.h"
#include "interp/tree.h"
#include "runtime/base/mem.h"

/* ---- joins ------------------------------------------------------------- */

static void set_unknown(tl_value *v)
{
    tl_drop(v);
    *v = tl_unknown();
}

/* Two tensors: the common type, sizes that differ become fresh. */
static tl_status join_types(tl_eval *ev, tl_value *v, const tl_ttype *a,
                            const tl_ttype *b)
{
    tl_ttype t = *a;

    if (a->dtype != b->dtype || a->shape.rank != b->shape.rank) {
        set_unknown(v);
        return TL_OK;
    }
    for (int i = 0; i < t.shape.rank; i++) {
        if (!tl_dim_same(a->shape.dim[i], b->shape.dim[i])) {
            TL_TRY(tl_dim_fresh(tl_shape_state_of(ev)->dims, "a join",
                                &t.shape.dim[i], ev->diag));
        }
    }
    tl_drop(v);
    return tl_dnode_new(v, &t, 0, ev->diag);
}

static bool same_immediate(tl_value a, tl_value b)
{
    switch (a.tag) {
    case TL_V_NONE:
    case TL_V_EMPTY:
    case TL_V_ELLIPSIS:
    case TL_V_UNKNOWN:
        return true;
    case TL_V_BOOL:
        return a.b == b.b;
    case TL_V_INT:
        return a.i == b.i;
    case TL_V_FLOAT:
        return a.f == b.f;
    case TL_V_DTYPE:
        return a.dtype == b.dtype;
    default:
        return a.obj == b.obj;
    }
}

static tl_status join_seq(tl_eval *ev, tl_value *v, const tl_seq *other)
{
    tl_value list = tl_empty();

    if (v->seq->len != other->len) {
        set_unknown(v);
        return TL_OK;
    }
    TL_TRY(tl_check_stack(ev, ev->rt->span));
    TL_TRY(tl_seq_new_take(&list, v->tag, NULL, 0, ev->diag));
    for (size_t i = 0; i < other->len; i++) {
        tl_value item = tl_ref(v->seq->items[i]);
        tl_status st = tl_shape_join(ev, &item, other->items[i]);

        if (st != TL_OK) {
            tl_unref(item);
        } else {
            st = tl_list_push_take(list.seq, item, ev->diag);
        }
        if (st != TL_OK) {
            tl_unref(list);
            return st;
        }
    }
    tl_drop(v);
    *v = list;
    return TL_OK;
}

static bool is_scalar_tensor(tl_value v)
{
    return (v.tag == TL_V_TENSOR && v.tensor->rank == 0) ||
           (v.tag == TL_V_NODE && v.node->type.shape.rank == 0);
}

tl_status tl_shape_join(tl_eval *ev, tl_value *v, tl_value other)
{
    tl_ttype a, b;
    bool same = false;

    if (v->tag == other.tag && same_immediate(*v, other)) {
        return TL_OK;
    }
    if (tl_is_tensor(*v) && tl_is_tensor(other)) {
        TL_TRY(tl_eval_type(ev, *v, &a));
        TL_TRY(tl_eval_type(ev, other, &b));
        return join_types(ev, v, &a, &b);
    }
    if (tl_is_number(*v) && is_scalar_tensor(other)) {
        *v = tl_ref(other); /* total = 0.0; total = total + loss */
        return TL_OK;
    }
    if (tl_is_number(other) && is_scalar_tensor(*v)) {
        return TL_OK;
    }
    if ((v->tag == TL_V_LIST || v->tag == TL_V_TUPLE) &&
        other.tag == v->tag) {
        return join_seq(ev, v, other.seq);
    }
    if (v->tag == TL_V_STR && other.tag == TL_V_STR) {
        TL_TRY(tl_value_equal(*v, other, &same, ev->diag));
    }
    if (v->tag == TL_V_TREE && other.tag == TL_V_TREE) {
        same = tl_tree_shape_same(v->tree->shape, other.tree->shape);
    }
    if (!same) {
        set_unknown(v);
    }
    return TL_OK;
}

/* ---- snapshots --------------------------------------------------------- */

static void overlay_fini(tl_overlay *o)
{
    for (size_t i = 0; i < o->len; i++) {
        tl_unref(tl_obj_value_take(o->items[i].cell));
        tl_unref(o->items[i].value);
    }
    tl_free(o->items);
    *o = (tl_overlay){0};
}

static tl_status overlay_copy(tl_eval *ev, const tl_overlay *from,
                              tl_overlay *to)
{
    *to = (tl_overlay){0};
    if (from->len == 0) {
        return TL_OK;
    }
    to->items = tl_calloc(from->len, sizeof(*to->items));
    if (to->items == NULL) {
        return tl_fail_memory(ev->diag, "the shape pass",
                              from->len * sizeof(*to->items));
    }
    to->len = to->cap = from->len;
    for (size_t i = 0; i < from->len; i++) {
        to->items[i].cell = from->items[i].cell;
        to->items[i].cell->obj.refs++;
        to->items[i].value = tl_ref(from->items[i].value);
    }
    return TL_OK;
}

static tl_status values_copy(tl_eval *ev, const tl_value *from, size_t n,
                             tl_value **to)
{
    *to = NULL;
    if (n == 0) {
        return TL_OK;
    }
    *to = tl_calloc(n, sizeof(**to));
    if (*to == NULL) {
        return tl_fail_memory(ev->diag, "the shape pass", n * sizeof(**to));
    }
    for (size_t i = 0; i < n; i++) {
        (*to)[i] = tl_ref(from[i]);
    }
    return TL_OK;
}

static bool at_top(const tl_eval *ev)
{
    return ev->frame->fn->kind == TL_FUNC_UNIT;
}

tl_status tl_snapshot_take(tl_eval *ev, tl_snapshot *s)
{
    tl_frame *f = ev->frame;

    *s = (tl_snapshot){.nslots = f->fn->nslots};
    tl_status st = values_copy(ev, f->slots, s->nslots, &s->slots);

    if (st == TL_OK && at_top(ev)) {
        st = values_copy(ev, f->ns->slots, f->ns->nslots, &s->globals);
        s->nglobals = st == TL_OK ? f->ns->nslots : 0;
    }
    if (st == TL_OK) {
        st = overlay_copy(ev, &tl_shape_state_of(ev)->cells, &s->cells);
    }
    if (st != TL_OK) {
        tl_snapshot_fini(s);
    }
    return st;
}

void tl_snapshot_fini(tl_snapshot *s)
{
    if (s->slots != NULL) {
        tl_unref_all(s->slots, s->nslots);
    }
    if (s->globals != NULL) {
        tl_unref_all(s->globals, s->nglobals);
    }
    tl_free(s->slots);
    tl_free(s->globals);
    overlay_fini(&s->cells);
    *s = (tl_snapshot){0};
}

static void put_back(tl_value *to, size_t nto, const tl_value *from,
                     size_t nfrom)
{
    for (size_t i = 0; i < nto; i++) {
        tl_value v = i < nfrom ? tl_ref(from[i]) : tl_empty();

        tl_drop(&to[i]);
        to[i] = v;
    }
}

tl_status tl_snapshot_restore(tl_eval *ev, const tl_snapshot *s)
{
    tl_frame *f = ev->frame;
    tl_overlay cells;

    TL_TRY(overlay_copy(ev, &s->cells, &cells));
    overlay_fini(&tl_shape_state_of(ev)->cells);
    tl_shape_state_of(ev)->cells = cells;
    put_back(f->slots, f->fn->nslots, s->slots, s->nslots);
    if (at_top(ev)) {
        put_back(f->ns->slots, f->ns->nslots, s->globals, s->nglobals);
    }
    return TL_OK;
}

static tl_status join_values(tl_eval *ev, tl_value *to, size_t nto,
                             const tl_value *from, size_t nfrom, bool widen,
                             bool *changed)
{
    for (size_t i = 0; i < nto; i++) {
        tl_value other = i < nfrom ? from[i] : tl_empty();

        if (to[i].tag == other.tag && same_immediate(to[i], other)) {
            continue;
        }
        *changed = true;
        if (widen) {
            set_unknown(&to[i]);
        } else {
            TL_TRY(tl_shape_join(ev, &to[i], other));
        }
    }
    return TL_OK;
}

static tl_value *overlay_find(tl_overlay *o, const tl_cell *cell)
{
    for (size_t i = 0; i < o->len; i++) {
        if (o->items[i].cell == cell) {
            return &o->items[i].value;
        }
    }
    return NULL;
}

/* Cells keep their types, so a cell written on one path only keeps what was
 * written; on both, the join. */
static tl_status join_overlay(tl_eval *ev, const tl_overlay *from)
{
    tl_overlay *to = &tl_shape_state_of(ev)->cells;

    for (size_t i = 0; i < from->len; i++) {
        tl_value *v = overlay_find(to, from->items[i].cell);

        if (v != NULL) {
            TL_TRY(tl_shape_join(ev, v, from->items[i].value));
        }
    }
    return TL_OK;
}

tl_status tl_snapshot_join(tl_eval *ev, const tl_snapshot *s, bool widen,
                           bool *changed)
{
    tl_frame *f = ev->frame;
    bool any = false;

    TL_TRY(join_values(ev, f->slots, f->fn->nslots, s->slots, s->nslots,
                       widen, &any));
    if (at_top(ev)) {
        TL_TRY(join_values(ev, f->ns->slots, f->ns->nslots, s->globals,
                           s->nglobals, widen, &any));
    }
    if (changed != NULL) {
        *changed = any;
    }
    return join_overlay(ev, &s->cells);
}

/* ---- what may not happen ----------------------------------------------- */

tl_status tl_shape_give_up(tl_eval *ev)
{
    tl_shape_state_of(ev)->silent = true;
    ev->diag->muted = true; /* until whoever catches it */
    return TL_ERR_PROGRAM;
}

void tl_maybe_begin(tl_eval *ev, tl_maybe *m)
{
    *m = (tl_maybe){.muted = ev->diag->muted,
                    .silent = tl_shape_state_of(ev)->silent,
                    .nerrors = ev->diag->nerrors,
                    .nwarnings = ev->diag->nwarnings};
    ev->diag->muted = true;
}

tl_status tl_maybe_end(tl_eval *ev, const tl_maybe *m, tl_status st,
                       bool *dead)
{
    *dead = st != TL_OK;
    if (st == TL_OK || tl_status_catchable(st)) {
        ev->diag->muted = m->muted;
        ev->diag->nerrors = m->nerrors;
        ev->diag->nwarnings = m->nwarnings;
        tl_shape_state_of(ev)->silent = m->silent;
        return TL_OK;
    }
    ev->diag->muted = m->muted;
    return st;
}
