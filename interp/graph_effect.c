/* graph_effect.c - what a compiled function prints and asserts.
 *
 * In the trace a print becomes a host call whose operands are the tensors and
 * symbols that it shows; the rest of it is a pattern that the program keeps.
 * A run puts the values into the pattern and appends the text to a buffer,
 * which is written when the run has succeeded: a failed one is repeated by
 * the interpreter.  So an assert shows nothing: its condition is enough. */
#include "interp/compiled_impl.h"
#include "interp/late.h"
#include "runtime/base/mem.h"
#include "runtime/base/vec.h"

/* ---- in the trace ------------------------------------------------------- */

/* Operands of an effect, in the order in which they are met. */
typedef struct operands {
    tl_eval *ev;
    TL_GARRAY(tl_gval) values;
} operands;

static tl_status add_operand(void *arg, tl_value node, tl_value *out)
{
    operands *o = arg;
    tl_gval v;

    if (node.tag == TL_V_NODE) {
        v = node.node->id;
    } else if (tl_is_any_number(node)) {
        TL_TRY(tl_sym_host(o->ev, node, false, &v));
    } else {
        return tl_trace_refuse(o->ev, "a range that only the run knows is "
                               "shown");
    }
    TL_TRY(TL_VEC_PUSH(&o->values, v, o->ev->diag));
    if (node.tag == TL_V_SYM) {
        return tl_sym_output(o->ev, (uint32_t)o->values.len, node.sym->hint,
                             out);
    }
    return tl_dnode_new(out, &node.node->type, (uint32_t)o->values.len,
                        o->ev->diag);
}

static tl_status add_effect(tl_eval *ev, tl_gval condition, tl_value pattern,
                            const operands *o)
{
    tl_trace *tr = tl_trace_of(ev);
    uint32_t key = (uint32_t)tr->effects.len;
    tl_status st = TL_VEC_PUSH(&tr->effects, pattern, ev->diag);

    if (st != TL_OK) {
        tl_unref(pattern);
        return st;
    }
    tr->b.span = ev->rt->span;
    return tl_gbuild_effect(&tr->b, condition, o->values.items,
                            (uint32_t)o->values.len, NULL, 0, key);
}

/* What is shown, with texts in place of all that is known: only what has to
 * come from the run is kept. */
static tl_status settle_items(tl_eval *ev, const tl_seq *xs, bool full,
                              tl_value *out)
{
    tl_status st = TL_OK;
    tl_value made;

    TL_TRY(tl_seq_alloc(&made, TL_V_TUPLE, xs->len, ev->diag));
    for (size_t i = 0; i < xs->len && st == TL_OK; i++) {
        tl_buf text;

        if (!tl_text_known(xs->items[i])) {
            made.seq->items[i] = tl_ref(xs->items[i]);
            continue;
        }
        tl_buf_init(&text);
        st = tl_print_item(ev, xs->items[i], full, &text);
        if (st == TL_OK) {
            st = tl_str_from_buf(&made.seq->items[i], &text, ev->diag);
        }
        tl_buf_fini(&text);
    }
    if (st != TL_OK) {
        tl_unref(made);
        return st;
    }
    *out = made;
    return TL_OK;
}

tl_status tl_trace_print(tl_eval *ev, const tl_value *args)
{
    tl_value parts[4] = {tl_empty(), tl_ref(args[1]), tl_ref(args[2]),
                         args[3]};
    tl_value shown = tl_empty(), pattern = tl_empty();
    operands o = {.ev = ev};
    tl_status st = settle_items(ev, args[0].seq, args[3].b, &parts[0]);

    if (st != TL_OK) {
        tl_unref_all(parts, 4);
        return st;
    }
    TL_GOTO(st, tl_seq_new_take(&shown, TL_V_TUPLE, parts, 4, ev->diag));
    TL_GOTO(st, tl_lift_back_shown(ev, shown, add_operand, &o, &pattern));
    st = add_effect(ev, 0, pattern, &o);
out:
    tl_unref(shown);
    tl_free(o.values.items);
    return st;
}

/* A number holds: it is not zero, and no NaN. */
static tl_status number_holds(tl_eval *ev, tl_value v, tl_gval *out)
{
    bool real = tl_number_tag(v) == TL_V_FLOAT;
    tl_gbuild *b = &tl_trace_of(ev)->b;
    tl_gval in[2], both[2];

    TL_TRY(tl_sym_host(ev, v, false, &in[0]));
    if (tl_number_tag(v) == TL_V_BOOL) {
        *out = in[0];
        return TL_OK;
    }
    TL_TRY(tl_gbuild_num(b, real ? TL_GC_FLOAT : TL_GC_INT,
                         (tl_gscalar){.i = 0}, &in[1]));
    TL_TRY(tl_gbuild_host(b, real ? TL_H_ne_f : TL_H_ne_i, TL_GC_BOOL, in, 2,
                          &both[0]));
    if (!real) {
        *out = both[0];
        return TL_OK;
    }
    in[1] = in[0];
    TL_TRY(tl_gbuild_host(b, TL_H_eq_f, TL_GC_BOOL, in, 2, &both[1]));
    return tl_gbuild_host(b, TL_H_and, TL_GC_BOOL, both, 2, out);
}

/* The same for a tensor of one element, as a bool tensor. */
static tl_status tensor_holds(tl_eval *ev, tl_value v, tl_value *out)
{
    tl_value nonzero, same, both[2];

    if (v.node->type.dtype == TL_bool) {
        *out = tl_ref(v);
        return TL_OK;
    }
    TL_TRY(tl_eval_binary_take(ev, TL_OP_NE, tl_ref(v), tl_int_value(0),
                               &nonzero));
    if (!tl_dtype_is_float(v.node->type.dtype)) {
        *out = nonzero;
        return TL_OK;
    }
    tl_status st = tl_eval_binary_take(ev, TL_OP_EQ, tl_ref(v), tl_ref(v),
                                       &same);

    if (st != TL_OK) {
        tl_unref(nonzero);
        return st;
    }
    both[0] = nonzero;
    both[1] = same;
    return tl_eval_op(ev, TL_OP_and, both, 2, NULL, out);
}

static bool has_one_element(const tl_ttype *t)
{
    for (int i = 0; i < t->shape.rank; i++) {
        if (!tl_dim_is_num(t->shape.dim[i]) ||
            tl_dim_value(t->shape.dim[i]) != 1) {
            return false;
        }
    }
    return true;
}

tl_status tl_trace_holds(tl_eval *ev, tl_gval condition)
{
    const operands none = {.ev = ev};

    return add_effect(ev, condition, tl_empty(), &none);
}

tl_status tl_trace_assert(tl_eval *ev, tl_value cond, bool *done)
{
    operands none = {.ev = ev};
    tl_value c = tl_empty();
    tl_gval v = 0;

    *done = true;
    if (cond.tag == TL_V_SYM) {
        TL_TRY(number_holds(ev, cond, &v));
        return add_effect(ev, v, tl_none(), &none);
    }
    if (cond.tag != TL_V_NODE || !has_one_element(&cond.node->type)) {
        *done = false;
        return TL_OK;
    }
    TL_TRY(tensor_holds(ev, cond, &c));
    v = c.node->id;
    tl_status st = add_effect(ev, v, tl_none(), &none);

    tl_unref(c);
    return st;
}

/* ---- in a run ----------------------------------------------------------- */

/* Values that an effect gets. */
typedef struct shown {
    tl_eval *ev;
    tl_tensor *const *tensors;
    const tl_gscalar *scalars;
} shown;

static tl_status value_of(void *arg, tl_value node, tl_value *out)
{
    const shown *s = arg;

    if (node.tag == TL_V_NODE) {
        tl_tensor *t;

        TL_TRY(tl_tensor_show(&t, s->tensors[node.node->id - 1],
                              node.node->type.dtype, s->ev->diag));
        *out = tl_tensor_value_take(t);
        return TL_OK;
    }
    *out = tl_scalar_value(s->scalars[node.sym->id - 1],
                           node.sym->hint.tag);
    return TL_OK;
}

tl_status tl_entry_effect(void *arg, uint32_t key, uint32_t n,
                          tl_tensor *const *tensors,
                          const tl_gscalar *scalars)
{
    const tl_effect_arg *to = arg;
    tl_value pattern = to->entry->effects[key], v;
    shown s = {to->ev, tensors, scalars};

    (void)n;
    if (pattern.tag != TL_V_TUPLE) { /* the interpreter will say more */
        return tl_fail(to->ev->diag, TL_E0222, "assertion failed");
    }
    TL_TRY(tl_lift_back_shown(to->ev, pattern, value_of, &s, &v));
    tl_status st = tl_print_text(to->ev, v.seq->items, &to->entry->printed);

    tl_unref(v);
    return st;
}
