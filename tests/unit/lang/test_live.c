/* test_live.c - last reads, on programs whose flow is not straight.
 *
 * front_marks gives a character for each occurrence of the name, targets
 * included: `l` where the value may be moved out of its slot. */
#include <criterion/criterion.h>

#include "tests/unit/lang/front.h"

typedef struct row {
    const char *text;
    const char *name;
    const char *marks;
} row;

static void check(const row *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        front f;

        front_init(&f);
        front_resolve(&f, rows[i].text);
        cr_expect_str_eq(front_marks(&f, rows[i].name), rows[i].marks,
                         "`%s` in\n%sgives %s", rows[i].name, rows[i].text,
                         front_marks(&f, rows[i].name));
        front_fini(&f);
    }
}

#define CHECK(rows) check(rows, sizeof(rows) / sizeof((rows)[0]))

Test(live, straight_lines)
{
    static const row rows[] = {
        {"fn h(x):\n    y = f(x, x)\n    return y\n", "x", "-l"},
        {"fn h(x): return x + x * x", "x", "--l"},
        {"fn h(x):\n    x = f(x)\n    x = f(x)\n    return x\n", "x",
         "-l-ll"},
        {"fn h(x):\n    f(x)\n    x = 1\n    return x\n", "x", "l-l"},
        {"fn h(x):\n    y = x\n    y = x\n", "y", "--"},
        {"fn h(x): return x[x]", "x", "-l"},
        {"fn h(x): return f\"{x}{x}\"", "x", "-l"},
        {"fn h(x): return {x: x}", "x", "-l"},
        {"fn h(x): return x if f(x) else g(x)", "x", "l-l"},
        {"fn h(x): return x and x", "x", "-l"},
        {"fn h(x): return x < x < x", "x", "--l"},
        {"fn h(x): return x |> x", "x", "-l"},
        {"fn h(x): x.m(1)", "x", "-"},
        {"fn h(x): return x.m(1)", "x", "l"},
    };

    CHECK(rows);
}

Test(live, writes_take_the_old_value)
{
    static const row rows[] = {
        {"fn h(xs):\n    xs += [1]\n    return xs\n", "xs", "ll"},
        {"fn h(xs):\n    xs += [xs]\n    return xs\n", "xs", "l-l"},
        {"fn h(x):\n    x[0] = 1\n    return x\n", "x", "ll"},
        {"fn h(x):\n    x[0][1] = f(x)\n    return x\n", "x", "l-l"},
        {"fn h(x):\n    x[x] = 1\n    return x\n", "x", "l-l"},
        {"fn h(x):\n    x[x[0]][x] += x\n    return x\n", "x", "l---l"},
        {"fn h(x):\n    x.w = 1\n    return x\n", "x", "-l"},
        {"fn h(x):\n    x[0] += 1\n    return x\n", "x", "ll"},
        {"fn h(x):\n    x, y = x\n    return x\n", "x", "-ll"},
    };

    CHECK(rows);
}

Test(live, branches)
{
    static const row rows[] = {
        {"fn h(x):\n    if cond: f(x)\n    else: g(x)\n", "x", "ll"},
        {"fn h(x):\n    if cond: f(x)\n    return x\n", "x", "-l"},
        {"fn h(x):\n    if cond: return x\n    return x\n", "x", "ll"},
        {"fn h(x):\n    if cond:\n        x = 1\n    elif f(x): pass\n"
         "    return x\n",
         "x", "--l"},
        {"fn h(x):\n    if cond:\n        f(x)\n        raise \"e\"\n"
         "    return x\n",
         "x", "ll"},
    };

    CHECK(rows);
}

Test(live, loops)
{
    static const row rows[] = {
        /* read again by the next turn */
        {"fn h(x):\n    for i in xs: f(x)\n", "x", "-"},
        {"fn h(x):\n    while f(x): g(x)\n", "x", "--"},
        /* written before it is read again */
        {"fn h(x):\n    for i in xs:\n        x = f(x)\n    return x\n", "x",
         "-ll"},
        {"fn h(x):\n    for i in xs:\n        y = f(x)\n        g(y)\n", "y",
         "-l"},
        /* the loop variable */
        {"fn h(ys):\n    for y in ys: f(y, y)\n", "y", "--l"},
        {"fn h(ys):\n    for y in ys: f(y, y)\n", "ys", "l"},
        /* break skips the write */
        {"fn h(x):\n    while cond:\n        f(x)\n"
         "        if cond: break\n        x = 1\n    return x\n",
         "x", "--l"},
        /* continue goes to the head, which reads */
        {"fn h(x):\n    while f(x):\n        g(x)\n"
         "        if cond: continue\n        x = 1\n",
         "x", "---"},
        /* dead behind: the write at the end of a turn feeds its start */
        {"fn h(x):\n    while cond:\n        f(x)\n        x = g(1)\n", "x",
         "l-"},
        /* nested */
        {"fn h(x):\n    for i in xs:\n        x = 1\n"
         "        for j in xs: f(x)\n",
         "x", "--"},
        {"fn h(x):\n    for i in xs:\n        for j in xs:\n"
         "            x = f(x)\n        x = g(x)\n    return x\n",
         "x", "-l-ll"},
        /* written after the inner loop only */
        {"fn h(x):\n    while cond:\n        while cond: f(x)\n"
         "        x = 1\n",
         "x", "--"},
    };

    CHECK(rows);
}

Test(live, comprehensions)
{
    static const row rows[] = {
        {"fn h(x, ys): return [f(x, y) for y in ys]", "x", "-"},
        {"fn h(x, ys): return [f(x, y) for y in ys]", "y", "l-"},
        {"fn h(x, ys): return [f(x, y) for y in ys]", "ys", "l"},
        {"fn h(ys): return [f(a, b) for a in ys for b in f(a)]", "a", "---"},
        {"fn h(ys): return [f(a, b) for a in ys for b in f(a)]", "b", "l-"},
        {"fn h(ys): return [y for y in ys if f(y) if g(y)]", "y", "l---"},
        {"fn h(ys): return {y: y for y in ys}", "y", "-l-"},
        {"fn h(ys):\n    z = [y for y in ys]\n    return ys\n", "ys", "-l"},
    };

    CHECK(rows);
}

Test(live, try_keeps_what_the_handler_needs)
{
    static const row rows[] = {
        /* read by the handler */
        {"fn h(x):\n    try:\n        x = f(x)\n    catch e:\n"
         "        g(x)\n",
         "x", "--l"},
        {"fn h(xs):\n    try:\n        xs += [f(1)]\n    catch e:\n"
         "        g(xs)\n",
         "xs", "-l"},
        /* read behind it */
        {"fn h(x):\n    try:\n        x = f(x)\n    catch e: pass\n"
         "    return x\n",
         "x", "--l"},
        /* not needed: given away */
        {"fn h(x):\n    try:\n        y = f(x)\n    catch e: pass\n", "x",
         "l"},
        {"fn h(x):\n    try:\n        y = f(x)\n        x = y\n        g(x)\n"
         "    catch e: pass\n",
         "x", "l-l"},
        /* a loop around it */
        {"fn h(x):\n    for i in xs:\n        try:\n            x = f(x)\n"
         "        catch e: pass\n",
         "x", "--"},
        /* the caught error */
        {"fn h():\n    try: f()\n    catch e:\n        raise e\n", "e", "-l"},
    };

    CHECK(rows);
}

Test(live, grad_targets_and_dimensions_stay)
{
    static const row rows[] = {
        {"fn h(x):\n    g = grad l wrt x:\n        l = f(x)\n    return g\n",
         "x", "--"},
        {"fn h(x):\n    g = grad l wrt x:\n        l = f(x)\n    return g\n",
         "l", "l-"},
        {"fn h(x, y):\n    g = grad l wrt x.head:\n        l = f(x, y)\n"
         "    return g\n",
         "y", "l"},
        {"fn h(x: f32[B]): return f(B)", "B", "--"},
        {"fn h(x, n: int) -> f32[n]: return f(x, n)", "n", "--"},
    };

    CHECK(rows);
}

Test(live, nested_functions_read_when_they_are_made)
{
    static const row rows[] = {
        {"fn h(x):\n    f(x)\n    k = fn() => x\n    return k\n", "x", "-"},
        {"fn h(x):\n    k = fn() => x\n    f(x)\n    return k\n", "x", "l"},
        {"fn h(x):\n    f(x)\n    fn k() = x\n    return k\n", "x", "-"},
    };

    CHECK(rows);
}

Test(live, breakpoint_keeps_everything)
{
    static const row rows[] = {
        {"fn h(x):\n    y = f(x)\n    breakpoint()\n", "x", "-"},
        {"fn h(x):\n    y = f(x)\n", "x", "l"},
    };

    CHECK(rows);
}

Test(live, a_backward_clause_saves_what_it_reads)
{
    const tl_funcdef *func;
    front f;

    front_init(&f);
    front_resolve(&f, "fn h(a, b):\n"
                      "    s = f(a)\n"
                      "    t = g(s, b)\n"
                      "    return t\n"
                      "backward dy:\n"
                      "    u = dy * s\n"
                      "    return u * a, u\n");
    func = front_func(&f, "h");
    cr_assert_eq(func->nsaved, 2);
    cr_expect_str_eq(func->slot_names[func->saved[0]]->text, "a");
    cr_expect_str_eq(func->slot_names[func->saved[1]]->text, "s");
    cr_expect_str_eq(front_marks(&f, "a"), "--");
    cr_expect_str_eq(front_marks(&f, "b"), "l");
    cr_expect_str_eq(front_marks(&f, "s"), "---");
    cr_expect_str_eq(front_marks(&f, "t"), "-l");
    cr_expect_str_eq(front_marks(&f, "u"), "--l");
    front_fini(&f);
}

Test(live, deep_loops_take_linear_time)
{
    tl_buf text;
    front f;

    tl_buf_init(&text);
    tl_buf_puts(&text, "fn h(x):\n");
    for (int i = 1; i < 300; i++) {
        tl_buf_printf(&text, "%*sfor i in xs:\n", i, "");
    }
    tl_buf_printf(&text, "%*sx = f(x)\n return x\n", 300, "");
    front_init(&f);
    front_resolve(&f, tl_buf_str(&text));
    cr_expect_str_eq(front_marks(&f, "x"), "-ll");
    front_fini(&f);
    tl_buf_fini(&text);
}
