/* conv.c - convolutions: shape rules and gradients.
 *
 * y = conv(x, w) is linear in x and in w.  With B(x, w, g) = sum of
 * conv(x, w) * g, conv_transpose(g, w) is dB/dx and conv_weight(x, g) dB/dw;
 * each of the three is linear in its operands, so the gradients of each are
 * the other two, and every order exists. */
#include "runtime/op/conv.h"

#include "runtime/op/emit.h"
#include "runtime/op/rules.h"

void tl_conv_attrs(tl_attrs *at, int n)
{
    tl_attrs_init(at);
    at->i[0] = 1;
    at->ndims = (uint16_t)(TL_CONV_PARTS * n);
    for (int i = 0; i < n; i++) {
        tl_conv_dims(at, TL_CONV_STRIDE)[i] = tl_dim_num(1);
        tl_conv_dims(at, TL_CONV_BEFORE)[i] = tl_dim_num(0);
        tl_conv_dims(at, TL_CONV_AFTER)[i] = tl_dim_num(0);
        tl_conv_dims(at, TL_CONV_DILATION)[i] = tl_dim_num(1);
        tl_conv_dims(at, TL_CONV_SIZE)[i] = tl_dim_num(0);
    }
}

/* ---- sizes -------------------------------------------------------------- */

/* The window of a kernel of k elements: dilation (k - 1) + 1. */
static tl_status window_size(tl_infer *cx, const tl_attrs *at, int i,
                             tl_dim k, tl_dim *out)
{
    tl_dim d = at->dims[TL_CONV_DILATION * tl_conv_axes(at) + i], one;

    one = tl_dim_num(1);
    TL_TRY(tl_dim_sub(cx->dims, k, one, &k, cx->diag));
    TL_TRY(tl_dim_mul(cx->dims, d, k, &k, cx->diag));
    return tl_dim_add(cx->dims, k, one, out, cx->diag);
}

static tl_dim padding(const tl_attrs *at, int i)
{
    return tl_dim_num(tl_conv_get(at, TL_CONV_BEFORE, i) +
                      tl_conv_get(at, TL_CONV_AFTER, i));
}

static tl_status fail_window(tl_infer *cx, const tl_attrs *at, int i,
                             tl_dim in, tl_dim k, tl_dim window,
                             tl_dim padded)
{
    tl_status st = tl_fail(
        cx->diag, TL_E0412,
        "conv%dd: a kernel of size %s with dilation %lld spans %s elements, "
        "the input has %s with its padding (size %s, padding %s) on spatial "
        "axis %d",
        tl_conv_axes(at), tl_dim_str(k).s,
        (long long)tl_conv_get(at, TL_CONV_DILATION, i),
        tl_dim_str(window).s, tl_dim_str(padded).s, tl_dim_str(in).s,
        tl_dim_str(padding(at, i)).s, i);

    tl_infer_example(cx, window, padded);
    return st;
}

/* Number of windows along spatial axis i: E0412 if there is none. */
static tl_status out_size(tl_infer *cx, const tl_attrs *at, int i, tl_dim in,
                          tl_dim k, tl_dim *out)
{
    tl_dim window, padded, room;
    tl_dim stride = at->dims[TL_CONV_STRIDE * tl_conv_axes(at) + i];
    tl_status st;

    if (tl_dim_is_num(k) && tl_dim_value(k) < 1) {
        return tl_fail(cx->diag, TL_E0412,
                       "the kernel is empty on spatial axis %d", i);
    }
    TL_TRY(window_size(cx, at, i, k, &window));
    TL_TRY(tl_dim_add(cx->dims, in, padding(at, i), &padded, cx->diag));
    st = tl_infer_may_le(cx, window, padded);
    if (st != TL_OK) {
        return st == TL_ERR_PROGRAM
                   ? fail_window(cx, at, i, in, k, window, padded)
                   : st;
    }
    TL_TRY(tl_dim_sub(cx->dims, padded, window, &room, cx->diag));
    TL_TRY(tl_dim_div(cx->dims, room, stride, &room, cx->diag));
    return tl_dim_add(cx->dims, room, tl_dim_num(1), out, cx->diag);
}

tl_status tl_conv_in_size(tl_infer *cx, const tl_attrs *at, int i, tl_dim out,
                          tl_dim k, tl_dim *in)
{
    tl_dim stride = at->dims[TL_CONV_STRIDE * tl_conv_axes(at) + i];
    tl_dim window, size;
    tl_status st;

    TL_TRY(window_size(cx, at, i, k, &window));
    TL_TRY(tl_dim_sub(cx->dims, out, tl_dim_num(1), &size, cx->diag));
    TL_TRY(tl_dim_mul(cx->dims, size, stride, &size, cx->diag));
    TL_TRY(tl_dim_add(cx->dims, size, window, &size, cx->diag));
    TL_TRY(tl_dim_sub(cx->dims, size, padding(at, i), &size, cx->diag));
    st = tl_infer_may_le(cx, tl_dim_num(1), size);
    *in = size;
    return st != TL_ERR_PROGRAM
               ? st
               : tl_fail(cx->diag, TL_E0412,
                         "conv_transpose%dd gives size %s on spatial axis "
                         "%d: (%s - 1) * stride - padding %s + window %s",
                         tl_conv_axes(at), tl_dim_str(size).s, i,
                         tl_dim_str(out).s, tl_dim_str(padding(at, i)).s,
                         tl_dim_str(window).s);
}

/* ---- channels ----------------------------------------------------------- */

tl_status tl_conv_check_ranks(tl_infer *cx, int n, bool transposed,
                              const tl_ttype *x, const tl_ttype *w)
{
    static const char *const axes[] = {"L", "H, W", "D, H, W"};
    static const char *const kernel[] = {"K", "KH, KW", "KD, KH, KW"};

    if (x->shape.rank == n + 2 && w->shape.rank == n + 2) {
        return TL_OK;
    }
    return tl_fail(cx->diag, TL_E0304,
                   "conv%s%dd needs an input [N, C, %s] or [C, %s] and a "
                   "weight [%s, %s], got %s and %s",
                   transposed ? "_transpose" : "", n, axes[n - 1],
                   axes[n - 1], transposed ? "C, O/groups" : "O, C/groups",
                   kernel[n - 1], tl_ttype_str(x).s, tl_ttype_str(w).s);
}

/* E0411 unless the groups divide the channels. */
static tl_status check_groups(tl_infer *cx, const tl_attrs *at, tl_dim n,
                              const char *which)
{
    tl_dim groups = tl_dim_num(at->i[0]), rest;
    tl_status st;

    TL_TRY(tl_dim_mod(cx->dims, n, groups, &rest, cx->diag));
    st = tl_infer_equal(cx, rest, tl_dim_num(0));
    return st != TL_ERR_PROGRAM
               ? st
               : tl_fail(cx->diag, TL_E0411,
                         "%lld groups do not divide %s %s channels",
                         (long long)at->i[0], tl_dim_str(n).s, which);
}

/* w [O, C / groups, k...] against the channels of x. */
static tl_status check_channels(tl_infer *cx, const tl_attrs *at,
                                const tl_ttype *x, const tl_ttype *w)
{
    tl_dim want;
    tl_status st;

    TL_TRY(check_groups(cx, at, x->shape.dim[1], "input"));
    TL_TRY(check_groups(cx, at, w->shape.dim[0], "output"));
    TL_TRY(tl_dim_mul(cx->dims, w->shape.dim[1], tl_dim_num(at->i[0]), &want,
                      cx->diag));
    st = tl_infer_equal(cx, want, x->shape.dim[1]);
    if (st != TL_ERR_PROGRAM) {
        return st;
    }
    st = tl_fail(cx->diag, TL_E0412,
                 "conv%dd with weight %s and %lld group%s needs %s input "
                 "channels, got %s of %s",
                 tl_conv_axes(at), tl_ttype_str(w).s, (long long)at->i[0],
                 at->i[0] == 1 ? "" : "s", tl_dim_str(want).s,
                 tl_dim_str(x->shape.dim[1]).s, tl_ttype_str(x).s);
    tl_infer_example(cx, want, x->shape.dim[1]);
    return st;
}

static tl_status join_dtypes(tl_infer *cx, tl_op op, const tl_ttype *in,
                             tl_dtype *out)
{
    return tl_op_compute_dtype(op, tl_dtype_join(in[0].dtype, in[1].dtype),
                               out, cx->diag);
}

/* ---- shape rules -------------------------------------------------------- */

tl_status tl_infer_conv(tl_infer *cx, tl_op op, const tl_ttype *in, int nin,
                        const tl_attrs *at, tl_ttype *out)
{
    const tl_shape *x = &in[0].shape, *w = &in[1].shape;
    int n = tl_conv_axes(at);
    tl_ttype res = {.shape = {.rank = n + 2}};

    (void)nin;
    TL_TRY(tl_conv_check_ranks(cx, n, false, &in[0], &in[1]));
    TL_TRY(check_channels(cx, at, &in[0], &in[1]));
    res.shape.dim[0] = x->dim[0];
    res.shape.dim[1] = w->dim[0];
    for (int i = 0; i < n; i++) {
        TL_TRY(out_size(cx, at, i, x->dim[i + 2], w->dim[i + 2],
                        &res.shape.dim[i + 2]));
    }
    TL_TRY(join_dtypes(cx, op, in, &res.dtype));
    *out = res;
    return TL_OK;
}

/* g [N, O, out...] with w [O, C / groups, k...]. */
static tl_status check_transposed(tl_infer *cx, const tl_attrs *at,
                                  const tl_ttype *g, const tl_ttype *w)
{
    tl_status st;

    TL_TRY(check_groups(cx, at, g->shape.dim[1], "input"));
    st = tl_infer_equal(cx, w->shape.dim[0], g->shape.dim[1]);
    if (st != TL_ERR_PROGRAM) {
        return st;
    }
    st = tl_fail(cx->diag, TL_E0412,
                 "conv_transpose%dd with weight %s needs %s input channels, "
                 "got %s of %s",
                 tl_conv_axes(at), tl_ttype_str(w).s,
                 tl_dim_str(w->shape.dim[0]).s,
                 tl_dim_str(g->shape.dim[1]).s, tl_ttype_str(g).s);
    tl_infer_example(cx, w->shape.dim[0], g->shape.dim[1]);
    return st;
}

tl_status tl_infer_conv_transpose(tl_infer *cx, tl_op op, const tl_ttype *in,
                                  int nin, const tl_attrs *at, tl_ttype *out)
{
    const tl_shape *g = &in[0].shape, *w = &in[1].shape;
    int n = tl_conv_axes(at);
    tl_ttype res = {.shape = {.rank = n + 2}};
    tl_dim windows;

    (void)nin;
    TL_TRY(tl_conv_check_ranks(cx, n, true, &in[0], &in[1]));
    TL_TRY(check_transposed(cx, at, &in[0], &in[1]));
    res.shape.dim[0] = g->dim[0];
    TL_TRY(tl_dim_mul(cx->dims, w->dim[1], tl_dim_num(at->i[0]),
                      &res.shape.dim[1], cx->diag));
    for (int i = 0; i < n; i++) {
        tl_dim size = at->dims[TL_CONV_SIZE * n + i];

        TL_TRY(out_size(cx, at, i, size, w->dim[i + 2], &windows));
        tl_status st = tl_infer_equal(cx, windows, g->dim[i + 2]);

        if (st != TL_OK) {
            return st != TL_ERR_PROGRAM
                       ? st
                       : tl_fail(cx->diag, TL_E0412,
                                 "a convolution of size %s gives %s, not %s",
                                 tl_dim_str(size).s, tl_dim_str(windows).s,
                                 tl_dim_str(g->dim[i + 2]).s);
        }
        res.shape.dim[i + 2] = size;
    }
    TL_TRY(join_dtypes(cx, op, in, &res.dtype));
    *out = res;
    return TL_OK;
}

/* Only gradient rules emit it, for operands that have been checked. */
tl_status tl_infer_conv_weight(tl_infer *cx, tl_op op, const tl_ttype *in,
                               int nin, const tl_attrs *at, tl_ttype *out)
{
    const tl_shape *x = &in[0].shape, *g = &in[1].shape;
    int n = tl_conv_axes(at);
    tl_ttype res = {.shape = {.rank = n + 2}};

    (void)nin;
    TL_TRY(tl_conv_check_ranks(cx, n, false, &in[0], &in[1]));
    res.shape.dim[0] = g->dim[1];
    TL_TRY(tl_dim_div(cx->dims, x->dim[1], tl_dim_num(at->i[0]),
                      &res.shape.dim[1], cx->diag));
    for (int i = 0; i < n; i++) {
        res.shape.dim[i + 2] = at->dims[TL_CONV_SIZE * n + i];
    }
    TL_TRY(join_dtypes(cx, op, in, &res.dtype));
    *out = res;
    return TL_OK;
}

/* ---- gradients ---------------------------------------------------------- */

/* Attributes with the spatial sizes of `like`. */
static tl_attrs sized(tl_emit *e, const tl_attrs *at, tl_node like)
{
    const tl_shape *s = &e->type(e, like)->shape;
    tl_attrs res;

    tl_attrs_copy(&res, at);
    for (int i = 0; i < tl_conv_axes(at); i++) {
        tl_conv_dims(&res, TL_CONV_SIZE)[i] = s->dim[i + 2];
    }
    return res;
}

static tl_status emit_sized(tl_emit *e, tl_op op, tl_node a, tl_node b,
                            const tl_attrs *at, tl_node like, tl_node *out)
{
    tl_attrs with = sized(e, at, like);

    return tl_emit2(e, op, a, b, &with, out);
}

tl_status tl_grad_conv(tl_emit *e, const tl_grad_in *gi, tl_node *dx)
{
    tl_node x = gi->in[0], w = gi->in[1], g = gi->g[0];

    if (gi->want[0]) {
        TL_TRY(emit_sized(e, TL_OP_conv_transpose, g, w, gi->at, x, &dx[0]));
    }
    return gi->want[1]
               ? emit_sized(e, TL_OP_conv_weight, x, g, gi->at, w, &dx[1])
               : TL_OK;
}

tl_status tl_grad_conv_transpose(tl_emit *e, const tl_grad_in *gi,
                                 tl_node *dx)
{
    tl_node g = gi->in[0], w = gi->in[1], up = gi->g[0];

    if (gi->want[0]) {
        TL_TRY(tl_emit2(e, TL_OP_conv, up, w, gi->at, &dx[0]));
    }
    return gi->want[1]
               ? emit_sized(e, TL_OP_conv_weight, up, g, gi->at, w, &dx[1])
               : TL_OK;
}

tl_status tl_grad_conv_weight(tl_emit *e, const tl_grad_in *gi, tl_node *dx)
{
    tl_node x = gi->in[0], g = gi->in[1], up = gi->g[0];

    if (gi->want[0]) {
        TL_TRY(emit_sized(e, TL_OP_conv_transpose, g, up, gi->at, x,
                          &dx[0]));
    }
    return gi->want[1] ? tl_emit2(e, TL_OP_conv, x, up, gi->at, &dx[1])
                       : TL_OK;
}
