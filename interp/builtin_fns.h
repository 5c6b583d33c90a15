/* builtin_fns.h - declarations of all functions in builtin.def, for the files
 * that define them. */
#ifndef TL_INTERP_BUILTIN_FNS_H
#define TL_INTERP_BUILTIN_FNS_H

#include "interp/builtin.h"

/* The function of rows that only group or name a value; never called. */
tl_builtin_fn tl_bi_none;
/* stop(x) of one tensor or tree; others are given back. */
tl_builtin_fn tl_bi_stop;

#define BUILTIN(name, signature, fn, effects, doc) tl_builtin_fn fn;
#define METHOD(tag, name, signature, fn, effects, doc) tl_builtin_fn fn;
#define OPFN(name, op, signature, fn, effects, doc) tl_builtin_fn fn;
#define OPMETHOD(name, op, signature, fn, effects, doc) tl_builtin_fn fn;
#include "interp/builtin.def"

#endif
