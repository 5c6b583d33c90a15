/* random.c - draws: rand, randn, randint, bernoulli, dropout, perm.
 *
 * Element i of a draw is a function of the key and of i alone (rng.h), so
 * that a mask can be made again, and any part by any thread.  A float takes
 * word i; a double, a whole number, and a normal double take twice as many.
 * Compiled twice (isa.h); words and normals have the same bits in both. */
#include <math.h>

#include "runtime/base/rng_wide.h"
#include "runtime/cpu/elementwise.h"
#include "runtime/cpu/fill.h"
#include "runtime/cpu/isa.h"
#include "runtime/cpu/kern.h"
#include "runtime/cpu/map_job.h"
#include "runtime/cpu/scalar.h"

/* The words of blocks block .. of a lane, eight blocks at a time: `words` has
 * room for a multiple of 32. */
static void fill_words(const tl_rng_lane *lane, uint64_t block,
                       int64_t nblocks, uint32_t *words)
{
    for (int64_t i = 0; i < nblocks; i += TL_RNG_WIDE) {
        tl_rng_wide(words + 4 * i, lane, block + (uint64_t)i);
    }
}

/* ---- uniform ----------------------------------------------------------- */

typedef struct uniform {
    tl_rng_lane lane;
    int shift; /* bits that the dtype cannot hold: nothing rounds up to 1 */
} uniform;

static void fill_f32(const void *arg, int64_t pos, int64_t n, void *tile)
{
    uint32_t words[TL_FILL_TILE];
    const uniform *u = arg;
    int shift = u->shift;
    float unit = (float)ldexp(1, shift - 32), *v = tile;

    fill_words(&u->lane, (uint64_t)pos / 4, (n + 3) / 4, words);
    for (int64_t i = 0; i < n; i++) {
        v[i] = (float)(int32_t)(words[i] >> shift) * unit;
    }
}

static void fill_f64(const void *arg, int64_t pos, int64_t n, void *tile)
{
    uint32_t words[2 * TL_FILL_TILE];
    const uniform *u = arg;
    double *v = tile;

    fill_words(&u->lane, (uint64_t)pos / 2, (n + 1) / 2, words);
    for (int64_t i = 0; i < n; i++) {
        v[i] = tl_uniform_f64(words[2 * i], words[2 * i + 1]);
    }
}

static tl_status only_floats(tl_kernel_ctx *k, tl_op op, const tl_tensor *to)
{
    if (tl_dtype_is_float(to->dtype)) {
        return TL_OK;
    }
    return tl_fail(k->diag, TL_E0317, "`%s` makes floats, not %s",
                   tl_op_get(op)->name, tl_dtype_name(to->dtype));
}

tl_status tl_cpu_rand(tl_kernel_ctx *k, tl_op op, tl_tensor *const *in,
                      int nin, tl_tensor *const *out, int nout,
                      const tl_attrs *at)
{
    tl_rng_key key = tl_attrs_key(at);
    uniform u = {.lane = tl_rng_start(&key), .shift = 8};

    (void)in;
    (void)nin;
    (void)nout;
    TL_TRY(only_floats(k, op, out[0]));
    if (out[0]->dtype == TL_f64) {
        tl_cpu_fill(k, out[0], TL_f64, fill_f64, &u, 2);
        return TL_OK;
    }
    u.shift = out[0]->dtype == TL_f16    ? 21
              : out[0]->dtype == TL_bf16 ? 24
                                         : 8;
    tl_cpu_fill(k, out[0], TL_f32, fill_f32, &u, 1);
    return TL_OK;
}

/* ---- normal ------------------------------------------------------------ */

/* Two normals from two words (Box and Muller, "A note on the generation of
 * random normal deviates", 1958); the largest is sqrt(64 ln 2) = 6.66. */
static void fill_normal_f32(const void *arg, int64_t pos, int64_t n,
                            void *tile)
{
    uint32_t words[TL_FILL_TILE];
    const uniform *u = arg;
    float *v = tile;
    int64_t pairs = (n + 1) / 2;

    fill_words(&u->lane, (uint64_t)pos / 4, (n + 3) / 4, words);
    for (int64_t i = 0; i < pairs; i++) {
        double e, y = tl_log_core(((double)words[2 * i] + 1) * 0x1p-32, &e);
        double r = sqrt(-2 * (e * 0.69314718055994530942 + y));
        double turn = (double)words[2 * i + 1] * 0x1p-30; /* quarters */
        double rounded = turn + TL_ROUND_F64;
        double f = turn - (rounded - TL_ROUND_F64);
        uint64_t q = tl_bits_f64(rounded);
        double s = tl_sin_core(f), c = tl_cos_core(f);
        double cosine = (q & 1) != 0 ? -s : c, sine = (q & 1) != 0 ? c : s;

        cosine = (q & 2) != 0 ? -cosine : cosine;
        sine = (q & 2) != 0 ? -sine : sine;
        words[2 * i] = tl_bits_f32((float)(r * cosine));
        words[2 * i + 1] = tl_bits_f32((float)(r * sine));
    }
    for (int64_t i = 0; i < n; i++) {
        v[i] = tl_from_bits_f32(words[i]);
    }
}

static void fill_normal_f64(const void *arg, int64_t pos, int64_t n,
                            void *tile)
{
    uint32_t words[2 * TL_FILL_TILE];
    const uniform *u = arg;
    double *v = tile;

    fill_words(&u->lane, (uint64_t)pos / 2, (n + 1) / 2, words);
    for (int64_t i = 0; i < n; i++) {
        const uint32_t *w = words + 4 * (i / 2);
        double r = sqrt(-2 * log(1 - tl_uniform_f64(w[0], w[1])));
        double angle = 6.283185307179586477 * tl_uniform_f64(w[2], w[3]);

        v[i] = r * (i % 2 == 0 ? cos(angle) : sin(angle));
    }
}

tl_status tl_cpu_randn(tl_kernel_ctx *k, tl_op op, tl_tensor *const *in,
                       int nin, tl_tensor *const *out, int nout,
                       const tl_attrs *at)
{
    tl_rng_key key = tl_attrs_key(at);
    uniform u = {.lane = tl_rng_start(&key)};

    (void)in;
    (void)nin;
    (void)nout;
    TL_TRY(only_floats(k, op, out[0]));
    if (out[0]->dtype == TL_f64) {
        tl_cpu_fill(k, out[0], TL_f64, fill_normal_f64, &u, 50);
    } else {
        tl_cpu_fill(k, out[0], TL_f32, fill_normal_f32, &u, 5);
    }
    return TL_OK;
}

/* ---- whole numbers ----------------------------------------------------- */

typedef struct integers {
    tl_rng_lane lane;
    int64_t lo;
    uint64_t count;
} integers;

/* The high half of 64 random bits times the count: off by at most 2^-11 of a
 * value's share (counts up to 2^53). */
static uint64_t below(uint32_t hi, uint32_t lo, uint64_t count)
{
    uint64_t bits = (uint64_t)hi << 32 | lo;

    return (uint64_t)(((unsigned __int128)bits * count) >> 64);
}

static void fill_below(const void *arg, int64_t pos, int64_t n, void *tile)
{
    uint32_t words[2 * TL_FILL_TILE];
    const integers *r = arg;
    int64_t *v = tile;

    fill_words(&r->lane, (uint64_t)pos / 2, (n + 1) / 2, words);
    for (int64_t i = 0; i < n; i++) {
        v[i] =
            r->lo + (int64_t)below(words[2 * i], words[2 * i + 1], r->count);
    }
}

tl_status tl_cpu_randint(tl_kernel_ctx *k, tl_op op, tl_tensor *const *in,
                         int nin, tl_tensor *const *out, int nout,
                         const tl_attrs *at)
{
    tl_rng_key key = tl_attrs_key(at);
    integers r = {.lane = tl_rng_start(&key)};
    double lo = at->f[0], above = at->f[1];

    (void)op;
    (void)in;
    (void)nin;
    (void)nout;
    if (tl_dtype_is_float(out[0]->dtype)) {
        return tl_fail(k->diag, TL_E0317, "`randint` makes integers, not %s",
                       tl_dtype_name(out[0]->dtype));
    }
    if (!(lo < above && fabs(lo) <= 0x1p53 && fabs(above) <= 0x1p53)) {
        return tl_fail(k->diag, TL_E0416,
                       "`randint` from %.0f to below %.0f: nothing to draw",
                       lo, above);
    }
    r.lo = (int64_t)lo;
    r.count = (uint64_t)((int64_t)above - r.lo);
    tl_cpu_fill(k, out[0], TL_i64, fill_below, &r, 3);
    return TL_OK;
}

/* Fisher and Yates, in Durstenfeld's order (1964). */
tl_status tl_cpu_perm(tl_kernel_ctx *k, tl_op op, tl_tensor *const *in,
                      int nin, tl_tensor *const *out, int nout,
                      const tl_attrs *at)
{
    tl_rng_key key = tl_attrs_key(at);
    tl_rng_lane lane = tl_rng_start(&key);
    uint32_t words[2 * TL_FILL_TILE];
    int64_t n = out[0]->numel, *v = tl_tensor_data(out[0]);

    (void)op;
    (void)in;
    (void)nin;
    (void)nout;
    if (out[0]->dtype != TL_i64) {
        return tl_fail(k->diag, TL_E0317, "`perm` makes i64, not %s",
                       tl_dtype_name(out[0]->dtype));
    }
    for (int64_t i = 0; i < n; i++) { /* v[i] goes to a place in 0 .. i */
        int64_t at_word = i % TL_FILL_TILE, j;

        if (at_word == 0) {
            fill_words(&lane, (uint64_t)i / 2, TL_FILL_TILE / 2, words);
        }
        j = (int64_t)below(words[2 * at_word], words[2 * at_word + 1],
                           (uint64_t)i + 1);
        v[i] = i;
        v[i] = v[j];
        v[j] = i;
    }
    return TL_OK;
}

/* ---- draws on tensors -------------------------------------------------- */

/* A pass over a row-major tensor, in place: tile by tile, as f32 or f64. */
typedef struct mask {
    uniform u;
    char *data;
    int width;
    bool wide;                 /* f64 */
    tl_stage_fn *load, *store; /* of 16-bit floats, else NULL */
    int64_t n;
    bool dropout; /* else bernoulli */
    double p;
    float scale;
} mask;

enum {
    MASK_CHUNK = 64 * TL_FILL_TILE
};

static void mask_f32(const mask *m, const float *u, float *x, int64_t n)
{
    const float p = (float)m->p, scale = m->scale;

    if (m->dropout) {
        TL_INDEPENDENT
        for (int64_t i = 0; i < n; i++) {
            x[i] = u[i] >= p ? x[i] * scale : 0;
        }
    } else {
        TL_INDEPENDENT
        for (int64_t i = 0; i < n; i++) {
            x[i] = u[i] < x[i] ? 1 : 0;
        }
    }
}

static void mask_f64(const mask *m, const float *u, double *x, int64_t n)
{
    const double scale = 1 / (1 - m->p);
    const float p = (float)m->p;

    for (int64_t i = 0; i < n; i++) {
        x[i] = m->dropout ? (u[i] >= p ? x[i] * scale : 0)
                          : ((double)u[i] < x[i] ? 1 : 0);
    }
}

static void mask_tile(const mask *m, int64_t pos, int64_t n)
{
    float u[TL_FILL_TILE], x[TL_FILL_TILE];
    char *data = m->data + pos * m->width;

    fill_f32(&m->u, pos, n, u);
    if (m->wide) {
        mask_f64(m, u, (double *)data, n);
    } else if (m->load == NULL) {
        mask_f32(m, u, (float *)data, n);
    } else {
        m->load(n, data, 1, x);
        mask_f32(m, u, x, n);
        m->store(n, x, 1, data);
    }
}

static void mask_task(void *arg, int64_t task, int worker)
{
    const mask *m = arg;
    int64_t pos = task * MASK_CHUNK, end = pos + MASK_CHUNK;

    (void)worker;
    for (end = end < m->n ? end : m->n; pos < end; pos += TL_FILL_TILE) {
        int64_t n = end - pos;

        mask_tile(m, pos, n < TL_FILL_TILE ? n : TL_FILL_TILE);
    }
}

/* Copy x into `to`, then pass over it. */
static tl_status run_mask(tl_kernel_ctx *k, mask *m, tl_tensor *x,
                          tl_tensor *to, const tl_attrs *at)
{
    tl_rng_key key = tl_attrs_key(at);

    if (!tl_cpu_same_data(x, to)) {
        TL_TRY(tl_cpu_cast(k, TL_OP_cast, &x, 1, &to, 1, NULL));
    }
    m->u.lane = tl_rng_start(&key);
    m->u.shift = 8;
    m->data = tl_tensor_data(to);
    m->width = (int)tl_dtype_size(to->dtype);
    m->wide = to->dtype == TL_f64;
    if (tl_dtype_arith(to->dtype) != to->dtype) {
        m->load = tl_stage(to->dtype, TL_f32);
        m->store = tl_stage(TL_f32, to->dtype);
    }
    m->n = to->numel;
    tl_cpu_run(k, tl_ceil_div(m->n, MASK_CHUNK), mask_task, m);
    return TL_OK;
}

tl_status tl_cpu_dropout(tl_kernel_ctx *k, tl_op op, tl_tensor *const *in,
                         int nin, tl_tensor *const *out, int nout,
                         const tl_attrs *at)
{
    mask m = {.dropout = true, .p = at->f[0]};

    (void)op;
    (void)nin;
    (void)nout;
    if (!(m.p >= 0 && m.p <= 1)) {
        return tl_fail(k->diag, TL_E0413,
                       "`dropout` with probability %g, outside 0..1", m.p);
    }
    m.scale = (float)(1 / (1 - m.p));
    return run_mask(k, &m, in[0], out[0], at);
}

tl_status tl_cpu_bernoulli(tl_kernel_ctx *k, tl_op op, tl_tensor *const *in,
                           int nin, tl_tensor *const *out, int nout,
                           const tl_attrs *at)
{
    int64_t bad = tl_map_find(in[0], out[0], 0, nextafter(1, 2), true);
    mask m = {.dropout = false};

    (void)op;
    (void)nin;
    (void)nout;
    if (bad >= 0) {
        return tl_fail(k->diag, TL_E0413,
                       "probability at %s is %g, outside "
                       "0..1",
                       tl_cpu_place(in[0], bad).s,
                       tl_tensor_get_f(in[0], bad));
    }
    return run_mask(k, &m, in[0], out[0], at);
}
