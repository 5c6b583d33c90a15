/* safetensors.c - reading .safetensors files that nobody vouches for.
 *
 * The header is parsed in one pass that knows what may stand where; names
 * and metadata stay in the header's bytes, decoded in place.  Then the
 * entries, sorted by offset, must tile the data. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "runtime/io/safetensors.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/mem.h"
#include "runtime/base/size.h"
#include "runtime/base/vec.h"
#include "runtime/io/file.h"
#include "runtime/io/json.h"
#include "runtime/io/safetensors_impl.h"

enum { MAX_RANK = 64, MAX_NAME = 4096, LENGTH_BYTES = 8 };

typedef struct st_dtype {
    const char *name;
    unsigned bits;
    tl_dtype dtype;
} st_dtype;

static const st_dtype dtypes[] = {
#define ST(name, bits, dtype) {name, bits, dtype},
#include "runtime/io/st_dtype.def"
};

/* ---- faults ------------------------------------------------------------- */

/* `rule` is broken at byte `at` of the file, in tensor `name` (or NULL). */
static tl_status broken(const tl_safetensors *st, const char *rule,
                        const char *name, uint64_t at)
{
    if (!name) {
        return tl_fail(st->diag, TL_E0713, "`%s`: %s (byte %llu)",
                       tl_path_str(st->path).s, rule,
                       (unsigned long long)at);
    }
    return tl_fail(st->diag, TL_E0713, "`%s`: %s (tensor `%s`, byte %llu)",
                   tl_path_str(st->path).s, rule, tl_path_str(name).s,
                   (unsigned long long)at);
}

/* The parser's fault, or the rule that the format adds to it. */
static tl_status json_fault(const tl_safetensors *st, const tl_json *j,
                            const char *name)
{
    return broken(st, j->error, name, LENGTH_BYTES + j->at);
}

/* ---- one entry ---------------------------------------------------------- */

/* Fields of an entry's object, as far as they were seen. */
typedef struct fields {
    bool has_dtype, has_shape, has_offsets;
    const st_dtype *dtype;
    int rank;
    uint64_t size[MAX_RANK];
    uint64_t begin, end;
} fields;

static bool parse_dtype(tl_json *j, fields *f)
{
    tl_json_str s;

    if (f->has_dtype) {
        return tl_json_fail(j, "`dtype` stands twice");
    }
    if (!tl_json_string(j, &s)) {
        return false;
    }
    f->has_dtype = true;
    for (size_t i = 0; i < sizeof(dtypes) / sizeof(dtypes[0]); i++) {
        if (strcmp(s.s, dtypes[i].name) == 0) {
            f->dtype = &dtypes[i];
            return true;
        }
    }
    return tl_json_fail(j, "an unknown dtype");
}

static bool parse_shape(tl_json *j, fields *f)
{
    if (f->has_shape) {
        return tl_json_fail(j, "`shape` stands twice");
    }
    f->has_shape = true;
    if (!tl_json_expect(j, '[')) {
        return false;
    }
    if (tl_json_accept(j, ']')) {
        return true;
    }
    do {
        if (f->rank == MAX_RANK) {
            return tl_json_fail(j, "more than 64 axes");
        }
        if (!tl_json_uint(j, &f->size[f->rank])) {
            return false;
        }
        f->rank++;
    } while (tl_json_accept(j, ','));
    return tl_json_expect(j, ']');
}

static bool parse_offsets(tl_json *j, fields *f)
{
    if (f->has_offsets) {
        return tl_json_fail(j, "`data_offsets` stands twice");
    }
    f->has_offsets = true;
    return tl_json_expect(j, '[') && tl_json_uint(j, &f->begin) &&
           tl_json_expect(j, ',') && tl_json_uint(j, &f->end) &&
           tl_json_expect(j, ']');
}

static bool parse_field(tl_json *j, fields *f)
{
    tl_json_str key;

    if (!tl_json_string(j, &key) || !tl_json_expect(j, ':')) {
        return false;
    }
    if (strcmp(key.s, "dtype") == 0) {
        return parse_dtype(j, f);
    }
    if (strcmp(key.s, "shape") == 0) {
        return parse_shape(j, f);
    }
    if (strcmp(key.s, "data_offsets") == 0) {
        return parse_offsets(j, f);
    }
    return tl_json_fail(j, "a field other than dtype, shape, data_offsets");
}

static bool parse_fields(tl_json *j, fields *f)
{
    *f = (fields){.rank = 0};
    if (!tl_json_expect(j, '{')) {
        return false;
    }
    do {
        if (!parse_field(j, f)) {
            return false;
        }
    } while (tl_json_accept(j, ','));
    if (!tl_json_expect(j, '}')) {
        return false;
    }
    if (!f->has_dtype || !f->has_shape || !f->has_offsets) {
        return tl_json_fail(j, "dtype, shape or data_offsets is missing");
    }
    return true;
}

/* Does the shape have exactly the bytes between the offsets?  NULL, or the
 * rule that is broken. */
static const char *check_size(const fields *f, uint64_t data_len)
{
    uint64_t n = 1;

    for (int i = 0; i < f->rank; i++) {
        if (__builtin_mul_overflow(n, f->size[i], &n)) {
            return "the product of the sizes overflows";
        }
    }
    if (n > (uint64_t)TL_MAX_NUMEL) {
        return "more than 2^48 elements";
    }
    if (n * f->dtype->bits % 8 != 0) {
        return "the elements do not fill whole bytes";
    }
    if (f->begin > f->end) {
        return "data_offsets end before they begin";
    }
    if (f->end > data_len) {
        return "the data end behind the end of the file";
    }
    if (f->end - f->begin != n * f->dtype->bits / 8) {
        return "data_offsets do not have the size of dtype and shape";
    }
    return NULL;
}

static const char *check_name(const tl_json_str *name)
{
    if (name->len == 0) {
        return "an empty tensor name";
    }
    if (name->len > MAX_NAME) {
        return "a tensor name over 4,096 bytes";
    }
    for (size_t i = 0; i < name->len; i++) {
        unsigned char c = (unsigned char)name->s[i];

        if (c < 0x20 || c == 0x7f) {
            return "a control character in a tensor name";
        }
    }
    return NULL;
}

static tl_status add_entry(tl_safetensors *st, const char *name,
                           const fields *f)
{
    int64_t *size = NULL;
    tl_st_entry e;

    if (f->rank > 0) {
        size = tl_arena_array(&st->arena, (size_t)f->rank, sizeof(*size));
        if (!size) {
            return tl_fail_memory(st->diag, "a safetensors header",
                                  (size_t)f->rank * sizeof(*size));
        }
    }
    for (int i = 0; i < f->rank; i++) {
        size[i] = (int64_t)f->size[i];
    }
    e = (tl_st_entry){
        .name = name,
        .type = f->dtype->name,
        .begin = f->begin,
        .end = f->end,
        .size = size,
        .rank = (int16_t)f->rank,
        .loadable =
            f->dtype->dtype != TL_DTYPE_COUNT && f->rank <= TL_MAX_RANK,
        .dtype = f->dtype->dtype,
        .file = st};
    return TL_VEC_PUSH(&st->entries, e, st->diag);
}

static tl_status parse_entry(tl_safetensors *st, tl_json *j,
                             const tl_json_str *name)
{
    const char *rule = check_name(name);
    fields f;

    if (rule) {
        return broken(st, rule, NULL, LENGTH_BYTES + j->at);
    }
    if (!parse_fields(j, &f)) {
        return json_fault(st, j, name->s);
    }
    rule = check_size(&f, st->data_len);
    if (rule) {
        return broken(st, rule, name->s, LENGTH_BYTES + j->at);
    }
    return add_entry(st, name->s, &f);
}

/* ---- the header --------------------------------------------------------- */

static tl_status parse_metadata(tl_safetensors *st, tl_json *j)
{
    if (!tl_json_expect(j, '{')) {
        return json_fault(st, j, "__metadata__");
    }
    if (tl_json_accept(j, '}')) {
        return TL_OK;
    }
    do {
        tl_json_str key, value;

        if (!tl_json_string(j, &key) || !tl_json_expect(j, ':') ||
            !tl_json_string(j, &value)) {
            return json_fault(st, j, "__metadata__");
        }
        TL_TRY(TL_VEC_PUSH(&st->metadata,
                           ((tl_st_pair){key.s, value.s}), st->diag));
    } while (tl_json_accept(j, ','));
    if (!tl_json_expect(j, '}')) {
        return json_fault(st, j, "__metadata__");
    }
    return TL_OK;
}

static tl_status parse_header(tl_safetensors *st, tl_json *j)
{
    bool metadata = false;

    if (st->header[0] != '{') {
        return broken(st, "the header does not start with `{`", NULL,
                      LENGTH_BYTES);
    }
    j->at = 1;
    if (tl_json_accept(j, '}')) {
        return tl_json_end(j) ? TL_OK : json_fault(st, j, NULL);
    }
    do {
        tl_json_str name;

        if (!tl_json_string(j, &name) || !tl_json_expect(j, ':')) {
            return json_fault(st, j, NULL);
        }
        if (strcmp(name.s, "__metadata__") != 0) {
            TL_TRY(parse_entry(st, j, &name));
        } else if (metadata) {
            return broken(st, "`__metadata__` stands twice", NULL,
                          LENGTH_BYTES + j->at);
        } else {
            metadata = true;
            TL_TRY(parse_metadata(st, j));
        }
    } while (tl_json_accept(j, ','));
    if (!tl_json_expect(j, '}') || !tl_json_end(j)) {
        return json_fault(st, j, NULL);
    }
    return TL_OK;
}

static int by_offset(const void *a, const void *b)
{
    const tl_st_entry *x = a, *y = b;

    if (x->begin != y->begin) {
        return x->begin < y->begin ? -1 : 1;
    }
    return x->end < y->end ? -1 : x->end > y->end;
}

/* The data of the entries follow each other from the first byte to the last.
 */
static tl_status check_tiling(tl_safetensors *st)
{
    uint64_t data = LENGTH_BYTES + st->header_len;
    uint64_t at = 0;

    if (st->entries.len > 0) {
        qsort(st->entries.items, st->entries.len, sizeof(tl_st_entry),
              by_offset);
    }
    for (size_t i = 0; i < st->entries.len; i++) {
        const tl_st_entry *e = &st->entries.items[i];

        if (e->begin != at) {
            return broken(st,
                          e->begin < at
                              ? "the data overlap those of another tensor"
                              : "there is a hole before the data",
                          e->name, data + e->begin);
        }
        at = e->end;
    }
    if (at != st->data_len) {
        return broken(st, "bytes behind the data of the last tensor", NULL,
                      data + at);
    }
    return TL_OK;
}

static int by_entry_name(const void *a, const void *b)
{
    return strcmp((*(const tl_st_entry *const *)a)->name,
                  (*(const tl_st_entry *const *)b)->name);
}

static int by_key(const void *a, const void *b)
{
    return strcmp(((const tl_st_pair *)a)->key, ((const tl_st_pair *)b)->key);
}

tl_status tl_st_check_names(tl_safetensors *st)
{
    size_t n = st->entries.len;

    st->by_name = tl_calloc(n + 1, sizeof(*st->by_name));
    if (!st->by_name) {
        return tl_fail_memory(st->diag, "a safetensors header",
                              (n + 1) * sizeof(*st->by_name));
    }
    for (size_t i = 0; i < n; i++) {
        st->by_name[i] = &st->entries.items[i];
    }
    qsort(st->by_name, n, sizeof(*st->by_name), by_entry_name);
    for (size_t i = 1; i < n; i++) {
        const char *name = st->by_name[i]->name;

        if (strcmp(name, st->by_name[i - 1]->name) == 0) {
            return broken(st, "the name stands twice", name,
                          LENGTH_BYTES + (uint64_t)(name - st->header));
        }
    }
    return TL_OK;
}

static tl_status check_keys(tl_safetensors *st)
{
    if (st->metadata.len > 0) {
        qsort(st->metadata.items, st->metadata.len, sizeof(tl_st_pair),
              by_key);
    }
    for (size_t i = 1; i < st->metadata.len; i++) {
        const char *key = st->metadata.items[i].key;

        if (strcmp(key, st->metadata.items[i - 1].key) == 0) {
            return broken(st, "a key of `__metadata__` stands twice", key,
                          LENGTH_BYTES + (uint64_t)(key - st->header));
        }
    }
    return TL_OK;
}

/* ---- opening ------------------------------------------------------------ */

/* A pickle is never read: it is a program. */
static tl_status refuse_pickle(const tl_safetensors *st)
{
    tl_status status =
        tl_fail(st->diag, TL_E0713,
                "`%s` is a pickle or an archive, not a safetensors file; "
                "tlang reads no pickles, which can run code",
                tl_path_str(st->path).s);

    tl_diag_help(st->diag,
                 "convert it once: python3 -c \"import torch, "
                 "safetensors.torch as s; s.save_file(torch.load('IN', "
                 "weights_only=True), 'OUT.safetensors')\"");
    return status;
}

/* A zip archive, or protocol 2 to 5; asked only where the length of the
 * header is impossible. */
static bool looks_like_pickle(const unsigned char *p)
{
    return (p[0] == 'P' && p[1] == 'K' && p[2] == 3 && p[3] == 4) ||
           (p[0] == 0x80 && p[1] >= 2 && p[1] <= 5);
}

/* Length of the header; N <= min(100,000,000, file - 8). */
static tl_status read_length(tl_safetensors *st, uint64_t file_len)
{
    unsigned char b[LENGTH_BYTES];
    uint64_t n = 0;

    if (file_len < LENGTH_BYTES) {
        return broken(st, "the file is shorter than 8 bytes", NULL, file_len);
    }
    TL_TRY(tl_file_pread(st->fd, st->path, b, sizeof(b), 0, st->diag));
    for (int i = LENGTH_BYTES - 1; i >= 0; i--) {
        n = n << 8 | b[i];
    }
    if (n == 0) {
        return broken(st, "the header is empty", NULL, 0);
    }
    if (n > file_len - LENGTH_BYTES && looks_like_pickle(b)) {
        return refuse_pickle(st);
    }
    if (n > TL_ST_MAX_HEADER) {
        return broken(st, "the header is over 100,000,000 bytes", NULL, 0);
    }
    if (n > file_len - LENGTH_BYTES) {
        return broken(st, "the header ends behind the end of the file", NULL,
                      0);
    }
    st->header_len = n;
    st->data_len = file_len - LENGTH_BYTES - n;
    return TL_OK;
}

tl_status tl_st_open_file(tl_safetensors *st, bool plain)
{
    uint64_t file_len;
    tl_json j;

    TL_TRY(plain ? tl_file_open_plain(st->path, &st->fd, &file_len, st->diag)
                 : tl_file_open(st->path, &st->fd, &file_len, st->diag));
    TL_TRY(read_length(st, file_len));
    st->header = tl_malloc(st->header_len);
    if (!st->header) {
        return tl_fail_memory(st->diag, "a safetensors header",
                              st->header_len);
    }
    TL_TRY(tl_file_pread(st->fd, st->path, st->header, st->header_len,
                         LENGTH_BYTES, st->diag));
    tl_json_init(&j, st->header, st->header_len);
    TL_TRY(parse_header(st, &j));
    TL_TRY(check_tiling(st));
    TL_TRY(tl_st_check_names(st));
    return check_keys(st);
}

tl_status tl_st_new(tl_safetensors **out, const char *path, tl_diag *diag)
{
    tl_safetensors *st = tl_calloc(1, sizeof(*st));

    if (!st) {
        return tl_fail_memory(diag, "a safetensors file", sizeof(*st));
    }
    st->fd = -1;
    st->diag = diag;
    tl_arena_init(&st->arena);
    st->path = tl_strndup(path, strlen(path));
    if (!st->path) {
        tl_safetensors_close(st);
        return tl_fail_memory(diag, "a file name", strlen(path) + 1);
    }
    *out = st;
    return TL_OK;
}

static bool is_index(const char *path)
{
    static const char end[] = ".index.json";
    size_t n = strlen(path);

    return n > strlen(end) && strcmp(path + n - strlen(end), end) == 0;
}

tl_status tl_safetensors_open(tl_safetensors **out, const char *path,
                              tl_diag *diag)
{
    tl_safetensors *st;
    tl_status status;

    TL_TRY(tl_st_new(&st, path, diag));
    status = is_index(path) ? tl_st_open_index(st) : tl_st_open_file(st, false);
    if (status != TL_OK) {
        tl_safetensors_close(st);
        return status;
    }
    st->diag = NULL;
    *out = st;
    return TL_OK;
}

void tl_safetensors_close(tl_safetensors *st)
{
    if (!st) {
        return;
    }
    if (st->fd >= 0) {
        close(st->fd);
    }
    for (size_t i = 0; i < st->shards.len; i++) {
        tl_safetensors_close(st->shards.items[i]);
    }
    tl_free(st->shards.items);
    tl_arena_fini(&st->arena);
    tl_free(st->entries.items);
    tl_free(st->metadata.items);
    tl_free(st->by_name);
    tl_free(st->header);
    tl_free(st->path);
    tl_free(st);
}

/* ---- what is in it ------------------------------------------------------ */

const tl_st_entry *tl_safetensors_entries(const tl_safetensors *st, size_t *n)
{
    *n = st->entries.len;
    return st->entries.items;
}

const tl_st_pair *tl_safetensors_metadata(const tl_safetensors *st, size_t *n)
{
    *n = st->metadata.len;
    return st->metadata.items;
}

const tl_st_entry *tl_safetensors_find(const tl_safetensors *st,
                                       const char *name)
{
    size_t low = 0, high = st->entries.len;

    while (low < high) {
        size_t mid = low + (high - low) / 2;
        int order = strcmp(name, st->by_name[mid]->name);

        if (order == 0) {
            return st->by_name[mid];
        }
        if (order < 0) {
            high = mid;
        } else {
            low = mid + 1;
        }
    }
    return NULL;
}

tl_status tl_safetensors_read(const tl_st_entry *entry, tl_pool *pool,
                              tl_tensor **out, tl_diag *diag)
{
    const tl_safetensors *st = entry->file;
    uint64_t at = LENGTH_BYTES + st->header_len + entry->begin;
    tl_tensor *t;
    tl_status status;

    if (!entry->loadable) {
        return tl_fail(diag, TL_E0713,
                       "`%s`: tensor `%s` is %s with %d axes, which tlang "
                       "cannot load (byte %llu)",
                       tl_path_str(st->path).s, tl_path_str(entry->name).s,
                       entry->type, entry->rank, (unsigned long long)at);
    }
    TL_TRY(tl_tensor_new(&t, pool, entry->dtype, entry->rank, entry->size,
                         diag));
    status = tl_file_pread(st->fd, st->path, tl_tensor_data(t),
                           entry->end - entry->begin, at, diag);
    if (status != TL_OK) {
        tl_tensor_unref(t);
        return status;
    }
    if (entry->dtype == TL_bool) {
        uint8_t *p = tl_tensor_data(t);

        for (int64_t i = 0; i < t->numel; i++) {
            p[i] = p[i] != 0;
        }
    }
    *out = t;
    return TL_OK;
}
