/* What is dropped, and what stays although nothing reads it. */
#include "tests/unit/compiler/pass_text.h"

TestSuite(pass_dead, .init = diag_setup, .fini = diag_teardown);

static void gives(const char *before, const char *after, size_t dropped)
{
    pass_gives(TL_PASS_dead, before, after, dropped);
}

Test(pass_dead, nodes_sizes_and_constants_that_nothing_needs)
{
    gives("graph\n"
          "s0 = size 0 0\n"
          "s1 = size 1 0\n"
          "const 1 = 00000000\n"
          "const 2 = 0000803f\n"
          "%1: f32[s0] = input 0\n"
          "%2: f32[s1] = input 1\n"
          "%3: f32[] = const 1\n"
          "%4: f32[] = const 2\n"
          "%5: f32[s0] = exp %1\n"
          "%6: f32[s0] = add %5 %3\n"
          "%7: f32[s1] = mul %2 %4\n"
          "output %7\n",
          "graph\n"
          "s0 = size 0 0\n"
          "s1 = size 1 0\n"
          "const 1 = 0000803f\n"
          "%1: f32[s0] = input 0\n"
          "%2: f32[s1] = input 1\n"
          "%3: f32[] = const 1\n"
          "%4: f32[s1] = mul %2 %3\n"
          "output %4\n",
          3);
}

Test(pass_dead, atoms_that_no_size_has)
{
    gives("graph\n"
          "s0 = int %1\n"
          "s1 = int %2\n"
          "%1: int = input 0\n"
          "%2: int = input 1\n"
          "%3: f32[s0] = full { dtype=f32 dims=[s0] }\n"
          "%4: f32[2*s1] = full { dtype=f32 dims=[2*s1] }\n"
          "output %4\n",
          "graph\n"
          "s0 = int %2\n"
          "%1: int = input 0\n"
          "%2: int = input 1\n"
          "%3: f32[2*s0] = full { dtype=f32 dims=[2*s0] }\n"
          "output %3\n",
          1);
}

Test(pass_dead, effects_guards_and_bound_attributes_keep_their_operands)
{
    const char *text = "graph\n"
                       "report 1 = 1 0 5\n"
                       "%1: int = input 0\n"
                       "%2: f32[4] = input 1\n"
                       "%3: float = host to_float %1\n"
                       "%4: f32[4] = leaky_relu %2 { f0=%3 }\n"
                       "hostcall 1 %4 effect\n"
                       "%5: bool = host eq_i %1 %1\n"
                       "guard %5 = 1\n";

    gives(text, text, 0);
}

Test(pass_dead, what_may_fail_runs_as_in_the_interpreter)
{
    const char *text = "graph\n"
                       "%1: int = input 0\n"
                       "%2: i64[4] = input 1\n"
                       "%3: int = host floordiv_i %1 %1\n"
                       "%4: i64[4] = floordiv %2 %2\n"
                       "%5: i64[4] = gather %2 %2\n"
                       "output %1\n";

    gives(text, text, 0);
    gives("graph\n"
          "%1: int = input 0\n"
          "%2: f32[4] = input 1\n"
          "%3: bool = host lt_i %1 %1\n"
          "%4: f32[4] = floordiv %2 %2\n"
          "output %1\n",
          "graph\n"
          "%1: int = input 0\n"
          "%2: f32[4] = input 1\n"
          "output %1\n",
          2);
}

Test(pass_dead, regions_stay_for_their_effects)
{
    gives("graph\n"
          "report 1 = 0 0 5\n"
          "%1: bool = input 0\n"
          "%2: f32[4] = input 1\n"
          "region() {\n"
          "  %3: f32[4] = exp %2\n"
          "  hostcall 1 effect\n"
          "} %3\n"
          "region() {\n"
          "} %2\n"
          "%4: f32[4] = if %1\n"
          "region() {\n"
          "  %5: f32[4] = exp %2\n"
          "} %5\n"
          "region() {\n"
          "} %2\n"
          "%6: f32[4] = if %1\n",
          "graph\n"
          "report 1 = 0 0 5\n"
          "%1: bool = input 0\n"
          "%2: f32[4] = input 1\n"
          "region() {\n"
          "  hostcall 1 effect\n"
          "}\n"
          "region() {\n"
          "}\n"
          "if %1\n",
          3);
}

Test(pass_dead, results_of_branches_that_nothing_reads)
{
    gives("graph\n"
          "%1: bool = input 0\n"
          "%2: f32[4] = input 1\n"
          "region() {\n"
          "  %3: f32[4] = exp %2\n"
          "  %4: f32[4] = log %2\n"
          "} %3 %4\n"
          "region() {\n"
          "  %5: f32[4] = sin %2\n"
          "} %5 %2\n"
          "%6: f32[4], %7: f32[4] = if %1\n"
          "output %7\n",
          "graph\n"
          "%1: bool = input 0\n"
          "%2: f32[4] = input 1\n"
          "region() {\n"
          "  %3: f32[4] = log %2\n"
          "} %3\n"
          "region() {\n"
          "} %2\n"
          "%4: f32[4] = if %1\n"
          "output %4\n",
          2);
}

Test(pass_dead, what_a_loop_carries_for_nothing)
{
    gives("graph\n"
          "s0 = int %14\n"
          "%1: int = input 0\n"
          "%2: f32[4] = input 1\n"
          "%3: f32[4] = exp %2\n"
          "region(%4: f32[4], %5: f32[4], %6: f32[4]) {\n"
          "  %7: bool = num 1\n"
          "} %7\n"
          "region(%8: int, %9: f32[4], %10: f32[4], %11: f32[4]) {\n"
          "  %12: f32[4] = sin %9\n"
          "  %13: f32[4] = add %10 %11\n"
          "} %12 %13 %11 %12 %13\n"
          "%14: int, %15: f32[4], %16: f32[4], %17: f32[4], %18: f32[s0, 4], "
          "%19: f32[s0, 4] = loop 3 %1 %3 %2 %2\n"
          "output %16\n",
          "graph\n"
          "%1: int = input 0\n"
          "%2: f32[4] = input 1\n"
          "region(%3: f32[4], %4: f32[4]) {\n"
          "  %5: bool = num 1\n"
          "} %5\n"
          "region(%6: int, %7: f32[4], %8: f32[4]) {\n"
          "  %9: f32[4] = add %7 %8\n"
          "} %9 %8\n"
          "%10: int, %11: f32[4], %12: f32[4] = loop 2 %1 %2 %2\n"
          "output %11\n",
          2);
}

Test(pass_dead, a_stack_keeps_what_it_stacks)
{
    const char *text =
        "graph\n"
        "s0 = int %5\n"
        "%1: int = input 0\n"
        "%2: f32[4] = input 1\n"
        "region(%3: int) {\n"
        "  %4: f32[4] = sin %2\n"
        "} %4\n"
        "%5: int, %6: f32[s0, 4] = loop 0 %1\n"
        "output %6\n";

    gives(text, text, 0);
}

Test(pass_dead, every_failed_allocation_leaves_the_graph_alone)
{
    const char *text = "graph\n"
                       "s0 = size 0 0\n"
                       "%1: f32[s0] = input 0\n"
                       "%2: f32[s0] = exp %1\n"
                       "%3: f32[2*s0] = cat %1 %1\n"
                       "output %3\n";
    tl_graph *g = graph_of(text);
    tl_status st = TL_ERR_MEMORY;
    size_t n = 0;

    for (uint64_t k = 1; st == TL_ERR_MEMORY; k++) {
        expect_graph(g, text);
        tl_mem_fail_at(k, false);
        st = tl_graph_compact(g, &n, &diag);
        tl_mem_fail_at(0, false);
    }
    cr_expect_eq(st, TL_OK);
    cr_expect_eq(n, 1);
    cr_expect_eq(g->nodes.len, 3);
    tl_graph_free(g);
    pass_survives(TL_PASS_dead, text);
}
