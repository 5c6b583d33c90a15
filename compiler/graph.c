/* graph.c - a graph's arrays, nodes and regions.
 *
 * Whoever appends first makes room in every array, so that no failure leaves
 * half an item.  Sizes and attributes are in graph_intern.c. */
#include "compiler/graph.h"

#include <string.h>

#include "compiler/graph_impl.h"
#include "runtime/base/check.h"
#include "runtime/base/mem.h"
#include "runtime/base/size.h"
#include "runtime/base/vec.h"

static const char *const kind_names[] = {
    "none",
#define KIND(name, text, doc) text,
#include "compiler/kind.def"
};

static const struct {
    const char *name;
    int nin;
} host_rows[] = {
    {"none", 0},
#define HOST(name, nin, doc) {#name, nin},
#include "compiler/host.def"
};

const char *tl_gkind_name(tl_gkind kind)
{
    return kind_names[kind];
}

bool tl_gkind_has_data(tl_gkind kind)
{
    return kind == TL_G_INPUT || kind == TL_G_CONST || kind == TL_G_LOOP ||
           kind == TL_G_ASSERT || kind == TL_G_HOSTCALL;
}

const char *tl_ghost_name(tl_ghost op)
{
    return host_rows[op].name;
}

int tl_ghost_inputs(tl_ghost op)
{
    return host_rows[op].nin;
}

/* ---- arrays ------------------------------------------------------------- */

tl_status tl_graph_room(void **items, size_t len, size_t *cap, size_t size,
                        size_t more, tl_diag *diag)
{
    size_t want = len + more, bytes;
    void *p;

    if (want <= *cap) {
        return TL_OK;
    }
    if (more > INT32_MAX || want > INT32_MAX) {
        return tl_fail(diag, TL_E0699, "a graph of more than 2^31 items");
    }
    want = want < 2 * *cap ? 2 * *cap : want < 16 ? 16 : want;
    if (!tl_mul_size(&bytes, want, size)) {
        return tl_fail_memory(diag, "a graph", SIZE_MAX);
    }
    p = tl_realloc(*items, bytes);
    if (!p) {
        return tl_fail_memory(diag, "a graph", bytes);
    }
    *items = p;
    *cap = want;
    return TL_OK;
}

uint32_t tl_graph_put(void *items, size_t *len, size_t size,
                      const void *from, size_t n)
{
    size_t at = *len;

    if (n > 0) {
        memcpy((char *)items + at * size, from, n * size);
    }
    *len += n;
    return (uint32_t)at;
}

#define PUT_UNUSED(array)                                                    \
    do {                                                                     \
        TL_TRY(TL_GROOM(array, 1, diag));                                    \
        memset((array)->items, 0, sizeof(*(array)->items));                  \
        (array)->len = 1;                                                    \
    } while (0)

tl_status tl_graph_init(tl_graph *g, tl_diag *diag)
{
    PUT_UNUSED(&g->nodes);
    PUT_UNUSED(&g->values);
    PUT_UNUSED(&g->regions);
    PUT_UNUSED(&g->operands);
    PUT_UNUSED(&g->sizes);
    PUT_UNUSED(&g->dims);
    PUT_UNUSED(&g->attrs);
    PUT_UNUSED(&g->binds);
    PUT_UNUSED(&g->consts);
    PUT_UNUSED(&g->reports);
    return TL_OK;
}

void tl_graph_fini(tl_graph *g)
{
    void *const arrays[] = {
        g->nodes.items,  g->values.items,       g->regions.items,
        g->operands.items, g->sizes.items,      g->dims.items,
        g->code.items,   g->atoms.items,        g->attrs.items,
        g->binds.items,  g->guards.items,       g->consts.items,
        g->bytes.items,  g->inputs.items,       g->outputs.items,
        g->reports.items, g->open.items,        g->runs.items,
        g->size_index.slots, g->run_index.slots, g->atom_index.slots,
        g->attrs_index.slots, g->const_index.slots};

    for (size_t i = 0; i < sizeof(arrays) / sizeof(arrays[0]); i++) {
        tl_free(arrays[i]);
    }
    memset(g, 0, sizeof(*g));
}

tl_status tl_graph_new(tl_graph **out, tl_diag *diag)
{
    tl_graph *g = tl_calloc(1, sizeof(*g));
    tl_status st;

    if (!g) {
        return tl_fail_memory(diag, "a graph", sizeof(*g));
    }
    st = tl_graph_init(g, diag);
    if (st != TL_OK) {
        tl_graph_free(g);
        return st;
    }
    *out = g;
    return TL_OK;
}

void tl_graph_free(tl_graph *g)
{
    if (g) {
        tl_graph_fini(g);
        tl_free(g);
    }
}

/* ---- regions ------------------------------------------------------------ */

/* The first closed region without a node from number `r` on; 0: none. */
static uint32_t next_unowned(const tl_graph *g, uint32_t r)
{
    for (; r < g->regions.len; r++) {
        if (g->regions.items[r].node == 0 && g->regions.items[r].last != 0) {
            return r;
        }
    }
    return 0;
}

/* Region `from` gets number `to` < from; those between move up by one. */
static void renumber(tl_graph *g, uint32_t from, uint32_t to)
{
    tl_gregion moved = g->regions.items[from];

    memmove(&g->regions.items[to + 1], &g->regions.items[to],
            (from - to) * sizeof(moved));
    g->regions.items[to] = moved;
    for (uint32_t i = g->regions.items[to - 1].first; i < g->nodes.len; i++) {
        tl_gnode *n = &g->nodes.items[i];
        uint32_t *const fields[] = {&n->owner, &n->region};

        for (int k = 0; k < 2; k++) {
            if (*fields[k] >= to && *fields[k] <= from) {
                *fields[k] = *fields[k] == from ? to : *fields[k] + 1;
            }
        }
    }
}

/* Are there `n` closed regions without a node from `region` on? */
static bool regions_there(const tl_graph *g, uint32_t region, uint32_t n)
{
    uint32_t r = region;

    for (uint32_t k = 0; k < n; k++) {
        r = next_unowned(g, k == 0 ? region : r + 1);
        if (r == 0 || (k == 0 && r != region)) {
            return false;
        }
    }
    return true;
}

/* Give the node its regions, side by side. */
static void adopt(tl_graph *g, uint32_t node, uint32_t region, uint32_t n)
{
    for (uint32_t k = 0; k < n; k++) {
        uint32_t r = next_unowned(g, region + k);

        if (r != region + k) {
            renumber(g, r, region + k);
        }
        g->regions.items[region + k].node = node;
    }
}

static bool is_open(const tl_graph *g, uint32_t region)
{
    for (size_t i = g->open.len; i > 0; i--) {
        if (g->open.items[i - 1] == region) {
            return true;
        }
    }
    return region == 0;
}

/* A value's type without what does not belong to it. */
static tl_gvalue clean_value(const tl_gvalue *v, uint32_t node, uint32_t k)
{
    bool tensor = v->cls == TL_GC_TENSOR;

    return (tl_gvalue){.node = node,
                       .shape = tensor ? v->shape : 0,
                       .cls = v->cls,
                       .dtype = tensor ? v->dtype : 0,
                       .rank = tensor ? v->rank : 0,
                       .result = (uint8_t)k};
}

static tl_status too_many(uint32_t n, tl_diag *diag)
{
    return n <= UINT8_MAX ? TL_OK
                          : tl_fail(diag, TL_E0699,
                                    "a loop or branch of %u values; at most "
                                    "%d are compiled",
                                    n, UINT8_MAX);
}

tl_status tl_graph_region_open(tl_graph *g, const tl_gvalue *params,
                               uint32_t n, uint32_t *region, tl_diag *diag)
{
    tl_gregion r = {.first = (uint32_t)g->nodes.len,
                    .params = n > 0 ? (uint32_t)g->values.len : 0,
                    .nparams = n};

    TL_TRY(too_many(n, diag));
    TL_TRY(TL_GROOM(&g->regions, 1, diag));
    TL_TRY(TL_GROOM(&g->values, n, diag));
    TL_TRY(TL_GROOM(&g->open, 1, diag));
    for (uint32_t k = 0; k < n; k++) {
        g->values.items[g->values.len++] = clean_value(&params[k], 0, k);
    }
    *region = TL_GPUT(&g->regions, &r, 1);
    g->open.items[g->open.len++] = *region;
    return TL_OK;
}

tl_status tl_graph_region_close(tl_graph *g, uint32_t region,
                                const tl_gval *results, uint32_t n,
                                tl_diag *diag)
{
    tl_gregion *r;

    if (g->open.len == 0 || g->open.items[g->open.len - 1] != region) {
        return tl_fail(diag, TL_E0699, "region %u is not the innermost one",
                       region);
    }
    TL_TRY(TL_GROOM(&g->operands, n, diag));
    r = &g->regions.items[region];
    r->last = (uint32_t)g->nodes.len;
    r->results = n > 0 ? TL_GPUT(&g->operands, results, n) : 0;
    r->nresults = n;
    g->open.len--;
    return TL_OK;
}

tl_status tl_graph_region_results(tl_graph *g, uint32_t region,
                                  const tl_gval *results, uint32_t n,
                                  tl_diag *diag)
{
    tl_gregion *r = &g->regions.items[region];

    TL_TRY(too_many(n, diag));
    TL_TRY(TL_GROOM(&g->operands, n, diag));
    r->results = n > 0 ? TL_GPUT(&g->operands, results, n) : 0;
    r->nresults = n;
    return TL_OK;
}

/* ---- nodes -------------------------------------------------------------- */

tl_status tl_graph_add(tl_graph *g, const tl_gnew *n, tl_gval *first,
                       tl_diag *diag)
{
    uint32_t number = (uint32_t)g->nodes.len;
    tl_gnode node = {.kind = (uint8_t)n->kind,
                     .which = n->which,
                     .nout = (uint8_t)n->nout,
                     .flags = n->flags,
                     .op = n->op,
                     .nregions = (uint16_t)n->nregions,
                     .nin = n->nin,
                     .attrs = n->attrs,
                     .region = n->nregions > 0 ? n->region : 0,
                     .owner = n->owner,
                     .data = n->data,
                     .span = n->span};

    TL_TRY(too_many(n->nout, diag));
    if (!is_open(g, n->owner) ||
        (n->nregions > 0 && !regions_there(g, n->region, n->nregions))) {
        return tl_fail(diag, TL_E0699, "node %u is not where it belongs",
                       number);
    }
    TL_TRY(TL_GROOM(&g->nodes, 1, diag));
    TL_TRY(TL_GROOM(&g->operands, n->nin, diag));
    TL_TRY(TL_GROOM(&g->values, n->nout, diag));
    node.in = n->nin > 0 ? TL_GPUT(&g->operands, n->in, n->nin) : 0;
    node.out = n->nout > 0 ? (uint32_t)g->values.len : 0;
    for (uint32_t k = 0; k < n->nout; k++) {
        g->values.items[g->values.len++] = clean_value(&n->out[k], number, k);
    }
    (void)TL_GPUT(&g->nodes, &node, 1);
    adopt(g, number, n->region, n->nregions);
    *first = node.out;
    return TL_OK;
}

tl_status tl_graph_guard(tl_graph *g, tl_gval value, tl_gscalar expected,
                         tl_span span, tl_diag *diag)
{
    tl_gguard guard = {.value = value, .expected = expected, .span = span};

    return TL_VEC_PUSH(&g->guards, guard, diag);
}

bool tl_graph_same_type(const tl_graph *g, tl_gval a, tl_gval b)
{
    const tl_gvalue *x = &g->values.items[a], *y = &g->values.items[b];

    return x->cls == y->cls && x->dtype == y->dtype && x->rank == y->rank &&
           (x->shape == y->shape ||
            memcmp(&g->sizes.items[x->shape], &g->sizes.items[y->shape],
                   x->rank * sizeof(uint32_t)) == 0);
}

/* ---- settling ----------------------------------------------------------- */

void tl_graph_set_ranges(tl_graph *g)
{
    for (uint32_t r = 1; r < g->regions.len; r++) {
        g->regions.items[r].first = g->regions.items[r].last = 0;
    }
    for (uint32_t i = 1; i < g->nodes.len; i++) {
        const tl_gnode *n = &g->nodes.items[i];
        tl_gregion *around = &g->regions.items[n->owner];
        uint32_t first = i; // of this node with its regions

        for (uint32_t k = n->nregions; k-- > 0;) {
            tl_gregion *r = &g->regions.items[n->region + k];

            if (r->first == 0) { // it has no nodes
                r->first = r->last = first;
            }
            first = r->first;
        }
        if (n->owner != 0) {
            around->first = around->first == 0 ? first : around->first;
            around->last = i + 1;
        }
    }
}

/* Nodes by the region that they belong to, and their new order. */
typedef struct order {
    const tl_graph *g;
    uint32_t *head;   /* by region: its first node */
    uint32_t *next;   /* by node: the next one of its region */
    uint32_t *number; /* by node: its new number */
    uint32_t n;
    bool moved;
} order;

/* The nodes of a region, each after its own regions. */
static void order_region(order *o, uint32_t region)
{
    for (uint32_t i = o->head[region]; i != 0; i = o->next[i]) {
        const tl_gnode *n = &o->g->nodes.items[i];

        for (uint32_t k = 0; k < n->nregions; k++) {
            order_region(o, n->region + k);
        }
        o->moved |= o->n != i;
        o->number[i] = o->n++;
    }
}

static tl_status move_nodes(tl_graph *g, const order *o, tl_diag *diag)
{
    tl_gnode *nodes = tl_calloc(g->nodes.len, sizeof(*nodes));

    if (!nodes) {
        return tl_fail_memory(diag, "a graph",
                              g->nodes.len * sizeof(*nodes));
    }
    for (uint32_t i = 1; i < g->nodes.len; i++) {
        nodes[o->number[i]] = g->nodes.items[i];
    }
    tl_free(g->nodes.items);
    g->nodes.items = nodes;
    g->nodes.cap = g->nodes.len;
    for (uint32_t v = 1; v < g->values.len; v++) {
        tl_gvalue *value = &g->values.items[v];

        value->node = o->number[value->node];
    }
    for (uint32_t r = 1; r < g->regions.len; r++) {
        g->regions.items[r].node = o->number[g->regions.items[r].node];
    }
    return TL_OK;
}

tl_status tl_graph_settle(tl_graph *g, tl_diag *diag)
{
    size_t n = g->nodes.len, words = 2 * n + g->regions.len;
    order o = {.g = g, .n = 1};
    tl_status st = TL_OK;

    if (g->open.len > 0 || next_unowned(g, 1) != 0) {
        return tl_fail(diag, TL_E0699, "a region has no node");
    }
    o.head = tl_calloc(words, sizeof(*o.head));
    if (!o.head) {
        return tl_fail_memory(diag, "a graph", words * sizeof(*o.head));
    }
    o.next = o.head + g->regions.len;
    o.number = o.next + n;
    for (uint32_t i = (uint32_t)n; i-- > 1;) {
        o.next[i] = o.head[g->nodes.items[i].owner];
        o.head[g->nodes.items[i].owner] = i;
    }
    order_region(&o, 0);
    if (o.moved) {
        st = move_nodes(g, &o, diag);
    }
    if (st == TL_OK) { // a region may begin with another's node
        tl_graph_set_ranges(g);
    }
    tl_free(o.head);
    return st;
}
