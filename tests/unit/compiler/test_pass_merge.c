/* Equal nodes become one, where the first is seen from the second. */
#include "tests/unit/compiler/pass_text.h"

TestSuite(pass_merge, .init = diag_setup, .fini = diag_teardown);

static void gives(const char *before, const char *after, size_t changes)
{
    pass_gives(TL_PASS_merge, before, after, changes);
}

static void keeps(const char *text)
{
    pass_keeps(TL_PASS_merge, text);
}

Test(pass_merge, equal_expressions_are_one)
{
    gives("graph\n"
          "const 1 = 0000803f\n"
          "%1: f32[4] = input 0\n"
          "%2: f32[] = const 1\n"
          "%3: f32[4] = add %1 %2\n"
          "%4: f32[4] = exp %3\n"
          "%5: f32[] = const 1\n"
          "%6: f32[4] = add %1 %5\n"
          "%7: f32[4] = exp %6\n"
          "%8: f32[4] = grad exp 0 _ %7 %1\n"
          "%9: f32[4] = grad exp 0 _ %4 %1\n"
          "output %4 %7 %8 %9\n",
          "graph\n"
          "const 1 = 0000803f\n"
          "%1: f32[4] = input 0\n"
          "%2: f32[] = const 1\n"
          "%3: f32[4] = add %1 %2\n"
          "%4: f32[4] = exp %3\n"
          "%5: f32[4] = grad exp 0 _ %4 %1\n"
          "output %4 %4 %5 %5\n",
          4);
}

Test(pass_merge, all_results_merge)
{
    gives("graph\n"
          "%1: f32[4] = input 0\n"
          "%2: f32[4], %3: i64[4] = sort %1\n"
          "%4: f32[4], %5: i64[4] = sort %1\n"
          "%6: f32[4], %7: i64[4] = sort %1 { flag }\n"
          "output %2 %5 %6 %7\n",
          "graph\n"
          "%1: f32[4] = input 0\n"
          "%2: f32[4], %3: i64[4] = sort %1\n"
          "%4: f32[4], %5: i64[4] = sort %1 { flag }\n"
          "output %2 %3 %4 %5\n",
          2);
}

Test(pass_merge, other_operands_attributes_and_types_differ)
{
    keeps("graph\n"
          "%1: f32[4] = input 0\n"
          "%2: f32[4] = input 1\n"
          "%3: f32[4] = sub %1 %2\n"
          "%4: f32[4] = sub %2 %1\n"
          "%5: f32[4] = leaky_relu %1 { f0=0.5 }\n"
          "%6: f32[4] = leaky_relu %1 { f0=0.25 }\n"
          "%7: i64[4] = cast %1 { dtype=i64 }\n"
          "%8: i32[4] = cast %1 { dtype=i32 }\n"
          "%9: f32[4] = grad mul 0 _ %1 _ %2\n"
          "%10: f32[4] = grad mul 1 _ %1 _ %2\n"
          "%11: int = num 1\n"
          "%12: bool = num 1\n"
          "output %3 %4 %5 %6 %7 %8 %9 %10 %11 %12\n");
}

Test(pass_merge, draws_merge_only_with_the_same_counter)
{
    gives("graph\n"
          "%1: int = input 0\n"
          "%2: int = input 1\n"
          "%3: int = num 1\n"
          "%4: int = num 1\n"
          "%5: int = host add_i %2 %3\n"
          "%6: int = host add_i %2 %4\n"
          "%7: f32[8] = rand { dtype=f32 dims=[8] i0=%1 i1=%2 } random\n"
          "%8: f32[8] = rand { dtype=f32 dims=[8] i0=%1 i1=%5 } random\n"
          "%9: f32[8] = rand { dtype=f32 dims=[8] i0=%1 i1=%6 } random\n"
          "output %7 %8 %9\n",
          "graph\n"
          "%1: int = input 0\n"
          "%2: int = input 1\n"
          "%3: int = num 1\n"
          "%4: int = host add_i %2 %3\n"
          "%5: f32[8] = rand { dtype=f32 dims=[8] i0=%1 i1=%2 } random\n"
          "%6: f32[8] = rand { dtype=f32 dims=[8] i0=%1 i1=%4 } random\n"
          "output %5 %6 %6\n",
          3);
}

Test(pass_merge, an_outer_node_serves_inside_but_not_the_other_way)
{
    gives("graph\n"
          "%1: bool = input 0\n"
          "%2: f32[4] = input 1\n"
          "%3: f32[4] = exp %2\n"
          "region() {\n"
          "  %4: f32[4] = exp %2\n"
          "  %5: f32[4] = sin %2\n"
          "  %6: f32[4] = add %4 %5\n"
          "} %6\n"
          "region() {\n"
          "  %7: f32[4] = sin %2\n"
          "} %7\n"
          "%8: f32[4] = if %1\n"
          "%9: f32[4] = sin %2\n"
          "%10: f32[4] = sin %2\n"
          "output %3 %8 %9 %10\n",
          "graph\n"
          "%1: bool = input 0\n"
          "%2: f32[4] = input 1\n"
          "%3: f32[4] = exp %2\n"
          "region() {\n"
          "  %4: f32[4] = sin %2\n"
          "  %5: f32[4] = add %3 %4\n"
          "} %5\n"
          "region() {\n"
          "  %6: f32[4] = sin %2\n"
          "} %6\n"
          "%7: f32[4] = if %1\n"
          "%8: f32[4] = sin %2\n"
          "output %3 %7 %8 %8\n",
          2);
}

Test(pass_merge, effects_and_regions_stay)
{
    keeps("graph\n"
          "report 1 = 1 0 5\n"
          "report 2 = 1 0 5\n"
          "%1: bool = input 0\n"
          "%2: f32[4] = input 1\n"
          "hostcall 1 %2 effect\n"
          "hostcall 2 %2 effect\n"
          "region() {\n"
          "} %2\n"
          "region() {\n"
          "} %2\n"
          "%3: f32[4] = if %1\n"
          "region() {\n"
          "} %2\n"
          "region() {\n"
          "} %2\n"
          "%4: f32[4] = if %1\n"
          "output %3 %4\n");
}

Test(pass_merge, guards_follow)
{
    gives("graph\n"
          "%1: int = input 0\n"
          "%2: bool = host lt_i %1 %1\n"
          "%3: bool = host lt_i %1 %1\n"
          "guard %2 = 0\n"
          "guard %3 = 0\n",
          "graph\n"
          "%1: int = input 0\n"
          "%2: bool = host lt_i %1 %1\n"
          "guard %2 = 0\n"
          "guard %2 = 0\n",
          1);
}

Test(pass_merge, every_failed_allocation_is_reported)
{
    pass_survives(TL_PASS_merge,
                  "graph\n"
                  "%1: int = input 0\n"
                  "%2: int = num 1\n"
                  "%3: int = num 1\n"
                  "%4: f32[8] = rand { dtype=f32 dims=[8] i1=%3 } random\n"
                  "output %4\n");
}
