/* late.h - texts that only the run of a compiled function knows.
 *
 * In the graph domain an f-string may show tensors and symbols.  Its value is
 * then a LATE: pieces, of which some are known text and others values to be
 * formatted when the program runs.  It may be printed, and stand in the
 * message of an assert or raise; where anything else needs the text, symbols
 * in it are read, and tensors are refused (tl_sym_read).
 *
 * Other domains have none. */
#ifndef TL_INTERP_LATE_H
#define TL_INTERP_LATE_H

#include "interp/eval.h"

struct tl_late {
    tl_obj obj;
    tl_value pieces; /* TUPLE of STR, and of (value, format) TUPLEs; a format
                        is a STR or NONE */
};

/* Is the text of `v` known now: no NODE, symbol, late text or UNKNOWN is
 * shown in it? */
bool tl_text_known(tl_value v);

/* A text while it is put together. */
typedef struct tl_text_parts {
    tl_buf buf;    /* known text since the last piece */
    tl_value list; /* LIST of pieces; EMPTY: none yet */
    bool unknown;  /* an UNKNOWN is part of it */
} tl_text_parts;

void tl_text_init(tl_text_parts *t);
void tl_text_fini(tl_text_parts *t);

/* Append `v` as f"{v:spec}"; spec NONE or a STR. */
TL_MUST_USE tl_status tl_text_add(tl_eval *ev, tl_text_parts *t, tl_value v,
                                  tl_value spec);

/* The whole: a STR, a LATE, or UNKNOWN. */
TL_MUST_USE tl_status tl_text_finish(tl_eval *ev, tl_text_parts *t,
                                     tl_value *out);

/* The text of pieces, which are eaten: a STR once all are known, else a
 * LATE. */
TL_MUST_USE tl_status tl_late_new_take(tl_value *out, tl_value pieces,
                                       tl_diag *diag);

/* *v, a LATE, becomes a STR: symbols in it are read.  E0602 if it shows a
 * tensor. */
TL_MUST_USE tl_status tl_late_read(tl_eval *ev, tl_value *v);

#endif
