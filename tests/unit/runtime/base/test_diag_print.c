/* test_diag_print.c - the three printed forms. */
#include <criterion/criterion.h>

#include <stdio.h>
#include <string.h>

#include "runtime/base/diag.h"
#include "runtime/base/mem.h"

static tl_sources sources;
static tl_diag diag;
static tl_buf out;

static void setup(void)
{
    tl_sources_init(&sources);
    tl_diag_init(&diag, &sources);
    tl_buf_init(&out);
}

static void release(void)
{
    tl_buf_fini(&out);
    tl_diag_fini(&diag);
    tl_sources_fini(&sources);
}

TestSuite(diag_print, .init = setup, .fini = release);

static uint32_t add(const char *name, const char *text)
{
    return tl_sources_add(&sources, name, text, strlen(text));
}

/* The span of the `nth` (from 0) place of `word` in a source. */
static tl_span find(uint32_t file, const char *word, int nth)
{
    const char *text = tl_sources_get(&sources, file)->text;
    const char *p = strstr(text, word);

    while (p && nth-- > 0) {
        p = strstr(p + 1, word);
    }
    cr_assert_not_null(p, "no `%s`", word);
    return (tl_span){file, (uint32_t)(p - text),
                     (uint32_t)(p - text + (long)strlen(word))};
}

static void fail_at(tl_span span, const char *message)
{
    cr_assert_neq(tl_fail_at(&diag, TL_E0302, span, "%s", message), TL_OK);
}

static void expect_human(const char *want)
{
    tl_buf_clear(&out);
    tl_diag_print(&diag, TL_DIAG_HUMAN, false, &out);
    cr_expect_str_eq(tl_buf_str(&out), want, "got:\n%s\nwanted:\n%s",
                     tl_buf_str(&out), want);
}

Test(diag_print, carets_and_labels_as_in_the_manual)
{
    uint32_t f = add("gpt2.tl", "\n\n\n\n\n\n\n\n\n"
                                "        return ln_f(x) @ wte.weight\n");

    fail_at(find(f, "@", 0),
            "`@` needs equal inner dimensions: d is not vocab");
    tl_diag_label_add(&diag, find(f, "ln_f(x)", 0), "f32[B, T, d]");
    tl_diag_label_add(&diag, find(f, "wte.weight", 0),
                      "f32[vocab, d]    (vocab = 50257)");
    tl_diag_note(&diag, "true for every B, T; found before running");
    tl_diag_help(&diag, "transpose: `wte.weight.T`");
    expect_human(
        "error[E0302]: `@` needs equal inner dimensions: d is not vocab\n"
        "  --> gpt2.tl:10:24\n"
        "10 |         return ln_f(x) @ wte.weight\n"
        "   |                ------- ^ ---------- f32[vocab, d]    (vocab = "
        "50257)\n"
        "   |                f32[B, T, d]\n"
        "   = true for every B, T; found before running        help: "
        "transpose: `wte.weight.T`\n");
}

Test(diag_print, help_joins_the_labels_or_stands_alone)
{
    uint32_t f = add("a.tl", "x + y\n");

    fail_at(find(f, "+", 0), "m");
    tl_diag_help(&diag, "short");
    expect_human("error[E0302]: m\n"
                 "  --> a.tl:1:3\n"
                 " 1 | x + y\n"
                 "   |   ^        help: short\n");
    tl_diag_help(&diag, "%090d", 1);
    expect_human("error[E0302]: m\n"
                 "  --> a.tl:1:3\n"
                 " 1 | x + y\n"
                 "   |   ^\n"
                 "   = help: 00000000000000000000000000000000000000000000000"
                 "0000000000000000000000000000000000000000001\n");
}

Test(diag_print, without_place_there_is_no_picture)
{
    cr_assert_neq(tl_fail(&diag, TL_E0720, "unknown option `--foo`"), TL_OK);
    tl_diag_help(&diag, "--for");
    expect_human("error[E0720]: unknown option `--foo`\n"
                 "   = help: --for\n");
}

Test(diag_print, labels_of_other_lines_and_files)
{
    uint32_t f = add("train.tl", "layer fc = linear(1024 -> 10)\n\n"
                                 "return x @ fc\n");
    uint32_t g = add("lib.tl", "fn pool(x)\n");

    fail_at(find(f, "@", 0), "sizes do not agree: 768 and 1024");
    tl_diag_caret(&diag, "`x` is [32, 768]");
    tl_diag_label_add(&diag, find(f, "1024", 0), "`fc` expects 1024");
    tl_diag_label_add(&diag, find(g, "pool", 0), "from here");
    expect_human("error[E0302]: sizes do not agree: 768 and 1024\n"
                 "  --> train.tl:3:10\n"
                 " 1 | layer fc = linear(1024 -> 10)\n"
                 "   |                   ---- `fc` expects 1024\n"
                 " 3 | return x @ fc\n"
                 "   |          ^ `x` is [32, 768]\n"
                 "  ::: lib.tl:1:4\n"
                 " 1 | fn pool(x)\n"
                 "   |    ---- from here\n");
}

Test(diag_print, several_labels_share_rows_where_they_fit)
{
    uint32_t f = add("a.tl", "aaaaaa + bbbbbb + cccccc\n");

    fail_at(find(f, "+", 1), "m");
    tl_diag_label_add(&diag, find(f, "aaaaaa", 0), "A");
    tl_diag_label_add(&diag, find(f, "bbbbbb", 0), "B");
    tl_diag_label_add(&diag, find(f, "cccccc", 0), "C");
    expect_human("error[E0302]: m\n"
                 "  --> a.tl:1:17\n"
                 " 1 | aaaaaa + bbbbbb + cccccc\n"
                 "   | ------   ------ ^ ------ C\n"
                 "   | A        B\n");
}

Test(diag_print, labels_without_room_hang_lower_on_a_bar)
{
    uint32_t f = add("a.tl", "a + b + c\n");

    fail_at(find(f, "c", 0), "m");
    tl_diag_caret(&diag, "third");
    tl_diag_label_add(&diag, find(f, "a", 0), "the first");
    tl_diag_label_add(&diag, find(f, "b", 0), "the second");
    expect_human("error[E0302]: m\n"
                 "  --> a.tl:1:9\n"
                 " 1 | a + b + c\n"
                 "   | -   -   ^ third\n"
                 "   | |   the second\n"
                 "   | the first\n");
}

Test(diag_print, carets_win_over_labels_around_them)
{
    uint32_t f = add("a.tl", "f(x, y)\n");

    fail_at(find(f, "x", 0), "m");
    tl_diag_label_add(&diag, find(f, "f(x, y)", 0), "call");
    expect_human("error[E0302]: m\n"
                 "  --> a.tl:1:3\n"
                 " 1 | f(x, y)\n"
                 "   | --^---- call\n");
}

Test(diag_print, columns_are_those_of_a_terminal)
{
    uint32_t f = add("a.tl", "\t\xe6\xbc\xa2\xc3\xbc\x65\xcc\x81 @ y\n");

    fail_at(find(f, "@", 0), "m");
    expect_human("error[E0302]: m\n"
                 "  --> a.tl:1:7\n"
                 " 1 |     \xe6\xbc\xa2\xc3\xbc\x65\xcc\x81 @ y\n"
                 "   |          ^\n");
}

Test(diag_print, span_of_several_lines_marks_first_and_last)
{
    uint32_t f = add("a.tl", "x = f(\n    a,\n    b)\nz\n");

    fail_at((tl_span){f, 4, 21}, "m");
    tl_diag_caret(&diag, "here");
    expect_human("error[E0302]: m\n"
                 "  --> a.tl:1:5\n"
                 " 1 | x = f(\n"
                 "   |     ^^\n"
                 " 3 |     b)\n"
                 "   |     ^^ here\n");
}

Test(diag_print, end_of_text_has_a_caret)
{
    uint32_t f = add("a.tl", "x = (\n");

    fail_at((tl_span){f, 6, 6}, "m");
    expect_human("error[E0302]: m\n"
                 "  --> a.tl:2:1\n"
                 " 2 |\n"
                 "   | ^\n");
}

Test(diag_print, carriage_returns_are_not_shown)
{
    uint32_t f = add("a.tl", "x @ y\r\nz\r\n");

    fail_at(find(f, "@", 0), "m");
    expect_human("error[E0302]: m\n"
                 "  --> a.tl:1:3\n"
                 " 1 | x @ y\n"
                 "   |   ^\n");
}

Test(diag_print, control_bytes_never_reach_the_terminal)
{
    uint32_t f = add("a\x1b[2J.tl", "x\x1b[31m \xff @ y\n");

    fail_at(find(f, "@", 0), "bad \x1b]0;name\x07");
    tl_diag_note(&diag, "note \x9b");
    tl_diag_help(&diag, "\xe2\x80\xae");
    expect_human("error[E0302]: bad \\x1b]0;name\\x07\n"
                 "  --> a\\x1b[2J.tl:1:10\n"
                 " 1 | x\\x1b[31m \\xff @ y\n"
                 "   |                ^\n"
                 "   = note \\x9b        help: \\xe2\\x80\\xae\n");
}

Test(diag_print, long_lines_show_a_part)
{
    char text[1201];
    uint32_t f;
    const char *line;

    memset(text, 'a', 1200);
    text[600] = '@';
    text[1200] = '\0';
    f = add("a.tl", text);
    fail_at(find(f, "@", 0), "m");
    tl_diag_print(&diag, TL_DIAG_HUMAN, false, &out);
    line = strstr(tl_buf_str(&out), " 1 | ");
    cr_assert_not_null(line);
    cr_expect_eq(strcspn(line, "\n"), 5 + 3 + 140 + 3);
    cr_expect_eq(strcspn(line, "@"), 5 + 3 + 40);
    line = strchr(line, '\n') + 1;
    cr_expect_eq(strcspn(line, "^"), 5 + 3 + 40);
    cr_expect_str_eq(line + 5 + 3 + 40, "^\n");
}

Test(diag_print, lines_of_notes_are_indented)
{
    cr_assert_neq(tl_fail(&diag, TL_E0703, "first\nsecond"), TL_OK);
    tl_diag_note(&diag, "a\nb");
    expect_human("error[E0703]: first\n"
                 "    second\n"
                 "   = a\n"
                 "     b\n");
}

Test(diag_print, frames_name_calls_and_the_number_left_out)
{
    uint32_t f = add("a.tl", "f(1)\n");

    cr_assert_neq(tl_fail(&diag, TL_E0215, "deep"), TL_OK);
    for (int i = 0; i < 9; i++) {
        tl_diag_frame_add(&diag, "f", find(f, "f", 0), "n: i64");
    }
    expect_human("error[E0215]: deep\n"
                 "   in f(n: i64), called at a.tl:1:1\n"
                 "   in f(n: i64), called at a.tl:1:1\n"
                 "   in f(n: i64), called at a.tl:1:1\n"
                 "   ... 3 more calls\n"
                 "   in f(n: i64), called at a.tl:1:1\n"
                 "   in f(n: i64), called at a.tl:1:1\n"
                 "   in f(n: i64), called at a.tl:1:1\n");
}

Test(diag_print, twenty_errors_then_a_count)
{
    for (int i = 0; i < 23; i++) {
        cr_assert_neq(tl_fail(&diag, TL_E0201, "name %d", i), TL_OK);
    }
    tl_diag_print(&diag, TL_DIAG_SHORT, false, &out);
    cr_expect_not_null(strstr(tl_buf_str(&out), "name 19\n"));
    cr_expect_null(strstr(tl_buf_str(&out), "name 20"));
    cr_expect_not_null(strstr(tl_buf_str(&out), "\n... and 3 more errors\n"));
}

Test(diag_print, short_form_is_one_line)
{
    uint32_t f = add("a.tl", "\nx @ y\n");

    fail_at(find(f, "@", 0), "one\ntwo");
    tl_diag_note(&diag, "n");
    tl_diag_print(&diag, TL_DIAG_SHORT, false, &out);
    cr_expect_str_eq(tl_buf_str(&out), "a.tl:2:3: error[E0302]: one\n");
}

Test(diag_print, json_has_every_part)
{
    uint32_t f = add("a\".tl", "\nx @ y\n");

    fail_at(find(f, "@", 0), "a \"b\"\n");
    tl_diag_label_add(&diag, find(f, "x", 0), "f32[2]");
    tl_diag_note(&diag, "n");
    tl_diag_help(&diag, "h");
    tl_diag_fix_add(&diag, find(f, "y", 0), "y.T");
    tl_diag_print(&diag, TL_DIAG_JSON, true, &out);
    cr_expect_str_eq(
        tl_buf_str(&out),
        "{\"code\":\"E0302\",\"level\":\"error\","
        "\"message\":\"a \\\"b\\\"\\n\",\"spans\":["
        "{\"file\":\"a\\\".tl\",\"byte_start\":3,\"byte_end\":4,\"line\":2,"
        "\"col\":3,\"label\":null,\"primary\":true},"
        "{\"file\":\"a\\\".tl\",\"byte_start\":1,\"byte_end\":2,\"line\":2,"
        "\"col\":1,\"label\":\"f32[2]\",\"primary\":false}],"
        "\"children\":[{\"level\":\"note\",\"message\":\"n\",\"spans\":[]},"
        "{\"level\":\"help\",\"message\":\"h\",\"spans\":[]}],"
        "\"fixes\":[{\"file\":\"a\\\".tl\",\"byte_start\":5,\"byte_end\":6,"
        "\"line\":2,\"col\":5,\"text\":\"y.T\"}]}\n",
        "got %s", tl_buf_str(&out));
}

Test(diag_print, color_changes_no_text)
{
    uint32_t f = add("a.tl", "x @ y\n");
    char plain[512];
    size_t n = 0;

    fail_at(find(f, "@", 0), "m");
    tl_diag_label_add(&diag, find(f, "x", 0), "left");
    tl_diag_help(&diag, "h");
    tl_diag_print(&diag, TL_DIAG_HUMAN, true, &out);
    cr_expect_not_null(strstr(tl_buf_str(&out), "\x1b[1;31merror[E0302]"));
    for (const char *p = tl_buf_str(&out); *p; p++) {
        if (*p == '\x1b') {
            p = strchr(p, 'm');
        } else {
            plain[n++] = *p;
        }
    }
    plain[n] = '\0';
    tl_buf_clear(&out);
    tl_diag_print(&diag, TL_DIAG_HUMAN, false, &out);
    cr_expect_str_eq(plain, tl_buf_str(&out));
}

Test(diag_print, any_span_is_printed)
{
    uint32_t f = add("a.tl", "ab\n\xe6\xbc\xa2\r\n\n\tx");
    uint32_t size = (uint32_t)tl_sources_get(&sources, f)->len + 3;

    for (uint32_t start = 0; start <= size; start++) {
        for (uint32_t end = 0; end <= size; end++) {
            tl_diag_clear(&diag);
            fail_at((tl_span){f, start, end}, "m");
            tl_diag_label_add(&diag, (tl_span){f, end, start}, "l");
            tl_buf_clear(&out);
            tl_diag_print(&diag, TL_DIAG_HUMAN, false, &out);
            tl_diag_print(&diag, TL_DIAG_JSON, false, &out);
            cr_assert_not_null(strchr(tl_buf_str(&out), '^'), "%u..%u", start,
                               end);
        }
    }
}

Test(diag_print, out_of_memory_while_printing_is_survived)
{
    uint32_t f = add("a.tl", "x @ y\n");

    fail_at(find(f, "@", 0), "m");
    for (uint64_t n = 1; n < 6; n++) {
        tl_buf_fini(&out);
        tl_mem_fail_at(n, true);
        tl_diag_print(&diag, TL_DIAG_HUMAN, true, &out);
        tl_diag_print(&diag, TL_DIAG_JSON, true, &out);
        tl_mem_fail_at(0, false);
        cr_expect(n > 1 || out.failed);
    }
}
