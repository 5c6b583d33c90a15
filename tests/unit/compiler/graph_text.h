/* graph_text.h - graphs of tests as text. */
#ifndef TL_TESTS_GRAPH_TEXT_H
#define TL_TESTS_GRAPH_TEXT_H

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "compiler/graph.h"
#include "runtime/base/mem.h"

static tl_diag diag;

static inline void diag_setup(void)
{
    tl_diag_init(&diag, NULL);
}

static inline void diag_teardown(void)
{
    tl_diag_fini(&diag);
    cr_expect_eq(tl_mem_live_blocks(), 0);
}

/* All that was reported. */
static inline void diag_show(void)
{
    tl_buf text;

    tl_buf_init(&text);
    tl_diag_print(&diag, TL_DIAG_SHORT, false, &text);
    fputs(tl_buf_str(&text), stderr);
    tl_buf_fini(&text);
}

static inline tl_graph *graph_of(const char *text)
{
    tl_graph *g = NULL;

    if (tl_graph_parse(&g, text, strlen(text), &diag) != TL_OK) {
        diag_show();
    }
    cr_assert_not_null(g, "%s", text);
    return g;
}

static inline void expect_graph(const tl_graph *g, const char *want)
{
    tl_buf text;

    tl_buf_init(&text);
    tl_graph_print(g, &text);
    cr_assert_not(text.failed);
    if (tl_graph_check(g, &diag) != TL_OK) {
        diag_show();
        cr_expect(false, "%s", tl_buf_str(&text));
    }
    cr_expect_str_eq(tl_buf_str(&text), want, "is:\n%s\nwanted:\n%s",
                     tl_buf_str(&text), want);
    tl_buf_fini(&text);
}

#endif
