/* size.h - checked arithmetic on sizes, the only place that does it.
 *
 * Shapes, strides, offsets, padding and allocator rounding all go through
 * these.  Each returns false on overflow and then leaves *out alone. */
#ifndef TL_BASE_SIZE_H
#define TL_BASE_SIZE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Most elements of one tensor: 2^48. */
#define TL_MAX_NUMEL ((int64_t)1 << 48)

static inline bool tl_mul_size(size_t *out, size_t a, size_t b)
{
    size_t r;

    if (__builtin_mul_overflow(a, b, &r) || r > PTRDIFF_MAX) {
        return false;
    }
    *out = r;
    return true;
}

static inline bool tl_add_size(size_t *out, size_t a, size_t b)
{
    size_t r;

    if (__builtin_add_overflow(a, b, &r) || r > PTRDIFF_MAX) {
        return false;
    }
    *out = r;
    return true;
}

static inline bool tl_mul_i64(int64_t *out, int64_t a, int64_t b)
{
    int64_t r;

    if (__builtin_mul_overflow(a, b, &r)) {
        return false;
    }
    *out = r;
    return true;
}

static inline bool tl_add_i64(int64_t *out, int64_t a, int64_t b)
{
    int64_t r;

    if (__builtin_add_overflow(a, b, &r)) {
        return false;
    }
    *out = r;
    return true;
}

static inline bool tl_sub_i64(int64_t *out, int64_t a, int64_t b)
{
    int64_t r;

    if (__builtin_sub_overflow(a, b, &r)) {
        return false;
    }
    *out = r;
    return true;
}

/* a / b and a % b rounded towards minus infinity; b is not 0, and not
 * (a = INT64_MIN, b = -1). */
static inline int64_t tl_floor_div(int64_t a, int64_t b)
{
    int64_t q = a / b;

    return (a % b != 0 && (a < 0) != (b < 0)) ? q - 1 : q;
}

static inline int64_t tl_floor_mod(int64_t a, int64_t b)
{
    int64_t r = a % b;

    return (r != 0 && (r < 0) != (b < 0)) ? r + b : r;
}

/* A size for people: "512 bytes", "1.5 MiB", "2.0 GiB". */
typedef struct tl_bytes_text {
    char s[24];
} tl_bytes_text;
tl_bytes_text tl_bytes_str(size_t bytes);

#endif
