/* plan_deps.c - which steps wait for which, data and host scalars apart from
 * what an order of steps must keep besides: effects and steps that may fail
 * because of data keep their order, so that the same one fails first. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "compiler/plan_impl.h"
#include "runtime/base/vec.h"
#include "runtime/op/dim_code.h"

typedef struct deps {
    const tl_plan *pl;
    tl_pedges *edges;
    tl_diag *diag;
} deps;

/* ---- edges -------------------------------------------------------------- */

static tl_status add_edge(deps *j, uint32_t from, uint32_t to)
{
    tl_pedge e = {from, to};

    return from == 0 || from == to ? TL_OK
                                   : TL_VEC_PUSH(j->edges, e, j->diag);
}

/* The host ints in a size. */
static tl_status size_edges(deps *j, uint32_t step, uint32_t size)
{
    const tl_graph *g = j->pl->p->g;
    const tl_gsize *s = &g->dims.items[size];
    const int64_t *code = g->code.items + s->code;

    for (uint32_t i = 0; i < s->len; i++) {
        if (code[i] == TL_DC_ATOM) {
            const tl_gatom *a = &g->atoms.items[code[i + 1]];

            if (a->kind == TL_GA_INT) {
                TL_TRY(add_edge(j, j->pl->maker_of[a->index], step));
            }
        }
        i += code[i] == TL_DC_ATOM || code[i] == TL_DC_NUM;
    }
    return TL_OK;
}

/* Host scalars that a node reads, itself or in its attributes. */
static tl_status host_edges(deps *j, uint32_t step, uint32_t node)
{
    const tl_graph *g = j->pl->p->g;
    const tl_gnode *n = &g->nodes.items[node];
    const tl_gattrs *at = &g->attrs.items[n->attrs];

    for (uint32_t k = 0; k < n->nin; k++) {
        TL_TRY(add_edge(j, j->pl->maker_of[tl_goperand(g, n, k)], step));
    }
    for (uint32_t k = 0; k < at->nbinds; k++) {
        tl_gval v = g->binds.items[at->binds + k].value;

        TL_TRY(add_edge(j, j->pl->maker_of[v], step));
    }
    for (uint32_t k = 0; n->attrs != 0 && k < at->ndims; k++) {
        TL_TRY(size_edges(j, step, g->sizes.items[at->dims + k]));
    }
    return TL_OK;
}

/* Whatever a node's regions read of the host: all of it that comes before. */
static tl_status region_edges(deps *j, uint32_t step)
{
    const tl_graph *g = j->pl->p->g;
    const tl_gnode *n = &g->nodes.items[j->pl->steps.items[step].node];

    for (uint32_t i = 0; i < n->nregions; i++) {
        const tl_gregion *r = &g->regions.items[n->region + i];

        for (uint32_t k = r->first; k < r->last; k++) {
            TL_TRY(host_edges(j, step, k));
        }
        for (uint32_t k = 0; k < r->nresults; k++) {
            tl_gval v = g->operands.items[r->results + k];

            if (j->pl->p->facts.region[v] == 0) {
                TL_TRY(add_edge(j, j->pl->maker_of[v], step));
            }
        }
    }
    return TL_OK;
}

static tl_status data_edges(deps *j, uint32_t step)
{
    const tl_plan *pl = j->pl;
    const tl_pstep *s = &pl->steps.items[step];

    for (uint32_t i = 0; i < s->nin; i++) {
        uint32_t v = pl->refs.items[s->in + i];

        if (v != 0) {
            TL_TRY(add_edge(j, pl->bufs.items[tl_pval_at(pl, v)->buf].maker,
                            step));
        }
    }
    if (s->kind != TL_PS_TILE) {
        return host_edges(j, step, s->node);
    }
    for (uint32_t p = 0; p < s->nparts; p++) {
        uint32_t part = pl->refs.items[s->part + p];

        TL_TRY(host_edges(j, step, pl->steps.items[part].node));
    }
    return TL_OK;
}

tl_status tl_plan_edges(const tl_plan *pl, tl_pedges *edges, tl_diag *diag)
{
    deps d = {.pl = pl, .edges = edges, .diag = diag}, *j = &d;
    uint32_t chained = 0;

    for (uint32_t s = 1; s < pl->steps.len; s++) {
        const tl_pstep *step = &pl->steps.items[s];

        if (step->fused) {
            continue;
        }
        TL_TRY(data_edges(j, s));
        if (step->kind == TL_PS_REGION) {
            TL_TRY(region_edges(j, s));
        }
    }
    for (uint32_t s = 1; s < pl->steps.len; s++) {
        if (!pl->steps.items[s].fused &&
            pl->steps.items[s].chained) {
            TL_TRY(add_edge(j, chained, s));
            chained = s;
        }
    }
    return TL_OK;
}

