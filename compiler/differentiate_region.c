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

#include "compiler/differentiate_impl.h"
#include "runtime/base/mem.h"
#include "runtime/base/vec.h"

typedef TL_GARRAY(tl_gval) vals;

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
static tl_status reverse(gradient *d, tl_gcopying *c, uint32_t region,
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
        st = tl_gcopy_region(c, region);
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
        tl_gval v = tl_gcopy_of(c, b->g->operands.items[r.results + k]);
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
    tl_gcopying c;
    tl_status st = tl_gcopy_init(&c, b, d->bit);

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
static tl_status restore_params(backloop *l, tl_gcopying *c, uint32_t body,
                                tl_gval k)
{
    tl_gbuild *b = l->d->b;
    tl_gregion r = b->g->regions.items[body];
    tl_gval v;
    tl_dim turn;

    TL_TRY(turn_of(l, k, &turn));
    TL_TRY(tl_gbuild_size(b, turn, &v));
    c->map[r.params] = v;
    TL_TRY(tl_gcopy_atom(c, r.params, turn));
    for (uint32_t i = 0; i < l->carried; i++) {
        tl_gclass cls =
            (tl_gclass)b->g->values.items[r.params + 1 + i].cls;

        TL_TRY(unstack(b, l->n.out + 1 + l->carried + i, turn, cls, &v));
        TL_TRY(TL_VEC_PUSH(&l->params, v, b->diag));
        if (cls == TL_GC_INT) {
            TL_TRY(tl_gcopy_int(c, r.params + 1 + i, v));
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
    tl_gcopying c;
    tl_status st = tl_gcopy_init(&c, b, d->bit);

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
