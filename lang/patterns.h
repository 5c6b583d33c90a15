/* patterns.h - patterns of axis names are parsed when a file is loaded. */
#ifndef TL_LANG_PATTERNS_H
#define TL_LANG_PATTERNS_H

#include "lang/parse.h"

/* Parse the literal patterns of all calls of rearrange, reduce and einsum in
 * a resolved unit.  Every wrong one is reported (E0323), at its place inside
 * the string; the status is then TL_ERR_REJECTED. */
TL_MUST_USE tl_status tl_patterns_check(const tl_unit *unit, tl_diag *diag);

#endif
