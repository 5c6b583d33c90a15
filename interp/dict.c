/* dict.c - dictionaries: an array of entries in order of insertion, and an
 * index of twice its capacity with linear probing (at most half full).
 *
 * A removed entry keeps its place with an EMPTY key, so that probing goes on
 * behind it; entries close ranks when the array is full. */
#include "interp/dict.h"

#include <string.h>

#include "interp/free.h"
#include "runtime/base/mem.h"

#define MIN_CAP 8
#define MAX_CAP ((size_t)1 << 30)

tl_status tl_dict_new(tl_value *out, tl_diag *diag)
{
    tl_dict *d = tl_obj_new(TL_V_DICT, sizeof(*d), diag);

    if (d == NULL) {
        return TL_ERR_MEMORY;
    }
    *out = tl_obj_value_take(d);
    return TL_OK;
}

void tl_dict_free(tl_obj *obj)
{
    tl_dict *d = (tl_dict *)obj;

    for (size_t i = 0; i < d->len; i++) {
        tl_unref(d->entries[i].key);
        tl_unref(d->entries[i].value);
    }
    tl_free(d->entries);
    tl_free(d->index);
}

tl_dict_entry *tl_dict_next(const tl_dict *d, size_t *i)
{
    while (*i < d->len) {
        tl_dict_entry *entry = &d->entries[(*i)++];

        if (entry->key.tag != TL_V_EMPTY) {
            return entry;
        }
    }
    return NULL;
}

/* ---- finding ----------------------------------------------------------- */

/* The entry of `key`, or NULL; comparing cannot fail on keys that hash. */
static tl_status find(const tl_dict *d, tl_value key, uint64_t hash,
                      tl_dict_entry **out, tl_diag *diag)
{
    size_t mask = 2 * d->cap - 1;

    *out = NULL;
    if (d->cap == 0) {
        return TL_OK;
    }
    for (size_t i = (size_t)hash & mask; d->index[i] != 0;
         i = (i + 1) & mask) {
        tl_dict_entry *entry = &d->entries[d->index[i] - 1];
        bool same;

        if (entry->hash != hash || entry->key.tag == TL_V_EMPTY) {
            continue;
        }
        TL_TRY(tl_value_equal(entry->key, key, &same, diag));
        if (same) {
            *out = entry;
            return TL_OK;
        }
    }
    return TL_OK;
}

tl_status tl_dict_get(const tl_dict *d, tl_value key, tl_value **out,
                      tl_diag *diag)
{
    tl_dict_entry *entry;
    uint64_t hash;

    TL_TRY(tl_value_hash(key, &hash, diag));
    TL_TRY(find(d, key, hash, &entry, diag));
    *out = entry == NULL ? NULL : &entry->value;
    return TL_OK;
}

tl_value *tl_dict_get_str(const tl_dict *d, const char *s, size_t len)
{
    size_t mask = 2 * d->cap - 1;
    uint64_t hash = tl_hash_text(s, len);

    if (d->cap == 0) {
        return NULL;
    }
    for (size_t i = (size_t)hash & mask; d->index[i] != 0;
         i = (i + 1) & mask) {
        tl_dict_entry *entry = &d->entries[d->index[i] - 1];

        if (entry->hash == hash && entry->key.tag == TL_V_STR &&
            entry->key.str->len == len &&
            memcmp(entry->key.str->data, s, len) == 0) {
            return &entry->value;
        }
    }
    return NULL;
}

/* ---- writing ----------------------------------------------------------- */

static void index_entry(tl_dict *d, size_t number)
{
    size_t mask = 2 * d->cap - 1;
    size_t i = (size_t)d->entries[number].hash & mask;

    while (d->index[i] != 0) {
        i = (i + 1) & mask;
    }
    d->index[i] = (uint32_t)number + 1;
}

/* Move the live entries into arrays of `cap` entries. */
static tl_status resize(tl_dict *d, size_t cap, tl_diag *diag)
{
    tl_dict_entry *old = d->entries, *entries = NULL, *entry;
    uint32_t *index = NULL;
    size_t n = 0, i = 0;

    if (cap <= MAX_CAP) {
        entries = tl_calloc(cap, sizeof(*entries));
        index = tl_calloc(2 * cap, sizeof(*index));
    }
    if (entries == NULL || index == NULL) {
        tl_free(entries);
        tl_free(index);
        return tl_fail_memory(diag, "dict", cap * sizeof(*entries));
    }
    while ((entry = tl_dict_next(d, &i)) != NULL) {
        entries[n++] = *entry;
    }
    tl_free(old);
    tl_free(d->index);
    d->entries = entries;
    d->index = index;
    d->len = n;
    d->cap = cap;
    for (i = 0; i < n; i++) {
        index_entry(d, i);
    }
    return TL_OK;
}

static tl_status make_room(tl_dict *d, tl_diag *diag)
{
    if (d->len < d->cap) {
        return TL_OK;
    }
    if (d->cap == 0) {
        return resize(d, MIN_CAP, diag);
    }
    return resize(d, d->live > d->cap / 2 ? 2 * d->cap : d->cap, diag);
}

/* Insert or replace; takes key and value only on success. */
static tl_status set(tl_dict *d, tl_value key, tl_value value, tl_diag *diag)
{
    tl_dict_entry *entry;
    uint64_t hash;

    TL_TRY(tl_value_hash(key, &hash, diag));
    TL_TRY(find(d, key, hash, &entry, diag));
    if (entry != NULL) {
        tl_value old = entry->value;

        entry->value = value;
        tl_unref(old);
        tl_unref(key);
        return TL_OK;
    }
    TL_TRY(make_room(d, diag));
    d->entries[d->len] =
        (tl_dict_entry){.hash = hash, .key = key, .value = value};
    index_entry(d, d->len);
    d->len++;
    d->live++;
    return TL_OK;
}

tl_status tl_dict_set_take(tl_dict *d, tl_value key, tl_value value,
                           tl_diag *diag)
{
    tl_status st = set(d, key, value, diag);

    if (st != TL_OK) {
        tl_unref(key);
        tl_unref(value);
    }
    return st;
}

tl_status tl_dict_set_str_take(tl_dict *d, const char *s, size_t len,
                               tl_value value, tl_diag *diag)
{
    tl_value key;
    tl_status st = tl_str_new(&key, s, len, diag);

    if (st != TL_OK) {
        tl_unref(value);
        return st;
    }
    return tl_dict_set_take(d, key, value, diag);
}

tl_status tl_dict_remove(tl_dict *d, tl_value key, tl_value *out,
                         tl_diag *diag)
{
    tl_dict_entry *entry;
    uint64_t hash;

    TL_TRY(tl_value_hash(key, &hash, diag));
    TL_TRY(find(d, key, hash, &entry, diag));
    if (entry == NULL) {
        *out = tl_empty();
        return TL_OK;
    }
    *out = entry->value;
    entry->value = tl_empty();
    tl_drop(&entry->key);
    d->live--;
    return TL_OK;
}

/* ---- copying ----------------------------------------------------------- */

static tl_status copy_entries(tl_dict *to, const tl_dict *from, tl_diag *diag)
{
    tl_dict_entry *entry;
    size_t cap = MIN_CAP, i = 0;

    while (cap < from->live) {
        cap *= 2;
    }
    TL_TRY(resize(to, cap, diag));
    while ((entry = tl_dict_next(from, &i)) != NULL) {
        (void)tl_ref(entry->key);
        (void)tl_ref(entry->value);
        to->entries[to->len] = *entry;
        index_entry(to, to->len++);
    }
    to->live = to->len;
    return TL_OK;
}

tl_status tl_dict_unshare_take(tl_value *out, tl_value d, tl_diag *diag)
{
    tl_value copy;
    tl_status st;

    if (tl_unshared(d)) {
        *out = d;
        return TL_OK;
    }
    st = tl_dict_new(&copy, diag);
    if (st == TL_OK && d.dict->live > 0) {
        st = copy_entries(copy.dict, d.dict, diag);
        if (st != TL_OK) {
            tl_unref(copy);
        }
    }
    tl_unref(d);
    if (st == TL_OK) {
        *out = copy;
    }
    return st;
}
