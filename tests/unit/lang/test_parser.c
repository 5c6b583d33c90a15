/* test_parser.c - the grammar: what each form parses to. */
#include <criterion/criterion.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/mem.h"
#include "tests/unit/lang/front.h"

typedef struct form {
    const char *text;
    const char *tree;
} form;

static void check(const form *forms, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const char *tree;
        front f;

        front_init(&f);
        front_parse(&f, forms[i].text);
        tree = front_tree(&f, false);
        cr_expect_str_eq(tree, forms[i].tree, "`%s` is\n%s\nnot\n%s",
                         forms[i].text, tree, forms[i].tree);
        front_fini(&f);
    }
}

#define CHECK(forms) check(forms, sizeof(forms) / sizeof((forms)[0]))

Test(parser, operators_bind_as_in_python)
{
    static const form forms[] = {
        {"a + b * c",
         "(expr_stmt (binary + (name a) (binary * (name b) (name c))))"},
        {"a - b - c",
         "(expr_stmt (binary - (binary - (name a) (name b)) (name c)))"},
        {"-a ** -b",
         "(expr_stmt (unary - (binary ** (name a) (unary - (name b)))))"},
        {"a ** b ** c",
         "(expr_stmt (binary ** (name a) (binary ** (name b) (name c))))"},
        {"+a @ b // c % d",
         "(expr_stmt (binary % (binary // (binary @ (unary + (name a)) "
         "(name b)) (name c)) (name d)))"},
        {"not a and b or c",
         "(expr_stmt (logic or (logic and (unary not (name a)) (name b)) "
         "(name c)))"},
        {"a if b else c if d else e",
         "(expr_stmt (cond (name b) (name a) (cond (name d) (name c) "
         "(name e))))"},
        {"x |> f |> g",
         "(expr_stmt (pipe (pipe (name x) (name f)) (name g)))"},
        {"x @ y as f32[]",
         "(expr_stmt (as (binary @ (name x) (name y)) (type_tensor f32 "
         "[])))"},
        {"fn(x, y=1) => x + y",
         "(expr_stmt (lambda [(param x 0 - -) (param y 0 - (int 1))] "
         "(binary + (name x) (name y))))"},
    };

    CHECK(forms);
}

Test(parser, comparisons_chain_unless_parenthesised)
{
    static const form forms[] = {
        {"a < b <= c",
         "(expr_stmt (compare < <= [(name a) (name b) (name c)]))"},
        {"(a < b) < c",
         "(expr_stmt (compare < [(compare < [(name a) (name b)]) "
         "(name c)]))"},
        {"a not in b != c",
         "(expr_stmt (compare not in != [(name a) (name b) (name c)]))"},
        {"not a in b",
         "(expr_stmt (unary not (compare in [(name a) (name b)])))"},
    };

    CHECK(forms);
}

Test(parser, calls_and_indices)
{
    static const form forms[] = {
        {"f(1, *xs, k=2, **kw,)",
         "(expr_stmt (call (name f) [(int 1) (star (name xs)) (keyword k "
         "(int 2)) (double_star (name kw))]))"},
        {"a.b.c(1)[2].module",
         "(expr_stmt (attr (index (call (attr (attr (name a) b) c) [(int "
         "1)]) [(int 2)]) module))"},
        {"x[0, 1:, ::2, ..., none, a:b:c]",
         "(expr_stmt (index (name x) [(int 0) (slice (int 1) - -) (slice - - "
         "(int 2)) (ellipsis) (none) (slice (name a) (name b) (name c))] "
         "tuple))"},
        {"x[a,]", "(expr_stmt (index (name x) [(name a)] tuple))"},
        {"x[a]", "(expr_stmt (index (name x) [(name a)]))"},
        {"xs.append(1)",
         "(expr_stmt (call (attr (name xs) append) [(int 1)]) unused)"},
    };

    CHECK(forms);
}

Test(parser, displays_and_comprehensions)
{
    static const form forms[] = {
        {"()", "(expr_stmt (tuple []))"},
        {"(a)", "(expr_stmt (name a))"},
        {"(a,)", "(expr_stmt (tuple [(name a)]))"},
        {"a, *b", "(expr_stmt (tuple [(name a) (star (name b))]))"},
        {"[a, *b,]", "(expr_stmt (list [(name a) (star (name b))]))"},
        {"{}", "(expr_stmt (dict []))"},
        {"{1: a, **d,}",
         "(expr_stmt (dict [(pair (int 1) (name a)) (double_star (name "
         "d))]))"},
        {"[a for a, (b, *c) in x if b if c for d in a]",
         "(expr_stmt (list_comp [(comp_for (name x) (tuple [(name a) (tuple "
         "[(name b) (star (name c))])])) (comp_if (name b)) (comp_if (name "
         "c)) (comp_for (name a) (name d))] (name a)))"},
        {"{k: v for k, v in d}",
         "(expr_stmt (dict_comp [(comp_for (name d) (tuple [(name k) (name "
         "v)]))] (name k) (name v)))"},
    };

    CHECK(forms);
}

Test(parser, literals)
{
    static const form forms[] = {
        {"1_000, 0xff, 0o17, 0b101",
         "(expr_stmt (tuple [(int 1000) (int 255) (int 15) (int 5)]))"},
        {"9223372036854775807, -9223372036854775808",
         "(expr_stmt (tuple [(int 9223372036854775807) (int "
         "-9223372036854775808)]))"},
        {"1.5, 1., .5, 1e-5, 1_0.0_1E+2",
         "(expr_stmt (tuple [(float 1.5) (float 1) (float 0.5) (float "
         "1.0000000000000001e-05) (float 1001)]))"},
        {"true, false, none, ...",
         "(expr_stmt (tuple [(bool true) (bool false) (none) "
         "(ellipsis)]))"},
        {"0xe+1", "(expr_stmt (binary + (int 14) (int 1)))"},
        {"'a', \"b\", '\"'",
         "(expr_stmt (tuple [(str \"a\") (str \"b\") (str \"\\\"\")]))"},
        {"\"\"\"a\"b\n\"\"\"", "(expr_stmt (str \"a\\\"b\\x0a\"))"},
        {"\"\\n\\t\\\\\\x41\\u{e9}\\u00e9\\0\\\na\"",
         "(expr_stmt (str \"\\x0a\\x09\\\\A\xc3\xa9\xc3\xa9\\x00a\"))"},
    };

    CHECK(forms);
}

Test(parser, f_strings)
{
    static const form forms[] = {
        {"f\"\"", "(expr_stmt (fstring []))"},
        {"f\"a{{b}}c\"", "(expr_stmt (fstring [(str \"a{b}c\")]))"},
        {"f\"{x:>{w}.3f} |\"",
         "(expr_stmt (fstring [(fpart (name x) [(str \">\") (fpart (name w) "
         "[]) (str \".3f\")]) (str \" |\")]))"},
        {"f\"{d[\"k\"]}{ {1: 2}[1] }\"",
         "(expr_stmt (fstring [(fpart (index (name d) [(str \"k\")]) []) "
         "(fpart (index (dict [(pair (int 1) (int 2))]) [(int 1)]) [])]))"},
        {"f'{f\"{x}\"}'",
         "(expr_stmt (fstring [(fpart (fstring [(fpart (name x) [])]) "
         "[])]))"},
        {"f\"\"\"a\n{x\n+ 1}\"b\"\"\"",
         "(expr_stmt (fstring [(str \"a\") (str \"\\x0a\") (fpart (binary + "
         "(name x) (int 1)) []) (str \"\\\"\") (str \"b\")]))"},
        {"f\"{x:'^9}{a[1:2]}\"",
         "(expr_stmt (fstring [(fpart (name x) [(str \"'\") (str \"^9\")]) "
         "(fpart (index (name a) [(slice (int 1) (int 2) -)]) [])]))"},
    };

    CHECK(forms);
}

Test(parser, assignments)
{
    static const form forms[] = {
        {"a = b = 1", "(assign [(name a) (name b)] (int 1))"},
        {"a, (b, *c), d.e, f[0].g = x",
         "(assign [(tuple [(name a) (tuple [(name b) (star (name c))]) (attr "
         "(name d) e) (attr (index (name f) [(int 0)]) g)])] (name x))"},
        {"x: f32[B, _] = y",
         "(decl (name x) (type_tensor f32 [(name B) (dim_any)]) (name y))"},
        {"x += 1", "(aug + (name x) (int 1))"},
        {"x.y[0] //= 2",
         "(aug // (index (attr (name x) y) [(int 0)]) (int 2))"},
    };

    CHECK(forms);
}

Test(parser, statements)
{
    static const form forms[] = {
        {"if a: b\nelif c:\n    d\n    e\nelse: f\n",
         "(if [(arm (name a) (block [(expr_stmt (name b))])) (arm (name c) "
         "(block [(expr_stmt (name d)) (expr_stmt (name e))]))] (block "
         "[(expr_stmt (name f))]))"},
        {"for a, b in c: pass",
         "(for (name c) (tuple [(name a) (name b)]) (block [(pass)]))"},
        {"while a: break", "(while (name a) (block [(break)]))"},
        {"with t = f(), g: pass",
         "(with [(with_item (call (name f) []) (name t)) (with_item (name g) "
         "-)] (block [(pass)]))"},
        {"try: a\ncatch e: raise e",
         "(try (block [(expr_stmt (name a))]) (name e) (block [(raise (name "
         "e))]))"},
        {"assert a, \"m\"", "(assert (name a) (str \"m\"))"},
        {"import a.b as c, d",
         "(import [(import_name a.b c) (import_name d -)])"},
        {"from a.b import (c as d, e,)",
         "(from a.b [(from_name c d) (from_name e -)])"},
        {"test \"t\": assert true",
         "(test \"t\" (block [(assert (bool true) -)]))"},
        {"g = grad loss wrt net, a.b with s:\n    loss = f(net)\n",
         "(assign [(name g)] (grad (name s) [(name net) (attr (name a) b)] "
         "(block [(assign [(name loss)] (call (name f) [(name net)]))]) "
         "(name loss)))"},
        {"grad = wrt + test\nmodule, param = record, buffer",
         "(assign [(name grad)] (binary + (name wrt) (name test))) (assign "
         "[(tuple [(name module) (name param)])] (tuple [(name record) "
         "(name buffer)]))"},
    };

    CHECK(forms);
}

Test(parser, definitions)
{
    static const form forms[] = {
        {"fn f(a, b: int = 1, *xs: int, k=2, **kw) -> int where a > 0: pass",
         "(fn [] f [(param a 0 - -) (param b 0 (type_name (name int) []) "
         "(int 1)) (param xs 1 (type_name (name int) []) -) (param k 0 - "
         "(int 2)) (param kw 2 - -)] (type_name (name int) []) [(compare > "
         "[(name a) (int 0)])] (block [(pass)]) -)"},
        {"fn f(x) = x\nbackward dy:\n    return dy\n",
         "(fn [] f [(param x 0 - -)] - [] (name x) (backward [(name dy)] "
         "(block [(return (name dy))])))"},
        {"@compile(mode=\"default\")\n@main\nfn f(): pass",
         "(fn [(decorator compile [(keyword mode (str \"default\"))]) "
         "(decorator main [])] f [] - [] (block [(pass)]) -)"},
        {"module M(d: int):\n    param w: f32[d] = f\n    buffer b: i64[]\n"
         "    n: int = d\n    fn forward(x) = x\n",
         "(module [] M [(param d 0 (type_name (name int) []) -)] (block "
         "[(cell (name w) (type_tensor f32 [(name d)]) (name f)) (cell "
         "buffer (name b) (type_tensor i64 []) -) (decl (name n) (type_name "
         "(name int) []) (name d)) (fn [] forward [(param x 0 - -)] - [] "
         "(name x) -)]))"},
        {"record R:\n    \"\"\"doc\"\"\"\n    a: int\n    b: str = \"\"\n",
         "(record [] R [(param a 0 (type_name (name int) []) -) (param b 0 "
         "(type_name (name str) []) (str \"\"))])"},
    };

    CHECK(forms);
}

Test(parser, types)
{
    static const form forms[] = {
        {"x: dict[str, list[fn(int, T?) -> (a.B, f32)]] = y",
         "(decl (name x) (type_name (name dict) [(type_name (name str) []) "
         "(type_name (name list) [(type_fn [(type_name (name int) []) "
         "(type_opt (type_name (name T) []))] (type_tuple [(type_name (attr "
         "(name a) B) []) (type_tensor f32 [] any)]))])]) (name y))"},
        {"x: real[2 * B + n // 2, (H - 1) % s, net.d, ...] = y",
         "(decl (name x) (type_tensor real [(binary + (binary * (int 2) "
         "(name B)) (binary // (name n) (int 2))) (binary % (binary - (name "
         "H) (int 1)) (name s)) (attr (name net) d) (dim_rest)]) (name y))"},
        {"x: f32[*S, D]? = y",
         "(decl (name x) (type_opt (type_tensor f32 [(dim_pack S) (name "
         "D)])) (name y))"},
        {"x: bool = y",
         "(decl (name x) (type_name (name bool) []) (name y))"},
        {"x: bool[] = y", "(decl (name x) (type_tensor bool []) (name y))"},
        {"fn f() -> none: pass",
         "(fn [] f [] (type_name (none) []) [] (block [(pass)]) -)"},
        {"x: grads[M] = y",
         "(decl (name x) (type_name (name grads) [(type_name (name M) [])]) "
         "(name y))"},
    };

    CHECK(forms);
}

Test(parser, newlines_vanish_in_brackets_and_behind_backslashes)
{
    static const form forms[] = {
        {"f(\n  1,\n\n# c\n 2)",
         "(expr_stmt (call (name f) [(int 1) (int 2)]))"},
        {"a + \\\n  b", "(expr_stmt (binary + (name a) (name b)))"},
        {"\xef\xbb\xbfif a:\r\n    b\r\n\r\n  # odd\r\n    c\r\nd\r\n",
         "(if [(arm (name a) (block [(expr_stmt (name b)) (expr_stmt (name "
         "c))]))] -) (expr_stmt (name d))"},
        {"", ""},
        {"# nothing", ""},
        {"\n\n   \n", ""},
    };

    CHECK(forms);
}

/* ---- whole programs ------------------------------------------------------ */

static const char *const programs[] = {"bert", "ddp", "everything", "fused",
                                       "gpt2", "mlp", "resnet",     "syntax"};

typedef struct spans {
    const tl_source *source;
    const tl_ast *parent;
} spans;

static bool check_span(void *arg, tl_ast *node)
{
    const spans *s = arg;
    spans below = {s->source, node};
    const char *text = s->source->text + node->span.start;
    size_t len = node->span.end - node->span.start;

    cr_assert_geq(node->span.start, s->parent->span.start, "%s",
                  tl_ast_info_get(node->kind)->name);
    cr_assert_leq(node->span.end, s->parent->span.end, "%s in %s",
                  tl_ast_info_get(node->kind)->name,
                  tl_ast_info_get(s->parent->kind)->name);
    if (node->kind == TL_AST_NAME) {
        const tl_sym *name = TL_AST(name, node)->name;

        cr_assert_eq(len, name->len);
        cr_assert_eq(memcmp(text, name->text, len), 0);
    } else if (node->kind == TL_AST_INT) {
        cr_assert_eq(strtoll(text, NULL, 0), TL_AST(int, node)->value);
    } else if (node->kind != TL_AST_BLOCK && node->kind != TL_AST_TUPLE) {
        cr_assert_gt(len, 0, "%s", tl_ast_info_get(node->kind)->name);
    }
    return tl_ast_children(node, check_span, &below);
}

Test(parser, programs_parse_to_their_trees)
{
    for (size_t i = 0; i < sizeof(programs) / sizeof(programs[0]); i++) {
        char path[256];
        size_t len;
        char *text, *want;
        tl_buf tree;
        spans s;
        front f;

        snprintf(path, sizeof(path), "tests/golden/parse/%s.tl", programs[i]);
        text = front_file(path, &len);
        snprintf(path, sizeof(path), "tests/golden/parse/%s.ast",
                 programs[i]);
        want = front_file(path, &len);
        front_init(&f);
        front_parse(&f, text);
        cr_assert_eq(f.status, TL_OK, "%s: %s", programs[i],
                     front_errors(&f));
        tl_buf_init(&tree);
        tl_ast_print(&f.unit->root->base, false, &tree);
        cr_expect_str_eq(tl_buf_str(&tree), want, "%s", path);
        s = (spans){tl_sources_get(&f.sources, 1), &f.unit->root->base};
        tl_ast_children(&f.unit->root->base, check_span, &s);
        tl_buf_fini(&tree);
        front_fini(&f);
        free(want);
        free(text);
    }
}

/* Fail each allocation of parsing and resolving `text` in turn, and with
 * `sticky` all later ones: the failure is reported, and nothing is left. */
static void fail_each(const char *text, size_t len, bool sticky)
{
    bool done = false;

    for (uint64_t n = 1; !done; n++) {
        int64_t before = tl_mem_live_blocks();
        front f;

        front_init(&f);
        f.status = TL_OK;
        tl_sources_add(&f.sources, "t.tl", text, len);
        tl_mem_fail_at(n, sticky);
        f.status = tl_parse(&f.unit, &f.lang, 1, &f.diag);
        if (f.status == TL_OK) {
            tl_builtins none = front_builtins;

            f.status =
                tl_resolve(f.unit, &f.lang, &f.globals, &none, &f.diag);
        }
        tl_mem_fail_at(0, false);
        done = f.status != TL_ERR_MEMORY;
        cr_expect(done || f.diag.nerrors > 0);
        cr_expect(!done || f.status == TL_OK, "%s", front_errors(&f));
        front_fini(&f);
        cr_assert_eq(tl_mem_live_blocks(), before);
    }
}

Test(parser, every_allocation_may_fail)
{
    size_t len;
    char *text = front_file("tests/golden/parse/everything.tl", &len);

    fail_each(text, len, false);
    fail_each(text, len, true);
    free(text);
}

/* Statements before it move what a module allocates through the places of a
 * chunk of the arena, so that each of its parts is once the one that needs
 * another chunk. */
Test(parser, every_allocation_of_a_module_may_fail_wherever_it_lies)
{
    static const char module[] =
        "module M(n: int):\n    param w: f32[n] = 0\n"
        "    fn forward(x) = x * w\n";
    static char text[4000];

    for (size_t i = 0; i < 400; i++) {
        size_t len = 0;

        for (size_t k = 0; k < i; k++) {
            memcpy(text + len, "pass\n", 5);
            len += 5;
        }
        memcpy(text + len, module, sizeof(module));
        fail_each(text, len + strlen(module), false);
    }
}

/* A text that ends where memory did may end inside a string. */
Test(parser, a_tree_without_memory_is_not_laid_out)
{
    front f;
    uint64_t n = 0;
    bool failed = true;

    front_init(&f);
    front_parse(&f, "print(\"tab\\t quote\\\" back\\\\\", [\"a\\n\"], "
                    "{\"k\": \"nl\\n\"}, \"more text, so that it grows\")\n");
    while (failed) {
        tl_buf out;

        tl_buf_init(&out);
        tl_mem_fail_at(++n, true);
        tl_ast_print(&f.unit->root->base, false, &out);
        tl_mem_fail_at(0, false);
        failed = out.failed;
        cr_expect_eq(failed ? out.len : 0, 0, "allocation %d", (int)n);
        tl_buf_fini(&out);
    }
    cr_expect_gt(n, 2);
    front_fini(&f);
}
