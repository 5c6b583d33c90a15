/* functional.c - gradient(f), vjp, jvp, hessian, gradcheck, stop, seed, and
 * the contexts of `with`.
 *
 * All of them are one tape around a call: leaves of the float tensor
 * arguments, the function, a reverse pass from an upstream gradient. */
#include <math.h>
#include <string.h>

#include "interp/autocast.h"
#include "interp/builtin_fns.h"
#include "interp/context.h"
#include "interp/domain.h"
#include "interp/eval_impl.h"
#include "interp/tree.h"
#include "interp/trace.h"

#define MAX_ARGS TL_INLINE_ARGS

/* A differentiated call while it runs. */
typedef struct dcall {
    tl_gradblk block;
    tl_value leaves[MAX_ARGS]; /* arguments, float tensors as leaves */
    size_t n;
} dcall;

/* Has the domain tapes, or types only? */
static bool is_taped(const tl_eval *ev)
{
    return ev->domain->backward != NULL;
}

static tl_status dcall_begin(tl_eval *ev, dcall *d, const tl_value *xs,
                             size_t n)
{
    *d = (dcall){.n = 0};
    tl_map_init(&d->block.by_cell);
    d->block.outer = ev->grads;
    if (n > MAX_ARGS) {
        return tl_fail(ev->diag, TL_E0203, "more than %d arguments",
                       MAX_ARGS);
    }
    if (is_taped(ev)) {
        TL_TRY(ev->domain->tape_open(ev, &d->block));
    }
    tl_status st = TL_OK;

    for (size_t i = 0; i < n && st == TL_OK; i++) {
        if (!is_taped(ev) || !tl_is_float_tensor(xs[i])) {
            d->leaves[i] = tl_ref(xs[i]);
        } else {
            st = ev->domain->leaf(ev, &d->block, xs[i], &d->leaves[i]);
        }
        d->n += st == TL_OK;
    }
    if (st != TL_OK) {
        if (is_taped(ev)) {
            ev->domain->tape_close(ev, &d->block);
        }
        return st;
    }
    ev->grads = &d->block;
    return TL_OK;
}

/* The function's part is over: nothing more is recorded. */
static void dcall_close(tl_eval *ev, dcall *d)
{
    ev->grads = d->block.outer;
    if (is_taped(ev)) {
        ev->domain->tape_close(ev, &d->block);
    }
}

static void dcall_fini(dcall *d)
{
    tl_unref_all(d->leaves, d->n);
    tl_tape_free(d->block.tape);
    tl_map_fini(&d->block.by_cell);
}

/* Gradients of y with upstream `seed` (no tensor: 1) for each float
 * argument. */
static tl_status dcall_grads(tl_eval *ev, dcall *d, tl_value y, tl_value seed,
                             tl_value *grads, size_t *ngrads)
{
    tl_value leaves[MAX_ARGS];
    bool reached[MAX_ARGS];
    size_t n = 0;

    *ngrads = 0;
    for (size_t i = 0; i < d->n; i++) {
        if (tl_is_float_tensor(d->leaves[i]) ||
            d->leaves[i].tag == TL_V_UNKNOWN) {
            leaves[n++] = d->leaves[i];
        }
    }
    if (is_taped(ev)) {
        TL_TRY(ev->domain->backward(ev, &d->block, y,
                                    tl_is_tensor(seed) ? seed : tl_empty(),
                                    leaves, n, grads, reached));
    } else {
        for (size_t i = 0; i < n; i++) {
            grads[i] = tl_ref(leaves[i]); /* of its type */
        }
    }
    *ngrads = n;
    return TL_OK;
}

/* f(xs) must be a tensor: of one element if `scalar`. */
static tl_status call_tensor(tl_eval *ev, tl_value f, dcall *d, bool scalar,
                             tl_value *y)
{
    tl_ttype type;

    TL_TRY(tl_eval_call_values(ev, f, d->leaves, d->n, y));
    if (y->tag == TL_V_UNKNOWN) {
        return TL_OK;
    }
    if (!tl_is_float_tensor(*y)) {
        return tl_fail(ev->diag, TL_E0501,
                       "the function must give a float tensor, got %s",
                       tl_value_type_str(*y).s);
    }
    TL_TRY(tl_eval_type(ev, *y, &type));
    if (scalar && type.shape.rank != 0) {
        tl_status st = tl_fail(ev->diag, TL_E0501,
                               "the function must give a scalar, got %s",
                               tl_ttype_str(&type).s);

        tl_diag_help(ev->diag, "reduce it: `.sum()`; or use vjp");
        return st;
    }
    return tl_eval_widen(ev, y); /* the gradient starts in f32 */
}

/* One gradient as it is, several as a tuple. Takes them. */
static tl_status pack_take(tl_eval *ev, tl_value *grads, size_t n,
                           tl_value *out)
{
    if (n == 0) {
        return tl_fail(ev->diag, TL_E0502,
                       "there is no float tensor to differentiate by");
    }
    if (n == 1) {
        *out = grads[0];
        return TL_OK;
    }
    return tl_seq_new_take(out, TL_V_TUPLE, grads, n, ev->diag);
}

/* y = f(xs) and the pulled back `seed`. */
static tl_status value_and_grads(tl_eval *ev, tl_value f, const tl_value *xs,
                                 size_t n, tl_value seed, bool scalar,
                                 tl_value *y, tl_value *out)
{
    tl_value grads[MAX_ARGS];
    size_t ngrads = 0;
    dcall d;
    tl_status st = dcall_begin(ev, &d, xs, n);

    *y = tl_empty();
    if (st == TL_OK) {
        st = call_tensor(ev, f, &d, scalar, y);
        dcall_close(ev, &d);
    }
    if (st == TL_OK) {
        st = dcall_grads(ev, &d, *y, seed, grads, &ngrads);
    }
    if (st == TL_OK) {
        st = pack_take(ev, grads, ngrads, out);
    }
    dcall_fini(&d);
    if (st != TL_OK) {
        tl_drop(y);
    }
    return st;
}

/* ---- functions that give functions ------------------------------------- */

static tl_status bound(tl_eval *ev, const char *row, tl_value self,
                       tl_value *out)
{
    const tl_sym *name = tl_intern_get(ev->lang->names, row, strlen(row));
    tl_method *m = tl_obj_new(TL_V_METHOD, sizeof(*m), ev->diag);

    if (name == NULL || m == NULL) {
        tl_unref(self);
        return tl_fail_memory(ev->diag, "a function", sizeof(*m));
    }
    m->self = self;
    m->builtin = tl_builtin_find(ev, name);
    *out = tl_obj_value_take(m);
    return TL_OK;
}

tl_status tl_bi_gradient(tl_eval *ev, const tl_builtin *self, tl_value *args,
                         tl_value *out)
{
    (void)self;
    return bound(ev, "gradient.at", tl_ref(args[0]), out);
}

tl_status tl_bi_gradient_at(tl_eval *ev, const tl_builtin *self,
                            tl_value *args, tl_value *out)
{
    const tl_seq *xs = args[1].seq;
    tl_value y;

    (void)self;
    TL_TRY(value_and_grads(ev, args[0], xs->items, xs->len, tl_none(), true,
                           &y, out));
    tl_unref(y);
    return TL_OK;
}

/* vjp(f, x...): y and the function that pulls a gradient back.  The pull runs
 * f again with the same random draws, so it may be called any number of
 * times and be differentiated itself. */
tl_status tl_bi_vjp(tl_eval *ev, const tl_builtin *self, tl_value *args,
                    tl_value *out)
{
    const tl_seq *xs = args[1].seq;
    tl_value keep[3], pair[2], state;
    uint64_t draws = ev->rt->draws;

    (void)self;
    TL_TRY(tl_eval_call_values(ev, args[0], xs->items, xs->len, &pair[0]));
    keep[0] = tl_ref(args[0]);
    keep[1] = tl_ref(args[1]);
    keep[2] = tl_int_value((int64_t)draws);
    tl_status st = tl_seq_new_take(&state, TL_V_TUPLE, keep, 3, ev->diag);

    if (st == TL_OK) {
        st = bound(ev, "vjp.pull", state, &pair[1]);
    }
    if (st != TL_OK) {
        tl_unref(pair[0]);
        return st;
    }
    return tl_seq_new_take(out, TL_V_TUPLE, pair, 2, ev->diag);
}

tl_status tl_bi_vjp_pull(tl_eval *ev, const tl_builtin *self, tl_value *args,
                         tl_value *out)
{
    const tl_value *state = args[0].seq->items;
    const tl_seq *xs = state[1].seq;
    uint64_t draws = ev->rt->draws;
    tl_value y;

    (void)self;
    ev->rt->draws = (uint64_t)state[2].i;
    tl_status st = value_and_grads(ev, state[0], xs->items, xs->len, args[1],
                                   false, &y, out);

    ev->rt->draws = draws;
    if (st == TL_OK) {
        tl_unref(y);
    }
    return st;
}

/* ---- jvp: d/du <J^T u, v> ---------------------------------------------- */

static tl_status dot(tl_eval *ev, tl_value a, tl_value b, tl_value *out)
{
    tl_value in[2] = {tl_ref(a), tl_ref(b)};
    tl_ttype type;
    tl_attrs at;

    TL_TRY(tl_eval_op(ev, TL_OP_mul, in, 2, NULL, out));
    if (out->tag == TL_V_UNKNOWN) {
        return TL_OK;
    }
    TL_TRY(tl_eval_type(ev, *out, &type));
    tl_attrs_init(&at);
    at.axes = (uint16_t)((1u << type.shape.rank) - 1);
    at.flag = true;
    return tl_eval_op(ev, TL_OP_sum, out, 1, &at, out);
}

/* Sum of <g_i, v_i>; `g` and `v` are one tensor or tuples of as many. */
static tl_status dot_all(tl_eval *ev, tl_value g, tl_value v, tl_value *out)
{
    if (g.tag != TL_V_TUPLE) {
        return dot(ev, g, v, out);
    }
    TL_CHECK(v.tag == TL_V_TUPLE && v.seq->len == g.seq->len);
    *out = tl_empty();
    for (size_t i = 0; i < g.seq->len; i++) {
        tl_value p = tl_empty();

        TL_TRY(dot(ev, g.seq->items[i], v.seq->items[i], &p));
        if (i == 0) {
            *out = p;
            continue;
        }
        tl_value in[2] = {*out, p};

        *out = tl_empty();
        TL_TRY(tl_eval_op(ev, TL_OP_add, in, 2, NULL, out));
    }
    return TL_OK;
}

/* zeros of the type of a float tensor */
static tl_status zeros_of(tl_eval *ev, tl_value t, tl_value *out)
{
    tl_ttype type;
    tl_attrs at;

    TL_TRY(tl_eval_type(ev, t, &type));
    tl_attrs_init(&at);
    at.dtype = (uint8_t)type.dtype;
    at.ndims = (uint16_t)type.shape.rank;
    for (int i = 0; i < type.shape.rank; i++) {
        at.dims[i] = type.shape.dim[i];
    }
    return tl_eval_op(ev, TL_OP_full, NULL, 0, &at, out);
}

static tl_status jvp_taped(tl_eval *ev, tl_value f, const tl_value *xs,
                              size_t n, tl_value v, tl_value *pair)
{
    tl_value u = tl_empty(), y = tl_empty(), g = tl_empty(), s = tl_empty();
    tl_value grads[MAX_ARGS];
    size_t ngrads = 0;
    uint64_t draws = ev->rt->draws;
    dcall d;
    tl_status st;

    TL_TRY(tl_eval_call_values(ev, f, xs, n, &pair[0]));
    st = zeros_of(ev, pair[0], &u);
    if (st != TL_OK) {
        goto out;
    }
    st = dcall_begin(ev, &d, &u, 1);
    if (st == TL_OK) {
        ev->rt->draws = draws;
        st = value_and_grads(ev, f, xs, n, d.leaves[0], false, &y, &g);
        if (st == TL_OK) {
            st = dot_all(ev, g, v, &s);
        }
        dcall_close(ev, &d);
    }
    if (st == TL_OK) {
        st = dcall_grads(ev, &d, s, tl_none(), grads, &ngrads);
        pair[1] = st == TL_OK ? grads[0] : tl_empty();
    }
    dcall_fini(&d);
out:
    tl_unref(u);
    tl_unref(y);
    tl_unref(g);
    tl_unref(s);
    if (st != TL_OK) {
        tl_drop(&pair[0]);
    }
    return st;
}

/* A tangent has the shape of its argument. */
static tl_status check_tangent(tl_eval *ev, tl_value x, tl_value v)
{
    tl_ttype a, b;

    if (v.tag == TL_V_UNKNOWN) {
        return TL_OK;
    }
    if (!tl_is_tensor(v)) {
        return tl_fail(ev->diag, TL_E0210,
                       "a tangent is a tensor like its argument, got %s",
                       tl_value_type_str(v).s);
    }
    TL_TRY(tl_eval_type(ev, x, &a));
    TL_TRY(tl_eval_type(ev, v, &b));
    bool same = a.shape.rank == b.shape.rank;

    for (int i = 0; same && i < a.shape.rank; i++) {
        tl_dim p = a.shape.dim[i], q = b.shape.dim[i];

        same = !tl_dim_is_num(p) || !tl_dim_is_num(q) || tl_dim_same(p, q);
    }
    return same ? TL_OK
                : tl_fail(ev->diag, TL_E0312,
                          "the tangent is %s, but the argument is %s",
                          tl_ttype_str(&b).s, tl_ttype_str(&a).s);
}

/* The tangents of the float tensors among the arguments, as gradients are
 * packed: one as it is, several as a tuple.  They stand as they are, or in one
 * tuple. */
static tl_status tangents_of(tl_eval *ev, const tl_value *xs, size_t n,
                             const tl_value *vs, size_t nvs, tl_value *out)
{
    tl_value kept[MAX_ARGS];
    size_t nkept = 0;

    if (nvs == 1 && vs[0].tag == TL_V_UNKNOWN) {
        *out = tl_unknown();
        return TL_OK;
    }
    if (nvs == 1 && vs[0].tag == TL_V_TUPLE) {
        nvs = vs[0].seq->len;
        vs = vs[0].seq->items;
    }
    if (n > MAX_ARGS) {
        return tl_fail(ev->diag, TL_E0203, "more than %d arguments",
                       MAX_ARGS);
    }
    if (nvs != n) {
        return tl_fail(ev->diag, TL_E0203,
                       "%zu tangents for %zu arguments: each needs one", nvs,
                       n);
    }
    for (size_t i = 0; i < n; i++) {
        if (tl_is_float_tensor(xs[i])) {
            TL_TRY(check_tangent(ev, xs[i], vs[i]));
            kept[nkept++] = vs[i];
        }
    }
    for (size_t i = 0; i < nkept; i++) {
        kept[i] = tl_ref(kept[i]);
    }
    if (nkept == 1) {
        *out = kept[0];
        return TL_OK;
    }
    return tl_seq_new_take(out, TL_V_TUPLE, kept, nkept, ev->diag);
}

tl_status tl_bi_jvp(tl_eval *ev, const tl_builtin *self, tl_value *args,
                    tl_value *out)
{
    const tl_seq *rest = args[1].seq;
    tl_value pair[2];
    size_t n = rest->len;

    (void)self;
    if (n < 2 || n % 2 != 0) {
        n = rest->len > 0 ? rest->len - 1 : 0;
    } else if (rest->items[n - 1].tag == TL_V_TUPLE) {
        n = n - 1;
    } else {
        n = n / 2; /* x, v or x1, x2, v1, v2 */
    }
    if (n == 0) {
        return tl_fail(ev->diag, TL_E0204,
                       "jvp(f, x..., v...) needs arguments and tangents");
    }
    tl_value v = tl_empty();

    TL_TRY(tangents_of(ev, rest->items, n, rest->items + n, rest->len - n,
                       &v));
    tl_status st;

    if (is_taped(ev)) {
        st = jvp_taped(ev, args[0], rest->items, n, v, pair);
    } else {
        st = tl_eval_call_values(ev, args[0], rest->items, n, &pair[0]);
        pair[1] = st == TL_OK ? tl_ref(pair[0]) : tl_empty();
    }
    tl_unref(v);
    return st != TL_OK ? st
                       : tl_seq_new_take(out, TL_V_TUPLE, pair, 2, ev->diag);
}

/* ---- hessian ----------------------------------------------------------- */

/* Row i: the gradient of element i of the gradient. */
static tl_status hessian_row(tl_eval *ev, tl_value f, tl_value x, int64_t i,
                             int64_t n, tl_value *out)
{
    tl_value y = tl_empty(), g = tl_empty(), e = tl_empty();
    tl_value grads[MAX_ARGS], flat;
    size_t ngrads = 0;
    tl_attrs at;
    dcall d;
    tl_status st = dcall_begin(ev, &d, &x, 1);

    if (st == TL_OK) {
        st = value_and_grads(ev, f, d.leaves, 1, tl_none(), true, &y, &g);
        if (st == TL_OK) {
            tl_attrs_init(&at);
            at.ndims = 1;
            at.dims[0] = tl_dim_num(n);
            flat = tl_ref(g);
            st = tl_eval_op(ev, TL_OP_reshape, &flat, 1, &at, &e);
        }
        if (st == TL_OK) {
            tl_value at_i = tl_int_value(i), e_all = e;

            e = tl_empty();
            st = tl_eval_index_take(ev, e_all, &at_i, 1, &e);
        }
        dcall_close(ev, &d);
    }
    if (st == TL_OK) {
        st = dcall_grads(ev, &d, e, tl_none(), grads, &ngrads);
        *out = st == TL_OK ? grads[0] : tl_empty();
    }
    dcall_fini(&d);
    tl_unref(y);
    tl_unref(g);
    tl_unref(e);
    return st;
}

tl_status tl_bi_hessian(tl_eval *ev, const tl_builtin *self, tl_value *args,
                        tl_value *out)
{
    (void)self;
    return bound(ev, "hessian.at", tl_ref(args[0]), out);
}

/* Sizes of x, twice. */
static void double_sizes(const tl_ttype *x, tl_attrs *at)
{
    int rank = x->shape.rank;

    tl_attrs_init(at);
    at->ndims = (uint16_t)(2 * rank);
    at->dtype = (uint8_t)x->dtype;
    for (int i = 0; i < 2 * rank; i++) {
        at->dims[i] = x->shape.dim[i % rank];
    }
}

tl_status tl_bi_hessian_at(tl_eval *ev, const tl_builtin *self,
                           tl_value *args, tl_value *out)
{
    tl_value x = args[1], rows = tl_empty();
    tl_ttype type;
    int64_t n = 0;
    tl_attrs at;

    (void)self;
    if (!tl_is_float_tensor(x)) {
        return tl_fail(ev->diag, TL_E0502,
                       "the argument must be a float tensor, got %s",
                       tl_value_type_str(x).s);
    }
    TL_TRY(tl_eval_type(ev, x, &type));
    if (2 * type.shape.rank > TL_MAX_RANK) {
        return tl_fail(ev->diag, TL_E0316,
                       "the result would have more than %d axes",
                       TL_MAX_RANK);
    }
    double_sizes(&type, &at);
    if (!is_taped(ev)) {
        return tl_eval_op(ev, TL_OP_full, NULL, 0, &at, out);
    }
    TL_TRY(tl_shape_numel(&type.shape, &n, ev->diag));
    if (n == 0) {
        return tl_eval_op(ev, TL_OP_full, NULL, 0, &at, out);
    }
    TL_TRY(tl_seq_new_take(&rows, TL_V_LIST, NULL, 0, ev->diag));
    tl_status st = TL_OK;

    for (int64_t i = 0; i < n && st == TL_OK; i++) {
        tl_value row = tl_empty();
        uint64_t draws = ev->rt->draws;

        st = hessian_row(ev, args[0], x, i, n, &row);
        if (i + 1 < n) {
            ev->rt->draws = draws;
        }
        if (st == TL_OK) {
            tl_attrs one;

            tl_attrs_init(&one);
            one.ndims = 1;
            one.dims[0] = tl_dim_num(n);
            st = tl_eval_op(ev, TL_OP_reshape, &row, 1, &one, &row);
        }
        if (st == TL_OK) {
            st = tl_list_push_take(rows.seq, row, ev->diag);
        }
    }
    if (st == TL_OK) {
        tl_attrs join;

        tl_attrs_init(&join);
        st = tl_eval_op(ev, TL_OP_cat, rows.seq->items, (int)n, &join, out);
        rows.seq->len = 0; /* eaten */
        if (st == TL_OK) {
            st = tl_eval_op(ev, TL_OP_reshape, out, 1, &at, out);
        }
    }
    tl_unref(rows);
    return st;
}

/* ---- stop, seed, contexts ---------------------------------------------- */

/* The value itself, unknown to every tape. */
static tl_status stop_value(tl_eval *ev, tl_value v, tl_value *out)
{
    if (!tl_is_tensor(v) || ev->domain->stop == NULL) {
        *out = tl_ref(v);
        return TL_OK;
    }
    return ev->domain->stop(ev, v, out);
}

tl_status tl_bi_stop(tl_eval *ev, const tl_builtin *self, tl_value *args,
                     tl_value *out)
{
    tl_value v = args[0];

    (void)self;
    if (v.tag != TL_V_TREE) {
        return stop_value(ev, v, out);
    }
    tl_value list = tl_empty();
    tl_status st = tl_seq_new_take(&list, TL_V_LIST, NULL, 0, ev->diag);

    for (size_t i = 0; i < v.tree->shape->len && st == TL_OK; i++) {
        tl_value item = tl_empty();

        st = stop_value(ev, v.tree->items[i], &item);
        if (st == TL_OK) {
            st = tl_list_push_take(list.seq, item, ev->diag);
        }
    }
    if (st == TL_OK) {
        st = tl_tree_new_take(out, v.tree->shape, list.seq->items, ev->diag);
        list.seq->len = 0;
    }
    tl_unref(list);
    return st;
}

tl_status tl_bi_seed(tl_eval *ev, const tl_builtin *self, tl_value *args,
                     tl_value *out)
{
    (void)self;
    if (args[0].i < 0) {
        return tl_fail(ev->diag, TL_E0514, "seed must be 0..2^64-1, got %lld",
                       (long long)args[0].i);
    }
    if (tl_is_tracing(ev)) {
        tl_status st = tl_trace_refuse(ev, "it sets the seed");

        tl_diag_help(ev->diag, "call `seed` before the compiled function");
        return st;
    }
    if (ev->domain->has_data) {
        tl_rt_seed(ev->rt, (uint64_t)args[0].i);
    }
    *out = tl_none();
    return TL_OK;
}

/* autocast(bf16), autocast(none) */
tl_status tl_bi_autocast(tl_eval *ev, const tl_builtin *self, tl_value *args,
                         tl_value *out)
{
    tl_dtype low = args[0].tag == TL_V_DTYPE ? args[0].dtype : TL_bf16;

    (void)self;
    if (low != TL_bf16 && low != TL_f16) {
        tl_status st = tl_fail(ev->diag, TL_E0416,
                               "autocast stores as bf16 or f16, got %s",
                               tl_dtype_name(low));

        tl_diag_help(ev->diag, "`autocast(none)` computes in f32 inside of "
                               "another autocast");
        return st;
    }
    TL_TRY(tl_context_new_take(ev, TL_CONTEXT_AUTOCAST, tl_empty(), out));
    out->context->on = args[0].tag == TL_V_DTYPE;
    out->context->dtype = low;
    return TL_OK;
}

/* mode("eval", net, ...) */
tl_status tl_bi_mode(tl_eval *ev, const tl_builtin *self, tl_value *args,
                     tl_value *out)
{
    const char *name = args[0].str->data;
    bool eval = strcmp(name, "eval") == 0;

    (void)self;
    if (!eval && strcmp(name, "train") != 0) {
        tl_status st = tl_fail(ev->diag, TL_E0416,
                               "the mode must be \"eval\" or \"train\", got "
                               "\"%s\"",
                               name);

        return st;
    }
    TL_TRY(tl_context_new_take(ev, TL_CONTEXT_MODE, tl_ref(args[1]), out));
    out->context->eval = eval;
    return TL_OK;
}

tl_status tl_bi_device(tl_eval *ev, const tl_builtin *self, tl_value *args,
                       tl_value *out)
{
    (void)self;
    if (strcmp(args[0].str->data, "cpu") != 0 &&
        strcmp(args[0].str->data, "auto") != 0) {
        return tl_fail(ev->diag, TL_E0605, "no device %s; have cpu",
                       args[0].str->data);
    }
    return tl_context_new_take(ev, TL_CONTEXT_DEVICE, tl_ref(args[0]), out);
}

/* breakpoint(): the prompt in this frame. */
tl_status tl_bi_breakpoint(tl_eval *ev, const tl_builtin *self,
                           tl_value *args, tl_value *out)
{
    (void)self;
    (void)args;
    *out = tl_none();
    return ev->on_breakpoint != NULL && ev->domain->has_data
               ? ev->on_breakpoint(ev->breakpoint_arg, ev)
               : TL_OK;
}
