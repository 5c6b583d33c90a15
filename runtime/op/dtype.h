/* dtype.h - element types, their sizes and how they join. */
#ifndef TL_OP_DTYPE_H
#define TL_OP_DTYPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef enum tl_dtype {
#define DTYPE(name, mem, arith, bytes, kind, st_name) TL_##name,
#include "runtime/op/dtype.def"
    TL_DTYPE_COUNT
} tl_dtype;

typedef enum tl_kind {
    TL_KIND_BOOL,
    TL_KIND_INT,
    TL_KIND_FLOAT
} tl_kind;

const char *tl_dtype_name(tl_dtype dtype);             /* "f32" */
const char *tl_dtype_safetensors_name(tl_dtype dtype); /* "F32" */
size_t tl_dtype_size(tl_dtype dtype);
tl_kind tl_dtype_kind(tl_dtype dtype);
static inline bool tl_dtype_is_float(tl_dtype dtype)
{
    return dtype >= TL_bf16;
}

/* The dtype in which elements are computed: f32 for f16 and bf16. */
static inline tl_dtype tl_dtype_arith(tl_dtype dtype)
{
    return dtype == TL_f16 || dtype == TL_bf16 ? TL_f32 : dtype;
}

/* The dtype called `name`; false if there is none. */
bool tl_dtype_find(const char *name, size_t len, tl_dtype *out);

/* LANGUAGE.md 2: the least dtype that holds both kinds of values.
 * bool < ints < floats; u8 with i8 gives i16; f16 with bf16 gives f32; an int
 * tensor never widens a float. */
tl_dtype tl_dtype_join(tl_dtype a, tl_dtype b);

/* Dtype of `tensor op host number`: a host number never widens a tensor, but
 * a float with an int or bool tensor gives f32 and an int with bool i64. */
tl_dtype tl_dtype_join_weak(tl_dtype tensor, tl_kind host);

/* Conversions of one value; round to nearest even, NaN stays NaN. */
float tl_f16_to_f32(uint16_t h);
uint16_t tl_f32_to_f16(float f);

/* Inline, so that loops over them become vector code. */
static inline float tl_bf16_to_f32(uint16_t h)
{
    uint32_t u = (uint32_t)h << 16;
    float f;

    u |= (u & 0x7fffffff) > 0x7f800000 ? 0x400000 : 0; /* quiet */
    memcpy(&f, &u, sizeof f);
    return f;
}

static inline uint16_t tl_f32_to_bf16(float f)
{
    uint32_t u, rounded;

    memcpy(&u, &f, sizeof u);
    rounded = (u + 0x7fff + (u >> 16 & 1)) >> 16;
    return (uint16_t)((u & 0x7fffffff) > 0x7f800000 ? u >> 16 | 0x40
                                                    : rounded);
}

#endif
