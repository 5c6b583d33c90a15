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

#ifdef TL_CPU_AVX2
#define MAP_F32 TL_BEST_AVX(tl_map_f32)
#else
#define MAP_F32 &tl_map_f32
#endif

const tl_map_loops *tl_map_loops_get(tl_dtype dtype)
{
    switch (dtype) {
#define CASE(name)                                                           \
    case TL_##name:                                                          \
        return &TL_ISA(tl_map_##name);
        TL_MAP_TABLES(CASE)
    case TL_bool:
        return &TL_ISA(tl_map_u8);
    default: /* f32, f16, bf16 */
        return MAP_F32;
    }
}

/* ---- what must not be ---------------------------------------------------- */

/* Are all elements lo <= x < above?  Of row-major floats only, else false. */
static bool floats_between(const tl_tensor *x, double lo, double above)
{
    float from = (float)lo, end = (float)above;
    const float *v;
    int outside = 0;

    if (x->dtype != TL_f32 || !tl_tensor_contiguous(x) || x->numel == 0 ||
        (double)end != above) {
        return false;
    }
    from = (double)from < lo ? nextafterf(from, INFINITY) : from;
    v = tl_tensor_data(x);
    for (int64_t i = 0; i < x->numel; i++) {
        outside |= (v[i] < from) | !(v[i] < end);
    }
    return outside == 0;
}

/* Look through `x`, as the row's result or cast `to` reads it. */
static tl_status check(tl_kernel_ctx *k, tl_op op, const tl_tensor *x,
                       tl_tensor *to)
{
    tl_map_bounds b = tl_map_bounds_of(op, to->dtype);
    int64_t bad;

    if (!tl_map_is_checked(op, x->dtype, to->dtype) ||
        (b.outside && floats_between(x, b.lo, b.above))) {
        return TL_OK;
    }
    bad = tl_map_find(x, to, b.lo, b.above, b.outside);
    return bad < 0 ? TL_OK
                   : tl_map_refuse(k->diag, op, to->dtype,
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
        tl_map_job_tile(&j);
    }
    tl_map_job_run(k, &j, tl_map_cost(op, compute));
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
    tl_map_loop *loop = tl_map_loops_get(compute)->value[op];
    tl_tensor *to = out[0];
    tl_tensor *all[TL_MAP_OPERANDS] = {NULL};

    (void)nout;
    TL_CHECK(loop != NULL);
    TL_TRY(check(k, op, in[nin - 1], to));
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
    tl_map_loop *loop = tl_map_loops_get(compute)->grad[op][which];
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

enum {
    CONVERTED = 1 << 17 /* elements of a task */
};

/* Rows of two dtypes that convert in one step. */
typedef struct convert {
    tl_stage_fn *stage;
    const char *from;
    char *to;
    int64_t n;
    size_t width, to_width;
} convert;

static void convert_task(void *arg, int64_t task, int worker)
{
    const convert *c = arg;
    int64_t at = task * CONVERTED;
    int64_t n = c->n - at < CONVERTED ? c->n - at : CONVERTED;

    (void)worker;
    c->stage(n, c->from + (size_t)at * c->width, 1,
             c->to + (size_t)at * c->to_width);
}

tl_status tl_cpu_cast(tl_kernel_ctx *k, tl_op op, tl_tensor *const *in,
                      int nin, tl_tensor *const *out, int nout,
                      const tl_attrs *at)
{
    tl_tensor *all[TL_MAP_OPERANDS] = {in[0]}, *to = out[0];
    tl_dtype compute = tl_map_halfway(in[0]->dtype, to->dtype);

    (void)nin;
    (void)nout;
    if (in[0]->dtype == to->dtype) {
        tl_cpu_copy_tensor(k, to, in[0]);
        return TL_OK;
    }
    TL_TRY(check(k, TL_OP_cast, in[0], to));
    if (to->numel > 0 && tl_tensor_contiguous(in[0]) &&
        compute == to->dtype) { /* no rows in between */
        convert c = {tl_stage(in[0]->dtype, to->dtype),
                     tl_tensor_data(in[0]), tl_tensor_data(to), to->numel,
                     tl_dtype_size(in[0]->dtype), tl_dtype_size(to->dtype)};

        tl_cpu_run(k, tl_ceil_div(c.n, CONVERTED), convert_task, &c);
        return TL_OK;
    }
    return run_loop(k, op, identity(compute), all, to, compute, at);
}
