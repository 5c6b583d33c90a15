/* bi_text.h - strings as sequences of code points. */
#ifndef TL_INTERP_BI_TEXT_H
#define TL_INTERP_BI_TEXT_H

#include "interp/value.h"

/* Number of code points. */
int64_t tl_str_len(const tl_str *s);

/* Byte offset of code point `i`, 0 <= i <= tl_str_len(s). */
size_t tl_str_offset(const tl_str *s, int64_t i);

/* Character `i` (may be negative; E0218), and positions first,
 * first + stride, ... (valid ones, from tl_slice_indices). */
TL_MUST_USE tl_status tl_str_index(const tl_str *s, int64_t i, tl_value *out,
                                   tl_diag *diag);
TL_MUST_USE tl_status tl_str_slice(const tl_str *s, int64_t first,
                                   int64_t stride, int64_t count,
                                   tl_value *out, tl_diag *diag);

TL_MUST_USE tl_status tl_str_concat(const tl_str *a, const tl_str *b,
                                    tl_value *out, tl_diag *diag);
TL_MUST_USE tl_status tl_str_repeat(const tl_str *s, int64_t n, tl_value *out,
                                    tl_diag *diag);

/* Byte offset of the first occurrence of `sub` at or after byte `from`, or
 * -1. */
int64_t tl_str_find(const tl_str *s, const tl_str *sub, size_t from);

#endif
