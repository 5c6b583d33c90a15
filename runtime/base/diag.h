/* diag.h - diagnostics: what went wrong, where, what was wanted, what helps.
 *
 * A tl_diag is a sink owned by a context.  Whoever knows the cause calls
 * tl_fail once; callers only pass the status up, and may add what they know
 * to the newest diagnostic: its place (tl_diag_at), labels, notes, help, and
 * the frames of the program.  Front ends report several and go on.
 *
 * Codes are the rows of diag.def.  A row fixes the status that tl_fail
 * returns, hence the exit code.  Messages follow STYLE.md 12: lower case, no
 * full stop, found and wanted.  Nothing here prints to a stream by itself.
 *
 * Reporting never fails: when memory runs out while a message is built, the
 * sink keeps a shortened copy in a fixed buffer.  Not thread-safe: a sink has
 * one thread. */
#ifndef TL_BASE_DIAG_H
#define TL_BASE_DIAG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/base/arena.h"
#include "runtime/base/buf.h"
#include "runtime/base/status.h"

/* A range of bytes of a source text.  file 0 = no place known. */
typedef struct tl_span {
    uint32_t file;       /* index in tl_sources, from 1 */
    uint32_t start, end; /* byte offsets, end exclusive */
} tl_span;

/* The source texts of a context, for carets. */
typedef struct tl_source {
    char *name; /* as the user gave it */
    char *text; /* NUL-terminated, BOM removed */
    size_t len;
    uint32_t *lines; /* byte offset of each line's start */
    size_t nlines;
} tl_source;

typedef struct tl_sources {
    tl_source *items;
    size_t len, cap;
} tl_sources;

void tl_sources_init(tl_sources *sources);
void tl_sources_fini(tl_sources *sources);

/* Most bytes of a program that are read: what is larger is no program. */
enum { TL_MOST_SOURCE = 64 << 20 };

/* Add a text (copied); its number from 1, or 0 when out of memory. */
uint32_t tl_sources_add(tl_sources *sources, const char *name,
                        const char *text, size_t len);

/* The source numbered `file`, or NULL. */
const tl_source *tl_sources_get(const tl_sources *sources, uint32_t file);

/* 1-based line, and 1-based column in code points, of byte `offset`. */
void tl_source_position(const tl_source *source, uint32_t offset, int *line,
                        int *column);

typedef enum tl_severity {
    TL_SEV_ERROR,
    TL_SEV_WARNING,
    TL_SEV_NOTE
} tl_severity;

/* Codes: TL_E0301, TL_W0318, ... */
typedef enum tl_code {
    TL_CODE_NONE = 0,
#define DIAG(code, status, severity, title) TL_##code,
#include "runtime/base/diag.def"
    TL_CODE_COUNT
} tl_code;

typedef struct tl_diag_label {
    tl_span span;
    const char *text; /* may be "" */
} tl_diag_label;

/* A program frame: function, place of the call, argument shapes. */
typedef struct tl_diag_frame {
    const char *function;
    tl_span call;
    const char *args; /* NULL: a block that is not called, a test */
} tl_diag_frame;

/* A replacement of text that mends the program. */
typedef struct tl_diag_fix {
    tl_span span;
    const char *text;
} tl_diag_fix;

typedef struct tl_diag_item {
    tl_code code;
    tl_severity severity;
    tl_span span; /* the carets */
    const char *message;
    const char *span_text; /* label of the carets, or NULL */
    tl_diag_label *labels;
    size_t nlabels, cap_labels;
    const char **notes;
    size_t nnotes, cap_notes;
    const char *help; /* or NULL */
    tl_diag_fix *fixes;
    size_t nfixes, cap_fixes;
    tl_diag_frame *frames; /* innermost first: the first and the last three */
    size_t nframes;        /* kept, at most 6 */
    size_t total_frames;   /* seen */
    bool settled; /* of what has been run: not to be tried again */
    struct tl_diag_item *next;
} tl_diag_item;

typedef struct tl_diag {
    tl_arena arena;
    tl_sources *sources; /* borrowed; may be NULL: no carets then */
    tl_diag_item *first, *last;
    size_t nerrors, nwarnings;
    struct { /* used when the arena is out of memory */
        tl_diag_item item;
        char text[256];
    } spares[4];
    bool muted; /* speculative work: count, keep nothing */
    struct {    /* warnings given, to give each once a place */
        tl_code code;
        tl_span span;
    } warned[64]; /* a ring; outlives tl_diag_clear */
    size_t nwarned;
} tl_diag;

void tl_diag_init(tl_diag *diag, tl_sources *sources);
void tl_diag_fini(tl_diag *diag);

/* Drop all items (memory included); counts restart. */
void tl_diag_clear(tl_diag *diag);

/* Report an error and return the status of its row (never TL_OK). */
tl_status tl_fail(tl_diag *diag, tl_code code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* The same with the place of the carets. */
tl_status tl_fail_at(tl_diag *diag, tl_code code, tl_span span,
                     const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

/* "out of memory: `what` needs N bytes" (E0607); needs no memory itself. */
tl_status tl_fail_memory(tl_diag *diag, const char *what, size_t bytes);

/* After an E0607 for `bytes`: the ceiling (mem.h) or the machine, if that is
 * what refused them. */
void tl_diag_note_memory(tl_diag *diag, size_t bytes);

/* A warning (a W row), once for each place; the program goes on. */
void tl_warn(tl_diag *diag, tl_code code, tl_span span, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

/* Additions to the newest item; they do nothing when there is none. */
void tl_diag_at(tl_diag *diag, tl_span span); /* only if it has no place */
void tl_diag_caret(tl_diag *diag, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
void tl_diag_label_add(tl_diag *diag, tl_span span, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
void tl_diag_note(tl_diag *diag, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
void tl_diag_help(tl_diag *diag, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
void tl_diag_fix_add(tl_diag *diag, tl_span span, const char *text);
void tl_diag_frame_add(tl_diag *diag, const char *function, tl_span call,
                       const char *args);

/* Remove the newest item and give it to the caller; its memory stays in the
 * sink's arena.  For `catch`.  NULL when there is none. */
tl_diag_item *tl_diag_pop(tl_diag *diag);

/* Name of a code, as "E0301"; its row's severity, title and status. */
const char *tl_code_name(tl_code code);
tl_severity tl_code_severity(tl_code code);
const char *tl_code_title(tl_code code);
tl_status tl_code_status(tl_code code);

/* The code called `name` ("E0301", any case), or TL_CODE_NONE. */
tl_code tl_code_find(const char *name);

typedef enum tl_diag_format {
    TL_DIAG_HUMAN, /* LANGUAGE.md 10, with source lines and carets */
    TL_DIAG_SHORT, /* file:line:col: error[E0301]: message */
    TL_DIAG_JSON   /* one object a line, UX.md 2.7 */
} tl_diag_format;

/* Append one item, or all of them, to `out`.  `color` adds ANSI colours.
 * At most 20 errors are shown by tl_diag_print, then a count. */
void tl_diag_print_item(const tl_diag *diag, const tl_diag_item *item,
                        tl_diag_format format, bool color, tl_buf *out);
void tl_diag_print(const tl_diag *diag, tl_diag_format format, bool color,
                   tl_buf *out);

/* The candidate nearest to `word` (edit distance at most a third of its
 * length, at least 1), or NULL.  For did-you-mean. */
const char *tl_nearest(const char *word, const char *const *candidates,
                       size_t n);

/* Reporting never gives TL_OK.  gcc does not see that, and would warn of
 * results that "may be used uninitialized" after TL_TRY. */
static inline tl_status tl_status_failed(tl_status status)
{
    if (status == TL_OK) {
        __builtin_unreachable();
    }
    return status;
}

#define tl_fail(...) tl_status_failed(tl_fail(__VA_ARGS__))
#define tl_fail_at(...) tl_status_failed(tl_fail_at(__VA_ARGS__))
#define tl_fail_memory(...) tl_status_failed(tl_fail_memory(__VA_ARGS__))

#endif
