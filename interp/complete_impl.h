/* complete_impl.h - what the files of completion share. */
#ifndef TL_INTERP_COMPLETE_IMPL_H
#define TL_INTERP_COMPLETE_IMPL_H

#include "interp/complete.h"
#include "interp/module.h"

/* A completion that runs. */
typedef struct tl_request {
    tl_eval *ev;
    tl_namespace *ns;
    const char *text;
    size_t cursor;
    tl_completion *out;
    const char *word; /* what is typed of it */
    size_t len;
} tl_request;

/* Add a candidate if it starts with the word; texts are copied. */
void tl_complete_add(tl_request *r, const char *text, const char *after);

/* Paths that start with the word; `after` follows a file. */
void tl_complete_paths(tl_request *r, const char *after);

/* Modules of the library, and files that can be imported. */
void tl_complete_modules(tl_request *r);

/* What a value, a name of `ns`, a field of `m` means. */
tl_found tl_found_value(tl_value v);
tl_value tl_found_slot(tl_namespace *ns, const tl_sym *sym);
bool tl_found_name(tl_eval *ev, tl_namespace *ns, const char *name,
                   size_t len, tl_found *out);
bool tl_found_field(tl_module *m, const tl_sym *sym, tl_found *out);

#endif
