/* differentiate.c - grad blocks on a graph, as runtime/autograd/backward.c
 * has them on tensors: the same rules in the same order, so that the graph
 * holds the operations that the interpreter runs.
 *
 * A block is a bit in what values are seen by.  Its tape is the nodes from
 * its opening on whose results have the bit; a node's gradient is a sum of
 * terms in reverse program order. */
#include <string.h>

#include "compiler/build.h"
#include "runtime/base/check.h"
#include "runtime/base/mem.h"

#define MAX_BLOCKS 60

/* ---- blocks ------------------------------------------------------------- */

tl_status tl_gblock_open(tl_gbuild *b, tl_gblock *block)
{
    int k = 0;

    while (k < MAX_BLOCKS && ((b->open >> k) & 1) != 0) {
        k++;
    }
    if (k == MAX_BLOCKS) {
        return tl_fail(b->diag, TL_E0602, "more than %d grad blocks are open",
                       MAX_BLOCKS);
    }
    *block = (tl_gblock){.bit = UINT64_C(1) << k,
                         .first_node = (uint32_t)b->g->nodes.len,
                         .first_value = (tl_gval)b->g->values.len,
                         .below_visible = b->visible,
                         .below_innermost = b->innermost,
                         .below_no_grad = b->no_grad,
                         .below_taped = b->taped,
                         .owner = b->owner};
    b->open |= block->bit;
    b->innermost = block->bit;
    b->visible = (b->no_grad > 0 ? 0 : b->visible) | block->bit;
    b->taped = b->taped && b->no_grad == 0;
    b->no_grad = 0;
    return TL_OK;
}

void tl_gblock_close(tl_gbuild *b, const tl_gblock *block)
{
    b->visible = block->below_visible;
    b->innermost = block->below_innermost;
    b->no_grad = block->below_no_grad;
    b->taped = block->below_taped;
}

void tl_gblock_forget(tl_gbuild *b, const tl_gblock *block)
{
    for (size_t i = block->first_value; i < b->values.len; i++) {
        b->values.items[i].seen &= ~block->bit;
    }
    b->open &= ~block->bit;
}

tl_status tl_gblock_leaf(tl_gbuild *b, const tl_gblock *block, tl_gval v,
                         tl_gval *out)
{
    int no_grad = b->no_grad;
    uint32_t owner = b->owner;
    tl_status st;

    b->no_grad = 0; /* a leaf is the identity on every open block */
    b->owner = block->owner; /* it may be read outside of a branch later */
    st = tl_gbuild_alias(b, v, out);
    b->owner = owner;
    b->no_grad = no_grad;
    if (st == TL_OK) {
        b->values.items[*out].seen |= block->bit;
        b->values.items[*out].leaf = true;
    }
    return st;
}

/* ---- the pass ----------------------------------------------------------- */

typedef struct pass {
    tl_gbuild *b;
    uint64_t bit;
    tl_gval *grad; /* by value number; 0: nothing has reached it */
    size_t len;    /* values of the block; later ones are the pass's own */
    /* Arrays as long as the longest node: */
    tl_node *in, *out, *g, *dx;
    bool *want;
    tl_gval *dv;
    size_t custom; /* customs from here on have been passed */
} pass;

static bool is_seen(const pass *p, tl_gval v)
{
    return v != 0 && v < p->len &&
           (p->b->values.items[v].seen & p->bit) != 0;
}

/* Does a block around this pass see a value that the gradient reads? */
static bool seen_outside(const pass *p, const tl_gnode *n, tl_gval g)
{
    const tl_gbuild *b = p->b;
    uint64_t seen = b->values.items[g].seen;

    for (uint32_t i = 0; i < n->nin; i++) {
        seen |= b->values.items[tl_goperand(b->g, n, i)].seen;
    }
    for (uint32_t k = 0; k < n->nout; k++) {
        seen |= b->values.items[n->out + k].seen;
    }
    return b->no_grad == 0 && (seen & b->visible & ~p->bit) != 0;
}

/* Sum *dx, of the broadcast shape, down to the shape of `like`. */
static tl_status sum_to(pass *p, tl_gval *dx, tl_gval like)
{
    const tl_ttype *type = tl_gbuild_type(p->b, like);
    tl_node sum;

    if (tl_shape_same(&tl_gbuild_type(p->b, *dx)->shape, &type->shape)) {
        return TL_OK;
    }
    TL_TRY(tl_emit_sum_to(&p->b->emit, TL_GNODE(*dx), &type->shape, &sum));
    *dx = TL_GVAL(sum);
    return TL_OK;
}

/* Gradient of a MAP row by input i, as one node. */
static tl_status fused_one(pass *p, uint32_t node, uint32_t i, tl_gval g,
                           tl_gval *dx)
{
    tl_gbuild *b = p->b;
    tl_gnode n = b->g->nodes.items[node]; /* the array may move */
    const tl_op_info *info = tl_op_get((tl_op)n.op);
    tl_gval in[TL_MAX_INPUTS + 2], like = tl_goperand(b->g, &n, i);
    const tl_ttype *type = tl_gbuild_type(b, g);
    tl_gvalue value;
    tl_gnew add = {.kind = TL_G_MAPGRAD, .op = n.op, .which = (uint8_t)i,
                   .in = in, .nin = n.nin + 2, .nout = 1, .out = &value,
                   .attrs = n.attrs, .owner = b->owner, .span = b->span};

    if (strcmp(info->grad[i], "(g)") == 0) {
        *dx = g;
        return sum_to(p, dx, like);
    }
    for (uint32_t k = 0; k < n.nin; k++) {
        in[k] = ((info->saves_in >> k) & 1) != 0 ? tl_goperand(b->g, &n, k)
                                                 : 0;
    }
    in[n.nin] = info->saves_out != 0 ? n.out : 0;
    in[n.nin + 1] = g;
    TL_TRY(tl_gbuild_value(b, type, &value));
    TL_TRY(tl_graph_add(b->g, &add, dx, b->diag));
    TL_TRY(tl_gbuild_note(b, *dx, type, 0));
    return sum_to(p, dx, like);
}

/* A MAP row by its fused gradients. */
static tl_status fused(pass *p, uint32_t node, tl_gval g)
{
    tl_gnode n = p->b->g->nodes.items[node];

    for (uint32_t i = 0; i < n.nin; i++) {
        if (p->want[i]) {
            TL_TRY(fused_one(p, node, i, g, &p->dv[i]));
        }
    }
    return TL_OK;
}

/* By the row's rule, built from other operations. */
static tl_status by_rule(pass *p, uint32_t node)
{
    tl_gbuild *b = p->b;
    const tl_gnode n = b->g->nodes.items[node];
    const tl_attrs *kept = b->attrs.items[node];
    tl_grad_in gi = {.op = (tl_op)n.op, .in = p->in, .nin = (int)n.nin,
                     .out = p->out, .nout = n.nout, .g = p->g,
                     .want = p->want};
    tl_attrs at; /* whole: rules may copy it */

    if (kept) {
        tl_attrs_copy(&at, kept);
        gi.at = &at;
    }
    for (uint32_t i = 0; i < n.nin; i++) {
        p->in[i] = TL_GNODE(tl_goperand(b->g, &n, i));
        p->dx[i] = NULL;
    }
    for (uint32_t k = 0; k < n.nout; k++) {
        p->out[k] = TL_GNODE(n.out + k);
    }
    TL_TRY(tl_op_gradient(&b->emit, &gi, p->dx));
    for (uint32_t i = 0; i < n.nin; i++) {
        p->dv[i] = p->want[i] ? TL_GVAL(p->dx[i]) : 0;
    }
    return TL_OK;
}

/* ---- accumulation ------------------------------------------------------- */

static tl_status accumulate(pass *p, tl_gval v, tl_gval dx)
{
    v = tl_gbuild_behind_leaf(p->b, v, p->bit);

    tl_gval terms[2] = {p->grad[v], dx};

    if (terms[0] == 0) {
        p->grad[v] = dx;
        return TL_OK;
    }
    return tl_gbuild_apply(p->b, TL_OP_add, terms, 2, NULL, &p->grad[v]);
}

/* The gradients of the node's results; false if there is none. */
static bool take_upstream(pass *p, const tl_gnode *n)
{
    bool any = false;

    for (uint32_t k = 0; k < n->nout; k++) {
        tl_gval v = n->out + k;

        p->g[k] = is_seen(p, v) ? TL_GNODE(p->grad[v]) : NULL;
        if (p->g[k]) {
            p->grad[v] = 0;
            any = true;
        }
    }
    return any;
}

static tl_status operation(pass *p, uint32_t node)
{
    tl_gnode n = p->b->g->nodes.items[node];
    const tl_op_info *info = tl_op_get((tl_op)n.op);
    bool map = info->cls == TL_CLASS_MAP;
    tl_gval g = TL_GVAL(p->g[0]);

    for (uint32_t i = 0; i < n.nin; i++) {
        p->want[i] = is_seen(p, tl_goperand(p->b->g, &n, i)) &&
                     !(map && tl_op_grad_is_zero((tl_op)n.op, (int)i));
        p->dv[i] = 0;
    }
    return map && !seen_outside(p, &n, g) ? fused(p, node, g)
                                          : by_rule(p, node);
}

/* A branch or loop. */
static tl_status flow(pass *p, uint32_t node)
{
    uint32_t nout = p->b->g->nodes.items[node].nout;

    for (uint32_t k = 0; k < nout; k++) {
        p->dv[k] = TL_GVAL(p->g[k]);
    }
    return tl_gregion_gradient(p->b, node, p->bit, p->dv, p->grad, p->len);
}

/* One node: its operands' gradients add up from the last to the first. */
static tl_status step(pass *p, uint32_t node)
{
    tl_gbuild *b = p->b;
    tl_gnode n = b->g->nodes.items[node];

    if (n.kind == TL_G_ALIAS && !is_seen(p, tl_goperand(b->g, &n, 0))) {
        return TL_OK; /* a leaf keeps its gradient */
    }
    if (!take_upstream(p, &n)) {
        return TL_OK;
    }
    b->span = n.span;
    if (n.kind == TL_G_ALIAS) {
        return accumulate(p, tl_goperand(b->g, &n, 0), TL_GVAL(p->g[0]));
    }
    if (n.kind == TL_G_IF || n.kind == TL_G_LOOP) {
        return flow(p, node);
    }
    TL_TRY(operation(p, node));
    for (uint32_t i = n.nin; i-- > 0;) {
        if (p->dv[i] != 0 && p->want[i]) {
            TL_TRY(accumulate(p, tl_goperand(b->g, &n, i), p->dv[i]));
        }
    }
    return TL_OK;
}

static tl_status check_type(pass *p, uint32_t i, tl_gval dx, tl_gval of)
{
    const tl_ttype *a = tl_gbuild_type(p->b, dx), *t = tl_gbuild_type(p->b, of);

    if (a->dtype == t->dtype && tl_shape_same(&a->shape, &t->shape)) {
        return TL_OK;
    }
    return tl_fail(p->b->diag, TL_E0513,
                   "the gradient of argument %u is %s, but the argument is "
                   "%s", i + 1, tl_ttype_str(a).s, tl_ttype_str(t).s);
}

/* A custom entry, whose results are the aliases node .. node + nout - 1. */
static tl_status custom(pass *p, const tl_gcustom *c)
{
    tl_gbuild *b = p->b;
    tl_gval g[TL_MAX_INPUTS], *dx;
    tl_gval first = b->g->nodes.items[c->node].out;
    bool any = false;
    tl_status st;

    if (c->nout > TL_MAX_INPUTS) {
        return tl_fail(b->diag, TL_E0602, "more than %d results",
                       TL_MAX_INPUTS);
    }
    for (uint32_t k = 0; k < c->nout; k++) {
        g[k] = is_seen(p, first + k) ? p->grad[first + k] : 0;
        p->grad[first + k] = 0;
        any = any || g[k] != 0;
    }
    if (!any) {
        return TL_OK;
    }
    dx = tl_calloc(c->nin + 1, sizeof(*dx));
    if (!dx) {
        return tl_fail_memory(b->diag, "gradients", c->nin * sizeof(*dx));
    }
    b->span = b->g->nodes.items[c->node].span;
    st = c->ops->gradient(c->data, b, g, c->nout, dx, c->nin);
    for (uint32_t i = c->nin; i-- > 0 && st == TL_OK;) {
        if (dx[i] != 0) {
            st = check_type(p, i, dx[i], c->in[i]);
        }
        if (dx[i] != 0 && st == TL_OK && is_seen(p, c->in[i])) {
            st = accumulate(p, c->in[i], dx[i]);
        }
    }
    tl_free(dx);
    return st;
}

/* The nodes of the block, from the last to the first. */
static tl_status run(pass *p, const tl_gblock *block)
{
    tl_gbuild *b = p->b;
    uint32_t node = (uint32_t)b->g->nodes.len;

    p->custom = b->customs.len;
    while (node-- > block->first_node) {
        while (p->custom > 0 &&
               b->customs.items[p->custom - 1].node > node) {
            p->custom--;
        }
        tl_gcustom *c = p->custom > 0 ? &b->customs.items[p->custom - 1]
                                      : NULL;
        tl_status st;

        if (b->g->nodes.items[node].owner != b->owner) {
            continue; /* of a region, whose owner answers for it */
        }
        if (c && node < c->node + c->nout && node >= c->node) {
            tl_gcustom copy = *c; /* the array may move */

            node = c->node;
            st = custom(p, &copy);
        } else {
            st = step(p, node);
        }
        if (st != TL_OK) {
            tl_diag_at(b->diag, b->span);
            return st;
        }
    }
    return TL_OK;
}

/* ---- a whole pass ------------------------------------------------------- */

static tl_status pass_init(pass *p, tl_gbuild *b, const tl_gblock *block,
                           tl_gval *grad, size_t len)
{
    size_t n = 1;

    memset(p, 0, sizeof(*p));
    p->b = b;
    p->bit = block->bit;
    p->len = len;
    p->grad = grad;
    for (size_t i = block->first_node; i < b->g->nodes.len; i++) {
        n = b->g->nodes.items[i].nin > n ? b->g->nodes.items[i].nin : n;
        n = b->g->nodes.items[i].nout > n ? b->g->nodes.items[i].nout : n;
    }
    p->in = tl_calloc(4 * n, sizeof(*p->in));
    p->want = tl_calloc(n, sizeof(*p->want));
    p->dv = tl_calloc(n, sizeof(*p->dv));
    if (!p->in || !p->want || !p->dv) {
        return tl_fail_memory(b->diag, "gradients of a block",
                              (p->len + 1) * sizeof(*p->grad));
    }
    p->out = p->in + n;
    p->g = p->out + n;
    p->dx = p->g + n;
    return TL_OK;
}

static void pass_fini(pass *p)
{
    tl_free(p->in);
    tl_free(p->want);
    tl_free(p->dv);
}

/* A tensor of this type filled with `value`. */
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

static tl_status collect(tl_gbuild *b, const tl_gval *grad,
                         const tl_gval *leaves, uint32_t n, tl_gval *grads,
                         bool *reached)
{
    for (uint32_t i = 0; i < n; i++) {
        tl_gval g = grad[leaves[i]];

        if (reached) {
            reached[i] = g != 0;
        }
        if (g == 0) {
            TL_TRY(filled(b, tl_gbuild_type(b, leaves[i]), 0, &g));
        }
        grads[i] = g;
    }
    return TL_OK;
}

tl_status tl_gblock_reverse(tl_gbuild *b, const tl_gblock *block,
                            tl_gval *grad, size_t ngrad)
{
    tl_span span = b->span;
    pass p;
    tl_status st = pass_init(&p, b, block, grad, ngrad);

    if (st == TL_OK) {
        st = run(&p, block);
    }
    b->span = span;
    pass_fini(&p);
    return st;
}

tl_status tl_gblock_backward(tl_gbuild *b, const tl_gblock *block,
                             tl_gval loss, tl_gval seed,
                             const tl_gval *leaves, uint32_t n,
                             tl_gval *grads, bool *reached)
{
    size_t len = b->values.len;
    tl_gval *grad = tl_calloc(len + 1, sizeof(*grad));
    tl_status st = TL_OK;

    if (!grad) {
        return tl_fail_memory(b->diag, "gradients of a block",
                              len * sizeof(*grad));
    }
    if (seed == 0) {
        TL_GOTO(st, filled(b, tl_gbuild_type(b, loss), 1, &seed));
    }
    if ((b->values.items[loss].seen & block->bit) != 0) {
        grad[loss] = seed;
        TL_GOTO(st, tl_gblock_reverse(b, block, grad, len));
    }
    st = collect(b, grad, leaves, n, grads, reached);
out:
    tl_free(grad);
    tl_gblock_forget(b, block);
    return st;
}
