/* Reductions of tile programs have the bits of the rows run one by one. */
#include "tile_test.h"

TestSuite(tile_reduce, .init = setup, .fini = ctx_close);

/* The result of the last step as an operand of the space's shape. */
static tl_tensor *operand(const program *g)
{
    const tl_tensor *last = g->want[g->nsteps - 1];
    int64_t stride[TL_MAX_RANK];
    tl_tensor *x;

    tl_cpu_broadcast(last, g->rank, g->size, stride);
    cr_assert_eq(tl_tensor_view(&x, last, g->rank, g->size, stride,
                                last->offset, &ctx_diag),
                 TL_OK);
    return x;
}

/* A row that takes the dtype, and axes of it. */
static tl_op random_reduction(program *g, tl_dtype dtype, tl_attrs *at)
{
    tl_dtype compute;
    tl_op op;

    tl_attrs_init(at);
    at->f[0] = 1;
    at->keep = pick(&g->state, 2) != 0;
    do {
        op = (tl_op)pick(&g->state, TL_OP_COUNT);
    } while (tl_op_get(op)->cls != TL_CLASS_RED ||
             tl_op_compute_dtype(op, dtype, &compute, &ctx_diag) != TL_OK ||
             compute != dtype);
    if (g->rank > 0) {
        at->axes = (uint16_t)(1 + pick(&g->state, (1 << g->rank) - 1));
    }
    return op;
}

static bool reads_once(tl_op op)
{
    return op == TL_OP_sum || op == TL_OP_prod || op == TL_OP_mean ||
           op == TL_OP_max || op == TL_OP_min || op == TL_OP_any ||
           op == TL_OP_all;
}

/* Compare a random program and reduction; false where the rows fail. */
static bool agrees(program *g, uint64_t seed)
{
    tl_tensor *x = NULL, *want = NULL, *got = NULL;
    const char *name;
    tl_tile_reduce *t;
    tl_attrs at;
    tl_op op;

    if (run_steps(g) != TL_OK) {
        return false;
    }
    x = operand(g);
    op = random_reduction(g, x->dtype, &at);
    name = tl_op_get(op)->name;
    if (run_op(op, device.kernel[op], &x, 1, &at, &want) != TL_OK) {
        tl_tensor_unref(x);
        return false;
    }
    make_results(g, reads_once(op) && pick(&g->state, 2) == 0);
    got = new_tensor(want->dtype, want->rank, want->size);
    cr_assert_eq(tl_tile_reduce_new(&t, op, &at, g->rank, g->size, g->step,
                                    g->nsteps, g->in, g->nin, g->to, g->nto,
                                    got, &ctx_diag),
                 TL_OK);
    cr_expect_eq(tl_tile_reduce_run(t, &ctx), TL_OK);
    cr_expect(same_elements(got, want), "seed %llu: %s over %x of %s[%d]",
              (unsigned long long)seed, name, at.axes,
              tl_dtype_name(x->dtype), g->rank);
    for (int i = 0; i < g->nsteps; i++) {
        if (g->step[i].to >= 0) {
            cr_expect(same_elements(g->to[g->step[i].to], g->want[i]),
                      "seed %llu: step %d of a %s", (unsigned long long)seed,
                      i, name);
        }
    }
    tl_tile_reduce_free(t);
    tl_tensor_unref(x);
    tl_tensor_unref(want);
    tl_tensor_unref(got);
    return true;
}

static int run_programs(uint64_t first, int count)
{
    program *g = malloc(sizeof *g);
    int good = 0;

    for (int i = 0; i < count; i++) {
        uint64_t seed = first + (uint64_t)i;

        random_program(g, seed);
        if (pick(&g->state, 2) == 0) { /* no further results */
            g->nto = 0;
            for (int k = 0; k < g->nsteps; k++) {
                g->step[k].to = -1;
            }
        }
        good += agrees(g, seed);
        free_tensors(g);
        tl_diag_clear(&ctx_diag);
    }
    free(g);
    return good;
}

Test(tile_reduce, random_reductions_have_the_bits_of_their_rows)
{
    int good = run_programs(1000, 400);

    cr_expect(good > 200, "%d of 400 without error", good);
}

Test(tile_reduce, bits_do_not_depend_on_threads)
{
    for (int threads = 2; threads <= 4; threads++) {
        setup_threads(threads);
        run_programs(9000, 100);
    }
}

/* ---- by hand ------------------------------------------------------------ */

/* (x * x).sum(axes): every row of the table, along, over, and both. */
static void compare_shapes(tl_op op, tl_dtype dtype, int rank,
                           const int64_t *size, uint16_t axes)
{
    tl_tensor *x = random_tensor(dtype, rank, size, 7);
    tl_tensor *y = new_tensor(dtype, rank, size), *want, *got;
    tl_tile_step step = {.op = TL_OP_square,
                         .which = -1,
                         .nin = 1,
                         .compute = (uint8_t)dtype,
                         .dtype = (uint8_t)dtype,
                         .to = -1};
    tl_tile_reduce *t;
    tl_attrs at;

    tl_attrs_init(&at);
    at.axes = axes;
    at.f[0] = 1;
    cr_assert_eq(
        device.kernel[TL_OP_square](&ctx, TL_OP_square, &x, 1, &y, 1, NULL),
        TL_OK);
    cr_assert_eq(run_op(op, device.kernel[op], &y, 1, &at, &want), TL_OK);
    got = new_tensor(want->dtype, want->rank, want->size);
    cr_assert_eq(tl_tile_reduce_new(&t, op, &at, rank, size, &step, 1, &x, 1,
                                    NULL, 0, got, &ctx_diag),
                 TL_OK);
    cr_expect_eq(tl_tile_reduce_run(t, &ctx), TL_OK);
    cr_expect(same_elements(got, want), "%s %s over %x of %lld x %lld",
              tl_op_get(op)->name, tl_dtype_name(dtype), axes,
              (long long)size[0], (long long)size[1]);
    tl_tile_reduce_free(t);
    tl_tensor_unref(x);
    tl_tensor_unref(y);
    tl_tensor_unref(want);
    tl_tensor_unref(got);
}

Test(tile_reduce, every_row_along_and_over)
{
    static const int64_t shapes[][2] = {{5, 7},     {1000, 3},  {3, 1000},
                                        {300, 768}, {70000, 2}, {2, 70000},
                                        {1, 40},    {40, 1},    {600, 33}};
    static const tl_dtype dtypes[] = {TL_f32, TL_f64, TL_i32};

    for (tl_op op = 0; op < TL_OP_COUNT; op++) {
        for (size_t d = 0; d < 3; d++) {
            tl_dtype compute = TL_bool;

            if (tl_op_get(op)->cls != TL_CLASS_RED ||
                tl_op_compute_dtype(op, dtypes[d], &compute, &ctx_diag) !=
                    TL_OK ||
                compute != dtypes[d]) {
                continue;
            }
            for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
                for (uint16_t axes = 1; axes <= 3; axes++) {
                    compare_shapes(op, dtypes[d], 2, shapes[s], axes);
                }
            }
        }
    }
}

Test(tile_reduce, every_allocation_may_fail)
{
    int64_t size[] = {400, 300};
    tl_tensor *x = random_tensor(TL_f32, 2, size, 5);
    tl_tensor *y = new_tensor(TL_f32, 1, size);
    tl_tile_step step = {.op = TL_OP_exp,
                         .which = -1,
                         .nin = 1,
                         .compute = TL_f32,
                         .dtype = TL_f32,
                         .to = -1};
    tl_tile_reduce *t = NULL;
    tl_attrs at;
    int64_t blocks = tl_mem_live_blocks();
    int failures = 0;

    tl_attrs_init(&at);
    at.axes = 2;
    for (tl_status st = TL_ERR_MEMORY; st != TL_OK; failures++) {
        tl_mem_fail_at((uint64_t)failures + 1, false);
        st = tl_tile_reduce_new(&t, TL_OP_sum, &at, 2, size, &step, 1, &x, 1,
                                NULL, 0, y, &ctx_diag);
        if (st == TL_OK) {
            st = tl_tile_reduce_run(t, &ctx);
            tl_tile_reduce_free(t);
        }
        tl_mem_fail_at(0, false);
        tl_diag_clear(&ctx_diag);
        cr_expect(st == TL_OK || tl_mem_live_blocks() <= blocks + 2,
                  "failure %d leaks", failures);
    }
    cr_expect_gt(failures, 9, "those of the program, and scratch");
    tl_tensor_unref(x);
    tl_tensor_unref(y);
}
