/* The matrix product against a double loop: dtypes, strides, ranks, batches,
 * and the three backends against each other. */
#include "runtime/cpu/gemm.h"
#include "tests/unit/runtime/cpu/kern_test.h"

static void setup(void)
{
    ctx_open(2);
}

TestSuite(matmul, .init = setup, .fini = ctx_close);

/* Element (batch, i, j) of a stack that broadcasts, as double. */
static double at(const tl_tensor *t, int64_t batch, int64_t i, int64_t j)
{
    int64_t matrix = t->size[t->rank - 1] * t->size[t->rank - 2];
    int64_t stacks = t->numel / matrix;

    return tl_tensor_get_f(t, batch % stacks * matrix +
                                  i * t->size[t->rank - 1] + j);
}

static void check(tl_tensor *a, tl_tensor *b, double tolerance)
{
    tl_tensor *in[] = {a, b}, *y;
    int64_t m = a->size[a->rank - 2], k = a->size[a->rank - 1];
    int64_t n = b->size[b->rank - 1], bad = 0;

    cr_assert_eq(RUN(matmul, in, 2, NULL, &y), TL_OK);
    for (int64_t e = 0; e < y->numel; e++) {
        int64_t batch = e / (m * n), i = e / n % m, j = e % n;
        double sum = 0;

        for (int64_t p = 0; p < k; p++) {
            sum += at(a, batch, i, p) * at(b, batch, p, j);
        }
        bad += !(fabs(sum - tl_tensor_get_f(y, e)) <= tolerance);
    }
    cr_expect_eq(bad, 0, "%lld of %lld elements are wrong", (long long)bad,
                 (long long)y->numel);
    tl_tensor_unref(a);
    tl_tensor_unref(b);
    tl_tensor_unref(y);
}

static tl_tensor *transposed(tl_tensor *t)
{
    tl_tensor *view = swapped(t);

    tl_tensor_unref(t);
    return view;
}

Test(matmul, every_dtype)
{
    static const struct {
        tl_dtype dtype;
        double tolerance;
    } row[] = {{TL_f32, 1e-5}, {TL_f64, 1e-13}, {TL_f16, 2e-2},
               {TL_bf16, 0.2}, {TL_i64, 0},     {TL_i32, 0},
               {TL_i16, 0},    {TL_i8, 0}};

    for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
        check(random_tensor(row[i].dtype, SIZES(37, 53), 1),
              random_tensor(row[i].dtype, SIZES(53, 41), 2),
              row[i].tolerance);
    }
}

Test(matmul, transposed_operands)
{
    for (int which = 0; which < 4; which++) {
        tl_tensor *a = which & 1
                           ? transposed(random_tensor(TL_f32, SIZES(60, 33), 3))
                           : random_tensor(TL_f32, SIZES(33, 60), 3);
        tl_tensor *b = which & 2
                           ? transposed(random_tensor(TL_f32, SIZES(50, 60), 4))
                           : random_tensor(TL_f32, SIZES(60, 50), 4);

        check(a, b, 1e-5);
    }
}

Test(matmul, strides_that_no_backend_takes_are_copied)
{
    tl_tensor *base = random_tensor(TL_f32, SIZES(20, 60), 5), *a, *b;

    cr_assert_eq(tl_tensor_view(&a, base, 2, (int64_t[]){20, 30},
                                (int64_t[]){60, 2}, 0, &ctx_diag), TL_OK);
    cr_assert_eq(tl_tensor_view(&b, base, 2, (int64_t[]){30, 20},
                                (int64_t[]){-2, 0}, 58, &ctx_diag), TL_OK);
    tl_tensor_unref(base);
    check(a, b, 1e-5);
}

Test(matmul, batches_broadcast)
{
    check(random_tensor(TL_f32, SIZES(2, 3, 17, 8), 6),
          random_tensor(TL_f32, SIZES(2, 3, 8, 19), 7), 1e-5);
    check(random_tensor(TL_f32, SIZES(5, 17, 8), 6),
          random_tensor(TL_f32, SIZES(1, 8, 19), 7), 1e-5);
    check(random_tensor(TL_f32, SIZES(1, 17, 8), 6),
          transposed(random_tensor(TL_f32, SIZES(4, 19, 8), 7)), 1e-5);
    check(random_tensor(TL_f32, SIZES(4, 5, 8), 6),
          random_tensor(TL_f32, SIZES(8, 19), 7), 1e-5);
}

Test(matmul, leading_axes_of_a_view_merge_or_are_copied)
{
    tl_tensor *base = random_tensor(TL_f32, SIZES(3, 8, 4, 10), 8), *a;

    cr_assert_eq(tl_tensor_view(&a, base, 4, (int64_t[]){3, 4, 8, 10},
                                (int64_t[]){320, 10, 40, 1}, 0, &ctx_diag),
                 TL_OK);
    tl_tensor_unref(base);
    check(a, random_tensor(TL_f32, SIZES(10, 6), 9), 1e-5);
}

Test(matmul, vectors)
{
    tl_tensor *v = tensor_f(TL_f32, SIZES(3), (double[]){1, 2, 3});
    tl_tensor *m = tensor_f(TL_f32, SIZES(3, 2),
                            (double[]){1, 2, 3, 4, 5, 6});
    tl_tensor *t = swapped(m), *y;

    cr_assert_eq(RUN(matmul, ((tl_tensor *[]){v, v}), 2, NULL, &y), TL_OK);
    cr_expect_eq(y->rank, 0);
    expect_f(y, (double[]){14}, 0);
    tl_tensor_unref(y);
    cr_assert_eq(RUN(matmul, ((tl_tensor *[]){v, m}), 2, NULL, &y), TL_OK);
    cr_expect_eq(y->rank, 1);
    expect_f(y, (double[]){22, 28}, 0);
    tl_tensor_unref(y);
    cr_assert_eq(RUN(matmul, ((tl_tensor *[]){t, v}), 2, NULL, &y), TL_OK);
    expect_f(y, (double[]){22, 28}, 0);
    tl_tensor_unref(y);
    tl_tensor_unref(t);
    tl_tensor_unref(m);
    tl_tensor_unref(v);
}

Test(matmul, empty_inner_dimension_gives_zeros)
{
    tl_tensor *in[] = {new_tensor(TL_f32, SIZES(2, 0)),
                       new_tensor(TL_f32, SIZES(0, 3))}, *y;

    cr_assert_eq(RUN(matmul, in, 2, NULL, &y), TL_OK);
    expect_f(y, (double[6]){0}, 0);
    tl_tensor_unref(in[0]);
    tl_tensor_unref(in[1]);
    tl_tensor_unref(y);
}

/* triton#2296: products of i8 are summed in i32. */
Test(matmul, i8_gives_i32)
{
    tl_tensor *in[] = {
        tensor_i(TL_i8, SIZES(2, 2), (int64_t[]){-44, -20, -126, 6}),
        tensor_i(TL_i8, SIZES(2, 2), (int64_t[]){24, -75, 127, -101})}, *y;

    cr_assert_eq(RUN(matmul, in, 2, NULL, &y), TL_OK);
    cr_expect_eq(y->dtype, TL_i32);
    expect_i(y, (int64_t[]){-3596, 5320, -2262, 8844});
    tl_tensor_unref(in[0]);
    tl_tensor_unref(in[1]);
    tl_tensor_unref(y);
}

Test(matmul, inner_dimensions_must_agree)
{
    tl_tensor *in[] = {new_tensor(TL_f32, SIZES(2, 3)),
                       new_tensor(TL_f32, SIZES(2, 3))}, *y;

    cr_expect_neq(RUN(matmul, in, 2, NULL, &y), TL_OK);
    cr_expect_eq(ctx_diag.last->code, TL_E0302);
    tl_tensor_unref(in[0]);
    tl_tensor_unref(in[1]);
}

/* Every backend against double sums, odd sizes, few rows and both forms. */
static void check_backend(const tl_gemm_backend *backend)
{
    static const int64_t size[][3] = {
        {1, 1, 1},  {1, 100, 70}, {2, 65, 33},  {3, 31, 300}, {4, 48, 17},
        {5, 17, 9}, {6, 16, 256}, {7, 40, 257}, {97, 130, 70}};
    void *scratch = aligned_alloc(64, backend->scratch + 64);

    for (size_t s = 0; s < sizeof(size) / sizeof(size[0]); s++) {
        for (int form = 0; form < 4; form++) {
            int64_t m = size[s][0], n = size[s][1], k = size[s][2], bad = 0;
            tl_tensor *a = random_tensor(TL_f32, SIZES(m, k), s);
            tl_tensor *b = random_tensor(TL_f32, SIZES(k, n), s + 50);
            tl_tensor *c = new_tensor(TL_f32, SIZES(m, n + 3));
            tl_gemm g = {.ta = form & 1, .tb = form >> 1, .m = m, .n = n,
                         .k = k, .scratch = scratch, .ldc = n + 3};
            tl_tensor *ta = new_tensor(TL_f32, SIZES(k, m));
            tl_tensor *tb = new_tensor(TL_f32, SIZES(n, k));

            for (int64_t i = 0; i < m * k; i++) {
                tl_tensor_set_f(ta, i % k * m + i / k, tl_tensor_get_f(a, i));
            }
            for (int64_t i = 0; i < k * n; i++) {
                tl_tensor_set_f(tb, i % n * k + i / n, tl_tensor_get_f(b, i));
            }
            g.a = tl_tensor_data(g.ta ? ta : a);
            g.b = tl_tensor_data(g.tb ? tb : b);
            g.c = tl_tensor_data(c);
            g.lda = g.ta ? m : k;
            g.ldb = g.tb ? k : n;
            cr_assert(backend->run(&g));
            for (int64_t i = 0; i < m * n; i++) {
                double sum = 0;
                float chain = 0;

                for (int64_t p = 0; p < k; p++) {
                    double x = at(a, 0, i / n, p), y = at(b, 0, p, i % n);

                    sum += x * y;
                    chain = fmaf((float)x, (float)y, chain);
                }
                double got = tl_tensor_get_f(c, i / n * (n + 3) + i % n);

                bad += !(fabs(got - sum) <= 3e-5);
                /* the promise of the own kernel: this chain, to the bit */
                bad += strcmp(backend->name, "own") == 0 &&
                       (float)got != chain;
            }
            cr_expect_eq(bad, 0, "%s: %lld wrong of %lldx%lldx%lld, form %d",
                         backend->name, (long long)bad, (long long)m,
                         (long long)n, (long long)k, form);
            tl_tensor_unref(a);
            tl_tensor_unref(b);
            tl_tensor_unref(c);
            tl_tensor_unref(ta);
            tl_tensor_unref(tb);
        }
    }
    free(scratch);
}

Test(matmul, backends_agree_with_double_sums)
{
    static const char *const name[] = {"plain", "own", "onednn"};

    for (int i = 0; i < 3; i++) {
        const tl_gemm_backend *backend = tl_gemm_find(name[i]);

        if (backend) {
            check_backend(backend);
        }
    }
}

Test(matmul, blocks_cover_the_product_and_suit_the_threads)
{
    const tl_gemm_backend *backend = tl_gemm_find("plain");

    for (int64_t t = 1; t <= 16; t++) {
        for (int64_t m = 1; m < 3000; m += 371) {
            for (int64_t n = 1; n < 3000; n += 411) {
                tl_blocks b = tl_gemm_blocks(backend, m, n, 700, t);

                cr_assert(b.rows * b.tm >= m && b.rows * (b.tm - 1) < m);
                cr_assert(b.columns * b.tn >= n &&
                          b.columns * (b.tn - 1) < n);
                cr_assert(b.rows == m || b.rows % 8 == 0);
                cr_assert(b.columns == n || b.columns % 16 == 0);
            }
        }
    }
}

Test(matmul, out_of_memory_is_a_status)
{
    tl_tensor *base = random_tensor(TL_f16, SIZES(64, 64), 1);
    tl_tensor *in[] = {base, base}, *y = new_tensor(TL_f16, SIZES(64, 64));

    for (uint64_t i = 1; i < 4; i++) {
        tl_mem_fail_at(i, false);
        cr_expect_eq(tl_cpu_matmul(&ctx, TL_OP_matmul, in, 2, &y, 1, NULL),
                     TL_ERR_MEMORY, "allocation %d", (int)i);
        tl_mem_fail_at(0, false);
    }
    tl_tensor_unref(base);
    tl_tensor_unref(y);
}
