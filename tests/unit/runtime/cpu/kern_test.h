/* kern_test.h - a device context and tensors for tests of kernels. */
#ifndef TL_TESTS_KERN_TEST_H
#define TL_TESTS_KERN_TEST_H

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/mem.h"
#include "runtime/cpu/kern.h"

static tl_kernel_ctx ctx;
static tl_diag ctx_diag;

static inline void ctx_open(int threads)
{
    tl_diag_init(&ctx_diag, NULL);
    ctx = (tl_kernel_ctx){.diag = &ctx_diag};
    cr_assert_eq(tl_pool_new(&ctx.pool, 0, &ctx_diag), TL_OK);
    cr_assert_eq(tl_threads_new(&ctx.threads, threads, &ctx_diag), TL_OK);
}

static inline void ctx_close(void)
{
    cr_expect_eq(tl_tensor_live(), 0, "tensors leaked");
    tl_tensor_trim();
    tl_threads_free(ctx.threads);
    cr_expect_eq(tl_pool_free(ctx.pool), 0, "storages leaked");
    tl_diag_fini(&ctx_diag);
}

/* A small deterministic generator; `state` is the seed. */
static inline double random_unit(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (double)((z ^ (z >> 31)) >> 11) * 0x1p-52 - 1;
}

static inline tl_tensor *new_tensor(tl_dtype dtype, int rank,
                                    const int64_t *size)
{
    tl_tensor *t;

    cr_assert_eq(tl_tensor_new(&t, ctx.pool, dtype, rank, size, &ctx_diag),
                 TL_OK);
    return t;
}
#define SIZES(...)                                                           \
    sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t),                      \
        (int64_t[]){__VA_ARGS__}

/* Values of -1 .. 1; integers of -9 .. 9. */
static inline tl_tensor *random_tensor(tl_dtype dtype, int rank,
                                       const int64_t *size, uint64_t seed)
{
    tl_tensor *t = new_tensor(dtype, rank, size);

    for (int64_t i = 0; i < t->numel; i++) {
        double x = random_unit(&seed);

        if (tl_dtype_is_float(dtype)) {
            tl_tensor_set_f(t, i, x);
        } else {
            tl_tensor_set_i(t, i, (int64_t)(x * 9.9));
        }
    }
    return t;
}

static inline tl_tensor *tensor_f(tl_dtype dtype, int rank,
                                  const int64_t *size, const double *value)
{
    tl_tensor *t = new_tensor(dtype, rank, size);

    for (int64_t i = 0; i < t->numel; i++) {
        tl_tensor_set_f(t, i, value[i]);
    }
    return t;
}

static inline tl_tensor *tensor_i(tl_dtype dtype, int rank,
                                  const int64_t *size, const int64_t *value)
{
    tl_tensor *t = new_tensor(dtype, rank, size);

    for (int64_t i = 0; i < t->numel; i++) {
        tl_tensor_set_i(t, i, value[i]);
    }
    return t;
}

/* A view of `t` with the last two axes swapped. */
static inline tl_tensor *swapped(const tl_tensor *t)
{
    int64_t size[TL_MAX_RANK], stride[TL_MAX_RANK];
    int r = t->rank;
    tl_tensor *view;

    memcpy(size, t->size, (size_t)r * sizeof(*size));
    memcpy(stride, t->stride, (size_t)r * sizeof(*stride));
    size[r - 1] = t->size[r - 2];
    size[r - 2] = t->size[r - 1];
    stride[r - 1] = t->stride[r - 2];
    stride[r - 2] = t->stride[r - 1];
    cr_assert_eq(tl_tensor_view(&view, t, r, size, stride, t->offset,
                                &ctx_diag), TL_OK);
    return view;
}

/* Run `op` by its kernel, results allocated by its shape rule. */
static inline tl_status run_op(tl_op op, tl_kernel_fn *fn,
                               tl_tensor *const *in, int nin,
                               const tl_attrs *at, tl_tensor **out)
{
    tl_infer infer = {.diag = &ctx_diag};
    tl_ttype types[16], results[TL_MAX_OUTPUTS];
    int nout = tl_op_get(op)->nout;
    tl_status st;

    for (int i = 0; i < nin; i++) {
        tl_tensor_type(in[i], &types[i]);
    }
    TL_TRY(tl_op_infer(&infer, op, types, nin, at, results));
    for (int i = 0; i < nout; i++) {
        int64_t size[TL_MAX_RANK];
        bool by_data = false;

        for (int d = 0; d < results[i].shape.rank; d++) {
            size[d] = tl_dim_value(results[i].shape.dim[d]);
            by_data |= size[d] == TL_SIZE_BY_DATA;
        }
        if (by_data) {
            TL_TRY(tl_tensor_blank(&out[i], results[i].dtype,
                                   results[i].shape.rank, &ctx_diag));
        } else {
            out[i] = new_tensor(results[i].dtype, results[i].shape.rank,
                                size);
        }
    }
    st = fn(&ctx, op, in, nin, out, nout, at);
    for (int i = 0; st != TL_OK && i < nout; i++) {
        tl_tensor_unref(out[i]);
    }
    return st;
}

#define RUN(name, in, nin, at, out)                                          \
    run_op(TL_OP_##name, tl_cpu_##name, in, nin, at, out)

static inline void expect_f(const tl_tensor *t, const double *want,
                            double tolerance)
{
    for (int64_t i = 0; i < t->numel; i++) {
        double got = tl_tensor_get_f(t, i);

        cr_expect((isnan(got) && isnan(want[i])) || got == want[i] ||
                      fabs(got - want[i]) <= tolerance,
                  "element %lld: %.9g instead of %.9g", (long long)i, got,
                  want[i]);
    }
}

static inline void expect_i(const tl_tensor *t, const int64_t *want)
{
    for (int64_t i = 0; i < t->numel; i++) {
        cr_expect_eq(tl_tensor_get_i(t, i), want[i],
                     "element %lld: %lld instead of %lld", (long long)i,
                     (long long)tl_tensor_get_i(t, i), (long long)want[i]);
    }
}

#endif
