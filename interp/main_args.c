/* main_args.c - the call of @main: its parameters are the program's flags.
 *
 * --name=value, --name value, --flag and --no-flag; `-` and `_` in names are
 * the same.  A value is read by the parameter's annotation, else by the type
 * of its default. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "interp/eval_impl.h"
#include "interp/shape.h"
#include "runtime/base/mem.h"

/* Does the flag's text (n bytes) name the parameter? */
static bool flag_is(const char *flag, size_t n, const char *name)
{
    if (strlen(name) != n) {
        return false;
    }
    for (size_t i = 0; i < n; i++) {
        if (flag[i] != name[i] && !(flag[i] == '-' && name[i] == '_')) {
            return false;
        }
    }
    return true;
}

static const tl_ast_param *find_param(const tl_funcdef *fn, const char *flag,
                                      size_t n)
{
    for (uint32_t i = 0; i < fn->params.len; i++) {
        const tl_ast_param *p = TL_AST(param, fn->params.items[i]);

        if (flag_is(flag, n, p->name->text)) {
            return p;
        }
    }
    return NULL;
}

/* "int", "float", "bool" or "str": of the annotation, else of the default. */
static const char *param_type(const tl_ast_param *p)
{
    const tl_ast *t = p->type;

    if (t != NULL && t->kind == TL_AST_TYPE_OPT) {
        t = TL_AST(type_opt, t)->type;
    }
    if (t != NULL && t->kind == TL_AST_TYPE_NAME &&
        TL_AST(type_name, t)->name->kind == TL_AST_NAME) {
        return TL_AST(name, TL_AST(type_name, t)->name)->name->text;
    }
    switch (p->value != NULL ? (tl_ast_kind)p->value->kind : TL_AST_STR) {
    case TL_AST_INT:
        return "int";
    case TL_AST_FLOAT:
        return "float";
    case TL_AST_BOOL:
        return "bool";
    default:
        return "str";
    }
}

static tl_status bad_value(tl_eval *ev, const tl_ast_param *p,
                           const char *type, const char *text)
{
    return tl_fail(ev->diag, TL_E0720, "--%s needs %s %s, got \"%s\"",
                   p->name->text, type[0] == 'i' ? "an" : "a", type, text);
}

static tl_status convert(tl_eval *ev, const tl_ast_param *p,
                         const char *text, tl_value *out)
{
    const char *type = param_type(p);
    char *end = NULL;

    errno = 0;
    if (strcmp(type, "int") == 0) {
        long long v = strtoll(text, &end, 10);

        if (*text == '\0' || *end != '\0' || errno != 0) {
            return bad_value(ev, p, type, text);
        }
        *out = tl_int_value(v);
        return TL_OK;
    }
    if (strcmp(type, "float") == 0) {
        double v = strtod(text, &end);

        if (*text == '\0' || *end != '\0') {
            return bad_value(ev, p, type, text);
        }
        *out = tl_float_value(v);
        return TL_OK;
    }
    if (strcmp(type, "bool") == 0) {
        bool yes = strcmp(text, "true") == 0 || strcmp(text, "1") == 0;

        if (!yes && strcmp(text, "false") != 0 && strcmp(text, "0") != 0) {
            return bad_value(ev, p, "bool (true or false)", text);
        }
        *out = tl_bool_value(yes);
        return TL_OK;
    }
    return tl_str_new(out, text, strlen(text), ev->diag);
}

static tl_status unknown_flag(tl_eval *ev, const tl_funcdef *fn,
                              const char *flag)
{
    const char *names[64];
    size_t n = 0;

    for (uint32_t i = 0; i < fn->params.len && n < 64; i++) {
        names[n++] = TL_AST(param, fn->params.items[i])->name->text;
    }
    tl_status st = tl_fail(ev->diag, TL_E0720, "the program has no flag %s",
                           flag);
    char word[64];

    snprintf(word, sizeof(word), "%.*s", (int)strcspn(flag, "="), flag);
    const char *near = word[0] == '-' && word[1] == '-'
                           ? tl_nearest(word + 2, names, n)
                           : NULL;

    if (near != NULL) {
        tl_diag_help(ev->diag, "--%s", near);
    } else if (n == 0) {
        tl_diag_help(ev->diag, "flags are the parameters of `@main`, which "
                               "has none");
    } else {
        tl_buf all;

        tl_buf_init(&all);
        for (size_t i = 0; i < n; i++) {
            tl_buf_printf(&all, "%s--%s", i > 0 ? ", " : "", names[i]);
        }
        tl_diag_help(ev->diag, "%s", tl_buf_str(&all));
        tl_buf_fini(&all);
    }
    return st;
}

/* One flag; *used is how many words it took. */
static tl_status one_flag(tl_eval *ev, const tl_funcdef *fn,
                          const char **argv, int argc, int *used,
                          const tl_ast_param **param, tl_value *out)
{
    const char *flag = argv[0];
    const char *eq = strchr(flag, '=');
    size_t n;

    *used = 1;
    if (strncmp(flag, "--", 2) != 0) {
        return unknown_flag(ev, fn, flag);
    }
    n = eq != NULL ? (size_t)(eq - flag) - 2 : strlen(flag) - 2;
    const tl_ast_param *p = *param = find_param(fn, flag + 2, n);

    if (p != NULL && eq != NULL) {
        return convert(ev, p, eq + 1, out);
    }
    if (p != NULL && strcmp(param_type(p), "bool") == 0) {
        *out = tl_bool_value(true);
        return TL_OK;
    }
    if (p != NULL) {
        if (argc < 2) {
            return tl_fail(ev->diag, TL_E0720, "%s needs a value", flag);
        }
        *used = 2;
        return convert(ev, p, argv[1], out);
    }
    if (eq == NULL && strncmp(flag, "--no-", 5) == 0) {
        p = *param = find_param(fn, flag + 5, n - 3);
        if (p != NULL && strcmp(param_type(p), "bool") == 0) {
            *out = tl_bool_value(false);
            return TL_OK;
        }
    }
    return unknown_flag(ev, fn, flag);
}

static bool is_given(const tl_args *args, const tl_sym *name)
{
    for (size_t i = 0; i < args->nkw; i++) {
        if (args->names[i] == name) {
            return true;
        }
    }
    return false;
}

/* A parameter without default is a flag that must be given. */
static tl_status check_given(tl_eval *ev, const tl_funcdef *fn,
                             const tl_args *args)
{
    for (uint32_t i = 0; i < fn->params.len; i++) {
        const tl_ast_param *p = TL_AST(param, fn->params.items[i]);

        if (p->value == NULL && p->star == 0 &&
            !is_given(args, p->name)) {
            return tl_fail(ev->diag, TL_E0720, "the program needs --%s",
                           p->name->text);
        }
    }
    return TL_OK;
}

/* The flags of the command line as arguments of @main; each belongs to the
 * caller, on failure too. */
static tl_status read_flags(tl_eval *ev, const tl_funcdef *fn, tl_args *args,
                            const tl_sym **names)
{
    int argc = ev->options != NULL ? ev->options->nmain_args : 0;
    const char **argv = argc > 0 ? ev->options->main_args : NULL;

    for (int i = 0, used; i < argc; i += used) {
        const tl_ast_param *p = NULL;

        TL_TRY(one_flag(ev, fn, argv + i, argc - i, &used, &p,
                        &args->kw[args->nkw]));
        if (is_given(args, p->name)) {
            tl_drop(&args->kw[args->nkw]);
            return tl_fail(ev->diag, TL_E0720, "--%s is given twice",
                           p->name->text);
        }
        names[args->nkw++] = p->name;
    }
    return check_given(ev, fn, args);
}

/* Read the flags; with `call`, call @main with them. */
static tl_status with_flags(tl_eval *ev, tl_namespace *ns,
                            const tl_funcdef *fn, bool call)
{
    int argc = ev->options != NULL ? ev->options->nmain_args : 0;
    size_t most = argc > 0 ? (size_t)argc : 1;
    tl_value *kw = tl_calloc(most, sizeof(*kw)), r = tl_empty();
    const tl_sym **names = tl_calloc(most, sizeof(*names));
    tl_args args = {.names = names, .kw = kw, .span = fn->node->span};
    tl_status st;

    if (kw == NULL || names == NULL) {
        st = tl_fail_memory(ev->diag, "flags", most * sizeof(*kw));
    } else {
        st = read_flags(ev, fn, &args, names);
    }
    if (st == TL_OK && call) {
        st = tl_call_code(ev, fn, ns, NULL, NULL, &args, &r);
    }
    tl_unref(r);
    if (kw != NULL) {
        tl_unref_all(kw, args.nkw);
    }
    tl_free(kw);
    tl_free(names);
    return st;
}

tl_status tl_eval_check_flags(tl_eval *ev, const tl_unit *unit)
{
    const tl_eval_options *o = ev->options;

    if (o == NULL || o->check_only || o->run_tests) {
        return TL_OK;
    }
    if (unit->main != NULL) {
        return with_flags(ev, NULL, unit->main->func, false);
    }
    return o->nmain_args == 0
               ? TL_OK
               : tl_fail(ev->diag, TL_E0720,
                         "the program has no @main, so it takes no arguments "
                         "(got %s)", o->main_args[0]);
}

tl_status tl_eval_main(tl_eval *ev, tl_namespace *ns, const tl_funcdef *fn)
{
    return with_flags(ev, ns, fn, true);
}
