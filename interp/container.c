/* container.c - indices, slices, joins and membership of host containers.
 *
 * One place for str, list, tuple, range and dict, so that the evaluator's
 * operators and the methods in builtin_seq.def cannot disagree. */
#include "interp/container.h"

#include <string.h>

#include "interp/bi_text.h"
#include "interp/format.h"
#include "runtime/base/size.h"

#define MAX_DEPTH 1000
#define MAX_KEYS 256 /* candidates of a did-you-mean */

int64_t tl_container_len(tl_value v)
{
    switch (v.tag) {
    case TL_V_STR:
        return tl_str_len(v.str);
    case TL_V_LIST:
    case TL_V_TUPLE:
        return (int64_t)v.seq->len;
    case TL_V_DICT:
        return (int64_t)v.dict->live;
    case TL_V_RANGE:
        return tl_range_len(v.range);
    default:
        return -1;
    }
}

/* ---- indices ----------------------------------------------------------- */

tl_status tl_index_normalise(int64_t i, int64_t len, const char *what,
                             int64_t *out, tl_diag *diag)
{
    if (i < -len || i >= len) {
        if (len == 0) {
            return tl_fail(diag, TL_E0218, "index %lld of an empty %s",
                           (long long)i, what);
        }
        return tl_fail(diag, TL_E0218, "index %lld is outside a %s of %lld",
                       (long long)i, what, (long long)len);
    }
    *out = i < 0 ? i + len : i;
    return TL_OK;
}

static tl_status index_int(tl_value i, const char *what, int64_t *out,
                           tl_diag *diag)
{
    if (i.tag == TL_V_INT) {
        *out = i.i;
        return TL_OK;
    }
    (void)tl_fail(diag, TL_E0210, "%s must be an int, got %s", what,
                  tl_value_type_str(i).s);
    if (tl_is_tensor(i)) {
        tl_diag_help(diag, "int(t) reads a tensor of one element");
    }
    return TL_ERR_PROGRAM;
}

static tl_status slice_part(tl_value v, const char *what, int64_t fallback,
                            int64_t *out, tl_diag *diag)
{
    if (v.tag == TL_V_NONE) {
        *out = fallback;
        return TL_OK;
    }
    return index_int(v, what, out, diag);
}

/* A bound of a slice, brought into lowest .. highest. */
static int64_t clamp_bound(int64_t i, int64_t len, int64_t lowest,
                           int64_t highest)
{
    if (i < 0) {
        i += len; /* len >= 0: no overflow */
    }
    return i < lowest ? lowest : i > highest ? highest : i;
}

tl_status tl_slice_indices(tl_value start, tl_value stop, tl_value step,
                           int64_t len, int64_t *first, int64_t *stride,
                           int64_t *count, tl_diag *diag)
{
    int64_t by, from, to;
    tl_range r = {0};

    TL_TRY(slice_part(step, "the step of a slice", 1, &by, diag));
    if (by == 0) {
        return tl_fail(diag, TL_E0416, "the step of a slice must not be 0");
    }
    by = by == INT64_MIN ? -INT64_MAX : by;
    TL_TRY(slice_part(start, "the start of a slice", by > 0 ? 0 : INT64_MAX,
                      &from, diag));
    from = by > 0 ? clamp_bound(from, len, 0, len)
                  : clamp_bound(from, len, -1, len - 1);
    if (stop.tag == TL_V_NONE) {
        to = by > 0 ? len : -1;
    } else {
        TL_TRY(index_int(stop, "the stop of a slice", &to, diag));
        to = by > 0 ? clamp_bound(to, len, 0, len)
                    : clamp_bound(to, len, -1, len - 1);
    }
    r.start = from;
    r.stop = to;
    r.step = by;
    *first = from;
    *stride = by;
    *count = tl_range_len(&r);
    return TL_OK;
}

tl_status tl_container_index(tl_value v, tl_value i, tl_value *out,
                             tl_diag *diag)
{
    int64_t n = tl_container_len(v), at;

    if (n < 0 || v.tag == TL_V_DICT) {
        return tl_fail(diag, TL_E0210, "%s has no items to index",
                       tl_value_type_str(v).s);
    }
    TL_TRY(index_int(i, "an index", &at, diag));
    if (at < -n || at >= n) { /* the text of the type costs more than all */
        return tl_index_normalise(at, n, tl_value_type_str(v).s, &at, diag);
    }
    at += at < 0 ? n : 0;
    switch (v.tag) {
    case TL_V_STR:
        return tl_str_index(v.str, at, out, diag);
    case TL_V_RANGE:
        *out = tl_int_value(v.range->start + at * v.range->step);
        return TL_OK;
    default:
        *out = tl_ref(v.seq->items[at]);
        return TL_OK;
    }
}

static tl_status seq_slice(tl_value v, int64_t first, int64_t stride,
                           int64_t count, tl_value *out, tl_diag *diag)
{
    if (v.tag == TL_V_TUPLE && count == (int64_t)v.seq->len && stride == 1) {
        *out = tl_ref(v);
        return TL_OK;
    }
    TL_TRY(tl_seq_alloc(out, v.tag, (size_t)count, diag));
    for (int64_t i = 0; i < count; i++) {
        out->seq->items[i] = tl_ref(v.seq->items[first + i * stride]);
    }
    return TL_OK;
}

static tl_status range_slice(const tl_range *r, int64_t first, int64_t stride,
                             int64_t count, tl_value *out, tl_diag *diag)
{
    int64_t start = r->start + first * r->step, step, span, stop;

    if (count == 0) {
        return tl_range_new(out, start, start, 1, diag);
    }
    if (!tl_mul_i64(&step, r->step, stride) ||
        !tl_mul_i64(&span, step, count) || !tl_add_i64(&stop, start, span)) {
        return tl_fail(diag, TL_E0404, "a range past 64 bits");
    }
    return tl_range_new(out, start, stop, step, diag);
}

tl_status tl_container_slice(tl_value v, tl_value start, tl_value stop,
                             tl_value step, tl_value *out, tl_diag *diag)
{
    int64_t n = tl_container_len(v), first, stride, count;

    if (n < 0 || v.tag == TL_V_DICT) {
        return tl_fail(diag, TL_E0210, "%s cannot be sliced",
                       tl_value_type_str(v).s);
    }
    TL_TRY(tl_slice_indices(start, stop, step, n, &first, &stride, &count,
                            diag));
    switch (v.tag) {
    case TL_V_STR:
        return tl_str_slice(v.str, first, stride, count, out, diag);
    case TL_V_RANGE:
        return range_slice(v.range, first, stride, count, out, diag);
    default:
        return seq_slice(v, first, stride, count, out, diag);
    }
}

/* ---- dicts ------------------------------------------------------------- */

/* The string key nearest to `key`, or NULL. */
static const char *nearest_key(const tl_dict *d, tl_value key)
{
    const char *names[MAX_KEYS];
    const tl_dict_entry *entry;
    size_t n = 0, i = 0;

    if (key.tag != TL_V_STR) {
        return NULL;
    }
    while (n < MAX_KEYS && (entry = tl_dict_next(d, &i)) != NULL) {
        if (entry->key.tag == TL_V_STR) {
            names[n++] = entry->key.str->data;
        }
    }
    return tl_nearest(key.str->data, names, n);
}

static tl_status no_such_key(const tl_dict *d, tl_value key, tl_diag *diag)
{
    const char *near = nearest_key(d, key);
    tl_status st;
    tl_buf text;

    tl_buf_init(&text);
    st = tl_format_repr(key, &text, diag);
    if (st == TL_OK) {
        st = tl_fail(diag, TL_E0218, "no key %.60s in a dict of %zu",
                     tl_buf_str(&text), d->live);
    }
    tl_buf_fini(&text);
    if (near != NULL) {
        tl_diag_help(diag, "\"%s\"", near);
    } else {
        tl_diag_help(diag, "d.get(key, default) does without it");
    }
    return st;
}

tl_status tl_dict_index(tl_value d, tl_value key, tl_value *out,
                        tl_diag *diag)
{
    tl_value *value;

    TL_TRY(tl_dict_get(d.dict, key, &value, diag));
    if (value == NULL) {
        return no_such_key(d.dict, key, diag);
    }
    *out = tl_ref(*value);
    return TL_OK;
}

/* ---- writing ----------------------------------------------------------- */

tl_status tl_list_unshare_take(tl_value v, tl_value *out, tl_diag *diag)
{
    tl_status st;
    tl_value copy;

    if (tl_unshared(v)) {
        *out = v;
        return TL_OK;
    }
    st = tl_seq_alloc(&copy, TL_V_LIST, v.seq->len, diag);
    for (size_t i = 0; st == TL_OK && i < v.seq->len; i++) {
        copy.seq->items[i] = tl_ref(v.seq->items[i]);
    }
    tl_unref(v);
    if (st == TL_OK) {
        *out = copy;
    }
    return st;
}

static tl_status list_put_take(tl_value v, tl_value i, tl_value x,
                               tl_value *out, tl_diag *diag)
{
    tl_status st;
    int64_t at;

    TL_GOTO(st, index_int(i, "an index", &at, diag));
    TL_GOTO(st,
            tl_index_normalise(at, (int64_t)v.seq->len, "list", &at, diag));
    st = tl_list_unshare_take(v, &v, diag);
    if (st != TL_OK) {
        tl_unref(x);
        return st;
    }
    tl_unref(v.seq->items[at]);
    v.seq->items[at] = x;
    *out = v;
    return TL_OK;
out:
    tl_unref(v);
    tl_unref(x);
    return st;
}

static tl_status dict_put_take(tl_value v, tl_value key, tl_value x,
                               tl_value *out, tl_diag *diag)
{
    tl_status st = tl_dict_unshare_take(&v, v, diag);

    if (st != TL_OK) {
        tl_unref(key);
        tl_unref(x);
        return st;
    }
    st = tl_dict_set_take(v.dict, key, x, diag);
    if (st != TL_OK) {
        tl_unref(v);
        return st;
    }
    *out = v;
    return TL_OK;
}

tl_status tl_container_put_take(tl_value v, tl_value i, tl_value x,
                                tl_value *out, tl_diag *diag)
{
    tl_status st;

    if (v.tag == TL_V_DICT) {
        return dict_put_take(v, i, x, out, diag);
    }
    if (v.tag == TL_V_LIST) {
        st = list_put_take(v, i, x, out, diag);
        tl_unref(i);
        return st;
    }
    st = tl_fail(diag, TL_E0210, "the items of %s cannot be written",
                 tl_value_type_str(v).s);
    if (v.tag == TL_V_TUPLE) {
        tl_diag_help(diag, "list(t) makes a list of it");
    }
    tl_unref(v);
    tl_unref(i);
    tl_unref(x);
    return st;
}

/* ---- joining and repeating --------------------------------------------- */

static tl_status list_extend_take(tl_value list, tl_value more, tl_value *out,
                                  tl_diag *diag)
{
    size_t n = more.seq->len;
    tl_status st = TL_OK;

    for (size_t i = 0; i < n && st == TL_OK; i++) {
        st = tl_list_push_take(list.seq, tl_ref(more.seq->items[i]), diag);
    }
    tl_unref(more);
    if (st != TL_OK) {
        tl_unref(list);
        return st;
    }
    *out = list;
    return TL_OK;
}

static tl_status seq_join(const tl_seq *a, const tl_seq *b, tl_tag tag,
                          tl_value *out, tl_diag *diag)
{
    TL_TRY(tl_seq_alloc(out, tag, a->len + b->len, diag));
    for (size_t i = 0; i < a->len; i++) {
        out->seq->items[i] = tl_ref(a->items[i]);
    }
    for (size_t i = 0; i < b->len; i++) {
        out->seq->items[a->len + i] = tl_ref(b->items[i]);
    }
    return TL_OK;
}

tl_status tl_concat_take(tl_value a, tl_value b, tl_value *out, tl_diag *diag)
{
    tl_status st;

    if (a.tag == TL_V_LIST && tl_unshared(a)) {
        return list_extend_take(a, b, out, diag);
    }
    st = a.tag == TL_V_STR ? tl_str_concat(a.str, b.str, out, diag)
                           : seq_join(a.seq, b.seq, a.tag, out, diag);
    tl_unref(a);
    tl_unref(b);
    return st;
}

static tl_status seq_repeat(tl_value v, int64_t n, tl_value *out,
                            tl_diag *diag)
{
    size_t len = v.seq->len, total;

    if (!tl_mul_size(&total, len, n < 0 ? 0 : (size_t)n) ||
        total > (size_t)TL_MAX_NUMEL) {
        return tl_fail(diag, TL_E0307, "%zu items times %lld are too many",
                       len, (long long)n);
    }
    TL_TRY(tl_seq_alloc(out, v.tag, total, diag));
    for (size_t i = 0; i < total; i++) {
        out->seq->items[i] = tl_ref(v.seq->items[i % len]);
    }
    return TL_OK;
}

tl_status tl_repeat_take(tl_value v, int64_t n, tl_value *out, tl_diag *diag)
{
    tl_status st = v.tag == TL_V_STR ? tl_str_repeat(v.str, n, out, diag)
                                     : seq_repeat(v, n, out, diag);

    tl_unref(v);
    return st;
}

/* ---- membership -------------------------------------------------------- */

static tl_status items_contain(const tl_seq *seq, tl_value item, bool *out,
                               tl_diag *diag)
{
    *out = false;
    for (size_t i = 0; i < seq->len && !*out; i++) {
        TL_TRY(tl_value_equal(seq->items[i], item, out, diag));
    }
    return TL_OK;
}

static bool range_contains(const tl_range *r, tl_value item)
{
    int64_t i = item.i, n = tl_range_len(r);
    uint64_t step = r->step > 0 ? (uint64_t)r->step : -(uint64_t)r->step;
    uint64_t gap;

    if (item.tag == TL_V_FLOAT) {
        if (!(item.f >= -0x1p63 && item.f < 0x1p63) ||
            (double)(int64_t)item.f != item.f) {
            return false;
        }
        i = (int64_t)item.f;
    } else if (item.tag != TL_V_INT) {
        return false;
    }
    if (n == 0 || (r->step > 0 ? i < r->start || i >= r->stop
                               : i > r->start || i <= r->stop)) {
        return false;
    }
    gap = r->step > 0 ? (uint64_t)i - (uint64_t)r->start
                      : (uint64_t)r->start - (uint64_t)i;
    return gap % step == 0;
}

tl_status tl_contains(tl_value v, tl_value item, bool *out, tl_diag *diag)
{
    tl_value *value;

    switch (v.tag) {
    case TL_V_LIST:
    case TL_V_TUPLE:
        return items_contain(v.seq, item, out, diag);
    case TL_V_DICT:
        TL_TRY(tl_dict_get(v.dict, item, &value, diag));
        *out = value != NULL;
        return TL_OK;
    case TL_V_RANGE:
        *out = range_contains(v.range, item);
        return TL_OK;
    case TL_V_STR:
        if (item.tag == TL_V_STR) {
            *out = tl_str_find(v.str, item.str, 0) >= 0;
            return TL_OK;
        }
        break;
    default:
        break;
    }
    return tl_fail(diag, TL_E0207, "no `in` for %s and %s",
                   tl_value_type_str(item).s, tl_value_type_str(v).s);
}

/* ---- conversions and questions ----------------------------------------- */

tl_status tl_seq_as(tl_value v, tl_tag tag, tl_value *out, tl_diag *diag)
{
    if (v.tag == tag) {
        *out = tl_ref(v);
        return TL_OK;
    }
    TL_TRY(tl_seq_alloc(out, tag, v.seq->len, diag));
    for (size_t i = 0; i < v.seq->len; i++) {
        out->seq->items[i] = tl_ref(v.seq->items[i]);
    }
    return TL_OK;
}

static bool known(tl_value v, int depth)
{
    const tl_dict_entry *entry;
    size_t i = 0;

    if (v.tag == TL_V_UNKNOWN || v.tag == TL_V_NODE) {
        return false;
    }
    if (depth >= MAX_DEPTH) {
        return true;
    }
    if (v.tag == TL_V_SLICE) {
        return known(v.slice->start, depth) && known(v.slice->stop, depth) &&
               known(v.slice->step, depth);
    }
    if (v.tag == TL_V_LIST || v.tag == TL_V_TUPLE) {
        while (i < v.seq->len && known(v.seq->items[i], depth + 1)) {
            i++;
        }
        return i == v.seq->len;
    }
    if (v.tag == TL_V_DICT) {
        while ((entry = tl_dict_next(v.dict, &i)) != NULL) {
            if (!known(entry->value, depth + 1)) {
                return false;
            }
        }
    }
    return true;
}

bool tl_value_known(tl_value v)
{
    return known(v, 0);
}
