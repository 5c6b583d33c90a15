/* signature.h - parameter lists of built-in functions, parsed from text.
 *
 *     x: tensor, *, axis: int? = none, mode: str = "constant"
 *
 * A parameter is `name`, `name: type`, with `= default` if it may be left
 * out; `*xs` collects further positional arguments in a tuple, `**kw` further
 * keyword arguments in a dict, `*` alone makes what follows keyword-only.
 * Types are joined by `|`; `?` allows none:
 *
 *   any                       what no type means
 *   bool int str dtype range  that host type (a tensor is refused, with help)
 *   float                     float; an int is converted
 *   number                    int or float, as it is
 *   ints                      int, or list or tuple of ints
 *   list tuple dict           list is a tuple too
 *   tensor                    tensor; a number or nested list is converted
 *   fn                        anything that can be called
 *   module cells tree cell record error
 *
 * Defaults: none, true, false, numbers, "strings", (), [], names of dtypes
 * and of built-in functions and constants. */
#ifndef TL_INTERP_SIGNATURE_H
#define TL_INTERP_SIGNATURE_H

#include "interp/eval.h"

#define TL_MAX_PARAMS 24

typedef struct tl_param {
    const tl_sym *name;
    const char *type; /* as written, of which `type_len` bytes; NULL: none */
    size_t type_len;
    uint32_t accepts; /* set of 1 << tl_tag that pass as they are */
    bool to_float, to_tensor, ints;
    bool required;
    tl_value fallback; /* EMPTY if required */
} tl_param;

typedef struct tl_signature {
    const char *text;
    size_t nparams;
    size_t npos; /* the first so many may be positional */
    int star;    /* index of *xs, or -1 */
    int kwstar;  /* index of **kw, the last, or -1 */
    tl_param params[];
} tl_signature;

/* Parse `text` (kept, not copied).  What is wrong with it is a bug. */
TL_MUST_USE tl_status tl_signature_parse(tl_signature **out, tl_eval *ev,
                                         const char *text);
void tl_signature_free(tl_signature *sig); /* NULL is allowed */

/* The value of a default, as in `text`; also of constants. */
TL_MUST_USE tl_status tl_signature_literal(tl_eval *ev, const char *text,
                                           size_t len, tl_value *out);

/* Arguments to vals[0 .. sig->nparams), with defaults, conversions and type
 * checks; taken from `args`.  `self` (or EMPTY), which is eaten, is the first.
 * *unknown tells whether one is UNKNOWN.  On failure too, every value is set
 * or EMPTY and belongs to the caller.  `name` is for messages.  E0203, E0204,
 * E0205, E0210. */
TL_MUST_USE tl_status tl_signature_bind(tl_eval *ev, const tl_signature *sig,
                                        const char *name, tl_value self,
                                        tl_args *args, tl_value *vals,
                                        bool *unknown);

#endif
