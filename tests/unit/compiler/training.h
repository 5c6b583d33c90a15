/* training.h - a step of training as a graph, beside the interpreter's: a
 * stack of blocks (normalisation, attention written out, two layers with
 * gelu), cross entropy, gradients, AdamW. */
#ifndef TL_TEST_COMPILER_TRAINING_H
#define TL_TEST_COMPILER_TRAINING_H

#include "runtime/op/loss.h"
#include "tests/unit/compiler/program_test.h"

enum { MAX_PARAMS = 400 };

typedef struct trainer {
    world w;
    tl_tape *tape;
    tl_gblock block;
    int param[MAX_PARAMS], leaf[MAX_PARAMS]; /* numbers in the world */
    int n;
    int64_t time, width;
} trainer;

/* A small tensor with values that differ. */
static inline tl_tensor *noise(int rank, const int64_t *size, double scale)
{
    tl_tensor *t;
    static uint32_t x = 1;

    OK(tl_tensor_new(&t, rt.pool, TL_f32, rank, size, &diag));
    for (int64_t i = 0; i < t->numel; i++) {
        x = x * 1664525u + 1013904223u;
        tl_tensor_set_f(t, i, ((double)(x >> 8) / (1 << 24) - 0.5) * scale);
    }
    return t;
}

/* An input that is given away. */
static inline int cell(trainer *m, tl_tensor *t)
{
    m->w.donate[m->w.nin] = 1;
    return input(&m->w, t);
}

/* A parameter; what the blocks use is its leaf. */
static inline int param(trainer *m, int rank, const int64_t *size,
                        double scale)
{
    int x = m->param[m->n] = cell(m, noise(rank, size, scale));
    tl_tensor *t;
    tl_gval v;

    OK(tl_grad_leaf(&rt, m->tape, m->w.t[x], &t));
    OK(tl_gblock_leaf(&m->w.b, &m->block, m->w.v[x], &v));
    return m->leaf[m->n++] = keep(&m->w, v, t);
}

static inline int turned(world *w, int x)
{
    tl_attrs at;

    tl_attrs_init(&at);
    at.ndims = 2;
    at.dims[0] = tl_dim_num(1);
    at.dims[1] = tl_dim_num(0);
    return apply1(w, TL_OP_permute, x, &at);
}

static inline int linear(trainer *m, int x, int64_t in, int64_t out)
{
    int w = param(m, 2, DIMS(in, out), 0.2), b = param(m, 1, DIMS(out), 0.1);

    return apply2(&m->w, TL_OP_add, apply2(&m->w, TL_OP_matmul, x, w), b);
}

static inline int normalise(trainer *m, int x)
{
    int w = param(m, 1, DIMS(m->width), 0.5);
    int b = param(m, 1, DIMS(m->width), 0.5);
    tl_attrs at;

    tl_attrs_init(&at);
    at.i[0] = 1;
    at.f[0] = 1e-5;
    return apply(&m->w, TL_OP_layer_norm, (int[]){x, w, b}, 3, &at);
}

static inline int scaled(world *w, int x, double by)
{
    tl_tensor *t;
    tl_ttype type = {.dtype = TL_f32};
    float f = (float)by;
    tl_gval v;

    OK(tl_tensor_scalar_f(&t, rt.pool, TL_f32, by, &diag));
    OK(tl_gbuild_const(&w->b, &type, &f, sizeof(f), &v));
    return apply2(w, TL_OP_mul, x, keep(w, v, t));
}

static inline int attention(trainer *m, int x)
{
    int64_t c = m->width;
    int q = linear(m, x, c, c), k = linear(m, x, c, c);
    int v = linear(m, x, c, c), s;
    tl_attrs at;

    s = apply2(&m->w, TL_OP_matmul, q, turned(&m->w, k));
    tl_attrs_init(&at);
    at.axis = 1;
    s = apply1(&m->w, TL_OP_softmax, scaled(&m->w, s, 0.125), &at);
    return linear(m, apply2(&m->w, TL_OP_matmul, s, v), c, c);
}

static inline int transformer_block(trainer *m, int x)
{
    int64_t c = m->width;
    int h;

    x = apply2(&m->w, TL_OP_add, x, attention(m, normalise(m, x)));
    h = linear(m, normalise(m, x), c, 4 * c);
    h = apply1(&m->w, TL_OP_gelu, h, NULL);
    return apply2(&m->w, TL_OP_add, x, linear(m, h, 4 * c, c));
}

/* Gradients of all parameters, as values of the world from *first on. */
static inline int gradients(trainer *m, int loss)
{
    tl_tensor *leaf[MAX_PARAMS], *grad[MAX_PARAMS];
    tl_gval gleaf[MAX_PARAMS], ggrad[MAX_PARAMS];
    bool reached[MAX_PARAMS];
    int first = m->w.n;

    for (int i = 0; i < m->n; i++) {
        leaf[i] = m->w.t[m->leaf[i]];
        gleaf[i] = m->w.v[m->leaf[i]];
    }
    tl_grad_close(&rt, m->tape);
    OK(tl_grad_backward(&rt, m->tape, m->w.t[loss], NULL, leaf, m->n, grad,
                        reached));
    OK(tl_gblock_backward(&m->w.b, &m->block, m->w.v[loss], 0, gleaf,
                          (uint32_t)m->n, ggrad, reached));
    tl_tape_free(m->tape);
    for (int i = 0; i < m->n; i++) {
        keep(&m->w, ggrad[i], grad[i]);
    }
    return first;
}

static inline void updates(trainer *m, int first, bool adam)
{
    tl_tensor *t;
    tl_attrs at;
    int count = 0;

    tl_attrs_init(&at);
    at.f[0] = 0.01;
    at.f[1] = 0.1;
    at.f[2] = 0.9;
    at.f[3] = 0.99;
    at.f[4] = 1e-8;
    if (adam) {
        OK(tl_tensor_scalar_i(&t, rt.pool, TL_i64, 3, &diag));
        count = input(&m->w, t);
    }
    for (int i = 0; i < m->n; i++) {
        const tl_tensor *p = m->w.t[m->param[i]];
        int u;

        if (adam) {
            int a = cell(m, noise(p->rank, p->size, 0.1));
            int b = cell(m, noise(p->rank, p->size, 0.1));

            b = apply1(&m->w, TL_OP_abs, b, NULL); /* a sum of squares */
            u = apply(&m->w, TL_OP_adamw_update,
                      (int[]){m->param[i], first + i, a, b, count}, 5, &at);
            output(&m->w, u);
            output(&m->w, u + 1);
            output(&m->w, u + 2);
        } else {
            u = apply(&m->w, TL_OP_sgd_update, (int[]){m->param[i], first + i},
                      2, &at);
            output(&m->w, u);
        }
    }
}

/* Open the grad block of a model. */
static inline void trainer_init(trainer *m, int64_t time, int64_t width)
{
    memset(m, 0, sizeof(*m));
    world_init(&m->w);
    m->time = time;
    m->width = width;
    OK(tl_grad_open(&rt, &m->tape));
    OK(tl_gblock_open(&m->w.b, &m->block));
}

/* A step of a stack of transformer blocks; output 0 is the loss. */
static inline void transformer_step(trainer *m, int blocks, int64_t time,
                                    int64_t width, int64_t classes)
{
    tl_tensor *t;
    tl_attrs at;
    int x, y, loss;

    trainer_init(m, time, width);
    x = input(&m->w, noise(2, DIMS(time, width), 1));
    OK(tl_tensor_new(&t, rt.pool, TL_i64, 1, DIMS(time), &diag));
    for (int64_t i = 0; i < time; i++) {
        tl_tensor_set_i(t, i, i * 7 % classes);
    }
    y = input(&m->w, t);
    for (int i = 0; i < blocks; i++) {
        x = transformer_block(m, x);
    }
    x = linear(m, normalise(m, x), width, classes);
    tl_attrs_init(&at);
    at.i[0] = -100;
    at.i[1] = TL_LOSS_MEAN;
    loss = apply(&m->w, TL_OP_cross_entropy, (int[]){x, y}, 2, &at);
    output(&m->w, loss);
    updates(m, gradients(m, loss), true);
}

#endif
