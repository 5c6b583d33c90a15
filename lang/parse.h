/* parse.h - from source text to a resolved-ready syntax tree.
 *
 * A unit is one file or one entry of the REPL.  It owns its tree; functions
 * made from it keep pointers into it, so a unit lives as long as anything
 * that it defined.  Parsing reports as many errors as it can tell apart and
 * never exits, whatever the bytes. */
#ifndef TL_LANG_PARSE_H
#define TL_LANG_PARSE_H

#include "lang/ast.h"
#include "runtime/base/status.h"

/* What all units of a context share.  The caller owns both tables; neither
 * may be used from two threads at once. */
typedef struct tl_lang {
    tl_intern *names;
    tl_sources *sources;
} tl_lang;

typedef struct tl_unit {
    tl_arena arena;
    uint32_t file;   /* in tl_sources */
    tl_ast_unit *root;
    /* tl_parse_entry only: */
    bool incomplete; /* more input is needed; root is NULL, nothing reported */
    bool open_block; /* complete, but its last statement is a block to which
                        lines may still be added: a REPL waits for a blank
                        line if the text is typed line by line */
    bool quiet;      /* ended in `;`: the value is not shown */
    /* Filled in by tl_resolve: */
    tl_ast **tests; /* TEST nodes in source order, those of modules too */
    uint32_t ntests;
    tl_ast_fn *main; /* the function marked @main, or NULL */
    size_t nglobals; /* length of tl_globals after this unit */
} tl_unit;

/* Parse source `file` of lang->sources.  On failure everything found was
 * reported to `diag` and *out is not written.
 * Free the unit with tl_unit_free. */
TL_MUST_USE tl_status tl_parse(tl_unit **out, tl_lang *lang, uint32_t file,
                               tl_diag *diag);

/* The same for an entry of the REPL: input that may still become correct
 * when lines are added gives TL_OK and a unit with `incomplete` set, and
 * nothing is reported.  A `;` at the very end is allowed (`quiet`). */
TL_MUST_USE tl_status tl_parse_entry(tl_unit **out, tl_lang *lang,
                                     uint32_t file, tl_diag *diag);

/* NULL is allowed. */
void tl_unit_free(tl_unit *unit);

#endif
