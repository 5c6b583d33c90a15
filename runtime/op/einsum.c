/* einsum.c - contractions by patterns: permutations, products, sums.
 *
 * Operands are contracted from the left, two at a time.  Of two operands an
 * axis is *batch* (in both and needed later), *inner* (in both, not needed),
 * or *outer* of one of them; an axis of one operand that nothing needs is
 * summed at once.  With inner axes the pair is a matrix product
 * [batch.., M, K] @ [batch.., K, N], else an elementwise one.  Permutations
 * are views: a product gets its operands in the orientation in which they
 * lie, and axes merge only where there are several. */
#include <string.h>

#include "runtime/op/emit.h"
#include "runtime/op/pattern.h"

enum { MAX_AXES = TL_PATTERN_LABELS + TL_MAX_RANK }; /* names, rest axes */

typedef uint64_t axis_set;

/* A tensor whose axes have numbers: labels, then those of `...`, counted from
 * the right. */
typedef struct term {
    tl_node x;
    int n;
    int axis[TL_MAX_RANK];
} term;

typedef struct einsum {
    tl_emit *e;
    const tl_pattern *p;
    tl_pattern_place *place;
    int rest; /* most axes that a `...` stands for */
    tl_dim size[MAX_AXES];
    int first[MAX_AXES]; /* operand that gave the size, + 1 */
} einsum;

static axis_set bit(int axis)
{
    return (axis_set)1 << axis;
}

static axis_set axes_of(const term *t)
{
    axis_set set = 0;

    for (int i = 0; i < t->n; i++) {
        set |= bit(t->axis[i]);
    }
    return set;
}

/* ---- steps on one term ------------------------------------------------- */

/* Axes in the order `axis[0 .. n)`, all of the term's. */
static tl_status reorder(einsum *s, term *t, const int *axis)
{
    bool same = true;
    tl_attrs at;

    tl_attrs_init(&at);
    at.ndims = (uint16_t)t->n;
    for (int i = 0; i < t->n; i++) {
        int from = 0;

        while (t->axis[from] != axis[i]) {
            from++;
        }
        same &= from == i;
        at.dims[i] = tl_dim_num(from);
    }
    memcpy(t->axis, axis, (size_t)t->n * sizeof(*axis));
    return same ? TL_OK : tl_emit1(s->e, TL_OP_permute, t->x, &at, &t->x);
}

/* Sum over a set of the term's axes. */
static tl_status sum_out(einsum *s, term *t, axis_set gone)
{
    uint16_t axes = 0;
    int n = 0;

    for (int i = 0; i < t->n; i++) {
        if (gone & bit(t->axis[i])) {
            axes |= (uint16_t)(1u << i);
        } else {
            t->axis[n++] = t->axis[i];
        }
    }
    t->n = n;
    return axes ? tl_emit_reduce(s->e, TL_OP_sum, t->x, axes, false, &t->x)
                : TL_OK;
}

/* The diagonal over axes i < j of one size: the others are 0, then summed. */
static tl_status take_diagonal(einsum *s, term *t, int i, int j)
{
    tl_ttype type = *s->e->type(s->e, t->x);
    tl_node eye, zero;
    tl_attrs at;
    uint16_t others = 0;

    tl_attrs_init(&at);
    at.dtype = TL_bool;
    at.ndims = 2;
    at.dims[0] = type.shape.dim[i];
    at.dims[1] = type.shape.dim[j];
    TL_TRY(s->e->apply(s->e, TL_OP_eye, NULL, 0, &at, &eye));
    for (int k = 0; k < t->n; k++) {
        others |= (uint16_t)(k == i || k == j ? 0 : 1u << k);
    }
    TL_TRY(tl_emit_unsqueeze(s->e, eye, others, &eye));
    TL_TRY(tl_emit_const(s->e, 0, type.dtype, &zero));
    TL_TRY(tl_emit3(s->e, TL_OP_where, eye, t->x, zero, &t->x));
    TL_TRY(tl_emit_reduce(s->e, TL_OP_sum, t->x, (uint16_t)(1u << j), false,
                          &t->x));
    memmove(&t->axis[j], &t->axis[j + 1],
            (size_t)(t->n - j - 1) * sizeof(*t->axis));
    t->n--;
    return TL_OK;
}

/* ---- operands ---------------------------------------------------------- */

static tl_status note_size(einsum *s, const tl_pattern_item *item, int axis,
                           int operand, tl_dim size)
{
    tl_status st;

    if (!s->first[axis] || (item->label == TL_LABEL_REST &&
                            tl_dim_is_one(s->size[axis]))) {
        s->first[axis] = operand + 1;
        s->size[axis] = size;
        return TL_OK;
    }
    if (item->label == TL_LABEL_REST && tl_dim_is_one(size)) {
        return TL_OK; // stretches
    }
    st = tl_infer_equal(s->e->infer, s->size[axis], size);
    if (st == TL_ERR_PROGRAM) {
        st = tl_pattern_fail(item, s->place, s->e->infer->diag,
                             "`%s` is %s in operand %d, %s in operand %d",
                             tl_pattern_label(s->p, item->label).s,
                             tl_dim_str(s->size[axis]).s, s->first[axis] - 1,
                             tl_dim_str(size).s, operand);
        tl_infer_example(s->e->infer, s->size[axis], size);
    }
    return st;
}

static tl_status wrong_rank(einsum *s, int operand, int fixed,
                            const tl_shape *shape)
{
    const tl_pattern_side *side = &s->p->in[operand];
    tl_status st;

    if (side->n > 0) {
        *s->place = (tl_pattern_place){side->item[0].start,
                                       side->item[side->n - 1].end};
    }
    st = tl_fail(s->e->infer->diag, TL_E0323,
                 "the pattern gives operand %d %d axes, it has the shape %s",
                 operand, fixed, tl_shape_str(shape).s);
    if (side->n == 1 && side->item[0].end - side->item[0].start ==
                            shape->rank && shape->rank > 1) {
        tl_diag_help(s->e->infer->diag,
                     "separate the names of axes by blanks");
    }
    return st;
}

/* Number of the k-th axis, from the right, of `...`. */
static int rest_axis(int k)
{
    return TL_PATTERN_LABELS + k;
}

/* Operand `i` as a term: axes numbered, ones dropped, diagonals taken. */
static tl_status open_operand(einsum *s, int i, tl_node x, term *t)
{
    const tl_pattern_side *side = &s->p->in[i];
    tl_shape shape = s->e->type(s->e, x)->shape;
    int fixed = side->n - (side->rest >= 0), rest = shape.rank - fixed;
    int axis = 0;
    uint16_t ones = 0;

    *t = (term){.x = x};
    if (rest < 0 || (side->rest < 0 && rest != 0)) {
        return wrong_rank(s, i, fixed, &shape);
    }
    s->rest = rest > s->rest ? rest : s->rest;
    for (int j = 0; j < side->n; j++) {
        const tl_pattern_item *item = &side->item[j];
        int copies = item->label == TL_LABEL_REST ? rest : 1;

        for (int k = copies - 1; k >= 0; k--, axis++) {
            int number = item->label == TL_LABEL_REST ? rest_axis(k)
                                                      : item->label;

            if (item->label == TL_LABEL_ONE) {
                ones |= (uint16_t)(1u << axis);
                continue;
            }
            TL_TRY(note_size(s, item, number, i, shape.dim[axis]));
            t->axis[t->n++] = number;
        }
    }
    TL_TRY(tl_emit_squeeze(s->e, t->x, ones, &t->x));
    for (int a = 0; a < t->n; a++) {
        for (int b = t->n - 1; b > a; b--) {
            if (t->axis[b] == t->axis[a]) {
                TL_TRY(take_diagonal(s, t, a, b));
            }
        }
    }
    return TL_OK;
}

/* ---- a pair ------------------------------------------------------------ */

/* Axes of `t` in `set`, in the term's order, appended to list[n ..). */
static int collect(const term *t, axis_set set, int *list, int n)
{
    for (int i = 0; i < t->n; i++) {
        if (set & bit(t->axis[i])) {
            list[n++] = t->axis[i];
        }
    }
    return n;
}

/* Merge the axes [from, to) of `x` into one (a new one if there are none). */
static tl_status merge(einsum *s, tl_node *x, int from, int to)
{
    tl_shape have = s->e->type(s->e, *x)->shape, want = {0};
    tl_dim size = tl_dim_num(1);

    if (to - from == 1) {
        return TL_OK;
    }
    for (int i = 0; i < from; i++) {
        want.dim[want.rank++] = have.dim[i];
    }
    for (int i = from; i < to; i++) {
        TL_TRY(tl_dim_mul(s->e->infer->dims, size, have.dim[i], &size,
                          s->e->infer->diag));
    }
    want.dim[want.rank++] = size;
    for (int i = to; i < have.rank; i++) {
        want.dim[want.rank++] = have.dim[i];
    }
    return tl_emit_shaped(s->e, TL_OP_reshape, *x, &want, x);
}

/* What the axes of a pair are. */
typedef struct pair {
    axis_set batch, inner, left, right;
    int list[TL_MAX_RANK * 3]; /* batch, left, right: the result's axes */
    tl_dim size[TL_MAX_RANK * 3];
    int nbatch, nleft, nright, ninner;
} pair;

/* Sizes of the left and right axes, as the ordered terms have them. */
static void note_sizes(einsum *s, const term *a, const term *b, pair *q)
{
    tl_shape left = s->e->type(s->e, a->x)->shape;
    tl_shape right = s->e->type(s->e, b->x)->shape;
    int n = q->nbatch;

    for (int i = 0; i < q->nleft; i++) {
        q->size[n++] = left.dim[q->nbatch + i];
    }
    for (int i = 0; i < q->nright; i++) {
        q->size[n++] = right.dim[q->nbatch + q->ninner + i];
    }
}

static tl_status reorder_pair(einsum *s, term *a, term *b, pair *q)
{
    int order[TL_MAX_RANK * 2], n;

    q->nbatch = collect(a, q->batch, q->list, 0);
    n = collect(a, q->left, q->list, q->nbatch);
    q->nleft = n - q->nbatch;
    q->nright = collect(b, q->right, q->list, n) - n;
    if (q->nbatch + q->nleft + q->nright > TL_MAX_RANK) {
        return tl_fail(s->e->infer->diag, TL_E0316,
                       "a pattern makes more than %d axes", TL_MAX_RANK);
    }
    memcpy(order, q->list, (size_t)n * sizeof(*order));
    q->ninner = collect(a, q->inner, order, n) - n;
    TL_TRY(reorder(s, a, order));
    n = q->nbatch; // batch, inner (in a's order), right
    for (int i = 0; i < q->ninner; i++) {
        order[n++] = a->axis[q->nbatch + q->nleft + i];
    }
    for (int i = 0; i < q->nright; i++) {
        order[n++] = q->list[q->nbatch + q->nleft + i];
    }
    TL_TRY(reorder(s, b, order));
    note_sizes(s, a, b, q);
    return TL_OK;
}

/* The result of a pair, with merged axes apart again. */
static tl_status close_pair(einsum *s, const pair *q, tl_node x, term *out)
{
    tl_shape have = s->e->type(s->e, x)->shape, want = {0};

    out->n = q->nbatch + q->nleft + q->nright;
    memcpy(out->axis, q->list, (size_t)out->n * sizeof(*out->axis));
    for (int i = 0; i < out->n; i++) {
        want.dim[want.rank++] = i < q->nbatch ? have.dim[i] : q->size[i];
    }
    return tl_emit_shaped(s->e, TL_OP_reshape, x, &want, &out->x);
}

/* [batch.., left.., inner] @ [batch.., inner, right]. Without batch axes the
 * left operand keeps its axes: they merge inside the product. */
static tl_status multiply_matrices(einsum *s, term *a, term *b,
                                   const pair *q, term *out)
{
    tl_node x = a->x, y = b->x;

    TL_TRY(merge(s, &x, q->nbatch + q->nleft, a->n));
    if (q->nbatch > 0 || q->nleft == 0) {
        TL_TRY(merge(s, &x, q->nbatch, q->nbatch + q->nleft));
    }
    TL_TRY(merge(s, &y, q->nbatch + q->ninner, b->n));
    TL_TRY(merge(s, &y, q->nbatch, q->nbatch + q->ninner));
    TL_TRY(tl_emit2(s->e, TL_OP_matmul, x, y, NULL, &x));
    return close_pair(s, q, x, out);
}

/* [batch.., left.., 1..] * [batch.., 1.., right..] */
static tl_status multiply_elements(einsum *s, term *a, term *b,
                                   const pair *q, term *out)
{
    unsigned left = (1u << q->nleft) - 1, right = (1u << q->nright) - 1;
    tl_node x, y;

    TL_TRY(tl_emit_unsqueeze(
        s->e, a->x, (uint16_t)(right << (q->nbatch + q->nleft)), &x));
    TL_TRY(tl_emit_unsqueeze(s->e, b->x, (uint16_t)(left << q->nbatch), &y));
    TL_TRY(tl_emit2(s->e, TL_OP_mul, x, y, NULL, &out->x));
    out->n = q->nbatch + q->nleft + q->nright;
    memcpy(out->axis, q->list, (size_t)out->n * sizeof(*out->axis));
    return TL_OK;
}

/* An axis of `...` that has size 1 in one of two terms stretches; it must not
 * be an inner one. */
static bool stretches(einsum *s, const term *t, int axis)
{
    const tl_shape *shape = &s->e->type(s->e, t->x)->shape;

    for (int i = 0; i < t->n; i++) {
        if (t->axis[i] == axis) {
            return tl_dim_is_one(shape->dim[i]) &&
                   !tl_dim_is_one(s->size[axis]);
        }
    }
    return false;
}

static tl_status contract(einsum *s, term *a, term *b, axis_set needed,
                          term *out)
{
    axis_set in_a = axes_of(a), in_b = axes_of(b);
    pair q = {.batch = in_a & in_b & needed, .inner = in_a & in_b & ~needed};

    for (int axis = TL_PATTERN_LABELS; axis < MAX_AXES; axis++) {
        if ((q.inner & bit(axis)) &&
            (stretches(s, a, axis) || stretches(s, b, axis))) {
            q.inner &= ~bit(axis); // summed at the end
            q.batch |= bit(axis);
        }
    }
    q.left = in_a & ~in_b & needed;
    q.right = in_b & ~in_a & needed;
    TL_TRY(sum_out(s, a, in_a & ~in_b & ~needed));
    TL_TRY(sum_out(s, b, in_b & ~in_a & ~needed));
    TL_TRY(reorder_pair(s, a, b, &q));
    return q.ninner > 0 ? multiply_matrices(s, a, b, &q, out)
                        : multiply_elements(s, a, b, &q, out);
}

/* ---- the whole --------------------------------------------------------- */

/* Axes of the right side, in order; their number. */
static int result_axes(const einsum *s, int *axis)
{
    int n = 0;

    for (int i = 0; i < s->p->out.n; i++) {
        int label = s->p->out.item[i].label;

        if (label == TL_LABEL_REST) {
            for (int k = s->rest - 1; k >= 0; k--) {
                axis[n++] = rest_axis(k);
            }
        } else if (label != TL_LABEL_ONE) {
            axis[n++] = label;
        }
    }
    return n;
}

/* Sum what is left over, order the axes, put in those of size 1. */
static tl_status close_result(einsum *s, term *t, tl_node *out)
{
    int order[TL_PATTERN_ITEMS + TL_MAX_RANK], n = result_axes(s, order);
    axis_set wanted = 0;
    uint16_t ones = 0;

    if (n > TL_MAX_RANK) {
        return tl_fail(s->e->infer->diag, TL_E0316,
                       "a pattern makes more than %d axes", TL_MAX_RANK);
    }
    for (int i = 0; i < n; i++) {
        wanted |= bit(order[i]);
    }
    TL_TRY(sum_out(s, t, axes_of(t) & ~wanted));
    TL_TRY(reorder(s, t, order));
    for (int i = 0, axis = 0; i < s->p->out.n; i++) {
        int label = s->p->out.item[i].label;

        if (label == TL_LABEL_ONE) {
            if (axis >= TL_MAX_RANK) {
                return tl_fail(s->e->infer->diag, TL_E0316,
                               "a pattern makes more than %d axes",
                               TL_MAX_RANK);
            }
            ones |= (uint16_t)(1u << axis);
        }
        axis += label == TL_LABEL_REST ? s->rest : 1;
    }
    return tl_emit_unsqueeze(s->e, t->x, ones, out);
}

tl_status tl_pattern_einsum(tl_emit *e, const tl_pattern *p,
                            const tl_node *in, tl_node *out,
                            tl_pattern_place *place)
{
    einsum s = {.e = e, .p = p, .place = place};
    term t[TL_PATTERN_OPERANDS], sum;
    int order[TL_PATTERN_ITEMS + TL_MAX_RANK], n;

    *place = (tl_pattern_place){0, 0};
    for (int i = 0; i < p->noperands; i++) {
        TL_TRY(open_operand(&s, i, in[i], &t[i]));
    }
    n = result_axes(&s, order);
    sum = t[0];
    for (int i = 1; i < p->noperands; i++) {
        axis_set needed = 0;
        term a = sum;

        for (int k = 0; k < n; k++) {
            needed |= bit(order[k]);
        }
        for (int k = i + 1; k < p->noperands; k++) {
            needed |= axes_of(&t[k]);
        }
        TL_TRY(contract(&s, &a, &t[i], needed, &sum));
    }
    return close_result(&s, &sum, out);
}
