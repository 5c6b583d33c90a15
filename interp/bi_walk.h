/* bi_walk.h - walking over whatever `for` takes, for built-in functions. */
#ifndef TL_INTERP_BI_WALK_H
#define TL_INTERP_BI_WALK_H

#include "interp/domain.h"
#include "interp/eval.h"
#include "interp/tree.h"

/* Is the number of items known in the running domain?  Then tl_walk_list
 * gives them; if not, the result of the built-in is UNKNOWN. */
bool tl_walk_known(tl_eval *ev, tl_value xs);

/* A new, unshared list of the items. */
TL_MUST_USE tl_status tl_walk_list(tl_eval *ev, tl_value xs, tl_value *out);

/* Add all entries of `from` to the unshared dict `d`. */
TL_MUST_USE tl_status tl_dict_update(tl_dict *d, const tl_dict *from,
                                     tl_diag *diag);

/* A list in ascending order, stable; EMPTY keys: by the items themselves.
 * UNKNOWN if keys cannot be known. */
TL_MUST_USE tl_status tl_sort_list(tl_eval *ev, tl_value xs, tl_value key,
                                   bool reverse, tl_value *out);

#endif
