/* emit.c - building operations through the domain that is running. */
#include "interp/emit.h"

#include "interp/eval_impl.h"
#include "runtime/base/mem.h"

struct tl_emitted {
    tl_value value;
    tl_emitted *before;
};

#define NTYPES (sizeof(((tl_eval_emit *)0)->types) / sizeof(tl_ttype))

tl_status tl_eval_emit_node_take(tl_eval_emit *e, tl_value v, tl_node *out)
{
    tl_emitted *made = tl_malloc(sizeof(*made));

    if (made == NULL) {
        tl_unref(v);
        return tl_fail_memory(e->ev->diag, "an operation", sizeof(*made));
    }
    *made = (tl_emitted){.value = v, .before = e->last};
    e->last = made;
    *out = made;
    return TL_OK;
}

tl_value tl_eval_emit_value(tl_node node)
{
    return tl_ref(((const tl_emitted *)node)->value);
}

static tl_status emit_apply(tl_emit *emit, tl_op op, const tl_node *in,
                            int nin, const tl_attrs *at, tl_node *out)
{
    tl_eval_emit *e = emit->impl;
    tl_value v[TL_MAX_INPUTS], res[TL_MAX_OUTPUTS];
    int nout = tl_op_get(op)->nout;
    tl_status st = TL_OK;

    TL_CHECK(nin <= TL_MAX_INPUTS);
    for (int i = 0; i < nin; i++) {
        v[i] = tl_eval_emit_value(in[i]);
    }
    TL_TRY(tl_eval_op(e->ev, op, v, nin, at, res));
    for (int i = 0; i < nout; i++) {
        if (st == TL_OK) {
            st = tl_eval_emit_node_take(e, res[i], &out[i]);
        } else {
            tl_unref(res[i]);
        }
    }
    return st;
}

static const tl_ttype *emit_type(tl_emit *emit, tl_node node)
{
    tl_eval_emit *e = emit->impl;
    tl_ttype *type = &e->types[e->ntypes++ % NTYPES];
    tl_status st = tl_eval_type(e->ev, ((tl_emitted *)node)->value, type);

    TL_CHECK(st == TL_OK); // nodes are tensors
    return type;
}

void tl_eval_emit_init(tl_eval_emit *e, tl_eval *ev)
{
    *e = (tl_eval_emit){.ev = ev};
    e->emit = (tl_emit){.apply = emit_apply, .type = emit_type,
                        .infer = tl_eval_infer(ev), .impl = e};
}

void tl_eval_emit_fini(tl_eval_emit *e)
{
    while (e->last != NULL) {
        tl_emitted *before = e->last->before;

        tl_unref(e->last->value);
        tl_free(e->last);
        e->last = before;
    }
}
