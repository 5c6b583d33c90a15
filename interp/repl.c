/* repl.c - the interactive prompt, and breakpoint().
 *
 * An entry is read whole (line.h), or collected line by line; a block ends at
 * a blank line.  An entry that fails, or is interrupted, leaves the session
 * alive.  Where nobody types (input from a file or a pipe) there is no prompt,
 * and the first error ends the session. */
#include "interp/repl.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "interp/builtin.h"
#include "interp/dict.h"
#include "interp/eval_impl.h"
#include "interp/format.h"
#include "interp/line.h"
#include "interp/paste.h"
#include "interp/shell.h"
#include "runtime/base/mem.h"

enum {
    INDENT = 4,
    MOST_OUT = 32,         /* values in `out` */
    LARGE = 16 << 20       /* bytes: such values are not kept in it */
};

/* ---- where history is kept --------------------------------------------- */

static void history_path(tl_repl *r)
{
    const char *own = getenv("TLANG_HISTORY");
    const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");

    tl_buf_init(&r->history);
    if (r->s->options.no_history || !tl_line_terminal()) {
        return;
    }
    if (own != NULL && *own != '\0') {
        tl_buf_puts(&r->history, own);
        return;
    }
    if (state != NULL && *state != '\0') {
        tl_buf_printf(&r->history, "%s/tlang", state);
    } else if (home != NULL && *home != '\0') {
        tl_buf_printf(&r->history, "%s/.local/state/tlang", home);
    } else {
        return;
    }
    /* make the folder and those above it */
    for (size_t i = 1; i <= r->history.len; i++) {
        char c = r->history.data[i];

        if (c == '/' || c == '\0') {
            r->history.data[i] = '\0';
            if (mkdir(r->history.data, 0700) != 0) {
                errno = 0; /* most are there */
            }
            r->history.data[i] = c;
        }
    }
    tl_buf_puts(&r->history, "/history");
}

/* ---- is it an entry? ---------------------------------------------------- */

typedef enum state { ENTRY_WHOLE, ENTRY_MORE, ENTRY_BLOCK } state;

/* Does the text need more lines?  ENTRY_BLOCK: it is whole, but its last
 * block may go on. */
static state probe(tl_repl *r, const char *text, size_t len)
{
    tl_diag quiet;
    tl_sources sources;
    tl_lang lang = {&r->s->names, &sources};
    tl_unit *unit = NULL;
    state st = ENTRY_WHOLE;

    tl_sources_init(&sources);
    tl_diag_init(&quiet, &sources);
    uint32_t file = tl_sources_add(&sources, "<entry>", text, len);

    if (file != 0 && tl_parse_entry(&unit, &lang, file, &quiet) == TL_OK) {
        st = unit->incomplete   ? ENTRY_MORE
             : unit->open_block ? ENTRY_BLOCK
                                : ENTRY_WHOLE;
    }
    tl_unit_free(unit);
    tl_diag_fini(&quiet);
    tl_sources_fini(&sources);
    return st;
}

static bool is_blank(const char *line, size_t len)
{
    return strspn(line, " \t\n") >= len;
}

/* The last line of a text; *len without a newline. */
static const char *last_line(const char *text, size_t len, size_t *n)
{
    size_t start = len;

    while (start > 0 && text[start - 1] != '\n') {
        start--;
    }
    *n = len - start;
    return text + start;
}

static bool leaves_block(const char *s, size_t n)
{
    static const char *const words[] = {"return", "pass", "break", "continue",
                                        "raise"};

    for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
        size_t k = strlen(words[i]);

        if (n >= k && memcmp(s, words[i], k) == 0 &&
            (n == k || s[k] == ' ')) {
            return true;
        }
    }
    return false;
}

/* With how many spaces the line after `text` begins. */
static int next_indent(const char *text, size_t len)
{
    size_t n;
    const char *line = last_line(text, len, &n);
    int indent = (int)strspn(line, " ");

    while (n > 0 && strchr(" \t", line[n - 1]) != NULL) {
        n--;
    }
    if (n <= (size_t)indent) {
        return indent;
    }
    if (strchr(":([{", line[n - 1]) != NULL) {
        return indent + INDENT;
    }
    if (leaves_block(line + indent, n - (size_t)indent)) {
        return indent >= INDENT ? indent - INDENT : 0;
    }
    return indent;
}

/* For the editor: -1 if the text runs, else the next line's indentation. */
static int more(void *arg, const char *text, size_t len)
{
    tl_repl *r = arg;
    size_t n;

    if (len == 0 || is_blank(text, len) || strchr(":?;%!", text[0]) != NULL) {
        return -1;
    }
    const char *line = last_line(text, len, &n);
    state st = probe(r, text, len);
    bool blank = is_blank(line, n) && line > text;

    return st == ENTRY_WHOLE || (st == ENTRY_BLOCK && blank)
               ? -1
               : next_indent(text, len);
}

static void complete(void *arg, const char *text, size_t cursor,
                     tl_completion *out)
{
    tl_repl *r = arg;

    tl_complete(&r->s->ev, r->ns, tl_repl_commands(), text, cursor, out);
}

static bool is_mark(char c)
{
    return c != '\0' && strchr(":?;%!", c) != NULL;
}

/* Read an entry into `entry`; false at the end of input. */
static bool read_entry(tl_repl *r, tl_buf *entry)
{
    const char *prompt = r->prompt;

    tl_buf_clear(entry);
    for (;;) {
        bool stopped;
        size_t len;
        char *line = tl_line_read(prompt, r->more, &len, &stopped);

        if (line == NULL) {
            return entry->len > 0;
        }
        bool blank = is_blank(line, len);
        bool alone = entry->len == 0 &&
                     (blank || is_mark(line[0]) || tl_line_collects());

        if (stopped) {
            tl_buf_clear(entry);
            prompt = r->prompt;
            tl_line_free(line);
            continue;
        }
        tl_buf_add(entry, line, len);
        if (!alone || tl_line_collects()) {
            tl_buf_putc(entry, '\n');
        }
        tl_line_free(line);
        if (alone || entry->failed) {
            return true;
        }
        state st = probe(r, tl_buf_str(entry), entry->len);

        if (st == ENTRY_WHOLE || (st == ENTRY_BLOCK && blank)) {
            return true;
        }
        prompt = r->more;
    }
}

/* ---- values ------------------------------------------------------------- */

/* Are these the same value, not only equal ones? */
static bool same(tl_value a, tl_value b)
{
    return a.tag == b.tag && (a.tag < TL_V_TENSOR ? a.i == b.i
                                                  : a.obj == b.obj);
}

/* Set `name` unless the program has used it for something of its own; *own is
 * what it was set to before. */
static tl_status set_own(tl_repl *r, const char *name, tl_value *own,
                         tl_value v)
{
    tl_eval *ev = &r->s->ev;
    const tl_sym *sym = tl_intern_get(&r->s->names, name, strlen(name));
    int64_t slot = sym != NULL ? tl_globals_find(r->ns->names, sym) : -1;

    if (sym == NULL) {
        return tl_fail_memory(ev->diag, "a name", strlen(name));
    }
    if (slot >= 0 && (size_t)slot < r->ns->nslots &&
        r->ns->slots[slot].tag != TL_V_EMPTY &&
        !same(r->ns->slots[slot], *own)) {
        return TL_OK;
    }
    TL_TRY(tl_namespace_bind(ev, r->ns, sym, v));
    tl_unref(*own);
    *own = tl_ref(v);
    return TL_OK;
}

/* The dict `out` with one more value and at most MOST_OUT. */
static tl_status next_out(tl_repl *r, tl_value v, tl_value *out)
{
    tl_diag *diag = &r->s->diag;
    tl_status st = TL_OK;
    size_t at = 0, skip = 0;

    TL_TRY(tl_dict_new(out, diag));
    if (r->out.tag == TL_V_DICT) {
        skip = r->out.dict->live >= MOST_OUT ? 1 : 0;
        for (tl_dict_entry *e; st == TL_OK &&
                               (e = tl_dict_next(r->out.dict, &at)) != NULL;) {
            if (skip > 0) {
                skip--;
            } else {
                st = tl_dict_set_take(out->dict, tl_ref(e->key),
                                      tl_ref(e->value), diag);
            }
        }
    }
    if (st == TL_OK && tl_repl_bytes(v) <= LARGE) {
        st = tl_dict_set_take(out->dict,
                              tl_int_value((int64_t)r->entries.len),
                              tl_ref(v), diag);
    }
    if (st != TL_OK) {
        tl_unref(*out);
    }
    return st;
}

/* `ans` is the last value, `out[n]` that of entry n. */
static tl_status keep_value(tl_repl *r, tl_value v)
{
    tl_value out = tl_empty();

    if (r->debugging || !tl_line_terminal()) {
        return TL_OK;
    }
    TL_TRY(set_own(r, "ans", &r->ans, v));
    TL_TRY(next_out(r, v, &out));
    tl_status st = set_own(r, "out", &r->out, out);

    tl_unref(out);
    return st;
}

tl_status tl_repl_show(tl_repl *r, tl_value v)
{
    tl_buf buf;

    if (v.tag == TL_V_NONE || v.tag == TL_V_EMPTY) {
        return TL_OK;
    }
    tl_buf_init(&buf);
    tl_status st = tl_format_repr(v, &buf, &r->s->diag);

    tl_buf_putc(&buf, '\n');
    if (st == TL_OK) {
        st = tl_eval_write(&r->s->ev, tl_buf_str(&buf), buf.len);
    }
    tl_buf_fini(&buf);
    return st;
}

/* ---- running ------------------------------------------------------------ */

int tl_repl_report(tl_repl *r, tl_status st)
{
    if (st != TL_OK && r->s->diag.last != NULL) {
        r->last_error = r->s->diag.last->code;
    }
    r->exit_code = tl_session_report(r->s, st);
    tl_session_flush(r->s);
    return r->exit_code;
}

/* Ctrl-C that came when everything was done is none. */
static void forget_interrupt(tl_repl *r)
{
    if (r->s->rt.interrupted != NULL) {
        *r->s->rt.interrupted = 0;
    }
}

static void add_entry(tl_repl *r, const char *text)
{
    size_t len = strlen(text);

    if (r->entries.len == r->entries.cap) {
        size_t cap = r->entries.cap > 0 ? 2 * r->entries.cap : 64;
        tl_repl_entry *items =
            tl_realloc(r->entries.items, cap * sizeof(*items));

        if (items == NULL) {
            return;
        }
        r->entries.items = items;
        r->entries.cap = cap;
    }
    char *copy = tl_malloc(len + 1);

    if (copy != NULL) {
        memcpy(copy, text, len + 1);
        r->entries.items[r->entries.len++] = (tl_repl_entry){copy, false};
    }
}

/* Evaluate a text; an entry that the end of the input cut off says what
 * lacks.  A newline ends it, as it would in a file. */
static tl_status evaluate(tl_repl *r, const char *text, size_t len,
                          tl_value *v)
{
    bool incomplete = false;
    tl_buf line;

    tl_buf_init(&line);
    tl_buf_add(&line, text, len);
    tl_buf_putc(&line, '\n');
    const char *s = tl_buf_str(&line);
    tl_status st =
        line.failed
            ? tl_fail_memory(&r->s->diag, "an entry", len)
            : tl_eval_text(&r->s->ev, r->ns, "<repl>", s, line.len, v,
                           &incomplete);

    if (st == TL_OK && incomplete) {
        st = tl_eval_text(&r->s->ev, r->ns, "<repl>", s, line.len, NULL,
                          NULL);
    }
    tl_buf_fini(&line);
    return st;
}

void tl_repl_run(tl_repl *r, const char *text, size_t len)
{
    tl_value v = tl_none();
    size_t before = r->entries.len;

    if (tl_line_terminal() && !r->debugging) {
        tl_repl_undo_keep(r);
        add_entry(r, text);
    }
    tl_status st = evaluate(r, text, len, &v);

    if (st == TL_OK) {
        st = tl_repl_show(r, v);
        if (st == TL_OK && v.tag != TL_V_NONE && v.tag != TL_V_EMPTY) {
            st = keep_value(r, v);
        }
    }
    tl_unref(v);
    if (r->entries.len > before) {
        r->entries.items[before].failed = st != TL_OK;
        tl_repl_undo_commit(r);
    }
    tl_repl_report(r, st);
    forget_interrupt(r);
}

static void run_shell(tl_repl *r, const char *command)
{
    command += strspn(command, " ");
    if (strcmp(command, "cd") == 0 || strncmp(command, "cd ", 3) == 0) {
        const char *to = command + 2 + strspn(command + 2, " ");

        to = *to == '\0' || strcmp(to, "~") == 0 ? getenv("HOME") : to;
        if (to == NULL || chdir(to) != 0) {
            tl_repl_report(r, tl_fail(&r->s->diag, TL_E0701, "cd %s: %s",
                                      to != NULL ? to : "~",
                                      strerror(errno)));
        }
        return;
    }
    if (*command == '\0') {
        return;
    }
    int code = tl_shell_run(command);

    forget_interrupt(r);
    if (code < 0) {
        tl_repl_report(r, tl_fail(&r->s->diag, TL_E0701, "%s: %s", command,
                                  strerror(errno)));
    }
}

/* ---- what is typed out of habit ------------------------------------------ */

static bool is_defined(tl_repl *r, const char *name)
{
    tl_found f;

    return tl_complete_find(&r->s->ev, r->ns, name, strlen(name), &f);
}

static bool is_one_of(const char *text, const char *a, const char *b)
{
    return strcmp(text, a) == 0 || strcmp(text, b) == 0;
}

/* A dotted name alone. */
static bool is_path(const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        char c = s[i];

        if (!((c | 32) >= 'a' && (c | 32) <= 'z') && c != '_' && c != '.' &&
            !(c >= '0' && c <= '9') && (c & 0x80) == 0) {
            return false;
        }
    }
    return n > 0;
}

/* exit, quit(), help(x), name?, name??.  False: it is code. */
static bool habit(tl_repl *r, const char *text)
{
    size_t n = strlen(text);

    if ((is_one_of(text, "exit", "exit()") && !is_defined(r, "exit")) ||
        (is_one_of(text, "quit", "quit()") && !is_defined(r, "quit"))) {
        r->leaving = true;
        return true;
    }
    if (strncmp(text, "help", 4) == 0 && !is_defined(r, "help")) {
        size_t k = n > 6 && text[4] == '(' && text[n - 1] == ')' ? n - 6 : 0;
        char name[128];

        if (is_one_of(text, "help", "help()")) {
            tl_repl_help(r, "");
            return true;
        }
        if (k < sizeof(name) && is_path(text + 5, k)) {
            memcpy(name, text + 5, k);
            name[k] = '\0';
            tl_repl_help(r, name);
            return true;
        }
    }
    size_t marks = n > 2 && text[n - 2] == '?' ? 2 : 1;

    if (n > marks && text[n - 1] == '?' && is_path(text, n - marks)) {
        char name[128];

        snprintf(name, sizeof(name), "%.*s", (int)(n - marks), text);
        if (marks == 2) {
            tl_repl_source(r, name);
        } else {
            tl_repl_help(r, name);
        }
        return true;
    }
    return false;
}

/* %time and !ls, of IPython. */
static void foreign_mark(tl_repl *r, const char *text)
{
    tl_status st = tl_fail(&r->s->diag, TL_E0720, "`%c` is not a mark of "
                           "tlang's prompt", text[0]);

    if (text[0] == '!') {
        tl_diag_help(&r->s->diag, "`;%s` runs a shell command", text + 1);
    } else {
        tl_diag_help(&r->s->diag, "commands start with `:`; `:help` lists "
                     "them");
    }
    tl_repl_report(r, st);
}

static void run_entry(tl_repl *r, const char *text, size_t len)
{
    switch (text[0]) {
    case ':':
        tl_repl_command(r, text);
        break;
    case '?':
        tl_repl_help(r, text + 1);
        break;
    case ';':
        run_shell(r, text + 1);
        break;
    case '%':
    case '!':
        foreign_mark(r, text);
        break;
    default:
        if (!habit(r, text)) {
            tl_repl_run(r, text, len);
        }
    }
    tl_session_flush(r->s);
}

/* ---- the loop ------------------------------------------------------------ */

/* Without prompts that were typed or piped along, and without blank ends. */
static bool clean(tl_buf *entry)
{
    tl_buf text;

    while (entry->len > 0 &&
           strchr(" \t\n", entry->data[entry->len - 1]) != NULL) {
        entry->data[--entry->len] = '\0';
    }
    const char *s = tl_buf_str(entry);

    if (strncmp(s, ">>>", 3) != 0 && strncmp(s, "tl>", 3) != 0 &&
        strncmp(s, "In [", 4) != 0) {
        return true;
    }
    tl_buf_init(&text);
    tl_paste_clean(s, entry->len, &text);
    if (!text.failed) {
        tl_buf_clear(entry);
        tl_buf_add(entry, tl_buf_str(&text), text.len);
    }
    tl_buf_fini(&text);
    return !entry->failed;
}

static void loop(tl_repl *r)
{
    tl_buf entry;

    tl_buf_init(&entry);
    while (!r->leaving && read_entry(r, &entry)) {
        if (entry.failed || !clean(&entry)) {
            r->exit_code = tl_session_report(
                r->s, tl_fail_memory(&r->s->diag, "an entry", entry.len));
            tl_buf_fini(&entry);
            continue;
        }
        const char *text = tl_buf_str(&entry);

        if (is_blank(text, entry.len)) {
            continue;
        }
        tl_line_remember(text);
        if (r->history.len > 0) {
            tl_line_history_append(tl_buf_str(&r->history), text);
        }
        r->exit_code = 0;
        run_entry(r, text, entry.len);
        if (r->exit_code != 0 && !r->debugging && !tl_line_terminal()) {
            break;
        }
    }
    tl_buf_fini(&entry);
}

static void init_line(tl_repl *r)
{
    bool color = tl_session_color(r->s, STDOUT_FILENO);
    tl_line_host host = {.arg = r,
                         .more = more,
                         .complete = complete,
                         .interrupted = r->s->rt.interrupted,
                         .on = color ? "\033[1;32m" : "",
                         .off = color ? "\033[0m" : ""};

    tl_line_init(&host);
}

static void fini(tl_repl *r)
{
    for (size_t i = 0; i < r->entries.len; i++) {
        tl_free(r->entries.items[i].text);
    }
    tl_free(r->entries.items);
    tl_repl_undo_drop(r);
    tl_unref(r->ans);
    tl_unref(r->out);
    tl_buf_fini(&r->history);
}

/* ---- breakpoint() ------------------------------------------------------ */

/* The prompt sees copies of the frame's names: what is assigned there is
 * gone when the program goes on. */
static tl_status on_breakpoint(void *arg, tl_eval *ev)
{
    tl_repl *outer = arg;
    tl_repl inner = {.s = outer->s, .prompt = "debug> ", .more = "   ..> ",
                     .debugging = true};
    tl_frame *f = ev->frame;
    tl_namespace *ns = NULL;

    TL_TRY(tl_namespace_new(&ns, ev, "breakpoint", "<breakpoint>"));
    for (size_t i = 0; i < f->ns->nslots && i < f->ns->names->names.len; i++) {
        TL_TRY(tl_namespace_bind(ev, ns, f->ns->names->names.items[i],
                                 f->ns->slots[i]));
    }
    for (uint32_t i = 0; i < f->fn->nslots; i++) {
        TL_TRY(tl_namespace_bind(ev, ns, f->fn->slot_names[i], f->slots[i]));
    }
    printf("breakpoint in %s (:continue goes on)\n",
           f->fn->name != NULL ? f->fn->name->text : "the top level");
    inner.ns = ns;
    tl_buf_init(&inner.history);
    init_line(&inner);
    loop(&inner);
    init_line(outer);
    fini(&inner);
    return TL_OK;
}

void tl_session_allow_breakpoints(tl_session *s)
{
    static tl_repl r; /* lives as long as the process's one terminal */

    r = (tl_repl){.s = s, .prompt = "debug> ", .more = "   ..> "};
    s->ev.on_breakpoint = on_breakpoint;
    s->ev.breakpoint_arg = &r;
}

int tl_cmd_repl(tl_session *s, const char *file)
{
    tl_repl r = {.s = s, .prompt = "tl> ", .more = "..> "};
    tl_status st = tl_namespace_new(&r.ns, &s->ev, "main", "<repl>");

    if (st == TL_OK && file != NULL) {
        st = tl_session_run_file(s, file);
        r.ns = s->ev.main_ns != NULL ? s->ev.main_ns : r.ns;
    }
    tl_repl_report(&r, st);
    if (r.ns == NULL || (r.exit_code != 0 && !tl_line_terminal())) {
        return r.exit_code;
    }
    s->ev.main_ns = r.ns;
    s->ev.on_breakpoint = on_breakpoint;
    s->ev.breakpoint_arg = &r;
    init_line(&r);
    history_path(&r);
    if (r.history.len > 0) {
        tl_line_history_load(tl_buf_str(&r.history));
    }
    if (!s->options.no_banner && tl_line_terminal()) {
        printf("tlang %s \302\267 cpu, %d thread%s \302\267 ? help \302\267 "
               "; shell \302\267 Ctrl-D ends\n",
               tl_session_version(), tl_threads_count(s->rt.threads),
               tl_threads_count(s->rt.threads) == 1 ? "" : "s");
    }
    loop(&r);
    bool ended = !r.leaving;

    fini(&r);
    s->ev.on_breakpoint = NULL;
    if (!tl_line_terminal() && tl_line_error() != 0) {
        return tl_session_report(
            s, tl_fail(&s->diag, TL_E0701, "standard input cannot be read: %s",
                       strerror(tl_line_error())));
    }
    if (!tl_line_terminal()) {
        return r.exit_code;
    }
    if (ended) {
        putchar('\n');
    }
    return 0;
}
