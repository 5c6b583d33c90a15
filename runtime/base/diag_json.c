/* diag_json.c - a diagnostic as one JSON object a line (UX.md 2.7). */
#include <string.h>

#include "runtime/base/diag_page.h"

static void put_string(tl_buf *out, const char *s)
{
    tl_buf_putc(out, '"');
    tl_buf_put_json(out, s, strlen(s));
    tl_buf_putc(out, '"');
}

/* "file":..., "byte_start":..., "byte_end":..., "line":..., "col":... */
static void put_place(tl_buf *out, const tl_source *source, tl_span span)
{
    int line, column;

    tl_source_position(source, span.start, &line, &column);
    tl_buf_puts(out, "\"file\":");
    put_string(out, source->name);
    tl_buf_printf(out,
                  ",\"byte_start\":%u,\"byte_end\":%u,\"line\":%d,"
                  "\"col\":%d",
                  span.start, span.end, line, column);
}

/* One span, after a comma unless it is the first of its array. */
static void put_span(tl_buf *out, const tl_diag *diag, tl_span span,
                     const char *label, bool primary, bool *first)
{
    const tl_source *source = tl_sources_get(diag->sources, span.file);

    if (!source) {
        return;
    }
    tl_buf_puts(out, *first ? "{" : ",{");
    *first = false;
    put_place(out, source, span);
    tl_buf_puts(out, ",\"label\":");
    if (label && label[0] != '\0') {
        put_string(out, label);
    } else {
        tl_buf_puts(out, "null");
    }
    tl_buf_puts(out, primary ? ",\"primary\":true}" : ",\"primary\":false}");
}

static void put_spans(tl_buf *out, const tl_diag *diag,
                      const tl_diag_item *item)
{
    bool first = true;

    tl_buf_puts(out, ",\"spans\":[");
    put_span(out, diag, item->span, item->span_text, true, &first);
    for (size_t i = 0; i < item->nlabels; i++) {
        put_span(out, diag, item->labels[i].span, item->labels[i].text, false,
                 &first);
    }
    tl_buf_putc(out, ']');
}

static void put_child(tl_buf *out, const char *level, const char *message,
                      bool first)
{
    tl_buf_printf(out, "%s{\"level\":\"%s\",\"message\":", first ? "" : ",",
                  level);
    put_string(out, message);
    tl_buf_puts(out, ",\"spans\":[]}");
}

static void put_children(tl_buf *out, const tl_diag_item *item)
{
    tl_buf_puts(out, ",\"children\":[");
    for (size_t i = 0; i < item->nnotes; i++) {
        put_child(out, "note", item->notes[i], i == 0);
    }
    if (item->help) {
        put_child(out, "help", item->help, item->nnotes == 0);
    }
    tl_buf_putc(out, ']');
}

static void put_fixes(tl_buf *out, const tl_diag *diag,
                      const tl_diag_item *item)
{
    bool first = true;

    tl_buf_puts(out, ",\"fixes\":[");
    for (size_t i = 0; i < item->nfixes; i++) {
        const tl_diag_fix *fix = &item->fixes[i];
        const tl_source *source =
            tl_sources_get(diag->sources, fix->span.file);

        if (!source) {
            continue;
        }
        tl_buf_puts(out, first ? "{" : ",{");
        first = false;
        put_place(out, source, fix->span);
        tl_buf_puts(out, ",\"text\":");
        put_string(out, fix->text);
        tl_buf_putc(out, '}');
    }
    tl_buf_putc(out, ']');
}

static void put_frames(tl_buf *out, const tl_diag *diag,
                       const tl_diag_item *item)
{
    tl_buf_puts(out, ",\"frames\":[");
    for (size_t i = 0; i < item->nframes; i++) {
        const tl_diag_frame *f = &item->frames[i];
        const tl_source *source = tl_sources_get(diag->sources, f->call.file);

        tl_buf_puts(out, i == 0 ? "{\"function\":" : ",{\"function\":");
        put_string(out, f->function);
        tl_buf_puts(out, ",\"args\":");
        put_string(out, f->args ? f->args : "");
        if (source) {
            tl_buf_putc(out, ',');
            put_place(out, source, f->call);
        }
        tl_buf_putc(out, '}');
    }
    tl_buf_printf(out, "],\"total_frames\":%zu", item->total_frames);
}

void tl_diag_print_json(const tl_diag *diag, const tl_diag_item *item,
                        tl_buf *out)
{
    tl_buf_printf(out, "{\"code\":\"%s\",\"level\":\"%s\",\"message\":",
                  tl_code_name(item->code), tl_severity_name(item->severity));
    put_string(out, item->message);
    put_spans(out, diag, item);
    put_children(out, item);
    put_fixes(out, diag, item);
    if (item->nframes > 0) {
        put_frames(out, diag, item);
    }
    tl_buf_puts(out, "}\n");
}
