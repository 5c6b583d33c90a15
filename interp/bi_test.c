/* bi_test.c - what `test` blocks use: close, raises, gradcheck; typeof, and
 * exact, the text of bits. */
#include <math.h>
#include <string.h>

#include "interp/bi_tensor.h"
#include "interp/builtin_fns.h"
#include "interp/container.h"
#include "interp/dict.h"
#include "interp/domain.h"
#include "interp/format.h"
#include "interp/record.h"
#include "interp/tree.h"
#include "runtime/autograd/gradcheck.h"
#include "runtime/base/mem.h"

/* ---- close ------------------------------------------------------------- */

static bool near(double a, double b, double rtol, double atol)
{
    if (isnan(a) || isnan(b) || isinf(a) || isinf(b)) {
        return a == b || (isnan(a) && isnan(b));
    }
    return fabs(a - b) <= atol + rtol * fabs(b);
}

/* Element `i` of a tensor, or the number itself. */
static double element(tl_value v, int64_t i)
{
    return v.tag == TL_V_TENSOR ? tl_tensor_get_f(v.tensor, i)
                                : tl_number_f(v);
}

static bool same_sizes(tl_value a, tl_value b)
{
    if (a.tag != TL_V_TENSOR || b.tag != TL_V_TENSOR) {
        tl_value t = a.tag == TL_V_TENSOR ? a : b;

        return t.tag != TL_V_TENSOR || t.tensor->rank == 0;
    }
    if (a.tensor->rank != b.tensor->rank) {
        return false;
    }
    for (int i = 0; i < a.tensor->rank; i++) {
        if (a.tensor->size[i] != b.tensor->size[i]) {
            return false;
        }
    }
    return true;
}

static bool is_numeric(tl_value v)
{
    return v.tag == TL_V_TENSOR || tl_is_number(v);
}

static tl_status close_values(tl_eval *ev, tl_value a, tl_value b,
                              double rtol, double atol, bool *out)
{
    TL_TRY(tl_check_stack(ev, ev->rt->span));
    *out = false;
    if (is_numeric(a) && is_numeric(b)) {
        int64_t n = a.tag == TL_V_TENSOR   ? a.tensor->numel
                    : b.tag == TL_V_TENSOR ? b.tensor->numel
                                           : 1;

        *out = same_sizes(a, b);
        for (int64_t i = 0; *out && i < n; i++) {
            *out = near(element(a, i), element(b, i), rtol, atol);
        }
        return TL_OK;
    }
    if (a.tag == TL_V_TREE && b.tag == TL_V_TREE) {
        *out = tl_tree_shape_same(a.tree->shape, b.tree->shape);
        for (size_t i = 0; *out && i < a.tree->shape->len; i++) {
            TL_TRY(close_values(ev, a.tree->items[i], b.tree->items[i], rtol,
                                atol, out));
        }
        return TL_OK;
    }
    if ((a.tag == TL_V_LIST || a.tag == TL_V_TUPLE) && b.tag == a.tag) {
        *out = a.seq->len == b.seq->len;
        for (size_t i = 0; *out && i < a.seq->len; i++) {
            TL_TRY(close_values(ev, a.seq->items[i], b.seq->items[i], rtol,
                                atol, out));
        }
        return TL_OK;
    }
    return tl_fail(ev->diag, TL_E0210,
                   "`close` compares numbers, tensors, trees and lists of "
                   "them, got %s and %s",
                   tl_value_type_str(a).s, tl_value_type_str(b).s);
}

tl_status tl_bi_close(tl_eval *ev, const tl_builtin *self, tl_value *args,
                      tl_value *out)
{
    bool same = false;

    (void)self;
    if (!ev->domain->has_data) {
        *out = tl_unknown();
        return TL_OK;
    }
    TL_TRY(close_values(ev, args[0], args[1], args[2].f, args[3].f, &same));
    *out = tl_bool_value(same);
    return TL_OK;
}

/* ---- raises ------------------------------------------------------------ */

tl_status tl_bi_raises(tl_eval *ev, const tl_builtin *self, tl_value *args,
                       tl_value *out)
{
    tl_value r = tl_empty(), e = tl_empty();

    (void)self;
    if (!ev->domain->has_data) {
        *out = tl_unknown();
        return TL_OK;
    }
    tl_status st = tl_eval_call_values(ev, args[0], NULL, 0, &r);

    tl_unref(r);
    if (st == TL_OK) {
        *out = tl_bool_value(false);
        return TL_OK;
    }
    if (!tl_status_catchable(st)) {
        return st;
    }
    TL_TRY(tl_error_take(ev, &e));
    bool yes = args[1].tag != TL_V_STR ||
               strstr(e.error->message->data, args[1].str->data) != NULL ||
               strcmp(tl_code_name(e.error->code), args[1].str->data) == 0;

    tl_unref(e);
    *out = tl_bool_value(yes);
    return TL_OK;
}

/* ---- gradcheck --------------------------------------------------------- */

/* f(xs) with the cells of a module as further inputs. */
typedef struct checked {
    tl_eval *ev;
    tl_value f;
    const tl_value *xs;
    size_t nxs;
    tl_tree_shape *cells; /* or NULL */
} checked;

static tl_status call_checked(void *arg, tl_rt *rt, tl_tensor *const *in,
                              int n, tl_tensor **out)
{
    checked *c = arg;
    tl_value xs[TL_INLINE_ARGS], r = tl_empty();
    uint64_t draws = rt->draws;
    int k = 0;

    for (size_t i = 0; i < c->nxs; i++) {
        xs[i] = c->xs[i];
        if (xs[i].tag == TL_V_TENSOR) {
            xs[i].tensor = in[k++]; /* borrowed */
        }
    }
    for (; k < n; k++) {
        size_t cell = (size_t)k - ((size_t)n - c->cells->len);

        tl_cell_store_take(c->ev, c->cells->cells[cell],
                           tl_tensor_value_take(tl_tensor_ref(in[k])));
    }
    tl_status st = tl_eval_call_values(c->ev, c->f, xs, c->nxs, &r);

    rt->draws = draws; /* the same draws at each call */
    if (st == TL_OK && (r.tag != TL_V_TENSOR ||
                        !tl_dtype_is_float(r.tensor->dtype))) {
        st = tl_fail(rt->diag, TL_E0501,
                     "gradcheck needs a function that gives one float "
                     "tensor, got %s",
                     tl_value_type_str(r).s);
        tl_unref(r);
    }
    if (st == TL_OK) {
        *out = r.tensor;
    }
    return st;
}

/* The parameters of a module as f64, in the module's own (copied) cells. */
static tl_status f64_cells(tl_eval *ev, checked *c, tl_tensor **in, int *n)
{
    TL_TRY(tl_tree_shape_of(ev, c->f, &c->cells));
    if (*n + (int)c->cells->len > 256) {
        return tl_fail(ev->diag, TL_E0416,
                       "gradcheck takes at most 256 tensors");
    }
    for (size_t i = 0; i < c->cells->len; i++) {
        tl_cell *cell = c->cells->cells[i];
        tl_value v = tl_empty();
        tl_attrs at;

        TL_TRY(tl_cell_value(ev, cell, &v));
        tl_attrs_init(&at);
        at.dtype = TL_f64;
        TL_TRY(tl_eval_op(ev, TL_OP_cast, &v, 1, &at, &v));
        if (cell->dtype == TL_f32) {
            cell->dtype = TL_f64;
        }
        in[(*n)++] = v.tensor;
    }
    return TL_OK;
}

static tl_status run_gradcheck(tl_eval *ev, checked *c,
                               const tl_gradcheck_options *opt, bool *ok)
{
    tl_tensor *in[256];
    tl_gradcheck_result res = {0};
    int n = 0;
    tl_status st = TL_OK;
    bool old = ev->f32_as_f64;

    for (size_t i = 0; i < c->nxs; i++) {
        if (c->xs[i].tag == TL_V_TENSOR) {
            in[n++] = tl_tensor_ref(c->xs[i].tensor);
        }
    }
    ev->f32_as_f64 = true;
    ev->no_check++;
    if (c->f.tag == TL_V_MODULE) {
        st = f64_cells(ev, c, in, &n);
    }
    if (st == TL_OK) {
        st = tl_gradcheck(ev->rt, call_checked, c, in, n, opt, &res);
    }
    ev->no_check--;
    ev->f32_as_f64 = old;
    for (int i = 0; i < n; i++) {
        tl_tensor_unref(in[i]);
    }
    tl_tree_shape_unref(c->cells);
    *ok = res.ok;
    if (st == TL_OK && !res.ok) {
        tl_warn(ev->diag, TL_W0519, ev->rt->span,
                "gradient of input %d, element %lld: %.9g by the tape, %.9g "
                "by differences",
                res.input, (long long)res.index, res.analytic, res.numeric);
    }
    return st;
}

tl_status tl_bi_gradcheck(tl_eval *ev, const tl_builtin *self,
                          tl_value *args, tl_value *out)
{
    const tl_seq *xs = args[1].seq;
    tl_gradcheck_options opt = {.rtol = args[2].f};
    checked c = {.ev = ev, .xs = xs->items, .nxs = xs->len};
    bool ok = false;

    (void)self;
    if (!ev->domain->has_data) {
        *out = tl_unknown();
        return TL_OK;
    }
    if (xs->len > TL_INLINE_ARGS) {
        return tl_fail(ev->diag, TL_E0203, "more than %d arguments",
                       TL_INLINE_ARGS);
    }
    c.f = tl_ref(args[0]);
    if (args[0].tag == TL_V_MODULE) {
        tl_unref(c.f);
        TL_TRY(tl_module_copy(ev, args[0], &c.f));
    }
    tl_status st = run_gradcheck(ev, &c, &opt, &ok);

    tl_unref(c.f);
    *out = tl_bool_value(ok);
    return st;
}

tl_status tl_bi_typeof(tl_eval *ev, const tl_builtin *self, tl_value *args,
                       tl_value *out)
{
    tl_shape_text t = tl_value_type_str(args[0]);

    (void)self;
    return tl_str_new(out, t.s, strcspn(t.s, "["), ev->diag);
}

/* ---- exact ------------------------------------------------------------- */

static void exact_float(double f, tl_buf *out)
{
    if (f != f) {
        tl_buf_puts(out, "nan"); /* whatever its sign and payload */
    } else {
        tl_buf_printf(out, "%a", f);
    }
}

static void exact_tensor(const tl_tensor *t, tl_buf *out)
{
    bool real = tl_dtype_is_float(t->dtype);

    tl_buf_printf(out, "%s[", tl_dtype_name(tl_tensor_shown(t)));
    for (int i = 0; i < t->rank; i++) {
        tl_buf_printf(out, i > 0 ? ", %lld" : "%lld", (long long)t->size[i]);
    }
    tl_buf_putc(out, ']');
    for (int64_t i = 0; i < t->numel; i++) {
        tl_buf_putc(out, ' ');
        if (real) {
            exact_float(tl_tensor_get_f(t, i), out);
        } else {
            tl_buf_printf(out, "%lld", (long long)tl_tensor_get_i(t, i));
        }
    }
}

static tl_status exact_value(tl_eval *ev, tl_value v, tl_buf *out);

static tl_status exact_items(tl_eval *ev, const tl_value *items, size_t n,
                             const char *ends, tl_buf *out)
{
    tl_buf_putc(out, ends[0]);
    for (size_t i = 0; i < n; i++) {
        if (i > 0) {
            tl_buf_puts(out, ", ");
        }
        TL_TRY(exact_value(ev, items[i], out));
    }
    tl_buf_putc(out, ends[1]);
    return TL_OK;
}

static tl_status exact_dict(tl_eval *ev, const tl_dict *d, tl_buf *out)
{
    size_t at = 0;

    tl_buf_putc(out, '{');
    for (const tl_dict_entry *e; (e = tl_dict_next(d, &at)) != NULL;) {
        TL_TRY(tl_format_repr(e->key, out, ev->diag));
        tl_buf_puts(out, ": ");
        TL_TRY(exact_value(ev, e->value, out));
        tl_buf_puts(out, ", ");
    }
    tl_buf_putc(out, '}');
    return TL_OK;
}

static tl_status exact_tree(tl_eval *ev, const tl_tree *t, tl_buf *out)
{
    for (size_t i = 0; i < t->shape->len; i++) {
        tl_buf_printf(out, "%s%s: ", i > 0 ? ", " : "<",
                      t->shape->paths[i]->data);
        TL_TRY(exact_value(ev, t->items[i], out));
    }
    if (t->finite.tag != TL_V_EMPTY) {
        tl_buf_puts(out, ", finite: ");
        TL_TRY(exact_value(ev, t->finite, out));
    }
    tl_buf_puts(out, ">");
    return TL_OK;
}

static tl_status exact_value(tl_eval *ev, tl_value v, tl_buf *out)
{
    TL_TRY(tl_check_stack(ev, ev->rt->span));
    switch (v.tag) {
    case TL_V_TENSOR:
        exact_tensor(v.tensor, out);
        return TL_OK;
    case TL_V_FLOAT:
        exact_float(v.f, out);
        return TL_OK;
    case TL_V_LIST:
    case TL_V_TUPLE:
        return exact_items(ev, v.seq->items, v.seq->len,
                           v.tag == TL_V_LIST ? "[]" : "()", out);
    case TL_V_RECORD:
        return exact_items(ev, v.record->fields, tl_record_nfields(v.record),
                           "()", out);
    case TL_V_DICT:
        return exact_dict(ev, v.dict, out);
    case TL_V_TREE:
        return exact_tree(ev, v.tree, out);
    default:
        return tl_format_repr(v, out, ev->diag);
    }
}

tl_status tl_bi_exact(tl_eval *ev, const tl_builtin *self, tl_value *args,
                      tl_value *out)
{
    tl_buf text;

    (void)self;
    if (!ev->domain->has_data) {
        *out = tl_unknown();
        return TL_OK;
    }
    tl_buf_init(&text);
    tl_status st = exact_value(ev, args[0], &text);

    if (st == TL_OK && text.failed) {
        st = tl_fail_memory(ev->diag, "a text", text.len);
    }
    if (st == TL_OK) {
        st = tl_str_new(out, tl_buf_str(&text), text.len, ev->diag);
    }
    tl_buf_fini(&text);
    return st;
}
