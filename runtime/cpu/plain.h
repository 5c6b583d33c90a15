/* plain.h - operands of a kernel as row-major numbers of its arithmetic: f64
 * as doubles, f32, f16 and bf16 as floats.  What has to be copied for that,
 * and other scratch, belongs to a tl_plain and lives until it is closed. */
#ifndef TL_CPU_PLAIN_H
#define TL_CPU_PLAIN_H

#include "runtime/cpu/kern.h"

enum {
    TL_PLAIN_MAX = 16
};

typedef struct tl_plain {
    tl_kernel_ctx *k;
    tl_storage *own[TL_PLAIN_MAX];
    int n;
} tl_plain;

static inline void tl_plain_open(tl_plain *p, tl_kernel_ctx *k)
{
    *p = (tl_plain){.k = k};
}

void tl_plain_close(tl_plain *p);

/* `count` elements of `width` bytes; at most TL_PLAIN_MAX of these and of the
 * following. */
TL_MUST_USE tl_status tl_plain_scratch(tl_plain *p, int64_t count,
                                       size_t width, void **out);

/* The elements of `t`. */
TL_MUST_USE tl_status tl_plain_in(tl_plain *p, const tl_tensor *t,
                                  const void **out);

/* Elements of `t`, always in memory of their own. */
TL_MUST_USE tl_status tl_plain_copy(tl_plain *p, const tl_tensor *t,
                                    void **out);

/* Where a row-major result is computed; tl_plain_round puts it into `t`. */
TL_MUST_USE tl_status tl_plain_out(tl_plain *p, const tl_tensor *t,
                                   void **out);
void tl_plain_round(tl_plain *p, tl_tensor *t, const void *from);

/* A result that was computed elsewhere in any case. */
void tl_plain_put(tl_plain *p, tl_tensor *t, const void *from);

#endif
