/* graph_carry.c - what a loop of the graph domain carries from turn to turn:
 * variables, cells, the counter of draws, and whether an earlier turn has ended
 * it; as values of the graph, and back. */
#include "interp/autocast.h"
#include "interp/graph_loop.h"
#include "runtime/base/mem.h"
#include "runtime/base/vec.h"

/* ---- the values of the graph in a value --------------------------------- */

static tl_status flatten(tl_eval *ev, tl_value v, tl_gvals *out)
{
    tl_gval x;

    TL_TRY(tl_check_stack(ev, ev->rt->span));
    if (tl_is_tensor(v)) {
        TL_TRY(tl_trace_value(ev, v, &x));
        return TL_VEC_PUSH(out, x, ev->diag);
    }
    if (tl_is_any_number(v)) {
        TL_TRY(tl_sym_host(ev, v, false, &x));
        return TL_VEC_PUSH(out, x, ev->diag);
    }
    if (v.tag == TL_V_LIST || v.tag == TL_V_TUPLE) {
        for (size_t i = 0; i < v.seq->len; i++) {
            TL_TRY(flatten(ev, v.seq->items[i], out));
        }
    } else if (v.tag == TL_V_TREE) {
        for (size_t i = 0; i < v.tree->shape->len; i++) {
            TL_TRY(flatten(ev, v.tree->items[i], out));
        }
    }
    return TL_OK;
}

/* `v` with x[*at ...] in place of what flatten finds. */
static tl_status rebuild(tl_eval *ev, tl_value v, const tl_gval *x,
                         size_t *at, tl_value *out)
{
    tl_status st = TL_OK;

    if (tl_is_tensor(v)) {
        return tl_trace_node(ev, x[(*at)++], out);
    }
    if (tl_is_any_number(v)) {
        return tl_sym_new(ev, x[(*at)++],
                          v.tag == TL_V_SYM ? v.sym->hint : v, out);
    }
    if (v.tag == TL_V_LIST || v.tag == TL_V_TUPLE) {
        TL_TRY(tl_seq_alloc(out, v.tag, v.seq->len, ev->diag));
        for (size_t i = 0; i < v.seq->len && st == TL_OK; i++) {
            st = rebuild(ev, v.seq->items[i], x, at, &out->seq->items[i]);
        }
    } else if (v.tag == TL_V_TREE) {
        TL_TRY(tl_tree_zeros(ev, v, out)); /* of the same structure */
        for (size_t i = 0; i < v.tree->shape->len && st == TL_OK; i++) {
            tl_drop(&out->tree->items[i]);
            st = rebuild(ev, v.tree->items[i], x, at, &out->tree->items[i]);
        }
    } else {
        *out = tl_ref(v);
    }
    if (st != TL_OK) {
        tl_drop(out);
    }
    return st;
}

bool tl_gloop_same_kind(tl_eval *ev, tl_value a, tl_value b)
{
    tl_ttype x, y;

    if (tl_is_tensor(a) && tl_is_tensor(b)) {
        bool same = tl_eval_type(ev, a, &x) == TL_OK &&
                    tl_eval_type(ev, b, &y) == TL_OK &&
                    x.dtype == y.dtype && x.shape.rank == y.shape.rank &&
                    tl_stored_dtype(ev, a) == tl_stored_dtype(ev, b);

        for (int i = 0; same && i < x.shape.rank; i++) {
            tl_infer *cx = tl_eval_infer(ev);

            same = tl_infer_yes(cx, tl_infer_equal(cx, x.shape.dim[i],
                                                   y.shape.dim[i]));
        }
        return same;
    }
    if (tl_is_any_number(a) && tl_is_any_number(b)) {
        return tl_number_tag(a) == tl_number_tag(b);
    }
    if (a.tag != b.tag) {
        return false;
    }
    if (a.tag == TL_V_LIST || a.tag == TL_V_TUPLE) {
        if (a.seq->len != b.seq->len) {
            return false;
        }
        for (size_t i = 0; i < a.seq->len; i++) {
            if (!tl_gloop_same_kind(ev, a.seq->items[i], b.seq->items[i])) {
                return false;
            }
        }
        return true;
    }
    if (a.tag == TL_V_TREE) {
        return tl_tree_shape_same(a.tree->shape, b.tree->shape);
    }
    return tl_gvalue_same(a, b);
}

/* ---- what is carried ---------------------------------------------------- */

tl_status tl_gloop_init(tl_gloop *l)
{
    TL_TRY(tl_trace_counter(l->ev));
    TL_TRY(tl_gstate_take(l->ev, &l->before));
    l->ncells = l->before.ncells + 4096; /* cells met in the body */
    l->slot = tl_calloc(l->before.nslots + 1, sizeof(*l->slot));
    l->cell = tl_calloc(l->ncells, sizeof(*l->cell));
    l->grown = tl_calloc(l->before.nslots + 1, sizeof(*l->grown));
    if (l->slot == NULL || l->cell == NULL || l->grown == NULL) {
        return tl_fail_memory(l->ev->diag, "a loop", l->ncells);
    }
    return TL_OK;
}

void tl_gloop_walk_fini(tl_gloop *l)
{
    tl_gstate_fini(&l->start);
    tl_gstate_fini(&l->end);
    tl_drop(&l->value);
    l->init.len = l->params.len = l->results.len = l->stacked.len = 0;
    l->has_test = l->has_body = false;
}

void tl_gloop_fini(tl_gloop *l)
{
    tl_gloop_walk_fini(l);
    tl_gstate_fini(&l->before);
    tl_unref(l->returned);
    tl_free(l->slot);
    tl_free(l->cell);
    tl_free(l->grown);
    tl_free(l->init.items);
    tl_free(l->params.items);
    tl_free(l->results.items);
    tl_free(l->stacked.items);
}

/* fn for each carried value of a state, in a fixed order. */
typedef tl_status each_fn(tl_gloop *l, tl_value v, void *arg);

static tl_status each_carried(tl_gloop *l, const tl_gstate *s, each_fn *fn,
                              void *arg)
{
    size_t cells = tl_trace_of(l->ev)->cells.len;

    for (size_t i = 0; i < s->nslots; i++) {
        if (l->slot[i]) {
            TL_TRY(fn(l, s->slots[i], arg));
        }
    }
    for (size_t i = 0; i < cells && i < l->ncells; i++) {
        if (l->cell[i]) {
            TL_TRY(fn(l, tl_gstate_cell(l->ev, s, i), arg));
        }
    }
    return TL_OK;
}

static tl_status add_flat(tl_gloop *l, tl_value v, void *arg)
{
    return flatten(l->ev, v, arg);
}

tl_status tl_gloop_collect(tl_gloop *l, const tl_gstate *s, tl_gvals *out)
{
    TL_TRY(each_carried(l, s, add_flat, out));
    return l->draws ? TL_VEC_PUSH(out, s->base, l->ev->diag) : TL_OK;
}

tl_status tl_gloop_first_flags(tl_gloop *l, tl_gvals *out)
{
    tl_eval *ev = l->ev;
    tl_value place;
    tl_gval v;
    tl_status st;

    if (l->returns) {
        TL_TRY(tl_gstate_placeholder(ev, l->returned, &place));
        st = flatten(ev, place, out);
        tl_unref(place);
        TL_TRY(st);
        TL_TRY(tl_ways_known(ev, false, &v));
        TL_TRY(TL_VEC_PUSH(out, v, ev->diag));
    }
    if (l->breaks) {
        TL_TRY(tl_ways_known(ev, true, &v));
        TL_TRY(TL_VEC_PUSH(out, v, ev->diag));
    }
    return TL_OK;
}

tl_status tl_gloop_next_flags(tl_gloop *l, tl_gvals *out)
{
    tl_eval *ev = l->ev;

    if (l->returns) {
        TL_TRY(flatten(ev, l->value, out));
        TL_TRY(TL_VEC_PUSH(out, l->has_returned, ev->diag));
    }
    return l->breaks ? TL_VEC_PUSH(out, l->goes_on, ev->diag) : TL_OK;
}

tl_status tl_gloop_place(tl_gloop *l, const tl_gval *x)
{
    tl_eval *ev = l->ev;
    tl_trace *tr = tl_trace_of(ev);
    size_t at = 0;
    tl_value v;

    for (size_t i = 0; i < l->before.nslots; i++) {
        if (l->slot[i]) {
            TL_TRY(rebuild(ev, l->before.slots[i], x, &at, &v));
            tl_unref(ev->frame->slots[i]);
            ev->frame->slots[i] = v;
        }
    }
    for (size_t i = 0; i < tr->cells.len && i < l->ncells; i++) {
        if (l->cell[i]) {
            TL_TRY(rebuild(ev, tl_gstate_cell(ev, &l->before, i), x, &at,
                           &v));
            tl_unref(tr->cells.items[i].value);
            tr->cells.items[i].value = v;
            tr->cells.items[i].written = true;
        }
    }
    if (l->draws) {
        tr->b.draws = x[at++];
        tr->b.first_draw = ev->rt->draws;
    }
    if (l->returns) { /* what an earlier turn has returned: none has */
        tl_drop(&l->value);
        TL_TRY(rebuild(ev, l->returned, x, &at, &l->value));
        l->has_returned = x[at];
    }
    return TL_OK;
}
