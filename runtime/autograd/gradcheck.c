/* gradcheck.c - gradients from a tape against central differences. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "runtime/autograd/gradcheck.h"

#include <math.h>
#include <string.h>

#include "runtime/base/mem.h"

enum { MAX_INPUTS = 16 };

/* f and what is done to its result. */
typedef struct check {
    tl_rt *rt;
    tl_gradcheck_fn *f;
    void *arg;
    int n;
    tl_gradcheck_options options;
    tl_tensor *point[MAX_INPUTS]; /* row-major copies of the inputs */
} check;

/* ---- directions --------------------------------------------------------- */

/* Numbers in (-1, 1), away from 0, that depend on (seed, stream, index). */
static double direction(uint64_t seed, uint64_t stream, int64_t index)
{
    tl_rng_key key = {.seed = seed, .draw = stream,
                      .stream = TL_STREAM_DRAW};
    uint32_t w[4];
    double u;

    tl_philox(w, &key, (uint64_t)index);
    u = tl_uniform_f64(w[0], w[1]) * 1.5 - 0.75;
    return u < 0 ? u - 0.25 : u + 0.25;
}

/* A tensor of the type of `like` with the direction `stream`. */
static tl_status direction_like(const check *c, const tl_tensor *like,
                                uint64_t stream, tl_tensor **out)
{
    TL_TRY(tl_tensor_new(out, c->rt->pool, like->dtype, like->rank,
                         like->size, c->rt->diag));
    for (int64_t i = 0; i < like->numel; i++) {
        tl_tensor_set_f(*out, i, direction(c->options.seed, stream, i));
    }
    return TL_OK;
}

/* sum(u * y) in double, u the direction `stream`. */
static double dot_direction(const check *c, const tl_tensor *y,
                            uint64_t stream)
{
    double sum = 0;

    for (int64_t i = 0; i < y->numel; i++) {
        sum += direction(c->options.seed, stream, i) * tl_tensor_get_f(y, i);
    }
    return sum;
}

/* ---- the function under test -------------------------------------------- */

static tl_status call_f(const check *c, tl_tensor *const *in, tl_tensor **out)
{
    TL_TRY(c->f(c->arg, c->rt, in, c->n, out));
    if (!tl_dtype_is_float((*out)->dtype)) {
        tl_tensor_unref(*out);
        return tl_fail(c->rt->diag, TL_E0322,
                       "gradcheck needs a function with a float result");
    }
    return TL_OK;
}

static void unref_all(tl_tensor **t, int n)
{
    for (int i = 0; i < n; i++) {
        tl_tensor_unref(t[i]);
        t[i] = NULL;
    }
}

/* Leaves of the float inputs on `tape`, references to the others. */
static tl_status make_leaves(const check *c, tl_tape *tape,
                             tl_tensor *const *in, tl_tensor **leaves)
{
    for (int i = 0; i < c->n; i++) {
        leaves[i] = NULL;
    }
    for (int i = 0; i < c->n; i++) {
        if (tl_dtype_is_float(in[i]->dtype)) {
            TL_TRY(tl_grad_leaf(c->rt, tape, in[i], &leaves[i]));
        } else {
            leaves[i] = tl_tensor_ref(in[i]);
        }
    }
    return TL_OK;
}

/* Gradients of sum(u * f(in)) by a tape of its own; NULL for inputs that are
 * no floats. */
static tl_status gradients(const check *c, tl_tensor *const *in,
                           tl_status (*f)(const check *, tl_tensor *const *,
                                          tl_tensor **),
                           uint64_t stream, tl_tensor **grads)
{
    tl_tensor *leaves[MAX_INPUTS] = {NULL}, *y = NULL, *u = NULL;
    tl_tensor *floats[MAX_INPUTS], *dx[MAX_INPUTS];
    tl_tape *tape;
    tl_status st;
    int n = 0;

    TL_TRY(tl_grad_open(c->rt, &tape));
    st = make_leaves(c, tape, in, leaves);
    if (st == TL_OK) {
        st = f(c, leaves, &y);
    }
    tl_grad_close(c->rt, tape);
    if (st == TL_OK) {
        st = direction_like(c, y, stream, &u);
    }
    for (int i = 0; i < c->n; i++) {
        if (tl_dtype_is_float(in[i]->dtype)) {
            floats[n++] = leaves[i];
        }
    }
    if (st == TL_OK) {
        st = tl_grad_backward(c->rt, tape, y, u, floats, n, dx, NULL);
    }
    for (int i = 0, j = 0; i < c->n && st == TL_OK; i++) {
        grads[i] = tl_dtype_is_float(in[i]->dtype) ? dx[j++] : NULL;
    }
    unref_all(leaves, c->n);
    tl_tensor_unref(y);
    tl_tensor_unref(u);
    tl_tape_free(tape);
    return st;
}

/* Sum over the inputs of v . gradient, as a scalar that tapes record. */
static tl_status directional(const check *c, tl_tensor **grads,
                             tl_tensor **out)
{
    tl_tensor *total = NULL;
    tl_status st = TL_OK;

    for (int i = 0; i < c->n && st == TL_OK; i++) {
        tl_tensor *pair[2], *product, *sum;
        tl_attrs at;

        if (!grads[i]) {
            continue;
        }
        pair[0] = tl_tensor_ref(grads[i]);
        pair[1] = NULL;
        st = direction_like(c, grads[i], 100 + (uint64_t)i, &pair[1]);
        if (st != TL_OK) {
            tl_tensor_unref(pair[0]);
            break;
        }
        TL_GOTO(st, tl_apply(c->rt, TL_OP_mul, pair, 2, NULL, &product));
        tl_attrs_init(&at);
        at.axes = (uint16_t)((1u << product->rank) - 1);
        at.flag = true;
        TL_GOTO(st, tl_apply(c->rt, TL_OP_sum, &product, 1, &at, &sum));
        if (!total) {
            total = sum;
            continue;
        }
        pair[0] = total;
        pair[1] = sum;
        total = NULL;
        TL_GOTO(st, tl_apply(c->rt, TL_OP_add, pair, 2, NULL, &total));
    }
out:
    if (st != TL_OK) {
        tl_tensor_unref(total);
        return st;
    }
    *out = total;
    return TL_OK;
}

/* x -> v . d(u . f)/dx, whose gradient is of second order. */
static tl_status gradient_of_f(const check *c, tl_tensor *const *in,
                               tl_tensor **out)
{
    tl_tensor *grads[MAX_INPUTS] = {NULL};
    tl_status st = gradients(c, in, call_f, 0, grads);

    if (st == TL_OK) {
        st = directional(c, grads, out);
    }
    unref_all(grads, c->n);
    return st;
}

/* The checked function: f itself, or its directional gradient. */
static tl_status subject(const check *c, tl_tensor *const *in,
                         tl_tensor **out)
{
    return c->options.second ? gradient_of_f(c, in, out)
                             : call_f(c, in, out);
}

/* ---- differences -------------------------------------------------------- */

/* sum(u * y) with element `index` of input `which` moved by `delta`. */
static tl_status shifted(const check *c, int which, int64_t index,
                         double delta, double *out)
{
    tl_tensor *t = c->point[which], *moved, *y;
    tl_tensor *in[MAX_INPUTS];
    tl_status st;

    TL_TRY(tl_tensor_new(&moved, c->rt->pool, t->dtype, t->rank, t->size,
                         c->rt->diag));
    tl_tensor_write(moved, tl_tensor_data(t));
    tl_tensor_set_f(moved, index, tl_tensor_get_f(t, index) + delta);
    memcpy(in, c->point, sizeof(in));
    in[which] = moved;
    st = subject(c, in, &y);
    if (st == TL_OK) {
        *out = dot_direction(c, y, 1);
        tl_tensor_unref(y);
    }
    tl_tensor_unref(moved);
    return st;
}

static tl_status difference(const check *c, int which, int64_t index,
                            double h, double *out)
{
    double plus, minus;

    TL_TRY(shifted(c, which, index, h, &plus));
    TL_TRY(shifted(c, which, index, -h, &minus));
    *out = (plus - minus) / (2 * h);
    return TL_OK;
}

static tl_status numeric(const check *c, int which, int64_t index,
                         double *out)
{
    double x = tl_tensor_get_f(c->point[which], index);
    double h = c->options.step * fmax(1, fabs(x));
    double wide, narrow;

    TL_TRY(difference(c, which, index, h, &wide));
    TL_TRY(difference(c, which, index, h / 2, &narrow));
    *out = (4 * narrow - wide) / 3;
    return TL_OK;
}

static void note(const check *c, tl_gradcheck_result *r, int which,
                 int64_t index, double analytic, double num)
{
    double size = fmax(fabs(analytic), fabs(num));
    double excess = fabs(analytic - num) /
                    (c->options.atol + c->options.rtol * size);

    if (isnan(excess)) { /* nan, or both infinite */
        excess = HUGE_VAL;
    }
    r->checked++;
    if (r->checked == 1 || excess > r->excess) {
        r->input = which;
        r->index = index;
        r->analytic = analytic;
        r->numeric = num;
        r->excess = excess;
    }
    r->ok = r->ok && excess <= 1;
}

static tl_status compare(const check *c, int which, const tl_tensor *grad,
                         tl_gradcheck_result *r)
{
    int64_t n = c->point[which]->numel, step = 1;

    if (c->options.max_elements > 0 && n > c->options.max_elements) {
        step = n / c->options.max_elements;
    }
    for (int64_t i = 0; i < n; i += step) {
        double num;

        TL_TRY(numeric(c, which, i, &num));
        note(c, r, which, i, tl_tensor_get_f(grad, i), num);
    }
    return TL_OK;
}

static void set_defaults(tl_gradcheck_options *o)
{
    o->step = o->step > 0 ? o->step : 0x1p-10;
    o->rtol = o->rtol > 0 ? o->rtol : 1e-6;
    o->atol = o->atol > 0 ? o->atol : 1e-9;
}

static bool has_float(tl_tensor *const *in, int n)
{
    for (int i = 0; i < n; i++) {
        if (tl_dtype_is_float(in[i]->dtype)) {
            return true;
        }
    }
    return false;
}

/* Row-major copies, which nobody else holds. */
static tl_status copy_inputs(check *c, tl_tensor *const *in)
{
    for (int i = 0; i < c->n; i++) {
        TL_TRY(tl_tensor_new(&c->point[i], c->rt->pool, in[i]->dtype,
                             in[i]->rank, in[i]->size, c->rt->diag));
        if (in[i]->numel > 0) {
            tl_tensor_read(in[i], tl_tensor_data(c->point[i]));
        }
    }
    return TL_OK;
}

tl_status tl_gradcheck(tl_rt *rt, tl_gradcheck_fn *f, void *arg,
                       tl_tensor *const *in, int n,
                       const tl_gradcheck_options *options,
                       tl_gradcheck_result *result)
{
    check c = {.rt = rt, .f = f, .arg = arg, .n = n, .options = *options};
    tl_tensor *grads[MAX_INPUTS] = {NULL};
    tl_status st;

    if (n > MAX_INPUTS) {
        return tl_fail(rt->diag, TL_E0203,
                       "gradcheck takes at most %d tensors, got %d",
                       MAX_INPUTS, n);
    }
    set_defaults(&c.options);
    *result = (tl_gradcheck_result){.ok = true};
    if (!has_float(in, n)) {
        return TL_OK; /* nothing to differentiate by */
    }
    TL_GOTO(st, copy_inputs(&c, in));
    TL_GOTO(st, gradients(&c, c.point, subject, 1, grads));
    for (int i = 0; i < n; i++) {
        if (grads[i]) {
            TL_GOTO(st, compare(&c, i, grads[i], result));
        }
    }
out:
    unref_all(grads, n);
    unref_all(c.point, n);
    return st;
}
