/* cmd_test.c - `tlang test` and `tlang check`.
 *
 * test: a file's top level runs, @main does not; then each `test` block runs
 * with a fixed seed.  The last line is "N passed, N failed". */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "interp/session.h"
#include "runtime/base/mem.h"

typedef struct tally {
    int passed, failed;
} tally;

static bool wanted(const tl_session *s, const char *title)
{
    return s->options.match == NULL || strstr(title, s->options.match);
}

static void run_block(tl_session *s, tl_namespace *ns, const tl_ast *test,
                      tally *t)
{
    const char *title = TL_AST(test, test)->title.s;

    if (!wanted(s, title)) {
        return;
    }
    if (s->options.list) {
        printf("%s: %s\n", ns->path->data, title);
        return;
    }
    tl_rt_seed(&s->rt, (uint64_t)s->options.seed);
    tl_status st = tl_eval_test(&s->ev, ns, test);

    printf("%s %s: %s\n", st == TL_OK ? "ok    " : "FAILED", ns->path->data,
           title);
    if (st != TL_OK) {
        printf("       seed %lld\n", (long long)s->options.seed);
    }
    t->passed += st == TL_OK;
    t->failed += st != TL_OK;
    tl_session_report(s, st);
}

static tl_status test_file(tl_session *s, const char *path, tally *t)
{
    TL_TRY(tl_session_run_file(s, path));
    tl_session_report(s, TL_OK);
    tl_namespace *ns = s->ev.main_ns;

    for (size_t u = 0; u < ns->nunits; u++) {
        for (uint32_t i = 0; i < ns->units[u]->ntests; i++) {
            run_block(s, ns, ns->units[u]->tests[i], t);
        }
    }
    return TL_OK;
}

/* Files ending in .tl below a folder, in order of name. */
static int is_source(const struct dirent *e)
{
    size_t n = strlen(e->d_name);

    return n > 3 && strcmp(e->d_name + n - 3, ".tl") == 0;
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
