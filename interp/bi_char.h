/* bi_char.h - classes and cases of characters.
 *
 * Latin, Greek and Cyrillic letters have cases here; of other scripts, what
 * is no punctuation, symbol or space counts as a letter.  No locale. */
#ifndef TL_INTERP_BI_CHAR_H
#define TL_INTERP_BI_CHAR_H

#include <stdbool.h>
#include <stdint.h>

uint32_t tl_char_upper(uint32_t c);
uint32_t tl_char_lower(uint32_t c);
bool tl_char_is_space(uint32_t c);
bool tl_char_is_digit(uint32_t c); /* 0 to 9 only */
bool tl_char_is_alpha(uint32_t c);

#endif
