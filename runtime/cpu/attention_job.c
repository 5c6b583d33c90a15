/* attention_job.c - operands, room, products and tiles of attention. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "runtime/cpu/attention_job.h"

#include <math.h>
#include <string.h>

#include "runtime/base/check.h"

/* ---- operands ----------------------------------------------------------- */

static bool fits(const tl_tensor *t, tl_dtype dtype, int64_t *ld)
{
    int64_t rows = t->size[t->rank - 2], width = t->size[t->rank - 1];

    *ld = rows == 1 ? width : t->stride[t->rank - 2];
    return t->dtype == dtype && *ld >= width && *ld > 0 &&
           (width == 1 || t->stride[t->rank - 1] == 1);
}

/* Row-major elements in `dtype`, the type of the arithmetic. */
tl_status tl_attn_copy(tl_kernel_ctx *k, const tl_tensor *t, tl_dtype dtype,
                       tl_storage **out)
{
    tl_layout l;

    TL_TRY(tl_cpu_scratch(k, t->numel, tl_dtype_size(dtype), out));
    tl_layout_row_major(&l, t->rank, t->size);
    if (t->dtype == dtype) {
        tl_cpu_copy_elements(k, (int)tl_dtype_size(dtype), t->rank, t->size,
                             tl_storage_data(*out), l.stride,
                             tl_tensor_data(t), t->stride);
        return TL_OK;
    }
    if (dtype == TL_f32 && t->dtype != TL_f64) {
        return tl_cpu_widen(k, t, tl_storage_data(*out));
    }
    for (int64_t i = 0; i < t->numel; i++) { /* a mask of another type */
        double v = tl_tensor_get_f(t, i);

        if (dtype == TL_f64) {
            ((double *)tl_storage_data(*out))[i] = v;
        } else {
            ((float *)tl_storage_data(*out))[i] = (float)v;
        }
    }
    return TL_OK;
}

tl_status tl_attn_set_stack(tl_kernel_ctx *k, const tl_tensor *t,
                            tl_dtype dtype, tl_attn_stack *s)
{
    tl_layout l;

    s->lead = t->rank - 2;
    memcpy(s->size, t->size, (size_t)s->lead * sizeof(*s->size));
    if (t->numel == 0) {
        s->ld = 1;
        memset(s->stride, 0, sizeof(s->stride));
        return TL_OK;
    }
    if (fits(t, dtype, &s->ld)) {
        memcpy(s->stride, t->stride, (size_t)s->lead * sizeof(*s->stride));
        s->data = tl_tensor_data(t);
        return TL_OK;
    }
    TL_TRY(tl_attn_copy(k, t, dtype, &s->copy));
    tl_layout_row_major(&l, t->rank, t->size);
    memcpy(s->stride, l.stride, (size_t)s->lead * sizeof(*s->stride));
    s->ld = t->size[t->rank - 1];
    s->data = tl_storage_data(s->copy);
    return TL_OK;
}

/* Place of matrix `index`, counted in row-major order of the leading axes. */
int64_t tl_attn_stack_at(const tl_attn_stack *s, int64_t index)
{
    int64_t at = 0;

    for (int i = s->lead - 1; i >= 0; i--) {
        at += index % s->size[i] * s->stride[i];
        index /= s->size[i];
    }
    return at;
}

/* ---- the job ------------------------------------------------------------ */

static const tl_attn_math *math_of(tl_dtype dtype)
{
#ifdef TL_HAVE_AVX2_KERNELS
    if (tl_cpu_has_avx2()) {
        return dtype == TL_f64 ? TL_BEST_AVX(tl_attn_f64)
                               : TL_BEST_AVX(tl_attn_f32);
    }
#endif
    return dtype == TL_f64 ? &tl_attn_f64 : &tl_attn_f32;
}

/* Strides of the mask over the axes of the scores. */
static tl_status set_mask(tl_attn *a, const tl_tensor *q,
                          const tl_tensor *mask)
{
    tl_tensor view = *mask;
    tl_layout l;

    a->mask = mask;
    a->mask_rank = q->rank;
    memcpy(a->scores, q->size, (size_t)q->rank * sizeof(*q->size));
    a->scores[q->rank - 1] = a->S;
    if (mask->numel == 0) {
        return TL_OK;
    }
    a->mask_data = tl_tensor_data(mask);
    if (mask->dtype != TL_bool && mask->dtype != a->dtype) {
        TL_TRY(tl_attn_copy(a->k, mask, a->dtype, &a->mask_copy));
        a->mask_data = tl_storage_data(a->mask_copy);
        tl_layout_row_major(&l, mask->rank, mask->size);
        view.stride = l.stride;
        tl_cpu_broadcast(&view, q->rank, a->scores, a->mask_stride);
        return TL_OK;
    }
    tl_cpu_broadcast(mask, q->rank, a->scores, a->mask_stride);
    return TL_OK;
}

static tl_status check_dropout(tl_kernel_ctx *k, double p)
{
    return p >= 0 && p <= 1 ? TL_OK
                            : tl_fail(k->diag, TL_E0413,
                                      "dropout of `sdpa` "
                                      "with probability %g, outside 0..1",
                                      p);
}

/* Sizes and operands, from q, k, v and the mask (or NULL). */
tl_status tl_attn_init(tl_attn *a, tl_kernel_ctx *k, tl_tensor *const *qkv,
                       const tl_tensor *mask, const tl_attrs *attrs)
{
    const tl_tensor *q = qkv[0], *key = qkv[1], *v = qkv[2];
    tl_rng_key rng = tl_attrs_key(attrs);
    int rank = q->rank;

    TL_TRY(check_dropout(k, attrs->f[1]));
    a->k = k;
    a->dtype = tl_dtype_arith(q->dtype);
    a->width = (int64_t)tl_dtype_size(a->dtype);
    a->math = math_of(a->dtype);
    a->backend = tl_gemm_backend_of(a->dtype);
    a->T = q->size[rank - 2];
    a->S = key->size[rank - 2];
    a->E = q->size[rank - 1];
    a->D = v->size[rank - 1];
    a->keys_of = a->heads = 1;
    for (int i = 0; i < rank - 2; i++) {
        a->keys_of *= key->size[i];
    }
    if (rank > 3 && key->size[rank - 3] > 0) {
        a->heads = q->size[rank - 3] / key->size[rank - 3];
    }
    a->causal = attrs->flag;
    a->scale = tl_sdpa_scale(attrs, a->E);
    a->p = attrs->f[1];
    a->lane = tl_rng_start(&rng);
    TL_TRY(tl_attn_set_stack(k, q, a->dtype, &a->q));
    TL_TRY(tl_attn_set_stack(k, key, a->dtype, &a->key));
    TL_TRY(tl_attn_set_stack(k, v, a->dtype, &a->v));
    return mask ? set_mask(a, q, mask) : TL_OK;
}

void tl_attn_fini(tl_attn *a)
{
    tl_storage *owned[] = {a->q.copy,  a->key.copy, a->v.copy,    a->g.copy,
                           a->y.copy,  a->lse_copy, a->mask_copy, a->wide[0],
                           a->wide[1], a->wide[2],  a->delta,     a->part,
                           a->room};

    for (size_t i = 0; i < sizeof(owned) / sizeof(*owned); i++) {
        tl_storage_unref(owned[i]);
    }
}

/* Where result i goes: its tensor, or room for it in a wider type. */
tl_status tl_attn_set_result(tl_attn *a, int i, const tl_tensor *t)
{
    if (t->numel == 0) {
        return TL_OK;
    }
    if (t->dtype == a->dtype) {
        a->out[i] = tl_tensor_data(t);
        return TL_OK;
    }
    TL_TRY(tl_cpu_scratch(a->k, t->numel, (size_t)a->width, &a->wide[i]));
    a->out[i] = tl_storage_data(a->wide[i]);
    return TL_OK;
}

void tl_attn_round(tl_attn *a, int i, tl_tensor *t)
{
    if (a->wide[i]) {
        tl_cpu_narrow(a->k, a->out[i], t);
    }
}

/* ---- what a worker has -------------------------------------------------- */

static int64_t whole(int64_t bytes)
{
    return tl_ceil_div(bytes, 64) * 64;
}

/* Lay out the room of one worker from `p` on; its size. */
static size_t lay_out(const tl_attn *a, char *p, tl_attn_worker *w)
{
    int64_t wide = tl_attn_most(tl_attn_most(a->E, a->D), 1);
    int64_t size[] = {TL_ATTN_ROWS * TL_ATTN_COLS,
                      TL_ATTN_ROWS * TL_ATTN_COLS,
                      TL_ATTN_COLS * wide,
                      TL_ATTN_ROWS * wide,
                      TL_ATTN_ROWS,
                      TL_ATTN_ROWS,
                      TL_ATTN_ROWS,
                      TL_ATTN_COLS * wide};
    char **place[] = {&w->scores, &w->grad,  &w->part, &w->sum,
                      &w->max,    &w->total, &w->keep, &w->cleaned};
    char *start = p;

    for (size_t i = 0; i < sizeof(size) / sizeof(*size); i++) {
        *place[i] = p;
        p += whole(size[i] * a->width);
    }
    w->gemm = p;
    p += whole(a->backend ? (int64_t)a->backend->scratch : 0);
    return (size_t)(p - start);
}

tl_status tl_attn_make_room(tl_attn *a)
{
    char none[1];
    tl_attn_worker w;

    a->room_each = lay_out(a, none, &w);
    return tl_cpu_scratch(a->k, tl_threads_count(a->k->threads), a->room_each,
                          &a->room);
}

tl_attn_worker tl_attn_worker_of(tl_attn *a, int number)
{
    tl_attn_worker w = {.a = a};

    (void)lay_out(
        a, (char *)tl_storage_data(a->room) + (size_t)number * a->room_each,
        &w);
    return w;
}

static void run_task(void *arg, int64_t task, int number)
{
    tl_attn *a = arg;
    int64_t unit = task * a->units_a_task;
    int64_t end = tl_attn_least(unit + a->units_a_task, a->units);

    for (; unit < end; unit++) {
        a->unit(a, unit, number);
    }
}

void tl_attn_run(tl_attn *a, int64_t units, int64_t cost, tl_task_fn *fn)
{
    a->unit = fn;
    a->units = units;
    a->units_a_task = tl_cpu_rows_a_task(cost);
    tl_cpu_run(a->k, tl_ceil_div(units, a->units_a_task), run_task, a);
}

/* About 32 multiply-adds a nanosecond, and 2 for exp. */
int64_t tl_attn_cost(const tl_attn *a, int64_t rows, int64_t cols)
{
    double cost =
        (double)rows * (double)cols * (2 + (double)(a->E + a->D) / 32);

    return cost < 1e15 ? (int64_t)cost + 1000 : (int64_t)1e15;
}

/* ---- products ----------------------------------------------------------- */

static void multiply(tl_attn_worker *w, tl_gemm *g)
{
    tl_attn *a = w->a;

    g->scratch = w->gemm;
    if (!a->backend) {
        tl_gemm_plain(a->dtype, g);
    } else if (!a->backend->run(g)) {
        atomic_store_explicit(&a->failed, true, memory_order_relaxed);
    }
}

static double element(const tl_attn *a, const void *base, int64_t at)
{
    return a->width == 8 ? ((const double *)base)[at]
                         : (double)((const float *)base)[at];
}

void tl_attn_set(const tl_attn *a, void *base, int64_t at, double value)
{
    if (a->width == 8) {
        ((double *)base)[at] = value;
    } else {
        ((float *)base)[at] = (float)value;
    }
}

/* Add the row A[.., p] times B[p][j], which is not finite, to C[.., j]. */
static void add_column(const tl_attn *a, const tl_gemm *g, int64_t p,
                       int64_t j, double value)
{
    for (int64_t i = 0; i < g->m; i++) {
        double x = element(a, g->a, g->ta ? p * g->lda + i : i * g->lda + p);

        if (x != 0) {
            int64_t to = i * g->ldc + j;

            tl_attn_set(a, g->c, to, element(a, g->c, to) + x * value);
        }
    }
}

static void multiply_carefully(tl_attn_worker *w, tl_gemm *g)
{
    const tl_attn *a = w->a;
    int64_t rows = g->tb ? g->n : g->k, cols = g->tb ? g->k : g->n;
    tl_gemm clean = *g;

    for (int64_t i = 0; i < rows; i++) {
        for (int64_t j = 0; j < cols; j++) {
            double x = element(a, g->b, i * g->ldb + j);

            tl_attn_set(a, w->cleaned, i * cols + j, isfinite(x) ? x : 0);
        }
    }
    clean.b = w->cleaned;
    clean.ldb = cols;
    multiply(w, &clean);
    for (int64_t i = 0; i < rows; i++) {
        for (int64_t j = 0; j < cols; j++) {
            double x = element(a, g->b, i * g->ldb + j);

            if (!isfinite(x)) {
                add_column(a, g, g->tb ? j : i, g->tb ? i : j, x);
            }
        }
    }
}

/* C = A B; `careful`: as the file's head says, if the task is. */
void tl_attn_product(tl_attn_worker *w, tl_gemm g, bool careful)
{
    if (g.m == 0 || g.n == 0) {
        return;
    }
    if (g.k == 0) {
        for (int64_t i = 0; i < g.m; i++) {
            memset((char *)g.c + i * g.ldc * w->a->width, 0,
                   (size_t)(g.n * w->a->width));
        }
        return;
    }
    if (careful && w->careful) {
        multiply_carefully(w, &g);
    } else {
        multiply(w, &g);
    }
}

tl_status tl_attn_ran(const tl_attn *a)
{
    return a->failed ? tl_fail_memory(a->k->diag, "attention", 0) : TL_OK;
}

/* ---- tiles -------------------------------------------------------------- */

tl_attn_place tl_attn_place_of(const tl_attn *a, int64_t head)
{
    int64_t key = head / a->heads;

    return (tl_attn_place){.head = head,
                           .q = tl_attn_stack_at(&a->q, head),
                           .key = tl_attn_stack_at(&a->key, key),
                           .v = tl_attn_stack_at(&a->v, key),
                           .g =
                               a->g.data ? tl_attn_stack_at(&a->g, head) : 0};
}

static void set_tile_mask(const tl_attn *a, const tl_attn_place *p,
                          tl_attn_tile *t)
{
    int64_t index = p->head, offset = 0;

    if (!a->mask || !a->mask_data) {
        return;
    }
    for (int i = a->mask_rank - 3; i >= 0; i--) {
        offset += index % a->scores[i] * a->mask_stride[i];
        index /= a->scores[i];
    }
    t->mask_row = a->mask_stride[a->mask_rank - 2];
    t->mask_col = a->mask_stride[a->mask_rank - 1];
    offset += p->t * t->mask_row + p->s * t->mask_col;
    if (a->mask->dtype == TL_bool) {
        t->mask = (const unsigned char *)((uintptr_t)a->mask_data +
                                          (uintptr_t)offset);
    } else {
        t->bias = tl_attn_at(a, a->mask_data, offset);
    }
}

tl_attn_tile tl_attn_tile_of(const tl_attn *a, const tl_attn_place *p)
{
    tl_attn_tile t = {.rows = p->rows,
                      .cols = p->cols,
                      .scale = a->scale,
                      .p = a->p,
                      .lane = &a->lane,
                      .draw_row = (uint64_t)a->S};

    t.seen = a->causal ? p->t + a->S - a->T + 1 - p->s : p->cols;
    t.draw = ((uint64_t)p->head * (uint64_t)a->T + (uint64_t)p->t) *
                 (uint64_t)a->S +
             (uint64_t)p->s;
    set_tile_mask(a, p, &t);
    return t;
}

/* scores = q k' */
void tl_attn_scores(tl_attn_worker *w, const tl_attn_place *p)
{
    const tl_attn *a = w->a;

    tl_attn_product(
        w,
        (tl_gemm){.tb = true,
                  .m = p->rows,
                  .n = p->cols,
                  .k = a->E,
                  .a = tl_attn_at(a, a->q.data, p->q + p->t * a->q.ld),
                  .b = tl_attn_at(a, a->key.data, p->key + p->s * a->key.ld),
                  .c = w->scores,
                  .lda = a->q.ld,
                  .ldb = a->key.ld,
                  .ldc = p->cols},
        false);
}
