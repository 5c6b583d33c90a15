/* pass_text.h - passes on graphs as text. */
#ifndef TL_TESTS_PASS_TEXT_H
#define TL_TESTS_PASS_TEXT_H

#include "compiler/pass.h"
#include "compiler/rewrite.h"
#include "tests/unit/compiler/graph_text.h"

/* The pass turns `before`, without its dead nodes, into `after`; it says how
 * much it did. */
static inline void pass_gives(tl_pass pass, const char *before,
                              const char *after, size_t changes)
{
    tl_graph *g = graph_of(before);
    size_t n = 77;

    cr_assert_eq(tl_pass_run(g, pass, &n, &diag), TL_OK);
    cr_expect_eq(n, changes, "%zu changes of\n%s", n, before);
    if (tl_graph_check(g, &diag) != TL_OK) {
        diag_show();
        cr_expect(false, "the pass breaks\n%s", before);
    }
    cr_assert_eq(tl_graph_compact(g, NULL, &diag), TL_OK);
    expect_graph(g, after);
    tl_graph_free(g);
}

/* The pass does nothing to the graph. */
static inline void pass_keeps(tl_pass pass, const char *text)
{
    pass_gives(pass, text, text, 0);
}

/* Under every failing allocation the pass reports, and the graph can be
 * freed. */
static inline void pass_survives(tl_pass pass, const char *text)
{
    tl_status st = TL_ERR_MEMORY;

    for (uint64_t n = 1; st == TL_ERR_MEMORY; n++) {
        tl_graph *g = graph_of(text);
        size_t changes;

        tl_diag_clear(&diag);
        tl_mem_fail_at(n, false);
        st = tl_pass_run(g, pass, &changes, &diag);
        tl_mem_fail_at(0, false);
        cr_expect_eq(diag.nerrors, st != TL_OK);
        tl_graph_free(g);
    }
    cr_expect_eq(st, TL_OK);
    tl_diag_clear(&diag);
}

#endif
