/* key.h - the Philox key of a random operation inside its attributes.
 *
 * Fields i[1] .. i[3] carry (seed, draw, stream and sub), so that a draw is
 * part of the operation and a tape can run it again with the same bits. */
#ifndef TL_TENSOR_KEY_H
#define TL_TENSOR_KEY_H

#include "runtime/base/rng.h"
#include "runtime/op/shape.h"

static inline void tl_attrs_set_key(tl_attrs *at, const tl_rng_key *key)
{
    at->i[1] = (int64_t)key->seed;
    at->i[2] = (int64_t)key->draw;
    at->i[3] = (int64_t)(((uint64_t)key->stream << 32) | key->sub);
}

static inline tl_rng_key tl_attrs_get_key(const tl_attrs *at)
{
    return (tl_rng_key){.seed = (uint64_t)at->i[1],
                        .draw = (uint64_t)at->i[2],
                        .stream = (uint32_t)((uint64_t)at->i[3] >> 32),
                        .sub = (uint32_t)((uint64_t)at->i[3] & 0xffffffffu)};
}

#endif
