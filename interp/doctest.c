/* doctest.c - the examples in docstrings of a file, as tests.
 *
 * Two forms: lines behind `Example:` are a program that must run (its asserts
 * are the test); `>>> CODE`, with `... CODE` for further lines, must show what
 * stands below it up to a blank line.  An example sees what its file defines,
 * the file under its own name, and modules of the library that it mentions. */
#include <stdio.h>
#include <string.h>

#include "interp/doctest.h"
#include "interp/eval_impl.h"
#include "interp/format.h"
#include "interp/lang.h"
#include "interp/stdlib.h"

typedef struct example {
    tl_session *s;
    tl_namespace *ns;  /* of its own */
    const char *title; /* "PATH: NAME" */
    tl_buf shown;      /* what it has printed since the last `>>>` */
} example;

static tl_status keep_output(void *arg, const char *text, size_t len)
{
    tl_buf_add(&((example *)arg)->shown, text, len);
    return TL_OK;
}

/* ---- names --------------------------------------------------------------- */

/* The name of a path's last part, without its end. */
static const tl_sym *stem(tl_session *s, const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash != NULL ? slash + 1 : path;

    return tl_intern_get(&s->names, name, strcspn(name, "."));
}

/* Is `name.` in the text, and not behind a letter or a dot? */
static bool mentions(const char *text, const char *name)
{
    size_t n = strlen(name);

    for (const char *p = text; (p = strstr(p, name)) != NULL; p += n) {
        bool starts = p == text || strchr(" (\n[,=*-+/", p[-1]) != NULL;

        if (starts && p[n] == '.') {
            return true;
        }
    }
    return false;
}

static bool is_bound(const tl_namespace *ns, const tl_sym *name)
{
    int64_t slot = name != NULL ? tl_globals_find(ns->names, name) : -1;

    return slot >= 0 && (size_t)slot < ns->nslots &&
           ns->slots[slot].tag != TL_V_EMPTY;
}

static tl_status import_mentioned(example *e, const char *text)
{
    for (size_t i = 0; i < tl_stdlib_count; i++) {
        const char *name = tl_stdlib_files[i].name;
        char line[128];

        if (strchr(name, '.') != NULL || !mentions(text, name) ||
            is_bound(e->ns, tl_intern_get(&e->s->names, name,
                                          strlen(name)))) {
            continue;
        }
        int n = snprintf(line, sizeof(line), "import %s\n", name);

        TL_TRY(tl_eval_text(&e->s->ev, e->ns, e->title, line, (size_t)n,
                            NULL, NULL));
    }
    return TL_OK;
}

static tl_status prepare(example *e, tl_namespace *file, const char *text)
{
    tl_eval *ev = &e->s->ev;

    TL_TRY(tl_namespace_new(&e->ns, ev, "example", e->title));
    for (size_t i = 0; i < file->nslots && i < file->names->names.len; i++) {
        TL_TRY(tl_namespace_bind(ev, e->ns, file->names->names.items[i],
                                 file->slots[i]));
    }
    const tl_sym *own = stem(e->s, file->path->data);

    if (!is_bound(e->ns, own)) {
        tl_obj *obj = &file->obj;

        obj->refs++;
        tl_value v = tl_obj_value_take(obj);
        tl_status st = tl_namespace_bind(ev, e->ns, own, v);

        tl_unref(v);
        TL_TRY(st);
    }
    return import_mentioned(e, text);
}

/* ---- the text of examples ----------------------------------------------- */

static size_t line_length(const char *s, const char *end)
{
    const char *nl = memchr(s, '\n', (size_t)(end - s));

    return (size_t)((nl != NULL ? nl : end) - s);
}

static size_t indent(const char *s, size_t n)
{
    size_t i = 0;

    while (i < n && s[i] == ' ') {
        i++;
    }
    return i;
}

static bool is_heading(const char *s, size_t n)
{
    size_t in = indent(s, n);

    s += in;
    n -= in;
    return (n == 8 && memcmp(s, "Example:", 8) == 0) ||
           (n == 9 && memcmp(s, "Examples:", 9) == 0);
}

/* The lines behind `Example:`, with the indentation of the first taken off, up
 * to one that is indented less.  False: there is no such heading. */
static bool cut_program(const tl_text *doc, tl_buf *out)
{
    const char *s = doc->s, *end = doc->s + doc->len;
    size_t base = SIZE_MAX;
    bool inside = false;

    for (; s < end; s += line_length(s, end) + 1) {
        size_t n = line_length(s, end), in = indent(s, n);

        if (!inside) {
            inside = is_heading(s, n);
            continue;
        }
        if (in == n) {
            tl_buf_putc(out, '\n');
            continue;
        }
        base = base == SIZE_MAX ? in : base;
        if (in < base) {
            break;
        }
        tl_buf_add(out, s + base, n - base);
        tl_buf_putc(out, '\n');
    }
    return inside && strstr(tl_buf_str(out), ">>> ") == NULL &&
           strspn(tl_buf_str(out), " \n") < out->len;
}

static bool has_prompt(const char *s, size_t n, const char *prompt)
{
    return n >= 3 && memcmp(s, prompt, 3) == 0 && (n == 3 || s[3] == ' ');
}

static void add_code(const char *s, size_t n, tl_buf *out)
{
    size_t skip = n > 3 ? 4 : 3;

    tl_buf_add(out, s + skip, n - skip);
    tl_buf_putc(out, '\n');
}

/* ---- running ------------------------------------------------------------ */

/* Run `code`; what it prints and the value that it shows go to e->shown. */
static tl_status run_entry(example *e, const tl_buf *code)
{
    tl_value v = tl_none();

    TL_TRY(tl_eval_text(&e->s->ev, e->ns, e->title, tl_buf_str(code),
                        code->len, &v, NULL));
    tl_status st = TL_OK;

    if (v.tag != TL_V_NONE && v.tag != TL_V_EMPTY) {
        st = tl_format_repr(v, &e->shown, &e->s->diag);
        tl_buf_putc(&e->shown, '\n');
    }
    tl_unref(v);
    return st;
}

static tl_status compare(example *e, const tl_buf *code, const tl_buf *want)
{
    if (e->shown.len == want->len &&
        (want->len == 0 ||
         memcmp(e->shown.data, want->data, want->len) == 0)) {
        return TL_OK;
    }
    return tl_fail(&e->s->diag, TL_E0222, "%s: %sshows\n%swanted\n%s",
                   e->title, tl_buf_str(code), tl_buf_str(&e->shown),
                   tl_buf_str(want));
}

/* All `>>>` of a docstring, in turn. */
static tl_status run_shown(example *e, const tl_text *doc)
{
    const char *s = doc->s, *end = doc->s + doc->len;
    tl_buf code, want;
    tl_status st = TL_OK;

    tl_buf_init(&code);
    tl_buf_init(&want);
    while (s < end && st == TL_OK) {
        size_t n = line_length(s, end), in = indent(s, n);

        if (!has_prompt(s + in, n - in, ">>>")) {
            s += n + 1;
            continue;
        }
        tl_buf_clear(&code);
        tl_buf_clear(&want);
        tl_buf_clear(&e->shown);
        do {
            add_code(s + in, n - in, &code);
            s += n + 1;
            n = s < end ? line_length(s, end) : 0;
        } while (s < end && n > in && has_prompt(s + in, n - in, "..."));
        for (; s < end && n > in && !has_prompt(s + in, n - in, ">>>");
             s += n + 1, n = s < end ? line_length(s, end) : 0) {
            tl_buf_add(&want, s + in, n - in);
            tl_buf_putc(&want, '\n');
        }
        st = run_entry(e, &code);
        if (st == TL_OK) {
            st = compare(e, &code, &want);
        }
    }
    tl_buf_fini(&code);
    tl_buf_fini(&want);
    return st;
}

bool tl_doctest_find(const tl_text *doc)
{
    tl_buf program;

    if (doc == NULL) {
        return false;
    }
    tl_buf_init(&program);
    bool found = cut_program(doc, &program);

    tl_buf_fini(&program);
    for (const char *p = doc->s;
         !found && (p = strstr(p, ">>> ")) != NULL; p += 4) {
        found = p == doc->s || strchr(" \n", p[-1]) != NULL;
    }
    return found;
}

tl_status tl_doctest_run(tl_session *s, tl_namespace *file,
                         const char *title, const tl_text *doc)
{
    example e = {.s = s, .title = title};
    tl_status (*write)(void *, const char *, size_t) = s->ev.write;
    void *write_arg = s->ev.write_arg;
    tl_buf program;

    tl_buf_init(&program);
    tl_buf_init(&e.shown);
    bool is_program = cut_program(doc, &program);
    tl_status st = prepare(&e, file, doc->s);

    s->ev.write = keep_output;
    s->ev.write_arg = &e;
    if (st == TL_OK) {
        st = is_program ? run_entry(&e, &program) : run_shown(&e, doc);
    }
    s->ev.write = write;
    s->ev.write_arg = write_arg;
    tl_buf_fini(&program);
    tl_buf_fini(&e.shown);
    return st;
}
