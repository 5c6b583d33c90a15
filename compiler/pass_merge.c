/* pass_merge.c - equal nodes become one.
 *
 * Equal: the same operation of the same values with the same attributes and
 * results.  A draw has the values of seed and counter among its attributes,
 * so two draws are equal only if they draw the same numbers.  The earlier
 * node must be seen from the later one: it stands in its region or in one
 * around it.  Nodes with regions, effects and inputs stay. */
#include <string.h>

#include "compiler/pass_impl.h"
#include "runtime/base/map.h"
#include "runtime/base/mem.h"

typedef struct merger {
    tl_graph *g;
    tl_rewrite rw;
    uint64_t *slots; /* open addressing: a hash and a node in each */
    size_t mask;
} merger;

static bool may_merge(const tl_gnode *n)
{
    switch (n->kind) {
    case TL_G_OP:
    case TL_G_MAPGRAD:
    case TL_G_CONST:
    case TL_G_NUM:
    case TL_G_SIZE:
    case TL_G_HOST:
    case TL_G_SCALAR:
    case TL_G_ITEM:
        return true;
    default:
        return false;
    }
}

static bool same_node(const tl_graph *g, const tl_gnode *a,
                      const tl_gnode *b)
{
    if (a->kind != b->kind || a->op != b->op || a->which != b->which ||
        a->nin != b->nin || a->nout != b->nout || a->attrs != b->attrs ||
        a->data != b->data ||
        memcmp(&g->operands.items[a->in], &g->operands.items[b->in],
               a->nin * sizeof(tl_gval)) != 0) {
        return false;
    }
    for (uint32_t k = 0; k < a->nout; k++) {
        if (!tl_graph_same_type(g, a->out + k, b->out + k)) {
            return false;
        }
    }
    return true;
}

static uint64_t hash_node(const tl_graph *g, const tl_gnode *n)
{
    uint32_t head[4] = {(uint32_t)n->kind << 24 | (uint32_t)n->which << 16 |
                            n->op,
                        n->attrs, n->data, n->nin};

    return tl_hash_bytes(&g->operands.items[n->in],
                         n->nin * sizeof(tl_gval),
                         tl_hash_bytes(head, sizeof(head), 0));
}

/* Is region `outer` the region `inner` or around it? */
static bool around(const tl_graph *g, uint32_t outer, uint32_t inner)
{
    while (inner != outer && inner != 0) {
        inner = g->nodes.items[g->regions.items[inner].node].owner;
    }
    return inner == outer;
}

static void merge(merger *m, const tl_gnode *n, const tl_gnode *into)
{
    for (uint32_t k = 0; k < n->nout; k++) {
        tl_rewrite_value(&m->rw, n->out + k, into->out + k);
    }
}

/* Find an equal node, or keep this one for those that follow.  One that is
 * not seen from here stands in a region that has ended: it gives way. */
static void merge_or_keep(merger *m, uint32_t node)
{
    const tl_gnode *n = &m->g->nodes.items[node];
    uint64_t hash = hash_node(m->g, n);
    uint64_t word = (hash >> 32 << 32) | node;
    size_t at = (size_t)(hash >> 32) & m->mask;

    for (; m->slots[at] != 0; at = (at + 1) & m->mask) {
        const tl_gnode *other =
            &m->g->nodes.items[(uint32_t)m->slots[at]];

        if (m->slots[at] >> 32 == hash >> 32 && same_node(m->g, other, n)) {
            if (around(m->g, other->owner, n->owner)) {
                merge(m, n, other);
                return;
            }
            break;
        }
    }
    m->slots[at] = word;
}

static tl_status merge_all(merger *m, tl_diag *diag)
{
    for (uint32_t i = 1; i < m->g->nodes.len; i++) {
        TL_TRY(tl_rewrite_node(&m->rw, i, diag));
        if (may_merge(&m->g->nodes.items[i])) {
            merge_or_keep(m, i);
        }
    }
    tl_rewrite_finish(&m->rw);
    return TL_OK;
}

tl_status tl_pass_merge(tl_graph *g, size_t *changes, tl_diag *diag)
{
    merger m = {.g = g, .mask = 63};
    tl_status st;

    while (m.mask < 2 * g->nodes.len) {
        m.mask = 2 * m.mask + 1;
    }
    TL_TRY(tl_rewrite_init(&m.rw, g, diag));
    m.slots = tl_calloc(m.mask + 1, sizeof(*m.slots));
    st = m.slots ? merge_all(&m, diag)
                 : tl_fail_memory(diag, "a pass",
                                  (m.mask + 1) * sizeof(*m.slots));
    *changes = m.rw.changes;
    tl_free(m.slots);
    tl_rewrite_fini(&m.rw);
    return st;
}
