/* reference.c - pages of built-in names: signature, shapes, dtypes, formula,
 * gradient, numerics, example.  All but the examples is read off ops.def. */
#include "interp/reference.h"

#include <string.h>

#include "interp/builtin.h"
#include "interp/stdlib.h"

const tl_reference tl_references[] = {
#define ENTRY(name, shapes, example, shown) {#name, shapes, example, shown},
#include "interp/reference.def"
#undef ENTRY
};

const size_t tl_reference_count =
    sizeof(tl_references) / sizeof(*tl_references);

const tl_reference *tl_reference_find(const char *name)
{
    for (size_t i = 0; i < tl_reference_count; i++) {
        if (strcmp(tl_references[i].name, name) == 0) {
            return &tl_references[i];
        }
    }
    return NULL;
}

/* Do the first and the last character enclose the text between? */
static bool is_enclosed(const char *text, size_t size)
{
    int depth = 0;

    for (size_t i = 0; i + 1 < size; i++) {
        depth += (text[i] == '(') - (text[i] == ')');
        if (depth == 0) {
            return false;
        }
    }
    return size > 1 && text[0] == '(';
}

/* A formula for readers: M(exp)(x) is exp(x), K(0.5) is 0.5, and no
 * parentheses around the whole. */
static void add_formula(tl_buf *out, const char *text)
{
    size_t size = strlen(text);

    if (is_enclosed(text, size)) {
        text++;
        size -= 2;
    }
    for (const char *end = text + size; text < end;) {
        bool start = *text == 'M' || *text == 'K';

        if (start && text[1] == '(') {
            size_t n = strcspn(text, ")");

            tl_buf_add(out, text + 2, n - 2);
            text += n + 1;
        } else {
            tl_buf_putc(out, *text++);
        }
    }
}

static const char *types_text(tl_types types)
{
    switch (types) {
    case TL_TYPES_FLOAT:
        return "floats; ints and bool are computed as f32";
    case TL_TYPES_NUM:
        return "floats and ints; bool counts as i64";
    case TL_TYPES_ANY:
        return "every dtype";
    case TL_TYPES_BOOL:
        return "bool";
    }
    return "";
}

static const char *amp_text(tl_amp amp)
{
    switch (amp) {
    case TL_AMP_LOW:
        return "computed in the low dtype";
    case TL_AMP_F32:
        return "computed in f32";
    case TL_AMP_WIDE:
        return "in the widest dtype of its operands";
    }
    return "";
}

/* How results are rounded, by class; NULL: the kernel's README says it. */
static const char *rounding_text(tl_op_class cls)
{
    switch (cls) {
    case TL_CLASS_MAP:
        return "f16 and bf16 are computed in f32 and rounded once, at the end";
    case TL_CLASS_RED:
        return "folded along a fixed tree, f16 and bf16 in f32";
    case TL_CLASS_VIEW:
        return "a view: nothing is computed or copied";
    case TL_CLASS_CMP:
    case TL_CLASS_MAKE:
    case TL_CLASS_KERN:
        break;
    }
    return NULL;
}

/* The two ways to set out a page. */
typedef struct form {
    const char *before, *between, *after; /* of a row: name and text */
    int width;                            /* of a name */
    const char *quote;                    /* around code */
    const char *example;                  /* before each of its lines */
} form;

static const form terminal = {"    ", " ", "\n", 9, "", "    "};
static const form markdown = {"| ", " | ", " |\n", 0, "`", "    "};

static void add_row(tl_buf *out, const form *f, const char *name,
                    const char *text)
{
    tl_buf_printf(out, "%s%-*s%s%s%s", f->before, f->width, name, f->between,
                  text, f->after);
}

static void add_code(tl_buf *out, const form *f, const char *name,
                     const char *text)
{
    tl_buf_printf(out, "%s%-*s%s%s", f->before, f->width, name, f->between,
                  f->quote);
    add_formula(out, text);
    tl_buf_printf(out, "%s%s", f->quote, f->after);
}

/* Value and gradients of an elementwise row. */
static void add_formulas(tl_buf *out, const form *f, const tl_op_info *op)
{
    static const char *const one[] = {"gradient"};
    static const char *const more[] = {"d / da", "d / db", "d / dc"};
    const char *const *names = op->nin == 1 ? one : more;

    if (op->value == NULL) {
        return;
    }
    add_code(out, f, "formula", op->value);
    for (int i = 0; i < op->nin && i < 3; i++) {
        if (op->grad[i] != NULL) {
            add_code(out, f, names[i], op->grad[i]);
        }
    }
}

static void add_operation(tl_buf *out, const form *f, const tl_op_info *op)
{
    add_row(out, f, "dtypes", types_text(op->types));
    add_formulas(out, f, op);
    if (op->value == NULL) {
        add_row(out, f, "gradient",
                op->differentiable ? "yes, of every order" : "none");
    }
    if (rounding_text(op->cls) != NULL) {
        add_row(out, f, "rounding", rounding_text(op->cls));
    }
    add_row(out, f, "autocast", amp_text(op->amp));
}

/* The operation behind a function; NULL: it is made of several. */
static const tl_op_info *operation(const tl_builtin *b)
{
    tl_op op = b->op != TL_OP_COUNT ? b->op : tl_op_find(b->name);

    return op != TL_OP_COUNT ? tl_op_get(op) : NULL;
}

static void add_example(tl_buf *out, const form *f, const tl_reference *r)
{
    const char *s = r->shown;

    tl_buf_printf(out, "\n%s>>> %s\n", f->example, r->example);
    while (*s != '\0') {
        size_t n = strcspn(s, "\n");

        tl_buf_printf(out, "%s%.*s\n", f->example, (int)n, s);
        s += n + (s[n] == '\n');
    }
}

/* What follows the signature and the line of doc. */
static void add_entry(tl_buf *out, const form *f, const tl_builtin *b)
{
    const tl_reference *r = tl_reference_find(b->name);
    const tl_op_info *op = operation(b);

    if (r == NULL) {
        return;
    }
    add_row(out, f, "shapes", r->shapes);
    if (op != NULL) {
        add_operation(out, f, op);
    }
    add_example(out, f, r);
}

const char *tl_doc_tag(tl_tag tag)
{
    switch (tag) {
    case TL_V_TENSOR:
        return "tensor";
    case TL_V_STR:
        return "str";
    case TL_V_LIST:
        return "list";
    case TL_V_TUPLE:
        return "tuple";
    case TL_V_DICT:
        return "dict";
    case TL_V_TREE:
        return "tree";
    case TL_V_MODULE:
        return "module";
    default:
        return "value";
    }
}

static void add_builtin(tl_buf *out, const tl_builtin *b)
{
    bool value = b->signature[0] == '=' || b->signature[0] == '@';

    tl_buf_puts(out, b->name);
    if (!value) {
        tl_buf_printf(out, "(%s)", b->signature);
    }
    tl_buf_printf(out, "\n    %s\n", b->doc);
    add_entry(out, &terminal, b);
}

/* `nn.Linear`: a member of a file of the library, or of json. */
static tl_status doc_member(tl_eval *ev, const char *name, const char *dot,
                            tl_buf *out, bool *found)
{
    tl_buf module;

    tl_buf_init(&module);
    tl_buf_add(&module, name, (size_t)(dot - name));
    tl_status st =
        module.failed
            ? tl_fail_memory(ev->diag, "a name", module.len)
            : tl_doc_library(ev, tl_buf_str(&module), dot + 1, out, found);

    tl_buf_fini(&module);
    return st;
}

tl_status tl_doc_name(tl_eval *ev, const char *name, tl_buf *out, bool *found)
{
    const tl_sym *sym = tl_intern_find(ev->lang->names, name, strlen(name));
    const tl_builtin *b = sym != NULL ? tl_builtin_find(ev, sym) : NULL;
    const char *dot = strchr(name, '.');

    *found = b != NULL;
    if (b != NULL && b->signature[0] == '@') { /* GradScaler, clip_norm */
        return tl_doc_library(ev, b->signature + 1, name, out, found);
    }
    if (b != NULL) {
        add_builtin(out, b);
    }
    for (int tag = TL_V_NONE + 1; sym != NULL && tag < TL_V_TAG_COUNT;
         tag++) {
        const tl_builtin *m = tl_builtin_method(ev, (tl_tag)tag, sym);

        if (m != NULL && tag != TL_V_NODE) {
            tl_buf_printf(out, "%s.%s(%s)\n    %s\n", tl_doc_tag((tl_tag)tag),
                          m->name, m->signature, m->doc);
            *found = true;
        }
    }
    if (*found) {
        return TL_OK;
    }
    return dot != NULL ? doc_member(ev, name, dot, out, found)
                       : tl_doc_library(ev, name, NULL, out, found);
}

tl_status tl_doc_index(tl_eval *ev, tl_buf *out)
{
    for (size_t i = 0; i < tl_builtin_nrows; i++) {
        const tl_builtin *b = &tl_builtin_rows[i];

        if (b->tag == TL_V_NONE) {
            tl_buf_printf(out, "%-16s %s\n", b->name, b->doc);
        }
    }
    for (size_t i = 0; i < tl_stdlib_count; i++) {
        bool found = false;

        tl_buf_putc(out, '\n');
        TL_TRY(
            tl_doc_library(ev, tl_stdlib_files[i].name, NULL, out, &found));
    }
    return TL_OK;
}

void tl_doc_operations(tl_buf *out)
{
    tl_buf_puts(out,
                "# Operations\n\nFormulas: x, or a, b, c, are the inputs, y "
                "the result, g the gradient that arrives, p0 .. the other "
                "arguments. zmul(g, e) is g * e, and 0 where g is 0. "
                "`~` in a shape broadcasts.\n");
    for (size_t i = 0; i < tl_reference_count; i++) {
        const tl_reference *r = &tl_references[i];

        for (size_t j = 0; j < tl_builtin_nrows; j++) {
            const tl_builtin *b = &tl_builtin_rows[j];

            if (b->tag == TL_V_NONE && strcmp(b->name, r->name) == 0) {
                tl_buf_printf(out,
                              "\n## %s\n\n`%s(%s)`\n\n%s\n\n| | |\n"
                              "| --- | --- |\n",
                              b->name, b->name, b->signature, b->doc);
                add_entry(out, &markdown, b);
            }
        }
    }
}
