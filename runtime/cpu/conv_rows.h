/* conv_rows.h - the body of conv_rows.c for one type: REAL, NAME, TABLE.
 * Not an ordinary header: included once for each type. */

/* ---- patches ------------------------------------------------------------ */

/* Windows [x0, x0 + n) of one row from the input row `from`. */
static void NAME(gather_row)(const tl_conv_geo *g, int64_t kw, int64_t x0,
                             int64_t n, const REAL *from, REAL *to)
{
    int64_t s = g->stride[2], first = place(g, 2, x0, kw), lo, hi;

    inside(n, g->in[2], s, first, &lo, &hi);
    for (int64_t i = 0; i < lo; i++) {
        to[i] = 0;
    }
    if (s == 1) {
        for (int64_t i = lo; i < hi; i++) {
            to[i] = from[first + i];
        }
    } else {
        for (int64_t i = lo; i < hi; i++) {
            to[i] = from[first + i * s];
        }
    }
    for (int64_t i = hi; i < n; i++) {
        to[i] = 0;
    }
}

/* One row of the patch matrix. */
static void NAME(gather_tap)(const tl_conv_patch *p, tap t, const REAL *x,
                             REAL *to)
{
    const tl_conv_geo *g = p->geo;
    int64_t ow = g->out[2], row = p->p0 / ow, x0 = p->p0 % ow;
    int64_t od = row / g->out[1], oh = row % g->out[1];

    for (int64_t at = p->p0; at < p->p1; x0 = 0) {
        int64_t n = ow - x0 < p->p1 - at ? ow - x0 : p->p1 - at;
        int64_t from = input_row(g, t, od, oh);

        if (from < 0) {
            memset(to, 0, (size_t)n * sizeof(REAL));
        } else {
            NAME(gather_row)(g, t.kw, x0, n, x + from, to);
        }
        to += n;
        at += n;
        oh++;
        if (oh == g->out[1]) {
            oh = 0;
            od++;
        }
    }
}

static void NAME(gather)(const tl_conv_patch *p, const void *x, void *col)
{
    const tl_conv_geo *g = p->geo;
    int64_t volume = tl_conv_volume(g->in), n = p->p1 - p->p0;
    REAL *to = col;

    for (int64_t c = p->c0; c < p->c1; c++) {
        const REAL *from = (const REAL *)x + c * volume;

        for (int64_t d = 0; d < g->k[0]; d++) {
            for (int64_t h = 0; h < g->k[1]; h++) {
                for (int64_t w = 0; w < g->k[2]; w++, to += n) {
                    NAME(gather_tap)(p, (tap){d, h, w}, from, to);
                }
            }
        }
    }
}

static void NAME(scatter_row)(const tl_conv_geo *g, int64_t kw, int64_t x0,
                              int64_t n, const REAL *from, REAL *to)
{
    int64_t s = g->stride[2], first = place(g, 2, x0, kw), lo, hi;

    inside(n, g->in[2], s, first, &lo, &hi);
    if (s == 1) {
        to += first;
        TL_INDEPENDENT
        for (int64_t i = lo; i < hi; i++) {
            to[i] += from[i];
        }
    } else {
        for (int64_t i = lo; i < hi; i++) {
            to[first + i * s] += from[i];
        }
    }
}

static void NAME(scatter_tap)(const tl_conv_patch *p, tap t,
                              const REAL *from, REAL *x)
{
    const tl_conv_geo *g = p->geo;
    int64_t ow = g->out[2], row = p->p0 / ow, x0 = p->p0 % ow;
    int64_t od = row / g->out[1], oh = row % g->out[1];

    for (int64_t at = p->p0; at < p->p1; x0 = 0) {
        int64_t n = ow - x0 < p->p1 - at ? ow - x0 : p->p1 - at;
        int64_t to = input_row(g, t, od, oh);

        if (to >= 0) {
            NAME(scatter_row)(g, t.kw, x0, n, from, x + to);
        }
        from += n;
        at += n;
        oh++;
        if (oh == g->out[1]) {
            oh = 0;
            od++;
        }
    }
}

static void NAME(scatter)(const tl_conv_patch *p, const void *col, void *x)
{
    const tl_conv_geo *g = p->geo;
    int64_t volume = tl_conv_volume(g->in), n = p->p1 - p->p0;
    const REAL *from = col;

    for (int64_t c = p->c0; c < p->c1; c++) {
        REAL *to = (REAL *)x + c * volume;

        for (int64_t d = 0; d < g->k[0]; d++) {
            for (int64_t h = 0; h < g->k[1]; h++) {
                for (int64_t w = 0; w < g->k[2]; w++, from += n) {
                    NAME(scatter_tap)(p, (tap){d, h, w}, from, to);
                }
            }
        }
    }
}

/* ---- one channel, one kernel -------------------------------------------- */

static void NAME(forward_row)(const tl_conv_geo *g, int64_t kw, REAL weight,
                              const REAL *x, REAL *y)
{
    int64_t s = g->stride[2], first = place(g, 2, 0, kw), lo, hi;

    inside(g->out[2], g->in[2], s, first, &lo, &hi);
    if (s == 1) {
        x += first;
        TL_INDEPENDENT
        for (int64_t i = lo; i < hi; i++) {
            y[i] += weight * x[i];
        }
    } else {
        x += first;
        TL_INDEPENDENT
        for (int64_t i = lo; i < hi; i++) {
            y[i] += weight * x[i * s];
        }
    }
}

static void NAME(data_row)(const tl_conv_geo *g, int64_t kw, REAL weight,
                           const REAL *y, REAL *x)
{
    int64_t s = g->stride[2], first = place(g, 2, 0, kw), lo, hi;

    inside(g->out[2], g->in[2], s, first, &lo, &hi);
    x += first;
    if (s == 1) {
        TL_INDEPENDENT
        for (int64_t i = lo; i < hi; i++) {
            x[i] += weight * y[i];
        }
    } else {
        TL_INDEPENDENT
        for (int64_t i = lo; i < hi; i++) {
            x[i * s] += weight * y[i];
        }
    }
}

/* Products of a row into the lanes: element i belongs to lane i mod LANES. */
static void NAME(weight_row)(const tl_conv_geo *g, int64_t kw, const REAL *x,
                             const REAL *y, REAL *lane)
{
    int64_t s = g->stride[2], first = place(g, 2, 0, kw), lo, hi, i;

    inside(g->out[2], g->in[2], s, first, &lo, &hi);
    x += first;
    for (i = lo; i + LANES <= hi && s == 1; i += LANES) {
        for (int l = 0; l < LANES; l++) {
            lane[l] += x[i + l] * y[i + l];
        }
    }
    for (; i + LANES <= hi; i += LANES) {
        for (int l = 0; l < LANES; l++) {
            lane[l] += x[(i + l) * s] * y[i + l];
        }
    }
    for (int l = 0; i < hi; i++, l++) {
        lane[l] += x[i * s] * y[i];
    }
}

/* Every row of windows with every tap; rows of padding are left out. */
#define EACH_ROW(g, t, od, oh, in_row)                                       \
    for (tap t = {0, 0, 0}; t.kd < (g)->k[0]; t.kd++)                        \
        for (t.kh = 0; t.kh < (g)->k[1]; t.kh++)                             \
            for (t.kw = 0; t.kw < (g)->k[2]; t.kw++)                         \
                for (int64_t od = 0; od < (g)->out[0]; od++)                 \
                    for (int64_t oh = 0, in_row; oh < (g)->out[1]; oh++)     \
                        if ((in_row = input_row(g, t, od, oh)) >= 0)

static int64_t NAME(tap_index)(const tl_conv_geo *g, tap t)
{
    return (t.kd * g->k[1] + t.kh) * g->k[2] + t.kw;
}

static void NAME(forward)(const tl_conv_geo *g, const void *x, const void *w,
                          void *y)
{
    memset(y, 0, (size_t)tl_conv_volume(g->out) * sizeof(REAL));
    EACH_ROW (g, t, od, oh, row) {
        NAME(forward_row)(g, t.kw, ((const REAL *)w)[NAME(tap_index)(g, t)],
                          (const REAL *)x + row,
                          (REAL *)y + (od * g->out[1] + oh) * g->out[2]);
    }
}

static void NAME(data)(const tl_conv_geo *g, const void *y, const void *w,
                       void *x)
{
    EACH_ROW (g, t, od, oh, row) {
        NAME(data_row)(g, t.kw, ((const REAL *)w)[NAME(tap_index)(g, t)],
                       (const REAL *)y + (od * g->out[1] + oh) * g->out[2],
                       (REAL *)x + row);
    }
}

static void NAME(weight_tap)(const tl_conv_geo *g, tap t, const REAL *x,
                             const REAL *y, REAL *lane)
{
    for (int64_t od = 0; od < g->out[0]; od++) {
        for (int64_t oh = 0; oh < g->out[1]; oh++) {
            int64_t row = input_row(g, t, od, oh);

            if (row >= 0) {
                NAME(weight_row)(g, t.kw, x + row,
                                 y + (od * g->out[1] + oh) * g->out[2], lane);
            }
        }
    }
}

static void NAME(weight)(const tl_conv_geo *g, const void *x, const void *y,
                         void *w)
{
    for (int64_t i = 0; i < tl_conv_volume(g->k); i++) {
        tap t = {i / (g->k[1] * g->k[2]), i / g->k[2] % g->k[1], i % g->k[2]};
        REAL lane[LANES] = {0};

        NAME(weight_tap)(g, t, x, y, lane);
        for (int half = LANES / 2; half > 0; half /= 2) {
            for (int l = 0; l < half; l++) {
                lane[l] += lane[l + half];
            }
        }
        ((REAL *)w)[i] += lane[0];
    }
}

static void NAME(add)(int64_t n, const void *from, void *to)
{
    const REAL *a = from;
    REAL *b = to;

    TL_INDEPENDENT
    for (int64_t i = 0; i < n; i++) {
        b[i] += a[i];
    }
}

const tl_conv_rows TABLE = {
    NAME(gather), NAME(scatter), NAME(forward),
    NAME(data),   NAME(weight),  NAME(add),
};

#undef REAL
#undef NAME
#undef TABLE
#undef EACH_ROW
