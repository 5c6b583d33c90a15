/* gen_index.c - reading and writing by index, order, tables. */
#include <math.h>
#include <string.h>

#include "tests/compile/gen_impl.h"

/* One subscript of an axis of size `d`; *gone: the axis goes. */
static const char *subscript(gen *g, dim *d, bool *gone)
{
    int n = dim_min(g, *d), from;
    val i;

    *gone = false;
    switch (rng_below(&g->r, 8)) {
    case 0: /* one element */
        if (n < 1) {
            return ":";
        }
        *gone = true;
        if (rng_chance(&g->r, 30) && pick_int(g, 0, n - 1, &i)) {
            return i.text;
        }
        return str(g, "%d", rng_chance(&g->r, 30)
                                ? -rng_range(&g->r, 1, n)
                                : rng_below(&g->r, n));
    case 1: /* from a number on */
        from = rng_range(&g->r, 0, n < 2 ? n : 2);
        *d = dim_plus(*d, -from);
        return str(g, "%d:", from);
    case 2: /* without the last */
        if (n < 2) {
            return ":";
        }
        *d = dim_plus(*d, -1);
        return ":-1";
    case 3: /* the first ones, by a number that may change */
        if (pick_int(g, 1, n, &i)) {
            *d = i.d[0];
            return str(g, ":%s", i.text);
        }
        return ":";
    case 4:
        for (int c = 0; c < CALLS; c++) {
            d->n[c] = (d->n[c] + 1) / 2;
        }
        return "::2";
    case 5:
        return "::-1";
    default:
        return ":";
    }
}

static bool op_slice(gen *g)
{
    val a = operand(g, W_ANY, 1, RANK), r = a;
    int n = rng_range(&g->r, 1, a.rank), rank = 0;
    const char *text = "";

    if (a.once) {
        a.text = str(g, "(%s)", a.text);
    }
    for (int k = 0; k < a.rank; k++) {
        dim d = a.d[k];
        bool gone = false;

        if (k < n) {
            text = str(g, k > 0 ? "%s, %s" : "%s%s", text,
                       subscript(g, &d, &gone));
        }
        if (!gone) {
            r.d[rank++] = d;
        }
    }
    if (rank < RANK && rng_chance(&g->r, 15) && n == a.rank) {
        text = str(g, "%s, none", text);
        r.d[rank++] = dim_of(1);
    } else if (rng_chance(&g->r, 10) && n == a.rank) {
        text = str(g, "..., %s", text);
    }
    r.rank = rank;
    r.text = str(g, "%s[%s]", a.text, text);
    put(g, r);
    return true;
}

/* An int tensor with values in 0 .. n - 1. */
static bool index_tensor(gen *g, int n, int rmax, val *out)
{
    if (!pick(g, W_INT, 0, rmax, out)) {
        dim d = dim_of(rng_range(&g->r, 1, 4));

        (void)leaf(g, TL_i64, 1, &d, out);
    }
    if (n < 1 || (out->rank > 0 && numel_max(g, out) > 40)) {
        give_back(g, out);
        return false;
    }
    if (out->lo < 0 || out->hi >= n) {
        out->text = str(g, "(%s %% %d)", out->text, n);
    }
    return true;
}

static bool op_take(gen *g)
{
    val a = operand(g, W_ANY, 1, 3), i, r;
    int k = a.rank > 1 ? rng_below(&g->r, 2) : 0;

    if (a.once || !index_tensor(g, dim_min(g, a.d[k]), RANK + 1 - a.rank, &i)) {
        give_back(g, &a);
        return false;
    }
    r = a;
    r.rank = a.rank - 1 + i.rank;
    for (int j = 0, to = 0; j < a.rank; j++) {
        for (int m = 0; j == k && m < i.rank; m++) {
            r.d[to++] = i.d[m];
        }
        if (j != k) {
            r.d[to++] = a.d[j];
        }
    }
    r.text = str(g, k > 0 ? "%s[:, %s]" : "%s[%s]", a.text, i.text);
    put(g, r);
    return true;
}

static bool op_gather(gen *g)
{
    val a = operand(g, W_FLOAT, 1, 3), i;
    int k = rng_below(&g->r, a.rank), n = dim_min(g, a.d[k]);

    if (n < 1 || !leaf(g, TL_i64, a.rank, a.d, &i)) {
        give_back(g, &a);
        return false;
    }
    const char *index = i.hi >= n ? str(g, "(%s %% %d)", i.text, n) : i.text;

    val s;

    if (rng_chance(&g->r, 50) || !leaf(g, a.dtype, a.rank, a.d, &s)) {
        a.text = str(g, "gather(%s, %s, axis=%d)", a.text, index, k);
    } else {
        a.text = str(g, "scatter_add(%s, %s, %s, axis=%d)", a.text, index,
                     s.text, k);
        a.lo -= 6 * dim_max(g, a.d[k]);
        a.hi += 6 * dim_max(g, a.d[k]);
    }
    put(g, a);
    return true;
}

bool gen_embedding(gen *g)
{
    val w = operand(g, W_FLOAT, 2, 2), i;

    if (!index_tensor(g, dim_min(g, w.d[0]), 3, &i)) {
        give_back(g, &w);
        return false;
    }
    val r = w;

    for (int k = 0; k < i.rank; k++) {
        r.d[k] = i.d[k];
    }
    r.d[i.rank] = w.d[1];
    r.rank = i.rank + 1;
    r.text = str(g, "embedding(%s, %s%s)", i.text, w.text,
                 rng_chance(&g->r, 30) ? ", padding_idx=0" : "");
    put(g, r);
    return true;
}

static bool op_one_hot(gen *g)
{
    val i;
    int n = rng_range(&g->r, 1, 5);

    if (!index_tensor(g, n, RANK - 1, &i)) {
        return false;
    }
    i.d[i.rank++] = dim_of(n);
    i.dtype = TL_i64;
    i.text = str(g, "one_hot(%s, %d)", i.text, n);
    i.lo = 0;
    i.hi = 1;
    put(g, i);
    return true;
}

static bool op_sort(gen *g)
{
    val a = operand(g, W_NUM, 1, RANK);
    int k = rng_below(&g->r, a.rank);
    bool values = rng_chance(&g->r, 60);
    const char *down = rng_chance(&g->r, 40) ? ", descending=true" : "";

    a.text = str(g, "%s(%s, axis=%d%s)", values ? "sort" : "argsort", a.text,
                 k, down);
    if (!values) {
        a.dtype = TL_i64;
        a.lo = 0;
        a.hi = dim_max(g, a.d[k]);
    }
    put(g, a);
    return true;
}

static bool op_topk(gen *g)
{
    val a = operand(g, W_FLOAT, 1, RANK), i;
    int axis = rng_below(&g->r, a.rank), n = dim_min(g, a.d[axis]), k;
    const char *name;

    if (n < 1) {
        give_back(g, &a);
        return false;
    }
    k = rng_range(&g->r, 1, n);
    name = fresh(g, "p");
    line(g, "%s = topk(%s, %d, axis=%d)", name, a.text, k, axis);
    g->ops++;
    a.d[axis] = dim_of(k);
    a.once = a.name = false;
    i = a;
    i.text = str(g, "%s[1]", name);
    i.dtype = TL_i64;
    i.lo = 0;
    i.hi = 1000;
    a.text = str(g, "%s[0]", name);
    add(g, a);
    add(g, i);
    return true;
}

/* ---- writes -------------------------------------------------------------- */

/* A copy of a variable under a new name, or the variable itself. */
static bool written(gen *g, int rmin, val *a)
{
    if (!pick_name(g, W_FLOAT, rmin, a)) {
        return false;
    }
    if (g->depth > 0 || g->tapes > 0 || rng_chance(&g->r, 70)) {
        const char *name = fresh(g, "v");

        line(g, "%s = %s", name, a->text);
        a->text = name;
        add(g, *a);
    } else {
        forget(g, a->text);
    }
    return true;
}

/* After a write: what the variable holds is wider. */
static void widen(gen *g, const char *name, double lo, double hi)
{
    for (int i = 0; i < g->n; i++) {
        if (strcmp(g->pool[i].text, name) == 0) {
            g->pool[i].lo = fmin(g->pool[i].lo, lo);
            g->pool[i].hi = fmax(g->pool[i].hi, hi);
        }
    }
    g->ops++;
}

static bool op_write(gen *g)
{
    val a, v;
    const char *text = "", *op = "=";
    int n, rank = 0;
    dim d[RANK];

    if (!written(g, 1, &a)) {
        return false;
    }
    n = rng_range(&g->r, 1, a.rank);
    for (int k = 0; k < a.rank; k++) {
        dim one = a.d[k];
        bool gone = false;

        if (k < n) {
            text = str(g, k > 0 ? "%s, %s" : "%s%s", text,
                       subscript(g, &one, &gone));
        }
        if (!gone) {
            d[rank++] = one;
        }
    }
    if (rng_chance(&g->r, 40)) {
        static const char *const ops[] = {"+=", "*=", "-="};

        op = ops[rng_below(&g->r, 3)];
    }
    if (rng_chance(&g->r, 40) || !leaf(g, a.dtype, rank, d, &v)) {
        line(g, "%s[%s] %s %s", a.text, text, op, number(g, -3, 3));
        widen(g, a.text, fmin(a.lo, -3) * 4, fmax(a.hi, 3) * 4);
    } else {
        line(g, "%s[%s] %s %s", a.text, text, op, v.text);
        widen(g, a.text, fmin(a.lo, -6) * 6, fmax(a.hi, 6) * 6);
    }
    return true;
}

static bool op_write_at(gen *g)
{
    val a, i;
    bool adds = rng_chance(&g->r, 60);

    if (!written(g, 1, &a)) {
        return false;
    }
    if (!index_tensor(g, dim_min(g, a.d[0]), 1, &i)) {
        return false;
    }
    line(g, "%s[%s] %s %s", a.text, i.text, adds ? "+=" : "=",
         number(g, -3, 3));
    widen(g, a.text, a.lo - 120, a.hi + 120);
    return true;
}

static bool op_mask_fill(gen *g)
{
    val a = operand(g, W_FLOAT, 1, RANK), m;

    if (!pick_like(g, &a, W_BOOL, &m)) {
        give_back(g, &a);
        return false;
    }
    a.text = str(g, "where(%s, %s, 0.0)", m.text, a.text);
    a.lo = fmin(a.lo, 0);
    a.hi = fmax(a.hi, 0);
    put(g, a);
    return true;
}

const op_row gen_index[] = {
    {op_slice, 20},  {op_take, 7},   {op_gather, 6},   {gen_embedding, 5},
    {op_one_hot, 4}, {op_sort, 6},   {op_topk, 4},     {op_write, 8},
    {op_write_at, 4}, {op_mask_fill, 2}, {0},
};
