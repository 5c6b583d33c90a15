/* golden.h - the runner of golden tests, its parts.
 *
 * A golden test is a tlang program whose comments say what running it must
 * give (README.md lists them).  case.c reads these, run.c runs a program in
 * a scratch folder, compare.c and forms.c judge what came out, update.c
 * writes it back, golden.c schedules.  The runner links nothing of tlang, so
 * that a fault there cannot hide one here.  Out of memory ends the run. */
#ifndef TL_TESTS_GOLDEN_H
#define TL_TESTS_GOLDEN_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* ---- text.c: growable text and lists of lines */

typedef struct text {
    char *s; /* NUL-terminated, or NULL while empty */
    size_t len, cap;
} text;

typedef struct lines {
    char **items; /* owned */
    size_t len, cap;
} lines;

void text_add(text *t, const char *s, size_t len);
void text_printf(text *t, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
void text_free(text *t);

/* Formatted text that the caller frees. */
char *format(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

void lines_add(lines *l, const char *s, size_t len);
void lines_free(lines *l);

/* The lines of `s`; a missing last newline makes no difference. */
lines lines_split(const char *s);

/* The blank-separated words of `s`; double quotes keep blanks together. */
lines lines_words(const char *s);

/* The whole file, NUL bytes shown as "^@"; NULL if it cannot be read. */
char *read_file(const char *path);
bool write_file(const char *path, const char *s);

/* ---- case.c: what a test expects */

typedef struct test_case {
    char *path;       /* absolute */
    char *name;       /* relative to the folder given on the command line */
    const char *base; /* file name, inside path */
    lines args, env;
    char *input; /* `# stdin:`, or NULL */
    int exit, timeout;
    lines expect, error, error_not;
    bool has_expectation;
    bool helper;           /* `# helper`: is imported, is no test */
    bool no_repl, no_json; /* `# repl: off`, `# json: off` */
    char *fault;           /* why the comments make no sense, or NULL */
} test_case;

test_case *case_read(const char *path, const char *name);
void case_free(test_case *c);

/* The directive that `line` is ("expect", ...), its text in `*value`; NULL
 * when the line is none. */
const char *case_directive(const char *line, const char **value);

/* ---- run.c: one execution */

typedef enum form {
    FORM_FILE, /* as the comments say */
    FORM_REPL, /* the file as input of `tlang repl` */
    FORM_JSON  /* with --message-format=json */
} form;

typedef struct options {
    char *tlang;   /* absolute */
    char *scratch; /* absolute */
    const char *pattern;
    const char *compile; /* how functions run, or NULL */
    form form;
    bool valgrind, update, verbose;
    int jobs, timeout, min;
} options;

typedef struct run {
    test_case *test;
    pid_t pid;
    char *folder; /* of this run, in the scratch folder */
    double start, seconds, deadline;
    bool timed_out;
    int exit, signal; /* signal 0 = exited */
    char *out, *err;
} run;

double now_seconds(void);

/* Start `c`; NULL if the scratch folder or the process cannot be made. */
run *run_start(const options *o, test_case *c, size_t number);

/* Take the exit status of a finished process and read what it wrote. */
void run_finish(run *r, int status);
void run_free(run *r);

/* ---- compare.c, forms.c: verdicts, appended to `why`; empty = passed */

void compare_run(const options *o, const run *r, text *why);
void compare_errors(const lines *want, const char *err, text *why);
void compare_json(const run *r, text *why);
void compare_repl(const run *r, text *why);

/* Lines that differ, with - before what is wanted and + before what came. */
void diff_lines(const lines *want, const lines *got, text *out);

/* True if `s` is one JSON object and nothing else. */
bool json_is_object(const char *s);

/* ---- update.c: rewrite the comments of a test from what came out.
 * True if the file was changed. */
bool update_case(const run *r);

#endif
