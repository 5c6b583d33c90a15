/* compact.c - dropping what is unreachable.
 *
 * What compact_mark.c finds needed is appended to a new graph in the order of
 * the text.  Branches lose the results, loops the carried values and stacks,
 * that nothing needs. */
#include "compiler/compact_impl.h"

#include <string.h>

#include "runtime/base/mem.h"
#include "runtime/op/dim_code.h"

/* ---- numbers of the new graph ------------------------------------------- */

static const tl_gnode *owner_of(const tl_compaction *c, uint32_t region)
{
    return &c->from->nodes.items[c->from->regions.items[region].node];
}

static bool dead_region(const tl_compaction *c, uint32_t region)
{
    return !c->live[c->from->regions.items[region].node];
}

static void number_region(void *arg, uint32_t region)
{
    tl_compaction *c = arg;
    const tl_gregion *r = &c->from->regions.items[region];

    for (uint32_t k = 0; k < r->nparams && !dead_region(c, region); k++) {
        if (tl_compact_keeps_param(c, owner_of(c, region), region, k)) {
            c->value[r->params + k] = ++c->nvalues;
        }
    }
}

static void number_node(void *arg, uint32_t node)
{
    tl_compaction *c = arg;
    const tl_gnode *n = &c->from->nodes.items[node];

    for (uint32_t k = 0; k < n->nout && c->live[node]; k++) {
        if (tl_compact_keeps_out(c, n, k)) {
            c->value[n->out + k] = ++c->nvalues;
        }
    }
}

static tl_status copy_atoms(tl_compaction *c)
{
    for (uint32_t k = 0; k < c->from->atoms.len; k++) {
        tl_gatom a = c->from->atoms.items[k];

        if (!c->atom_live[k]) {
            continue;
        }
        if (a.kind == TL_GA_INT) {
            a.index = c->value[a.index];
        }
        TL_TRY(tl_graph_atom(c->to, a, &c->atom[k], c->diag));
    }
    return TL_OK;
}

/* ---- sizes -------------------------------------------------------------- */

static tl_status map_size(tl_compaction *c, uint32_t size, uint32_t *out)
{
    const tl_gsize *s = &c->from->dims.items[size];

    if (c->size[size] == 0) {
        memcpy(c->code, &c->from->code.items[s->code],
               s->len * sizeof(*c->code));
        for (uint32_t i = 0; i < s->len; i++) {
            if (c->code[i] == TL_DC_ATOM) {
                i++;
                c->code[i] = c->atom[c->code[i]];
            } else if (c->code[i] == TL_DC_NUM) {
                i++;
            }
        }
        TL_TRY(tl_graph_size(c->to, c->code, s->len, &c->size[size],
                             c->diag));
    }
    *out = c->size[size];
    return TL_OK;
}

static tl_status map_run(tl_compaction *c, uint32_t first, uint32_t n,
                         uint32_t *out)
{
    if (n > 0 && c->rank[first] != n + 1) {
        for (uint32_t k = 0; k < n; k++) {
            TL_TRY(map_size(c, c->from->sizes.items[first + k],
                            &c->numbers[k]));
        }
        TL_TRY(tl_graph_run(c->to, c->numbers, n, &c->shape[first],
                            c->diag));
        c->rank[first] = (uint8_t)(n + 1);
    }
    *out = n > 0 ? c->shape[first] : 0;
    return TL_OK;
}

/* ---- attributes and the like -------------------------------------------- */

static tl_status map_attrs(tl_compaction *c, uint32_t attrs, uint32_t *out)
{
    const tl_graph *g = c->from;
    const tl_gattrs *at = &g->attrs.items[attrs];
    tl_gbind binds[16];

    if (c->attrs[attrs] == 0 && attrs != 0) {
        if (at->nbinds > sizeof(binds) / sizeof(binds[0])) {
            return tl_fail(c->diag, TL_E0699, "%u bound attributes",
                           at->nbinds);
        }
        for (uint32_t k = 0; k < at->nbinds; k++) {
            binds[k] = g->binds.items[at->binds + k];
            binds[k].value = c->value[binds[k].value];
        }
        for (uint32_t k = 0; k < at->ndims; k++) {
            TL_TRY(map_size(c, g->sizes.items[at->dims + k],
                            &c->numbers[k]));
        }
        TL_TRY(tl_graph_attrs(c->to, at, c->numbers, binds, &c->attrs[attrs],
                              c->diag));
    }
    *out = c->attrs[attrs];
    return TL_OK;
}

static tl_status map_const(tl_compaction *c, uint32_t number, uint32_t *out)
{
    const tl_gconst *k = &c->from->consts.items[number];

    if (c->constant[number] == 0) {
        TL_TRY(tl_graph_const(c->to, &c->from->bytes.items[k->bytes], k->len,
                              &c->constant[number], c->diag));
    }
    *out = c->constant[number];
    return TL_OK;
}

static tl_status map_report(tl_compaction *c, uint32_t number, uint32_t *out)
{
    if (c->report[number] == 0) {
        TL_TRY(TL_GROOM(&c->to->reports, 1, c->diag));
        c->report[number] = TL_GPUT(&c->to->reports,
                                    &c->from->reports.items[number], 1);
    }
    *out = c->report[number];
    return TL_OK;
}

static tl_status map_data(tl_compaction *c, const tl_gnode *n, uint32_t *out)
{
    switch (n->kind) {
    case TL_G_CONST:
        return map_const(c, n->data, out);
    case TL_G_ASSERT:
    case TL_G_HOSTCALL:
        return map_report(c, n->data, out);
    default:
        *out = n->data;
        return TL_OK;
    }
}

/* ---- nodes -------------------------------------------------------------- */

/* The value as result `k` of node `node` or as a parameter. */
static tl_status copy_value(tl_compaction *c, tl_gval value, uint32_t k,
                            uint32_t node)
{
    tl_gvalue v = c->from->values.items[value];

    TL_TRY(map_run(c, v.shape, v.rank, &v.shape));
    v.node = node;
    v.result = (uint8_t)k;
    (void)TL_GPUT(&c->to->values, &v, 1);
    return TL_OK;
}

static void copy_operand(tl_compaction *c, uint32_t operand)
{
    c->to->operands.items[c->to->operands.len++] =
        c->value[c->from->operands.items[operand]];
}

/* Regions of a node get their numbers when the first of them begins. */
static void number_regions(tl_compaction *c, uint32_t region)
{
    const tl_gnode *n = owner_of(c, region);

    for (uint32_t k = 0; k < n->nregions && region == n->region; k++) {
        c->region[n->region + k] = (uint32_t)c->to->regions.len++;
    }
}

static tl_status copy_open(tl_compaction *c, uint32_t region)
{
    const tl_gregion *r = &c->from->regions.items[region];
    uint32_t first = (uint32_t)c->to->values.len, n = 0;
    tl_gregion *to;

    number_regions(c, region);
    for (uint32_t k = 0; k < r->nparams; k++) {
        if (tl_compact_keeps_param(c, owner_of(c, region), region, k)) {
            TL_TRY(copy_value(c, r->params + k, n++, 0));
        }
    }
    to = &c->to->regions.items[c->region[region]];
    *to = (tl_gregion){.params = n > 0 ? first : 0, .nparams = n};
    return TL_OK;
}

static void copy_close(tl_compaction *c, uint32_t region)
{
    const tl_gregion *r = &c->from->regions.items[region];
    tl_gregion *to = &c->to->regions.items[c->region[region]];
    uint32_t first = (uint32_t)c->to->operands.len;

    for (uint32_t k = 0; k < r->nresults; k++) {
        if (tl_compact_keeps_result(c, owner_of(c, region), region, k)) {
            copy_operand(c, r->results + k);
        }
    }
    to->nresults = (uint32_t)c->to->operands.len - first;
    to->results = to->nresults > 0 ? first : 0;
}

static void copy_operands(tl_compaction *c, const tl_gnode *from, tl_gnode *n)
{
    n->in = (uint32_t)c->to->operands.len;
    for (uint32_t k = 0; k < from->nin; k++) {
        if (tl_compact_keeps_in(c, from, k)) {
            copy_operand(c, from->in + k);
        }
    }
    n->nin = (uint32_t)c->to->operands.len - n->in;
    n->in = n->nin > 0 ? n->in : 0;
    n->data = n->kind == TL_G_LOOP ? n->nin - 1 : n->data;
}

static tl_status copy_results(tl_compaction *c, const tl_gnode *from,
                              tl_gnode *n)
{
    uint32_t first = (uint32_t)c->to->values.len;

    n->nout = 0;
    for (uint32_t k = 0; k < from->nout; k++) {
        if (tl_compact_keeps_out(c, from, k)) {
            TL_TRY(copy_value(c, from->out + k, n->nout++,
                              (uint32_t)c->to->nodes.len));
        }
    }
    n->out = n->nout > 0 ? first : 0;
    return TL_OK;
}

static tl_status copy_node(tl_compaction *c, uint32_t node)
{
    const tl_gnode *from = &c->from->nodes.items[node];
    tl_gnode n = *from;

    n.flags &= (uint8_t)~TL_GF_LOCAL;
    TL_TRY(map_attrs(c, n.attrs, &n.attrs));
    TL_TRY(map_data(c, &n, &n.data));
    copy_operands(c, from, &n);
    TL_TRY(copy_results(c, from, &n));
    for (uint32_t k = 0; k < n.nregions; k++) {
        c->to->regions.items[c->region[n.region + k]].node =
            (uint32_t)c->to->nodes.len;
    }
    n.region = n.nregions > 0 ? c->region[n.region] : 0;
    n.owner = n.owner != 0 ? c->region[n.owner] : 0;
    (void)TL_GPUT(&c->to->nodes, &n, 1);
    return TL_OK;
}

static void visit_open(void *arg, uint32_t region)
{
    tl_compaction *c = arg;

    if (c->st == TL_OK && !dead_region(c, region)) {
        c->st = copy_open(c, region);
    }
}

static void visit_node(void *arg, uint32_t node)
{
    tl_compaction *c = arg;

    if (c->st == TL_OK && c->live[node]) {
        c->st = copy_node(c, node);
    }
}

static void visit_close(void *arg, uint32_t region)
{
    tl_compaction *c = arg;

    if (c->st == TL_OK && !dead_region(c, region)) {
        copy_close(c, region);
    }
}

/* ---- the whole ---------------------------------------------------------- */

static tl_status copy_ends(tl_compaction *c)
{
    const tl_graph *g = c->from;
    tl_graph *h = c->to;

    TL_TRY(TL_GROOM(&h->inputs, g->inputs.len, c->diag));
    TL_TRY(TL_GROOM(&h->outputs, g->outputs.len, c->diag));
    TL_TRY(TL_GROOM(&h->guards, g->guards.len, c->diag));
    for (size_t k = 0; k < g->inputs.len; k++) {
        h->inputs.items[h->inputs.len++] = c->value[g->inputs.items[k]];
    }
    for (size_t k = 0; k < g->outputs.len; k++) {
        h->outputs.items[h->outputs.len++] = c->value[g->outputs.items[k]];
    }
    for (size_t k = 0; k < g->guards.len; k++) {
        tl_gguard guard = g->guards.items[k];

        guard.value = c->value[guard.value];
        h->guards.items[h->guards.len++] = guard;
    }
    return TL_OK;
}

/* Room for all that could come, so that appending needs no checks. */
static tl_status reserve(tl_compaction *c)
{
    const tl_graph *g = c->from;
    tl_graph *h = c->to;

    TL_TRY(TL_GROOM(&h->nodes, g->nodes.len, c->diag));
    TL_TRY(TL_GROOM(&h->values, g->values.len, c->diag));
    TL_TRY(TL_GROOM(&h->operands, g->operands.len, c->diag));
    return TL_GROOM(&h->regions, g->regions.len, c->diag);
}

static tl_status rebuild(tl_compaction *c)
{
    tl_gvisit number = {number_region, number_node, NULL, c};
    tl_gvisit copy = {visit_open, visit_node, visit_close, c};

    tl_compact_mark(c);
    TL_TRY(tl_graph_init(c->to, c->diag));
    TL_TRY(reserve(c));
    tl_graph_visit(c->from, &number);
    TL_TRY(copy_atoms(c));
    tl_graph_visit(c->from, &copy);
    TL_TRY(c->st);
    TL_TRY(copy_ends(c));
    tl_graph_set_ranges(c->to);
    return TL_OK;
}

static uint32_t *take(uint32_t **words, size_t n)
{
    uint32_t *p = *words;

    *words += n;
    return p;
}

/* All arrays of numbers, in one block. */
static uint32_t *cut_words(tl_compaction *c)
{
    const tl_graph *g = c->from;
    size_t n = g->values.len + g->regions.len + g->dims.len + g->atoms.len +
               g->attrs.len + g->consts.len + g->reports.len + g->sizes.len +
               g->values.len +
               3 * TL_MAX_RANK;
    uint32_t *words = tl_calloc(n, sizeof(*words)), *at = words;

    if (!words) {
        return NULL;
    }
    c->value = take(&at, g->values.len);
    c->param = take(&at, g->values.len);
    c->region = take(&at, g->regions.len);
    c->size = take(&at, g->dims.len);
    c->atom = take(&at, g->atoms.len);
    c->attrs = take(&at, g->attrs.len);
    c->constant = take(&at, g->consts.len);
    c->report = take(&at, g->reports.len);
    c->shape = take(&at, g->sizes.len);
    c->numbers = take(&at, 3 * TL_MAX_RANK);
    return words;
}

static uint8_t *cut_bytes(tl_compaction *c)
{
    const tl_graph *g = c->from;
    uint8_t *bytes = tl_calloc(g->nodes.len + g->dims.len + g->atoms.len +
                                   g->sizes.len + g->values.len,
                               1);

    if (bytes == NULL) {
        return NULL;
    }
    c->live = bytes;
    c->size_live = bytes + g->nodes.len;
    c->atom_live = c->size_live + g->dims.len;
    c->rank = c->atom_live + g->atoms.len;
    c->value_live = c->rank + g->sizes.len;
    return bytes;
}

tl_status tl_graph_compact(tl_graph *g, size_t *dropped, tl_diag *diag)
{
    tl_graph fresh;
    tl_compaction c = {.from = g, .to = &fresh, .st = TL_OK, .diag = diag};
    uint32_t *words = cut_words(&c);
    uint8_t *bytes = words ? cut_bytes(&c) : NULL;
    tl_status st;

    memset(&fresh, 0, sizeof(fresh));
    c.code = bytes ? tl_calloc(TL_DC_MAX_WORDS, sizeof(*c.code)) : NULL;
    st = c.code ? rebuild(&c)
                : tl_fail_memory(diag, "a pass",
                                 g->values.len * sizeof(*words));
    tl_free(words);
    tl_free(bytes);
    tl_free(c.code);
    if (st != TL_OK) {
        tl_graph_fini(&fresh);
        return st;
    }
    if (dropped) {
        *dropped = g->nodes.len - fresh.nodes.len;
    }
    tl_graph_fini(g);
    *g = fresh;
    return TL_OK;
}
