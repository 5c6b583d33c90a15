/* Convolutions against seven nested loops in double, over strides, paddings,
 * dilations, groups, dtypes and numbers of axes; the same bits from any number
 * of threads and any layout. */
#include "runtime/cpu/conv.h"
#include "runtime/op/conv.h"
#include "tests/unit/runtime/helper.h"

TestSuite(conv, .init = rt_setup, .fini = rt_teardown);

/* batch, groups, c, o of a group; in, k, stride, before, after, dilation of
 * each axis.  Unused axes are at the end. */
typedef struct shape {
    int n;
    int64_t batch, groups, c, o;
    int64_t in[3], k[3], stride[3], before[3], after[3], dilation[3];
} shape;

static const shape shapes[] = {
    {1, 2, 1, 3, 4, {9}, {3}, {1}, {0}, {0}, {1}},
    {1, 1, 2, 2, 3, {10}, {3}, {2}, {1}, {1}, {2}},
    {1, 3, 1, 1, 1, {40}, {5}, {1}, {2}, {2}, {1}},
    {1, 1, 1, 2, 2, {3000}, {4}, {1}, {1}, {2}, {1}},
    {2, 2, 1, 3, 5, {6, 7}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}},
    {2, 2, 1, 4, 7, {5, 6}, {1, 1}, {1, 1}, {0, 0}, {0, 0}, {1, 1}},
    {2, 1, 1, 4, 7, {7, 6}, {1, 1}, {2, 2}, {0, 0}, {0, 0}, {1, 1}},
    {2, 2, 2, 2, 3, {8, 9}, {3, 2}, {2, 3}, {1, 0}, {1, 0}, {1, 2}},
    {2, 2, 6, 1, 1, {9, 37}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}},
    {2, 1, 5, 1, 2, {9, 11}, {3, 3}, {2, 2}, {1, 1}, {1, 1}, {1, 1}},
    {2, 1, 2, 1, 5, {5, 5}, {3, 3}, {1, 1}, {2, 2}, {2, 2}, {2, 2}},
    {2, 3, 1, 20, 18, {12, 12}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}},
    {2, 2, 1, 3, 16, {24, 24}, {7, 7}, {2, 2}, {3, 3}, {3, 3}, {1, 1}},
    {2, 1, 1, 2, 3, {8, 8}, {2, 2}, {3, 3}, {0, 0}, {-1, 0}, {1, 1}},
    {2, 1, 1, 1, 1, {1, 1}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}},
    {2, 1, 1, 33, 2, {40, 40}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}},
    {2, 5, 1, 16, 32, {8, 8}, {3, 3}, {2, 2}, {1, 1}, {1, 1}, {1, 1}},
    {3, 2, 1, 2, 3, {4, 5, 6}, {2, 3, 3}, {1, 1, 1}, {0, 1, 1}, {0, 1, 1},
     {1, 1, 1}},
    {3, 1, 2, 2, 2, {5, 6, 5}, {3, 2, 2}, {2, 1, 2}, {1, 1, 0}, {1, 1, 0},
     {1, 2, 1}},
};
enum { SHAPES = sizeof(shapes) / sizeof(shapes[0]) };

static int64_t windows(const shape *s, int i)
{
    return i >= s->n ? 1
                     : (s->in[i] + s->before[i] + s->after[i] -
                        s->dilation[i] * (s->k[i] - 1) - 1) / s->stride[i] + 1;
}

static int64_t size_or_1(const shape *s, const int64_t *v, int i)
{
    return i < s->n ? v[i] : 1;
}

static tl_tensor *random_tensor(tl_dtype dtype, int rank, const int64_t *size,
                                uint64_t seed)
{
    tl_tensor *t = make(dtype, rank, size, NULL);

    for (int64_t i = 0; i < t->numel; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        tl_tensor_set_f(t, i, (double)(seed >> 40) * 0x1p-23 - 1);
    }
    return t;
}

/* x, w and a gradient of y, and the attributes. */
typedef struct problem {
    const shape *s;
    tl_attrs at;
    tl_tensor *x, *w, *y;
} problem;

static problem make_problem(const shape *s, tl_dtype dtype)
{
    int64_t x[5] = {s->batch, s->groups * s->c};
    int64_t w[5] = {s->groups * s->o, s->c};
    int64_t y[5] = {s->batch, s->groups * s->o};
    problem p = {.s = s};

    tl_conv_attrs(&p.at, s->n);
    p.at.i[0] = s->groups;
    for (int i = 0; i < s->n; i++) {
        x[i + 2] = s->in[i];
        w[i + 2] = s->k[i];
        y[i + 2] = windows(s, i);
        tl_conv_dims(&p.at, TL_CONV_STRIDE)[i] = tl_dim_num(s->stride[i]);
        tl_conv_dims(&p.at, TL_CONV_BEFORE)[i] = tl_dim_num(s->before[i]);
        tl_conv_dims(&p.at, TL_CONV_AFTER)[i] = tl_dim_num(s->after[i]);
        tl_conv_dims(&p.at, TL_CONV_DILATION)[i] = tl_dim_num(s->dilation[i]);
    }
    p.x = random_tensor(dtype, s->n + 2, x, 1);
    p.w = random_tensor(dtype, s->n + 2, w, 2);
    p.y = random_tensor(dtype, s->n + 2, y, 3);
    return p;
}

static void drop(problem *p)
{
    tl_tensor_unref(p->x);
    tl_tensor_unref(p->w);
    tl_tensor_unref(p->y);
}

static const tl_op rows[] = {TL_OP_conv, TL_OP_conv_transpose,
                             TL_OP_conv_weight};

/* Operands of rows[kind], and the sizes that they do not tell. */
static void operands(problem *p, int kind, tl_tensor **in)
{
    const int64_t *size = kind == 1 ? p->s->in : p->s->k;

    in[0] = kind == 1 ? p->y : p->x;
    in[1] = kind == 2 ? p->y : p->w;
    for (int i = 0; i < p->s->n; i++) {
        tl_conv_dims(&p->at, TL_CONV_SIZE)[i] = tl_dim_num(size[i]);
    }
}

static tl_tensor *run(problem *p, int kind)
{
    tl_tensor *in[2], *out[TL_MAX_OUTPUTS];

    operands(p, kind, in);
    OK(tl_apply_borrowed(&rt, rows[kind], in, 2, &p->at, out));
    return out[0];
}

/* ---- the oracle --------------------------------------------------------- */

/* For every product x[xi] w[wi] of y[yi]: fn(arg, xi, wi, yi). */
typedef void each_fn(void *arg, int64_t xi, int64_t wi, int64_t yi);

/* Index of the element at `at` of [a, b, size...]. */
static int64_t index_of(int64_t a, int64_t channels, int64_t b,
                        const int64_t *size, const int64_t *at)
{
    int64_t res = a * channels + b;

    for (int i = 0; i < 3; i++) {
        res = res * size[i] + at[i];
    }
    return res;
}

/* The taps of one window of output channel `o` of image n. */
static void each_tap(const shape *s, int64_t n, int64_t o, const int64_t *at,
                     each_fn *fn, void *arg)
{
    int64_t in[3], k[3], out[3], tap[3], from[3], group = o / s->o;

    for (int i = 0; i < 3; i++) {
        in[i] = size_or_1(s, s->in, i);
        k[i] = size_or_1(s, s->k, i);
        out[i] = windows(s, i);
    }
    for (int64_t t = 0; t < s->c * k[0] * k[1] * k[2]; t++) {
        int64_t rest = t, c;
        bool inside = true;

        for (int i = 2; i >= 0; i--) {
            tap[i] = rest % k[i];
            rest /= k[i];
            from[i] = i < s->n ? at[i] * s->stride[i] - s->before[i] +
                                     tap[i] * s->dilation[i]
                               : 0;
            inside &= from[i] >= 0 && from[i] < in[i];
        }
        c = rest;
        if (inside) {
            fn(arg, index_of(n, s->groups * s->c, group * s->c + c, in, from),
               index_of(o, s->c, c, k, tap),
               index_of(n, s->groups * s->o, o, out, at));
        }
    }
}

static void each_product(const shape *s, each_fn *fn, void *arg)
{
    for (int64_t n = 0; n < s->batch; n++) {
        for (int64_t o = 0; o < s->groups * s->o; o++) {
            int64_t at[3];

            for (at[0] = 0; at[0] < windows(s, 0); at[0]++) {
                for (at[1] = 0; at[1] < windows(s, 1); at[1]++) {
                    for (at[2] = 0; at[2] < windows(s, 2); at[2]++) {
                        each_tap(s, n, o, at, fn, arg);
                    }
                }
            }
        }
    }
}

typedef struct oracle {
    const problem *p;
    int kind;
    double *sum, *size; /* of the products, and of their absolute values */
} oracle;

static void add_product(void *arg, int64_t xi, int64_t wi, int64_t yi)
{
    const oracle *o = arg;
    double x = tl_tensor_get_f(o->p->x, xi), w = tl_tensor_get_f(o->p->w, wi);
    double y = tl_tensor_get_f(o->p->y, yi);
    double v = o->kind == 0 ? x * w : o->kind == 1 ? y * w : x * y;
    int64_t to = o->kind == 0 ? yi : o->kind == 1 ? xi : wi;

    o->sum[to] += v;
    o->size[to] += fabs(v);
}

static void compare(problem *p, int kind, double eps)
{
    tl_tensor *got = run(p, kind);
    oracle o = {.p = p, .kind = kind};
    double worst = 0;

    o.sum = calloc((size_t)got->numel * 2, sizeof(double));
    cr_assert(o.sum);
    o.size = o.sum + got->numel;
    each_product(p->s, add_product, &o);
    for (int64_t i = 0; i < got->numel; i++) {
        double off = fabs(tl_tensor_get_f(got, i) - o.sum[i]);

        worst = fmax(worst, off / (eps * (o.size[i] + 1e-30)));
    }
    cr_expect_lt(worst, 8, "shape %d, %s of %s: %g eps",
                 (int)(p->s - shapes), tl_op_get(rows[kind])->name,
                 tl_dtype_name(p->x->dtype), worst);
    free(o.sum);
    tl_tensor_unref(got);
}

Test(conv, every_shape_and_dtype_is_the_naive_sum)
{
    static const struct {
        tl_dtype dtype;
        double eps;
    } types[] = {{TL_f32, 0x1p-23}, {TL_f64, 0x1p-52}, {TL_f16, 0x1p-10},
                 {TL_bf16, 0x1p-7}};

    for (int s = 0; s < SHAPES; s++) {
        for (int t = 0; t < 4; t++) {
            problem p = make_problem(&shapes[s], types[t].dtype);

            for (int kind = 0; kind < 3; kind++) {
                compare(&p, kind, types[t].eps);
            }
            drop(&p);
        }
    }
}

/* ---- bits --------------------------------------------------------------- */

static bool same_bits(const tl_tensor *a, const tl_tensor *b)
{
    return memcmp(tl_tensor_data(a), tl_tensor_data(b),
                  (size_t)a->numel * tl_dtype_size(a->dtype)) == 0;
}

/* Our own backend on the operands of a kind, with so many threads. */
static tl_tensor *run_own(problem *p, int kind, int threads)
{
    tl_tensor *of[] = {p->y, p->x, p->w};
    tl_kernel_ctx k = rt.kctx;
    tl_conv c = {.kind = (tl_conv_kind)kind, .dtype = p->x->dtype};
    tl_tensor *res = make(p->x->dtype, of[kind]->rank, of[kind]->size, NULL);

    tl_conv_geo_set(&c.geo, p->x, p->w, p->y, &p->at);
    c.x = tl_tensor_data(kind == 1 ? res : p->x);
    c.w = tl_tensor_data(kind == 2 ? res : p->w);
    c.y = tl_tensor_data(kind == 0 ? res : p->y);
    OK(tl_threads_new(&k.threads, threads, &diag));
    OK(tl_conv_own(&k, &c));
    tl_threads_free(k.threads);
    return res;
}

Test(conv, own_backend_has_the_bits_of_one_thread)
{
    for (int s = 0; s < SHAPES; s++) {
        problem p = make_problem(&shapes[s], s % 2 ? TL_f32 : TL_f64);

        for (int kind = 0; kind < 3; kind++) {
            tl_tensor *one = run_own(&p, kind, 1);

            for (int threads = 2; threads < 6; threads++) {
                tl_tensor *many = run_own(&p, kind, threads);

                cr_expect(same_bits(one, many), "shape %d, kind %d, %d "
                          "threads", s, kind, threads);
                tl_tensor_unref(many);
            }
            tl_tensor_unref(one);
        }
        drop(&p);
    }
}
