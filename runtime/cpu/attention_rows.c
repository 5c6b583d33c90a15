/* attention_rows.c - arithmetic on a tile of scores; compiled three
 * times (isa.h). */
#include <math.h>

#include "runtime/base/rng_wide.h"
#include "runtime/cpu/attention.h"
#include "runtime/cpu/fold.h"
#include "runtime/cpu/scalar.h"

enum {
    WORDS = TL_ATTN_COLS + 4 + 4 * TL_RNG_WIDE /* where a row begins inside a
                                                  block, and whole groups */
};

/* Draws `first` .. first + n - 1 of the lane, as numbers in [0, 1). */
static void draw_row(const tl_rng_lane *lane, uint64_t first, int64_t n,
                     float *u)
{
    uint32_t words[WORDS];
    int64_t skip = (int64_t)(first % 4), blocks = (skip + n + 3) / 4;

    for (int64_t i = 0; i < blocks; i += TL_RNG_WIDE) {
        tl_rng_wide(words + 4 * i, lane, first / 4 + (uint64_t)i);
    }
    for (int64_t j = 0; j < n; j++) {
        u[j] = (float)(int32_t)(words[skip + j] >> 8) * 0x1p-24f;
    }
}

/* How many of the tile's columns row i sees. */
static int64_t seen_of(const tl_attn_tile *t, int64_t i)
{
    int64_t n = t->seen + i;

    return n < 0 ? 0 : n < t->cols ? n : t->cols;
}

#define REAL float
#define NAME(fn) fn##_f32
#define FN(fn) tl_##fn##_f32
#define DTYPE TL_f32
#define ATTN_TABLE TL_ISA(tl_attn_f32)
#include "runtime/cpu/attention_rows.h"

#define REAL double
#define NAME(fn) fn##_f64
#define FN(fn) tl_##fn##_f64
#define DTYPE TL_f64
#define ATTN_TABLE TL_ISA(tl_attn_f64)
#include "runtime/cpu/attention_rows.h"
