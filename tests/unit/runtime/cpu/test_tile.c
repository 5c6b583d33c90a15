/* Tile programs have the bits and the errors of their rows, run one by one by
 * the device's kernels: random programs, and cases by hand. */
#include "tile_test.h"

TestSuite(tile, .init = setup, .fini = ctx_close);

/* ---- random programs ---------------------------------------------------- */

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

static bool is_empty(const program *g)
{
    for (int i = 0; i < g->rank; i++) {
        if (g->size[i] == 0) {
            return true;
        }
    }
    return false;
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

    if (want != TL_OK && is_empty(g)) {
        return false; /* nothing runs, and nothing is refused */
    }
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

/* ---- by hand ------------------------------------------------------------ */

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
    tl_tile_step step[] = {{.op = TL_OP_floordiv,
                            .which = -1,
                            .compute = TL_i32,
                            .dtype = TL_i32,
                            .nin = 2,
                            .in = {1, 1},
                            .to = -1},
                           {.op = TL_OP_mod,
                            .which = -1,
                            .compute = TL_i32,
                            .dtype = TL_i32,
                            .nin = 2,
                            .in = {0, -2},
                            .to = 0}};
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
    cr_expect_eq(
        device.kernel[TL_OP_exp](&ctx, TL_OP_exp, &x, 1, &want, 1, NULL),
        TL_OK);
    cr_expect(same_elements(y, want));
    tl_tile_free(t);
    tl_tensor_unref(want);
    tl_tensor_unref(a);
    tl_tensor_unref(x);
    tl_tensor_unref(y);
}
