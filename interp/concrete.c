/* concrete.c - the domain that has data: operations run at once. */
#include <math.h>

#include "interp/domain.h"
#include "interp/eval_impl.h"

static tl_infer *concrete_infer(tl_eval *ev)
{
    return &ev->rt->infer;
}

static tl_status concrete_apply(tl_eval *ev, tl_op op, tl_value *in, int nin,
                                const tl_attrs *at, tl_value *out)
{
    tl_tensor *few[TL_MAX_INPUTS], **t = few, *res[TL_MAX_OUTPUTS];
    tl_buf many; /* variadic operations have more inputs */

    tl_buf_init(&many);
    if (nin > TL_MAX_INPUTS) {
        for (int i = 0; i < nin; i++) {
            tl_buf_add(&many, &in[i].tensor, sizeof(in[i].tensor));
        }
        if (many.failed) {
            tl_buf_fini(&many);
            tl_unref_all(in, (size_t)nin);
            return tl_fail_memory(ev->diag, "operands",
                                  (size_t)nin * sizeof(*t));
        }
        t = (tl_tensor **)(void *)many.data;
    } else {
        for (int i = 0; i < nin; i++) {
            few[i] = in[i].tensor;
        }
    }
    tl_status st = tl_apply(ev->rt, op, t, nin, at, res);

    tl_buf_fini(&many);
    if (st == TL_OK) {
        int nout = tl_op_get(op)->nout;

        for (int i = 0; i < nout; i++) {
            out[i] = tl_tensor_value_take(res[i]);
        }
    }
    return st;
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

static tl_status concrete_choose(tl_eval *ev, const tl_ast *then,
                                 const tl_ast *other, tl_value *out)
{
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
    if (cell->watchers > 0) {
        return tl_grad_cell_leaf(ev, cell, out);
    }
    return tl_cell_value(ev, cell, out);
}

static tl_status concrete_cell_set(tl_eval *ev, tl_cell *cell, tl_value v)
{
    (void)ev;
    tl_cell_store_take(cell, v);
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
    .grad_enter = tl_grad_enter_concrete,
    .grad_leave = tl_grad_leave_concrete,
    .grad_abandon = tl_grad_abandon_concrete,
};
