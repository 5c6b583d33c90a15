/* reference.h - what names mean, as text: `tlang doc`, `tlang help`, ?name. */
#ifndef TL_INTERP_REFERENCE_H
#define TL_INTERP_REFERENCE_H

#include "interp/eval.h"

/* A row of reference.def. */
typedef struct tl_reference {
    const char *name, *shapes;
    const char *example; /* an expression */
    const char *shown;   /* what print shows of its value */
} tl_reference;

extern const tl_reference tl_references[];
extern const size_t tl_reference_count;

/* The row of a name, or NULL. */
const tl_reference *tl_reference_find(const char *name);

/* All that is known about a name: a built-in function and the methods called
 * so; a module of the library (nn), or what it defines (nn.Linear).  False:
 * there is nothing of that name; *out gets the nearest one, if any.  What a
 * broken file of the library reports goes to the sink of `ev`. */
TL_MUST_USE tl_status tl_doc_name(tl_eval *ev, const char *name, tl_buf *out,
                                  bool *found);

/* All names with a line each: built in, and by module of the library. */
TL_MUST_USE tl_status tl_doc_index(tl_eval *ev, tl_buf *out);

/* The page of all operations on tensors, as Markdown. */
void tl_doc_operations(tl_buf *out);

/* The type that a method belongs to, as the user calls it. */
const char *tl_doc_tag(tl_tag tag);

/* The file of the library called `name`, with the parts that it has in a folder
 * of that name: its docstring and what it defines,
 * or of `member` its header and docstring.  False in *found as above. */
TL_MUST_USE tl_status tl_doc_library(tl_eval *ev, const char *name,
                                     const char *member, tl_buf *out,
                                     bool *found);

#endif
