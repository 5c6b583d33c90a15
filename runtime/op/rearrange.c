/* rearrange.c - patterns as views and reductions of one tensor.
 *
 * The operand is reshaped so that every label is an axis, reduced over those
 * that the right side lacks, permuted, and reshaped to the groups of the right
 * side. */
#include <string.h>

#include "runtime/base/check.h"
#include "runtime/op/emit.h"
#include "runtime/op/pattern.h"

/* Axes of the operand once groups are split: labels, ones, and the axes of
 * `...` one by one. */
typedef struct axes {
    tl_emit *e;
    const tl_pattern *p;
    tl_pattern_place *place;
    int rest; /* axes that `...` stands for */
    int n;
    int label[TL_MAX_RANK]; /* or TL_LABEL_ONE, TL_LABEL_REST - k */
    tl_dim size[TL_MAX_RANK];
    tl_dim of_label[TL_PATTERN_LABELS];
    bool known[TL_PATTERN_LABELS];
} axes;

static tl_status too_many(const axes *a)
{
    return tl_fail(a->e->infer->diag, TL_E0316,
                   "a pattern makes more than %d axes", TL_MAX_RANK);
}

static tl_status push(axes *a, int label, tl_dim size)
{
    if (a->n == TL_MAX_RANK) {
        return too_many(a);
    }
    a->label[a->n] = label;
    a->size[a->n++] = size;
    return TL_OK;
}

static tl_status given_sizes(axes *a, const tl_pattern_size *sizes, int n)
{
    for (int i = 0; i < n; i++) {
        size_t len = strlen(sizes[i].name);
        int k = 0;

        while (k < a->p->nlabels &&
               (a->p->label[k].len != len ||
                memcmp(a->p->text + a->p->label[k].start, sizes[i].name,
                       len) != 0)) {
            k++;
        }
        if (k == a->p->nlabels) {
            return tl_fail(a->e->infer->diag, TL_E0323,
                           "`%s` is not an axis of the pattern",
                           sizes[i].name);
        }
        a->of_label[k] = sizes[i].size;
        a->known[k] = true;
    }
    return TL_OK;
}

static tl_status must_equal(axes *a, const tl_pattern_item *item, tl_dim want,
                            tl_dim have)
{
    tl_status st = tl_infer_equal(a->e->infer, want, have);

    if (st == TL_ERR_PROGRAM) {
        st = tl_pattern_fail(item, a->place, a->e->infer->diag,
                             "`%s` is %s, the operand has %s there",
                             tl_pattern_label(a->p, item->label).s,
                             tl_dim_str(want).s, tl_dim_str(have).s);
        tl_infer_example(a->e->infer, want, have);
    }
    return st;
}

/* One axis of the operand, by one label. */
static tl_status single(axes *a, const tl_pattern_item *item, tl_dim size)
{
    int label = item->label;

    if (label == TL_LABEL_ONE) {
        TL_TRY(must_equal(a, item, tl_dim_num(1), size));
    } else if (a->known[label]) {
        TL_TRY(must_equal(a, item, a->of_label[label], size));
    } else {
        a->of_label[label] = size;
        a->known[label] = true;
    }
    return push(a, label, size);
}

/* Sizes of a group must make the axis: `made` of `size`, where `given` is the
 * product of the sizes that are known, `open` the item whose size is not. */
static tl_status must_make(axes *a, const tl_pattern_item *item, bool open,
                           tl_dim given, tl_dim made, tl_dim size)
{
    tl_status st = tl_infer_equal(a->e->infer, made, size);

    if (st != TL_ERR_PROGRAM) {
        return st;
    }
    st = open ? tl_pattern_fail(item, a->place, a->e->infer->diag,
                                "%s does not divide the axis of %s that the "
                                "group splits",
                                tl_dim_str(given).s, tl_dim_str(size).s)
              : tl_pattern_fail(item, a->place, a->e->infer->diag,
                                "the group makes %s, the operand has %s there",
                                tl_dim_str(made).s, tl_dim_str(size).s);
    tl_infer_example(a->e->infer, made, size);
    return st;
}

/* One axis of the operand is split into the items [from, to). */
static tl_status split(axes *a, const tl_pattern_side *side, int from, int to,
                       tl_dim size)
{
    tl_dims *dims = a->e->infer->dims;
    tl_diag *diag = a->e->infer->diag;
    tl_dim known = tl_dim_num(1), given, part;
    int open = -1;

    for (int i = from; i < to; i++) {
        int label = side->item[i].label;

        if (label == TL_LABEL_ONE) {
            continue;
        }
        if (label == TL_LABEL_REST) {
            return tl_pattern_fail(&side->item[i], a->place, diag,
                                   "`...` cannot be split off an axis");
        }
        if (!a->known[label] && open >= 0) {
            return tl_pattern_fail(&side->item[i], a->place, diag,
                                   "give the size of all names of a group "
                                   "but one: `%s=...`",
                                   tl_pattern_label(a->p, label).s);
        }
        if (a->known[label]) {
            TL_TRY(tl_dim_mul(dims, known, a->of_label[label], &known, diag));
        } else {
            open = i;
        }
    }
    given = known;
    if (open >= 0) {
        int label = side->item[open].label;

        TL_TRY(tl_dim_div(dims, size, known, &part, diag));
        a->of_label[label] = part;
        a->known[label] = true;
        TL_TRY(tl_dim_mul(dims, known, part, &known, diag));
    }
    TL_TRY(must_make(a, &side->item[open >= 0 ? open : from], open >= 0,
                     given, known, size));
    for (int i = from; i < to; i++) {
        int label = side->item[i].label;

        TL_TRY(push(a, label, label < 0 ? tl_dim_num(1)
                                        : a->of_label[label]));
    }
    return TL_OK;
}

/* A bare `...`, which stays as many axes as it stands for. */
static bool is_spread(const tl_pattern_item *item)
{
    return item->label == TL_LABEL_REST && !item->grouped;
}

static int group_end(const tl_pattern_side *side, int from)
{
    int to = from;

    while (to < side->n && side->item[to].group == side->item[from].group) {
        to++;
    }
    return to;
}

/* All axes of the operand. */
static tl_status open_axes(axes *a, const tl_shape *shape)
{
    const tl_pattern_side *side = &a->p->in[0];
    bool spread = side->rest >= 0 && is_spread(&side->item[side->rest]);
    int fixed = side->groups - spread, axis = 0;

    if (shape->rank < fixed || (!spread && shape->rank != fixed)) {
        *a->place = (tl_pattern_place){
            0, side->n ? side->item[side->n - 1].end : 1u};
        return tl_fail(a->e->infer->diag, TL_E0323,
                       "the pattern has %d axes, the operand %s", fixed,
                       tl_shape_str(shape).s);
    }
    a->rest = shape->rank - fixed;
    for (int i = 0; i < side->n;) {
        int to = group_end(side, i);

        if (is_spread(&side->item[i])) {
            for (int k = 0; k < a->rest; k++) {
                TL_TRY(push(a, TL_LABEL_REST - k, shape->dim[axis++]));
            }
        } else if (to == i + 1 && side->item[i].label != TL_LABEL_REST) {
            TL_TRY(single(a, &side->item[i], shape->dim[axis++]));
        } else {
            TL_TRY(split(a, side, i, to, shape->dim[axis++]));
        }
        i = to;
    }
    return TL_OK;
}

/* The axis with this label, or -1. */
static int find_axis(const axes *a, int label)
{
    for (int i = 0; i < a->n; i++) {
        if (a->label[i] == label) {
            return i;
        }
    }
    return -1;
}

static bool on_the_right(const axes *a, int label)
{
    for (int i = 0; i < a->p->out.n; i++) {
        int have = a->p->out.item[i].label;

        if (have == label || (have == TL_LABEL_REST && label <= have)) {
            return true;
        }
    }
    return false;
}

/* Reduce what the right side lacks (ones are squeezed), permute the others to
 * its order. */
static tl_status reduce_and_order(axes *a, tl_op reduce, tl_node *x)
{
    uint16_t gone = 0, ones = 0;
    tl_attrs at;
    int n = 0, label[TL_MAX_RANK];

    for (int i = 0; i < a->n; i++) {
        if (a->label[i] == TL_LABEL_ONE) {
            ones |= (uint16_t)(1u << n);
        } else if (!on_the_right(a, a->label[i])) {
            gone |= (uint16_t)(1u << i);
            continue;
        }
        label[n++] = a->label[i];
    }
    if (gone) {
        TL_TRY(tl_emit_reduce(a->e, reduce, *x, gone, false, x));
    }
    TL_TRY(tl_emit_squeeze(a->e, *x, ones, x));
    tl_attrs_init(&at);
    for (int i = 0; i < a->p->out.n; i++) {
        int want = a->p->out.item[i].label, copies = 1;

        if (want == TL_LABEL_ONE) {
            continue;
        }
        copies = want == TL_LABEL_REST ? a->rest : 1;
        for (int k = 0; k < copies; k++) {
            int from = 0;

            for (int j = 0; j < n && label[j] != want - k; j++) {
                from += label[j] != TL_LABEL_ONE;
            }
            at.dims[at.ndims++] = tl_dim_num(from);
        }
    }
    for (int i = 0; i < at.ndims; i++) {
        if (!tl_dim_same(at.dims[i], tl_dim_num(i))) {
            return tl_emit1(a->e, TL_OP_permute, *x, &at, x);
        }
    }
    return TL_OK;
}

/* Sizes of the axes that an item of the right side stands for. */
static int item_sizes(const axes *a, int label, tl_dim *size)
{
    int n = label == TL_LABEL_REST ? a->rest : 1;

    for (int k = 0; k < n; k++) {
        size[k] = label == TL_LABEL_ONE ? tl_dim_num(1)
                                        : a->size[find_axis(a, label - k)];
    }
    return n;
}

static tl_status add_axis(const axes *a, tl_shape *shape, tl_dim size)
{
    if (shape->rank == TL_MAX_RANK) {
        return too_many(a);
    }
    shape->dim[shape->rank++] = size;
    return TL_OK;
}

/* The groups of the right side as axes; a bare `...` stays several. */
static tl_status merged_shape(const axes *a, tl_shape *out)
{
    const tl_pattern_side *side = &a->p->out;
    tl_infer *cx = a->e->infer;
    tl_dim size[TL_MAX_RANK];

    *out = (tl_shape){0};
    for (int i = 0; i < side->n;) {
        int to = group_end(side, i);
        bool spread = is_spread(&side->item[i]);
        tl_dim product = tl_dim_num(1);

        for (; i < to; i++) {
            int n = item_sizes(a, side->item[i].label, size);

            for (int k = 0; k < n; k++) {
                TL_TRY(spread ? add_axis(a, out, size[k])
                              : tl_dim_mul(cx->dims, product, size[k],
                                           &product, cx->diag));
            }
        }
        TL_TRY(spread ? TL_OK : add_axis(a, out, product));
    }
    return TL_OK;
}

tl_status tl_pattern_apply(tl_emit *e, const tl_pattern *p, tl_op reduce,
                           tl_node x, const tl_pattern_size *sizes,
                           int nsizes, tl_node *out, tl_pattern_place *place)
{
    axes a = {.e = e, .p = p, .place = place};
    tl_shape shape = e->type(e, x)->shape;

    *place = (tl_pattern_place){0, 0};
    TL_TRY(given_sizes(&a, sizes, nsizes));
    TL_TRY(open_axes(&a, &shape));
    shape.rank = a.n;
    memcpy(shape.dim, a.size, (size_t)a.n * sizeof(tl_dim));
    TL_TRY(tl_emit_shaped(e, TL_OP_reshape, x, &shape, &x));
    TL_TRY(reduce_and_order(&a, reduce, &x));
    TL_TRY(merged_shape(&a, &shape));
    return tl_emit_shaped(e, TL_OP_reshape, x, &shape, out);
}
