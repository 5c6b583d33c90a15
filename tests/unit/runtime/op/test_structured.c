/* Gradient rules of views and structured operations against central
 * differences: every row, first order, and second order where there is one. */
#include "runtime/autograd/gradcheck.h"
#include "runtime/op/decompose.h"
#include "runtime/op/loss.h"
#include "runtime/op/pool.h"
#include "runtime/op/resize.h"
#include "runtime/op/view.h"
#include "tests/unit/runtime/helper.h"

TestSuite(structured, .init = rt_setup, .fini = rt_teardown);

/* One operation under gradcheck; result `which` of it. */
typedef struct one {
    tl_op op;
    tl_attrs at;
    int which;
} one;

static tl_status apply_one(void *arg, tl_rt *r, tl_tensor *const *in, int n,
                           tl_tensor **out)
{
    const one *o = arg;
    tl_tensor *res[TL_MAX_OUTPUTS];

    TL_TRY(tl_apply_borrowed(r, o->op, in, n, &o->at, res));
    for (int i = 0; i < tl_op_get(o->op)->nout; i++) {
        if (i != o->which) {
            tl_tensor_unref(res[i]);
        }
    }
    *out = res[o->which];
    return TL_OK;
}

static tl_tensor *random_f64(int rank, const int64_t *size, uint64_t seed)
{
    tl_tensor *t = make(TL_f64, rank, size, NULL);

    for (int64_t i = 0; i < t->numel; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        tl_tensor_set_f(t, i, (double)(seed >> 11) * 0x1p-52 - 1);
    }
    return t;
}
#define RANDOM(seed, ...)                                                    \
    random_f64(sizeof((int64_t[]){__VA_ARGS__}) / 8,                         \
               (int64_t[]){__VA_ARGS__}, seed)

static one row(tl_op op)
{
    one o = {.op = op};

    tl_attrs_init(&o.at);
    return o;
}

/* Releases the inputs. */
static void check(const one *o, tl_tensor **in, int n, bool second)
{
    for (int order = 0; order <= second; order++) {
        tl_gradcheck_options options = {.second = order != 0, .rtol = 1e-5,
                                        .atol = 1e-7};
        tl_gradcheck_result r;

        OK(tl_gradcheck(&rt, apply_one, (void *)(uintptr_t)o, in, n, &options,
                        &r));
        cr_expect(r.ok, "%s, order %d: input %d [%lld]: %.9g against %.9g",
                  tl_op_get(o->op)->name, order + 1, r.input,
                  (long long)r.index, r.analytic, r.numeric);
        cr_expect(r.checked > 0);
    }
    for (int i = 0; i < n; i++) {
        tl_tensor_unref(in[i]);
    }
}
#define CHECK(o, second, ...)                                                \
    check(&(o), (tl_tensor *[]){__VA_ARGS__},                                \
          sizeof((tl_tensor *[]){__VA_ARGS__}) / sizeof(tl_tensor *), second)

static void set_dims(one *o, int n, const int64_t *dims)
{
    o->at.ndims = (uint16_t)n;
    for (int i = 0; i < n; i++) {
        o->at.dims[i] = tl_dim_num(dims[i]);
    }
}

Test(structured, views)
{
    one o = row(TL_OP_reshape);

    set_dims(&o, 2, DIMS(3, -1));
    CHECK(o, true, RANDOM(1, 2, 3, 2));
    o = row(TL_OP_permute);
    set_dims(&o, 3, DIMS(2, 0, 1));
    CHECK(o, true, RANDOM(2, 2, 3, 4));
    o = row(TL_OP_expand);
    set_dims(&o, 3, DIMS(2, 3, 4));
    CHECK(o, true, RANDOM(3, 3, 1));
    o = row(TL_OP_squeeze);
    o.at.axes = 2;
    CHECK(o, true, RANDOM(4, 2, 1, 3));
    o = row(TL_OP_unsqueeze);
    o.at.axes = 5;
    CHECK(o, true, RANDOM(5, 2));
    o = row(TL_OP_slice);
    set_dims(&o, 6, DIMS(2, 2, -2, 1, 3, 1));
    CHECK(o, true, RANDOM(6, 3, 5));
}

Test(structured, moving)
{
    one o = row(TL_OP_copy);

    CHECK(o, true, RANDOM(1, 2, 3));
    o = row(TL_OP_cat);
    o.at.axis = 1;
    CHECK(o, true, RANDOM(1, 2, 3), RANDOM(2, 2, 0), RANDOM(3, 2, 2));
    o = row(TL_OP_slice_put);
    set_dims(&o, 6, DIMS(0, 2, 1, 1, 2, 2));
    CHECK(o, true, RANDOM(1, 2, 5), RANDOM(2, 2));
    o = row(TL_OP_tril);
    o.at.i[0] = -1;
    CHECK(o, true, RANDOM(1, 2, 4, 3));
    o = row(TL_OP_triu);
    CHECK(o, true, RANDOM(1, 3, 4));
}

Test(structured, matmul_of_every_rank)
{
    one o = row(TL_OP_matmul);

    CHECK(o, true, RANDOM(1, 3, 4), RANDOM(2, 4, 2));
    CHECK(o, true, RANDOM(1, 4), RANDOM(2, 4));
    CHECK(o, true, RANDOM(1, 4), RANDOM(2, 4, 2));
    CHECK(o, true, RANDOM(1, 3, 4), RANDOM(2, 4));
    CHECK(o, true, RANDOM(1, 2, 3, 4), RANDOM(2, 4, 2));
    CHECK(o, true, RANDOM(1, 2, 3, 4), RANDOM(2, 2, 4, 2));
    CHECK(o, true, RANDOM(1, 2, 1, 3, 4), RANDOM(2, 1, 3, 4, 2));
    CHECK(o, true, RANDOM(1, 3, 4), RANDOM(2, 2, 4, 2));
    CHECK(o, true, RANDOM(1, 2, 3, 4), RANDOM(2, 4));
    CHECK(o, true, RANDOM(1, 4), RANDOM(2, 2, 4, 3));
}

/* Stride, padding and dilation of n axes, the sizes, groups. */
static one conv_row(tl_op op, int n, int64_t groups, const int64_t *dims)
{
    one o = row(op);

    set_dims(&o, 5 * n, dims);
    o.at.i[0] = groups;
    return o;
}

Test(structured, convolutions)
{
    one o = conv_row(TL_OP_conv, 1, 2, DIMS(2, 1, 0, 2, 0));

    CHECK(o, true, RANDOM(1, 2, 4, 6), RANDOM(2, 2, 2, 3));
    o = conv_row(TL_OP_conv_transpose, 1, 2, DIMS(2, 1, 0, 2, 7));
    CHECK(o, true, RANDOM(1, 2, 2, 2), RANDOM(2, 2, 2, 3));
    o = conv_row(TL_OP_conv_weight, 1, 2, DIMS(2, 1, 0, 2, 3));
    CHECK(o, true, RANDOM(1, 2, 4, 7), RANDOM(2, 2, 2, 2));
    o = conv_row(TL_OP_conv, 2, 1,
                 DIMS(1, 2, 1, 0, 1, 0, 1, 2, 0, 0));
    CHECK(o, true, RANDOM(1, 2, 2, 3, 5), RANDOM(2, 3, 2, 3, 2));
    o = conv_row(TL_OP_conv, 2, 3, DIMS(1, 1, 1, 1, 1, 1, 1, 1, 0, 0));
    CHECK(o, true, RANDOM(1, 1, 3, 3, 4), RANDOM(2, 3, 1, 3, 3));
    o = conv_row(TL_OP_conv, 3, 1,
                 DIMS(1, 1, 2, 0, 0, 1, 0, 0, 1, 1, 1, 1, 0, 0, 0));
    CHECK(o, true, RANDOM(1, 1, 2, 2, 2, 3), RANDOM(2, 2, 2, 1, 2, 3));
}

Test(structured, reading_and_writing_by_index)
{
    one o = row(TL_OP_gather);
    tl_tensor *i = make(TL_i64, 2, DIMS(2, 3), VALUES(0, 2, 0, 1, 1, 0));
    tl_tensor *j = make(TL_i64, 1, DIMS(3), VALUES(1, -1, 1));

    o.at.axis = 0;
    CHECK(o, true, RANDOM(1, 3, 3), tl_tensor_ref(i));
    o = row(TL_OP_scatter_add);
    CHECK(o, true, RANDOM(1, 3, 3), tl_tensor_ref(i), RANDOM(2, 2, 3));
    o = row(TL_OP_index);
    o.at.axes = 2;
    CHECK(o, true, RANDOM(1, 2, 3, 2), tl_tensor_ref(j));
    o.at.axes = 5;
    CHECK(o, true, RANDOM(1, 2, 3, 2), tl_tensor_ref(j), tl_tensor_ref(j));
    o = row(TL_OP_index_put);
    o.at.axes = 1;
    o.at.i[0] = 1;
    CHECK(o, true, RANDOM(1, 3, 2), RANDOM(2, 3, 1), tl_tensor_ref(j));
    o.at.i[0] = 0;
    tl_tensor_set_i(j, 2, 0); /* no index twice: the value has one place */
    CHECK(o, true, RANDOM(1, 3, 2), RANDOM(2, 2), tl_tensor_ref(j));
    tl_tensor_unref(i);
    tl_tensor_unref(j);
}

Test(structured, embedding_and_its_padding)
{
    one o = row(TL_OP_embedding);
    tl_tensor *ids = make(TL_i64, 2, DIMS(2, 2), VALUES(0, 2, 2, 1));

    o.at.i[0] = -1;
    CHECK(o, true, RANDOM(1, 3, 2), tl_tensor_ref(ids));
    o = row(TL_OP_embedding_grad);
    o.at.i[0] = 2;
    set_dims(&o, 2, DIMS(3, 2));
    CHECK(o, true, RANDOM(1, 2, 2, 2), ids);
}

Test(structured, softmax)
{
    one o = row(TL_OP_softmax);

    o.at.axis = 1;
    CHECK(o, true, RANDOM(1, 2, 3, 2));
    o.op = TL_OP_log_softmax;
    CHECK(o, true, RANDOM(2, 2, 3, 2));
    o.op = TL_OP_softmax_grad;
    CHECK(o, true, RANDOM(3, 2, 3), RANDOM(4, 2, 3));
    o.op = TL_OP_log_softmax_grad;
    CHECK(o, true, RANDOM(3, 2, 3), RANDOM(4, 2, 3));
}

Test(structured, cross_entropy)
{
    one o = row(TL_OP_cross_entropy);

    for (int form = 0; form < 9; form++) {
        o.at.i[0] = -100;
        o.at.i[1] = form % 3;
        o.at.f[0] = form / 3 == 1 ? 0.2 : 0;
        o.at.flag = form / 3 == 2; /* nll */
        CHECK(o, true, RANDOM(1, 3, 4),
              make(TL_i64, 1, DIMS(3), VALUES(3, -100, 0)));
    }
}

Test(structured, layer_norm)
{
    one o = row(TL_OP_layer_norm);

    o.at.i[0] = 1;
    o.at.f[0] = 1e-3;
    CHECK(o, true, RANDOM(1, 2, 5));
    CHECK(o, true, RANDOM(1, 2, 5), RANDOM(2, 5));
    CHECK(o, true, RANDOM(1, 2, 5), RANDOM(2, 5), RANDOM(3, 5));
    o.at.flag = true;
    CHECK(o, true, RANDOM(1, 2, 5), RANDOM(3, 5));
    o.at.i[0] = 2;
    o.at.flag = false;
    CHECK(o, true, RANDOM(1, 3, 2, 2), RANDOM(2, 2, 2), RANDOM(3, 2, 2));
}

/* Short rows, long rows, and no spatial axis; 0 groups: instance norm. */
Test(structured, norms_by_channel)
{
    one o = row(TL_OP_batch_norm);

    o.at.f[0] = 1e-3;
    CHECK(o, true, RANDOM(1, 4, 3));
    CHECK(o, true, RANDOM(1, 3, 2, 2), RANDOM(2, 2), RANDOM(3, 2));
    CHECK(o, true, RANDOM(1, 2, 2, 17), RANDOM(2, 2));
    for (int stat = 1; stat < 4; stat += 2) {
        o.which = stat;
        CHECK(o, true, RANDOM(1, 2, 2, 3));
    }
    o = row(TL_OP_group_norm);
    o.at.f[0] = 1e-3;
    for (int groups = 0; groups < 3; groups++) {
        o.at.i[0] = groups;
        o.at.flag = false;
        CHECK(o, true, RANDOM(1, 2, 4, 3), RANDOM(2, 4), RANDOM(3, 4));
        o.at.flag = true;
        CHECK(o, true, RANDOM(1, 1, 2, 17), RANDOM(2, 2));
    }
    o = row(TL_OP_rms_norm);
    o.at.f[0] = 1e-3;
    o.at.i[0] = 1;
    CHECK(o, true, RANDOM(1, 2, 5));
    o.at.i[0] = 2;
    CHECK(o, true, RANDOM(1, 3, 2, 2), RANDOM(2, 2, 2));
}

/* Every form, with and without an added mask: T, S, and heads of keys. */
Test(structured, sdpa)
{
    one o = row(TL_OP_sdpa);

    for (int form = 0; form < 4; form++) {
        o.at.flag = form % 2 == 1;
        o.at.keep = form > 1;
        o.at.f[0] = 0.7;
        CHECK(o, true, RANDOM(1, 3, 2), RANDOM(2, 4, 2), RANDOM(3, 4, 3));
        CHECK(o, true, RANDOM(1, 1, 4, 3, 2), RANDOM(2, 1, 2, 2, 2),
              RANDOM(3, 1, 2, 2, 1));
        CHECK(o, true, RANDOM(1, 1, 4, 2, 2), RANDOM(2, 1, 2, 3, 2),
              RANDOM(3, 1, 2, 3, 2), RANDOM(4, 4, 1, 3));
        CHECK(o, true, RANDOM(1, 2, 2), RANDOM(2, 3, 2), RANDOM(3, 3, 2),
              make(TL_bool, 2, DIMS(2, 3), VALUES(1, 0, 1, 0, 0, 0)));
        CHECK(o, false, RANDOM(1, 2, 70, 2), RANDOM(2, 2, 130, 2),
              RANDOM(3, 2, 130, 1));
    }
    o.at.f[1] = 0.4; /* the same draw in both */
    o.at.i[0] = 5;
    CHECK(o, true, RANDOM(1, 3, 2), RANDOM(2, 4, 2), RANDOM(3, 4, 3),
          RANDOM(4, 3, 4));
}

static void set_windows(one *o, int n, int64_t size, int64_t stride,
                        int64_t pad, int64_t dilation)
{
    tl_pool_attrs(&o->at, n);
    for (int i = 0; i < n; i++) {
        tl_pool_dims(&o->at, TL_POOL_SIZE)[i] = tl_dim_num(size);
        tl_pool_dims(&o->at, TL_POOL_STRIDE)[i] = tl_dim_num(stride);
        tl_pool_dims(&o->at, TL_POOL_PAD)[i] = tl_dim_num(pad);
        tl_pool_dims(&o->at, TL_POOL_DILATION)[i] = tl_dim_num(dilation);
    }
}

Test(structured, pooling)
{
    one o = row(TL_OP_max_pool);

    set_windows(&o, 2, 3, 2, 1, 1);
    CHECK(o, true, RANDOM(1, 2, 5, 6));
    set_windows(&o, 3, 2, 1, 0, 2);
    CHECK(o, true, RANDOM(2, 4, 3, 4));
    o.op = TL_OP_avg_pool;
    for (int count = 0; count < 2; count++) {
        set_windows(&o, 2, 3, 2, 1, 1);
        o.at.i[1] = 1;
        o.at.i[2] = count;
        CHECK(o, true, RANDOM(1, 2, 5, 6));
    }
    for (int op = 0; op < 2; op++) {
        o.op = op ? TL_OP_avg_pool : TL_OP_max_pool;
        set_windows(&o, 2, 3, 1, 0, 1);
        o.at.flag = true;
        CHECK(o, true, RANDOM(1, 5, 7));
    }
}

Test(structured, resizing)
{
    one o = row(TL_OP_resize);

    for (int form = 0; form < 8; form++) {
        o.at.i[0] = 2;
        o.at.i[1] = form / 2;
        o.at.flag = form % 2 && form > 3;
        set_dims(&o, 2, DIMS(3, 7));
        CHECK(o, true, RANDOM(1, 2, 4, 3));
    }
}

/* Well-conditioned: a random matrix plus 3 on the diagonal. */
static tl_tensor *dominant(uint64_t seed, int64_t n)
{
    tl_tensor *t = random_f64(3, DIMS(2, n, n), seed);

    for (int64_t i = 0; i < 2 * n; i++) {
        int64_t at = i / n * n * n + i % n * (n + 1);

        tl_tensor_set_f(t, at, tl_tensor_get_f(t, at) + 3);
    }
    return t;
}

Test(structured, linear_systems)
{
    for (int form = 0; form < 4; form++) {
        one o = row(TL_OP_tri_solve);

        o.at.flag = form / 2;
        o.at.i[0] = form % 2;
        CHECK(o, true, dominant(1, 3), RANDOM(2, 2, 3, 2));
        o.op = TL_OP_solve;
        CHECK(o, true, dominant(3, 3), RANDOM(4, 2, 3, 1));
    }
}

Test(structured, qr_tall_square_and_wide)
{
    one o = row(TL_OP_qr);

    for (o.which = 0; o.which < 2; o.which++) {
        CHECK(o, true, RANDOM(1, 4, 2));
        CHECK(o, true, dominant(2, 3));
        CHECK(o, true, RANDOM(3, 2, 2, 4));
    }
}

Test(structured, sorting)
{
    one o = row(TL_OP_sort);

    o.at.axis = 1;
    CHECK(o, true, RANDOM(1, 3, 4));
    o.op = TL_OP_topk;
    set_dims(&o, 1, DIMS(2));
    CHECK(o, true, RANDOM(2, 3, 4));
}

/* Two tapes run a region as its parts; the parts have the kernel's bits, or
 * are within `near` of them. */
static void expect_near_parts(tl_op op, tl_tensor **in, int n,
                              const tl_attrs *at, double near)
{
    tl_tensor *whole[TL_MAX_OUTPUTS];
    tl_node part[TL_MAX_OUTPUTS];
    tl_apply_emit e;

    OK(tl_apply_borrowed(&rt, op, in, n, at, whole));
    tl_apply_emit_init(&e, &rt);
    OK(tl_op_decompose(&e.emit, op, (const tl_node *)in, n, at, part));
    for (int r = 0; r < tl_op_get(op)->nout; r++) {
        int64_t bad = 0;

        cr_assert_eq(((tl_tensor *)part[r])->numel, whole[r]->numel);
        for (int64_t i = 0; i < whole[r]->numel; i++) {
            double x = tl_tensor_get_f(whole[r], i);
            double y = tl_tensor_get_f(part[r], i);

            bad += x != y && !(fabs(x - y) <= near);
        }
        cr_expect_eq(bad, 0, "%s, result %d: %lld of %lld differ",
                     tl_op_get(op)->name, r, (long long)bad,
                     (long long)whole[r]->numel);
        tl_tensor_unref(whole[r]);
    }
    tl_apply_emit_fini(&e);
    for (int i = 0; i < n; i++) {
        tl_tensor_unref(in[i]);
    }
}

static void expect_parts(tl_op op, tl_tensor **in, int n, const tl_attrs *at)
{
    expect_near_parts(op, in, n, at, 0);
}

static tl_tensor *random_f32(uint64_t seed, int rank, const int64_t *size)
{
    tl_tensor *wide = random_f64(rank, size, seed);
    tl_tensor *t = cast_to(TL_f32, wide);

    tl_tensor_unref(wide);
    return t;
}

Test(structured, regions_have_the_bits_of_their_parts)
{
    tl_attrs at;

    tl_attrs_init(&at);
    for (int form = 0; form < 9; form++) {
        tl_tensor *in[] = {random_f32(1, 2, DIMS(40, 1000)),
                           make(TL_i64, 1, DIMS(40), NULL),
                           random_f32(3, 1, DIMS(1000))};

        at.i[0] = 7;
        at.i[1] = form % 3;
        at.f[0] = form / 3 == 1 ? 0.1 : 0;
        at.flag = form / 3 == 2; /* nll */
        tl_tensor_ref(in[0]);
        tl_tensor_ref(in[1]);
        expect_parts(TL_OP_cross_entropy, in, 2, &at);
        expect_parts(TL_OP_cross_entropy, in, 3, &at);
    }
    tl_attrs_init(&at);
    at.i[0] = 1;
    at.f[0] = 1e-5;
    for (int64_t n = 5; n < 3000; n = 3 * n + 1) {
        tl_tensor *in[] = {random_f32(1, 2, DIMS(30, n)),
                           random_f32(2, 1, &n), random_f32(3, 1, &n)};

        for (int i = 0; i < 3; i++) {
            tl_tensor_ref(in[i]);
        }
        expect_parts(TL_OP_layer_norm, in, 3, &at);
        tl_tensor_unref(in[2]);
        expect_parts(TL_OP_rms_norm, in, 2, &at);
    }
}

Test(structured, norms_by_channel_have_the_bits_of_their_parts)
{
    static const int64_t size[][3] = {
        {30, 6, 1}, {7, 6, 5}, {3, 4, 16}, {2, 6, 1000}, {300, 4, 3}};
    tl_attrs at;

    tl_attrs_init(&at);
    at.f[0] = 1e-5;
    for (int i = 0; i < 5; i++) {
        for (int groups = 0; groups < 3; groups++) {
            int rank = size[i][2] == 1 ? 2 : 3;
            tl_tensor *in[] = {random_f32(1, rank, size[i]),
                               random_f32(2, 1, &size[i][1]),
                               random_f32(3, 1, &size[i][1])};

            for (int k = 0; k < 3; k++) {
                tl_tensor_ref(in[k]);
            }
            at.i[0] = rank == 2 && groups == 0 ? 3 : groups;
            expect_parts(TL_OP_group_norm, in, 3, &at);
            expect_parts(TL_OP_batch_norm, in, 3, &at);
        }
    }
}

/* Attention sums by tiles, its parts do not. */
Test(structured, sdpa_is_its_parts)
{
    tl_attrs at;

    tl_attrs_init(&at);
    for (int form = 0; form < 8; form++) {
        tl_tensor *in[] = {random_f32(1, 4, DIMS(2, 4, 150, 8)),
                           random_f32(2, 4, DIMS(2, 2, 300, 8)),
                           random_f32(3, 4, DIMS(2, 2, 300, 8)),
                           make(TL_bool, 2, DIMS(150, 300), NULL)};

        for (int64_t i = 0; i < in[3]->numel; i++) {
            tl_tensor_set_i(in[3], i, i >= 300 && i % 7 != 3);
        }
        at.flag = form % 2 == 1;
        at.keep = form % 4 > 1;
        at.f[0] = 3;
        at.f[1] = form > 3 ? 0.3 : 0;
        at.i[0] = 11;
        expect_near_parts(TL_OP_sdpa, in, form % 2 ? 4 : 3, &at, 2e-6);
        if (form % 2 == 0) {
            tl_tensor_unref(in[3]);
        }
    }
}

/* One part of x -> y by elementary operations, for softmax. */
Test(structured, softmax_has_the_bits_of_its_formula)
{
    tl_tensor *x = random_f32(5, 2, DIMS(9, 1500)), *y, *max, *e, *sum, *z;
    tl_attrs at, softmax;

    tl_attrs_init(&at);
    tl_attrs_init(&softmax);
    at.axes = 2;
    at.keep = true;
    softmax.axis = 1;
    y = call1(TL_OP_softmax, x, &softmax);
    max = call1(TL_OP_max, x, &at);
    e = eat1(TL_OP_exp, call2(TL_OP_sub, x, max), NULL);
    sum = call1(TL_OP_sum, e, &at);
    z = call2(TL_OP_div, e, sum);
    for (int64_t i = 0; i < x->numel; i++) {
        cr_assert_eq(tl_tensor_get_f(y, i), tl_tensor_get_f(z, i));
    }
    tl_tensor_unref(x);
    tl_tensor_unref(y);
    tl_tensor_unref(z);
    tl_tensor_unref(e);
    tl_tensor_unref(max);
    tl_tensor_unref(sum);
}
