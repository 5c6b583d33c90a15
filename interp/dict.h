/* dict.h - dictionaries: keys in order of insertion, open addressing. */
#ifndef TL_INTERP_DICT_H
#define TL_INTERP_DICT_H

#include "interp/value.h"

typedef struct tl_dict_entry {
    uint64_t hash;
    tl_value key; /* EMPTY once removed */
    tl_value value;
} tl_dict_entry;

struct tl_dict {
    tl_obj obj;
    tl_dict_entry *entries;
    uint32_t *index; /* 2 * cap slots: number of an entry + 1; 0 = free */
    size_t len, live, cap; /* len counts removed entries, live does not */
};

TL_MUST_USE tl_status tl_dict_new(tl_value *out, tl_diag *diag);

/* The value of `key`, borrowed; NULL if it is not there.  E0210 for a key
 * that cannot be hashed. */
TL_MUST_USE tl_status tl_dict_get(const tl_dict *d, tl_value key,
                                  tl_value **out, tl_diag *diag);
/* The value under a string key, or NULL. */
tl_value *tl_dict_get_str(const tl_dict *d, const char *s, size_t len);

/* Insert or replace in an unshared dict; takes key and value, on failure
 * too. */
TL_MUST_USE tl_status tl_dict_set_take(tl_dict *d, tl_value key,
                                       tl_value value, tl_diag *diag);

/* The same under a string key. */
TL_MUST_USE tl_status tl_dict_set_str_take(tl_dict *d, const char *s,
                                           size_t len, tl_value value,
                                           tl_diag *diag);

/* Remove from an unshared dict; *out gets the value that was there (owned),
 * EMPTY if there was none. */
TL_MUST_USE tl_status tl_dict_remove(tl_dict *d, tl_value key, tl_value *out,
                                     tl_diag *diag);

/* The next entry at or after position *i, which moves behind it; NULL at the
 * end.  Start with *i = 0. */
tl_dict_entry *tl_dict_next(const tl_dict *d, size_t *i);

/* A copy that is unshared: `d` itself, taken, when it already is. */
TL_MUST_USE tl_status tl_dict_unshare_take(tl_value *out, tl_value d,
                                           tl_diag *diag);

#endif
