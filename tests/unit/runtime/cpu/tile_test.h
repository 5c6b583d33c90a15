/* tile_test.h - random tile programs, and their rows run one by one by the
 * device's kernels. */
#ifndef TL_TESTS_TILE_TEST_H
#define TL_TESTS_TILE_TEST_H

#include "kern_test.h"

#include <stdio.h>

#include "runtime/cpu/cpu.h"
#include "runtime/cpu/map.h"
#include "runtime/cpu/map_space.h"
#include "runtime/cpu/tile.h"

static tl_device device;

static inline void setup(void)
{
    tl_cpu_device_init(&device);
    ctx_open(1);
    ctx.device = &device;
}

static inline void setup_threads(int threads)
{
    tl_threads_free(ctx.threads);
    cr_assert_eq(tl_threads_new(&ctx.threads, threads, &ctx_diag), TL_OK);
}

/* ---- numbers ----------------------------------------------------------- */

static inline int pick(uint64_t *state, int n)
{
    return (int)((random_unit(state) + 1) / 2 * n);
}

static inline void set_random(tl_tensor *t, uint64_t *state)
{
    for (int64_t i = 0; i < t->numel; i++) {
        double v = random_unit(state) * 3;

        if (t->dtype == TL_bool) {
            tl_tensor_set_i(t, i, v > 0);
        } else if (!tl_dtype_is_float(t->dtype)) {
            v = ceil(fabs(v) * 2) * (v < -2.4 ? -1 : 1);
            tl_tensor_set_i(t, i, (int64_t)(t->dtype == TL_u8 ? fabs(v) : v));
        } else {
            tl_tensor_set_f(t, i, v);
        }
    }
}

/* Do the elements of `b`, broadcast, have the bits of those of `a`?  Any NaN
 * equals any NaN. */
static inline bool same_elements(const tl_tensor *a, const tl_tensor *b)
{
    int64_t stride[TL_MAX_RANK];
    int64_t width = (int64_t)tl_dtype_size(a->dtype);
    const char *x = tl_tensor_data(a), *y = tl_tensor_data(b);

    tl_cpu_broadcast(b, a->rank, a->size, stride);
    for (int64_t i = 0; i < a->numel; i++) {
        int64_t rest = i, at = 0;

        for (int d = a->rank - 1; d >= 0; d--) {
            at += rest % a->size[d] * stride[d];
            rest /= a->size[d];
        }
        if (memcmp(x + i * width, y + at * width, (size_t)width) != 0 &&
            !(tl_dtype_is_float(a->dtype) && isnan(tl_tensor_get_f(a, i)) &&
              isnan(tl_tensor_get_f(b, at)))) {
            return false;
        }
    }
    return a->dtype == b->dtype;
}

/* ---- random programs ----------------------------------------------------- */

typedef struct program {
    uint64_t state;
    int rank, nin, nsteps, nto;
    int64_t size[TL_MAX_RANK];
    tl_tile_step step[TL_TILE_MAX_STEPS];
    tl_tensor *in[TL_TILE_MAX_OPERANDS], *to[TL_TILE_MAX_OPERANDS];
    tl_tensor *want[TL_TILE_MAX_STEPS]; /* of each step, in its own shape */
    double p[6];
    bool hidden[TL_TILE_MAX_STEPS]; /* no operand of other steps */
    double own_p[TL_TILE_MAX_STEPS][6];
} program;

static const struct {
    int rank;
    int64_t size[4];
} spaces[] = {
    {0, {0}},         {1, {1}},        {1, {5}},        {2, {3, 0}},
    {2, {2, 3}},      {3, {2, 1, 4}},  {2, {37, 130}},  {2, {300, 10}},
    {3, {40, 3, 70}}, {1, {30011}},    {2, {150, 200}}, {4, {3, 50, 2, 90}},
    {2, {9000, 5}},   {2, {600, 769}},
};

/* An input that broadcasts to the space, in some layout. */
static inline tl_tensor *random_input(program *g, tl_dtype dtype)
{
    int64_t size[TL_MAX_RANK], wide[TL_MAX_RANK], stride[TL_MAX_RANK];
    int dropped = pick(&g->state, 4) == 0 ? pick(&g->state, g->rank + 1) : 0;
    int rank = g->rank - dropped, how = pick(&g->state, 6);
    bool narrow = pick(&g->state, 3) == 0;
    tl_tensor *t, *view;
    int64_t next = 1;

    for (int i = 0; i < rank; i++) {
        size[i] =
            narrow && pick(&g->state, 2) == 0 ? 1 : g->size[dropped + i];
        wide[i] = size[i] * 2 + 1;
    }
    if (how >= 3 || rank == 0) {
        t = new_tensor(dtype, rank, size);
        set_random(t, &g->state);
        return t;
    }
    t = new_tensor(dtype, rank, how == 0 ? size : wide);
    set_random(t, &g->state);
    for (int k = 0; k < rank; k++) { /* transposed, strided, rows of wider */
        int i = how == 0 ? k : rank - 1 - k;

        stride[i] = next * (how == 1 ? 2 : 1);
        next *= how == 0 ? size[i] : wide[i];
    }
    cr_assert_eq(tl_tensor_view(&view, t, rank, size, stride,
                                how != 0 && t->numel > 0 ? 1 : 0, &ctx_diag),
                 TL_OK);
    tl_tensor_unref(t);
    return view;
}

static inline tl_tensor *tensor_of(const program *g, int ref)
{
    return ref >= 0 ? g->in[ref] : ref == -1 ? NULL : g->want[-2 - ref];
}

static inline tl_dtype tensor_dtype(const program *g, int ref)
{
    return ref >= 0              ? g->in[ref]->dtype
           : g->hidden[-2 - ref] ? TL_DTYPE_COUNT
                                 : (tl_dtype)g->step[-2 - ref].dtype;
}

/* A value of `dtype`; some input is made if there is none. */
static inline int16_t value_of(program *g, int step, tl_dtype dtype)
{
    int n = g->nin + step, first = pick(&g->state, n);

    for (int i = 0; i < n; i++) {
        int k = n - 1 - (first + i) % n;
        int ref = k < g->nin ? k : -2 - (k - g->nin);

        if (tensor_dtype(g, ref) == dtype && pick(&g->state, 8) != 0) {
            return (int16_t)ref;
        }
    }
    if (g->nin < TL_TILE_MAX_OPERANDS) {
        g->in[g->nin] = random_input(g, dtype);
        return (int16_t)g->nin++;
    }
    return value_of(g, step, dtype);
}

static inline tl_dtype any_dtype(program *g)
{
    static const tl_dtype often[] = {TL_f32, TL_f32, TL_f64, TL_f16, TL_bf16};

    return pick(&g->state, 3) == 0 ? (tl_dtype)pick(&g->state, TL_DTYPE_COUNT)
                                   : often[pick(&g->state, 5)];
}

static inline void random_cast(program *g, int i)
{
    tl_tile_step *s = &g->step[i];
    tl_dtype from = any_dtype(g), to = any_dtype(g);

    if (tl_dtype_kind(to) == TL_KIND_INT && pick(&g->state, 3) != 0) {
        to = TL_f32;
    }
    *s = (tl_tile_step){.op = TL_OP_cast,
                        .which = -1,
                        .nin = 1,
                        .to = -1,
                        .compute = (uint8_t)to,
                        .dtype = (uint8_t)to};
    s->in[0] = value_of(g, i, from);
}

/* A row, or its gradient, that computes in the dtype. */
static inline void random_row(program *g, int i)
{
    tl_tile_step *s = &g->step[i];
    tl_dtype dtype = any_dtype(g), compute = tl_dtype_arith(dtype);
    int which = pick(&g->state, 3) == 0 ? pick(&g->state, 3) : -1;
    const tl_op_info *row;
    tl_op op;

    do {
        op = (tl_op)pick(&g->state, TL_OP_COUNT);
        if (pick(&g->state, 4) == 0) {
            op = TL_OP_where;
        }
        if (!tl_dtype_is_float(dtype)) {
            which = -1;
        }
    } while (op == TL_OP_cast || !tl_tile_takes(op, which, compute));
    row = tl_op_get(op);
    *s = (tl_tile_step){
        .op = (uint16_t)op,
        .which = (int8_t)which,
        .to = -1,
        .compute = (uint8_t)compute,
        .dtype = (uint8_t)(row->cls == TL_CLASS_CMP ? TL_bool : dtype),
        .nin = (uint8_t)row->nin,
        .p = g->p};
    for (int k = 0; k < row->nin; k++) {
        bool is_bool = (row->bool_in >> k & 1) != 0;
        bool read = which < 0 || (row->saves_in >> k & 1) != 0;

        s->in[k] = read ? value_of(g, i, is_bool ? TL_bool : dtype) : -1;
    }
    if (which >= 0) {
        s->in[row->nin] =
            (row->saves_out & 1) != 0 ? value_of(g, i, dtype) : -1;
        s->in[row->nin + 1] = value_of(g, i, dtype);
        s->nin = (uint8_t)(row->nin + 2);
    }
}

static inline void random_program(program *g, uint64_t seed)
{
    int space;

    memset(g, 0, sizeof *g);
    g->state = seed;
    space = pick(&g->state, (int)(sizeof spaces / sizeof *spaces));
    g->rank = spaces[space].rank;
    memcpy(g->size, spaces[space].size, sizeof spaces[space].size);
    g->p[0] = 0.25;
    g->p[1] = 1.5;
    g->in[g->nin++] = random_input(g, TL_f32);
    g->nsteps = 1 + pick(&g->state, pick(&g->state, 4) == 0 ? 60 : 12);
    for (int i = 0; i < g->nsteps; i++) {
        if (pick(&g->state, 6) == 0) {
            random_cast(g, i);
        } else {
            random_row(g, i);
        }
        if ((i == g->nsteps - 1 || pick(&g->state, 4) == 0) && g->nto < 8) {
            g->step[i].to = (int16_t)g->nto++;
        }
    }
}

/* ---- one by one ---------------------------------------------------------- */

static inline void own_shape(const program *g, const tl_tile_step *s,
                             int *rank, int64_t *size)
{
    *rank = 0;
    for (int k = 0; k < s->nin; k++) {
        const tl_tensor *t = tensor_of(g, s->in[k]);

        *rank = t != NULL && t->rank > *rank ? t->rank : *rank;
    }
    for (int d = 0; d < *rank; d++) {
        size[d] = 1;
    }
    for (int k = 0; k < s->nin; k++) {
        const tl_tensor *t = tensor_of(g, s->in[k]);

        for (int d = 0; t != NULL && d < t->rank; d++) {
            int64_t *at = &size[*rank - t->rank + d];

            *at = *at == 1 ? t->size[d] : *at;
        }
    }
}

static inline tl_status run_step(program *g, int i)
{
    const tl_tile_step *s = &g->step[i];
    tl_tensor *in[TL_MAP_OPERANDS];
    int64_t size[TL_MAX_RANK];
    tl_attrs at;
    int rank;

    tl_attrs_init(&at);
    memcpy(at.f, g->p, sizeof at.f);
    own_shape(g, s, &rank, size);
    g->want[i] = new_tensor((tl_dtype)s->dtype, rank, size);
    for (int k = 0; k < s->nin; k++) {
        in[k] = tensor_of(g, s->in[k]);
    }
    if (s->which < 0) {
        return device.kernel[s->op](&ctx, (tl_op)s->op, in, s->nin,
                                    &g->want[i], 1, &at);
    }
    return device.map_grad(&ctx, (tl_op)s->op, s->which, in, s->nin - 2,
                           in[s->nin - 2], in[s->nin - 1], g->want[i], &at);
}

static inline tl_status run_steps(program *g)
{
    for (int i = 0; i < g->nsteps; i++) {
        TL_TRY(run_step(g, i));
    }
    return TL_OK;
}

/* Results, some of which take the storage of an input that allows it. */
static inline void make_results(program *g, bool in_place)
{
    bool taken[TL_TILE_MAX_OPERANDS] = {false};
    int64_t numel = 1;

    for (int d = 0; d < g->rank; d++) {
        numel *= g->size[d];
    }
    for (int i = 0; i < g->nsteps; i++) {
        tl_tensor *t = NULL;

        if (g->step[i].to < 0) {
            continue;
        }
        for (int k = 0; k < g->nin && in_place && t == NULL; k++) {
            if (!taken[k] && g->in[k]->dtype == g->step[i].dtype &&
                g->in[k]->numel == numel && tl_tensor_contiguous(g->in[k])) {
                int64_t stride[TL_MAX_RANK];

                taken[k] = true;
                tl_row_major(g->rank, g->size, stride);
                cr_assert_eq(tl_tensor_view(&t, g->in[k], g->rank, g->size,
                                            stride, g->in[k]->offset,
                                            &ctx_diag),
                             TL_OK);
            }
        }
        if (t == NULL) {
            t = new_tensor((tl_dtype)g->step[i].dtype, g->rank, g->size);
        }
        g->to[g->step[i].to] = t;
    }
}

static inline void free_tensors(program *g)
{
    for (int i = 0; i < g->nin; i++) {
        tl_tensor_unref(g->in[i]);
    }
    for (int i = 0; i < g->nto; i++) {
        tl_tensor_unref(g->to[i]);
    }
    for (int i = 0; i < g->nsteps; i++) {
        tl_tensor_unref(g->want[i]);
    }
}

#endif
