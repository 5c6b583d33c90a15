/* Hash and equality: what counts and what does not. */
#include "tests/unit/compiler/graph_text.h"

TestSuite(graph_hash, .init = diag_setup, .fini = diag_teardown);

static const char base[] = "graph\n"
                           "s0 = size 0 0\n"
                           "const 1 = 0000803f\n"
                           "report 1 = 1 0 7\n"
                           "%1: f32[s0] = input 0\n"
                           "%2: float = input 1\n"
                           "%3: f32[] = const 1\n"
                           "%4: f32[s0] = leaky_relu %1 { f0=%2 }\n"
                           "%5: f32[s0] = mul %4 %3\n"
                           "%6: bool = num 1\n"
                           "region() {\n"
                           "} %5\n"
                           "region() {\n"
                           "} %4\n"
                           "%7: f32[s0] = if %6\n"
                           "hostcall 1 %7 effect\n"
                           "guard %2 = 0.5\n"
                           "output %7\n";

/* The base with `from` replaced by `to` is another graph. */
static void differs(const char *from, const char *to)
{
    char text[2 * sizeof(base)];
    const char *at = strstr(base, from);
    tl_graph *a = graph_of(base), *b;

    cr_assert_not_null(at);
    (void)snprintf(text, sizeof(text), "%.*s%s%s", (int)(at - base), base, to,
                   at + strlen(from));
    b = graph_of(text);
    cr_expect_not(tl_graph_equal(a, b), "%s", to);
    cr_expect_neq(tl_graph_hash(a), tl_graph_hash(b), "%s", to);
    tl_graph_free(a);
    tl_graph_free(b);
}

Test(graph_hash, every_part_counts)
{
    differs("mul %4 %3", "mul %3 %4");
    differs("mul %4 %3", "add %4 %3");
    differs("0000803f", "00008040");
    differs("f0=%2", "f0=0.5");
    differs("f0=%2", "f1=%2");
    differs("num 1", "num 0");
    differs("0.5", "0.25");
    differs("1 0 7", "1 0 8");
    differs("output %7", "output %5");
    differs("} %4", "} %5");
    differs("%6: bool = num 1", "%6: bool = host le_f %2 %2");
}

Test(graph_hash, spans_and_unused_items_do_not_count)
{
    tl_graph *a = graph_of(base), *b = graph_of(base);
    uint32_t unused;

    for (size_t i = 1; i < b->nodes.len; i++) {
        b->nodes.items[i].span = (tl_span){1, 2, 3};
        b->nodes.items[i].flags |= TL_GF_LOCAL;
    }
    cr_assert_eq(tl_graph_size_num(b, 99, &unused, &diag), TL_OK);
    cr_assert_eq(tl_graph_const(b, "abc", 3, &unused, &diag), TL_OK);
    cr_expect(tl_graph_equal(a, b));
    cr_expect_eq(tl_graph_hash(a), tl_graph_hash(b));
    tl_graph_free(a);
    tl_graph_free(b);
}

Test(graph_hash, without_memory_nothing_is_equal)
{
    tl_graph *a = graph_of(base);

    tl_mem_fail_at(1, true);
    cr_expect_not(tl_graph_equal(a, a));
    cr_expect_eq(tl_graph_hash(a), 0);
    tl_mem_fail_at(0, false);
    cr_expect(tl_graph_equal(a, a));
    tl_graph_free(a);
}
