/* test_bi_str.c - methods of str, against what Python 3.11 gives. */
#include <criterion/criterion.h>
#include <string.h>

#include "interp/builtin.h"
#include "interp/format.h"

static tl_diag diag;
static tl_intern names;
static tl_lang lang;
static tl_eval ev;

static void setup(void)
{
    tl_diag_init(&diag, NULL);
    tl_intern_init(&names);
    lang = (tl_lang){.names = &names};
    memset(&ev, 0, sizeof(ev));
    ev.diag = &diag;
    ev.lang = &lang;
    cr_assert_eq(tl_builtins_init(&ev), TL_OK);
}

static void teardown(void)
{
    tl_builtins_fini(&ev);
    cr_assert_eq(tl_obj_live(), 0);
    tl_intern_fini(&names);
    tl_diag_fini(&diag);
}

TestSuite(test_bi_str, .init = setup, .fini = teardown);

typedef struct arg {
    char kind; /* s, i, n: str, int, none */
    int64_t i;
    const char *s;
} arg;

#define S(text)                                                              \
    {                                                                        \
        .kind = 's', .s = text                                               \
    }
#define I(n)                                                                 \
    {                                                                        \
        .kind = 'i', .i = n                                                  \
    }
#define NONE                                                                 \
    {                                                                        \
        .kind = 'n'                                                          \
    }

typedef struct method_case {
    const char *s, *method;
    arg args[3];
    size_t nargs;
    const char *want; /* repr of the result */
} method_case;

static tl_value value(const arg *a)
{
    tl_value v = a->kind == 'i' ? tl_int_value(a->i) : tl_none();

    if (a->kind == 's') {
        cr_assert_eq(tl_str_new(&v, a->s, strlen(a->s), &diag), TL_OK);
    }
    return v;
}

/* Call the method; *out is set on success. */
static tl_status call(const char *s, const char *method, const arg *args,
                      size_t nargs, tl_value *out)
{
    const tl_sym *sym = tl_intern_get(&names, method, strlen(method));
    const tl_builtin *row = tl_builtin_method(&ev, TL_V_STR, sym);
    arg self = S(s);
    tl_value pos[3] = {tl_empty(), tl_empty(), tl_empty()};
    tl_args given = {.pos = pos, .npos = nargs};
    tl_status st;

    cr_assert_not_null(row, "%s", method);
    for (size_t i = 0; i < nargs; i++) {
        pos[i] = value(&args[i]);
    }
    st = tl_builtin_call(&ev, row, value(&self), &given, out);
    tl_unref_all(pos, 3);
    return st;
}

static const method_case cases[] = {
    {" a  b c ", "split", {NONE}, 0, "[\"a\", \"b\", \"c\"]"},
    {" a  b c ", "rsplit", {NONE}, 0, "[\"a\", \"b\", \"c\"]"},
    {" a  b c ", "split", {NONE, I(1)}, 2, "[\"a\", \"b c \"]"},
    {" a  b c ", "rsplit", {NONE, I(1)}, 2, "[\" a  b\", \"c\"]"},
    {" a  b c ", "split", {NONE, I(0)}, 2, "[\"a  b c \"]"},
    {"", "split", {NONE}, 0, "[]"},
    {"", "rsplit", {NONE}, 0, "[]"},
    {"", "split", {NONE, I(1)}, 2, "[]"},
    {"", "rsplit", {NONE, I(1)}, 2, "[]"},
    {"", "split", {NONE, I(0)}, 2, "[]"},
    {"abc", "split", {NONE}, 0, "[\"abc\"]"},
    {"abc", "rsplit", {NONE}, 0, "[\"abc\"]"},
    {"abc", "split", {NONE, I(1)}, 2, "[\"abc\"]"},
    {"abc", "rsplit", {NONE, I(1)}, 2, "[\"abc\"]"},
    {"abc", "split", {NONE, I(0)}, 2, "[\"abc\"]"},
    {"a　b\tc\n", "split", {NONE}, 0, "[\"a\", \"b\", \"c\"]"},
    {"a　b\tc\n", "rsplit", {NONE}, 0, "[\"a\", \"b\", \"c\"]"},
    {"a　b\tc\n", "split", {NONE, I(1)}, 2, "[\"a\", \"b\\tc\\n\"]"},
    {"a　b\tc\n", "rsplit", {NONE, I(1)}, 2, "[\"a　b\", \"c\"]"},
    {"a　b\tc\n", "split", {NONE, I(0)}, 2, "[\"a　b\\tc\\n\"]"},
    {"a,b,,c", "split", {S(",")}, 1, "[\"a\", \"b\", \"\", \"c\"]"},
    {"a,b,,c", "split", {S(","), I(1)}, 2, "[\"a\", \"b,,c\"]"},
    {"a,b,,c", "rsplit", {S(","), I(1)}, 2, "[\"a,b,\", \"c\"]"},
    {"a,b,,c", "partition", {S(",")}, 1, "(\"a\", \",\", \"b,,c\")"},
    {",", "split", {S(",")}, 1, "[\"\", \"\"]"},
    {",", "split", {S(","), I(1)}, 2, "[\"\", \"\"]"},
    {",", "rsplit", {S(","), I(1)}, 2, "[\"\", \"\"]"},
    {",", "partition", {S(",")}, 1, "(\"\", \",\", \"\")"},
    {"", "split", {S(",")}, 1, "[\"\"]"},
    {"", "split", {S(","), I(1)}, 2, "[\"\"]"},
    {"", "rsplit", {S(","), I(1)}, 2, "[\"\"]"},
    {"", "partition", {S(",")}, 1, "(\"\", \"\", \"\")"},
    {"abc", "split", {S(",")}, 1, "[\"abc\"]"},
    {"abc", "split", {S(","), I(1)}, 2, "[\"abc\"]"},
    {"abc", "rsplit", {S(","), I(1)}, 2, "[\"abc\"]"},
    {"abc", "partition", {S(",")}, 1, "(\"abc\", \"\", \"\")"},
    {",a,", "split", {S(",")}, 1, "[\"\", \"a\", \"\"]"},
    {",a,", "split", {S(","), I(1)}, 2, "[\"\", \"a,\"]"},
    {",a,", "rsplit", {S(","), I(1)}, 2, "[\",a\", \"\"]"},
    {",a,", "partition", {S(",")}, 1, "(\"\", \",\", \"a,\")"},
    {"é,ü", "split", {S(",")}, 1, "[\"é\", \"ü\"]"},
    {"é,ü", "split", {S(","), I(1)}, 2, "[\"é\", \"ü\"]"},
    {"é,ü", "rsplit", {S(","), I(1)}, 2, "[\"é\", \"ü\"]"},
    {"é,ü", "partition", {S(",")}, 1, "(\"é\", \",\", \"ü\")"},
    {"a--b---c", "split", {S("--")}, 1, "[\"a\", \"b\", \"-c\"]"},
    {"aaaa", "split", {S("aa")}, 1, "[\"\", \"\", \"\"]"},
    {"aaaaa", "rsplit", {S("aa")}, 1, "[\"a\", \"\", \"\"]"},
    {"aaaaa", "rsplit", {S("aa"), I(1)}, 2, "[\"aaa\", \"\"]"},
    {"a\nb\r\nc", "splitlines", {NONE}, 0, "[\"a\", \"b\", \"c\"]"},
    {"\n", "splitlines", {NONE}, 0, "[\"\"]"},
    {"", "splitlines", {NONE}, 0, "[]"},
    {"a\n\nb\n", "splitlines", {NONE}, 0, "[\"a\", \"\", \"b\"]"},
    {"a\rb", "splitlines", {NONE}, 0, "[\"a\", \"b\"]"},
    {"aaa", "replace", {S("a"), S("bb")}, 2, "\"bbbbbb\""},
    {"aaa", "replace", {S("a"), S("bb"), I(2)}, 3, "\"bbbba\""},
    {"abc", "replace", {S(""), S("-")}, 2, "\"-a-b-c-\""},
    {"éa", "replace", {S(""), S("-"), I(2)}, 3, "\"-é-a\""},
    {"abab", "replace", {S("ab"), S("")}, 2, "\"\""},
    {"", "replace", {S(""), S("x")}, 2, "\"x\""},
    {"aXa", "replace", {S("a"), S("b"), I(0)}, 3, "\"aXa\""},
    {"hello", "find", {S("l")}, 1, "2"},
    {"hello", "rfind", {S("l")}, 1, "3"},
    {"hello", "count", {S("l")}, 1, "2"},
    {"hello", "find", {S("z")}, 1, "-1"},
    {"hello", "rfind", {S("z")}, 1, "-1"},
    {"hello", "count", {S("z")}, 1, "0"},
    {"naïveï", "find", {S("ï")}, 1, "2"},
    {"naïveï", "rfind", {S("ï")}, 1, "5"},
    {"naïveï", "count", {S("ï")}, 1, "2"},
    {"hello", "find", {S("")}, 1, "0"},
    {"hello", "rfind", {S("")}, 1, "5"},
    {"hello", "count", {S("")}, 1, "6"},
    {"", "find", {S("")}, 1, "0"},
    {"", "rfind", {S("")}, 1, "0"},
    {"", "count", {S("")}, 1, "1"},
    {"aaa", "find", {S("aa")}, 1, "0"},
    {"aaa", "rfind", {S("aa")}, 1, "1"},
    {"aaa", "count", {S("aa")}, 1, "1"},
    {"hello", "find", {S("l"), I(3)}, 2, "3"},
    {"hello", "find", {S("l"), I(-1)}, 2, "-1"},
    {"hello", "find", {S("l"), I(99)}, 2, "-1"},
    {"ïxï", "find", {S("ï"), I(1)}, 2, "2"},
    {"hello", "find", {S("h"), I(-99)}, 2, "0"},
    {"hello", "startswith", {S("he")}, 1, "true"},
    {"hello", "endswith", {S("lo")}, 1, "true"},
    {"hello", "startswith", {S("")}, 1, "true"},
    {"he", "startswith", {S("hello")}, 1, "false"},
    {"hello", "endswith", {S("x")}, 1, "false"},
    {"hello", "removeprefix", {S("he")}, 1, "\"llo\""},
    {"hello", "removeprefix", {S("x")}, 1, "\"hello\""},
    {"hello", "removesuffix", {S("lo")}, 1, "\"hel\""},
    {"hello", "removesuffix", {S("")}, 1, "\"hello\""},
    {"  a b\t\n", "strip", {NONE}, 0, "\"a b\""},
    {"  a b\t\n", "lstrip", {NONE}, 0, "\"a b\\t\\n\""},
    {"  a b\t\n", "rstrip", {NONE}, 0, "\"  a b\""},
    {"xxaxx", "strip", {NONE}, 0, "\"xxaxx\""},
    {"xxaxx", "lstrip", {NONE}, 0, "\"xxaxx\""},
    {"xxaxx", "rstrip", {NONE}, 0, "\"xxaxx\""},
    {"éaé", "strip", {NONE}, 0, "\"éaé\""},
    {"éaé", "lstrip", {NONE}, 0, "\"éaé\""},
    {"éaé", "rstrip", {NONE}, 0, "\"éaé\""},
    {"", "strip", {NONE}, 0, "\"\""},
    {"", "lstrip", {NONE}, 0, "\"\""},
    {"", "rstrip", {NONE}, 0, "\"\""},
    {" a ", "strip", {NONE}, 0, "\"a\""},
    {" a ", "lstrip", {NONE}, 0, "\"a \""},
    {" a ", "rstrip", {NONE}, 0, "\" a\""},
    {"xxaxyx", "strip", {S("xy")}, 1, "\"a\""},
    {"éaé", "lstrip", {S("é")}, 1, "\"aé\""},
    {"éaé", "rstrip", {S("éa")}, 1, "\"\""},
    {"abc", "strip", {S("cba")}, 1, "\"\""},
    {"ab", "ljust", {I(0)}, 1, "\"ab\""},
    {"ab", "rjust", {I(0), S("é")}, 2, "\"ab\""},
    {"ab", "center", {I(0), S("*")}, 2, "\"ab\""},
    {"abc", "center", {I(0)}, 1, "\"abc\""},
    {"ab", "ljust", {I(3)}, 1, "\"ab \""},
    {"ab", "rjust", {I(3), S("é")}, 2, "\"éab\""},
    {"ab", "center", {I(3), S("*")}, 2, "\"*ab\""},
    {"abc", "center", {I(3)}, 1, "\"abc\""},
    {"ab", "ljust", {I(6)}, 1, "\"ab    \""},
    {"ab", "rjust", {I(6), S("é")}, 2, "\"ééééab\""},
    {"ab", "center", {I(6), S("*")}, 2, "\"**ab**\""},
    {"abc", "center", {I(6)}, 1, "\" abc  \""},
    {"ab", "ljust", {I(7)}, 1, "\"ab     \""},
    {"ab", "rjust", {I(7), S("é")}, 2, "\"éééééab\""},
    {"ab", "center", {I(7), S("*")}, 2, "\"***ab**\""},
    {"abc", "center", {I(7)}, 1, "\"  abc  \""},
    {"42", "zfill", {I(5)}, 1, "\"00042\""},
    {"-42", "zfill", {I(5)}, 1, "\"-0042\""},
    {"+4", "zfill", {I(5)}, 1, "\"+0004\""},
    {"", "zfill", {I(2)}, 1, "\"00\""},
    {"12345", "zfill", {I(3)}, 1, "\"12345\""},
    {"Hello wORLD", "upper", {NONE}, 0, "\"HELLO WORLD\""},
    {"Hello wORLD", "lower", {NONE}, 0, "\"hello world\""},
    {"Hello wORLD", "title", {NONE}, 0, "\"Hello World\""},
    {"Hello wORLD", "capitalize", {NONE}, 0, "\"Hello world\""},
    {"straße", "upper", {NONE}, 0, "\"STRASSE\""},
    {"straße", "lower", {NONE}, 0, "\"straße\""},
    {"straße", "title", {NONE}, 0, "\"Straße\""},
    {"straße", "capitalize", {NONE}, 0, "\"Straße\""},
    {"ÀÉÎ õ ÿ", "upper", {NONE}, 0, "\"ÀÉÎ Õ Ÿ\""},
    {"ÀÉÎ õ ÿ", "lower", {NONE}, 0, "\"àéî õ ÿ\""},
    {"ÀÉÎ õ ÿ", "title", {NONE}, 0, "\"Àéî Õ Ÿ\""},
    {"ÀÉÎ õ ÿ", "capitalize", {NONE}, 0, "\"Àéî õ ÿ\""},
    {"ΑΒΓ αβγ ς", "upper", {NONE}, 0, "\"ΑΒΓ ΑΒΓ Σ\""},
    {"ΑΒΓ αβγ ς", "lower", {NONE}, 0, "\"αβγ αβγ ς\""},
    {"Привет Ёж", "upper", {NONE}, 0, "\"ПРИВЕТ ЁЖ\""},
    {"Привет Ёж", "lower", {NONE}, 0, "\"привет ёж\""},
    {"Привет Ёж", "title", {NONE}, 0, "\"Привет Ёж\""},
    {"Привет Ёж", "capitalize", {NONE}, 0, "\"Привет ёж\""},
    {"it's 2nd", "upper", {NONE}, 0, "\"IT'S 2ND\""},
    {"it's 2nd", "lower", {NONE}, 0, "\"it's 2nd\""},
    {"it's 2nd", "title", {NONE}, 0, "\"It'S 2Nd\""},
    {"it's 2nd", "capitalize", {NONE}, 0, "\"It's 2nd\""},
    {"ĀāĹĺŹź", "upper", {NONE}, 0, "\"ĀĀĹĹŹŹ\""},
    {"ĀāĹĺŹź", "lower", {NONE}, 0, "\"āāĺĺźź\""},
    {"ĀāĹĺŹź", "title", {NONE}, 0, "\"Āāĺĺźź\""},
    {"ĀāĹĺŹź", "capitalize", {NONE}, 0, "\"Āāĺĺźź\""},
    {"", "upper", {NONE}, 0, "\"\""},
    {"", "lower", {NONE}, 0, "\"\""},
    {"", "title", {NONE}, 0, "\"\""},
    {"", "capitalize", {NONE}, 0, "\"\""},
    {"123", "isdigit", {NONE}, 0, "true"},
    {"123", "isalpha", {NONE}, 0, "false"},
    {"123", "isalnum", {NONE}, 0, "true"},
    {"123", "isspace", {NONE}, 0, "false"},
    {"123", "isupper", {NONE}, 0, "false"},
    {"123", "islower", {NONE}, 0, "false"},
    {"12a", "isdigit", {NONE}, 0, "false"},
    {"12a", "isalpha", {NONE}, 0, "false"},
    {"12a", "isalnum", {NONE}, 0, "true"},
    {"12a", "isspace", {NONE}, 0, "false"},
    {"12a", "isupper", {NONE}, 0, "false"},
    {"12a", "islower", {NONE}, 0, "true"},
    {"abc", "isdigit", {NONE}, 0, "false"},
    {"abc", "isalpha", {NONE}, 0, "true"},
    {"abc", "isalnum", {NONE}, 0, "true"},
    {"abc", "isspace", {NONE}, 0, "false"},
    {"abc", "isupper", {NONE}, 0, "false"},
    {"abc", "islower", {NONE}, 0, "true"},
    {"ABC", "isdigit", {NONE}, 0, "false"},
    {"ABC", "isalpha", {NONE}, 0, "true"},
    {"ABC", "isalnum", {NONE}, 0, "true"},
    {"ABC", "isspace", {NONE}, 0, "false"},
    {"ABC", "isupper", {NONE}, 0, "true"},
    {"ABC", "islower", {NONE}, 0, "false"},
    {"aB", "isdigit", {NONE}, 0, "false"},
    {"aB", "isalpha", {NONE}, 0, "true"},
    {"aB", "isalnum", {NONE}, 0, "true"},
    {"aB", "isspace", {NONE}, 0, "false"},
    {"aB", "isupper", {NONE}, 0, "false"},
    {"aB", "islower", {NONE}, 0, "false"},
    {"", "isdigit", {NONE}, 0, "false"},
    {"", "isalpha", {NONE}, 0, "false"},
    {"", "isalnum", {NONE}, 0, "false"},
    {"", "isspace", {NONE}, 0, "false"},
    {"", "isupper", {NONE}, 0, "false"},
    {"", "islower", {NONE}, 0, "false"},
    {"é", "isdigit", {NONE}, 0, "false"},
    {"é", "isalpha", {NONE}, 0, "true"},
    {"é", "isalnum", {NONE}, 0, "true"},
    {"é", "isspace", {NONE}, 0, "false"},
    {"é", "isupper", {NONE}, 0, "false"},
    {"é", "islower", {NONE}, 0, "true"},
    {"日本", "isdigit", {NONE}, 0, "false"},
    {"日本", "isalpha", {NONE}, 0, "true"},
    {"日本", "isalnum", {NONE}, 0, "true"},
    {"日本", "isspace", {NONE}, 0, "false"},
    {"日本", "isupper", {NONE}, 0, "false"},
    {"日本", "islower", {NONE}, 0, "false"},
    {" \t", "isdigit", {NONE}, 0, "false"},
    {" \t", "isalpha", {NONE}, 0, "false"},
    {" \t", "isalnum", {NONE}, 0, "false"},
    {" \t", "isspace", {NONE}, 0, "true"},
    {" \t", "isupper", {NONE}, 0, "false"},
    {" \t", "islower", {NONE}, 0, "false"},
    {"a1", "isdigit", {NONE}, 0, "false"},
    {"a1", "isalpha", {NONE}, 0, "false"},
    {"a1", "isalnum", {NONE}, 0, "true"},
    {"a1", "isspace", {NONE}, 0, "false"},
    {"a1", "isupper", {NONE}, 0, "false"},
    {"a1", "islower", {NONE}, 0, "true"},
    {"1.5", "isdigit", {NONE}, 0, "false"},
    {"1.5", "isalpha", {NONE}, 0, "false"},
    {"1.5", "isalnum", {NONE}, 0, "false"},
    {"1.5", "isspace", {NONE}, 0, "false"},
    {"1.5", "isupper", {NONE}, 0, "false"},
    {"1.5", "islower", {NONE}, 0, "false"},
    {"ÀB", "isdigit", {NONE}, 0, "false"},
    {"ÀB", "isalpha", {NONE}, 0, "true"},
    {"ÀB", "isalnum", {NONE}, 0, "true"},
    {"ÀB", "isspace", {NONE}, 0, "false"},
    {"ÀB", "isupper", {NONE}, 0, "true"},
    {"ÀB", "islower", {NONE}, 0, "false"},
};

Test(test_bi_str, methods_as_in_python)
{
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        const method_case *c = &cases[i];
        tl_value out;
        tl_buf text;

        cr_assert_eq(call(c->s, c->method, c->args, c->nargs, &out), TL_OK);
        tl_buf_init(&text);
        cr_assert_eq(tl_format_repr(out, &text, &diag), TL_OK);
        cr_expect_str_eq(tl_buf_str(&text), c->want,
                         "case %zu: \"%s\".%s: %s", i, c->s, c->method,
                         tl_buf_str(&text));
        tl_buf_fini(&text);
        tl_unref(out);
    }
}

static void refuses(const char *s, const char *method, arg a, tl_code code,
                    const char *message)
{
    tl_value out;

    cr_expect_eq(call(s, method, &a, 1, &out), TL_ERR_PROGRAM);
    cr_assert_not_null(diag.last);
    cr_expect_eq(diag.last->code, code);
    cr_expect_str_eq(diag.last->message, message);
    tl_diag_clear(&diag);
}

Test(test_bi_str, what_is_refused)
{
    refuses("a", "split", (arg)S(""), TL_E0416, "the separator is empty");
    refuses("abc", "index", (arg)S("z"), TL_E0218, "\"z\" is not in the str");
    refuses("a", "ljust", (arg)I((int64_t)1 << 60), TL_E0416,
            "the width 1152921504606846976 is too large");
    refuses("a", "upper", (arg)NONE, TL_E0203,
            "`upper` takes 0 arguments, got 1");
}
