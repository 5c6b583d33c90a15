/* complete.c - candidates for what is being typed. */
#include <stdlib.h>
#include <string.h>

#include "interp/builtin.h"
#include "interp/complete_impl.h"
#include "interp/record.h"
#include "interp/stdlib.h"
#include "runtime/base/mem.h"

/* ---- the list ---------------------------------------------------------- */

static void add_noted(tl_request *r, const char *text, const char *after,
                      const char *note)
{
    tl_completion *c = r->out;

    if (strncmp(text, r->word, r->len) != 0) {
        return;
    }
    if (c->len == c->cap) {
        size_t cap = c->cap > 0 ? 2 * c->cap : 64;
        tl_candidate *items = tl_realloc(c->items, cap * sizeof(*items));

        if (items == NULL) {
            return;
        }
        c->items = items;
        c->cap = cap;
    }
    char *copy = tl_arena_strndup(&c->arena, text, strlen(text));

    if (copy != NULL) {
        c->items[c->len++] = (tl_candidate){copy, after, note};
    }
}

void tl_complete_add(tl_request *r, const char *text, const char *after)
{
    add_noted(r, text, after, NULL);
}

/* A name with what it means: functions get their signature and a "(". */
static void add_found(tl_request *r, const char *name, const tl_found *f)
{
    tl_buf note;
    char *kept = NULL;

    if (strncmp(name, r->word, r->len) != 0) {
        return;
    }
    tl_buf_init(&note);
    bool called = tl_complete_signature(r->ev, f, &note);

    if (called && !note.failed) {
        kept = tl_arena_strndup(&r->out->arena, tl_buf_str(&note), note.len);
    }
    tl_buf_fini(&note);
    add_noted(r, name, called ? "(" : "", kept);
}

static int by_text(const void *a, const void *b)
{
    const tl_candidate *x = a, *y = b;

    return strcmp(x->text, y->text);
}

static void sort(tl_completion *c)
{
    size_t n = 0;

    if (c->len > 0) {
        qsort(c->items, c->len, sizeof(*c->items), by_text);
    }
    for (size_t i = 0; i < c->len; i++) {
        if (n == 0 || strcmp(c->items[n - 1].text, c->items[i].text) != 0) {
            c->items[n++] = c->items[i];
        }
    }
    c->len = n;
}

size_t tl_completion_common(const tl_completion *c)
{
    size_t n = c->len > 0 ? strlen(c->items[0].text) : 0;

    for (size_t i = 1; i < c->len; i++) {
        size_t k = 0;

        while (k < n && c->items[i].text[k] == c->items[0].text[k]) {
            k++;
        }
        n = k;
    }
    while (n > 0 && c->len > 1 &&
           (c->items[0].text[n] & 0xc0) == 0x80) { /* whole characters */
        n--;
    }
    return n;
}

void tl_completion_fini(tl_completion *c)
{
    tl_arena_fini(&c->arena);
    tl_free(c->items);
}

/* ---- candidates -------------------------------------------------------- */

static void add_builtins(tl_request *r)
{
    size_t n = 0;
    const char *const *names = tl_builtin_names(r->ev, TL_V_NONE, &n);

    for (size_t i = 0; i < n; i++) {
        tl_found f;

        if (strchr(names[i], '.') == NULL &&
            tl_found_name(r->ev, r->ns, names[i], strlen(names[i]), &f)) {
            add_found(r, names[i], &f);
        }
    }
}

static void add_top_level(tl_request *r)
{
    static const char *const words[] = {
#define KEYWORD(text, TOKEN) text,
#define SOFT(text, TOKEN) text,
#include "lang/keywords.def"
    };

    for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
        tl_complete_add(r, words[i], "");
    }
    for (size_t i = 0; i < r->ns->names->names.len; i++) {
        const tl_sym *sym = r->ns->names->names.items[i];
        tl_found f = tl_found_value(tl_found_slot(r->ns, sym));

        if (f.value.tag != TL_V_EMPTY) {
            add_found(r, sym->text, &f);
        }
    }
    add_builtins(r);
}

static void add_methods(tl_request *r, tl_tag tag)
{
    static const char *const tensor[] = {"shape", "dtype", "size", "T"};
    size_t n = 0;
    const char *const *names = tl_builtin_names(r->ev, tag, &n);

    for (size_t i = 0; i < n; i++) {
        const tl_sym *sym = tl_intern_find(r->ev->lang->names, names[i],
                                           strlen(names[i]));
        tl_found f = {.builtin = sym != NULL
                                     ? tl_builtin_method(r->ev, tag, sym)
                                     : NULL,
                      .is_method = true};

        if (f.builtin != NULL) {
            add_found(r, names[i], &f);
        }
    }
    for (size_t i = 0; tag == TL_V_TENSOR && i < 4; i++) {
        tl_complete_add(r, tensor[i], "");
    }
}

/* Names of a file, without those that start with _. */
static void add_namespace(tl_request *r, tl_namespace *ns)
{
    for (size_t i = 0; i < ns->names->names.len; i++) {
        const tl_sym *sym = ns->names->names.items[i];
        tl_found f = tl_found_value(tl_found_slot(ns, sym));

        if (f.value.tag != TL_V_EMPTY &&
            (sym->text[0] != '_' || r->len > 0)) {
            add_found(r, sym->text, &f);
        }
    }
}

static void add_module(tl_request *r, tl_module *m)
{
    const tl_moddef *def = tl_module_def(m);

    for (uint32_t i = 0; i < def->nfields; i++) {
        tl_found f;

        if (def->fields[i].name->text[0] == '_' && r->len == 0) {
            continue;
        }
        if (tl_found_field(m, def->fields[i].name, &f)) {
            add_found(r, def->fields[i].name->text, &f);
        }
    }
    add_methods(r, TL_V_MODULE);
}

static void add_members(tl_request *r, const tl_builtin *group)
{
    size_t n = strlen(group->name);

    for (size_t i = 0; i < tl_builtin_nrows; i++) {
        const tl_builtin *b = &tl_builtin_rows[i];

        if (strncmp(b->name, group->name, n) == 0 && b->name[n] == '.') {
            tl_found f = {.builtin = b};

            add_found(r, b->name + n + 1, &f);
        }
    }
}

static void add_imported(tl_request *r, const char *module, size_t len);

/* Is it the name of a file of the library? */
static bool is_library(const char *name, size_t len)
{
    for (size_t i = 0; i < tl_stdlib_count; i++) {
        if (strlen(tl_stdlib_files[i].name) == len &&
            memcmp(tl_stdlib_files[i].name, name, len) == 0) {
            return true;
        }
    }
    return false;
}

/* Behind a dot; what would have to be computed is most likely a tensor. */
static void add_fields(tl_request *r, const tl_place *p)
{
    tl_found f;
    size_t end = p->start - 1;
    const char *path = r->text + p->path;

    if (is_library(path, end - p->path)) {
        add_imported(r, path, end - p->path);
    } else if (p->path == end ||
               !tl_complete_find(r->ev, r->ns, path, end - p->path, &f)) {
        bool quoted = end > 0 && strchr("\"'", r->text[end - 1]) != NULL;

        add_methods(r, quoted ? TL_V_STR : TL_V_TENSOR);
    } else if (f.builtin != NULL) {
        add_members(r, f.builtin);
    } else if (f.value.tag == TL_V_MODULE) {
        add_module(r, f.value.module);
    } else if (f.value.tag == TL_V_NAMESPACE) {
        add_namespace(r, f.value.ns);
    } else {
        if (f.value.tag == TL_V_RECORD) {
            const tl_kids *params = &f.value.record->cls->code->params;

            for (uint32_t i = 0; i < params->len; i++) {
                const tl_ast_param *q = TL_AST(param, params->items[i]);

                tl_complete_add(r, q->name->text, "");
            }
        }
        add_methods(r, f.value.tag == TL_V_EMPTY ? TL_V_TENSOR
                                                 : f.value.tag);
    }
}

/* Keywords of a built-in: the names in its signature. */
static void add_builtin_keywords(tl_request *r, const char *sig)
{
    while (*sig != '\0') {
        char name[64];
        size_t n = strspn(sig, "abcdefghijklmnopqrstuvwxyz_0123456789");
        int depth = 0;

        if (n > 0 && n < sizeof(name)) {
            memcpy(name, sig, n);
            name[n] = '\0';
            tl_complete_add(r, name, "=");
        }
        for (; *sig != '\0' && (*sig != ',' || depth > 0); sig++) {
            depth += (strchr("([", *sig) != NULL) -
                     (strchr(")]", *sig) != NULL);
        }
        sig += strspn(sig, ", ");
    }
}

/* Keyword arguments of the call around the cursor. */
static void add_keywords(tl_request *r, const tl_place *p)
{
    size_t from = tl_place_path(r->text, p->call);
    tl_found f;

    if (!tl_complete_find(r->ev, r->ns, r->text + from, p->call - from, &f)) {
        return;
    }
    if (f.value.tag == TL_V_MODULE) { /* net(x) is net.forward(x) */
        const tl_sym *sym = tl_intern_find(r->ev->lang->names, "forward", 7);

        if (sym == NULL || !tl_found_field(f.value.module, sym, &f)) {
            return;
        }
    }
    if (f.builtin != NULL) {
        const char *sig = f.builtin->signature;

        sig += f.is_method ? strcspn(sig, ",") : 0;
        add_builtin_keywords(r, sig + strspn(sig, ", "));
        return;
    }
    for (uint32_t i = 0; f.code != NULL && i < f.code->params.len; i++) {
        const tl_ast_param *q = TL_AST(param, f.code->params.items[i]);

        if (q->star == 0) {
            tl_complete_add(r, q->name->text, "=");
        }
    }
}

/* ---- modules, and what is not code ---------------------------------- */

/* What a text of the library defines at its top level. */
static void add_defined(tl_request *r, const char *text)
{
    static const char *const heads[] = {"fn ", "module ", "record "};

    for (const char *s = text; s != NULL; s = strchr(s + 1, '\n')) {
        const char *line = s + (*s == '\n');

        for (int i = 0; i < 3; i++) {
            size_t k = strlen(heads[i]), n;
            char name[64];

            if (strncmp(line, heads[i], k) != 0 || line[k] == '_') {
                continue;
            }
            n = strcspn(line + k, "(:[ \n");
            if (n < sizeof(name)) {
                memcpy(name, line + k, n);
                name[n] = '\0';
                tl_complete_add(r, name, "");
            }
        }
    }
}

/* `from m import`: names of m, if it has been imported. */
static void add_imported(tl_request *r, const char *module, size_t len)
{
    for (tl_namespace *ns = r->ev->all_ns; ns != NULL; ns = ns->next) {
        if (ns->name->len == len && memcmp(ns->name->data, module, len) == 0) {
            add_namespace(r, ns);
            return;
        }
    }
    for (size_t i = 0; i < tl_stdlib_count; i++) { /* or by its texts */
        const tl_stdlib_file *lib = &tl_stdlib_files[i];

        if (strncmp(lib->name, module, len) == 0 &&
            (lib->name[len] == '\0' || lib->name[len] == '.')) {
            add_defined(r, lib->text);
        }
    }
}

static bool starts(const char *s, size_t n, const char *word)
{
    size_t k = strlen(word);

    return n >= k && memcmp(s, word, k) == 0;
}

/* import a, from a import b.  False: the statement is neither. */
static bool add_import(tl_request *r, const tl_place *p)
{
    const char *s = r->text + p->statement;
    size_t n = r->cursor - p->statement;

    if (starts(s, n, "import ")) {
        tl_complete_modules(r);
        return true;
    }
    if (!starts(s, n, "from ")) {
        return false;
    }
    size_t len = strcspn(s + 5, " ");

    if (5 + len >= n) {
        tl_complete_modules(r);
    } else if (starts(s + 5 + len, n - 5 - len, " import ")) {
        add_imported(r, s + 5, len);
    } else {
        tl_complete_add(r, "import", " ");
    }
    return true;
}

static const struct {
    const char *name, *letter;
} letters[] = {
    {"\\alpha", "\316\261"},   {"\\beta", "\316\262"},
    {"\\gamma", "\316\263"},   {"\\delta", "\316\264"},
    {"\\epsilon", "\316\265"}, {"\\eta", "\316\267"},
    {"\\theta", "\316\270"},   {"\\lambda", "\316\273"},
    {"\\mu", "\316\274"},      {"\\nu", "\316\275"},
    {"\\pi", "\317\200"},      {"\\rho", "\317\201"},
    {"\\sigma", "\317\203"},   {"\\tau", "\317\204"},
    {"\\phi", "\317\206"},     {"\\chi", "\317\207"},
    {"\\psi", "\317\210"},     {"\\omega", "\317\211"},
    {"\\Delta", "\316\224"},   {"\\Sigma", "\316\243"},
    {"\\Omega", "\316\251"},   {"\\nabla", "\342\210\207"},
};

/* \alpha: a whole name becomes its letter, others are completed. */
static void add_letters(tl_request *r)
{
    for (size_t i = 0; i < sizeof(letters) / sizeof(*letters); i++) {
        if (strlen(letters[i].name) == r->len &&
            memcmp(letters[i].name, r->word, r->len) == 0) {
            r->len = 0;
            tl_complete_add(r, letters[i].letter, "");
            return;
        }
    }
    for (size_t i = 0; i < sizeof(letters) / sizeof(*letters); i++) {
        tl_complete_add(r, letters[i].name, "");
    }
}

static void set_word(tl_request *r, size_t start)
{
    r->out->start = start;
    r->word = r->text + start;
    r->len = r->cursor - start;
}

/* Documented names: built-in, of the session, of the library. */
static void add_documented(tl_request *r)
{
    set_word(r, 1);
    add_top_level(r);
    for (size_t i = 0; i < tl_stdlib_count; i++) {
        tl_complete_add(r, tl_stdlib_files[i].name, "");
    }
}

/* What is named is not called: no "(" behind it. */
static void name_only(tl_completion *out)
{
    for (size_t i = 0; i < out->len; i++) {
        if (strcmp(out->items[i].after, "(") == 0) {
            out->items[i].after = "";
        }
    }
}

/* `:name` and what its argument may be. */
static bool add_command(tl_request *r, const char *const *commands)
{
    size_t n = 0;

    while (n < r->cursor && r->text[n] != ' ') {
        n++;
    }
    if (n == r->cursor) {
        set_word(r, 0);
        for (; commands != NULL && *commands != NULL; commands++) {
            tl_complete_add(r, *commands, " ");
        }
        return true;
    }
    if (starts(r->text, n, ":run") || starts(r->text, n, ":save")) {
        size_t start = r->cursor;

        while (start > n + 1 && r->text[start - 1] != ' ') {
            start--;
        }
        set_word(r, start);
        tl_complete_paths(r, "");
        return true;
    }
    return false;
}

static void add_marks(tl_request *r)
{
    static const char *const marks[] = {"checkpoint", "compile", "main",
                                        "no_grad"};

    for (size_t i = 0; i < sizeof(marks) / sizeof(*marks); i++) {
        tl_complete_add(r, marks[i], "");
    }
}

static void add_code(tl_request *r, const tl_place *p)
{
    const char *s = r->text;

    set_word(r, p->start);
    if (p->start > 0 && s[p->start - 1] == '\\') {
        set_word(r, p->start - 1);
        add_letters(r);
    } else if (add_import(r, p)) {
        name_only(r->out);
    } else if (p->dotted) {
        add_fields(r, p);
    } else if (p->start > 0 && s[p->start - 1] == '@' &&
               p->statement == p->start - 1) {
        add_marks(r);
    } else {
        if (p->call != SIZE_MAX) {
            add_keywords(r, p);
        }
        if (r->len > 0 || p->call == SIZE_MAX) {
            add_top_level(r);
        }
    }
}

void tl_complete(tl_eval *ev, tl_namespace *ns, const char *const *commands,
                 const char *text, size_t cursor, tl_completion *out)
{
    tl_request r = {ev, ns, text, cursor, out, text, cursor};
    tl_place p;

    *out = (tl_completion){.start = cursor};
    tl_arena_init(&out->arena);
    if (cursor > 0 && text[0] == ':' && add_command(&r, commands)) {
        sort(out);
        return;
    }
    if (cursor > 0 && text[0] == ';') {
        size_t start = cursor;

        while (start > 1 && text[start - 1] != ' ') {
            start--;
        }
        set_word(&r, start);
        tl_complete_paths(&r, " ");
        sort(out);
        return;
    }
    p = tl_place_find(text, cursor);
    if (cursor > 0 && text[0] == '?' && !p.dotted) {
        add_documented(&r);
    } else if (p.kind == TL_PLACE_STRING) {
        set_word(&r, p.start);
        tl_complete_paths(&r, text[p.start - 1] == '\'' ? "'" : "\"");
    } else if (p.kind == TL_PLACE_CODE) {
        add_code(&r, &p);
    }
    if (cursor > 0 && text[0] == '?') {
        name_only(out);
    }
    sort(out);
}
