/* marks.c - what the decorators of a function say. */
#include <string.h>

#include "lang/scope_impl.h"

static const char *const known[] = {"compile", "checkpoint", "no_grad",
                                    "main"};
static const char *const modes[] = {"default", "reduce-overhead",
                                    "max-autotune"};
static const char *const options[] = {"mode", "static", "fallback"};

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static bool is(const tl_sym *name, const char *text)
{
    return strcmp(name->text, text) == 0;
}

static bool help_nearest(tl_resolver *r, const char *word,
                         const char *const *items, size_t n)
{
    const char *near = tl_nearest(word, items, n);

    if (near) {
        tl_diag_help(r->diag, "did you mean `%s`?", near);
    }
    return near != NULL;
}

static void set_mode(tl_resolver *r, const tl_ast *value, tl_marks *marks)
{
    if (value->kind == TL_AST_STR) {
        for (size_t i = 0; i < COUNT(modes); i++) {
            if (strcmp(TL_AST(str, value)->text.s, modes[i]) == 0) {
                marks->mode = modes[i];
                return;
            }
        }
    }
    tl_scope_error(r, TL_E0111, value->span,
                   "`mode` is \"default\", \"reduce-overhead\" or "
                   "\"max-autotune\"");
    if (value->kind == TL_AST_STR) {
        help_nearest(r, TL_AST(str, value)->text.s, modes, COUNT(modes));
    }
}

/* A parameter or dimension name of the function. */
static bool in_signature(const tl_resolver *r, const tl_funcdef *func,
                         const tl_scope *s, const tl_sym *name)
{
    const tl_var *var = tl_scope_find(s, name);

    (void)r;
    for (uint32_t i = 0; i < func->params.len; i++) {
        if (TL_AST(param, func->params.items[i])->name == name) {
            return true;
        }
    }
    for (uint32_t i = 0; var && i < func->ndims; i++) {
        if (func->dims[i] == var->slot) {
            return true;
        }
    }
    return false;
}

static void set_static(tl_resolver *r, const tl_ast *value, const tl_scope *s,
                       tl_funcdef *func)
{
    const tl_kids *items = &TL_AST(list, value)->items;
    const tl_sym **names;

    if (value->kind != TL_AST_LIST) {
        tl_scope_error(r, TL_E0111, value->span,
                       "`static` is a list of names, `[T, n]`");
        return;
    }
    names = tl_arena_array(&r->unit->arena, items->len + 1, sizeof(*names));
    if (!names) {
        tl_scope_keep(r, tl_fail_memory(r->diag, "an annotation",
                                        items->len * sizeof(*names)));
        return;
    }
    func->marks.nstatic = 0; /* of a mark that stands twice, the last counts */
    for (uint32_t i = 0; i < items->len; i++) {
        const tl_ast *item = items->items[i];

        if (item->kind != TL_AST_NAME ||
            !in_signature(r, func, s, TL_AST(name, item)->name)) {
            tl_scope_error(r, TL_E0111, item->span,
                           "no parameter or dimension of `%s` is named so",
                           func->name->text);
            continue;
        }
        names[func->marks.nstatic++] = TL_AST(name, item)->name;
    }
    func->marks.static_ = names;
}

static void set_option(tl_resolver *r, const tl_ast *arg, const tl_scope *s,
                       tl_funcdef *func)
{
    const tl_ast_keyword *keyword = TL_AST(keyword, arg);

    if (arg->kind != TL_AST_KEYWORD) {
        tl_scope_error(r, TL_E0111, arg->span,
                       "`@compile` takes options by name, `mode=...`");
    } else if (is(keyword->name, "mode")) {
        set_mode(r, keyword->value, &func->marks);
    } else if (is(keyword->name, "static")) {
        set_static(r, keyword->value, s, func);
    } else if (is(keyword->name, "fallback")) {
        if (keyword->value->kind != TL_AST_BOOL) {
            tl_scope_error(r, TL_E0111, keyword->value->span,
                           "`fallback` is true or false");
            return;
        }
        func->marks.fallback = TL_AST(bool, keyword->value)->value;
    } else {
        tl_scope_error(r, TL_E0111, arg->span, "`@compile` has no option `%s`",
                       keyword->name->text);
        help_nearest(r, keyword->name->text, options, COUNT(options));
    }
}

/* The flag of the mark, or NULL if there is no such mark. */
static bool *flag_of(tl_marks *marks, const tl_sym *name)
{
    return is(name, "compile")      ? &marks->compile
           : is(name, "checkpoint") ? &marks->checkpoint
           : is(name, "no_grad")    ? &marks->no_grad
           : is(name, "main")       ? &marks->main
                                    : NULL;
}

static void check_main(tl_resolver *r, const tl_ast_decorator *mark,
                       bool top_level)
{
    if (!top_level) {
        tl_scope_error(r, TL_E0111, mark->base.span,
                       "`@main` marks a function at the top level");
    } else if (r->unit->main) {
        tl_scope_error(r, TL_E0216, mark->base.span,
                       "two functions are marked `@main`");
        tl_diag_label_add(r->diag, r->unit->main->name_at, "the first one");
    }
}

static void decode(tl_resolver *r, const tl_ast_decorator *mark,
                   const tl_scope *s, tl_funcdef *func, bool top_level)
{
    bool *flag = flag_of(&func->marks, mark->name);

    if (!flag) {
        tl_scope_error(r, TL_E0111, mark->base.span,
                       "there is no annotation `@%s`", mark->name->text);
        if (!help_nearest(r, mark->name->text, known, COUNT(known))) {
            tl_diag_help(r->diag, "there are `@compile`, `@checkpoint`, "
                                  "`@no_grad` and `@main`");
        }
        return;
    }
    if (*flag) {
        tl_scope_error(r, TL_E0216, mark->base.span, "`@%s` stands twice",
                       mark->name->text);
    }
    *flag = true;
    if (flag == &func->marks.main) {
        check_main(r, mark, top_level);
    }
    for (uint32_t i = 0; i < mark->args.len; i++) {
        if (flag == &func->marks.compile) {
            set_option(r, mark->args.items[i], s, func);
        } else {
            tl_scope_error(r, TL_E0111, mark->args.items[i]->span,
                           "`@%s` takes no arguments", mark->name->text);
            break;
        }
    }
}

void tl_marks_decode(tl_resolver *r, const tl_kids *decorators,
                     const tl_scope *s, tl_funcdef *func, bool top_level)
{
    for (uint32_t i = 0; i < decorators->len; i++) {
        const tl_ast_decorator *mark = TL_AST(decorator, decorators->items[i]);

        if (!func) {
            tl_scope_error(r, TL_E0217, mark->base.span,
                           "`@%s` needs a function, found a %s",
                           mark->name->text,
                           s->func->kind == TL_FUNC_MODULE ? "module"
                                                           : "record");
            if (s->func->kind == TL_FUNC_MODULE) {
                tl_diag_help(r->diag, "mark its `forward`");
            }
            return;
        }
        decode(r, mark, s, func, top_level);
    }
}
