/* explain.c - the table of pages. */
#include "interp/explain.h"

const tl_explain_page tl_explain_pages[] = {
#define EXPLAIN(code, text, wrong, right) {TL_##code, text, wrong, right},
#include "interp/explain.def"
};

const size_t tl_explain_count =
    sizeof(tl_explain_pages) / sizeof(*tl_explain_pages);

const tl_explain_page *tl_explain_find(tl_code code)
{
    for (size_t i = 0; i < tl_explain_count; i++) {
        if (tl_explain_pages[i].code == code) {
            return &tl_explain_pages[i];
        }
    }
    return NULL;
}
