/* eval_index.c - v[subs] and v[subs] = x, of containers and of tensors.
 *
 * A tensor index is split into its *basic* part (ints, slices, none, `...`:
 * one slice and views) and its *advanced* part (index tensors and masks: the
 * operation `index`), as in NumPy.  A mask stands for the index tensors of its
 * true elements.  When there is an advanced part, ints belong to it. */
#include "interp/container.h"
#include "interp/domain.h"
#include "interp/eval_impl.h"
#include "interp/tree.h"
#include "interp/sym.h"
#include "runtime/base/size.h"
#include "runtime/op/view.h"

/* What the subscripts of a tensor mean. */
typedef struct plan {
    tl_ttype type;      /* of the tensor */
    tl_attrs slice;     /* of the basic part */
    bool sliced;        /* the slice is not everything */
    uint16_t drop;      /* axes taken by ints */
    int rank;           /* axes of the tensor that have been consumed */
    uint16_t adv_axes;  /* axes of the tensor with an index tensor */
    tl_value adv[TL_MAX_RANK]; /* owned, by axis */
    int order[TL_MAX_SUBSCRIPTS]; /* result axes: tensor axis, or -1: new */
    int norder;
    bool front; /* the advanced axes go to the front */
} plan;

static void plan_fini(plan *p)
{
    for (int i = 0; i < TL_MAX_RANK; i++) {
        tl_unref(p->adv[i]);
    }
}

static bool is_mask(tl_value v)
{
    return (v.tag == TL_V_TENSOR && v.tensor->dtype == TL_bool) ||
           (v.tag == TL_V_NODE && v.node->type.dtype == TL_bool);
}

static int mask_rank(tl_value v)
{
    return v.tag == TL_V_TENSOR ? v.tensor->rank : v.node->type.shape.rank;
}

/* Axes of the tensor that a subscript consumes. */
static int consumed(tl_value sub)
{
    if (sub.tag == TL_V_NONE || sub.tag == TL_V_ELLIPSIS) {
        return 0;
    }
    return tl_is_tensor(sub) && is_mask(sub) ? mask_rank(sub) : 1;
}

/* The element at `i` of the next axis, which is dropped. */
static void plan_element(plan *p, tl_dim i)
{
    p->slice.dims[3 * p->rank] = i;
    p->slice.dims[3 * p->rank + 1] = tl_dim_num(1);
    p->slice.dims[3 * p->rank + 2] = tl_dim_num(1);
    p->sliced = true;
    p->drop |= (uint16_t)(1u << p->rank);
    p->order[p->norder++] = p->rank++;
}

/* x[i] where index or size is a symbol: within the axis, which becomes a
 * condition.  `hint` is the index now. */
static tl_status plan_symbol(tl_eval *ev, plan *p, tl_dim i, int64_t hint)
{
    tl_infer *infer = tl_eval_infer(ev);
    tl_dim n = p->type.shape.dim[p->rank], last;
    bool inside;

    if (hint < 0) {
        TL_TRY(tl_dim_add(infer->dims, n, i, &i, ev->diag));
    }
    TL_TRY(tl_dim_sub(infer->dims, n, tl_dim_num(1), &last, ev->diag));
    TL_TRY(tl_infer_answer(tl_infer_le(infer, tl_dim_num(0), i), &inside));
    if (inside) {
        TL_TRY(tl_infer_answer(tl_infer_le(infer, i, last), &inside));
    }
    if (!inside) {
        return tl_fail(ev->diag, TL_E0405,
                       "index %lld is outside axis %d of %s",
                       (long long)hint, p->rank, tl_ttype_str(&p->type).s);
    }
    plan_element(p, i);
    return TL_OK;
}

static tl_status plan_int(tl_eval *ev, plan *p, int64_t i)
{
    tl_dim n = p->type.shape.dim[p->rank];
    int64_t at = i;

    if (tl_dim_is_num(n)) {
        at = i < 0 ? i + tl_dim_value(n) : i;
        if (at < 0 || at >= tl_dim_value(n)) {
            return tl_fail(ev->diag, TL_E0405,
                           "index %lld is outside axis %d of %s",
                           (long long)i, p->rank, tl_ttype_str(&p->type).s);
        }
    } else if (tl_eval_infer(ev)->guard_le != NULL) {
        return plan_symbol(ev, p, tl_dim_num(i), i);
    } else if (at < 0) {
        at = 0; /* a size that is not known: the type is the same */
    }
    plan_element(p, tl_dim_num(at));
    return TL_OK;
}

static tl_status slice_bound(tl_eval *ev, tl_value v, bool *has, tl_dim *out)
{
    *has = v.tag != TL_V_NONE;
    if (!*has) {
        return TL_OK;
    }
    if (tl_is_sym(v) && tl_number_tag(v) == TL_V_INT) {
        *out = v.sym->dim;
        return TL_OK;
    }
    if (v.tag != TL_V_INT) {
        tl_status st = tl_fail(ev->diag, TL_E0210,
                               "the bounds of a slice must be ints, got %s",
                               tl_value_type_str(v).s);

        if (tl_is_tensor(v)) {
            tl_diag_help(ev->diag, "`int(t)` reads a tensor of one element");
        }
        return st;
    }
    int64_t i = v.i; /* clipped so that it fits a tl_dim */

    i = i > TL_MAX_NUMEL ? TL_MAX_NUMEL : i < -TL_MAX_NUMEL ? -TL_MAX_NUMEL : i;
    *out = tl_dim_num(i);
    return TL_OK;
}

static tl_status plan_slice(tl_eval *ev, plan *p, const tl_slice *s)
{
    tl_axis_slice a = {.step = 1};
    tl_dim n = p->type.shape.dim[p->rank], step, start, size;
    bool has_step;

    TL_TRY(slice_bound(ev, s->start, &a.has_start, &a.start));
    TL_TRY(slice_bound(ev, s->stop, &a.has_stop, &a.stop));
    TL_TRY(slice_bound(ev, s->step, &has_step, &step));
    if (has_step && !tl_dim_is_num(step)) {
        TL_TRY(tl_eval_infer(ev)->pin(tl_eval_infer(ev)->guard_arg, step,
                                      &step));
    }
    if (has_step) {
        a.step = tl_dim_value(step);
    }
    if (a.has_start || a.has_stop || has_step) {
        TL_TRY(tl_slice_resolve(tl_eval_infer(ev), n, &a, &start, &size));
        p->slice.dims[3 * p->rank] = start;
        p->slice.dims[3 * p->rank + 1] = size;
        p->slice.dims[3 * p->rank + 2] = tl_dim_num(a.step);
        p->sliced = true;
    }
    p->order[p->norder++] = p->rank++;
    return TL_OK;
}

/* A mask of k axes: k index tensors, the columns of nonzero(mask). */
static tl_status plan_mask(tl_eval *ev, plan *p, tl_value mask)
{
    int k = mask_rank(mask);
    tl_value rows = tl_ref(mask);
    tl_attrs at;
    tl_ttype type, m;

    TL_TRY(tl_eval_type(ev, mask, &m));
    for (int i = 0; i < k; i++) {
        tl_dim a = m.shape.dim[i], b = p->type.shape.dim[p->rank + i];

        if (tl_dim_is_num(a) && tl_dim_is_num(b) && !tl_dim_same(a, b)) {
            tl_unref(rows);
            return tl_fail(ev->diag, TL_E0301,
                           "the mask %s does not fit %s: dimension %d",
                           tl_ttype_str(&m).s, tl_ttype_str(&p->type).s,
                           p->rank + i);
        }
    }
    tl_attrs_init(&at);
    TL_TRY(tl_eval_op(ev, TL_OP_nonzero, &rows, 1, &at, &rows));
    if (rows.tag == TL_V_UNKNOWN) {
        p->adv[p->rank] = rows;
        k = k > 0 ? k : 1;
        p->rank += k;
        return TL_OK;
    }
    tl_status st = tl_eval_type(ev, rows, &type);

    for (int i = 0; i < k && st == TL_OK; i++) {
        tl_value col = tl_ref(rows);

        tl_attrs_slice_all(&at, &type.shape);
        at.dims[3] = tl_dim_num(i);
        at.dims[4] = at.dims[5] = tl_dim_num(1);
        st = tl_eval_op(ev, TL_OP_slice, &col, 1, &at, &col);
        if (st == TL_OK) {
            tl_attrs_init(&at);
            at.axes = 2;
            st = tl_eval_op(ev, TL_OP_squeeze, &col, 1, &at, &col);
        }
        if (st == TL_OK) {
            p->adv[p->rank] = col;
            p->adv_axes |= (uint16_t)(1u << p->rank);
            p->order[p->norder++] = p->rank++;
        }
    }
    tl_unref(rows);
    return st;
}

static tl_status plan_tensor(tl_eval *ev, plan *p, tl_value sub)
{
    tl_ttype type;

    if (is_mask(sub)) {
        return plan_mask(ev, p, sub);
    }
    TL_TRY(tl_eval_type(ev, sub, &type));
    if (tl_dtype_is_float(type.dtype)) {
        return tl_fail(ev->diag, TL_E0308,
                       "an index must be ints or a mask, got %s",
                       tl_ttype_str(&type).s);
    }
    p->adv[p->rank] = tl_ref(sub);
    p->adv_axes |= (uint16_t)(1u << p->rank);
    p->order[p->norder++] = p->rank++;
    return TL_OK;
}

static tl_status plan_sub(tl_eval *ev, plan *p, tl_value sub, int ellipsis)
{
    if (sub.tag == TL_V_NONE) {
        p->order[p->norder++] = -1;
        return TL_OK;
    }
    if (sub.tag == TL_V_ELLIPSIS) {
        for (int i = 0; i < ellipsis; i++) {
            p->order[p->norder++] = p->rank++;
        }
        return TL_OK;
    }
    switch (sub.tag) {
    case TL_V_INT:
        return plan_int(ev, p, sub.i);
    case TL_V_SYM:
        if (tl_number_tag(sub) == TL_V_INT) {
            return plan_symbol(ev, p, sub.sym->dim, sub.sym->hint.i);
        }
        return tl_fail(ev->diag, TL_E0210, "an index must be an int, got %s",
                       tl_value_type_str(sub).s);
    case TL_V_SLICE:
        return plan_slice(ev, p, sub.slice);
    case TL_V_TENSOR:
    case TL_V_NODE:
        return plan_tensor(ev, p, sub);
    default:
        return tl_fail(ev->diag, TL_E0210,
                       "a tensor is indexed by int, slice, none, `...`, "
                       "mask or int tensor, not by %s",
                       tl_value_type_str(sub).s);
    }
}

/* With an advanced part, ints become index tensors without axes. */
static tl_status ints_to_tensors(tl_eval *ev, plan *p)
{
    for (int a = 0; a < p->rank; a++) {
        if (!(p->drop & (1u << a))) {
            continue;
        }
        tl_value start;

        TL_TRY(tl_dim_value_of(ev, p->slice.dims[3 * a], &start));
        TL_TRY(tl_eval_scalar(ev, start, TL_i64, &p->adv[a]));
        p->adv_axes |= (uint16_t)(1u << a);
        p->slice.dims[3 * a] = tl_dim_num(0);
        p->slice.dims[3 * a + 1] = p->type.shape.dim[a];
    }
    p->drop = 0;
    return TL_OK;
}

/* Are the advanced axes neighbours in the result's order? */
static bool neighbours(const plan *p)
{
    int first = -1, last = -1, n = 0;

    for (int i = 0; i < p->norder; i++) {
        if (p->order[i] >= 0 && (p->adv_axes & (1u << p->order[i]))) {
            first = first < 0 ? i : first;
            last = i;
            n++;
        }
    }
    return n == 0 || last - first + 1 == n;
}

static tl_status plan_init(tl_eval *ev, plan *p, tl_value v,
                           const tl_value *subs, size_t n)
{
    int used = 0, ellipses = 0;

    TL_TRY(tl_eval_type(ev, v, &p->type));
    tl_attrs_slice_all(&p->slice, &p->type.shape);
    for (size_t i = 0; i < n; i++) {
        used += consumed(subs[i]);
        ellipses += subs[i].tag == TL_V_ELLIPSIS;
    }
    if (ellipses > 1) {
        return tl_fail(ev->diag, TL_E0304, "`...` stands twice in an index");
    }
    int rest = p->type.shape.rank - used;

    if (rest < 0) {
        return tl_fail(ev->diag, TL_E0304,
                       "%d indices for %s, which has %d axes", used,
                       tl_ttype_str(&p->type).s, p->type.shape.rank);
    }
    for (size_t i = 0; i < n; i++) {
        TL_TRY(plan_sub(ev, p, subs[i], rest));
    }
    while (p->rank < p->type.shape.rank) {
        p->order[p->norder++] = p->rank++;
    }
    if (p->adv_axes != 0) {
        p->front = !neighbours(p);
        TL_TRY(ints_to_tensors(ev, p));
        p->front = p->front || !neighbours(p);
    }
    return TL_OK;
}

/* ---- reading ----------------------------------------------------------- */

static tl_status basic_take(tl_eval *ev, const plan *p, tl_value v,
                            tl_value *out)
{
    tl_attrs at;
    uint16_t added = 0;
    int k = 0;

    if (p->sliced) {
        TL_TRY(tl_eval_op(ev, TL_OP_slice, &v, 1, &p->slice, &v));
    }
    if (p->drop != 0) {
        tl_attrs_init(&at);
        at.axes = p->drop;
        TL_TRY(tl_eval_op(ev, TL_OP_squeeze, &v, 1, &at, &v));
    }
    for (int i = 0; i < p->norder; i++) {
        if (p->order[i] >= 0 && (p->drop & (1u << p->order[i]))) {
            continue;
        }
        if (k >= TL_MAX_RANK) {
            tl_unref(v);
            return tl_fail(ev->diag, TL_E0316, "more than %d dimensions",
                           TL_MAX_RANK);
        }
        if (p->order[i] < 0) {
            added |= (uint16_t)(1u << k);
        }
        k++;
    }
    if (added != 0) {
        tl_attrs_init(&at);
        at.axes = added;
        TL_TRY(tl_eval_op(ev, TL_OP_unsqueeze, &v, 1, &at, &v));
    }
    *out = v;
    return TL_OK;
}

/* Attributes and index operands of `index` on the result of the basic part. */
static int adv_operands(const plan *p, tl_value *in, tl_attrs *at)
{
    int n = 0, k = 0;

    tl_attrs_init(at);
    at->flag = p->front;
    for (int i = 0; i < p->norder; i++, k++) {
        int a = p->order[i];

        if (a >= 0 && (p->adv_axes & (1u << a))) {
            at->axes |= (uint16_t)(1u << k);
            in[n++] = tl_ref(p->adv[a]);
        }
    }
    return n;
}

static tl_status tensor_index(tl_eval *ev, tl_value v, const tl_value *subs,
                              size_t n, tl_value *out)
{
    plan p = {.adv_axes = 0};
    tl_value in[1 + TL_MAX_RANK];
    tl_attrs at;
    tl_status st = plan_init(ev, &p, v, subs, n);

    if (st != TL_OK) {
        tl_unref(v);
    } else {
        st = basic_take(ev, &p, v, &in[0]);
    }
    if (st == TL_OK && p.adv_axes != 0) {
        int k = adv_operands(&p, in + 1, &at);

        st = tl_eval_op(ev, TL_OP_index, in, 1 + k, &at, out);
    } else if (st == TL_OK) {
        *out = in[0];
    }
    plan_fini(&p);
    return st;
}

/* Lists of ints or bools among the subscripts become tensors; is one
 * UNKNOWN? */
static tl_status prepare(tl_eval *ev, tl_value *subs, size_t n, bool *unknown)
{
    *unknown = false;
    for (size_t i = 0; i < n; i++) {
        if (subs[i].tag == TL_V_LIST) {
            tl_value list = subs[i];

            subs[i] = tl_empty();
            TL_TRY(tl_eval_as_tensor_take(ev, list, &subs[i]));
        }
        const tl_slice *s = subs[i].slice;

        *unknown = *unknown || subs[i].tag == TL_V_UNKNOWN ||
                   (subs[i].tag == TL_V_SLICE &&
                    (s->start.tag == TL_V_UNKNOWN ||
                     s->stop.tag == TL_V_UNKNOWN ||
                     s->step.tag == TL_V_UNKNOWN));
    }
    return TL_OK;
}

/* d[a, b] has the key (a, b). */
static tl_status dict_key(tl_eval *ev, tl_value *subs, size_t n,
                          tl_value *key)
{
    if (n == 1) {
        *key = subs[0];
        subs[0] = tl_empty();
        return TL_OK;
    }
    tl_status st = tl_seq_new_take(key, TL_V_TUPLE, subs, n, ev->diag);

    for (size_t i = 0; i < n; i++) {
        subs[i] = tl_empty();
    }
    return st;
}

static tl_status one_subscript(tl_eval *ev, tl_value v, size_t n)
{
    return n == 1 ? TL_OK
                  : tl_fail(ev->diag, TL_E0210, "%s takes one index, got %zu",
                            tl_value_type_str(v).s, n);
}

static tl_status host_index(tl_eval *ev, tl_value v, tl_value *subs, size_t n,
                            tl_value *out)
{
    tl_value key = tl_empty();
    tl_status st;

    if (v.tag == TL_V_DICT) {
        TL_TRY(dict_key(ev, subs, n, &key));
        st = tl_dict_index(v, key, out, ev->diag);
        tl_unref(key);
        return st;
    }
    if (v.tag == TL_V_MODULE &&
        tl_module_starred(v.module, TL_V_TUPLE) != NULL) {
        v = *tl_module_starred(v.module, TL_V_TUPLE);
    }
    TL_TRY(one_subscript(ev, v, n));
    if (v.tag == TL_V_TREE) {
        return tl_tree_index(ev, v.tree, subs[0], out);
    }
    if (subs[0].tag == TL_V_SLICE) {
        const tl_slice *s = subs[0].slice;

        return tl_container_slice(v, s->start, s->stop, s->step, out,
                                  ev->diag);
    }
    return tl_container_index(v, subs[0], out, ev->diag);
}

static bool parts_unknown(const tl_value *subs, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (subs[i].tag == TL_V_UNKNOWN || subs[i].tag == TL_V_NODE ||
            (subs[i].tag == TL_V_SLICE && !tl_value_known(subs[i]))) {
            return true;
        }
    }
    return false;
}

/* Is a part of a host index UNKNOWN, or a value without data?  A trace reads
 * symbols, and a tensor is no index: host_index says so. */
static tl_status host_unknown(tl_eval *ev, tl_value *subs, size_t n,
                              bool *unknown)
{
    if (tl_is_tracing(ev)) {
        for (size_t i = 0; i < n; i++) {
            TL_TRY(tl_sym_read_deep(ev, &subs[i]));
        }
        return TL_OK;
    }
    *unknown = parts_unknown(subs, n);
    return TL_OK;
}

tl_status tl_eval_index_take(tl_eval *ev, tl_value v, tl_value *subs,
                             size_t n, tl_value *out)
{
    bool unknown = v.tag == TL_V_UNKNOWN;
    tl_status st = TL_OK;

    if (tl_is_tensor(v)) {
        st = prepare(ev, subs, n, &unknown);
        if (st == TL_OK && !unknown) {
            st = tensor_index(ev, v, subs, n, out);
            tl_unref_all(subs, n);
            return st;
        }
    } else if (!unknown) {
        st = host_unknown(ev, subs, n, &unknown);
        if (st == TL_OK && !unknown) {
            st = host_index(ev, v, subs, n, out);
        }
    }
    if (st == TL_OK && unknown) {
        *out = tl_unknown();
    }
    tl_unref(v);
    tl_unref_all(subs, n);
    return st;
}

/* ---- writing ----------------------------------------------------------- */

/* Elements keep their dtype: a fraction would be lost without a word. */
static tl_status check_put(tl_eval *ev, tl_dtype dtype, bool is_float,
                           tl_value x)
{
    if (!is_float || tl_dtype_is_float(dtype)) {
        return TL_OK;
    }
    tl_status st = tl_fail(ev->diag, TL_E0308,
                           "elements of %s cannot be written with %s",
                           tl_dtype_name(dtype), tl_value_type_str(x).s);

    tl_diag_help(ev->diag, "cast one of them: `x = f32(x)` before, or write "
                           "an int");
    return st;
}

/* The new elements as a tensor of the target's dtype.  Eats x. */
static tl_status put_operand(tl_eval *ev, tl_dtype dtype, tl_value x,
                             tl_value *out)
{
    tl_ttype type;
    tl_attrs at;
    tl_status st;

    if (tl_is_any_number(x)) {
        st = check_put(ev, dtype, tl_number_tag(x) == TL_V_FLOAT, x);
        if (st != TL_OK) {
            tl_unref(x); /* a symbol is an object */
            return st;
        }
        return tl_eval_scalar(ev, x, dtype, out);
    }
    TL_TRY(tl_eval_as_tensor_take(ev, x, &x));
    *out = x;
    if (x.tag == TL_V_UNKNOWN) {
        return TL_OK;
    }
    st = tl_eval_type(ev, x, &type);
    if (st == TL_OK && type.dtype == dtype) {
        return TL_OK;
    }
    if (st == TL_OK) {
        st = check_put(ev, dtype, tl_dtype_is_float(type.dtype), x);
    }
    if (st != TL_OK) {
        tl_drop(out);
        return st;
    }
    tl_attrs_init(&at);
    at.dtype = (uint8_t)dtype;
    return tl_eval_op(ev, TL_OP_cast, out, 1, &at, out);
}

/* Give `x`, which is shaped like the result of a read, an axis of size 1 for
 * each axis that an int took, and take away those that `none` added. */
static tl_status put_shape(tl_eval *ev, const plan *p, tl_value x,
                           tl_value *out)
{
    tl_ttype type;
    tl_attrs at;
    uint16_t add = 0;
    int left, total = 0;

    *out = x;
    TL_TRY(tl_eval_type(ev, x, &type));
    left = type.shape.rank;
    for (int a = p->type.shape.rank - 1; a >= 0 && left > 0; a--) {
        if (p->drop & (1u << a)) {
            add |= (uint16_t)(1u << a);
        } else {
            left--;
        }
        total++;
    }
    if (add == 0) {
        return TL_OK;
    }
    tl_attrs_init(&at);
    at.axes = (uint16_t)(add >> (p->type.shape.rank - total));
    return tl_eval_op(ev, TL_OP_unsqueeze, out, 1, &at, out);
}

/* x[basic] = v, as one operation. */
static tl_status put_basic(tl_eval *ev, const plan *p, tl_value v, tl_value x,
                           tl_value *out)
{
    tl_value in[2] = {v, tl_empty()};
    tl_status st = put_shape(ev, p, x, &in[1]);

    if (st != TL_OK) {
        tl_unref(v);
        return st;
    }
    return tl_eval_op(ev, TL_OP_slice_put, in, 2, &p->slice, out);
}

static tl_status put_advanced(tl_eval *ev, const plan *p, tl_value v,
                              tl_value x, tl_value *out)
{
    tl_value in[2 + TL_MAX_RANK], part = p->sliced ? tl_ref(v) : v;
    tl_attrs at;

    if (p->sliced) {
        tl_status st = tl_eval_op(ev, TL_OP_slice, &part, 1, &p->slice,
                                  &part);

        if (st != TL_OK) {
            tl_unref(v);
            tl_unref(x);
            return st;
        }
    }
    in[0] = part;
    in[1] = x;
    int k = adv_operands(p, in + 2, &at);
    tl_status st = tl_eval_op(ev, TL_OP_index_put, in, 2 + k, &at, &part);

    if (!p->sliced) {
        if (st == TL_OK) {
            *out = part;
        }
        return st;
    }
    if (st != TL_OK) {
        tl_unref(v);
        return st;
    }
    tl_value two[2] = {v, part};

    return tl_eval_op(ev, TL_OP_slice_put, two, 2, &p->slice, out);
}

/* x[mask] = number: a choice, whose size depends on nothing. */
static bool is_masked_fill(tl_value v, const tl_value *subs, size_t n,
                           tl_value x)
{
    int rank = v.tag == TL_V_TENSOR ? v.tensor->rank : v.node->type.shape.rank;

    return n == 1 && tl_is_tensor(subs[0]) && is_mask(subs[0]) &&
           mask_rank(subs[0]) == rank &&
           (tl_is_any_number(x) ||
            (x.tag == TL_V_TENSOR && x.tensor->rank == 0));
}

static tl_status tensor_put(tl_eval *ev, tl_value v, tl_value *subs, size_t n,
                            tl_value x, tl_value *out)
{
    plan p = {.adv_axes = 0};
    tl_ttype type;
    tl_status st = tl_eval_type(ev, v, &type);
    bool fill = st == TL_OK && is_masked_fill(v, subs, n, x);

    if (st == TL_OK) {
        st = put_operand(ev, type.dtype, x, &x);
    }
    if (st == TL_OK && fill) {
        tl_value in[3] = {tl_ref(subs[0]), x, v};

        return tl_eval_op(ev, TL_OP_where, in, 3, NULL, out);
    }
    if (st != TL_OK) {
        tl_unref(v);
        return st;
    }
    st = plan_init(ev, &p, v, subs, n);
    for (int i = 0; st == TL_OK && i < p.norder; i++) {
        if (p.order[i] < 0) {
            st = tl_fail(ev->diag, TL_E0210,
                         "`none` has no meaning in an index that is written");
        }
    }
    if (st != TL_OK) {
        tl_unref(v);
        tl_unref(x);
    } else if (p.adv_axes != 0) {
        st = put_advanced(ev, &p, v, x, out);
    } else {
        st = put_basic(ev, &p, v, x, out);
    }
    plan_fini(&p);
    return st;
}

static tl_status host_put(tl_eval *ev, tl_value v, tl_value *subs, size_t n,
                          tl_value x, tl_value *out)
{
    tl_value key = tl_empty();
    tl_status st = v.tag == TL_V_DICT ? dict_key(ev, subs, n, &key)
                                      : one_subscript(ev, v, n);

    if (st != TL_OK) {
        tl_unref(v);
        tl_unref(x);
        return st;
    }
    if (v.tag != TL_V_DICT) {
        key = subs[0];
        subs[0] = tl_empty();
    }
    st = tl_container_put_take(v, key, x, out, ev->diag);
    return st;
}

tl_status tl_eval_index_put_take(tl_eval *ev, tl_value v, tl_value *subs,
                                 size_t n, tl_value x, tl_value *out)
{
    bool unknown = v.tag == TL_V_UNKNOWN;
    tl_status st = TL_OK;

    if (tl_is_tensor(v)) {
        st = prepare(ev, subs, n, &unknown);
        if (st == TL_OK && (unknown || x.tag == TL_V_UNKNOWN)) {
            *out = v; /* whatever is written, the type stays */
            tl_unref(x);
        } else if (st == TL_OK) {
            st = tensor_put(ev, v, subs, n, x, out);
        } else {
            tl_unref(v);
            tl_unref(x);
        }
    } else {
        if (!unknown) {
            st = host_unknown(ev, subs, n, &unknown);
        }
        if (st == TL_OK && !unknown) {
            st = host_put(ev, v, subs, n, x, out);
        } else {
            tl_unref(v);
            tl_unref(x);
        }
        if (st == TL_OK && unknown) {
            *out = tl_unknown();
        }
    }
    tl_unref_all(subs, n);
    return st;
}
