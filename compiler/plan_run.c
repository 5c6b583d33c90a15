/* plan_run.c - replaying a plan: where headers point, and the loop. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "compiler/plan_region.h"
#include "runtime/base/check.h"

/* ---- where headers point ------------------------------------------------ */

static void point_arena(tl_plan *pl, tl_storage *arena)
{
    if (pl->bound != arena) {
        for (uint32_t i = 0; i < pl->narena_headers; i++) {
            pl->arena_headers[i]->storage = arena;
        }
        pl->bound = arena;
    }
}

/* An arena that is large enough, for all plans of the program; that of a
 * region's plan is part of the arena around it. */
static tl_status bind_arena(tl_plan *pl, tl_rt *rt)
{
    tl_program *p = pl->p;

    if (pl->parent) {
        point_arena(pl, &pl->area);
        return TL_OK;
    }
    if (!p->arena || tl_storage_bytes(p->arena) < pl->arena) {
        tl_storage *arena;

        TL_TRY(tl_storage_new(&arena, rt->pool, pl->arena, rt->diag));
        tl_storage_unref(p->arena);
        p->arena = arena;
    }
    point_arena(pl, p->arena);
    return TL_OK;
}

static void bind_inputs(tl_plan *pl, const tl_run *run, const tl_pwork *w)
{
    for (uint32_t i = 0; i < w->ninputs; i++) {
        tl_pinput *in = &pl->inputs[w->inputs[i]];
        const tl_tensor *t = run->tensors[in->index];

        if (in->storage == t->storage && in->offset == t->offset) {
            continue;
        }
        for (uint32_t k = 0; k < in->nheaders; k++) {
            in->headers[k]->storage = t->storage;
            in->headers[k]->offset = t->offset + in->rel[k];
        }
        in->storage = t->storage;
        in->offset = t->offset;
    }
}

/* May the storage of the target's donor be written over?  Its header must be
 * what a fresh output's would be. */
static bool is_given(const tl_ptarget *t, const tl_run *run)
{
    const tl_tensor *x = run->tensors[t->donor - 1];

    return run->donate[t->donor - 1] && x->refs == 1 && x->offset == 0 &&
           x->storage &&
           tl_storage_unshared(x->storage) &&
           tl_storage_bytes(x->storage) <= t->most;
}

/* The output's header: the donor's, or a new one. */
static tl_status open_target(tl_plan *pl, tl_ptarget *t, tl_rt *rt,
                             const tl_run *run)
{
    const tl_pval *v;

    if (t->donor != 0 && is_given(t, run)) {
        t->t = run->tensors[t->donor - 1];
        t->t->refs++;
        if (t->t->link.tape != 0) {
            tl_tensor_unlink(t->t);
        }
        if (t->t->rank > 1) { /* axes of size 1 may have any stride */
            tl_row_major(t->t->rank, t->t->size, t->t->stride);
        }
    } else {
        v = tl_pval_at(pl, t->value);
        TL_TRY(tl_tensor_new(&t->t, rt->pool, (tl_dtype)v->dtype, v->rank,
                             v->size, rt->diag));
    }
    if (t->storage != t->t->storage) {
        t->storage = t->t->storage;
        for (uint32_t k = 0; k < t->nheaders; k++) {
            t->headers[k]->storage = t->storage;
        }
    }
    return TL_OK;
}

static tl_status open_targets(tl_plan *pl, tl_rt *rt, const tl_run *run,
                              const tl_pwork *w)
{
    for (uint32_t i = 0; i < w->ntargets; i++) {
        TL_TRY(open_target(pl, &pl->targets[w->targets[i]], rt, run));
    }
    return TL_OK;
}

static void close_targets(tl_plan *pl, const tl_pwork *w)
{
    for (uint32_t i = 0; i < w->ntargets; i++) {
        tl_ptarget *t = &pl->targets[w->targets[i]];

        if (t->t) {
            tl_tensor_unref(t->t);
            t->t = NULL;
        }
    }
}

/* ---- what leaves the plan ----------------------------------------------- */

static tl_status view_of(const tl_pval *v, const tl_tensor *base,
                         tl_rt *rt, tl_tensor **out)
{
    return tl_tensor_view(out, base, v->rank, v->size, v->stride,
                          base->offset + v->offset, rt->diag);
}

/* A reference to value v: of an input or output its own header or a view of
 * it, of what lies in the arena a copy.  An input of a region's plan may lie
 * in an arena as well: `keep` it only as a copy. */
static tl_status give_value(tl_plan *pl, uint32_t v, bool keep, tl_rt *rt,
                            const tl_run *run, tl_tensor **out)
{
    const tl_pval *val = tl_pval_at(pl, v);
    const tl_pbuf *b = &pl->bufs.items[tl_pval_root(pl, v)];
    tl_tensor *base;
    bool whole;

    switch (keep && pl->parent ? TL_PB_ARENA : (tl_pwhere)b->where) {
    case TL_PB_INPUT:
        base = run->tensors[b->index];
        whole = v == pl->val_of[pl->in_vals[b->index]];
        break;
    case TL_PB_CONST:
        base = pl->p->consts[b->index];
        whole = v == pl->val_of[pl->p->g->nodes.items[b->index].out];
        break;
    case TL_PB_OUTPUT:
        base = pl->targets[b->index].t;
        whole = tl_plan_is_whole(pl, &pl->targets[b->index], v);
        break;
    default:
        return tl_apply_borrowed(rt, TL_OP_copy, &val->t, 1, NULL, out);
    }
    if (whole) {
        *out = tl_tensor_ref(base);
        return TL_OK;
    }
    return view_of(val, base, rt, out);
}

static tl_status give_output(tl_plan *pl, uint32_t i, tl_rt *rt,
                             const tl_run *run)
{
    const tl_poutput *o = &pl->outputs[i];

    if (o->alone) { /* the target's own reference */
        run->out_tensors[i] = pl->targets[o->target - 1].t;
        pl->targets[o->target - 1].t = NULL;
    } else if (o->target != 0) {
        run->out_tensors[i] = tl_tensor_ref(pl->targets[o->target - 1].t);
    } else if (o->value != 0) {
        return give_value(pl, o->value, false, rt, run,
                          &run->out_tensors[i]);
    } else {
        run->out_scalars[i] = pl->p->env.scalar[pl->out_vals[i]];
    }
    return TL_OK;
}

static tl_status give_outputs(tl_plan *pl, tl_rt *rt, const tl_run *run,
                              const tl_pwork *w)
{
    tl_status st = TL_OK;
    uint32_t i;

    for (i = 0; i < w->noutputs && st == TL_OK; i++) {
        st = give_output(pl, w->outputs[i], rt, run);
    }
    if (st == TL_OK) {
        return TL_OK;
    }
    i--; /* it has nothing */
    while (i-- > 0) {
        uint32_t k = w->outputs[i];

        if (pl->outputs[k].value != 0) {
            tl_tensor_unref(run->out_tensors[k]);
            run->out_tensors[k] = NULL;
        }
    }
    return st;
}

/* ---- steps -------------------------------------------------------------- */

static void set_host(tl_program *p, tl_gval v, tl_gscalar s)
{
    p->env.scalar[v] = s;
    p->env.known[v] = 1;
    if (p->facts.atom[v] != 0) {
        p->env.atom[p->facts.atom[v] - 1] = s.i;
    }
}

static tl_status run_host(tl_program *p, uint32_t n, tl_rt *rt)
{
    tl_gval v = p->g->nodes.items[n].out;

    TL_TRY(tl_graph_host(p->g, n, &p->env, rt->diag));
    set_host(p, v, p->env.scalar[v]);
    return TL_OK;
}

static void run_scalar(tl_program *p, const tl_pstep *s)
{
    tl_gval v = tl_goperand(p->g, &p->g->nodes.items[s->node], 0);
    tl_gscalar x = p->env.scalar[v];

    switch ((tl_gclass)p->g->values.items[v].cls) {
    case TL_GC_FLOAT:
        tl_tensor_set_f(s->tout[0], 0, x.f);
        break;
    case TL_GC_BOOL:
        tl_tensor_set_i(s->tout[0], 0, x.b);
        break;
    default:
        tl_tensor_set_i(s->tout[0], 0, x.i);
        break;
    }
}

static tl_status run_item(tl_program *p, const tl_pstep *s, tl_rt *rt)
{
    tl_gval v = p->g->nodes.items[s->node].out;
    tl_gscalar x;

    TL_TRY(tl_walk_item(rt, s->tin[0], (tl_gclass)p->g->values.items[v].cls,
                        &x));
    set_host(p, v, x);
    return TL_OK;
}

/* Show an effect what it asks for, as tensors that it may keep. */
static tl_status call_effect(tl_plan *pl, const tl_pstep *s, tl_rt *rt,
                             const tl_run *run)
{
    const tl_gnode *n = &pl->p->g->nodes.items[s->node];
    tl_walk *w = &pl->p->walk;
    tl_status st = TL_OK;
    uint32_t made = 0;

    for (; made < n->nin && st == TL_OK; made++) {
        uint32_t v = pl->refs.items[s->in + made];

        w->in[made] = NULL;
        if (v != 0) {
            st = give_value(pl, v, true, rt, run, &w->in[made]);
        }
    }
    w->rt = rt;
    w->effect = run->effect;
    w->arg = run->arg;
    if (st == TL_OK) {
        st = tl_walk_effect(w, n);
    }
    while (made-- > 0) {
        tl_tensor_unref(w->in[made]);
    }
    return st;
}

static tl_status run_effect(tl_plan *pl, const tl_pstep *s, tl_rt *rt,
                            const tl_run *run)
{
    const tl_gnode *n = &pl->p->g->nodes.items[s->node];

    if (n->kind == TL_G_ASSERT) {
        tl_gscalar holds = pl->p->env.scalar[tl_goperand(pl->p->g, n, 0)];

        if (s->tin[0]) {
            TL_TRY(tl_walk_item(rt, s->tin[0], TL_GC_BOOL, &holds));
        }
        if (holds.b) {
            return TL_OK;
        }
    }
    return call_effect(pl, s, rt, run);
}

/* ---- what the run knows ------------------------------------------------- */

/* The shape rule says what is wrong with a slice that is out of range. */
static tl_status refuse_slice(tl_plan *pl, const tl_pstep *s, tl_rt *rt)
{
    const tl_gnode *n = &pl->p->g->nodes.items[s->node];
    const tl_attrs *at;
    tl_attrs storage;
    tl_ttype in, out;

    TL_TRY(tl_gnode_attrs(pl->p->g, n, &pl->p->env, &storage, &at, rt->diag));
    tl_tensor_type(s->tin[0], &in);
    TL_TRY(tl_op_infer(&rt->infer, (tl_op)n->op, &in, 1, at, &out));
    return tl_fail(rt->diag, TL_E0699, "a slice that is out of range");
}

/* Point the headers of a slice to where it begins. */
static tl_status run_slice(tl_plan *pl, const tl_pstep *s, tl_rt *rt)
{
    const tl_graph *g = pl->p->g;
    const tl_gattrs *at = &g->attrs.items[g->nodes.items[s->node].attrs];
    const tl_tensor *x = s->tin[0], *y = s->tout[0];
    const tl_pslice *slice =
        &pl->slices[tl_pval_at(pl, pl->refs.items[s->out])->buf];
    int64_t offset = x->offset;

    for (int i = 0; i < x->rank; i++) {
        uint32_t dim = at->dims + 3 * (uint32_t)i;
        int64_t start, step, last;

        TL_TRY(tl_graph_size_eval(g, g->sizes.items[dim], pl->p->env.atom,
                                  &start, rt->diag));
        TL_TRY(tl_graph_size_eval(g, g->sizes.items[dim + 2],
                                  pl->p->env.atom, &step, rt->diag));
        last = start + (y->size[i] - 1) * step;
        if (y->size[i] > 0 && (start < 0 || start >= x->size[i] ||
                               last < 0 || last >= x->size[i])) {
            return refuse_slice(pl, s, rt);
        }
        offset += start * x->stride[i];
    }
    for (uint32_t k = 0; k < slice->nheaders; k++) {
        slice->headers[k]->storage = x->storage;
        slice->headers[k]->offset = offset + slice->rel[k];
    }
    return TL_OK;
}

/* Host scalars and sizes of the run into the attributes of a step. */
static tl_status set_attrs(tl_plan *pl, const tl_pstep *s, tl_rt *rt)
{
    const tl_gnode *n = &pl->p->g->nodes.items[s->node];
    const tl_attrs *at;

    if (s->late) {
        return tl_gnode_attrs(pl->p->g, n, &pl->p->env, s->at, &at,
                              rt->diag);
    }
    tl_gnode_attrs_bind(pl->p->g, n, &pl->p->env, s->at);
    return TL_OK;
}

/* Steps that are no kernel of the device. */
static tl_status run_other(tl_plan *pl, const tl_pstep *s, tl_rt *rt,
                           const tl_run *run)
{
    switch ((tl_pstep_kind)s->kind) {
    case TL_PS_TILE:
        return s->reduction ? tl_tile_reduce_run(s->reduction, &rt->kctx)
                            : tl_tile_run(s->tile, &rt->kctx);
    case TL_PS_GRAD:
        return rt->device->map_grad(&rt->kctx, (tl_op)s->op, s->which, s->tin,
                                    (int)s->nin - 2, s->tin[s->nin - 2],
                                    s->tin[s->nin - 1], s->tout[0], s->at);
    case TL_PS_SCALAR:
        run_scalar(pl->p, s);
        return TL_OK;
    case TL_PS_ITEM:
        return run_item(pl->p, s, rt);
    case TL_PS_HOST:
        return run_host(pl->p, s->node, rt);
    case TL_PS_EFFECT:
        return run_effect(pl, s, rt, run);
    case TL_PS_SLICE:
        return run_slice(pl, s, rt);
    default:
        return tl_region_run(pl, s, rt, run);
    }
}

/* ---- the loop ----------------------------------------------------------- */

static tl_status fail_step(tl_plan *pl, const tl_pstep *s, tl_rt *rt,
                           tl_status st)
{
    if (st == TL_ERR_MEMORY && s->kind <= TL_PS_GRAD) {
        tl_diag_note(rt->diag, "in the operation `%s`",
                     tl_op_get((tl_op)s->op)->name);
    }
    tl_diag_at(rt->diag, pl->p->g->nodes.items[s->node].span);
    return st;
}

/* A step that is more than a kernel with attributes that do not change. */
static tl_status run_step(tl_plan *pl, const tl_pcall *c, tl_rt *rt,
                          const tl_run *run)
{
    const tl_pstep *s = &pl->steps.items[c->step];

    if (c->binds) {
        TL_TRY(set_attrs(pl, s, rt));
    }
    return c->kind == TL_PS_KERNEL
               ? c->kernel(&rt->kctx, (tl_op)c->op, c->tin, c->nin, c->tout,
                           c->nout, c->at)
               : run_other(pl, s, rt, run);
}

/* The step's place for what its kernel has warned of. */
static void place_warning(const tl_plan *pl, const tl_pcall *c, tl_rt *rt)
{
    uint32_t n = pl->steps.items[c->step].node;

    tl_diag_at(rt->diag, pl->p->g->nodes.items[n].span);
}

/* Kernels from *at on, up to `end`; a step that fails is left in *at. */
static tl_status run_kernels(tl_plan *pl, const tl_pcall **at,
                             const tl_pcall *end, tl_rt *rt,
                             const volatile sig_atomic_t *interrupted)
{
    const size_t *nwarnings = &rt->diag->nwarnings;
    size_t warnings = *nwarnings;

    for (const tl_pcall *c = *at; c < end; c++) {
        tl_status st =
            *interrupted ? tl_fail(rt->diag, TL_E0608, "interrupted")
                         : c->kernel(&rt->kctx, (tl_op)c->op, c->tin, c->nin,
                                     c->tout, c->nout, c->at);

        if (st != TL_OK) {
            *at = c;
            return st;
        }
        if (*nwarnings != warnings) {
            place_warning(pl, c, rt);
            warnings = *nwarnings;
        }
    }
    *at = end;
    return TL_OK;
}

static tl_status run_one(tl_plan *pl, const tl_pcall **at, tl_rt *rt,
                         const tl_run *run,
                         const volatile sig_atomic_t *interrupted)
{
    size_t warnings = rt->diag->nwarnings;

    if (*interrupted) {
        return tl_fail(rt->diag, TL_E0608, "interrupted");
    }
    TL_TRY(run_step(pl, *at, rt, run));
    if (rt->diag->nwarnings != warnings) {
        place_warning(pl, *at, rt);
    }
    ++*at;
    return TL_OK;
}

static tl_status replay(tl_plan *pl, tl_rt *rt, const tl_run *run)
{
    const volatile sig_atomic_t never = 0;
    const volatile sig_atomic_t *interrupted =
        rt->interrupted ? rt->interrupted : &never;
    const tl_pcall *end = pl->calls + pl->norder;
    const tl_pcall *c = pl->calls;

    while (c < end) {
        tl_status st =
            c->plain > 0
                ? run_kernels(pl, &c, c + c->plain, rt, interrupted)
                : run_one(pl, &c, rt, run, interrupted);

        if (st != TL_OK) {
            return fail_step(pl, &pl->steps.items[c->step], rt, st);
        }
    }
    return TL_OK;
}

tl_status tl_plan_run(tl_plan *pl, tl_program *p, tl_rt *rt,
                      const tl_run *run, bool settled)
{
    const tl_pwork *w = settled ? &pl->loose : &pl->all;
    tl_status st;

    TL_ASSERT(pl->p == p);
    (void)p;
    TL_TRY(bind_arena(pl, rt));
    bind_inputs(pl, run, w);
    st = open_targets(pl, rt, run, w);
    if (st == TL_OK) {
        st = replay(pl, rt, run);
    }
    if (st == TL_OK) {
        st = give_outputs(pl, rt, run, w);
    }
    close_targets(pl, w);
    return st;
}
