/* complete_find.c - what names and fields mean, without evaluating anything,
 * and the signature of what can be called. */
#include <stdlib.h>
#include <string.h>

#include "interp/builtin.h"
#include "interp/complete_impl.h"
#include "interp/record.h"

/* ---- what names mean --------------------------------------------------- */

tl_found tl_found_value(tl_value v)
{
    tl_found f = {.value = v};

    if (v.tag == TL_V_FN) {
        f.code = v.fn->code;
    } else if (v.tag == TL_V_CLASS) {
        f.code = v.cls->code;
    } else if (v.tag == TL_V_BUILTIN) {
        f.builtin = v.builtin;
    } else if (v.tag == TL_V_METHOD) {
        f.code = v.method->code;
        f.builtin = v.method->builtin;
        f.is_method = true;
    }
    return f;
}

tl_value tl_found_slot(tl_namespace *ns, const tl_sym *sym)
{
    int64_t slot = sym != NULL ? tl_globals_find(ns->names, sym) : -1;

    return slot >= 0 && (size_t)slot < ns->nslots ? ns->slots[slot]
                                                  : tl_empty();
}

bool tl_found_name(tl_eval *ev, tl_namespace *ns, const char *name,
                   size_t len, tl_found *out)
{
    const tl_sym *sym = tl_intern_find(ev->lang->names, name, len);
    tl_value v = tl_found_slot(ns, sym);
    const tl_builtin *b;

    if (v.tag != TL_V_EMPTY) {
        *out = tl_found_value(v);
        return true;
    }
    b = sym != NULL ? tl_builtin_find(ev, sym) : NULL;
    *out = (tl_found){.builtin = b};
    return b != NULL;
}

/* The code of a module's method, or NULL. */
static const tl_funcdef *method_code(const tl_fielddef *field)
{
    return field->decl != NULL && field->decl->kind == TL_AST_FN
               ? TL_AST(fn, field->decl)->func
               : NULL;
}

bool tl_found_field(tl_module *m, const tl_sym *sym, tl_found *out)
{
    int64_t i = tl_module_find(m, sym);

    if (i < 0) {
        return false;
    }
    tl_value v = m->fields[i];

    *out = tl_found_value(v.tag == TL_V_CELL ? v.cell->value : v);
    if (v.tag == TL_V_EMPTY) {
        out->code = method_code(&tl_module_def(m)->fields[i]);
        out->is_method = true;
    }
    return true;
}

/* The row "json.parse" of a group, or NULL. */
static const tl_builtin *find_member(const tl_builtin *group,
                                     const char *name, size_t len)
{
    size_t n = strlen(group->name);

    for (size_t i = 0; i < tl_builtin_nrows; i++) {
        const char *full = tl_builtin_rows[i].name;

        if (strncmp(full, group->name, n) == 0 && full[n] == '.' &&
            strlen(full + n + 1) == len &&
            memcmp(full + n + 1, name, len) == 0) {
            return &tl_builtin_rows[i];
        }
    }
    return NULL;
}

/* From what a path means so far to its next field. */
static bool step(tl_eval *ev, tl_found *f, const char *name, size_t len)
{
    const tl_sym *sym = tl_intern_find(ev->lang->names, name, len);
    tl_value v = f->value;
    const tl_builtin *b = NULL;

    if (f->builtin != NULL) {
        b = find_member(f->builtin, name, len);
        *f = (tl_found){.builtin = b};
        return b != NULL;
    }
    if (sym == NULL) {
        return false;
    }
    if (v.tag == TL_V_MODULE && tl_found_field(v.module, sym, f)) {
        return true;
    }
    if (v.tag == TL_V_NAMESPACE) {
        *f = tl_found_value(tl_found_slot(v.ns, sym));
        return f->value.tag != TL_V_EMPTY;
    }
    if (v.tag == TL_V_RECORD) {
        const tl_kids *params = &v.record->cls->code->params;

        for (uint32_t i = 0; i < params->len; i++) {
            if (TL_AST(param, params->items[i])->name == sym) {
                *f = tl_found_value(v.record->fields[i]);
                return true;
            }
        }
    }
    b = v.tag != TL_V_EMPTY ? tl_builtin_method(ev, v.tag, sym) : NULL;
    *f = (tl_found){.builtin = b, .is_method = true};
    return b != NULL;
}

/* [12] of a list or tuple. */
static bool step_index(tl_found *f, const char *digits)
{
    size_t i = strtoul(digits, NULL, 10);

    if ((f->value.tag != TL_V_LIST && f->value.tag != TL_V_TUPLE) ||
        i >= f->value.seq->len) {
        return false;
    }
    *f = tl_found_value(f->value.seq->items[i]);
    return true;
}

bool tl_complete_find(tl_eval *ev, tl_namespace *ns, const char *path,
                      size_t len, tl_found *out)
{
    size_t i = 0, n = 0;

    while (n < len && strchr(".[", path[n]) == NULL) {
        n++;
    }
    *out = (tl_found){.value = tl_empty()};
    if (n == 0 || !tl_found_name(ev, ns, path, n, out)) {
        return false;
    }
    for (i = n; i < len; i += n) {
        bool index = path[i] == '[';

        i++;
        n = 0;
        while (i + n < len && strchr(".[", path[i + n]) == NULL) {
            n++;
        }
        if (!(index ? step_index(out, path + i)
                    : step(ev, out, path + i, n))) {
            return false;
        }
    }
    return true;
}

/* ---- signatures -------------------------------------------------------- */

/* The parentheses in a function's head, on one line. */
static void add_head(tl_eval *ev, const tl_funcdef *fn, tl_buf *out)
{
    const tl_source *src = tl_sources_get(ev->lang->sources,
                                          fn->node->span.file);
    uint32_t i = fn->node->span.start, end = fn->node->span.end;
    int depth = 0;
    bool blank = false;

    end = fn->body != NULL ? fn->body->span.start : end;
    while (src != NULL && i < end && i < src->len && src->text[i] != '(') {
        i++;
    }
    for (; src != NULL && i < end && i < src->len; i++) {
        char c = src->text[i];
        bool space = c == '\n' || c == ' ';

        depth += (c == '(') - (c == ')');
        if (!space || !blank) {
            tl_buf_putc(out, space ? ' ' : c);
        }
        blank = space;
        if (depth == 0) {
            return;
        }
    }
    tl_buf_puts(out, "()");
}

bool tl_complete_signature(tl_eval *ev, const tl_found *f, tl_buf *out)
{
    if (f->builtin != NULL) {
        const char *sig = f->builtin->signature;

        if (*sig == '=' || *sig == '@' ||
            (f->builtin->fn == NULL && *sig == '\0')) {
            return false;
        }
        if (f->is_method) { /* its first parameter is the object */
            sig += strcspn(sig, ",");
            sig += strspn(sig, ", ");
        }
        tl_buf_printf(out, "(%s)", sig);
        return true;
    }
    if (f->code != NULL) {
        add_head(ev, f->code, out);
        return true;
    }
    return false;
}
