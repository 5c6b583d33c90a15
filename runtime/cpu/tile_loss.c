/* tile_loss.c - cross entropy in tile programs over rows.
 *
 * The arithmetic of a row is that of loss.c.  What a loss needs of all rows
 * is computed before the pieces (weights, targets) or after them (the total,
 * of costs that each row leaves in an array). */
#include "runtime/cpu/tile_make.h"

#include <math.h>
#include <string.h>

#include "runtime/base/check.h"
#include "runtime/base/mem.h"
#include "runtime/cpu/kern.h"
#include "runtime/cpu/rowmath.h"
#include "runtime/op/loss.h"

/* Attributes of a step. */
enum {
    SMOOTHING,
    IGNORE,
    REDUCE,
    PLAIN
};

bool tl_tile_is_loss(tl_op op)
{
    return op == TL_OP_cross_entropy || op == TL_OP_cross_entropy_grad;
}

bool tl_tile_is_total(const tl_tile_step *s)
{
    return s->op == TL_OP_cross_entropy && s->which < 0 &&
           s->p[REDUCE] != TL_LOSS_NONE;
}

/* ---- making ------------------------------------------------------------- */

/* The operands: -1 is absent, bits of `rows` have an element a row. */
static void add_operands(tl_tile_maker *m, const tl_tile_step *s,
                         tl_dtype arith, int targets, uint8_t rows,
                         uint16_t *in)
{
    for (int k = 0; k < s->nin; k++) {
        tl_dtype dtype = k == targets ? TL_i64 : arith;

        if (s->in[k] == -1) {
            in[k] = TL_TILE_NO_PLACE;
        } else if ((rows >> k & 1) == 0) {
            in[k] = tl_tile_whole(m, s->in[k], dtype);
        } else {
            in[k] = tl_tile_form(m, s->in[k], dtype);
            TL_CHECK(m->place[in[k]].rows || m->row == 1 ||
                     tl_tile_is_once(m, in[k]));
        }
    }
}

/* Where the first result goes; `rounded` is where it is in its own dtype. */
static uint16_t add_result(tl_tile_maker *m, int i, tl_dtype arith, bool rows)
{
    tl_dtype to = (tl_dtype)m->s->steps[i].dtype;

    if (tl_tile_is_total(&m->s->steps[i])) {
        return tl_tile_add_place(m, TL_TILE_ARRAY, arith, 2 * m->nlines,
                                 true);
    }
    return to == arith ? tl_tile_target(m, i, to, false, rows)
                       : tl_tile_add_place(m, TL_TILE_SLOT, arith, 0, rows);
}

static void add_line(tl_tile_maker *m, int i, const tl_tile_code *c,
                     tl_dtype arith)
{
    const tl_tile_step *s = &m->s->steps[i];
    bool forward = s->op == TL_OP_cross_entropy;
    tl_tile_line *l = tl_tile_new_line(m, i);

    l->from = arith;
    l->rows_in = forward ? 2 : 1 | 4 | 8;
    l->rows_out = forward;
    l->targets = s->in[forward ? 1 : 2];
    l->weight = s->in[forward ? 2 : 4];
    TL_CHECK(l->targets >= 0 && l->weight >= -1);
    m->first_line[i] = c->item;
    if (forward) {
        l->result = tl_tile_is_total(s) ? s->to : -1;
        l->more[0] = tl_tile_add_place(m, TL_TILE_SLOT, arith, 0, true);
        l->more[1] = s->p[REDUCE] == TL_LOSS_MEAN
                         ? tl_tile_add_place(m, TL_TILE_ARRAY, arith,
                                             2 * c->item + 1, true)
                         : TL_TILE_NO_PLACE;
    }
}

void tl_tile_add_loss(tl_tile_maker *m, int i)
{
    const tl_tile_step *s = &m->s->steps[i];
    bool forward = s->op == TL_OP_cross_entropy;
    tl_dtype to = (tl_dtype)s->dtype, arith = tl_dtype_arith(to);
    uint16_t in[TL_MAP_OPERANDS], place;
    tl_tile_code *c;

    TL_CHECK(s->nin == (forward ? 3 : 5) && s->p != NULL);
    add_operands(m, s, arith, forward ? 1 : 2, forward ? 2 : 1 | 4 | 8, in);
    place = add_result(m, i, arith, forward);
    c = tl_tile_add_code(m, TL_TILE_LINE, place);
    c->item = (uint16_t)m->nlines;
    c->nin = s->nin;
    for (int k = 0; k < s->nin; k++) {
        c->in[k] = in[k];
    }
    add_line(m, i, c, arith);
    if (!tl_tile_is_total(s) && to != arith) {
        uint16_t rounded = tl_tile_target(m, i, to, false, forward);

        tl_tile_add_stage(m, place, arith, to, rounded);
        place = rounded;
    }
    if (!tl_tile_is_total(s)) {
        tl_tile_set_form(m, i, to, place);
    }
    m->ns += 4;
}

tl_status tl_tile_loss_room(tl_tile *t, tl_diag *diag)
{
    for (int i = 0; i < t->nlines; i++) {
        tl_tile_line *l = &t->line[i];
        int64_t rows = t->space.n / t->row;
        size_t bytes = (size_t)(2 * rows + t->row) * sizeof(double);

        if (!tl_tile_is_loss(l->op)) {
            continue;
        }
        l->block = tl_malloc(bytes);
        if (l->block == NULL) {
            return tl_fail_memory(diag, "costs of rows", bytes);
        }
        l->array[0] = l->block;
        l->array[1] = l->block + rows * (int64_t)sizeof(double);
    }
    return TL_OK;
}

/* ---- running ------------------------------------------------------------ */

/* Sum of the classes' weights; number of classes without. */
static double sum_of_weights(const tl_tile *t, const tl_tile_line *l)
{
    bool wide = l->from == TL_f64;
    void *row = l->array[1] + t->space.n / t->row * (int64_t)sizeof(double);

    if (l->weight < 0) {
        return (double)t->row;
    }
    for (int64_t k = 0; k < t->row; k++) {
        tl_row_set(row, wide, k, tl_tensor_get_f(t->in[l->weight], k));
    }
    return tl_rowmath_get(l->from)->sum(t->row, row);
}

/* Sum of the weights of the rows that count. */
static double total_weight(const tl_tile *t, const tl_tile_line *l)
{
    const tl_tensor *targets = t->in[l->targets];
    int64_t ignore = (int64_t)t->p[l->step][IGNORE];
    bool wide = l->from == TL_f64;

    for (int64_t i = 0; i < targets->numel; i++) {
        int64_t y = tl_cpu_get_int(targets, i);

        tl_row_set(l->array[0], wide, i,
                   y == ignore     ? 0
                   : l->weight < 0 ? 1
                                   : tl_tensor_get_f(t->in[l->weight], y));
    }
    return tl_rowmath_get(l->from)->sum(targets->numel, l->array[0]);
}

tl_status tl_tile_loss_begin(const tl_tile *t, tl_diag *diag)
{
    for (int i = 0; i < t->nlines; i++) {
        tl_tile_line *l = &t->line[i];
        const double *p = t->p[l->step];

        if (!tl_tile_is_loss(l->op)) {
            continue;
        }
        TL_CHECK(t->in[l->targets]->numel == t->space.n / t->row);
        TL_TRY(tl_cpu_check_targets(t->in[l->targets], t->row,
                                    (int64_t)p[IGNORE], diag));
        l->weight_sum = sum_of_weights(t, l);
        l->scale = 1;
        if (l->op == TL_OP_cross_entropy_grad && p[REDUCE] == TL_LOSS_MEAN) {
            l->scale = 1 / total_weight(t, l);
        }
    }
    return TL_OK;
}

/* The mean is divided in the type of the arithmetic. */
static double total(const tl_tile *t, const tl_tile_line *l)
{
    const tl_rowmath *math = tl_rowmath_get(l->from);
    int64_t rows = t->space.n / t->row;
    double sum = math->sum(rows, l->array[0]), weight;

    if (t->p[l->step][REDUCE] == TL_LOSS_SUM) {
        return sum;
    }
    weight = math->sum(rows, l->array[1]);
    return l->from == TL_f64 ? sum / weight
                             : (double)((float)sum / (float)weight);
}

void tl_tile_loss_end(const tl_tile *t)
{
    for (int i = 0; i < t->nlines; i++) {
        const tl_tile_line *l = &t->line[i];

        if (l->result >= 0) {
            tl_tensor_set_f(t->to[l->result], 0, total(t, l));
        }
    }
}

/* in: logits, targets, weight?; out: cost, lse, weight of the row? */
static void forward_row(const tl_tile_line *l, const double *p, int64_t i,
                        int64_t n, const void *const *in, void *const *out)
{
    const tl_rowmath *math = tl_rowmath_get(l->from);
    bool wide = l->from == TL_f64;
    int64_t target = ((const int64_t *)in[1])[i];
    bool ignored = target == (int64_t)p[IGNORE];
    tl_row_loss row = {.smoothing = p[SMOOTHING],
                       .weight = in[2],
                       .weight_sum = l->weight_sum,
                       .target = target};
    double lse = p[PLAIN] != 0 ? 0 : math->logsumexp(n, in[0]);

    tl_row_set(out[1], wide, i, lse);
    tl_row_set(out[0], wide, i,
               ignored ? 0 : math->loss(n, in[0], lse, &row));
    if (out[2] != NULL) {
        tl_row_set(out[2], wide, i,
                   ignored         ? 0
                   : in[2] == NULL ? 1
                                   : tl_row_get(in[2], wide, target));
    }
}

/* in: g, logits, targets, lse, weight? */
static void backward_row(const tl_tile_line *l, const double *p, int64_t i,
                         int64_t n, const void *const *in, void *const *out)
{
    bool wide = l->from == TL_f64;
    int64_t target = ((const int64_t *)in[2])[i];
    tl_row_loss row = {.smoothing = p[SMOOTHING],
                       .weight = in[4],
                       .weight_sum = l->weight_sum,
                       .target = target};

    if (target == (int64_t)p[IGNORE]) {
        memset(out[0], 0, (size_t)n * tl_dtype_size(l->from));
        return;
    }
    /* exp(x - inf) is 0: without lse there is no share of softmax */
    tl_rowmath_get(l->from)->loss_grad(
        n, in[1],
        p[PLAIN] != 0 ? (double)INFINITY : tl_row_get(in[3], wide, i), &row,
        tl_row_get(in[0], wide, i) * l->scale, out[0]);
}

void tl_tile_loss_row(const tl_tile_line *l, const double *p, int64_t i,
                      int64_t n, const void *const *in, void *const *out)
{
    if (l->op == TL_OP_cross_entropy) {
        forward_row(l, p, i, n, in, out);
    } else {
        backward_row(l, p, i, n, in, out);
    }
}
