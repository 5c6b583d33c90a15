/* test_source.c - lines and columns of source texts. */
#include <criterion/criterion.h>

#include <string.h>

#include "runtime/base/diag.h"
#include "runtime/base/mem.h"

static tl_sources sources;

static void setup(void)
{
    tl_sources_init(&sources);
}

static void release(void)
{
    tl_sources_fini(&sources);
}

TestSuite(source, .init = setup, .fini = release);

static const tl_source *add(const char *text)
{
    return tl_sources_get(
        &sources, tl_sources_add(&sources, "a.tl", text, strlen(text)));
}

static void expect_at(const tl_source *s, uint32_t offset, int line,
                      int column)
{
    int l, c;

    tl_source_position(s, offset, &l, &c);
    cr_expect_eq(l, line, "offset %u: line %d, not %d", offset, l, line);
    cr_expect_eq(c, column, "offset %u: column %d, not %d", offset, c,
                 column);
}

Test(source, positions_of_lines)
{
    const tl_source *s = add("ab\n\nc\n");

    cr_assert_eq(s->nlines, 4);
    expect_at(s, 0, 1, 1);
    expect_at(s, 2, 1, 3);
    expect_at(s, 3, 2, 1);
    expect_at(s, 4, 3, 1);
    expect_at(s, 6, 4, 1);
}

Test(source, columns_count_code_points)
{
    const tl_source *s = add("\xc3\xbc\xe6\xbc\xa2x\xff\xfey");

    expect_at(s, 2, 1, 2);
    expect_at(s, 5, 1, 3);
    expect_at(s, 8, 1, 6);
}

Test(source, offset_past_the_end_is_the_end)
{
    const tl_source *s = add("ab");

    expect_at(s, 99, 1, 3);
    expect_at(add(""), 0, 1, 1);
    expect_at(add(""), UINT32_MAX, 1, 1);
}

Test(source, byte_order_mark_is_removed)
{
    const tl_source *s = add("\xef\xbb\xbfx = 1");

    cr_expect_str_eq(s->text, "x = 1");
    cr_expect_eq(s->len, 5);
}

Test(source, numbers_start_at_one_and_stay)
{
    for (uint32_t i = 1; i < 50; i++) {
        cr_assert_eq(tl_sources_add(&sources, "f", "x", 1), i);
    }
    cr_assert_null(tl_sources_get(&sources, 0));
    cr_assert_null(tl_sources_get(&sources, 50));
    cr_assert_null(tl_sources_get(NULL, 1));
    cr_assert_not_null(tl_sources_get(&sources, 49));
}

Test(source, every_failing_allocation_gives_zero)
{
    uint64_t n = 1;

    for (;; n++) {
        uint32_t file;

        tl_sources_fini(&sources);
        tl_mem_fail_at(n, false);
        file = tl_sources_add(&sources, "f", "a\nb", 3);
        tl_mem_fail_at(0, false);
        if (file != 0) {
            break;
        }
        cr_assert_eq(sources.len, 0);
    }
    cr_assert_eq(n, 5); /* the list, name, text, lines; the fifth is none */
}
