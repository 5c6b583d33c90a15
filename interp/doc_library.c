/* doc_library.c - what a file of the library defines, read off its text: the
 * headers as they are written, and their docstrings. */
#include <ctype.h>
#include <string.h>

#include "interp/lang.h"
#include "interp/reference.h"
#include "interp/stdlib.h"

/* A definition, taken apart. */
typedef struct definition {
    const tl_sym *name;
    tl_span header;     /* from `fn` to before its body */
    const tl_text *doc; /* or NULL */
} definition;

static const tl_text *docstring(const tl_ast *body)
{
    if (body == NULL || body->kind != TL_AST_BLOCK ||
        TL_AST(block, body)->stmts.len == 0) {
        return NULL;
    }
    const tl_ast *first = TL_AST(block, body)->stmts.items[0];

    if (first->kind != TL_AST_EXPR_STMT) {
        return NULL;
    }
    const tl_ast *value = TL_AST(expr_stmt, first)->value;

    return value->kind == TL_AST_STR ? &TL_AST(str, value)->text : NULL;
}

/* The header ends at the colon or `=` before the body. */
static tl_span header_of(const tl_ast *node, const tl_ast *body,
                         const char *text)
{
    tl_span span = node->span;

    span.end = body != NULL ? body->span.start : node->span.end;
    while (span.end > span.start &&
           (isspace((unsigned char)text[span.end - 1]) ||
            strchr(":=", text[span.end - 1]) != NULL)) {
        span.end--;
    }
    return span;
}

/* Is it a definition for users?  Names with _ in front are not. */
static bool defines(const tl_ast *stmt, const char *text, definition *d)
{
    const tl_ast *body = NULL;

    switch (stmt->kind) {
    case TL_AST_FN:
        d->name = TL_AST(fn, stmt)->name;
        body = TL_AST(fn, stmt)->body;
        d->doc = docstring(body);
        break;
    case TL_AST_MODULE:
        d->name = TL_AST(module, stmt)->name;
        body = TL_AST(module, stmt)->body;
        d->doc = docstring(body);
        break;
    case TL_AST_RECORD:
        d->name = TL_AST(record, stmt)->name;
        d->doc = TL_AST(record, stmt)->doc.s != NULL
                     ? &TL_AST(record, stmt)->doc
                     : NULL;
        break;
    default:
        return false;
    }
    d->header = header_of(stmt, body, text);
    return d->name->text[0] != '_';
}

/* The text of a docstring, its lines indented by `indent` and not by what
 * they have in the file. */
static void add_doc(tl_buf *out, const tl_text *doc, const char *indent,
                    bool whole)
{
    const char *s = doc->s, *end = doc->s + doc->len;

    while (s < end) {
        size_t n = 0;

        while (s < end && *s == ' ') {
            s++;
        }
        while (s + n < end && s[n] != '\n') {
            n++;
        }
        if (n > 0) {
            tl_buf_puts(out, indent);
        }
        tl_buf_add(out, s, n);
        tl_buf_putc(out, '\n');
        s += n + 1;
        if (!whole) {
            return;
        }
    }
}

static void add_definition(tl_buf *out, const char *text, const definition *d,
                           const char *indent, bool whole)
{
    const char *s = text + d->header.start, *end = text + d->header.end;
    bool blank = false;

    tl_buf_puts(out, indent);
    for (; s < end; s++) { /* lines of a long header become one */
        bool space = isspace((unsigned char)*s);

        if (!space || !blank) {
            tl_buf_putc(out, space ? ' ' : *s);
        }
        blank = space;
    }
    tl_buf_putc(out, '\n');
    if (d->doc != NULL) {
        tl_buf deeper;

        tl_buf_init(&deeper);
        tl_buf_printf(&deeper, "%s    ", indent);
        add_doc(out, d->doc, tl_buf_str(&deeper), whole);
        tl_buf_fini(&deeper);
    }
}

/* The page of the file or of a member.  Not found: `nearest` gets what has
 * almost that name, or stays. */
static bool add_members(tl_buf *out, const tl_unit *unit, const char *text,
                        const char *member, const char **nearest)
{
    const char *names[256];
    size_t n = 0;
    const tl_ast *body = unit->root->body;
    const tl_text *doc = docstring(body);
    bool found = member == NULL;

    if (member == NULL && doc != NULL) {
        add_doc(out, doc, "    ", true);
    }
    for (uint32_t i = 0; i < TL_AST(block, body)->stmts.len; i++) {
        definition d;

        if (!defines(TL_AST(block, body)->stmts.items[i], text, &d)) {
            continue;
        }
        if (n < sizeof(names) / sizeof(names[0])) {
            names[n++] = d.name->text;
        }
        if (member == NULL) {
            add_definition(out, text, &d, "  ", false);
        } else if (strcmp(d.name->text, member) == 0) {
            add_definition(out, text, &d, "", true);
            found = true;
        }
    }
    if (!found) {
        *nearest = tl_nearest(member, names, n);
    }
    return found;
}

/* Is `file` the library `name`, or a part of it in its folder? */
static bool is_part(const char *file, const char *name)
{
    size_t n = strlen(name);

    return strncmp(file, name, n) == 0 && (file[n] == '\0' || file[n] == '.');
}

/* One file of a library; `near` gets a name like the member that is not
 * found. */
static tl_status add_file(tl_eval *ev, const tl_stdlib_file *lib,
                          const char *member, tl_buf *out, tl_buf *near,
                          bool *found)
{
    const char *nearest = NULL;
    tl_unit *unit = NULL;
    uint32_t file =
        tl_sources_add(ev->lang->sources, lib->name, lib->text, lib->len);

    if (file == 0) {
        return tl_fail_memory(ev->diag, "a text", lib->len);
    }
    TL_TRY(tl_parse(&unit, ev->lang, file, ev->diag));
    if (add_members(out, unit, lib->text, member, &nearest)) {
        *found = true;
    }
    if (nearest != NULL && near->len == 0) {
        tl_buf_puts(near, nearest);
    }
    tl_unit_free(unit);
    return TL_OK;
}

tl_status tl_doc_library(tl_eval *ev, const char *name, const char *member,
                         tl_buf *out, bool *found)
{
    const tl_stdlib_file *lib = tl_stdlib_files;
    tl_status st = TL_OK;
    tl_buf near;

    *found = false;
    while (lib->name != NULL && strcmp(lib->name, name) != 0) {
        lib++;
    }
    if (lib->name == NULL) {
        return TL_OK;
    }
    if (member == NULL) {
        tl_buf_printf(out, "import %s\n", name);
    }
    tl_buf_init(&near);
    for (; lib->name != NULL && is_part(lib->name, name) && st == TL_OK;
         lib++) {
        st = add_file(ev, lib, member, out, &near, found);
    }
    if (!*found && near.len > 0) {
        tl_buf_printf(out, "%s.%s", name, tl_buf_str(&near));
    }
    tl_buf_fini(&near);
    return st;
}
