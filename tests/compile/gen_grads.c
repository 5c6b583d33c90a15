/* gen_grads.c - grad blocks and what stands around them. */
#include <math.h>
#include <string.h>

#include "tests/compile/gen_impl.h"

const char *gen_scalar(gen *g, const val *v)
{
    if (v->rank == 0) {
        return str(g, "%s * 0.5", v->text);
    }
    switch (rng_below(&g->r, 3)) {
    case 0:
        return str(g, "(%s).sum()", v->text);
    case 1:
        return str(g, "(%s ** 2).mean()", v->text);
    default:
        return str(g, "mean(%s)", v->text);
    }
}

static bool op_grad(gen *g)
{
    val t[2], a;
    int n = 1, tapes = g->tapes;
    const char *name, *loss;

    if (g->tapes > 1 || g->in_loop || !pick_name(g, W_FLOAT, 0, &t[0]) ||
        numel_max(g, &t[0]) == 0) {
        return false;
    }
    if (rng_chance(&g->r, 35) && pick_name(g, W_FLOAT, 0, &t[1]) &&
        strcmp(t[0].text, t[1].text) != 0 && numel_max(g, &t[1]) > 0) {
        n = 2;
    }
    forget(g, t[0].text); /* inside, it is another value */
    name = fresh(g, "g");
    loss = fresh(g, "l");
    line(g, "%s = grad %s wrt %s%s%s:", name, loss, t[0].text,
         n > 1 ? ", " : "", n > 1 ? t[1].text : "");
    enter(g);
    g->tapes++;
    for (int i = 0; i < n; i++) { /* read it now, and often */
        val again = t[i];

        again.text = str(g, "(%s * %s)", t[i].text, number(g, 0.2, 3));
        again.lo = -3 * fmax(fabs(t[i].lo), fabs(t[i].hi));
        again.hi = -again.lo;
        (void)put_name(g, again);
    }
    gen_ops(g, rng_range(&g->r, 1, 8));
    const char *sum = str(g, "%s + %s", gen_scalar(g, &t[0]),
                          n > 1 ? gen_scalar(g, &t[1]) : "0.0");

    for (int i = 0; i < 2 && pick(g, W_FLOAT, 0, RANK, &a); i++) {
        if (numel_max(g, &a) > 0) {
            sum = str(g, "%s + %s", sum, gen_scalar(g, &a));
        }
    }
    line(g, "%s = %s", loss, sum);
    g->tapes = tapes;
    leave(g, true);
    g->ops++;
    for (int i = 0; i < n; i++) {
        t[i].text = n > 1 ? str(g, "%s[%d]", name, i) : name;
        t[i].name = n == 1;
        t[i].hi = 1e4;
        t[i].lo = -1e4;
        t[i].once = false;
        add(g, t[i]);
    }
    return true;
}

/* The gradient of one region operation, under this block alone. */
static bool op_grad_region(gen *g)
{
    const char *name, *loss;
    dim d[RANK];
    val t, x;

    for (int i = 0; i < RANK; i++) {
        d[i] = dim_of(rng_range(&g->r, 3, 5));
    }
    if (g->tapes > 0 || g->in_loop ||
        !leaf(g, rng_chance(&g->r, 30) ? TL_f64 : TL_f32,
              rng_range(&g->r, 2, RANK), d, &t)) {
        return false;
    }
    t = put_name(g, t);
    name = fresh(g, "g");
    loss = fresh(g, "l");
    line(g, "%s = grad %s wrt %s:", name, loss, t.text);
    enter(g);
    g->tapes++;
    x = put_name(g, t);
    if (gen_one(g, gen_regions)) {
        const val *last = &g->pool[g->n - 1];

        if (last->kind == K_TENSOR && class_of(last->dtype) == W_FLOAT &&
            numel_max(g, last) > 0) {
            x = *last;
        }
    }
    line(g, "%s = %s + %s", loss, gen_scalar(g, &x), gen_scalar(g, &t));
    g->tapes--;
    leave(g, true);
    g->ops++;
    t.text = name;
    t.hi = 1e4;
    t.lo = -1e4;
    add(g, t);
    return true;
}

/* Gradients of elementwise rows beside casts, comparisons and reductions, so
 * that each meets each. */
static bool op_grad_meets(gen *g)
{
    static const char *const names[] = {"gelu", "silu", "softplus", "elu",
                                        "softsign", "logaddexp(0.5, "};
    const char *f = names[rng_below(&g->r, 6)], *name, *loss, *x, *y;
    bool casts = rng_chance(&g->r, 50);
    dim d[2] = {dim_of(rng_range(&g->r, 1, 5)), dim_of(rng_range(&g->r, 1, 5))};
    val t, c;

    if (g->tapes > 0 || g->in_loop ||
        !leaf(g, casts ? TL_f64 : TL_f32, rng_range(&g->r, 1, 2), d, &t)) {
        return false;
    }
    t = put_name(g, t);
    name = fresh(g, "g");
    loss = fresh(g, "l");
    x = casts ? str(g, "f32(%s)", t.text) : t.text;
    y = str(g, strchr(f, '(') ? "%s%s)" : "%s(%s)", f, x);
    if (rng_chance(&g->r, 50)) {
        y = str(g, "where(%s > %s, %s, %s * %s)", t.text, number(g, -1, 1), y,
                x, number(g, -2, 2));
    }
    line(g, "%s = grad %s wrt %s:", name, loss, t.text);
    line(g, rng_chance(&g->r, 50) ? "    %s = f64(%s).sum()"
                                  : "    %s = mean(%s)", loss, y);
    g->ops += 3;
    t.text = name;
    t.hi = 1e4;
    t.lo = -1e4;
    add(g, t);
    c = t;
    c.name = false;
    c.text = str(g, "(%s > %s)", name, number(g, -1, 1));
    c.dtype = TL_bool;
    c.lo = 0;
    c.hi = 1;
    (void)put_name(g, c);
    return true;
}

static bool op_no_grad(gen *g)
{
    if (g->depth > 2) {
        return false;
    }
    line(g, "with no_grad:");
    enter(g);
    (void)put_name(g, operand(g, W_FLOAT, 0, RANK));
    gen_ops(g, rng_range(&g->r, 0, 3));
    leave(g, true);
    return true;
}

/* What is computed inside is stored low, and is seen as before. */
static bool op_autocast(gen *g)
{
    if (g->depth > 2) {
        return false;
    }
    line(g, "with autocast(%s):", rng_chance(&g->r, 50)   ? "bf16"
                                  : rng_chance(&g->r, 80) ? "f16"
                                                          : "none");
    enter(g);
    (void)put_name(g, operand(g, W_FLOAT, 0, RANK));
    gen_ops(g, rng_range(&g->r, 0, 4));
    leave(g, true);
    return true;
}

static bool op_stop(gen *g)
{
    val a = operand(g, W_FLOAT, 0, RANK);

    a.text = str(g, "stop(%s)", a.text);
    put(g, a);
    return true;
}

/* gradient(f)(x) of a function written in place. */
static bool op_gradient(gen *g)
{
    val f, a = operand(g, W_FLOAT, 0, RANK);

    if (!pick_kind(g, K_FN1, &f)) {
        give_back(g, &a);
        return false;
    }
    a.text = str(g, "gradient(fn(t) => (%s(t) * t).sum())(%s)", f.text,
                 a.text);
    a.hi = 1e4;
    a.lo = -1e4;
    put(g, a);
    return true;
}

const op_row gen_grads[] = {
    {op_grad, 12}, {op_grad_region, 30}, {op_grad_meets, 4},
    {op_no_grad, 2}, {op_autocast, 4},   {op_stop, 2},
    {op_gradient, 2}, {0},
};
