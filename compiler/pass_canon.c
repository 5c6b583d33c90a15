/* pass_canon.c - canonical forms: operations that give what is there already
 * are left out, compositions become one operation.
 *
 * Every rule keeps each bit of each result (NaN payloads apart), zeros of
 * either sign, infinities and ints that wrap included.  It also keeps how
 * results lie in memory, since that decides the bits of matrix products: an
 * operation gives a row-major result, so its operand may stand for it only if
 * it is known to be row-major (`dense`). */
#include <math.h>
#include <string.h>

#include "compiler/pass_impl.h"
#include "runtime/base/mem.h"

typedef struct canon {
    tl_graph *g;
    tl_rewrite rw;
    uint8_t *dense; /* by value: known to be row-major */
    tl_diag *diag;
} canon;

/* The node that makes operand `k`, if it is the operation `op`. */
static const tl_gnode *made_by(const canon *c, const tl_gnode *n, uint32_t k,
                               tl_op op)
{
    const tl_gnode *m = tl_gnode_of(c->g, tl_goperand(c->g, n, k));

    return tl_rewrite_is(m, op) ? m : NULL;
}

/* Let `v` stand for the result, if type and layout are the same. */
static void stand_in(canon *c, const tl_gnode *n, tl_gval v)
{
    if (c->dense[v] && tl_graph_same_type(c->g, n->out, v)) {
        tl_rewrite_value(&c->rw, n->out, v);
    }
}

/* The node becomes `op` of these operands, without attributes. */
static void become(canon *c, uint32_t node, tl_op op, const tl_gval *in,
                   uint32_t nin)
{
    tl_rewrite_operands(c->g, node, in, nin);
    c->g->nodes.items[node].op = (uint16_t)op;
    c->g->nodes.items[node].attrs = 0;
    c->rw.changes++;
}

static tl_dtype dtype_of(const canon *c, tl_gval v)
{
    return (tl_dtype)c->g->values.items[v].dtype;
}

/* ---- casts -------------------------------------------------------------- */

/* Bits of an integer's or a float's significand, without a sign. */
static int precision(tl_dtype d)
{
    static const int bits[TL_DTYPE_COUNT] = {
        [TL_bool] = 1, [TL_u8] = 8,    [TL_i8] = 7,   [TL_i16] = 15,
        [TL_i32] = 31, [TL_i64] = 63,  [TL_bf16] = 8, [TL_f16] = 11,
        [TL_f32] = 24, [TL_f64] = 53};

    return bits[d];
}

/* Does every value of `a` exist in `b`? */
static bool holds(tl_dtype a, tl_dtype b)
{
    bool fa = tl_dtype_is_float(a), fb = tl_dtype_is_float(b);

    if (a == b) {
        return true;
    }
    if (b == TL_bool || precision(a) > precision(b) || (fa && !fb)) {
        return false;
    }
    if (fa) { // the exponents of f16 and bf16 differ
        return b == TL_f32 || b == TL_f64;
    }
    return fb || b != TL_u8 || a == TL_bool;
}

/* Is casting a -> b -> c the same as a -> c, where b holds a?  Not from
 * floats that hold an int to another int: what does not fit wraps as an int
 * and is undefined as a float. */
static bool through(tl_dtype a, tl_dtype b, tl_dtype c)
{
    return holds(a, b) && (tl_dtype_is_float(c) || !tl_dtype_is_float(b) ||
                           c == a);
}

static void canon_cast(canon *c, uint32_t node)
{
    const tl_gnode *n = &c->g->nodes.items[node];
    tl_gval x = tl_goperand(c->g, n, 0), y;
    const tl_gnode *inner = made_by(c, n, 0, TL_OP_cast);

    if (dtype_of(c, x) == dtype_of(c, n->out)) { // nothing, layout included
        tl_rewrite_value(&c->rw, n->out, x);
        return;
    }
    y = inner ? tl_goperand(c->g, inner, 0) : 0;
    if (!inner ||
        !through(dtype_of(c, y), dtype_of(c, x), dtype_of(c, n->out))) {
        return;
    }
    if (dtype_of(c, y) == dtype_of(c, n->out)) {
        stand_in(c, n, y);
    } else {
        tl_rewrite_operands(c->g, node, &y, 1);
        c->rw.changes++;
    }
}

/* ---- arithmetic --------------------------------------------------------- */

/* Is the operand everywhere this number, and a zero of this sign? */
static bool is_all(const canon *c, tl_gval v, double want)
{
    double have;

    return tl_rewrite_uniform(c->g, v, &have) && have == want &&
           (want != 0 || !tl_dtype_is_float(dtype_of(c, v)) ||
            signbit(have) == signbit(want));
}

static void canon_mul(canon *c, uint32_t node)
{
    const tl_gnode *n = &c->g->nodes.items[node];

    for (uint32_t k = 0; k < 2; k++) {
        tl_gval x = tl_goperand(c->g, n, 1 - k);
        tl_gval factor = tl_goperand(c->g, n, k);

        if (is_all(c, factor, 1)) {
            stand_in(c, n, x);
            return;
        }
        if (is_all(c, factor, -1) && tl_graph_same_type(c->g, n->out, x)) {
            become(c, node, TL_OP_neg, &x, 1);
            return;
        }
    }
}

/* a + (-b), (-a) + b, a - (-b). */
static void canon_sum(canon *c, uint32_t node)
{
    const tl_gnode *n = &c->g->nodes.items[node];
    tl_op other = n->op == TL_OP_add ? TL_OP_sub : TL_OP_add;
    tl_gval a = tl_goperand(c->g, n, 0), b = tl_goperand(c->g, n, 1);
    const tl_gnode *neg = made_by(c, n, 1, TL_OP_neg);

    if (neg) {
        become(c, node, other,
               (tl_gval[]){a, tl_goperand(c->g, neg, 0)}, 2);
        return;
    }
    neg = made_by(c, n, 0, TL_OP_neg);
    if (neg && n->op == TL_OP_add) {
        become(c, node, TL_OP_sub,
               (tl_gval[]){b, tl_goperand(c->g, neg, 0)}, 2);
    }
}

/* x + -0.0, x - 0.0; x + 0.0 is not x where x is -0.0. */
static void canon_add(canon *c, uint32_t node)
{
    const tl_gnode *n = &c->g->nodes.items[node];
    tl_gval a = tl_goperand(c->g, n, 0), b = tl_goperand(c->g, n, 1);
    double zero = n->op == TL_OP_add ? -0.0 : 0.0;

    if (is_all(c, b, zero)) {
        stand_in(c, n, a);
    } else if (n->op == TL_OP_add && is_all(c, a, zero)) {
        stand_in(c, n, b);
    } else {
        canon_sum(c, node);
    }
}

/* -(-x), not not x, and what does nothing the second time. */
static void canon_twice(canon *c, uint32_t node)
{
    const tl_gnode *n = &c->g->nodes.items[node];
    const tl_gnode *inner = made_by(c, n, 0, (tl_op)n->op);

    if (!inner) {
        return;
    }
    if (n->op == TL_OP_neg || n->op == TL_OP_not) {
        stand_in(c, n, tl_goperand(c->g, inner, 0));
    } else {
        stand_in(c, n, inner->out);
    }
}

/* |-x|, (-x) ** 2; the absolute value of an unsigned -x is what it wraps
 * to. */
static void canon_even(canon *c, uint32_t node)
{
    const tl_gnode *n = &c->g->nodes.items[node];
    const tl_gnode *neg = made_by(c, n, 0, TL_OP_neg);

    if (neg && (n->op == TL_OP_square || dtype_of(c, n->out) != TL_u8)) {
        become(c, node, (tl_op)n->op,
               (tl_gval[]){tl_goperand(c->g, neg, 0)}, 1);
    }
}

static void canon_where(canon *c, uint32_t node)
{
    const tl_gnode *n = &c->g->nodes.items[node];
    tl_gval b = tl_goperand(c->g, n, 1), x = tl_goperand(c->g, n, 2);
    double cond;

    if (b == x) {
        stand_in(c, n, b);
    } else if (tl_rewrite_uniform(c->g, tl_goperand(c->g, n, 0), &cond)) {
        stand_in(c, n, cond != 0 ? b : x);
    }
}

static tl_status canon_op(canon *c, uint32_t node)
{
    const tl_gnode *n = &c->g->nodes.items[node];

    if (tl_op_get((tl_op)n->op)->cls == TL_CLASS_VIEW) {
        return tl_pass_view(&c->rw, node, c->dense, c->diag);
    }
    switch ((tl_op)n->op) {
    case TL_OP_cast:
        canon_cast(c, node);
        break;
    case TL_OP_mul:
        canon_mul(c, node);
        break;
    case TL_OP_div:
        if (is_all(c, tl_goperand(c->g, n, 1), 1)) {
            stand_in(c, n, tl_goperand(c->g, n, 0));
        }
        break;
    case TL_OP_add:
    case TL_OP_sub:
        canon_add(c, node);
        break;
    case TL_OP_neg:
    case TL_OP_not:
    case TL_OP_relu:
    case TL_OP_floor:
    case TL_OP_ceil:
    case TL_OP_round:
        canon_twice(c, node);
        break;
    case TL_OP_abs:
    case TL_OP_square:
        canon_even(c, node);
        break;
    case TL_OP_where:
        canon_where(c, node);
        break;
    case TL_OP_maximum:
    case TL_OP_minimum:
        if (tl_goperand(c->g, n, 0) == tl_goperand(c->g, n, 1)) {
            stand_in(c, n, tl_goperand(c->g, n, 0));
        }
        break;
    case TL_OP_copy:
        stand_in(c, n, tl_goperand(c->g, n, 0));
        break;
    default:
        break;
    }
    return TL_OK;
}

/* ---- host scalars ------------------------------------------------------- */

/* The element of a host scalar's own tensor, in a dtype that holds it. */
static void canon_item(canon *c, const tl_gnode *n)
{
    static const tl_dtype exact[] = {TL_DTYPE_COUNT, TL_i64, TL_f64, TL_bool};
    tl_gval x = tl_goperand(c->g, n, 0), h;
    const tl_gnode *scalar = tl_gnode_of(c->g, x);

    if (scalar->kind != TL_G_SCALAR) {
        return;
    }
    h = tl_goperand(c->g, scalar, 0);
    if (tl_graph_same_type(c->g, h, n->out) &&
        dtype_of(c, x) == exact[c->g->values.items[h].cls]) {
        tl_rewrite_value(&c->rw, n->out, h);
    }
}

/* ---- regions ------------------------------------------------------------ */

static tl_gval result_of(const canon *c, uint32_t region, uint32_t k)
{
    const tl_gregion *r = &c->g->regions.items[region];

    return tl_rewrite_get(&c->rw, c->g->operands.items[r->results + k]);
}

/* A result that is one value in both arms, hence from outside, is that. */
static void canon_if(canon *c, const tl_gnode *n)
{
    for (uint32_t k = 0; k < n->nout; k++) {
        tl_gval v = result_of(c, n->region, k);

        if (v == result_of(c, n->region + 1, k) &&
            tl_graph_same_type(c->g, n->out + k, v)) {
            tl_rewrite_value(&c->rw, n->out + k, v);
        }
    }
}

/* What the body carries on unchanged is what the loop began with. */
static void canon_loop(canon *c, const tl_gnode *n)
{
    uint32_t body = n->region + n->nregions - 1u;

    for (uint32_t k = 0; k < n->data; k++) {
        tl_gval init = tl_goperand(c->g, n, 1 + k);
        tl_gval param = c->g->regions.items[body].params + 1 + k;

        if (result_of(c, body, k) != param ||
            !tl_graph_same_type(c->g, init, param) ||
            !tl_graph_same_type(c->g, init, n->out + 1 + k)) {
            continue;
        }
        if (n->nregions == 2) {
            tl_rewrite_value(&c->rw, c->g->regions.items[n->region].params + k,
                             init);
        }
        tl_rewrite_value(&c->rw, param, init);
        tl_rewrite_value(&c->rw, n->out + 1 + k, init);
    }
}

/* ---- layouts ------------------------------------------------------------ */

/* Does the slice keep all axes whole but the first, without steps? */
static bool slices_rows(const canon *c, const tl_gnode *n)
{
    const tl_graph *g = c->g;
    const tl_gvalue *x = &g->values.items[tl_goperand(g, n, 0)];
    const uint32_t *dims = &g->sizes.items[g->attrs.items[n->attrs].dims];
    int64_t start, step;

    for (uint32_t k = 0; k < x->rank; k++) {
        if (!tl_graph_size_is_num(g, dims[3 * k + 2], &step) || step != 1) {
            return false;
        }
        if (k > 0 && (dims[3 * k + 1] != g->sizes.items[x->shape + k] ||
                      !tl_graph_size_is_num(g, dims[3 * k], &start) ||
                      start != 0)) {
            return false;
        }
    }
    return true;
}

static bool dense_op(const canon *c, const tl_gnode *n)
{
    tl_gval x;

    if (tl_op_get((tl_op)n->op)->cls != TL_CLASS_VIEW) {
        return true;
    }
    x = tl_goperand(c->g, n, 0);
    switch ((tl_op)n->op) {
    case TL_OP_reshape:
    case TL_OP_squeeze:
    case TL_OP_unsqueeze:
        return c->dense[x] != 0;
    case TL_OP_slice:
        return c->dense[x] && slices_rows(c, n);
    default:
        return false;
    }
}

static void set_dense(canon *c, const tl_gnode *n)
{
    for (uint32_t k = 0; k < n->nout; k++) {
        tl_gval v = n->out + k;
        bool dense;

        switch (n->kind) {
        case TL_G_OP:
            dense = dense_op(c, n);
            break;
        case TL_G_MAPGRAD:
        case TL_G_CONST:
            dense = true;
            break;
        case TL_G_IF:
            dense = c->dense[result_of(c, n->region, k)] &&
                    c->dense[result_of(c, n->region + 1, k)];
            break;
        default:
            dense = false;
            break;
        }
        c->dense[v] = dense || c->g->values.items[v].rank == 0;
    }
}

/* ---- the pass ----------------------------------------------------------- */

static tl_status canon_node(canon *c, uint32_t node)
{
    const tl_gnode *n;

    TL_TRY(tl_rewrite_node(&c->rw, node, c->diag));
    n = &c->g->nodes.items[node];
    switch (n->kind) {
    case TL_G_OP:
        TL_TRY(canon_op(c, node));
        break;
    case TL_G_ITEM:
        canon_item(c, n);
        break;
    case TL_G_IF:
        canon_if(c, n);
        break;
    case TL_G_LOOP:
        canon_loop(c, n);
        break;
    default:
        break;
    }
    set_dense(c, &c->g->nodes.items[node]);
    return TL_OK;
}

tl_status tl_pass_canon(tl_graph *g, size_t *changes, tl_diag *diag)
{
    canon c = {.g = g, .diag = diag};
    tl_status st;

    TL_TRY(tl_rewrite_init(&c.rw, g, diag));
    c.dense = tl_calloc(g->values.len, 1);
    st = c.dense ? TL_OK : tl_fail_memory(diag, "a pass", g->values.len);
    for (uint32_t i = 1; st == TL_OK && i < g->nodes.len; i++) {
        st = canon_node(&c, i);
    }
    if (st == TL_OK) {
        tl_rewrite_finish(&c.rw);
    }
    *changes = c.rw.changes;
    tl_free(c.dense);
    tl_rewrite_fini(&c.rw);
    return st;
}
