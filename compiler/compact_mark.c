/* compact_mark.c - what is needed of a graph.
 *
 * A sweep from the last node to the first: operands are made before their
 * uses, and regions stand before their node, so the uses of a value have been
 * seen when its node comes.  Only values that a loop carries need another
 * sweep. */
#include "compiler/compact_impl.h"
#include "runtime/op/dim_code.h"

/* ---- marking ------------------------------------------------------------ */

static void need_node(tl_compaction *c, uint32_t node)
{
    if (node != 0 && !c->live[node]) {
        c->live[node] = 1;
        c->again |= node > c->now;
    }
}

/* The result of loop `n` that is carried through parameter `k` of its region
 * `region`; 0: the index. */
static tl_gval carried_as(const tl_gnode *n, uint32_t region, uint32_t k)
{
    bool body = region - n->region == n->nregions - 1u;

    return body && k == 0 ? 0 : n->out + (body ? k : k + 1);
}

/* A parameter: what a loop carries. */
static void need_param(tl_compaction *c, tl_gval v)
{
    const tl_graph *g = c->from;
    uint32_t r = c->param[v];
    tl_gval result;

    if (r == 0) {
        return;
    }
    result = carried_as(&g->nodes.items[g->regions.items[r].node], r,
                        g->values.items[v].result);
    if (result != 0 && !c->value_live[result]) {
        c->value_live[result] = 1;
        c->again = true; // the loop stands behind its body
    }
}

static void need_value(tl_compaction *c, tl_gval v)
{
    uint32_t node = c->from->values.items[v].node;

    if (node == 0) {
        need_param(c, v);
        return;
    }
    c->value_live[v] = 1;
    need_node(c, node);
}

static void need_size(tl_compaction *c, uint32_t size)
{
    const tl_gsize *s = &c->from->dims.items[size];
    const int64_t *code = &c->from->code.items[s->code];

    if (c->size_live[size]) {
        return;
    }
    c->size_live[size] = 1;
    for (uint32_t i = 0; i < s->len; i++) {
        if (code[i] == TL_DC_ATOM) {
            const tl_gatom *a = &c->from->atoms.items[code[++i]];

            c->atom_live[code[i]] = 1;
            if (a->kind == TL_GA_INT) {
                need_value(c, a->index);
            }
        } else if (code[i] == TL_DC_NUM) {
            i++;
        }
    }
}

static void need_sizes(tl_compaction *c, uint32_t first, uint32_t n)
{
    for (uint32_t k = 0; k < n; k++) {
        need_size(c, c->from->sizes.items[first + k]);
    }
}

static void need_types(tl_compaction *c, tl_gval first, uint32_t n)
{
    for (uint32_t k = 0; k < n; k++) {
        const tl_gvalue *v = &c->from->values.items[first + k];

        need_sizes(c, v->shape, v->rank);
    }
}

/* ---- what is kept of nodes with regions --------------------------------- */

bool tl_compact_keeps_out(const tl_compaction *c, const tl_gnode *n, uint32_t k)
{
    return n->nregions == 0 || (n->kind == TL_G_LOOP && k == 0) ||
           c->value_live[n->out + k];
}

/* Operands of a loop are the bound, then what it carries. */
bool tl_compact_keeps_in(const tl_compaction *c, const tl_gnode *n, uint32_t k)
{
    return n->kind != TL_G_LOOP || tl_compact_keeps_out(c, n, k);
}

bool tl_compact_keeps_param(const tl_compaction *c, const tl_gnode *n,
                        uint32_t region, uint32_t k)
{
    tl_gval v = n->kind == TL_G_LOOP ? carried_as(n, region, k) : 0;

    return v == 0 || c->value_live[v];
}

/* Results of an arm are those of the node; of a loop's body they follow the
 * turns; its test has one. */
bool tl_compact_keeps_result(const tl_compaction *c, const tl_gnode *n,
                         uint32_t region, uint32_t k)
{
    if (n->kind != TL_G_LOOP) {
        return tl_compact_keeps_out(c, n, k);
    }
    return region - n->region != n->nregions - 1u ||
           tl_compact_keeps_out(c, n, k + 1);
}

/* ---- marking nodes ------------------------------------------------------ */

static void need_region(tl_compaction *c, const tl_gnode *n, uint32_t region)
{
    const tl_gregion *r = &c->from->regions.items[region];

    for (uint32_t k = 0; k < r->nresults; k++) {
        if (tl_compact_keeps_result(c, n, region, k)) {
            need_value(c, c->from->operands.items[r->results + k]);
        }
    }
    for (uint32_t k = 0; k < r->nparams; k++) {
        if (tl_compact_keeps_param(c, n, region, k)) {
            need_types(c, r->params + k, 1);
        }
    }
}

/* All that a live node needs. */
static void need_parts(tl_compaction *c, const tl_gnode *n)
{
    const tl_graph *g = c->from;
    const tl_gattrs *at = &g->attrs.items[n->attrs];

    for (uint32_t k = 0; k < n->nin; k++) {
        if (tl_compact_keeps_in(c, n, k)) {
            need_value(c, tl_goperand(g, n, k));
        }
    }
    for (uint32_t k = 0; k < n->nout; k++) {
        if (tl_compact_keeps_out(c, n, k)) {
            need_types(c, n->out + k, 1);
        }
    }
    need_sizes(c, at->dims, at->ndims);
    for (uint32_t k = 0; k < at->nbinds; k++) {
        need_value(c, g->binds.items[at->binds + k].value);
    }
    for (uint32_t k = 0; k < n->nregions; k++) {
        need_region(c, n, n->region + k);
    }
}

/* Inputs, effects, and what fails as the interpreter does. */
static bool is_root(const tl_graph *g, const tl_gnode *n)
{
    return n->kind == TL_G_INPUT ||
           (n->kind != TL_G_NONE && (n->flags & TL_GF_EFFECT) != 0) ||
           ((n->flags & TL_GF_LOCAL) == 0 && tl_gnode_may_fail(g, n));
}

void tl_compact_mark(tl_compaction *c)
{
    const tl_graph *g = c->from;

    for (uint32_t r = 1; r < g->regions.len; r++) {
        for (uint32_t k = 0; k < g->regions.items[r].nparams; k++) {
            c->param[g->regions.items[r].params + k] = r;
        }
    }
    c->now = (uint32_t)g->nodes.len;
    for (size_t k = 0; k < g->outputs.len; k++) {
        need_value(c, g->outputs.items[k]);
    }
    for (size_t k = 0; k < g->guards.len; k++) {
        need_value(c, g->guards.items[k].value);
    }
    for (uint32_t i = 1; i < g->nodes.len; i++) {
        if (is_root(g, &g->nodes.items[i])) {
            for (uint32_t j = i; j != 0 && !c->live[j];) {
                c->live[j] = 1;
                j = g->regions.items[g->nodes.items[j].owner].node;
            }
        }
    }
    do {
        c->again = false;
        for (c->now = (uint32_t)g->nodes.len; --c->now > 0;) {
            if (c->live[c->now]) {
                need_parts(c, &g->nodes.items[c->now]);
            }
        }
    } while (c->again);
}
