/* value_cmp.c - equality, order and hashes of host values, as in Python.
 *
 * int and float compare exactly, not by converting the int: 2**53 + 1 is not
 * 2.0**53.  What is equal hashes equal. */
#include <string.h>

#include "interp/builtin.h"
#include "interp/dict.h"
#include "interp/module.h"
#include "interp/value.h"

#define MAX_DEPTH 1000

static tl_status too_deep(tl_diag *diag)
{
    return tl_fail(diag, TL_E0224, "value nested deeper than %d", MAX_DEPTH);
}

/* ---- numbers ----------------------------------------------------------- */

static int64_t int_of(tl_value v)
{
    return v.tag == TL_V_BOOL ? (int64_t)v.b : v.i;
}

/* Does `f` lie in the range of int64? */
static bool fits_int(double f)
{
    return f >= -0x1p63 && f < 0x1p63;
}

static int compare_int_float(int64_t i, double f)
{
    int64_t whole;

    if (f != f) {
        return TL_UNORDERED;
    }
    if (!fits_int(f)) {
        return f > 0 ? -1 : 1;
    }
    whole = (int64_t)f; /* towards zero */
    if (i != whole) {
        return i < whole ? -1 : 1;
    }
    return f > (double)whole ? -1 : f < (double)whole ? 1 : 0;
}

static int compare_floats(double a, double b)
{
    if (a != a || b != b) {
        return TL_UNORDERED;
    }
    return (a > b) - (a < b);
}

static int compare_numbers(tl_value a, tl_value b)
{
    if (a.tag == TL_V_FLOAT && b.tag == TL_V_FLOAT) {
        return compare_floats(a.f, b.f);
    }
    if (b.tag == TL_V_FLOAT) {
        return compare_int_float(int_of(a), b.f);
    }
    if (a.tag == TL_V_FLOAT) {
        int c = compare_int_float(int_of(b), a.f);

        return c == TL_UNORDERED ? c : -c;
    }
    return (int_of(a) > int_of(b)) - (int_of(a) < int_of(b));
}

static int compare_strings(const tl_str *a, const tl_str *b)
{
    size_t len = a->len < b->len ? a->len : b->len;
    int c = memcmp(a->data, b->data, len); /* UTF-8 keeps code point order */

    if (c != 0) {
        return c < 0 ? -1 : 1;
    }
    return (a->len > b->len) - (a->len < b->len);
}

/* ---- equality ---------------------------------------------------------- */

static tl_status equal(tl_value a, tl_value b, int depth, bool *out,
                       tl_diag *diag);

static bool strings_equal(const tl_str *a, const tl_str *b)
{
    return a == b ||
           (a->len == b->len && memcmp(a->data, b->data, a->len) == 0);
}

static tl_status items_equal(const tl_value *a, const tl_value *b, size_t n,
                             int depth, bool *out, tl_diag *diag)
{
    bool same = true;

    for (size_t i = 0; i < n && same; i++) {
        TL_TRY(equal(a[i], b[i], depth + 1, &same, diag));
    }
    *out = same;
    return TL_OK;
}

static tl_status dicts_equal(const tl_dict *a, const tl_dict *b, int depth,
                             bool *out, tl_diag *diag)
{
    bool same = a->live == b->live;

    for (size_t i = 0; i < a->len && same; i++) {
        tl_value *other;

        if (a->entries[i].key.tag == TL_V_EMPTY) {
            continue;
        }
        TL_TRY(tl_dict_get(b, a->entries[i].key, &other, diag));
        same = other != NULL;
        if (same) {
            TL_TRY(
                equal(a->entries[i].value, *other, depth + 1, &same, diag));
        }
    }
    *out = same;
    return TL_OK;
}

static bool ranges_equal(const tl_range *a, const tl_range *b)
{
    int64_t n = tl_range_len(a);

    return n == tl_range_len(b) && (n == 0 || a->start == b->start) &&
           (n <= 1 || a->step == b->step);
}

static bool methods_equal(const tl_method *a, const tl_method *b)
{
    return a->code == b->code && a->builtin == b->builtin &&
           tl_is_obj(a->self) && tl_is_obj(b->self) &&
           a->self.obj == b->self.obj;
}

/* Two objects of the same tag. */
static tl_status objects_equal(tl_value a, tl_value b, int depth, bool *out,
                               tl_diag *diag)
{
    *out = a.obj == b.obj;
    if (*out) {
        return TL_OK;
    }
    switch (a.tag) {
    case TL_V_STR:
        *out = strings_equal(a.str, b.str);
        return TL_OK;
    case TL_V_LIST:
    case TL_V_TUPLE:
        if (a.seq->len != b.seq->len) {
            return TL_OK;
        }
        return items_equal(a.seq->items, b.seq->items, a.seq->len, depth, out,
                           diag);
    case TL_V_DICT:
        return dicts_equal(a.dict, b.dict, depth, out, diag);
    case TL_V_RANGE:
        *out = ranges_equal(a.range, b.range);
        return TL_OK;
    case TL_V_METHOD:
        *out = methods_equal(a.method, b.method);
        return TL_OK;
    case TL_V_RECORD:
        if (a.record->cls != b.record->cls) {
            return TL_OK;
        }
        return items_equal(a.record->fields, b.record->fields,
                           a.record->cls->code->params.len, depth, out, diag);
    default:
        return TL_OK;
    }
}

/* The name `bool` is a function and the dtype as well. */
static bool names_bool(tl_value v)
{
    return (v.tag == TL_V_DTYPE && v.dtype == TL_bool) ||
           (v.tag == TL_V_BUILTIN && strcmp(v.builtin->name, "bool") == 0);
}

static tl_status equal(tl_value a, tl_value b, int depth, bool *out,
                       tl_diag *diag)
{
    if (depth > MAX_DEPTH) {
        return too_deep(diag);
    }
    if (tl_is_number(a) && tl_is_number(b)) {
        *out = compare_numbers(a, b) == 0;
        return TL_OK;
    }
    if (a.tag != b.tag) {
        *out = names_bool(a) && names_bool(b);
        return TL_OK;
    }
    switch (a.tag) {
    case TL_V_NONE:
    case TL_V_EMPTY:
    case TL_V_ELLIPSIS:
        *out = true;
        return TL_OK;
    case TL_V_DTYPE:
        *out = a.dtype == b.dtype;
        return TL_OK;
    case TL_V_BUILTIN:
        *out = a.builtin == b.builtin;
        return TL_OK;
    case TL_V_TENSOR:
        *out = a.tensor == b.tensor;
        return TL_OK;
    case TL_V_UNKNOWN:
        *out = false;
        return TL_OK;
    default:
        return objects_equal(a, b, depth, out, diag);
    }
}

tl_status tl_value_equal(tl_value a, tl_value b, bool *out, tl_diag *diag)
{
    return equal(a, b, 0, out, diag);
}

/* ---- order ------------------------------------------------------------- */

static tl_status compare(tl_value a, tl_value b, int depth, int *out,
                         tl_diag *diag)
{
    if (tl_is_number(a) && tl_is_number(b)) {
        *out = compare_numbers(a, b);
        return TL_OK;
    }
    if (a.tag == TL_V_STR && b.tag == TL_V_STR) {
        *out = compare_strings(a.str, b.str);
        return TL_OK;
    }
    if (a.tag != b.tag || (a.tag != TL_V_LIST && a.tag != TL_V_TUPLE)) {
        return tl_fail(diag, TL_E0207, "no order between %s and %s",
                       tl_value_type_str(a).s, tl_value_type_str(b).s);
    }
    if (depth > MAX_DEPTH) {
        return too_deep(diag);
    }
    for (size_t i = 0; i < a.seq->len && i < b.seq->len; i++) {
        bool same;

        TL_TRY(tl_value_equal(a.seq->items[i], b.seq->items[i], &same, diag));
        if (!same) {
            return compare(a.seq->items[i], b.seq->items[i], depth + 1, out,
                           diag);
        }
    }
    *out = (a.seq->len > b.seq->len) - (a.seq->len < b.seq->len);
    return TL_OK;
}

tl_status tl_value_compare(tl_value a, tl_value b, int *out, tl_diag *diag)
{
    return compare(a, b, 0, out, diag);
}

/* ---- hashes ------------------------------------------------------------ */

enum {
    SEED_INT = 1,
    SEED_FLOAT,
    SEED_STR,
    SEED_OTHER,
    SEED_TUPLE
};

/* The mixer of splitmix64 (Steele, Lea, Flood 2014). */
static uint64_t hash_word(uint64_t word, uint64_t seed)
{
    uint64_t x = word + seed * 0x9e3779b97f4a7c15u;

    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

static uint64_t hash_float(double f)
{
    uint64_t bits;

    if (fits_int(f) && (double)(int64_t)f == f) {
        return hash_word((uint64_t)(int64_t)f, SEED_INT);
    }
    memcpy(&bits, &f, sizeof(bits));
    return hash_word(bits, SEED_FLOAT);
}

/* The same for the bytes of a lookup by C string; never 0. */
uint64_t tl_hash_text(const char *s, size_t len)
{
    uint64_t h = tl_hash_bytes(s, len, SEED_STR);

    return h == 0 ? 1 : h;
}

static uint64_t hash_str(tl_str *s)
{
    if (s->hash == 0) {
        s->hash = tl_hash_text(s->data, s->len);
    }
    return s->hash;
}

static tl_status hash(tl_value v, int depth, uint64_t *out, tl_diag *diag)
{
    uint64_t h = SEED_TUPLE;

    switch (v.tag) {
    case TL_V_STR:
        *out = hash_str(v.str);
        return TL_OK;
    case TL_V_INT:
    case TL_V_BOOL:
        *out = hash_word((uint64_t)int_of(v), SEED_INT);
        return TL_OK;
    case TL_V_FLOAT:
        *out = hash_float(v.f);
        return TL_OK;
    case TL_V_NONE:
        *out = hash_word(0, SEED_OTHER);
        return TL_OK;
    case TL_V_DTYPE:
        *out = hash_word(1 + (uint64_t)v.dtype, SEED_OTHER);
        return TL_OK;
    case TL_V_TUPLE:
        break;
    default:
        return tl_fail(diag, TL_E0210, "%s cannot be a dict key",
                       tl_value_type_str(v).s);
    }
    if (depth > MAX_DEPTH) {
        return too_deep(diag);
    }
    for (size_t i = 0; i < v.seq->len; i++) {
        uint64_t item;

        TL_TRY(hash(v.seq->items[i], depth + 1, &item, diag));
        h = hash_word(item, h);
    }
    *out = h;
    return TL_OK;
}

tl_status tl_value_hash(tl_value v, uint64_t *out, tl_diag *diag)
{
    return hash(v, 0, out, diag);
}
