/* concrete.c - the domain that has data: operations run at once. */
#include <math.h>

#include "interp/domain.h"
#include "interp/eval_impl.h"
#include "runtime/autograd/backward.h"
#include "runtime/base/mem.h"

static tl_infer *concrete_infer(tl_eval *ev)
{
    return &ev->rt->infer;
}

/* Run `op` on tensors in an array that is eaten. */
static tl_status run(tl_eval *ev, tl_op op, tl_tensor **t, int nin,
                     const tl_attrs *at, tl_value *out)
{
    tl_tensor *res[TL_MAX_OUTPUTS];
    int nout = tl_op_get(op)->nout;

    TL_TRY(tl_apply(ev->rt, op, t, nin, at, res));
    for (int i = 0; i < nout; i++) {
        out[i] = tl_tensor_value_take(res[i]);
    }
    return TL_OK;
}

/* Variadic operations have more operands than an array on the stack. */
static tl_status apply_many(tl_eval *ev, tl_op op, tl_value *in, int nin,
                            const tl_attrs *at, tl_value *out)
{
    tl_tensor **t = tl_calloc((size_t)nin, sizeof(*t));

    if (t == NULL) {
        tl_unref_all(in, (size_t)nin);
        return tl_fail_memory(ev->diag, "operands",
                              (size_t)nin * sizeof(*t));
    }
    for (int i = 0; i < nin; i++) {
        t[i] = in[i].tensor;
    }
    tl_status st = run(ev, op, t, nin, at, out);

    tl_free(t);
    return st;
}

static tl_status concrete_apply(tl_eval *ev, tl_op op, tl_value *in, int nin,
                                const tl_attrs *at, tl_value *out)
{
    tl_tensor *t[TL_MAX_INPUTS];

    if (nin > TL_MAX_INPUTS) {
        return apply_many(ev, op, in, nin, at, out);
    }
    for (int i = 0; i < nin; i++) {
        t[i] = in[i].tensor;
    }
    return run(ev, op, t, nin, at, out);
}

static tl_status concrete_read(tl_eval *ev, tl_value t, tl_value *out)
{
    (void)ev;
    switch (tl_dtype_kind(t.tensor->dtype)) {
    case TL_KIND_BOOL:
        *out = tl_bool_value(tl_tensor_get_i(t.tensor, 0) != 0);
        break;
    case TL_KIND_INT:
        *out = tl_int_value(tl_tensor_get_i(t.tensor, 0));
        break;
    case TL_KIND_FLOAT:
        *out = tl_float_value(tl_tensor_get_f(t.tensor, 0));
        break;
    }
    return TL_OK;
}

static tl_status concrete_branch(tl_eval *ev, tl_value cond,
                                 const tl_ast_if *node, uint32_t arm,
                                 tl_flow *flow)
{
    (void)cond;
    (void)arm;
    (void)flow;
    return tl_fail_at(ev->diag, TL_E0210, node->base.span,
                      "the condition has no value here");
}

static tl_status concrete_choose(tl_eval *ev, tl_value cond,
                                 const tl_ast *then, const tl_ast *other,
                                 tl_value *out)
{
    (void)cond;
    (void)other;
    (void)out;
    return tl_fail_at(ev->diag, TL_E0210, then->span,
                      "the condition has no value here");
}

static tl_status concrete_join(tl_eval *ev, tl_value *v, tl_value other)
{
    (void)ev;
    (void)v;
    (void)other;
    TL_CHECK(!"arms are not joined where there is data");
    return TL_ERR_INTERNAL;
}

static bool concrete_fold_loop(tl_eval *ev, tl_value iterable)
{
    (void)ev;
    (void)iterable;
    return false;
}

static tl_status concrete_loop(tl_eval *ev, const tl_ast *node, tl_value item,
                               tl_flow *flow)
{
    (void)ev;
    (void)node;
    (void)item;
    (void)flow;
    TL_CHECK(!"loops run turn by turn where there is data");
    return TL_ERR_INTERNAL;
}

static tl_status concrete_try(tl_eval *ev, const tl_ast *node, tl_flow *flow)
{
    (void)ev;
    (void)node;
    (void)flow;
    TL_CHECK(!"try is run by the evaluator where there is data");
    return TL_ERR_INTERNAL;
}

static tl_status concrete_effect(tl_eval *ev, tl_host_effect what,
                                 bool *perform)
{
    (void)ev;
    (void)what;
    *perform = true;
    return TL_OK;
}

static tl_status concrete_cell_get(tl_eval *ev, tl_cell *cell, tl_value *out)
{
    if (cell->watchers == 0) {
        return tl_cell_value(ev, cell, out);
    }
    TL_TRY(tl_grad_cell_leaf(ev, cell, out));
    if (cell->kind == TL_CELL_PARAM && out->tag == TL_V_TENSOR) {
        out->tensor->flags |= TL_TENSOR_WEIGHT; /* a header of its own */
    }
    return TL_OK;
}

static tl_status concrete_cell_set(tl_eval *ev, tl_cell *cell, tl_value v)
{
    if (ev->rt->amp.ncasts > 0 && cell->value.tag == TL_V_TENSOR) {
        tl_amp_forget(&ev->rt->amp, cell->value.tensor);
    }
    tl_cell_store_take(ev, cell, v);
    return TL_OK;
}

/* ---- tapes -------------------------------------------------------------- */

static tl_status concrete_tape_open(tl_eval *ev, tl_gradblk *b)
{
    return tl_grad_open(ev->rt, &b->tape);
}

static void concrete_tape_close(tl_eval *ev, tl_gradblk *b)
{
    if (b->tape != NULL) {
        tl_grad_close(ev->rt, b->tape);
    }
}

static tl_status concrete_leaf(tl_eval *ev, tl_gradblk *b, tl_value v,
                               tl_value *out)
{
    tl_tensor *leaf;

    TL_TRY(tl_grad_leaf(ev->rt, b->tape, v.tensor, &leaf));
    *out = tl_tensor_value_take(leaf);
    return TL_OK;
}

static tl_status concrete_backward(tl_eval *ev, tl_gradblk *b, tl_value loss,
                                   tl_value seed, const tl_value *leaves,
                                   size_t n, tl_value *grads, bool *reached)
{
    tl_tensor **t = tl_calloc(2 * n + 1, sizeof(*t)), **g;
    tl_status st;

    if (t == NULL) {
        return tl_fail_memory(ev->diag, "gradients", 2 * n * sizeof(*t));
    }
    g = t + n;
    for (size_t i = 0; i < n; i++) {
        t[i] = leaves[i].tensor;
    }
    st = tl_grad_backward(ev->rt, b->tape, loss.tensor,
                          seed.tag == TL_V_TENSOR ? seed.tensor : NULL, t,
                          (int)n, g, reached);
    for (size_t i = 0; i < n && st == TL_OK; i++) {
        grads[i] = tl_tensor_value_take(g[i]);
    }
    tl_free(t);
    return st;
}

static tl_status concrete_stop(tl_eval *ev, tl_value v, tl_value *out)
{
    tl_tensor *t;

    TL_TRY(tl_tensor_alias(&t, v.tensor, ev->diag));
    *out = tl_tensor_value_take(t);
    return TL_OK;
}

const tl_domain tl_domain_concrete = {
    .name = "concrete",
    .has_data = true,
    .infer = concrete_infer,
    .apply = concrete_apply,
    .read = concrete_read,
    .branch = concrete_branch,
    .choose = concrete_choose,
    .join = concrete_join,
    .fold_loop = concrete_fold_loop,
    .loop = concrete_loop,
    .try_catch = concrete_try,
    .effect = concrete_effect,
    .cell_get = concrete_cell_get,
    .cell_set = concrete_cell_set,
    .tape_open = concrete_tape_open,
    .tape_close = concrete_tape_close,
    .leaf = concrete_leaf,
    .backward = concrete_backward,
    .stop = concrete_stop,
    .cell_plain = tl_cell_value,
    .grad_enter = tl_grad_enter_taped,
    .grad_leave = tl_grad_leave_taped,
    .grad_abandon = tl_grad_abandon_taped,
};
