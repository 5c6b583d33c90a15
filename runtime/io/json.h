/* json.h - a strict pull parser for the headers of untrusted files.
 *
 * It builds no tree: the reader of a format says what must come next, so
 * that nesting, types and unknown fields are decided by the format.  Strings
 * are decoded in place, inside the text.  Stricter than RFC 8259 where files
 * need no more: integers are plain digits up to 2^53, strings have no NUL.
 *
 * jansson is used for the JSON of users; this one stands alone because saving
 * and loading must work in a build without optional libraries, and because a
 * hostile header of 100 MB must not grow into a tree. */
#ifndef TL_IO_JSON_H
#define TL_IO_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct tl_json {
    char *text; /* overwritten by decoding */
    size_t len, at;
    const char *error; /* NULL, or what is wrong at `at` */
} tl_json;

typedef struct tl_json_str {
    const char *s; /* NUL-terminated: stands over the closing quote */
    size_t len;
} tl_json_str;

void tl_json_init(tl_json *j, char *text, size_t len);

/* All return false at the first fault; then j->error says which, and j->at
 * where, and every later call returns false. */
bool tl_json_fail(tl_json *j, const char *error);

/* Skip white space and consume `c`. */
bool tl_json_expect(tl_json *j, char c);

/* Skip white space; is `c` next?  Consumes it if so. */
bool tl_json_accept(tl_json *j, char c);

/* A string in strict UTF-8: no control characters unescaped, no lone
 * surrogates. */
bool tl_json_string(tl_json *j, tl_json_str *out);

/* Digits alone: no sign, point, exponent or leading zero; at most 2^53. */
bool tl_json_uint(tl_json *j, uint64_t *out);

/* Any value, of at most `depth` levels, unread: texts are checked as above,
 * numbers only for their characters. */
bool tl_json_skip(tl_json *j, int depth);

/* Nothing but spaces is left. */
bool tl_json_end(tl_json *j);

#endif
