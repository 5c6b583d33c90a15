/* tensor.c - headers, views and single elements of tensors.
 *
 * Headers come from a cache of the calling thread, since an operation on a
 * few elements costs little more than its header.  The cache and the count
 * of live headers are per thread because a header belongs to one thread; no
 * other state is kept.  Under AddressSanitizer nothing is cached, so that a
 * use after the last unref is seen. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "runtime/tensor/tensor.h"

#include <math.h>
#include <string.h>

#include "runtime/base/asan.h"
#include "runtime/base/check.h"
#include "runtime/base/mem.h"
#include "runtime/base/size.h"

#ifdef TL_ASAN
#define MAX_CACHED 0
#else
#define MAX_CACHED 512
#endif

#define INLINE_RANK 4

typedef struct header_cache {
    tl_tensor *free;
    int cached;
    int64_t live;
} header_cache;

/* initial-exec: no call to find the block, also inside a shared library. */
static _Thread_local header_cache cache
    __attribute__((tls_model("initial-exec")));

int64_t tl_tensor_live(void)
{
    return cache.live;
}

void tl_tensor_trim(void)
{
    while (cache.free) {
        tl_tensor *t = cache.free;

        cache.free = t->next_free;
        tl_free(t);
    }
    cache.cached = 0;
}

/* ---- headers ------------------------------------------------------------ */

/* A header with one reference, room for its dims, and nothing in them. */
static tl_status header_new(tl_tensor **out, tl_dtype dtype, int rank,
                            tl_diag *diag)
{
    tl_tensor *t = cache.free;

    TL_ASSERT(rank >= 0 && rank <= TL_MAX_RANK);
    if (t) {
        cache.free = t->next_free;
        cache.cached--;
    } else if (!(t = tl_malloc(sizeof(*t)))) {
        return tl_fail_memory(diag, "a tensor header", sizeof(*t));
    }
    t->size = t->inline_dims;
    if (rank > INLINE_RANK) {
        t->size = tl_malloc(2 * (size_t)rank * sizeof(*t->size));
        if (!t->size) {
            tl_free(t);
            return tl_fail_memory(diag, "the shape of a tensor",
                                  2 * (size_t)rank * sizeof(*t->size));
        }
    }
    t->stride = t->size + rank;
    t->refs = 1;
    t->dtype = dtype;
    t->rank = rank;
    t->flags = 0;
    t->offset = 0;
    t->storage = NULL;
    t->link.tape = 0;
    t->link.next = NULL;
    cache.live++;
    *out = t;
    return TL_OK;
}

static void header_free(tl_tensor *t)
{
    tl_tensor_unlink(t);
    if (t->size != t->inline_dims) {
        tl_free(t->size);
    }
    cache.live--;
    if (cache.cached >= MAX_CACHED) {
        tl_free(t);
        return;
    }
    t->next_free = cache.free;
    cache.free = t;
    cache.cached++;
}

void tl_tensor_unlink(tl_tensor *t)
{
    tl_tape_link *link = t->link.next;

    while (link) {
        tl_tape_link *next = link->next;

        tl_free(link);
        link = next;
    }
    t->link.tape = 0;
    t->link.next = NULL;
}

tl_tensor *tl_tensor_ref(tl_tensor *t)
{
    TL_ASSERT(t->refs > 0);
    t->refs++;
    return t;
}

void tl_tensor_unref(tl_tensor *t)
{
    if (!t) {
        return;
    }
    TL_ASSERT(t->refs > 0);
    if (--t->refs == 0) {
        if (t->storage) {
            tl_storage_unref(t->storage);
        }
        header_free(t);
    }
}

bool tl_tensor_unshared(const tl_tensor *t)
{
    return t->refs == 1 && t->storage && tl_storage_unshared(t->storage);
}

/* ---- shapes ------------------------------------------------------------- */

void tl_row_major(int rank, const int64_t *size, int64_t *stride)
{
    int64_t step = 1;

    for (int i = rank - 1; i >= 0; i--) {
        stride[i] = step;
        step *= size[i] > 0 ? size[i] : 1;
    }
}

/* Product of the sizes, each >= 0; false above TL_MAX_NUMEL. */
static bool count_elements(int rank, const int64_t *size, int64_t *out)
{
    int64_t numel = 1;
    bool empty = false;

    for (int i = 0; i < rank; i++) {
        empty = empty || size[i] == 0;
        if (size[i] > 0 && (!tl_mul_i64(&numel, numel, size[i]) ||
                            numel > TL_MAX_NUMEL)) {
            return false;
        }
    }
    *out = empty ? 0 : numel;
    return true;
}

static bool is_row_major(const tl_tensor *t)
{
    int64_t step = 1;

    if (t->numel <= 1) {
        return true;
    }
    for (int i = t->rank - 1; i >= 0; i--) {
        if (t->size[i] != 1 && t->stride[i] != step) {
            return false;
        }
        step *= t->size[i];
    }
    return true;
}

static tl_status too_large(int rank, const int64_t *size, tl_diag *diag)
{
    tl_shape shape = {.rank = rank};

    for (int i = 0; i < rank; i++) {
        shape.dim[i] = tl_dim_num(size[i]);
    }
    return tl_fail(diag, TL_E0307,
                   "a tensor of shape %s has more than 2^48 elements",
                   tl_shape_str(&shape).s);
}

/* Sizes and row-major strides of `t`. */
static tl_status set_row_major(tl_tensor *t, const int64_t *size,
                               tl_diag *diag)
{
    int64_t numel;

    if (!count_elements(t->rank, size, &numel)) {
        return too_large(t->rank, size, diag);
    }
    for (int i = 0; i < t->rank; i++) {
        t->size[i] = size[i];
    }
    tl_row_major(t->rank, size, t->stride);
    t->numel = numel;
    t->flags = TL_TENSOR_CONTIGUOUS;
    return TL_OK;
}

/* Sizes and row-major strides of `t`, and storage for them. */
static tl_status fill(tl_tensor *t, tl_pool *pool, const int64_t *size,
                      tl_diag *diag)
{
    TL_TRY(set_row_major(t, size, diag));
    return tl_storage_new(&t->storage, pool,
                          (size_t)t->numel * tl_dtype_size(t->dtype), diag);
}

tl_status tl_tensor_over(tl_tensor **out, tl_storage *storage,
                         tl_dtype dtype, int rank, const int64_t *size,
                         tl_diag *diag)
{
    tl_tensor *t = NULL;
    tl_status st = header_new(&t, dtype, rank, diag);

    if (st == TL_OK) {
        t->storage = storage;
        st = set_row_major(t, size, diag);
    } else {
        tl_storage_unref(storage);
    }
    if (st != TL_OK) {
        tl_tensor_unref(t);
        return st;
    }
    TL_ASSERT((size_t)t->numel * tl_dtype_size(dtype) <=
              tl_storage_bytes(storage));
    *out = t;
    return TL_OK;
}

tl_status tl_tensor_new(tl_tensor **out, tl_pool *pool, tl_dtype dtype,
                        int rank, const int64_t *size, tl_diag *diag)
{
    tl_tensor *t;
    tl_status st;

    TL_TRY(header_new(&t, dtype, rank, diag));
    st = fill(t, pool, size, diag);
    if (st != TL_OK) {
        t->storage = NULL;
        header_free(t);
        return st;
    }
    *out = t;
    return TL_OK;
}

tl_status tl_tensor_blank(tl_tensor **out, tl_dtype dtype, int rank,
                          tl_diag *diag)
{
    tl_tensor *t;

    TL_TRY(header_new(&t, dtype, rank, diag));
    memset(t->size, 0, 2 * (size_t)rank * sizeof(*t->size));
    t->numel = 0;
    *out = t;
    return TL_OK;
}

tl_status tl_tensor_realize(tl_tensor *stub, tl_pool *pool,
                            const int64_t *size, tl_diag *diag)
{
    TL_ASSERT(!stub->storage);
    return fill(stub, pool, size, diag);
}

tl_status tl_tensor_view(tl_tensor **out, const tl_tensor *base, int rank,
                         const int64_t *size, const int64_t *stride,
                         int64_t offset, tl_diag *diag)
{
    tl_tensor *t;
    int64_t numel;

    if (!count_elements(rank, size, &numel)) {
        return too_large(rank, size, diag);
    }
    TL_TRY(header_new(&t, base->dtype, rank, diag));
    for (int i = 0; i < rank; i++) {
        t->size[i] = size[i];
        t->stride[i] = stride[i];
    }
    t->numel = numel;
    t->offset = offset;
    t->flags = is_row_major(t) ? TL_TENSOR_CONTIGUOUS : 0;
    t->storage = base->storage ? tl_storage_ref(base->storage) : NULL;
    *out = t;
    return TL_OK;
}

/* A header with type, sizes and strides of `t`. */
static tl_status header_copy(tl_tensor **out, const tl_tensor *t,
                             tl_diag *diag)
{
    tl_tensor *c;

    TL_TRY(header_new(&c, t->dtype, t->rank, diag));
    memcpy(c->size, t->size, 2 * (size_t)t->rank * sizeof(*t->size));
    c->numel = t->numel;
    c->flags = t->flags & (TL_TENSOR_CONTIGUOUS | TL_TENSOR_LOWERED);
    c->offset = t->offset;
    *out = c;
    return TL_OK;
}

tl_status tl_tensor_alias(tl_tensor **out, const tl_tensor *t, tl_diag *diag)
{
    tl_tensor *c;

    TL_TRY(header_copy(&c, t, diag));
    c->storage = t->storage ? tl_storage_ref(t->storage) : NULL;
    *out = c;
    return TL_OK;
}

tl_status tl_tensor_stub(tl_tensor **out, const tl_tensor *t, tl_diag *diag)
{
    return header_copy(out, t, diag);
}

void tl_tensor_type(const tl_tensor *t, tl_ttype *out)
{
    out->dtype = t->dtype;
    out->shape.rank = t->rank;
    for (int i = 0; i < t->rank; i++) {
        out->shape.dim[i] = tl_dim_num(t->size[i]);
    }
}

void tl_tensor_shown_type(const tl_tensor *t, tl_ttype *out)
{
    tl_tensor_type(t, out);
    out->dtype = tl_tensor_shown(t);
}

tl_status tl_tensor_show(tl_tensor **out, tl_tensor *t, tl_dtype shown,
                         tl_diag *diag)
{
    if (tl_tensor_shown(t) == shown) {
        *out = tl_tensor_ref(t);
        return TL_OK;
    }
    TL_TRY(tl_tensor_alias(out, t, diag));
    (*out)->flags &= TL_TENSOR_CONTIGUOUS;
    if (shown != t->dtype) {
        (*out)->flags |= TL_TENSOR_LOWERED;
    }
    return TL_OK;
}

/* ---- elements ----------------------------------------------------------- */

void *tl_tensor_data(const tl_tensor *t)
{
    TL_ASSERT(t->storage);
    return (char *)tl_storage_data(t->storage) +
           (size_t)t->offset * tl_dtype_size(t->dtype);
}

/* Address of row-major element `index`. */
static void *element(const tl_tensor *t, int64_t index)
{
    int64_t at = 0;

    TL_ASSERT(index >= 0 && index < t->numel);
    if (tl_tensor_contiguous(t)) {
        at = index;
    } else {
        for (int i = t->rank - 1; i >= 0; i--) {
            at += index % t->size[i] * t->stride[i];
            index /= t->size[i];
        }
    }
    return (char *)tl_tensor_data(t) + at * (int64_t)tl_dtype_size(t->dtype);
}

double tl_tensor_get_f(const tl_tensor *t, int64_t index)
{
    const void *p = element(t, index);

    switch (t->dtype) {
    case TL_bf16:
        return (double)tl_bf16_to_f32(*(const uint16_t *)p);
    case TL_f16:
        return (double)tl_f16_to_f32(*(const uint16_t *)p);
    case TL_f32:
        return (double)*(const float *)p;
    case TL_f64:
        return *(const double *)p;
    default:
        return (double)tl_tensor_get_i(t, index);
    }
}

/* Truncation that is defined for every double. */
static int64_t truncate_f64(double v)
{
    if (isnan(v)) {
        return 0;
    }
    if (v >= 0x1p63) {
        return INT64_MAX;
    }
    return v < -0x1p63 ? INT64_MIN : (int64_t)v;
}

int64_t tl_tensor_get_i(const tl_tensor *t, int64_t index)
{
    const void *p = element(t, index);

    switch (t->dtype) {
    case TL_bool:
    case TL_u8:
        return *(const uint8_t *)p;
    case TL_i8:
        return *(const int8_t *)p;
    case TL_i16:
        return *(const int16_t *)p;
    case TL_i32:
        return *(const int32_t *)p;
    case TL_i64:
        return *(const int64_t *)p;
    default:
        return truncate_f64(tl_tensor_get_f(t, index));
    }
}

/* Nearest float whose last bit is odd unless it is exact: rounding it again
 * to 16 bits gives what rounding `v` once would (Boldo, Melquiond 2008). */
static float round_to_odd(double v)
{
    float f = (float)v;
    uint32_t bits;

    if ((double)f == v || isnan(v) || isinf(v)) {
        return f;
    }
    memcpy(&bits, &f, sizeof(bits));
    if (fabs((double)f) > fabs(v)) {
        bits--;
    }
    bits |= 1;
    memcpy(&f, &bits, sizeof(f));
    return f;
}

void tl_tensor_set_f(tl_tensor *t, int64_t index, double value)
{
    void *p = element(t, index);

    switch (t->dtype) {
    case TL_bool:
        *(uint8_t *)p = value != 0;
        break;
    case TL_bf16:
        *(uint16_t *)p = tl_f32_to_bf16(round_to_odd(value));
        break;
    case TL_f16:
        *(uint16_t *)p = tl_f32_to_f16(round_to_odd(value));
        break;
    case TL_f32:
        *(float *)p = (float)value;
        break;
    case TL_f64:
        *(double *)p = value;
        break;
    default:
        tl_tensor_set_i(t, index, truncate_f64(value));
    }
}

void tl_tensor_set_i(tl_tensor *t, int64_t index, int64_t value)
{
    void *p = element(t, index);

    switch (t->dtype) { /* integers wrap */
    case TL_bool:
        *(uint8_t *)p = value != 0;
        break;
    case TL_u8:
    case TL_i8:
        *(uint8_t *)p = (uint8_t)value;
        break;
    case TL_i16:
        *(uint16_t *)p = (uint16_t)value;
        break;
    case TL_i32:
        *(uint32_t *)p = (uint32_t)value;
        break;
    case TL_i64:
        *(int64_t *)p = value;
        break;
    default:
        tl_tensor_set_f(t, index, (double)value);
    }
}

tl_status tl_tensor_scalar_f(tl_tensor **out, tl_pool *pool, tl_dtype dtype,
                             double value, tl_diag *diag)
{
    tl_tensor *t;

    TL_TRY(tl_tensor_new(&t, pool, dtype, 0, NULL, diag));
    tl_tensor_set_f(t, 0, value);
    *out = t;
    return TL_OK;
}

tl_status tl_tensor_scalar_i(tl_tensor **out, tl_pool *pool, tl_dtype dtype,
                             int64_t value, tl_diag *diag)
{
    tl_tensor *t;

    TL_TRY(tl_tensor_new(&t, pool, dtype, 0, NULL, diag));
    tl_tensor_set_i(t, 0, value);
    *out = t;
    return TL_OK;
}

void tl_tensor_write(tl_tensor *t, const void *bytes)
{
    TL_ASSERT(tl_tensor_contiguous(t));
    if (t->numel > 0) {
        memcpy(tl_tensor_data(t), bytes,
               (size_t)t->numel * tl_dtype_size(t->dtype));
    }
}

void tl_tensor_read(const tl_tensor *t, void *bytes)
{
    size_t size = tl_dtype_size(t->dtype);

    if (t->numel > 0 && tl_tensor_contiguous(t)) {
        memcpy(bytes, tl_tensor_data(t), (size_t)t->numel * size);
        return;
    }
    for (int64_t i = 0; i < t->numel; i++) {
        memcpy((char *)bytes + (size_t)i * size, element(t, i), size);
    }
}
