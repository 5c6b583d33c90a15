/* gen.c - a whole program: definitions, the compiled function, its calls. */
#include "tests/compile/gen.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "runtime/base/mem.h"
#include "tests/compile/gen_impl.h"

enum { PARAMS = 8 };

/* An argument: how it is written in each call. */
typedef struct param {
    const char *name;
    const char *arg[CALLS];
} param;

typedef struct program {
    gen g;
    param params[PARAMS];
    int nparams;
    const char *globals[5][CALLS]; /* statements before each call; "" : none */
    int nglobals;
    dim sizes[4];
} program;

/* ---- texts --------------------------------------------------------------- */

const char *str(gen *g, const char *fmt, ...)
{
    char *at = g->texts + g->used;
    size_t left = TEXTS - g->used;
    va_list ap;
    int n;

    va_start(ap, fmt);
    n = vsnprintf(at, left, fmt, ap);
    va_end(ap);
    if (n < 0 || (size_t)n + 1 >= left) {
        g->full = true;
        return "0.0";
    }
    g->used += (size_t)n + 1;
    return at;
}

void line(gen *g, const char *fmt, ...)
{
    va_list ap;

    for (int i = 0; i < g->indent; i++) {
        tl_buf_puts(g->out, "    ");
    }
    va_start(ap, fmt);
    tl_buf_vprintf(g->out, fmt, ap);
    va_end(ap);
    tl_buf_putc(g->out, '\n');
}

const char *fresh(gen *g, const char *prefix)
{
    return str(g, "%s%d", prefix, g->next++);
}

/* ---- operations ---------------------------------------------------------- */

bool gen_one(gen *g, const op_row *rows)
{
    int total = 0;

    for (const op_row *r = rows; r->fn != NULL; r++) {
        total += r->weight;
    }
    int draw = rng_below(&g->r, total);

    for (const op_row *r = rows;; r++) {
        draw -= r->weight;
        if (draw < 0) {
            return r->fn(g);
        }
    }
}

void gen_ops(gen *g, int n)
{
    static const struct {
        const op_row *rows;
        int weight;
    } families[] = {
        {gen_elementwise, 42}, {gen_reduce, 17}, {gen_shape, 14},
        {gen_index, 10},       {gen_matrix, 9},  {gen_host, 7},
        {gen_flow, 4},         {gen_grads, 11},  {gen_modules, 12},
    };
    int until = g->ops + n;

    for (int tries = 0; g->ops < until && tries < 4 * n + 8; tries++) {
        int draw = rng_below(&g->r, g->net.any ? 126 : 114), i = 0;

        while ((draw -= families[i].weight) >= 0) {
            i++;
        }
        if (g->full || g->out->len > 30000) {
            return;
        }
        (void)gen_one(g, families[i].rows);
    }
}

/* ---- parameters and arguments -------------------------------------------- */

static dim varying(program *p, int lo, int hi)
{
    gen *g = &p->g;
    dim d = dim_of(rng_range(&g->r, lo, hi));

    for (int c = 1; c < g->ncalls; c++) {
        d.n[c] = rng_chance(&g->r, 45) ? d.n[c - 1]
                                       : rng_range(&g->r, lo, hi);
    }
    return d;
}

static void choose_sizes(program *p)
{
    gen *g = &p->g;
    bool large = rng_chance(&g->r, 4);

    p->sizes[0] = varying(p, rng_chance(&g->r, 20) ? 1 : 2, large ? 40 : 6);
    p->sizes[1] = rng_chance(&g->r, 40) ? varying(p, 1, 4)
                                        : dim_of(rng_range(&g->r, 1, 5));
    p->sizes[2] = dim_of(rng_range(&g->r, 1, large ? 70 : 6));
    p->sizes[3] = dim_of(rng_range(&g->r, 2, 4));
    if (rng_chance(&g->r, 3)) {
        p->sizes[3] = dim_of(rng_range(&g->r, 250, 600));
    }
}

static const char *sizes_of(gen *g, const val *v, int c, bool flipped)
{
    const char *text = "";

    for (int k = 0; k < v->rank; k++) {
        int at = flipped ? v->rank - 1 - k : k;

        text = str(g, k > 0 ? "%s, %d" : "%s%d", text, v->d[at].n[c]);
    }
    return text;
}

/* A tensor of v's type in call c; it may lie in any order. */
static const char *tensor_arg(gen *g, const val *v, int c)
{
    const char *sep = v->rank > 0 ? ", " : "", *dt = tl_dtype_name(v->dtype);
    int how = rng_below(&g->r, 10);

    if (v->dtype == TL_bool) {
        return str(g, "(rand(%s) < 0.5)", sizes_of(g, v, c, false));
    }
    if (class_of(v->dtype) == W_INT) {
        return str(g, "randint(%d, %d, %s%sdtype=%s)", (int)v->lo,
                   (int)v->hi + 1, sizes_of(g, v, c, false), sep, dt);
    }
    if (how == 0 && v->rank == 2) {
        return str(g, "randn(%s, dtype=%s).T", sizes_of(g, v, c, true), dt);
    }
    if (how == 1 && v->rank > 0) {
        return str(g, "randn(2, %s, dtype=%s)[1]", sizes_of(g, v, c, false),
                   dt);
    }
    if (how == 2 && v->rank > 0) {
        return str(g, "randn(%s, 2, dtype=%s)[..., 0]",
                   sizes_of(g, v, c, false), dt);
    }
    if (how == 3 && v->rank == 1) {
        return str(g, "randn(1, dtype=%s).expand(%d)", dt, v->d[0].n[c]);
    }
    return str(g, "randn(%s%sdtype=%s)", sizes_of(g, v, c, false), sep, dt);
}

static param *new_param(program *p, const char *prefix)
{
    param *q = &p->params[p->nparams++];

    q->name = fresh(&p->g, prefix);
    return q;
}

static val random_type(program *p)
{
    static const tl_dtype types[] = {TL_f32, TL_f32, TL_f32, TL_f32, TL_f64,
                                     TL_f64, TL_i64, TL_i32, TL_bool};
    gen *g = &p->g;
    tl_dtype t = types[rng_below(&g->r, 9)];
    val v = {.dtype = t, .lo = -6, .hi = 6};

    if (class_of(t) == W_INT) {
        v.lo = 0;
        v.hi = rng_range(&g->r, 1, 9);
    } else if (t == TL_bool) {
        v.lo = 0;
        v.hi = 1;
    }
    v.rank = rng_chance(&g->r, 10) ? 0 : rng_range(&g->r, 1, 3);
    for (int k = 0; k < v.rank; k++) {
        v.d[k] = rng_chance(&g->r, 10) ? dim_of(1)
                                       : p->sizes[rng_below(&g->r, 4)];
    }
    while (numel_max(g, &v) > 2000) {
        v.rank--;
    }
    return v;
}

static void tensor_param(program *p)
{
    gen *g = &p->g;
    val v = random_type(p);
    param *q = new_param(p, "a");

    if (p->nparams == 1 && class_of(v.dtype) != W_FLOAT) {
        v.dtype = TL_f32;
        v.lo = -6;
        v.hi = 6;
    }
    v.text = q->name;
    v.name = true;
    for (int c = 0; c < g->ncalls; c++) {
        q->arg[c] = tensor_arg(g, &v, c);
    }
    add(g, v);
}

static void int_param(program *p)
{
    gen *g = &p->g;
    val v = {.kind = K_INT, .exact = true};
    param *q = new_param(p, "m");

    v.d[0] = varying(p, rng_chance(&g->r, 30) ? 0 : 1, 5);
    v.text = q->name;
    for (int c = 0; c < g->ncalls; c++) {
        q->arg[c] = str(g, "%d", v.d[0].n[c]);
    }
    add(g, v);
}

static void float_param(program *p)
{
    gen *g = &p->g;
    val v = {.kind = K_FLOAT, .lo = -2, .hi = 2};
    param *q = new_param(p, "r");

    v.text = q->name;
    for (int c = 0; c < g->ncalls; c++) {
        q->arg[c] = str(g, "%.3f", rng_range(&g->r, -2000, 2000) / 1000.0);
    }
    add(g, v);
}

static void bool_param(program *p)
{
    gen *g = &p->g;
    param *q = new_param(p, "b");

    for (int c = 0; c < g->ncalls; c++) {
        q->arg[c] = rng_chance(&g->r, 50) ? "true" : "false";
    }
    add(g, (val){.kind = K_BOOL, .text = q->name});
}

/* ---- globals and helpers ------------------------------------------------- */

static void global(program *p, val v)
{
    gen *g = &p->g;
    int n = p->nglobals++;
    const char *name = fresh(g, "s"), *last = "";

    for (int c = 0; c < g->ncalls; c++) {
        const char *now = v.kind == K_TENSOR ? tensor_arg(g, &v, c)
                          : v.kind == K_INT  ? str(g, "%d", v.d[0].n[c])
                          : str(g, "%.2f", rng_range(&g->r, -20, 20) / 10.0);
        bool same = c > 0 && rng_chance(&g->r, 50);

        if (v.kind == K_TENSOR) {
            for (int k = 0; k < v.rank; k++) {
                same &= v.d[k].n[c] == v.d[k].n[c > 0 ? c - 1 : 0];
            }
        }
        same = v.kind == K_INT ? strcmp(now, last) == 0 : same;
        p->globals[n][c] = same ? "" : str(g, "%s = %s", name, now);
        last = now;
    }
    v.text = name;
    v.name = v.once = false;
    add(g, v);
}

/* A function that is another one before some calls: of several forms, or a
 * helper. */
static void function_global(program *p)
{
    static const char *const forms[][2] = {{"x * (", ")"},
                                           {"sin(x) + (", ")"},
                                           {"silu(x - (", "))"},
                                           {"where(x > ", ", x, -x)"}};
    gen *g = &p->g;
    int n = p->nglobals++;
    const char *name = fresh(g, "s");
    val helper;

    for (int c = 0; c < g->ncalls; c++) {
        const char *const *form = forms[rng_below(&g->r, 4)];
        const char *by = str(g, "%.2f", rng_range(&g->r, -20, 20) / 10.0);

        p->globals[n][c] =
            c > 0 && rng_chance(&g->r, 50) ? ""
            : rng_chance(&g->r, 30) && pick_kind(g, K_FN1, &helper)
                ? str(g, "%s = %s", name, helper.text)
                : str(g, "%s = fn(x) => %s%s%s", name, form[0], by, form[1]);
    }
    add(g, (val){.kind = K_FN1, .text = name});
}

static void globals(program *p)
{
    gen *g = &p->g;

    if (rng_chance(&g->r, 40)) {
        global(p, (val){.kind = K_FLOAT, .lo = -2, .hi = 2});
    }
    if (rng_chance(&g->r, 30)) {
        global(p, random_type(p));
    }
    if (rng_chance(&g->r, 15)) {
        val v = {.kind = K_INT, .exact = true};

        v.d[0] = varying(p, 1, 4);
        global(p, v);
    }
    if (rng_chance(&g->r, 30)) {
        function_global(p);
    }
}

/* A helper that leaves by conditions of the run: branches in branches, loops
 * that unroll and loops that the run counts, with prints that must not happen
 * after it has left. */
static void leaving(gen *g, const char *name)
{
    int how = rng_below(&g->r, 6);
    const char *loud = rng_chance(&g->r, 40) ? "print(\"on\", x.sum())"
                                             : "pass";
    const char *t = number(g, -1, 2), *u = number(g, -2, 3);

    line(g, "fn %s(x):", name);
    switch (how) {
    case 0:
        line(g, "    if x.sum() > %s:", t);
        line(g, "        return x * %s", number(g, -1, 2));
        line(g, "    %s", loud);
        line(g, "    y = cos(x)");
        line(g, "    return y");
        return;
    case 1:
        line(g, "    if x.sum() > %s:", t);
        line(g, "        x = tanh(x)");
        line(g, "        if x.sum() > %s:", u);
        line(g, "            return x + 0.5");
        line(g, "        elif x.sum() < 0.1:");
        line(g, "            return sin(x)");
        line(g, "        %s", loud);
        line(g, "    return x * %s", number(g, -1, 2));
        return;
    case 2:
        line(g, "    for k in range(%d):", rng_range(&g->r, 1, 4));
        line(g, "        if x.sum() > %s:", t);
        line(g, "            %s", rng_chance(&g->r, 50) ? "break"
                                                        : "continue");
        if (rng_chance(&g->r, 50)) {
            line(g, "        if x.sum() < %s:", u);
            line(g, "            return x - k");
        }
        line(g, "        %s", loud);
        line(g, "        x = x * 0.5 + 0.25");
        line(g, "    return x");
        return;
    case 3:
        line(g, "    n = 0");
        line(g, "    while true:");
        line(g, "        x = x * %s", number(g, 0.2, 0.8));
        line(g, "        n += 1");
        line(g, "        if x.sum() < %s or n > 5:", t);
        line(g, "            return x * n");
        if (rng_chance(&g->r, 50)) {
            line(g, "        if n > 3:");
            line(g, "            break");
        }
        line(g, "        %s", loud);
        line(g, "    return x + 1.0");
        return;
    case 4:
        line(g, "    n = 1 if len(x.shape) == 0 else x.shape[-1]");
        line(g, "    for k in range(n %% 4 + %d):", rng_range(&g->r, 0, 3));
        line(g, "        x = sin(x + k)");
        line(g, "        if x.sum() > %s:", t);
        line(g, "            return x * %s", number(g, -1, 2));
        line(g, "        for j in [0.5, 2.0]:");
        line(g, "            if x.sum() < %s:", u);
        line(g, "                %s", rng_chance(&g->r, 50) ? "break"
                                                            : "return cos(x)");
        line(g, "            x = x * j");
        line(g, "        %s", loud);
        line(g, "    return x");
        return;
    default:
        line(g, "    for k in [1.0, -0.5, 0.25]:");
        line(g, "        if x.sum() > %s:", t);
        line(g, "            if x.max() > %s:", u);
        line(g, "                return x * k");
        line(g, "            x = x - k");
        line(g, "            continue");
        line(g, "        %s", loud);
        line(g, "        x = tanh(x) * 0.9");
        line(g, "    return x");
        return;
    }
}

/* Functions of one tensor that keep its type. */
static void helpers(program *p)
{
    gen *g = &p->g;

    for (int i = 0; i < 2; i++) {
        const char *name = fresh(g, "h");

        if (rng_chance(&g->r, 40)) {
            continue;
        }
        switch (rng_below(&g->r, 5)) {
        case 0:
            line(g, "fn %s(x) = tanh(x) * %s", name, number(g, -2, 2));
            break;
        case 4:
            leaving(g, name);
            break;
        case 1:
            line(g, "fn %s(x, k=%s):", name, number(g, -2, 2));
            line(g, "    y = sigmoid(x * k)");
            line(g, "    return y * x");
            break;
        case 2:
            line(g, "fn %s(x):", name);
            line(g, "    y = sin(x)");
            line(g, "    return y");
            line(g, "backward dy:");
            line(g, "    return dy * %s + y", number(g, 0.2, 2));
            break;
        default:
            line(g, "fn %s(x):", name);
            line(g, "    for k in range(%d):", rng_range(&g->r, 1, 3));
            line(g, "        x = x * 0.5 + k");
            line(g, "    return x");
            break;
        }
        add(g, (val){.kind = K_FN1, .text = name});
    }
}

/* ---- the program --------------------------------------------------------- */

static void header(program *p)
{
    gen *g = &p->g;
    const char *params = "";

    for (int i = 0; i < p->nparams; i++) {
        params = str(g, i > 0 ? "%s, %s" : "%s%s", params, p->params[i].name);
    }
    line(g, "@compile");
    line(g, "fn f(%s):", params);
}

/* What the function gives back: some of what is in scope. */
static void result(gen *g)
{
    const char *text = "";
    int n = 0;

    for (int i = g->n - 1; i >= 0 && n < 5; i--) {
        const val *v = &g->pool[i];

        if (v->kind != K_FN1 && (i > g->n - 4 || rng_chance(&g->r, 25))) {
            text = str(g, n > 0 ? "%s, %s" : "%s%s", text, v->text);
            n++;
        }
    }
    switch (n > 1 ? rng_below(&g->r, 4) : 4) {
    case 0:
        line(g, "return [%s]", text);
        break;
    case 1:
        line(g, "return {\"r\": (%s)}", text);
        break;
    case 4:
        line(g, "return %s", n > 0 ? text : "1");
        break;
    default:
        line(g, "return (%s)", text);
        break;
    }
}

static void calls(program *p)
{
    gen *g = &p->g;

    bool casts = rng_chance(&g->r, 6);

    line(g, "seed(%d)", rng_below(&g->r, 1000));
    gen_net_make(g);
    for (int c = 0; c < g->ncalls; c++) {
        const char *args = "";

        if (c > 0) {
            gen_net_change(g);
        }
        for (int i = 0; i < p->nglobals; i++) {
            if (p->globals[i][c][0] != '\0') {
                line(g, "%s", p->globals[i][c]);
            }
        }
        for (int i = 0; i < p->nparams; i++) {
            args = str(g, i > 0 ? "%s, %s" : "%s%s", args,
                       p->params[i].arg[c]);
        }
        if (casts && rng_chance(&g->r, 40)) { /* around the call */
            line(g, "with autocast(%s): print(exact(f(%s)))",
                 rng_chance(&g->r, 60) ? "bf16" : "f16", args);
        } else {
            line(g, "print(exact(f(%s)))", args);
        }
        gen_net_show(g);
    }
    line(g, "print(exact(rand(1)))");
}

static void make(program *p)
{
    gen *g = &p->g;

    g->ncalls = rng_range(&g->r, 3, CALLS);
    choose_sizes(p);
    line(g, "record Pair:");
    line(g, "    x: any");
    line(g, "    y: any");
    gen_net(g);
    helpers(p);
    globals(p);
    for (int n = rng_range(&g->r, 1, 3); n > 0; n--) {
        tensor_param(p);
    }
    if (rng_chance(&g->r, 50)) {
        int_param(p);
    }
    if (rng_chance(&g->r, 40)) {
        float_param(p);
    }
    if (rng_chance(&g->r, 15)) {
        bool_param(p);
    }
    header(p);
    g->indent = 1;
    g->pure = rng_chance(&g->r, 60);
    gen_ops(g, rng_chance(&g->r, 50) ? rng_range(&g->r, 1, 10)
                                     : rng_range(&g->r, 10, 40));
    result(g);
    g->indent = 0;
    calls(p);
}

void gen_program(uint64_t seed, uint64_t number, tl_buf *out)
{
    program *p = tl_calloc(1, sizeof(*p));

    if (p == NULL) {
        out->failed = true;
        return;
    }
    p->g.r.state = seed * 0x9e3779b97f4a7c15u ^ number * 0xd1342543de82ef95u;
    (void)rng_next(&p->g.r);
    p->g.out = out;
    make(p);
    tl_free(p);
}
