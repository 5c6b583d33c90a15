/* gen_host.c - numbers of the host, containers, closures, helpers. */
#include <math.h>

#include "tests/compile/gen_impl.h"

static void put_host(gen *g, val v)
{
    const char *name = fresh(g, "n");

    line(g, "%s = %s", name, v.text);
    v.text = name;
    v.name = v.once = false;
    g->ops++;
    add(g, v);
}

/* The size of an axis, or of a tensor, as an int. */
static bool op_size(gen *g)
{
    val a, n = {.kind = K_INT, .exact = true};

    if (!pick(g, W_ANY, 1, RANK, &a)) {
        return false;
    }
    if (a.once) {
        give_back(g, &a);
        return false;
    }
    int k = rng_below(&g->r, a.rank);

    n.d[0] = a.d[k];
    n.text = k == 0 && rng_chance(&g->r, 50)
                 ? str(g, "len(%s)", a.text)
                 : str(g, "%s.shape[%d]", a.text, k);
    put_host(g, n);
    return true;
}

static bool op_int(gen *g)
{
    int k = rng_range(&g->r, 1, 3);
    val m, n;

    if (!pick_int(g, 0, 12, &m)) {
        return false;
    }
    n = m;
    switch (rng_below(&g->r, 5)) {
    case 0:
        n.text = str(g, "%s + %d", m.text, k);
        n.d[0] = dim_plus(m.d[0], k);
        break;
    case 1:
        n.text = str(g, "%s * %d", m.text, k);
        n.d[0] = dim_times(m.d[0], dim_of(k));
        break;
    case 2:
        n.text = str(g, "%s // %d", m.text, k);
        for (int c = 0; c < CALLS; c++) {
            n.d[0].n[c] = m.d[0].n[c] / k;
        }
        break;
    case 3:
        n.text = str(g, "%s %% %d", m.text, k + 1);
        for (int c = 0; c < CALLS; c++) {
            n.d[0].n[c] = m.d[0].n[c] % (k + 1);
        }
        break;
    default:
        n.text = str(g, "max(%s, %d)", m.text, k);
        for (int c = 0; c < CALLS; c++) {
            n.d[0].n[c] = m.d[0].n[c] > k ? m.d[0].n[c] : k;
        }
        break;
    }
    put_host(g, n);
    return true;
}

static bool op_float(gen *g)
{
    val f, n;

    if (rng_chance(&g->r, 30) && pick_int(g, 1, 20, &n)) {
        f = (val){.kind = K_FLOAT, .lo = 0, .hi = 20};
        f.text = str(g, "%s / %d", n.text, rng_range(&g->r, 1, 9));
        put_host(g, f);
        return true;
    }
    if (!pick_kind(g, K_FLOAT, &f)) {
        return false;
    }
    double most = fmax(fabs(f.lo), fabs(f.hi));

    switch (rng_below(&g->r, 4)) {
    case 0:
        f.text = str(g, "%s * 0.5", f.text);
        break;
    case 1:
        f.text = str(g, "%s + 1.0", f.text);
        most += 1;
        break;
    case 2:
        f.text = str(g, "sin(%s)", f.text);
        most = 1;
        break;
    default:
        f.text = str(g, "min(%s, 0.75)", f.text);
        most += 1;
        break;
    }
    f.lo = -most;
    f.hi = most;
    put_host(g, f);
    return true;
}

/* Two or three values in a container, and out again by their paths. */
static bool op_container(gen *g)
{
    const char *name = fresh(g, "c"), *text[3];
    int how = rng_below(&g->r, 5), n = rng_range(&g->r, 2, 3);
    val v[3];

    for (int i = 0; i < n; i++) {
        v[i] = operand(g, W_ANY, 0, RANK);
    }
    if (how == 0) {
        line(g, "%s = {\"a\": %s, \"b\": %s%s%s}", name, v[0].text, v[1].text,
             n > 2 ? ", \"c\": " : "", n > 2 ? v[2].text : "");
    } else if (how == 1) {
        n = 2;
        line(g, "%s = Pair(%s, %s)", name, v[0].text, v[1].text);
    } else if (how == 2) {
        line(g, "%s = ((%s, %s), [%s])", name, v[0].text, v[1].text,
             n > 2 ? v[2].text : "1");
    } else {
        line(g, how == 3 ? "%s = (%s, %s%s%s)" : "%s = [%s, %s%s%s]", name,
             v[0].text, v[1].text, n > 2 ? ", " : "",
             n > 2 ? v[2].text : "");
    }
    for (int i = 0; i < n; i++) {
        text[i] = how == 0   ? str(g, "%s[\"%c\"]", name, 'a' + i)
                  : how == 1 ? str(g, "%s.%s", name, i == 0 ? "x" : "y")
                  : how == 2 ? str(g, i < 2 ? "%s[0][%d]" : "%s[1][%d]", name,
                                   i % 2)
                             : str(g, "%s[%d]", name, i);
        v[i].text = text[i];
        v[i].once = v[i].name = false;
        add(g, v[i]);
    }
    g->ops++;
    return true;
}

/* A list by a comprehension, then its sum or stack. */
static bool op_comprehension(gen *g)
{
    val a = operand(g, W_FLOAT, 0, RANK - 1), r;
    const char *name;
    int n = rng_range(&g->r, 2, 3);

    if (a.once || numel_max(g, &a) > 300) {
        give_back(g, &a);
        return false;
    }
    name = fresh(g, "c");
    line(g, "%s = [%s * (k + %s) for k in range(%d)]", name, a.text,
         number(g, -1, 2), n);
    r = a;
    r.name = false;
    r.hi = (n + 3) * fmax(fabs(a.lo), fabs(a.hi));
    r.lo = -r.hi;
    if (rng_chance(&g->r, 50)) {
        r.text = str(g, "sum(%s)", name);
        r.hi *= n;
        r.lo *= n;
    } else {
        for (int k = r.rank; k > 0; k--) {
            r.d[k] = r.d[k - 1];
        }
        r.d[0] = dim_of(n);
        r.rank++;
        r.text = str(g, "stack(%s)", name);
    }
    (void)put_name(g, r);
    return true;
}

/* A closure over a number in scope. */
static bool op_closure(gen *g)
{
    const char *name = fresh(g, "h"), *by = number(g, -2, 2);

    switch (rng_below(&g->r, 5)) {
    case 0:
        line(g, "%s = fn(x) => x * %s + 0.5", name, by);
        break;
    case 1:
        line(g, "%s = fn(x) => tanh(x) - %s", name, by);
        break;
    case 2:
        line(g, "%s = fn(x) => maximum(x, %s)", name, by);
        break;
    case 3:
        line(g, "%s = fn(x) => x * sigmoid(x * %s)", name, by);
        break;
    default:
        line(g, "fn %s(x):", name);
        line(g, "    y = x * %s", by);
        line(g, "    return y - x");
        break;
    }
    add(g, (val){.kind = K_FN1, .text = name});
    return true;
}

/* A call of a closure or helper. */
static bool op_call(gen *g)
{
    val f, a = operand(g, W_FLOAT, 0, RANK);

    if (!pick_kind(g, K_FN1, &f)) {
        give_back(g, &a);
        return false;
    }
    a.text = rng_chance(&g->r, 20) ? str(g, "(%s |> %s)", a.text, f.text)
                                   : str(g, "%s(%s)", f.text, a.text);
    a.hi = 6 * fmax(fabs(a.lo), fabs(a.hi)) + 6;
    a.lo = -a.hi;
    put(g, a);
    return true;
}

const op_row gen_host[] = {
    {op_size, 5}, {op_int, 6}, {op_float, 4}, {op_container, 6},
    {op_comprehension, 4}, {op_closure, 4}, {op_call, 8}, {0},
};
