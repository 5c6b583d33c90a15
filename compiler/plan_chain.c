/* plan_chain.c - which steps keep their order among each other: effects, and
 * what may fail because of data, so that the same one fails first; and no
 * donated input is written before the last of them has run. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include <math.h>
#include <string.h>

#include "compiler/plan_impl.h"

static bool host_may_fail(tl_ghost op)
{
    switch (op) {
    case TL_H_add_i:
    case TL_H_sub_i:
    case TL_H_mul_i:
    case TL_H_floordiv_i:
    case TL_H_mod_i:
    case TL_H_neg_i:
    case TL_H_div_f:
    case TL_H_floordiv_f:
    case TL_H_mod_f:
    case TL_H_to_int:
        return true;
    default:
        return false;
    }
}

/* Is f[index] of the step's attributes a host scalar of the run? */
static bool is_bound(const tl_plan *pl, const tl_pstep *s, uint8_t index)
{
    const tl_graph *g = pl->p->g;
    const tl_gattrs *at = &g->attrs.items[g->nodes.items[s->node].attrs];

    for (uint32_t k = 0; k < at->nbinds; k++) {
        const tl_gbind *b = &g->binds.items[at->binds + k];

        if (b->field == 'f' && b->index == index) {
            return true;
        }
    }
    return false;
}

/* Are the attributes of a draw known, and right? */
static bool draws_well(const tl_plan *pl, const tl_pstep *s)
{
    const tl_graph *g = pl->p->g;
    const double *f =
        g->attrs.items[g->nodes.items[s->node].attrs].f;

    if (is_bound(pl, s, 0) || is_bound(pl, s, 1)) {
        return false;
    }
    return s->op == TL_OP_dropout ? f[0] >= 0 && f[0] <= 1
                                  : f[0] < f[1] && fabs(f[0]) <= 0x1p53 &&
                                        fabs(f[1]) <= 0x1p53;
}

/* Do steps a and b have the same n operands from `i` and `k` on, index the
 * same axes, and tensors of one shape there? */
static bool same_indices(const tl_plan *pl, const tl_pstep *a, uint32_t i,
                         const tl_pstep *b, uint32_t k)
{
    const tl_graph *g = pl->p->g;
    const tl_gattrs *x = &g->attrs.items[g->nodes.items[a->node].attrs];
    const tl_gattrs *y = &g->attrs.items[g->nodes.items[b->node].attrs];
    const tl_pval *t = tl_pval_at(pl, pl->refs.items[a->in]);
    const tl_pval *u = tl_pval_at(pl, pl->refs.items[b->in]);

    return a->nin - i == b->nin - k && x->axes == y->axes &&
           x->axis == y->axis && t->rank == u->rank &&
           memcmp(t->size, u->size, t->rank * sizeof(*t->size)) == 0 &&
           memcmp(&pl->refs.items[a->in + i], &pl->refs.items[b->in + k],
                  (a->nin - i) * sizeof(uint32_t)) == 0;
}

/* Has an earlier step looked at the indices of this gradient? */
static bool was_checked(const tl_plan *pl, const tl_pstep *s)
{
    for (uint32_t i = 1; i < pl->steps.len; i++) {
        const tl_pstep *t = &pl->steps.items[i];

        if (t->kind != TL_PS_KERNEL) {
            continue;
        }
        if (s->op == TL_OP_index_put && t->op == TL_OP_index &&
            same_indices(pl, s, 2, t, 1)) {
            return true;
        }
        if (s->op == TL_OP_scatter_add && t->op == TL_OP_gather &&
            pl->refs.items[s->in + 1] == pl->refs.items[t->in + 1] &&
            same_indices(pl, s, s->nin, t, t->nin)) {
            return true;
        }
    }
    return false;
}

/* Rows whose kernels look at data and may refuse it.  Gradients of indexing
 * have indices that the forward step has checked, that of an embedding
 * always. */
static bool kernel_may_fail(const tl_plan *pl, const tl_pstep *s)
{
    const tl_pval *x = s->nin > 0 && pl->refs.items[s->in]
                           ? tl_pval_at(pl, pl->refs.items[s->in])
                           : NULL;
    const tl_pval *y = tl_pval_at(pl, pl->refs.items[s->out]);

    switch ((tl_op)s->op) {
    case TL_OP_cast:
        return tl_dtype_is_float((tl_dtype)x->dtype) &&
               tl_dtype_kind((tl_dtype)y->dtype) == TL_KIND_INT;
    case TL_OP_floordiv:
    case TL_OP_mod:
    case TL_OP_pow:
        return !tl_dtype_is_float((tl_dtype)y->dtype);
    case TL_OP_index:
    case TL_OP_gather:
    case TL_OP_embedding:
    case TL_OP_one_hot:
    case TL_OP_cross_entropy:
    case TL_OP_multinomial:
    case TL_OP_cholesky: /* of what is not positive definite */
    case TL_OP_solve:    /* of a singular matrix */
    case TL_OP_bernoulli:
        return true;
    case TL_OP_dropout:
    case TL_OP_randint:
        return !draws_well(pl, s);
    case TL_OP_index_put:
    case TL_OP_scatter_add:
        return !was_checked(pl, s);
    default:
        return false;
    }
}

bool tl_pstep_chains(const tl_plan *pl, const tl_pstep *s)
{
    switch ((tl_pstep_kind)s->kind) {
    case TL_PS_EFFECT:
    case TL_PS_REGION:
    case TL_PS_ITEM:
    case TL_PS_SLICE:
        return true;
    case TL_PS_HOST:
        return pl->p->g->nodes.items[s->node].kind == TL_G_HOST &&
               host_may_fail((tl_ghost)s->op);
    case TL_PS_KERNEL:
        return s->nout > 0 && kernel_may_fail(pl, s);
    default:
        return false;
    }
}

