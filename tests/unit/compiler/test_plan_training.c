/* test_plan_training.c - a step of training by a plan: bits, memory, what is
 * donated, and what a call costs. */
#include "tests/unit/compiler/training.h"

TestSuite(plan_training, .init = rt_setup, .fini = rt_teardown);

static trainer m;

Test(plan_training, a_step_of_a_transformer)
{
    tl_plan_stats stats;

    transformer_step(&m, 2, 16, 32, 40);
    expect_all(&m.w, &stats);
    cr_expect_eq(stats.donated, (size_t)m.n * 3);
    cr_expect_leq(stats.arena, stats.lower_bound * 21 / 20);
    cr_expect_gt(stats.fused, 8);
    world_fini(&m.w);
}
