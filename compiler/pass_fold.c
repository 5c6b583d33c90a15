/* pass_fold.c - what is known when the graph is made is computed.
 *
 * Host scalars of constants become constants (arithmetic that fails is left
 * to fail when the program runs), sizes that are numbers or host ints become
 * these, attributes bound to constants are plain ones; guards that hold
 * always are dropped; a branch on a constant becomes the arm that runs, a
 * loop without turns what it began with.  Of tensors only a cast of a full
 * one is folded, where the number is exact in both dtypes. */
#include <math.h>
#include <string.h>

#include "compiler/pass_impl.h"
#include "runtime/base/mem.h"
#include "runtime/op/dim_code.h"

typedef struct folder {
    tl_graph *g;
    tl_rewrite rw;
    tl_genv env;   /* known: host constants */
    bool reshaped; /* nodes were dropped or changed their region */
    tl_diag *diag;
    tl_diag quiet; /* of arithmetic that fails */
} folder;

static bool known(const folder *f, tl_gval v)
{
    return f->env.known[v] != 0;
}

static bool known_int(const folder *f, tl_gval v, int64_t want)
{
    return known(f, v) && f->env.scalar[v].i == want;
}

/* The node becomes this host constant. */
static tl_status become_num(folder *f, uint32_t node, tl_gscalar value)
{
    tl_gval out = f->g->nodes.items[node].out;

    TL_TRY(tl_rewrite_to_num(f->g, node, value, f->diag));
    f->env.scalar[out] = value;
    f->env.known[out] = 1;
    f->rw.changes++;
    return TL_OK;
}

static tl_status become_int(folder *f, uint32_t node, int64_t i)
{
    return become_num(f, node, (tl_gscalar){.i = i});
}

/* ---- host arithmetic ---------------------------------------------------- */

/* One operand that the result is whatever the other is; 0: none.  Ints and
 * bools, and x * 1.0, x / 1.0. */
static tl_gval neutral(const folder *f, const tl_gnode *n)
{
    tl_gval a = tl_goperand(f->g, n, 0);
    tl_gval b = n->nin > 1 ? tl_goperand(f->g, n, 1) : 0;
    const tl_gscalar one = {.f = 1.0};

    switch ((tl_ghost)n->op) {
    case TL_H_add_i:
        return known_int(f, b, 0) ? a : known_int(f, a, 0) ? b : 0;
    case TL_H_sub_i:
        return known_int(f, b, 0) ? a : 0;
    case TL_H_mul_i:
        return known_int(f, b, 1) ? a : known_int(f, a, 1) ? b : 0;
    case TL_H_floordiv_i:
        return known_int(f, b, 1) ? a : 0;
    case TL_H_mul_f:
        return known_int(f, b, one.i) ? a : known_int(f, a, one.i) ? b : 0;
    case TL_H_div_f:
        return known_int(f, b, one.i) ? a : 0;
    case TL_H_min_i:
    case TL_H_max_i:
        return a == b ? a : 0;
    case TL_H_and:
        return a == b || known_int(f, b, 1) ? a : known_int(f, a, 1) ? b : 0;
    case TL_H_or:
        return a == b || known_int(f, b, 0) ? a : known_int(f, a, 0) ? b : 0;
    default:
        return 0;
    }
}

/* -(-x), not not x; a conversion to the class that it is. */
static tl_gval undone(const folder *f, const tl_gnode *n)
{
    tl_gval x = tl_goperand(f->g, n, 0);
    const tl_gnode *inner = tl_gnode_of(f->g, x);
    uint8_t cls = f->g->values.items[x].cls;

    switch ((tl_ghost)n->op) {
    case TL_H_neg_f:
    case TL_H_not:
        return inner->kind == TL_G_HOST && inner->op == n->op
                   ? tl_goperand(f->g, inner, 0)
                   : 0;
    case TL_H_to_float:
        return cls == TL_GC_FLOAT ? x : 0;
    case TL_H_to_int:
        return cls == TL_GC_INT ? x : 0;
    default:
        return 0;
    }
}

static tl_gval chosen(const folder *f, const tl_gnode *n)
{
    tl_gval cond = tl_goperand(f->g, n, 0);
    tl_gval a = tl_goperand(f->g, n, 1), b = tl_goperand(f->g, n, 2);

    if (!known(f, cond)) {
        return a == b ? a : 0;
    }
    return f->env.scalar[cond].b ? a : b;
}

/* A result that no operand decides: x == x, and with false. */
static bool settled(const folder *f, const tl_gnode *n, int64_t *out)
{
    tl_gval a = tl_goperand(f->g, n, 0);
    tl_gval b = n->nin > 1 ? tl_goperand(f->g, n, 1) : 0;

    switch ((tl_ghost)n->op) {
    case TL_H_eq_i:
    case TL_H_le_i:
        *out = 1;
        return a == b;
    case TL_H_ne_i:
    case TL_H_lt_i:
        *out = 0;
        return a == b;
    case TL_H_and:
        *out = 0;
        return known_int(f, a, 0) || known_int(f, b, 0);
    case TL_H_or:
        *out = 1;
        return known_int(f, a, 1) || known_int(f, b, 1);
    default:
        return false;
    }
}

static bool all_known(const folder *f, const tl_gnode *n)
{
    for (uint32_t k = 0; k < n->nin; k++) {
        if (!known(f, tl_goperand(f->g, n, k))) {
            return false;
        }
    }
    return true;
}

static tl_status fold_host(folder *f, uint32_t node)
{
    const tl_gnode *n = &f->g->nodes.items[node];
    tl_gval same;
    int64_t value;

    if (all_known(f, n) &&
        tl_graph_host(f->g, node, &f->env, &f->quiet) == TL_OK) {
        return become_num(f, node, f->env.scalar[n->out]);
    }
    if (settled(f, n, &value)) {
        return become_int(f, node, value);
    }
    same = n->op == TL_H_choose ? chosen(f, n)
           : n->nin == 1        ? undone(f, n)
                                : neutral(f, n);
    if (same != 0) {
        tl_rewrite_value(&f->rw, n->out, same);
    }
    return TL_OK;
}

/* A size that is a number, or one host int. */
static tl_status fold_size(folder *f, uint32_t node)
{
    const tl_gnode *n = &f->g->nodes.items[node];
    uint32_t size = f->g->sizes.items[f->g->attrs.items[n->attrs].dims];
    const tl_gsize *s = &f->g->dims.items[size];
    const int64_t *code = &f->g->code.items[s->code];
    int64_t value;

    if (tl_graph_size_is_num(f->g, size, &value)) {
        return become_int(f, node, value);
    }
    if (s->len == 2 && code[0] == TL_DC_ATOM) {
        const tl_gatom *a = &f->g->atoms.items[code[1]];
        bool seen = a->kind == TL_GA_INT && a->index < n->out;

        if (seen && f->g->values.items[a->index].node != 0 &&
            tl_gnode_of(f->g, a->index)->kind == TL_G_INPUT) {
            tl_rewrite_value(&f->rw, n->out, a->index);
        }
    }
    return TL_OK;
}

/* ---- attributes --------------------------------------------------------- */

/* Bound fields whose values are known become plain ones. */
static tl_status fold_binds(folder *f, uint32_t node)
{
    tl_graph *g = f->g;
    tl_gattrs at = g->attrs.items[g->nodes.items[node].attrs];
    uint32_t dims[3 * TL_MAX_RANK], n = at.nbinds;
    tl_gbind kept[10];

    if (n == 0 || n > sizeof(kept) / sizeof(kept[0])) {
        return TL_OK;
    }
    at.nbinds = 0;
    for (uint32_t k = 0; k < n; k++) {
        tl_gbind b = g->binds.items[at.binds + k];

        if (!known(f, b.value)) {
            kept[at.nbinds++] = b;
        } else if (b.field == 'i') {
            at.i[b.index] = f->env.scalar[b.value].i;
        } else {
            at.f[b.index] = f->env.scalar[b.value].f;
        }
    }
    if (at.nbinds == n) {
        return TL_OK;
    }
    memcpy(dims, &g->sizes.items[at.dims], at.ndims * sizeof(dims[0]));
    f->rw.changes++;
    return tl_graph_attrs(g, &at, dims, kept, &g->nodes.items[node].attrs,
                          f->diag);
}

/* ---- tensors ------------------------------------------------------------ */

/* Is the number an element of this dtype, exactly and beyond doubt? */
static bool exact_in(double x, tl_dtype dtype)
{
    switch (dtype) {
    case TL_f64:
        return true;
    case TL_f32:
        return !(fabs(x) > 0x1p126) && x == (double)(float)x;
    case TL_f16:
    case TL_bf16:
        return x == trunc(x) && fabs(x) <= 256;
    case TL_bool:
        return x == 0 || x == 1;
    case TL_u8:
        return x == trunc(x) && x >= 0 && x <= 255;
    case TL_i8:
        return x == trunc(x) && fabs(x) <= 127;
    default: // i16 and wider
        return x == trunc(x) && fabs(x) <= 32767;
    }
}

/* cast(full(x)) is full(x) of the other dtype. */
static tl_status fold_cast(folder *f, uint32_t node)
{
    tl_graph *g = f->g;
    tl_gnode *n = &g->nodes.items[node];
    const tl_gnode *full = tl_gnode_of(g, tl_goperand(g, n, 0));
    tl_gattrs at = g->attrs.items[full->attrs];
    uint32_t dims[TL_MAX_RANK];
    double x;

    if (!tl_rewrite_is(full, TL_OP_full) || at.ndims > TL_MAX_RANK ||
        !tl_rewrite_uniform(g, full->out, &x) ||
        !exact_in(x, (tl_dtype)at.dtype) ||
        !exact_in(x, (tl_dtype)g->values.items[n->out].dtype)) {
        return TL_OK;
    }
    at.dtype = g->values.items[n->out].dtype;
    memset(at.i, 0, sizeof(at.i));
    memset(at.f, 0, sizeof(at.f));
    if (tl_dtype_is_float((tl_dtype)at.dtype)) {
        at.f[0] = x;
    } else {
        at.i[0] = (int64_t)x;
    }
    memcpy(dims, &g->sizes.items[at.dims], at.ndims * sizeof(dims[0]));
    TL_TRY(tl_graph_attrs(g, &at, dims, NULL, &n->attrs, f->diag));
    n->op = TL_OP_full;
    n->nin = n->in = 0;
    f->rw.changes++;
    return TL_OK;
}

/* The element of a tensor that is one known number, exactly. */
static tl_status fold_item(folder *f, uint32_t node)
{
    const tl_gnode *n = &f->g->nodes.items[node];
    tl_gval x = tl_goperand(f->g, n, 0);
    tl_dtype dtype = (tl_dtype)f->g->values.items[x].dtype;
    tl_gscalar s = {.bits = 0};
    double value;

    if (!tl_rewrite_uniform(f->g, x, &value) || !exact_in(value, dtype)) {
        return TL_OK;
    }
    switch (f->g->values.items[n->out].cls) {
    case TL_GC_FLOAT:
        s.f = value;
        break;
    case TL_GC_INT:
        if (!exact_in(value, TL_i64)) {
            return TL_OK;
        }
        s.i = (int64_t)value;
        break;
    default:
        s.b = value != 0;
        break;
    }
    return become_num(f, node, s);
}

/* ---- regions ------------------------------------------------------------ */

/* A node that is no more; compaction drops it. */
static void drop(folder *f, uint32_t node)
{
    tl_gnode *n = &f->g->nodes.items[node];

    n->kind = TL_G_NONE;
    n->op = n->nregions = n->flags = 0;
    n->nin = n->attrs = n->data = 0;
    f->reshaped = true;
}

/* All nodes inside a region, which stay behind in the one around it. */
static void drop_nodes(folder *f, uint32_t region, uint32_t owner)
{
    const tl_gregion *r = &f->g->regions.items[region];

    for (uint32_t i = r->first; i < r->last; i++) {
        drop(f, i);
        f->g->nodes.items[i].owner = owner;
    }
}

/* The arm that runs takes the place of the branch. */
static void fold_if(folder *f, uint32_t node)
{
    const tl_gnode *n = &f->g->nodes.items[node];
    tl_gval cond = tl_goperand(f->g, n, 0);
    uint32_t arm;
    const tl_gregion *r;

    if (!known(f, cond)) {
        return;
    }
    arm = n->region + (f->env.scalar[cond].b ? 0 : 1);
    r = &f->g->regions.items[arm];
    for (uint32_t k = 0; k < n->nout; k++) {
        tl_gval v = tl_rewrite_get(&f->rw,
                                   f->g->operands.items[r->results + k]);

        if (!tl_graph_same_type(f->g, n->out + k, v)) {
            return;
        }
    }
    for (uint32_t k = 0; k < n->nout; k++) {
        tl_rewrite_value(&f->rw, n->out + k,
                         f->g->operands.items[r->results + k]);
    }
    for (uint32_t i = r->first; i < r->last; i++) {
        tl_gnode *own = &f->g->nodes.items[i];

        own->owner = own->owner == arm ? n->owner : own->owner;
    }
    f->rw.changes++;
    drop_nodes(f, arm == n->region ? arm + 1 : arm - 1, n->owner);
    drop(f, node);
}

/* A loop without turns: what it began with; its count is 0.  One that stacks
 * stays, for its stacks are empty tensors. */
static tl_status fold_loop(folder *f, uint32_t node)
{
    const tl_gnode *n = &f->g->nodes.items[node];
    tl_gval turns = tl_goperand(f->g, n, 0);

    if (turns == 0 || !known(f, turns) || f->env.scalar[turns].i > 0 ||
        n->nout != 1 + n->data) {
        return TL_OK;
    }
    for (uint32_t k = 1; k < n->nout; k++) {
        if (!tl_graph_same_type(f->g, n->out + k, tl_goperand(f->g, n, k))) {
            return TL_OK;
        }
    }
    for (uint32_t k = 1; k < n->nout; k++) {
        tl_rewrite_value(&f->rw, n->out + k, tl_goperand(f->g, n, k));
    }
    for (uint32_t k = 0; k < n->nregions; k++) {
        drop_nodes(f, n->region + k, n->owner);
    }
    f->g->nodes.items[node].nregions = 0;
    f->g->nodes.items[node].nout = 1;
    f->reshaped = true;
    return become_int(f, node, 0);
}

/* ---- the pass ----------------------------------------------------------- */

static tl_status fold_node(folder *f, uint32_t node)
{
    const tl_gnode *n;

    TL_TRY(tl_rewrite_node(&f->rw, node, f->diag));
    TL_TRY(fold_binds(f, node));
    n = &f->g->nodes.items[node];
    switch (n->kind) {
    case TL_G_NUM:
        f->env.scalar[n->out].i = f->g->attrs.items[n->attrs].i[0];
        f->env.known[n->out] = 1;
        return TL_OK;
    case TL_G_SIZE:
        return fold_size(f, node);
    case TL_G_HOST:
        return fold_host(f, node);
    case TL_G_ITEM:
        return fold_item(f, node);
    case TL_G_OP:
        return n->op == TL_OP_cast ? fold_cast(f, node) : TL_OK;
    case TL_G_IF:
        fold_if(f, node);
        return TL_OK;
    case TL_G_LOOP:
        return fold_loop(f, node);
    default:
        return TL_OK;
    }
}

/* Guards that hold whatever the inputs are. */
static void drop_guards(folder *f)
{
    size_t n = 0;

    for (size_t k = 0; k < f->g->guards.len; k++) {
        tl_gguard guard = f->g->guards.items[k];
        tl_gval v = tl_rewrite_get(&f->rw, guard.value);

        if (known(f, v) && f->env.scalar[v].bits == guard.expected.bits) {
            f->rw.changes++;
        } else {
            f->g->guards.items[n++] = guard;
        }
    }
    f->g->guards.len = n;
}

static tl_status fold_all(folder *f)
{
    for (uint32_t i = 1; i < f->g->nodes.len; i++) {
        if (f->g->nodes.items[i].kind != TL_G_NONE) {
            TL_TRY(fold_node(f, i));
        }
    }
    drop_guards(f);
    return TL_OK;
}

tl_status tl_pass_fold(tl_graph *g, size_t *changes, tl_diag *diag)
{
    folder f = {.g = g, .diag = diag};
    tl_status st;

    TL_TRY(tl_rewrite_init(&f.rw, g, diag));
    tl_diag_init(&f.quiet, NULL);
    f.quiet.muted = true;
    f.env.scalar = tl_calloc(g->values.len, sizeof(*f.env.scalar));
    f.env.known = tl_calloc(g->values.len, 1);
    st = f.env.scalar && f.env.known
             ? fold_all(&f)
             : tl_fail_memory(diag, "a pass",
                              g->values.len * sizeof(*f.env.scalar));
    tl_rewrite_finish(&f.rw);
    if (st == TL_OK && f.reshaped) {
        st = tl_graph_compact(g, NULL, diag);
    }
    *changes = f.rw.changes;
    tl_free(f.env.scalar);
    tl_free(f.env.known);
    tl_diag_fini(&f.quiet);
    tl_rewrite_fini(&f.rw);
    return st;
}
