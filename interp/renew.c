/* renew.c - aliases of values where ways come together. */
#include "interp/renew.h"

#include "interp/autocast.h"
#include "interp/trace.h"
#include "runtime/tape/tape.h"

bool tl_renews(const tl_eval *ev)
{
    if (ev->rt->no_grad > 0) {
        return false;
    }
    if (ev->domain->has_data) {
        return ev->rt->tape != NULL;
    }
    return tl_is_tracing(ev) &&
           ((const tl_trace *)ev->domain_state)->b.visible != 0;
}

/* tl_custom_grad_fn of the identity. */
static tl_status pass_on(void *data, tl_tensor *const *g, int nout,
                         tl_tensor **dx, int nin, tl_diag *diag)
{
    (void)data;
    (void)nout;
    (void)nin;
    (void)diag;
    dx[0] = tl_tensor_ref(g[0]);
    return TL_OK;
}

/* An alias of *t that is the identity of it on each open tape. */
static tl_status renew_tensor(tl_eval *ev, tl_tensor **t)
{
    tl_rt *rt = ev->rt;
    tl_tensor *made;
    tl_status st = TL_OK;

    if (!tl_tape_sees(rt->tape, t, 1)) {
        return TL_OK;
    }
    TL_TRY(tl_tensor_alias(&made, *t, ev->diag));
    made->flags |= (*t)->flags & TL_TENSOR_WEIGHT;
    for (tl_tape *tape = rt->tape; tape != NULL && st == TL_OK;
         tape = tape->outer) {
        st = tl_tape_record_custom(tape, t, 1, &made, 1, pass_on, NULL, NULL,
                                   rt->span, ev->diag);
    }
    if (st != TL_OK) {
        tl_tensor_unref(made);
        return st;
    }
    tl_tensor_unref(*t);
    *t = made;
    return TL_OK;
}

/* The same in a graph. */
static tl_status renew_node(tl_eval *ev, tl_value *v)
{
    tl_gbuild *b = &tl_trace_of(ev)->b;
    tl_gval of = v->node->id, made;
    tl_value alias;

    if ((b->values.items[of].seen & b->visible) == 0) {
        return TL_OK;
    }
    b->no_grad = ev->rt->no_grad;
    TL_TRY(tl_gbuild_alias(b, of, &made));
    b->values.items[made].weight = b->values.items[of].weight;
    TL_TRY(tl_trace_node(ev, made, &alias));
    tl_unref(*v);
    *v = alias;
    return TL_OK;
}

/* Does it hold a tensor that may be renewed? */
static bool holds_tensor(tl_value v, int depth)
{
    if (v.tag == TL_V_TENSOR || v.tag == TL_V_NODE) {
        return true;
    }
    for (size_t i = 0; v.tag == TL_V_TUPLE && depth > 0 && i < v.seq->len;
         i++) {
        if (holds_tensor(v.seq->items[i], depth - 1)) {
            return true;
        }
    }
    return false;
}

static tl_status renew(tl_eval *ev, tl_value *v, int depth)
{
    tl_value made;

    if (v->tag == TL_V_TENSOR) {
        return renew_tensor(ev, &v->tensor);
    }
    if (v->tag == TL_V_NODE) {
        return renew_node(ev, v);
    }
    if (!holds_tensor(*v, depth)) {
        return TL_OK;
    }
    TL_TRY(tl_seq_alloc(&made, TL_V_TUPLE, v->seq->len, ev->diag));
    for (size_t i = 0; i < v->seq->len; i++) {
        made.seq->items[i] = tl_ref(v->seq->items[i]);
        tl_status st = renew(ev, &made.seq->items[i], depth - 1);

        if (st != TL_OK) {
            tl_unref(made);
            return st;
        }
    }
    tl_unref(*v);
    *v = made;
    return TL_OK;
}

tl_status tl_renew_value(tl_eval *ev, tl_value *v)
{
    enum { MAX_DEPTH = 8 }; /* of tuples */

    return tl_renews(ev) ? renew(ev, v, MAX_DEPTH) : TL_OK;
}

tl_status tl_renew_slots(tl_eval *ev, const tl_slots *set)
{
    for (uint32_t i = 0; i < set->len; i++) {
        TL_TRY(tl_renew_value(ev, &ev->frame->slots[set->items[i]]));
    }
    return TL_OK;
}
