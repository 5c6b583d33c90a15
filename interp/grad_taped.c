/* grad_taped.c - grad blocks of the domains that have tapes: on data, and on
 * a graph. */
#include "interp/autocast.h"
#include "interp/domain.h"
#include "interp/eval_impl.h"
#include "interp/tree.h"
#include "runtime/base/mem.h"

/* ---- leaves ------------------------------------------------------------ */

/* The value of `cell` as block `b` and those around it see it. */
static tl_status seen_by(tl_eval *ev, tl_gradblk *b, tl_cell *cell,
                         tl_value *out)
{
    tl_value v = tl_empty();

    if (b == NULL) {
        return ev->domain->cell_plain(ev, cell, out);
    }
    tl_leaf *leaf = tl_map_get(&b->by_cell, cell, NULL);

    if (leaf == NULL) {
        return seen_by(ev, b->outer, cell, out);
    }
    if (leaf->leaf.tag == TL_V_EMPTY) {
        TL_TRY(seen_by(ev, b->outer, cell, &v));
        tl_status st = tl_is_tensor(v)
                           ? ev->domain->leaf(ev, b, v, &leaf->leaf)
                           : TL_OK;

        tl_unref(v);
        if (st != TL_OK || leaf->leaf.tag == TL_V_EMPTY) {
            return st;
        }
    }
    *out = tl_ref(leaf->leaf);
    return TL_OK;
}

tl_status tl_grad_cell_leaf(tl_eval *ev, tl_cell *cell, tl_value *out)
{
    if (cell->kind != TL_CELL_PARAM) { /* may be written: its value of now */
        return ev->domain->cell_plain(ev, cell, out);
    }
    return seen_by(ev, ev->grads, cell, out);
}

tl_status tl_grad_enter_taped(tl_eval *ev, tl_gradblk *b)
{
    TL_TRY(ev->domain->tape_open(ev, b));
    for (size_t i = 0; i < b->ntargets; i++) {
        tl_target *t = &b->targets[i];
        tl_value leaf = tl_empty();

        if (t->kind != TL_TARGET_VARIABLE || !tl_is_tensor(t->leaf)) {
            continue;
        }
        tl_status st = tl_eval_widen(ev, &t->leaf);

        if (st == TL_OK) {
            st = ev->domain->leaf(ev, b, t->leaf, &leaf);
        }
        if (st != TL_OK) {
            ev->domain->tape_close(ev, b);
            return st;
        }
        tl_drop(&t->leaf);
        t->leaf = leaf;
    }
    return TL_OK;
}

void tl_grad_abandon_taped(tl_eval *ev, tl_gradblk *b)
{
    ev->domain->tape_close(ev, b);
}

/* ---- gradients --------------------------------------------------------- */

/* What the reverse pass works on: the leaves that were read. */
typedef struct pass {
    tl_value *leaves, *grads;
    size_t *at; /* index among the block's gradients */
    bool *reached;
    size_t n;
} pass;

static tl_status pass_init(tl_eval *ev, pass *p, size_t most)
{
    size_t n = most > 0 ? most : 1;

    p->leaves = tl_calloc(n, sizeof(*p->leaves));
    p->grads = tl_calloc(n, sizeof(*p->grads));
    p->at = tl_calloc(n, sizeof(*p->at));
    p->reached = tl_calloc(n, sizeof(*p->reached));
    if (p->leaves == NULL || p->grads == NULL || p->at == NULL ||
        p->reached == NULL) {
        return tl_fail_memory(ev->diag, "gradients", n * sizeof(void *));
    }
    return TL_OK;
}

static void pass_fini(pass *p)
{
    if (p->grads != NULL) {
        tl_unref_all(p->grads, p->n);
    }
    tl_free(p->leaves);
    tl_free(p->grads);
    tl_free(p->at);
    tl_free(p->reached);
}

/* The leaf of gradient `k` of target `t`, borrowed; EMPTY if it was never
 * read. */
static tl_value leaf_of(tl_gradblk *b, const tl_target *t, size_t k)
{
    if (t->kind == TL_TARGET_VARIABLE) {
        return t->leaf;
    }
    tl_leaf *leaf = tl_map_get(&b->by_cell, t->shape->cells[k], NULL);

    return leaf->leaf;
}

/* Exact zeros of the type of a cell's value. */
static tl_status zeros(tl_eval *ev, tl_cell *cell, tl_value *out)
{
    tl_value v;
    tl_ttype type;
    tl_status st;

    if (ev->domain->has_data) {
        return tl_eval_cell_zeros(ev, cell, out);
    }
    TL_TRY(ev->domain->cell_plain(ev, cell, &v));
    st = tl_eval_type(ev, v, &type);
    tl_unref(v);
    return st != TL_OK ? st : tl_zeros(ev, &type, out);
}

/* Leaves that were read go to the pass; the others get zeros at once. */
static tl_status gather(tl_eval *ev, tl_gradblk *b, pass *p, tl_value *grads)
{
    size_t at = 0;

    for (size_t i = 0; i < b->ntargets; i++) {
        const tl_target *t = &b->targets[i];
        size_t n = t->kind == TL_TARGET_VARIABLE ? 1 : t->shape->len;

        for (size_t k = 0; k < n; k++, at++) {
            tl_value leaf = leaf_of(b, t, k);

            if (tl_is_tensor(leaf)) {
                p->leaves[p->n] = leaf;
                p->at[p->n++] = at;
            } else {
                TL_TRY(zeros(ev, t->shape->cells[k], &grads[at]));
            }
        }
    }
    return TL_OK;
}

static void warn_unreached(tl_eval *ev, const tl_gradblk *b, const pass *p)
{
    size_t at = 0, q = 0;

    for (size_t i = 0; i < b->ntargets; i++) {
        const tl_target *t = &b->targets[i];
        size_t n = t->kind == TL_TARGET_VARIABLE ? 1 : t->shape->len;
        bool any = n == 0;

        for (at += n; q < p->n && p->at[q] < at; q++) {
            any = any || p->reached[q];
        }
        if (!any) {
            tl_warn(ev->diag, TL_W0507, t->span,
                    "the loss does not depend on this target: its gradient "
                    "is zero");
        }
    }
}

/* The scale of a GradScaler in the loss's dtype: the seed of the pass. */
static tl_status read_scale(tl_eval *ev, tl_value scaler, tl_value loss,
                            tl_value *out)
{
    const tl_sym *name = tl_intern_get(ev->lang->names, "scale", 5);
    tl_ttype type;
    tl_attrs at;

    if (name == NULL) {
        return tl_fail_memory(ev->diag, "a name", 5);
    }
    TL_TRY(tl_eval_type(ev, loss, &type));
    TL_TRY(tl_eval_attr(ev, scaler, name, out));
    tl_attrs_init(&at);
    at.dtype = (uint8_t)type.dtype;
    return tl_eval_op(ev, TL_OP_cast, out, 1, &at, out);
}

/* finite and all(isfinite(g)). */
static tl_status join_finite(tl_eval *ev, tl_value g, tl_value *finite)
{
    tl_value v = tl_ref(g);
    tl_ttype type;
    tl_attrs at;

    TL_TRY(tl_eval_op(ev, TL_OP_isfinite, &v, 1, NULL, &v));
    TL_TRY(tl_eval_type(ev, v, &type));
    tl_attrs_init(&at);
    at.axes = (uint16_t)((1u << type.shape.rank) - 1);
    at.flag = true;
    TL_TRY(tl_eval_op(ev, TL_OP_all, &v, 1, &at, &v));
    if (finite->tag == TL_V_EMPTY) {
        *finite = v;
        return TL_OK;
    }
    tl_value in[2] = {*finite, v};

    *finite = tl_empty();
    return tl_eval_op(ev, TL_OP_and, in, 2, NULL, finite);
}

/* Divide by the scale and collect the finite flag. */
static tl_status unscale(tl_eval *ev, tl_value scale, tl_value *grads,
                         size_t n, tl_value *finite)
{
    for (size_t i = 0; i < n; i++) {
        tl_value in[2] = {grads[i], tl_ref(scale)};

        grads[i] = tl_empty();
        TL_TRY(tl_eval_op(ev, TL_OP_div, in, 2, NULL, &grads[i]));
        TL_TRY(join_finite(ev, grads[i], finite));
    }
    return TL_OK;
}

tl_status tl_grad_leave_taped(tl_eval *ev, tl_gradblk *b, tl_value loss,
                              tl_value *grads, tl_value *finite)
{
    size_t n = tl_grad_count(b);
    tl_value scale = tl_empty();
    pass p = {0};
    tl_status st;

    ev->domain->tape_close(ev, b);
    TL_GOTO(st, pass_init(ev, &p, n));
    TL_GOTO(st, gather(ev, b, &p, grads));
    if (b->scaler.tag == TL_V_MODULE) {
        TL_GOTO(st, read_scale(ev, b->scaler, loss, &scale));
    }
    TL_GOTO(st, ev->domain->backward(ev, b, loss, scale, p.leaves, p.n,
                                     p.grads, p.reached));
    for (size_t i = 0; i < p.n; i++) {
        grads[p.at[i]] = p.grads[i];
        p.grads[i] = tl_empty();
    }
    warn_unreached(ev, b, &p);
    if (b->scaler.tag == TL_V_MODULE) {
        st = unscale(ev, scale, grads, n, finite);
    }
out:
    tl_unref(scale);
    pass_fini(&p);
    return st;
}
