/* test_program_failures.c - runs of programs that fail: what is reported, and
 * that nothing leaks. */
#include "tests/unit/compiler/program_text.h"

TestSuite(program_failures, .init = rt_setup, .fini = rt_teardown);

Test(program_failures, an_error_of_host_arithmetic_comes_in_its_turn)
{
    static const char text[] = "graph\n"
                               "s0 = int %4\n"
                               "report 1 = 0 0 5\n"
                               "%1: f32[4] = input 0\n"
                               "%2: int = input 1\n"
                               "%3: int = num 8\n"
                               "hostcall 1 effect\n"
                               "%4: int = host floordiv_i %3 %2\n"
                               "%5: f32[s0] = slice %1 { dims=[0, s0, 1] }\n"
                               "output %5\n";
    call c;

    EACH_WAY(p, text)
    {
        call_init(&c);
        c.in[0] = vec(TL_f32, 4, NULL);
        c.scalar[1].i = 0;
        cr_expect_neq(tl_program_run(p, &rt, &c.run), TL_OK);
        cr_expect_eq(diag.last->code, TL_E0401);
        cr_expect_str_eq(c.log, "5:;");
        tl_diag_clear(&diag);
        call_fini(&c);
    }
}

Test(program_failures, a_kernel_that_refuses_ends_the_run_in_its_place)
{
    static const char text[] = "graph\n"
                               "%1: i64[2] = input 0\n"
                               "%2: i64[2] = input 1\n"
                               "%3: i64[2] = floordiv %1 %2\n"
                               "%4: i64[2] = add %1 %3\n"
                               "output %4\n";
    call c;

    EACH_WAY(p, text)
    {
        call_init(&c);
        c.in[0] = vec(TL_i64, 2, VALUES(7, 8));
        c.in[1] = vec(TL_i64, 2, VALUES(2, 0));
        c.donate[0] = 1;
        cr_expect_neq(tl_program_run(p, &rt, &c.run), TL_OK);
        cr_expect_eq(diag.last->code, TL_E0401);
        expect_values(c.in[0], VALUES(7, 8));
        cr_expect_null(c.out[0]);
        tl_diag_clear(&diag);
        call_fini(&c);
    }
}

static tl_program *inner;

static tl_status run_again(void *arg, uint32_t key, uint32_t n,
                           tl_tensor *const *tensors,
                           const tl_gscalar *scalars)
{
    call *c = arg;

    (void)key;
    (void)n;
    (void)tensors;
    (void)scalars;
    return tl_program_run(inner, &rt, &c->run);
}

Test(program_failures, a_program_does_not_run_inside_itself)
{
    call c;

    EACH_WAY(p, checked)
    {
        call_init(&c);
        c.in[0] = vec(TL_f32, 2, VALUES(1, 8));
        c.in[1] = vec(TL_f32, 2, VALUES(0.5, 0.25));
        c.run.effect = run_again;
        inner = p;
        cr_expect_neq(tl_program_run(p, &rt, &c.run), TL_OK);
        cr_expect_eq(diag.last->code, TL_E0699);
        tl_diag_clear(&diag);
        c.run.effect = note;
        run(p, &c);
        call_fini(&c);
    }
}

Test(program_failures, an_interrupt_ends_a_run)
{
    volatile sig_atomic_t flag = 1;
    call c;

    rt.interrupted = &flag;
    EACH_WAY(p, counted)
    {
        call_init(&c);
        c.in[0] = vec(TL_f32, 2, VALUES(1, 2));
        c.scalar[1].i = 1000;
        flag = 1;
        cr_expect_neq(tl_program_run(p, &rt, &c.run), TL_OK);
        cr_expect_eq(diag.last->code, TL_E0608);
        tl_diag_clear(&diag);
        flag = 0;
        run(p, &c);
        call_fini(&c);
    }
    rt.interrupted = NULL;
}

/* Every allocation of the first run and of a second fails once. */
static void fail_everywhere(const char *text, call *c, bool walk)
{
    for (uint64_t n = 1;; n++) {
        tl_program *p = parse(text, walk);
        tl_status st;

        tl_mem_fail_at(n, false);
        st = tl_program_run(p, &rt, &c->run);
        if (st == TL_OK) {
            drop_outputs(c);
            st = tl_program_run(p, &rt, &c->run);
        }
        tl_mem_fail_at(0, false);
        drop_outputs(c);
        if (st == TL_OK && n > 400) {
            tl_program_free(p);
            return;
        }
        tl_diag_clear(&diag);
        run(p, c); /* it still works */
        drop_outputs(c);
        tl_program_free(p);
    }
}

Test(program_failures, out_of_memory_at_every_allocation)
{
    call c;

    for (int way = 0; way < 2; way++) {
        call_init(&c);
        c.in[0] = vec(TL_f32, 2, VALUES(1, 2));
        c.scalar[1].i = 3;
        fail_everywhere(counted, &c, ways[way]);
        call_fini(&c);

        call_init(&c);
        c.in[0] = vec(TL_f32, 2, VALUES(1, 8));
        c.in[1] = vec(TL_f32, 2, VALUES(0.5, 0.25));
        fail_everywhere(checked, &c, ways[way]);
        call_fini(&c);
    }
}
