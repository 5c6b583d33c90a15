/* Attention against double arithmetic without tiles; the same bits at any
 * number of threads; what is masked out leaves no trace. */
#include "runtime/op/attention.h"
#include "tests/unit/runtime/cpu/kern_test.h"

static void setup(void)
{
    ctx_open(2);
}

TestSuite(attention, .init = setup, .fini = ctx_close);

enum { Q, K, V, MASK, G, OPERANDS };

/* One call: shapes, form of the mask and attributes. */
typedef struct form {
    tl_dtype dtype;
    int64_t batch, heads, key_heads, T, S, E, D;
    char mask; /* 'b'ool, 'a'dded, 'k'eys only (bool [S]), 0 */
    bool causal;
    double scale; /* 0: not given */
} form;

typedef struct call {
    form f;
    tl_attrs at;
    tl_tensor *in[OPERANDS], *y, *lse, *grad[3], *bias;
} call;

static tl_tensor *mask_of(const form *f)
{
    tl_tensor *m;

    switch (f->mask) {
    case 'a':
        return random_tensor(f->dtype, SIZES(f->T, f->S), 5);
    case 'k':
        m = new_tensor(TL_bool, SIZES(f->S));
        break;
    case 'b':
        m = new_tensor(TL_bool, SIZES(f->heads, f->T, f->S));
        break;
    default:
        return NULL;
    }
    for (int64_t i = 0; i < m->numel; i++) {
        /* row 1 of the first head sees nothing */
        bool none = f->mask == 'b' && i >= f->S && i < 2 * f->S;

        tl_tensor_set_i(m, i, !none && i % 3 != 1);
    }
    return m;
}

static void make(call *c, form f)
{
    *c = (call){.f = f};
    tl_attrs_init(&c->at);
    c->at.flag = f.causal;
    c->at.keep = f.scale != 0;
    c->at.f[0] = f.scale;
    c->in[Q] = random_tensor(f.dtype, SIZES(f.batch, f.heads, f.T, f.E), 1);
    c->in[K] = random_tensor(f.dtype,
                             SIZES(f.batch, f.key_heads, f.S, f.E), 2);
    c->in[V] = random_tensor(f.dtype,
                             SIZES(f.batch, f.key_heads, f.S, f.D), 3);
    c->in[MASK] = mask_of(&f);
    c->in[G] = random_tensor(f.dtype, SIZES(f.batch, f.heads, f.T, f.D), 4);
}

/* The kernels' results. */
static void run(call *c)
{
    tl_tensor *in[7] = {c->in[G], c->in[Q], c->in[K], c->in[V]}, *out[2];
    int nin = c->in[MASK] ? 4 : 3;

    cr_assert_eq(RUN(sdpa, c->in, nin, &c->at, out), TL_OK);
    c->y = out[0];
    c->lse = out[1];
    in[TL_SDPA_Y] = c->y;
    in[TL_SDPA_LSE] = c->lse;
    in[TL_SDPA_MASK] = c->in[MASK];
    cr_assert_eq(RUN(sdpa_grad, in, nin + 3, &c->at, c->grad), TL_OK);
    if (c->in[MASK]) {
        cr_assert_eq(RUN(sdpa_mask_grad, in, 7, &c->at, &c->bias), TL_OK);
    }
}

static void drop_results(call *c)
{
    tl_tensor *all[] = {c->y, c->lse, c->grad[0], c->grad[1], c->grad[2],
                        c->bias};

    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
        tl_tensor_unref(all[i]);
    }
}

static void drop(call *c)
{
    drop_results(c);
    for (int i = 0; i < OPERANDS; i++) {
        tl_tensor_unref(c->in[i]);
    }
}

static double get(const tl_tensor *t, int64_t head, int64_t row, int64_t col)
{
    int64_t rows = t->size[t->rank - 2], cols = t->size[t->rank - 1];

    return tl_tensor_get_f(t, (head * rows + row) * cols + col);
}

/* The score of a key as softmax takes it; -inf if it is not seen. */
static double score(const call *c, int64_t head, int64_t t, int64_t s)
{
    const form *f = &c->f;
    int64_t key = head / (f->heads / f->key_heads);
    double x = 0, scale = f->scale ? f->scale : 1 / sqrt((double)f->E);
    const tl_tensor *m = c->in[MASK];

    for (int64_t e = 0; e < f->E; e++) {
        x += get(c->in[Q], head, t, e) * get(c->in[K], key, s, e);
    }
    x *= scale;
    if (f->causal && s > t + f->S - f->T) {
        return (double)-INFINITY;
    }
    switch (f->mask) {
    case 'a':
        return x + tl_tensor_get_f(m, t * f->S + s);
    case 'k':
        return tl_tensor_get_i(m, s) ? x : (double)-INFINITY;
    case 'b':
        return tl_tensor_get_i(m, (head % f->heads * f->T + t) * f->S + s)
                   ? x : (double)-INFINITY;
    default:
        return x;
    }
}

/* Expected values, all in double. */
typedef struct wanted {
    double *y, *dq, *dk, *dv, *p, *dp;
} wanted;

/* Probabilities of a row, and its part in all results. */
static void want_row(const call *c, int64_t head, int64_t t, wanted *w)
{
    const form *f = &c->f;
    int64_t key = head / (f->heads / f->key_heads), row = head * f->T + t;
    double scale = f->scale ? f->scale : 1 / sqrt((double)f->E);
    double max = (double)-INFINITY, sum = 0, delta = 0;

    for (int64_t s = 0; s < f->S; s++) {
        w->p[s] = score(c, head, t, s);
        max = fmax(max, w->p[s]);
    }
    for (int64_t s = 0; s < f->S; s++) {
        w->p[s] = isinf(max) ? 0 : exp(w->p[s] - max);
        sum += w->p[s];
    }
    for (int64_t s = 0; s < f->S; s++) {
        w->p[s] = sum == 0 ? 0 : w->p[s] / sum;
        w->dp[s] = 0;
        for (int64_t d = 0; d < f->D; d++) {
            double g = get(c->in[G], head, t, d), v = get(c->in[V], key, s, d);

            w->y[row * f->D + d] += w->p[s] * v;
            w->dp[s] += g * v;
            w->dv[(key * f->S + s) * f->D + d] += w->p[s] * g;
        }
        delta += w->p[s] * w->dp[s];
    }
    for (int64_t s = 0; s < f->S; s++) {
        double ds = w->p[s] * (w->dp[s] - delta);

        for (int64_t e = 0; e < f->E; e++) {
            w->dq[row * f->E + e] += ds * scale * get(c->in[K], key, s, e);
            w->dk[(key * f->S + s) * f->E + e] +=
                ds * scale * get(c->in[Q], head, t, e);
        }
        w->dp[s] = ds; /* of the scores: the gradient of an added mask */
        if (c->bias) {
            double got = tl_tensor_get_f(c->bias, row * f->S + s);
            double near = f->dtype == TL_f64 ? 1e-13 : 1e-2;

            cr_assert(fabs(got - ds) <= near, "mask [%lld, %lld]: %g is not "
                      "%g", (long long)row, (long long)s, got, ds);
        }
    }
}

static void expect_near(const tl_tensor *got, const double *want,
                        const char *what, const form *f)
{
    double near = f->dtype == TL_f64    ? 1e-12
                  : f->dtype == TL_f32  ? 2e-5
                  : f->dtype == TL_f16  ? 1e-2
                                        : 8e-2;

    for (int64_t i = 0; i < got->numel; i++) {
        double x = tl_tensor_get_f(got, i);

        cr_assert(fabs(x - want[i]) <= near * fmax(1, fabs(want[i])),
                  "%s of %s, T %lld S %lld, [%lld]: %.9g is not %.9g", what,
                  tl_dtype_name(f->dtype), (long long)f->T, (long long)f->S,
                  (long long)i, x, want[i]);
    }
}

static void check(form f)
{
    wanted w;
    call c;

    make(&c, f);
    run(&c);
    w.y = calloc((size_t)c.y->numel, sizeof(double));
    w.dq = calloc((size_t)c.in[Q]->numel, sizeof(double));
    w.dk = calloc((size_t)c.in[K]->numel, sizeof(double));
    w.dv = calloc((size_t)c.in[V]->numel, sizeof(double));
    w.p = calloc((size_t)f.S, sizeof(double));
    w.dp = calloc((size_t)f.S, sizeof(double));
    cr_assert(w.y && w.dq && w.dk && w.dv && w.p && w.dp);
    for (int64_t head = 0; head < f.batch * f.heads; head++) {
        for (int64_t t = 0; t < f.T; t++) {
            want_row(&c, head, t, &w);
        }
    }
    expect_near(c.y, w.y, "y", &f);
    expect_near(c.grad[0], w.dq, "dq", &f);
    expect_near(c.grad[1], w.dk, "dk", &f);
    expect_near(c.grad[2], w.dv, "dv", &f);
    free(w.y);
    free(w.dq);
    free(w.dk);
    free(w.dv);
    free(w.p);
    free(w.dp);
    drop(&c);
}

/* One row and one key, around one tile, several tiles with a rest. */
Test(attention, sizes)
{
    static const int64_t n[] = {1, 2, 7, 63, 65, 129, 200};

    for (int t = 0; t < 7; t++) {
        for (int s = 0; s < 7; s++) {
            form f = {TL_f32, 1, 2, 2, n[t], n[s], 5, 3, 0, false, 0};

            check(f);
            f.causal = true;
            check(f);
        }
    }
    check((form){TL_f32, 1, 1, 1, 70, 300, 64, 64, 0, true, 0});
    check((form){TL_f32, 1, 1, 1, 300, 70, 17, 33, 0, true, 0});
}

Test(attention, dtypes_and_groups)
{
    static const tl_dtype dtype[] = {TL_f32, TL_f64, TL_f16, TL_bf16};

    for (int d = 0; d < 4; d++) {
        check((form){dtype[d], 2, 6, 2, 70, 140, 8, 5, 0, true, 0});
        check((form){dtype[d], 2, 4, 1, 5, 9, 4, 4, 'b', false, 0.3});
    }
}

Test(attention, masks)
{
    static const char mask[] = {'b', 'a', 'k'};

    for (int m = 0; m < 3; m++) {
        for (int causal = 0; causal < 2; causal++) {
            check((form){TL_f64, 2, 2, 1, 67, 131, 4, 6, mask[m], causal, 0});
            check((form){TL_f32, 1, 2, 2, 67, 131, 4, 6, mask[m], causal, 2});
        }
    }
}

static void expect_equal(const tl_tensor *a, const tl_tensor *b)
{
    for (int64_t i = 0; a && i < a->numel; i++) {
        cr_assert_eq(tl_tensor_get_f(a, i), tl_tensor_get_f(b, i));
    }
}

Test(attention, threads_do_not_change_bits)
{
    form f = {TL_f32, 1, 4, 2, 700, 900, 16, 24, 'a', true, 0};
    call one, many;

    for (int p = 0; p < 2; p++) {
        make(&one, f);
        one.at.f[1] = p * 0.25;
        one.at.i[0] = 7;
        many = one;
        run(&one);
        for (int n = 1; n < 6; n += 2) {
            tl_threads *before = ctx.threads;

            cr_assert_eq(tl_threads_new(&ctx.threads, n, &ctx_diag), TL_OK);
            run(&many);
            expect_equal(one.y, many.y);
            expect_equal(one.lse, many.lse);
            for (int i = 0; i < 3; i++) {
                expect_equal(one.grad[i], many.grad[i]);
            }
            expect_equal(one.bias, many.bias);
            drop_results(&many);
            tl_threads_free(ctx.threads);
            ctx.threads = before;
        }
        drop(&one);
    }
}

/* Keys and values that nobody may see hold what they want: inf, nan. */
Test(attention, what_is_masked_out_does_not_leak)
{
    static const double bad[] = {INFINITY, -INFINITY, NAN};

    for (int b = 0; b < 3; b++) {
        form f = {TL_f32, 1, 1, 1, 70, 150, 4, 4, 'k', b == 1, 0};
        call c, clean;

        make(&clean, f);
        make(&c, f);
        for (int64_t s = 1; s < 150; s += 3) { /* masked by mask_of */
            for (int e = 0; e < 4; e++) {
                tl_tensor_set_f(c.in[K], s * 4 + e, bad[b]);
                tl_tensor_set_f(c.in[V], s * 4 + e, bad[b]);
            }
        }
        run(&clean);
        run(&c);
        for (int64_t i = 0; i < c.y->numel; i++) {
            cr_assert_float_eq(tl_tensor_get_f(c.y, i),
                               tl_tensor_get_f(clean.y, i), 1e-6);
        }
        for (int i = 0; i < 3; i++) {
            for (int64_t k = 0; k < c.grad[i]->numel; k++) {
                cr_assert_float_eq(tl_tensor_get_f(c.grad[i], k),
                                   tl_tensor_get_f(clean.grad[i], k), 1e-5);
            }
        }
        drop(&c);
        drop(&clean);
    }
}

/* A key that later queries may not see passes its inf to the others only. */
Test(attention, an_infinite_value_reaches_those_who_see_it)
{
    form f = {TL_f32, 1, 1, 1, 3, 3, 2, 2, 0, true, 0};
    call c;

    make(&c, f);
    tl_tensor_set_f(c.in[V], 4, INFINITY);
    run(&c);
    for (int64_t i = 0; i < 4; i++) {
        cr_expect(isfinite(tl_tensor_get_f(c.y, i)));
    }
    cr_expect_eq(tl_tensor_get_f(c.y, 4), INFINITY);
    cr_expect(isfinite(tl_tensor_get_f(c.y, 5)));
    drop(&c);
}

/* Dropout of ones: each row's weights sum to 1 / (1 - p) of what is kept, in
 * all about 1; the gradient of v has the same weights. */
Test(attention, dropout)
{
    form f = {TL_f32, 1, 2, 2, 100, 200, 4, 1, 0, false, 0};
    double sum = 0, from_v = 0;
    call c;

    make(&c, f);
    c.at.f[1] = 0.25;
    for (int64_t i = 0; i < c.in[V]->numel; i++) {
        tl_tensor_set_f(c.in[V], i, 1);
    }
    for (int64_t i = 0; i < c.in[G]->numel; i++) {
        tl_tensor_set_f(c.in[G], i, 1);
    }
    run(&c);
    for (int64_t i = 0; i < c.y->numel; i++) {
        sum += tl_tensor_get_f(c.y, i);
    }
    for (int64_t i = 0; i < c.grad[2]->numel; i++) {
        from_v += tl_tensor_get_f(c.grad[2], i);
    }
    cr_expect_float_eq(sum / 200, 1, 0.01);
    cr_expect_float_eq(from_v, sum, 1e-3);
    cr_expect_neq(tl_tensor_get_f(c.y, 0), 1);
    drop(&c);
}
