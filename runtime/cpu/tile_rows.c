/* tile_rows.c - tile programs over rows: reductions of rows, and rows that
 * are computed as a whole, between steps.
 *
 * A value has an element for each element of the space, or one a row: what a
 * reduction gives, inputs of size 1 along rows, and what is computed of such
 * alone.  Where both meet, the row's element is spread over the row. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "runtime/cpu/tile_make.h"

#include "runtime/base/check.h"
#include "runtime/cpu/reduce.h"
#include "runtime/cpu/rowmath.h"

/* Of a KERN row: which operands and further results have an element a row. */
typedef struct line_rule {
    tl_op op;
    int nin, nout;
    uint8_t rows_in; /* bits */
} line_rule;

static const line_rule rules[] = {
    {TL_OP_softmax, 1, 1, 0},      {TL_OP_log_softmax, 1, 1, 0},
    {TL_OP_softmax_grad, 2, 1, 0}, {TL_OP_log_softmax_grad, 2, 1, 0},
    {TL_OP_layer_norm, 3, 3, 0},   {TL_OP_layer_norm_grad, 5, 1, 4 | 8},
};

static const line_rule *rule_of(tl_op op)
{
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        if (rules[i].op == op) {
            return &rules[i];
        }
    }
    return NULL;
}

bool tl_tile_rows_takes(tl_op op, int64_t n)
{
    if (n <= 0 || n > TL_REDUCE_ROW) {
        return false;
    }
    return tl_op_get(op)->cls == TL_CLASS_RED || rule_of(op) != NULL ||
           tl_tile_is_loss(op);
}

/* ---- making ------------------------------------------------------------- */

tl_tile_line *tl_tile_new_line(tl_tile_maker *m, int i)
{
    tl_tile_line *l = &m->line[m->nlines++];

    *l = (tl_tile_line){.op = (tl_op)m->s->steps[i].op,
                        .step = i,
                        .to = (tl_dtype)m->s->steps[i].dtype,
                        .more = {TL_TILE_NO_PLACE, TL_TILE_NO_PLACE},
                        .targets = -1,
                        .weight = -1,
                        .result = -1};
    return l;
}

static void add_fold(tl_tile_maker *m, int i)
{
    const tl_tile_step *s = &m->s->steps[i];
    tl_dtype from = tl_tile_dtype(m, s->in[0]), to = (tl_dtype)s->dtype;
    uint16_t in = tl_tile_whole(m, s->in[0], from);
    uint16_t place = tl_tile_target(m, i, to, false, true);
    tl_tile_code *c = tl_tile_add_code(m, TL_TILE_FOLD, place);

    c->item = (uint16_t)m->nlines;
    c->nin = 1;
    c->in[0] = in;
    tl_tile_new_line(m, i)->from = from;
    tl_tile_set_form(m, i, to, place);
    m->ns += 0.5;
}

/* The row's first result, in the type of its arithmetic, and rounded. */
static void add_first(tl_tile_maker *m, int i, const line_rule *rule)
{
    const tl_tile_step *s = &m->s->steps[i];
    tl_dtype to = (tl_dtype)s->dtype, arith = tl_dtype_arith(to);
    uint16_t in[TL_MAP_OPERANDS], place;
    tl_tile_line *l;
    tl_tile_code *c;

    TL_CHECK(s->nin == rule->nin);
    for (int k = 0; k < s->nin; k++) {
        in[k] = s->in[k] == -1 ? TL_TILE_NO_PLACE
                : (rule->rows_in >> k & 1) != 0
                    ? tl_tile_form(m, s->in[k], arith)
                    : tl_tile_whole(m, s->in[k], arith);
        TL_CHECK(in[k] == TL_TILE_NO_PLACE || m->row == 1 ||
                 m->place[in[k]].rows == (rule->rows_in >> k & 1) ||
                 tl_tile_is_once(m, in[k])); /* of the only row */
    }
    place = to == arith ? tl_tile_target(m, i, to, false, false)
                        : tl_tile_add_place(m, TL_TILE_SLOT, arith, 0, false);
    c = tl_tile_add_code(m, TL_TILE_LINE, place);
    c->item = (uint16_t)m->nlines;
    c->nin = s->nin;
    for (int k = 0; k < s->nin; k++) {
        c->in[k] = in[k];
    }
    l = tl_tile_new_line(m, i);
    l->from = arith;
    l->rows_in = rule->rows_in;
    for (int k = 1; k < rule->nout; k++) {
        l->more[k - 1] = tl_tile_add_place(m, TL_TILE_SLOT, arith, 0, true);
    }
    m->first_line[i] = c->item;
    if (to != arith) {
        uint16_t rounded = tl_tile_target(m, i, to, false, false);

        tl_tile_add_stage(m, place, arith, to, rounded);
        place = rounded;
    }
    tl_tile_set_form(m, i, to, place);
    m->ns += 4;
}

void tl_tile_add_line(tl_tile_maker *m, int i)
{
    const tl_tile_step *s = &m->s->steps[i];
    const line_rule *rule = rule_of((tl_op)s->op);

    TL_CHECK(m->row > 0 && tl_tile_rows_takes((tl_op)s->op, m->row));
    if (s->which < 0) {
        if (tl_tile_is_loss((tl_op)s->op)) {
            tl_tile_add_loss(m, i);
        } else if (rule != NULL) {
            add_first(m, i, rule);
        } else {
            add_fold(m, i);
        }
    } else { /* a further result of the step that it names */
        int first = -2 - s->in[0];

        TL_CHECK(first >= 0 && m->s->steps[first].op == s->op &&
                 s->which <= 2);
        tl_tile_set_form(m, i, (tl_dtype)s->dtype,
                         m->line[m->first_line[first]].more[s->which - 1]);
    }
}

/* ---- running ------------------------------------------------------------ */

void tl_tile_spread(const tl_tile_runner *r, const tl_tile_code *c,
                    const tl_tile_piece *p)
{
    const char *from = r->at[c->in[0]];
    char *to = (char *)(uintptr_t)r->at[c->to];

    for (int64_t i = 0; i < p->nrows; i++) {
        c->stage(r->t->row, from + i * c->width, 0, to);
        to += r->t->row * c->width;
    }
}

void tl_tile_fold(const tl_tile_runner *r, const tl_tile_code *c,
                  const tl_tile_piece *p)
{
    const tl_tile_line *l = &r->t->line[c->item];
    tl_reduce_table x = {r->at[c->in[0]], l->from, p->nrows, r->t->row};
    char *to = (char *)(uintptr_t)r->at[c->to];

#ifdef TL_HAVE_AVX2_KERNELS
    if (r->t->avx2) {
        tl_reduce_rows_avx2(l->op, &x, r->t->p[l->step][0], to, l->to);
        return;
    }
#endif
    tl_reduce_rows(l->op, &x, r->t->p[l->step][0], to, l->to);
}

/* Row i of a few; in[], out[] are rows, but for statistics, which are those
 * of all rows. */
static void one_row(const tl_rowmath *math, const tl_tile_line *l,
                    const double *p, int64_t i, int64_t n,
                    const void *const *in, void *const *out)
{
    bool wide = l->from == TL_f64;
    double mean, rstd;

    switch (l->op) {
    case TL_OP_softmax:
        math->softmax(NULL, i, n, in, out);
        break;
    case TL_OP_log_softmax:
        math->log_softmax(NULL, i, n, in, out);
        break;
    case TL_OP_softmax_grad:
        math->softmax_grad(NULL, i, n, in, out);
        break;
    case TL_OP_log_softmax_grad:
        math->log_softmax_grad(NULL, i, n, in, out);
        break;
    case TL_OP_layer_norm: /* x, weight?, bias? */
        math->moments(n, in[0], p[0], &mean, &rstd);
        tl_row_set(out[1], wide, i, mean);
        tl_row_set(out[2], wide, i, rstd);
        math->normalise(n, in[0], mean, rstd, in[1], in[2], out[0]);
        break;
    case TL_OP_layer_norm_grad: /* g, x, mean, rstd, weight? */
        math->normalise_grad(n, in[0], in[1], tl_row_get(in[2], wide, i),
                             tl_row_get(in[3], wide, i), in[4], out[0]);
        break;
    default:
        tl_tile_loss_row(l, p, i, n, in, out);
    }
}

void tl_tile_line_rows(const tl_tile_runner *r, const tl_tile_code *c,
                       const tl_tile_piece *p)
{
    const tl_tile *t = r->t;
    const tl_tile_line *l = &t->line[c->item];
    const tl_rowmath *math = tl_rowmath_get(l->from);
    int64_t bytes = t->row * (int64_t)tl_dtype_size(l->from);
    const void *in[TL_MAP_OPERANDS] = {NULL};
    void *out[3] = {NULL};

    for (int64_t i = 0; i < p->nrows; i++) {
        for (int k = 0; k < c->nin; k++) {
            if (c->in[k] != TL_TILE_NO_PLACE) {
                bool rows = (l->rows_in >> k & 1) != 0;

                in[k] = r->at[c->in[k]] + (rows ? 0 : i * bytes);
            }
        }
        out[0] =
            (char *)(uintptr_t)r->at[c->to] + (l->rows_out ? 0 : i * bytes);
        for (int k = 0; k < 2; k++) {
            if (l->more[k] != TL_TILE_NO_PLACE) {
                out[k + 1] = (char *)(uintptr_t)r->at[l->more[k]];
            }
        }
        one_row(math, l, t->p[l->step], i, t->row, in, out);
    }
}

tl_status tl_tile_rows_new(tl_tile **out, int rank, const int64_t *shape,
                           int trailing, const tl_tile_step *steps,
                           int nsteps, tl_tensor *const *in, int nin,
                           tl_tensor *const *to, int nto, tl_diag *diag)
{
    tl_tile_source s = {.rank = rank,
                        .trailing = trailing,
                        .size = shape,
                        .steps = steps,
                        .nsteps = nsteps,
                        .in = in,
                        .nin = nin,
                        .to = to,
                        .nto = nto,
                        .feed = -1};

    TL_CHECK(trailing > 0 && trailing <= rank);
    return tl_tile_make(out, &s, diag);
}
