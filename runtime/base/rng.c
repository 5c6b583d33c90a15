/* rng.c - Philox 4x32-10. */
#include "runtime/base/rng.h"

#include "runtime/base/rng_wide.h"

tl_rng_lane tl_rng_start(const tl_rng_key *key)
{
    uint32_t out[4] = {(uint32_t)key->draw, (uint32_t)(key->draw >> 32),
                       key->stream, key->sub};

    tl_philox_rounds(out, (uint32_t)key->seed, (uint32_t)(key->seed >> 32));
    return (tl_rng_lane){{out[0], out[1]}, {out[2], out[3]}};
}

void tl_philox(uint32_t out[4], const tl_rng_key *key, uint64_t block)
{
    tl_rng_lane lane = tl_rng_start(key);

    tl_rng_block(out, &lane, block);
}

void tl_rng_fill(uint32_t *out, const tl_rng_lane *lane, uint64_t block,
                 int64_t nblocks)
{
    int64_t i = 0;

    for (; i + TL_RNG_WIDE <= nblocks; i += TL_RNG_WIDE) {
        tl_rng_wide(out + 4 * i, lane, block + (uint64_t)i);
    }
    for (; i < nblocks; i++) {
        tl_rng_block(out + 4 * i, lane, block + (uint64_t)i);
    }
}
