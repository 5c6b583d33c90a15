/* attention_grad.c - gradients of scaled dot-product attention.
 *
 * A task has a range of keys of one key head; it goes over the queries that
 * see them, in order, and sums the gradient of these into a buffer of its
 * range, which are added in order at the end.  Ranges depend on shapes alone,
 * so sums have one order. */
#include <string.h>

#include "runtime/base/check.h"
#include "runtime/cpu/attention_job.h"

enum {
    ROWS = TL_ATTN_ROWS,
    COLS = TL_ATTN_COLS,
    RANGES = 16 /* of keys, over all heads, where there are enough keys */
};

/* The first query that sees key s. */
static int64_t first_to_see(const tl_attn *a, int64_t s)
{
    return a->causal ? tl_attn_most(s - (a->S - a->T), 0) : 0;
}

/* scores: probabilities dropped out; grad: of the scaled scores, times
 * `factor`. */
static void backward_tile(tl_attn_worker *w, const tl_attn_place *p,
                          double factor)
{
    const tl_attn *a = w->a;
    tl_attn_tile tile = tl_attn_tile_of(a, p);
    int64_t row = p->head * a->T + p->t;

    tl_attn_scores(w, p);
    tl_attn_product(
        w,
        (tl_gemm){.tb = true,
                  .m = p->rows,
                  .n = p->cols,
                  .k = a->D,
                  .a = tl_attn_at(a, a->g.data, p->g + p->t * a->g.ld),
                  .b = tl_attn_at(a, a->v.data, p->v + p->s * a->v.ld),
                  .c = w->grad,
                  .lda = a->g.ld,
                  .ldb = a->v.ld,
                  .ldc = p->cols},
        true);
    a->math->backward(&tile, tl_attn_at(a, a->lse, row),
                      tl_attn_at(a, tl_storage_data(a->delta), row), factor,
                      w->scores, w->grad);
}

/* to[cols][n] += left' x, with left [rows][cols], x of the tile's queries */
static void add_transposed(tl_attn_worker *w, const tl_attn_place *p,
                           const char *left, const char *x, int64_t ld,
                           int64_t n, char *to)
{
    const tl_attn *a = w->a;

    tl_attn_product(w,
                    (tl_gemm){.ta = true,
                              .m = p->cols,
                              .n = n,
                              .k = p->rows,
                              .a = left,
                              .b = x,
                              .c = w->part,
                              .lda = p->cols,
                              .ldb = ld,
                              .ldc = n},
                    true);
    a->math->join(p->cols, n, to, n, w->part, NULL);
}

/* A tile's part in dq (from its first row on), dk and dv. */
static void add_tile(tl_attn_worker *w, const tl_attn_place *p, int64_t key,
                     char *dq)
{
    const tl_attn *a = w->a;
    int64_t at_key = key * a->S + p->s;

    backward_tile(w, p, a->scale);
    add_transposed(w, p, w->scores,
                   tl_attn_at(a, a->g.data, p->g + p->t * a->g.ld), a->g.ld,
                   a->D, tl_attn_at(a, a->out[2], at_key * a->D));
    add_transposed(w, p, w->grad,
                   tl_attn_at(a, a->q.data, p->q + p->t * a->q.ld), a->q.ld,
                   a->E, tl_attn_at(a, a->out[1], at_key * a->E));
    tl_attn_product(
        w,
        (tl_gemm){.m = p->rows,
                  .n = a->E,
                  .k = p->cols,
                  .a = w->grad,
                  .b = tl_attn_at(a, a->key.data, p->key + p->s * a->key.ld),
                  .c = w->part,
                  .lda = p->cols,
                  .ldb = a->key.ld,
                  .ldc = a->E},
        true);
    a->math->join(p->rows, a->E, dq, a->E, w->part, NULL);
}

/* Keys p.s .. of one query head against all queries that see them. */
static void backward_queries(tl_attn_worker *w, tl_attn_place p, int64_t key,
                             int64_t keys, char *dq)
{
    const tl_attn *a = w->a;

    for (p.t = first_to_see(a, p.s) / ROWS * ROWS; p.t < a->T; p.t += ROWS) {
        p.rows = tl_attn_least(ROWS, a->T - p.t);
        p.cols = tl_attn_least(keys, tl_attn_seen(a, p.t + p.rows - 1) - p.s);
        if (p.cols > 0) {
            add_tile(w, &p, key, tl_attn_at(a, dq, p.t * a->E));
        }
    }
}

/* n elements are 0; none may be at NULL. */
static void clear(const tl_attn *a, char *to, int64_t n)
{
    if (n > 0) {
        memset(to, 0, (size_t)(n * a->width));
    }
}

/* A range of keys of one key head; are its results finite? */
static bool backward_range(tl_attn_worker *w, int64_t range, int64_t key)
{
    tl_attn *a = w->a;
    int64_t head = key * a->heads, from = range * a->range;
    int64_t end = tl_attn_least(from + a->range, a->S),
            queries = a->heads * a->T;
    int64_t all = a->keys_of * queries * a->E;
    char *dq = a->part ? tl_attn_at(a, tl_storage_data(a->part), range * all)
                       : a->out[0];
    char *dk = tl_attn_at(a, a->out[1], (key * a->S + from) * a->E);
    char *dv = tl_attn_at(a, a->out[2], (key * a->S + from) * a->D);

    dq = tl_attn_at(a, dq, head * a->T * a->E);
    clear(a, dq, queries * a->E);
    clear(a, dk, (end - from) * a->E);
    clear(a, dv, (end - from) * a->D);
    for (int64_t s = from; s < end; s += COLS) {
        for (int64_t h = 0; h < a->heads; h++) {
            tl_attn_place p = tl_attn_place_of(a, head + h);

            p.s = s;
            backward_queries(w, p, key, tl_attn_least(COLS, end - s),
                             tl_attn_at(a, dq, h * a->T * a->E));
        }
    }
    return a->math->finite(queries * a->E, dq) &&
           a->math->finite((end - from) * a->E, dk) &&
           a->math->finite((end - from) * a->D, dv);
}

static void backward_task(void *arg, int64_t task, int number)
{
    tl_attn *a = arg;
    tl_attn_worker w = tl_attn_worker_of(a, number);
    int64_t range = task / a->keys_of, key = task % a->keys_of;

    if (!backward_range(&w, range, key)) {
        w.careful = true;
        (void)backward_range(&w, range, key);
    }
}

static void delta_task(void *arg, int64_t task, int number)
{
    tl_attn *a = arg;
    int64_t tiles = tl_ceil_div(a->T, ROWS), head = task / tiles;
    int64_t t = task % tiles * ROWS;

    (void)number;
    a->math->dots(
        tl_attn_least(ROWS, a->T - t), a->D,
        tl_attn_at(a, a->g.data, tl_attn_stack_at(&a->g, head) + t * a->g.ld),
        a->g.ld,
        tl_attn_at(a, a->y.data, tl_attn_stack_at(&a->y, head) + t * a->y.ld),
        a->y.ld, tl_attn_at(a, tl_storage_data(a->delta), head * a->T + t));
}

/* dq = the ranges' parts, in order. */
static void sum_task(void *arg, int64_t task, int number)
{
    tl_attn *a = arg;
    int64_t all = a->keys_of * a->heads * a->T * a->E;
    int64_t from = task * TL_CPU_GRAIN,
            n = tl_attn_least(TL_CPU_GRAIN, all - from);
    char *to = tl_attn_at(a, a->out[0], from);

    (void)number;
    memcpy(to, tl_attn_at(a, tl_storage_data(a->part), from),
           (size_t)(n * a->width));
    for (int64_t r = 1; r < a->ranges; r++) {
        a->math->join(1, n, to, n,
                      tl_attn_at(a, tl_storage_data(a->part), r * all + from),
                      NULL);
    }
}

/* lse as it lies, or a row-major copy. */
static tl_status set_lse(tl_attn *a, const tl_tensor *t)
{
    if (t->numel == 0 || tl_tensor_contiguous(t)) {
        a->lse = t->numel ? tl_tensor_data(t) : NULL;
        return TL_OK;
    }
    TL_TRY(tl_attn_copy(a->k, t, a->dtype, &a->lse_copy));
    a->lse = tl_storage_data(a->lse_copy);
    return TL_OK;
}

/* Everything that both gradients need. */
static tl_status start_backward(tl_attn *a, tl_kernel_ctx *k,
                                tl_tensor *const *in, int nin,
                                const tl_attrs *attrs)
{
    int64_t heads;

    TL_TRY(tl_attn_init(a, k, in + TL_SDPA_Q,
                        nin > TL_SDPA_MASK ? in[TL_SDPA_MASK] : NULL, attrs));
    TL_TRY(tl_attn_set_stack(k, in[TL_SDPA_G], a->dtype, &a->g));
    TL_TRY(tl_attn_set_stack(k, in[TL_SDPA_Y], a->dtype, &a->y));
    TL_TRY(set_lse(a, in[TL_SDPA_LSE]));
    heads = a->keys_of * a->heads;
    TL_TRY(tl_cpu_scratch(k, heads * a->T, (size_t)a->width, &a->delta));
    TL_TRY(tl_attn_make_room(a));
    tl_attn_run(a, heads * tl_ceil_div(a->T, ROWS),
                tl_attn_least(ROWS, a->T) * a->D / 2, delta_task);
    return TL_OK;
}

/* Ranges of whole tiles of keys. */
static tl_status cut_keys(tl_attn *a)
{
    int64_t tiles = tl_attn_most(tl_ceil_div(a->S, COLS), 1);

    a->ranges = tl_attn_most(
        tl_attn_least(tl_ceil_div(RANGES, tl_attn_most(a->keys_of, 1)),
                      tl_ceil_div(tiles, 2)),
        1);
    a->range = tl_ceil_div(tiles, a->ranges) * COLS;
    a->ranges = tl_attn_most(tl_ceil_div(a->S, a->range), 1);
    if (a->ranges == 1) {
        return TL_OK;
    }
    return tl_cpu_scratch(a->k,
                          a->ranges * a->keys_of * a->heads * a->T * a->E,
                          (size_t)a->width, &a->part);
}

static tl_status run_backward(tl_attn *a)
{
    int64_t all = a->keys_of * a->heads * a->T * a->E;

    TL_TRY(cut_keys(a));
    tl_attn_run(
        a, a->ranges * a->keys_of,
        3 * tl_attn_cost(a, a->heads * a->T, tl_attn_least(a->range, a->S)),
        backward_task);
    if (a->part && all > 0) {
        tl_cpu_run(a->k, tl_ceil_div(all, TL_CPU_GRAIN), sum_task, a);
    }
    return tl_attn_ran(a);
}

tl_status tl_cpu_sdpa_grad(tl_kernel_ctx *k, tl_op op, tl_tensor *const *in,
                           int nin, tl_tensor *const *out, int nout,
                           const tl_attrs *attrs)
{
    tl_attn a = {.k = NULL};
    tl_status st;

    (void)op;
    TL_GOTO(st, start_backward(&a, k, in, nin, attrs));
    for (int i = 0; i < nout; i++) {
        TL_GOTO(st, tl_attn_set_result(&a, i, out[i]));
    }
    st = run_backward(&a);
    for (int i = 0; i < nout && st == TL_OK; i++) {
        tl_attn_round(&a, i, out[i]);
    }
out:
    tl_attn_fini(&a);
    return st;
}

/* ---- gradient of an added mask ------------------------------------------ */

/* Gradients of the scores of a tile of queries; are they finite? */
static bool scores_rows(tl_attn_worker *w, tl_attn_place p)
{
    tl_attn *a = w->a;
    bool finite = true;

    for (p.s = 0; p.s < a->S; p.s += COLS) {
        int64_t row = p.head * a->T + p.t;

        p.cols = tl_attn_least(COLS, a->S - p.s);
        backward_tile(w, &p, 1);
        finite &= a->math->finite(p.rows * p.cols, w->grad);
        for (int64_t i = 0; i < p.rows; i++) {
            memcpy(tl_attn_at(a, a->out[0], (row + i) * a->S + p.s),
                   tl_attn_at(a, w->grad, i * p.cols),
                   (size_t)(p.cols * a->width));
        }
    }
    return finite;
}

static void scores_task(void *arg, int64_t task, int number)
{
    tl_attn *a = arg;
    tl_attn_worker w = tl_attn_worker_of(a, number);
    int64_t tiles = tl_ceil_div(a->T, ROWS);
    tl_attn_place p = tl_attn_place_of(a, task / tiles);

    p.t = task % tiles * ROWS;
    p.rows = tl_attn_least(ROWS, a->T - p.t);
    if (!scores_rows(&w, p)) {
        w.careful = true;
        (void)scores_rows(&w, p);
    }
}

tl_status tl_cpu_sdpa_mask_grad(tl_kernel_ctx *k, tl_op op,
                                tl_tensor *const *in, int nin,
                                tl_tensor *const *out, int nout,
                                const tl_attrs *attrs)
{
    tl_attn a = {.k = NULL};
    tl_status st;

    (void)op;
    (void)nout;
    if (out[0]->numel == 0) {
        return TL_OK;
    }
    TL_GOTO(st, start_backward(&a, k, in, nin, attrs));
    TL_GOTO(st, tl_attn_set_result(&a, 0, out[0]));
    tl_attn_run(&a, a.keys_of * a.heads * tl_ceil_div(a.T, ROWS),
                2 * tl_attn_cost(&a, tl_attn_least(ROWS, a.T), a.S),
                scores_task);
    st = tl_attn_ran(&a);
out:
    tl_attn_fini(&a);
    return st;
}
