/* The contract of matrix products (research/contract.md): the bits depend on
 * shapes, number of threads and orientation of the operands alone.
 *
 * Every product is compared, element by element, with its blocks run one
 * after the other, last first, by plain calls of the backend. */
#include <pthread.h>
#include <stdatomic.h>

#include "runtime/base/threads.h"
#include "runtime/cpu/gemm.h"
#include "runtime/cpu/kern.h"
#include "tests/unit/runtime/helper.h"

TestSuite(products, .init = rt_setup, .fini = rt_teardown);

/* m, n, k of gpt2, gpt_mini, lstm and mlp layers in small, and odd ones. */
static const int64_t shapes[][3] = {
    {256, 768, 96},  {96, 257, 768},  {128, 384, 128}, {64, 1024, 64},
    {7, 3072, 192},  {1, 5000, 96},   {32, 128, 64},   {33, 65, 129},
    {513, 70, 40},   {300, 1040, 30}, {6, 16, 1},      {1, 1, 1000},
};
enum { SHAPES = sizeof(shapes) / sizeof(shapes[0]), FORMS = 3 };

/* A kernel context with its own number of threads. */
static tl_kernel_ctx with_threads(int threads, bool deterministic)
{
    tl_kernel_ctx k = rt.kctx;

    OK(tl_threads_new(&k.threads, threads, &diag));
    k.deterministic = deterministic;
    return k;
}

static tl_tensor *random_f32(int64_t rows, int64_t cols, uint64_t seed)
{
    tl_tensor *t = make(TL_f32, 2, DIMS(rows, cols), NULL);
    float *x = tl_tensor_data(t);

    for (int64_t i = 0; i < t->numel; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        x[i] = (float)(seed >> 40) * 0x1p-23f - 1;
    }
    return t;
}

/* Operands of a shape in form nn, nt, tn; stored as the form says, with
 * `pad` elements between rows and `shift` elements before the first. */
typedef struct operands {
    tl_tensor *a, *b; /* as the product sees them */
} operands;

static tl_tensor *stored(tl_tensor *values, bool transposed, int64_t pad,
                         int64_t shift)
{
    int64_t rows = values->size[transposed], cols = values->size[!transposed];
    tl_tensor *room = make(TL_f32, 1, DIMS(rows * (cols + pad) + shift), NULL);
    int64_t size[2] = {values->size[0], values->size[1]};
    int64_t stride[2] = {cols + pad, 1};
    float *to = (float *)tl_tensor_data(room) + shift;
    const float *from = tl_tensor_data(values);
    tl_tensor *view;

    if (transposed) {
        stride[0] = 1;
        stride[1] = cols + pad;
    }
    for (int64_t i = 0; i < size[0]; i++) {
        for (int64_t j = 0; j < size[1]; j++) {
            to[i * stride[0] + j * stride[1]] = from[i * size[1] + j];
        }
    }
    OK(tl_tensor_view(&view, room, 2, size, stride, shift, &diag));
    tl_tensor_unref(room);
    return view;
}

static operands make_operands(const int64_t *shape, int form, int64_t pad,
                              int64_t shift)
{
    tl_tensor *a = random_f32(shape[0], shape[2], 1);
    tl_tensor *b = random_f32(shape[2], shape[1], 2);
    operands o = {stored(a, form == 2, pad, shift),
                  stored(b, form == 1, pad, shift)};

    tl_tensor_unref(a);
    tl_tensor_unref(b);
    return o;
}

static void drop(operands o)
{
    tl_tensor_unref(o.a);
    tl_tensor_unref(o.b);
}

static tl_tensor *product(tl_kernel_ctx *k, operands o)
{
    tl_tensor *in[] = {o.a, o.b};
    tl_tensor *y = make(TL_f32, 2, DIMS(o.a->size[0], o.b->size[1]), NULL);

    OK(tl_cpu_matmul(k, TL_OP_matmul, in, 2, &y, 1, NULL));
    return y;
}

/* Is a matrix given to the backend as a transposed one? (matmul.c) */
static bool is_transposed(const tl_tensor *t)
{
    return t->stride[1] != 1 && t->size[1] != 1;
}

/* The blocks of the rule, last first, each by one plain call. */
static tl_tensor *by_blocks(operands o, int64_t threads)
{
    const tl_gemm_backend *backend = tl_gemm_default();
    int64_t m = o.a->size[0], k = o.a->size[1], n = o.b->size[1];
    tl_blocks cut = tl_gemm_blocks(backend, m, n, k, threads);
    tl_tensor *y = make(TL_f32, 2, DIMS(m, n), NULL);
    void *scratch = aligned_alloc(64, backend->scratch + 64);
    tl_gemm g = {.ta = is_transposed(o.a), .tb = is_transposed(o.b), .k = k,
                 .ldc = n, .scratch = scratch};

    g.lda = o.a->stride[g.ta];
    g.ldb = o.b->stride[g.tb];
    g.lda = m == 1 && !g.ta ? k : g.lda;
    g.ldb = k == 1 && !g.tb ? n : g.ldb;
    for (int64_t task = cut.tm * cut.tn - 1; task >= 0; task--) {
        int64_t i = task % cut.tm * cut.rows, j = task / cut.tm * cut.columns;

        g.m = m - i < cut.rows ? m - i : cut.rows;
        g.n = n - j < cut.columns ? n - j : cut.columns;
        g.a = (const float *)tl_tensor_data(o.a) + i * o.a->stride[0];
        g.b = (const float *)tl_tensor_data(o.b) + j * o.b->stride[1];
        g.c = (float *)tl_tensor_data(y) + i * n + j;
        cr_assert(backend->run(&g));
    }
    free(scratch);
    return y;
}

static bool same_bits(const tl_tensor *a, const tl_tensor *b)
{
    return memcmp(tl_tensor_data(a), tl_tensor_data(b),
                  (size_t)a->numel * sizeof(float)) == 0;
}

/* What differs, for a message. */
#define EXPECT_SAME(a, b, what)                                              \
    cr_expect(same_bits(a, b), "%s: %lldx%lldx%lld, form %d, %d threads",    \
              what, (long long)shapes[s][0], (long long)shapes[s][1],        \
              (long long)shapes[s][2], form, threads)

Test(products, are_the_blocks_of_the_rule_for_1_to_16_threads)
{
    for (int threads = 1; threads <= 16; threads++) {
        tl_kernel_ctx k = with_threads(threads, false);

        for (int s = 0; s < SHAPES; s++) {
            for (int form = 0; form < FORMS; form++) {
                operands o = make_operands(shapes[s], form, 0, 0);
                tl_tensor *y = product(&k, o), *z = by_blocks(o, threads);

                EXPECT_SAME(y, z, "blocks");
                tl_tensor_unref(y);
                tl_tensor_unref(z);
                drop(o);
            }
        }
        tl_threads_free(k.threads);
    }
}

Test(products, do_not_depend_on_threads_when_deterministic)
{
    tl_kernel_ctx one = with_threads(1, true);

    for (int threads = 2; threads <= 16; threads += 7) {
        tl_kernel_ctx k = with_threads(threads, true);

        for (int s = 0; s < SHAPES; s++) {
            for (int form = 0; form < FORMS; form++) {
                operands o = make_operands(shapes[s], form, 0, 0);
                tl_tensor *y = product(&one, o), *z = product(&k, o);

                EXPECT_SAME(y, z, "deterministic");
                tl_tensor_unref(y);
                tl_tensor_unref(z);
                drop(o);
            }
        }
        tl_threads_free(k.threads);
    }
    tl_threads_free(one.threads);
}

/* Offsets of 4, 16 and 32 bytes, and wider leading dimensions. */
Test(products, do_not_depend_on_addresses_or_leading_dimensions)
{
    static const int64_t place[][2] = {{0, 1}, {0, 4}, {0, 8}, {5, 3}, {64, 0}};
    const int threads = 2;
    tl_kernel_ctx k = with_threads(threads, false);

    for (int s = 0; s < SHAPES; s++) {
        for (int form = 0; form < FORMS; form++) {
            operands o = make_operands(shapes[s], form, 0, 0);
            tl_tensor *y = product(&k, o);

            for (int p = 0; p < 5; p++) {
                operands moved = make_operands(shapes[s], form, place[p][0],
                                               place[p][1]);
                tl_tensor *z = product(&k, moved);

                EXPECT_SAME(y, z, "moved operands");
                tl_tensor_unref(z);
                drop(moved);
            }
            tl_tensor_unref(y);
            drop(o);
        }
    }
    tl_threads_free(k.threads);
}

/* Other strides are copied row-major first: the bits of form nn. */
Test(products, copy_what_no_backend_takes)
{
    const int threads = 2, form = 0;
    tl_kernel_ctx k = with_threads(threads, false);

    for (int s = 0; s < SHAPES; s++) {
        int64_t m = shapes[s][0], depth = shapes[s][2];
        operands o = make_operands(shapes[s], 0, 0, 0), odd = o;
        tl_tensor *room = make(TL_f32, 3, DIMS(m, depth, 3), NULL), *y, *z;

        for (int64_t i = 0; i < m * depth; i++) {
            ((float *)tl_tensor_data(room))[3 * i] =
                ((const float *)tl_tensor_data(o.a))[i];
        }
        OK(tl_tensor_view(&odd.a, room, 2, DIMS(m, depth),
                          DIMS(3 * depth, 3), 0, &diag));
        y = product(&k, o);
        z = product(&k, odd);
        EXPECT_SAME(y, z, "copied operand");
        tl_tensor_unref(y);
        tl_tensor_unref(z);
        tl_tensor_unref(odd.a);
        tl_tensor_unref(room);
        drop(o);
    }
    tl_threads_free(k.threads);
}

/* [.., K] @ [K, N]: leading axes are rows, of one product. */
Test(products, merge_leading_axes_of_the_left_operand)
{
    tl_kernel_ctx k = with_threads(2, false);
    operands o = make_operands((int64_t[]){120, 200, 70}, 0, 0, 0);
    tl_tensor *stack = reshape(o.a, 3, DIMS(4, 30, 70));
    tl_tensor *in[] = {stack, o.b}, *y = product(&k, o);
    tl_tensor *z = make(TL_f32, 3, DIMS(4, 30, 200), NULL);

    OK(tl_cpu_matmul(&k, TL_OP_matmul, in, 2, &z, 1, NULL));
    cr_expect(same_bits(y, z));
    tl_tensor_unref(y);
    tl_tensor_unref(z);
    tl_tensor_unref(stack);
    drop(o);
    tl_threads_free(k.threads);
}

/* Each product of a batch is cut for ceil(threads / batch) threads. */
Test(products, of_a_batch_are_single_products_of_fewer_threads)
{
    enum { BATCH = 3, M = 200, N = 500, K = 64 };

    for (int threads = 1; threads <= 16; threads += 5) {
        tl_kernel_ctx k = with_threads(threads, false);
        tl_tensor *a = random_f32(BATCH * M, K, 3);
        tl_tensor *b = random_f32(BATCH * K, N, 4);
        tl_tensor *in[] = {reshape(a, 3, DIMS(BATCH, M, K)),
                           reshape(b, 3, DIMS(BATCH, K, N))};
        tl_tensor *y = make(TL_f32, 3, DIMS(BATCH, M, N), NULL);

        OK(tl_cpu_matmul(&k, TL_OP_matmul, in, 2, &y, 1, NULL));
        for (int64_t i = 0; i < BATCH; i++) {
            operands o;
            tl_tensor *z;

            OK(tl_tensor_view(&o.a, a, 2, DIMS(M, K), DIMS(K, 1), i * M * K,
                              &diag));
            OK(tl_tensor_view(&o.b, b, 2, DIMS(K, N), DIMS(N, 1), i * K * N,
                              &diag));
            z = by_blocks(o, (threads + BATCH - 1) / BATCH);
            cr_expect_eq(memcmp((const float *)tl_tensor_data(y) + i * M * N,
                                tl_tensor_data(z), M * N * sizeof(float)), 0,
                         "matrix %d, %d threads", (int)i, threads);
            tl_tensor_unref(z);
            drop(o);
        }
        tl_tensor_unref(in[0]);
        tl_tensor_unref(in[1]);
        tl_tensor_unref(a);
        tl_tensor_unref(b);
        tl_tensor_unref(y);
        tl_threads_free(k.threads);
    }
}

/* A merged product (QKV) run as the union of the blocks of its parts, in a
 * buffer three times as wide, has the bits of three products. */
Test(products, merged_are_the_union_of_their_parts_blocks)
{
    enum { M = 256, D = 192, K = 128 };
    const tl_gemm_backend *backend = tl_gemm_default();
    tl_tensor *a = random_f32(M, K, 5), *b = random_f32(K, 3 * D, 6);
    tl_tensor *wide = make(TL_f32, 2, DIMS(M, 3 * D), NULL);
    void *scratch = aligned_alloc(64, backend->scratch + 64);
    tl_blocks cut = tl_gemm_blocks(backend, M, D, K, 2);

    for (int64_t part = 0; part < 3; part++) {
        tl_tensor *own = make(TL_f32, 2, DIMS(K, D), NULL), *y;
        operands o = {a, own};

        for (int64_t i = 0; i < K * D; i++) {
            tl_tensor_set_f(own, i, tl_tensor_get_f(
                                        b, i / D * 3 * D + part * D + i % D));
        }
        y = by_blocks(o, 2);
        for (int64_t task = 0; task < cut.tm * cut.tn; task++) {
            int64_t i = task % cut.tm * cut.rows;
            int64_t j = task / cut.tm * cut.columns;
            tl_gemm g = {
                .m = M - i < cut.rows ? M - i : cut.rows,
                .n = D - j < cut.columns ? D - j : cut.columns,
                .k = K, .lda = K, .ldb = 3 * D, .ldc = 3 * D,
                .a = (const float *)tl_tensor_data(a) + i * K,
                .b = (const float *)tl_tensor_data(b) + part * D + j,
                .c = (float *)tl_tensor_data(wide) + i * 3 * D + part * D + j,
                .scratch = scratch};

            cr_assert(backend->run(&g));
        }
        for (int64_t i = 0; i < M; i++) {
            cr_assert_eq(memcmp((const float *)tl_tensor_data(wide) +
                                    i * 3 * D + part * D,
                                (const float *)tl_tensor_data(y) + i * D,
                                D * sizeof(float)), 0);
        }
        tl_tensor_unref(y);
        tl_tensor_unref(own);
    }
    free(scratch);
    tl_tensor_unref(a);
    tl_tensor_unref(b);
    tl_tensor_unref(wide);
}

/* The own kernel may be cut anywhere. */
Test(products, of_the_own_kernel_do_not_depend_on_blocks)
{
    const tl_gemm_backend *own = tl_gemm_find("own");
    static const int64_t cuts[][2] = {{1, 1000}, {5, 16}, {7, 33}, {64, 48}};

    for (int s = 0; own && s < SHAPES; s++) {
        int64_t m = shapes[s][0], n = shapes[s][1], k = shapes[s][2];
        tl_tensor *a = random_f32(m, k, 7), *b = random_f32(k, n, 8);
        tl_tensor *y = make(TL_f32, 2, DIMS(m, n), NULL);
        tl_tensor *z = make(TL_f32, 2, DIMS(m, n), NULL);
        void *scratch = aligned_alloc(64, own->scratch);
        tl_gemm g = {.m = m, .n = n, .k = k, .lda = k, .ldb = n, .ldc = n,
                     .a = tl_tensor_data(a), .b = tl_tensor_data(b),
                     .c = tl_tensor_data(y), .scratch = scratch};

        own->run(&g);
        for (int c = 0; c < 4; c++) {
            for (int64_t i = 0; i < m; i += cuts[c][0]) {
                for (int64_t j = 0; j < n; j += cuts[c][1]) {
                    tl_gemm block = g;

                    block.m = m - i < cuts[c][0] ? m - i : cuts[c][0];
                    block.n = n - j < cuts[c][1] ? n - j : cuts[c][1];
                    block.a = (const float *)g.a + i * k;
                    block.b = (const float *)g.b + j;
                    block.c = (float *)tl_tensor_data(z) + i * n + j;
                    own->run(&block);
                }
            }
            cr_expect(same_bits(y, z), "shape %d, cut %d", s, c);
        }
        free(scratch);
        tl_tensor_unref(a);
        tl_tensor_unref(b);
        tl_tensor_unref(y);
        tl_tensor_unref(z);
    }
}

/* Two spinning threads take the cores away: who runs a block must not
 * matter. */
static void *spin(void *arg)
{
    const atomic_bool *stop = arg;

    while (!atomic_load_explicit(stop, memory_order_relaxed)) {
    }
    return NULL;
}

Test(products, keep_their_bits_under_load)
{
    const int threads = 4, form = 0;
    tl_kernel_ctx k = with_threads(threads, false);
    atomic_bool stop = false;
    pthread_t load[2];

    for (int i = 0; i < 2; i++) {
        cr_assert_eq(pthread_create(&load[i], NULL, spin, &stop), 0);
    }
    for (int s = 0; s < SHAPES; s++) {
        operands o = make_operands(shapes[s], form, 0, 0);
        tl_tensor *y = by_blocks(o, threads);

        for (int again = 0; again < 5; again++) {
            tl_tensor *z = product(&k, o);

            EXPECT_SAME(y, z, "under load");
            tl_tensor_unref(z);
        }
        tl_tensor_unref(y);
        drop(o);
    }
    atomic_store(&stop, true);
    for (int i = 0; i < 2; i++) {
        pthread_join(load[i], NULL);
    }
    tl_threads_free(k.threads);
}
