/* pass_view.c - views of views, and views that change nothing.
 *
 * Rewritten only where the strides come out the same: how an operand lies
 * decides the bits of a matrix product.  permute, expand and slice compute
 * strides from strides, so two of them are one.  A reshape of what is not
 * row-major may be a copy; reshape, squeeze and unsqueeze are put together
 * where the first operand is known to be row-major. */
#include <string.h>

#include "compiler/pass_impl.h"
#include "runtime/base/size.h"

/* A view, what it shows, and that value's node. */
typedef struct view {
    tl_rewrite *rw;
    tl_graph *g;
    uint32_t node;
    tl_gnode n;
    tl_gval x;
    const uint8_t *dense;
    tl_diag *diag;
} view;

static uint32_t dim_of(const tl_graph *g, const tl_gnode *n, uint32_t k)
{
    return g->sizes.items[g->attrs.items[n->attrs].dims + k];
}

/* Number k of the attributes; a view that passes for one has all of them. */
static bool number_of(const tl_graph *g, const tl_gnode *n, uint32_t k,
                      int64_t *out)
{
    return tl_graph_size_is_num(g, dim_of(g, n, k), out);
}

static uint32_t ndims_of(const tl_graph *g, const tl_gnode *n)
{
    return g->attrs.items[n->attrs].ndims;
}

static uint16_t axes_of(const tl_graph *g, const tl_gnode *n)
{
    return g->attrs.items[n->attrs].axes;
}

static bool reshapes(const tl_gnode *n)
{
    return tl_rewrite_is(n, TL_OP_reshape) ||
           tl_rewrite_is(n, TL_OP_squeeze) ||
           tl_rewrite_is(n, TL_OP_unsqueeze);
}

/* Axis that comes to place k, from 0. */
static bool permuted(const tl_graph *g, const tl_gnode *n, uint32_t k,
                     int64_t *out)
{
    uint32_t rank = ndims_of(g, n);

    if (!number_of(g, n, k, out)) {
        return false;
    }
    *out += *out < 0 ? rank : 0;
    return *out >= 0 && *out < rank;
}

/* ---- nothing ------------------------------------------------------------ */

static bool keeps_order(const view *v)
{
    int64_t axis;

    for (uint32_t k = 0; k < ndims_of(v->g, &v->n); k++) {
        if (!permuted(v->g, &v->n, k, &axis) || axis != k) {
            return false;
        }
    }
    return true;
}

static bool is_number(const tl_graph *g, uint32_t size, int64_t n)
{
    int64_t have;

    return tl_graph_size_is_num(g, size, &have) && have == n;
}

static bool slices_all(const view *v)
{
    const tl_gvalue *x = &v->g->values.items[v->x];

    for (uint32_t k = 0; k < x->rank; k++) {
        if (!is_number(v->g, dim_of(v->g, &v->n, 3 * k), 0) ||
            dim_of(v->g, &v->n, 3 * k + 1) !=
                v->g->sizes.items[x->shape + k] ||
            !is_number(v->g, dim_of(v->g, &v->n, 3 * k + 2), 1)) {
            return false;
        }
    }
    return true;
}

/* Does the view give its operand, with its strides? */
static bool is_nothing(const view *v)
{
    if (!tl_graph_same_type(v->g, v->n.out, v->x)) {
        return false;
    }
    switch ((tl_op)v->n.op) {
    case TL_OP_permute:
        return keeps_order(v);
    case TL_OP_expand:
        return true;
    case TL_OP_slice:
        return slices_all(v);
    case TL_OP_squeeze:
    case TL_OP_unsqueeze:
        return axes_of(v->g, &v->n) == 0;
    default:
        return v->dense[v->x] != 0; // reshape
    }
}

/* ---- two in one --------------------------------------------------------- */

/* Make the node the operation `op` of `y` with these sizes. */
static tl_status become(view *v, tl_op op, tl_gval y, const uint32_t *dims,
                        uint32_t ndims)
{
    tl_gattrs at = {.ndims = (uint16_t)ndims};
    uint32_t attrs;

    TL_TRY(tl_graph_attrs(v->g, &at, dims, NULL, &attrs, v->diag));
    v->g->nodes.items[v->node].op = (uint16_t)op;
    v->g->nodes.items[v->node].attrs = attrs;
    tl_rewrite_operands(v->g, v->node, &y, 1);
    v->rw->changes++;
    return TL_OK;
}

/* The result's own sizes, copied: attributes may move them. */
static tl_status become_sized(view *v, tl_op op, tl_gval y)
{
    const tl_gvalue *out = &v->g->values.items[v->n.out];
    uint32_t dims[TL_MAX_RANK];

    memcpy(dims, &v->g->sizes.items[out->shape], out->rank * sizeof(*dims));
    return become(v, op, y, dims, out->rank);
}

static tl_status join_permutes(view *v, const tl_gnode *inner, tl_gval y,
                               bool *done)
{
    uint32_t dims[TL_MAX_RANK], rank = ndims_of(v->g, &v->n);
    int64_t axis;

    for (uint32_t k = 0; k < rank; k++) {
        if (!permuted(v->g, &v->n, k, &axis) ||
            !permuted(v->g, inner, (uint32_t)axis, &axis)) {
            return TL_OK;
        }
        TL_TRY(tl_graph_size_num(v->g, axis, &dims[k], v->diag));
    }
    *done = true;
    return become(v, TL_OP_permute, y, dims, rank);
}

/* Start of a slice of a slice: a + b * step of the inner one; *ok false: it
 * would be a new expression. */
static tl_status joined_start(view *v, uint32_t a, uint32_t b, int64_t step,
                              uint32_t *out, bool *ok)
{
    int64_t x, y;
    bool numbers = tl_graph_size_is_num(v->g, a, &x) &&
                   tl_graph_size_is_num(v->g, b, &y);

    *ok = true;
    if (numbers && tl_mul_i64(&y, y, step) && tl_add_i64(&x, x, y)) {
        return tl_graph_size_num(v->g, x, out, v->diag);
    }
    *out = is_number(v->g, b, 0) ? a : b;
    *ok = !numbers && (is_number(v->g, b, 0) ||
                       (is_number(v->g, a, 0) && step == 1));
    return TL_OK;
}

static tl_status join_slices(view *v, const tl_gnode *inner, tl_gval y,
                             bool *done)
{
    uint32_t dims[3 * TL_MAX_RANK], n = ndims_of(v->g, &v->n);
    int64_t step, by;
    bool ok;

    for (uint32_t k = 0; k < n; k += 3) {
        if (!number_of(v->g, inner, k + 2, &step) ||
            !number_of(v->g, &v->n, k + 2, &by) ||
            !tl_mul_i64(&by, by, step)) {
            return TL_OK;
        }
        TL_TRY(joined_start(v, dim_of(v->g, inner, k),
                            dim_of(v->g, &v->n, k), step, &dims[k], &ok));
        if (!ok) {
            return TL_OK;
        }
        dims[k + 1] = dim_of(v->g, &v->n, k + 1);
        TL_TRY(tl_graph_size_num(v->g, by, &dims[k + 2], v->diag));
    }
    *done = true;
    return become(v, TL_OP_slice, y, dims, n);
}

/* reshape, squeeze and unsqueeze of one another. */
static tl_status join_reshapes(view *v, const tl_gnode *inner, tl_gval y,
                               bool *done)
{
    bool inverse = tl_rewrite_is(inner, TL_OP_unsqueeze) &&
                   tl_rewrite_is(&v->n, TL_OP_squeeze) &&
                   axes_of(v->g, inner) == axes_of(v->g, &v->n);

    if (!v->dense[y] && !inverse) {
        return TL_OK;
    }
    *done = true;
    if (tl_graph_same_type(v->g, v->n.out, y)) {
        tl_rewrite_value(v->rw, v->n.out, y);
        return TL_OK;
    }
    return become_sized(v, TL_OP_reshape, y);
}

/* Put the view and the one that it shows into one; *done: it has changed. */
static tl_status join(view *v, bool *done)
{
    tl_gnode inner = *tl_gnode_of(v->g, v->x);
    tl_gval y = inner.nin > 0 ? tl_goperand(v->g, &inner, 0) : 0;

    *done = false;
    if (reshapes(&v->n) && reshapes(&inner)) {
        return join_reshapes(v, &inner, y, done);
    }
    if (inner.kind != TL_G_OP || inner.op != v->n.op) {
        return TL_OK;
    }
    switch ((tl_op)v->n.op) {
    case TL_OP_permute:
        return join_permutes(v, &inner, y, done);
    case TL_OP_slice:
        return join_slices(v, &inner, y, done);
    case TL_OP_expand:
        *done = true;
        return become_sized(v, TL_OP_expand, y);
    default:
        return TL_OK;
    }
}

tl_status tl_pass_view(tl_rewrite *rw, uint32_t node, const uint8_t *dense,
                       tl_diag *diag)
{
    bool done = true;

    while (done) {
        view v = {.rw = rw, .g = rw->g, .node = node, .dense = dense,
                  .diag = diag};

        v.n = rw->g->nodes.items[node];
        v.x = tl_goperand(rw->g, &v.n, 0);
        if (tl_rewrite_get(rw, v.n.out) != v.n.out) {
            return TL_OK;
        }
        if (is_nothing(&v)) {
            tl_rewrite_value(rw, v.n.out, v.x);
            return TL_OK;
        }
        TL_TRY(join(&v, &done));
    }
    return TL_OK;
}
