/* grad.c - gradients of elementwise rows, by their formulas, and what all
 * gradient rules share: shorthands of the emitter, un-broadcasting. */
#include "runtime/op/grad.h"
#include "runtime/base/check.h"
#include "runtime/op/formula.h"

/* ---- shorthands --------------------------------------------------------- */

tl_status tl_emit1(tl_emit *e, tl_op op, tl_node a, const tl_attrs *at,
                   tl_node *out)
{
    return e->apply(e, op, &a, 1, at, out);
}

tl_status tl_emit2(tl_emit *e, tl_op op, tl_node a, tl_node b,
                   const tl_attrs *at, tl_node *out)
{
    const tl_node in[2] = {a, b};

    return e->apply(e, op, in, 2, at, out);
}

tl_status tl_emit3(tl_emit *e, tl_op op, tl_node a, tl_node b, tl_node c,
                   tl_node *out)
{
    const tl_node in[3] = {a, b, c};

    return e->apply(e, op, in, 3, NULL, out);
}

tl_status tl_emit_const(tl_emit *e, double value, tl_dtype dtype,
                        tl_node *out)
{
    tl_attrs at;

    tl_attrs_init(&at);
    at.dtype = (uint8_t)dtype;
    at.f[0] = value;
    if (!tl_dtype_is_float(dtype)) {
        at.i[0] = (int64_t)value;
    }
    return e->apply(e, TL_OP_full, NULL, 0, &at, out);
}

tl_status tl_emit_cast(tl_emit *e, tl_node a, tl_dtype dtype, tl_node *out)
{
    tl_attrs at;

    if (e->type(e, a)->dtype == dtype) {
        *out = a;
        return TL_OK;
    }
    tl_attrs_init(&at);
    at.dtype = (uint8_t)dtype;
    return tl_emit1(e, TL_OP_cast, a, &at, out);
}

tl_status tl_emit_shaped(tl_emit *e, tl_op view, tl_node a,
                         const tl_shape *shape, tl_node *out)
{
    tl_attrs at;

    if (tl_shape_same(&e->type(e, a)->shape, shape)) {
        *out = a;
        return TL_OK;
    }
    tl_attrs_init(&at);
    at.ndims = (uint16_t)shape->rank;
    for (int i = 0; i < shape->rank; i++) {
        at.dims[i] = shape->dim[i];
    }
    return tl_emit1(e, view, a, &at, out);
}

tl_status tl_emit_reduce(tl_emit *e, tl_op op, tl_node a, uint16_t axes,
                         bool keep, tl_node *out)
{
    tl_attrs at;

    if (axes == 0 && op == TL_OP_sum) {
        *out = a;
        return TL_OK;
    }
    tl_attrs_init(&at);
    at.axes = axes;
    at.keep = keep;
    return tl_emit1(e, op, a, &at, out);
}

tl_status tl_emit_sum_to(tl_emit *e, tl_node g, const tl_shape *shape,
                         tl_node *out)
{
    const tl_shape *from = &e->type(e, g)->shape;
    int extra = from->rank - shape->rank;
    uint16_t stretched = 0;

    TL_CHECK(extra >= 0);
    for (int i = 0; i < shape->rank; i++) {
        if (tl_dim_is_one(shape->dim[i]) &&
            !tl_dim_is_one(from->dim[extra + i])) {
            stretched |= (uint16_t)(1u << i);
        }
    }
    TL_TRY(tl_emit_reduce(e, TL_OP_sum, g, (uint16_t)((1u << extra) - 1),
                          false, &g));
    return tl_emit_reduce(e, TL_OP_sum, g, stretched, true, out);
}

/* ---- elementwise rows --------------------------------------------------- */

/* The type the row computes in, and the shape of its result. */
static tl_status computed_type(tl_emit *e, const tl_grad_in *gi,
                               tl_ttype *out)
{
    tl_ttype in[3];

    for (int i = 0; i < gi->nin; i++) {
        in[i] = *e->type(e, gi->in[i]);
    }
    return tl_op_infer(e->infer, gi->op, in, gi->nin, gi->at, out);
}

/* The node as dtype `dtype` if the formula reads it. */
static tl_status operand(tl_emit *e, const tl_formula *f, char name,
                         tl_node node, tl_dtype dtype, tl_node *out)
{
    *out = NULL;
    if (!tl_formula_uses(f, name)) {
        return TL_OK;
    }
    if (e->type(e, node)->dtype == TL_bool) { /* a condition */
        *out = node;
        return TL_OK;
    }
    return tl_emit_cast(e, node, dtype, out);
}

static tl_status map_gradient(tl_emit *e, const tl_grad_in *gi,
                              const tl_formula *f, const tl_ttype *computed,
                              int which, tl_node *dx)
{
    tl_dtype dtype = tl_dtype_arith(computed->dtype);
    tl_formula_nodes names = {.dtype = dtype};
    tl_ttype type = *e->type(e, gi->in[which]);
    tl_node d;

    names.p = gi->at == NULL ? NULL : gi->at->f;
    for (int i = 0; i < gi->nin; i++) {
        TL_TRY(operand(e, f, "abc"[i], gi -> in[i], dtype, &names.in[i]));
    }
    TL_TRY(operand(e, f, 'y', gi->nout > 0 ? gi->out[0] : NULL, dtype,
                   &names.y));
    TL_TRY(operand(e, f, 'g', gi->g[0], dtype, &names.g));
    TL_TRY(tl_formula_emit(e, f, &names, &d));
    TL_TRY(tl_emit_cast(e, d, computed->dtype, &d));
    TL_TRY(tl_emit_sum_to(e, d, &type.shape, &d));
    return tl_emit_cast(e, d, type.dtype, dx);
}

static tl_status map_gradients(tl_emit *e, const tl_grad_in *gi, tl_node *dx)
{
    const tl_op_info *row = tl_op_get(gi->op);
    tl_ttype computed;
    tl_arena arena;
    tl_status st;

    tl_arena_init(&arena);
    TL_GOTO(st, computed_type(e, gi, &computed));
    for (int i = gi->nin - 1; i >= 0; i--) { /* operands from last to first */
        const tl_formula *f;

        dx[i] = NULL;
        if (!gi->want[i] || tl_op_grad_is_zero(gi->op, i) ||
            !tl_dtype_is_float(e->type(e, gi->in[i])->dtype)) {
            continue;
        }
        TL_GOTO(st,
                tl_formula_parse(&arena, row->grad[i], &f, e->infer->diag));
        TL_GOTO(st, map_gradient(e, gi, f, &computed, i, &dx[i]));
    }
out:
    tl_arena_fini(&arena);
    return st;
}

tl_status tl_op_gradient(tl_emit *e, const tl_grad_in *gi, tl_node *dx)
{
    const tl_op_info *row = tl_op_get(gi->op);

    if (!row->differentiable) {
        return tl_no_grad(e, gi, dx);
    }
    for (int i = 0; i < gi->nin; i++) {
        dx[i] = NULL;
    }
    if (row->cls == TL_CLASS_MAP) {
        return gi->g[0] == NULL ? TL_OK : map_gradients(e, gi, dx);
    }
    return row->grad_rule(e, gi, dx);
}
