/* bi_conv.c - conv1d .. conv3d and conv_transpose1d .. 3d.
 *
 * The rows conv and conv_transpose have neither bias nor names for padding:
 * both are made here, the bias as an addition of its own. */
#include <string.h>

#include "interp/bi_tensor.h"
#include "interp/builtin_fns.h"
#include "interp/container.h"
#include "runtime/op/conv.h"

/* The number of spatial axes stands in the name: "conv2d". */
static int axes_of(const tl_builtin *self)
{
    return self->name[strlen(self->name) - 2] - '0';
}

/* An int for all spatial axes, or a list of one for each; E0409 or E0410
 * (`code`) below `least`. */
static tl_status spatial(tl_eval *ev, const char *what, tl_value v, int n,
                         int64_t least, tl_code code, int64_t *out)
{
    bool list = v.tag == TL_V_LIST || v.tag == TL_V_TUPLE;

    if (list && v.seq->len != (size_t)n) {
        return tl_fail(ev->diag, code,
                       "%s must be an int or %d of them, got %zu", what, n,
                       v.seq->len);
    }
    for (int i = 0; i < n; i++) {
        out[i] = list ? v.seq->items[i].i : v.i;
        if (out[i] < least || out[i] > INT32_MAX) {
            (void)tl_fail(ev->diag, code,
                          "%s must be >= %lld%s in each of %d dimension%s, "
                          "got %lld",
                          what, (long long)least,
                          out[i] < least ? "" : " and below 2^31", n,
                          n == 1 ? "" : "s", (long long)out[i]);
            if (code == TL_E0410) {
                tl_diag_help(ev->diag, "a slice leaves elements out: x[.., "
                                       "1:-1]");
            }
            return TL_ERR_PROGRAM;
        }
    }
    return TL_OK;
}

/* What the built-ins have in common. */
typedef struct conv_args {
    int n;
    bool transposed;
    tl_value x, w, b;        /* of args; b may be NONE */
    tl_value stride, dilation, pad, extra;
    int64_t groups;
} conv_args;

static tl_status set_numbers(tl_eval *ev, const conv_args *a, tl_attrs *at)
{
    int64_t stride[TL_CONV_AXES], dilation[TL_CONV_AXES];

    tl_conv_attrs(at, a->n);
    TL_TRY(spatial(ev, "stride", a->stride, a->n, 1, TL_E0409, stride));
    TL_TRY(spatial(ev, "dilation", a->dilation, a->n, 1, TL_E0409,
                   dilation));
    if (a->groups < 1) {
        return tl_fail(ev->diag, TL_E0411, "groups must be >= 1, got %lld",
                       (long long)a->groups);
    }
    at->i[0] = a->groups;
    for (int i = 0; i < a->n; i++) {
        tl_conv_dims(at, TL_CONV_STRIDE)[i] = tl_dim_num(stride[i]);
        tl_conv_dims(at, TL_CONV_DILATION)[i] = tl_dim_num(dilation[i]);
    }
    return TL_OK;
}

/* pad="same": as many windows of stride 1 as elements; what does not halve
 * goes to the end. */
static tl_status pad_same(tl_eval *ev, const conv_args *a, const tl_ttype *w,
                          tl_attrs *at)
{
    for (int i = 0; i < a->n; i++) {
        tl_dim k = w->shape.dim[w->shape.rank - a->n + i];
        int64_t total;

        if (tl_conv_get(at, TL_CONV_STRIDE, i) != 1) {
            return tl_fail(ev->diag, TL_E0410,
                           "pad=\"same\" needs stride 1, got %lld",
                           (long long)tl_conv_get(at, TL_CONV_STRIDE, i));
        }
        TL_TRY(tl_pin_size(ev, &k));
        if (!tl_dim_is_num(k)) {
            return tl_fail(ev->diag, TL_E0410,
                           "pad=\"same\" needs a kernel of known size, got "
                           "%s", tl_ttype_str(w).s);
        }
        total = (tl_dim_value(k) - 1) * tl_conv_get(at, TL_CONV_DILATION, i);
        total = total < 0 ? 0 : total;
        tl_conv_dims(at, TL_CONV_BEFORE)[i] = tl_dim_num(total / 2);
        tl_conv_dims(at, TL_CONV_AFTER)[i] = tl_dim_num(total - total / 2);
    }
    return TL_OK;
}

static tl_status set_padding(tl_eval *ev, const conv_args *a,
                             const tl_ttype *w, tl_attrs *at)
{
    int64_t pad[TL_CONV_AXES];

    if (a->pad.tag == TL_V_STR && !a->transposed) {
        if (strcmp(a->pad.str->data, "same") == 0) {
            return pad_same(ev, a, w, at);
        }
        return strcmp(a->pad.str->data, "valid") == 0
                   ? TL_OK
                   : tl_fail(ev->diag, TL_E0410,
                             "pad is an int, %d ints, \"same\" or \"valid\"; "
                             "got \"%s\"", a->n, a->pad.str->data);
    }
    TL_TRY(spatial(ev, "padding", a->pad, a->n, 0, TL_E0410, pad));
    for (int i = 0; i < a->n; i++) {
        tl_conv_dims(at, TL_CONV_BEFORE)[i] = tl_dim_num(pad[i]);
        tl_conv_dims(at, TL_CONV_AFTER)[i] = tl_dim_num(pad[i]);
    }
    return TL_OK;
}

/* Sizes of the result of a transposed convolution.  Elements that
 * output_padding adds are taken off the padding behind: then the number of
 * windows is exact for every stride. */
static tl_status set_sizes(tl_eval *ev, const conv_args *a, const tl_ttype *x,
                           const tl_ttype *w, tl_attrs *at)
{
    int64_t extra[TL_CONV_AXES];

    TL_TRY(spatial(ev, "output_padding", a->extra, a->n, 0, TL_E0410, extra));
    for (int i = 0; i < a->n; i++) {
        int64_t stride = tl_conv_get(at, TL_CONV_STRIDE, i);
        int64_t dilation = tl_conv_get(at, TL_CONV_DILATION, i);

        if (extra[i] >= (stride > dilation ? stride : dilation)) {
            return tl_fail(ev->diag, TL_E0410,
                           "output_padding must be below the stride or the "
                           "dilation, got %lld with %lld and %lld",
                           (long long)extra[i], (long long)stride,
                           (long long)dilation);
        }
        tl_conv_dims(at, TL_CONV_AFTER)[i] =
            tl_dim_num(tl_conv_get(at, TL_CONV_AFTER, i) - extra[i]);
        TL_TRY(tl_conv_in_size(tl_eval_infer(ev), at, i, x->shape.dim[i + 2],
                               w->shape.dim[i + 2],
                               &tl_conv_dims(at, TL_CONV_SIZE)[i]));
    }
    return TL_OK;
}

/* ---- bias --------------------------------------------------------------- */

/* y + b[:, 1, ...]; eats both. */
static tl_status add_bias(tl_eval *ev, const conv_args *a, tl_value y,
                          tl_value b, tl_value *out)
{
    tl_dim shape[TL_CONV_AXES + 1];
    tl_value in[2] = {y, tl_empty()};
    tl_ttype of, type;
    tl_status st = tl_eval_type(ev, b, &of);

    if (st == TL_OK) {
        st = tl_eval_type(ev, y, &type);
    }
    if (st == TL_OK) {
        st = of.shape.rank != 1
                 ? TL_ERR_PROGRAM
                 : tl_infer_equal(tl_eval_infer(ev), of.shape.dim[0],
                                  type.shape.dim[1]);
        if (st == TL_ERR_PROGRAM) {
            st = tl_fail(ev->diag, TL_E0412,
                         "the bias needs shape [%s], one for each output "
                         "channel; got %s", tl_dim_str(type.shape.dim[1]).s,
                         tl_ttype_str(&of).s);
        }
    }
    if (st != TL_OK) {
        tl_unref(y);
        tl_unref(b);
        return st;
    }
    shape[0] = of.shape.dim[0];
    for (int i = 0; i < a->n; i++) {
        shape[i + 1] = tl_dim_num(1);
    }
    st = tl_do_reshape(ev, b, a->n + 1, shape, &in[1]);
    if (st != TL_OK) {
        tl_unref(y);
        return st;
    }
    return tl_eval_op(ev, TL_OP_add, in, 2, NULL, out);
}

/* ---- the built-ins ------------------------------------------------------ */

/* Are all ints in lists known?  In the shape pass some are not. */
static bool all_known(const conv_args *a)
{
    return tl_value_known(a->stride) && tl_value_known(a->dilation) &&
           tl_value_known(a->pad) && tl_value_known(a->extra);
}

/* Attributes for operands with a batch; ranks are checked. */
static tl_status set_attrs(tl_eval *ev, const conv_args *a, tl_value x,
                           tl_attrs *at)
{
    tl_ttype xt, wt;

    TL_TRY(tl_eval_type(ev, x, &xt));
    TL_TRY(tl_eval_type(ev, a->w, &wt));
    TL_TRY(tl_conv_check_ranks(tl_eval_infer(ev), a->n, a->transposed, &xt,
                               &wt));
    TL_TRY(set_numbers(ev, a, at));
    TL_TRY(set_padding(ev, a, &wt, at));
    return a->transposed ? set_sizes(ev, a, &xt, &wt, at) : TL_OK;
}

/* Owns a->x, a->w, a->b, and releases them in every case. */
static tl_status run(tl_eval *ev, conv_args *a, tl_value *out)
{
    bool single = tl_value_rank(a->x) == a->n + 1; /* without a batch */
    tl_value in[2] = {tl_empty(), tl_empty()}, y = tl_empty();
    tl_attrs at;
    tl_status st = TL_OK;

    if (single) {
        st = tl_do_unsqueeze(ev, a->x, 0, &in[0]);
    } else {
        in[0] = a->x;
    }
    a->x = tl_empty();
    if (st == TL_OK) {
        st = set_attrs(ev, a, in[0], &at);
    }
    if (st == TL_OK) {
        in[1] = a->w;
        a->w = tl_empty();
        st = tl_eval_op(ev, a->transposed ? TL_OP_conv_transpose : TL_OP_conv,
                        in, 2, &at, &y);
    } else {
        tl_unref(in[0]);
    }
    if (st == TL_OK && y.tag == TL_V_UNKNOWN) {
        single = false;
    } else if (st == TL_OK && a->b.tag != TL_V_NONE) {
        st = add_bias(ev, a, y, a->b, &y);
        a->b = tl_empty();
    }
    if (st == TL_OK && single) {
        tl_attrs_init(&at);
        at.axes = 1;
        st = tl_eval_op(ev, TL_OP_squeeze, &y, 1, &at, &y);
    }
    tl_unref(a->w);
    tl_unref(a->b);
    *out = st == TL_OK ? y : tl_empty();
    return st;
}

static tl_status call(tl_eval *ev, conv_args *a, tl_value *args,
                      tl_value *out)
{
    tl_value b = tl_none();

    if (!all_known(a)) {
        *out = tl_unknown();
        return TL_OK;
    }
    if (args[2].tag != TL_V_NONE) {
        TL_TRY(tl_arg_tensor(ev, args, 2, &b));
    }
    a->x = tl_arg_take(args, 0);
    a->w = tl_arg_take(args, 1);
    a->b = b;
    return run(ev, a, out);
}

tl_status tl_bi_conv(tl_eval *ev, const tl_builtin *self, tl_value *args,
                     tl_value *out)
{
    conv_args a = {.n = axes_of(self), .stride = args[3], .pad = args[4],
                   .dilation = args[5], .groups = args[6].i,
                   .extra = tl_int_value(0)};

    return call(ev, &a, args, out);
}

tl_status tl_bi_conv_transpose(tl_eval *ev, const tl_builtin *self,
                               tl_value *args, tl_value *out)
{
    conv_args a = {.n = axes_of(self), .transposed = true,
                   .stride = args[3], .pad = args[4], .extra = args[5],
                   .groups = args[6].i, .dilation = args[7]};

    return call(ev, &a, args, out);
}
