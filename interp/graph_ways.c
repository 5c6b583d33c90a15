/* graph_ways.c - see graph_ways.h. */
#include "interp/graph_ways.h"

#include <string.h>

#include "runtime/base/mem.h"
#include "runtime/base/vec.h"

enum { MAX_OPEN = 48 }; /* regions in regions, of exits */

static tl_gbuild *builder(tl_eval *ev)
{
    return &tl_trace_of(ev)->b;
}

void tl_gends_fini(tl_gends *e)
{
    for (int w = 0; w < TL_GWAYS; w++) {
        tl_unref(e->way[w].value);
        tl_gstate_fini(&e->way[w].state);
    }
    memset(e, 0, sizeof(*e));
}

void tl_gexit_fini(tl_gexit *e)
{
    tl_gends_fini(&e->ends);
    tl_gstate_fini(&e->before);
}

tl_status tl_ways_known(tl_eval *ev, bool is, tl_gval *out)
{
    tl_gscalar v = {.i = 0};

    v.b = is;
    return tl_gbuild_num(builder(ev), TL_GC_BOOL, v, out);
}

static int count(const tl_gends *e)
{
    int n = 0;

    for (int w = 0; w < TL_GWAYS; w++) {
        n += e->way[w].is;
    }
    return n;
}

bool tl_ways_have(tl_eval *ev, size_t from, tl_flow flow)
{
    const tl_trace *tr = tl_trace_of(ev);

    for (size_t i = from; i < tr->exits.len; i++) {
        if (tr->exits.items[i].ends.way[flow].is) {
            return true;
        }
    }
    return false;
}

bool tl_ways_is_next(const tl_gends *e)
{
    return e->way[TL_FLOW_NEXT].is && count(e) == 1;
}

/* ---- regions that are not used ------------------------------------------ */

/* A closed region without nodes. */
static tl_status empty_region(tl_eval *ev, uint32_t *out)
{
    tl_gbuild *b = builder(ev);
    uint32_t around = b->owner;
    tl_gval none;

    TL_TRY(tl_gbuild_region_open(b, NULL, NULL, 0, out, &none));
    return tl_gbuild_region_close(b, *out, around);
}

static tl_status never_run(tl_eval *ev, uint32_t region)
{
    uint32_t other;
    tl_gval no, none;

    TL_TRY(tl_ways_known(ev, false, &no));
    TL_TRY(empty_region(ev, &other));
    return tl_gbuild_flow(builder(ev),
                          &(tl_gflow){.kind = TL_G_IF, .region = region,
                                      .nregions = 2, .in = &no, .nin = 1},
                          &none);
}

void tl_ways_kill(tl_eval *ev, uint32_t region)
{
    if (region != 0 && never_run(ev, region) != TL_OK) {
        (void)tl_diag_pop(ev->diag);
        tl_trace_of(ev)->gave_up = true;
    }
}

void tl_ways_drop(tl_eval *ev, size_t from)
{
    tl_trace *tr = tl_trace_of(ev);

    while (tr->exits.len > from) {
        tl_gexit e = tr->exits.items[--tr->exits.len];

        if (tl_gbuild_region_close(&tr->b, e.region, e.around) != TL_OK) {
            (void)tl_diag_pop(ev->diag);
            tr->gave_up = true;
        }
        tl_ways_kill(ev, e.region); /* the later one first */
        tl_ways_kill(ev, e.left);
        tl_gexit_fini(&e);
    }
}

/* ---- joining ------------------------------------------------------------ */

/* One way of the two arms while it is joined. */
typedef struct pairing {
    bool is;
    tl_gway *direct; /* of one arm alone, from outside: it stays */
    const tl_gstate *a, *b;
    tl_value va, vb;
    tl_gval ta, tb;  /* pair of flags; 0: none */
    tl_gval taken;   /* where there is none */
    tl_gstate fake;
    tl_value place;
} pairing;

typedef struct joining {
    tl_eval *ev;
    tl_gval cond;
    const tl_gstate *before;
    tl_garm *a, *b;
    pairing way[TL_GWAYS];
    tl_gpairs pairs;
    tl_gval *results;
    size_t at;
} joining;

static void joining_fini(joining *j)
{
    for (int w = 0; w < TL_GWAYS; w++) {
        tl_gstate_fini(&j->way[w].fake);
        tl_unref(j->way[w].place);
    }
    tl_gpairs_fini(&j->pairs);
    tl_free(j->results);
}

static tl_status not_of(tl_eval *ev, tl_gval v, tl_gval *out)
{
    return tl_gbuild_host(builder(ev), TL_H_not, TL_GC_BOOL, &v, 1, out);
}

/* Both arms may end so. */
static tl_status prepare_both(joining *j, int w)
{
    tl_gway *a = &j->a->ends.way[w], *b = &j->b->ends.way[w];
    pairing *p = &j->way[w];

    p->a = &a->state;
    p->b = &b->state;
    p->va = a->value;
    p->vb = b->value;
    if (a->taken == 0 && b->taken == 0) {
        return TL_OK;
    }
    p->ta = a->taken;
    p->tb = b->taken;
    if (p->ta == 0) {
        return tl_ways_known(j->ev, true, &p->ta);
    }
    return p->tb == 0 ? tl_ways_known(j->ev, true, &p->tb) : TL_OK;
}

/* Only one arm may: the other one gives something of the same types. */
static tl_status prepare_one(joining *j, int w, bool of_a)
{
    tl_garm *arm = of_a ? j->a : j->b, *other = of_a ? j->b : j->a;
    tl_gway *x = &arm->ends.way[w];
    pairing *p = &j->way[w];
    tl_gval no;

    if (arm->outside) {
        p->direct = x;
        return TL_OK;
    }
    TL_TRY(tl_gstate_fake(j->ev, &x->state, j->before, w != TL_FLOW_RETURN,
                          &p->fake));
    TL_TRY(tl_gstate_placeholder(j->ev, x->value, &p->place));
    p->a = of_a ? &x->state : &p->fake;
    p->b = of_a ? &p->fake : &x->state;
    p->va = of_a ? x->value : p->place;
    p->vb = of_a ? p->place : x->value;
    if (x->taken != 0) {
        TL_TRY(tl_ways_known(j->ev, false, &no));
        p->ta = of_a ? x->taken : no;
        p->tb = of_a ? no : x->taken;
    } else if (count(&other->ends) > 0) {
        p->taken = j->cond;
        return of_a ? TL_OK : not_of(j->ev, j->cond, &p->taken);
    }
    return TL_OK;
}

static tl_status prepare(joining *j)
{
    for (int w = 0; w < TL_GWAYS; w++) {
        bool a = j->a->ends.way[w].is, b = j->b->ends.way[w].is;

        j->way[w].is = a || b;
        if (a && b) {
            TL_TRY(prepare_both(j, w));
        } else if (a || b) {
            TL_TRY(prepare_one(j, w, a));
        }
    }
    return TL_OK;
}

/* A slot of which one way knows nothing is not known: who reads it is
 * refused. */
static bool is_unset(tl_value a, tl_value b)
{
    return a.tag == TL_V_EMPTY || b.tag == TL_V_EMPTY ||
           a.tag == TL_V_UNKNOWN || b.tag == TL_V_UNKNOWN;
}

/* Collect the pairs of two states: cells, counter and, if wanted, slots. */
static tl_status collect_states(joining *j, const tl_gstate *a,
                                const tl_gstate *b, bool slots)
{
    tl_eval *ev = j->ev;
    size_t cells = tl_trace_of(ev)->cells.len;

    for (size_t i = 0; slots && i < a->nslots; i++) {
        if (!is_unset(a->slots[i], b->slots[i])) {
            TL_TRY(tl_gjoin_collect(ev, &j->pairs, a->slots[i], b->slots[i],
                                    tl_slot_name(ev, i)));
        }
    }
    for (size_t i = 0; i < cells; i++) {
        TL_TRY(tl_gjoin_collect(ev, &j->pairs, tl_gstate_cell(ev, a, i),
                                tl_gstate_cell(ev, b, i), "a cell"));
    }
    if (a->base == b->base) {
        return TL_OK;
    }
    TL_TRY(TL_VEC_PUSH(&j->pairs.a, a->base, ev->diag));
    return TL_VEC_PUSH(&j->pairs.b, b->base, ev->diag);
}

/* The same walk: the running state becomes the joined one. */
static tl_status build_states(joining *j, const tl_gstate *a,
                              const tl_gstate *b, bool slots)
{
    tl_eval *ev = j->ev;
    tl_trace *tr = tl_trace_of(ev);

    for (size_t i = 0; slots && i < a->nslots; i++) {
        tl_value v = tl_unknown();

        if (!is_unset(a->slots[i], b->slots[i])) {
            TL_TRY(tl_gjoin_build(ev, a->slots[i], b->slots[i], j->results,
                                  &j->at, &v));
        } else if (a->slots[i].tag == b->slots[i].tag) {
            v = a->slots[i];
        }
        tl_unref(ev->frame->slots[i]);
        ev->frame->slots[i] = v;
    }
    for (size_t i = 0; i < tr->cells.len; i++) {
        tl_value v;

        TL_TRY(tl_gjoin_build(ev, tl_gstate_cell(ev, a, i),
                              tl_gstate_cell(ev, b, i), j->results, &j->at,
                              &v));
        tl_unref(tr->cells.items[i].value);
        tr->cells.items[i].value = v;
        tr->cells.items[i].written =
            tl_gstate_wrote(a, i) || tl_gstate_wrote(b, i);
    }
    tr->b.draws = a->base;
    if (a->base != b->base) {
        tr->b.draws = j->results[j->at++];
        tr->b.first_draw = ev->rt->draws;
    }
    return TL_OK;
}

static tl_status collect(joining *j)
{
    for (int w = 0; w < TL_GWAYS; w++) {
        const pairing *p = &j->way[w];

        if (!p->is || p->direct != NULL) {
            continue;
        }
        if (p->ta != 0) {
            TL_TRY(TL_VEC_PUSH(&j->pairs.a, p->ta, j->ev->diag));
            TL_TRY(TL_VEC_PUSH(&j->pairs.b, p->tb, j->ev->diag));
        }
        TL_TRY(collect_states(j, p->a, p->b, w != TL_FLOW_RETURN));
        TL_TRY(tl_gjoin_collect(j->ev, &j->pairs, p->va, p->vb,
                                w == TL_FLOW_RETURN ? "the result"
                                                    : "the value"));
    }
    return TL_OK;
}

static tl_status build(joining *j, tl_gends *out)
{
    for (int w = 0; w < TL_GWAYS; w++) {
        const pairing *p = &j->way[w];
        tl_gway *o = &out->way[w];

        if (!p->is) {
            continue;
        }
        o->is = true;
        if (p->direct != NULL) {
            *o = *p->direct;
            memset(p->direct, 0, sizeof(*p->direct));
            continue;
        }
        tl_gstate_restore(j->ev, j->before);
        o->taken = p->ta != 0 ? j->results[j->at++] : p->taken;
        TL_TRY(build_states(j, p->a, p->b, w != TL_FLOW_RETURN));
        TL_TRY(tl_gjoin_build(j->ev, p->va, p->vb, j->results, &j->at,
                              &o->value));
        TL_TRY(tl_gstate_settle(j->ev, j->before));
        TL_TRY(tl_gstate_settle_value(j->ev, &o->value));
        TL_TRY(tl_gstate_take(j->ev, &o->state));
    }
    return TL_OK;
}

/* The IF node that owns the arms, its results being the pairs. */
static tl_status make_node(joining *j)
{
    tl_gbuild *g = builder(j->ev);
    uint32_t n = (uint32_t)j->pairs.a.len;

    j->results = tl_calloc(n + 1, sizeof(*j->results));
    if (j->results == NULL) {
        return tl_fail_memory(j->ev->diag, "a branch",
                              n * sizeof(*j->results));
    }
    if (n > UINT8_MAX) {
        return tl_trace_refuse(j->ev, "a branch gives %u values; %d at most",
                               n, UINT8_MAX);
    }
    TL_TRY(tl_gbuild_region_results(g, j->a->region, j->pairs.a.items, n));
    TL_TRY(tl_gbuild_region_results(g, j->b->region, j->pairs.b.items, n));
    TL_TRY(tl_gbuild_flow(g,
                          &(tl_gflow){.kind = TL_G_IF,
                                      .region = j->a->region, .nregions = 2,
                                      .in = &j->cond, .nin = 1,
                                      .like = j->pairs.a.items, .n = n},
                          j->results));
    j->a->region = j->b->region = 0; /* they have an owner */
    return TL_OK;
}

/* An arm that raises must not be taken. */
static tl_status assert_taken(const joining *j, bool a, bool b)
{
    tl_gval cond = j->cond;

    if (a == b) {
        return TL_OK;
    }
    if (b) {
        TL_TRY(not_of(j->ev, cond, &cond));
    }
    return tl_trace_holds(j->ev, cond);
}

tl_status tl_ways_join(tl_eval *ev, tl_gval cond, const tl_gstate *before,
                       tl_garm *a, tl_garm *b, tl_gends *out)
{
    joining j = {.ev = ev, .cond = cond, .before = before, .a = a, .b = b};
    bool ends_a = count(&a->ends) > 0, ends_b = count(&b->ends) > 0;
    tl_gends made = {0};
    tl_status st = prepare(&j);

    if (st == TL_OK) {
        st = collect(&j);
    }
    if (st == TL_OK) {
        st = make_node(&j);
    }
    if (st == TL_OK) {
        st = build(&j, &made);
    }
    if (st == TL_OK) {
        tl_gstate_restore(ev, before);
        st = assert_taken(&j, ends_a, ends_b);
    }
    if (st != TL_OK) {
        tl_gends_fini(&made);
        tl_ways_kill(ev, b->region > a->region ? b->region : a->region);
        tl_ways_kill(ev, b->region > a->region ? a->region : b->region);
        a->region = b->region = 0;
    } else {
        *out = made;
    }
    joining_fini(&j);
    return st;
}

/* ---- closing ------------------------------------------------------------ */

/* The one way of code that has ended with `flow`. */
static tl_status single(tl_eval *ev, tl_flow flow, tl_value *value,
                        const tl_gstate *before, tl_gends *out)
{
    tl_gway *w = &out->way[flow];

    w->is = true;
    if (flow == TL_FLOW_RETURN) {
        w->value = ev->ret;
        ev->ret = tl_empty();
    } else if (value != NULL) {
        w->value = *value;
        *value = tl_empty();
    }
    TL_TRY(tl_gstate_settle(ev, before));
    TL_TRY(tl_gstate_settle_value(ev, &w->value));
    return tl_gstate_take(ev, &w->state);
}

/* *e, how the open region of the exit ends, becomes how all ends that its
 * condition decides. */
static tl_status close_exit(tl_eval *ev, tl_gexit *x, tl_gends *e)
{
    tl_garm left = {.region = x->left, .outside = x->left == 0,
                    .ends = x->ends};
    tl_garm rest = {.region = x->region, .ends = *e};
    bool first = x->left != 0; /* who has left comes first */
    tl_status st;

    memset(e, 0, sizeof(*e));
    memset(&x->ends, 0, sizeof(x->ends));
    st = tl_gbuild_region_close(builder(ev), x->region, x->around);
    if (st == TL_OK && left.outside) {
        st = empty_region(ev, &left.region);
    }
    if (st == TL_OK) {
        st = tl_ways_join(ev, x->cond, &x->before, first ? &left : &rest,
                          first ? &rest : &left, e);
    }
    tl_gends_fini(&left.ends);
    tl_gends_fini(&rest.ends);
    return st;
}

/* Is the failure an error that the run meets when it gets there?  Then it is
 * as good as a raise. */
static bool is_raise(tl_eval *ev, tl_status st)
{
    const tl_trace *tr = tl_trace_of(ev);
    const tl_diag_item *why = ev->diag->last;

    return tr->raised ||
           (tr->b.owner != 0 && !tr->gave_up && tl_status_catchable(st) &&
            st != TL_ERR_MEMORY && why != NULL && why->code != TL_E0602 &&
            why->code != TL_E0699);
}

tl_status tl_ways_close(tl_eval *ev, tl_status st, tl_flow flow,
                        tl_value *value, const tl_gstate *before, size_t from,
                        bool may_raise, tl_gends *out)
{
    tl_trace *tr = tl_trace_of(ev);
    bool raised = st != TL_OK && is_raise(ev, st) &&
                  (may_raise || tr->exits.len > from);
    tl_gends e = {0};

    if (st != TL_OK && !raised) {
        tl_ways_drop(ev, from);
        return st;
    }
    if (raised) {
        tr->raised = false;
        (void)tl_diag_pop(ev->diag);
        st = TL_OK;
    } else {
        st = single(ev, flow, value,
                    tr->exits.len > from
                        ? &tr->exits.items[tr->exits.len - 1].before
                        : before,
                    &e);
    }
    while (st == TL_OK && tr->exits.len > from) {
        tl_gexit x = tr->exits.items[--tr->exits.len];

        st = close_exit(ev, &x, &e);
        tl_gexit_fini(&x);
    }
    if (st != TL_OK) {
        tl_gends_fini(&e);
        tl_ways_drop(ev, from);
        return st;
    }
    *out = e;
    return TL_OK;
}

tl_status tl_ways_merge(tl_eval *ev, tl_gends *e, tl_flow from, tl_flow to)
{
    tl_gway *x = &e->way[from], *y = &e->way[to];
    tl_garm a = {.outside = true}, b = {.outside = true};
    bool others = count(e) > 2;
    tl_gval cond = x->taken;
    tl_gends made = {0};
    tl_gstate now;
    tl_status st;

    if (!x->is || !y->is) {
        if (x->is) {
            *y = *x;
            memset(x, 0, sizeof(*x));
        }
        return TL_OK;
    }
    a.ends.way[to] = *x;
    b.ends.way[to] = *y;
    memset(x, 0, sizeof(*x));
    memset(y, 0, sizeof(*y));
    a.ends.way[to].taken = 0;
    if (!others) {
        b.ends.way[to].taken = 0;
    }
    st = tl_gstate_take(ev, &now);
    if (st == TL_OK) {
        st = empty_region(ev, &a.region);
        if (st == TL_OK) {
            st = empty_region(ev, &b.region);
        }
        if (st == TL_OK) {
            st = tl_ways_join(ev, cond, &now, &a, &b, &made);
        }
        tl_gstate_fini(&now);
    }
    if (st == TL_OK) {
        *y = made.way[to];
    }
    tl_gends_fini(&a.ends);
    tl_gends_fini(&b.ends);
    return st;
}

/* ---- going on ----------------------------------------------------------- */

tl_status tl_ways_leave(tl_eval *ev, tl_gexit *x)
{
    tl_trace *tr = tl_trace_of(ev);
    bool returns = x->ends.way[TL_FLOW_RETURN].is;
    tl_status st = TL_OK;

    x->frame = ev->frame;
    if (tr->exits.len >= MAX_OPEN) {
        tr->too_deep = true;
        st = tl_trace_refuse(ev, "more than %d conditions may leave what "
                             "runs here", MAX_OPEN);
    } else {
        st = TL_VEC_PUSH(&tr->exits, *x, ev->diag);
    }
    if (st != TL_OK) {
        if (tl_gbuild_region_close(&tr->b, x->region, x->around) != TL_OK) {
            (void)tl_diag_pop(ev->diag);
            tr->gave_up = true;
        }
        tl_ways_kill(ev, x->region);
        tl_ways_kill(ev, x->left);
        tl_gexit_fini(x);
        return st;
    }
    if (returns && ev->frame->partial.tag == TL_V_EMPTY) {
        ev->frame->partial = tl_bool_value(true); /* see tl_graph_exits */
    }
    return TL_OK;
}

/* Open a region in which the way w is followed, the only one of several. */
static tl_status open_way(tl_eval *ev, tl_gends *e, int w)
{
    tl_gbuild *b = builder(ev);
    tl_gexit x = {.cond = e->way[w].taken, .around = b->owner};
    tl_gval none;

    e->way[w].is = false;
    TL_TRY(tl_gstate_take(ev, &x.before));
    tl_status st = tl_gbuild_region_open(b, NULL, NULL, 0, &x.region, &none);

    if (st != TL_OK) {
        tl_gstate_fini(&x.before);
        return st;
    }
    x.ends = *e;
    tl_unref(x.ends.way[w].value);
    tl_gstate_fini(&x.ends.way[w].state);
    memset(&x.ends.way[w], 0, sizeof(x.ends.way[w]));
    memset(e, 0, sizeof(*e));
    return tl_ways_leave(ev, &x);
}

static tl_status raises(tl_eval *ev)
{
    tl_trace *tr = tl_trace_of(ev);

    tr->raised = tr->b.owner != 0;
    tr->gave_up = !tr->raised;
    return tl_fail(ev->diag, TL_E0602, "it raises an error");
}

tl_status tl_ways_follow(tl_eval *ev, tl_gends *e, tl_flow *flow,
                         tl_value *value)
{
    int n = count(e), w = 0;
    tl_value v;
    tl_status st = TL_OK;

    if (n == 0) {
        return raises(ev);
    }
    while (!e->way[w].is) {
        w++;
    }
    tl_gstate_restore(ev, &e->way[w].state);
    v = e->way[w].value;
    e->way[w].value = tl_empty();
    if (n > 1) {
        st = open_way(ev, e, w);
    }
    tl_gends_fini(e);
    if (st != TL_OK) {
        tl_unref(v);
        return st;
    }
    *flow = (tl_flow)w;
    if (w == TL_FLOW_RETURN) {
        tl_unref(ev->ret);
        ev->ret = v;
    } else if (value != NULL) {
        *value = v;
    } else {
        tl_unref(v);
    }
    return TL_OK;
}

tl_status tl_graph_exits(tl_eval *ev, tl_status st, tl_value *r)
{
    tl_trace *tr = tl_trace_of(ev);
    size_t from = tr->exits.len;
    tl_gends e = {0};

    while (from > 0 && tr->exits.items[from - 1].frame == ev->frame) {
        from--;
    }
    if (from == tr->exits.len || (st != TL_OK && !is_raise(ev, st))) {
        return st;
    }
    if (st == TL_OK) {
        tl_unref(ev->ret);
        ev->ret = *r;
        *r = tl_empty();
    }
    TL_TRY(tl_ways_close(ev, st, TL_FLOW_RETURN, NULL,
                         &tr->exits.items[from].before, from, false, &e));
    if (count(&e) == 0) {
        return raises(ev);
    }
    tl_gstate_restore(ev, &e.way[TL_FLOW_RETURN].state);
    tl_unref(*r);
    *r = e.way[TL_FLOW_RETURN].value;
    e.way[TL_FLOW_RETURN].value = tl_empty();
    tl_gends_fini(&e);
    return TL_OK;
}
