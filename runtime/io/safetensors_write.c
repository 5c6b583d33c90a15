/* safetensors_write.c - writing .safetensors files. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/buf.h"
#include "runtime/base/mem.h"
#include "runtime/base/utf8.h"
#include "runtime/io/file.h"
#include "runtime/io/safetensors.h"


static int by_width_then_name(const void *a, const void *b)
{
    const tl_st_item *x = *(const tl_st_item *const *)a;
    const tl_st_item *y = *(const tl_st_item *const *)b;
    size_t wx = tl_dtype_size(x->tensor->dtype);
    size_t wy = tl_dtype_size(y->tensor->dtype);

    if (wx != wy) {
        return wx > wy ? -1 : 1;
    }
    if (x->tensor->dtype != y->tensor->dtype) {
        return x->tensor->dtype > y->tensor->dtype ? -1 : 1;
    }
    return strcmp(x->name, y->name);
}

static int by_item_name(const void *a, const void *b)
{
    return strcmp((*(const tl_st_item *const *)a)->name,
                  (*(const tl_st_item *const *)b)->name);
}

/* What the reader refuses is not written. */
static const char *bad_name(const char *name)
{
    size_t len = strlen(name);

    if (len == 0 || len > 4096) {
        return "has no name of 1 to 4,096 bytes";
    }
    if (strcmp(name, "__metadata__") == 0) {
        return "has a name that the format keeps for itself";
    }
    for (size_t i = 0; i < len;) {
        uint32_t cp;
        size_t n = tl_utf8_decode(name + i, len - i, &cp);

        if (n == 0 || cp < 0x20 || cp == 0x7f) {
            return "has a name with control characters or invalid UTF-8";
        }
        i += n;
    }
    return NULL;
}

/* `order` is sorted by name. */
static tl_status check_items(const tl_st_item **order, size_t n,
                             const char *path, tl_diag *diag)
{
    for (size_t i = 0; i < n; i++) {
        const char *name = order[i]->name, *fault = bad_name(name);

        if (!fault && i > 0 && strcmp(name, order[i - 1]->name) == 0) {
            fault = "stands twice";
        }
        if (fault) {
            return tl_fail(diag, TL_E0713,
                           "cannot write `%s`: tensor `%s` %s",
                           tl_path_str(path).s, tl_path_str(name).s, fault);
        }
    }
    return TL_OK;
}

static void put_string(tl_buf *out, const char *s)
{
    tl_buf_putc(out, '"');
    tl_buf_put_json(out, s, strlen(s));
    tl_buf_putc(out, '"');
}

static void put_entry(tl_buf *out, const tl_st_item *item, uint64_t *at)
{
    const tl_tensor *t = item->tensor;
    uint64_t end = *at + (uint64_t)t->numel * tl_dtype_size(t->dtype);

    put_string(out, item->name);
    tl_buf_printf(out, ":{\"dtype\":\"%s\",\"shape\":[",
                  tl_dtype_safetensors_name(t->dtype));
    for (int i = 0; i < t->rank; i++) {
        tl_buf_printf(out, "%s%" PRId64, i > 0 ? "," : "", t->size[i]);
    }
    tl_buf_printf(out, "],\"data_offsets\":[%" PRIu64 ",%" PRIu64 "]}", *at,
                  end);
    *at = end;
}

/* Length and header, padded so that the data start at a multiple of 8. */
static void put_header(tl_buf *out, const tl_st_item **order, size_t n,
                       const tl_st_pair *metadata, size_t nmetadata)
{
    uint64_t at = 0, len;

    tl_buf_add(out, "\0\0\0\0\0\0\0\0", 8);
    tl_buf_putc(out, '{');
    if (nmetadata > 0) {
        tl_buf_puts(out, "\"__metadata__\":{");
        for (size_t i = 0; i < nmetadata; i++) {
            tl_buf_puts(out, i > 0 ? "," : "");
            put_string(out, metadata[i].key);
            tl_buf_putc(out, ':');
            put_string(out, metadata[i].value);
        }
        tl_buf_puts(out, n > 0 ? "}," : "}");
    }
    for (size_t i = 0; i < n; i++) {
        tl_buf_puts(out, i > 0 ? "," : "");
        put_entry(out, order[i], &at);
    }
    tl_buf_putc(out, '}');
    while (out->len % 8 != 0 && !out->failed) {
        tl_buf_putc(out, ' ');
    }
    if (out->failed) {
        return;
    }
    len = out->len - 8;
    for (int i = 0; i < 8; i++) {
        out->data[i] = (char)(len >> 8 * i & 0xff);
    }
}

/* Elements of a strided tensor, through a row-major copy. */
static tl_status write_strided(tl_file_out *f, const tl_tensor *t,
                               tl_diag *diag)
{
    size_t bytes = (size_t)t->numel * tl_dtype_size(t->dtype);
    char *copy = tl_malloc(bytes);
    tl_status st;

    if (!copy) {
        return tl_fail_memory(diag, "a row-major copy", bytes);
    }
    tl_tensor_read(t, copy);
    st = tl_file_write(f, copy, bytes, diag);
    tl_free(copy);
    return st;
}

static tl_status write_all(const char *path, const tl_buf *header,
                           const tl_st_item **order, size_t n, tl_diag *diag)
{
    tl_file_out f;
    tl_status st;

    TL_TRY(tl_file_create(&f, path, diag));
    TL_GOTO(st, tl_file_write(&f, header->data, header->len, diag));
    for (size_t i = 0; i < n; i++) {
        const tl_tensor *t = order[i]->tensor;

        if (tl_tensor_contiguous(t)) {
            TL_GOTO(st, tl_file_write(&f, tl_tensor_data(t),
                                      (size_t)t->numel *
                                          tl_dtype_size(t->dtype),
                                      diag));
        } else {
            TL_GOTO(st, write_strided(&f, t, diag));
        }
    }
    return tl_file_commit(&f, diag);
out:
    tl_file_abort(&f);
    return st;
}

tl_status tl_safetensors_write(const char *path, const tl_st_item *items,
                               size_t n, const tl_st_pair *metadata,
                               size_t nmetadata, tl_diag *diag)
{
    const tl_st_item **order = tl_calloc(n + 1, sizeof(*order));
    tl_buf header;
    tl_status st;

    tl_buf_init(&header);
    if (!order) {
        return tl_fail_memory(diag, "a list of tensors",
                              (n + 1) * sizeof(*order));
    }
    for (size_t i = 0; i < n; i++) {
        order[i] = &items[i];
    }
    qsort(order, n, sizeof(*order), by_item_name);
    TL_GOTO(st, check_items(order, n, path, diag));
    qsort(order, n, sizeof(*order), by_width_then_name);
    put_header(&header, order, n, metadata, nmetadata);
    if (header.failed) {
        st = tl_fail_memory(diag, "a safetensors header", header.len);
        goto out;
    }
    st = write_all(path, &header, order, n, diag);
out:
    tl_buf_fini(&header);
    tl_free(order);
    return st;
}
