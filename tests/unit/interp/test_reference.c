/* test_reference.c - the pages of `tlang doc`: every operation on tensors has
 * one, and every example prints what its page says. */
#include <criterion/criterion.h>

#include "interp/builtin.h"
#include "interp/reference.h"
#include "tests/unit/interp/run.h"

/* The names of builtin_tensor.def, methods left out. */
static const char *const operations[] = {
#define BUILTIN(name, sig, fn, effects, doc) #name,
#define OPFN(name, op, sig, fn, effects, doc) #name,
#define METHOD(tag, name, sig, fn, effects, doc)
#define OPMETHOD(name, op, sig, fn, effects, doc)
#include "interp/builtin_tensor.def"
#undef BUILTIN
#undef OPFN
#undef METHOD
#undef OPMETHOD
};

Test(reference, every_operation_has_a_page)
{
    for (size_t i = 0; i < sizeof(operations) / sizeof(*operations); i++) {
        cr_expect_not_null(tl_reference_find(operations[i]),
                           "reference.def lacks %s", operations[i]);
    }
}

Test(reference, every_page_is_of_an_operation)
{
    for (size_t i = 0; i < tl_reference_count; i++) {
        const tl_reference *r = &tl_references[i];
        bool found = false;

        for (size_t j = 0; j < tl_builtin_nrows; j++) {
            found = found || strcmp(tl_builtin_rows[j].name, r->name) == 0;
        }
        cr_expect(found, "nothing is called %s", r->name);
        cr_expect_eq(tl_reference_find(r->name), r, "%s is there twice",
                     r->name);
    }
}

/* What print shows of the expression. */
static void expect_shown(const tl_reference *r)
{
    run e;
    tl_buf program;

    cr_assert_eq(run_init(&e), TL_OK);
    tl_buf_init(&program);
    tl_buf_printf(&program, "print(%s)", r->example);
    cr_expect_eq(run_text(&e, tl_buf_str(&program)), TL_OK,
                 "%s: the example fails with %s", r->name,
                 tl_code_name(run_code(&e)));
    size_t n = strlen(r->shown);

    cr_expect(e.output.len == n + 1 &&
                  memcmp(tl_buf_str(&e.output), r->shown, n) == 0,
              "%s: shows %s, not %s", r->name, tl_buf_str(&e.output), r->shown);
    tl_buf_fini(&program);
    run_fini(&e);
    run_release(&e);
}

Test(reference, examples_show_what_the_page_says)
{
    for (size_t i = 0; i < tl_reference_count; i++) {
        expect_shown(&tl_references[i]);
    }
}

static void expect_doc(const char *name, const char *text)
{
    run e;
    tl_buf out;
    bool found = false;

    cr_assert_eq(run_init(&e), TL_OK);
    tl_buf_init(&out);
    cr_expect_eq(tl_doc_name(&e.ev, name, &out, &found), TL_OK);
    cr_expect_eq(found, text != NULL, "%s", name);
    cr_expect(text == NULL || strstr(tl_buf_str(&out), text) != NULL,
              "%s: %s", name, tl_buf_str(&out));
    tl_buf_fini(&out);
    run_fini(&e);
    run_release(&e);
}

Test(reference, names_of_all_kinds_are_found)
{
    expect_doc("sigmoid", "gradient  zmul(g, y * (1 - y))");
    expect_doc("maximum", "d / db");
    expect_doc("upper", "str.upper(");
    expect_doc("pi", "3.14");
    expect_doc("json.parse", "json.parse(text: str)");
    expect_doc("nn", "  module Linear(d_in: int");
    expect_doc("nn.Linear", "module Linear(d_in: int");
    expect_doc("GradScaler", "module GradScaler(");
    expect_doc("nn._within", NULL);
    expect_doc("nn.Nothing", NULL);
    expect_doc("nothing", NULL);
    expect_doc(".", NULL);
    expect_doc("", NULL);
}

Test(reference, the_page_of_operations_has_them_all)
{
    tl_buf out;

    tl_buf_init(&out);
    tl_doc_operations(&out);
    for (size_t i = 0; i < tl_reference_count; i++) {
        tl_buf title;

        tl_buf_init(&title);
        tl_buf_printf(&title, "\n## %s\n", tl_references[i].name);
        cr_expect_not_null(strstr(tl_buf_str(&out), tl_buf_str(&title)));
        tl_buf_fini(&title);
    }
    cr_expect_null(strstr(tl_buf_str(&out), "M("), "a formula as in C");
    tl_buf_fini(&out);
}
