/* bi_host.h - the host halves of names that also are tensor operations.
 *
 * `sum`, `max`, `abs`, ... take tensors and host values.  The rows belong to
 * the tensor side (builtin_tensor.def); their functions first ask here.
 * *mine is false when the arguments are not for the host: then nothing was
 * done and the caller goes on with the tensor operation.  Arguments are
 * borrowed; *out is written when *mine is true and the status is TL_OK. */
#ifndef TL_INTERP_BI_HOST_H
#define TL_INTERP_BI_HOST_H

#include "interp/eval.h"

/* Reductions of a list, tuple, range, dict (its keys) or of several values.
 * Items may be host values or scalar tensors: max of [loss1, loss2] is an
 * elementwise maximum, sum adds from the first item, mean divides by the
 * number.  Lists nested in lists are not host values: tensor([[..]]). */
typedef enum tl_host_red {
    TL_HOST_SUM,
    TL_HOST_PROD,
    TL_HOST_MEAN,
    TL_HOST_MAX,
    TL_HOST_MIN,
    TL_HOST_ANY,
    TL_HOST_ALL
} tl_host_red;

/* f(xs) of one container.  Empty: sum 0, prod 1, any false, all true; mean,
 * max and min E0402. */
TL_MUST_USE tl_status tl_host_reduce(tl_eval *ev, tl_host_red what,
                                     tl_value xs, bool *mine, tl_value *out);

/* max(a, b, ...), min(a, b, ...): mine when every argument is a host number
 * or every one a str. */
TL_MUST_USE tl_status tl_host_extremum(tl_eval *ev, bool max,
                                       const tl_value *xs, size_t n,
                                       bool *mine, tl_value *out);

/* Functions of one host number: abs sign floor ceil round exp exp2 expm1 log
 * log2 log1p sqrt rsqrt sin cos tan tanh sigmoid erf relu isnan isfinite.
 * abs, sign and relu keep int; floor, ceil and round give int; the others
 * float.  E0416 outside the domain (sqrt(-1), log(0)). */
TL_MUST_USE tl_status tl_host_map1(tl_eval *ev, tl_op op, tl_value x,
                                   bool *mine, tl_value *out);

/* Functions of two host numbers: maximum minimum pow.  */
TL_MUST_USE tl_status tl_host_map2(tl_eval *ev, tl_op op, tl_value a,
                                   tl_value b, bool *mine, tl_value *out);

/* round(x, digits) of a host number: a float rounded half to even in decimal,
 * as Python's. */
TL_MUST_USE tl_status tl_host_round(tl_eval *ev, tl_value x, int64_t digits,
                                    bool *mine, tl_value *out);

/* clamp(x, lo, hi) of host numbers; lo and hi may be NONE. */
TL_MUST_USE tl_status tl_host_clamp(tl_eval *ev, tl_value x, tl_value lo,
                                    tl_value hi, bool *mine, tl_value *out);

#endif
