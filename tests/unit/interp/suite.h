/* suite.h - for the tests of a file that share an evaluator, `r`: a suite with
 * `.init = setup, .fini = teardown` makes it for each test and finds what the
 * test has left behind. */
#ifndef TL_TESTS_INTERP_SUITE_H
#define TL_TESTS_INTERP_SUITE_H

#include <criterion/criterion.h>

#include "tests/unit/interp/run.h"

static run r;

static void setup(void)
{
    cr_assert_eq(run_init(&r), TL_OK);
}

static void teardown(void)
{
    run_fini(&r);
    run_release(&r);
    cr_assert_eq(tl_obj_live(), 0);
    cr_assert_eq(tl_tensor_live(), 0);
    cr_assert_eq(tl_mem_live_blocks(), 0);
}

#endif
