/* test_compiled.c - compiled functions: what a session may change between their
 * calls that no program can, and memory that is missing while one is made. */
#include "interp/compiled.h"
#include "tests/unit/interp/suite.h"

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

/* ---- without memory ------------------------------------------------------ */

/* A function f, and x, that it is called with. */
static const char *const functions[] = {
    /* a loop that the run counts, under a block, with leaving */
    "fn body(x):\n"
    "    g = grad l wrt x:\n"
    "        y = x\n"
    "        for i in range(int(x.size) + 2):\n"
    "            y = tanh(y * 1.5) + i\n"
    "            if y.sum() > 3: break\n"
    "        l = (y * x).sum()\n"
    "    return g, y\n"
    "x = tensor([0.5, -0.25, 2.0])\n",
    /* branches on data, with effects and gradients */
    "fn body(x):\n"
    "    g = grad l wrt x:\n"
    "        if x.sum() > 0:\n"
    "            y = exp(x)\n"
    "            assert y.sum() > 0, \"never\"\n"
    "        else:\n"
    "            y = x * x\n"
    "        l = (y + x).mean()\n"
    "    while g.sum() < 9:\n"
    "        g = g * 2 + 1\n"
    "    print(\"sum\", g.sum())\n"
    "    return g\n"
    "x = tensor([0.5, -0.25, 2.0])\n",
    /* a function with its own gradient, views, writes, draws */
    "fn own(x):\n"
    "    y = sin(x)\n"
    "    return y\n"
    "backward dy:\n"
    "    return dy * y\n"
    "fn body(x):\n"
    "    g = grad l wrt x:\n"
    "        y = own(x).reshape(3, 2)[1:, :].T @ ones(2, 3)\n"
    "        y[0, 1] = 4.0\n"
    "        y = dropout(y, 0.5) + softmax(y, axis=0)\n"
    "        l = where(y > 0.1, y, y * y).sum()\n"
    "    return g, f64(g).var(), sort(g), g.shape\n"
    "x = randn(6)\n",
    /* cells: a module and its optimiser, and what is kept in a buffer */
    "import nn, optim\n"
    "module Net():\n"
    "    a, b = nn.Linear(3, 4), nn.Linear(4, 3)\n"
    "    buffer seen: f32[3] = zeros(3)\n"
    "    fn forward(x):\n"
    "        y = b(gelu(a(x)))\n"
    "        self.seen = seen * 0.5 + y.mean(axis=0)\n"
    "        return y\n"
    "net = Net()\n"
    "opt = optim.AdamW(net, lr=0.01)\n"
    "fn body(x):\n"
    "    g = grad l wrt net: l = cross_entropy(net(x), arange(2))\n"
    "    opt.step(clip_norm(g, 0.5))\n"
    "    return l\n"
    "x = randn(2, 3)\n"
    "_ = net(x)\n"
    "first_net, first_opt = copy((net, opt))\n",
    /* sizes and numbers that are symbols from the second call on */
    "fn body(x):\n"
    "    n = len(x) * 2 - 1\n"
    "    y = x[:n // 2] + k\n"
    "    for i in range(n): y = y + sin(x[i % 2]) * i\n"
    "    with autocast(bf16): z = y.reshape(1, n // 2) @ y.reshape(n // 2, 1)\n"
    "    return y, z, zeros(n), min(n, 3)\n"
    "k = 2\n"
    "x = ones(5)\n",
};

/* How many allocations has the text made?  With `fail` > 0 that one fails. */
static uint64_t run_failing(const char *text, uint64_t fail, tl_status *st)
{
    uint64_t before = tl_mem_attempts();

    tl_mem_fail_at(fail, false);
    *st = run_text(&r, text);
    tl_mem_fail_at(0, false);
    return tl_mem_attempts() - before;
}

/* The call whose `fail`th allocation fails gives what it must, or says that
 * there is no memory; the next one is as ever. */
static uint64_t fail_once(const char *begin, uint64_t fail)
{
    uint64_t used;
    tl_status st;

    must(begin);
    tl_compiler_clear(r.ev.compiler);
    used = run_failing("got = exact(f(x))\n", fail, &st);
    if (st == TL_OK) {
        must("assert got == first");
    } else {
        cr_assert_eq(st, TL_ERR_MEMORY, "allocation %llu: %s",
                     (unsigned long long)fail, r.diag.last->message);
        tl_diag_clear(&r.diag);
    }
    must("got = exact(f(x))\n");
    tl_diag_clear(&r.diag);
    tl_buf_clear(&r.output);
    return used;
}

static void fail_each(const char *function)
{
    bool has_net = strstr(function, "net = ") != NULL;
    const char *begin = has_net ? "seed(4)\n"
                                  "assign(net, first_net)\n"
                                  "assign(opt, first_opt)\n"
                                : "seed(4)\n";

    must(function);
    must("@compile\n"
         "fn f(x): return body(x)\n");
    must(begin);
    must("first = exact(interpret(body, x))\n");
    for (uint64_t n = 1; fail_once(begin, n) >= n; n++) {
    }
}

Test(compiled, each_allocation_of_a_first_call_fails_once)
{
    for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
        fail_each(functions[i]);
        teardown();
        setup();
    }
}
