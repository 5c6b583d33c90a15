/* update.h - rows of an optimiser's update, in float and in double. */
#ifndef TL_CPU_UPDATE_H
#define TL_CPU_UPDATE_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/cpu/isa.h"

/* Numbers of one step, as op/update.c names them; corrections are done. */
typedef struct tl_update_consts {
    double lr, decay, momentum; /* momentum is beta1 of Adam */
    double beta2, eps;
    double step;      /* lr / (1 - beta1^t) */
    double root;      /* sqrt(1 - beta2^t) */
    bool nesterov;
    bool decoupled;   /* AdamW */
} tl_update_consts;

/* Contiguous rows of n elements; results may be the inputs themselves.
 * `g` is const, m and v may be NULL where the rule has none. */
typedef struct tl_update_rows {
    const void *p, *g, *m, *v;
    void *p_out, *m_out, *v_out;
} tl_update_rows;

typedef void tl_update_fn(int64_t n, const tl_update_rows *r,
                          const tl_update_consts *c);

typedef enum tl_update_rule {
    TL_UPDATE_SGD,
    TL_UPDATE_MOMENTUM,
    TL_UPDATE_ADAM,
    TL_UPDATE_RULES
} tl_update_rule;

/* [rule][0: float, 1: double] */
extern tl_update_fn *const tl_update_table[TL_UPDATE_RULES][2];
extern tl_update_fn *const tl_update_table_avx2[TL_UPDATE_RULES][2];

#endif
