/* test_program_random.c - random graphs: walk, plan and fused plan give the
 * bits of tl_apply, whatever is in place, donated, viewed or fused. */
#include "tests/unit/compiler/program_test.h"

#include "runtime/op/view.h"

TestSuite(program_random, .init = rt_setup, .fini = rt_teardown);

static uint64_t state;

static int pick(int n)
{
    state = state * UINT64_C(6364136223846793005) +
            UINT64_C(1442695040888963407);
    return (int)((state >> 33) % (uint64_t)n);
}

static tl_tensor *random_tensor(void)
{
    static const tl_dtype dtypes[] = {TL_f32, TL_f32, TL_f32, TL_f64,
                                      TL_f16, TL_i64};
    static const int64_t sizes[] = {1, 2, 3, 4, 8, 33};
    int64_t size[3];
    int rank = pick(4);
    tl_tensor *t;

    for (int i = 0; i < rank; i++) {
        size[i] = sizes[pick(6)];
    }
    OK(tl_tensor_new(&t, rt.pool, dtypes[pick(6)], rank, size, &diag));
    for (int64_t i = 0; i < t->numel; i++) {
        tl_tensor_set_f(t, i, (pick(4001) - 2000) / 1000.0);
    }
    return t;
}

/* ---- one more operation ------------------------------------------------- */

static int any(const world *w)
{
    int recent = w->n < 8 ? w->n : 8;

    return pick(3) ? w->n - 1 - pick(recent) : pick(w->n);
}

static int add_unary(world *w)
{
    static const tl_op ops[] = {TL_OP_neg,     TL_OP_exp,  TL_OP_tanh,
                                TL_OP_relu,    TL_OP_gelu, TL_OP_sigmoid,
                                TL_OP_square,  TL_OP_abs,  TL_OP_sin,
                                TL_OP_isnan,   TL_OP_floor};

    return apply1(w, ops[pick(11)], any(w), NULL);
}

static int add_binary(world *w)
{
    static const tl_op ops[] = {TL_OP_add, TL_OP_sub,     TL_OP_mul,
                                TL_OP_div, TL_OP_maximum, TL_OP_lt,
                                TL_OP_eq,  TL_OP_minimum, TL_OP_zmul};

    return apply2(w, ops[pick(9)], any(w), any(w));
}

static int add_where(world *w)
{
    return apply(w, TL_OP_where, (int[]){any(w), any(w), any(w)}, 3, NULL);
}

static int add_cast(world *w)
{
    static const tl_dtype dtypes[] = {TL_f32, TL_f64, TL_f16, TL_bf16,
                                      TL_i32};
    tl_attrs at;

    tl_attrs_init(&at);
    at.dtype = (uint8_t)dtypes[pick(5)];
    return apply1(w, TL_OP_cast, any(w), &at);
}

static int add_permute(world *w)
{
    int x = any(w), rank = w->t[x]->rank;
    tl_attrs at;

    tl_attrs_init(&at);
    at.ndims = (uint16_t)rank;
    for (int i = 0; i < rank; i++) {
        at.dims[i] = tl_dim_num(rank - 1 - i);
    }
    return apply1(w, TL_OP_permute, x, &at);
}

static int add_reshape(world *w)
{
    int x = any(w);
    tl_attrs at;

    tl_attrs_init(&at);
    at.ndims = 1;
    at.dims[0] = tl_dim_num(-1);
    if (pick(2) && w->t[x]->rank > 1) {
        at.ndims = 2;
        at.dims[1] = tl_dim_num(w->t[x]->size[pick(w->t[x]->rank)]);
    }
    return apply1(w, TL_OP_reshape, x, &at);
}

static int add_expand(world *w)
{
    int x = any(w), rank = w->t[x]->rank;
    tl_attrs at;

    tl_attrs_init(&at);
    at.ndims = (uint16_t)(rank + 1);
    at.dims[0] = tl_dim_num(2);
    for (int i = 0; i < rank; i++) {
        at.dims[i + 1] = tl_dim_num(w->t[x]->size[i]);
    }
    return rank < 3 ? apply1(w, TL_OP_expand, x, &at) : -1;
}

static int add_slice(world *w)
{
    int x = any(w), rank = w->t[x]->rank, axis;
    tl_ttype type;
    tl_attrs at;

    if (rank == 0) {
        return -1;
    }
    axis = pick(rank);
    tl_tensor_type(w->t[x], &type);
    tl_attrs_slice_all(&at, &type.shape);
    at.dims[3 * axis] = tl_dim_num(w->t[x]->size[axis] / 2);
    at.dims[3 * axis + 1] =
        tl_dim_num(w->t[x]->size[axis] - w->t[x]->size[axis] / 2);
    return apply1(w, TL_OP_slice, x, &at);
}

static int add_slice_put(world *w)
{
    int x = any(w), y = any(w);
    tl_ttype type;
    tl_attrs at;

    if (w->t[x]->rank == 0) {
        return -1;
    }
    tl_tensor_type(w->t[x], &type);
    tl_attrs_slice_all(&at, &type.shape);
    at.dims[1] = tl_dim_num(1);
    if (w->t[y]->rank > 0 && w->t[y]->size[0] == 1) {
        return apply(w, TL_OP_slice_put, (int[]){x, y}, 2, &at);
    }
    return -1;
}

static int add_reduction(world *w)
{
    static const tl_op ops[] = {TL_OP_sum, TL_OP_mean, TL_OP_max,
                                TL_OP_argmax, TL_OP_logsumexp, TL_OP_var};
    int x = any(w), rank = w->t[x]->rank;
    tl_attrs at;

    tl_attrs_init(&at);
    at.axes = (uint16_t)(rank ? 1 << pick(rank) : 0);
    at.keep = pick(2) != 0;
    at.flag = rank == 0;
    return apply1(w, ops[pick(6)], x, &at);
}

static int add_row_kernel(world *w)
{
    static const tl_op ops[] = {TL_OP_softmax, TL_OP_cumsum,
                                TL_OP_log_softmax, TL_OP_sort};
    int x = any(w), rank = w->t[x]->rank;
    tl_attrs at;

    tl_attrs_init(&at);
    at.axis = (int8_t)(rank ? pick(rank) : 0);
    return rank ? apply1(w, ops[pick(4)], x, &at) : -1;
}

static int add_matmul(world *w)
{
    int x = any(w), y = pick(2) ? any(w) : add_permute(w);

    return y < 0 || w->t[x]->rank == 0 || w->t[y]->rank == 0
               ? -1
               : apply2(w, TL_OP_matmul, x, y);
}

static int add_update(world *w)
{
    tl_attrs at;
    int x = any(w);

    tl_attrs_init(&at);
    at.f[0] = 0.5;
    at.f[2] = 0.9;
    return pick(2) ? apply(w, TL_OP_sgd_update, (int[]){x, any(w)}, 2, &at)
                   : apply(w, TL_OP_momentum_update,
                           (int[]){x, any(w), any(w)}, 3, &at);
}

/* Rows: what the tile machine takes as a whole or folds. */
static int add_rows(world *w)
{
    static const tl_op ops[] = {TL_OP_softmax, TL_OP_log_softmax, TL_OP_sum,
                                TL_OP_mean,    TL_OP_max, TL_OP_layer_norm};
    tl_op op = ops[pick(6)];
    int x = any(w), rank = w->t[x]->rank;
    tl_attrs at;

    if (rank == 0) {
        return -1;
    }
    tl_attrs_init(&at);
    at.axis = (int8_t)(rank - 1);
    at.axes = (uint16_t)(1 << (rank - 1));
    at.keep = true;
    at.i[0] = 1;
    at.f[0] = 1e-5;
    return apply1(w, op, x, &at);
}

typedef int add_fn(world *w);

static add_fn *const add[] = {
    add_unary,     add_unary,      add_unary,   add_unary,  add_binary,
    add_binary,    add_binary,     add_binary,  add_where,  add_cast,
    add_permute,   add_reshape,    add_expand,  add_slice,  add_slice_put,
    add_reduction, add_row_kernel, add_matmul,  add_update, add_reduction,
    add_rows,      add_rows,       add_rows};

static void random_world(world *w, uint64_t seed)
{
    int ops, outputs;

    state = seed * 7919 + 1;
    world_init(w);
    for (int i = 2 + pick(3); i > 0; i--) {
        int x = input(w, random_tensor());

        w->donate[w->nin - 1] = (uint8_t)pick(2);
        if (w->t[x]->rank > 0 && pick(2)) { /* some of equal type */
            input(w, clone(w->t[x]));
            w->donate[w->nin - 1] = (uint8_t)pick(2);
        }
    }
    ops = 1 + pick(40);
    while (ops-- > 0) {
        (void)add[pick((int)(sizeof(add) / sizeof(add[0])))](w);
    }
    outputs = 1 + pick(4);
    for (int i = 0; i < outputs; i++) {
        output(w, i == 0 ? w->n - 1 : any(w));
    }
}

/* ---- gradients ---------------------------------------------------------- */

static add_fn *const smooth[] = {add_unary, add_unary,   add_binary, add_where,
                                 add_binary, add_permute, add_reshape,
                                 add_slice, add_reduction, add_rows,
                                 add_rows,  add_matmul,  add_expand,
                                 add_binary};

/* The loss is the sum of the squares of the last values. */
static int sum_up(world *w)
{
    int total = -1;

    for (int k = 1; k <= 3; k++) {
        int x = w->n - k;
        tl_attrs at;

        tl_attrs_init(&at);
        at.flag = true;
        at.axes = (uint16_t)((1 << w->t[x]->rank) - 1);
        x = w->t[x]->dtype == TL_f32 ? apply1(w, TL_OP_square, x, NULL) : -1;
        x = x < 0 ? x : apply1(w, TL_OP_sum, x, &at);
        total = x < 0 ? total : total < 0 ? x : apply2(w, TL_OP_add, total, x);
    }
    return total;
}

static int leaf(world *w, tl_tape *tape, const tl_gblock *block, int x)
{
    tl_tensor *t;
    tl_gval v;

    OK(tl_grad_leaf(&rt, tape, w->t[x], &t));
    OK(tl_gblock_leaf(&w->b, block, w->v[x], &v));
    return keep(w, v, t);
}

static bool random_gradients(world *w, uint64_t seed)
{
    tl_tensor *t[3], *dt[3];
    tl_gval v[3], dv[3];
    bool reached[3];
    tl_tape *tape;
    tl_gblock block;
    int64_t rows, size[2];
    int loss;

    state = seed * 104729 + 1;
    world_init(w);
    OK(tl_grad_open(&rt, &tape));
    OK(tl_gblock_open(&w->b, &block));
    rows = 1 + pick(40);
    for (int i = 0; i < 3; i++) {
        int x;

        size[0] = i == 1 ? 1 : rows;
        size[1] = i == 2 ? 1 : 7;
        x = input(w, make(TL_f32, 2, size, NULL));
        for (int64_t k = 0; k < w->t[x]->numel; k++) {
            tl_tensor_set_f(w->t[x], k, (pick(4001) - 2000) / 1000.0);
        }
        w->donate[w->nin - 1] = (uint8_t)pick(2);
        x = leaf(w, tape, &block, x);
        t[i] = w->t[x];
        v[i] = w->v[x];
    }
    for (int ops = 3 + pick(25); ops > 0; ops--) {
        (void)smooth[pick((int)(sizeof(smooth) / sizeof(smooth[0])))](w);
    }
    loss = sum_up(w);
    tl_grad_close(&rt, tape);
    if (loss >= 0) {
        OK(tl_grad_backward(&rt, tape, w->t[loss], NULL, t, 3, dt, reached));
        OK(tl_gblock_backward(&w->b, &block, w->v[loss], 0, v, 3, dv,
                              reached));
        output(w, loss);
        for (int i = 0; i < 3; i++) {
            output(w, keep(w, dv[i], dt[i]));
        }
        output(w, any(w));
    } else {
        tl_gblock_close(&w->b, &block);
    }
    tl_tape_free(tape);
    return loss >= 0;
}

Test(program_random, gradients_have_the_bits_of_the_tape)
{
    static world w;
    size_t fused = 0, runs = 0;

    for (uint64_t seed = 1; seed <= 400; seed++) {
        tl_plan_stats stats;

        snprintf(world_label, sizeof(world_label), "seed %d", (int)seed);
        if (random_gradients(&w, seed)) {
            expect_all(&w, &stats);
            fused += stats.fused;
            runs++;
        }
        world_fini(&w);
    }
    cr_expect_gt(runs, 250, "%zu programs", runs);
    cr_expect_gt(fused, 3000, "%zu fused", fused);
}

Test(program_random, gives_the_bits_of_apply)
{
    static world w;
    size_t kernels = 0, fused = 0, donated = 0, copies = 0;
    double worst = 0;

    for (uint64_t seed = 1; seed <= 600; seed++) {
        tl_plan_stats stats;

        random_world(&w, seed);
        snprintf(world_label, sizeof(world_label), "seed %d", (int)seed);
        expect_all(&w, &stats);
        kernels += stats.kernels;
        fused += stats.fused;
        donated += stats.donated;
        copies += stats.copies;
        if (stats.lower_bound > 65536) {
            worst = fmax(worst,
                         (double)stats.arena / (double)stats.lower_bound);
        }
        world_fini(&w);
    }
    cr_expect_gt(fused, 500, "fused: %zu of %zu kernels", fused, kernels);
    cr_expect_gt(donated, 50, "donated: %zu", donated);
    cr_expect_gt(copies, 10, "copies: %zu", copies);
    cr_expect_lt(worst, 1.05, "arena: %g of the bound", worst);
}
