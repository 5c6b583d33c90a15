/* host.c - host scalars of a graph: what NUM, SIZE and HOST nodes give.
 *
 * The interpreter's arithmetic and its words for what fails
 * (interp/eval_op.c, interp/bi_math.c, interp/bi_convert.c). */
#include <math.h>

#include "compiler/graph.h"
#include "runtime/base/check.h"
#include "runtime/base/size.h"

/* What one node reads and where it reports. */
typedef struct host {
    tl_ghost op;
    tl_gclass cls[3]; /* of the operands */
    tl_gscalar in[3];
    tl_diag *diag;
} host;

/* ---- ints --------------------------------------------------------------- */

static tl_status overflow(const host *h, const char *op, int64_t a, int64_t b)
{
    return tl_fail(h->diag, TL_E0404, "%lld %s %lld does not fit 64 bits",
                   (long long)a, op, (long long)b);
}

static tl_status division(const host *h, int64_t a, int64_t b, int64_t *out)
{
    bool mod = h->op == TL_H_mod_i;

    if (b == 0) {
        return tl_fail(h->diag, TL_E0401, "integer division by zero");
    }
    if (b == -1) { // a // -1 may overflow, a % -1 is 0
        if (!mod && a == INT64_MIN) {
            return overflow(h, "//", a, b);
        }
        *out = mod ? 0 : -a;
        return TL_OK;
    }
    *out = mod ? tl_floor_mod(a, b) : tl_floor_div(a, b);
    return TL_OK;
}

static tl_status int_result(const host *h, int64_t *out)
{
    int64_t a = h->in[0].i, b = h->in[1].i;

    switch (h->op) {
    case TL_H_add_i:
        return tl_add_i64(out, a, b) ? TL_OK : overflow(h, "+", a, b);
    case TL_H_sub_i:
        return tl_sub_i64(out, a, b) ? TL_OK : overflow(h, "-", a, b);
    case TL_H_mul_i:
        return tl_mul_i64(out, a, b) ? TL_OK : overflow(h, "*", a, b);
    case TL_H_neg_i:
        return tl_sub_i64(out, 0, a) ? TL_OK : overflow(h, "-", 0, a);
    case TL_H_floordiv_i:
    case TL_H_mod_i:
        return division(h, a, b, out);
    case TL_H_min_i:
        *out = b < a ? b : a;
        return TL_OK;
    case TL_H_max_i:
        *out = b > a ? b : a;
        return TL_OK;
    default:
        break;
    }
    if (h->cls[0] != TL_GC_FLOAT) { // to_int
        *out = h->cls[0] == TL_GC_BOOL ? h->in[0].b : a;
        return TL_OK;
    }
    if (!(h->in[0].f >= -0x1p63 && h->in[0].f < 0x1p63)) {
        return tl_fail(h->diag, TL_E0220, "%g has no int of 64 bits",
                       h->in[0].f);
    }
    *out = (int64_t)h->in[0].f;
    return TL_OK;
}

/* ---- floats ------------------------------------------------------------- */

/* The remainder has the sign of b. */
static double float_mod(double a, double b)
{
    double r = fmod(a, b);

    return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

static bool divides(tl_ghost op)
{
    return op == TL_H_div_f || op == TL_H_floordiv_f || op == TL_H_mod_f;
}

static tl_status float_binary(const host *h, double *out)
{
    double a = h->in[0].f, b = h->in[1].f;

    if ((divides(h->op) && b == 0) ||
        (h->op == TL_H_pow_f && a == 0 && b < 0)) {
        return tl_fail(h->diag, TL_E0401, "division by zero");
    }
    switch (h->op) {
    case TL_H_add_f:
        *out = a + b;
        break;
    case TL_H_sub_f:
        *out = a - b;
        break;
    case TL_H_mul_f:
        *out = a * b;
        break;
    case TL_H_div_f:
        *out = a / b;
        break;
    case TL_H_floordiv_f:
        *out = nearbyint((a - float_mod(a, b)) / b);
        break;
    case TL_H_mod_f:
        *out = float_mod(a, b);
        break;
    case TL_H_pow_f:
        *out = pow(a, b);
        break;
    case TL_H_min_f:
        *out = b < a ? b : a;
        break;
    default:
        *out = b > a ? b : a;
        break;
    }
    return TL_OK;
}

/* A function whose result is not finite where its operand is fails. */
static tl_status float_unary(const host *h, const char *name, double x,
                             double *out)
{
    double y;

    switch (h->op) {
    case TL_H_sqrt_f:
        y = sqrt(x);
        break;
    case TL_H_exp_f:
        y = exp(x);
        break;
    case TL_H_log_f:
        y = log(x);
        break;
    case TL_H_sin_f:
        y = sin(x);
        break;
    case TL_H_cos_f:
        y = cos(x);
        break;
    default:
        y = tanh(x);
        break;
    }
    if (!isfinite(y) && isfinite(x)) {
        return tl_fail(h->diag, TL_E0416, "%s(%g) is not defined", name, x);
    }
    *out = y;
    return TL_OK;
}

static tl_status float_result(const host *h, double *out)
{
    tl_gscalar x = h->in[0];

    switch (h->op) {
    case TL_H_neg_f:
        *out = -x.f;
        return TL_OK;
    case TL_H_abs_f:
        *out = fabs(x.f);
        return TL_OK;
    case TL_H_sqrt_f:
        return float_unary(h, "sqrt", x.f, out);
    case TL_H_exp_f:
        return float_unary(h, "exp", x.f, out);
    case TL_H_log_f:
        return float_unary(h, "log", x.f, out);
    case TL_H_sin_f:
        return float_unary(h, "sin", x.f, out);
    case TL_H_cos_f:
        return float_unary(h, "cos", x.f, out);
    case TL_H_tanh_f:
        return float_unary(h, "tanh", x.f, out);
    case TL_H_to_float:
        *out = h->cls[0] == TL_GC_FLOAT ? x.f
               : h->cls[0] == TL_GC_INT ? (double)x.i
                                        : (double)x.b;
        return TL_OK;
    default:
        return float_binary(h, out);
    }
}

/* ---- bools -------------------------------------------------------------- */

static bool bool_result(const host *h)
{
    tl_gscalar a = h->in[0], b = h->in[1];

    switch (h->op) {
    case TL_H_lt_i:
        return a.i < b.i;
    case TL_H_le_i:
        return a.i <= b.i;
    case TL_H_eq_i:
        return a.i == b.i;
    case TL_H_ne_i:
        return a.i != b.i;
    case TL_H_lt_f:
        return a.f < b.f;
    case TL_H_le_f:
        return a.f <= b.f;
    case TL_H_eq_f:
        return a.f == b.f;
    case TL_H_ne_f:
        return a.f != b.f;
    case TL_H_and:
        return a.b && b.b;
    case TL_H_or:
        return a.b || b.b;
    default:
        return !a.b;
    }
}

/* ---- nodes -------------------------------------------------------------- */

static tl_status host_result(const host *h, tl_gclass cls, tl_gscalar *out)
{
    if (h->op == TL_H_choose) {
        *out = h->in[0].b ? h->in[1] : h->in[2];
        return TL_OK;
    }
    switch (cls) {
    case TL_GC_INT:
        return int_result(h, &out->i);
    case TL_GC_FLOAT:
        return float_result(h, &out->f);
    default:
        out->b = bool_result(h);
        return TL_OK;
    }
}

static tl_status compute(const tl_graph *g, const tl_gnode *n,
                         const tl_genv *env, tl_gscalar *out, tl_diag *diag)
{
    host h = {.op = (tl_ghost)n->op, .diag = diag};
    const tl_gattrs *at = &g->attrs.items[n->attrs];

    if (n->kind == TL_G_NUM) {
        out->i = at->i[0];
        return TL_OK;
    }
    if (n->kind == TL_G_SIZE) {
        return tl_graph_size_eval(g, g->sizes.items[at->dims], env->atom,
                                  &out->i, diag);
    }
    TL_CHECK(n->kind == TL_G_HOST && n->nin <= 3);
    for (uint32_t k = 0; k < n->nin; k++) {
        tl_gval v = tl_goperand(g, n, k);

        h.in[k] = env->scalar[v];
        h.cls[k] = (tl_gclass)g->values.items[v].cls;
    }
    return host_result(&h, (tl_gclass)g->values.items[n->out].cls, out);
}

tl_status tl_graph_host(const tl_graph *g, uint32_t node, tl_genv *env,
                        tl_diag *diag)
{
    const tl_gnode *n = &g->nodes.items[node];
    tl_gscalar res = {.bits = 0};
    tl_status st = compute(g, n, env, &res, diag);

    if (st != TL_OK) {
        tl_diag_at(diag, n->span);
        return st;
    }
    env->scalar[n->out] = res;
    env->known[n->out] = 1;
    return TL_OK;
}
