/* test_safetensors_index.c - models in several files: what an index may say,
 * and what its shards must hold. */
#include "runtime/io/safetensors.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/mem.h"

#define TWO "{\"metadata\": {\"total_size\": 12, \"x\": [1.5e3, null, {}]}, "  \
            "\"weight_map\": {\"b\": \"two.safetensors\", "                    \
            "\"a\": \"one.safetensors\", \"c\": \"two.safetensors\"}}"

static tl_diag diag;
static tl_pool *pool;
static char folder[200];

static const char *in_folder(const char *name)
{
    static char path[300];

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    return path;
}

static void put(const char *name, const void *bytes, size_t n)
{
    FILE *f = fopen(in_folder(name), "wb");

    cr_assert_eq(fwrite(bytes, 1, n, f), n);
    fclose(f);
}

static void put_index(const char *text)
{
    put("m.safetensors.index.json", text, strlen(text));
}

/* A shard with these tensors, each i32[1] of the number of its letter. */
static void put_shard(const char *name, const char *letters, const char *tag)
{
    tl_st_item items[4];
    tl_tensor *t[4];
    char names[4][2] = {{0}};
    int64_t one = 1;
    tl_st_pair meta[2] = {{"format", "pt"}, {"tag", tag}};
    size_t n = strlen(letters);

    for (size_t i = 0; i < n; i++) {
        cr_assert_eq(tl_tensor_new(&t[i], pool, TL_i32, 1, &one, &diag),
                     TL_OK);
        tl_tensor_set_i(t[i], 0, letters[i]);
        names[i][0] = letters[i];
        items[i] = (tl_st_item){names[i], t[i]};
    }
    cr_assert_eq(tl_safetensors_write(in_folder(name), items, n, meta, 2,
                                      &diag),
                 TL_OK);
    for (size_t i = 0; i < n; i++) {
        tl_tensor_unref(t[i]);
    }
}

static void setup(void)
{
    const char *tmp = getenv("TMPDIR");

    tl_diag_init(&diag, NULL);
    cr_assert_eq(tl_pool_new(&pool, 0, &diag), TL_OK);
    snprintf(folder, sizeof(folder), "%s/tl-shard-XXXXXX",
             tmp ? tmp : "/tmp");
    cr_assert_not_null(mkdtemp(folder));
    put_shard("one.safetensors", "a", "1");
    put_shard("two.safetensors", "bc", "2");
}

static void teardown(void)
{
    static const char *const names[] = {
        "one.safetensors", "two.safetensors", "link.safetensors",
        "m.safetensors.index.json"};

    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        unlink(in_folder(names[i]));
    }
    rmdir(folder);
    tl_tensor_trim();
    cr_assert_eq(tl_tensor_live(), 0);
    cr_assert_eq(tl_pool_free(pool), 0);
    tl_diag_fini(&diag);
    cr_assert_eq(tl_mem_live_blocks(), 0);
}

TestSuite(safetensors_index, .init = setup, .fini = teardown);

static tl_status open_index(tl_safetensors **st)
{
    return tl_safetensors_open(st, in_folder("m.safetensors.index.json"),
                               &diag);
}

static void refuses(const char *text, tl_code code, const char *message)
{
    tl_safetensors *st = NULL;

    tl_diag_clear(&diag);
    put_index(text);
    cr_assert_eq(open_index(&st), TL_ERR_FILE, "%s", text);
    cr_expect_eq(diag.last->code, code, "%s: %s", text, diag.last->message);
    cr_expect_not_null(strstr(diag.last->message, message), "%s: %s", text,
                       diag.last->message);
}

Test(safetensors_index, tensors_of_all_shards_are_one_file)
{
    tl_safetensors *st;
    size_t n;

    put_index(TWO);
    cr_assert_eq(open_index(&st), TL_OK, "%s", diag.last->message);
    (void)tl_safetensors_entries(st, &n);
    cr_expect_eq(n, 3);
    for (const char *name = "abc"; *name; name++) {
        char s[2] = {*name, '\0'};
        tl_tensor *t;

        cr_assert_eq(tl_safetensors_read(tl_safetensors_find(st, s), pool,
                                         &t, &diag),
                     TL_OK);
        cr_expect_eq(tl_tensor_get_i(t, 0), *name);
        tl_tensor_unref(t);
    }
    const tl_st_pair *meta = tl_safetensors_metadata(st, &n);

    cr_assert_eq(n, 2);
    cr_expect_str_eq(meta[0].key, "format");
    cr_expect_str_eq(meta[1].value, "1");
    tl_safetensors_close(st);
}

Test(safetensors_index, shard_names_are_plain)
{
    static const char *const names[] = {
        "../x", "/etc/passwd", "a/b", "a\\\\b", "", ".hidden", "-o", "a..b",
        "a\\nb"};
    char text[200];

    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        snprintf(text, sizeof(text), "{\"weight_map\": {\"a\": \"%s\"}}",
                 names[i]);
        refuses(text, TL_E0704, "the shard name");
    }
}

Test(safetensors_index, symbolic_links_are_not_followed)
{
    char target[300];

    snprintf(target, sizeof(target), "%s", in_folder("one.safetensors"));
    cr_assert_eq(symlink(target, in_folder("link.safetensors")), 0);
    refuses("{\"weight_map\": {\"a\": \"link.safetensors\"}}", TL_E0704,
            "symbolic link");
}

Test(safetensors_index, index_and_shards_agree)
{
    refuses("{\"weight_map\": {\"a\": \"two.safetensors\"}}", TL_E0713,
            "tensor `a` is missing in `two.safetensors`");
    refuses("{\"weight_map\": {\"b\": \"two.safetensors\"}}", TL_E0713,
            "tensor `c` is not in the index, but in `two.safetensors`");
    refuses("{\"weight_map\": {\"a\": \"none.safetensors\"}}", TL_E0701,
            "none.safetensors");
    refuses("{\"weight_map\": {\"a\": \"one.safetensors\", \"a\": "
            "\"two.safetensors\"}}",
            TL_E0713, "stands twice");
}

Test(safetensors_index, malformed_ones_are_refused)
{
    refuses("", TL_E0713, "`{` is missing");
    refuses("{}", TL_E0713, "");
    refuses("{\"metadata\": {}}", TL_E0713, "`weight_map` is missing");
    refuses("{\"weight_map\": {}, \"weight_map\": {}}", TL_E0713, "twice");
    refuses("{\"weight_map\": {}} x", TL_E0713, "byte");
    refuses("{\"weight_map\": []}", TL_E0713, "`{` is missing");
    refuses("{\"weight_map\": {\"a\": 3}}", TL_E0713, "byte");
    refuses("{\"metadata\": [[[[[1]]]]], \"weight_map\": {}}", TL_E0713,
            "nested");
    refuses("{\"metadata\": , \"weight_map\": {}}", TL_E0713, "value");
}

Test(safetensors_index, every_cut_and_every_flipped_bit_is_safe)
{
    char text[sizeof(TWO)];

    for (size_t i = 0; i < strlen(TWO); i++) {
        tl_safetensors *st = NULL;

        put("m.safetensors.index.json", TWO, i);
        tl_diag_clear(&diag);
        cr_assert_eq(open_index(&st), TL_ERR_FILE, "cut at %zu", i);
        for (int bit = 0; bit < 8; bit++) {
            memcpy(text, TWO, sizeof(TWO));
            text[i] = (char)(text[i] ^ 1 << bit);
            put("m.safetensors.index.json", text, strlen(TWO));
            tl_diag_clear(&diag);
            if (open_index(&st) == TL_OK) {
                size_t n;

                (void)tl_safetensors_entries(st, &n);
                cr_expect_eq(n, 3, "byte %zu, bit %d", i, bit);
                tl_safetensors_close(st);
            }
        }
    }
}

Test(safetensors_index, every_failing_allocation_is_survived)
{
    put_index(TWO);
    for (uint64_t n = 1;; n++) {
        tl_safetensors *st = NULL;

        tl_diag_clear(&diag);
        tl_mem_fail_at(n, false);
        tl_status status = open_index(&st);

        tl_mem_fail_at(0, false);
        if (status == TL_OK) {
            cr_assert_gt(n, 12);
            tl_safetensors_close(st);
            break;
        }
        cr_assert_eq(status, TL_ERR_MEMORY);
    }
}
