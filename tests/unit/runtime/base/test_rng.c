/* test_rng.c - Philox against its published vectors, and the keys. */
#include <criterion/criterion.h>

#include <stdlib.h>
#include <string.h>

#include "runtime/base/rng.h"

typedef struct vector {
    uint32_t counter[4], key[2], out[4];
} vector;

/* kat_vectors of the authors' Random123. */
static const vector known[] = {
    {{0, 0, 0, 0},
     {0, 0},
     {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
    {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
     {0xffffffff, 0xffffffff},
     {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
    {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
     {0xa4093822, 0x299f31d0},
     {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
};

Test(rng, published_vectors)
{
    for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++) {
        uint32_t c[4];

        memcpy(c, known[i].counter, sizeof(c));
        tl_philox_rounds(c, known[i].key[0], known[i].key[1]);
        cr_expect_arr_eq(c, known[i].out, sizeof(c), "vector %zu", i);
    }
}

Test(rng, lane_is_the_block_of_the_seed)
{
    tl_rng_key key = {.seed = 0x299f31d0a4093822,
                      .draw = 0x85a308d3243f6a88,
                      .stream = 0x13198a2e,
                      .sub = 0x03707344};
    tl_rng_lane lane = tl_rng_start(&key);

    cr_expect_eq(lane.key[0], 0xd16cfe09);
    cr_expect_eq(lane.key[1], 0x94fdcceb);
    cr_expect_eq(lane.high[0], 0x5001e420);
    cr_expect_eq(lane.high[1], 0x24126ea1);
}

Test(rng, block_fills_the_low_half_of_the_counter)
{
    tl_rng_lane lane = {{0xa4093822, 0x299f31d0}, {0x13198a2e, 0x03707344}};
    uint32_t out[4];

    tl_rng_block(out, &lane, 0x85a308d3243f6a88);
    cr_expect_arr_eq(out, known[2].out, sizeof(out));
}

Test(rng, fill_equals_single_blocks_at_any_start)
{
    tl_rng_key key = {.seed = 7, .draw = 3, .stream = TL_STREAM_DRAW};
    tl_rng_lane lane = tl_rng_start(&key);
    uint32_t all[4 * 100], one[4];

    tl_rng_fill(all, &lane, 0xfffffffa, 100); /* crosses 32 bits */
    for (uint64_t i = 0; i < 100; i++) {
        tl_philox(one, &key, 0xfffffffa + i);
        cr_assert_arr_eq(all + 4 * i, one, sizeof(one));
    }
}

static int compare_lanes(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(tl_rng_lane));
}

Test(rng, draws_streams_and_subs_of_a_seed_have_distinct_lanes)
{
    static tl_rng_lane lanes[3 * 64 * 64];
    size_t n = 0;

    for (uint32_t stream = 0; stream < 3; stream++) {
        for (uint64_t draw = 0; draw < 64; draw++) {
            for (uint32_t sub = 0; sub < 64; sub++) {
                tl_rng_key key = {42, draw << 29, stream, sub};

                lanes[n++] = tl_rng_start(&key);
            }
        }
    }
    qsort(lanes, n, sizeof(*lanes), compare_lanes);
    for (size_t i = 1; i < n; i++) {
        cr_assert_neq(compare_lanes(&lanes[i - 1], &lanes[i]), 0);
    }
}

Test(rng, seeds_differ)
{
    tl_rng_key a = {.seed = 1}, b = {.seed = (uint64_t)1 << 32};
    uint32_t x[4], y[4];

    tl_philox(x, &a, 0);
    tl_philox(y, &b, 0);
    cr_assert_arr_neq(x, y, sizeof(x));
}

Test(rng, uniform_stays_below_one)
{
    cr_expect_eq(tl_uniform_f32(0), 0.0f);
    cr_expect_lt(tl_uniform_f32(UINT32_MAX), 1.0f);
    cr_expect_eq(tl_uniform_f32(0x80000000), 0.5f);
    cr_expect_eq(tl_uniform_f64(0, 0), 0.0);
    cr_expect_lt(tl_uniform_f64(UINT32_MAX, UINT32_MAX), 1.0);
    cr_expect_eq(tl_uniform_f64(0x80000000, 0), 0.5);
}

Test(rng, uniform_fills_its_bins)
{
    tl_rng_key key = {.seed = 2024};
    tl_rng_lane lane = tl_rng_start(&key);
    static uint32_t words[4 * 16384];
    int bins[64] = {0};
    double chi2 = 0;

    tl_rng_fill(words, &lane, 0, 16384);
    for (int i = 0; i < 65536; i++) {
        bins[(int)(tl_uniform_f32(words[i]) * 64)]++;
    }
    for (int i = 0; i < 64; i++) {
        chi2 += (bins[i] - 1024.0) * (bins[i] - 1024.0) / 1024.0;
    }
    /* 63 degrees of freedom: 1 % below 39.9, 1 % above 92.0 */
    cr_assert(chi2 > 39.9 && chi2 < 92.0, "chi2 %.1f", chi2);
}
