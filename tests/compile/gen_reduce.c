/* gen_reduce.c - reductions, scans, softmax, normalisation. */
#include <math.h>
#include <string.h>

#include "tests/compile/gen_impl.h"

/* "axis=1", "axis=(0, 2), keep=true" for a value; its sizes change. */
static const char *axes(gen *g, val *v, bool several)
{
    bool gone[RANK] = {false}, keep = rng_chance(&g->r, 35);
    const char *text = "";
    int n = 0, rank = 0;

    if (v->rank == 0 || rng_chance(&g->r, 30)) {
        v->rank = 0;
        return "";
    }
    for (int i = 0; i < (several ? rng_range(&g->r, 1, 2) : 1); i++) {
        int k = rng_below(&g->r, v->rank);

        if (!gone[k]) {
            text = str(g, n > 0 ? "%s, %d" : "%s%d", text,
                       rng_chance(&g->r, 25) ? k - v->rank : k);
            gone[k] = true;
            n++;
        }
    }
    for (int k = 0; k < v->rank; k++) {
        if (!gone[k]) {
            v->d[rank++] = v->d[k];
        } else if (keep) {
            v->d[rank++] = dim_of(1);
        }
    }
    v->rank = rank;
    return str(g, n > 1 ? "axis=(%s)%s" : "axis=%s%s", text,
               keep ? ", keep=true" : "");
}

/* How many elements a result element is made of, at least and at most. */
static void counts(const gen *g, const val *before, const val *after,
                   double *least, double *most)
{
    *least = INFINITY;
    *most = 0;
    for (int c = 0; c < g->ncalls; c++) {
        double n = 1;

        for (int k = 0; k < before->rank; k++) {
            n *= before->d[k].n[c];
        }
        for (int k = 0; k < after->rank; k++) {
            n /= after->d[k].n[c] > 0 ? after->d[k].n[c] : 1;
        }
        *least = fmin(*least, n);
        *most = fmax(*most, n);
    }
}

static void emit(gen *g, const char *name, val *r, const char *arg,
                 const char *how)
{
    bool method = strchr("vabcx", arg[0]) != NULL && rng_chance(&g->r, 60);

    if (method && strchr(arg, ' ') == NULL) {
        r->text = str(g, "%s.%s(%s)", arg, name, how);
    } else {
        r->text = str(g, "%s(%s%s%s)", name, arg, how[0] ? ", " : "", how);
    }
    put(g, *r);
}

static bool has_elements(const gen *g, const val *v)
{
    for (int k = 0; k < v->rank; k++) {
        if (dim_min(g, v->d[k]) < 1) {
            return false;
        }
    }
    return true;
}

static bool op_reduce(gen *g)
{
    static const char *const names[] = {"sum",  "sum",  "sum", "mean", "mean",
                                        "prod", "norm", "max", "min",
                                        "logsumexp", "max", "min"};
    const char *name = names[rng_below(&g->r, 12)];
    bool real = name[0] == 'n' || name[0] == 'l';
    val a = operand(g, real ? W_FLOAT : W_NUM, 0, RANK), r = a;
    double least, most, size = fmax(fabs(a.lo), fabs(a.hi));

    if (!has_elements(g, &a)) {
        give_back(g, &a);
        return false;
    }
    const char *how = axes(g, &r, name[1] != 'a' && strcmp(name, "min") != 0);

    counts(g, &a, &r, &least, &most);
    if (strcmp(name, "sum") == 0) {
        r.lo = fmin(0, a.lo) * most;
        r.hi = fmax(0, a.hi) * most;
    } else if (name[0] == 'p') {
        r.hi = pow(fmax(size, 1), most);
        r.lo = -r.hi;
    } else if (name[0] == 'n') {
        r.lo = 0;
        r.hi = size * sqrt(most);
    } else if (name[0] == 'l') {
        r.hi = a.hi + log(most) + 1;
    }
    if (class_of(a.dtype) == W_INT) {
        r.dtype = name[0] == 's' || name[0] == 'p' ? TL_i64
                  : strcmp(name, "mean") == 0      ? TL_f32
                                                   : a.dtype;
        if (r.dtype == TL_i64 && !(r.hi < 1e15)) {
            r.hi = 1e15; /* wraps: any value */
            r.lo = -1e15;
        }
    }
    emit(g, name, &r, a.text, how);
    return true;
}

static bool op_arg(gen *g)
{
    val a = operand(g, W_NUM, 1, RANK), r = a;
    double least, most;

    if (!has_elements(g, &a)) {
        give_back(g, &a);
        return false;
    }
    const char *how = axes(g, &r, false);

    counts(g, &a, &r, &least, &most);
    r.dtype = TL_i64;
    r.lo = 0;
    r.hi = most - 1;
    emit(g, rng_chance(&g->r, 50) ? "argmax" : "argmin", &r, a.text, how);
    return true;
}

static bool op_any(gen *g)
{
    val a = operand(g, W_BOOL, 0, RANK), r = a;
    const char *how = axes(g, &r, true);
    int i = rng_below(&g->r, 3);

    if (i == 2) {
        double least, most;

        counts(g, &a, &r, &least, &most);
        r.dtype = TL_i64;
        r.hi = most;
    }
    emit(g, i == 0 ? "any" : i == 1 ? "all" : "sum", &r, a.text, how);
    return true;
}

static bool op_spread(gen *g)
{
    val a = operand(g, W_FLOAT, 1, RANK), r = a;
    double least, most, size = fmax(fabs(a.lo), fabs(a.hi));
    const char *how = axes(g, &r, true);

    counts(g, &a, &r, &least, &most);
    if (least < 1 || !has_elements(g, &a)) {
        give_back(g, &a);
        return false;
    }
    if (least < 2 || rng_chance(&g->r, 40)) {
        how = str(g, "%s%scorrection=0", how, how[0] ? ", " : "");
    }
    bool var = rng_chance(&g->r, 50);

    r.lo = 0;
    r.hi = 2 * (var ? size * size : size) + 1;
    emit(g, var ? "var" : "std", &r, a.text, how);
    return true;
}

static bool op_scan(gen *g)
{
    val a = operand(g, W_NUM, 1, RANK);
    int k = rng_below(&g->r, a.rank), n = dim_max(g, a.d[k]);
    double size = fmax(fabs(a.lo), fabs(a.hi));
    const char *axis = k == a.rank - 1 && rng_chance(&g->r, 50)
                           ? ""
                           : str(g, ", axis=%d", k);

    if (rng_chance(&g->r, 60)) {
        a.text = str(g, "cumsum(%s%s)", a.text, axis);
        a.hi = size * n;
    } else {
        a.text = str(g, "cumprod(%s%s)", a.text, axis);
        a.hi = pow(fmax(size, 1), n);
    }
    a.lo = -a.hi;
    if (class_of(a.dtype) == W_INT) {
        a.dtype = TL_i64;
        a.hi = fmin(a.hi, 1e15);
        a.lo = -a.hi;
    }
    put(g, a);
    return true;
}

static bool op_softmax(gen *g)
{
    val a = operand(g, W_FLOAT, 1, RANK);
    int k = rng_below(&g->r, a.rank);
    bool is_log = rng_chance(&g->r, 40);
    const char *name = is_log ? "log_softmax" : "softmax";

    a.text = k == a.rank - 1 && rng_chance(&g->r, 50)
                 ? str(g, "%s(%s)", name, a.text)
                 : str(g, "%s(%s, axis=%d)", name, a.text, k);
    a.lo = is_log ? -2 * fmax(fabs(a.lo), fabs(a.hi)) - 8 : 0;
    a.hi = is_log ? 0 : 1;
    put(g, a);
    return true;
}

static bool op_layer_norm(gen *g)
{
    val a = operand(g, W_FLOAT, 1, RANK), w, b;
    dim last = a.d[a.rank - 1];
    int how = rng_below(&g->r, 4);

    if (how == 0 || !leaf(g, a.dtype, 1, &last, &w) ||
        !leaf(g, a.dtype, 1, &last, &b)) {
        a.text = str(g, "layer_norm(%s)", a.text);
    } else if (how == 1) {
        a.text = str(g, "layer_norm(%s, %s)", a.text, w.text);
    } else {
        a.text = str(g, "layer_norm(%s, %s, %s, eps=1e-3)", a.text, w.text,
                     b.text);
    }
    a.lo = -80;
    a.hi = 80;
    put(g, a);
    return true;
}

static bool op_rms_norm(gen *g)
{
    val a = operand(g, W_FLOAT, 1, RANK), w;
    dim last = a.d[a.rank - 1];

    if (rng_chance(&g->r, 50) || !leaf(g, a.dtype, 1, &last, &w)) {
        a.text = str(g, "rms_norm(%s)", a.text);
    } else {
        a.text = str(g, "rms_norm(%s, %s, eps=1e-3)", a.text, w.text);
    }
    a.lo = -80;
    a.hi = 80;
    put(g, a);
    return true;
}

/* Values of each statistic, at least, in every call. */
static int per_statistic(gen *g, const val *a, bool batch)
{
    int n = batch ? dim_min(g, a->d[0]) : 1;

    for (int i = 2; i < a->rank; i++) {
        n *= dim_min(g, a->d[i]);
    }
    return n;
}

/* Batch, instance or group norm of x[N, C, ..]. */
static bool op_channel_norm(gen *g)
{
    val a = operand(g, W_FLOAT, 2, RANK), w, b;
    int which = rng_below(&g->r, 3);
    const char *more = "";

    if (which < 2 && per_statistic(g, &a, which == 0) < 2) {
        which = 2;
    }
    if (rng_chance(&g->r, 50) && leaf(g, a.dtype, 1, &a.d[1], &w) &&
        leaf(g, a.dtype, 1, &a.d[1], &b)) {
        more = str(g, ", %s, %s", w.text, b.text);
    }
    if (which == 2) {
        a.text = str(g, "group_norm(%s, 1%s)", a.text, more);
    } else {
        a.text = str(g, "%s_norm(%s%s, eps=1e-3)%s",
                     which == 0 ? "batch" : "instance", a.text, more,
                     which == 0 ? "[0]" : "");
    }
    a.lo = -320;
    a.hi = 320;
    put(g, a);
    return true;
}

/* A size of which every call has at least n. */
static bool all_at_least(gen *g, const val *a, int n)
{
    bool all = true;

    for (int i = 2; i < a->rank; i++) {
        all &= dim_min(g, a->d[i]) >= n && dim_const(g, a->d[i]);
    }
    return all;
}

/* What a pool does along each axis. */
typedef struct pool {
    int size, stride, pad, dilation;
    bool ceil;
} pool;

/* Windows over n elements; one that begins in the right padding is none. */
static int windows(const pool *p, int n)
{
    int rest = n + 2 * p->pad - p->dilation * (p->size - 1) - 1;
    int out = (rest + (p->ceil ? p->stride - 1 : 0)) / p->stride + 1;

    return p->ceil && (out - 1) * p->stride >= n + p->pad ? out - 1 : out;
}

static const char *pool_call(gen *g, val *a, bool max)
{
    pool p = {.size = rng_range(&g->r, 1, 3), .stride = rng_range(&g->r, 1, 3),
              .dilation = 1, .ceil = rng_chance(&g->r, 30)};
    const char *more = p.ceil ? ", ceil_mode=true" : "";
    /* with `axes`, of the last only: what comes before is a batch */
    int from = rng_chance(&g->r, 20) ? a->rank - 1 : 2;

    p.pad = rng_below(&g->r, p.size / 2 + 1);
    if (max && p.size == 2 && rng_chance(&g->r, 40)) {
        p.dilation = 2;
        more = str(g, "%s, dilation=2", more);
    } else if (!max && rng_chance(&g->r, 30)) {
        more = str(g, "%s, count_include_pad=false", more);
    } else if (!max && rng_chance(&g->r, 20)) {
        more = str(g, "%s, divisor_override=3", more);
        a->lo *= 9;
        a->hi *= 9;
    }
    for (int i = from; i < a->rank; i++) {
        a->d[i] = dim_of(windows(&p, dim_min(g, a->d[i])));
    }
    return str(g, "%s(%s, %d, %d, %d%s%s)", max ? "max_pool" : "avg_pool",
               a->text, p.size, p.stride, p.pad, more,
               from > 2 ? ", axes=1" : "");
}

/* Another size, in the way of images. */
static const char *resize_call(gen *g, const val *a, int n)
{
    static const char *const modes[] = {
        "\"nearest\"", "\"nearest-exact\"", "\"linear\"",
        "\"linear\", align_corners=true", "\"area\"", "\"bicubic\""};
    int mode = rng_below(&g->r, a->rank == 4 ? 6 : 5);

    return str(g, "interpolate(%s, %d, mode=%s)", a->text, n, modes[mode]);
}

/* Pooling and interpolation of x[N, C, ..]. */
static bool op_pool(gen *g)
{
    int how = rng_below(&g->r, 7), n = rng_range(&g->r, 1, 5);
    /* of integers, sometimes: through them no gradient flows */
    bool any = (how == 0 || how == 3) && rng_chance(&g->r, 20);
    val a = operand(g, any ? W_NUM : W_FLOAT, 3, RANK);

    if (!all_at_least(g, &a, 3)) {
        give_back(g, &a);
        return false;
    }
    if (how < 2) {
        a.text = pool_call(g, &a, how == 0);
    } else {
        for (int i = 2; i < a.rank; i++) {
            a.d[i] = dim_of(n);
        }
        a.text = how == 2   ? str(g, "adaptive_avg_pool(%s, %d)", a.text, n)
                 : how == 3 ? str(g, "adaptive_max_pool(%s, %d)", a.text, n)
                            : resize_call(g, &a, n);
        a.lo -= how > 3 ? fabs(a.hi) : 0; /* bicubic goes beyond */
        a.hi += how > 3 ? fabs(a.hi) : 0;
    }
    put(g, a);
    return true;
}

static bool op_cross_entropy(gen *g)
{
    val a = operand(g, W_FLOAT, 2, 3), y;
    int classes = dim_min(g, a.d[a.rank - 1]);

    if (classes < 1 || !leaf(g, TL_i64, a.rank - 1, a.d, &y)) {
        give_back(g, &a);
        return false;
    }
    const char *target = str(g, "(%s %% %d)", y.text, classes);
    const char *name = "cross_entropy", *more = "", *x = a.text;
    val r = a;

    if (rng_chance(&g->r, 25)) {
        name = "nll";
        x = str(g, "log_softmax(%s)", x);
    } else if (rng_chance(&g->r, 25)) {
        more = ", label_smoothing=0.1";
    }
    if (rng_chance(&g->r, 20)) {
        more = str(g, "%s, ignore_index=0", more);
    }
    r.rank = 0;
    r.hi = 4 * fmax(fabs(a.lo), fabs(a.hi)) + 16;
    if (rng_chance(&g->r, 25)) {
        more = str(g, "%s, reduce=none", more);
        r.rank = a.rank - 1;
    } else if (rng_chance(&g->r, 25)) {
        more = str(g, "%s, reduce=sum", more);
        r.hi *= numel_max(g, &a);
    }
    r.lo = -r.hi;
    r.text = str(g, "%s(%s, %s%s)", name, x, target, more);
    put(g, r);
    return true;
}

static bool op_dropout(gen *g)
{
    val a = operand(g, W_FLOAT, 1, RANK);

    if (g->pure) {
        give_back(g, &a);
        return false;
    }
    a.text = str(g, "dropout(%s, %s)", a.text, number(g, 0.1, 0.9));
    a.lo = fmin(0, a.lo) * 10;
    a.hi = fmax(0, a.hi) * 10;
    put(g, a);
    return true;
}

static bool op_bernoulli(gen *g)
{
    val a = operand(g, W_FLOAT, 0, RANK);

    if (g->pure) {
        give_back(g, &a);
        return false;
    }
    a.text = str(g, "bernoulli(sigmoid(%s))", a.text);
    a.lo = 0;
    a.hi = 1;
    put(g, a);
    return true;
}

static bool op_multinomial(gen *g)
{
    val a = operand(g, W_FLOAT, 1, RANK);
    int n = rng_range(&g->r, 1, 4);

    if (g->pure || numel_max(g, &a) == 0 || !has_elements(g, &a)) {
        give_back(g, &a);
        return false;
    }
    a.dtype = TL_i64;
    a.lo = 0;
    a.hi = dim_max(g, a.d[a.rank - 1]) - 1;
    a.d[a.rank - 1] = dim_of(n);
    a.text = str(g, "multinomial(sigmoid(%s) + 0.1, %d, replacement=true)",
                 a.text, n);
    put(g, a);
    return true;
}

const op_row gen_reduce[] = {
    {op_reduce, 24},  {op_arg, 5},         {op_any, 5},
    {op_spread, 6},   {op_scan, 10},       {op_softmax, 9},
    {op_layer_norm, 7}, {op_rms_norm, 5}, {op_channel_norm, 9}, {op_pool, 14},
    {op_cross_entropy, 7}, {op_dropout, 3},
    {op_bernoulli, 3}, {op_multinomial, 2}, {0},
};

const op_row gen_regions[] = {
    {op_softmax, 16},      {op_layer_norm, 2}, {op_rms_norm, 8},
    {op_channel_norm, 14}, {op_pool, 20},      {op_cross_entropy, 12},
    {gen_sdpa, 22},        {gen_embedding, 9}, {op_scan, 16},
    {gen_linalg, 12},      {gen_conv, 16},     {0},
};
