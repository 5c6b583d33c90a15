/* sort.c - order along an axis.
 *
 *   sort    values and indices (i64), stable; attrs.flag: descending
 *   topk    the dims[0] largest (attrs.flag: smallest), largest first, and
 *           their indices; of equals the first ones
 *   unique  the distinct elements, ascending; for each element of x its place
 *           among them; how often each occurs.  With `flag` parts along axis 0
 *           are compared, from their first element on
 *
 * nan counts as larger than every number. */
#include "runtime/op/emit.h"
#include "runtime/op/rules.h"

static tl_status check_axis(tl_infer *cx, tl_op op, const tl_ttype *in,
                            int axis)
{
    if (axis < 0 || axis >= in->shape.rank) {
        return tl_fail(cx->diag, TL_E0309, "`%s` of %s along axis %d",
                       tl_op_get(op)->name, tl_ttype_str(in).s, axis);
    }
    return TL_OK;
}

tl_status tl_infer_sort(tl_infer *cx, tl_op op, const tl_ttype *in, int nin,
                        const tl_attrs *at, tl_ttype *out)
{
    (void)nin;
    TL_TRY(check_axis(cx, op, in, at->axis));
    out[0] = *in;
    out[1] = (tl_ttype){TL_i64, in->shape};
    return TL_OK;
}

tl_status tl_infer_topk(tl_infer *cx, tl_op op, const tl_ttype *in, int nin,
                        const tl_attrs *at, tl_ttype *out)
{
    tl_shape shape = in->shape;
    tl_dim k = at->dims[0];
    bool fits;

    (void)nin;
    TL_TRY(check_axis(cx, op, in, at->axis));
    if (tl_dim_is_num(k) && tl_dim_value(k) < 0) {
        return tl_fail(cx->diag, TL_E0306, "size must be at least 0, got "
                       "%lld", (long long)tl_dim_value(k));
    }
    TL_TRY(tl_infer_answer(tl_infer_le(cx, k, shape.dim[at->axis]), &fits));
    if (!fits) {
        return tl_fail(cx->diag, TL_E0415, "k %s, dimension %s",
                       tl_dim_str(k).s, tl_dim_str(shape.dim[at->axis]).s);
    }
    shape.dim[at->axis] = k;
    out[0] = (tl_ttype){in->dtype, shape};
    out[1] = (tl_ttype){TL_i64, shape};
    return TL_OK;
}

/* Back to where the values came from. */
tl_status tl_grad_sort(tl_emit *e, const tl_grad_in *gi, tl_node *dx)
{
    tl_shape shape = e->type(e, gi->in[0])->shape;
    tl_node in[3] = {NULL, gi->out[1], gi->g[0]};

    if (!gi->g[0]) {
        return TL_OK;
    }
    TL_TRY(tl_emit_zeros(e, e->type(e, gi->g[0])->dtype, &shape, &in[0]));
    return e->apply(e, TL_OP_scatter_add, in, 3, gi->at, &dx[0]);
}

tl_status tl_infer_unique(tl_infer *cx, tl_op op, const tl_ttype *in, int nin,
                          const tl_attrs *at, tl_ttype *out)
{
    tl_ttype res = {in->dtype, {.rank = 1}};

    tl_ttype where = {TL_i64, in->shape};
    tl_ttype many;

    (void)nin;
    TL_TRY(tl_infer_by_data(cx, "unique", &res.shape.dim[0]));
    many = (tl_ttype){TL_i64, res.shape};
    if (at != NULL && at->flag) {
        TL_TRY(check_axis(cx, op, in, 0));
        res.shape.rank = in->shape.rank;
        where.shape.rank = 1;
        for (int i = 1; i < in->shape.rank; i++) {
            res.shape.dim[i] = in->shape.dim[i];
        }
    }
    out[0] = res;
    out[1] = where;
    out[2] = many;
    return TL_OK;
}
