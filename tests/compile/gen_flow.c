/* gen_flow.c - loops and branches. */
#include <math.h>
#include <string.h>

#include "tests/compile/gen_impl.h"

/* A statement that gives a variable a value of the same type. */
static void update(gen *g, const val *v)
{
    val b;

    if (pick_like(g, v, W_FLOAT, &b) && b.dtype == v->dtype &&
        strcmp(b.text, v->text) != 0) {
        line(g, "%s = tanh(%s + %s * %s)", v->text, v->text, b.text,
             number(g, -1, 1));
    } else {
        line(g, "%s = sin(%s * %s)", v->text, v->text, number(g, -2, 2));
    }
}

/* Variables that a block may change: their expressions go first. */
static bool carried(gen *g, val *v)
{
    if (!pick_name(g, W_FLOAT, 0, v)) {
        return false;
    }
    forget(g, v->text);
    return true;
}

static void widen(gen *g, const char *name)
{
    for (int i = 0; i < g->n; i++) {
        if (strcmp(g->pool[i].text, name) == 0) {
            g->pool[i].lo = fmin(g->pool[i].lo, -1);
            g->pool[i].hi = fmax(g->pool[i].hi, 1);
        }
    }
    forget(g, name);
}

static void block(gen *g, const val *v, int ops)
{
    bool outer = g->in_loop;

    enter(g);
    g->in_loop = true;
    gen_ops(g, ops);
    update(g, v);
    leave(g, false);
    g->in_loop = outer;
}

/* A loop that unrolls. */
static bool op_for(gen *g)
{
    val v, n;
    const char *i;

    if (g->depth > 1 || !carried(g, &v)) {
        return false;
    }
    i = fresh(g, "q");
    switch (rng_below(&g->r, 4)) {
    case 0:
        if (pick_int(g, 1, 4, &n)) {
            line(g, "for %s in range(%s):", i, n.text);
            break;
        }
        /* fall through */
    case 1:
        line(g, "for %s in [0.5, 1.5, -1.0]:", i);
        break;
    case 2:
        line(g, "for %s, _ in enumerate([2, 3]):", i);
        break;
    default:
        line(g, "for %s in range(%d):", i, rng_range(&g->r, 1, 3));
        break;
    }
    enter(g);
    g->indent--;
    add(g, (val){.kind = K_FLOAT, .text = i, .lo = -1, .hi = 4});
    block(g, &v, rng_range(&g->r, 0, 3));
    g->indent++;
    leave(g, false);
    widen(g, v.text);
    return true;
}

/* A condition that a tensor decides. */
static const char *tensor_condition(gen *g)
{
    val a;

    if (!pick(g, W_FLOAT | W_BOOL, 0, RANK, &a)) {
        return NULL;
    }
    if (numel_max(g, &a) == 0) {
        give_back(g, &a);
        return NULL;
    }
    if (a.dtype == TL_bool) {
        return str(g, "%s(%s)", rng_chance(&g->r, 50) ? "any" : "all",
                   a.text);
    }
    return a.rank == 0 ? str(g, "%s > %s", a.text, number(g, -1, 1))
                       : str(g, "sum(%s) %s %s", a.text,
                             rng_chance(&g->r, 50) ? "<" : ">=",
                             number(g, -1, 1));
}

static const char *one_condition(gen *g)
{
    val n;

    if (rng_chance(&g->r, 10) && pick_int(g, 0, 50, &n)) {
        return str(g, "%d < %s < %d", rng_range(&g->r, 0, 3), n.text,
                   rng_range(&g->r, 3, 9));
    }

    if (rng_chance(&g->r, 50) && pick_int(g, 0, 50, &n)) {
        return str(g, "%s %s %d", n.text,
                   rng_chance(&g->r, 50) ? ">" : "==",
                   rng_range(&g->r, 1, 5));
    }
    if (pick_kind(g, K_FLOAT, &n)) {
        return str(g, "%s < %s", n.text, number(g, -1, 1));
    }
    return pick_kind(g, K_BOOL, &n) ? n.text : NULL;
}

static const char *host_condition(gen *g)
{
    const char *a = one_condition(g), *b;

    if (a != NULL && rng_chance(&g->r, 15)) {
        a = str(g, "not (%s)", a);
    }
    if (a == NULL || rng_chance(&g->r, 65) ||
        (b = one_condition(g)) == NULL) {
        return a;
    }
    return str(g, "%s %s %s", a, rng_chance(&g->r, 50) ? "and" : "or", b);
}

static bool op_if(gen *g)
{
    const char *cond;
    val v;

    if (g->depth > 1 || !carried(g, &v)) {
        return false;
    }
    cond = rng_chance(&g->r, 50) ? host_condition(g) : tensor_condition(g);
    if (cond == NULL) {
        return false;
    }
    line(g, "if %s:", cond);
    block(g, &v, rng_range(&g->r, 0, 3));
    if (rng_chance(&g->r, 20) && (cond = host_condition(g)) != NULL) {
        line(g, "elif %s:", cond);
        block(g, &v, rng_range(&g->r, 0, 2));
    }
    if (rng_chance(&g->r, 60)) {
        line(g, "else:");
        block(g, &v, rng_range(&g->r, 0, 2));
    }
    widen(g, v.text);
    return true;
}

/* A loop that a tensor or a number ends. */
static bool op_while(gen *g)
{
    const char *k = fresh(g, "k");
    val v, n;

    if (g->depth > 1 || !carried(g, &v) || numel_max(g, &v) == 0) {
        return false;
    }
    line(g, "%s = 0", k);
    if (pick_int(g, 0, 6, &n) && rng_chance(&g->r, 50)) {
        line(g, "while %s < %s:", k, n.text);
    } else if (rng_chance(&g->r, 40)) {
        line(g, "while %s < %d:", k, rng_range(&g->r, 1, 4));
    } else {
        line(g, "%s = tanh(%s)", v.text, v.text);
        line(g, "while max(abs(%s)) > 0.2:", v.text);
        line(g, "    %s = %s * %s", v.text, v.text, number(g, 0.1, 0.7));
        line(g, "    %s += 1", k);
        widen(g, v.text);
        add(g, (val){.kind = K_INT, .text = k, .lo = 0, .hi = 9});
        return true;
    }
    enter(g);
    g->indent--;
    block(g, &v, rng_range(&g->r, 0, 3));
    line(g, "    %s += 1", k);
    g->indent++;
    leave(g, false);
    widen(g, v.text);
    return true;
}

/* A list that grows in a loop. */
static bool op_collect(gen *g)
{
    val a = operand(g, W_FLOAT, 0, RANK - 1), n;
    const char *name, *i;

    if (a.once || g->in_loop || numel_max(g, &a) > 200 ||
        !pick_int(g, 1, 6, &n)) {
        give_back(g, &a);
        return false;
    }
    name = fresh(g, "c");
    i = fresh(g, "q");
    line(g, "%s = []", name);
    line(g, "for %s in range(%s):", i, n.text);
    line(g, "    %s += [%s * %s + %s]", name, a.text, number(g, -1, 1), i);
    for (int k = a.rank; k > 0; k--) {
        a.d[k] = a.d[k - 1];
    }
    a.d[0] = n.d[0];
    a.rank++;
    a.text = str(g, "stack(%s)", name);
    a.lo = fmin(a.lo, -a.hi);
    a.hi = fmax(a.hi, -a.lo) + 6;
    (void)put_name(g, a);
    return true;
}

/* Along axis 0 of a tensor. */
static bool op_rows(gen *g)
{
    val a = operand(g, W_FLOAT, 1, 2), v;
    const char *row;

    if (a.once || g->depth > 1 || !carried(g, &v) ||
        strcmp(v.text, a.text) == 0) {
        give_back(g, &a);
        return false;
    }
    row = fresh(g, "q");
    line(g, "for %s in %s:", row, a.text);
    line(g, "    %s = tanh(%s + %s(%s.sum()) * %s)", v.text, v.text,
         tl_dtype_name(v.dtype), row, number(g, -1, 1));
    widen(g, v.text);
    g->ops++;
    return true;
}

static bool op_choose(gen *g)
{
    val a = operand(g, W_FLOAT, 0, RANK), b, n;

    if (!pick_like(g, &a, W_FLOAT, &b) || !pick_int(g, 0, 50, &n)) {
        give_back(g, &a);
        return false;
    }
    if (a.dtype != b.dtype) {
        b.text = str(g, "%s(%s)", tl_dtype_name(a.dtype), b.text);
    }
    a.text = str(g, "(%s if %s > %d else %s)", a.text, n.text,
                 rng_range(&g->r, 1, 4), b.text);
    a.lo = fmin(a.lo, b.lo);
    a.hi = fmax(a.hi, b.hi);
    put(g, a);
    return true;
}

const op_row gen_flow[] = {
    {op_for, 5},     {op_if, 7},   {op_choose, 3}, {op_while, 4},
    {op_collect, 3}, {op_rows, 2}, {0},
};
