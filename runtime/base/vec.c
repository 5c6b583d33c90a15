/* vec.c - doubling of arrays. */
#include "runtime/base/vec.h"

#include "runtime/base/mem.h"
#include "runtime/base/size.h"

tl_status tl_vec_grow(void **items, size_t len, size_t *cap, size_t size,
                      tl_diag *diag)
{
    size_t new_cap, bytes;
    void *p;

    if (len < *cap) {
        return TL_OK;
    }
    if (!tl_mul_size(&new_cap, *cap ? *cap : 4, 2) ||
        !tl_mul_size(&bytes, new_cap, size)) {
        return tl_fail_memory(diag, "array", SIZE_MAX);
    }
    p = tl_realloc(*items, bytes);
    if (!p) {
        return tl_fail_memory(diag, "array", bytes);
    }
    *items = p;
    *cap = new_cap;
    return TL_OK;
}
