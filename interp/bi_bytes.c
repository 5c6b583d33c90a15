/* bi_bytes.c - files and strings as tensors of numbers: what readers and
 * writers of binary formats, which are programs, are made of. */
#include <string.h>

#include "interp/autocast.h"
#include "interp/builtin_fns.h"
#include "interp/eval_impl.h"
#include "runtime/base/mem.h"
#include "runtime/base/utf8.h"
#include "runtime/io/deflate.h"
#include "runtime/io/file.h"

/* ---- tensors and their bytes ------------------------------------------- */

/* A new tensor [n] for the caller to fill. */
static tl_status new_row(tl_eval *ev, tl_dtype dtype, int64_t n,
                         tl_tensor **out)
{
    return tl_tensor_new(out, ev->rt->pool, dtype, 1, &n, ev->diag);
}

/* The argument as u8[n] without gaps; a new reference. */
static tl_status take_bytes(tl_eval *ev, tl_value v, tl_tensor **out)
{
    tl_ttype type;
    const tl_tensor *t = v.tensor;

    TL_TRY(tl_eval_type(ev, v, &type));
    if (type.dtype != TL_u8 || type.shape.rank != 1) {
        return tl_fail(ev->diag, TL_E0308, "bytes are u8[n], got %s",
                       tl_ttype_str(&type).s);
    }
    if (tl_tensor_contiguous(t)) {
        *out = tl_tensor_ref(v.tensor);
        return TL_OK;
    }
    TL_TRY(new_row(ev, TL_u8, t->numel, out));
    if (t->numel > 0) {
        tl_tensor_read(t, tl_tensor_data(*out));
    }
    return TL_OK;
}

static bool host_is_big(void)
{
    const uint16_t one = 1;
    unsigned char first;

    memcpy(&first, &one, 1);
    return first == 0;
}

/* Turn the bytes of each of n elements round. */
static void swap_bytes(unsigned char *p, size_t n, size_t width)
{
    for (size_t i = 0; i < n; i++, p += width) {
        for (size_t a = 0, b = width - 1; a < b; a++, b--) {
            unsigned char c = p[a];

            p[a] = p[b];
            p[b] = c;
        }
    }
}

/* bytes.unpack(bytes, dtype, big) */
tl_status tl_bi_bytes_unpack(tl_eval *ev, const tl_builtin *self,
                             tl_value *args, tl_value *out)
{
    tl_dtype dtype = args[1].dtype;
    int64_t width = (int64_t)tl_dtype_size(dtype);
    tl_tensor *from, *to = NULL;

    (void)self;
    TL_TRY(take_bytes(ev, args[0], &from));
    tl_status st = from->numel % width == 0
                       ? new_row(ev, dtype, from->numel / width, &to)
                       : tl_fail(ev->diag, TL_E0304,
                                 "%lld bytes are no whole number of %s, of "
                                 "%lld bytes each", (long long)from->numel,
                                 tl_dtype_name(dtype), (long long)width);

    if (st == TL_OK && from->numel > 0) {
        unsigned char *p = tl_tensor_data(to);

        memcpy(p, tl_tensor_data(from), (size_t)from->numel);
        for (int64_t i = 0; dtype == TL_bool && i < from->numel; i++) {
            p[i] = p[i] != 0;
        }
        if (args[2].b != host_is_big()) {
            swap_bytes(p, (size_t)to->numel, (size_t)width);
        }
    }
    tl_tensor_unref(from);
    if (st == TL_OK) {
        *out = tl_tensor_value_take(to);
    }
    return st;
}

/* bytes.pack(x, big) */
tl_status tl_bi_bytes_pack(tl_eval *ev, const tl_builtin *self,
                           tl_value *args, tl_value *out)
{
    tl_tensor *t, *to;

    (void)self;
    TL_TRY(tl_eval_widen(ev, &args[0]));
    t = args[0].tensor;
    size_t width = tl_dtype_size(t->dtype);

    TL_TRY(new_row(ev, TL_u8, t->numel * (int64_t)width, &to));
    if (t->numel > 0) {
        tl_tensor_read(t, tl_tensor_data(to));
        if (args[1].b != host_is_big()) {
            swap_bytes(tl_tensor_data(to), (size_t)t->numel, width);
        }
    }
    *out = tl_tensor_value_take(to);
    return TL_OK;
}

/* bytes.inflate(bytes, size) */
tl_status tl_bi_bytes_inflate(tl_eval *ev, const tl_builtin *self,
                              tl_value *args, tl_value *out)
{
    tl_tensor *from, *to = NULL;

    (void)self;
    TL_TRY(take_bytes(ev, args[0], &from));
    tl_status st = TL_OK;

    /* deflate cannot do better than 1032 to 1: a header that says more lies */
    if (args[1].i < 0 || args[1].i / 1032 > from->numel) {
        st = tl_fail(ev->diag, TL_E0711, "%lld bytes cannot inflate to %lld",
                     (long long)from->numel, (long long)args[1].i);
    }
    if (st == TL_OK) {
        st = new_row(ev, TL_u8, args[1].i, &to);
    }
    if (st == TL_OK) {
        st = tl_inflate(tl_tensor_data(to), (size_t)args[1].i,
                        tl_tensor_data(from), (size_t)from->numel, ev->diag);
    }
    tl_tensor_unref(from);
    if (st != TL_OK) {
        tl_tensor_unref(to);
        return st;
    }
    *out = tl_tensor_value_take(to);
    return TL_OK;
}

/* bytes.crc32(bytes) */
tl_status tl_bi_bytes_crc32(tl_eval *ev, const tl_builtin *self,
                            tl_value *args, tl_value *out)
{
    tl_tensor *t;

    (void)self;
    TL_TRY(take_bytes(ev, args[0], &t));
    *out = tl_int_value(
        t->numel > 0 ? tl_crc32(tl_tensor_data(t), (size_t)t->numel) : 0);
    tl_tensor_unref(t);
    return TL_OK;
}

/* ---- text -------------------------------------------------------------- */

/* Code points, or E0220. */
static tl_status add_codes(tl_eval *ev, const tl_tensor *t, tl_buf *text)
{
    for (int64_t i = 0; i < t->numel; i++) {
        int64_t cp = tl_tensor_get_i(t, i);
        char few[4];
        size_t n = cp < 0 || cp > 0x10ffff
                       ? 0 : tl_utf8_encode((uint32_t)cp, few);

        if (n == 0) {
            return tl_fail(ev->diag, TL_E0220, "%lld is not a code point",
                           (long long)cp);
        }
        tl_buf_add(text, few, n);
    }
    return TL_OK;
}

static tl_status text_of_codes(tl_eval *ev, tl_value v, tl_value *out)
{
    tl_ttype type;
    tl_buf text;

    TL_TRY(tl_eval_type(ev, v, &type));
    if (tl_dtype_is_float(type.dtype) || type.dtype == TL_bool ||
        type.shape.rank != 1) {
        return tl_fail(ev->diag, TL_E0308,
                       "text is u8[n] or code points i64[n], got %s",
                       tl_ttype_str(&type).s);
    }
    tl_buf_init(&text);
    tl_status st = add_codes(ev, v.tensor, &text);

    if (st == TL_OK) {
        st = tl_str_from_buf(out, &text, ev->diag);
    }
    tl_buf_fini(&text);
    return st;
}

/* bytes.text(bytes): u8 is UTF-8, other ints are code points */
tl_status tl_bi_bytes_text(tl_eval *ev, const tl_builtin *self,
                           tl_value *args, tl_value *out)
{
    tl_tensor *t;
    tl_status st = TL_OK;
    uint32_t cp;

    (void)self;
    if (args[0].tensor->dtype != TL_u8) {
        return text_of_codes(ev, args[0], out);
    }
    TL_TRY(take_bytes(ev, args[0], &t));
    const char *s = t->numel > 0 ? tl_tensor_data(t) : "";
    size_t len = (size_t)t->numel, n;

    for (size_t i = 0; i < len && st == TL_OK; i += n) {
        n = tl_utf8_decode(s + i, len - i, &cp);
        if (n == 0) {
            st = tl_fail(ev->diag, TL_E0712, "the bytes are no UTF-8 text: "
                         "0x%02x at offset %zu", (unsigned char)s[i], i);
        }
    }
    if (st == TL_OK) {
        st = tl_str_new(out, s, len, ev->diag);
    }
    tl_tensor_unref(t);
    return st;
}

/* s.codes(): code points as i64[n] */
tl_status tl_bi_str_codes(tl_eval *ev, const tl_builtin *self,
                          tl_value *args, tl_value *out)
{
    const tl_str *s = args[0].str;
    tl_tensor *t;
    int64_t n = 0, *to;
    uint32_t cp;

    (void)self;
    for (size_t i = 0; i < s->len; n++) {
        i += tl_utf8_decode(s->data + i, s->len - i, &cp);
    }
    TL_TRY(new_row(ev, TL_i64, n, &t));
    to = n > 0 ? tl_tensor_data(t) : NULL;
    for (size_t i = 0; i < s->len;) {
        i += tl_utf8_decode(s->data + i, s->len - i, &cp);
        *to++ = cp;
    }
    *out = tl_tensor_value_take(t);
    return TL_OK;
}

/* ---- files ------------------------------------------------------------- */

/* files.bytes(path) */
tl_status tl_bi_files_bytes(tl_eval *ev, const tl_builtin *self,
                            tl_value *args, tl_value *out)
{
    tl_bytes bytes;
    tl_tensor *t;
    const char *path = args[0].str->data;

    (void)self;
    TL_TRY(tl_path_check(path, args[0].str->len, ev->diag));
    TL_TRY(tl_file_read(path, 0, &bytes, ev->diag));
    tl_status st = new_row(ev, TL_u8, (int64_t)bytes.size, &t);

    if (st == TL_OK) {
        if (bytes.size > 0) {
            memcpy(tl_tensor_data(t), bytes.data, bytes.size);
        }
        *out = tl_tensor_value_take(t);
    }
    tl_bytes_fini(&bytes);
    return st;
}

/* files.write_bytes(path, bytes): the file is replaced at once, or not */
tl_status tl_bi_files_write_bytes(tl_eval *ev, const tl_builtin *self,
                                  tl_value *args, tl_value *out)
{
    tl_file_out file;
    tl_tensor *t;
    const char *path = args[0].str->data;
    tl_status st;

    (void)self;
    TL_TRY(tl_path_check(path, args[0].str->len, ev->diag));
    TL_TRY(take_bytes(ev, args[1], &t));
    st = tl_file_create(&file, path, ev->diag);
    if (st == TL_OK && t->numel > 0) {
        st = tl_file_write(&file, tl_tensor_data(t), (size_t)t->numel,
                           ev->diag);
        if (st != TL_OK) {
            tl_file_abort(&file);
        }
    }
    tl_tensor_unref(t);
    TL_TRY(st);
    TL_TRY(tl_file_commit(&file, ev->diag));
    *out = tl_none();
    return TL_OK;
}

/* files.damaged(path, what): an error of its own kind, for readers */
tl_status tl_bi_files_damaged(tl_eval *ev, const tl_builtin *self,
                              tl_value *args, tl_value *out)
{
    tl_buf text;

    (void)self;
    (void)out;
    tl_buf_init(&text);
    tl_buf_put_escaped(&text, args[1].str->data, args[1].str->len);
    tl_status st = tl_fail(ev->diag, TL_E0711, "`%s`: %s",
                           tl_path_str(args[0].str->data).s,
                           tl_buf_str(&text));

    tl_buf_fini(&text);
    return st;
}
