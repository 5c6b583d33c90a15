/* bi_str.c - methods of str that search, cut and join; args[0] is the str. */
#include <string.h>

#include "interp/bi_char.h"
#include "interp/bi_text.h"
#include "interp/bi_walk.h"
#include "interp/builtin_fns.h"
#include "interp/container.h"
#include "runtime/base/utf8.h"

/* ---- pieces ------------------------------------------------------------ */

static tl_status push_text(tl_eval *ev, tl_value list, const char *s,
                           size_t len)
{
    tl_value v;

    TL_TRY(tl_str_new(&v, s, len, ev->diag));
    return tl_list_push_take(list.seq, v, ev->diag);
}

/* A function that fills a list. */
typedef tl_status filler(tl_eval *ev, const tl_str *s, const tl_str *sep,
                         int64_t max, tl_value list);

static tl_status fill_list(tl_eval *ev, filler *fill, const tl_str *s,
                           const tl_str *sep, int64_t max, tl_value *out)
{
    tl_value list;
    tl_status st;

    TL_TRY(tl_seq_alloc(&list, TL_V_LIST, 0, ev->diag));
    st = fill(ev, s, sep, max, list);
    if (st != TL_OK) {
        tl_unref(list);
        return st;
    }
    *out = list;
    return TL_OK;
}

/* Length in bytes of the blank or non-blank run at `from`. */
static size_t run(const tl_str *s, size_t from, bool blank)
{
    size_t at = from;

    while (at < s->len) {
        uint32_t cp;
        size_t n = tl_utf8_decode(s->data + at, s->len - at, &cp);

        if (tl_char_is_space(cp) != blank) {
            break;
        }
        at += n == 0 ? 1 : n;
    }
    return at - from;
}

/* Start of the blank or non-blank run that ends at `end`. */
static size_t run_back(const tl_str *s, size_t end, bool blank)
{
    while (end > 0) {
        size_t at = end - 1;
        uint32_t cp;

        while (at > 0 && ((unsigned char)s->data[at] & 0xc0) == 0x80) {
            at--;
        }
        (void)tl_utf8_decode(s->data + at, end - at, &cp);
        if (tl_char_is_space(cp) != blank) {
            break;
        }
        end = at;
    }
    return end;
}

/* ---- split ------------------------------------------------------------- */

static tl_status split_blanks(tl_eval *ev, const tl_str *s, const tl_str *sep,
                              int64_t max, tl_value list)
{
    size_t at = run(s, 0, true);

    (void)sep;
    while (at < s->len) {
        size_t n = run(s, at, false);

        if (max-- == 0) {
            return push_text(ev, list, s->data + at, s->len - at);
        }
        TL_TRY(push_text(ev, list, s->data + at, n));
        at += n;
        at += run(s, at, true);
    }
    return TL_OK;
}

static tl_status split_at(tl_eval *ev, const tl_str *s, const tl_str *sep,
                          int64_t max, tl_value list)
{
    size_t from = 0;

    for (;;) {
        int64_t hit = max-- == 0 ? -1 : tl_str_find(s, sep, from);

        if (hit < 0) {
            return push_text(ev, list, s->data + from, s->len - from);
        }
        TL_TRY(push_text(ev, list, s->data + from, (size_t)hit - from));
        from = (size_t)hit + sep->len;
    }
}

static void reverse_items(tl_value list)
{
    for (size_t i = 0, j = list.seq->len; i + 1 < j; i++) {
        tl_value t = list.seq->items[i];

        list.seq->items[i] = list.seq->items[--j];
        list.seq->items[j] = t;
    }
}

static tl_status rsplit_blanks(tl_eval *ev, const tl_str *s,
                               const tl_str *sep, int64_t max, tl_value list)
{
    size_t end = run_back(s, s->len, true);

    (void)sep;
    while (end > 0) {
        size_t from = run_back(s, end, false);

        if (max-- == 0) {
            TL_TRY(push_text(ev, list, s->data, end));
            break;
        }
        TL_TRY(push_text(ev, list, s->data + from, end - from));
        end = run_back(s, from, true);
    }
    reverse_items(list);
    return TL_OK;
}

/* Byte offset of the last occurrence that ends at or before `end`, or -1. */
static int64_t find_last(const tl_str *s, const tl_str *sub, size_t end)
{
    if (sub->len > end) {
        return -1;
    }
    for (size_t at = end - sub->len;; at--) {
        if (memcmp(s->data + at, sub->data, sub->len) == 0) {
            return (int64_t)at;
        }
        if (at == 0) {
            return -1;
        }
    }
}

static tl_status rsplit_at(tl_eval *ev, const tl_str *s, const tl_str *sep,
                           int64_t max, tl_value list)
{
    size_t end = s->len;

    for (;;) {
        int64_t hit = max-- == 0 ? -1 : find_last(s, sep, end);
        size_t from = hit < 0 ? 0 : (size_t)hit + sep->len;

        TL_TRY(push_text(ev, list, s->data + from, end - from));
        if (hit < 0) {
            reverse_items(list);
            return TL_OK;
        }
        end = (size_t)hit;
    }
}

static tl_status empty_separator(tl_eval *ev)
{
    (void)tl_fail(ev->diag, TL_E0416, "the separator is empty");
    tl_diag_help(ev->diag, "list(s) gives the characters");
    return TL_ERR_PROGRAM;
}

static tl_status split(tl_eval *ev, tl_value *args, filler *blanks,
                       filler *at, tl_value *out)
{
    bool plain = args[1].tag == TL_V_NONE;

    if (!plain && args[1].str->len == 0) {
        return empty_separator(ev);
    }
    return fill_list(ev, plain ? blanks : at, args[0].str,
                     plain ? NULL : args[1].str, args[2].i, out);
}

tl_status tl_bi_str_split(tl_eval *ev, const tl_builtin *self, tl_value *args,
                          tl_value *out)
{
    (void)self;
    return split(ev, args, split_blanks, split_at, out);
}

tl_status tl_bi_str_rsplit(tl_eval *ev, const tl_builtin *self,
                           tl_value *args, tl_value *out)
{
    (void)self;
    return split(ev, args, rsplit_blanks, rsplit_at, out);
}

static tl_status split_lines(tl_eval *ev, const tl_str *s, const tl_str *sep,
                             int64_t max, tl_value list)
{
    size_t at = 0;

    (void)sep;
    (void)max;
    while (at < s->len) {
        size_t n = strcspn(s->data + at, "\r\n");

        if (at + n < s->len && s->data[at + n] == '\0') { /* a NUL inside */
            const char *end = memchr(s->data + at, '\n', s->len - at);

            n = end == NULL ? s->len - at : (size_t)(end - s->data) - at;
        }
        TL_TRY(push_text(ev, list, s->data + at, n));
        at += n;
        if (at + 1 < s->len && s->data[at] == '\r' &&
            s->data[at + 1] == '\n') {
            at++;
        }
        at++;
    }
    return TL_OK;
}

tl_status tl_bi_str_splitlines(tl_eval *ev, const tl_builtin *self,
                               tl_value *args, tl_value *out)
{
    (void)self;
    return fill_list(ev, split_lines, args[0].str, NULL, 0, out);
}

tl_status tl_bi_str_partition(tl_eval *ev, const tl_builtin *self,
                              tl_value *args, tl_value *out)
{
    const tl_str *s = args[0].str, *sep = args[1].str;
    tl_value parts;
    tl_status st;
    int64_t hit;
    size_t before, after;

    (void)self;
    if (sep->len == 0) {
        return empty_separator(ev);
    }
    hit = tl_str_find(s, sep, 0);
    before = hit < 0 ? s->len : (size_t)hit;
    after = hit < 0 ? s->len : before + sep->len;
    TL_TRY(tl_seq_alloc(&parts, TL_V_TUPLE, 3, ev->diag));
    TL_GOTO(st, tl_str_new(&parts.seq->items[0], s->data, before, ev->diag));
    TL_GOTO(st, tl_str_new(&parts.seq->items[1], s->data + before,
                           after - before, ev->diag));
    TL_GOTO(st, tl_str_new(&parts.seq->items[2], s->data + after,
                           s->len - after, ev->diag));
    *out = parts;
    return TL_OK;
out:
    tl_unref(parts);
    return st;
}

/* ---- join, replace ----------------------------------------------------- */

static tl_status join_items(tl_eval *ev, const tl_str *sep,
                            const tl_seq *parts, tl_buf *text)
{
    for (size_t i = 0; i < parts->len; i++) {
        tl_value part = parts->items[i];

        if (part.tag != TL_V_STR) {
            (void)tl_fail(ev->diag, TL_E0210,
                          "join needs strings, item %zu is %s", i,
                          tl_value_type_str(part).s);
            tl_diag_help(ev->diag, "map(str, xs)");
            return TL_ERR_PROGRAM;
        }
        if (i > 0) {
            tl_buf_add(text, sep->data, sep->len);
        }
        tl_buf_add(text, part.str->data, part.str->len);
    }
    return TL_OK;
}

/* sep.join(parts) */
tl_status tl_bi_str_join(tl_eval *ev, const tl_builtin *self, tl_value *args,
                         tl_value *out)
{
    tl_value list;
    tl_status st;
    tl_buf text;

    (void)self;
    if (!tl_walk_known(ev, args[1]) || !tl_value_known(args[1])) {
        *out = tl_unknown();
        return TL_OK;
    }
    TL_TRY(tl_walk_list(ev, args[1], &list));
    tl_buf_init(&text);
    st = join_items(ev, args[0].str, list.seq, &text);
    if (st == TL_OK) {
        st = tl_str_from_buf(out, &text, ev->diag);
    }
    tl_buf_fini(&text);
    tl_unref(list);
    return st;
}

/* `new` before every character and at the end, as Python replaces "". */
static void replace_empty(const tl_str *s, const tl_str *with, int64_t count,
                          tl_buf *text)
{
    for (size_t i = 0; i <= s->len; i++) {
        bool start =
            i == s->len || ((unsigned char)s->data[i] & 0xc0) != 0x80;

        if (start && count != 0) {
            tl_buf_add(text, with->data, with->len);
            count--;
        }
        if (i < s->len) {
            tl_buf_putc(text, s->data[i]);
        }
    }
}

static void replace_all(const tl_str *s, const tl_str *old,
                        const tl_str *with, int64_t count, tl_buf *text)
{
    size_t from = 0;
    int64_t hit;

    while (count-- != 0 && (hit = tl_str_find(s, old, from)) >= 0) {
        tl_buf_add(text, s->data + from, (size_t)hit - from);
        tl_buf_add(text, with->data, with->len);
        from = (size_t)hit + old->len;
    }
    tl_buf_add(text, s->data + from, s->len - from);
}

tl_status tl_bi_str_replace(tl_eval *ev, const tl_builtin *self,
                            tl_value *args, tl_value *out)
{
    tl_status st;
    tl_buf text;

    (void)self;
    tl_buf_init(&text);
    if (args[1].str->len == 0) {
        replace_empty(args[0].str, args[2].str, args[3].i, &text);
    } else {
        replace_all(args[0].str, args[1].str, args[2].str, args[3].i, &text);
    }
    st = tl_str_from_buf(out, &text, ev->diag);
    tl_buf_fini(&text);
    return st;
}

/* ---- find -------------------------------------------------------------- */

/* Position in characters of byte offset `at` (-1 stays). */
static int64_t position(const tl_str *s, int64_t at)
{
    int64_t n = 0;

    if (at < 0 || s->ascii) {
        return at;
    }
    for (int64_t i = 0; i < at; i++) {
        n += ((unsigned char)s->data[i] & 0xc0) != 0x80;
    }
    return n;
}

tl_status tl_bi_str_find(tl_eval *ev, const tl_builtin *self, tl_value *args,
                         tl_value *out)
{
    const tl_str *s = args[0].str;
    int64_t start = args[2].i, len = tl_str_len(s);

    (void)ev;
    (void)self;
    if (start < 0) {
        start = start < -len ? 0 : start + len;
    }
    *out = tl_int_value(
        start > len ? -1
                    : position(s, tl_str_find(s, args[1].str,
                                              tl_str_offset(s, start))));
    return TL_OK;
}

tl_status tl_bi_str_rfind(tl_eval *ev, const tl_builtin *self, tl_value *args,
                          tl_value *out)
{
    const tl_str *s = args[0].str;

    (void)ev;
    (void)self;
    *out = tl_int_value(position(s, find_last(s, args[1].str, s->len)));
    return TL_OK;
}

tl_status tl_bi_str_index(tl_eval *ev, const tl_builtin *self, tl_value *args,
                          tl_value *out)
{
    const tl_str *s = args[0].str;
    int64_t at = position(s, tl_str_find(s, args[1].str, 0));

    (void)self;
    if (at < 0) {
        return tl_fail(ev->diag, TL_E0218, "\"%.40s\" is not in the str",
                       args[1].str->data);
    }
    *out = tl_int_value(at);
    return TL_OK;
}

tl_status tl_bi_str_count(tl_eval *ev, const tl_builtin *self, tl_value *args,
                          tl_value *out)
{
    const tl_str *s = args[0].str, *sub = args[1].str;
    int64_t n = 0, hit;
    size_t from = 0;

    (void)ev;
    (void)self;
    if (sub->len == 0) {
        *out = tl_int_value(tl_str_len(s) + 1);
        return TL_OK;
    }
    while ((hit = tl_str_find(s, sub, from)) >= 0) {
        n++;
        from = (size_t)hit + sub->len;
    }
    *out = tl_int_value(n);
    return TL_OK;
}

/* ---- ends -------------------------------------------------------------- */

static bool at_start(const tl_str *s, const tl_str *x)
{
    return x->len <= s->len && memcmp(s->data, x->data, x->len) == 0;
}

static bool at_end(const tl_str *s, const tl_str *x)
{
    return x->len <= s->len &&
           memcmp(s->data + s->len - x->len, x->data, x->len) == 0;
}

/* One string, or a tuple of them. */
static tl_status test_ends(tl_eval *ev, tl_value *args,
                           bool (*test)(const tl_str *, const tl_str *),
                           tl_value *out)
{
    tl_value x = args[1];
    bool yes = false;

    if (x.tag == TL_V_STR) {
        *out = tl_bool_value(test(args[0].str, x.str));
        return TL_OK;
    }
    for (size_t i = 0; i < x.seq->len && !yes; i++) {
        if (x.seq->items[i].tag != TL_V_STR) {
            return tl_fail(ev->diag, TL_E0210,
                           "a tuple of strings is needed, item %zu is %s", i,
                           tl_value_type_str(x.seq->items[i]).s);
        }
        yes = test(args[0].str, x.seq->items[i].str);
    }
    *out = tl_bool_value(yes);
    return TL_OK;
}

tl_status tl_bi_str_startswith(tl_eval *ev, const tl_builtin *self,
                               tl_value *args, tl_value *out)
{
    (void)self;
    return test_ends(ev, args, at_start, out);
}

tl_status tl_bi_str_endswith(tl_eval *ev, const tl_builtin *self,
                             tl_value *args, tl_value *out)
{
    (void)self;
    return test_ends(ev, args, at_end, out);
}

tl_status tl_bi_str_removeprefix(tl_eval *ev, const tl_builtin *self,
                                 tl_value *args, tl_value *out)
{
    const tl_str *s = args[0].str, *x = args[1].str;
    size_t n = at_start(s, x) ? x->len : 0;

    (void)self;
    return tl_str_new(out, s->data + n, s->len - n, ev->diag);
}

tl_status tl_bi_str_removesuffix(tl_eval *ev, const tl_builtin *self,
                                 tl_value *args, tl_value *out)
{
    const tl_str *s = args[0].str, *x = args[1].str;

    (void)self;
    return tl_str_new(out, s->data, s->len - (at_end(s, x) ? x->len : 0),
                      ev->diag);
}
