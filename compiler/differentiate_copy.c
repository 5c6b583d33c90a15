/* differentiate_copy.c - copies of regions, for the gradients of branches and
 * loops: the same operations on other values, with sizes and draws of their
 * own. */
#include <string.h>

#include "compiler/differentiate_impl.h"
#include "runtime/base/mem.h"

tl_gval tl_gcopy_of(const tl_gcopying *c, tl_gval v)
{
    const tl_gbuild *b = c->b;

    tl_gval at = v;

    while (at < c->len && c->map[at] == 0 && b->values.items[at].leaf) {
        at = tl_goperand(b->g, tl_gnode_of(b->g, at), 0);
    }
    return at < c->len && c->map[at] != 0 ? c->map[at] : v;
}

static tl_status map_dim(const tl_gcopying *c, tl_dim d, tl_dim *out)
{
    if (tl_dim_is_num(d) || c->natoms == 0) {
        *out = d;
        return TL_OK;
    }
    return tl_dim_replace(c->b->dims, d, c->from, c->to, c->natoms, out,
                          c->b->diag);
}

/* The atom of host int `v` of the original, if it has one, becomes `to`. */
tl_status tl_gcopy_atom(tl_gcopying *c, tl_gval v, tl_dim to)
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
tl_status tl_gcopy_int(tl_gcopying *c, tl_gval v, tl_gval copy)
{
    tl_gbuild *b = c->b;
    tl_gatom atom = {.kind = TL_GA_INT, .index = copy};
    tl_dim d;

    for (size_t i = 0; i < b->atoms.len; i++) {
        const tl_gatom *a = &b->g->atoms.items[i];

        if (a->kind == TL_GA_INT && a->index == v) {
            TL_TRY(tl_gbuild_atom(b, atom, -((int64_t)1 << 40),
                                  b->hints.items[i], &d));
            return tl_gcopy_atom(c, v, d);
        }
    }
    return TL_OK;
}

static tl_status map_type(const tl_gcopying *c, const tl_ttype *type,
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
static void map_draw(const tl_gcopying *c, uint32_t node, tl_attrs *at)
{
    bool random = (c->b->g->nodes.items[node].flags & TL_GF_RANDOM) != 0;
    tl_rng_key key = tl_attrs_key(at);

    if (random && key.stream == TL_GBUILD_STREAM) {
        key.seed = tl_gcopy_of(c, (tl_gval)key.seed);
        key.draw = tl_gcopy_of(c, (tl_gval)key.draw);
        tl_attrs_set_key(at, &key);
    }
}

static tl_status kept_attrs(const tl_gcopying *c, uint32_t node, tl_attrs *at,
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

/* A node as it is, with its operands mapped. */
static tl_status copy_plain(tl_gcopying *c, uint32_t node, const tl_gval *in)
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
            TL_TRY(tl_gcopy_int(c, n.out + k, first + k));
        }
    }
    return TL_OK;
}

static tl_status copy_op(tl_gcopying *c, uint32_t node, const tl_gval *in)
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
static tl_status map_params(tl_gcopying *c, const tl_gregion *r,
                            const room *m, tl_gval first)
{
    for (uint32_t i = 0; i < r->nparams; i++) {
        c->map[r->params + i] = first + i;
        if (m->cls[i] == TL_GC_INT) {
            TL_TRY(tl_gcopy_int(c, r->params + i, first + i));
        }
    }
    return TL_OK;
}

/* A region of a branch or loop inside. */
static tl_status copy_inner(tl_gcopying *c, uint32_t number, uint32_t *made)
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
    TL_GOTO(st, tl_gcopy_region(c, number));
    for (uint32_t i = 0; i < r.nresults; i++) {
        m.res[i] = tl_gcopy_of(c, b->g->operands.items[r.results + i]);
    }
    TL_GOTO(st, tl_gbuild_region_close(b, *made, around));
    st = tl_gbuild_region_results(b, *made, m.res, r.nresults);
out:
    room_fini(&m);
    return st;
}

/* Values that have the types of the copy's results. */
static void like_results(const tl_gcopying *c, const tl_gnode *n,
                         const tl_gval *in, uint32_t carried, tl_gval *like)
{
    const tl_graph *g = c->b->g;
    const tl_gregion *r = &g->regions.items[n->region];

    for (uint32_t k = 0; k < carried; k++) {
        like[k] = n->kind == TL_G_LOOP
                      ? in[1 + k]
                      : tl_gcopy_of(c, g->operands.items[r->results + k]);
    }
}

/* What a loop inside has stacked, in the copy `body` of its body: the results
 * after those that are carried.  *turns is the length of the stacks; *own: it
 * is the count of the loop itself. */
static tl_status copy_stacks(tl_gcopying *c, const tl_gnode *n,
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
static tl_status copy_flow(tl_gcopying *c, uint32_t node, const tl_gval *in)
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
            st = tl_gcopy_int(c, n.out + k, out[k]);
        }
    }
out:
    tl_free(like);
    return st;
}

/* Does the block see a result?  If not the node was stopped, or ran inside of
 * `no_grad`, or depends on no leaf. */
static bool is_seen(const tl_gcopying *c, const tl_gnode *n)
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
    return tl_gcopy_of(ctx, v);
}

/* A function with its own gradient keeps it in the copy: its results are
 * aliases, of which the first makes all. */
static tl_status copy_custom(tl_gcopying *c, const tl_gcustom *entry)
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
        in[i] = tl_gcopy_of(c, e.in[i]);
    }
    for (uint32_t k = 0; k < e.nout; k++) {
        const tl_gnode *alias = &b->g->nodes.items[e.node + k];

        v[k] = tl_gcopy_of(c, tl_goperand(b->g, alias, 0));
    }
    TL_TRY(e.ops->copy(e.data, map_of, c, &data));
    TL_TRY(tl_gbuild_custom(b, in, e.nin, v, e.nout, e.ops, data, out));
    for (uint32_t k = 0; k < e.nout; k++) {
        b->values.items[out[k]].lowered = b->values.items[first + k].lowered;
        c->map[first + k] = out[k];
    }
    return TL_OK;
}

static tl_status copy_node(tl_gcopying *c, uint32_t node)
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
        in[i] = tl_gcopy_of(c, tl_goperand(b->g, &n, i));
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

tl_status tl_gcopy_region(tl_gcopying *c, uint32_t region)
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

tl_status tl_gcopy_init(tl_gcopying *c, tl_gbuild *b, uint64_t bit)
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
