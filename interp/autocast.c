/* autocast.c - operations where values may be lowered.
 *
 * The policy of runtime/amp says what each operand is cast to; the casts are
 * operations like others, then the call runs on what is stored, and its
 * results are marked.
 *
 * Casts of what parameters hold are kept while the outermost context is open.
 * Only their elements are: each use is a cast of its own to the tapes, so a
 * weight that is used twice gets its gradients added in f32, as in a compiled
 * function, where equal casts are merged after differentiation. */
#include "interp/autocast.h"

#include "interp/domain.h"
#include "interp/eval_impl.h"
#include "interp/trace.h"

/* ---- what is lowered ---------------------------------------------------- */

static tl_bvalue *note_of(tl_eval *ev, tl_value v)
{
    return &tl_trace_of(ev)->b.values.items[v.node->id];
}

bool tl_may_be_lowered(const tl_eval *ev)
{
    return ev->rt->amp.used && (ev->domain->has_data || tl_is_tracing(ev));
}

bool tl_is_lowered(tl_eval *ev, tl_value v)
{
    return v.tag == TL_V_TENSOR ? tl_tensor_lowered(v.tensor)
           : v.tag == TL_V_NODE && tl_is_tracing(ev) ? note_of(ev, v)->lowered
                                                     : false;
}

tl_dtype tl_stored_dtype(tl_eval *ev, tl_value v)
{
    return v.tag == TL_V_TENSOR ? v.tensor->dtype
           : tl_is_tracing(ev)  ? note_of(ev, v)->type->dtype
                                : v.node->type.dtype;
}

void tl_set_lowered(tl_eval *ev, tl_value v, bool lowered)
{
    if (v.tag == TL_V_TENSOR) {
        v.tensor->flags &= ~(uint32_t)TL_TENSOR_LOWERED;
        v.tensor->flags |= lowered ? TL_TENSOR_LOWERED : 0;
    } else if (v.tag == TL_V_NODE && tl_is_tracing(ev)) {
        note_of(ev, v)->lowered = lowered;
        v.node->type.dtype = lowered ? TL_f32 : note_of(ev, v)->type->dtype;
    }
}

static tl_amp_value what_is(tl_eval *ev, tl_value v)
{
    return (tl_amp_value){
        .stored = tl_stored_dtype(ev, v), .lowered = tl_is_lowered(ev, v),
        .weight = v.tag == TL_V_TENSOR
                      ? (v.tensor->flags & TL_TENSOR_WEIGHT) != 0
                      : note_of(ev, v)->weight};
}

/* ---- casts -------------------------------------------------------------- */

/* *v, stored as another dtype, becomes `dtype`. */
static tl_status cast(tl_eval *ev, tl_value *v, tl_dtype dtype)
{
    tl_value x = *v;
    tl_attrs at;

    tl_attrs_init(&at);
    at.dtype = (uint8_t)dtype;
    *v = tl_empty(); /* eaten */
    TL_TRY(ev->domain->apply(ev, TL_OP_cast, &x, 1, &at, v));
    tl_set_lowered(ev, *v, false);
    return TL_OK;
}

/* The same of what a parameter holds. */
static tl_status cast_weight(tl_eval *ev, tl_value *v, tl_dtype dtype)
{
    tl_tensor *weight = v->tensor, *made;
    tl_tensor *low = tl_amp_find(&ev->rt->amp, weight, dtype);
    tl_attrs at;
    tl_status st;

    if (low != NULL) {
        tl_attrs_init(&at);
        at.dtype = (uint8_t)dtype;
        TL_TRY(tl_apply_known(ev->rt, TL_OP_cast, &weight, 1, &at, low,
                              &made));
        tl_unref(*v);
        *v = tl_tensor_value_take(made);
        return TL_OK;
    }
    bool own = tl_tensor_unshared(weight); /* a copy: nobody finds it again */

    (void)tl_tensor_ref(weight);
    st = cast(ev, v, dtype);
    if (st == TL_OK && !own) {
        st = tl_amp_keep(&ev->rt->amp, weight, v->tensor, ev->diag);
    }
    tl_tensor_unref(weight);
    return st;
}

tl_status tl_eval_widen(tl_eval *ev, tl_value *v)
{
    return tl_is_lowered(ev, *v) ? cast(ev, v, TL_f32) : TL_OK;
}

tl_status tl_eval_lower(tl_eval *ev, tl_value *v, tl_dtype dtype)
{
    TL_TRY(cast(ev, v, dtype));
    tl_set_lowered(ev, *v, true);
    return TL_OK;
}

/* ---- calls -------------------------------------------------------------- */

/* What the rule says of the types that the program sees: its message has
 * those. */
static tl_status check_shown(tl_eval *ev, tl_op op, const tl_value *in,
                             int nin, const tl_attrs *at)
{
    tl_ttype types[TL_MAX_INPUTS], out[TL_MAX_OUTPUTS];
    tl_attrs none;

    if (nin > TL_MAX_INPUTS || !ev->domain->has_data) {
        return TL_OK;
    }
    tl_attrs_init(&none);
    for (int i = 0; i < nin; i++) {
        tl_tensor_shown_type(in[i].tensor, &types[i]);
    }
    return tl_op_infer(&ev->rt->infer, op, types, nin, at ? at : &none, out);
}

static tl_status cast_operands(tl_eval *ev, tl_op op, tl_value *in, int nin,
                               const tl_amp_plan *plan)
{
    for (int i = 0; i < nin; i++) {
        tl_amp_value x = what_is(ev, in[i]);
        tl_dtype want = tl_amp_wanted(plan, op, i, x);

        if (want != x.stored) {
            TL_TRY(x.weight && x.stored == TL_f32 && in[i].tag == TL_V_TENSOR
                       ? cast_weight(ev, &in[i], want)
                       : cast(ev, &in[i], want));
        }
    }
    return TL_OK;
}

/* Run it and mark the results. */
static tl_status run(tl_eval *ev, tl_op op, tl_value *in, int nin,
                     const tl_attrs *at, bool lowers, tl_value *out)
{
    TL_TRY(ev->domain->apply(ev, op, in, nin, at, out));
    for (int k = 0; k < tl_op_get(op)->nout; k++) {
        tl_dtype stored = tl_stored_dtype(ev, out[k]);

        tl_set_lowered(ev, out[k],
                       lowers && (stored == TL_bf16 || stored == TL_f16));
    }
    return TL_OK;
}

/* Lowered operands with a host number, which would lose digits as bf16, and
 * its range as f16: computed in f32, stored low. */
static tl_status with_numbers(tl_eval *ev, tl_op op, tl_value *in, int nin,
                              const tl_attrs *at, tl_dtype dtype,
                              tl_value *out)
{
    const tl_amp_plan widen = {TL_AMP_WIDEN, TL_f32};
    int nout = tl_op_get(op)->nout;
    tl_status st = cast_operands(ev, op, in, nin, &widen);

    if (st != TL_OK) {
        tl_unref_all(in, (size_t)nin);
        return st;
    }
    TL_TRY(run(ev, op, in, nin, at, false, out));
    for (int k = 0; k < nout && st == TL_OK; k++) {
        if (tl_stored_dtype(ev, out[k]) == TL_f32) {
            st = tl_eval_lower(ev, &out[k], dtype);
        }
    }
    if (st != TL_OK) {
        tl_unref_all(out, (size_t)nout);
    }
    return st;
}

static tl_status by_policy(tl_eval *ev, tl_op op, tl_value *in, int nin,
                           uint64_t numbers, const tl_attrs *at,
                           tl_value *out)
{
    tl_amp_vote vote = tl_amp_call();
    tl_amp_plan plan;
    tl_status st = TL_OK;

    for (int i = 0; i < nin; i++) {
        if (i >= 64 || ((numbers >> i) & 1) == 0) {
            tl_amp_operand(&vote, op, i, what_is(ev, in[i]));
        }
    }
    plan = tl_amp_decide(&ev->rt->amp, op, &vote);
    if (plan.mode != TL_AMP_AS_IS) {
        st = check_shown(ev, op, in, nin, at);
    }
    if (st == TL_OK && plan.mode == TL_AMP_STAY && numbers != 0) {
        return with_numbers(ev, op, in, nin, at, plan.dtype, out);
    }
    if (st == TL_OK) {
        st = cast_operands(ev, op, in, nin, &plan);
    }
    if (st != TL_OK) {
        tl_unref_all(in, (size_t)nin);
        return st;
    }
    return run(ev, op, in, nin, at,
               plan.mode == TL_AMP_LOWER || plan.mode == TL_AMP_STAY, out);
}

/* A view is stored as its base is. */
static tl_status view(tl_eval *ev, tl_op op, tl_value *in,
                      const tl_attrs *at, tl_value *out)
{
    bool lowered = tl_is_lowered(ev, in[0]);
    tl_status st = lowered ? check_shown(ev, op, in, 1, at) : TL_OK;

    if (st != TL_OK) {
        tl_unref_all(in, 1);
        return st;
    }
    return run(ev, op, in, 1, at, lowered, out);
}

tl_status tl_autocast_apply(tl_eval *ev, tl_op op, tl_value *in, int nin,
                            uint64_t numbers, const tl_attrs *at,
                            tl_value *out)
{
    if (nin == 0) {
        return ev->domain->apply(ev, op, in, nin, at, out);
    }
    if (tl_op_get(op)->cls == TL_CLASS_VIEW) {
        return view(ev, op, in, at, out);
    }
    if (op != TL_OP_cast) {
        return by_policy(ev, op, in, nin, numbers, at, out);
    }
    if (!tl_is_lowered(ev, in[0])) {
        return ev->domain->apply(ev, op, in, nin, at, out);
    }
    return at->dtype == tl_stored_dtype(ev, in[0]) /* now it is shown so */
               ? run(ev, TL_OP_copy, in, 1, NULL, false, out)
               : run(ev, op, in, 1, at, false, out);
}

/* ---- contexts ----------------------------------------------------------- */

uint8_t tl_autocast_key(const tl_eval *ev)
{
    const tl_autocast *amp = &ev->rt->amp;

    return amp->on ? (uint8_t)(1 + amp->low) : 0;
}

void tl_autocast_enter(tl_eval *ev, bool on, tl_dtype low, tl_value *state)
{
    tl_amp_before before = tl_amp_enter(&ev->rt->amp, on, low);

    *state = tl_int_value((int64_t)before.low * 2 + before.on);
}

void tl_autocast_leave(tl_eval *ev, tl_value state)
{
    tl_amp_leave(&ev->rt->amp,
                 (tl_amp_before){.on = (state.i & 1) != 0,
                                 .low = (tl_dtype)(state.i / 2)});
}
