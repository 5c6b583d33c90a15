/* Reading and writing by index: gather, scatter_add, index, index_put,
 * nonzero, one_hot, embedding. */
#include "tests/unit/runtime/cpu/kern_test.h"

static void setup(void)
{
    ctx_open(2);
}

TestSuite(index, .init = setup, .fini = ctx_close);

static tl_attrs attrs(void)
{
    tl_attrs at;

    tl_attrs_init(&at);
    return at;
}

static void drop(tl_tensor **t, int n)
{
    for (int i = 0; i < n; i++) {
        tl_tensor_unref(t[i]);
    }
}

/* 0, 1, 2, ... */
static tl_tensor *counted(tl_dtype dtype, int rank, const int64_t *size)
{
    tl_tensor *t = new_tensor(dtype, rank, size);

    for (int64_t i = 0; i < t->numel; i++) {
        tl_tensor_set_f(t, i, (double)i);
    }
    return t;
}

Test(index, gather_along_each_axis)
{
    tl_tensor *in[] = {counted(TL_f32, SIZES(3, 4)),
                       tensor_i(TL_i32, SIZES(2, 4),
                                (int64_t[]){2, 0, 1, 0, 0, 0, 0, 2})}, *y;
    tl_attrs at = attrs();

    cr_assert_eq(RUN(gather, in, 2, &at, &y), TL_OK);
    expect_f(y, (double[]){8, 1, 6, 3, 0, 1, 2, 11}, 0);
    tl_tensor_unref(y);
    at.axis = 1;
    cr_assert_eq(RUN(gather, in, 2, &at, &y), TL_OK);
    expect_f(y, (double[]){2, 0, 1, 0, 4, 4, 4, 6}, 0);
    tl_tensor_unref(y);
    drop(in, 2);
}

Test(index, gather_refuses_a_negative_index)
{
    tl_tensor *in[] = {counted(TL_f32, SIZES(3)),
                       tensor_i(TL_i64, SIZES(2), (int64_t[]){0, -1})}, *y;
    tl_attrs at = attrs();

    cr_expect_neq(RUN(gather, in, 2, &at, &y), TL_OK);
    cr_expect_eq(ctx_diag.last->code, TL_E0405);
    cr_expect_str_eq(ctx_diag.last->message,
                     "index -1 at [1], valid 0..2");
    drop(in, 2);
}

Test(index, scatter_add_sums_repeated_indices)
{
    tl_tensor *in[] = {counted(TL_f32, SIZES(2, 3)),
                       tensor_i(TL_i64, SIZES(3, 2),
                                (int64_t[]){0, 1, 0, 1, 1, 1}),
                       tensor_f(TL_f32, SIZES(3, 2),
                                (double[]){10, 20, 30, 40, 50, 60})}, *y;
    tl_attrs at = attrs();

    cr_assert_eq(RUN(scatter_add, in, 3, &at, &y), TL_OK);
    expect_f(y, (double[]){40, 1, 2, 53, 124, 5}, 0);
    tl_tensor_unref(y);
    drop(in, 3);
}

/* Many lines and tasks, along each axis, against plain loops. */
Test(index, gather_and_scatter_of_many_lines)
{
    enum { A = 40, B = 300, C = 9 };

    for (int axis = 0; axis < 3; axis++) {
        tl_tensor *x = random_tensor(TL_i64, SIZES(A, B, C), 1);
        tl_tensor *index = new_tensor(TL_i32, SIZES(A, B, C)), *y, *z;
        tl_tensor *in[] = {x, index, x};
        int64_t *want = tl_calloc(A * B * C, sizeof(*want)), bad = 0;
        int64_t stride = axis == 0 ? B * C : axis == 1 ? C : 1;
        tl_attrs at = attrs();
        uint64_t seed = 9;

        at.axis = (int8_t)axis;
        for (int64_t i = 0; i < A * B * C; i++) {
            want[i] = tl_tensor_get_i(x, i);
            tl_tensor_set_i(index, i,
                            (int64_t)((random_unit(&seed) + 1) / 2 *
                                      (double)x->size[axis]));
        }
        cr_assert_eq(RUN(gather, in, 2, &at, &y), TL_OK);
        cr_assert_eq(RUN(scatter_add, in, 3, &at, &z), TL_OK);
        for (int64_t i = 0; i < A * B * C; i++) {
            int64_t own = i / stride % x->size[axis];
            int64_t other = i + (tl_tensor_get_i(index, i) - own) * stride;

            bad += tl_tensor_get_i(y, i) != tl_tensor_get_i(x, other);
            want[other] += tl_tensor_get_i(x, i);
        }
        bad += memcmp(want, tl_tensor_data(z), sizeof(*want) * A * B * C) != 0;
        cr_expect_eq(bad, 0, "axis %d", axis);
        tl_free(want);
        drop((tl_tensor *[]){x, index, y, z}, 4);
    }
}

/* candle#2586 and friends: 16-bit floats are summed in f32. */
Test(index, scatter_add_of_f16_rounds_once)
{
    tl_tensor *in[] = {counted(TL_f16, SIZES(1)),
                       new_tensor(TL_i64, SIZES(4096)),
                       new_tensor(TL_f16, SIZES(4096))}, *y;
    tl_attrs at = attrs();

    for (int i = 0; i < 4096; i++) {
        tl_tensor_set_i(in[1], i, 0);
        tl_tensor_set_f(in[2], i, 1);
    }
    cr_assert_eq(RUN(scatter_add, in, 3, &at, &y), TL_OK);
    expect_f(y, (double[]){4096}, 0);
    tl_tensor_unref(y);
    drop(in, 3);
}

/* x[i] of f32[2, 3, 4] for every position, against a plain loop. */
Test(index, one_index_tensor_at_each_axis)
{
    for (int axis = 0; axis < 3; axis++) {
        tl_tensor *in[] = {counted(TL_f64, SIZES(2, 3, 4)),
                           tensor_i(TL_i64, SIZES(2, 2),
                                    (int64_t[]){1, 0, -1, 1})}, *y;
        tl_attrs at = attrs();
        int64_t x[3], e = 0;

        at.axes = (uint16_t)(1 << axis);
        cr_assert_eq(RUN(index, in, 2, &at, &y), TL_OK);
        cr_expect_eq(y->rank, 4);
        for (; e < y->numel; e++) {
            int64_t c[4], rest = e, i;

            for (int d = 3; d >= 0; d--) {
                c[d] = rest % y->size[d];
                rest /= y->size[d];
            }
            i = tl_tensor_get_i(in[1], c[axis] * 2 + c[axis + 1]);
            for (int d = 0, from = 0; d < 3; d++) {
                x[d] = d == axis ? (i < 0 ? i + in[0]->size[axis] : i)
                                 : c[from];
                from += d == axis ? 2 : 1;
            }
            cr_expect_eq(tl_tensor_get_i(y, e),
                         (x[0] * 3 + x[1]) * 4 + x[2]);
        }
        tl_tensor_unref(y);
        drop(in, 2);
    }
}

Test(index, two_neighbours_broadcast_and_stand_in_their_place)
{
    tl_tensor *in[] = {counted(TL_f32, SIZES(2, 3, 4)),
                       tensor_i(TL_i64, SIZES(2, 1), (int64_t[]){0, 2}),
                       tensor_i(TL_i64, SIZES(2), (int64_t[]){3, 1})}, *y;
    tl_attrs at = attrs();

    at.axes = 6;
    cr_assert_eq(RUN(index, in, 3, &at, &y), TL_OK);
    cr_expect_eq(y->rank, 3);
    expect_f(y, (double[]){3, 1, 11, 9, 15, 13, 23, 21}, 0);
    tl_tensor_unref(y);
    drop(in, 3);
}

Test(index, separated_indices_stand_in_front)
{
    tl_tensor *in[] = {counted(TL_f32, SIZES(2, 3, 4)),
                       tensor_i(TL_i64, SIZES(2), (int64_t[]){1, 0}),
                       tensor_i(TL_i64, SIZES(2), (int64_t[]){3, 2})}, *y;
    tl_attrs at = attrs();

    at.axes = 5;
    cr_assert_eq(RUN(index, in, 3, &at, &y), TL_OK);
    cr_expect_eq(y->size[0], 2);
    expect_f(y, (double[]){15, 19, 23, 2, 6, 10}, 0);
    tl_tensor_unref(y);
    drop(in, 3);
}

Test(index, out_of_range_names_value_and_bounds)
{
    tl_tensor *in[] = {counted(TL_f32, SIZES(3)),
                       tensor_i(TL_i64, SIZES(1), (int64_t[]){5})}, *y;
    tl_attrs at = attrs();

    at.axes = 1;
    cr_expect_neq(RUN(index, in, 2, &at, &y), TL_OK);
    cr_expect_str_eq(ctx_diag.last->message, "index 5 at [0], valid -3..2");
    drop(in, 2);
}

Test(index, put_replaces_or_adds_in_order)
{
    tl_tensor *in[] = {counted(TL_f32, SIZES(3, 2)),
                       tensor_f(TL_f32, SIZES(3, 2),
                                (double[]){10, 20, 30, 40, 50, 60}),
                       tensor_i(TL_i64, SIZES(3), (int64_t[]){2, 0, 2})}, *y;
    tl_attrs at = attrs();

    at.axes = 1;
    cr_assert_eq(RUN(index_put, in, 3, &at, &y), TL_OK);
    expect_f(y, (double[]){30, 40, 2, 3, 50, 60}, 0);
    tl_tensor_unref(y);
    at.i[0] = 1;
    cr_assert_eq(RUN(index_put, in, 3, &at, &y), TL_OK);
    expect_f(y, (double[]){30, 41, 2, 3, 64, 85}, 0);
    tl_tensor_unref(y);
    drop(in, 3);
}

Test(index, put_broadcasts_the_value)
{
    tl_tensor *in[] = {counted(TL_i16, SIZES(2, 3)),
                       tensor_i(TL_i16, 0, NULL, (int64_t[]){7}),
                       tensor_i(TL_i64, SIZES(2), (int64_t[]){0, 2})}, *y;
    tl_attrs at = attrs();

    at.axes = 2;
    cr_assert_eq(RUN(index_put, in, 3, &at, &y), TL_OK);
    expect_i(y, (int64_t[]){7, 1, 7, 7, 4, 7});
    tl_tensor_unref(y);
    drop(in, 3);
}

/* Large enough for many tasks; integers, so the order does not matter. */
Test(index, put_of_many_rows_equals_a_loop)
{
    enum { ROWS = 50, COLS = 700, PLACES = 3000 };
    tl_tensor *in[] = {random_tensor(TL_i64, SIZES(ROWS, COLS), 1),
                       random_tensor(TL_i64, SIZES(PLACES, COLS), 2),
                       new_tensor(TL_i64, SIZES(PLACES))}, *y;
    tl_attrs at = attrs();
    int64_t *want = tl_calloc(ROWS * COLS, sizeof(*want));
    uint64_t seed = 3;

    for (int64_t i = 0; i < ROWS * COLS; i++) {
        want[i] = tl_tensor_get_i(in[0], i);
    }
    for (int64_t p = 0; p < PLACES; p++) {
        int64_t row = (int64_t)((random_unit(&seed) + 1) * ROWS / 2);

        tl_tensor_set_i(in[2], p, row);
        for (int64_t c = 0; c < COLS; c++) {
            want[row * COLS + c] += tl_tensor_get_i(in[1], p * COLS + c);
        }
    }
    at.axes = 1;
    at.i[0] = 1;
    cr_assert_eq(RUN(index_put, in, 3, &at, &y), TL_OK);
    cr_expect_eq(memcmp(tl_tensor_data(y), want, sizeof(*want) * ROWS * COLS),
                 0);
    tl_free(want);
    tl_tensor_unref(y);
    drop(in, 3);
}

Test(index, nonzero_of_a_mask_and_of_floats)
{
    tl_tensor *x = tensor_f(TL_f32, SIZES(2, 3),
                            (double[]){0, 2, -0.0, NAN, 0, 1e-40}), *y;
    tl_attrs at = attrs();

    cr_assert_eq(RUN(nonzero, &x, 1, &at, &y), TL_OK);
    cr_expect_eq(y->size[0], 3);
    expect_i(y, (int64_t[]){0, 1, 1, 0, 1, 2});
    tl_tensor_unref(y);
    at.ndims = 1;
    at.dims[0] = tl_dim_num(2);
    cr_assert_eq(RUN(nonzero, &x, 1, &at, &y), TL_OK);
    expect_i(y, (int64_t[]){0, 1, 1, 0});
    tl_tensor_unref(y);
    at.dims[0] = tl_dim_num(4);
    cr_assert_eq(RUN(nonzero, &x, 1, &at, &y), TL_OK);
    expect_i(y, (int64_t[]){0, 1, 1, 0, 1, 2, -1, -1});
    tl_tensor_unref(y);
    tl_tensor_unref(x);
}

Test(index, nonzero_of_many_chunks)
{
    enum { N = 200000 };
    tl_tensor *x = new_tensor(TL_bool, SIZES(N)), *y;
    tl_attrs at = attrs();

    for (int64_t i = 0; i < N; i++) {
        tl_tensor_set_i(x, i, i % 7 == 0);
    }
    cr_assert_eq(RUN(nonzero, &x, 1, &at, &y), TL_OK);
    cr_expect_eq(y->numel, (N + 6) / 7);
    for (int64_t i = 0; i < y->numel; i++) {
        cr_assert_eq(tl_tensor_get_i(y, i), 7 * i);
    }
    tl_tensor_unref(y);
    tl_tensor_unref(x);
}

Test(index, one_hot_checks_its_classes)
{
    tl_tensor *x = tensor_i(TL_i64, SIZES(2), (int64_t[]){2, 0}), *y;
    tl_attrs at = attrs();

    at.ndims = 1;
    at.dims[0] = tl_dim_num(3);
    cr_assert_eq(RUN(one_hot, &x, 1, &at, &y), TL_OK);
    expect_i(y, (int64_t[]){0, 0, 1, 1, 0, 0});
    tl_tensor_unref(y);
    at.dims[0] = tl_dim_num(2);
    cr_expect_neq(RUN(one_hot, &x, 1, &at, &y), TL_OK);
    cr_expect_eq(ctx_diag.last->code, TL_E0405);
    tl_tensor_unref(x);
}

Test(index, embedding_names_the_id_outside_the_table)
{
    tl_tensor *in[] = {counted(TL_f32, SIZES(3, 2)),
                       tensor_i(TL_i64, SIZES(2, 2), (int64_t[]){0, 2, 1, 3})},
              *y;
    tl_attrs at = attrs();

    at.i[0] = -1;
    cr_expect_neq(RUN(embedding, in, 2, &at, &y), TL_OK);
    cr_expect_eq(ctx_diag.last->code, TL_E0406);
    cr_expect_str_eq(ctx_diag.last->message,
                     "id 3 at [1, 1], table has 3 rows");
    tl_tensor_set_i(in[1], 3, 0);
    cr_assert_eq(RUN(embedding, in, 2, &at, &y), TL_OK);
    expect_f(y, (double[]){0, 1, 4, 5, 2, 3, 0, 1}, 0);
    tl_tensor_unref(y);
    drop(in, 2);
}

/* pytorch#26302: the padding row gets no gradient; repeated ids add up. */
Test(index, embedding_gradient_sums_by_id)
{
    tl_tensor *in[] = {tensor_f(TL_f32, SIZES(4, 2),
                                (double[]){1, 1, 1, 1, 1, 1, 1, 1}),
                       tensor_i(TL_i64, SIZES(4), (int64_t[]){0, 1, 1, 0})},
              *y;
    tl_attrs at = attrs();

    at.ndims = 2;
    at.dims[0] = tl_dim_num(3);
    at.dims[1] = tl_dim_num(2);
    cr_assert_eq(RUN(embedding_grad, in, 2, &at, &y), TL_OK);
    expect_f(y, (double[]){0, 0, 2, 2, 0, 0}, 0);
    tl_tensor_unref(y);
    at.i[0] = -1;
    cr_assert_eq(RUN(embedding_grad, in, 2, &at, &y), TL_OK);
    expect_f(y, (double[]){2, 2, 2, 2, 0, 0}, 0);
    tl_tensor_unref(y);
    drop(in, 2);
}
