/* sym.c - see sym.h. */
#include "interp/sym.h"

#include <math.h>

#include "interp/dict.h"
#include "interp/domain.h"
#include "interp/late.h"
#include "interp/trace.h"

static tl_gbuild *builder(tl_eval *ev)
{
    tl_gbuild *b = &tl_trace_of(ev)->b;

    b->span = ev->rt->span;
    return b;
}

/* ---- making ------------------------------------------------------------- */

static tl_status new_sym(tl_eval *ev, tl_symval what, tl_value *out)
{
    tl_symval *s = tl_obj_new(TL_V_SYM, sizeof(*s), ev->diag);

    if (s == NULL) {
        return TL_ERR_MEMORY;
    }
    what.obj = s->obj;
    *s = what;
    *out = tl_obj_value_take(s);
    return TL_OK;
}

tl_status tl_sym_new(tl_eval *ev, uint32_t id, tl_value hint, tl_value *out)
{
    tl_gatom atom = {.kind = TL_GA_INT, .index = id};
    tl_dim d;

    if (hint.tag != TL_V_INT) {
        return new_sym(ev, (tl_symval){.hint = hint, .id = id}, out);
    }
    TL_TRY(tl_gbuild_atom(builder(ev), atom, -TL_SYM_MAX, hint.i, &d));
    return new_sym(ev, (tl_symval){.hint = hint, .dim = d}, out);
}

tl_status tl_sym_with_host(tl_eval *ev, tl_value v, uint32_t id,
                           tl_value *out)
{
    tl_symval s = *v.sym;

    s.id = id;
    return new_sym(ev, s, out);
}

tl_status tl_sym_range(tl_eval *ev, tl_value start, tl_value stop,
                       int64_t step, tl_value *out)
{
    tl_value a = start.tag == TL_V_SYM ? start.sym->hint : start;
    tl_value b = stop.tag == TL_V_SYM ? stop.sym->hint : stop;
    tl_symval s = {.id = 0};
    tl_status st;

    TL_TRY(tl_value_dim(ev, start, &s.dim));
    TL_TRY(tl_value_dim(ev, stop, &s.stop));
    TL_TRY(tl_range_new(&s.hint, a.i, b.i, step, ev->diag));
    st = new_sym(ev, s, out);
    if (st != TL_OK) {
        tl_unref(s.hint);
    }
    return st;
}

tl_status tl_sym_output(tl_eval *ev, uint32_t id, tl_value hint,
                        tl_value *out)
{
    return new_sym(ev, (tl_symval){.hint = hint, .id = id}, out);
}

tl_status tl_dim_value_of(tl_eval *ev, tl_dim d, tl_value *out)
{
    tl_symval s = {.dim = d, .hint = {.tag = TL_V_INT}};

    if (tl_dim_is_num(d)) {
        *out = tl_int_value(tl_dim_value(d));
        return TL_OK;
    }
    if (!tl_is_tracing(ev)) {
        *out = tl_unknown();
        return TL_OK;
    }
    TL_TRY(tl_gbuild_hint(builder(ev), d, &s.hint.i));
    return new_sym(ev, s, out);
}

tl_status tl_value_dim(tl_eval *ev, tl_value v, tl_dim *out)
{
    if (v.tag == TL_V_SYM && v.sym->hint.tag == TL_V_INT) {
        *out = v.sym->dim;
        return TL_OK;
    }
    if (v.tag != TL_V_INT) {
        return tl_fail(ev->diag, TL_E0210, "an int is needed here, got %s",
                       tl_value_type_str(v).s);
    }
    *out = tl_dim_num(v.i);
    return TL_OK;
}

/* ---- the host's side ---------------------------------------------------- */

static tl_gscalar bits_of(tl_value v)
{
    tl_gscalar s = {.i = 0};

    if (v.tag == TL_V_INT) {
        s.i = v.i;
    } else if (v.tag == TL_V_FLOAT) {
        s.f = v.f;
    } else {
        s.b = v.b;
    }
    return s;
}

static tl_gclass class_of(tl_value v)
{
    return v.tag == TL_V_INT     ? TL_GC_INT
           : v.tag == TL_V_FLOAT ? TL_GC_FLOAT
                                 : TL_GC_BOOL;
}

/* The number as a host value of its own class. */
static tl_status own_host(tl_eval *ev, tl_value v, tl_gval *out)
{
    if (v.tag != TL_V_SYM) {
        return tl_gbuild_num(builder(ev), class_of(v), bits_of(v), out);
    }
    if (v.sym->hint.tag == TL_V_INT && v.sym->id == 0) {
        return tl_gbuild_size(builder(ev), v.sym->dim, out);
    }
    *out = v.sym->id;
    return TL_OK;
}

tl_status tl_sym_host(tl_eval *ev, tl_value v, bool as_float, uint32_t *out)
{
    if (as_float && tl_is_number(v)) {
        v = tl_float_value(tl_number_f(v));
    }
    TL_TRY(own_host(ev, v, out));
    if (!as_float || tl_number_tag(v) == TL_V_FLOAT) {
        return TL_OK;
    }
    return tl_gbuild_host(builder(ev), TL_H_to_float, TL_GC_FLOAT, out, 1,
                          out);
}

tl_status tl_sym_tensor(tl_eval *ev, tl_value v, tl_dtype dtype,
                        tl_value *out)
{
    tl_gval host, t;

    TL_TRY(own_host(ev, v, &host));
    TL_TRY(tl_gbuild_scalar(builder(ev), host, dtype, &t));
    return tl_trace_node(ev, t, out);
}

bool tl_sym_is_late(tl_eval *ev, tl_value v)
{
    const tl_gbuild *b = &tl_trace_of(ev)->b;

    if (v.tag != TL_V_SYM) {
        return false;
    }
    return v.sym->hint.tag == TL_V_INT ? tl_gbuild_is_late(b, v.sym->dim)
                                       : b->values.items[v.sym->id].late;
}

/* ---- reading ------------------------------------------------------------ */

tl_status tl_sym_read(tl_eval *ev, tl_value *v)
{
    tl_value s = *v;
    tl_gval host;

    if (s.tag == TL_V_LATE) {
        return tl_late_read(ev, v);
    }
    if (s.tag != TL_V_SYM) {
        return TL_OK;
    }
    if (s.sym->hint.tag == TL_V_RANGE) {
        tl_infer *infer = &builder(ev)->infer;
        tl_dim pinned;

        TL_TRY(infer->pin(infer->guard_arg, s.sym->dim, &pinned));
        TL_TRY(infer->pin(infer->guard_arg, s.sym->stop, &pinned));
    } else if (s.sym->hint.tag == TL_V_INT) {
        tl_infer *infer = &builder(ev)->infer;
        tl_dim pinned;

        TL_TRY(infer->pin(infer->guard_arg, s.sym->dim, &pinned));
    } else {
        TL_TRY(own_host(ev, s, &host));
        if (builder(ev)->values.items[host].late) {
            return tl_trace_refuse(ev, "the host decides something by a "
                                       "number that only the run knows");
        }
        TL_TRY(tl_gbuild_guard(builder(ev), host, bits_of(s.sym->hint)));
    }
    *v = tl_ref(s.sym->hint);
    tl_unref(s);
    return TL_OK;
}

static bool has_symbol(tl_value v, int depth)
{
    if (v.tag == TL_V_SYM || v.tag == TL_V_LATE) {
        return true;
    }
    if (depth == 0) {
        return false;
    }
    if (v.tag == TL_V_LIST || v.tag == TL_V_TUPLE) {
        for (size_t i = 0; i < v.seq->len; i++) {
            if (has_symbol(v.seq->items[i], depth - 1)) {
                return true;
            }
        }
    } else if (v.tag == TL_V_SLICE) {
        return tl_is_sym(v.slice->start) || tl_is_sym(v.slice->stop) ||
               tl_is_sym(v.slice->step);
    } else if (v.tag == TL_V_DICT) {
        size_t at = 0;

        for (tl_dict_entry *e; (e = tl_dict_next(v.dict, &at)) != NULL;) {
            if (has_symbol(e->value, depth - 1)) {
                return true;
            }
        }
    }
    return false;
}

static tl_status read_seq(tl_eval *ev, tl_value *v)
{
    tl_value made;
    tl_status st = TL_OK;

    TL_TRY(tl_seq_alloc(&made, v->tag, v->seq->len, ev->diag));
    for (size_t i = 0; i < v->seq->len && st == TL_OK; i++) {
        made.seq->items[i] = tl_ref(v->seq->items[i]);
        st = tl_sym_read_deep(ev, &made.seq->items[i]);
    }
    if (st != TL_OK) {
        tl_unref(made);
        return st;
    }
    tl_unref(*v);
    *v = made;
    return TL_OK;
}

static tl_status read_slice(tl_eval *ev, tl_value *v)
{
    tl_value part[3] = {tl_ref(v->slice->start), tl_ref(v->slice->stop),
                        tl_ref(v->slice->step)};
    tl_value made;

    for (int i = 0; i < 3; i++) {
        tl_status st = tl_sym_read(ev, &part[i]);

        if (st != TL_OK) {
            tl_unref_all(part, 3);
            return st;
        }
    }
    TL_TRY(tl_slice_new_take(&made, part[0], part[1], part[2], ev->diag));
    tl_unref(*v);
    *v = made;
    return TL_OK;
}

static tl_status read_dict(tl_eval *ev, tl_value *v)
{
    tl_value made;
    size_t at = 0;

    TL_TRY(tl_dict_new(&made, ev->diag));
    for (tl_dict_entry *e; (e = tl_dict_next(v->dict, &at)) != NULL;) {
        tl_value item = tl_ref(e->value);
        tl_status st = tl_sym_read_deep(ev, &item);

        if (st == TL_OK) {
            st = tl_dict_set_take(made.dict, tl_ref(e->key), item, ev->diag);
        } else {
            tl_unref(item);
        }
        if (st != TL_OK) {
            tl_unref(made);
            return st;
        }
    }
    tl_unref(*v);
    *v = made;
    return TL_OK;
}

tl_status tl_sym_read_deep(tl_eval *ev, tl_value *v)
{
    if (!tl_is_tracing(ev) || !has_symbol(*v, 8)) {
        return TL_OK;
    }
    switch (v->tag) {
    case TL_V_SYM:
    case TL_V_LATE:
        return tl_sym_read(ev, v);
    case TL_V_SLICE:
        return read_slice(ev, v);
    case TL_V_DICT:
        return read_dict(ev, v);
    default:
        return read_seq(ev, v);
    }
}

/* ---- arithmetic --------------------------------------------------------- */

static tl_value hint_of(tl_value v)
{
    return v.tag == TL_V_SYM ? v.sym->hint : v;
}

/* Of ints: a polynomial. */
static tl_status int_arith(tl_eval *ev, tl_oper op, tl_value a, tl_value b,
                           bool *done, tl_dim *out)
{
    tl_gbuild *g = builder(ev);
    tl_dim x, y;

    TL_TRY(tl_value_dim(ev, a, &x));
    TL_TRY(tl_value_dim(ev, b, &y));
    switch (op) {
    case TL_OP_ADD:
        return tl_dim_add(g->dims, x, y, out, ev->diag);
    case TL_OP_SUB:
        return tl_dim_sub(g->dims, x, y, out, ev->diag);
    case TL_OP_MUL:
        return tl_dim_mul(g->dims, x, y, out, ev->diag);
    case TL_OP_FLOORDIV:
        return tl_dim_div(g->dims, x, y, out, ev->diag);
    case TL_OP_MOD:
        return tl_dim_mod(g->dims, x, y, out, ev->diag);
    default:
        *done = false;
        return TL_OK;
    }
}

static tl_ghost float_op(tl_oper op)
{
    switch (op) {
    case TL_OP_ADD:
        return TL_H_add_f;
    case TL_OP_SUB:
        return TL_H_sub_f;
    case TL_OP_MUL:
        return TL_H_mul_f;
    case TL_OP_DIV:
        return TL_H_div_f;
    case TL_OP_FLOORDIV:
        return TL_H_floordiv_f;
    case TL_OP_MOD:
        return TL_H_mod_f;
    case TL_OP_POW:
        return TL_H_pow_f;
    default:
        return TL_H_NONE;
    }
}

/* a op b of the class `cls`, computed on floats or ints. */
static tl_status host_op(tl_eval *ev, tl_ghost op, tl_gclass cls,
                         bool as_float, tl_value a, tl_value b, tl_value hint,
                         tl_value *out)
{
    tl_gval in[2], r;

    TL_TRY(tl_sym_host(ev, a, as_float, &in[0]));
    TL_TRY(tl_sym_host(ev, b, as_float, &in[1]));
    TL_TRY(tl_gbuild_host(builder(ev), op, cls, in, 2, &r));
    return tl_sym_new(ev, r, hint, out);
}

static tl_status arithmetic(tl_eval *ev, tl_oper op, tl_value a, tl_value b,
                            bool *done, tl_value *out)
{
    tl_tag x = tl_number_tag(a), y = tl_number_tag(b);
    tl_value hint;
    tl_dim d;

    TL_TRY(tl_eval_binary_take(ev, op, hint_of(a), hint_of(b), &hint));
    if (x == TL_V_INT && y == TL_V_INT && op != TL_OP_DIV) {
        TL_TRY(int_arith(ev, op, a, b, done, &d));
        return *done ? tl_dim_value_of(ev, d, out) : TL_OK;
    }
    if (x == TL_V_BOOL || y == TL_V_BOOL || float_op(op) == TL_H_NONE) {
        *done = false;
        return TL_OK;
    }
    return host_op(ev, float_op(op), TL_GC_FLOAT, true, a, b, hint, out);
}

static tl_ghost compare_op(tl_oper op, bool ints, bool *swapped)
{
    *swapped = op == TL_OP_GT || op == TL_OP_GE;
    switch (op) {
    case TL_OP_LT:
    case TL_OP_GT:
        return ints ? TL_H_lt_i : TL_H_lt_f;
    case TL_OP_LE:
    case TL_OP_GE:
        return ints ? TL_H_le_i : TL_H_le_f;
    case TL_OP_EQ:
        return ints ? TL_H_eq_i : TL_H_eq_f;
    case TL_OP_NE:
        return ints ? TL_H_ne_i : TL_H_ne_f;
    default:
        return TL_H_NONE;
    }
}

/* What facts about the sizes decide needs no condition: *known. */
static tl_status proved(tl_eval *ev, tl_oper op, tl_value a, tl_value b,
                        bool *known, bool *yes)
{
    tl_gbuild *g = builder(ev);
    tl_proof p;
    tl_dim x, y;

    TL_TRY(tl_value_dim(ev, a, &x));
    TL_TRY(tl_value_dim(ev, b, &y));
    if (op == TL_OP_EQ || op == TL_OP_NE) {
        p = tl_dim_same(x, y) ? TL_PROVED : TL_UNKNOWN;
        *known = p == TL_PROVED;
        *yes = op == TL_OP_EQ;
        return TL_OK;
    }
    if (op == TL_OP_GT || op == TL_OP_GE) {
        tl_dim z = x;

        x = y;
        y = z;
    }
    if (op == TL_OP_LT || op == TL_OP_GT) {
        TL_TRY(tl_dim_add(g->dims, x, tl_dim_num(1), &x, ev->diag));
    }
    *known = tl_dim_le(g->dims, x, y) == TL_PROVED;
    *yes = true;
    return TL_OK;
}

static tl_status comparison(tl_eval *ev, tl_oper op, tl_value a, tl_value b,
                            bool *done, tl_value *out)
{
    tl_tag x = tl_number_tag(a), y = tl_number_tag(b);
    bool ints = x == TL_V_INT && y == TL_V_INT, swapped, known = false, yes;
    tl_ghost h = compare_op(op, ints, &swapped);
    tl_value hint;

    if (h == TL_H_NONE || x == TL_V_BOOL || y == TL_V_BOOL) {
        *done = false;
        return TL_OK;
    }
    if (ints) {
        TL_TRY(proved(ev, op, a, b, &known, &yes));
    }
    if (known) {
        *out = tl_bool_value(yes);
        return TL_OK;
    }
    TL_TRY(tl_eval_binary_take(ev, op, hint_of(a), hint_of(b), &hint));
    return host_op(ev, h, TL_GC_BOOL, !ints, swapped ? b : a,
                   swapped ? a : b, hint, out);
}

tl_status tl_sym_binary(tl_eval *ev, tl_oper op, tl_value a, tl_value b,
                        bool *done, tl_value *out)
{
    tl_status st;

    *done = true;
    st = op <= TL_OP_POW && op != TL_OP_MATMUL
             ? arithmetic(ev, op, a, b, done, out)
             : comparison(ev, op, a, b, done, out);
    if (st != TL_OK || *done) {
        tl_unref(a);
        tl_unref(b);
    }
    return st;
}

tl_status tl_sym_negative(tl_eval *ev, tl_value a, bool *done, tl_value *out)
{
    tl_gval in, r;
    tl_dim d;
    tl_status st;

    *done = a.sym->hint.tag != TL_V_BOOL;
    if (!*done) {
        return TL_OK;
    }
    if (a.sym->hint.tag == TL_V_INT) {
        st = tl_dim_sub(builder(ev)->dims, tl_dim_num(0), a.sym->dim, &d,
                        ev->diag);
        if (st == TL_OK) {
            st = tl_dim_value_of(ev, d, out);
        }
    } else {
        in = a.sym->id;
        st = tl_gbuild_host(builder(ev), TL_H_neg_f, TL_GC_FLOAT, &in, 1, &r);
        if (st == TL_OK) {
            st = tl_sym_new(ev, r, tl_float_value(-a.sym->hint.f), out);
        }
    }
    tl_unref(a);
    return st;
}

tl_status tl_sym_to_float(tl_eval *ev, tl_value v, tl_value *out)
{
    tl_gval host;

    if (tl_number_tag(v) == TL_V_FLOAT) {
        *out = tl_ref(v);
        return TL_OK;
    }
    TL_TRY(tl_sym_host(ev, v, true, &host));
    return tl_sym_new(ev, host, tl_float_value(tl_number_f(hint_of(v))), out);
}

tl_status tl_sym_function(tl_eval *ev, tl_op op, tl_value v, bool *done,
                          tl_value *out)
{
    double x = tl_number_f(hint_of(v)), y;
    tl_ghost h;
    tl_gval in, r;

    *done = true;
    switch ((int)op) {
    case TL_OP_sqrt:
        *done = x >= 0;
        h = TL_H_sqrt_f;
        y = sqrt(x);
        break;
    case TL_OP_exp:
        h = TL_H_exp_f;
        y = exp(x);
        break;
    case TL_OP_log:
        *done = x > 0;
        h = TL_H_log_f;
        y = log(x);
        break;
    case TL_OP_sin:
        h = TL_H_sin_f;
        y = sin(x);
        break;
    case TL_OP_cos:
        h = TL_H_cos_f;
        y = cos(x);
        break;
    case TL_OP_tanh:
        h = TL_H_tanh_f;
        y = tanh(x);
        break;
    default:
        *done = false;
        return TL_OK;
    }
    if (!*done || !isfinite(y)) {
        *done = false; /* the host has something to say */
        return TL_OK;
    }
    TL_TRY(tl_sym_host(ev, v, true, &in));
    TL_TRY(tl_gbuild_host(builder(ev), h, TL_GC_FLOAT, &in, 1, &r));
    return tl_sym_new(ev, r, tl_float_value(y), out);
}
