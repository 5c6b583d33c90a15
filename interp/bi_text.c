/* bi_text.c - strings as sequences of code points.
 *
 * A str is valid UTF-8 and knows whether it is ASCII; then a character is a
 * byte and everything here costs one step.  Otherwise positions are counted
 * from the front. */
#include "interp/bi_text.h"

#include <string.h>

#include "interp/container.h"
#include "runtime/base/mem.h"
#include "runtime/base/size.h"

static bool starts_char(char c)
{
    return ((unsigned char)c & 0xc0) != 0x80;
}

int64_t tl_str_len(const tl_str *s)
{
    int64_t n = 0;

    if (s->ascii) {
        return (int64_t)s->len;
    }
    for (size_t i = 0; i < s->len; i++) {
        n += starts_char(s->data[i]);
    }
    return n;
}

/* Byte offset of the character that is `n` after the one at `from`. */
static size_t skip(const tl_str *s, size_t from, int64_t n)
{
    if (s->ascii) {
        return from + (size_t)n;
    }
    for (; n > 0 && from < s->len; n--) {
        do {
            from++;
        } while (from < s->len && !starts_char(s->data[from]));
    }
    return from;
}

size_t tl_str_offset(const tl_str *s, int64_t i)
{
    return skip(s, 0, i);
}

tl_status tl_str_index(const tl_str *s, int64_t i, tl_value *out,
                       tl_diag *diag)
{
    size_t from;

    TL_TRY(tl_index_normalise(i, tl_str_len(s), "str", &i, diag));
    from = skip(s, 0, i);
    return tl_str_new(out, s->data + from, skip(s, from, 1) - from, diag);
}

/* Backward or with gaps: character by character. */
static tl_status slice_steps(const tl_str *s, int64_t first, int64_t stride,
                             int64_t count, tl_value *out, tl_diag *diag)
{
    int64_t n = tl_str_len(s);
    size_t *offset = tl_calloc((size_t)n + 1, sizeof(*offset));
    tl_status st;
    tl_buf text;

    if (offset == NULL) {
        return tl_fail_memory(diag, "text", (size_t)n * sizeof(*offset));
    }
    for (int64_t i = 0; i < n; i++) {
        offset[i + 1] = skip(s, offset[i], 1);
    }
    tl_buf_init(&text);
    for (int64_t i = 0; i < count; i++) {
        int64_t at = first + i * stride;

        tl_buf_add(&text, s->data + offset[at], offset[at + 1] - offset[at]);
    }
    st = tl_str_from_buf(out, &text, diag);
    tl_buf_fini(&text);
    tl_free(offset);
    return st;
}

tl_status tl_str_slice(const tl_str *s, int64_t first, int64_t stride,
                       int64_t count, tl_value *out, tl_diag *diag)
{
    size_t from;

    if (count == 0) {
        return tl_str_new(out, "", 0, diag);
    }
    if (stride != 1) {
        return slice_steps(s, first, stride, count, out, diag);
    }
    from = skip(s, 0, first);
    return tl_str_new(out, s->data + from, skip(s, from, count) - from, diag);
}

tl_status tl_str_concat(const tl_str *a, const tl_str *b, tl_value *out,
                        tl_diag *diag)
{
    tl_str *s = tl_obj_new(TL_V_STR, sizeof(*s) + a->len + b->len + 1, diag);

    if (s == NULL) {
        return TL_ERR_MEMORY;
    }
    memcpy(s->data, a->data, a->len);
    memcpy(s->data + a->len, b->data, b->len);
    s->len = a->len + b->len;
    s->ascii = a->ascii && b->ascii;
    *out = tl_obj_value_take(s);
    return TL_OK;
}

tl_status tl_str_repeat(const tl_str *s, int64_t n, tl_value *out,
                        tl_diag *diag)
{
    size_t total;
    tl_str *r;

    if (!tl_mul_size(&total, s->len, n < 0 ? 0 : (size_t)n) ||
        total > (size_t)TL_MAX_NUMEL) {
        return tl_fail(diag, TL_E0307, "%zu bytes times %lld are too many",
                       s->len, (long long)n);
    }
    r = tl_obj_new(TL_V_STR, sizeof(*r) + total + 1, diag);
    if (r == NULL) {
        return TL_ERR_MEMORY;
    }
    for (size_t at = 0; at < total; at += s->len) {
        memcpy(r->data + at, s->data, s->len);
    }
    r->len = total;
    r->ascii = s->ascii || total == 0;
    *out = tl_obj_value_take(r);
    return TL_OK;
}

int64_t tl_str_find(const tl_str *s, const tl_str *sub, size_t from)
{
    if (sub->len == 0) {
        return from > s->len ? -1 : (int64_t)from;
    }
    while (from < s->len && s->len - from >= sub->len) {
        const char *hit = memchr(s->data + from, sub->data[0],
                                 s->len - from - sub->len + 1);

        if (hit == NULL) {
            return -1;
        }
        if (memcmp(hit, sub->data, sub->len) == 0) {
            return hit - s->data;
        }
        from = (size_t)(hit - s->data) + 1;
    }
    return -1;
}
