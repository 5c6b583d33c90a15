/* front.c - see front.h. */
#include "tests/unit/lang/front.h"

#include <criterion/criterion.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/srcdir.h" /* TL_SRCDIR; made by make */

static bool has(void *arg, const tl_sym *name)
{
    static const char *const names[] = {
        "print", "range", "len",  "relu",       "f",     "g",
        "xs",    "zeros", "rand", "breakpoint", "timer", "select",
        "nn",    "cond",  "zip",  "save",       "use"};

    (void)arg;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strcmp(names[i], name->text) == 0) {
            return true;
        }
    }
    return false;
}

static unsigned effects(void *arg, const tl_sym *name)
{
    (void)arg;
    return strcmp(name->text, "rand") == 0    ? TL_EFFECT_RNG
           : strcmp(name->text, "print") == 0 ? TL_EFFECT_HOST
                                              : 0;
}

static const char *const known[] = {"print", "range", "length"};

const tl_builtins front_builtins = {
    .has = has, .effects = effects, .names = known, .nnames = 3};

void front_init(front *f)
{
    *f = (front){.unit = NULL};
    tl_sources_init(&f->sources);
    tl_intern_init(&f->names);
    f->lang = (tl_lang){&f->names, &f->sources};
    tl_globals_init(&f->globals);
    tl_diag_init(&f->diag, &f->sources);
    tl_buf_init(&f->text);
}

void front_fini(front *f)
{
    for (int i = 0; i < f->nold; i++) {
        tl_unit_free(f->old[i]);
    }
    tl_unit_free(f->unit);
    tl_buf_fini(&f->text);
    tl_diag_fini(&f->diag);
    tl_globals_fini(&f->globals);
    tl_intern_fini(&f->names);
    tl_sources_fini(&f->sources);
}

static tl_status parse(front *f, const char *text, bool entry)
{
    uint32_t file = tl_sources_add(&f->sources, "t.tl", text, strlen(text));

    cr_assert_neq(file, 0);
    if (f->unit) {
        cr_assert_lt(f->nold, 16);
        f->old[f->nold++] = f->unit;
        f->unit = NULL;
    }
    f->status = entry ? tl_parse_entry(&f->unit, &f->lang, file, &f->diag)
                      : tl_parse(&f->unit, &f->lang, file, &f->diag);
    return f->status;
}

tl_status front_parse(front *f, const char *text)
{
    return parse(f, text, false);
}

tl_status front_entry(front *f, const char *text)
{
    return parse(f, text, true);
}

static tl_status resolve(front *f)
{
    if (f->status == TL_OK) {
        f->status = tl_resolve(f->unit, &f->lang, &f->globals,
                               &front_builtins, &f->diag);
    }
    return f->status;
}

tl_status front_resolve(front *f, const char *text)
{
    front_parse(f, text);
    return resolve(f);
}

tl_status front_resolve_entry(front *f, const char *text)
{
    front_entry(f, text);
    return resolve(f);
}

/* Line breaks and indentation of the printer become single spaces. */
static void flatten(const char *s, tl_buf *out)
{
    for (; *s; s++) {
        if (*s != '\n') {
            tl_buf_putc(out, *s);
        } else {
            s += strspn(s, "\n ") - 1;
        }
    }
}

const char *front_tree(front *f, bool refs)
{
    tl_buf tree;
    const tl_kids *stmts;

    tl_buf_init(&tree);
    tl_buf_clear(&f->text);
    cr_assert_eq(f->status, TL_OK, "%s", front_errors(f));
    stmts = &TL_AST(block, f->unit->root->body)->stmts;
    for (uint32_t i = 0; i < stmts->len; i++) {
        tl_buf_clear(&tree);
        tl_ast_print(stmts->items[i], refs, &tree);
        if (i > 0) {
            tl_buf_putc(&f->text, ' ');
        }
        flatten(tl_buf_str(&tree), &f->text);
    }
    tl_buf_fini(&tree);
    return tl_buf_str(&f->text);
}

const char *front_errors(front *f)
{
    tl_buf_clear(&f->text);
    for (const tl_diag_item *i = f->diag.first; i; i = i->next) {
        const tl_source *source = tl_sources_get(&f->sources, i->span.file);
        int line = 0, column = 0;

        if (source) {
            tl_source_position(source, i->span.start, &line, &column);
        }
        tl_buf_printf(&f->text, "%s%s %d:%d %s",
                      i == f->diag.first ? "" : "\n", tl_code_name(i->code),
                      line, column, i->message);
        if (i->help) {
            tl_buf_printf(&f->text, "; help: %s", i->help);
        }
    }
    return tl_buf_str(&f->text);
}

/* ---- looking into trees -------------------------------------------------- */

typedef struct search {
    const char *name;
    const tl_funcdef *found;
    tl_buf *out;
} search;

static const tl_funcdef *func_of(const tl_ast *node)
{
    switch (node->kind) {
    case TL_AST_FN:
        return TL_AST(fn, node)->func;
    case TL_AST_LAMBDA:
        return TL_AST(lambda, node)->func;
    case TL_AST_MODULE:
        return TL_AST(module, node)->func;
    case TL_AST_RECORD:
        return TL_AST(record, node)->func;
    case TL_AST_TEST:
        return TL_AST(test, node)->func;
    case TL_AST_UNIT:
        return TL_AST(unit, node)->func;
    default:
        return NULL;
    }
}

static bool find_func(void *arg, tl_ast *node)
{
    search *s = arg;
    const tl_funcdef *func = func_of(node);

    if (func && (s->name ? func->name && !strcmp(func->name->text, s->name)
                         : func->kind == TL_FUNC_LAMBDA)) {
        s->found = func;
        return false;
    }
    return tl_ast_children(node, find_func, s);
}

const tl_funcdef *front_func(front *f, const char *name)
{
    search s = {.name = name};

    cr_assert_eq(f->status, TL_OK, "%s", front_errors(f));
    find_func(&s, &f->unit->root->base);
    cr_assert_not_null(s.found, "no function %s", name ? name : "(lambda)");
    return s.found;
}

typedef struct place {
    uint32_t at;
    char mark;
} place;

typedef struct marks {
    const char *name;
    place places[64];
    int n;
} marks;

static bool find_marks(void *arg, tl_ast *node)
{
    marks *m = arg;
    const tl_ast_name *name = TL_AST(name, node);

    if (node->kind == TL_AST_NAME && !strcmp(name->name->text, m->name) &&
        name->ref.kind == TL_REF_LOCAL) {
        cr_assert_lt(m->n, 64);
        m->places[m->n++] =
            (place){node->span.start, name->ref.last ? 'l' : '-'};
    }
    return tl_ast_children(node, find_marks, m);
}

static int by_place(const void *a, const void *b)
{
    const place *x = a, *y = b;

    return x->at < y->at ? -1 : x->at > y->at;
}

const char *front_marks(front *f, const char *name)
{
    marks m = {.name = name};

    cr_assert_eq(f->status, TL_OK, "%s", front_errors(f));
    find_marks(&m, &f->unit->root->base);
    qsort(m.places, (size_t)m.n, sizeof(place), by_place);
    tl_buf_clear(&f->text);
    for (int i = 0; i < m.n; i++) {
        tl_buf_putc(&f->text, m.places[i].mark);
    }
    return tl_buf_str(&f->text);
}

/* ---- files and cases ----------------------------------------------------- */

char *front_file(const char *path, size_t *len)
{
    char name[4096];
    FILE *file;
    char *text = malloc(1 << 20);

    snprintf(name, sizeof(name), "%s/%s", TL_SRCDIR, path);
    file = fopen(name, "rb");
    cr_assert_not_null(file, "cannot open %s", name);
    *len = fread(text, 1, (1 << 20) - 1, file);
    text[*len] = '\0';
    fclose(file);
    return text;
}

void front_check(const front_case *cases, size_t n, bool resolve_too)
{
    for (size_t i = 0; i < n; i++) {
        const char *errors;
        front f;

        front_init(&f);
        if (resolve_too) {
            front_resolve(&f, cases[i].text);
        } else {
            front_parse(&f, cases[i].text);
        }
        errors = front_errors(&f);
        cr_expect_eq(strncmp(errors, cases[i].error, strlen(cases[i].error)),
                     0, "`%s` gives\n%s\nnot\n%s", cases[i].text, errors,
                     cases[i].error);
        cr_expect_null(strchr(errors, '\n'), "`%s` gives more than one:\n%s",
                       cases[i].text, errors);
        cr_expect(!cases[i].help || strstr(errors, cases[i].help),
                  "`%s`: no help `%s` in\n%s", cases[i].text, cases[i].help,
                  errors);
        cr_expect_eq(f.status, TL_ERR_REJECTED, "`%s`", cases[i].text);
        front_fini(&f);
    }
}
