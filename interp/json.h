/* json.h - JSON text to values and back, for json.parse and json.text.
 *
 * Strict RFC 8259: no comments, no trailing commas, no NaN, no lone
 * surrogates, no key twice.  Objects become dicts, arrays lists; a number
 * without point or exponent is an int if it fits 64 bits, else a float. */
#ifndef TL_INTERP_JSON_H
#define TL_INTERP_JSON_H

#include "interp/value.h"

/* Parse the whole text.  E0220 with line and column; E0224. */
TL_MUST_USE tl_status tl_json_to_value(const char *text, size_t len,
                                       tl_value *out, tl_diag *diag);

/* Append `v`: none, bool, numbers, str, list, tuple, dict with keys of str or
 * int, record, tensor.  With `indent` >= 0 one item a line.  E0220 for what
 * has no JSON form (nan too); E0224. */
TL_MUST_USE tl_status tl_json_from_value(tl_value v, int64_t indent,
                                         tl_buf *out, tl_diag *diag);

#endif
