/* Graphs as text: what is written reads back, all else is refused. */
#include "tests/unit/compiler/graph_text.h"

TestSuite(graph_text, .init = diag_setup, .fini = diag_teardown);

/* Something of everything. */
static const char whole[] =
    "graph\n"
    "s0 = size 0 0\n"
    "s1 = int %2\n"
    "s2 = int %15\n"
    "const 1 = 0000803f\n"
    "const 2 = 0102030405060708\n"
    "report 1 = 1 1 77\n"
    "report 2 = 0 0 4294967295\n"
    "%1: f32[s0, 4] = input 0\n"
    "%2: int = input 1\n"
    "%3: float = input 2\n"
    "%4: f32[1] = const 1\n"
    "%5: u8[2, 2, 2] = const 2\n"
    "%6: int = num -3\n"
    "%7: float = num 0.10000000000000001\n"
    "%8: float = num 0xfff8000000000000\n"
    "%9: bool = num 1\n"
    "%10: int = size 2*s0 - s1 + (s0//2)*(s1 + 1)\n"
    "%11: bool = host lt_i %6 %10\n"
    "%12: f32[] = scalar %3\n"
    "region() {\n"
    "  %13: f32[s0, 4] = mul %1 %12\n"
    "} %13\n"
    "region() {\n"
    "} %1\n"
    "%14: f32[s0, 4] = if %11\n"
    "region(%15: int, %16: f32[s0, 4]) {\n"
    "  %17: f32[s0, 4] = leaky_relu %16 { f0=%3 }\n"
    "  %18: f32[s0, 4] = dropout %17 { i1=5 i2=-1 f0=0.5 i0=%15 } random\n"
    "  hostcall 2 effect\n"
    "  %19: f32[1, 4] = slice %18 { dims=[s2, 1, 1, 0, 4, 1] }\n"
    "} %18 %19\n"
    "%20: int, %21: f32[s0, 4], %22: f32[s1, 1, 4] = loop 1 %2 %14\n"
    "%23: f32[s0] = sum %21 { axes=2 f3=-0 }\n"
    "%24: f32[s0, 1] = sum %21 { keep flag axes=2 dims=[3] }\n"
    "%25: f32[s0, 4] = grad exp 0 _ %21 %14\n"
    "%26: f32[s0, 4] = alias %25\n"
    "%27: bool[] = all %26 { axes=3 }\n"
    "assert 1 %27 %23 %26 effect\n"
    "%28: f64[s0, 4] = cast %26 { dtype=f64 }\n"
    "guard %11 = 1\n"
    "guard %3 = 0.5\n"
    "output %28 %20\n";

Test(graph_text, everything_reads_back)
{
    tl_graph *g = graph_of(whole);

    expect_graph(g, whole);
    tl_graph_free(g);
}

Test(graph_text, what_reads_back_is_equal_and_has_the_same_hash)
{
    tl_graph *a = graph_of(whole), *b = graph_of(whole);

    cr_expect(tl_graph_equal(a, b));
    cr_expect_eq(tl_graph_hash(a), tl_graph_hash(b));
    tl_graph_free(a);
    tl_graph_free(b);
}

/* The text is refused, and the diagnostic names this line. */
static void refuse(const char *text, unsigned line)
{
    tl_graph *g = NULL;
    char want[40];
    bool named = false;

    tl_diag_clear(&diag);
    cr_expect_neq(tl_graph_parse(&g, text, strlen(text), &diag), TL_OK, "%s",
                  text);
    cr_assert_null(g);
    cr_assert_not_null(diag.last);
    cr_expect_eq(diag.last->code, TL_E0699);
    (void)snprintf(want, sizeof(want), "graph text, line %u", line);
    named = strstr(diag.last->message, want) != NULL;
    for (size_t k = 0; k < diag.last->nnotes; k++) {
        named = named || strstr(diag.last->notes[k], want) != NULL;
    }
    cr_expect(named, "line %u: %s", line, text);
}

Test(graph_text, other_lines_are_refused)
{
    refuse("", 0);
    refuse("grap\n", 1);
    refuse("graph x\n", 1);
    refuse("graph\n%1: int = nothing\n", 2);
    refuse("graph\n%2: int = num 1\n", 2);
    refuse("graph\n%1: i32 = num 1\n", 2);
    refuse("graph\n%1: f32[ = num 1\n", 2);
    refuse("graph\n%1: f32[s0] = input 0\n", 2);
    refuse("graph\n%1: int = num 1 2\n", 2);
    refuse("graph\n%1: int = num x\n", 2);
    refuse("graph\n%1: bool = num 2\n", 2);
    refuse("graph\n%1: int = input 1\n", 2);
    refuse("graph\n%1: int = host add_i %1 %1\n", 2);
    refuse("graph\n%1: int = host add_x %1 %1\n", 2);
    refuse("graph\n%1: float = input 0\n%2: int = host neg_i %1\n", 3);
    refuse("graph\ns1 = size 0 0\n", 2);
    refuse("graph\ns0 = int %1\n", 2);
    refuse("graph\ns0 = size 0 0\n%1: f32[] = input 0\n", 3);
    refuse("graph\nconst 1 = 0g\n", 2);
    refuse("graph\nconst 2 = 00\n", 2);
    refuse("graph\nconst 1 = 00\n%1: f32[] = const 1\n", 3);
    refuse("graph\nguard %1 = 0\n", 2);
    refuse("graph\noutput %1\n", 2);
    refuse("graph\noutput _\n", 2);
    refuse("graph\nhostcall 1 effect\n", 2);
    refuse("graph\nreport 1 = 0 0 0\nhostcall 1\n", 3);
    refuse("graph\n} %1\n", 2);
    refuse("graph\nregion() {\n", 2);
    refuse("graph\nregion() {\n}\n", 3);
    refuse("graph\n%1: f32[2] = input 0\n%2: f32[2] = exp %1 { axis=x }\n", 3);
    refuse("graph\n%1: f32[2] = input 0\n%2: f32[2] = exp %1 { i4=1 }\n", 3);
}

Test(graph_text, values_of_a_region_end_with_it)
{
    refuse("graph\n"
           "%1: bool = input 0\n"
           "region() {\n"
           "  %2: int = num 1\n"
           "} %2\n"
           "region() {\n"
           "} %2\n"
           "%3: int = if %1\n",
           8);
    refuse("graph\n"
           "%1: bool = input 0\n"
           "region() {\n"
           "  %2: int = num 1\n"
           "} %2\n"
           "region() {\n"
           "  %3: int = num 1\n"
           "} %3\n"
           "%4: int = if %1\n"
           "%5: int = host neg_i %3\n",
           10);
}

/* Read a damaged text; what is accepted must be a graph that reads back. */
static void survive(const char *text, size_t len)
{
    tl_graph *g, *h;
    tl_buf once, twice;

    tl_diag_clear(&diag);
    if (tl_graph_parse(&g, text, len, &diag) != TL_OK) {
        cr_assert_gt(diag.nerrors, 0);
        return;
    }
    tl_buf_init(&once);
    tl_buf_init(&twice);
    tl_graph_print(g, &once);
    h = graph_of(tl_buf_str(&once));
    tl_graph_print(h, &twice);
    cr_assert_str_eq(tl_buf_str(&once), tl_buf_str(&twice));
    cr_assert(tl_graph_equal(g, h), "%s", tl_buf_str(&once));
    tl_buf_fini(&once);
    tl_buf_fini(&twice);
    tl_graph_free(g);
    tl_graph_free(h);
}

Test(graph_text, damaged_text_never_crashes)
{
    static const char alphabet[] = "%s0123456789_=:,[]{}() -*/\nxif";
    char text[sizeof(whole) + 8];
    uint64_t seed = 20;

    for (int run = 0; run < 6000; run++) {
        size_t len = sizeof(whole) - 1;

        memcpy(text, whole, len);
        for (int k = 0; k <= run % 3; k++) {
            seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
            size_t at = (size_t)(seed >> 33) % len;
            char c = alphabet[(seed >> 20) % (sizeof(alphabet) - 1)];

            switch (seed >> 62) {
            case 0:
                text[at] = c;
                break;
            case 1:
                memmove(text + at, text + at + 1, len - at - 1);
                len--;
                break;
            case 2:
                memmove(text + at + 1, text + at, len - at);
                text[at] = c;
                len++;
                break;
            default: // half of a line twice
                text[at] = text[(at + 40) % len];
                break;
            }
        }
        survive(text, len);
    }
}

Test(graph_text, every_failed_allocation_is_reported)
{
    tl_status st = TL_ERR_MEMORY;

    for (uint64_t n = 1; st == TL_ERR_MEMORY; n++) {
        tl_graph *g = NULL;
        int64_t live;

        tl_diag_clear(&diag);
        live = tl_mem_live_blocks();
        tl_mem_fail_at(n, false);
        st = tl_graph_parse(&g, whole, sizeof(whole) - 1, &diag);
        tl_mem_fail_at(0, false);
        cr_expect((st == TL_OK) == (g != NULL));
        tl_graph_free(g);
        tl_diag_clear(&diag);
        cr_expect_eq(tl_mem_live_blocks(), live);
    }
    cr_expect_eq(st, TL_OK);
}
