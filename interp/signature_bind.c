/* signature_bind.c - arguments of a call to parameters of a built-in.
 *
 * The usual call, all positional, is one pass over the parameters; what goes
 * wrong is explained in functions of their own. */
#include "interp/signature.h"

#include <string.h>

#include "interp/builtin.h"
#include "interp/dict.h"
#include "interp/sym.h"
#include "lang/habits.h"

/* ---- messages ---------------------------------------------------------- */

/* Without the object of a method. */
static void note_signature(tl_eval *ev, const tl_signature *sig,
                           const char *name, size_t self)
{
    const char *text = sig->text;

    if (self > 0) {
        const char *comma = strchr(text, ',');

        text = comma == NULL ? "" : comma + 1;
        text += strspn(text, " ");
    }
    tl_diag_note(ev->diag, "signature: %s(%s)", name, text);
}

static tl_status too_many(tl_eval *ev, const tl_signature *sig,
                          const char *name, size_t self, const tl_args *args)
{
    size_t most = sig->npos - self;

    (void)tl_fail_at(ev->diag, TL_E0203, args->span,
                     "`%s` takes %zu%s argument%s, got %zu", name, most,
                     sig->npos < sig->nparams ? " positional" : "",
                     most == 1 ? "" : "s", args->npos);
    note_signature(ev, sig, name, self);
    return TL_ERR_PROGRAM;
}

static tl_status missing(tl_eval *ev, const tl_signature *sig,
                         const char *name, size_t self, const tl_args *args,
                         const tl_param *p)
{
    (void)tl_fail_at(ev->diag, TL_E0204, args->span,
                     "`%s` misses the argument `%s`", name, p->name->text);
    note_signature(ev, sig, name, self);
    return TL_ERR_PROGRAM;
}

static tl_span keyword_span(const tl_args *args, size_t k)
{
    return args->kw_exprs != NULL ? args->kw_exprs[k]->span : args->span;
}

static tl_status unknown_keyword(tl_eval *ev, const tl_signature *sig,
                                 const char *name, size_t self,
                                 const tl_args *args, size_t k)
{
    const char *names[TL_MAX_PARAMS], *near;

    for (size_t i = 0; i < sig->nparams; i++) {
        names[i] = sig->params[i].name->text;
    }
    near =
        tl_nearest(args->names[k]->text, names + self, sig->nparams - self);
    (void)tl_fail_at(ev->diag, TL_E0205, keyword_span(args, k),
                     "`%s` has no parameter `%s`", name,
                     args->names[k]->text);
    if (tl_habit_argument(args->names[k]->text) != NULL) {
        tl_diag_help(ev->diag, "%s", tl_habit_argument(args->names[k]->text));
    } else if (near != NULL) {
        tl_diag_help(ev->diag, "%s", near);
    } else {
        note_signature(ev, sig, name, self);
    }
    return TL_ERR_PROGRAM;
}

/* The place of the argument that parameter `i` got. */
static tl_span arg_span(const tl_signature *sig, size_t self,
                        const tl_args *args, size_t i)
{
    for (size_t k = 0; k < args->nkw; k++) {
        if (args->names[k] == sig->params[i].name) {
            return keyword_span(args, k);
        }
    }
    if (args->exprs != NULL && i >= self && i - self < args->npos) {
        return args->exprs[i - self]->span;
    }
    return args->span;
}

/* The item of a list of ints that is none. */
static tl_value wrong_item(const tl_param *p, tl_value v)
{
    if (p->ints && (v.tag == TL_V_LIST || v.tag == TL_V_TUPLE)) {
        for (size_t i = 0; i < v.seq->len; i++) {
            if (v.seq->items[i].tag != TL_V_INT) {
                return v.seq->items[i];
            }
        }
    }
    return v;
}

static tl_status wrong_type(tl_eval *ev, const tl_signature *sig,
                            const char *name, size_t self,
                            const tl_args *args, size_t i, tl_value v)
{
    const tl_param *p = &sig->params[i];
    bool optional = p->type[p->type_len - 1] == '?';
    tl_value found = wrong_item(p, v);

    (void)tl_fail_at(ev->diag, TL_E0210, arg_span(sig, self, args, i),
                     "`%s` of `%s` must be %.*s%s, got %s", p->name->text,
                     name, (int)(p->type_len - optional), p->type,
                     optional ? " or none" : "", tl_value_type_str(found).s);
    if (tl_is_tensor(found)) {
        if (p->to_float || strstr(p->type, "number") == p->type) {
            tl_diag_help(ev->diag, "float(t) reads a tensor of one element");
        } else if (p->ints || (p->accepts & 1u << TL_V_INT) != 0) {
            tl_diag_help(ev->diag, "int(t) reads a tensor of one element");
        } else if ((p->accepts & 1u << TL_V_BOOL) != 0) {
            tl_diag_help(ev->diag, "bool(t) reads a tensor of one element");
        }
    }
    return TL_ERR_PROGRAM;
}

/* ---- binding ----------------------------------------------------------- */

/* A keyword argument that no parameter has, for **kw. */
static tl_status collect_keyword(tl_eval *ev, tl_args *args, size_t k,
                                 tl_value *rest)
{
    tl_value v = args->kw[k];

    if (tl_dict_get_str(rest->dict, args->names[k]->text,
                        args->names[k]->len) != NULL) {
        return tl_fail_at(ev->diag, TL_E0205, keyword_span(args, k),
                          "`%s` is given twice", args->names[k]->text);
    }
    args->kw[k] = tl_empty();
    return tl_dict_set_str_take(rest->dict, args->names[k]->text,
                                args->names[k]->len, v, ev->diag);
}

static tl_status bind_keywords(tl_eval *ev, const tl_signature *sig,
                               const char *name, size_t self, tl_args *args,
                               tl_value *vals)
{
    for (size_t k = 0; k < args->nkw; k++) {
        size_t i = 0;

        while (i < sig->nparams && sig->params[i].name != args->names[k]) {
            i++;
        }
        if (i == sig->nparams || (int)i == sig->star ||
            (int)i == sig->kwstar) {
            if (sig->kwstar < 0) {
                return unknown_keyword(ev, sig, name, self, args, k);
            }
            TL_TRY(collect_keyword(ev, args, k, &vals[sig->kwstar]));
            continue;
        }
        if (vals[i].tag != TL_V_EMPTY) {
            return tl_fail_at(ev->diag, TL_E0205, keyword_span(args, k),
                              "`%s` is given twice", args->names[k]->text);
        }
        vals[i] = args->kw[k];
        args->kw[k] = tl_empty();
    }
    return TL_OK;
}

/* Positional arguments from number `given` on become the tuple *xs. */
static tl_status bind_star(tl_eval *ev, const tl_signature *sig,
                           tl_args *args, size_t given, tl_value *vals)
{
    size_t n = args->npos - given;
    tl_value *rest = &vals[sig->star];

    TL_TRY(tl_seq_alloc(rest, TL_V_TUPLE, n, ev->diag));
    for (size_t i = 0; i < n; i++) {
        rest->seq->items[i] = args->pos[given + i];
        args->pos[given + i] = tl_empty();
    }
    return TL_OK;
}

static bool is_ints(tl_value v)
{
    if (v.tag != TL_V_LIST && v.tag != TL_V_TUPLE) {
        return true;
    }
    for (size_t i = 0; i < v.seq->len; i++) {
        tl_tag tag = tl_number_tag(v.seq->items[i]);

        if (tag != TL_V_INT && tag != TL_V_UNKNOWN) {
            return false;
        }
    }
    return true;
}

/* Check the items of *xs; conversions are for single values only. */
static bool star_fits(const tl_param *p, tl_value rest, bool *unknown)
{
    for (size_t i = 0; i < rest.seq->len; i++) {
        tl_tag tag = tl_number_tag(rest.seq->items[i]);

        if ((p->accepts >> tag & 1) == 0) {
            return false;
        }
        *unknown |= tag == TL_V_UNKNOWN;
    }
    return true;
}

static bool has_unknown(const tl_dict *d)
{
    const tl_dict_entry *entry;
    size_t i = 0;

    while ((entry = tl_dict_next(d, &i)) != NULL) {
        if (entry->value.tag == TL_V_UNKNOWN) {
            return true;
        }
    }
    return false;
}

/* Convert *v to what the parameter wants; false: it does not fit. */
static tl_status convert(tl_eval *ev, const tl_param *p, tl_value *v,
                         bool *fits)
{
    tl_value old = *v;

    *fits = true;
    if (p->to_float && tl_is_sym(old) && tl_number_tag(old) == TL_V_INT) {
        tl_status st = tl_sym_to_float(ev, old, v);

        if (st == TL_OK) {
            tl_unref(old);
        }
        return st;
    }
    if (p->to_float && old.tag == TL_V_INT) {
        *v = tl_float_value((double)old.i);
        return TL_OK;
    }
    if (p->to_tensor && (tl_is_number(old) || old.tag == TL_V_LIST ||
                         old.tag == TL_V_TUPLE)) {
        *v = tl_empty();
        return tl_eval_as_tensor_take(ev, old, v);
    }
    *fits = old.tag == TL_V_BUILTIN && p->accepts >> TL_V_DTYPE & 1 &&
            strcmp(old.builtin->name, "bool") == 0;
    if (*fits) { /* the name is the function and the dtype */
        *v = tl_dtype_value(TL_bool);
    }
    return TL_OK;
}

/* Defaults, types and conversions. */
static tl_status complete(tl_eval *ev, const tl_signature *sig,
                          const char *name, size_t self, const tl_args *args,
                          tl_value *vals, bool *unknown)
{
    for (size_t i = 0; i < sig->nparams; i++) {
        const tl_param *p = &sig->params[i];
        bool fits = true;

        if ((int)i == sig->kwstar) {
            *unknown |= has_unknown(vals[i].dict);
        } else if ((int)i == sig->star) {
            fits = star_fits(p, vals[i], unknown);
        } else if (vals[i].tag == TL_V_EMPTY) {
            if (p->required) {
                return missing(ev, sig, name, self, args, p);
            }
            vals[i] = tl_ref(p->fallback);
        } else if ((p->accepts >> tl_number_tag(vals[i]) & 1) == 0) {
            TL_TRY(convert(ev, p, &vals[i], &fits));
        } else if (p->ints) {
            fits = is_ints(vals[i]);
        }
        if (!fits) {
            return wrong_type(ev, sig, name, self, args, i, vals[i]);
        }
        *unknown |= vals[i].tag == TL_V_UNKNOWN;
    }
    return TL_OK;
}

tl_status tl_signature_bind(tl_eval *ev, const tl_signature *sig,
                            const char *name, tl_value self, tl_args *args,
                            tl_value *vals, bool *unknown)
{
    size_t nself = self.tag != TL_V_EMPTY, n = nself, given = 0;

    vals[0] = self; /* there is room even without parameters */
    while (given < args->npos && n < sig->npos) {
        vals[n++] = args->pos[given];
        args->pos[given++] = tl_empty();
    }
    for (; n < sig->nparams; n++) {
        vals[n] = tl_empty();
    }
    *unknown = false;
    if (sig->star >= 0) {
        TL_TRY(bind_star(ev, sig, args, given, vals));
    } else if (given < args->npos) {
        return too_many(ev, sig, name, nself, args);
    }
    if (sig->kwstar >= 0) {
        TL_TRY(tl_dict_new(&vals[sig->kwstar], ev->diag));
    }
    if (args->nkw > 0) {
        TL_TRY(bind_keywords(ev, sig, name, nself, args, vals));
    }
    return complete(ev, sig, name, nself, args, vals, unknown);
}
