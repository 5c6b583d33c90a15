/* line.h - reading an entry from the user: readline, libedit, or neither.
 *
 * With readline on a terminal that can move its cursor up, an entry of several
 * lines is edited as a whole; otherwise entries come line by line, and whoever
 * reads puts them together.  The editors keep their state in globals of their
 * own, so there is one of these in a process. */
#ifndef TL_INTERP_LINE_H
#define TL_INTERP_LINE_H

#include <signal.h>
#include <stdbool.h>

#include "interp/complete.h"

/* What the editor asks of the prompt. */
typedef struct tl_line_host {
    void *arg;
    /* -1: the text is an entry; else with how many spaces its next line
     * begins */
    int (*more)(void *arg, const char *text, size_t len);
    void (*complete)(void *arg, const char *text, size_t cursor,
                     tl_completion *out);
    volatile sig_atomic_t *interrupted; /* may be NULL */
    const char *on, *off; /* around a prompt: colours, or "" */
} tl_line_host;

/* Before anything else; again for a prompt inside of another. */
void tl_line_init(const tl_line_host *host);

/* Is somebody typing?  If not, lines are read without prompt and editor. */
bool tl_line_terminal(void);

/* Does tl_line_read give whole entries, not lines? */
bool tl_line_collects(void);

/* A line or entry of *len bytes without its end, for tl_line_free; NULL at the
 * end of input, or when it cannot be read.  A zero follows it.  Lines that go
 * on show `more`.  *stopped is set when Ctrl-C was pressed: what was typed is
 * to be forgotten. */
char *tl_line_read(const char *prompt, const char *more, size_t *len,
                   bool *stopped);
void tl_line_free(char *line);

/* Why input that is no terminal could not be read: errno; 0: it has ended. */
int tl_line_error(void);

/* Remember an entry (may hold several lines); repeated ones and those that
 * start with a space are left out. */
void tl_line_remember(const char *entry);

/* Load and append to a file (mode 0600), at most 10,000 entries. */
void tl_line_history_load(const char *path);
void tl_line_history_append(const char *path, const char *entry);

/* ---- between the files of the editor ------------------------------------ */

/* readline (line_edit.c); NULL as above. */
char *tl_edit_read(const char *prompt, const char *more, size_t *len,
                   bool *stopped);
void tl_edit_init(const tl_line_host *host);
bool tl_edit_collects(void);

/* Show candidates below the line (line_list.c). */
void tl_line_list(const tl_completion *c, int columns);

#endif
