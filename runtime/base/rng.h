/* rng.h - Philox 4x32-10: random bits as a pure function of a key.
 *
 * Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3"
 * (SC 2011), section 4.  Element i of a draw takes word i % 4 of block i / 4,
 * so any part of a draw is computed alone, in any order, by any number of
 * threads.
 *
 * (seed, draw, stream, sub, block) has 256 bits, Philox takes 64 of key and
 * 128 of counter.  So a draw has a lane, found by one Philox block:
 *
 *     lane  = philox(key = seed lo, hi; counter = draw lo, hi, stream, sub)
 *     words = philox(key = lane[0], lane[1];
 *                    counter = block lo, hi, lane[2], lane[3])
 *
 * Under one seed Philox permutes its counters, so two draws that differ in
 * draw, stream or sub have different lanes, and never the same key and
 * counter, whatever their blocks.  Lanes of different seeds agree only by
 * chance, one in 2^128.  The lane is computed once a draw (25 ns), where the
 * draw counter lies: a GPU kernel or a compiled region does it itself. */
#ifndef TL_BASE_RNG_H
#define TL_BASE_RNG_H

#include <stdint.h>

/* Streams of LANGUAGE.md 6. */
typedef enum tl_stream {
    TL_STREAM_INIT = 0, /* initialisers, by cell */
    TL_STREAM_DATA = 1, /* shuffling and augmentation, by epoch and sample */
    TL_STREAM_DRAW = 2  /* all else: one counter in program order */
} tl_stream;

/* What a draw is keyed by. */
typedef struct tl_rng_key {
    uint64_t seed;
    uint64_t draw; /* draw counter, or key of a cell */
    uint32_t stream;
    uint32_t sub; /* counter inside a cell's initialiser; 0 elsewhere */
} tl_rng_key;

/* The key of one draw, ready for use. */
typedef struct tl_rng_lane {
    uint32_t key[2];  /* of Philox */
    uint32_t high[2]; /* the upper half of its counter */
} tl_rng_lane;

/* The ten rounds: `c` is the counter going in and the words coming out. */
static inline void tl_philox_rounds(uint32_t c[4], uint32_t k0, uint32_t k1)
{
    for (int round = 0; round < 10; round++) {
        uint64_t p0 = (uint64_t)0xD2511F53u * c[0];
        uint64_t p1 = (uint64_t)0xCD9E8D57u * c[2];

        c[0] = (uint32_t)(p1 >> 32) ^ c[1] ^ k0;
        c[2] = (uint32_t)(p0 >> 32) ^ c[3] ^ k1;
        c[1] = (uint32_t)p1;
        c[3] = (uint32_t)p0;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
}

/* The lane of a draw: one Philox block, keyed by the seed. */
tl_rng_lane tl_rng_start(const tl_rng_key *key);

/* The four words of block `block` of a lane. */
static inline void tl_rng_block(uint32_t out[4], const tl_rng_lane *lane,
                                uint64_t block)
{
    out[0] = (uint32_t)block;
    out[1] = (uint32_t)(block >> 32);
    out[2] = lane->high[0];
    out[3] = lane->high[1];
    tl_philox_rounds(out, lane->key[0], lane->key[1]);
}

/* Blocks block .. block + nblocks - 1, 4 * nblocks words.  Kernels that are
 * compiled for a better instruction set use rng_wide.h themselves. */
void tl_rng_fill(uint32_t *out, const tl_rng_lane *lane, uint64_t block,
                 int64_t nblocks);

/* The four words of block `block` of the draw `key`: tl_rng_start and
 * tl_rng_block, for one block only. */
void tl_philox(uint32_t out[4], const tl_rng_key *key, uint64_t block);

/* Uniform in [0, 1) with 24 bits, from one word. */
static inline float tl_uniform_f32(uint32_t word)
{
    return (float)(word >> 8) * 0x1p-24f;
}

/* Uniform in [0, 1) with 53 bits, from two words. */
static inline double tl_uniform_f64(uint32_t hi, uint32_t lo)
{
    uint64_t w = ((uint64_t)hi << 32) | lo;

    return (double)(w >> 11) * 0x1p-53;
}

#endif
