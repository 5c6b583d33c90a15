/* The same bits from both builds of the kernels, from any number of threads,
 * and from a second run. */
#include "tests/ops/rows.h"

#include "runtime/cpu/elementwise.h"
#include "runtime/cpu/scalar.h"

TestSuite(bits, .init = rt_setup, .fini = rt_teardown);

/* Random bits of a float, special values among them. */
static tl_tensor *wild(tl_dtype dtype, int64_t n, uint64_t seed)
{
    tl_tensor *t = make(dtype, 1, &n, NULL);
    uint64_t state = seed;

    for (int64_t i = 0; i < n; i++) {
        double u = uniform(&state), v = uniform(&state);
        double x = ldexp(u - 0.5, (int)(v * 300) - 150);

        tl_tensor_set_f(t, i,
                        v < 0.01   ? (double)NAN
                        : v < 0.02 ? (double)INFINITY
                        : v < 0.03 ? -0.0
                        : v < 0.5  ? 12 * u - 6
                                   : x);
    }
    return t;
}

#ifdef __x86_64__
static bool has_avx2(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
           __builtin_cpu_supports("f16c");
}

static tl_tensor *with(tl_kernel_fn *kernel, tl_op op, tl_tensor **in,
                       tl_dtype dtype, int rank, const int64_t *size,
                       const tl_attrs *at)
{
    tl_tensor *y = make(dtype, rank, size, NULL);

    OK(kernel(&rt.kctx, op, in, tl_op_get(op)->nin, &y, 1, at));
    return y;
}

static void compare_maps(tl_op op, tl_dtype dtype)
{
    const tl_op_info *row = tl_op_get(op);
    tl_dtype to = row->cls == TL_CLASS_CMP ? TL_bool : dtype;
    tl_attrs at = usual_attrs(op);
    tl_tensor *in[3], *y, *z;

    for (int i = 0; i < row->nin; i++) {
        in[i] = (row->bool_in >> i & 1) != 0
                    ? points(TL_bool, 1, DIMS(10007), TL_DOM_PROB, 3)
                    : wild(dtype, 10007, 100 + (uint64_t)i);
    }
    y = with(tl_cpu_map, op, in, to, 1, DIMS(10007), &at);
    z = with(tl_cpu_map_avx2, op, in, to, 1, DIMS(10007), &at);
    cr_expect(same_bits(y, z), "%s %s", row->name, tl_dtype_name(dtype));
    for (int i = 0; i < row->nin && row->cls == TL_CLASS_MAP; i++) {
        tl_tensor *g = wild(dtype, 10007, 77);

        if (tl_op_grad_is_zero(op, i)) {
            tl_tensor_unref(g);
            continue;
        }
        OK(tl_cpu_map_grad(&rt.kctx, op, i, in, row->nin, y, g, y, &at));
        OK(tl_cpu_map_grad_avx2(&rt.kctx, op, i, in, row->nin, z, g, z, &at));
        cr_expect(same_bits(y, z), "gradient %d of %s %s", i, row->name,
                  tl_dtype_name(dtype));
        tl_tensor_unref(g);
    }
    tl_tensor_unref(y);
    tl_tensor_unref(z);
    for (int i = 0; i < row->nin; i++) {
        tl_tensor_unref(in[i]);
    }
}

Test(bits, both_builds_of_elementwise_rows_agree)
{
    for (int op = 0; op < TL_OP_COUNT && has_avx2(); op++) {
        for (int d = TL_bf16; d < TL_DTYPE_COUNT; d++) {
            if (is_elementwise((tl_op)op) &&
                tl_op_get((tl_op)op)->types != TL_TYPES_BOOL) {
                compare_maps((tl_op)op, (tl_dtype)d);
            }
        }
    }
}

Test(bits, both_builds_of_reductions_agree)
{
    static const uint16_t axes[] = {1, 2, 3};

    for (int op = TL_OP_sum; op <= TL_OP_all && has_avx2(); op++) {
        for (int a = 0; a < 3; a++) {
            tl_tensor *x = points(TL_f32, 2, DIMS(700, 90), TL_DOM_ANY, 9);
            tl_attrs at = usual_attrs((tl_op)op);
            tl_ttype in, out;
            int64_t size[2];
            tl_tensor *y, *z;

            at.axes = axes[a];
            tl_tensor_type(x, &in);
            OK(tl_op_infer(&rt.infer, (tl_op)op, &in, 1, &at, &out));
            for (int i = 0; i < out.shape.rank; i++) {
                size[i] = tl_dim_value(out.shape.dim[i]);
            }
            y = with(tl_cpu_reduce, (tl_op)op, &x, out.dtype, out.shape.rank,
                     size, &at);
            z = with(tl_cpu_reduce_avx2, (tl_op)op, &x, out.dtype,
                     out.shape.rank, size, &at);
            cr_expect(same_bits(y, z), "%s, axes %d",
                      tl_op_get((tl_op)op)->name, axes[a]);
            tl_tensor_unref(x);
            tl_tensor_unref(y);
            tl_tensor_unref(z);
        }
    }
}

Test(bits, both_builds_of_draws_agree)
{
    static const struct {
        tl_op op;
        tl_dtype dtype;
        tl_kernel_fn *plain, *avx2;
    } draws[] = {
        {TL_OP_rand, TL_f32, tl_cpu_rand, tl_cpu_rand_avx2},
        {TL_OP_rand, TL_f16, tl_cpu_rand, tl_cpu_rand_avx2},
        {TL_OP_rand, TL_f64, tl_cpu_rand, tl_cpu_rand_avx2},
        {TL_OP_randn, TL_f32, tl_cpu_randn, tl_cpu_randn_avx2},
        {TL_OP_randn, TL_f64, tl_cpu_randn, tl_cpu_randn_avx2},
        {TL_OP_randint, TL_i64, tl_cpu_randint, tl_cpu_randint_avx2},
        {TL_OP_perm, TL_i64, tl_cpu_perm, tl_cpu_perm_avx2},
    };

    for (size_t i = 0; i < sizeof draws / sizeof *draws && has_avx2(); i++) {
        tl_attrs at = usual_attrs(draws[i].op);
        tl_tensor *y, *z;

        at.f[0] = -5;
        at.f[1] = 1000;
        y = with(draws[i].plain, draws[i].op, NULL, draws[i].dtype, 1,
                 DIMS(70001), &at);
        z = with(draws[i].avx2, draws[i].op, NULL, draws[i].dtype, 1,
                 DIMS(70001), &at);
        cr_expect(same_bits(y, z), "%s", tl_op_get(draws[i].op)->name);
        tl_tensor_unref(y);
        tl_tensor_unref(z);
    }
}
#endif

/* ---- threads ------------------------------------------------------------ */

/* The result of a row on large inputs, with `threads` threads. */
static tl_tensor *threaded(tl_op op, int threads, uint16_t axes)
{
    const tl_op_info *row = tl_op_get(op);
    tl_attrs at = usual_attrs(op);
    tl_threads *pool, *before = rt.threads;
    tl_tensor *in[3], *y;

    for (int i = 0; i < row->nin; i++) {
        in[i] = points((row->bool_in >> i & 1) != 0 ? TL_bool : TL_f32, 2,
                       DIMS(300, 701), row->domain, 20 + (uint64_t)i);
    }
    at.axes = axes;
    at.axis = (int8_t)(axes == 1 ? 0 : 1);
    OK(tl_threads_new(&pool, threads, &diag));
    rt.threads = rt.kctx.threads = pool;
    y = run(op, in, row->nin, &at);
    rt.threads = rt.kctx.threads = before;
    tl_threads_free(pool);
    for (int i = 0; i < row->nin; i++) {
        tl_tensor_unref(in[i]);
    }
    return y;
}

static void check_threads(tl_op op, uint16_t axes)
{
    tl_tensor *one = threaded(op, 1, axes);

    for (int threads = 1; threads <= 4; threads++) {
        tl_tensor *y = threaded(op, threads, axes);

        cr_expect(same_bits(one, y), "%s, axes %d, %d threads",
                  tl_op_get(op)->name, axes, threads);
        tl_tensor_unref(y);
    }
    tl_tensor_unref(one);
}

Test(bits, threads_do_not_change_elementwise_rows)
{
    for (int op = 0; op < TL_OP_COUNT; op++) {
        if (is_elementwise((tl_op)op) &&
            tl_op_get((tl_op)op)->types != TL_TYPES_BOOL) {
            check_threads((tl_op)op, 0);
        }
    }
}

Test(bits, threads_do_not_change_reductions_and_scans)
{
    static const tl_op scans[] = {TL_OP_cumsum, TL_OP_cumprod, TL_OP_shift,
                                  TL_OP_dropout};

    for (uint16_t axes = 1; axes <= 3; axes++) {
        for (int op = TL_OP_sum; op <= TL_OP_all; op++) {
            check_threads((tl_op)op, axes);
        }
        for (int i = 0; i < 4; i++) {
            check_threads(scans[i], axes);
        }
    }
}
