/* front.h - a source text through the front end, for the tests here. */
#ifndef TL_TEST_LANG_FRONT_H
#define TL_TEST_LANG_FRONT_H

#include "lang/parse.h"
#include "lang/scope.h"

typedef struct front {
    tl_sources sources;
    tl_intern names;
    tl_lang lang;
    tl_globals globals; /* kept over several units */
    tl_diag diag;
    tl_unit *unit; /* the last one; the others are in `old` */
    tl_unit *old[16];
    int nold;
    tl_status status;
    tl_buf text; /* of the last tree or error list */
} front;

/* The built-in names of these tests. */
extern const tl_builtins front_builtins;

void front_init(front *f);
void front_fini(front *f); /* and checks that nothing leaked */

/* Parse; then resolve.  Both leave what went wrong in f->diag. */
tl_status front_parse(front *f, const char *text);
tl_status front_entry(front *f, const char *text);
tl_status front_resolve(front *f, const char *text);
tl_status front_resolve_entry(front *f, const char *text);

/* The tree of the last unit on one line, without the unit around it. */
const char *front_tree(front *f, bool refs);

/* Errors and warnings as "E0101 1:5 message; help: ..." lines. */
const char *front_errors(front *f);

/* The function of this name, or the `nth` lambda for NULL. */
const tl_funcdef *front_func(front *f, const char *name);

/* All reads of `name` in the unit, in source order, one character each:
 * l last read, - other, of LOCALs only. */
const char *front_marks(front *f, const char *name);

/* A file of the source tree, NUL-terminated; the caller frees it. */
char *front_file(const char *path, size_t *len);

/* One text and the error that it must give. */
typedef struct front_case {
    const char *text;
    const char *error; /* starts the only line of front_errors */
    const char *help;  /* part of it, or NULL */
} front_case;

/* Check cases by the parser alone, or by parser and resolver. */
void front_check(const front_case *cases, size_t n, bool resolve);

#endif
