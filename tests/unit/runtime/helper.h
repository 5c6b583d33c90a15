/* helper.h - a runtime for a test, and short ways to make and compare
 * tensors.  Every test ends without live tensors, storages or blocks. */
#ifndef TL_TEST_RUNTIME_HELPER_H
#define TL_TEST_RUNTIME_HELPER_H

#include <criterion/criterion.h>
#include <math.h>

#include "runtime/autograd/backward.h"
#include "runtime/base/mem.h"

static tl_diag diag;
static tl_rt rt;

static inline void rt_setup(void)
{
    tl_rt_options options = {.threads = 1};

    tl_diag_init(&diag, NULL);
    cr_assert_eq(tl_rt_init(&rt, &options, &diag), TL_OK);
}

static inline void rt_teardown(void)
{
    tl_pool_stats stats;

    cr_assert_eq(tl_tensor_live(), 0, "tensors leak");
    tl_pool_get_stats(rt.pool, &stats);
    cr_assert_eq(stats.storages, 0, "storages leak");
    tl_rt_fini(&rt);
    tl_diag_fini(&diag);
    cr_assert_eq(tl_mem_live_blocks(), 0, "blocks leak");
}

/* The newest message, for failures. */
static inline const char *said(void)
{
    return diag.last ? diag.last->message : "";
}

#define OK(expr) cr_assert_eq((expr), TL_OK, "%s", said())
#define DIMS(...) (int64_t[]){__VA_ARGS__}
#define VALUES(...) (double[]){__VA_ARGS__}

/* A tensor with these values (NULL: 0, 1, 2, ...). */
static inline tl_tensor *make(tl_dtype dtype, int rank, const int64_t *size,
                              const double *v)
{
    tl_tensor *t;

    OK(tl_tensor_new(&t, rt.pool, dtype, rank, size, &diag));
    for (int64_t i = 0; i < t->numel; i++) {
        tl_tensor_set_f(t, i, v ? v[i] : (double)i);
    }
    return t;
}

static inline tl_tensor *vec(tl_dtype dtype, int64_t n, const double *v)
{
    return make(dtype, 1, &n, v);
}

static inline tl_tensor *scalar(tl_dtype dtype, double v)
{
    return make(dtype, 0, NULL, &v);
}

/* Elements must be these within `tolerance` (relative over 1). */
static inline void expect_near(const tl_tensor *t, const double *v,
                               double tolerance)
{
    for (int64_t i = 0; i < t->numel; i++) {
        double got = tl_tensor_get_f(t, i);

        cr_expect(fabs(got - v[i]) <= tolerance * fmax(1, fabs(v[i])) ||
                      (isnan(got) && isnan(v[i])) || got == v[i],
                  "element %lld is %.17g, not %.17g", (long long)i, got,
                  v[i]);
    }
}

static inline void expect_values(const tl_tensor *t, const double *v)
{
    expect_near(t, v, 0);
}

/* op(a), op(a, b) with borrowed operands. */
static inline tl_tensor *call1(tl_op op, tl_tensor *a, const tl_attrs *at)
{
    tl_tensor *out[TL_MAX_OUTPUTS];

    OK(tl_apply_borrowed(&rt, op, &a, 1, at, out));
    return out[0];
}

static inline tl_tensor *call2(tl_op op, tl_tensor *a, tl_tensor *b)
{
    tl_tensor *in[2] = {a, b}, *out[TL_MAX_OUTPUTS];

    OK(tl_apply_borrowed(&rt, op, in, 2, NULL, out));
    return out[0];
}

/* The same, which eat the operands. */
static inline tl_tensor *eat1(tl_op op, tl_tensor *a, const tl_attrs *at)
{
    tl_tensor *out[TL_MAX_OUTPUTS];

    OK(tl_apply(&rt, op, &a, 1, at, out));
    return out[0];
}

static inline tl_tensor *eat2(tl_op op, tl_tensor *a, tl_tensor *b)
{
    tl_tensor *in[2] = {a, b}, *out[TL_MAX_OUTPUTS];

    OK(tl_apply(&rt, op, in, 2, NULL, out));
    return out[0];
}

/* Sum of all elements; eats `a`. */
static inline tl_tensor *eat_sum(tl_tensor *a)
{
    tl_attrs at;

    tl_attrs_init(&at);
    at.axes = (uint16_t)((1u << a->rank) - 1);
    at.flag = true;
    return eat1(TL_OP_sum, a, &at);
}

static inline tl_tensor *cast_to(tl_dtype dtype, tl_tensor *a)
{
    tl_attrs at;

    tl_attrs_init(&at);
    at.dtype = (uint8_t)dtype;
    return call1(TL_OP_cast, a, &at);
}

/* The transpose of a matrix, a view. */
static inline tl_tensor *transpose(tl_tensor *a)
{
    tl_attrs at;

    tl_attrs_init(&at);
    at.ndims = 2;
    at.dims[0] = tl_dim_num(1);
    at.dims[1] = tl_dim_num(0);
    return call1(TL_OP_permute, a, &at);
}

static inline tl_tensor *reshape(tl_tensor *a, int rank, const int64_t *size)
{
    tl_attrs at;

    tl_attrs_init(&at);
    at.ndims = (uint16_t)rank;
    for (int i = 0; i < rank; i++) {
        at.dims[i] = tl_dim_num(size[i]);
    }
    return call1(TL_OP_reshape, a, &at);
}

#endif
