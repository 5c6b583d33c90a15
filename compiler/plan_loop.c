/* plan_loop.c - branches and loops with plans of their own.
 *
 * A region's plan is run like a program's: its inputs are the parameters and
 * what is captured.  What a loop carries is given away to each turn, so a turn
 * writes over it where it can, and elsewhere takes a tensor of the pool, which
 * the turn before has just given back. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include <string.h>

#include "compiler/plan_region.h"
#include "runtime/base/mem.h"

/* ---- making ------------------------------------------------------------- */

static bool is_tensor(const tl_plan *pl, tl_gval v)
{
    return pl->p->g->values.items[v].cls == TL_GC_TENSOR;
}

/* What region k of the node is planned for. */
static tl_status make_scope(tl_plan *pl, tl_pregions *r, const tl_gnode *n,
                            uint32_t k, const tl_gval *captured, tl_rt *rt)
{
    const tl_graph *g = pl->p->g;
    const tl_gregion *region = &g->regions.items[n->region + k];
    uint32_t nin = region->nparams + r->ncaptured;
    tl_gval *in = tl_arena_array(&r->memory, (size_t)nin + 1, sizeof(*in));
    uint8_t *donate = tl_arena_array(&r->memory, (size_t)nin + 1, 1);
    bool body = n->kind == TL_G_LOOP && k == n->nregions - 1u;

    r->in[k] = tl_arena_array(&r->memory, (size_t)nin + 1,
                              sizeof(tl_tensor *));
    if (!in || !donate || !r->in[k]) {
        return tl_plan_no_memory(rt, nin * sizeof(*in));
    }
    for (uint32_t i = 0; i < region->nparams; i++) {
        in[i] = region->params + i;
        donate[i] = body && is_tensor(pl, in[i]);
    }
    for (uint32_t i = 0; i < r->ncaptured; i++) {
        in[region->nparams + i] = captured[i];
    }
    r->scope[k] = (tl_pscope){.region = n->region + k,
                              .nin = nin,
                              .nout = region->nresults,
                              .in = in,
                              .out = g->operands.items + region->results,
                              .donate = donate};
    return TL_OK;
}

static tl_status make_room(tl_pregions *r, const tl_gnode *n, tl_rt *rt)
{
    size_t most = 1;

    for (uint32_t k = 0; k < r->count; k++) {
        most += r->scope[k].nout;
    }
    most += n->nin;
    r->out = tl_arena_array(&r->memory, most, sizeof(tl_tensor *));
    r->state = tl_arena_array(&r->memory, most, sizeof(tl_tensor *));
    r->slot = tl_arena_array(&r->memory, most, sizeof(tl_tensor *));
    r->out_scalars = tl_arena_array(&r->memory, most, sizeof(tl_gscalar));
    r->state_scalars = tl_arena_array(&r->memory, most, sizeof(tl_gscalar));
    return r->out && r->state && r->slot && r->out_scalars &&
                   r->state_scalars
               ? TL_OK
               : tl_plan_no_memory(rt, most * sizeof(tl_tensor *));
}

/* Is all that a loop carries row-major at first? */
static bool starts_row_major(const tl_plan *pl, const tl_gnode *n)
{
    for (uint32_t k = 0; n->kind == TL_G_LOOP && k < n->data; k++) {
        tl_gval v = tl_goperand(pl->p->g, n, 1 + k);

        if (is_tensor(pl, v) && !tl_pval_at(pl, pl->val_of[v])->contiguous) {
            return false;
        }
    }
    return true;
}

/* *ok: every region has its plan. */
static tl_status make_plans(tl_plan *pl, tl_pregions *r, const tl_gnode *n,
                            const tl_gval *captured, tl_rt *rt, bool *ok)
{
    *ok = starts_row_major(pl, n);
    for (uint32_t k = 0; k < r->count && *ok; k++) {
        TL_TRY(make_scope(pl, r, n, k, captured, rt));
        TL_TRY(tl_plan_sub(&r->plan[k], pl, &r->scope[k], rt));
        *ok = r->plan[k] != NULL;
        if (*ok && r->plan[k]->arena > r->arena) {
            r->arena = r->plan[k]->arena;
        }
    }
    return *ok ? make_room(r, n, rt) : TL_OK;
}

tl_status tl_region_plan(tl_plan *pl, tl_pstep *s, const tl_gval *captured,
                         uint32_t count, tl_rt *rt)
{
    const tl_gnode *n = &pl->p->g->nodes.items[s->node];
    tl_pregions *r = tl_calloc(1, sizeof(*r));
    bool ok = false;
    tl_status st;

    if (!r) {
        return tl_plan_no_memory(rt, sizeof(*r));
    }
    tl_arena_init(&r->memory);
    r->count = n->nregions;
    r->ncaptured = count;
    st = make_plans(pl, r, n, captured, rt, &ok);
    if (st != TL_OK || !ok) {
        tl_region_free(r);
        return st;
    }
    s->regions = r;
    return TL_OK;
}

void tl_region_free(tl_pregions *r)
{
    if (!r) {
        return;
    }
    for (uint32_t k = 0; k < r->count; k++) {
        tl_plan_free(r->plan[k]);
    }
    tl_arena_fini(&r->memory);
    tl_free(r);
}

/* ---- running a region --------------------------------------------------- */

/* A run of a step: where results of the node stand in tout. */
typedef struct stepper {
    tl_plan *pl;
    const tl_pstep *s;
    const tl_gnode *n;
    tl_pregions *r;
    tl_rt *rt;
    const tl_run *run;
} stepper;

static void set_host(tl_program *p, tl_gval v, tl_gscalar x)
{
    p->env.scalar[v] = x;
    p->env.known[v] = 1;
    if (p->facts.atom[v] != 0) {
        p->env.atom[p->facts.atom[v] - 1] = x.i;
    }
}

/* What is captured as inputs of region k. */
static void show_captured(const stepper *x, uint32_t k)
{
    uint32_t params = x->r->scope[k].nin - x->r->ncaptured;

    for (uint32_t i = 0; i < x->r->ncaptured; i++) {
        x->r->in[k][params + i] = x->s->tin[x->n->nin + i];
    }
}

/* The plans' arenas are part of this plan's. */
static void set_areas(const stepper *x)
{
    const tl_storage *around = x->pl->bound;

    for (uint32_t k = 0; k < x->r->count; k++) {
        tl_storage *area = &x->r->plan[k]->area;

        area->data = (char *)around->data + x->pl->bufs.items[x->s->area].at;
        area->bytes = x->r->arena;
        area->pool = around->pool;
    }
}

/* Run region k on r->in[k]; results are in r->out and r->out_scalars. */
static tl_status run_region(const stepper *x, uint32_t k)
{
    tl_run run = {.tensors = x->r->in[k],
                  .donate = x->r->scope[k].donate,
                  .effect = x->run->effect,
                  .arg = x->run->arg,
                  .out_tensors = x->r->out,
                  .out_scalars = x->r->out_scalars};

    memset(x->r->out, 0, x->r->scope[k].nout * sizeof(tl_tensor *));
    return tl_plan_run(x->r->plan[k], x->pl->p, x->rt, &run, false);
}

static tl_status copy_into(tl_rt *rt, tl_tensor *to, tl_tensor *from)
{
    return rt->device->kernel[TL_OP_copy](&rt->kctx, TL_OP_copy, &from, 1,
                                          &to, 1, NULL);
}

/* Make t (a reference) or x the result `v` of the node, of whose tensor
 * results this is number *out. */
static tl_status give_result(const stepper *x, tl_gval v, tl_tensor *t,
                             tl_gscalar scalar, uint32_t *out)
{
    tl_status st = TL_OK;

    if (is_tensor(x->pl, v)) {
        st = copy_into(x->rt, x->s->tout[(*out)++], t);
        tl_tensor_unref(t);
    } else {
        set_host(x->pl->p, v, scalar);
    }
    return st;
}

static tl_status run_if(const stepper *x)
{
    tl_gval test = tl_goperand(x->pl->p->g, x->n, 0);
    uint32_t k = x->pl->p->env.scalar[test].b ? 0 : 1, out = 0;
    tl_status st = TL_OK;

    show_captured(x, k);
    TL_TRY(run_region(x, k));
    for (uint32_t i = 0; i < x->n->nout; i++) {
        tl_status got = give_result(x, x->n->out + i, x->r->out[i],
                                    x->r->out_scalars[i], &out);

        st = st == TL_OK ? got : st;
    }
    return st;
}

/* ---- loops -------------------------------------------------------------- */

static void drop(tl_tensor **t, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        tl_tensor_unref(t[i]);
        t[i] = NULL;
    }
}

static void start(const stepper *x)
{
    for (uint32_t k = 0; k < x->n->data; k++) {
        tl_gval v = tl_goperand(x->pl->p->g, x->n, 1 + k);

        x->r->state[k] = NULL;
        if (is_tensor(x->pl, v)) {
            x->r->state[k] = tl_tensor_ref(x->s->tin[1 + k]);
        } else {
            x->r->state_scalars[k] = x->pl->p->env.scalar[v];
        }
    }
}

/* What is carried as parameters of region k, from number `first` on. */
static void pass(const stepper *x, uint32_t k, uint32_t first)
{
    for (uint32_t i = 0; i < x->n->data; i++) {
        tl_gval v = x->r->scope[k].in[first + i];

        if (is_tensor(x->pl, v)) {
            x->r->in[k][first + i] = x->r->state[i];
        } else {
            set_host(x->pl->p, v, x->r->state_scalars[i]);
        }
    }
}

/* Views of the stacks where the turn's values go. */
static tl_status open_slots(const stepper *x)
{
    uint32_t out = 0;

    for (uint32_t i = 1; i < x->n->nout; i++) {
        tl_tensor *to;

        if (!is_tensor(x->pl, x->n->out + i)) {
            continue;
        }
        to = x->s->tout[out++];
        if (i > x->n->data) {
            TL_TRY(tl_tensor_view(&x->r->slot[i - 1 - x->n->data], to,
                                  to->rank - 1, to->size + 1, to->stride + 1,
                                  to->offset, x->rt->diag));
        }
    }
    return TL_OK;
}

static tl_status push_stacks(const stepper *x)
{
    uint32_t stacks = x->n->nout - 1u - x->n->data;

    for (uint32_t i = 0; i < stacks; i++) {
        tl_tensor *to = x->r->slot[i];

        TL_TRY(copy_into(x->rt, to, x->r->out[x->n->data + i]));
        to->offset += to->numel;
    }
    drop(x->r->out + x->n->data, stacks);
    return TL_OK;
}

static tl_status run_turn(const stepper *x, int64_t turn)
{
    uint32_t body = x->r->count - 1;

    set_host(x->pl->p, x->r->scope[body].in[0], (tl_gscalar){.i = turn});
    pass(x, body, 1);
    TL_TRY(run_region(x, body));
    for (uint32_t k = 0; k < x->n->data; k++) {
        tl_tensor_unref(x->r->state[k]);
        x->r->state[k] = x->r->out[k];
        x->r->out[k] = NULL;
        x->r->state_scalars[k] = x->r->out_scalars[k];
    }
    return push_stacks(x);
}

static tl_status run_test(const stepper *x, int64_t turn, bool *go)
{
    tl_gval bound = tl_goperand(x->pl->p->g, x->n, 0);

    *go = bound == 0 || turn < x->pl->p->env.scalar[bound].i;
    TL_TRY(tl_rt_tick(x->rt));
    if (*go && x->r->count == 2) {
        pass(x, 0, 0);
        TL_TRY(run_region(x, 0));
        *go = x->r->out_scalars[0].b;
    }
    return TL_OK;
}

static tl_status run_turns(const stepper *x, int64_t *turns)
{
    bool go;

    TL_TRY(open_slots(x));
    TL_TRY(run_test(x, 0, &go));
    while (go) {
        TL_TRY(run_turn(x, *turns));
        TL_TRY(run_test(x, ++*turns, &go));
    }
    return TL_OK;
}

static tl_status run_loop(const stepper *x)
{
    int64_t turns = 0;
    uint32_t out = 0;
    tl_status st;

    for (uint32_t k = 0; k < x->r->count; k++) {
        show_captured(x, k);
    }
    start(x);
    st = run_turns(x, &turns);
    set_host(x->pl->p, x->n->out, (tl_gscalar){.i = turns});
    for (uint32_t k = 0; k < x->n->data && st == TL_OK; k++) {
        tl_tensor *t = x->r->state[k];

        x->r->state[k] = NULL;
        st = give_result(x, x->n->out + 1 + k, t, x->r->state_scalars[k],
                         &out);
    }
    drop(x->r->state, x->n->data);
    drop(x->r->slot, x->n->nout - 1u - x->n->data);
    drop(x->r->out, x->r->scope[x->r->count - 1].nout);
    return st;
}

tl_status tl_region_run(tl_plan *pl, const tl_pstep *s, tl_rt *rt,
                        const tl_run *run)
{
    stepper x = {.pl = pl,
                 .s = s,
                 .n = &pl->p->g->nodes.items[s->node],
                 .r = s->regions,
                 .rt = rt,
                 .run = run};

    if (!s->regions) {
        return tl_region_walk(pl, s, rt, run);
    }
    set_areas(&x);
    return x.n->kind == TL_G_IF ? run_if(&x) : run_loop(&x);
}
