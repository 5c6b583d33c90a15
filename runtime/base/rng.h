/* rng.h - Philox 4x32-10: random bits as a pure function of a key.
 *
 * Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3"
 * (SC 2011), section 4.  The key is (seed, stream, draw); the counter is the
 * index of the element's group of four.  Element i of a draw takes word i % 4
 * of block i / 4, so any part of a draw is computed alone, in any order, by
 * any number of threads. */
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

/* The four words of block `block` of the draw `key`. */
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
