/* test_syntax.c - what the parser says about wrong texts: code, place, found,
 * wanted, help; one message a mistake; several in one run. */
#include <criterion/criterion.h>

#include <stdlib.h>
#include <string.h>

#include "tests/unit/lang/front.h"

#define CHECK(cases)                                                         \
    front_check(cases, sizeof(cases) / sizeof((cases)[0]), false)

Test(syntax, brackets)
{
    static const front_case cases[] = {
        {"a = 1\nb = 2\nc = (1,\n", "E0101 3:5 `(` opened at 3:5 is never",
         0},
        {"x = f(1, 2\nreturn_ = 3\n", "E0101 1:6", 0},
        {"x = f(1, [2\nwhile x: pass\n", "E0101 1:6", 0},
        {"x = f([1)\n", "E0101 1:7 `[` opened at 1:7 is never closed", 0},
        {"x = 1}\n", "E0103 1:6 nothing is open for this `}` to close", 0},
        {"x = [1)\ny = 2\n",
         "E0103 1:7 `)` cannot close the `[` opened at 1:5", 0},
        {"f\"a}\"", "E0103 1:4 nothing is open", "`}}`"},
        {"f\"{x\"", "E0101 1:3 `{` of the f-string", "`{{`"},
        {"f\"{x\" + \"b\"\n", "E0101 1:3", NULL},
        {"f\"{x\ny = 1\n", "E0101 1:3", NULL},
        {"x = [a,\n     b\ny = 2\nz = 3\n", "E0101 1:5", NULL},
        {"f\"{x:\"\n", "E0101 1:3", NULL},
        {"f\"\"\"{x", "E0101 1:5 `{` opened at 1:5 is never closed", NULL},
    };

    CHECK(cases);
}

Test(syntax, strings)
{
    static const front_case cases[] = {
        {"a\nb = \"x\nc = 1\n",
         "E0102 2:5 string opened at 2:5 has no closing quote", NULL},
        {"a = '", "E0102 1:5", NULL},
        {"a = \"x\\", "E0102 1:5", NULL},
        {"\"\"\"a\n\nb", "E0102 1:1", NULL},
        {"f\"a\n", "E0102 1:1", NULL},
        {"f'''a\n\n", "E0102 1:1", NULL},
        {"\"a\\qb\"", "E0115 1:3 unknown escape `\\q`", "\\n \\t \\r"},
        {"\"\\x4\"", "E0115 1:2", NULL},
        {"\"\\u{110000}\"", "E0115 1:2", NULL},
        {"f\"{x}\\d\"", "E0115 1:6", NULL},
        {"\"a\" \"b\"", "E0100 1:5 found a string", "joined by `+`"},
    };

    CHECK(cases);
}

Test(syntax, bytes)
{
    static const front_case cases[] = {
        {"x = \"\xc3(\"", "E0106 1:6 bad UTF-8 byte 0xC3 at offset 5", NULL},
        {"x = 1 # \xff", "E0106 1:9 bad UTF-8 byte 0xFF at offset 8", NULL},
        {"x\x01", "E0105 1:2 byte 0x01 at offset 1 is not allowed", NULL},
        {"x\ry", "E0105 1:2 byte 0x0D", NULL},
        {"x = $", "E0100 1:5 `$` has no meaning", NULL},
        {"p\xd0\xb0ram = 1",
         "E0113 1:2 `\xd0\xb0` (U+0430) is not allowed in a name",
         "looks like U+0061 (`a`)"},
        {"\xc3\xa9t\xc3\xa9 = 1", "E0113 1:1", "Greek"},
        {"x = \xe2\x80\x9c"
         "a\xe2\x80\x9d",
         "E0113 1:5", "(`\"`)"},
        {"x \xe2\x89\xa4 y", "E0113 1:3", "`<=`"},
    };

    CHECK(cases);
}

Test(syntax, a_nul_byte_is_no_end)
{
    front f;
    uint32_t file;

    front_init(&f);
    file = tl_sources_add(&f.sources, "t.tl", "x = 1\n\0y", 8);
    f.status = tl_parse(&f.unit, &f.lang, file, &f.diag);
    cr_assert_eq(f.status, TL_ERR_REJECTED);
    cr_assert_str_eq(front_errors(&f),
                     "E0105 2:1 byte 0x00 at offset 6 is not allowed");
    front_fini(&f);
}

Test(syntax, greek_letters_are_letters)
{
    front f;

    front_init(&f);
    front_parse(&f, "\xce\xb1_1 = \xce\xa3 * x");
    cr_assert_eq(f.status, TL_OK, "%s", front_errors(&f));
    front_fini(&f);
}

Test(syntax, numbers)
{
    static const front_case cases[] = {
        {"99999999999999999999",
         "E0108 1:1 integer 99999999999999999999 does not fit 64 bits",
         "1e20"},
        {"0b12", "E0109 1:4 malformed number `0b12`", NULL},
        {"0xG", "E0109 1:3 malformed", NULL},
        {"0x", "E0109 1:2 malformed", NULL},
        {"1.2.3", "E0109 1:4 malformed number `1.2.3`", "one point"},
        {"1e", "E0109 1:2", NULL},
        {"1e+x", "E0109 1:2", NULL},
        {"1__0", "E0109 1:2", NULL},
        {"1_", "E0109 1:2", NULL},
        {"12ab", "E0109 1:3", NULL},
        {"007", "E0109 1:1", "0o17"},
    };

    CHECK(cases);
}

Test(syntax, indentation)
{
    static const front_case cases[] = {
        {"if a:\nb\n", "E0104 2:1 wanted an indented block", "4 spaces"},
        {"if a:", "E0104 1:6 the block that should follow `:` is missing",
         NULL},
        {"a\n  b\n  c\nd\n", "E0104 2:3 this line is indented", NULL},
        {"if a:\n    b\n  c\n", "E0104 3:3 this line starts at column 3",
         "column 1"},
        {"if a:\n\tb\n\tc\n", "E0107 2:1 tab in indentation", "spaces"},
    };

    CHECK(cases);
}

Test(syntax, keywords_are_no_names)
{
    static const front_case cases[] = {
        {"for = 3", "E0112 1:1 `for` is a keyword", "`for_`"},
        {"fn if(): pass", "E0112 1:4 `if` is a keyword", "`if_`"},
        {"f(in=3)", "E0112 1:3 `in` is a keyword", NULL},
        {"x.from", "E0112 1:3 `from` is a keyword", NULL},
        {"fn f(x, as): pass", "E0112 1:9", NULL},
    };

    CHECK(cases);
}

Test(syntax, targets)
{
    static const front_case cases[] = {
        {"f(x) = 3", "E0114 1:1 cannot assign to `f(x)`", "fn f(x) = ..."},
        {"a + b = 3", "E0114 1:1 cannot assign to `a + b`", NULL},
        {"1 = x", "E0114 1:1", NULL},
        {"a == b = c", "E0114 1:1", "`==` compares"},
        {"a, f() = c", "E0114 1:4", NULL},
        {"a, b += c", "E0114 1:1 `+=` has one target", NULL},
        {"*a, *b = c", "E0114 1:5 two starred", NULL},
        {"f() += 1", "E0114 1:1", NULL},
        {"true = 1", "E0114 1:1", NULL},
        {"x as f32[] = 1", "E0114 1:1", "declared by"},
        {"[a, 1] = x", "E0114 1:5", NULL},
        {"(*a) = x", "E0100 1:2", NULL},
    };

    CHECK(cases);
}

Test(syntax, habits_of_other_languages)
{
    static const front_case cases[] = {
        {"def f(x):\n    y\n", "E0117 1:1 `def`", "`fn name(parameters):`"},
        {"class A(B):\n    x = 1\n    y = 2\n", "E0117 1:1 `class`",
         "module Name"},
        {"f = lambda x: x", "E0117 1:5 `lambda`", "fn(x) => ..."},
        {"f = lambda: x", "E0117 1:5 `lambda`", NULL},
        {"loss.backward()", "E0117 1:6 `.backward()`", "grad loss wrt net"},
        {"a & b", "E0117 1:3 `&`", "`and`"},
        {"(a > 0) | (b > 0)", "E0117 1:9 `|`", "`or`"},
        {"~a", "E0117 1:1 `~`", "`not`"},
        {"a && b", "E0117 1:3 `&&`", "`and`"},
        {"!a", "E0117 1:1 `!`", "`not`"},
        {"a ^ b", "E0117 1:3 `^`", "`**`"},
        {"a << 2", "E0117 1:3 `<<`", "power of two"},
        {"a is none", "E0117 1:3 `is`", "`==`"},
        {"a is not none", "E0117 1:3 `is not`", "`!=`"},
        {"i++", "E0117 1:2 `++`", "`x += 1`"},
        {"i--  # c", "E0117 1:2 `--`", "`x -= 1`"},
        {"if a:\n    b\nelse if c:\n    d\n", "E0117 3:1 `else if`",
         "`elif`"},
        {"a = 1; b = 2;\nc = 3;", "E0117 1:6 `;`", "one statement a line"},
        {"async fn f(): pass", "E0117 1:1 `async`", NULL},
        {"try:\n    a\nexcept E as e:\n    b\n", "E0117 3:1 `except`",
         "`catch e:`"},
        {"try:\n    a\nexcept:\n    b\n", "E0117 3:1 `except`", NULL},
        {"x = a ? b : c", "E0117 1:7 `c ? a : b`", "if c else"},
        {"from a import *", "E0117 1:15 `import *`", NULL},
        {"print \"x\"", "E0117 1:1 `print`", "print(x)"},
        {"del x", "E0117 1:1 `del`", NULL},
        {"global x", "E0117 1:1 `global`", NULL},
        {"if a {\n}\n", "E0117 1:6 `{`", "indented"},
        {"f(x for x in y)", "E0117 1:3", "[... for"},
        {"sum((x for x in y))", "E0117 1:5", "[... for"},
        {"{1, 2}", "E0117 1:1 tlang has no sets", NULL},
        {"with f() as g: pass", "E0117 1:6", "with name = value"},
        {"if (x := 3): pass", "E0117 1:7 `:=`", NULL},
        {"x = new A()", "E0117 1:5 `new`", NULL},
        {"finally:\n    x\n", "E0117 1:1 `finally`", NULL},
        {"while x {\n}\n", "E0117 1:9 `{`", NULL},
        {"fn f() {\n}\n", "E0117 1:8 `{`", NULL},
        {"for x in y {\n}\n", "E0117 1:12 `{`", NULL},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        front f;

        front_init(&f);
        front_parse(&f, cases[i].text);
        cr_expect_eq(
            strncmp(front_errors(&f), cases[i].error, strlen(cases[i].error)),
            0, "`%s` gives\n%s", cases[i].text, front_errors(&f));
        cr_expect(!cases[i].help || strstr(front_errors(&f), cases[i].help),
                  "`%s` gives\n%s", cases[i].text, front_errors(&f));
        front_fini(&f);
    }
}

Test(syntax, found_and_wanted)
{
    static const front_case cases[] = {
        {"x = 1 +",
         "E0100 1:8 found the end of the line, wanted an "
         "expression",
         NULL},
        {"f(a b)", "E0100 1:5 found `b`, wanted ", NULL},
        {"y = a b",
         "E0100 1:7 found `b`, wanted the end of the line or an "
         "operator",
         NULL},
        {"fn (x): pass", "E0100 1:7 found `:`", NULL},
        {"fn f(x: ): pass", "E0100 1:9 found `)`, wanted a type", NULL},
        {"import", "E0100 1:7 found the end of the line, wanted a name",
         NULL},
        {"if x = 3: pass", "E0100 1:6 found `=` in a condition, wanted `==`",
         "compares"},
        {"@compile\nx = 1\n", "E0217 2:1 an annotation needs a function", NULL},
        {"record R:\n    a: int\n    x = 1\n",
         "E0100 3:5 a record holds fields", NULL},
        {"record R:\n    fn f(): pass\n", "E0100 2:5", "`module`"},
        {"f(a=1, 2)", "E0100 1:8 a positional argument", NULL},
        {"f(a=1, a=2)", "E0205 1:8 argument `a` is given twice", NULL},
        {"fn f(a=1, b): pass", "E0100 1:11 `b` has no default", NULL},
        {"fn f(**k, a): pass", "E0100 1:11 nothing can stand behind `**`",
         NULL},
        {"fn f(*a, *b): pass", "E0100 1:10", NULL},
        {"x: list[3] = y", "E0100 1:9 a type is wanted here", NULL},
        {"x: f32[list[int]] = y", "E0100 1:8 a size is wanted", NULL},
        {"x: f32[_ + 1] = y", "E0100 1:8 `_` stands alone", NULL},
        {"x: f32[..., *S] = y", "E0100 1:13 a shape holds one", NULL},
        {"x: f32[-1] = y", "E0306 1:8", NULL},
        {"x: dict[int] = y", "E0100 1:4 `dict` takes 2 types, found 1",
         "dict[K, V]"},
        {"x: int[3] = y", "E0100 1:", "i64[B, T]"},
        {"fn f(x) -> : pass", "E0100 1:12 found `:`, wanted a type", NULL},
        {"x[1", "E0101 1:2", NULL},
        {"x: dict[int,] = y", "E0100 1:13 found `]`, wanted a type", NULL},
        {"else: x", "E0116 1:1 `else` stands alone: wanted `if`", NULL},
        {"f\"{}\"", "E0100 1:4 found `}`, wanted an expression", NULL},
        {"f\"{x y}\"", "E0100 1:6 found `y`, wanted ", NULL},
        {"try:\n    x\ny\n", "E0100 3:1 found `y`, wanted `catch`", NULL},
        {"x = {1: 2, 3}", "E0100 1:13 found `}`, wanted `:`", NULL},
        {"grad x: y", "E0100 1:7 found `:`, wanted `wrt`", NULL},
        {"x = \"a\" b\"c\"", "E0100 1:9 found `b`", NULL},
        {"x = 1.5 \"abc\"", "E0100 1:9 found a string", NULL},
        {"x = *y", "E0100 1:5 `*` spreads", NULL},
    };

    CHECK(cases);
}

Test(syntax, nesting_stops_at_a_thousand)
{
    static const struct {
        const char *open, *mid, *close;
        int n;
    } rows[] = {
        {"(", "1", ")", 10000},      {"[", "", "]", 10000},
        {"-", "1", "", 100000},      {"not ", "a", "", 100000},
        {"a ** ", "a", "", 100000},  {"a + ", "a", "", 100000},
        {"fn() => ", "a", "", 5000}, {"1 if a else ", "a", "", 5000},
        {"f\"{", "1", "}\"", 2000},  {"a", "[0]", "", 0},
        {"", "a", ".b", 100000},     {"", "a", "[0]", 100000},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        tl_buf text;
        front f;

        if (rows[i].n == 0) {
            continue;
        }
        tl_buf_init(&text);
        tl_buf_puts(&text, "x = ");
        for (int k = 0; k < rows[i].n; k++) {
            tl_buf_puts(&text, rows[i].open);
        }
        tl_buf_puts(&text, rows[i].mid);
        for (int k = 0; k < rows[i].n; k++) {
            tl_buf_puts(&text, rows[i].close);
        }
        front_init(&f);
        front_parse(&f, tl_buf_str(&text));
        cr_expect_eq(f.status, TL_ERR_REJECTED);
        cr_expect_eq(strncmp(front_errors(&f), "E0110 1:", 8), 0, "%s: %s",
                     rows[i].open, front_errors(&f));
        cr_expect_null(strchr(front_errors(&f), '\n'));
        front_fini(&f);
        tl_buf_fini(&text);
    }
}

static tl_status nested_ifs(int n)
{
    tl_status status;
    tl_buf text;
    front f;

    tl_buf_init(&text);
    for (int i = 0; i < n; i++) {
        tl_buf_printf(&text, "%*sif true:\n", i, "");
    }
    tl_buf_printf(&text, "%*spass\n", n, "");
    front_init(&f);
    status = front_resolve(&f, tl_buf_str(&text));
    front_fini(&f);
    tl_buf_fini(&text);
    return status;
}

Test(syntax, blocks_nest_to_the_limit)
{
    cr_expect_eq(nested_ifs(990), TL_OK);
    cr_expect_eq(nested_ifs(1100), TL_ERR_REJECTED);
}

Test(syntax, several_mistakes_give_one_message_each)
{
    front f;

    front_init(&f);
    front_parse(&f, "x = (1\n"
                    "return_ = x\n"
                    "def f(x):\n"
                    "    y = 1 +\n"
                    "    return y\n"
                    "z = \"abc\n"
                    "if z = 3:\n"
                    "    w = 2 2\n"
                    "elif y:\n"
                    "    pass\n"
                    "else:\n"
                    "    pass\n"
                    "good = 1\n"
                    "for = 2\n");
    cr_assert_str_eq(
        front_errors(&f),
        "E0101 1:5 `(` opened at 1:5 is never closed\n"
        "E0117 3:1 `def` is not a form of tlang; help: write `fn "
        "name(parameters):`\n"
        "E0100 4:12 found the end of the line, wanted an expression\n"
        "E0102 6:5 string opened at 6:5 has no closing quote\n"
        "E0100 7:6 found `=` in a condition, wanted `==`; help: `==` "
        "compares; an assignment is a statement\n"
        "E0100 8:11 found `2`, wanted the end of the line or an operator\n"
        "E0112 14:1 `for` is a keyword; help: another name is free: "
        "`for_`");
    front_fini(&f);
}

/* ---- entries of the REPL ------------------------------------------------- */

static int entry(const char *text)
{
    int result;
    front f;

    front_init(&f);
    front_entry(&f, text);
    result = f.status != TL_OK    ? 'e'
             : f.unit->incomplete ? 'i'
             : f.unit->open_block ? 'o'
             : f.unit->quiet      ? 'q'
                                  : 'c';
    cr_expect_eq(f.diag.nerrors > 0, result == 'e', "`%s`", text);
    cr_expect(result == 'e' || result == 'i' || f.unit->root);
    front_fini(&f);
    return result;
}

Test(syntax, an_entry_knows_whether_it_is_complete)
{
    static const struct {
        const char *text;
        int result;
    } rows[] = {
        {"", 'c'},
        {"x = 1", 'c'},
        {"x = (1,\n", 'i'},
        {"f(a, [1,", 'i'},
        {"\"\"\"abc\n", 'i'},
        {"f\"\"\"a {b\n", 'i'},
        {"f\"a {b", 'e'},
        {"\"abc", 'e'},
        {"if x:", 'i'},
        {"if x:\n", 'i'},
        {"if x:\n    y = 1\n", 'o'},
        {"if x:\n    y = 1\n\n", 'c'},
        {"if x: y = 1\n", 'o'},
        {"fn f(x):\n    return x", 'o'},
        {"@compile\n", 'i'},
        {"try:\n    x\n", 'i'},
        {"x = \n", 'e'},
        {"x = )\nif y:\n", 'e'},
        {"module M:\n", 'i'},
        {"x;", 'q'},
        {"x;  # c\n\n", 'q'},
        {"x; y", 'e'},
        {"g = grad l wrt x:\n    l = x\n", 'o'},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        cr_expect_eq(entry(rows[i].text), rows[i].result, "`%s` is %c",
                     rows[i].text, entry(rows[i].text));
    }
}
