/* rewrite.c - renaming values, and questions that passes ask. */
#include "compiler/rewrite.h"

#include <string.h>

#include "compiler/graph_impl.h"
#include "runtime/base/mem.h"

/* ---- renaming ----------------------------------------------------------- */

tl_status tl_rewrite_init(tl_rewrite *rw, tl_graph *g, tl_diag *diag)
{
    *rw = (tl_rewrite){.g = g, .nvalues = g->values.len};
    rw->to = tl_calloc(rw->nvalues, sizeof(*rw->to));
    return rw->to ? TL_OK
                  : tl_fail_memory(diag, "a pass",
                                   rw->nvalues * sizeof(*rw->to));
}

void tl_rewrite_fini(tl_rewrite *rw)
{
    tl_free(rw->to);
}

void tl_rewrite_value(tl_rewrite *rw, tl_gval from, tl_gval to)
{
    to = tl_rewrite_get(rw, to);
    if (from != to) {
        rw->to[from] = to;
        rw->changes++;
    }
}

/* The end of the chain, which is then one step long. */
static tl_gval find(tl_rewrite *rw, tl_gval v)
{
    tl_gval end = v;

    while (rw->to[end] != 0) {
        end = rw->to[end];
    }
    while (rw->to[v] != 0 && rw->to[v] != end) {
        tl_gval next = rw->to[v];

        rw->to[v] = end;
        v = next;
    }
    return end;
}

/* Attributes with renamed binds are other attributes. */
static tl_status rename_binds(tl_rewrite *rw, tl_gnode *n, tl_diag *diag)
{
    tl_graph *g = rw->g;
    tl_gattrs at = g->attrs.items[n->attrs];
    uint32_t dims[3 * TL_MAX_RANK], number;
    tl_gbind binds[10];
    bool renamed = false;

    if (at.nbinds > sizeof(binds) / sizeof(binds[0])) {
        return TL_OK; // more than there are fields
    }
    for (uint32_t k = 0; k < at.nbinds; k++) {
        binds[k] = g->binds.items[at.binds + k];
        binds[k].value = find(rw, binds[k].value);
        renamed |= binds[k].value != g->binds.items[at.binds + k].value;
    }
    if (!renamed) {
        return TL_OK;
    }
    memcpy(dims, &g->sizes.items[at.dims], at.ndims * sizeof(dims[0]));
    TL_TRY(tl_graph_attrs(g, &at, dims, binds, &number, diag));
    n->attrs = number;
    return TL_OK;
}

tl_status tl_rewrite_node(tl_rewrite *rw, uint32_t node, tl_diag *diag)
{
    tl_gnode *n = &rw->g->nodes.items[node];
    tl_gval *in = &rw->g->operands.items[n->in];

    if (rw->changes == 0) {
        return TL_OK;
    }
    for (uint32_t k = 0; k < n->nin; k++) {
        in[k] = find(rw, in[k]);
    }
    return rw->g->attrs.items[n->attrs].nbinds > 0
               ? rename_binds(rw, n, diag)
               : TL_OK;
}

/* A node all of whose results are other values now need not run, though it
 * might fail: what stands for them did. */
static void mark_replaced(const tl_rewrite *rw)
{
    for (uint32_t i = 1; i < rw->g->nodes.len; i++) {
        tl_gnode *n = &rw->g->nodes.items[i];
        uint32_t k = 0;

        while (k < n->nout && rw->to[n->out + k] != 0) {
            k++;
        }
        if (k == n->nout && k > 0 && n->nregions == 0) {
            n->flags |= TL_GF_LOCAL;
        }
    }
}

void tl_rewrite_finish(tl_rewrite *rw)
{
    tl_graph *g = rw->g;

    if (rw->changes == 0) {
        return;
    }
    mark_replaced(rw);
    for (size_t k = 1; k < g->operands.len; k++) {
        g->operands.items[k] = find(rw, g->operands.items[k]);
    }
    for (size_t k = 0; k < g->outputs.len; k++) {
        g->outputs.items[k] = find(rw, g->outputs.items[k]);
    }
    for (size_t k = 0; k < g->guards.len; k++) {
        g->guards.items[k].value = find(rw, g->guards.items[k].value);
    }
    for (size_t k = 1; k < g->binds.len; k++) {
        g->binds.items[k].value = find(rw, g->binds.items[k].value);
    }
    for (size_t k = 0; k < g->atoms.len; k++) {
        if (g->atoms.items[k].kind == TL_GA_INT) {
            g->atoms.items[k].index = find(rw, g->atoms.items[k].index);
        }
    }
}

/* ---- changing in place -------------------------------------------------- */

tl_status tl_rewrite_to_num(tl_graph *g, uint32_t node, tl_gscalar value,
                            tl_diag *diag)
{
    tl_gattrs at = {.axis = 0};
    uint32_t attrs;
    tl_gnode *n = &g->nodes.items[node];

    at.i[0] = value.i;
    TL_TRY(tl_graph_attrs(g, &at, NULL, NULL, &attrs, diag));
    n->kind = TL_G_NUM;
    n->op = 0;
    n->nin = n->in = n->data = 0;
    n->attrs = attrs;
    return TL_OK;
}

void tl_rewrite_operands(tl_graph *g, uint32_t node, const tl_gval *in,
                         uint32_t nin)
{
    tl_gnode *n = &g->nodes.items[node];

    for (uint32_t k = 0; k < nin; k++) {
        g->operands.items[n->in + k] = in[k];
    }
    n->nin = nin;
    n->in = nin > 0 ? n->in : 0;
}

/* ---- constants ---------------------------------------------------------- */

bool tl_rewrite_num(const tl_graph *g, tl_gval v, tl_gscalar *out)
{
    const tl_gnode *n = tl_gnode_of(g, v);

    if (n->kind != TL_G_NUM) {
        return false;
    }
    out->i = g->attrs.items[n->attrs].i[0];
    return true;
}

static double as_double(tl_gclass cls, tl_gscalar s)
{
    return cls == TL_GC_FLOAT ? s.f
           : cls == TL_GC_INT ? (double)s.i
                              : (double)s.b;
}

static bool full_value(const tl_graph *g, const tl_gnode *n, double *out)
{
    const tl_gattrs *at = &g->attrs.items[n->attrs];

    if (at->nbinds > 0) {
        return false;
    }
    *out = tl_dtype_is_float((tl_dtype)at->dtype) ? at->f[0]
                                                  : (double)at->i[0];
    return true;
}

static bool const_value(const tl_graph *g, const tl_gnode *n, double *out)
{
    const tl_gconst *c = &g->consts.items[n->data];
    const uint8_t *bytes = &g->bytes.items[c->bytes];
    tl_dtype dtype = (tl_dtype)g->values.items[n->out].dtype;
    float f32;
    int64_t i64;

    if (c->len != tl_dtype_size(dtype)) {
        return false;
    }
    switch (dtype) {
    case TL_f32:
        memcpy(&f32, bytes, sizeof(f32));
        *out = (double)f32;
        return true;
    case TL_f64:
        memcpy(out, bytes, sizeof(*out));
        return true;
    case TL_i64:
        memcpy(&i64, bytes, sizeof(i64));
        *out = (double)i64;
        return true;
    case TL_bool:
        *out = bytes[0];
        return true;
    default:
        return false;
    }
}

/* The number that fills the result; views are followed. */
bool tl_rewrite_uniform(const tl_graph *g, tl_gval v, double *out)
{
    for (;;) {
        const tl_gnode *n = tl_gnode_of(g, v);
        tl_gscalar s;

        switch (n->kind) {
        case TL_G_CONST:
            return const_value(g, n, out);
        case TL_G_SCALAR:
            v = tl_goperand(g, n, 0);
            if (!tl_rewrite_num(g, v, &s)) {
                return false;
            }
            *out = as_double((tl_gclass)g->values.items[v].cls, s);
            return true;
        case TL_G_OP:
            break;
        default:
            return false;
        }
        if (n->op == TL_OP_full) {
            return full_value(g, n, out);
        }
        if (tl_op_get((tl_op)n->op)->cls != TL_CLASS_VIEW) {
            return false;
        }
        v = tl_goperand(g, n, 0);
    }
}

/* ---- failing ------------------------------------------------------------ */

static bool host_may_fail(const tl_graph *g, const tl_gnode *n)
{
    switch ((tl_ghost)n->op) {
    case TL_H_add_i:
    case TL_H_sub_i:
    case TL_H_mul_i:
    case TL_H_neg_i:
    case TL_H_floordiv_i:
    case TL_H_mod_i:
    case TL_H_div_f:
    case TL_H_floordiv_f:
    case TL_H_mod_f:
    case TL_H_pow_f:
    case TL_H_sqrt_f:
    case TL_H_exp_f:
    case TL_H_log_f:
        return true;
    case TL_H_to_int:
        return g->values.items[tl_goperand(g, n, 0)].cls == TL_GC_FLOAT;
    default:
        return false;
    }
}

static bool op_may_fail(const tl_graph *g, const tl_gnode *n)
{
    const tl_gvalue *out = &g->values.items[n->out];

    switch ((tl_op)n->op) {
    case TL_OP_floordiv:
    case TL_OP_mod:
    case TL_OP_pow:
        return !tl_dtype_is_float((tl_dtype)out->dtype);
    case TL_OP_cast: /* nan has no int */
        return tl_dtype_kind((tl_dtype)out->dtype) == TL_KIND_INT &&
               tl_dtype_is_float((tl_dtype)g->values
                                     .items[tl_goperand(g, n, 0)].dtype);
    case TL_OP_gather:
    case TL_OP_scatter_add:
    case TL_OP_index:
    case TL_OP_index_put:
    case TL_OP_one_hot:
    case TL_OP_embedding:
    case TL_OP_cross_entropy:
    case TL_OP_bernoulli:
    case TL_OP_cholesky: /* of what is not positive definite */
    case TL_OP_solve:    /* of a singular matrix */
    case TL_OP_multinomial:
    case TL_OP_randint:
        return true;
    default:
        return false;
    }
}

bool tl_gnode_may_fail(const tl_graph *g, const tl_gnode *n)
{
    return (n->kind == TL_G_HOST && host_may_fail(g, n)) ||
           (n->kind == TL_G_OP && op_may_fail(g, n));
}
