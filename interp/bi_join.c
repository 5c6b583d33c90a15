/* bi_join.c - cat, stack and pad. */
#include <string.h>

#include "interp/bi_tensor.h"
#include "interp/builtin_fns.h"
#include "interp/container.h"

tl_status tl_do_cat(tl_eval *ev, tl_value *in, size_t n, int axis,
                    tl_value *out)
{
    tl_attrs at;

    if (n == 0) {
        return tl_fail(ev->diag, TL_E0311, "there is nothing to join");
    }
    tl_attrs_init(&at);
    at.axis = (int8_t)axis;
    return tl_eval_op(ev, TL_OP_cat, in, (int)n, &at, out);
}

/* The tensors of a list as an unshared list that may be eaten; numbers become
 * scalars.  *unknown: one is UNKNOWN. */
static tl_status tensors_of(tl_eval *ev, const tl_seq *xs, tl_value *out,
                            bool *unknown)
{
    tl_value list = tl_empty();
    tl_status st = tl_seq_new_take(&list, TL_V_LIST, NULL, 0, ev->diag);

    *unknown = false;
    for (size_t i = 0; i < xs->len && st == TL_OK; i++) {
        tl_value v = tl_empty();

        *unknown = *unknown || xs->items[i].tag == TL_V_UNKNOWN;
        st = tl_eval_as_tensor_take(ev, tl_ref(xs->items[i]), &v);
        if (st == TL_OK) {
            st = tl_list_push_take(list.seq, v, ev->diag);
        }
    }
    if (st != TL_OK) {
        tl_unref(list);
        return st;
    }
    *out = list;
    return TL_OK;
}

/* Join the tensors of `list`, which is released. */
static tl_status cat_list(tl_eval *ev, tl_value list, int axis,
                          tl_value *out)
{
    size_t n = list.seq->len;

    list.seq->len = 0; /* tl_do_cat eats the items */
    tl_status st = tl_do_cat(ev, list.seq->items, n, axis, out);

    tl_unref(list);
    return st;
}

tl_status tl_bi_cat(tl_eval *ev, const tl_builtin *self, tl_value *args,
                    tl_value *out)
{
    tl_value list = tl_empty();
    bool unknown;
    int axis;

    (void)self;
    TL_TRY(tensors_of(ev, args[0].seq, &list, &unknown));
    if (unknown) {
        tl_unref(list);
        *out = tl_unknown();
        return TL_OK;
    }
    if (list.seq->len == 0) {
        tl_unref(list);
        return tl_fail(ev->diag, TL_E0311, "there is nothing to join");
    }
    tl_status st = tl_arg_axis(ev, args[1], list.seq->items[0], &axis);

    if (st != TL_OK) {
        tl_unref(list);
        return st;
    }
    return cat_list(ev, list, axis, out);
}

/* All of one shape. */
static tl_status check_same(tl_eval *ev, const tl_seq *xs)
{
    tl_ttype a, b;

    TL_TRY(tl_eval_type(ev, xs->items[0], &a));
    for (size_t i = 1; i < xs->len; i++) {
        TL_TRY(tl_eval_type(ev, xs->items[i], &b));
        bool same = a.shape.rank == b.shape.rank;

        for (int k = 0; same && k < a.shape.rank; k++) {
            tl_dim p = a.shape.dim[k], q = b.shape.dim[k];

            same = !tl_dim_is_num(p) || !tl_dim_is_num(q) ||
                   tl_dim_same(p, q);
        }
        if (!same) {
            return tl_fail(ev->diag, TL_E0311,
                           "input %zu is %s, the first is %s", i,
                           tl_ttype_str(&b).s, tl_ttype_str(&a).s);
        }
    }
    return TL_OK;
}

tl_status tl_bi_stack(tl_eval *ev, const tl_builtin *self, tl_value *args,
                      tl_value *out)
{
    tl_value list = tl_empty();
    bool unknown;
    int axis = 0;

    (void)self;
    TL_TRY(tensors_of(ev, args[0].seq, &list, &unknown));
    tl_status st = TL_OK;

    if (list.seq->len == 0) {
        st = tl_fail(ev->diag, TL_E0311, "there is nothing to join");
    } else if (!unknown) {
        st = check_same(ev, list.seq);
        if (st == TL_OK) {
            st = tl_axis_normalise(args[1].i,
                                   tl_value_rank(list.seq->items[0]) + 1,
                                   &axis, ev->diag);
        }
    }
    for (size_t i = 0; !unknown && i < list.seq->len && st == TL_OK; i++) {
        tl_value v = list.seq->items[i];

        list.seq->items[i] = tl_empty();
        st = tl_do_unsqueeze(ev, v, axis, &list.seq->items[i]);
    }
    if (st != TL_OK || unknown) {
        tl_unref(list);
        *out = tl_unknown();
        return st;
    }
    return cat_list(ev, list, axis, out);
}

/* ---- pad --------------------------------------------------------------- */

/* The pair (before, after) of `v`. */
static tl_status pair_of(tl_eval *ev, tl_value v, int64_t *before,
                         int64_t *after)
{
    if ((v.tag == TL_V_TUPLE || v.tag == TL_V_LIST) && v.seq->len == 2 &&
        v.seq->items[0].tag == TL_V_INT && v.seq->items[1].tag == TL_V_INT) {
        *before = v.seq->items[0].i;
        *after = v.seq->items[1].i;
        return TL_OK;
    }
    return tl_fail(ev->diag, TL_E0210,
                   "padding is a pair (before, after) of ints, or a list of "
                   "pairs");
}

/* A block of the fill value with `n` elements along `axis` of `type`. */
static tl_status fill_block(tl_eval *ev, const tl_ttype *type, int axis,
                            int64_t n, tl_value value, tl_value *out)
{
    tl_attrs at;

    tl_attrs_init(&at);
    at.dtype = (uint8_t)type->dtype;
    at.ndims = (uint16_t)type->shape.rank;
    for (int i = 0; i < type->shape.rank; i++) {
        at.dims[i] = i == axis ? tl_dim_num(n) : type->shape.dim[i];
    }
    TL_TRY(tl_fill_value(ev, value, type->dtype, &at));
    return tl_eval_op(ev, TL_OP_full, NULL, 0, &at, out);
}

/* The part of an axis of size n that padding (before, after) shows: slices of
 * x itself, by mode. Constant blocks when mode is "constant". */
static tl_status side(tl_eval *ev, tl_value x, const tl_ttype *type, int axis,
                      int64_t n, bool front, const char *mode, tl_value value,
                      tl_value *out)
{
    int64_t start = 0, step = 1, len;
    tl_dim size = type->shape.dim[axis];

    if (strcmp(mode, "constant") == 0) {
        return fill_block(ev, type, axis, n, value, out);
    }
    TL_TRY(tl_pin_size(ev, &size));
    len = tl_dim_is_num(size) ? tl_dim_value(size) : 0;
    if (strcmp(mode, "replicate") == 0 && len > 0) {
        start = front ? 0 : len - 1;
        TL_TRY(tl_do_slice(ev, tl_ref(x), axis, tl_dim_num(start),
                           tl_dim_num(1), 1, out));
        tl_attrs at;

        tl_attrs_init(&at);
        at.ndims = (uint16_t)type->shape.rank;
        for (int i = 0; i < type->shape.rank; i++) {
            at.dims[i] = i == axis ? tl_dim_num(n) : type->shape.dim[i];
        }
        return tl_eval_op(ev, TL_OP_expand, out, 1, &at, out);
    }
    bool reflect = strcmp(mode, "reflect") == 0;

    if (len == 0 || n > (reflect ? len - 1 : len)) {
        return tl_fail(ev->diag, TL_E0415,
                       "%s padding of %lld is more than the axis has: %lld",
                       mode, (long long)n, (long long)len);
    }
    if (reflect) {
        start = front ? n : len - 2;
        step = -1;
    } else {
        start = front ? len - n : 0;
    }
    return tl_do_slice(ev, tl_ref(x), axis, tl_dim_num(start), tl_dim_num(n),
                       step, out);
}

/* Negative amounts crop.  Eats x. */
static tl_status crop(tl_eval *ev, tl_value x, int axis, int64_t before,
                      int64_t after, tl_value *out)
{
    tl_ttype type;
    tl_status st = tl_eval_type(ev, x, &type);
    int64_t lo = before < 0 ? -before : 0, hi = after < 0 ? -after : 0;

    *out = x;
    if (st != TL_OK || (lo == 0 && hi == 0)) {
        return st;
    }
    tl_dim size = type.shape.dim[axis];

    st = tl_pin_size(ev, &size);

    int64_t n = tl_dim_is_num(size) ? tl_dim_value(size) - lo - hi : -1;

    if (st != TL_OK || n < 0) {
        tl_unref(x);
        return st != TL_OK ? st : tl_fail(ev->diag, TL_E0306,
                       "cropping %lld and %lld leaves nothing of axis %d",
                       (long long)lo, (long long)hi, axis);
    }
    return tl_do_slice(ev, x, axis, tl_dim_num(lo), tl_dim_num(n), 1, out);
}

/* Cropping comes first, except where the edges to repeat are those of x. */
static tl_status pad_axis(tl_eval *ev, tl_value x, int axis, int64_t before,
                          int64_t after, const char *mode, tl_value value,
                          tl_value *out)
{
    bool late = strcmp(mode, "replicate") == 0;
    tl_value parts[3];
    tl_ttype type;
    size_t n = 0;

    if (!late) {
        TL_TRY(crop(ev, x, axis, before, after, &x));
    }
    tl_status st = tl_eval_type(ev, x, &type);

    if (st == TL_OK && before > 0) {
        st = side(ev, x, &type, axis, before, true, mode, value, &parts[n]);
        n += st == TL_OK;
    }
    if (st == TL_OK) {
        parts[n++] = tl_ref(x);
        if (after > 0) {
            st = side(ev, x, &type, axis, after, false, mode, value,
                      &parts[n]);
            n += st == TL_OK;
        }
    }
    tl_unref(x);
    if (st != TL_OK) {
        tl_unref_all(parts, n);
        return st;
    }
    if (n == 1) {
        *out = parts[0];
    } else {
        TL_TRY(tl_do_cat(ev, parts, n, axis, out));
    }
    return late ? crop(ev, *out, axis, before, after, out) : TL_OK;
}

/* Does padding depend on a size which is not known here? */
static tl_status is_open(tl_eval *ev, tl_value x, int axis, int64_t before,
                         int64_t after, const char *mode, bool *out)
{
    tl_ttype type;

    *out = false;
    if (before >= 0 && after >= 0 && strcmp(mode, "constant") == 0) {
        return TL_OK;
    }
    TL_TRY(tl_eval_type(ev, x, &type));
    TL_TRY(tl_pin_size(ev, &type.shape.dim[axis]));
    *out = !tl_dim_is_num(type.shape.dim[axis]);
    return TL_OK;
}

tl_status tl_bi_pad(tl_eval *ev, const tl_builtin *self, tl_value *args,
                    tl_value *out)
{
    const char *mode = args[2].str->data;
    tl_value pairs = args[1], x;
    int rank = tl_value_rank(args[0]);
    bool list = pairs.tag == TL_V_LIST && pairs.seq->len > 0 &&
                pairs.seq->items[0].tag != TL_V_INT;
    size_t n = list ? pairs.seq->len : 1;
    int64_t before, after;

    (void)self;
    if (strcmp(mode, "constant") != 0 && strcmp(mode, "reflect") != 0 &&
        strcmp(mode, "replicate") != 0 && strcmp(mode, "circular") != 0) {
        return tl_fail(ev->diag, TL_E0416,
                       "the mode is constant, reflect, replicate or "
                       "circular, got \"%s\"",
                       mode);
    }
    if (!tl_value_known(pairs)) {
        *out = tl_unknown();
        return TL_OK;
    }
    if ((int)n > rank) {
        return tl_fail(ev->diag, TL_E0304, "%zu pairs for %s", n,
                       tl_value_type_str(args[0]).s);
    }
    x = tl_arg_take(args, 0);
    for (size_t i = 0; i < n; i++) {
        int axis = rank - (int)n + (int)i;
        bool open = false;
        tl_status st = pair_of(ev, list ? pairs.seq->items[i] : pairs,
                               &before, &after);

        if (st == TL_OK) {
            st = is_open(ev, x, axis, before, after, mode, &open);
        }
        if (st != TL_OK || open) {
            tl_unref(x);
            *out = tl_unknown();
            return st;
        }
        TL_TRY(pad_axis(ev, x, axis, before, after, mode,
                        args[3], &x));
    }
    *out = x;
    return TL_OK;
}
