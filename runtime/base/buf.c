/* buf.c - the growable byte string.  There is always room for the NUL. */
#include "runtime/base/buf.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "runtime/base/mem.h"
#include "runtime/base/size.h"
#include "runtime/base/utf8.h"

void tl_buf_init(tl_buf *buf)
{
    *buf = (tl_buf){0};
}

void tl_buf_fini(tl_buf *buf)
{
    tl_free(buf->data);
    tl_buf_init(buf);
}

void tl_buf_clear(tl_buf *buf)
{
    buf->len = 0;
    buf->failed = false;
    if (buf->data) {
        buf->data[0] = '\0';
    }
}

/* Room for `more` bytes and a NUL; false, and failed, if there is none. */
static bool reserve(tl_buf *buf, size_t more)
{
    size_t need, cap;
    char *data;

    if (buf->failed) {
        return false;
    }
    if (more < buf->cap - buf->len) {
        return true;
    }
    if (!tl_add_size(&need, buf->len, more) ||
        !tl_add_size(&need, need, 1)) {
        buf->failed = true;
        return false;
    }
    cap = buf->cap > SIZE_MAX / 4 ? need : buf->cap * 2;
    cap = cap < 64 ? 64 : cap;
    cap = cap < need ? need : cap;
    data = tl_realloc(buf->data, cap);
    if (!data) {
        buf->failed = true;
        return false;
    }
    buf->data = data;
    buf->cap = cap;
    return true;
}

void tl_buf_add(tl_buf *buf, const void *bytes, size_t len)
{
    if (!reserve(buf, len)) {
        return;
    }
    if (len > 0) {
        memcpy(buf->data + buf->len, bytes, len);
    }
    buf->len += len;
    buf->data[buf->len] = '\0';
}

void tl_buf_puts(tl_buf *buf, const char *s)
{
    tl_buf_add(buf, s, strlen(s));
}

void tl_buf_putc(tl_buf *buf, char c)
{
    tl_buf_add(buf, &c, 1);
}

/* ---- formats ------------------------------------------------------------ */

/* The conversion behind a `%`: its letter, how long its number is ('l', 'q' of
 * `ll`, 'z', or 0).  Returns where the text goes on. */
static const char *read_conversion(const char *p, char *letter, char *length)
{
    *length = 0;
    if (*p == 'z' || *p == 'l') {
        *length = *p++;
    }
    if (*length == 'l' && *p == 'l') {
        *length = 'q';
        p++;
    }
    *letter = *p;
    return *p ? p + 1 : p;
}

static void put_number(tl_buf *buf, uint64_t n, bool negative)
{
    char digits[24], *end = digits + sizeof(digits), *p = end;

    do {
        *--p = (char)('0' + n % 10);
        n /= 10;
    } while (n > 0);
    if (negative) {
        *--p = '-';
    }
    tl_buf_add(buf, p, (size_t)(end - p));
}

static void put_signed(tl_buf *buf, int64_t n)
{
    put_number(buf, n < 0 ? 0 - (uint64_t)n : (uint64_t)n, n < 0);
}

static void put_string(tl_buf *buf, const char *s)
{
    tl_buf_puts(buf, s ? s : "(null)");
}

/* The value of one conversion; false if it is none of %s, %c, %% and whole
 * numbers without width. */
static bool put_value(tl_buf *buf, char letter, char length, va_list *ap)
{
    if (length != 0 && letter != 'd' && letter != 'u') {
        return false;
    }
    switch (letter + length) {
    case 's':
        put_string(buf, va_arg(*ap, const char *));
        return true;
    case 'c':
        tl_buf_putc(buf, (char)va_arg(*ap, int));
        return true;
    case 'd':
        put_signed(buf, va_arg(*ap, int));
        return true;
    case 'd' + 'l':
        put_signed(buf, va_arg(*ap, long));
        return true;
    case 'd' + 'q':
        put_signed(buf, va_arg(*ap, long long));
        return true;
    case 'd' + 'z':
        put_signed(buf, (int64_t)va_arg(*ap, size_t));
        return true;
    case 'u':
        put_number(buf, va_arg(*ap, unsigned), false);
        return true;
    case 'u' + 'l':
        put_number(buf, va_arg(*ap, unsigned long), false);
        return true;
    case 'u' + 'q':
        put_number(buf, va_arg(*ap, unsigned long long), false);
        return true;
    case 'u' + 'z':
        put_number(buf, va_arg(*ap, size_t), false);
        return true;
    case '%':
        tl_buf_putc(buf, '%');
        return true;
    default:
        return false;
    }
}

/* False: there is a conversion that put_value() does not know. */
static bool put_plain(tl_buf *buf, const char *fmt, va_list *ap)
{
    char letter, length;

    while (*fmt) {
        const char *end = fmt;

        while (*end != '\0' && *end != '%') {
            end++;
        }
        tl_buf_add(buf, fmt, (size_t)(end - fmt));
        if (*end == '\0') {
            return true;
        }
        fmt = read_conversion(end + 1, &letter, &length);
        if (!put_value(buf, letter, length, ap)) {
            return false;
        }
    }
    return true;
}

static void put_other(tl_buf *buf, const char *fmt, va_list ap)
{
    va_list again;
    size_t room;
    int len;

    va_copy(again, ap);
    if (reserve(buf, 0)) {
        room = buf->cap - buf->len;
        len = vsnprintf(buf->data + buf->len, room, fmt, ap);
        if (len < 0) {
            buf->failed = true;
            buf->data[buf->len] = '\0';
        } else if ((size_t)len < room) {
            buf->len += (size_t)len;
        } else if (reserve(buf, (size_t)len)) {
            vsnprintf(buf->data + buf->len, (size_t)len + 1, fmt, again);
            buf->len += (size_t)len;
        } else {
            buf->data[buf->len] = '\0';
        }
    }
    va_end(again);
}

/* Most formats are plain, and vsnprintf is slow: with libraries that add
 * conversions of their own (libquadmath) it takes 1,000 instructions. */
void tl_buf_vprintf(tl_buf *buf, const char *fmt, va_list ap)
{
    size_t start = buf->len;
    va_list plain;
    bool done;

    tl_buf_add(buf, "", 0);
    va_copy(plain, ap);
    done = put_plain(buf, fmt, &plain);
    va_end(plain);
    if (done && !buf->failed) {
        return;
    }
    if (buf->data && buf->len > start) { /* none of it */
        buf->len = start;
        buf->data[start] = '\0';
    }
    if (!done) {
        put_other(buf, fmt, ap);
    }
}

void tl_buf_printf(tl_buf *buf, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    tl_buf_vprintf(buf, fmt, ap);
    va_end(ap);
}

void tl_buf_put_escaped(tl_buf *buf, const char *s, size_t len)
{
    uint32_t cp;

    for (size_t i = 0; i < len;) {
        size_t n = 0;

        while (i + n < len && s[i + n] >= ' ' && s[i + n] <= '~') {
            n++;
        }
        if (n > 0) { /* plain letters, at once */
            tl_buf_add(buf, s + i, n);
            i += n;
            continue;
        }
        n = tl_utf8_decode(s + i, len - i, &cp);
        if (n > 0 && !tl_utf8_is_unsafe(cp)) {
            tl_buf_add(buf, s + i, n);
            i += n;
            continue;
        }
        n = n ? n : 1;
        for (size_t end = i + n; i < end; i++) {
            tl_buf_printf(buf, "\\x%02x", (unsigned char)s[i]);
        }
    }
}

static void put_json_char(tl_buf *buf, const char *s, size_t n, uint32_t cp)
{
    static const char named[] = "btnvfr"; /* 8 .. 13 */

    if (n == 0) {
        tl_buf_puts(buf, "\xef\xbf\xbd");
    } else if (cp == '"' || cp == '\\') {
        tl_buf_printf(buf, "\\%c", (char)cp);
    } else if (cp >= 8 && cp <= 13 && cp != 11) {
        tl_buf_printf(buf, "\\%c", named[cp - 8]);
    } else if (cp < 0x20 || cp == 0x7f) {
        tl_buf_printf(buf, "\\u%04x", cp);
    } else {
        tl_buf_add(buf, s, n);
    }
}

void tl_buf_put_json(tl_buf *buf, const char *s, size_t len)
{
    uint32_t cp;

    for (size_t i = 0; i < len;) {
        size_t n = tl_utf8_decode(s + i, len - i, &cp);

        put_json_char(buf, s + i, n, cp);
        i += n ? n : 1;
    }
}

const char *tl_buf_str(const tl_buf *buf)
{
    return buf->data ? buf->data : "";
}
