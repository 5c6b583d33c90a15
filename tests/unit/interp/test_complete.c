/* test_complete.c - candidates by context.  In a text `|` is the cursor. */
#include <criterion/criterion.h>

#include "interp/complete.h"
#include "tests/unit/interp/run.h"

static const char *const commands[] = {":time", ":type", ":who", NULL};

/* The candidates, joined by spaces, each with what follows it. */
static void candidates(run *e, const char *text, tl_buf *out)
{
    const char *bar = strchr(text, '|');
    tl_completion c;
    char typed[256];

    snprintf(typed, sizeof(typed), "%.*s%s", (int)(bar - text), text, bar + 1);
    tl_complete(&e->ev, e->ns, commands, typed, (size_t)(bar - text), &c);
    for (size_t i = 0; i < c.len; i++) {
        tl_buf_printf(out, "%s%s%s", i > 0 ? " " : "", c.items[i].text,
                      c.items[i].after);
    }
    tl_completion_fini(&c);
}

static void expect(const char *before, const char *text, const char *want)
{
    run e;
    tl_buf out;

    cr_assert_eq(run_init(&e), TL_OK);
    cr_assert_eq(run_text(&e, before), TL_OK);
    tl_buf_init(&out);
    candidates(&e, text, &out);
    cr_expect_str_eq(tl_buf_str(&out), want, "%s: %s, not %s", text,
                     tl_buf_str(&out), want);
    tl_buf_fini(&out);
    run_fini(&e);
    run_release(&e);
}

Test(complete, names_and_keywords)
{
    expect("", "contin|", "continue");
    expect("total = 1\nfn toll(a): return a", "to| + 1", "toll( topk( total");
    expect("", "logsumex|", "logsumexp(");
    expect("", "# relu|", "");
}

Test(complete, fields_of_values)
{
    expect("module M(d: int):\n    param width: f32[d] = zeros(d)\n"
           "    fn run(x): return x\nm = M(2)\nms = [m]",
           "m.w|", "width");
    expect("module M(d: int):\n    fn ruin(x): return x\nms = [M(2)]",
           "print(ms[0].ru|", "ruin(");
    expect("record P:\n    left: int\np = P(1)", "p.le|", "left");
    expect("x = ones(2)", "x.sha|", "shape");
    expect("", "(1 + 2).sha|", "shape"); /* a guess: a tensor */
    expect("s = \"a\"", "s.uppe|", "upper(");
    expect("", "\"a\".uppe|", "upper(");
    expect("", "json.par|", "parse(");
    expect("", "x..sha|", "");
}

Test(complete, keywords_of_the_call_around)
{
    expect("fn f(alpha, beta=1): return alpha", "f(1, bet|", "beta=");
    expect("fn f(alpha, beta=1): return alpha", "f((1), |", "alpha= beta=");
    expect("fn f(alpha): return alpha", "f(1); alph|", "");
    expect("", "softmax(x, axi|", "axis=");
    expect("x = ones(2)", "x.softmax(|", "axis=");
    expect("fn f(alpha): return alpha", "f(\")\", alp|", "alpha=");
}

Test(complete, modules)
{
    expect("", "import opt|", "optim");
    expect("", "from nn import LayerN|", "LayerNorm");
    expect("", "from nn imp|", "import ");
    expect("import nn", "nn.LayerN|", "LayerNorm(");
}

Test(complete, commands_marks_letters)
{
    expect("", ":t|", ":time  :type ");
    expect("fn widest(): return 1", ":type wides|", "widest(");
    expect("", "@comp|", "compile");
    expect("", "x @ comp|", "");
    expect("", "\\alph|", "\\alpha");
    expect("", "\\alpha|", "\316\261");
    expect("", "?softma|", "softmax");
}

Test(complete, strings_hold_paths)
{
    expect("", "files.read(\"/et|", "/etc/");
    expect("", "x = \"relu|", "");
    expect("x = ones(2)", "f\"{x.sha|", "shape");
}

Test(complete, common_part_ends_at_a_character)
{
    run e;
    tl_completion c;

    cr_assert_eq(run_init(&e), TL_OK);
    cr_assert_eq(run_text(&e, "qq\316\261 = 1\nqq\316\262 = 2"), TL_OK);
    tl_complete(&e.ev, e.ns, NULL, "qq", 2, &c);
    cr_expect_eq(c.len, 2);
    cr_expect_eq(tl_completion_common(&c), 2);
    tl_completion_fini(&c);
    run_fini(&e);
    run_release(&e);
}
