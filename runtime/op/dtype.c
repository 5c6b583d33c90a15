/* dtype.c - the table of element types, their joins, 16-bit floats. */
#include "runtime/op/dtype.h"

#include <string.h>

typedef struct dtype_row {
    const char *name, *safetensors;
    uint8_t size, kind;
} dtype_row;

static const dtype_row rows[] = {
#define DTYPE(name, mem, arith, bytes, kind, st_name)                        \
    {#name, st_name, bytes, TL_KIND_##kind},
#include "runtime/op/dtype.def"
};

const char *tl_dtype_name(tl_dtype dtype)
{
    return rows[dtype].name;
}

const char *tl_dtype_safetensors_name(tl_dtype dtype)
{
    return rows[dtype].safetensors;
}

size_t tl_dtype_size(tl_dtype dtype)
{
    return rows[dtype].size;
}

tl_kind tl_dtype_kind(tl_dtype dtype)
{
    return (tl_kind)rows[dtype].kind;
}

bool tl_dtype_find(const char *name, size_t len, tl_dtype *out)
{
    for (int i = 0; i < TL_DTYPE_COUNT; i++) {
        if (strlen(rows[i].name) == len &&
            memcmp(rows[i].name, name, len) == 0) {
            *out = (tl_dtype)i;
            return true;
        }
    }
    return false;
}

tl_dtype tl_dtype_join(tl_dtype a, tl_dtype b)
{
    tl_dtype hi = a > b ? a : b, lo = a > b ? b : a;

    if (hi == TL_f16 && lo == TL_bf16) {
        return TL_f32; /* neither holds the other */
    }
    if (hi == TL_i8 && lo == TL_u8) {
        return TL_i16;
    }
    return hi; /* dtype.def is in the order of joining */
}

tl_dtype tl_dtype_join_weak(tl_dtype tensor, tl_kind host)
{
    if (tl_dtype_kind(tensor) >= host) {
        return tensor;
    }
    return host == TL_KIND_FLOAT ? TL_f32 : TL_i64;
}

static uint32_t bits_of(float f)
{
    uint32_t u;

    memcpy(&u, &f, sizeof u);
    return u;
}

static float float_of(uint32_t u)
{
    float f;

    memcpy(&f, &u, sizeof f);
    return f;
}

float tl_f16_to_f32(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000) << 16;
    uint32_t magnitude = (uint32_t)(h & 0x7fff);

    if (magnitude >= 0x7c00) { /* infinity, NaN (made quiet) */
        return float_of(sign | 0x7f800000 | (magnitude & 0x3ff) << 13 |
                        (magnitude > 0x7c00 ? 0x400000 : 0));
    }
    if (magnitude < 0x400) { /* subnormal: a multiple of 2^-24 */
        return float_of(sign | bits_of((float)magnitude * 0x1p-24f));
    }
    return float_of(sign | ((magnitude << 13) + ((127 - 15) << 23)));
}

uint16_t tl_f32_to_f16(float f)
{
    uint32_t u = bits_of(f), sign = u >> 16 & 0x8000;
    uint32_t magnitude = u & 0x7fffffff;

    if (magnitude > 0x7f800000) {
        return (uint16_t)(sign | 0x7e00 | (magnitude >> 13 & 0x3ff));
    }
    if (magnitude >= 0x477ff000) { /* 65520 and more */
        return (uint16_t)(sign | 0x7c00);
    }
    if (magnitude <
        0x38800000) { /* below 2^-14: adding 0.5 rounds to 2^-24 */
        float shifted = float_of(magnitude) + 0.5f;

        return (uint16_t)(sign | (bits_of(shifted) - bits_of(0.5f)));
    }
    magnitude += 0xfff + (magnitude >> 13 & 1); /* half to even */
    return (uint16_t)(sign | ((magnitude - ((127 - 15) << 23)) >> 13));
}
