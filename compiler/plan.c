/* plan.c - making and freeing plans; their figures. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "compiler/plan_region.h"
#include "runtime/base/mem.h"

static tl_status stages(tl_plan *pl, tl_rt *rt, const tl_run *run)
{
    TL_TRY(tl_plan_make(pl, rt, run));
    if (pl->impossible) {
        return TL_OK;
    }
    if (!pl->p->options.no_fuse) {
        TL_TRY(tl_plan_fuse(pl, rt));
    }
    TL_TRY(tl_plan_order(pl, rt));
    TL_TRY(tl_plan_place(pl, rt));
    return tl_plan_bind(pl, rt);
}

tl_status tl_plan_new(tl_plan **out, tl_program *p, tl_rt *rt,
                      const tl_run *run)
{
    tl_plan *pl = tl_calloc(1, sizeof(*pl));
    tl_status st;

    if (!pl) {
        return tl_plan_no_memory(rt, sizeof(*pl));
    }
    tl_arena_init(&pl->memory);
    pl->p = p;
    pl->in_vals = p->g->inputs.items;
    pl->nin = (uint32_t)p->g->inputs.len;
    pl->out_vals = p->g->outputs.items;
    pl->nout = (uint32_t)p->g->outputs.len;
    pl->donate = run->donate;
    st = stages(pl, rt, run);
    pl->donate = NULL;
    if (st != TL_OK || pl->impossible) {
        tl_plan_free(pl);
        pl = NULL;
    }
    if (st == TL_OK) {
        *out = pl;
    }
    return st;
}

tl_status tl_plan_sub(tl_plan **out, tl_plan *parent, const tl_pscope *scope,
                      tl_rt *rt)
{
    tl_plan *pl = tl_calloc(1, sizeof(*pl));
    tl_status st;

    if (!pl) {
        return tl_plan_no_memory(rt, sizeof(*pl));
    }
    tl_arena_init(&pl->memory);
    pl->p = parent->p;
    pl->parent = parent;
    pl->region = scope->region;
    pl->in_vals = scope->in;
    pl->nin = scope->nin;
    pl->out_vals = scope->out;
    pl->nout = scope->nout;
    pl->donate = scope->donate;
    pl->area = (tl_storage){.size_class = TL_STORAGE_WRAPPED};
    atomic_init(&pl->area.refs, 1);
    st = stages(pl, rt, NULL);
    if (st != TL_OK || pl->impossible) {
        tl_plan_free(pl);
        pl = NULL;
    }
    if (st == TL_OK) {
        *out = pl;
    }
    return st;
}

void tl_plan_free(tl_plan *pl)
{
    if (!pl) {
        return;
    }
    for (uint32_t n = 1; n < pl->steps.len; n++) {
        tl_tile_free(pl->steps.items[n].tile);
        tl_tile_reduce_free(pl->steps.items[n].reduction);
        tl_region_free(pl->steps.items[n].regions);
    }
    for (uint32_t v = 1; v < pl->vals.len; v++) {
        if (pl->vals.items[v].t) {
            pl->vals.items[v].t->storage = NULL; /* borrowed */
            tl_tensor_unref(pl->vals.items[v].t);
        }
    }
    tl_free(pl->vals.items);
    tl_free(pl->bufs.items);
    tl_free(pl->steps.items);
    tl_free(pl->refs.items);
    tl_free(pl->key);
    tl_arena_fini(&pl->memory);
    tl_free(pl);
}

void tl_plan_get_stats(const tl_plan *pl, tl_plan_stats *out)
{
    *out = (tl_plan_stats){.kernels = pl->kernels,
                           .fused = pl->fused,
                           .copies = pl->copies,
                           .arena = pl->arena,
                           .lower_bound = pl->lower_bound,
                           .donated = pl->donated};
}
