/* bi_host.c - print, sequences and what walks over them.
 *
 * Walking goes through tl_iter, so everything that `for` takes will do.  In a
 * domain without data, what a walk cannot know makes the result UNKNOWN. */
#include "interp/bi_walk.h"
#include "interp/builtin_fns.h"
#include "interp/container.h"
#include "interp/dict.h"
#include "interp/domain.h"
#include "interp/eval_impl.h"
#include "interp/format.h"
#include "interp/trace.h"
#include "runtime/base/mem.h"
#include "runtime/tensor/print.h"

/* ---- print ------------------------------------------------------------- */

tl_status tl_print_item(tl_eval *ev, tl_value v, bool full, tl_buf *out)
{
    if (full && v.tag == TL_V_TENSOR && v.tensor->storage != NULL) {
        tl_tensor_print(v.tensor, true, out);
        return TL_OK;
    }
    return tl_format_str(v, out, ev->diag);
}

tl_status tl_print_text(tl_eval *ev, const tl_value *args, tl_buf *out)
{
    const tl_seq *xs = args[0].seq;
    const tl_str *sep = args[1].str, *end = args[2].str;

    for (size_t i = 0; i < xs->len; i++) {
        if (i > 0) {
            tl_buf_add(out, sep->data, sep->len);
        }
        TL_TRY(tl_print_item(ev, xs->items[i], args[3].b, out));
    }
    tl_buf_add(out, end->data, end->len);
    return out->failed ? tl_fail_memory(ev->diag, "text", out->len) : TL_OK;
}

/* print(*xs, sep, end, full) */
tl_status tl_bi_print(tl_eval *ev, const tl_builtin *self, tl_value *args,
                      tl_value *out)
{
    tl_buf text;

    (void)self;
    *out = tl_none();
    if (tl_is_tracing(ev)) {
        return tl_trace_print(ev, args);
    }
    tl_buf_init(&text);
    tl_status st = tl_print_text(ev, args, &text);

    if (st == TL_OK) {
        st = tl_eval_write(ev, tl_buf_str(&text), text.len);
    }
    tl_buf_fini(&text);
    return st;
}

/* ---- walking ----------------------------------------------------------- */

bool tl_walk_known(tl_eval *ev, tl_value xs)
{
    switch (xs.tag) {
    case TL_V_UNKNOWN:
        return false;
    case TL_V_MODULE: /* its next() depends on data */
    case TL_V_ZIP:
        return ev->domain->has_data;
    case TL_V_NODE:
        return xs.node->type.shape.rank == 0 ||
               tl_dim_is_num(xs.node->type.shape.dim[0]);
    default:
        return true;
    }
}

tl_status tl_walk_list(tl_eval *ev, tl_value xs, tl_value *out)
{
    tl_iter it;
    tl_value list, item;
    tl_status st;
    bool more;

    /* too long a range is refused before it has filled the memory */
    TL_TRY(tl_seq_alloc(
        &list, TL_V_LIST,
        xs.tag == TL_V_RANGE ? (size_t)tl_range_len(xs.range) : 0, ev->diag));
    list.seq->len = 0;
    st = tl_iter_init_take(ev, tl_ref(xs), &it);
    if (st != TL_OK) {
        tl_unref(list);
        return st;
    }
    for (;;) {
        TL_GOTO(st, tl_iter_next(ev, &it, &more, &item));
        if (!more) {
            break;
        }
        TL_GOTO(st, tl_list_push_take(list.seq, item, ev->diag));
    }
    *out = list;
    list = tl_empty();
out:
    tl_iter_fini(&it);
    tl_unref(list);
    return st;
}

/* The items as a list that may be changed, or NONE if they are unknown. */
static tl_status items_of(tl_eval *ev, tl_value xs, tl_value *out)
{
    tl_value list;

    if (!tl_walk_known(ev, xs)) {
        *out = tl_none();
        return TL_OK;
    }
    if (xs.tag == TL_V_LIST) {
        return tl_list_unshare_take(tl_ref(xs), out, ev->diag);
    }
    TL_TRY(tl_walk_list(ev, xs, &list));
    *out = list;
    return TL_OK;
}

/* ---- len, range -------------------------------------------------------- */

static tl_status tensor_len(tl_eval *ev, tl_value x, tl_value *out)
{
    tl_ttype type;

    TL_TRY(tl_eval_type(ev, x, &type));
    if (type.shape.rank == 0) {
        return tl_fail(ev->diag, TL_E0304, "a scalar tensor has no length");
    }
    return tl_dim_value_of(ev, type.shape.dim[0], out);
}

/* A module that can be walked by number answers size(). */
static tl_status module_len(tl_eval *ev, tl_value x, tl_value *out)
{
    const tl_sym *name = tl_intern_get(ev->lang->names, "size", 4);
    tl_value method;
    tl_status st;

    if (name == NULL) {
        return tl_fail_memory(ev->diag, "name", 4);
    }
    TL_TRY(tl_eval_attr(ev, x, name, &method));
    st = tl_eval_call_values(ev, method, NULL, 0, out);
    tl_unref(method);
    return st;
}

tl_status tl_bi_len(tl_eval *ev, const tl_builtin *self, tl_value *args,
                    tl_value *out)
{
    tl_value x = args[0];
    int64_t n = tl_container_len(x);

    (void)self;
    if (n >= 0) {
        *out = tl_int_value(n);
        return TL_OK;
    }
    if (tl_is_tensor(x)) {
        return tensor_len(ev, x, out);
    }
    if (x.tag == TL_V_MODULE) {
        return module_len(ev, x, out);
    }
    if (x.tag == TL_V_TREE) {
        *out = tl_int_value((int64_t)x.tree->shape->len);
        return TL_OK;
    }
    return tl_fail(ev->diag, TL_E0210, "%s has no length",
                   tl_value_type_str(x).s);
}

/* range(n), range(start, stop, step) */
tl_status tl_bi_range(tl_eval *ev, const tl_builtin *self, tl_value *args,
                      tl_value *out)
{
    (void)self;
    TL_TRY(tl_sym_read(ev, &args[2]));
    if (args[2].i != 0 && (tl_is_sym(args[0]) || tl_is_sym(args[1]))) {
        bool one = args[1].tag == TL_V_NONE;

        return tl_sym_range(ev, one ? tl_int_value(0) : args[0],
                            one ? args[0] : args[1], args[2].i, out);
    }
    if (args[1].tag == TL_V_NONE) {
        return tl_range_new(out, 0, args[0].i, args[2].i, ev->diag);
    }
    return tl_range_new(out, args[0].i, args[1].i, args[2].i, ev->diag);
}

/* ---- zip, enumerate ---------------------------------------------------- */

/* Are the items read one by one, at a cost or with an effect? */
static bool is_stream(tl_value v)
{
    return v.tag == TL_V_MODULE || v.tag == TL_V_ZIP;
}

/* The items in step: a zip of streams, else a list.  UNKNOWN if a source is
 * of unknown length. */
static tl_status zip_values(tl_eval *ev, const tl_value *xs, size_t n,
                            bool numbered, int64_t start, tl_value *out)
{
    tl_zip *zip;
    tl_value v;
    bool stream = false;
    tl_status st;

    for (size_t i = 0; i < n; i++) {
        if (!is_stream(xs[i]) && !tl_walk_known(ev, xs[i])) {
            *out = tl_unknown();
            return TL_OK;
        }
        stream |= is_stream(xs[i]);
    }
    zip = tl_obj_new(TL_V_ZIP, sizeof(*zip) + n * sizeof(*xs), ev->diag);
    if (zip == NULL) {
        return TL_ERR_MEMORY;
    }
    zip->numbered = numbered;
    zip->start = start;
    for (; zip->n < n; zip->n++) {
        zip->sources[zip->n] = tl_ref(xs[zip->n]);
    }
    v = tl_obj_value_take(zip);
    if (stream) {
        *out = v;
        return TL_OK;
    }
    st = tl_walk_list(ev, v, out);
    tl_unref(v);
    return st;
}

tl_status tl_bi_zip(tl_eval *ev, const tl_builtin *self, tl_value *args,
                    tl_value *out)
{
    const tl_seq *xs = args[0].seq;

    (void)self;
    return zip_values(ev, xs->items, xs->len, false, 0, out);
}

/* enumerate(xs, start) */
tl_status tl_bi_enumerate(tl_eval *ev, const tl_builtin *self, tl_value *args,
                          tl_value *out)
{
    (void)self;
    return zip_values(ev, args, 1, true, args[1].i, out);
}

/* ---- reversed, filter, list, tuple, dict ------------------------------- */

tl_status tl_bi_reversed(tl_eval *ev, const tl_builtin *self, tl_value *args,
                         tl_value *out)
{
    tl_value list;

    (void)self;
    TL_TRY(items_of(ev, args[0], &list));
    if (list.tag == TL_V_NONE) {
        *out = tl_unknown();
        return TL_OK;
    }
    for (size_t i = 0, j = list.seq->len; i + 1 < j; i++) {
        tl_value t = list.seq->items[i];

        list.seq->items[i] = list.seq->items[--j];
        list.seq->items[j] = t;
    }
    *out = list;
    return TL_OK;
}

/* Does f(item) hold? */
static tl_status holds(tl_eval *ev, tl_value f, tl_value item, bool *known,
                       bool *out)
{
    tl_value arg = tl_ref(item), r;
    tl_status st = tl_eval_call_values(ev, f, &arg, 1, &r);

    tl_unref(arg);
    TL_TRY(st);
    st = tl_eval_truth(ev, r, known, out);
    tl_unref(r);
    return st;
}

tl_status tl_bi_filter(tl_eval *ev, const tl_builtin *self, tl_value *args,
                       tl_value *out)
{
    tl_value list, kept = tl_empty();
    bool known = true, yes = false;
    tl_status st;

    (void)self;
    TL_TRY(items_of(ev, args[1], &list));
    if (list.tag == TL_V_NONE) {
        *out = tl_unknown();
        return TL_OK;
    }
    TL_GOTO(st, tl_seq_alloc(&kept, TL_V_LIST, 0, ev->diag));
    for (size_t i = 0; i < list.seq->len && known; i++) {
        TL_GOTO(st, holds(ev, args[0], list.seq->items[i], &known, &yes));
        if (known && yes) {
            TL_GOTO(st, tl_list_push_take(
                            kept.seq, tl_ref(list.seq->items[i]), ev->diag));
        }
    }
    *out = known ? tl_ref(kept) : tl_unknown();
out:
    tl_unref(list);
    tl_unref(kept);
    return st;
}

tl_status tl_bi_list(tl_eval *ev, const tl_builtin *self, tl_value *args,
                     tl_value *out)
{
    tl_value list;

    (void)self;
    if (args[0].tag == TL_V_LIST) {
        *out = tl_ref(args[0]);
        return TL_OK;
    }
    TL_TRY(items_of(ev, args[0], &list));
    *out = list.tag == TL_V_NONE ? tl_unknown() : list;
    return TL_OK;
}

tl_status tl_bi_tuple(tl_eval *ev, const tl_builtin *self, tl_value *args,
                      tl_value *out)
{
    tl_value list;
    tl_status st;

    (void)self;
    if (args[0].tag == TL_V_TUPLE || args[0].tag == TL_V_LIST) {
        return tl_seq_as(args[0], TL_V_TUPLE, out, ev->diag);
    }
    TL_TRY(items_of(ev, args[0], &list));
    if (list.tag == TL_V_NONE) {
        *out = tl_unknown();
        return TL_OK;
    }
    st = tl_seq_as(list, TL_V_TUPLE, out, ev->diag);
    tl_unref(list);
    return st;
}

static tl_status add_pair(tl_eval *ev, tl_dict *d, tl_value pair)
{
    if ((pair.tag != TL_V_TUPLE && pair.tag != TL_V_LIST) ||
        pair.seq->len != 2) {
        return tl_fail(ev->diag, TL_E0210,
                       "dict needs pairs (key, value), got %s",
                       tl_value_type_str(pair).s);
    }
    return tl_dict_set_take(d, tl_ref(pair.seq->items[0]),
                            tl_ref(pair.seq->items[1]), ev->diag);
}

tl_status tl_dict_update(tl_dict *d, const tl_dict *from, tl_diag *diag)
{
    const tl_dict_entry *entry;
    size_t i = 0;

    while ((entry = tl_dict_next(from, &i)) != NULL) {
        TL_TRY(tl_dict_set_take(d, tl_ref(entry->key), tl_ref(entry->value),
                                diag));
    }
    return TL_OK;
}

static tl_status add_pairs(tl_eval *ev, tl_dict *d, tl_value pairs,
                           bool *known)
{
    tl_value list;
    tl_status st = TL_OK;

    if (pairs.tag == TL_V_DICT) {
        return tl_dict_update(d, pairs.dict, ev->diag);
    }
    TL_TRY(items_of(ev, pairs, &list));
    *known = list.tag != TL_V_NONE;
    for (size_t i = 0; *known && i < list.seq->len && st == TL_OK; i++) {
        st = add_pair(ev, d, list.seq->items[i]);
    }
    tl_unref(list);
    return st;
}

/* dict(pairs or dict, **kw) */
tl_status tl_bi_dict(tl_eval *ev, const tl_builtin *self, tl_value *args,
                     tl_value *out)
{
    bool known = true;
    tl_value d;
    tl_status st;

    (void)self;
    TL_TRY(tl_dict_new(&d, ev->diag));
    st = add_pairs(ev, d.dict, args[0], &known);
    if (st == TL_OK) {
        st = tl_dict_update(d.dict, args[1].dict, ev->diag);
    }
    if (st != TL_OK || !known) {
        tl_unref(d);
        d = tl_unknown();
    }
    if (st == TL_OK) {
        *out = d;
    }
    return st;
}
