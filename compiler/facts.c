/* facts.c - see facts.h. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "compiler/facts.h"

#include <string.h>

#include "runtime/base/mem.h"

uint32_t tl_gnode_within(const tl_graph *g, uint32_t node, uint32_t region)
{
    while (g->nodes.items[node].owner != region) {
        node = g->regions.items[g->nodes.items[node].owner].node;
    }
    return node;
}

/* ---- where values live and die ------------------------------------------ */

static void set_regions(tl_gfacts *f, const tl_graph *g)
{
    for (uint32_t v = 1; v < g->values.len; v++) {
        f->region[v] = tl_gnode_of(g, v)->owner;
    }
    for (uint32_t r = 1; r < g->regions.len; r++) {
        const tl_gregion *region = &g->regions.items[r];

        for (uint32_t k = 0; k < region->nparams; k++) {
            f->region[region->params + k] = r;
        }
    }
}

/* Operands and results of regions, each in order of its use. */
static void set_last(tl_gfacts *f, const tl_graph *g)
{
    for (uint32_t n = 1; n < g->nodes.len; n++) {
        const tl_gnode *node = &g->nodes.items[n];

        f->max_in = node->nin > f->max_in ? node->nin : f->max_in;
        f->max_out = node->nout > f->max_out ? node->nout : f->max_out;
        for (uint32_t k = 0; k < node->nin; k++) {
            tl_gval v = tl_goperand(g, node, k);

            if (v != 0) {
                uint32_t user = tl_gnode_within(g, n, f->region[v]);

                f->last[v] = user > f->last[v] ? user : f->last[v];
                f->captured[v] |= user != n;
            }
        }
        for (uint32_t k = 0; k < node->nout; k++) {
            f->last[node->out + k] = n;
        }
    }
}

static void set_results(tl_gfacts *f, const tl_graph *g)
{
    for (uint32_t r = 1; r < g->regions.len; r++) {
        const tl_gregion *region = &g->regions.items[r];

        for (uint32_t k = 0; k < region->nresults; k++) {
            tl_gval v = g->operands.items[region->results + k];

            f->captured[v] |= f->region[v] != r;
            if (f->region[v] == r) {
                f->last[v] = TL_GLAST_NEVER;
            } else if (f->last[v] != TL_GLAST_NEVER) {
                uint32_t user =
                    tl_gnode_within(g, region->node, f->region[v]);

                f->last[v] = user > f->last[v] ? user : f->last[v];
            }
        }
    }
    for (size_t i = 0; i < g->outputs.len; i++) {
        f->last[g->outputs.items[i]] = TL_GLAST_NEVER;
    }
}

/* The dying values sorted by node: counted, then placed. */
static void set_dead(tl_gfacts *f, const tl_graph *g)
{
    size_t nodes = g->nodes.len;

    for (uint32_t v = 1; v < g->values.len; v++) {
        if (f->last[v] != TL_GLAST_NEVER) {
            f->dies[f->last[v] + 1]++;
        }
    }
    for (size_t n = 0; n < nodes; n++) {
        f->dies[n + 1] += f->dies[n];
    }
    for (uint32_t v = (uint32_t)g->values.len; v-- > 1;) {
        if (f->last[v] != TL_GLAST_NEVER) {
            f->dead[--f->dies[f->last[v] + 1]] = v;
        }
    }
    /* dies[n + 1] is now the start of node n's */
    memmove(f->dies, f->dies + 1, nodes * sizeof(*f->dies));
    f->dies[nodes] = 0;
    for (uint32_t v = 1; v < g->values.len; v++) {
        f->dies[nodes] += f->last[v] != TL_GLAST_NEVER;
    }
}

tl_status tl_gfacts_init(tl_gfacts *f, const tl_graph *g, tl_diag *diag)
{
    size_t values = g->values.len + 1;

    memset(f, 0, sizeof(*f));
    f->region = tl_calloc(values, sizeof(*f->region));
    f->last = tl_calloc(values, sizeof(*f->last));
    f->dead = tl_calloc(values, sizeof(*f->dead));
    f->dies = tl_calloc(g->nodes.len + 2, sizeof(*f->dies));
    f->atom = tl_calloc(values, sizeof(*f->atom));
    f->captured = tl_calloc(values, sizeof(*f->captured));
    if (!f->region || !f->last || !f->dead || !f->dies || !f->atom ||
        !f->captured) {
        tl_gfacts_fini(f);
        return tl_fail_memory(diag, "facts about a graph",
                              values * sizeof(*f->last));
    }
    set_regions(f, g);
    set_last(f, g);
    set_results(f, g);
    set_dead(f, g);
    for (size_t a = 0; a < g->atoms.len; a++) {
        if (g->atoms.items[a].kind == TL_GA_INT) {
            f->atom[g->atoms.items[a].index] = (uint32_t)a + 1;
        }
    }
    return TL_OK;
}

void tl_gfacts_fini(tl_gfacts *f)
{
    tl_free(f->region);
    tl_free(f->last);
    tl_free(f->dead);
    tl_free(f->dies);
    tl_free(f->atom);
    tl_free(f->captured);
    memset(f, 0, sizeof(*f));
}

/* ---- attributes and sizes ----------------------------------------------- */

void tl_gnode_attrs_bind(const tl_graph *g, const tl_gnode *n,
                         const tl_genv *env, tl_attrs *at)
{
    const tl_gattrs *ga = &g->attrs.items[n->attrs];

    for (uint32_t k = 0; k < ga->nbinds; k++) {
        const tl_gbind *b = &g->binds.items[ga->binds + k];

        if (b->field == 'i') {
            at->i[b->index] = env->scalar[b->value].i;
        } else {
            at->f[b->index] = env->scalar[b->value].f;
        }
    }
}

tl_status tl_gnode_attrs(const tl_graph *g, const tl_gnode *n,
                         const tl_genv *env, tl_attrs *storage,
                         const tl_attrs **out, tl_diag *diag)
{
    const tl_gattrs *ga = &g->attrs.items[n->attrs];

    if (n->attrs == 0) {
        *out = NULL;
        return TL_OK;
    }
    tl_attrs_init(storage);
    storage->dtype = ga->dtype;
    storage->keep = ga->keep != 0;
    storage->flag = ga->flag != 0;
    storage->axis = ga->axis;
    storage->axes = ga->axes;
    storage->ndims = ga->ndims;
    memcpy(storage->i, ga->i, sizeof(storage->i));
    memcpy(storage->f, ga->f, sizeof(storage->f));
    for (int k = 0; k < ga->ndims; k++) {
        int64_t size;

        TL_TRY(tl_graph_size_eval(g, g->sizes.items[ga->dims + (uint32_t)k],
                                  env->atom, &size, diag));
        storage->dims[k] = tl_dim_num(size);
    }
    tl_gnode_attrs_bind(g, n, env, storage);
    *out = storage;
    return TL_OK;
}

tl_status tl_gvalue_sizes(const tl_graph *g, tl_gval v, const int64_t *atoms,
                          int64_t *size, tl_diag *diag)
{
    const tl_gvalue *value = &g->values.items[v];

    for (uint32_t k = 0; k < value->rank; k++) {
        TL_TRY(tl_graph_size_eval(g, g->sizes.items[value->shape + k], atoms,
                                  &size[k], diag));
    }
    return TL_OK;
}
