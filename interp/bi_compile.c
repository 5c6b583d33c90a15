/* bi_compile.c - explain(f, ...) and interpret(f, ...). */
#include "interp/builtin_fns.h"
#include "interp/compiled.h"
#include "interp/dict.h"
#include "interp/domain.h"
#include "interp/eval_impl.h"
#include "runtime/base/mem.h"

/* The arguments (f, *xs, **kw) of a built-in as those of a call of f. */
typedef struct passed {
    tl_args args;
    tl_value *values; /* owned */
    const tl_sym **names;
} passed;

static void passed_fini(passed *p)
{
    if (p->values != NULL) {
        tl_unref_all(p->values, p->args.npos + p->args.nkw);
    }
    tl_free(p->values);
    tl_free((void *)p->names);
}

static tl_status pass_keywords(tl_eval *ev, const tl_dict *d, passed *p)
{
    size_t at = 0;

    for (tl_dict_entry *e; (e = tl_dict_next(d, &at)) != NULL;) {
        const tl_sym *name = tl_intern_get(ev->lang->names, e->key.str->data,
                                           e->key.str->len);

        if (name == NULL) {
            return tl_fail_memory(ev->diag, "a name", e->key.str->len);
        }
        p->names[p->args.nkw] = name;
        p->args.kw[p->args.nkw++] = tl_ref(e->value);
    }
    return TL_OK;
}

static tl_status pass(tl_eval *ev, const tl_value *args, passed *p)
{
    const tl_seq *xs = args[1].seq;
    size_t nkw = args[2].dict->live;

    *p = (passed){.args = {.span = ev->rt->span}};
    p->values = tl_calloc(xs->len + nkw + 1, sizeof(*p->values));
    p->names = tl_calloc(nkw + 1, sizeof(*p->names));
    if (p->values == NULL || p->names == NULL) {
        return tl_fail_memory(ev->diag, "arguments",
                              (xs->len + nkw) * sizeof(*p->values));
    }
    p->args.pos = p->values;
    p->args.kw = p->values + xs->len;
    p->args.names = p->names;
    for (; p->args.npos < xs->len; p->args.npos++) {
        p->values[p->args.npos] = tl_ref(xs->items[p->args.npos]);
    }
    return pass_keywords(ev, args[2].dict, p);
}

/* The code of the program that calling `f` runs. */
static tl_status code_of(tl_eval *ev, tl_value f, tl_ccall *out)
{
    switch (f.tag) {
    case TL_V_FN:
        *out = (tl_ccall){.fn = f.fn->code, .ns = f.fn->ns,
                          .closure = f.fn, .self = f.fn->self};
        break;
    case TL_V_METHOD:
        if (f.method->code != NULL) {
            *out = (tl_ccall){.fn = f.method->code, .ns = f.method->ns,
                              .self = f.method->self.module};
        }
        break;
    case TL_V_MODULE:
        *out = (tl_ccall){
            .fn = tl_class_method(
                f.module->cls,
                tl_intern_find(ev->lang->names, "forward", 7)),
            .ns = f.module->cls->ns, .self = f.module};
        break;
    default:
        break;
    }
    return out->fn != NULL
               ? TL_OK
               : tl_fail(ev->diag, TL_E0206,
                         "explain needs a function of the program, got %s",
                         tl_value_type_str(f).s);
}

tl_status tl_bi_explain(tl_eval *ev, const tl_builtin *self, tl_value *args,
                        tl_value *out)
{
    tl_ccall call = {.fn = NULL};
    passed p;
    tl_buf text;
    tl_status st;

    (void)self;
    if (!ev->domain->has_data) {
        *out = tl_unknown();
        return TL_OK;
    }
    TL_TRY(code_of(ev, args[0], &call));
    tl_buf_init(&text);
    TL_GOTO(st, pass(ev, args, &p));
    call.args = &p.args;
    TL_GOTO(st, tl_compiled_explain(ev, &call, &text));
    st = tl_str_from_buf(out, &text, ev->diag);
out:
    tl_buf_fini(&text);
    passed_fini(&p);
    return st;
}

tl_status tl_bi_interpret(tl_eval *ev, const tl_builtin *self, tl_value *args,
                          tl_value *out)
{
    tl_compile_what compile = ev->compile;
    passed p;
    tl_status st = pass(ev, args, &p);

    (void)self;
    if (st == TL_OK) {
        ev->compile = TL_COMPILE_OFF;
        st = tl_eval_call(ev, args[0], &p.args, out);
        ev->compile = compile;
    }
    passed_fini(&p);
    return st;
}
