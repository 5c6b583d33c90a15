/* bi_shape.c - views and what is made of them. */
#include "interp/bi_tensor.h"
#include "interp/builtin_fns.h"
#include "runtime/base/size.h"
#include "runtime/op/view.h"

tl_status tl_do_reshape(tl_eval *ev, tl_value v, int rank, const tl_dim *dim,
                        tl_value *out)
{
    tl_attrs at;

    tl_attrs_init(&at);
    at.ndims = (uint16_t)rank;
    for (int i = 0; i < rank; i++) {
        at.dims[i] = dim[i];
    }
    return tl_eval_op(ev, TL_OP_reshape, &v, 1, &at, out);
}

tl_status tl_do_unsqueeze(tl_eval *ev, tl_value v, int axis, tl_value *out)
{
    tl_attrs at;

    if (v.tag == TL_V_UNKNOWN) {
        *out = v;
        return TL_OK;
    }
    if (tl_value_rank(v) == TL_MAX_RANK) {
        tl_unref(v);
        return tl_fail(ev->diag, TL_E0316, "more than %d dimensions",
                       TL_MAX_RANK);
    }
    tl_attrs_init(&at);
    at.axes = (uint16_t)(1u << axis);
    return tl_eval_op(ev, TL_OP_unsqueeze, &v, 1, &at, out);
}

tl_status tl_do_slice(tl_eval *ev, tl_value v, int axis, tl_dim start,
                      tl_dim size, int64_t step, tl_value *out)
{
    tl_ttype type;
    tl_attrs at;
    tl_status st = tl_eval_type(ev, v, &type);

    if (st != TL_OK) {
        tl_unref(v);
        return st;
    }
    tl_attrs_slice_all(&at, &type.shape);
    at.dims[3 * axis] = start;
    at.dims[3 * axis + 1] = size;
    at.dims[3 * axis + 2] = tl_dim_num(step);
    return tl_eval_op(ev, TL_OP_slice, &v, 1, &at, out);
}

/* reshape(x, *sizes), expand(x, *sizes) */
tl_status tl_bi_sized(tl_eval *ev, const tl_builtin *self, tl_value *args,
                      tl_value *out)
{
    bool unknown;
    tl_attrs at;

    tl_attrs_init(&at);
    TL_TRY(tl_arg_sizes(ev, args[1], -1, &at, &unknown));
    if (unknown) {
        *out = tl_unknown();
        return TL_OK;
    }
    tl_value x = tl_arg_take(args, 0);

    return tl_eval_op(ev, self->op, &x, 1, &at, out);
}

tl_status tl_bi_permute(tl_eval *ev, const tl_builtin *self, tl_value *args,
                        tl_value *out)
{
    int rank = tl_value_rank(args[0]), seen = 0, a;
    bool unknown;
    tl_attrs at;

    (void)self;
    tl_attrs_init(&at);
    TL_TRY(tl_arg_sizes(ev, args[1], -TL_MAX_RANK, &at, &unknown));
    if (unknown) {
        *out = tl_unknown();
        return TL_OK;
    }
    if (at.ndims != rank) {
        return tl_fail(ev->diag, TL_E0309, "permute of %s needs %d axes, "
                       "got %d", tl_value_type_str(args[0]).s, rank,
                       at.ndims);
    }
    for (int i = 0; i < rank; i++) {
        TL_TRY(tl_axis_normalise(tl_dim_value(at.dims[i]), rank, &a,
                                 ev->diag));
        if (seen & (1 << a)) {
            return tl_fail(ev->diag, TL_E0309, "axis %d is given twice", a);
        }
        seen |= 1 << a;
        at.dims[i] = tl_dim_num(a);
    }
    tl_value x = tl_arg_take(args, 0);

    return tl_eval_op(ev, TL_OP_permute, &x, 1, &at, out);
}

tl_status tl_bi_squeeze(tl_eval *ev, const tl_builtin *self, tl_value *args,
                        tl_value *out)
{
    tl_ttype type;
    tl_attrs at;

    (void)self;
    tl_attrs_init(&at);
    TL_TRY(tl_eval_type(ev, args[0], &type));
    if (args[1].tag == TL_V_NONE) {
        for (int i = 0; i < type.shape.rank; i++) {
            if (tl_dim_is_one(type.shape.dim[i])) {
                at.axes |= (uint16_t)(1u << i);
            }
        }
    } else {
        TL_TRY(tl_arg_axes(ev, args[1], args[0], &at.axes));
    }
    tl_value x = tl_arg_take(args, 0);

    return tl_eval_op(ev, TL_OP_squeeze, &x, 1, &at, out);
}

tl_status tl_bi_unsqueeze(tl_eval *ev, const tl_builtin *self,
                          tl_value *args, tl_value *out)
{
    int axis;

    (void)self;
    TL_TRY(tl_axis_normalise(args[1].i, tl_value_rank(args[0]) + 1, &axis,
                             ev->diag));
    return tl_do_unsqueeze(ev, tl_arg_take(args, 0), axis, out);
}

/* ---- order ------------------------------------------------------------- */

tl_status tl_bi_flip(tl_eval *ev, const tl_builtin *self, tl_value *args,
                     tl_value *out)
{
    tl_ttype type;
    tl_attrs at;
    uint16_t axes;

    (void)self;
    TL_TRY(tl_arg_axes(ev, args[1], args[0], &axes));
    TL_TRY(tl_eval_type(ev, args[0], &type));
    tl_attrs_slice_all(&at, &type.shape);
    for (int i = 0; i < type.shape.rank; i++) {
        tl_dim n = type.shape.dim[i], last = n;

        if (!(axes & (1u << i)) || (tl_dim_is_num(n) && tl_dim_value(n) == 0)) {
            continue;
        }
        TL_TRY(tl_dim_sub(tl_eval_infer(ev)->dims, n, tl_dim_num(1), &last,
                          ev->diag));
        at.dims[3 * i] = last;
        at.dims[3 * i + 2] = tl_dim_num(-1);
    }
    tl_value x = tl_arg_take(args, 0);

    return tl_eval_op(ev, TL_OP_slice, &x, 1, &at, out);
}

tl_status tl_pin_size(tl_eval *ev, tl_dim *size)
{
    const tl_infer *infer = tl_eval_infer(ev);

    return tl_dim_is_num(*size) || infer->pin == NULL
               ? TL_OK
               : infer->pin(infer->guard_arg, *size, size);
}

/* roll along one axis: the last n elements, then the others. */
static tl_status roll_axis(tl_eval *ev, tl_value x, int axis, int64_t n,
                           tl_value *out)
{
    tl_ttype type;
    tl_value parts[2];
    tl_dims *dims = tl_eval_infer(ev)->dims;
    tl_status st = tl_eval_type(ev, x, &type);
    tl_dim size = st == TL_OK ? type.shape.dim[axis] : tl_dim_num(0), k, rest;

    if (st == TL_OK) {
        st = tl_pin_size(ev, &size);
    }
    if (st != TL_OK) {
        tl_unref(x);
        return st;
    }
    if (!tl_dim_is_num(size) || tl_dim_value(size) == 0) {
        *out = x;
        return TL_OK;
    }
    k = tl_dim_num(tl_floor_mod(n, tl_dim_value(size)));
    st = tl_dim_sub(dims, size, k, &rest, ev->diag);
    if (st == TL_OK) {
        st = tl_do_slice(ev, tl_ref(x), axis, rest, k, 1, &parts[0]);
    }
    if (st != TL_OK) {
        tl_unref(x);
        return st;
    }
    st = tl_do_slice(ev, x, axis, tl_dim_num(0), rest, 1, &parts[1]);
    if (st != TL_OK) {
        tl_unref(parts[0]);
        return st;
    }
    return tl_do_cat(ev, parts, 2, axis, out);
}

tl_status tl_bi_roll(tl_eval *ev, const tl_builtin *self, tl_value *args,
                     tl_value *out)
{
    tl_value x = args[0];
    tl_ttype type;
    int axis;
    tl_dim flat = tl_dim_num(-1);

    (void)self;
    if (args[2].tag == TL_V_INT) {
        TL_TRY(tl_arg_axis(ev, args[2], x, &axis));
        return roll_axis(ev, tl_arg_take(args, 0), axis, args[1].i, out);
    }
    TL_TRY(tl_eval_type(ev, x, &type));
    TL_TRY(tl_do_reshape(ev, tl_arg_take(args, 0), 1, &flat, &x));
    TL_TRY(roll_axis(ev, x, 0, args[1].i, &x));
    return tl_do_reshape(ev, x, type.shape.rank, type.shape.dim, out);
}

/* ---- repetition -------------------------------------------------------- */

/* Each axis i of size s becomes (reps, s) or (s, reps), then reps * s. */
static tl_status repeat_axes(tl_eval *ev, tl_value x, const int64_t *reps,
                             bool whole, tl_value *out)
{
    tl_ttype type;
    tl_attrs wide;
    tl_dim mid[2 * TL_MAX_RANK], end[TL_MAX_RANK];
    tl_status st = tl_eval_type(ev, x, &type);
    int rank = st == TL_OK ? type.shape.rank : 0;

    if (st == TL_OK && 2 * rank > TL_MAX_RANK) {
        st = tl_fail(ev->diag, TL_E0316, "a repeat of %s takes more than %d "
                     "axes", tl_ttype_str(&type).s, TL_MAX_RANK);
    }
    tl_attrs_init(&wide);
    wide.ndims = (uint16_t)(2 * rank);
    for (int i = 0; i < rank && st == TL_OK; i++) {
        tl_dim n = type.shape.dim[i], r = tl_dim_num(reps[i]);

        mid[2 * i] = whole ? tl_dim_num(1) : n;
        mid[2 * i + 1] = whole ? n : tl_dim_num(1);
        wide.dims[2 * i] = whole ? r : n;
        wide.dims[2 * i + 1] = whole ? n : r;
        st = tl_dim_mul(tl_eval_infer(ev)->dims, n, r, &end[i], ev->diag);
    }
    if (st != TL_OK) {
        tl_unref(x);
        return st;
    }
    TL_TRY(tl_do_reshape(ev, x, 2 * rank, mid, &x));
    TL_TRY(tl_eval_op(ev, TL_OP_expand, &x, 1, &wide, &x));
    return tl_do_reshape(ev, x, rank, end, out);
}

static tl_status check_reps(tl_eval *ev, int64_t n)
{
    return n < 0 ? tl_fail(ev->diag, TL_E0306,
                           "a number of repetitions must be >= 0, got %lld",
                           (long long)n)
                 : TL_OK;
}

tl_status tl_bi_tile(tl_eval *ev, const tl_builtin *self, tl_value *args,
                     tl_value *out)
{
    int rank = tl_value_rank(args[0]);
    int64_t reps[TL_MAX_RANK];
    const tl_value *r = &args[1];
    int n = 1;

    (void)self;
    if (args[1].tag != TL_V_INT) {
        r = args[1].seq->items;
        n = (int)args[1].seq->len;
    }
    if (n > TL_MAX_RANK) {
        return tl_fail(ev->diag, TL_E0316, "more than %d repetitions",
                       TL_MAX_RANK);
    }
    tl_value x = tl_arg_take(args, 0);

    for (; rank < n; rank++) {
        TL_TRY(tl_do_unsqueeze(ev, x, 0, &x));
    }
    for (int i = 0; i < rank; i++) {
        int k = i - (rank - n);

        reps[i] = k >= 0 ? r[k].i : 1;
        tl_status st = check_reps(ev, reps[i]);

        if (st != TL_OK) {
            tl_unref(x);
            return st;
        }
    }
    return repeat_axes(ev, x, reps, true, out);
}

tl_status tl_bi_repeat(tl_eval *ev, const tl_builtin *self, tl_value *args,
                       tl_value *out)
{
    int64_t reps[TL_MAX_RANK];
    tl_value x = args[0];
    tl_dim flat = tl_dim_num(-1);
    int axis = 0;

    (void)self;
    TL_TRY(check_reps(ev, args[1].i));
    if (args[2].tag == TL_V_INT) {
        TL_TRY(tl_arg_axis(ev, args[2], x, &axis));
        x = tl_arg_take(args, 0);
    } else {
        TL_TRY(tl_do_reshape(ev, tl_arg_take(args, 0), 1, &flat, &x));
    }
    for (int i = 0; i < TL_MAX_RANK; i++) {
        reps[i] = i == axis ? args[1].i : 1;
    }
    return repeat_axes(ev, x, reps, false, out);
}

/* ---- parts ------------------------------------------------------------- */

/* `n` slices along `axis`, of the given sizes or else of size `same`, the
 * last one what is left, as a list.  Eats `x`. */
static tl_status parts_take(tl_eval *ev, tl_value x, int axis,
                            const tl_value *sizes, size_t n, int64_t same,
                            int64_t total, tl_value *out)
{
    tl_value list = tl_empty();
    int64_t at = 0;
    tl_status st = tl_seq_new_take(&list, TL_V_LIST, NULL, 0, ev->diag);

    for (size_t i = 0; st == TL_OK && i < n; i++) {
        int64_t size = sizes != NULL ? sizes[i].i : same;
        tl_value part = tl_empty();

        size = sizes == NULL && size > total - at ? total - at : size;
        st = tl_do_slice(ev, tl_ref(x), axis, tl_dim_num(at),
                         tl_dim_num(size), 1, &part);
        if (st == TL_OK) {
            st = tl_list_push_take(list.seq, part, ev->diag);
        }
        at += size;
    }
    tl_unref(x);
    if (st != TL_OK) {
        tl_unref(list);
        return st;
    }
    *out = list;
    return TL_OK;
}

/* The axis and its size as a number; *known false: not known here. */
static tl_status part_axis(tl_eval *ev, const tl_value *args, int *axis,
                           int64_t *total, bool *known)
{
    tl_ttype type;

    TL_TRY(tl_arg_axis(ev, args[2], args[0], axis));
    TL_TRY(tl_eval_type(ev, args[0], &type));
    TL_TRY(tl_pin_size(ev, &type.shape.dim[*axis]));
    *known = tl_dim_is_num(type.shape.dim[*axis]);
    *total = *known ? tl_dim_value(type.shape.dim[*axis]) : 0;
    return TL_OK;
}

/* An empty axis has as many empty chunks as are asked for, up to this. */
enum { MAX_EMPTY = 1 << 20 };

tl_status tl_bi_chunk(tl_eval *ev, const tl_builtin *self, tl_value *args,
                      tl_value *out)
{
    int64_t n = args[1].i, total;
    int axis;
    bool known;

    (void)self;
    if (n < 1) {
        return tl_fail(ev->diag, TL_E0306,
                       "the number of chunks must be >= 1, got %lld",
                       (long long)n);
    }
    TL_TRY(part_axis(ev, args, &axis, &total, &known));
    if (!known) {
        *out = tl_unknown();
        return TL_OK;
    }
    if (total == 0 && n > MAX_EMPTY) {
        return tl_fail(ev->diag, TL_E0306, "%lld chunks of an empty axis",
                       (long long)n);
    }
    int64_t size = total / n + (total % n != 0);
    int64_t parts = total == 0 ? n : total / size + (total % size != 0);

    return parts_take(ev, tl_arg_take(args, 0), axis, NULL, (size_t)parts,
                      size, total, out);
}

tl_status tl_bi_split(tl_eval *ev, const tl_builtin *self, tl_value *args,
                      tl_value *out)
{
    int64_t total, sum = 0;
    int axis;
    bool known;

    (void)self;
    TL_TRY(part_axis(ev, args, &axis, &total, &known));
    if (!known) {
        *out = tl_unknown();
        return TL_OK;
    }
    if (args[1].tag == TL_V_INT) {
        if (args[1].i < 1) {
            return tl_fail(ev->diag, TL_E0306,
                           "the size of a part must be >= 1, got %lld",
                           (long long)args[1].i);
        }
        int64_t size = args[1].i;
        int64_t parts = total == 0 ? 1 : total / size + (total % size != 0);

        return parts_take(ev, tl_arg_take(args, 0), axis, NULL, (size_t)parts,
                          size, total, out);
    }
    for (size_t i = 0; i < args[1].seq->len; i++) {
        int64_t size = args[1].seq->items[i].i;

        if (size < 0 || !tl_add_i64(&sum, sum, size)) {
            return tl_fail(ev->diag, TL_E0306,
                           "the size of a part must be >= 0, got %lld",
                           (long long)size);
        }
    }
    if (sum != total) {
        return tl_fail(ev->diag, TL_E0303,
                       "the sizes of the parts add up to %lld, the axis has "
                       "%lld",
                       (long long)sum, (long long)total);
    }
    return parts_take(ev, tl_arg_take(args, 0), axis, args[1].seq->items,
                      args[1].seq->len, 0, total, out);
}
