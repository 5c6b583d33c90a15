/* cmd_help.c - `tlang explain CODE` and `tlang help NAME`. */
#include <stdio.h>
#include <string.h>

#include "interp/builtin.h"
#include "interp/explain.h"
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
        tl_status st = tl_fail(&s->diag, TL_E0720, "there is no code %s",
                               name);
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

/* What the methods of a type belong to. */
static const char *tag_name(tl_tag tag)
{
    switch (tag) {
    case TL_V_TENSOR:
        return "tensor";
    case TL_V_STR:
        return "str";
    case TL_V_LIST:
        return "list";
    case TL_V_TUPLE:
        return "tuple";
    case TL_V_DICT:
        return "dict";
    case TL_V_TREE:
        return "tree";
    case TL_V_MODULE:
        return "module";
    default:
        return "value";
    }
}

int tl_cmd_help(tl_session *s, const char *name)
{
    const tl_sym *sym = tl_intern_get(&s->names, name, strlen(name));
    const tl_builtin *b = sym != NULL ? tl_builtin_find(&s->ev, sym) : NULL;
    bool found = b != NULL;

    if (b != NULL && strchr("=@", b->signature[0]) != NULL &&
        b->signature[0] != '\0') { /* a value */
        printf("%s\n    %s\n", b->name, b->doc);
    } else if (b != NULL) {
        printf("%s(%s)\n    %s\n", b->name, b->signature, b->doc);
    }
    for (int tag = TL_V_NONE + 1; sym != NULL && tag < TL_V_TAG_COUNT;
         tag++) {
        const tl_builtin *m = tl_builtin_method(&s->ev, (tl_tag)tag, sym);

        if (m != NULL && tag != TL_V_NODE) {
            printf("%s.%s(%s)\n    %s\n", tag_name((tl_tag)tag), m->name,
                   m->signature, m->doc);
            found = true;
        }
    }
    if (found) {
        return 0;
    }
    size_t n = 0;
    const char *const *names = tl_builtin_names(&s->ev, TL_V_NONE, &n);
    tl_status st = tl_fail(&s->diag, TL_E0720, "nothing is called `%s`",
                           name);
    const char *near = tl_nearest(name, names, n);

    if (near != NULL) {
        tl_diag_help(&s->diag, "%s", near);
    }
    return tl_session_report(s, st);
}
