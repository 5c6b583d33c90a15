/* diag_source.c - the picture of a diagnostic: source lines with marks.
 *
 *     32 |         return ln_f(x) @ wte.weight
 *        |                ------- ^ ---------- f32[vocab, d]
 *        |                f32[B, T, d]
 *
 * Each span becomes one mark, or two if it covers several lines.  The label
 * of the rightmost mark of a line follows the marks; the others hang below,
 * placed from right to left, a new row when one has no room; a `|` leads to
 * labels on later rows.  Lines wider than WIDEST show a part around the first
 * mark. */
#include <stdio.h>
#include <string.h>

#include "runtime/base/diag_page.h"

enum {
    MOST_MARKS = 32, /* drawn; further labels are left out */
    WIDEST = 140,    /* columns of a source line */
    BEFORE = 40,     /* columns kept before the first mark when cut */
    DOTS = 3
};

typedef struct mark {
    uint32_t file;
    size_t line;       /* index in the source */
    size_t start, end; /* bytes in the line */
    bool primary;
    const char *text; /* "" if none */
    size_t from, to;  /* columns; filled in by layout */
    int row;          /* 0: on the row of the marks; below: 1, 2, ...;
                         -1: no text */
} mark;

typedef struct marks {
    mark items[MOST_MARKS];
    size_t len;
} marks;

/* The text of a line without its end. */
static const char *line_text(const tl_source *source, size_t line,
                             size_t *len)
{
    size_t start = source->lines[line];
    size_t end = line + 1 < source->nlines ? source->lines[line + 1] - 1
                                           : source->len;

    if (end > start && source->text[end - 1] == '\r') {
        end--;
    }
    *len = end - start;
    return source->text + start;
}

static size_t blanks(const tl_source *source, size_t line)
{
    size_t len, n = 0;
    const char *text = line_text(source, line, &len);

    while (n < len && (text[n] == ' ' || text[n] == '\t')) {
        n++;
    }
    return n;
}

static void push_mark(marks *ms, const tl_source *source, mark m)
{
    size_t len;

    line_text(source, m.line, &len);
    m.start = m.start < len ? m.start : len;
    m.end = m.end < len ? m.end : len;
    m.end = m.end < m.start ? m.start : m.end;
    if (ms->len < MOST_MARKS) {
        ms->items[ms->len++] = m;
    }
}

/* The marks of one span: one, or of its first and its last line. */
static void add_span(marks *ms, const tl_sources *sources, tl_span span,
                     const char *text, bool primary)
{
    const tl_source *source = tl_sources_get(sources, span.file);
    int first, last, column;
    mark m = {.file = span.file, .primary = primary};

    if (!source) {
        return;
    }
    tl_source_position(source, span.start, &first, &column);
    tl_source_position(source,
                       span.end > span.start ? span.end - 1 : span.start,
                       &last, &column);
    m.text = text ? text : "";
    m.line = (size_t)last - 1;
    m.start = span.start - source->lines[m.line];
    m.end = span.end - source->lines[m.line];
    if (first != last) {
        mark head = m;

        head.line = (size_t)first - 1;
        head.start = span.start - source->lines[head.line];
        head.end = SIZE_MAX;
        head.text = "";
        push_mark(ms, source, head);
        m.start = blanks(source, m.line);
    }
    push_mark(ms, source, m);
}

/* Order of drawing: the primary's file, lines, columns. */
static bool comes_before(const mark *a, const mark *b, uint32_t first_file)
{
    if (a->file != b->file) {
        return a->file == first_file ||
               (b->file != first_file && a->file < b->file);
    }
    if (a->line != b->line) {
        return a->line < b->line;
    }
    return a->start < b->start;
}

static void sort_marks(marks *ms, uint32_t first_file)
{
    for (size_t i = 1; i < ms->len; i++) {
        mark m = ms->items[i];
        size_t j = i;

        for (; j > 0 && comes_before(&m, &ms->items[j - 1], first_file);
             j--) {
            ms->items[j] = ms->items[j - 1];
        }
        ms->items[j] = m;
    }
}

/* Column of byte `offset` in a line (its width if offset >= len). */
static size_t column_of(const char *text, size_t len, size_t offset)
{
    size_t column = 0, width;

    for (size_t i = 0; i < len && i < offset; column += width) {
        i += tl_page_char(text + i, len - i, column, NULL, &width);
    }
    return column;
}

/* The part of a line that is shown: columns from .. from + WIDEST. */
typedef struct window {
    size_t from;
    bool cut_before, cut_after;
} window;

static window choose_window(const mark *ms, size_t n, size_t width)
{
    window w = {0};
    size_t first = ms[0].from;

    for (size_t i = 0; i < n; i++) {
        if (ms[i].primary) {
            first = ms[i].from;
        }
    }
    if (width <= WIDEST) {
        return w;
    }
    w.from = first > WIDEST - BEFORE ? first - BEFORE : 0;
    w.cut_before = w.from > 0;
    w.cut_after = width > w.from + WIDEST;
    return w;
}

static size_t clip_column(const window *w, size_t column)
{
    size_t shift = w->cut_before ? DOTS : 0;

    column = column < w->from ? w->from : column;
    column -= w->from;
    return (column < WIDEST ? column : WIDEST) + shift;
}

static void start_row(tl_page *page, const char *number)
{
    tl_page_row(page);
    tl_page_pad(page, (size_t)page->gutter - strlen(number));
    tl_page_put(page, TL_STYLE_GUTTER, number);
    tl_page_put(page, TL_STYLE_GUTTER, " |");
}

/* Column of the page where column 0 of the source stands. */
static size_t text_left(const tl_page *page)
{
    return (size_t)page->gutter + 3;
}

static void put_source(tl_page *page, const char *text, size_t len,
                       const window *w)
{
    size_t left = text_left(page), column = 0, width;

    if (len > 0) {
        tl_page_pad(page, left);
    }
    if (w->cut_before) {
        tl_page_put(page, TL_STYLE_GUTTER, "...");
    }
    for (size_t i = 0; i < len && column < w->from + WIDEST;
         column += width) {
        size_t n = tl_page_char(text + i, len - i, column, NULL, &width);

        if (column >= w->from) {
            tl_page_char(text + i, n, column, page->out, &width);
            page->width += width;
        }
        i += n;
    }
    if (w->cut_after) {
        tl_page_put(page, TL_STYLE_GUTTER, "...");
    }
}

/* Which mark has its label behind the marks: the one that ends last. */
static size_t rightmost(const mark *ms, size_t n)
{
    size_t res = 0;

    for (size_t i = 1; i < n; i++) {
        if (ms[i].to >= ms[res].to) {
            res = i;
        }
    }
    return res;
}

/* Choose the rows of the labels; returns the number of rows below. */
static int place_labels(mark *ms, size_t n)
{
    size_t last = rightmost(ms, n), limit = SIZE_MAX;
    int row = 1, rows = 0;

    for (size_t i = n; i-- > 0;) {
        if (ms[i].text[0] == '\0') {
            ms[i].row = -1;
        } else if (i == last) {
            ms[i].row = 0;
        } else {
            if (ms[i].from + tl_page_width(ms[i].text) + 1 >= limit) {
                row++;
            }
            limit = ms[i].from;
            ms[i].row = rows = row;
        }
    }
    return rows;
}

static tl_style mark_style(const tl_page *page, const mark *m)
{
    return m->primary ? page->accent : TL_STYLE_GUTTER;
}

/* The row of ---- and ^^^^; where two overlap the primary is seen. */
static void put_marks(tl_page *page, const mark *ms, size_t n)
{
    char row[WIDEST + DOTS + 2];
    size_t left = text_left(page), width = 0;

    memset(row, ' ', sizeof(row));
    for (int primary = 0; primary <= 1; primary++) {
        for (size_t i = 0; i < n; i++) {
            if (ms[i].primary == primary) {
                memset(row + ms[i].from, primary ? '^' : '-',
                       ms[i].to - ms[i].from);
                width = ms[i].to > width ? ms[i].to : width;
            }
        }
    }
    tl_page_pad(page, left);
    for (size_t i = 0, run; i < width; i += run) {
        for (run = 1; i + run < width && row[i + run] == row[i]; run++) {
        }
        tl_page_put_len(page,
                        row[i] == '^'   ? page->accent
                        : row[i] == '-' ? TL_STYLE_GUTTER
                                        : TL_STYLE_PLAIN,
                        row + i, run);
    }
}

/* Row `row` of the labels below: texts that stand on it, bars for later. */
static void put_label_row(tl_page *page, const mark *ms, size_t n, int row)
{
    size_t left = text_left(page);

    start_row(page, "");
    for (size_t i = 0; i < n; i++) {
        bool covered = false;

        for (size_t j = 0; j < n; j++) {
            covered |= ms[j].row == row && ms[j].from == ms[i].from;
        }
        if (ms[i].row < row || (ms[i].row > row && covered) ||
            page->width > left + ms[i].from) {
            continue;
        }
        tl_page_pad(page, left + ms[i].from);
        tl_page_put(page, mark_style(page, &ms[i]),
                    ms[i].row == row ? ms[i].text : "|");
    }
}

/* A source line and everything under it; `ms` are its n >= 1 marks. */
static void put_line(tl_page *page, const tl_source *source, mark *ms,
                     size_t n)
{
    size_t len;
    const char *text = line_text(source, ms[0].line, &len);
    window w;
    char number[24];
    int rows;

    for (size_t i = 0; i < n; i++) {
        ms[i].from = column_of(text, len, ms[i].start);
        ms[i].to = column_of(text, len, ms[i].end);
    }
    w = choose_window(ms, n, column_of(text, len, len));
    for (size_t i = 0; i < n; i++) {
        ms[i].from = clip_column(&w, ms[i].from);
        ms[i].to = clip_column(&w, ms[i].to);
        if (ms[i].to <= ms[i].from) {
            ms[i].to = ms[i].from + 1;
        }
    }
    rows = place_labels(ms, n);
    snprintf(number, sizeof(number), "%zu", ms[0].line + 1);
    start_row(page, number);
    put_source(page, text, len, &w);
    start_row(page, "");
    put_marks(page, ms, n);
    for (size_t i = 0; i < n; i++) {
        if (ms[i].row == 0) {
            tl_page_put(page, TL_STYLE_PLAIN, " ");
            tl_page_put(page, mark_style(page, &ms[i]), ms[i].text);
        }
    }
    for (int row = 1; row <= rows; row++) {
        put_label_row(page, ms, n, row);
    }
}

static void put_arrow(tl_page *page, const char *arrow,
                      const tl_source *source, size_t offset)
{
    tl_page_row(page);
    tl_page_pad(page, (size_t)page->gutter);
    tl_page_put(page, TL_STYLE_GUTTER, arrow);
    tl_page_place(page, source, (uint32_t)offset);
}

/* Columns that the largest line number needs, at least 2. */
static int gutter_width(const marks *ms)
{
    size_t largest = 0;

    for (size_t i = 0; i < ms->len; i++) {
        largest = ms->items[i].line > largest ? ms->items[i].line : largest;
    }
    return snprintf(NULL, 0, "%2zu", largest + 1);
}

bool tl_page_picture(tl_page *page, const tl_diag_item *item)
{
    const tl_source *source = tl_sources_get(page->sources, item->span.file);
    marks ms = {.len = 0};
    uint32_t file = item->span.file;
    size_t i, n;

    if (!source) {
        return false;
    }
    add_span(&ms, page->sources, item->span, item->span_text, true);
    for (i = 0; i < item->nlabels; i++) {
        add_span(&ms, page->sources, item->labels[i].span,
                 item->labels[i].text, false);
    }
    sort_marks(&ms, file);
    page->gutter = gutter_width(&ms);
    put_arrow(page, "--> ", source, item->span.start);
    for (i = 0; i < ms.len; i += n) {
        mark *m = &ms.items[i];

        for (n = 1; i + n < ms.len && m[n].file == m->file &&
                    m[n].line == m->line;
             n++) {
        }
        if (m->file != file) {
            file = m->file;
            source = tl_sources_get(page->sources, file);
            put_arrow(page, "::: ", source, source->lines[m->line] + m->start);
        }
        put_line(page, source, m, n);
    }
    return true;
}
