/* buf.h - a growable byte string.
 *
 * Writing never reports: a buffer that once ran out of memory stays `failed`,
 * drops what follows, and its owner asks once at the end. */
#ifndef TL_BASE_BUF_H
#define TL_BASE_BUF_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct tl_buf {
    char *data; /* NUL-terminated once anything was written; else NULL */
    size_t len, cap;
    bool failed;
} tl_buf;

void tl_buf_init(tl_buf *buf);
void tl_buf_fini(tl_buf *buf);
void tl_buf_clear(tl_buf *buf); /* keeps the memory, clears `failed` */

void tl_buf_add(tl_buf *buf, const void *bytes, size_t len);
void tl_buf_puts(tl_buf *buf, const char *s);
void tl_buf_putc(tl_buf *buf, char c);
void tl_buf_printf(tl_buf *buf, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
void tl_buf_vprintf(tl_buf *buf, const char *fmt, va_list ap);

/* Append `s`, control bytes and invalid UTF-8 written as \xNN: names that
 * come from files reach a terminal only through this. */
void tl_buf_put_escaped(tl_buf *buf, const char *s, size_t len);

/* Append `s` as the body of a JSON string (without the quotes); invalid UTF-8
 * becomes U+FFFD. */
void tl_buf_put_json(tl_buf *buf, const char *s, size_t len);

/* The text written so far; "" when nothing was. */
const char *tl_buf_str(const tl_buf *buf);

#endif
