/* line_edit.c - editing an entry with GNU readline.
 *
 * The buffer of readline holds the whole entry, newlines included.  Enter asks
 * the prompt whether it is whole; what is drawn has the second prompt put
 * before each further line (redisplay).  While a line is edited Ctrl-C and
 * Ctrl-Z are keys like others, so that nothing is lost between a signal and a
 * read.  readline's callbacks carry no argument: the state is static. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#ifdef HAVE_READLINE

#include "interp/line.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include <readline/history.h>
#include <readline/readline.h>

#include "interp/paste.h"
#include "interp/shell.h"

enum { INDENT = 4, CTRL_C = 3, CTRL_Z = 26 };

typedef enum mode { MODE_CODE, MODE_HELP, MODE_SHELL } mode;

static struct {
    tl_line_host host;
    bool ready;         /* keys are bound */
    bool whole;         /* entries of several lines are edited as one */
    mode mode;
    const char *prompt, *more;
    bool stopped;       /* the line ended with Ctrl-C */
    tl_buf settled;     /* recalled or pasted: Enter runs it if it is whole */
    tl_buf drawn;       /* what redisplay shows */
    struct termios was; /* the terminal before it was ours */
    bool have_was;
} state;

/* ---- the terminal -------------------------------------------------------- */

/* Killed: the terminal gets its modes back.  Only calls that a handler may
 * make. */
static void on_fatal(int sig)
{
    static const char reset[] = "\033[?2004l\r\n";

    if (state.have_was) {
        tcsetattr(STDIN_FILENO, TCSANOW, &state.was);
        if (write(STDOUT_FILENO, reset, sizeof(reset) - 1) < 0) {
            errno = 0;
        }
    }
    signal(sig, SIG_DFL);
    raise(sig);
}

static void catch_fatal(void)
{
    static const int signals[] = {SIGTERM, SIGHUP, SIGQUIT, SIGABRT, SIGSEGV,
                                  SIGBUS, SIGFPE, SIGILL};

    state.have_was = tcgetattr(STDIN_FILENO, &state.was) == 0;
    for (size_t i = 0; i < sizeof(signals) / sizeof(*signals); i++) {
        struct sigaction old, act = {.sa_handler = on_fatal};

        sigemptyset(&act.sa_mask);
        act.sa_flags = (int)SA_RESETHAND;
        if (sigaction(signals[i], NULL, &old) == 0 &&
            (old.sa_flags & SA_SIGINFO) == 0 && old.sa_handler == SIG_DFL) {
            sigaction(signals[i], &act, NULL);
        }
    }
}

/* Ctrl-C, Ctrl-Z, Ctrl-S and Ctrl-Q are keys. */
static void prepare(int meta)
{
    struct termios t;

    rl_prep_terminal(meta);
    if (tcgetattr(STDIN_FILENO, &t) == 0) {
        t.c_cc[VINTR] = _POSIX_VDISABLE;
        t.c_cc[VSUSP] = _POSIX_VDISABLE;
        t.c_iflag &= ~(tcflag_t)IXON;
        tcsetattr(STDIN_FILENO, TCSADRAIN, &t);
    }
}

/* The next key.  A signal that came meanwhile counts as Ctrl-C. */
static int read_key(FILE *input)
{
    struct pollfd p = {.fd = fileno(input), .events = POLLIN};
    unsigned char key;

    for (;;) {
        if (state.host.interrupted != NULL && *state.host.interrupted) {
            *state.host.interrupted = 0;
            return CTRL_C;
        }
        if (poll(&p, 1, -1) < 0) {
            if (errno != EINTR) {
                return EOF;
            }
            rl_check_signals(); /* the size of the window */
            continue;
        }
        ssize_t n = read(p.fd, &key, 1);

        if (n < 0 && errno == EINTR) {
            continue;
        }
        return n == 1 ? key : EOF;
    }
}

/* ---- drawing ------------------------------------------------------------- */

/* Draw the buffer with `more` before each line but the first: readline draws
 * what its globals point to, so they point to that for a moment. */
static void redisplay(void)
{
    char *line = rl_line_buffer;
    int point = rl_point, end = rl_end, mark = rl_mark;
    int shift = (int)strlen(state.more), drawn_point = point;

    if (memchr(line, '\n', (size_t)end) == NULL) {
        rl_redisplay();
        return;
    }
    tl_buf_clear(&state.drawn);
    for (int i = 0; i < end; i++) {
        tl_buf_putc(&state.drawn, line[i]);
        if (line[i] == '\n') {
            tl_buf_puts(&state.drawn, state.more);
            drawn_point += i < point ? shift : 0;
        }
    }
    if (state.drawn.failed) {
        rl_redisplay();
        return;
    }
    rl_line_buffer = state.drawn.data;
    rl_point = rl_mark = drawn_point;
    rl_end = (int)state.drawn.len;
    rl_redisplay();
    rl_line_buffer = line;
    rl_point = point;
    rl_end = end;
    rl_mark = mark;
}

/* The prompt of the mode, in colours, marked as taking no room. */
static void set_prompt(void)
{
    const char *text = state.mode == MODE_HELP    ? "help?> "
                       : state.mode == MODE_SHELL ? "shell> "
                                                  : state.prompt;
    char prompt[128];

    if (*state.host.on != '\0') {
        snprintf(prompt, sizeof(prompt), "\001%s\002%s\001%s\002",
                 state.host.on, text, state.host.off);
    } else {
        snprintf(prompt, sizeof(prompt), "%s", text);
    }
    rl_set_prompt(prompt);
}

static void set_mode(mode m)
{
    state.mode = m;
    if (state.whole) {
        rl_clear_visible_line();
    }
    set_prompt();
    rl_forced_update_display();
}

/* ---- lines of the buffer ------------------------------------------------- */

static int line_start(int at)
{
    while (at > 0 && rl_line_buffer[at - 1] != '\n') {
        at--;
    }
    return at;
}

static int line_end(int at)
{
    while (at < rl_end && rl_line_buffer[at] != '\n') {
        at++;
    }
    return at;
}

/* Are there only spaces between the start of the line and the cursor? */
static bool in_indent(void)
{
    int start = line_start(rl_point);

    for (int i = start; i < rl_point; i++) {
        if (rl_line_buffer[i] != ' ') {
            return false;
        }
    }
    return rl_point > start;
}

/* The buffer as it is was recalled or pasted. */
static void settle(void)
{
    tl_buf_clear(&state.settled);
    tl_buf_add(&state.settled, rl_line_buffer, (size_t)rl_end);
}

static bool is_settled(void)
{
    return rl_end > 0 && !state.settled.failed &&
           state.settled.len == (size_t)rl_end &&
           memcmp(state.settled.data, rl_line_buffer, (size_t)rl_end) == 0;
}

static void insert_line(int indent)
{
    char text[64];

    snprintf(text, sizeof(text), "\n%*s", indent > 40 ? 40 : indent, "");
    rl_insert_text(text);
}

/* Does the buffer start with the mark of a command, help or the shell? */
static bool is_command(void)
{
    return state.mode != MODE_CODE ||
           (rl_end > 0 && strchr(":?;%!", rl_line_buffer[0]) != NULL);
}

static int ask_more(void)
{
    return state.host.more(state.host.arg, rl_line_buffer, (size_t)rl_end);
}

static bool is_blank_line(void)
{
    int start = line_start(rl_point), end = line_end(rl_point);

    while (start < end && rl_line_buffer[start] == ' ') {
        start++;
    }
    return start == end;
}

/* ---- keys ---------------------------------------------------------------- */

/* A whole entry runs; an open block as well, at a blank line or as it was
 * recalled or pasted. */
static int on_enter(int count, int key)
{
    int indent = -1;

    if (state.whole && !is_command()) {
        indent = ask_more();
        if (indent >= 0 && is_settled()) {
            rl_point = rl_end;
            rl_insert_text("\n");
            bool whole = ask_more() < 0;

            rl_delete_text(rl_end - 1, rl_end);
            rl_point = rl_end;
            indent = whole ? -1 : indent;
        }
    }
    if (indent < 0) {
        rl_point = rl_end;
        return rl_newline(count, key);
    }
    if (rl_point < rl_end && !is_blank_line()) { /* split: keep the column */
        int start = line_start(rl_point), n = 0;

        while (start + n < rl_point && rl_line_buffer[start + n] == ' ') {
            n++;
        }
        indent = n;
    }
    insert_line(indent);
    return 0;
}

/* Alt-Enter: always a new line. */
static int on_new_line(int count, int key)
{
    (void)count;
    (void)key;
    if (state.whole && !is_command()) {
        int start = line_start(rl_point), n = 0;

        while (start + n < rl_point && rl_line_buffer[start + n] == ' ') {
            n++;
        }
        insert_line(n + (rl_point > 0 && rl_line_buffer[rl_point - 1] == ':'
                             ? INDENT
                             : 0));
    }
    return 0;
}

static void move_to(int start, int column)
{
    int end = line_end(start);

    rl_point = start + column < end ? start + column : end;
}

static int on_up(int count, int key)
{
    int start = line_start(rl_point);

    if (start > 0) {
        move_to(line_start(start - 1), rl_point - start);
        return 0;
    }
    rl_command_func_t *last = rl_last_func;

    if (last == on_up || strcmp(rl_line_buffer, "") == 0) {
        rl_last_func = rl_history_search_backward;
    }
    if (last != on_up) {
        rl_last_func = NULL; /* a new search, for what is before the cursor */
    }
    int st = rl_history_search_backward(count, key);

    settle();
    return st;
}

static int on_down(int count, int key)
{
    int end = line_end(rl_point);

    if (end < rl_end) {
        move_to(end + 1, rl_point - line_start(rl_point));
        return 0;
    }
    rl_last_func = rl_last_func == on_up || rl_last_func == on_down
                       ? rl_history_search_forward
                       : NULL;
    int st = rl_history_search_forward(count, key);

    settle();
    return st;
}

static int on_backspace(int count, int key)
{
    if (rl_point == 0 && state.mode != MODE_CODE) {
        set_mode(MODE_CODE);
        return 0;
    }
    if (in_indent()) {
        int column = rl_point - line_start(rl_point);
        int n = (column - 1) % INDENT + 1;

        rl_begin_undo_group();
        rl_delete_text(rl_point - n, rl_point);
        rl_point -= n;
        rl_end_undo_group();
        return 0;
    }
    return rl_rubout(count, key);
}

/* `?` and `;` on an empty line change the mode. */
static int on_mode_key(int count, int key)
{
    if (rl_end == 0 && state.mode == MODE_CODE) {
        set_mode(key == '?' ? MODE_HELP : MODE_SHELL);
        return 0;
    }
    return rl_insert(count, key);
}

/* Ctrl-C: what was typed is kept for Ctrl-Y. */
static int on_interrupt(int count, int key)
{
    (void)count;
    (void)key;
    if (rl_end > 0) {
        char *text = rl_copy_text(0, rl_end);

        rl_kill_text(0, rl_end);
        rl_point = 0;
        if (text != NULL) {
            rl_insert_text(text);
            free(text); /* readline's own */
        }
    }
    rl_point = rl_end;
    (*rl_redisplay_function)();
    fputs("^C", rl_outstream);
    state.stopped = true;
    return rl_newline(1, '\n');
}

/* Ctrl-Z: as the terminal would do it. */
static int on_suspend(int count, int key)
{
    (void)count;
    (void)key;
    rl_deprep_terminal();
    fputs("\n", rl_outstream);
    fflush(rl_outstream);
    kill(0, SIGTSTP);
    prepare(1);
    rl_on_new_line();
    rl_forced_update_display();
    return 0;
}

/* Ctrl-X Ctrl-E: edit the entry in $VISUAL or $EDITOR. */
static int on_editor(int count, int key)
{
    tl_buf text;

    (void)count;
    (void)key;
    tl_buf_init(&text);
    tl_buf_add(&text, rl_line_buffer, (size_t)rl_end);
    rl_deprep_terminal();
    if (tl_shell_edit(&text) && !text.failed) {
        rl_begin_undo_group();
        rl_delete_text(0, rl_end);
        rl_point = rl_end = 0;
        rl_insert_text(tl_buf_str(&text));
        rl_end_undo_group();
        settle();
    } else {
        rl_ding();
    }
    tl_buf_fini(&text);
    prepare(1);
    rl_on_new_line();
    rl_forced_update_display();
    return 0;
}

/* A bracketed paste: everything up to its end sequence. */
static int on_paste(int count, int key)
{
    static const char end[] = "\033[201~";
    tl_buf raw, text;
    int c;

    (void)count;
    (void)key;
    tl_buf_init(&raw);
    tl_buf_init(&text);
    while ((c = rl_read_key()) != EOF && c != CTRL_C) {
        tl_buf_putc(&raw, (char)c);
        if (raw.len >= sizeof(end) - 1 &&
            memcmp(raw.data + raw.len - (sizeof(end) - 1), end,
                   sizeof(end) - 1) == 0) {
            raw.len -= sizeof(end) - 1;
            break;
        }
    }
    tl_paste_clean(tl_buf_str(&raw), raw.len, &text);
    if (!raw.failed && !text.failed && text.len > 0) {
        const char *s = tl_buf_str(&text);

        if (!state.whole) { /* lines, for whoever puts them together */
            for (char *nl = text.data; (nl = strchr(nl, '\n')) != NULL;) {
                *nl = '\r';
            }
            for (size_t i = 0; i < text.len; i++) {
                rl_stuff_char((unsigned char)s[i]);
            }
        } else {
            rl_insert_text(s);
            settle();
        }
    }
    tl_buf_fini(&raw);
    tl_buf_fini(&text);
    return 0;
}

/* ---- completion ---------------------------------------------------------- */

/* The text as tl_complete wants it: with the mark of the mode before it. */
static void find_candidates(tl_completion *c)
{
    tl_buf text;
    size_t extra = state.mode != MODE_CODE;

    tl_buf_init(&text);
    if (extra) {
        tl_buf_putc(&text, state.mode == MODE_HELP ? '?' : ';');
    }
    tl_buf_add(&text, rl_line_buffer, (size_t)rl_end);
    state.host.complete(state.host.arg, tl_buf_str(&text),
                        (size_t)rl_point + extra, c);
    c->start -= c->start >= extra ? extra : c->start;
    tl_buf_fini(&text);
}

static void replace_word(size_t start, const char *text, size_t len,
                         const char *after)
{
    tl_buf copy;

    tl_buf_init(&copy);
    tl_buf_add(&copy, text, len);
    if (!copy.failed) {
        rl_begin_undo_group();
        rl_delete_text((int)start, rl_point);
        rl_point = (int)start;
        rl_insert_text(tl_buf_str(&copy));
        if (*after != '\0' && rl_line_buffer[rl_point] != *after) {
            rl_insert_text(after);
        }
        rl_end_undo_group();
    }
    tl_buf_fini(&copy);
}

static void list_below(const tl_completion *c)
{
    int rows = 0, columns = 80;

    rl_get_screen_size(&rows, &columns);
    fputs("\n", rl_outstream);
    fflush(rl_outstream);
    tl_line_list(c, columns);
    fflush(stdout);
    rl_on_new_line();
    rl_forced_update_display();
}

static int on_tab(int count, int key)
{
    static bool listed;
    tl_completion c;
    bool again = rl_last_func == on_tab && !listed;

    (void)count;
    (void)key;
    if (state.whole && !is_command() && (rl_point == 0 || in_indent() ||
        (line_start(rl_point) == rl_point && rl_point > 0))) {
        int column = rl_point - line_start(rl_point);
        char text[INDENT + 1] = "    ";

        text[INDENT - column % INDENT] = '\0';
        rl_insert_text(text);
        return 0;
    }
    find_candidates(&c);
    size_t typed = (size_t)rl_point - c.start, n = tl_completion_common(&c);

    listed = false;
    if (c.len == 0) {
        rl_ding();
    } else if (c.len == 1 || n > typed ||
               memcmp(c.items[0].text, rl_line_buffer + c.start,
                      n < typed ? n : typed) != 0) {
        replace_word(c.start, c.items[0].text, n,
                     c.len == 1 ? c.items[0].after : "");
    } else if (again) {
        list_below(&c);
        listed = true;
    } else {
        rl_ding();
    }
    tl_completion_fini(&c);
    return 0;
}

/* ---- set-up -------------------------------------------------------------- */

static void bind_keys(void)
{
    rl_bind_key('\r', on_enter);
    rl_bind_key('\n', on_enter);
    rl_bind_key('\t', on_tab);
    rl_bind_key(CTRL_C, on_interrupt);
    rl_bind_key(CTRL_Z, on_suspend);
    rl_bind_key('?', on_mode_key);
    rl_bind_key(';', on_mode_key);
    rl_bind_key(0x7f, on_backspace);
    rl_bind_key('\b', on_backspace);
    rl_bind_keyseq("\\e\\r", on_new_line);
    rl_bind_keyseq("\\e\\n", on_new_line);
    rl_bind_keyseq("\\e[A", on_up);
    rl_bind_keyseq("\\eOA", on_up);
    rl_bind_keyseq("\\C-p", on_up);
    rl_bind_keyseq("\\e[B", on_down);
    rl_bind_keyseq("\\eOB", on_down);
    rl_bind_keyseq("\\C-n", on_down);
    rl_bind_keyseq("\\C-x\\C-e", on_editor);
    rl_bind_keyseq("\\e[200~", on_paste);
}

/* Entries can be edited whole where the cursor can move up. */
static bool can_draw(void)
{
    const char *scroll = rl_variable_value("horizontal-scroll-mode");
    const char *term = getenv("TERM");

    return term != NULL && strcmp(term, "dumb") != 0 &&
           rl_get_termcap("up") != NULL &&
           (scroll == NULL || strcmp(scroll, "on") != 0);
}

void tl_edit_init(const tl_line_host *host)
{
    state.host = *host;
    if (state.ready) {
        return;
    }
    state.ready = true;
    tl_buf_init(&state.settled);
    tl_buf_init(&state.drawn);
    rl_readline_name = (char *)(uintptr_t) "tlang";
    rl_catch_signals = 0;
    rl_getc_function = read_key;
    rl_prep_term_function = prepare;
    rl_initialize();
    /* or the terminal's erase character would take Backspace back */
    rl_variable_bind("bind-tty-special-chars", "off");
    bind_keys();
    state.whole = can_draw();
    if (state.whole) {
        rl_redisplay_function = redisplay;
    }
    catch_fatal();
}

bool tl_edit_collects(void)
{
    return state.whole;
}

/* `text` with the mark of the mode before it; eats it. */
static char *marked(char *text, size_t *len)
{
    char *out = text;

    *len = text != NULL ? strlen(text) : 0;
    if (text == NULL || state.mode == MODE_CODE) {
        return text;
    }
    out = malloc(*len + 2); /* freed like readline's own */
    if (out != NULL) {
        out[0] = state.mode == MODE_HELP ? '?' : ';';
        memcpy(out + 1, text, *len + 1);
        *len += 1;
    }
    free(text); /* readline's own */
    return out;
}

char *tl_edit_read(const char *prompt, const char *more, size_t *len,
                   bool *stopped)
{
    char first[128];

    state.prompt = prompt;
    state.more = more;
    state.mode = MODE_CODE;
    state.stopped = false;
    tl_buf_clear(&state.settled);
    snprintf(first, sizeof(first), *state.host.on != '\0'
                 ? "\001%s\002%s\001%s\002" : "%s%s%s",
             state.host.on, prompt, state.host.off);
    char *line = marked(readline(first), len);

    *stopped = state.stopped;
    return line;
}

#endif
