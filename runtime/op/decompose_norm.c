/* decompose_norm.c - normalisations taken apart into elementary operations.
 *
 * Every step is the one that the region's kernel makes, in its order. */
#include "runtime/op/channels.h"
#include "runtime/op/decompose.h"
#include "runtime/op/emit.h"

/* 1 / sqrt(v + eps) */
static tl_status emit_rstd(tl_emit *e, tl_node v, double eps, tl_dtype dtype,
                           tl_node *rstd)
{
    tl_node c;

    TL_TRY(tl_emit_const(e, eps, dtype, &c));
    TL_TRY(tl_emit2(e, TL_OP_add, v, c, NULL, &v));
    return tl_emit1(e, TL_OP_rsqrt, v, NULL, rstd);
}

/* The variance over `axes`, which are kept. */
static tl_status emit_var(tl_emit *e, tl_node x, uint16_t axes,
                          double correction, tl_node *var)
{
    tl_attrs at;

    tl_attrs_init(&at);
    at.axes = axes;
    at.keep = true;
    at.f[0] = correction;
    return tl_emit1(e, TL_OP_var, x, &at, var);
}

/* x^ = (x - mean) rstd over `axes`; both statistics with the axes kept. */
static tl_status emit_centred(tl_emit *e, tl_node x, uint16_t axes,
                              double eps, tl_dtype dtype, tl_node *xhat,
                              tl_node *mean, tl_node *rstd)
{
    tl_node var;

    TL_TRY(tl_emit_reduce(e, TL_OP_mean, x, axes, true, mean));
    TL_TRY(emit_var(e, x, axes, 0, &var));
    TL_TRY(emit_rstd(e, var, eps, dtype, rstd));
    TL_TRY(tl_emit2(e, TL_OP_sub, x, *mean, NULL, xhat));
    return tl_emit2(e, TL_OP_mul, *xhat, *rstd, NULL, xhat);
}

/* y w + b; `spread`: axes of size 1 that weights get. */
static tl_status emit_affine(tl_emit *e, const tl_node *in, int nin,
                             bool bias_alone, tl_dtype dtype, uint16_t spread,
                             tl_node *y)
{
    for (int i = 1; i < nin; i++) {
        bool bias = i == 2 || (nin == 2 && bias_alone);
        tl_node w;

        TL_TRY(tl_emit_cast(e, in[i], dtype, &w));
        TL_TRY(tl_emit_unsqueeze(e, w, spread, &w));
        TL_TRY(tl_emit2(e, bias ? TL_OP_add : TL_OP_mul, *y, w, NULL, y));
    }
    return TL_OK;
}

/* The last `n` of `rank` axes. */
static uint16_t last_axes(int rank, int n)
{
    return (uint16_t)(((1u << n) - 1) << (rank - n));
}

tl_status tl_decompose_layer_norm(tl_emit *e, const tl_node *in, int nin,
                                  const tl_attrs *at, tl_node *out)
{
    tl_ttype type = *e->type(e, in[0]);
    uint16_t set = last_axes(type.shape.rank, (int)at->i[0]);
    tl_dtype dtype = tl_dtype_arith(type.dtype);
    tl_node x, y, mean, rstd;

    TL_TRY(tl_emit_cast(e, in[0], dtype, &x));
    TL_TRY(emit_centred(e, x, set, at->f[0], dtype, &y, &mean, &rstd));
    TL_TRY(emit_affine(e, in, nin, at->flag, dtype, 0, &y));
    TL_TRY(tl_emit_squeeze(e, mean, set, &out[1]));
    TL_TRY(tl_emit_squeeze(e, rstd, set, &out[2]));
    return tl_emit_cast(e, y, type.dtype, &out[0]);
}

tl_status tl_decompose_rms_norm(tl_emit *e, const tl_node *in, int nin,
                                const tl_attrs *at, tl_node *out)
{
    tl_ttype type = *e->type(e, in[0]);
    uint16_t set = last_axes(type.shape.rank, (int)at->i[0]);
    tl_dtype dtype = tl_dtype_arith(type.dtype);
    tl_node x, y, rstd;

    TL_TRY(tl_emit_cast(e, in[0], dtype, &x));
    TL_TRY(tl_emit2(e, TL_OP_mul, x, x, NULL, &y));
    TL_TRY(tl_emit_reduce(e, TL_OP_mean, y, set, true, &y));
    TL_TRY(emit_rstd(e, y, at->f[0], dtype, &rstd));
    TL_TRY(tl_emit2(e, TL_OP_mul, x, rstd, NULL, &y));
    TL_TRY(emit_affine(e, in, nin, false, dtype, 0, &y));
    TL_TRY(tl_emit_squeeze(e, rstd, set, &out[1]));
    return tl_emit_cast(e, y, type.dtype, &out[0]);
}

tl_status tl_decompose_batch_norm(tl_emit *e, const tl_node *in, int nin,
                                  const tl_attrs *at, tl_node *out)
{
    tl_ttype type = *e->type(e, in[0]);
    int rank = type.shape.rank;
    uint16_t set = (uint16_t)(((1u << rank) - 1) & ~2u);
    tl_dtype dtype = tl_dtype_arith(type.dtype);
    tl_node x, y, mean, rstd, var;

    TL_TRY(tl_emit_cast(e, in[0], dtype, &x));
    TL_TRY(emit_centred(e, x, set, at->f[0], dtype, &y, &mean, &rstd));
    TL_TRY(emit_var(e, x, set, 1, &var));
    TL_TRY(emit_affine(e, in, nin, at->flag, dtype,
                       last_axes(rank - 1, rank - 2), &y));
    TL_TRY(tl_emit_squeeze(e, mean, set, &out[1]));
    TL_TRY(tl_emit_squeeze(e, rstd, set, &out[2]));
    TL_TRY(tl_emit_squeeze(e, var, set, &out[3]));
    return tl_emit_cast(e, y, type.dtype, &out[0]);
}

tl_status tl_decompose_group_norm(tl_emit *e, const tl_node *in, int nin,
                                  const tl_attrs *at, tl_node *out)
{
    tl_ttype type = *e->type(e, in[0]);
    int rank = type.shape.rank;
    tl_dtype dtype = tl_dtype_arith(type.dtype);
    tl_shape rows;
    tl_node x, y, mean, rstd;

    TL_TRY(tl_group_rows(e->infer, &type.shape, at->i[0], &rows));
    TL_TRY(tl_emit_cast(e, in[0], dtype, &x));
    TL_TRY(tl_emit_shaped(e, TL_OP_reshape, x, &rows, &x));
    TL_TRY(emit_centred(e, x, 4, at->f[0], dtype, &y, &mean, &rstd));
    TL_TRY(tl_emit_shaped(e, TL_OP_reshape, y, &type.shape, &y));
    TL_TRY(emit_affine(e, in, nin, at->flag, dtype,
                       last_axes(rank - 1, rank - 2), &y));
    TL_TRY(tl_emit_squeeze(e, mean, 4, &out[1]));
    TL_TRY(tl_emit_squeeze(e, rstd, 4, &out[2]));
    return tl_emit_cast(e, y, type.dtype, &out[0]);
}
