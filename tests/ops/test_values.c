/* Every elementwise row: its kernels against its formula in double, over
 * dtypes, layouts and shapes; what must be refused. */
#include "tests/ops/rows.h"

#include "runtime/op/formula.h"

TestSuite(values, .init = rt_setup, .fini = rt_teardown);

/* Relative to max(1, |value|): a few roundings of the compute type, and one
 * of the element type. */
static double tolerance(tl_dtype dtype)
{
    switch (dtype) {
    case TL_f64:
        return 1e-14;
    case TL_f32:
        return 1e-6;
    case TL_f16:
        return 0x1p-11 + 1e-6;
    case TL_bf16:
        return 0x1p-8 + 1e-6;
    default:
        return 0;
    }
}

static bool takes(tl_op op, tl_dtype dtype)
{
    switch (tl_op_get(op)->types) {
    case TL_TYPES_FLOAT:
        return tl_dtype_is_float(dtype);
    case TL_TYPES_NUM:
        return dtype != TL_bool;
    case TL_TYPES_BOOL:
        return dtype == TL_bool;
    case TL_TYPES_ANY:
        break;
    }
    return true;
}

static tl_op_domain domain_of(tl_op op, tl_dtype dtype)
{
    /* powers of integers: bases and exponents that stay small */
    return op == TL_OP_pow && !tl_dtype_is_float(dtype)
               ? TL_DOM_PROB
               : tl_op_get(op)->domain;
}

static void make_inputs(tl_op op, tl_dtype dtype, int rank,
                        const int64_t *size, uint64_t seed, tl_tensor **in)
{
    const tl_op_info *row = tl_op_get(op);

    for (int i = 0; i < row->nin; i++) {
        bool condition = (row->bool_in >> i & 1) != 0;

        in[i] = points(condition ? TL_bool : dtype, rank, size,
                       domain_of(op, dtype), seed + (uint64_t)i);
    }
}

static void unref_all(tl_tensor **t, int n)
{
    for (int i = 0; i < n; i++) {
        tl_tensor_unref(t[i]);
    }
}

/* The formula at element i, in double. */
static double reference(const tl_formula *f, tl_op op, tl_tensor **in,
                        const tl_attrs *at, int64_t i)
{
    tl_formula_env env = {.y = 0};

    for (int k = 0; k < tl_op_get(op)->nin; k++) {
        env.in[k] = tl_tensor_get_f(in[k], i);
    }
    memcpy(env.p, at->f, sizeof env.p);
    if (!tl_dtype_is_float(in[0]->dtype) && op == TL_OP_clamp) {
        env.p[0] = trunc(env.p[0]);
        env.p[1] = trunc(env.p[1]);
    }
    return tl_formula_eval(f, &env);
}

static void check_values(tl_op op, tl_dtype dtype, tl_arena *arena)
{
    const tl_op_info *row = tl_op_get(op);
    tl_attrs at = usual_attrs(op);
    const tl_formula *f;
    tl_tensor *in[3], *y;

    OK(tl_formula_parse(arena, row->value, &f, &diag));
    make_inputs(op, dtype, 1, DIMS(301), 5, in);
    y = run(op, in, row->nin, &at);
    cr_assert_eq(y->dtype, row->cls == TL_CLASS_CMP ? TL_bool : dtype);
    for (int64_t i = 0; i < y->numel; i++) {
        double want = reference(f, op, in, &at, i);
        double got = tl_tensor_get_f(y, i);

        if (y->dtype == TL_u8) { /* wraps */
            want -= 256 * floor(want / 256);
        }
        cr_assert(fabs(got - want) <=
                      tolerance(y->dtype) * fmax(1, fabs(want)),
                  "%s %s: f(%g, %g) is %.9g, not %.9g", row->name,
                  tl_dtype_name(dtype), tl_tensor_get_f(in[0], i),
                  row->nin > 1 ? tl_tensor_get_f(in[1], i) : 0, got, want);
    }
    tl_tensor_unref(y);
    unref_all(in, row->nin);
}

Test(values, kernels_compute_the_formula_of_every_row_and_dtype)
{
    tl_arena arena;

    tl_arena_init(&arena);
    for (int op = 0; op < TL_OP_COUNT; op++) {
        for (int d = 0; d < TL_DTYPE_COUNT && is_elementwise((tl_op)op);
             d++) {
            if (takes((tl_op)op, (tl_dtype)d)) {
                check_values((tl_op)op, (tl_dtype)d, &arena);
            }
        }
    }
    tl_arena_fini(&arena);
}

/* All arrangements of all operands give the bits of the row-major ones. */
static void check_layouts(tl_op op, tl_dtype dtype, int rank,
                          const int64_t *size)
{
    const tl_op_info *row = tl_op_get(op);
    tl_attrs at = usual_attrs(op);
    tl_tensor *in[3], *y, *z;

    make_inputs(op, dtype, rank, size, 11, in);
    y = run(op, in, row->nin, &at);
    for (int how = 1; how < ARRANGEMENTS * ARRANGEMENTS; how++) {
        tl_tensor *other[3];
        int a = how % ARRANGEMENTS, b = how / ARRANGEMENTS;

        if (row->nin == 1 && b != 0) {
            break;
        }
        make_inputs(op, dtype, rank, size, 11, other);
        for (int i = 0; i < row->nin; i++) {
            other[i] = arranged(other[i], (arrangement)(i == 0 ? a : b));
        }
        z = run(op, other, row->nin, &at);
        cr_assert(same_bits(y, z), "%s %s, arrangements %d and %d", row->name,
                  tl_dtype_name(dtype), a, b);
        tl_tensor_unref(z);
        unref_all(other, row->nin);
    }
    tl_tensor_unref(y);
    unref_all(in, row->nin);
}

Test(values, layouts_do_not_change_bits)
{
    static const tl_dtype dtypes[] = {TL_f32, TL_f16, TL_i16, TL_bool};

    for (int op = 0; op < TL_OP_COUNT; op++) {
        for (int d = 0; d < 4 && is_elementwise((tl_op)op); d++) {
            if (takes((tl_op)op, dtypes[d])) {
                check_layouts((tl_op)op, dtypes[d], 3, DIMS(3, 4, 5));
            }
        }
    }
    check_layouts(TL_OP_add, TL_f32, 2, DIMS(5, 300)); /* long rows */
    check_layouts(TL_OP_add, TL_f32, 2, DIMS(300, 5));
    check_layouts(TL_OP_where, TL_f32, 2, DIMS(70, 70));
    check_layouts(TL_OP_mul, TL_f64, 4, DIMS(2, 1, 3, 70));
}

/* op(a, b) with sizes that broadcast, against operands written out. */
static void check_broadcast(tl_dtype dtype, int ra, const int64_t *sa, int rb,
                            const int64_t *sb, int rank, const int64_t *size)
{
    tl_tensor *in[2], *full[2], *y, *z;
    tl_attrs at;

    in[0] = points(dtype, ra, sa, TL_DOM_ANY, 3);
    in[1] = points(dtype, rb, sb, TL_DOM_ANY, 4);
    tl_attrs_init(&at);
    at.ndims = (uint16_t)rank;
    for (int i = 0; i < rank; i++) {
        at.dims[i] = tl_dim_num(size[i]);
    }
    for (int i = 0; i < 2; i++) {
        full[i] = eat1(TL_OP_copy, call1(TL_OP_expand, in[i], &at), NULL);
    }
    y = run(TL_OP_sub, in, 2, NULL);
    z = run(TL_OP_sub, full, 2, NULL);
    cr_assert_eq(y->rank, rank);
    cr_assert(same_bits(y, z), "%d axes", rank);
    tl_tensor_unref(y);
    tl_tensor_unref(z);
    unref_all(in, 2);
    unref_all(full, 2);
}

Test(values, size_1_and_missing_axes_stretch)
{
    static const tl_dtype dtypes[] = {TL_f32, TL_f16, TL_i8, TL_f64};

    for (int d = 0; d < 4; d++) {
        tl_dtype t = dtypes[d];

        check_broadcast(t, 2, DIMS(3, 4), 1, DIMS(4), 2, DIMS(3, 4));
        check_broadcast(t, 0, NULL, 2, DIMS(3, 4), 2, DIMS(3, 4));
        check_broadcast(t, 2, DIMS(3, 1), 2, DIMS(1, 4), 2, DIMS(3, 4));
        check_broadcast(t, 2, DIMS(300, 1), 2, DIMS(1, 7), 2, DIMS(300, 7));
        check_broadcast(t, 2, DIMS(7, 1), 2, DIMS(7, 5000), 2, DIMS(7, 5000));
        check_broadcast(t, 1, DIMS(5000), 2, DIMS(7, 5000), 2, DIMS(7, 5000));
        check_broadcast(t, 3, DIMS(2, 1, 3), 3, DIMS(1, 5, 3), 3,
                        DIMS(2, 5, 3));
        check_broadcast(t, 2, DIMS(0, 1), 2, DIMS(1, 4), 2, DIMS(0, 4));
        check_broadcast(t, 0, NULL, 0, NULL, 0, NULL);
    }
}

/* ---- chosen values ------------------------------------------------------ */

static double value_of(tl_op op, tl_dtype dtype, double a, double b)
{
    tl_tensor *in[2] = {scalar(dtype, a), scalar(dtype, b)};
    tl_attrs at = usual_attrs(op);
    tl_tensor *y = run(op, in, tl_op_get(op)->nin, &at);
    double v = tl_tensor_get_f(y, 0);

    tl_tensor_unref(y);
    unref_all(in, 2);
    return v;
}

Test(values, quotients_and_remainders_round_down)
{
    static const double cases[][4] = {{7, 2, 3, 1},    {-7, 2, -4, 1},
                                      {7, -2, -4, -1}, {-7, -2, 3, -1},
                                      {6, 3, 2, 0},    {-6, 3, -2, 0}};

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (int d = TL_i8; d < TL_DTYPE_COUNT; d++) {
            const double *c = cases[i];

            cr_expect_eq(value_of(TL_OP_floordiv, (tl_dtype)d, c[0], c[1]),
                         c[2]);
            cr_expect_eq(value_of(TL_OP_mod, (tl_dtype)d, c[0], c[1]), c[3]);
        }
    }
    cr_expect_eq(value_of(TL_OP_floordiv, TL_f32, 1, 0), (double)INFINITY);
    cr_expect(isnan(value_of(TL_OP_mod, TL_f64, 1, 0)));
}

Test(values, integers_wrap)
{
    cr_expect_eq(value_of(TL_OP_add, TL_i8, 127, 1), -128);
    cr_expect_eq(value_of(TL_OP_sub, TL_u8, 0, 1), 255);
    cr_expect_eq(value_of(TL_OP_mul, TL_i32, 65536, 65536), 0);
    cr_expect_eq(value_of(TL_OP_neg, TL_i8, -128, 0), -128);
    cr_expect_eq(value_of(TL_OP_abs, TL_i16, -32768, 0), -32768);
    cr_expect_eq(value_of(TL_OP_floordiv, TL_i64, -0x1p63, -1), -0x1p63);
    cr_expect_eq(value_of(TL_OP_mod, TL_i64, -0x1p63, -1), 0);
    cr_expect_eq(value_of(TL_OP_pow, TL_i8, 2, 8), 0);
}

Test(values, nan_and_infinity_pass_as_they_should)
{
    const double inf = (double)INFINITY, nan = (double)NAN;

    for (int d = TL_bf16; d < TL_DTYPE_COUNT; d++) {
        tl_dtype t = (tl_dtype)d;

        cr_expect(isnan(value_of(TL_OP_maximum, t, nan, 1)));
        cr_expect(isnan(value_of(TL_OP_maximum, t, 1, nan)));
        cr_expect(isnan(value_of(TL_OP_minimum, t, nan, -inf)));
        cr_expect(isnan(value_of(TL_OP_relu, t, nan, 0)));
        cr_expect(isnan(value_of(TL_OP_clamp, t, nan, 0)));
        cr_expect_eq(value_of(TL_OP_zmul, t, 0, inf), 0);
        cr_expect_eq(value_of(TL_OP_zmul, t, 0, nan), 0);
        cr_expect_eq(value_of(TL_OP_logaddexp, t, -inf, -inf), -inf);
        cr_expect_eq(value_of(TL_OP_logaddexp, t, -inf, 1), 1);
        cr_expect_eq(value_of(TL_OP_pow, t, 0, 0), 1);
        cr_expect_eq(value_of(TL_OP_exp, t, -inf, 0), 0);
        cr_expect_eq(value_of(TL_OP_log, t, 0, 0), -inf);
        cr_expect_eq(value_of(TL_OP_sigmoid, t, -inf, 0), 0);
        cr_expect_eq(value_of(TL_OP_round, t, 2.5, 0), 2);
        cr_expect_eq(value_of(TL_OP_round, t, -0.5, 0), 0);
        cr_expect_eq(value_of(TL_OP_isfinite, t, inf, 0), 0);
        cr_expect_eq(value_of(TL_OP_isnan, t, nan, 0), 1);
        cr_expect_eq(value_of(TL_OP_eq, t, nan, nan), 0);
        cr_expect_eq(value_of(TL_OP_ne, t, nan, nan), 1);
    }
}

Test(values, gelu_keeps_its_digits_far_out)
{
    cr_expect_float_eq(value_of(TL_OP_gelu, TL_f32, -3, 0), -0.004049694,
                       1e-9);
    cr_expect_float_eq(value_of(TL_OP_gelu, TL_f32, -6, 0) * 1e9, -5.9195,
                       1e-4);
    cr_expect_float_eq(value_of(TL_OP_gelu, TL_f32, 1, 0), 0.8413447, 1e-7);
    cr_expect_float_eq(value_of(TL_OP_gelu_tanh, TL_f32, 1, 0), 0.8411920,
                       1e-7);
}

/* ---- refusals ----------------------------------------------------------- */

static void refuses(tl_op op, tl_tensor *a, tl_tensor *b, const tl_attrs *at,
                    tl_code code, const char *message)
{
    tl_tensor *in[2] = {a, b}, *out[TL_MAX_OUTPUTS];

    tl_diag_clear(&diag);
    cr_expect_neq(tl_apply_borrowed(&rt, op, in, b == NULL ? 1 : 2, at, out),
                  TL_OK);
    cr_assert_not_null(diag.last);
    cr_expect_eq(diag.last->code, code, "%s", said());
    cr_expect_str_eq(said(), message);
    tl_diag_clear(&diag);
    tl_tensor_unref(a);
    tl_tensor_unref(b);
}

Test(values, integer_division_by_zero_names_the_element)
{
    tl_tensor *b = make(TL_i32, 2, DIMS(2, 3), VALUES(1, 2, 3, 4, 0, 6));

    refuses(TL_OP_floordiv, make(TL_i32, 2, DIMS(2, 3), NULL), b, NULL,
            TL_E0401, "integer `//` by zero at [1, 1]");
    b = make(TL_i64, 1, DIMS(3), VALUES(1, 2, 0));
    refuses(TL_OP_mod, make(TL_i64, 2, DIMS(2, 3), NULL), b, NULL, TL_E0401,
            "integer `%` by zero at [0, 2]");
}

Test(values, negative_powers_of_integers_are_refused)
{
    refuses(TL_OP_pow, make(TL_i32, 1, DIMS(2), NULL),
            vec(TL_i32, 2, VALUES(2, -1)), NULL, TL_E0416,
            "negative power of an integer at [1]");
}

Test(values, logic_of_numbers_is_refused)
{
    refuses(TL_OP_and, vec(TL_f32, 2, NULL), vec(TL_f32, 2, NULL), NULL,
            TL_E0317, "`and` is defined for bool tensors, not for f32");
}

Test(values, conditions_are_bool)
{
    tl_tensor *in[3] = {vec(TL_f32, 2, NULL), vec(TL_f32, 2, NULL),
                        vec(TL_f32, 2, NULL)};
    tl_tensor *out;

    cr_expect_neq(tl_apply_borrowed(&rt, TL_OP_where, in, 3, NULL, &out),
                  TL_OK);
    cr_expect_eq(diag.last->code, TL_E0308);
    cr_expect_str_eq(said(), "`where` needs a bool condition, not f32");
    tl_diag_clear(&diag);
    unref_all(in, 3);
}

Test(values, casts_of_what_has_no_form_are_refused)
{
    tl_attrs at;

    tl_attrs_init(&at);
    at.dtype = TL_i32;
    refuses(TL_OP_cast, vec(TL_f32, 3, VALUES(1, (double)NAN, 2)), NULL, &at,
            TL_E0319, "value at [1] has no i32 form");
    refuses(TL_OP_cast, vec(TL_f64, 2, VALUES(1, 1e20)), NULL, &at, TL_E0319,
            "value at [1] has no i32 form");
    at.dtype = TL_u8;
    refuses(TL_OP_cast, vec(TL_f16, 2, VALUES(255, -1)), NULL, &at, TL_E0319,
            "value at [1] has no u8 form");
}

/* ---- casts -------------------------------------------------------------- */

Test(values, casts_convert_between_all_dtypes)
{
    static const double v[] = {0, 1, 2, 100, 127, 3};

    for (int from = 0; from < TL_DTYPE_COUNT; from++) {
        for (int to = 0; to < TL_DTYPE_COUNT; to++) {
            for (int how = 0; how < ARRANGEMENTS; how++) {
                tl_tensor *x = arranged(
                    make((tl_dtype)from, 2, DIMS(2, 3), v), (arrangement)how);
                tl_tensor *y = cast_to((tl_dtype)to, x);

                for (int64_t i = 0; i < 6; i++) {
                    bool truth = from == TL_bool || to == TL_bool;

                    cr_expect_eq(tl_tensor_get_f(y, i),
                                 truth ? v[i] != 0 : v[i], "%s to %s",
                                 tl_dtype_name((tl_dtype)from),
                                 tl_dtype_name((tl_dtype)to));
                }
                tl_tensor_unref(x);
                tl_tensor_unref(y);
            }
        }
    }
}

Test(values, casts_truncate_wrap_and_round)
{
    tl_tensor *x = vec(TL_f64, 4, VALUES(1.9, -1.9, 127.5, -128.5));
    tl_tensor *y = cast_to(TL_i8, x);

    expect_values(y, VALUES(1, -1, 127, -128));
    tl_tensor_unref(y);
    tl_tensor_unref(x);
    x = vec(TL_i64, 3, VALUES(300, -1, 256));
    y = cast_to(TL_u8, x);
    expect_values(y, VALUES(44, 255, 0));
    tl_tensor_unref(y);
    tl_tensor_unref(x);
    /* twice rounded, 1 + 2^-11 + 2^-40 would give 1 */
    x = vec(TL_f64, 2, VALUES(1 + 0x1p-11 + 0x1p-40, 1 + 0x1p-11));
    y = cast_to(TL_f16, x);
    expect_values(y, VALUES(1 + 0x1p-10, 1));
    tl_tensor_unref(y);
    tl_tensor_unref(x);
}
