/* linalg_rows.h - a template, included by linalg_rows.c once for each type
 * of number, with REAL, NAME and TABLE defined. */

/* Sum of products; element i belongs to lane i mod 16. */
static REAL NAME(dot)(int64_t n, const REAL *a, const REAL *b)
{
    REAL lane[16] = {0};
    int64_t i = 0;

    for (; i + 16 <= n; i += 16) {
        for (int j = 0; j < 16; j++) {
            lane[j] += a[i + j] * b[i + j];
        }
    }
    for (int j = 0; i < n; i++, j++) {
        lane[j] += a[i] * b[i];
    }
    for (int w = 8; w > 0; w /= 2) {
        for (int j = 0; j < w; j++) {
            lane[j] += lane[j + w];
        }
    }
    return lane[0];
}

/* y -= c x */
static void NAME(take_off)(int64_t n, REAL c, const REAL *x, REAL *y)
{
    TL_INDEPENDENT
    for (int64_t i = 0; i < n; i++) {
        y[i] -= c * x[i];
    }
}

static int64_t NAME(cholesky)(int64_t n, void *matrix)
{
    REAL *a = matrix;

    for (int64_t i = 0; i < n; i++) {
        REAL *row = a + i * n, d;

        for (int64_t j = 0; j < i; j++) {
            const REAL *other = a + j * n;

            row[j] = (row[j] - NAME(dot)(j, row, other)) / other[j];
        }
        d = row[i] - NAME(dot)(i, row, row);
        if (!(d > 0)) {
            return i + 1;
        }
        row[i] = (REAL)sqrt((double)d);
        memset(row + i + 1, 0, (size_t)(n - i - 1) * sizeof(REAL));
    }
    return 0;
}

/* ---- systems ------------------------------------------------------------- */

static void NAME(swap)(int64_t n, REAL *a, REAL *b)
{
    for (int64_t i = 0; i < n; i++) {
        REAL t = a[i];

        a[i] = b[i];
        b[i] = t;
    }
}

/* Row of the largest element of column k below and on the diagonal. */
static int64_t NAME(pivot)(int64_t n, int64_t k, const REAL *a)
{
    int64_t best = k;

    for (int64_t i = k + 1; i < n; i++) {
        if (fabs((double)a[i * n + k]) > fabs((double)a[best * n + k])) {
            best = i;
        }
    }
    return best;
}

static int64_t NAME(solve)(int64_t n, int64_t cols, void *matrix, void *right,
                           void *work)
{
    REAL *a = matrix, *x = right;

    (void)work;
    for (int64_t k = 0; k < n; k++) {
        int64_t best = NAME(pivot)(n, k, a);

        if (a[best * n + k] == 0) {
            return k + 1;
        }
        if (best != k) {
            NAME(swap)(n, a + k * n, a + best * n);
            NAME(swap)(cols, x + k * cols, x + best * cols);
        }
        for (int64_t i = k + 1; i < n; i++) {
            REAL c = a[i * n + k] / a[k * n + k];

            NAME(take_off)
            (n - k - 1, c, a + k * n + k + 1, a + i * n + k + 1);
            NAME(take_off)(cols, c, x + k * cols, x + i * cols);
        }
    }
    for (int64_t k = n; k-- > 0;) {
        for (int64_t i = 0; i < cols; i++) {
            x[k * cols + i] /= a[k * n + k];
        }
        for (int64_t i = 0; i < k; i++) {
            NAME(take_off)(cols, a[i * n + k], x + k * cols, x + i * cols);
        }
    }
    return 0;
}

static void NAME(tri_solve)(int64_t n, int64_t cols, const void *matrix,
                            bool upper, bool transposed, void *right)
{
    const REAL *a = matrix;
    REAL *x = right;
    bool down = upper == transposed; /* the first row has one unknown */
    int64_t row = transposed ? 1 : n, col = transposed ? n : 1;

    for (int64_t s = 0; s < n; s++) {
        int64_t k = down ? s : n - 1 - s;
        int64_t from = down ? k + 1 : 0, to = down ? n : k;

        for (int64_t i = 0; i < cols; i++) {
            x[k * cols + i] /= a[k * n + k];
        }
        for (int64_t i = from; i < to; i++) {
            NAME(take_off)
            (cols, a[i * row + k * col], x + k * cols, x + i * cols);
        }
    }
}

/* ---- QR ------------------------------------------------------------------ */

/* Norm of a[k + 1 .. m) of column k, without overflow. */
static double NAME(below_norm)(int64_t m, int64_t n, int64_t k, const REAL *a)
{
    double most = 0, sum = 0;

    for (int64_t i = k + 1; i < m; i++) {
        double v = fabs((double)a[i * n + k]);

        most = v > most || v != v ? v : most;
    }
    if (most == 0 || !isfinite(most)) {
        return most;
    }
    for (int64_t i = k + 1; i < m; i++) {
        double v = (double)a[i * n + k] / most;

        sum += v * v;
    }
    return most * sqrt(sum);
}

/* The reflection that makes column k zero below the diagonal: its vector,
 * without the leading 1, in place of what becomes zero; returns tau. */
static REAL NAME(reflector)(int64_t m, int64_t n, int64_t k, REAL *a)
{
    double alpha = (double)a[k * n + k], beta, norm;

    norm = NAME(below_norm)(m, n, k, a);
    if (norm == 0) {
        return 0;
    }
    beta = -copysign(hypot(alpha, norm), alpha);
    for (int64_t i = k + 1; i < m; i++) {
        a[i * n + k] = (REAL)((double)a[i * n + k] / (alpha - beta));
    }
    a[k * n + k] = (REAL)beta;
    return (REAL)((beta - alpha) / beta);
}

/* Columns [from, to) of b[m, w] reflected by vector k of a; `sum` has room for
 * to - from. */
static void NAME(reflect)(int64_t m, int64_t n, int64_t k, const REAL *a,
                          REAL tau, int64_t w, int64_t from, int64_t to,
                          REAL *b, REAL *sum)
{
    int64_t count = to - from;

    memcpy(sum, b + k * w + from, (size_t)count * sizeof(REAL));
    for (int64_t i = k + 1; i < m; i++) {
        NAME(take_off)(count, -a[i * n + k], b + i * w + from, sum);
    }
    NAME(take_off)(count, tau, sum, b + k * w + from);
    for (int64_t i = k + 1; i < m; i++) {
        NAME(take_off)(count, tau * a[i * n + k], sum, b + i * w + from);
    }
}

static void NAME(qr)(int64_t m, int64_t n, void *matrix, void *first,
                     void *second, void *work)
{
    REAL *a = matrix, *q = first, *r = second, *sum = work;
    int64_t k = m < n ? m : n;
    REAL *tau = sum + m + n;

    for (int64_t j = 0; j < k; j++) {
        tau[j] = NAME(reflector)(m, n, j, a);
        if (tau[j] != 0 && j + 1 < n) {
            NAME(reflect)(m, n, j, a, tau[j], n, j + 1, n, a, sum);
        }
    }
    memset(q, 0, (size_t)(m * k) * sizeof(REAL));
    memset(r, 0, (size_t)(k * n) * sizeof(REAL));
    for (int64_t j = 0; j < k; j++) {
        q[j * k + j] = 1;
        memcpy(r + j * n + j, a + j * n + j, (size_t)(n - j) * sizeof(REAL));
    }
    for (int64_t j = k; j-- > 0;) {
        if (tau[j] != 0) {
            NAME(reflect)(m, n, j, a, tau[j], k, j, k, q, sum);
        }
    }
}

const tl_linalg TABLE = {
    .cholesky = NAME(cholesky),
    .solve = NAME(solve),
    .tri_solve = NAME(tri_solve),
    .qr = NAME(qr),
};

#undef REAL
#undef NAME
#undef TABLE
