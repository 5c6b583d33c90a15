/* vec.h - growing an array by doubling.
 *
 *     struct { node **items; size_t len, cap; } v = {0};
 *     TL_TRY(TL_VEC_PUSH(&v, n, diag));
 *
 * The macro grows `items`; tl_free(v.items) releases it. */
#ifndef TL_BASE_VEC_H
#define TL_BASE_VEC_H

#include <stddef.h>

#include "runtime/base/diag.h"

/* Make room for one more element of `size` bytes; *items may move. */
TL_MUST_USE tl_status tl_vec_grow(void **items, size_t len, size_t *cap,
                                  size_t size, tl_diag *diag);

#define TL_VEC_PUSH(v, value, diag)                                          \
    (((v)->len < (v)->cap ||                                                 \
      tl_vec_grow((void **)&(v)->items, (v)->len, &(v)->cap,                 \
                  sizeof(*(v)->items), (diag)) == TL_OK)                     \
         ? ((v)->items[(v)->len++] = (value), TL_OK)                         \
         : TL_ERR_MEMORY)

#endif
