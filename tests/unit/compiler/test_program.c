/* test_program.c - programs run by hand: walk and plans against tl_apply. */
#include "tests/unit/compiler/program_test.h"

TestSuite(program, .init = rt_setup, .fini = rt_teardown);

Test(program, a_chain_of_elementwise_rows)
{
    world w;
    tl_plan_stats stats;
    int x, y, z;

    world_init(&w);
    x = input(&w, vec(TL_f32, 100, NULL));
    y = apply1(&w, TL_OP_exp, apply1(&w, TL_OP_neg, x, NULL), NULL);
    z = apply2(&w, TL_OP_add, y, apply2(&w, TL_OP_mul, x, x));
    output(&w, z);
    expect_all(&w, &stats);
    cr_expect_eq(stats.kernels, 1);
    cr_expect_eq(stats.fused, 4);
    cr_expect_eq(stats.arena, 0);
    world_fini(&w);
}

Test(program, inputs_and_views_of_them_as_outputs)
{
    world w;
    tl_attrs at;
    int x;

    world_init(&w);
    x = input(&w, make(TL_f32, 2, DIMS(2, 3), NULL));
    tl_attrs_init(&at);
    at.ndims = 2;
    at.dims[0] = tl_dim_num(1);
    at.dims[1] = tl_dim_num(0);
    output(&w, x);
    output(&w, apply1(&w, TL_OP_permute, x, &at));
    expect_all(&w, NULL);
    world_fini(&w);
}

Test(program, a_donated_input_gives_its_header_to_the_output)
{
    world w;
    tl_program *p;
    result r;
    int x, y;

    world_init(&w);
    x = input(&w, vec(TL_f32, 100, NULL));
    y = input(&w, vec(TL_f32, 100, NULL));
    w.donate[0] = 1;
    output(&w, apply2(&w, TL_OP_sub, x, apply2(&w, TL_OP_mul, y, y)));
    expect_all(&w, NULL);
    for (int fuse = 0; fuse < 2; fuse++) {
        p = program(&w, false, !fuse);
        result_open(&r, &w);
        OK(tl_program_run(p, &rt, &r.run));
        cr_expect_eq(r.out[0], r.in[0]);
        expect_outputs(&r, &w, "donated");
        result_close(&r);

        result_open(&r, &w); /* somebody else has it: it keeps its value */
        tl_tensor_ref(r.in[0]);
        OK(tl_program_run(p, &rt, &r.run));
        cr_expect_neq(r.out[0], r.in[0]);
        cr_expect(same_bits(r.in[0], w.in[0]));
        expect_outputs(&r, &w, "shared");
        tl_tensor_unref(r.in[0]);
        result_close(&r);
        tl_program_free(p);
    }
    world_fini(&w);
}

Test(program, an_update_writes_into_its_parameter)
{
    world w;
    tl_plan_stats stats;
    tl_attrs at;
    int p, g;

    world_init(&w);
    p = input(&w, vec(TL_f32, 1000, NULL));
    g = input(&w, vec(TL_f32, 1000, NULL));
    w.donate[0] = 1;
    tl_attrs_init(&at);
    at.f[0] = 0.1;
    g = apply2(&w, TL_OP_mul, g, g);
    output(&w, apply(&w, TL_OP_sgd_update, (int[]){p, g}, 2, &at));
    expect_all(&w, &stats);
    cr_expect_eq(stats.donated, 1);
    cr_expect_eq(stats.arena, 4032); /* the gradient */
    world_fini(&w);
}

Test(program, host_scalars_become_tensors_and_attributes)
{
    world w;
    tl_gval s, v;
    tl_gscalar x = {.f = 2.5};
    tl_tensor *t;
    int a;

    world_init(&w);
    a = input(&w, vec(TL_f32, 10, NULL));
    s = host_input(&w, TL_GC_FLOAT, x);
    OK(tl_gbuild_scalar(&w.b, s, TL_f32, &v));
    OK(tl_tensor_scalar_f(&t, rt.pool, TL_f32, 2.5, &diag));
    output(&w, apply2(&w, TL_OP_mul, a, keep(&w, v, t)));
    expect_all(&w, NULL);
    world_fini(&w);
}
