/* line.c - the line editor behind one interface: which one there is, lines
 * without any, and history. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "interp/line.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#if defined(HAVE_READLINE)
#include <readline/history.h>
#define HAVE_HISTORY 1
#elif defined(HAVE_LIBEDIT)
#include <editline/readline.h>
#define HAVE_HISTORY 1
#endif

enum { MOST_HISTORY = 10000 };

static struct {
    tl_line_host host;
    int error; /* errno of the last line that could not be read */
#ifdef HAVE_LIBEDIT
    tl_completion found; /* of the completion that runs */
    size_t next;
#endif
} state;

/* ---- libedit: lines, and completion by names ---------------------------- */

#ifdef HAVE_LIBEDIT
static char *next_match(const char *text, int first)
{
    tl_completion *c = &state.found;

    if (first == 0) {
        tl_completion_fini(c);
        state.next = 0;
        state.host.complete(state.host.arg, rl_line_buffer,
                            (size_t)rl_point, c);
    }
    size_t cursor = (size_t)rl_point, len = strlen(text);
    size_t head = cursor - c->start <= len ? len - (cursor - c->start) : 0;

    if (state.next >= c->len) {
        return NULL;
    }
    const char *word = c->items[state.next++].text;
    size_t n = strlen(word);
    char *match = malloc(head + n + 1); /* libedit frees it */

    if (match != NULL) {
        memcpy(match, text, head);
        memcpy(match + head, word, n + 1);
    }
    return match;
}

static char **complete(const char *text, int start, int end)
{
    (void)start;
    (void)end;
    rl_attempted_completion_over = 1;
    return rl_completion_matches(text, next_match);
}
#endif

void tl_line_init(const tl_line_host *host)
{
    state.host = *host;
#if defined(HAVE_READLINE)
    if (tl_line_terminal()) {
        tl_edit_init(host);
    }
#elif defined(HAVE_LIBEDIT)
    rl_readline_name = (char *)(uintptr_t) "tlang";
    rl_attempted_completion_function = complete;
#endif
}

bool tl_line_terminal(void)
{
    return isatty(STDIN_FILENO) != 0;
}

bool tl_line_collects(void)
{
#ifdef HAVE_READLINE
    return tl_line_terminal() && tl_edit_collects();
#else
    return false;
#endif
}

/* ---- lines without an editor -------------------------------------------- */

static char *read_plain(const char *prompt, size_t *len)
{
    char *line = NULL;
    size_t cap = 0;

    fputs(prompt, stdout);
    fflush(stdout);
    ssize_t n = getline(&line, &cap, stdin);

    if (n < 0) {
        state.error = ferror(stdin) ? errno : 0;
        free(line); /* getline's own */
        return NULL;
    }
    n -= n > 0 && line[n - 1] == '\n';
    n -= n > 0 && line[n - 1] == '\r';
    line[n] = '\0';
    *len = (size_t)n;
    return line;
}

#ifndef HAVE_READLINE
/* A line from a terminal, and what Ctrl-C makes of it. */
static char *read_typed(const char *prompt, size_t *len, bool *stopped)
{
    volatile sig_atomic_t *flag = state.host.interrupted;
#ifdef HAVE_LIBEDIT
    char *line = readline(prompt);

    *len = line != NULL ? strlen(line) : 0;
#else
    char *line = read_plain(prompt, len);
#endif
    if (flag != NULL && *flag) {
        *flag = 0;
        *stopped = true;
        clearerr(stdin);
        if (line == NULL) {
            line = strdup(""); /* freed like getline's own */
            *len = 0;
        }
        fputc('\n', stdout);
    }
    return line;
}
#endif

char *tl_line_read(const char *prompt, const char *more, size_t *len,
                   bool *stopped)
{
    *stopped = false;
    *len = 0;
    if (!tl_line_terminal()) {
        return read_plain("", len);
    }
#ifdef HAVE_READLINE
    return tl_edit_read(prompt, more, len, stopped);
#else
    (void)more;
    return read_typed(prompt, len, stopped);
#endif
}

int tl_line_error(void)
{
    return state.error;
}

void tl_line_free(char *line)
{
    free(line); /* the editor's own */
}

/* ---- history ----------------------------------------------------------- */

void tl_line_remember(const char *entry)
{
#ifdef HAVE_HISTORY
    HIST_ENTRY *last =
        history_length > 0 ? history_get(history_base + history_length - 1)
                           : NULL;

    if (entry[0] != '\0' && entry[0] != ' ' &&
        (last == NULL || strcmp(last->line, entry) != 0)) {
        add_history(entry);
    }
#else
    (void)entry;
#endif
}

void tl_line_history_load(const char *path)
{
#ifdef HAVE_READLINE
    history_comment_char = '#';
    history_write_timestamps = 1;
    history_multiline_entries = 1;
    stifle_history(MOST_HISTORY);
    read_history(path);
    if (history_length == MOST_HISTORY) { /* the file may hold more */
        history_truncate_file(path, MOST_HISTORY);
    }
#elif defined(HAVE_LIBEDIT)
    read_history(path);
#else
    (void)path;
#endif
}

void tl_line_history_append(const char *path, const char *entry)
{
    static char last[4096]; /* what was appended: not twice in a row */
    struct stat st;

    if (entry[0] == '\0' || entry[0] == ' ' || strcmp(entry, last) == 0) {
        return;
    }
    int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);

    if (fd < 0) {
        return; /* history is never worth a message */
    }
    tl_buf buf;

    tl_buf_init(&buf);
    tl_buf_printf(&buf, "#%lld\n%s\n", (long long)time(NULL), entry);
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
        (st.st_mode & 077) != 0 && fchmod(fd, 0600) != 0) {
        errno = 0; /* somebody else's file, that we may write */
    }
    if (flock(fd, LOCK_EX) == 0 && !buf.failed &&
        write(fd, buf.data, buf.len) < 0) {
        errno = 0;
    }
    tl_buf_fini(&buf);
    close(fd);
    last[0] = '\0';
    if (strlen(entry) < sizeof(last)) {
        memcpy(last, entry, strlen(entry) + 1);
    }
}
