/* test_safetensors.c - files of RELIABILITY.md 3.2: good ones, crafted bad
 * ones, cut and flipped ones; writing. */
#include "runtime/io/safetensors.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/mem.h"
#include "runtime/io/json.h"

static tl_diag diag;
static tl_pool *pool;
static char path[256];

static void setup(void)
{
    const char *tmp = getenv("TMPDIR");
    int fd;

    tl_diag_init(&diag, NULL);
    cr_assert_eq(tl_pool_new(&pool, 0, &diag), TL_OK);
    snprintf(path, sizeof(path), "%s/tl-st-XXXXXX", tmp ? tmp : "/tmp");
    fd = mkstemp(path);
    cr_assert_geq(fd, 0);
    close(fd);
}

static void teardown(void)
{
    unlink(path);
    tl_tensor_trim();
    cr_assert_eq(tl_tensor_live(), 0);
    cr_assert_eq(tl_pool_free(pool), 0);
    tl_diag_fini(&diag);
    cr_assert_eq(tl_mem_live_blocks(), 0);
}

TestSuite(safetensors, .init = setup, .fini = teardown);

static void put(const void *bytes, size_t n)
{
    FILE *f = fopen(path, "wb");

    cr_assert_eq(fwrite(bytes, 1, n, f), n);
    fclose(f);
}

/* A file with this header and `data` bytes of data. */
static size_t build(char *to, const char *header, size_t n, size_t data)
{
    for (int i = 0; i < 8; i++) {
        to[i] = (char)((uint64_t)n >> 8 * i & 0xff);
    }
    memcpy(to + 8, header, n);
    for (size_t i = 0; i < data; i++) {
        to[8 + n + i] = (char)i;
    }
    return 8 + n + data;
}

static tl_status open_built(const char *header, size_t data,
                            tl_safetensors **st)
{
    char *bytes = malloc(strlen(header) + data + 8);

    put(bytes, build(bytes, header, strlen(header), data));
    free(bytes);
    return tl_safetensors_open(st, path, &diag);
}

static void accepts(const char *header, size_t data)
{
    tl_safetensors *st;

    cr_expect_eq(open_built(header, data, &st), TL_OK, "%s: %s", header,
                 diag.last ? diag.last->message : "");
    tl_safetensors_close(st);
}

static void rejects(const char *header, size_t data, const char *part)
{
    tl_safetensors *st = NULL;

    tl_diag_clear(&diag);
    cr_expect_eq(open_built(header, data, &st), TL_ERR_FILE, "accepted: %s",
                 header);
    cr_expect_null(st);
    if (diag.last) {
        cr_expect_eq(diag.last->code, TL_E0713);
        cr_expect_not_null(strstr(diag.last->message, part),
                           "`%s` has no `%s`", diag.last->message, part);
        cr_expect_not_null(strstr(diag.last->message, "byte "), "%s",
                           diag.last->message);
    }
}

#define F32_2 "{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}"

Test(safetensors, good_headers_are_accepted)
{
    accepts("{}", 0);
    accepts("{}      ", 0);
    accepts("{\"a\":" F32_2 "}", 8);
    accepts("{ \"a\" :\n" F32_2 "\t}   ", 8);
    accepts("{\"a\":{\"data_offsets\":[0,4],\"shape\":[],\"dtype\":\"I32\"}}",
            4);
    accepts("{\"a\":{\"dtype\":\"F32\",\"shape\":[3,0],"
            "\"data_offsets\":[0,0]}}", 0);
    accepts("{\"__metadata__\":{},\"a\":" F32_2 "}", 8);
    accepts("{\"../../etc/passwd\":" F32_2 "}", 8);
    accepts("{\"\\u00e9\\ud83d\\ude00\":" F32_2 "}", 8);
    accepts("{\"a\":{\"dtype\":\"F4\",\"shape\":[4],"
            "\"data_offsets\":[0,2]}}", 2);
}

Test(safetensors, entries_and_metadata_are_listed)
{
    tl_safetensors *st;
    const tl_st_entry *e;
    const tl_st_pair *m;
    size_t n;

    cr_assert_eq(open_built(
        "{\"b\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[8,10]},"
        "\"__metadata__\":{\"k\":\"v\\n\"},\"a\":" F32_2 "}", 10, &st),
        TL_OK);
    e = tl_safetensors_entries(st, &n);
    cr_assert_eq(n, 2);
    cr_expect_str_eq(e[0].name, "a");
    cr_expect_str_eq(e[1].name, "b");
    cr_expect_eq(e[1].dtype, TL_u8);
    cr_expect_eq(e[1].size[0], 2);
    m = tl_safetensors_metadata(st, &n);
    cr_assert_eq(n, 1);
    cr_expect_str_eq(m[0].key, "k");
    cr_expect_str_eq(m[0].value, "v\n");
    cr_expect_eq(tl_safetensors_find(st, "b"), &e[1]);
    cr_expect_null(tl_safetensors_find(st, "c"));
    tl_safetensors_close(st);
}

Test(safetensors, bad_lengths_are_rejected)
{
    static const uint64_t lengths[] = {
        0, 3, 100000001, (uint64_t)1 << 31, ((uint64_t)1 << 31) - 1,
        (uint64_t)1 << 32, (uint64_t)1 << 63, UINT64_MAX};
    char bytes[10] = {0};
    tl_safetensors *st;

    for (size_t n = 0; n < 8; n++) {
        put(bytes, n);
        cr_expect_eq(tl_safetensors_open(&st, path, &diag), TL_ERR_FILE);
        cr_expect_eq(diag.last->code, TL_E0713);
    }
    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        memcpy(bytes, &lengths[i], 8);
        memcpy(bytes + 8, "{}", 2);
        put(bytes, 10);
        cr_expect_eq(tl_safetensors_open(&st, path, &diag), TL_ERR_FILE);
        cr_expect_eq(diag.last->code, TL_E0713);
    }
}

Test(safetensors, bad_json_is_rejected)
{
    rejects("[]", 0, "does not start with `{`");
    rejects(" {}", 0, "does not start with `{`");
    rejects("\xef\xbb\xbf{}", 0, "does not start with `{`");
    rejects("{}\n", 0, "spaces");
    rejects("{} x", 0, "spaces");
    rejects("{\"a\":" F32_2 ",}", 8, "string is missing");
    rejects("{\"a\":" F32_2, 8, "`,` or `}`");
    rejects("{\"a\" " F32_2 "}", 8, "`:` is missing");
    rejects("{a:" F32_2 "}", 8, "string is missing");
    rejects("{/**/\"a\":" F32_2 "}", 8, "string is missing");
    rejects("{\"a\":[]}", 0, "`{` is missing");
    rejects("{\"a\":{}}", 0, "string is missing");
    rejects("{\"\xff\":" F32_2 "}", 8, "UTF-8");
    rejects("{\"\xc0\x80\":" F32_2 "}", 8, "UTF-8");
    rejects("{\"\xed\xa0\x80\":" F32_2 "}", 8, "UTF-8");
    rejects("{\"\\ud800\":" F32_2 "}", 8, "surrogate");
    rejects("{\"\\udc00x\":" F32_2 "}", 8, "surrogate");
    rejects("{\"\\u0000\":" F32_2 "}", 8, "NUL");
    rejects("{\"\\u12g4\":" F32_2 "}", 8, "hexadecimal");
    rejects("{\"\\x\":" F32_2 "}", 8, "escape");
    rejects("{\"a\nb\":" F32_2 "}", 8, "control character");
    rejects("{\"a\\nb\":" F32_2 "}", 8, "control character");
    rejects("{\"a\\u007f\":" F32_2 "}", 8, "control character");
    rejects("{\"\":" F32_2 "}", 8, "empty tensor name");
    rejects("{\"a", 0, "not closed");
    rejects("{\"a\\", 0, "not closed");
}

Test(safetensors, nul_padding_is_rejected)
{
    tl_safetensors *st;
    char bytes[64];

    put(bytes, build(bytes, "{}\0\0", 4, 0));
    cr_expect_eq(tl_safetensors_open(&st, path, &diag), TL_ERR_FILE);
    cr_expect_not_null(strstr(diag.last->message, "spaces"));
}

#define ENTRY(dtype, shape, offsets)                                         \
    "{\"a\":{\"dtype\":" dtype ",\"shape\":" shape                           \
    ",\"data_offsets\":" offsets "}}"

Test(safetensors, bad_entries_are_rejected)
{
    rejects(ENTRY("\"F33\"", "[2]", "[0,8]"), 8, "unknown dtype");
    rejects(ENTRY("\"f32\"", "[2]", "[0,8]"), 8, "unknown dtype");
    rejects(ENTRY("7", "[2]", "[0,8]"), 8, "string is missing");
    rejects(ENTRY("\"F32\"", "[-2]", "[0,8]"), 8, "digits");
    rejects(ENTRY("\"F32\"", "[2.0]", "[0,8]"), 8, "not an integer");
    rejects(ENTRY("\"F32\"", "[2e0]", "[0,8]"), 8, "not an integer");
    rejects(ENTRY("\"F32\"", "[02]", "[0,8]"), 8, "leading zero");
    rejects(ENTRY("\"F32\"", "[18446744073709551616]", "[0,8]"), 8, "2^53");
    rejects(ENTRY("\"F32\"", "[9007199254740993]", "[0,8]"), 8, "2^53");
    rejects(ENTRY("\"F32\"", "[4294967296,4294967296]", "[0,0]"), 0,
            "overflows");
    rejects(ENTRY("\"F32\"", "[4503599627370496,4503599627370496,0]",
                  "[0,0]"), 0, "overflows");
    rejects(ENTRY("\"F32\"", "[1099511627776,1024]", "[0,0]"), 0, "2^48");
    rejects(ENTRY("\"F32\"", "[2,]", "[0,8]"), 8, "digits");
    rejects(ENTRY("\"F32\"", "2", "[0,8]"), 8, "`[` is missing");
    rejects(ENTRY("\"F32\"", "[2]", "[0]"), 8, "`,` is missing");
    rejects(ENTRY("\"F32\"", "[2]", "[0,8,8]"), 8, "`]`");
    rejects(ENTRY("\"F32\"", "[2]", "[8,0]"), 8, "before they begin");
    rejects(ENTRY("\"F32\"", "[2]", "[0,7]"), 8, "size of dtype and shape");
    rejects(ENTRY("\"F32\"", "[3]", "[0,12]"), 8, "behind the end");
    rejects(ENTRY("\"F32\"", "[1]", "[0,4]"), 8, "behind the data");
    rejects(ENTRY("\"F32\"", "[1]", "[4,8]"), 8, "hole");
    rejects(ENTRY("\"F4\"", "[3]", "[0,1]"), 1, "whole bytes");
    rejects("{\"a\":{\"dtype\":\"F32\",\"shape\":[2]}}", 8, "missing");
    rejects("{\"a\":{\"shape\":[2],\"data_offsets\":[0,8]}}", 8, "missing");
    rejects("{\"a\":{\"dtype\":\"F32\",\"dtype\":\"F32\",\"shape\":[2],"
            "\"data_offsets\":[0,8]}}", 8, "twice");
    rejects("{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"shape\":[2],"
            "\"data_offsets\":[0,8]}}", 8, "twice");
    rejects("{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"x\":1,"
            "\"data_offsets\":[0,8]}}", 8, "a field other");
}

Test(safetensors, entries_must_tile_the_data)
{
#define B(off)                                                               \
    ",\"b\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":" off "}}"
    rejects("{\"a\":" F32_2 B("[4,12]"), 12, "overlap");
    rejects("{\"a\":" F32_2 B("[0,8]"), 8, "overlap");
    rejects("{\"a\":" F32_2 B("[12,20]"), 20, "hole");
    rejects("{\"a\":" F32_2 B("[8,16]"), 17, "behind the data");
    rejects("{\"a\":" F32_2 B("[8,16]"), 15, "behind the end");
    accepts("{\"a\":" F32_2 B("[8,16]"), 16);
}

Test(safetensors, names_and_keys_are_unique)
{
    rejects("{\"a\":" F32_2 ",\"a\":" F32_2 "}", 8, "overlap");
    rejects("{\"a\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[0,0]},"
            "\"a\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[0,0]}}",
            0, "the name stands twice");
    rejects("{\"\\u0061\":{\"dtype\":\"F32\",\"shape\":[0],"
            "\"data_offsets\":[0,0]},"
            "\"a\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[0,0]}}",
            0, "the name stands twice");
    rejects("{\"__metadata__\":{\"k\":\"1\",\"k\":\"2\"}}", 0, "twice");
    rejects("{\"__metadata__\":{},\"__metadata__\":{}}", 0, "twice");
    rejects("{\"__metadata__\":{\"k\":1}}", 0, "string is missing");
    rejects("{\"__metadata__\":[]}", 0, "`{` is missing");
    rejects("{\"__metadata__\":{\"k\":{\"l\":\"m\"}}}", 0,
            "string is missing");
}

Test(safetensors, rank_is_at_most_64_and_loadable_to_16)
{
    tl_safetensors *st;
    tl_tensor *t;
    size_t n;

    for (int rank = 16; rank <= 65; rank += rank == 16 ? 1 : 16) {
        char header[1000];
        int len = snprintf(header, sizeof(header),
                           "{\"a\":{\"dtype\":\"U8\",\"shape\":[1");

        for (int i = 1; i < rank; i++) {
            len += snprintf(header + len, sizeof(header) - (size_t)len,
                            ",1");
        }
        snprintf(header + len, sizeof(header) - (size_t)len,
                 "],\"data_offsets\":[0,1]}}");
        if (rank > 64) {
            rejects(header, 1, "64 axes");
            continue;
        }
        cr_assert_eq(open_built(header, 1, &st), TL_OK);
        cr_expect_eq(tl_safetensors_read(tl_safetensors_entries(st, &n),
                                         pool, &t, &diag),
                     rank == 16 ? TL_OK : TL_ERR_FILE);
        if (rank == 16) {
            tl_tensor_unref(t);
        }
        tl_safetensors_close(st);
    }
}

Test(safetensors, foreign_dtypes_are_listed_but_not_loaded)
{
    tl_safetensors *st;
    const tl_st_entry *e;
    tl_tensor *t;

    cr_assert_eq(open_built(ENTRY("\"F8_E4M3\"", "[3]", "[0,3]"), 3, &st),
                 TL_OK);
    e = tl_safetensors_find(st, "a");
    cr_expect_not(e->loadable);
    cr_expect_str_eq(e->type, "F8_E4M3");
    cr_expect_eq(tl_safetensors_read(e, pool, &t, &diag), TL_ERR_FILE);
    cr_expect_eq(diag.last->code, TL_E0713);
    tl_safetensors_close(st);
}

Test(safetensors, unaligned_data_and_wild_bools_are_read)
{
    tl_safetensors *st;
    tl_tensor *t;

    cr_assert_eq(open_built(
        "{\"a\":{\"dtype\":\"BOOL\",\"shape\":[3],\"data_offsets\":[0,3]},"
        "\"b\":{\"dtype\":\"I32\",\"shape\":[1],\"data_offsets\":[3,7]}}", 7,
        &st), TL_OK);
    cr_assert_eq(tl_safetensors_read(tl_safetensors_find(st, "b"), pool,
                                     &t, &diag), TL_OK);
    cr_expect_eq(tl_tensor_get_i(t, 0), 0x06050403);
    tl_tensor_unref(t);
    cr_assert_eq(tl_safetensors_read(tl_safetensors_find(st, "a"), pool,
                                     &t, &diag), TL_OK);
    cr_expect_eq(((uint8_t *)tl_tensor_data(t))[0], 0);
    cr_expect_eq(((uint8_t *)tl_tensor_data(t))[2], 1);
    tl_tensor_unref(t);
    tl_safetensors_close(st);
}

Test(safetensors, pickles_are_refused_with_the_way_out)
{
    tl_safetensors *st;

    put("\x80\x02\x8a\x0al\xfc\x9c\x46\xf9 j\xa8P\x19.", 15);
    cr_expect_eq(tl_safetensors_open(&st, path, &diag), TL_ERR_FILE);
    cr_expect_not_null(strstr(diag.last->message, "pickle"));
    cr_expect_not_null(strstr(diag.last->help, "safetensors.torch"));
    tl_diag_clear(&diag);
    put("PK\3\4\0\0\10\10\0\0\0\0", 12);
    cr_expect_eq(tl_safetensors_open(&st, path, &diag), TL_ERR_FILE);
    cr_expect_not_null(strstr(diag.last->message, "pickle"));
}

/* ---- writing ------------------------------------------------------------ */

static tl_tensor *range(tl_dtype dtype, int rank, const int64_t *size)
{
    tl_tensor *t;

    cr_assert_eq(tl_tensor_new(&t, pool, dtype, rank, size, &diag), TL_OK);
    for (int64_t i = 0; i < t->numel; i++) {
        tl_tensor_set_i(t, i, i);
    }
    return t;
}

static void equal(const tl_safetensors *st, const char *name,
                  const tl_tensor *want)
{
    const tl_st_entry *e = tl_safetensors_find(st, name);
    tl_tensor *t;

    cr_assert_not_null(e);
    cr_assert_eq(tl_safetensors_read(e, pool, &t, &diag), TL_OK);
    cr_assert_eq(t->dtype, want->dtype);
    cr_assert_eq(t->rank, want->rank);
    for (int64_t i = 0; i < want->numel; i++) {
        cr_expect_eq(tl_tensor_get_f(t, i), tl_tensor_get_f(want, i));
    }
    tl_tensor_unref(t);
}

Test(safetensors, what_is_written_reads_back)
{
    tl_tensor *t[TL_DTYPE_COUNT + 2], *base;
    tl_st_item items[TL_DTYPE_COUNT + 2];
    tl_st_pair meta[2] = {{"version", "1"}, {"quote\"", "line\n\xc3\xa9"}};
    const tl_st_pair *m;
    tl_safetensors *st;
    char names[TL_DTYPE_COUNT][16];
    size_t n;

    for (int d = 0; d < TL_DTYPE_COUNT; d++) {
        t[d] = range((tl_dtype)d, 2, (int64_t[]){3, 5});
        snprintf(names[d], sizeof(names[d]), "t.%d", d);
        items[d] = (tl_st_item){names[d], t[d]};
    }
    base = range(TL_f32, 2, (int64_t[]){2, 3});
    cr_assert_eq(tl_tensor_view(&t[TL_DTYPE_COUNT], base, 2,
                                (int64_t[]){3, 2}, (int64_t[]){1, 3}, 0,
                                &diag), TL_OK);
    items[TL_DTYPE_COUNT] = (tl_st_item){"view \"q\"", t[TL_DTYPE_COUNT]};
    t[TL_DTYPE_COUNT + 1] = range(TL_i8, 1, (int64_t[]){0});
    items[TL_DTYPE_COUNT + 1] = (tl_st_item){"none",
                                             t[TL_DTYPE_COUNT + 1]};
    cr_assert_eq(tl_safetensors_write(path, items, TL_DTYPE_COUNT + 2, meta,
                                      2, &diag), TL_OK);
    cr_assert_eq(tl_safetensors_open(&st, path, &diag), TL_OK, "%s",
                 diag.last ? diag.last->message : "");
    for (int i = 0; i < TL_DTYPE_COUNT + 2; i++) {
        equal(st, items[i].name, t[i]);
        tl_tensor_unref(t[i]);
    }
    m = tl_safetensors_metadata(st, &n);
    cr_assert_eq(n, 2);
    cr_expect_str_eq(m[0].value, "line\n\xc3\xa9");
    tl_safetensors_close(st);
    tl_tensor_unref(base);
}

Test(safetensors, data_are_aligned_and_the_order_is_fixed)
{
    tl_tensor *a = range(TL_u8, 1, (int64_t[]){3});
    tl_tensor *b = range(TL_f64, 1, (int64_t[]){1});
    tl_st_item one[2] = {{"a", a}, {"b", b}}, two[2] = {{"b", b}, {"a", a}};
    char x[400], y[400];
    size_t nx, ny;
    FILE *f;

    cr_assert_eq(tl_safetensors_write(path, one, 2, NULL, 0, &diag), TL_OK);
    f = fopen(path, "rb");
    nx = fread(x, 1, sizeof(x), f);
    fclose(f);
    cr_assert_eq(tl_safetensors_write(path, two, 2, NULL, 0, &diag), TL_OK);
    f = fopen(path, "rb");
    ny = fread(y, 1, sizeof(y), f);
    fclose(f);
    cr_expect_eq(nx, ny);
    cr_expect_eq(memcmp(x, y, nx), 0);
    cr_expect_eq((unsigned char)x[0] % 8, 0);
    tl_tensor_unref(a);
    tl_tensor_unref(b);
}

Test(safetensors, names_that_cannot_be_read_are_not_written)
{
    static const char *const bad[] = {"", "__metadata__", "a\nb", "\xff"};
    tl_tensor *t = range(TL_u8, 1, (int64_t[]){3});
    tl_st_item twice[2] = {{"x", t}, {"x", t}};

    for (int i = 0; i < 4; i++) {
        tl_st_item item = {bad[i], t};

        cr_expect_eq(tl_safetensors_write(path, &item, 1, NULL, 0, &diag),
                     TL_ERR_FILE);
        cr_expect_eq(diag.last->code, TL_E0713);
    }
    cr_expect_eq(tl_safetensors_write(path, twice, 2, NULL, 0, &diag),
                 TL_ERR_FILE);
    tl_tensor_unref(t);
}

/* ---- damage ------------------------------------------------------------- */

/* A small file of two tensors and metadata, in memory. */
static size_t sample(char *bytes)
{
    static const char header[] =
        "{\"__metadata__\":{\"k\":\"v\"},\"a\":" F32_2
        ",\"b\":{\"dtype\":\"U8\",\"shape\":[2,1],"
        "\"data_offsets\":[8,10]}}  ";

    return build(bytes, header, strlen(header), 10);
}

Test(safetensors, every_truncation_is_rejected)
{
    char bytes[400];
    size_t n = sample(bytes);
    tl_safetensors *st;

    put(bytes, n);
    cr_assert_eq(tl_safetensors_open(&st, path, &diag), TL_OK, "%s",
                 diag.last ? diag.last->message : "");
    tl_safetensors_close(st);
    for (size_t len = 0; len < n; len++) {
        put(bytes, len);
        tl_diag_clear(&diag);
        cr_assert_eq(tl_safetensors_open(&st, path, &diag), TL_ERR_FILE);
        cr_assert_eq(diag.last->code, TL_E0713);
    }
}

/* A flipped bit gives an error, or tensors that tile the same data. */
Test(safetensors, every_flipped_bit_of_the_header_is_survived)
{
    char bytes[400];
    size_t n = sample(bytes), accepted = 0;

    for (size_t bit = 0; bit < (n - 10) * 8; bit++) {
        tl_safetensors *st;
        size_t count;

        bytes[bit / 8] ^= (char)(1 << bit % 8);
        put(bytes, n);
        bytes[bit / 8] ^= (char)(1 << bit % 8);
        tl_diag_clear(&diag);
        if (tl_safetensors_open(&st, path, &diag) != TL_OK) {
            cr_assert_eq(diag.last->code, TL_E0713);
            continue;
        }
        accepted++;
        for (size_t i = (tl_safetensors_entries(st, &count), 0); i < count;
             i++) {
            const tl_st_entry *e = &tl_safetensors_entries(st, &count)[i];
            tl_tensor *t;

            cr_assert_leq(e->end, 10);
            if (tl_safetensors_read(e, pool, &t, &diag) == TL_OK) {
                tl_tensor_unref(t);
            }
        }
        tl_safetensors_close(st);
    }
    cr_assert_lt(accepted, n * 8 / 4); /* names, dtypes of equal width */
}

Test(safetensors, every_failing_allocation_is_survived)
{
    char bytes[400];

    put(bytes, sample(bytes));
    for (uint64_t n = 1;; n++) {
        tl_safetensors *st = NULL;
        tl_tensor *t = NULL;
        tl_status status;

        tl_diag_clear(&diag);
        tl_tensor_trim();
        tl_mem_fail_at(n, false);
        status = tl_safetensors_open(&st, path, &diag);
        if (status == TL_OK) {
            status = tl_safetensors_read(tl_safetensors_find(st, "a"),
                                         pool, &t, &diag);
        }
        if (status == TL_OK) {
            tl_st_item item = {"t", t};

            status = tl_safetensors_write(path, &item, 1, NULL, 0, &diag);
        }
        tl_mem_fail_at(0, false);
        tl_tensor_unref(t);
        tl_safetensors_close(st);
        if (status == TL_OK) {
            cr_assert_gt(n, 8);
            break;
        }
        cr_assert_eq(status, TL_ERR_MEMORY);
        cr_assert_eq(tl_safetensors_open(&st, path, &diag), TL_OK);
        tl_safetensors_close(st);
    }
}
