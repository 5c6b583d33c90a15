/* safetensors_index.c - models whose tensors are spread over several files.
 *
 *     {"metadata": {"total_size": 8}, "weight_map": {"w": "a.safetensors"}}
 *
 * The index is as untrusted as the files.  The name of a shard must be a
 * plain file name (RELIABILITY.md 3.3): a file beside the index, reached
 * through no symbolic link.  Index and shards must agree on every tensor. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include <stdlib.h>
#include <string.h>

#include "runtime/base/buf.h"
#include "runtime/base/mem.h"
#include "runtime/base/vec.h"
#include "runtime/io/file.h"
#include "runtime/io/json.h"
#include "runtime/io/safetensors_impl.h"

enum { MAX_SHARDS = 10000, SKIP_DEPTH = 4 };

/* A line of weight_map. */
typedef struct mapped {
    const char *name, *file;
    size_t at; /* byte of the index behind it */
} mapped;

typedef struct index_reader {
    tl_safetensors *st;
    struct {
        mapped *items;
        size_t len, cap;
    } map;
} index_reader;

/* ---- faults ------------------------------------------------------------ */

static tl_status broken(const tl_safetensors *st, const char *rule, size_t at)
{
    return tl_fail(st->diag, TL_E0713, "`%s`: %s (byte %zu)",
                   tl_path_str(st->path).s, rule, at);
}

static tl_status json_fault(const tl_safetensors *st, const tl_json *j)
{
    return broken(st, j->error, j->at);
}

/* NULL, or why `s` is no plain file name. */
static const char *not_plain(const char *s)
{
    if (s[0] == '\0') {
        return "is empty";
    }
    if (s[0] == '-' || s[0] == '.') {
        return "starts with `-` or `.`";
    }
    if (strstr(s, "..")) {
        return "has `..`";
    }
    for (; *s; s++) {
        if (*s == '/' || *s == '\\') {
            return "names another folder";
        }
        if ((unsigned char)*s < ' ' || *s == 0x7f) {
            return "has control characters";
        }
    }
    return NULL;
}

static tl_status check_file_name(const tl_safetensors *st, const mapped *m)
{
    const char *why = not_plain(m->file);

    if (!why) {
        return TL_OK;
    }
    (void)tl_fail(st->diag, TL_E0704,
                  "`%s`: the shard name `%s` %s (byte %zu)",
                  tl_path_str(st->path).s, tl_path_str(m->file).s, why,
                  m->at);
    tl_diag_help(st->diag, "a shard is a file beside the index");
    return TL_ERR_FILE;
}

/* ---- the index --------------------------------------------------------- */

static tl_status parse_map(index_reader *r, tl_json *j)
{
    if (!tl_json_expect(j, '{')) {
        return json_fault(r->st, j);
    }
    if (tl_json_accept(j, '}')) {
        return TL_OK;
    }
    do {
        tl_json_str name, file;

        if (!tl_json_string(j, &name) || !tl_json_expect(j, ':') ||
            !tl_json_string(j, &file)) {
            return json_fault(r->st, j);
        }
        mapped m = {name.s, file.s, j->at};

        TL_TRY(check_file_name(r->st, &m));
        TL_TRY(TL_VEC_PUSH(&r->map, m, r->st->diag));
    } while (tl_json_accept(j, ','));
    return tl_json_expect(j, '}') ? TL_OK : json_fault(r->st, j);
}

static tl_status parse(index_reader *r, tl_json *j)
{
    bool seen = false;

    if (!tl_json_expect(j, '{')) {
        return json_fault(r->st, j);
    }
    do {
        tl_json_str key;

        if (!tl_json_string(j, &key) || !tl_json_expect(j, ':')) {
            return json_fault(r->st, j);
        }
        if (strcmp(key.s, "weight_map") != 0) {
            if (!tl_json_skip(j, SKIP_DEPTH)) {
                return json_fault(r->st, j);
            }
        } else if (seen) {
            return broken(r->st, "`weight_map` stands twice", j->at);
        } else {
            seen = true;
            TL_TRY(parse_map(r, j));
        }
    } while (tl_json_accept(j, ','));
    if (!tl_json_expect(j, '}') || !tl_json_end(j)) {
        return json_fault(r->st, j);
    }
    return seen ? TL_OK : broken(r->st, "`weight_map` is missing", j->at);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const mapped *)a)->name, ((const mapped *)b)->name);
}

static int by_file_and_name(const void *a, const void *b)
{
    int order = strcmp(((const mapped *)a)->file, ((const mapped *)b)->file);

    return order != 0 ? order : by_name(a, b);
}

static tl_status check_map(index_reader *r)
{
    mapped *m = r->map.items;
    size_t n = r->map.len;

    if (n > 0) {
        qsort(m, n, sizeof(*m), by_name);
    }
    for (size_t i = 1; i < n; i++) {
        if (strcmp(m[i].name, m[i - 1].name) == 0) {
            return tl_fail(r->st->diag, TL_E0713,
                           "`%s`: the name stands twice (tensor `%s`, byte "
                           "%zu)",
                           tl_path_str(r->st->path).s,
                           tl_path_str(m[i].name).s,
                           m[i].at > m[i - 1].at ? m[i].at : m[i - 1].at);
        }
    }
    if (n > 0) {
        qsort(m, n, sizeof(*m), by_file_and_name);
    }
    return TL_OK;
}

/* ---- the shards -------------------------------------------------------- */

/* The path of a file beside the index. */
static tl_status beside(const tl_safetensors *st, const char *file,
                        tl_buf *path)
{
    const char *slash = strrchr(st->path, '/');

    if (slash) {
        tl_buf_add(path, st->path, (size_t)(slash - st->path) + 1);
    }
    tl_buf_puts(path, file);
    return path->failed ? tl_fail_memory(st->diag, "a file name", path->len)
                        : TL_OK;
}

static tl_status disagree(const index_reader *r, const char *shard,
                          const char *name, const char *what)
{
    return tl_fail(r->st->diag, TL_E0713, "`%s`: tensor `%s` %s `%s`",
                   tl_path_str(r->st->path).s, tl_path_str(name).s, what,
                   tl_path_str(shard).s);
}

/* The shard has the tensors m[0 .. n), and no other. */
static tl_status check_shard(const index_reader *r,
                             const tl_safetensors *shard, const mapped *m,
                             size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (!tl_safetensors_find(shard, m[i].name)) {
            return disagree(r, m->file, m[i].name, "is missing in");
        }
    }
    for (size_t i = 0; i < shard->entries.len && shard->entries.len != n;
         i++) {
        mapped key = {shard->entries.items[i].name, m->file, 0};

        if (!bsearch(&key, m, n, sizeof(*m), by_name)) {
            return disagree(r, m->file, key.name,
                            "is not in the index, but in");
        }
    }
    return TL_OK;
}

/* What the shard has joins what the others have. */
static tl_status join_shard(tl_safetensors *st, const tl_safetensors *shard)
{
    for (size_t i = 0; i < shard->entries.len; i++) {
        TL_TRY(TL_VEC_PUSH(&st->entries, shard->entries.items[i], st->diag));
    }
    for (size_t i = 0; i < shard->metadata.len; i++) {
        TL_TRY(TL_VEC_PUSH(&st->metadata, shard->metadata.items[i],
                           st->diag));
    }
    return TL_OK;
}

static int by_pair(const void *a, const void *b)
{
    const tl_st_pair *x = a, *y = b;
    int order = strcmp(x->key, y->key);

    return order != 0 ? order : strcmp(x->value, y->value);
}

/* Each key of the shards' metadata once, with its first text by order. */
static void join_metadata(tl_safetensors *st)
{
    tl_st_pair *m = st->metadata.items;
    size_t n = 0;

    if (st->metadata.len > 0) {
        qsort(m, st->metadata.len, sizeof(*m), by_pair);
    }
    for (size_t i = 0; i < st->metadata.len; i++) {
        if (n == 0 || strcmp(m[i].key, m[n - 1].key) != 0) {
            m[n++] = m[i];
        }
    }
    st->metadata.len = n;
}

/* Open the shard of m[0 .. n). */
static tl_status open_shard(index_reader *r, const mapped *m, size_t n)
{
    tl_safetensors *shard = NULL;
    tl_buf path;
    tl_status st;

    tl_buf_init(&path);
    TL_GOTO(st, beside(r->st, m->file, &path));
    TL_GOTO(st, tl_st_new(&shard, tl_buf_str(&path), r->st->diag));
    TL_GOTO(st, tl_st_open_file(shard, true));
    TL_GOTO(st, check_shard(r, shard, m, n));
    TL_GOTO(st, TL_VEC_PUSH(&r->st->shards, shard, r->st->diag));
    const tl_safetensors *opened = shard;

    shard = NULL; // the reader's now
    st = join_shard(r->st, opened);
out:
    tl_safetensors_close(shard);
    tl_buf_fini(&path);
    return st;
}

static tl_status open_shards(index_reader *r)
{
    size_t n;

    for (size_t i = 0; i < r->map.len; i += n) {
        const mapped *m = &r->map.items[i];

        for (n = 1; i + n < r->map.len && strcmp(m[n].file, m->file) == 0;) {
            n++;
        }
        if (r->st->shards.len == MAX_SHARDS) {
            return broken(r->st, "more than 10,000 shards", m->at);
        }
        TL_TRY(open_shard(r, m, n));
    }
    return TL_OK;
}

tl_status tl_st_open_index(tl_safetensors *st)
{
    index_reader r = {.st = st};
    tl_bytes text = {NULL, 0};
    tl_json j;
    tl_status status;

    TL_TRY(tl_file_read(st->path, TL_ST_MAX_HEADER, &text, st->diag));
    tl_json_init(&j, text.data, text.size);
    status = parse(&r, &j);
    if (status == TL_OK) {
        status = check_map(&r);
    }
    if (status == TL_OK) {
        status = open_shards(&r);
    }
    if (status == TL_OK) {
        join_metadata(st);
        status = tl_st_check_names(st);
    }
    tl_free(r.map.items);
    tl_bytes_fini(&text);
    return status;
}
