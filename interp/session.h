/* session.h - everything that one run of the program owns, and its options. */
#ifndef TL_INTERP_SESSION_H
#define TL_INTERP_SESSION_H

#include "interp/eval.h"

/* Values of options.def; fields of flags that were not given are zero. */
typedef struct tl_options {
    bool help, version, quiet, deterministic, no_banner, no_history, list;
    bool doc_only;
    bool suppress_errors, explain, dry_run, verify, operations;
    const char *expr, *device, *compile, *format, *color, *match;
    int64_t seed, threads, memory_limit;
} tl_options;

typedef struct tl_session {
    tl_options options;
    tl_intern names;
    tl_sources sources;
    tl_diag diag;
    tl_rt rt;
    tl_lang lang;
    tl_eval ev;
    tl_eval_options eval_options;
    bool up;          /* the evaluator is there */
    int output_error; /* errno of standard output; 0: all was written */
} tl_session;

/* The sink alone, so that wrong use of the command line can be reported. */
void tl_session_init(tl_session *s);
/* Runtime and evaluator, by the options. */
TL_MUST_USE tl_status tl_session_start(tl_session *s);
void tl_session_fini(tl_session *s);

/* Write what was reported to standard error in the chosen form, and forget
 * it.  Returns the exit code of `status`. */
int tl_session_report(tl_session *s, tl_status status);

/* Are texts on this descriptor coloured?  By --color and TLANG_COLOR, NO_COLOR,
 * CLICOLOR_FORCE and FORCE_COLOR, CLICOLOR, and whether it is a terminal, in
 * this order. */
bool tl_session_color(const tl_session *s, int fd);

/* "0.1.0" */
const char *tl_session_version(void);

/* Write what was printed; a failure is kept in output_error. */
void tl_session_flush(tl_session *s);

/* Run a text as the program: top level, then @main. */
TL_MUST_USE tl_status tl_session_run(tl_session *s, const char *name,
                                     const char *text, size_t len);
TL_MUST_USE tl_status tl_session_run_file(tl_session *s, const char *path);

/* Subcommands; each returns an exit code. */
int tl_cmd_repl(tl_session *s, const char *file);
int tl_cmd_test(tl_session *s, char **files, int n);
int tl_cmd_new(tl_session *s, const char *path);
int tl_cmd_check(tl_session *s, char **files, int n);
int tl_cmd_explain(tl_session *s, const char *code);
/* Pages of names; of none: the index of all. */
int tl_cmd_doc(tl_session *s, char *const *names, int count);

/* breakpoint() opens a prompt on the terminal. */
void tl_session_allow_breakpoints(tl_session *s);

/* SIGINT sets a flag that the evaluator tests between statements. */
void tl_session_catch_interrupts(tl_session *s);

#endif
