/* pool_rows.h - a template, included by pool_rows.c once for each type of
 * number, with REAL, NAME and TABLE defined. */

/* ---- largest ------------------------------------------------------------- */

/* One tap: y and `at` of windows whose tap is larger; `at` gets `place`. */
#define MAX_TAP(STRIDE)                                                      \
    TL_INDEPENDENT                                                           \
    for (int64_t i = 0; i < n; i++) {                                        \
        REAL v = x[i * (STRIDE)];                                            \
        bool take = !(v <= y[i]) && y[i] == y[i];                            \
        y[i] = take ? v : y[i];                                              \
        at[i] = take ? place : at[i];                                        \
    }

static void NAME(max_tap)(int64_t n, const REAL *x, int64_t stride, REAL *y,
                          int32_t *at, int32_t place)
{
    if (stride == 1) {
        MAX_TAP(1)
    } else if (stride == 2) {
        MAX_TAP(2)
    } else {
        MAX_TAP(stride)
    }
}
#undef MAX_TAP

/* Window `o` of a row, element by element: the first of equals, the first
 * nan. */
static void NAME(max_window)(const tl_pool *p, const REAL *x, const rows *r,
                             int64_t o, REAL *y, int64_t *place)
{
    tl_pool_span s = tl_pool_at(p, 2, o);
    REAL best = -(REAL)INFINITY;
    int64_t where = -1;

    for (int64_t td = r->d.lo; td < r->d.hi; td++) {
        for (int64_t th = r->h.lo; th < r->h.hi; th++) {
            int64_t row = row_start(p, r, td, th) + s.first;

            for (int64_t t = s.lo; t < s.hi; t++) {
                REAL v = x[row + t * p->dilation[2]];

                if (where < 0 || (!(v <= best) && best == best)) {
                    best = v;
                    where = row + t * p->dilation[2];
                }
            }
        }
    }
    *y = best;
    *place = where;
}

/* A row of windows by taps; `at` counts from the first tap of each window. */
static void NAME(max_row)(const tl_pool *p, const REAL *x, const rows *r,
                          REAL *y, int64_t *place, int32_t *at)
{
    int64_t base = row_start(p, r, 0, 0), first, last;

    some_inside(p, &first, &last);
    for (int64_t o = 0; o < p->out[2]; o++) {
        y[o] = -(REAL)INFINITY;
        at[o] = -1;
    }
    for (int64_t td = r->d.lo; td < r->d.hi; td++) {
        for (int64_t th = r->h.lo; th < r->h.hi; th++) {
            int64_t row = row_start(p, r, td, th);

            for (int64_t t = first; t < last; t++) {
                int64_t off = t * p->dilation[2] - p->pad[2], lo, hi;

                inside(p, t, &lo, &hi);
                NAME(max_tap)
                (hi - lo, x + row + off + lo * p->stride[2], p->stride[2],
                 y + lo, at + lo, (int32_t)(row - base + t * p->dilation[2]));
            }
        }
    }
    for (int64_t o = 0; o < p->out[2]; o++) {
        place[o] = base + o * p->stride[2] - p->pad[2] + at[o];
        if (at[o] < 0) { /* nothing is above -inf */
            NAME(max_window)(p, x, r, o, &y[o], &place[o]);
        }
    }
}

static void NAME(max)(const tl_pool *p, const void *from, void *to,
                      int64_t *place, double *scratch)
{
    const REAL *x = from;
    REAL *y = to;
    bool by_taps = !p->adaptive && tl_pool_volume(p->in) < INT32_MAX / 2;

    for (int64_t i = 0; i < p->out[0] * p->out[1]; i++) {
        rows r = rows_of(p, i);
        int64_t o = i * p->out[2];

        if (by_taps) {
            NAME(max_row)(p, x, &r, y + o, place + o, (int32_t *)scratch);
            continue;
        }
        for (int64_t k = 0; k < p->out[2]; k++) {
            NAME(max_window)(p, x, &r, k, &y[o + k], &place[o + k]);
        }
    }
}

static void NAME(max_grad)(const tl_pool *p, const void *upstream,
                           const int64_t *place, void *to)
{
    const REAL *g = upstream;
    int64_t n = tl_pool_volume(p->out), size = tl_pool_volume(p->in);
    REAL *dx = to;

    memset(dx, 0, (size_t)size * sizeof(REAL));
    for (int64_t i = 0; i < n; i++) {
        if ((uint64_t)place[i] < (uint64_t)size) {
            dx[place[i]] += g[i];
        }
    }
}

/* ---- mean ---------------------------------------------------------------- */

#define ADD_TAP(STRIDE)                                                      \
    TL_INDEPENDENT                                                           \
    for (int64_t i = 0; i < n; i++) {                                        \
        sum[i] += (double)x[i * (STRIDE)];                                   \
    }

static void NAME(add_tap)(int64_t n, const REAL *x, int64_t stride,
                          double *sum)
{
    if (stride == 1) {
        ADD_TAP(1)
    } else if (stride == 2) {
        ADD_TAP(2)
    } else {
        ADD_TAP(stride)
    }
}
#undef ADD_TAP

typedef REAL NAME(vec)
    __attribute__((vector_size(VECTOR), aligned(sizeof(REAL)), may_alias));
enum {
    NAME(WIDTH) = VECTOR / sizeof(REAL),
    NAME(PARTS) = LANES / NAME(WIDTH)
};

/* Sum of at most SPAN neighbours: in lanes, as far as these are full, then
 * the rest. */
static REAL NAME(sum_part)(int64_t n, const REAL *x)
{
    NAME(vec) a[NAME(PARTS)] = {{0}};
    REAL lane[LANES], rest = 0;
    int64_t i = 0;

    for (; i + LANES <= n; i += LANES) {
        _Pragma("GCC unroll 8") for (int j = 0; j < NAME(PARTS); j++)
        {
            a[j] += *(const NAME(vec) *)(x + i + j * NAME(WIDTH));
        }
    }
    for (; i < n; i++) {
        rest += x[i];
    }
    memcpy(lane, a, sizeof a);
    for (int w = LANES / 2; w > 0; w /= 2) {
        for (int j = 0; j < w; j++) {
            lane[j] += lane[j + w];
        }
    }
    return lane[0] + rest;
}

/* Sum of n neighbours, part by part. */
static double NAME(sum_span)(int64_t n, const REAL *x)
{
    double sum = 0;

    for (int64_t i = 0; i < n; i += SPAN) {
        sum += (double)NAME(sum_part)(n - i < SPAN ? n - i : SPAN, x + i);
    }
    return sum;
}

/* Sums of a row of adaptive windows; where a window takes whole rows, they
 * are one. */
static void NAME(adaptive_row)(const tl_pool *p, const REAL *x, const rows *r,
                               double *sum)
{
    if (p->out[2] == 1) {
        int64_t n = r->h.hi * p->in[2];

        for (int64_t td = 0; td < r->d.hi; td++) {
            sum[0] += NAME(sum_span)(n, x + row_start(p, r, td, 0));
        }
        return;
    }
    for (int64_t o = 0; o < p->out[2]; o++) {
        tl_pool_span s = tl_pool_at(p, 2, o);

        for (int64_t td = r->d.lo; td < r->d.hi; td++) {
            for (int64_t th = r->h.lo; th < r->h.hi; th++) {
                const REAL *row = x + row_start(p, r, td, th) + s.first;

                sum[o] += NAME(sum_span)(s.hi, row);
            }
        }
    }
}

static void NAME(avg_row)(const tl_pool *p, const REAL *x, const rows *r,
                          double *sum)
{
    int64_t first, last;

    some_inside(p, &first, &last);
    for (int64_t td = r->d.lo; td < r->d.hi; td++) {
        for (int64_t th = r->h.lo; th < r->h.hi; th++) {
            int64_t row = row_start(p, r, td, th);

            for (int64_t t = first; t < last; t++) {
                int64_t off = row + t * p->dilation[2] - p->pad[2], lo, hi;

                inside(p, t, &lo, &hi);
                NAME(add_tap)
                (hi - lo, x + off + lo * p->stride[2], p->stride[2],
                 sum + lo);
            }
        }
    }
}

static void NAME(avg)(const tl_pool *p, const void *from, void *to,
                      double *sum)
{
    const REAL *x = from;
    REAL *y = to;
    double *by = sum + p->out[2], count;

    if (p->adaptive && tl_pool_volume(p->out) == 1) {
        int64_t n = tl_pool_volume(p->in);

        *y = (REAL)(NAME(sum_span)(n, x) / (double)n);
        return;
    }
    divisors(p, by);
    for (int64_t i = 0; i < p->out[0] * p->out[1]; i++) {
        rows r = rows_of(p, i);

        count = row_count(p, &r);
        memset(sum, 0, (size_t)p->out[2] * sizeof *sum);
        if (p->adaptive) {
            NAME(adaptive_row)(p, x, &r, sum);
        } else {
            NAME(avg_row)(p, x, &r, sum);
        }
        TL_INDEPENDENT
        for (int64_t o = 0; o < p->out[2]; o++) {
            y[i * p->out[2] + o] = (REAL)(sum[o] / (count * by[o]));
        }
    }
}

/* dx of windows [0, n), `stride` apart, at one tap. */
static void NAME(spread_tap)(int64_t n, const REAL *g, int64_t stride,
                             REAL *dx)
{
    if (stride == 1) {
        TL_INDEPENDENT
        for (int64_t i = 0; i < n; i++) {
            dx[i] += g[i];
        }
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        dx[i * stride] += g[i];
    }
}

static void NAME(spread_row)(const tl_pool *p, const REAL *g, REAL *dx)
{
    int64_t first, last;

    if (p->adaptive) {
        for (int64_t o = 0; o < p->out[2]; o++) {
            tl_pool_span s = tl_pool_at(p, 2, o);

            TL_INDEPENDENT
            for (int64_t t = 0; t < s.hi; t++) {
                dx[s.first + t] += g[o];
            }
        }
        return;
    }
    some_inside(p, &first, &last);
    for (int64_t t = first; t < last; t++) {
        int64_t off = t * p->dilation[2] - p->pad[2], lo, hi;

        inside(p, t, &lo, &hi);
        NAME(spread_tap)
        (hi - lo, g + lo, p->stride[2], dx + off + lo * p->stride[2]);
    }
}

static void NAME(avg_grad)(const tl_pool *p, const void *upstream, void *to,
                           double *scratch)
{
    const REAL *g = upstream;
    REAL *dx = to, *part = (REAL *)scratch;
    double *by = scratch + p->out[2], count;

    if (p->adaptive && tl_pool_volume(p->out) == 1) {
        int64_t n = tl_pool_volume(p->in);
        const REAL v = (REAL)((double)*g / (double)n);

        for (int64_t i = 0; i < n; i++) {
            dx[i] = v;
        }
        return;
    }
    divisors(p, by);
    memset(dx, 0, (size_t)tl_pool_volume(p->in) * sizeof(REAL));
    for (int64_t i = 0; i < p->out[0] * p->out[1]; i++) {
        rows r = rows_of(p, i);

        count = row_count(p, &r);
        for (int64_t o = 0; o < p->out[2]; o++) {
            part[o] = (REAL)((double)g[i * p->out[2] + o] / (count * by[o]));
        }
        for (int64_t td = r.d.lo; td < r.d.hi; td++) {
            for (int64_t th = r.h.lo; th < r.h.hi; th++) {
                NAME(spread_row)(p, part, dx + row_start(p, &r, td, th));
            }
        }
    }
}

const tl_pool_loops TABLE = {
    .max = NAME(max),
    .avg = NAME(avg),
    .max_grad = NAME(max_grad),
    .avg_grad = NAME(avg_grad),
};

#undef REAL
#undef NAME
#undef TABLE
