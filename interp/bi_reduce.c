/* bi_reduce.c - the host halves of sum, max, abs, ...: see bi_host.h. */
#include "interp/bi_host.h"

#include <math.h>

#include "interp/bi_walk.h"
#include "interp/container.h"

/* ---- items ------------------------------------------------------------- */

static const char *const red_names[] = {
    [TL_HOST_SUM] = "sum", [TL_HOST_PROD] = "prod", [TL_HOST_MEAN] = "mean",
    [TL_HOST_MAX] = "max", [TL_HOST_MIN] = "min",   [TL_HOST_ANY] = "any",
    [TL_HOST_ALL] = "all",
};

static bool is_nested(tl_value v)
{
    return v.tag == TL_V_LIST || v.tag == TL_V_TUPLE || v.tag == TL_V_DICT;
}

/* Lists in a list are left to tensor(), except for max and min, which have
 * an order on them. */
static bool takes(tl_host_red what, tl_value xs)
{
    if (xs.tag == TL_V_RANGE || xs.tag == TL_V_DICT) {
        return true;
    }
    if (xs.tag != TL_V_LIST && xs.tag != TL_V_TUPLE) {
        return false;
    }
    if (what == TL_HOST_MAX || what == TL_HOST_MIN) {
        return true;
    }
    return xs.seq->len == 0 || !is_nested(xs.seq->items[0]);
}

static bool has_tensor(const tl_seq *seq)
{
    for (size_t i = 0; i < seq->len; i++) {
        if (tl_is_tensor(seq->items[i])) {
            return true;
        }
    }
    return false;
}

/* ---- folds ------------------------------------------------------------- */

/* ((acc op x[from]) op x[from + 1]) ... */
static tl_status fold_take(tl_eval *ev, tl_oper op, tl_value acc,
                           const tl_seq *seq, size_t from, tl_value *out)
{
    for (size_t i = from; i < seq->len; i++) {
        tl_value old = acc;

        acc = tl_empty();
        TL_TRY(tl_eval_binary_take(ev, op, old, tl_ref(seq->items[i]), &acc));
    }
    *out = acc;
    return TL_OK;
}

static tl_status sum_of(tl_eval *ev, const tl_seq *seq, tl_value *out)
{
    if (seq->len == 0) {
        *out = tl_int_value(0);
        return TL_OK;
    }
    if (seq->items[0].tag == TL_V_STR) {
        (void)tl_fail(ev->diag, TL_E0207, "sum of strings");
        tl_diag_help(ev->diag, "\"\".join(xs)");
        return TL_ERR_PROGRAM;
    }
    if (seq->items[0].tag == TL_V_BOOL) { /* they are counted */
        return fold_take(ev, TL_OP_ADD, tl_int_value(0), seq, 0, out);
    }
    return fold_take(ev, TL_OP_ADD, tl_ref(seq->items[0]), seq, 1, out);
}

static tl_status of_nothing(tl_eval *ev, tl_host_red what)
{
    return tl_fail(ev->diag, TL_E0402, "%s of nothing has no value",
                   red_names[what]);
}

static tl_status mean_of(tl_eval *ev, const tl_seq *seq, tl_value *out)
{
    tl_value sum;

    if (seq->len == 0) {
        return of_nothing(ev, TL_HOST_MEAN);
    }
    TL_TRY(sum_of(ev, seq, &sum));
    return tl_eval_binary_take(ev, TL_OP_DIV, sum,
                               tl_int_value((int64_t)seq->len), out);
}

static tl_status prod_of(tl_eval *ev, const tl_seq *seq, tl_value *out)
{
    if (seq->len == 0) {
        *out = tl_int_value(1);
        return TL_OK;
    }
    return fold_take(ev, TL_OP_MUL, tl_ref(seq->items[0]), seq, 1, out);
}

/* ---- extrema ----------------------------------------------------------- */

static tl_status best_host(tl_eval *ev, bool max, const tl_value *xs,
                           size_t n, tl_value *out)
{
    size_t best = 0;

    for (size_t i = 0; i < n; i++) {
        int c = 0;

        if (!tl_value_known(xs[i])) {
            *out = tl_unknown();
            return TL_OK;
        }
        TL_TRY(tl_value_compare(xs[i], xs[best], &c, ev->diag));
        if (c == TL_UNORDERED) { /* as the tensor operation: NaN wins */
            *out = tl_float_value(NAN);
            return TL_OK;
        }
        if (max ? c > 0 : c < 0) {
            best = i;
        }
    }
    *out = tl_ref(xs[best]);
    return TL_OK;
}

/* Elementwise over scalar tensors, so that gradients flow. */
static tl_status best_tensor(tl_eval *ev, bool max, const tl_seq *seq,
                             tl_value *out)
{
    tl_value acc = tl_ref(seq->items[0]);

    for (size_t i = 1; i < seq->len; i++) {
        tl_value in[2] = {acc, tl_ref(seq->items[i])};

        acc = tl_empty();
        TL_TRY(tl_eval_op(ev, max ? TL_OP_maximum : TL_OP_minimum, in, 2,
                          NULL, &acc));
    }
    *out = acc;
    return TL_OK;
}

static tl_status best_of(tl_eval *ev, bool max, const tl_seq *seq,
                         tl_value *out)
{
    if (seq->len == 0) {
        return of_nothing(ev, max ? TL_HOST_MAX : TL_HOST_MIN);
    }
    if (has_tensor(seq)) {
        return best_tensor(ev, max, seq, out);
    }
    return best_host(ev, max, seq->items, seq->len, out);
}

tl_status tl_host_extremum(tl_eval *ev, bool max, const tl_value *xs,
                           size_t n, bool *mine, tl_value *out)
{
    bool unknown = false;

    *mine = false;
    for (size_t i = 0; i < n; i++) {
        if (!tl_is_number(xs[i]) && xs[i].tag != TL_V_STR &&
            xs[i].tag != TL_V_UNKNOWN) {
            return TL_OK;
        }
        unknown |= xs[i].tag == TL_V_UNKNOWN;
    }
    if (n == 0) {
        return TL_OK;
    }
    *mine = true;
    if (unknown) {
        *out = tl_unknown();
        return TL_OK;
    }
    return best_host(ev, max, xs, n, out);
}

/* ---- any, all ---------------------------------------------------------- */

/* any: is one true; all: is none false.  Unknown ones may still be decided
 * by a later item. */
static tl_status any_of(tl_eval *ev, bool all, const tl_seq *seq,
                        tl_value *out)
{
    bool certain = true;

    for (size_t i = 0; i < seq->len; i++) {
        bool known, yes = false;

        TL_TRY(tl_eval_truth(ev, seq->items[i], &known, &yes));
        if (known && yes != all) {
            *out = tl_bool_value(!all);
            return TL_OK;
        }
        certain &= known;
    }
    *out = certain ? tl_bool_value(all) : tl_unknown();
    return TL_OK;
}

/* ---- reductions -------------------------------------------------------- */

static tl_status reduce(tl_eval *ev, tl_host_red what, const tl_seq *seq,
                        tl_value *out)
{
    switch (what) {
    case TL_HOST_SUM:
        return sum_of(ev, seq, out);
    case TL_HOST_PROD:
        return prod_of(ev, seq, out);
    case TL_HOST_MEAN:
        return mean_of(ev, seq, out);
    case TL_HOST_MAX:
    case TL_HOST_MIN:
        return best_of(ev, what == TL_HOST_MAX, seq, out);
    case TL_HOST_ANY:
    case TL_HOST_ALL:
        return any_of(ev, what == TL_HOST_ALL, seq, out);
    }
    return TL_ERR_INTERNAL;
}

tl_status tl_host_reduce(tl_eval *ev, tl_host_red what, tl_value xs,
                         bool *mine, tl_value *out)
{
    tl_value list;
    tl_status st;

    *mine = takes(what, xs);
    if (!*mine) {
        return TL_OK;
    }
    if (xs.tag == TL_V_LIST || xs.tag == TL_V_TUPLE) {
        return reduce(ev, what, xs.seq, out);
    }
    TL_TRY(tl_walk_list(ev, xs, &list));
    st = reduce(ev, what, list.seq, out);
    tl_unref(list);
    return st;
}
