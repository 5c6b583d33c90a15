/* update_rows.c - the arithmetic of optimisers, operation by operation as
 * PyTorch's single-tensor rules do it (torch/optim/sgd.py, adam.py): lerp for
 * the first moment, addcmul for the second, addcdiv for the step. */
#include <math.h>

#include "runtime/cpu/update.h"

#define DEFINE_UPDATES(name, type, root_fn)                                  \
    static void sgd_##name(int64_t n, const tl_update_rows *r,               \
                           const tl_update_consts *c)                        \
    {                                                                        \
        const type *p = r->p, *g = r->g;                                     \
        type *po = r->p_out;                                                 \
        const type lr = (type)c->lr, decay = (type)c->decay;                 \
                                                                             \
        TL_INDEPENDENT                                                       \
        for (int64_t i = 0; i < n; i++) {                                    \
            type d = g[i] + decay * p[i];                                    \
                                                                             \
            po[i] = p[i] - lr * d;                                           \
        }                                                                    \
    }                                                                        \
                                                                             \
    static void momentum_##name(int64_t n, const tl_update_rows *r,          \
                                const tl_update_consts *c)                   \
    {                                                                        \
        const type *p = r->p, *g = r->g, *m = r->m;                          \
        type *po = r->p_out, *mo = r->m_out;                                 \
        const type lr = (type)c->lr, decay = (type)c->decay;                 \
        const type mu = (type)c->momentum;                                   \
        const bool nesterov = c->nesterov;                                   \
                                                                             \
        TL_INDEPENDENT                                                       \
        for (int64_t i = 0; i < n; i++) {                                    \
            type d = g[i] + decay * p[i];                                    \
            type v = mu * m[i] + d;                                          \
                                                                             \
            mo[i] = v;                                                       \
            po[i] = p[i] - lr * (nesterov ? d + mu * v : v);                 \
        }                                                                    \
    }                                                                        \
                                                                             \
    static void adam_##name(int64_t n, const tl_update_rows *r,              \
                            const tl_update_consts *c)                       \
    {                                                                        \
        const type *p = r->p, *g = r->g, *m = r->m, *v = r->v;               \
        type *po = r->p_out, *mo = r->m_out, *vo = r->v_out;                 \
        const type w1 = (type)(1 - c->momentum), b2 = (type)c->beta2;        \
        const type w2 = (type)(1 - c->beta2), eps = (type)c->eps;            \
        const type step = (type)c->step, root = (type)c->root;               \
        const type decay = (type)(c->decoupled ? 0 : c->decay);              \
        const type shrink =                                                  \
            (type)(c->decoupled ? 1 - c->lr * c->decay : 1);                 \
                                                                             \
        TL_INDEPENDENT                                                       \
        for (int64_t i = 0; i < n; i++) {                                    \
            type d = g[i] + decay * p[i];                                    \
            type first = m[i] + w1 * (d - m[i]);                             \
            type second = v[i] * b2 + (w2 * d) * d;                          \
            type divisor = root_fn(second) / root + eps;                     \
                                                                             \
            mo[i] = first;                                                   \
            vo[i] = second;                                                  \
            po[i] = p[i] * shrink - (step * first) / divisor;                \
        }                                                                    \
    }

DEFINE_UPDATES(f32, float, sqrtf)
DEFINE_UPDATES(f64, double, sqrt)

tl_update_fn *const TL_ISA(tl_update_table)[TL_UPDATE_RULES][2] = {
    [TL_UPDATE_SGD] = {sgd_f32, sgd_f64},
    [TL_UPDATE_MOMENTUM] = {momentum_f32, momentum_f64},
    [TL_UPDATE_ADAM] = {adam_f32, adam_f64},
};
