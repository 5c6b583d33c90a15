/* Shape rules that operations share, with numbers and with symbols. */
#include "runtime/op/shape.h"

#include <criterion/criterion.h>
#include <string.h>

static tl_diag diag;
static tl_infer cx;

static void setup(void)
{
    tl_diag_init(&diag, NULL);
    cx = (tl_infer){.diag = &diag};
}

static void teardown(void)
{
    tl_dims_free(cx.dims);
    tl_diag_fini(&diag);
}

TestSuite(shape, .init = setup, .fini = teardown);

static tl_shape shape(int rank, const int64_t *size)
{
    tl_shape s = {.rank = rank};

    for (int i = 0; i < rank; i++) {
        s.dim[i] = tl_dim_num(size[i]);
    }
    return s;
}
#define SHAPE(...)                                                           \
    shape(sizeof((int64_t[]){__VA_ARGS__}) / 8, (int64_t[]){__VA_ARGS__})

static tl_dim atom(const char *name)
{
    tl_dim d;

    if (!cx.dims) {
        cr_assert_eq(tl_dims_new(&cx.dims, NULL), TL_OK);
    }
    cr_assert_eq(tl_dim_atom(cx.dims, name, 0, &d, NULL), TL_OK);
    return d;
}

static void expect_broadcast(tl_shape a, tl_shape b, const char *want)
{
    tl_shape out;

    cr_assert_eq(tl_shape_broadcast(&cx, &out, &a, &b), TL_OK);
    cr_expect_str_eq(tl_shape_str(&out).s, want);
}

static void expect_refused(tl_shape a, tl_shape b, tl_code code)
{
    tl_shape out = {.rank = 7};

    cr_assert_neq(tl_shape_broadcast(&cx, &out, &a, &b), TL_OK);
    cr_expect_eq(diag.last->code, code);
    cr_expect_eq(out.rank, 7);
}

Test(shape, broadcast_of_numbers)
{
    expect_broadcast(SHAPE(2, 3), SHAPE(3), "[2, 3]");
    expect_broadcast(SHAPE(2, 1), SHAPE(1, 3), "[2, 3]");
    expect_broadcast(SHAPE(2, 3), (tl_shape){0}, "[2, 3]");
    expect_broadcast(SHAPE(1, 3), SHAPE(0, 1), "[0, 3]");
    expect_broadcast(SHAPE(4, 1), SHAPE(1), "[4, 1]");
}

Test(shape, broadcast_rejects_mismatch)
{
    expect_refused(SHAPE(2, 3), SHAPE(2), TL_E0301);
    cr_expect_str_eq(diag.last->message,
                     "cannot broadcast [2, 3] with [2]: dimension 1 is 3 "
                     "against 2");
    expect_refused(SHAPE(0), SHAPE(3), TL_E0301);
}

Test(shape, broadcast_rejects_both_growing_at_different_ranks)
{
    expect_refused(SHAPE(4, 1), SHAPE(4), TL_E0310);
    expect_refused(SHAPE(2, 1, 4), SHAPE(3, 1), TL_E0310);
}

Test(shape, broadcast_may_write_its_operand)
{
    tl_shape a = SHAPE(3), b = SHAPE(2, 3);

    cr_assert_eq(tl_shape_broadcast(&cx, &a, &a, &b), TL_OK);
    cr_expect_str_eq(tl_shape_str(&a).s, "[2, 3]");
}

Test(shape, names_never_stretch)
{
    tl_shape a = {.rank = 2, .dim = {atom("B"), atom("T")}};
    tl_shape b = {.rank = 2, .dim = {atom("B"), tl_dim_num(1)}};
    tl_shape c = {.rank = 2, .dim = {atom("B"), atom("H")}};

    expect_broadcast(a, b, "[B, T]");
    expect_refused(a, c, TL_E0301);
    cr_expect_eq(strncmp(diag.last->notes[0], "for example T = ", 16), 0);
}

static int guards;

static tl_status count_guard(void *arg, tl_dim a, tl_dim b)
{
    (void)arg;
    (void)a;
    (void)b;
    guards++;
    return TL_OK;
}

Test(shape, unknown_size_takes_the_known_one_and_leaves_a_guard)
{
    tl_shape a = {.rank = 1, .dim = {atom("T")}}, b = {.rank = 1};

    cr_assert_eq(tl_dim_fresh(cx.dims, NULL, &b.dim[0], NULL), TL_OK);
    cx.guard = count_guard;
    expect_broadcast(b, a, "[T]");
    expect_broadcast(a, b, "[T]");
    cr_expect_eq(guards, 2);
}

Test(shape, axes_count_from_both_ends)
{
    int axis;

    cr_assert_eq(tl_axis_normalise(-2, 2, &axis, &diag), TL_OK);
    cr_expect_eq(axis, 0);
    cr_expect_neq(tl_axis_normalise(2, 2, &axis, &diag), TL_OK);
    cr_expect_str_eq(diag.last->message, "axis must be in -2..1, got 2");
    cr_expect_neq(tl_axis_normalise(0, 0, &axis, &diag), TL_OK);
}

Test(shape, reduce_drops_or_keeps)
{
    tl_shape s = SHAPE(2, 3, 4), out;

    tl_shape_reduce(&out, &s, 0x5, false);
    cr_expect_str_eq(tl_shape_str(&out).s, "[3]");
    tl_shape_reduce(&s, &s, 0x5, true);
    cr_expect_str_eq(tl_shape_str(&s).s, "[1, 3, 1]");
}

Test(shape, number_of_elements_is_bounded)
{
    tl_shape big = SHAPE((int64_t)1 << 40, (int64_t)1 << 40);
    tl_shape empty = SHAPE((int64_t)1 << 40, (int64_t)1 << 40, 0);
    int64_t n = 5;

    cr_expect_neq(tl_shape_numel(&big, &n, &diag), TL_OK);
    cr_expect_eq(diag.last->code, TL_E0307);
    cr_expect_eq(n, 5);
    cr_assert_eq(tl_shape_numel(&empty, &n, &diag), TL_OK);
    cr_expect_eq(n, 0);
}

Test(shape, long_texts_are_cut)
{
    tl_shape s = {.rank = 16};
    tl_ttype t = {TL_f32, SHAPE(2, 3)};

    for (int i = 0; i < 16; i++) {
        s.dim[i] = tl_dim_num(1234567890123);
    }
    cr_expect_eq(strlen(tl_shape_str(&s).s), 159);
    cr_expect_str_eq(tl_shape_str(&s).s + 156, "...");
    cr_expect_str_eq(tl_ttype_str(&t).s, "f32[2, 3]");
}

Test(shape, attributes_compare_by_their_meaningful_part)
{
    tl_attrs a, b;

    memset(&a, 1, sizeof(a));
    memset(&b, 2, sizeof(b));
    tl_attrs_init(&a);
    tl_attrs_init(&b);
    cr_expect(tl_attrs_same(&a, &b));
    a.ndims = b.ndims = 1;
    a.dims[0] = tl_dim_num(3);
    cr_expect_not(tl_attrs_same(&a, &b));
    tl_attrs_copy(&b, &a);
    cr_expect(tl_attrs_same(&a, &b));
}
