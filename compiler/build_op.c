/* build_op.c - adding one operation, as tl_apply would run it.
 *
 * Mirrors runtime/apply.c: casts are nodes, a cast to the same dtype is the
 * value itself, views give views, regions that two blocks differentiate are
 * taken apart. */
#include <stddef.h>
#include <string.h>

#include "compiler/build.h"
#include "runtime/base/mem.h"
#include "runtime/base/rng.h"
#include "runtime/base/vec.h"
#include "runtime/op/decompose.h"

typedef struct call {
    tl_gbuild *b;
    tl_op op;
    const tl_op_info *info;
    const tl_attrs *at;
    tl_gval *in; /* casts replace operands */
    int nin;
} call;

static bool has_bit(uint32_t set, int i)
{
    return i < 32 ? ((set >> i) & 1) != 0 : set == UINT32_MAX;
}

/* ---- attributes --------------------------------------------------------- */

static bool is_random(tl_op op, const tl_attrs *at)
{
    switch (op) {
    case TL_OP_rand:
    case TL_OP_randn:
    case TL_OP_randint:
    case TL_OP_perm:
    case TL_OP_dropout:
    case TL_OP_bernoulli:
    case TL_OP_multinomial:
        return true;
    case TL_OP_sdpa:
    case TL_OP_sdpa_grad:
    case TL_OP_sdpa_mask_grad:
        return at->f[1] != 0; /* dropout */
    default:
        return false;
    }
}

static bool is_bound_draw(const tl_attrs *at)
{
    return tl_attrs_key(at).stream == TL_GBUILD_STREAM;
}

/* A draw of the stream that all calls share has the call's seed and the
 * counter of its moment: *at, if it is one, becomes a bound draw. */
static tl_status bind_draw(tl_gbuild *b, tl_attrs *at)
{
    tl_rng_key key = tl_attrs_key(at);
    tl_gval in[2] = {b->draws, 0}, draw = b->draws;

    if (key.stream != TL_STREAM_DRAW || b->seed == 0) {
        return TL_OK;
    }
    if (key.draw != b->first_draw) {
        tl_gscalar by = {.i = (int64_t)(key.draw - b->first_draw)};

        TL_TRY(tl_gbuild_num(b, TL_GC_INT, by, &in[1]));
        TL_TRY(tl_gbuild_host(b, TL_H_add_i, TL_GC_INT, in, 2, &draw));
    }
    key.stream = TL_GBUILD_STREAM;
    key.seed = b->seed;
    key.draw = draw;
    tl_attrs_set_key(at, &key);
    return TL_OK;
}

/* The key of a bound draw, as the graph has it. */
static void add_draw(const tl_attrs *at, tl_gattrs *g, tl_gbind *binds)
{
    tl_rng_key key = tl_attrs_key(at);
    tl_attrs known;

    tl_attrs_init(&known);
    binds[g->nbinds++] = (tl_gbind){.field = 'i', .index = 0,
                                    .value = (tl_gval)key.seed};
    binds[g->nbinds++] = (tl_gbind){.field = 'i', .index = 1,
                                    .value = (tl_gval)key.draw};
    key.stream = TL_STREAM_DRAW;
    key.seed = 0;
    key.draw = 0;
    tl_attrs_set_key(&known, &key);
    memcpy(g->i, known.i, 3 * sizeof(g->i[0]));
}

static tl_status add_attrs(tl_gbuild *b, tl_op op, const tl_attrs *at,
                           uint32_t *out)
{
    uint32_t dims[3 * TL_MAX_RANK];
    tl_gbind binds[8];
    tl_gattrs g;

    *out = 0;
    if (!at) {
        return TL_OK;
    }
    memset(&g, 0, sizeof(g));
    g.dtype = at->dtype;
    g.keep = at->keep;
    g.flag = at->flag;
    g.axis = at->axis;
    g.axes = at->axes;
    g.ndims = at->ndims;
    memcpy(g.i, at->i, sizeof(g.i));
    memcpy(g.f, at->f, sizeof(g.f));
    for (int i = 0; i < at->ndims; i++) {
        TL_TRY(tl_gbuild_dim(b, at->dims[i], &dims[i]));
    }
    if (is_random(op, at) && is_bound_draw(at)) {
        add_draw(at, &g, binds);
    }
    for (uint8_t k = 0; k < 6; k++) {
        tl_gval v = tl_gbuild_attr_value(at->f[k]);

        if (v != 0) {
            binds[g.nbinds++] = (tl_gbind){.field = 'f', .index = k,
                                           .value = v};
            g.f[k] = 0;
        }
    }
    return tl_graph_attrs(b->g, &g, dims, binds, out, b->diag);
}

/* ---- operands ----------------------------------------------------------- */

static tl_status cast_operand(call *c, int i, tl_dtype dtype)
{
    tl_attrs at;

    if (tl_gbuild_type(c->b, c->in[i])->dtype == dtype) {
        return TL_OK;
    }
    tl_attrs_init(&at);
    at.dtype = (uint8_t)dtype;
    return tl_gbuild_apply(c->b, TL_OP_cast, &c->in[i], 1, &at, &c->in[i]);
}

/* The operands that are joined and cast, as in apply.c. */
static uint32_t joined_operands(const call *c)
{
    switch (c->info->cls) {
    case TL_CLASS_MAP:
    case TL_CLASS_CMP:
        return UINT32_MAX & ~c->info->bool_in;
    case TL_CLASS_RED:
        return 1;
    case TL_CLASS_VIEW:
    case TL_CLASS_MAKE:
        return 0;
    default:
        return c->info->join_in != 0 ? c->info->join_in
               : c->nin == 1 && c->info->types != TL_TYPES_ANY ? 1
                                                               : 0;
    }
}

static tl_status cast_operands(call *c)
{
    uint32_t set = joined_operands(c);
    tl_dtype dtype = TL_bool; /* the least */

    if (set == 0) {
        return TL_OK;
    }
    for (int i = 0; i < c->nin; i++) {
        if (has_bit(set, i)) {
            dtype = tl_dtype_join(dtype, tl_gbuild_type(c->b, c->in[i])->dtype);
        }
    }
    TL_TRY(tl_op_compute_dtype(c->op, dtype, &dtype, c->b->diag));
    for (int i = 0; i < c->nin; i++) {
        if (has_bit(set, i)) {
            TL_TRY(cast_operand(c, i, dtype));
        }
    }
    return TL_OK;
}

/* ---- the node ----------------------------------------------------------- */

static tl_status infer(const call *c, tl_ttype *out)
{
    tl_ttype few[TL_MAX_INPUTS], *in = few;
    tl_attrs none;
    tl_status st;

    if (c->nin > TL_MAX_INPUTS) {
        in = tl_calloc((size_t)c->nin, sizeof(*in));
        if (!in) {
            return tl_fail_memory(c->b->diag, "types of operands",
                                  (size_t)c->nin * sizeof(*in));
        }
    }
    for (int i = 0; i < c->nin; i++) {
        in[i] = *tl_gbuild_type(c->b, c->in[i]);
    }
    tl_attrs_init(&none);
    st = tl_op_infer(&c->b->infer, c->op, in, c->nin, c->at ? c->at : &none,
                     out);
    if (in != few) {
        tl_free(in);
    }
    return st;
}

/* Blocks that record this call. */
static uint64_t seen_by(const call *c)
{
    uint64_t seen = 0;

    if (c->b->no_grad > 0 || !c->info->differentiable) {
        return 0;
    }
    for (int i = 0; i < c->nin; i++) {
        seen |= c->b->values.items[c->in[i]].seen;
    }
    return seen & c->b->visible;
}

tl_status tl_gbuild_keep_attrs(tl_gbuild *b, const tl_attrs *at)
{
    size_t bytes = offsetof(tl_attrs, dims), node = b->g->nodes.len;
    tl_attrs *copy = NULL;

    if (at) {
        bytes += at->ndims * sizeof(at->dims[0]);
        copy = tl_arena_alloc(&b->arena, bytes);
        if (!copy) {
            return tl_fail_memory(b->diag, "attributes", bytes);
        }
        memcpy(copy, at, bytes);
    }
    while (b->attrs.len <= node) {
        TL_TRY(TL_VEC_PUSH(&b->attrs, NULL, b->diag));
    }
    b->attrs.items[node] = copy;
    return TL_OK;
}

static tl_status add_node(call *c, const tl_ttype *types, tl_gval *out)
{
    tl_gbuild *b = c->b;
    uint64_t seen = seen_by(c);
    const tl_attrs *at = c->at;
    tl_attrs draw;
    tl_gvalue values[TL_MAX_OUTPUTS];
    tl_gnew n = {.kind = TL_G_OP, .op = (uint16_t)c->op, .in = c->in,
                 .nin = (uint32_t)c->nin, .nout = (uint32_t)c->info->nout,
                 .out = values, .owner = b->owner, .span = b->span};
    tl_gval first;

    for (int k = 0; k < c->info->nout; k++) {
        TL_TRY(tl_gbuild_value(b, &types[k], &values[k]));
    }
    if (is_random(c->op, c->at)) {
        n.flags |= TL_GF_RANDOM;
        tl_attrs_copy(&draw, at);
        TL_TRY(bind_draw(b, &draw));
        at = &draw;
    }
    TL_TRY(add_attrs(b, c->op, at, &n.attrs));
    if (seen != 0 || b->owner != 0) { /* for its gradient, or a copy of it */
        TL_TRY(tl_gbuild_keep_attrs(b, at));
    }
    TL_TRY(tl_graph_add(b->g, &n, &first, b->diag));
    for (int k = 0; k < c->info->nout; k++) {
        bool real = tl_dtype_is_float(types[k].dtype);

        out[k] = first + (tl_gval)k;
        TL_TRY(tl_gbuild_note(b, out[k], &types[k], real ? seen : 0));
        b->values.items[out[k]].weight = c->info->cls == TL_CLASS_VIEW &&
                                         b->values.items[c->in[0]].weight;
    }
    return TL_OK;
}

/* ---- regions taken apart ------------------------------------------------ */

/* Do two blocks or more record? */
static bool is_nested(const tl_gbuild *b)
{
    bool several = (b->visible & (b->visible - 1)) != 0;

    return b->no_grad == 0 && (several || (b->taped && b->visible != 0));
}

static tl_status add_parts(call *c, tl_gval *out)
{
    tl_node in[TL_MAX_INPUTS], res[TL_MAX_OUTPUTS];

    if (c->nin > TL_MAX_INPUTS) {
        return tl_fail(c->b->diag, TL_E0699, "`%s` has too many operands",
                       c->info->name);
    }
    for (int i = 0; i < c->nin; i++) {
        in[i] = TL_GNODE(c->in[i]);
    }
    TL_TRY(tl_op_decompose(&c->b->emit, c->op, in, c->nin, c->at, res));
    for (int k = 0; k < c->info->nout; k++) {
        out[k] = TL_GVAL(res[k]);
    }
    return TL_OK;
}

/* ---- the entrance ------------------------------------------------------- */

/* Sizes of results as shapes may have them. */
static tl_status fix_extents(call *c, tl_ttype *types)
{
    for (int k = 0; k < c->info->nout; k++) {
        for (int i = 0; i < types[k].shape.rank; i++) {
            tl_dim *d = &types[k].shape.dim[i];

            if (tl_dim_has_fresh(*d) ||
                (tl_dim_is_num(*d) && tl_dim_value(*d) < 0)) {
                return tl_fail(c->b->diag, TL_E0602,
                               "the size of the result of `%s` depends on "
                               "data", c->info->name);
            }
            TL_TRY(tl_gbuild_extent(c->b, *d, d));
        }
    }
    return TL_OK;
}

static tl_status dispatch(call *c, tl_gval *out)
{
    tl_ttype types[TL_MAX_OUTPUTS];

    if (c->op == TL_OP_cast &&
        c->at->dtype == tl_gbuild_type(c->b, c->in[0])->dtype) {
        out[0] = c->in[0];
        return TL_OK;
    }
    TL_TRY(infer(c, types));
    TL_TRY(fix_extents(c, types));
    if (tl_op_decomposes(c->op) && is_nested(c->b)) {
        return add_parts(c, out);
    }
    TL_TRY(cast_operands(c));
    return add_node(c, types, out);
}

tl_status tl_gbuild_apply(tl_gbuild *b, tl_op op, const tl_gval *in, int nin,
                          const tl_attrs *at, tl_gval *out)
{
    tl_gval few[TL_MAX_INPUTS];
    call c = {b, op, tl_op_get(op), at, few, nin};
    tl_status st;

    if (nin > TL_MAX_INPUTS) {
        c.in = tl_calloc((size_t)nin, sizeof(*c.in));
        if (!c.in) {
            return tl_fail_memory(b->diag, "operands",
                                  (size_t)nin * sizeof(*c.in));
        }
    }
    for (int i = 0; i < nin; i++) {
        c.in[i] = in[i];
    }
    st = dispatch(&c, out);
    if (c.in != few) {
        tl_free(c.in);
    }
    return st;
}
