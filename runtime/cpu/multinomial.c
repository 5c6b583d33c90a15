/* multinomial.c - classes drawn by weights.
 *
 * With replacement a class is where a uniform number falls among the running
 * sums of the weights.  Without, each class gets an exponential waiting time
 * -log(u) / weight, and the first ones are taken in order: the same as
 * drawing one after the other from what is left (Efraimidis and Spirakis,
 * "Weighted random sampling with a reservoir", 2006). */
#include <math.h>
#include <stdlib.h>

#include "runtime/cpu/kern.h"
#include "runtime/cpu/stage.h"

typedef struct draw {
    tl_rng_lane lane;
    int64_t n, count; /* classes, draws */
    double *weight;   /* of the row; then running sums */
} draw;

/* Number `i` of the draw, in [0, 1). */
static double uniform_at(const tl_rng_lane *lane, int64_t i)
{
    uint32_t words[4];

    tl_rng_block(words, lane, (uint64_t)i / 2);
    return tl_uniform_f64(words[2 * (i % 2)], words[2 * (i % 2) + 1]);
}

/* The weights of one row as doubles, and how many are above 0; -1: one is
 * negative or not finite. */
static int64_t read_weights(const draw *d, const tl_tensor *w, int64_t offset)
{
    tl_stage_fn *stage = tl_stage(w->dtype, TL_f64);
    const char *data = tl_tensor_data(w);
    int64_t positive = 0;

    stage(d->n, data + offset * (int64_t)tl_dtype_size(w->dtype),
          w->stride[w->rank - 1], d->weight);
    for (int64_t i = 0; i < d->n; i++) {
        if (!(d->weight[i] >= 0 && isfinite(d->weight[i]))) {
            return -1;
        }
        positive += d->weight[i] > 0;
    }
    return positive;
}

/* The first class whose running sum is above `x`. */
static int64_t find_class(const draw *d, double x)
{
    int64_t lo = 0, hi = d->n - 1;

    while (lo < hi) {
        int64_t mid = lo + (hi - lo) / 2;

        if (d->weight[mid] > x) {
            hi = mid;
        } else {
            lo = mid + 1;
        }
    }
    return lo;
}

static void draw_again(const draw *d, int64_t row, int64_t *to)
{
    double total = 0;
    int64_t last = 0;

    for (int64_t i = 0; i < d->n; i++) {
        last = d->weight[i] > 0 ? i : last;
        total = d->weight[i] = total + d->weight[i];
    }
    for (int64_t k = 0; k < d->count; k++) {
        double u = uniform_at(&d->lane, row * d->count + k);
        int64_t hit = find_class(d, u * total);

        to[k] = hit < last ? hit : last; /* u * total may round to total */
    }
}

typedef struct waiting {
    double time;
    int64_t of;
} waiting;

static int compare_times(const void *a, const void *b)
{
    const waiting *x = a, *y = b;

    return x->time < y->time   ? -1
           : x->time > y->time ? 1
           : x->of < y->of     ? -1
                               : x->of > y->of;
}

static void draw_once(const draw *d, int64_t row, waiting *w, int64_t *to)
{
    for (int64_t i = 0; i < d->n; i++) {
        double u = uniform_at(&d->lane, row * d->n + i);

        w[i].of = i;
        w[i].time =
            d->weight[i] > 0 ? -log(1 - u) / d->weight[i] : (double)INFINITY;
    }
    qsort(w, (size_t)d->n, sizeof *w, compare_times);
    for (int64_t k = 0; k < d->count; k++) {
        to[k] = w[k].of;
    }
}

/* What a row of weights must be; E0414. */
static tl_status check_row(tl_kernel_ctx *k, const draw *d, int64_t row,
                           int64_t positive, bool again)
{
    if (positive < 0) {
        return tl_fail(k->diag, TL_E0414,
                       "weights of row %lld are not all finite and >= 0",
                       (long long)row);
    }
    if (positive == 0 && d->count > 0) {
        return tl_fail(k->diag, TL_E0414, "weights of row %lld are all 0",
                       (long long)row);
    }
    if (!again && positive < d->count) {
        return tl_fail(k->diag, TL_E0414,
                       "%lld draws from the %lld classes of row %lld that "
                       "have weight",
                       (long long)d->count, (long long)positive,
                       (long long)row);
    }
    return TL_OK;
}

/* Offset of row `row` of the last axis of `t`. */
static int64_t row_offset(const tl_tensor *t, int64_t row)
{
    int64_t offset = 0;

    for (int i = t->rank - 2; i >= 0; i--) {
        offset += row % t->size[i] * t->stride[i];
        row /= t->size[i];
    }
    return offset;
}

tl_status tl_cpu_multinomial(tl_kernel_ctx *k, tl_op op, tl_tensor *const *in,
                             int nin, tl_tensor *const *out, int nout,
                             const tl_attrs *at)
{
    tl_rng_key key = tl_attrs_key(at);
    draw d = {.lane = tl_rng_start(&key)};
    int64_t rows, *to = tl_tensor_data(out[0]);
    tl_storage *scratch = NULL;
    tl_status st = TL_OK;
    waiting *w;

    (void)op;
    (void)nin;
    (void)nout;
    d.n = in[0]->size[in[0]->rank - 1];
    d.count = out[0]->size[in[0]->rank - 1];
    rows = d.count > 0 ? out[0]->numel / d.count : 0;
    TL_TRY(tl_cpu_scratch(k, d.n, sizeof *w + sizeof(double), &scratch));
    w = tl_storage_data(scratch);
    d.weight = (double *)(w + d.n);
    for (int64_t row = 0; row < rows; row++) {
        int64_t positive = read_weights(&d, in[0], row_offset(in[0], row));

        TL_GOTO(st, check_row(k, &d, row, positive, at->flag));
        if (at->flag) {
            draw_again(&d, row, to + row * d.count);
        } else {
            draw_once(&d, row, w, to + row * d.count);
        }
    }
out:
    tl_storage_unref(scratch);
    return st;
}
