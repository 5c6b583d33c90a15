/* gen_matrix.c - products, triangles, and tensors made of nothing. */
#include <math.h>
#include <string.h>

#include "tests/compile/gen_impl.h"

static double product_bound(const gen *g, const val *a, const val *b, dim k)
{
    return fmax(fabs(a->lo), fabs(a->hi)) * fmax(fabs(b->lo), fabs(b->hi)) *
           dim_max(g, k);
}

/* The right side of a product: found, or made to fit. */
static bool right_of(gen *g, const val *a, val *b)
{
    dim d[2];

    for (int i = 0; i < 4; i++) {
        if (pick(g, W_FLOAT, 2, 2, b)) {
            if (dim_same(g, b->d[0], a->d[a->rank - 1])) {
                return true;
            }
            if (dim_same(g, b->d[1], a->d[a->rank - 1]) && !b->once) {
                dim t = b->d[0];

                b->d[0] = b->d[1];
                b->d[1] = t;
                b->text = str(g, "%s.T", b->text);
                return true;
            }
            give_back(g, b);
        }
    }
    d[0] = a->d[a->rank - 1];
    d[1] = dim_of(rng_range(&g->r, 1, 6));
    return leaf(g, a->dtype, 2, d, b);
}

static bool op_matmul(gen *g)
{
    val a = operand(g, W_FLOAT, 1, RANK), b, r;

    if (!right_of(g, &a, &b)) {
        give_back(g, &a);
        return false;
    }
    r = a;
    r.dtype = tl_dtype_join(a.dtype, b.dtype);
    r.d[a.rank - 1] = b.d[1];
    r.hi = product_bound(g, &a, &b, b.d[0]);
    r.lo = -r.hi;
    r.text = str(g, rng_chance(&g->r, 80) ? "(%s @ %s)" : "matmul(%s, %s)",
                 a.text, b.text);
    put(g, r);
    return true;
}

/* x @ x.T, of matrices and batches */
static bool op_gram(gen *g)
{
    val a = operand(g, W_FLOAT, 2, 3), r = a;

    if (a.once || numel_max(g, &a) > 400) {
        give_back(g, &a);
        return false;
    }
    r.d[a.rank - 1] = a.d[a.rank - 2];
    r.hi = product_bound(g, &a, &a, a.d[a.rank - 1]);
    r.lo = -r.hi;
    r.text = a.rank == 2
                 ? str(g, "(%s @ %s.T)", a.text, a.text)
                 : str(g, "(%s @ %s.permute(0, 2, 1))", a.text, a.text);
    put(g, r);
    return true;
}

static bool op_vector(gen *g)
{
    val a = operand(g, W_FLOAT, 1, 2), b, r;
    dim last = a.d[a.rank - 1];

    if (!leaf(g, a.dtype, 1, &last, &b)) {
        give_back(g, &a);
        return false;
    }
    r = a;
    if (a.rank == 1 && rng_chance(&g->r, 40)) {
        r.rank = 2;
        r.d[1] = last;
        r.text = str(g, "outer(%s, %s)", a.text, b.text);
        r.hi = product_bound(g, &a, &b, dim_of(1));
    } else {
        r.rank--;
        r.text = str(g, "(%s @ %s)", a.text, b.text);
        r.hi = product_bound(g, &a, &b, last);
    }
    r.lo = -r.hi;
    put(g, r);
    return true;
}

static bool op_einsum(gen *g)
{
    val a = operand(g, W_FLOAT, 2, 3), b, r;
    bool batch = a.rank == 3;

    if (!right_of(g, &a, &b)) {
        give_back(g, &a);
        return false;
    }
    r = a;
    r.dtype = tl_dtype_join(a.dtype, b.dtype);
    r.d[a.rank - 1] = b.d[1];
    r.hi = product_bound(g, &a, &b, b.d[0]);
    r.lo = -r.hi;
    r.text = str(g, batch ? "einsum(\"b i k, k j -> b i j\", %s, %s)"
                          : "einsum(\"i k, k j -> i j\", %s, %s)",
                 a.text, b.text);
    put(g, r);
    return true;
}

/* The mask of attention with queries of T, and the number of keys. */
static const char *attention_mask(gen *g, dim T, dim *S)
{
    dim d[2] = {T, dim_of(rng_range(&g->r, 1, 5))};
    val m;

    *S = d[1];
    switch (rng_below(&g->r, 5)) {
    case 0:
        return leaf(g, TL_bool, 2, d, &m) ? str(g, ", %s", m.text) : "";
    case 1: /* an added one, that may have a gradient */
    case 2:
        m = operand(g, W_FLOAT, 2, 2);
        *S = m.d[1];
        return str(g, ", %s.sum(axis=0, keep=true)", m.text);
    default:
        return "";
    }
}

bool gen_sdpa(gen *g)
{
    val q = operand(g, W_FLOAT, 2, RANK), k, v, r = q;
    int last = q.rank - 1;
    const char *mask = attention_mask(g, q.d[last - 1], &r.d[last]);
    dim d[RANK];

    memcpy(d, q.d, sizeof(d));
    d[last - 1] = r.d[last];
    if (last == 3 && rng_chance(&g->r, 40)) {
        d[1] = dim_of(1); /* all heads share it */
    }
    if (!leaf(g, q.dtype, q.rank, d, &k)) {
        give_back(g, &q);
        return false;
    }
    if (rng_chance(&g->r, 50)) {
        d[last] = dim_of(rng_range(&g->r, 1, 5));
    }
    if (!leaf(g, q.dtype, q.rank, d, &v)) {
        give_back(g, &q);
        return false;
    }
    r.d[last] = d[last];
    r.text = str(g, "sdpa(%s, %s, %s%s%s%s%s)", q.text, k.text, v.text, mask,
                 rng_chance(&g->r, 40) ? ", causal=true" : "",
                 rng_chance(&g->r, 30)
                     ? str(g, ", scale=%s", number(g, -2, 2)) : "",
                 !g->pure && rng_chance(&g->r, 20) ? ", dropout=0.5" : "");
    r.hi = 12; /* 6, twice that after dropout */
    r.lo = -r.hi;
    put(g, r);
    return true;
}

/* ---- convolutions -------------------------------------------------------- */

/* What a convolution does along its n axes of space, the same for all. */
typedef struct window {
    int n, k, stride, pad, dilation, extra, groups;
    bool transposed;
} window;

/* The size that `in` becomes; false: too small in a call. */
static bool window_size(const gen *g, const window *w, dim in, dim *out)
{
    int span = w->dilation * (w->k - 1) + 1;

    *out = in;
    for (int i = 0; i < g->ncalls; i++) {
        int n = w->transposed
                    ? (in.n[i] - 1) * w->stride - 2 * w->pad + span + w->extra
                    : (in.n[i] + 2 * w->pad - span) / w->stride + 1;

        if (in.n[i] < 1 || n < 1 ||
            (!w->transposed && in.n[i] + 2 * w->pad < span)) {
            return false;
        }
        out->n[i] = n;
    }
    return true;
}

static window random_window(gen *g, int rank)
{
    int batch = rank == 2 || (rank <= 4 && rng_chance(&g->r, 40)) ? 0 : 1;
    window w = {.n = rank - 1 - batch};

    w.k = rng_range(&g->r, 1, 3);
    w.stride = rng_chance(&g->r, 70) ? 1 : 2;
    w.pad = rng_range(&g->r, 0, 1);
    w.dilation = rng_chance(&g->r, 85) ? 1 : 2;
    w.transposed = rng_chance(&g->r, 35);
    w.extra = w.transposed && w.stride == 2 ? rng_range(&g->r, 0, 1) : 0;
    return w;
}

static const char *window_args(gen *g, const window *w)
{
    const char *s = str(g, "stride=%d, pad=%d, dilation=%d", w->stride,
                        w->pad, w->dilation);

    if (w->extra > 0) {
        s = str(g, "%s, output_padding=%d", s, w->extra);
    }
    return w->groups > 1 ? str(g, "%s, groups=%d", s, w->groups) : s;
}

/* The kernel for x, most of them made of a value in scope, so that gradients
 * reach it; and the channels of the result. */
static bool kernel_of(gen *g, window *w, const val *x, val *kernel,
                      dim *channels)
{
    dim c = x->d[x->rank - w->n - 1], d[RANK];
    int o = rng_range(&g->r, 1, 3);
    val v;

    w->groups = dim_is(g, c, 4) || dim_is(g, c, 2)
                    ? rng_range(&g->r, 1, 2) : 1;
    d[0] = w->transposed ? c : dim_of(o * w->groups);
    d[1] = w->transposed ? dim_of(o)
           : w->groups == 2 ? dim_of(c.n[0] / 2) : c;
    for (int i = 0; i < w->n; i++) {
        d[2 + i] = dim_of(w->k);
    }
    *channels = dim_of(o * w->groups);
    if (!leaf(g, x->dtype, 2 + w->n, d, kernel)) {
        return false;
    }
    if (rng_chance(&g->r, 85) && pick_name(g, W_FLOAT, 0, &v) &&
        numel_max(g, &v) > 0) {
        kernel->text = str(g, "(%s + tanh(mean(%s)))", kernel->text, v.text);
        kernel->dtype = tl_dtype_join(kernel->dtype, v.dtype);
        kernel->hi++;
        kernel->lo--;
    }
    return true;
}

bool gen_conv(gen *g)
{
    val x = operand(g, W_FLOAT, 2, RANK), kernel, r = x;
    window w = random_window(g, x.rank);
    int space = x.rank - w.n;
    bool fits = numel_max(g, &x) > 0;
    dim channels;

    for (int i = 0; i < w.n && fits; i++) {
        fits = window_size(g, &w, x.d[space + i], &r.d[space + i]);
    }
    if (!fits || numel_max(g, &r) > 2000 ||
        !kernel_of(g, &w, &x, &kernel, &channels)) {
        give_back(g, &x);
        return false;
    }
    r.d[space - 1] = channels;
    r.dtype = tl_dtype_join(x.dtype, kernel.dtype);
    r.hi = product_bound(g, &x, &kernel, x.d[space - 1]) *
           pow(w.k, w.n);
    r.lo = -r.hi;
    r.text = str(g, "%s%dd(%s, %s, %s)",
                 w.transposed ? "conv_transpose" : "conv", w.n, x.text,
                 kernel.text, window_args(g, &w));
    put(g, r);
    return true;
}

static bool op_triangle(gen *g)
{
    val a = operand(g, W_NUM, 2, RANK);

    a.text = str(g, "%s(%s, %d)", rng_chance(&g->r, 50) ? "tril" : "triu",
                 a.text, rng_range(&g->r, -1, 1));
    a.lo = fmin(a.lo, 0);
    a.hi = fmax(a.hi, 0);
    put(g, a);
    return true;
}

static bool op_make(gen *g)
{
    dim d[2] = {dim_of(rng_range(&g->r, 1, 5)), dim_of(rng_range(&g->r, 1, 5))};
    int n = d[0].n[0], m = d[1].n[0];
    tl_dtype t = rng_chance(&g->r, 30) ? TL_f64 : TL_f32;
    val v;

    if (rng_chance(&g->r, 40) && pick_int(g, 1, 9, &v)) {
        d[0] = v.d[0];
        put(g, tensor_of(TL_i64, 1, d, str(g, "arange(%s)", v.text), 0, 9));
        return true;
    }
    switch (rng_below(&g->r, g->pure ? 4 : 7)) {
    case 0:
        put(g, tensor_of(TL_i64, 1, d, str(g, "arange(%d)", n), 0, n));
        return true;
    case 1:
        put(g, tensor_of(t, 1, d, str(g, "linspace(-1.0, %s, %d, dtype=%s)",
                                      number(g, -2, 4), n, tl_dtype_name(t)),
                         -2, 4));
        return true;
    case 2:
        put(g, tensor_of(t, 2, d, str(g, "eye(%d, %d, dtype=%s)", n, m,
                                      tl_dtype_name(t)), 0, 1));
        return true;
    case 3:
        put(g, tensor_of(TL_f32, 1, d, str(g, "(arange(%d) * 0.5)", n), 0,
                         3));
        return true;
    case 4:
        put(g, tensor_of(TL_i64, 1, d, str(g, "perm(%d)", n), 0, n - 1));
        return true;
    case 5:
        put(g, tensor_of(TL_i64, 2, d, str(g, "randint(-3, 9, %d, %d)", n, m),
                         -3, 8));
        return true;
    default:
        put(g, tensor_of(t, 2, d, str(g, "randn(%d, %d, dtype=%s)", n, m,
                                      tl_dtype_name(t)), -6, 6));
        return true;
    }
}

static bool op_like(gen *g)
{
    val a = operand(g, W_FLOAT, 0, RANK);
    bool ones = rng_chance(&g->r, 50);

    a.text = str(g, "%s(%s)", ones ? "ones_like" : "zeros_like", a.text);
    a.lo = a.hi = ones;
    put(g, a);
    return true;
}

bool gen_linalg(gen *g)
{
    val a = operand(g, W_FLOAT, 2, 2);
    const char *n = dim_text(g, a.d[0]);
    int how = rng_below(&g->r, 3);

    if (n == NULL || a.once || numel_max(g, &a) > 200 ||
        class_of(a.dtype) != W_FLOAT) {
        give_back(g, &a);
        return false;
    }
    const char *s = str(g, "(sigmoid(%s) @ sigmoid(%s).T + 2 * eye(%s))",
                        a.text, a.text, n);

    a.text = how == 0   ? str(g, "cholesky(%s)", s)
             : how == 1 ? str(g, "solve(%s, %s)", s, a.text)
                        : str(g, "qr(%s)[1]", s);
    if (how != 1) {
        a.d[1] = a.d[0];
        a.hi = 40;
        a.lo = -40;
    }
    a.dtype = tl_dtype_join(a.dtype, TL_f32);
    a.hi = 20 * fmax(fabs(a.hi), fabs(a.lo));
    a.lo = -a.hi;
    put(g, a);
    return true;
}

const op_row gen_matrix[] = {
    {op_matmul, 14}, {op_gram, 5},   {op_vector, 6}, {op_einsum, 4},
    {gen_sdpa, 8}, {gen_conv, 12},
    {gen_linalg, 5},
    {op_triangle, 6}, {op_make, 14}, {op_like, 2},   {0},
};
