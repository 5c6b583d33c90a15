/* test_module.c - instances, and what happens when memory runs out. */
#include "tests/unit/interp/suite.h"

TestSuite(test_module, .init = setup, .fini = teardown);
TestSuite(test_module_memory);

static void refuses(const char *statement, tl_code code)
{
    tl_diag_clear(&r.diag);
    cr_expect_neq(run_text(&r, statement), TL_OK, "%s", statement);
    cr_expect_eq(run_code(&r), code, "%s gave %s", statement,
                 tl_code_name(run_code(&r)));
}

Test(test_module, constants_are_fixed_after_construction)
{
    cr_assert_eq(run_text(&r, "module M(d: int):\n"
                              "    name = \"m\"\n"
                              "    param b: f32[d]? = none\n"
                              "    fn f() = 1\n"
                              "m = M(2)\n"),
                 TL_OK);
    refuses("m.d = 3", TL_E0212);
    refuses("m.name = \"x\"", TL_E0212);
    refuses("m.f = 3", TL_E0212);
    refuses("m.b = ones(2)", TL_E0212);
    refuses("m.nam = 3", TL_E0211);
    refuses("m.nam", TL_E0211);
    cr_expect_str_eq(r.diag.last->help, "`name`");
}

Test(test_module, failed_constructor_leaves_nothing)
{
    cr_assert_eq(run_text(&r, "module M(d: int):\n"
                              "    a = [1, 2]\n"
                              "    f = fn(x) => a\n"
                              "    assert d > 0, \"d\"\n"),
                 TL_OK);
    refuses("m = M(0)", TL_E0222);
    cr_expect_eq(r.ev.constructing, 0);
    cr_assert_eq(run_text(&r, "m = M(1)"), TL_OK);
}

Test(test_module, captured_instances_make_no_cycle)
{
    int64_t before;

    cr_assert_eq(run_text(&r,
                          "module Box(*items):\n"
                          "    n = len(items)\n"
                          "module M():\n"
                          "    a = 1\n"
                          "    f = fn(x) => x + a\n"
                          "    list = [fn(x) => f(x), fn() => a]\n"
                          "    box = Box(fn() => list, fn() => f)\n"
                          "    param w: f32[2] = fn(s, d) => full(s, a)\n"),
                 TL_OK);
    before = tl_obj_live();
    cr_assert_eq(run_text(&r, "M()"), TL_OK);
    cr_expect_eq(tl_obj_live(), before);
}

Test(test_module, ordinals_count_modules_that_own_a_param)
{
    cr_assert_eq(run_text(&r, "module P():\n"
                              "    param w: f32[] = 1.0\n"
                              "module N():\n"
                              "    lr: float = 1.0\n"
                              "module Two():\n"
                              "    a, b = P(), P()\n"
                              "module Ref(net: cells[P]):\n"
                              "    lr: float = 1.0\n"
                              "x = N()\n"
                              "y = Two()\n"
                              "z = Ref(y)\n"),
                 TL_OK);
    cr_expect_eq(r.rt.inits, 1);
}

/* Every allocation of a script fails once: a message, no leak, no crash. */
static void starve(const char *text)
{
    for (uint64_t n = 1; n < 100000; n++) {
        uint64_t before = tl_mem_attempts();
        bool reached;
        tl_status st;

        tl_mem_fail_at(n, false);
        st = run_init(&r);
        if (st == TL_OK) {
            st = run_text(&r, text);
            tl_mem_fail_at(0, false);
            run_fini(&r);
        }
        tl_mem_fail_at(0, false);
        reached = tl_mem_attempts() - before >= n;
        cr_assert(st == TL_OK || st == TL_ERR_MEMORY,
                  "allocation %llu: status %d, %s", (unsigned long long)n, st,
                  r.diag.last ? r.diag.last->message : "no message");
        run_release(&r);
        cr_assert_eq(tl_obj_live(), 0, "allocation %llu",
                     (unsigned long long)n);
        cr_assert_eq(tl_tensor_live(), 0, "allocation %llu",
                     (unsigned long long)n);
        if (!reached) {
            cr_expect_eq(st, TL_OK);
            return;
        }
    }
    cr_assert_fail("never ends");
}

Test(test_module_memory, construction_and_copy)
{
    starve("module L(n: int, **kw):\n"
           "    param w: f32[n] = fn(s, d) => ones(s)\n"
           "    buffer c: i64[] = 0\n"
           "    lr: float = 0.5\n"
           "    f = fn(x) => x * w\n"
           "module N():\n"
           "    a, b = L(2), L(3, k=1)\n"
           "    list = [a, {\"x\": L(1)}]\n"
           "    fs = [fn(x) => a.f(x)]\n"
           "n = N()\n"
           "m = copy(n)\n"
           "y = n.a.f(ones(2)) + m.fs[0](ones(2))\n");
}

Test(test_module_memory, trees)
{
    starve("module L():\n"
           "    param w: f32[2] = ones(2)\n"
           "    param v: f32[] = 1.0\n"
           "module N():\n"
           "    a, b = L(), L()\n"
           "n = N()\n"
           "t = params(n)\n"
           "u = t * 2 + t / 3 - 1\n"
           "v, w = map(fn(x, y) => (x + y, x), t, u)\n"
           "k = clip_norm(v, 0.5).norm()\n"
           "assign(n, w)\n"
           "z = zeros_like(n).items()\n"
           "s = params(select(n, \"*.w\")).a\n");
}
