/* Layouts of views against index arithmetic, slices against Python's, and the
 * errors of view rules. */
#include "runtime/op/view.h"

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

TestSuite(view, .init = setup, .fini = teardown);

static tl_attrs with_dims(int n, const int64_t *dims)
{
    tl_attrs at;

    tl_attrs_init(&at);
    at.ndims = (uint16_t)n;
    for (int i = 0; i < n; i++) {
        at.dims[i] = tl_dim_num(dims[i]);
    }
    return at;
}
#define WITH_DIMS(...)                                                       \
    with_dims(sizeof((int64_t[]){__VA_ARGS__}) / 8, (int64_t[]){__VA_ARGS__})

static tl_layout row_major(int rank, const int64_t *size)
{
    tl_layout l;

    tl_layout_row_major(&l, rank, size);
    return l;
}
#define ROW_MAJOR(...)                                                       \
    row_major(sizeof((int64_t[]){__VA_ARGS__}) / 8, (int64_t[]){__VA_ARGS__})

/* Place of the e-th element in row-major order. */
static int64_t place(const tl_layout *l, int64_t e)
{
    int64_t at = l->offset;

    for (int i = l->rank - 1; i >= 0; i--) {
        at += e % l->size[i] * l->stride[i];
        e /= l->size[i];
    }
    return at;
}

static int64_t numel(const tl_layout *l)
{
    int64_t n = 1;

    for (int i = 0; i < l->rank; i++) {
        n *= l->size[i];
    }
    return n;
}

/* Can the elements of `in`, in order, be addressed with the sizes of `want`?
 * By trying the only strides that can do it. */
static bool addressable(const tl_layout *in, const tl_layout *want)
{
    tl_layout try = *want;
    int64_t step = 1;

    try.offset = place(in, 0);
    for (int i = want->rank - 1; i >= 0; i--) {
        try.stride[i] = want->size[i] > 1 ? place(in, step) - try.offset : 0;
        step *= want->size[i];
    }
    for (int64_t e = 0; e < numel(in); e++) {
        if (place(in, e) != place(&try, e)) {
            return false;
        }
    }
    return true;
}

/* Reshape keeps the order of the elements, and asks for a copy only where no
 * strides do: every permutation of [2, 3, 4] to every shape of a list. */
Test(view, reshape_keeps_the_order_or_asks_for_a_copy)
{
    static const int64_t shape[][5] = {
        {1, 24},      {2, 6, 4},        {2, 2, 12},
        {3, 2, 3, 4}, {4, 1, 2, 12, 1}, {3, 4, 3, 2},
        {3, 8, 1, 3}, {2, 24, 1},       {4, 2, 3, 2, 2}};
    static const int64_t order[][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
                                       {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};

    for (int o = 0; o < 6; o++) {
        tl_attrs permute = with_dims(3, order[o]);
        tl_layout base = ROW_MAJOR(2, 3, 4), in;

        cr_assert(tl_view_layout(TL_OP_permute, &permute, &base, &in));
        for (size_t s = 0; s < sizeof(shape) / sizeof(shape[0]); s++) {
            tl_attrs at = with_dims((int)shape[s][0], &shape[s][1]);
            tl_layout out, want = row_major((int)shape[s][0], &shape[s][1]);
            bool possible = tl_view_layout(TL_OP_reshape, &at, &in, &out);

            cr_assert_eq(possible, addressable(&in, &want),
                         "order %d, shape %zu", o, s);
            for (int64_t e = 0; possible && e < 24; e++) {
                cr_assert_eq(place(&in, e), place(&out, e),
                             "order %d, shape %zu", o, s);
            }
        }
    }
}

Test(view, reshape_of_expanded_and_empty)
{
    tl_layout in = {.rank = 2, .size = {4, 3}, .stride = {0, 1}}, out;
    tl_attrs at = WITH_DIMS(2, 2, 3);

    cr_assert(tl_view_layout(TL_OP_reshape, &at, &in, &out));
    cr_expect_eq(out.stride[0], 0);
    cr_expect_eq(out.stride[1], 0);
    at = WITH_DIMS(12);
    cr_expect_not(tl_view_layout(TL_OP_reshape, &at, &in, &out));
    in = ROW_MAJOR(0, 3);
    at = WITH_DIMS(3, 0, 7);
    cr_assert(tl_view_layout(TL_OP_reshape, &at, &in, &out));
    in = ROW_MAJOR(1);
    at = with_dims(0, NULL);
    cr_assert(tl_view_layout(TL_OP_reshape, &at, &in, &out));
    cr_expect_eq(out.rank, 0);
}

Test(view, squeeze_and_unsqueeze_keep_rows_row_major)
{
    tl_layout in = ROW_MAJOR(2, 3), out, back;
    tl_attrs at;

    tl_attrs_init(&at);
    at.axes = 0x9; /* [1, 2, 3, 1] */
    cr_assert(tl_view_layout(TL_OP_unsqueeze, &at, &in, &out));
    cr_expect_eq(numel(&out), 6);
    cr_expect_eq(out.size[0], 1);
    cr_expect_eq(out.stride[0], 6);
    cr_expect_eq(out.stride[3], 1);
    cr_assert(tl_view_layout(TL_OP_squeeze, &at, &out, &back));
    cr_expect_eq(memcmp(&back.stride, &in.stride, 2 * sizeof(int64_t)), 0);
}

/* ---- slices ------------------------------------------------------------ */

/* Python's slice.indices, by walking. */
static void check_slice(int64_t n, const tl_axis_slice *s)
{
    tl_dim start, size;
    int64_t seen = 0, first = -1;
    int64_t low = s->step < 0 ? -1 : 0, high = s->step < 0 ? n - 1 : n;
    int64_t i = s->step < 0 ? n - 1 : 0, stop = s->step < 0 ? -1 : n;

    if (s->has_start) {
        i = tl_dim_value(s->start) + (tl_dim_value(s->start) < 0 ? n : 0);
        i = i < low ? low : i > high ? high : i;
    }
    if (s->has_stop) {
        stop = tl_dim_value(s->stop) + (tl_dim_value(s->stop) < 0 ? n : 0);
        stop = stop < low ? low : stop > high ? high : stop;
    }
    for (; s->step < 0 ? i > stop : i < stop; i += s->step) {
        first = seen++ ? first : i;
    }
    cr_assert_eq(tl_slice_resolve(&cx, tl_dim_num(n), s, &start, &size),
                 TL_OK);
    cr_assert_eq(tl_dim_value(size), seen);
    cr_assert(seen == 0 || tl_dim_value(start) == first);
}

Test(view, slices_are_those_of_python)
{
    for (int64_t n = 0; n <= 5; n++) {
        for (int64_t a = -7; a <= 8; a++) {
            for (int64_t b = -7; b <= 8; b++) {
                for (int64_t step = -3; step <= 3; step++) {
                    tl_axis_slice s = {
                        a < 8, b < 8, tl_dim_num(a), tl_dim_num(b),
                        step}; /* 8 stands for a missing bound */

                    if (step != 0) {
                        check_slice(n, &s);
                    }
                }
            }
        }
    }
}

Test(view, slice_step_zero_is_an_error)
{
    tl_axis_slice s = {.step = 0};
    tl_dim start, size;

    cr_expect_neq(tl_slice_resolve(&cx, tl_dim_num(3), &s, &start, &size),
                  TL_OK);
    cr_expect_eq(diag.last->code, TL_E0416);
}

static tl_dim atom(const char *name)
{
    tl_dim d;

    if (!cx.dims) {
        cr_assert_eq(tl_dims_new(&cx.dims, NULL), TL_OK);
    }
    cr_assert_eq(tl_dim_atom(cx.dims, name, 0, &d, NULL), TL_OK);
    return d;
}

static const char *slice_text(tl_dim n, tl_axis_slice s)
{
    static tl_shape_text text;
    tl_dim start, size;

    cr_assert_eq(tl_slice_resolve(&cx, n, &s, &start, &size), TL_OK);
    text = tl_dim_str(size);
    return text.s;
}

Test(view, symbolic_slices)
{
    tl_dim n = atom("n"), k = atom("k"), one = tl_dim_num(1);
    tl_dim two = tl_dim_num(2);

    cr_expect_str_eq(slice_text(n, (tl_axis_slice){.step = 1}), "n");
    cr_expect_str_eq(
        slice_text(
            n, (tl_axis_slice){.has_start = true, .start = one, .step = 1}),
        "n - 1");
    cr_expect_str_eq(slice_text(n, (tl_axis_slice){.has_stop = true,
                                                   .stop = tl_dim_num(-1),
                                                   .step = 1}),
                     "n - 1");
    cr_expect_str_eq(
        slice_text(n,
                   (tl_axis_slice){.has_stop = true, .stop = two, .step = 1}),
        "_");
    cr_expect_str_eq(
        slice_text(n,
                   (tl_axis_slice){.has_stop = true, .stop = k, .step = 1}),
        "_");
    cr_assert_eq(tl_dims_fact_le(cx.dims, k, n, NULL), TL_OK);
    cr_expect_str_eq(
        slice_text(n,
                   (tl_axis_slice){.has_stop = true, .stop = k, .step = 1}),
        "k");
    cr_expect_str_eq(
        slice_text(n,
                   (tl_axis_slice){.has_start = true, .start = k, .step = 1}),
        "n - k");
    cr_expect_str_eq(slice_text(n, (tl_axis_slice){.step = 2}), "(n + 1)//2");
    cr_expect_str_eq(slice_text(n, (tl_axis_slice){.step = -1}), "n");
}

/* ---- rules ------------------------------------------------------------- */

static tl_ttype f32(int rank, const int64_t *size)
{
    tl_ttype t = {TL_f32, {.rank = rank}};

    for (int i = 0; i < rank; i++) {
        t.shape.dim[i] = tl_dim_num(size[i]);
    }
    return t;
}
#define F32(...)                                                             \
    f32(sizeof((int64_t[]){__VA_ARGS__}) / 8, (int64_t[]){__VA_ARGS__})

static void expect_refused(tl_op op, tl_ttype in, tl_attrs at, tl_code code)
{
    tl_ttype out;

    cr_assert_neq(tl_op_infer(&cx, op, &in, 1, &at, &out), TL_OK);
    cr_expect_eq(diag.last->code, code, "%s: %s", tl_op_get(op)->name,
                 diag.last->message);
}

Test(view, errors_have_their_codes)
{
    tl_attrs at;

    expect_refused(TL_OP_reshape, F32(2, 3), WITH_DIMS(4), TL_E0303);
    expect_refused(TL_OP_reshape, F32(2, 3), WITH_DIMS(-1, 4), TL_E0303);
    expect_refused(TL_OP_reshape, F32(0, 3), WITH_DIMS(-1, 0), TL_E0305);
    expect_refused(TL_OP_reshape, F32(6), WITH_DIMS(-2, 3), TL_E0306);
    expect_refused(TL_OP_reshape, F32(6), WITH_DIMS(-1, -1), TL_E0306);
    expect_refused(TL_OP_permute, F32(2, 3), WITH_DIMS(0, 0), TL_E0309);
    expect_refused(TL_OP_permute, F32(2, 3), WITH_DIMS(0, 2), TL_E0309);
    expect_refused(TL_OP_permute, F32(2, 3), WITH_DIMS(0), TL_E0309);
    expect_refused(TL_OP_expand, F32(3), WITH_DIMS(6), TL_E0313);
    cr_expect_str_eq(diag.last->message, "cannot expand 3 to 6");
    expect_refused(TL_OP_expand, F32(2, 3), WITH_DIMS(3), TL_E0313);
    expect_refused(TL_OP_expand, F32(1), WITH_DIMS(-1, 1), TL_E0306);
    tl_attrs_init(&at);
    at.axes = 1;
    expect_refused(TL_OP_squeeze, F32(2, 3), at, TL_E0303);
    at.axes = 4;
    expect_refused(TL_OP_squeeze, F32(2, 3), at, TL_E0309);
    at.axes = 8;
    expect_refused(TL_OP_unsqueeze, F32(2, 3), at, TL_E0309);
    expect_refused(TL_OP_slice, F32(3), WITH_DIMS(1, 3, 1), TL_E0405);
    expect_refused(TL_OP_slice, F32(3), WITH_DIMS(2, 3, -2), TL_E0405);
}

Test(view, symbolic_reshape_uses_facts)
{
    tl_dim d = atom("d"), h = atom("h"), q, rest;
    tl_ttype in = {TL_f32, {2, {atom("B"), d}}}, out;
    tl_attrs at = WITH_DIMS(0, 0, 0);

    cr_assert_eq(tl_dim_div(cx.dims, d, h, &q, NULL), TL_OK);
    at.dims[0] = atom("B");
    at.dims[1] = h;
    at.dims[2] = q;
    cr_expect_neq(tl_op_infer(&cx, TL_OP_reshape, &in, 1, &at, &out), TL_OK);
    cr_expect_eq(diag.last->code, TL_E0303);
    cr_expect_str_eq(diag.last->notes[0],
                     "for example d = 5, B = 8, h = 9: 40 and 0");
    cr_assert_eq(tl_dims_fact_divides(cx.dims, d, h, NULL), TL_OK);
    cr_expect_eq(tl_op_infer(&cx, TL_OP_reshape, &in, 1, &at, &out), TL_OK);
    at.dims[0] = tl_dim_num(-1); /* [-1, h, d // h] */
    cr_expect_eq(tl_op_infer(&cx, TL_OP_reshape, &in, 1, &at, &out), TL_OK);
    rest = out.shape.dim[0];
    cr_expect_eq(tl_dim_eq(cx.dims, rest, atom("B")), TL_PROVED);
}
