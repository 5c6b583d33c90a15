/* test_explain.c - the examples of `tlang explain`, all of explain.def. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <unistd.h>

#include "interp/explain.h"
#include "tests/unit/interp/run.h"

/* The program in an evaluator of its own; its status, its first error. */
static tl_status run_alone(const char *program, tl_code *code)
{
    run r;
    tl_status st = run_init(&r);

    if (st == TL_OK) {
        st = tl_eval_text(&r.ev, r.ns, "<explain>", program, strlen(program),
                          NULL, NULL);
        if (r.diag.first != NULL) {
            *code = r.diag.first->code;
        }
        run_fini(&r);
    }
    run_release(&r);
    return st;
}

/* Examples may write files: into a folder of their own. */
static char folder[] = "/tmp/tlang-explain-XXXXXX";

static void enter_folder(void)
{
    cr_assert_not_null(mkdtemp(folder));
    cr_assert_eq(chdir(folder), 0);
}

static void leave_folder(void)
{
    cr_expect_eq(unlink("explain-e0701.safetensors"), 0);
    cr_expect_eq(chdir("/"), 0);
    cr_expect_eq(rmdir(folder), 0);
}

Test(explain, wrong_programs_fail_with_their_code)
{
    for (size_t i = 0; i < tl_explain_count; i++) {
        const tl_explain_page *p = &tl_explain_pages[i];
        tl_code code = p->code;
        tl_status st = run_alone(p->wrong, &code);

        cr_expect_neq(st, TL_OK, "%s: the wrong program runs",
                      tl_code_name(p->code));
        cr_expect_eq(code, p->code, "%s: the wrong program gives %s",
                     tl_code_name(p->code), tl_code_name(code));
    }
}

Test(explain, right_programs_run)
{
    enter_folder();
    for (size_t i = 0; i < tl_explain_count; i++) {
        const tl_explain_page *p = &tl_explain_pages[i];
        tl_code code = p->code;
        tl_status st = run_alone(p->right, &code);

        cr_expect_eq(st, TL_OK, "%s: the right program gives %s",
                     tl_code_name(p->code), tl_code_name(code));
    }
    leave_folder();
}

Test(explain, pages_are_found_and_tell_something)
{
    for (size_t i = 0; i < tl_explain_count; i++) {
        const tl_explain_page *p = &tl_explain_pages[i];

        cr_expect_eq(tl_explain_find(p->code), p, "%s: twice in the table",
                     tl_code_name(p->code));
        cr_expect_gt(strlen(p->text), 20);
        cr_expect_str_neq(p->wrong, p->right);
    }
}
