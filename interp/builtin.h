/* builtin.h - built-in functions and the methods of built-in types.
 *
 * builtin.def has one row each:
 *
 *   BUILTIN(name, "signature", function, effects, "one line of doc")
 *   METHOD(TL_V_STR, name, "signature", function, effects, "one line of doc")
 *   OPFN(name, op, "signature", function, effects, "one line of doc")
 *   OPMETHOD(name, op, "signature", function, effects, "one line of doc")
 *
 * The last two set `op`, so that one function serves many operations;
 * OPMETHOD is a method of tensors (a NODE has them too).  Names are bare
 * tokens; `json.parse` is a member of `json`, a row of its own, whose
 * function may be tl_bi_none: such a row only groups its members.  A row
 * whose signature starts with "=" is a constant, of tl_bi_none as well:
 * BUILTIN(pi, "= pi", tl_bi_none, TL_FX_NONE, "...").  LIBRARY(name, "file",
 * "one line of doc") is a name of a file of the library that is seen without
 * importing it.  builtin_fns.h declares the functions.
 *
 * A signature is what the user would write: "x, axis: int? = none, keep:
 * bool = false"; signature.h says what it may contain.  The first parameter
 * of a METHOD is its object.
 *
 * The function gets one value for each parameter, defaults filled in; it may
 * take an argument by setting it to EMPTY.  UNKNOWN arguments never reach it:
 * the result is UNKNOWN then, unless the row has TL_FX_UNKNOWN.  They may
 * still stand inside containers (tl_value_known, container.h). */
#ifndef TL_INTERP_BUILTIN_H
#define TL_INTERP_BUILTIN_H

#include "interp/eval.h"

enum tl_fx { /* the first three are bits of tl_effect as well */
    TL_FX_NONE = 0,
    TL_FX_RNG = 1,     /* draws random numbers */
    TL_FX_STATE = 2,   /* writes cells */
    TL_FX_HOST = 4,    /* files, time, environment: asks domain->effect with
                          TL_HOST_IO; refused, the result is UNKNOWN */
    TL_FX_UNKNOWN = 8, /* takes UNKNOWN arguments as they are */
    TL_FX_PRINT = 16,  /* asks with TL_HOST_PRINT; refused, it is none */
    TL_FX_SYMBOLS = 32 /* takes symbols as they are (sym.h); for others they
                          are read */
};

typedef tl_status tl_builtin_fn(tl_eval *ev, const tl_builtin *self,
                                tl_value *args, tl_value *out);

struct tl_builtin {
    const char *name;
    const char *signature;
    tl_builtin_fn *fn;
    unsigned effects;
    tl_tag tag; /* of a METHOD: the type it belongs to; else TL_V_NONE */
    const char *doc;
    tl_op op; /* OPFN, OPMETHOD; else TL_OP_COUNT */
};

/* All rows, and their number. */
extern const tl_builtin tl_builtin_rows[];
extern const size_t tl_builtin_nrows;

/* Look up a function by name, a method by type and name; NULL: none. */
const tl_builtin *tl_builtin_find(tl_eval *ev, const tl_sym *name);
const tl_builtin *tl_builtin_method(tl_eval *ev, tl_tag tag,
                                    const tl_sym *name);

/* What the name of a row means: a BUILTIN value, or a constant. */
TL_MUST_USE tl_status tl_builtin_value(tl_eval *ev, const tl_builtin *b,
                                       tl_value *out);

/* `json.parse`: the member of a row.  E0211, with the nearest one. */
TL_MUST_USE tl_status tl_builtin_attr(tl_eval *ev, const tl_builtin *b,
                                      const tl_sym *name, tl_value *out);

/* Build and release the tables of `ev` (parsed signatures, maps). */
TL_MUST_USE tl_status tl_builtins_init(tl_eval *ev);
void tl_builtins_fini(tl_eval *ev);

/* Bind arguments and call.  E0203, E0204, E0205, E0210. `self` (a METHOD's
 * object) is EMPTY for functions; it is eaten. */
TL_MUST_USE tl_status tl_builtin_call(tl_eval *ev, const tl_builtin *b,
                                      tl_value self, tl_args *args,
                                      tl_value *out);

/* Names of all functions (TL_V_NONE) or of the methods of a type, for
 * did-you-mean and completion; the array belongs to the tables. */
const char *const *tl_builtin_names(tl_eval *ev, tl_tag tag, size_t *n);

#endif
