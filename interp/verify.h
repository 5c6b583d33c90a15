/* verify.h - `--verify`: compiled calls run interpreted too, and both engines
 * must agree to the last bit. */
#ifndef TL_INTERP_VERIFY_H
#define TL_INTERP_VERIFY_H

#include "interp/compiled_impl.h"

/* Run a call whose entry matches, its inputs collected, in both engines: the
 * interpreter first, on what is put back afterwards.  The program's results
 * stand.  E0604 where they differ: results, cells, counter of draws, what is
 * printed.  *ran as of tl_compiled_call. */
TL_MUST_USE tl_status tl_verify_call(tl_eval *ev, tl_compiled *f,
                                     const tl_ccall *call, tl_entry *e,
                                     tl_value *out, tl_ran *ran);

/* Where two values differ. */
typedef struct tl_difference {
    tl_buf text;     /* "[1].w at [0, 2]: 0x1p+0, interpreted 0x1.8p+0" */
    uint32_t output; /* number + 1 of the program's output there; 0: none */
} tl_difference;

/* Is there a difference, bit for bit (any NaN equals any NaN)?  `pattern` is
 * the program's pattern of `mine`, or EMPTY. */
bool tl_values_differ(tl_value pattern, tl_value mine, tl_value theirs,
                      tl_difference *out);

#endif
