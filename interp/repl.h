/* repl.h - what the files of the prompt share.
 *
 * repl.c reads entries and runs them, and has breakpoint(); the commands that
 * start with `:` are rows of repl_command.c; repl_help.c answers `?`. */
#ifndef TL_INTERP_REPL_H
#define TL_INTERP_REPL_H

#include "interp/session.h"

/* A top-level value as it was before the last entry, for :undo. */
typedef struct tl_repl_was {
    tl_value value;
    const void *large; /* too large to be kept: only where it was, or NULL */
} tl_repl_was;

/* The names of a session at some time. */
typedef struct tl_repl_names {
    tl_repl_was *items;
    size_t len;
    bool there;
} tl_repl_names;

typedef struct tl_repl_entry {
    char *text;
    bool failed;
} tl_repl_entry;

typedef struct tl_repl {
    tl_session *s;
    tl_namespace *ns;
    tl_buf history; /* path, or empty: none is kept */
    const char *prompt, *more;
    bool debugging; /* in a breakpoint: `:continue` leaves */
    bool leaving;   /* a command ends the prompt */
    int exit_code;  /* of the last entry */
    tl_code last_error;

    struct {
        tl_repl_entry *items; /* the first is number 1 */
        size_t len, cap;
    } entries;
    tl_repl_names was;  /* before the last entry that changed names */
    tl_repl_names next; /* before the entry that runs */
    tl_value ans, out; /* what `ans` and `out` were set to; else EMPTY */
} tl_repl;

/* Run a text as an entry of the session; shows its value. */
void tl_repl_run(tl_repl *r, const char *text, size_t len);

/* Show a value as the prompt does.  none is not shown. */
TL_MUST_USE tl_status tl_repl_show(tl_repl *r, tl_value v);

/* Report what failed; returns the exit code, also kept. */
int tl_repl_report(tl_repl *r, tl_status st);

/* `:name arguments`. */
void tl_repl_command(tl_repl *r, const char *line);

/* Commands, for completion; NULL at the end. */
const char *const *tl_repl_commands(void);

/* `?name`, `?"word"`, or "" for an overview. */
void tl_repl_help(tl_repl *r, const char *what);

/* `name??`: the text of what it was defined by. */
void tl_repl_source(tl_repl *r, const char *name);

/* ---- commands in files of their own ------------------------------------- */

void tl_repl_who(tl_repl *r, const char *arg);    /* repl_inspect.c */
void tl_repl_mem(tl_repl *r, const char *arg);
void tl_repl_type(tl_repl *r, const char *expr);
void tl_repl_shape(tl_repl *r, const char *expr);
void tl_repl_explain(tl_repl *r, const char *what);
void tl_repl_time(tl_repl *r, const char *text);  /* repl_measure.c */
void tl_repl_bench(tl_repl *r, const char *expr);
void tl_repl_run_file(tl_repl *r, const char *arg); /* repl_files.c */
void tl_repl_reload(tl_repl *r, const char *module);
void tl_repl_save(tl_repl *r, const char *arg);
void tl_repl_history(tl_repl *r, const char *arg);

/* Bytes of a value's tensors, as far as it holds them itself. */
size_t tl_repl_bytes(tl_value v);

/* "1.5 MB" */
void tl_repl_put_bytes(tl_buf *out, size_t bytes);

/* Keep the session's values before an entry; after it, if it changed some;
 * put them back. */
void tl_repl_undo_keep(tl_repl *r);
void tl_repl_undo_commit(tl_repl *r);
void tl_repl_undo(tl_repl *r, const char *arg);
void tl_repl_undo_drop(tl_repl *r);

#endif
