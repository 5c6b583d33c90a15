/* random.h - the random numbers of the generator: splitmix64 (Steele, Lea,
 * Flood 2014), a function of the seed and the program's number alone. */
#ifndef TESTS_COMPILE_RANDOM_H
#define TESTS_COMPILE_RANDOM_H

#include <stdbool.h>
#include <stdint.h>

typedef struct rng {
    uint64_t state;
} rng;

static inline uint64_t rng_next(rng *r)
{
    uint64_t z = r->state += 0x9e3779b97f4a7c15u;

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* 0 .. n - 1 */
static inline int rng_below(rng *r, int n)
{
    return (int)(rng_next(r) % (uint64_t)n);
}

/* lo .. hi */
static inline int rng_range(rng *r, int lo, int hi)
{
    return lo + rng_below(r, hi - lo + 1);
}

/* True in `percent` of a hundred cases. */
static inline bool rng_chance(rng *r, int percent)
{
    return rng_below(r, 100) < percent;
}

#endif
