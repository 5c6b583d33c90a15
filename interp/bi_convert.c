/* bi_convert.c - int, float, bool, str, repr, ord, chr. */
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "interp/bi_text.h"
#include "interp/builtin_fns.h"
#include "interp/container.h"
#include "interp/format.h"
#include "interp/late.h"
#include "interp/trace.h"
#include "runtime/base/size.h"
#include "runtime/base/utf8.h"

/* ---- text to numbers --------------------------------------------------- */

static tl_status no_number(const tl_str *s, const char *what, tl_diag *diag)
{
    tl_buf text;

    tl_buf_init(&text);
    tl_buf_put_escaped(&text, s->data, s->len > 60 ? 60 : s->len);
    (void)tl_fail(diag, TL_E0220, "\"%s\" is not %s", tl_buf_str(&text),
                  what);
    tl_buf_fini(&text);
    return TL_ERR_PROGRAM;
}

/* The text without blanks around it and without `_` between digits, in
 * buf[size]; false if it does not fit or cannot be a number. */
static bool clean(const tl_str *s, char *buf, size_t size)
{
    size_t i = 0, end = s->len, n = 0;

    while (i < end && isspace((unsigned char)s->data[i])) {
        i++;
    }
    while (end > i && isspace((unsigned char)s->data[end - 1])) {
        end--;
    }
    for (size_t start = i; i < end; i++) {
        char c = s->data[i];

        if (c == '_') {
            if (i == start || i + 1 == end ||
                !isalnum((unsigned char)s->data[i - 1]) ||
                !isalnum((unsigned char)s->data[i + 1])) {
                return false;
            }
            continue;
        }
        if (c == '\0' || n + 1 >= size) {
            return false;
        }
        buf[n++] = c;
    }
    buf[n] = '\0';
    return n > 0;
}

static int digit_value(char c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    if (isalpha((unsigned char)c)) {
        return tolower((unsigned char)c) - 'a' + 10;
    }
    return 99;
}

/* Skip 0x, 0o or 0b if the base allows it; base 0 is decided by it. */
static const char *skip_prefix(const char *p, int64_t *base)
{
    int64_t named = 0;

    if (p[0] == '0') {
        char c = (char)tolower((unsigned char)p[1]);

        named = c == 'x' ? 16 : c == 'o' ? 8 : c == 'b' ? 2 : 0;
    }
    if (named != 0 && (*base == 0 || *base == named)) {
        *base = named;
        return p + 2;
    }
    if (*base == 0) {
        *base = 10;
    }
    return p;
}

typedef enum parsed {
    PARSED,
    NOT_A_NUMBER,
    TOO_LARGE
} parsed;

static parsed parse_int(const char *p, int64_t base, int64_t *out)
{
    bool negative = *p == '-';
    int64_t n = 0;

    p = skip_prefix(p + (*p == '-' || *p == '+'), &base);
    if (*p == '\0') {
        return NOT_A_NUMBER;
    }
    for (; *p != '\0'; p++) {
        int digit = digit_value(*p);

        if (digit >= base) {
            return NOT_A_NUMBER;
        }
        if (!tl_mul_i64(&n, n, base) ||
            !tl_add_i64(&n, n, negative ? -digit : digit)) {
            return TOO_LARGE;
        }
    }
    *out = n;
    return PARSED;
}

static tl_status int_of_str(const tl_str *s, int64_t base, tl_value *out,
                            tl_diag *diag)
{
    char text[128];
    int64_t n;
    parsed how = NOT_A_NUMBER;

    if (clean(s, text, sizeof(text))) {
        how = parse_int(text, base, &n);
    }
    if (how == TOO_LARGE) {
        return no_number(s, "an int of 64 bits", diag);
    }
    if (how == NOT_A_NUMBER) {
        tl_status st = no_number(s, "an int", diag);

        if (base == 10 && strchr(s->data, '.') != NULL) {
            tl_diag_help(diag, "int(float(s))");
        }
        return st;
    }
    *out = tl_int_value(n);
    return TL_OK;
}

static tl_status float_of_str(const tl_str *s, tl_value *out, tl_diag *diag)
{
    char text[512], *end = text;
    double f = 0;

    if (clean(s, text, sizeof(text)) && strpbrk(text, "xXpP(") == NULL) {
        f = strtod(text, &end);
    }
    if (end == text || *end != '\0') {
        return no_number(s, "a float", diag);
    }
    *out = tl_float_value(f);
    return TL_OK;
}

/* ---- int, float, bool -------------------------------------------------- */

static tl_status int_of_float(double f, tl_value *out, tl_diag *diag)
{
    if (!(f >= -0x1p63 && f < 0x1p63)) {
        return tl_fail(diag, TL_E0220, "%g has no int of 64 bits", f);
    }
    *out = tl_int_value((int64_t)f);
    return TL_OK;
}

static tl_status cannot(tl_eval *ev, tl_value x, const char *what)
{
    return tl_fail(ev->diag, TL_E0220, "no %s of %s", what,
                   tl_value_type_str(x).s);
}

/* Read a tensor, so that the rest sees host values only. */
static tl_status host_value(tl_eval *ev, tl_value x, tl_value *out)
{
    if (tl_is_tensor(x)) {
        return tl_eval_read(ev, x, out);
    }
    *out = tl_ref(x);
    return TL_OK;
}

static tl_status to_int(tl_eval *ev, tl_value x, tl_value *out)
{
    switch (x.tag) {
    case TL_V_UNKNOWN:
        *out = x;
        return TL_OK;
    case TL_V_INT:
    case TL_V_BOOL:
        *out = tl_int_value(x.tag == TL_V_INT ? x.i : x.b);
        return TL_OK;
    case TL_V_FLOAT:
        return int_of_float(x.f, out, ev->diag);
    case TL_V_STR:
        return int_of_str(x.str, 10, out, ev->diag);
    default:
        return cannot(ev, x, "int");
    }
}

/* int(x, base) */
tl_status tl_bi_int(tl_eval *ev, const tl_builtin *self, tl_value *args,
                    tl_value *out)
{
    tl_value x;
    tl_status st;

    (void)self;
    if (args[1].tag != TL_V_NONE) {
        if (args[0].tag != TL_V_STR) {
            return tl_fail(ev->diag, TL_E0210, "a base is for a str, got %s",
                           tl_value_type_str(args[0]).s);
        }
        if (args[1].i != 0 && (args[1].i < 2 || args[1].i > 36)) {
            return tl_fail(ev->diag, TL_E0416, "base must be 0 or 2..36");
        }
        return int_of_str(args[0].str, args[1].i, out, ev->diag);
    }
    TL_TRY(host_value(ev, args[0], &x));
    st = to_int(ev, x, out);
    tl_unref(x);
    return st;
}

tl_status tl_bi_float(tl_eval *ev, const tl_builtin *self, tl_value *args,
                      tl_value *out)
{
    tl_value x;
    tl_status st = TL_OK;

    (void)self;
    if (tl_is_sym(args[0]) && tl_number_tag(args[0]) != TL_V_BOOL) {
        return tl_sym_to_float(ev, args[0], out);
    }
    TL_TRY(tl_sym_read(ev, &args[0]));
    TL_TRY(host_value(ev, args[0], &x));
    if (x.tag == TL_V_UNKNOWN) {
        *out = x;
    } else if (tl_is_number(x)) {
        *out = tl_float_value(tl_number_f(x));
    } else if (x.tag == TL_V_STR) {
        st = float_of_str(x.str, out, ev->diag);
    } else {
        st = cannot(ev, x, "float");
    }
    tl_unref(x);
    return st;
}

tl_status tl_bi_bool(tl_eval *ev, const tl_builtin *self, tl_value *args,
                     tl_value *out)
{
    bool known, yes;

    (void)self;
    TL_TRY(tl_eval_truth(ev, args[0], &known, &yes));
    *out = known ? tl_bool_value(yes) : tl_unknown();
    return TL_OK;
}

/* ---- str, repr, ord, chr ----------------------------------------------- */

/* str(x) of what has no data yet. */
static tl_status late_str(tl_eval *ev, tl_value x, tl_value *out)
{
    tl_text_parts t;
    tl_status st;

    tl_text_init(&t);
    st = tl_text_add(ev, &t, x, tl_none());
    if (st == TL_OK) {
        st = tl_text_finish(ev, &t, out);
    }
    tl_text_fini(&t);
    return st;
}

static tl_status unknown_repr(tl_eval *ev, tl_value *out)
{
    if (tl_is_tracing(ev)) {
        return tl_trace_refuse(ev, "the text of a tensor is needed before "
                                   "it is computed");
    }
    *out = tl_unknown();
    return TL_OK;
}

static tl_status text_of(tl_eval *ev, tl_value x, bool quote, tl_value *out)
{
    tl_buf text;
    tl_status st;

    if (!tl_value_known(x)) {
        return quote ? unknown_repr(ev, out) : late_str(ev, x, out);
    }
    tl_buf_init(&text);
    st = quote ? tl_format_repr(x, &text, ev->diag)
               : tl_format_str(x, &text, ev->diag);
    if (st == TL_OK) {
        st = tl_str_from_buf(out, &text, ev->diag);
    }
    tl_buf_fini(&text);
    return st;
}

tl_status tl_bi_str(tl_eval *ev, const tl_builtin *self, tl_value *args,
                    tl_value *out)
{
    (void)self;
    if (args[0].tag == TL_V_STR) {
        *out = tl_ref(args[0]);
        return TL_OK;
    }
    return text_of(ev, args[0], false, out);
}

tl_status tl_bi_repr(tl_eval *ev, const tl_builtin *self, tl_value *args,
                     tl_value *out)
{
    (void)self;
    return text_of(ev, args[0], true, out);
}

tl_status tl_bi_ord(tl_eval *ev, const tl_builtin *self, tl_value *args,
                    tl_value *out)
{
    const tl_str *s = args[0].str;
    uint32_t cp;

    (void)self;
    if (s->len == 0 || tl_utf8_decode(s->data, s->len, &cp) != s->len) {
        return tl_fail(ev->diag, TL_E0220,
                       "ord needs one character, got %lld",
                       (long long)tl_str_len(s));
    }
    *out = tl_int_value(cp);
    return TL_OK;
}

tl_status tl_bi_chr(tl_eval *ev, const tl_builtin *self, tl_value *args,
                    tl_value *out)
{
    int64_t i = args[0].i;
    char text[4];
    size_t n = i < 0 || i > 0x10ffff ? 0 : tl_utf8_encode((uint32_t)i, text);

    (void)self;
    if (n == 0) {
        return tl_fail(ev->diag, TL_E0220, "%lld is not a code point",
                       (long long)i);
    }
    return tl_str_new(out, text, n, ev->diag);
}
