/* cmd_help.c - `tlang explain CODE`, `tlang doc NAME`, `tlang help NAME`. */
#include <stdio.h>
#include <string.h>

#include "interp/builtin.h"
#include "interp/explain.h"
#include "interp/reference.h"
#include "interp/session.h"

/* A program, indented. */
static void print_program(const char *title, const char *text)
{
    printf("\n%s:\n\n", title);
    while (*text != '\0') {
        size_t n = strcspn(text, "\n");

        printf("    %.*s\n", (int)n, text);
        text += n + (text[n] == '\n');
    }
}

int tl_cmd_explain(tl_session *s, const char *name)
{
    tl_code code = tl_code_find(name);

    if (code == TL_CODE_NONE) {
        const char *names[TL_CODE_COUNT];
        size_t n = 0;

        for (int c = 1; c < TL_CODE_COUNT; c++) {
            names[n++] = tl_code_name((tl_code)c);
        }
        tl_status st =
            tl_fail(&s->diag, TL_E0720, "there is no code %s", name);
        const char *near = tl_nearest(name, names, n);

        if (near != NULL) {
            tl_diag_help(&s->diag, "%s", near);
        }
        return tl_session_report(s, st);
    }
    const tl_explain_page *page = tl_explain_find(code);

    printf("%s: %s\n", tl_code_name(code), tl_code_title(code));
    if (tl_code_severity(code) == TL_SEV_ERROR) {
        printf("exit code %d when it ends a program\n",
               tl_status_exit_code(tl_code_status(code)));
    }
    if (page != NULL) {
        printf("\n%s\n", page->text);
        print_program("wrong", page->wrong);
        print_program("right", page->right);
    }
    return 0;
}

/* Nothing has that name; `near` is one of a library, or empty. */
static tl_status no_such_name(tl_session *s, const char *name,
                              const char *near)
{
    size_t n = 0;
    const char *const *names = tl_builtin_names(&s->ev, TL_V_NONE, &n);
    tl_status st =
        tl_fail(&s->diag, TL_E0720, "nothing is called `%s`", name);

    if (*near == '\0') {
        near = tl_nearest(name, names, n);
    }
    if (near != NULL) {
        tl_diag_help(&s->diag, "%s", near);
    }
    return st;
}

/* The page of one name, or the index. */
static tl_status add_page(tl_session *s, const char *name, tl_buf *out)
{
    tl_buf near;
    bool found = true;

    if (name == NULL) {
        return tl_doc_index(&s->ev, out);
    }
    tl_buf_init(&near);
    tl_status st = tl_doc_name(&s->ev, name, &near, &found);

    if (st == TL_OK && !found) {
        st = no_such_name(s, name, tl_buf_str(&near));
    } else if (st == TL_OK) {
        tl_buf_add(out, tl_buf_str(&near), near.len);
    }
    tl_buf_fini(&near);
    return st;
}

int tl_cmd_doc(tl_session *s, char *const *names, int count)
{
    tl_buf out;
    tl_status st = TL_OK;

    tl_buf_init(&out);
    if (s->options.operations) {
        tl_doc_operations(&out);
    } else if (count == 0) {
        st = add_page(s, NULL, &out);
    }
    for (int i = 0; i < count && st == TL_OK; i++) {
        tl_buf_puts(&out, out.len > 0 ? "\n" : "");
        st = add_page(s, names[i], &out);
    }
    if (st == TL_OK && out.failed) {
        st = tl_fail_memory(&s->diag, "a page", out.len);
    } else if (st == TL_OK) {
        fwrite(tl_buf_str(&out), 1, out.len, stdout);
    }
    tl_buf_fini(&out);
    return tl_session_report(s, st);
}
