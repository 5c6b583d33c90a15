/* bi_norm.c - normalisation by channels and by rows. */
#include "interp/bi_tensor.h"
#include "interp/builtin_fns.h"
#include "interp/module.h"

/* args[0], then those of args[1 .. n) that are not none, as in[]; they are
 * taken.  in[] has room for n. */
static tl_status take_operands(tl_eval *ev, tl_value *args, int n,
                               tl_value *in, int *nin)
{
    in[0] = tl_arg_take(args, 0);
    *nin = 1;
    for (int i = 1; i < n; i++) {
        tl_status st = args[i].tag == TL_V_NONE
                           ? TL_OK
                           : tl_arg_tensor(ev, args, i, &in[*nin]);

        if (st != TL_OK) {
            tl_unref_all(in, (size_t)*nin);
            return st;
        }
        *nin += args[i].tag != TL_V_NONE;
    }
    return TL_OK;
}

/* x, weight, bias of args[0 .. 2]: which are there, and an operation on
 * them with `nres` results. */
static tl_status affine_op(tl_eval *ev, tl_op op, tl_value *args,
                           tl_attrs *at, tl_value *res)
{
    tl_value in[3];
    int n;

    at->flag = args[1].tag == TL_V_NONE && args[2].tag != TL_V_NONE;
    n = 1 + (args[1].tag != TL_V_NONE) + (args[2].tag != TL_V_NONE);
    TL_TRY(take_operands(ev, args, 3, in, &n));
    return tl_eval_op(ev, op, in, n, at, res);
}

/* batch_norm(x, weight, bias, eps) -> (y, mean, var) */
tl_status tl_bi_batch_norm(tl_eval *ev, const tl_builtin *self,
                           tl_value *args, tl_value *out)
{
    tl_value res[4];
    tl_attrs at;

    (void)self;
    tl_attrs_init(&at);
    at.f[0] = args[3].f;
    TL_TRY(affine_op(ev, TL_OP_batch_norm, args, &at, res));
    tl_unref(res[2]);
    res[2] = res[3];
    return tl_seq_new_take(out, TL_V_TUPLE, res, 3, ev->diag);
}

static tl_status group_norm(tl_eval *ev, tl_value *args, int64_t groups,
                            double eps, tl_value *out)
{
    tl_value res[3];
    tl_attrs at;

    tl_attrs_init(&at);
    at.i[0] = groups;
    at.f[0] = eps;
    TL_TRY(affine_op(ev, TL_OP_group_norm, args, &at, res));
    tl_unref(res[1]);
    tl_unref(res[2]);
    *out = res[0];
    return TL_OK;
}

/* group_norm(x, groups, weight, bias, eps) */
tl_status tl_bi_group_norm(tl_eval *ev, const tl_builtin *self,
                           tl_value *args, tl_value *out)
{
    int64_t groups = args[1].i;

    (void)self;
    if (groups < 1) {
        return tl_fail(ev->diag, TL_E0411,
                       "the number of groups must be at "
                       "least 1, got %lld",
                       (long long)groups);
    }
    args[1] = tl_arg_take(args, 0);
    return group_norm(ev, args + 1, groups, args[4].f, out);
}

/* instance_norm(x, weight, bias, eps) */
tl_status tl_bi_instance_norm(tl_eval *ev, const tl_builtin *self,
                              tl_value *args, tl_value *out)
{
    (void)self;
    return group_norm(ev, args, 0, args[3].f, out);
}

/* The distance from 1 to the next number. */
static double epsilon_of(tl_dtype dtype)
{
    return dtype == TL_f64    ? 0x1p-52
           : dtype == TL_f16  ? 0x1p-10
           : dtype == TL_bf16 ? 0x1p-7
                              : 0x1p-23;
}

/* rms_norm(x, weight, eps, axes) */
tl_status tl_bi_rms_norm(tl_eval *ev, const tl_builtin *self, tl_value *args,
                         tl_value *out)
{
    tl_value in[2], res[2];
    tl_ttype type;
    tl_attrs at;
    int n;

    (void)self;
    TL_TRY(tl_eval_type(ev, args[0], &type));
    tl_attrs_init(&at);
    at.i[0] = args[3].i;
    at.f[0] = args[2].tag == TL_V_NONE ? epsilon_of(type.dtype) : args[2].f;
    if (args[3].i < 1 || args[3].i > type.shape.rank) {
        return tl_fail(ev->diag, TL_E0309, "axes must be 1..%d, got %lld",
                       type.shape.rank, (long long)args[3].i);
    }
    TL_TRY(take_operands(ev, args, 2, in, &n));
    TL_TRY(tl_eval_op(ev, TL_OP_rms_norm, in, n, &at, res));
    tl_unref(res[1]);
    *out = res[0];
    return TL_OK;
}

/* training() */
tl_status tl_bi_training(tl_eval *ev, const tl_builtin *self, tl_value *args,
                         tl_value *out)
{
    (void)self;
    (void)args;
    *out = tl_bool_value(tl_training_now(ev));
    return TL_OK;
}
