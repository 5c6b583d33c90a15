/* test_plan.c - order, memory and donation of plans. */
#include "tests/unit/compiler/training.h"

TestSuite(plan, .init = rt_setup, .fini = rt_teardown);

/* Nothing that could be fused or done in place. */
static int scan(world *w, int x)
{
    tl_attrs at;

    tl_attrs_init(&at);
    return apply1(w, TL_OP_cumsum, x, &at);
}

Test(plan, a_chain_needs_two_buffers)
{
    world w;
    tl_plan_stats stats;
    int x;

    world_init(&w);
    x = input(&w, vec(TL_f32, 1000, NULL));
    for (int i = 0; i < 10; i++) {
        x = scan(&w, x);
    }
    output(&w, x);
    expect_all(&w, &stats);
    cr_expect_eq(stats.arena, 2 * 4032);
    cr_expect_eq(stats.lower_bound, 2 * 4032);
    world_fini(&w);
}

/* Sums of eight values: in program order all live at one time, the scheduler
 * adds each when it is there. */
Test(plan, steps_that_free_memory_run_early)
{
    world w;
    tl_plan_stats stats;
    int x, parts[8], sum;

    world_init(&w);
    x = input(&w, vec(TL_f32, 1000, NULL));
    for (int i = 0; i < 8; i++) {
        parts[i] = scan(&w, apply1(&w, TL_OP_exp, x, NULL));
    }
    sum = parts[0];
    for (int i = 1; i < 8; i++) {
        sum = scan(&w, apply2(&w, TL_OP_add, sum, parts[i]));
    }
    output(&w, sum);
    expect_all(&w, &stats);
    cr_expect_leq(stats.arena, 4 * 4032);
    world_fini(&w);
}

Test(plan, an_operand_that_lives_on_is_not_overwritten)
{
    world w;
    int x, y;

    world_init(&w);
    x = scan(&w, input(&w, vec(TL_f32, 100, NULL)));
    y = scan(&w, apply1(&w, TL_OP_exp, x, NULL));
    output(&w, apply2(&w, TL_OP_sub, x, y));
    expect_all(&w, NULL);
    world_fini(&w);
}

/* x and its transpose lie in one place: neither may be written over. */
Test(plan, a_view_of_an_operand_keeps_it)
{
    world w;
    int x;

    world_init(&w);
    x = scan(&w, input(&w, make(TL_f32, 2, DIMS(9, 9), NULL)));
    output(&w, apply2(&w, TL_OP_sub, x, turned(&w, x)));
    expect_all(&w, NULL);
    world_fini(&w);
}

Test(plan, a_donor_is_read_before_it_is_written)
{
    world w;
    tl_plan_stats stats;
    int p, g;

    world_init(&w);
    p = input(&w, vec(TL_f32, 100, NULL));
    w.donate[0] = 1;
    g = scan(&w, p);
    output(&w, apply2(&w, TL_OP_sub, p, g)); /* before p is read again */
    output(&w, scan(&w, apply2(&w, TL_OP_mul, p, g)));
    expect_all(&w, &stats);
    cr_expect_eq(stats.donated, 1);
    world_fini(&w);
}

Test(plan, an_input_that_is_an_output_is_no_donor)
{
    world w;
    tl_plan_stats stats;
    int p;

    world_init(&w);
    p = input(&w, vec(TL_f32, 100, NULL));
    w.donate[0] = 1;
    output(&w, apply1(&w, TL_OP_neg, p, NULL));
    output(&w, p);
    expect_all(&w, &stats);
    cr_expect_eq(stats.donated, 0);
    world_fini(&w);
}

/* Parts of one result as two outputs: views of one storage. */
Test(plan, outputs_may_be_views_of_one_result)
{
    world w;
    int x, y;

    world_init(&w);
    x = input(&w, make(TL_f32, 2, DIMS(3, 4), NULL));
    y = scan(&w, x);
    output(&w, turned(&w, y));
    output(&w, y);
    output(&w, y);
    expect_all(&w, NULL);
    world_fini(&w);
}

Test(plan, a_run_after_the_second_allocates_nothing)
{
    static trainer m;
    tl_program *p;
    result r;
    uint64_t before;

    transformer_step(&m, 1, 8, 16, 20);
    p = program(&m.w, false, false);
    result_open(&r, &m.w);
    for (int i = 0; i < 4; i++) {
        before = tl_mem_attempts();
        OK(tl_program_run(p, &rt, &r.run));
        before = tl_mem_attempts() - before;
        for (int k = 0; k < m.w.nout; k++) {
            tl_tensor_unref(r.out[k]);
            r.out[k] = NULL;
        }
    }
    /* the loss, and scratch of products of transposed matrices */
    cr_expect_leq(before, 40, "%d allocations", (int)before);
    result_close(&r);
    tl_program_free(p);
    world_fini(&m.w);
}
