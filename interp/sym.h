/* sym.h - host numbers that may differ from call to call of a compiled
 * function: symbols of the graph domain.
 *
 * A SYM value stands for an int, float or bool.  It knows the value that it
 * has in the traced call (its hint) and how it is computed: an int is a
 * polynomial of sizes and ints, a float or bool is a host value of the graph.
 * Arithmetic, comparisons, sizes and slices keep it a symbol.  Where the host
 * must decide something it is *read*: it becomes its hint, and the program
 * holds for calls in which it has this value (LANGUAGE.md 8).
 *
 * In other domains there are none, and these functions change nothing. */
#ifndef TL_INTERP_SYM_H
#define TL_INTERP_SYM_H

#include "interp/eval.h"

/* Ints beyond are no symbols: they could not be sizes anyway. */
#define TL_SYM_MAX ((int64_t)1 << 40)

struct tl_symval {
    tl_obj obj;
    tl_value hint; /* INT, FLOAT or BOOL; RANGE: a range with a symbol */
    tl_dim dim;    /* of an INT; start of a RANGE */
    tl_dim stop;   /* of a RANGE; the step is its hint's */
    uint32_t id;   /* value of the graph: of a FLOAT or BOOL, of an INT that has
                      left a region, else 0 */
};

static inline bool tl_is_sym(tl_value v)
{
    return v.tag == TL_V_SYM;
}

/* The tag of a number, whether symbol or not. */
static inline tl_tag tl_number_tag(tl_value v)
{
    return v.tag == TL_V_SYM ? v.sym->hint.tag : v.tag;
}

/* A host number, known or not. */
static inline bool tl_is_any_number(tl_value v)
{
    return tl_is_number(v) ||
           (v.tag == TL_V_SYM && v.sym->hint.tag != TL_V_RANGE);
}

/* A size as the evaluator's int: a number, a symbol, or UNKNOWN where a domain
 * has types only. */
TL_MUST_USE tl_status tl_dim_value_of(tl_eval *ev, tl_dim d, tl_value *out);

/* An INT as a dim.  Other values: E0210. */
TL_MUST_USE tl_status tl_value_dim(tl_eval *ev, tl_value v, tl_dim *out);

/* A host value of the graph as a symbol; `hint` is its value now. */
TL_MUST_USE tl_status tl_sym_new(tl_eval *ev, uint32_t id, tl_value hint,
                                 tl_value *out);

/* The int `v` with this host value of the graph, which is the same number. */
TL_MUST_USE tl_status tl_sym_with_host(tl_eval *ev, tl_value v, uint32_t id,
                                       tl_value *out);

/* A symbol in a pattern of results: output number `id` of a program. */
TL_MUST_USE tl_status tl_sym_output(tl_eval *ev, uint32_t id, tl_value hint,
                                    tl_value *out);

/* range(start, stop, step) of which start or stop is a symbol. */
TL_MUST_USE tl_status tl_sym_range(tl_eval *ev, tl_value start, tl_value stop,
                                   int64_t step, tl_value *out);

/* *v, if it is a symbol, becomes its value.  deep: symbols in lists, tuples
 * and dicts too. */
TL_MUST_USE tl_status tl_sym_read(tl_eval *ev, tl_value *v);
TL_MUST_USE tl_status tl_sym_read_deep(tl_eval *ev, tl_value *v);

/* Does only the run know it?  Then it cannot be read. */
bool tl_sym_is_late(tl_eval *ev, tl_value v);

/* A number, symbol or not, as a host value of the graph: INT or BOOL as
 * float if `as_float`. */
TL_MUST_USE tl_status tl_sym_host(tl_eval *ev, tl_value v, bool as_float,
                                  uint32_t *out);

/* The number as a rank-0 tensor of `dtype`. */
TL_MUST_USE tl_status tl_sym_tensor(tl_eval *ev, tl_value v, tl_dtype dtype,
                                    tl_value *out);

/* Operators where at least one operand is a symbol and both are numbers; eat
 * them.  *done is false, and nothing eaten, where the operands must be
 * read. */
TL_MUST_USE tl_status tl_sym_binary(tl_eval *ev, tl_oper op, tl_value a,
                                    tl_value b, bool *done, tl_value *out);
TL_MUST_USE tl_status tl_sym_negative(tl_eval *ev, tl_value a, bool *done,
                                      tl_value *out);

/* float(v), int(v). */
TL_MUST_USE tl_status tl_sym_to_float(tl_eval *ev, tl_value v, tl_value *out);

/* f(v) for a function of one float; *done as above. */
TL_MUST_USE tl_status tl_sym_function(tl_eval *ev, tl_op op, tl_value v,
                                      bool *done, tl_value *out);

#endif
