/* walk.c - see walk.h: nodes; walk_region.c has branches and loops. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include <math.h>
#include <string.h>

#include "compiler/walk_impl.h"
#include "runtime/base/mem.h"

/* ---- room --------------------------------------------------------------- */

tl_status tl_walk_init(tl_walk *w, const tl_graph *g, const tl_gfacts *facts,
                       tl_diag *diag)
{
    size_t nin = (size_t)facts->max_in + 1, nout = (size_t)facts->max_out + 1;

    memset(w, 0, sizeof(*w));
    w->g = g;
    w->facts = facts;
    w->value = tl_calloc(g->values.len + 1, sizeof(tl_tensor *));
    w->in = tl_calloc(nin, sizeof(tl_tensor *));
    w->shown = tl_calloc(nin, sizeof(tl_tensor *));
    w->out = tl_calloc(nout, sizeof(tl_tensor *));
    w->scalars = tl_calloc(nin, sizeof(*w->scalars));
    if (!w->value || !w->in || !w->shown || !w->out || !w->scalars) {
        tl_walk_fini(w);
        return tl_fail_memory(diag, "values of a graph",
                              (g->values.len + 1) * sizeof(tl_tensor *));
    }
    return TL_OK;
}

void tl_walk_fini(tl_walk *w)
{
    tl_free(w->value);
    tl_free(w->in);
    tl_free(w->shown);
    tl_free(w->out);
    tl_free(w->scalars);
    memset(w, 0, sizeof(*w));
}

void tl_walk_clear(tl_walk *w)
{
    for (size_t v = 0; v < w->g->values.len; v++) {
        tl_tensor_unref(w->value[v]);
        w->value[v] = NULL;
    }
}

/* ---- values ------------------------------------------------------------- */

void tl_walk_set(tl_walk *w, tl_gval v, tl_tensor *t)
{
    tl_tensor_unref(w->value[v]);
    w->value[v] = t;
}

void tl_walk_set_scalar(tl_walk *w, tl_gval v, tl_gscalar s)
{
    w->env->scalar[v] = s;
    w->env->known[v] = 1;
    if (w->facts->atom[v] != 0) {
        w->env->atom[w->facts->atom[v] - 1] = s.i;
    }
}

/* Does `v` die at node n, operand k being its last use there? */
static bool dies_at(const tl_walk *w, uint32_t n, uint32_t k)
{
    const tl_gnode *node = &w->g->nodes.items[n];
    tl_gval v = tl_goperand(w->g, node, k);

    if (w->facts->last[v] != n) {
        return false;
    }
    for (uint32_t j = k + 1; j < node->nin; j++) {
        if (tl_goperand(w->g, node, j) == v) {
            return false;
        }
    }
    return true;
}

/* The operands as references in in[], moved where they die. */
static void take_operands(tl_walk *w, uint32_t n)
{
    const tl_gnode *node = &w->g->nodes.items[n];

    for (uint32_t k = 0; k < node->nin; k++) {
        tl_gval v = tl_goperand(w->g, node, k);

        w->in[k] = w->value[v];
        if (v == 0 || !w->in[k]) {
            w->in[k] = NULL;
        } else if (dies_at(w, n, k)) {
            w->value[v] = NULL;
        } else {
            tl_tensor_ref(w->in[k]);
        }
    }
}

/* ---- kinds of nodes ----------------------------------------------------- */

static tl_status walk_op(tl_walk *w, uint32_t n)
{
    const tl_gnode *node = &w->g->nodes.items[n];
    const tl_attrs *at;
    tl_attrs storage;

    TL_TRY(tl_gnode_attrs(w->g, node, w->env, &storage, &at, w->rt->diag));
    take_operands(w, n);
    TL_TRY(tl_apply(w->rt, (tl_op)node->op, w->in, (int)node->nin, at,
                    w->out));
    for (uint32_t k = 0; k < node->nout; k++) {
        tl_walk_set(w, node->out + k, w->out[k]);
    }
    return TL_OK;
}

/* Where a fused gradient goes: over the upstream one if nobody needs it. */
static tl_status map_grad_result(tl_walk *w, uint32_t n, tl_tensor *g,
                                 tl_tensor **out)
{
    const tl_gvalue *type = &w->g->values.items[w->g->nodes.items[n].out];
    int64_t size[TL_MAX_RANK];

    TL_TRY(tl_gvalue_sizes(w->g, w->g->nodes.items[n].out, w->env->atom, size,
                           w->rt->diag));
    if (tl_tensor_unshared(g) && tl_tensor_contiguous(g) &&
        g->dtype == (tl_dtype)type->dtype && g->rank == type->rank &&
        memcmp(g->size, size, type->rank * sizeof(*size)) == 0) {
        *out = tl_tensor_ref(g);
        return TL_OK;
    }
    return tl_tensor_new(out, w->rt->pool, (tl_dtype)type->dtype, type->rank,
                         size, w->rt->diag);
}

static tl_status walk_map_grad(tl_walk *w, uint32_t n)
{
    const tl_gnode *node = &w->g->nodes.items[n];
    tl_rt *rt = w->rt;
    const tl_attrs *at;
    tl_attrs storage;
    tl_tensor *dx = NULL;
    uint32_t nin = node->nin - 2; /* then y and g */
    tl_status st;

    TL_TRY(tl_gnode_attrs(w->g, node, w->env, &storage, &at, rt->diag));
    take_operands(w, n);
    TL_GOTO(st, map_grad_result(w, n, w->in[nin + 1], &dx));
    TL_GOTO(st, rt->device->map_grad(&rt->kctx, (tl_op)node->op, node->which,
                                     w->in, (int)nin, w->in[nin],
                                     w->in[nin + 1], dx, at));
    tl_walk_set(w, node->out, tl_tensor_ref(dx));
out:
    tl_tensor_unref(dx);
    for (uint32_t k = 0; k < node->nin; k++) {
        tl_tensor_unref(w->in[k]);
    }
    return st;
}

tl_status tl_walk_scalar(tl_rt *rt, tl_gclass cls, tl_gscalar s,
                         tl_dtype dtype, tl_tensor **out)
{
    if (cls == TL_GC_FLOAT) {
        return tl_tensor_scalar_f(out, rt->pool, dtype, s.f, rt->diag);
    }
    return tl_tensor_scalar_i(out, rt->pool, dtype,
                              cls == TL_GC_BOOL ? s.b : s.i, rt->diag);
}

tl_status tl_walk_item(tl_rt *rt, const tl_tensor *t, tl_gclass cls,
                       tl_gscalar *out)
{
    double f;

    if (t->numel != 1) {
        return tl_fail(rt->diag, TL_E0320, "%lld elements where one is needed",
                       (long long)t->numel);
    }
    out->bits = 0;
    if (cls == TL_GC_INT) {
        out->i = tl_tensor_get_i(t, 0);
        return TL_OK;
    }
    f = tl_tensor_get_f(t, 0);
    if (cls == TL_GC_FLOAT) {
        out->f = f;
        return TL_OK;
    }
    if (isnan(f)) {
        return tl_fail(rt->diag, TL_E0209, "the condition is NaN");
    }
    out->b = f != 0;
    return TL_OK;
}

static tl_status walk_from_host(tl_walk *w, const tl_gnode *n)
{
    tl_gval v = tl_goperand(w->g, n, 0);
    tl_tensor *t;

    TL_TRY(tl_walk_scalar(w->rt, (tl_gclass)w->g->values.items[v].cls,
                          w->env->scalar[v],
                          (tl_dtype)w->g->values.items[n->out].dtype, &t));
    tl_walk_set(w, n->out, t);
    return TL_OK;
}

static tl_status walk_to_host(tl_walk *w, const tl_gnode *n)
{
    tl_gscalar s;

    TL_TRY(tl_walk_item(w->rt, w->value[tl_goperand(w->g, n, 0)],
                        (tl_gclass)w->g->values.items[n->out].cls, &s));
    tl_walk_set_scalar(w, n->out, s);
    return TL_OK;
}

/* ---- effects ------------------------------------------------------------ */

static tl_status call_effect(tl_walk *w, const tl_gnode *n, uint32_t count)
{
    tl_status st;

    if (!w->effect) {
        return tl_fail(w->rt->diag, TL_E0699, "nobody takes an effect");
    }
    st = w->effect(w->arg, w->g->reports.items[n->data].key, count, w->shown,
                   w->scalars);
    return st == TL_OK && n->kind == TL_G_ASSERT
               ? tl_fail(w->rt->diag, TL_E0222, "assertion failed")
               : st;
}

/* The caller may keep what it is shown. */
static tl_status lend(tl_walk *w, tl_tensor *t, tl_tensor **out)
{
    if (!t || !w->lent) {
        *out = t ? tl_tensor_ref(t) : NULL;
        return TL_OK;
    }
    return tl_apply_borrowed(w->rt, TL_OP_copy, &t, 1, NULL, out);
}

tl_status tl_walk_effect(tl_walk *w, const tl_gnode *n)
{
    const tl_greport *r = &w->g->reports.items[n->data];
    uint32_t skip = n->kind == TL_G_ASSERT ? 1 : 0, made = 0;
    uint32_t count = r->nshown + r->ncells;
    tl_status st = TL_OK;

    for (; made < count && st == TL_OK; made++) {
        w->scalars[made] = w->env->scalar[tl_goperand(w->g, n, skip + made)];
        w->shown[made] = NULL;
        st = lend(w, w->in[skip + made], &w->shown[made]);
    }
    if (st == TL_OK) {
        st = call_effect(w, n, count);
    }
    while (made-- > 0) {
        tl_tensor_unref(w->shown[made]);
    }
    return st;
}

/* Does the condition of an assert hold? */
static tl_status holds(tl_walk *w, const tl_gnode *n, bool *out)
{
    tl_gval v = tl_goperand(w->g, n, 0);
    tl_gscalar s = w->env->scalar[v];

    if (w->g->values.items[v].cls == TL_GC_TENSOR) {
        TL_TRY(tl_walk_item(w->rt, w->value[v], TL_GC_BOOL, &s));
    }
    *out = s.b;
    return TL_OK;
}

static tl_status walk_effect(tl_walk *w, const tl_gnode *n)
{
    bool ok = false;

    if (n->kind == TL_G_ASSERT) {
        TL_TRY(holds(w, n, &ok));
        if (ok) {
            return TL_OK;
        }
    }
    for (uint32_t k = 0; k < n->nin; k++) {
        w->in[k] = w->value[tl_goperand(w->g, n, k)];
    }
    return tl_walk_effect(w, n);
}

/* ---- one node ----------------------------------------------------------- */

static tl_status host_node(tl_walk *w, uint32_t n)
{
    tl_gval v = w->g->nodes.items[n].out;

    TL_TRY(tl_graph_host(w->g, n, w->env, w->rt->diag));
    tl_walk_set_scalar(w, v, w->env->scalar[v]);
    return TL_OK;
}

static tl_status dispatch(tl_walk *w, uint32_t n)
{
    const tl_gnode *node = &w->g->nodes.items[n];

    switch ((tl_gkind)node->kind) {
    case TL_G_OP:
        return walk_op(w, n);
    case TL_G_MAPGRAD:
        return walk_map_grad(w, n);
    case TL_G_INPUT:
        return TL_OK; /* there already */
    case TL_G_CONST:
        tl_walk_set(w, node->out, tl_tensor_ref(w->consts[n]));
        return TL_OK;
    case TL_G_ALIAS:
        tl_walk_copy(w, tl_goperand(w->g, node, 0), node->out);
        return TL_OK;
    case TL_G_NUM:
    case TL_G_SIZE:
    case TL_G_HOST:
        return host_node(w, n);
    case TL_G_SCALAR:
        return walk_from_host(w, node);
    case TL_G_ITEM:
        return walk_to_host(w, node);
    case TL_G_IF:
        return tl_walk_if(w, node);
    case TL_G_LOOP:
        return tl_walk_loop(w, node);
    case TL_G_ASSERT:
    case TL_G_HOSTCALL:
        return walk_effect(w, node);
    default:
        return tl_fail(w->rt->diag, TL_E0699, "a graph with a node of kind %d",
                       node->kind);
    }
}

void tl_walk_copy(tl_walk *w, tl_gval from, tl_gval to)
{
    if (w->g->values.items[from].cls != TL_GC_TENSOR) {
        tl_walk_set_scalar(w, to, w->env->scalar[from]);
    } else if (from != to) {
        tl_walk_set(w, to, tl_tensor_ref(w->value[from]));
    }
}

tl_status tl_walk_node(tl_walk *w, uint32_t n)
{
    const tl_gnode *node = &w->g->nodes.items[n];
    volatile sig_atomic_t *interrupted = w->rt->interrupted;
    tl_status st;

    if (interrupted && *interrupted) {
        return tl_fail(w->rt->diag, TL_E0608, "interrupted");
    }
    w->rt->span = node->span;
    st = dispatch(w, n);
    if (st != TL_OK) {
        tl_diag_at(w->rt->diag, node->span);
    }
    return st;
}

/* ---- a stretch of nodes ------------------------------------------------- */

tl_status tl_walk_nodes(tl_walk *w, uint32_t region, uint32_t first,
                        uint32_t last)
{
    const tl_gfacts *f = w->facts;

    for (uint32_t n = first; n < last; n++) {
        if (w->g->nodes.items[n].owner != region) {
            continue; /* its owner runs it */
        }
        TL_TRY(tl_walk_node(w, n));
        for (uint32_t i = f->dies[n]; i < f->dies[n + 1]; i++) {
            tl_walk_set(w, f->dead[i], NULL);
        }
    }
    return TL_OK;
}

static void set_outputs(tl_walk *w, const tl_run *run)
{
    for (size_t i = 0; i < w->g->outputs.len; i++) {
        tl_gval v = w->g->outputs.items[i];

        if (w->g->values.items[v].cls == TL_GC_TENSOR) {
            run->out_tensors[i] = tl_tensor_ref(w->value[v]);
        } else {
            run->out_scalars[i] = w->env->scalar[v];
        }
    }
}

tl_status tl_walk_run(tl_walk *w, const tl_run *run)
{
    tl_span span = w->rt->span;
    tl_status st;

    w->effect = run->effect;
    w->arg = run->arg;
    w->rt->no_grad++;
    for (size_t i = 0; i < w->g->inputs.len; i++) {
        tl_gval v = w->g->inputs.items[i];

        if (w->g->values.items[v].cls == TL_GC_TENSOR) {
            tl_walk_set(w, v, tl_tensor_ref(run->tensors[i]));
        }
    }
    st = tl_walk_nodes(w, 0, 1, (uint32_t)w->g->nodes.len);
    if (st == TL_OK) {
        set_outputs(w, run);
    }
    tl_walk_clear(w);
    w->rt->no_grad--;
    w->rt->span = span;
    return st;
}
