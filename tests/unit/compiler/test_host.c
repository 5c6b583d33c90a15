/* Host scalars of a graph: values, and what fails as in the interpreter. */
#include "compiler/graph.h"

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "runtime/base/mem.h"
#include "runtime/op/dim_code.h"

static tl_graph *g;
static tl_diag diag;
static tl_gscalar scalar[64];
static uint8_t known[64];
static int64_t atom[4];
static tl_genv env = {scalar, known, atom};

static void setup(void)
{
    tl_diag_init(&diag, NULL);
    memset(known, 0, sizeof(known));
    cr_assert_eq(tl_graph_new(&g, &diag), TL_OK);
}

static void teardown(void)
{
    tl_graph_free(g);
    tl_diag_fini(&diag);
    cr_expect_eq(tl_mem_live_blocks(), 0);
}

TestSuite(host, .init = setup, .fini = teardown);

static tl_gval node(tl_gkind kind, uint16_t op, tl_gclass cls,
                    const tl_gval *in, uint32_t nin, uint32_t attrs)
{
    tl_gvalue type = {.cls = (uint8_t)cls};
    tl_gnew n = {.kind = kind, .op = op, .in = in, .nin = nin, .nout = 1,
                 .out = &type, .attrs = attrs, .span = {1, 10, 20}};
    tl_gval v;

    cr_assert_eq(tl_graph_add(g, &n, &v, &diag), TL_OK);
    return v;
}

static tl_gval num(tl_gclass cls, tl_gscalar s)
{
    tl_gattrs at = {.axis = 0};
    uint32_t attrs;
    tl_gval v;

    at.i[0] = s.i;
    cr_assert_eq(tl_graph_attrs(g, &at, NULL, NULL, &attrs, &diag), TL_OK);
    v = node(TL_G_NUM, 0, cls, NULL, 0, attrs);
    cr_assert_eq(tl_graph_host(g, g->values.items[v].node, &env, &diag),
                 TL_OK);
    cr_assert(known[v]);
    return v;
}

static tl_gval int_of(int64_t i)
{
    return num(TL_GC_INT, (tl_gscalar){.i = i});
}

static tl_gval float_of(double f)
{
    return num(TL_GC_FLOAT, (tl_gscalar){.f = f});
}

static tl_gval bool_of(bool b)
{
    tl_gscalar s = {.bits = 0};

    s.b = b;
    return num(TL_GC_BOOL, s);
}

static tl_status run(tl_ghost op, tl_gclass cls, const tl_gval *in,
                     tl_gscalar *out)
{
    tl_gval v = node(TL_G_HOST, (uint16_t)op, cls, in,
                     (uint32_t)tl_ghost_inputs(op), 0);
    tl_status st = tl_graph_host(g, g->values.items[v].node, &env, &diag);

    cr_expect_eq(known[v], st == TL_OK);
    *out = scalar[v];
    return st;
}

static void ints(tl_ghost op, int64_t a, int64_t b, int64_t want)
{
    tl_gval in[2] = {int_of(a), int_of(b)};
    tl_gscalar s;

    cr_expect_eq(run(op, TL_GC_INT, in, &s), TL_OK);
    cr_expect_eq(s.i, want, "%s", tl_ghost_name(op));
}

static void floats(tl_ghost op, double a, double b, double want)
{
    tl_gval in[2] = {float_of(a), float_of(b)};
    tl_gscalar s;

    cr_expect_eq(run(op, TL_GC_FLOAT, in, &s), TL_OK);
    cr_expect(memcmp(&s.f, &want, sizeof(want)) == 0, "%s: %g for %g",
              tl_ghost_name(op), s.f, want);
}

static void bools(tl_ghost op, tl_gval a, tl_gval b, bool want)
{
    tl_gval in[2] = {a, b};
    tl_gscalar s;

    cr_expect_eq(run(op, TL_GC_BOOL, in, &s), TL_OK);
    cr_expect_eq(s.bits, want, "%s", tl_ghost_name(op));
}

static void fails(tl_ghost op, tl_gclass cls, tl_gval a, tl_gval b,
                  tl_code code, const char *text)
{
    tl_gval in[2] = {a, b};
    tl_gscalar s;

    tl_diag_clear(&diag);
    cr_expect_neq(run(op, cls, in, &s), TL_OK, "%s", tl_ghost_name(op));
    cr_assert_not_null(diag.last);
    cr_expect_eq(diag.last->code, code);
    cr_expect_str_eq(diag.last->message, text);
    cr_expect_eq(diag.last->span.start, 10);
}

Test(host, int_arithmetic_is_pythons)
{
    ints(TL_H_add_i, 3, -5, -2);
    ints(TL_H_sub_i, 3, -5, 8);
    ints(TL_H_mul_i, 3, -5, -15);
    ints(TL_H_floordiv_i, -7, 2, -4);
    ints(TL_H_floordiv_i, 7, -1, -7);
    ints(TL_H_mod_i, -7, 3, 2);
    ints(TL_H_mod_i, 7, -3, -2);
    ints(TL_H_mod_i, INT64_MIN, -1, 0);
    ints(TL_H_neg_i, 3, 0, -3);
    ints(TL_H_min_i, 3, -5, -5);
    ints(TL_H_max_i, 3, -5, 3);
}

Test(host, int_overflow_and_zero_fail_in_the_interpreters_words)
{
    fails(TL_H_add_i, TL_GC_INT, int_of(INT64_MAX), int_of(1), TL_E0404,
          "9223372036854775807 + 1 does not fit 64 bits");
    fails(TL_H_sub_i, TL_GC_INT, int_of(INT64_MIN), int_of(1), TL_E0404,
          "-9223372036854775808 - 1 does not fit 64 bits");
    fails(TL_H_mul_i, TL_GC_INT, int_of(INT64_MAX), int_of(2), TL_E0404,
          "9223372036854775807 * 2 does not fit 64 bits");
    fails(TL_H_neg_i, TL_GC_INT, int_of(INT64_MIN), 0, TL_E0404,
          "0 - -9223372036854775808 does not fit 64 bits");
    fails(TL_H_floordiv_i, TL_GC_INT, int_of(INT64_MIN), int_of(-1), TL_E0404,
          "-9223372036854775808 // -1 does not fit 64 bits");
    fails(TL_H_floordiv_i, TL_GC_INT, int_of(1), int_of(0), TL_E0401,
          "integer division by zero");
    fails(TL_H_mod_i, TL_GC_INT, int_of(1), int_of(0), TL_E0401,
          "integer division by zero");
}

Test(host, float_arithmetic_is_pythons)
{
    floats(TL_H_add_f, 0.1, 0.2, 0.1 + 0.2);
    floats(TL_H_sub_f, 0.1, 0.2, 0.1 - 0.2);
    floats(TL_H_mul_f, 0.1, 0.2, 0.1 * 0.2);
    floats(TL_H_div_f, 1, 3, 1.0 / 3);
    floats(TL_H_floordiv_f, -7, 2, -4);
    floats(TL_H_mod_f, -7, 3, 2);
    floats(TL_H_mod_f, 7, -3, -2);
    floats(TL_H_pow_f, 2, 0.5, sqrt(2));
    floats(TL_H_neg_f, 0.0, 0, -0.0);
    floats(TL_H_abs_f, -2, 0, 2);
    floats(TL_H_sqrt_f, 2, 0, sqrt(2));
    floats(TL_H_exp_f, 2, 0, exp(2));
    floats(TL_H_log_f, 2, 0, log(2));
    floats(TL_H_sin_f, 2, 0, sin(2));
    floats(TL_H_cos_f, 2, 0, cos(2));
    floats(TL_H_tanh_f, 2, 0, tanh(2));
    floats(TL_H_min_f, 1, -2, -2);
    floats(TL_H_max_f, 1, -2, 1);
}

Test(host, float_failures_are_the_interpreters)
{
    const tl_ghost divide[] = {TL_H_div_f, TL_H_floordiv_f, TL_H_mod_f};

    for (int i = 0; i < 3; i++) {
        fails(divide[i], TL_GC_FLOAT, float_of(1), float_of(0), TL_E0401,
              "division by zero");
    }
    fails(TL_H_pow_f, TL_GC_FLOAT, float_of(0), float_of(-1), TL_E0401,
          "division by zero");
    fails(TL_H_log_f, TL_GC_FLOAT, float_of(0), 0, TL_E0416,
          "log(0) is not defined");
    fails(TL_H_sqrt_f, TL_GC_FLOAT, float_of(-1), 0, TL_E0416,
          "sqrt(-1) is not defined");
    fails(TL_H_exp_f, TL_GC_FLOAT, float_of(1e4), 0, TL_E0416,
          "exp(10000) is not defined");
}

static void converts(tl_ghost op, tl_gval a, tl_gscalar want)
{
    tl_gscalar s;

    cr_expect_eq(
        run(op, op == TL_H_to_int ? TL_GC_INT : TL_GC_FLOAT, &a, &s), TL_OK);
    cr_expect_eq(s.bits, want.bits);
}

Test(host, conversions)
{
    converts(TL_H_to_float, int_of(-3), (tl_gscalar){.f = -3});
    converts(TL_H_to_float, bool_of(true), (tl_gscalar){.f = 1});
    converts(TL_H_to_float, float_of(0.5), (tl_gscalar){.f = 0.5});
    converts(TL_H_to_int, float_of(-3.9), (tl_gscalar){.i = -3});
    converts(TL_H_to_int, bool_of(true), (tl_gscalar){.i = 1});
    converts(TL_H_to_int, int_of(8), (tl_gscalar){.i = 8});
    fails(TL_H_to_int, TL_GC_INT, float_of(1e30), 0, TL_E0220,
          "1e+30 has no int of 64 bits");
}

Test(host, comparisons_and_logic)
{
    tl_gval one = int_of(1), two = int_of(2);
    tl_gval half = float_of(0.5), nan = float_of(NAN);
    tl_gval yes = bool_of(true), no = bool_of(false);

    bools(TL_H_lt_i, one, two, true);
    bools(TL_H_lt_i, two, two, false);
    bools(TL_H_le_i, two, two, true);
    bools(TL_H_le_i, two, one, false);
    bools(TL_H_eq_i, two, two, true);
    bools(TL_H_ne_i, two, two, false);
    bools(TL_H_lt_f, half, half, false);
    bools(TL_H_le_f, half, half, true);
    bools(TL_H_le_f, nan, half, false);
    bools(TL_H_eq_f, nan, nan, false);
    bools(TL_H_ne_f, nan, nan, true);
    bools(TL_H_and, yes, no, false);
    bools(TL_H_or, yes, no, true);
    bools(TL_H_not, no, 0, true);
}

Test(host, choose_takes_any_class)
{
    tl_gval in[3] = {bool_of(false), float_of(1), float_of(2)};
    tl_gscalar s;

    cr_assert_eq(run(TL_H_choose, TL_GC_FLOAT, in, &s), TL_OK);
    cr_expect_eq(s.f, 2);
    in[0] = bool_of(true);
    cr_assert_eq(run(TL_H_choose, TL_GC_FLOAT, in, &s), TL_OK);
    cr_expect_eq(s.f, 1);
}

Test(host, size_node_gives_its_size)
{
    const int64_t code[] = {TL_DC_ATOM, 0, TL_DC_NUM, 2, TL_DC_FLOORDIV};
    tl_gattrs at = {.ndims = 1};
    uint32_t attrs, size, a;
    tl_gval v;

    cr_assert_eq(tl_graph_atom(g, (tl_gatom){0}, &a, &diag), TL_OK);
    cr_assert_eq(tl_graph_size(g, code, 5, &size, &diag), TL_OK);
    cr_assert_eq(tl_graph_attrs(g, &at, &size, NULL, &attrs, &diag), TL_OK);
    v = node(TL_G_SIZE, 0, TL_GC_INT, NULL, 0, attrs);
    atom[0] = 9;
    cr_assert_eq(tl_graph_host(g, g->values.items[v].node, &env, &diag),
                 TL_OK);
    cr_expect_eq(scalar[v].i, 4);
}

Test(host, every_row_has_a_name_and_operands)
{
    for (int op = 1; op < TL_H_COUNT; op++) {
        cr_expect(tl_ghost_name((tl_ghost)op)[0] != 0);
        cr_expect(tl_ghost_inputs((tl_ghost)op) >= 1 &&
                  tl_ghost_inputs((tl_ghost)op) <= 3);
    }
    cr_expect_str_eq(tl_ghost_name(TL_H_choose), "choose");
    cr_expect_eq(tl_ghost_inputs(TL_H_choose), 3);
}
