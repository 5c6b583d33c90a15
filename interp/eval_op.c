/* eval_op.c - operators on any values, and operations on tensors of any
 * domain. */
#include <stdio.h>
#include <math.h>
#include <string.h>

#include "interp/container.h"
#include "interp/autocast.h"
#include "interp/domain.h"
#include "interp/eval_impl.h"
#include "interp/graph_flow.h"
#include "interp/sym.h"
#include "interp/tree.h"
#include "runtime/base/size.h"

/* ---- notes of types ---------------------------------------------------- */

void tl_type_note_take(tl_type_note *note, tl_value v)
{
    note->tag = v.tag == TL_V_SYM ? v.sym->hint.tag : v.tag;
    note->name = NULL;
    note->rank = -1; /* of a tensor alone */
    if (v.tag == TL_V_TENSOR) {
        note->dtype = tl_tensor_shown(v.tensor);
        note->rank = v.tensor->rank;
        for (int i = 0; i < note->rank && i < 6; i++) {
            note->size[i] = v.tensor->size[i];
        }
    } else if (v.tag == TL_V_NODE) {
        const tl_ttype *t = &v.node->type;

        note->dtype = t->dtype;
        note->rank = t->shape.rank;
        for (int i = 0; i < note->rank && i < 6; i++) {
            tl_dim d = t->shape.dim[i];

            note->size[i] = tl_dim_is_num(d) ? tl_dim_value(d) : -1;
        }
    } else if (v.tag == TL_V_MODULE) {
        note->name = tl_class_name(v.module->cls);
    }
}

tl_shape_text tl_type_note_str(const tl_type_note *note)
{
    tl_shape_text t = {""};
    size_t n;

    if (note->name != NULL) {
        snprintf(t.s, sizeof(t.s), "%s", note->name);
        return t;
    }
    if (note->tag != TL_V_TENSOR && note->tag != TL_V_NODE) {
        return tl_value_type_str((tl_value){.tag = note->tag});
    }
    n = (size_t)snprintf(t.s, sizeof(t.s), "%s[",
                         tl_dtype_name(note->dtype));
    for (int i = 0; i < note->rank && i < 6; i++) {
        n += (size_t)(note->size[i] < 0
                          ? snprintf(t.s + n, sizeof(t.s) - n, "%s_",
                                     i > 0 ? ", " : "")
                          : snprintf(t.s + n, sizeof(t.s) - n, "%s%lld",
                                     i > 0 ? ", " : "",
                                     (long long)note->size[i]));
    }
    snprintf(t.s + n, sizeof(t.s) - n, note->rank > 6 ? ", ...]" : "]");
    return t;
}

tl_span tl_operator_span(tl_eval *ev, tl_oper op, tl_span gap)
{
    const tl_source *src = tl_sources_get(ev->lang->sources, gap.file);
    const char *text = tl_op_text(op);
    size_t n = strlen(text);

    if (src == NULL || gap.end > src->len) {
        return gap;
    }
    for (uint32_t i = gap.start; i + n <= gap.end; i++) {
        if (memcmp(src->text + i, text, n) == 0) {
            return (tl_span){gap.file, i, (uint32_t)(i + n)};
        }
    }
    return gap;
}

/* ---- host arithmetic --------------------------------------------------- */

static tl_status overflow(tl_eval *ev, tl_oper op, int64_t a, int64_t b)
{
    return tl_fail(ev->diag, TL_E0404, "%lld %s %lld does not fit 64 bits",
                   (long long)a, tl_op_text(op), (long long)b);
}

static tl_status zero_division(tl_eval *ev, bool ints)
{
    return tl_fail(ev->diag, TL_E0401, "%sdivision by zero",
                   ints ? "integer " : "");
}

static bool int_pow(int64_t base, int64_t e, int64_t *out)
{
    int64_t r = 1;

    while (e > 0) {
        if ((e & 1) && !tl_mul_i64(&r, r, base)) {
            return false;
        }
        e >>= 1;
        if (e > 0 && !tl_mul_i64(&base, base, base)) {
            return false;
        }
    }
    *out = r;
    return true;
}

static tl_status host_int(tl_eval *ev, tl_oper op, int64_t a, int64_t b,
                          tl_value *out)
{
    int64_t r = 0;
    bool ok = true;

    switch (op) {
    case TL_OP_ADD:
        ok = tl_add_i64(&r, a, b);
        break;
    case TL_OP_SUB:
        ok = tl_sub_i64(&r, a, b);
        break;
    case TL_OP_MUL:
        ok = tl_mul_i64(&r, a, b);
        break;
    case TL_OP_POW:
        ok = int_pow(a, b, &r);
        break;
    case TL_OP_FLOORDIV:
    case TL_OP_MOD:
        if (b == 0) {
            return zero_division(ev, true);
        }
        ok = !(a == INT64_MIN && b == -1) || op == TL_OP_MOD;
        if (ok && b == -1) {
            r = op == TL_OP_MOD ? 0 : -a;
        } else if (ok) {
            r = op == TL_OP_MOD ? tl_floor_mod(a, b) : tl_floor_div(a, b);
        }
        break;
    default:
        TL_CHECK(!"not an arithmetic operator");
    }
    if (!ok) {
        return overflow(ev, op, a, b);
    }
    *out = tl_int_value(r);
    return TL_OK;
}

/* Python's float % and //: the remainder has the sign of b. */
static double float_mod(double a, double b)
{
    double r = fmod(a, b);

    return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

static tl_status host_float(tl_eval *ev, tl_oper op, double a, double b,
                            tl_value *out)
{
    double r = 0;

    switch (op) {
    case TL_OP_ADD:
        r = a + b;
        break;
    case TL_OP_SUB:
        r = a - b;
        break;
    case TL_OP_MUL:
        r = a * b;
        break;
    case TL_OP_POW:
        r = pow(a, b);
        break;
    case TL_OP_DIV:
    case TL_OP_FLOORDIV:
    case TL_OP_MOD:
        if (b == 0) {
            return zero_division(ev, false);
        }
        r = op == TL_OP_DIV   ? a / b
            : op == TL_OP_MOD ? float_mod(a, b)
                              : (a - float_mod(a, b)) / b;
        r = op == TL_OP_FLOORDIV ? nearbyint(r) : r;
        break;
    default:
        TL_CHECK(!"not an arithmetic operator");
    }
    *out = tl_float_value(r);
    return TL_OK;
}

static bool is_arith(tl_oper op)
{
    return op <= TL_OP_POW && op != TL_OP_MATMUL;
}

static tl_status host_arith(tl_eval *ev, tl_oper op, tl_value a, tl_value b,
                            tl_value *out)
{
    bool ints = a.tag != TL_V_FLOAT && b.tag != TL_V_FLOAT;
    int64_t x = a.tag == TL_V_BOOL ? a.b : a.i;
    int64_t y = b.tag == TL_V_BOOL ? b.b : b.i;

    if (ints && op != TL_OP_DIV && !(op == TL_OP_POW && y < 0)) {
        return host_int(ev, op, x, y, out);
    }
    if (op == TL_OP_POW && tl_number_f(a) == 0 && tl_number_f(b) < 0) {
        return zero_division(ev, false);
    }
    return host_float(ev, op, tl_number_f(a), tl_number_f(b), out);
}

/* ---- comparisons of host values ---------------------------------------- */

static tl_status host_compare(tl_eval *ev, tl_oper op, tl_value a, tl_value b,
                              tl_value *out)
{
    bool r = false;
    int c = 0;

    switch (op) {
    case TL_OP_EQ:
    case TL_OP_NE:
        TL_TRY(tl_value_equal(a, b, &r, ev->diag));
        r = r == (op == TL_OP_EQ);
        break;
    case TL_OP_IN:
    case TL_OP_NOT_IN:
        TL_TRY(tl_contains(b, a, &r, ev->diag));
        r = r == (op == TL_OP_IN);
        break;
    default:
        if ((a.tag == TL_V_FLOAT && isnan(a.f)) ||
            (b.tag == TL_V_FLOAT && isnan(b.f))) {
            break; /* every order with a NaN is false */
        }
        TL_TRY(tl_value_compare(a, b, &c, ev->diag));
        r = op == TL_OP_LT   ? c < 0
            : op == TL_OP_LE ? c <= 0
            : op == TL_OP_GT ? c > 0
                             : c >= 0;
        break;
    }
    *out = tl_bool_value(r);
    return TL_OK;
}

/* ---- dispatch ---------------------------------------------------------- */

/* The tensor operation of an operator, or TL_OP_COUNT. */
static tl_op tensor_op(tl_oper op)
{
    switch (op) {
    case TL_OP_ADD:
        return TL_OP_add;
    case TL_OP_SUB:
        return TL_OP_sub;
    case TL_OP_MUL:
        return TL_OP_mul;
    case TL_OP_DIV:
        return TL_OP_div;
    case TL_OP_FLOORDIV:
        return TL_OP_floordiv;
    case TL_OP_MOD:
        return TL_OP_mod;
    case TL_OP_MATMUL:
        return TL_OP_matmul;
    case TL_OP_POW:
        return TL_OP_pow;
    case TL_OP_AND:
        return TL_OP_and;
    case TL_OP_OR:
        return TL_OP_or;
    case TL_OP_EQ:
        return TL_OP_eq;
    case TL_OP_NE:
        return TL_OP_ne;
    case TL_OP_LT:
        return TL_OP_lt;
    case TL_OP_LE:
        return TL_OP_le;
    case TL_OP_GT:
        return TL_OP_gt;
    case TL_OP_GE:
        return TL_OP_ge;
    default:
        return TL_OP_COUNT;
    }
}

static tl_status undefined(tl_eval *ev, tl_oper op, tl_value a, tl_value b)
{
    tl_status st = tl_fail(ev->diag, TL_E0207,
                           "`%s` is not defined for %s and %s",
                           tl_op_text(op), tl_value_type_str(a).s,
                           tl_value_type_str(b).s);

    if (op == TL_OP_ADD && (a.tag == TL_V_STR || b.tag == TL_V_STR)) {
        tl_diag_help(ev->diag, "f\"...{x}\" puts values into a text");
    }
    return st;
}

static bool equality(tl_oper op)
{
    return op == TL_OP_EQ || op == TL_OP_NE;
}

/* At least one operand is a tensor. */
static tl_status tensor_binary(tl_eval *ev, tl_oper op, tl_value a,
                               tl_value b, tl_value *out)
{
    tl_value in[2] = {a, b};
    tl_op t = tensor_op(op);
    bool fit = (tl_is_tensor(a) || tl_is_any_number(a)) &&
               (tl_is_tensor(b) || tl_is_any_number(b));

    if (t == TL_OP_matmul) {
        fit = tl_is_tensor(a) && tl_is_tensor(b);
    }
    if (t == TL_OP_pow && b.tag == TL_V_INT && (b.i == 2 || b.i == 3)) {
        t = b.i == 2 ? TL_OP_square : TL_OP_cube; /* x ** 2, x ** 3 */
        return tl_eval_op(ev, t, in, 1, NULL, out);
    }
    if (fit && t != TL_OP_COUNT) {
        return tl_eval_op(ev, t, in, 2, NULL, out);
    }
    tl_status st = TL_OK;

    if (equality(op) && !fit) {
        *out = tl_bool_value(op == TL_OP_NE); /* x == none */
    } else {
        st = undefined(ev, op, a, b);
    }
    tl_unref(a);
    tl_unref(b);
    return st;
}

/* Containers: joining and repeating. *mine: it was one of these. */
static tl_status container_binary(tl_eval *ev, tl_oper op, tl_value a,
                                  tl_value b, bool *mine, tl_value *out)
{
    bool seq_a = a.tag == TL_V_LIST || a.tag == TL_V_TUPLE || a.tag == TL_V_STR;
    bool seq_b = b.tag == TL_V_LIST || b.tag == TL_V_TUPLE || b.tag == TL_V_STR;

    *mine = true;
    if (op == TL_OP_ADD && seq_a && a.tag == b.tag) {
        return tl_concat_take(a, b, out, ev->diag);
    }
    if (op == TL_OP_MUL && seq_a && b.tag == TL_V_INT) {
        return tl_repeat_take(a, b.i, out, ev->diag);
    }
    if (op == TL_OP_MUL && seq_b && a.tag == TL_V_INT) {
        return tl_repeat_take(b, a.i, out, ev->diag);
    }
    *mine = false;
    return TL_OK;
}

tl_status tl_eval_binary_take(tl_eval *ev, tl_oper op, tl_value a, tl_value b,
                              tl_value *out)
{
    bool mine = false;
    tl_status st;

    if (a.tag == TL_V_UNKNOWN || b.tag == TL_V_UNKNOWN) {
        tl_unref(a);
        tl_unref(b);
        *out = tl_unknown();
        return TL_OK;
    }
    if ((tl_is_tensor(a) || tl_is_tensor(b)) && op != TL_OP_IN &&
        op != TL_OP_NOT_IN && a.tag != TL_V_TREE && b.tag != TL_V_TREE) {
        return tensor_binary(ev, op, a, b, out);
    }
    if (tl_is_tracing(ev)) { /* there may be symbols */
        bool done = false;

        if ((tl_is_sym(a) || tl_is_sym(b)) && tl_is_any_number(a) &&
            tl_is_any_number(b)) {
            TL_TRY(tl_sym_binary(ev, op, a, b, &done, out));
        }
        if (done) {
            return TL_OK;
        }
        if (a.tag != TL_V_TREE && b.tag != TL_V_TREE) {
            st = is_arith(op) ? tl_sym_read(ev, &a) : tl_sym_read_deep(ev, &a);
            st = st != TL_OK      ? st
                 : is_arith(op) ? tl_sym_read(ev, &b)
                                : tl_sym_read_deep(ev, &b);
            if (st != TL_OK) {
                tl_unref(a);
                tl_unref(b);
                return st;
            }
        }
    }
    if (is_arith(op)) {
        if (tl_is_number(a) && tl_is_number(b)) {
            return host_arith(ev, op, a, b, out);
        }
        if (a.tag == TL_V_TREE || b.tag == TL_V_TREE) {
            return tl_tree_binary_take(ev, op, a, b, out);
        }
        st = container_binary(ev, op, a, b, &mine, out);
        if (mine) {
            return st;
        }
        st = undefined(ev, op, a, b);
    } else if (op == TL_OP_MATMUL || op == TL_OP_AND || op == TL_OP_OR) {
        st = undefined(ev, op, a, b);
    } else {
        st = host_compare(ev, op, a, b, out);
    }
    tl_unref(a);
    tl_unref(b);
    return st;
}

tl_status tl_eval_unary_take(tl_eval *ev, tl_oper op, tl_value a,
                             tl_value *out)
{
    bool known, yes;

    if (a.tag == TL_V_UNKNOWN) {
        *out = a;
        return TL_OK;
    }
    if (tl_is_sym(a)) {
        bool done = op == TL_OP_POS;

        *out = a;
        if (op == TL_OP_NEG) {
            TL_TRY(tl_sym_negative(ev, a, &done, out));
        } else if (op == TL_OP_NOT && tl_number_tag(a) == TL_V_BOOL) {
            tl_status st = tl_graph_not(ev, a, out);

            tl_unref(a);
            return st;
        }
        if (done) {
            return TL_OK;
        }
        TL_TRY(tl_sym_read(ev, &a));
    }
    if (tl_is_tensor(a)) {
        if (op == TL_OP_POS) {
            *out = a;
            return TL_OK;
        }
        return tl_eval_op(ev, op == TL_OP_NOT ? TL_OP_not : TL_OP_neg, &a, 1,
                          NULL, out);
    }
    if (op == TL_OP_NOT) {
        tl_status st = tl_eval_truth(ev, a, &known, &yes);

        tl_unref(a);
        *out = known ? tl_bool_value(!yes) : tl_unknown();
        return st;
    }
    if (a.tag == TL_V_TREE) {
        return tl_tree_unary_take(ev, op, a, out);
    }
    if (!tl_is_number(a)) {
        tl_status st = tl_fail(ev->diag, TL_E0207,
                               "unary `%s` is not defined for %s",
                               tl_op_text(op), tl_value_type_str(a).s);

        tl_unref(a);
        return st;
    }
    if (a.tag == TL_V_FLOAT) {
        *out = tl_float_value(op == TL_OP_NEG ? -a.f : a.f);
        return TL_OK;
    }
    int64_t i = a.tag == TL_V_BOOL ? a.b : a.i;

    if (op == TL_OP_NEG && i == INT64_MIN) {
        return overflow(ev, TL_OP_SUB, 0, i);
    }
    *out = tl_int_value(op == TL_OP_NEG ? -i : i);
    return TL_OK;
}

/* ---- truth ------------------------------------------------------------- */

static tl_status tensor_truth(tl_eval *ev, tl_value v, bool *known, bool *out)
{
    tl_ttype type;
    tl_value r = tl_empty();

    TL_TRY(tl_eval_type(ev, v, &type));
    for (int i = 0; i < type.shape.rank; i++) {
        tl_dim d = type.shape.dim[i];

        if (tl_dim_is_num(d) && tl_dim_value(d) != 1) {
            tl_status st = tl_fail(ev->diag, TL_E0208,
                                   "a condition needs one element, got %s",
                                   tl_ttype_str(&type).s);

            tl_diag_help(ev->diag, "`.any()` or `.all()`");
            return st;
        }
    }
    if (!ev->domain->has_data) {
        *known = false;
        return TL_OK;
    }
    TL_TRY(tl_eval_read(ev, v, &r));
    return tl_eval_truth(ev, r, known, out);
}

tl_status tl_eval_truth(tl_eval *ev, tl_value v, bool *known, bool *out)
{
    int64_t n;

    *known = true;
    *out = true;
    if (tl_is_sym(v)) {
        tl_value now = tl_ref(v);

        if (tl_sym_is_late(ev, v)) {
            *known = false;
            tl_unref(now);
            return TL_OK;
        }
        tl_status st = tl_sym_read(ev, &now);

        if (st == TL_OK) {
            st = tl_eval_truth(ev, now, known, out);
        }
        tl_unref(now);
        return st;
    }
    switch (v.tag) {
    case TL_V_NONE:
        *out = false;
        return TL_OK;
    case TL_V_BOOL:
        *out = v.b;
        return TL_OK;
    case TL_V_INT:
        *out = v.i != 0;
        return TL_OK;
    case TL_V_FLOAT:
        if (isnan(v.f)) {
            return tl_fail(ev->diag, TL_E0209, "the condition is NaN");
        }
        *out = v.f != 0;
        return TL_OK;
    case TL_V_UNKNOWN:
        *known = false;
        *out = false;
        return TL_OK;
    case TL_V_TENSOR:
    case TL_V_NODE:
        return tensor_truth(ev, v, known, out);
    case TL_V_MODULE:
        return TL_OK;
    default:
        n = tl_container_len(v);
        *out = n != 0; /* other values are true */
        return TL_OK;
    }
}

/* ---- tensors in any domain --------------------------------------------- */

tl_status tl_eval_type(tl_eval *ev, tl_value t, tl_ttype *out)
{
    if (t.tag == TL_V_TENSOR) {
        tl_tensor_shown_type(t.tensor, out);
        return TL_OK;
    }
    if (t.tag == TL_V_NODE) {
        *out = t.node->type;
        return TL_OK;
    }
    return tl_fail(ev->diag, TL_E0210, "a tensor is needed here, got %s",
                   tl_value_type_str(t).s);
}

static tl_dtype dtype_of(tl_value t)
{
    return t.tag == TL_V_TENSOR ? tl_tensor_shown(t.tensor)
                                : t.node->type.dtype;
}

static tl_kind number_kind(tl_value v)
{
    tl_tag tag = tl_number_tag(v);

    return tag == TL_V_BOOL  ? TL_KIND_BOOL
           : tag == TL_V_INT ? TL_KIND_INT
                               : TL_KIND_FLOAT;
}

/* Does a finite number become infinite in `dtype`? */
static bool becomes_inf(double v, tl_dtype dtype)
{
    float f = (float)v;

    if (!isfinite(v) || !tl_dtype_is_float(dtype) || dtype == TL_f64) {
        return false;
    }
    return isinf(f) ||
           (dtype == TL_f16 && isinf(tl_f16_to_f32(tl_f32_to_f16(f)))) ||
           (dtype == TL_bf16 && isinf(tl_bf16_to_f32(tl_f32_to_bf16(f))));
}

void tl_eval_warn_inf(tl_eval *ev, double v, tl_dtype dtype)
{
    if (becomes_inf(v, dtype)) {
        tl_warn(ev->diag, TL_W0318, ev->rt->span, "%g rounds to %sinf in %s",
                v, v < 0 ? "-" : "", tl_dtype_name(dtype));
    }
}

/* A host number as a scalar tensor. */
static tl_status number_tensor(tl_eval *ev, tl_value v, tl_dtype dtype,
                               tl_value *out)
{
    tl_tensor *t = NULL;

    if (tl_is_sym(v)) {
        TL_TRY(tl_sym_tensor(ev, v, dtype, out));
        tl_unref(v);
        return TL_OK;
    }
    tl_eval_warn_inf(ev, tl_number_f(v), dtype);
    if (v.tag == TL_V_FLOAT || tl_dtype_is_float(dtype)) {
        TL_TRY(tl_tensor_scalar_f(&t, ev->rt->pool, dtype, tl_number_f(v),
                                  ev->diag));
    } else {
        TL_TRY(tl_tensor_scalar_i(&t, ev->rt->pool, dtype,
                                  v.tag == TL_V_BOOL ? v.b : v.i, ev->diag));
    }
    *out = tl_tensor_value_take(t);
    return TL_OK;
}

tl_status tl_eval_scalar(tl_eval *ev, tl_value v, tl_dtype dtype,
                         tl_value *out)
{
    return number_tensor(ev, v, dtype, out);
}

/* Host numbers among the inputs become scalars of the dtype to which the
 * tensors join. */
static tl_status weak_inputs(tl_eval *ev, tl_value *in, int nin)
{
    bool any = false;
    tl_dtype joined = TL_bool;

    for (int i = 0; i < nin; i++) {
        if (tl_is_tensor(in[i])) {
            joined = any ? tl_dtype_join(joined, dtype_of(in[i]))
                         : dtype_of(in[i]);
            any = true;
        }
    }
    for (int i = 0; i < nin; i++) {
        if (!tl_is_any_number(in[i])) {
            continue;
        }
        tl_kind kind = number_kind(in[i]);
        tl_dtype d = any ? tl_dtype_join_weak(joined, kind)
                     : kind == TL_KIND_BOOL ? TL_bool
                     : kind == TL_KIND_INT  ? TL_i64
                                            : TL_f32;

        TL_TRY(number_tensor(ev, in[i], d, &in[i]));
    }
    return TL_OK;
}

tl_status tl_eval_op(tl_eval *ev, tl_op op, tl_value *in, int nin,
                     const tl_attrs *at, tl_value *out)
{
    tl_status st = TL_OK;
    uint64_t numbers = 0;

    for (int i = 0; i < nin; i++) {
        if (tl_is_any_number(in[i])) {
            numbers |= i < 64 ? UINT64_C(1) << i : 0;
        }
    }
    if (numbers != 0) {
        st = weak_inputs(ev, in, nin);
    }
    for (int i = 0; i < nin && st == TL_OK; i++) {
        if (in[i].tag == TL_V_UNKNOWN) {
            int nout = tl_op_get(op)->nout;

            tl_unref_all(in, (size_t)nin);
            for (int k = 0; k < nout; k++) {
                out[k] = tl_unknown();
            }
            return TL_OK;
        }
        if (!tl_is_tensor(in[i])) {
            st = tl_fail(ev->diag, TL_E0210,
                         "`%s` needs a tensor here, got %s",
                         tl_op_get(op)->name, tl_value_type_str(in[i]).s);
        }
    }
    if (st == TL_OK && tl_may_be_lowered(ev)) {
        st = tl_autocast_apply(ev, op, in, nin, numbers, at, out);
    } else if (st == TL_OK) {
        st = ev->domain->apply(ev, op, in, nin, at, out);
    } else {
        tl_unref_all(in, (size_t)nin);
    }
    for (int i = 0; i < nin && st != TL_OK; i++) {
        in[i] = tl_empty(); /* eaten; `in` may be what the caller releases */
    }
    return st;
}

tl_infer *tl_eval_infer(tl_eval *ev)
{
    return ev->domain->infer(ev);
}

tl_status tl_eval_read(tl_eval *ev, tl_value t, tl_value *out)
{
    tl_ttype type;

    TL_TRY(tl_eval_type(ev, t, &type));
    for (int i = 0; i < type.shape.rank; i++) {
        tl_dim d = type.shape.dim[i];

        if (tl_dim_is_num(d) && tl_dim_value(d) != 1) {
            return tl_fail(ev->diag, TL_E0320,
                           "a tensor of one element is needed, got %s",
                           tl_ttype_str(&type).s);
        }
    }
    return ev->domain->read(ev, t, out);
}
