/* gen_modules.c - a module with cells of all kinds, and its training. */
#include <math.h>
#include <string.h>

#include "tests/compile/gen_impl.h"

/* ---- the definition ------------------------------------------------------ */

static const char *activation(gen *g)
{
    static const char *const names[] = {"gelu", "relu",    "tanh",
                                        "silu", "sigmoid", "softplus"};

    return names[rng_below(&g->r, 6)];
}

static void fields(gen *g, bool blocks, bool norm)
{
    const net *m = &g->net;

    line(g, "fc1, fc2 = nn.Linear(d, h), nn.Linear(h, d)");
    if (blocks) {
        line(g, "blocks = [nn.Linear(h, h, bias=(i > 0)) for i in range(2)]");
    }
    if (norm) {
        line(g, "norm = nn.LayerNorm(h)");
    }
    if (m->draws) {
        line(g, "drop = nn.Dropout(%s)", number(g, 0.1, 0.6));
    }
    if (m->gain) {
        line(g, "param gain: f32[d] = init.ones");
    }
    if (m->seen) {
        line(g, "buffer seen: f32[d] = zeros(d)");
    }
    if (m->k) {
        line(g, "k: float = 0.5");
    }
    if (m->count) {
        line(g, "count: int = 0");
    }
    if (m->rows > 0) {
        line(g, "emb = nn.Embedding(%d, d)", m->rows);
    }
}

static void forward(gen *g, bool blocks, bool norm)
{
    const net *m = &g->net;

    line(g, "fn forward(x):");
    g->indent++;
    line(g, "y = fc1(x) |> %s", activation(g));
    if (blocks) {
        line(g, "for b in blocks:");
        line(g, "    y = y + %s(b(y))", activation(g));
    }
    if (norm) {
        line(g, "y = norm(y)");
    }
    if (m->draws) {
        line(g, "y = drop(y)");
    }
    line(g, "y = fc2(y)");
    if (m->seen) {
        line(g, "self.seen = seen * 0.9 + y.reshape(-1, d).mean(axis=0) * %s",
             m->k ? "k" : "0.1");
    }
    if (m->count) {
        line(g, "self.count = count + 1");
    }
    line(g, "return y%s%s", m->gain ? " * gain" : "", m->k ? " + k" : "");
    g->indent--;
}

void gen_net(gen *g)
{
    static const char *const opts[] = {"SGD", "AdamW", "Adam", "SGD"};
    net *m = &g->net;
    bool blocks = rng_chance(&g->r, 30), norm = rng_chance(&g->r, 40);

    if (!rng_chance(&g->r, 30)) {
        return;
    }
    *m = (net){.any = true, .d = rng_range(&g->r, 1, 4),
               .seen = rng_chance(&g->r, 40), .gain = rng_chance(&g->r, 40),
               .k = rng_chance(&g->r, 40), .count = rng_chance(&g->r, 40),
               .draws = rng_chance(&g->r, 30)};
    m->rows = rng_chance(&g->r, 30) ? rng_range(&g->r, 1, 5) : 0;
    m->opt = rng_chance(&g->r, 85) ? opts[rng_below(&g->r, 4)] : NULL;
    line(g, "import init, nn, optim");
    line(g, "module Net(d: int, h: int):");
    g->indent++;
    fields(g, blocks, norm);
    forward(g, blocks, norm);
    g->indent--;
}

void gen_net_make(gen *g)
{
    const net *m = &g->net;

    if (!m->any) {
        return;
    }
    line(g, "net = Net(%d, %d)", m->d, rng_range(&g->r, 1, 6));
    if (m->opt == NULL) {
        return;
    }
    if (strcmp(m->opt, "SGD") != 0) {
        line(g, "opt = optim.%s(net, lr=0.01, decay=%s)", m->opt,
             rng_chance(&g->r, 50) ? "0.1" : "{\"*.bias\": 0, \"*\": 0.1}");
    } else {
        line(g, "opt = optim.SGD(net, lr=0.05, momentum=%s, nesterov=%s)",
             rng_chance(&g->r, 70) ? "0.9" : "0.0",
             rng_chance(&g->r, 30) ? "true" : "false");
    }
}

/* ---- between calls ------------------------------------------------------- */

void gen_net_show(gen *g)
{
    const net *m = &g->net;

    if (!m->any) {
        return;
    }
    line(g, "print(exact(params(net)))");
    if (m->seen || m->k || m->count) {
        line(g, "print(exact((%s, %s, %s)))", m->seen ? "net.seen" : "0",
             m->k ? "net.k" : "0", m->count ? "net.count" : "0");
    }
    if (m->opt != NULL) {
        line(g, "print(exact((%s, opt.count, opt.lr)))",
             strcmp(m->opt, "SGD") == 0 ? "opt.velocity" : "(opt.m, opt.v)");
    }
}

void gen_net_change(gen *g)
{
    const net *m = &g->net;

    if (!m->any) {
        return;
    }
    if (m->opt != NULL && rng_chance(&g->r, 20)) {
        line(g, "opt.lr = opt.lr * 0.5");
    }
    if (m->k && rng_chance(&g->r, 20)) {
        line(g, "net.k = net.k + 0.25");
    }
    if (m->count && rng_chance(&g->r, 10)) {
        line(g, "net.count = 7");
    }
    if (m->gain && rng_chance(&g->r, 10)) {
        line(g, "net.gain = net.gain * 0.5");
    }
    if (rng_chance(&g->r, 6)) {
        gen_net_make(g);
    }
}

/* ---- operations ---------------------------------------------------------- */

/* f32 with a last axis that the net takes. */
static bool input(gen *g, val *x)
{
    dim last = dim_of(g->net.d), d[2];

    for (int i = 0; i < 4; i++) {
        if (!pick(g, W_FLOAT, 2, 3, x)) {
            break;
        }
        if (x->dtype == TL_f32 && dim_same(g, x->d[x->rank - 1], last) &&
            numel_max(g, x) > 0) {
            return true;
        }
        if (x->dtype == TL_f32 && !x->once && x->rank == 2 &&
            dim_const(g, x->d[1]) && x->d[1].n[0] > 0 &&
            rng_chance(&g->r, 50)) {
            int from = x->d[1].n[0];

            x->text = str(g, "(%s @ full([%d, %d], %s))", x->text, from,
                          g->net.d, number(g, -1, 1));
            x->hi = from * fmax(fabs(x->lo), fabs(x->hi));
            x->lo = -x->hi;
            x->d[1] = last;
            return true;
        }
        give_back(g, x);
    }
    d[0] = dim_of(rng_range(&g->r, 1, 4));
    d[1] = last;
    return leaf(g, TL_f32, 2, d, x);
}

static bool op_net(gen *g)
{
    val x;

    if (!g->net.any || !input(g, &x)) {
        return false;
    }
    if (x.dtype != TL_f32) {
        return false;
    }
    x.text = str(g, "net(%s)", x.text);
    x.lo = -40;
    x.hi = 40;
    (void)put_name(g, x);
    return true;
}

static bool op_embed(gen *g)
{
    val i;

    if (g->net.rows == 0 || !pick(g, W_INT, 0, 2, &i)) {
        return false;
    }
    i.text = i.lo >= 0 && i.hi < g->net.rows
                 ? str(g, "net.emb(%s)", i.text)
                 : str(g, "net.emb(%s %% %d)", i.text, g->net.rows);
    i.dtype = TL_f32;
    i.d[i.rank++] = dim_of(g->net.d);
    i.lo = -8;
    i.hi = 8;
    put(g, i);
    return true;
}

static bool op_cell_read(gen *g)
{
    dim d[2] = {dim_of(g->net.d)};
    const net *m = &g->net;

    if (!m->any) {
        return false;
    }
    switch (rng_below(&g->r, 5)) {
    case 0:
        if (m->gain) {
            put(g, tensor_of(TL_f32, 1, d, "net.gain", -8, 8));
            return true;
        }
        return false;
    case 1:
        if (m->seen) {
            put(g, tensor_of(TL_f32, 1, d, "net.seen", -40, 40));
            return true;
        }
        return false;
    case 2:
        if (m->k) {
            const char *name = fresh(g, "n");

            line(g, "%s = net.k", name);
            add(g, (val){.kind = K_FLOAT, .text = name, .lo = -2, .hi = 4});
            return true;
        }
        return false;
    case 3:
        put(g, tensor_of(TL_f32, 1, d, "net.fc2.bias", -8, 8));
        return true;
    default:
        put(g, tensor_of(TL_f32, 0, d, "net.fc1.weight.sum()", -50, 50));
        return true;
    }
}

static bool op_cell_write(gen *g)
{
    const net *m = &g->net;
    val v;
    dim d = dim_of(m->d);

    if (!m->any || g->in_loop) {
        return false;
    }
    switch (rng_below(&g->r, 4)) {
    case 0:
        if (!m->seen || !leaf(g, TL_f32, 1, &d, &v)) {
            return false;
        }
        forget(g, "net.seen");
        line(g, "net.seen = net.seen * 0.5 + %s", v.text);
        break;
    case 1:
        if (!m->k) {
            return false;
        }
        line(g, "net.k = net.k * %s", number(g, 0.2, 1.2));
        break;
    case 2:
        if (!m->count) {
            return false;
        }
        line(g, "net.count = net.count * 2 - 1");
        break;
    default:
        if (!m->gain || g->tapes > 0) {
            return false;
        }
        forget(g, "net.gain");
        line(g, "net.gain = net.gain * 0.9 + 0.01");
        break;
    }
    g->ops++;
    return true;
}

static bool op_mode(gen *g)
{
    if (!g->net.any || g->depth > 2) {
        return false;
    }
    line(g, "with mode(\"%s\", net):",
         rng_chance(&g->r, 50) ? "eval" : "train");
    enter(g);
    if (!op_net(g)) {
        line(g, "pass");
    }
    gen_ops(g, rng_range(&g->r, 0, 2));
    leave(g, true);
    return true;
}

/* What becomes of a gradient. */
static void use_gradient(gen *g, const char *name)
{
    dim d = dim_of(g->net.d);

    if (g->net.opt != NULL && g->tapes == 0 && rng_chance(&g->r, 80)) {
        forget(g, "net.gain");
        switch (rng_below(&g->r, 4)) {
        case 0:
            line(g, "opt.step(clip_norm(%s, %s))", name, number(g, 0.1, 2));
            break;
        case 1:
            line(g, "opt.step(%s * %s)", name, number(g, 0.1, 2));
            break;
        default:
            line(g, "opt.step(%s)", name);
            break;
        }
    }
    add(g, tensor_of(TL_f32, 1, &d, str(g, "%s.fc2.bias", name), -1e4, 1e4));
    if (rng_chance(&g->r, 40)) {
        add(g, tensor_of(TL_f32, 0, &d, str(g, "%s.norm()", name), -1e4,
                         1e4));
    }
}

static bool op_train(gen *g)
{
    const char *name, *loss;
    int tapes = g->tapes;
    val x, y, a;

    if (!g->net.any || g->tapes > 0 || g->in_loop || !input(g, &x) ||
        x.dtype != TL_f32) {
        return false;
    }
    name = fresh(g, "g");
    loss = fresh(g, "l");
    line(g, "%s = grad %s wrt net:", name, loss);
    enter(g);
    g->tapes++;
    x.text = str(g, "net(%s)", x.text);
    x.lo = -40;
    x.hi = 40;
    y = put_name(g, x);
    gen_ops(g, rng_range(&g->r, 0, 6));
    const char *sum = gen_scalar(g, &y);

    if (rng_chance(&g->r, 60) && pick(g, W_FLOAT, 0, RANK, &a) &&
        numel_max(g, &a) > 0) {
        sum = str(g, "%s + %s", sum, gen_scalar(g, &a));
    }
    line(g, "%s = %s", loss, sum);
    g->tapes = tapes;
    leave(g, true);
    use_gradient(g, name);
    g->ops += 2;
    return true;
}

const op_row gen_modules[] = {
    {op_net, 5}, {op_embed, 3}, {op_cell_read, 4}, {op_cell_write, 4},
    {op_mode, 2}, {op_train, 7}, {0},
};
