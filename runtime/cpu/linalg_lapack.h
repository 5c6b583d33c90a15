/* linalg_lapack.h - a template, included by linalg_lapack.c once for each type
 * of number, with REAL, NAME, FORTRAN and TABLE defined. */

static int64_t NAME(cholesky)(int64_t n, void *matrix)
{
    REAL *a = matrix;
    int size = (int)n, info = 0;

    FORTRAN(potrf)("U", &size, a, &size, &info);
    for (int64_t i = 0; i < n; i++) {
        memset(a + i * n + i + 1, 0, (size_t)(n - i - 1) * sizeof(REAL));
    }
    return info;
}

/* Rows of x[rows, cols] as columns. */
static void NAME(turn)(int64_t rows, int64_t cols, const REAL *x, REAL *to)
{
    for (int64_t i = 0; i < rows; i++) {
        for (int64_t j = 0; j < cols; j++) {
            to[j * rows + i] = x[i * cols + j];
        }
    }
}

static int64_t NAME(solve)(int64_t n, int64_t cols, void *a, void *right,
                           void *work)
{
    int size = (int)n, k = (int)cols, info = 0;
    REAL *x = right, *columns = work;
    int *pivots = (int *)(columns + n * cols);

    FORTRAN(getrf)(&size, &size, a, &size, pivots, &info);
    if (info != 0) {
        return info;
    }
    NAME(turn)(n, cols, x, columns);
    FORTRAN(getrs)("T", &size, &k, a, &size, pivots, columns, &size, &info);
    NAME(turn)(cols, n, columns, x);
    return info;
}

static void NAME(qr)(int64_t rows, int64_t cols, void *a, void *first,
                     void *second, void *work)
{
    int64_t least = rows < cols ? rows : cols;
    int m = (int)rows, n = (int)cols, k = (int)least, info = 0;
    REAL *t = work, *tau = t + rows * cols, *room = tau + least, *r = second;

    NAME(turn)(rows, cols, a, t);
    FORTRAN(geqrf)(&m, &n, t, &m, tau, room, &n, &info);
    for (int64_t i = 0; i < least; i++) {
        for (int64_t j = 0; j < cols; j++) {
            r[i * cols + j] = j < i ? 0 : t[j * rows + i];
        }
    }
    FORTRAN(orgqr)(&m, &k, &k, t, &m, tau, room, &n, &info);
    NAME(turn)(least, rows, t, first);
}

const tl_linalg TABLE = {
    .cholesky = NAME(cholesky),
    .solve = NAME(solve),
    .qr = NAME(qr),
};

#undef REAL
#undef NAME
#undef FORTRAN
#undef TABLE
