/* plan_settle.c - what a run need not do again when most of its inputs are
 * the tensors of the run before.
 *
 * Headers over such an input point where they have to.  If its storage becomes
 * an output that is the input's own header, it stays in the caller's hands: no
 * reference is made and given back.  What is left are lists of work. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "compiler/plan_impl.h"

static uint32_t *list_new(tl_plan *pl, size_t count)
{
    return tl_arena_array(&pl->memory, count + 1, sizeof(uint32_t));
}

static bool list_all(tl_plan *pl)
{
    tl_pwork *all = &pl->all, *loose = &pl->loose;

    all->inputs = list_new(pl, pl->ninputs);
    all->targets = list_new(pl, pl->ntargets);
    all->outputs = list_new(pl, pl->nout);
    loose->inputs = list_new(pl, pl->ninputs);
    loose->targets = list_new(pl, pl->ntargets);
    loose->outputs = list_new(pl, pl->nout);
    return all->inputs && all->targets && all->outputs && loose->inputs &&
           loose->targets && loose->outputs;
}

tl_status tl_plan_list_work(tl_plan *pl, tl_rt *rt)
{
    tl_pwork *w = &pl->all;

    if (!list_all(pl)) {
        return tl_plan_no_memory(rt, pl->ninputs * sizeof(uint32_t));
    }
    for (; w->ninputs < pl->ninputs; w->ninputs++) {
        w->inputs[w->ninputs] = w->ninputs;
    }
    for (; w->ntargets < pl->ntargets; w->ntargets++) {
        w->targets[w->ntargets] = w->ntargets;
    }
    for (; w->noutputs < pl->nout; w->noutputs++) {
        w->outputs[w->noutputs] = w->noutputs;
    }
    return TL_OK;
}

/* Steps that look at targets or inputs by more than their headers. */
static bool has_others(const tl_plan *pl)
{
    for (uint32_t i = 0; i < pl->norder; i++) {
        if (pl->calls[i].kind == TL_PS_EFFECT ||
            pl->calls[i].kind == TL_PS_REGION) {
            return true;
        }
    }
    return false;
}

/* Does the target stay where it is? */
static bool stays(const tl_ptarget *t, const tl_run *run)
{
    return t->donor != 0 && run->held[t->donor - 1];
}

/* Every held target is one output, whole. */
static bool is_simple(const tl_plan *pl, const tl_run *run)
{
    for (uint32_t i = 0; i < pl->nout; i++) {
        const tl_poutput *o = &pl->outputs[i];
        const tl_pbuf *b = o->value != 0 && !o->alone
                               ? &pl->bufs.items[tl_pval_root(pl, o->value)]
                               : NULL;

        if (b != NULL && b->where == TL_PB_OUTPUT &&
            stays(&pl->targets[b->index], run)) {
            return false;
        }
    }
    return true;
}

const uint32_t *tl_plan_given(const tl_plan *pl, uint32_t *n)
{
    *n = pl->loose.noutputs;
    return pl->loose.outputs;
}

bool tl_plan_settle(tl_plan *pl, const tl_run *run)
{
    tl_pwork *w = &pl->loose;

    w->ninputs = w->ntargets = w->noutputs = 0;
    if (has_others(pl) || !is_simple(pl, run)) {
        return false;
    }
    for (uint32_t i = 0; i < pl->ninputs; i++) {
        if (!run->held[pl->inputs[i].index]) {
            w->inputs[w->ninputs++] = i;
        }
    }
    for (uint32_t i = 0; i < pl->ntargets; i++) {
        if (!stays(&pl->targets[i], run)) {
            w->targets[w->ntargets++] = i;
        }
    }
    for (uint32_t i = 0; i < pl->nout; i++) {
        uint32_t target = pl->outputs[i].target;

        if (target == 0 || !stays(&pl->targets[target - 1], run)) {
            w->outputs[w->noutputs++] = i;
        }
    }
    return true;
}
