/* format.h - text of values: print, str, f-strings. */
#ifndef TL_INTERP_FORMAT_H
#define TL_INTERP_FORMAT_H

#include "interp/value.h"

/* What `print(v)` writes: strings bare, containers with their items quoted as
 * in Python, tensors by runtime/tensor/print.h, a tree or module as a short
 * summary.  Depth-limited. */
TL_MUST_USE tl_status tl_format_str(tl_value v, tl_buf *out, tl_diag *diag);

/* The same with strings quoted: items of containers, the REPL's echo. */
TL_MUST_USE tl_status tl_format_repr(tl_value v, tl_buf *out, tl_diag *diag);

/* f"{v:spec}": Python's format mini-language for str, int, float and bool
 * ([[fill]align][sign][#][0][width][,_][.precision][type]); a tensor of one
 * element formats as its number.  E0220 names a bad spec and its place. */
TL_MUST_USE tl_status tl_format_spec(tl_value v, const char *spec, size_t len,
                                     tl_buf *out, tl_diag *diag);

#endif
