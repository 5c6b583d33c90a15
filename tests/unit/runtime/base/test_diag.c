/* test_diag.c - the sink. */
#include <criterion/criterion.h>

#include <stdio.h>
#include <string.h>

#include "runtime/base/diag.h"
#include "runtime/base/mem.h"

static tl_diag diag;

static void setup(void)
{
    tl_diag_init(&diag, NULL);
}

static void release(void)
{
    tl_mem_fail_at(0, false);
    tl_diag_fini(&diag);
}

TestSuite(diag, .init = setup, .fini = release);

Test(diag, fail_returns_the_status_of_its_row)
{
    cr_expect_eq(tl_fail(&diag, TL_E0100, "x"), TL_ERR_REJECTED);
    cr_expect_eq(tl_fail(&diag, TL_E0301, "x"), TL_ERR_PROGRAM);
    cr_expect_eq(tl_fail(&diag, TL_E0607, "x"), TL_ERR_MEMORY);
    cr_expect_eq(tl_fail(&diag, TL_E0701, "x"), TL_ERR_FILE);
    cr_expect_eq(diag.nerrors, 4);
}

Test(diag, no_row_has_the_status_ok)
{
    for (int c = 0; c < TL_CODE_COUNT; c++) {
        cr_expect_neq(tl_code_status((tl_code)c), TL_OK, "%s",
                      tl_code_name((tl_code)c));
    }
}

Test(diag, codes_are_found_by_name_and_in_order)
{
    const char *before = "E0000";

    for (int c = 1; c < TL_CODE_COUNT; c++) {
        const char *name = tl_code_name((tl_code)c);

        cr_expect_eq(tl_code_find(name), c);
        cr_expect(strcmp(before + 1, name + 1) < 0, "%s after %s", name,
                  before);
        cr_expect_eq(name[0] == 'W',
                     tl_code_severity((tl_code)c) == TL_SEV_WARNING, "%s",
                     name);
        cr_expect_gt(strlen(tl_code_title((tl_code)c)), 4);
        before = name;
    }
    cr_expect_eq(tl_code_find("e0301"), TL_E0301);
    cr_expect_eq(tl_code_find("E9999"), TL_CODE_NONE);
}

Test(diag, warnings_are_counted_apart)
{
    tl_warn(&diag, TL_W0318, (tl_span){0}, "w");
    cr_expect_eq(diag.nerrors, 0);
    cr_expect_eq(diag.nwarnings, 1);
    cr_expect_eq(diag.last->severity, TL_SEV_WARNING);
}

Test(diag, place_is_kept_once_given)
{
    cr_assert_neq(tl_fail(&diag, TL_E0301, "x"), TL_OK);
    tl_diag_at(&diag, (tl_span){1, 2, 3});
    tl_diag_at(&diag, (tl_span){1, 7, 8});
    cr_expect_eq(diag.last->span.start, 2);
}

Test(diag, additions_go_to_the_newest)
{
    cr_assert_neq(tl_fail(&diag, TL_E0301, "first"), TL_OK);
    cr_assert_neq(tl_fail(&diag, TL_E0302, "second %d", 2), TL_OK);
    for (int i = 0; i < 9; i++) {
        tl_diag_label_add(&diag, (tl_span){1, 0, 1}, "label %d", i);
        tl_diag_note(&diag, "note %d", i);
        tl_diag_fix_add(&diag, (tl_span){1, 0, 1}, "fix");
    }
    tl_diag_help(&diag, "help");
    tl_diag_caret(&diag, "caret");
    cr_expect_eq(diag.first->nnotes, 0);
    cr_expect_str_eq(diag.last->message, "second 2");
    cr_expect_eq(diag.last->nlabels, 9);
    cr_expect_str_eq(diag.last->labels[8].text, "label 8");
    cr_expect_str_eq(diag.last->labels[0].text, "label 0");
    cr_expect_str_eq(diag.last->notes[5], "note 5");
    cr_expect_eq(diag.last->nfixes, 9);
    cr_expect_str_eq(diag.last->help, "help");
    cr_expect_str_eq(diag.last->span_text, "caret");
}

Test(diag, additions_without_item_do_nothing)
{
    tl_diag_note(&diag, "x");
    tl_diag_help(&diag, "x");
    tl_diag_frame_add(&diag, "f", (tl_span){0}, NULL);
    tl_diag_at(&diag, (tl_span){1, 2, 3});
    cr_expect_null(diag.first);
    cr_expect_null(tl_diag_pop(&diag));
}

Test(diag, first_and_last_three_frames_are_kept)
{
    char name[16];

    cr_assert_neq(tl_fail(&diag, TL_E0215, "deep"), TL_OK);
    for (int i = 0; i < 100; i++) {
        snprintf(name, sizeof(name), "f%d", i);
        tl_diag_frame_add(&diag, name, (tl_span){0}, "x");
    }
    cr_expect_eq(diag.last->total_frames, 100);
    cr_assert_eq(diag.last->nframes, 6);
    cr_expect_str_eq(diag.last->frames[0].function, "f0");
    cr_expect_str_eq(diag.last->frames[2].function, "f2");
    cr_expect_str_eq(diag.last->frames[3].function, "f97");
    cr_expect_str_eq(diag.last->frames[5].function, "f99");
}

Test(diag, pop_takes_the_newest)
{
    tl_diag_item *item;

    cr_assert_neq(tl_fail(&diag, TL_E0301, "a"), TL_OK);
    cr_assert_neq(tl_fail(&diag, TL_E0302, "b"), TL_OK);
    item = tl_diag_pop(&diag);
    cr_expect_str_eq(item->message, "b");
    cr_expect_eq(diag.nerrors, 1);
    cr_expect_str_eq(diag.last->message, "a");
    cr_assert_neq(tl_fail(&diag, TL_E0303, "c"), TL_OK);
    cr_expect_str_eq(diag.first->next->message, "c");
    cr_expect_str_eq(tl_diag_pop(&diag)->message, "c");
    cr_expect_str_eq(tl_diag_pop(&diag)->message, "a");
    cr_expect_null(tl_diag_pop(&diag));
    cr_expect_null(diag.first);
}

Test(diag, clear_drops_all_and_keeps_the_sources)
{
    tl_sources sources;

    tl_sources_init(&sources);
    diag.sources = &sources;
    cr_assert_neq(tl_fail(&diag, TL_E0301, "a"), TL_OK);
    tl_diag_clear(&diag);
    cr_expect_null(diag.first);
    cr_expect_eq(diag.nerrors, 0);
    cr_expect_eq(diag.sources, &sources);
}

Test(diag, muted_counts_but_keeps_nothing)
{
    cr_assert_neq(tl_fail(&diag, TL_E0301, "a"), TL_OK);
    diag.muted = true;
    cr_expect_eq(tl_fail(&diag, TL_E0302, "b"), TL_ERR_PROGRAM);
    tl_diag_note(&diag, "lost");
    cr_expect_eq(diag.nerrors, 2);
    cr_expect_str_eq(diag.last->message, "a");
    cr_expect_eq(diag.last->nnotes, 0);
}

Test(diag, null_sink_gives_the_status_alone)
{
    cr_expect_eq(tl_fail(NULL, TL_E0701, "x"), TL_ERR_FILE);
    tl_diag_note(NULL, "x");
}

Test(diag, out_of_memory_keeps_a_shortened_message)
{
    tl_mem_fail_at(1, true);
    cr_expect_eq(tl_fail(&diag, TL_E0301, "%0300d", 7), TL_ERR_PROGRAM);
    cr_assert_not_null(diag.last);
    cr_expect_eq(strlen(diag.last->message), 255);
    tl_diag_note(&diag, "dropped");
    tl_diag_label_add(&diag, (tl_span){0}, "dropped");
    tl_diag_frame_add(&diag, "f", (tl_span){0}, "x");
    cr_expect_eq(diag.last->nnotes, 0);
    cr_expect_eq(diag.last->total_frames, 1);
}

/* A failure while cleaning up after a failure is popped: the first stays. */
Test(diag, spares_keep_the_first_when_the_second_is_popped)
{
    tl_mem_fail_at(1, true);
    cr_assert_eq(tl_fail_memory(&diag, "first", 10), TL_ERR_MEMORY);
    cr_assert_eq(tl_fail_memory(&diag, "second", 20), TL_ERR_MEMORY);
    cr_expect_str_eq(tl_diag_pop(&diag)->message,
                     "out of memory: second needs 20 bytes");
    cr_expect_str_eq(diag.last->message,
                     "out of memory: first needs 10 bytes");
    cr_expect_eq(diag.first, diag.last);
    cr_expect_eq(diag.nerrors, 1);
}

Test(diag, last_spare_holds_the_newest_of_several)
{
    cr_assert_neq(tl_fail(&diag, TL_E0301, "kept"), TL_OK);
    while (tl_arena_alloc(&diag.arena, 16) && diag.arena.next !=
           diag.arena.end) {
    }
    tl_mem_fail_at(1, true);
    for (int i = 0; i < 20; i++) {
        cr_assert_eq(tl_fail_memory(&diag, "one", (size_t)i), TL_ERR_MEMORY);
    }
    cr_expect_str_eq(diag.first->message, "kept");
    cr_expect_str_eq(diag.first->next->message,
                     "out of memory: one needs 0 bytes");
    cr_expect_str_eq(diag.last->message,
                     "out of memory: one needs 19 bytes");
    cr_expect_eq(diag.last->code, TL_E0607);
    cr_expect_null(diag.last->next);
}

Test(diag, every_failing_allocation_is_reported)
{
    int64_t before = tl_mem_live_blocks();

    for (uint64_t n = 1; n < 20; n++) {
        tl_diag d;

        tl_diag_init(&d, NULL);
        tl_mem_fail_at(n, true);
        for (int i = 0; i < 40; i++) {
            cr_assert_eq(tl_fail(&d, TL_E0301, "%0200d", i), TL_ERR_PROGRAM);
            tl_diag_note(&d, "%0500d", i);
            tl_diag_fix_add(&d, (tl_span){0}, "text");
            cr_assert_not_null(d.last);
            cr_assert_eq(strlen(d.last->message), 200);
        }
        cr_assert_eq(d.nerrors, 40);
        tl_mem_fail_at(0, false);
        tl_diag_fini(&d);
        cr_assert_eq(tl_mem_live_blocks(), before);
    }
}
