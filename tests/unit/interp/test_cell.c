/* test_cell.c - cells: first values, writes, initialisers. */
#include "tests/unit/interp/suite.h"

TestSuite(test_cell, .init = setup, .fini = teardown);

static tl_cell *cell_of(const char *module, const char *name)
{
    const tl_sym *sym = tl_intern_find(&r.names, name, strlen(name));
    tl_cell *cell = tl_module_cell_of(run_global(&r, module).module, sym);

    cr_assert_not_null(cell);
    return cell;
}

static void define(void)
{
    cr_assert_eq(run_text(&r,
                          "module M(n: int):\n"
                          "    param w: f32[n, _] = ones(n, 2)\n"
                          "    param late: f32[n] = fn(s, d) => zeros(s)\n"
                          "    buffer t: grads[M] = params([])\n"
                          "    k: int = 1\n"
                          "    x: float = 1\n"
                          "    on: bool = true\n"
                          "m = M(3)\n"),
                 TL_OK);
}

static void refuses(const char *statement, tl_code code)
{
    tl_diag_clear(&r.diag);
    cr_expect_neq(run_text(&r, statement), TL_OK, "%s", statement);
    cr_expect_eq(run_code(&r), code, "%s gave %s", statement,
                 tl_code_name(run_code(&r)));
}

Test(test_cell, dtype_rank_and_declared_sizes_stay)
{
    define();
    refuses("m.w = zeros(3, 2, dtype=f64)", TL_E0308);
    refuses("m.w = zeros(3)", TL_E0304);
    refuses("m.w = zeros(4, 2)", TL_E0312);
    refuses("m.w = 1.0", TL_E0210);
    refuses("m.w = \"x\"", TL_E0210);
    cr_expect_eq(cell_of("m", "w")->value.tensor->size[1], 2);
}

Test(test_cell, undeclared_sizes_change)
{
    define();
    cr_assert_eq(run_text(&r, "m.w = zeros(3, 7)"), TL_OK);
    cr_expect_eq(cell_of("m", "w")->value.tensor->size[1], 7);
}

Test(test_cell, host_cells_keep_their_type)
{
    define();
    refuses("m.k = 1.5", TL_E0210);
    refuses("m.k = true", TL_E0210);
    refuses("m.x = ones(1)", TL_E0210);
    refuses("m.on = 1", TL_E0210);
    cr_assert_eq(run_text(&r, "m.x = 2"), TL_OK);
    cr_expect_eq(cell_of("m", "x")->value.tag, TL_V_FLOAT);
}

Test(test_cell, trees_keep_their_structure)
{
    define();
    refuses("m.t = params(m)", TL_E0512);
    refuses("m.t = ones(2)", TL_E0210);
}

Test(test_cell, initialiser_runs_at_the_first_read)
{
    tl_cell *cell;

    define();
    cell = cell_of("m", "late");
    cr_expect_eq(cell->value.tag, TL_V_EMPTY);
    cr_assert_eq(run_text(&r, "m.late"), TL_OK);
    cr_expect_eq(cell->value.tag, TL_V_TENSOR);
    cr_expect_eq(cell->init.tag, TL_V_EMPTY);
}

Test(test_cell, written_cell_needs_no_initialiser)
{
    define();
    cr_assert_eq(run_text(&r, "m.late = ones(3)"), TL_OK);
    cr_expect_eq(cell_of("m", "late")->init.tag, TL_V_EMPTY);
}

Test(test_cell, reading_in_the_constructor_is_refused)
{
    cr_expect_neq(run_text(&r, "module A():\n"
                               "    param w: f32[2] = fn(s, d) => zeros(s)\n"
                               "module B():\n"
                               "    a = A()\n"
                               "    sum = a.w.sum()\n"
                               "b = B()\n"),
                  TL_OK);
    cr_expect_eq(run_code(&r), TL_E0202);
}

Test(test_cell, wrong_initialisers_name_the_cell)
{
    cr_assert_eq(run_text(&r, "module A(f):\n    param w: f32[2] = f\n"),
                 TL_OK);
    refuses("A(fn(s, d) => zeros(3)).w", TL_E0312);
    refuses("A(fn(s, d) => none).w", TL_E0210);
    refuses("A(fn(s) => zeros(s)).w", TL_E0203);
    refuses("A(fn(s, d) => zeros(s, dtype=i64)).w", TL_E0308);
}

Test(test_cell, params_are_floats)
{
    cr_expect_neq(run_text(&r, "module A():\n"
                               "    param w: i64[2] = zeros(2, dtype=i64)\n"
                               "a = A()\n"),
                  TL_OK);
    cr_expect_eq(run_code(&r), TL_E0322);
}

Test(test_cell, params_are_not_written_inside_their_tape)
{
    define();
    refuses("g = grad l wrt m:\n"
            "    l = m.w.sum()\n"
            "    m.w = zeros(3, 2)\n",
            TL_E0505);
    cr_assert_eq(run_text(&r, "m.w = zeros(3, 2)"), TL_OK);
}
