/* tl_graph_check finds what is broken: one change to a sound graph each. */
#include "tests/unit/compiler/graph_text.h"

TestSuite(graph_check, .init = diag_setup, .fini = diag_teardown);

/* The graph is refused with a message that has this in it. */
static void broken(tl_graph *g, const char *part)
{
    tl_diag_clear(&diag);
    cr_expect_neq(tl_graph_check(g, &diag), TL_OK, "%s", part);
    cr_assert_not_null(diag.last);
    cr_expect_eq(diag.last->code, TL_E0699);
    cr_expect_eq(diag.nerrors, 1);
    cr_expect_not_null(strstr(diag.last->message, part), "%s, not: %s", part,
                       diag.last->message);
    tl_graph_free(g);
}

static const char sound[] = "graph\n"
                            "s0 = size 0 0\n"
                            "const 1 = 0000803f0000803f\n"
                            "%1: f32[s0, 4] = input 0\n"
                            "%2: bool = input 1\n"
                            "%3: f32[4, 2] = input 2\n"
                            "%4: f32[2] = const 1\n"
                            "region() {\n"
                            "  %5: f32[s0, 4] = exp %1\n"
                            "} %5\n"
                            "region() {\n"
                            "  %6: f32[s0, 4] = neg %1\n"
                            "} %6\n"
                            "%7: f32[s0, 4] = if %2\n"
                            "%8: f32[s0, 2] = matmul %7 %3\n"
                            "%9: f32[s0, 2] = add %8 %4\n"
                            "%10: int = size s0\n"
                            "output %9\n";

static tl_gnode *maker(tl_graph *g, tl_gval v)
{
    return &g->nodes.items[g->values.items[v].node];
}

Test(graph_check, sound_graph_is_sound)
{
    tl_graph *g = graph_of(sound);

    cr_expect_eq(tl_graph_check(g, &diag), TL_OK);
    tl_graph_free(g);
}

Test(graph_check, numbers_out_of_range)
{
    tl_graph *g = graph_of(sound);

    maker(g, 9)->in = (uint32_t)g->operands.len;
    broken(g, "out of range");
    g = graph_of(sound);
    maker(g, 9)->op = TL_OP_COUNT;
    broken(g, "out of range");
    g = graph_of(sound);
    maker(g, 9)->kind = TL_G_KIND_COUNT;
    broken(g, "out of range");
    g = graph_of(sound);
    maker(g, 9)->attrs = 1000;
    broken(g, "attributes");
    g = graph_of(sound);
    g->values.items[9].shape = (uint32_t)g->sizes.len - 1;
    broken(g, "sizes");
    g = graph_of(sound);
    g->dims.items[1].len = 1;
    broken(g, "size 1");
    g = graph_of(sound);
    g->outputs.items[0] = (tl_gval)g->values.len;
    broken(g, "not visible");
    g = graph_of(sound);
    g->inputs.items[0] = 9;
    broken(g, "input 0");
    g = graph_of(sound);
    g->atoms.items[0].axis = 2;
    broken(g, "atom s0");
}

Test(graph_check, results_that_are_anothers)
{
    tl_graph *g = graph_of(sound);

    maker(g, 9)->out = 8;
    broken(g, "not its result");
    g = graph_of(sound);
    g->values.items[9].result = 1;
    broken(g, "not its result");
}

Test(graph_check, uses_before_and_outside)
{
    tl_graph *g = graph_of(sound);

    g->operands.items[maker(g, 8)->in] = 9;
    broken(g, "value 9 is not visible");
    g = graph_of(sound);
    g->operands.items[maker(g, 8)->in] = 5;
    broken(g, "value 5 is not visible");
    g = graph_of(sound);
    g->operands.items[maker(g, 6)->in] = 5;
    broken(g, "value 5 is not visible");
    g = graph_of(sound);
    g->outputs.items[0] = 6;
    broken(g, "value 6 is not visible");
}

Test(graph_check, regions_that_do_not_nest)
{
    tl_graph *g = graph_of(sound);

    maker(g, 6)->owner = maker(g, 5)->owner;
    broken(g, "belongs to");
    g = graph_of(sound);
    g->regions.items[1].last++;
    broken(g, "not before it");
    g = graph_of(sound);
    g->regions.items[1].node = 1;
    broken(g, "another's");
    g = graph_of(sound);
    maker(g, 8)->owner = 1;
    broken(g, "belongs to");
}

Test(graph_check, types_by_the_rules_of_operations)
{
    tl_graph *g = graph_of(sound);

    g->values.items[9].dtype = TL_f64;
    broken(g, "is not f32[s0, 2]");
    g = graph_of(sound);
    maker(g, 9)->op = TL_OP_and;
    broken(g, "does not compute in f32");
    g = graph_of(sound);
    maker(g, 9)->op = TL_OP_exp;
    broken(g, "2 operands");
    g = graph_of(sound);
    g->values.items[8].shape = g->values.items[3].shape; // f32[4, 2]
    g->operands.items[maker(g, 8)->in] = 3;
    broken(g, "shape rule refuses");
    g = graph_of(sound);
    g->values.items[4].dtype = TL_f64;
    broken(g, "constant 1 has other bytes");
    g = graph_of(sound);
    g->values.items[7].rank = 1;
    broken(g, "do not agree");
}

static void refused(const char *lines, const char *part)
{
    char text[1200];
    tl_graph *g = NULL;

    tl_diag_clear(&diag);
    (void)snprintf(text, sizeof(text), "graph\n%s", lines);
    cr_expect_neq(tl_graph_parse(&g, text, strlen(text), &diag), TL_OK, "%s",
                  text);
    cr_assert_not_null(diag.last);
    cr_expect_not_null(strstr(diag.last->message, part), "%s, not: %s", part,
                       diag.last->message);
}

Test(graph_check, operands_of_mixed_dtypes)
{
    refused("%1: f32[2] = input 0\n%2: f64[2] = input 1\n"
            "%3: f64[2] = add %1 %2\n",
            "not cast");
    refused("%1: i64[2] = input 0\n%2: f32[2] = exp %1\n",
            "does not compute in i64");
}

Test(graph_check, gradients_of_elementwise_rows)
{
    const char *in = "%1: f32[2] = input 0\n";
    char text[200];

    (void)snprintf(text, sizeof(text), "%s%s", in,
                   "%2: f32[2] = grad mul 2 %1 %1 _ %1\n");
    refused(text, "no such gradient");
    (void)snprintf(text, sizeof(text), "%s%s", in,
                   "%2: f32[2] = grad matmul 0 %1 %1 _ %1\n");
    refused(text, "no such gradient");
    (void)snprintf(text, sizeof(text), "%s%s", in,
                   "%2: f32[2] = grad mul 0 _ %1 _ _\n");
    refused(text, "no upstream");
    (void)snprintf(text, sizeof(text), "%s%s", in,
                   "%2: f64[2] = grad mul 0 _ %1 _ %1\n");
    refused(text, "not cast");
}

Test(graph_check, host_scalars_by_class)
{
    const char *in = "%1: int = input 0\n%2: float = input 1\n"
                     "%3: bool = input 2\n%4: f32[] = input 3\n";
    static const char *const lines[][2] = {
        {"%5: int = host add_i %1 %2\n", "class"},
        {"%5: float = host add_i %1 %1\n", "class"},
        {"%5: int = host lt_i %1 %1\n", "class"},
        {"%5: bool = host not %1\n", "class"},
        {"%5: int = host choose %3 %1 %2\n", "class"},
        {"%5: f32[] = host choose %3 %4 %4\n", "choice of tensors"},
        {"%5: float = host to_float %4\n", "no host scalar"},
        {"%5: int = host to_float %1\n", "class"},
        {"%5: int = scalar %1\n", "expected"},
        {"%5: f32[2] = scalar %1\n", "expected"},
        {"%5: float = item %1\n", "expected"},
        {"%5: float = size 3\n", "class"},
        {"%5: f32[] = alias %1\n", "do not agree"},
        {"%5: f32[] = exp %4 { f0=%4 }\n", "bound to a tensor"},
        {"guard %4 = 1\n", "guard on a tensor"},
    };

    for (size_t k = 0; k < sizeof(lines) / sizeof(lines[0]); k++) {
        char text[300];

        (void)snprintf(text, sizeof(text), "%s%s", in, lines[k][0]);
        refused(text, lines[k][1]);
    }
}

Test(graph_check, branches_and_loops)
{
    refused("%1: bool = input 0\nregion() {\n} %1\n%2: bool = if %1\n",
            "1 regions");
    refused("%1: int = input 0\nregion() {\n} %1\nregion() {\n} %1\n"
            "%2: int = if %1\n",
            "class");
    refused("%1: bool = input 0\nregion() {\n} %1\nregion() {\n}\n"
            "%2: bool = if %1\n",
            "0 results");
    refused("%1: int = input 0\n%2: f32[2] = input 1\n"
            "region(%3: int, %4: f32[2]) {\n} %4\n"
            "%5: int, %6: f32[3] = loop 1 %1 %2\n",
            "do not agree");
    refused("%1: int = input 0\n%2: f32[2] = input 1\n"
            "region(%3: int, %4: f32[2]) {\n} %4 %4\n"
            "%5: int, %6: f32[2], %7: f32[2] = loop 1 %1 %2\n",
            "stack");
    refused("%1: int = input 0\n%2: f32[2] = input 1\n"
            "region(%3: f32[2]) {\n} %3\n"
            "region(%4: int, %5: f32[2]) {\n} %5\n"
            "%6: int, %7: f32[2] = loop 1 _ %2\n",
            "class");
    refused("%1: int = input 0\n%2: f32[2] = input 1\n"
            "region(%3: int, %4: f32[2]) {\n} %4\n"
            "%5: int, %6: f32[2] = loop 0 %1\n",
            "parameters or results");
}

Test(graph_check, effects)
{
    refused("report 1 = 1 0 0\n%1: f32[] = input 0\nassert 1 %1 %1 effect\n",
            "no bool");
    refused("report 1 = 1 0 0\n%1: bool = input 0\nassert 1 %1 effect\n",
            "report 1");
    refused("%1: f32[] = input 0\n%2: f32[] = exp %1 effect\n",
            "effect flag");
}

Test(graph_check, guards_are_facts_of_sizes)
{
    const char *text = "graph\n"
                       "s0 = size 0 0\n"
                       "s1 = size 1 0\n"
                       "%1: f32[s0] = input 0\n"
                       "%2: f32[s1] = input 1\n"
                       "%3: f32[s0] = add %1 %2\n"
                       "%4: int = size s0\n"
                       "%5: int = size s1\n"
                       "%6: bool = host eq_i %4 %5\n"
                       "guard %6 = 1\n"
                       "output %3\n";

    tl_graph_free(graph_of(text));
}
