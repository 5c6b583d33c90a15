/* rng_wide.h - several blocks of Philox side by side, for kernels.
 *
 * The words are those of tl_rng_block.  A 64-bit lane holds one counter word
 * of one block: the vector multiplication reads the low halves alone, so the
 * high halves may hold anything.  A word takes 0.7 ns with AVX2 and 1.5 ns
 * with SSE2, where tl_rng_block takes 1.4 to 3.9 (AMD EPYC, gcc 12, -O3 and
 * -O2). */
#ifndef TL_BASE_RNG_WIDE_H
#define TL_BASE_RNG_WIDE_H

#include "runtime/base/rng.h"

#if defined(__AVX2__)
#include <immintrin.h>

enum {
    TL_RNG_LANES = 4
};
typedef __m256i tl_rng_vec;

#define TL_RNG_MUL(a, b) _mm256_mul_epu32((a), (b))
#define TL_RNG_XOR(a, b) _mm256_xor_si256((a), (b))
#define TL_RNG_HIGH(a) _mm256_srli_epi64((a), 32)
#define TL_RNG_SET(x) _mm256_set1_epi64x((long long)(x))

/* block, block + 1, ... */
static inline tl_rng_vec tl_rng_count(uint64_t block)
{
    return _mm256_add_epi64(TL_RNG_SET(block), _mm256_set_epi64x(3, 2, 1, 0));
}

/* The words of the blocks, from their four counter words. */
static inline void tl_rng_store(uint32_t *out, const tl_rng_vec c[4])
{
    tl_rng_vec a = _mm256_blend_epi32(c[0], _mm256_slli_epi64(c[1], 32), 0xaa);
    tl_rng_vec b = _mm256_blend_epi32(c[2], _mm256_slli_epi64(c[3], 32), 0xaa);
    tl_rng_vec even = _mm256_unpacklo_epi64(a, b);
    tl_rng_vec odd = _mm256_unpackhi_epi64(a, b);

    _mm256_storeu_si256((__m256i *)(void *)out,
                        _mm256_permute2x128_si256(even, odd, 0x20));
    _mm256_storeu_si256((__m256i *)(void *)(out + 8),
                        _mm256_permute2x128_si256(even, odd, 0x31));
}
#elif defined(__SSE2__)
#include <emmintrin.h>

enum {
    TL_RNG_LANES = 2
};
typedef __m128i tl_rng_vec;

#define TL_RNG_MUL(a, b) _mm_mul_epu32((a), (b))
#define TL_RNG_XOR(a, b) _mm_xor_si128((a), (b))
#define TL_RNG_HIGH(a) _mm_srli_epi64((a), 32)
#define TL_RNG_SET(x) _mm_set1_epi64x((long long)(x))

static inline tl_rng_vec tl_rng_count(uint64_t block)
{
    return _mm_add_epi64(TL_RNG_SET(block), _mm_set_epi64x(1, 0));
}

static inline void tl_rng_store(uint32_t *out, const tl_rng_vec c[4])
{
    const tl_rng_vec low = TL_RNG_SET(0xffffffff);
    tl_rng_vec a = _mm_or_si128(_mm_and_si128(c[0], low),
                                _mm_slli_epi64(c[1], 32));
    tl_rng_vec b = _mm_or_si128(_mm_and_si128(c[2], low),
                                _mm_slli_epi64(c[3], 32));

    _mm_storeu_si128((__m128i *)(void *)out, _mm_unpacklo_epi64(a, b));
    _mm_storeu_si128((__m128i *)(void *)(out + 4), _mm_unpackhi_epi64(a, b));
}
#endif

enum {
    TL_RNG_WIDE = 8 /* blocks of one call */
};

/* Blocks block .. block + 7, 32 words. */
#ifdef TL_RNG_MUL
enum {
    TL_RNG_VECS = TL_RNG_WIDE / TL_RNG_LANES
};

static inline void tl_rng_wide(uint32_t out[4 * TL_RNG_WIDE],
                               const tl_rng_lane *lane, uint64_t block)
{
    const tl_rng_vec m0 = TL_RNG_SET(0xD2511F53u);
    const tl_rng_vec m1 = TL_RNG_SET(0xCD9E8D57u);
    tl_rng_vec c[TL_RNG_VECS][4];
    uint32_t k0 = lane->key[0], k1 = lane->key[1];

    for (int i = 0; i < TL_RNG_VECS; i++) {
        c[i][0] = tl_rng_count(block + (uint64_t)(i * TL_RNG_LANES));
        c[i][1] = TL_RNG_HIGH(c[i][0]);
        c[i][2] = TL_RNG_SET(lane->high[0]);
        c[i][3] = TL_RNG_SET(lane->high[1]);
    }
    for (int round = 0; round < 10; round++) {
        const tl_rng_vec key0 = TL_RNG_SET(k0), key1 = TL_RNG_SET(k1);

        for (int i = 0; i < TL_RNG_VECS; i++) {
            tl_rng_vec p0 = TL_RNG_MUL(c[i][0], m0);
            tl_rng_vec p1 = TL_RNG_MUL(c[i][2], m1);

            c[i][0] = TL_RNG_XOR(TL_RNG_XOR(TL_RNG_HIGH(p1), c[i][1]), key0);
            c[i][2] = TL_RNG_XOR(TL_RNG_XOR(TL_RNG_HIGH(p0), c[i][3]), key1);
            c[i][1] = p1;
            c[i][3] = p0;
        }
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    for (int i = 0; i < TL_RNG_VECS; i++) {
        tl_rng_store(out + i * 4 * TL_RNG_LANES, c[i]);
    }
}
#else
static inline void tl_rng_wide(uint32_t out[4 * TL_RNG_WIDE],
                               const tl_rng_lane *lane, uint64_t block)
{
    for (int i = 0; i < TL_RNG_WIDE; i++) {
        tl_rng_block(out + 4 * i, lane, block + (uint64_t)i);
    }
}
#endif

#endif
