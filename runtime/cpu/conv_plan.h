/* conv_plan.h - how oneDNN computes one convolution: its parts, primitives
 * and layouts, kept by shape.
 *
 * A convolution is cut into parts by its shape alone, so that its bits do not
 * depend on the number of threads: `images` images and one of `cuts` equal
 * ranges of channels a part, each one call of a single-threaded primitive in
 * the library's blocked layout.  Cut are output channels; backward data: input
 * channels.  Backward weights adds its parts over images, in their order, in
 * `sums` separate sums, which are then added in order. */
#ifndef TL_CPU_CONV_PLAN_H
#define TL_CPU_CONV_PLAN_H

#include "runtime/cpu/conv.h"
#include "runtime/cpu/onednn.h"

#ifdef TL_HAVE_ONEDNN_CONV

enum tl_conv_role { TL_CONV_X, TL_CONV_W, TL_CONV_Y, TL_CONV_ROLES };

/* One of the tensors of a part. */
typedef struct tl_conv_operand {
    dnnl_memory_desc_t plain;   /* as it lies in the tensor */
    dnnl_memory_desc_t blocked; /* as the primitive wants it */
    dnnl_primitive_t reorder;   /* from one to the other; NULL: they agree */
    size_t bytes;               /* of a blocked one, whole cache lines */
    size_t by_image, by_cut;    /* bytes between parts in the tensor */
} tl_conv_operand;

typedef struct tl_conv_plan {
    tl_conv_kind kind;
    tl_conv_geo geo;
    bool usable; /* false: oneDNN has nothing good for it */
    dnnl_engine_t engine;
    dnnl_primitive_t conv;
    size_t scratch; /* bytes that a running primitive needs */
    tl_conv_operand of[TL_CONV_ROLES];
    int64_t images, parts; /* of a part; parts of the batch */
    int64_t cuts, sums;
    int users; /* guarded by the cache */
} tl_conv_plan;

/* The plan of a convolution of f32, made when it is first asked for.  Borrowed
 * until tl_conv_plan_put.  Safe from any thread. */
TL_MUST_USE tl_status tl_conv_plan_get(tl_kernel_ctx *k, const tl_conv *c,
                                       tl_conv_plan **out);
void tl_conv_plan_put(tl_kernel_ctx *k, tl_conv_plan *p);

static inline enum tl_conv_role tl_conv_result(tl_conv_kind kind)
{
    return kind == TL_CONV_FORWARD ? TL_CONV_Y
           : kind == TL_CONV_DATA  ? TL_CONV_X
                                   : TL_CONV_W;
}

#endif
#endif
