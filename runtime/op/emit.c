/* emit.c - steps that rules of structured operations share. */
#include "runtime/op/emit.h"

#include "runtime/op/view.h"

tl_status tl_emit_zeros(tl_emit *e, tl_dtype dtype, const tl_shape *shape,
                        tl_node *out)
{
    tl_attrs at;

    tl_attrs_sizes(&at, shape);
    at.dtype = (uint8_t)dtype;
    return e->apply(e, TL_OP_full, NULL, 0, &at, out);
}

tl_status tl_emit_transpose(tl_emit *e, tl_node x, tl_node *out)
{
    int rank = e->type(e, x)->shape.rank;
    tl_attrs at;

    tl_attrs_init(&at);
    at.ndims = (uint16_t)rank;
    for (int i = 0; i < rank; i++) {
        at.dims[i] = tl_dim_num(i < rank - 2 ? i : 2 * rank - 3 - i);
    }
    return tl_emit1(e, TL_OP_permute, x, &at, out);
}

static tl_status emit_axes(tl_emit *e, tl_op op, tl_node x, uint16_t axes,
                           tl_node *out)
{
    tl_attrs at;

    if (axes == 0) {
        *out = x;
        return TL_OK;
    }
    tl_attrs_init(&at);
    at.axes = axes;
    return tl_emit1(e, op, x, &at, out);
}

tl_status tl_emit_unsqueeze(tl_emit *e, tl_node x, uint16_t axes,
                            tl_node *out)
{
    return emit_axes(e, TL_OP_unsqueeze, x, axes, out);
}

tl_status tl_emit_squeeze(tl_emit *e, tl_node x, uint16_t axes, tl_node *out)
{
    return emit_axes(e, TL_OP_squeeze, x, axes, out);
}

tl_status tl_emit_slice_axis(tl_emit *e, tl_node x, int axis, tl_dim start,
                             tl_dim size, tl_node *out)
{
    tl_attrs at;

    tl_attrs_slice_all(&at, &e->type(e, x)->shape);
    at.dims[3 * axis] = start;
    at.dims[3 * axis + 1] = size;
    return tl_emit1(e, TL_OP_slice, x, &at, out);
}

tl_status tl_infer_index(tl_infer *cx, const char *what,
                         const tl_ttype *type)
{
    if (tl_dtype_kind(type->dtype) != TL_KIND_INT) {
        return tl_fail(cx->diag, TL_E0308, "%s must be an integer tensor, "
                       "got %s", what, tl_ttype_str(type).s);
    }
    return TL_OK;
}

tl_status tl_infer_by_data(tl_infer *cx, const char *why, tl_dim *out)
{
    if (cx->dims) {
        return tl_dim_fresh(cx->dims, why, out, cx->diag);
    }
    *out = tl_dim_num(-1); // TL_SIZE_BY_DATA of device.h
    return TL_OK;
}
