/* fuse_class.c - what the steps of a plan are to fusion, and which results of
 * a group may lie where operands do. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include <string.h>

#include "compiler/fuse.h"

enum {
    FAR = 8,         /* operands that the tile machine would copy first, as */
    MANY = 16384,    /* kernels do with theirs: strides, elements */
    FEW_ROWS = 32,   /* with fewer and */
    LONG_ROW = 1024, /* longer ones, the tree of a reduction has more tasks */
    STATISTICS = 3   /* steps that layer_norm becomes */
};

const char *tl_fuse_why_text(tl_fuse_why why, bool *alone)
{
    static const struct {
        const char *text;
        bool alone;
    } rows[TL_WHY_COUNT] = {
#define ALONE(name, what) [TL_WHY_##name] = {what, true},
#define APART(name, what) [TL_WHY_##name] = {what, false},
#include "compiler/fuse.def"
    };

    *alone = rows[why].alone;
    return rows[why].text;
}

static tl_fuse_kind is_alone(tl_fuse_why why)
{
    return (tl_fuse_kind){.why = (uint8_t)why};
}

tl_dtype tl_fuse_compute(const tl_plan *pl, const tl_pstep *s)
{
    uint32_t v = s->kind == TL_PS_GRAD ? pl->refs.items[s->out]
                                       : pl->refs.items[s->in + s->nin - 1];

    return tl_dtype_arith((tl_dtype)tl_pval_at(pl, v)->dtype);
}

bool tl_fuse_is_per_row(const tl_plan *pl, uint32_t v, uint32_t space,
                        uint32_t trailing)
{
    const tl_pval *x = tl_pval_at(pl, v), *s = tl_pval_at(pl, space);

    if (trailing == 0 || x->rank != s->rank) {
        return false;
    }
    for (uint32_t i = 0; i < s->rank; i++) {
        if (x->size[i] != (i < s->rank - trailing ? s->size[i] : 1)) {
            return false;
        }
    }
    return true;
}

static bool is_scattered(const tl_pval *v, int64_t numel)
{
    int last = v->rank - 1;

    while (last > 0 && v->size[last] == 1) {
        last--;
    }
    return !v->contiguous && v->numel == numel && numel > MANY && last >= 0 &&
           (v->stride[last] > FAR || v->stride[last] < -FAR);
}

/* Operands that the tile machine reads where they lie. */
static bool reads_directly(const tl_plan *pl, const tl_pstep *s,
                           const tl_pval *space)
{
    for (uint32_t i = 0; i < s->nin; i++) {
        uint32_t v = pl->refs.items[s->in + i];

        if (v != 0 && (is_scattered(tl_pval_at(pl, v), space->numel) ||
                       tl_pval_at(pl, v)->rank > space->rank)) {
            return false;
        }
    }
    return true;
}

static tl_fuse_kind element_kind(const tl_plan *pl, const tl_pstep *s)
{
    tl_fuse_kind k = {.cls = TL_FUSE_ELEMENT,
                      .space = pl->refs.items[s->out],
                      .count = 1};
    int which = s->kind == TL_PS_GRAD ? s->which : -1;

    return tl_tile_takes((tl_op)s->op, which, tl_fuse_compute(pl, s))
               ? k
               : is_alone(TL_WHY_DTYPE);
}

/* Elements of a row of `trailing` axes. */
static int64_t row_length(const tl_pval *x, uint32_t trailing)
{
    int64_t n = 1;

    for (uint32_t i = x->rank - trailing; i < x->rank; i++) {
        n *= x->size[i];
    }
    return n;
}

static tl_fuse_kind row_kind(const tl_plan *pl, const tl_pstep *s,
                             uint32_t operand, uint32_t trailing)
{
    tl_fuse_kind k = {.cls = TL_FUSE_ROW,
                      .space = pl->refs.items[s->in + operand],
                      .count = s->nout == 1 ? 1 : STATISTICS,
                      .trailing = (uint8_t)trailing};
    const tl_pval *x = tl_pval_at(pl, k.space);

    return trailing > 0 && trailing <= x->rank &&
                   tl_tile_rows_takes((tl_op)s->op, row_length(x, trailing))
               ? k
               : is_alone(TL_WHY_ROWS);
}

/* Are mean and rstd such that a view gives them other axes? */
static bool statistics_are_plain(const tl_plan *pl, const tl_pstep *s)
{
    for (uint32_t i = 2; i < 4; i++) {
        if (!tl_pval_at(pl, pl->refs.items[s->in + i])->contiguous) {
            return false;
        }
    }
    return true;
}

/* Reductions of rows are folds, unless there are few long ones. */
static tl_fuse_kind reduction_kind(const tl_plan *pl, const tl_pstep *s,
                                   uint32_t axes)
{
    tl_fuse_kind k = {.cls = TL_FUSE_REDUCE,
                      .space = pl->refs.items[s->in],
                      .count = 1};
    const tl_pval *x = tl_pval_at(pl, k.space);
    uint32_t trailing = 0;
    int64_t n;

    while (trailing < x->rank &&
           (axes >> (x->rank - 1 - trailing) & 1) != 0) {
        trailing++;
    }
    if (axes == 0) {
        return is_alone(TL_WHY_AXIS);
    }
    n = row_length(x, trailing);
    if (trailing > 0 && axes >> (x->rank - trailing) << (x->rank - trailing)
                            == axes &&
        tl_tile_rows_takes((tl_op)s->op, n) &&
        (n <= LONG_ROW || x->numel / n >= FEW_ROWS)) {
        k.cls = TL_FUSE_FOLD;
        k.trailing = (uint8_t)trailing;
    }
    return k;
}

static tl_fuse_kind kernel_kind(const tl_plan *pl, const tl_pstep *s)
{
    const tl_gattrs *at =
        &pl->p->g->attrs.items[pl->p->g->nodes.items[s->node].attrs];
    const tl_pval *x = tl_pval_at(pl, pl->refs.items[s->in]);

    switch ((tl_op)s->op) {
    case TL_OP_softmax:
    case TL_OP_log_softmax:
    case TL_OP_softmax_grad:
    case TL_OP_log_softmax_grad:
        return at->axis == x->rank - 1 ? row_kind(pl, s, 0, 1)
                                       : is_alone(TL_WHY_AXIS);
    case TL_OP_layer_norm:
        return row_kind(pl, s, 0, (uint32_t)at->i[0]);
    case TL_OP_layer_norm_grad:
        return statistics_are_plain(pl, s)
                   ? row_kind(pl, s, 1, (uint32_t)at->i[0])
                   : is_alone(TL_WHY_SCATTERED);
    default:
        break;
    }
    switch (tl_op_get((tl_op)s->op)->cls) {
    case TL_CLASS_MAP:
    case TL_CLASS_CMP:
        return element_kind(pl, s);
    case TL_CLASS_RED:
        return reduction_kind(pl, s, at->axes);
    default:
        return s->op == TL_OP_cast ? element_kind(pl, s)
                                   : is_alone(TL_WHY_KERNEL);
    }
}

/* Steps that take no part, whatever they compute. */
static tl_fuse_why why_alone(const tl_pstep *s)
{
    if ((s->kind != TL_PS_KERNEL && s->kind != TL_PS_GRAD) || s->nin == 0 ||
        s->nout == 0) {
        return TL_WHY_OTHER;
    }
    return s->copy               ? TL_WHY_COPY
           : s->binds || s->late ? TL_WHY_LATE
           : s->chained          ? TL_WHY_DATA
                                 : TL_WHY_NONE;
}

tl_fuse_kind tl_fuse_kind_of(const tl_plan *pl, const tl_pstep *s)
{
    tl_fuse_kind k = is_alone(why_alone(s));

    if (k.why != TL_WHY_NONE) {
        return k;
    }
    k = s->kind == TL_PS_GRAD ? element_kind(pl, s) : kernel_kind(pl, s);
    if (k.count == 0) {
        return k;
    }
    if (tl_pval_at(pl, k.space)->numel == 0) {
        return is_alone(TL_WHY_EMPTY);
    }
    return reads_directly(pl, s, tl_pval_at(pl, k.space))
               ? k
               : is_alone(TL_WHY_SCATTERED);
}

bool tl_fuse_takes(const tl_plan *pl, const tl_pstep *s, uint32_t k)
{
    const tl_pval *r = tl_pval_at(pl, pl->refs.items[s->out + k]);
    const tl_pval *space = tl_pval_at(pl, s->space);

    if (r->rank != space->rank ||
        memcmp(r->size, space->size, r->rank * sizeof(*r->size)) != 0) {
        return false;
    }
    if (!s->reduces) {
        return true;
    }
    if (k == s->nout - 1) {
        return false; /* the reduction's own result */
    }
    switch ((tl_op)pl->steps.items
                [pl->refs.items[s->part + s->nparts - 1]].op) {
    case TL_OP_sum:
    case TL_OP_prod:
    case TL_OP_mean:
    case TL_OP_max:
    case TL_OP_min:
    case TL_OP_any:
    case TL_OP_all:
        return true; /* reads each element once */
    default:
        return false;
    }
}
