/* bi_nn.c - softmax, losses, layer normalisation, attention, outer product. */
#include <string.h>

#include "interp/bi_tensor.h"
#include "interp/builtin_fns.h"
#include "interp/module.h"
#include "runtime/op/loss.h"

tl_status tl_bi_softmax(tl_eval *ev, const tl_builtin *self, tl_value *args,
                        tl_value *out)
{
    tl_value x = tl_arg_take(args, 0);
    tl_attrs at;

    tl_attrs_init(&at);
    return tl_op_along(ev, self->op, &x, 1, args[1], &at, out);
}

tl_status tl_bi_outer(tl_eval *ev, const tl_builtin *self, tl_value *args,
                      tl_value *out)
{
    tl_value in[2] = {tl_empty(), tl_empty()};

    (void)self;
    if (tl_value_rank(args[0]) != 1 || tl_value_rank(args[1]) != 1) {
        return tl_fail(ev->diag, TL_E0304, "`outer` takes two vectors, got "
                       "%s and %s", tl_value_type_str(args[0]).s,
                       tl_value_type_str(args[1]).s);
    }
    TL_TRY(tl_do_unsqueeze(ev, tl_arg_take(args, 0), 1, &in[0]));
    tl_status st = tl_do_unsqueeze(ev, tl_arg_take(args, 1), 0, &in[1]);

    if (st != TL_OK) {
        tl_unref(in[0]);
        return st;
    }
    return tl_eval_op(ev, TL_OP_mul, in, 2, NULL, out);
}

/* reduce=mean, sum, none: the built-in itself, its name, or none. */
static tl_status reduce_mode(tl_eval *ev, tl_value v, int64_t *out)
{
    const char *name = v.tag == TL_V_BUILTIN ? v.builtin->name
                       : v.tag == TL_V_STR   ? v.str->data
                       : v.tag == TL_V_NONE  ? "none"
                                             : "";

    if (strcmp(name, "mean") == 0) {
        *out = TL_LOSS_MEAN;
    } else if (strcmp(name, "sum") == 0) {
        *out = TL_LOSS_SUM;
    } else if (strcmp(name, "none") == 0) {
        *out = TL_LOSS_NONE;
    } else {
        return tl_fail(ev->diag, TL_E0416,
                       "reduce is mean, sum or none, got %s",
                       tl_value_type_str(v).s);
    }
    return TL_OK;
}

/* Rows, classes and the weight of classes (or none) in args[0 .. 2]. */
static tl_status class_loss(tl_eval *ev, tl_value *args, const tl_attrs *at,
                            tl_value *out)
{
    tl_value in[3], res[2] = {tl_empty(), tl_empty()};
    int n = 2;

    in[0] = tl_arg_take(args, 0);
    in[1] = tl_arg_take(args, 1);
    if (args[2].tag != TL_V_NONE) {
        tl_status st = tl_arg_tensor(ev, args, 2, &in[2]);

        if (st != TL_OK) {
            tl_unref_all(in, 2);
            return st;
        }
        n = 3;
    }
    TL_TRY(tl_eval_op(ev, TL_OP_cross_entropy, in, n, at, res));
    tl_unref(res[1]);
    *out = res[0];
    return TL_OK;
}

tl_status tl_bi_cross_entropy(tl_eval *ev, const tl_builtin *self,
                              tl_value *args, tl_value *out)
{
    tl_attrs at;

    (void)self;
    tl_attrs_init(&at);
    at.i[0] = args[5].i;
    at.f[0] = args[3].f;
    if (!(at.f[0] >= 0 && at.f[0] <= 1)) {
        return tl_fail(ev->diag, TL_E0413,
                       "label_smoothing must be in 0..1, got %g", at.f[0]);
    }
    TL_TRY(reduce_mode(ev, args[4], &at.i[1]));
    return class_loss(ev, args, &at, out);
}

tl_status tl_bi_nll(tl_eval *ev, const tl_builtin *self, tl_value *args,
                    tl_value *out)
{
    tl_attrs at;

    (void)self;
    tl_attrs_init(&at);
    at.i[0] = args[4].i;
    at.flag = true;
    TL_TRY(reduce_mode(ev, args[3], &at.i[1]));
    return class_loss(ev, args, &at, out);
}

/* Losses never broadcast: [N, 1] against [N] would be [N, N]. */
static tl_status equal_shapes(tl_eval *ev, const char *name, tl_value a,
                              tl_value b)
{
    tl_ttype x, y;
    tl_status st = TL_OK;

    TL_TRY(tl_eval_type(ev, a, &x));
    TL_TRY(tl_eval_type(ev, b, &y));
    if (x.shape.rank != y.shape.rank) {
        st = TL_ERR_PROGRAM;
    }
    for (int i = 0; i < x.shape.rank && st == TL_OK; i++) {
        st = tl_infer_equal(tl_eval_infer(ev), x.shape.dim[i],
                            y.shape.dim[i]);
    }
    if (st != TL_ERR_PROGRAM) {
        return st;
    }
    (void)tl_fail(ev->diag, TL_E0326, "`%s` needs equal shapes, got %s and %s",
                  name, tl_ttype_str(&x).s, tl_ttype_str(&y).s);
    for (int i = 0; i < 2; i++) {
        const tl_shape *wide = i == 0 ? &x.shape : &y.shape;

        if (wide->rank > 0 && tl_dim_is_one(wide->dim[wide->rank - 1]) &&
            wide->rank == (i == 0 ? &y.shape : &x.shape)->rank + 1) {
            tl_diag_help(ev->diag, "squeeze(x, axis=-1) of the %s",
                         i == 0 ? "first" : "second");
        }
    }
    return TL_ERR_PROGRAM;
}

/* The row self->op of args[0] and args[1], reduced over everything. */
static tl_status element_loss(tl_eval *ev, const tl_builtin *self,
                              tl_value *args, tl_value how,
                              const tl_attrs *at, tl_value *out)
{
    int64_t mode;
    int rank = tl_value_rank(args[0]);
    tl_attrs all;

    TL_TRY(reduce_mode(ev, how, &mode));
    TL_TRY(equal_shapes(ev, self->name, args[0], args[1]));
    tl_value in[2] = {tl_arg_take(args, 0), tl_arg_take(args, 1)};

    TL_TRY(tl_eval_op(ev, self->op, in, 2, at, out));
    if (mode == TL_LOSS_NONE) {
        return TL_OK;
    }
    tl_attrs_init(&all);
    all.axes = (uint16_t)((1u << rank) - 1);
    all.flag = true;
    return tl_eval_op(ev, mode == TL_LOSS_SUM ? TL_OP_sum : TL_OP_mean, out,
                      1, &all, out);
}

tl_status tl_bi_loss(tl_eval *ev, const tl_builtin *self, tl_value *args,
                     tl_value *out)
{
    tl_attrs at;

    tl_attrs_init(&at);
    return element_loss(ev, self, args, args[2], &at, out);
}

tl_status tl_bi_huber(tl_eval *ev, const tl_builtin *self, tl_value *args,
                      tl_value *out)
{
    tl_attrs at;

    tl_attrs_init(&at);
    at.f[0] = args[2].f;
    if (!(at.f[0] > 0)) {
        return tl_fail(ev->diag, TL_E0416, "delta must be above 0, got %g",
                       at.f[0]);
    }
    return element_loss(ev, self, args, args[3], &at, out);
}

tl_status tl_bi_layer_norm(tl_eval *ev, const tl_builtin *self,
                           tl_value *args, tl_value *out)
{
    tl_value in[3], res[3] = {tl_empty(), tl_empty(), tl_empty()};
    tl_attrs at;
    int n = 1;

    (void)self;
    tl_attrs_init(&at);
    at.i[0] = args[4].i;
    at.f[0] = args[3].f;
    at.flag = args[1].tag == TL_V_NONE && args[2].tag != TL_V_NONE;
    if (args[4].i < 1 || args[4].i > tl_value_rank(args[0])) {
        return tl_fail(ev->diag, TL_E0309, "axes must be 1..%d, got %lld",
                       tl_value_rank(args[0]), (long long)args[4].i);
    }
    in[0] = tl_arg_take(args, 0);
    for (int i = 1; i <= 2; i++) {
        if (args[i].tag == TL_V_NONE) {
            continue;
        }
        tl_status st = tl_arg_tensor(ev, args, i, &in[n]);

        if (st != TL_OK) {
            tl_unref_all(in, (size_t)n);
            return st;
        }
        n++;
    }
    TL_TRY(tl_eval_op(ev, TL_OP_layer_norm, in, n, &at, res));
    tl_unref(res[1]);
    tl_unref(res[2]);
    *out = res[0];
    return TL_OK;
}

/* Attributes of sdpa (op/attention.h). */
static tl_status attention_attrs(tl_eval *ev, tl_value *args, tl_attrs *at)
{
    double p = args[6].f;

    tl_attrs_init(at);
    at->flag = args[4].b;
    if (args[5].tag != TL_V_NONE) {
        at->keep = true;
        at->f[0] = args[5].f;
    }
    if (!(p >= 0 && p <= 1)) {
        return tl_fail(ev->diag, TL_E0413, "dropout must be in 0..1, got %g",
                       p);
    }
    if (p > 0 && tl_training_now(ev)) {
        tl_set_draw(ev, at);
        at->f[1] = p;
    }
    return TL_OK;
}

/* sdpa(q, k, v, mask, causal, scale, dropout) */
tl_status tl_bi_sdpa(tl_eval *ev, const tl_builtin *self, tl_value *args,
                     tl_value *out)
{
    tl_value in[4], res[2] = {tl_empty(), tl_empty()};
    tl_attrs at;
    int n = 3;

    (void)self;
    TL_TRY(attention_attrs(ev, args, &at));
    for (int i = 0; i < 3; i++) {
        in[i] = tl_arg_take(args, i);
    }
    if (args[3].tag != TL_V_NONE) {
        tl_status st = tl_arg_tensor(ev, args, 3, &in[3]);

        if (st != TL_OK) {
            tl_unref_all(in, 3);
            return st;
        }
        n = 4;
    }
    TL_TRY(tl_eval_op(ev, TL_OP_sdpa, in, n, &at, res));
    tl_unref(res[1]);
    *out = res[0];
    return TL_OK;
}
