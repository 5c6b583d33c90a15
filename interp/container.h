/* container.h - indices, slices, joins and membership of host containers
 * (str, list, tuple, range, dict), with Python's meaning.
 *
 * Functions that end in _take eat their operands, on failure too.  Nothing
 * here calls the program. */
#ifndef TL_INTERP_CONTAINER_H
#define TL_INTERP_CONTAINER_H

#include "interp/dict.h"
#include "interp/value.h"

/* Number of items; characters of a str.  -1: not one of these. */
int64_t tl_container_len(tl_value v);

/* Bring an index into 0 .. len-1, or E0218 "index 5 is outside a list of 3".
 * `what` names the container. */
TL_MUST_USE tl_status tl_index_normalise(int64_t i, int64_t len,
                                         const char *what, int64_t *out,
                                         tl_diag *diag);

/* Python's slice.indices(len): the positions start, start + step, ..., of
 * which there are *count.  Each part is INT or NONE (E0210), step not 0
 * (E0416). */
TL_MUST_USE tl_status tl_slice_indices(tl_value start, tl_value stop,
                                       tl_value step, int64_t len,
                                       int64_t *first, int64_t *stride,
                                       int64_t *count, tl_diag *diag);

/* v[i] and v[start:stop:step] of str, list, tuple, range (a slice of a range
 * is a range).  E0218, E0210. */
TL_MUST_USE tl_status tl_container_index(tl_value v, tl_value i,
                                         tl_value *out, tl_diag *diag);
TL_MUST_USE tl_status tl_container_slice(tl_value v, tl_value start,
                                         tl_value stop, tl_value step,
                                         tl_value *out, tl_diag *diag);

/* d[key]; E0218 shows the key and the nearest one.  Result is a new
 * reference. */
TL_MUST_USE tl_status tl_dict_index(tl_value d, tl_value key, tl_value *out,
                                    tl_diag *diag);

/* The list or dict after v[i] = x: written in place when `v` is unshared.
 * E0218; E0210 for what has no items to write. */
TL_MUST_USE tl_status tl_container_put_take(tl_value v, tl_value i,
                                            tl_value x, tl_value *out,
                                            tl_diag *diag);

/* a + b of two lists, two tuples or two strings; appends in place when `a`
 * is an unshared list.  The caller has checked that the tags agree. */
TL_MUST_USE tl_status tl_concat_take(tl_value a, tl_value b, tl_value *out,
                                     tl_diag *diag);

/* v * n of a list, tuple or str; n <= 0 gives an empty one.  E0307. */
TL_MUST_USE tl_status tl_repeat_take(tl_value v, int64_t n, tl_value *out,
                                     tl_diag *diag);

/* `item in v`: substring of a str, key of a dict, value in the others.
 * E0207 for what holds no items. */
TL_MUST_USE tl_status tl_contains(tl_value v, tl_value item, bool *out,
                                  tl_diag *diag);

/* A list that is unshared: `v` itself when it already is, else a copy. */
TL_MUST_USE tl_status tl_list_unshare_take(tl_value v, tl_value *out,
                                           tl_diag *diag);

/* A tuple or list of `v`'s items: v itself when it has that tag already. */
TL_MUST_USE tl_status tl_seq_as(tl_value v, tl_tag tag, tl_value *out,
                                tl_diag *diag);

/* Is there no UNKNOWN and no NODE in it, at any depth?  What is nested
 * deeper than 1,000 counts as known: whoever walks it reports that. */
bool tl_value_known(tl_value v);

#endif
