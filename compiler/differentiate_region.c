/* differentiate_region.c - gradients through branches and loops.
 *
 * The gradient of an IF is an IF on the same condition, that of a LOOP a LOOP
 * of as many turns, from the last to the first.  Their regions hold a copy of
 * the forward region, computed anew from what the forward loop has stacked,
 * and the reverse pass over it.
 *
 * Sums keep their order: a value that a region reads goes in with the gradient
 * that has reached it so far, or -0.0, to which anything adds up to itself
 * (LANGUAGE.md 9l). */
#include <string.h>

#include "compiler/build.h"
#include "runtime/base/mem.h"
#include "runtime/base/vec.h"

typedef TL_GARRAY(tl_gval) vals;

/* ---- copies ------------------------------------------------------------- */

/* A copy of a region's nodes into the region that is open. */
typedef struct copying {
    tl_gbuild *b;
    tl_gval *map;  /* by value: its copy; 0: itself */
    size_t len;
    uint64_t bit;  /* of the block: what it does not see stays unseen */
    tl_dim from[64], to[64]; /* atoms of parameters */
    int natoms;
} copying;

static tl_gval mapped(const copying *c, tl_gval v)
{
    const tl_gbuild *b = c->b;

    tl_gval at = v;

    while (at < c->len && c->map[at] == 0 && b->values.items[at].leaf) {
        at = tl_goperand(b->g, tl_gnode_of(b->g, at), 0);
    }
    return at < c->len && c->map[at] != 0 ? c->map[at] : v;
}

static tl_status map_dim(const copying *c, tl_dim d, tl_dim *out)
{
    if (tl_dim_is_num(d) || c->natoms == 0) {
        *out = d;
        return TL_OK;
    }
    return tl_dim_replace(c->b->dims, d, c->from, c->to, c->natoms, out,
                          c->b->diag);
}

/* The atom of host int `v` of the original, if it has one, becomes `to`. */
static tl_status map_atom(copying *c, tl_gval v, tl_dim to)
{
    tl_gbuild *b = c->b;

    for (size_t i = 0; i < b->atoms.len; i++) {
        const tl_gatom *a = &b->g->atoms.items[i];

        if (a->kind != TL_GA_INT || a->index != v ||
            tl_dim_is_num(b->atoms.items[i])) {
            continue;
        }
        if (c->natoms == (int)(sizeof(c->from) / sizeof(c->from[0]))) {
            return tl_fail(b->diag, TL_E0602, "too many numbers vary in a "
                                              "loop under grad");
        }
        c->from[c->natoms] = b->atoms.items[i];
        c->to[c->natoms++] = to;
    }
    return TL_OK;
}

/* The copy of a host int that sizes of the original may contain. */
static tl_status map_int(copying *c, tl_gval v, tl_gval copy)
{
    tl_gbuild *b = c->b;
    tl_gatom atom = {.kind = TL_GA_INT, .index = copy};
    tl_dim d;

    for (size_t i = 0; i < b->atoms.len; i++) {
        const tl_gatom *a = &b->g->atoms.items[i];

        if (a->kind == TL_GA_INT && a->index == v) {
            TL_TRY(tl_gbuild_atom(b, atom, -((int64_t)1 << 40),
                                  b->hints.items[i], &d));
            return map_atom(c, v, d);
        }
    }
    return TL_OK;
}

static tl_status map_type(const copying *c, const tl_ttype *type,
                          tl_ttype *out)
{
    out->dtype = type->dtype;
    out->shape.rank = type->shape.rank;
    for (int i = 0; i < type->shape.rank; i++) {
        TL_TRY(map_dim(c, type->shape.dim[i], &out->shape.dim[i]));
    }
    return TL_OK;
}

/* A draw of the copy has the key of the original. */
static void map_draw(const copying *c, uint32_t node, tl_attrs *at)
{
    bool random = (c->b->g->nodes.items[node].flags & TL_GF_RANDOM) != 0;
    tl_rng_key key = tl_attrs_key(at);

    if (random && key.stream == TL_GBUILD_STREAM) {
        key.seed = mapped(c, (tl_gval)key.seed);
        key.draw = mapped(c, (tl_gval)key.draw);
        tl_attrs_set_key(at, &key);
    }
}

static tl_status kept_attrs(const copying *c, uint32_t node, tl_attrs *at,
                            bool *any)
{
    const tl_attrs *kept = node < c->b->attrs.len ? c->b->attrs.items[node]
                                                  : NULL;

    *any = kept != NULL;
    if (kept) {
        tl_attrs_copy(at, kept);
        map_draw(c, node, at);
        for (int i = 0; i < at->ndims; i++) {
            TL_TRY(map_dim(c, at->dims[i], &at->dims[i]));
        }
    }
    return TL_OK;
}

static tl_status copy_region(copying *c, uint32_t region);

/* A node as it is, with its operands mapped. */
static tl_status copy_plain(copying *c, uint32_t node, const tl_gval *in)
{
    tl_gbuild *b = c->b;
    tl_gnode n = b->g->nodes.items[node];
    tl_gvalue value[TL_MAX_OUTPUTS];
    tl_gnew add = {.kind = (tl_gkind)n.kind, .op = n.op, .which = n.which,
                   .flags = n.flags, .in = in, .nin = n.nin, .nout = n.nout,
                   .out = value, .attrs = n.attrs, .data = n.data,
                   .owner = b->owner, .span = n.span};
    tl_ttype types[TL_MAX_OUTPUTS];
    tl_gval first;

    for (uint32_t k = 0; k < n.nout; k++) {
        value[k] = b->g->values.items[n.out + k];
        if (value[k].cls == TL_GC_TENSOR) {
            TL_TRY(map_type(c, tl_gbuild_type(b, n.out + k), &types[k]));
            TL_TRY(tl_gbuild_value(b, &types[k], &value[k]));
        }
    }
    TL_TRY(tl_gbuild_keep_attrs(b, NULL));
    TL_TRY(tl_graph_add(b->g, &add, &first, b->diag));
    for (uint32_t k = 0; k < n.nout; k++) {
        bool tensor = value[k].cls == TL_GC_TENSOR;

        TL_TRY(tl_gbuild_note(b, first + k, tensor ? &types[k] : NULL, 0));
        b->values.items[first + k].late = b->values.items[n.out + k].late;
        c->map[n.out + k] = first + k;
        if (value[k].cls == TL_GC_INT) {
            TL_TRY(map_int(c, n.out + k, first + k));
        }
    }
    return TL_OK;
}

static tl_status copy_op(copying *c, uint32_t node, const tl_gval *in)
{
    tl_gbuild *b = c->b;
    tl_gnode n = b->g->nodes.items[node];
    tl_gval out[TL_MAX_OUTPUTS];
    tl_attrs at;
    bool any;

    TL_TRY(kept_attrs(c, node, &at, &any));
    TL_TRY(tl_gbuild_apply(b, (tl_op)n.op, in, (int)n.nin, any ? &at : NULL,
                           out));
    for (uint32_t k = 0; k < n.nout; k++) {
        c->map[n.out + k] = out[k];
    }
    return TL_OK;
}

/* Room for what opening a region takes. */
typedef struct room {
    const tl_ttype **types;
    tl_ttype *made;
    tl_gclass *cls;
    tl_gval *res;
} room;

static void room_fini(room *r)
{
    tl_free(r->types);
    tl_free(r->made);
    tl_free(r->cls);
    tl_free(r->res);
}

static tl_status room_init(room *r, const tl_gregion *g, tl_diag *diag)
{
    *r = (room){tl_calloc(g->nparams + 1, sizeof(*r->types)),
                tl_calloc(g->nparams + 1, sizeof(*r->made)),
                tl_calloc(g->nparams + 1, sizeof(*r->cls)),
                tl_calloc(g->nresults + 1, sizeof(*r->res))};
    return r->types && r->made && r->cls && r->res
               ? TL_OK
               : tl_fail_memory(diag, "a region",
                                (g->nparams + 1) * sizeof(*r->made));
}

/* The parameters of the copy stand for those of the original. */
static tl_status map_params(copying *c, const tl_gregion *r, const room *m,
                            tl_gval first)
{
    for (uint32_t i = 0; i < r->nparams; i++) {
        c->map[r->params + i] = first + i;
        if (m->cls[i] == TL_GC_INT) {
            TL_TRY(map_int(c, r->params + i, first + i));
        }
    }
    return TL_OK;
}

/* A region of a branch or loop inside. */
static tl_status copy_inner(copying *c, uint32_t number, uint32_t *made)
{
    tl_gbuild *b = c->b;
    tl_gregion r = b->g->regions.items[number];
    uint32_t around = b->owner;
    tl_gval first;
    room m;
    tl_status st = room_init(&m, &r, b->diag);

    TL_GOTO(st, st);
    for (uint32_t i = 0; i < r.nparams; i++) {
        m.cls[i] = (tl_gclass)b->g->values.items[r.params + i].cls;
        if (m.cls[i] == TL_GC_TENSOR) {
            TL_GOTO(st, map_type(c, tl_gbuild_type(b, r.params + i),
                                 &m.made[i]));
            m.types[i] = &m.made[i];
        }
    }
    TL_GOTO(st, tl_gbuild_region_open(b, m.types, m.cls, r.nparams, made,
                                      &first));
    TL_GOTO(st, map_params(c, &r, &m, first));
    TL_GOTO(st, copy_region(c, number));
    for (uint32_t i = 0; i < r.nresults; i++) {
        m.res[i] = mapped(c, b->g->operands.items[r.results + i]);
    }
    TL_GOTO(st, tl_gbuild_region_close(b, *made, around));
    st = tl_gbuild_region_results(b, *made, m.res, r.nresults);
out:
    room_fini(&m);
    return st;
}

/* Values that have the types of the copy's results. */
static void like_results(const copying *c, const tl_gnode *n,
                         const tl_gval *in, uint32_t carried, tl_gval *like)
{
    const tl_graph *g = c->b->g;
    const tl_gregion *r = &g->regions.items[n->region];

    for (uint32_t k = 0; k < carried; k++) {
        like[k] = n->kind == TL_G_LOOP
                      ? in[1 + k]
                      : mapped(c, g->operands.items[r->results + k]);
    }
}

/* What a loop inside has stacked, in the copy `body` of its body: the results
 * after those that are carried.  *turns is the length of the stacks; *own: it
 * is the count of the loop itself. */
static tl_status copy_stacks(copying *c, const tl_gnode *n,
                             const tl_gregion *body, uint32_t carried,
                             tl_gval *stacked, tl_dim *turns, bool *own)
{
    tl_gbuild *b = c->b;
    const tl_graph *g = b->g;
    const tl_ttype *stack = tl_gbuild_type(b, n->out + 1 + carried);
    tl_dim length = stack->shape.dim[0];
    uintptr_t atom =
        (uintptr_t)tl_map_get(&b->numbers, (void *)length.word, NULL);

    for (uint32_t k = 0; k < n->nout - 1 - carried; k++) {
        stacked[k] = g->operands.items[body->results + carried + k];
    }
    *own = atom != 0 && g->atoms.items[atom - 1].kind == TL_GA_INT &&
           g->atoms.items[atom - 1].index == n->out;
    return *own ? TL_OK : map_dim(c, length, turns);
}

/* A branch or loop inside, with its regions. */
static tl_status copy_flow(copying *c, uint32_t node, const tl_gval *in)
{
    tl_gbuild *b = c->b;
    tl_gnode n = b->g->nodes.items[node];
    uint32_t first = 0, made = 0;
    uint32_t carried = n.kind == TL_G_LOOP ? n.data : n.nout;
    uint32_t nstacked = n.kind == TL_G_LOOP ? n.nout - 1 - carried : 0;
    tl_gval *like = tl_calloc(3 * ((size_t)n.nout + 1), sizeof(*like));
    tl_gval *out = like + n.nout + 1, *stacked = out + n.nout + 1;
    bool own = false;
    tl_dim turns = tl_dim_num(0);
    tl_status st = TL_OK;

    if (!like) {
        return tl_fail_memory(b->diag, "a region", n.nout * sizeof(*like));
    }
    for (uint32_t k = 0; k < n.nregions; k++) {
        TL_GOTO(st, copy_inner(c, b->g->nodes.items[node].region + k, &made));
        first = k == 0 ? made : first;
    }
    like_results(c, &b->g->nodes.items[node], in, carried, like);
    if (nstacked > 0) {
        TL_GOTO(st, copy_stacks(c, &n, &b->g->regions.items[made], carried,
                                stacked, &turns, &own));
    }
    TL_GOTO(st, tl_gbuild_flow(b,
                               &(tl_gflow){.kind = (tl_gkind)n.kind,
                                           .region = first,
                                           .nregions = n.nregions, .in = in,
                                           .nin = n.nin, .like = like,
                                           .n = carried, .stacked = stacked,
                                           .nstacked = nstacked,
                                           .turns = own ? NULL : &turns},
                               out));
    for (uint32_t k = 0; k < n.nout && st == TL_OK; k++) {
        c->map[n.out + k] = out[k];
        if (b->g->values.items[n.out + k].cls == TL_GC_INT) {
            st = map_int(c, n.out + k, out[k]);
        }
    }
out:
    tl_free(like);
    return st;
}

/* Does the block see a result?  If not the node was stopped, or ran inside of
 * `no_grad`, or depends on no leaf. */
static bool is_seen(const copying *c, const tl_gnode *n)
{
    for (uint32_t k = 0; k < n->nout; k++) {
        if ((c->b->values.items[n->out + k].seen & c->bit) != 0) {
            return true;
        }
    }
    return false;
}

/* The custom entry whose results begin with node `node`, or NULL. */
static const tl_gcustom *custom_at(const tl_gbuild *b, uint32_t node)
{
    for (size_t i = b->customs.len; i-- > 0;) {
        if (b->customs.items[i].node == node) {
            return &b->customs.items[i];
        }
    }
    return NULL;
}

static tl_gval map_of(const void *ctx, tl_gval v)
{
    return mapped(ctx, v);
}

/* A function with its own gradient keeps it in the copy: its results are
 * aliases, of which the first makes all. */
static tl_status copy_custom(copying *c, const tl_gcustom *entry)
{
    tl_gbuild *b = c->b;
    tl_gcustom e = *entry; /* the array may move */
    tl_gval first = b->g->nodes.items[e.node].out;
    tl_gval in[TL_MAX_INPUTS], v[TL_MAX_OUTPUTS], out[TL_MAX_OUTPUTS];
    void *data;

    if (e.nin > TL_MAX_INPUTS || e.nout > TL_MAX_OUTPUTS) {
        return tl_fail(b->diag, TL_E0602,
                       "a function with its own gradient and %u arguments, "
                       "in a branch or loop under grad", e.nin);
    }
    for (uint32_t i = 0; i < e.nin; i++) {
        in[i] = mapped(c, e.in[i]);
    }
    for (uint32_t k = 0; k < e.nout; k++) {
        const tl_gnode *alias = &b->g->nodes.items[e.node + k];

        v[k] = mapped(c, tl_goperand(b->g, alias, 0));
    }
    TL_TRY(e.ops->copy(e.data, map_of, c, &data));
    TL_TRY(tl_gbuild_custom(b, in, e.nin, v, e.nout, e.ops, data, out));
    for (uint32_t k = 0; k < e.nout; k++) {
        b->values.items[out[k]].lowered = b->values.items[first + k].lowered;
        c->map[first + k] = out[k];
    }
    return TL_OK;
}

static tl_status copy_node(copying *c, uint32_t node)
{
    tl_gbuild *b = c->b;
    tl_gnode n = b->g->nodes.items[node];
    tl_gval *in;
    tl_attrs at;
    bool any;
    tl_status st;

    if ((n.flags & TL_GF_EFFECT) != 0) {
        return TL_OK; /* it has happened */
    }
    in = tl_calloc(n.nin + 1, sizeof(*in));
    if (!in) {
        return tl_fail_memory(b->diag, "operands", n.nin * sizeof(*in));
    }
    for (uint32_t i = 0; i < n.nin; i++) {
        in[i] = mapped(c, tl_goperand(b->g, &n, i));
    }
    b->span = n.span;
    bool hidden = !is_seen(c, &n);

    b->no_grad += hidden;
    switch ((tl_gkind)n.kind) {
    case TL_G_OP:
        st = copy_op(c, node, in);
        break;
    case TL_G_ALIAS:
        st = tl_gbuild_alias(b, in[0], &c->map[n.out]);
        if (st == TL_OK) {
            b->values.items[c->map[n.out]].leaf =
                b->values.items[n.out].leaf;
        }
        break;
    case TL_G_SIZE:
        st = kept_attrs(c, node, &at, &any);
        if (st == TL_OK) {
            st = tl_gbuild_size(b, at.dims[0], &c->map[n.out]);
        }
        break;
    case TL_G_IF:
    case TL_G_LOOP:
        st = copy_flow(c, node, in);
        break;
    default:
        st = copy_plain(c, node, in);
        break;
    }
    b->no_grad -= hidden;
    tl_free(in);
    return st;
}

static tl_status copy_region(copying *c, uint32_t region)
{
    /* Nodes are appended while we copy: only those of before are looked at. */
    uint32_t last = (uint32_t)c->b->g->nodes.len;

    for (uint32_t i = 1; i < last; i++) {
        if (c->b->g->nodes.items[i].owner != region) {
            continue;
        }
        const tl_gcustom *e = c->b->g->nodes.items[i].kind == TL_G_ALIAS
                                  ? custom_at(c->b, i)
                                  : NULL;

        if (e == NULL) {
            TL_TRY(copy_node(c, i));
            continue;
        }
        c->b->span = c->b->g->nodes.items[i].span;
        i += e->nout - 1;
        TL_TRY(copy_custom(c, e));
    }
    return TL_OK;
}

static tl_status copying_init(copying *c, tl_gbuild *b, uint64_t bit)
{
    memset(c, 0, sizeof(*c));
    c->b = b;
    c->bit = bit;
    c->len = b->values.len;
    c->map = tl_calloc(c->len + 1, sizeof(*c->map));
    return c->map ? TL_OK
                  : tl_fail_memory(b->diag, "a copy of a region",
                                   c->len * sizeof(*c->map));
}

/* ---- what a region reads ------------------------------------------------ */

typedef struct gradient {
    tl_gbuild *b;
    uint32_t node;
    uint64_t bit;
    const tl_gval *g; /* by result */
    tl_gval *grad;    /* by value */
    size_t ngrad;
    vals read;        /* float values from outside that the block sees */
    vals start;       /* their gradients so far */
} gradient;

/* Does `region` lie in one of the regions that the node owns? */
static bool within(const tl_graph *g, uint32_t region, uint32_t node)
{
    while (region != 0) {
        if (g->regions.items[region].node == node) {
            return true;
        }
        region = g->nodes.items[g->regions.items[region].node].owner;
    }
    return false;
}

static uint32_t region_of(const tl_graph *g, tl_gval v)
{
    if (g->values.items[v].node != 0) {
        return g->nodes.items[g->values.items[v].node].owner;
    }
    for (uint32_t r = 1; r < g->regions.len; r++) {
        const tl_gregion *region = &g->regions.items[r];

        if (v >= region->params && v < region->params + region->nparams) {
            return r;
        }
    }
    return 0;
}

static tl_status note_read(gradient *d, tl_gval v)
{
    const tl_graph *g = d->b->g;

    v = tl_gbuild_behind_leaf(d->b, v, d->bit);
    if (v == 0 || v >= d->ngrad ||
        (d->b->values.items[v].seen & d->bit) == 0 ||
        !tl_gbuild_type(d->b, v) ||
        !tl_dtype_is_float(tl_gbuild_type(d->b, v)->dtype) ||
        within(g, region_of(g, v), d->node)) {
        return TL_OK;
    }
    for (size_t i = 0; i < d->read.len; i++) {
        if (d->read.items[i] == v) {
            return TL_OK;
        }
    }
    return TL_VEC_PUSH(&d->read, v, d->b->diag);
}

static tl_status find_read(gradient *d)
{
    const tl_graph *g = d->b->g;
    size_t nodes = g->nodes.len;

    for (uint32_t i = 1; i < nodes; i++) {
        tl_gnode n = g->nodes.items[i];

        for (uint32_t k = 0; within(g, n.owner, d->node) && k < n.nin; k++) {
            TL_TRY(note_read(d, tl_goperand(g, &n, k)));
        }
    }
    for (uint32_t r = 1; r < g->regions.len; r++) {
        const tl_gregion *region = &g->regions.items[r];

        for (uint32_t k = 0; within(g, r, d->node) && k < region->nresults;
             k++) {
            TL_TRY(note_read(d, g->operands.items[region->results + k]));
        }
    }
    return TL_OK;
}

static tl_status filled(tl_gbuild *b, const tl_ttype *type, double value,
                        tl_gval *out)
{
    tl_attrs at;

    tl_attrs_init(&at);
    at.dtype = (uint8_t)type->dtype;
    at.f[0] = value;
    at.ndims = (uint16_t)type->shape.rank;
    memcpy(at.dims, type->shape.dim,
           (size_t)type->shape.rank * sizeof(tl_dim));
    return tl_gbuild_apply(b, TL_OP_full, NULL, 0, &at, out);
}

/* `v`, or -0.0 of the type of `like`. */
static tl_status or_nothing(tl_gbuild *b, tl_gval v, tl_gval like,
                            tl_gval *out)
{
    *out = v;
    return v != 0 ? TL_OK : filled(b, tl_gbuild_type(b, like), -0.0, out);
}

static tl_status find_start(gradient *d)
{
    for (size_t i = 0; i < d->read.len; i++) {
        tl_gval v = d->read.items[i], g;

        TL_TRY(or_nothing(d->b, d->grad[v], v, &g));
        TL_TRY(TL_VEC_PUSH(&d->start, g, d->b->diag));
    }
    return TL_OK;
}

/* ---- one region backwards ----------------------------------------------- */

/* In the open region: a copy of `region` and its reverse pass.  leaf[i] stands
 * for read[i] and has start[i]; param_leaf[k] for parameter k (0: none).
 * seeds[k] is the gradient of result k or 0.  Gradients of the leaves go to
 * `out`, then those of the parameters' leaves (0: nothing). */
static tl_status reverse(gradient *d, copying *c, uint32_t region,
                         const tl_gval *start, const tl_gval *params,
                         uint32_t nparams, const tl_gval *seeds,
                         uint32_t nseeds, tl_gval *out, tl_gval *param_out)
{
    tl_gbuild *b = d->b;
    tl_gregion r = b->g->regions.items[region];
    tl_gval *leaf = tl_calloc(d->read.len + nparams + 1, sizeof(*leaf));
    tl_gval *param_leaf, *grad = NULL;
    tl_gblock block;
    tl_status st;

    if (!leaf) {
        return tl_fail_memory(b->diag, "gradients", d->read.len);
    }
    param_leaf = leaf + d->read.len;
    TL_GOTO(st, tl_gblock_open(b, &block));
    for (size_t i = 0; i < d->read.len && st == TL_OK; i++) {
        st = tl_gblock_leaf(b, &block, d->read.items[i], &leaf[i]);
        c->map[d->read.items[i]] = leaf[i];
    }
    for (uint32_t k = 0; k < nparams && st == TL_OK; k++) {
        const tl_ttype *t = tl_gbuild_type(b, params[k]);

        param_leaf[k] = 0;
        if (t && tl_dtype_is_float(t->dtype)) {
            st = tl_gblock_leaf(b, &block, params[k], &param_leaf[k]);
        }
        c->map[r.params + r.nparams - nparams + k] =
            param_leaf[k] != 0 ? param_leaf[k] : params[k];
    }
    if (st == TL_OK) {
        st = copy_region(c, region);
    }
    tl_gblock_close(b, &block);
    TL_GOTO(st, st);
    size_t ngrad = b->values.len;

    grad = tl_calloc(ngrad + 1, sizeof(*grad));
    if (!grad) {
        st = tl_fail_memory(b->diag, "gradients", ngrad * sizeof(*grad));
        goto out;
    }
    for (size_t i = 0; i < d->read.len; i++) {
        grad[leaf[i]] = start[i];
    }
    for (uint32_t k = nseeds; k-- > 0;) {
        tl_gval v = mapped(c, b->g->operands.items[r.results + k]);
        tl_gval terms[2] = {grad[v], seeds[k]};

        if (seeds[k] == 0) {
            continue;
        }
        if (terms[0] == 0) {
            grad[v] = seeds[k];
        } else {
            TL_GOTO(st, tl_gbuild_apply(b, TL_OP_add, terms, 2, NULL,
                                        &grad[v]));
        }
    }
    TL_GOTO(st, tl_gblock_reverse(b, &block, grad, ngrad));
    for (size_t i = 0; i < d->read.len; i++) {
        out[i] = grad[leaf[i]];
    }
    for (uint32_t k = 0; k < nparams; k++) {
        param_out[k] = param_leaf[k] != 0 ? grad[param_leaf[k]] : 0;
    }
    tl_gblock_forget(b, &block);
out:
    tl_free(leaf);
    tl_free(grad);
    return st;
}

/* ---- IF ----------------------------------------------------------------- */

/* A gradient that nothing has reached yet is the first term itself: -0.0
 * before it would have the same bits, but not the strides of a term that is a
 * view.  reached[i]: an arm adds to the gradient of read[i]. */
static tl_status arm_backwards(gradient *d, uint32_t region, uint32_t *made,
                               bool *reached)
{
    tl_gbuild *b = d->b;
    tl_gnode n = b->g->nodes.items[d->node];
    size_t nread = d->read.len;
    tl_gval *out = tl_calloc(2 * nread + 1, sizeof(*out)), first;
    tl_gval *start = out + nread;
    uint32_t around = b->owner;
    copying c;
    tl_status st = copying_init(&c, b, d->bit);

    if (!out && st == TL_OK) {
        st = tl_fail_memory(b->diag, "gradients", d->read.len);
    }
    for (size_t i = 0; i < nread && st == TL_OK; i++) {
        start[i] = d->grad[d->read.items[i]];
    }
    if (st == TL_OK) {
        st = tl_gbuild_region_open(b, NULL, NULL, 0, made, &first);
    }
    if (st == TL_OK) {
        st = reverse(d, &c, region, start, NULL, 0, d->g, n.nout, out, NULL);
    }
    for (size_t i = 0; i < nread && st == TL_OK; i++) {
        reached[i] = reached[i] || out[i] != start[i];
        out[i] = out[i] != 0 ? out[i] : d->start.items[i];
    }
    if (st == TL_OK) {
        st = tl_gbuild_region_close(b, *made, around);
    }
    if (st == TL_OK) {
        st = tl_gbuild_region_results(b, *made, out, (uint32_t)d->read.len);
    }
    tl_free(out);
    tl_free(c.map);
    return st;
}

static tl_status gradient_of_if(gradient *d)
{
    tl_gbuild *b = d->b;
    tl_gnode n = b->g->nodes.items[d->node];
    tl_gval cond = tl_goperand(b->g, &n, 0);
    tl_gval *out = tl_calloc(d->read.len + 1, sizeof(*out));
    bool *reached = tl_calloc(d->read.len + 1, sizeof(*reached));
    uint32_t made[2];
    tl_status st = TL_OK;

    if (!out || !reached) {
        st = tl_fail_memory(b->diag, "gradients", d->read.len);
    }
    for (uint32_t k = 0; k < 2 && st == TL_OK; k++) {
        /* regions are renumbered when they get their owner */
        st = arm_backwards(d, b->g->nodes.items[d->node].region + k,
                           &made[k], reached);
    }
    if (st == TL_OK) {
        st = tl_gbuild_flow(b,
                            &(tl_gflow){.kind = TL_G_IF, .region = made[0],
                                        .nregions = 2, .in = &cond, .nin = 1,
                                        .like = d->start.items,
                                        .n = (uint32_t)d->read.len},
                            out);
    }
    for (size_t i = 0; i < d->read.len && st == TL_OK; i++) {
        if (reached[i]) {
            d->grad[d->read.items[i]] = out[i];
        }
    }
    tl_free(out);
    tl_free(reached);
    return st;
}

/* ---- LOOP --------------------------------------------------------------- */

/* stack[at] of what was stacked for a carried value. */
static tl_status unstack(tl_gbuild *b, tl_gval stack, tl_dim at,
                         tl_gclass cls, tl_gval *out)
{
    const tl_ttype *type = tl_gbuild_type(b, stack);
    tl_attrs a;

    tl_attrs_init(&a);
    a.ndims = (uint16_t)(3 * type->shape.rank);
    for (int i = 0; i < type->shape.rank; i++) {
        a.dims[3 * i] = i == 0 ? at : tl_dim_num(0);
        a.dims[3 * i + 1] = i == 0 ? tl_dim_num(1) : type->shape.dim[i];
        a.dims[3 * i + 2] = tl_dim_num(1);
    }
    TL_TRY(tl_gbuild_apply(b, TL_OP_slice, &stack, 1, &a, out));
    tl_attrs_init(&a);
    a.axes = 1;
    TL_TRY(tl_gbuild_apply(b, TL_OP_squeeze, out, 1, &a, out));
    return cls == TL_GC_TENSOR ? TL_OK : tl_gbuild_item(b, *out, cls, out);
}

/* Everything about the backward loop. */
typedef struct backloop {
    gradient *d;
    tl_gnode n;        /* the forward node */
    uint32_t carried;
    vals params;       /* in the body: copies of the carried values */
    vals init;         /* gradients: of float results, then of what is read */
    vals like;
    tl_gval *index_of; /* by carried value: its place in init + 1, or 0 */
} backloop;

static tl_status collect_init(backloop *l)
{
    tl_gbuild *b = l->d->b;

    for (uint32_t k = 0; k < l->carried; k++) {
        const tl_ttype *t = tl_gbuild_type(b, l->n.out + 1 + k);
        tl_gval g;

        if (!t || !tl_dtype_is_float(t->dtype)) {
            continue;
        }
        TL_TRY(or_nothing(b, l->d->g[1 + k], l->n.out + 1 + k, &g));
        TL_TRY(TL_VEC_PUSH(&l->init, g, b->diag));
        l->index_of[k] = (tl_gval)l->init.len;
    }
    for (size_t i = 0; i < l->d->read.len; i++) {
        TL_TRY(TL_VEC_PUSH(&l->init, l->d->start.items[i], b->diag));
    }
    return TL_OK;
}

/* The turn of the forward loop that comes back at turn `k`, as a size. */
static tl_status turn_of(backloop *l, tl_gval k, tl_dim *out)
{
    tl_gbuild *b = l->d->b;
    tl_gval count = l->n.out;
    const tl_ttype *stack = tl_gbuild_type(b, l->n.out + 1 + l->carried);
    tl_gatom atom = {.kind = TL_GA_INT, .index = k};
    tl_dim turn;

    (void)count;
    TL_TRY(tl_gbuild_atom(b, atom, 0, 0, &turn));
    TL_TRY(tl_dim_sub(b->dims, stack->shape.dim[0], turn, out, b->diag));
    return tl_dim_sub(b->dims, *out, tl_dim_num(1), out, b->diag);
}

/* The forward loop's parameters at that turn. */
static tl_status restore_params(backloop *l, copying *c, uint32_t body,
                                tl_gval k)
{
    tl_gbuild *b = l->d->b;
    tl_gregion r = b->g->regions.items[body];
    tl_gval v;
    tl_dim turn;

    TL_TRY(turn_of(l, k, &turn));
    TL_TRY(tl_gbuild_size(b, turn, &v));
    c->map[r.params] = v;
    TL_TRY(map_atom(c, r.params, turn));
    for (uint32_t i = 0; i < l->carried; i++) {
        tl_gclass cls =
            (tl_gclass)b->g->values.items[r.params + 1 + i].cls;

        TL_TRY(unstack(b, l->n.out + 1 + l->carried + i, turn, cls, &v));
        TL_TRY(TL_VEC_PUSH(&l->params, v, b->diag));
        if (cls == TL_GC_INT) {
            TL_TRY(map_int(c, r.params + 1 + i, v));
        }
    }
    return TL_OK;
}

/* Gradients of what the turn gave to stacks that the program reads, which come
 * after those that are kept for the gradient. */
static tl_status item_seeds(backloop *l, tl_gval k, tl_gval *seeds)
{
    tl_dim turn;

    for (uint32_t i = 2 * l->carried; i + 1 < l->n.nout; i++) {
        tl_gval g = l->d->g[1 + i];

        if (g != 0) {
            TL_TRY(turn_of(l, k, &turn));
            TL_TRY(unstack(l->d->b, g, turn, TL_GC_TENSOR, &seeds[i]));
        }
    }
    return TL_OK;
}

/* The body: gradients of this turn's results in, of its parameters out. */
static tl_status body_backwards(backloop *l, uint32_t body, tl_gval first,
                                tl_gval *results)
{
    gradient *d = l->d;
    tl_gbuild *b = d->b;
    size_t nfloat = l->init.len - d->read.len;
    uint32_t nseeds = l->n.nout - 1; /* results of the body */
    tl_gval *seeds = tl_calloc((size_t)nseeds + l->carried + d->read.len + 2,
                               sizeof(*seeds));
    tl_gval *param_out, *start;
    copying c;
    tl_status st = copying_init(&c, b, d->bit);

    if (!seeds && st == TL_OK) {
        st = tl_fail_memory(b->diag, "gradients", l->carried);
    }
    TL_GOTO(st, st);
    param_out = seeds + nseeds;
    start = param_out + l->carried;
    TL_GOTO(st, restore_params(l, &c, body, first));
    for (uint32_t k = 0; k < l->carried; k++) {
        seeds[k] = l->index_of[k] != 0 ? first + l->index_of[k] : 0;
    }
    TL_GOTO(st, item_seeds(l, first, seeds));
    for (size_t i = 0; i < d->read.len; i++) {
        start[i] = first + 1 + (tl_gval)(nfloat + i);
    }
    TL_GOTO(st, reverse(d, &c, body, start, l->params.items, l->carried,
                        seeds, nseeds, results + nfloat, param_out));
    for (uint32_t k = 0; k < l->carried && st == TL_OK; k++) {
        if (l->index_of[k] != 0) {
            st = or_nothing(b, param_out[k], l->params.items[k],
                            &results[l->index_of[k] - 1]);
        }
    }
out:
    tl_free(seeds);
    tl_free(c.map);
    return st;
}

static tl_status open_body(backloop *l, uint32_t *region, tl_gval *first)
{
    tl_gbuild *b = l->d->b;
    uint32_t n = (uint32_t)l->init.len + 1;
    const tl_ttype **types = tl_calloc(n, sizeof(*types));
    tl_gclass *cls = tl_calloc(n, sizeof(*cls));
    tl_status st;

    if (!types || !cls) {
        st = tl_fail_memory(b->diag, "a loop", n * sizeof(*types));
    } else {
        cls[0] = TL_GC_INT;
        for (uint32_t i = 1; i < n; i++) {
            types[i] = tl_gbuild_type(b, l->init.items[i - 1]);
            cls[i] = TL_GC_TENSOR;
        }
        st = tl_gbuild_region_open(b, types, cls, n, region, first);
    }
    tl_free(types);
    tl_free(cls);
    return st;
}

/* Gradients of the loop's operands and of what its body reads. */
static tl_status take_results(backloop *l, const tl_gval *out)
{
    gradient *d = l->d;
    tl_gbuild *b = d->b;
    size_t nfloat = l->init.len - d->read.len;

    for (size_t i = 0; i < d->read.len; i++) {
        d->grad[d->read.items[i]] = out[1 + nfloat + i];
    }
    for (uint32_t k = l->carried; k-- > 0;) {
        tl_gval v = tl_gbuild_behind_leaf(
            b, tl_goperand(b->g, &l->n, 1 + k), d->bit);
        tl_gval terms[2];

        if (l->index_of[k] == 0 || v >= d->ngrad ||
            (b->values.items[v].seen & d->bit) == 0) {
            continue;
        }
        terms[0] = d->grad[v];
        terms[1] = out[l->index_of[k]];
        if (terms[0] == 0) {
            d->grad[v] = terms[1];
        } else {
            TL_TRY(tl_gbuild_apply(b, TL_OP_add, terms, 2, NULL,
                                   &d->grad[v]));
        }
    }
    return TL_OK;
}

static tl_status run_backloop(backloop *l)
{
    tl_gbuild *b = l->d->b;
    uint32_t around = b->owner, region, n;
    tl_gval first, *results, *in;
    tl_status st;

    TL_TRY(collect_init(l));
    n = (uint32_t)l->init.len;
    results = tl_calloc(2 * (size_t)n + 4, sizeof(*results));
    if (!results) {
        return tl_fail_memory(b->diag, "a loop", n * sizeof(*results));
    }
    in = results + n + 2;
    TL_GOTO(st, open_body(l, &region, &first));
    TL_GOTO(st, body_backwards(l,
                               b->g->nodes.items[l->d->node].region +
                                   l->n.nregions - 1,
                               first, results));
    TL_GOTO(st, tl_gbuild_region_close(b, region, around));
    TL_GOTO(st, tl_gbuild_region_results(b, region, results, n));
    in[0] = l->n.out; /* as many turns */
    for (uint32_t i = 0; i < n; i++) {
        in[1 + i] = l->init.items[i];
    }
    TL_GOTO(st, tl_gbuild_flow(b,
                               &(tl_gflow){.kind = TL_G_LOOP,
                                           .region = region, .nregions = 1,
                                           .in = in, .nin = n + 1,
                                           .like = l->init.items, .n = n},
                               results));
    st = take_results(l, results);
out:
    tl_free(results);
    return st;
}

static tl_status gradient_of_loop(gradient *d)
{
    tl_gnode n = d->b->g->nodes.items[d->node];
    backloop l = {.d = d, .n = n, .carried = n.data};
    tl_status st;

    if (n.nout < 1 + 2 * n.data) {
        return tl_fail_at(d->b->diag, TL_E0602, n.span,
                          "a gradient of the gradient of a loop");
    }
    l.index_of = tl_calloc((size_t)n.data + 1, sizeof(*l.index_of));
    if (!l.index_of) {
        return tl_fail_memory(d->b->diag, "a loop", n.data);
    }
    st = run_backloop(&l);
    tl_free(l.index_of);
    tl_free(l.params.items);
    tl_free(l.init.items);
    tl_free(l.like.items);
    return st;
}

tl_status tl_gregion_gradient(tl_gbuild *b, uint32_t node, uint64_t bit,
                              const tl_gval *g, tl_gval *grad, size_t ngrad)
{
    gradient d = {.b = b, .node = node, .bit = bit, .g = g, .grad = grad,
                  .ngrad = ngrad};
    tl_status st = find_read(&d);

    if (st == TL_OK) {
        st = find_start(&d);
    }
    if (st == TL_OK) {
        st = b->g->nodes.items[node].kind == TL_G_IF ? gradient_of_if(&d)
                                                     : gradient_of_loop(&d);
    }
    tl_free(d.read.items);
    tl_free(d.start.items);
    return st;
}
