/* test_map.c - the ordered map, against a plain array. */
#include <criterion/criterion.h>

#include <string.h>

#include "runtime/base/map.h"
#include "runtime/base/mem.h"

static char keys[4096];
static int values[4096];

Test(map, empty_map_has_nothing)
{
    tl_map m;
    bool found = true;

    tl_map_init(&m);
    cr_expect_null(tl_map_get(&m, &keys[0], &found));
    cr_expect_not(found);
    cr_expect_not(tl_map_remove(&m, &keys[0]));
    tl_map_fini(&m);
}

Test(map, iterates_in_order_of_insertion)
{
    tl_map m;

    tl_map_init(&m);
    for (size_t i = 0; i < 1000; i++) {
        cr_assert(tl_map_set(&m, &keys[(i * 769) % 4096], &values[i]));
    }
    cr_assert_eq(m.live, 1000);
    for (size_t i = 0; i < m.len; i++) {
        cr_assert_eq(m.entries[i].key, (const void *)&keys[(i * 769) % 4096]);
        cr_assert_eq(m.entries[i].value, (void *)&values[i]);
    }
    tl_map_fini(&m);
}

Test(map, replaces_in_place)
{
    tl_map m;

    tl_map_init(&m);
    cr_assert(tl_map_set(&m, &keys[1], &values[1]));
    cr_assert(tl_map_set(&m, &keys[2], &values[2]));
    cr_assert(tl_map_set(&m, &keys[1], &values[3]));
    cr_expect_eq(m.live, 2);
    cr_expect_eq(m.entries[0].value, (void *)&values[3]);
    tl_map_fini(&m);
}

Test(map, stored_null_is_told_from_absent)
{
    tl_map m;
    bool found;

    tl_map_init(&m);
    cr_assert(tl_map_set(&m, &keys[5], NULL));
    cr_expect_null(tl_map_get(&m, &keys[5], &found));
    cr_expect(found);
    tl_map_fini(&m);
}

Test(map, agrees_with_an_array_over_random_changes)
{
    void *model[4096] = {0};
    size_t live = 0;
    uint32_t r = 12345; /* the seed */
    tl_map m;

    tl_map_init(&m);
    for (int step = 0; step < 200000; step++) {
        size_t k;

        r = r * 1664525 + 1013904223;
        k = (r >> 8) % 512;
        if ((r >> 28) < 9) {
            live += model[k] == NULL;
            model[k] = &values[step % 4096];
            cr_assert(tl_map_set(&m, &keys[k], model[k]));
        } else {
            live -= model[k] != NULL;
            cr_assert_eq(tl_map_remove(&m, &keys[k]), model[k] != NULL);
            model[k] = NULL;
        }
        k = (r >> 16) % 512;
        cr_assert_eq(tl_map_get(&m, &keys[k], NULL), model[k]);
        cr_assert_eq(m.live, live);
    }
    cr_assert_leq(m.cap, 2048, "holes are reclaimed: %zu", m.cap);
    tl_map_fini(&m);
}

Test(map, out_of_memory_leaves_the_map_whole)
{
    for (uint64_t n = 1; n <= 2; n++) {
        int64_t before = tl_mem_live_blocks();
        tl_map m;

        tl_map_init(&m);
        for (size_t i = 0; i < 8; i++) {
            cr_assert(tl_map_set(&m, &keys[i], &values[i]));
        }
        tl_mem_fail_at(n, true);
        cr_assert_not(tl_map_set(&m, &keys[8], &values[8]));
        tl_mem_fail_at(0, false);
        cr_assert_eq(tl_map_get(&m, &keys[7], NULL), (void *)&values[7]);
        cr_assert(tl_map_set(&m, &keys[8], &values[8]));
        tl_map_fini(&m);
        cr_assert_eq(tl_mem_live_blocks(), before);
    }
}

Test(map, hash_depends_on_every_byte_and_the_length)
{
    char text[64] = {0};

    for (size_t len = 0; len < sizeof(text); len++) {
        uint64_t h = tl_hash_bytes(text, len, 0);

        cr_expect_neq(h, tl_hash_bytes(text, len + 1, 0), "len %zu", len);
        cr_expect_neq(h, tl_hash_bytes(text, len, 1));
        for (size_t i = 0; i < len; i++) {
            text[i] ^= 1;
            cr_expect_neq(h, tl_hash_bytes(text, len, 0), "%zu of %zu", i,
                          len);
            text[i] ^= 1;
        }
    }
}

Test(map, hash_spreads_over_its_low_bits)
{
    int bins[64] = {0};

    for (int i = 0; i < 64000; i++) {
        bins[tl_hash_bytes(&i, sizeof(i), 0) % 64]++;
    }
    for (int i = 0; i < 64; i++) {
        cr_expect(bins[i] > 800 && bins[i] < 1200, "bin %d: %d", i, bins[i]);
    }
}
