/* Aliases and what is dead. */
#include "tests/unit/compiler/pass_text.h"

TestSuite(pass_alias, .init = diag_setup, .fini = diag_teardown);

Test(pass_alias, uses_go_to_what_it_stands_for)
{
    pass_gives(TL_PASS_alias,
               "graph\n"
               "s0 = size 0 0\n"
               "%1: f32[s0] = input 0\n"
               "%2: f32[s0] = alias %1\n"
               "%3: f32[s0] = alias %2\n"
               "%4: bool = num 1\n"
               "region() {\n"
               "  %5: f32[s0] = alias %3\n"
               "} %5\n"
               "region() {\n"
               "} %3\n"
               "%6: f32[s0] = if %4\n"
               "output %6 %2\n",
               "graph\n"
               "s0 = size 0 0\n"
               "%1: f32[s0] = input 0\n"
               "%2: bool = num 1\n"
               "region() {\n"
               "} %1\n"
               "region() {\n"
               "} %1\n"
               "%3: f32[s0] = if %2\n"
               "output %3 %1\n",
               3);
}
