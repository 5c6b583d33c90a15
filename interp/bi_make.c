/* bi_make.c - tensors from numbers, lists, sizes and random draws. */
#include <math.h>

#include "interp/bi_tensor.h"
#include "interp/builtin_fns.h"
#include "interp/domain.h"
#include "interp/tree.h"
#include "interp/sym.h"
#include "runtime/base/size.h"

/* ---- nested lists ------------------------------------------------------ */

/* What tensor([[...]]) finds on its way down. */
typedef struct nest {
    int rank;
    int64_t size[TL_MAX_RANK];
    tl_kind kind;   /* of the numbers */
    bool tensors;   /* items are tensors: they are stacked */
    bool unknown;
} nest;

static bool is_nested(tl_value v)
{
    return v.tag == TL_V_LIST || v.tag == TL_V_TUPLE;
}

static tl_status ragged(tl_eval *ev, int depth, size_t got, int64_t want)
{
    return tl_fail(ev->diag, TL_E0324,
                   "rows of a nested list differ: axis %d has %lld items in "
                   "one and %zu in another",
                   depth, (long long)want, got);
}

static tl_status measure(tl_eval *ev, tl_value v, int depth, nest *n)
{
    if (is_nested(v)) {
        if (depth == TL_MAX_RANK) {
            return tl_fail(ev->diag, TL_E0316, "more than %d dimensions",
                           TL_MAX_RANK);
        }
        if (n->rank >= 0 && depth >= n->rank) {
            return tl_fail(ev->diag, TL_E0324,
                           "a nested list holds a list where others hold a "
                           "number");
        }
        if (n->size[depth] >= 0 && (size_t)n->size[depth] != v.seq->len) {
            return ragged(ev, depth, v.seq->len, n->size[depth]);
        }
        n->size[depth] = (int64_t)v.seq->len;
        for (size_t i = 0; i < v.seq->len; i++) {
            TL_TRY(measure(ev, v.seq->items[i], depth + 1, n));
        }
        if (v.seq->len == 0 && n->rank < depth + 1) {
            n->rank = depth + 1;
        }
        return TL_OK;
    }
    if (n->rank >= 0 && n->rank != depth) {
        return tl_fail(ev->diag, TL_E0324,
                       "a nested list holds a number where others hold a "
                       "list");
    }
    n->rank = depth;
    if (v.tag == TL_V_UNKNOWN) {
        n->unknown = true;
    } else if (tl_is_tensor(v)) {
        n->tensors = true;
    } else if (tl_is_number(v)) {
        tl_kind k = v.tag == TL_V_FLOAT ? TL_KIND_FLOAT
                    : v.tag == TL_V_INT ? TL_KIND_INT
                                        : TL_KIND_BOOL;

        n->kind = k > n->kind ? k : n->kind;
    } else {
        return tl_fail(ev->diag, TL_E0210,
                       "a tensor is made of numbers, got %s",
                       tl_value_type_str(v).s);
    }
    return TL_OK;
}

/* The range of the integer dtypes, for E0319 and friends. */
static bool int_fits(tl_dtype d, int64_t i)
{
    switch (d) {
    case TL_bool:
        return i == 0 || i == 1;
    case TL_u8:
        return i >= 0 && i <= UINT8_MAX;
    case TL_i8:
        return i >= INT8_MIN && i <= INT8_MAX;
    case TL_i16:
        return i >= INT16_MIN && i <= INT16_MAX;
    case TL_i32:
        return i >= INT32_MIN && i <= INT32_MAX;
    default:
        return true;
    }
}

/* The integer or truth that number `v` is in dtype `d`.  E0319. */
static tl_status int_form(tl_eval *ev, tl_value v, tl_dtype d, int64_t *out)
{
    if (v.tag == TL_V_FLOAT && d != TL_bool) {
        if (!(fabs(v.f) < 9.2e18)) {
            return tl_fail(ev->diag, TL_E0319, "%g has no %s form", v.f,
                           tl_dtype_name(d));
        }
        v = tl_int_value((int64_t)v.f);
    }
    int64_t i = v.tag == TL_V_INT    ? v.i
                : v.tag == TL_V_BOOL ? v.b
                                     : v.f != 0;

    if (d == TL_bool) {
        i = i != 0;
    }
    if (!int_fits(d, i)) {
        return tl_fail(ev->diag, TL_E0319, "%lld has no %s form",
                       (long long)i, tl_dtype_name(d));
    }
    *out = i;
    return TL_OK;
}

static double float_form(tl_value v)
{
    return v.tag == TL_V_BOOL ? v.b : tl_number_f(v);
}

tl_status tl_fill_value(tl_eval *ev, tl_value v, tl_dtype d, tl_attrs *at)
{
    at->f[0] = float_form(v);
    at->i[0] = 0;
    if (tl_dtype_is_float(d)) {
        tl_eval_warn_inf(ev, at->f[0], d);
        return TL_OK;
    }
    return int_form(ev, v, d, &at->i[0]);
}

static tl_status put_number(tl_eval *ev, tl_tensor *t, int64_t at,
                            tl_value v)
{
    if (tl_dtype_is_float(t->dtype)) {
        tl_eval_warn_inf(ev, tl_number_f(v), t->dtype);
        tl_tensor_set_f(t, at, tl_number_f(v));
        return TL_OK;
    }
    int64_t i;

    TL_TRY(int_form(ev, v, t->dtype, &i));
    tl_tensor_set_i(t, at, i);
    return TL_OK;
}

static tl_status fill(tl_eval *ev, tl_tensor *t, tl_value v, int64_t *at)
{
    if (!is_nested(v)) {
        return put_number(ev, t, (*at)++, v);
    }
    for (size_t i = 0; i < v.seq->len; i++) {
        TL_TRY(fill(ev, t, v.seq->items[i], at));
    }
    return TL_OK;
}

/* A list with tensors in it: its items, made tensors, are stacked. */
static tl_status stack_items(tl_eval *ev, tl_value v, tl_value *out)
{
    tl_value list = tl_empty();
    tl_status st = tl_seq_new_take(&list, TL_V_LIST, NULL, 0, ev->diag);

    for (size_t i = 0; i < v.seq->len && st == TL_OK; i++) {
        tl_value item = tl_empty();

        st = tl_eval_as_tensor_take(ev, tl_ref(v.seq->items[i]), &item);
        if (st == TL_OK) {
            st = tl_do_unsqueeze(ev, item, 0, &item);
        }
        if (st == TL_OK) {
            st = tl_list_push_take(list.seq, item, ev->diag);
        }
    }
    if (st == TL_OK) {
        size_t n = list.seq->len;

        list.seq->len = 0;
        st = tl_do_cat(ev, list.seq->items, n, 0, out);
    }
    tl_unref(list);
    return st;
}

static tl_status from_list(tl_eval *ev, tl_value v, int dtype, tl_value *out)
{
    nest n = {.rank = -1, .kind = TL_KIND_BOOL};
    tl_tensor *t = NULL;
    int64_t at = 0;

    for (int i = 0; i < TL_MAX_RANK; i++) {
        n.size[i] = -1;
    }
    TL_TRY(measure(ev, v, 0, &n));
    if (n.unknown) {
        *out = tl_unknown();
        return TL_OK;
    }
    if (n.tensors) {
        return stack_items(ev, v, out);
    }
    int64_t numel = 1;

    for (int i = 0; i < n.rank; i++) {
        numel *= n.size[i];
    }
    tl_dtype d = dtype >= 0                ? (tl_dtype)dtype
                 : numel == 0              ? TL_f32
                 : n.kind == TL_KIND_BOOL  ? TL_bool
                 : n.kind == TL_KIND_INT   ? TL_i64
                                           : TL_f32;

    TL_TRY(tl_tensor_new(&t, ev->rt->pool, d, n.rank, n.size, ev->diag));
    tl_status st = fill(ev, t, v, &at);

    if (st != TL_OK) {
        tl_tensor_unref(t);
        return st;
    }
    *out = tl_tensor_value_take(t);
    return TL_OK;
}

tl_status tl_eval_as_tensor_take(tl_eval *ev, tl_value v, tl_value *out)
{
    tl_status st = TL_OK;

    if (tl_is_tensor(v) || v.tag == TL_V_UNKNOWN) {
        *out = v;
        return TL_OK;
    }
    if (tl_is_number(v)) {
        return tl_eval_scalar(ev, v,
                              v.tag == TL_V_BOOL  ? TL_bool
                              : v.tag == TL_V_INT ? TL_i64
                                                  : TL_f32,
                              out);
    }
    if (is_nested(v)) {
        st = from_list(ev, v, -1, out);
    } else {
        st = tl_fail(ev->diag, TL_E0210, "a tensor is needed here, got %s",
                     tl_value_type_str(v).s);
    }
    tl_unref(v);
    return st;
}

static tl_status cast_to(tl_eval *ev, tl_value v, tl_dtype dtype,
                         tl_value *out)
{
    tl_attrs at;

    tl_attrs_init(&at);
    at.dtype = (uint8_t)dtype;
    return tl_eval_op(ev, TL_OP_cast, &v, 1, &at, out);
}

tl_status tl_bi_tensor(tl_eval *ev, const tl_builtin *self, tl_value *args,
                       tl_value *out)
{
    int dtype = args[1].tag == TL_V_DTYPE ? (int)args[1].dtype : -1;
    tl_value v = tl_empty();

    (void)self;
    if (is_nested(args[0])) {
        TL_TRY(from_list(ev, args[0], dtype, &v));
    } else if (tl_is_number(args[0]) && dtype >= 0) {
        tl_tensor *t = NULL;

        TL_TRY(tl_tensor_new(&t, ev->rt->pool, (tl_dtype)dtype, 0, NULL,
                             ev->diag));
        v = tl_tensor_value_take(t);
        tl_status st = put_number(ev, t, 0, args[0]);

        if (st != TL_OK) {
            tl_unref(v);
            return st;
        }
    } else {
        TL_TRY(tl_arg_tensor(ev, args, 0, &v));
    }
    if (dtype >= 0 && v.tag != TL_V_UNKNOWN) { /* stacked tensors */
        return cast_to(ev, v, (tl_dtype)dtype, out);
    }
    *out = v;
    return TL_OK;
}

/* ---- sizes ------------------------------------------------------------- */

tl_status tl_arg_sizes(tl_eval *ev, tl_value sizes, int64_t least,
                       tl_attrs *at, bool *unknown)
{
    const tl_value *items = &sizes;
    size_t n = 1;

    *unknown = false;
    if (is_nested(sizes)) {
        items = sizes.seq->items;
        n = sizes.seq->len;
        if (n == 1 && is_nested(items[0])) {
            n = items[0].seq->len;
            items = items[0].seq->items;
        }
    }
    if (n > TL_MAX_RANK) {
        return tl_fail(ev->diag, TL_E0316, "more than %d dimensions",
                       TL_MAX_RANK);
    }
    at->ndims = (uint16_t)n;
    for (size_t i = 0; i < n; i++) {
        if (items[i].tag == TL_V_UNKNOWN) {
            *unknown = true;
            continue;
        }
        if (tl_is_sym(items[i]) && tl_number_tag(items[i]) == TL_V_INT) {
            tl_infer *infer = tl_eval_infer(ev);
            tl_dim d = items[i].sym->dim;
            bool fits;

            TL_TRY(tl_infer_answer(tl_infer_le(infer, tl_dim_num(least), d),
                                   &fits));
            if (!fits) {
                return tl_fail(ev->diag, TL_E0306,
                               "size must be >= 0, got %lld",
                               (long long)items[i].sym->hint.i);
            }
            at->dims[i] = d;
            continue;
        }
        if (items[i].tag != TL_V_INT) {
            tl_status st = tl_fail(ev->diag, TL_E0210,
                                   "a size must be an int, got %s",
                                   tl_value_type_str(items[i]).s);

            if (tl_is_tensor(items[i])) {
                tl_diag_help(ev->diag, "`int(n)` reads a tensor");
            }
            return st;
        }
        if (items[i].i < least) {
            return tl_fail(ev->diag, TL_E0306, "size must be >= 0, got %lld",
                           (long long)items[i].i);
        }
        if (items[i].i > TL_MAX_NUMEL) {
            return tl_fail(ev->diag, TL_E0307,
                           "a size of %lld overflows: at most 2^48 elements",
                           (long long)items[i].i);
        }
        at->dims[i] = tl_dim_num(items[i].i);
    }
    return TL_OK;
}

/* A creator with sizes from args[0] and a dtype. */
static tl_status make(tl_eval *ev, tl_op op, tl_value sizes, tl_dtype dtype,
                      tl_attrs *at, tl_value *out)
{
    bool unknown;

    TL_TRY(tl_arg_sizes(ev, sizes, 0, at, &unknown));
    if (unknown) {
        *out = tl_unknown();
        return TL_OK;
    }
    at->dtype = (uint8_t)dtype;
    return tl_eval_op(ev, op, NULL, 0, at, out);
}

static tl_status make_full(tl_eval *ev, tl_value sizes, tl_dtype dtype,
                           double value, tl_value *out)
{
    tl_attrs at;

    tl_attrs_init(&at);
    at.f[0] = value;
    at.i[0] = (int64_t)value;
    return make(ev, TL_OP_full, sizes, dtype, &at, out);
}

tl_status tl_bi_zeros(tl_eval *ev, const tl_builtin *self, tl_value *args,
                      tl_value *out)
{
    (void)self;
    return make_full(ev, args[0], args[1].dtype, 0, out);
}

tl_status tl_bi_ones(tl_eval *ev, const tl_builtin *self, tl_value *args,
                     tl_value *out)
{
    (void)self;
    return make_full(ev, args[0], args[1].dtype, 1, out);
}

tl_status tl_bi_full(tl_eval *ev, const tl_builtin *self, tl_value *args,
                     tl_value *out)
{
    tl_value v = args[1];
    tl_dtype d = args[2].tag == TL_V_DTYPE ? args[2].dtype
                 : v.tag == TL_V_INT       ? TL_i64
                 : v.tag == TL_V_BOOL      ? TL_bool
                                           : TL_f32;
    tl_attrs at;

    (void)self;
    tl_attrs_init(&at);
    TL_TRY(tl_fill_value(ev, v, d, &at));
    return make(ev, TL_OP_full, args[0], d, &at, out);
}

/* Fill of the type of a tensor. */
static tl_status full_like(tl_eval *ev, const tl_ttype *type, double value,
                           tl_value *out)
{
    tl_attrs at;

    tl_attrs_init(&at);
    at.dtype = (uint8_t)type->dtype;
    at.ndims = (uint16_t)type->shape.rank;
    for (int i = 0; i < type->shape.rank; i++) {
        at.dims[i] = type->shape.dim[i];
    }
    at.f[0] = value;
    at.i[0] = (int64_t)value;
    return tl_eval_op(ev, TL_OP_full, NULL, 0, &at, out);
}

tl_status tl_bi_ones_like(tl_eval *ev, const tl_builtin *self,
                          tl_value *args, tl_value *out)
{
    tl_ttype type;

    (void)self;
    TL_TRY(tl_eval_type(ev, args[0], &type));
    return full_like(ev, &type, 1, out);
}

tl_status tl_eval_cell_zeros(tl_eval *ev, const tl_cell *cell, tl_value *out)
{
    tl_ttype type;

    TL_TRY(tl_cell_type(ev, cell, &type));
    return full_like(ev, &type, 0, out);
}

/* ---- sequences --------------------------------------------------------- */

static tl_status truncate_number(tl_eval *ev, tl_value *v)
{
    int64_t i = 0;

    TL_TRY(int_form(ev, *v, TL_i64, &i));
    *v = tl_int_value(i);
    return TL_OK;
}

tl_status tl_bi_arange(tl_eval *ev, const tl_builtin *self, tl_value *args,
                       tl_value *out)
{
    bool one = args[1].tag == TL_V_NONE;
    tl_value lo = one ? tl_int_value(0) : args[0];
    tl_value hi = one ? args[0] : args[1], step = args[2];
    bool ints = lo.tag == TL_V_INT && hi.tag == TL_V_INT &&
                step.tag == TL_V_INT;
    tl_attrs at;

    (void)self;
    if (!ints && args[3].tag == TL_V_DTYPE &&
        !tl_dtype_is_float(args[3].dtype)) {
        /* an integer range has integer bounds, as in PyTorch */
        TL_TRY(truncate_number(ev, &lo));
        TL_TRY(truncate_number(ev, &hi));
        TL_TRY(truncate_number(ev, &step));
        ints = true;
    }
    double a = tl_number_f(lo), b = tl_number_f(hi), s = tl_number_f(step);

    if (s == 0) {
        return tl_fail(ev->diag, TL_E0416, "the step of `arange` is 0");
    }
    double n = ceil((b - a) / s);

    if (n > (double)TL_MAX_NUMEL) {
        return tl_fail(ev->diag, TL_E0307, "%g elements overflow", n);
    }
    tl_attrs_init(&at);
    at.ndims = 1;
    at.dims[0] = tl_dim_num(n > 0 ? (int64_t)n : 0);
    at.i[0] = ints ? lo.i : 0;
    at.i[1] = ints ? step.i : 0;
    at.f[0] = a;
    at.f[1] = s;
    tl_dtype d = ints ? TL_i64 : TL_f32, want = d;

    if (args[3].tag == TL_V_DTYPE) {
        want = args[3].dtype;
        d = tl_dtype_is_float(want) ? want : d;
    }
    at.dtype = (uint8_t)d;
    tl_value v = tl_empty();

    TL_TRY(tl_eval_op(ev, TL_OP_arange, NULL, 0, &at, &v));
    if (want != d) {
        return cast_to(ev, v, want, out);
    }
    *out = v;
    return TL_OK;
}

tl_status tl_bi_linspace(tl_eval *ev, const tl_builtin *self, tl_value *args,
                         tl_value *out)
{
    tl_attrs at;

    (void)self;
    tl_attrs_init(&at);
    at.f[0] = args[0].f;
    at.f[1] = args[1].f;
    if (!tl_dtype_is_float(args[3].dtype)) { /* integer bounds, as above */
        at.f[0] = trunc(at.f[0]);
        at.f[1] = trunc(at.f[1]);
    }
    return make(ev, TL_OP_linspace, args[2], args[3].dtype, &at, out);
}

tl_status tl_bi_eye(tl_eval *ev, const tl_builtin *self, tl_value *args,
                    tl_value *out)
{
    tl_value sizes = tl_empty();
    tl_value pair[2] = {args[0], args[1].tag == TL_V_INT ? args[1] : args[0]};
    tl_attrs at;

    (void)self;
    tl_attrs_init(&at);
    TL_TRY(tl_seq_new_take(&sizes, TL_V_TUPLE, pair, 2, ev->diag));
    tl_status st = make(ev, TL_OP_eye, sizes, args[2].dtype, &at, out);

    tl_unref(sizes);
    return st;
}

/* ---- random draws ------------------------------------------------------ */

void tl_set_draw(tl_eval *ev, tl_attrs *at)
{
    tl_rng_key key = {0};

    if (ev->domain->backward != NULL) { /* types alone draw nothing */
        key = tl_eval_next_key(ev);
    }
    tl_attrs_set_key(at, &key);
}

tl_status tl_bi_random(tl_eval *ev, const tl_builtin *self, tl_value *args,
                       tl_value *out)
{
    tl_attrs at;

    if (!tl_dtype_is_float(args[1].dtype)) {
        return tl_fail(ev->diag, TL_E0308, "`%s` gives floats, not %s",
                       self->name, tl_dtype_name(args[1].dtype));
    }
    tl_attrs_init(&at);
    tl_set_draw(ev, &at);
    return make(ev, self->op, args[0], args[1].dtype, &at, out);
}

tl_status tl_bi_randint(tl_eval *ev, const tl_builtin *self, tl_value *args,
                        tl_value *out)
{
    tl_attrs at;

    (void)self;
    if (args[1].i <= args[0].i) {
        return tl_fail(ev->diag, TL_E0416,
                       "there is no whole number from %lld to before %lld",
                       (long long)args[0].i, (long long)args[1].i);
    }
    for (int i = 0; i < 2; i++) {
        int64_t end = i == 0 ? args[0].i : args[1].i - 1;

        if (!int_fits(args[3].dtype, end)) {
            return tl_fail(ev->diag, TL_E0319, "%lld has no %s form",
                           (long long)end, tl_dtype_name(args[3].dtype));
        }
    }
    tl_attrs_init(&at);
    tl_set_draw(ev, &at);
    at.f[0] = (double)args[0].i;
    at.f[1] = (double)args[1].i;
    return make(ev, TL_OP_randint, args[2], args[3].dtype, &at, out);
}

tl_status tl_bi_perm(tl_eval *ev, const tl_builtin *self, tl_value *args,
                     tl_value *out)
{
    tl_attrs at;

    (void)self;
    tl_attrs_init(&at);
    tl_set_draw(ev, &at);
    return make(ev, TL_OP_perm, args[0], TL_i64, &at, out);
}

tl_status tl_bi_bernoulli(tl_eval *ev, const tl_builtin *self,
                          tl_value *args, tl_value *out)
{
    tl_value p = tl_arg_take(args, 0);
    tl_attrs at;

    (void)self;
    tl_attrs_init(&at);
    tl_set_draw(ev, &at);
    return tl_eval_op(ev, TL_OP_bernoulli, &p, 1, &at, out);
}

/* multinomial(weights, n, replacement) */
tl_status tl_bi_multinomial(tl_eval *ev, const tl_builtin *self,
                            tl_value *args, tl_value *out)
{
    tl_value w = tl_arg_take(args, 0);
    tl_attrs at;

    (void)self;
    tl_attrs_init(&at);
    at.ndims = 1;
    at.dims[0] = tl_dim_num(args[1].i);
    at.flag = args[2].b;
    tl_set_draw(ev, &at);
    return tl_eval_op(ev, TL_OP_multinomial, &w, 1, &at, out);
}

tl_status tl_bi_dropout(tl_eval *ev, const tl_builtin *self, tl_value *args,
                        tl_value *out)
{
    tl_value x = tl_arg_take(args, 0);
    double p = args[1].f;
    tl_attrs at;

    (void)self;
    if (!(p >= 0 && p <= 1)) {
        tl_unref(x);
        return tl_fail(ev->diag, TL_E0413, "p must be in 0..1, got %g", p);
    }
    if (p == 0 || !tl_training_now(ev)) {
        *out = x;
        return TL_OK;
    }
    tl_attrs_init(&at);
    tl_set_draw(ev, &at);
    at.f[0] = p;
    return tl_eval_op(ev, TL_OP_dropout, &x, 1, &at, out);
}
