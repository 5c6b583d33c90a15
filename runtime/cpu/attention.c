/* attention.c - scaled dot-product attention by tiles of 64 queries and 128
 * keys (op/attention.h).
 *
 * A task has a tile of queries of one head, and goes over the keys that these
 * see with an online softmax. */
#include <math.h>
#include <string.h>

#include "runtime/base/check.h"
#include "runtime/cpu/attention_job.h"

enum {
    ROWS = TL_ATTN_ROWS,
    COLS = TL_ATTN_COLS
};

/* sum = sum * keep + scores v */
static void add_values(tl_attn_worker *w, const tl_attn_place *p)
{
    const tl_attn *a = w->a;

    tl_attn_product(
        w,
        (tl_gemm){.m = p->rows,
                  .n = a->D,
                  .k = p->cols,
                  .a = w->scores,
                  .b = tl_attn_at(a, a->v.data, p->v + p->s * a->v.ld),
                  .c = w->part,
                  .lda = p->cols,
                  .ldb = a->v.ld,
                  .ldc = a->D},
        true);
    a->math->join(p->rows, a->D, w->sum, a->D, w->part, w->keep);
}

/* Are the results of these rows finite? */
static bool forward_rows(tl_attn_worker *w, tl_attn_place p)
{
    tl_attn *a = w->a;
    int64_t end = tl_attn_seen(a, p.t + p.rows - 1),
            row = p.head * a->T + p.t;

    memset(w->sum, 0, (size_t)(p.rows * a->D * a->width));
    for (int64_t i = 0; i < p.rows; i++) {
        tl_attn_set(a, w->max, i, -INFINITY);
        tl_attn_set(a, w->total, i, 0);
    }
    for (p.s = 0; p.s < end; p.s += COLS) {
        p.cols = tl_attn_least(COLS, end - p.s);
        tl_attn_tile tile = tl_attn_tile_of(a, &p);

        tl_attn_scores(w, &p);
        a->math->forward(&tile, w->scores, w->max, w->total, w->keep);
        add_values(w, &p);
    }
    return a->math->finish(p.rows, a->D, w->sum, w->max, w->total,
                           tl_attn_at(a, a->out[0], row * a->D),
                           tl_attn_at(a, a->lse, row));
}

/* The tiles that see most keys come first. */
static void forward_task(void *arg, int64_t task, int number)
{
    tl_attn *a = arg;
    tl_attn_worker w = tl_attn_worker_of(a, number);
    int64_t heads = a->keys_of * a->heads, tiles = tl_ceil_div(a->T, ROWS);
    tl_attn_place p = tl_attn_place_of(a, task % heads);

    p.t = (tiles - 1 - task / heads) * ROWS;
    p.rows = tl_attn_least(ROWS, a->T - p.t);
    if (!forward_rows(&w, p)) {
        w.careful = true;
        (void)forward_rows(&w, p);
    }
}

tl_status tl_cpu_sdpa(tl_kernel_ctx *k, tl_op op, tl_tensor *const *in,
                      int nin, tl_tensor *const *out, int nout,
                      const tl_attrs *attrs)
{
    tl_attn a = {.k = NULL};
    tl_status st;

    (void)op;
    (void)nout;
    if (out[1]->numel == 0) { /* no query */
        return TL_OK;
    }
    TL_GOTO(st, tl_attn_init(&a, k, in, nin > 3 ? in[3] : NULL, attrs));
    TL_GOTO(st, tl_attn_set_result(&a, 0, out[0]));
    TL_GOTO(st, tl_attn_make_room(&a));
    a.lse = tl_tensor_data(out[1]);
    tl_attn_run(&a, a.keys_of * a.heads * tl_ceil_div(a.T, ROWS),
                tl_attn_cost(&a, tl_attn_least(ROWS, a.T), a.S),
                forward_task);
    tl_attn_round(&a, 0, out[0]);
    st = tl_attn_ran(&a);
out:
    tl_attn_fini(&a);
    return st;
}
