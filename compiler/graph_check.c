/* graph_check.c - are all invariants of a graph kept?
 *
 * First that every number refers to an item and that regions nest, so that
 * the rest can follow them; then, in the order of the text, that operands are
 * made before and seen where they are used; types are in graph_types.c. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "compiler/graph_check_impl.h"
#include "runtime/base/mem.h"
#include "runtime/op/dim_code.h"

tl_status tl_graph_bad(tl_gcheck *c, const char *fmt, ...)
{
    char text[160];
    uint8_t kind;
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    if (c->node == 0) {
        return tl_fail(c->diag, TL_E0699, "broken graph: %s", text);
    }
    kind = c->g->nodes.items[c->node].kind;
    return tl_fail(c->diag, TL_E0699, "broken graph: node %u (%s): %s",
                   c->node,
                   kind > TL_G_OP && kind < TL_G_KIND_COUNT
                       ? tl_gkind_name((tl_gkind)kind)
                       : "operation",
                   text);
}

/* ---- numbers ------------------------------------------------------------ */

/* Are items first .. first + n - 1 among `len`?  Item 0 is none. */
static bool in_range(uint32_t first, uint64_t n, size_t len)
{
    return n == 0 ? true : first > 0 && first + n <= len;
}

static tl_status check_sizes(tl_gcheck *c, uint32_t first, uint32_t n)
{
    if (!in_range(first, n, c->g->sizes.len)) {
        return TL_GBAD(c, "sizes %u of %u", first, n);
    }
    for (uint32_t k = 0; k < n; k++) {
        uint32_t s = c->g->sizes.items[first + k];

        if (!in_range(s, 1, c->g->dims.len)) {
            return TL_GBAD(c, "no size %u", s);
        }
    }
    return TL_OK;
}

static tl_status check_value(tl_gcheck *c, tl_gval v)
{
    const tl_gvalue *x = &c->g->values.items[v];

    if (x->cls > TL_GC_BOOL || x->dtype >= TL_DTYPE_COUNT ||
        x->rank > TL_MAX_RANK) {
        return TL_GBAD(c, "value %u has no type", v);
    }
    if (x->cls != TL_GC_TENSOR && (x->dtype || x->rank || x->shape)) {
        return TL_GBAD(c, "value %u is a host scalar with sizes", v);
    }
    return check_sizes(c, x->shape, x->rank);
}

/* Values first .. that belong to the node, or to a region's parameters. */
static tl_status check_made(tl_gcheck *c, tl_gval first, uint32_t n,
                            uint32_t node, uint32_t region)
{
    if (!in_range(first, n, c->g->values.len)) {
        return TL_GBAD(c, "values %u of %u", first, n);
    }
    for (uint32_t k = 0; k < n; k++) {
        const tl_gvalue *x = &c->g->values.items[first + k];

        if (x->node != node || x->result != k ||
            c->region[first + k] != UINT32_MAX) {
            return TL_GBAD(c, "value %u is not its result", first + k);
        }
        c->region[first + k] = region;
        TL_TRY(check_value(c, first + k));
    }
    return TL_OK;
}

static tl_status check_attrs(tl_gcheck *c, uint32_t attrs)
{
    const tl_gattrs *at = &c->g->attrs.items[attrs];

    if (attrs >= c->g->attrs.len || at->dtype >= TL_DTYPE_COUNT ||
        at->keep > 1 || at->flag > 1 || at->ndims > 3 * TL_MAX_RANK ||
        !in_range(at->binds, at->nbinds, c->g->binds.len)) {
        return TL_GBAD(c, "attributes %u", attrs);
    }
    for (uint32_t k = 0; k < at->nbinds; k++) {
        const tl_gbind *b = &c->g->binds.items[at->binds + k];
        bool known = (b->field == 'i' && b->index < 4) ||
                     (b->field == 'f' && b->index < 6);

        if (!known || b->pad != 0 || !in_range(b->value, 1, c->g->values.len)) {
            return TL_GBAD(c, "attributes %u bind what is not there", attrs);
        }
    }
    return check_sizes(c, at->dims, at->ndims);
}

static tl_status check_region(tl_gcheck *c, uint32_t region)
{
    const tl_gregion *r = &c->g->regions.items[region];
    const tl_gnode *n = &c->g->nodes.items[r->node];

    if (!in_range(r->node, 1, c->g->nodes.len) || region < n->region ||
        region - n->region >= n->nregions) {
        return TL_GBAD(c, "region %u has no node", region);
    }
    if (!in_range(r->results, r->nresults, c->g->operands.len)) {
        return TL_GBAD(c, "results of region %u", region);
    }
    return check_made(c, r->params, r->nparams, 0, region);
}

static tl_status check_node(tl_gcheck *c, const tl_gnode *n)
{
    size_t ops = n->kind == TL_G_HOST ? TL_H_COUNT : TL_OP_COUNT;

    if (n->kind == TL_G_NONE || n->kind >= TL_G_KIND_COUNT || n->op >= ops ||
        !in_range(n->in, n->nin, c->g->operands.len) ||
        !in_range(n->region, n->nregions, c->g->regions.len) ||
        n->owner >= c->g->regions.len) {
        return TL_GBAD(c, "a number out of range");
    }
    for (uint32_t k = 0; k < n->nregions; k++) {
        if (c->g->regions.items[n->region + k].node != c->node) {
            return TL_GBAD(c, "region %u is another's", n->region + k);
        }
    }
    TL_TRY(check_attrs(c, n->attrs));
    return check_made(c, n->out, n->nout, c->node, n->owner);
}

static tl_status check_items(tl_gcheck *c)
{
    const tl_graph *g = c->g;

    for (uint32_t s = 1; s < g->dims.len; s++) {
        const tl_gsize *d = &g->dims.items[s];

        if ((uint64_t)d->code + d->len > g->code.len ||
            !tl_dim_code_valid(&g->code.items[d->code], d->len,
                               g->atoms.len)) {
            return TL_GBAD(c, "size %u", s);
        }
    }
    for (c->node = 1; c->node < g->nodes.len; c->node++) {
        TL_TRY(check_node(c, &g->nodes.items[c->node]));
    }
    c->node = 0;
    for (uint32_t r = 1; r < g->regions.len; r++) {
        TL_TRY(check_region(c, r));
    }
    return TL_OK;
}

/* ---- nesting ------------------------------------------------------------ */

/* Regions of a node stand side by side before it, and around[i] becomes the
 * innermost one in which node i stands: wide ranges are written first. */
static tl_status check_nesting(tl_gcheck *c, uint32_t *around)
{
    const tl_graph *g = c->g;

    for (c->node = (uint32_t)g->nodes.len - 1; c->node > 0; c->node--) {
        const tl_gnode *n = &g->nodes.items[c->node];
        uint32_t end = c->node;

        if (around[c->node] != n->owner) {
            return TL_GBAD(c, "stands in region %u and belongs to %u",
                           around[c->node], n->owner);
        }
        for (uint32_t k = n->nregions; k-- > 0;) {
            const tl_gregion *r = &g->regions.items[n->region + k];

            if (r->last != end || r->first == 0 || r->first > r->last) {
                return TL_GBAD(c, "region %u is not before it",
                               n->region + k);
            }
            for (uint32_t i = r->first; i < r->last; i++) {
                if (around[i] != n->owner) {
                    return TL_GBAD(c, "regions overlap");
                }
                around[i] = n->region + k;
            }
            end = r->first;
        }
    }
    return TL_OK;
}

/* ---- uses --------------------------------------------------------------- */

static tl_status check_use(tl_gcheck *c, tl_gval v)
{
    if (v >= c->g->values.len || !c->visible[v]) {
        return TL_GBAD(c, "value %u is not visible here", v);
    }
    return TL_OK;
}

static void set_visible(tl_gcheck *c, tl_gval first, uint32_t n, uint8_t yes)
{
    memset(&c->visible[first], yes, n);
}

/* May this operand be none? */
static bool may_be_none(const tl_gnode *n, uint32_t k)
{
    return n->kind == TL_G_MAPGRAD || (n->kind == TL_G_LOOP && k == 0);
}

static tl_status check_uses(tl_gcheck *c, const tl_gnode *n)
{
    const tl_gattrs *at = &c->g->attrs.items[n->attrs];

    for (uint32_t k = 0; k < n->nin; k++) {
        tl_gval v = tl_goperand(c->g, n, k);

        if (v != 0 || !may_be_none(n, k)) {
            TL_TRY(check_use(c, v));
        }
    }
    for (uint32_t k = 0; k < at->nbinds; k++) {
        tl_gval v = c->g->binds.items[at->binds + k].value;

        TL_TRY(check_use(c, v));
        if (c->g->values.items[v].cls == TL_GC_TENSOR) {
            return TL_GBAD(c, "an attribute is bound to a tensor");
        }
    }
    return TL_OK;
}

/* The results are seen from inside; then its own values are not any more. */
static tl_status leave_region(tl_gcheck *c, const tl_gregion *r)
{
    for (uint32_t k = 0; k < r->nresults; k++) {
        TL_TRY(check_use(c, c->g->operands.items[r->results + k]));
    }
    for (uint32_t i = r->first; i < r->last; i++) {
        const tl_gnode *n = &c->g->nodes.items[i];

        set_visible(c, n->out, n->nout, 0);
    }
    set_visible(c, r->params, r->nparams, 0);
    return TL_OK;
}

static tl_status check_flow(tl_gcheck *c, uint32_t owner, uint32_t first,
                            uint32_t last);

/* Nodes of the region `owner`: each after its regions. */
static tl_status check_one(tl_gcheck *c, uint32_t i)
{
    const tl_gnode *n = &c->g->nodes.items[i];

    for (uint32_t k = 0; k < n->nregions; k++) {
        const tl_gregion *r = &c->g->regions.items[n->region + k];

        set_visible(c, r->params, r->nparams, 1);
        TL_TRY(check_flow(c, n->region + k, r->first, r->last));
        c->node = i;
        TL_TRY(leave_region(c, r));
    }
    c->node = i;
    TL_TRY(check_uses(c, n));
    TL_TRY(tl_graph_check_types(c, n));
    set_visible(c, n->out, n->nout, 1);
    return TL_OK;
}

static tl_status check_flow(tl_gcheck *c, uint32_t owner, uint32_t first,
                            uint32_t last)
{
    while (first < last) {
        uint32_t i = first;

        while (c->g->nodes.items[i].owner != owner) {
            i = c->g->regions.items[c->g->nodes.items[i].owner].node;
        }
        TL_TRY(check_one(c, i));
        first = i + 1;
    }
    return TL_OK;
}

/* Is it a result of a node or a parameter of a region? */
static bool is_made(const tl_gcheck *c, tl_gval v)
{
    return v > 0 && v < c->g->values.len && c->region[v] != UINT32_MAX;
}

/* ---- inputs, outputs, guards, atoms ------------------------------------- */

static tl_status check_atoms(tl_gcheck *c)
{
    const tl_graph *g = c->g;

    for (size_t k = 0; k < g->atoms.len; k++) {
        const tl_gatom *a = &g->atoms.items[k];
        bool ok;

        if (a->kind == TL_GA_SIZE) {
            const tl_gvalue *v =
                a->index < g->inputs.len
                    ? &g->values.items[g->inputs.items[a->index]]
                    : NULL;

            ok = v && v->cls == TL_GC_TENSOR && a->axis < v->rank;
        } else {
            ok = a->kind == TL_GA_INT && a->axis == 0 &&
                 is_made(c, a->index) &&
                 g->values.items[a->index].cls == TL_GC_INT;
        }
        if (!ok) {
            return TL_GBAD(c, "atom s%zu", k);
        }
    }
    return TL_OK;
}

static tl_status check_inputs(tl_gcheck *c)
{
    const tl_graph *g = c->g;

    for (size_t k = 0; k < g->inputs.len; k++) {
        tl_gval v = g->inputs.items[k];

        if (!is_made(c, v) || c->region[v] != 0 ||
            tl_gnode_of(g, v)->kind != TL_G_INPUT ||
            tl_gnode_of(g, v)->data != k) {
            return TL_GBAD(c, "input %zu", k);
        }
    }
    return TL_OK;
}

static tl_status check_ends(tl_gcheck *c)
{
    const tl_graph *g = c->g;

    c->node = 0;
    for (size_t k = 0; k < g->outputs.len; k++) {
        TL_TRY(check_use(c, g->outputs.items[k]));
    }
    for (size_t k = 0; k < g->guards.len; k++) {
        tl_gval v = g->guards.items[k].value;

        TL_TRY(check_use(c, v));
        if (g->values.items[v].cls == TL_GC_TENSOR) {
            return TL_GBAD(c, "a guard on a tensor");
        }
    }
    return TL_OK;
}

/* ---- facts -------------------------------------------------------------- */

/* The size that a SIZE node gives; false: another node. */
static bool size_of_value(const tl_gcheck *c, tl_gval v, tl_dim *out)
{
    const tl_gnode *n = tl_gnode_of(c->g, v);

    if (n->kind != TL_G_SIZE || c->g->attrs.items[n->attrs].ndims != 1) {
        return false;
    }
    *out = c->dim[c->g->sizes.items[c->g->attrs.items[n->attrs].dims]];
    return true;
}

/* Guards that two sizes are equal are facts. */
static tl_status take_facts(tl_gcheck *c)
{
    for (size_t k = 0; k < c->g->guards.len; k++) {
        tl_gval v = c->g->guards.items[k].value;
        const tl_gnode *n;
        tl_dim a, b;

        if (!is_made(c, v)) {
            return TL_GBAD(c, "guard %zu", k);
        }
        n = tl_gnode_of(c->g, v);
        if (n->kind == TL_G_HOST && n->op == TL_H_eq_i && n->nin == 2 &&
            c->g->guards.items[k].expected.b &&
            is_made(c, tl_goperand(c->g, n, 0)) &&
            is_made(c, tl_goperand(c->g, n, 1)) &&
            size_of_value(c, tl_goperand(c->g, n, 0), &a) &&
            size_of_value(c, tl_goperand(c->g, n, 1), &b)) {
            tl_status st = tl_dims_fact_equal(c->dims, a, b, &c->quiet);

            if (st == TL_ERR_MEMORY) {
                return tl_fail_memory(c->diag, "a check", 0);
            }
        }
    }
    return TL_OK;
}

/* Sizes as polynomials; one that overflows is something unknown. */
static tl_status decode_sizes(tl_gcheck *c)
{
    const tl_graph *g = c->g;
    char name[16];

    for (uint32_t k = 0; k < g->atoms.len; k++) {
        (void)snprintf(name, sizeof(name), "s%u", k);
        TL_TRY(tl_dim_atom(c->dims, name, 0, &c->atoms[k], c->diag));
    }
    for (uint32_t s = 1; s < g->dims.len; s++) {
        const tl_gsize *d = &g->dims.items[s];
        tl_status st = tl_dim_decode(c->dims, &g->code.items[d->code], d->len,
                                     c->atoms, &c->dim[s], &c->quiet);

        if (st == TL_ERR_MEMORY) {
            return tl_fail_memory(c->diag, "a check", 0);
        }
        if (st != TL_OK) {
            TL_TRY(tl_dim_fresh(c->dims, "a size", &c->dim[s], c->diag));
        }
    }
    return TL_OK;
}

/* ---- the whole ---------------------------------------------------------- */

static tl_status check_all(tl_gcheck *c)
{
    const tl_graph *g = c->g;
    uint32_t *around;
    tl_status st;

    memset(c->region, 0xff, g->values.len * sizeof(*c->region));
    TL_TRY(check_items(c));
    around = tl_calloc(g->nodes.len, sizeof(*around));
    if (!around) {
        return tl_fail_memory(c->diag, "a check",
                              g->nodes.len * sizeof(*around));
    }
    st = check_nesting(c, around);
    tl_free(around);
    TL_TRY(st);
    c->node = 0;
    TL_TRY(check_inputs(c));
    TL_TRY(check_atoms(c));
    TL_TRY(tl_dims_new(&c->dims, c->diag));
    TL_TRY(decode_sizes(c));
    TL_TRY(take_facts(c));
    TL_TRY(check_flow(c, 0, 1, (uint32_t)g->nodes.len));
    return check_ends(c);
}

tl_status tl_graph_check_at(const tl_graph *g, uint32_t *node, tl_diag *diag)
{
    tl_gcheck c = {.g = g, .diag = diag};
    tl_status st;

    tl_diag_init(&c.quiet, NULL);
    c.quiet.muted = true;
    c.region = tl_calloc(g->values.len, sizeof(*c.region));
    c.visible = tl_calloc(g->values.len, 1);
    c.dim = tl_calloc(g->dims.len, sizeof(*c.dim));
    c.atoms = tl_calloc(g->atoms.len + 1, sizeof(*c.atoms));
    st = c.region && c.visible && c.dim && c.atoms
             ? check_all(&c)
             : tl_fail_memory(diag, "a check",
                              g->values.len * sizeof(*c.region));
    *node = c.node;
    tl_dims_free(c.dims);
    tl_free(c.region);
    tl_free(c.visible);
    tl_free(c.dim);
    tl_free(c.atoms);
    tl_diag_fini(&c.quiet);
    return st;
}

tl_status tl_graph_check(const tl_graph *g, tl_diag *diag)
{
    uint32_t node;

    return tl_graph_check_at(g, &node, diag);
}
