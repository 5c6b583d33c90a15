/* formula_eval.c - formulas in double arithmetic.
 *
 * The functions are libm's, or made of libm's: independent of the kernels'
 * own, so that tests can compare the two. */
#include <math.h>

#include "runtime/base/check.h"
#include "runtime/op/formula_impl.h"

static double eval_sigmoid(double x)
{
    double z = exp(-fabs(x));

    return x < 0 ? z / (1 + z) : 1 / (1 + z);
}

static double eval_normcdf(double x)
{
    return 0.5 * erfc(-x * 0.70710678118654752440);
}

static double eval_gelu(double x)
{
    return x < -40 ? -0.0 : x * eval_normcdf(x);
}

static double eval_silu(double x)
{
    return x < -800 ? -0.0 : x * eval_sigmoid(x);
}

static double eval_gelu_tanh(double x)
{
    double u2 = 1.5957691216057308 * (x + 0.044715 * x * x * x);

    return x < -30 ? -0.0 : x * eval_sigmoid(u2);
}

static double eval_logaddexp(double a, double b)
{
    double hi = fmax(a, b);

    return a == b ? a + 0.69314718055994530942
                  : hi + log1p(exp(-fabs(a - b)));
}

static double eval_mod(double a, double b)
{
    double r = fmod(a, b);

    return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

static double eval_floordiv(double a, double b)
{
    return b == 0 ? a / b : rint((a - eval_mod(a, b)) / b);
}

static double eval_zmul(double u, double v)
{
    return u == 0 ? 0 : u * v;
}

static const struct {
    tl_op op;
    double (*fn)(double);
} unary[] = {
    {TL_OP_abs, fabs},
    {TL_OP_floor, floor},
    {TL_OP_ceil, ceil},
    {TL_OP_round, rint},
    {TL_OP_exp, exp},
    {TL_OP_exp2, exp2},
    {TL_OP_expm1, expm1},
    {TL_OP_log, log},
    {TL_OP_log2, log2},
    {TL_OP_log1p, log1p},
    {TL_OP_sqrt, sqrt},
    {TL_OP_sin, sin},
    {TL_OP_cos, cos},
    {TL_OP_tan, tan},
    {TL_OP_tanh, tanh},
    {TL_OP_sigmoid, eval_sigmoid},
    {TL_OP_erf, erf},
    {TL_OP_erfc, erfc},
    {TL_OP_normcdf, eval_normcdf},
    {TL_OP_gelu_tanh, eval_gelu_tanh},
    {TL_OP_gelu, eval_gelu},
    {TL_OP_silu, eval_silu},
};

static const struct {
    tl_op op;
    double (*fn)(double, double);
} binary[] = {
    {TL_OP_pow, pow},        {TL_OP_floordiv, eval_floordiv},
    {TL_OP_mod, eval_mod},   {TL_OP_logaddexp, eval_logaddexp},
    {TL_OP_zmul, eval_zmul},
};

enum {
    NUNARY = sizeof unary / sizeof *unary,
    NBINARY = sizeof binary / sizeof *binary
};

bool tl_formula_evaluates(tl_op op)
{
    for (int i = 0; i < NUNARY; i++) {
        if (unary[i].op == op) {
            return true;
        }
    }
    for (int i = 0; i < NBINARY; i++) {
        if (binary[i].op == op) {
            return true;
        }
    }
    return false;
}

static double eval_call(tl_op op, double a, double b)
{
    for (int i = 0; i < NUNARY; i++) {
        if (unary[i].op == op) {
            return unary[i].fn(a);
        }
    }
    for (int i = 0; i < NBINARY; i++) {
        if (binary[i].op == op) {
            return binary[i].fn(a, b);
        }
    }
    TL_CHECK(!"a function that tl_formula_evaluates");
    return 0;
}

static double eval_name(int name, const tl_formula_env *env)
{
    switch (name) {
    case 'y':
        return env->y;
    case 'g':
        return env->g;
    default:
        return name < 3 ? env->in[name] : env->p[name - '0'];
    }
}

static double eval_op(const tl_formula *f, const tl_formula_env *env)
{
    double a = tl_formula_eval(f->arg[0], env), b;

    if (f->op == TL_OP_where) {
        return tl_formula_eval(f->arg[a != 0 ? 1 : 2], env);
    }
    b = f->nargs > 1 ? tl_formula_eval(f->arg[1], env) : 0;
    switch (f->op) {
    case TL_OP_neg:
        return -a;
    case TL_OP_add:
        return a + b;
    case TL_OP_sub:
        return a - b;
    case TL_OP_mul:
        return a * b;
    case TL_OP_div:
        return a / b;
    case TL_OP_eq:
        return a == b;
    case TL_OP_ne:
        return a != b;
    case TL_OP_lt:
        return a < b;
    case TL_OP_le:
        return a <= b;
    case TL_OP_gt:
        return a > b;
    case TL_OP_ge:
        return a >= b;
    default:
        return eval_call(f->op, a, b);
    }
}

double tl_formula_eval(const tl_formula *f, const tl_formula_env *env)
{
    switch (f->kind) {
    case FORMULA_CONST:
        return f->value;
    case FORMULA_NAME:
        return eval_name(f->name, env);
    case FORMULA_OP:
        break;
    }
    return eval_op(f, env);
}
