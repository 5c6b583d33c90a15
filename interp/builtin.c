/* builtin.c - the tables of built-in functions and methods, and calling one.
 *
 * Rows come from builtin.def.  A context has one map from names to functions
 * and one for the methods of each type; signatures are parsed at the first
 * call of their row. */
#include "interp/builtin.h"

#include <stdio.h>
#include <string.h>

#include "interp/builtin_fns.h"
#include "interp/domain.h"
#include "interp/graph_grow.h"
#include "interp/signature.h"
#include "interp/sym.h"
#include "runtime/base/check.h"
#include "runtime/base/mem.h"

#define BUILTIN(name, sig, fn, fx, doc)                                      \
    {#name, sig, fn, fx, TL_V_NONE, doc, TL_OP_COUNT},
#define METHOD(tag, name, sig, fn, fx, doc)                                  \
    {#name, sig, fn, fx, tag, doc, TL_OP_COUNT},
#define OPFN(name, op, sig, fn, fx, doc)                                     \
    {#name, sig, fn, fx, TL_V_NONE, doc, TL_OP_##op},
#define OPMETHOD(name, op, sig, fn, fx, doc)                                 \
    {#name, sig, fn, fx, TL_V_TENSOR, doc, TL_OP_##op},

const tl_builtin tl_builtin_rows[] = {
#include "interp/builtin.def"
};

const size_t tl_builtin_nrows =
    sizeof(tl_builtin_rows) / sizeof(*tl_builtin_rows);

#define NROWS (sizeof(tl_builtin_rows) / sizeof(*tl_builtin_rows))

struct tl_builtin_table {
    tl_map
        by_name[TL_V_TAG_COUNT]; /* tl_sym * -> row; functions under NONE */
    const char **names[TL_V_TAG_COUNT];
    size_t nnames[TL_V_TAG_COUNT];
    tl_signature *signatures[NROWS]; /* NULL until used */
    tl_value constants[NROWS];       /* EMPTY until used */
};

/* ---- tables ------------------------------------------------------------ */

static tl_tag table_of(tl_tag tag)
{
    return tag == TL_V_NODE ? TL_V_TENSOR : tag;
}

static tl_status add_row(tl_eval *ev, const tl_builtin *row)
{
    struct tl_builtin_table *t = ev->builtins;
    const tl_sym *sym =
        tl_intern_get(ev->lang->names, row->name, strlen(row->name));

    if (sym == NULL ||
        !tl_map_set(&t->by_name[row->tag], sym, (void *)(uintptr_t)row)) {
        return tl_fail_memory(ev->diag, "table of built-in functions", 0);
    }
    return TL_OK;
}

/* The arrays of names; a member such as json.parse is not a name. */
static tl_status list_names(tl_eval *ev, tl_tag tag)
{
    struct tl_builtin_table *t = ev->builtins;
    size_t n = t->by_name[tag].live;

    if (n == 0) {
        return TL_OK;
    }
    t->names[tag] = tl_calloc(n, sizeof(char *));
    if (t->names[tag] == NULL) {
        return tl_fail_memory(ev->diag, "names", n * sizeof(char *));
    }
    for (size_t i = 0; i < NROWS; i++) {
        const tl_builtin *row = &tl_builtin_rows[i];

        if (row->tag == tag && strchr(row->name, '.') == NULL &&
            t->nnames[tag] < n) {
            t->names[tag][t->nnames[tag]++] = row->name;
        }
    }
    return TL_OK;
}

static tl_status fill(tl_eval *ev)
{
    for (size_t i = 0; i < NROWS; i++) {
        TL_TRY(add_row(ev, &tl_builtin_rows[i]));
    }
    for (int tag = 0; tag < TL_V_TAG_COUNT; tag++) {
        TL_TRY(list_names(ev, (tl_tag)tag));
    }
    return TL_OK;
}

tl_status tl_builtins_init(tl_eval *ev)
{
    tl_status st;

    ev->builtins = tl_calloc(1, sizeof(*ev->builtins));
    if (ev->builtins == NULL) {
        return tl_fail_memory(ev->diag, "table of built-in functions",
                              sizeof(*ev->builtins));
    }
    for (int tag = 0; tag < TL_V_TAG_COUNT; tag++) {
        tl_map_init(&ev->builtins->by_name[tag]);
    }
    st = fill(ev);
    if (st != TL_OK) {
        tl_builtins_fini(ev);
    }
    return st;
}

void tl_builtins_fini(tl_eval *ev)
{
    struct tl_builtin_table *t = ev->builtins;

    if (t == NULL) {
        return;
    }
    for (int tag = 0; tag < TL_V_TAG_COUNT; tag++) {
        tl_map_fini(&t->by_name[tag]);
        tl_free(t->names[tag]);
    }
    for (size_t i = 0; i < NROWS; i++) {
        tl_signature_free(t->signatures[i]);
        tl_unref(t->constants[i]);
    }
    tl_free(t);
    ev->builtins = NULL;
}

const tl_builtin *tl_builtin_find(tl_eval *ev, const tl_sym *name)
{
    return tl_map_get(&ev->builtins->by_name[TL_V_NONE], name, NULL);
}

const tl_builtin *tl_builtin_method(tl_eval *ev, tl_tag tag,
                                    const tl_sym *name)
{
    if (tag == TL_V_NONE) {
        return NULL;
    }
    return tl_map_get(&ev->builtins->by_name[table_of(tag)], name, NULL);
}

const char *const *tl_builtin_names(tl_eval *ev, tl_tag tag, size_t *n)
{
    tag = table_of(tag);
    *n = ev->builtins->nnames[tag];
    return ev->builtins->names[tag];
}

/* ---- names as values --------------------------------------------------- */

/* The value of a LIBRARY row: what the file of the library calls so. */
static tl_status library_value(tl_eval *ev, const tl_builtin *b, tl_value *out)
{
    const tl_sym *name = tl_intern_get(ev->lang->names, b->name,
                                       strlen(b->name));
    tl_namespace *ns = NULL;

    if (name == NULL) {
        return tl_fail_memory(ev->diag, "a name", strlen(b->name));
    }
    TL_TRY(tl_eval_import_library(ev, b->signature + 1, &ns));
    return tl_eval_attr(ev, (tl_value){.tag = TL_V_NAMESPACE, .ns = ns}, name,
                        out);
}

tl_status tl_builtin_value(tl_eval *ev, const tl_builtin *b, tl_value *out)
{
    if (b->signature[0] == '@') {
        return library_value(ev, b, out);
    }
    if (b->signature[0] == '=') {
        tl_value *slot = &ev->builtins->constants[b - tl_builtin_rows];
        const char *text = b->signature + 1;

        if (slot->tag == TL_V_EMPTY) {
            TL_TRY(tl_signature_literal(ev, text, strlen(text), slot));
        }
        *out = tl_ref(*slot);
        return TL_OK;
    }
    *out = (tl_value){.tag = TL_V_BUILTIN, .builtin = b};
    return TL_OK;
}

/* The name of row `row` behind "prefix.", or NULL. */
static const char *member_name(const tl_builtin *row, const char *prefix)
{
    size_t n = strlen(prefix);

    if (row->tag != TL_V_NONE || strncmp(row->name, prefix, n) != 0 ||
        row->name[n] != '.') {
        return NULL;
    }
    return row->name + n + 1;
}

/* Names of the members of `b`; returns how many there are. */
static size_t members(const tl_builtin *b, const char **names, size_t most)
{
    size_t n = 0;

    for (size_t i = 0; i < NROWS && n < most; i++) {
        const char *name = member_name(&tl_builtin_rows[i], b->name);

        if (name != NULL) {
            names[n++] = name;
        }
    }
    return n;
}

#define MAX_MEMBERS 64

static tl_status no_member(tl_eval *ev, const tl_builtin *b, const char *name)
{
    const char *names[MAX_MEMBERS];
    const char *near;
    size_t n = members(b, names, MAX_MEMBERS);

    (void)tl_fail(ev->diag, TL_E0211, "%s has no `%s`",
                  n == 0 ? "a function" : b->name, name);
    near = tl_nearest(name, names, n);
    if (near != NULL) {
        tl_diag_help(ev->diag, "%s", near);
    }
    return TL_ERR_PROGRAM;
}

tl_status tl_builtin_attr(tl_eval *ev, const tl_builtin *b,
                          const tl_sym *name, tl_value *out)
{
    char full[128];
    int n = snprintf(full, sizeof(full), "%s.%s", b->name, name->text);
    const tl_builtin *row = NULL;
    const tl_sym *sym;

    if (n > 0 && n < (int)sizeof(full)) {
        sym = tl_intern_find(ev->lang->names, full, (size_t)n);
        row = sym == NULL ? NULL : tl_builtin_find(ev, sym);
    }
    if (row == NULL) {
        return no_member(ev, b, name->text);
    }
    return tl_builtin_value(ev, row, out);
}

/* ---- calls ------------------------------------------------------------- */

tl_status tl_bi_none(tl_eval *ev, const tl_builtin *self, tl_value *args,
                     tl_value *out)
{
    const char *names[MAX_MEMBERS];

    (void)args;
    (void)out;
    (void)tl_fail(ev->diag, TL_E0206, "`%s` cannot be called", self->name);
    if (members(self, names, MAX_MEMBERS) > 0) {
        tl_diag_help(ev->diag, "%s.%s", self->name, names[0]);
    }
    return TL_ERR_PROGRAM;
}

static tl_status signature_of(tl_eval *ev, const tl_builtin *b,
                              tl_signature **out)
{
    tl_signature **slot = &ev->builtins->signatures[b - tl_builtin_rows];

    if (*slot == NULL) {
        TL_TRY(tl_signature_parse(slot, ev, b->signature));
    }
    *out = *slot;
    return TL_OK;
}

/* May a function with an effect run now?  If not, its result is set. */
static tl_status ask_effect(tl_eval *ev, const tl_builtin *b, bool *perform,
                            tl_value *out)
{
    bool print = (b->effects & TL_FX_PRINT) != 0;

    TL_TRY(
        ev->domain->effect(ev, print ? TL_HOST_PRINT : TL_HOST_IO, perform));
    if (!*perform) {
        *out = print ? tl_none() : tl_unknown();
    }
    return TL_OK;
}

static tl_status run(tl_eval *ev, const tl_builtin *b, tl_value *vals,
                     bool unknown, tl_value *out)
{
    if ((b->effects & (TL_FX_HOST | TL_FX_PRINT)) != 0) {
        bool perform = true;

        TL_TRY(ask_effect(ev, b, &perform, out));
        if (!perform) {
            return TL_OK;
        }
    }
    if (unknown && tl_is_tracing(ev)) {
        bool done;
        tl_status st = tl_grow_call(ev, b, vals, out, &done);

        if (st != TL_OK || done) {
            return st;
        }
    }
    if (unknown && (b->effects & TL_FX_UNKNOWN) == 0) {
        *out = tl_unknown();
        return TL_OK;
    }
    return b->fn(ev, b, vals, out);
}

/* In a trace: what a function does not take as a symbol is read. */
static tl_status read_symbols(tl_eval *ev, const tl_builtin *b,
                              tl_value *self, tl_args *args)
{
    if (!tl_is_tracing(ev) || (b->effects & TL_FX_SYMBOLS) != 0) {
        return TL_OK;
    }
    TL_TRY(tl_sym_read_deep(ev, self));
    for (size_t i = 0; i < args->npos; i++) {
        TL_TRY(tl_sym_read_deep(ev, &args->pos[i]));
    }
    for (size_t i = 0; i < args->nkw; i++) {
        TL_TRY(tl_sym_read_deep(ev, &args->kw[i]));
    }
    return TL_OK;
}

tl_status tl_builtin_call(tl_eval *ev, const tl_builtin *b, tl_value self,
                          tl_args *args, tl_value *out)
{
    tl_value vals[TL_MAX_PARAMS];
    tl_signature *sig = NULL;
    bool unknown;
    tl_status st = b->fn == tl_bi_none ? b->fn(ev, b, NULL, out)
                                       : signature_of(ev, b, &sig);

    if (st == TL_OK) {
        st = read_symbols(ev, b, &self, args);
    }
    if (st != TL_OK) {
        tl_unref(self);
        return st;
    }
    st = tl_signature_bind(ev, sig, b->name, self, args, vals, &unknown);
    if (st == TL_OK) {
        const tl_args *outer = ev->call_args;

        ev->call_args = args;
        st = run(ev, b, vals, unknown, out);
        ev->call_args = outer;
    }
    if (st != TL_OK) {
        tl_diag_at(ev->diag, args->span);
    }
    tl_unref_all(vals, sig->nparams);
    return st;
}
