/* test_check.c - a broken invariant stops the process. */
#include <criterion/criterion.h>

#include <signal.h>

#include "runtime/base/check.h"

Test(check, true_condition_goes_on)
{
    int evaluated = 0;

    TL_CHECK(++evaluated == 1);
    cr_assert_eq(evaluated, 1);
}

Test(check, false_condition_aborts, .signal = SIGABRT)
{
    TL_CHECK(1 + 1 == 3);
}
