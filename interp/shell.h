/* shell.h - other programs that the prompt starts. */
#ifndef TL_INTERP_SHELL_H
#define TL_INTERP_SHELL_H

#include <stdbool.h>

#include "runtime/base/buf.h"

/* Run a command with $SHELL -c (or /bin/sh) on the terminal and wait for it.
 * Returns its exit code, 128 and the signal that ended it, or -1 when it could
 * not be started. */
int tl_shell_run(const char *command);

/* Edit a text in $VISUAL, $EDITOR or vi.  False: it stays as it was. */
bool tl_shell_edit(tl_buf *text);

#endif
