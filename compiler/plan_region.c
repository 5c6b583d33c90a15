/* plan_region.c - branches and loops as steps of a plan: what they take from
 * outside, and their run by the walk where they have no plans of their own.
 *
 * The walk sees the plan's tensors through references, so it writes over none
 * of them; what it gives is copied to where the plan has its results. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "compiler/plan_region.h"

#include "runtime/base/mem.h"
#include "runtime/base/vec.h"

/* ---- layouts of results ------------------------------------------------- */

/* Values whose layout decides, each once. */
typedef struct chase {
    const tl_plan *pl;
    const tl_graph *g;
    uint8_t *seen;
    struct {
        tl_gval *items;
        size_t len, cap;
    } todo;
    tl_diag *diag;
} chase;

static tl_status chase_add(chase *c, tl_gval v)
{
    if (c->seen[v] || c->g->values.items[v].cls != TL_GC_TENSOR) {
        return TL_OK;
    }
    c->seen[v] = 1;
    return TL_VEC_PUSH(&c->todo, v, c->diag);
}

static tl_status chase_result(chase *c, uint32_t region, uint32_t k)
{
    return chase_add(c, c->g->operands.items
                            [c->g->regions.items[region].results + k]);
}

/* What loop `n` carries as number k: at first, and after a turn. */
static tl_status chase_carried(chase *c, const tl_gnode *n, uint32_t k)
{
    TL_TRY(chase_add(c, tl_goperand(c->g, n, 1 + k)));
    return chase_result(c, n->region + n->nregions - 1u, k);
}

static tl_status chase_param(chase *c, tl_gval v)
{
    uint32_t r = c->pl->p->facts.region[v];
    const tl_gnode *n = &c->g->nodes.items[c->g->regions.items[r].node];
    bool body = r == n->region + n->nregions - 1u;

    return chase_carried(c, n, c->g->values.items[v].result - (body ? 1 : 0));
}

/* Follow one value of a region; *sure: is it row-major if those added are? */
static tl_status chase_value(chase *c, tl_gval v, bool *sure)
{
    const tl_gvalue *value = &c->g->values.items[v];
    const tl_gnode *n = tl_gnode_of(c->g, v);

    *sure = true;
    if (value->node == 0) {
        return chase_param(c, v);
    }
    switch ((tl_gkind)n->kind) {
    case TL_G_OP:
        if (n->op == TL_OP_cast || n->op == TL_OP_reshape ||
            n->op == TL_OP_squeeze || n->op == TL_OP_unsqueeze) {
            return chase_add(c, tl_goperand(c->g, n, 0));
        }
        *sure = tl_op_get((tl_op)n->op)->cls != TL_CLASS_VIEW;
        return TL_OK;
    case TL_G_ALIAS:
        return chase_add(c, tl_goperand(c->g, n, 0));
    case TL_G_IF:
        TL_TRY(chase_result(c, n->region, value->result));
        return chase_result(c, n->region + 1, value->result);
    case TL_G_LOOP: /* turns, what is carried, stacks */
        return value->result == 0 || value->result > n->data
                   ? TL_OK
                   : chase_carried(c, n, value->result - 1u);
    default:
        return TL_OK;
    }
}

static tl_status chase_all(chase *c, uint32_t node, bool *sure)
{
    const tl_gnode *n = &c->g->nodes.items[node];

    for (uint32_t k = 0; k < n->nout; k++) {
        TL_TRY(chase_value(c, n->out + k, sure));
    }
    while (*sure && c->todo.len > 0) {
        tl_gval v = c->todo.items[--c->todo.len];

        if (c->pl->val_of[v] != 0) { /* outside, where layouts are known */
            *sure = c->pl->vals.items[c->pl->val_of[v]].contiguous;
        } else {
            TL_TRY(chase_value(c, v, sure));
        }
    }
    return TL_OK;
}

tl_status tl_region_is_row_major(const tl_plan *pl, uint32_t node, bool *out,
                                 tl_diag *diag)
{
    chase c = {.pl = pl, .g = pl->p->g, .diag = diag};
    tl_status st;

    *out = true;
    c.seen = tl_calloc(c.g->values.len + 1, 1);
    if (!c.seen) {
        return tl_fail_memory(diag, "a plan", c.g->values.len);
    }
    st = chase_all(&c, node, out);
    tl_free(c.seen);
    tl_free(c.todo.items);
    return st;
}

/* ---- what regions use --------------------------------------------------- */

typedef struct capture {
    const tl_program *p;
    uint32_t node;
    uint8_t *seen;
    struct {
        tl_gval *items;
        size_t len, cap;
    } found;
    tl_diag *diag;
} capture;

/* Does region r lie in the node? */
static bool is_inside(const capture *c, uint32_t r)
{
    const tl_graph *g = c->p->g;

    while (r != 0 && g->regions.items[r].node != c->node) {
        r = g->nodes.items[g->regions.items[r].node].owner;
    }
    return r != 0;
}

static tl_status capture_value(capture *c, tl_gval v)
{
    if (v == 0 || c->seen[v] ||
        c->p->g->values.items[v].cls != TL_GC_TENSOR ||
        is_inside(c, c->p->facts.region[v])) {
        return TL_OK;
    }
    c->seen[v] = 1;
    return TL_VEC_PUSH(&c->found, v, c->diag);
}

static tl_status capture_region(capture *c, uint32_t region)
{
    const tl_graph *g = c->p->g;
    const tl_gregion *r = &g->regions.items[region];

    for (uint32_t n = r->first; n < r->last; n++) {
        const tl_gnode *node = &g->nodes.items[n];

        for (uint32_t k = 0; k < node->nin; k++) {
            TL_TRY(capture_value(c, tl_goperand(g, node, k)));
        }
        for (uint32_t i = 0; i < node->nregions; i++) {
            const tl_gregion *inner = &g->regions.items[node->region + i];

            for (uint32_t k = 0; k < inner->nresults; k++) {
                TL_TRY(capture_value(c,
                                     g->operands.items[inner->results + k]));
            }
        }
    }
    for (uint32_t k = 0; k < r->nresults; k++) {
        TL_TRY(capture_value(c, g->operands.items[r->results + k]));
    }
    return TL_OK;
}

tl_status tl_region_captured(const tl_program *p, uint32_t node,
                             tl_gval **out, uint32_t *n, tl_diag *diag)
{
    const tl_gnode *owner = &p->g->nodes.items[node];
    capture c = {.p = p, .node = node, .diag = diag};
    tl_status st = TL_OK;

    c.seen = tl_calloc(p->g->values.len + 1, 1);
    if (!c.seen) {
        return tl_fail_memory(diag, "a plan", p->g->values.len);
    }
    for (uint32_t i = 0; i < owner->nregions && st == TL_OK; i++) {
        st = capture_region(&c, owner->region + i);
    }
    tl_free(c.seen);
    if (st != TL_OK) {
        tl_free(c.found.items);
        return st;
    }
    *out = c.found.items;
    *n = (uint32_t)c.found.len;
    return TL_OK;
}

/* ---- running ------------------------------------------------------------ */

/* Let the walk see what the step's operands are. */
static void show_operands(tl_plan *pl, const tl_pstep *s)
{
    tl_walk *w = &pl->p->walk;
    const tl_gnode *n = &pl->p->g->nodes.items[s->node];

    for (uint32_t k = 0; k < s->nin; k++) {
        uint32_t v = pl->refs.items[s->in + k];
        tl_gval value = k < n->nin ? tl_goperand(pl->p->g, n, k)
                                   : pl->refs.items[s->captured + k - n->nin];

        if (v != 0 && !w->value[value]) {
            w->value[value] = tl_tensor_ref(pl->vals.items[v].t);
        }
    }
}

static tl_status take_results(tl_plan *pl, const tl_pstep *s, tl_rt *rt)
{
    const tl_gnode *n = &pl->p->g->nodes.items[s->node];
    uint32_t out = 0;

    for (uint32_t k = 0; k < n->nout; k++) {
        tl_tensor *from = pl->p->walk.value[n->out + k];

        if (from) {
            TL_TRY(rt->device->kernel[TL_OP_copy](&rt->kctx, TL_OP_copy,
                                                  &from, 1, &s->tout[out++],
                                                  1, NULL));
        }
    }
    return TL_OK;
}

tl_status tl_region_walk(tl_plan *pl, const tl_pstep *s, tl_rt *rt,
                         const tl_run *run)
{
    tl_walk *w = &pl->p->walk;
    tl_span span = rt->span;
    tl_status st;

    w->rt = rt;
    w->effect = run->effect;
    w->arg = run->arg;
    w->lent = true;
    rt->no_grad++;
    show_operands(pl, s);
    st = tl_walk_node(w, s->node);
    if (st == TL_OK) {
        st = take_results(pl, s, rt);
    }
    tl_walk_clear(w);
    w->lent = false;
    rt->no_grad--;
    rt->span = span;
    return st;
}
