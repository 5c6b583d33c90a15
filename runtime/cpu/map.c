/* map.c - the kernels of elementwise rows: value, fused gradient, cast. */
#include <math.h>
#include <string.h>

#include "runtime/base/check.h"
#include "runtime/cpu/elementwise.h"
#include "runtime/cpu/kern.h"
#include "runtime/cpu/map_job.h"

enum {
    SMALL = 4096, /* elements up to which nothing is set up */
    TINY = 64,    /* ... and scalars are repeated */
    FEW = 16384,  /* elements that a cache holds in any order */
    NEAR = 8      /* strides within a cache line, about */
};

static const double no_attributes[6] = {0};

static const tl_map_loops *loops_of(tl_dtype dtype)
{
    switch (dtype) {
#define CASE(name)                                                           \
    case TL_##name:                                                          \
        return &TL_ISA(tl_map_##name);
        TL_MAP_TABLES(CASE)
    case TL_bool:
        return &TL_ISA(tl_map_u8);
    default: /* f16, bf16 */
        return &TL_ISA(tl_map_f32);
    }
}

/* Nanoseconds an element takes, roughly. */
static double cost(tl_op op, tl_dtype compute)
{
    double ns = 0.2 * (double)tl_dtype_size(compute);

    if (tl_op_get(op)->amp == TL_AMP_F32) {
        ns += compute == TL_f64 ? 15 : 2;
    }
    return ns;
}

/* ---- integers: what must not be ----------------------------------------- */

static tl_status check_integers(tl_kernel_ctx *k, tl_op op,
                                const tl_tensor *b, tl_tensor *to)
{
    int64_t bad;

    if (op == TL_OP_pow) {
        bad = tl_map_find(b, to, 0, (double)INFINITY, true);
        return bad < 0 ? TL_OK
                       : tl_fail(k->diag, TL_E0416,
                                 "negative power of an integer at %s",
                                 tl_cpu_place(to, bad).s);
    }
    bad = tl_map_find(b, to, 0, 0.5, false);
    return bad < 0 ? TL_OK
                   : tl_fail(k->diag, TL_E0401, "integer `%s` by zero at %s",
                             op == TL_OP_mod ? "%" : "//",
                             tl_cpu_place(to, bad).s);
}

/* ---- transposed operands ------------------------------------------------ */

/* Large operands with neighbours far apart are copied row-major first: read
 * in the order of the result, each element would cost a cache line. */
typedef struct straight {
    tl_tensor *copy[TL_MAP_OPERANDS];
} straight;

static bool is_scattered(const tl_tensor *t, const tl_tensor *to)
{
    int last = t->rank - 1;

    while (last > 0 && t->size[last] == 1) {
        last--;
    }
    return t->numel == to->numel && t->numel > FEW && last >= 0 &&
           (t->stride[last] > NEAR || t->stride[last] < -NEAR);
}

static void release(straight *s)
{
    for (int i = 0; i < TL_MAP_OPERANDS; i++) {
        tl_tensor_unref(s->copy[i]);
    }
}

/* Replace scattered operands by copies, which `s` owns. */
static tl_status straighten(tl_kernel_ctx *k, tl_tensor **in,
                            const tl_tensor *to, straight *s)
{
    tl_status st = TL_OK;

    *s = (straight){{NULL}};
    for (int i = 0; i < TL_MAP_OPERANDS; i++) {
        tl_tensor *t = in[i];

        if (t == NULL || t->storage == NULL || !is_scattered(t, to)) {
            continue;
        }
        TL_GOTO(st, tl_tensor_new(&s->copy[i], k->pool, t->dtype, t->rank,
                                  t->size, k->diag));
        tl_cpu_copy_tensor(k, s->copy[i], t);
        in[i] = s->copy[i];
    }
out:
    if (st != TL_OK) {
        release(s);
    }
    return st;
}

static tl_status run_loop(tl_kernel_ctx *k, tl_op op, tl_map_loop *loop,
                          tl_tensor **in, tl_tensor *to, tl_dtype compute,
                          const tl_attrs *at)
{
    straight s;
    tl_map_job j;

    TL_TRY(straighten(k, in, to, &s));
    tl_map_job_init(&j, loop, in, to, compute, at);
    if (compute != to->dtype && to->dtype == TL_bool && op == TL_OP_cast) {
        j.unstage = tl_stage(compute, TL_bool);
        j.longest = TL_TILE_BYTES / j.width / j.period * j.period;
    }
    tl_map_job_run(k, &j, cost(op, compute));
    release(&s);
    return TL_OK;
}

/* ---- value and gradient ------------------------------------------------- */

typedef double small_tile[TINY]; /* room for a scalar repeated */

/* Where the loop finds a row-major operand of its dtype and of the result's
 * shape, or a scalar (in `tile`); NULL: not as easily. */
static const void *plain(const tl_tensor *t, const tl_tensor *to,
                         tl_dtype compute, small_tile tile)
{
    if (t->dtype != compute) {
        return NULL;
    }
    if (t->numel == to->numel && tl_tensor_contiguous(t)) {
        return tl_tensor_data(t);
    }
    if (t->numel == 1 && to->numel <= TINY) {
        tl_stage(compute, compute)(to->numel, tl_tensor_data(t), 0, tile);
        return tile;
    }
    return NULL;
}

/* Small work without a job; false: nothing was done. */
static bool run_small(tl_map_loop *loop, tl_tensor *const *in, int nin,
                      tl_tensor *to, tl_dtype compute, const tl_attrs *at)
{
    const void *data[TL_MAP_OPERANDS];
    small_tile tile[3];

    if (to->dtype != compute && to->dtype != TL_bool) {
        return false;
    }
    for (int i = 0; i < nin; i++) {
        data[i] = plain(in[i], to, compute, tile[i]);
        if (data[i] == NULL) {
            return false;
        }
    }
    loop(to->numel, data, tl_tensor_data(to),
         at == NULL ? no_attributes : at->f);
    return true;
}

tl_status tl_cpu_map(tl_kernel_ctx *k, tl_op op, tl_tensor *const *in,
                     int nin, tl_tensor *const *out, int nout,
                     const tl_attrs *at)
{
    tl_dtype compute = tl_dtype_arith(in[nin - 1]->dtype);
    tl_map_loop *loop = loops_of(compute)->value[op];
    tl_tensor *to = out[0];
    tl_tensor *all[TL_MAP_OPERANDS] = {NULL};

    (void)nout;
    TL_CHECK(loop != NULL);
    if ((op == TL_OP_floordiv || op == TL_OP_mod || op == TL_OP_pow) &&
        !tl_dtype_is_float(compute)) {
        TL_TRY(check_integers(k, op, in[1], to));
    }
    if (to->numel <= SMALL && run_small(loop, in, nin, to, compute, at)) {
        return TL_OK;
    }
    memcpy(all, in, sizeof(tl_tensor *) * (size_t)nin);
    return run_loop(k, op, loop, all, to, compute, at);
}

tl_status tl_cpu_map_grad(tl_kernel_ctx *k, tl_op op, int which,
                          tl_tensor *const *in, int nin, tl_tensor *y,
                          tl_tensor *g, tl_tensor *dx, const tl_attrs *at)
{
    tl_dtype compute = tl_dtype_arith(dx->dtype);
    tl_map_loop *loop = loops_of(compute)->grad[op][which];
    tl_tensor *all[TL_MAP_OPERANDS] = {NULL};

    TL_CHECK(loop != NULL);
    memcpy(all, in, sizeof(tl_tensor *) * (size_t)nin);
    all[TL_MAP_Y] = y;
    all[TL_MAP_G] = g;
    return run_loop(k, op, loop, all, dx, compute, at);
}

/* ---- cast --------------------------------------------------------------- */

#define IDENTITY(width, type)                                                \
    static void identity_##width(int64_t n, const void *const *in, void *to, \
                                 const double *p)                            \
    {                                                                        \
        (void)p;                                                             \
        memcpy(to, in[0], (size_t)n * sizeof(type));                         \
    }
IDENTITY(1, uint8_t)
IDENTITY(2, uint16_t)
IDENTITY(4, uint32_t)
IDENTITY(8, uint64_t)

static tl_map_loop *identity(tl_dtype dtype)
{
    switch (tl_dtype_size(dtype)) {
    case 1:
        return identity_1;
    case 2:
        return identity_2;
    case 4:
        return identity_4;
    default:
        return identity_8;
    }
}

/* Where a conversion passes through: f32 or f64 at 16-bit floats. */
static tl_dtype halfway(tl_dtype from, tl_dtype to)
{
    if (tl_stage(from, to) != NULL) {
        return to;
    }
    return tl_dtype_arith(from) != from ? TL_f32 : TL_f64;
}

/* A float that the integer type cannot hold: E0319. */
static tl_status check_cast(tl_kernel_ctx *k, const tl_tensor *x,
                            tl_tensor *to)
{
    static const int bits[TL_DTYPE_COUNT] = {[TL_u8] = 8,
                                             [TL_i8] = 7,
                                             [TL_i16] = 15,
                                             [TL_i32] = 31,
                                             [TL_i64] = 63};
    double above = ldexp(1, bits[to->dtype]);
    double lo = to->dtype == TL_u8 ? 0 : -above;
    int64_t bad;

    /* what truncates into the range; 2^63 has no neighbour below -2^63 */
    lo = to->dtype == TL_i64 ? lo : nextafter(lo - 1, 0);
    bad = tl_map_find(x, to, lo, above, true);
    return bad < 0
               ? TL_OK
               : tl_fail(k->diag, TL_E0319, "value at %s has no %s form",
                         tl_cpu_place(to, bad).s, tl_dtype_name(to->dtype));
}

tl_status tl_cpu_cast(tl_kernel_ctx *k, tl_op op, tl_tensor *const *in,
                      int nin, tl_tensor *const *out, int nout,
                      const tl_attrs *at)
{
    tl_tensor *all[TL_MAP_OPERANDS] = {in[0]}, *to = out[0];
    tl_dtype compute = halfway(in[0]->dtype, to->dtype);

    (void)nin;
    (void)nout;
    if (in[0]->dtype == to->dtype) {
        tl_cpu_copy_tensor(k, to, in[0]);
        return TL_OK;
    }
    if (tl_dtype_is_float(in[0]->dtype) &&
        tl_dtype_kind(to->dtype) == TL_KIND_INT) {
        TL_TRY(check_cast(k, in[0], to));
    }
    return run_loop(k, op, identity(compute), all, to, compute, at);
}
