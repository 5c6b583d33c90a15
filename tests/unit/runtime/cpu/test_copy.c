/* Copies between layouts, cat, slice_put, tril, triu, against plain loops. */
#include "tests/unit/runtime/cpu/kern_test.h"

static void setup(void)
{
    ctx_open(2);
}

TestSuite(copy, .init = setup, .fini = ctx_close);

static void expect_same(const tl_tensor *a, const tl_tensor *b)
{
    int64_t bad = 0;

    cr_assert_eq(a->numel, b->numel);
    for (int64_t i = 0; i < a->numel; i++) {
        bad += tl_tensor_get_i(a, i) != tl_tensor_get_i(b, i);
    }
    cr_expect_eq(bad, 0, "%lld of %lld elements differ", (long long)bad,
                 (long long)a->numel);
}

/* Copy of a view with these strides. */
static void check_view(tl_dtype dtype, const int64_t *base, int rank,
                       const int64_t *size, const int64_t *stride,
                       int64_t offset)
{
    tl_tensor *t = new_tensor(dtype, 1, base), *view, *y;

    for (int64_t i = 0; i < t->numel; i++) {
        tl_tensor_set_i(t, i, i % 101);
    }
    cr_assert_eq(tl_tensor_view(&view, t, rank, size, stride, offset,
                                &ctx_diag), TL_OK);
    cr_assert_eq(RUN(copy, &view, 1, NULL, &y), TL_OK);
    expect_same(y, view);
    tl_tensor_unref(y);
    tl_tensor_unref(view);
    tl_tensor_unref(t);
}

Test(copy, every_width_and_layout)
{
    static const tl_dtype dtype[] = {TL_u8, TL_i16, TL_f32, TL_f64};

    for (int i = 0; i < 4; i++) {
        tl_dtype t = dtype[i];

        check_view(t, (int64_t[]){70 * 90}, 2, (int64_t[]){90, 70},
                   (int64_t[]){1, 90}, 0); /* transposed */
        check_view(t, (int64_t[]){24}, 3, (int64_t[]){4, 2, 3},
                   (int64_t[]){1, 12, 4}, 0);
        check_view(t, (int64_t[]){100}, 2, (int64_t[]){5, 10},
                   (int64_t[]){-20, -2}, 99); /* reversed */
        check_view(t, (int64_t[]){10}, 3, (int64_t[]){3, 10, 4},
                   (int64_t[]){0, 1, 0}, 0); /* expanded */
        check_view(t, (int64_t[]){5}, 0, NULL, NULL, 3);
        check_view(t, (int64_t[]){5}, 2, (int64_t[]){0, 3},
                   (int64_t[]){3, 1}, 0);
        check_view(t, (int64_t[]){100000}, 1, (int64_t[]){99999},
                   (int64_t[]){1}, 1); /* a long row */
        check_view(t, (int64_t[]){300 * 400}, 3, (int64_t[]){400, 3, 100},
                   (int64_t[]){1, 40000, 400}, 0);
        check_view(t, (int64_t[]){300 * 400}, 2, (int64_t[]){300, 200},
                   (int64_t[]){400, 2}, 1);
    }
}

Test(copy, cat_along_each_axis)
{
    for (int axis = 0; axis < 3; axis++) {
        int64_t size[3][3] = {{2, 3, 4}, {2, 3, 4}, {2, 3, 4}}, at_axis = 0;
        tl_tensor *in[3], *y;
        tl_attrs at;

        tl_attrs_init(&at);
        at.axis = (int8_t)axis;
        for (int i = 0; i < 3; i++) {
            size[i][axis] = i == 1 ? 0 : 2 + i;
            in[i] = random_tensor(TL_i32, 3, size[i], 7 + (uint64_t)i);
        }
        cr_assert_eq(RUN(cat, in, 3, &at, &y), TL_OK);
        for (int i = 0; i < 3; i++) {
            tl_tensor *part;

            cr_assert_eq(tl_tensor_view(&part, y, 3, size[i], y->stride,
                                        at_axis * y->stride[axis], &ctx_diag),
                         TL_OK);
            expect_same(part, in[i]);
            at_axis += size[i][axis];
            tl_tensor_unref(part);
            tl_tensor_unref(in[i]);
        }
        tl_tensor_unref(y);
    }
}

Test(copy, cat_refuses_parts_that_differ)
{
    tl_tensor *in[] = {new_tensor(TL_f32, SIZES(1, 4)),
                       new_tensor(TL_f32, SIZES(2, 3))}, *y;
    tl_attrs at;

    tl_attrs_init(&at);
    cr_expect_neq(RUN(cat, in, 2, &at, &y), TL_OK);
    cr_expect_eq(ctx_diag.last->code, TL_E0325);
    cr_expect_str_eq(ctx_diag.last->message,
                     "dimension 1: 4 against 3 in input 1");
    cr_expect_neq(RUN(cat, in, 0, &at, &y), TL_OK);
    cr_expect_eq(ctx_diag.last->code, TL_E0311);
    tl_tensor_unref(in[0]);
    tl_tensor_unref(in[1]);
}

Test(copy, slice_put_writes_the_elements_of_a_slice)
{
    tl_tensor *in[] = {tensor_i(TL_i64, SIZES(2, 4),
                                (int64_t[]){1, 2, 3, 4, 5, 6, 7, 8}),
                       tensor_i(TL_i64, SIZES(2), (int64_t[]){10, 20})}, *y;
    tl_shape shape = {2, {tl_dim_num(2), tl_dim_num(4)}};
    tl_attrs at;

    tl_attrs_slice_all(&at, &shape);
    at.dims[3] = tl_dim_num(3); /* [:, 3::-2] */
    at.dims[4] = tl_dim_num(2);
    at.dims[5] = tl_dim_num(-2);
    cr_assert_eq(RUN(slice_put, in, 2, &at, &y), TL_OK);
    expect_i(y, (int64_t[]){1, 20, 3, 10, 5, 20, 7, 10});
    tl_tensor_unref(y);
    /* in place: the result is the first input */
    cr_assert_eq(tl_cpu_slice_put(&ctx, TL_OP_slice_put, in, 2, in, 1, &at),
                 TL_OK);
    expect_i(in[0], (int64_t[]){1, 20, 3, 10, 5, 20, 7, 10});
    tl_tensor_unref(in[0]);
    tl_tensor_unref(in[1]);
}

Test(copy, triangles)
{
    tl_tensor *x = new_tensor(TL_f32, SIZES(2, 3, 4)), *y;
    tl_attrs at;

    for (int64_t i = 0; i < 24; i++) {
        tl_tensor_set_f(x, i, 1);
    }
    tl_attrs_init(&at);
    for (int64_t d = -5; d <= 5; d++) {
        at.i[0] = d;
        for (int lower = 0; lower < 2; lower++) {
            cr_assert_eq(lower ? RUN(tril, &x, 1, &at, &y)
                               : RUN(triu, &x, 1, &at, &y), TL_OK);
            for (int64_t e = 0; e < 24; e++) {
                int64_t i = e / 4 % 3, j = e % 4;
                bool kept = lower ? j <= i + d : j >= i + d;

                cr_expect_eq(tl_tensor_get_i(y, e), kept);
            }
            tl_tensor_unref(y);
        }
    }
    tl_tensor_unref(x);
}
