/* diag_page.h - what the printing files of base share; for no one else.
 *
 * A page writes rows of text and knows the column it has come to. */
#ifndef TL_BASE_DIAG_PAGE_H
#define TL_BASE_DIAG_PAGE_H

#include "runtime/base/diag.h"

typedef enum tl_style {
    TL_STYLE_PLAIN,
    TL_STYLE_BOLD,
    TL_STYLE_ERROR,
    TL_STYLE_WARNING,
    TL_STYLE_NOTE,
    TL_STYLE_GUTTER, /* line numbers, bars, secondary labels */
    TL_STYLE_HELP
} tl_style;

typedef struct tl_page {
    tl_buf *out;
    const tl_sources *sources;
    bool color;
    bool started; /* a row is being written */
    size_t width; /* columns of that row so far */
    int gutter;   /* columns of a line number */
    tl_style accent; /* of the carets: that of the severity */
} tl_page;

/* End the current row, if any, and start the next. */
void tl_page_row(tl_page *page);

/* Spaces up to `column`. */
void tl_page_pad(tl_page *page, size_t column);

/* Text, control characters escaped. */
void tl_page_put(tl_page *page, tl_style style, const char *s);
void tl_page_put_len(tl_page *page, tl_style style, const char *s,
                     size_t len);

/* "name:line:column" of a byte of a source. */
void tl_page_place(tl_page *page, const tl_source *source, uint32_t offset);

/* Columns of a text as tl_page_put writes it. */
size_t tl_page_width(const char *s);

/* Append the character at `s` as shown in `column` (a tab goes to the next
 * multiple of four, an unsafe byte is \xNN); `out` may be NULL.  Returns the
 * bytes it has in the text; *width is the columns it takes. */
size_t tl_page_char(const char *s, size_t len, size_t column, tl_buf *out,
                    size_t *width);

/* Place, source lines, carets and labels of an item (diag_source.c).  False
 * if it has no known place; sets page->gutter. */
bool tl_page_picture(tl_page *page, const tl_diag_item *item);

/* One JSON object and a newline (diag_json.c). */
void tl_diag_print_json(const tl_diag *diag, const tl_diag_item *item,
                        tl_buf *out);

/* "error", "warning" or "note". */
const char *tl_severity_name(tl_severity severity);

#endif
