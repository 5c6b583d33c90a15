/* gen_value.c - what the generator knows of sizes and values in scope. */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/compile/gen_impl.h"

/* ---- sizes --------------------------------------------------------------- */

dim dim_of(int n)
{
    dim d;

    for (int i = 0; i < CALLS; i++) {
        d.n[i] = n;
    }
    return d;
}

bool dim_same(const gen *g, dim a, dim b)
{
    return memcmp(a.n, b.n, (size_t)g->ncalls * sizeof(int)) == 0;
}

bool dim_is(const gen *g, dim d, int n)
{
    return dim_same(g, d, dim_of(n));
}

bool dim_const(const gen *g, dim d)
{
    return dim_is(g, d, d.n[0]);
}

int dim_min(const gen *g, dim d)
{
    int m = d.n[0];

    for (int i = 1; i < g->ncalls; i++) {
        m = d.n[i] < m ? d.n[i] : m;
    }
    return m;
}

int dim_max(const gen *g, dim d)
{
    int m = d.n[0];

    for (int i = 1; i < g->ncalls; i++) {
        m = d.n[i] > m ? d.n[i] : m;
    }
    return m;
}

dim dim_plus(dim d, int n)
{
    return dim_sum(d, dim_of(n));
}

dim dim_sum(dim a, dim b)
{
    for (int i = 0; i < CALLS; i++) {
        a.n[i] += b.n[i];
    }
    return a;
}

dim dim_times(dim a, dim b)
{
    for (int i = 0; i < CALLS; i++) {
        a.n[i] *= b.n[i];
    }
    return a;
}

const char *dim_text(gen *g, dim d)
{
    const char *found = NULL;
    int seen = 0;

    if (dim_const(g, d)) {
        return str(g, "%d", d.n[0]);
    }
    for (int i = 0; i < g->n; i++) {
        const val *v = &g->pool[i];

        if (v->once) {
            continue;
        }
        if (v->kind == K_INT && v->exact && dim_same(g, v->d[0], d) &&
            rng_below(&g->r, ++seen) == 0) {
            found = v->text;
        }
        for (int k = 0; v->kind == K_TENSOR && k < v->rank; k++) {
            if (dim_same(g, v->d[k], d) && rng_below(&g->r, ++seen) == 0) {
                found = str(g, "%s.shape[%d]", v->text,
                            rng_chance(&g->r, 20) ? k - v->rank : k);
            }
        }
    }
    return found;
}

double numel_max(const gen *g, const val *v)
{
    double most = 0;

    for (int c = 0; c < g->ncalls; c++) {
        double n = 1;

        for (int k = 0; k < v->rank; k++) {
            n *= v->d[k].n[c];
        }
        most = n > most ? n : most;
    }
    return most;
}

bool same_shape(const gen *g, const val *a, const val *b)
{
    bool same = a->rank == b->rank;

    for (int k = 0; same && k < a->rank; k++) {
        same = dim_same(g, a->d[k], b->d[k]);
    }
    return same;
}

/* In one call: LANGUAGE.md 5. */
static bool broadcast_call(const val *a, const val *b, int c, val *out)
{
    bool grows_a = a->rank < out->rank, grows_b = b->rank < out->rank;

    for (int k = 1; k <= out->rank; k++) {
        int x = k <= a->rank ? a->d[a->rank - k].n[c] : 1;
        int y = k <= b->rank ? b->d[b->rank - k].n[c] : 1;

        if (x != y && x != 1 && y != 1) {
            return false;
        }
        out->d[out->rank - k].n[c] = x == 1 ? y : x;
        grows_a |= x == 1 && y != 1;
        grows_b |= y == 1 && x != 1;
    }
    return !(grows_a && grows_b && a->rank != b->rank);
}

bool broadcast(const gen *g, const val *a, const val *b, val *out)
{
    out->rank = a->rank > b->rank ? a->rank : b->rank;
    for (int c = 0; c < CALLS; c++) {
        if (!broadcast_call(a, b, c < g->ncalls ? c : 0, out)) {
            return false;
        }
    }
    for (int k = 0; k < out->rank; k++) {
        for (int c = g->ncalls; c < CALLS; c++) {
            out->d[k].n[c] = out->d[k].n[0];
        }
    }
    return true;
}

/* ---- picking ------------------------------------------------------------- */

int class_of(tl_dtype t)
{
    return t == TL_bool ? W_BOOL : tl_dtype_is_float(t) ? W_FLOAT : W_INT;
}

typedef struct want {
    kind kind;
    int classes, rmin, rmax;
    const val *like;
    bool name;
    int lo, hi; /* of exact ints, if lo <= hi */
} want;

static bool fits(const gen *g, const val *v, const want *w)
{
    if (v->kind != w->kind || (w->name && !v->name)) {
        return false;
    }
    if (v->kind == K_INT && w->lo <= w->hi) {
        return v->exact && dim_min(g, v->d[0]) >= w->lo &&
               dim_max(g, v->d[0]) <= w->hi;
    }
    if (v->kind != K_TENSOR) {
        return true;
    }
    return (class_of(v->dtype) & w->classes) && v->rank >= w->rmin &&
           v->rank <= w->rmax && (!w->like || same_shape(g, v, w->like));
}

static void take(gen *g, int i, val *out)
{
    *out = g->pool[i];
    if (out->once) {
        memmove(&g->pool[i], &g->pool[i + 1],
                (size_t)(g->n - i - 1) * sizeof(val));
        g->n--;
    }
}

/* Later values weigh more. */
static bool choose(gen *g, const want *w, val *out)
{
    double total = 0;
    int best = -1;

    for (int i = 0; i < g->n; i++) {
        if (fits(g, &g->pool[i], w)) {
            double weight = g->pool[i].once ? 8 : 1 + 3.0 * i / g->n;
            double draw = rng_below(&g->r, 1 << 20) / (double)(1 << 20);

            total += weight;
            if (draw * total < weight) {
                best = i;
            }
        }
    }
    if (best < 0) {
        return false;
    }
    take(g, best, out);
    return true;
}

bool pick(gen *g, int classes, int rmin, int rmax, val *out)
{
    want w = {.classes = classes, .rmin = rmin, .rmax = rmax, .hi = -1};

    return choose(g, &w, out);
}

bool pick_kind(gen *g, kind k, val *out)
{
    want w = {.kind = k, .hi = -1};

    return choose(g, &w, out);
}

bool pick_int(gen *g, int lo, int hi, val *out)
{
    want w = {.kind = K_INT, .lo = lo, .hi = hi};

    return choose(g, &w, out);
}

bool pick_name(gen *g, int classes, int rmin, val *out)
{
    want w = {.classes = classes, .rmin = rmin, .rmax = RANK, .hi = -1,
              .name = true};

    return choose(g, &w, out);
}

bool pick_like(gen *g, const val *a, int classes, val *out)
{
    want w = {.classes = classes, .rmax = RANK, .like = a, .hi = -1};

    return choose(g, &w, out);
}

/* ---- making -------------------------------------------------------------- */

val tensor_of(tl_dtype t, int rank, const dim *d, const char *text, double lo,
              double hi)
{
    val v = {.text = text, .dtype = t, .rank = rank, .lo = lo, .hi = hi};

    if (rank > 0) {
        memcpy(v.d, d, (size_t)rank * sizeof(dim));
    }
    return v;
}

const char *number(gen *g, double lo, double hi)
{
    static const double nice[] = {0.5, 1.0, 2.0, -1.0, 0.25, 3.0, 1.5, 0.1};
    val v;

    if (rng_chance(&g->r, 25) && pick_kind(g, K_FLOAT, &v)) {
        if (v.lo >= lo && v.hi <= hi) {
            return v.text;
        }
    }
    for (int i = 0; i < 4; i++) {
        double x = nice[rng_below(&g->r, 8)];

        if (x >= lo && x <= hi) {
            return str(g, "%.2f", x);
        }
    }
    double x = lo + (hi - lo) * rng_below(&g->r, 100) / 100;

    return x < 0 ? str(g, "(%.3f)", x) : str(g, "%.3f", x);
}

/* "2, n, x.shape[1]" */
static const char *sizes_text(gen *g, int rank, const dim *d)
{
    const char *text = "";

    for (int k = 0; k < rank; k++) {
        const char *one = dim_text(g, d[k]);

        if (one == NULL) {
            return NULL;
        }
        text = str(g, k > 0 ? "%s, %s" : "%s%s", text, one);
    }
    return text;
}

static val leaf_float(gen *g, tl_dtype t, int rank, const dim *d,
                      const char *sizes)
{
    const char *dt = t == TL_f64 ? "f64" : "f32";
    const char *sep = rank > 0 ? ", " : "";

    switch (g->pure ? 2 + rng_below(&g->r, 3) : rng_below(&g->r, 6)) {
    case 0:
        return tensor_of(t, rank, d,
                         str(g, "rand(%s%sdtype=%s)", sizes, sep, dt), 0, 1);
    case 1:
        return tensor_of(t, rank, d,
                         str(g, "randn(%s%sdtype=%s)", sizes, sep, dt), -6,
                         6);
    case 2:
        return tensor_of(t, rank, d,
                         str(g, "ones(%s%sdtype=%s)", sizes, sep, dt), 1, 1);
    case 3:
        return tensor_of(t, rank, d,
                         str(g, "zeros(%s%sdtype=%s)", sizes, sep, dt), 0, 0);
    default:
        return tensor_of(t, rank, d,
                         str(g, "full([%s], %s, dtype=%s)", sizes,
                             number(g, -4, 4), dt), -4, 4);
    }
}

bool leaf(gen *g, tl_dtype t, int rank, const dim *d, val *out)
{
    const char *sizes = sizes_text(g, rank, d);

    if (sizes == NULL) {
        return false;
    }
    if (class_of(t) == W_FLOAT) {
        *out = leaf_float(g, t, rank, d, sizes);
    } else if (t == TL_bool) {
        *out = tensor_of(t, rank, d,
                         g->pure ? str(g, "(full([%s], %d) > 1)", sizes,
                                       rng_range(&g->r, 0, 3))
                                 : str(g, "(rand(%s) < 0.5)", sizes), 0, 1);
    } else {
        int hi = rng_range(&g->r, 1, 6);

        *out = tensor_of(t, rank, d,
                         g->pure ? str(g, "full([%s], %d, dtype=%s)", sizes,
                                       hi - 1, tl_dtype_name(t))
                                 : str(g, "randint(0, %d, %s%sdtype=%s)", hi,
                                       sizes, rank > 0 ? ", " : "",
                                       tl_dtype_name(t)), 0, hi - 1);
    }
    return true;
}

val operand(gen *g, int classes, int rmin, int rmax)
{
    tl_dtype t = classes & W_FLOAT ? (rng_chance(&g->r, 25) ? TL_f64 : TL_f32)
                 : classes & W_INT ? TL_i64
                                   : TL_bool;
    dim d[RANK];
    val v;

    if (pick(g, classes, rmin, rmax, &v)) {
        return v;
    }
    for (int k = 0; k < RANK; k++) {
        d[k] = dim_of(rng_range(&g->r, 1, 4));
    }
    (void)leaf(g, t, rng_range(&g->r, rmin, rmax < 3 ? rmax : 3), d, &v);
    return v;
}

/* ---- adding -------------------------------------------------------------- */

void add(gen *g, val v)
{
    if (g->n == POOL) { /* the oldest make room */
        memmove(&g->pool[20], &g->pool[40],
                (size_t)(POOL - 40) * sizeof(val));
        g->n -= 20;
    }
    v.scope = g->depth;
    g->pool[g->n++] = v;
}

void give_back(gen *g, const val *v)
{
    if (v->once) {
        add(g, *v);
    }
}

static bool mentions(const char *text, const char *name)
{
    size_t n = strlen(name);

    for (const char *p = text; (p = strstr(p, name)) != NULL; p += n) {
        if (!isdigit((unsigned char)p[n])) {
            return true;
        }
    }
    return false;
}

void forget(gen *g, const char *name)
{
    int n = 0;

    for (int i = 0; i < g->n; i++) {
        if (!g->pool[i].once || !mentions(g->pool[i].text, name)) {
            g->pool[n++] = g->pool[i];
        }
    }
    g->n = n;
}

void enter(gen *g)
{
    g->depth++;
    g->indent++;
}

void leave(gen *g, bool keep)
{
    int n = 0;

    g->depth--;
    g->indent--;
    for (int i = 0; i < g->n; i++) {
        if (g->pool[i].scope <= g->depth || keep) {
            g->pool[n] = g->pool[i];
            if (g->pool[n].scope > g->depth) {
                g->pool[n].scope = g->depth;
            }
            n++;
        }
    }
    g->n = n;
}

/* Keep numbers in a range where they say something. */
static void tame(gen *g, val *v)
{
    double most = fmax(fabs(v->lo), fabs(v->hi));

    if (v->kind != K_TENSOR || v->dtype == TL_bool) {
        return;
    }
    if (class_of(v->dtype) == W_INT) {
        if (most > 1e6) {
            v->text = str(g, "(%s %% 13)", v->text);
            v->lo = 0;
            v->hi = 12;
        }
    } else if (most > 1e3 && most < 1e5 && rng_chance(&g->r, 50)) {
        v->text = str(g, "(%s * 0.001)", v->text);
        v->lo *= 0.001;
        v->hi *= 0.001;
    } else if (!(most <= 1e3)) {
        int i = rng_below(&g->r, 4);

        v->text = i == 0   ? str(g, "tanh(%s)", v->text)
                  : i == 1 ? str(g, "sin(%s)", v->text)
                  : i == 2 ? str(g, "softsign(%s)", v->text)
                           : str(g, "clamp(%s, -2.0, 2.0)", v->text);
        v->lo = i == 3 ? -2 : -1;
        v->hi = -v->lo;
    }
}

/* Another value of the same type goes to a name that exists. */
static bool rebind(gen *g, const val *v)
{
    for (int i = g->n - 1; i >= 0 && !g->in_loop; i--) {
        val *old = &g->pool[i];

        if (old->name && old->kind == v->kind && rng_chance(&g->r, 15)) {
            const char *name = old->text;
            int scope = old->scope;

            line(g, "%s = %s", name, v->text);
            *old = *v;
            old->text = name;
            old->once = false;
            old->name = true;
            old->scope = scope;
            forget(g, name);
            return true;
        }
    }
    return false;
}

val put_name(gen *g, val v)
{
    const char *name = fresh(g, "v");

    tame(g, &v);
    line(g, "%s = %s", name, v.text);
    v.text = name;
    v.once = false;
    v.name = true;
    g->ops++;
    add(g, v);
    return v;
}

void put(gen *g, val v)
{
    tame(g, &v);
    if (strlen(v.text) < 120 && rng_chance(&g->r, 35)) {
        v.once = true;
        v.name = false;
        g->ops++;
        add(g, v);
        return;
    }
    if (rng_chance(&g->r, 12) && g->depth == 0 && rebind(g, &v)) {
        g->ops++;
        return;
    }
    (void)put_name(g, v);
}
