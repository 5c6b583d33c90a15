/* test_verify.c - what `--verify` takes for a difference. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <math.h>
#include <string.h>

#include "interp/session.h"
#include "interp/verify.h"

static tl_session session;

static void setup(void)
{
    tl_session_init(&session);
    cr_assert_eq(tl_session_start(&session), TL_OK);
}

static void teardown(void)
{
    tl_session_fini(&session);
}

TestSuite(verify, .init = setup, .fini = teardown);

/* The values of `a, b`, two expressions: do they differ, and how? */
static bool differ(const char *pair, char *text, size_t size)
{
    tl_difference d = {.output = 0};
    tl_namespace *ns;
    tl_value v;

    cr_assert_eq(tl_namespace_new(&ns, &session.ev, "main", "<test>"),
                 TL_OK);
    session.ev.main_ns = ns;
    cr_assert_eq(tl_eval_text(&session.ev, ns, "<test>", pair, strlen(pair),
                              &v, NULL),
                 TL_OK, "%s", pair);
    cr_assert_eq(v.tag, TL_V_TUPLE);
    tl_buf_init(&d.text);
    bool yes = tl_values_differ(tl_empty(), v.seq->items[0],
                                v.seq->items[1], &d);

    snprintf(text, size, "%s", tl_buf_str(&d.text));
    tl_buf_fini(&d.text);
    tl_unref(v);
    return yes;
}

Test(verify, equal_values_have_no_difference)
{
    static const char *const pairs[] = {
        "(1, 1)", "(\"a\", \"a\")", "(nan, nan)", "([1.0], [1.0])",
        "(tensor([nan, 1.0]), tensor([nan, 1.0]))",
        "({\"a\": ones([2])}, {\"a\": ones([2])})",
        "((1, [none]), (1, [none]))"};
    char text[200];

    for (size_t i = 0; i < sizeof(pairs) / sizeof(*pairs); i++) {
        cr_expect(!differ(pairs[i], text, sizeof(text)), "%s: %s", pairs[i],
                  text);
        cr_expect_str_empty(text, "%s", pairs[i]);
    }
}

Test(verify, a_difference_is_named_with_its_place)
{
    static const char *const cases[][2] = {
        {"(1, 2)", ": 1, interpreted 2"},
        {"(1, 1.0)", ": 1, interpreted 0x1p+0"},
        {"(0.0, -0.0)", ": 0x0p+0, interpreted -0x0p+0"},
        {"([1, 2], [1, 3])", "[1]: 2, interpreted 3"},
        {"([1], [1, 3])", ": [1], interpreted [1, 3]"},
        {"({\"a\": 1}, {\"b\": 1})", "[\"a\"]: \"a\", interpreted \"b\""},
        {"({\"a\": 1}, {\"a\": 1, \"b\": 2})", ": other keys"},
        {"(ones([2]), ones([3]))", ": f32[2], interpreted f32[3]"},
        {"(tensor([[1, 2], [3, 4]]), tensor([[1, 2], [5, 4]]))",
         " at [1, 0]: 3, interpreted 5"},
        {"(tensor([1.0, 0.0]), tensor([1.0, -0.0]))",
         " at [1]: 0x0p+0, interpreted -0x0p+0"}};
    char text[200];

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        cr_expect(differ(cases[i][0], text, sizeof(text)), "%s",
                  cases[i][0]);
        cr_expect_str_eq(text, cases[i][1], "%s: %s", cases[i][0], text);
    }
}
