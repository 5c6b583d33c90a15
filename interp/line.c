/* line.c - the line editor behind one interface.
 *
 * readline keeps its state in globals of its own; the evaluator that
 * completion asks is the one other such state, since its callbacks carry no
 * argument. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "interp/line.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#if defined(HAVE_READLINE)
#include <readline/history.h>
#include <readline/readline.h>
#define HAVE_EDITOR 1
#elif defined(HAVE_LIBEDIT)
#include <editline/readline.h>
#define HAVE_EDITOR 1
#endif

#include "interp/builtin.h"
#include "interp/module.h"
#include "runtime/base/mem.h"

static struct {
    tl_eval *ev;
    tl_namespace *ns;
    const char **names; /* candidates of the completion that runs */
    size_t n, cap, next;
    int error; /* errno of the last line that could not be read */
} state;

/* ---- names to complete ------------------------------------------------- */

#ifdef HAVE_EDITOR
static void add_name(const char *name)
{
    if (state.n == state.cap) {
        size_t cap = state.cap > 0 ? 2 * state.cap : 256;
        const char **names = tl_realloc(state.names, cap * sizeof(*names));

        if (names == NULL) {
            return;
        }
        state.names = names;
        state.cap = cap;
    }
    state.names[state.n++] = name;
}

static void add_top_level(void)
{
    static const char *const words[] = {
#define KEYWORD(text, TOKEN) text,
#define SOFT(text, TOKEN) text,
#include "lang/keywords.def"
    };
    size_t n = 0;
    const char *const *names = tl_builtin_names(state.ev, TL_V_NONE, &n);

    for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
        add_name(words[i]);
    }
    for (size_t i = 0; i < n; i++) {
        add_name(names[i]);
    }
    for (size_t i = 0; i < state.ns->names->names.len; i++) {
        add_name(state.ns->names->names.items[i]->text);
    }
}

/* The value of a plain name at top level, borrowed. */
static tl_value top_value(const char *name, size_t len)
{
    const tl_sym *sym = tl_intern_find(state.ev->lang->names, name, len);
    int64_t slot = sym != NULL ? tl_globals_find(state.ns->names, sym) : -1;

    return slot >= 0 && (size_t)slot < state.ns->nslots
               ? state.ns->slots[slot]
               : tl_empty();
}

/* Fields and methods of the value called `name`. */
static void add_fields(const char *name, size_t len)
{
    tl_value v = top_value(name, len);
    size_t n = 0;

    if (v.tag == TL_V_MODULE) {
        const tl_moddef *def = tl_module_def(v.module);

        for (uint32_t i = 0; i < def->nfields; i++) {
            add_name(def->fields[i].name->text);
        }
    } else if (v.tag == TL_V_NAMESPACE) {
        for (size_t i = 0; i < v.ns->names->names.len; i++) {
            add_name(v.ns->names->names.items[i]->text);
        }
    }
    if (tl_is_tensor(v)) {
        add_name("shape");
        add_name("dtype");
        add_name("size");
        add_name("T");
    }
    const char *const *names = tl_builtin_names(state.ev, v.tag, &n);

    for (size_t i = 0; i < n && v.tag != TL_V_EMPTY; i++) {
        add_name(names[i]);
    }
}

static char *next_match(const char *text, int first)
{
    const char *dot = strrchr(text, '.');
    size_t head = dot != NULL ? (size_t)(dot - text) + 1 : 0;
    size_t len = strlen(text) - head;

    if (!first) {
        state.n = state.next = 0;
        if (dot != NULL) {
            add_fields(text, head - 1);
        } else {
            add_top_level();
        }
    }
    while (state.next < state.n) {
        const char *name = state.names[state.next++];

        if (strncmp(name, text + head, len) == 0) {
            size_t n = strlen(name);
            char *match = malloc(head + n + 1); /* readline frees it */

            if (match != NULL) {
                memcpy(match, text, head);
                memcpy(match + head, name, n + 1);
            }
            return match;
        }
    }
    return NULL;
}

static char **complete(const char *text, int start, int end)
{
    (void)start;
    (void)end;
    rl_attempted_completion_over = 1;
#ifdef HAVE_READLINE
    rl_completion_append_character = '\0';
#endif
    return rl_completion_matches(text, next_match);
}
#endif

#ifdef HAVE_READLINE
/* The next key; Ctrl-C ends the line that is being typed. */
static int read_key(FILE *input)
{
    volatile sig_atomic_t *flag = state.ev->rt->interrupted;
    unsigned char key;
    ssize_t n;

    do {
        if (flag != NULL && *flag) {
            return '\n';
        }
        n = read(fileno(input), &key, 1);
    } while (n < 0 && errno == EINTR);
    return n == 1 ? key : EOF;
}
#endif

void tl_line_init(tl_eval *ev, tl_namespace *ns)
{
    state.ev = ev;
    state.ns = ns;
#ifdef HAVE_EDITOR
    rl_readline_name = (char *)(uintptr_t) "tlang";
    rl_attempted_completion_function = complete;
#endif
#ifdef HAVE_READLINE
    rl_catch_signals = 0;
    rl_getc_function = read_key;
    rl_basic_word_break_characters = " \t\n\"\\'`@$><=;|&{([,+-*/%:";
#endif
}

bool tl_line_terminal(void)
{
    return isatty(STDIN_FILENO) != 0;
}

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

char *tl_line_read(const char *prompt, size_t *len, bool *stopped)
{
    volatile sig_atomic_t *flag = state.ev->rt->interrupted;
    bool ends_line = false; /* does the editor, after Ctrl-C? */
    char *line;

    *stopped = false;
    *len = 0;
    if (!tl_line_terminal()) {
        line = read_plain("", len);
    } else {
#ifdef HAVE_EDITOR
        line = readline(prompt);
        *len = line != NULL ? strlen(line) : 0;
#else
        line = read_plain(prompt, len);
#endif
#ifdef HAVE_READLINE
        ends_line = true;
#endif
    }
    if (flag != NULL && *flag) {
        *flag = 0;
        *stopped = true;
        clearerr(stdin);
        if (line == NULL) {
            line = strdup(""); /* freed like getline's own */
            *len = 0;
        }
        if (!ends_line) {
            fputc('\n', stdout);
        }
    }
    return line;
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
#ifdef HAVE_EDITOR
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
    stifle_history(10000);
    read_history(path);
#elif defined(HAVE_LIBEDIT)
    read_history(path);
#else
    (void)path;
#endif
}

void tl_line_history_append(const char *path, const char *entry)
{
    if (entry[0] == '\0' || entry[0] == ' ') {
        return;
    }
    int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);

    if (fd < 0) {
        return; /* history is never worth a message */
    }
    tl_buf buf;

    tl_buf_init(&buf);
    tl_buf_printf(&buf, "#%lld\n%s\n", (long long)time(NULL), entry);
    if (flock(fd, LOCK_EX) == 0 && !buf.failed &&
        write(fd, buf.data, buf.len) < 0) {
        errno = 0;
    }
    tl_buf_fini(&buf);
    close(fd);
}
