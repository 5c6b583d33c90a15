/* view.c - shape rules, layouts and gradients of the VIEW rows. */
#include "runtime/op/view.h"

#include <string.h>

#include "runtime/base/check.h"
#include "runtime/op/emit.h"
#include "runtime/op/rules.h"


void tl_attrs_sizes(tl_attrs *at, const tl_shape *shape)
{
    tl_attrs_init(at);
    at->ndims = (uint16_t)shape->rank;
    memcpy(at->dims, shape->dim, (size_t)shape->rank * sizeof(tl_dim));
}

void tl_attrs_slice_all(tl_attrs *at, const tl_shape *shape)
{
    tl_attrs_init(at);
    at->ndims = (uint16_t)(3 * shape->rank);
    for (int i = 0; i < shape->rank; i++) {
        at->dims[3 * i] = tl_dim_num(0);
        at->dims[3 * i + 1] = shape->dim[i];
        at->dims[3 * i + 2] = tl_dim_num(1);
    }
}

/* ---- reshape ----------------------------------------------------------- */

static tl_status check_sizes(tl_infer *cx, tl_op op, const tl_attrs *at,
                             int *inferred)
{
    *inferred = -1;
    if (at->ndims > TL_MAX_RANK) {
        return tl_fail(cx->diag, TL_E0316,
                       "`%s` got %d sizes; a tensor has at most %d axes",
                       tl_op_get(op)->name, at->ndims, TL_MAX_RANK);
    }
    for (int i = 0; i < at->ndims; i++) {
        tl_dim d = at->dims[i];

        if (!tl_dim_is_num(d) || tl_dim_value(d) >= 0) {
            continue;
        }
        if (tl_dim_value(d) != -1 || *inferred >= 0) {
            return tl_fail(cx->diag, TL_E0306,
                           tl_dim_value(d) != -1
                               ? "size must be at least 0, got %lld"
                               : "only one size may be -1",
                           (long long)tl_dim_value(d));
        }
        *inferred = i;
    }
    return TL_OK;
}

static tl_status fail_reshape(tl_infer *cx, const tl_ttype *in,
                              const tl_shape *want, tl_dim total,
                              tl_dim wanted)
{
    tl_status st = tl_fail(cx->diag, TL_E0303,
                           "%s elements of %s do not fit %s",
                           tl_dim_str(total).s, tl_ttype_str(in).s,
                           tl_shape_str(want).s);

    tl_infer_example(cx, total, wanted);
    return st;
}

tl_status tl_infer_reshape(tl_infer *cx, tl_op op, const tl_ttype *in,
                           int nin, const tl_attrs *at, tl_ttype *out)
{
    tl_dim total, known = tl_dim_num(1), rest;
    tl_shape want = {.rank = at->ndims};
    int inferred;
    tl_status st;

    (void)nin;
    TL_TRY(check_sizes(cx, op, at, &inferred));
    TL_TRY(tl_shape_numel_dim(cx, &in->shape, &total));
    memcpy(want.dim, at->dims, at->ndims * sizeof(tl_dim));
    for (int i = 0; i < at->ndims; i++) {
        if (i != inferred) {
            TL_TRY(tl_dim_mul(cx->dims, known, at->dims[i], &known,
                              cx->diag));
        }
    }
    if (inferred >= 0 && tl_dim_same(known, tl_dim_num(0))) {
        return tl_fail(cx->diag, TL_E0305,
                       "-1 is ambiguous in %s: the other sizes multiply to 0",
                       tl_shape_str(&want).s);
    }
    if (inferred >= 0) {
        TL_TRY(tl_dim_div(cx->dims, total, known, &rest, cx->diag));
        want.dim[inferred] = rest;
        TL_TRY(tl_dim_mul(cx->dims, known, rest, &known, cx->diag));
    }
    st = tl_infer_equal(cx, total, known);
    if (st == TL_ERR_PROGRAM) {
        memcpy(want.dim, at->dims, at->ndims * sizeof(tl_dim));
        return fail_reshape(cx, in, &want, total, known);
    }
    TL_TRY(st);
    *out = (tl_ttype){in->dtype, want};
    return TL_OK;
}

/* Also of squeeze and unsqueeze. */
tl_status tl_grad_reshape(tl_emit *e, const tl_grad_in *gi, tl_node *dx)
{
    tl_attrs at;

    tl_attrs_sizes(&at, &e->type(e, gi->in[0])->shape);
    return tl_emit1(e, TL_OP_reshape, gi->g[0], &at, &dx[0]);
}

/* ---- permute ----------------------------------------------------------- */

tl_status tl_infer_permute(tl_infer *cx, tl_op op, const tl_ttype *in,
                           int nin, const tl_attrs *at, tl_ttype *out)
{
    tl_ttype res = {in->dtype, {.rank = in->shape.rank}};
    unsigned seen = 0;

    (void)op;
    (void)nin;
    if (at->ndims != in->shape.rank) {
        return tl_fail(cx->diag, TL_E0309, "permute of %s needs %d axes, got "
                       "%d", tl_ttype_str(in).s, in->shape.rank, at->ndims);
    }
    for (int i = 0; i < at->ndims; i++) {
        int axis;

        TL_TRY(tl_axis_normalise(tl_dim_value(at->dims[i]), in->shape.rank,
                                 &axis, cx->diag));
        if (seen >> axis & 1) {
            return tl_fail(cx->diag, TL_E0309, "axis %d repeated", axis);
        }
        seen |= 1u << axis;
        res.shape.dim[i] = in->shape.dim[axis];
    }
    *out = res;
    return TL_OK;
}

static int permuted_axis(const tl_attrs *at, int i)
{
    int64_t axis = tl_dim_value(at->dims[i]);

    return (int)(axis < 0 ? axis + at->ndims : axis);
}

tl_status tl_grad_permute(tl_emit *e, const tl_grad_in *gi, tl_node *dx)
{
    tl_attrs at;

    tl_attrs_init(&at);
    at.ndims = gi->at->ndims;
    for (int i = 0; i < at.ndims; i++) {
        at.dims[permuted_axis(gi->at, i)] = tl_dim_num(i);
    }
    return tl_emit1(e, TL_OP_permute, gi->g[0], &at, &dx[0]);
}

/* ---- expand ------------------------------------------------------------ */

tl_status tl_infer_expand(tl_infer *cx, tl_op op, const tl_ttype *in, int nin,
                          const tl_attrs *at, tl_ttype *out)
{
    tl_ttype res = {in->dtype, {.rank = at->ndims}};
    int added = at->ndims - in->shape.rank;

    (void)op;
    (void)nin;
    if (added < 0 || at->ndims > TL_MAX_RANK) {
        return tl_fail(cx->diag, TL_E0313, "cannot expand %s to %d axes",
                       tl_ttype_str(in).s, at->ndims);
    }
    for (int i = 0; i < at->ndims; i++) {
        tl_dim d = at->dims[i];
        tl_dim have = i < added ? tl_dim_num(1) : in->shape.dim[i - added];
        tl_status st = TL_OK;

        if (i >= added && tl_dim_same(d, tl_dim_num(-1))) {
            d = have;
        }
        if (tl_dim_is_num(d) && tl_dim_value(d) < 0) {
            return tl_fail(cx->diag, TL_E0306,
                           "size must be at least 0, got %lld",
                           (long long)tl_dim_value(d));
        }
        st = tl_dim_is_one(have) ? TL_OK : tl_infer_equal(cx, have, d);
        if (st == TL_ERR_PROGRAM) {
            st = tl_fail(cx->diag, TL_E0313, "cannot expand %s to %s",
                         tl_dim_str(have).s, tl_dim_str(d).s);
            tl_infer_example(cx, have, d);
        }
        TL_TRY(st);
        res.shape.dim[i] = d;
    }
    *out = res;
    return TL_OK;
}

tl_status tl_grad_expand(tl_emit *e, const tl_grad_in *gi, tl_node *dx)
{
    tl_shape shape = e->type(e, gi->in[0])->shape;

    return tl_emit_sum_to(e, gi->g[0], &shape, &dx[0]);
}

/* ---- squeeze and unsqueeze --------------------------------------------- */

tl_status tl_infer_squeeze(tl_infer *cx, tl_op op, const tl_ttype *in,
                           int nin, const tl_attrs *at, tl_ttype *out)
{
    (void)op;
    (void)nin;
    if (at->axes >> in->shape.rank) {
        return tl_fail(cx->diag, TL_E0309, "squeeze of an axis that %s lacks",
                       tl_ttype_str(in).s);
    }
    for (int i = 0; i < in->shape.rank; i++) {
        tl_dim d = in->shape.dim[i];
        tl_status st;

        if (!(at->axes >> i & 1)) {
            continue;
        }
        st = tl_infer_equal(cx, d, tl_dim_num(1));
        if (st == TL_ERR_PROGRAM) {
            st = tl_fail(cx->diag, TL_E0303,
                         "cannot squeeze axis %d of %s: its size is %s, not 1",
                         i, tl_ttype_str(in).s, tl_dim_str(d).s);
        }
        TL_TRY(st);
    }
    out->dtype = in->dtype;
    tl_shape_reduce(&out->shape, &in->shape, at->axes, false);
    return TL_OK;
}

static int count_axes(uint16_t axes)
{
    return __builtin_popcount(axes);
}

tl_status tl_infer_unsqueeze(tl_infer *cx, tl_op op, const tl_ttype *in,
                             int nin, const tl_attrs *at, tl_ttype *out)
{
    tl_ttype res = {in->dtype,
                    {.rank = in->shape.rank + count_axes(at->axes)}};
    int from = 0;

    (void)op;
    (void)nin;
    if (res.shape.rank > TL_MAX_RANK) {
        return tl_fail(cx->diag, TL_E0316, "%s gets more than %d axes",
                       tl_ttype_str(in).s, TL_MAX_RANK);
    }
    if (at->axes >> res.shape.rank) {
        return tl_fail(cx->diag, TL_E0309,
                       "unsqueeze of %s at an axis over %d",
                       tl_ttype_str(in).s, res.shape.rank - 1);
    }
    for (int i = 0; i < res.shape.rank; i++) {
        res.shape.dim[i] = at->axes >> i & 1 ? tl_dim_num(1)
                                             : in->shape.dim[from++];
    }
    *out = res;
    return TL_OK;
}

/* ---- slice ------------------------------------------------------------- */

/* Is every index of the slice within the axis?  Checked where all is number;
 * symbolic starts come from tl_slice_resolve, which has seen to it. */
static bool slice_within(tl_dim n, const tl_dim *s)
{
    int64_t start, size, step, last;

    if (!tl_dim_is_num(n) || !tl_dim_is_num(s[0]) || !tl_dim_is_num(s[1])) {
        return true;
    }
    start = tl_dim_value(s[0]);
    size = tl_dim_value(s[1]);
    step = tl_dim_value(s[2]);
    if (size <= 0) {
        return size == 0;
    }
    if (__builtin_mul_overflow(size - 1, step, &last) ||
        __builtin_add_overflow(last, start, &last)) {
        return false;
    }
    return start >= 0 && start < tl_dim_value(n) && last >= 0 &&
           last < tl_dim_value(n);
}

tl_status tl_infer_slice(tl_infer *cx, tl_op op, const tl_ttype *in, int nin,
                         const tl_attrs *at, tl_ttype *out)
{
    tl_ttype res = {in->dtype, {.rank = in->shape.rank}};

    (void)op;
    (void)nin;
    TL_CHECK(at->ndims == 3 * in->shape.rank);
    for (int i = 0; i < in->shape.rank; i++) {
        const tl_dim *s = &at->dims[3 * i];

        TL_CHECK(tl_dim_is_num(s[2]) && tl_dim_value(s[2]) != 0);
        if (!slice_within(in->shape.dim[i], s)) {
            return tl_fail(cx->diag, TL_E0405,
                           "slice of %s indices from %s by %s leaves axis %d "
                           "of %s",
                           tl_dim_str(s[1]).s, tl_dim_str(s[0]).s,
                           tl_dim_str(s[2]).s, i, tl_ttype_str(in).s);
        }
        res.shape.dim[i] = s[1];
    }
    *out = res;
    return TL_OK;
}

/* The gradient lies in zeros where the elements were read. */
tl_status tl_grad_slice(tl_emit *e, const tl_grad_in *gi, tl_node *dx)
{
    tl_shape shape = e->type(e, gi->in[0])->shape;
    tl_node zeros;

    TL_TRY(tl_emit_zeros(e, e->type(e, gi->g[0])->dtype, &shape, &zeros));
    return tl_emit2(e, TL_OP_slice_put, zeros, gi->g[0], gi->at, &dx[0]);
}

/* A bound in 0 .. n (or -1 .. n - 1 when the step is negative), of numbers. */
static int64_t clip_bound(int64_t b, int64_t n, bool negative)
{
    int64_t low = negative ? -1 : 0, high = negative ? n - 1 : n;

    b = b < 0 ? b + n : b;
    return b < low ? low : b > high ? high : b;
}

static void resolve_numbers(int64_t n, const tl_axis_slice *s, int64_t *start,
                            int64_t *size)
{
    bool negative = s->step < 0;
    int64_t stop = negative ? -1 : n, step = negative ? -s->step : s->step;
    int64_t span;

    *start = negative ? n - 1 : 0;
    if (s->has_start) {
        *start = clip_bound(tl_dim_value(s->start), n, negative);
    }
    if (s->has_stop) {
        stop = clip_bound(tl_dim_value(s->stop), n, negative);
    }
    span = negative ? *start - stop : stop - *start;
    *size = span > 0 ? (span - 1) / step + 1 : 0;
    if (*size == 0) {
        *start = 0;
    }
}

/* A symbolic bound: a negative number counts from the end. */
static tl_status symbolic_bound(tl_infer *cx, tl_dim n, bool has, tl_dim b,
                                tl_dim missing, tl_dim *out)
{
    if (has && tl_dim_is_num(b) && tl_dim_value(b) < 0) {
        return tl_dim_add(cx->dims, n, b, out, cx->diag);
    }
    *out = has ? b : missing;
    return TL_OK;
}

/* Is a <= b proved, or a condition of what is traced? */
static bool known_le(tl_infer *cx, tl_dim a, tl_dim b)
{
    return cx->guard_le ? tl_infer_yes(cx, tl_infer_le(cx, a, b))
                        : tl_dim_le(cx->dims, a, b) == TL_PROVED;
}

static bool proved_order(tl_infer *cx, tl_dim n, tl_dim start, tl_dim stop)
{
    return known_le(cx, tl_dim_num(0), start) && known_le(cx, start, stop) &&
           known_le(cx, stop, n);
}

/* `k:` and `:-k` with a number k are taken to lie within the axis. */
static bool taken_as_within(tl_dim n, const tl_axis_slice *s)
{
    bool start = s->has_start && tl_dim_is_num(s->start);
    bool stop = s->has_stop && tl_dim_is_num(s->stop) &&
                tl_dim_value(s->stop) < 0;

    return !tl_dim_is_num(n) && s->step == 1 &&
           ((start && !s->has_stop) || (stop && !s->has_start));
}

/* In a trace: does the slice lie within the axis, as symbols have it? */
static bool traced_order(tl_infer *cx, tl_dim n, const tl_axis_slice *s)
{
    tl_dim a, b;

    return symbolic_bound(cx, n, s->has_start, s->start, tl_dim_num(0), &a) ==
               TL_OK &&
           symbolic_bound(cx, n, s->has_stop, s->stop, n, &b) == TL_OK &&
           proved_order(cx, n, a, b);
}

/* In a trace: with the numbers of this moment. */
static tl_status resolve_pinned(tl_infer *cx, tl_dim n,
                                const tl_axis_slice *s, tl_dim *start,
                                tl_dim *size)
{
    tl_axis_slice fixed = *s;
    int64_t first, count;

    TL_TRY(cx->pin(cx->guard_arg, n, &n));
    if (s->has_start) {
        TL_TRY(cx->pin(cx->guard_arg, s->start, &fixed.start));
    }
    if (s->has_stop) {
        TL_TRY(cx->pin(cx->guard_arg, s->stop, &fixed.stop));
    }
    resolve_numbers(tl_dim_value(n), &fixed, &first, &count);
    *start = tl_dim_num(first);
    *size = tl_dim_num(count);
    return TL_OK;
}

static tl_status resolve_symbols(tl_infer *cx, tl_dim n, const tl_axis_slice *s,
                                 tl_dim *start, tl_dim *size)
{
    tl_dim a, b, span;

    if (cx->pin && (s->step < 0 || !traced_order(cx, n, s))) {
        return resolve_pinned(cx, n, s, start, size);
    }
    if (s->step < 0) { // a whole reversal, or a size that is not known
        if (s->has_start || s->has_stop || s->step != -1) {
            *start = tl_dim_num(0);
            return tl_dim_fresh(cx->dims, "a slice", size, cx->diag);
        }
        TL_TRY(tl_dim_sub(cx->dims, n, tl_dim_num(1), start, cx->diag));
        *size = n;
        return TL_OK;
    }
    TL_TRY(symbolic_bound(cx, n, s->has_start, s->start, tl_dim_num(0), &a));
    TL_TRY(symbolic_bound(cx, n, s->has_stop, s->stop, n, &b));
    *start = a;
    if (!(cx->pin || taken_as_within(n, s)) && !proved_order(cx, n, a, b)) {
        return tl_dim_fresh(cx->dims, "a slice", size, cx->diag);
    }
    TL_TRY(tl_dim_sub(cx->dims, b, a, &span, cx->diag));
    if (s->step != 1) { // ceil(span / step)
        TL_TRY(tl_dim_add(cx->dims, span, tl_dim_num(s->step - 1), &span,
                          cx->diag));
        TL_TRY(tl_dim_div(cx->dims, span, tl_dim_num(s->step), &span,
                          cx->diag));
    }
    *size = span;
    return TL_OK;
}

tl_status tl_slice_resolve(tl_infer *cx, tl_dim n, const tl_axis_slice *s,
                           tl_dim *start, tl_dim *size)
{
    bool numbers = tl_dim_is_num(n) &&
                   (!s->has_start || tl_dim_is_num(s->start)) &&
                   (!s->has_stop || tl_dim_is_num(s->stop));
    int64_t first, count;

    if (s->step == 0) {
        return tl_fail(cx->diag, TL_E0416, "the step of a slice must not be "
                                           "0");
    }
    if (!numbers) {
        return resolve_symbols(cx, n, s, start, size);
    }
    resolve_numbers(tl_dim_value(n), s, &first, &count);
    *start = tl_dim_num(first);
    *size = tl_dim_num(count);
    return TL_OK;
}

/* ---- layouts ----------------------------------------------------------- */

void tl_layout_row_major(tl_layout *out, int rank, const int64_t *size)
{
    int64_t stride = 1;

    out->rank = rank;
    out->offset = 0;
    for (int i = rank - 1; i >= 0; i--) {
        out->size[i] = size[i];
        out->stride[i] = stride;
        stride *= size[i] > 1 ? size[i] : 1;
    }
}

/* Strides of one group of new axes [from, to) whose last has `step`. */
static void group_strides(int from, int to, int64_t step, const int64_t *size,
                          int64_t *stride)
{
    for (int k = to - 1; k >= from; k--) {
        stride[k] = step;
        step *= size[k];
    }
}

/* Groups of axes of `in` are matched with groups of the new shape that have
 * as many elements; inside a group `in` must be dense in its own order. */
static bool match_groups(const tl_layout *in, int rank, const int64_t *size,
                         int64_t *stride)
{
    int i = 0, j = 0;

    while (i < in->rank && j < rank) {
        int i_end = i + 1, j_end = j + 1;
        int64_t have = in->size[i], want = size[j];

        while (have != want) {
            if (want < have) {
                want *= size[j_end++];
            } else {
                have *= in->size[i_end++];
            }
        }
        for (int k = i; k + 1 < i_end; k++) {
            if (in->stride[k] != in->size[k + 1] * in->stride[k + 1]) {
                return false;
            }
        }
        group_strides(j, j_end, in->stride[i_end - 1], size, stride);
        i = i_end;
        j = j_end;
    }
    group_strides(j, rank, 1, size, stride); // ones are left
    return true;
}

bool tl_layout_reshape(const tl_layout *in, int rank, const int64_t *size,
                       int64_t *stride)
{
    tl_layout dense = {0};

    for (int k = 0; k < rank; k++) {
        if (size[k] == 0) { // no element: any strides do
            tl_layout_row_major(&dense, rank, size);
            memcpy(stride, dense.stride, (size_t)rank * sizeof(*stride));
            return true;
        }
    }
    for (int k = 0; k < in->rank; k++) {
        if (in->size[k] != 1) {
            dense.size[dense.rank] = in->size[k];
            dense.stride[dense.rank++] = in->stride[k];
        }
    }
    return match_groups(&dense, rank, size, stride);
}

static bool reshape_layout(const tl_attrs *at, const tl_layout *in,
                           tl_layout *out)
{
    tl_layout res = {.rank = at->ndims, .offset = in->offset};
    int64_t total = 1, known = 1;
    int inferred = -1;

    for (int i = 0; i < in->rank; i++) {
        total *= in->size[i];
    }
    for (int i = 0; i < at->ndims; i++) {
        res.size[i] = tl_dim_value(at->dims[i]);
        if (res.size[i] < 0) {
            inferred = i;
        } else {
            known *= res.size[i];
        }
    }
    if (inferred >= 0) {
        res.size[inferred] = total / known;
    }
    if (!tl_layout_reshape(in, res.rank, res.size, res.stride)) {
        return false;
    }
    *out = res;
    return true;
}

static void expand_layout(const tl_attrs *at, const tl_layout *in,
                          tl_layout *out)
{
    tl_layout res = {.rank = at->ndims, .offset = in->offset};
    int added = at->ndims - in->rank;

    for (int i = 0; i < res.rank; i++) {
        int64_t have = i < added ? 1 : in->size[i - added];
        int64_t want = tl_dim_value(at->dims[i]);

        res.size[i] = want < 0 ? have : want;
        res.stride[i] = have == res.size[i] && i >= added
                            ? in->stride[i - added]
                            : 0;
    }
    *out = res;
}

static void squeeze_layout(const tl_attrs *at, const tl_layout *in,
                           tl_layout *out)
{
    tl_layout res = {.offset = in->offset};

    for (int i = 0; i < in->rank; i++) {
        if (!(at->axes >> i & 1)) {
            res.size[res.rank] = in->size[i];
            res.stride[res.rank++] = in->stride[i];
        }
    }
    *out = res;
}

static void unsqueeze_layout(const tl_attrs *at, const tl_layout *in,
                             tl_layout *out)
{
    tl_layout res = {.rank = in->rank + count_axes(at->axes),
                     .offset = in->offset};
    int from = in->rank - 1;

    for (int i = res.rank - 1; i >= 0; i--) {
        if (!(at->axes >> i & 1)) {
            res.size[i] = in->size[from];
            res.stride[i] = in->stride[from--];
        } else { // keep row-major strides row-major
            res.size[i] = 1;
            res.stride[i] = i + 1 < res.rank
                                ? res.size[i + 1] * res.stride[i + 1]
                                : 1;
        }
    }
    *out = res;
}

static void permute_layout(const tl_attrs *at, const tl_layout *in,
                           tl_layout *out)
{
    tl_layout res = {.rank = in->rank, .offset = in->offset};

    for (int i = 0; i < in->rank; i++) {
        int axis = permuted_axis(at, i);

        res.size[i] = in->size[axis];
        res.stride[i] = in->stride[axis];
    }
    *out = res;
}

static void slice_layout(const tl_attrs *at, const tl_layout *in,
                         tl_layout *out)
{
    tl_layout res = {.rank = in->rank, .offset = in->offset};

    for (int i = 0; i < in->rank; i++) {
        int64_t start = tl_dim_value(at->dims[3 * i]);
        int64_t step = tl_dim_value(at->dims[3 * i + 2]);

        res.size[i] = tl_dim_value(at->dims[3 * i + 1]);
        res.stride[i] = in->stride[i] * step;
        res.offset += res.size[i] > 0 ? start * in->stride[i] : 0;
    }
    *out = res;
}

bool tl_view_layout(tl_op op, const tl_attrs *at, const tl_layout *in,
                    tl_layout *out)
{
    switch (op) {
    case TL_OP_reshape:
        return reshape_layout(at, in, out);
    case TL_OP_permute:
        permute_layout(at, in, out);
        return true;
    case TL_OP_expand:
        expand_layout(at, in, out);
        return true;
    case TL_OP_squeeze:
        squeeze_layout(at, in, out);
        return true;
    case TL_OP_unsqueeze:
        unsqueeze_layout(at, in, out);
        return true;
    case TL_OP_slice:
        slice_layout(at, in, out);
        return true;
    default:
        TL_CHECK(!"a view");
        return false;
    }
}
