/* diag.c - the sink: making items and adding to the newest.
 *
 * Everything of an item lives in the sink's arena.  When that is out of
 * memory the item is one of a few spares, with a message of limited length:
 * cleaning up after a failure may fail too, and its report is popped again,
 * which must leave the first.  The last spare always holds the newest of more
 * than there are.  An addition that finds no memory is dropped. */
#include "runtime/base/diag.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "runtime/base/machine.h"
#include "runtime/base/mem.h"
#include "runtime/base/size.h"

enum {
    KEPT_FRAMES = 6, /* the first and the last three */
    FIRST_LABELS = 2
};

typedef struct code_row {
    const char *name;
    tl_status status;
    tl_severity severity;
    const char *title;
} code_row;

static const code_row codes[TL_CODE_COUNT] = {
    [TL_CODE_NONE] = {"E0000", TL_ERR_INTERNAL, TL_SEV_ERROR, "error"},
#define DIAG(code, status, severity, title)                                  \
    [TL_##code] = {#code, TL_##status, TL_SEV_##severity, title},
#include "runtime/base/diag.def"
};

static const code_row *code_get(tl_code code)
{
    return &codes[(unsigned)code < TL_CODE_COUNT ? code : TL_CODE_NONE];
}

const char *tl_code_name(tl_code code)
{
    return code_get(code)->name;
}

tl_severity tl_code_severity(tl_code code)
{
    return code_get(code)->severity;
}

const char *tl_code_title(tl_code code)
{
    return code_get(code)->title;
}

tl_status tl_code_status(tl_code code)
{
    return code_get(code)->status;
}

tl_code tl_code_find(const char *name)
{
    for (int i = TL_CODE_NONE + 1; i < TL_CODE_COUNT; i++) {
        if (strcasecmp(codes[i].name, name) == 0) {
            return (tl_code)i;
        }
    }
    return TL_CODE_NONE;
}

void tl_diag_init(tl_diag *diag, tl_sources *sources)
{
    *diag = (tl_diag){.sources = sources};
    tl_arena_init(&diag->arena);
}

void tl_diag_fini(tl_diag *diag)
{
    tl_arena_fini(&diag->arena);
    *diag = (tl_diag){0};
}

void tl_diag_clear(tl_diag *diag)
{
    tl_arena_fini(&diag->arena);
    tl_arena_init(&diag->arena);
    diag->first = diag->last = NULL;
    diag->nerrors = diag->nwarnings = 0;
}

/* Take `item` out of the list; it need not be in it. */
static void unlink_item(tl_diag *diag, const tl_diag_item *item)
{
    tl_diag_item *before = NULL;

    for (tl_diag_item *p = diag->first; p; before = p, p = p->next) {
        if (p != item) {
            continue;
        }
        *(before ? &before->next : &diag->first) = p->next;
        if (diag->last == p) {
            diag->last = before;
        }
        return;
    }
}

static bool is_linked(const tl_diag *diag, const tl_diag_item *item)
{
    const tl_diag_item *p = diag->first;

    while (p != NULL && p != item) {
        p = p->next;
    }
    return p != NULL;
}

/* A fixed item, with as much of the message as its text holds. */
static tl_diag_item *spare_item(tl_diag *diag, const char *fmt, va_list ap)
{
    size_t n = sizeof(diag->spares) / sizeof(diag->spares[0]), i = 0;

    while (i + 1 < n && is_linked(diag, &diag->spares[i].item)) {
        i++;
    }
    unlink_item(diag, &diag->spares[i].item);
    diag->spares[i].item = (tl_diag_item){.message = diag->spares[i].text};
    if (vsnprintf(diag->spares[i].text, sizeof(diag->spares[i].text), fmt,
                  ap) < 0) {
        diag->spares[i].text[0] = '\0';
    }
    return &diag->spares[i].item;
}

static tl_diag_item *new_item(tl_diag *diag, const char *fmt, va_list ap)
{
    tl_diag_item *item = TL_ARENA_NEW(&diag->arena, tl_diag_item);
    va_list again;

    va_copy(again, ap);
    if (item) {
        item->message = tl_arena_vprintf(&diag->arena, fmt, ap);
    }
    if (!item || !item->message) {
        item = spare_item(diag, fmt, again);
    }
    va_end(again);
    return item;
}

static void report(tl_diag *diag, tl_code code, tl_span span,
                   const char *fmt, va_list ap)
{
    const code_row *row = code_get(code);
    tl_diag_item *item;

    if (!diag) {
        return;
    }
    diag->nerrors += row->severity == TL_SEV_ERROR;
    diag->nwarnings += row->severity == TL_SEV_WARNING;
    if (diag->muted) {
        return;
    }
    item = new_item(diag, fmt, ap);
    item->code = code;
    item->severity = row->severity;
    item->span = span;
    *(diag->last ? &diag->last->next : &diag->first) = item;
    diag->last = item;
}

// The functions themselves: see the end of diag.h.
#undef tl_fail
#undef tl_fail_at
#undef tl_fail_memory

tl_status tl_fail(tl_diag *diag, tl_code code, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    report(diag, code, (tl_span){0}, fmt, ap);
    va_end(ap);
    return tl_code_status(code);
}

tl_status tl_fail_at(tl_diag *diag, tl_code code, tl_span span,
                     const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    report(diag, code, span, fmt, ap);
    va_end(ap);
    return tl_code_status(code);
}

tl_status tl_fail_memory(tl_diag *diag, const char *what, size_t bytes)
{
    if (bytes > PTRDIFF_MAX) {
        return tl_fail(diag, TL_E0607,
                       "out of memory: %s needs more bytes than can be "
                       "addressed",
                       what);
    }
    tl_status st = tl_fail(diag, TL_E0607,
                           "out of memory: %s needs %zu bytes", what, bytes);

    tl_diag_note_memory(diag, bytes);
    return st;
}

void tl_diag_note_memory(tl_diag *diag, size_t bytes)
{
    size_t limit = tl_mem_limit(), live = tl_mem_live_bytes(), left;

    if (limit == SIZE_MAX) {
        return;
    }
    if (live > limit || bytes > limit - live) {
        tl_diag_note(diag, "%s in use, the limit of all memory is %s",
                     tl_bytes_str(live).s, tl_bytes_str(limit).s);
        return;
    }
    left = tl_machine_available();
    if (bytes >= left) {
        tl_diag_note(diag, "the machine has %s left", tl_bytes_str(left).s);
    }
}

/* Was this warning given for this place before?  From now on it was. */
static bool warned_before(tl_diag *diag, tl_code code, tl_span span)
{
    const size_t cap = sizeof(diag->warned) / sizeof(diag->warned[0]);
    size_t n = diag->nwarned < cap ? diag->nwarned : cap;

    for (size_t i = 0; i < n; i++) {
        if (diag->warned[i].code == code &&
            diag->warned[i].span.file == span.file &&
            diag->warned[i].span.start == span.start &&
            diag->warned[i].span.end == span.end) {
            return true;
        }
    }
    diag->warned[diag->nwarned % cap].code = code;
    diag->warned[diag->nwarned % cap].span = span;
    diag->nwarned++;
    return false;
}

void tl_warn(tl_diag *diag, tl_code code, tl_span span, const char *fmt, ...)
{
    va_list ap;

    if (diag && !diag->muted && span.file != 0 &&
        warned_before(diag, code, span)) {
        return;
    }
    va_start(ap, fmt);
    report(diag, code, span, fmt, ap);
    va_end(ap);
}

/* The item that additions go to, or NULL. */
static tl_diag_item *newest(tl_diag *diag)
{
    return diag && !diag->muted ? diag->last : NULL;
}

/* Room for one more in an array of the arena; false without memory. */
static bool grow(tl_diag *diag, void *items, size_t len, size_t *cap,
                 size_t size)
{
    size_t new_cap = *cap ? *cap * 2 : FIRST_LABELS;
    void *old, *p;

    if (len < *cap) {
        return true;
    }
    p = tl_arena_array(&diag->arena, new_cap, size);
    if (!p) {
        return false;
    }
    memcpy(&old, items, sizeof(old));
    if (len > 0) {
        memcpy(p, old, len * size);
    }
    memcpy(items, &p, sizeof(p));
    *cap = new_cap;
    return true;
}

void tl_diag_at(tl_diag *diag, tl_span span)
{
    tl_diag_item *item = newest(diag);

    if (!item || item->span.file != 0) {
        return;
    }
    item->span = span;
    if (item->severity == TL_SEV_WARNING && span.file != 0 &&
        warned_before(diag, item->code, span)) {
        unlink_item(diag, item);
        diag->nwarnings--;
    }
}

void tl_diag_caret(tl_diag *diag, const char *fmt, ...)
{
    tl_diag_item *item = newest(diag);
    va_list ap;

    if (!item) {
        return;
    }
    va_start(ap, fmt);
    item->span_text = tl_arena_vprintf(&diag->arena, fmt, ap);
    va_end(ap);
}

void tl_diag_label_add(tl_diag *diag, tl_span span, const char *fmt, ...)
{
    tl_diag_item *item = newest(diag);
    const char *text;
    va_list ap;

    if (!item || !grow(diag, &item->labels, item->nlabels, &item->cap_labels,
                       sizeof(*item->labels))) {
        return;
    }
    va_start(ap, fmt);
    text = tl_arena_vprintf(&diag->arena, fmt, ap);
    va_end(ap);
    if (text) {
        item->labels[item->nlabels++] = (tl_diag_label){span, text};
    }
}

void tl_diag_note(tl_diag *diag, const char *fmt, ...)
{
    tl_diag_item *item = newest(diag);
    const char *text;
    va_list ap;

    if (!item || !grow(diag, &item->notes, item->nnotes, &item->cap_notes,
                       sizeof(*item->notes))) {
        return;
    }
    va_start(ap, fmt);
    text = tl_arena_vprintf(&diag->arena, fmt, ap);
    va_end(ap);
    if (text) {
        item->notes[item->nnotes++] = text;
    }
}

void tl_diag_help(tl_diag *diag, const char *fmt, ...)
{
    tl_diag_item *item = newest(diag);
    va_list ap;

    if (!item) {
        return;
    }
    va_start(ap, fmt);
    item->help = tl_arena_vprintf(&diag->arena, fmt, ap);
    va_end(ap);
}

void tl_diag_fix_add(tl_diag *diag, tl_span span, const char *text)
{
    tl_diag_item *item = newest(diag);
    const char *copy;

    if (!item || !grow(diag, &item->fixes, item->nfixes, &item->cap_fixes,
                       sizeof(*item->fixes))) {
        return;
    }
    copy = tl_arena_strndup(&diag->arena, text, strlen(text));
    if (copy) {
        item->fixes[item->nfixes++] = (tl_diag_fix){span, copy};
    }
}

void tl_diag_frame_add(tl_diag *diag, const char *function, tl_span call,
                       const char *args)
{
    tl_diag_item *item = newest(diag);
    tl_diag_frame frame = {.call = call};

    if (!item) {
        return;
    }
    item->total_frames++;
    if (!item->frames) {
        item->frames =
            tl_arena_array(&diag->arena, KEPT_FRAMES, sizeof(frame));
    }
    frame.function =
        tl_arena_strndup(&diag->arena, function, strlen(function));
    frame.args =
        args ? tl_arena_strndup(&diag->arena, args, strlen(args)) : NULL;
    if (!item->frames || !frame.function || (args && !frame.args)) {
        return;
    }
    if (item->nframes == KEPT_FRAMES) {
        memmove(item->frames + KEPT_FRAMES / 2,
                item->frames + KEPT_FRAMES / 2 + 1,
                (KEPT_FRAMES / 2 - 1) * sizeof(frame));
        item->nframes--;
    }
    item->frames[item->nframes++] = frame;
}

tl_diag_item *tl_diag_pop(tl_diag *diag)
{
    tl_diag_item *item = diag->last;

    if (!item) {
        return NULL;
    }
    unlink_item(diag, item);
    item->next = NULL;
    diag->nerrors -= item->severity == TL_SEV_ERROR;
    diag->nwarnings -= item->severity == TL_SEV_WARNING;
    return item;
}
