/* test_backward.c - gradients, higher orders, nesting, what is saved. */
#include "tests/unit/runtime/helper.h"

TestSuite(backward, .init = rt_setup, .fini = rt_teardown);

static tl_tape *open_grad(void)
{
    tl_tape *tape;

    OK(tl_grad_open(&rt, &tape));
    return tape;
}

static tl_tensor *leaf_of(tl_tape *tape, tl_tensor *t)
{
    tl_tensor *leaf;

    OK(tl_grad_leaf(&rt, tape, t, &leaf));
    return leaf;
}

/* Close, differentiate `loss` (eaten) by one leaf, free the tape. */
static tl_tensor *finish(tl_tape *tape, tl_tensor *loss, tl_tensor *leaf)
{
    tl_tensor *g;

    tl_grad_close(&rt, tape);
    OK(tl_grad_backward(&rt, tape, loss, NULL, &leaf, 1, &g, NULL));
    tl_tape_free(tape);
    tl_tensor_unref(loss);
    return g;
}

Test(backward, product_rule)
{
    tl_tensor *a = vec(TL_f32, 3, VALUES(1, 2, 3));
    tl_tensor *b = vec(TL_f32, 3, VALUES(4, 5, 6));
    tl_tape *tape = open_grad();
    tl_tensor *leaves[2] = {leaf_of(tape, a), leaf_of(tape, b)}, *g[2];
    tl_tensor *loss = eat_sum(call2(TL_OP_mul, leaves[0], leaves[1]));
    bool reached[2];

    tl_grad_close(&rt, tape);
    OK(tl_grad_backward(&rt, tape, loss, NULL, leaves, 2, g, reached));
    expect_values(g[0], VALUES(4, 5, 6));
    expect_values(g[1], VALUES(1, 2, 3));
    cr_expect(reached[0] && reached[1]);
    tl_tape_free(tape);
    tl_tensor_unref(loss);
    for (int i = 0; i < 2; i++) {
        tl_tensor_unref(leaves[i]);
        tl_tensor_unref(g[i]);
    }
    tl_tensor_unref(a);
    tl_tensor_unref(b);
}

Test(backward, a_value_used_twice_sums_its_gradients)
{
    tl_tensor *a = vec(TL_f64, 2, VALUES(3, 5));
    tl_tape *tape = open_grad();
    tl_tensor *x = leaf_of(tape, a), *g;
    tl_tensor *y = eat2(TL_OP_add, call2(TL_OP_mul, x, x), tl_tensor_ref(x));

    g = finish(tape, eat_sum(y), x);
    expect_values(g, VALUES(7, 11));
    tl_tensor_unref(x);
    tl_tensor_unref(a);
    tl_tensor_unref(g);
}

/* Terms 1, then 1e30, then -1e30: only the order of 9(l) gives 0. */
Test(backward, gradients_add_up_in_reverse_program_order)
{
    tl_tensor *a = scalar(TL_f32, 1), *big = scalar(TL_f32, 1e30);
    tl_tensor *small = scalar(TL_f32, -1e30), *one = scalar(TL_f32, 1);
    tl_tape *tape = open_grad();
    tl_tensor *x = leaf_of(tape, a), *g, *y;
    tl_tensor *p = call2(TL_OP_mul, x, one); /* added last */
    tl_tensor *q = call2(TL_OP_mul, x, big);
    tl_tensor *r = call2(TL_OP_mul, x, small); /* the first term */

    y = eat2(TL_OP_add, eat2(TL_OP_add, p, q), r);
    g = finish(tape, y, x);
    expect_values(g, VALUES(1));
    tl_tensor_unref(g);

    tape = open_grad();
    tl_tensor_unref(x);
    x = leaf_of(tape, a);
    p = call2(TL_OP_mul, x, big);
    q = call2(TL_OP_mul, x, one); /* 1 is lost in -1e30 */
    r = call2(TL_OP_mul, x, small);
    y = eat2(TL_OP_add, eat2(TL_OP_add, p, q), r);
    g = finish(tape, y, x);
    expect_values(g, VALUES(0));
    tl_tensor_unref(g);
    tl_tensor_unref(x);
    tl_tensor_unref(a);
    tl_tensor_unref(one);
    tl_tensor_unref(big);
    tl_tensor_unref(small);
}

Test(backward, broadcast_operands_get_gradients_of_their_shape)
{
    static const double one[27] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
                                   1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    tl_tensor *a = make(TL_f32, 2, DIMS(3, 3), one);
    tl_tensor *ones = make(TL_f32, 3, DIMS(3, 3, 3), one);
    tl_tape *tape = open_grad();
    tl_tensor *x = leaf_of(tape, a), *g, *y;

    y = eat1(TL_OP_square, call2(TL_OP_add, x, ones), NULL);
    g = finish(tape, eat_sum(y), x);
    cr_assert_eq(g->rank, 2);
    expect_values(g, VALUES(12, 12, 12, 12, 12, 12, 12, 12, 12));
    tl_tensor_unref(a);
    tl_tensor_unref(ones);
    tl_tensor_unref(x);
    tl_tensor_unref(g);
}

Test(backward, casts_carry_gradients_of_the_leafs_dtype)
{
    tl_tensor *a = vec(TL_f32, 2, VALUES(1, 2));
    tl_tensor *b = vec(TL_f64, 2, VALUES(3, 4));
    tl_tape *tape = open_grad();
    tl_tensor *x = leaf_of(tape, a), *g;

    g = finish(tape, eat_sum(call2(TL_OP_mul, x, b)), x);
    cr_expect_eq(g->dtype, TL_f32);
    expect_values(g, VALUES(3, 4));
    tl_tensor_unref(a);
    tl_tensor_unref(b);
    tl_tensor_unref(x);
    tl_tensor_unref(g);
}

Test(backward, unreached_leaves_get_exact_zeros)
{
    tl_tensor *a = vec(TL_f32, 2, VALUES(1, 2)), *g;
    tl_tape *tape = open_grad();
    tl_tensor *x = leaf_of(tape, a), *loss = scalar(TL_f32, 5);
    bool reached = true;

    tl_grad_close(&rt, tape);
    OK(tl_grad_backward(&rt, tape, loss, NULL, &x, 1, &g, &reached));
    cr_expect_not(reached);
    expect_values(g, VALUES(0, 0));
    cr_expect_not(signbit(tl_tensor_get_f(g, 0)));
    tl_tape_free(tape);
    tl_tensor_unref(loss);
    tl_tensor_unref(a);
    tl_tensor_unref(x);
    tl_tensor_unref(g);
}

Test(backward, stopped_and_older_values_are_constants)
{
    tl_tensor *a = vec(TL_f32, 2, VALUES(1, 2)), *s;
    tl_tape *tape = open_grad();
    tl_tensor *x = leaf_of(tape, a), *g, *y;

    OK(tl_stop(&rt, x, &s));
    y = eat2(TL_OP_mul, call2(TL_OP_mul, x, s), tl_tensor_ref(a));
    g = finish(tape, eat_sum(y), x);
    expect_values(g, VALUES(1, 4)); /* s * a */
    tl_tensor_unref(a);
    tl_tensor_unref(s);
    tl_tensor_unref(x);
    tl_tensor_unref(g);
}

Test(backward, no_grad_cuts_and_a_block_inside_records)
{
    tl_tensor *a = vec(TL_f32, 2, VALUES(1, 2)), *g;
    tl_tape *outer = open_grad(), *inner;
    tl_tensor *x = leaf_of(outer, a), *z, *y;

    rt.no_grad++;
    y = call2(TL_OP_mul, x, x);
    cr_expect_eq(tl_tape_node(outer, y), 0);
    inner = open_grad();
    z = leaf_of(inner, x);
    g = finish(inner, eat_sum(call2(TL_OP_mul, z, z)), z);
    expect_values(g, VALUES(2, 4));
    cr_expect_eq(tl_tape_node(outer, g), 0);
    cr_expect_eq(rt.no_grad, 1);
    rt.no_grad--;
    cr_expect_eq(rt.tape, outer);
    cr_expect_eq(outer->len, 0);
    tl_grad_close(&rt, outer);
    tl_tape_free(outer);
    tl_tensor_unref(a);
    tl_tensor_unref(x);
    tl_tensor_unref(y);
    tl_tensor_unref(z);
    tl_tensor_unref(g);
}

Test(backward, the_loss_must_be_a_scalar)
{
    tl_tensor *a = vec(TL_f32, 2, VALUES(1, 2)), *g;
    tl_tensor *h = scalar(TL_f16, 1);
    tl_tape *tape = open_grad();
    tl_tensor *x = leaf_of(tape, a), *y = call2(TL_OP_mul, x, x);

    tl_grad_close(&rt, tape);
    cr_assert_eq(tl_grad_backward(&rt, tape, y, NULL, &x, 1, &g, NULL),
                 TL_ERR_PROGRAM);
    cr_expect_eq(diag.last->code, TL_E0501);
    cr_assert_eq(tl_grad_backward(&rt, tape, h, NULL, &x, 1, &g, NULL),
                 TL_ERR_PROGRAM);
    cr_assert_eq(tl_grad_backward(&rt, tape, y, h, &x, 1, &g, NULL),
                 TL_ERR_PROGRAM);
    cr_expect_eq(diag.last->code, TL_E0312);
    tl_tape_free(tape);
    tl_tensor_unref(a);
    tl_tensor_unref(h);
    tl_tensor_unref(x);
    tl_tensor_unref(y);
}

Test(backward, a_seed_gives_a_vector_jacobian_product)
{
    tl_tensor *a = vec(TL_f32, 2, VALUES(1, 2)), *g;
    tl_tensor *u = vec(TL_f32, 2, VALUES(10, 100));
    tl_tape *tape = open_grad();
    tl_tensor *x = leaf_of(tape, a), *y = call2(TL_OP_mul, x, x);

    tl_grad_close(&rt, tape);
    OK(tl_grad_backward(&rt, tape, y, u, &x, 1, &g, NULL));
    expect_values(g, VALUES(20, 400));
    expect_values(u, VALUES(10, 100));
    tl_tape_free(tape);
    tl_tensor_unref(a);
    tl_tensor_unref(u);
    tl_tensor_unref(x);
    tl_tensor_unref(y);
    tl_tensor_unref(g);
}

/* ---- in-place safety ---------------------------------------------------- */

Test(backward, saved_values_are_never_overwritten)
{
    tl_tensor *a = vec(TL_f32, 2, VALUES(1, 2)), *g;
    tl_tape *tape = open_grad();
    tl_tensor *x = leaf_of(tape, a), *y;

    /* square saves its input, exp its result; both lose their names here */
    y = eat1(TL_OP_square, eat1(TL_OP_exp, tl_tensor_ref(x), NULL), NULL);
    y = eat1(TL_OP_neg, y, NULL);
    y = eat2(TL_OP_add, y, scalar(TL_f32, 1));
    g = finish(tape, eat_sum(y), x);
    expect_near(g, VALUES(-2 * exp(2), -2 * exp(4)), 1e-6);
    tl_tensor_unref(a);
    tl_tensor_unref(x);
    tl_tensor_unref(g);
}

Test(backward, what_is_not_saved_is_reused_while_recording)
{
    tl_tensor *a = vec(TL_f32, 2, VALUES(1, 2)), *g;
    tl_tape *tape = open_grad();
    tl_tensor *x = leaf_of(tape, a);
    tl_tensor *y = eat2(TL_OP_add, tl_tensor_ref(x), vec(TL_f32, 2, NULL));
    void *data = tl_tensor_data(y);

    y = eat1(TL_OP_neg, y, NULL);
    cr_expect_eq(tl_tensor_data(y), data);
    g = finish(tape, eat_sum(y), x);
    expect_values(g, VALUES(-1, -1));
    tl_tensor_unref(a);
    tl_tensor_unref(x);
    tl_tensor_unref(g);
}

/* ---- numbers of LANGUAGE.md 9 and cases/bug-reports.md ------------------- */

/* d sum(op(x)) / dx */
static void gradient_is(tl_op op, int n, const double *v, const double *want,
                        double tolerance)
{
    tl_tensor *a = vec(TL_f64, n, v), *g;
    tl_tape *tape = open_grad();
    tl_tensor *x = leaf_of(tape, a);

    g = finish(tape, eat_sum(call1(op, x, NULL)), x);
    expect_near(g, want, tolerance);
    tl_tensor_unref(a);
    tl_tensor_unref(x);
    tl_tensor_unref(g);
}

Test(backward, subgradients_at_kinks)
{
    gradient_is(TL_OP_abs, 3, VALUES(-2, 0, 2), VALUES(-1, 0, 1), 0);
    gradient_is(TL_OP_relu, 3, VALUES(-2, 0, 2), VALUES(0, 0, 1), 0);
    gradient_is(TL_OP_floor, 2, VALUES(-2.5, 3), VALUES(0, 0), 0);
}

Test(backward, where_does_not_leak_nan)
{
    tl_tensor *a = vec(TL_f64, 2, VALUES(0, HUGE_VAL)), *g, *y;
    tl_tensor *one = scalar(TL_f64, 1), *zero = scalar(TL_f64, 0);
    tl_tape *tape = open_grad();
    tl_tensor *x = leaf_of(tape, a);
    tl_tensor *in[3] = {call2(TL_OP_lt, x, one), call1(TL_OP_cos, x, NULL),
                        zero};

    OK(tl_apply(&rt, TL_OP_where, in, 3, NULL, &y));
    g = finish(tape, eat_sum(y), x);
    expect_values(g, VALUES(0, 0));
    tl_tensor_unref(a);
    tl_tensor_unref(one);
    tl_tensor_unref(x);
    tl_tensor_unref(g);
}

Test(backward, norm_at_zero_is_zero)
{
    tl_tensor *a = make(TL_f64, 2, DIMS(2, 2), VALUES(0, 0, 3, 4)), *g;
    tl_tape *tape = open_grad();
    tl_tensor *x = leaf_of(tape, a);
    tl_attrs at;

    tl_attrs_init(&at);
    at.axes = 2;
    g = finish(tape, eat_sum(call1(TL_OP_norm, x, &at)), x);
    expect_near(g, VALUES(0, 0, .6, .8), 1e-15);
    tl_tensor_unref(a);
    tl_tensor_unref(x);
    tl_tensor_unref(g);
}

Test(backward, ties_of_maximum_share)
{
    tl_tensor *a = vec(TL_f64, 1, VALUES(1)), *b = vec(TL_f64, 1, VALUES(1));
    tl_tape *tape = open_grad();
    tl_tensor *x = leaf_of(tape, a), *g;

    g = finish(tape, eat_sum(call2(TL_OP_maximum, x, b)), x);
    expect_values(g, VALUES(.5));
    tl_tensor_unref(a);
    tl_tensor_unref(b);
    tl_tensor_unref(x);
    tl_tensor_unref(g);
}

/* ---- higher orders ------------------------------------------------------ */

/* The Hessian of sum(sin(x)^2) at 0 is 2 I (LANGUAGE.md 9a). */
Test(backward, hessian_of_sin_squared_at_zero)
{
    tl_tensor *a = vec(TL_f64, 2, VALUES(0, 0));

    for (int i = 0; i < 2; i++) {
        tl_tape *outer = open_grad(), *inner;
        tl_tensor *x = leaf_of(outer, a), *z, *g, *h, *row;

        inner = open_grad();
        z = leaf_of(inner, x);
        g = finish(inner, eat_sum(eat1(TL_OP_square,
                                       call1(TL_OP_sin, z, NULL), NULL)), z);
        expect_values(g, VALUES(0, 0));
        row = vec(TL_f64, 2, i == 0 ? VALUES(1, 0) : VALUES(0, 1));
        h = finish(outer, eat_sum(eat2(TL_OP_mul, g, row)), x);
        expect_values(h, i == 0 ? VALUES(2, 0) : VALUES(0, 2));
        tl_tensor_unref(x);
        tl_tensor_unref(z);
        tl_tensor_unref(h);
    }
    tl_tensor_unref(a);
}

/* x^4 by products, three tapes: 4x^3, 12x^2, 24x. */
Test(backward, third_order)
{
    tl_tensor *a = scalar(TL_f64, 2);
    tl_tape *tape[3];
    tl_tensor *x[3], *y = a;

    for (int i = 0; i < 3; i++) {
        tape[i] = open_grad();
        x[i] = leaf_of(tape[i], y);
        y = x[i];
    }
    y = call2(TL_OP_mul, y, y);
    y = eat2(TL_OP_mul, tl_tensor_ref(y), y);
    for (int i = 2; i >= 0; i--) {
        static const double want[3] = {48, 48, 32};

        y = finish(tape[i], y, x[i]);
        expect_values(y, &want[i]);
        tl_tensor_unref(x[i]);
    }
    tl_tensor_unref(y);
    tl_tensor_unref(a);
}

/* A leaf of the inner tape is the outer leaf to the outer tape. */
Test(backward, inner_gradients_are_differentiable_outside)
{
    tl_tensor *a = scalar(TL_f64, 3), *g, *h;
    tl_tape *outer = open_grad(), *inner;
    tl_tensor *x = leaf_of(outer, a), *z, *y;

    inner = open_grad();
    z = leaf_of(inner, x);
    y = call2(TL_OP_mul, z, x); /* x is a constant inside */
    g = finish(inner, y, z);
    expect_values(g, VALUES(3));
    h = finish(outer, eat2(TL_OP_mul, g, tl_tensor_ref(x)), x);
    expect_values(h, VALUES(6)); /* d x^2 */
    tl_tensor_unref(a);
    tl_tensor_unref(x);
    tl_tensor_unref(z);
    tl_tensor_unref(h);
}

/* A leaf may be made for a tape that is not the innermost. */
Test(backward, leaves_of_an_outer_tape)
{
    tl_tensor *a = scalar(TL_f64, 3), *b = scalar(TL_f64, 5), *g, *h;
    tl_tape *outer = open_grad(), *inner = open_grad();
    tl_tensor *z = leaf_of(inner, b), *x = leaf_of(outer, a), *y;

    cr_expect_eq(tl_tape_node(inner, x), 0);
    y = call2(TL_OP_mul, x, z);
    g = finish(inner, y, z);
    expect_values(g, VALUES(3));
    h = finish(outer, eat2(TL_OP_mul, g, tl_tensor_ref(x)), x);
    expect_values(h, VALUES(6));
    tl_tensor_unref(a);
    tl_tensor_unref(b);
    tl_tensor_unref(x);
    tl_tensor_unref(z);
    tl_tensor_unref(h);
}

/* ---- custom entries ----------------------------------------------------- */

static tl_status times_ten(void *data, tl_tensor *const *g, int nout,
                           tl_tensor **dx, int nin, tl_diag *d)
{
    tl_tensor *in[2] = {tl_tensor_ref(g[0]), scalar(g[0]->dtype, 10)};

    (void)data;
    (void)d;
    cr_assert_eq(nout, 1);
    cr_assert_eq(nin, 1);
    return tl_apply(&rt, TL_OP_mul, in, 2, NULL, dx);
}

static tl_status wrong_type(void *data, tl_tensor *const *g, int nout,
                            tl_tensor **dx, int nin, tl_diag *d)
{
    (void)data;
    (void)g;
    (void)nout;
    (void)nin;
    (void)d;
    dx[0] = scalar(TL_f32, 1);
    return TL_OK;
}

static tl_status custom(tl_custom_grad_fn *fn, tl_tensor **g)
{
    tl_tensor *a = vec(TL_f32, 2, VALUES(1, 2));
    tl_tape *tape = open_grad();
    tl_tensor *x = leaf_of(tape, a), *y = vec(TL_f32, 2, VALUES(7, 7));
    tl_tensor *loss;
    tl_status st;

    OK(tl_tape_record_custom(tape, &x, 1, &y, 1, fn, NULL, NULL, rt.span,
                             &diag));
    loss = eat_sum(y);
    tl_grad_close(&rt, tape);
    st = tl_grad_backward(&rt, tape, loss, NULL, &x, 1, g, NULL);
    tl_tape_free(tape);
    tl_tensor_unref(loss);
    tl_tensor_unref(x);
    tl_tensor_unref(a);
    return st;
}

Test(backward, custom_entries_give_their_gradients)
{
    tl_tensor *g;

    OK(custom(times_ten, &g));
    expect_values(g, VALUES(10, 10));
    tl_tensor_unref(g);
}

Test(backward, custom_gradients_must_have_the_type_of_the_input)
{
    tl_tensor *g;

    cr_assert_eq(custom(wrong_type, &g), TL_ERR_PROGRAM);
    cr_expect_eq(diag.last->code, TL_E0513);
}

/* ---- memory ------------------------------------------------------------- */

Test(backward, saved_values_are_released_as_the_pass_goes)
{
    tl_tensor *a = vec(TL_f32, 1 << 16, NULL), *g;
    tl_tape *tape = open_grad();
    tl_tensor *x = leaf_of(tape, a), *y;
    tl_pool_stats stats;

    y = call1(TL_OP_sigmoid, x, NULL);
    for (int i = 0; i < 9; i++) {
        y = eat1(TL_OP_sigmoid, y, NULL);
    }
    y = eat_sum(y);
    tl_pool_get_stats(rt.pool, &stats);
    cr_expect_geq(stats.live, (size_t)11 << 18);
    tl_pool_reset_peak(rt.pool);
    g = finish(tape, y, x);
    tl_pool_get_stats(rt.pool, &stats);
    cr_expect_lt(stats.peak, (size_t)14 << 18);
    cr_expect_lt(stats.live, (size_t)3 << 18);
    tl_tensor_unref(a);
    tl_tensor_unref(x);
    tl_tensor_unref(g);
}

/* loss = sum(square(x @ w + b)) with nested tapes; every step may fail. */
static tl_status small_program(tl_tensor *x, tl_tensor *w, tl_tensor *b)
{
    tl_tape *outer = NULL, *inner = NULL;
    tl_tensor *lw = NULL, *lz = NULL, *y = NULL, *g = NULL, *h = NULL;
    tl_tensor *in[2];
    tl_attrs at;
    tl_status st;

    tl_attrs_init(&at);
    at.axes = 3;
    TL_GOTO(st, tl_grad_open(&rt, &outer));
    TL_GOTO(st, tl_grad_leaf(&rt, outer, w, &lw));
    TL_GOTO(st, tl_grad_open(&rt, &inner));
    TL_GOTO(st, tl_grad_leaf(&rt, inner, lw, &lz));
    in[0] = x;
    in[1] = lz;
    TL_GOTO(st, tl_apply_borrowed(&rt, TL_OP_matmul, in, 2, NULL, &y));
    in[0] = y;
    in[1] = tl_tensor_ref(b);
    y = NULL;
    TL_GOTO(st, tl_apply(&rt, TL_OP_add, in, 2, NULL, &y));
    in[0] = y;
    y = NULL;
    TL_GOTO(st, tl_apply(&rt, TL_OP_square, in, 1, NULL, &y));
    in[0] = y;
    y = NULL;
    TL_GOTO(st, tl_apply(&rt, TL_OP_sum, in, 1, &at, &y));
    tl_grad_close(&rt, inner);
    TL_GOTO(st, tl_grad_backward(&rt, inner, y, NULL, &lz, 1, &g, NULL));
    in[0] = g;
    g = NULL;
    TL_GOTO(st, tl_apply(&rt, TL_OP_sum, in, 1, &at, &g));
    tl_grad_close(&rt, outer);
    TL_GOTO(st, tl_grad_backward(&rt, outer, g, NULL, &lw, 1, &h, NULL));
    expect_near(h, VALUES(42, 42, 48, 48), 1e-12);
out:
    while (rt.tape) {
        tl_grad_close(&rt, rt.tape);
    }
    tl_tape_free(inner);
    tl_tape_free(outer);
    tl_tensor_unref(lw);
    tl_tensor_unref(lz);
    tl_tensor_unref(y);
    tl_tensor_unref(g);
    tl_tensor_unref(h);
    return st;
}

Test(backward, every_failing_allocation_is_survived)
{
    tl_tensor *x = make(TL_f64, 2, DIMS(2, 2), VALUES(1, 2, 3, 3));
    tl_tensor *w = make(TL_f64, 2, DIMS(2, 2), VALUES(1, 0, 0, 1));
    tl_tensor *b = vec(TL_f64, 2, VALUES(0, 1));

    for (int sticky = 0; sticky < 2; sticky++) {
        for (uint64_t n = 1;; n++) {
            int64_t live = tl_tensor_live();
            tl_status st;

            tl_tensor_trim();
            tl_diag_clear(&diag);
            tl_mem_fail_at(n, sticky != 0);
            st = small_program(x, w, b);
            tl_mem_fail_at(0, false);
            cr_assert_eq(tl_tensor_live(), live, "at allocation %d", (int)n);
            if (st == TL_OK) {
                cr_assert_gt(n, 20);
                break;
            }
            cr_assert_eq(st, TL_ERR_MEMORY);
        }
    }
    tl_tensor_unref(x);
    tl_tensor_unref(w);
    tl_tensor_unref(b);
}
