/* format.c - text of values, as print and str() give it.
 *
 * Numbers and containers look as in Python, apart from the names true, false
 * and none and from double quotes.  What has no literal form is written in
 * angle brackets: <fn f>, <Linear>. */
#include "interp/format.h"

#include "interp/builtin.h"
#include "interp/dict.h"
#include "interp/eval.h"
#include "interp/tree.h"
#include "runtime/tensor/print.h"

#define MAX_DEPTH 1000
#define MAX_PATHS 4 /* of a tree that are named */

typedef struct printer {
    tl_buf *out;
    tl_diag *diag;
    int depth;
} printer;

static tl_status print_value(printer *p, tl_value v, bool quote);

/* ---- strings and names ------------------------------------------------- */

static void print_quoted_byte(tl_buf *out, unsigned char c)
{
    switch (c) {
    case '"':
    case '\\':
        tl_buf_putc(out, '\\');
        tl_buf_putc(out, (char)c);
        break;
    case '\n':
        tl_buf_puts(out, "\\n");
        break;
    case '\t':
        tl_buf_puts(out, "\\t");
        break;
    case '\r':
        tl_buf_puts(out, "\\r");
        break;
    default:
        if (c < 0x20 || c == 0x7f) {
            tl_buf_printf(out, "\\x%02x", c);
        } else {
            tl_buf_putc(out, (char)c);
        }
        break;
    }
}

static void print_quoted(tl_buf *out, const tl_str *s)
{
    tl_buf_putc(out, '"');
    for (size_t i = 0; i < s->len; i++) {
        print_quoted_byte(out, (unsigned char)s->data[i]);
    }
    tl_buf_putc(out, '"');
}

static void print_fn(tl_buf *out, const tl_funcdef *code)
{
    if (code != NULL && code->name != NULL) {
        tl_buf_printf(out, "<fn %s>", code->name->text);
    } else {
        tl_buf_puts(out, "<fn>");
    }
}

static void print_method(tl_buf *out, const tl_method *method)
{
    if (method->builtin != NULL) {
        tl_buf_printf(out, "<fn %s>", method->builtin->name);
    } else {
        print_fn(out, method->code);
    }
}

static void print_class(tl_buf *out, const tl_class *cls)
{
    const char *kind =
        cls->code->kind == TL_FUNC_RECORD ? "record" : "module";

    tl_buf_printf(out, "<%s %s>", kind, cls->code->name->text);
}

static void print_tree(tl_buf *out, const tl_tree *tree)
{
    size_t n = tree->shape->len;

    tl_buf_printf(out, "<tree of %zu", n);
    for (size_t i = 0; i < n && i < MAX_PATHS; i++) {
        tl_buf_printf(out, "%s %s", i == 0 ? ":" : ",",
                      tree->shape->paths[i]->data);
    }
    tl_buf_puts(out, n > MAX_PATHS ? ", ...>" : ">");
}

static void print_cell(tl_buf *out, const tl_cell *cell)
{
    if (cell->name != NULL) {
        tl_buf_printf(out, "<cell %s>", cell->name->data);
    } else {
        tl_buf_puts(out, "<cell>");
    }
}

static void print_namespace(tl_buf *out, const tl_namespace *ns)
{
    tl_buf_printf(out, "<file %s>", ns->name != NULL ? ns->name->data : "");
}

static void print_range(tl_buf *out, const tl_range *r)
{
    tl_buf_printf(out, "range(%lld, %lld", (long long)r->start,
                  (long long)r->stop);
    if (r->step != 1) {
        tl_buf_printf(out, ", %lld", (long long)r->step);
    }
    tl_buf_putc(out, ')');
}

/* ---- containers -------------------------------------------------------- */

static tl_status print_items(printer *p, const tl_value *items, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (i > 0) {
            tl_buf_puts(p->out, ", ");
        }
        TL_TRY(print_value(p, items[i], true));
    }
    return TL_OK;
}

static tl_status print_seq(printer *p, const tl_seq *seq, bool tuple)
{
    tl_buf_putc(p->out, tuple ? '(' : '[');
    TL_TRY(print_items(p, seq->items, seq->len));
    if (tuple && seq->len == 1) {
        tl_buf_putc(p->out, ',');
    }
    tl_buf_putc(p->out, tuple ? ')' : ']');
    return TL_OK;
}

static tl_status print_dict(printer *p, const tl_dict *d)
{
    const tl_dict_entry *entry;
    const char *between = "";
    size_t i = 0;

    tl_buf_putc(p->out, '{');
    while ((entry = tl_dict_next(d, &i)) != NULL) {
        tl_buf_puts(p->out, between);
        TL_TRY(print_value(p, entry->key, true));
        tl_buf_puts(p->out, ": ");
        TL_TRY(print_value(p, entry->value, true));
        between = ", ";
    }
    tl_buf_putc(p->out, '}');
    return TL_OK;
}

static tl_status print_record(printer *p, const tl_record *record)
{
    const tl_funcdef *code = record->cls->code;

    tl_buf_printf(p->out, "%s(", code->name->text);
    for (uint32_t i = 0; i < code->params.len; i++) {
        const tl_ast_param *param = TL_AST(param, code->params.items[i]);

        tl_buf_printf(p->out, "%s%s=", i == 0 ? "" : ", ", param->name->text);
        TL_TRY(print_value(p, record->fields[i], true));
    }
    tl_buf_putc(p->out, ')');
    return TL_OK;
}

static tl_status print_slice(printer *p, const tl_slice *s)
{
    tl_buf_puts(p->out, "slice(");
    TL_TRY(print_value(p, s->start, true));
    tl_buf_puts(p->out, ", ");
    TL_TRY(print_value(p, s->stop, true));
    tl_buf_puts(p->out, ", ");
    TL_TRY(print_value(p, s->step, true));
    tl_buf_putc(p->out, ')');
    return TL_OK;
}

static tl_status print_container(printer *p, tl_value v)
{
    switch (v.tag) {
    case TL_V_LIST:
    case TL_V_TUPLE:
        return print_seq(p, v.seq, v.tag == TL_V_TUPLE);
    case TL_V_DICT:
        return print_dict(p, v.dict);
    case TL_V_RECORD:
        return print_record(p, v.record);
    default:
        return print_slice(p, v.slice);
    }
}

/* ---- values ------------------------------------------------------------ */

static void print_tensor(printer *p, const tl_tensor *t)
{
    if (t->storage == NULL) {
        tl_ttype type;

        tl_tensor_shown_type(t, &type);
        tl_ttype_print(&type, p->out);
    } else {
        tl_tensor_print(t, false, p->out);
    }
}

static void print_error(tl_buf *out, const tl_error *error)
{
    if (error->message != NULL) {
        tl_buf_add(out, error->message->data, error->message->len);
    }
}

/* What is not a container. */
static void print_leaf(printer *p, tl_value v, bool quote)
{
    tl_buf *out = p->out;

    switch (v.tag) {
    case TL_V_BOOL:
        tl_buf_puts(out, v.b ? "true" : "false");
        break;
    case TL_V_INT:
        tl_buf_printf(out, "%lld", (long long)v.i);
        break;
    case TL_V_FLOAT:
        tl_print_f64(v.f, out);
        break;
    case TL_V_DTYPE:
        tl_buf_puts(out, tl_dtype_name(v.dtype));
        break;
    case TL_V_BUILTIN:
        tl_buf_printf(out, "<fn %s>", v.builtin->name);
        break;
    case TL_V_TENSOR:
        print_tensor(p, v.tensor);
        break;
    case TL_V_NODE:
        tl_ttype_print(&v.node->type, out);
        break;
    case TL_V_STR:
        if (quote) {
            print_quoted(out, v.str);
        } else {
            tl_buf_add(out, v.str->data, v.str->len);
        }
        break;
    case TL_V_RANGE:
        print_range(out, v.range);
        break;
    case TL_V_FN:
        print_fn(out, v.fn->code);
        break;
    case TL_V_METHOD:
        print_method(out, v.method);
        break;
    case TL_V_CLASS:
        print_class(out, v.cls);
        break;
    case TL_V_CELL:
        print_cell(out, v.cell);
        break;
    case TL_V_SELECT:
        tl_buf_puts(out, "<select ");
        print_quoted(out, v.select->glob);
        tl_buf_putc(out, '>');
        break;
    case TL_V_TREE:
        print_tree(out, v.tree);
        break;
    case TL_V_NAMESPACE:
        print_namespace(out, v.ns);
        break;
    case TL_V_ERROR:
        print_error(out, v.error);
        break;
    case TL_V_MODULE:
    case TL_V_ZIP:
    case TL_V_CONTEXT:
    case TL_V_TYPE:
        tl_buf_printf(out, "<%s>", tl_value_type_str(v).s);
        break;
    default: /* none, ..., unknown */
        tl_buf_puts(out, tl_value_type_str(v).s);
        break;
    }
}

static tl_status print_value(printer *p, tl_value v, bool quote)
{
    switch (v.tag) {
    case TL_V_LIST:
    case TL_V_TUPLE:
    case TL_V_DICT:
    case TL_V_RECORD:
    case TL_V_SLICE:
        break;
    default:
        print_leaf(p, v, quote);
        return TL_OK;
    }
    if (p->depth >= MAX_DEPTH) {
        return tl_fail(p->diag, TL_E0224, "value nested deeper than %d",
                       MAX_DEPTH);
    }
    p->depth++;
    TL_TRY(print_container(p, v));
    p->depth--;
    return TL_OK;
}

tl_status tl_format_str(tl_value v, tl_buf *out, tl_diag *diag)
{
    printer p = {.out = out, .diag = diag};

    return print_value(&p, v, false);
}

tl_status tl_format_repr(tl_value v, tl_buf *out, tl_diag *diag)
{
    printer p = {.out = out, .diag = diag};

    return print_value(&p, v, true);
}
