/* ast_print.c - the tree as an S-expression, for tests and `--debug`.
 *
 * (kind field ...): symbols, numbers and texts as they are, a missing child
 * as `-`, a list in brackets, a flag by its name when it is set.  A node that
 * fits the line stays on it. */
#include <inttypes.h>
#include <string.h>

#include "lang/ast.h"

enum {
    INDENT = 2,
    WIDTH = 78
};

typedef struct printer {
    tl_buf *out;
    bool refs;
} printer;

static void print_node(printer *p, const tl_ast *node);

static void print_text(printer *p, const tl_text *text)
{
    size_t from = 0;

    tl_buf_putc(p->out, '"');
    for (size_t i = 0; i < text->len; i++) {
        if (text->s[i] == '"' || text->s[i] == '\\') {
            tl_buf_put_escaped(p->out, text->s + from, i - from);
            tl_buf_putc(p->out, '\\');
            from = i;
        }
    }
    tl_buf_put_escaped(p->out, text->s + from, text->len - from);
    tl_buf_putc(p->out, '"');
}

static void print_ref(printer *p, const tl_ref_info *ref)
{
    static const char *const kinds[] = {
        "none", "local", "capture", "self_fn", "global", "field", "builtin"};
    static const char *const classes[] = {"header", "constant", "param",
                                          "buffer", "host",     "method"};

    if (!p->refs) {
        return;
    }
    tl_buf_printf(p->out, " %s", kinds[ref->kind]);
    if (ref->kind != TL_REF_NONE && ref->kind != TL_REF_SELF_FN &&
        ref->kind != TL_REF_BUILTIN) {
        tl_buf_printf(p->out, ":%" PRIu32, ref->index);
    }
    if (ref->kind == TL_REF_FIELD) {
        tl_buf_printf(p->out, ":%s", classes[ref->field_class]);
        if (ref->self != TL_SELF_SLOT) {
            tl_buf_printf(p->out, ":via%" PRIu32, ref->self);
        }
    }
    if (ref->last) {
        tl_buf_puts(p->out, " last");
    }
}

static void print_list(printer *p, const tl_kids *list)
{
    tl_buf_puts(p->out, " [");
    for (uint32_t i = 0; i < list->len; i++) {
        if (i > 0) {
            tl_buf_putc(p->out, ' ');
        }
        print_node(p, list->items[i]);
    }
    tl_buf_putc(p->out, ']');
}

static void print_kid(printer *p, const tl_ast *kid)
{
    tl_buf_putc(p->out, ' ');
    if (kid) {
        print_node(p, kid);
    } else {
        tl_buf_putc(p->out, '-');
    }
}

static void print_sym(printer *p, const tl_sym *sym)
{
    tl_buf_printf(p->out, " %s", sym ? sym->text : "-");
}

static void print_field(printer *p, const tl_ast_field *f, const void *at)
{
    switch ((tl_ast_field_kind)f->kind) {
    case TL_AST_F_KID:
        print_kid(p, *(tl_ast *const *)at);
        break;
    case TL_AST_F_KIDS:
        print_list(p, at);
        break;
    case TL_AST_F_SYM:
        print_sym(p, *(const tl_sym *const *)at);
        break;
    case TL_AST_F_TEXT:
        tl_buf_putc(p->out, ' ');
        print_text(p, at);
        break;
    case TL_AST_F_OP:
        tl_buf_printf(p->out, " %s", tl_op_text(*(const tl_oper *)at));
        break;
    case TL_AST_F_INT:
        tl_buf_printf(p->out, " %" PRId64, *(const int64_t *)at);
        break;
    case TL_AST_F_FLOAT:
        tl_buf_printf(p->out, " %.17g", *(const double *)at);
        break;
    case TL_AST_F_FLAG:
        if (*(const bool *)at) {
            tl_buf_printf(p->out, " %s", f->name);
        }
        break;
    case TL_AST_F_REF:
        print_ref(p, at);
        break;
    case TL_AST_F_RAW:
        break;
    }
}

/* The two nodes whose RAW fields are part of the syntax. */
static void print_ops(printer *p, const tl_ast_compare *compare)
{
    for (uint32_t i = 0; i + 1 < compare->operands.len; i++) {
        tl_buf_printf(p->out, " %s", tl_op_text(compare->ops[i]));
    }
}

static void print_path(printer *p, const tl_path *path)
{
    for (uint32_t i = 0; i < path->len; i++) {
        tl_buf_printf(p->out, "%c%s", i == 0 ? ' ' : '.',
                      path->names[i]->text);
    }
}

static void print_node(printer *p, const tl_ast *node)
{
    const tl_ast_info *info = tl_ast_info_get(node->kind);

    tl_buf_printf(p->out, "(%s", info->name);
    if (node->kind == TL_AST_COMPARE) {
        print_ops(p, TL_AST(compare, node));
    } else if (node->kind == TL_AST_IMPORT_NAME) {
        print_path(p, &TL_AST(import_name, node)->path);
    } else if (node->kind == TL_AST_FROM) {
        print_path(p, &TL_AST(from, node)->path);
    } else if (node->kind == TL_AST_BOOL) {
        tl_buf_puts(p->out, TL_AST(bool, node)->value ? " true" : " false");
        tl_buf_putc(p->out, ')');
        return;
    }
    for (size_t i = 0; i < info->nfields; i++) {
        print_field(p, &info->fields[i],
                    (const char *)node + info->fields[i].offset);
    }
    tl_buf_putc(p->out, ')');
}

/* Length of the S-expression that starts at s: up to its closing bracket. */
static size_t sexp_len(const char *s, size_t max)
{
    size_t depth = 0;
    bool quoted = false;

    for (size_t i = 0; i < max && s[i]; i++) {
        if (quoted) {
            i += s[i] == '\\';
            quoted = s[i] != '"';
        } else if (s[i] == '"') {
            quoted = true;
        } else if (s[i] == '(' || s[i] == '[') {
            depth++;
        } else if ((s[i] == ')' || s[i] == ']') && --depth == 0) {
            return i + 1;
        }
    }
    return max;
}

/* Break lines before nodes that do not fit on theirs. */
static void layout(const char *s, tl_buf *out)
{
    size_t column = 0, depth = 0;
    bool quoted = false;

    for (; *s; s++) {
        if (!quoted && *s == '(' && column > depth * INDENT &&
            column + sexp_len(s, WIDTH) > WIDTH) {
            tl_buf_printf(out, "\n%*s", (int)(depth * INDENT), "");
            column = depth * INDENT;
        }
        if (quoted && *s == '\\') {
            tl_buf_putc(out, *s++);
            column++;
        } else if (*s == '"') {
            quoted = !quoted;
        } else if (!quoted && *s == '(') {
            depth++;
        } else if (!quoted && *s == ')') {
            depth--;
        }
        tl_buf_putc(out, *s);
        column++;
    }
    tl_buf_putc(out, '\n');
}

void tl_ast_print(const tl_ast *node, bool refs, tl_buf *out)
{
    size_t start = out->len;
    tl_buf flat;
    printer p = {.out = &flat, .refs = refs};

    tl_buf_init(&flat);
    print_node(&p, node);
    if (flat.failed) { /* it may end anywhere, inside a string too */
        out->failed = true;
    } else {
        layout(tl_buf_str(&flat), out);
    }
    if (out->failed && out->data != NULL) { /* all of it or nothing */
        out->len = start;
        out->data[start] = '\0';
    }
    tl_buf_fini(&flat);
}
