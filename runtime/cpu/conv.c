/* conv.c - the kernels of convolutions: operands, geometry, backend.
 *
 * An operand is given to a backend row-major: other strides are copied first,
 * f16 and bf16 become f32, and a result of theirs is rounded once. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "runtime/cpu/conv.h"

#include <string.h>

#include "runtime/op/conv.h"

/* Sizes of a tensor [.., spatial...] as three axes. */
static void set_sizes(int64_t *to, const tl_tensor *t)
{
    int n = t->rank - 2;

    for (int i = 0; i < 3; i++) {
        to[i] = i < 3 - n ? 1 : t->size[i - 3 + n + 2];
    }
}

void tl_conv_geo_set(tl_conv_geo *g, const tl_tensor *x, const tl_tensor *w,
                     const tl_tensor *y, const tl_attrs *at)
{
    int n = tl_conv_axes(at);

    *g = (tl_conv_geo){.axes = n, .batch = x->size[0], .groups = at->i[0],
                       .c = w->size[1], .o = w->size[0] / at->i[0],
                       .stride = {1, 1, 1}, .dilation = {1, 1, 1}};
    set_sizes(g->in, x);
    set_sizes(g->k, w);
    set_sizes(g->out, y);
    for (int i = 0; i < n; i++) {
        g->stride[i + 3 - n] = tl_conv_get(at, TL_CONV_STRIDE, i);
        g->dilation[i + 3 - n] = tl_conv_get(at, TL_CONV_DILATION, i);
        g->before[i + 3 - n] = tl_conv_get(at, TL_CONV_BEFORE, i);
    }
}

/* The elements of `t` row-major, in f32 or f64; *copy is owned. */
static tl_status operand(tl_kernel_ctx *k, const tl_tensor *t, void **data,
                         tl_storage **copy)
{
    tl_dtype dtype = tl_dtype_arith(t->dtype);
    tl_layout row_major;

    if (dtype == t->dtype && tl_tensor_contiguous(t)) {
        *data = tl_tensor_data(t);
        return TL_OK;
    }
    TL_TRY(tl_cpu_scratch(k, t->numel, tl_dtype_size(dtype), copy));
    *data = tl_storage_data(*copy);
    if (dtype != t->dtype) {
        return tl_cpu_widen(k, t, *data);
    }
    tl_layout_row_major(&row_major, t->rank, t->size);
    tl_cpu_copy_elements(k, (int)tl_dtype_size(dtype), t->rank, t->size,
                         *data, row_major.stride, tl_tensor_data(t),
                         t->stride);
    return TL_OK;
}

#ifdef HAVE_ONEDNN
/* The gradient of an image: a block of channels would be mostly padding. */
static bool few_channels(const tl_conv *c)
{
    return c->kind == TL_CONV_DATA && c->geo.c <= 4 && c->geo.groups == 1;
}
#endif

static tl_status run(tl_kernel_ctx *k, const tl_conv *c)
{
#ifdef HAVE_ONEDNN
    if (c->dtype == TL_f32 && !few_channels(c)) {
        bool done = false;

        TL_TRY(tl_conv_onednn(k, c, &done));
        if (done) {
            return TL_OK;
        }
    }
#endif
    return tl_conv_own(k, c);
}

/* Where a and b, and the result, stand in `c`. */
static void assign(tl_conv *c, void *a, void *b, void *res)
{
    switch (c->kind) {
    case TL_CONV_FORWARD:
        c->x = a, c->w = b, c->y = res;
        break;
    case TL_CONV_DATA:
        c->y = a, c->w = b, c->x = res;
        break;
    case TL_CONV_WEIGHT:
        c->x = a, c->y = b, c->w = res;
        break;
    }
}

static tl_status convolve(tl_kernel_ctx *k, tl_conv *c, tl_tensor *const *in,
                          tl_tensor *res)
{
    tl_storage *copy[3] = {NULL, NULL, NULL};
    void *a, *b, *to = tl_tensor_data(res);
    bool narrow = c->dtype != res->dtype;
    tl_status st;

    TL_GOTO(st, operand(k, in[0], &a, &copy[0]));
    TL_GOTO(st, operand(k, in[1], &b, &copy[1]));
    if (narrow) {
        TL_GOTO(st, tl_cpu_scratch(k, res->numel, sizeof(float), &copy[2]));
        to = tl_storage_data(copy[2]);
    }
    assign(c, a, b, to);
    TL_GOTO(st, run(k, c));
    if (narrow) {
        tl_cpu_narrow(k, to, res);
    }
out:
    for (int i = 0; i < 3; i++) {
        tl_storage_unref(copy[i]);
    }
    return st;
}

/* `x`, `w`, `y` are the operands and the result in their roles. */
static tl_status kernel(tl_kernel_ctx *k, tl_conv_kind kind,
                        tl_tensor *const *in, tl_tensor *x, tl_tensor *w,
                        tl_tensor *y, tl_tensor *res, const tl_attrs *at)
{
    tl_conv c = {.kind = kind, .dtype = tl_dtype_arith(res->dtype)};

    if (res->numel == 0) {
        return TL_OK;
    }
    if (in[0]->numel == 0 || in[1]->numel == 0) { // a sum over nothing
        memset(tl_tensor_data(res), 0,
               (size_t)res->numel * tl_dtype_size(res->dtype));
        return TL_OK;
    }
    tl_conv_geo_set(&c.geo, x, w, y, at);
    return convolve(k, &c, in, res);
}

tl_status tl_cpu_conv(tl_kernel_ctx *k, tl_op op, tl_tensor *const *in,
                      int nin, tl_tensor *const *out, int nout,
                      const tl_attrs *at)
{
    (void)op;
    (void)nin;
    (void)nout;
    return kernel(k, TL_CONV_FORWARD, in, in[0], in[1], out[0], out[0], at);
}

tl_status tl_cpu_conv_transpose(tl_kernel_ctx *k, tl_op op,
                                tl_tensor *const *in, int nin,
                                tl_tensor *const *out, int nout,
                                const tl_attrs *at)
{
    (void)op;
    (void)nin;
    (void)nout;
    return kernel(k, TL_CONV_DATA, in, out[0], in[1], in[0], out[0], at);
}

tl_status tl_cpu_conv_weight(tl_kernel_ctx *k, tl_op op,
                             tl_tensor *const *in, int nin,
                             tl_tensor *const *out, int nout,
                             const tl_attrs *at)
{
    (void)op;
    (void)nin;
    (void)nout;
    return kernel(k, TL_CONV_WEIGHT, in, in[0], out[0], in[1], out[0], at);
}
