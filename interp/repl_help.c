/* repl_help.c - `?` at the prompt: pages of names, words and commands. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "interp/builtin.h"
#include "interp/complete.h"
#include "interp/module.h"
#include "interp/reference.h"
#include "interp/repl.h"

static const char overview[] =
    "Type an expression to see its value; `;` at its end keeps quiet.\n"
    "  ?relu  ?nn  ?nn.Linear   what a name means    ?\"word\"   search\n"
    "  :help                    commands             ;ls       the shell\n"
    "  Tab                      completes names, fields, keywords, files\n"
    "  Enter runs what is whole, else adds a line; Alt-Enter always adds one;\n"
    "  a blank line ends a block; Ctrl-C forgets a line or stops what runs.\n"
    "First steps:\n"
    "  x = randn(3, 4)          tensors need no import; x.shape, x @ x.T\n"
    "  import nn, optim         layers and optimisers\n"
    "  net = nn.Linear(4, 2)    a module; net(x) calls it\n"
    "  grad loss wrt net:       a block that computes `loss`: its gradient\n";

/* Words of the language: they are no names and have no docstrings. */
static const struct {
    const char *word, *text;
} keywords[] = {
    {"fn", "fn f(x, n=1):            a function; `fn(x) => x + 1` is one "
           "without a name\n    return x * n"},
    {"module", "module Net(d: int):      parameters, children and methods\n"
               "    fc = nn.Linear(d, d)\n    fn forward(x):\n"
               "        return relu(fc(x))"},
    {"param", "param w: f32[d, k] = init.zeros   in a module: a trained cell"},
    {"buffer", "buffer m: f32[d] = init.zeros     in a module: a saved cell "
               "that is not trained"},
    {"grad", "g = grad loss wrt net:   runs the block, gives d loss / d net\n"
             "    loss = cross_entropy(net(x), y)"},
    {"wrt", "grad loss wrt net:       names what is differentiated"},
    {"record", "record Point: x: float   plain data with named fields"},
    {"test", "test \"adds\":             a block that `tlang test` runs\n"
             "    assert 1 + 1 == 2"},
    {"for", "for x in xs:             lists, ranges, tensors (axis 0), "
            "loaders"},
    {"while", "while i < n:"},
    {"if", "if a > b:                elif, else; `x if c else y` is an "
           "expression"},
    {"with", "with no_grad:            also mode(\"eval\", net), "
             "autocast(bf16), device(...)"},
    {"try", "try:                     catch e: binds e.msg, e.code, e.text"},
    {"raise", "raise \"what is wrong\""},
    {"assert", "assert x.size > 0        shows both sides when it fails"},
    {"import", "import nn                a file beside this one, or the "
               "library; `from nn import Linear`"},
    {"backward", "backward dy:             in a function: its own gradient "
                 "rule"},
    {"return", "return x"},
};

static void print_buf(tl_repl *r, tl_buf *out, tl_status st)
{
    if (st == TL_OK && out->failed) {
        st = tl_fail_memory(&r->s->diag, "a page", out->len);
    }
    if (st == TL_OK) {
        st = tl_eval_write(&r->s->ev, tl_buf_str(out), out->len);
    }
    tl_repl_report(r, st);
    tl_buf_fini(out);
}

/* ---- what the session defines -------------------------------------------- */

/* A docstring with the indentation that it has in the file taken off. */
static void put_doc(tl_buf *out, const tl_text *doc)
{
    const char *s = doc->s, *end = doc->s + doc->len;

    while (s < end) {
        size_t n = 0;

        while (s + n < end && s[n] != '\n') {
            n++;
        }
        size_t in = strspn(s, " ");

        in = in < n ? in : n;
        in = in < 4 ? in : 4;
        if (n > in) {
            tl_buf_puts(out, "    ");
            tl_buf_add(out, s + in, n - in);
        }
        tl_buf_putc(out, '\n');
        s += n + 1;
    }
}

static void put_definition(tl_repl *r, const char *name, const tl_found *f,
                           tl_buf *out)
{
    const char *kind = f->code->kind == TL_FUNC_MODULE   ? "module "
                       : f->code->kind == TL_FUNC_RECORD ? "record "
                                                         : "fn ";

    tl_buf_printf(out, "%s%s", kind, name);
    if (!tl_complete_signature(&r->s->ev, f, out)) {
        tl_buf_puts(out, "()");
    }
    tl_buf_putc(out, '\n');
    if (f->code->doc != NULL) {
        put_doc(out, f->code->doc);
    } else {
        tl_buf_puts(out, "    (no docstring)\n");
    }
}

/* x.shape and the like, of tensors: no functions. */
static const char *attribute(const char *name)
{
    static const char *const docs[] = {
        "shape", "the sizes, a tuple of ints",
        "dtype", "the dtype, as f32 or i64",
        "size",  "the number of elements",
        "T",     "the last two axes exchanged: a view"};
    const char *dot = strrchr(name, '.');

    for (size_t i = 0; dot != NULL && i < sizeof(docs) / sizeof(*docs);
         i += 2) {
        if (strcmp(docs[i], dot + 1) == 0) {
            return docs[i + 1];
        }
    }
    return NULL;
}

/* A name of the session.  False: it is none, or one of the library. */
static bool help_session(tl_repl *r, const char *name)
{
    tl_found f;
    tl_buf out;

    if (!tl_complete_find(&r->s->ev, r->ns, name, strlen(name), &f) ||
        (f.code == NULL && f.value.tag == TL_V_EMPTY) ||
        f.value.tag == TL_V_NAMESPACE) {
        return false;
    }
    tl_buf_init(&out);
    if (f.code != NULL) {
        put_definition(r, name, &f, &out);
    } else {
        tl_buf_printf(&out, "%s: %s\n", name,
                      tl_value_type_str(f.value).s);
    }
    if (f.value.tag == TL_V_MODULE) {
        tl_found cls = {.code = f.value.module->cls->code};

        put_definition(r, tl_class_name(f.value.module->cls), &cls, &out);
    }
    print_buf(r, &out, TL_OK);
    return true;
}

static bool help_keyword(tl_repl *r, const char *name)
{
    for (size_t i = 0; i < sizeof(keywords) / sizeof(*keywords); i++) {
        if (strcmp(keywords[i].word, name) == 0) {
            tl_buf out;

            tl_buf_init(&out);
            tl_buf_printf(&out, "%s\n", keywords[i].text);
            print_buf(r, &out, TL_OK);
            return true;
        }
    }
    return false;
}

/* ---- search -------------------------------------------------------------- */

static bool holds(const char *line, size_t n, const char *word, size_t len)
{
    for (size_t i = 0; i + len <= n; i++) {
        size_t k = 0;

        while (k < len && tolower((unsigned char)line[i + k]) ==
                              tolower((unsigned char)word[k])) {
            k++;
        }
        if (k == len) {
            return true;
        }
    }
    return false;
}

/* Lines of the index that hold the word. */
static void search(tl_repl *r, const char *word, size_t len)
{
    tl_buf index, out;

    tl_buf_init(&index);
    tl_buf_init(&out);
    tl_status st = tl_doc_index(&r->s->ev, &index);
    const char *s = tl_buf_str(&index);

    while (*s != '\0') {
        size_t n = strcspn(s, "\n");

        if (holds(s, n, word, len)) {
            tl_buf_add(&out, s, n);
            tl_buf_putc(&out, '\n');
        }
        s += n + (s[n] == '\n');
    }
    if (out.len == 0) {
        tl_buf_printf(&out, "nothing mentions \"%.*s\"\n", (int)len, word);
    }
    tl_buf_fini(&index);
    print_buf(r, &out, st);
}

/* ---- entry points -------------------------------------------------------- */

void tl_repl_help(tl_repl *r, const char *what)
{
    char name[128];
    size_t n;

    what += strspn(what, " ?");
    n = strlen(what);
    while (n > 0 && strchr(" ?", what[n - 1]) != NULL) {
        n--;
    }
    if (n == 0) {
        fputs(overview, stdout);
        return;
    }
    if (what[0] == '"' || what[0] == '\'') {
        search(r, what + 1, strcspn(what + 1, "\"'"));
        return;
    }
    if (what[0] == ':') {
        tl_repl_command(r, ":help");
        return;
    }
    snprintf(name, sizeof(name), "%.*s", (int)n, what);
    if (tl_code_find(name) != TL_CODE_NONE) {
        r->exit_code = tl_cmd_explain(r->s, name);
    } else if (attribute(name) != NULL) {
        printf("%s: %s\n", name, attribute(name));
    } else if (!help_session(r, name) && !help_keyword(r, name)) {
        char *one[] = {name};

        r->exit_code = tl_cmd_doc(r->s, one, 1);
    }
}

void tl_repl_source(tl_repl *r, const char *name)
{
    tl_found f;
    const tl_source *src = NULL;

    if (tl_complete_find(&r->s->ev, r->ns, name, strlen(name), &f) &&
        f.value.tag == TL_V_MODULE) {
        f.code = f.value.module->cls->code;
    }
    if (f.code != NULL) {
        src = tl_sources_get(&r->s->sources, f.code->node->span.file);
    }
    if (src == NULL) {
        if (f.builtin != NULL) {
            printf("%s is built in, written in C\n", name);
        } else {
            tl_repl_help(r, name);
        }
        return;
    }
    tl_span span = f.code->node->span;

    while (span.end > span.start &&
           strchr(" \n", src->text[span.end - 1]) != NULL) {
        span.end--;
    }
    printf("# %s\n%.*s\n", src->name, (int)(span.end - span.start),
           src->text + span.start);
}
