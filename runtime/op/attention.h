/* attention.h - what the rule, the parts and the kernels of sdpa share.
 *
 *   sdpa(q, k, v, mask?) -> y, lse
 *   q [.., H, T, E]  k [.., G, S, E]  v [.., G, S, D]  ->  y [.., H, T, D]
 *
 * H / G query heads in a row share a key head (rank 4 and above).  `mask`
 * broadcasts to the scores [.., H, T, S]: bool, true where a key may be seen,
 * or floats that are added.  Attributes: flag: causal, query t sees the keys
 * up to t + S - T; f[0] the scale where `keep` says that it is given, else
 * 1 / sqrt(E); f[1] the probability of dropout, its key in i[0 .. 2].
 *
 * `lse`, [.., H, T] in the type of the arithmetic, is the log of the sum of
 * exp of each row of scores; -inf where a row sees nothing. */
#ifndef TL_OP_ATTENTION_H
#define TL_OP_ATTENTION_H

#include "runtime/op/op.h"

/* Operands of sdpa_grad and sdpa_mask_grad. */
enum {
    TL_SDPA_G,
    TL_SDPA_Q,
    TL_SDPA_K,
    TL_SDPA_V,
    TL_SDPA_Y,
    TL_SDPA_LSE,
    TL_SDPA_MASK /* may be missing */
};

/* The scale of the scores, for heads of that size; 1 for size 0. */
double tl_sdpa_scale(const tl_attrs *at, int64_t size);

/* The parts of sdpa (decompose.h): `out` gets y and lse. */
TL_MUST_USE tl_status tl_decompose_sdpa(tl_emit *e, const tl_node *in,
                                        int nin, const tl_attrs *at,
                                        tl_node *out);

#endif
