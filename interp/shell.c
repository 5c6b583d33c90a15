/* shell.c - running a shell command or an editor on the terminal.
 *
 * The child stays in the group of processes that has the terminal: Ctrl-C and
 * Ctrl-Z reach both, and the evaluator's flag is the caller's to clear. */
#include "interp/shell.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *variable(const char *name, const char *fallback)
{
    const char *v = getenv(name);

    return v != NULL && *v != '\0' ? v : fallback;
}

/* In the child: signals as a program expects them. */
static void become(const char *shell, const char *command)
{
    sigset_t none;

    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    signal(SIGINT, SIG_DFL);
    signal(SIGPIPE, SIG_DFL);
    signal(SIGXFSZ, SIG_DFL);
    execl(shell, shell, "-c", command, (char *)NULL);
    _exit(127);
}

int tl_shell_run(const char *command)
{
    const char *shell = variable("SHELL", "/bin/sh");
    int status = 0;

    fflush(stdout);
    pid_t pid = fork();

    if (pid < 0) {
        return -1;
    }
    if (pid == 0) {
        become(shell, command);
    }
    while (waitpid(pid, &status, 0) < 0) {
        if (errno != EINTR) {
            return -1;
        }
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static bool write_all(int fd, const char *s, size_t n)
{
    while (n > 0) {
        ssize_t k = write(fd, s, n);

        if (k < 0 && errno != EINTR) {
            return false;
        }
        s += k > 0 ? k : 0;
        n -= k > 0 ? (size_t)k : 0;
    }
    return true;
}

/* The file's text, its last newlines left out. */
static bool read_back(const char *path, tl_buf *out)
{
    FILE *f = fopen(path, "r");
    char part[4096];
    size_t n;

    if (f == NULL) {
        return false;
    }
    tl_buf_clear(out);
    while ((n = fread(part, 1, sizeof(part), f)) > 0) {
        tl_buf_add(out, part, n);
    }
    bool good = ferror(f) == 0;

    fclose(f);
    while (out->len > 0 && out->data[out->len - 1] == '\n') {
        out->data[--out->len] = '\0';
    }
    return good;
}

bool tl_shell_edit(tl_buf *text)
{
    const char *editor = variable("VISUAL", variable("EDITOR", "vi"));
    char path[4096];
    tl_buf command;
    int n = snprintf(path, sizeof(path), "%s/tlang-XXXXXX.tl",
                     variable("TMPDIR", "/tmp"));

    if (n < 0 || (size_t)n >= sizeof(path)) {
        return false;
    }
    int fd = mkstemps(path, 3);

    if (fd < 0) {
        return false;
    }
    bool good = write_all(fd, tl_buf_str(text), text->len) &&
                write_all(fd, "\n", 1);

    close(fd);
    tl_buf_init(&command);
    tl_buf_printf(&command, "%s '%s'", editor, path);
    good = good && !command.failed && strchr(path, '\'') == NULL &&
           tl_shell_run(tl_buf_str(&command)) == 0 && read_back(path, text);
    tl_buf_fini(&command);
    unlink(path);
    return good;
}
