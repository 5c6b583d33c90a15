/* bi_pool.c - max_pool, avg_pool, their adaptive forms, and interpolate. */
#include "runtime/op/pool.h"

#include <math.h>
#include <string.h>

#include "interp/bi_tensor.h"
#include "interp/builtin_fns.h"
#include "interp/container.h"
#include "runtime/op/resize.h"

static bool is_list(tl_value v)
{
    return v.tag == TL_V_LIST || v.tag == TL_V_TUPLE;
}

/* How many of the last axes: `axes`, or as many as a list among `v` has, else
 * all but the first two of x[N, C, ..].  E0304. */
static tl_status count_axes(tl_eval *ev, const char *name, tl_value x,
                            tl_value axes, const tl_value *v, int nv,
                            int *out)
{
    bool given = axes.tag == TL_V_INT;
    int rank = tl_value_rank(x), n = rank - 2;

    if (given) {
        n = axes.i > 0 && axes.i <= TL_MAX_RANK ? (int)axes.i : 0;
    }

    for (int i = 0; i < nv && !given; i++) {
        given = is_list(v[i]);
        n = given ? (int)v[i].seq->len : n;
    }
    if (given && (n < 1 || n > TL_POOL_AXES)) {
        return tl_fail(ev->diag, TL_E0412, "`%s` takes 1 to %d axes, got %d",
                       name, TL_POOL_AXES, n);
    }
    if (n >= 1 && n <= TL_POOL_AXES && n <= rank) {
        *out = n;
        return TL_OK;
    }
    (void)tl_fail(ev->diag, TL_E0304, "`%s` of %s, of %d axes", name,
                  tl_value_type_str(x).s, rank);
    if (!given) {
        tl_diag_help(ev->diag, "one number is for all axes of x[N, C, ..] "
                               "after the second; a list has one for each of "
                               "the last axes");
    }
    return TL_ERR_PROGRAM;
}

/* One number for all axes, alone or in a list, or one for each; `code` below
 * `least`. */
static tl_status numbers(tl_eval *ev, const char *what, tl_value v, int n,
                         int64_t least, tl_code code, tl_dim *out)
{
    bool each = is_list(v) && v.seq->len != 1;

    if (each && v.seq->len != (size_t)n) {
        return tl_fail(ev->diag, code,
                       "%s must be an int or %d of them, got "
                       "%zu",
                       what, n, v.seq->len);
    }
    for (int i = 0; i < n; i++) {
        int64_t k = is_list(v) ? v.seq->items[each ? i : 0].i : v.i;

        if (k < least || k > INT32_MAX) {
            return tl_fail(ev->diag, code,
                           "%s must be >= %lld%s in each of "
                           "%d dimension%s, got %lld",
                           what, (long long)least,
                           k < least ? "" : " and below 2^31", n,
                           n == 1 ? "" : "s", (long long)k);
        }
        out[i] = tl_dim_num(k);
    }
    return TL_OK;
}

/* v: size, stride, pad, dilation.  E0409, E0410, E0412. */
static tl_status window(tl_eval *ev, const char *name, const tl_value *v,
                        tl_value x, tl_value axes, tl_attrs *at)
{
    int n;

    TL_TRY(count_axes(ev, name, x, axes, v, 4, &n));
    tl_pool_attrs(at, n);
    TL_TRY(numbers(ev, "window", v[0], n, 1, TL_E0412,
                   tl_pool_dims(at, TL_POOL_SIZE)));
    TL_TRY(numbers(ev, "stride", v[1].tag == TL_V_NONE ? v[0] : v[1], n, 1,
                   TL_E0409, tl_pool_dims(at, TL_POOL_STRIDE)));
    TL_TRY(numbers(ev, "padding", v[2], n, 0, TL_E0410,
                   tl_pool_dims(at, TL_POOL_PAD)));
    TL_TRY(numbers(ev, "dilation", v[3], n, 1, TL_E0409,
                   tl_pool_dims(at, TL_POOL_DILATION)));
    for (int i = 0; i < n; i++) {
        if (tl_pool_num(at, TL_POOL_PAD, i) > tl_pool_window(at, i) / 2) {
            return tl_fail(ev->diag, TL_E0410,
                           "padding must be at most half "
                           "of the window: %lld of %lld in dimension %d",
                           (long long)tl_pool_num(at, TL_POOL_PAD, i),
                           (long long)tl_pool_window(at, i), i);
        }
    }
    return TL_OK;
}

/* Results of max_pool: the values, or (values, places). */
static tl_status max_result(tl_eval *ev, tl_value x, const tl_attrs *at,
                            bool places, tl_value *out)
{
    tl_value res[2];

    TL_TRY(tl_eval_op(ev, TL_OP_max_pool, &x, 1, at, res));
    if (places) {
        return tl_seq_new_take(out, TL_V_TUPLE, res, 2, ev->diag);
    }
    tl_unref(res[1]);
    *out = res[0];
    return TL_OK;
}

static bool known(const tl_value *v, int n)
{
    bool all = true;

    for (int i = 0; i < n; i++) {
        all &= tl_value_known(v[i]);
    }
    return all;
}

/* max_pool(x, size, stride, pad, dilation, ceil_mode, return_indices,
 * axes) */
tl_status tl_bi_max_pool(tl_eval *ev, const tl_builtin *self, tl_value *args,
                         tl_value *out)
{
    tl_attrs at;

    if (!known(args + 1, 4)) {
        *out = tl_unknown();
        return TL_OK;
    }
    TL_TRY(window(ev, self->name, args + 1, args[0], args[7], &at));
    at.i[1] = args[5].b;
    return max_result(ev, tl_arg_take(args, 0), &at, args[6].b, out);
}

/* avg_pool(x, size, stride, pad, ceil_mode, count_include_pad,
 * divisor_override, axes) */
tl_status tl_bi_avg_pool(tl_eval *ev, const tl_builtin *self, tl_value *args,
                         tl_value *out)
{
    tl_value v[4] = {args[1], args[2], args[3], tl_int_value(1)}, x;
    tl_attrs at;

    if (!known(v, 4)) {
        *out = tl_unknown();
        return TL_OK;
    }
    TL_TRY(window(ev, self->name, v, args[0], args[7], &at));
    at.i[1] = args[4].b;
    at.i[2] = args[5].b;
    if (args[6].tag == TL_V_INT) {
        if (args[6].i == 0) {
            return tl_fail(ev->diag, TL_E0416,
                           "divisor_override must not be "
                           "0");
        }
        at.i[3] = args[6].i;
    }
    x = tl_arg_take(args, 0);
    return tl_eval_op(ev, TL_OP_avg_pool, &x, 1, &at, out);
}

/* Attributes of adaptive windows: a size, or one for each axis, where none is
 * that of x. */
static tl_status adaptive(tl_eval *ev, const tl_builtin *self,
                          const tl_value *args, tl_value axes, tl_attrs *at)
{
    tl_value size = args[1];
    tl_ttype type;
    int n;

    TL_TRY(count_axes(ev, self->name, args[0], axes, args + 1, 1, &n));
    TL_TRY(tl_eval_type(ev, args[0], &type));
    tl_pool_attrs(at, n);
    at->flag = true;
    if (is_list(size) && size.seq->len != (size_t)n) {
        return tl_fail(ev->diag, TL_E0306, "size must be an int or %d of "
                       "them, got %zu", n, size.seq->len);
    }
    for (int i = 0; i < n; i++) {
        tl_value v = is_list(size) ? size.seq->items[i] : size;
        tl_dim *to = &tl_pool_dims(at, TL_POOL_SIZE)[i];

        if (v.tag == TL_V_NONE && is_list(size)) {
            *to = type.shape.dim[type.shape.rank - n + i];
        } else if (v.tag == TL_V_INT) {
            TL_TRY(numbers(ev, "size", v, 1, 1, TL_E0306, to));
        } else {
            return tl_fail(ev->diag, TL_E0210, "a size is an int or none, "
                           "got %s", tl_value_type_str(v).s);
        }
    }
    return TL_OK;
}

tl_status tl_bi_adaptive_avg_pool(tl_eval *ev, const tl_builtin *self,
                                  tl_value *args, tl_value *out)
{
    tl_attrs at;
    tl_value x;

    if (!tl_value_known(args[1])) {
        *out = tl_unknown();
        return TL_OK;
    }
    TL_TRY(adaptive(ev, self, args, args[2], &at));
    x = tl_arg_take(args, 0);
    return tl_eval_op(ev, TL_OP_avg_pool, &x, 1, &at, out);
}

tl_status tl_bi_adaptive_max_pool(tl_eval *ev, const tl_builtin *self,
                                  tl_value *args, tl_value *out)
{
    tl_attrs at;

    if (!tl_value_known(args[1])) {
        *out = tl_unknown();
        return TL_OK;
    }
    TL_TRY(adaptive(ev, self, args, args[3], &at));
    return max_result(ev, tl_arg_take(args, 0), &at, args[2].b, out);
}

/* ---- interpolate --------------------------------------------------------- */

/* The modes, by how many axes they are for; 0: any. */
static const struct mode {
    const char *name;
    int kind; /* tl_resize_mode; -1: area */
    int axes;
} modes[] = {
    {"nearest", TL_RESIZE_NEAREST, 0},
    {"nearest-exact", TL_RESIZE_NEAREST_EXACT, 0},
    {"linear", TL_RESIZE_LINEAR, 0},
    {"bilinear", TL_RESIZE_LINEAR, 2},
    {"trilinear", TL_RESIZE_LINEAR, 3},
    {"bicubic", TL_RESIZE_CUBIC, 2},
    {"area", -1, 0},
};

static tl_status find_mode(tl_eval *ev, tl_value text, int n,
                           const struct mode **out)
{
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        const struct mode *m = &modes[i];

        if (strcmp(m->name, text.str->data) != 0) {
            continue;
        }
        *out = m;
        return m->axes == 0 || m->axes == n
                   ? TL_OK
                   : tl_fail(ev->diag, TL_E0416,
                             "mode %s is for %d axes, "
                             "not for %d",
                             m->name, m->axes, n);
    }
    return tl_fail(ev->diag, TL_E0416,
                   "mode is nearest, nearest-exact, "
                   "linear, bilinear, trilinear, bicubic or area, got \"%s\"",
                   text.str->data);
}

/* The size of an axis times a factor, rounded down; *unknown where the size
 * is. */
static tl_status scaled(tl_eval *ev, tl_dim in, tl_value factor, tl_dim *out,
                        double *kept, bool *unknown)
{
    double f = tl_number_f(factor), size;

    if (!(f > 0) || !isfinite(f)) {
        return tl_fail(ev->diag, TL_E0416,
                       "scale_factor must be above 0, got "
                       "%g",
                       f);
    }
    *kept = f;
    if (factor.tag == TL_V_INT && factor.i < 1 << 20) {
        return tl_dim_mul(tl_eval_infer(ev)->dims, in, tl_dim_num(factor.i),
                          out, ev->diag);
    }
    TL_TRY(tl_pin_size(ev, &in));
    if (!tl_dim_is_num(in)) {
        *unknown = true;
        return TL_OK;
    }
    size = floor((double)tl_dim_value(in) * f);
    if (size < 1 || size > 0x1p47) {
        return tl_fail(ev->diag, TL_E0306,
                       "scale_factor %g makes size %g of "
                       "%lld",
                       f, size, (long long)tl_dim_value(in));
    }
    *out = tl_dim_num((int64_t)size);
    return TL_OK;
}

/* New sizes of the last n axes, from `size` or `scale`. */
static tl_status new_sizes(tl_eval *ev, const tl_value *args, int n,
                           tl_attrs *at, bool *unknown)
{
    tl_value by = args[2];
    tl_ttype type;

    if ((args[1].tag == TL_V_NONE) == (by.tag == TL_V_NONE)) {
        return tl_fail(ev->diag, TL_E0416,
                       "interpolate takes a size or a "
                       "scale_factor");
    }
    if (by.tag == TL_V_NONE) {
        return numbers(ev, "size", args[1], n, 1, TL_E0306, at->dims);
    }
    if (is_list(by) && by.seq->len != (size_t)n) {
        return tl_fail(ev->diag, TL_E0416,
                       "scale_factor must be a number or "
                       "%d of them, got %zu",
                       n, by.seq->len);
    }
    TL_TRY(tl_eval_type(ev, args[0], &type));
    for (int i = 0; i < n; i++) {
        tl_value f = is_list(by) ? by.seq->items[i] : by;

        if (f.tag != TL_V_INT && f.tag != TL_V_FLOAT) {
            return tl_fail(ev->diag, TL_E0416,
                           "scale_factor is a number or a "
                           "list of numbers, got %s",
                           tl_value_type_str(f).s);
        }
        TL_TRY(scaled(ev, type.shape.dim[type.shape.rank - n + i], f,
                      &at->dims[i], &at->f[i], unknown));
    }
    return TL_OK;
}

static tl_status resize(tl_eval *ev, tl_value *args, const struct mode *m,
                        tl_attrs *at, int n, tl_value *out)
{
    tl_value x = tl_arg_take(args, 0);

    if (m->kind >= 0) {
        return tl_eval_op(ev, TL_OP_resize, &x, 1, at, out);
    }
    tl_attrs area;

    tl_pool_attrs(&area, n);
    area.flag = true;
    for (int i = 0; i < n; i++) {
        tl_pool_dims(&area, TL_POOL_SIZE)[i] = at->dims[i];
    }
    return tl_eval_op(ev, TL_OP_avg_pool, &x, 1, &area, out);
}

/* interpolate(x, size, scale_factor, mode, align_corners) */
tl_status tl_bi_interpolate(tl_eval *ev, const tl_builtin *self,
                            tl_value *args, tl_value *out)
{
    const struct mode *m;
    bool unknown = !known(args + 1, 2),
         align = args[4].tag == TL_V_BOOL && args[4].b;
    tl_attrs at;
    int n;

    tl_attrs_init(&at);
    if (!unknown) {
        TL_TRY(count_axes(ev, self->name, args[0], tl_none(), args + 1, 2,
                          &n));
        TL_TRY(find_mode(ev, args[3], n, &m));
        if (align && m->kind != TL_RESIZE_LINEAR &&
            m->kind != TL_RESIZE_CUBIC) {
            return tl_fail(ev->diag, TL_E0416,
                           "align_corners is for linear "
                           "and cubic modes, not for %s",
                           m->name);
        }
        at.i[0] = n;
        at.i[1] = m->kind;
        at.flag = align;
        at.ndims = (uint16_t)n;
        TL_TRY(new_sizes(ev, args, n, &at, &unknown));
    }
    if (unknown) {
        *out = tl_unknown();
        return TL_OK;
    }
    return resize(ev, args, m, &at, n, out);
}
