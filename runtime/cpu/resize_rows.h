/* resize_rows.h - a template, included by resize_rows.c once for each type
 * of number, with REAL, NAME and TABLE defined. */

/* Weight of tap (td, th) for row (d, h) of the result; *from is the row of the
 * input that it takes. */
static REAL NAME(row_tap)(const tl_resize *r, int64_t d, int64_t h, int tap,
                          int64_t *from)
{
    const tl_resize_axis *a = &r->axis[0], *b = &r->axis[1];
    int td = tap / b->taps, th = tap % b->taps;

    *from = a->from[td][d] * b->in + b->from[th][h];
    return ((const REAL *)a->weight[td])[d] *
           ((const REAL *)b->weight[th])[h];
}

/* The rows that row (d, h) takes, summed; one of weight 1 as it is. */
static const REAL *NAME(join_rows)(const tl_resize *r, const REAL *x,
                                   int64_t d, int64_t h, REAL *sum)
{
    int taps = r->axis[0].taps * r->axis[1].taps;
    int64_t n = r->axis[2].in, from;
    REAL w = NAME(row_tap)(r, d, h, 0, &from);
    const REAL *row = x + from * n;

    if (taps == 1) {
        return row;
    }
    TL_INDEPENDENT
    for (int64_t i = 0; i < n; i++) {
        sum[i] = w * row[i];
    }
    for (int t = 1; t < taps; t++) {
        w = NAME(row_tap)(r, d, h, t, &from);
        row = x + from * n;
        TL_INDEPENDENT
        for (int64_t i = 0; i < n; i++) {
            sum[i] += w * row[i];
        }
    }
    return sum;
}

static void NAME(sample_row)(const tl_resize_axis *a, const REAL *x, REAL *y)
{
    const REAL *w = a->weight[0];
    const int64_t *from = a->from[0];

    if (a->taps == 1) {
        TL_INDEPENDENT
        for (int64_t o = 0; o < a->out; o++) {
            y[o] = x[from[o]];
        }
        return;
    }
    TL_INDEPENDENT
    for (int64_t o = 0; o < a->out; o++) {
        y[o] = w[o] * x[from[o]];
    }
    for (int t = 1; t < a->taps; t++) {
        w = a->weight[t];
        from = a->from[t];
        TL_INDEPENDENT
        for (int64_t o = 0; o < a->out; o++) {
            y[o] += w[o] * x[from[o]];
        }
    }
}

static void NAME(forward)(const tl_resize *r, const void *from, void *to,
                          void *row)
{
    const REAL *x = from;
    REAL *y = to;

    for (int64_t d = 0; d < r->axis[0].out; d++) {
        for (int64_t h = 0; h < r->axis[1].out; h++) {
            NAME(sample_row)
            (&r->axis[2], NAME(join_rows)(r, x, d, h, row), y);
            y += r->axis[2].out;
        }
    }
}

static void NAME(backward)(const tl_resize *r, const void *upstream, void *to,
                           void *scratch)
{
    const tl_resize_axis *a = &r->axis[2];
    const REAL *g = upstream;
    int taps = r->axis[0].taps * r->axis[1].taps;
    REAL *dx = to, *row = scratch;
    int64_t from;

    memset(dx, 0,
           (size_t)(r->axis[0].in * r->axis[1].in * a->in) * sizeof(REAL));
    for (int64_t i = 0; i < r->axis[0].out * r->axis[1].out; i++) {
        memset(row, 0, (size_t)a->in * sizeof(REAL));
        for (int t = 0; t < a->taps; t++) {
            for (int64_t o = 0; o < a->out; o++) {
                row[a->from[t][o]] += ((const REAL *)a->weight[t])[o] * g[o];
            }
        }
        g += a->out;
        for (int t = 0; t < taps; t++) {
            REAL w = NAME(row_tap)(r, i / r->axis[1].out, i % r->axis[1].out,
                                   t, &from);
            REAL *sum = dx + from * a->in;

            TL_INDEPENDENT
            for (int64_t k = 0; k < a->in; k++) {
                sum[k] += w * row[k];
            }
        }
    }
}

const tl_resize_loops TABLE = {
    .forward = NAME(forward),
    .backward = NAME(backward),
};

#undef REAL
#undef NAME
#undef TABLE
