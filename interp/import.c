/* import.c - files of the program and of the library.
 *
 * `import a.b` is a/b.tl beside the importing file, then below a folder of
 * TLANG_PATH, then in the library.  A file runs once, with data, whatever the
 * domain is that met the import; no tape sees it.  On a way that the run may
 * not take, the shape pass leaves it to the run. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "interp/builtin.h"
#include "interp/domain.h"
#include "interp/eval_impl.h"
#include "interp/stdlib.h"
#include "interp/trace.h"
#include "lang/habits.h"
#include "runtime/io/file.h"

static bool file_exists(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

static const tl_stdlib_file *stdlib_find(const char *dotted)
{
    for (size_t i = 0; i < tl_stdlib_count; i++) {
        if (strcmp(tl_stdlib_files[i].name, dotted) == 0) {
            return &tl_stdlib_files[i];
        }
    }
    return NULL;
}

static const char *stdlib_nearest(const char *dotted)
{
    const char *names[64];
    size_t n = 0;

    for (; n < tl_stdlib_count && n < 64; n++) {
        names[n] = tl_stdlib_files[n].name;
    }
    return tl_nearest(dotted, names, n);
}

/* Folder of the importing file, with its "/", or "". */
static void add_folder(tl_buf *buf, const char *path)
{
    const char *slash = strrchr(path, '/');

    if (slash != NULL) {
        tl_buf_add(buf, path, (size_t)(slash - path) + 1);
    }
}

static void add_dotted(tl_buf *buf, const char *dotted)
{
    for (const char *p = dotted; *p != '\0'; p++) {
        tl_buf_putc(buf, *p == '.' ? '/' : *p);
    }
    tl_buf_puts(buf, ".tl");
}

typedef struct found {
    const char *text; /* of the library, or NULL: read `path` */
    size_t len;
    tl_buf path;
    tl_buf tried;
} found;

static bool try_path(found *f)
{
    if (!f->path.failed && file_exists(tl_buf_str(&f->path))) {
        return true;
    }
    tl_buf_printf(&f->tried, "%s%s", f->tried.len > 0 ? ", " : "",
                  tl_buf_str(&f->path));
    f->tried.failed = f->tried.failed || f->path.failed;
    tl_buf_clear(&f->path);
    return false;
}

static bool find_library(const char *dotted, found *f)
{
    const tl_stdlib_file *lib = stdlib_find(dotted);

    if (lib != NULL) {
        f->text = lib->text;
        f->len = lib->len;
        tl_buf_puts(&f->path, "stdlib/");
        add_dotted(&f->path, lib->name);
    }
    return lib != NULL;
}

static bool find(tl_eval *ev, const char *dotted, found *f)
{
    const char *dirs = getenv("TLANG_PATH");

    add_folder(&f->path, ev->frame != NULL ? ev->frame->ns->path->data : "");
    add_dotted(&f->path, dotted);
    if (try_path(f)) {
        return true;
    }
    while (dirs != NULL && *dirs != '\0') {
        size_t n = strcspn(dirs, ":");

        tl_buf_add(&f->path, dirs, n);
        tl_buf_putc(&f->path, '/');
        add_dotted(&f->path, dotted);
        if (n > 0 && try_path(f)) {
            return true;
        }
        tl_buf_clear(&f->path);
        dirs += n + (dirs[n] == ':');
    }
    return find_library(dotted, f);
}

/* The files that are being loaded, outermost first.  Frames are at most as
 * many as calls may nest. */
static void put_loading(const tl_frame *f, tl_buf *out)
{
    if (f == NULL) {
        return;
    }
    put_loading(f->caller, out);
    if (f->ns->loading && f->fn->kind == TL_FUNC_UNIT) {
        tl_buf_printf(out, "%s -> ", f->ns->name->data);
    }
}

static tl_status cycle(tl_eval *ev, const char *dotted, tl_span span)
{
    tl_buf chain;

    tl_buf_init(&chain);
    put_loading(ev->frame, &chain);
    tl_status st = tl_fail_at(ev->diag, TL_E0213, span, "import cycle: %s%s",
                              tl_buf_str(&chain), dotted);

    tl_diag_help(ev->diag, "move what both files need into a third one");
    tl_buf_fini(&chain);
    return st;
}

enum { MOST_NESTED = 200 }; /* files that import one another */

/* How many files are being loaded? */
static int count_loading(const tl_frame *f)
{
    int n = 0;

    for (; f != NULL; f = f->caller) {
        n += f->ns->loading && f->fn->kind == TL_FUNC_UNIT;
    }
    return n;
}

/* Run the file's top level with data, whatever is going on around. */
static tl_status run_file(tl_eval *ev, tl_namespace *ns, const char *text,
                          size_t len)
{
    const tl_domain *domain = ev->domain;
    int no_check = ev->no_check;
    bool muted = ev->diag->muted;
    tl_value ret = ev->ret;
    const tl_eval_options *options = ev->options;
    tl_eval_options run = options != NULL ? *options : (tl_eval_options){0};

    run.check_only = false;
    ev->options = &run;
    ev->domain = &tl_domain_concrete;
    ev->no_check = 0;
    ev->diag->muted = false;
    ev->ret = tl_empty();
    ev->rt->no_grad++;
    ns->loading = true;
    tl_status st = tl_eval_text(ev, ns, ns->path->data, text, len, NULL,
                                NULL);

    ns->loading = false;
    ev->rt->no_grad--;
    tl_unref(ev->ret);
    ev->ret = ret;
    ev->diag->muted = muted;
    ev->no_check = no_check;
    ev->domain = domain;
    ev->options = options;
    return st;
}

static tl_status load(tl_eval *ev, const char *dotted, const tl_sym *key,
                      found *f, tl_namespace **out)
{
    tl_bytes text = {0};
    tl_status st = TL_OK;
    const char *dot = strrchr(dotted, '.');

    if (f->text == NULL) {
        st = tl_file_read(tl_buf_str(&f->path), TL_MOST_SOURCE, &text,
                          ev->diag);
    }
    if (st == TL_OK) {
        st = tl_namespace_new(out, ev, dot != NULL ? dot + 1 : dotted,
                              tl_buf_str(&f->path));
    }
    if (st == TL_OK) {
        (*out)->library = f->text != NULL;
    }
    if (st == TL_OK && !tl_map_set(&ev->imports, key, *out)) {
        st = tl_fail_memory(ev->diag, "an import", 0);
    }
    if (st == TL_OK) {
        st = run_file(ev, *out, f->text != NULL ? f->text : text.data,
                      f->text != NULL ? f->len : text.size);
        if (st != TL_OK) { /* may be mended and tried again in a REPL */
            tl_map_remove(&ev->imports, key);
        }
        if (st != TL_OK && ev->diag->last != NULL) {
            ev->diag->last->settled = true; /* its effects are done */
        }
    }
    tl_bytes_fini(&text);
    return st;
}

static tl_status not_found(tl_eval *ev, const char *dotted, tl_span span,
                           found *f)
{
    tl_status st = tl_fail_at(ev->diag, TL_E0214, span,
                              "there is no module `%s`", dotted);
    const char *near = stdlib_nearest(dotted);

    tl_diag_note(ev->diag, "tried %s, and the library", tl_buf_str(&f->tried));
    if (tl_habit_import(dotted) != NULL) {
        tl_diag_help(ev->diag, "%s", tl_habit_import(dotted));
    } else if (near != NULL) {
        tl_diag_help(ev->diag, "%s", near);
    }
    return st;
}

/* Does the shape pass go a way that a run may not take?  A file of the program
 * is not run for that: what it prints and writes would be there, and a file
 * that fails would run again. */
static bool is_doubtful(const tl_eval *ev)
{
    return ev->domain == &tl_domain_shape && ev->diag->muted;
}

/* The namespace of a file that was found; it is loaded the first time.  NULL:
 * it is left to the run. */
static tl_status open_found(tl_eval *ev, const char *dotted, tl_span span,
                            found *f, tl_namespace **out)
{
    if (f->path.failed || f->tried.failed) {
        return tl_fail_memory(ev->diag, "a path", f->path.len);
    }
    const tl_sym *key = tl_intern_get(ev->lang->names, f->path.data,
                                      f->path.len);

    if (key == NULL) {
        return tl_fail_memory(ev->diag, "an import", f->path.len);
    }
    tl_namespace *ns = tl_map_get(&ev->imports, key, NULL);

    if (ns != NULL && ns->loading) {
        return cycle(ev, dotted, span);
    }
    if (ns == NULL && count_loading(ev->frame) >= MOST_NESTED) {
        tl_status st = tl_fail_at(ev->diag, TL_E0110, span,
                                  "imports nested deeper than %d",
                                  MOST_NESTED);

        tl_diag_help(ev->diag, "do files import one another in a row without "
                               "end?");
        return st;
    }
    if (ns == NULL && (f->text != NULL || !is_doubtful(ev))) {
        TL_TRY(load(ev, dotted, key, f, &ns));
    }
    *out = ns;
    return TL_OK;
}

tl_status tl_eval_import_path(tl_eval *ev, const char *dotted, tl_span span,
                              tl_namespace **out)
{
    found f = {0};

    tl_buf_init(&f.path);
    tl_buf_init(&f.tried);
    bool there = find(ev, dotted, &f) || f.path.failed || f.tried.failed;
    tl_status st = there ? open_found(ev, dotted, span, &f, out)
                         : not_found(ev, dotted, span, &f);

    tl_buf_fini(&f.path);
    tl_buf_fini(&f.tried);
    return st;
}

tl_status tl_eval_import_library(tl_eval *ev, const char *dotted,
                                 tl_namespace **out)
{
    found f = {0};

    tl_buf_init(&f.path);
    tl_buf_init(&f.tried);
    bool there = find_library(dotted, &f);

    TL_CHECK(there);
    tl_status st = open_found(ev, dotted, ev->rt->span, &f, out);

    tl_buf_fini(&f.path);
    tl_buf_fini(&f.tried);
    return st;
}

/* The dotted text of a path. */
static void dotted_path(const tl_path *path, tl_buf *buf)
{
    for (uint32_t i = 0; i < path->len; i++) {
        tl_buf_printf(buf, "%s%s", i > 0 ? "." : "", path->names[i]->text);
    }
}

static tl_status import_path(tl_eval *ev, const tl_path *path, tl_span span,
                             tl_namespace **out)
{
    tl_buf buf;

    tl_buf_init(&buf);
    dotted_path(path, &buf);
    tl_status st = buf.failed ? tl_fail_memory(ev->diag, "a path", buf.len)
                              : tl_eval_import_path(ev, tl_buf_str(&buf),
                                                    span, out);

    tl_buf_fini(&buf);
    return st;
}

/* A compiled function reads no files, and what is imported runs once. */
static tl_status refuse_traced(tl_eval *ev, tl_span span)
{
    if (!tl_is_tracing(ev)) {
        return TL_OK;
    }
    tl_status st = tl_trace_refuse(ev, "it imports a file");

    tl_diag_at(ev->diag, span);
    tl_diag_help(ev->diag, "import it at the top of the file");
    return st;
}

/* Borrowed; unknown where the file is left to the run. */
static tl_value namespace_value(tl_namespace *ns)
{
    return ns != NULL ? (tl_value){.tag = TL_V_NAMESPACE, .ns = ns}
                      : tl_unknown();
}

tl_status tl_eval_import(tl_eval *ev, const tl_ast_import *n)
{
    TL_TRY(refuse_traced(ev, n->base.span));
    for (uint32_t i = 0; i < n->names.len; i++) {
        const tl_ast_import_name *p = TL_AST(import_name, n->names.items[i]);
        tl_namespace *ns = NULL;

        TL_TRY(import_path(ev, &p->path, p->base.span, &ns));
        TL_TRY(tl_bind_ref_take(ev, &p->target, p->base.span,
                                tl_ref(namespace_value(ns))));
    }
    return TL_OK;
}

tl_status tl_eval_from(tl_eval *ev, const tl_ast_from *n)
{
    tl_namespace *ns = NULL;

    TL_TRY(refuse_traced(ev, n->base.span));
    TL_TRY(import_path(ev, &n->path, n->base.span, &ns));
    for (uint32_t i = 0; i < n->names.len; i++) {
        const tl_ast_from_name *p = TL_AST(from_name, n->names.items[i]);
        tl_value v = tl_empty();
        tl_status st = tl_eval_attr(ev, namespace_value(ns), p->name, &v);

        if (st != TL_OK) {
            tl_diag_at(ev->diag, p->base.span);
            return st;
        }
        TL_TRY(tl_bind_ref_take(ev, &p->target, p->base.span, v));
    }
    return TL_OK;
}
