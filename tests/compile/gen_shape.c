/* gen_shape.c - views, and tensors made of parts. */
#include <math.h>
#include <string.h>

#include "tests/compile/gen_impl.h"

/* A simple expression: a call may be written as its method. */
static bool is_simple(const val *v)
{
    return !v->once && v->text[0] != '-';
}

/* x.name(args) or name(x, args) */
static void call(gen *g, val *v, const char *name, const char *args)
{
    if (is_simple(v) && rng_chance(&g->r, 60)) {
        v->text = str(g, "%s.%s(%s)", v->text, name, args);
    } else {
        v->text = str(g, "%s(%s%s%s)", name, v->text, args[0] ? ", " : "",
                      args);
    }
    put(g, *v);
}

static bool op_permute(gen *g)
{
    val a = operand(g, W_ANY, 2, RANK), r = a;
    const char *text = "";
    int p[RANK];

    for (int k = 0; k < a.rank; k++) {
        int j = rng_below(&g->r, k + 1);

        p[k] = p[j];
        p[j] = k;
    }
    for (int k = 0; k < a.rank; k++) {
        r.d[k] = a.d[p[k]];
        text = str(g, k > 0 ? "%s, %d" : "%s%d", text, p[k]);
    }
    call(g, &r, "permute", text);
    return true;
}

static bool op_transpose(gen *g)
{
    val a = operand(g, W_ANY, 2, 2);
    dim d = a.d[0];

    a.d[0] = a.d[1];
    a.d[1] = d;
    a.text = str(g, is_simple(&a) ? "%s.T" : "(%s).T", a.text);
    put(g, a);
    return true;
}

/* Two axes become one, one becomes two, or one is left open. */
static bool op_reshape(gen *g)
{
    val a = operand(g, W_ANY, 1, RANK), r = a;
    int k = rng_below(&g->r, a.rank);
    const char *text = "";
    int open = -1;

    if (rng_chance(&g->r, 50) && a.rank > 1) {
        k = rng_below(&g->r, a.rank - 1);
        r.d[k] = dim_times(a.d[k], a.d[k + 1]);
        for (int i = k + 1; i + 1 < a.rank; i++) {
            r.d[i] = a.d[i + 1];
        }
        r.rank--;
        open = k;
    } else if (a.rank < RANK && dim_const(g, a.d[k]) &&
               a.d[k].n[0] % 2 == 0) {
        for (int i = a.rank; i > k + 1; i--) {
            r.d[i] = a.d[i - 1];
        }
        r.d[k] = dim_of(2);
        r.d[k + 1] = dim_of(a.d[k].n[0] / 2);
        r.rank++;
    }
    if (dim_min(g, r.d[k]) < 1) {
        give_back(g, &a);
        return false;
    }
    for (int i = 0; i < r.rank; i++) {
        const char *size = dim_text(g, r.d[i]);

        if (i == open || (size == NULL && open < 0)) {
            open = i;
            size = "-1";
        } else if (size == NULL || numel_max(g, &a) == 0) {
            give_back(g, &a);
            return false;
        }
        text = str(g, i > 0 ? "%s, %s" : "%s%s", text, size);
    }
    call(g, &r, "reshape", text);
    return true;
}

static bool op_expand(gen *g)
{
    val a = operand(g, W_ANY, 0, RANK - 1), r = a;
    const char *text = "";
    bool lead = rng_chance(&g->r, 50);

    if (lead) {
        for (int k = a.rank; k > 0; k--) {
            r.d[k] = a.d[k - 1];
        }
        r.rank++;
        r.d[0] = dim_of(rng_range(&g->r, 1, 3));
        text = str(g, "%d", r.d[0].n[0]);
    }
    for (int k = lead; k < r.rank; k++) {
        bool one = dim_is(g, r.d[k], 1);
        int n = rng_range(&g->r, 1, 4);

        if (one && rng_chance(&g->r, 70)) {
            r.d[k] = dim_of(n);
            text = str(g, k > 0 ? "%s, %d" : "%s%d", text, n);
        } else {
            text = str(g, k > 0 ? "%s, -1" : "%s-1", text);
        }
    }
    if (r.rank == 0) {
        give_back(g, &a);
        return false;
    }
    call(g, &r, "expand", text);
    return true;
}

static bool op_unsqueeze(gen *g)
{
    val a = operand(g, W_ANY, 0, RANK - 1), r = a;
    int k = rng_range(&g->r, 0, a.rank);

    for (int i = a.rank; i > k; i--) {
        r.d[i] = a.d[i - 1];
    }
    r.d[k] = dim_of(1);
    r.rank++;
    call(g, &r, "unsqueeze", str(g, "%d", k));
    return true;
}

static bool op_squeeze(gen *g)
{
    val a = operand(g, W_ANY, 1, RANK), r = a;

    for (int k = 0; k < a.rank; k++) {
        if (dim_is(g, a.d[k], 1)) {
            for (int i = k; i + 1 < a.rank; i++) {
                r.d[i] = a.d[i + 1];
            }
            r.rank--;
            call(g, &r, "squeeze", str(g, "%d", k));
            return true;
        }
    }
    give_back(g, &a);
    return false;
}

static bool op_flip(gen *g)
{
    val a = operand(g, W_ANY, 1, RANK);

    call(g, &a, "flip",
         rng_chance(&g->r, 30) ? ""
                               : str(g, "%d", rng_below(&g->r, a.rank)));
    return true;
}

static bool op_roll(gen *g)
{
    val a = operand(g, W_ANY, 1, RANK);

    call(g, &a, "roll", str(g, "%d, %d", rng_range(&g->r, -3, 3),
                            rng_below(&g->r, a.rank)));
    return true;
}

static bool op_tile(gen *g)
{
    val a = operand(g, W_ANY, 1, 2);
    const char *text = "";

    if (numel_max(g, &a) > 300) {
        give_back(g, &a);
        return false;
    }
    for (int k = 0; k < a.rank; k++) {
        int n = rng_range(&g->r, 1, 2);

        a.d[k] = dim_times(a.d[k], dim_of(n));
        text = str(g, k > 0 ? "%s, %d" : "%s%d", text, n);
    }
    call(g, &a, "tile", str(g, "[%s]", text));
    return true;
}

static bool op_repeat(gen *g)
{
    val a = operand(g, W_ANY, 1, RANK);
    int k = rng_below(&g->r, a.rank), n = rng_range(&g->r, 1, 3);

    if (numel_max(g, &a) > 300) {
        give_back(g, &a);
        return false;
    }
    a.d[k] = dim_times(a.d[k], dim_of(n));
    call(g, &a, "repeat", str(g, "%d, axis=%d", n, k));
    return true;
}

static bool op_pad(gen *g)
{
    static const char *const modes[] = {"constant", "replicate", "circular",
                                        "constant"};
    val a = operand(g, W_FLOAT, 1, RANK);
    int before = rng_range(&g->r, 0, 2), after = rng_range(&g->r, 0, 2);
    int m = rng_below(&g->r, 4);
    dim *last = &a.d[a.rank - 1];

    if (m != 0 && dim_min(g, *last) < 3) {
        m = 0;
    }
    *last = dim_plus(*last, before + after);
    a.text = str(g, "pad(%s, (%d, %d), mode=\"%s\")", a.text, before, after,
                 modes[m]);
    a.lo = fmin(a.lo, 0);
    a.hi = fmax(a.hi, 0);
    put(g, a);
    return true;
}

/* Another of the same shape, dtype class float. */
static bool twin(gen *g, const val *a, val *b)
{
    return pick_like(g, a, W_FLOAT, b) || leaf(g, a->dtype, a->rank, a->d, b);
}

static void widest(val *r, const val *a, const val *b)
{
    r->dtype = tl_dtype_join(a->dtype, b->dtype);
    r->lo = fmin(a->lo, b->lo);
    r->hi = fmax(a->hi, b->hi);
}

static bool op_cat(gen *g)
{
    val a = operand(g, W_FLOAT, 1, RANK), b, r = a;
    int k = rng_below(&g->r, a.rank);

    if (!twin(g, &a, &b) || numel_max(g, &a) > 400) {
        give_back(g, &a);
        return false;
    }
    widest(&r, &a, &b);
    r.d[k] = dim_sum(a.d[k], b.d[k]);
    r.text = k == 0 && rng_chance(&g->r, 50)
                 ? str(g, "cat([%s, %s])", a.text, b.text)
                 : str(g, "cat([%s, %s], axis=%d)", a.text, b.text, k);
    put(g, r);
    return true;
}

static bool op_stack(gen *g)
{
    val a = operand(g, W_FLOAT, 0, RANK - 1), b, r = a;
    int k = rng_range(&g->r, 0, a.rank);

    if (!twin(g, &a, &b) || numel_max(g, &a) > 400) {
        give_back(g, &a);
        return false;
    }
    widest(&r, &a, &b);
    for (int i = a.rank; i > k; i--) {
        r.d[i] = a.d[i - 1];
    }
    r.d[k] = dim_of(2);
    r.rank++;
    r.text = str(g, "stack([%s, %s], axis=%d)", a.text, b.text, k);
    put(g, r);
    return true;
}

/* Parts along an axis of known size, each a value by its index. */
static bool op_split(gen *g)
{
    val a = operand(g, W_ANY, 1, RANK);
    int k = rng_below(&g->r, a.rank), n = dim_min(g, a.d[k]), cut;
    const char *name;

    if (!dim_const(g, a.d[k]) || n < 2) {
        give_back(g, &a);
        return false;
    }
    name = fresh(g, "p");
    cut = rng_range(&g->r, 1, n - 1);
    if (n % 2 == 0 && rng_chance(&g->r, 40)) {
        cut = n / 2;
        line(g, "%s = chunk(%s, 2, axis=%d)", name, a.text, k);
    } else {
        line(g, "%s = split(%s, [%d, %d], axis=%d)", name, a.text, cut,
             n - cut, k);
    }
    g->ops++;
    a.once = a.name = false;
    for (int i = 0; i < 2; i++) {
        a.text = str(g, "%s[%d]", name, i);
        a.d[k] = dim_of(i == 0 ? cut : n - cut);
        add(g, a);
    }
    return true;
}

static bool op_rearrange(gen *g)
{
    val a = operand(g, W_ANY, 2, 3), r = a;
    bool three = a.rank == 3;

    if (rng_chance(&g->r, 50)) {
        r.d[0] = a.d[1];
        r.d[1] = a.d[0];
        r.text = str(g, three ? "rearrange(%s, \"a b c -> b a c\")"
                              : "rearrange(%s, \"a b -> b a\")", a.text);
    } else {
        r.d[0] = dim_times(a.d[0], a.d[1]);
        r.d[1] = a.d[2];
        r.rank--;
        r.text = str(g, three ? "rearrange(%s, \"a b c -> (a b) c\")"
                              : "rearrange(%s, \"a b -> (a b)\")", a.text);
    }
    put(g, r);
    return true;
}

static bool op_reduce_axes(gen *g)
{
    val a = operand(g, W_FLOAT, 2, 3), r = a;
    bool three = a.rank == 3;

    if (numel_max(g, &a) == 0) {
        give_back(g, &a);
        return false;
    }
    r.d[1] = a.d[2];
    r.rank--;
    r.text = str(g, three ? "reduce(%s, \"a b c -> a c\", mean)"
                          : "reduce(%s, \"a b -> a\", mean)", a.text);
    put(g, r);
    return true;
}

const op_row gen_shape[] = {
    {op_permute, 6},   {op_transpose, 6}, {op_reshape, 10}, {op_expand, 5},
    {op_unsqueeze, 5}, {op_squeeze, 5},   {op_flip, 4},     {op_roll, 3},
    {op_tile, 3},      {op_repeat, 3},    {op_pad, 4},      {op_cat, 6},
    {op_stack, 5},     {op_split, 5},     {op_rearrange, 4},
    {op_reduce_axes, 2}, {0},
};
