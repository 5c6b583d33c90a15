/* bi_seq.c - methods of list, tuple and dict.
 *
 * The object is args[0]; taking it out lets an unshared one be written in
 * place, so that `xs = xs.append(v)` costs what `xs += [v]` does. */
#include "interp/bi_walk.h"
#include "interp/builtin_fns.h"
#include "interp/container.h"
#include "interp/dict.h"
#include "interp/format.h"

static tl_value take(tl_value *slot)
{
    tl_value v = *slot;

    *slot = tl_empty();
    return v;
}

/* copy(): values do not change. */
tl_status tl_bi_same(tl_eval *ev, const tl_builtin *self, tl_value *args,
                     tl_value *out)
{
    (void)ev;
    (void)self;
    *out = take(&args[0]);
    return TL_OK;
}

/* ---- lists ------------------------------------------------------------- */

static tl_status push_take(tl_value list, tl_value x, tl_value *out,
                           tl_diag *diag)
{
    tl_status st = tl_list_push_take(list.seq, x, diag);

    if (st != TL_OK) {
        tl_unref(list);
        return st;
    }
    *out = list;
    return TL_OK;
}

tl_status tl_bi_list_append(tl_eval *ev, const tl_builtin *self,
                            tl_value *args, tl_value *out)
{
    tl_value list;

    (void)self;
    TL_TRY(tl_list_unshare_take(take(&args[0]), &list, ev->diag));
    return push_take(list, take(&args[1]), out, ev->diag);
}

tl_status tl_bi_list_extend(tl_eval *ev, const tl_builtin *self,
                            tl_value *args, tl_value *out)
{
    tl_value more;

    (void)self;
    if (!tl_walk_known(ev, args[1])) {
        *out = tl_unknown();
        return TL_OK;
    }
    TL_TRY(tl_walk_list(ev, args[1], &more));
    return tl_concat_take(take(&args[0]), more, out, ev->diag);
}

tl_status tl_bi_list_insert(tl_eval *ev, const tl_builtin *self,
                            tl_value *args, tl_value *out)
{
    tl_value list, *items;
    int64_t i = args[1].i, n;

    (void)self;
    TL_TRY(tl_list_unshare_take(take(&args[0]), &list, ev->diag));
    n = (int64_t)list.seq->len;
    TL_TRY(push_take(list, take(&args[2]), out, ev->diag));
    i = i < -n ? 0 : i < 0 ? i + n : i > n ? n : i; /* as Python clamps */
    items = out->seq->items;
    for (int64_t k = n; k > i; k--) {
        tl_value t = items[k];

        items[k] = items[k - 1];
        items[k - 1] = t;
    }
    return TL_OK;
}

/* Take item `i` out of an unshared list. */
static void drop_item(tl_seq *list, size_t i)
{
    tl_value gone = list->items[i];

    for (; i + 1 < list->len; i++) {
        list->items[i] = list->items[i + 1];
    }
    list->len--;
    tl_unref(gone);
}

/* Position of the first item that equals `x`, -1 if none. */
static tl_status position(tl_eval *ev, const tl_seq *seq, tl_value x,
                          int64_t *out)
{
    for (size_t i = 0; i < seq->len; i++) {
        bool same;

        TL_TRY(tl_value_equal(seq->items[i], x, &same, ev->diag));
        if (same) {
            *out = (int64_t)i;
            return TL_OK;
        }
    }
    *out = -1;
    return TL_OK;
}

static tl_status not_there(tl_eval *ev, tl_value x, const char *what)
{
    tl_buf text;
    tl_status st;

    tl_buf_init(&text);
    st = tl_format_repr(x, &text, ev->diag);
    if (st == TL_OK) {
        st = tl_fail(ev->diag, TL_E0218, "%.60s is not in the %s",
                     tl_buf_str(&text), what);
    }
    tl_buf_fini(&text);
    return st;
}

tl_status tl_bi_list_remove(tl_eval *ev, const tl_builtin *self,
                            tl_value *args, tl_value *out)
{
    int64_t at;

    (void)self;
    if (!tl_value_known(args[0]) || !tl_value_known(args[1])) {
        *out = tl_unknown();
        return TL_OK;
    }
    TL_TRY(position(ev, args[0].seq, args[1], &at));
    if (at < 0) {
        return not_there(ev, args[1], "list");
    }
    TL_TRY(tl_list_unshare_take(take(&args[0]), out, ev->diag));
    drop_item(out->seq, (size_t)at);
    return TL_OK;
}

tl_status tl_bi_list_pop(tl_eval *ev, const tl_builtin *self, tl_value *args,
                         tl_value *out)
{
    int64_t at;

    (void)self;
    TL_TRY(tl_index_normalise(args[1].i, (int64_t)args[0].seq->len, "list",
                              &at, ev->diag));
    TL_TRY(tl_list_unshare_take(take(&args[0]), out, ev->diag));
    drop_item(out->seq, (size_t)at);
    return TL_OK;
}

tl_status tl_bi_seq_index(tl_eval *ev, const tl_builtin *self, tl_value *args,
                          tl_value *out)
{
    int64_t at;

    (void)self;
    if (!tl_value_known(args[0]) || !tl_value_known(args[1])) {
        *out = tl_unknown();
        return TL_OK;
    }
    TL_TRY(position(ev, args[0].seq, args[1], &at));
    if (at < 0) {
        return not_there(ev, args[1], tl_value_type_str(args[0]).s);
    }
    *out = tl_int_value(at);
    return TL_OK;
}

tl_status tl_bi_seq_count(tl_eval *ev, const tl_builtin *self, tl_value *args,
                          tl_value *out)
{
    const tl_seq *seq = args[0].seq;
    int64_t n = 0;

    (void)self;
    if (!tl_value_known(args[0]) || !tl_value_known(args[1])) {
        *out = tl_unknown();
        return TL_OK;
    }
    for (size_t i = 0; i < seq->len; i++) {
        bool same;

        TL_TRY(tl_value_equal(seq->items[i], args[1], &same, ev->diag));
        n += same;
    }
    *out = tl_int_value(n);
    return TL_OK;
}

/* ---- dicts ------------------------------------------------------------- */

typedef enum part {
    KEYS,
    VALUES,
    ITEMS
} part;

static tl_status entry_part(const tl_dict_entry *entry, part what,
                            tl_value *out, tl_diag *diag)
{
    if (what != ITEMS) {
        *out = tl_ref(what == KEYS ? entry->key : entry->value);
        return TL_OK;
    }
    TL_TRY(tl_seq_alloc(out, TL_V_TUPLE, 2, diag));
    out->seq->items[0] = tl_ref(entry->key);
    out->seq->items[1] = tl_ref(entry->value);
    return TL_OK;
}

static tl_status parts_of(const tl_dict *d, part what, tl_value *out,
                          tl_diag *diag)
{
    const tl_dict_entry *entry;
    tl_value list;
    size_t i = 0, n = 0;

    TL_TRY(tl_seq_alloc(&list, TL_V_LIST, d->live, diag));
    while ((entry = tl_dict_next(d, &i)) != NULL) {
        tl_status st = entry_part(entry, what, &list.seq->items[n++], diag);

        if (st != TL_OK) {
            tl_unref(list);
            return st;
        }
    }
    *out = list;
    return TL_OK;
}

tl_status tl_bi_dict_keys(tl_eval *ev, const tl_builtin *self, tl_value *args,
                          tl_value *out)
{
    (void)self;
    return parts_of(args[0].dict, KEYS, out, ev->diag);
}

tl_status tl_bi_dict_values(tl_eval *ev, const tl_builtin *self,
                            tl_value *args, tl_value *out)
{
    (void)self;
    return parts_of(args[0].dict, VALUES, out, ev->diag);
}

tl_status tl_bi_dict_items(tl_eval *ev, const tl_builtin *self,
                           tl_value *args, tl_value *out)
{
    (void)self;
    return parts_of(args[0].dict, ITEMS, out, ev->diag);
}

/* get(key, default) */
tl_status tl_bi_dict_get(tl_eval *ev, const tl_builtin *self, tl_value *args,
                         tl_value *out)
{
    tl_value *value;

    (void)self;
    TL_TRY(tl_dict_get(args[0].dict, args[1], &value, ev->diag));
    *out = value != NULL ? tl_ref(*value) : take(&args[2]);
    return TL_OK;
}

tl_status tl_bi_dict_set(tl_eval *ev, const tl_builtin *self, tl_value *args,
                         tl_value *out)
{
    (void)self;
    if (args[1].tag == TL_V_UNKNOWN) {
        *out = tl_unknown();
        return TL_OK;
    }
    return tl_container_put_take(take(&args[0]), take(&args[1]),
                                 take(&args[2]), out, ev->diag);
}

tl_status tl_bi_dict_remove(tl_eval *ev, const tl_builtin *self,
                            tl_value *args, tl_value *out)
{
    tl_value value, d;

    (void)self;
    TL_TRY(tl_dict_index(args[0], args[1], &value, ev->diag));
    tl_unref(value); /* it is there */
    TL_TRY(tl_dict_unshare_take(&d, take(&args[0]), ev->diag));
    TL_TRY(tl_dict_remove(d.dict, args[1], &value, ev->diag));
    tl_unref(value);
    *out = d;
    return TL_OK;
}

/* update(other, **kw) */
tl_status tl_bi_dict_update(tl_eval *ev, const tl_builtin *self,
                            tl_value *args, tl_value *out)
{
    tl_value more[2] = {args[1], args[2]}, other, d;
    tl_status st;

    TL_TRY(tl_bi_dict(ev, self, more, &other));
    if (other.tag == TL_V_UNKNOWN) {
        *out = other;
        return TL_OK;
    }
    st = tl_dict_unshare_take(&d, take(&args[0]), ev->diag);
    if (st == TL_OK) {
        st = tl_dict_update(d.dict, other.dict, ev->diag);
        if (st != TL_OK) {
            tl_unref(d);
        } else {
            *out = d;
        }
    }
    tl_unref(other);
    return st;
}
