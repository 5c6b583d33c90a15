/* Every structured row over layouts, empty sizes and failing allocations.
 *
 * A row's example is run on row-major operands; then on the same values as a
 * transposed, strided, offset, reversed and broadcast-like view; the results
 * must have the same bits.  Then each allocation is failed in turn. */
#include "runtime/op/attention.h"
#include "runtime/op/loss.h"
#include "runtime/op/pool.h"
#include "runtime/op/resize.h"
#include "tests/ops/low.h"
#include "tests/unit/runtime/helper.h"

TestSuite(structured_rows, .init = rt_setup, .fini = rt_teardown);

enum {
    MAX_IN = 7
};

typedef struct example {
    tl_op op;
    tl_attrs at;
    int nin;
    tl_tensor *in[MAX_IN];
} example;

static tl_tensor *numbers(tl_dtype dtype, int rank, const int64_t *size)
{
    tl_tensor *t = make(dtype, rank, size, NULL);
    uint64_t seed = (uint64_t)(rank * 977 + dtype);

    for (int64_t i = 0; i < t->numel; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        tl_tensor_set_f(t, i, (double)(seed >> 40) * 0x1p-23 - 1);
    }
    return t;
}

static tl_tensor *ints(int rank, const int64_t *size, int64_t bound)
{
    tl_tensor *t = make(TL_i64, rank, size, NULL);

    for (int64_t i = 0; i < t->numel; i++) {
        tl_tensor_set_i(t, i, (i * 7 + 3) % bound);
    }
    return t;
}

static void set_dims(tl_attrs *at, int n, const int64_t *dims)
{
    at->ndims = (uint16_t)n;
    for (int i = 0; i < n; i++) {
        at->dims[i] = tl_dim_num(dims[i]);
    }
}

/* Operands of an optimiser's update; a second moment is not negative. */
static bool update_example(tl_dtype f, example *x)
{
    x->nin = tl_op_get(x->op)->nin;
    for (int i = 1; i < x->nin; i++) {
        x->in[i] = i == 4 ? ints(0, NULL, 9) : numbers(f, 2, DIMS(6, 5));
    }
    for (int64_t i = 0; x->nin > 3 && i < 30; i++) {
        tl_tensor_set_f(x->in[3], i, fabs(tl_tensor_get_f(x->in[3], i)));
    }
    memcpy(x->at.f, VALUES(.1, .01, .9, .99, 1e-8), 5 * sizeof(double));
    return true;
}

/* Normalisations; their gradients, of long rows. */
static bool norm_example(tl_dtype f, example *x)
{
    bool group = x->op == TL_OP_group_norm_grad;

    x->at.f[0] = 1e-5;
    switch (x->op) {
    case TL_OP_rms_norm:
        x->nin = 2;
        x->in[1] = numbers(f, 1, DIMS(5));
        return true;
    case TL_OP_rms_norm_grad:
        x->nin = 4;
        x->in[1] = numbers(f, 2, DIMS(6, 5));
        x->in[2] = numbers(tl_dtype_arith(f), 1, DIMS(6));
        x->in[3] = numbers(f, 1, DIMS(5));
        return true;
    case TL_OP_batch_norm:
    case TL_OP_group_norm:
        x->nin = 3;
        x->in[1] = numbers(f, 1, DIMS(5));
        x->in[2] = numbers(f, 1, DIMS(5));
        return true;
    case TL_OP_batch_norm_grad:
    case TL_OP_group_norm_grad:
        tl_tensor_unref(x->in[0]);
        x->nin = 5;
        x->in[0] = numbers(f, 3, DIMS(3, 4, 17));
        x->in[1] = numbers(f, 3, DIMS(3, 4, 17));
        x->in[2] = numbers(tl_dtype_arith(f), group ? 2 : 1,
                           group ? DIMS(3, 2) : DIMS(4));
        x->in[3] = numbers(tl_dtype_arith(f), group ? 2 : 1,
                           group ? DIMS(3, 2) : DIMS(4));
        x->in[4] = numbers(f, 1, DIMS(4));
        x->at.i[0] = 2;
        return true;
    default:
        return false;
    }
}

/* Systems with a dominant diagonal, and an upper triangle. */
static bool linalg_example(tl_dtype f, example *x)
{
    x->nin = 1;
    if (x->op == TL_OP_qr) {
        return true;
    }
    if (x->op != TL_OP_cholesky && x->op != TL_OP_solve &&
        x->op != TL_OP_tri_solve) {
        return false;
    }
    tl_tensor_unref(x->in[0]);
    x->in[0] = numbers(f, 3, DIMS(2, 5, 5));
    for (int64_t i = 0; i < 10; i++) {
        tl_tensor_set_f(x->in[0], i / 5 * 25 + i % 5 * 6, 8);
    }
    if (x->op != TL_OP_cholesky) {
        x->nin = 2;
        x->in[1] = numbers(f, 3, DIMS(2, 5, 3));
        x->at.flag = true;
    }
    return true;
}

/* Windows of 3, 2 apart, with padding; 2 axes of f[6, 5] to f[3, 3]. */
static void pool_attrs(tl_attrs *at)
{
    tl_pool_attrs(at, 2);
    for (int i = 0; i < 2; i++) {
        tl_pool_dims(at, TL_POOL_SIZE)[i] = tl_dim_num(3);
        tl_pool_dims(at, TL_POOL_STRIDE)[i] = tl_dim_num(2);
        tl_pool_dims(at, TL_POOL_PAD)[i] = tl_dim_num(1);
        tl_pool_dims(at, TL_POOL_IN)[i] = tl_dim_num(i == 0 ? 6 : 5);
    }
}

static bool pool_example(tl_dtype f, example *x)
{
    x->nin = 1;
    pool_attrs(&x->at);
    switch (x->op) {
    case TL_OP_max_pool:
    case TL_OP_avg_pool:
        return true;
    case TL_OP_max_pool_grad:
        x->nin = 2;
        x->in[1] = ints(2, DIMS(3, 3), 30);
        break;
    case TL_OP_avg_pool_grad:
        break;
    case TL_OP_resize:
    case TL_OP_resize_grad:
        tl_attrs_init(&x->at);
        x->at.i[0] = 2;
        x->at.i[1] = TL_RESIZE_CUBIC;
        set_dims(&x->at, 4, DIMS(3, 7, 6, 5));
        if (x->op == TL_OP_resize) {
            return true;
        }
        break;
    default:
        return false;
    }
    tl_tensor_unref(x->in[0]);
    x->in[0] = x->op == TL_OP_resize_grad ? numbers(f, 2, DIMS(3, 7))
                                          : numbers(f, 2, DIMS(3, 3));
    return true;
}

/* Rows with one operand f[6, 5], and those that need little more. */
static bool simple_example(tl_dtype f, example *x)
{
    switch (x->op) {
    case TL_OP_copy:
    case TL_OP_tril:
    case TL_OP_triu:
    case TL_OP_softmax:
    case TL_OP_log_softmax:
    case TL_OP_sort:
    case TL_OP_unique:
    case TL_OP_nonzero:
        return true;
    case TL_OP_topk:
        set_dims(&x->at, 1, DIMS(2));
        return true;
    case TL_OP_softmax_grad:
    case TL_OP_log_softmax_grad:
        x->nin = 2;
        x->in[1] = numbers(f, 2, DIMS(6, 5));
        x->at.axis = 1;
        return true;
    case TL_OP_matmul:
        x->nin = 2;
        x->in[1] = numbers(f, 2, DIMS(5, 7));
        return true;
    case TL_OP_cat:
        x->nin = 2;
        x->in[1] = numbers(f, 2, DIMS(2, 5));
        return true;
    case TL_OP_slice_put:
        x->nin = 2;
        x->in[1] = numbers(f, 2, DIMS(2, 3));
        set_dims(&x->at, 6, DIMS(1, 2, 3, 0, 3, 2));
        return true;
    case TL_OP_layer_norm:
        x->nin = 3;
        x->in[1] = numbers(f, 1, DIMS(5));
        x->in[2] = numbers(f, 1, DIMS(5));
        x->at.f[0] = 1e-5;
        return true;
    default:
        return norm_example(f, x);
    }
}

static bool index_example(tl_dtype f, example *x)
{
    x->nin = 2;
    switch (x->op) {
    case TL_OP_gather:
        x->in[1] = ints(2, DIMS(3, 5), 6);
        return true;
    case TL_OP_scatter_add:
        x->nin = 3;
        x->in[1] = ints(2, DIMS(3, 5), 6);
        x->in[2] = numbers(f, 2, DIMS(3, 5));
        return true;
    case TL_OP_index:
        x->in[1] = ints(2, DIMS(3, 2), 6);
        x->at.axes = 1;
        return true;
    case TL_OP_index_put:
        x->nin = 3;
        x->in[1] = numbers(f, 2, DIMS(4, 5));
        x->in[2] = ints(1, DIMS(4), 6);
        x->at.axes = 1;
        return true;
    case TL_OP_embedding:
        x->in[1] = ints(2, DIMS(3, 2), 6);
        return true;
    case TL_OP_embedding_grad:
        x->in[1] = ints(1, DIMS(6), 4);
        set_dims(&x->at, 2, DIMS(4, 5));
        return true;
    case TL_OP_one_hot:
        x->nin = 1;
        tl_tensor_unref(x->in[0]);
        x->in[0] = ints(2, DIMS(3, 2), 4);
        set_dims(&x->at, 1, DIMS(4));
        return true;
    default:
        return false;
    }
}

static bool loss_example(tl_dtype f, example *x)
{
    switch (x->op) {
    case TL_OP_cross_entropy:
        x->nin = 3;
        x->in[1] = ints(1, DIMS(6), 5);
        x->in[2] = numbers(f, 1, DIMS(5));
        x->at.i[1] = TL_LOSS_MEAN;
        x->at.f[0] = 0.1;
        return true;
    case TL_OP_cross_entropy_grad:
        x->nin = 4;
        tl_tensor_unref(x->in[0]);
        x->in[0] = numbers(f, 1, DIMS(6));
        x->in[1] = numbers(f, 2, DIMS(6, 5));
        x->in[2] = ints(1, DIMS(6), 5);
        x->in[3] = numbers(tl_dtype_arith(f), 1, DIMS(6));
        return true;
    default:
        return false;
    }
}

/* Attention of x[0] and what it needs, with an added mask; the gradients get
 * the results of a run. */
static bool attention_example(tl_dtype f, example *x)
{
    tl_tensor *in[7] = {NULL, x->in[0], numbers(f, 2, DIMS(7, 5)),
                        numbers(f, 2, DIMS(7, 3)), NULL, NULL,
                        numbers(f, 2, DIMS(6, 7))};
    tl_tensor *four[] = {in[TL_SDPA_Q], in[TL_SDPA_K], in[TL_SDPA_V],
                         in[TL_SDPA_MASK]};

    x->at.flag = true;
    x->at.i[0] = 0;
    if (x->op == TL_OP_sdpa) {
        x->nin = 4;
        memcpy(x->in, four, sizeof(four));
        return true;
    }
    in[TL_SDPA_G] = numbers(f, 2, DIMS(6, 3));
    OK(tl_apply_borrowed(&rt, TL_OP_sdpa, four, 4, &x->at, in + TL_SDPA_Y));
    x->nin = 7;
    memcpy(x->in, in, sizeof(in));
    return true;
}

/* x [2, 4, 6, 5], w [6, 2, 3, 3], y [2, 6, 3, 5] */
static bool conv_example(tl_dtype f, example *x)
{
    tl_tensor *of[] = {numbers(f, 4, DIMS(2, 4, 6, 5)),
                       numbers(f, 4, DIMS(6, 2, 3, 3)),
                       numbers(f, 4, DIMS(2, 6, 3, 5))};
    int absent = x->op == TL_OP_conv             ? 2
                 : x->op == TL_OP_conv_transpose ? 0
                 : x->op == TL_OP_conv_weight    ? 1
                                                 : 3;
    const int64_t *size = absent == 0 ? DIMS(6, 5) : DIMS(3, 3);

    for (int i = 0; i < 3; i++) {
        if (i == absent || absent == 3) {
            tl_tensor_unref(of[i]);
        }
    }
    if (absent == 3) {
        return false;
    }
    x->nin = 2;
    tl_tensor_unref(x->in[0]);
    x->in[0] = of[absent == 0 ? 2 : 0];
    x->in[1] = of[absent == 1 ? 2 : 1];
    set_dims(&x->at, 10, DIMS(2, 1, 1, 1, 1, 1, 1, 1, size[0], size[1]));
    x->at.i[0] = 2;
    return true;
}

/* The row's operands and attributes; false for rows tested elsewhere. */
static bool make_example(tl_op op, tl_dtype f, example *x)
{
    bool update = op == TL_OP_sgd_update || op == TL_OP_momentum_update ||
                  op == TL_OP_adam_update || op == TL_OP_adamw_update;

    bool attention = op == TL_OP_sdpa || op == TL_OP_sdpa_grad ||
                     op == TL_OP_sdpa_mask_grad;

    *x = (example){.op = op, .nin = 1};
    tl_attrs_init(&x->at);
    x->at.i[0] = 1;
    x->in[0] = numbers(f, 2, DIMS(6, 5));
    if (update      ? update_example(f, x)
        : attention ? attention_example(f, x)
               : simple_example(f, x) || index_example(f, x) ||
                     loss_example(f, x) || conv_example(f, x) ||
                     pool_example(f, x) || linalg_example(f, x)) {
        return true;
    }
    tl_tensor_unref(x->in[0]);
    return false;
}

static void drop_example(example *x)
{
    for (int i = 0; i < x->nin; i++) {
        tl_tensor_unref(x->in[i]);
    }
}

/* The same values in other memory: form 0 transposed, 1 every third element,
 * 2 offset, 3 reversed. */
static tl_tensor *laid_out(const tl_tensor *t, int form)
{
    int64_t size[TL_MAX_RANK], stride[TL_MAX_RANK], room = 7, offset = 0;
    tl_tensor *memory, *view;

    for (int i = 0; i < t->rank; i++) {
        int axis = form == 0 ? i : t->rank - 1 - i;

        size[axis] = t->size[axis];
        stride[axis] = i == 0 ? (form == 1 ? 3 : 1) : room;
        room = stride[axis] * size[axis];
    }
    room = (t->rank ? room : 1) + 3;
    if (form == 2) {
        offset = 3;
    }
    for (int i = 0; form == 3 && i < t->rank; i++) {
        offset += (size[i] - 1) * stride[i];
        stride[i] = -stride[i];
    }
    memory = make(t->dtype, 1, &room, NULL);
    for (int64_t e = 0; e < t->numel; e++) {
        int64_t rest = e, at = offset;

        for (int i = t->rank - 1; i >= 0; i--) {
            at += rest % size[i] * stride[i];
            rest /= size[i];
        }
        memcpy((char *)tl_tensor_data(memory) +
                   (size_t)at * tl_dtype_size(t->dtype),
               (const char *)tl_tensor_data(t) +
                   (size_t)e * tl_dtype_size(t->dtype),
               tl_dtype_size(t->dtype));
    }
    OK(tl_tensor_view(&view, memory, t->rank, size, stride, offset, &diag));
    tl_tensor_unref(memory);
    return view;
}

static void expect_same(const tl_tensor *a, const tl_tensor *b,
                        const example *x, int form)
{
    int64_t bad = 0;

    cr_assert_eq(a->numel, b->numel);
    for (int64_t i = 0; i < a->numel; i++) {
        double u = tl_tensor_get_f(a, i), v = tl_tensor_get_f(b, i);

        bad += memcmp(&u, &v, sizeof(u)) != 0;
    }
    cr_expect_eq(bad, 0, "%s of %s, form %d: %lld of %lld differ",
                 tl_op_get(x->op)->name, tl_dtype_name(x->in[0]->dtype), form,
                 (long long)bad, (long long)a->numel);
}

static void check_layouts(example *x)
{
    tl_tensor *want[TL_MAX_OUTPUTS], *got[TL_MAX_OUTPUTS];

    OK(tl_apply_borrowed(&rt, x->op, x->in, x->nin, &x->at, want));
    for (int form = 0; form < 4; form++) {
        tl_tensor *in[MAX_IN];

        for (int i = 0; i < x->nin; i++) {
            in[i] = laid_out(x->in[i], form);
        }
        /* the transposed form of a product is a case of its own */
        if (x->op == TL_OP_matmul && form == 0) {
            for (int i = 0; i < x->nin; i++) {
                tl_tensor_unref(in[i]);
            }
            continue;
        }
        /* saved statistics are row-major by construction */
        OK(tl_apply(&rt, x->op, in, x->nin, &x->at, got));
        for (int r = 0; r < tl_op_get(x->op)->nout; r++) {
            expect_same(want[r], got[r], x, form);
            tl_tensor_unref(got[r]);
        }
    }
    for (int r = 0; r < tl_op_get(x->op)->nout; r++) {
        tl_tensor_unref(want[r]);
    }
}

Test(structured_rows, layouts_do_not_change_bits)
{
    static const tl_dtype dtype[] = {TL_f32, TL_f64, TL_f16, TL_bf16};

    for (int op = 0; op < TL_OP_COUNT; op++) {
        for (int d = 0; d < 4; d++) {
            example x;

            if (tl_op_get((tl_op)op)->cls == TL_CLASS_KERN &&
                make_example((tl_op)op, dtype[d], &x)) {
                check_layouts(&x);
                drop_example(&x);
            }
        }
    }
}

/* No KERN row without an example, but for those of tests/ops that walk other
 * classes, and layer_norm_grad (unit test of the gradient). */
Test(structured_rows, every_row_has_an_example)
{
    static const tl_op elsewhere[] = {
        TL_OP_cast,    TL_OP_cumsum,    TL_OP_cumprod,
        TL_OP_dropout, TL_OP_bernoulli, TL_OP_multinomial,
        TL_OP_linrec,  TL_OP_shift,     TL_OP_layer_norm_grad};

    for (int op = 0; op < TL_OP_COUNT; op++) {
        bool known = false;
        example x;

        if (tl_op_get((tl_op)op)->cls != TL_CLASS_KERN) {
            continue;
        }
        for (size_t i = 0; i < sizeof(elsewhere) / sizeof(*elsewhere); i++) {
            known |= elsewhere[i] == (tl_op)op;
        }
        if (!known) {
            known = make_example((tl_op)op, TL_f32, &x);
            if (known) {
                drop_example(&x);
            }
        }
        cr_expect(known, "`%s` has no example here",
                  tl_op_get((tl_op)op)->name);
    }
}

/* The n-th allocation of the call fails, for every n: E0607, nothing left. */
static void check_failures(example *x)
{
    tl_tensor *in[MAX_IN], *out[TL_MAX_OUTPUTS];
    tl_status st = TL_ERR_MEMORY;
    int failures = 0;

    for (int i = 0; i < x->nin; i++) { /* views take the most scratch */
        in[i] = laid_out(x->in[i], 1);
    }
    for (uint64_t n = 1; st != TL_OK && n < 100; n++) {
        tl_diag_clear(&diag);
        tl_mem_fail_at(n, false);
        st = tl_apply_borrowed(&rt, x->op, in, x->nin, &x->at, out);
        tl_mem_fail_at(0, false);
        if (st != TL_OK) {
            failures++;
            cr_expect_eq(st, TL_ERR_MEMORY, "%s: %s", tl_op_get(x->op)->name,
                         said());
            cr_expect_eq(diag.last->code, TL_E0607);
        }
    }
    cr_expect_eq(st, TL_OK);
    cr_expect_gt(failures, 0);
    for (int r = 0; r < tl_op_get(x->op)->nout; r++) {
        tl_tensor_unref(out[r]);
    }
    for (int i = 0; i < x->nin; i++) {
        tl_tensor_unref(in[i]);
    }
}

Test(structured_rows, every_failed_allocation_is_reported)
{
    for (int op = 0; op < TL_OP_COUNT; op++) {
        for (int d = 0; d < 2; d++) {
            example x;

            if (tl_op_get((tl_op)op)->cls == TL_CLASS_KERN &&
                make_example((tl_op)op, d ? TL_bf16 : TL_f32, &x)) {
                check_failures(&x);
                drop_example(&x);
            }
        }
    }
}

/* ---- empty operands --------------------------------------------------- */

static tl_tensor *empty(tl_dtype dtype, int rank, const int64_t *size)
{
    return make(dtype, rank, size, NULL);
}

static void expect_empty(tl_op op, tl_attrs at, int nin, tl_tensor *a,
                         tl_tensor *b, tl_tensor *c, int64_t numel)
{
    tl_tensor *in[] = {a, b, c}, *out[TL_MAX_OUTPUTS];

    OK(tl_apply(&rt, op, in, nin, &at, out));
    cr_expect_eq(out[0]->numel, numel, "%s", tl_op_get(op)->name);
    for (int64_t i = 0; i < out[0]->numel; i++) {
        cr_expect_eq(tl_tensor_get_f(out[0], i), 0);
    }
    for (int r = 0; r < tl_op_get(op)->nout; r++) {
        tl_tensor_unref(out[r]);
    }
}

Test(structured_rows, empty_operands)
{
    tl_attrs at;

    tl_attrs_init(&at);
    at.axes = 1;
    expect_empty(TL_OP_copy, at, 1, empty(TL_f32, 2, DIMS(0, 3)), 0, 0, 0);
    expect_empty(TL_OP_tril, at, 1, empty(TL_f32, 2, DIMS(3, 0)), 0, 0, 0);
    expect_empty(TL_OP_cat, at, 2, empty(TL_f32, 1, DIMS(0)),
                 empty(TL_f32, 1, DIMS(0)), 0, 0);
    expect_empty(TL_OP_matmul, at, 2, empty(TL_f32, 2, DIMS(2, 0)),
                 empty(TL_f32, 2, DIMS(0, 2)), 0, 4);
    expect_empty(TL_OP_matmul, at, 2, empty(TL_f32, 3, DIMS(0, 2, 3)),
                 empty(TL_f32, 2, DIMS(3, 2)), 0, 0);
    expect_empty(TL_OP_gather, at, 2, empty(TL_f32, 1, DIMS(3)),
                 empty(TL_i64, 1, DIMS(0)), 0, 0);
    expect_empty(TL_OP_scatter_add, at, 3, empty(TL_f32, 1, DIMS(0)),
                 empty(TL_i64, 1, DIMS(0)), empty(TL_f32, 1, DIMS(0)), 0);
    expect_empty(TL_OP_index, at, 2, empty(TL_f32, 2, DIMS(0, 3)),
                 empty(TL_i64, 1, DIMS(0)), 0, 0);
    expect_empty(TL_OP_index, at, 2, empty(TL_f32, 2, DIMS(2, 0)),
                 empty(TL_i64, 1, DIMS(1)), 0, 0);
    expect_empty(TL_OP_index_put, at, 3, empty(TL_f32, 2, DIMS(0, 3)),
                 empty(TL_f32, 2, DIMS(0, 3)), empty(TL_i64, 1, DIMS(0)), 0);
    expect_empty(TL_OP_nonzero, at, 1, empty(TL_bool, 1, DIMS(0)), 0, 0, 0);
    expect_empty(TL_OP_embedding, at, 2, empty(TL_f32, 2, DIMS(3, 4)),
                 empty(TL_i64, 1, DIMS(0)), 0, 0);
    expect_empty(TL_OP_softmax, at, 1, empty(TL_f32, 2, DIMS(0, 3)), 0, 0, 0);
    expect_empty(TL_OP_sdpa, at, 3, empty(TL_f32, 2, DIMS(0, 3)),
                 empty(TL_f32, 2, DIMS(2, 3)), empty(TL_f32, 2, DIMS(2, 3)),
                 0);
    expect_empty(TL_OP_sdpa, at, 3, empty(TL_f32, 2, DIMS(2, 3)),
                 empty(TL_f32, 2, DIMS(0, 3)), empty(TL_f32, 2, DIMS(0, 3)),
                 6);
    expect_empty(TL_OP_sdpa, at, 3, empty(TL_f32, 2, DIMS(2, 3)),
                 empty(TL_f32, 2, DIMS(2, 3)), empty(TL_f32, 2, DIMS(2, 0)),
                 0);
    expect_empty(TL_OP_sort, at, 1, empty(TL_f32, 2, DIMS(0, 3)), 0, 0, 0);
    expect_empty(TL_OP_unique, at, 1, empty(TL_f32, 1, DIMS(0)), 0, 0, 0);
    expect_empty(TL_OP_sgd_update, at, 2, empty(TL_f32, 1, DIMS(0)),
                 empty(TL_f32, 1, DIMS(0)), 0, 0);
    at.ndims = 2;
    at.dims[0] = at.dims[1] = tl_dim_num(2);
    expect_empty(TL_OP_embedding_grad, at, 2, empty(TL_f32, 2, DIMS(0, 2)),
                 empty(TL_i64, 1, DIMS(0)), 0, 4);
    at.ndims = 1;
    at.i[0] = 1;
    expect_empty(TL_OP_layer_norm, at, 1, empty(TL_f32, 2, DIMS(0, 3)), 0, 0,
                 0);
    expect_empty(TL_OP_rms_norm, at, 1, empty(TL_f32, 2, DIMS(0, 3)), 0, 0,
                 0);
    expect_empty(TL_OP_group_norm, at, 1, empty(TL_f32, 2, DIMS(0, 3)), 0, 0,
                 0);
    expect_empty(TL_OP_batch_norm, at, 1, empty(TL_f32, 2, DIMS(3, 0)), 0, 0,
                 0);
}

/* A given-away input is overwritten where the row allows it. */
Test(structured_rows, updates_happen_in_place)
{
    example x;
    tl_tensor *out[TL_MAX_OUTPUTS];
    const void *p, *m, *v;

    cr_assert(make_example(TL_OP_adamw_update, TL_f32, &x));
    p = tl_tensor_data(x.in[0]);
    m = tl_tensor_data(x.in[2]);
    v = tl_tensor_data(x.in[3]);
    OK(tl_apply(&rt, x.op, x.in, x.nin, &x.at, out));
    cr_expect_eq(tl_tensor_data(out[0]), p);
    cr_expect_eq(tl_tensor_data(out[1]), m);
    cr_expect_eq(tl_tensor_data(out[2]), v);
    for (int i = 0; i < 3; i++) {
        tl_tensor_unref(out[i]);
    }
    cr_assert(make_example(TL_OP_index_put, TL_f32, &x));
    p = tl_tensor_data(x.in[0]);
    OK(tl_apply(&rt, x.op, x.in, x.nin, &x.at, out));
    cr_expect_eq(tl_tensor_data(out[0]), p);
    tl_tensor_unref(out[0]);
}

/* ---- bf16 and f16 ------------------------------------------------------ */

Test(structured_rows, low_dtypes_are_f32_rounded)
{
    for (int op = 0; op < TL_OP_COUNT; op++) {
        for (int d = 0; d < 2; d++) {
            example x;

            if (tl_op_get((tl_op)op)->cls == TL_CLASS_KERN &&
                make_example((tl_op)op, d ? TL_bf16 : TL_f16, &x)) {
                check_low(x.op, &x.at, x.in, x.nin);
                drop_example(&x);
            }
        }
    }
}
