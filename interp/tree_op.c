/* tree_op.c - operations on whole trees: map, arithmetic, norm, clipping.
 *
 * Each works leaf by leaf in the order of the paths, in whatever domain runs,
 * and joins the finite flags of its operands. */
#include "interp/tree.h"

#include <math.h>
#include <string.h>

#include "interp/trace.h"
#include "runtime/base/mem.h"

/* ---- flags ------------------------------------------------------------- */

tl_status tl_tree_join_flag(tl_eval *ev, tl_tree *to, const tl_tree *from)
{
    tl_value in[2], both;

    if (to->scaler.tag == TL_V_EMPTY) {
        to->scaler = tl_ref(from->scaler);
    }
    if (from->finite.tag == TL_V_EMPTY || to == from) {
        return TL_OK;
    }
    if (to->finite.tag == TL_V_EMPTY) {
        to->finite = tl_ref(from->finite);
        return TL_OK;
    }
    in[0] = tl_ref(to->finite);
    in[1] = tl_ref(from->finite);
    TL_TRY(tl_eval_op(ev, TL_OP_and, in, 2, NULL, &both));
    tl_unref(to->finite);
    to->finite = both;
    return TL_OK;
}

/* From now on the values are not to be used. */
static tl_status mark_not_finite(tl_eval *ev, tl_tree *tree)
{
    tl_attrs at;
    tl_value flag;

    tl_attrs_init(&at);
    at.dtype = TL_bool;
    TL_TRY(tl_eval_op(ev, TL_OP_full, NULL, 0, &at, &flag));
    tl_unref(tree->finite);
    tree->finite = flag;
    return TL_OK;
}

/* E0512 for operands of `what`. */
static tl_status different(tl_eval *ev, const tl_tree_shape *a,
                           const tl_tree_shape *b, const char *what)
{
    for (size_t i = 0; i < a->len && i < b->len; i++) {
        if (strcmp(a->paths[i]->data, b->paths[i]->data) != 0) {
            return tl_fail(ev->diag, TL_E0512,
                           "%s: one tree has `%s` where the other has `%s`",
                           what, a->paths[i]->data, b->paths[i]->data);
        }
    }
    return tl_fail(ev->diag, TL_E0512,
                   "%s: one tree has %zu values, the other %zu", what, a->len,
                   b->len);
}

/* ---- map --------------------------------------------------------------- */

/* Results of the calls: one row a leaf, `width` columns (1: no tuples). */
typedef struct results {
    tl_value *items;
    size_t width, n; /* n leaves are there */
    bool tuples;
} results;

/* What f gave for one leaf goes to row `i`; eaten. */
static tl_status store_result(tl_eval *ev, results *r, const char *path,
                              tl_value v, size_t len)
{
    size_t width = v.tag == TL_V_TUPLE ? v.seq->len : 1;
    tl_status st = TL_OK;

    if (!r->items) {
        r->tuples = v.tag == TL_V_TUPLE;
        r->width = width;
        r->items = tl_calloc(width ? width * len : 1, sizeof(tl_value));
        if (!r->items) {
            tl_unref(v);
            return tl_fail_memory(ev->diag, "a tree", len * sizeof(tl_value));
        }
    }
    if (r->tuples != (v.tag == TL_V_TUPLE) || r->width != width) {
        st = tl_fail(ev->diag, TL_E0512,
                     "map: the function gave another number of values for "
                     "`%s`",
                     path);
        tl_unref(v);
        return st;
    }
    for (size_t k = 0; k < width && st == TL_OK; k++) {
        tl_value x = r->tuples ? tl_ref(v.seq->items[k]) : v;

        if (x.tag == TL_V_UNKNOWN) {
            r->items[k * len + r->n] = x;
        } else if (tl_is_tensor(x) || tl_is_any_number(x)) {
            st = tl_eval_as_tensor_take(ev, x, &r->items[k * len + r->n]);
        } else {
            st = tl_fail(ev->diag, TL_E0210,
                         "map: the function gave %s for `%s`, not a tensor",
                         tl_value_type_str(x).s, path);
            tl_unref(x);
        }
    }
    if (r->tuples) {
        tl_unref(v);
    }
    r->n += st == TL_OK;
    return st;
}

static void results_fini(results *r, size_t len)
{
    for (size_t i = 0; r->items && i < r->width * len; i++) {
        if (r->items[i].tag != TL_V_NONE) {
            tl_unref(r->items[i]);
        }
    }
    tl_free(r->items);
}

static tl_status call_leaf(tl_eval *ev, tl_value fn, const tl_value *trees,
                           size_t n, tl_value *args, size_t i, tl_value *out)
{
    for (size_t k = 0; k < n; k++) { /* borrowed */
        args[k] =
            trees[k].tag == TL_V_TREE ? trees[k].tree->items[i] : trees[k];
    }
    return tl_eval_call_values(ev, fn, args, n, out);
}

static tl_status check_operands(tl_eval *ev, const tl_value *trees, size_t n,
                                const tl_tree_shape *shape)
{
    for (size_t k = 0; k < n; k++) {
        if (trees[k].tag == TL_V_TREE) {
            if (!tl_tree_shape_same(trees[k].tree->shape, shape)) {
                return different(ev, shape, trees[k].tree->shape, "map");
            }
        } else if (!tl_is_tensor(trees[k]) && !tl_is_any_number(trees[k]) &&
                   trees[k].tag != TL_V_UNKNOWN) {
            return tl_fail(ev->diag, TL_E0210,
                           "map over trees takes trees, tensors and numbers, "
                           "got %s",
                           tl_value_type_str(trees[k]).s);
        }
    }
    return TL_OK;
}

/* Column `k` as a tree with the flags of all operands. */
static tl_status column(tl_eval *ev, results *r, size_t k,
                        tl_tree_shape *shape, const tl_value *trees, size_t n,
                        tl_value *out)
{
    tl_value *items = r->items + k * shape->len, tree;
    tl_status st = tl_tree_new_take(&tree, shape, items, ev->diag);

    for (size_t i = 0; i < shape->len; i++) {
        items[i] = tl_none();
    }
    for (size_t i = 0; i < n && st == TL_OK; i++) {
        if (trees[i].tag == TL_V_TREE) {
            st = tl_tree_join_flag(ev, tree.tree, trees[i].tree);
            if (st != TL_OK) {
                tl_unref(tree);
            }
        }
    }
    if (st == TL_OK) {
        *out = tree;
    }
    return st;
}

static tl_status columns(tl_eval *ev, results *r, tl_tree_shape *shape,
                         const tl_value *trees, size_t n, tl_value *out)
{
    tl_value *made;
    tl_status st = TL_OK;
    size_t k = 0;

    if (!r->tuples) {
        return column(ev, r, 0, shape, trees, n, out);
    }
    made = tl_calloc(r->width ? r->width : 1, sizeof(*made));
    if (!made) {
        return tl_fail_memory(ev->diag, "trees", r->width * sizeof(*made));
    }
    while (k < r->width && st == TL_OK) {
        st = column(ev, r, k, shape, trees, n, &made[k]);
        k += st == TL_OK;
    }
    if (st == TL_OK) {
        st = tl_seq_new_take(out, TL_V_TUPLE, made, k, ev->diag);
    } else {
        tl_unref_all(made, k);
    }
    tl_free(made);
    return st;
}

tl_status tl_tree_map(tl_eval *ev, tl_value fn, const tl_value *trees,
                      size_t n, tl_value *out)
{
    tl_tree_shape *shape = trees[0].tree->shape;
    tl_value *args = NULL, v;
    results r = {0};
    tl_status st;

    TL_TRY(check_operands(ev, trees, n, shape));
    if (shape->len == 0) {
        *out = tl_ref(trees[0]);
        return TL_OK;
    }
    args = tl_calloc(n, sizeof(*args));
    if (!args) {
        return tl_fail_memory(ev->diag, "map", n * sizeof(*args));
    }
    for (size_t i = 0; i < shape->len; i++) {
        const char *path = shape->paths[i]->data;

        st = call_leaf(ev, fn, trees, n, args, i, &v);
        if (st != TL_OK) {
            tl_diag_note(ev->diag, "map at `%s`", path);
            goto out;
        }
        TL_GOTO(st, store_result(ev, &r, path, v, shape->len));
    }
    st = columns(ev, &r, shape, trees, n, out);
out:
    results_fini(&r, shape->len);
    tl_free(args);
    return st;
}

/* ---- arithmetic -------------------------------------------------------- */

static bool is_scalar(tl_eval *ev, tl_value v)
{
    tl_ttype type;

    if (tl_is_any_number(v) || v.tag == TL_V_UNKNOWN) {
        return true;
    }
    return tl_is_tensor(v) && tl_eval_type(ev, v, &type) == TL_OK &&
           type.shape.rank == 0;
}

/* The gradient of a single cell is a tensor of the type of its tree's value. */
static bool is_single_leaf(tl_eval *ev, const tl_tree *tree, tl_value v)
{
    tl_ttype a, b;

    return tree->shape->len == 1 && tl_is_tensor(v) &&
           tl_is_tensor(tree->items[0]) && tl_eval_type(ev, v, &a) == TL_OK &&
           tl_eval_type(ev, tree->items[0], &b) == TL_OK &&
           tl_shape_same(&a.shape, &b.shape);
}

static tl_status check_binary(tl_eval *ev, tl_oper op, tl_value a, tl_value b)
{
    tl_value other = a.tag == TL_V_TREE ? b : a;

    if (op != TL_OP_ADD && op != TL_OP_SUB && op != TL_OP_MUL &&
        op != TL_OP_DIV) {
        return tl_fail(ev->diag, TL_E0207,
                       "trees have + - * and /, not this operator");
    }
    if (a.tag == TL_V_TREE && b.tag == TL_V_TREE) {
        return tl_tree_shape_same(a.tree->shape, b.tree->shape)
                   ? TL_OK
                   : different(ev, a.tree->shape, b.tree->shape,
                               tl_op_text(op));
    }
    if (is_single_leaf(ev, a.tag == TL_V_TREE ? a.tree : b.tree, other)) {
        return TL_OK;
    }
    if (!is_scalar(ev, other)) {
        return tl_fail(ev->diag, TL_E0207,
                       "a tree goes with trees, numbers and scalar tensors, "
                       "got %s",
                       tl_value_type_str(other).s);
    }
    return TL_OK;
}

/* Operand for leaf `i`: moved out of a tree that nobody else sees, so that
 * the operation may write in place. */
static tl_value operand(tl_value v, size_t i)
{
    tl_value leaf;

    if (v.tag != TL_V_TREE) {
        return tl_ref(v);
    }
    leaf = v.tree->items[i];
    if (tl_unshared(v)) {
        v.tree->items[i] = tl_empty();
        return leaf;
    }
    return tl_ref(leaf);
}

static bool divides_by_zero(tl_oper op, tl_value b)
{
    return op == TL_OP_DIV && tl_is_number(b) && tl_number_f(b) == 0.0;
}

static tl_status binary_leaf(tl_eval *ev, tl_oper op, tl_value a, tl_value b,
                             size_t i, tl_value *out)
{
    if (divides_by_zero(op, b)) { /* a host zero: an error only on numbers */
        b = tl_float_value(0.0);
    }
    return tl_eval_binary_take(ev, op, operand(a, i), operand(b, i), out);
}

static tl_status binary(tl_eval *ev, tl_oper op, tl_value a, tl_value b,
                        tl_value *out)
{
    tl_tree_shape *shape = a.tag == TL_V_TREE ? a.tree->shape : b.tree->shape;
    size_t len = shape->len, n = 0;
    tl_value *items, tree;
    tl_status st;

    TL_TRY(check_binary(ev, op, a, b));
    items = tl_calloc(len ? len : 1, sizeof(*items));
    if (!items) {
        return tl_fail_memory(ev->diag, "a tree", len * sizeof(*items));
    }
    for (st = TL_OK; n < len && st == TL_OK; n += st == TL_OK) {
        st = binary_leaf(ev, op, a, b, n, &items[n]);
        if (st != TL_OK) {
            tl_diag_note(ev->diag, "at `%s`", shape->paths[n]->data);
        }
    }
    if (st == TL_OK) {
        st = tl_tree_new_take(&tree, shape, items, ev->diag);
    } else {
        tl_unref_all(items, n);
    }
    tl_free(items);
    TL_TRY(st);
    for (int k = 0; k < 2 && st == TL_OK; k++) {
        tl_value v = k == 0 ? a : b;

        if (v.tag == TL_V_TREE) {
            st = tl_tree_join_flag(ev, tree.tree, v.tree);
        }
    }
    if (st == TL_OK && divides_by_zero(op, b)) {
        st = mark_not_finite(ev, tree.tree);
    }
    if (st != TL_OK) {
        tl_unref(tree);
        return st;
    }
    *out = tree;
    return TL_OK;
}

tl_status tl_tree_binary_take(tl_eval *ev, tl_oper op, tl_value a, tl_value b,
                              tl_value *out)
{
    tl_status st = binary(ev, op, a, b, out);

    tl_unref(a);
    tl_unref(b);
    return st;
}

tl_status tl_tree_unary_take(tl_eval *ev, tl_oper op, tl_value a,
                             tl_value *out)
{
    if (op == TL_OP_POS) {
        *out = a;
        return TL_OK;
    }
    if (op != TL_OP_NEG) {
        tl_unref(a);
        return tl_fail(ev->diag, TL_E0207, "`not` is not defined for a tree");
    }
    return tl_tree_binary_take(ev, TL_OP_MUL, a, tl_int_value(-1), out);
}

/* ---- norm -------------------------------------------------------------- */

static tl_status cast(tl_eval *ev, tl_value v, tl_dtype dtype, tl_value *out)
{
    tl_attrs at;

    tl_attrs_init(&at);
    at.dtype = (uint8_t)dtype;
    return tl_eval_op(ev, TL_OP_cast, &v, 1, &at, out);
}

/* Norm of a leaf, f64[]. */
static tl_status leaf_norm(tl_eval *ev, tl_value leaf, tl_value *out)
{
    tl_attrs at;
    tl_ttype type;
    tl_value n, x;

    TL_TRY(tl_eval_type(ev, leaf, &type));
    x = tl_ref(leaf);
    if (type.dtype != TL_f32 && type.dtype != TL_f64) {
        TL_TRY(cast(ev, x, TL_f32, &x));
    }
    tl_attrs_init(&at);
    at.axes = (uint16_t)((1u << type.shape.rank) - 1);
    at.flag = true;
    TL_TRY(tl_eval_op(ev, TL_OP_norm, &x, 1, &at, &n));
    return cast(ev, n, TL_f64, out);
}

/* sqrt(x), whose gradient at 0 is 0. */
static tl_status safe_sqrt_take(tl_eval *ev, tl_value x, tl_value *out)
{
    tl_value zero, in[3], one;
    tl_status st;

    st = tl_eval_binary_take(ev, TL_OP_EQ, tl_ref(x), tl_int_value(0), &zero);
    if (st != TL_OK) {
        tl_unref(x);
        return st;
    }
    in[0] = tl_ref(zero);
    in[1] = tl_float_value(1.0);
    in[2] = tl_ref(x);
    TL_GOTO(st, tl_eval_op(ev, TL_OP_where, in, 3, NULL, &one));
    TL_GOTO(st, tl_eval_op(ev, TL_OP_sqrt, &one, 1, NULL, &in[2]));
    in[0] = tl_ref(zero);
    in[1] = tl_ref(x);
    st = tl_eval_op(ev, TL_OP_where, in, 3, NULL, out);
out:
    tl_unref(zero);
    tl_unref(x);
    return st;
}

/* The norm as f64[]; *dtype is that of the result of norm(). */
static tl_status norm_f64(tl_eval *ev, const tl_tree *tree, tl_value *out,
                          tl_dtype *dtype)
{
    tl_value sum = tl_empty(), n, square;
    tl_attrs at;

    *dtype = TL_f32;
    for (size_t i = 0; i < tree->shape->len; i++) {
        tl_ttype type;
        tl_status st;

        st = tl_eval_type(ev, tree->items[i], &type);
        if (st == TL_OK) {
            *dtype = type.dtype == TL_f64 ? TL_f64 : *dtype;
            st = leaf_norm(ev, tree->items[i], &n);
        }
        if (st == TL_OK) {
            st = tl_eval_op(ev, TL_OP_square, &n, 1, NULL, &square);
        }
        if (st == TL_OK && sum.tag != TL_V_EMPTY) {
            st = tl_eval_binary_take(ev, TL_OP_ADD, sum, square, &square);
            sum = tl_empty();
        }
        if (st != TL_OK) {
            tl_unref(sum);
            return st;
        }
        sum = square;
    }
    if (sum.tag == TL_V_EMPTY) { /* an empty tree */
        tl_attrs_init(&at);
        at.dtype = TL_f64;
        return tl_eval_op(ev, TL_OP_full, NULL, 0, &at, out);
    }
    return safe_sqrt_take(ev, sum, out);
}

static bool has_unknown(const tl_tree *tree)
{
    for (size_t i = 0; i < tree->shape->len; i++) {
        if (tree->items[i].tag == TL_V_UNKNOWN) {
            return true;
        }
    }
    return false;
}

tl_status tl_tree_norm(tl_eval *ev, const tl_tree *tree, tl_value *out)
{
    tl_dtype dtype;
    tl_value n;

    if (has_unknown(tree)) {
        *out = tl_unknown();
        return TL_OK;
    }
    TL_TRY(norm_f64(ev, tree, &n, &dtype));
    if (dtype == TL_f64) {
        *out = n;
        return TL_OK;
    }
    return cast(ev, n, dtype, out);
}

/* ---- clipping ---------------------------------------------------------- */

/* E0509, with the first leaf whose norm is not finite. */
static tl_status norm_not_finite(tl_eval *ev, const tl_tree *tree,
                                 double norm)
{
    const char *text = isnan(norm) ? "nan" : "inf";

    for (size_t i = 0; i < tree->shape->len; i++) {
        tl_value n, host;
        tl_status st;

        TL_TRY(leaf_norm(ev, tree->items[i], &n));
        st = tl_eval_read(ev, n, &host);
        tl_unref(n);
        TL_TRY(st);
        if (host.tag == TL_V_FLOAT && !isfinite(host.f)) {
            return tl_fail(ev->diag, TL_E0509,
                           "the gradient norm is %s, first in `%s`", text,
                           tree->shape->paths[i]->data);
        }
    }
    return tl_fail(ev->diag, TL_E0509, "the gradient norm is %s", text);
}

/* The run of a compiled function stops where the norm is not finite. */
static tl_status assert_finite(tl_eval *ev, tl_value norm)
{
    tl_value in = tl_ref(norm), finite;
    bool done;

    TL_TRY(tl_eval_op(ev, TL_OP_isfinite, &in, 1, NULL, &finite));
    tl_status st = tl_trace_assert(ev, finite, &done);

    tl_unref(finite);
    return st;
}

/* min(1, max / (norm + 1e-6)) where the norm is not known yet; 1 where the
 * flag is false.  Eats `norm`. */
static tl_status coefficient_take(tl_eval *ev, tl_value norm, double max,
                                  tl_value flag, tl_dtype dtype,
                                  tl_value *out)
{
    tl_value c, in[3];

    TL_TRY(
        tl_eval_binary_take(ev, TL_OP_ADD, norm, tl_float_value(1e-6), &c));
    TL_TRY(tl_eval_binary_take(ev, TL_OP_DIV, tl_float_value(max), c, &c));
    in[0] = c;
    in[1] = tl_float_value(1.0);
    TL_TRY(tl_eval_op(ev, TL_OP_minimum, in, 2, NULL, &c));
    if (flag.tag != TL_V_EMPTY) {
        in[0] = tl_ref(flag);
        in[1] = c;
        in[2] = tl_float_value(1.0);
        TL_TRY(tl_eval_op(ev, TL_OP_where, in, 3, NULL, &c));
    }
    return cast(ev, c, dtype, out);
}

static tl_status clip_tree(tl_eval *ev, tl_value tree, double max,
                           tl_value *out)
{
    const tl_tree *t = tree.tree;
    tl_value norm, host, c;
    tl_dtype dtype;
    tl_status st;

    if (has_unknown(t)) {
        *out = tl_ref(tree);
        return TL_OK;
    }
    TL_TRY(norm_f64(ev, t, &norm, &dtype));
    if (tl_is_tracing(ev) && t->finite.tag == TL_V_EMPTY) {
        st = assert_finite(ev, norm);
        if (st != TL_OK) {
            tl_unref(norm);
            return st;
        }
    }
    if (!ev->domain->has_data) {
        TL_TRY(coefficient_take(ev, norm, max, t->finite, dtype, &c));
        return tl_tree_binary_take(ev, TL_OP_MUL, tl_ref(tree), c, out);
    }
    st = tl_eval_read(ev, norm, &host);
    tl_unref(norm);
    TL_TRY(st);
    if (!isfinite(host.f)) {
        if (t->finite.tag == TL_V_EMPTY) {
            return norm_not_finite(ev, t, host.f);
        }
        *out = tl_ref(tree);
        return TL_OK;
    }
    c = tl_float_value(fmin(1.0, max / (host.f + 1e-6)));
    return tl_tree_binary_take(ev, TL_OP_MUL, tl_ref(tree), c, out);
}

/* A tensor as the tree of one value. */
static tl_status single(tl_eval *ev, tl_value t, tl_value *out)
{
    tl_tree_shape *shape;
    tl_value path;
    tl_status st;

    TL_TRY(tl_str_new(&path, "gradient", 8, ev->diag));
    st = tl_tree_shape_new(&shape, &path.str, 1, ev->diag);
    tl_unref(path);
    TL_TRY(st);
    t = tl_ref(t);
    st = tl_tree_new_take(out, shape, &t, ev->diag);
    tl_tree_shape_unref(shape);
    return st;
}

tl_status tl_tree_clip_norm(tl_eval *ev, tl_value tree, double max,
                            tl_value *out)
{
    tl_value one, clipped;
    tl_status st;

    if (tree.tag == TL_V_TREE) {
        return clip_tree(ev, tree, max, out);
    }
    TL_TRY(single(ev, tree, &one));
    st = clip_tree(ev, one, max, &clipped);
    tl_unref(one);
    TL_TRY(st);
    *out = tl_ref(clipped.tree->items[0]);
    tl_unref(clipped);
    return TL_OK;
}
