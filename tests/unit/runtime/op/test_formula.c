/* Formulas: grammar, printing, values, derivatives of every row. */
#include "runtime/op/formula.h"

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

static tl_arena arena;
static tl_diag diag;

static void setup(void)
{
    tl_arena_init(&arena);
    tl_diag_init(&diag, NULL);
}

static void teardown(void)
{
    tl_arena_fini(&arena);
    tl_diag_fini(&diag);
}

TestSuite(formula, .init = setup, .fini = teardown);

static const tl_formula *parsed(const char *text)
{
    const tl_formula *f = NULL;

    cr_assert_eq(tl_formula_parse(&arena, text, &f, &diag), TL_OK, "%s",
                 text);
    return f;
}

static void prints_as(const char *text, const char *want)
{
    tl_buf buf;

    tl_buf_init(&buf);
    tl_formula_print(parsed(text), &buf);
    cr_expect_str_eq(tl_buf_str(&buf), want);
    tl_buf_fini(&buf);
}

Test(formula, prints_with_fewest_parentheses)
{
    prints_as("(zmul(g, 1 - y * y))", "zmul(g, 1 - y * y)");
    prints_as("((x) + ((2) - 3))", "a + (2 - 3)");
    prints_as("(a - b) - c", "a - b - c");
    prints_as("a * (b / c)", "a * (b / c)");
    prints_as("-(a * b)", "-(a * b)");
    prints_as("(a < b ? K(-0.5) : p0) * inf", "(a < b ? -0.5 : p0) * inf");
    prints_as("M(pow)(a, b - 1) <= 0 ? a : b > 0 ? c : 1",
              "pow(a, b - 1) <= 0 ? a : b > 0 ? c : 1");
}

Test(formula, printed_text_of_every_row_reads_back_with_the_same_value)
{
    tl_formula_env env = {
        .in = {0.7, 1.3, -0.4}, .y = 0.6, .g = 1.1, .p = {0.2, 0.9}};
    tl_buf buf;

    tl_buf_init(&buf);
    for (int op = 0; op < TL_OP_COUNT; op++) {
        const tl_op_info *row = tl_op_get((tl_op)op);
        const char *texts[4] = {row->value, row->grad[0], row->grad[1],
                                row->grad[2]};

        for (int i = 0; i < 4; i++) {
            const tl_formula *f;

            if (texts[i] == NULL) {
                continue;
            }
            f = parsed(texts[i]);
            tl_buf_clear(&buf);
            tl_formula_print(f, &buf);
            cr_expect_eq(tl_formula_eval(f, &env),
                         tl_formula_eval(parsed(tl_buf_str(&buf)), &env),
                         "%s: %s", row->name, tl_buf_str(&buf));
        }
    }
    tl_buf_fini(&buf);
}

Test(formula, mistakes_are_reported_with_their_place)
{
    static const struct {
        const char *text, *message;
    } bad[] = {
        {"a +", "formula `a +`: expected a number, a name or ( at ``"},
        {"(a", "formula `(a`: expected ) at ``"},
        {"a b", "formula `a b`: expected the end at `b`"},
        {"M(frob)(a)", "formula `M(frob)(a)`: expected a function at `(a)`"},
        {"frob(a)", "formula `frob(a)`: expected a function at `(a)`"},
        {"M(exp)(a, b)",
         "formula `M(exp)(a, b)`: expected the function's number of "
         "arguments at `)`"},
        {"zeta", "formula `zeta`: expected a name at `zeta`"},
        {"a ? b", "formula `a ? b`: expected : after ? at ``"},
    };
    const tl_formula *f;

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        tl_diag_clear(&diag);
        cr_expect_neq(tl_formula_parse(&arena, bad[i].text, &f, &diag),
                      TL_OK);
        cr_expect_str_eq(diag.last->message, bad[i].message);
    }
}

Test(formula, nesting_is_bounded)
{
    char text[512];
    const tl_formula *f;

    memset(text, '-', sizeof text);
    memcpy(text + sizeof text - 2, "x", 2);
    cr_expect_neq(tl_formula_parse(&arena, text, &f, &diag), TL_OK);
}

Test(formula, equal_subexpressions_are_one_node)
{
    const tl_formula *f = parsed("M(exp)(x) * 2 + M(exp)(x) * 2");
    tl_buf buf;

    cr_assert(tl_formula_uses(f, 'x'));
    cr_assert_not(tl_formula_uses(f, 'b'));
    tl_buf_init(&buf);
    tl_formula_print(f, &buf);
    cr_expect_str_eq(tl_buf_str(&buf), "exp(a) * 2 + exp(a) * 2");
    tl_buf_fini(&buf);
}

Test(formula, derivatives_are_simplified)
{
    static const struct {
        const char *text, *value, *want;
    } cases[] = {
        {"x * x", NULL, "a + a"},
        {"M(sin)(x)", NULL, "cos(a)"},
        {"x / b", NULL, "1 / b"},
        {"b", NULL, "0"},
        {"y * y", "M(exp)(x)", "exp(a) * exp(a) + exp(a) * exp(a)"},
        {"x > 0 ? x : p0 * x", NULL, "a > 0 ? 1 : p0"},
    };
    const tl_formula *df;
    tl_buf buf;

    tl_buf_init(&buf);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *value = cases[i].value;

        cr_assert_eq(tl_formula_diff(&arena, parsed(cases[i].text),
                                     value == NULL ? NULL : parsed(value), 0,
                                     &df, &diag),
                     TL_OK);
        tl_buf_clear(&buf);
        tl_formula_print(df, &buf);
        cr_expect_str_eq(tl_buf_str(&buf), cases[i].want);
    }
    tl_buf_fini(&buf);
}

/* A point of the row's domain; `t` in 0 .. 1. */
static double point(tl_op_domain domain, double t)
{
    switch (domain) {
    case TL_DOM_POS:
        return 0.1 + 3.9 * t;
    case TL_DOM_NONZERO:
        return t < 0.5 ? -3 + 5.4 * t : 0.3 + 5.4 * (t - 0.5);
    case TL_DOM_UNIT:
        return -0.9 + 1.8 * t;
    case TL_DOM_PROB:
        return 0.05 + 0.9 * t;
    case TL_DOM_BIG:
        return 1.1 + 2.9 * t;
    case TL_DOM_ANY:
        break;
    }
    return -3 + 6 * t;
}

static uint64_t lcg = 1;

static double uniform(void)
{
    lcg = lcg * 6364136223846793005u + 1442695040888963407u;
    return (double)(lcg >> 11) * 0x1p-53;
}

/* The row's gradient against the derivative of its value, and both against
 * central differences, which know nothing of either. */
static void check_gradient(const tl_op_info *row, int which)
{
    const tl_formula *value = parsed(row->value);
    const tl_formula *grad = parsed(row->grad[which]), *df;

    cr_assert_eq(tl_formula_diff(&arena, value, NULL, which, &df, &diag),
                 TL_OK);
    for (int trial = 0; trial < 100; trial++) {
        tl_formula_env env = {.g = 1, .p = {0.25, 1.5}}, lo, hi;
        const double h = 1e-5;
        double got, want, slope;

        for (int i = 0; i < row->nin; i++) {
            env.in[i] = point(row->domain, uniform());
        }
        env.y = tl_formula_eval(value, &env);
        got = tl_formula_eval(grad, &env);
        want = tl_formula_eval(df, &env);
        cr_assert(fabs(got - want) <= 1e-9 * (1 + fabs(want)),
                  "%s, input %d at %g, %g: %.17g, derivative %.17g",
                  row->name, which, env.in[0], env.in[1], got, want);
        lo = hi = env;
        lo.in[which] -= h;
        hi.in[which] += h;
        slope = (tl_formula_eval(value, &hi) - tl_formula_eval(value, &lo)) /
                (2 * h);
        cr_assert(fabs(got - slope) <= 1e-6 * (1 + fabs(slope)),
                  "%s, input %d at %g, %g: %.17g, slope %.17g", row->name,
                  which, env.in[0], env.in[1], got, slope);
    }
}

Test(formula, gradient_of_every_row_is_the_derivative_of_its_value)
{
    for (int op = 0; op < TL_OP_COUNT; op++) {
        const tl_op_info *row = tl_op_get((tl_op)op);

        for (int i = 0; i < row->nin && row->cls == TL_CLASS_MAP; i++) {
            bool steps = op == TL_OP_floor || op == TL_OP_ceil ||
                         op == TL_OP_round || op == TL_OP_floordiv ||
                         op == TL_OP_mod || op == TL_OP_sign;

            if (!steps && (row->bool_in >> i & 1) == 0) {
                check_gradient(row, i);
            }
        }
    }
}

Test(formula, second_derivatives_follow_from_the_gradient_formulas)
{
    const tl_formula *grad = parsed(tl_op_get(TL_OP_tanh)->grad[0]);
    const tl_formula *value = parsed(tl_op_get(TL_OP_tanh)->value), *df;
    tl_formula_env env = {.in = {0.3}, .g = 1};
    double y = tanh(0.3);

    cr_assert_eq(tl_formula_diff(&arena, grad, value, 0, &df, &diag), TL_OK);
    cr_expect_float_eq(tl_formula_eval(df, &env), -2 * y * (1 - y * y),
                       1e-15);
}

Test(formula, saved_values_are_those_that_gradients_mention)
{
    cr_expect_eq(tl_op_get(TL_OP_tanh)->saves_in, 0);
    cr_expect_eq(tl_op_get(TL_OP_tanh)->saves_out, 1);
    cr_expect_eq(tl_op_get(TL_OP_mul)->saves_in, 3);
    cr_expect_eq(tl_op_get(TL_OP_mul)->saves_out, 0);
    cr_expect_eq(tl_op_get(TL_OP_add)->saves_in, 0);
    cr_expect_eq(tl_op_get(TL_OP_where)->saves_in, 1);
    cr_expect_eq(tl_op_get(TL_OP_gelu)->saves_in, 1);
    cr_expect_eq(tl_op_get(TL_OP_relu)->saves_in, 0);
}
