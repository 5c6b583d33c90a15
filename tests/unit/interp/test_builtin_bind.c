/* test_builtin_bind.c - signatures of built-ins and binding to them. */
#include "interp/signature.h"

#include <criterion/criterion.h>
#include <string.h>

#include "interp/builtin.h"
#include "interp/dict.h"

#define MAX_ARGS 8

static tl_diag diag;
static tl_intern names;
static tl_sources sources;
static tl_lang lang;
static tl_eval ev;
static tl_signature *sig;
static tl_value vals[TL_MAX_PARAMS];
static bool unknown;

/* The arguments of the next call. */
static tl_value pos[MAX_ARGS], kw[MAX_ARGS];
static const tl_sym *kw_names[MAX_ARGS];
static tl_args args;

static void setup(void)
{
    tl_diag_init(&diag, NULL);
    tl_intern_init(&names);
    tl_sources_init(&sources);
    lang = (tl_lang){.names = &names, .sources = &sources};
    memset(&ev, 0, sizeof(ev));
    ev.diag = &diag;
    ev.lang = &lang;
    cr_assert_eq(tl_builtins_init(&ev), TL_OK);
    args = (tl_args){.pos = pos, .kw = kw, .names = kw_names};
}

static void release(void)
{
    if (sig != NULL) {
        tl_unref_all(vals, sig->nparams);
    }
    tl_unref_all(pos, args.npos);
    tl_unref_all(kw, args.nkw);
    tl_signature_free(sig);
    sig = NULL;
}

static void teardown(void)
{
    release();
    tl_builtins_fini(&ev);
    cr_assert_eq(tl_obj_live(), 0);
    tl_sources_fini(&sources);
    tl_intern_fini(&names);
    tl_diag_fini(&diag);
}

TestSuite(test_builtin_bind, .init = setup, .fini = teardown);

static tl_value str(const char *s)
{
    tl_value v;

    cr_assert_eq(tl_str_new(&v, s, strlen(s), &diag), TL_OK);
    return v;
}

static const tl_sym *sym(const char *s)
{
    return tl_intern_get(&names, s, strlen(s));
}

static void give(tl_value v)
{
    pos[args.npos++] = v;
}

static void give_named(const char *name, tl_value v)
{
    kw_names[args.nkw] = sym(name);
    kw[args.nkw++] = v;
}

/* Bind what was given; `self` as the object of a method. */
static tl_status bind_to(const char *text, tl_value self)
{
    cr_assert_eq(tl_signature_parse(&sig, &ev, text), TL_OK);
    return tl_signature_bind(&ev, sig, "f", self, &args, vals, &unknown);
}

static void binds(const char *text)
{
    cr_assert_eq(bind_to(text, tl_empty()), TL_OK);
}

static void refuses(const char *text, tl_code code, const char *message)
{
    cr_expect_eq(bind_to(text, tl_empty()), TL_ERR_PROGRAM);
    cr_assert_not_null(diag.last);
    cr_expect_eq(diag.last->code, code);
    cr_expect_str_eq(diag.last->message, message);
}

/* ---- rows -------------------------------------------------------------- */

Test(test_builtin_bind, every_row_has_a_good_signature)
{
    for (size_t i = 0; i < tl_builtin_nrows; i++) {
        const tl_builtin *row = &tl_builtin_rows[i];
        tl_signature *s = NULL;
        tl_value v;

        if (row->signature[0] == '=') {
            cr_assert_eq(tl_builtin_value(&ev, row, &v), TL_OK);
            tl_unref(v);
            continue;
        }
        if (row->signature[0] == '@') { /* a file of the library */
            continue;
        }
        cr_assert_eq(tl_signature_parse(&s, &ev, row->signature), TL_OK);
        cr_expect(row->tag == TL_V_NONE || s->npos > 0,
                  "%s: a method has an object", row->name);
        cr_expect(row->doc[0] != '\0', "%s", row->name);
        tl_signature_free(s);
    }
}

Test(test_builtin_bind, no_row_is_there_twice)
{
    for (size_t i = 0; i < tl_builtin_nrows; i++) {
        const tl_builtin *row = &tl_builtin_rows[i];
        const tl_builtin *found =
            row->tag == TL_V_NONE
                ? tl_builtin_find(&ev, sym(row->name))
                : tl_builtin_method(&ev, row->tag, sym(row->name));

        cr_expect_eq(found, row, "%s", row->name);
    }
}

Test(test_builtin_bind, constants_are_values)
{
    tl_value v;

    cr_assert_eq(tl_builtin_value(&ev, tl_builtin_find(&ev, sym("pi")), &v),
                 TL_OK);
    cr_expect_eq(v.tag, TL_V_FLOAT);
    cr_assert_eq(tl_builtin_value(&ev, tl_builtin_find(&ev, sym("bf16")), &v),
                 TL_OK);
    cr_expect_eq(v.tag, TL_V_DTYPE);
    cr_expect_eq(v.dtype, TL_bf16);
}

Test(test_builtin_bind, members_by_name)
{
    const tl_builtin *json = tl_builtin_find(&ev, sym("json"));
    tl_value v;

    cr_assert_eq(tl_builtin_attr(&ev, json, sym("parse"), &v), TL_OK);
    cr_expect_str_eq(v.builtin->name, "json.parse");
    cr_expect_eq(tl_builtin_attr(&ev, json, sym("prase"), &v),
                 TL_ERR_PROGRAM);
    cr_expect_eq(diag.last->code, TL_E0211);
    cr_expect_str_eq(diag.last->help, "parse");
}

Test(test_builtin_bind, nodes_have_the_methods_of_tensors)
{
    size_t n;

    cr_expect_eq(tl_builtin_names(&ev, TL_V_NODE, &n),
                 tl_builtin_names(&ev, TL_V_TENSOR, &n));
    cr_expect_null(tl_builtin_method(&ev, TL_V_NONE, sym("split")));
    cr_expect_null(tl_builtin_find(&ev, sym("split_into_words")));
}

/* ---- defaults ---------------------------------------------------------- */

Test(test_builtin_bind, defaults_of_every_kind)
{
    binds("a = none, b = true, c = -3, d = 1e-5, e = \"a\\n\\\"b\", f = (), "
          "g = [], h = f32, i = len, j = inf");
    cr_expect_eq(vals[0].tag, TL_V_NONE);
    cr_expect(vals[1].b);
    cr_expect_eq(vals[2].i, -3);
    cr_expect_eq(vals[3].f, 1e-5);
    cr_expect_str_eq(vals[4].str->data, "a\n\"b");
    cr_expect_eq(vals[5].tag, TL_V_TUPLE);
    cr_expect_eq(vals[6].tag, TL_V_LIST);
    cr_expect_eq(vals[7].dtype, TL_f32);
    cr_expect_str_eq(vals[8].builtin->name, "len");
    cr_expect_gt(vals[9].f, 1e308);
}

/* ---- binding ----------------------------------------------------------- */

Test(test_builtin_bind, positional_then_keywords_then_defaults)
{
    give(tl_int_value(1));
    give_named("c", tl_int_value(3));
    binds("a, b = 2, c = 0");
    cr_expect_eq(vals[0].i, 1);
    cr_expect_eq(vals[1].i, 2);
    cr_expect_eq(vals[2].i, 3);
    cr_expect_eq(pos[0].tag, TL_V_EMPTY, "taken");
    cr_expect_not(unknown);
}

Test(test_builtin_bind, star_collects_the_rest)
{
    give(tl_int_value(1));
    give(tl_int_value(2));
    give(str("x"));
    give_named("k", tl_int_value(9));
    binds("a, *xs, k = 0");
    cr_expect_eq(vals[1].tag, TL_V_TUPLE);
    cr_expect_eq(vals[1].seq->len, 2);
    cr_expect_str_eq(vals[1].seq->items[1].str->data, "x");
    cr_expect_eq(vals[2].i, 9);
}

Test(test_builtin_bind, double_star_collects_keywords)
{
    give_named("lr", tl_int_value(1));
    give_named("a", tl_int_value(2));
    binds("a, **kw");
    cr_expect_eq(vals[0].i, 2);
    cr_expect_eq(vals[1].dict->live, 1);
    cr_expect_eq(tl_dict_get_str(vals[1].dict, "lr", 2)->i, 1);
}

Test(test_builtin_bind, int_becomes_float_where_float_is_wanted)
{
    give(tl_int_value(2));
    binds("p: float");
    cr_expect_eq(vals[0].tag, TL_V_FLOAT);
    cr_expect_eq(vals[0].f, 2.0);
}

Test(test_builtin_bind, optional_parameter_takes_none)
{
    give(tl_none());
    binds("axis: int? = 3");
    cr_expect_eq(vals[0].tag, TL_V_NONE);
}

Test(test_builtin_bind, unknown_arguments_are_told)
{
    give(tl_int_value(1));
    give(tl_unknown());
    binds("a: int, b: str");
    cr_expect(unknown);
}

Test(test_builtin_bind, unknown_among_star_arguments_is_told)
{
    give(tl_unknown());
    binds("*parts: str");
    cr_expect(unknown);
}

/* ---- what is refused --------------------------------------------------- */

Test(test_builtin_bind, too_many_arguments)
{
    give(tl_int_value(1));
    give(str("x"));
    refuses("a", TL_E0203, "`f` takes 1 argument, got 2");
    cr_assert_eq(diag.last->nnotes, 1);
    cr_expect_str_eq(diag.last->notes[0], "signature: f(a)");
}

Test(test_builtin_bind, keyword_only_is_not_positional)
{
    give(tl_int_value(1));
    give(tl_int_value(2));
    refuses("a, *, b = 0", TL_E0203,
            "`f` takes 1 positional argument, got 2");
}

Test(test_builtin_bind, missing_argument)
{
    give_named("b", str("x"));
    refuses("a, b", TL_E0204, "`f` misses the argument `a`");
}

Test(test_builtin_bind, unknown_keyword_names_the_nearest)
{
    give(tl_int_value(1));
    give_named("axes", tl_int_value(2));
    refuses("x, axis = 0", TL_E0205, "`f` has no parameter `axes`");
    cr_expect_str_eq(diag.last->help, "axis");
}

Test(test_builtin_bind, argument_given_twice)
{
    give(tl_int_value(1));
    give_named("a", str("x"));
    refuses("a", TL_E0205, "`a` is given twice");
}

Test(test_builtin_bind, star_has_no_keyword)
{
    give_named("xs", tl_int_value(1));
    refuses("*xs", TL_E0205, "`f` has no parameter `xs`");
}

Test(test_builtin_bind, wrong_type)
{
    give(str("x"));
    refuses("axis: int? = none", TL_E0210,
            "`axis` of `f` must be int or none, got str");
}

Test(test_builtin_bind, bool_is_no_int)
{
    give(tl_bool_value(true));
    refuses("n: int", TL_E0210, "`n` of `f` must be int, got bool");
}

Test(test_builtin_bind, items_of_ints_are_checked)
{
    tl_value items[2] = {tl_int_value(1), tl_float_value(2)}, list;

    cr_assert_eq(tl_seq_new_take(&list, TL_V_LIST, items, 2, &diag), TL_OK);
    give(list);
    refuses("shape: ints", TL_E0210,
            "`shape` of `f` must be ints, got float");
}

Test(test_builtin_bind, a_tensor_for_an_int_gets_help)
{
    tl_ttype type = {.dtype = TL_i64};
    tl_value node;

    cr_assert_eq(tl_dnode_new(&node, &type, 0, &diag), TL_OK);
    give(node);
    refuses("n: int", TL_E0210, "`n` of `f` must be int, got i64[]");
    cr_expect_str_eq(diag.last->help, "int(t) reads a tensor of one element");
}

Test(test_builtin_bind, object_of_a_method_is_not_counted)
{
    give(tl_int_value(1));
    give(tl_int_value(2));
    cr_expect_eq(bind_to("s, width: int", str("x")), TL_ERR_PROGRAM);
    cr_expect_str_eq(diag.last->message, "`f` takes 1 argument, got 2");
    cr_expect_str_eq(diag.last->notes[0], "signature: f(width: int)");
}

/* ---- calls ------------------------------------------------------------- */

Test(test_builtin_bind, calling_a_method_of_str)
{
    const tl_builtin *upper = tl_builtin_method(&ev, TL_V_STR, sym("upper"));
    tl_value out;

    cr_assert_eq(tl_builtin_call(&ev, upper, str("ab\xc3\xa9"), &args, &out),
                 TL_OK);
    cr_expect_str_eq(out.str->data, "AB\xc3\x89");
    tl_unref(out);
}

Test(test_builtin_bind, unknown_argument_makes_the_result_unknown)
{
    tl_value out;

    give(tl_unknown());
    cr_assert_eq(tl_builtin_call(&ev, tl_builtin_find(&ev, sym("chr")),
                                 tl_empty(), &args, &out),
                 TL_OK);
    cr_expect_eq(out.tag, TL_V_UNKNOWN);
}

Test(test_builtin_bind, a_group_cannot_be_called)
{
    tl_value out;

    cr_expect_eq(tl_builtin_call(&ev, tl_builtin_find(&ev, sym("json")),
                                 tl_empty(), &args, &out),
                 TL_ERR_PROGRAM);
    cr_expect_eq(diag.last->code, TL_E0206);
}
