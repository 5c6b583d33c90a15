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
    i = fresh(g, "i");
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

/* A branch on numbers of the host. */
static bool op_if(gen *g)
{
    val v, n, f;

    if (g->depth > 1 || !carried(g, &v)) {
        return false;
    }
    if (rng_chance(&g->r, 50) && pick_int(g, 0, 50, &n)) {
        line(g, "if %s %s %d:", n.text, rng_chance(&g->r, 50) ? ">" : "==",
             rng_range(&g->r, 1, 5));
    } else if (pick_kind(g, K_FLOAT, &f)) {
        line(g, "if %s < %s:", f.text, number(g, -1, 1));
    } else if (pick_kind(g, K_BOOL, &f)) {
        line(g, "if %s:", f.text);
    } else {
        return false;
    }
    block(g, &v, rng_range(&g->r, 0, 3));
    if (rng_chance(&g->r, 60)) {
        line(g, "else:");
        block(g, &v, rng_range(&g->r, 0, 2));
    }
    widen(g, v.text);
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
    {op_for, 5}, {op_if, 5}, {op_choose, 3}, {0},
};
