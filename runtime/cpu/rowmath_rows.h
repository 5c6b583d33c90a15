/* rowmath_rows.h - the functions of rowmath.h for one type.
 *
 * Not an ordinary header: rowmath.c defines REAL (float or double), NAME(fn)
 * (fn_f32 or fn_f64), DTYPE and FN(fn) (tl_fn_f32) and includes it. */

/* A row in leaves, joined like the digits of a binary counter: `leaf` values
 * of complete subtrees wait in `part`. */
typedef struct NAME(tree) {
    REAL part[TREE_LEVELS];
    int depth;
    int64_t leaves;
} NAME(tree);

static void NAME(tree_add)(NAME(tree) *t, REAL leaf)
{
    for (int64_t i = t->leaves++; i & 1; i >>= 1) {
        leaf = t->part[--t->depth] + leaf;
    }
    t->part[t->depth++] = leaf;
}

static REAL NAME(tree_sum)(NAME(tree) *t)
{
    REAL sum = t->depth > 0 ? t->part[--t->depth] : 0;

    while (t->depth > 0) {
        sum = t->part[--t->depth] + sum;
    }
    return sum;
}

static REAL NAME(leaf_sum)(const REAL *x, int64_t n)
{
    REAL sum;

    TL_ISA(tl_fold_get)(DTYPE, TL_FOLD_SUM)->leaf(x, n, &sum);
    return sum;
}

static int64_t NAME(leaf_size)(int64_t left)
{
    return left < TL_LEAF ? left : TL_LEAF;
}

static REAL NAME(row_sum)(int64_t n, const REAL *x)
{
    NAME(tree) t = {.depth = 0};

    for (int64_t i = 0; i < n; i += TL_LEAF) {
        NAME(tree_add)(&t, NAME(leaf_sum)(x + i, NAME(leaf_size)(n - i)));
    }
    return NAME(tree_sum)(&t);
}

/* The largest element; NaN wins. */
static REAL NAME(row_max)(int64_t n, const REAL *x)
{
    REAL max = -(REAL)INFINITY;

    for (int64_t i = 0; i < n; i += TL_LEAF) {
        REAL leaf;

        TL_ISA(tl_fold_get)(DTYPE, TL_FOLD_MAX)
            ->leaf(x + i, NAME(leaf_size)(n - i), &leaf);
        max = max >= leaf ? max : leaf > max ? leaf : max + leaf;
    }
    return max;
}

/* sum(exp(x - max)); the terms go to `to` unless it is NULL. */
static REAL NAME(exp_sum)(int64_t n, const REAL *x, REAL max, REAL *to)
{
    NAME(tree) t = {.depth = 0};
    REAL tile[TL_LEAF];

    for (int64_t i = 0; i < n; i += TL_LEAF) {
        int64_t m = NAME(leaf_size)(n - i);
        REAL *y = to ? to + i : tile;

        TL_INDEPENDENT
        for (int64_t j = 0; j < m; j++) {
            y[j] = FN(exp)(x[i + j] - max);
        }
        NAME(tree_add)(&t, NAME(leaf_sum)(y, m));
    }
    return NAME(tree_sum)(&t);
}

/* ---- softmax ----------------------------------------------------------- */

static void NAME(softmax)(void *arg, int64_t line, int64_t n,
                          const void *const *in, void *const *out)
{
    const REAL *x = in[0];
    REAL *y = out[0];
    REAL sum = NAME(exp_sum)(n, x, NAME(row_max)(n, x), y);

    (void)arg;
    (void)line;
    TL_INDEPENDENT
    for (int64_t i = 0; i < n; i++) {
        y[i] = y[i] / sum;
    }
}

static void NAME(log_softmax)(void *arg, int64_t line, int64_t n,
                              const void *const *in, void *const *out)
{
    const REAL *x = in[0];
    REAL *y = out[0];
    REAL max = NAME(row_max)(n, x);
    REAL log_sum = FN(log)(NAME(exp_sum)(n, x, max, NULL));

    (void)arg;
    (void)line;
    TL_INDEPENDENT
    for (int64_t i = 0; i < n; i++) {
        y[i] = (x[i] - max) - log_sum;
    }
}

/* dx = y (g - sum(g y)) */
static void NAME(softmax_grad)(void *arg, int64_t line, int64_t n,
                               const void *const *in, void *const *out)
{
    const REAL *y = in[0], *g = in[1];
    REAL *dx = out[0], tile[TL_LEAF], sum;
    NAME(tree) t = {.depth = 0};

    (void)arg;
    (void)line;
    for (int64_t i = 0; i < n; i += TL_LEAF) {
        int64_t m = NAME(leaf_size)(n - i);

        TL_INDEPENDENT
        for (int64_t j = 0; j < m; j++) {
            tile[j] = FN(zmul)(g[i + j], y[i + j]);
        }
        NAME(tree_add)(&t, NAME(leaf_sum)(tile, m));
    }
    sum = NAME(tree_sum)(&t);
    TL_INDEPENDENT
    for (int64_t i = 0; i < n; i++) {
        dx[i] = FN(zmul)(g[i] - sum, y[i]);
    }
}

/* dx = g - exp(y) sum(g) */
static void NAME(log_softmax_grad)(void *arg, int64_t line, int64_t n,
                                   const void *const *in, void *const *out)
{
    const REAL *y = in[0], *g = in[1];
    REAL *dx = out[0], sum = NAME(row_sum)(n, g);

    (void)arg;
    (void)line;
    TL_INDEPENDENT
    for (int64_t i = 0; i < n; i++) {
        dx[i] = g[i] - FN(zmul)(sum, FN(exp)(y[i]));
    }
}

/* ---- cross entropy ----------------------------------------------------- */

static double NAME(sum)(int64_t n, const void *x)
{
    return (double)NAME(row_sum)(n, x);
}

static double NAME(logsumexp)(int64_t n, const void *from)
{
    const REAL *x = from;
    REAL max = NAME(row_max)(n, x);

    return (double)(max + FN(log)(NAME(exp_sum)(n, x, max, NULL)));
}

/* Weight of class k. */
static REAL NAME(weight)(const tl_row_loss *r, int64_t k)
{
    return r->weight ? ((const REAL *)r->weight)[k] : 1;
}

/* sum over k of w_k (lse - x_k) */
static REAL NAME(spread)(int64_t n, const REAL *x, REAL lse,
                         const tl_row_loss *r)
{
    const REAL *w = r->weight;
    NAME(tree) t = {.depth = 0};
    REAL tile[TL_LEAF];

    for (int64_t i = 0; i < n; i += TL_LEAF) {
        int64_t m = NAME(leaf_size)(n - i);

        for (int64_t j = 0; j < m; j++) {
            tile[j] = lse - x[i + j];
            tile[j] = w ? w[i + j] * tile[j] : tile[j];
        }
        NAME(tree_add)(&t, NAME(leaf_sum)(tile, m));
    }
    return NAME(tree_sum)(&t);
}

static double NAME(loss)(int64_t n, const void *from, double lse,
                         const tl_row_loss *r)
{
    const REAL *x = from;
    const REAL keep = (REAL)(1 - r->smoothing);
    const REAL share = (REAL)(r->smoothing / (double)n);
    REAL cost = NAME(weight)(r, r->target) * ((REAL)lse - x[r->target]);

    if (r->smoothing != 0) {
        cost = keep * cost + share * NAME(spread)(n, x, (REAL)lse, r);
    }
    return (double)cost;
}

static void NAME(loss_grad)(int64_t n, const void *from, double lse_wide,
                            const tl_row_loss *r, double scale_wide, void *to)
{
    const REAL *x = from, *w = r->weight;
    REAL *dx = to;
    const REAL lse = (REAL)lse_wide, scale = (REAL)scale_wide;
    const REAL share = (REAL)(r->smoothing / (double)n);
    const REAL own = (REAL)(1 - r->smoothing) * NAME(weight)(r, r->target);
    const REAL all = r->smoothing != 0
                         ? own + share * (REAL)r->weight_sum
                         : own;

    if (w) {
        TL_INDEPENDENT
        for (int64_t k = 0; k < n; k++) {
            dx[k] = FN(zmul)(scale,
                             all * FN(exp)(x[k] - lse) - share * w[k]);
        }
    } else { /* a loop of its own: gcc does not read w[k] unasked */
        TL_INDEPENDENT
        for (int64_t k = 0; k < n; k++) {
            dx[k] = FN(zmul)(scale, all * FN(exp)(x[k] - lse) - share);
        }
    }
    {
        int64_t k = r->target;
        REAL q = w ? share * w[k] : share;

        dx[k] = FN(zmul)(scale, all * FN(exp)(x[k] - lse) - (q + own));
    }
}

/* ---- normalisation ----------------------------------------------------- */

/* (count, mean, M2) of a part of the row, computed as reduce_plan.c does. */
typedef struct NAME(stats) {
    double count;
    REAL mean, m2;
} NAME(stats);

/* Lanes join pairwise, as those of a leaf do. */
static REAL NAME(join_lanes)(REAL *lane)
{
    for (int w = TL_LANES / 2; w > 0; w /= 2) {
        for (int j = 0; j < w; j++) {
            lane[j] += lane[j + w];
        }
    }
    return lane[0];
}

/* Lanes as vectors: gcc keeps two arrays of them in memory. */
typedef REAL NAME(vec)
    __attribute__((vector_size(VECTOR), aligned(sizeof(REAL)), may_alias));
enum {
    NAME(WIDTH) = VECTOR / sizeof(REAL),
    NAME(PARTS) = TL_LANES / NAME(WIDTH)
};

/* leaf_sum of x, and of x - c, without storing it. */
static void NAME(leaf_sums)(const REAL *x, int64_t n, REAL c, REAL *sum,
                            REAL *shifted)
{
    NAME(vec) a[NAME(PARTS)] = {{0}}, b[NAME(PARTS)] = {{0}};
    REAL lane[TL_LANES], off[TL_LANES];
    int64_t i = 0;

    for (; i + TL_LANES <= n; i += TL_LANES) {
        _Pragma("GCC unroll 8") for (int j = 0; j < NAME(PARTS); j++)
        {
            NAME(vec) v = *(const NAME(vec) *)(x + i + j * NAME(WIDTH));

            a[j] += v;
            b[j] += v - c;
        }
    }
    memcpy(lane, a, sizeof a);
    memcpy(off, b, sizeof b);
    for (int j = 0; i < n; i++, j++) {
        lane[j] += x[i];
        off[j] += x[i] - c;
    }
    *sum = NAME(join_lanes)(lane);
    *shifted = NAME(join_lanes)(off);
}

/* leaf_sum of (x - c)² */
static REAL NAME(leaf_squares)(const REAL *x, int64_t n, REAL c)
{
    NAME(vec) a[NAME(PARTS)] = {{0}};
    REAL lane[TL_LANES];
    int64_t i = 0;

    for (; i + TL_LANES <= n; i += TL_LANES) {
        _Pragma("GCC unroll 8") for (int j = 0; j < NAME(PARTS); j++)
        {
            NAME(vec) d = *(const NAME(vec) *)(x + i + j * NAME(WIDTH)) - c;

            a[j] += d * d;
        }
    }
    memcpy(lane, a, sizeof a);
    for (int j = 0; i < n; i++, j++) {
        REAL d = x[i] - c;

        lane[j] += d * d;
    }
    return NAME(join_lanes)(lane);
}

/* Chan, Golub, LeVeque (1979), eq. 1.5. */
static NAME(stats) NAME(join_stats)(NAME(stats) a, NAME(stats) b)
{
    NAME(stats) s = {.count = a.count + b.count};
    const REAL share = (REAL)(b.count / s.count);
    const REAL cross = (REAL)(a.count * b.count / s.count);
    REAL d = b.mean - a.mean;

    s.mean = a.mean + d * share;
    s.m2 = a.m2 + b.m2 + d * d * cross;
    return s;
}

/* Two passes over each leaf; deviations from the first element are summed.
 * Some leaves take each pass one after the other: the additions of a leaf wait
 * for each other, those of different leaves do not. */
static int NAME(leaves)(int64_t n, const REAL *x, REAL *sum, NAME(stats) *s)
{
    int count = 0;

    for (; count < LEAVES && n > count * TL_LEAF; count++) {
        const REAL *leaf = x + count * TL_LEAF;
        int64_t m = NAME(leaf_size)(n - count * TL_LEAF);
        REAL shifted;

        NAME(leaf_sums)(leaf, m, leaf[0], &sum[count], &shifted);
        s[count].count = (double)m;
        s[count].mean = leaf[0] + shifted / (REAL)m;
    }
    for (int k = 0; k < count; k++) {
        s[k].m2 = NAME(leaf_squares)(x + k * TL_LEAF, (int64_t)s[k].count,
                                     s[k].mean);
    }
    return count;
}

static void NAME(mean_m2)(int64_t n, const void *from, double *mean,
                          double *m2)
{
    const REAL *x = from;
    NAME(stats) part[TREE_LEVELS], some[LEAVES], s;
    NAME(tree) total = {.depth = 0};
    REAL sum[LEAVES];
    int depth = 0;
    int64_t leaf = 0;

    for (int64_t i = 0; i < n; i += LEAVES * TL_LEAF) {
        int count = NAME(leaves)(n - i, x + i, sum, some);

        for (int k = 0; k < count; k++, leaf++) {
            s = some[k];
            NAME(tree_add)(&total, sum[k]);
            for (int64_t bit = leaf; bit & 1; bit >>= 1) {
                s = NAME(join_stats)(part[--depth], s);
            }
            part[depth++] = s;
        }
    }
    for (s = part[--depth]; depth > 0;) {
        s = NAME(join_stats)(part[--depth], s);
    }
    *mean = (double)(REAL)((double)NAME(tree_sum)(&total) / (double)n);
    *m2 = (double)s.m2;
}

static void NAME(moments)(int64_t n, const void *from, double eps,
                          double *mean, double *rstd)
{
    double m2;

    NAME(mean_m2)(n, from, mean, &m2);
    *rstd = (double)(1 / FN(sqrt)((REAL)(m2 / (double)n) + (REAL)eps));
}

static void NAME(normalise)(int64_t n, const void *from, double mean_wide,
                            double rstd_wide, const void *weight,
                            const void *bias, void *to)
{
    const REAL *x = from, *w = weight, *b = bias;
    const REAL mean = (REAL)mean_wide, rstd = (REAL)rstd_wide;
    REAL *y = to;

    if (w && b) {
        TL_INDEPENDENT
        for (int64_t i = 0; i < n; i++) {
            y[i] = ((x[i] - mean) * rstd) * w[i] + b[i];
        }
        return;
    }
    TL_INDEPENDENT
    for (int64_t i = 0; i < n; i++) {
        REAL v = (x[i] - mean) * rstd;

        v = w ? v * w[i] : v;
        y[i] = b ? v + b[i] : v;
    }
}

/* dx = rstd (h - mean(h) - x^ mean(h x^)), h = g w */
static void NAME(normalise_grad)(int64_t n, const void *upstream,
                                 const void *from, double mean_wide,
                                 double rstd_wide, const void *weight,
                                 void *to)
{
    const REAL *g = upstream, *x = from, *w = weight;
    const REAL mean = (REAL)mean_wide, rstd = (REAL)rstd_wide;
    REAL *dx = to, h[TL_LEAF], hx[TL_LEAF], a, b;
    NAME(tree) first = {.depth = 0}, second = {.depth = 0};

    for (int64_t i = 0; i < n; i += TL_LEAF) {
        int64_t m = NAME(leaf_size)(n - i);

        TL_INDEPENDENT
        for (int64_t j = 0; j < m; j++) {
            h[j] = w ? FN(zmul)(g[i + j], w[i + j]) : g[i + j];
            hx[j] = FN(zmul)(h[j], (x[i + j] - mean) * rstd);
        }
        NAME(tree_add)(&first, NAME(leaf_sum)(h, m));
        NAME(tree_add)(&second, NAME(leaf_sum)(hx, m));
    }
    a = (REAL)((double)NAME(tree_sum)(&first) / (double)n);
    b = (REAL)((double)NAME(tree_sum)(&second) / (double)n);
    TL_INDEPENDENT
    for (int64_t i = 0; i < n; i++) {
        REAL own = w ? FN(zmul)(g[i], w[i]) : g[i];
        REAL xhat = (x[i] - mean) * rstd;

        dx[i] = FN(zmul)((own - a) - FN(zmul)(b, xhat), rstd);
    }
}

/* ---- RMS norm ----------------------------------------------------------- */

static double NAME(rms)(int64_t n, const void *from, double eps)
{
    const REAL *x = from;
    NAME(tree) t = {.depth = 0};
    REAL tile[TL_LEAF];

    for (int64_t i = 0; i < n; i += TL_LEAF) {
        int64_t m = NAME(leaf_size)(n - i);

        TL_INDEPENDENT
        for (int64_t j = 0; j < m; j++) {
            tile[j] = x[i + j] * x[i + j];
        }
        NAME(tree_add)(&t, NAME(leaf_sum)(tile, m));
    }
    return (double)(1 / FN(sqrt)((REAL)((double)NAME(tree_sum)(&t) /
                                        (double)n) +
                                 (REAL)eps));
}

static void NAME(scale)(int64_t n, const void *from, double rstd_wide,
                        const void *weight, void *to)
{
    const REAL *x = from, *w = weight;
    const REAL rstd = (REAL)rstd_wide;
    REAL *y = to;

    if (w) {
        TL_INDEPENDENT
        for (int64_t i = 0; i < n; i++) {
            y[i] = (x[i] * rstd) * w[i];
        }
        return;
    }
    TL_INDEPENDENT
    for (int64_t i = 0; i < n; i++) {
        y[i] = x[i] * rstd;
    }
}

static void NAME(scale_grad)(int64_t n, const void *upstream,
                             const void *from, double rstd_wide,
                             const void *weight, void *to)
{
    const REAL *g = upstream, *x = from, *w = weight;
    const REAL rstd = (REAL)rstd_wide;
    REAL *dx = to, hx[TL_LEAF], b;
    NAME(tree) t = {.depth = 0};

    for (int64_t i = 0; i < n; i += TL_LEAF) {
        int64_t m = NAME(leaf_size)(n - i);

        TL_INDEPENDENT
        for (int64_t j = 0; j < m; j++) {
            REAL h = w ? FN(zmul)(g[i + j], w[i + j]) : g[i + j];

            hx[j] = FN(zmul)(h, x[i + j] * rstd);
        }
        NAME(tree_add)(&t, NAME(leaf_sum)(hx, m));
    }
    b = (REAL)((double)NAME(tree_sum)(&t) / (double)n);
    TL_INDEPENDENT
    for (int64_t i = 0; i < n; i++) {
        REAL own = w ? FN(zmul)(g[i], w[i]) : g[i];

        dx[i] = FN(zmul)(own - FN(zmul)(b, x[i] * rstd), rstd);
    }
}

/* ---- rows with statistics of their own ----------------------------------- */

/* The loop `BODY` over i with k = i * step, and a loop for each step. */
#define BOTH_STEPS(step, n, BODY)                                            \
    if ((step) == 0) {                                                       \
        TL_INDEPENDENT                                                       \
        for (int64_t i = 0; i < (n); i++) {                                  \
            enum { k = 0 };                                                  \
            BODY                                                             \
        }                                                                    \
    } else {                                                                 \
        TL_INDEPENDENT                                                       \
        for (int64_t i = 0; i < (n); i++) {                                  \
            const int64_t k = i;                                             \
            BODY                                                             \
        }                                                                    \
    }

static void NAME(affine)(int64_t n, const void *from, const tl_row_stats *s,
                         void *to)
{
    const REAL *x = from, *mean = s->mean, *rstd = s->rstd;
    const REAL *w = s->w, *b = s->b;
    REAL *y = to;

    if (w && b) {
        BOTH_STEPS(s->step, n,
                   y[i] = ((x[i] - mean[k]) * rstd[k]) * w[k] + b[k];)
    } else if (w) {
        BOTH_STEPS(s->step, n, y[i] = ((x[i] - mean[k]) * rstd[k]) * w[k];)
    } else if (b) {
        BOTH_STEPS(s->step, n, y[i] = (x[i] - mean[k]) * rstd[k] + b[k];)
    } else {
        BOTH_STEPS(s->step, n, y[i] = (x[i] - mean[k]) * rstd[k];)
    }
}

static void NAME(affine_grad)(int64_t n, const void *upstream,
                              const void *from, const tl_row_stats *s,
                              void *to)
{
    const REAL *g = upstream, *x = from, *mean = s->mean, *rstd = s->rstd;
    const REAL *w = s->w, *a = s->ga, *b = s->gb;
    REAL *dx = to;

    if (w) {
        BOTH_STEPS(s->step, n,
                   REAL xhat = (x[i] - mean[k]) * rstd[k];
                   dx[i] = FN(zmul)((FN(zmul)(g[i], w[k]) - a[k]) -
                                        FN(zmul)(b[k], xhat),
                                    rstd[k]);)
    } else {
        BOTH_STEPS(s->step, n,
                   REAL xhat = (x[i] - mean[k]) * rstd[k];
                   dx[i] = FN(zmul)((g[i] - a[k]) - FN(zmul)(b[k], xhat),
                                    rstd[k]);)
    }
}

/* Sums over a leaf of g and of g x^, x^ = (x - mean) rstd: one pass. */
static void NAME(leaf_products)(int64_t n, const REAL *g, const REAL *x,
                                REAL mean, REAL rstd, REAL *sum,
                                REAL *products)
{
    NAME(vec) a[NAME(PARTS)] = {{0}}, b[NAME(PARTS)] = {{0}};
    REAL lane[TL_LANES], more[TL_LANES];
    int64_t i = 0;

    for (; i + TL_LANES <= n; i += TL_LANES) {
        _Pragma("GCC unroll 8") for (int j = 0; j < NAME(PARTS); j++)
        {
            NAME(vec) u = *(const NAME(vec) *)(g + i + j * NAME(WIDTH));
            NAME(vec) v = *(const NAME(vec) *)(x + i + j * NAME(WIDTH));
            __typeof__(u != 0) some = u != 0; /* zmul: 0 where g is 0 */

            v = u * ((v - mean) * rstd);
            a[j] += u;
            b[j] += (NAME(vec))((__typeof__(some))v & some);
        }
    }
    memcpy(lane, a, sizeof a);
    memcpy(more, b, sizeof b);
    for (int j = 0; i < n; i++, j++) {
        lane[j] += g[i];
        more[j] += FN(zmul)(g[i], (x[i] - mean) * rstd);
    }
    *sum = NAME(join_lanes)(lane);
    *products = NAME(join_lanes)(more);
}

static void NAME(affine_sums)(int64_t n, const void *upstream,
                              const void *from, const tl_row_stats *s,
                              double *sums)
{
    const REAL *g = upstream, *x = from;
    const REAL mean = *(const REAL *)s->mean, rstd = *(const REAL *)s->rstd;
    NAME(tree) first = {.depth = 0}, second = {.depth = 0};

    for (int64_t i = 0; i < n; i += TL_LEAF) {
        REAL sum, products;

        NAME(leaf_products)(NAME(leaf_size)(n - i), g + i, x + i, mean, rstd,
                            &sum, &products);
        NAME(tree_add)(&first, sum);
        NAME(tree_add)(&second, products);
    }
    sums[0] = (double)NAME(tree_sum)(&first);
    sums[1] = (double)NAME(tree_sum)(&second);
}

static void NAME(affine_add)(int64_t n, const void *upstream,
                             const void *from, const tl_row_stats *s,
                             double *sums)
{
    const REAL *g = upstream, *x = from, *mean = s->mean, *rstd = s->rstd;

    if (!mean) {
        BOTH_STEPS(s->step, n,
                   sums[n + i] += (double)FN(zmul)(g[i], x[i] * rstd[k]);)
        return;
    }
    BOTH_STEPS(s->step, n,
               sums[i] += (double)g[i];
               sums[n + i] += (double)FN(zmul)(
                   g[i], (x[i] - mean[k]) * rstd[k]);)
}

const tl_rowmath ROWMATH_TABLE = {
    .softmax = NAME(softmax),
    .log_softmax = NAME(log_softmax),
    .softmax_grad = NAME(softmax_grad),
    .log_softmax_grad = NAME(log_softmax_grad),
    .sum = NAME(sum),
    .logsumexp = NAME(logsumexp),
    .loss = NAME(loss),
    .loss_grad = NAME(loss_grad),
    .mean_m2 = NAME(mean_m2),
    .moments = NAME(moments),
    .normalise = NAME(normalise),
    .normalise_grad = NAME(normalise_grad),
    .rms = NAME(rms),
    .scale = NAME(scale),
    .scale_grad = NAME(scale_grad),
    .affine = NAME(affine),
    .affine_grad = NAME(affine_grad),
    .affine_sums = NAME(affine_sums),
    .affine_add = NAME(affine_add),
};

#undef BOTH_STEPS

#undef REAL
#undef NAME
#undef FN
#undef DTYPE
#undef ROWMATH_TABLE
