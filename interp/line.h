/* line.h - reading a line from the user: readline, libedit, or neither. */
#ifndef TL_INTERP_LINE_H
#define TL_INTERP_LINE_H

#include <stdbool.h>

#include "interp/eval.h"

/* Completion asks `ev` for names; NULL: none. */
void tl_line_init(tl_eval *ev, tl_namespace *ns);

/* Is somebody typing?  If not, lines are read without prompt and editor. */
bool tl_line_terminal(void);

/* A line of *len bytes without its end, for tl_line_free; NULL at the end of
 * input, or when it cannot be read.  A zero follows it.  *stopped is
 * set when Ctrl-C was pressed: the line is to be forgotten. */
char *tl_line_read(const char *prompt, size_t *len, bool *stopped);
void tl_line_free(char *line);

/* Why input that is no terminal could not be read: errno; 0: it has ended. */
int tl_line_error(void);

/* Remember an entry (may hold several lines); repeated ones and those that
 * start with a space are left out. */
void tl_line_remember(const char *entry);

/* Load and append to a file (mode 0600). */
void tl_line_history_load(const char *path);
void tl_line_history_append(const char *path, const char *entry);

#endif
