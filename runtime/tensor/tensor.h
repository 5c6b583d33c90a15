/* tensor.h - a tensor: dtype, shape, strides and offset over a counted
 * storage.
 *
 * Values are immutable to the program.  A kernel may write into a tensor
 * only while it is unshared: one reference to the header and one to the
 * storage (tl_tensor_unshared).  A header belongs to one thread (plain
 * count); only storages cross threads (atomic count).
 *
 * A tensor without storage is a *stub*: its type may be asked, its data not.
 * Tapes keep stubs of what a gradient does not read.
 *
 * A *lowered* tensor (TL_TENSOR_LOWERED) is f32 to the program and stored as
 * bf16 or f16, which is its `dtype`: kernels, tapes and rules see what is
 * stored, the program what is shown.  Only runtime/amp makes them. */
#ifndef TL_TENSOR_TENSOR_H
#define TL_TENSOR_TENSOR_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/base/diag.h"
#include "runtime/mem/pool.h"
#include "runtime/mem/storage.h"
#include "runtime/op/shape.h"

/* Node numbers of a tensor on the tapes that have seen it (tape.h). */
typedef struct tl_tape_link {
    uint64_t tape; /* serial number of the tape; 0: unused */
    uint32_t node;
    struct tl_tape_link *next;
} tl_tape_link;

typedef struct tl_tensor {
    int32_t refs;
    tl_dtype dtype;
    int32_t rank;
    uint32_t flags;        /* tl_tensor_flags */
    int64_t numel;         /* product of sizes */
    int64_t offset;        /* of the first element, in elements */
    union {
        tl_storage *storage;         /* NULL: a stub */
        struct tl_tensor *next_free; /* while the header is in the cache */
    };
    tl_tape_link link;     /* the first link inline */
    int64_t *size;         /* rank sizes, then rank strides (elements) */
    int64_t *stride;
    int64_t inline_dims[8]; /* room for rank <= 4 */
} tl_tensor;

enum tl_tensor_flags {
    TL_TENSOR_CONTIGUOUS = 1, /* row-major without gaps */
    /* for autocast (runtime/amp) */
    TL_TENSOR_LOWERED = 2, /* shown as f32, stored as bf16 or f16 */
    TL_TENSOR_WEIGHT = 4   /* what a parameter holds, or a view of that */
};

/* A row-major tensor with uninitialised elements.  E0607, E0307. */
TL_MUST_USE tl_status tl_tensor_new(tl_tensor **out, tl_pool *pool,
                                    tl_dtype dtype, int rank,
                                    const int64_t *size, tl_diag *diag);

/* A view of the same storage with another shape; strides in elements. */
TL_MUST_USE tl_status tl_tensor_view(tl_tensor **out, const tl_tensor *base,
                                     int rank, const int64_t *size,
                                     const int64_t *stride, int64_t offset,
                                     tl_diag *diag);

/* A row-major tensor over `storage`, which has room for it: what another
 * thread has computed comes over as its storage.  Takes the caller's
 * reference of the storage, on failure too.  E0307, E0607. */
TL_MUST_USE tl_status tl_tensor_over(tl_tensor **out, tl_storage *storage,
                                     tl_dtype dtype, int rank,
                                     const int64_t *size, tl_diag *diag);

/* A second header of the same value, without tape links (stop, leaves). */
TL_MUST_USE tl_status tl_tensor_alias(tl_tensor **out, const tl_tensor *t,
                                      tl_diag *diag);

/* A header with the type of `t` and no storage. */
TL_MUST_USE tl_status tl_tensor_stub(tl_tensor **out, const tl_tensor *t,
                                     tl_diag *diag);

/* A stub of this dtype and rank whose sizes are not known yet (all 0). */
TL_MUST_USE tl_status tl_tensor_blank(tl_tensor **out, tl_dtype dtype,
                                      int rank, tl_diag *diag);

/* Give a stub its sizes (of its rank) and fresh row-major storage.  For
 * kernels whose result size depends on data (device.h). */
TL_MUST_USE tl_status tl_tensor_realize(tl_tensor *stub, tl_pool *pool,
                                        const int64_t *size, tl_diag *diag);

/* A rank-0 tensor of `value`, converted to `dtype`. */
TL_MUST_USE tl_status tl_tensor_scalar_f(tl_tensor **out, tl_pool *pool,
                                         tl_dtype dtype, double value,
                                         tl_diag *diag);
TL_MUST_USE tl_status tl_tensor_scalar_i(tl_tensor **out, tl_pool *pool,
                                         tl_dtype dtype, int64_t value,
                                         tl_diag *diag);

tl_tensor *tl_tensor_ref(tl_tensor *t);
void tl_tensor_unref(tl_tensor *t); /* NULL is allowed */

/* Number of live headers of the calling thread; tests end at zero. */
int64_t tl_tensor_live(void);

/* Free the calling thread's cache of unused headers.  Whoever ends a thread
 * that made tensors calls it (tl_rt_fini does). */
void tl_tensor_trim(void);

/* Forget the nodes of `t`: from now on it is a constant to every tape. */
void tl_tensor_unlink(tl_tensor *t);

static inline bool tl_tensor_contiguous(const tl_tensor *t)
{
    return (t->flags & TL_TENSOR_CONTIGUOUS) != 0;
}

/* May its elements be overwritten: nobody else sees header or storage. */
bool tl_tensor_unshared(const tl_tensor *t);

/* Address of the first element; not for stubs. */
void *tl_tensor_data(const tl_tensor *t);

/* Type of `t` as it is stored, sizes as numbers. */
void tl_tensor_type(const tl_tensor *t, tl_ttype *out);

static inline bool tl_tensor_lowered(const tl_tensor *t)
{
    return (t->flags & TL_TENSOR_LOWERED) != 0;
}

/* The dtype that the program sees; the type with it. */
static inline tl_dtype tl_tensor_shown(const tl_tensor *t)
{
    return tl_tensor_lowered(t) ? TL_f32 : t->dtype;
}
void tl_tensor_shown_type(const tl_tensor *t, tl_ttype *out);

/* `t` as a value that the program sees as `shown`: itself, referenced, or a
 * lowered header on its storage.  E0607. */
TL_MUST_USE tl_status tl_tensor_show(tl_tensor **out, tl_tensor *t,
                                     tl_dtype shown, tl_diag *diag);

/* Element `index` (in row-major order) as double or int64 (floats truncate). */
double tl_tensor_get_f(const tl_tensor *t, int64_t index);
int64_t tl_tensor_get_i(const tl_tensor *t, int64_t index);

/* Write element `index` of a fresh contiguous tensor. */
void tl_tensor_set_f(tl_tensor *t, int64_t index, double value);
void tl_tensor_set_i(tl_tensor *t, int64_t index, int64_t value);

/* Copy of row-major bytes into a fresh contiguous tensor, or out of any. */
void tl_tensor_write(tl_tensor *t, const void *bytes);
void tl_tensor_read(const tl_tensor *t, void *bytes);

/* Strides of a row-major tensor of this shape, in elements. */
void tl_row_major(int rank, const int64_t *size, int64_t *stride);

#endif
