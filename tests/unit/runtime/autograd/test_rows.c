/* test_rows.c - first and second derivatives of every elementwise and every
 * reducing row of the table, in f64, over layouts of the operands.
 *
 * A row needs nothing here: operands come from its domain. */
#include "tests/unit/runtime/helper.h"

#include "runtime/autograd/gradcheck.h"

TestSuite(rows, .init = rt_setup, .fini = rt_teardown, .timeout = 120);

enum { SEED = 20 };

/* Number i of operand `which` of `op`, in the row's domain. */
static double sample(tl_op op, int which, int64_t i)
{
    tl_rng_key key = {.seed = SEED, .draw = (uint64_t)op,
                      .sub = (uint32_t)which};
    uint32_t w[4];
    double u, sign;

    tl_philox(w, &key, (uint64_t)i);
    u = tl_uniform_f64(w[0], w[1]);
    sign = w[2] & 1 ? 1 : -1;
    switch (tl_op_get(op)->domain) {
    case TL_DOM_POS:
        return 0.1 + 3.9 * u;
    case TL_DOM_NONZERO:
        return sign * (0.3 + 2.7 * u);
    case TL_DOM_UNIT:
        return 1.8 * u - 0.9;
    case TL_DOM_PROB:
        return 0.05 + 0.9 * u;
    case TL_DOM_BIG:
        return 1.1 + 2.9 * u;
    default: /* away from whole numbers and halves, where rounding jumps */
        return sign * (floor(u * 6) / 2 + 0.1 + 0.3 * tl_uniform_f64(w[3], 0));
    }
}

typedef enum layout {
    ROW_MAJOR,
    TRANSPOSED,
    STRIDED,
    OFFSET,
    BROADCAST,
    SIZE_ONE,
    EMPTY,
    SCALAR,
    LAYOUTS
} layout;

static const char *const layout_names[LAYOUTS] = {
    "row-major", "transposed", "strided", "offset",
    "broadcast", "size one",   "empty",   "rank 0"};

/* Operand `which` of `op` in this layout; of shape [3, 4] where possible. */
static tl_tensor *operand(tl_op op, int which, layout l)
{
    static const int64_t base_size[LAYOUTS][2] = {
        {3, 4}, {4, 3}, {3, 8}, {5, 4}, {1, 4}, {1, 1}, {0, 4}, {1, 1}};
    bool cond = (tl_op_get(op)->bool_in >> which & 1) != 0;
    tl_tensor *base = make(cond ? TL_bool : TL_f64, 2, base_size[l], NULL);
    tl_tensor *view;

    for (int64_t i = 0; i < base->numel; i++) {
        double v = sample(op, which, i);

        tl_tensor_set_f(base, i, cond ? v > 0 : v);
    }
    switch (l) {
    case TRANSPOSED:
        OK(tl_tensor_view(&view, base, 2, DIMS(3, 4), DIMS(1, 3), 0, &diag));
        break;
    case STRIDED: /* every second, backwards */
        OK(tl_tensor_view(&view, base, 2, DIMS(3, 4), DIMS(8, -2), 7,
                          &diag));
        break;
    case OFFSET:
        OK(tl_tensor_view(&view, base, 2, DIMS(3, 4), DIMS(4, 1), 8, &diag));
        break;
    case BROADCAST: /* stride 0 */
        OK(tl_tensor_view(&view, base, 2, DIMS(3, 4), DIMS(0, 1), 0, &diag));
        break;
    case SCALAR:
        OK(tl_tensor_view(&view, base, 0, NULL, NULL, 0, &diag));
        break;
    default:
        return base;
    }
    tl_tensor_unref(base);
    return view;
}

typedef struct row {
    tl_op op;
    tl_attrs at;
} row;

static tl_status run_row(void *arg, tl_rt *r, tl_tensor *const *in, int n,
                         tl_tensor **out)
{
    const row *it = arg;

    return tl_apply_borrowed(r, it->op, in, n, &it->at, out);
}

/* clamp needs lo < hi, leaky_relu and elu a slope. */
static void attributes(row *it)
{
    tl_attrs_init(&it->at);
    it->at.f[0] = it->op == TL_OP_clamp ? -1.25 : 0.35;
    it->at.f[1] = 1.75;
}

static void check(row *it, tl_tensor *const *in, int n, layout l)
{
    for (int second = 0; second < 2; second++) {
        tl_gradcheck_options options = {.seed = SEED, .second = second != 0,
                                        .rtol = 1e-6, .atol = 1e-7};
        tl_gradcheck_result r;

        tl_diag_clear(&diag);
        OK(tl_gradcheck(&rt, run_row, it, in, n, &options, &r));
        cr_expect(r.ok,
                  "%s, order %d, %s, operand %d, element %d: %.10g, but the "
                  "difference is %.10g",
                  tl_op_get(it->op)->name, second + 1, layout_names[l],
                  r.input, (int)r.index, r.analytic, r.numeric);
    }
}

Test(rows, elementwise_gradients_in_every_layout)
{
    for (int op = 0; op < TL_OP_COUNT; op++) {
        row it = {.op = (tl_op)op};
        int n = tl_op_get(it.op)->nin;

        if (tl_op_get(it.op)->cls != TL_CLASS_MAP) {
            continue;
        }
        attributes(&it);
        for (int l = 0; l < LAYOUTS; l++) {
            tl_tensor *in[3];

            for (int i = 0; i < n; i++) {
                in[i] = operand(it.op, i, (layout)l);
            }
            check(&it, in, n, (layout)l);
            for (int i = 0; i < n; i++) {
                tl_tensor_unref(in[i]);
            }
        }
    }
}

/* One operand [3, 4], the other broadcast against it from fewer axes. */
Test(rows, elementwise_gradients_of_stretched_operands)
{
    for (int op = 0; op < TL_OP_COUNT; op++) {
        row it = {.op = (tl_op)op};
        int n = tl_op_get(it.op)->nin;

        if (tl_op_get(it.op)->cls != TL_CLASS_MAP || n < 2) {
            continue;
        }
        attributes(&it);
        for (int small = 0; small < n; small++) {
            tl_tensor *in[3];

            for (int i = 0; i < n; i++) {
                in[i] = operand(it.op, i, i == small ? SCALAR : ROW_MAJOR);
            }
            check(&it, in, n, SCALAR);
            for (int i = 0; i < n; i++) {
                tl_tensor_unref(in[i]);
            }
        }
    }
}

/* Does the row have a gradient? */
static bool is_smooth_reduction(tl_op op)
{
    const tl_op_info *info = tl_op_get(op);

    return info->cls == TL_CLASS_RED && info->differentiable;
}

Test(rows, reduction_gradients_over_every_set_of_axes)
{
    for (int op = 0; op < TL_OP_COUNT; op++) {
        row it = {.op = (tl_op)op};

        if (!is_smooth_reduction(it.op)) {
            continue;
        }
        attributes(&it);
        for (int l = 0; l < EMPTY; l++) {
            tl_tensor *x = operand(it.op, 0, (layout)l);

            for (int axes = 1; axes < 4 && l != SIZE_ONE; axes++) {
                /* equal elements of a broadcast operand are kinks */
                if (l == BROADCAST && (op == TL_OP_max || op == TL_OP_min ||
                                       op == TL_OP_std)) {
                    continue;
                }
                it.at.axes = (uint16_t)axes;
                it.at.flag = axes == 3;
                it.at.keep = axes == 2;
                check(&it, &x, 1, (layout)l);
            }
            tl_tensor_unref(x);
        }
    }
}
