/* bind.c - arguments to parameters of a function of the program. */
#include <string.h>

#include "interp/call.h"
#include "interp/dict.h"
#include "interp/eval_impl.h"
#include "lang/habits.h"
#include "runtime/base/mem.h"

/* "f(x, axis = 0)" for the notes of call errors. */
static void signature_note(tl_eval *ev, const tl_funcdef *fn)
{
    tl_buf buf;

    tl_buf_init(&buf);
    for (uint32_t i = 0; i < fn->params.len; i++) {
        const tl_ast_param *p = TL_AST(param, fn->params.items[i]);

        tl_buf_printf(&buf, "%s%s%s%s", i > 0 ? ", " : "",
                      p->star == 1   ? "*"
                      : p->star == 2 ? "**"
                                     : "",
                      p->name->text, p->value != NULL ? " = ..." : "");
    }
    tl_diag_note(ev->diag, "signature: %s(%s)",
                 fn->name != NULL ? fn->name->text : "fn",
                 tl_buf_str(&buf));
    tl_buf_fini(&buf);
}

static const char *fn_name(const tl_funcdef *fn)
{
    return fn->name != NULL ? fn->name->text : "this function";
}

static size_t plain_params(const tl_funcdef *fn)
{
    size_t n = 0;

    for (uint32_t i = 0; i < fn->params.len; i++) {
        n += TL_AST(param, fn->params.items[i])->star == 0;
    }
    return n;
}

static tl_status too_many(tl_eval *ev, const tl_funcdef *fn, size_t got,
                          tl_span span)
{
    size_t n = plain_params(fn);
    tl_status st = tl_fail_at(ev->diag, TL_E0203, span,
                              "`%s` takes %zu argument%s, got %zu",
                              fn_name(fn), n, n == 1 ? "" : "s", got);

    signature_note(ev, fn);
    return st;
}

/* Positional arguments in order; the rest goes to *xs. */
static tl_status bind_positional(tl_eval *ev, tl_args *args)
{
    const tl_funcdef *fn = ev->frame->fn;
    tl_value *slots = ev->frame->slots;
    size_t k = 0;

    for (uint32_t i = 0; i < fn->params.len; i++) {
        const tl_ast_param *p = TL_AST(param, fn->params.items[i]);

        if (p->star == 2) {
            break;
        }
        if (p->star == 1) {
            tl_status st =
                tl_seq_new_take(&slots[p->ref.index], TL_V_TUPLE,
                                args->pos + k, args->npos - k, ev->diag);

            for (; k < args->npos; k++) {
                args->pos[k] = tl_empty(); /* the tuple's now */
            }
            return st;
        }
        if (k < args->npos) {
            slots[p->ref.index] = args->pos[k];
            args->pos[k++] = tl_empty();
        }
    }
    return k < args->npos ? too_many(ev, fn, args->npos, args->span) : TL_OK;
}

static tl_status unknown_keyword(tl_eval *ev, const tl_funcdef *fn,
                                 const tl_sym *name, tl_span span)
{
    const char *names[64];
    size_t n = 0;

    for (uint32_t i = 0; i < fn->params.len && n < 64; i++) {
        names[n++] = TL_AST(param, fn->params.items[i])->name->text;
    }
    tl_status st = tl_fail_at(ev->diag, TL_E0205, span,
                              "`%s` has no parameter `%s`", fn_name(fn),
                              name->text);
    const char *near = tl_nearest(name->text, names, n);

    if (tl_habit_argument(name->text) != NULL) {
        tl_diag_help(ev->diag, "%s", tl_habit_argument(name->text));
    } else if (near != NULL) {
        tl_diag_help(ev->diag, "%s", near);
    } else {
        signature_note(ev, fn);
    }
    return st;
}

/* One keyword argument; *slot is where **kw collects, or NULL. */
static tl_status bind_keyword(tl_eval *ev, tl_args *args, size_t k,
                              tl_value *rest)
{
    const tl_funcdef *fn = ev->frame->fn;
    tl_value *slots = ev->frame->slots;
    tl_span span = args->kw_exprs != NULL ? args->kw_exprs[k]->span
                                          : args->span;

    for (uint32_t i = 0; i < fn->params.len; i++) {
        const tl_ast_param *p = TL_AST(param, fn->params.items[i]);

        if (p->name != args->names[k] || p->star != 0) {
            continue;
        }
        if (slots[p->ref.index].tag != TL_V_EMPTY) {
            return tl_fail_at(ev->diag, TL_E0205, span, "`%s` is given twice",
                              p->name->text);
        }
        slots[p->ref.index] = args->kw[k];
        args->kw[k] = tl_empty();
        return TL_OK;
    }
    if (rest == NULL) {
        return unknown_keyword(ev, fn, args->names[k], span);
    }
    tl_value key = tl_empty(), v = args->kw[k];

    TL_TRY(tl_str_new(&key, args->names[k]->text, args->names[k]->len,
                      ev->diag));
    args->kw[k] = tl_empty();
    return tl_dict_set_take(rest->dict, key, v, ev->diag);
}

static tl_status bind_keywords(tl_eval *ev, tl_args *args)
{
    const tl_funcdef *fn = ev->frame->fn;
    tl_value *rest = NULL;

    for (uint32_t i = 0; i < fn->params.len; i++) {
        const tl_ast_param *p = TL_AST(param, fn->params.items[i]);

        if (p->star == 2) {
            rest = &ev->frame->slots[p->ref.index];
            TL_TRY(tl_dict_new(rest, ev->diag));
        }
    }
    for (size_t k = 0; k < args->nkw; k++) {
        TL_TRY(bind_keyword(ev, args, k, rest));
    }
    return TL_OK;
}

static tl_status bind_defaults(tl_eval *ev, const tl_args *args)
{
    const tl_funcdef *fn = ev->frame->fn;
    tl_value *slots = ev->frame->slots;

    for (uint32_t i = 0; i < fn->params.len; i++) {
        const tl_ast_param *p = TL_AST(param, fn->params.items[i]);

        if (slots[p->ref.index].tag != TL_V_EMPTY) {
            continue;
        }
        if (p->star == 1) {
            TL_TRY(tl_seq_new_take(&slots[p->ref.index], TL_V_TUPLE, NULL, 0,
                                   ev->diag));
        } else if (p->value != NULL) {
            tl_value v = tl_empty();

            TL_TRY(tl_eval_expr(ev, p->value, &v));
            slots[p->ref.index] = v;
        } else {
            tl_status st = tl_fail_at(ev->diag, TL_E0204, args->span,
                                      "`%s` misses the argument `%s`",
                                      fn_name(fn), p->name->text);

            signature_note(ev, fn);
            return st;
        }
    }
    return TL_OK;
}

/* Place of the argument that parameter `i` got, for carets. */
static tl_span arg_span(const tl_funcdef *fn, const tl_args *args, uint32_t i)
{
    const tl_ast_param *p = TL_AST(param, fn->params.items[i]);

    for (size_t k = 0; k < args->nkw; k++) {
        if (args->names[k] == p->name && args->kw_exprs != NULL) {
            return args->kw_exprs[k]->span;
        }
    }
    if (args->exprs != NULL && i < args->npos) {
        return args->exprs[i]->span;
    }
    return args->span;
}

enum { NAME = 60 }; /* letters of a name in messages */

/* `name`, for messages.  Not by printf: every call with types comes by. */
static void quote(char out[NAME + 3], const char *name)
{
    size_t n = strnlen(name, NAME);

    out[0] = '`';
    memcpy(out + 1, name, n);
    memcpy(out + 1 + n, "`", 2);
}

static tl_status check_params(tl_eval *ev, const tl_args *args,
                              unsigned steps)
{
    const tl_funcdef *fn = ev->frame->fn;

    for (uint32_t i = 0; i < fn->params.len; i++) {
        const tl_ast_param *p = TL_AST(param, fn->params.items[i]);
        char what[NAME + 3];

        if (p->type == NULL || p->star != 0) {
            continue;
        }
        quote(what, p->name->text);
        TL_TRY(tl_check_type_step(ev, p->type,
                                  &ev->frame->slots[p->ref.index], what,
                                  arg_span(fn, args, i), steps));
    }
    return TL_OK;
}

static tl_status check_where(tl_eval *ev, const tl_funcdef *fn,
                             const tl_args *args)
{
    for (uint32_t i = 0; i < fn->where.len; i++) {
        tl_value c = tl_empty();
        bool known, yes;

        TL_TRY(tl_eval_expr(ev, fn->where.items[i], &c));
        tl_status st = tl_eval_truth(ev, c, &known, &yes);

        tl_unref(c);
        TL_TRY(st);
        if (known && !yes) {
            st = tl_fail_at(ev->diag, TL_E0312, args->span,
                            "the condition of `%s` does not hold",
                            fn_name(fn));
            tl_diag_label_add(ev->diag, fn->where.items[i]->span,
                              "required here");
            return st;
        }
    }
    return TL_OK;
}

/* Does any annotation compute a size from names? Then a second step is
 * needed once all names are bound; it costs nothing to do it always, but
 * calls are frequent. */
static bool has_types(const tl_funcdef *fn)
{
    for (uint32_t i = 0; i < fn->params.len; i++) {
        if (TL_AST(param, fn->params.items[i])->type != NULL) {
            return true;
        }
    }
    return false;
}

tl_status tl_bind_args(tl_eval *ev, tl_args *args)
{
    const tl_funcdef *fn = ev->frame->fn;

    TL_TRY(bind_positional(ev, args));
    TL_TRY(bind_keywords(ev, args));
    TL_TRY(bind_defaults(ev, args));
    if (has_types(fn)) {
        TL_TRY(check_params(ev, args, TL_CHECK_BIND));
        TL_TRY(check_params(ev, args, TL_CHECK_SIZES));
    }
    return check_where(ev, fn, args);
}
