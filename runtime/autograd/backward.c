/* backward.c - the reverse pass over a tape.
 *
 * Each node has at most one gradient at a time: the sum so far.  An entry
 * takes the gradients of its results, gives those of its inputs, and is
 * released.  The gradient of a node is never written in place while somebody
 * else has it, because sums go through apply like everything else. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "runtime/autograd/backward.h"

#include <string.h>

#include "runtime/base/check.h"
#include "runtime/base/mem.h"

typedef struct pass {
    tl_rt *rt;
    tl_tensor **grad; /* by node; NULL: nothing has reached it */
    /* Arrays as long as the longest entry: */
    tl_tensor **g;  /* upstream gradients of the entry's results */
    tl_tensor **dx; /* gradients of its inputs */
    bool *want;
} pass;

/* ---- tapes and leaves --------------------------------------------------- */

tl_status tl_grad_open(tl_rt *rt, tl_tape **out)
{
    tl_tape *outer = rt->no_grad > 0 ? NULL : rt->tape;
    tl_tape *tape;
    int nested = 0;

    for (tape = rt->tape; tape != NULL; tape = tape->below) {
        nested++;
    }
    if (nested >= TL_MAX_TAPES) {
        return tl_fail(rt->diag, TL_E0215,
                       "gradients are nested deeper than %d", TL_MAX_TAPES);
    }
    TL_TRY(tl_tape_new(&tape, outer, rt->next_tape++, rt->diag));
    tape->below = rt->tape;
    tape->below_no_grad = rt->no_grad;
    rt->tape = tape;
    rt->no_grad = 0;
    *out = tape;
    return TL_OK;
}

void tl_grad_close(tl_rt *rt, tl_tape *tape)
{
    TL_CHECK(rt->tape == tape);
    rt->tape = tape->below;
    rt->no_grad = tape->below_no_grad;
}

tl_status tl_grad_leaf(tl_rt *rt, tl_tape *tape, tl_tensor *t,
                       tl_tensor **out)
{
    tl_tensor *leaf;
    uint32_t node;
    tl_status st;

    TL_TRY(tl_tensor_alias(&leaf, t, rt->diag));
    TL_GOTO(st, tl_tape_share(rt->tape, leaf, t, rt->diag));
    TL_GOTO(st, tl_tape_watch(tape, leaf, &node, rt->diag));
    *out = leaf;
    return TL_OK;
out:
    tl_tensor_unref(leaf);
    return st;
}

/* ---- gradients of one entry --------------------------------------------- */

/* Does a tape around this pass see a value that the gradient reads? */
static bool seen_outside(const pass *p, const tl_tape_entry *e)
{
    const tl_tape *tape = p->rt->tape;

    return tape && p->rt->no_grad == 0 &&
           (tl_tape_sees(tape, e->in, e->nin) ||
            tl_tape_sees(tape, e->out, e->nout) ||
            tl_tape_sees(tape, p->g, e->nout));
}

/* Sum *dx, which was computed in the broadcast shape, down to the shape of
 * `like`; replaces *dx. */
static tl_status sum_to(pass *p, tl_tensor **dx, const tl_tensor *like)
{
    tl_apply_emit em;
    tl_ttype type;
    tl_node sum;
    tl_status st;

    if ((*dx)->rank == like->rank &&
        memcmp((*dx)->size, like->size,
               (size_t)like->rank * sizeof(*like->size)) == 0) {
        return TL_OK;
    }
    tl_tensor_type(like, &type);
    tl_apply_emit_init(&em, p->rt);
    st = tl_emit_sum_to(&em.emit, *dx, &type.shape, &sum);
    if (st == TL_OK) {
        tl_tensor *old = *dx;

        *dx = tl_tensor_ref(sum);
        tl_tensor_unref(old);
    }
    tl_apply_emit_fini(&em);
    return st;
}

/* Gradient of a MAP row with respect to input i, by the fused kernel.  The
 * last one may overwrite g. */
static tl_status fused_one(pass *p, const tl_tape_entry *e, int i, bool last,
                           const tl_attrs *at)
{
    tl_rt *rt = p->rt;
    tl_tensor *g = p->g[0];

    if (strcmp(tl_op_get(e->op)->grad[i], "(g)") == 0) {
        p->dx[i] = tl_tensor_ref(g);
        return sum_to(p, &p->dx[i], e->in[i]);
    }
    if (last && tl_tensor_unshared(g) && tl_tensor_contiguous(g)) {
        tl_tensor_unlink(g);
        p->dx[i] = tl_tensor_ref(g);
    } else {
        TL_TRY(tl_tensor_new(&p->dx[i], rt->pool, g->dtype, g->rank, g->size,
                             rt->diag));
    }
    TL_TRY(rt->device->map_grad(&rt->kctx, e->op, i, e->in, e->nin,
                                e->out[0], g, p->dx[i], at));
    return sum_to(p, &p->dx[i], e->in[i]);
}

static tl_status fused(pass *p, const tl_tape_entry *e, const tl_attrs *at)
{
    int last = -1;

    for (int i = 0; i < e->nin; i++) {
        last = p->want[i] ? i : last;
    }
    for (int i = 0; i < e->nin; i++) {
        if (p->want[i]) {
            TL_TRY(fused_one(p, e, i, i == last, at));
        }
    }
    return TL_OK;
}

/* By the row's rule, built from other operations. */
static tl_status by_rule(pass *p, const tl_tape_entry *e, const tl_attrs *at)
{
    tl_apply_emit em;
    tl_grad_in gi = {.op = e->op,
                     .at = at,
                     .in = (const tl_node *)e->in,
                     .nin = e->nin,
                     .out = (const tl_node *)e->out,
                     .nout = e->nout,
                     .g = (const tl_node *)p->g,
                     .want = p->want};
    tl_status st;

    tl_apply_emit_init(&em, p->rt);
    st = tl_op_gradient(&em.emit, &gi, (tl_node *)p->dx);
    for (int i = 0; i < e->nin; i++) {
        if (st != TL_OK || !p->want[i]) {
            p->dx[i] = NULL;
        } else if (p->dx[i]) {
            tl_tensor_ref(p->dx[i]);
        }
    }
    tl_apply_emit_fini(&em);
    return st;
}

static bool same_type(const tl_tensor *a, const tl_tensor *b)
{
    return a->dtype == b->dtype && a->rank == b->rank &&
           memcmp(a->size, b->size, (size_t)a->rank * sizeof(*a->size)) == 0;
}

static tl_shape_text type_text(const tl_tensor *t)
{
    tl_ttype type;

    tl_tensor_type(t, &type);
    return tl_ttype_str(&type);
}

/* By the entry's own function, whose results are checked. */
static tl_status by_custom(pass *p, const tl_tape_entry *e)
{
    TL_TRY(e->custom(e->data, p->g, e->nout, p->dx, e->nin, p->rt->diag));
    for (int i = 0; i < e->nin; i++) {
        if (p->dx[i] && !same_type(p->dx[i], e->in[i])) {
            return tl_fail(p->rt->diag, TL_E0513,
                           "the gradient of argument %d is %s, but the "
                           "argument is %s",
                           i + 1, type_text(p->dx[i]).s,
                           type_text(e->in[i]).s);
        }
    }
    return TL_OK;
}

static tl_status entry_gradients(pass *p, const tl_tape_entry *e)
{
    const tl_op_info *info;
    tl_attrs at; /* whole: rules may copy it; a tape keeps less */

    if (e->op == TL_OP_COUNT) {
        return by_custom(p, e);
    }
    if (e->at) {
        tl_attrs_copy(&at, e->at);
    }
    info = tl_op_get(e->op);
    if (info->cls == TL_CLASS_MAP && p->rt->device->map_grad &&
        !seen_outside(p, e)) {
        return fused(p, e, e->at ? &at : NULL);
    }
    return by_rule(p, e, e->at ? &at : NULL);
}

/* ---- the pass ----------------------------------------------------------- */

/* grad[node] += dx; takes `dx`. */
static tl_status accumulate(pass *p, uint32_t node, tl_tensor *dx)
{
    tl_tensor *terms[2] = {p->grad[node], dx};

    if (!terms[0]) {
        p->grad[node] = dx;
        return TL_OK;
    }
    p->grad[node] = NULL; /* eaten */
    return tl_apply(p->rt, TL_OP_add, terms, 2, NULL, &p->grad[node]);
}

/* Which inputs want a gradient. */
static void set_wants(pass *p, const tl_tape_entry *e)
{
    bool map = e->op != TL_OP_COUNT &&
               tl_op_get(e->op)->cls == TL_CLASS_MAP;

    for (int i = 0; i < e->nin; i++) {
        p->want[i] =
            e->in_node[i] != 0 && !(map && tl_op_grad_is_zero(e->op, i));
    }
}

/* Take the gradients of the results; false if there is none. */
static bool take_upstream(pass *p, const tl_tape_entry *e)
{
    bool any = false;

    for (int i = 0; i < e->nout; i++) {
        uint32_t node = e->out_node[i];

        p->g[i] = node ? p->grad[node] : NULL;
        if (p->g[i]) {
            p->grad[node] = NULL;
            any = true;
        }
    }
    return any;
}

/* One entry; the operands' gradients add up from the last to the first. */
static tl_status step(pass *p, const tl_tape_entry *e)
{
    tl_status st;

    if (!take_upstream(p, e)) {
        return TL_OK;
    }
    set_wants(p, e);
    memset(p->dx, 0, (size_t)e->nin * sizeof(tl_tensor *));
    p->rt->span = e->span;
    st = entry_gradients(p, e);
    for (int i = 0; i < e->nout; i++) {
        tl_tensor_unref(p->g[i]);
    }
    for (int i = e->nin - 1; i >= 0; i--) {
        if (!p->dx[i]) {
            continue;
        }
        if (st == TL_OK && p->want[i]) {
            st = accumulate(p, e->in_node[i], p->dx[i]);
        } else {
            tl_tensor_unref(p->dx[i]);
        }
    }
    if (st != TL_OK) {
        tl_diag_at(p->rt->diag, e->span);
    }
    return st;
}

static tl_status run(pass *p, tl_tape *tape)
{
    tl_span span = p->rt->span;
    tl_status st = TL_OK;

    while (tape->len > 0 && st == TL_OK) {
        st = step(p, &tape->entries[tape->len - 1]);
        tl_tape_entry_release(&tape->entries[--tape->len]);
    }
    p->rt->span = span;
    return st;
}

/* Arrays of the pass; they are freed by pass_fini in any case. */
static tl_status pass_init(pass *p, tl_rt *rt, const tl_tape *tape)
{
    size_t nin = 1, nout = 1;

    memset(p, 0, sizeof(*p));
    p->rt = rt;
    for (size_t i = 0; i < tape->len; i++) {
        const tl_tape_entry *e = &tape->entries[i];

        nin = e->nin > nin ? e->nin : nin;
        nout = e->nout > nout ? e->nout : nout;
    }
    p->grad = tl_calloc((size_t)tape->nodes + 1, sizeof(tl_tensor *));
    p->g = tl_calloc(nout, sizeof(tl_tensor *));
    p->dx = tl_calloc(nin, sizeof(tl_tensor *));
    p->want = tl_calloc(nin, sizeof(bool));
    if (!p->grad || !p->g || !p->dx || !p->want) {
        return tl_fail_memory(rt->diag, "gradients of a tape",
                              ((size_t)tape->nodes + 1) *
                                  sizeof(tl_tensor *));
    }
    return TL_OK;
}

static void pass_fini(pass *p, uint32_t nodes)
{
    for (uint32_t i = 0; p->grad && i <= nodes; i++) {
        tl_tensor_unref(p->grad[i]);
    }
    tl_free(p->grad);
    tl_free(p->g);
    tl_free(p->dx);
    tl_free(p->want);
}

/* The upstream gradient of the loss, as a new reference. */
static tl_status seed(tl_rt *rt, tl_tensor *loss, tl_tensor *seed_grad,
                      tl_tensor **out)
{
    if (seed_grad) {
        if (!same_type(seed_grad, loss)) {
            return tl_fail(rt->diag, TL_E0312,
                           "the upstream gradient is %s, but the result is "
                           "%s",
                           type_text(seed_grad).s, type_text(loss).s);
        }
        *out = tl_tensor_ref(seed_grad);
        return TL_OK;
    }
    if (loss->rank != 0 || (loss->dtype != TL_f32 && loss->dtype != TL_f64)) {
        tl_status st =
            tl_fail(rt->diag, TL_E0501,
                    "the loss must be a scalar, f32[] or f64[], not %s",
                    type_text(loss).s);

        if (loss->rank > 0) {
            tl_diag_help(rt->diag, "reduce it: `loss.mean()`");
        }
        return st;
    }
    return tl_tensor_scalar_f(out, rt->pool, loss->dtype, 1.0, rt->diag);
}

/* Exact zeros of the type of `leaf`. */
static tl_status zeros_like(tl_rt *rt, const tl_tensor *leaf, tl_tensor **out)
{
    TL_TRY(tl_tensor_new(out, rt->pool, leaf->dtype, leaf->rank, leaf->size,
                         rt->diag));
    memset(tl_tensor_data(*out), 0,
           (size_t)leaf->numel * tl_dtype_size(leaf->dtype));
    return TL_OK;
}

/* The leaves' gradients, as new references. */
static tl_status collect(pass *p, const tl_tape *tape,
                         tl_tensor *const *leaves, int n, tl_tensor **grads,
                         bool *reached)
{
    for (int i = 0; i < n; i++) {
        uint32_t node = tl_tape_node(tape, leaves[i]);
        tl_tensor *g = node ? p->grad[node] : NULL;
        tl_status st = TL_OK;

        if (reached) {
            reached[i] = g != NULL;
        }
        if (g) {
            grads[i] = tl_tensor_ref(g);
        } else {
            st = zeros_like(p->rt, leaves[i], &grads[i]);
        }
        if (st != TL_OK) {
            while (i > 0) {
                tl_tensor_unref(grads[--i]);
            }
            return st;
        }
    }
    return TL_OK;
}

tl_status tl_grad_backward(tl_rt *rt, tl_tape *tape, tl_tensor *loss,
                           tl_tensor *seed_grad, tl_tensor *const *leaves,
                           int n, tl_tensor **grads, bool *reached)
{
    uint32_t node = tl_tape_node(tape, loss);
    pass p;
    tl_tensor *first;
    tl_status st;

    TL_CHECK(rt->tape != tape);
    TL_GOTO(st, pass_init(&p, rt, tape));
    TL_GOTO(st, seed(rt, loss, seed_grad, &first));
    if (node) {
        p.grad[node] = first;
        TL_GOTO(st, run(&p, tape));
    } else {
        tl_tensor_unref(first);
    }
    st = collect(&p, tape, leaves, n, grads, reached);
out:
    pass_fini(&p, tape->nodes);
    return st;
}
