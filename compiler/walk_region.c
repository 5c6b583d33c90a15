/* walk_region.c - branches and loops of a walk.
 *
 * A region's parameters are values like others; what its nodes have left
 * behind is dropped when it ends.  A stack grows by doubling while the number
 * of turns is unknown, and is cut to size at the end. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include <string.h>

#include "compiler/walk_impl.h"
#include "runtime/base/mem.h"

/* ---- regions ------------------------------------------------------------ */

static const tl_gregion *region_of(const tl_walk *w, const tl_gnode *n,
                                   uint32_t k)
{
    return &w->g->regions.items[n->region + k];
}

/* Drop what the region has made, parameters included. */
static void region_clear(tl_walk *w, const tl_gregion *r)
{
    for (uint32_t n = r->first; n < r->last; n++) {
        const tl_gnode *node = &w->g->nodes.items[n];

        for (uint32_t k = 0; k < node->nout; k++) {
            tl_walk_set(w, node->out + k, NULL);
        }
    }
    for (uint32_t k = 0; k < r->nparams; k++) {
        tl_walk_set(w, r->params + k, NULL);
    }
}

/* What a region gives: a tensor (a reference) or a host scalar. */
typedef struct result {
    tl_tensor *t;
    tl_gscalar s;
} result;

static void results_drop(result *r, uint32_t n)
{
    for (uint32_t k = 0; k < n; k++) {
        tl_tensor_unref(r[k].t);
    }
}

/* Run a region; its results are taken into out[], all else is dropped. */
static tl_status region_run(tl_walk *w, const tl_gregion *r, result *out)
{
    uint32_t number = (uint32_t)(r - w->g->regions.items);
    tl_status st = tl_walk_nodes(w, number, r->first, r->last);

    for (uint32_t k = 0; k < r->nresults && st == TL_OK; k++) {
        tl_gval v = w->g->operands.items[r->results + k];

        out[k].t = NULL;
        out[k].s = w->env->scalar[v];
        if (w->g->values.items[v].cls == TL_GC_TENSOR) {
            out[k].t = tl_tensor_ref(w->value[v]);
        }
    }
    region_clear(w, r);
    return st;
}

/* Make results values of the graph; the references go over. */
static void results_give(tl_walk *w, const result *r, uint32_t n, tl_gval to)
{
    for (uint32_t k = 0; k < n; k++) {
        if (w->g->values.items[to + k].cls == TL_GC_TENSOR) {
            tl_walk_set(w, to + k, r[k].t);
        } else {
            tl_walk_set_scalar(w, to + k, r[k].s);
        }
    }
}

static tl_status results_new(tl_walk *w, uint32_t n, result **out)
{
    *out = tl_calloc((size_t)n + 1, sizeof(**out));
    return *out ? TL_OK
                : tl_fail_memory(w->rt->diag, "results of a region",
                                 ((size_t)n + 1) * sizeof(**out));
}

tl_status tl_walk_if(tl_walk *w, const tl_gnode *n)
{
    bool holds = w->env->scalar[tl_goperand(w->g, n, 0)].b;
    const tl_gregion *r = region_of(w, n, holds ? 0 : 1);
    result *out;
    tl_status st;

    TL_TRY(results_new(w, r->nresults, &out));
    st = region_run(w, r, out);
    if (st == TL_OK) {
        results_give(w, out, r->nresults, n->out);
    }
    tl_free(out);
    return st;
}

/* ---- stacks ------------------------------------------------------------- */

typedef struct stack {
    tl_tensor *t; /* room for `cap` turns; NULL before the first */
    int64_t cap;
} stack;

static tl_status copy_into(tl_walk *w, tl_tensor *to, tl_tensor *from)
{
    return w->rt->device->kernel[TL_OP_copy](&w->rt->kctx, TL_OP_copy, &from,
                                             1, &to, 1, NULL);
}

/* The first `turns` of a stack, or one of them, as a view. */
static tl_status stack_part(tl_walk *w, const tl_tensor *t, int64_t first,
                            int64_t turns, bool one, tl_tensor **out)
{
    int64_t size[TL_MAX_RANK], stride[TL_MAX_RANK];
    int skip = one ? 1 : 0;

    memcpy(size, t->size, (size_t)t->rank * sizeof(*size));
    size[0] = turns;
    tl_row_major(t->rank, size, stride);
    return tl_tensor_view(out, t, t->rank - skip, size + skip, stride + skip,
                          t->offset + first * stride[0], w->rt->diag);
}

/* Another storage with room for `cap` turns and the first `turns` of `s`. */
static tl_status stack_resize(tl_walk *w, stack *s, int64_t cap,
                              int64_t turns)
{
    int64_t size[TL_MAX_RANK];
    tl_tensor *t, *from = NULL, *to = NULL;
    tl_status st;

    memcpy(size, s->t->size, (size_t)s->t->rank * sizeof(*size));
    size[0] = cap;
    TL_TRY(tl_tensor_new(&t, w->rt->pool, s->t->dtype, s->t->rank, size,
                         w->rt->diag));
    TL_GOTO(st, stack_part(w, s->t, 0, turns, false, &from));
    TL_GOTO(st, stack_part(w, t, 0, turns, false, &to));
    TL_GOTO(st, copy_into(w, to, from));
out:
    tl_tensor_unref(from);
    tl_tensor_unref(to);
    if (st != TL_OK) {
        tl_tensor_unref(t);
        return st;
    }
    tl_tensor_unref(s->t);
    s->t = t;
    s->cap = cap;
    return TL_OK;
}

/* Put what turn `turn` gives on a stack, of `bound` turns if that is known. */
static tl_status stack_push(tl_walk *w, stack *s, tl_tensor *t, int64_t turn,
                            int64_t bound)
{
    tl_tensor *to;
    tl_status st;

    if (!s->t) {
        int64_t size[TL_MAX_RANK];

        size[0] = bound > 0 ? bound : 4;
        memcpy(size + 1, t->size, (size_t)t->rank * sizeof(*size));
        TL_TRY(tl_tensor_new(&s->t, w->rt->pool, t->dtype, t->rank + 1, size,
                             w->rt->diag));
        s->cap = size[0];
    }
    if (turn == s->cap) {
        TL_TRY(stack_resize(w, s, s->cap * 2, turn));
    }
    TL_TRY(stack_part(w, s->t, turn, 1, true, &to));
    st = copy_into(w, to, t);
    tl_tensor_unref(to);
    return st;
}

/* The finished stack as value `v`; of no turns it is empty. */
static tl_status stack_finish(tl_walk *w, stack *s, int64_t turns, tl_gval v)
{
    const tl_gvalue *type = &w->g->values.items[v];
    int64_t size[TL_MAX_RANK];

    if (!s->t) {
        TL_TRY(tl_gvalue_sizes(w->g, v, w->env->atom, size, w->rt->diag));
        size[0] = 0;
        TL_TRY(tl_tensor_new(&s->t, w->rt->pool, (tl_dtype)type->dtype,
                             type->rank, size, w->rt->diag));
    } else if (s->cap != turns) {
        TL_TRY(stack_resize(w, s, turns, turns));
    }
    tl_walk_set(w, v, s->t);
    s->t = NULL;
    return TL_OK;
}

/* ---- loops -------------------------------------------------------------- */

typedef struct loop {
    const tl_gnode *n;
    const tl_gregion *test, *body; /* test may be NULL */
    uint32_t carried, stacked;
    bool bounded;
    int64_t bound, turns;
    result *state; /* what is carried; between turns it owns the tensors */
    result *out;   /* of the body */
    stack *stacks;
} loop;

/* Initial values; one that dies here, and that no turn reads, is handed
 * over. */
static void loop_start(tl_walk *w, loop *l)
{
    uint32_t number = (uint32_t)(l->n - w->g->nodes.items);

    for (uint32_t k = 0; k < l->carried; k++) {
        tl_gval v = tl_goperand(w->g, l->n, 1 + k);
        bool again = w->facts->last[v] != number || w->facts->captured[v];

        for (uint32_t j = k + 1; j < l->carried && !again; j++) {
            again = tl_goperand(w->g, l->n, 1 + j) == v;
        }
        l->state[k].s = w->env->scalar[v];
        l->state[k].t = w->value[v];
        if (l->state[k].t && again) {
            tl_tensor_ref(l->state[k].t);
        } else {
            w->value[v] = NULL;
        }
    }
}

/* What is carried as parameters of a region: moved, or referenced. */
static void loop_enter(tl_walk *w, loop *l, tl_gval params, bool move)
{
    for (uint32_t k = 0; k < l->carried; k++) {
        result r = l->state[k];

        if (!move && r.t) {
            tl_tensor_ref(r.t);
        } else {
            l->state[k].t = NULL;
        }
        results_give(w, &r, 1, params + k);
    }
}

static tl_status loop_test(tl_walk *w, loop *l, bool *go)
{
    result r;

    TL_TRY(tl_rt_tick(w->rt));
    *go = !l->bounded || l->turns < l->bound;
    if (!*go || !l->test) {
        return TL_OK;
    }
    loop_enter(w, l, l->test->params, false);
    TL_TRY(region_run(w, l->test, &r));
    *go = r.s.b;
    return TL_OK;
}

static tl_status loop_turn(tl_walk *w, loop *l)
{
    tl_status st = TL_OK;

    tl_walk_set_scalar(w, l->body->params, (tl_gscalar){.i = l->turns});
    loop_enter(w, l, l->body->params + 1, true);
    TL_TRY(region_run(w, l->body, l->out));
    memcpy(l->state, l->out, l->carried * sizeof(*l->state));
    for (uint32_t k = 0; k < l->stacked && st == TL_OK; k++) {
        st = stack_push(w, &l->stacks[k], l->out[l->carried + k].t, l->turns,
                        l->test || !l->bounded ? 0 : l->bound);
    }
    results_drop(l->out + l->carried, l->stacked);
    l->turns++;
    return st;
}

static tl_status loop_turns(tl_walk *w, loop *l)
{
    bool go;

    loop_start(w, l);
    TL_TRY(loop_test(w, l, &go));
    while (go) {
        TL_TRY(loop_turn(w, l));
        TL_TRY(loop_test(w, l, &go));
    }
    tl_walk_set_scalar(w, l->n->out, (tl_gscalar){.i = l->turns});
    for (uint32_t k = 0; k < l->stacked; k++) {
        TL_TRY(stack_finish(w, &l->stacks[k], l->turns,
                            l->n->out + 1 + l->carried + k));
    }
    loop_enter(w, l, l->n->out + 1, true);
    return TL_OK;
}

tl_status tl_walk_loop(tl_walk *w, const tl_gnode *n)
{
    bool tested = n->nregions == 2;
    tl_gval bound = tl_goperand(w->g, n, 0);
    loop l = {.n = n,
              .test = tested ? region_of(w, n, 0) : NULL,
              .body = region_of(w, n, tested ? 1 : 0),
              .carried = n->data,
              .stacked = n->nout - 1u - n->data,
              .bounded = bound != 0,
              .bound = w->env->scalar[bound].i};
    tl_status st;

    l.stacks = tl_calloc((size_t)l.stacked + 1, sizeof(*l.stacks));
    if (!l.stacks) {
        return tl_fail_memory(w->rt->diag, "stacks of a loop",
                              ((size_t)l.stacked + 1) * sizeof(*l.stacks));
    }
    TL_GOTO(st, results_new(w, l.carried, &l.state));
    TL_GOTO(st, results_new(w, l.carried + l.stacked, &l.out));
    st = loop_turns(w, &l);
out:
    if (l.state) {
        results_drop(l.state, l.carried);
    }
    for (uint32_t k = 0; k < l.stacked; k++) {
        tl_tensor_unref(l.stacks[k].t);
    }
    tl_free(l.stacks);
    tl_free(l.state);
    tl_free(l.out);
    return st;
}
