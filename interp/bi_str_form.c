/* bi_str_form.c - methods of str that strip, fill, change case and ask. */
#include <string.h>

#include "interp/bi_char.h"
#include "interp/bi_text.h"
#include "interp/builtin_fns.h"
#include "runtime/base/utf8.h"

/* ---- strip ------------------------------------------------------------- */

/* Is the character s[0 .. n), code point `cp`, one to strip? */
static bool stripped(const tl_value chars, const char *s, size_t n,
                     uint32_t cp)
{
    if (chars.tag == TL_V_NONE) {
        return tl_char_is_space(cp);
    }
    for (size_t i = 0; i + n <= chars.str->len; i++) {
        if (memcmp(chars.str->data + i, s, n) == 0) {
            return true;
        }
    }
    return false;
}

static size_t char_start(const tl_str *s, size_t end)
{
    size_t at = end - 1;

    while (at > 0 && ((unsigned char)s->data[at] & 0xc0) == 0x80) {
        at--;
    }
    return at;
}

static tl_status strip(tl_eval *ev, tl_value *args, bool left, bool right,
                       tl_value *out)
{
    const tl_str *s = args[0].str;
    size_t from = 0, end = s->len;
    uint32_t cp;

    while (left && from < end) {
        size_t n = tl_utf8_decode(s->data + from, end - from, &cp);

        if (n == 0 || !stripped(args[1], s->data + from, n, cp)) {
            break;
        }
        from += n;
    }
    while (right && end > from) {
        size_t at = char_start(s, end);

        if (tl_utf8_decode(s->data + at, end - at, &cp) == 0 ||
            !stripped(args[1], s->data + at, end - at, cp)) {
            break;
        }
        end = at;
    }
    return tl_str_new(out, s->data + from, end - from, ev->diag);
}

tl_status tl_bi_str_strip(tl_eval *ev, const tl_builtin *self, tl_value *args,
                          tl_value *out)
{
    (void)self;
    return strip(ev, args, true, true, out);
}

tl_status tl_bi_str_lstrip(tl_eval *ev, const tl_builtin *self,
                           tl_value *args, tl_value *out)
{
    (void)self;
    return strip(ev, args, true, false, out);
}

tl_status tl_bi_str_rstrip(tl_eval *ev, const tl_builtin *self,
                           tl_value *args, tl_value *out)
{
    (void)self;
    return strip(ev, args, false, true, out);
}

/* ---- fill -------------------------------------------------------------- */

#define MAX_WIDTH ((int64_t)1 << 30)

static tl_status padding(tl_eval *ev, const tl_str *s, int64_t width,
                         int64_t *out)
{
    int64_t len = tl_str_len(s);

    if (width > MAX_WIDTH) {
        return tl_fail(ev->diag, TL_E0416, "the width %lld is too large",
                       (long long)width);
    }
    *out = width > len ? width - len : 0;
    return TL_OK;
}

static void put_fill(const tl_str *fill, int64_t n, tl_buf *text)
{
    for (int64_t i = 0; i < n && !text->failed; i++) {
        tl_buf_add(text, fill->data, fill->len);
    }
}

/* `before` of each 2 fills come first: 0, 1 or 2. */
static tl_status justify(tl_eval *ev, tl_value *args, int before,
                         tl_value *out)
{
    const tl_str *s = args[0].str, *fill = args[2].str;
    int64_t pad, left;
    tl_status st;
    tl_buf text;

    if (tl_str_len(fill) != 1) {
        return tl_fail(ev->diag, TL_E0416,
                       "the fill must be one character, got %lld",
                       (long long)tl_str_len(fill));
    }
    TL_TRY(padding(ev, s, args[1].i, &pad));
    left = before == 2 ? pad : before == 0 ? 0 : pad / 2;
    if (before == 1) { /* Python's center: odd widths lean left */
        left += pad & args[1].i & 1;
    }
    tl_buf_init(&text);
    put_fill(fill, left, &text);
    tl_buf_add(&text, s->data, s->len);
    put_fill(fill, pad - left, &text);
    st = tl_str_from_buf(out, &text, ev->diag);
    tl_buf_fini(&text);
    return st;
}

tl_status tl_bi_str_ljust(tl_eval *ev, const tl_builtin *self, tl_value *args,
                          tl_value *out)
{
    (void)self;
    return justify(ev, args, 0, out);
}

tl_status tl_bi_str_rjust(tl_eval *ev, const tl_builtin *self, tl_value *args,
                          tl_value *out)
{
    (void)self;
    return justify(ev, args, 2, out);
}

tl_status tl_bi_str_center(tl_eval *ev, const tl_builtin *self,
                           tl_value *args, tl_value *out)
{
    (void)self;
    return justify(ev, args, 1, out);
}

tl_status tl_bi_str_zfill(tl_eval *ev, const tl_builtin *self, tl_value *args,
                          tl_value *out)
{
    const tl_str *s = args[0].str;
    size_t sign = s->len > 0 && (s->data[0] == '-' || s->data[0] == '+');
    int64_t pad = 0;
    tl_status st;
    tl_buf text;

    (void)self;
    TL_TRY(padding(ev, s, args[1].i, &pad));
    tl_buf_init(&text);
    tl_buf_add(&text, s->data, sign);
    for (; pad > 0 && !text.failed; pad--) {
        tl_buf_putc(&text, '0');
    }
    tl_buf_add(&text, s->data + sign, s->len - sign);
    st = tl_str_from_buf(out, &text, ev->diag);
    tl_buf_fini(&text);
    return st;
}

/* ---- case -------------------------------------------------------------- */

typedef enum recase {
    UPPER,
    LOWER,
    TITLE,
    CAPITAL
} recase;

/* The case of a character after `letter` (is the one before a letter?) and
 * at the start or not. */
static bool to_upper(recase how, bool letter, bool start)
{
    return how == UPPER || (how == TITLE && !letter) ||
           (how == CAPITAL && start);
}

static tl_status change_case(tl_eval *ev, tl_value *args, recase how,
                             tl_value *out)
{
    const tl_str *s = args[0].str;
    bool letter = false;
    tl_status st;
    tl_buf text;

    tl_buf_init(&text);
    for (size_t i = 0; i < s->len;) {
        uint32_t cp;
        size_t n = tl_utf8_decode(s->data + i, s->len - i, &cp);
        bool upper = to_upper(how, letter, i == 0);
        char bytes[4];

        letter = tl_char_is_alpha(cp);
        if (cp == 0xdf && upper) { /* sharp s */
            tl_buf_puts(&text, how == UPPER ? "SS" : "Ss");
        } else {
            cp = upper ? tl_char_upper(cp) : tl_char_lower(cp);
            tl_buf_add(&text, bytes, tl_utf8_encode(cp, bytes));
        }
        i += n == 0 ? 1 : n;
    }
    st = tl_str_from_buf(out, &text, ev->diag);
    tl_buf_fini(&text);
    return st;
}

tl_status tl_bi_str_upper(tl_eval *ev, const tl_builtin *self, tl_value *args,
                          tl_value *out)
{
    (void)self;
    return change_case(ev, args, UPPER, out);
}

tl_status tl_bi_str_lower(tl_eval *ev, const tl_builtin *self, tl_value *args,
                          tl_value *out)
{
    (void)self;
    return change_case(ev, args, LOWER, out);
}

tl_status tl_bi_str_title(tl_eval *ev, const tl_builtin *self, tl_value *args,
                          tl_value *out)
{
    (void)self;
    return change_case(ev, args, TITLE, out);
}

tl_status tl_bi_str_capitalize(tl_eval *ev, const tl_builtin *self,
                               tl_value *args, tl_value *out)
{
    (void)self;
    return change_case(ev, args, CAPITAL, out);
}

/* ---- questions --------------------------------------------------------- */

static bool is_alnum(uint32_t c)
{
    return tl_char_is_alpha(c) || tl_char_is_digit(c);
}

static tl_value all_are(const tl_str *s, bool (*test)(uint32_t))
{
    bool yes = s->len > 0;

    for (size_t i = 0; i < s->len && yes;) {
        uint32_t cp;
        size_t n = tl_utf8_decode(s->data + i, s->len - i, &cp);

        yes = n > 0 && test(cp);
        i += n;
    }
    return tl_bool_value(yes);
}

/* Is there a letter with a case, and none of the other case? */
static tl_value all_cased(const tl_str *s, bool upper)
{
    bool any = false, wrong = false;

    for (size_t i = 0; i < s->len;) {
        uint32_t cp;
        size_t n = tl_utf8_decode(s->data + i, s->len - i, &cp);

        any |= tl_char_upper(cp) != tl_char_lower(cp);
        wrong |= (upper ? tl_char_upper(cp) : tl_char_lower(cp)) != cp;
        i += n == 0 ? 1 : n;
    }
    return tl_bool_value(any && !wrong);
}

#define QUESTION(name, answer)                                               \
    tl_status tl_bi_str_##name(tl_eval *ev, const tl_builtin *self,          \
                               tl_value *args, tl_value *out)                \
    {                                                                        \
        (void)ev;                                                            \
        (void)self;                                                          \
        *out = (answer);                                                     \
        return TL_OK;                                                        \
    }

QUESTION(isdigit, all_are(args[0].str, tl_char_is_digit))
QUESTION(isalpha, all_are(args[0].str, tl_char_is_alpha))
QUESTION(isalnum, all_are(args[0].str, is_alnum))
QUESTION(isspace, all_are(args[0].str, tl_char_is_space))
QUESTION(isupper, all_cased(args[0].str, true))
QUESTION(islower, all_cased(args[0].str, false))
