/* Tile programs over rows have the bits of their rows, run one by one. */
#include "tile_test.h"

#include "runtime/cpu/reduce.h"
#include "runtime/op/loss.h"

TestSuite(tile_rows, .init = setup, .fini = ctx_close);

static const struct {
    int rank, trailing;
    int64_t size[4];
} row_spaces[] = {
    {1, 1, {7}},          {2, 1, {3, 1}},    {2, 1, {1, 300}},
    {2, 1, {50, 10}},     {2, 2, {8, 33}},   {3, 1, {4, 5, 257}},
    {3, 2, {6, 3, 40}},   {2, 1, {20, 768}}, {2, 1, {3, 40000}},
    {4, 1, {3, 5, 2, 9}}, {2, 1, {0, 5}},    {2, 1, {3000, 20}},
};

/* A value broadcast to the whole space. */
static tl_tensor *whole(const program *g, const tl_tensor *t)
{
    int64_t stride[TL_MAX_RANK];
    tl_tensor *x;

    tl_cpu_broadcast(t, g->rank, g->size, stride);
    cr_assert_eq(
        tl_tensor_view(&x, t, g->rank, g->size, stride, t->offset, &ctx_diag),
        TL_OK);
    return x;
}

/* The same elements with the last axes of size 1, or without them. */
static tl_tensor *with_axes(const program *g, tl_tensor *t, int trailing,
                            bool keep)
{
    int64_t size[TL_MAX_RANK], stride[TL_MAX_RANK];
    int rank = g->rank - (keep ? 0 : trailing);
    tl_tensor *x;

    for (int i = 0; i < rank; i++) {
        size[i] = i < g->rank - trailing ? g->size[i] : 1;
    }
    tl_row_major(rank, size, stride);
    cr_assert_eq(
        tl_tensor_view(&x, t, rank, size, stride, t->offset, &ctx_diag),
        TL_OK);
    return x;
}

/* ---- one by one --------------------------------------------------------- */

static void attrs_of(const program *g, int trailing, tl_attrs *at)
{
    tl_attrs_init(at);
    at->keep = true;
    at->axis = (int8_t)(g->rank - 1);
    at->f[0] = g->p[0];
    at->i[0] = trailing;
    for (int i = g->rank - trailing; i < g->rank; i++) {
        at->axes |= (uint16_t)(1 << i);
    }
}

/* How a kernel gets operand `k`: its elements for the whole space, without
 * the axes of the row, or as it is. */
typedef enum form {
    SPREAD,
    SQUEEZED,
    AS_IT_IS
} form;

static form form_of(const tl_tile_step *s, int k)
{
    switch ((tl_op)s->op) {
    case TL_OP_layer_norm:
        return k > 0 ? AS_IT_IS : SPREAD;
    case TL_OP_layer_norm_grad:
        return k < 2 ? SPREAD : k < 4 ? SQUEEZED : AS_IT_IS;
    case TL_OP_cross_entropy:
        return k == 0 ? SPREAD : k == 1 ? SQUEEZED : AS_IT_IS;
    case TL_OP_cross_entropy_grad:
        if (k == 0 && s->p[2] != TL_LOSS_NONE) {
            return AS_IT_IS;
        }
        return k == 1 ? SPREAD : k < 4 ? SQUEEZED : AS_IT_IS;
    default:
        return SPREAD;
    }
}

static void line_attrs(const program *g, int trailing, const tl_tile_step *s,
                       tl_attrs *at)
{
    attrs_of(g, trailing, at);
    at->flag = s->op == TL_OP_layer_norm && s->in[1] == -1;
    if (s->op == TL_OP_cross_entropy || s->op == TL_OP_cross_entropy_grad) {
        at->f[0] = s->p[0];
        at->i[0] = (int64_t)s->p[1];
        at->i[1] = (int64_t)s->p[2];
        at->flag = s->p[3] != 0;
    }
}

/* A row on whole rows; its results after the first go to want[] of the steps
 * that name them. */
static tl_status run_line(program *g, int i, int trailing)
{
    const tl_tile_step *s = &g->step[i];
    bool per_row = s->op == TL_OP_cross_entropy && s->p[2] == TL_LOSS_NONE;
    tl_tensor *in[5] = {NULL}, *out[TL_MAX_OUTPUTS];
    tl_attrs at;
    int nin = 0;
    tl_status st;

    line_attrs(g, trailing, s, &at);
    for (int k = 0; k < s->nin; k++) {
        tl_tensor *t = tensor_of(g, s->in[k]);
        form how = form_of(s, k);

        if (t != NULL) {
            in[nin++] = how == AS_IT_IS   ? tl_tensor_ref(t)
                        : how == SQUEEZED ? with_axes(g, t, trailing, false)
                                          : whole(g, t);
        }
    }
    st = run_op((tl_op)s->op, device.kernel[s->op], in, nin, &at, out);
    for (int k = 0; k < nin; k++) {
        tl_tensor_unref(in[k]);
    }
    for (int k = 0; st == TL_OK && k < tl_op_get((tl_op)s->op)->nout; k++) {
        if (k == 0 && !per_row) {
            g->want[i] = out[0];
        } else {
            g->want[i + k] = with_axes(g, out[k], trailing, true);
            tl_tensor_unref(out[k]);
        }
    }
    return st;
}

static bool is_line(tl_op op)
{
    return tl_op_get(op)->cls == TL_CLASS_RED ||
           (tl_op_get(op)->cls == TL_CLASS_KERN && op != TL_OP_cast);
}

static tl_status run_row_steps(program *g, int trailing)
{
    for (int i = 0; i < g->nsteps; i++) {
        if (g->want[i] != NULL) {
            continue; /* a further result */
        }
        TL_TRY(is_line((tl_op)g->step[i].op) ? run_line(g, i, trailing)
                                             : run_step(g, i));
    }
    return TL_OK;
}

/* ---- random programs ---------------------------------------------------- */

static void add_line(program *g, tl_op op, tl_dtype dtype, int nin)
{
    tl_tile_step *s = &g->step[g->nsteps];

    *s = (tl_tile_step){.op = (uint16_t)op,
                        .which = -1,
                        .to = -1,
                        .dtype = (uint8_t)dtype,
                        .nin = (uint8_t)nin,
                        .p = g->p};
    for (int k = 0; k < nin; k++) {
        s->in[k] = value_of(g, g->nsteps, dtype);
    }
    g->nsteps++;
}

static void random_fold(program *g, int trailing)
{
    tl_dtype dtype = any_dtype(g), to = dtype;
    tl_infer infer = {.diag = &ctx_diag};
    tl_ttype in = {.dtype = dtype, .shape = {.rank = g->rank}}, out;
    tl_attrs at;
    tl_op op;

    do {
        op = (tl_op)pick(&g->state, TL_OP_COUNT);
    } while (tl_op_get(op)->cls != TL_CLASS_RED ||
             tl_op_compute_dtype(op, dtype, &to, &ctx_diag) != TL_OK ||
             to != dtype);
    attrs_of(g, trailing, &at);
    for (int d = 0; d < g->rank; d++) {
        in.shape.dim[d] = tl_dim_num(g->size[d] == 0 ? 1 : g->size[d]);
    }
    cr_assert_eq(tl_op_infer(&infer, op, &in, 1, &at, &out), TL_OK);
    add_line(g, op, dtype, 1);
    g->step[g->nsteps - 1].dtype = (uint8_t)out.dtype;
}

/* An input of the shape of a row, or none. */
static int16_t weight(program *g, int trailing, tl_dtype dtype)
{
    if (pick(&g->state, 3) == 0 || g->nin == TL_TILE_MAX_OPERANDS) {
        return -1;
    }
    g->in[g->nin] = new_tensor(dtype, trailing, g->size + g->rank - trailing);
    set_random(g->in[g->nin], &g->state);
    return (int16_t)g->nin++;
}

/* layer_norm, its statistics as steps, and its gradient. */
static void random_norm(program *g, int trailing, tl_dtype dtype)
{
    int first = g->nsteps;
    uint8_t stat = (uint8_t)tl_dtype_arith(dtype);
    tl_tile_step *s;

    add_line(g, TL_OP_layer_norm, dtype, 1);
    s = &g->step[first];
    s->nin = 3;
    s->in[1] = weight(g, trailing, dtype);
    s->in[2] = weight(g, trailing, dtype);
    for (int k = 1; k <= 2; k++) {
        g->step[g->nsteps++] = (tl_tile_step){.op = TL_OP_layer_norm,
                                              .which = (int8_t)k,
                                              .to = -1,
                                              .nin = 1,
                                              .dtype = stat,
                                              .in = {(int16_t)(-2 - first)}};
    }
    if (pick(&g->state, 2) == 0) {
        add_line(g, TL_OP_layer_norm_grad, dtype, 2);
        s = &g->step[g->nsteps - 1];
        s->nin = 5;
        s->in[2] = (int16_t)(-2 - (first + 1));
        s->in[3] = (int16_t)(-2 - (first + 2));
        s->in[4] = weight(g, trailing, dtype);
    }
}

/* A row-major input with an element a row. */
static int16_t row_input(program *g, tl_dtype dtype)
{
    int64_t size[TL_MAX_RANK];

    memcpy(size, g->size, sizeof size);
    size[g->rank - 1] = 1;
    g->in[g->nin] = new_tensor(dtype, g->rank, size);
    set_random(g->in[g->nin], &g->state);
    return (int16_t)g->nin++;
}

static int16_t random_targets(program *g)
{
    int16_t at = row_input(g, pick(&g->state, 2) == 0 ? TL_i64 : TL_i32);
    tl_tensor *t = g->in[at];

    for (int64_t i = 0; i < t->numel; i++) {
        int n = pick(&g->state, (int)g->size[g->rank - 1]);

        tl_tensor_set_i(t, i, pick(&g->state, 5) == 0 ? -7 : n);
    }
    return at;
}

/* The gradient of the loss that is step `first`. */
static void random_loss_gradient(program *g, int first, tl_dtype dtype)
{
    const tl_tile_step *loss = &g->step[first];
    int16_t upstream;

    if (loss->p[2] == TL_LOSS_NONE) {
        upstream = row_input(g, dtype);
    } else {
        g->in[g->nin] = new_tensor(dtype, 0, NULL);
        set_random(g->in[g->nin], &g->state);
        upstream = (int16_t)g->nin++;
    }
    g->step[g->nsteps++] =
        (tl_tile_step){.op = TL_OP_cross_entropy_grad,
                       .which = -1,
                       .to = -1,
                       .nin = 5,
                       .dtype = (uint8_t)dtype,
                       .p = loss->p,
                       .in = {upstream, loss->in[0], loss->in[1],
                              (int16_t)(-2 - (first + 1)), loss->in[2]}};
}

/* cross_entropy, its lse as a step, and its gradient. */
static void random_loss(program *g, tl_dtype dtype)
{
    static const double smoothings[] = {0, 0, 0.1};
    int first = g->nsteps;
    double *p = g->own_p[first];
    tl_tile_step *s = &g->step[first];

    p[0] = smoothings[pick(&g->state, 3)];
    p[1] = -7;
    p[2] = pick(&g->state, 3);
    p[3] = pick(&g->state, 4) == 0;
    add_line(g, TL_OP_cross_entropy, dtype, 1);
    s->nin = 3;
    s->p = p;
    s->in[1] = random_targets(g);
    s->in[2] = weight(g, 1, dtype);
    g->hidden[first] = p[2] != TL_LOSS_NONE;
    g->step[g->nsteps++] =
        (tl_tile_step){.op = TL_OP_cross_entropy,
                       .which = 1,
                       .to = -1,
                       .nin = 1,
                       .dtype = (uint8_t)tl_dtype_arith(dtype),
                       .in = {(int16_t)(-2 - first)}};
    if (pick(&g->state, 3) != 0) {
        random_loss_gradient(g, first, dtype);
    }
}

static void random_line(program *g, int trailing)
{
    static const tl_op rows[] = {TL_OP_softmax, TL_OP_log_softmax,
                                 TL_OP_softmax_grad, TL_OP_log_softmax_grad};
    static const tl_dtype floats[] = {TL_f32, TL_f32, TL_f64, TL_f16,
                                      TL_bf16};
    tl_dtype dtype = floats[pick(&g->state, 5)];
    int k = pick(&g->state, 4);

    if (k == 2 && trailing == 1 && g->nin < TL_TILE_MAX_OPERANDS - 4) {
        random_loss(g, dtype);
    } else if (k == 0) {
        random_norm(g, trailing, dtype);
    } else if (k == 1 && trailing == 1) {
        k = pick(&g->state, 4);
        add_line(g, rows[k], dtype, k < 2 ? 1 : 2);
    } else {
        random_fold(g, trailing);
    }
}

static int random_rows(program *g, uint64_t seed)
{
    int space, length;

    memset(g, 0, sizeof *g);
    g->state = seed;
    space = pick(&g->state, (int)(sizeof row_spaces / sizeof *row_spaces));
    g->rank = row_spaces[space].rank;
    memcpy(g->size, row_spaces[space].size, sizeof row_spaces[space].size);
    g->p[0] = 0.25;
    g->p[1] = 1.5;
    g->in[g->nin++] = random_input(g, TL_f32);
    length = 1 + pick(&g->state, pick(&g->state, 4) == 0 ? 40 : 10);
    while (g->nsteps < length) {
        int i = g->nsteps, how = pick(&g->state, 3);

        if (how == 0) {
            random_line(g, row_spaces[space].trailing);
            continue;
        }
        do { /* nothing that looks at its data */
            if (how == 1 && pick(&g->state, 3) == 0) {
                random_cast(g, i);
            } else {
                random_row(g, i);
            }
        } while (tl_map_is_checked((tl_op)g->step[i].op,
                                   g->step[i].op == TL_OP_cast
                                       ? tensor_dtype(g, g->step[i].in[0])
                                       : (tl_dtype)g->step[i].compute,
                                   (tl_dtype)g->step[i].dtype) &&
                 g->step[i].which < 0);
        g->nsteps++;
    }
    for (int i = 0; i < g->nsteps; i++) {
        if ((i == g->nsteps - 1 || pick(&g->state, 4) == 0) && g->nto < 8) {
            g->step[i].to = (int16_t)g->nto++;
        }
    }
    return row_spaces[space].trailing;
}

/* What a step gives. */
typedef enum kind {
    WHOLE,
    PER_ROW, /* an element a row: all its operands do, or are numbers */
    NUMBER   /* all its operands are */
} kind;

static kind kind_of_input(const program *g, const tl_tensor *t, int trailing)
{
    int64_t row = 1;

    for (int i = g->rank - trailing; i < g->rank; i++) {
        row *= g->size[i];
    }
    if (t->numel == 1) {
        return NUMBER;
    }
    for (int d = 0; d < trailing; d++) {
        if (d >= t->rank || t->size[t->rank - 1 - d] != 1) {
            return WHOLE;
        }
    }
    return row > 1 ? PER_ROW : WHOLE;
}

static void find_kinds(const program *g, int trailing, kind *kinds)
{
    for (int i = 0; i < g->nsteps; i++) {
        const tl_tile_step *s = &g->step[i];

        kinds[i] = NUMBER;
        for (int k = 0; k < s->nin; k++) {
            kind own = s->in[k] == -1 ? NUMBER
                       : s->in[k] >= 0
                           ? kind_of_input(g, g->in[s->in[k]], trailing)
                           : kinds[-2 - s->in[k]];

            kinds[i] = own < kinds[i] ? own : kinds[i];
        }
        if (is_line((tl_op)s->op)) {
            kinds[i] = tl_op_get((tl_op)s->op)->cls == TL_CLASS_RED ||
                               s->which > 0 || s->op == TL_OP_cross_entropy
                           ? PER_ROW
                           : WHOLE;
        }
    }
}

/* A result for each step that has one: of the space, or an element a row,
 * where the step's kind allows it. */
static void make_row_results(program *g, int trailing, const kind *kinds)
{
    make_results(g, pick(&g->state, 2) == 0);
    for (int i = 0; i < g->nsteps; i++) {
        int to = g->step[i].to;

        if (to >= 0 && g->hidden[i]) {
            tl_tensor_unref(g->to[to]);
            g->to[to] = new_tensor((tl_dtype)g->step[i].dtype, 0, NULL);
        } else if (to >= 0 && kinds[i] != WHOLE && pick(&g->state, 3) != 0) {
            tl_tensor *some = new_tensor((tl_dtype)g->step[i].dtype,
                                         g->rank - trailing, g->size);

            tl_tensor_unref(g->to[to]);
            g->to[to] = with_axes(g, some, trailing, true);
            tl_tensor_unref(some);
        }
    }
}

static bool agrees(program *g, uint64_t seed, int trailing)
{
    kind kinds[TL_TILE_MAX_STEPS];
    tl_tile *t;

    if (run_row_steps(g, trailing) != TL_OK) {
        return false;
    }
    find_kinds(g, trailing, kinds);
    make_row_results(g, trailing, kinds);
    cr_assert_eq(tl_tile_rows_new(&t, g->rank, g->size, trailing, g->step,
                                  g->nsteps, g->in, g->nin, g->to, g->nto,
                                  &ctx_diag),
                 TL_OK);
    cr_expect_eq(tl_tile_run(t, &ctx), TL_OK);
    for (int i = 0; i < g->nsteps; i++) {
        if (g->step[i].to >= 0) {
            cr_expect(same_elements(g->to[g->step[i].to], g->want[i]),
                      "seed %llu: step %d (%s) differs",
                      (unsigned long long)seed, i,
                      tl_op_get((tl_op)g->step[i].op)->name);
        }
    }
    tl_tile_free(t);
    return true;
}

static int run_programs(uint64_t first, int count)
{
    program *g = malloc(sizeof *g);
    int good = 0;

    for (int i = 0; i < count; i++) {
        uint64_t seed = first + (uint64_t)i;
        int trailing = random_rows(g, seed);

        good += agrees(g, seed, trailing);
        free_tensors(g);
        tl_diag_clear(&ctx_diag);
    }
    free(g);
    return good;
}

Test(tile_rows, random_programs_have_the_bits_of_their_rows)
{
    int good = run_programs(1000, 400);

    cr_expect(good > 250, "%d of 400 without error", good);
}

Test(tile_rows, bits_do_not_depend_on_threads)
{
    for (int threads = 2; threads <= 4; threads++) {
        setup_threads(threads);
        run_programs(9000, 100);
    }
}

Test(tile_rows, a_target_that_is_no_class_is_refused)
{
    int64_t size[] = {2, 3};
    static const double p[6] = {0, -100, TL_LOSS_MEAN, 0};
    tl_tensor *x = random_tensor(TL_f32, 2, size, 1);
    tl_tensor *y = tensor_i(TL_i64, 2, (int64_t[]){2, 1}, (int64_t[]){1, 3});
    tl_tensor *loss = new_tensor(TL_f32, 0, NULL);
    tl_tile_step step = {.op = TL_OP_cross_entropy,
                         .which = -1,
                         .nin = 3,
                         .dtype = TL_f32,
                         .in = {0, 1, -1},
                         .p = p};
    tl_tile *t;

    cr_assert_eq(tl_tile_rows_new(&t, 2, size, 1, &step, 1,
                                  (tl_tensor *[]){x, y}, 2, &loss, 1,
                                  &ctx_diag),
                 TL_OK);
    cr_expect_neq(tl_tile_run(t, &ctx), TL_OK);
    cr_expect_str_eq(ctx_diag.last->message,
                     "target 3 at row 1, valid 0..2 or ignore_index -100");
    tl_tile_free(t);
    tl_tensor_unref(x);
    tl_tensor_unref(y);
    tl_tensor_unref(loss);
}

/* Rows of 40000 doubles need scratch of the pool. */
Test(tile_rows, every_allocation_may_fail)
{
    int64_t size[] = {2, 40000};
    static const double p[6] = {0, -100, TL_LOSS_SUM, 0};
    tl_tensor *x = random_tensor(TL_f64, 2, size, 1);
    tl_tensor *y = tensor_i(TL_i64, 2, (int64_t[]){2, 1}, (int64_t[]){1, 3});
    tl_tensor *loss = new_tensor(TL_f64, 0, NULL);
    tl_tile_step step[] = {{.op = TL_OP_add,
                            .which = -1,
                            .nin = 2,
                            .compute = TL_f64,
                            .dtype = TL_f64,
                            .in = {0, 0},
                            .to = -1},
                           {.op = TL_OP_cross_entropy,
                            .which = -1,
                            .nin = 3,
                            .dtype = TL_f64,
                            .in = {-2, 1, -1},
                            .p = p}};
    int64_t blocks = tl_mem_live_blocks();
    tl_tile *t = NULL;
    int failures = 0;

    for (tl_status st = TL_ERR_MEMORY; st != TL_OK; failures++) {
        tl_mem_fail_at((uint64_t)failures + 1, false);
        st = tl_tile_rows_new(&t, 2, size, 1, step, 2, (tl_tensor *[]){x, y},
                              2, &loss, 1, &ctx_diag);
        if (st == TL_OK) {
            st = tl_tile_run(t, &ctx);
            tl_tile_free(t);
        }
        tl_mem_fail_at(0, false);
        tl_diag_clear(&ctx_diag);
        cr_expect(st == TL_OK || tl_mem_live_blocks() <= blocks + 2,
                  "failure %d leaks", failures);
    }
    cr_expect_gt(failures, 10, "those of the program, costs, and scratch");
    tl_tensor_unref(x);
    tl_tensor_unref(y);
    tl_tensor_unref(loss);
}

Test(tile_rows, takes_rows_of_a_length)
{
    cr_expect(tl_tile_rows_takes(TL_OP_sum, 1));
    cr_expect(tl_tile_rows_takes(TL_OP_softmax, TL_REDUCE_ROW));
    cr_expect(tl_tile_rows_takes(TL_OP_cross_entropy_grad, 10));
    cr_expect_not(tl_tile_rows_takes(TL_OP_softmax, TL_REDUCE_ROW + 1));
    cr_expect_not(tl_tile_rows_takes(TL_OP_max, 0));
    cr_expect_not(tl_tile_rows_takes(TL_OP_matmul, 8));
}
