/* attention_rows.h - the functions of attention_rows.c for one type.
 *
 * Not an ordinary header: attention_rows.c defines REAL (float or double),
 * NAME(fn) (fn_f32 or fn_f64), DTYPE and FN(fn) (tl_fn_f32) and includes it.
 */

static REAL NAME(fold_row)(tl_fold_kind kind, const REAL *x, int64_t n)
{
    REAL y;

    TL_ISA(tl_fold_get)(DTYPE, kind)->leaf(x, n, &y);
    return y;
}

/* Scores of row i as softmax takes them: scaled, with the mask; -inf where
 * nothing is seen.  How many there are; the rest of the row is not seen. */
static int64_t NAME(mask_row)(const tl_attn_tile *t, int64_t i, REAL *x)
{
    const REAL scale = (REAL)t->scale;
    int64_t n = seen_of(t, i), step = t->mask_col;

    TL_INDEPENDENT
    for (int64_t j = 0; j < n; j++) {
        x[j] = x[j] * scale;
    }
    if (t->bias) {
        const REAL *b = (const REAL *)t->bias + i * t->mask_row;

        for (int64_t j = 0; j < n; j++) {
            REAL y = b[j * step];

            x[j] = y == -(REAL)INFINITY ? y : x[j] + y;
        }
    }
    if (t->mask) {
        const unsigned char *m = t->mask + i * t->mask_row;

        for (int64_t j = 0; j < n; j++) {
            x[j] = m[j * step] != 0 ? x[j] : -(REAL)INFINITY;
        }
    }
    return n;
}

/* x = exp(x - m), 0 where x is -inf whatever m is; m is not -inf. */
static void NAME(exp_row)(int64_t n, REAL *x, REAL m)
{
    TL_INDEPENDENT
    for (int64_t j = 0; j < n; j++) {
        REAL y = FN(exp)(x[j] - m);

        x[j] = x[j] == -(REAL)INFINITY ? 0 : y;
    }
}

static void NAME(zero_row)(REAL *x, int64_t from, int64_t to)
{
    for (int64_t j = from; j < to; j++) {
        x[j] = 0;
    }
}

/* Row i of dropout on n elements of x, as `dropout` does it. */
static void NAME(drop_row)(const tl_attn_tile *t, int64_t i, int64_t n,
                           REAL *x, REAL *y)
{
    const REAL factor = (REAL)(1 / (1 - t->p));
    const float p = (float)t->p;
    float u[TL_ATTN_COLS];

    draw_row(t->lane, t->draw + (uint64_t)i * t->draw_row, n, u);
    TL_INDEPENDENT
    for (int64_t j = 0; j < n; j++) {
        x[j] = u[j] >= p ? x[j] * factor : 0;
    }
    if (y) {
        TL_INDEPENDENT
        for (int64_t j = 0; j < n; j++) {
            y[j] = u[j] >= p ? y[j] * factor : 0;
        }
    }
}

/* Milakov and Gimelshein, "Online normalizer calculation for softmax" (2018),
 * algorithm 3, a tile at a time. */
static void NAME(forward)(const tl_attn_tile *t, void *scores, void *max,
                          void *sum, void *keep)
{
    REAL *m = max, *l = sum, *a = keep;

    for (int64_t i = 0; i < t->rows; i++) {
        REAL *x = (REAL *)scores + i * t->cols, top = -(REAL)INFINITY;
        int64_t n = NAME(mask_row)(t, i, x);

        if (n > 0) {
            top = NAME(fold_row)(TL_FOLD_MAX, x, n);
        }
        top = m[i] >= top ? m[i] : top > m[i] ? top : m[i] + top;
        a[i] = 1;
        if (top == -(REAL)INFINITY) {
            NAME(zero_row)(x, 0, t->cols);
            continue;
        }
        NAME(exp_row)(n, x, top);
        NAME(zero_row)(x, n, t->cols);
        a[i] = m[i] == -(REAL)INFINITY ? 0 : FN(exp)(m[i] - top);
        l[i] = l[i] * a[i] + (n > 0 ? NAME(fold_row)(TL_FOLD_SUM, x, n) : 0);
        m[i] = top;
        if (t->p != 0) {
            NAME(drop_row)(t, i, n, x, NULL);
        }
    }
}

static void NAME(backward)(const tl_attn_tile *t, const void *lse,
                           const void *delta, double factor, void *scores,
                           void *grad)
{
    const REAL by = (REAL)factor;

    for (int64_t i = 0; i < t->rows; i++) {
        REAL *x = (REAL *)scores + i * t->cols;
        REAL *g = (REAL *)grad + i * t->cols, p[TL_ATTN_COLS];
        REAL norm = ((const REAL *)lse)[i], d = ((const REAL *)delta)[i];
        int64_t n = NAME(mask_row)(t, i, x);

        if (norm == -(REAL)INFINITY) {
            n = 0; /* the row sees nothing */
        }
        NAME(zero_row)(x, n, t->cols);
        NAME(zero_row)(g, n, t->cols);
        NAME(exp_row)(n, x, norm);
        memcpy(p, x, (size_t)n * sizeof(REAL));
        if (t->p != 0) {
            NAME(drop_row)(t, i, n, x, g);
        }
        TL_INDEPENDENT
        for (int64_t j = 0; j < n; j++) {
            REAL y = p[j] * (g[j] - d) * by;

            g[j] = p[j] == 0 ? 0 : y;
        }
    }
}

static void NAME(join)(int64_t rows, int64_t cols, void *to, int64_t ld,
                       const void *part, const void *keep)
{
    for (int64_t i = 0; i < rows; i++) {
        REAL *y = (REAL *)to + i * ld;
        const REAL *x = (const REAL *)part + i * cols;
        REAL a = keep ? ((const REAL *)keep)[i] : 1;

        TL_INDEPENDENT
        for (int64_t j = 0; j < cols; j++) {
            y[j] = y[j] * a + x[j];
        }
    }
}

static bool NAME(finite)(int64_t n, const void *x)
{
    const REAL *v = x;
    REAL bad = 0;

    for (int64_t j = 0; j < n; j += TL_LEAF) {
        REAL leaf[TL_LEAF];
        int64_t m = n - j < TL_LEAF ? n - j : TL_LEAF;

        TL_INDEPENDENT
        for (int64_t i = 0; i < m; i++) {
            leaf[i] = v[j + i] - v[j + i]; /* 0, or nan */
        }
        bad += NAME(fold_row)(TL_FOLD_SUM, leaf, m);
    }
    return bad == 0;
}

static bool NAME(finish)(int64_t rows, int64_t cols, const void *from,
                         const void *max, const void *sum, void *to,
                         void *lse)
{
    for (int64_t i = 0; i < rows; i++) {
        REAL m = ((const REAL *)max)[i], l = ((const REAL *)sum)[i];
        const REAL *x = (const REAL *)from + i * cols;
        REAL *y = (REAL *)to + i * cols;

        TL_INDEPENDENT
        for (int64_t j = 0; j < cols; j++) {
            y[j] = l == 0 ? 0 : x[j] / l;
        }
        ((REAL *)lse)[i] = l == 0 ? -(REAL)INFINITY : m + FN(log)(l);
    }
    return NAME(finite)(rows * cols, to);
}

static void NAME(dots)(int64_t rows, int64_t cols, const void *a, int64_t lda,
                       const void *b, int64_t ldb, void *to)
{
    for (int64_t i = 0; i < rows; i++) {
        const REAL *x = (const REAL *)a + i * lda;
        const REAL *y = (const REAL *)b + i * ldb;
        REAL sum = 0;

        for (int64_t j = 0; j < cols; j += TL_LEAF) {
            REAL leaf[TL_LEAF];
            int64_t m = cols - j < TL_LEAF ? cols - j : TL_LEAF;

            TL_INDEPENDENT
            for (int64_t c = 0; c < m; c++) {
                leaf[c] = FN(zmul)(x[j + c], y[j + c]);
            }
            sum += NAME(fold_row)(TL_FOLD_SUM, leaf, m);
        }
        ((REAL *)to)[i] = sum;
    }
}

const tl_attn_math ATTN_TABLE = {
    .forward = NAME(forward), .backward = NAME(backward), .join = NAME(join),
    .finish = NAME(finish),   .dots = NAME(dots),         .finite =
                                                              NAME(finite)};

#undef REAL
#undef NAME
#undef FN
#undef DTYPE
#undef ATTN_TABLE
