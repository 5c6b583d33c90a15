/* utf8.h - decoding UTF-8, and how many columns a terminal gives a character.
 */
#ifndef TL_BASE_UTF8_H
#define TL_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Decode the character at `s`, of which `len` >= 1 bytes may be read.
 * Returns its length in bytes (1..4) and stores the code point; returns 0
 * for what is not UTF-8 (overlong forms, surrogates, above U+10FFFF, a
 * sequence cut off), and then *cp is the first byte. */
size_t tl_utf8_decode(const char *s, size_t len, uint32_t *cp);

/* Bytes of `cp` written to out[0..3]; 0 if `cp` is no code point. */
size_t tl_utf8_encode(uint32_t cp, char out[4]);

/* Columns on a terminal: 0 for combining marks, 2 for wide East Asian
 * characters and emoji, else 1.  Not for control characters. */
int tl_utf8_width(uint32_t cp);

/* True for what may change the state of a terminal or reorder its text: C0
 * and C1 controls, DEL, and the bidirectional formatting characters. */
bool tl_utf8_is_unsafe(uint32_t cp);

#endif
