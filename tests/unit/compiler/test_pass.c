/* All passes together, by their rows. */
#include "tests/unit/compiler/pass_text.h"

TestSuite(pass, .init = diag_setup, .fini = diag_teardown);

/* Each pass has something to do. */
static const char text[] = "graph\n"
                           "%1: f32[4] = input 0\n"
                           "%2: bool = num 1\n"
                           "%3: f32[4] = exp %1\n"
                           "%4: f32[4] = alias %3\n"
                           "%5: f32[4] = neg %4\n"
                           "%6: f32[4] = neg %5\n"
                           "region() {\n"
                           "  %7: f32[4] = exp %1\n"
                           "} %7\n"
                           "region() {\n"
                           "} %6\n"
                           "%8: f32[4] = if %2\n"
                           "output %6 %8\n";

Test(pass, all_passes_in_their_order)
{
    tl_graph *g = graph_of(text);
    tl_pass_counts counts = {.changes = {1}};

    cr_assert_eq(tl_passes_run(g, &counts, &diag), TL_OK);
    expect_graph(g, "graph\n"
                    "%1: f32[4] = input 0\n"
                    "%2: f32[4] = exp %1\n"
                    "output %2 %2\n");
    cr_expect_eq(counts.changes[TL_PASS_alias], 2); // added to
    cr_expect_eq(counts.changes[TL_PASS_canon], 1);
    cr_expect_eq(counts.changes[TL_PASS_fold], 2);
    cr_expect_eq(counts.changes[TL_PASS_merge], 1);
    cr_expect_gt(counts.changes[TL_PASS_dead], 0);
    tl_graph_free(g);
}

Test(pass, a_second_run_changes_nothing)
{
    tl_graph *g = graph_of(text);
    tl_pass_counts counts = {{0}};

    cr_assert_eq(tl_passes_run(g, NULL, &diag), TL_OK);
    cr_assert_eq(tl_passes_run(g, &counts, &diag), TL_OK);
    for (int p = 0; p < TL_PASS_COUNT; p++) {
        cr_expect_eq(counts.changes[p], 0, "%s", tl_pass_name((tl_pass)p));
    }
    tl_graph_free(g);
}

Test(pass, names_are_those_of_the_rows)
{
    cr_expect_str_eq(tl_pass_name(TL_PASS_alias), "alias");
    cr_expect_str_eq(tl_pass_name(TL_PASS_dead), "dead");
}

Test(pass, every_failed_allocation_is_reported)
{
    tl_status st = TL_ERR_MEMORY;

    for (uint64_t n = 1; st == TL_ERR_MEMORY; n++) {
        tl_graph *g = graph_of(text);

        tl_diag_clear(&diag);
        tl_mem_fail_at(n, false);
        st = tl_passes_run(g, NULL, &diag);
        tl_mem_fail_at(0, false);
        cr_expect_eq(diag.nerrors, st != TL_OK);
        tl_graph_free(g);
    }
    cr_expect_eq(st, TL_OK);
}

Test(pass, a_long_chain_of_views_is_one)
{
    enum { LENGTH = 3000 };
    tl_buf b;
    tl_graph *g;
    tl_pass_counts counts = {{0}};

    tl_buf_init(&b);
    tl_buf_puts(&b, "graph\n%1: f32[2, 3, 4] = input 0\n");
    for (int i = 2; i < LENGTH; i++) {
        static const char *const shapes[] = {"2, 3, 4", "3, 4, 2", "4, 2, 3"};

        tl_buf_printf(&b, "%%%d: f32[%s] = permute %%%d { dims=[1, 2, 0] }\n",
                      i, shapes[(i - 1) % 3], i - 1);
    }
    tl_buf_printf(&b, "output %%%d\n", LENGTH - 1);
    g = graph_of(tl_buf_str(&b));
    cr_assert_eq(tl_passes_run(g, &counts, &diag), TL_OK);
    cr_expect_eq(g->nodes.len, 3);
    tl_graph_free(g);
    tl_buf_fini(&b);
}
