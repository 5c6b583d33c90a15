/* amp.c - the policy of `autocast`, and the casts of weights.
 *
 * The decision needs of each operand what is stored and whether it is
 * lowered, no more, so that values of a graph can ask too.  Casts are kept in
 * an array: a network has some hundreds of weights. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "runtime/amp/amp.h"

#include <string.h>

#include "runtime/base/check.h"
#include "runtime/base/mem.h"
#include "runtime/base/vec.h"

/* ---- contexts ----------------------------------------------------------- */

tl_amp_before tl_amp_enter(tl_autocast *amp, bool on, tl_dtype low)
{
    tl_amp_before before = {amp->on, amp->low};

    amp->used = true;
    amp->on = on;
    amp->low = low;
    amp->depth++;
    return before;
}

void tl_amp_leave(tl_autocast *amp, tl_amp_before before)
{
    TL_CHECK(amp->depth > 0);
    amp->on = before.on;
    amp->low = before.low;
    if (--amp->depth == 0) {
        tl_amp_forget(amp, NULL);
        tl_free(amp->casts);
        amp->casts = NULL;
        amp->cap = 0;
    }
}

/* ---- the policy --------------------------------------------------------- */

tl_amp_vote tl_amp_call(void)
{
    return (tl_amp_vote){.shown = TL_bool};
}

bool tl_amp_is_joined(tl_op op, int i, tl_dtype dtype)
{
    const tl_op_info *row = tl_op_get(op);

    if (row->cls == TL_CLASS_KERN) {
        return row->join_in == 0 ? tl_dtype_is_float(dtype)
               : i < 32          ? ((row->join_in >> i) & 1) != 0
                                 : row->join_in == UINT32_MAX;
    }
    return i >= 32 || ((row->bool_in >> i) & 1) == 0;
}

void tl_amp_operand(tl_amp_vote *v, tl_op op, int i, tl_amp_value x)
{
    if (tl_amp_is_joined(op, i, x.stored)) {
        v->shown = tl_dtype_join(v->shown, x.lowered ? TL_f32 : x.stored);
    }
    if (x.lowered) {
        v->mixed = v->mixed || (v->lowered && v->stored != x.stored);
        v->lowered = true;
        v->stored = x.stored;
    } else if (tl_dtype_is_float(x.stored)) {
        v->wide = v->wide || !x.weight || x.stored != TL_f32;
    }
}

tl_amp_plan tl_amp_decide(const tl_autocast *amp, tl_op op,
                          const tl_amp_vote *v)
{
    tl_amp_plan widen = {v->lowered ? TL_AMP_WIDEN : TL_AMP_AS_IS, TL_f32};
    const tl_op_info *row = tl_op_get(op);

    if (!amp->on || row->cls == TL_CLASS_CMP) {
        return widen;
    }
    if (row->amp == TL_AMP_LOW && v->shown == TL_f32) {
        return (tl_amp_plan){TL_AMP_LOWER, amp->low};
    }
    if (row->amp == TL_AMP_WIDE && v->lowered && !v->wide && !v->mixed) {
        return (tl_amp_plan){TL_AMP_STAY, v->stored};
    }
    return widen;
}

tl_dtype tl_amp_wanted(const tl_amp_plan *plan, tl_op op, int i,
                       tl_amp_value x)
{
    switch (plan->mode) {
    case TL_AMP_LOWER:
        if (tl_amp_is_joined(op, i, x.stored)) {
            return plan->dtype;
        }
        return x.lowered ? TL_f32 : x.stored;
    case TL_AMP_WIDEN:
        return x.lowered ? TL_f32 : x.stored;
    case TL_AMP_STAY:
        return x.weight && x.stored == TL_f32 ? plan->dtype : x.stored;
    case TL_AMP_AS_IS:
        break;
    }
    return x.stored;
}

/* ---- casts of weights --------------------------------------------------- */

/* The same elements in the same order? */
static bool lies_alike(const tl_tensor *a, const tl_tensor *b)
{
    return a == b ||
           (a->storage == b->storage && a->offset == b->offset &&
            a->dtype == b->dtype && a->rank == b->rank &&
            memcmp(a->size, b->size,
                   2 * (size_t)a->rank * sizeof(*a->size)) == 0);
}

tl_tensor *tl_amp_find(const tl_autocast *amp, const tl_tensor *weight,
                       tl_dtype dtype)
{
    for (size_t i = 0; i < amp->ncasts; i++) {
        const tl_amp_cast *c = &amp->casts[i];

        if (c->low->dtype == dtype && lies_alike(c->weight, weight)) {
            return c->low;
        }
    }
    return NULL;
}

tl_status tl_amp_keep(tl_autocast *amp, tl_tensor *weight, tl_tensor *low,
                      tl_diag *diag)
{
    if (amp->ncasts == amp->cap) {
        TL_TRY(tl_vec_grow((void **)&amp->casts, amp->ncasts, &amp->cap,
                           sizeof(*amp->casts), diag));
    }
    amp->casts[amp->ncasts++] = (tl_amp_cast){tl_tensor_ref(weight),
                                              tl_tensor_ref(low)};
    return TL_OK;
}

void tl_amp_forget(tl_autocast *amp, const tl_tensor *t)
{
    for (size_t i = amp->ncasts; i-- > 0;) {
        tl_amp_cast *c = &amp->casts[i];

        if (t == NULL || c->weight->storage == t->storage) {
            tl_tensor_unref(c->weight);
            tl_tensor_unref(c->low);
            *c = amp->casts[--amp->ncasts];
        }
    }
}
