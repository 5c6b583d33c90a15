/* test_fuse.c - which steps of a plan become one. */
#include "tests/unit/compiler/program_test.h"

TestSuite(fuse, .init = rt_setup, .fini = rt_teardown);

static tl_program *parse(const char *text, bool walk)
{
    tl_program_options options = {.walk = walk, .no_passes = true};
    tl_program *p;
    tl_graph *g;

    OK(tl_graph_parse(&g, text, strlen(text), &diag));
    OK(tl_program_new(&p, g, &options, &diag));
    return p;
}

static tl_status ignore(void *arg, uint32_t key, uint32_t n,
                        tl_tensor *const *tensors, const tl_gscalar *scalars)
{
    (void)arg;
    (void)key;
    (void)n;
    (void)tensors;
    (void)scalars;
    return TL_OK;
}

/* Run a text on one or two f32[40, 8]; the plan has the walk's bits.  Its
 * figures. */
static tl_plan_stats figures(const char *text)
{
    tl_tensor *in[2], *out[2][4] = {{NULL}};
    tl_gscalar scalars[4];
    uint8_t donate[2] = {0};
    tl_plan_stats stats;

    for (int i = 0; i < 2; i++) {
        in[i] = make(TL_f32, 2, DIMS(40, 8), NULL);
        for (int64_t k = 0; k < in[i]->numel; k++) {
            tl_tensor_set_f(in[i], k, (double)((k * 37 + i) % 101) / 50 - 1);
        }
    }
    for (int way = 0; way < 2; way++) {
        tl_program *p = parse(text, way == 0);
        tl_run run = {.tensors = in,
                      .scalars = scalars,
                      .donate = donate,
                      .effect = ignore,
                      .out_tensors = out[way],
                      .out_scalars = scalars};

        OK(tl_program_run(p, &rt, &run));
        OK(tl_program_stats(p, &rt, &run, &stats));
        tl_program_free(p);
    }
    for (int i = 0; i < 4; i++) {
        cr_expect(!out[0][i] || same_bits(out[0][i], out[1][i]),
                  "output %d of\n%s", i, text);
        tl_tensor_unref(out[0][i]);
        tl_tensor_unref(out[1][i]);
    }
    tl_tensor_unref(in[0]);
    tl_tensor_unref(in[1]);
    return stats;
}

#define INPUTS                                                               \
    "%1: f32[40, 8] = input 0\n"                                             \
    "%2: f32[40, 8] = input 1\n"

static void expect(const char *text, size_t kernels, size_t fused)
{
    tl_plan_stats s = figures(text);

    cr_expect_eq(s.kernels, kernels, "%zu kernels of\n%s", s.kernels, text);
    cr_expect_eq(s.fused, fused, "%zu fused of\n%s", s.fused, text);
}

Test(fuse, a_graph_of_elementwise_rows_is_one_step)
{
    expect("graph\n" INPUTS "%3: f32[40, 8] = exp %1\n"
           "%4: f32[40, 8] = mul %3 %2\n"
           "%5: f32[40, 8] = add %3 %4\n"
           "%6: bool[40, 8] = lt %5 %1\n"
           "%7: f32[40, 8] = where %6 %5 %3\n"
           "%8: f64[40, 8] = cast %7 { dtype=f64 }\n"
           "%9: f32[40, 8] = grad exp 0 _ %3 %7\n"
           "output %8 %9 %4\n",
           1, 7);
}

Test(fuse, operands_may_broadcast_and_be_views)
{
    expect("graph\n" INPUTS
           "%3: f32[1, 8] = slice %1 { dims=[3, 1, 1, 0, 8, 1] }\n"
           "%4: f32[40, 8] = mul %2 %3\n"
           "%5: f32[8, 40] = permute %4 { dims=[1, 0] }\n"
           "%6: f32[8, 40] = exp %5\n"
           "%7: f32[8, 40] = add %6 %5\n"
           "output %7\n",
           2, 2);
}

Test(fuse, a_group_does_not_leave_and_come_back)
{
    /* %4 and %6 would be one step, but %5 is between */
    expect("graph\n" INPUTS "%3: f32[40, 8] = exp %1\n"
           "%4: f32[40, 8] = add %3 %2\n"
           "%5: f32[40, 8] = cumsum %4 { axis=0 }\n"
           "%6: f32[40, 8] = mul %4 %5\n"
           "%7: f32[40, 8] = neg %6\n"
           "output %7\n",
           3, 4);
}

Test(fuse, nothing_crosses_an_effect)
{
    expect("graph\n"
           "report 1 = 1 0 1\n" INPUTS "%3: f32[40, 8] = exp %1\n"
           "%4: f32[40, 8] = add %3 %2\n"
           "hostcall 1 %4 effect\n"
           "%5: f32[40, 8] = mul %4 %3\n"
           "%6: f32[40, 8] = neg %5\n"
           "output %6\n",
           2, 4);
}

Test(fuse, what_data_may_refuse_stays_alone)
{
    expect("graph\n" INPUTS "%3: f32[40, 8] = exp %1\n"
           "%4: f32[40, 8] = add %3 %3\n"
           "%5: i64[40, 8] = cast %4 { dtype=i64 }\n"
           "%6: i64[40, 8] = mul %5 %5\n"
           "%7: i64[40, 8] = neg %6\n"
           "output %7\n",
           3, 4);
}

Test(fuse, rows_join_what_feeds_and_follows_them)
{
    expect("graph\n" INPUTS "%3: f32[40, 8] = mul %1 %2\n"
           "%4: f32[40, 8] = softmax %3 { axis=1 }\n"
           "%5: f32[40, 1] = sum %4 { keep axes=2 }\n"
           "%6: f32[40, 8] = div %4 %5\n"
           "%7: f32[40, 8] = log %6\n"
           "output %7\n",
           1, 5);
    expect("graph\n" INPUTS "%3: f32[40, 8] = add %1 %2\n"
           "%4: f32[40] = mean %3 { axes=2 }\n"
           "%5: f32[40, 1] = reshape %4 { dims=[40, 1] }\n"
           "%6: f32[40, 8] = sub %3 %5\n"
           "%7: f32[40, 8] = square %6\n"
           "%8: f32[40] = mean %7 { axes=2 }\n"
           "output %6 %8\n",
           1, 5);
    expect("graph\n" INPUTS "%3: f32[40, 8] = add %1 %2\n"
           "%4: f32[40, 8], %5: f32[40], %6: f32[40] = "
           "layer_norm %3 { i0=1 f0=0.001 }\n"
           "%7: f32[40, 8] = relu %4\n"
           "%8: f32[40, 8] = layer_norm_grad %7 %3 %5 %6 { i0=1 f0=0.001 }\n"
           "output %7 %8\n",
           1, 4);
}

Test(fuse, a_softmax_of_other_axes_stays_alone)
{
    expect("graph\n" INPUTS "%3: f32[40, 8] = mul %1 %2\n"
           "%4: f32[40, 8] = softmax %3 { axis=0 }\n"
           "%5: f32[40, 8] = neg %4\n"
           "output %5\n",
           3, 0);
}

Test(fuse, a_reduction_of_columns_ends_a_group)
{
    expect("graph\n" INPUTS "%3: f32[40, 8] = mul %1 %2\n"
           "%4: f32[40, 8] = exp %3\n"
           "%5: f32[8] = sum %4 { axes=1 }\n"
           "%6: f32[8] = neg %5\n"
           "output %6 %4\n",
           2, 3);
    expect("graph\n" INPUTS "%3: f32[40, 8] = mul %1 %2\n"
           "%4: f32[] = sum %3 { flag axes=3 }\n"
           "%5: f32[40, 8] = div %3 %4\n"
           "output %5\n",
           2, 2);
}

/* A loss and what its gradient needs: one pass. */
Test(fuse, others_join_a_group_that_a_reduction_ends)
{
    expect("graph\n" INPUTS "%3: f32[40, 8] = exp %1\n"
           "%4: f32[40, 8] = mul %3 %2\n"
           "%5: f32[8] = sum %4 { axes=1 }\n"
           "%6: f32[40, 8] = neg %3\n"
           "%7: f32[40, 8] = mul %6 %2\n"
           "output %5 %7\n",
           1, 5);
}

Test(fuse, nothing_joins_that_reads_what_a_reduction_gives_or_reads)
{
    expect("graph\n" INPUTS "%3: f32[40, 8] = exp %1\n"
           "%4: f32[8] = sum %3 { axes=1 }\n"
           "%5: f32[40, 8] = sub %2 %4\n"
           "output %5\n",
           2, 2);
    expect("graph\n" INPUTS "%3: f32[40, 8] = mul %1 %2\n"
           "%4: f32[40, 8] = exp %3\n"
           "%5: f32[8] = sum %4 { axes=1 }\n"
           "%6: f32[40, 8] = neg %3\n"
           "%7: f32[40, 8] = sub %4 %6\n"
           "output %5 %7\n",
           2, 4);
}

Test(fuse, one_reduction_ends_a_group)
{
    expect("graph\n" INPUTS "%3: f32[40, 8] = exp %1\n"
           "%4: f32[40, 8] = mul %3 %2\n"
           "%5: f32[8] = sum %4 { axes=1 }\n"
           "%6: f32[40, 8] = neg %3\n"
           "%7: f32[8] = sum %6 { axes=1 }\n"
           "output %5 %7\n",
           2, 4);
}

/* A chain of 100 is cut into groups that the tile machine takes. */
Test(fuse, long_chains_are_cut)
{
    world w;
    tl_plan_stats stats;
    int x;

    world_init(&w);
    x = input(&w, vec(TL_f32, 100, NULL));
    for (int i = 0; i < 100; i++) {
        x = apply1(&w, i % 2 ? TL_OP_sin : TL_OP_neg, x, NULL);
    }
    output(&w, x);
    expect_all(&w, &stats);
    cr_expect_eq(stats.fused, 100);
    cr_expect_leq(stats.kernels, 5);
    world_fini(&w);
}
