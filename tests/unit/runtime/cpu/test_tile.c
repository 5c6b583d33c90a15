/* Tile programs have the bits and the errors of their rows, run one by one by
 * the device's kernels: random programs, and cases by hand. */
#include "kern_test.h"

#include <stdio.h>

#include "runtime/cpu/cpu.h"
#include "runtime/cpu/map.h"
#include "runtime/cpu/tile.h"

static tl_device device;

static void setup(void)
{
    tl_cpu_device_init(&device);
    ctx_open(1);
    ctx.device = &device;
}

static void setup_threads(int threads)
{
    tl_threads_free(ctx.threads);
    cr_assert_eq(tl_threads_new(&ctx.threads, threads, &ctx_diag), TL_OK);
}

TestSuite(tile, .init = setup, .fini = ctx_close);

/* ---- numbers ----------------------------------------------------------- */

static int pick(uint64_t *state, int n)
{
    return (int)((random_unit(state) + 1) / 2 * n);
}

static void set_random(tl_tensor *t, uint64_t *state)
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
static bool same_elements(const tl_tensor *a, const tl_tensor *b)
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
            !(tl_dtype_is_float(a->dtype) &&
              isnan(tl_tensor_get_f(a, i)) && isnan(tl_tensor_get_f(b, at)))) {
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
} program;

static const struct {
    int rank;
    int64_t size[4];
} spaces[] = {
    {0, {0}},          {1, {1}},           {1, {5}},
    {2, {3, 0}},       {2, {2, 3}},        {3, {2, 1, 4}},
    {2, {37, 130}},    {2, {300, 10}},     {3, {40, 3, 70}},
    {1, {30011}},      {2, {150, 200}},    {4, {3, 50, 2, 90}},
    {2, {9000, 5}},    {2, {600, 769}},
};

/* An input that broadcasts to the space, in some layout. */
static tl_tensor *random_input(program *g, tl_dtype dtype)
{
    int64_t size[TL_MAX_RANK], wide[TL_MAX_RANK], stride[TL_MAX_RANK];
    int dropped = pick(&g->state, 4) == 0 ? pick(&g->state, g->rank + 1) : 0;
    int rank = g->rank - dropped, how = pick(&g->state, 6);
    bool narrow = pick(&g->state, 3) == 0;
    tl_tensor *t, *view;
    int64_t next = 1;

    for (int i = 0; i < rank; i++) {
        size[i] = narrow && pick(&g->state, 2) == 0 ? 1
                                                    : g->size[dropped + i];
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

static tl_tensor *tensor_of(const program *g, int ref)
{
    return ref >= 0 ? g->in[ref] : ref == -1 ? NULL : g->want[-2 - ref];
}

/* A value of `dtype`; some input is made if there is none. */
static int16_t value_of(program *g, int step, tl_dtype dtype)
{
    int n = g->nin + step, first = pick(&g->state, n);

    for (int i = 0; i < n; i++) {
        int k = n - 1 - (first + i) % n;
        int ref = k < g->nin ? k : -2 - (k - g->nin);
        tl_dtype own = ref >= 0 ? g->in[ref]->dtype
                                : (tl_dtype)g->step[-2 - ref].dtype;

        if (own == dtype && pick(&g->state, 8) != 0) {
            return (int16_t)ref;
        }
    }
    if (g->nin < TL_TILE_MAX_OPERANDS) {
        g->in[g->nin] = random_input(g, dtype);
        return (int16_t)g->nin++;
    }
    return value_of(g, step, dtype);
}

static tl_dtype any_dtype(program *g)
{
    static const tl_dtype often[] = {TL_f32, TL_f32, TL_f64, TL_f16, TL_bf16};

    return pick(&g->state, 3) == 0
               ? (tl_dtype)pick(&g->state, TL_DTYPE_COUNT)
               : often[pick(&g->state, 5)];
}

static void random_cast(program *g, int i)
{
    tl_tile_step *s = &g->step[i];
    tl_dtype from = any_dtype(g), to = any_dtype(g);

    if (tl_dtype_kind(to) == TL_KIND_INT && pick(&g->state, 3) != 0) {
        to = TL_f32;
    }
    *s = (tl_tile_step){.op = TL_OP_cast, .which = -1, .nin = 1, .to = -1,
                        .compute = (uint8_t)to, .dtype = (uint8_t)to};
    s->in[0] = value_of(g, i, from);
}

/* A row, or its gradient, that computes in the dtype. */
static void random_row(program *g, int i)
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
        .op = (uint16_t)op, .which = (int8_t)which, .to = -1,
        .compute = (uint8_t)compute,
        .dtype = (uint8_t)(row->cls == TL_CLASS_CMP ? TL_bool : dtype),
        .nin = (uint8_t)row->nin, .p = g->p};
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

static void random_program(program *g, uint64_t seed)
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

static void own_shape(const program *g, const tl_tile_step *s, int *rank,
                      int64_t *size)
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

static tl_status run_step(program *g, int i)
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

static tl_status run_steps(program *g)
{
    for (int i = 0; i < g->nsteps; i++) {
        TL_TRY(run_step(g, i));
    }
    return TL_OK;
}

/* Results, some of which take the storage of an input that allows it. */
static void make_results(program *g, bool in_place)
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

static void free_tensors(program *g)
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

/* The bytes of all row-major inputs, one after the other. */
static char *bytes_of_inputs(const program *g, size_t *size)
{
    char *bytes = NULL;

    *size = 0;
    for (int i = 0; i < g->nin; i++) {
        size_t n = (size_t)g->in[i]->numel * tl_dtype_size(g->in[i]->dtype);

        if (tl_tensor_contiguous(g->in[i]) && n > 0) {
            bytes = realloc(bytes, *size + n);
            memcpy(bytes + *size, tl_tensor_data(g->in[i]), n);
            *size += n;
        }
    }
    return bytes;
}

/* The program and its rows agree: on bits, or on the error, and then nothing
 * was overwritten. */
static bool agrees(program *g, uint64_t seed, bool in_place)
{
    tl_status want = run_steps(g), got;
    char said[256] = "";
    size_t size, size_after;
    char *before, *after;
    tl_tile *t;

    if (want != TL_OK) {
        snprintf(said, sizeof said, "%s", ctx_diag.last->message);
    }
    make_results(g, in_place);
    before = bytes_of_inputs(g, &size);
    cr_assert_eq(tl_tile_new(&t, g->rank, g->size, g->step, g->nsteps, g->in,
                             g->nin, g->to, g->nto, &ctx_diag),
                 TL_OK);
    got = tl_tile_run(t, &ctx);
    cr_expect_eq(got, want, "seed %llu: status %d, not %d",
                 (unsigned long long)seed, got, want);
    if (want != TL_OK) {
        after = bytes_of_inputs(g, &size_after);
        cr_expect_str_eq(ctx_diag.last->message, said, "seed %llu",
                         (unsigned long long)seed);
        cr_expect(memcmp(before, after, size) == 0, "seed %llu overwrites",
                  (unsigned long long)seed);
        free(after);
    }
    for (int i = 0; i < g->nsteps && want == TL_OK && got == TL_OK; i++) {
        if (g->step[i].to >= 0) {
            cr_expect(same_elements(g->to[g->step[i].to], g->want[i]),
                      "seed %llu%s: step %d (%s) differs",
                      (unsigned long long)seed, in_place ? " in place" : "",
                      i, tl_op_get((tl_op)g->step[i].op)->name);
        }
    }
    free(before);
    tl_tile_free(t);
    return want == TL_OK;
}

static int run_programs(uint64_t first, int count, bool in_place)
{
    program *g = malloc(sizeof *g);
    int good = 0;

    for (int i = 0; i < count; i++) {
        random_program(g, first + (uint64_t)i);
        good += agrees(g, first + (uint64_t)i, in_place);
        free_tensors(g);
    }
    free(g);
    return good;
}

Test(tile, random_programs_have_the_bits_of_their_rows)
{
    int good = run_programs(1000, 250, false);

    cr_expect(good > 120 && good < 250, "%d of 250 without error", good);
}

Test(tile, results_may_take_the_storage_of_inputs)
{
    run_programs(5000, 250, true);
}

Test(tile, bits_do_not_depend_on_threads)
{
    for (int threads = 2; threads <= 4; threads++) {
        setup_threads(threads);
        run_programs(9000, 60, threads == 3);
    }
}

/* ---- by hand ------------------------------------------------------------- */

#define VALUE(row, ...)                                                      \
    {                                                                        \
        .op = TL_OP_##row, .which = -1, .compute = TL_f32, .dtype = TL_f32,  \
        __VA_ARGS__                                                          \
    }

static tl_tile *make(int rank, const int64_t *size, const tl_tile_step *step,
                     int nsteps, tl_tensor *const *in, int nin,
                     tl_tensor **to, int nto)
{
    tl_tile *t = NULL;

    cr_assert_eq(tl_tile_new(&t, rank, size, step, nsteps, in, nin, to, nto,
                             &ctx_diag),
                 TL_OK);
    return t;
}

Test(tile, replays_with_what_inputs_hold_then)
{
    int64_t size[] = {3};
    tl_tensor *x = tensor_f(TL_f32, 1, size, (double[]){1, 2, 3});
    tl_tensor *two = tensor_f(TL_f32, 0, NULL, (double[]){2});
    tl_tensor *y = new_tensor(TL_f32, 1, size);
    tl_tile_step step[] = {VALUE(mul, .nin = 2, .in = {0, 1}, .to = 0)};
    tl_tile *t = make(1, size, step, 1, (tl_tensor *[]){x, two}, 2, &y, 1);

    cr_expect_eq(tl_tile_run(t, &ctx), TL_OK);
    expect_f(y, (double[]){2, 4, 6}, 0);
    tl_tensor_set_f(x, 1, 10);
    tl_tensor_set_f(two, 0, 3);
    cr_expect_eq(tl_tile_run(t, &ctx), TL_OK);
    expect_f(y, (double[]){3, 30, 9}, 0);
    tl_tile_free(t);
    tl_tensor_unref(x);
    tl_tensor_unref(two);
    tl_tensor_unref(y);
}

/* x is overwritten by the first step's result and read by the second. */
Test(tile, an_input_is_overwritten_after_its_last_read)
{
    int64_t size[] = {5000};
    tl_tensor *x = random_tensor(TL_f32, 1, size, 3);
    tl_tensor *y = new_tensor(TL_f32, 1, size), *to[] = {x, y};
    double first = tl_tensor_get_f(x, 4999);
    tl_tile_step step[] = {VALUE(neg, .nin = 1, .in = {0}, .to = 0),
                           VALUE(add, .nin = 2, .in = {0, 0}, .to = 1)};
    tl_tile *t = make(1, size, step, 2, &x, 1, to, 2);

    cr_expect_eq(tl_tile_run(t, &ctx), TL_OK);
    cr_expect_eq(tl_tensor_get_f(x, 4999), -first);
    cr_expect_eq(tl_tensor_get_f(y, 4999), first + first);
    tl_tile_free(t);
    tl_tensor_unref(x);
    tl_tensor_unref(y);
}

/* The divisor is a step's result of shape [3], in a space of [2, 3]. */
Test(tile, names_the_place_in_the_shape_of_the_row)
{
    int64_t size[] = {2, 3};
    tl_tensor *a = tensor_i(TL_i32, 2, size, (int64_t[]){1, 2, 3, 4, 5, 6});
    tl_tensor *b = tensor_i(TL_i32, 1, size + 1, (int64_t[]){4, 0, 2});
    tl_tensor *y = new_tensor(TL_i32, 2, size);
    tl_tensor *in[] = {a, b};
    tl_tile_step step[] = {
        {.op = TL_OP_floordiv, .which = -1, .compute = TL_i32,
         .dtype = TL_i32, .nin = 2, .in = {1, 1}, .to = -1},
        {.op = TL_OP_mod, .which = -1, .compute = TL_i32, .dtype = TL_i32,
         .nin = 2, .in = {0, -2}, .to = 0}};
    tl_tile *t = make(2, size, step, 2, in, 2, &y, 1);

    cr_expect_neq(tl_tile_run(t, &ctx), TL_OK);
    cr_expect_str_eq(ctx_diag.last->message, "integer `//` by zero at [1]");
    tl_tile_free(t);
    tl_tensor_unref(a);
    tl_tensor_unref(b);
    tl_tensor_unref(y);
}

Test(tile, takes_rows_in_their_dtypes)
{
    cr_expect(tl_tile_takes(TL_OP_add, -1, TL_i32));
    cr_expect(tl_tile_takes(TL_OP_mul, 1, TL_f64));
    cr_expect(tl_tile_takes(TL_OP_cast, -1, TL_f16));
    cr_expect_not(tl_tile_takes(TL_OP_add, -1, TL_f16), "computes in f32");
    cr_expect_not(tl_tile_takes(TL_OP_exp, -1, TL_i32));
    cr_expect_not(tl_tile_takes(TL_OP_add, 2, TL_f32), "no third input");
    cr_expect_not(tl_tile_takes(TL_OP_lt, 0, TL_f32), "no gradient");
    cr_expect_not(tl_tile_takes(TL_OP_sum, -1, TL_f32));
    cr_expect_not(tl_tile_takes(TL_OP_matmul, -1, TL_f32));
}

/* A transposed operand of this size is copied: an allocation more. */
Test(tile, every_allocation_may_fail)
{
    int64_t size[] = {200, 150};
    tl_tensor *a = random_tensor(TL_f32, 2, (int64_t[]){150, 200}, 5);
    tl_tensor *x = swapped(a), *y = new_tensor(TL_f32, 2, size), *want;
    tl_tile_step step[] = {VALUE(exp, .nin = 1, .in = {0}, .to = 0)};
    tl_tile *t = NULL;
    int64_t blocks = tl_mem_live_blocks();
    int failures = 0;

    for (tl_status st = TL_ERR_MEMORY; st != TL_OK; failures++) {
        tl_mem_fail_at((uint64_t)failures + 1, false);
        st = tl_tile_new(&t, 2, size, step, 1, &x, 1, &y, 1, &ctx_diag);
        tl_mem_fail_at(0, false);
        tl_diag_clear(&ctx_diag);
        if (st != TL_OK) {
            cr_expect_null(t);
            cr_expect_eq(tl_mem_live_blocks(), blocks, "failure %d leaks",
                         failures);
        }
    }
    cr_expect_gt(failures, 8);
    cr_expect_eq(tl_tile_run(t, &ctx), TL_OK);
    want = new_tensor(TL_f32, 2, size);
    cr_expect_eq(device.kernel[TL_OP_exp](&ctx, TL_OP_exp, &x, 1, &want, 1,
                                          NULL),
                 TL_OK);
    cr_expect(same_elements(y, want));
    tl_tile_free(t);
    tl_tensor_unref(want);
    tl_tensor_unref(a);
    tl_tensor_unref(x);
    tl_tensor_unref(y);
}
