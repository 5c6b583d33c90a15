/* cmd_test.c - `tlang test` and `tlang check`.
 *
 * test: a file's top level runs, @main does not; then each `test` block and
 * each example in a docstring (doctest.h) runs with a fixed seed.  The last
 * line is "N passed, N failed". */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "interp/doctest.h"
#include "interp/session.h"
#include "runtime/base/mem.h"

typedef struct tally {
    int passed, failed;
} tally;

static bool wanted(const tl_session *s, const char *title)
{
    return s->options.match == NULL || strstr(title, s->options.match);
}

/* A test or an example has run, or one is listed. */
static void count(tl_session *s, const tl_namespace *ns, const char *title,
                  tl_status st, tally *t)
{
    printf("%s %s: %s\n", st == TL_OK ? "ok    " : "FAILED", ns->path->data,
           title);
    if (st != TL_OK) {
        printf("       seed %lld\n", (long long)s->options.seed);
    }
    t->passed += st == TL_OK;
    t->failed += st != TL_OK;
    tl_session_report(s, st);
}

/* Is it to run?  Seeds if so; with --list it is listed instead. */
static bool begins(tl_session *s, const tl_namespace *ns, const char *title)
{
    if (!wanted(s, title)) {
        return false;
    }
    if (s->options.list) {
        printf("%s: %s\n", ns->path->data, title);
        return false;
    }
    tl_rt_seed(&s->rt, (uint64_t)s->options.seed);
    return true;
}

static void run_block(tl_session *s, tl_namespace *ns, const tl_ast *test,
                      tally *t)
{
    const char *title = TL_AST(test, test)->title.s;

    if (begins(s, ns, title)) {
        count(s, ns, title, tl_eval_test(&s->ev, ns, test), t);
    }
}

/* The examples of one docstring, of `name` in `outer` (or NULL). */
static void run_doc(tl_session *s, tl_namespace *ns, const char *outer,
                    const char *name, const tl_text *doc, tally *t)
{
    char title[160];

    if (!tl_doctest_find(doc)) {
        return;
    }
    snprintf(title, sizeof(title), "example of %s%s%s",
             outer != NULL ? outer : "", outer != NULL ? "." : "", name);
    if (begins(s, ns, title)) {
        count(s, ns, title, tl_doctest_run(s, ns, title, doc), t);
    }
}

/* Of a function, module or record, and of a module's methods. */
static void run_definition(tl_session *s, tl_namespace *ns,
                           const char *outer, const tl_ast *stmt, tally *t)
{
    if (stmt->kind == TL_AST_FN) {
        const tl_ast_fn *fn = TL_AST(fn, stmt);

        run_doc(s, ns, outer, fn->name->text, fn->func->doc, t);
    } else if (stmt->kind == TL_AST_RECORD) {
        const tl_ast_record *record = TL_AST(record, stmt);

        run_doc(s, ns, outer, record->name->text, &record->doc, t);
    } else if (stmt->kind == TL_AST_MODULE) {
        const tl_ast_module *module = TL_AST(module, stmt);
        const tl_kids *body = &TL_AST(block, module->body)->stmts;

        run_doc(s, ns, outer, module->name->text, module->func->doc, t);
        for (uint32_t i = 0; i < body->len; i++) {
            if (body->items[i]->kind == TL_AST_FN) {
                run_definition(s, ns, module->name->text, body->items[i], t);
            }
        }
    }
}

static void run_docs(tl_session *s, tl_namespace *ns, const tl_unit *unit,
                     tally *t)
{
    const tl_kids *stmts = &TL_AST(block, unit->root->body)->stmts;

    run_doc(s, ns, NULL, ns->name->data, unit->root->func->doc, t);
    for (uint32_t i = 0; i < stmts->len; i++) {
        run_definition(s, ns, NULL, stmts->items[i], t);
    }
}

static tl_status test_file(tl_session *s, const char *path, tally *t)
{
    TL_TRY(tl_session_run_file(s, path));
    tl_session_report(s, TL_OK);
    tl_namespace *ns = s->ev.main_ns;
    size_t n = ns->nunits;

    for (size_t u = 0; u < n && !s->options.doc_only; u++) {
        for (uint32_t i = 0; i < ns->units[u]->ntests; i++) {
            run_block(s, ns, ns->units[u]->tests[i], t);
        }
    }
    for (size_t u = 0; u < n; u++) {
        run_docs(s, ns, ns->units[u], t);
    }
    return TL_OK;
}

/* Files ending in .tl, and folders, in order of name; no hidden ones. */
static int is_source(const struct dirent *e)
{
    size_t n = strlen(e->d_name);

    return e->d_name[0] != '.' &&
           (e->d_type == DT_DIR ||
            (n > 3 && strcmp(e->d_name + n - 3, ".tl") == 0));
}

static void test_path(tl_session *s, const char *path, tally *t)
{
    struct dirent **names = NULL;
    struct stat st;

    if (stat(path, &st) != 0 || !S_ISDIR(st.st_mode)) {
        tl_status status = test_file(s, path, t);

        if (status != TL_OK) {
            printf("FAILED %s: does not load\n", path);
            t->failed++;
            tl_session_report(s, status);
        }
        return;
    }
    int n = scandir(path, &names, is_source, alphasort);

    for (int i = 0; i < n; i++) {
        tl_buf file;

        tl_buf_init(&file);
        tl_buf_printf(&file, "%s/%s", path, names[i]->d_name);
        test_path(s, tl_buf_str(&file), t);
        tl_buf_fini(&file);
        free(names[i]); /* scandir's own */
    }
    free(names); /* scandir's own */
}

int tl_cmd_test(tl_session *s, char **files, int n)
{
    char here[] = ".", *one[] = {here};
    tally t = {0};

    s->eval_options.run_tests = true;
    if (n == 0) {
        files = one;
        n = 1;
    }
    for (int i = 0; i < n; i++) {
        test_path(s, files[i], &t);
    }
    if (!s->options.list) {
        printf("%d passed, %d failed\n", t.passed, t.failed);
    }
    return t.failed > 0;
}

int tl_cmd_check(tl_session *s, char **files, int n)
{
    int code = 0;

    if (n == 0) {
        return tl_session_report(
            s, tl_fail(&s->diag, TL_E0720, "`check` needs a file"));
    }
    s->eval_options.check_only = true;
    for (int i = 0; i < n; i++) {
        int c = tl_session_report(s, tl_session_run_file(s, files[i]));

        code = c > code ? c : code;
    }
    return code;
}
