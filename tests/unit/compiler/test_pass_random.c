/* test_pass_random.c - random graphs of what the passes look for: rewritten
 * ones give the bits and the layouts of tl_apply. */
#include "tests/unit/compiler/program_test.h"

#include <math.h>

#include "compiler/pass.h"

TestSuite(pass_random, .init = rt_setup, .fini = rt_teardown);

static uint64_t state;

static int pick(int n)
{
    state = state * UINT64_C(6364136223846793005) +
            UINT64_C(1442695040888963407);
    return (int)((state >> 33) % (uint64_t)n);
}

static double value(void)
{
    static const double odd[] = {0.0,  -0.0, 1.0,      -1.0,  NAN,
                                 INFINITY, -INFINITY, 1e-42, 65504.0, 3e38,
                                 0.5,  -2.0, 255.0,    127.0, 1e-320};

    return pick(2) ? odd[pick(15)] : (pick(4001) - 2000) / 100.0;
}

static tl_tensor *random_tensor(void)
{
    static const tl_dtype dtypes[] = {TL_f32, TL_f32, TL_f32, TL_f64, TL_f16,
                                      TL_bf16, TL_i64, TL_i32, TL_u8,
                                      TL_bool};
    static const int64_t sizes[] = {1, 2, 3, 4, 6};
    int64_t size[3];
    int rank = pick(4);
    tl_tensor *t;

    for (int i = 0; i < rank; i++) {
        size[i] = sizes[pick(5)];
    }
    OK(tl_tensor_new(&t, rt.pool, dtypes[pick(10)], rank, size, &diag));
    for (int64_t i = 0; i < t->numel; i++) {
        double f = value();
        bool real = tl_dtype_is_float(t->dtype);

        tl_tensor_set_f(t, i, real ? f : (double)pick(2));
    }
    return t;
}

static int any(const world *w)
{
    int recent = w->n < 6 ? w->n : 6;

    return pick(3) ? w->n - 1 - pick(recent) : pick(w->n);
}

/* ---- operations --------------------------------------------------------- */

static int add_unary(world *w)
{
    static const tl_op ops[] = {TL_OP_neg,    TL_OP_neg,   TL_OP_neg,
                                TL_OP_relu,   TL_OP_abs,   TL_OP_square,
                                TL_OP_floor,  TL_OP_round, TL_OP_ceil,
                                TL_OP_exp,    TL_OP_isnan, TL_OP_not,
                                TL_OP_copy};

    return apply1(w, ops[pick(13)], any(w), NULL);
}

static int add_full(world *w, tl_dtype dtype)
{
    static const double values[] = {1, 1, -1, 0.0, -0.0, 2, 0.1, 300};
    double f = values[pick(8)];
    tl_attrs at;

    tl_attrs_init(&at);
    at.dtype = (uint8_t)dtype;
    if (tl_dtype_is_float(dtype)) {
        at.f[0] = f;
    } else {
        at.i[0] = dtype == TL_bool ? f != 0 : (int64_t)f;
    }
    return apply(w, TL_OP_full, NULL, 0, &at);
}

/* With a constant of one element, or the value itself, as often as not. */
static int add_binary(world *w)
{
    static const tl_op ops[] = {TL_OP_add, TL_OP_add,     TL_OP_sub,
                                TL_OP_mul, TL_OP_mul,     TL_OP_div,
                                TL_OP_lt,  TL_OP_maximum, TL_OP_minimum};
    int x = any(w), y = pick(2) ? add_full(w, w->t[x]->dtype) : any(w);
    tl_op op = ops[pick(9)];

    return pick(2) ? apply2(w, op, x, y) : apply2(w, op, y, x);
}

static int add_where(world *w)
{
    int c = add_full(w, TL_bool), x = any(w), y = pick(2) ? x : any(w);

    if (pick(2)) {
        c = apply1(w, TL_OP_isnan, x, NULL);
    }
    return apply(w, TL_OP_where, (int[]){c, x, y}, 3, NULL);
}

static int add_cast(world *w)
{
    tl_attrs at;
    int x = any(w);

    for (int i = 0; i <= pick(3) && x >= 0; i++) {
        tl_attrs_init(&at);
        at.dtype = (uint8_t)(pick(3) ? TL_i32 + (uint32_t)pick(6)
                                     : (uint32_t)pick(TL_DTYPE_COUNT));
        x = apply1(w, TL_OP_cast, x, &at);
    }
    return x;
}

static int add_matmul(world *w)
{
    int x = any(w), y = any(w);

    return tl_dtype_is_float(w->t[x]->dtype) ? apply2(w, TL_OP_matmul, x, y)
                                             : -1;
}

/* ---- views -------------------------------------------------------------- */

static void permute_attrs(const tl_tensor *t, tl_attrs *at)
{
    int first = t->rank > 1 ? pick(t->rank) : 0;

    at->ndims = (uint16_t)t->rank;
    for (int i = 0; i < t->rank; i++) {
        at->dims[i] = tl_dim_num((i + first) % t->rank);
    }
    if (t->rank > 1 && pick(2)) {
        tl_dim swap = at->dims[0];

        at->dims[0] = at->dims[1];
        at->dims[1] = swap;
    }
}

static void slice_attrs(const tl_tensor *t, tl_attrs *at)
{
    at->ndims = (uint16_t)(3 * t->rank);
    for (int i = 0; i < t->rank; i++) {
        int64_t n = t->size[i], step = 1 + pick(2), start = 0, size = n;

        if (pick(2)) {
            start = pick((int)n);
            size = (n - start + step - 1) / step;
        } else {
            step = 1;
        }
        if (pick(4) == 0) { // the same backwards
            start += (size - 1) * step;
            step = -step;
        }
        at->dims[3 * i] = tl_dim_num(start);
        at->dims[3 * i + 1] = tl_dim_num(size);
        at->dims[3 * i + 2] = tl_dim_num(step);
    }
}

/* The same sizes, all in one axis, or the last two in one. */
static void reshape_attrs(const tl_tensor *t, tl_attrs *at)
{
    int kind = pick(3);

    at->ndims = (uint16_t)t->rank;
    for (int i = 0; i < t->rank; i++) {
        at->dims[i] = tl_dim_num(t->size[i]);
    }
    if (kind == 0) {
        at->ndims = 1;
        at->dims[0] = tl_dim_num(-1);
    } else if (kind == 1 && t->rank > 1) {
        at->ndims--;
        at->dims[t->rank - 2] =
            tl_dim_num(t->size[t->rank - 2] * t->size[t->rank - 1]);
    }
}

static void expand_attrs(const tl_tensor *t, tl_attrs *at)
{
    int added = t->rank < 4 ? pick(2) : 0;

    at->ndims = (uint16_t)(t->rank + added);
    at->dims[0] = tl_dim_num(2);
    for (int i = 0; i < t->rank; i++) {
        at->dims[i + added] = t->size[i] == 1 && pick(2)
                                  ? tl_dim_num(1 + pick(3))
                                  : tl_dim_num(pick(2) ? t->size[i] : -1);
    }
}

static int add_view(world *w)
{
    static const tl_op ops[] = {TL_OP_permute, TL_OP_permute, TL_OP_slice,
                                TL_OP_reshape, TL_OP_reshape, TL_OP_expand,
                                TL_OP_unsqueeze, TL_OP_squeeze};
    tl_op op = ops[pick(8)];
    int x = any(w);
    const tl_tensor *t = w->t[x];
    tl_attrs at;

    tl_attrs_init(&at);
    switch (op) {
    case TL_OP_permute:
        permute_attrs(t, &at);
        break;
    case TL_OP_slice:
        slice_attrs(t, &at);
        break;
    case TL_OP_reshape:
        reshape_attrs(t, &at);
        break;
    case TL_OP_expand:
        expand_attrs(t, &at);
        break;
    case TL_OP_unsqueeze:
        at.axes = (uint16_t)(t->rank < 4 ? pick(1 << (t->rank + 1)) & 3 : 0);
        break;
    default:
        for (int i = 0; i < t->rank; i++) {
            at.axes |= (uint16_t)((t->size[i] == 1) << i);
        }
        break;
    }
    return apply1(w, op, x, &at);
}

static int add_sum(world *w)
{
    tl_attrs at;
    int x = any(w);

    tl_attrs_init(&at);
    at.keep = pick(2);
    at.axes = (uint16_t)(w->t[x]->rank > 0
                  ? (uint16_t)(1 << pick(w->t[x]->rank))
                  : 0);
    return apply1(w, TL_OP_sum, x, &at);
}

/* ---- regions ------------------------------------------------------------ */

static void forget(world *w, int n)
{
    while (w->n > n) {
        tl_tensor_unref(w->t[--w->n]);
    }
}

/* A host bool that is `yes`: a constant, or an input. */
static tl_gval condition(world *w, bool yes)
{
    tl_gscalar s = {.bits = 0};
    tl_gval v;

    s.b = yes;
    if (pick(2)) {
        return host_input(w, TL_GC_BOOL, s);
    }
    OK(tl_gbuild_num(&w->b, TL_GC_BOOL, s, &v));
    return v;
}

static void add_one(world *w, int depth);

/* Some operations; the last value like x, or x. */
static int arm(world *w, int x, int depth)
{
    int first = w->n, n = pick(4);

    for (int i = 0; i < n; i++) {
        int y;

        if (pick(3) == 0) {
            add_one(w, depth + 1);
        }
        y = w->n > first ? w->n - 1 : x;
        apply1(w, pick(2) ? TL_OP_neg : TL_OP_relu, pick(2) ? x : y, NULL);
    }
    for (int i = w->n; i-- > first;) {
        if (w->t[i]->dtype == w->t[x]->dtype &&
            w->t[i]->rank == w->t[x]->rank &&
            memcmp(w->t[i]->size, w->t[x]->size,
                   (size_t)w->t[x]->rank * sizeof(int64_t)) == 0) {
            return i;
        }
    }
    return x;
}

/* The value of the arm that runs; values inside are forgotten. */
static void add_branch(world *w, int depth)
{
    int x = any(w), n = w->n;
    bool yes = pick(2);
    tl_gval cond = condition(w, yes), v;
    const tl_ttype *type = tl_gbuild_type(&w->b, w->v[x]);
    tl_gvalue out;
    tl_gnew node = {.kind = TL_G_IF, .in = &cond, .nin = 1, .nout = 1,
                    .out = &out, .nregions = 2, .owner = w->b.owner};
    tl_tensor *want = NULL;

    for (int k = 0; k < 2; k++) {
        uint32_t region;
        int r;

        OK(tl_graph_region_open(w->b.g, NULL, 0, &region, &diag));
        node.region = k == 0 ? region : node.region;
        w->b.owner = region;
        r = arm(w, x, depth);
        OK(tl_graph_region_close(w->b.g, region, &w->v[r], 1, &diag));
        w->b.owner = node.owner;
        if ((k == 0) == yes) {
            want = tl_tensor_ref(w->t[r]);
        }
        forget(w, n);
    }
    OK(tl_gbuild_value(&w->b, type, &out));
    OK(tl_graph_add(w->b.g, &node, &v, &diag));
    OK(tl_gbuild_note(&w->b, v, type, 0));
    keep(w, v, want);
}

/* Carries a and b: a = -(-...(a + b)), b as it is or negative; both ways. */
static void add_loop(world *w)
{
    int x = any(w), turns = pick(4), negs = pick(4);
    bool changes = pick(2);
    tl_gscalar count = {.i = turns};
    tl_gval in[3] = {0, w->v[x], w->v[x]}, v, a, b;
    tl_gvalue types[3] = {{.cls = TL_GC_INT}};
    const tl_ttype *type = tl_gbuild_type(&w->b, w->v[x]);
    tl_gnew node = {.kind = TL_G_LOOP, .in = in, .nin = 3, .nout = 3,
                    .out = types, .nregions = 1, .owner = w->b.owner,
                    .data = 2};
    tl_tensor *ta = tl_tensor_ref(w->t[x]), *tb = tl_tensor_ref(w->t[x]);

    if (w->t[x]->dtype == TL_bool) {
        tl_tensor_unref(ta);
        tl_tensor_unref(tb);
        return;
    }
    if (pick(2)) {
        in[0] = host_input(w, TL_GC_INT, count);
    } else {
        OK(tl_gbuild_num(&w->b, TL_GC_INT, count, &in[0]));
    }
    OK(tl_gbuild_value(&w->b, type, &types[1]));
    types[2] = types[1];
    OK(tl_graph_region_open(w->b.g, types, 3, &node.region, &diag));
    a = w->b.g->regions.items[node.region].params + 1;
    b = a + 1;
    OK(tl_gbuild_note(&w->b, a - 1, NULL, 0));
    OK(tl_gbuild_note(&w->b, a, type, 0));
    OK(tl_gbuild_note(&w->b, b, type, 0));
    w->b.owner = node.region;
    OK(tl_gbuild_apply(&w->b, TL_OP_add, (tl_gval[]){a, b}, 2, NULL, &a));
    for (int k = 0; k < negs; k++) {
        OK(tl_gbuild_apply(&w->b, TL_OP_neg, &a, 1, NULL, &a));
    }
    if (changes) {
        OK(tl_gbuild_apply(&w->b, TL_OP_neg, &b, 1, NULL, &b));
    }
    OK(tl_graph_region_close(w->b.g, node.region, (tl_gval[]){a, b}, 2,
                             &diag));
    w->b.owner = node.owner;
    OK(tl_graph_add(w->b.g, &node, &v, &diag));
    OK(tl_gbuild_note(&w->b, v, NULL, 0));
    for (int i = 0; i < turns; i++) {
        tl_tensor *both[2] = {ta, tl_tensor_ref(tb)};

        OK(tl_apply(&rt, TL_OP_add, both, 2, NULL, &ta));
        for (int k = 0; k < negs; k++) {
            OK(tl_apply(&rt, TL_OP_neg, &ta, 1, NULL, &ta));
        }
        if (changes) {
            OK(tl_apply(&rt, TL_OP_neg, &tb, 1, NULL, &tb));
        }
    }
    OK(tl_gbuild_note(&w->b, v + 1, type, 0));
    OK(tl_gbuild_note(&w->b, v + 2, type, 0));
    keep(w, v + 1, ta);
    keep(w, v + 2, tb);
}

static void add_one(world *w, int depth)
{
    switch (pick(8 + (depth < 2))) {
    case 0:
        add_unary(w);
        break;
    case 1:
        add_binary(w);
        break;
    case 2:
        add_where(w);
        break;
    case 3:
        add_cast(w);
        break;
    case 4:
        add_matmul(w);
        break;
    case 5:
        add_sum(w);
        break;
    case 8:
        if (pick(2)) {
            add_branch(w, depth);
        } else {
            add_loop(w);
        }
        break;
    default: // a view, and one of it or an operation on it
        add_view(w);
        if (pick(2)) {
            add_view(w);
        } else {
            add_unary(w);
        }
        break;
    }
}

/* ---- graphs ------------------------------------------------------------- */

static void build(world *w)
{
    int n = 1 + pick(40);

    for (int i = 0; i < 1 + pick(3); i++) {
        input(w, random_tensor());
        if (pick(2)) { // inputs lie in any way
            tl_tensor *t = w->t[w->n - 1], *view;
            tl_attrs at;

            tl_attrs_init(&at);
            permute_attrs(t, &at);
            OK(tl_apply_borrowed(&rt, TL_OP_permute, &t, 1, &at, &view));
            input(w, view);
        }
    }
    for (int i = 0; i < n && w->n < MAX_VALUES - 8; i++) {
        add_one(w, 0);
        if (w->t[w->n - 1]->numel > 4000) {
            break;
        }
    }
    for (int i = 0; i < 1 + pick(4); i++) {
        output(w, any(w));
    }
    OK(tl_graph_settle(w->b.g, &diag));
}

/* The world's graph after all passes, each checked. */
static tl_graph *rewritten(const world *w, tl_pass_counts *counts)
{
    tl_graph *g;
    tl_buf text;

    tl_buf_init(&text);
    tl_graph_print(w->b.g, &text);
    OK(tl_graph_parse(&g, tl_buf_str(&text), text.len, &diag));
    tl_buf_fini(&text);
    for (int p = 0; p < TL_PASS_COUNT; p++) {
        size_t changes;

        OK(tl_pass_run(g, (tl_pass)p, &changes, &diag));
        OK(tl_graph_check(g, &diag));
        counts->changes[p] += changes;
    }
    return g;
}

static void try_one(uint64_t seed, tl_pass_counts *counts)
{
    static world w;
    static result r;

    state = seed;
    (void)snprintf(world_label, sizeof(world_label), "seed %llu",
                   (unsigned long long)seed);
    world_init(&w);
    build(&w);
    for (int walk = 0; walk < 2; walk++) {
        tl_program_options options = {.walk = walk, .no_passes = true};
        tl_program *p;

        OK(tl_program_new(&p, rewritten(&w, counts), &options, &diag));
        result_open(&r, &w);
        OK(tl_program_run(p, &rt, &r.run));
        expect_outputs(&r, &w, walk ? "walk" : "plan");
        result_close(&r);
        tl_program_free(p);
    }
    world_fini(&w);
}

Test(pass_random, rewritten_graphs_have_the_bits_of_apply)
{
    tl_pass_counts counts = {{0}};

    for (uint64_t seed = 1; seed <= 1500; seed++) {
        try_one(seed, &counts);
    }
    cr_expect_gt(counts.changes[TL_PASS_canon], 1000);
    cr_expect_gt(counts.changes[TL_PASS_fold], 100);
    cr_expect_gt(counts.changes[TL_PASS_merge], 1000);
    cr_expect_gt(counts.changes[TL_PASS_dead], 1000);
}
