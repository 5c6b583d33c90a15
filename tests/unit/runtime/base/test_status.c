/* test_status.c - exit codes are a documented promise. */
#include <criterion/criterion.h>

#include <string.h>

#include "runtime/base/status.h"

Test(status, ok_exits_with_zero)
{
    cr_assert_eq(tl_status_exit_code(TL_OK), 0);
    cr_assert_str_eq(tl_status_text(TL_OK), "success");
}

Test(status, documented_exit_codes_hold)
{
    cr_expect_eq(tl_status_exit_code(TL_ERR_PROGRAM), 1);
    cr_expect_eq(tl_status_exit_code(TL_ERR_USAGE), 2);
    cr_expect_eq(tl_status_exit_code(TL_ERR_REJECTED), 3);
    cr_expect_eq(tl_status_exit_code(TL_ERR_MEMORY), 4);
    cr_expect_eq(tl_status_exit_code(TL_ERR_NONFINITE), 5);
    cr_expect_eq(tl_status_exit_code(TL_ERR_DEVICE), 6);
    cr_expect_eq(tl_status_exit_code(TL_ERR_FILE), 7);
    cr_expect_eq(tl_status_exit_code(TL_ERR_STOPPED), 130);
}

Test(status, every_status_has_a_text)
{
    for (int st = 0; st < TL_STATUS_COUNT; st++) {
        cr_expect_gt(strlen(tl_status_text(st)), 3, "status %d", st);
    }
}

Test(status, out_of_range_is_internal)
{
    cr_expect_eq(tl_status_exit_code(-1), 70);
    cr_expect_eq(tl_status_exit_code(TL_STATUS_COUNT), 70);
    cr_expect_str_eq(tl_status_text(12345), "unknown status");
}
