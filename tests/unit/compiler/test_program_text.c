/* test_program_text.c - programs from text: branches, loops, effects, keys. */
#include "tests/unit/compiler/program_text.h"

TestSuite(program_text, .init = rt_setup, .fini = rt_teardown);

/* ---- branches ----------------------------------------------------------- */

static const char branch[] = "graph\n"
                             "%1: f32[3] = input 0\n"
                             "%2: bool = input 1\n"
                             "region() {\n"
                             "  %3: f32[3] = add %1 %1\n"
                             "} %3\n"
                             "region() {\n"
                             "  %4: f32[3] = mul %1 %1\n"
                             "  %5: f32[3] = exp %4\n"
                             "} %4\n"
                             "%6: f32[3] = if %2\n"
                             "%7: f32[3] = neg %6\n"
                             "output %7 %6\n";

Test(program_text, a_branch_runs_one_arm)
{
    call c;

    EACH_WAY(p, branch)
    {
        call_init(&c);
        c.in[0] = vec(TL_f32, 3, VALUES(1, 2, 3));
        c.scalar[1].b = true;
        run(p, &c);
        expect_values(c.out[0], VALUES(-2, -4, -6));
        c.scalar[1].b = false;
        run(p, &c);
        expect_values(c.out[0], VALUES(-1, -4, -9));
        expect_values(c.out[1], VALUES(1, 4, 9));
        cr_expect_eq(is_planned(p, &c), way == 1);
        call_fini(&c);
    }
}

Test(program_text, an_arm_that_gives_a_view_keeps_its_layout)
{
    static const char text[] = "graph\n"
                               "%1: f32[2, 3] = input 0\n"
                               "%2: f32[3, 2] = input 1\n"
                               "%3: bool = input 2\n"
                               "region() {\n"
                               "  %4: f32[3, 2] = permute %1 { dims=[1, 0] }\n"
                               "} %4\n"
                               "region() {\n"
                               "} %2\n"
                               "%5: f32[3, 2] = if %3\n"
                               "output %5\n";
    call c;

    EACH_WAY(p, text)
    {
        call_init(&c);
        c.in[0] = make(TL_f32, 2, DIMS(2, 3), NULL);
        c.in[1] = make(TL_f32, 2, DIMS(3, 2), NULL);
        c.scalar[2].b = true;
        run(p, &c);
        expect_values(c.out[0], VALUES(0, 3, 1, 4, 2, 5));
        cr_expect(!tl_tensor_contiguous(c.out[0]));
        c.scalar[2].b = false;
        run(p, &c);
        cr_expect_eq(c.out[0], c.in[1]);
        call_fini(&c);
    }
}

/* ---- loops -------------------------------------------------------------- */

Test(program_text, a_counted_loop)
{
    call c;

    EACH_WAY(p, counted)
    {
        call_init(&c);
        c.in[0] = vec(TL_f32, 2, VALUES(1, 2));
        for (int again = 0; again < 2; again++) {
            c.scalar[1].i = 3;
            run(p, &c);
            expect_values(c.out[0], VALUES(-12, -20));
            expect_values(c.out[1], VALUES(1, 2, 2, 4, 5, 9));
            cr_expect_eq(c.out[1]->rank, 2);
            cr_expect_eq(c.out_scalar[2].i, 3);
            c.scalar[1].i = 0;
            run(p, &c);
            expect_values(c.out[0], VALUES(-1, -2));
            cr_expect_eq(c.out[1]->size[0], 0);
            cr_expect_eq(c.out_scalar[2].i, 0);
            cr_expect_eq(is_planned(p, &c), way == 1);
            cr_expect(way == 0 || walked(p->plans[0]) == 0);
        }
        expect_values(c.in[0], VALUES(1, 2));
        call_fini(&c);
    }
}

Test(program_text, a_loop_until_a_test_fails)
{
    static const char text[] =
        "graph\n"
        "s0 = int %15\n"
        "%1: f32[2] = input 0\n"
        "%2: int = num 0\n"
        "region(%3: f32[2], %4: int) {\n"
        "  %5: f32[] = sum %3 { flag axes=1 }\n"
        "  %6: f32[] = sum %3 { flag axes=1 }\n"
        "  %7: float = item %5\n"
        "  %8: float = num 100\n"
        "  %9: bool = host lt_f %7 %8\n"
        "} %9\n"
        "region(%10: int, %11: f32[2], %12: int) {\n"
        "  %13: f32[2] = add %11 %11\n"
        "  %14: int = host add_i %12 %10\n"
        "} %13 %14 %11\n"
        "%15: int, %16: f32[2], %17: int, %18: f32[s0, 2] = loop 2 _ %1 %2\n"
        "output %16 %17 %18 %15\n";
    call c;

    EACH_WAY(p, text)
    {
        call_init(&c);
        c.in[0] = vec(TL_f32, 2, VALUES(1, 2));
        run(p, &c); /* 3, 6, 12, 24, 48, 96, 192 */
        expect_values(c.out[0], VALUES(64, 128));
        cr_expect_eq(c.out_scalar[1].i, 15);
        cr_expect_eq(c.out_scalar[3].i, 6);
        cr_expect_eq(c.out[2]->size[0], 6);
        expect_values(c.out[2], VALUES(1, 2, 2, 4, 4, 8, 8, 16, 16, 32, 32,
                                       64));
        call_fini(&c);
    }
}

Test(program_text, what_is_carried_may_change_places)
{
    static const char text[] = "graph\n"
                               "%1: f32[2] = input 0\n"
                               "%2: f32[2] = input 1\n"
                               "%3: int = input 2\n"
                               "region(%4: int, %5: f32[2], %6: f32[2]) {\n"
                               "  %7: f32[2] = add %5 %6\n"
                               "} %6 %7\n"
                               "%8: int, %9: f32[2], %10: f32[2] = "
                               "loop 2 %3 %1 %2\n"
                               "%11: f32[2] = sub %10 %9\n"
                               "output %9 %10 %11\n";
    call c;

    EACH_WAY(p, text)
    {
        call_init(&c);
        c.in[0] = vec(TL_f32, 2, VALUES(0, 1));
        c.in[1] = vec(TL_f32, 2, VALUES(1, 1));
        c.scalar[2].i = 10; /* Fibonacci's numbers */
        run(p, &c);
        expect_values(c.out[0], VALUES(55, 89));
        expect_values(c.out[1], VALUES(89, 144));
        expect_values(c.out[2], VALUES(34, 55));
        cr_expect(way == 0 || walked(p->plans[0]) == 0);
        call_fini(&c);
    }
}

Test(program_text, loops_inside_loops_and_slices_by_index)
{
    static const char text[] =
        "graph\n"
        "s0 = size 0 0\n"
        "s1 = int %4\n"
        "%1: f32[s0, 2] = input 0\n"
        "%2: f32[2] = input 1\n"
        "%3: int = size s0\n"
        "region(%4: int, %5: f32[2]) {\n"
        "  %6: f32[1, 2] = slice %1 { dims=[s1, 1, 1, 0, 2, 1] }\n"
        "  %7: f32[2] = reshape %6 { dims=[2] }\n"
        "  region(%8: int, %9: f32[2]) {\n"
        "    %10: f32[2] = add %9 %7\n"
        "  } %10\n"
        "  %11: int, %12: f32[2] = loop 1 %3 %5\n"
        "} %12 %7\n"
        "%13: int, %14: f32[2], %15: f32[s0, 2] = loop 1 %3 %2\n"
        "output %14 %15\n";
    call c;

    EACH_WAY(p, text)
    {
        call_init(&c);
        c.in[0] = make(TL_f32, 2, DIMS(3, 2), NULL);
        c.in[1] = vec(TL_f32, 2, VALUES(100, 200));
        run(p, &c);
        expect_values(c.out[0], VALUES(118, 227));
        expect_values(c.out[1], VALUES(0, 1, 2, 3, 4, 5));
        tl_tensor_unref(c.in[0]);
        c.in[0] = make(TL_f32, 2, DIMS(2, 2), NULL);
        run(p, &c);
        expect_values(c.out[0], VALUES(104, 208));
        cr_expect(way == 0 || walked(p->plans[0]) == 0);
        call_fini(&c);
    }
}

/* The body's slice grows from turn to turn: the walk runs the loop, inside of
 * a plan. */
Test(program_text, a_loop_whose_shapes_change_is_walked)
{
    static const char text[] =
        "graph\n"
        "s0 = int %5\n"
        "report 1 = 2 0 3\n"
        "%1: f32[4] = input 0\n"
        "%2: f32[] = input 1\n"
        "%3: f32[4] = exp %1\n"
        "%4: int = num 3\n"
        "region(%5: int, %6: f32[]) {\n"
        "  %7: f32[s0 + 1] = slice %3 { dims=[0, s0 + 1, 1] }\n"
        "  %8: f32[] = sum %7 { flag axes=1 }\n"
        "  %9: f32[] = add %6 %8\n"
        "  hostcall 1 %3 %5 effect\n"
        "} %9\n"
        "%10: int, %11: f32[] = loop 1 %4 %2\n"
        "%12: f32[4] = mul %3 %11\n"
        "output %12 %3\n";
    call c[2];
    tl_program *p[2];

    for (int way = 0; way < 2; way++) {
        p[way] = parse(text, ways[way]);
        call_init(&c[way]);
        c[way].in[0] = vec(TL_f32, 4, NULL);
        c[way].in[1] = scalar(TL_f32, 1);
        for (int again = 0; again < 2; again++) {
            run(p[way], &c[way]);
        }
        cr_expect_str_eq(c[way].log, "3: 1 0;3: 1 1;3: 1 2;");
    }
    cr_expect_eq(walked(p[1]->plans[0]), 1);
    for (int i = 0; i < 2; i++) {
        cr_expect(same_bits(c[0].out[i], c[1].out[i]));
    }
    for (int way = 0; way < 2; way++) {
        call_fini(&c[way]);
        tl_program_free(p[way]);
    }
}

/* Where a slice begins is no size of a shape: one plan serves all. */
Test(program_text, slices_that_begin_elsewhere_share_a_plan)
{
    static const char text[] =
        "graph\n"
        "s0 = int %2\n"
        "%1: f32[5, 3] = input 0\n"
        "%2: int = input 1\n"
        "%3: f32[2, 3] = slice %1 { dims=[s0, 2, 1, 0, 3, 1] }\n"
        "%4: f32[3, 2] = permute %3 { dims=[1, 0] }\n"
        "%5: f32[3, 2] = exp %4\n"
        "%6: f32[5, 3] = slice_put %1 %3 { dims=[0, 2, 1, 0, 3, 1] }\n"
        "%7: f32[5, 3] = slice_put %6 %3 { dims=[s0 + 1, 2, 1, 0, 3, 1] }\n"
        "%8: f32[6] = reshape %3 { dims=[6] }\n"
        "%9: f32[6] = exp %8\n"
        "%10: f32[6] = neg %9\n"
        "%11: f32[3, 2] = reshape %8 { dims=[3, 2] }\n"
        "output %5 %3 %7 %10 %11\n";
    call c[2];
    tl_program *p[2];

    for (int way = 0; way < 2; way++) {
        p[way] = parse(text, ways[way]);
        call_init(&c[way]);
        c[way].in[0] = make(TL_f32, 2, DIMS(5, 3), NULL);
    }
    for (int64_t at = 0; at < 3; at++) {
        for (int way = 0; way < 2; way++) {
            c[way].scalar[1].i = at;
            run(p[way], &c[way]);
        }
        for (int i = 0; i < 5; i++) {
            cr_expect(same_bits(c[0].out[i], c[1].out[i]), "%d", i);
        }
        cr_expect_eq(tl_tensor_get_f(c[1].out[1], 0), 3.0 * (double)at);
    }
    cr_expect_eq(p[1]->nplans, 1);
    c[1].scalar[1].i = 4;
    cr_expect_neq(tl_program_run(p[1], &rt, &c[1].run), TL_OK);
    tl_diag_clear(&diag);
    for (int way = 0; way < 2; way++) {
        call_fini(&c[way]);
        tl_program_free(p[way]);
    }
}

/* ---- effects ------------------------------------------------------------ */

Test(program_text, effects_run_in_order_and_get_tensors_to_keep)
{
    call c;

    EACH_WAY(p, checked)
    {
        call_init(&c);
        c.in[0] = vec(TL_f32, 2, VALUES(1, 8));
        c.in[1] = vec(TL_f32, 2, VALUES(0.5, 0.25));
        c.scalar[2].i = 42;
        run(p, &c);
        cr_expect_str_eq(c.log, "7: 1.5;9: 42 0.25;");
        expect_values(c.out[0], VALUES(0.25, 1.8125));
        call_fini(&c);
    }
}

Test(program_text, a_failed_assert_shows_cells_and_sets_no_output)
{
    call c;

    EACH_WAY(p, checked)
    {
        call_init(&c);
        c.in[0] = vec(TL_f32, 2, VALUES(1, 8));
        c.in[1] = vec(TL_f32, 2, VALUES(3, 4));
        c.donate[0] = 1;
        cr_expect_neq(tl_program_run(p, &rt, &c.run), TL_OK);
        cr_expect_str_eq(c.log, "7: 4;8: 3 4;");
        cr_expect_eq(diag.last->code, TL_E0222);
        cr_expect_null(c.out[0]);
        tl_diag_clear(&diag);
        call_fini(&c);
    }
}

/* The new value is no cell's yet where the assert stands. */
Test(program_text, no_donation_before_an_effect_that_does_not_list_it)
{
    static const char text[] = "graph\n"
                               "report 1 = 0 0 1\n"
                               "%1: f32[2] = input 0\n"
                               "%2: bool = input 1\n"
                               "%3: f32[2] = add %1 %1\n"
                               "assert 1 %2 effect\n"
                               "output %3\n";
    call c;

    EACH_WAY(p, text)
    {
        call_init(&c);
        c.in[0] = vec(TL_f32, 2, VALUES(1, 2));
        c.donate[0] = 1;
        cr_expect_neq(tl_program_run(p, &rt, &c.run), TL_OK);
        expect_values(c.in[0], VALUES(1, 2));
        tl_diag_clear(&diag);
        call_fini(&c);
    }
}

/* The effect needs nothing of the update, which waits for it. */
Test(program_text, an_update_waits_for_effects_to_write_into_its_input)
{
    static const char text[] = "graph\n"
                               "report 1 = 1 0 1\n"
                               "%1: f32[2] = input 0\n"
                               "%2: f32[2] = input 1\n"
                               "%3: f32[2] = sub %1 %2\n"
                               "%4: f32[2] = mul %2 %2\n"
                               "hostcall 1 %4 effect\n"
                               "output %3\n";
    call c;
    tl_program *p = parse(text, false);

    call_init(&c);
    c.in[0] = vec(TL_f32, 2, VALUES(1, 2));
    c.in[1] = vec(TL_f32, 2, VALUES(3, 5));
    c.donate[0] = 1;
    run(p, &c);
    cr_expect_eq(c.out[0], c.in[0]);
    expect_values(c.out[0], VALUES(-2, -3));
    cr_expect_str_eq(c.log, "1: 9;");
    call_fini(&c);
    tl_program_free(p);
}

/* ---- what keeps its order ----------------------------------------------- */

/* Is the first step of this row one that keeps its order? */
static bool is_chained(const tl_plan *pl, tl_op op)
{
    for (uint32_t i = 1; i < pl->steps.len; i++) {
        if (pl->steps.items[i].kind == TL_PS_KERNEL &&
            pl->steps.items[i].op == op) {
            return pl->steps.items[i].chained;
        }
    }
    cr_assert(false, "no such step");
    return false;
}

Test(program_text, what_cannot_fail_is_not_held_in_order)
{
    static const char known[] =
        "graph\n"
        "%1: f32[4, 3] = input 0\n"
        "%2: i64[5] = input 1\n"
        "%3: float = input 2\n"
        "%4: i64[5] = input 3\n"
        "%5: f32[5, 3] = index %1 %2 { axes=1 }\n"
        "%6: f32[4, 3] = dropout %1 { i1=5 f0=0.5 }\n"
        "%7: f32[4, 3] = bernoulli %1 { i1=5 }\n"
        "%8: f32[4, 3] = index_put %6 %5 %2 { axes=1 i0=1 }\n"
        "output %7 %8\n";
    static const char other[] =
        "graph\n"
        "%1: f32[4, 3] = input 0\n"
        "%2: i64[5] = input 1\n"
        "%3: float = input 2\n"
        "%4: i64[5] = input 3\n"
        "%5: f32[5, 3] = index %1 %2 { axes=1 }\n"
        "%6: f32[4, 3] = dropout %1 { i1=5 f0=%3 }\n"
        "%7: i64[4, 3] = cast %1 { dtype=i64 }\n"
        "%8: f32[4, 3] = index_put %6 %5 %4 { axes=1 i0=1 }\n"
        "output %7 %8\n";
    call c;
    tl_program *p;

    for (int way = 0; way < 2; way++) {
        call_init(&c);
        c.in[0] = make(TL_f32, 2, DIMS(4, 3), VALUES(0, 1, 0, 1, 1, 0, 0, 0, 1,
                                                     1, 0, 1));
        c.in[1] = vec(TL_i64, 5, VALUES(0, 1, 2, 3, 1));
        c.scalar[2].f = 0.5;
        c.in[3] = vec(TL_i64, 5, VALUES(0, 1, 2, 3, 1));
        p = parse(way ? other : known, false);
        run(p, &c);
        cr_expect(is_chained(p->plans[0], TL_OP_index));
        cr_expect_eq(is_chained(p->plans[0], TL_OP_dropout), way == 1);
        cr_expect_eq(is_chained(p->plans[0], TL_OP_index_put), way == 1);
        cr_expect(is_chained(p->plans[0], way ? TL_OP_cast
                                              : TL_OP_bernoulli));
        call_fini(&c);
        tl_program_free(p);
    }
}

/* ---- keys and guards ---------------------------------------------------- */

Test(program_text, sizes_and_strides_have_plans_of_their_own)
{
    static const char text[] = "graph\n"
                               "s0 = size 0 0\n"
                               "s1 = size 0 1\n"
                               "%1: f32[s0, s1] = input 0\n"
                               "%2: f32[s0, s1] = exp %1\n"
                               "%3: f32[s0*s1] = reshape %1 { dims=[s0*s1] }\n"
                               "%4: f32[s0] = sum %2 { axes=2 }\n"
                               "output %3 %4\n";
    call c;
    tl_program *p = parse(text, false);

    for (int64_t n = 1; n < 100; n++) {
        tl_tensor *t = make(TL_f32, 2, DIMS(3, n % 40 + 1), NULL);

        call_init(&c);
        c.in[0] = n % 3 ? t : transpose(t);
        if (n % 3 == 0) {
            tl_tensor_unref(t);
        }
        run(p, &c);
        for (int64_t i = 0; i < c.in[0]->numel; i++) {
            cr_assert_eq(tl_tensor_get_f(c.in[0], i),
                         tl_tensor_get_f(c.out[0], i));
        }
        call_fini(&c);
    }
    tl_program_free(p);
}

Test(program_text, guards_are_looked_at)
{
    static const char text[] = "graph\n"
                               "s0 = size 0 0\n"
                               "%1: f32[s0] = input 0\n"
                               "%2: int = input 1\n"
                               "%3: int = size 2*s0\n"
                               "%4: bool = host lt_i %2 %3\n"
                               "guard %4 = 1\n"
                               "output %1\n";
    call c;
    tl_program *p = parse(text, false);

    call_init(&c);
    c.in[0] = vec(TL_f32, 3, NULL);
    c.scalar[1].i = 5;
    cr_expect(tl_program_fits(p, &c.run));
    c.scalar[1].i = 6;
    cr_expect(!tl_program_fits(p, &c.run));
    call_fini(&c);
    tl_program_free(p);
}

Test(program_text, a_plan_says_what_it_does)
{
    call c;
    tl_buf text;
    tl_program *p = parse(checked, false);

    call_init(&c);
    c.in[0] = vec(TL_f32, 2, VALUES(1, 8));
    c.in[1] = vec(TL_f32, 2, VALUES(0.5, 0.25));
    tl_buf_init(&text);
    OK(tl_program_explain(p, &rt, &c.run, &text));
    cr_expect(strstr(tl_buf_str(&text), "fused(add mul lt)") ||
                  strstr(tl_buf_str(&text), "fused(mul lt any)"),
              "%s", tl_buf_str(&text));
    cr_expect_not_null(strstr(tl_buf_str(&text), "memory: arena"));
    tl_buf_clear(&text);
    tl_program_free(p);
    p = parse(counted, false);
    c.scalar[1].i = 3;
    OK(tl_program_explain(p, &rt, &c.run, &text));
    cr_expect_not_null(strstr(tl_buf_str(&text), "region 0"), "%s",
                       tl_buf_str(&text));
    tl_buf_clear(&text);
    tl_program_free(p);
    p = parse(counted, true);
    OK(tl_program_explain(p, &rt, &c.run, &text));
    cr_expect_not_null(strstr(tl_buf_str(&text), "no plan"));
    tl_buf_fini(&text);
    call_fini(&c);
    tl_program_free(p);
}
