/* indices.h - index tensors as checked numbers. */
#ifndef TL_CPU_INDICES_H
#define TL_CPU_INDICES_H

#include "runtime/cpu/kern.h"

/* What an index tensor means to its kernel. */
typedef struct tl_index_rule {
    int64_t bound;    /* valid: 0 .. bound - 1 */
    bool wrap;        /* -bound .. -1 count from the end */
    tl_code code;     /* E0405, E0406 */
    const char *what; /* "index", "id" */
} tl_index_rule;

/* Row-major numbers of `t`, every one within the rule; a new storage.
 * Reports the first element that breaks it. */
TL_MUST_USE tl_status tl_cpu_indices(tl_kernel_ctx *k, const tl_tensor *t,
                                     const tl_index_rule *rule,
                                     tl_storage **out);

#endif
