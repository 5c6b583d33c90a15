/* graph_visit.c - walking a graph in the order of its text. */
#include "compiler/graph_impl.h"

/* The node of region `owner` that is node `i` or has it inside. */
static uint32_t own_node(const tl_graph *g, uint32_t i, uint32_t owner)
{
    while (g->nodes.items[i].owner != owner) {
        i = g->regions.items[g->nodes.items[i].owner].node;
    }
    return i;
}

/* Nodes first .. last-1 of region `owner`.  Nests as deep as the program. */
static void visit_nodes(const tl_graph *g, uint32_t owner, uint32_t first,
                        uint32_t last, const tl_gvisit *v)
{
    while (first < last) {
        uint32_t i = own_node(g, first, owner);
        const tl_gnode *n = &g->nodes.items[i];

        for (uint32_t k = 0; k < n->nregions; k++) {
            const tl_gregion *r = &g->regions.items[n->region + k];

            if (v->open) {
                v->open(v->arg, n->region + k);
            }
            visit_nodes(g, n->region + k, r->first, r->last, v);
            if (v->close) {
                v->close(v->arg, n->region + k);
            }
        }
        if (v->node) {
            v->node(v->arg, i);
        }
        first = i + 1;
    }
}

void tl_graph_visit(const tl_graph *g, const tl_gvisit *visit)
{
    visit_nodes(g, 0, 1, (uint32_t)g->nodes.len, visit);
}

typedef struct numbering {
    const tl_graph *g;
    uint32_t *number;
    uint32_t n;
} numbering;

static void number_values(numbering *w, uint32_t first, uint32_t n)
{
    for (uint32_t k = 0; k < n; k++) {
        w->number[first + k] = ++w->n;
    }
}

static void number_params(void *arg, uint32_t region)
{
    numbering *w = arg;
    const tl_gregion *r = &w->g->regions.items[region];

    number_values(w, r->params, r->nparams);
}

static void number_results(void *arg, uint32_t node)
{
    numbering *w = arg;
    const tl_gnode *n = &w->g->nodes.items[node];

    number_values(w, n->out, n->nout);
}

void tl_graph_number(const tl_graph *g, uint32_t *number)
{
    numbering w = {g, number, 0};
    tl_gvisit visit = {number_params, number_results, NULL, &w};

    number[0] = 0;
    tl_graph_visit(g, &visit);
}
