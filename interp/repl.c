/* repl.c - the interactive prompt, and breakpoint().
 *
 * Lines are collected until they are a whole entry; a block ends at a blank
 * line.  An entry that fails, or is interrupted, leaves the session alive and
 * its names as they were before.  Where nobody types (input from a file or a
 * pipe) there is no prompt, and the first error ends the session. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "interp/builtin.h"
#include "interp/eval_impl.h"
#include "interp/format.h"
#include "interp/line.h"
#include "interp/session.h"

typedef struct repl {
    tl_session *s;
    tl_namespace *ns;
    tl_buf history; /* path, or empty: none is kept */
    const char *prompt, *more;
    bool debugging; /* in a breakpoint: `:continue` leaves */
    int exit_code;  /* of the last entry */
} repl;

/* ---- where history is kept --------------------------------------------- */

static void history_path(repl *r)
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

/* ---- entries ----------------------------------------------------------- */

typedef enum state { ENTRY_WHOLE, ENTRY_MORE, ENTRY_BLOCK } state;

/* Does the text need more lines?  ENTRY_BLOCK: it is whole, but its last
 * block may go on. */
static state probe(repl *r, const char *text, size_t len)
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
    return strspn(line, " \t") == len;
}

/* Read an entry into `entry`; false at the end of input. */
static bool read_entry(repl *r, tl_buf *entry)
{
    const char *prompt = r->prompt;

    tl_buf_clear(entry);
    for (;;) {
        bool stopped;
        size_t len;
        char *line = tl_line_read(prompt, &len, &stopped);

        if (line == NULL) {
            return entry->len > 0;
        }
        bool blank = is_blank(line, len);

        if (stopped) {
            tl_buf_clear(entry);
            prompt = r->prompt;
            tl_line_free(line);
            continue;
        }
        if (entry->len == 0 && (blank || line[0] == ':')) {
            tl_buf_add(entry, line, len);
            tl_line_free(line);
            return true;
        }
        tl_buf_add(entry, line, len);
        tl_buf_putc(entry, '\n');
        tl_line_free(line);
        if (entry->failed) {
            return true;
        }
        state st = probe(r, tl_buf_str(entry), entry->len);

        if (st == ENTRY_WHOLE || (st == ENTRY_BLOCK && blank)) {
            return true;
        }
        prompt = r->more;
    }
}

static tl_status show(repl *r, tl_value v)
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

static void run_entry(repl *r, const char *text, size_t len)
{
    tl_value v = tl_none();
    bool incomplete = false;
    tl_status st = tl_eval_text(&r->s->ev, r->ns, "<repl>", text, len, &v,
                                &incomplete);

    if (st == TL_OK && incomplete) { /* the input has ended: say what lacks */
        st = tl_eval_text(&r->s->ev, r->ns, "<repl>", text, len, NULL, NULL);
    } else if (st == TL_OK) {
        st = show(r, v);
    }
    tl_unref(v);
    r->exit_code = tl_session_report(r->s, st);
    tl_session_flush(r->s);
}

/* ---- commands ---------------------------------------------------------- */

/* The text of a function's head, from its name to the end of its types. */
static void print_head(repl *r, const tl_funcdef *fn)
{
    const tl_source *src = tl_sources_get(&r->s->sources, fn->node->span.file);
    uint32_t from = fn->node->span.start;
    uint32_t to = fn->body != NULL ? fn->body->span.start : from;

    if (src == NULL || to > src->len) {
        return;
    }
    while (to > from && strchr(" \t\n:=", src->text[to - 1]) != NULL) {
        to--;
    }
    printf("%.*s\n", (int)(to - from), src->text + from);
}

static void print_effects(unsigned effects)
{
    static const char *const names[] = {"rng", "state", "host",
                                        "unknown calls"};

    printf("effects:");
    for (int i = 0; i < 4; i++) {
        if (effects & (1u << i)) {
            printf(" %s", names[i]);
        }
    }
    printf("%s\n", effects == 0 ? " none" : "");
}

/* :type EXPR */
static void command_type(repl *r, const char *text)
{
    tl_value v = tl_none();
    bool incomplete = false;
    tl_status st = tl_eval_text(&r->s->ev, r->ns, "<repl>", text,
                                strlen(text), &v, &incomplete);

    if (st == TL_OK && v.tag == TL_V_FN) {
        print_head(r, v.fn->code);
        print_effects(v.fn->code->effects);
    } else if (st == TL_OK && v.tag == TL_V_BUILTIN) {
        printf("%s(%s)\n", v.builtin->name, v.builtin->signature);
        print_effects(v.builtin->effects & 7u);
    } else if (st == TL_OK) {
        printf("%s\n", tl_value_type_str(v).s);
    }
    tl_unref(v);
    r->exit_code = tl_session_report(r->s, st);
}

static void command_who(repl *r)
{
    for (size_t i = 0; i < r->ns->nslots && i < r->ns->names->names.len;
         i++) {
        if (r->ns->slots[i].tag != TL_V_EMPTY) {
            printf("%-16s %s\n", r->ns->names->names.items[i]->text,
                   tl_value_type_str(r->ns->slots[i]).s);
        }
    }
}

/* False: leave the prompt. */
static bool command(repl *r, const char *line)
{
    if (strncmp(line, ":type ", 6) == 0) {
        command_type(r, line + 6);
    } else if (strcmp(line, ":who") == 0) {
        command_who(r);
    } else if (strcmp(line, ":quit") == 0 || strcmp(line, ":q") == 0 ||
               (r->debugging && (strcmp(line, ":continue") == 0 ||
                                 strcmp(line, ":c") == 0))) {
        return false;
    } else {
        tl_status st = tl_fail(&r->s->diag, TL_E0720,
                               "there is no command %s", line);

        tl_diag_help(&r->s->diag, ":type EXPR, :who, %s",
                     r->debugging ? ":continue" : ":quit");
        r->exit_code = tl_session_report(r->s, st);
    }
    tl_session_flush(r->s);
    return true;
}

static void loop(repl *r)
{
    tl_buf entry;

    tl_buf_init(&entry);
    while (read_entry(r, &entry)) {
        const char *text = tl_buf_str(&entry);

        if (entry.failed) {
            r->exit_code = tl_session_report(
                r->s, tl_fail_memory(&r->s->diag, "an entry", entry.len));
            tl_buf_fini(&entry);
            continue;
        }
        if (is_blank(text, entry.len)) {
            continue;
        }
        size_t keep = entry.len;

        while (keep > 0 && entry.data[keep - 1] == '\n') {
            keep--;
        }
        char end = entry.data[keep];

        entry.data[keep] = '\0';
        tl_line_remember(text);
        if (r->history.len > 0) {
            tl_line_history_append(tl_buf_str(&r->history), text);
        }
        entry.data[keep] = end;
        r->exit_code = 0;
        if (text[0] != ':') {
            run_entry(r, text, entry.len);
        } else if (!command(r, text)) {
            break;
        }
        if (r->exit_code != 0 && !r->debugging && !tl_line_terminal()) {
            break;
        }
    }
    tl_buf_fini(&entry);
}

/* ---- breakpoint() ------------------------------------------------------ */

/* Give `ns` the name and a reference to the value. */
static tl_status copy_name(tl_eval *ev, tl_namespace *ns, const tl_sym *name,
                           tl_value v)
{
    uint32_t slot;
    tl_ref_info ref = {.kind = TL_REF_GLOBAL};

    if (name == NULL || v.tag == TL_V_EMPTY) {
        return TL_OK;
    }
    TL_TRY(tl_globals_add(ns->names, name, &slot, ev->diag));
    ref.index = slot;
    tl_frame top = {.ns = ns}, *frame = ev->frame;

    ev->frame = &top;
    tl_status st = tl_bind_ref_take(ev, &ref, (tl_span){0}, tl_ref(v));

    ev->frame = frame;
    return st;
}

/* The prompt sees copies of the frame's names: what is assigned there is
 * gone when the program goes on. */
static tl_status on_breakpoint(void *arg, tl_eval *ev)
{
    repl inner = *(repl *)arg;
    tl_frame *f = ev->frame;
    tl_namespace *ns = NULL;

    TL_TRY(tl_namespace_new(&ns, ev, "breakpoint", "<breakpoint>"));
    for (size_t i = 0; i < f->ns->nslots && i < f->ns->names->names.len; i++) {
        TL_TRY(copy_name(ev, ns, f->ns->names->names.items[i],
                         f->ns->slots[i]));
    }
    for (uint32_t i = 0; i < f->fn->nslots; i++) {
        TL_TRY(copy_name(ev, ns, f->fn->slot_names[i], f->slots[i]));
    }
    printf("breakpoint in %s (:continue goes on)\n",
           f->fn->name != NULL ? f->fn->name->text : "the top level");
    inner.ns = ns;
    inner.prompt = "debug> ";
    inner.debugging = true;
    tl_buf_init(&inner.history);
    tl_line_init(ev, ns);
    loop(&inner);
    tl_line_init(ev, ((repl *)arg)->ns);
    return TL_OK;
}

void tl_session_allow_breakpoints(tl_session *s)
{
    static repl r; /* lives as long as the process's one terminal */

    r = (repl){.s = s, .prompt = "debug> ", .more = "..> "};
    s->ev.on_breakpoint = on_breakpoint;
    s->ev.breakpoint_arg = &r;
}

int tl_cmd_repl(tl_session *s, const char *file)
{
    repl r = {.s = s, .prompt = "tl> ", .more = "..> "};
    tl_status st = tl_namespace_new(&r.ns, &s->ev, "main", "<repl>");

    if (st == TL_OK && file != NULL) {
        st = tl_session_run_file(s, file);
        r.ns = s->ev.main_ns != NULL ? s->ev.main_ns : r.ns;
        r.exit_code = tl_session_report(s, st);
        if (r.exit_code != 0 && !tl_line_terminal()) {
            return r.exit_code;
        }
    }
    s->ev.main_ns = r.ns;
    s->ev.on_breakpoint = on_breakpoint;
    s->ev.breakpoint_arg = &r;
    tl_line_init(&s->ev, r.ns);
    history_path(&r);
    if (r.history.len > 0) {
        tl_line_history_load(tl_buf_str(&r.history));
    }
    if (!s->options.no_banner && tl_line_terminal()) {
        printf("tlang 0.1 \302\267 cpu, %d threads \302\267 :type EXPR, "
               "Ctrl-D ends\n",
               tl_threads_count(s->rt.threads));
    }
    loop(&r);
    tl_buf_fini(&r.history);
    if (!tl_line_terminal() && tl_line_error() != 0) {
        return tl_session_report(
            s, tl_fail(&s->diag, TL_E0701, "standard input cannot be read: %s",
                       strerror(tl_line_error())));
    }
    if (!tl_line_terminal()) {
        return r.exit_code;
    }
    putchar('\n');
    return 0;
}
