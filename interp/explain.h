/* explain.h - the pages of error codes (explain.def). */
#ifndef TL_INTERP_EXPLAIN_H
#define TL_INTERP_EXPLAIN_H

#include "runtime/base/diag.h"

typedef struct tl_explain_page {
    tl_code code;
    const char *text, *wrong, *right; /* programs */
} tl_explain_page;

extern const tl_explain_page tl_explain_pages[];
extern const size_t tl_explain_count;

/* The page of a code, or NULL. */
const tl_explain_page *tl_explain_find(tl_code code);

#endif
