/* test_domain.c - the domain interface with a double that records.
 *
 * The graph domain of the compiler will be a table like this one: the same
 * evaluator walks a function, tensors are nodes with a type, operations are
 * written down instead of run. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "interp/domain.h"
#include "interp/session.h"
#include "runtime/base/mem.h"

typedef struct recorder {
    char text[2000]; /* one operation a line: "%3 = add %1 %2" */
    size_t len;
    uint32_t nodes;
} recorder;

static recorder *recorder_of(tl_eval *ev)
{
    return ev->domain_state;
}

static void write_down(recorder *r, const char *word, uint32_t n)
{
    r->len += (size_t)snprintf(r->text + r->len, sizeof(r->text) - r->len,
                               word, n);
}

/* Give the results of an operation their types and numbers. */
static tl_status record(tl_eval *ev, tl_op op, tl_value *in, int nin,
                        const tl_attrs *at, tl_value *out)
{
    recorder *r = recorder_of(ev);
    tl_ttype types[TL_MAX_INPUTS], res[TL_MAX_OUTPUTS];
    tl_value made[TL_MAX_OUTPUTS]; /* `out` may be `in` */
    tl_attrs none;

    tl_attrs_init(&none);
    tl_status st = TL_OK;

    for (int i = 0; i < nin && st == TL_OK; i++) {
        st = tl_eval_type(ev, in[i], &types[i]);
    }
    if (st == TL_OK) {
        st = tl_op_infer(&ev->rt->infer, op, types, nin,
                         at != NULL ? at : &none, res);
    }
    if (st != TL_OK) {
        tl_unref_all(in, (size_t)nin);
        return st;
    }
    for (int i = 0; i < tl_op_get(op)->nout; i++) {
        TL_TRY(tl_dnode_new(&made[i], &res[i], ++r->nodes, ev->diag));
    }
    write_down(r, "%%%u = ", made[0].node->id);
    r->len += (size_t)snprintf(r->text + r->len, sizeof(r->text) - r->len,
                               "%s", tl_op_get(op)->name);
    for (int i = 0; i < nin; i++) {
        if (in[i].tag == TL_V_NODE) {
            write_down(r, " %%%u", in[i].node->id);
        } else {
            write_down(r, " const", 0);
        }
    }
    write_down(r, "\n", 0);
    tl_unref_all(in, (size_t)nin);
    for (int i = 0; i < tl_op_get(op)->nout; i++) {
        out[i] = made[i];
    }
    return TL_OK;
}

static tl_infer *numbers(tl_eval *ev)
{
    return &ev->rt->infer;
}

typedef struct fixture {
    tl_session *s;
    tl_namespace *ns;
    recorder r;
    tl_domain domain;
} fixture;

static void init(fixture *f, const char *text)
{
    tl_value v = tl_none();

    *f = (fixture){.s = tl_calloc(1, sizeof(*f->s))};
    tl_session_init(f->s);
    cr_assert_eq(tl_session_start(f->s), TL_OK);
    cr_assert_eq(tl_namespace_new(&f->ns, &f->s->ev, "t", "t.tl"), TL_OK);
    cr_assert_eq(tl_eval_text(&f->s->ev, f->ns, "t.tl", text, strlen(text),
                              &v, NULL),
                 TL_OK);
    tl_unref(v);
    f->domain = tl_domain_concrete;
    f->domain.name = "recorder";
    f->domain.has_data = false;
    f->domain.apply = record;
    f->domain.infer = numbers;
}

static void fini(fixture *f)
{
    tl_session_fini(f->s);
    tl_free(f->s);
    cr_assert_eq(tl_obj_live(), 0);
}

/* A node that stands for an argument. */
static tl_value argument(fixture *f, int64_t rows, int64_t columns)
{
    tl_ttype type = {.dtype = TL_f32};
    tl_value v = tl_empty();

    type.shape.rank = 2;
    type.shape.dim[0] = tl_dim_num(rows);
    type.shape.dim[1] = tl_dim_num(columns);
    cr_assert_eq(tl_dnode_new(&v, &type, ++f->r.nodes, f->s->ev.diag), TL_OK);
    return v;
}

/* Call the global `name` with nodes in the recording domain. */
static tl_status call(fixture *f, const char *name, tl_value *args, size_t n,
                      tl_value *out)
{
    tl_eval *ev = &f->s->ev;
    const tl_sym *sym = tl_intern_find(&f->s->names, name, strlen(name));
    int64_t slot = tl_globals_find(f->ns->names, sym);

    ev->domain = &f->domain;
    ev->domain_state = &f->r;
    tl_status st =
        tl_eval_call_values(ev, f->ns->slots[slot], args, n, out);

    ev->domain = &tl_domain_concrete;
    ev->domain_state = NULL;
    return st;
}

Test(domain, double_sees_every_operation_in_program_order)
{
    fixture f;
    tl_value args[2], out = tl_empty();

    init(&f, "fn f(x: f32[B, D], w: f32[D, E]) -> f32[B, E]:\n"
             "    y = x @ w\n"
             "    for i in range(2): y = relu(y + i)\n"
             "    return y * 2.0\n"
             "0\n");
    args[0] = argument(&f, 3, 4);
    args[1] = argument(&f, 4, 5);
    cr_assert_eq(call(&f, "f", args, 2, &out), TL_OK);
    cr_expect_str_eq(f.r.text, "%3 = matmul %1 %2\n"
                               "%4 = add %3 const\n"
                               "%5 = relu %4\n"
                               "%6 = add %5 const\n"
                               "%7 = relu %6\n"
                               "%8 = mul %7 const\n");
    cr_assert_eq(out.tag, TL_V_NODE);
    cr_expect_str_eq(tl_ttype_str(&out.node->type).s, "f32[3, 5]");
    tl_unref_all(args, 2);
    tl_unref(out);
    fini(&f);
}

Test(domain, double_gets_shape_errors_before_it_records)
{
    fixture f;
    tl_value args[2], out = tl_empty();

    init(&f, "fn f(x, w) = x @ w\n0\n");
    args[0] = argument(&f, 3, 4);
    args[1] = argument(&f, 3, 4);
    cr_assert_eq(call(&f, "f", args, 2, &out), TL_ERR_PROGRAM);
    cr_expect_eq(f.s->diag.last->code, TL_E0302);
    cr_expect_str_eq(f.r.text, "");
    tl_diag_clear(&f.s->diag);
    tl_unref_all(args, 2);
    fini(&f);
}

Test(domain, patterns_and_losses_are_recorded_as_operations)
{
    fixture f;
    tl_value args[2], out = tl_empty();

    init(&f, "fn f(x, w):\n"
             "    y = einsum(\"b i, o i -> b o\", x, w)\n"
             "    return mse(reduce(y, \"b o -> o\", mean), zeros(5))\n"
             "0\n");
    args[0] = argument(&f, 3, 4);
    args[1] = argument(&f, 5, 4);
    cr_assert_eq(call(&f, "f", args, 2, &out), TL_OK);
    cr_expect_not_null(strstr(f.r.text, "= matmul "));
    cr_expect_not_null(strstr(f.r.text, "= mean "));
    cr_expect_not_null(strstr(f.r.text, "= squared_error "));
    cr_assert_eq(out.tag, TL_V_NODE);
    cr_expect_str_eq(tl_ttype_str(&out.node->type).s, "f32[]");
    tl_unref_all(args, 2);
    tl_unref(out);
    fini(&f);
}
