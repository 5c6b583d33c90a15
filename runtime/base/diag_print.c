/* diag_print.c - diagnostics for people: the layout of LANGUAGE.md 10.
 *
 * A page is written row by row; `width` counts the columns of the row that is
 * being written, which ends only when the next one starts, so that a help
 * text can still join it.  Whatever comes from files or programs is written
 * by put(), which escapes control characters.  The picture of the source is
 * diag_source.c, the JSON form diag_json.c. */
#include "runtime/base/diag_page.h"

#include <stdio.h>
#include <string.h>

#include "runtime/base/utf8.h"

enum {
    MOST_ERRORS = 20, /* shown by tl_diag_print */
    PAGE_WIDTH = 100, /* a help text joins a row up to here */
    HELP_GAP = 8
};

static const char *const ansi[] = {
    [TL_STYLE_PLAIN] = "",          [TL_STYLE_BOLD] = "\x1b[1m",
    [TL_STYLE_ERROR] = "\x1b[1;31m", [TL_STYLE_WARNING] = "\x1b[1;33m",
    [TL_STYLE_NOTE] = "\x1b[1;36m", [TL_STYLE_GUTTER] = "\x1b[1;34m",
    [TL_STYLE_HELP] = "\x1b[32m",
};

size_t tl_page_char(const char *s, size_t len, size_t column, tl_buf *out,
                    size_t *width)
{
    uint32_t cp;
    size_t n;

    if (*s >= ' ' && *s <= '~') { /* most are, and lines may be long */
        *width = 1;
        if (out) {
            tl_buf_putc(out, *s);
        }
        return 1;
    }
    n = tl_utf8_decode(s, len, &cp);
    if (*s == '\t') {
        *width = 4 - column % 4;
        if (out) {
            tl_buf_add(out, "    ", *width);
        }
        return 1;
    }
    if (n > 0 && !tl_utf8_is_unsafe(cp)) {
        *width = (size_t)tl_utf8_width(cp);
    } else {
        n = n ? n : 1;
        *width = 4 * n;
    }
    if (out) {
        tl_buf_put_escaped(out, s, n);
    }
    return n;
}

/* Columns that put() gives to a text. */
static size_t text_width(const char *s, size_t len)
{
    size_t width = 0, w;

    for (size_t i = 0; i < len; width += w) {
        i += tl_page_char(s + i, len - i, width, NULL, &w);
    }
    return width;
}

size_t tl_page_width(const char *s)
{
    return text_width(s, strlen(s));
}

static void put(tl_page *page, tl_style style, const char *s, size_t len)
{
    size_t w;
    bool colored = page->color && style != TL_STYLE_PLAIN && len > 0;

    if (colored) {
        tl_buf_puts(page->out, ansi[style]);
    }
    for (size_t i = 0; i < len; page->width += w) {
        i += tl_page_char(s + i, len - i, page->width, page->out, &w);
    }
    if (colored) {
        tl_buf_puts(page->out, "\x1b[0m");
    }
}

void tl_page_put(tl_page *page, tl_style style, const char *s)
{
    put(page, style, s, strlen(s));
}

void tl_page_put_len(tl_page *page, tl_style style, const char *s, size_t len)
{
    put(page, style, s, len);
}

void tl_page_pad(tl_page *page, size_t column)
{
    while (page->width < column) {
        tl_buf_putc(page->out, ' ');
        page->width++;
    }
}

void tl_page_row(tl_page *page)
{
    if (page->started) {
        tl_buf_putc(page->out, '\n');
    }
    page->started = true;
    page->width = 0;
}

/* A text of one or more lines, each further one starting at `indent`. */
static void put_lines(tl_page *page, tl_style style, const char *s,
                      size_t indent)
{
    for (;;) {
        size_t len = strcspn(s, "\n");

        put(page, style, s, len);
        if (s[len] == '\0') {
            return;
        }
        s += len + 1;
        tl_page_row(page);
        tl_page_pad(page, indent);
    }
}

void tl_page_place(tl_page *page, const tl_source *source, uint32_t offset)
{
    int line, column;
    char number[32];

    tl_source_position(source, offset, &line, &column);
    tl_page_put(page, TL_STYLE_PLAIN, source->name);
    snprintf(number, sizeof(number), ":%d:%d", line, column);
    tl_page_put(page, TL_STYLE_PLAIN, number);
}

const char *tl_severity_name(tl_severity severity)
{
    return severity == TL_SEV_ERROR     ? "error"
           : severity == TL_SEV_WARNING ? "warning"
                                        : "note";
}

static tl_style severity_style(tl_severity severity)
{
    return severity == TL_SEV_ERROR     ? TL_STYLE_ERROR
           : severity == TL_SEV_WARNING ? TL_STYLE_WARNING
                                        : TL_STYLE_NOTE;
}

static tl_page new_page(const tl_diag *diag, const tl_diag_item *item,
                        bool color, tl_buf *out)
{
    return (tl_page){
        .out = out,
        .sources = diag->sources,
        .color = color,
        .gutter = 2,
        .accent = severity_style(item->severity),
    };
}

static void put_header(tl_page *page, const tl_diag_item *item)
{
    char head[32];

    snprintf(head, sizeof(head), "%s[%s]", tl_severity_name(item->severity),
             tl_code_name(item->code));
    tl_page_put(page, severity_style(item->severity), head);
    tl_page_put(page, TL_STYLE_BOLD, ": ");
    put_lines(page, TL_STYLE_BOLD, item->message, 4);
}

/* Start a row "   = ". */
static void start_note(tl_page *page)
{
    tl_page_row(page);
    tl_page_pad(page, (size_t)page->gutter + 1);
    tl_page_put(page, TL_STYLE_GUTTER, "= ");
}

static void put_notes(tl_page *page, const tl_diag_item *item)
{
    for (size_t i = 0; i < item->nnotes; i++) {
        start_note(page);
        put_lines(page, TL_STYLE_PLAIN, item->notes[i],
                  (size_t)page->gutter + 3);
    }
}

/* The help joins the row before it, if that belongs to the body and leaves
 * room. */
static void put_help(tl_page *page, const char *help, bool has_body)
{
    size_t width = page->width + HELP_GAP + tl_page_width("help: ") +
                   tl_page_width(help);

    if (has_body && width <= PAGE_WIDTH && !strchr(help, '\n')) {
        tl_page_pad(page, page->width + HELP_GAP);
    } else {
        start_note(page);
    }
    tl_page_put(page, TL_STYLE_HELP, "help: ");
    put_lines(page, TL_STYLE_PLAIN, help, page->width);
}

static void put_frame(tl_page *page, const tl_diag_frame *frame)
{
    const tl_source *source =
        tl_sources_get(page->sources, frame->call.file);

    tl_page_row(page);
    tl_page_put(page, TL_STYLE_PLAIN, "   in ");
    tl_page_put(page, TL_STYLE_BOLD, frame->function);
    if (frame->args) {
        tl_page_put(page, TL_STYLE_PLAIN, "(");
        tl_page_put(page, TL_STYLE_PLAIN, frame->args);
        tl_page_put(page, TL_STYLE_PLAIN, ")");
    }
    if (source) {
        tl_page_put(page, TL_STYLE_PLAIN,
                    frame->args ? ", called at " : ", at ");
        tl_page_place(page, source, frame->call.start);
    }
}

static void put_frames(tl_page *page, const tl_diag_item *item)
{
    char left_out[48];

    for (size_t i = 0; i < item->nframes; i++) {
        if (i == 3 && item->total_frames > item->nframes) {
            tl_page_row(page);
            snprintf(left_out, sizeof(left_out), "   ... %zu more calls",
                     item->total_frames - item->nframes);
            tl_page_put(page, TL_STYLE_PLAIN, left_out);
        }
        put_frame(page, &item->frames[i]);
    }
}

static void print_human(const tl_diag *diag, const tl_diag_item *item,
                        bool color, tl_buf *out)
{
    tl_page page = new_page(diag, item, color, out);
    bool has_picture;

    tl_page_row(&page);
    put_header(&page, item);
    has_picture = tl_page_picture(&page, item);
    put_notes(&page, item);
    if (item->help) {
        put_help(&page, item->help, has_picture || item->nnotes > 0);
    }
    put_frames(&page, item);
    tl_buf_putc(out, '\n');
}

/* file:line:col: error[E0301]: message, on one line. */
static void print_short(const tl_diag *diag, const tl_diag_item *item,
                        bool color, tl_buf *out)
{
    const tl_source *source = tl_sources_get(diag->sources, item->span.file);
    tl_page page = new_page(diag, item, color, out);
    char head[32];

    if (source) {
        tl_page_place(&page, source, item->span.start);
        tl_page_put(&page, TL_STYLE_PLAIN, ": ");
    }
    snprintf(head, sizeof(head), "%s[%s]", tl_severity_name(item->severity),
             tl_code_name(item->code));
    tl_page_put(&page, severity_style(item->severity), head);
    tl_page_put(&page, TL_STYLE_PLAIN, ": ");
    put(&page, TL_STYLE_PLAIN, item->message, strcspn(item->message, "\n"));
    tl_buf_putc(out, '\n');
}

void tl_diag_print_item(const tl_diag *diag, const tl_diag_item *item,
                        tl_diag_format format, bool color, tl_buf *out)
{
    switch (format) {
    case TL_DIAG_HUMAN:
        print_human(diag, item, color, out);
        break;
    case TL_DIAG_SHORT:
        print_short(diag, item, color, out);
        break;
    case TL_DIAG_JSON:
        tl_diag_print_json(diag, item, out);
        break;
    }
}

void tl_diag_print(const tl_diag *diag, tl_diag_format format, bool color,
                   tl_buf *out)
{
    size_t shown = 0, left_out = 0;

    for (const tl_diag_item *p = diag->first; p; p = p->next) {
        if (p->severity == TL_SEV_ERROR && shown == MOST_ERRORS) {
            left_out++;
            continue;
        }
        if (format == TL_DIAG_HUMAN && p != diag->first) {
            tl_buf_putc(out, '\n');
        }
        tl_diag_print_item(diag, p, format, color, out);
        shown += p->severity == TL_SEV_ERROR;
    }
    if (left_out > 0 && format != TL_DIAG_JSON) {
        tl_buf_printf(out, "%s... and %zu more error%s\n",
                      format == TL_DIAG_HUMAN ? "\n" : "", left_out,
                      left_out == 1 ? "" : "s");
    }
}
