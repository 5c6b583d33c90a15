/* test_compiled.c - compiled functions, and what a session may change between
 * their calls that no program can. */
#include <criterion/criterion.h>

#include "interp/compiled.h"
#include "tests/unit/interp/run.h"

static run r;

static void setup(void)
{
    cr_assert_eq(run_init(&r), TL_OK);
}

static void teardown(void)
{
    run_fini(&r);
    run_release(&r);
}

TestSuite(compiled, .init = setup, .fini = teardown);

/* Another number of threads, from the next region on. */
static void set_threads(int count)
{
    tl_threads *pool;

    cr_assert_eq(tl_threads_new(&pool, count, &r.diag), TL_OK);
    tl_threads_free(r.rt.threads);
    r.rt.threads = r.rt.kctx.threads = pool;
}

static void must(const char *text)
{
    cr_assert_eq(run_text(&r, text), TL_OK, "%s: %s", text,
                 r.diag.last ? r.diag.last->message : "?");
}

Test(compiled, other_numbers_of_threads_give_the_interpreters_answer)
{
    static const int counts[] = {1, 3, 2, 7, 1, 4};
    tl_compile_stats stats;

    must("import nn, optim\n"
         "module Net():\n"
         "    a, b = nn.Linear(40, 64), nn.Linear(64, 40)\n"
         "    fn forward(x) = b(gelu(a(x)))\n"
         "net = Net()\n"
         "opt = optim.AdamW(net, lr=0.01)\n"
         "fn train(net, opt, x):\n"
         "    g = grad l wrt net:\n"
         "        y = net(x)\n"
         "        l = (softmax(y) * y).sum() + (y.exp() * 0.1).mean()\n"
         "    opt.step(g)\n"
         "    return l, y\n"
         "@compile\n"
         "fn step(net, opt, x): return train(net, opt, x)\n"
         "x = randn(600, 40)\n"
         "_ = net(x)\n"
         "twin, twin_opt = copy((net, opt))\n");
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        set_threads(counts[i]);
        must("for i in range(2):\n"
             "    a = exact(step(net, opt, x))\n"
             "    b = exact(interpret(train, twin, twin_opt, x))\n"
             "    assert a == b\n"
             "assert exact(params(net)) == exact(params(twin))\n"
             "assert exact((opt.m, opt.v)) == exact((twin_opt.m, "
             "twin_opt.v))\n");
    }
    stats = tl_compiler_stats(&r.ev);
    cr_expect_eq(stats.runs, 12);
    cr_expect_eq(stats.programs, 1);
}
