/* paste.h - what was pasted at the prompt, as code. */
#ifndef TL_INTERP_PASTE_H
#define TL_INTERP_PASTE_H

#include <stddef.h>

#include "runtime/base/buf.h"

/* Append the code in a pasted text to `out`, without blank lines at its ends:
 *
 * - prompts of tlang, Python and IPython (`tl> `, `..> `, `>>> `, `... `,
 *   `In [3]: `, `   ...: `) are taken off; where there are any, lines without
 *   one are output, and left out, apart from a single line before the first
 *   prompt (a selection that began behind one);
 * - the indentation that all lines share is taken off;
 * - line ends become \n, a tab four spaces; other control characters are
 *   dropped: nothing that is pasted reaches the terminal as a command. */
void tl_paste_clean(const char *text, size_t len, tl_buf *out);

#endif
