/* run.c - one execution of tlang on a golden test.
 *
 * Each run has a scratch folder that holds links to the test and to what is
 * beside it, other tests excepted, so that imports work, messages name the
 * bare file, and what the program writes is thrown away.  Output goes to
 * files, not pipes: nothing can block, and a killed run keeps what it had
 * written. */
#define _GNU_SOURCE
#include "tests/golden/golden.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

double now_seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* What tests of a folder may read: all that is no test itself.  The folder
 * that was listed last is kept, as its tests run one after the other. */
static struct {
    char *path;
    lines names;
} listed;

static bool is_test(const char *path, const char *name)
{
    size_t len = strlen(name);
    if (len < 3 || strcmp(name + len - 3, ".tl")) {
        return false;
    }
    test_case *c = case_read(path, name);
    bool helper = c && c->helper;
    if (c) {
        case_free(c);
    }
    return !helper;
}

static bool list_folder(const char *source)
{
    if (listed.path && !strcmp(listed.path, source)) {
        return true;
    }
    DIR *dir = opendir(source);
    if (!dir) {
        return false;
    }
    free(listed.path);
    lines_free(&listed.names);
    listed.path = format("%s", source);
    for (struct dirent *e; (e = readdir(dir));) {
        char *path = format("%s%s", source, e->d_name);
        if (strcmp(e->d_name, ".") && strcmp(e->d_name, "..") &&
            !is_test(path, e->d_name)) {
            lines_add(&listed.names, e->d_name, strlen(e->d_name));
        }
        free(path);
    }
    closedir(dir);
    return true;
}

static bool link_one(const char *source, const char *name, const char *folder)
{
    char *from = format("%s%s", source, name);
    char *to = format("%s/%s", folder, name);
    bool ok = symlink(from, to) == 0 || errno == EEXIST;

    free(from);
    free(to);
    return ok;
}

/* Links in `folder` to the test and to what it may read. */
static bool link_files(const test_case *c, const char *folder)
{
    char *source = format("%.*s", (int)(c->base - c->path), c->path);
    bool ok = list_folder(source) && link_one(source, c->base, folder);

    for (size_t i = 0; ok && i < listed.names.len; i++) {
        ok = link_one(source, listed.names.items[i], folder);
    }
    free(source);
    return ok;
}

/* Where --message-format stands: after a subcommand, before all else. */
static size_t json_position(const lines *args)
{
    return args->len && args->items[0][0] != '-' && args->items[0][0] != '{';
}

static void push(lines *argv, const char *word)
{
    lines_add(argv, word, strlen(word));
}

/* The command line; `{file}` in the arguments is the test, `{nofile}` keeps
 * it off the command line, and without either it comes last. */
static lines build_argv(const options *o, const test_case *c)
{
    lines argv = {0};

    if (o->valgrind) {
        lines words = lines_words("valgrind -q --error-exitcode=99 "
                                  "--leak-check=full "
                                  "--errors-for-leak-kinds=definite");
        for (size_t i = 0; i < words.len; i++) {
            push(&argv, words.items[i]);
        }
        lines_free(&words);
    }
    push(&argv, o->tlang);
    if (o->form == FORM_REPL) {
        push(&argv, "repl");
        return argv;
    }
    bool placed = false;
    for (size_t i = 0; i <= c->args.len; i++) {
        if (o->form == FORM_JSON && i == json_position(&c->args)) {
            push(&argv, "--message-format=json");
        }
        if (i == c->args.len) {
            break;
        }
        const char *word = c->args.items[i];
        bool is_file = !strcmp(word, "{file}");
        if (!strcmp(word, "{nofile}")) {
            placed = true;
        } else {
            push(&argv, is_file ? c->base : word);
            placed = placed || is_file;
        }
    }
    if (!placed) {
        push(&argv, c->base);
    }
    return argv;
}

/* The child's environment: nothing of the user's settings. */
static void set_environment(const options *o, const test_case *c,
                            const char *folder)
{
    for (char **e = environ; *e;) {
        size_t len = strcspn(*e, "=");
        bool drop = !strncmp(*e, "TLANG_", 6) || !strncmp(*e, "XDG_", 4);
        char *name = format("%.*s", (int)len, *e);
        if (drop) {
            unsetenv(name);
        }
        e = drop ? environ : e + 1;
        free(name);
    }
    setenv("HOME", folder, 1);
    setenv("LC_ALL", "C.UTF-8", 1);
    setenv("TERM", "dumb", 1);
    setenv("TZ", "UTC", 1);
    if (o->compile) {
        setenv("TLANG_COMPILE", o->compile, 1);
    }
    unsetenv("FORCE_COLOR");
    unsetenv("CLICOLOR_FORCE");
    for (size_t i = 0; i < c->env.len; i++) {
        putenv(c->env.items[i]);
    }
}

static void redirect(const char *path, int flags, int fd)
{
    int opened = open(path, flags, 0600);

    if (opened < 0 || dup2(opened, fd) < 0) {
        _exit(126);
    }
    close(opened);
}

/* The child; never returns. */
static _Noreturn void exec_child(const options *o, const run *r,
                                 char *const *argv)
{
    const test_case *c = r->test;
    char *out = format("%s/out", r->folder);
    char *err = format("%s/err", r->folder);
    char *work = format("%s/work", r->folder);
    const char *input = o->form == FORM_REPL ? c->base
                        : c->input           ? c->input
                                             : "/dev/null";

    setpgid(0, 0);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    if (chdir(work) != 0) {
        _exit(126);
    }
    set_environment(o, c, work);
    redirect(!strcmp(input, "{file}") ? c->base : input, O_RDONLY, 0);
    redirect(out, O_WRONLY | O_CREAT | O_TRUNC, 1);
    redirect(err, O_WRONLY | O_CREAT | O_TRUNC, 2);
    execvp(argv[0], argv);
    dprintf(2, "golden: cannot run %s: %s\n", argv[0], strerror(errno));
    _exit(127);
}

run *run_start(const options *o, test_case *c, size_t number)
{
    run *r = calloc(1, sizeof *r);
    if (!r) {
        return NULL;
    }
    r->test = c;
    r->folder = format("%s/%zu", o->scratch, number);
    char *work = format("%s/work", r->folder);
    bool ok = mkdir(r->folder, 0700) == 0 && mkdir(work, 0700) == 0 &&
              link_files(c, work);
    free(work);

    lines argv = build_argv(o, c);
    lines_add(&argv, "", 0);
    free(argv.items[argv.len - 1]);
    argv.items[argv.len - 1] = NULL;

    int limit = c->timeout > o->timeout ? c->timeout : o->timeout;
    r->start = now_seconds();
    r->deadline = r->start + limit * (o->valgrind ? 30 : 1);
    r->pid = ok ? fork() : -1;
    if (r->pid == 0) {
        exec_child(o, r, argv.items);
    }
    lines_free(&argv);
    if (r->pid < 0) {
        run_free(r);
        return NULL;
    }
    return r;
}

void run_finish(run *r, int status)
{
    char *out = format("%s/out", r->folder);
    char *err = format("%s/err", r->folder);

    r->seconds = now_seconds() - r->start;
    r->signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    r->exit = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    r->out = read_file(out);
    r->err = read_file(err);
    r->out = r->out ? r->out : format("%s", "");
    r->err = r->err ? r->err : format("%s", "");
    free(out);
    free(err);
}

void run_free(run *r)
{
    free(r->folder);
    free(r->out);
    free(r->err);
    free(r);
}
