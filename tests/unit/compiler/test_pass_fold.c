/* What is known when the graph is made. */
#include "tests/unit/compiler/pass_text.h"

TestSuite(pass_fold, .init = diag_setup, .fini = diag_teardown);

static void gives(const char *before, const char *after, size_t changes)
{
    pass_gives(TL_PASS_fold, before, after, changes);
}

static void keeps(const char *text)
{
    pass_keeps(TL_PASS_fold, text);
}

Test(pass_fold, arithmetic_of_constants)
{
    gives("graph\n"
          "%1: int = num 7\n"
          "%2: int = size 3\n"
          "%3: int = host mod_i %1 %2\n"
          "%4: float = host to_float %3\n"
          "%5: bool = host lt_i %3 %2\n"
          "output %3 %4 %5\n",
          "graph\n"
          "%1: int = num 1\n"
          "%2: float = num 1\n"
          "%3: bool = num 1\n"
          "output %1 %2 %3\n",
          4);
}

Test(pass_fold, arithmetic_that_fails_is_left_to_fail)
{
    keeps("graph\n"
          "%1: int = num 7\n"
          "%2: int = num 0\n"
          "%3: int = host floordiv_i %1 %2\n"
          "output %3\n");
}

#define HOST                                                                 \
    "graph\n"                                                                \
    "%1: int = input 0\n"                                                    \
    "%2: bool = input 1\n"                                                   \
    "%3: float = input 2\n"

/* A node of these that is %1, %2 or %3. */
static void is_operand(const char *lines, const char *value)
{
    char before[400], after[200];

    (void)snprintf(before, sizeof(before), "%s%s", HOST, lines);
    (void)snprintf(after, sizeof(after), "%soutput %s\n", HOST, value);
    gives(before, after, 1);
}

Test(pass_fold, neutral_operands)
{
    is_operand("%4: int = num 0\n%5: int = host add_i %1 %4\noutput %5\n",
               "%1");
    is_operand("%4: int = num 0\n%5: int = host add_i %4 %1\noutput %5\n",
               "%1");
    is_operand("%4: int = num 0\n%5: int = host sub_i %1 %4\noutput %5\n",
               "%1");
    is_operand("%4: int = num 1\n%5: int = host mul_i %4 %1\noutput %5\n",
               "%1");
    is_operand("%4: int = num 1\n%5: int = host floordiv_i %1 %4\n"
               "output %5\n",
               "%1");
    is_operand("%4: float = num 1\n%5: float = host mul_f %3 %4\n"
               "output %5\n",
               "%3");
    is_operand("%4: bool = num 1\n%5: bool = host and %2 %4\noutput %5\n",
               "%2");
    is_operand("%4: bool = num 0\n%5: bool = host or %4 %2\noutput %5\n",
               "%2");
    is_operand("%4: int = host max_i %1 %1\noutput %4\n", "%1");
    is_operand("%4: int = host to_int %1\noutput %4\n", "%1");
    is_operand("%4: bool = host not %2\n%5: bool = host not %4\n"
               "output %5\n",
               "%2");
    is_operand("%4: bool = num 0\n%5: int = num 5\n"
               "%6: int = host choose %4 %5 %1\noutput %6\n",
               "%1");
}

Test(pass_fold, operands_that_are_not_neutral)
{
    keeps(HOST "%4: int = num 0\n"
               "%5: float = num 0\n"
               "%6: int = host sub_i %4 %1\n"
               "%7: float = host add_f %3 %5\n"
               "%8: int = host neg_i %1\n"
               "%9: int = host neg_i %8\n"
               "%10: bool = host eq_f %3 %3\n"
               "output %6 %7 %9 %10\n");
}

Test(pass_fold, results_that_no_operand_decides)
{
    gives(HOST "%4: bool = num 0\n"
               "%5: bool = host and %4 %2\n"
               "%6: bool = host eq_i %1 %1\n"
               "%7: bool = host lt_i %1 %1\n"
               "output %5 %6 %7\n",
          HOST "%4: bool = num 0\n"
               "%5: bool = num 1\n"
               "%6: bool = num 0\n"
               "output %4 %5 %6\n",
          3);
}

Test(pass_fold, a_size_that_is_a_host_int)
{
    gives("graph\n"
          "s0 = int %1\n"
          "%1: int = input 0\n"
          "%2: int = size s0\n"
          "%3: int = size 2*s0\n"
          "output %2 %3\n",
          "graph\n"
          "s0 = int %1\n"
          "%1: int = input 0\n"
          "%2: int = size 2*s0\n"
          "output %1 %2\n",
          1);
}

Test(pass_fold, bound_attributes_that_are_known)
{
    gives("graph\n"
          "%1: f32[4] = input 0\n"
          "%2: float = num 0.5\n"
          "%3: int = input 1\n"
          "%4: f32[4] = dropout %1 { i0=%3 f0=%2 } random\n"
          "output %4\n",
          "graph\n"
          "%1: f32[4] = input 0\n"
          "%2: int = input 1\n"
          "%3: f32[4] = dropout %1 { f0=0.5 i0=%2 } random\n"
          "output %3\n",
          1);
}

Test(pass_fold, guards_that_always_hold_go)
{
    gives("graph\n"
          "%1: int = input 0\n"
          "%2: bool = host eq_i %1 %1\n"
          "%3: bool = host lt_i %1 %1\n"
          "guard %2 = 1\n"
          "guard %3 = 1\n",
          "graph\n"
          "%1: int = input 0\n"
          "%2: bool = num 0\n"
          "guard %2 = 1\n",
          3);
}

Test(pass_fold, casts_of_exact_fulls)
{
    gives("graph\n"
          "%1: f32[2] = full { dtype=f32 f0=0.5 dims=[2] }\n"
          "%2: f64[2] = cast %1 { dtype=f64 }\n"
          "output %2\n",
          "graph\n"
          "%1: f64[2] = full { dtype=f64 f0=0.5 dims=[2] }\n"
          "output %1\n",
          1);
    gives("graph\n"
          "%1: i64[2] = full { dtype=i64 i0=3 dims=[2] }\n"
          "%2: bf16[2] = cast %1 { dtype=bf16 }\n"
          "output %2\n",
          "graph\n"
          "%1: bf16[2] = full { dtype=bf16 f0=3 dims=[2] }\n"
          "output %1\n",
          1);
    keeps("graph\n"
          "%1: f32[2] = full { dtype=f32 f0=0.10000000000000001 dims=[2] }\n"
          "%2: f64[2] = cast %1 { dtype=f64 }\n"
          "%3: i64[2] = full { dtype=i64 i0=300 dims=[2] }\n"
          "%4: u8[2] = cast %3 { dtype=u8 }\n"
          "output %2 %4\n");
}

Test(pass_fold, elements_of_constants)
{
    gives("graph\n"
          "const 1 = 0000003f\n"
          "%1: f32[] = const 1\n"
          "%2: float = item %1\n"
          "%3: i64[1] = full { dtype=i64 i0=3 dims=[1] }\n"
          "%4: int = item %3\n"
          "output %2 %4\n",
          "graph\n"
          "%1: float = num 0.5\n"
          "%2: int = num 3\n"
          "output %1 %2\n",
          2);
}

Test(pass_fold, a_branch_on_a_constant_is_the_arm_that_runs)
{
    static const char head[] = "graph\n"
                               "report 1 = 0 0 5\n"
                               "%1: f32[4] = input 0\n"
                               "%2: bool = input 1\n";
    char text[800];

    for (int yes = 0; yes < 2; yes++) {
        (void)snprintf(text, sizeof(text),
                       "%s%%3: bool = num %d\n"
                       "region() {\n"
                       "  %%4: f32[4] = exp %%1\n"
                       "  region() {\n"
                       "    %%5: f32[4] = sin %%4\n"
                       "  } %%5\n"
                       "  region() {\n"
                       "  } %%4\n"
                       "  %%6: f32[4] = if %%2\n"
                       "} %%6 %%1\n"
                       "region() {\n"
                       "  %%7: f32[4] = log %%1\n"
                       "  hostcall 1 effect\n"
                       "} %%1 %%7\n"
                       "%%8: f32[4], %%9: f32[4] = if %%3\n"
                       "output %%8 %%9\n",
                       head, yes);
        gives(text,
              yes ? "graph\n"
                    "%1: f32[4] = input 0\n"
                    "%2: bool = input 1\n"
                    "%3: f32[4] = exp %1\n"
                    "region() {\n"
                    "  %4: f32[4] = sin %3\n"
                    "} %4\n"
                    "region() {\n"
                    "} %3\n"
                    "%5: f32[4] = if %2\n"
                    "output %5 %1\n"
                  : "graph\n"
                    "report 1 = 0 0 5\n"
                    "%1: f32[4] = input 0\n"
                    "%2: bool = input 1\n"
                    "%3: f32[4] = log %1\n"
                    "hostcall 1 effect\n"
                    "output %1 %3\n",
              3);
    }
}

Test(pass_fold, a_loop_without_turns_is_what_it_began_with)
{
    gives("graph\n"
          "%1: f32[4] = input 0\n"
          "%2: int = num 0\n"
          "region(%3: int, %4: f32[4]) {\n"
          "  %5: f32[4] = exp %4\n"
          "} %5\n"
          "%6: int, %7: f32[4] = loop 1 %2 %1\n"
          "output %6 %7\n",
          "graph\n"
          "%1: f32[4] = input 0\n"
          "%2: int = num 0\n"
          "output %2 %1\n",
          2);
    keeps("graph\n"
          "%1: f32[4] = input 0\n"
          "%2: int = num 1\n"
          "region(%3: int, %4: f32[4]) {\n"
          "  %5: f32[4] = exp %4\n"
          "} %5\n"
          "%6: int, %7: f32[4] = loop 1 %2 %1\n"
          "output %7\n");
}

Test(pass_fold, every_failed_allocation_is_reported)
{
    pass_survives(TL_PASS_fold,
                  "graph\n"
                  "%1: f32[4] = input 0\n"
                  "%2: bool = num 1\n"
                  "%3: float = num 1\n"
                  "region() {\n"
                  "  %4: f32[4] = leaky_relu %1 { f0=%3 }\n"
                  "} %4\n"
                  "region() {\n"
                  "} %1\n"
                  "%5: f32[4] = if %2\n"
                  "output %5\n");
}
