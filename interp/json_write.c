/* json_write.c - values to JSON text, and the functions json.parse and
 * json.text. */
#include <math.h>

#include "interp/builtin_fns.h"
#include "interp/container.h"
#include "interp/dict.h"
#include "interp/json.h"
#include "interp/module.h"
#include "runtime/tensor/print.h"

#define MAX_DEPTH 1000

typedef struct writer {
    tl_buf *out;
    int64_t indent; /* < 0: one line */
    int depth;
    tl_diag *diag;
} writer;

static tl_status write_value(writer *w, tl_value v);

/* ---- leaves ------------------------------------------------------------ */

static void write_str(writer *w, const char *s, size_t len)
{
    tl_buf_putc(w->out, '"');
    tl_buf_put_json(w->out, s, len);
    tl_buf_putc(w->out, '"');
}

static tl_status write_float(writer *w, double f)
{
    if (!isfinite(f)) {
        return tl_fail(w->diag, TL_E0220, "%s has no JSON form",
                       isnan(f) ? "nan"
                       : f > 0  ? "inf"
                                : "-inf");
    }
    tl_print_f64(f, w->out);
    return TL_OK;
}

static tl_status write_element(writer *w, const tl_tensor *t, int64_t i)
{
    switch (tl_dtype_kind(t->dtype)) {
    case TL_KIND_BOOL:
        tl_buf_puts(w->out, tl_tensor_get_i(t, i) != 0 ? "true" : "false");
        return TL_OK;
    case TL_KIND_INT:
        tl_buf_printf(w->out, "%lld", (long long)tl_tensor_get_i(t, i));
        return TL_OK;
    default:
        break;
    }
    if (tl_tensor_shown(t) == TL_f32 && isfinite(tl_tensor_get_f(t, i))) {
        tl_print_f32((float)tl_tensor_get_f(t, i), w->out);
        return TL_OK;
    }
    return write_float(w, tl_tensor_get_f(t, i));
}

/* ---- containers -------------------------------------------------------- */

static void new_line(writer *w)
{
    if (w->indent >= 0) {
        tl_buf_putc(w->out, '\n');
        for (int64_t i = 0; i < w->indent * w->depth; i++) {
            tl_buf_putc(w->out, ' ');
        }
    }
}

static tl_status enter(writer *w, char open)
{
    if (w->depth >= MAX_DEPTH) {
        return tl_fail(w->diag, TL_E0224, "value nested deeper than %d",
                       MAX_DEPTH);
    }
    tl_buf_putc(w->out, open);
    w->depth++;
    return TL_OK;
}

static void leave(writer *w, char close, bool empty)
{
    w->depth--;
    if (!empty) {
        new_line(w);
    }
    tl_buf_putc(w->out, close);
}

static void between(writer *w, bool first)
{
    if (!first) {
        tl_buf_puts(w->out, w->indent >= 0 ? "," : ", ");
    }
    new_line(w);
}

static tl_status write_items(writer *w, const tl_value *items, size_t n)
{
    TL_TRY(enter(w, '['));
    for (size_t i = 0; i < n; i++) {
        between(w, i == 0);
        TL_TRY(write_value(w, items[i]));
    }
    leave(w, ']', n == 0);
    return TL_OK;
}

/* The axes from `axis` on; *next is the number of the next element. */
static tl_status write_axis(writer *w, const tl_tensor *t, int axis,
                            int64_t *next)
{
    if (axis == t->rank) {
        return write_element(w, t, (*next)++);
    }
    TL_TRY(enter(w, '['));
    for (int64_t i = 0; i < t->size[axis]; i++) {
        between(w, i == 0);
        TL_TRY(write_axis(w, t, axis + 1, next));
    }
    leave(w, ']', t->size[axis] == 0);
    return TL_OK;
}

static tl_status write_tensor(writer *w, const tl_tensor *t)
{
    int64_t next = 0;

    return write_axis(w, t, 0, &next);
}

static tl_status write_key(writer *w, tl_value key)
{
    if (key.tag == TL_V_STR) {
        write_str(w, key.str->data, key.str->len);
    } else if (key.tag == TL_V_INT) {
        tl_buf_printf(w->out, "\"%lld\"", (long long)key.i);
    } else {
        return tl_fail(w->diag, TL_E0220, "a JSON key must be a str, got %s",
                       tl_value_type_str(key).s);
    }
    tl_buf_puts(w->out, ": ");
    return TL_OK;
}

static tl_status write_dict(writer *w, const tl_dict *d)
{
    const tl_dict_entry *entry;
    size_t i = 0;
    bool first = true;

    TL_TRY(enter(w, '{'));
    while ((entry = tl_dict_next(d, &i)) != NULL) {
        between(w, first);
        first = false;
        TL_TRY(write_key(w, entry->key));
        TL_TRY(write_value(w, entry->value));
    }
    leave(w, '}', first);
    return TL_OK;
}

static tl_status write_record(writer *w, const tl_record *record)
{
    const tl_funcdef *code = record->cls->code;

    TL_TRY(enter(w, '{'));
    for (uint32_t i = 0; i < code->params.len; i++) {
        const tl_sym *name = TL_AST(param, code->params.items[i])->name;

        between(w, i == 0);
        write_str(w, name->text, name->len);
        tl_buf_puts(w->out, ": ");
        TL_TRY(write_value(w, record->fields[i]));
    }
    leave(w, '}', code->params.len == 0);
    return TL_OK;
}

static tl_status write_value(writer *w, tl_value v)
{
    switch (v.tag) {
    case TL_V_NONE:
        tl_buf_puts(w->out, "null");
        return TL_OK;
    case TL_V_BOOL:
        tl_buf_puts(w->out, v.b ? "true" : "false");
        return TL_OK;
    case TL_V_INT:
        tl_buf_printf(w->out, "%lld", (long long)v.i);
        return TL_OK;
    case TL_V_FLOAT:
        return write_float(w, v.f);
    case TL_V_STR:
        write_str(w, v.str->data, v.str->len);
        return TL_OK;
    case TL_V_TENSOR:
        return write_tensor(w, v.tensor);
    case TL_V_LIST:
    case TL_V_TUPLE:
        return write_items(w, v.seq->items, v.seq->len);
    case TL_V_DICT:
        return write_dict(w, v.dict);
    case TL_V_RECORD:
        return write_record(w, v.record);
    default:
        return tl_fail(w->diag, TL_E0220, "%s has no JSON form",
                       tl_value_type_str(v).s);
    }
}

tl_status tl_json_from_value(tl_value v, int64_t indent, tl_buf *out,
                             tl_diag *diag)
{
    writer w = {.out = out, .indent = indent, .diag = diag};

    return write_value(&w, v);
}

/* ---- functions --------------------------------------------------------- */

tl_status tl_bi_json_parse(tl_eval *ev, const tl_builtin *self,
                           tl_value *args, tl_value *out)
{
    (void)self;
    return tl_json_to_value(args[0].str->data, args[0].str->len, out,
                            ev->diag);
}

/* json.text(x, indent) */
tl_status tl_bi_json_text(tl_eval *ev, const tl_builtin *self, tl_value *args,
                          tl_value *out)
{
    int64_t indent = args[1].tag == TL_V_NONE ? -1 : args[1].i;
    tl_status st;
    tl_buf text;

    (void)self;
    if (indent > 100) {
        return tl_fail(ev->diag, TL_E0416, "indent must be at most 100");
    }
    if (!tl_value_known(args[0])) {
        *out = tl_unknown();
        return TL_OK;
    }
    tl_buf_init(&text);
    st = tl_json_from_value(args[0], indent, &text, ev->diag);
    if (st == TL_OK) {
        st = tl_str_from_buf(out, &text, ev->diag);
    }
    tl_buf_fini(&text);
    return st;
}
