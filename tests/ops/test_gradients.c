/* Gradients of every differentiable elementwise row, reduction and scan, of
 * first and second order, against central differences in double; kinks, ties
 * and zeros by value. */
#include "tests/ops/rows.h"

#include "runtime/autograd/gradcheck.h"
#include "runtime/op/formula.h"

TestSuite(gradients, .init = rt_setup, .fini = rt_teardown, .timeout = 120);

/* ---- the function under test -------------------------------------------- */

typedef struct subject {
    tl_op op;
    tl_attrs at;
    arrangement how;      /* by views of the inputs, inside */
    tl_tensor *condition; /* of where */
} subject;

/* x as the operand of the row: a transposed, sliced or reversed view. */
static tl_status view_of(tl_rt *r, arrangement how, tl_tensor *x,
                         tl_tensor **out)
{
    tl_attrs at;

    tl_attrs_init(&at);
    if (how == TRANSPOSED) {
        at.ndims = (uint16_t)x->rank;
        for (int i = 0; i < x->rank; i++) {
            at.dims[i] = tl_dim_num(x->rank - 1 - i);
        }
        return tl_apply_borrowed(r, TL_OP_permute, &x, 1, &at, out);
    }
    if (how == ROW_MAJOR || x->rank == 0) {
        *out = tl_tensor_ref(x);
        return TL_OK;
    }
    at.ndims = (uint16_t)(3 * x->rank);
    for (int i = 0; i < x->rank; i++) {
        int64_t n = x->size[i], start = how == OFFSET && n > 0;
        int64_t step = how == STRIDED ? 2 : how == REVERSED ? -1 : 1;

        start = how == REVERSED && n > 0 ? n - 1 : start;
        at.dims[3 * i] = tl_dim_num(start);
        at.dims[3 * i + 1] = tl_dim_num(how == STRIDED  ? (n + 1) / 2
                                        : how == OFFSET ? n - start
                                                        : n);
        at.dims[3 * i + 2] = tl_dim_num(step);
    }
    return tl_apply_borrowed(r, TL_OP_slice, &x, 1, &at, out);
}

static tl_status call_row(void *arg, tl_rt *r, tl_tensor *const *in, int n,
                          tl_tensor **out)
{
    const subject *s = arg;
    tl_tensor *operand[4];
    int m = 0;

    if (s->condition != NULL) {
        TL_TRY(view_of(r, s->how, s->condition, &operand[m++]));
    }
    for (int i = 0; i < n; i++) {
        TL_TRY(view_of(r, s->how, in[i], &operand[m++]));
    }
    return tl_apply(r, s->op, operand, m, &s->at, out);
}

static void check(subject *s, tl_tensor **in, int n, const char *what)
{
    for (int order = 1; order <= 2; order++) {
        tl_gradcheck_options options = {.second = order == 2, .seed = 42};
        tl_gradcheck_result result;
        tl_status st;

        /* second differences are differences of first gradients: exact ones */
        st = tl_gradcheck(&rt, call_row, s, in, n, &options, &result);
        cr_assert_eq(st, TL_OK, "%s %s: %s", tl_op_get(s->op)->name, what,
                     said());
        cr_expect(result.ok,
                  "%s, %s, order %d: input %d element %lld has %.12g, "
                  "differences give %.12g",
                  tl_op_get(s->op)->name, what, order, result.input,
                  (long long)result.index, result.analytic, result.numeric);
    }
}

/* ---- elementwise rows --------------------------------------------------- */

static void check_map(tl_op op, arrangement how, int rank,
                      const int64_t *const size[3], const char *what)
{
    const tl_op_info *row = tl_op_get(op);
    subject s = {.op = op, .at = usual_attrs(op), .how = how};
    tl_tensor *in[3];
    int n = 0;

    for (int i = 0; i < row->nin; i++) {
        bool condition = (row->bool_in >> i & 1) != 0;
        tl_tensor *x = points(condition ? TL_bool : TL_f64, rank, size[i],
                              row->domain, 60 + (uint64_t)i);

        if (condition) {
            s.condition = x;
        } else {
            in[n++] = x;
        }
    }
    check(&s, in, n, what);
    for (int i = 0; i < n; i++) {
        tl_tensor_unref(in[i]);
    }
    tl_tensor_unref(s.condition);
}

static bool differentiable_map(int op)
{
    const tl_op_info *row = tl_op_get((tl_op)op);

    return row->cls == TL_CLASS_MAP && row->differentiable;
}

Test(gradients, elementwise_rows_in_every_layout)
{
    static const char *const names[] = {"row-major", "transposed", "strided",
                                        "offset", "reversed"};
    const int64_t *same[3] = {DIMS(3, 4), DIMS(3, 4), DIMS(3, 4)};

    for (int op = 0; op < TL_OP_COUNT; op++) {
        for (int how = 0; how < ARRANGEMENTS && differentiable_map(op);
             how++) {
            check_map((tl_op)op, (arrangement)how, 2, same, names[how]);
        }
    }
}

Test(gradients, elementwise_rows_that_broadcast)
{
    const int64_t *column[3] = {DIMS(3, 1), DIMS(3, 4), DIMS(1, 4)};
    const int64_t *row[3] = {DIMS(3, 4), DIMS(1, 4), DIMS(3, 1)};
    const int64_t *one[3] = {DIMS(1, 1), DIMS(1, 1), DIMS(1, 1)};
    const int64_t *none[3] = {DIMS(0, 4), DIMS(1, 4), DIMS(0, 1)};
    const int64_t *scalar_only[3] = {NULL, NULL, NULL};

    for (int op = 0; op < TL_OP_COUNT; op++) {
        if (differentiable_map(op)) {
            check_map((tl_op)op, ROW_MAJOR, 2, column, "column and matrix");
            check_map((tl_op)op, TRANSPOSED, 2, row, "matrix and row");
            check_map((tl_op)op, ROW_MAJOR, 2, one, "size 1");
            check_map((tl_op)op, ROW_MAJOR, 2, none, "size 0");
            check_map((tl_op)op, ROW_MAJOR, 0, scalar_only, "rank 0");
        }
    }
}

/* ---- reductions and scans ----------------------------------------------- */

static void check_axes(tl_op op, tl_attrs at, arrangement how, int rank,
                       const int64_t *size, int nin, const char *what)
{
    subject s = {.op = op, .at = at, .how = how};
    tl_tensor *in[2];

    for (int i = 0; i < nin; i++) {
        in[i] = points(TL_f64, rank, size, tl_op_get(op)->domain,
                       90 + (uint64_t)i);
    }
    check(&s, in, nin, what);
    for (int i = 0; i < nin; i++) {
        tl_tensor_unref(in[i]);
    }
}

Test(gradients, reductions_over_every_set_of_axes)
{
    for (int op = TL_OP_sum; op <= TL_OP_min; op++) {
        tl_attrs at = usual_attrs((tl_op)op);

        for (int axes = 0; axes < 8; axes++) {
            bool spread = op == TL_OP_var || op == TL_OP_std;

            if (spread && axes == 0) {
                continue; /* of one element: nan */
            }
            for (int keep = 0; keep < 2; keep++) {
                at.axes = (uint16_t)axes;
                at.keep = keep != 0;
                at.flag = axes == 7;
                check_axes((tl_op)op, at, ROW_MAJOR, 3, DIMS(2, 3, 4), 1,
                           "row-major");
                check_axes((tl_op)op, at, TRANSPOSED, 3, DIMS(4, 3, 2), 1,
                           "transposed");
            }
        }
    }
}

Test(gradients, reductions_in_other_layouts_and_of_nothing)
{
    for (int op = TL_OP_sum; op <= TL_OP_min; op++) {
        tl_attrs at = usual_attrs((tl_op)op);
        bool extremum = op == TL_OP_max || op == TL_OP_min;

        at.axes = 2;
        check_axes((tl_op)op, at, STRIDED, 2, DIMS(3, 8), 1, "strided");
        check_axes((tl_op)op, at, REVERSED, 2, DIMS(3, 4), 1, "reversed");
        check_axes((tl_op)op, at, OFFSET, 2, DIMS(3, 5), 1, "offset");
        check_axes((tl_op)op, at, ROW_MAJOR, 2, DIMS(0, 4), 1, "no rows");
        if (!extremum) {
            check_axes((tl_op)op, at, ROW_MAJOR, 2, DIMS(3, 0), 1,
                       "rows of nothing");
        }
        tl_diag_clear(&diag); /* mean of nothing warns */
    }
}

Test(gradients, scans_in_both_directions)
{
    static const tl_op scans[] = {TL_OP_cumsum, TL_OP_cumprod, TL_OP_linrec,
                                  TL_OP_shift};

    for (int i = 0; i < 4; i++) {
        int nin = scans[i] == TL_OP_linrec ? 2 : 1;

        for (int axis = 0; axis < 3; axis++) {
            for (int reverse = 0; reverse < 2; reverse++) {
                tl_attrs at;

                tl_attrs_init(&at);
                at.axis = (int8_t)axis;
                at.flag = reverse != 0;
                at.f[0] = 1;
                check_axes(scans[i], at, ROW_MAJOR, 3, DIMS(2, 3, 4), nin,
                           reverse ? "reverse" : "forward");
                check_axes(scans[i], at, TRANSPOSED, 3, DIMS(4, 3, 2), nin,
                           "transposed");
            }
        }
    }
}

Test(gradients, dropout_passes_its_mask)
{
    tl_attrs at = usual_attrs(TL_OP_dropout);

    check_axes(TL_OP_dropout, at, ROW_MAJOR, 2, DIMS(5, 7), 1, "row-major");
    check_axes(TL_OP_dropout, at, TRANSPOSED, 2, DIMS(5, 7), 1, "transposed");
}

/* ---- gradients by value ------------------------------------------------- */

/* Gradient of sum(op(x)) with respect to x. */
static tl_tensor *gradient_of(tl_op op, const tl_attrs *at, tl_tensor *x)
{
    tl_tensor *leaf, *loss, *g;
    tl_tape *tape;
    bool reached;

    OK(tl_grad_open(&rt, &tape));
    OK(tl_grad_leaf(&rt, tape, x, &leaf));
    loss = eat_sum(call1(op, leaf, at));
    tl_grad_close(&rt, tape);
    OK(tl_grad_backward(&rt, tape, loss, NULL, &leaf, 1, &g, &reached));
    tl_tape_free(tape);
    tl_tensor_unref(leaf);
    tl_tensor_unref(loss);
    return g;
}

static void expect_gradient(tl_op op, const tl_attrs *at, int64_t n,
                            const double *x, const double *want)
{
    for (int d = TL_f32; d <= TL_f64; d++) {
        tl_tensor *t = vec((tl_dtype)d, n, x);
        tl_tensor *g = gradient_of(op, at, t);

        for (int64_t i = 0; i < n; i++) {
            double got = tl_tensor_get_f(g, i);

            cr_expect(fabs(got - want[i]) <= 1e-6 * fmax(1, fabs(want[i])),
                      "%s: gradient %lld is %.9g, not %.9g",
                      tl_op_get(op)->name, (long long)i, got, want[i]);
            cr_expect(want[i] != 0 || !signbit(got), "-0");
        }
        tl_tensor_unref(t);
        tl_tensor_unref(g);
    }
}

static tl_attrs over(uint16_t axes, bool whole)
{
    tl_attrs at;

    tl_attrs_init(&at);
    at.axes = axes;
    at.flag = whole;
    at.f[0] = 1;
    return at;
}

Test(gradients, kinks_give_zero)
{
    tl_attrs whole = over(1, true);

    expect_gradient(TL_OP_relu, NULL, 3, VALUES(-1, 0, 2), VALUES(0, 0, 1));
    expect_gradient(TL_OP_abs, NULL, 3, VALUES(-1, 0, 2), VALUES(-1, 0, 1));
    expect_gradient(TL_OP_norm, &whole, 3, VALUES(0, 0, 0), VALUES(0, 0, 0));
    expect_gradient(TL_OP_std, &whole, 3, VALUES(1, 1, 1), VALUES(0, 0, 0));
    expect_gradient(TL_OP_logsumexp, &whole, 2,
                    VALUES(-(double)INFINITY, -(double)INFINITY),
                    VALUES(0, 0));
    expect_gradient(TL_OP_logsumexp, &whole, 2, VALUES(-(double)INFINITY, 1),
                    VALUES(0, 1));
    expect_gradient(TL_OP_sigmoid, NULL, 2, VALUES(-200, 0), VALUES(0, 0.25));
}

Test(gradients, ties_of_a_whole_reduction_share_and_an_axis_takes_the_first)
{
    tl_attrs whole = over(1, true), axis = over(1, false);

    expect_gradient(TL_OP_max, &whole, 3, VALUES(2, 2, 1),
                    VALUES(0.5, 0.5, 0));
    expect_gradient(TL_OP_max, &axis, 3, VALUES(2, 2, 1), VALUES(1, 0, 0));
    expect_gradient(TL_OP_min, &whole, 3, VALUES(2, 1, 1),
                    VALUES(0, 0.5, 0.5));
    expect_gradient(TL_OP_min, &axis, 3, VALUES(2, 1, 1), VALUES(0, 1, 0));
}

Test(gradients, products_with_zeros)
{
    tl_attrs whole = over(1, true);

    expect_gradient(TL_OP_prod, &whole, 4, VALUES(2, 0, 3, 4),
                    VALUES(0, 24, 0, 0));
    expect_gradient(TL_OP_prod, &whole, 3, VALUES(0, 0, 3), VALUES(0, 0, 0));
    expect_gradient(TL_OP_cumprod, &(tl_attrs){.axis = 0}, 3, VALUES(2, 0, 3),
                    VALUES(1, 8, 0));
}

/* d/d a and d/d b of a * b at one element, with the given upstream. */
static void gradient_of_pair(tl_op op, double a, double b, double want[2])
{
    tl_tensor *in[2] = {scalar(TL_f64, a), scalar(TL_f64, b)};
    tl_tensor *g = scalar(TL_f64, 1), *y = run(op, in, 2, NULL), *dx;

    for (int i = 0; i < 2; i++) {
        dx = scalar(TL_f64, 0);
        OK(rt.device->map_grad(&rt.kctx, op, i, in, 2, y, g, dx, NULL));
        cr_expect_eq(tl_tensor_get_f(dx, 0), want[i],
                     "%s(%g, %g), input %d: %g, not %g", tl_op_get(op)->name,
                     a, b, i, tl_tensor_get_f(dx, 0), want[i]);
        tl_tensor_unref(dx);
    }
    tl_tensor_unref(in[0]);
    tl_tensor_unref(in[1]);
    tl_tensor_unref(g);
    tl_tensor_unref(y);
}

Test(gradients, pairs_at_their_special_points)
{
    const double inf = (double)INFINITY;

    gradient_of_pair(TL_OP_maximum, 1, 1, VALUES(0.5, 0.5));
    gradient_of_pair(TL_OP_minimum, 1, 1, VALUES(0.5, 0.5));
    gradient_of_pair(TL_OP_pow, 0, 1, VALUES(1, 0));
    gradient_of_pair(TL_OP_pow, 1, 0, VALUES(0, 0));
    gradient_of_pair(TL_OP_pow, 0, 0, VALUES(0, 0));
    gradient_of_pair(TL_OP_logaddexp, -inf, -inf, VALUES(0, 0));
    gradient_of_pair(TL_OP_logaddexp, -inf, 1, VALUES(0, 1));
}

Test(gradients, a_zero_upstream_stops_nan)
{
    static const tl_op rows[] = {TL_OP_log, TL_OP_sqrt, TL_OP_log2,
                                 TL_OP_rsqrt};
    tl_tensor *x = vec(TL_f32, 2, VALUES(0, 0)), *y, *dx;
    tl_tensor *g = vec(TL_f32, 2, VALUES(0, 0));

    for (int i = 0; i < 4; i++) {
        y = call1(rows[i], x, NULL);
        dx = vec(TL_f32, 2, NULL);
        OK(rt.device->map_grad(&rt.kctx, rows[i], 0, &x, 1, y, g, dx, NULL));
        expect_values(dx, VALUES(0, 0));
        tl_tensor_unref(y);
        tl_tensor_unref(dx);
    }
    tl_tensor_unref(x);
    tl_tensor_unref(g);
}

/* The fused kernel and the emitted operations agree, in f32 to the bit. */
Test(gradients, fused_and_emitted_gradients_have_the_same_bits)
{
    for (int op = 0; op < TL_OP_COUNT; op++) {
        const tl_op_info *row = tl_op_get((tl_op)op);
        tl_attrs at = usual_attrs((tl_op)op);
        tl_tensor *in[3], *y, *g;
        bool want[3] = {true, true, true};

        if (row->cls != TL_CLASS_MAP) {
            continue;
        }
        for (int i = 0; i < row->nin; i++) {
            in[i] = points((row->bool_in >> i & 1) != 0 ? TL_bool : TL_f32, 1,
                           DIMS(997), row->domain, 5 + (uint64_t)i);
        }
        g = points(TL_f32, 1, DIMS(997), TL_DOM_ANY, 99);
        y = run((tl_op)op, in, row->nin, &at);
        for (int i = 0; i < row->nin; i++) {
            tl_apply_emit e;
            tl_node dx[3];
            tl_grad_in gi = {.op = (tl_op)op,
                             .at = &at,
                             .in = (tl_node *)in,
                             .nin = row->nin,
                             .out = (tl_node *)&y,
                             .nout = 1,
                             .g = (tl_node *)&g,
                             .want = want};
            tl_tensor *fused;

            if (tl_op_grad_is_zero((tl_op)op, i)) {
                continue;
            }
            fused = vec(TL_f32, 997, NULL);
            OK(rt.device->map_grad(&rt.kctx, (tl_op)op, i, in, row->nin, y, g,
                                   fused, &at));
            tl_apply_emit_init(&e, &rt);
            OK(tl_op_gradient(&e.emit, &gi, dx));
            cr_expect(same_bits(fused, dx[i]), "%s, input %d", row->name, i);
            tl_apply_emit_fini(&e);
            tl_tensor_unref(fused);
        }
        tl_tensor_unref(g);
        tl_tensor_unref(y);
        for (int i = 0; i < row->nin; i++) {
            tl_tensor_unref(in[i]);
        }
    }
}
