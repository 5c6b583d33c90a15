/* Canonical forms: what goes, and what must stay because of bits or
 * layout. */
#include "tests/unit/compiler/pass_text.h"

TestSuite(pass_canon, .init = diag_setup, .fini = diag_teardown);

/* Inputs that most tests share: %1 and %2 as they come, %3 row-major. */
#define IN                                                                   \
    "graph\n"                                                                \
    "s0 = size 0 0\n"                                                        \
    "%1: f32[s0, 4] = input 0\n"                                             \
    "%2: f32[s0, 4] = input 1\n"                                             \
    "%3: f32[s0, 4] = exp %1\n"

static void gives(const char *before, const char *after)
{
    pass_gives(TL_PASS_canon, before, after, 1);
}

static void keeps(const char *text)
{
    pass_keeps(TL_PASS_canon, text);
}

/* ---- arithmetic --------------------------------------------------------- */

Test(pass_canon, times_one_is_the_operand)
{
    gives(IN "%4: f32[] = full { dtype=f32 f0=1 }\n"
             "%5: f32[s0, 4] = mul %3 %4\n"
             "output %5\n",
          IN "output %3\n");
    gives(IN "%4: float = num 1\n"
             "%5: f32[] = scalar %4\n"
             "%6: f32[s0, 4] = mul %5 %3\n"
             "output %6\n",
          IN "output %3\n");
    gives("graph\n"
          "const 1 = 0000803f\n"
          "%1: f32[2] = input 0\n"
          "%2: f32[2] = neg %1\n"
          "%3: f32[] = const 1\n"
          "%4: f32[2] = div %2 %3\n"
          "output %4\n",
          "graph\n"
          "%1: f32[2] = input 0\n"
          "%2: f32[2] = neg %1\n"
          "output %2\n");
}

Test(pass_canon, what_is_not_known_to_be_row_major_stays)
{
    keeps("graph\n"
          "%1: f32[3, 4] = input 0\n"
          "%2: f32[] = full { dtype=f32 f0=1 }\n"
          "%3: f32[3, 4] = mul %1 %2\n"
          "output %3\n");
    keeps("graph\n"
          "%1: f32[3, 4] = input 0\n"
          "%2: f32[3, 4] = exp %1\n"
          "%3: f32[4, 3] = permute %2 { dims=[1, 0] }\n"
          "%4: f32[4, 3] = neg %3\n"
          "%5: f32[4, 3] = neg %4\n"
          "%6: f32[3, 3] = matmul %2 %5\n"
          "output %6\n");
}

Test(pass_canon, a_product_that_grows_stays)
{
    keeps("graph\n"
          "%1: f32[4] = input 0\n"
          "%2: f32[4] = exp %1\n"
          "%3: f32[3, 4] = full { dtype=f32 f0=1 dims=[3, 4] }\n"
          "%4: f32[3, 4] = mul %2 %3\n"
          "output %4\n");
}

Test(pass_canon, times_minus_one_is_the_negative)
{
    gives(IN "%4: f32[] = full { dtype=f32 f0=-1 }\n"
             "%5: f32[s0, 4] = mul %1 %4\n"
             "output %3 %5\n",
          IN "%4: f32[s0, 4] = neg %1\n"
             "output %3 %4\n");
}

Test(pass_canon, zeros_have_signs)
{
    const char *plus = IN "%4: f32[] = full { dtype=f32 }\n"
                          "%5: f32[s0, 4] = add %3 %4\n"
                          "output %5\n";
    const char *minus = IN "%4: f32[] = full { dtype=f32 f0=-0 }\n"
                           "%5: f32[s0, 4] = sub %3 %4\n"
                           "output %5\n";

    keeps(plus);
    keeps(minus);
    gives(IN "%4: f32[] = full { dtype=f32 f0=-0 }\n"
             "%5: f32[s0, 4] = add %4 %3\n"
             "output %5\n",
          IN "output %3\n");
    gives(IN "%4: f32[] = full { dtype=f32 }\n"
             "%5: f32[s0, 4] = sub %3 %4\n"
             "output %5\n",
          IN "output %3\n");
}

Test(pass_canon, ints_have_one_zero)
{
    gives("graph\n"
          "%1: i64[4] = input 0\n"
          "%2: i64[4] = neg %1\n"
          "%3: i64[] = full { dtype=i64 }\n"
          "%4: i64[4] = add %2 %3\n"
          "output %4\n",
          "graph\n"
          "%1: i64[4] = input 0\n"
          "%2: i64[4] = neg %1\n"
          "output %2\n");
}

Test(pass_canon, what_is_not_exact_stays)
{
    keeps(IN "%4: f32[] = full { dtype=f32 }\n"
             "%5: f32[s0, 4] = mul %3 %4\n"
             "%6: f32[s0, 4] = log %3\n"
             "%7: f32[s0, 4] = sub %3 %3\n"
             "%8: f32[s0, 4] = div %3 %3\n"
             "output %5 %6 %7 %8\n");
}

Test(pass_canon, twice_negative_is_the_operand)
{
    gives(IN "%4: f32[s0, 4] = neg %3\n"
             "%5: f32[s0, 4] = neg %4\n"
             "output %5\n",
          IN "output %3\n");
    gives("graph\n"
          "%1: f32[4] = input 0\n"
          "%2: bool[4] = isnan %1\n"
          "%3: bool[4] = not %2\n"
          "%4: bool[4] = not %3\n"
          "output %4\n",
          "graph\n"
          "%1: f32[4] = input 0\n"
          "%2: bool[4] = isnan %1\n"
          "output %2\n");
}

Test(pass_canon, the_second_relu_does_nothing)
{
    gives(IN "%4: f32[s0, 4] = relu %1\n"
             "%5: f32[s0, 4] = relu %4\n"
             "output %3 %5\n",
          IN "%4: f32[s0, 4] = relu %1\n"
             "output %3 %4\n");
}

Test(pass_canon, even_functions_need_no_sign)
{
    gives(IN "%4: f32[s0, 4] = neg %1\n"
             "%5: f32[s0, 4] = square %4\n"
             "output %3 %5\n",
          IN "%4: f32[s0, 4] = square %1\n"
             "output %3 %4\n");
    keeps("graph\n"
          "%1: u8[4] = input 0\n"
          "%2: u8[4] = neg %1\n"
          "%3: u8[4] = abs %2\n"
          "output %3\n");
}

Test(pass_canon, sums_of_negatives_are_differences)
{
    gives(IN "%4: f32[s0, 4] = neg %2\n"
             "%5: f32[s0, 4] = add %1 %4\n"
             "output %3 %5\n",
          IN "%4: f32[s0, 4] = sub %1 %2\n"
             "output %3 %4\n");
    gives(IN "%4: f32[s0, 4] = neg %2\n"
             "%5: f32[s0, 4] = add %4 %1\n"
             "output %3 %5\n",
          IN "%4: f32[s0, 4] = sub %1 %2\n"
             "output %3 %4\n");
    gives(IN "%4: f32[s0, 4] = neg %2\n"
             "%5: f32[s0, 4] = sub %1 %4\n"
             "output %3 %5\n",
          IN "%4: f32[s0, 4] = add %1 %2\n"
             "output %3 %4\n");
    keeps(IN "%4: f32[s0, 4] = neg %2\n"
             "%5: f32[s0, 4] = sub %4 %1\n"
             "output %3 %5\n");
}

Test(pass_canon, where_with_a_known_condition)
{
    gives(IN "%4: bool = num 0\n"
             "%5: bool[] = scalar %4\n"
             "%6: f32[s0, 4] = where %5 %1 %3\n"
             "output %6\n",
          IN "output %3\n");
    gives(IN "%4: bool[s0, 4] = isnan %1\n"
             "%5: f32[s0, 4] = where %4 %3 %3\n"
             "output %5\n",
          IN "output %3\n");
    keeps(IN "%4: bool[] = full { dtype=bool i0=1 }\n"
             "%5: f32[s0, 4] = where %4 %1 %3\n"
             "output %5\n");
}

Test(pass_canon, extremum_of_one_value_is_that)
{
    gives(IN "%4: f32[s0, 4] = maximum %3 %3\n"
             "output %4\n",
          IN "output %3\n");
}

Test(pass_canon, copy_of_what_is_row_major_is_that)
{
    gives(IN "%4: f32[s0, 4] = copy %3\n"
             "output %4\n",
          IN "output %3\n");
    keeps(IN "%4: f32[s0, 4] = copy %1\n"
             "output %3 %4\n");
}

/* ---- casts -------------------------------------------------------------- */

#define CASTS(in, mid, out)                                                  \
    "graph\n"                                                                \
    "%1: " in "[4] = input 0\n"                                              \
    "%2: " in "[4] = copy %1\n"                                              \
    "%3: " mid "[4] = cast %2 { dtype=" mid " }\n"                           \
    "%4: " out "[4] = cast %3 { dtype=" out " }\n"                           \
    "output %2 %4\n"

Test(pass_canon, widening_and_back_is_nothing)
{
    gives(CASTS("f16", "f32", "f16"),
          "graph\n"
          "%1: f16[4] = input 0\n"
          "%2: f16[4] = copy %1\n"
          "output %2 %2\n");
    gives(CASTS("u8", "i16", "u8"),
          "graph\n"
          "%1: u8[4] = input 0\n"
          "%2: u8[4] = copy %1\n"
          "output %2 %2\n");
    gives(CASTS("i16", "f32", "i16"),
          "graph\n"
          "%1: i16[4] = input 0\n"
          "%2: i16[4] = copy %1\n"
          "output %2 %2\n");
}

Test(pass_canon, a_cast_through_a_wider_dtype_is_one)
{
    gives(CASTS("f16", "f64", "f32"),
          "graph\n"
          "%1: f16[4] = input 0\n"
          "%2: f16[4] = copy %1\n"
          "%3: f32[4] = cast %2 { dtype=f32 }\n"
          "output %2 %3\n");
    gives(CASTS("bool", "i64", "f32"),
          "graph\n"
          "%1: bool[4] = input 0\n"
          "%2: bool[4] = copy %1\n"
          "%3: f32[4] = cast %2 { dtype=f32 }\n"
          "output %2 %3\n");
}

Test(pass_canon, casts_that_lose_stay)
{
    keeps(CASTS("f64", "f16", "f64"));
    keeps(CASTS("f16", "bf16", "f16"));
    keeps(CASTS("i8", "u8", "i8"));
    keeps(CASTS("i32", "f32", "i32"));
    keeps(CASTS("i16", "f32", "i8"));
    keeps(CASTS("i64", "f64", "i64"));
    keeps(CASTS("i64", "bool", "i64"));
}

Test(pass_canon, widening_an_input_and_back_keeps_its_layout)
{
    keeps("graph\n"
          "%1: f32[3, 4] = input 0\n"
          "%2: f64[3, 4] = cast %1 { dtype=f64 }\n"
          "%3: f32[3, 4] = cast %2 { dtype=f32 }\n"
          "output %3\n");
}

Test(pass_canon, casts_to_the_same_dtype_go)
{
    gives("graph\n"
          "%1: f32[3, 4] = input 0\n"
          "%2: f32[3, 4] = cast %1 { dtype=f32 }\n"
          "output %2\n",
          "graph\n"
          "%1: f32[3, 4] = input 0\n"
          "output %1\n");
}

/* ---- views -------------------------------------------------------------- */

#define X "graph\n%1: f32[2, 3, 4] = input 0\n"
#define DENSE X "%2: f32[2, 3, 4] = exp %1\n"

Test(pass_canon, permutes_compose_whatever_the_layout)
{
    gives(X "%2: f32[3, 4, 2] = permute %1 { dims=[1, 2, 0] }\n"
            "%3: f32[4, 2, 3] = permute %2 { dims=[1, -1, 0] }\n"
            "output %3\n",
          X "%2: f32[4, 2, 3] = permute %1 { dims=[2, 0, 1] }\n"
            "output %2\n");
    pass_gives(TL_PASS_canon,
               X "%2: f32[2, 4, 3] = permute %1 { dims=[0, 2, 1] }\n"
                 "%3: f32[2, 3, 4] = permute %2 { dims=[0, 2, 1] }\n"
                 "output %3\n",
               X "output %1\n", 2);
    gives(X "%2: f32[2, 3, 4] = permute %1 { dims=[0, 1, 2] }\n"
            "output %2\n",
          X "output %1\n");
}

Test(pass_canon, reshapes_compose_on_what_is_row_major)
{
    gives(DENSE "%3: f32[6, 4] = reshape %2 { dims=[6, 4] }\n"
                "%4: f32[24] = reshape %3 { dims=[-1] }\n"
                "output %4\n",
          DENSE "%3: f32[24] = reshape %2 { dims=[24] }\n"
                "output %3\n");
    gives(DENSE "%3: f32[6, 4] = reshape %2 { dims=[6, 4] }\n"
                "%4: f32[2, 3, 4] = reshape %3 { dims=[2, 3, 4] }\n"
                "output %4\n",
          DENSE "output %2\n");
    gives(DENSE "%3: f32[2, 3, 4] = reshape %2 { dims=[2, 3, 4] }\n"
                "output %3\n",
          DENSE "output %2\n");
    keeps(X "%2: f32[6, 4] = reshape %1 { dims=[6, 4] }\n"
            "%3: f32[24] = reshape %2 { dims=[24] }\n"
            "output %3\n");
    keeps(X "%2: f32[2, 3, 4] = reshape %1 { dims=[2, 3, 4] }\n"
            "output %2\n");
}

Test(pass_canon, squeeze_undoes_unsqueeze)
{
    gives(X "%2: f32[2, 1, 3, 4] = unsqueeze %1 { axes=2 }\n"
            "%3: f32[2, 3, 4] = squeeze %2 { axes=2 }\n"
            "output %3\n",
          X "output %1\n");
    gives(DENSE "%3: f32[2, 1, 3, 4] = unsqueeze %2 { axes=2 }\n"
                "%4: f32[6, 4] = reshape %3 { dims=[6, 4] }\n"
                "output %4\n",
          DENSE "%3: f32[6, 4] = reshape %2 { dims=[6, 4] }\n"
                "output %3\n");
    keeps("graph\n"
          "%1: f32[2, 1] = input 0\n"
          "%2: f32[2] = squeeze %1 { axes=2 }\n"
          "%3: f32[2, 1] = unsqueeze %2 { axes=2 }\n"
          "output %3\n");
}

Test(pass_canon, expands_compose)
{
    gives("graph\n"
          "%1: f32[1, 4] = input 0\n"
          "%2: f32[3, 4] = expand %1 { dims=[3, -1] }\n"
          "%3: f32[2, 3, 4] = expand %2 { dims=[2, -1, -1] }\n"
          "output %3\n",
          "graph\n"
          "%1: f32[1, 4] = input 0\n"
          "%2: f32[2, 3, 4] = expand %1 { dims=[2, 3, 4] }\n"
          "output %2\n");
    gives(X "%2: f32[2, 3, 4] = expand %1 { dims=[2, 3, 4] }\n"
            "output %2\n",
          X "output %1\n");
}

Test(pass_canon, slices_compose_by_numbers)
{
    gives("graph\n"
          "%1: f32[20] = input 0\n"
          "%2: f32[9] = slice %1 { dims=[19, 9, -2] }\n"
          "%3: f32[2] = slice %2 { dims=[1, 2, 3] }\n"
          "output %3\n",
          "graph\n"
          "%1: f32[20] = input 0\n"
          "%2: f32[2] = slice %1 { dims=[17, 2, -6] }\n"
          "output %2\n");
    gives(X "%2: f32[2, 3, 4] = slice %1 "
            "{ dims=[0, 2, 1, 0, 3, 1, 0, 4, 1] }\n"
            "output %2\n",
          X "output %1\n");
}

Test(pass_canon, slices_with_symbols_compose_where_no_sum_is_needed)
{
    gives("graph\n"
          "s0 = int %2\n"
          "%1: f32[20, 5] = input 0\n"
          "%2: int = input 1\n"
          "%3: f32[4, 5] = slice %1 { dims=[s0, 4, 1, 0, 5, 1] }\n"
          "%4: f32[4, 2] = slice %3 { dims=[0, 4, 1, s0, 2, 1] }\n"
          "output %4\n",
          "graph\n"
          "s0 = int %2\n"
          "%1: f32[20, 5] = input 0\n"
          "%2: int = input 1\n"
          "%3: f32[4, 2] = slice %1 { dims=[s0, 4, 1, s0, 2, 1] }\n"
          "output %3\n");
    keeps("graph\n"
          "s0 = int %2\n"
          "%1: f32[20] = input 0\n"
          "%2: int = input 1\n"
          "%3: f32[9] = slice %1 { dims=[s0, 9, 1] }\n"
          "%4: f32[4] = slice %3 { dims=[1, 4, 1] }\n"
          "output %4\n");
}

Test(pass_canon, rows_of_what_is_row_major_are_row_major)
{
    gives(DENSE "%3: f32[1, 3, 4] = slice %2 "
                "{ dims=[1, 1, 1, 0, 3, 1, 0, 4, 1] }\n"
                "%4: f32[3, 4] = squeeze %3 { axes=1 }\n"
                "%5: f32[12] = reshape %4 { dims=[12] }\n"
                "output %5\n",
          DENSE "%3: f32[1, 3, 4] = slice %2 "
                "{ dims=[1, 1, 1, 0, 3, 1, 0, 4, 1] }\n"
                "%4: f32[12] = reshape %3 { dims=[12] }\n"
                "output %4\n");
    keeps(DENSE "%3: f32[2, 3, 2] = slice %2 "
                "{ dims=[0, 2, 1, 0, 3, 1, 0, 2, 1] }\n"
                "%4: f32[6, 2] = reshape %3 { dims=[6, 2] }\n"
                "%5: f32[12] = reshape %4 { dims=[12] }\n"
                "output %5\n");
}

/* ---- host scalars and regions ------------------------------------------- */

Test(pass_canon, the_element_of_a_host_scalar_is_that)
{
    gives("graph\n"
          "%1: float = input 0\n"
          "%2: f64[] = scalar %1\n"
          "%3: float = item %2\n"
          "output %3\n",
          "graph\n"
          "%1: float = input 0\n"
          "output %1\n");
    keeps("graph\n"
          "%1: float = input 0\n"
          "%2: f32[] = scalar %1\n"
          "%3: float = item %2\n"
          "output %3\n");
}

Test(pass_canon, what_both_arms_take_from_outside_is_no_result)
{
    gives("graph\n"
          "%1: bool = input 0\n"
          "%2: f32[4] = input 1\n"
          "region() {\n"
          "  %3: f32[4] = exp %2\n"
          "} %2 %3\n"
          "region() {\n"
          "} %2 %2\n"
          "%4: f32[4], %5: f32[4] = if %1\n"
          "output %4 %5\n",
          "graph\n"
          "%1: bool = input 0\n"
          "%2: f32[4] = input 1\n"
          "region() {\n"
          "  %3: f32[4] = exp %2\n"
          "} %3\n"
          "region() {\n"
          "} %2\n"
          "%4: f32[4] = if %1\n"
          "output %2 %4\n");
}

Test(pass_canon, what_a_loop_carries_unchanged_is_what_it_began_with)
{
    pass_gives(TL_PASS_canon,
               "graph\n"
               "%1: int = input 0\n"
               "%2: f32[4] = input 1\n"
               "%3: f32[4] = input 2\n"
               "region(%4: f32[4], %5: f32[4]) {\n"
               "  %6: f32[] = sum %4 { axes=1 }\n"
               "  %7: bool[] = isfinite %6\n"
               "  %8: bool = item %7\n"
               "} %8\n"
               "region(%9: int, %10: f32[4], %11: f32[4]) {\n"
               "  %12: f32[4] = add %10 %11\n"
               "} %10 %12\n"
               "%13: int, %14: f32[4], %15: f32[4] = loop 2 %1 %2 %3\n"
               "output %14 %15\n",
               "graph\n"
               "%1: int = input 0\n"
               "%2: f32[4] = input 1\n"
               "%3: f32[4] = input 2\n"
               "region(%4: f32[4]) {\n"
               "  %5: f32[] = sum %2 { axes=1 }\n"
               "  %6: bool[] = isfinite %5\n"
               "  %7: bool = item %6\n"
               "} %7\n"
               "region(%8: int, %9: f32[4]) {\n"
               "  %10: f32[4] = add %2 %9\n"
               "} %10\n"
               "%11: int, %12: f32[4] = loop 1 %1 %3\n"
               "output %2 %12\n",
               3);
}

Test(pass_canon, every_failed_allocation_is_reported)
{
    pass_survives(TL_PASS_canon,
                  X "%2: f32[3, 4, 2] = permute %1 { dims=[1, 2, 0] }\n"
                    "%3: f32[4, 2, 3] = permute %2 { dims=[1, 2, 0] }\n"
                    "%4: f32[4, 2, 1] = slice %3 "
                    "{ dims=[0, 4, 1, 0, 2, 1, 2, 1, 1] }\n"
                    "%5: f32[1, 2, 1] = slice %4 "
                    "{ dims=[3, 1, 1, 0, 2, 1, 0, 1, 1] }\n"
                    "output %5\n");
}
