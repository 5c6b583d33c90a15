/* apply_emit.c - an emitter whose operations run at once.
 *
 * Gradient rules build their results through a tl_emit and never free; the
 * emitter keeps what was made until its end. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "runtime/apply.h"

#include "runtime/base/check.h"
#include "runtime/base/mem.h"
#include "runtime/base/vec.h"

#define NTYPES (sizeof(((tl_apply_emit *)0)->types) / sizeof(tl_ttype))

/* Room for `n` more owned nodes. */
static tl_status reserve(tl_apply_emit *e, size_t n)
{
    while (e->cap - e->len < n) {
        TL_TRY(tl_vec_grow((void **)&e->owned, e->cap, &e->cap,
                           sizeof(*e->owned), e->rt->diag));
    }
    return TL_OK;
}

static tl_status emit_apply(tl_emit *emit, tl_op op, const tl_node *in,
                            int nin, const tl_attrs *at, tl_node *out)
{
    tl_apply_emit *e = emit->impl;
    int nout = tl_op_get(op)->nout;
    tl_tensor *res[TL_MAX_OUTPUTS];

    TL_TRY(reserve(e, (size_t)nout));
    TL_TRY(tl_apply_borrowed(e->rt, op, (tl_tensor *const *)in, nin, at,
                             res));
    for (int i = 0; i < nout; i++) {
        e->owned[e->len++] = res[i];
        out[i] = res[i];
    }
    return TL_OK;
}

static const tl_ttype *emit_type(tl_emit *emit, tl_node node)
{
    tl_apply_emit *e = emit->impl;
    tl_ttype *type = &e->types[e->ntypes++ % NTYPES];

    tl_tensor_type(node, type);
    return type;
}

void tl_apply_emit_init(tl_apply_emit *e, tl_rt *rt)
{
    e->emit.apply = emit_apply;
    e->emit.type = emit_type;
    e->emit.infer = &rt->infer;
    e->emit.impl = e;
    e->rt = rt;
    e->owned = NULL;
    e->len = 0;
    e->cap = 0;
    e->ntypes = 0;
}

void tl_apply_emit_fini(tl_apply_emit *e)
{
    while (e->len > 0) {
        tl_tensor_unref(e->owned[--e->len]);
    }
    tl_free(e->owned);
    e->owned = NULL;
    e->cap = 0;
}
