/* gen_elementwise.c - operations on each element, and reductions. */
#include <math.h>
#include <string.h>

#include "tests/compile/gen_impl.h"

/* ---- of one operand ------------------------------------------------------ */

typedef enum need { ANY, SMALL, POSITIVE, NOT_NEGATIVE } need;

typedef struct map1 {
    const char *name;
    int classes;
    need need;
    double lo, hi; /* of the result; lo > hi: as the operand's, or wider */
} map1;

static const map1 map1s[] = {
    {"exp", W_FLOAT, SMALL, 0, 60},
    {"exp2", W_FLOAT, SMALL, 0, 16},
    {"expm1", W_FLOAT, SMALL, -1, 60},
    {"log", W_FLOAT, POSITIVE, -8, 8},
    {"log2", W_FLOAT, POSITIVE, -10, 11},
    {"log1p", W_FLOAT, NOT_NEGATIVE, 0, 8},
    {"sqrt", W_FLOAT, NOT_NEGATIVE, 0, 32},
    {"rsqrt", W_FLOAT, POSITIVE, 0, 100},
    {"sin", W_FLOAT, ANY, -1, 1},
    {"cos", W_FLOAT, ANY, -1, 1},
    {"tan", W_FLOAT, SMALL, -2000, 2000},
    {"tanh", W_FLOAT, ANY, -1, 1},
    {"sigmoid", W_FLOAT, ANY, 0, 1},
    {"erf", W_FLOAT, ANY, -1, 1},
    {"abs", W_NUM, ANY, 1, 0},
    {"sign", W_NUM, ANY, -1, 1},
    {"floor", W_FLOAT, ANY, 1, 0},
    {"ceil", W_FLOAT, ANY, 1, 0},
    {"round", W_FLOAT, ANY, 1, 0},
    {"relu", W_NUM, ANY, 1, 0},
    {"gelu", W_FLOAT, ANY, 1, 0},
    {"gelu_tanh", W_FLOAT, ANY, 1, 0},
    {"silu", W_FLOAT, ANY, 1, 0},
    {"softplus", W_FLOAT, ANY, 1, 0},
    {"softsign", W_FLOAT, ANY, -1, 1},
    {"leaky_relu", W_FLOAT, ANY, 1, 0},
    {"elu", W_FLOAT, ANY, 1, 0},
};

static const char *fitted(gen *g, const val *a, need n)
{
    if (rng_chance(&g->r, 3)) {
        return a->text; /* whatever comes out: nan and infinities too */
    }
    switch (n) {
    case SMALL:
        return a->hi <= 4 && a->lo >= -4 ? a->text
                                         : str(g, "tanh(%s)", a->text);
    case POSITIVE:
        return a->lo > 1e-3 ? a->text : str(g, "(abs(%s) + 0.5)", a->text);
    case NOT_NEGATIVE:
        return a->lo >= 0 ? a->text : str(g, "abs(%s)", a->text);
    default:
        return a->text;
    }
}

static bool op_map1(gen *g)
{
    const map1 *m = &map1s[rng_below(&g->r, sizeof(map1s) / sizeof(*map1s))];
    val a = operand(g, m->classes, 0, RANK);
    const char *arg = fitted(g, &a, m->need);

    if (m->lo <= m->hi) {
        a.lo = m->lo;
        a.hi = m->hi;
    } else {
        double most = fmax(fabs(a.lo), fabs(a.hi)) + 1;

        a.lo = -most;
        a.hi = most;
    }
    if (strcmp(m->name, "leaky_relu") == 0 || strcmp(m->name, "elu") == 0) {
        a.text = str(g, "%s(%s, %s)", m->name, arg, number(g, 0, 1));
    } else if (arg == a.text && a.text[0] == 'v' && rng_chance(&g->r, 30)) {
        a.text = str(g, "%s.%s()", arg, m->name);
    } else {
        a.text = str(g, "%s(%s)", m->name, arg);
    }
    put(g, a);
    return true;
}

static bool op_neg(gen *g)
{
    val a = operand(g, W_NUM, 0, RANK);
    double lo = a.lo;

    a.text = str(g, "(-%s)", a.text);
    a.lo = -a.hi;
    a.hi = -lo;
    put(g, a);
    return true;
}

static bool op_not(gen *g)
{
    val a = operand(g, W_BOOL, 0, RANK);

    a.text = str(g, "(not %s)", a.text);
    put(g, a);
    return true;
}

static bool op_isnan(gen *g)
{
    val a = operand(g, W_FLOAT, 0, RANK);

    a.text = str(g, rng_chance(&g->r, 50) ? "isnan(%s)" : "isfinite(%s)",
                 a.text);
    a.dtype = TL_bool;
    a.lo = 0;
    a.hi = 1;
    put(g, a);
    return true;
}

static bool op_clamp(gen *g)
{
    val a = operand(g, W_FLOAT, 0, RANK);
    const char *lo = number(g, -2, 0), *hi = number(g, 0.2, 3);

    a.text = rng_chance(&g->r, 20)   ? str(g, "clamp(%s, none, %s)", a.text,
                                           hi)
             : rng_chance(&g->r, 20) ? str(g, "clamp(%s, %s)", a.text, lo)
                                     : str(g, "clamp(%s, %s, %s)", a.text, lo,
                                           hi);
    a.lo = fmin(a.lo, -2);
    a.hi = fmax(a.hi, 3);
    put(g, a);
    return true;
}

/* ---- of two -------------------------------------------------------------- */

/* An operand whose shape goes with a's; `r` gets the sizes of both. */
static bool partner(gen *g, const val *a, int classes, val *b, val *r)
{
    dim d[RANK];
    int rank = a->rank;
    const dim *from = a->d;

    for (int i = 0; i < 3; i++) {
        if (pick(g, classes, 0, RANK, b)) {
            if (broadcast(g, a, b, r)) {
                return true;
            }
            give_back(g, b);
        }
    }
    if (rank > 0 && rng_chance(&g->r, 40)) { /* without leading axes */
        int cut = rng_range(&g->r, 0, rank);

        from += cut;
        rank -= cut;
    }
    for (int k = 0; k < rank; k++) {
        d[k] = rank == a->rank && rng_chance(&g->r, 20) ? dim_of(1) : from[k];
    }
    tl_dtype t = classes & W_FLOAT ? (a->dtype == TL_f64 ? TL_f64 : TL_f32)
                 : classes & W_INT ? TL_i64
                                   : TL_bool;

    return leaf(g, t, rank, d, b) && broadcast(g, a, b, r);
}

static tl_dtype join(tl_dtype a, tl_dtype b)
{
    return tl_dtype_join(a, b);
}

static void bounds(char op, const val *a, const val *b, val *r)
{
    double x = fmax(fabs(a->lo), fabs(a->hi));
    double y = fmax(fabs(b->lo), fabs(b->hi));

    if (op == '+') {
        r->lo = a->lo + b->lo;
        r->hi = a->hi + b->hi;
    } else if (op == '-') {
        r->lo = a->lo - b->hi;
        r->hi = a->hi - b->lo;
    } else if (op == '*') {
        bool positive = a->lo >= 0 && b->lo >= 0;

        r->hi = x * y;
        r->lo = positive ? 0 : -x * y;
    } else if (op == 'm') {
        r->lo = fmin(a->lo, b->lo);
        r->hi = fmax(a->hi, b->hi);
    } else {
        r->hi = x + y + 2;
        r->lo = -r->hi;
    }
}

static void swap(gen *g, const val **x, const val **y)
{
    if (rng_chance(&g->r, 40)) {
        const val *t = *x;

        *x = *y;
        *y = t;
    }
}

static bool op_arith(gen *g)
{
    val a = operand(g, W_ANY, 0, RANK), b, r = a;
    char op = "+-*"[rng_below(&g->r, 3)];
    const val *x = &a, *y = &b;

    if (!partner(g, &a, a.dtype == TL_bool ? W_NUM : W_ANY, &b, &r)) {
        give_back(g, &a);
        return false;
    }
    if (a.dtype == TL_bool && b.dtype == TL_bool) {
        return false;
    }
    swap(g, &x, &y);
    r.dtype = join(a.dtype, b.dtype);
    r.text = str(g, "(%s %c %s)", x->text, op, y->text);
    bounds(op, x, y, &r);
    put(g, r);
    return true;
}

static bool op_extreme(gen *g)
{
    static const char *const names[] = {"maximum", "minimum", "logaddexp"};
    int i = rng_below(&g->r, 3);
    val a = operand(g, i == 2 ? W_FLOAT : W_NUM, 0, RANK), b, r = a;

    if (!partner(g, &a, class_of(a.dtype), &b, &r)) {
        give_back(g, &a);
        return false;
    }
    r.dtype = join(a.dtype, b.dtype);
    r.text = str(g, "%s(%s, %s)", names[i], a.text, b.text);
    bounds(i == 2 ? '?' : 'm', &a, &b, &r);
    put(g, r);
    return true;
}

static bool op_divide(gen *g)
{
    static const char *const ops[] = {"/", "/", "//", "%"};
    const char *op = ops[rng_below(&g->r, 4)];
    val a = operand(g, W_NUM, 0, RANK), b, r = a;

    if (!partner(g, &a, W_NUM, &b, &r)) {
        give_back(g, &a);
        return false;
    }
    const char *by = class_of(b.dtype) == W_INT
                         ? str(g, "(abs(%s) %% 5 + 1)", b.text)
                         : str(g, "(abs(%s) + 0.5)", b.text);

    r.dtype = join(a.dtype, b.dtype);
    if (op[0] == '/' && op[1] == '\0' && class_of(r.dtype) == W_INT) {
        r.dtype = TL_f32;
    }
    r.text = str(g, "(%s %s %s)", a.text, op, by);
    r.hi = 2 * fmax(fabs(a.lo), fabs(a.hi)) + fmax(fabs(b.lo), fabs(b.hi));
    r.lo = -(r.hi += 6);
    put(g, r);
    return true;
}

static bool op_power(gen *g)
{
    val a = operand(g, W_FLOAT, 0, RANK);
    const char *arg = a.text;
    double most = fmax(fabs(a.lo), fabs(a.hi));

    if (most > 8) {
        arg = str(g, "tanh(%s)", arg);
        most = 1;
    }
    if (rng_chance(&g->r, 40)) {
        arg = str(g, "(abs(%s) + 0.1)", arg);
        a.text = rng_chance(&g->r, 50)
                     ? str(g, "(%s ** %s)", arg, number(g, -1, 2))
                     : str(g, "pow(%s, %s)", arg, number(g, -1, 2));
        a.lo = 0;
        a.hi = most * most + 12;
    } else {
        int e = rng_range(&g->r, 0, 3);

        a.text = str(g, "(%s ** %d)", arg, e);
        a.hi = fmax(1, pow(most, e));
        a.lo = -a.hi;
    }
    put(g, a);
    return true;
}

/* ---- with numbers of the host -------------------------------------------- */

static bool op_scalar(gen *g)
{
    val a = operand(g, W_NUM, 0, RANK), n;
    char op = "+-*"[rng_below(&g->r, 3)];
    bool left = rng_chance(&g->r, 30);
    val b = {.lo = -4, .hi = 4};

    if (rng_chance(&g->r, 40) && pick_int(g, 0, 50, &n)) {
        b.text = n.text;
        b.lo = dim_min(g, n.d[0]);
        b.hi = dim_max(g, n.d[0]);
    } else if (class_of(a.dtype) == W_INT && rng_chance(&g->r, 50)) {
        b.text = str(g, "%d", rng_range(&g->r, 1, 3));
    } else {
        b.text = number(g, -4, 4);
        a.dtype = class_of(a.dtype) == W_INT ? TL_f32 : a.dtype;
    }
    val r = a;

    bounds(op, left ? &b : &a, left ? &a : &b, &r);
    r.text = left ? str(g, "(%s %c %s)", b.text, op, a.text)
                  : str(g, "(%s %c %s)", a.text, op, b.text);
    put(g, r);
    return true;
}

static bool op_scalar_divide(gen *g)
{
    val a = operand(g, W_FLOAT, 0, RANK), n;

    if (rng_chance(&g->r, 40) && pick_int(g, 1, 50, &n)) {
        a.text = str(g, "(%s / %s)", a.text, n.text);
    } else if (rng_chance(&g->r, 50)) {
        a.text = str(g, "(%s / %s)", a.text, number(g, 0.5, 4));
        a.lo *= 2;
        a.hi *= 2;
    } else {
        a.text = str(g, "(%s / (abs(%s) + 0.5))", number(g, -4, 4), a.text);
        a.hi = 8;
        a.lo = -8;
    }
    put(g, a);
    return true;
}

/* ---- choice and comparison ----------------------------------------------- */

static bool op_compare(gen *g)
{
    static const char *const ops[] = {"==", "!=", "<", "<=", ">", ">="};
    const char *op = ops[rng_below(&g->r, 6)];
    val a = operand(g, W_NUM, 0, RANK), b, r = a;

    if (rng_chance(&g->r, 40)) {
        r.text = str(g, "(%s %s %s)", a.text, op,
                     class_of(a.dtype) == W_INT
                         ? str(g, "%d", rng_range(&g->r, 0, 3))
                         : number(g, -2, 2));
    } else if (partner(g, &a, W_NUM, &b, &r)) {
        r.text = str(g, "(%s %s %s)", a.text, op, b.text);
    } else {
        give_back(g, &a);
        return false;
    }
    r.dtype = TL_bool;
    r.lo = 0;
    r.hi = 1;
    put(g, r);
    return true;
}

static bool op_logic(gen *g)
{
    val a = operand(g, W_BOOL, 0, RANK), b, r = a;

    if (!partner(g, &a, W_BOOL, &b, &r)) {
        give_back(g, &a);
        return false;
    }
    r.text = str(g, rng_chance(&g->r, 50) ? "(%s and %s)" : "(%s or %s)",
                 a.text, b.text);
    put(g, r);
    return true;
}

static bool op_where(gen *g)
{
    val a = operand(g, W_FLOAT, 0, RANK), b, c, ab = a, r = a;

    if (!partner(g, &a, W_FLOAT, &b, &ab) ||
        !partner(g, &ab, W_BOOL, &c, &r) || !broadcast(g, &a, &c, &r) ||
        !broadcast(g, &b, &c, &r)) {
        return false;
    }
    r.dtype = join(a.dtype, b.dtype);
    if (rng_chance(&g->r, 30) && broadcast(g, &a, &c, &r)) {
        r.dtype = a.dtype;
        r.text = str(g, "where(%s, %s, %s)", c.text, a.text,
                     number(g, -2, 2));
        r.lo = fmin(a.lo, -2);
        r.hi = fmax(a.hi, 2);
    } else if (broadcast(g, &ab, &c, &r)) {
        r.text = str(g, "where(%s, %s, %s)", c.text, a.text, b.text);
        bounds('m', &a, &b, &r);
    }
    put(g, r);
    return true;
}

static bool op_cast(gen *g)
{
    static const tl_dtype to[] = {TL_f32, TL_f64, TL_i64, TL_i32, TL_bool,
                                  TL_f32, TL_f64};
    val a = operand(g, W_ANY, 0, RANK);
    tl_dtype t = to[rng_below(&g->r, 7)];

    if (t == TL_bool) {
        a.text = str(g, "(%s != 0)", a.text);
        a.hi = 1;
        a.lo = 0;
    } else {
        a.text = str(g, "%s(%s)", tl_dtype_name(t), a.text);
    }
    a.dtype = t;
    put(g, a);
    return true;
}

/* Some steps in half precision. */
static bool op_low(gen *g)
{
    static const char *const steps[][2] = {{"tanh(", ")"}, {"", " * 0.5"},
                                           {"sigmoid(", ")"}, {"abs(", ")"},
                                           {"silu(", ")"}, {"0.25 - ", ""}};
    val a = operand(g, W_FLOAT, 0, RANK);
    const char *text = str(g, rng_chance(&g->r, 60) ? "bf16(%s)" : "f16(%s)",
                           a.text);

    for (int n = rng_range(&g->r, 1, 3); n > 0; n--) {
        const char *const *s = steps[rng_below(&g->r, 6)];

        text = str(g, "(%s%s%s)", s[0], text, s[1]);
    }
    a.text = str(g, "f32(%s)", text);
    a.dtype = TL_f32;
    a.hi = fmax(fabs(a.lo), fabs(a.hi)) + 1;
    a.lo = -a.hi;
    put(g, a);
    return true;
}

static bool op_loss(gen *g)
{
    static const char *const names[] = {"mse", "l1", "huber", "bce_logits",
                                        "kl"};
    const char *name = names[rng_below(&g->r, 5)];
    val a = operand(g, W_FLOAT, 1, RANK), b;

    if (!pick_like(g, &a, W_FLOAT, &b) &&
        !leaf(g, a.dtype, a.rank, a.d, &b)) {
        give_back(g, &a);
        return false;
    }
    const char *y = name[0] == 'b' || name[0] == 'k'
                        ? str(g, "sigmoid(%s)", b.text)
                        : b.text;
    double most = fmax(fabs(a.lo), fabs(a.hi)) + fmax(fabs(b.lo), fabs(b.hi));

    a.dtype = join(a.dtype, b.dtype);
    if (rng_chance(&g->r, 30)) {
        a.text = str(g, "%s(%s, %s, reduce=none)", name, a.text, y);
    } else {
        a.text = str(g, rng_chance(&g->r, 50) ? "%s(%s, %s)"
                                              : "%s(%s, %s, reduce=sum)",
                     name, a.text, y);
        most *= numel_max(g, &a);
        a.rank = 0;
    }
    a.hi = most * most + 1;
    a.lo = -a.hi;
    put(g, a);
    return true;
}

const op_row gen_elementwise[] = {
    {op_map1, 40},  {op_neg, 4},     {op_not, 3},     {op_isnan, 4},
    {op_clamp, 4},  {op_arith, 30},  {op_extreme, 8}, {op_divide, 8},
    {op_power, 6},  {op_scalar, 14}, {op_scalar_divide, 4},
    {op_compare, 8}, {op_logic, 5},  {op_where, 6},   {op_cast, 8},
    {op_loss, 6},   {op_low, 3},     {0},
};
