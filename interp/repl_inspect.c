/* repl_inspect.c - commands of the prompt that tell what there is: :type,
 * :shape, :who, :mem, :explain, and :undo. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "interp/builtin.h"
#include "interp/complete.h"
#include "interp/dict.h"
#include "interp/module.h"
#include "interp/repl.h"
#include "runtime/base/mem.h"

enum {
    LARGE = 16 << 20, /* bytes: larger values are not kept for :undo */
    MOST_SHOWN = 12
};

/* ---- bytes --------------------------------------------------------------- */

static size_t tensor_bytes(tl_value v)
{
    return v.tag == TL_V_TENSOR ? (size_t)v.tensor->numel *
                                      tl_dtype_size(v.tensor->dtype)
                                : 0;
}

static size_t module_bytes(const tl_module *m, int depth)
{
    const tl_moddef *def = tl_module_def(m);
    size_t bytes = 0;

    for (uint32_t i = 0; i < def->nfields && depth < 32; i++) {
        tl_value v = m->fields[i];

        if (tl_field_is_referred(&def->fields[i])) {
            continue;
        }
        bytes += v.tag == TL_V_CELL     ? tl_repl_bytes(v.cell->value)
                 : v.tag == TL_V_MODULE ? module_bytes(v.module, depth + 1)
                                        : tl_repl_bytes(v);
    }
    return bytes;
}

size_t tl_repl_bytes(tl_value v)
{
    size_t bytes = tensor_bytes(v), at = 0;

    if (v.tag == TL_V_MODULE) {
        return module_bytes(v.module, 0);
    }
    if (v.tag == TL_V_LIST || v.tag == TL_V_TUPLE) {
        for (size_t i = 0; i < v.seq->len; i++) {
            bytes += v.seq->items[i].tag == TL_V_MODULE
                         ? module_bytes(v.seq->items[i].module, 0)
                         : tensor_bytes(v.seq->items[i]);
        }
    }
    if (v.tag == TL_V_DICT) {
        for (tl_dict_entry *e; (e = tl_dict_next(v.dict, &at)) != NULL;) {
            bytes += tensor_bytes(e->value);
        }
    }
    return bytes;
}

void tl_repl_put_bytes(tl_buf *out, size_t bytes)
{
    static const char *const units[] = {"B", "kB", "MB", "GB", "TB"};
    double x = (double)bytes;
    int unit = 0;

    while (x >= 1000 && unit < 4) {
        x /= 1000;
        unit++;
    }
    tl_buf_printf(out, unit == 0 || x >= 100 ? "%.0f %s" : "%.1f %s", x,
                  units[unit]);
}

/* ---- :type, :shape ------------------------------------------------------- */

static void print_effects(unsigned effects)
{
    static const char *const names[] = {"rng", "state", "host",
                                        "unknown calls"};

    printf("effects:");
    for (int i = 0; i < 4; i++) {
        if (effects & (1u << i)) {
            printf(" %s", names[i]);
        }
    }
    printf("%s\n", effects == 0 ? " none" : "");
}

/* The text of a function's head, from its name to the end of its types. */
static void print_head(tl_repl *r, const tl_funcdef *fn)
{
    const tl_source *src =
        tl_sources_get(&r->s->sources, fn->node->span.file);
    uint32_t from = fn->node->span.start;
    uint32_t to = fn->body != NULL ? fn->body->span.start : from;

    if (src == NULL || to > src->len) {
        return;
    }
    while (to > from && strchr(" \t\n:=", src->text[to - 1]) != NULL) {
        to--;
    }
    printf("%.*s\n", (int)(to - from), src->text + from);
}

void tl_repl_type(tl_repl *r, const char *expr)
{
    tl_value v = tl_none();
    bool incomplete = false;
    tl_status st = tl_eval_text(&r->s->ev, r->ns, "<repl>", expr,
                                strlen(expr), &v, &incomplete);

    if (st == TL_OK && incomplete) {
        st = tl_fail(&r->s->diag, TL_E0720, "`%s` is not complete", expr);
    } else if (st == TL_OK && v.tag == TL_V_FN) {
        print_head(r, v.fn->code);
        print_effects(v.fn->code->effects);
    } else if (st == TL_OK && v.tag == TL_V_CLASS) {
        print_head(r, v.cls->code);
    } else if (st == TL_OK && v.tag == TL_V_BUILTIN) {
        printf("%s(%s)\n", v.builtin->name, v.builtin->signature);
        print_effects(v.builtin->effects & 7u);
    } else if (st == TL_OK) {
        printf("%s\n", tl_value_type_str(v).s);
    }
    tl_unref(v);
    tl_repl_report(r, st);
}

void tl_repl_shape(tl_repl *r, const char *expr)
{
    tl_value v = tl_none();
    tl_status st = tl_eval_shape_text(&r->s->ev, r->ns, "<repl>", expr,
                                      strlen(expr), &v);

    if (st == TL_OK) {
        printf("%s\n", v.tag == TL_V_UNKNOWN ? "only a run can tell"
                                             : tl_value_type_str(v).s);
    }
    tl_unref(v);
    tl_repl_report(r, st);
}

/* ---- :who, :mem ---------------------------------------------------------- */

/* Is it the prompt's own name? */
static bool is_own(const tl_repl *r, const char *name, tl_value v)
{
    const tl_value *own = strcmp(name, "ans") == 0   ? &r->ans
                          : strcmp(name, "out") == 0 ? &r->out
                                                     : NULL;

    return own != NULL && own->tag == v.tag &&
           (v.tag < TL_V_TENSOR || own->obj == v.obj);
}

static int name_width(tl_repl *r)
{
    int width = 4;

    for (size_t i = 0; i < r->ns->nslots && i < r->ns->names->names.len;
         i++) {
        int n = (int)strlen(r->ns->names->names.items[i]->text);

        if (r->ns->slots[i].tag != TL_V_EMPTY && n > width) {
            width = n;
        }
    }
    return width < 24 ? width : 24;
}

void tl_repl_who(tl_repl *r, const char *arg)
{
    int width = name_width(r);
    bool any = false;

    (void)arg;
    for (size_t i = 0; i < r->ns->nslots && i < r->ns->names->names.len;
         i++) {
        const char *name = r->ns->names->names.items[i]->text;
        tl_value v = r->ns->slots[i];
        tl_buf bytes;

        if (v.tag == TL_V_EMPTY || is_own(r, name, v)) {
            continue;
        }
        tl_buf_init(&bytes);
        if (tl_repl_bytes(v) > 0) {
            tl_repl_put_bytes(&bytes, tl_repl_bytes(v));
        }
        printf("%-*s  %-20s %s\n", width, name, tl_value_type_str(v).s,
               tl_buf_str(&bytes));
        tl_buf_fini(&bytes);
        any = true;
    }
    if (!any) {
        printf("no names yet\n");
    }
}

typedef struct sized {
    const char *name;
    size_t bytes;
} sized;

static int larger_first(const void *a, const void *b)
{
    const sized *x = a, *y = b;

    return (x->bytes < y->bytes) - (x->bytes > y->bytes);
}

static void print_bytes(const char *what, size_t bytes)
{
    tl_buf text;

    tl_buf_init(&text);
    tl_repl_put_bytes(&text, bytes);
    printf("%-16s %s\n", what, tl_buf_str(&text));
    tl_buf_fini(&text);
}

void tl_repl_mem(tl_repl *r, const char *arg)
{
    tl_pool_stats stats;
    sized *rows = tl_calloc(r->ns->nslots + 1, sizeof(*rows));
    size_t n = 0;

    (void)arg;
    tl_pool_get_stats(r->s->rt.pool, &stats);
    print_bytes("in tensors", stats.live);
    print_bytes("at most so far", stats.peak);
    print_bytes("kept for reuse", stats.cached);
    for (size_t i = 0;
         rows != NULL && i < r->ns->nslots && i < r->ns->names->names.len;
         i++) {
        size_t bytes = tl_repl_bytes(r->ns->slots[i]);

        if (bytes > 0) {
            rows[n++] =
                (sized){r->ns->names->names.items[i]->text, bytes};
        }
    }
    if (n > 0) {
        qsort(rows, n, sizeof(*rows), larger_first);
        printf("by name:\n");
    }
    for (size_t i = 0; i < n && i < MOST_SHOWN; i++) {
        printf("  ");
        print_bytes(rows[i].name, rows[i].bytes);
    }
    tl_free(rows);
}

/* ---- :explain ------------------------------------------------------------ */

static bool is_code(const char *s)
{
    return (*s == 'E' || *s == 'W' || *s == 'e' || *s == 'w') &&
           strspn(s + 1, "0123456789") == strlen(s + 1) && s[1] != '\0';
}

void tl_repl_explain(tl_repl *r, const char *what)
{
    tl_buf text;
    size_t n = strlen(what);
    const char *paren = strchr(what, '(');

    if (*what == '\0' && r->last_error == TL_CODE_NONE) {
        printf("there was no error; :explain E0302 tells about a code\n");
        return;
    }
    if (*what == '\0' || is_code(what)) {
        char code[16];

        snprintf(code, sizeof(code), "%s",
                 *what == '\0' ? tl_code_name(r->last_error) : what);
        code[0] = (char)(code[0] & ~32);
        r->exit_code = tl_cmd_explain(r->s, code);
        return;
    }
    if (paren == NULL || what[n - 1] != ')') {
        tl_repl_report(r, tl_fail(&r->s->diag, TL_E0720,
                                  ":explain takes a code as E0302, or a call "
                                  "of a compiled function, f(x)"));
        return;
    }
    tl_buf_init(&text); /* f(x): print(explain(f, x)) */
    tl_buf_printf(&text, "print(explain(%.*s, %s)", (int)(paren - what), what,
                  paren + 1);
    tl_repl_run(r, tl_buf_str(&text), text.len);
    tl_buf_fini(&text);
}

/* ---- :undo --------------------------------------------------------------- */

static void drop(tl_repl_names *names)
{
    for (size_t i = 0; i < names->len; i++) {
        tl_unref(names->items[i].value);
    }
    tl_free(names->items);
    *names = (tl_repl_names){0};
}

void tl_repl_undo_drop(tl_repl *r)
{
    drop(&r->was);
    drop(&r->next);
}

void tl_repl_undo_keep(tl_repl *r)
{
    size_t n = r->ns->nslots;

    drop(&r->next);
    r->next.items = tl_calloc(n + 1, sizeof(*r->next.items));
    if (r->next.items == NULL) {
        return;
    }
    r->next.len = n;
    r->next.there = true;
    for (size_t i = 0; i < n; i++) {
        tl_value v = r->ns->slots[i];
        bool large = v.tag != TL_V_MODULE && tl_repl_bytes(v) > LARGE;

        r->next.items[i].value = large ? tl_empty() : tl_ref(v);
        r->next.items[i].large = large ? v.obj : NULL;
    }
}

/* Is the name as it was? */
static bool unchanged(const tl_repl_names *names, size_t i, tl_value now)
{
    tl_value old = i < names->len ? names->items[i].value : tl_empty();

    if (i < names->len && names->items[i].large != NULL) {
        return now.tag >= TL_V_TENSOR && now.obj == names->items[i].large;
    }
    return old.tag == now.tag &&
           (old.tag == TL_V_EMPTY || old.tag == TL_V_NONE || old.i == now.i);
}

/* Slots that have a name: one is left without when an entry fails. */
static size_t named(const tl_repl *r)
{
    return r->ns->nslots < r->ns->names->names.len ? r->ns->nslots
                                                   : r->ns->names->names.len;
}

static bool is_prompts(tl_repl *r, size_t i)
{
    return is_own(r, r->ns->names->names.items[i]->text, r->ns->slots[i]);
}

void tl_repl_undo_commit(tl_repl *r)
{
    bool changed = false;

    for (size_t i = 0; r->next.there && i < named(r) && !changed; i++) {
        changed = !is_prompts(r, i) &&
                  !unchanged(&r->next, i, r->ns->slots[i]);
    }
    if (changed) {
        drop(&r->was);
        r->was = r->next;
        r->next = (tl_repl_names){0};
    } else {
        drop(&r->next);
    }
}

void tl_repl_undo(tl_repl *r, const char *arg)
{
    (void)arg;
    if (!r->was.there) {
        printf("nothing to undo\n");
        return;
    }
    for (size_t i = 0; i < named(r); i++) {
        const char *name = r->ns->names->names.items[i]->text;
        tl_value old =
            i < r->was.len ? r->was.items[i].value : tl_empty();

        if (is_prompts(r, i) ||
            unchanged(&r->was, i, r->ns->slots[i])) {
            continue;
        }
        if (i < r->was.len && r->was.items[i].large != NULL) {
            printf("%s was too large to be kept\n", name);
            continue;
        }
        printf("%s %s\n", name,
               old.tag == TL_V_EMPTY ? "is undefined again"
                                     : "is what it was");
        tl_unref(r->ns->slots[i]);
        r->ns->slots[i] = tl_ref(old);
    }
    drop(&r->was);
}
