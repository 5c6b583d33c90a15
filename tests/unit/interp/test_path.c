/* test_path.c - patterns, and walks over cells and modules. */
#include "tests/unit/interp/suite.h"

TestSuite(test_path, .init = setup, .fini = teardown);

static void define(void)
{
    cr_assert_eq(run_text(&r, "module W():\n"
                              "    param w: f32[] = 1.0\n"
                              "    buffer b: i64[] = 0\n"
                              "    lr: float = 0.5\n"
                              "module Net(ref: cells[W]):\n"
                              "    a = W()\n"
                              "    same = a\n"
                              "    list = [W(), 3, (W(),)]\n"
                              "    dict = {\"k\": W(), 7: W()}\n"
                              "net = Net(W())\n"),
                 TL_OK);
}

/* Paths joined by blanks; "=" before one that came earlier. */
static void expect_paths(tl_value root, unsigned kinds, const char *expected)
{
    tl_path_list list;
    tl_buf text = {0};

    cr_assert_eq(tl_paths(&r.ev, root, kinds, &list), TL_OK);
    for (size_t i = 0; i < list.len; i++) {
        tl_buf_puts(&text, i ? " " : "");
        tl_buf_puts(&text, list.items[i].first < i ? "=" : "");
        tl_buf_puts(&text, list.items[i].path->data);
    }
    cr_expect_str_eq(tl_buf_str(&text), expected);
    tl_buf_fini(&text);
    tl_path_list_fini(&list);
}

Test(test_path, star_crosses_dots)
{
    cr_expect(tl_glob_match("*.bias", "blocks.3.attn.bias"));
    cr_expect(tl_glob_match("blocks.*.bias", "blocks.3.attn.bias"));
    cr_expect(tl_glob_match("*attn*", "blocks.3.attn.bias"));
    cr_expect_not(tl_glob_match("*.bias", "blocks.3.biases"));
    cr_expect_not(tl_glob_match("blocks.*", "block.3"));
}

Test(test_path, star_dot_matches_the_bare_name)
{
    cr_expect(tl_glob_match("*.bias", "bias"));
    cr_expect_not(tl_glob_match("*.bias", "xbias"));
}

Test(test_path, patterns_without_star_are_whole_names)
{
    cr_expect(tl_glob_match("a.b", "a.b"));
    cr_expect_not(tl_glob_match("a.b", "a.bc"));
    cr_expect(tl_glob_match("", ""));
    cr_expect_not(tl_glob_match("", "a"));
    cr_expect(tl_glob_match("*", ""));
}

Test(test_path, many_stars_take_linear_time_in_each)
{
    char path[2001];

    memset(path, 'a', 2000);
    path[2000] = '\0';
    cr_expect_not(tl_glob_match("*a*a*a*a*a*a*a*a*a*a*b", path));
}

Test(test_path, cells_in_the_order_of_definition)
{
    define();
    expect_paths(run_global(&r, "net"), TL_CELLS_PARAM,
                 "a.w list.0.w list.2.0.w dict.k.w dict.7.w");
}

Test(test_path, kinds_select)
{
    define();
    expect_paths(run_global(&r, "net"), 1 << TL_CELL_HOST,
                 "a.lr list.0.lr list.2.0.lr dict.k.lr dict.7.lr");
}

Test(test_path, aliases_are_further_paths_of_shared_modules)
{
    define();
    expect_paths(run_global(&r, "net"), TL_CELLS_PARAM | TL_PATHS_ALIASES,
                 "a.w =same.w list.0.w list.2.0.w dict.k.w dict.7.w");
}

Test(test_path, referred_modules_are_passed_over)
{
    define();
    expect_paths(run_global(&r, "net"), TL_CELLS_PARAM | TL_PATHS_REFERRED,
                 "ref.w a.w list.0.w list.2.0.w dict.k.w dict.7.w");
}

Test(test_path, selections_of_selections)
{
    define();
    cr_assert_eq(run_text(&r, "s = select(select(net, \"*.w\"), \"list.*\")"),
                 TL_OK);
    expect_paths(run_global(&r, "s"), TL_CELLS_PARAM, "list.0.w list.2.0.w");
}

Test(test_path, keys_with_dots_are_refused)
{
    define();
    cr_assert_neq(run_text(&r, "bad = params({\"a.b\": W()})"), TL_OK);
    cr_expect_eq(run_code(&r), TL_E0210);
}

Test(test_path, deep_nesting_is_refused)
{
    define();
    cr_assert_neq(run_text(&r, "x = W()\n"
                               "for i in range(1100):\n"
                               "    x = [x]\n"
                               "params(x)\n"),
                  TL_OK);
    cr_expect_eq(run_code(&r), TL_E0224);
}

Test(test_path, modules_below_are_distinct)
{
    tl_module **below;
    size_t n;

    define();
    cr_assert_eq(tl_modules_below(&r.ev, run_global(&r, "net"), &below, &n),
                 TL_OK);
    cr_expect_eq(n, 6); /* net, a, and four in list and dict */
    tl_free(below);
}
